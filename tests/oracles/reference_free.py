"""Reference-free metrics of Ghinassi et al. (2024), section 3.2, written out literally.

Everything is float64 NumPy inside plain loops over segments and units. Nothing here is meant to be
fast: it is meant to be checked by eye against the equations.

``masses`` are the segment lengths in units; ``embeddings`` has one row per unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

ZERO_CENTROID = 1e-6
"""A centroid counts as zero up to this fraction of the mean norm of what it averages."""

IDENTICAL = 1e-13
"""Units nearer than this fraction of their norms are the same up to float64 rounding."""

EQUAL_CENTROIDS = 1e-6
"""Centroids nearer than this fraction of their units' distances are equal."""

SEGREFREE_ALL_ONE_UNIT = 10.0
"""SegReFree of a document whose segments all have one unit."""

DEFAULT_P = {"std": 2, "cos": 1, "pair": 1}


def as_units(embeddings: ArrayLike) -> Array:
    """The embeddings as a float64 matrix, one row per unit."""
    units = np.asarray(embeddings, dtype=np.float64)
    if units.ndim != 2 or len(units) == 0:
        raise ValueError(f"embeddings must be a non-empty matrix, got shape {units.shape}")
    return units


def split_segments(units: Array, masses: Sequence[int]) -> list[Array]:
    """Eq. 1: the units grouped into segments."""
    if any(mass < 1 for mass in masses):
        raise ValueError(f"masses must be positive, got {list(masses)}")
    if sum(masses) != len(units):
        raise ValueError(f"masses sum to {sum(masses)}, the document has {len(units)} units")
    segments = []
    start = 0
    for mass in masses:
        segments.append(units[start : start + mass])
        start += mass
    return segments


def mean(values: Sequence[float]) -> float:
    """Plain mean (eq. 4)."""
    return sum(values) / len(values)


def are_identical(units: Array) -> bool:
    """Whether all units agree up to rounding, so that they have no dispersion at all."""
    largest = max(float(np.linalg.norm(unit)) for unit in units)
    return all(distance(unit, units[0]) <= IDENTICAL * largest for unit in units)


def distance(x: Array, y: Array) -> float:
    """Euclidean distance."""
    return float(np.linalg.norm(x - y))


def cosine(x: Array, y: Array) -> float:
    """Cosine similarity; 0 if either vector is zero."""
    norm_x = float(np.linalg.norm(x))
    norm_y = float(np.linalg.norm(y))
    if norm_x == 0.0 or norm_y == 0.0:
        return 0.0
    return float(np.dot(x / norm_x, y / norm_y))


# ARP ------------------------------------------------------------------------------------------


def std_dispersion(x: Array) -> float:
    """Eq. 13-14 before squaring: norm of the per-dimension standard deviation (ddof 0)."""
    if are_identical(x):
        return 0.0
    return float(np.linalg.norm(np.std(x, axis=0)))


def have_one_direction(x: Array) -> bool:
    """Whether all units point the same way; a zero vector points nowhere."""
    norms = [float(np.linalg.norm(unit)) for unit in x]
    if min(norms) == 0.0:
        return False
    return are_identical(np.array([unit / norm for unit, norm in zip(x, norms, strict=True)]))


def cos_dispersion(x: Array) -> float:
    """Eq. 17-18 as a distance: 1 - mean cosine between the centroid and each unit."""
    if have_one_direction(x):
        return 0.0
    centroid = x.mean(axis=0)
    mean_norm = mean([float(np.linalg.norm(unit)) for unit in x])
    if float(np.linalg.norm(centroid)) <= ZERO_CENTROID * mean_norm:
        centroid = np.zeros_like(centroid)
    return max(0.0, 1.0 - mean([cosine(centroid, unit) for unit in x]))


def pair_dispersion(x: Array) -> float:
    """Eq. 19-20 as a distance: 1 - mean cosine over the pairs i < j."""
    if have_one_direction(x):
        return 0.0
    cosines = []
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            cosines.append(cosine(x[i], x[j]))
    return max(0.0, 1.0 - mean(cosines))


