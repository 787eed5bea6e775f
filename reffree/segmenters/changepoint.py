r"""Kernel change-point detection (Harchaoui & Cappé 2007; Arlot, Celisse & Harchaoui 2019).

The cost of a segment of units :math:`I` is their squared distance to the mean in feature space,

.. math:: c(I) = \sum_{i \in I} k(x_i, x_i) - \frac{1}{|I|} \sum_{i, j \in I} k(x_i, x_j),

and the segmentation found has the least total cost of all with ``k`` boundaries (by ruptures,
Truong, Oudre & Vayatis 2020), or the least total cost plus ``penalty`` per boundary of all (not by
ruptures, whose pruning may lose the optimum when segments have a least size).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from reffree.data.segmentation import Segmentation
from reffree.segmenters.base import Inputs, Segmenter, directions, to_scale
from reffree.util.arrays import Floats
from reffree.util.bounds import Positive
from reffree.util.errors import InputError

Kernel = Literal["linear", "cosine", "rbf"]

SAMPLED = 1024
"""Units, spread evenly, whose pairs or steps stand for all in documents longer than that."""

NEAREST, FARTHEST = 0.01, 100.0
"""Bounds of the exponent of ``rbf``; they are those of ruptures."""

SAME = 1e-12
"""Squared distances between units, relative to the largest component, that count as none."""

ROUNDING = 1e-24
"""Squared distances, relative to squared lengths, that are rounding in any case."""


@dataclass(frozen=True, slots=True)
class ChangePoint(Segmenter):
    """The best ``k`` boundaries, or all that each save more cost than ``penalty``.

    Without either the penalty is `noise_penalty`, what a boundary could save in noise. Kernels:
    ``linear`` (squared Euclidean distances), ``cosine`` (the same on directions; a zero vector
    stays zero), ``rbf`` (width by the median of the squared distances). Segments have ``min_size``
    units or more; there are fewer boundaries than ``k`` where no more fit.
    """

    kernel: Kernel = "cosine"
    k: Literal["gold"] | int | None = None
    penalty: float | None = None
    min_size: Positive = 2
    name: ClassVar[str] = "changepoint"
    needs_embeddings: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Segmenter.__post_init__(self)
        if self.penalty is not None and (self.k is not None or not 0 < self.penalty < np.inf):
            raise InputError(
                f"penalty = {self.penalty} and k = {self.k}",
                expected="one of the two, a penalty above 0",
                remedy="leave both out for the penalty that noise suggests",
            )

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Segment every document."""
        wanted = inputs.n_boundaries(self.k, self.name)
        return tuple(map(self._segment, inputs.vectors(self.name), wanted))

    def _segment(self, vectors: NDArray[np.generic], k: int | None) -> Segmentation:
        n = len(vectors)
        x, exponent = _features(vectors, self.kernel)
        gamma = _gamma(x) if self.kernel == "rbf" else None
        most = n // self.min_size - 1
        if k is not None:
            return _best(x, gamma, min(k, most), self.min_size)
        if most < 1 or not x.any():
            return Segmentation((n,))
        if self.penalty is None:
            return _cheapest(x, gamma, noise_penalty(_noise(x, gamma), n), self.min_size)
        with np.errstate(over="ignore", under="ignore"):
            penalty = float(np.ldexp(self.penalty, -2 * exponent))
        return _cheapest(x, gamma, penalty, self.min_size)


def noise_penalty(eigenvalues: Floats, n_units: int) -> float:
    r"""Return what one boundary saves in noise with probability 1/n at most.

    Between ``n`` independent Gaussian units whose covariance has the eigenvalues
    :math:`\lambda`, a boundary at a given place saves :math:`\sum_d \lambda_d z_d^2` with
    independent standard normal :math:`z`. By Chernoff's bound that exceeds :math:`q` with
    probability at most :math:`e^{-x}` if :math:`\max_s [s q + \frac12 \sum_d \log(1 - 2 s
    \lambda_d)] = x`. With :math:`x = \log n`, as in BIC, less than one of the gaps is expected to
    save as much.
    """
    largest = float(eigenvalues.max())
    share = eigenvalues / largest
    low, high = 0.0, 1.0  # of 2 s λ for the largest eigenvalue
    for _ in range(60):
        middle = (low + high) / 2
        left = 1.0 - middle * share
        exponent = (middle * (share / left).sum() + np.log(left).sum()) / 2
        low, high = (middle, high) if exponent < np.log(n_units) else (low, middle)
    return largest * float((share / (1.0 - low * share)).sum())


