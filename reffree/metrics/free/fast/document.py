"""The metrics as one compiled loop per hypothesis: what scores every document on CPUs.

With a document's `tables` a hypothesis costs a few look-ups per unit, whatever the embedding size,
and hypotheses are shared out over threads. Where the tables do not fit into memory, hypotheses are
scored in groups that do. A score depends on the document's vectors and the hypothesis alone, to the
last bit. The definitions are those of `published`, whose torch code scores on other devices; tests
hold the two together.
"""

# Compiled functions take their types from their arguments.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from reffree.data.masses import Masses, distinct_rows
from reffree.metrics.free.fast.distances import VECTORISED, U, Vectors, give_back
from reffree.metrics.free.fast.tables import (
    TableBand,
    Tables,
    band_of,
    build_tables,
    disperse,
    fill_edges,
    fitting_groups,
    sweep_tables,
    table_bytes,
)
from reffree.metrics.free.inputs import Given, check_finite, check_matrix
from reffree.metrics.free.published import ALL_SINGLE, EQUAL_CENTROIDS
from reffree.metrics.free.result import Rule
from reffree.metrics.names import COMPILED
from reffree.util.arrays import Floats, Integers
from reffree.util.compiling import njit
from reffree.util.errors import Place, counted, mistake
from reffree.util.parallel import compute_threads, over_rows

if TYPE_CHECKING:
    from reffree.metrics.free.inputs import Array

SMALL = 1 << 24
"""Bytes of tables that are made without asking how much memory there is."""

MOST_MEASURED = 1 << 37
"""Pairs measured at most where pairs are measured more than once: some hours' work."""

THREADED = 1 << 15
"""Hypotheses × units from which threads are worth starting."""

FAR = 1e300
"""Stands for the distance to a segment that is not there."""


class CompiledScores(NamedTuple):
    """Scores of hypotheses of one document."""

    raw: Floats  # (hypotheses, COMPILED) NaN where undefined or without a boundary
    left_out: Integers  # (hypotheses,) pairs that SegReFree left out
    n_segments: Integers  # (hypotheses,)
    segments: Floats  # (hypotheses, COMPILED, segments or 0) NaN where a segment has no score


