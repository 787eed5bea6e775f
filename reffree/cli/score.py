"""``reffree score``: a table of reference-free scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click

from reffree.cli.encoding_options import check_encoding, encoding_of, encoding_options
from reffree.cli.engine import check_engine, engine_options, opened_actors
from reffree.cli.file_options import corpora_argument, format_option, reading_options
from reffree.cli.inputs import Given, input_files, read_inputs, read_vectors, scoring_of
from reffree.cli.output import Output, tell_notes
from reffree.cli.scoring_options import result_options, system_options, vector_options

if TYPE_CHECKING:
    from reffree.corpus import Corpus
    from reffree.evaluate.scores import Average
    from reffree.evaluate.shard_writer import ShardFormat
    from reffree.evaluate.table import ScoreTable
    from reffree.formats.shards import Shards


class Results(TypedDict):
    """What of the results is wanted."""

    average: Average
    null: int
    explain: bool
    per_document: bool
    per_segment: bool


class Engine(TypedDict):
    """Where it is made."""

    engine: str
    address: str | None
    n: int | None


@click.command(name="score")
@corpora_argument
@system_options
@result_options
@click.option(
    "--shards",
    type=click.Choice(["jsonl", "parquet"]),
    help="Write every document's scores as they come into part files of the folder -o, and a "
    "summary.json at the end; the corpus is streamed.",
)
@engine_options
@vector_options
@reading_options
@encoding_options
@format_option()
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write to this file instead of standard output; with --shards, to this folder.",
)
def command(
    average: Average,
    null: int | None,
    explain: bool,
    per_document: bool,
    per_segment: bool,
    shards: ShardFormat | None,
    engine: str,
    ray_address: str | None,
    ray_actors: int | None,
    output_format: str | None,
    output: Path | None,
    **given: Unpack[Given],
) -> None:
    """Score segmentations without gold labels, and against them where there are any.

    CORPUS is a file or folder of documents with the segmentations of one or more systems; - reads
    standard input. With --engine ray or --shards, corpus JSONL and Parquet are read a block at a
    time and may be larger than memory; every host must see the files under the same path.
    """
    check_engine(engine, ray_address, ray_actors)
    where = Engine(engine=engine, address=ray_address, n=ray_actors)
    wanted = Results(
        average=average,
        null=null or 0,
        explain=explain,
        per_document=per_document or shards is not None,
        per_segment=per_segment,
    )
    if (engine == "ray" or shards is not None) and given["embeddings"] is not None:
        raise click.UsageError("--embeddings are for a corpus in memory: leave them out.")
    if shards is not None:
        _to_shards(given, wanted, where, shards, output, output_format)
        return
    out = Output.of(output_format, output, input_files(given))
    if engine == "ray":
        table = _streamed(given, wanted, where)
    else:
        corpus = read_inputs(given)
        vectors = read_vectors(corpus, given["embeddings"])

        from reffree.evaluate.score import score

        table = score(corpus, embeddings=vectors, **wanted, **scoring_of(given))

    from reffree.report.score import render

    out.write(render(table, out.format, color=out.color, width=out.width), table.notes)


def _to_shards(
    given: Given,
    wanted: Results,
    where: Engine,
    format: ShardFormat,
    folder: Path | None,
    output_format: str | None,
) -> None:
    if folder is None:
        raise click.UsageError("--shards writes a folder: name it with -o FOLDER.")
    if output_format not in (None, "json"):
        raise click.UsageError("--shards writes its summary as JSON: leave -f out.")
    if format == "parquet" and wanted["explain"]:
        raise click.UsageError("--explain does not fit into Parquet: use --shards jsonl.")

    from reffree.evaluate.shard_writer import DocumentShards

    written = DocumentShards(folder, format)
    table = _streamed(given, wanted, where, written.take)
    written.finish(table)
    tell_notes(table.notes)


def _streamed(
    given: Given, wanted: Results, where: Engine, take: Callable[[Any], None] | None = None
) -> ScoreTable:
    """Score a block at a time, here or on Ray's actors."""
    source = _source(given)

    from reffree.evaluate.score import score

    with opened_actors(**where, device=given["device"]) as actors:
        return score(source, actors=actors, on_rows=take, **wanted, **scoring_of(given))


def _source(given: Given) -> Shards | Corpus:
    """Shards to stream; what needs the whole corpus at once gets it in memory."""
    from reffree.encoders.options import EncoderOptions
    from reffree.formats.shards import Shards

    check_encoding(given)
    options = EncoderOptions(**encoding_of(given))
    if not given["systems"] and given["text"] is None and options.dropped == "none":
        shards = Shards.of(given["corpora"], given["input_format"])
        if shards is not None:
            return shards
    return read_inputs(given)
