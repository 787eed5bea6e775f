"""A corpus's vectors, from an encoder or as the user gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from numpy.typing import ArrayLike

from reffree.corpus import Corpus
from reffree.encoders.base import Encoder
from reffree.encoders.device import choose_device
from reffree.encoders.embed import Embeddings, distinct_texts, embed
from reffree.encoders.left_out import Chosen, choose_units
from reffree.encoders.open import open_encoder
from reffree.encoders.options import EncoderOptions
from reffree.encoders.precomputed import from_arrays
from reffree.errors import OptionError
from reffree.progress import Progress, no_progress

Vectors = Sequence[ArrayLike] | Mapping[str, ArrayLike] | Embeddings
"""Vectors as a user gives them: one array per document, in corpus order or by id."""


def corpus_vectors(
    corpus: Corpus, embeddings: Vectors | None, options: EncoderOptions, progress: Progress
) -> Embeddings:
    """Take the vectors that are given, or encode every distinct text once.

    The corpus is of the units that take part (`units_taking_part`).
    """
    assert all(map(all, choose_units(corpus, options).kept)), "units are to be left out first"
    if embeddings is not None:
        given = _checked(corpus, embeddings)
        if options.context not in (0, given.spec.context):
            raise OptionError(
                f"context = {options.context} beside vectors that are given",
                expected="texts to encode with their neighbours",
                remedy="leave out one of the two",
            )
        return given
    return encode_corpus(corpus, open_encoder(options), options, progress)


def encode_corpus(
    corpus: Corpus, encoder: Encoder, options: EncoderOptions, progress: Progress = no_progress
) -> Embeddings:
    """Encode every distinct text of a corpus once."""
    texts = distinct_texts(corpus, options.context)
    device = str(choose_device(options.device))
    if options.device_map is not None:
        device = f"spread from {device}"
    with progress("Encoding", len(texts)) as advance:
        made = embed(corpus, encoder, device, texts, advance, options.context)
    return replace(made, spec=replace(made.spec, dropped=options.dropped))


def units_taking_part(
    corpus: Corpus, embeddings: Vectors | None, options: EncoderOptions
) -> tuple[Chosen, Vectors | None]:
    """Leave out units as the options say, of a corpus and of the vectors that are given for it."""
    chosen = choose_units(corpus, options)
    if embeddings is None or chosen.dropped == "none":
        return chosen, embeddings
    return chosen, chosen.vectors(_checked(corpus, embeddings))


def _checked(corpus: Corpus, given: Vectors) -> Embeddings:
    return given if isinstance(given, Embeddings) else from_arrays(corpus, given)
