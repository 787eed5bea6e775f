"""Train a sequence labeller on the vectors of a corpus with gold.

Binary cross-entropy over the gaps of whole documents. After every epoch the held-out documents are
scored; the state with the lowest log loss on them is kept, and the threshold is that of the best
mean Pk (or F1) on them. Devices, several processes and mixed precision are accelerate's.
"""

from __future__ import annotations

import importlib.metadata
import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from reffree.corpus import Corpus
from reffree.encoders.device import choose_device
from reffree.encoders.embed import Embeddings, Vectors, corpus_vectors, units_taking_part
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.errors import InputError, OptionError
from reffree.progress import Progress, no_progress
from reffree.seeds import rng_for
from reffree.segmentation import Segmentation
from reffree.segmenters.labeller.description import (
    CRITERIA,
    KIND,
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

LARGEST_GRADIENT = 1.0
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
    training, held_out = hold_out(passages_of(corpus, kind=KIND), settings.held_out, rng)
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
    with torch.random.fork_rng(), _on(device):
        torch.manual_seed(settings.seed)
        run = _LabellerRun(
            network=make_network(dimension, settings),
            training=[_Labelled.of(inputs[p.document], p.segmentation) for p in training],
            held_out=[_Labelled.of(inputs[p.document], p.segmentation) for p in held_out],
            settings=settings,
            accelerator=_accelerator(device, settings),
            on_epoch=on_epoch,
            progress=progress,
        )
        run.train()
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
        is_interrupted=run.is_interrupted,
        device=str(run.accelerator.device),
        precision=run.accelerator.mixed_precision,
        weights="",  # known once they are saved
    )
    return Labeller(run.network.cpu().eval(), description)


@dataclass(frozen=True, slots=True)
class _Labelled:
    """A document under a reference."""

    vectors: Tensor  # (n, d)
    labels: Tensor  # (n - 1,), 1 for a boundary
    gold: Segmentation

    @classmethod
    def of(cls, vectors: Tensor, gold: Segmentation) -> _Labelled:
        return cls(vectors, torch.tensor(gold.to_labels("gap"), dtype=torch.float32), gold)


@dataclass(slots=True)
class _LabellerRun:
    """One training, as far as it has come."""

    network: Network
    training: list[_Labelled]
    held_out: list[_Labelled]
    settings: LabellerTraining
    accelerator: Any
    on_epoch: OnEpoch
    progress: Progress
    history: list[LabellerEpoch] = field(default_factory=list)
    best_at: int = -1  # in the history
    best: dict[str, Tensor] = field(default_factory=dict)
    is_interrupted: bool = False

    def train(self) -> None:
        """Run the epochs; leaves the best state in the network."""
        try:
            self._epochs()
        except KeyboardInterrupt:
            if not self.best:
                raise
            self.is_interrupted = True
        if not self.best:
            raise InputError(
                "a training that ended in no numbers",
                expected="a held-out log loss",
                remedy=f"lower the learning rate from {self.settings.learning_rate:g}",
            )
        self.network.load_state_dict(self.best)

    def _epochs(self) -> None:
        settings, accelerator = self.settings, self.accelerator
        batches: Any = DataLoader(
            [each for each in self.training if len(each.labels)],  # type: ignore[arg-type]
            batch_size=settings.batch(len(self.training)),
            shuffle=True,
            collate_fn=_collate,
            generator=torch.Generator().manual_seed(settings.seed),
        )
        optimiser: Any = torch.optim.AdamW(
            self.network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        rising = min(WARM_UP, len(batches))
        schedule: Any = torch.optim.lr_scheduler.LinearLR(optimiser, 1 / rising, 1.0, rising)
        network, optimiser, batches, schedule = accelerator.prepare(
            self.network, optimiser, batches, schedule
        )
        with self.progress("Training", settings.epochs) as advance:
            for number in range(1, settings.epochs + 1):
                loss = self._epoch(network, optimiser, batches, schedule)
                self._measure(number, loss)
                advance(1)
                if self.best and number - self.history[self.best_at].epoch >= settings.patience:
                    advance(settings.epochs - number)
                    break

    def _epoch(self, network: nn.Module, optimiser: Any, batches: Any, schedule: Any) -> float:  # noqa: ANN401
        """Return the mean loss of a gap; losses stay on the device until the end."""
        network.train()
        device = self.accelerator.device
        total, count = torch.zeros((), device=device), torch.zeros((), device=device)
        for units, lengths, labels in batches:
            with self.accelerator.autocast():
                logits = network(units, lengths)
            is_there = labels != ABSENT
            losses = nn.functional.binary_cross_entropy_with_logits(
                logits.float(), labels.clamp(min=0), reduction="none"
            )
            total_here, count_here = (losses * is_there).sum(), is_there.sum()
            self.accelerator.backward(total_here / count_here)
            self.accelerator.clip_grad_norm_(network.parameters(), LARGEST_GRADIENT)
            optimiser.step()
            schedule.step()
            optimiser.zero_grad()
            total, count = total + total_here.detach(), count + count_here
        return float((total / count).item())

    def _measure(self, number: int, training_loss: float) -> None:
        device = next(self.network.parameters()).device
        documents = [each.vectors for each in self.held_out]
        logits = gap_logits(self.network, documents, device)
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
            state = self.network.state_dict()
            self.best = {name: tensor.detach().clone() for name, tensor in state.items()}
            self.best_at = len(self.history) - 1
        self.on_epoch(epoch)


def _collate(documents: Sequence[_Labelled]) -> tuple[Tensor, list[int], Tensor]:
    return (
        padded([each.vectors for each in documents]),
        [len(each.vectors) for each in documents],
        padded([each.labels for each in documents], ABSENT),
    )


def _accelerator(device: torch.device, settings: LabellerTraining) -> Any:  # noqa: ANN401
    """Make what runs a training on a device, or on those of a launcher's processes."""
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    precision = settings.mixed_precision
    if precision == "auto":
        has_bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported()
        precision = "bf16" if has_bf16 else "no"
    elif precision != "no" and not computes_in(device, precision):
        raise OptionError(
            f"a device ({device}) that cannot train in {precision}",
            expected="one that can",
            remedy="leave --mixed-precision out",
        )
    if not _is_launched():  # where it is, the processes have met once and for all
        AcceleratorState._reset_state(reset_partial_state=True)  # another training had its own
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # accelerate tells of the threads it sets
        return Accelerator(cpu=device.type == "cpu", mixed_precision=precision)


def computes_in(device: torch.device, precision: str) -> bool:
    """Whether a device can run the recurrent networks in fewer bits, tried on a tiny one."""
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[precision]
    network = nn.LSTM(2, 2, bidirectional=True).to(device)
    try:
        with torch.autocast(device.type, dtype=dtype):
            network(torch.zeros(1, 1, 2, device=device))[0].sum().backward()
    except (RuntimeError, ValueError):
        return False
    return True


def is_first_process() -> bool:
    """Whether this is the only process, or the first of those that a launcher started."""
    return int(os.environ.get("RANK", "0")) == 0


def _is_launched() -> bool:
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


@contextmanager
def _on(device: torch.device) -> Iterator[None]:
    """Make a numbered GPU the one that ``cuda`` means."""
    numbered = device.type == "cuda" and device.index is not None
    with torch.cuda.device(device) if numbered else nullcontext():
        yield
