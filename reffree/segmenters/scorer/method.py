"""``scorer``: segment with a trained boundary scorer (Coen, "When F1 Fails", §5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from reffree.arrays import Floats
from reffree.bounds import check_whole
from reffree.errors import InputError
from reffree.segmentation import Segmentation
from reffree.segmenters.base import Inputs
from reffree.segmenters.embedded import boundaries_wanted, check_wanted, vectors_of
from reffree.segmenters.scorer.checkpoint import Checkpoint, load_checkpoint
from reffree.segmenters.scorer.description import read_description
from reffree.selection import (
    MIN_GAP,
    AdaptiveThreshold,
    select_above,
    select_adaptive,
    select_share,
    select_top,
)


@dataclass(frozen=True, slots=True)
class Scorer:
    """Boundaries where a trained scorer is sure enough of them.

    ``path`` is a folder that ``reffree train-scorer`` wrote. Scores are calibrated probabilities;
    the defaults of ``threshold`` and ``min_gap`` are the paper's (§5.1), and
    ``threshold=held_out`` is the one that did best on the documents held out in training. Instead
    of a threshold: ``k`` boundaries, a ``density`` (boundaries per gap), or a ``rate`` that the
    adaptive threshold of Appendix F steers to over the corpus, document after document.
    """

    path: str = ""
    threshold: float | Literal["held_out"] = 0.5
    min_gap: int = MIN_GAP
    k: Literal["gold"] | int | None = None
    density: float | None = None
    rate: float | None = None
    name: ClassVar[str] = "scorer"

    def __post_init__(self) -> None:
        """Refuse no path, and two targets at a time."""
        if not self.path:
            raise InputError(
                "no path",
                expected="the folder of a trained scorer",
                remedy="write scorer:path=FOLDER, and make one with reffree train-scorer",
            )
        check_whole("min_gap", self.min_gap, 1, remedy="write scorer:path=FOLDER,min_gap=3")
        check_wanted(self.k, self.name)
        if self.threshold != "held_out" and not 0 <= self.threshold <= 1:
            raise InputError(
                f"threshold = {self.threshold}",
                expected="a probability, from 0 to 1, or held_out",
                remedy="leave it out for 0.5",
            )
        targets = [self.k, self.density, self.rate]
        if sum(target is not None for target in targets) > 1:
            raise InputError(
                "more than one of k, density and rate",
                expected="one of them, or none for a threshold",
                remedy="write scorer:path=FOLDER,k=gold",
            )
        if self.density is not None and not 0 <= self.density <= 1:
            raise InputError(
                f"density = {self.density}",
                expected="boundaries per gap, from 0 to 1",
                remedy="write density=0.1 for every tenth",
            )
        if self.rate is not None:
            AdaptiveThreshold(self.rate, self.min_gap)

    @property
    def needs_embeddings(self) -> bool:
        """Whether vectors must be there: not for a scorer whose encoder was fine-tuned."""
        return not read_description(Path(self.path)).settings.finetune

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Score every gap, then select."""
        wanted = boundaries_wanted(self.k, inputs, self.name)
        checkpoint = load_checkpoint(Path(self.path))
        scores = boundary_scores(checkpoint, inputs)
        if self.rate is not None:
            controller = AdaptiveThreshold(self.rate, self.min_gap)
            return tuple(select_adaptive(part, controller) for part in scores)
        threshold = (
            checkpoint.description.threshold if self.threshold == "held_out" else self.threshold
        )
        return tuple(
            self._select(part, threshold, k) for part, k in zip(scores, wanted, strict=True)
        )

    def _select(self, scores: Floats, threshold: float, k: int | None) -> Segmentation:
        if k is not None:
            return select_top(scores, k, self.min_gap)
        if self.density is not None:
            return select_share(scores, self.density, self.min_gap)
        return select_above(scores, threshold, self.min_gap)


def boundary_scores(checkpoint: Checkpoint, inputs: Inputs) -> Sequence[Floats]:
    """Probability of a boundary at each of the ``n - 1`` gaps of every document.

    Refuses vectors of another encoder than the one the scorer was trained on, as far as ``inputs``
    says whose they are, and vectors of another size in any case.
    """
    corpus = inputs.corpus
    if checkpoint.description.settings.finetune:
        return [
            checkpoint.scores(checkpoint.on_texts(document.units), len(document.units))
            for document in corpus
        ]
    if inputs.encoder is not None:
        checkpoint.check_encoder(inputs.encoder)
    return [
        checkpoint.scores(checkpoint.on_vectors([x]), len(x)) for x in vectors_of(inputs, "scorer")
    ]
