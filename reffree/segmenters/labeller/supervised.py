"""``supervised``: segment every document with a labeller trained on the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.base import EncoderSpec
from reffree.encoders.device import choose_device
from reffree.encoders.embed import Embeddings, from_arrays
from reffree.segmenters.base import GapScorer, Inputs
from reffree.segmenters.labeller.description import Architecture, Criterion, LabellerTraining
from reffree.segmenters.labeller.train import split_documents, train_labeller
from reffree.segmenters.selection import select_above
from reffree.util.arrays import Floats, Integers
from reffree.util.bounds import check_whole
from reffree.util.seeds import rng_for

DEFAULTS = LabellerTraining()


@dataclass(frozen=True, slots=True)
class Supervised(GapScorer):
    """Boundaries of labellers that have not seen the document: cross-fitting.

    The documents are dealt into ``folds``; those of each are segmented by a labeller that was
    trained on all others, of which it kept some for its threshold. So every document is tested and
    none is tested on what was trained with it, at the price of as many trainings. Needs gold in
    every document. The other options are those of ``reffree train-segmenter``.
    """

    architecture: Architecture = "bilstm"
    folds: int = 5
    epochs: int = DEFAULTS.epochs
    hidden: int = DEFAULTS.hidden
    layers: int = DEFAULTS.layers
    learning_rate: float = DEFAULTS.learning_rate
    criterion: Criterion = DEFAULTS.criterion
    name: ClassVar[str] = "supervised"
    gives_probabilities: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse what no training can have."""
        check_whole("folds", self.folds, 2, remedy="write folds=5")
        self.settings(0)

    @property
    def needs_embeddings(self) -> bool:
        """Vectors are what labellers read."""
        return True

    @property
    def n_steps(self) -> int:
        """Epochs of all trainings, and the segmenting."""
        return self.folds * self.epochs + 1

    def settings(self, seed: int) -> LabellerTraining:
        """How each labeller is trained."""
        return LabellerTraining(
            architecture=self.architecture,
            epochs=self.epochs,
            hidden=self.hidden,
            layers=self.layers,
            learning_rate=self.learning_rate,
            criterion=self.criterion,
            seed=seed,
        )

    def check(self, corpus: Corpus, encoder: EncoderSpec | None) -> None:
        """Refuse a corpus that cannot be trained on, before anything is encoded."""
        for train, _ in self._split(corpus, 0):
            split_documents(_part(corpus, train), self.settings(0))

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Train, score, and decide by the threshold of each fold."""
        made: dict[int, Segmentation] = {}
        for document, scores, threshold in self._scored(inputs):
            candidates = inputs.candidates_of(document)
            made[document] = select_above(scores, threshold, 1, candidates)
        return tuple(made[document] for document in range(len(inputs.corpus)))

    def boundary_scores(self, inputs: Inputs) -> tuple[Floats, ...]:
        """Probability of a boundary at every gap, by the labeller that did not see the document."""
        found = {document: scores for document, scores, _ in self._scored(inputs)}
        return tuple(found[document] for document in range(len(inputs.corpus)))

    def _scored(self, inputs: Inputs) -> Iterator[tuple[int, Floats, float]]:
        """Yield every document's number, its scores and the threshold for them."""
        self.check(inputs.corpus, inputs.encoder)
        vectors = list(inputs.vectors(self.name))
        device = choose_device(inputs.device)

        def progress(stage: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
            return nullcontext(inputs.advance)

        for train, test in self._split(inputs.corpus, inputs.seed):
            corpus = _part(inputs.corpus, train)
            embeddings = _embeddings(corpus, [vectors[d] for d in train], inputs.encoder)
            settings = self.settings(inputs.seed)
            labeller = train_labeller(corpus, embeddings, settings, device, progress=progress)
            if labeller.description.is_interrupted:  # a labeller of few epochs is another system
                raise KeyboardInterrupt
            own = replace(
                inputs,
                corpus=_part(inputs.corpus, test),
                embeddings=[vectors[d] for d in test],
                candidates=None,
            )
            for document, scores in zip(test.tolist(), labeller.boundary_scores(own), strict=True):
                yield document, scores, labeller.description.threshold

    def _split(self, corpus: Corpus, seed: int) -> Iterator[tuple[Integers, Integers]]:
        """Yield documents to train on and documents to segment, for every fold."""
        n = len(corpus)
        order = rng_for(seed, self.name, "folds").permutation(n)
        for fold in np.array_split(order, min(self.folds, n)):
            test = np.sort(fold)
            yield np.setdiff1d(np.arange(n), test), test


def _part(corpus: Corpus, documents: Integers) -> Corpus:
    return Corpus(tuple(corpus.documents[d] for d in documents))


def _embeddings(corpus: Corpus, vectors: list[np.ndarray], spec: EncoderSpec | None) -> Embeddings:
    made = from_arrays(corpus, vectors)
    return made if spec is None else replace(made, spec=spec)
