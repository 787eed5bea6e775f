"""What must be known of a whole corpus before its documents are scored a block at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from reffree.corpus import GOLD, Document
from reffree.errors import InputError, Place

DIGEST_BYTES = 16
UNSORTED = 1 << 18
"""Digests kept in a set before they join the sorted array."""


@dataclass(slots=True)
class Survey:
    """Counts over the documents, added one by one."""

    n_documents: int = 0
    n_units: int = 0
    n_dropped: int = 0  # that take no part, for want of text or by an option
    n_without_text: int = 0
    n_gold: int = 0  # documents with a gold that can be scored as a system
    n_compared: int = 0  # documents with something to compare with
    annotators: set[int] = field(default_factory=set)  # how many, where there are several golds
    systems: dict[str, int] = field(default_factory=dict)  # documents that have each
    first: Place = field(default_factory=Place)
    _lacking: dict[str, Place] = field(default_factory=dict)  # first document without a system

    @classmethod
    def of(cls, documents: Iterable[Document]) -> Survey:
        """Count over documents."""
        survey = cls()
        for document in documents:
            survey.add(document)
        return survey

    def add(self, document: Document) -> None:
        """Count one more."""
        if not self.n_documents:
            self.first = document.place
        for name in document.systems:
            if name not in self.systems and self.n_documents:
                self._lacking[name] = self.first
            self.systems[name] = self.systems.get(name, 0) + 1
        for name in self.systems.keys() - document.systems.keys():
            self._lacking.setdefault(name, document.place)
        self.n_documents += 1
        self.n_units += len(document.units)
        self.n_dropped += document.n_dropped
        self.n_without_text += document.n_dropped - document.n_left_out
        self.n_gold += document.gold is not None
        self.n_compared += bool(document.references)
        if document.golds:
            self.annotators.add(len(document.golds))

    @property
    def hypotheses(self) -> tuple[str, ...]:
        """Names of what is scored; gold is the first where it is complete."""
        is_complete = self.n_gold == self.n_documents
        return (*((GOLD,) if is_complete else ()), *self.systems)

    def check_complete(self) -> None:
        """Refuse no documents, and systems that miss some, as a `Corpus` does."""
        if not self.n_documents:
            raise InputError(
                "no documents", expected="at least one", remedy="check that the file is not empty"
            )
        for name, having in self.systems.items():
            if having < self.n_documents:
                missing = self.n_documents - having
                raise InputError(
                    f"no segmentation ({missing} of {self.n_documents} documents lack it)",
                    expected="one for every document of the corpus",
                    remedy="add the missing ones, so that systems are compared on the same text",
                    place=replace(self._lacking[name], system=name),
                )


class DistinctTexts:
    """Which texts have been seen, at 16 bytes each: digests in a sorted array."""

    def __init__(self) -> None:
        """Nothing has been seen."""
        self._sorted: NDArray[np.bytes_] = np.empty(0, dtype=f"S{DIGEST_BYTES}")
        self._recent: set[bytes] = set()

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._sorted) + len(self._recent)

    def new(self, texts: Sequence[str]) -> list[int]:
        """Return the positions of texts seen for the first time, which now count as seen."""
        digests = [
            hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).digest() for text in texts
        ]
        is_old = self._is_sorted(digests)
        positions = []
        for i, digest in enumerate(digests):
            if not is_old[i] and digest not in self._recent:
                self._recent.add(digest)
                positions.append(i)
        if len(self._recent) > max(UNSORTED, len(self._sorted) // 8):
            recent = np.array(list(self._recent), dtype=self._sorted.dtype)
            self._sorted = np.sort(np.concatenate([self._sorted, recent]))
            self._recent = set()
        return positions

    def _is_sorted(self, digests: Sequence[bytes]) -> NDArray[np.bool_]:
        """Tell which are in the sorted array."""
        if not len(self._sorted) or not digests:
            return np.zeros(len(digests), dtype=bool)
        wanted = np.array(digests, dtype=self._sorted.dtype)
        at = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        found: NDArray[np.bool_] = self._sorted[at] == wanted
        return found
