"""Splitters of langchain-text-splitters, chonkie and semantic-text-splitter.

Sizes are in characters, those of chonkie in words for ``tokenizer=word``. Options are called as the
libraries call them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

from reffree.chunkers.base import Span, library
from reffree.chunkers.spans import locate, trimmed
from reffree.util.bounds import check_whole
from reffree.util.errors import InputError
from reffree.util.naming import Named, settings_of

Embed = Callable[[Sequence[str]], Any]
"""From texts to an array with a row for each; numpy's types would cost the help its speed."""
Tokenizer = Literal["character", "word"]
_SEPARATORS = {"paragraph": "\n\n", "line": "\n", "space": " "}


@dataclass(frozen=True, slots=True)
class _LangChain:
    """A splitter of LangChain.

    LangChain lets neighbouring chunks share 200 characters unless told otherwise; the default is 0
    here. Chunks that overlap count by their starts.
    """

    chunk_size: int = 4000
    chunk_overlap: int = 0
    name: ClassVar[str]
    splitter: ClassVar[str]
    package: ClassVar[str | None] = "langchain-text-splitters"
    remarks: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        """Refuse sizes that LangChain refuses."""
        check_whole("chunk_size", self.chunk_size, 1)
        check_whole("chunk_overlap", self.chunk_overlap, 0)
        if self.chunk_overlap > self.chunk_size:
            raise InputError(
                f"chunk_overlap={self.chunk_overlap}",
                expected=f"at most chunk_size, {self.chunk_size}",
                remedy="leave it out for 0",
            )

    @property
    def remark(self) -> str | None:
        """Tell of the overlap, and what else there is to say."""
        overlap = "chunk_overlap is 0 here, 200 in LangChain"
        return "; ".join(([] if self.chunk_overlap else [overlap]) + [*self.remarks]) or None

    def __call__(self, text: str) -> Sequence[Span]:
        """Cut a text."""
        module = library("langchain_text_splitters", "langchain-text-splitters", self.name)
        splitter = getattr(module, self.splitter)(**self._options())
        with _without_warnings():
            chunks = splitter.split_text(text)
        return locate(text, chunks, lambda shared: len(shared) <= self.chunk_overlap)

    @property
    def cap(self) -> int:
        """Characters."""
        return self.chunk_size

    def size(self, chunk: str) -> int:
        """Return the number of characters."""
        return len(chunk)

    def _options(self) -> dict[str, Any]:
        return {**settings_of(self)}


@dataclass(frozen=True, slots=True)
class LangChainRecursive(_LangChain):
    """``RecursiveCharacterTextSplitter``: paragraphs, else lines, else words, else characters."""

    name: ClassVar[str] = "langchain-recursive"
    splitter: ClassVar[str] = "RecursiveCharacterTextSplitter"


@dataclass(frozen=True, slots=True)
class LangChainCharacter(_LangChain):
    """``CharacterTextSplitter``: at one separator only, so chunks may be longer than asked for."""

    separator: Literal["paragraph", "line", "space"] = "paragraph"
    name: ClassVar[str] = "langchain-character"
    splitter: ClassVar[str] = "CharacterTextSplitter"
    remarks: ClassVar[tuple[str, ...]] = (
        "cuts at one separator only, so chunks may be longer than chunk_size",
    )

    def _options(self) -> dict[str, Any]:
        return {**settings_of(self), "separator": _SEPARATORS[self.separator]}


@dataclass(frozen=True, slots=True)
class _Chonkie:
    """A chunker of chonkie.

    Chunks are looked up by their text: the indices that chonkie gives count the characters of its
    chunks, so they fall behind by every space that the word tokenizer leaves out between two.
    """

    name: ClassVar[str]
    chunker: ClassVar[str]
    package: ClassVar[str | None] = "chonkie"
    remark: ClassVar[str | None] = None
    chunk_size: int

    def __post_init__(self) -> None:
        """Refuse sizes that chonkie refuses."""
        _check_sizes(self)

    @property
    def cap(self) -> int:
        """Characters, or words for ``tokenizer=word``."""
        return self.chunk_size

    def size(self, chunk: str) -> int:
        """Return the number of characters, or of words for ``tokenizer=word``."""
        is_words = getattr(self, "tokenizer", "character") == "word"
        return len(chunk.split()) if is_words else len(chunk)

    def __call__(self, text: str) -> Sequence[Span]:
        """Cut a text."""
        chonkie = library("chonkie", "chonkie", self.name)
        chunker = getattr(chonkie, self.chunker)(**self._options(chonkie))
        return locate(text, [chunk.text for chunk in chunker.chunk(text)])

    def _options(self, chonkie: Any) -> dict[str, Any]:  # noqa: ANN401  (a module)
        return {**settings_of(self)}


