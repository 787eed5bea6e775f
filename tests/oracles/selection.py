"""Boundary selection (Coen, "When F1 Fails", §5.1 and Appendix F) and greedy search, literally.

A boundary ``b`` has ``b`` units before it and the score ``scores[b - 1]``. Everything is a plain
loop over sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

EQUAL = 1e-9
"""Losses this near to each other, relative to the larger of them and 1, are equal."""


def suppressed(scores: Sequence[float], candidates: set[int], k: int, g: int) -> list[int]:
    """Greedy non-maximum suppression: highest score first, none nearer than g to an accepted."""
    accepted: list[int] = []
    for b in sorted(candidates, key=lambda b: (-scores[b - 1], b)):
        if len(accepted) < k and all(abs(b - other) >= g for other in accepted):
            accepted.append(b)
    return sorted(accepted)


def static(
    scores: Sequence[float], tau: float, g: int, allowed: Sequence[bool] | None = None
) -> list[int]:
    """§5.1, static boundary selection rule; ``allowed`` says which gaps are candidates at all."""
    candidates = {b for b in range(1, len(scores) + 1) if scores[b - 1] >= tau}
    if allowed is not None:
        candidates = {b for b in candidates if allowed[b - 1]}
    return suppressed(scores, candidates, len(scores), g)


def adaptive(
    documents: Sequence[Sequence[float]],
    rho: float,
    g: int,
    window: int,
    eta: float,
    tau: float,
    lifetime: int,
    least: float = float("-inf"),
    allowed: Sequence[Sequence[bool]] | None = None,
) -> tuple[list[list[int]], list[float]]:
    """Appendix F, Algorithm 1, over documents one after the other: boundaries and thresholds.

    A position counts once among the processed candidates, at the step it becomes available, and is
    active at ``lifetime`` steps. One that scores below ``least`` is processed, but is never a
    boundary; one that is not ``allowed`` is not processed at all.
    """
    found, thresholds = [], [tau]
    committed: list[int] = []  # S(t) - S(t - 1) at every step t so far
    for d, scores in enumerate(documents):
        places = [b for b in range(1, len(scores) + 1) if allowed is None or allowed[d][b - 1]]
        boundaries: set[int] = set()
        evidence: dict[int, float] = {}
        for t in range(1, len(places) + 1):
            evidence[t] = 0.0
            new = 0
            for i in range(max(1, t - lifetime + 1), t + 1):
                place = places[i - 1]
                evidence[i] += scores[place - 1]
                is_apart = all(abs(place - b) >= g for b in boundaries)
                is_high = scores[place - 1] >= least
                if evidence[i] >= tau and is_apart and is_high:
                    boundaries.add(place)
                    new += 1
            committed.append(new)
            recent = committed[-window:]
            tau = tau + eta * (sum(recent) / len(recent) - rho)
            thresholds.append(tau)
        found.append(sorted(boundaries))
    return found, thresholds


def is_lower(loss: float, than: float) -> bool:
    """Whether a loss is lower by more than rounding."""
    if than == float("inf"):
        return loss < than
    return loss < than - EQUAL * max(1.0, abs(than))


def lowest(trials: list[frozenset[int]], loss: Callable[[frozenset[int]], float]) -> frozenset[int]:
    """The first of the trials that none is lower than."""
    best = min(loss(trial) for trial in trials)
    return next(trial for trial in trials if not is_lower(best, loss(trial)))


def greedy(
    n_units: int, k: int | None, climb: bool, loss: Callable[[frozenset[int]], float]
) -> frozenset[int]:
    """Best addition by best addition, then best change by best change."""
    gaps = range(1, n_units)
    current: frozenset[int] = frozenset()
    while len(current) < (n_units - 1 if k is None else min(k, n_units - 1)):
        best = lowest([current | {b} for b in gaps if b not in current], loss)
        if k is None and not is_lower(loss(best), loss(current)):
            break
        current = best
    while climb:
        trials = []
        for b in sorted(current):
            below = max([0, *(other for other in current if other < b)])
            above = min([n_units, *(other for other in current if other > b)])
            trials += [current - {b} | {new} for new in range(below + 1, above) if new != b]
        if k is None:
            trials += [current | {b} for b in gaps if b not in current]
            trials += [current - {b} for b in sorted(current)]
        if not trials:
            break
        best = lowest(trials, loss)
        if not is_lower(loss(best), loss(current)):
            break
        current = best
    return current
