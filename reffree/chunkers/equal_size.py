"""Chunkers made to cut as finely as one another, so that only the places of cuts differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, cast

from reffree.chunkers.base import Chunker
from reffree.chunkers.chunked import PlainText, cut_text
from reffree.util.errors import InputError
from reffree.util.naming import spelling_of

SIZES = ("chunk_size", "max_tokens")


def size_option(chunker: Chunker) -> str:
    """Return the option that says how large chunks may be."""
    names = [each.name for each in fields(cast(Any, chunker))]
    found = [name for name in SIZES if name in names]
    if not found:
        raise InputError(
            f"{spelling_of(chunker)}, which has no size to choose",
            expected=f"a chunker with {' or '.join(SIZES)}",
            remedy="leave it out, or score it as it is with reffree chunkers",
        )
    return found[0]


def characters_a_chunk(chunker: Chunker, texts: Sequence[PlainText]) -> float:
    """Return the characters of all texts by the number of chunks."""
    n_chunks = sum(len(cut_text(chunker, text)) for text in texts)
    return sum(len(text.text) for text in texts) / max(1, n_chunks)


def with_size(chunker: Chunker, texts: Sequence[PlainText], characters: float) -> Chunker:
    """Return the chunker with the size at which texts have that many characters a chunk.

    The larger its size, the fewer chunks: the size is found by halving; of two neighbours the one
    that comes nearer.
    """
    option = size_option(chunker)
    least = max(1, getattr(chunker, "chunk_overlap", 0))
    low, high = least, max(least + 1, *(len(text.text) for text in texts))

    def sized(size: int) -> Chunker:
        return cast(Chunker, replace(cast(Any, chunker), **{option: size}))

    while high - low > 1:
        middle = (low + high) // 2
        if characters_a_chunk(sized(middle), texts) < characters:
            low = middle
        else:
            high = middle
    ends = [sized(low), sized(high)]
    return min(ends, key=lambda each: abs(characters_a_chunk(each, texts) - characters))
