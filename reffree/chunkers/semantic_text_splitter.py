"""``TextSplitter`` of semantic-text-splitter, which measures in characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from reffree.bounds import check_whole
from reffree.chunkers.base import Span, library
from reffree.chunkers.spans import trimmed

PACKAGE = "semantic-text-splitter"


@dataclass(frozen=True, slots=True)
class SemanticTextSplitter:
    """The largest Unicode units that fit: line breaks, sentences, words, characters.

    The library has no default size; 1000 is that of its documentation's examples.
    """

    chunk_size: int = 1000
    name: ClassVar[str] = "semantic-text-splitter"
    package: ClassVar[str | None] = PACKAGE
    remark: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        """Refuse sizes that the library refuses."""
        check_whole("chunk_size", self.chunk_size, 1)

    def __call__(self, text: str) -> Sequence[Span]:
        """Cut a text."""
        module = library("semantic_text_splitter", PACKAGE, self.name)
        chunks = module.TextSplitter(self.chunk_size).chunk_indices(text)
        return trimmed(text, [(start, start + len(chunk)) for start, chunk in chunks])
