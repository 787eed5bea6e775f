"""``reffree perturb``: segmentations made worse by a known amount, and how metrics notice."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reffree.cli.completion import PERTURBATIONS, names
from reffree.cli.help_page import PagedCommand
from reffree.cli.inputs import read_corpus
from reffree.cli.messages import tell, tell_notes
from reffree.cli.options import (
    format_option,
    metric_option,
    scored_corpus_options,
    unsegmented_option,
    whole,
)
from reffree.cli.studies import run_study
from reffree.util.bounds import Repetitions

if TYPE_CHECKING:
    from reffree.data.perturbation import EditCounts

WITHOUT_STUDY = {"perturbations"}
EITHER_WAY = {"corpora", "is_study", "source", "seed", "output", "input_format", "text"}


def _strengths(
    ctx: click.Context, param: click.Parameter, text: str | None
) -> list[int | float] | None:
    """Read numbers between commas, whole or with a point."""
    if text is None:
        return None
    try:
        return [int(part) if part.strip().isdecimal() else float(part) for part in text.split(",")]
    except ValueError:
        raise click.UsageError(
            f"--strengths {text}: expected numbers such as 1,2,4 or 0.1,0.5."
        ) from None


@click.command(cls=PagedCommand, name="perturb")
@click.option(
    "--perturbation",
    "perturbations",
    multiple=True,
    shell_complete=names(PERTURBATIONS),
    metavar="KIND:STRENGTH",
    help="removal, insertion, replacement, transposition or mixture; a whole number counts "
    "boundaries (units for transposition), a share has a point: removal:2, insertion:0.3, "
    "transposition:1, mixture:0.3 (always a share). May be repeated; a system is called by "
    "kind and strength.",
)
@click.option(
    "--study",
    "is_study",
    is_flag=True,
    help="Score ever stronger perturbations instead: curves, and how monotone they are.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    shell_complete=names(PERTURBATIONS),
    metavar="KIND",
    help="With --study; transposition moves all by so many units, transposition:k so many by one, "
    "transposition:distance=2,k by two; may be repeated.  [default: removal, transposition]",
)
@click.option(
    "--strengths",
    callback=_strengths,
    metavar="LIST",
    help="With --study: such as 1,2,4 or, of shares, 0.1,0.5.  [default: at most 1 to 9, as "
    "many as fit]",
)
@click.option(
    "--seeds",
    type=whole(Repetitions),
    default=20,
    show_default=True,
    help="With --study: draws of every strength.",
)
@metric_option("With --study: as in reffree score; may be repeated.")
@unsegmented_option("With --study, as in reffree score.")
@click.option(
    "--source", default="gold", show_default=True, help="The system to perturb.", metavar="NAME"
)
@click.option(
    "-o",
    "--output",
    type=Path,
    metavar="FILE",
    help="The corpus with the new systems, - too; with --study the result, if not to standard "
    "output.",
)
@format_option(what="With --study")
@scored_corpus_options
def command(
    perturbations: tuple[str, ...],
    is_study: bool,
    **given: Any,  # noqa: ANN401  (values of any option)
) -> None:
    """Remove, insert and move boundaries of gold or of a system, and say what could not be done.

    CORPUS is read as in reffree score; FILE is written by its ending (.jsonl keeps everything).

    With --study every CORPUS is one of its own, and the result says how each metric follows the
    strength: Spearman's correlation over the curve, documents whose own loss never falls, and the
    first strength that is worse for certain. -f csv has the curves, raw and scaled.
    """
    _check_use(click.get_current_context(), is_study)
    if is_study:
        run_study("perturb", given)
    else:
        _perturb(perturbations, given)


def _check_use(context: click.Context, is_study: bool) -> None:
    """Refuse options of the other use, and the lack of those that this one needs."""
    given = {
        parameter.name: parameter.opts[0]
        for parameter in context.command.params
        if parameter.name
        and context.get_parameter_source(parameter.name) is click.core.ParameterSource.COMMANDLINE
    }
    if is_study:
        for name in given.keys() & WITHOUT_STUDY:
            raise click.UsageError(f"{given[name]} with --study: use --kind and --strengths.")
        return
    for name, option in given.items():
        if name not in EITHER_WAY | WITHOUT_STUDY:
            raise click.UsageError(f"{option} needs --study.")
    for name, option in (("perturbations", "--perturbation"), ("output", "-o / --output")):
        if name not in given:
            raise click.UsageError(f"Missing option '{option}', or --study.")


def _perturb(perturbations: tuple[str, ...], given: Any) -> None:  # noqa: ANN401
    """Write the corpus with its perturbed systems."""
    from reffree.data.perturbation import parse_perturbation, perturb
    from reffree.formats import save
    from reffree.formats.saving import check_target
    from reffree.metrics.gold.agreement import with_central_gold

    parsed = [parse_perturbation(each) for each in perturbations]
    check_target(given["output"])
    corpus = read_corpus(given)
    source = with_central_gold(corpus)
    made = corpus
    lines = []
    for perturbation in parsed:
        system = perturb(source, perturbation, given["seed"], given["source"])
        ids = [document.id for document in corpus.documents]
        made = made.with_system(system.name, dict(zip(ids, system.segmentations, strict=True)))
        done = _listed(system.done, ("removed", "inserted", "moved"))
        undone = _listed(system.not_done, ("to remove", "to insert", "to move"))
        rest = f"; not possible: {undone}" if undone else ""
        lines.append(f"{system.name}: {done or 'nothing done'}{rest}")
    tell_notes((*source.notes, *save(made, given["output"])))
    for line in lines:
        tell(line, err=True)


def _listed(edits: EditCounts, words: tuple[str, str, str]) -> str:
    counts = (edits.removed, edits.inserted, edits.moved)
    return ", ".join(f"{n:,} {word}" for n, word in zip(counts, words, strict=True) if n)
