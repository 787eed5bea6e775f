"""A corpus's vectors: distinct texts encoded once, handed back document by document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reffree.corpus import Corpus
from reffree.encoders.base import Encoder, EncoderSpec
from reffree.errors import OptionError

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Embeddings:
    """One array per document, in corpus order, and what was done to get them."""

    vectors: list[NDArray[np.generic]]
    spec: EncoderSpec
    n_distinct: int
    n_truncated: int  # units of which the model read only the beginning
    device: str


def unit_texts(units: Sequence[str], context: int = 0) -> list[str]:
    """Return what is encoded for every unit of a document: with ``context`` its neighbours too.

    The unit stands between up to ``context`` units before it and as many after it, fewer at the
    document's ends, with a space between any two; all count alike in the text's vector. So a short
    utterance borrows meaning, and two units nearer than ``2 * context + 1`` share text also where a
    boundary lies between them. What the encoder cuts off is the end.

    >>> unit_texts(["Yes.", "Bees dance.", "Why?"], context=1)
    ['Yes. Bees dance.', 'Yes. Bees dance. Why?', 'Bees dance. Why?']
    """
    if isinstance(context, bool) or not isinstance(context, int) or context < 0:
        raise OptionError(
            f"context = {context!r}",
            expected="a whole number of units, 0 or more",
            remedy="write 1 for one unit before and one after",
        )
    if not context:
        return list(units)
    return [" ".join(units[max(0, i - context) : i + context + 1]) for i in range(len(units))]


def distinct_texts(corpus: Corpus, context: int = 0) -> list[str]:
    """Return every text that is encoded once, in the order of first appearance."""
    texts = (unit_texts(document.units, context) for document in corpus.documents)
    return list(dict.fromkeys(text for document in texts for text in document))


def embed(
    corpus: Corpus,
    encoder: Encoder,
    device: str,
    texts: Sequence[str] | None = None,
    progress: Progress = lambda done: None,
    context: int = 0,
) -> Embeddings:
    """Encode a corpus; ``progress`` is told how many distinct texts were just done.

    ``texts`` are those of `distinct_texts` with the same context, where the caller has them.
    """
    texts = distinct_texts(corpus, context) if texts is None else texts
    vectors: NDArray[np.float32] | None = None
    tokens = np.zeros(len(texts), dtype=np.int64)
    for encoded in encoder.stream(texts):
        if vectors is None:
            vectors = np.empty((len(texts), encoded.vectors.shape[1]), dtype=np.float32)
        vectors[encoded.positions] = encoded.vectors
        tokens[encoded.positions] = encoded.tokens
        progress(len(encoded.positions))
    assert vectors is not None  # a corpus has at least one unit
    row = {text: i for i, text in enumerate(texts)}
    rows = [[row[text] for text in unit_texts(d.units, context)] for d in corpus.documents]
    limit = encoder.spec.max_length
    too_long = tokens > limit if limit else np.zeros(len(texts), dtype=bool)
    return Embeddings(
        vectors=[vectors[r] for r in rows],
        spec=replace(encoder.spec, context=context),
        n_distinct=len(texts),
        n_truncated=int(sum(too_long[r].sum() for r in rows)),
        device=device,
    )
