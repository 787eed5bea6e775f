"""``posterior``: the segmentation with the least expected Pk (`reffree.scoring.expected`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reffree.scoring.evidence import Reading
from reffree.scoring.expected import ExpectedPk
from reffree.segmentation import Segmentation
from reffree.segmenters.base import Inputs
from reffree.segmenters.embedded import vectors_of
from reffree.segmenters.scorer.description import read_description


@dataclass(frozen=True, slots=True)
class LeastExpectedPk:
    """Of all segmentations the one whose expected Pk is least; of several, the fewest segments.

    ``length`` and ``evidence`` are those of ``expected_pk``. No system does better by that metric
    with the same options and vectors, so it does not say how good this one is. A document in which
    no window of Pk fits stays whole.
    """

    length: float | None = None
    evidence: str = "all"
    name: ClassVar[str] = "posterior"

    def __post_init__(self) -> None:
        """Refuse what the metric refuses."""
        self._metric()

    @property
    def needs_embeddings(self) -> bool:
        """Whether vectors must be there: not for words, nor where a scorer's encoder is its own."""
        folder = self._metric().scorer
        if folder:
            return not read_description(Path(folder)).settings.finetune
        return self.evidence != "words"

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Segment every document on its own."""
        unread = (np.empty((len(document.units), 0)) for document in inputs.corpus)
        vectors = vectors_of(inputs, self.name) if self.needs_embeddings else unread
        documents = zip(vectors, self._readings(inputs), strict=True)
        return tuple(self._segment(x, reading) for x, reading in documents)

    def _metric(self) -> ExpectedPk:
        return ExpectedPk(length=self.length, evidence=self.evidence)

    def _segment(self, vectors: NDArray[np.generic], reading: Reading) -> Segmentation:
        posterior = self._metric().posterior(vectors, reading)
        if not posterior.is_defined:
            return Segmentation((len(vectors),))
        return Segmentation(tuple(posterior.best().tolist()))

    def _readings(self, inputs: Inputs) -> Iterator[Reading]:
        """Text of every document, and what a trained scorer says of its gaps, if one is named."""
        folder = self._metric().scorer
        if not folder:
            yield from (Reading(document.units) for document in inputs.corpus)
            return
        from reffree.segmenters.scorer.checkpoint import load_checkpoint
        from reffree.segmenters.scorer.method import boundary_scores

        scored = boundary_scores(load_checkpoint(Path(folder)), inputs)
        for document, scores in zip(inputs.corpus, scored, strict=True):
            yield Reading(document.units, {folder: scores})
