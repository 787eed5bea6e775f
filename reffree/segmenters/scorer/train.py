"""Train a boundary scorer: on splices, on gold, then one temperature (Coen §5.3).

Both stages minimise binary cross-entropy. After every epoch the held-out documents are scored, and
the state with the lowest log loss on them is the one that counts: the second stage starts from it,
and so does calibration. The paper reports epochs (Tables 7 and 8) but not how it chose among them.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from reffree.corpus import Corpus
from reffree.encoders.base import EncoderSpec
from reffree.encoders.embed import Embeddings
from reffree.encoders.models import ModelFolder
from reffree.errors import InputError
from reffree.segmenters.scorer.calibration import (
    find_temperature,
    find_threshold,
    log_loss,
    pooled_f1,
    probabilities,
    select,
)
from reffree.segmenters.scorer.checkpoint import Checkpoint
from reffree.segmenters.scorer.data import Examples, Gaps, examples_of
from reffree.segmenters.scorer.description import Description, Epoch, Stage
from reffree.segmenters.scorer.model import GapModel, Head, HeadOnVectors, logits_of
from reffree.segmenters.scorer.pair import (
    PairClassifier,
    PairOnTexts,
    load_transformer,
    reads_first,
)
from reffree.segmenters.scorer.settings import Training

PAPER_THRESHOLD = 0.5
WARM_UP = 0.1
LARGEST_GRADIENT = 1.0

OnEpoch = Callable[[Epoch], None]
Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


def _silent(stage: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    return nullcontext(lambda done: None)


def train_head(
    corpus: Corpus,
    embeddings: Embeddings,
    settings: Training,
    *,
    on_epoch: OnEpoch = lambda epoch: None,
    progress: Progress = _silent,
) -> Checkpoint:
    """Train a small network on the units' vectors; the encoder stays as it is.

    Interrupted, it returns the best state so far, once there is one.
    """
    examples = examples_of(corpus, settings)
    dimension = embeddings.vectors[0].shape[1]
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        network = Head(dimension, settings.window, settings.hidden, settings.dropout)
        model = HeadOnVectors(network, embeddings.vectors)
        network.standardise(model, examples.gold)
        run = _Run(model, examples, settings, on_epoch, progress)
        run.train()
    return Checkpoint(network, run.describe(embeddings.spec, dimension))


def train_pair(
    corpus: Corpus,
    folder: ModelFolder,
    device: torch.device,
    settings: Training,
    *,
    on_epoch: OnEpoch = lambda epoch: None,
    progress: Progress = _silent,
) -> Checkpoint:
    """Fine-tune the encoder itself on pairs of windows, as the paper does.

    Interrupted, it returns the best state so far, once there is one.
    """
    examples = examples_of(corpus, settings)
    texts = [unit for document in corpus.documents for unit in document.units]
    transformer, tokenizer = load_transformer(folder)
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        network = PairClassifier(transformer, reads_first=reads_first(tokenizer))
        model = PairOnTexts(network, tokenizer, texts, folder.spec.max_length, device)
        run = _Run(model, examples, settings, on_epoch, progress)
        run.train()
    dimension = network.projection.in_features
    return Checkpoint(network, run.describe(folder.spec, dimension), tokenizer)


@dataclass(slots=True)
class _Run:
    """One training, as far as it has come."""

    model: GapModel
    examples: Examples
    settings: Training
    on_epoch: OnEpoch
    progress: Progress
    history: list[Epoch] = field(default_factory=list)
    best: dict[str, Tensor] | None = None
    is_interrupted: bool = False

    def train(self) -> None:
        """Run both stages; leaves the best state in the network."""
        settings = self.settings
        try:
            self._stage("splices", self.examples.splices, settings.rate)
            self._stage("gold", (self.examples.gold,) * settings.epochs, settings.rate / 2)
        except KeyboardInterrupt:
            if self.best is None:
                raise
            self.is_interrupted = True
        if self.best is None:
            raise InputError(
                "a training that ended in no numbers",
                expected="a held-out log loss",
                remedy=f"lower the learning rate from {settings.rate:g}",
            )
        self.model.network.load_state_dict(self.best)

    def _stage(self, stage: Stage, epochs: tuple[Gaps, ...], rate: float) -> None:
        if not epochs:
            return
        network = self.model.network
        if self.best is not None:
            network.load_state_dict(self.best)
        steps = [math.ceil(len(gaps) / self.settings.batch) for gaps in epochs]
        optimiser = torch.optim.AdamW(
            network.parameters(), lr=rate, weight_decay=self.settings.weight_decay
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, _schedule(sum(steps)))
        with self.progress(stage.capitalize(), sum(map(len, epochs))) as advance:
            for number, gaps in enumerate(epochs, start=1):
                loss = self._epoch(gaps, optimiser, schedule, advance)
                self._measure(stage, number, loss)

    def _epoch(
        self,
        gaps: Gaps,
        optimiser: torch.optim.Optimizer,
        schedule: torch.optim.lr_scheduler.LRScheduler,
        advance: Callable[[int], None],
    ) -> float:
        network = self.model.network.train()
        order, size = torch.randperm(len(gaps)).numpy(), self.settings.batch
        total = 0.0
        for start in range(0, len(gaps), size):
            batch = order[start : start + size]
            logits = self.model.logits(gaps.windows[batch])
            wanted = torch.from_numpy(gaps.labels[batch]).to(logits.device)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, wanted)
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(network.parameters(), LARGEST_GRADIENT)
            optimiser.step()
            schedule.step()
            total += loss.item() * len(batch)
            advance(len(batch))
        return total / len(gaps)

    def _measure(self, stage: Stage, number: int, training_loss: float) -> None:
        held_out, control = self.examples.held_out, self.examples.control
        logits = logits_of(self.model, held_out.windows)
        value = log_loss(logits, held_out.labels)
        if not math.isfinite(value):
            return
        scores = probabilities(logits)
        f1, n_found = pooled_f1(
            select(scores, held_out, PAPER_THRESHOLD, self.settings.min_gap), held_out
        )
        alone = probabilities(logits_of(self.model, control.windows))
        _, n_false = pooled_f1(
            select(alone, control, PAPER_THRESHOLD, self.settings.min_gap), control
        )
        n_gold = int(held_out.labels.sum())
        epoch = Epoch(
            stage=stage,
            epoch=number,
            training_loss=training_loss,
            log_loss=value,
            f1=f1,
            bor=n_found / n_gold if n_gold else None,
            negative_control=n_false / max(1, len(control)),
        )
        if self.best is None or value < min(past.log_loss for past in self.history):
            state = self.model.network.state_dict()
            self.best = {name: tensor.detach().clone() for name, tensor in state.items()}
        self.history.append(epoch)
        self.on_epoch(epoch)

    def describe(self, encoder: EncoderSpec, dimension: int) -> Description:
        """Calibrate what was trained, and write down how it came about."""
        held_out = self.examples.held_out
        logits = logits_of(self.model, held_out.windows)
        temperature = find_temperature(logits, held_out.labels)
        scores = probabilities(logits, temperature)
        return Description(
            version=importlib.metadata.version("reffree"),
            settings=self.settings.resolved(),
            encoder=encoder,
            dimension=dimension,
            temperature=temperature,
            threshold=find_threshold(scores, held_out, self.settings.min_gap),
            log_loss=log_loss(logits, held_out.labels, temperature),
            counts=self.examples.counts,
            history=tuple(self.history),
            is_interrupted=self.is_interrupted,
            weights="",  # known once they are saved
        )


def _schedule(n_steps: int) -> Callable[[int], float]:
    """Rise to the full rate over the first tenth of the steps, then fall to zero, in lines."""
    warm_up = max(1, int(WARM_UP * n_steps))

    def share(step: int) -> float:
        if step < warm_up:
            return (step + 1) / warm_up
        return max(0.0, (n_steps - step) / max(1, n_steps - warm_up))

    return share