def _features(vectors: NDArray[np.generic], kernel: Kernel) -> tuple[Floats, int]:
    """Vectors whose linear or Gaussian kernel is the one asked for, 0 if all units are the same.

    They are taken from their mean, on which costs do not depend and near which nothing cancels, and
    divided by a power of two, which is returned where costs depend on it.
    """
    x, exponent = to_scale(vectors)
    if kernel == "cosine":
        x, exponent = directions(x), 0
    centred = x - x.mean(0)
    if np.square(centred).sum() <= ROUNDING * np.square(x).sum():
        return np.zeros_like(x), 0
    x, further = to_scale(centred)
    return x, 0 if kernel == "rbf" else exponent + further


def _sampled(n: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, n - 1, min(n, SAMPLED)).astype(np.int64))


def _gamma(x: Floats) -> float:
    """One over the median squared distance, of units that differ if most do not."""
    chosen = x[_sampled(len(x))]
    pairs = _squared(chosen, chosen)[np.triu_indices(len(chosen), 1)]
    apart = pairs[pairs > SAME]
    if not len(apart):
        return 1.0
    median = float(np.median(pairs))
    return 1.0 / (median if median > SAME else float(np.median(apart)))


def _squared(x: Floats, y: Floats) -> Floats:
    scale = np.square(x).sum(1)[:, None] + np.square(y).sum(1)
    squared: Floats = scale - 2 * (x @ y.T)
    return np.maximum(squared, 0.0)


def _kernel(x: Floats, y: Floats, gamma: float | None) -> Floats:
    if gamma is None:
        products: Floats = x @ y.T
        return products
    return np.exp(-np.clip(gamma * _squared(x, y), NEAREST, FARTHEST))


def _noise(x: Floats, gamma: float | None) -> Floats:
    """Eigenvalues of the units' covariance, from steps between neighbours.

    Half the mean square of a step is the variance of independent units, and unlike the variance of
    the document it hardly grows with the distance of its topics.
    """
    n, d = x.shape
    if gamma is None and d <= SAMPLED:
        steps = np.diff(x, axis=0)
        products = steps.T @ steps if d < n else steps @ steps.T
        count = n - 1
    else:
        at = _sampled(n - 1)
        before, after = x[at], x[at + 1]
        across = _kernel(before, after, gamma)
        products = _kernel(before, before, gamma) + _kernel(after, after, gamma)
        products -= across + across.T
        count = len(at)
    eigenvalues: Floats = np.linalg.eigvalsh(products / (2 * count))
    return np.maximum(eigenvalues, 0.0)


def _best(x: Floats, gamma: float | None, k: int, min_size: int) -> Segmentation:
    """Least cost of all segmentations with ``k`` boundaries."""
    if k < 1:
        return Segmentation((len(x),))
    kernel, params = ("linear", None) if gamma is None else ("rbf", {"gamma": gamma})
    from ruptures import KernelCPD

    model = KernelCPD(kernel=kernel, min_size=min_size, params=params)
    ends = model.fit(x).predict(n_bkps=k)
    return Segmentation.from_boundaries([int(end) for end in ends[:-1]], len(x))


def _cheapest(x: Floats, gamma: float | None, penalty: float, min_size: int) -> Segmentation:
    """Least cost plus ``penalty`` per boundary of all segmentations."""
    n = len(x)
    least = np.full(n + 1, np.inf)  # [j] of the first j units, with a penalty for every segment
    least[0] = 0.0
    last = np.zeros(n + 1, dtype=np.int64)  # [j] where the last segment of these starts
    own, pairs = np.zeros(n), np.zeros(n)  # [i] Σ k(x, x), ΣΣ k(x, y) over the units i … j - 1
    for j in range(1, n + 1):
        column = _kernel(x[:j], x[j - 1 : j], gamma)[:, 0]
        pairs[:j] += 2 * np.cumsum(column[::-1])[::-1] - column[-1]
        own[:j] += column[-1]
        starts = slice(0, max(0, j - min_size + 1))
        size = np.arange(j, j - starts.stop, -1)
        total = least[starts] + (own[starts] - pairs[starts] / size) + penalty
        if len(total):
            last[j] = np.argmin(total)
            least[j] = total[last[j]]
    ends, j = [], int(last[n])
    while j > 0:
        ends.append(j)
        j = int(last[j])
    return Segmentation.from_boundaries(ends, n)
