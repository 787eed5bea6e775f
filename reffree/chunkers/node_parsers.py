"""Node parsers of LlamaIndex and chunkers of docling, each with an extra of its own.

LlamaIndex counts sizes in tokens of OpenAI's cl100k_base, which comes with it. Docling reads the
text as Markdown.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from typing import Any, ClassVar, Literal

from reffree.chunkers.base import Span, library
from reffree.chunkers.sizes import parts_of
from reffree.chunkers.spans import locate, trimmed
from reffree.util.bounds import check_whole
from reffree.util.errors import InputError, shorten
from reffree.util.naming import settings_of


@dataclass(frozen=True, slots=True)
class _LlamaIndex:
    """A splitter of LlamaIndex; sizes are in tokens."""

    chunk_size: int = 1024
    chunk_overlap: int = 200
    name: ClassVar[str]
    splitter: ClassVar[str]
    package: ClassVar[str | None] = "llama-index-core"
    remark: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        """Refuse sizes that LlamaIndex refuses."""
        check_whole("chunk_size", self.chunk_size, 1)
        check_whole("chunk_overlap", self.chunk_overlap, 0)
        if self.chunk_overlap > self.chunk_size:
            raise InputError(
                f"chunk_overlap={self.chunk_overlap}",
                expected=f"at most chunk_size, {self.chunk_size}",
                remedy="write a smaller chunk_overlap beside chunk_size",
            )

    @property
    def cap(self) -> int:
        """Tokens."""
        return self.chunk_size

    def size(self, chunk: str) -> int:
        """Return the number of tokens."""
        return len(self._tokens()(chunk))

    def __call__(self, text: str) -> Sequence[Span]:
        """Cut a text."""
        tokens = self._tokens()
        home = "llama_index.core.node_parser"
        parsers = library(home, "llama-index-core", self.name, "llamaindex")
        splitter = getattr(parsers, self.splitter)(**settings_of(self))
        chunks = splitter.split_text(text)
        return locate(text, chunks, lambda shared: len(tokens(shared)) <= self.chunk_overlap)

    def _tokens(self) -> Callable[[str], list[int]]:
        utils = library("llama_index.core.utils", "llama-index-core", self.name, "llamaindex")
        found: Callable[[str], list[int]] = utils.get_tokenizer()
        return found


@dataclass(frozen=True, slots=True)
class LlamaIndexSentence(_LlamaIndex):
    """``SentenceSplitter``: whole sentences as far as they fit."""

    name: ClassVar[str] = "llamaindex-sentence"
    splitter: ClassVar[str] = "SentenceSplitter"


@dataclass(frozen=True, slots=True)
class LlamaIndexToken(_LlamaIndex):
    """``TokenTextSplitter``: words as far as they fit."""

    chunk_overlap: int = 20
    name: ClassVar[str] = "llamaindex-token"
    splitter: ClassVar[str] = "TokenTextSplitter"


WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class _Docling:
    """A chunker of docling, on the text read as Markdown.

    Docling takes marks off and writes tables anew, so chunks are looked up by their letters and
    digits. One that is the first under a heading starts with it, and each reaches to the next.
    """

    name: ClassVar[str]
    package: ClassVar[str | None] = "docling-slim"
    remark: ClassVar[str | None] = "reads the text as Markdown"

    def __call__(self, text: str) -> Sequence[Span]:
        """Cut a text."""
        converter = library("docling.document_converter", "docling-slim", self.name, "docling")
        models = library("docling.datamodel.base_models", "docling-slim", self.name, "docling")
        chunkers = library("docling_core.transforms.chunker", "docling-core", self.name, "docling")
        stream = models.DocumentStream(name="text.md", stream=BytesIO(text.encode()))
        read = converter.DocumentConverter(allowed_formats=[models.InputFormat.MD]).convert(stream)
        found = self._chunker(chunkers).chunk(read.document)
        return locate_items(text, [(tuple(each.meta.headings or ()), each.text) for each in found])

    def _chunker(self, chunkers: Any) -> Any:  # noqa: ANN401  (docling's own types)
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class DoclingHierarchical(_Docling):
    """``HierarchicalChunker``: a chunk for every paragraph, list or table."""

    name: ClassVar[str] = "docling-hierarchical"
    cap: ClassVar[int | None] = None

    def size(self, chunk: str) -> int:
        """Return the number of characters."""
        return len(chunk)

    def _chunker(self, chunkers: Any) -> Any:  # noqa: ANN401
        return chunkers.HierarchicalChunker()


@dataclass(frozen=True, slots=True)
class DoclingHybrid(_Docling):
    """``HybridChunker``: those chunks, split and merged to a size in words or characters.

    Docling's own default counts with a tokenizer that would have to be downloaded.
    """

    max_tokens: int = 256
    tokenizer: Literal["word", "character"] = "word"
    merge_peers: bool = True
    name: ClassVar[str] = "docling-hybrid"

    def __post_init__(self) -> None:
        """Refuse no size."""
        check_whole("max_tokens", self.max_tokens, 1)

    @property
    def cap(self) -> int:
        """Words, or characters for ``tokenizer=character``."""
        return self.max_tokens

    def size(self, chunk: str) -> int:
        """Return the number of words, or of characters."""
        return len(chunk.split()) if self.tokenizer == "word" else len(chunk)

    def _chunker(self, chunkers: Any) -> Any:  # noqa: ANN401
        base = library(
            "docling_core.transforms.chunker.tokenizer.base", "docling-core", self.name, "docling"
        )
        size, most = self.size, self.max_tokens

        class Counter(base.BaseTokenizer):  # type: ignore[misc, name-defined]
            def count_tokens(self, text: str) -> int:
                return size(text)

            def get_max_tokens(self) -> int:
                return most

            def get_tokenizer(self) -> Callable[[str], int]:
                return size

        return chunkers.HybridChunker(tokenizer=Counter(), merge_peers=self.merge_peers)


def locate_items(text: str, chunks: Sequence[tuple[tuple[str, ...], str]]) -> list[Span]:
    """Find chunks with their headings by letters and digits, each behind the one before.

    Where a chunk was written anew, as tables are, its words are followed as far as they stand in
    the text behind one another, none further on than the chunk is long. Marks at the start of a
    line, a table's head and a fence belong to the chunk that follows them.
    """
    places = array("q", (i for i, character in enumerate(text) if character.isalnum()))
    bare = "".join(text[i] for i in places)
    starts: list[int] = []
    parts = parts_of(text)
    wholes = sorted([*parts["tables"], *parts["fences"]])
    above: tuple[str, ...] = ()
    end = previous = 0
    for number, (headings, chunk) in enumerate(chunks, 1):
        wanted = "".join(WORD.findall(chunk))
        if not wanted:
            continue
        start = None
        for heading in headings[_n_common(above, headings) :]:
            plain = "".join(WORD.findall(heading))
            at = bare.find(plain, end)
            if plain and at >= 0:
                start, end = (at if start is None else start), at + len(plain)
        above = headings
        at = bare.find(wanted, end)
        words = [wanted] if at >= 0 else WORD.findall(chunk)
        for word in words:
            at = bare.find(word, end)
            if at >= 0 and (len(words) == 1 or at - end <= len(wanted)):
                start, end = (at if start is None else start), at + len(word)
        if start is None:
            raise InputError(
                f"chunk {number}, {shorten(chunk)!r}, which does not occur in the text",
                expected="chunks whose words stand in the text",
                remedy="check how docling reads the text as Markdown",
            )
        before = 0 if not starts else places[previous - 1] + 1
        starts.append(_opened(text, places[start], before, wholes))
        previous = end
    return trimmed(text, list(pairwise([*starts, len(text)])))


def _opened(text: str, start: int, before: int, wholes: Sequence[Span]) -> int:
    """Move a start back to what opens there, though not before the end of the chunk before."""
    for first, last in wholes:
        if before <= first < start < last:
            return first
    line = text.rfind("\n", 0, start) + 1
    is_marks = not any(character.isalnum() for character in text[line:start])
    return line if is_marks and line >= before else start


def _n_common(first: Sequence[str], second: Sequence[str]) -> int:
    """Return how many headings two paths have in common, from the top."""
    n = 0
    for a, b in zip(first, second, strict=False):
        if a != b:
            break
        n += 1
    return n