DISPERSIONS: dict[str, Callable[[Array], float]] = {
    "std": std_dispersion,
    "cos": cos_dispersion,
    "pair": pair_dispersion,
}


def relative_proximity(inter_to_p: float, intra_to_p: float) -> float:
    """Eq. 15; 0 where neither set has any dispersion."""
    if inter_to_p + intra_to_p == 0.0:
        return 0.0
    return (inter_to_p - intra_to_p) / (inter_to_p + intra_to_p)


def arp_segments(
    embeddings: ArrayLike, masses: Sequence[int], kind: str, p: float, rule: str = "released"
) -> list[float]:
    """Eq. 13-20: RP of every segment but the last, which has no successor."""
    dispersion = DISPERSIONS[kind]
    units = as_units(embeddings)
    segments = split_segments(units, masses)

    inters: list[float] = []
    intras: list[float | None] = []
    for i in range(len(segments) - 1):
        segment, successor = segments[i], segments[i + 1]
        if len(segment) == 1:
            inters.append(dispersion(np.concatenate([segment, successor[:1]])))
            intras.append(None)
            continue
        cut = min(2 * len(successor), len(segment))
        left = math.ceil(cut / 2)
        right = math.floor(cut / 2)
        inters.append(
            dispersion(np.concatenate([segment[len(segment) - left :], successor[:right]]))
        )
        intras.append(dispersion(segment[len(segment) - cut :]))

    if rule == "paper":  # eq. 16 as printed: what a one-unit segment scores
        if all(intra is None for intra in intras):
            default = mean([inter**p for inter in inters])
        else:
            default = mean([0.0 if intra is None else intra**p for intra in intras])
        return [
            default if intra is None else relative_proximity(inter**p, intra**p)
            for inter, intra in zip(inters, intras, strict=True)
        ]

    # Eq. 16: what a one-unit segment takes for its intra**p.
    known = [intra**p for intra in intras if intra is not None]
    if not known:
        known = [inter**p for inter in inters]

    scores = []
    for inter, intra in zip(inters, intras, strict=True):
        intra_to_p = mean(known) if intra is None else intra**p
        scores.append(relative_proximity(inter**p, intra_to_p))
    return scores


# Silhouette -----------------------------------------------------------------------------------


def silhouette_by_segment(embeddings: ArrayLike, masses: Sequence[int]) -> list[list[float]]:
    """Eq. 8-10: s of every unit, grouped by segment."""
    units = as_units(embeddings)
    segments = split_segments(units, masses)
    if len(segments) < 2:
        raise ValueError("silhouette needs at least two segments")

    scores: list[list[float]] = []
    for n, segment in enumerate(segments):
        neighbours = []
        if n > 0:
            neighbours.append(segments[n - 1])
        if n < len(segments) - 1:
            neighbours.append(segments[n + 1])

        segment_scores = []
        for i, unit in enumerate(segment):
            if len(segment) == 1:
                segment_scores.append(0.0)
                continue
            a = mean([distance(unit, other) for j, other in enumerate(segment) if j != i])
            b = min(mean([distance(unit, other) for other in near]) for near in neighbours)
            if max(a, b) == 0.0:
                segment_scores.append(0.0)
            else:
                segment_scores.append((b - a) / max(a, b))
        scores.append(segment_scores)
    return scores


def silhouette_units(embeddings: ArrayLike, masses: Sequence[int]) -> list[float]:
    """Eq. 10: s of every unit, in document order."""
    return [s for segment in silhouette_by_segment(embeddings, masses) for s in segment]


def silhouette_segments(embeddings: ArrayLike, masses: Sequence[int]) -> list[float]:
    """Eq. 11: mean s of every segment."""
    return [mean(segment) for segment in silhouette_by_segment(embeddings, masses)]


# SegReFree ------------------------------------------------------------------------------------


