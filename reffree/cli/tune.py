"""``reffree tune``: choose a splitter's parameters without gold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import product
from typing import Any, Unpack, cast

import click

from reffree.chunkers.base import Chunker
from reffree.chunkers.chunked import PlainText, chunked, cut_text
from reffree.chunkers.equal_size import size_option
from reffree.chunkers.registry import CHUNKERS, FLAG
from reffree.cli.completion import names
from reffree.cli.help_page import PagedCommand
from reffree.cli.inputs import (
    CommandOptions,
    check_encoding,
    input_files,
    keywords_of,
    read_vectors,
)
from reffree.cli.messages import progress
from reffree.cli.options import (
    encoding_options,
    format_option,
    output_option,
    vector_options,
)
from reffree.cli.output import Output
from reffree.cli.texts import (
    find_chunkers,
    language_option,
    listing,
    read_texts,
    remarks_on,
    texts_argument,
    versions,
)
from reffree.encoders.options import Encoding
from reffree.util.errors import InputError, OptionError
from reffree.util.naming import parse_named, spelling_of

CHARACTERS = (150, 200, 300, 400, 600, 800, 1200, 1600, 2400, 3200)
A_WORD = 5
"""Characters of a word or a token, for sizes in those."""


@click.command(
    name="tune",
    epilog=f"\b\nChunkers, their options and defaults:\n{listing()}\n\n"
    "tokenizer is character or word; separator is paragraph, line or space.",
    cls=PagedCommand,
    help=f"""Choose a splitter's parameters by expected_pk, without gold labels.

    TEXT is read as in reffree chunkers. Every {FLAG} is run with every value of its size, or of the
    options that --values names, and scored by expected_pk; the table is the curve. Those that cut
    the texts alike are scored once. Chosen on the texts it is judged by, the best score flatters.

    \b
    reffree tune a.txt --chunker langchain:recursive --values chunk_size=200,400
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
    help="As in reffree chunkers; may be repeated.",
)
@click.option(
    "--values",
    multiple=True,
    metavar="OPTION=V,V,…",
    help="Values of an option to try, in all combinations; may be repeated.  [default: ten sizes "
    "from 150 to 3200]",
)
@click.option(
    "--length",
    type=float,
    metavar="UNITS",
    help="Sentences a segment has, where that is known.",
)
@language_option
@vector_options
@encoding_options
@format_option()
@output_option
def command(
    specs: tuple[str, ...],
    values: tuple[str, ...],
    length: float | None,
    language: str,
    **given: Unpack[CommandOptions],
) -> None:
    """Chunk the texts with every setting, score, and name the best."""
    check_encoding(given, given["embeddings"])
    out = Output.of(given["output_format"], given["output"], input_files(given))
    wanted = _parsed_values(values)
    bases = find_chunkers(specs, given)
    settings = [each for base in bases for each in _settings(base, wanted)]
    read, notes = read_texts(given["corpora"])
    settings, alike = _distinct(settings, read)
    corpus, reports = chunked(read, settings, language)
    n_characters = sum(len(text.text) for text in read)

    from reffree.studies.settings import tune

    result = tune(
        corpus,
        {
            spelling_of(each): (each.name, n_characters / reports[spelling_of(each)].snap.chunks)
            for each in settings
        },
        length=length,
        embeddings=read_vectors(corpus, given["embeddings"]),
        notes=[*notes, *alike, *remarks_on(bases)],
        versions=versions(settings, read, language),
        progress=progress,
        seed=given["seed"],
        **keywords_of(given, Encoding),
    )
    out.show(result)


def _parsed_values(values: Sequence[str]) -> dict[str, list[str]]:
    """Read OPTION=V,V,… by option."""
    found: dict[str, list[str]] = {}
    for text in values:
        option, _, given = text.partition("=")
        each = given.split(",")
        if not option or not all(each):
            raise click.UsageError(
                f"--values {text!r}: expected OPTION=V,V,…, such as chunk_size=200,400."
            )
        if option in found:
            raise click.UsageError(f"--values {option}=… twice: put all values into one.")
        found[option] = each
    return found


def _settings(base: Chunker, values: dict[str, list[str]]) -> list[Chunker]:
    """Return the chunker with every combination of values; those it refuses are refused."""
    if base.name not in CHUNKERS:
        raise OptionError(
            f"{base.name!r}, a function",
            expected="a chunker with options",
            remedy="score functions of several settings with reffree chunkers",
        )
    if not values:
        return _sizes(base)
    known = [each.name for each in fields(cast(Any, base))]
    made = []
    for combination in product(*values.values()):
        options = ",".join(
            f"{option}={value}" for option, value in zip(values, combination, strict=True)
        )
        # Read as on the command line, for the same sentences.
        parsed = parse_named(f"{base.name}:{options}", CHUNKERS, "chunker", FLAG)
        chosen = {option: getattr(parsed, option) for option in values if option in known}
        made.append(cast(Chunker, replace(cast(Any, base), **chosen)))
    return made


def _sizes(base: Chunker) -> list[Chunker]:
    """Return the chunker with ten sizes, those left out that its other options forbid."""
    option = size_option(base)
    measured = base.size("Ten words make a sentence that says how sizes count.")
    is_characters = measured > 20
    made = []
    for characters in CHARACTERS:
        size = characters if is_characters else characters // A_WORD
        try:
            made.append(cast(Chunker, replace(cast(Any, base), **{option: size})))
        except InputError:
            continue  # smaller than the overlap that was asked for
    if not made:
        raise OptionError(
            f"no size that goes with {spelling_of(base)!r}",
            expected="one of ten",
            remedy=f"name some with --values {option}=…",
        )
    return made


def _distinct(
    settings: Sequence[Chunker], texts: Sequence[PlainText]
) -> tuple[list[Chunker], list[str]]:
    """Leave out settings that cut the texts as an earlier one of that splitter; say which."""
    first: dict[tuple[object, ...], Chunker] = {}
    notes = []
    for chunker in settings:
        cuts = tuple(tuple(cut_text(chunker, text)) for text in texts)
        kept = first.setdefault((chunker.name, *cuts), chunker)
        if kept is not chunker:
            notes.append(f"{spelling_of(chunker)} cuts the texts as {spelling_of(kept)} does.")
    return list(first.values()), notes
