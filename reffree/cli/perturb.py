"""``reffree perturb``: segmentations made worse by a known amount, and how metrics notice."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from reffree.cli.corpora import load_corpora
from reffree.cli.options import (
    check_encoding,
    encoding_options,
    progress,
    reading_options,
    vector_options,
)
from reffree.cli.output import Output
from reffree.encoders.options import Encoding
from reffree.report.score import OUTPUT_FORMATS

if TYPE_CHECKING:
    from reffree.perturbation.edits import Edits
    from reffree.scoring.engine import Unsegmented
    from reffree.segmentation import Convention

WITHOUT_STUDY = {"perturbations"}
EITHER_WAY = {"corpora", "is_study", "source", "seed", "output", "input_format", "text"}
EITHER_WAY |= {"convention"}


@click.command(name="perturb")
@click.argument("corpora", nargs=-1, required=True, metavar="CORPUS...")
@click.option(
    "--perturbation",
    "perturbations",
    multiple=True,
    metavar="KIND:STRENGTH",
    help="removal, insertion, replacement, transposition or mixture; a whole number counts "
    "boundaries (units for transposition), a share has a point: removal:2, insertion:0.3, "
    "transposition:1, mixture:0.3. May be repeated; a system is called by kind and strength.",
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
    metavar="KIND",
    help="With --study: what to do to boundaries; may be repeated.  [default: removal, "
    "transposition]",
)
@click.option(
    "--strengths",
    metavar="LIST",
    help="With --study: such as 1,2,4 (boundaries, or units for transposition) or 0.1,0.5 "
    "(shares).  [default: 1 to 9; shares for mixture]",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="With --study: draws of every strength.",
)
@click.option(
    "-m",
    "--metric",
    "metrics",
    multiple=True,
    help="With --study: metrics as in reffree score, with the same default; may be repeated.",
)
@click.option(
    "--unsegmented",
    type=click.Choice(["neutral", "skip", "worst"]),
    default="neutral",
    show_default=True,
    help="With --study: what a document without a boundary scores.",
)
@click.option(
    "--source", default="gold", show_default=True, help="The system to perturb.", metavar="NAME"
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="The corpus with the new systems, - too; with --study the result, if not to standard "
    "output.",
)
@click.option(
    "-f",
    "output_format",
    type=click.Choice(OUTPUT_FORMATS),
    help="With --study: format of the output.  [default: by the ending of -o FILE, else table]",
)
@vector_options
@reading_options
@encoding_options
def command(
    corpora: tuple[str, ...],
    perturbations: tuple[str, ...],
    is_study: bool,
    kinds: tuple[str, ...],
    strengths: str | None,
    seeds: int,
    metrics: tuple[str, ...],
    unsegmented: Unsegmented,
    source: str,
    output: str | None,
    output_format: str | None,
    memory: int | None,
    seed: int,
    short: bool,
    embeddings: Path | None,
    input_format: str | None,
    text: str | None,
    convention: Convention | None,
    **encoding: Unpack[Encoding],
) -> None:
    """Remove, insert and move boundaries of gold or of a system, and say what could not be done.

    CORPUS is read as in reffree score; FILE is written by its ending (.jsonl keeps everything).

    With --study every CORPUS is a corpus of its own, and the result says how each metric follows
    the strength of perturbations: Spearman's correlation over the curve, documents whose own loss
    never falls, and the first strength that is worse for certain. With -f csv the curves are
    written, raw and scaled.
    """
    _check_use(click.get_current_context(), is_study)
    if seed < 0:
        raise click.UsageError(f"--seed {seed} is negative: use 0 or more.")
    if not is_study:
        assert output is not None  # checked with the use
        return _perturb(
            corpora, perturbations, source, output, seed, input_format, text, convention
        )
    wanted = _strengths(strengths)
    if len(corpora) > 1 and embeddings:
        raise click.UsageError(f"--embeddings with {len(corpora)} corpora: name one CORPUS.")
    check_encoding(encoding, embeddings)
    files = [*corpora, *(str(each) for each in (text, embeddings) if each)]
    out = Output.of(output_format, None if output is None else Path(output), files)
    loaded = load_corpora(corpora, input_format, text, convention)

    from reffree.encoders.precomputed import from_file
    from reffree.report.study import render
    from reffree.study.perturb import KINDS, perturbation_study

    result = perturbation_study(
        loaded,
        kinds=kinds or KINDS,
        strengths=wanted,
        seeds=seeds,
        metrics=metrics or None,
        source=source,
        embeddings=None
        if embeddings is None
        else {name: from_file(corpus, embeddings) for name, corpus in loaded.items()},
        unsegmented=unsegmented,
        seed=seed,
        short_signature=short,
        memory=memory,
        progress=progress,
        **encoding,
    )
    out.write(render(result, out.format, color=out.color, width=out.width), result.notes)
    return None


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


def _strengths(text: str | None) -> list[int | float] | None:
    """Read numbers between commas, whole or with a point."""
    if text is None:
        return None
    try:
        return [int(part) if part.strip().isdecimal() else float(part) for part in text.split(",")]
    except ValueError:
        raise click.UsageError(
            f"--strengths {text}: expected numbers such as 1,2,4 or 0.1,0.5."
        ) from None


def _perturb(
    corpora: tuple[str, ...],
    perturbations: tuple[str, ...],
    source: str,
    output: str,
    seed: int,
    input_format: str | None,
    text: str | None,
    convention: Convention | None,
) -> None:
    """Write the corpus with its perturbed systems."""
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
