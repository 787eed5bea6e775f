"""``reffree chunkers``: text splitters of other libraries, or the user's own, scored like systems.

These scores do not predict retrieval quality: the HOPE study (arXiv 2505.02171) found that concept
unity within chunks had minimal impact on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import click

from reffree.chunkers.chunked import SENTENCES, chunked
from reffree.chunkers.equal_size import characters_a_chunk, with_size
from reffree.chunkers.registry import CHUNKERS, FLAG
from reffree.cli.completion import METRICS, names
from reffree.cli.help_page import PagedCommand
from reffree.cli.inputs import (
    CommandOptions,
    ScoreKeywords,
    check_encoding,
    input_files,
    keywords_of,
    read_vectors,
    with_systems,
)
from reffree.cli.messages import progress, waiting
from reffree.cli.options import (
    encoding_options,
    metric_option,
    more_systems,
    output_options,
    result_options,
    unsegmented_option,
    vector_options,
    whole,
)
from reffree.cli.output import Output, spare_inputs
from reffree.cli.texts import (
    chunker_names,
    find_chunkers,
    language_option,
    read_texts,
    remarks_on,
    size_rows,
    texts_argument,
    versions,
)
from reffree.util.bounds import Positive
from reffree.util.naming import spelling_of


@click.command(
    name="chunkers",
    cls=PagedCommand,
    epilog=f"\b\nChunkers (reffree tune --help has their options):\n{chunker_names()}",
    help=f"""Score text splitters on plain text, without gold labels.

    TEXT is the plain text of one document (- is standard input) or a corpus (.jsonl), whose units
    stay as they are. Sentences become units, every {FLAG} a system: a chunk's start moves to the
    nearest sentence's, and overlapping chunks count by their starts. A second table has chunks'
    sizes, how many are at 95 % of the cap, and code fences, tables and headings that are cut.

    These scores do not predict retrieval quality: the HOPE study (arXiv 2505.02171) found that
    concept unity within chunks had minimal impact on it.

    \b
    reffree chunkers a.txt --chunker langchain:recursive,chunk_size=1000
    reffree chunkers a.txt b.txt --chunker my_module:my_function

    A function takes the text and returns its chunks, as strings or (start, end) in characters.
    Libraries are installed apart; plain text needs {SENTENCES}.
    """,
)
@texts_argument
@click.option(
    FLAG,
    "specs",
    shell_complete=names(CHUNKERS),
    multiple=True,
    required=True,
    metavar="SPEC",
    help="A chunker, such as chonkie-token:chunk_size=500, or MODULE:FUNCTION; may be repeated.",
)
@language_option
@click.option(
    "--equal-size",
    type=whole(Positive),
    metavar="N",
    help="Choose sizes so that all have N characters a chunk.",
)
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write sentences and systems as corpus JSONL.",
)
@metric_option("As in reffree score; may be repeated.", ("all", "gold", *METRICS))
@more_systems
@unsegmented_option()
@result_options
@vector_options
@encoding_options
@output_options
def command(
    specs: tuple[str, ...],
    language: str,
    equal_size: int | None,
    save: Path | None,
    **given: Unpack[CommandOptions],
) -> None:
    """Chunk the texts, move boundaries to sentences, score."""
    files = input_files(given)
    out = Output.of(given["output_format"], given["output"], files)
    _check(given, save, out, files)
    chunkers = find_chunkers(specs, given)
    read, notes = read_texts(given["corpora"])
    if equal_size is not None:
        chunkers = [with_size(chunker, read, equal_size) for chunker in chunkers]
        notes += [
            f"{spelling_of(each)}: {characters_a_chunk(each, read):,.0f} characters a chunk, where "
            f"{equal_size:,} were asked for."
            for each in chunkers
        ]
    corpus, reports = chunked(read, chunkers, language)
    notes += [f"{name}: {report.snap}." for name, report in reports.items()]
    notes += remarks_on(chunkers)
    corpus = with_systems(replace(corpus, notes=tuple(notes)), given)
    if save is not None:
        from reffree.formats import save as write

        write(corpus, save, format="jsonl")

    with waiting("Loading"):
        from reffree.evaluate.score import score

    table = score(
        corpus,
        embeddings=read_vectors(corpus, given["embeddings"]),
        progress=progress,
        **keywords_of(given, ScoreKeywords),
    )
    signature = f"{table.signature}|{versions(chunkers, read, language)}"
    table = replace(table, signature=signature)
    out.show(table, chunkers=size_rows(reports, given))


def _check(given: CommandOptions, save: Path | None, out: Output, files: Sequence[str]) -> None:
    """Refuse options that exclude each other, and files that would overwrite one another."""
    check_encoding(given, given["embeddings"])
    if save is None:
        return
    if str(save) == "-":
        raise click.UsageError("--save -: standard output is for the scores; name a file.")
    if save == out.path:
        raise click.UsageError(f"--save {save}: this is also -o; choose another file.")
    spare_inputs("--save", save, files)
