r"""``csm``: boundaries where neighbouring units cohere least (Xing and Carenini, 2021).

A model says how well each unit goes with the next, :math:`c_i \in (0, 1)`. The depth of a gap is
how far coherence rises on both sides, as in TextTiling:

.. math:: d_i = (peak^{left}_i + peak^{right}_i - 2 c_i) / 2.

Gaps with :math:`d_i > \mu + a \sigma` are boundaries, with the mean and the (population) deviation
of the document's depths and :math:`a = -1/2` (their §3.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.base import EncoderSpec
from reffree.encoders.device import choose_device
from reffree.encoders.models import find_model
from reffree.segmenters.base import GapScorer, Inputs, Segmenter, check_wanted, peaks_before
from reffree.segmenters.coherence.description import (
    CoherenceDescription,
    read_coherence_description,
)
from reffree.segmenters.scorer.gap_network import GapNetwork, read_network
from reffree.segmenters.scorer.model import (
    PairClassifier,
    PairOnTexts,
    document_logits,
    probabilities,
)
from reffree.segmenters.scorer.transformer_files import load_next_sentence
from reffree.segmenters.selection import Candidates, select_above, select_share, select_top
from reffree.util.arrays import Floats
from reffree.util.bounds import check_number, check_whole
from reffree.util.errors import InputError

LONGEST = 128
"""Tokens of a pair that their code reads."""

ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class CoherenceScoring(GapScorer):
    """Valleys of coherence between neighbouring units (CSM), deeper than mean + ``threshold`` · σ.

    ``path`` is a folder that ``reffree train-csm`` wrote. Instead, ``encoder`` names a model whose
    own next-sentence head says how units cohere, such as ``bert``: that is what Coen's Table 4
    calls CSM, by the paper's code, with the threshold of the lowest Pk on other dialogues.
    ``threshold=held_out`` is that of the lowest Pk on documents held out in training, where these
    have gold. Instead of a threshold: ``k`` boundaries, or a ``density`` (boundaries per gap). The
    paper sets boundaries no distance apart; ``min_gap`` does.

    What cannot be had: the dialogue acts and topics by which the paper chooses its training pairs
    (`reffree.segmenters.coherence.triples`), and its trained weights. A threshold below the mean
    also takes gaps that are no valleys, as the rule is published: hence the 3.97 boundaries per
    gold boundary on TIAGE in Table 4.
    """

    path: str = ""
    encoder: str = ""
    threshold: float | Literal["held_out"] = -0.5
    min_gap: int = 1
    k: Literal["gold"] | int | None = None
    density: float | None = None
    name: ClassVar[str] = "csm"

    def __post_init__(self) -> None:
        """Refuse no model or two, and two targets at a time."""
        if bool(self.path) == bool(self.encoder):
            raise InputError(
                "both a path and an encoder" if self.path else "no path",
                expected="the folder of a trained coherence model, or a model that tells next "
                "sentences",
                remedy="write csm:path=FOLDER, made with reffree train-csm, or csm:encoder=bert",
            )
        check_whole("min_gap", self.min_gap, 1, remedy="leave it out for 1")
        check_wanted(self.k, self.name)
        if self.threshold != "held_out":
            check_number("threshold", self.threshold, remedy="leave it out for -0.5")
        elif self.encoder:
            raise InputError(
                "threshold = held_out for a model that is not trained",
                expected="a number of standard deviations",
                remedy="leave it out for -0.5",
            )
        if self.density is not None and (self.k is not None or not 0 <= self.density <= 1):
            raise InputError(
                f"density = {self.density} and k = {self.k}",
                expected="one of the two, a density from 0 to 1",
                remedy="write density=0.1 or k=gold",
            )

    @property
    def needs_embeddings(self) -> bool:
        """Whether vectors must be there: not where the model reads texts."""
        if self.encoder:
            return False
        return not read_coherence_description(Path(self.path)).settings.finetune

    def check(self, corpus: Corpus, encoder: EncoderSpec | None) -> None:
        """Refuse a damaged folder, another encoder, and a threshold that training did not give."""
        Segmenter.check(self, corpus, encoder)
        if self.path:
            description = load_coherence(Path(self.path)).description
            description.check_encoder(encoder)
            self._alpha(description)

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Score every gap, then select."""
        wanted = inputs.n_boundaries(self.k, self.name)
        alpha = self._alpha(read_coherence_description(Path(self.path)) if self.path else None)
        return tuple(
            self._select(depths, alpha, k, inputs.candidates_of(d))
            for d, (depths, k) in enumerate(zip(self.boundary_scores(inputs), wanted, strict=True))
        )

    def boundary_scores(self, inputs: Inputs) -> tuple[Floats, ...]:
        """Depth at each of the ``n - 1`` gaps of every document, from 0 to 1."""
        return tuple(coherence_depths(c) for c in self.coherence(inputs))

    def coherence(self, inputs: Inputs) -> tuple[Floats, ...]:
        """How well each unit goes with the next, from 0 to 1, (n - 1,) in every document."""
        if self.path:
            return load_coherence(Path(self.path)).coherence(inputs)
        folder = find_model(self.encoder)
        network, tokenizer = load_next_sentence(folder)
        device = choose_device(inputs.device)
        length = min(folder.spec.max_length or LONGEST, LONGEST)
        head = NextSentence(network).eval()
        models = (
            PairOnTexts(head, tokenizer, document.units, length, device)
            for document in inputs.corpus
        )
        return tuple(map(probabilities, document_logits(models, 1)))

    def _alpha(self, description: CoherenceDescription | None) -> float:
        if self.threshold != "held_out":
            return self.threshold
        if description is None or description.threshold is None:
            raise InputError(
                "threshold = held_out of a model that was trained without gold",
                expected="gold in the documents held out in training",
                remedy="leave it out for -0.5, or train with gold",
            )
        return description.threshold

    def _select(
        self, depths: Floats, alpha: float, k: int | None, candidates: Candidates | None
    ) -> Segmentation:
        if k is not None:
            return select_top(depths, k, self.min_gap, candidates)
        if self.density is not None:
            return select_share(depths, self.density, self.min_gap, candidates)
        return select_deep(depths, alpha, self.min_gap, candidates)


