r"""What a search for boundaries gains on the same units in random order.

With :math:`W` the within-segment sum of squared distances to the centroids, the gain of a
segmentation is :math:`W_0 - W`, where :math:`W_0` has no boundary. `search_gains` gives, for every
number of boundaries ``k``, the largest gain any ``k`` boundaries reach, averaged over shuffles.

The search is exact: least cost of the first ``j`` units with ``k`` boundaries, from the least costs
with ``k - 1``. A segment costs the sum of its pairs' squared distances over its units, so positive
terms only are added. One pass gives every ``k`` and costs ``n² k``.

Documents of more than `WHOLE` units take the exact search for up to `ANCHOR` boundaries. Beyond
these, the shuffled units are cut into windows of at most `WHOLE` units, and the gain over chance is
read at the same rate of boundaries per unit. Windows miss a few per cent at low rates; what they
miss at `ANCHOR` boundaries is known, shrinks about as ``1/k``, and is made up for. On 1,000 to
1,200 units (Gaussian vectors of 2 and 384 dimensions, MiniLM vectors of Choi's texts and of a
meeting) with 96 shuffles the gain over chance is then within 0.5 % of the exact search on the same
shuffles (up to 100 boundaries), and within 1.3 % on others, which is what shuffles leave open.
Above `LONGEST` units the search for few boundaries runs in windows, too, of at most `LONGEST`
units. There the gain over chance is too low, by up to a third with 1 boundary per window, 11 % with
2.5, 6 % with 5, 4 % with 10 and 3 % with 20.

On CPUs the search of a document is a compiled loop that is run for it alone, and every sum has one
order: the gains of ``k`` boundaries follow from the vectors, the shuffles and the seed, to the last
bit, whatever else is searched and on how many threads. At a time it holds two tables of at most
`LONGEST` × `LONGEST` entries for each thread (64 MiB).

Letters: ``b`` documents or shuffles of them, ``n`` units (padded), ``d`` dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reffree.arrays import Floats
from reffree.parallel import together
from reffree.scoring.pairs import rounding_of, squared_distances

if TYPE_CHECKING:
    from reffree.scoring.vectors import Vectors


WHOLE = 512
"""Documents up to this many units are searched exactly whatever the number of boundaries."""

LONGEST = 2048
"""Documents up to this many units are searched exactly for up to `ANCHOR` boundaries."""

ANCHOR = 32
"""Boundaries from which documents longer than `WHOLE` are searched in windows."""

ELEMENTS = 1 << 21
"""Entries of one cost table held at a time (16 MiB), but at least one table of `LONGEST` units."""

COMPILED_DEVICES = frozenset({"cpu"})
"""Where the search runs as a compiled loop; elsewhere it is torch's."""

SHUFFLES_AT_ONCE = 128
"""Orders of the units that are drawn before they are searched."""

SIMILAR = 1.25
"""Documents searched together differ at most by this factor in length."""


def search_gains(
    vectors: list[Tensor],
    k_max: list[int],
    *,
    n_shuffles: int,
    seed: int,
    rounding: list[float] | None = None,
) -> list[Tensor]:
    """Mean over shuffles of the largest gain that ``k`` boundaries reach, ``k = 0 … k_max``.

    The shuffles of a document follow from ``seed`` and its length alone, so neither the other
    documents nor their order change its gains.

    Args:
        vectors: one document each, a row per unit; same dimensions, same device.
        k_max: largest number of boundaries wanted for each document, less than its units.
        n_shuffles: shuffles averaged.
        seed: of the shuffles.
        rounding: of each document's type as it was given: see `rounding_of`; else of its vectors'.

    Returns:
        One float64 tensor per document, of ``k_max + 1`` gains.

    >>> units = torch.tensor([[0.0], [0.0], [1.0], [1.0]])
    >>> search_gains([units], [3], n_shuffles=64, seed=0)[0].round(decimals=2).tolist()
    [0.0, 0.5, 0.81, 1.0]
    """
    noise = [rounding_of(x.dtype) for x in vectors] if rounding is None else rounding
    if vectors and vectors[0].device.type in COMPILED_DEVICES:
        given = zip(vectors, k_max, noise, strict=True)
        return [_on_cpu(x, k, n_shuffles, seed, own) for x, k, own in given]
    gains = [torch.empty(0)] * len(vectors)
    for batch in _batches([len(x) for x in vectors]):
        documents = [vectors[i].detach().double() for i in batch]
        wanted, own = max(k_max[i] for i in batch), [noise[i] for i in batch]
        if len(documents[0]) > WHOLE:
            found = [_long_gains(documents[0], wanted, n_shuffles, seed, own)]
        else:
            found = list(_exact_gains(documents, wanted, n_shuffles, seed, own))
        for i, values in zip(batch, found, strict=True):
            gains[i] = values[: k_max[i] + 1]
    return gains


