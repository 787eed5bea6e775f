"""What a segmenter is, and what it works on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field, dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from reffree.corpus import Corpus
from reffree.encoders.base import EncoderSpec
from reffree.errors import InputError
from reffree.seeds import rng_for
from reffree.segmentation import Segmentation


@dataclass(frozen=True, slots=True)
class Inputs:
    """What segmenters may look at; gold only where the method says so."""

    corpus: Corpus
    seed: int = 0
    embeddings: Sequence[NDArray[np.generic]] | None = None  # one array per document
    encoder: EncoderSpec | None = None  # that made them

    def rng(self, document: str, method: str) -> np.random.Generator:
        """Random numbers of one method on one document, whatever else the corpus holds."""
        return rng_for(self.seed, method, document)

    def gold(self, method: str) -> tuple[Segmentation, ...]:
        """Gold of every document, for oracles; refuses to go on without it."""
        found = []
        for document in self.corpus.documents:
            if document.gold is None:
                raise InputError(
                    f"no gold for {method}, which takes its number of boundaries from it",
                    expected="gold in every document",
                    remedy="choose a method that needs none, such as random:p=0.1",
                    place=document.place,
                )
            found.append(document.gold)
        return tuple(found)


class Segmenter(Protocol):
    """A method with its options; frozen dataclasses implement it."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def name(self) -> str:
        """Registered name."""
        ...

    @property
    def needs_embeddings(self) -> bool:
        """Whether `Inputs.embeddings` must be there."""
        ...

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Segment every document, in the order of the corpus."""
        ...

    def __hash__(self) -> int: ...