class CompiledDocument:
    """One document's tables, made when first needed and as wide as needed."""

    def __init__(self, embeddings: Array | Given, name: str = "0") -> None:
        """Take the vectors to float64; the caller's are not touched."""
        self.name = name
        document = check_matrix(embeddings, name)
        self.vectors = Vectors.of(document)
        if not np.isfinite(self.vectors.length).all():
            check_finite(document, name)
        self.band: TableBand | None = None
        self.tables: Tables | None = None

    def score_all(
        self,
        parts: Sequence[Callable[[], Masses]],
        memory: Callable[[], int],
        progress: Callable[[int], None] = lambda done: None,
        *,
        keep_segments: bool = False,
        rule: Rule = "released",
    ) -> CompiledScores:
        """Score hypotheses that are made a part at a time, with tables of so many bytes at most.

        ``memory`` is asked only for tables that are not small; ``progress`` is told how many
        hypotheses were just done.
        """
        only = parts[0]() if len(parts) == 1 else None  # made once; several have no place together
        threads = compute_threads()
        fits = self.prepare((part() if only is None else only for part in parts), memory)
        done = []
        for part in parts:
            masses = part() if only is None else only
            distinct, place = distinct_rows(masses)
            if fits:
                found = self.score(distinct, threads, keep_segments=keep_segments, rule=rule)
            else:
                found = self._score_groups(distinct, memory(), threads, keep_segments, rule)
            if distinct is not masses:
                found = CompiledScores._make(x[place] for x in found)
            done.append(found)
            progress(len(masses))
        return joined(done)

    def prepare(self, parts: Iterable[Masses], memory: Callable[[], int]) -> bool:
        """Make tables that hold every look-up of these hypotheses, unless they are too large."""
        band = self.band
        for masses in parts:
            band = band_of(masses, len(self.vectors), band)
        if band is not None and (self.band is None or band.size > self.band.size):
            needed = table_bytes(band)
            if needed > SMALL and needed > memory():
                return False
            self._discard_tables()  # before the larger ones are made
            self.tables = build_tables(self.vectors, band, compute_threads())
            self.band = band
        return True

    def _score_groups(
        self, masses: Masses, memory: int, threads: int, keep_segments: bool, rule: Rule
    ) -> CompiledScores:
        """Score hypotheses whose tables do not fit, as many at a time as do.

        What would measure a long document's pairs again and again is refused.
        """
        groups = fitting_groups(masses, len(self.vectors), memory)
        band, passes = band_of(masses, len(self.vectors)), len(groups)
        n_pairs = int((band.high - np.arange(len(band.high))).sum())
        if passes > 1 and passes * n_pairs > MOST_MEASURED:
            units = counted(len(self.vectors), "unit")
            found = f"{len(masses):,} hypotheses of {units}, for which scoring would measure"
            found += f" {n_pairs:.1e} pairs of units {passes} times"
            expected = f"tables of {table_bytes(band) / 1e9:.1f} GB, or fewer hypotheses"
            free = f"run it where {2 * memory / 1e9:.1f} GB more are free"
            remedy = f"{free}, or leave out --explain and --null"
            raise mistake(Place(document=self.name), found, expected, remedy)
        done = []
        for group in groups:
            self._discard_tables()
            self.tables = sweep_tables(self.vectors, masses[group], threads)
            done.append(self.score(masses[group], threads, keep_segments=keep_segments, rule=rule))
        self._discard_tables()
        return joined(done)

    def score(
        self, masses: Masses, threads: int, *, keep_segments: bool = False, rule: Rule = "released"
    ) -> CompiledScores:
        """Score hypotheses given as masses padded with zeros at the end, after `prepare`."""
        if self.tables is None:
            raise RuntimeError("no tables: call prepare first")
        tables = self.tables[:-1]
        count, width = masses.shape
        raw = np.empty((count, len(COMPILED)))
        left_out = np.zeros(count, dtype=np.int64)
        segments = np.full((count, len(COMPILED), width if keep_segments else 0), np.nan)
        exponents = [2 * self.vectors.exponent, self.vectors.exponent]
        scale = np.ldexp(1.0, np.clip(exponents, -1000, 1000))
        shares = 1 if count * len(self.vectors) < THREADED else threads

        def work(rows: slice) -> None:
            into = (raw[rows], left_out[rows], segments[rows])
            score_hypotheses(masses[rows], rule == "paper", scale, *into, *tables)

        over_rows(work, count, shares)
        return CompiledScores(raw, left_out, np.count_nonzero(masses, axis=1), segments)

    def discard(self) -> None:
        """Give the memory to the next document; nothing can be scored any more."""
        self._discard_tables()
        self.vectors.discard()

    def _discard_tables(self) -> None:
        if self.tables is not None:
            give_back(self.tables.memory)
        self.tables = self.band = None


def joined(parts: Sequence[CompiledScores]) -> CompiledScores:
    """Put scores of several groups of hypotheses under one another."""
    if len(parts) == 1:
        return parts[0]
    *others, segments = zip(*parts, strict=True)
    width = max(x.shape[2] for x in segments)
    missing = [((0, 0), (0, 0), (0, width - x.shape[2])) for x in segments]
    padded = [np.pad(*each, constant_values=np.nan) for each in zip(segments, missing, strict=True)]
    return CompiledScores._make(map(np.concatenate, [*others, padded]))


@njit(cache=True, nogil=True, error_model="numpy")
def score_hypotheses(
    masses, is_paper, scale, scores, left_out, parts, base, top, squared, distance, sums, length
):
    """Fill a row of ``scores`` in the order of `COMPILED` and a count for every row of masses.

    ``parts``, unless it has no columns, gets the segments' scores, (hypotheses, `COMPILED`,
    segments), which must be NaN before. ``is_paper`` is the rule for one-unit segments, and
    ``scale`` what variances and standard deviations of the vectors as given are times those of the
    tables.
    """
    edges = np.zeros(masses.shape[1] + 1, dtype=np.int64)
    sets = np.empty((6, 2 * masses.shape[1]))
    segments = np.empty((5, masses.shape[1]))
    for h in range(masses.shape[0]):
        n_segments = fill_edges(masses[h], edges)
        if n_segments == 1:
            scores[h] = math.nan
            continue
        cut = edges[: n_segments + 1]
        _arp(cut, top, sums, length, is_paper, scale, sets, scores[h])
        n_multiple = _units(cut, base, top, squared, distance, sums, segments, scores[h])
        left_out[h] = _segrefree(cut, top, sums, segments, n_multiple, is_paper, scores[h])
        if parts.shape[2] > 0:
            _keep_parts(sets, segments, n_segments, is_paper, parts[h])


