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
from typing import Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from reffree.arrays import Floats
from reffree.corpus import Corpus
from reffree.encoders.base import EncoderSpec
from reffree.encoders.device import choose_device
from reffree.encoders.embed import Embeddings, Vectors, corpus_vectors, units_taking_part
from reffree.encoders.models import DEFAULT_ENCODER, find_model
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.errors import InputError
from reffree.progress import Progress, no_progress
from reffree.reference.granularity import WF1
from reffree.segmentation import Segmentation
from reffree.segmenters.scorer.data import Examples, Gaps, TrainingCorpora, examples_of
from reffree.segmenters.scorer.description import Description, Epoch, Figures, Stage, Training
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
from reffree.segmenters.scorer.optimisation import Optimisation
from reffree.segmenters.scorer.scorer import Checkpoint
from reffree.selection import select_above

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
        return _train_pair(part, examples, settings, options, on_epoch, progress)
    embedded = {
        name: corpus_vectors(corpus, vectors.get(name), options, progress)
        for name, corpus in part.everything.items()
    }
    return _train_head(part, examples, settings, embedded, on_epoch, progress)


def _train_head(
    corpora: TrainingCorpora,
    examples: Examples,
    settings: Training,
    embedded: Mapping[str, Embeddings],
    on_epoch: OnEpoch,
    progress: Progress,
) -> Checkpoint:
    """Train a small network on the units' vectors."""
    vectors = [x for name in corpora.everything for x in embedded[name].vectors]
    dimension = vectors[0].shape[1]
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        network = Head(dimension, settings.window, settings.hidden, settings.dropout)
        model = HeadOnVectors(network, vectors)
        network.standardise(model, examples.gold)
        run = _Run(model, examples, settings, on_epoch, progress)
        run.train()
    spec = embedded[next(iter(corpora.gold))].spec
    return Checkpoint(network, run.describe(corpora, spec, dimension))


def _train_pair(
    corpora: TrainingCorpora,
    examples: Examples,
    settings: Training,
    options: EncoderOptions,
    on_epoch: OnEpoch,
    progress: Progress,
) -> Checkpoint:
    """Fine-tune the encoder itself on pairs of windows."""
    device = choose_device(options.device)
    folder = find_model(options.encoder or DEFAULT_ENCODER, offline=options.offline)
    texts = [
        unit
        for corpus in corpora.everything.values()
        for document in corpus
        for unit in document.units
    ]
    transformer, tokenizer = load_transformer(folder)
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        network = PairClassifier(transformer, reads_first=tokenizer.cls_token is not None)
        model = PairOnTexts(network, tokenizer, texts, folder.spec.max_length, device)
        run = _Run(model, examples, settings, on_epoch, progress)
        run.train()
    dimension = transformer.config.hidden_size
    return Checkpoint(network, run.describe(corpora, folder.spec, dimension), tokenizer)


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
    _lowest: float = math.inf  # log loss of this stage

    def train(self) -> None:
        """Run both stages; leaves the best state of the last in the network."""
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
        self._lowest = math.inf
        steps = Optimisation(
            network,
            sum(math.ceil(len(gaps) / self.settings.batch) for gaps in epochs),
            rate=rate,
            weight_decay=self.settings.weight_decay,
            warm_up=WARM_UP,
        )
        with self.progress(stage.capitalize(), sum(map(len, epochs))) as advance:
            for number, gaps in enumerate(epochs, start=1):
                loss = self._epoch(gaps, steps, advance)
                self._measure(stage, number, loss)

    def _epoch(self, gaps: Gaps, steps: Optimisation, advance: Callable[[int], None]) -> float:
        self.model.network.train()
        order, size = torch.randperm(len(gaps)).numpy(), self.settings.batch
        total = 0.0
        for start in range(0, len(gaps), size):
            batch = order[start : start + size]
            logits = self.model.logits(gaps.windows[batch])
            wanted = torch.from_numpy(gaps.labels[batch]).to(logits.device)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, wanted)
            total += steps.step(loss) * len(batch)
            advance(len(batch))
        return total / len(gaps)

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
            state = self.model.network.state_dict()
            self.best = {name: tensor.detach().clone() for name, tensor in state.items()}
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
            is_interrupted=self.is_interrupted,
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
