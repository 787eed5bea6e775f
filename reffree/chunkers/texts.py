"""A text before it is chunked: its blocks, and its units."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

from reffree.chunkers.blocks import Block, blocks_of, units_of
from reffree.chunkers.spans import trimmed
from reffree.data.corpus import Document
from reffree.util.errors import Place


@dataclass(frozen=True)
class PlainText:
    """A document before it is split into units, or one of a corpus, whose units are given."""

    id: str
    text: str
    place: Place
    document: Document | None = None

    @classmethod
    def of(cls, document: Document) -> PlainText:
        """Join a document's units by line breaks."""
        return cls(document.id, "\n".join(document.units), document.place, document)

    @cached_property
    def blocks(self) -> list[Block]:
        """Its headings, code, tables, lists and prose."""
        return blocks_of(self.text)

    def units(self, language: str) -> list[Block]:
        """Return the units that were given, as prose, else its sentences and other parts."""
        if self.document is None:
            return units_of(self.text, self.blocks, language, "reffree chunks")
        ends = accumulate((len(unit) + 1 for unit in self.document.units), initial=0)
        spans = trimmed(self.text, [(a, b - 1) for a, b in pairwise(ends)])
        return [Block("prose", *span) for span in spans]
