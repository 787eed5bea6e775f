"""Scores against chance: the same segment lengths in random order.

A raw reference-free score depends on how many segments there are and how long they are. The null
of a hypothesis is the same document cut into the same lengths in random order; to be as good as
such arrangements or better is a significance test that needs no gold labels. Documents combine by
averaging: draw ``j`` of the corpus is the mean over documents of their draws ``j``, so the corpus
p-value is itself that of a permutation test, in which documents are permuted independently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reffree.data.corpus import Corpus
from reffree.data.masses import Masses, stack_masses
from reffree.evaluate.scores import Scores, ScoreSettings, corpus_mean
from reffree.evaluate.table import NullTest
from reffree.metrics.free.result import FreeMetric
from reffree.util.arrays import Floats
from reffree.util.seeds import rng_for

if TYPE_CHECKING:
    from reffree.metrics.free.evidence import Reading

DocumentTests = dict[tuple[int, int, str], NullTest | None]
"""By number of the document and of the system, and metric."""

HYPOTHESES_AT_ONCE = 200_000
TIE = 1e-9
"""Losses nearer than this are equal: arrangements that differ in nothing differ by rounding."""


def draw_null(
    scores: Scores,
    documents: Corpus,
    vectors: Sequence[NDArray[np.generic]],
    readings: Sequence[Reading],
    device: str,
    progress: Callable[[int], None],
) -> tuple[Floats, DocumentTests]:
    """Draw arrangements of every hypothesis of some documents, score them and compare.

    Returned are sums over documents of weight × score, and of weights, (2, systems, metrics,
    draws), and the test of every document.
    """
    from reffree.metrics.free.engine import score_documents

    settings, systems = scores.settings, scores.systems
    metrics, draws, hypotheses = _tested_metrics(scores), settings.null, documents.hypotheses
    sums = np.zeros((2, len(systems), len(metrics), draws))
    tests: DocumentTests = {}
    at_once = max(1, HYPOTHESES_AT_ONCE // (len(systems) * draws))
    for start in range(0, len(documents), at_once):
        group = range(start, min(start + at_once, len(documents)))
        ids = [documents[d].id for d in group]
        drawn = [
            [_arrangements(hypotheses[s][d].masses, id, settings) for s in systems]
            for d, id in zip(group, ids, strict=True)
        ]
        found = score_documents(
            [vectors[d] for d in group],
            list(map(stack_masses, drawn)),
            list(metrics.values()),
            unsegmented=settings.unsegmented,
            device=device,
            names=ids,
            readings=[readings[d] for d in group],
            progress=progress,
        )
        for m, (name, metric) in enumerate(metrics.items()):
            at = scores.index(name)
            for d, each in zip(group, found[name], strict=True):
                null = each.on_host().documents.reshape(len(systems), draws)
                for s, values in enumerate(null):
                    raw, weight = float(scores.raw[at, d, s]), float(scores.weights[at, d, s])
                    tests[d, s, name] = compare_with_null(raw, values, metric)
                    if not np.isnan(raw):
                        sums[0, s, m] += weight * np.nan_to_num(values)
                        sums[1, s, m] += weight * ~np.isnan(values)
    return sums, tests


def _tested_metrics(scores: Scores) -> dict[str, FreeMetric]:
    """Return the metrics by which the same lengths in another order may score differently."""
    return {name: each for name, each in scores.metrics.reference_free.items() if each.reads_order}


def corpus_tests(scores: Scores) -> dict[tuple[str, str], NullTest | None]:
    """Compare corpus means, by system and metric, with those of the draws; nothing without any."""
    if scores.null is None:
        return {}
    with np.errstate(invalid="ignore"):
        means = scores.null[0] / scores.null[1]
    tests = {}
    for m, (name, metric) in enumerate(_tested_metrics(scores).items()):
        at = scores.index(name)
        for s, system in enumerate(scores.systems):
            mean = corpus_mean(scores.raw[at, :, s], scores.weights[at, :, s])
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
    z, p = (loss - mean) / sd if sd > tolerance else None, (1 + as_good) / (1 + null.size)
    return NullTest(int(null.size), mean, sd if sd > tolerance else 0.0, z, p)


def _arrangements(masses: tuple[int, ...], id: str, settings: ScoreSettings) -> Masses:
    """Random orders of the same masses; they depend on the document, the lengths and the seed."""
    lengths = sorted(masses)
    rng = rng_for(settings.seed, id, lengths)
    return rng.permuted(np.tile(np.array(lengths, dtype=np.int64), (settings.null, 1)), axis=1)
