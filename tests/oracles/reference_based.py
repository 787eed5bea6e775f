"""Gold-based metrics written out from their definitions: exact, slow, one function each.

Every function takes ``(hypothesis, reference)`` as lists of masses and returns a ``Fraction``, or
``None`` where the metric is undefined. Nothing is clever: windows are enumerated one by one, edit
alignments and chunkings are searched exhaustively, so documents have to be short.

A *boundary* is the number of units in front of it, 1 ... n - 1; the document's end is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise

Masses = Sequence[int]
Units = tuple[int, ...]
"""Unit indices, counted from 0, or boundaries, ascending."""

Cohesion = Callable[[Units, Units], float | Fraction]


# Segmentations --------------------------------------------------------------------------------


def n_units(hypothesis: Masses, reference: Masses) -> int:
    if min(*hypothesis, *reference) < 1 or sum(hypothesis) != sum(reference):
        raise ValueError(f"not two segmentations of one document: {hypothesis}, {reference}")
    return sum(reference)


def boundaries(masses: Masses) -> set[int]:
    return {sum(masses[:i]) for i in range(1, len(masses))}


def segments(masses: Masses) -> list[Units]:
    edges = [sum(masses[:i]) for i in range(len(masses) + 1)]
    return [tuple(range(start, end)) for start, end in pairwise(edges)]


def labels(masses: Masses) -> list[int]:
    """The number of its segment, unit by unit."""
    return [i for i, mass in enumerate(masses) for _ in range(mass)]


def ratio(numerator: int | Fraction, denominator: int | Fraction) -> Fraction | None:
    return None if denominator == 0 else Fraction(numerator) / Fraction(denominator)


# Windows --------------------------------------------------------------------------------------


def window_size(reference: Masses) -> int:
    """Half the mean reference mass, rounded half to even, at least 2."""
    return max(2, round(Fraction(sum(reference), len(reference)) / 2))


def corpus_window_size(references: Sequence[Masses]) -> int:
    """Half the mean mass of all segments of all references, rounded half to even, at least 2."""
    return window_size([mass for reference in references for mass in reference])


def share_of_windows(references: Sequence[Masses], k: int | None = None) -> Fraction | None:
    """Georgescul 2006, 4.1, P_seg: the share of a corpus's windows with a reference boundary."""
    windows = [
        r > 0
        for reference in references
        for _, r in boundary_counts(
            reference, reference, window_size(reference) if k is None else k
        )
    ]
    return ratio(sum(windows), len(windows))


def in_words(masses: Masses, words: Sequence[int]) -> list[int]:
    """Masses in words, of which a unit has so many, and at least one."""
    return [sum(max(1, words[unit]) for unit in segment) for segment in segments(masses)]


def boundary_counts(
    hypothesis: Masses, reference: Masses, k: int, pad: int = 0
) -> list[tuple[int, int]]:
    """Boundaries between unit i and unit i + k, in the hypothesis and in the reference.

    ``pad`` units without a boundary stand before the document and after it.
    """
    n = n_units(hypothesis, reference)
    return [
        (
            sum(i < boundary <= i + k for boundary in boundaries(hypothesis)),
            sum(i < boundary <= i + k for boundary in boundaries(reference)),
        )
        for i in range(-pad, n + pad - k)
    ]


def pk(hypothesis: Masses, reference: Masses, k: int | None = None) -> Fraction | None:
    """Share of the n - k pairs (i, i + k) that only one of the two keeps in one segment."""
    k = window_size(reference) if k is None else k
    n = n_units(hypothesis, reference)
    h, r = labels(hypothesis), labels(reference)
    wrong = sum((h[i] == h[i + k]) != (r[i] == r[i + k]) for i in range(n - k))
    return ratio(wrong, max(0, n - k))


def windowdiff(
    hypothesis: Masses, reference: Masses, k: int | None = None, padding: str = "plain"
) -> Fraction | None:
    """Share of windows with different boundary counts.

    ``plain`` is undefined for n <= k; the padded variants have windows at any length.
    """
    k = window_size(reference) if k is None else k
    n = n_units(hypothesis, reference)
    pad, windows = {
        "plain": (0, max(0, n - k)),
        "exact": (k - 1, n + k - 2),
        "segeval": (k, n + k + 1),  # one more than there are
    }[padding]
    wrong = sum(h != r for h, r in boundary_counts(hypothesis, reference, k, pad))
    return ratio(wrong, windows)


