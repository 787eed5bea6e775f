"""Train a sequence labeller on the vectors of a corpus with gold.

Binary cross-entropy over the gaps of whole documents. After every epoch the held-out documents are
scored; the state with the lowest log loss on them is kept, and the threshold is that of the best
mean Pk (or F1) on them. Devices, several processes and mixed precision are accelerate's.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Unpack

import numpy as np
import torch
from torch import Tensor, nn

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.device import choose_device
from reffree.encoders.embed import Embeddings, Vectors, corpus_vectors, units_taking_part
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.segmenters.labeller.description import (
    CRITERIA,
    LabellerDescription,
    LabellerEpoch,
    LabellerTraining,
)
from reffree.segmenters.labeller.networks import (
    Network,
    as_input,
    gap_logits,
    make_network,
    padded,
)
from reffree.segmenters.labeller.threshold import find_best_threshold, mean_values
from reffree.segmenters.labeller.trained import Labeller
from reffree.segmenters.scorer.data import Passage, hold_out, passages_of
from reffree.segmenters.scorer.model import probabilities
from reffree.segmenters.scorer.train import log_loss
from reffree.segmenters.training import Loss, Rising, Trainer, steps_of, training_on
from reffree.util.errors import InputError
from reffree.util.progress import Progress, no_progress
from reffree.util.seeds import rng_for

WARM_UP = 30
"""Steps over which the learning rate rises to its full value, or the first epoch's if fewer."""

ABSENT = -1.0
"""Label of a gap that is padding."""

OnEpoch = Callable[[LabellerEpoch], None]


def train_segmenter(
    corpus: Corpus,
    settings: LabellerTraining | None = None,
    *,
    embeddings: Vectors | None = None,
    on_epoch: OnEpoch = lambda epoch: None,
    progress: Progress = no_progress,
    **encoding: Unpack[Encoding],
) -> Labeller:
    """Train a labeller on a corpus with gold; ``save`` it for ``--method trained:path=FOLDER``.

    Interrupted, it returns the best state so far, once there is one.

    Args:
        corpus: from `reffree.load`, with gold in every document, four documents at least.
        settings: the architecture and how to train it.
        embeddings: one array per document, in corpus order or by id, instead of an encoder.
        on_epoch: called after every epoch.
        progress: called as stages start.
        **encoding: which encoder, and how, as in `EncoderOptions`.
    """
    options = EncoderOptions(**encoding)
    part, embeddings = units_taking_part(corpus, embeddings, options)
    settings = settings or LabellerTraining()
    split_documents(part.corpus, settings)  # refuse what cannot be trained on before it is encoded
    device = choose_device(options.device)
    embedded = corpus_vectors(part.corpus, embeddings, options, progress)
    return train_labeller(
        part.corpus, embedded, settings, device, on_epoch=on_epoch, progress=progress
    )


def split_documents(
    corpus: Corpus, settings: LabellerTraining
) -> tuple[list[Passage], list[Passage]]:
    """Set documents aside; refuses a corpus that teaches nothing."""
    rng = rng_for(settings.seed, "segmenter", "held out")
    training, held_out = hold_out(
        passages_of(corpus, kind=LabellerDescription.kind), settings.held_out, rng
    )
    n_gaps = sum(len(p.rows) - 1 for p in training)
    if not 0 < sum(len(p.segmentation) - 1 for p in training) < n_gaps:
        raise InputError(
            "gold with a boundary in no gap, or in every gap, of the training documents",
            expected="gaps with a boundary and gaps without",
            remedy="give other documents",
        )
    return training, held_out


def train_labeller(
    corpus: Corpus,
    embeddings: Embeddings,
    settings: LabellerTraining,
    device: torch.device,
    *,
    on_epoch: OnEpoch = lambda epoch: None,
    progress: Progress = no_progress,
) -> Labeller:
    """Train on vectors that are there; on the processes of a launcher, where one started them."""
    training, held_out = split_documents(corpus, settings)
    inputs = [as_input(x) for x in embeddings.vectors]
    dimension = inputs[0].shape[1]
    with training_on(device, settings.mixed_precision, settings.seed) as accelerator:
        network = make_network(dimension, settings)
        trainer = Trainer(network, partial(document_loss, network), accelerator)
        run = _LabellerRun(
            trainer=trainer,
            training=[_Labelled.of(inputs[p.document], p.segmentation) for p in training],
            held_out=[_Labelled.of(inputs[p.document], p.segmentation) for p in held_out],
            settings=settings,
            on_epoch=on_epoch,
            progress=progress,
        )
        trainer.run(run.train, "a held-out log loss", settings.learning_rate)
    best = run.history[run.best_at]
    n_training = len({p.document for p in training})
    description = LabellerDescription(
        version=importlib.metadata.version("reffree"),
        settings=settings.resolved(len(training)),
        encoder=embeddings.spec,
        dimension=dimension,
        epoch=best.epoch,
        threshold=best.threshold,
        log_loss=best.log_loss,
        pk=best.pk,
        f1=best.f1,
        counts={
            "training_documents": n_training,
            "training_gaps": sum(len(each.labels) for each in run.training),
            "training_boundaries": sum(int(each.labels.sum()) for each in run.training),
            "held_out_documents": len({p.document for p in held_out}),
            "held_out_gaps": sum(len(each.labels) for each in run.held_out),
            "held_out_boundaries": sum(int(each.labels.sum()) for each in run.held_out),
        },
        history=tuple(run.history),
        is_interrupted=trainer.is_interrupted,
        device=str(accelerator.device),
        precision=accelerator.mixed_precision,
        weights="",  # known once they are saved
    )
    return Labeller(network.cpu().eval(), description)


