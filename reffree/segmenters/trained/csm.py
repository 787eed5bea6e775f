"""Train a coherence model by ranking (Xing and Carenini 2021, §3.2).

For every triple, coherence is to fall from the next unit over one of the same document to one of
another, by a margin at each of the three comparisons. After every epoch held-out triples are
scored; the state with the most comparisons right is the one that counts, of equal ones the first.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor

from reffree.data.corpus import Corpus, Document
from reffree.encoders.base import EncoderSpec
from reffree.encoders.device import choose_device
from reffree.encoders.embed import Vectors, corpus_vectors, units_taking_part
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.metrics.gold.windows import Pk
from reffree.segmenters.coherence.csm import (
    CoherenceClassifier,
    CoherenceModel,
    coherence_depths,
    select_deep,
)
from reffree.segmenters.coherence.description import (
    CoherenceDescription,
    CoherenceEpoch,
    CoherenceTraining,
)
from reffree.segmenters.coherence.triples import (
    NEXT,
    OTHER,
    SAME,
    hold_out_documents,
    triples_of,
)
from reffree.segmenters.scorer.data import Gaps, windows_of
from reffree.segmenters.scorer.gap_network import Start
from reffree.segmenters.scorer.model import GapModel, logits_of, probabilities
from reffree.segmenters.training import Loss, RisingAndFalling, Trainer, steps_of, training_on
from reffree.util.arrays import Floats, Integers
from reffree.util.errors import InputError
from reffree.util.progress import Progress, no_progress
from reffree.util.seeds import rng_for

ORDERS = ((NEXT, SAME), (NEXT, OTHER), (SAME, OTHER))
"""Which is to cohere better with the unit, by a margin."""

ALPHAS = np.arange(-20, 20) / 10
"""Thresholds tried on held-out documents with gold, as in their code."""

OnCoherenceEpoch = Callable[[CoherenceEpoch], None]


def train_csm(
    corpora: Corpus | Mapping[str, Corpus],
    *,
    settings: CoherenceTraining | None = None,
    embeddings: Mapping[str, Vectors] | None = None,
    on_epoch: OnCoherenceEpoch = lambda epoch: None,
    progress: Progress = no_progress,
    **encoding: Unpack[Encoding],
) -> CoherenceModel:
    """Train a coherence model on dialogues; ``save`` it for ``csm:path=FOLDER``.

    By default a small network on the units' vectors; with ``CoherenceTraining(finetune=True)`` the
    encoder itself, as the paper does with BERT (``encoder="bert"``). Interrupted, it returns the
    best state so far, once there is one.

    Args:
        corpora: by name; gold is not looked at, but for a threshold on documents held out.
        settings: of the training.
        embeddings: arrays of every corpus, by its name, instead of an encoder.
        on_epoch: is told how each epoch went.
        progress: called as stages start.
        **encoding: which encoder, and how, as in `EncoderOptions`.
    """
    settings, options = settings or CoherenceTraining(), EncoderOptions(**encoding)
    named = {"corpus": corpora} if isinstance(corpora, Corpus) else corpora
    parts = {
        name: units_taking_part(corpus, (embeddings or {}).get(name), options)
        for name, corpus in named.items()
    }
    documents = [document for part, _ in parts.values() for document in part.corpus]
    dialogues = Dialogues.of(documents, settings)  # refuses too few before they are encoded
    if settings.finetune:
        start = Start.on_texts([unit for d in documents for unit in d.units], options)
    else:
        start = Start.on_vectors(
            [
                corpus_vectors(part.corpus, given, options, progress)
                for part, given in parts.values()
            ]
        )
    device, precision = choose_device(options.device), settings.mixed_precision
    with training_on(device, precision, settings.seed, has_idle=settings.finetune) as accelerator:
        model = start.model(
            1,
            settings.hidden,
            settings.dropout,
            dialogues.neighbours,
            accelerator.device,
            CoherenceClassifier,
        )
        trainer = Trainer(model.network, partial(triple_loss, model, settings.margin), accelerator)
        run = _Ranking(model, trainer, dialogues, settings, on_epoch, progress)
        trainer.run(run.train, "a held-out loss", settings.rate)
        description = run.describe(start.spec, start.dimension, tuple(named))
    return CoherenceModel(model.network, description, start.tokenizer)


def triple_loss(model: GapModel, margin: float, seen: Any) -> Loss:  # noqa: ANN401
    """Ranking loss of triples, each of which is three pairs of units."""
    scores = model.logits(seen).float().reshape(-1, 3)
    return ranking_loss(scores, margin), len(scores)


@dataclass(frozen=True, slots=True)
class TripleReader:
    """Makes batches of triples on the host, in any process."""

    triples: Integers
    read: Callable[[Integers], Any]

    def __call__(self, chosen: list[int]) -> Any:  # noqa: ANN401
        """Return what the network looks at."""
        return self.read(pairs_of(self.triples[chosen]))


@dataclass(frozen=True, slots=True)
class Dialogues:
    """Documents to learn from and documents held out, each as the rows of its units."""

    training: list[Integers]
    held_out: list[Integers]
    triples: Integers  # of the held-out ones
    golds: list[Document] | None  # the held-out ones, where all of them have gold

    @classmethod
    def of(cls, documents: Sequence[Document], settings: CoherenceTraining) -> Dialogues:
        """Set documents aside; refuse those that give no triples."""
        ends = np.cumsum([len(document.units) for document in documents])
        rows = [np.arange(end - len(d.units), end) for d, end in zip(documents, ends, strict=True)]
        rng = rng_for(settings.seed, "csm", "held out")
        training, held_out = hold_out_documents(rows, settings.held_out, rng)
        triples = triples_of(held_out, rng_for(settings.seed, "csm", "held-out triples"))
        if not len(triples) or not len(triples_of(training, rng_for(settings.seed, "csm", 0))):
            raise InputError(
                "no document of more than three units to learn from, or none held out",
                expected="units that are no neighbours, in both",
                remedy="give longer documents, or more of them",
            )
        first = {int(part[0]) for part in held_out}
        aside = [d for d, part in zip(documents, rows, strict=True) if int(part[0]) in first]
        has_gold = all(document.references for document in aside)
        return cls(training, held_out, triples, aside if has_gold else None)

    @property
    def neighbours(self) -> Gaps:
        """Pairs of neighbours to learn from."""
        pairs = np.concatenate([windows_of(rows, 1) for rows in self.training])
        return Gaps(pairs, np.zeros(len(pairs), dtype=np.float32), (len(pairs),))


@dataclass(slots=True)
class _Ranking:
    """One training, as far as it has come."""

    model: GapModel
    trainer: Trainer[Any]
    dialogues: Dialogues
    settings: CoherenceTraining
    on_epoch: OnCoherenceEpoch
    progress: Progress
    history: list[CoherenceEpoch] = field(default_factory=list)

    def train(self) -> None:
        """Go through the epochs."""
        settings, trainer = self.settings, self.trainer
        drawn = [
            triples_of(self.dialogues.training, rng_for(settings.seed, "csm", epoch))
            for epoch in range(settings.epochs)
        ]
        n_steps = steps_of([len(triples) for triples in drawn], settings.batch)
        trainer.begin(settings.rate, 0.0, RisingAndFalling(n_steps, 0.0))
        with self.progress("Coherence", sum(map(len, drawn))) as advance:
            for number, triples in enumerate(drawn, start=1):
                reader = TripleReader(triples, self.model.read)
                batches = trainer.batches(
                    len(triples), settings.batch, reader, workers=self.model.workers
                )
                self._measure(number, trainer.epoch(batches, advance).item())

    def _measure(self, number: int, training_loss: float) -> None:
        scores = logits_of(self.model, pairs_of(self.dialogues.triples)).reshape(-1, 3)
        loss = float(ranking_loss(torch.from_numpy(scores), self.settings.margin))
        if not math.isfinite(loss):
            return
        epoch = CoherenceEpoch(number, training_loss, loss, share_in_order(scores))
        if epoch.accuracy > max((past.accuracy for past in self.history), default=-1.0):
            self.trainer.keep()
        self.history.append(epoch)
        self.on_epoch(epoch)

    def describe(
        self, encoder: EncoderSpec, dimension: int, corpora: tuple[str, ...]
    ) -> CoherenceDescription:
        """Write down how it came about, with the best threshold on held-out gold."""
        dialogues = self.dialogues
        return CoherenceDescription(
            version=importlib.metadata.version("reffree"),
            settings=self.settings.resolved(),
            encoder=encoder,
            dimension=dimension,
            threshold=None if dialogues.golds is None else self._threshold(dialogues.golds),
            accuracy=max(epoch.accuracy for epoch in self.history),
            corpora=corpora,
            counts={
                "training_documents": len(dialogues.training),
                "held_out_documents": len(dialogues.held_out),
                "held_out_triples": len(dialogues.triples),
            },
            history=tuple(self.history),
            is_interrupted=self.trainer.is_interrupted,
            weights="",  # known once they are saved
        )

    def _threshold(self, golds: Sequence[Document]) -> float:
        depths = [
            coherence_depths(probabilities(logits_of(self.model, windows_of(rows, 1))))
            for rows in self.dialogues.held_out
        ]
        return best_alpha(depths, golds)


def best_alpha(depths: Sequence[Floats], documents: Sequence[Document]) -> float:
    """Return the threshold of the lowest mean Pk, of equal ones the nearest to -0.5."""
    best, at = math.inf, -0.5
    for alpha in sorted(ALPHAS.tolist(), key=lambda a: (abs(a + 0.5), a)):
        values = [
            Pk()(select_deep(each, alpha), reference)
            for each, document in zip(depths, documents, strict=True)
            for reference in document.references
        ]
        known = [value for value in values if isinstance(value, float)]
        mean = sum(known) / len(known) if known else math.inf
        if mean < best - 1e-12:
            best, at = mean, alpha
    return at


def pairs_of(triples: Integers) -> Integers:
    """Each unit with the three it is compared with, (3 · t, 2)."""
    return np.stack([np.repeat(triples[:, 0], 3), triples[:, 1:].ravel()], axis=1)


def ranking_loss(scores: Tensor, margin: float) -> Tensor:
    """Mean over triples and orders of what is missing to the margin, (t, 3)."""
    short = [torch.relu(margin - (scores[:, a] - scores[:, b])) for a, b in ORDERS]
    return torch.stack(short).mean()


def share_in_order(scores: Floats) -> float:
    """Share of the three orders of triples, (t, 3), that scores have right."""
    return float(np.mean([scores[:, a] > scores[:, b] for a, b in ORDERS]))
