"""``scorer``: segment with a trained boundary scorer (Coen, "When F1 Fails", §5), kept in a folder.

Its weights are safetensors, everything else is JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.base import EncoderSpec
from reffree.segmenters.base import GapScorer, Inputs, Segmenter, check_wanted
from reffree.segmenters.scorer.description import Description, read_description
from reffree.segmenters.scorer.gap_network import GapNetwork, read_network
from reffree.segmenters.scorer.model import probabilities
from reffree.segmenters.selection import (
    MIN_GAP,
    AdaptiveThreshold,
    Candidates,
    select_above,
    select_adaptive,
    select_share,
    select_top,
)
from reffree.util.arrays import Floats
from reffree.util.bounds import check_whole
from reffree.util.errors import InputError


@dataclass(frozen=True, slots=True)
class Scorer(GapScorer):
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
    gives_probabilities: ClassVar[bool] = True

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

    def check(self, corpus: Corpus, encoder: EncoderSpec | None) -> None:
        """Refuse a damaged folder, and another encoder than the one it was trained on."""
        Segmenter.check(self, corpus, encoder)
        load_checkpoint(Path(self.path)).description.check_encoder(encoder)

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Score every gap, then select."""
        wanted = inputs.n_boundaries(self.k, self.name)
        checkpoint = load_checkpoint(Path(self.path))
        scores = checkpoint.boundary_scores(inputs)
        if self.rate is not None:
            controller = AdaptiveThreshold(self.rate, self.min_gap)
            return tuple(
                select_adaptive(part, controller, inputs.candidates_of(d))
                for d, part in enumerate(scores)
            )
        threshold = (
            checkpoint.description.threshold if self.threshold == "held_out" else self.threshold
        )
        return tuple(
            self._select(part, threshold, k, inputs.candidates_of(d))
            for d, (part, k) in enumerate(zip(scores, wanted, strict=True))
        )

    def boundary_scores(self, inputs: Inputs) -> tuple[Floats, ...]:
        """Probability of a boundary at each of the ``n - 1`` gaps of every document."""
        return load_checkpoint(Path(self.path)).boundary_scores(inputs)

    def _select(
        self, scores: Floats, threshold: float, k: int | None, candidates: Candidates | None
    ) -> Segmentation:
        if k is not None:
            return select_top(scores, k, self.min_gap, candidates)
        if self.density is not None:
            return select_share(scores, self.density, self.min_gap, candidates)
        return select_above(scores, threshold, self.min_gap, candidates)


class Checkpoint(GapNetwork[Description]):
    """A scorer and what is known of it."""

    __slots__ = ()

    def boundary_scores(self, inputs: Inputs) -> tuple[Floats, ...]:
        """Calibrated probability of a boundary at each of the ``n - 1`` gaps of every document."""
        temperature = self.description.temperature
        logits = self.logits(inputs, self.description.settings.window)
        return tuple(probabilities(each, temperature) for each in logits)


def load_checkpoint(folder: Path) -> Checkpoint:
    """Read a scorer back; nothing in the folder is run."""
    description = read_description(folder)
    network, tokenizer = read_network(folder, description, description.settings.window)
    return Checkpoint(network, description, tokenizer)
