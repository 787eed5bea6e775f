"""``posterior``: the segmentation with the least expected Pk (`reffree.metrics.free.expected`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.base import EncoderSpec
from reffree.metrics.free.evidence import Reading
from reffree.metrics.free.expected import Expected, ExpectedPk
from reffree.metrics.free.posterior import Posterior
from reffree.segmenters.base import GapScorer, Inputs
from reffree.segmenters.scorer.description import read_description
from reffree.util.arrays import Floats


@dataclass(frozen=True, slots=True)
class LeastExpectedPk(GapScorer):
    """Of all segmentations the one whose expected Pk is least; of several, the fewest segments.

    ``length`` and ``evidence`` are those of ``expected_pk``. No system does better by that metric
    with the same options and vectors, so it does not say how good this one is. A document in which
    no window of Pk fits stays whole. Its score of a gap is the probability of a boundary there, for
    other rules to select from.
    """

    length: float | None = None
    evidence: str = "all"
    name: ClassVar[str] = "posterior"
    gives_probabilities: ClassVar[bool] = True
    heeds_candidates: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse what the metric refuses."""
        self._metric()

    @property
    def needs_embeddings(self) -> bool:
        """Whether vectors must be there: not for the text, nor for a scorer that has its own."""
        folder = self._metric().scorer
        if folder:
            return not read_description(Path(folder)).settings.finetune
        return self.evidence not in ("words", "cues")

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Segment every document on its own."""
        return tuple(
            Segmentation(tuple(each.best().tolist()) if each.is_defined else (each.n_units,))
            for each in self._posteriors(inputs)
        )

    def boundary_scores(self, inputs: Inputs) -> tuple[Floats, ...]:
        """Probability of a boundary in every gap; 0 where there is no posterior."""
        return tuple(each.boundaries for each in self._posteriors(inputs))

    def _posteriors(self, inputs: Inputs) -> Iterator[Posterior]:
        unread = (np.empty((len(document.units), 0)) for document in inputs.corpus)
        vectors = inputs.vectors(self.name) if self.needs_embeddings else unread
        documents = zip(vectors, readings(inputs, [self._metric()]), strict=True)
        return (self._metric().posterior(x, reading) for x, reading in documents)

    def check(self, corpus: Corpus, encoder: EncoderSpec | None) -> None:
        """Refuse a scorer that is none, or of another encoder."""
        check_scorers([self._metric()], encoder)

    def _metric(self) -> ExpectedPk:
        return ExpectedPk(length=self.length, evidence=self.evidence)


def check_scorers(metrics: Iterable[object], encoder: EncoderSpec | None) -> None:
    """Refuse what metrics name as trained scorers and is none, or is of another encoder.

    ``encoder`` is what will make the vectors, so nothing need be encoded first; None where that is
    not known.
    """
    for folder in _scorers(metrics):
        from reffree.segmenters.scorer.scorer import load_checkpoint

        load_checkpoint(Path(folder)).description.check_encoder(encoder)


def _scorers(metrics: Iterable[object]) -> set[str]:
    """Folders of the trained scorers that expected errors name."""
    return {metric.scorer for metric in metrics if isinstance(metric, Expected) and metric.scorer}


def readings(inputs: Inputs, metrics: Iterable[object]) -> list[Reading]:
    """Every document's text, and the gaps scored by each trained scorer that a metric names.

    That is what expected errors read besides vectors; other metrics read nothing.
    """
    expected = [metric for metric in metrics if isinstance(metric, Expected)]
    if not expected:
        return [Reading() for _ in inputs.corpus]
    scored = {}
    for folder in _scorers(expected):
        from reffree.segmenters.scorer.scorer import Scorer

        scored[folder] = Scorer(path=folder).boundary_scores(inputs)
    return [
        Reading(document.units, {folder: scores[d] for folder, scores in scored.items()})
        for d, document in enumerate(inputs.corpus)
    ]
