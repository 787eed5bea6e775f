r"""``csm``: boundaries where neighbouring units cohere least (Xing and Carenini, 2021).

A model says how well each unit goes with the next, :math:`c_i \in (0, 1)`. The depth of a gap is
how far coherence rises on both sides, as in TextTiling:

.. math:: d_i = (peak^{left}_i + peak^{right}_i - 2 c_i) / 2.

Gaps with :math:`d_i > \mu + a \sigma` are boundaries, with the mean and the (population) deviation
of the document's depths and :math:`a = -1/2` (their §3.3).

It is trained by ranking (§3.2): for every triple, coherence is to fall from the next unit over one
of the same document to one of another, by a margin at each of the three comparisons. The
state after the epoch with the most comparisons of held-out triples right is the one that counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.encoders.device import choose_device
from reffree.encoders.embed import Vectors
from reffree.encoders.models import find_model
from reffree.metrics.gold.windows import Pk
from reffree.segmenters.base import GapScorer, Inputs, rises
from reffree.segmenters.selection import Candidates, Rule, select_above
from reffree.segmenters.trained.base import GapNetwork, Start, TrainedMethod, take_part
from reffree.segmenters.trained.examples import Passage, hold_out, windows_of
from reffree.segmenters.trained.gap_networks import (
    GapModel,
    PairClassifier,
    PairOnTexts,
    document_logits,
    load_transformer,
    logits_of,
    probabilities,
)
from reffree.segmenters.trained.settings import CsmSettings, GapOptions, Kind
from reffree.segmenters.trained.training import Epochs, Loss, Row, Trainer, falling, training_on
from reffree.util.arrays import Floats, Integers
from reffree.util.bounds import Bounds, Positive
from reffree.util.declare import Option, declared
from reffree.util.errors import InputError
from reffree.util.progress import Progress, no_progress
from reffree.util.seeds import rng_for

LONGEST = 128
"""Tokens of a pair that the paper's code reads."""

ROUNDING = 1e-12

NEXT, SAME, OTHER = range(3)
"""Columns of a triple, after the unit itself."""

ORDERS = ((NEXT, SAME), (NEXT, OTHER), (SAME, OTHER))
"""Which is to cohere better with the unit, by a margin."""

ALPHAS = np.arange(-20, 20) / 10
"""Thresholds tried on held-out documents with gold, as in the paper's code."""


class CoherenceClassifier(PairClassifier):
    """A transformer over ``[CLS] unit [SEP] next [SEP]`` and two layers, as in the paper's code."""

    def __init__(self, transformer: Any, *, reads_first: bool) -> None:  # noqa: ANN401
        """Put layers with random weights on a transformer."""
        super().__init__(transformer, reads_first=reads_first)
        d = transformer.config.hidden_size
        self.projection = nn.Sequential(
            nn.Linear(d, d), nn.ReLU(), nn.Dropout(0.1), nn.Linear(d, 1)
        )


