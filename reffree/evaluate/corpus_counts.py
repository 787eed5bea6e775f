"""What must be known of a whole corpus before its documents are scored a block at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from reffree.data.corpus import GOLD, Corpus, Document, lacking_system
from reffree.encoders.embed import Embeddings, distinct_texts
from reffree.formats.shards import Shards, Span, joined, read_spans
from reffree.util.arrays import Booleans
from reffree.util.errors import InputError, Place

T = TypeVar("T")
Block = tuple[Span, ...] | Corpus
"""Where the documents of a block stand, or the documents."""

Positions = NDArray[np.int32]

BLOCK_UNITS = 8192
"""Units scored together. Their vectors are in memory, so this bounds it for any corpus."""

DIGEST_BYTES = 16
UNSORTED = 1 << 18
"""Digests kept in a set before they join the sorted array."""


@dataclass(slots=True)
class CorpusCounts:
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

    def to_dict(self, n_distinct: int, embedded: Embeddings | None) -> dict[str, int]:
        """Return the sizes that results list, beside those of the encoding."""
        return {
            "documents": self.n_documents,
            "units": self.n_units,
            "dropped_units": self.n_dropped,
            "distinct_units": n_distinct,
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

    def _is_sorted(self, digests: Sequence[bytes]) -> Booleans:
        """Tell which are in the sorted array."""
        if not len(self._sorted) or not digests:
            return np.zeros(len(digests), dtype=bool)
        wanted = np.array(digests, dtype=self._sorted.dtype)
        at = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        found: Booleans = self._sorted[at] == wanted
        return found


def cut(items: Iterable[T], n_units: Callable[[T], int]) -> Iterator[list[T]]:
    """Cut documents, in order, into blocks of at most `BLOCK_UNITS` units; a longer one is alone.

    Blocks depend on the documents alone, not on files, machines or memory.

    >>> list(map(len, cut([5000, 3000, 500, 9000, 1], n_units=int)))
    [2, 1, 1, 1]
    """
    block: list[T] = []
    size = 0
    for item in items:
        n = n_units(item)
        if block and size + n > BLOCK_UNITS:
            yield block
            block, size = [], 0
        block.append(item)
        size += n
    if block:
        yield block


@dataclass(slots=True)
class Plan:
    """A corpus that was checked and counted, and its blocks."""

    counts: CorpusCounts = field(default_factory=CorpusCounts)
    blocks: list[Block] = field(default_factory=list)
    n_units: list[int] = field(default_factory=list)  # by block
    missing: list[Positions] = field(default_factory=list)  # by block, in its `distinct_texts`
    n_distinct: int = 0  # units, of the whole corpus
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        source: Shards | Corpus,
        context: int,
        missing: Callable[[list[str]], list[int]] | None = None,
    ) -> Plan:
        """Read the corpus once.

        ``missing`` says which texts are to be encoded; it is asked once for every text.
        """
        plan = cls()
        texts, units = DistinctTexts(), DistinctTexts()
        pairs: Iterable[tuple[Document, Span | None]]
        pairs = source if isinstance(source, Shards) else ((document, None) for document in source)
        for block in cut(pairs, lambda pair: len(pair[0].units)):
            documents = Corpus.of_checked(document for document, _ in block)
            for document in documents:
                plan.counts.add(document)
                if context:
                    units.new(document.units)
            spans = joined([span for _, span in block if span is not None])
            plan.blocks.append(spans or documents)
            plan.n_units.append(documents.n_units)
            found = distinct_texts(documents, context)
            new = np.array(texts.new(found), dtype=np.int32)
            if missing is not None:
                plan.missing.append(new[missing([found[i] for i in new])])
        plan.counts.check_complete()
        plan.n_distinct = len(units if context else texts)
        plan.notes = tuple(source.notes)
        return plan


def read_block(block: Block) -> Corpus:
    """Return the documents of a block."""
    return block if isinstance(block, Corpus) else read_spans(block)
