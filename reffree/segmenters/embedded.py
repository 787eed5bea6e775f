"""What segmenters that work on vectors share: checked inputs, and how many boundaries to find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reffree.arrays import Floats
from reffree.bounds import check_whole
from reffree.errors import InputError
from reffree.segmenters.base import Inputs

Wanted = Literal["gold"] | int | None


def vectors_of(inputs: Inputs, method: str) -> Iterator[NDArray[np.generic]]:
    """Every document's vectors as given, checked."""
    if inputs.embeddings is None or len(inputs.embeddings) != len(inputs.corpus):
        given = "no" if inputs.embeddings is None else f"{len(inputs.embeddings)}"
        raise InputError(
            f"{given} embeddings for {method}",
            expected=f"{len(inputs.corpus)}, one array for every document",
            remedy="embed the corpus first",
        )
    for document, vectors in zip(inputs.corpus, inputs.embeddings, strict=True):
        x = np.asarray(vectors)
        if x.ndim != 2 or len(x) != len(document.units) or not np.isfinite(x).all():
            raise InputError(
                f"embeddings of shape {x.shape}, or some that are no numbers",
                expected=f"{len(document.units)} rows of finite numbers, one for every unit",
                remedy="encode the document again",
                place=document.place,
            )
        yield x


def to_scale(vectors: ArrayLike) -> tuple[Floats, int]:
    """Bring the largest component to about 1, and return the power of two that was divided by.

    No bit is lost, and squares neither overflow nor vanish.
    """
    x = np.asarray(vectors, dtype=np.float64)
    exponent = int(np.frexp(np.abs(x).max(initial=0.0))[1])
    return np.ldexp(x, -exponent), exponent


def boundaries_wanted(k: Wanted, inputs: Inputs, method: str) -> Sequence[int | None]:
    """Number of boundaries of every document: gold's, the one given, or None for both unknown."""
    if k == "gold":
        return [len(gold) - 1 for gold in inputs.gold(method)]
    return [k] * len(inputs.corpus)


def check_wanted(k: Wanted, method: str) -> None:
    """Refuse what is no number of boundaries."""
    if k not in ("gold", None):
        check_whole("k", k, remedy=f"write {method}:k=gold")
