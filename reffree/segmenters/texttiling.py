r"""TextTiling (Hearst 1997): boundaries in the valleys of similarity between neighbouring windows.

The depth of a gap is how far similarity rises on both sides, a peak being reached by going on for
as long as it does not fall:

.. math:: depth_i = (peak^{left}_i - s_i) + (peak^{right}_i - s_i).

``texttiling`` counts words; ``depth`` takes vectors, the similarity at a gap being the cosine of
the means of the ``window`` units before and after it, fewer at the ends, 0 where a mean vanishes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from reffree.data.segmentation import Segmentation
from reffree.segmenters.base import GapScorer, Inputs, directions, rises, to_scale
from reffree.segmenters.selection import MIN_GAP, Candidates, Rule, select_above, select_top
from reffree.util.arrays import Booleans, Floats, Integers
from reffree.util.bounds import Bounds, Count, Positive
from reffree.util.compiling import njit
from reffree.util.words import Language, Terms

DEVIATIONS = {"conservative": 0.5, "liberal": 1.0}

WORDS = 20
"""Of a token-sequence."""

FEW_UNITS, SHORT = 40, 15
"""Fewer units than these, of fewer words on average, are a short dialogue."""

DECIMALS = 12
"""To which scores and depths are rounded, so that equal valleys come out equal."""

ROUNDING = 10.0**-DECIMALS
FLAT = 1e-9
"""Depths of vectors up to this are rounding: identical units have no valleys."""

MOST_ROUNDS = 1_000
"""Of smoothing: far beyond what leaves a valley."""


@dataclass(frozen=True, slots=True)
class Depth(GapScorer):
    """Valleys deeper than mean + ``threshold`` standard deviations of the document's depths.

    Hearst's cut-offs are -0.5 (conservative) and -1 (liberal). They suit term counts: with MiniLM
    vectors -0.5 makes 1.2 (TIAGE) to 27 (QMSum) times as many boundaries as gold has, and 0.5, the
    default, fewer at a lower Pk. A gap that is no valley at all is never a boundary. With ``k``
    boundaries or a ``density`` (boundaries per gap) the deepest are taken instead. In any case they
    are ``min_gap`` units apart; that may leave fewer than asked for.
    """

    window: Positive = 4
    threshold: float = 0.5
    k: Literal["gold"] | int | None = None
    density: Annotated[float | None, Bounds(0, 1)] = None
    min_gap: Positive = MIN_GAP
    name: ClassVar[str] = "depth"
    needs_embeddings: ClassVar[bool] = True

    def boundary_scores(self, inputs: Inputs) -> tuple[Floats, ...]:
        """Depth at every gap of every document, (n - 1,), from 0 to 4."""
        return tuple(depths_of(x, self.window) for x in inputs.vectors(self.name))

    def selection_rule(self) -> Rule:
        """Select valleys that are deep for their document."""

        def select(depths: Floats, candidates: Candidates | None) -> Segmentation:
            cutoff = float(depths.mean() + self.threshold * depths.std()) if len(depths) else 0.0
            return select_above(depths, max(cutoff, FLAT), self.min_gap, candidates)

        return select


def depths_of(embeddings: ArrayLike, window: int) -> Floats:
    """Depth at each of the ``n - 1`` gaps; none in a document of one unit.

    >>> depths_of([[1, 0], [1, 0], [0, 1], [0, 1]], window=1).tolist()
    [0.0, 2.0, 0.0]
    """
    depths = np.add(*rises(gap_similarities(embeddings, window)))
    return np.where(depths > FLAT, depths, 0.0)


def gap_similarities(embeddings: ArrayLike, window: int) -> Floats:
    """Cosine of the mean vectors of up to ``window`` units before and after each gap."""
    x, _ = to_scale(embeddings)
    n, d = x.shape
    before, after = np.zeros((n - 1, d)), np.zeros((n - 1, d))
    # Sums over each window: differences of running sums would lose short vectors beside long ones.
    for offset in range(min(window, n - 1)):
        before[offset:] += x[: n - 1 - offset]
        after[: n - 1 - offset] += x[1 + offset :]
    cosine: Floats = np.einsum("nd,nd->n", directions(before), directions(after))
    return cosine


@dataclass(frozen=True, slots=True)
class TextTiling(GapScorer):
    r"""Valleys of the lexical similarity between neighbouring blocks (Hearst 1997, §5).

    1. Score of a gap: cosine of the term counts of the ``block`` units, or words, before and after
       it; near the document's ends blocks are as long as they can be.
    2. Smoothing: ``rounds`` times the mean with ``smoothing`` gaps on either side.
    3. Depth: from the gap's score up to the nearest peak on the left, plus the same on the right.
       Of neighbouring gaps with equal scores the middle one has it (of two, the left one), and the
       others 0: one sharp valley, smoothed, is as wide as the smoothing, and its middle is where it
       was.
    4. A boundary in each valley whose depth is at least :math:`\bar{s} - \sigma / 2`
       (``conservative``) or :math:`\bar{s} - \sigma` (``liberal``), deepest first and ``min_gap``
       units or more apart. With ``k`` boundaries, the deepest gaps instead, as far as ``min_gap``
       allows; ``k=gold`` is for oracles, and ``k=mean`` gives every document gold's mean number.

    Units stand for the paper's token-sequences of 20 words; ``measure=words,block=200`` gives
    blocks of 10 token-sequences. Stop words count for a block's length, not for its score.

    What is ``auto`` follows the document: ``block=10,cutoff=conservative,min_gap=3``, and in a
    short dialogue, of fewer than 40 units of fewer than 15 words on average,
    ``block=4,cutoff=liberal,min_gap=1``. Words of a block are 20 times its units. Smoothing is for
    units as short as token-sequences, such as lines of subtitles: elsewhere it moves boundaries by
    a gap, which is an error here (F1 .690 without and .230 with ``smoothing=1`` on Choi's
    documents).

    Settled where the paper leaves a choice, after its author's release: a valley lies below a peak
    on *both* sides, and mean and deviation are those of the valleys. "At least" instead of "more
    than" makes a boundary of a valley that is the only one.
    """

    k: Literal["auto", "gold", "mean"] | int = "auto"
    block: Literal["auto"] | Positive = "auto"
    measure: Literal["units", "words"] = "units"
    smoothing: Count = 0
    rounds: Annotated[int, Bounds(0, MOST_ROUNDS)] = 1
    cutoff: Literal["auto", "conservative", "liberal"] = "auto"
    min_gap: Literal["auto"] | Positive = "auto"
    language: Language = "english"
    name: ClassVar[str] = "texttiling"

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Segment every document."""
        wanted = inputs.n_boundaries(self.k, self.name)
        return tuple(
            self._select(terms, k, inputs.candidates_of(d))
            for d, (terms, k) in enumerate(zip(inputs.terms(self.language), wanted, strict=True))
        )

    def boundary_scores(self, inputs: Inputs) -> tuple[Floats, ...]:
        """Depth of every gap of every document, (n − 1,); from 0 to 2, valley or not."""
        return tuple(left + right for left, right in map(self._drops, inputs.terms(self.language)))

    def _drops(self, terms: Terms) -> tuple[Floats, Floats]:
        """How far every gap lies below the nearest peaks on its left and its right.

        Of neighbouring equal scores only the middle one does; the others have 0.
        """
        level = np.round(smoothed(self._scores(terms), self.smoothing, self.rounds), DECIMALS)
        is_middle = middles(level)
        left, right = (np.where(is_middle, np.round(each, DECIMALS), 0.0) for each in rises(level))
        return left, right

    def _scores(self, terms: Terms) -> Floats:
        block = self.block
        if block == "auto":
            block = 4 if is_short_dialogue(terms) else 10
            block *= WORDS if self.measure == "words" else 1
        gaps = np.arange(1, terms.n_units)
        if self.measure == "units":
            low = terms.edges[np.maximum(gaps - block, 0)]
            high = terms.edges[np.minimum(gaps + block, terms.n_units)]
        else:
            before = terms.word_edges[gaps]
            low = np.searchsorted(terms.places, before - block)
            high = np.searchsorted(terms.places, before + block)
        middle = terms.edges[gaps]
        scores: Floats = _block_similarities(terms.ids, terms.n_distinct, low, middle, high)
        return scores

    def _select(self, terms: Terms, k: int | None, candidates: Candidates | None) -> Segmentation:
        left, right = self._drops(terms)
        depths = left + right
        is_short, min_gap, cutoff = is_short_dialogue(terms), self.min_gap, self.cutoff
        if min_gap == "auto":
            min_gap = 1 if is_short else MIN_GAP
        if k is not None:
            return select_top(depths, k, min_gap, candidates)
        is_valley = (left > 0) & (right > 0)
        if not is_valley.any():
            return Segmentation((terms.n_units,))
        if cutoff == "auto":
            cutoff = "liberal" if is_short else "conservative"
        found = depths[is_valley]
        least = float(found.mean() - DEVIATIONS[cutoff] * found.std())
        valleys = np.where(is_valley, depths, 0.0)
        return select_above(valleys, max(least - ROUNDING, ROUNDING), min_gap, candidates)