class Searched(NamedTuple):
    """What a search found in one document, on the scale of its vectors as they are held."""

    whole: float  # W0
    gains: Floats  # (k_max + 1,) mean over shuffles of the largest gain


def search_document(vectors: Vectors, k_max: int, *, n_shuffles: int, seed: int) -> Searched:
    """Search one document as `search_gains` does, and measure it, by compiled loops."""
    from reffree.scoring.pairs_kernel import sum_to_mean
    from reffree.scoring.search_kernel import sum_pairs

    n = len(vectors)
    if n > LONGEST:
        whole = float(sum_to_mean(vectors.rows))
        if whole <= vectors.rounding * float(np.square(vectors.length).sum()):
            whole = 0.0
        return Searched(whole, _gains_from_windows(vectors, whole, None, k_max, n_shuffles, seed))
    squared = _square(vectors, torch.get_num_threads())
    whole = sum_pairs(squared) / n
    if n <= WHOLE:
        return Searched(whole, _mean_gains(squared, min(k_max, n - 1), n_shuffles, seed))
    return Searched(whole, _gains_from_windows(vectors, whole, squared, k_max, n_shuffles, seed))


def _on_cpu(x: Tensor, k_max: int, n_shuffles: int, seed: int, rounding: float) -> Tensor:
    """Gains of one document on the scale of the vectors as given."""
    from reffree.scoring.vectors import Vectors

    vectors = replace(Vectors.of(x), rounding=rounding)
    found = search_document(vectors, k_max, n_shuffles=n_shuffles, seed=seed)
    vectors.discard()
    return torch.from_numpy(np.ldexp(found.gains, 2 * vectors.exponent))


def _square(vectors: Vectors, threads: int) -> Floats:
    """Squared distances of all units."""
    from reffree.scoring.pairs_kernel import measure_square

    squared = np.empty((len(vectors), len(vectors)))
    args = (vectors.rows, vectors.length, vectors.rounding, squared)
    together([partial(measure_square, first, threads, *args) for first in range(threads)])
    return squared


def _mean_gains(squared: Floats, k_max: int, n_shuffles: int, seed: int) -> Floats:
    """Mean over shuffles of the largest gains."""
    from reffree.scoring.search_kernel import add_rows, largest_gains_of

    total = np.zeros(k_max + 1)
    rng = np.random.default_rng([seed, len(squared)])
    for first in range(0, n_shuffles, SHUFFLES_AT_ONCE):
        count = min(SHUFFLES_AT_ONCE, n_shuffles - first)
        orders = np.stack([rng.permutation(len(squared)) for _ in range(count)])
        add_rows(largest_gains_of(squared, orders, k_max, torch.get_num_threads()), total)
    return total / n_shuffles


def _gains_from_windows(
    vectors: Vectors, whole: float, squared: Floats | None, k_max: int, n_shuffles: int, seed: int
) -> Floats:
    """Exact for few boundaries if all squared distances are there, from windows for many."""
    n = len(vectors)
    k = np.arange(k_max + 1, dtype=np.float64)
    few = min(k_max, ANCHOR)
    if squared is not None:
        exact = _mean_gains(squared, few, n_shuffles, seed)
        excess = exact / (whole or 1.0) - k[: few + 1] / (n - 1)
    else:
        excess = _excess_in_windows(vectors, LONGEST, few, n_shuffles, seed)
    if k_max > ANCHOR:
        rough = _excess_in_windows(vectors, WHOLE, k_max, n_shuffles, seed)
        at_anchor = float(rough[ANCHOR])
        missed = (excess[-1] - at_anchor) / (at_anchor if at_anchor > 0 else 1.0)
        many = rough * (1 + missed * ANCHOR / np.maximum(k, ANCHOR))
        excess = np.concatenate([excess, many[ANCHOR + 1 :]])
    gains: Floats = (k / (n - 1) + excess) * whole
    return gains