def corrected_dispersion(segment: Array) -> float:
    """Eq. 5: mean distance to the centroid over 1 - 1/sqrt(mass); mass > 1."""
    if are_identical(segment):
        return 0.0
    centroid = segment.mean(axis=0)
    raw = mean([distance(unit, centroid) for unit in segment])
    return raw / (1.0 - 1.0 / math.sqrt(len(segment)))


def segrefree_segments(
    embeddings: ArrayLike, masses: Sequence[int], rule: str = "released"
) -> list[float | None]:
    """Eq. 5-7: the largest finite R of every segment, None if it has none."""
    units = as_units(embeddings)
    segments = split_segments(units, masses)
    if all(mass == 1 for mass in masses):
        return [SEGREFREE_ALL_ONE_UNIT for _ in segments]

    centroids = [segment.mean(axis=0) for segment in segments]
    known = [corrected_dispersion(segment) for segment in segments if len(segment) > 1]
    of_one = mean(known) if rule == "released" else 0.0
    dispersions = [
        corrected_dispersion(segment) if len(segment) > 1 else of_one for segment in segments
    ]

    scores: list[float | None] = []
    for i in range(len(segments)):
        ratios = []
        for j in (i - 1, i + 1):
            if j < 0 or j >= len(segments):
                continue
            between = distance(centroids[i], centroids[j])
            squares = [distance(x, y) ** 2 for x in segments[i] for y in segments[j]]
            if between <= EQUAL_CENTROIDS * math.sqrt(mean(squares)):
                continue
            if are_identical(np.array([centroids[i], centroids[j]])):
                continue
            ratios.append((dispersions[i] + dispersions[j]) / between)
        scores.append(max(ratios) if ratios else None)
    if rule == "paper":  # a one-unit segment scores what the others do in the mean
        longer = [s for s, x in zip(scores, segments, strict=True) if len(x) > 1 and s is not None]
        default = mean(longer) if longer else None
        scores = [default if len(x) == 1 else s for s, x in zip(scores, segments, strict=True)]
    return scores


# Documents ------------------------------------------------------------------------------------


def pooled(values: Sequence[float | None], lengths: Sequence[int], pool: str) -> float | None:
    """Eq. 3: scores, None where there is none, by their mean, median or mean over units."""
    known = [(v, n) for v, n in zip(values, lengths, strict=True) if v is not None]
    if not known:
        return None
    if pool == "mean":
        return mean([v for v, _ in known])
    if pool == "length":
        return sum(v * n for v, n in known) / sum(n for _, n in known)
    ordered = sorted(v for v, _ in known)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def document_score(
    embeddings: ArrayLike,
    masses: Sequence[int],
    metric: str,
    *,
    p: float | None = None,
    average: str = "segments",
    rule: str = "released",
) -> float | None:
    """Eq. 4, inner mean: the raw score of a document, None where it is undefined."""
    if metric not in ("arp_std", "arp_cos", "arp_pair", "silhouette", "segrefree"):
        raise ValueError(f"unknown metric {metric!r}")
    if average not in ("segments", "units"):
        raise ValueError(f"unknown average {average!r}")
    if average == "units" and metric != "silhouette":
        raise ValueError("average='units' is an option of silhouette only")
    if p is not None and not metric.startswith("arp_"):
        raise ValueError("p is an option of the ARP metrics only")

    split_segments(as_units(embeddings), masses)
    if len(masses) == 1:
        return None
    if metric == "silhouette":
        if average == "units":
            return mean(silhouette_units(embeddings, masses))
        return mean(silhouette_segments(embeddings, masses))
    if metric == "segrefree":
        every = segrefree_segments(embeddings, masses, rule)
        finite = [score for score in every if score is not None]
        return mean(finite) if finite else None
    kind = metric.removeprefix("arp_")
    return mean(arp_segments(embeddings, masses, kind, DEFAULT_P[kind] if p is None else p, rule))
