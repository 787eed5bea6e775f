"""Trained scorers that metrics name: their probabilities reach a metric as what it reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reffree.data.corpus import Corpus
from reffree.encoders.base import EncoderSpec
from reffree.encoders.options import EncoderOptions

if TYPE_CHECKING:
    from reffree.metrics.free.evidence import Reading


def scorer_folders(metrics: Iterable[object]) -> list[str]:
    """Folders of the trained scorers that expected errors name, each once."""
    return list(dict.fromkeys(filter(None, (getattr(each, "scorer", "") for each in metrics))))


def check_scorers(metrics: Iterable[object], encoder: EncoderSpec | None) -> None:
    """Refuse what metrics name as trained scorers and is none, or is of another encoder.

    ``encoder`` is what will make the vectors, so nothing need be encoded first; None where that is
    not known.
    """
    if folders := scorer_folders(metrics):
        from reffree.segmenters.trained.scorer import check_scorer

        for folder in folders:
            check_scorer(folder, encoder)


def with_scorers_encoder(metrics: Iterable[object], options: EncoderOptions) -> EncoderOptions:
    """Return options with the encoder of trained scorers that metrics name, if none is given."""
    folders = scorer_folders(metrics)
    if not folders or options.encoder is not None:
        return options
    from reffree.segmenters.trained.folder import encoders_of, trained_encoding

    return trained_encoding(options, encoders_of(folders))


def readings(
    corpus: Corpus,
    metrics: Iterable[object],
    vectors: Sequence[NDArray[np.generic]] | None,
    encoder: EncoderSpec | None,
    device: str = "auto",
) -> list[Reading]:
    """Every document's text, and the gaps scored by each trained scorer that a metric names.

    That is what expected errors read besides vectors; other metrics read nothing.
    """
    from reffree.metrics.free.evidence import Reading

    scored = {}
    for folder in scorer_folders(metrics):
        from reffree.segmenters.trained.scorer import gap_probabilities

        scored[folder] = gap_probabilities(folder, corpus, vectors, encoder, device)
    return [
        Reading(document.units, {folder: scores[d] for folder, scores in scored.items()})
        for d, document in enumerate(corpus)
    ]