def is_short_dialogue(terms: Terms) -> bool:
    """Whether a document has fewer than 40 units, of fewer than 15 words on average."""
    return terms.n_units < FEW_UNITS and int(terms.word_edges[-1]) < SHORT * terms.n_units


def smoothed(scores: Floats, reach: int, rounds: int) -> Floats:
    """Mean of each score with those up to ``reach`` places away, so many times over."""
    reach = min(reach, len(scores))
    window = np.ones(2 * reach + 1)
    for _ in range(rounds if len(scores) else 0):
        inside = slice(reach, reach + len(scores))
        counts = np.convolve(np.ones_like(scores), window)[inside]
        scores = np.convolve(scores, window)[inside] / counts
    return scores


def middles(level: Floats) -> Booleans:
    """Whether each is the middle of a run of equal values; of two middles the left one.

    >>> middles(np.array([3.0, 1.0, 1.0, 1.0, 2.0, 2.0])).tolist()
    [True, False, True, False, True, False]
    """
    changes = np.flatnonzero(np.diff(level)) + 1
    starts = np.concatenate([[0], changes])
    ends = np.concatenate([changes, [len(level)]])
    is_middle = np.zeros(len(level), dtype=bool)
    is_middle[((starts + ends - 1) // 2)[starts < ends]] = True
    return is_middle


@njit(cache=True, nogil=True, error_model="numpy")
def _block_similarities(
    ids: Integers, n_distinct: int, low: Integers, middle: Integers, high: Integers
) -> Floats:
    """Cosine of the counts of the terms ``low … middle - 1`` and ``middle … high - 1`` of each gap.

    None of the three may fall from one gap to the next. Each term enters the right block, moves to
    the left one and leaves, and every step updates the three sums of products. 0 where a block has
    no terms.
    """
    left = np.zeros(n_distinct, dtype=np.int64)
    right = np.zeros(n_distinct, dtype=np.int64)
    similarities = np.zeros(len(middle))
    product = left_square = right_square = 0
    first = split = end = 0  # terms first … split - 1 are in the left block, up to end in the right
    for gap in range(len(middle)):
        while end < high[gap]:
            term = ids[end]
            product += left[term]
            right_square += 2 * right[term] + 1
            right[term] += 1
            end += 1
        while split < middle[gap]:
            term = ids[split]
            product += right[term] - left[term] - 1
            right_square -= 2 * right[term] - 1
            left_square += 2 * left[term] + 1
            right[term] -= 1
            left[term] += 1
            split += 1
        while first < low[gap]:
            term = ids[first]
            product -= right[term]
            left_square -= 2 * left[term] - 1
            left[term] -= 1
            first += 1
        if product > 0:
            # One division of whole numbers and one root: equal cosines come out equal.
            squared = float(product) * product / (float(left_square) * right_square)
            similarities[gap] = np.sqrt(squared)
    return similarities
