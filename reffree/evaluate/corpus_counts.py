"""What is counted over a corpus before its documents are scored, and the blocks they are cut in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING

from reffree.data.corpus import GOLD, Corpus, Document, lacking_system
from reffree.util.errors import InputError, Place

if TYPE_CHECKING:
    from reffree.encoders.embed import Embeddings

BLOCK_UNITS = 8192
"""Units scored together. Their vectors are in memory, so this bounds it for any corpus."""


@dataclass(slots=True)
class CorpusCounts:
    """Counts over documents, added one by one."""

    n_documents: int = 0
    n_units: int = 0
    n_longest: int = 0  # units of the longest document
    n_dropped: int = 0  # that take no part, for want of text or by an option
    n_without_text: int = 0
    n_gold: int = 0  # documents with a gold that can be scored as a system
    n_compared: int = 0  # documents with something to compare with
    annotators: set[int] = field(default_factory=set)  # how many, where there are several golds
    systems: dict[str, int] = field(default_factory=dict)  # documents that have each
    first: Place = field(default_factory=Place)
    _lacking: dict[str, Place] = field(default_factory=dict)  # first document without a system
    _texts: set[bytes] = field(default_factory=set)  # digests of the units

    @classmethod
    def of(cls, documents: Iterable[Document]) -> CorpusCounts:
        """Count over documents."""
        counts = cls()
        for document in documents:
            counts.add(document)
        return counts

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
        self.n_longest = max(self.n_longest, len(document.units))
        self.n_dropped += document.n_dropped
        self.n_without_text += document.n_dropped - document.n_left_out
        self.n_gold += document.gold is not None
        self.n_compared += bool(document.references)
        if document.golds:
            self.annotators.add(len(document.golds))
        self._texts.update(
            blake2b(unit.encode(), digest_size=16).digest() for unit in document.units
        )

    @property
    def n_distinct(self) -> int:
        """Units with different texts."""
        return len(self._texts)

    @property
    def hypotheses(self) -> tuple[str, ...]:
        """Names of what is scored; gold is the first where it is complete."""
        is_complete = self.n_gold == self.n_documents
        return (*((GOLD,) if is_complete else ()), *self.systems)

    def to_dict(self, embedded: Embeddings | None) -> dict[str, int]:
        """Return the sizes that results list, beside those of the encoding."""
        return {
            "documents": self.n_documents,
            "units": self.n_units,
            "dropped_units": self.n_dropped,
            "distinct_units": self.n_distinct,
            "truncated_units": 0 if embedded is None else embedded.n_truncated,
        }

    def check_complete(self) -> None:
        """Refuse no documents, and systems that miss some, as a `Corpus` does."""
        if not self.n_documents:
            raise InputError(
                "no documents", expected="at least one", remedy="check that the file is not empty"
            )
        for name, having in self.systems.items():
            if having < self.n_documents:
                place = replace(self._lacking[name], system=name)
                raise lacking_system(self.n_documents - having, self.n_documents, place)


def blocks_of(documents: Iterable[Document]) -> Iterator[Corpus]:
    """Cut documents, in order, into blocks of at most `BLOCK_UNITS` units; a longer one is alone.

    Blocks depend on the documents alone, not on files, machines or memory.
    """
    block: list[Document] = []
    size = 0
    for document in documents:
        if block and size + len(document.units) > BLOCK_UNITS:
            yield Corpus.of_checked(block)
            block, size = [], 0
        block.append(document)
        size += len(document.units)
    if block:
        yield Corpus.of_checked(block)
