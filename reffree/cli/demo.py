"""``reffree demo``: the first thing a new user runs."""

from __future__ import annotations

import textwrap
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reffree.cli.derive import encoding_options
from reffree.cli.files import Output, check_encoding
from reffree.cli.messages import progress, tell_written
from reffree.cli.options import OUTPUT_OPTIONS, PagedCommand
from reffree.encoders.options import Encoding

if TYPE_CHECKING:
    from reffree.data.corpus import Corpus
    from reffree.evaluate.table import ScoreTable

DRAWS = 1000
METRICS = ("placement", "granularity", "expected_pk", "arp_pair", "pk")
"""What is read first, one of the published ones, and gold's word."""

SCALE = (
    "placement is where boundaries are: 0 chance, 1 the best that the text knows of; granularity "
    "how many, 1 as the text suggests; expected_pk both. The last column compares with gold."
)
GOLD_FIRST = (
    "No column with a p saw gold, yet gold is best in each, then (by expected_pk) its copies."
)
GOLD_UNSEEN = (
    "No column with a p saw the gold boundaries; where gold is not best, or expected_pk does not "
    "put near_miss before even and random, this encoder does not see these topics, and its scores "
    "say little."
)
ADVICE = "Keep a random segmentation in your tables: where it does as well, a metric says nothing."


@click.command(cls=PagedCommand, name="demo")
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the corpus itself to this .jsonl file, or its plain text to this .txt file, and "
    "stop: something to try the other commands on.",
)
@encoding_options()
@OUTPUT_OPTIONS
def command(save: Path | None, **given: Any) -> None:  # noqa: ANN401  (values of options)
    """Score the corpus that ships with reffree: 12 short documents, six segmentations of each."""
    if save is not None:
        _save(save)
        tell_written(save)
        return
    out = Output(given, command="score")
    encoding = {k: given[k] for k in Encoding.__annotations__ if given.get(k) not in (None, ())}
    check_encoding(encoding, None)

    with progress("Loading"):
        from reffree.evaluate.score import score

    table = score(_corpus(), metrics=METRICS, null=DRAWS, progress=progress, **encoding)
    if out.format not in ("json", "csv"):
        table = table.sorted_by("expected_pk")
    said = [SCALE, GOLD_FIRST if _shows_the_damage(table) else GOLD_UNSEEN, ADVICE]
    out.show(table, after=f"\n{textwrap.fill(' '.join(said), out.width or 100)}\n")


def _corpus() -> Corpus:
    from reffree.formats import load

    with as_file(files("reffree") / "resources" / "demo.jsonl") as path:
        return load(path)


def _save(path: Path) -> None:
    """Write the corpus, or its text with a paragraph a document."""
    from reffree.formats import save
    from reffree.util.atomic import check_writable, write_file

    check_writable(path)
    if path.exists():
        raise click.UsageError(f"--save {path}: this file is there; remove it or name another.")
    match path.suffix.lower():
        case ".jsonl":
            save(_corpus(), path)
        case ".txt":
            write_file(path, ["\n\n".join(" ".join(each.units) for each in _corpus()), "\n"])
        case _:
            raise click.UsageError(f"--save {path}: expected a .jsonl or a .txt file.")


def _shows_the_damage(table: ScoreTable) -> bool:
    """Whether gold is best without gold labels, and expected_pk finds its copies next to it."""
    expected = {row.system: row.metrics["expected_pk"].value or 0.0 for row in table.systems}
    copies = max(expected[name] for name in ("near_miss", "under"))
    return copies < min(expected[name] for name in ("even", "random", "over")) and all(
        "gold" in table.best(metric)
        for metric, score in table.systems[0].metrics.items()
        if score.null is not None
    )