@dataclass(frozen=True, slots=True)
class _Labelled:
    """A document under a reference."""

    vectors: Tensor  # (n, d)
    labels: Tensor  # (n - 1,), 1 for a boundary
    gold: Segmentation

    @classmethod
    def of(cls, vectors: Tensor, gold: Segmentation) -> _Labelled:
        return cls(vectors, torch.tensor(gold.to_labels("gap"), dtype=torch.float32), gold)


def document_loss(network: Network, batch: tuple[Tensor, list[int], Tensor]) -> Loss:
    """Binary cross-entropy over the gaps of whole documents."""
    units, lengths, labels = batch
    is_there = labels != ABSENT
    losses = nn.functional.binary_cross_entropy_with_logits(
        network(units, lengths).float(), labels.clamp(min=0), reduction="none"
    )
    count = is_there.sum()
    return (losses * is_there).sum() / count, count


@dataclass(frozen=True, slots=True)
class DocumentReader:
    """Makes batches of documents on the host."""

    documents: Sequence[_Labelled]

    def __call__(self, chosen: list[int]) -> tuple[Tensor, list[int], Tensor]:
        """Return padded vectors, lengths and padded labels."""
        documents = [self.documents[i] for i in chosen]
        return (
            padded([each.vectors for each in documents]),
            [len(each.vectors) for each in documents],
            padded([each.labels for each in documents], ABSENT),
        )


@dataclass(slots=True)
class _LabellerRun:
    """One training, as far as it has come."""

    trainer: Trainer[tuple[Tensor, list[int], Tensor]]
    training: list[_Labelled]
    held_out: list[_Labelled]
    settings: LabellerTraining
    on_epoch: OnEpoch
    progress: Progress
    history: list[LabellerEpoch] = field(default_factory=list)
    best_at: int = -1  # in the history

    def train(self) -> None:
        """Run the epochs, until none is better for a while."""
        settings, trainer = self.settings, self.trainer
        reader = DocumentReader([each for each in self.training if len(each.labels)])
        n, size = len(reader.documents), settings.batch(len(self.training))
        draws = torch.Generator().manual_seed(settings.seed)
        batches = trainer.batches(n, size, reader, draws=draws)
        rising = Rising(min(WARM_UP, steps_of([n], size)))
        trainer.begin(settings.learning_rate, settings.weight_decay, rising)
        with self.progress("Training", settings.epochs) as advance:
            for number in range(1, settings.epochs + 1):
                self._measure(number, trainer.epoch(batches).item())
                advance(1)
                if self.history and number - self.history[self.best_at].epoch >= settings.patience:
                    advance(settings.epochs - number)
                    break

    def _measure(self, number: int, training_loss: float) -> None:
        documents = [each.vectors for each in self.held_out]
        logits = gap_logits(self.trainer.network, documents, self.trainer.accelerator.device)
        labels = np.concatenate([each.labels.numpy() for each in self.held_out])
        value = log_loss(np.concatenate(logits), labels)
        if not math.isfinite(value) or not math.isfinite(training_loss):
            return
        scores, golds = [probabilities(each) for each in logits], [e.gold for e in self.held_out]
        threshold = find_best_threshold(self.settings.criterion, scores, golds)
        found = (mean_values(each, scores, golds, np.array([threshold])) for each in CRITERIA)
        pk, f1 = (None if each is None else float(each[0]) for each in found)
        epoch = LabellerEpoch(number, training_loss, value, threshold, pk, f1)
        self.history.append(epoch)
        if self.best_at < 0 or value < self.history[self.best_at].log_loss:
            self.trainer.keep()
            self.best_at = len(self.history) - 1
        self.on_epoch(epoch)
