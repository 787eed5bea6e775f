"""``reffree score``: a table of reference-free scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from reffree.cli.help_page import PagedCommand
from reffree.cli.inputs import (
    CommandOptions,
    ScoreKeywords,
    check_encoding,
    check_engine,
    input_files,
    keywords_of,
    read_corpus,
    read_inputs,
)
from reffree.cli.messages import progress, tell_notes, waiting
from reffree.cli.options import (
    engine_options,
    format_option,
    result_options,
    scored_corpus_options,
    scoring_options,
)
from reffree.cli.output import Output, fail_if
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.util.errors import check_documents, check_systems, shorten

if TYPE_CHECKING:
    from reffree.data.corpus import Corpus
    from reffree.encoders.ray_actors import Actors
    from reffree.evaluate.shard_writer import DocumentShards, ShardFormat
    from reffree.evaluate.table import ScoreTable
    from reffree.formats.shards import Shards


def _limits(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, float]:
    """Read METRIC=VALUE; a metric may have options, with = in them."""
    limits = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            limits[name] = float(number)
        except ValueError:
            limits[name] = math.nan
        if not name or not math.isfinite(limits[name]):
            raise click.UsageError(
                f"--fail-under {shorten(text)}: expected METRIC=VALUE, such as pk=0.4."
            )
    return limits


@click.command(cls=PagedCommand, name="score")
@scoring_options
@result_options
@click.option(
    "--document",
    "documents",
    multiple=True,
    metavar="ID",
    help="Of these only this document's; may be repeated.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    help="Of these only this system's; may be repeated.",
)
@click.option(
    "--shards",
    type=click.Choice(["jsonl", "parquet"]),
    metavar="KIND",
    help="Stream the corpus; every document's scores go to jsonl or parquet files in the folder "
    "-o.",
)
@click.option(
    "--fail-under",
    "limits",
    multiple=True,
    metavar="METRIC=VALUE",
    callback=_limits,
    help="Exit with 3 where a system is worse; may be repeated.",
)
@engine_options
@scored_corpus_options
@format_option()
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File, instead of standard output; folder of --shards.",
)
def command(
    documents: tuple[str, ...],
    only: tuple[str, ...],
    shards: ShardFormat | None,
    limits: dict[str, float],
    engine: str,
    ray_address: str | None,
    ray_actors: int | None,
    **given: Unpack[CommandOptions],
) -> None:
    """Score segmentations without gold labels, and against them where there are any.

    CORPUS is a file or folder of documents with systems' segmentations; - is standard input. With
    --engine ray or --shards, JSONL and Parquet may be larger than memory; every host must see the
    files under the same path.
    """
    check_engine(engine, ray_address, ray_actors, given.get("encoder"))
    is_streamed = engine == "ray" or shards is not None
    if is_streamed and given["embeddings"] is not None:
        raise click.UsageError("--embeddings are for a corpus in memory: leave them out.")
    keywords = keywords_of(given, ScoreKeywords)
    _check_limits(limits, given["metrics"])
    is_shown = given["explain"] or given["per_document"] or given["per_segment"]
    if (documents or only) and (shards is not None or not is_shown):
        raise click.UsageError(
            "--document and --only are for what --explain, --per-document or --per-segment shows, "
            "without --shards."
        )
    parts = out = None
    if shards is not None:
        parts = _opened_shards(shards, given)
        keywords["per_document"] = True
    else:
        out = Output.of(given["output_format"], given["output"], input_files(given))
    corpus, vectors = (_source(given), None) if is_streamed else read_inputs(given)

    from reffree.data.corpus import Corpus

    with waiting("Loading"):
        from reffree.evaluate.score import score

    if isinstance(corpus, Corpus):  # else it is not known before
        check_documents(documents, (document.id for document in corpus))
        check_systems(only, corpus.hypotheses)
    actors: AbstractContextManager[Actors | None] = nullcontext()
    if engine == "ray":
        from reffree.encoders.ray_actors import ray_actors as opened_actors

        actors = opened_actors(ray_address, ray_actors, device=given["device"])
    with actors as running:
        table = score(
            corpus,
            embeddings=vectors,
            actors=running,
            on_rows=None if parts is None else parts.take,
            progress=progress,
            **keywords,
        )
    table = _sorted(table, given["sort"], None if out is None else out.format)
    if documents or only:
        table = table.narrowed(documents, only)
    if parts is not None:
        parts.finish(table)
        tell_notes(table.notes)
    elif out is not None:
        from reffree.report.score import render

        out.show(render, table, table.notes)
    fail_if(table.worse_than(limits))


def _check_limits(limits: Mapping[str, float], metrics: Sequence[str]) -> None:
    """Refuse limits for what will not be scored, as far as that is known before the work."""
    if not limits:
        return
    from reffree.evaluate.metric_set import ALL, check_metrics
    from reffree.metrics.registry import DEFAULT, GOLD_DEFAULT

    check_metrics([*limits])
    scored = {name for each in metrics for name in ALL.get(each, [each])}
    for name in limits:
        if name not in (scored or {*DEFAULT, *GOLD_DEFAULT}):
            raise click.UsageError(f"--fail-under {name}: it is not scored; add -m {name}.")


def _sorted(table: ScoreTable, metric: str | None, format: str | None) -> ScoreTable:
    """Put the systems in the order asked for; for people, best first."""
    from reffree.evaluate.table import judged_by

    if metric is None:
        metric = "corpus" if format in (None, "json", "csv") else judged_by(table.metrics)
    return table if metric == "corpus" else table.sorted_by(metric)


def _opened_shards(format: ShardFormat, given: CommandOptions) -> DocumentShards:
    """Open the folder that --shards writes."""
    if given["output"] is None:
        raise click.UsageError("--shards writes a folder: name it with -o FOLDER.")
    if given["output_format"] not in (None, "json"):
        raise click.UsageError("--shards writes its summary as JSON: leave -f out.")
    if format == "parquet" and given["explain"]:
        raise click.UsageError("--explain does not fit into Parquet: use --shards jsonl.")

    from reffree.evaluate.shard_writer import DocumentShards

    return DocumentShards(given["output"], format)


def _source(given: CommandOptions) -> Shards | Corpus:
    """Shards to stream; what needs the whole corpus at once gets it in memory."""
    from reffree.formats.shards import Shards

    check_encoding(given)
    options = EncoderOptions(**keywords_of(given, Encoding))
    is_plain = given["convention"] is None and given["columns"] is None
    if not given["systems"] and given["text"] is None and is_plain and options.dropped == "none":
        shards = Shards.of(given["corpora"], given["input_format"])
        if shards is not None:
            return shards
    return read_corpus(given)
