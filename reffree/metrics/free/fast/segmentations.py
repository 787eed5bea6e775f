"""Sums over all segmentations of a document, by dynamic programming in log space.

A table has a row for every step of the document and a column for every length: ``[j, L - 1]`` is
about the stretch of ``L`` steps that ends with step ``j``; cells with ``L > j + 1`` are not read.
Everything runs in one thread. Sums over a row are made in an order that suits the processor: what
is known of the steps so far is kept by the number of steps that are *left*, so that it runs the
same way as the lengths in a row.
"""

# Compiled functions take their types from their arguments.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from reffree.util.compiling import njit

LEAST = -350.0
"""Terms of a sum count as ``e`` to this times the largest at least, which changes no sum."""

MOST_CHANGE = 300.0
"""Sums are made anew where a change of weight may change some by ``e`` to more than this: within
it, terms at `LEAST` stay negligible, and no number overflows or vanishes."""

REORDERED = {"reassoc", "contract", "nnan", "nsz"}
"""Sums in any order; there are no NaN."""

TO_INTEGER = 1.5 * 2.0**52
"""Added to a number, it rounds it to an integer, whose bits are then the last ones."""

INVERSE_FACTORIALS = tuple(1.0 / math.factorial(k) for k in range(12, -1, -1))


@njit(cache=True, fastmath={"contract"})
def exponential(x):
    """``e`` to the ``x``, a number from -700 to 700, to 1e-15 of it.

    Without branches or calls, so that a loop works on several at once; ``math.exp`` takes seven
    times as long. It is 2 to the ``n`` times the series of ``e`` to the rest, which is at most
    half the logarithm of 2.
    """
    shifted = x * 1.4426950408889634 + TO_INTEGER
    n = shifted - TO_INTEGER
    rest = x - n * 0.6931471803691238 - n * 1.9082149292705877e-10  # log 2 in two parts
    series = 1.0 / 6227020800.0
    for factorial in INVERSE_FACTORIALS:
        series = series * rest + factorial
    power = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52)
    return series * power.view(np.float64)


@njit(cache=True)
def squared_sums(gram, order):
    """|Σ x|² of every stretch of steps in an order, a table, from their dot products."""
    m = len(gram)
    table = np.zeros((m, m))
    for j in range(m):
        row = gram[order[j]]
        own = row[order[j]]
        with_last = 0.0
        table[j, 0] = own
        for length in range(2, j + 2):
            with_last += row[order[j - length + 1]]
            table[j, length - 1] = table[j - 1, length - 2] + 2.0 * with_last + own
    return table


@njit(cache=True)
def add_scaled(total, table, slopes, offsets):
    """Add to a table another times a slope, and an offset, each that of the length."""
    for j in range(len(table)):
        row, added = total[j], table[j]
        for i in range(j + 1):
            row[i] += slopes[i] * added[i] + offsets[i]


@njit(cache=True, fastmath={"reassoc", "contract"})
def dot_products(x):
    """``x xᵀ``, in an order of sums that does not depend on threads."""
    m, d = x.shape
    gram = np.empty((m, m))
    # Two rows by two at once (the last by itself again), so that each is read half as often.
    for i in range(0, m, 2):
        after_i = min(i + 1, m - 1)
        a, b = x[i], x[after_i]
        for j in range(0, after_i + 1, 2):
            after_j = min(j + 1, after_i)
            c, e = x[j], x[after_j]
            ac = ae = bc = be = 0.0
            for k in range(d):
                ac += a[k] * c[k]
                ae += a[k] * e[k]
                bc += b[k] * c[k]
                be += b[k] * e[k]
            gram[i, j] = gram[j, i] = ac
            gram[i, after_j] = gram[after_j, i] = ae
            gram[after_i, j] = gram[j, after_i] = bc
            gram[after_i, after_j] = gram[after_j, after_i] = be
    return gram


