"""Statistics of meta-evaluation by their definitions: plain loops over lists, None where undefined.

Systems are rows, documents columns; losses are lists of lists with None where undefined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, product

from scipy.stats import kendalltau, rankdata

Row = Sequence[float | None]
Matrix = Sequence[Row]


def common(x: Row, y: Row) -> tuple[list[float], list[float]]:
    pairs = [(a, b) for a, b in zip(x, y, strict=True) if a is not None and b is not None]
    return [a for a, _ in pairs], [b for _, b in pairs]


def is_undefined(x: Sequence[float], y: Sequence[float]) -> bool:
    return len(x) < 3 or len(set(x)) == 1 or len(set(y)) == 1


def pearson(x: Row, y: Row) -> float | None:
    """Covariance over the root of the variances, all of exact fractions."""
    a, b = common(x, y)
    if is_undefined(a, b):
        return None
    a, b = (_deviations(side) for side in (a, b))
    covariance = sum(u * v for u, v in zip(a, b, strict=True))
    sizes = sum(u * u for u in a) * sum(v * v for v in b)
    share = covariance * covariance / sizes  # at most 1, exactly
    return math.copysign(math.sqrt(share), covariance)


def _deviations(x: Sequence[float]) -> list[Fraction]:
    """From the mean."""
    exact = [Fraction(value) for value in x]
    mean = sum(exact) / len(exact)
    return [value - mean for value in exact]


def spearman(x: Row, y: Row) -> float | None:
    a, b = common(x, y)
    return None if is_undefined(a, b) else pearson(rankdata(a).tolist(), rankdata(b).tolist())


def kendall(x: Row, y: Row) -> float | None:
    a, b = common(x, y)
    return None if is_undefined(a, b) else float(kendalltau(a, b).statistic)


COEFFICIENTS: dict[str, Callable[[Row, Row], float | None]] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall": kendall,
}


def weighted_mean(values: Row, weights: Sequence[float], times: Sequence[int]) -> float | None:
    """Mean over documents, each taken as often as ``times`` says."""
    taken = [
        (value, weight)
        for value, weight, n in zip(values, weights, times, strict=True)
        for _ in range(n)
        if value is not None
    ]
    total = math.fsum(weight for _, weight in taken)
    return math.fsum(v * w for v, w in taken) / total if taken else None


def pseudo_values(documents: Sequence[object], score: Callable[[list], float]) -> list[float]:
    """n score(all) - (n - 1) score(all but one), one by one."""
    n = len(documents)
    whole = score(list(documents))
    return [n * whole - (n - 1) * score([*documents[:d], *documents[d + 1 :]]) for d in range(n)]


def better_p(first: Row, second: Row) -> float | None:
    """One-sided p that the first has the lower loss: all swaps, ties count half."""
    a, b = common(first, second)
    if not a:
        return None
    gaps = [u - v for u, v in zip(a, b, strict=True)]
    observed = math.fsum(gaps)
    credit = 0.0
    for signs in product((1, -1), repeat=len(gaps)):
        flipped = math.fsum(s * gap for s, gap in zip(signs, gaps, strict=True))
        if math.isclose(flipped, observed, abs_tol=1e-9):
            credit += 0.5
        elif flipped < observed:
            credit += 1
    return credit / 2 ** len(gaps)


def soft_pairwise_accuracy(x: Matrix, y: Matrix) -> float:
    pairs = list(combinations(range(len(x)), 2))
    errors = [abs(better_p(x[i], x[j]) - better_p(y[i], y[j])) for i, j in pairs]
    return 1 - sum(errors) / len(pairs)


def column(losses: Matrix, d: int) -> list[float | None]:
    return [row[d] for row in losses]


def within_documents(x: Matrix, y: Matrix, coefficient: str) -> tuple[float | None, int]:
    """Mean over the documents where it is defined, and how many those are."""
    values = [COEFFICIENTS[coefficient](column(x, d), column(y, d)) for d in range(len(x[0]))]
    defined = [value for value in values if value is not None]
    return (math.fsum(defined) / len(defined) if defined else None), len(defined)


def accuracy_at(x: Matrix, y: Matrix, epsilon: float) -> float | None:
    """Mean over documents of the share of pairs both metrics order, or tie, alike."""
    shares = []
    for d in range(len(x[0])):
        a, b = common(column(x, d), column(y, d))
        pairs = list(combinations(range(len(a)), 2))
        if not pairs:
            continue
        right = 0
        for i, j in pairs:
            x_order = 0 if abs(a[i] - a[j]) <= epsilon else (-1 if a[i] < a[j] else 1)
            y_order = 0 if b[i] == b[j] else (-1 if b[i] < b[j] else 1)
            right += x_order == y_order
        shares.append(right / len(pairs))
    return math.fsum(shares) / len(shares) if shares else None


def tie_calibrated_accuracy(x: Matrix, y: Matrix) -> tuple[float | None, float]:
    """Best mean accuracy over all thresholds worth trying, and the smallest such threshold."""
    thresholds = {0.0}
    for d in range(len(x[0])):
        a, _ = common(column(x, d), column(y, d))
        thresholds |= {abs(u - v) for u, v in combinations(a, 2)}
    tried = [(accuracy_at(x, y, epsilon), epsilon) for epsilon in sorted(thresholds)]
    if tried[0][0] is None:
        return None, 0.0
    best = max(accuracy for accuracy, _ in tried)
    return next((a, e) for a, e in tried if a > best - 1e-9)


def correlation_difference(a: Matrix, b: Matrix, gold: Matrix, times: Sequence[int]) -> float:
    """Pearson of a with gold less that of b, where document d is drawn times[d] times."""
    scores = [
        [sum(x * t for x, t in zip(row, times, strict=True)) / sum(times) for row in losses]
        for losses in (a, b, gold)
    ]
    found = [pearson(scores[0], scores[2]), pearson(scores[1], scores[2])]
    return found[0] - found[1]


def standardised(losses: Matrix) -> list[list[float]]:
    cells = [value for row in losses for value in row]
    mean = math.fsum(cells) / len(cells)
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in cells) / len(cells))
    return [[(value - mean) / sd for value in row] for row in losses]


def swapped_difference(
    x: Matrix,
    y: Matrix,
    gold: Row,
    coefficient: str,
    systems: Sequence[bool],
    documents: Sequence[bool],
) -> float:
    """Difference of correlations after swapping drawn rows, then columns, of complete x and y."""
    a, b = standardised(x), standardised(y)
    for i, is_drawn in enumerate(systems):
        if is_drawn:
            a[i], b[i] = b[i], a[i]
    for d, is_drawn in enumerate(documents):
        for i in range(len(a)):
            if is_drawn:
                a[i][d], b[i][d] = b[i][d], a[i][d]
    means = [[math.fsum(row) / len(row) for row in side] for side in (a, b)]
    measure = COEFFICIENTS[coefficient]
    return measure(means[0], gold) - measure(means[1], gold)


def williams_t(r12: float, r13: float, r23: float, n: int) -> float:
    """Steiger (1980), eq. (7): 1 is the shared variable."""
    determinant = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    mean = (r12 + r13) / 2
    return (r12 - r13) * math.sqrt(
        (n - 1) * (1 + r23) / (2 * (n - 1) / (n - 3) * determinant + mean**2 * (1 - r23) ** 3)
    )


def mean_of_pairs(pairs: Sequence[tuple[float, float]]) -> float:
    """Mean of (value, weight)."""
    return sum(w * v for v, w in pairs) / sum(w for _, w in pairs)


def enumerated_p(a: Sequence[tuple[float, float]], b: Sequence[tuple[float, float]]) -> float:
    """Share of all swaps with a difference at least as large; a, b: lists of (value, weight)."""
    observed = abs(mean_of_pairs(a) - mean_of_pairs(b))
    reached = []
    for swaps in product([False, True], repeat=len(a)):
        left = [y if swap else x for x, y, swap in zip(a, b, swaps, strict=True)]
        right = [x if swap else y for x, y, swap in zip(a, b, swaps, strict=True)]
        difference = abs(mean_of_pairs(left) - mean_of_pairs(right))
        reached.append(difference > observed or math.isclose(difference, observed, abs_tol=1e-12))
    return sum(reached) / len(reached)


Scored = Sequence[tuple[float, float] | None]
"""A system's (value, weight) by document, None where it has none."""


