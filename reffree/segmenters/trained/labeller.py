"""``trained`` and ``supervised``: labellers, kept in a folder or trained on other documents.

Training is supervised: cross-entropy over the gaps of whole documents. After every epoch the
held-out documents are scored; the state with the lowest log loss on them is kept, and the threshold
is that of the best mean Pk (or F1) on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.base import EncoderSpec
from reffree.encoders.device import choose_device
from reffree.encoders.embed import (
    Embeddings,
    Vectors,
    corpus_vectors,
    from_arrays,
    units_taking_part,
)
from reffree.metrics.gold.granularity import F1
from reffree.metrics.gold.metric import GoldMetric
from reffree.metrics.gold.windows import Pk
from reffree.segmenters.base import GapScorer, Inputs
from reffree.segmenters.selection import select_above
from reffree.segmenters.trained.base import Start, Trained, TrainedMethod
from reffree.segmenters.trained.examples import (
    Passage,
    check_teaches,
    counts_of,
    hold_out,
    passages_of,
)
from reffree.segmenters.trained.folder import Description
from reffree.segmenters.trained.gap_networks import log_loss, probabilities
from reffree.segmenters.trained.labellers import as_input, gap_logits, make_network, one_thread
from reffree.segmenters.trained.settings import (
    Architecture,
    Criterion,
    Kind,
    LabellerSettings,
    TrainingOptions,
)
from reffree.segmenters.trained.training import Epochs, Loss, Row, Trainer, rise, training_on
from reffree.util.arrays import Floats, Integers
from reffree.util.bounds import Bounds, Positive
from reffree.util.declare import Option, declared
from reffree.util.progress import Progress, no_progress
from reffree.util.seeds import rng_for

WARM_UP = 30
"""Steps over which the learning rate rises to its full value, or the first epoch's if fewer."""

ABSENT = -1.0
"""Label of a gap that is padding."""

MOST_THRESHOLDS = 200
CRITERIA: dict[Criterion, GoldMetric] = {"pk": Pk(), "f1": F1()}
DEFAULTS = LabellerSettings()


class TrainedLabeller(Trained[LabellerSettings]):
    """A labeller and what is known of it."""

    __slots__ = ()
    kind: ClassVar[Kind] = "segmenter"

    @classmethod
    def make_network(
        cls, description: Description[LabellerSettings], layout: Path
    ) -> tuple[nn.Module, None]:
        """Make the network of its architecture."""
        return make_network(description.dimension, description.settings), None

    def gap_scores(self, inputs: Inputs) -> tuple[Floats, ...]:
        """Probability of a boundary at each of the ``n - 1`` gaps of every document."""
        device = choose_device(inputs.device)
        documents = map(as_input, self.read_vectors(inputs))
        return tuple(map(probabilities, gap_logits(self.network.to(device), documents, device)))


@dataclass(frozen=True, slots=True)
class TrainedSegmenter(TrainedMethod):
    """Boundaries where a supervised labeller gives a gap at least a probability.

    ``path`` is a folder that ``reffree train segmenter`` wrote. The ``threshold`` is the one that
    did best on the documents held out in training, unless another is given; or ``k`` boundaries.
    """

    path: str = ""
    threshold: Annotated[float, Bounds(0, 1)] | Literal["held_out"] = "held_out"
    k: Literal["gold"] | int | None = None
    name: ClassVar[str] = "trained"
    gives_probabilities: ClassVar[bool] = True
    trained: ClassVar[type[TrainedLabeller]] = TrainedLabeller