@njit(cache=True)
def shared_products(starts, steps, values, m):
    """Dot products of ``m`` steps, from what each term, ``starts`` to ``starts``, is in each."""
    gram = np.zeros((m, m))
    for term in range(len(starts) - 1):
        for a in range(starts[term], starts[term + 1]):
            for b in range(starts[term], starts[term + 1]):
                if steps[b] <= steps[a]:
                    gram[steps[a], steps[b]] += values[a] * values[b]
    for i in range(m):
        for j in range(i):
            gram[j, i] = gram[i, j]
    return gram


@njit(cache=True, fastmath=REORDERED)
def forward(table, log_weight, sums, shares):
    """Fill ``sums`` (m + 1,) and ``shares``, a table.

    ``sums[left]`` is the log of the sum over all segmentations of the steps before the last
    ``left``; every segment counts ``log_weight`` more. A share is the probability, in the
    segmentations of the steps up to ``j``, that the last segment has this length.
    """
    m = len(table)
    sums[m] = 0.0
    for left in range(m - 1, -1, -1):
        row, share, before = table[m - left - 1], shares[m - left - 1], sums[left + 1 :]
        most = -np.inf
        for i in range(m - left):
            most = max(most, before[i] + row[i])
        total = 0.0
        for i in range(m - left):
            share[i] = exponential(max(before[i] + row[i] - most, LEAST))
            total += share[i]
        for i in range(m - left):
            share[i] /= total
        sums[left] = most + math.log(total) + log_weight


@njit(cache=True, fastmath=REORDERED)
def reweighted(shares, change, ratios):
    """What becomes of the sums of `forward` where every segment counts ``change`` more.

    Fills ``ratios`` (m + 1,), new to old sums, and returns the log of that of all steps, and mean
    and variance of the number of segments.
    """
    m = len(shares)
    factor = math.exp(change)
    count, square = np.zeros(m + 1), np.zeros(m + 1)  # times the ratio
    ratios[m] = 1.0
    for left in range(m - 1, -1, -1):
        share, ratio_before = shares[m - left - 1], ratios[left + 1 :]
        count_before, square_before = count[left + 1 :], square[left + 1 :]
        total = counted = squared = 0.0
        for i in range(m - left):
            total += share[i] * ratio_before[i]
            counted += share[i] * count_before[i]
            squared += share[i] * square_before[i]
        ratios[left] = factor * total
        count[left] = factor * (counted + total)
        square[left] = factor * (squared + 2.0 * counted + total)
    mean = count[0] / ratios[0]
    return math.log(ratios[0]), mean, max(square[0] / ratios[0] - mean**2, 0.0)


@njit(cache=True)
def forward_without_evidence(m, log_weight):
    """Log sum, mean and variance on a table of log lengths, in ``m`` operations.

    Σ over lengths L of L · z[j - L] is a running sum of running sums.
    """
    weight = math.exp(log_weight)
    scale = 0.0  # log of what the numbers below have been divided by
    # Σ z, Σ L z and the same for z · mean and z · mean square
    plain = np.array([1.0, 0.0, 0.0])
    ramp = np.zeros(3)
    z = np.zeros(3)
    for _ in range(m):
        ramp += plain
        z[0] = weight * ramp[0]
        z[1] = weight * (ramp[1] + ramp[0])
        z[2] = weight * (ramp[2] + 2.0 * ramp[1] + ramp[0])
        plain += z
        largest = max(plain[0], ramp[0])
        if largest > 1e100 or largest < 1e-100:
            plain /= largest
            ramp /= largest
            z /= largest
            scale += math.log(largest)
    mean = z[1] / z[0]
    return math.log(z[0]) + scale, mean, max(z[2] / z[0] - mean**2, 0.0)


