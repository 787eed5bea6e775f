"""Train a boundary scorer: on splices, on gold, then one temperature (Coen §5.3).

Both stages minimise binary cross-entropy. After every epoch the held-out documents are scored, and
the state with the lowest log loss on them is the one that counts: the second stage starts from it,
and so does calibration. The paper reports epochs (Tables 7 and 8) but not how it chose among them.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from reffree.arrays import Floats
from reffree.corpus import Corpus
from reffree.encoders.base import EncoderSpec
from reffree.encoders.embed import Embeddings
from reffree.encoders.models import ModelFolder
from reffree.errors import InputError
from reffree.progress import Progress, no_progress
from reffree.segmentation import Segmentation
from reffree.segmenters.scorer.data import Examples, Gaps, examples_of
from reffree.segmenters.scorer.description import Description, Epoch, Stage, Training
from reffree.segmenters.scorer.model import (
    GapModel,
    Head,
    HeadOnVectors,
    PairClassifier,
    PairOnTexts,
    load_transformer,
    logits_of,
    probabilities,
)
from reffree.segmenters.scorer.scorer import Checkpoint
from reffree.selection import select_above

PAPER_THRESHOLD = 0.5
WARM_UP = 0.1
LARGEST_GRADIENT = 1.0

TEMPERATURES = (0.1, 10.0)
"""Bounds: logits that separate the held-out boundaries would ask for a temperature of 0."""

THRESHOLDS = np.arange(1, 100) / 100
TOLERANCE = 1e-12

OnEpoch = Callable[[Epoch], None]


def train_head(
    corpus: Corpus,
    embeddings: Embeddings,
    settings: Training,
    *,
    on_epoch: OnEpoch = lambda epoch: None,
    progress: Progress = no_progress,
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
    progress: Progress = no_progress,
) -> Checkpoint:
    """Fine-tune the encoder itself on pairs of windows, as the paper does.

    Interrupted, it returns the best state so far, once there is one.
    """
    examples = examples_of(corpus, settings)
    texts = [unit for document in corpus.documents for unit in document.units]
    transformer, tokenizer = load_transformer(folder)
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        network = PairClassifier(transformer, reads_first=tokenizer.cls_token is not None)
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
        f1, n_found = self._selected(logits, held_out)
        _, n_false = self._selected(logits_of(self.model, control.windows), control)
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

    def _selected(self, logits: Floats, gaps: Gaps) -> tuple[float, int]:
        """F1 and number of boundaries by the paper's static rule."""
        found = select(probabilities(logits), gaps, PAPER_THRESHOLD, self.settings.min_gap)
        return pooled_f1(found, gaps)

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


def log_loss(logits: ArrayLike, labels: ArrayLike, temperature: float = 1.0) -> float:
    """Mean negative log likelihood of the labels; 0 without any."""
    z = np.asarray(logits, dtype=np.float64) / temperature
    y = np.asarray(labels, dtype=np.float64)
    losses = np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z)))
    return float(losses.mean()) if len(losses) else 0.0


def find_temperature(logits: ArrayLike, labels: ArrayLike) -> float:
    r"""Return the temperature of least log loss (Coen §5.3, stage 3).

    The loss is convex in :math:`\beta = 1/T`; its slope :math:`\sum_i (\sigma(\beta z_i) - y_i)
    z_i` never falls, so halving an interval finds where it is zero. 1 where held-out gaps are all
    boundaries, or none: they say nothing of how sure to be.
    """
    z, y = np.asarray(logits, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if not 0 < y.sum() < len(y) or not z.any():
        return 1.0
    low, high = 1 / TEMPERATURES[1], 1 / TEMPERATURES[0]
    while high - low > TOLERANCE * high:
        beta = (low + high) / 2
        if float((probabilities(beta * z) - y) @ z) < 0:
            low = beta
        else:
            high = beta
    return 2 / (low + high)


def find_threshold(scores: Floats, gaps: Gaps, min_gap: int) -> float:
    """Return the threshold of the highest held-out F1, nearest to 0.5 of several.

    F1 of exact boundaries pooled over documents: with few held-out documents, their mean has more
    noise. Coen has 0.5 everywhere (§5.1), as choosing one would hide differences in density.
    """
    best, at = -1.0, 0.5
    for threshold in sorted(THRESHOLDS.tolist(), key=lambda t: (abs(t - 0.5), t)):
        value, _ = pooled_f1(select(scores, gaps, threshold, min_gap), gaps)
        if value > best + TOLERANCE:
            best, at = value, threshold
    return at


def select(scores: Floats, gaps: Gaps, threshold: float, min_gap: int) -> list[Segmentation]:
    """Segment every passage by the static rule."""
    return [select_above(part, threshold, min_gap) for part in gaps.by_passage(scores)]


def pooled_f1(found: list[Segmentation], gaps: Gaps) -> tuple[float, int]:
    """F1 over the boundaries of all passages together, and the number of boundaries found."""
    marked = np.concatenate([np.array(s.to_labels("gap"), dtype=np.float64) for s in found])
    n_found, n_gold = int(marked.sum()), float(gaps.labels.sum())
    if n_found + n_gold == 0:
        return 1.0, 0
    return float(2 * (marked @ gaps.labels) / (n_found + n_gold)), n_found
