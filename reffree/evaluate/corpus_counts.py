"""What is counted over a corpus, what was lost of it, and the blocks its documents are cut in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING

from reffree.data.corpus import GOLD, Corpus, Document, lacking_system
from reffree.util.errors import InputError, Place, counted, listed

if TYPE_CHECKING:
    from reffree.encoders.embed import Embeddings

BLOCK_UNITS = 8192
"""Units scored together. Their vectors are in memory, so this bounds it for any corpus."""

UNREAD = 0.05
"""Share of units that an encoder may not have been made for before it is worth a note."""


@dataclass(slots=True)
class CorpusCounts:
    """Counts over the documents of a corpus."""

    n_documents: int = 0
    n_units: int = 0
    n_longest: int = 0  # units of the longest document
    n_dropped: int = 0  # that take no part, for want of text or by an option
    n_without_text: int = 0
    n_distinct: int = 0  # units with different texts
    n_gold: int = 0  # documents with a gold that can be scored as a system
    n_compared: int = 0  # documents with something to compare with
    annotators: set[int] = field(default_factory=set)  # how many, where there are several golds
    systems: dict[str, int] = field(default_factory=dict)  # documents that have each
    first: Place = field(default_factory=Place)
    lacking: dict[str, Place] = field(default_factory=dict)  # first document without a system

    @classmethod
    def of(cls, documents: Iterable[Document]) -> CorpusCounts:
        """Go through the documents once."""
        counts = cls()
        texts: set[bytes] = set()
        for document in documents:
            if not counts.n_documents:
                counts.first = document.place
            for name in document.systems:
                if name not in counts.systems and counts.n_documents:
                    counts.lacking[name] = counts.first
                counts.systems[name] = counts.systems.get(name, 0) + 1
            for name in counts.systems.keys() - document.systems.keys():
                counts.lacking.setdefault(name, document.place)
            counts.n_documents += 1
            counts.n_units += len(document.units)
            counts.n_longest = max(counts.n_longest, len(document.units))
            counts.n_dropped += document.n_dropped
            counts.n_without_text += document.n_dropped - document.n_left_out
            counts.n_gold += document.gold is not None
            counts.n_compared += bool(document.references)
            if document.golds:
                counts.annotators.add(len(document.golds))
            texts.update(blake2b(unit.encode(), digest_size=16).digest() for unit in document.units)
        counts.n_distinct = len(texts)
        return counts

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
                place = replace(self.lacking[name], system=name)
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


def dropped_notes(counts: CorpusCounts, embedded: Embeddings | None) -> list[str]:
    """Say what was dropped, cut off or not understood while a corpus was read and encoded."""
    notes, n_units = [], counts.n_units
    if counts.n_without_text:
        dropped = counted(counts.n_without_text, "unit")
        notes.append(f"{dropped} without text dropped, the boundaries reindexed.")
    if embedded is None:
        return notes
    if embedded.n_truncated:
        notes.append(
            f"{embedded.n_truncated:,} of {counted(n_units, 'unit')} cut off at the "
            f"encoder's {embedded.spec.max_length} tokens."
        )
    if many := {kind: n for kind, n in embedded.unread.items() if n > UNREAD * n_units}:
        from reffree.encoders.aliases import readers

        told = listed(f"{n:,} of {counted(n_units, 'unit')} in {kind}" for kind, n in many.items())
        better = " or ".join(readers(many))
        notes.append(
            f"{told}: {embedded.spec.name} was not made for that, and its vectors may say little; "
            f"choose one that was{better and f': {better}'} (reffree models)."
        )
    return notes