def _excess_in_windows(
    vectors: Vectors, most_units: int, k_max: int, n_shuffles: int, seed: int
) -> Floats:
    """Gain over chance, as a fraction of ``W0``, from windows: see `_window_excess`."""
    from reffree.scoring.search_kernel import add_rows, largest_gains_of, sum_pairs

    n = len(vectors)
    n_windows = -(-n // most_units)
    size = n // n_windows
    k_window = -(-k_max * (size - 1) // (n - 1))
    in_order = np.arange(size)[None]

    def search(window: NDArray[np.int64]) -> Floats:
        part = vectors[window]
        squared = _square(part, 1)
        part.discard()
        gains = largest_gains_of(squared, in_order, k_window, 1)[0]
        return np.append(gains, sum_pairs(squared) / size)

    n_orders = -(-n_shuffles // n_windows)
    total = np.zeros(k_window + 2)
    rng = np.random.default_rng([seed, n])
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        for _ in range(n_orders):
            windows = rng.permutation(n)[: n_windows * size].reshape(n_windows, size)
            for found in pool.map(search, windows):
                add_rows(found[None], total)
    gains, whole = total[:-1] / (n_orders * n_windows), total[-1] / (n_orders * n_windows)
    k = np.arange(k_max + 1, dtype=np.float64)
    chance = np.arange(k_window + 1) / (size - 1)
    excess = gains / (whole if whole > 0 else 1.0) - chance  # (k_window + 1,)
    place = k * (size - 1) / (n - 1)
    below = place.astype(np.int64)
    above = np.minimum(below + 1, k_window)
    between: Floats = excess[below] + (place - below) * (excess[above] - excess[below])
    return between  # (k_max + 1,)


def largest_gains(squared: Tensor, length: Tensor, k_max: int) -> Tensor:
    """Gain of the best segmentation with ``k = 0 … k_max`` boundaries, the units in order.

    Args:
        squared: (b, n, n) squared distances; anything finite in the padding.
        length: (b,) units of each document. From as many boundaries on as there are units, a row
            repeats its last gain.
        k_max: largest number of boundaries.
    """
    cost = _segment_costs(squared)
    b, n, _ = cost.shape
    least = cost[:, :, 0].clone()  # (b, n) cost of the units up to each one
    last = (length - 1)[:, None]
    left = [least.gather(1, last)]
    workspace = torch.empty_like(cost).flatten()
    for k in range(1, min(k_max, n - 1) + 1):
        size = n - k
        split = workspace[: b * size * size].view(b, size, size)
        torch.add(least[:, None, k - 1 : -1], cost[:, k:, k:], out=split)
        least[:, k:] = split.amin(2)
        left.append(least.gather(1, last))
    return left[0] - torch.cat(left, 1)  # (b, k_max + 1)


def _segment_costs(squared: Tensor) -> Tensor:
    """``[j, i]`` = sum of squared distances to the centroid of the units ``i … j``, ∞ if none.

    That is the sum over their pairs divided by their number.
    """
    n = squared.shape[1]
    pairs = squared.tril(-1).flip(2).cumsum_(2).flip(2).cumsum_(1)  # (b, n, n)
    index = torch.arange(n, dtype=squared.dtype, device=squared.device)
    share = (index[:, None] - index + 1).clamp_(min=1).reciprocal_()  # (n, n)
    nothing = torch.full_like(share, torch.inf).triu_(1)
    return torch.addcmul(nothing, pairs, share)  # (b, n, n)


def _exact_gains(
    documents: list[Tensor], k_max: int, n_shuffles: int, seed: int, rounding: list[float]
) -> Tensor:
    """Mean over shuffles of the largest gains of documents of similar length."""
    length = torch.tensor([len(x) for x in documents], device=documents[0].device)
    padded = torch.nn.utils.rnn.pad_sequence(documents, batch_first=True)
    squared = _pairs(padded, length, rounding)
    b, n, _ = squared.shape
    # Padding stays where it is.
    orders = torch.arange(n, device=squared.device).repeat(b, n_shuffles, 1)  # (b, shuffles, n)
    shuffles = {len(x): _shuffles(len(x), n_shuffles, seed) for x in documents}
    for row, x in zip(orders, documents, strict=True):
        row[:, : len(x)] = shuffles[len(x)]
    document = torch.arange(b, device=squared.device)[:, None, None]
    parts = []
    for order in torch.split(orders, max(1, ELEMENTS // (b * n * n)), dim=1):
        rows = squared[document, order]  # (b, shuffles, n, n)
        shuffled = rows.gather(3, order[:, :, None].expand_as(rows)).flatten(0, 1)
        gains = largest_gains(shuffled, length.repeat_interleave(order.shape[1]), k_max)
        parts.append(gains.view(b, order.shape[1], -1))  # (b, shuffles, k_max + 1)
    return torch.cat(parts, 1).mean(1)  # (b, k_max + 1)


def _long_gains(
    document: Tensor, k_max: int, n_shuffles: int, seed: int, rounding: list[float]
) -> Tensor:
    """Exact for few boundaries, from windows for many."""
    n = len(document)
    whole = (document - document.mean(0)).square().sum()
    k = torch.arange(k_max + 1, dtype=document.dtype, device=document.device)
    few = min(k_max, ANCHOR)
    if n <= LONGEST:
        exact = _exact_gains([document], few, n_shuffles, seed, rounding)[0]
        excess = exact / torch.where(whole > 0, whole, 1.0) - k[: few + 1] / (n - 1)
    else:
        excess = _window_excess(document, LONGEST, few, n_shuffles, seed, rounding)
    if k_max > ANCHOR:
        rough = _window_excess(document, WHOLE, k_max, n_shuffles, seed, rounding)
        missed = (excess[-1] - rough[ANCHOR]) / torch.where(rough[ANCHOR] > 0, rough[ANCHOR], 1.0)
        many = rough * (1 + missed * ANCHOR / k.clamp(min=ANCHOR))
        excess = torch.cat([excess, many[ANCHOR + 1 :]])
    return (k / (n - 1) + excess) * whole  # (k_max + 1,)


def _window_excess(
    document: Tensor,
    most_units: int,
    k_max: int,
    n_shuffles: int,
    seed: int,
    rounding: list[float],
) -> Tensor:
    """Gain over chance, as a fraction of ``W0``, from windows of the shuffled document.

    At least as many windows are searched as there are shuffles.
    """
    n, d = document.shape
    n_windows = -(-n // most_units)
    size = n // n_windows
    k_window = -(-k_max * (size - 1) // (n - 1))
    shuffles = _shuffles(n, -(-n_shuffles // n_windows), seed)[:, : n_windows * size]
    windows = shuffles.reshape(-1, size).to(document.device)  # (windows, size)
    parts = []
    for window in torch.split(windows, max(1, ELEMENTS // (size * max(size, d)))):
        length = torch.full((len(window),), size, device=document.device)
        squared = _pairs(document[window], length, rounding * len(window))
        whole = squared.sum((1, 2))[:, None] / (2 * size)
        gains = largest_gains(squared, length, k_window)
        parts.append(torch.cat([gains, whole], 1))
    gains = torch.cat(parts).mean(0)
    k = torch.arange(k_max + 1, dtype=document.dtype, device=document.device)
    chance = k[: k_window + 1] / (size - 1)
    excess = gains[:-1] / torch.where(gains[-1] > 0, gains[-1], 1.0) - chance  # (k_window + 1,)
    place = (k * (size - 1) / (n - 1)).clamp(max=k_window)
    below = place.long()
    above = (below + 1).clamp(max=k_window)
    return torch.lerp(excess[below], excess[above], place - below)  # (k_max + 1,)


def _pairs(x: Tensor, length: Tensor, rounding: list[float]) -> Tensor:
    """Squared distances between the units of each document; finite in the padding.

    Those that rounding alone can make are 0.
    """
    is_unit = torch.arange(x.shape[1], device=x.device) < length[:, None]  # (b, n)
    mean = x.sum(1, keepdim=True) / length[:, None, None]
    centred = torch.where(is_unit[:, :, None], x - mean, 0.0)  # (b, n, d)
    everything = slice(0, x.shape[1])
    squared = squared_distances(x, centred, everything, everything)  # (b, n, n)
    scale = x.square().sum(2) * torch.tensor(rounding, dtype=x.dtype, device=x.device)[:, None]
    return squared.masked_fill_(squared <= scale[:, :, None] + scale[:, None], 0.0)


def _shuffles(n: int, n_shuffles: int, seed: int) -> Tensor:
    rng = np.random.default_rng([seed, n])
    return torch.from_numpy(np.stack([rng.permutation(n) for _ in range(n_shuffles)]))


def _batches(lengths: list[int]) -> Iterator[list[int]]:
    """Group documents of similar length whose tables fit together; long ones go alone."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        n = lengths[i]
        if batch and (
            n > WHOLE or (len(batch) + 1) * n * n > ELEMENTS or n > SIMILAR * lengths[batch[0]] + 1
        ):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
