"""Train a boundary scorer: on splices, on gold, then one temperature (Coen §5.3).

Both stages minimise binary cross-entropy. After every epoch a stage is judged on what it has not
seen, the first on splices of held-out documents, the second on held-out gold, and its state with
the lowest log loss there is the one that counts: the second stage starts from that of the first,
calibration from that of the second. The paper reports epochs (Tables 7 and 8) but not how it chose
among them.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.base import EncoderSpec
from reffree.encoders.device import choose_device
from reffree.encoders.embed import Vectors, corpus_vectors, units_taking_part
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.metrics.gold.granularity import WF1
from reffree.segmenters.scorer.data import Examples, Gaps, TrainingCorpora, examples_of
from reffree.segmenters.scorer.description import Description, Epoch, Figures, Stage, Training
from reffree.segmenters.scorer.gap_network import Start
from reffree.segmenters.scorer.model import GapModel, logits_of, probabilities
from reffree.segmenters.scorer.scorer import Checkpoint
from reffree.segmenters.selection import select_above
from reffree.segmenters.training import Loss, RisingAndFalling, Trainer, steps_of, training_on
from reffree.util.arrays import Floats, Integers
from reffree.util.progress import Progress, no_progress

PAPER_THRESHOLD = 0.5
WARM_UP = 0.1

TEMPERATURES = (0.1, 10.0)
"""Bounds: logits that separate the held-out boundaries would ask for a temperature of 0."""

THRESHOLDS = np.arange(1, 100) / 100
TOLERANCE = 1e-12

OnEpoch = Callable[[Epoch], None]


def train_scorer(
    corpora: Corpus | Mapping[str, Corpus],
    *,
    splices: Mapping[str, Corpus] | None = None,
    calibration: Mapping[str, Corpus] | None = None,
    settings: Training | None = None,
    embeddings: Mapping[str, Vectors] | None = None,
    on_epoch: OnEpoch = lambda epoch: None,
    progress: Progress = no_progress,
    **encoding: Unpack[Encoding],
) -> Checkpoint:
    """Train a boundary scorer in the paper's three stages; ``save`` it for ``scorer:path=FOLDER``.

    By default a small network on the units' vectors, the encoder staying as it is; with
    ``Training(finetune=True)`` the encoder itself, on pairs of windows, as the paper does with
    DistilBERT (``encoder="distilbert"``). Interrupted, it returns the best state so far, once there
    is one.

    Args:
        corpora: with gold in every document, by name; the second stage learns from them.
        splices: corpora whose segments are spliced in the first stage; by default the same. A
            document without gold is one segment.
        calibration: corpora with gold, not trained on, for temperature and threshold; by default
            documents held out.
        settings: of the training.
        embeddings: arrays of every corpus, by its name, instead of an encoder.
        on_epoch: is told how each epoch went.
        progress: called as stages start.
        **encoding: which encoder, and how, as in `EncoderOptions`.
    """
    settings, options = settings or Training(), EncoderOptions(**encoding)
    given = {"corpus": corpora} if isinstance(corpora, Corpus) else corpora
    vectors = dict(embeddings or {})

    def taking_part(named: Mapping[str, Corpus] | None) -> dict[str, Corpus]:
        parts = {}
        for name, corpus in (named or {}).items():
            part, rows = units_taking_part(corpus, (embeddings or {}).get(name), options)
            parts[name] = part.corpus
            if rows is not None:
                vectors[name] = rows
        return parts

    part = TrainingCorpora(taking_part(given), taking_part(splices), taking_part(calibration))
    examples = examples_of(part, settings)  # refuses what cannot be trained on before it is encoded
    if settings.finetune:
        units = (unit for corpus in part.everything.values() for d in corpus for unit in d.units)
        start = Start.on_texts(list(units), options)
    else:
        start = Start.on_vectors(
            [
                corpus_vectors(corpus, vectors.get(name), options, progress)
                for name, corpus in part.everything.items()
            ]
        )
    device, precision = choose_device(options.device), settings.mixed_precision
    with training_on(device, precision, settings.seed, has_idle=settings.finetune) as accelerator:
        model = start.model(
            settings.window,
            settings.hidden,
            settings.dropout,
            examples.gold,
            accelerator.device,
        )
        trainer = Trainer(model.network, partial(gap_loss, model), accelerator)
        run = _Run(model, trainer, examples, settings, on_epoch, progress)
        trainer.run(run.train, "a held-out log loss", settings.rate)
        description = run.describe(part, start.spec, start.dimension)
    return Checkpoint(model.network, description, start.tokenizer)


def gap_loss(model: GapModel, batch: tuple[Any, Tensor]) -> Loss:
    """Binary cross-entropy of gaps."""
    seen, labels = batch
    logits = model.logits(seen).float()
    return nn.functional.binary_cross_entropy_with_logits(logits, labels), len(labels)


@dataclass(frozen=True, slots=True)
class GapReader:
    """Makes batches of gaps on the host, in any process."""

    gaps: Gaps
    read: Callable[[Integers], Any]

    def __call__(self, chosen: list[int]) -> tuple[Any, Tensor]:
        """Return what the network looks at, and the labels."""
        return self.read(self.gaps.windows[chosen]), torch.from_numpy(self.gaps.labels[chosen])


@dataclass(slots=True)
class _Run:
    """One training, as far as it has come."""

    model: GapModel
    trainer: Trainer[tuple[Any, Tensor]]
    examples: Examples
    settings: Training
    on_epoch: OnEpoch
    progress: Progress
    history: list[Epoch] = field(default_factory=list)
    _lowest: float = math.inf  # log loss of this stage

    def train(self) -> None:
        """Run both stages."""
        settings = self.settings
        self._stage("splices", self.examples.splices, settings.rate)
        self._stage("gold", (self.examples.gold,) * settings.epochs, settings.rate / 2)

    def _stage(self, stage: Stage, epochs: tuple[Gaps, ...], rate: float) -> None:
        if not epochs:
            return
        trainer, size = self.trainer, self.settings.batch
        self._lowest = math.inf
        n_steps = steps_of([len(gaps) for gaps in epochs], size)
        trainer.begin(rate, self.settings.weight_decay, RisingAndFalling(n_steps, WARM_UP))
        with self.progress(stage.capitalize(), sum(map(len, epochs))) as advance:
            for number, gaps in enumerate(epochs, start=1):
                reader = GapReader(gaps, self.model.read)
                batches = trainer.batches(len(gaps), size, reader, workers=self.model.workers)
                self._measure(stage, number, trainer.epoch(batches, advance).item())

    def _measure(self, stage: Stage, number: int, training_loss: float) -> None:
        held_out = self.examples.held_out[stage]
        together, control = held_out.together, held_out.control
        logits = logits_of(self.model, together.windows)
        value = log_loss(logits, together.labels)
        if not math.isfinite(value):
            return
        found, false = self._selected(logits, together), self._selected_in(control)
        sizes = np.cumsum([len(gaps.sizes) for gaps in held_out.corpora.values()]).tolist()
        parts = [found[start:end] for start, end in zip([0, *sizes], sizes, strict=False)]
        overall = figures(found, together)
        epoch = Epoch(
            f1=overall.f1,
            w_f1=overall.w_f1,
            bor=overall.bor,
            stage=stage,
            epoch=number,
            training_loss=training_loss,
            log_loss=value,
            mean_score=float(np.abs(logits).mean()) if len(logits) else 0.0,
            negative_control=sum(len(s) - 1 for s in false) / max(1, len(control)),
            corpora={
                name: figures(part, gaps)
                for part, (name, gaps) in zip(parts, held_out.corpora.items(), strict=True)
            },
        )
        if value < self._lowest:
            self._lowest = value
            self.trainer.keep()
        self.history.append(epoch)
        self.on_epoch(epoch)

    def _selected(self, logits: Floats, gaps: Gaps) -> list[Segmentation]:
        """Boundaries by the paper's static rule."""
        return select(probabilities(logits), gaps, PAPER_THRESHOLD, self.settings.min_gap)

    def _selected_in(self, gaps: Gaps) -> list[Segmentation]:
        return self._selected(logits_of(self.model, gaps.windows), gaps)

    def describe(
        self, corpora: TrainingCorpora, encoder: EncoderSpec, dimension: int
    ) -> Description:
        """Calibrate what was trained, and write down how it came about."""
        gaps = self.examples.calibration
        logits = logits_of(self.model, gaps.windows)
        temperature = find_temperature(logits, gaps.labels)
        scores = probabilities(logits, temperature)
        return Description(
            version=importlib.metadata.version("reffree"),
            settings=self.settings.resolved(),
            encoder=encoder,
            dimension=dimension,
            temperature=temperature,
            threshold=find_threshold(scores, gaps, self.settings.min_gap),
            log_loss=log_loss(logits, gaps.labels, temperature),
            corpora=corpora.roles,
            counts=self.examples.counts,
            history=tuple(self.history),
            is_interrupted=self.trainer.is_interrupted,
            weights="",  # known once they are saved
        )


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


def figures(found: list[Segmentation], gaps: Gaps) -> Figures:
    """Agreement of the boundaries found with those of the gaps."""
    f1, n_found = pooled_f1(found, gaps)
    n_gold = int(gaps.labels.sum())
    gold = [
        Segmentation.from_boundaries((np.flatnonzero(part) + 1).tolist(), len(part) + 1)
        for part in gaps.by_passage(gaps.labels.astype(np.float64))
    ]
    return Figures(
        f1=f1,
        w_f1=float(np.asarray(WF1()(found, gold), dtype=np.float64).mean()),
        bor=n_found / n_gold if n_gold else None,
    )


def pooled_f1(found: list[Segmentation], gaps: Gaps) -> tuple[float, int]:
    """F1 over the boundaries of all passages together, and the number of boundaries found."""
    marked = np.concatenate([np.array(s.to_labels("gap"), dtype=np.float64) for s in found])
    n_found, n_gold = int(marked.sum()), float(gaps.labels.sum())
    if n_found + n_gold == 0:
        return 1.0, 0
    return float(2 * (marked @ gaps.labels) / (n_found + n_gold)), n_found
