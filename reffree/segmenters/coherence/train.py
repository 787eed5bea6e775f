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
from typing import Unpack

import numpy as np
import torch
from torch import Tensor

from reffree.arrays import Floats, Integers
from reffree.corpus import Corpus, Document
from reffree.encoders.base import EncoderSpec
from reffree.encoders.device import choose_device
from reffree.encoders.embed import Vectors, corpus_vectors, units_taking_part
from reffree.encoders.models import DEFAULT_ENCODER, find_model
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.errors import InputError
from reffree.progress import Progress, no_progress
from reffree.reference.windows import Pk
from reffree.seeds import rng_for
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
from reffree.segmenters.scorer.model import (
    GapModel,
    Head,
    HeadOnVectors,
    PairOnTexts,
    load_transformer,
    logits_of,
    probabilities,
)
from reffree.segmenters.scorer.optimisation import Optimisation

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
    tokenizer = None
    network: Head | CoherenceClassifier
    model: GapModel
    with torch.random.fork_rng():
        if settings.finetune:
            device = choose_device(options.device)
            folder = find_model(options.encoder or DEFAULT_ENCODER, offline=options.offline)
            transformer, tokenizer = load_transformer(folder)
            spec, dimension = folder.spec, transformer.config.hidden_size
            torch.manual_seed(settings.seed)
            network = CoherenceClassifier(transformer, reads_first=tokenizer.cls_token is not None)
            texts = [unit for document in documents for unit in document.units]
            model = PairOnTexts(network, tokenizer, texts, spec.max_length, device)
        else:
            embedded = [
                corpus_vectors(part.corpus, given, options, progress)
                for part, given in parts.values()
            ]
            vectors = [x for each in embedded for x in each.vectors]
            spec, dimension = embedded[0].spec, vectors[0].shape[1]
            torch.manual_seed(settings.seed)
            network = Head(dimension, 1, settings.hidden, settings.dropout)
            model = HeadOnVectors(network, vectors)
            network.standardise(model, dialogues.neighbours)
        run = _Ranking(model, dialogues, settings, on_epoch, progress)
        run.train()
    return CoherenceModel(network, run.describe(spec, dimension, tuple(named)), tokenizer)


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
    dialogues: Dialogues
    settings: CoherenceTraining
    on_epoch: OnCoherenceEpoch
    progress: Progress
    history: list[CoherenceEpoch] = field(default_factory=list)
    best: dict[str, Tensor] | None = None
    is_interrupted: bool = False

    def train(self) -> None:
        """Go through the epochs; leaves the best state in the network."""
        settings = self.settings
        drawn = [
            triples_of(self.dialogues.training, rng_for(settings.seed, "csm", epoch))
            for epoch in range(settings.epochs)
        ]
        steps = Optimisation(
            self.model.network,
            sum(math.ceil(len(triples) / settings.batch) for triples in drawn),
            rate=settings.rate,
            weight_decay=0.0,
            warm_up=0.0,
        )
        try:
            with self.progress("Coherence", sum(map(len, drawn))) as advance:
                for number, triples in enumerate(drawn, start=1):
                    loss = self._epoch(triples, steps, advance)
                    self._measure(number, loss)
        except KeyboardInterrupt:
            if self.best is None:
                raise
            self.is_interrupted = True
        if self.best is None:
            raise InputError(
                "a training that ended in no numbers",
                expected="a held-out loss",
                remedy=f"lower the learning rate from {settings.rate:g}",
            )
        self.model.network.load_state_dict(self.best)

    def _epoch(
        self, triples: Integers, steps: Optimisation, advance: Callable[[int], None]
    ) -> float:
        self.model.network.train()
        order, size = torch.randperm(len(triples)).numpy(), self.settings.batch
        total = 0.0
        for start in range(0, len(triples), size):
            batch = triples[order[start : start + size]]
            scores = self.model.logits(pairs_of(batch)).reshape(-1, 3)
            total += steps.step(ranking_loss(scores, self.settings.margin)) * len(batch)
            advance(len(batch))
        return total / len(triples)

    def _measure(self, number: int, training_loss: float) -> None:
        scores = logits_of(self.model, pairs_of(self.dialogues.triples)).reshape(-1, 3)
        loss = float(ranking_loss(torch.from_numpy(scores), self.settings.margin))
        if not math.isfinite(loss):
            return
        epoch = CoherenceEpoch(number, training_loss, loss, share_in_order(scores))
        if self.best is None or epoch.accuracy > max(past.accuracy for past in self.history):
            state = self.model.network.state_dict()
            self.best = {name: tensor.detach().clone() for name, tensor in state.items()}
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
            is_interrupted=self.is_interrupted,
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
