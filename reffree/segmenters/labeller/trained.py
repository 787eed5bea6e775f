"""``trained``: segment with a labeller that was trained before and is kept in a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.base import EncoderSpec
from reffree.encoders.device import choose_device
from reffree.segmenters.base import GapScorer, Inputs, Segmenter, check_wanted
from reffree.segmenters.labeller.description import (
    LabellerDescription,
    read_labeller_description,
)
from reffree.segmenters.labeller.networks import Network, as_input, gap_logits, make_network
from reffree.segmenters.network_folder import read_weights, write_network
from reffree.segmenters.scorer.model import probabilities
from reffree.segmenters.selection import select_above, select_top
from reffree.util.arrays import Floats
from reffree.util.errors import InputError


@dataclass(frozen=True, slots=True)
class Trained(GapScorer):
    """Boundaries where a supervised labeller gives a gap at least a probability.

    ``path`` is a folder that ``reffree train-segmenter`` wrote. The ``threshold`` is the one that
    did best on the documents held out in training, unless another is given; instead of it, ``k``
    boundaries.
    """

    path: str = ""
    threshold: float | Literal["held_out"] = "held_out"
    k: Literal["gold"] | int | None = None
    name: ClassVar[str] = "trained"
    gives_probabilities: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse no path."""
        if not self.path:
            raise InputError(
                "no path",
                expected="the folder of a trained segmenter",
                remedy="write trained:path=FOLDER, and make one with reffree train-segmenter",
            )
        check_wanted(self.k, self.name)
        if self.threshold != "held_out" and not 0 <= self.threshold <= 1:
            raise InputError(
                f"threshold = {self.threshold}",
                expected="a probability, from 0 to 1, or held_out",
                remedy="leave it out for held_out",
            )

    @property
    def needs_embeddings(self) -> bool:
        """Vectors are what labellers read."""
        return True

    def check(self, corpus: Corpus, encoder: EncoderSpec | None) -> None:
        """Refuse a damaged folder, and another encoder than the one it was trained on."""
        Segmenter.check(self, corpus, encoder)
        load_labeller(Path(self.path)).description.check_encoder(encoder)

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Score every gap, then decide."""
        wanted = inputs.n_boundaries(self.k, self.name)
        labeller = load_labeller(Path(self.path))
        scores = labeller.boundary_scores(inputs)
        chosen = labeller.description.threshold if self.threshold == "held_out" else self.threshold
        made = []
        for d, (each, k) in enumerate(zip(scores, wanted, strict=True)):
            candidates = inputs.candidates_of(d)
            made.append(
                select_above(each, chosen, 1, candidates)
                if k is None
                else select_top(each, k, 1, candidates)
            )
        return tuple(made)

    def boundary_scores(self, inputs: Inputs) -> tuple[Floats, ...]:
        """Probability of a boundary at each of the ``n - 1`` gaps of every document."""
        return load_labeller(Path(self.path)).boundary_scores(inputs)


@dataclass(frozen=True, slots=True)
class Labeller:
    """A network and what is known of it."""

    network: Network
    description: LabellerDescription

    def boundary_scores(self, inputs: Inputs) -> tuple[Floats, ...]:
        """Probability of a boundary at each of the ``n - 1`` gaps of every document.

        Refuses vectors of another encoder than the one it was trained on, as far as ``inputs``
        says whose they are, and vectors of another size in any case.
        """
        told, device = self.description, choose_device(inputs.device)
        documents = []
        for x in inputs.vectors(told.kind):
            told.check_vectors(inputs.encoder, x.shape[1])
            documents.append(as_input(x))
        logits = gap_logits(self.network.to(device), documents, device)
        return tuple(probabilities(each) for each in logits)

    def save(self, folder: Path) -> None:
        """Write a new folder, whole or not at all."""
        write_network(folder, self.network, self.description)


def load_labeller(folder: Path) -> Labeller:
    """Read a labeller back; nothing in the folder is run."""
    description = read_labeller_description(folder)
    network = make_network(description.dimension, description.settings)
    read_weights(folder, network, description)
    return Labeller(network, description)
