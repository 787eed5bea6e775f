"""Scores against chance: the same segment lengths in random order.

A raw reference-free score depends on how many segments there are and how long they are. The null
of a hypothesis is the same document cut into the same lengths in random order; to be as good as
such arrangements or better is a significance test that needs no gold labels. Documents combine by
averaging: draw ``j`` of the corpus is the mean over documents of their draws ``j``, so the corpus
p-value is itself that of a permutation test, in which documents are permuted independently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reffree.data.corpus import Corpus
from reffree.data.masses import Masses, stack_masses
from reffree.evaluate.scores import Scores, average_weight, corpus_mean, filled_weights
from reffree.evaluate.table import NullTest
from reffree.metrics.free.evidence import Reading
from reffree.metrics.free.result import FreeMetric
from reffree.util.arrays import Floats
from reffree.util.seeds import rng_for

if TYPE_CHECKING:
    import torch


DocumentTests = dict[tuple[int, str, str], NullTest | None]
"""By number of the document, system and metric."""

HYPOTHESES_AT_ONCE = 200_000
TIE = 1e-9
"""Losses nearer than this are equal: arrangements that differ in nothing differ by rounding."""


@dataclass(frozen=True, slots=True)
class NullSums:
    """Draws added up over documents; those of all blocks of a corpus add up to its own, exactly.

    Documents without a weight of their own are kept apart: what they count for is the average
    weight, which only the whole corpus knows (see `filled_weights`).
    """

    totals: Floats  # (own weight or none, systems, metrics, draws) weight × score
    sizes: Floats  # alike: weight

    def __add__(self, other: NullSums) -> NullSums:
        """Join two sets of documents."""
        return NullSums(self.totals + other.totals, self.sizes + other.sizes)

    def means(self, average_weights: Floats) -> Floats:
        """Mean over documents of every draw, given average weights (systems, metrics)."""
        average = average_weights[:, :, None]
        totals, sizes = self.totals, self.sizes
        with np.errstate(invalid="ignore"):
            means: Floats = (totals[0] + average * totals[1]) / (sizes[0] + average * sizes[1])
        return means


def against_null(
    scores: Scores,
    block: Corpus,
    vectors: Sequence[NDArray[np.generic]],
    readings: Sequence[Reading],
    *,
    device: torch.device,
    progress: Callable[[int], None],
) -> tuple[NullSums, DocumentTests]:
    """Draw arrangements of every hypothesis of a block, score them and compare.

    Returns:
        The draws added up over documents, and the test of every document.
    """
    from reffree.metrics.free.engine import score_documents

    settings, systems = scores.settings, scores.systems
    metrics = scores.metrics.reference_free
    draws = settings.null
    shape = (2, len(systems), len(metrics), draws)
    totals, sizes = np.zeros(shape), np.zeros(shape)
    hypotheses = block.hypotheses
    tests: DocumentTests = {}
    for group in _groups(len(block), len(systems) * draws):
        ids = [block[d].id for d in group]
        found = score_documents(
            [vectors[d] for d in group],
            [
                stack_masses(
                    [
                        _arrangements(hypotheses[s][d].masses, draws, block[d].id, settings.seed)
                        for s in systems
                    ]
                )
                for d in group
            ],
            list(metrics.values()),
            unsegmented=settings.unsegmented,
            device=device,
            names=ids,
            readings=[readings[d] for d in group],
            memory=settings.memory,
            progress=progress,
        )
        for m, (name, metric) in enumerate(metrics.items()):
            at = scores.index(name)
            for d, drawn in zip(group, found[name], strict=True):
                null = drawn.on_host().documents.reshape(len(systems), draws)
                for s, system in enumerate(systems):
                    raw, weight = float(scores.raw[at, d, s]), float(scores.weights[at, d, s])
                    tests[d, system, name] = compare_with_null(raw, null[s], metric)
                    if not np.isnan(raw):
                        defined = ~np.isnan(null[s])
                        kind, weight = (0, weight) if weight > 0 else (1, 1.0)
                        totals[kind, s, m] += weight * np.where(defined, null[s], 0.0)
                        sizes[kind, s, m] += weight * defined
    return NullSums(totals, sizes), tests


def corpus_tests(scores: Scores) -> dict[tuple[str, str], NullTest | None]:
    """Compare corpus means, by system and metric, with those of the draws; nothing without any."""
    if scores.null is None:
        return {}
    metrics = scores.metrics.reference_free
    at = [scores.index(name) for name in metrics]
    systems = range(len(scores.systems))
    averages = [[average_weight(scores.weights[m, :, s]) for m in at] for s in systems]
    means = scores.null.means(np.array(averages))
    tests = {}
    for s, system in enumerate(scores.systems):
        for m, (name, metric) in enumerate(metrics.items()):
            weights = filled_weights(scores.weights[at[m], :, s])
            mean = corpus_mean(scores.raw[at[m], :, s], weights)
            value = np.nan if mean is None else mean
            tests[system, name] = compare_with_null(value, means[s, m], metric)
    return tests


def compare_with_null(raw: float, null: Floats, metric: FreeMetric) -> NullTest | None:
    """``z = (loss - mean)/sd``, ``p = (1 + #{null loss ≤ loss}) / (1 + draws)``.

    None where the score or every draw is undefined; no z where all draws are equal.
    """
    null = null[~np.isnan(null)]
    if np.isnan(raw) or not null.size:
        return None
    loss = metric.orientation.loss(raw)
    losses = metric.orientation.offset + metric.orientation.slope * null
    mean, sd = float(losses.mean()), float(losses.std())
    tolerance = TIE * max(1.0, abs(loss))
    as_good = int((losses <= loss + tolerance).sum())
    return NullTest(
        draws=int(null.size),
        mean=mean,
        sd=sd if sd > tolerance else 0.0,
        z=(loss - mean) / sd if sd > tolerance else None,
        p=(1 + as_good) / (1 + null.size),
    )


def _arrangements(masses: tuple[int, ...], draws: int, id: str, seed: int) -> Masses:
    """Random orders of the same masses; they depend on the document, the lengths and the seed."""
    lengths = sorted(masses)
    rng = rng_for(seed, id, lengths)
    return rng.permuted(np.tile(np.array(lengths, dtype=np.int64), (draws, 1)), axis=1)


def _groups(n_documents: int, per_document: int) -> Iterator[list[int]]:
    size = max(1, HYPOTHESES_AT_ONCE // per_document)
    for start in range(0, n_documents, size):
        yield list(range(start, min(start + size, n_documents)))
