"""``reffree perturb``: segmentations made worse by a known amount."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reffree.cli.derive import click_options
from reffree.cli.files import read_corpus, save_corpus
from reffree.cli.messages import tell
from reffree.cli.options import (
    READING_OPTIONS,
    PagedCommand,
    SectionOption,
    complete,
    corpora_argument,
)
from reffree.studies.keywords import SeedOption

if TYPE_CHECKING:
    from reffree.data.perturbation import EditCounts


@click.command(cls=PagedCommand, name="perturb")
@corpora_argument()
@click.option(
    "--perturbation",
    "perturbations",
    multiple=True,
    required=True,
    shell_complete=complete("perturbations"),
    metavar="KIND:STRENGTH",
    help="removal, insertion, replacement, transposition or mixture; a whole number counts "
    "boundaries (units for transposition), a share has a point: removal:2, insertion:0.3, "
    "transposition:1, mixture:0.3 (always a share). May be repeated; a system is called by "
    "kind and strength.",
)
@click.option(
    "--source", default="gold", show_default=True, help="The system to perturb.", metavar="NAME"
)
@READING_OPTIONS
@click_options([("seed", SeedOption, 0)])
@click.option(
    *("-o", "--output"),
    cls=SectionOption,
    section="Output",
    type=Path,
    required=True,
    metavar="FILE",
    help="The corpus with the new systems; - too.",
)
def command(perturbations: tuple[str, ...], **given: Any) -> None:  # noqa: ANN401  (of any option)
    """Remove, insert and move boundaries of gold or of a system, and say what could not be done.

    CORPUS is read as in reffree score; FILE is written by its ending (.jsonl keeps everything). How
    metrics notice ever stronger perturbations: reffree study perturb.
    """
    from reffree.data.perturbation import parse_perturbation, perturb
    from reffree.formats.saving import check_target
    from reffree.metrics.gold.agreement import with_central_gold

    parsed = [parse_perturbation(each) for each in perturbations]
    check_target(given["output"])
    corpus = read_corpus(given)
    source = with_central_gold(corpus)
    made = corpus
    lines = []
    for perturbation in parsed:
        system = perturb(source, perturbation, given["seed"] or 0, given["source"])
        ids = [document.id for document in corpus.documents]
        made = made.with_system(system.name, dict(zip(ids, system.segmentations, strict=True)))
        done = _list_edits(system.done, ("removed", "inserted", "moved"))
        undone = _list_edits(system.not_done, ("to remove", "to insert", "to move"))
        rest = f"; not possible: {undone}" if undone else ""
        lines.append(f"{system.name}: {done or 'nothing done'}{rest}")
    save_corpus(made, given["output"], source.notes)
    for line in lines:
        tell(line, err=True)


def _list_edits(edits: EditCounts, words: tuple[str, str, str]) -> str:
    counts = (edits.removed, edits.inserted, edits.moved)
    return ", ".join(f"{n:,} {word}" for n, word in zip(counts, words, strict=True) if n)