@dataclass(frozen=True, slots=True)
class ChonkieToken(_Chonkie):
    """``TokenChunker``: so many characters or words, whatever they are."""

    chunk_size: int = 2048
    tokenizer: Tokenizer = "character"
    name: ClassVar[str] = "chonkie-token"
    chunker: ClassVar[str] = "TokenChunker"


@dataclass(frozen=True, slots=True)
class ChonkieSentence(_Chonkie):
    """``SentenceChunker``: sentences by their punctuation, as many as fit."""

    chunk_size: int = 2048
    tokenizer: Tokenizer = "character"
    min_sentences_per_chunk: int = 1
    min_characters_per_sentence: int = 12
    name: ClassVar[str] = "chonkie-sentence"
    chunker: ClassVar[str] = "SentenceChunker"


@dataclass(frozen=True, slots=True)
class ChonkieRecursive(_Chonkie):
    """``RecursiveChunker``: paragraphs, else sentences, else clauses, else words."""

    chunk_size: int = 2048
    tokenizer: Tokenizer = "character"
    min_characters_per_chunk: int = 24
    name: ClassVar[str] = "chonkie-recursive"
    chunker: ClassVar[str] = "RecursiveChunker"


@dataclass(frozen=True, slots=True)
class ChonkieSemantic(_Chonkie):
    """``SemanticChunker`` with a given encoder: cuts where neighbouring sentences differ.

    ``embed`` turns texts into vectors, one a row; chonkie's own model would have to be downloaded.
    """

    chunk_size: int = 2048
    threshold: float = 0.8
    similarity_window: int = 3
    min_sentences_per_chunk: int = 1
    min_characters_per_sentence: int = 24
    embed: Embed | None = field(default=None, metadata={"option": False}, compare=False, repr=False)
    name: ClassVar[str] = "chonkie-semantic"
    chunker: ClassVar[str] = "SemanticChunker"
    remark: ClassVar[str | None] = (
        "cuts by the encoder that scores it, which the published reference-free metrics reward: "
        "compare by expected_pk"
    )

    def __post_init__(self) -> None:
        """Refuse values that chonkie refuses."""
        _check_sizes(self)
        if not 0 < self.threshold < 1:
            raise InputError(
                f"threshold={self.threshold:g}",
                expected="a number between 0 and 1",
                remedy="write threshold=0.8 or another such number",
            )

    def _options(self, chonkie: Any) -> dict[str, Any]:  # noqa: ANN401  (a module)
        if self.embed is None:
            raise InputError(
                f"{self.name} without an encoder",
                expected="a function from texts to vectors",
                remedy="give it as embed=",
            )
        return {**settings_of(self), "embedding_model": _embeddings(chonkie, self.embed)}


@dataclass(frozen=True, slots=True)
class SemanticTextSplitter:
    """``TextSplitter``: the largest Unicode units that fit: lines, sentences, words, characters.

    The library has no default size; 1000 is that of its documentation's examples.
    """

    chunk_size: int = 1000
    name: ClassVar[str] = "semantic-text-splitter"
    package: ClassVar[str | None] = "semantic-text-splitter"
    remark: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        """Refuse sizes that the library refuses."""
        _check_sizes(self)

    @property
    def cap(self) -> int:
        """Characters."""
        return self.chunk_size

    def size(self, chunk: str) -> int:
        """Return the number of characters."""
        return len(chunk)

    def __call__(self, text: str) -> Sequence[Span]:
        """Cut a text."""
        module = library("semantic_text_splitter", "semantic-text-splitter", self.name)
        chunks = module.TextSplitter(self.chunk_size).chunk_indices(text)
        return trimmed(text, [(start, start + len(chunk)) for start, chunk in chunks])


def _check_sizes(chunker: Named) -> None:
    """Refuse a whole number below 1 among the options."""
    for option in fields(chunker):
        if option.type == "int":
            check_whole(option.name, getattr(chunker, option.name), 1)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """LangChain logs a line for every chunk that is too long; the remark says it once."""
    logger = logging.getLogger("langchain_text_splitters.base")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _embeddings(chonkie: Any, embed: Embed) -> Any:  # noqa: ANN401  (chonkie's types)
    """Wrap a function as what chonkie takes for a model; sizes are in characters."""

    class Function(chonkie.BaseEmbeddings):  # type: ignore[misc]  # a class known at run time only
        def embed(self, text: str) -> Any:  # noqa: ANN401  (a vector)
            return embed([text])[0]

        def embed_batch(self, texts: list[str]) -> list[Any]:
            return list(embed(texts))

        @property
        def dimension(self) -> int:
            return len(self.embed("a"))

        def get_tokenizer(self) -> str:
            return "character"

    return Function()