def pk_prime(
    hypothesis: Masses, reference: Masses, k: int | None = None, p_seg: Fraction | None = None
) -> Fraction | None:
    """Georgescul 2006, 4.1: P'_miss * P_seg + P'_false_alarm * (1 - P_seg).

    Omega is 1 where the counts agree and delta_ref where the reference has no boundary in the
    window. Where all windows are of one kind, its rate is the value. P_seg is a corpus's
    (`share_of_windows`); without one, the pair is the corpus.
    """
    k = window_size(reference) if k is None else k
    windows = boundary_counts(hypothesis, reference, k)
    if not windows:
        return None
    across = [h != r for h, r in windows if r > 0]
    within = [h != r for h, r in windows if r == 0]
    p_seg = Fraction(len(across), len(windows)) if p_seg is None else p_seg
    if not across or not within:
        return Fraction(sum(across) + sum(within), len(windows))
    miss = Fraction(sum(across), len(across))
    false_alarm = Fraction(sum(within), len(within))
    return miss * p_seg + false_alarm * (1 - p_seg)


def pr_miss(hypothesis: Masses, reference: Masses, k: int | None = None) -> Fraction | None:
    """Georgescul 2006, 4.3: windows with too few boundaries among those with a reference one."""
    k = window_size(reference) if k is None else k
    windows = boundary_counts(hypothesis, reference, k)
    return ratio(sum(r > h for h, r in windows), sum(r > 0 for _, r in windows))


def pr_false_alarm(hypothesis: Masses, reference: Masses, k: int | None = None) -> Fraction | None:
    """Georgescul 2006, 4.3: windows with too many boundaries among all n - k."""
    k = window_size(reference) if k is None else k
    windows = boundary_counts(hypothesis, reference, k)
    return ratio(sum(r < h for h, r in windows), len(windows))


def pr_error(
    hypothesis: Masses,
    reference: Masses,
    k: int | None = None,
    c_miss: float | Fraction = Fraction(1, 2),
    c_fa: float | Fraction = Fraction(1, 2),
) -> Fraction | None:
    """Georgescul 2006, 4.3: C_miss * Pr_miss + C_fa * Pr_fa; undefined if either part is."""
    miss = pr_miss(hypothesis, reference, k)
    false_alarm = pr_false_alarm(hypothesis, reference, k)
    if miss is None or false_alarm is None:
        return None
    return Fraction(c_miss) * miss + Fraction(c_fa) * false_alarm


def winpr_counts(
    hypothesis: Masses, reference: Masses, k: int | None = None
) -> tuple[Fraction, Fraction, Fraction]:
    """True positives, false positives, false negatives in boundaries.

    With k - 1 units of padding every boundary lies in k windows; divided by k it counts once.
    """
    k = window_size(reference) if k is None else k
    windows = boundary_counts(hypothesis, reference, k, pad=k - 1)
    return (
        Fraction(sum(min(h, r) for h, r in windows), k),
        Fraction(sum(max(0, h - r) for h, r in windows), k),
        Fraction(sum(max(0, r - h) for h, r in windows), k),
    )


def winpr_precision(hypothesis: Masses, reference: Masses, k: int | None = None) -> Fraction | None:
    true_positives, false_positives, _ = winpr_counts(hypothesis, reference, k)
    return ratio(true_positives, true_positives + false_positives)


def winpr_recall(hypothesis: Masses, reference: Masses, k: int | None = None) -> Fraction | None:
    true_positives, _, false_negatives = winpr_counts(hypothesis, reference, k)
    return ratio(true_positives, true_positives + false_negatives)


def winpr(hypothesis: Masses, reference: Masses, k: int | None = None) -> Fraction | None:
    """F from the counts: 0 if only one has boundaries, undefined if neither has."""
    true_positives, false_positives, false_negatives = winpr_counts(hypothesis, reference, k)
    return ratio(2 * true_positives, 2 * true_positives + false_positives + false_negatives)


# Boundary edits -------------------------------------------------------------------------------


