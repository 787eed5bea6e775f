"""``reffree demo``: the first thing a new user runs."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

import click

from reffree.cli.options import (
    emit,
    encoding_options,
    go_offline,
    is_colorful,
    output_options,
    progress,
    terminal_width,
)

HOW_TO_READ = """\
Every score asks whether units on the two sides of a boundary differ more than units within a
segment do: lower is better, and except for segrefree 0.5 is what meaningless boundaries get.
No metric saw the gold boundaries, yet gold is best in every column; two systems whose intervals
overlap (near_miss and even, say) cannot be told apart on twelve short documents.
On your own text keep a random or an even segmentation in the table: a metric on which they do
as well as your system says nothing there.
"""


@click.command(name="demo")
@encoding_options
@output_options
def command(
    encoder: str | None,
    device: str,
    batch_tokens: int | None,
    offline: bool,
    no_cache: bool,
    cache_dir: Path | None,
    output_format: str,
    output: Path | None,
) -> None:
    """Score the corpus that ships with reffree: 12 short documents, six segmentations of each."""
    if offline:
        go_offline()

    from reffree.formats import load
    from reffree.report.score import render
    from reffree.study.score import score

    with as_file(files("reffree") / "data" / "demo.jsonl") as path:
        corpus = load(path)
    table = score(
        corpus,
        encoder=encoder,
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
    emit(rendered if output_format != "table" else f"{rendered}\n{HOW_TO_READ}", output)