@njit(cache=True)
def weight_for(table, segments, log_weight, sums, shares):
    """Log weight of a segment that makes ``segments`` expected, from a first guess.

    A table without columns stands for one of log lengths. Newton's method, bisection where it
    would leave the bracket or does not halve its steps: two numbers of segments may be so much
    likelier than those between them that it would jump back and forth.

    Returns the weight, the log of the sum over all segmentations, mean and variance of the number
    of segments. ``sums`` are filled as by `forward`; ``shares`` is room of the table's shape.
    """
    m = len(table)
    low, high = -np.inf, np.inf
    at = np.nan  # the weight of the shares
    step_before = np.inf
    ratios = np.ones(m + 1)
    for _ in range(200):
        if table.shape[1]:
            if not abs(log_weight - at) * m <= MOST_CHANGE:
                at = log_weight
                forward(table, at, sums, shares)
            total, mean, variance = reweighted(shares, log_weight - at, ratios)
            total += sums[0]
        else:
            total, mean, variance = forward_without_evidence(m, log_weight)
        off = segments - mean
        if abs(off) <= 1e-9 * segments:
            break
        if off > 0:
            low = log_weight
        else:
            high = log_weight
        # of the log of the number of boundaries, which is closer to a line
        boundaries = max(mean - 1.0, 1e-300)
        step = math.log((segments - 1.0) / boundaries) * boundaries / max(variance, 1e-300)
        step = min(max(step, -8.0), 8.0)
        following = log_weight + step
        is_slow = high - low < np.inf and abs(step) > abs(step_before) / 2.0
        if is_slow or not low < following < high:
            following = (low + high) / 2.0
        step_before = following - log_weight
        if following in (low, high):
            break
        log_weight = following
    sums += np.log(ratios)
    return log_weight, total, mean, variance


@njit(cache=True, fastmath=REORDERED)
def segment_sums(table, log_lengths, log_weight, sums, lags):
    """Sum over segments what they are likely to be: (m,), (lags, m) and a number.

    From the last step back: a boundary there has a probability, and so has each segment that ends
    with it, and the boundary before that. Returns the probability of a boundary after each step,
    that of steps ``lag`` apart sharing a segment, by the first of the two, and the expected sum of
    the evidence: of ``table``, what segments weigh, over ``log_lengths`` (m,), what they weigh
    without. ``log_weight`` and ``sums`` are those of `forward`.
    """
    m = len(table)
    reached = np.zeros(m + 1)
    reached[0] = 1.0
    shared = np.zeros((len(lags), m + 1))
    shares = np.empty(m)
    expected = 0.0
    for left in range(m):
        row = table[m - left - 1]
        sums_before, reached_before = sums[left + 1 :], reached[left + 1 :]
        here, rest = reached[left], log_weight - sums[left]
        for i in range(m - left):
            share = here * exponential(max(sums_before[i] + row[i] + rest, LEAST))
            shares[i] = share
            reached_before[i] += share
            expected += share * (row[i] - log_lengths[i])
        for which in range(len(lags)):
            first = lags[which]  # of the segments that are longer, from 0
            shared_before = shared[which, left + 1 :]
            ending = 0.0
            for i in range(first, m - left):
                shared_before[i] += shares[i]
                ending += shares[i]
            if first < m - left:
                shared[which, left + first] -= ending
    for which in range(len(lags)):
        running = 0.0
        for left in range(m, 0, -1):
            running += shared[which, left]
            shared[which, left] = min(max(running, 0.0), 1.0)
    return reached[m - 1 :: -1], shared[:, :0:-1], expected


@njit(cache=True)
def draw_ends(shares, uniform):
    """Draw segmentations by the shares of `forward`: (draws, m) True after a segment's last step.

    ``uniform`` (draws, m) are random numbers; one is used for every segment.
    """
    draws, m = uniform.shape
    ends = np.zeros((draws, m), dtype=np.bool_)
    for draw in range(draws):
        j = m
        used = 0
        while j > 0:
            ends[draw, j - 1] = True
            length = 1
            reached = shares[j - 1, 0]
            while length < j and reached <= uniform[draw, used]:
                reached += shares[j - 1, length]
                length += 1
            used += 1
            j -= length
    return ends


@njit(cache=True)
def expected_disagreement(masses, sums, windows, weights):
    """Expected Pk of hypotheses, (h, s) masses padded with zeros.

    ``sums`` (nodes, n + 1) are running sums of ``1 - 2q`` over the windows of each node, in the
    last place of each row the mean of ``q``; ``windows`` (nodes,) sizes; ``weights`` sum to 1.
    """
    n = sums.shape[1] - 2
    scores = np.zeros(len(masses))
    for h in range(len(masses)):
        for node in range(len(windows)):
            if weights[node] == 0.0:
                continue
            k = windows[node]
            inside = 0.0
            start = 0
            for mass in masses[h]:
                if mass > k:
                    inside += sums[node, start + mass - k] - sums[node, start]
                start += mass
            scores[h] += weights[node] * (sums[node, n + 1] + inside / (n - k))
    return scores