@cache
def matching_outcomes(left: Units, right: Units, reach: int) -> frozenset[tuple[int, int]]:
    """(pairs, sum of their distances) of every one-to-one matching within ``reach``.

    The first boundary of ``left`` stays alone or takes any in reach; what lies too far left for
    the others is dropped, which changes no outcome and lets the cache work.
    """
    if not left:
        return frozenset({(0, 0)})
    first, others = left[0], left[1:]
    outcomes = set(matching_outcomes(others, right, reach))
    for partner in right:
        if abs(first - partner) <= reach:
            remaining = tuple(
                boundary
                for boundary in right
                if boundary != partner and others and boundary >= others[0] - reach
            )
            for pairs, distance in matching_outcomes(others, remaining, reach):
                outcomes.add((pairs + 1, distance + abs(first - partner)))
    return frozenset(outcomes)


def best_edits(hypothesis: Masses, reference: Masses, n_t: int) -> tuple[int, int, int, Fraction]:
    """Matches, additions and deletions, transpositions, and the cost of the cheapest alignment.

    Common boundaries match. The others are transposed over 1 ... n_t - 1 units at d / n_t, or added
    or deleted at 1. Of equally cheap alignments the one with most transpositions, that is with
    fewest edits, is taken: for n_t > 2 such ties exist and change B and BED, never S. Cost and
    number of transpositions together fix every value.
    """
    n_units(hypothesis, reference)
    common = boundaries(hypothesis) & boundaries(reference)
    only_h = tuple(sorted(boundaries(hypothesis) - common))
    only_r = tuple(sorted(boundaries(reference) - common))
    alone = len(only_h) + len(only_r)
    cost, negative_transpositions = min(
        (alone - 2 * pairs + Fraction(distance, n_t), -pairs)
        for pairs, distance in matching_outcomes(only_h, only_r, n_t - 1)
    )
    transpositions = -negative_transpositions
    return len(common), alone - 2 * transpositions, transpositions, cost


def boundary_similarity(hypothesis: Masses, reference: Masses, n_t: int = 2) -> Fraction:
    """Fournier 2013: 1 - cost / (edits + matches); 1 if neither has boundaries."""
    matches, single, transpositions, cost = best_edits(hypothesis, reference, n_t)
    pairs = matches + single + transpositions
    return Fraction(1) if pairs == 0 else 1 - cost / pairs


def segmentation_similarity(hypothesis: Masses, reference: Masses, n_t: int = 2) -> Fraction:
    """Fournier & Inkpen 2012 with B's costs: 1 - cost / (n - 1); 1 for one unit."""
    cost = best_edits(hypothesis, reference, n_t)[3]
    gaps = n_units(hypothesis, reference) - 1
    return Fraction(1) if gaps == 0 else 1 - cost / gaps


def bed_credit(hypothesis: Masses, reference: Masses, n_t: int) -> Fraction:
    """1 for a match, 1 - d / n_t for a transposition."""
    matches, single, transpositions, cost = best_edits(hypothesis, reference, n_t)
    return matches + transpositions - (cost - single)


def bed_precision(hypothesis: Masses, reference: Masses, n_t: int = 2) -> Fraction | None:
    """Credit per hypothesis boundary."""
    return ratio(bed_credit(hypothesis, reference, n_t), len(hypothesis) - 1)


def bed_recall(hypothesis: Masses, reference: Masses, n_t: int = 2) -> Fraction | None:
    """Credit per reference boundary."""
    return ratio(bed_credit(hypothesis, reference, n_t), len(reference) - 1)


def bed(hypothesis: Masses, reference: Masses, n_t: int = 2) -> Fraction | None:
    """F from the counts: 0 if only one has boundaries, undefined if neither has."""
    credit = bed_credit(hypothesis, reference, n_t)
    return ratio(2 * credit, len(hypothesis) + len(reference) - 2)


def ghd(
    hypothesis: Masses,
    reference: Masses,
    ins: float | Fraction = 2,
    del_: float | Fraction = 2,
    shift: float | Fraction = 1,
) -> Fraction:
    """Bookstein 2002: cheapest way to turn the hypothesis' boundaries into the reference's.

    Every order-preserving way to delete, insert and shift; shifts that cross cost no less.
    """
    n_units(hypothesis, reference)
    h, r = sorted(boundaries(hypothesis)), sorted(boundaries(reference))

    @cache
    def distance(i: int, j: int) -> Fraction:
        """From the first i hypothesis boundaries to the first j reference boundaries."""
        ways = [Fraction(0)] if i == j == 0 else []
        if i > 0:
            ways.append(distance(i - 1, j) + Fraction(del_))
        if j > 0:
            ways.append(distance(i, j - 1) + Fraction(ins))
        if i > 0 and j > 0:
            ways.append(distance(i - 1, j - 1) + Fraction(shift) * abs(h[i - 1] - r[j - 1]))
        return min(ways)

    return distance(len(h), len(r))


