"""``reffree score``: a table of reference-free scores."""

from __future__ import annotations

from pathlib import Path

import click

from reffree.cli.options import (
    emit,
    encoding_options,
    go_offline,
    is_colorful,
    output_options,
    progress,
    reading_options,
    terminal_width,
)


@click.command(name="score")
@click.argument("corpora", nargs=-1, required=True, metavar="CORPUS...")
@click.option(
    "-m",
    "--metric",
    "metrics",
    multiple=True,
    help="arp_std, arp_cos, arp_pair, silhouette or segrefree, with options as in arp_std:p=1 or "
    "silhouette:average=units; may be repeated.  [default: all]",
)
@click.option(
    "--system",
    "systems",
    multiple=True,
    metavar="NAME=FILE",
    help="One more system, from a file of segmentations; may be repeated.",
)
@click.option(
    "--unsegmented",
    type=click.Choice(["neutral", "skip", "worst"]),
    default="neutral",
    show_default=True,
    help="What a document without a boundary scores.",
)
@click.option("--per-document", is_flag=True, help="Also show every document's scores.")
@click.option("--per-segment", is_flag=True, help="Also show every segment's scores.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the bootstrap.")
@click.option("--short", is_flag=True, help="Abbreviate the signature.")
@click.option(
    "--embeddings",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Your own vectors instead of an encoder: .npz with an array per document id, or .npy "
    "with all units stacked.",
)
@reading_options
@encoding_options
@output_options
def command(
    corpora: tuple[str, ...],
    metrics: tuple[str, ...],
    systems: tuple[str, ...],
    unsegmented: str,
    per_document: bool,
    per_segment: bool,
    seed: int,
    short: bool,
    embeddings: Path | None,
    input_format: str | None,
    text: str | None,
    convention: str | None,
    encoder: str | None,
    device: str,
    batch_tokens: int | None,
    offline: bool,
    no_cache: bool,
    cache_dir: Path | None,
    output_format: str,
    output: Path | None,
) -> None:
    """Score segmentations without gold labels.

    CORPUS is a file or folder of documents with the segmentations of one or more systems; - reads
    standard input. Lower scores are better.
    """
    named = [_split(system) for system in systems]
    if embeddings is not None and encoder is not None:
        raise click.UsageError("--embeddings and --encoder exclude each other: keep one.")
    if seed < 0:
        raise click.UsageError(f"--seed {seed} is negative: use 0 or more.")
    if offline:
        go_offline()

    from reffree.formats import load, read_system

    corpus = load(*corpora, format=input_format, text=text, convention=convention)  # type: ignore[arg-type]
    for name, file in named:
        corpus = read_system(file, name, corpus, convention=convention)  # type: ignore[arg-type]

    # Torch is imported only once the input is known to be good.
    from reffree.encoders.precomputed import from_file
    from reffree.report.score import render
    from reffree.study.score import score

    table = score(
        corpus,
        metrics=metrics or None,
        encoder=encoder,
        embeddings=None if embeddings is None else from_file(corpus, embeddings),
        per_document=per_document,
        per_segment=per_segment,
        unsegmented=unsegmented,  # type: ignore[arg-type]
        seed=seed,
        short_signature=short,
        device=device,
        batch_tokens=batch_tokens,
        offline=offline,
        cache=not no_cache,
        cache_dir=cache_dir,
        progress=progress,
    )
    rendered = render(
        table,
        output_format,  # type: ignore[arg-type]
        color=is_colorful(output),
        width=terminal_width(output),
    )
    emit(rendered, output)
    if output_format != "table" or output is not None:
        for note in table.notes:
            click.echo(f"reffree: note: {note}", err=True)


def _split(system: str) -> tuple[str, str]:
    name, separator, file = system.partition("=")
    if not (name and separator and file):
        raise click.UsageError(f"--system {system!r}: expected NAME=FILE, such as even=even.jsonl.")
    return name, file
