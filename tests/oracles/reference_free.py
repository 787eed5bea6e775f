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

ZERO_COSINE_DISPERSIONS = 1e-12
"""arp_cos, arp_pair: inter + intra up to this gives RP = 0."""

ZERO_VARIANCES = 1e-12
"""arp_std: inter + intra variance up to this fraction of the document's gives RP = 0."""

ZERO_DISTANCE = 1e-6
"""Distances up to this fraction of the document's standard deviation count as 0."""

ROUNDING_FLOOR = 1e-12
"""The document's variance is taken as at least this fraction of its mean squared norm."""

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


def total_variance(units: Array) -> float:
    """Mean squared distance of the document's units to their mean."""
    centroid = units.mean(axis=0)
    return mean([float(np.linalg.norm(unit - centroid)) ** 2 for unit in units])


def variance_scale(units: Array) -> float:
    """The total variance, kept above rounding noise when all units are equal.

    The mean of equal numbers is not always that number (three times 0.1), so a document of equal
    units has a tiny variance, against which no threshold could be relative.
    """
    mean_squared_norm = mean([float(np.linalg.norm(unit)) ** 2 for unit in units])
    return max(total_variance(units), ROUNDING_FLOOR * mean_squared_norm)


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
    return float(np.linalg.norm(np.std(x, axis=0)))


def cos_dispersion(x: Array) -> float:
    """Eq. 17-18 as a distance: 1 - mean cosine between the centroid and each unit."""
    centroid = x.mean(axis=0)
    mean_norm = mean([float(np.linalg.norm(unit)) for unit in x])
    if float(np.linalg.norm(centroid)) <= ZERO_CENTROID * mean_norm:
        centroid = np.zeros_like(centroid)
    return max(0.0, 1.0 - mean([cosine(centroid, unit) for unit in x]))


def pair_dispersion(x: Array) -> float:
    """Eq. 19-20 as a distance: 1 - mean cosine over the pairs i < j."""
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


def relative_proximity(inter: float, intra_to_p: float, kind: str, p: float, scale: float) -> float:
    """Eq. 15 on inter and intra**p; 0 where both dispersions are practically 0.

    ``scale`` is the variance of the whole document (used by kind "std" only).
    """
    intra = float(intra_to_p ** (1.0 / p))
    if kind == "std":
        if inter**2 + intra**2 <= ZERO_VARIANCES * scale:
            return 0.0
    elif inter + intra <= ZERO_COSINE_DISPERSIONS:
        return 0.0
    inter_to_p = float(inter**p)
    return (inter_to_p - intra_to_p) / (inter_to_p + intra_to_p)


def arp_segments(embeddings: ArrayLike, masses: Sequence[int], kind: str, p: float) -> list[float]:
    """Eq. 13-20: RP of every segment but the last, which has no successor."""
    dispersion = DISPERSIONS[kind]
    units = as_units(embeddings)
    segments = split_segments(units, masses)
    scale = variance_scale(units)

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

    # Eq. 16: what a one-unit segment takes for its intra**p.
    known = [intra**p for intra in intras if intra is not None]
    if not known:
        known = [inter**p for inter in inters]

    scores = []
    for inter, intra in zip(inters, intras, strict=True):
        intra_to_p = mean(known) if intra is None else intra**p
        scores.append(relative_proximity(inter, intra_to_p, kind, p, scale))
    return scores


# Silhouette -----------------------------------------------------------------------------------


def silhouette_by_segment(embeddings: ArrayLike, masses: Sequence[int]) -> list[list[float]]:
    """Eq. 8-10: s of every unit, grouped by segment."""
    units = as_units(embeddings)
    segments = split_segments(units, masses)
    if len(segments) < 2:
        raise ValueError("silhouette needs at least two segments")
    smallest = ZERO_DISTANCE * math.sqrt(variance_scale(units))

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
            if max(a, b) <= smallest:
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
    centroid = segment.mean(axis=0)
    raw = mean([distance(unit, centroid) for unit in segment])
    return raw / (1.0 - 1.0 / math.sqrt(len(segment)))


def segrefree_segments(embeddings: ArrayLike, masses: Sequence[int]) -> list[float | None]:
    """Eq. 5-7: the largest finite R of every segment, None if it has none."""
    units = as_units(embeddings)
    segments = split_segments(units, masses)
    if all(mass == 1 for mass in masses):
        return [SEGREFREE_ALL_ONE_UNIT for _ in segments]
    smallest = ZERO_DISTANCE * math.sqrt(variance_scale(units))

    centroids = [segment.mean(axis=0) for segment in segments]
    known = [corrected_dispersion(segment) for segment in segments if len(segment) > 1]
    dispersions = [
        corrected_dispersion(segment) if len(segment) > 1 else mean(known) for segment in segments
    ]

    scores: list[float | None] = []
    for i in range(len(segments)):
        ratios = []
        for j in (i - 1, i + 1):
            if j < 0 or j >= len(segments):
                continue
            between = distance(centroids[i], centroids[j])
            if between <= smallest:
                continue
            ratios.append((dispersions[i] + dispersions[j]) / between)
        scores.append(max(ratios) if ratios else None)
    return scores


# Documents ------------------------------------------------------------------------------------


def document_score(
    embeddings: ArrayLike,
    masses: Sequence[int],
    metric: str,
    *,
    p: float | None = None,
    average: str = "segments",
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
        finite = [score for score in segrefree_segments(embeddings, masses) if score is not None]
        return mean(finite) if finite else None
    kind = metric.removeprefix("arp_")
    return mean(arp_segments(embeddings, masses, kind, DEFAULT_P[kind] if p is None else p))