# Segment alignments ---------------------------------------------------------------------------


def jaccard(a: Units, b: Units) -> Fraction:
    return Fraction(len(set(a) & set(b)), len(set(a) | set(b)))


def closest(segment: Units, others: list[Units]) -> int:
    """Largest share of the segment, then highest Jaccard index, then leftmost."""
    return max(
        range(len(others)),
        key=lambda j: (
            Fraction(len(set(segment) & set(others[j])), len(segment)),
            jaccard(segment, others[j]),
            -j,
        ),
    )


def alignment_edges(hypothesis: Masses, reference: Masses) -> set[tuple[int, int]]:
    """Ocampo Diaz & Ouyang 2022, Figure 7, as (hypothesis, reference) segment numbers.

    A pair that is closest both ways is one edge.
    """
    n_units(hypothesis, reference)
    h, r = segments(hypothesis), segments(reference)
    return {(i, closest(segment, r)) for i, segment in enumerate(h)} | {
        (closest(segment, h), j) for j, segment in enumerate(r)
    }


def alignment(hypothesis: Masses, reference: Masses) -> Fraction:
    """Ocampo Diaz & Ouyang 2022, section 3: mean Jaccard index of the edges."""
    h, r = segments(hypothesis), segments(reference)
    weights = [jaccard(h[i], r[j]) for i, j in alignment_edges(hypothesis, reference)]
    return sum(weights, Fraction(0)) / len(weights)


Chunk = tuple[list[Units], list[Units]]
"""Reference segments and the hypothesis segments they are edited into; one side has one."""


def chunkings(reference: list[Units], hypothesis: list[Units]) -> Iterator[list[Chunk]]:
    """Every monotone sequence of 1:1, 1:M and M:1 chunks whose segments meet the single one."""
    if not reference and not hypothesis:
        yield []
        return
    for i in range(1, len(reference) + 1):
        for j in range(1, len(hypothesis) + 1):
            chunk = reference[:i], hypothesis[:j]
            meet = all(set(a) & set(b) for a in chunk[0] for b in chunk[1])
            if min(i, j) == 1 and meet:
                for rest in chunkings(reference[i:], hypothesis[j:]):
                    yield [chunk, *rest]


def chunk_cost(chunk: Chunk, cohesion: Cohesion) -> Fraction:
    """Ocampo Diaz & Ouyang 2024, 3.3: TC, 1 - SC or 1 - MC, with the minus restored."""
    reference, hypothesis = chunk

    def cl(a: Units, b: Units) -> Fraction:
        return Fraction(cohesion(a, b))

    if len(reference) == len(hypothesis) == 1:
        (s_r,), (s_h,) = reference, hypothesis
        extra = tuple(unit for unit in s_h if unit not in s_r)
        missing = tuple(unit for unit in s_r if unit not in s_h)
        return (1 - cl(s_r, extra) if extra else Fraction(0)) + (
            cl(s_r, missing) if missing else Fraction(0)
        )
    is_split = len(reference) == 1
    single, many = (reference[0], hypothesis) if is_split else (hypothesis[0], reference)
    union = tuple(unit for segment in many for unit in segment)
    pairs = [cl(a, b) for a, b in combinations(many, 2)]
    similarity = sum(pairs, Fraction(0)) / len(pairs)
    kept = Fraction((len(single) - 1) - (len(many) - 1), len(single) - 1)
    return 1 - cl(single, union) * kept * (1 - similarity if is_split else similarity)