@dataclass(frozen=True, slots=True)
class Supervised(GapScorer):
    """Boundaries of labellers that have not seen the document: cross-fitting.

    The documents are dealt into ``folds``; those of each are segmented by a labeller that was
    trained on all others, of which it kept some for its threshold. Needs gold in every document.
    The other options are those of ``reffree train segmenter``.
    """

    architecture: Architecture = "bilstm"
    folds: Annotated[int, Bounds(2)] = 5
    epochs: int = DEFAULTS.epochs
    hidden: int = DEFAULTS.hidden
    layers: int = DEFAULTS.layers
    learning_rate: float = DEFAULTS.rate
    criterion: Criterion = DEFAULTS.criterion
    name: ClassVar[str] = "supervised"
    gives_probabilities: ClassVar[bool] = True
    needs_embeddings: ClassVar[bool] = True

    def __post_init__(self) -> None:
        GapScorer.__post_init__(self)
        self.settings(0)

    @property
    def n_steps(self) -> int:
        """Epochs of all trainings, and the segmenting."""
        return self.folds * self.epochs + 1

    def settings(self, seed: int) -> LabellerSettings:
        """How each labeller is trained."""
        shared = ("architecture", "epochs", "hidden", "layers", "learning_rate", "criterion")
        return LabellerSettings(seed=seed, **{name: getattr(self, name) for name in shared})

    def check(self, corpus: Corpus, encoder: EncoderSpec | None) -> None:
        """Refuse a corpus that cannot be trained on, before anything is encoded."""
        for train, _ in self.split(corpus, 0):
            split_documents(_part(corpus, train), self.settings(0))

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Train, score, and decide by the threshold of each fold."""
        return tuple(
            select_above(scores, threshold, 1, inputs.candidates_of(document))
            for document, (scores, threshold) in enumerate(self._score(inputs))
        )

    def boundary_scores(self, inputs: Inputs) -> tuple[Floats, ...]:
        """Probability of a boundary at every gap, by the labeller that did not see the document."""
        return tuple(scores for scores, _ in self._score(inputs))

    def _score(self, inputs: Inputs) -> list[tuple[Floats, float]]:
        """Return the scores of every document and the threshold for them."""
        self.check(inputs.corpus, inputs.encoder)
        vectors = list(inputs.vectors(self.name))
        settings, device = self.settings(inputs.seed), choose_device(inputs.device)
        found: dict[int, tuple[Floats, float]] = {}
        for train, test in self.split(inputs.corpus, inputs.seed):
            corpus = _part(inputs.corpus, train)
            embeddings = from_arrays(corpus, [vectors[d] for d in train])
            if inputs.encoder is not None:
                embeddings = replace(embeddings, spec=inputs.encoder)
            labeller = train_labeller(
                corpus,
                embeddings,
                settings,
                device,
                progress=lambda stage, total: nullcontext(inputs.advance),
            )
            if labeller.description.is_interrupted:  # a labeller of few epochs is another system
                raise KeyboardInterrupt
            part, own = _part(inputs.corpus, test), [vectors[d] for d in test]
            scores = labeller.gap_scores(replace(inputs, corpus=part, embeddings=own))
            threshold = labeller.description.figures["threshold"]
            found |= {int(d): (each, threshold) for d, each in zip(test, scores, strict=True)}
        return [found[document] for document in range(len(inputs.corpus))]

    def split(self, corpus: Corpus, seed: int) -> Iterator[tuple[Integers, Integers]]:
        """Yield documents to train on and documents to segment, for every fold."""
        n = len(corpus)
        order = rng_for(seed, self.name, "folds").permutation(n)
        for fold in np.array_split(order, min(self.folds, n)):
            test = np.sort(fold)
            yield np.setdiff1d(np.arange(n), test), test


def _part(corpus: Corpus, documents: Integers) -> Corpus:
    return Corpus(tuple(corpus.documents[d] for d in documents))


@declared
def train_segmenter(
    corpora: Corpus | Mapping[str, Corpus],
    *,
    architecture: Annotated[
        Architecture,
        Option(
            "Over the vectors of a document: a BiLSTM, one whose two directions are held against "
            "each other at every gap (Sheikh et al.), or a transformer."
        ),
    ] = "bilstm",
    hidden: Annotated[Positive, Option("Size of a state.")] = 128,
    layers: Annotated[Positive, Option("Of the network.")] = 2,
    heads: Annotated[Positive, Option("Of the transformer.", cli=False)] = 4,
    dropout: Annotated[
        float | None,
        Option("Share that is dropped out.", default="0.3, of the transformer 0.1", cli=False),
    ] = None,
    epochs: Annotated[Positive, Option("At most.")] = 40,
    patience: Annotated[
        Positive, Option("Epochs without a lower held-out log loss, after which it ends.")
    ] = 6,
    batch_size: Annotated[
        Positive | None,
        Option("Documents in a step.", default="8, fewer where an epoch had under 8 steps"),
    ] = None,
    learning_rate: Annotated[float, Option("Of AdamW.")] = 1e-3,
    weight_decay: Annotated[float, Option("Of AdamW.", cli=False)] = 0.01,
    criterion: Annotated[
        Criterion, Option("By which the threshold is chosen on documents held out.")
    ] = "pk",
    embeddings: Vectors | None = None,
    on_epoch: Callable[[Row], None] = lambda row: None,
    progress: Progress = no_progress,
    **options: Unpack[TrainingOptions],
) -> TrainedLabeller:
    """Train a segmenter on corpora with gold, for --method trained:path=FOLDER.

    A sequence labeller over cached vectors, one of the three of Ghinassi et al. (2024).

    Args:
        corpora: with gold in every document, four documents at least; several are read as one.
        embeddings: one array per document, in corpus order or by id, instead of an encoder.
        on_epoch: is told how each epoch went; interrupted, the best state so far is returned.
    """
    settings, encoding = LabellerSettings.choose(locals())
    corpus = corpora if isinstance(corpora, Corpus) else Corpus.merge(corpora.values())
    names = ("corpus",) if isinstance(corpora, Corpus) else tuple(corpora)
    part, embeddings = units_taking_part(corpus, embeddings, encoding)
    split_documents(part.corpus, settings)  # refuse what cannot be trained on before it is encoded
    device = choose_device(encoding.device)
    embedded = corpus_vectors(part.corpus, embeddings, encoding, progress)
    return train_labeller(
        part.corpus, embedded, settings, device, names=names, on_epoch=on_epoch, progress=progress
    )


def split_documents(
    corpus: Corpus, settings: LabellerSettings
) -> tuple[list[Passage], list[Passage]]:
    """Set documents aside; refuses a corpus that teaches nothing."""
    rng = rng_for(settings.seed, "segmenter", "held out")
    passages = passages_of(corpus, kind=settings.kind)
    training, held_out = hold_out(passages, settings.held_out, rng)
    check_teaches(training)
    return training, held_out


def train_labeller(
    corpus: Corpus,
    embeddings: Embeddings,
    settings: LabellerSettings,
    device: torch.device,
    *,
    names: tuple[str, ...] = ("corpus",),
    on_epoch: Callable[[Row], None] = lambda row: None,
    progress: Progress = no_progress,
) -> TrainedLabeller:
    """Train on vectors that are there; on the processes of a launcher, where one started them."""
    training, held_out = split_documents(corpus, settings)
    inputs = [as_input(x) for x in embeddings.vectors]
    start = Start(embeddings.spec, inputs[0].shape[1])
    with one_thread(), training_on(device, settings) as accelerator:
        network = make_network(start.dimension, settings)
        trainer = Trainer(network, partial(document_loss, network), accelerator)
        trainer.train(
            _epochs(trainer, inputs, training, held_out, settings),
            judged_by="a held-out log loss",
            on_epoch=on_epoch,
            progress=progress,
        )
    network.cpu().eval()
    best = min(trainer.history, key=lambda row: row["log_loss"])
    return TrainedLabeller.of(
        trainer,
        settings.resolved(len(training)),
        start,
        {"gold": names},
        counts_of(training=training, held_out=held_out),
        {name: best[name] for name in ("epoch", "threshold", "log_loss", "pk", "f1")},
    )


def document_loss(network: nn.Module, batch: tuple[Tensor, list[int], Tensor]) -> Loss:
    """Binary cross-entropy over the gaps of whole documents."""
    units, lengths, labels = batch
    is_there = labels != ABSENT
    losses = nn.functional.binary_cross_entropy_with_logits(
        network(units, lengths).float(), labels.clamp(min=0), reduction="none"
    )
    count = is_there.sum()
    return (losses * is_there).sum() / count, count


def read_documents(
    inputs: Sequence[Tensor], passages: Sequence[Passage], chosen: list[int]
) -> tuple[Tensor, list[int], Tensor]:
    """Make a batch on the host: padded vectors, lengths and padded labels, 1 for a boundary."""
    units = [inputs[passages[i].document] for i in chosen]
    golds = [passages[i].segmentation.to_labels("gap") for i in chosen]
    labels = pad_sequence([torch.tensor(gold).float() for gold in golds], True, ABSENT)
    return pad_sequence(units, batch_first=True), list(map(len, units)), labels


def _epochs(
    trainer: Trainer,
    inputs: Sequence[Tensor],
    training: Sequence[Passage],
    held_out: Sequence[Passage],
    settings: LabellerSettings,
) -> Epochs:
    """Make the one stage, which ends when no epoch is better for a while."""
    passages = [each for each in training if len(each.rows) > 1]
    n, size = len(passages), settings.batch(len(training))
    golds = [each.segmentation for each in held_out]
    labels = np.concatenate([gold.to_labels("gap") for gold in golds])

    def judge(number: int, training_loss: float) -> tuple[float, Row] | None:
        vectors = [inputs[each.document] for each in held_out]
        logits = gap_logits(trainer.network, vectors, trainer.accelerator.device)
        value = log_loss(np.concatenate(logits), labels)
        if not np.isfinite([value, training_loss]).all():
            return None
        scores = [probabilities(each) for each in logits]
        threshold = find_best_threshold(settings.criterion, scores, golds)
        row: Row = {"epoch": number, "training_loss": training_loss, "log_loss": value}
        row["threshold"] = threshold
        for criterion in CRITERIA:
            means = mean_values(criterion, scores, golds, np.array([threshold]))
            row[criterion] = None if means is None else float(means[0])
        return value, row

    return Epochs(
        name="Training",
        examples=[(n, partial(read_documents, inputs, passages))] * settings.epochs,
        settings=settings,
        size=size,
        rate=settings.rate,
        share=rise(min(WARM_UP, math.ceil(n / size))),
        judge=judge,
        draws=torch.Generator().manual_seed(settings.seed),
        patience=settings.patience,
    )


def candidate_thresholds(scores: Sequence[Floats]) -> Floats:
    """Return thresholds to choose from, highest first: halfway between neighbouring scores.

    The first leaves one boundary in all documents together, each further one more, up to one in
    every gap; of many, `MOST_THRESHOLDS` whose numbers of boundaries grow by a constant factor.
    Equal scores are not parted.

    >>> candidate_thresholds([np.array([0.9, 0.1]), np.array([0.5])]).tolist()
    [0.7, 0.3, 0.05]
    """
    pooled = np.unique(np.concatenate([np.zeros(1), *scores]))[::-1]  # ends in 0
    halfway: NDArray[np.float64] = (pooled[:-1] + pooled[1:]) / 2
    n = len(halfway)
    if n <= MOST_THRESHOLDS:
        return halfway
    return halfway[np.unique(np.geomspace(1, n, MOST_THRESHOLDS).round().astype(np.int64)) - 1]


def mean_values(
    criterion: Criterion, scores: Sequence[Floats], gold: Sequence[Segmentation], thresholds: Floats
) -> Floats | None:
    """Return the mean of a metric over documents at every threshold; None where it has no value.

    A document with one unit, or too short for a window, has none and is left out.
    """
    values = [
        np.asarray(CRITERIA[criterion](each >= thresholds[:, None], reference))
        for each, reference in zip(scores, gold, strict=True)
        if len(each)
    ]
    defined = [value for value in values if not np.isnan(value).any()]
    return np.mean(defined, axis=0) if defined and len(thresholds) else None


def find_best_threshold(
    criterion: Criterion, scores: Sequence[Floats], gold: Sequence[Segmentation]
) -> float:
    """Return the threshold of the lowest mean Pk, or highest mean F1, over documents.

    Of several the highest; one half where no document has a value. At least one boundary is left in
    all documents together: a threshold that finds none would be of no use, though Pk may like it.
    """
    thresholds = candidate_thresholds(scores)
    means = mean_values(criterion, scores, gold, thresholds)
    if means is None:
        return 0.5
    is_loss = CRITERIA[criterion].direction == "lower"
    return float(thresholds[np.argmin(means if is_loss else -means)])
