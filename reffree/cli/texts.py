"""What commands on plain text share: texts and chunkers, and what is said of them."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from reffree.chunkers.base import Chunker
from reffree.chunkers.chunked import SENTENCES, ChunkReport, PlainText
from reffree.chunkers.libraries import ChonkieSemantic, Embed
from reffree.chunkers.registry import CHUNKERS, FLAG, find_chunker, is_function
from reffree.cli.completion import file_names
from reffree.cli.inputs import CommandOptions, keywords_of
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.util.errors import InputError, Place
from reffree.util.naming import settings_of, spelling_of

CORPUS_ENDINGS = (".jsonl", ".ndjson", ".json")


def listing() -> str:
    """Every chunker with its options and their defaults, for the help."""
    lines = []
    for name, kind in CHUNKERS.items():
        options = ", ".join(f"{key}={value}" for key, value in settings_of(kind()).items())
        text = f"{name}: {options}" if options else name
        lines.append(textwrap.fill(text, 78, initial_indent="  ", subsequent_indent="      "))
    return "\n".join(lines)


def chunker_names() -> str:
    """Every chunker's name, for the help."""
    listed = ", ".join(CHUNKERS)
    return textwrap.indent(textwrap.fill(listed, 76, break_on_hyphens=False), "  ")


texts_argument = click.argument(
    "corpora", nargs=-1, required=True, metavar="TEXT...", shell_complete=file_names
)
language_option = click.option(
    "--language",
    default="en",
    show_default=True,
    metavar="CODE",
    help="Of the text, to split sentences.",
)


def find_chunkers(specs: Sequence[str], given: CommandOptions) -> list[Chunker]:
    """Make the chunkers, each once, and give those that need it the encoder."""
    if any(map(is_function, specs)) and (here := str(Path.cwd())) not in sys.path:
        # The reffree command, unlike python -m reffree, does not look for modules here by itself.
        sys.path.insert(0, here)
    found: dict[str, Chunker] = {}
    embed: Embed | None = None
    for spec in specs:
        chunker = find_chunker(spec)
        if spelling_of(chunker) in found:
            raise click.UsageError(f"{FLAG} {spec} twice: leave one out.")
        if isinstance(chunker, ChonkieSemantic):
            if given["embeddings"] is not None:
                raise click.UsageError(
                    f"--embeddings has no vectors for what {chunker.name} compares: leave one out, "
                    "or choose an --encoder."
                )
            embed = embed or _embedder(given)
            chunker = replace(chunker, embed=embed)
        found[spelling_of(chunker)] = chunker
    return list(found.values())


def _embedder(given: CommandOptions) -> Embed:
    """Return a function from texts to vectors of the encoder that will score."""
    import numpy as np
    from numpy.typing import NDArray

    from reffree.encoders.base import encode_texts
    from reffree.encoders.opening import open_encoder

    encoder = open_encoder(EncoderOptions(**keywords_of(given, Encoding)))

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        rows = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        vectors, _ = encode_texts(encoder, list(rows))
        return vectors[[rows[text] for text in texts]]

    return embed


def read_texts(paths: Sequence[str]) -> tuple[list[PlainText], list[str]]:
    """Read one document per file, or those of a corpus, and what there is to note about the files.

    Documents are called by their files without folder and extension, where that keeps them apart.
    """
    from reffree.formats import load
    from reffree.formats.source import Source, checked_name

    if paths.count("-") > 1:
        raise click.UsageError("- twice: standard input can be read only once.")
    sources = [Source(path) for path in paths]
    ids = [source.stem for source in sources]
    if len(set(ids)) < len(ids):
        ids = [checked_name(source.name, source.place()) for source in sources]
    texts: list[PlainText] = []
    notes: list[str] = []
    for id, source, path in zip(ids, sources, paths, strict=True):
        if source.suffix in CORPUS_ENDINGS:
            corpus = load(path)
            texts += [PlainText.of(document) for document in corpus]
            notes += corpus.notes
            notes.append(f"{path}: a corpus; its units stay as they are, joined by line breaks.")
        else:
            text = "\n".join(line for _, line in source.lines())
            _refuse_json(text, source.place())
            texts.append(PlainText(id, text, source.place()))
            notes += source.notes
    return texts, notes


def _refuse_json(text: str, place: Place) -> None:
    """Refuse a corpus that was to be read as prose."""
    first = text.lstrip()[:1] == "{" and text.lstrip().splitlines()[0]
    try:
        found = json.loads(first) if first else None
    except ValueError:
        return  # prose, or code
    if isinstance(found, dict):
        raise InputError(
            "JSON, one object a line",
            expected="plain text, or a corpus whose file is called .jsonl",
            remedy="name the file so, or take the text out of it",
            place=place,
        )


def remarks_on(chunkers: Sequence[Chunker]) -> list[str]:
    """Say what a reader of chunkers' scores must know."""
    remarks: dict[str, list[str]] = {}
    for chunker in chunkers:
        if chunker.remark is not None:
            remarks.setdefault(chunker.remark, []).append(spelling_of(chunker))
    return [f"{', '.join(names)}: {remark}." for remark, names in remarks.items()]


def size_rows(reports: Mapping[str, ChunkReport], given: CommandOptions) -> list[dict[str, Any]]:
    """Sizes of every chunker's chunks, tokens as the encoder counts them, where there is one."""
    count = None
    if given["embeddings"] is None:
        from reffree.encoders.opening import open_encoder

        # The cache leaves the model unopened, a server counts for itself.
        options = EncoderOptions(**keywords_of(given, Encoding) | {"cache": False})
        count = getattr(open_encoder(options), "count_tokens", None)
    rows = []
    for name, report in reports.items():
        sizes = report.sizes
        if count is not None:
            sizes = replace(sizes, tokens=tuple(count(report.texts)))
        rows.append({"chunker": name, **sizes.to_dict()})
    return rows


def versions(chunkers: Sequence[Chunker], texts: Sequence[PlainText], language: str) -> str:
    """Fields of the signature: what split the text, since other versions may split otherwise."""
    packages = dict.fromkeys(chunker.package for chunker in chunkers if chunker.package)
    is_split = any(text.document is None for text in texts)
    by = f"{SENTENCES}@{version(SENTENCES)}({language})" if is_split else "given"
    fields = [f"sentences:{by}"]
    if packages:
        listed = "+".join(f"{package}@{version(package)}" for package in packages)
        fields.append(f"chunkers:{listed}")
    return "|".join(fields)