@njit(cache=True)
def inside_over_orders(lengths, points, weights, sums, k):
    """Mean over all orders of segments of what the windows of ``k`` within them cost.

    With a random number for each segment, by which they are ordered, those before a segment whose
    number is u are each there with probability u, whatever the others are. So the probability that
    it starts at s is the integral over u of a coefficient of Π (1 - u + u·x^length) over the
    others, a polynomial in u, which Gauss's rule sums exactly. Points up to 1/2 are enough: beyond
    it the order is reversed. There one factor of the product can be divided out without loss.

    ``points`` and ``weights`` (q,) are Gauss's rule on 0 … 1, up to 1/2 (a point there counts half)
    and ``sums`` (n - k + 1,) the running sum of what a window costs, as of `least_of_counts`.
    """
    n = lengths.sum()
    distinct = np.unique(lengths)
    mean = 0.0
    every, others = np.empty(n + 1), np.empty(n + 1)
    for point in range(len(points)):
        u = points[point]
        every[:] = 0.0
        every[0] = 1.0
        reached = 0
        for length in lengths:
            for s in range(reached, -1, -1):
                every[s + length] += u * every[s]
                every[s] *= 1.0 - u
            reached += length
        for length in distinct:
            if length <= k:
                continue
            share = weights[point] * (lengths == length).sum()
            last = n - length
            for s in range(last + 1):
                before = others[s - length] if s >= length else 0.0
                others[s] = (every[s] - u * before) / (1.0 - u)
                cost = sums[s + length - k] - sums[s]
                cost += sums[n - s - k] - sums[last - s]
                mean += share * others[s] * cost
    return mean


@njit(cache=True)
def least_disagreement(edges, sums, windows, weights):
    """Segment lengths, in units, with the least expected Pk of all; the fewest of those.

    ``edges`` (m + 1,) are the units before each step; the others as of `expected_disagreement`.
    """
    m = len(edges) - 1
    n = sums.shape[1] - 2
    least = np.full(m + 1, np.inf)
    last = np.zeros(m + 1, dtype=np.int64)
    least[0] = 0.0
    for j in range(1, m + 1):
        for i in range(j):
            cost = least[i] + 1e-12
            for node in range(len(windows)):
                k = windows[node]
                if weights[node] > 0.0 and edges[j] - edges[i] > k:
                    inside = sums[node, edges[j] - k] - sums[node, edges[i]]
                    cost += weights[node] * inside / (n - k)
            if cost < least[j]:
                least[j] = cost
                last[j] = i
    lengths = []
    j = m
    while j > 0:
        lengths.append(edges[j] - edges[last[j]])
        j = last[j]
    return np.array(lengths[::-1])


@njit(cache=True)
def least_of_counts(edges, sums, k, most):
    """Least sum over windows of ``k`` of all segmentations into 1 … ``most`` segments.

    ``edges`` (m + 1,) are the units before each step; ``sums`` (n - k + 1,) the running sum of what
    a window costs that lies within a segment. A segment from a to b costs ``sums[b - k] - sums[a]``
    where it is longer than k, else nothing; so each count takes one pass over the edges.
    """
    m = len(edges) - 1
    found = np.full(most + 1, np.inf)
    before = np.full(m + 1, np.inf)
    before[0] = 0.0
    for count in range(1, min(most, m) + 1):
        after = np.full(m + 1, np.inf)
        least = np.inf  # of starts that are at least k before the end, without their sums
        start = 0
        for j in range(1, m + 1):
            while edges[start] <= edges[j] - k:
                least = min(least, before[start] - sums[edges[start]])
                start += 1
            if least < np.inf:
                after[j] = least + sums[edges[j] - k]
            for i in range(start, j):
                after[j] = min(after[j], before[i])
        before = after
        found[count] = before[m]
    return found