@njit(cache=True, nogil=True, error_model="numpy")
def _keep_parts(sets, segments, n_segments, is_paper, parts):
    """Scores of a hypothesis's segments, from what its own score was made of."""
    n = n_segments - 1
    for column, row in ((0, 0), (1, 3), (2, 2), (3, 1)):
        for s in range(n):
            inter, intra = sets[row, s], sets[row, n + s]
            is_single = is_paper and sets[5, n + s] == 1.0
            parts[column, s] = intra if is_single else _proximity(inter, intra)
    for s in range(n_segments):
        parts[4, s] = parts[5, s] = segments[3, s]
        if segments[4, s] >= 0.0:
            parts[6, s] = segments[4, s]


@njit(cache=True, nogil=True, error_model="numpy")
def _arp(edges, top, sums, length, is_paper, scale, sets, out):
    """Rows of ``sets``: `disperse`'s arguments; first every boundary's inter, then its intra.

    They become variances, mean angles, cosine dispersions and standard deviations; by the paper's
    rule, a one-unit segment's intra becomes its score.
    """
    n = len(edges) - 2
    n_multiple = 0
    for s in range(n):
        start, stop, after = edges[s], edges[s + 1], edges[s + 2]
        cut = min(2 * (after - stop), stop - start)
        _look_up(stop - (cut + 1) // 2, stop + max(1, cut // 2), top, sums, length, sets, s)
        _look_up(stop - cut, stop, top, sums, length, sets, n + s)
        n_multiple += cut > 1
    squares, angles, cosines = sets[0, : 2 * n], sets[1, : 2 * n], sets[2, : 2 * n]
    roots, count = sets[3, : 2 * n], sets[5, : 2 * n]
    disperse(squares, angles, cosines, roots, sets[4, : 2 * n], count)
    for i in range(2 * n):
        roots[i] = math.sqrt(squares[i])
    n_averaged = n if is_paper else n_multiple
    if n_multiple < n:
        for values in (squares, roots, cosines, angles):
            _substitute(values[:n], values[n:], count[n:], n_averaged, n_multiple)
    is_printed = is_paper and n_multiple < n
    if is_printed:
        for s in range(n):
            if count[n + s] == 1.0:
                squares[n + s] *= scale[0]
                roots[n + s] *= scale[1]
    for column, values in enumerate((squares, roots, cosines, angles)):
        out[column] = _mean_as_printed(values, count[n:]) if is_printed else _mean_proximity(values)


@njit(cache=True, nogil=True, fastmath=VECTORISED, error_model="numpy")
def _look_up(start, stop, top, sums, length, sets, column):
    at = top[start] + stop - 1
    for row in range(4):
        sets[row, column] = sums[at, row]
    weight = 0.0
    for i in range(U(start), U(stop)):
        weight += length[i]
    sets[4, column] = weight
    sets[5, column] = stop - start


@njit(cache=True, nogil=True, error_model="numpy")
def _substitute(inter, intra, count, n_averaged, n_multiple):
    """Give one-unit segments, whose count is 1, an intra (eq. 16)."""
    multiple, single = 0.0, 0.0
    for s in range(len(count)):
        if count[s] > 1.0:
            multiple += intra[s]
        else:
            single += inter[s]
    value = multiple / n_averaged if n_multiple else single / len(count)
    for s in range(len(count)):
        if count[s] == 1.0:
            intra[s] = value


@njit(cache=True, nogil=True, fastmath=VECTORISED, error_model="numpy")
def _mean_proximity(dispersion):
    n = len(dispersion) // 2
    inter, intra = dispersion[:n], dispersion[n:]
    total = 0.0
    for s in range(n):
        total += _proximity(inter[s], intra[s])
    return total / n


@njit(cache=True, nogil=True, error_model="numpy")
def _mean_as_printed(dispersion, count):
    """Mean score, where that of a one-unit segment stands in the place of its intra."""
    n = len(count)
    total = 0.0
    for s in range(n):
        intra = dispersion[n + s]
        total += intra if count[s] == 1.0 else _proximity(dispersion[s], intra)
    return total / n


@njit(cache=True, nogil=True, error_model="numpy")
def _proximity(inter, intra):
    both = inter + intra
    return (inter - intra) / (both if both > 0.0 else 1.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _units(edges, base, top, squared, distance, sums, segments, out):
    """Silhouette; rows of ``segments``: SegReFree's dispersion, variance, units; silhouette.

    Returns how many segments have several units, as the others have no dispersion yet.
    """
    n_segments = len(edges) - 1
    over_segments, over_units, n_multiple = 0.0, 0.0, 0
    for s in range(n_segments):
        start, stop = edges[s], edges[s + 1]
        m = stop - start
        segments[0, s], segments[1, s], segments[2, s], segments[3, s] = 0.0, 0.0, m, 0.0
        if m == 1:
            continue
        n_multiple += 1
        share = 1.0 / m
        own = sums[top[start] + stop - 1, 0] * share
        segments[1, s] = variance = own * share
        low, high = base[start] + start, base[stop] + start
        before, left, left_gap = low, 0.0, FAR
        if s > 0:
            before, left, left_gap = base[edges[s - 1]] + start, 1.0 / (start - edges[s - 1]), 0.0
        after, right, right_gap = high, 0.0, FAR
        if s < n_segments - 1:
            after, right, right_gap = base[edges[s + 2]] + start, 1.0 / (edges[s + 2] - stop), 0.0
        places = (U(before), U(low), U(high), U(after))
        shares = (left, left_gap, right, right_gap, 1.0 / (m - 1.0), share, variance)
        contrast, spread = _segment(distance, squared, U(m), places, shares)
        over_units += contrast
        segments[3, s] = contrast * share
        over_segments += segments[3, s]
        segments[0, s] = spread * share / (1.0 - math.sqrt(share))
    out[4] = over_segments / n_segments
    out[5] = over_units / edges[n_segments]
    return n_multiple


@njit(cache=True, nogil=True, fastmath=VECTORISED, error_model="numpy")
def _segment(distance, squared, m, places, shares):
    """Silhouettes and distances to the centroid, summed over the units of a segment."""
    before, low, high, after = places
    left, left_gap, right, right_gap, own, share, variance = shares
    contrast, spread = 0.0, 0.0
    for i in range(m):
        start, stop = distance[low + i], distance[high + i]
        a = (stop - start) * own
        to_left = (start - distance[before + i]) * left + left_gap
        to_right = (distance[after + i] - stop) * right + right_gap
        b = to_left if to_left < to_right else to_right
        largest = a if a > b else b
        contrast += (b - a) / (largest if largest > 0.0 else 1.0)
        square = (squared[high + i] - squared[low + i]) * share - variance
        spread += math.sqrt(square if square > 0.0 else 0.0)
    return contrast, spread


@njit(cache=True, nogil=True, error_model="numpy")
def _segrefree(edges, top, sums, segments, n_multiple, is_paper, out):
    """Row 4 of ``segments`` becomes every segment's score, negative where it has none."""
    n = len(edges) - 1
    if n_multiple == 0:
        out[6] = ALL_SINGLE
        segments[4, :n] = ALL_SINGLE
        return 0
    dispersion, variance, mass = segments[0, :n], segments[1, :n], segments[2, :n]
    total = 0.0
    for s in range(n):
        total += dispersion[s]
    for s in range(n):
        if mass[s] == 1.0:
            dispersion[s] = 0.0 if is_paper else total / n_multiple
    left_out, defined, total = 0, 0, 0.0
    previous = -1.0
    for s in range(n):
        ratio = -1.0  # with the next segment; negative where there is none
        if s < n - 1:
            m, k = mass[s], mass[s + 1]
            both = sums[top[edges[s]] + edges[s + 2] - 1, 0]
            within = variance[s] * (m * m) + variance[s + 1] * (k * k)
            cross = (both - within) / (m * k)
            gap = cross - variance[s] - variance[s + 1]
            if gap > EQUAL_CENTROIDS * cross:
                ratio = (dispersion[s] + dispersion[s + 1]) / math.sqrt(gap)
            else:
                left_out += 1
        segments[4, s] = worst = max(previous, ratio)
        total += max(0.0, worst)
        defined += worst >= 0.0
        previous = ratio
    if is_paper and n_multiple < n:
        total, defined = _score_singles(mass, segments[4, :n])
    out[6] = total / defined if defined else math.nan
    return left_out


@njit(cache=True, nogil=True, error_model="numpy")
def _score_singles(mass, scores):
    """Give one-unit segments the mean score of the others; return the sum and number of scores."""
    total, defined = 0.0, 0
    for s in range(len(mass)):
        if mass[s] > 1.0 and scores[s] >= 0.0:
            total += scores[s]
            defined += 1
    mean = total / defined if defined else -1.0
    for s in range(len(mass)):
        if mass[s] == 1.0:
            scores[s] = mean
            total += mean if defined else 0.0
            defined += 1 if mean >= 0.0 else 0
    return total, defined