def westfall_young_p(systems: Sequence[Scored], pairs: Sequence[tuple[int, int]]) -> list[float]:
    """Corrected p of every pair: all swaps of documents, the same for all pairs, step by step.

    A pair's difference is divided by its spread: with m the weighted mean of both systems' values
    and g = w_a (v_a - m) - w_b (v_b - m) of a document, by 2 sqrt(sum g²) / sum (w_a + w_b).
    """
    n_documents = len(systems[0])
    common = {
        pair: [
            d for d in range(n_documents) if None not in (systems[pair[0]][d], systems[pair[1]][d])
        ]
        for pair in pairs
    }

    def spread(pair: tuple[int, int]) -> float:
        a, b = ([systems[side][d] for d in common[pair]] for side in pair)
        m = mean_of_pairs([*a, *b])
        gaps = [w * (v - m) - x * (u - m) for (v, w), (u, x) in zip(a, b, strict=True)]
        return 2 * math.sqrt(sum(g * g for g in gaps)) / sum(w for _, w in [*a, *b])

    def z(pair: tuple[int, int], swaps: Sequence[bool]) -> float:
        i, j = pair
        a, b = ([systems[j if swaps[d] == is_a else i][d] for d in common[pair]] for is_a in (1, 0))
        distance = abs(mean_of_pairs(a) - mean_of_pairs(b))
        return distance / spread(pair) if distance > 1e-12 else 0.0

    observed = {pair: z(pair, [False] * n_documents) for pair in pairs}
    ordered = sorted(pairs, key=observed.get, reverse=True)
    swapped = [
        {pair: z(pair, swaps) for pair in pairs}
        for swaps in product([False, True], repeat=n_documents)
    ]
    corrected: dict[tuple[int, int], float] = {}
    largest = 0.0
    for k, pair in enumerate(ordered):
        reached = [max(each[p] for p in ordered[k:]) >= observed[pair] - 1e-9 for each in swapped]
        largest = max(largest, sum(reached) / len(reached))
        corrected[pair] = largest
    return [corrected[pair] for pair in pairs]
