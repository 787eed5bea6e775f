"""Metrics against metrics over the same systems and documents, on one set of resamples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, get_args

import numpy as np

from reffree.errors import InputError, OptionError, UnknownNameError
from reffree.seeds import rng_for
from reffree.statistics.coefficients import COEFFICIENTS, Coefficient, correlation
from reffree.statistics.corpus_level import CorpusLevel, CorpusMeasure
from reffree.statistics.estimate import Estimate
from reffree.statistics.intervals import resampled_documents
from reffree.statistics.losses import SystemLosses
from reffree.statistics.permutation import (
    PERMUTATIONS,
    SWAPS,
    PermutationTest,
    Swap,
    permutation_test,
)
from reffree.statistics.resampling import RESAMPLES
from reffree.statistics.williams import WilliamsTest, williams
from reffree.statistics.within import DocumentMeasure, within_documents

CORPUS_MEASURES: tuple[CorpusMeasure, ...] = get_args(CorpusMeasure)
DOCUMENT_MEASURES: tuple[DocumentMeasure, ...] = get_args(DocumentMeasure)

Name = TypeVar("Name", bound=str)


class MetaEvaluation:
    """Agreement of metrics over systems.

    All metrics are losses of the same systems on the same documents, in the same order. Documents
    are the resampling unit and all metrics share the resamples. The same metrics and seed give the
    same results, in whatever order they are asked for.

    >>> from reffree.statistics.losses import MeanOverDocuments
    >>> rng = np.random.default_rng(0)
    >>> quality = rng.normal(size=(12, 1))
    >>> losses = {name: quality + rng.normal(size=(12, 80)) for name in ("arp_pair", "pk")}
    >>> metrics = {name: MeanOverDocuments(values) for name, values in losses.items()}
    >>> found = MetaEvaluation(metrics, seed=0).corpus("arp_pair", "pk", "kendall")
    >>> round(found.value, 2), [round(bound, 2) for bound in found.ci], found.systems
    (0.97, [0.76, 1.0], 12)
    """

    def __init__(
        self, metrics: Mapping[str, SystemLosses], *, seed: int, resamples: int = RESAMPLES
    ) -> None:
        """Draw the resamples.

        Args:
            metrics: by name, each of values (systems, documents).
            seed: of resamples, sign flips and permutations.
            resamples: of documents.
        """
        shapes = sorted({metric.values.shape for metric in metrics.values()})
        if len(shapes) != 1:
            raise InputError(
                f"metrics of {len(shapes)} different shapes: {', '.join(map(str, shapes))}",
                expected="one shape (systems, documents)",
                remedy="score the same systems on the same documents",
            )
        self._metrics = dict(metrics)
        self._seed = seed
        drawn = resampled_documents(shapes[0][1], rng_for(seed, "resamples"), resamples)
        self._counts = drawn.astype(np.float64)
        self._corpus = CorpusLevel(self._metrics, self._counts, seed)

    def corpus(self, x: str, y: str, measure: CorpusMeasure) -> Estimate:
        """Agreement of two metrics over the systems' scores.

        ``pearson``, ``spearman``, ``kendall`` (tau-b): `coefficients.correlation`, range [-1, 1].
        ``spa``: `pairwise.soft_pairwise_accuracy`, range [0, 1]. Systems that either metric leaves
        without a score are left out; undefined with fewer than three systems or where a metric
        gives all the same score.

        The interval is that of the measure's expectation over corpora of as many documents, and
        holds the value: value ± the larger distance to the middle 95 % of resampled ones
        (`intervals.symmetric`), since resampling attenuates a correlation; that of ``spa`` is
        moved onto the value (`intervals.centred`). ``noiseless`` is the correlation that the
        systems' expected scores have (`expected.expected_scores`): what more documents would
        bring the value to, with an interval of its own. How often all of these hold is in
        ``benchmarks/interval_coverage.py``.

        ``x`` and ``y`` may also be one metric under two encoders: ``kendall`` is then the stability
        of its ranking.
        """
        return self._corpus.estimate(self._known(x, y), _one_of(measure, CORPUS_MEASURES))

    def corpus_difference(
        self, first: str, second: str, y: str, measure: CorpusMeasure
    ) -> Estimate:
        """How much better the first metric agrees with ``y`` than the second does.

        On the systems that have a score under all three. The p is two-sided, of no difference on
        these very systems.
        """
        return self._corpus.estimate(
            self._known(first, second, y), _one_of(measure, CORPUS_MEASURES)
        )

    def documents(self, x: str, y: str, measure: DocumentMeasure) -> Estimate:
        """Agreement of two metrics over the systems of one document, averaged over documents.

        ``pearson``, ``spearman``, ``kendall``: `within.WithinCorrelation`, range [-1, 1].
        ``acc_eq``: `within.TieCalibratedAccuracy` with ``y`` as gold, range [0, 1]. Documents where
        it is undefined are counted. Intervals are percentiles over resampled documents.
        """
        metrics = [self._metrics[name] for name in self._known(x, y)]
        return within_documents(metrics, _one_of(measure, DOCUMENT_MEASURES), self._counts)

    def documents_difference(
        self, first: str, second: str, y: str, measure: DocumentMeasure
    ) -> Estimate:
        """How much better the first metric agrees with ``y`` inside documents than the second.

        On the losses that all three have, in the documents where both agreements are defined.
        """
        metrics = [self._metrics[name] for name in self._known(first, second, y)]
        return within_documents(metrics, _one_of(measure, DOCUMENT_MEASURES), self._counts)

    def permutation_test(
        self,
        first: str,
        second: str,
        y: str,
        coefficient: Coefficient,
        *,
        swap: Swap = "systems",
        permutations: int = PERMUTATIONS,
    ) -> PermutationTest:
        """Test whether two metrics would correlate differently with ``y`` on other systems, too.

        See `permutation.permutation_test`. Whether they do on these very systems, had they been
        scored on other documents, is the question of `corpus_difference`.
        """
        self._known(first, second, y)
        return permutation_test(
            self._metrics[first].contributions,
            self._metrics[second].contributions,
            self._corpus.scores[y],
            _one_of(coefficient, COEFFICIENTS),
            rng_for(self._seed, "permutations"),
            swap=_one_of(swap, SWAPS),
            permutations=permutations,
        )

    def williams_test(
        self, first: str, second: str, y: str, coefficient: Coefficient
    ) -> WilliamsTest:
        """Williams' test of the same difference (`williams.williams`), secondary to the above."""
        names = self._known(first, second, y)
        kept = self._corpus.kept(names)
        one, other, gold = (self._corpus.scores[name][kept] for name in names)
        name = _one_of(coefficient, COEFFICIENTS)
        return williams(
            float(correlation(one, gold, name)),
            float(correlation(other, gold, name)),
            float(correlation(one, other, name)),
            n=len(gold),
        )

    def _known(self, *names: str) -> tuple[str, ...]:
        for name in names:
            if name not in self._metrics:
                raise UnknownNameError("metric", name, self._metrics)
        return names


def _one_of(name: Name, names: tuple[Name, ...]) -> Name:
    if name not in names:
        raise OptionError(f"{name!r}", expected=", ".join(names), remedy="choose one of these")
    return name
