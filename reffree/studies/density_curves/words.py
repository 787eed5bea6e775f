"""The density study in sentences: its answer, its notes, how to read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from reffree.errors import listed
from reffree.scoring.engine import Unsegmented
from reffree.segmenters.gap_scores import CHANCE
from reffree.studies.density_curves.points import LIMITS, W_F1, Matching
from reffree.studies.density_curves.tables import Mapped, matched_pair


def answer_of(maps: Sequence[Mapped], matchings: Sequence[Matching]) -> tuple[str, ...]:
    """What density does, what methods do at equal density, where losses would stop."""
    measure = W_F1[matchings[0]]
    sentences = []
    for mapped in maps:
        where = f"{mapped.name}: " if len(maps) > 1 else ""
        methods = mapped.plane.methods
        spans = [f"{mapped.spread(name, measure):.2f} ({name})" for name in methods]
        sentence = f"{where}Sweeping the threshold moves W-F1 by {listed(spans)}"
        gaps = [
            abs(mapped.value(measure, pair[1]) - mapped.value(measure, pair[2]))
            for pair in (matched_pair(mapped, *names) for names in combinations(methods, 2))
            if pair is not None
        ]
        if gaps:
            sentence += f"; at gold's density the methods differ by at most {max(gaps):.2f}"
        sentences.append(f"{sentence}.")
        peaks = []
        for name in methods:
            best = mapped.best(name, measure)
            value, bor = mapped.value(measure, best), mapped.value("bor", best)
            at_edge = ", its densest point" if best == mapped.plane.sweep(name)[0] else ""
            peaks.append(f"{value:.2f} at BOR {bor:.2f} ({name}{at_edge})")
        sentences.append(f"{where}W-F1 is highest at {listed(peaks)}.")
        sentences += [f"{where}{each}" for each in _beyond_chance(mapped, measure)]
    return tuple(sentences)


def _beyond_chance(mapped: Mapped, measure: str) -> list[str]:
    """Which methods rank gaps better than random scores do, at gold's density."""
    if CHANCE not in mapped.plane.methods:
        return []
    better: list[str] = []
    unclear: list[str] = []
    for name in mapped.plane.methods:
        pair = None if name == CHANCE else matched_pair(mapped, name, CHANCE)
        if pair is not None:
            interval = mapped.measured.interval(measure, pair[1], pair[2])
            (better if interval and interval[0] > 0 else unclear).append(name)
    said = []
    if better:
        said.append(f"W-F1 puts {listed(better)} above random scores (95 % interval)")
    if unclear:
        said.append(f"W-F1 cannot tell {listed(unclear)} from random scores, or not for the better")
    return [f"At gold's density {' and '.join(said)}."] if said else []


def notes_of(mapped: Mapped, unsegmented: Unsegmented) -> Iterator[str]:
    """Where densities could not be had, and where reference-free losses are of no boundary."""
    plane = mapped.plane
    for point in plane.points:
        if point.kind == "matched" and point.n_boundaries != point.target:
            yield (
                f"{mapped.name}: {point.name} has {point.n_boundaries:,} boundaries where it was "
                f"matched to {point.target:,}; no threshold comes nearer."
            )
    hypotheses = list(plane.corpus.hypotheses.values())
    bare = []
    for name in plane.methods:
        last = plane.sweep(name)[-1]
        n_bare = sum(len(each) == 1 for each in hypotheses[last])
        if n_bare:
            bare.append(f"{name} {n_bare}")
    if bare and mapped.metrics:
        yield (
            f"{mapped.name}: documents without a boundary ({unsegmented}) at the highest "
            f"threshold: {listed(bare)} of {len(plane.corpus)}."
        )


def reading_of(min_gap: int, metrics: Sequence[str]) -> dict[str, str]:
    """How to read columns and measures."""
    return {
        "bor": "Boundaries per gold boundary over the corpus: 1 is gold's density.",
        "conservative": f"Thresholds with BOR below {LIMITS.sparse_bor:g}: too few boundaries.",
        "balanced": f"Thresholds with BOR from {LIMITS.sparse_bor:g} to {LIMITS.dense_bor:g}.",
        "aggressive": f"Thresholds with BOR above {LIMITS.dense_bor:g}: too many boundaries.",
        "threshold": "On scores from 0 to 1: a trained scorer's probabilities, otherwise the "
        f"share of lower scores among all boundaries that can be {min_gap} units apart.",
        "best": "The highest W-F1 of the sweep: chosen on the same gold, so it flatters.",
        "span": "Highest minus lowest W-F1 over the sweep: what density alone can do.",
        "own": "A method as reffree segment runs it, a system as given; random is given as "
        "many boundaries as gold has.",
        "at": "own: each at its own density; gold's, or a system's: thresholds with that many "
        "boundaries, so that only their places differ.",
        "w_f1": "F of boundaries at most 1 unit from one of the other side; with many_to_one one "
        "boundary may serve several.",
        "coverage": "Share of units in the predicted segment that holds most of their gold one.",
        "purity": "Share of units in the gold segment that holds most of their predicted one.",
        "rho": "Spearman's correlation along the sweep of a loss with 1 − W-F1: 1 is a loss that "
        "would choose as gold does.",
        **{name: "On the same sweep; a reference-free loss is best when low." for name in metrics},
    }
