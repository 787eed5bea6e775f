"""The perturbation study in tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reffree.errors import counted, listed
from reffree.scoring.engine import Unsegmented
from reffree.statistics.losses import Direction
from reffree.studies.result import Field
from reffree.studies.strength_curves.perturbation_grid import Ladder, Strength
from reffree.studies.strength_curves.strength_curve import ALPHA, Rising

SENTINEL = "n_segments"

CURVES = (
    Field("corpus", "corpus", "text"),
    Field("kind", "perturbation", "text"),
    Field("strength", "strength"),
    Field("metric", "metric", "text"),
    Field("value", "value"),
    Field("low", "low"),
    Field("high", "high"),
    Field("scaled", "scaled"),
    Field("scaled_low", "scaled low"),
    Field("scaled_high", "scaled high"),
)
MONOTONICITY = (
    Field("corpus", "corpus", "text"),
    Field("kind", "perturbation", "text"),
    Field("metric", "metric", "text"),
    Field("role", "kind of metric", "text"),
    Field("rho", "Spearman", interval="rho_ci"),
    Field("rho_ci", "95 %", "interval"),
    Field("rho_seeds", "single seeds"),
    Field("rho_documents", "single documents"),
    Field("monotone", "monotone documents", "share"),
    Field("documents", "of", "count"),
    Field("first", "worse from", "text"),
)
EDITS = (
    Field("corpus", "corpus", "text"),
    Field("kind", "perturbation", "text"),
    Field("strength", "strength"),
    Field("done", "edits done", "count"),
    Field("not_done", "not possible", "count"),
    Field("unsegmented", "documents without a boundary"),
)


@dataclass(frozen=True, slots=True)
class CurveOf:
    """One metric under one perturbation of one corpus."""

    corpus: str
    kind: str
    metric: str
    role: str  # reference-free, gold-based or sentinel
    direction: Direction
    strengths: tuple[Strength, ...]  # 0 first
    found: Rising

    @property
    def rises(self) -> bool:
        """Whether the interval leaves no doubt that loss and strength go together."""
        return self.found.ci is not None and self.found.ci[0] > 0

    @property
    def falls(self) -> bool:
        """Whether it leaves no doubt that they go opposite ways."""
        return self.found.ci is not None and self.found.ci[1] < 0

    @property
    def never_falls(self) -> bool:
        """Whether the mean curve is monotone, as far as it is defined."""
        mean = self.found.raw.mean
        return not (np.diff(mean[~np.isnan(mean)]) < 0).any()


def curve_rows(curve: CurveOf) -> Iterator[dict[str, Any]]:
    """One row per strength; a metric that is better when higher has its own value back."""
    raw, scaled = curve.found.raw, curve.found.scaled
    low, mean, high = raw.low, raw.mean, raw.high
    if curve.direction == "higher":
        low, mean, high = -high, -mean, -low
    for j, strength in enumerate(curve.strengths):
        yield {
            "corpus": curve.corpus,
            "kind": curve.kind,
            "strength": strength,
            "metric": curve.metric,
            "value": mean[j],
            "low": low[j],
            "high": high[j],
            "scaled": scaled.mean[j],
            "scaled_low": scaled.low[j],
            "scaled_high": scaled.high[j],
        }


def monotonicity_row(curve: CurveOf) -> dict[str, Any]:
    """One row of the shown table."""
    found = curve.found
    is_sentinel = curve.role == "sentinel"
    first = None if found.first is None or is_sentinel else f"{curve.strengths[found.first]:g}"
    return {
        "corpus": curve.corpus,
        "kind": curve.kind,
        "metric": curve.metric,
        "role": curve.role,
        "rho": found.rho,
        "rho_ci": found.ci,
        "rho_seeds": found.rho_seeds,
        "rho_documents": found.rho_documents,
        "monotone": found.monotone,
        "documents": found.documents,
        "first": first,
    }


def edit_rows(corpus: str, ladder: Ladder) -> Iterator[dict[str, Any]]:
    """What each strength of each kind did."""
    for kind, rungs in ladder.rungs.items():
        for rung in rungs:
            yield {
                "corpus": corpus,
                "kind": kind,
                "strength": rung.strength,
                "done": rung.done,
                "not_done": rung.not_done,
                "unsegmented": rung.unsegmented,
            }


def answer_of(curves: Sequence[CurveOf], source: str) -> tuple[str, ...]:
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


def _steady(curves: Sequence[CurveOf], role: str) -> str:
    """Say whose mean curve never falls, among the losses that correlate with strength."""
    asked = [curve for curve in curves if curve.role == role]
    shaky = {curve.metric for curve in asked if not (curve.rises and curve.never_falls)}
    steady = [name for name in dict.fromkeys(c.metric for c in asked) if name not in shaky]
    if not any(curve.rises for curve in asked):
        return ""
    return f"; only that of {listed(steady)} never falls" if steady else "; each falls somewhere"


def _outcome(curves: Sequence[CurveOf], n_corpora: int) -> str:
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


def _reference(kind: str, curves: Sequence[CurveOf]) -> list[str]:
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


def _sentinel(curves: Sequence[CurveOf], source: str) -> list[str]:
    """Where the number of segments follows strength, curves prove less."""
    changing: list[str] = []
    keeping: list[str] = []
    for kind in dict.fromkeys(curve.kind for curve in curves):
        means = [c.found.raw.mean for c in curves if c.kind == kind and c.metric == SENTINEL]
        (changing if any(np.ptp(mean) > 0 for mean in means) else keeping).append(kind)
    if not changing:
        return []
    verb = "changes" if len(changing) == 1 else "change"
    keep = f"; {listed(keeping)} did not" if keeping else ""
    return [
        f"{listed(changing).capitalize()} {verb} the number of segments of {source}, so a metric "
        f"that only counts them would follow as well{keep}."
    ]


def notes_of(
    curves: Sequence[CurveOf], ladders: Mapping[str, Ladder], unsegmented: Unsegmented
) -> Iterator[str]:
    """What could not be done, and where curves stand on shifting ground."""
    for name, ladder in ladders.items():
        for kind, rungs in ladder.rungs.items():
            undone = sum(rung.not_done for rung in rungs)
            asked = undone + sum(rung.done for rung in rungs)
            bare = rungs[-1].unsegmented
            parts = []
            if undone:
                parts.append(
                    f"{undone:,} of {asked:,} edits were not possible in documents with too few "
                    f"boundaries or too little room ({rungs[-1].not_done:,} of them at strength "
                    f"{rungs[-1].strength:g})"
                )
            if bare:
                parts.append(
                    f"at strength {rungs[-1].strength:g}, {bare:.1f} of "
                    f"{counted(len(ladder.corpus), 'document')} had no boundary left and "
                    f"got what the policy gives ({unsegmented})"
                )
            if parts:
                yield f"{name}, {kind}: {'; '.join(parts)}."
    shifting: dict[tuple[str, str, int, int], list[str]] = {}
    for curve in curves:
        found = curve.found
        if found.fewest < found.most:
            key = (curve.corpus, curve.kind, found.fewest, found.most)
            shifting.setdefault(key, []).append(curve.metric)
    for (corpus, kind, fewest, most), names in shifting.items():
        yield (
            f"{corpus}, {kind}: the points of {listed(names)} are means over {fewest} to {most} "
            "documents, whichever have a score."
        )
    hopeless = [c.corpus for c in curves if c.found.out_of_reach and c.role != "sentinel"]
    for corpus in dict.fromkeys(hopeless):
        yield (
            f"{corpus}: with so few documents no strength can be told from none at alpha {ALPHA:g} "
            "for some or all metrics."
        )


def reading_of(curves: Sequence[CurveOf]) -> dict[str, str]:
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


GOLD_READING: dict[Direction, str] = {
    "lower": "Against gold; lower is better.",
    "higher": "Against gold; higher is better, so its loss is the negative value.",
    "toward_1": "Against gold; best at 1, and shown as the distance from it.",
}
