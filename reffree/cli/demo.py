"""``reffree demo``: the first thing a new user runs."""

from __future__ import annotations

import textwrap
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from reffree.cli.encoding_options import check_encoding, encoding_options
from reffree.cli.file_options import output_options
from reffree.cli.output import Output
from reffree.cli.progress import progress

if TYPE_CHECKING:
    from reffree.encoders.options import Encoding
    from reffree.study.table import ScoreTable

DRAWS = 1000
SCALE = (
    "The columns with a p ask, without gold labels, whether units on the two sides of a boundary "
    "differ more than units within a segment do; p says how often the same segment lengths in "
    "random order do as well. The last three compare with gold."
)
GOLD_FIRST = (
    "No column with a p saw the gold boundaries, yet gold is best in each, and p tells its copy "
    "with near misses from the even and random cuts even where the intervals overlap."
)
GOLD_UNSEEN = (
    "No column with a p saw the gold boundaries; where gold is not best, or p does not tell "
    "near_miss from even and random, this encoder does not see these topics, and its scores say "
    "little."
)
ALPHA = 0.05
ADVICE = (
    "On your own text keep a random or an even segmentation in the table: a metric on which they "
    "do as well as your system says nothing there."
)


@click.command(name="demo")
@encoding_options
@output_options
def command(
    output_format: str | None,
    output: Path | None,
    **encoding: Unpack[Encoding],
) -> None:
    """Score the corpus that ships with reffree: 12 short documents, six segmentations of each."""
    out = Output.of(output_format, output)
    check_encoding(encoding)

    from reffree.formats import load
    from reffree.report.score import render
    from reffree.study.score import score

    with as_file(files("reffree") / "data" / "demo.jsonl") as path:
        corpus = load(path)
    table = score(corpus, null=DRAWS, progress=progress, **encoding)
    rendered = render(table, out.format, color=out.color, width=out.width)
    reading = _how_to_read(table, out.width or 100)
    out.write(f"{rendered}\n{reading}" if out.format == "table" else rendered, table.notes)


def _how_to_read(table: ScoreTable, width: int) -> str:
    """Three sentences; the second depends on what the table shows."""
    sentences = [SCALE, GOLD_FIRST if _shows_the_damage(table) else GOLD_UNSEEN, ADVICE]
    return "".join(f"{textwrap.fill(sentence, width)}\n" for sentence in sentences)


def _shows_the_damage(table: ScoreTable) -> bool:
    """Whether gold is best, and p small for near misses only, under every reference-free metric."""
    systems = {row.system: row.metrics for row in table.systems}

    def is_significant(system: str, metric: str) -> bool:
        null = systems[system][metric].null
        return null is not None and null.p <= ALPHA

    return all(
        "gold" in table.best(metric)
        and is_significant("near_miss", metric)
        and not is_significant("even", metric)
        and not is_significant("random", metric)
        for metric, score in table.systems[0].metrics.items()
        if score.null is not None
    )
