"""The perturbation study in tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from reffree.evaluate.result import Table, columns, estimate
from reffree.metrics.free.result import Unsegmented
from reffree.statistics.losses import Direction
from reffree.studies.strength_curves.perturbation_grid import PerturbationGrid
from reffree.studies.strength_curves.strength_curve import ALPHA, StrengthCurve
from reffree.util.errors import counted, listed

SENTINEL = "n_segments"

GOLD_READING: dict[Direction, str] = {
    "lower": "Against gold; lower is better.",
    "higher": "Against gold; higher is better, so its loss is the negative value.",
    "toward_1": "Against gold; best at 1, and shown as the distance from it.",
}

MONOTONICITY = (
    *columns("text", "corpus", kind="perturbation", metric="metric", role="kind of metric"),
    *estimate("rho", "Spearman"),
    *columns("number", rho_seeds="single seeds", rho_documents="single documents"),
    *columns("share", monotone="monotone documents"),
    *columns("count", documents="of"),
    *columns("text", first="worse from"),
)
CURVES = (
    *columns("text", "corpus", kind="perturbation"),
    *columns("number", "strength"),
    *columns("text", "metric"),
    *columns("number", "value", "low", "high", "scaled"),
    *columns("number", scaled_low="scaled low", scaled_high="scaled high"),
)
EDITS = (
    *columns("text", "corpus", kind="perturbation"),
    *columns("number", "strength"),
    *columns("count", done="edits done", not_done="not possible"),
    *columns("number", unsegmented="documents without a boundary"),
)


def strength_tables(
    curves: Sequence[StrengthCurve], grids: Mapping[str, PerturbationGrid], source: str
) -> Iterator[Table]:
    """How monotone curves are, to be read; then curves and edits, for charts."""
    title = f"Loss against strength of perturbation of {source}"
    rows = [_monotonicity_row(curve) for curve in curves]
    yield Table.of("monotonicity", title, MONOTONICITY, rows)
    title = "Metrics against strength, raw and scaled"
    rows = [row for curve in curves for row in _curve_rows(curve)]
    yield Table.of("curves", title, CURVES, rows, shown=False)
    rows = [
        {"corpus": name, "kind": kind, **asdict(step)}
        for name, grid in grids.items()
        for kind, steps in grid.steps.items()
        for step in steps
    ]
    yield Table.of("edits", "What each strength did", EDITS, rows, shown=False)


def _monotonicity_row(curve: StrengthCurve) -> dict[str, Any]:
    is_told = curve.first is not None and curve.role != "sentinel"
    return {**asdict(curve), "first": f"{curve.first:g}" if is_told else None}


def _curve_rows(curve: StrengthCurve) -> Iterator[dict[str, Any]]:
    """One row per strength; a metric that is better when higher has its own value back."""
    low, value, high = curve.raw.low, curve.raw.mean, curve.raw.high
    if curve.direction == "higher":
        low, value, high = -high, -value, -low
    for j, strength in enumerate(curve.strengths):
        yield {
            "corpus": curve.corpus,
            "kind": curve.kind,
            "strength": strength,
            "metric": curve.metric,
            "value": value[j],
            "low": low[j],
            "high": high[j],
            "scaled": curve.scaled.mean[j],
            "scaled_low": curve.scaled.low[j],
            "scaled_high": curve.scaled.high[j],
        }


def strength_answer(curves: Sequence[StrengthCurve], source: str) -> tuple[str, ...]:
    """One sentence per kind of perturbation, then what keeps a reader from believing them."""
    sentences = []
    n_corpora = len({curve.corpus for curve in curves})
    roles = {curve.role for curve in curves}
    role = "reference-free" if "reference-free" in roles else "gold-based"
    for kind in dict.fromkeys(curve.kind for curve in curves):
        of_kind = [curve for curve in curves if curve.kind == kind]
        by_outcome: dict[str, list[str]] = {}
        for metric in dict.fromkeys(c.metric for c in of_kind if c.role == role):
            own = [curve for curve in of_kind if curve.metric == metric]
            by_outcome.setdefault(_outcome(own, n_corpora), []).append(metric)
        said = [f"the loss of {listed(names)} {words}" for words, names in by_outcome.items()]
        if said:
            sentences.append(f"{kind.capitalize()}: {'; '.join(said)}{_steady(of_kind, role)}.")
        sentences += _reference(kind, of_kind)
    return (*sentences, *_sentinel(curves, source))


def _steady(curves: Sequence[StrengthCurve], role: str) -> str:
    """Say whose mean curve never falls, among the losses that correlate with strength."""
    asked = [curve for curve in curves if curve.role == role]
    shaky = {curve.metric for curve in asked if not (curve.rises and curve.never_falls)}
    steady = [name for name in dict.fromkeys(c.metric for c in asked) if name not in shaky]
    if not any(curve.rises for curve in asked):
        return ""
    return f"; only that of {listed(steady)} never falls" if steady else "; each falls somewhere"


def _outcome(curves: Sequence[StrengthCurve], n_corpora: int) -> str:
    """Say where one metric's loss goes with strength, where against it, and where neither."""
    rises = [curve.corpus for curve in curves if curve.rises]
    if len(rises) == n_corpora:
        where = " in every corpus" if n_corpora > 1 else ""
        return f"goes up with strength{where} (95 % interval of Spearman's correlation above 0)"
    falls = [curve.corpus for curve in curves if curve.falls]
    unclear = [curve.corpus for curve in curves if not (curve.falls or curve.rises)]
    words = []
    for verb, found in (
        ("goes up with strength", rises),
        ("goes down", falls),
        ("neither goes up nor down for certain", unclear),
    ):
        if found:
            words.append(verb + (f" in {listed(found)}" if n_corpora > 1 else ""))
    return listed(words)


