"""TextSeg: the most probable segmentation under word probabilities of its own segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from reffree.data.segmentation import Segmentation
from reffree.segmenters.base import Inputs, Segmenter
from reffree.util.arrays import Floats, Integers
from reffree.util.compiling import njit
from reffree.util.words import Language


@dataclass(frozen=True, slots=True)
class TextSeg(Segmenter):
    r"""The segmentation S with the lowest cost C(S) (Utiyama & Isahara 2001, §2–3).

    .. math:: C(S) = \sum_i \Big( \log n
              + \sum_j \log \frac{n_i + d}{f_i(w_j) + 1} \Big)

    over the segments i and the terms j in each: n terms in the document, d of them distinct, n_i in
    the segment, f_i of them the same. The second sum are Laplace-smoothed probabilities of the
    terms given their segment, log n is the prior of one more segment. The cheapest path is found
    exactly, by dynamic programming over the gaps between units.

    ``k`` boundaries, or with ``auto`` as many as the cheapest path has; ``gold`` is for oracles;
    ``mean`` gives every document gold's mean number of segments over the corpus (Georgescul et al.
    2006, §5.1). A document of ``k`` units or fewer has a boundary after every unit; one without
    terms is one segment. A unit without terms goes to the later segment.
    """

    k: Literal["auto", "gold", "mean"] | int = "auto"
    language: Language = "english"
    name: ClassVar[str] = "textseg"

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Segment every document."""
        wanted = inputs.n_boundaries(self.k, self.name)
        found = []
        for terms, k in zip(inputs.terms(self.language), wanted, strict=True):
            if k is not None:
                gaps = _cheapest_path_of(terms.ids, terms.n_distinct, terms.edges, k).tolist()
            else:
                came_from = _cheapest_path(terms.ids, terms.n_distinct, terms.edges).tolist()
                gaps, gap = [], came_from[-1]
                while gap > 0:
                    gaps.append(gap)
                    gap = came_from[gap]
            found.append(Segmentation.from_boundaries(gaps, terms.n_units))
        return tuple(found)


# Segments are taken by their first unit, from left to right. The costs of all that start at a unit
# are found by adding one term after the other, and at once lower the costs of the paths to their
# ends, so no table of all segments is needed.


@njit(cache=True, nogil=True, error_model="numpy")
def _cheapest_path(ids: Integers, n_distinct: int, edges: Integers) -> Integers:
    """For each gap, the one before it on the cheapest path; ties go to the longest last segment."""
    n = len(edges) - 1
    costs, counts = np.empty(n), np.zeros(n_distinct, dtype=np.int64)
    tables = _tables(len(ids), n_distinct)
    least = np.full(n + 1, np.inf)
    least[0] = 0.0
    came_from = np.zeros(n + 1, dtype=np.int64)
    for start in range(n):
        row = costs[: n - start]
        _fill_costs(ids, edges, start, tables, counts, row)
        _lower(least[start + 1 :], came_from[start + 1 :], least[start], row, start)
    return came_from


@njit(cache=True, nogil=True, error_model="numpy")
def _cheapest_path_of(ids: Integers, n_distinct: int, edges: Integers, k: int) -> Integers:
    """Gaps on the cheapest path over ``k`` of them; ties go to the longest last segments."""
    n = len(edges) - 1
    costs, counts = np.empty(n), np.zeros(n_distinct, dtype=np.int64)
    tables = _tables(len(ids), n_distinct)
    least = np.full((k + 2, n + 1), np.inf)  # [m, g]: of m segments up to gap g
    least[0, 0] = 0.0
    came_from = np.zeros((k + 2, n + 1), dtype=np.int32)
    for start in range(n):
        row = costs[: n - start]
        _fill_costs(ids, edges, start, tables, counts, row)
        # The segment is the m-th: as many units as segments before it, and as many after it.
        for m in range(max(1, k + 2 - (n - start)), min(k, start) + 2):
            ends = slice(start + 1, n - (k + 1 - m) + 1)
            _lower(least[m, ends], came_from[m, ends], least[m - 1, start], row, start)
    gaps = np.empty(k, dtype=np.int64)
    gap = n
    for m in range(k + 1, 1, -1):
        gap = came_from[m, gap]
        gaps[m - 2] = gap
    return gaps


@njit(cache=True, nogil=True, error_model="numpy")
def _tables(n_terms: int, n_distinct: int) -> tuple[Floats, Floats]:
    """f·log(f + 1) of a term's count and m·log(m + distinct terms) of a segment's length."""
    numbers = np.arange(n_terms + 1).astype(np.float64)
    return numbers * np.log(numbers + 1), numbers * np.log(np.maximum(numbers + n_distinct, 1))


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_costs(
    ids: Integers,
    edges: Integers,
    start: int,
    tables: tuple[Floats, Floats],
    counts: Integers,
    costs: Floats,
) -> None:
    """Costs of the segments from unit ``start`` to each later one."""
    of_count, of_length = tables
    prior = np.log(max(1, len(ids)))
    known = 0.0
    counts[:] = 0
    for j in range(len(costs)):
        for term in ids[edges[start + j] : edges[start + j + 1]]:
            known += of_count[counts[term] + 1] - of_count[counts[term]]
            counts[term] += 1
        costs[j] = prior + of_length[edges[start + j + 1] - edges[start]] - known


@njit(cache=True, nogil=True, error_model="numpy")
def _lower(least: Floats, came_from: Integers, before: float, costs: Floats, start: int) -> None:
    """Put a last segment after a path, wherever that is cheaper."""
    for j in range(len(least)):
        cost = before + costs[j]
        if cost < least[j]:
            least[j] = cost
            came_from[j] = start
