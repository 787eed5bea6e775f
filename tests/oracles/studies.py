"""Studies over strengths and thresholds, literally: loops over documents, seeds and points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, product

import numpy as np
from scipy.stats import rankdata

from tests.oracles import reference_based, selection
from tests.oracles.reference_free import document_score

Masses = Sequence[int]
Curve = list[float]


def loss(embeddings, masses: Masses, metric: str) -> float:
    """Of a document; one without a boundary is neutral."""
    if len(masses) == 1:
        return 0.5
    raw = document_score(embeddings, masses, metric)
    return (1 - raw) / 2


def mean_curve(by_seed: Sequence[Curve]) -> Curve:
    """Mean over seeds at each strength."""
    return [sum(values) / len(values) for values in zip(*by_seed, strict=True)]


def quantile(values: Sequence[float], share: float) -> float:
    """Linear between order statistics."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def scaled(value: float, curve: Curve) -> float:
    """0 is the lowest of the curve, 1 the highest."""
    return (value - min(curve)) / (max(curve) - min(curve))


def spearman(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Pearson's correlation of average ranks."""
    a, b = rankdata(x) - (len(x) + 1) / 2, rankdata(y) - (len(y) + 1) / 2
    size = (a @ a) * (b @ b)
    return None if size == 0 else float(a @ b / np.sqrt(size))


def never_falls(curve: Curve) -> bool:
    return all(curve[j] >= max(curve[: j + 1]) - 1e-9 for j in range(len(curve)))


def first_worse(by_document: Sequence[Curve], alpha: float) -> int | None:
    """Exact swaps of documents between a strength and none, Holm over strengths."""
    n_strengths = len(by_document[0])
    found = []
    for j in range(1, n_strengths):
        gaps = [curve[j] - curve[0] for curve in by_document]
        observed = sum(gaps)
        sums = [
            sum(s * g for s, g in zip(signs, gaps, strict=True))
            for signs in product((1, -1), repeat=len(gaps))
        ]
        p = sum(abs(each) >= abs(observed) - 1e-12 for each in sums) / len(sums)
        found.append((p, j, observed))
    worst, corrected = 0.0, {}
    for rank, (p, j, _) in enumerate(sorted(found)):
        worst = max(worst, min(1.0, p * (len(found) - rank)))
        corrected[j] = worst
    for _, j, observed in found:
        if corrected[j] <= alpha and observed > 0:
            return j
    return None


def ranks(scores: Sequence[Sequence[float]], g: int) -> list[dict[int, float]]:
    """Of all boundaries g apart over the corpus: the share with a lower score."""
    taken = [selection.static(each, -1e9, g) for each in scores]
    every = [each[b - 1] for each, found in zip(scores, taken, strict=True) for b in found]
    return [
        {b: sum(other < each[b - 1] for other in every) / len(every) for b in found}
        for each, found in zip(scores, taken, strict=True)
    ]


def selected(ranked: Sequence[dict[int, float]], lengths: Sequence[int], tau: float):
    """Masses of every document at a threshold."""
    made = []
    for places, n in zip(ranked, lengths, strict=True):
        edges = [0, *sorted(b for b, share in places.items() if share >= tau), n]
        made.append([b - a for a, b in pairwise(edges)])
    return made


def mean_against(measure: Callable[[Masses, Masses], float], hypotheses, golds) -> float:
    """Macro over documents."""
    values = [float(measure(h, g)) for h, g in zip(hypotheses, golds, strict=True)]
    return sum(values) / len(values)


def bor(hypotheses, golds) -> float:
    """Pooled over documents."""
    return sum(len(h) - 1 for h in hypotheses) / sum(len(g) - 1 for g in golds)


MEASURES = {
    ("w_f1", "many_to_one"): reference_based.w_f1,
    ("w_f1", "one_to_one"): reference_based.w_f1_one_to_one,
    ("coverage", "many_to_one"): reference_based.coverage,
    ("purity", "one_to_one"): reference_based.purity,
}


def moved_boundaries(reference: Masses):
    """Every hypothesis that moves one boundary: which, how far, and soft, hard or across another.

    Ocampo Diaz and Ouyang (2022), Section 5. Between its neighbours a move is soft if both segments
    keep a Jaccard index above 1/2, hard if both fall below; or it crosses the next boundary only.
    """
    own = sorted(reference_based.boundaries(reference))
    n = sum(reference)
    edges = [0, *own, n]
    for i, old in enumerate(own, 1):
        for new in range(1, n):
            if new in own:
                continue
            hypothesis = np.diff([0, *sorted({*own} - {old} | {new}), n]).tolist()
            crossed = [b for b in own if b != old and min(old, new) < b < max(old, new)]
            if len(crossed) > 1:
                continue
            kept = [
                reference_based.jaccard(frozenset(range(a, b)), frozenset(range(c, d)))
                for (a, b), (c, d) in (
                    ((edges[i - 1], old), (edges[i - 1], new)),
                    ((old, edges[i + 1]), (new, edges[i + 1])),
                )
            ]
            kind = "crosses" if crossed else "between"
            if not crossed and min(kept) * 2 > 1:
                kind = "soft"
            elif not crossed and max(kept) * 2 < 1:
                kind = "hard"
            yield hypothesis, old, abs(new - old), kind


def misjudged(reference: Masses, similarity: Callable[[Masses, Masses], float]):
    """Kinds of error for which the reference has a tie, and those for which one is reversed."""
    tied, ahead = set(), set()
    for h1, old1, x, kind1 in moved_boundaries(reference):
        for h2, old2, y, kind2 in moved_boundaries(reference):
            errors = {
                "cross-boundary": kind2 == "crosses" and y == x,
                "constant cost": kind2 == "hard" and y == x,
                "vanishing": kind2 != "crosses" and old2 == old1 and y > x,
            }
            for error, is_one in errors.items():
                if kind1 == "soft" and is_one:
                    small, large = similarity(h1, reference), similarity(h2, reference)
                    tied |= {error} if small == large else set()
                    ahead |= {error} if small < large else set()
    return tied, ahead
