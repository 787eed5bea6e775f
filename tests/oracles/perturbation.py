"""Perturbations by trying everything: every outcome that the definitions allow."""

from __future__ import annotations

from itertools import combinations, product


def gaps(n_units):
    return set(range(1, n_units))


def removals(boundaries, k):
    """Every result of removing ``k`` boundaries, all of them if there are fewer."""
    boundaries = set(boundaries)
    k = min(k, len(boundaries))
    return [frozenset(boundaries - set(gone)) for gone in combinations(sorted(boundaries), k)]


def insertions(boundaries, n_units, k):
    """Every result of inserting ``k`` boundaries, filling every gap if there are fewer."""
    boundaries = set(boundaries)
    free = sorted(gaps(n_units) - boundaries)
    return [frozenset(boundaries | set(new)) for new in combinations(free, min(k, len(free)))]


def replacements(boundaries, n_units, k):
    """Every result of taking ``k`` boundaries away and putting ``k`` where there was none."""
    boundaries = set(boundaries)
    free = sorted(gaps(n_units) - boundaries)
    k = min(k, len(boundaries), len(free))
    return [
        frozenset((boundaries - set(gone)) | set(new))
        for gone in combinations(sorted(boundaries), k)
        for new in combinations(free, k)
    ]


def transpositions(boundaries, n_units, distance, moving=None):
    """Every way to move as many of ``moving`` as can move, as {boundary: new place}.

    Each goes left, goes right or stays; new places lie inside the document, differ from one
    another and from every boundary there was.
    """
    source = set(boundaries)
    moving = sorted(source if moving is None else moving)
    allowed = []
    for steps in product((-1, 0, 1), repeat=len(moving)):
        moves = {b: b + step * distance for b, step in zip(moving, steps, strict=True) if step}
        new = list(moves.values())
        if len(set(new)) == len(new) and set(new) <= gaps(n_units) - source:
            allowed.append(moves)
    most = max(map(len, allowed))
    return [moves for moves in allowed if len(moves) == most]
