"""C99: divisive clustering of the ranks of similarities between units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from reffree.data.segmentation import Segmentation
from reffree.segmenters.base import Inputs, Segmenter
from reffree.util.arrays import Floats, Integers
from reffree.util.bounds import Bounds
from reffree.util.compiling import njit
from reffree.util.errors import InputError
from reffree.util.words import Language

TIED = 1e-12
"""Densities that differ by less, relatively, are equal but for rounding."""

GRADIENT_MASK = np.array([1.0, 2.0, 4.0, 8.0, 4.0, 2.0, 1.0])


@dataclass(frozen=True, slots=True)
class C99(Segmenter):
    r"""Segments within which the ranks of similarities are high (Choi 2000, §3).

    1. Similarity of two units: cosine of their term counts (eq. 1), 0 without terms.
    2. Rank: the share of the other cells in a ``mask`` × ``mask`` square around a cell of the
       similarity matrix that are lower; at the matrix's edges, of those there are (eq. 2).
    3. Inside density of a segmentation: :math:`D = \sum_k s_k / \sum_k a_k`, the sum of ranks and
       the area of the segments' squares on the diagonal (eq. 3). Starting with the whole document,
       the boundary that makes D highest is added, over and over.
    4. ``k`` boundaries; with ``auto``, as many as there are before the gains
       :math:`\delta D(n) = D(n) - D(n-1)` are no longer above :math:`\mu + c \sqrt{v}`, mean and
       variance being those of all gains down to single units.

    ``k=gold`` is for oracles; ``k=mean`` gives every document gold's mean number of segments over
    the corpus (Georgescul et al. 2006, §5.1). A document of ``k`` units or fewer has a boundary
    after every unit. Gains do not fall steadily: as in the author's release each is weighed with
    its neighbours, 1 2 4 8 4 2 1, and those before the first that is not above are counted.
    """

    k: Literal["auto", "gold", "mean"] | int = "auto"
    mask: Annotated[int, Bounds(3)] = 11
    c: float = 1.2
    language: Language = "english"
    name: ClassVar[str] = "c99"

    def __post_init__(self) -> None:
        Segmenter.__post_init__(self)
        if self.mask % 2 != 1:
            raise InputError(
                f"mask = {self.mask}",
                expected="an odd whole number, 3 or more",
                remedy="leave it out for 11",
            )

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Segment every document."""
        wanted = inputs.n_boundaries(self.k, self.name)
        found = []
        for terms, k in zip(inputs.terms(self.language), wanted, strict=True):
            n = terms.n_units
            reach = min(self.mask // 2, n - 1)
            sums = rank_sums(terms.ids, terms.n_distinct, terms.edges, reach)
            boundaries, densities = divide(sums, n, n - 1 if k is None else k)
            if k is None:
                boundaries = boundaries[: steep_steps(np.diff(densities), self.c)]
            found.append(Segmentation.from_boundaries(boundaries.tolist(), n))
        return tuple(found)


def steep_steps(gains: Floats, c: float) -> int:
    """Count the gains before the first that, smoothed, is no more than mean + c · deviation."""
    if not len(gains):
        return 0
    reach = len(GRADIENT_MASK) // 2
    weights = np.convolve(np.ones_like(gains), GRADIENT_MASK)
    smooth = (np.convolve(gains, GRADIENT_MASK) / weights)[reach : reach + len(gains)]
    is_steep = smooth > smooth.mean() + c * smooth.std() + TIED
    return int(np.argmin(np.append(is_steep, False)))


# Only a band of rows of the similarity matrix is held at a time. What is kept is the sum of ranks
# of every segment, the units a … b - 1, at b(b - 1)/2 + a of one flat array.


@njit(cache=True, nogil=True, error_model="numpy")
def rank_sums(ids: Integers, n_distinct: int, edges: Integers, reach: int) -> Floats:
    """Sum of the ranks of every segment; a rank looks ``reach`` cells in each direction."""
    n = len(edges) - 1
    size = 2 * reach + 1
    band = np.full((size, n + 2 * reach), np.inf)  # row i at i % size; what is outside is not lower
    counts, squares = np.zeros(n_distinct), np.zeros(n)
    for i in range(n):
        for term in ids[edges[i] : edges[i + 1]]:
            squares[i] += 2 * counts[term] + 1
            counts[term] += 1
        for term in ids[edges[i] : edges[i + 1]]:
            counts[term] = 0
    sums = np.zeros(n * (n + 1) // 2)
    lower = np.empty(n)
    for i in range(-reach, n):
        if i + reach < n:
            row = band[(i + reach) % size]
            _fill_similarities(ids, edges, i + reach, counts, squares, row[reach : reach + n], size)
        if i < 0:
            continue
        _rank(band, i, n, reach, lower[: i + 1])
        before = sums[i * (i - 1) // 2 : i * (i + 1) // 2]
        within = sums[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2]
        added = lower[i]
        within[i] = added
        for j in range(i - 1, -1, -1):
            added += 2 * lower[j]
            within[j] = before[j] + added
    return sums


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_similarities(
    ids: Integers, edges: Integers, i: int, counts: Floats, squares: Floats, row: Floats, size: int
) -> None:
    """Squared cosines of unit i with all units that some rank in the lower triangle looks at."""
    row[:] = np.inf
    for term in ids[edges[i] : edges[i + 1]]:
        counts[term] += 1
    for j in range(min(len(row), i + size)):
        product = 0.0
        for term in ids[edges[j] : edges[j + 1]]:
            product += counts[term]
        # Ranks are those of the cosines; one division of whole numbers keeps equal ones equal.
        row[j] = product * product / (squares[i] * squares[j]) if product > 0 else 0.0
    for term in ids[edges[i] : edges[i + 1]]:
        counts[term] = 0


@njit(cache=True, nogil=True, error_model="numpy")
def _rank(band: Floats, i: int, n: int, reach: int, lower: Floats) -> None:
    """Share of the cells around (i, j) with a lower value, for all j up to i."""
    size = len(band)
    own = band[i % size, reach : reach + i + 1]
    first, last = max(0, i - reach), min(n - 1, i + reach)
    lower[:] = 0
    for row in range(first, last + 1):
        for shift in range(size):
            others = band[row % size, shift : shift + i + 1]
            for j in range(i + 1):
                lower[j] += 1.0 if others[j] < own[j] else 0.0
    for j in range(i + 1):
        columns = min(n - 1, j + reach) - max(0, j - reach) + 1
        neighbours = (last - first + 1) * columns - 1
        lower[j] = lower[j] / neighbours if neighbours > 0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def divide(sums: Floats, n: int, n_boundaries: int) -> tuple[Integers, Floats]:
    """Boundaries in the order in which they are set, and the inside densities before and after.

    Each is the one of all gaps that makes the density highest, the first of those tied.
    """
    boundaries = np.zeros(n_boundaries, dtype=np.int64)
    densities = np.zeros(n_boundaries + 1)
    is_edge = np.zeros(n + 1, dtype=np.bool_)
    is_edge[0] = is_edge[n] = True
    more_sum = np.zeros(n + 1)  # what a boundary adds to the sum of ranks inside segments
    more_area = np.zeros(n + 1)
    inside, area = sums[n * (n - 1) // 2], float(n) * n
    densities[0] = inside / area
    _fill_changes(sums, 0, n, more_sum, more_area)
    for step in range(n_boundaries):
        best, at = -1.0, 0
        for gap in range(1, n):
            if not is_edge[gap]:
                density = (inside + more_sum[gap]) / (area + more_area[gap])
                if density > best + TIED * abs(best):
                    best, at = density, gap
        inside += more_sum[at]
        area += more_area[at]
        boundaries[step] = at
        densities[step + 1] = best
        is_edge[at] = True
        left, right = at - 1, at + 1
        while not is_edge[left]:
            left -= 1
        while not is_edge[right]:
            right += 1
        _fill_changes(sums, left, at, more_sum, more_area)
        _fill_changes(sums, at, right, more_sum, more_area)
    return boundaries, densities


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_changes(sums: Floats, a: int, b: int, more_sum: Floats, more_area: Floats) -> None:
    """What a boundary at each gap of the segment ``a … b - 1`` changes."""
    from_a_to_b = sums[b * (b - 1) // 2 + a]
    for gap in range(a + 1, b):
        left, right = sums[gap * (gap - 1) // 2 + a], sums[b * (b - 1) // 2 + gap]
        more_sum[gap] = left + right - from_a_to_b
        more_area[gap] = -2.0 * (gap - a) * (b - gap)
