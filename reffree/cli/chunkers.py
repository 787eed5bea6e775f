"""``reffree chunkers``: text splitters of other libraries, or the user's own, scored like systems.

These scores do not predict retrieval quality: the HOPE study (arXiv 2505.02171) found that concept
unity within chunks had minimal impact on it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Unpack

import click

from reffree.chunkers.base import Chunker
from reffree.chunkers.chunked import SENTENCES, PlainText, chunked
from reffree.chunkers.libraries import ChonkieSemantic, Embed
from reffree.chunkers.registry import CHUNKERS, FLAG, find_chunker, is_function
from reffree.cli.inputs import (
    CommandOptions,
    ScoreKeywords,
    check_encoding,
    input_files,
    keywords_of,
    read_vectors,
    with_systems,
)
from reffree.cli.messages import progress
from reffree.cli.options import (
    encoding_options,
    output_options,
    result_options,
    scoring_options,
    vector_options,
)
from reffree.cli.output import Output, spare_inputs
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.naming import settings_of, spelling_of


def _listing() -> str:
    """Every chunker with its options and their defaults, for the help."""
    lines = []
    for name, kind in CHUNKERS.items():
        options = ",".join(f"{key}={value}" for key, value in settings_of(kind()).items())
        lines.append(f"  {name}:{options}")
    return "\n".join(lines)


@click.command(
    name="chunkers",
    epilog=f"\b\nChunkers, their options and defaults:\n{_listing()}\n\b\n"
    "tokenizer is character or word; separator is paragraph, line or space.",
    help=f"""Score text splitters on plain text, without gold labels.

    TEXT is a file with the plain text of one document; - reads standard input. Its sentences
    become units, every {FLAG} a system: a chunk's start moves to the nearest sentence start, and
    the notes say how far. Overlapping chunks are refused, so LangChain's chunk_overlap is 0 here
    unless it is given. The table is that of reffree score; --null N says which scores chance
    would reach with segments of the same lengths.

    These scores do not predict retrieval quality: the HOPE study (arXiv 2505.02171) found that
    concept unity within chunks had minimal impact on it.

    \b
    reffree chunkers a.txt b.txt --chunker langchain:recursive,chunk_size=1000 \\
        --chunker chonkie:sentence,chunk_size=1000 --chunker semantic-text-splitter
    reffree chunkers a.txt --chunker my_module:my_function --save corpus.jsonl

    A function takes the text and returns its chunks: strings as they stand in the text, or
    (start, end) in characters. Its module is looked for in the current folder, too. The libraries
    are installed apart: pip install {SENTENCES} (always needed), langchain-text-splitters, chonkie,
    semantic-text-splitter.
    """,
)
@click.argument("corpora", nargs=-1, required=True, metavar="TEXT...")
@click.option(
    FLAG,
    "specs",
    multiple=True,
    required=True,
    metavar="SPEC",
    help="A chunker from the list below, such as chonkie-token:chunk_size=500, or "
    "MODULE:FUNCTION; may be repeated.",
)
@click.option(
    "--language",
    default="en",
    show_default=True,
    metavar="CODE",
    help="Language of the text, for its abbreviations when sentences are split.",
)
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the sentences with all segmentations to this file, as corpus JSONL.",
)
@scoring_options
@result_options
@vector_options
@encoding_options
@output_options
def command(
    specs: tuple[str, ...],
    language: str,
    save: Path | None,
    **given: Unpack[CommandOptions],
) -> None:
    """Chunk the texts, move boundaries to sentences, score."""
    files = input_files(given)
    out = Output.of(given["output_format"], given["output"], files)
    _check(given, save, out, files)
    chunkers = _find(specs, given)
    read, notes = _read(given["corpora"])
    corpus, reports = chunked(read, chunkers, language)
    for chunker in chunkers:
        name = spelling_of(chunker)
        notes.append(f"{name}: {reports[name]}.")
    remarks: dict[str, list[str]] = {}
    for chunker in chunkers:
        if chunker.remark is not None:
            remarks.setdefault(chunker.remark, []).append(spelling_of(chunker))
    notes += [f"{', '.join(names)}: {remark}." for remark, names in remarks.items()]
    corpus = with_systems(replace(corpus, notes=tuple(notes)), given)
    if save is not None:
        from reffree.formats import save as write

        write(corpus, save, format="jsonl")

    from reffree.evaluate.score import score
    from reffree.report.score import render

    table = score(
        corpus,
        embeddings=read_vectors(corpus, given["embeddings"]),
        progress=progress,
        **keywords_of(given, ScoreKeywords),
    )
    table = replace(table, signature=f"{table.signature}|{_versions(chunkers, language)}")
    out.show(render, table, table.notes)


def _check(given: CommandOptions, save: Path | None, out: Output, files: Sequence[str]) -> None:
    """Refuse options that exclude each other, and files that would overwrite one another."""
    check_encoding(given, given["embeddings"])
    if given["corpora"].count("-") > 1:
        raise click.UsageError("- twice: standard input can be read only once.")
    if save is None:
        return
    if str(save) == "-":
        raise click.UsageError("--save -: standard output is for the scores; name a file.")
    if save == out.path:
        raise click.UsageError(f"--save {save}: this is also -o; choose another file.")
    spare_inputs("--save", save, files)


def _find(specs: Sequence[str], given: CommandOptions) -> list[Chunker]:
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
    from reffree.encoders.sentence_transformer import open_encoder

    encoder = open_encoder(EncoderOptions(**keywords_of(given, Encoding)))

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        rows = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        vectors, _ = encode_texts(encoder, list(rows))
        return vectors[[rows[text] for text in texts]]

    return embed


def _read(paths: Sequence[str]) -> tuple[list[PlainText], list[str]]:
    """Read one document per file, and what there is to note about the files.

    Documents are called by their files without folder and extension, where that keeps them apart.
    """
    from reffree.formats.source import Source, checked_name

    sources = [Source(path) for path in paths]
    ids = [source.stem for source in sources]
    if len(set(ids)) < len(ids):
        ids = [checked_name(source.name, source.place()) for source in sources]
    texts = [
        PlainText(id, "\n".join(line for _, line in source.lines()), source.place())
        for id, source in zip(ids, sources, strict=True)
    ]
    return texts, [note for source in sources for note in source.notes]


def _versions(chunkers: Sequence[Chunker], language: str) -> str:
    """Fields of the signature: what split the text, since other versions may split otherwise."""
    packages = dict.fromkeys(chunker.package for chunker in chunkers if chunker.package)
    fields = [f"sentences:{SENTENCES}@{version(SENTENCES)}({language})"]
    if packages:
        listed = "+".join(f"{package}@{version(package)}" for package in packages)
        fields.append(f"chunkers:{listed}")
    return "|".join(fields)
