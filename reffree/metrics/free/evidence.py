"""How likely stretches of a document are to be segments: the evidence of vectors and of words.

The formulas are in docs/definitions.md (Expected errors). A document is read in *steps*, its units,
or `step_size` of them where it is long. A stretch's gain is the log Bayes factor of a mean of its
own, with a third of the variance between segments, tempered: noise of one standard deviation moves
it by one at most, and by less where neighbours resemble each other whatever the topic.

Everything is estimated from the document, without gold, but two constants. Of the third (with it
`WITHIN`), tried were a fifth, a third and a half: on each of five corpora (Wiki-50, TIAGE, Choi,
QMSum, stories) the other four chose the third, for QMSum the half. Of the assumed length, which
stands for `WITHIN` in long segments, a quarter, a half, all, twice and all less 2 to 6 were tried
on eighteen corpora: the more, the higher is correlation with Pk, and the nearer come blind cuts to
gold; on texts of short segments with all of it, they pass it.
The form of the evidence, too, was found by trying some twenty variants on these corpora, so figures
on them are in-sample.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reffree.metrics.free.fast.segmentations import (
    add_scaled,
    dot_products,
    shared_products,
    squared_sums,
)
from reffree.util.arrays import Floats, Integers
from reffree.util.words import english

MOST_STEPS = 1024
"""Documents of more units are read in steps of several, so that time and memory stay bounded."""

MOST_DIMENSIONS = 2000.0
"""Effective dimensions are not told apart beyond this: so many steps would be needed."""

NO_VARIANCE = 1e-12
"""Variance, relative to the vectors' squared lengths, below which steps are all the same."""

WITHIN = 2.0
"""Variance inside segments, as a multiple of that between them."""

NO_CORRELATION = 1e-9
"""Correlations up to this are none, whichever way they were rounded."""

SURE = 1e-6
"""A scorer's probabilities are taken to be this far from 0 and 1."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known of a document besides its vectors."""

    units: Sequence[str] | None = None  # its text
    boundary_probabilities: dict[str, Floats] = field(default_factory=dict)
    """A trained scorer's folder → the probability of a boundary in each gap."""


@dataclass(frozen=True, slots=True)
class Coherence:
    """What one source sees in every stretch, as tables (see `fast.segmentations`)."""

    products: Floats  # (m, m) dot products of the document's steps, their variance 1
    scale: float  # √(D/2)
    correlations: Floats  # between steps 1, 2, … apart, up to the first that is not positive
    coherence: Floats  # √(D/2) b
    means: Floats  # its mean over all stretches of each length

    @classmethod
    def of(cls, products: Floats, scale: float, correlations: Floats, order: Integers) -> Coherence:
        """Look at every stretch of the steps in an order."""
        m = len(products)
        coherence = squared_sums(products, order)
        coherence *= scale / np.arange(1, m + 1)
        means = coherence.sum(0) / np.arange(m, 0, -1)  # cells of no stretch are 0
        return cls(products, scale, correlations, coherence, means)

    def reordered(self, order: Integers) -> Coherence:
        """Return what there is to be seen in the document's steps in another order.

        Scale and correlations stay, so that gains and evidence are tempered alike.
        """
        return Coherence.of(self.products, self.scale, self.correlations, order)

    def add_gain(self, table: Floats, length: float) -> None:
        """Add log Bayes factors of a mean of its own, for segments of about ``length`` steps."""
        lengths = np.arange(1, len(self.coherence) + 1)
        occam = WITHIN / (1 + WITHIN) * np.log1p(lengths / WITHIN)
        temper = self.temper(length)
        slopes = temper * lengths / (lengths + WITHIN)
        add_scaled(table, self.coherence, slopes, -temper * self.scale * occam)

    def add_evidence(self, table: Floats, length: float, weight: float) -> None:
        """Add gains over the mean gain of all stretches of their length, times a weight.

        Of long segments, shorter stretches are parts: they count for less.
        """
        lengths = np.arange(1, len(self.coherence) + 1)
        within = max(WITHIN, length - WITHIN)
        slopes = weight * self.temper(length) * lengths / (lengths + within)
        add_scaled(table, self.coherence, slopes, -slopes * self.means)

    def temper(self, length: float) -> float:
        """``1/T`` for segments of about ``length`` steps.

        Correlation that such segments explain is no noise. Were lengths as the prior has them,
        steps ``l`` apart would share a segment with probability ``s = exp(-2l/L) (1 + l/L)``; the
        segments explain as much as fits under the correlations of up to half a segment.
        """
        lag = np.arange(1, len(self.correlations) + 1)
        shared = np.exp(-2 * lag / length) * (1 + lag / length)
        near = max(1, round(length / 2))
        explained = 0.0
        if len(lag) >= near:
            explained = float((self.correlations / shared)[:near].min())
        left = np.maximum(self.correlations - explained * shared, 0.0)
        return 1 / (1 + 2 * float(left.sum()))


