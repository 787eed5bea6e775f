"""``reffree perturb``: segmentations made worse by a known amount."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reffree.cli.options import reading_options

if TYPE_CHECKING:
    from reffree.perturbation.edits import Edits
    from reffree.segmentation import Convention


@click.command(name="perturb")
@click.argument("corpora", nargs=-1, required=True, metavar="CORPUS...")
@click.option(
    "--perturbation",
    "perturbations",
    multiple=True,
    required=True,
    metavar="KIND:STRENGTH",
    help="removal, insertion, replacement, transposition or mixture; a whole number counts "
    "boundaries (units for transposition), a share has a point: removal:2, insertion:0.3, "
    "transposition:1, mixture:0.3. May be repeated; a system is called by kind and strength.",
)
@click.option(
    "--source", default="gold", show_default=True, help="The system to perturb.", metavar="NAME"
)
@click.option(
    "-o", "--output", required=True, metavar="FILE", help="The corpus with the new systems; - too."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@reading_options
def command(
    corpora: tuple[str, ...],
    perturbations: tuple[str, ...],
    source: str,
    output: str,
    seed: int,
    input_format: str | None,
    text: str | None,
    convention: Convention | None,
) -> None:
    """Remove, insert and move boundaries of gold or of a system, and say what could not be done.

    CORPUS is read as in reffree score; FILE is written by its ending (.jsonl keeps everything).
    """
    from reffree.formats import load, save
    from reffree.perturbation.corpus import perturb
    from reffree.perturbation.kinds import parse_perturbation

    parsed = [parse_perturbation(each) for each in perturbations]
    corpus = load(*corpora, format=input_format, text=text, convention=convention)
    made = corpus
    lines = []
    for perturbation in parsed:
        system = perturb(corpus, perturbation, seed, source)
        ids = [document.id for document in corpus.documents]
        made = made.with_system(system.name, dict(zip(ids, system.segmentations, strict=True)))
        done = _listed(system.done, ("removed", "inserted", "moved"))
        undone = _listed(system.not_done, ("to remove", "to insert", "to move"))
        rest = f"; not possible: {undone}" if undone else ""
        lines.append(f"{system.name}: {done or 'nothing done'}{rest}")
    for note in (*corpus.notes, *save(made, output)):
        click.echo(f"reffree: note: {note}", err=True)
    for line in lines:
        click.echo(line, err=True)


def _listed(edits: Edits, words: tuple[str, str, str]) -> str:
    counts = (edits.removed, edits.inserted, edits.moved)
    return ", ".join(f"{n:,} {word}" for n, word in zip(counts, words, strict=True) if n)