def coherence_depths(coherence: Floats) -> Floats:
    """Depth of every gap: half of how far coherence rises to the peaks on both sides.

    >>> import numpy as np
    >>> coherence_depths(np.array([0.9, 0.5, 0.8, 0.1])).round(3).tolist()
    [0.0, 0.35, 0.0, 0.35]
    """
    left, right = peaks_before(coherence), peaks_before(coherence[::-1])[::-1]
    return (left + right - 2 * coherence) / 2


def select_deep(
    depths: Floats, alpha: float, min_gap: int = 1, candidates: Candidates | None = None
) -> Segmentation:
    """Boundaries at depths above mean + ``alpha`` deviations; equal to that is not above."""
    if not len(depths):
        return Segmentation((1,))
    cutoff = float(depths.mean() + alpha * depths.std())
    return select_above(depths, cutoff + ROUNDING, min_gap, candidates)


class CoherenceModel(GapNetwork[CoherenceDescription]):
    """A coherence model and what is known of it."""

    __slots__ = ()

    def coherence(self, inputs: Inputs) -> tuple[Floats, ...]:
        """How well each unit goes with the next, from 0 to 1, (n - 1,) in every document."""
        return tuple(map(probabilities, self.logits(inputs, 1)))


class CoherenceClassifier(PairClassifier):
    """A transformer over ``[CLS] unit [SEP] next [SEP]`` and two layers, as in their code."""

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


def load_coherence(folder: Path) -> CoherenceModel:
    """Read a coherence model back; nothing in the folder is run."""
    description = read_coherence_description(folder)
    network, tokenizer = read_network(folder, description, 1, CoherenceClassifier)
    return CoherenceModel(network, description, tokenizer)
