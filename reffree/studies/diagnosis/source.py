"""The best segmentation at hand: what the corpus is looked at through, and what is damaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from reffree.corpus import GOLD, Corpus
from reffree.errors import InputError, UnknownNameError
from reffree.evaluate.scores import corpus_mean
from reffree.scoring.engine import score_documents
from reffree.scoring.evidence import Reading
from reffree.scoring.expected import ExpectedPk


@dataclass(frozen=True, slots=True)
class Source:
    """A system's name and why it was taken."""

    name: str
    reason: str


def check_source(corpus: Corpus, name: str | None) -> None:
    """Refuse a corpus without any segmentation, and a name that it does not have."""
    if not corpus.hypotheses:
        raise InputError(
            "no segmentation to diagnose with: no systems, and no gold in every document",
            expected="at least one system or a complete gold",
            remedy='add "systems" to the corpus, or make some with reffree segment',
            place=corpus.documents[0].place,
        )
    if name is not None and name not in corpus.hypotheses:
        raise UnknownNameError("system", name, corpus.hypotheses)


def choose_source(
    corpus: Corpus,
    vectors: Sequence[NDArray[np.generic]],
    name: str | None,
    *,
    seed: int,
    device: torch.device,
    memory: int | None,
) -> Source:
    """Take the named one, else gold, else the system with the lowest ``expected_pk``.

    It is the one metric here that punishes too many boundaries and too few: others would pick the
    system that searched hardest, or cut most. Of equal systems the first is taken.
    """
    check_source(corpus, name)
    systems = list(corpus.hypotheses)
    if name is not None:
        return Source(name, "as asked for")
    if GOLD in systems:
        return Source(GOLD, "complete in every document")
    if len(systems) == 1:
        return Source(systems[0], "the only system")
    metric = ExpectedPk(seed=seed)
    scores = score_documents(
        vectors,
        list(zip(*corpus.hypotheses.values(), strict=True)),
        [metric],
        device=device,
        names=[document.id for document in corpus.documents],
        readings=[Reading(document.units) for document in corpus],
        memory=memory,
    )[metric.name]
    raw = np.stack([each.documents.cpu().numpy() for each in scores])
    means = [corpus_mean(column, np.ones(len(corpus))) for column in raw.T]
    losses = [np.inf if mean is None else metric.orientation.loss(mean) for mean in means]
    best = int(np.argmin(losses))
    if np.isinf(losses[best]):
        raise InputError(
            "no system with an expected_pk to choose the source by",
            expected="a document of three units or more",
            remedy="name the system to trust most with --source",
            place=corpus.documents[0].place,
        )
    return Source(
        systems[best], f"the lowest expected_pk of {len(systems)} systems ({losses[best]:.3f})"
    )
