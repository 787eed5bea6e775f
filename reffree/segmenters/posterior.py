"""``posterior``: the segmentation with the least expected Pk (`reffree.metrics.free.expected`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.base import EncoderSpec
from reffree.metrics.free.evidence import Reading
from reffree.metrics.free.expected import ExpectedPk
from reffree.metrics.free.posterior import Posterior
from reffree.segmenters.base import GapScorer, Inputs
from reffree.segmenters.trained.folder import encoders_of
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
        GapScorer.__post_init__(self)
        self._metric()

    @property
    def encoders(self) -> tuple[EncoderSpec, ...]:
        """The encoder that the scorer among the evidence was trained on, if it reads vectors."""
        return encoders_of(filter(None, [self._metric().scorer]))

    @property
    def needs_embeddings(self) -> bool:
        """Whether vectors must be there: not for the text, nor for a scorer that has its own."""
        has_scorer = bool(self._metric().scorer)
        return bool(self.encoders) if has_scorer else self.evidence not in ("words", "cues")

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Segment every document."""
        return tuple(
            Segmentation(tuple(each.best().tolist()) if each.is_defined else (each.n_units,))
            for each in self._posteriors(inputs)
        )

    def boundary_scores(self, inputs: Inputs) -> tuple[Floats, ...]:
        """Probability of a boundary in every gap; 0 where there is no posterior."""
        return tuple(each.boundaries for each in self._posteriors(inputs))

    def check(self, corpus: Corpus, encoder: EncoderSpec | None) -> None:
        """Refuse a scorer that is none, or of another encoder."""
        if folder := self._metric().scorer:
            from reffree.segmenters.trained.scorer import check_scorer

            check_scorer(folder, encoder)

    def _posteriors(self, inputs: Inputs) -> Iterator[Posterior]:
        metric = self._metric()
        unread = (np.empty((len(document.units), 0)) for document in inputs.corpus)
        vectors = inputs.vectors(self.name) if self.needs_embeddings else unread
        known: list[dict[str, Floats]] = [{} for _ in inputs.corpus]
        if metric.scorer:
            from reffree.segmenters.trained.scorer import TrainedScorer

            scored = TrainedScorer.load(metric.scorer).gap_scores(inputs)
            known = [{metric.scorer: scores} for scores in scored]
        for document, x, scores in zip(inputs.corpus, vectors, known, strict=True):
            yield metric.posterior(x, Reading(document.units, scores))

    def _metric(self) -> ExpectedPk:
        return ExpectedPk(length=self.length, evidence=self.evidence)
