"""What expected errors read besides vectors: the text, and what trained scorers say of its gaps."""

from __future__ import annotations

from collections.abc import Iterable

from reffree.corpus import Corpus
from reffree.encoders.embed import Embeddings
from reffree.scoring.evidence import Reading
from reffree.scoring.metrics import Metric
from reffree.segmenters import posterior
from reffree.segmenters.base import Inputs


def readings(corpus: Corpus, embedded: Embeddings, metrics: Iterable[Metric]) -> list[Reading]:
    """Every document's text, and the gaps scored by each trained scorer that a metric names."""
    inputs = Inputs(corpus, embeddings=embedded.vectors, encoder=embedded.spec)
    return posterior.readings(inputs, metrics)