def step_size(n_units: int) -> int:
    """Units in a step."""
    return -(-n_units // MOST_STEPS)


def step_edges(n_units: int) -> NDArray[np.int64]:
    """Units before each step, and all."""
    return np.append(np.arange(0, n_units, step_size(n_units)), n_units)


def embedding_coherence(embeddings: NDArray[np.generic]) -> Coherence | None:
    """Coherence of vectors scaled to length 1; None where all steps are the same."""
    # By a power of two: squares neither overflow nor vanish, and no bit is lost.
    x = np.asarray(embeddings, dtype=np.float64)
    x = np.ldexp(x, -int(np.frexp(np.abs(x).max(initial=0.0))[1]))
    length = np.sqrt(np.einsum("nd,nd->n", x, x))
    edges = step_edges(len(x))
    x /= np.where(length > 0, length, 1.0)[:, None]
    if len(edges) <= len(x):
        x = np.add.reduceat(x, edges[:-1], axis=0) / np.diff(edges)[:, None]
    size = float(np.einsum("md,md->", x, x))
    x -= x.mean(0)
    return _coherence(dot_products(np.ascontiguousarray(x)), size)


def word_coherence(units: Sequence[str]) -> Coherence | None:
    """Coherence of the terms in the text; None where all steps are the same.

    A unit's vector has the rarity ``log((n + 1)/df)`` of each of its terms, and is divided by the
    square root of its length: long units count for more, but not by as much as they are longer.
    """
    terms = english().terms(units)
    n = len(units)
    unit = np.repeat(np.arange(n), np.diff(terms.edges))
    pairs = np.divmod(np.unique(unit * terms.n_distinct + terms.ids), max(1, terms.n_distinct))
    rarity = np.log((n + 1) / np.maximum(np.bincount(pairs[1], minlength=terms.n_distinct), 1))
    values = rarity[pairs[1]]
    length = np.sqrt(np.bincount(pairs[0], values**2, minlength=n))
    size = np.diff(step_edges(n)).astype(np.float64)
    step = pairs[0] // step_size(n)
    values = values / (np.sqrt(length[pairs[0]]) * size[step])
    order = np.argsort(pairs[1], kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(pairs[1])))
    gram = shared_products(starts, step[order], values[order], len(size))
    mean, size_of_all = gram.mean(0), float(np.trace(gram))
    gram -= mean + mean[:, None] - mean.mean()
    return _coherence(gram, size_of_all)


def scorer_evidence(probabilities: Floats, n_units: int) -> Floats:
    """Log odds of a boundary after each step, from its probability in each gap: (m,)."""
    p = np.clip(np.asarray(probabilities, dtype=np.float64), SURE, 1 - SURE)
    return step_odds(np.log(p) - np.log1p(-p), n_units)


def step_odds(odds: Floats, n_units: int) -> Floats:
    """Log odds after each step but the last, the largest of the gaps near it; there 0: (m,)."""
    reach = step_size(n_units) // 2
    inner = step_edges(n_units)[1:-1] - 1
    near = np.clip(inner[:, None] + np.arange(-reach, reach + 1), 0, len(odds) - 1)
    return np.append(odds[near].max(1), 0.0)


def _coherence(gram: Floats, size: float) -> Coherence | None:
    """Coherence of every stretch, from the dot products of steps, which are scaled in place.

    ``size`` is the sum of the steps' squared lengths before their mean was taken away.
    """
    m = len(gram)
    total = float(np.trace(gram))
    if total <= NO_VARIANCE * size or m < 2:
        return None
    seen = total**2 / float(np.einsum("ij,ij->", gram, gram))
    dimension = 1 / max(1 / seen - 1 / m, 1 / MOST_DIMENSIONS)
    gram *= m / total
    return Coherence.of(gram, math.sqrt(dimension / 2), _correlations(gram), np.arange(m))


def _correlations(products: Floats) -> Floats:
    """Correlations of steps 1, 2, … apart up to the first that is not positive.

    Up to a quarter of the document at most. Its mean, which was taken away, makes every
    correlation too small by about ``1/m``.
    """
    m = len(products)
    found = []
    for lag in range(1, min(max(2, m // 4), m)):
        correlation = float(np.diagonal(products, lag).mean()) + 1 / m
        if correlation <= NO_CORRELATION:
            break
        found.append(correlation)
    return np.array(found)
