"""``reffree score``: a table of reference-free scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from reffree.cli.inputs import Given, input_files, read_inputs
from reffree.cli.options import (
    encoding_options,
    output_options,
    reading_options,
    result_options,
    system_options,
    vector_options,
)
from reffree.cli.output import Output

if TYPE_CHECKING:
    from reffree.study.columns import Average


@click.command(name="score")
@click.argument("corpora", nargs=-1, required=True, metavar="CORPUS...")
@system_options
@result_options
@vector_options
@reading_options
@encoding_options
@output_options
def command(
    average: Average,
    null: int | None,
    explain: bool,
    per_document: bool,
    per_segment: bool,
    output_format: str | None,
    output: Path | None,
    **given: Unpack[Given],
) -> None:
    """Score segmentations without gold labels, and against them where there are any.

    CORPUS is a file or folder of documents with the segmentations of one or more systems; - reads
    standard input.
    """
    out = Output.of(output_format, output, input_files(given))
    corpus, scoring = read_inputs(given)

    from reffree.report.score import render
    from reffree.study.score import score

    table = score(
        corpus,
        average=average,
        null=null or 0,
        explain=explain,
        per_document=per_document,
        per_segment=per_segment,
        **scoring,
    )
    out.write(render(table, out.format, color=out.color, width=out.width), table.notes)