def sed(hypothesis: Masses, reference: Masses, cohesion: Cohesion) -> Fraction:
    """Ocampo Diaz & Ouyang 2024: mean cost of the operations of the cheapest chunking.

    ``cohesion(a, b)`` gets two tuples of unit indices: the extra part of a 1:1 chunk may lie on
    both sides of the reference segment, so a range would not do. It is called as
    (reference segment, extra), (reference segment, missing), (single segment, union of the many)
    and (earlier, later) for pairs of the many. The cheapest chunking has the smallest sum of costs;
    of equally cheap ones that with most operations counts, hence the smallest mean.
    """
    n_units(hypothesis, reference)
    total, negative_length = min(
        (sum((chunk_cost(chunk, cohesion) for chunk in chunking), Fraction(0)), -len(chunking))
        for chunking in chunkings(segments(reference), segments(hypothesis))
    )
    return total / -negative_length


def lexical_cohesion(
    a: Sequence[object],
    b: Sequence[object],
    similarity: Callable[[object, object], float | Fraction],
    threshold: float | Fraction = 0.7,
) -> Fraction:
    """Ocampo Diaz & Ouyang 2024, 3.3: CL of two token lists.

    Each token's similarity to its nearest token of the other list counts if it reaches the
    threshold; harmonic mean of the two means. 0 if either list is empty or nothing reaches it.
    """
    if not a or not b:
        return Fraction(0)
    directed = []
    for source, target in ((a, b), (b, a)):
        nearest = [max(Fraction(similarity(s, t)) for t in target) for s in source]
        directed.append(sum((x for x in nearest if x >= threshold), Fraction(0)) / len(source))
    forth, back = directed
    return Fraction(0) if forth + back == 0 else 2 * forth * back / (forth + back)


# Boundary sets and segment overlap ------------------------------------------------------------


def f_measure(hits_h: int, hits_r: int, hypothesis: set[int], reference: set[int]) -> Fraction:
    """Coen, appendix A: harmonic mean with its empty-set rules."""
    if not hypothesis and not reference:
        return Fraction(1)
    precision = Fraction(hits_h, len(hypothesis)) if hypothesis else Fraction(0)
    recall = Fraction(hits_r, len(reference)) if reference else Fraction(0)
    if precision + recall == 0:
        return Fraction(0)
    return 2 * precision * recall / (precision + recall)


def f1(hypothesis: Masses, reference: Masses) -> Fraction:
    """Exact boundaries."""
    n_units(hypothesis, reference)
    h, r = boundaries(hypothesis), boundaries(reference)
    return f_measure(len(h & r), len(h & r), h, r)


def w_f1(hypothesis: Masses, reference: Masses, w: int = 1) -> Fraction:
    """Coen, appendix A: every boundary with one of the other side within w units is a hit."""
    n_units(hypothesis, reference)
    h, r = boundaries(hypothesis), boundaries(reference)
    near_h = sum(any(abs(a - b) <= w for b in r) for a in h)
    near_r = sum(any(abs(a - b) <= w for a in h) for b in r)
    return f_measure(near_h, near_r, h, r)


def w_f1_one_to_one(hypothesis: Masses, reference: Masses, w: int = 1) -> Fraction:
    """Coen, appendix G: hits are a maximum-cardinality matching within w units."""
    n_units(hypothesis, reference)
    h, r = boundaries(hypothesis), boundaries(reference)
    outcomes = matching_outcomes(tuple(sorted(h)), tuple(sorted(r)), w)
    hits = max(pairs for pairs, _ in outcomes)
    return f_measure(hits, hits, h, r)


def bor(hypothesis: Masses, reference: Masses) -> Fraction | None:
    """Coen, 6.2: hypothesis boundaries per reference boundary."""
    n_units(hypothesis, reference)
    return ratio(len(boundaries(hypothesis)), len(boundaries(reference)))


def covered(pieces: list[Units], wholes: list[Units]) -> int:
    """Units of each piece inside the one whole that holds most of it, summed."""
    return sum(max(len(set(piece) & set(whole)) for whole in wholes) for piece in pieces)


def purity(hypothesis: Masses, reference: Masses) -> Fraction:
    """Coen, appendix B, unit-weighted."""
    n = n_units(hypothesis, reference)
    return Fraction(covered(segments(hypothesis), segments(reference)), n)


def coverage(hypothesis: Masses, reference: Masses) -> Fraction:
    """Coen, appendix B, unit-weighted."""
    n = n_units(hypothesis, reference)
    return Fraction(covered(segments(reference), segments(hypothesis)), n)