def _reference(kind: str, curves: Sequence[StrengthCurve]) -> list[str]:
    """Where no gold-based metric rises, a greater strength was not more damage."""
    said = []
    for corpus in dict.fromkeys(curve.corpus for curve in curves):
        golds = [c for c in curves if c.corpus == corpus and c.role == "gold-based"]
        if golds and not any(curve.rises for curve in golds):
            names = listed(curve.metric for curve in golds)
            said.append(
                f"In {corpus} {names} cannot be said to get worse with {kind} either: there, "
                "strength does not measure damage (the notes count the edits that were not "
                "possible)."
            )
    return said


def _sentinel(curves: Sequence[StrengthCurve], source: str) -> list[str]:
    """Where the number of segments follows strength, curves prove less."""
    changing: list[str] = []
    keeping: list[str] = []
    for kind in dict.fromkeys(curve.kind for curve in curves):
        means = [c.raw.mean for c in curves if c.kind == kind and c.metric == SENTINEL]
        (changing if any(np.ptp(mean) > 0 for mean in means) else keeping).append(kind)
    if not changing:
        return []
    verb = "changes" if len(changing) == 1 else "change"
    keep = f"; {listed(keeping)} did not" if keeping else ""
    return [
        f"{listed(changing).capitalize()} {verb} the number of segments of {source}, so a metric "
        f"that only counts them would follow as well{keep}."
    ]


def strength_notes(
    curves: Sequence[StrengthCurve], grids: Mapping[str, PerturbationGrid], unsegmented: Unsegmented
) -> Iterator[str]:
    """What could not be done, and where curves stand on shifting ground."""
    for name, grid in grids.items():
        for kind, steps in grid.steps.items():
            undone = sum(step.not_done for step in steps)
            asked = undone + sum(step.done for step in steps)
            last = steps[-1]
            parts = []
            if undone:
                parts.append(
                    f"{undone:,} of {asked:,} edits were not possible in documents with too few "
                    f"boundaries or too little room ({last.not_done:,} of them at strength "
                    f"{last.strength:g})"
                )
            if last.unsegmented:
                mean = f"{last.unsegmented:.1f}".removesuffix(".0")  # over seeds
                parts.append(
                    f"at strength {last.strength:g}, {mean} of "
                    f"{counted(len(grid.corpus), 'document')} had no boundary left and "
                    f"got what the policy gives ({unsegmented})"
                )
            if parts:
                yield f"{name}, {kind}: {'; '.join(parts)}."
    shifting: dict[tuple[str, str, int, int], list[str]] = {}
    for curve in curves:
        if curve.fewest < curve.most:
            key = (curve.corpus, curve.kind, curve.fewest, curve.most)
            shifting.setdefault(key, []).append(curve.metric)
    for (corpus, kind, fewest, most), names in shifting.items():
        yield (
            f"{corpus}, {kind}: the points of {listed(names)} are means over {fewest} to {most} "
            "documents, whichever have a score."
        )
    hopeless = [c.corpus for c in curves if c.out_of_reach and c.role != "sentinel"]
    for corpus in dict.fromkeys(hopeless):
        yield (
            f"{corpus}: with so few documents no strength can be told from none at alpha {ALPHA:g} "
            "for some or all metrics."
        )


def strength_reading(curves: Sequence[StrengthCurve]) -> dict[str, str]:
    """How to read columns and metrics."""
    told = {
        "rho": "Spearman's correlation of the mean curve over seeds with strength, 0 included; 1 "
        "is a loss that rises at every step; the interval is over resampled documents.",
        "rho_seeds": "The mean of the same correlation over the curves of single seeds.",
        "rho_documents": "The mean of the same correlation over the curves of single documents, "
        "each the mean over seeds.",
        "monotone": "Documents whose own curve rises and never falls, of those whose curve is not "
        "constant and has three losses or more.",
        "first": f"The smallest strength at which losses exceed the unperturbed ones: paired "
        f"permutation test over documents, Holm over strengths, p at most {ALPHA:g}.",
        "low": "Bands hold the middle 95 % of the seeds; of fewer than 40 that is nearly all.",
        "scaled": "The loss mapped so that the mean curve goes from 0 (best) to 1 (worst).",
        SENTINEL: "Segments per document: no metric, but what some perturbations change as well.",
    }
    for curve in curves:
        if curve.role == "reference-free":
            told.setdefault(curve.metric, "A loss, lower is better.")
        elif curve.role == "gold-based":
            told.setdefault(curve.metric, GOLD_READING[curve.direction])
    return told
