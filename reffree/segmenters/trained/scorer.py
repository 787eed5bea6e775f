"""``scorer``: a boundary scorer that is trained, and kept in a folder (Coen, "When F1 Fails", §5).

Training is on splices, on gold, then of one temperature (§5.3). Both stages minimise binary
cross-entropy. After every epoch a stage is judged on held-out splices, or held-out gold; its state
with the lowest log loss there is the one that counts, and the next stage starts from it. The paper
reports epochs (Tables 7 and 8) but not how it chose among them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.base import EncoderSpec
from reffree.encoders.device import choose_device
from reffree.encoders.embed import Vectors
from reffree.metrics.gold.granularity import WF1
from reffree.segmenters.base import Inputs
from reffree.segmenters.selection import (
    MIN_GAP,
    AdaptiveThreshold,
    Rule,
    select_above,
    select_adaptive,
)
from reffree.segmenters.trained.base import GapNetwork, Start, TrainedMethod, take_part
from reffree.segmenters.trained.examples import Examples, Gaps, Stage, TrainingCorpora, examples_of
from reffree.segmenters.trained.gap_networks import GapModel, log_loss, logits_of, probabilities
from reffree.segmenters.trained.settings import GapOptions, Kind, ScorerSettings
from reffree.segmenters.trained.training import Epochs, Loss, Row, Trainer, falling, training_on
from reffree.util.arrays import Floats, Integers
from reffree.util.bounds import Bounds, Count, Positive
from reffree.util.declare import Option, declared
from reffree.util.errors import InputError
from reffree.util.progress import Progress, no_progress

PAPER_THRESHOLD = 0.5
WARM_UP = 0.1

TEMPERATURES = (0.1, 10.0)
"""Bounds: logits that separate the held-out boundaries would ask for a temperature of 0."""

THRESHOLDS = np.arange(1, 100) / 100
TOLERANCE = 1e-12


class TrainedScorer(GapNetwork[ScorerSettings]):
    """A scorer and what is known of it."""

    __slots__ = ()
    kind: ClassVar[Kind] = "scorer"

    def gap_scores(self, inputs: Inputs) -> tuple[Floats, ...]:
        """Calibrated probability of a boundary at each of the ``n - 1`` gaps of every document."""
        temperature = self.description.figures["temperature"]
        return tuple(probabilities(each, temperature) for each in self.logits(inputs))


@dataclass(frozen=True, slots=True)
class Scorer(TrainedMethod):
    """Boundaries where a trained scorer is sure enough of them.

    ``path`` is a folder that ``reffree train scorer`` wrote. Scores are calibrated probabilities;
    the defaults of ``threshold`` and ``min_gap`` are the paper's (§5.1), and
    ``threshold=held_out`` is the one that did best on the documents held out in training. Instead
    of a threshold: ``k`` boundaries, a ``density`` (boundaries per gap), or a ``rate`` that the
    adaptive threshold of Appendix F steers to over the corpus, document after document.
    """

    path: str = ""
    threshold: Annotated[float, Bounds(0, 1)] | Literal["held_out"] = PAPER_THRESHOLD
    min_gap: Positive = MIN_GAP
    k: Literal["gold"] | int | None = None
    density: Annotated[float | None, Bounds(0, 1)] = None
    rate: float | None = None
    name: ClassVar[str] = "scorer"
    gives_probabilities: ClassVar[bool] = True
    trained: ClassVar[type[TrainedScorer]] = TrainedScorer

    def __post_init__(self) -> None:
        TrainedMethod.__post_init__(self)
        if sum(target is not None for target in (self.k, self.density, self.rate)) > 1:
            raise InputError(
                "more than one of k, density and rate",
                expected="one of them, or none for a threshold",
                remedy="write scorer:path=FOLDER,k=gold",
            )
        if self.rate is not None:
            AdaptiveThreshold(self.rate, self.min_gap)

    def selection_rule(self) -> Rule:
        """Select by the threshold, or by one that is steered to a rate over the corpus."""
        if self.rate is None:
            return TrainedMethod.selection_rule(self)
        controller = AdaptiveThreshold(self.rate, self.min_gap)
        return lambda scores, candidates: select_adaptive(scores, controller, candidates)


def gap_probabilities(
    folder: str | Path,
    corpus: Corpus,
    vectors: Sequence[NDArray[np.generic]] | None = None,
    encoder: EncoderSpec | None = None,
    device: str = "auto",
) -> tuple[Floats, ...]:
    """Probability of a boundary in the ``n - 1`` gaps of every document, by a trained scorer.

    There are no vectors for a scorer whose encoder was fine-tuned; ``encoder``, as far as it is
    known, made them, and another than the scorer's is refused.
    """
    inputs = Inputs(corpus, embeddings=vectors, encoder=encoder, device=device)
    return TrainedScorer.load(folder).gap_scores(inputs)


def check_scorer(folder: str | Path, encoder: EncoderSpec | None) -> None:
    """Refuse a folder without a trained scorer, or of a scorer of another encoder."""
    TrainedScorer.load(folder).description.check_encoder(encoder)


@declared
def train_scorer(
    corpora: Corpus | Mapping[str, Corpus],
    *,
    splices: Mapping[str, Corpus] | None = None,
    calibration: Mapping[str, Corpus] | None = None,
    window: Annotated[Positive, Option("Units on either side of a gap.")] = 4,
    splice_epochs: Annotated[
        Count, Option("Epochs on segments of different documents put end to end.")
    ] = 3,
    epochs: Annotated[Count, Option("Epochs on gold boundaries.")] = 5,
    splices_per_document: Annotated[
        Positive, Option("Synthetic documents in an epoch, for every training document.", cli=False)
    ] = 4,
    weight_decay: Annotated[float, Option("Of AdamW.", cli=False)] = 0.01,
    batch_size: Annotated[
        Positive | None, Option("Gaps in a step.", default="64, with --finetune 16", cli=False)
    ] = None,
    min_gap: Annotated[
        Positive, Option("Units between boundaries when held-out documents are segmented.")
    ] = 3,
    embeddings: Mapping[str, Vectors] | None = None,
    on_epoch: Callable[[Row], None] = lambda row: None,
    progress: Progress = no_progress,
    **options: Unpack[GapOptions],
) -> TrainedScorer:
    """Train a boundary scorer on corpora with gold, for --method scorer:path=FOLDER.

    First on splices of segments of different documents, judged on splices of documents held out;
    then on the gold boundaries of every CORPUS; then one temperature makes its scores
    probabilities. What is judged after every epoch is told here and kept in FOLDER/trained.json.
    The published setting: --finetune --encoder distilbert, with --splices and --calibrate.

    Args:
        corpora: with gold in every document, by name; the second stage learns from them.
        splices: corpora whose segments are spliced in the first stage; by default the same. A
            document without gold is one segment.
        calibration: corpora with gold, not trained on, for temperature and threshold; by default
            documents held out.
        embeddings: arrays of every corpus, by its name, instead of an encoder.
        on_epoch: is told how each epoch went; interrupted, the best state so far is returned.
    """
    settings, encoding = ScorerSettings.choose(locals())
    parts = [take_part(named, embeddings, encoding) for named in (corpora, splices, calibration)]
    vectors = {name: given for _, each in parts for name, given in each.items()}
    learnt = TrainingCorpora(*(part for part, _ in parts))
    examples = examples_of(learnt, settings)  # refuses what teaches nothing before it is encoded
    start = Start.of(learnt.everything, vectors, settings, encoding, progress)
    with training_on(choose_device(encoding.device), settings) as accelerator:
        model = start.model(settings, examples.gold.windows, accelerator.device)
        trainer = Trainer(model.network, partial(gap_loss, model), accelerator)
        trainer.train(
            _stage(model, examples, settings, "splices", examples.splices, settings.rate),
            _stage(model, examples, settings, "gold", (examples.gold,) * epochs, settings.rate / 2),
            judged_by="a held-out log loss",
            on_epoch=on_epoch,
            progress=progress,
        )
        held_out = examples.calibration
        logits = logits_of(model, held_out.windows)
        temperature = find_temperature(logits, held_out.labels)
        figures = {
            "temperature": temperature,
            "threshold": find_threshold(probabilities(logits, temperature), held_out, min_gap),
            "log_loss": log_loss(logits, held_out.labels, temperature),
        }
    return TrainedScorer.of(
        trainer, settings.resolved(), start, learnt.roles, examples.counts, figures
    )


def gap_loss(model: GapModel, batch: tuple[Any, Tensor]) -> Loss:
    """Binary cross-entropy of gaps."""
    seen, labels = batch
    logits = model.logits(seen).float()
    return nn.functional.binary_cross_entropy_with_logits(logits, labels), len(labels)


def read_gaps(gaps: Gaps, read: Callable[[Integers], Any], chosen: list[int]) -> tuple[Any, Tensor]:
    """Make a batch on the host, in any process: what the network looks at, and the labels."""
    return read(gaps.windows[chosen]), torch.from_numpy(gaps.labels[chosen])


def _stage(
    model: GapModel,
    examples: Examples,
    settings: ScorerSettings,
    name: Stage,
    epochs: Sequence[Gaps],
    rate: float,
) -> Epochs:
    """Make a stage that goes through the gaps of every epoch, judged on documents held out."""

    def judge(number: int, training_loss: float) -> tuple[float, Row] | None:
        """Return the log loss on what a stage is judged on, and its row (Coen Tables 7 and 8).

        Boundaries are those of the paper's static rule at a threshold of 0.5, without a
        temperature. ``mean_score`` is the paper's mean |score|, a diagnostic for collapse, over
        the real-valued scores of §5.2: logits; ``negative_control`` the share of gaps with a
        boundary when every held-out segment is a document of its own.
        """
        corpora, together, control = examples.held_out[name]
        logits = logits_of(model, together.windows)
        value = log_loss(logits, together.labels)
        if not math.isfinite(value):
            return None
        found = select(probabilities(logits), together, PAPER_THRESHOLD, settings.min_gap)
        scores = probabilities(logits_of(model, control.windows))
        false = select(scores, control, PAPER_THRESHOLD, settings.min_gap)
        row: Row = {
            "stage": name,
            "epoch": number,
            "training_loss": training_loss,
            "log_loss": value,
            **figures_of(found, together),
            "mean_score": float(np.abs(logits).mean()) if len(logits) else 0.0,
            "negative_control": sum(len(s) - 1 for s in false) / max(1, len(control)),
            "corpora": {},
        }
        for corpus, gaps in corpora.items():
            row["corpora"][corpus] = figures_of(found[: len(gaps.sizes)], gaps)
            found = found[len(gaps.sizes) :]
        return value, row

    return Epochs(
        name=name.capitalize(),
        examples=[(len(gaps), partial(read_gaps, gaps, model.read)) for gaps in epochs],
        settings=settings,
        size=settings.batch(),
        rate=rate,
        share=falling([len(gaps) for gaps in epochs], settings.batch(), WARM_UP),
        judge=judge,
        workers=model.workers,
    )


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
    """Return the threshold of the highest held-out F1 (pooled), nearest to 0.5 of several."""
    best, at = -1.0, 0.5
    for threshold in sorted(THRESHOLDS.tolist(), key=lambda t: (abs(t - 0.5), t)):
        value, _ = pooled_f1(select(scores, gaps, threshold, min_gap), gaps)
        if value > best + TOLERANCE:
            best, at = value, threshold
    return at


def select(scores: Floats, gaps: Gaps, threshold: float, min_gap: int) -> list[Segmentation]:
    """Segment every passage by the static rule."""
    return [select_above(part, threshold, min_gap) for part in gaps.by_passage(scores)]


def figures_of(found: list[Segmentation], gaps: Gaps) -> dict[str, float | None]:
    """Agreement of the boundaries found with those of the gaps.

    F1 is that of exact boundaries, pooled over documents; W-F1 (appendix A) a mean over them; BOR
    is None where gold has no boundary.
    """
    f1, n_found = pooled_f1(found, gaps)
    n_gold = int(gaps.labels.sum())
    labels = gaps.by_passage(gaps.labels.astype(np.float64))
    gold = [Segmentation.from_labels(part.astype(int).tolist(), "gap") for part in labels]
    return {
        "f1": f1,
        "w_f1": float(np.asarray(WF1()(found, gold), dtype=np.float64).mean()),
        "bor": n_found / n_gold if n_gold else None,
    }


def pooled_f1(found: list[Segmentation], gaps: Gaps) -> tuple[float, int]:
    """F1 over the boundaries of all passages together, and the number of boundaries found."""
    marked = np.concatenate([np.array(s.to_labels("gap"), dtype=np.float64) for s in found])
    n_found, n_gold = int(marked.sum()), float(gaps.labels.sum())
    if n_found + n_gold == 0:
        return 1.0, 0
    return float(2 * (marked @ gaps.labels) / (n_found + n_gold)), n_found