class NextSentence(PairClassifier):
    """A model's own next-sentence head: its two logits as one, which has the same probability."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        """Take the model as it is."""
        nn.Module.__init__(self)
        self.model = model

    def forward(self, tokens: dict[str, Tensor]) -> Tensor:
        """Logits of pairs of texts: the second follows the first."""
        logits: Tensor = self.model(**tokens).logits  # (g, 2), the first for what follows
        return logits[:, 0] - logits[:, 1]


class CoherenceModel(GapNetwork[CsmSettings]):
    """A coherence model and what is known of it."""

    __slots__ = ()
    kind: ClassVar[Kind] = "csm"
    classifier: ClassVar[type[PairClassifier]] = CoherenceClassifier

    def coherence(self, inputs: Inputs) -> tuple[Floats, ...]:
        """How well each unit goes with the next, from 0 to 1, (n - 1,) in every document."""
        return tuple(map(probabilities, self.logits(inputs)))

    def gap_scores(self, inputs: Inputs) -> tuple[Floats, ...]:
        """Depth at each of the ``n - 1`` gaps of every document."""
        return tuple(map(coherence_depths, self.coherence(inputs)))


@dataclass(frozen=True, slots=True)
class CoherenceScoring(TrainedMethod):
    """Valleys of coherence between neighbouring units (CSM), deeper than mean + ``threshold`` · σ.

    ``path`` is a folder that ``reffree train csm`` wrote. Instead, ``encoder`` names a model whose
    own next-sentence head says how units cohere, such as ``bert``: that is what Coen's Table 4
    calls CSM. ``threshold=held_out`` is that of the lowest Pk on documents held out in training,
    where these have gold. Instead of a threshold: ``k`` boundaries, or a ``density`` (boundaries
    per gap). The paper sets boundaries no distance apart; ``min_gap`` does. A threshold below the
    mean also takes gaps that are no valleys, as the rule is published.
    """

    path: str = ""
    encoder: str = ""
    threshold: float | Literal["held_out"] = -0.5
    min_gap: Positive = 1
    k: Literal["gold"] | int | None = None
    density: Annotated[float | None, Bounds(0, 1)] = None
    name: ClassVar[str] = "csm"
    trained: ClassVar[type[CoherenceModel]] = CoherenceModel

    def __post_init__(self) -> None:
        GapScorer.__post_init__(self)
        if bool(self.path) == bool(self.encoder):
            raise InputError(
                "both a path and an encoder" if self.path else "no path",
                expected="the folder of a trained coherence model, or a model that tells next "
                "sentences",
                remedy="write csm:path=FOLDER, made with reffree train csm, or csm:encoder=bert",
            )
        if self.encoder and self.threshold == "held_out":
            raise InputError(
                "threshold = held_out for a model that is not trained",
                expected="a number of standard deviations",
                remedy="leave it out for -0.5",
            )

    def boundary_scores(self, inputs: Inputs) -> tuple[Floats, ...]:
        """Depth at each of the ``n - 1`` gaps of every document, from 0 to 1."""
        return tuple(map(coherence_depths, self.coherence(inputs)))

    def coherence(self, inputs: Inputs) -> tuple[Floats, ...]:
        """How well each unit goes with the next, from 0 to 1, (n - 1,) in every document."""
        if self.path:
            return self.trained.load(self.path).coherence(inputs)
        folder = find_model(self.encoder)
        network, tokenizer = load_transformer(folder, tells_next=True)
        device = choose_device(inputs.device)
        length = min(folder.spec.max_length or LONGEST, LONGEST)
        head = NextSentence(network).eval()
        models = (PairOnTexts(head, d.units, tokenizer, length, device) for d in inputs.corpus)
        return tuple(map(probabilities, document_logits(models, 1)))

    def selection_rule(self) -> Rule:
        """Select depths above the mean and so many deviations."""
        alpha = self.chosen_threshold()
        return lambda depths, candidates: select_deep(depths, alpha, self.min_gap, candidates)


def coherence_depths(coherence: Floats) -> Floats:
    """Depth of every gap: half of how far coherence rises to the peaks on both sides.

    >>> import numpy as np
    >>> coherence_depths(np.array([0.9, 0.5, 0.8, 0.1])).round(3).tolist()
    [0.0, 0.35, 0.0, 0.35]
    """
    depths: Floats = np.add(*rises(coherence)) / 2
    return depths


def select_deep(
    depths: Floats, alpha: float, min_gap: int = 1, candidates: Candidates | None = None
) -> Segmentation:
    """Boundaries at depths above mean + ``alpha`` deviations; equal to that is not above."""
    if not len(depths):
        return Segmentation((1,))
    cutoff = float(depths.mean() + alpha * depths.std())
    return select_above(depths, cutoff + ROUNDING, min_gap, candidates)


@declared
def train_csm(
    corpora: Corpus | Mapping[str, Corpus],
    *,
    epochs: Annotated[Positive, Option("Times that every pair is seen.")] = 10,
    margin: Annotated[float, Option("By which coherent pairs are to be above others.")] = 1.0,
    batch_size: Annotated[
        Positive | None, Option("Triples in a step.", default="64, with --finetune 12", cli=False)
    ] = None,
    embeddings: Mapping[str, Vectors] | None = None,
    on_epoch: Callable[[Row], None] = lambda row: None,
    progress: Progress = no_progress,
    **options: Unpack[GapOptions],
) -> CoherenceModel:
    """Train a coherence model on dialogues, for --method csm:path=FOLDER.

    A unit is to go with the next better than with another of its document, and with that better
    than with one of another document (Xing and Carenini 2021). No gold is needed; where documents
    held out have it, csm:path=FOLDER,threshold=held_out has the threshold of their lowest Pk. The
    published setting: --finetune --encoder bert.

    Args:
        corpora: by name; gold is not looked at, but for a threshold on documents held out.
        embeddings: arrays of every corpus, by its name, instead of an encoder.
        on_epoch: is told how each epoch went; interrupted, the best state so far is returned.
    """
    settings, encoding = CsmSettings.choose(locals())
    parts, vectors = take_part(corpora, embeddings, encoding)
    documents = [document for part in parts.values() for document in part]
    training, held_out, drawn, triples = _draw_triples(documents, settings)
    start = Start.of(parts, vectors, settings, encoding, progress)
    neighbours = np.concatenate([windows_of(each.rows, 1) for each in training])
    with training_on(choose_device(encoding.device), settings) as accelerator:
        model = start.model(settings, neighbours, accelerator.device, CoherenceClassifier)
        trainer = Trainer(model.network, partial(triple_loss, model, margin), accelerator)
        trainer.train(
            _ranking(model, drawn, triples, settings),
            judged_by="a held-out loss",
            on_epoch=on_epoch,
            progress=progress,
        )
        aside = [documents[each.document] for each in held_out]
        threshold = None
        if all(document.references for document in aside):
            logits = [logits_of(model, windows_of(each.rows, 1)) for each in held_out]
            threshold = best_alpha([coherence_depths(probabilities(z)) for z in logits], aside)
    figures = {"threshold": threshold, "accuracy": max(row["accuracy"] for row in trainer.history)}
    counts = {
        "training_documents": len(training),
        "held_out_documents": len(held_out),
        "held_out_triples": len(triples),
    }
    roles = {"dialogues": tuple(parts)}
    return CoherenceModel.of(trainer, settings.resolved(), start, roles, counts, figures)


def triple_loss(model: GapModel, margin: float, seen: Any) -> Loss:  # noqa: ANN401
    """Ranking loss of triples, each of which is three pairs of units."""
    scores = model.logits(seen).float().reshape(-1, 3)
    return ranking_loss(scores, margin), len(scores)


def read_triples(triples: Integers, read: Callable[[Integers], Any], chosen: list[int]) -> Any:  # noqa: ANN401
    """Make a batch on the host, in any process: what the network looks at."""
    return read(pairs_of(triples[chosen]))


def _draw_triples(
    documents: Sequence[Document], settings: CsmSettings
) -> tuple[list[Passage], list[Passage], list[Integers], Integers]:
    """Set documents aside, and draw triples for every epoch and from those held out.

    Refuses documents that give none, before they are encoded.
    """
    ends = np.cumsum([len(document.units) for document in documents]).tolist()
    passages = [
        Passage(d, np.arange(end - len(each.units), end), Segmentation((len(each.units),)))
        for d, (each, end) in enumerate(zip(documents, ends, strict=True))
    ]
    rng = rng_for(settings.seed, "csm", "held out")
    training, held_out = hold_out(passages, settings.held_out, rng)
    rows, aside = ([each.rows for each in part] for part in (training, held_out))
    epochs = range(settings.epochs)
    drawn = [triples_of(rows, rng_for(settings.seed, "csm", epoch)) for epoch in epochs]
    judging = triples_of(aside, rng_for(settings.seed, "csm", "held-out triples"))
    if not len(judging) or not len(drawn[0]):
        raise InputError(
            "no document of more than three units to learn from, or none held out",
            expected="units that are no neighbours, in both",
            remedy="give longer documents, or more of them",
        )
    return training, held_out, drawn, judging


def _ranking(
    model: GapModel, drawn: Sequence[Integers], held_out: Integers, settings: CsmSettings
) -> Epochs:
    """Make the one stage: other triples in every epoch, judged on those held out."""

    def judge(number: int, training_loss: float) -> tuple[float, Row] | None:
        scores = logits_of(model, pairs_of(held_out)).reshape(-1, 3)
        loss = float(ranking_loss(torch.from_numpy(scores), settings.margin))
        if not math.isfinite(loss):
            return None
        accuracy = share_in_order(scores)
        row = {"epoch": number, "training_loss": training_loss, "loss": loss, "accuracy": accuracy}
        return -accuracy, row

    return Epochs(
        name="Coherence",
        examples=[(len(each), partial(read_triples, each, model.read)) for each in drawn],
        settings=settings,
        size=settings.batch(),
        rate=settings.rate,
        share=falling(list(map(len, drawn)), settings.batch(), 0.0),
        judge=judge,
        workers=model.workers,
    )


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


def triples_of(documents: Sequence[Integers], rng: np.random.Generator) -> Integers:
    """Draw a triple for every pair of neighbours: unit, next, same document, other; (t, 4).

    Xing and Carenini (2021), §3.1. The paper keeps to pairs whose dialogue acts go together, and to
    other dialogues with another topic; corpora here have neither label, so that all neighbours are
    pairs, and any other document is another dialogue.

    Documents are the rows of their units. The third is no neighbour of the unit, so that pairs
    without such a one, in documents of up to three units, are left out; the fourth is any unit of
    any other document, all documents alike.
    """
    found = []
    for d, rows in enumerate(documents):
        for i in range(len(rows) - 1):
            apart = np.concatenate([rows[: max(0, i - 1)], rows[i + 2 :]])
            if len(apart):
                other = int(rng.integers(len(documents) - 1))
                elsewhere = documents[other + (other >= d)]
                same, far = (each[int(rng.integers(len(each)))] for each in (apart, elsewhere))
                found.append([rows[i], rows[i + 1], same, far])
    return np.array(found, dtype=np.int64).reshape(-1, 4)


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
