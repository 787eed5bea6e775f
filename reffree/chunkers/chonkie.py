"""Chunkers of chonkie; sizes are in characters, or in words for ``tokenizer=word``.

Chunks are looked up by their text: the indices that chonkie gives count the characters of its
chunks, so they fall behind by every space that the word tokenizer leaves out between two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from reffree.bounds import check_whole
from reffree.chunkers.base import Span, library
from reffree.chunkers.spans import locate
from reffree.errors import InputError

PACKAGE = "chonkie"
Embed = Callable[[Sequence[str]], Any]
"""From texts to an array with a row for each; numpy's types would cost the help its speed."""
Tokenizer = Literal["character", "word"]


@dataclass(frozen=True, slots=True)
class ChonkieToken:
    """``TokenChunker``: so many characters or words, whatever they are."""

    chunk_size: int = 2048
    tokenizer: Tokenizer = "character"
    name: ClassVar[str] = "chonkie-token"
    package: ClassVar[str | None] = PACKAGE
    remark: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        """Refuse sizes that chonkie refuses."""
        check_whole("chunk_size", self.chunk_size, 1)

    def __call__(self, text: str) -> Sequence[Span]:
        """Cut a text."""
        chunker = _library(self.name).TokenChunker(
            tokenizer=self.tokenizer, chunk_size=self.chunk_size
        )
        return _located(text, chunker)


@dataclass(frozen=True, slots=True)
class ChonkieSentence:
    """``SentenceChunker``: sentences by their punctuation, as many as fit."""

    chunk_size: int = 2048
    tokenizer: Tokenizer = "character"
    min_sentences_per_chunk: int = 1
    min_characters_per_sentence: int = 12
    name: ClassVar[str] = "chonkie-sentence"
    package: ClassVar[str | None] = PACKAGE
    remark: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        """Refuse sizes that chonkie refuses."""
        check_whole("chunk_size", self.chunk_size, 1)
        check_whole("min_sentences_per_chunk", self.min_sentences_per_chunk, 1)
        check_whole("min_characters_per_sentence", self.min_characters_per_sentence, 1)

    def __call__(self, text: str) -> Sequence[Span]:
        """Cut a text."""
        chunker = _library(self.name).SentenceChunker(
            tokenizer=self.tokenizer,
            chunk_size=self.chunk_size,
            min_sentences_per_chunk=self.min_sentences_per_chunk,
            min_characters_per_sentence=self.min_characters_per_sentence,
        )
        return _located(text, chunker)


@dataclass(frozen=True, slots=True)
class ChonkieRecursive:
    """``RecursiveChunker``: paragraphs, else sentences, else clauses, else words."""

    chunk_size: int = 2048
    tokenizer: Tokenizer = "character"
    min_characters_per_chunk: int = 24
    name: ClassVar[str] = "chonkie-recursive"
    package: ClassVar[str | None] = PACKAGE
    remark: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        """Refuse sizes that chonkie refuses."""
        check_whole("chunk_size", self.chunk_size, 1)
        check_whole("min_characters_per_chunk", self.min_characters_per_chunk, 1)

    def __call__(self, text: str) -> Sequence[Span]:
        """Cut a text."""
        chunker = _library(self.name).RecursiveChunker(
            tokenizer=self.tokenizer,
            chunk_size=self.chunk_size,
            min_characters_per_chunk=self.min_characters_per_chunk,
        )
        return _located(text, chunker)


@dataclass(frozen=True, slots=True)
class ChonkieSemantic:
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
    package: ClassVar[str | None] = PACKAGE
    remark: ClassVar[str | None] = (
        "cuts by the encoder that scores it, which the published reference-free metrics reward: "
        "compare by expected_pk"
    )

    def __post_init__(self) -> None:
        """Refuse values that chonkie refuses."""
        check_whole("chunk_size", self.chunk_size, 1)
        check_whole("similarity_window", self.similarity_window, 1)
        check_whole("min_sentences_per_chunk", self.min_sentences_per_chunk, 1)
        check_whole("min_characters_per_sentence", self.min_characters_per_sentence, 1)
        if not 0 < self.threshold < 1:
            raise InputError(
                f"threshold={self.threshold:g}",
                expected="a number between 0 and 1",
                remedy="write threshold=0.8 or another such number",
            )

    def __call__(self, text: str) -> Sequence[Span]:
        """Cut a text."""
        if self.embed is None:
            raise InputError(
                f"{self.name} without an encoder",
                expected="a function from texts to vectors",
                remedy="give it as embed=",
            )
        chonkie = _library(self.name)
        chunker = chonkie.SemanticChunker(
            embedding_model=_embeddings(chonkie, self.embed),
            threshold=self.threshold,
            chunk_size=self.chunk_size,
            similarity_window=self.similarity_window,
            min_sentences_per_chunk=self.min_sentences_per_chunk,
            min_characters_per_sentence=self.min_characters_per_sentence,
        )
        return _located(text, chunker)


def _library(user: str) -> Any:  # noqa: ANN401  (a module)
    return library("chonkie", PACKAGE, user)


def _located(text: str, chunker: Any) -> list[Span]:  # noqa: ANN401  (a chonkie chunker)
    return locate(text, [chunk.text for chunk in chunker.chunk(text)])


def _embeddings(chonkie: Any, embed: Embed) -> Any:  # noqa: ANN401  (chonkie's types)
    """Wrap a function as what chonkie takes for a model; sizes are in characters."""

    class Given(chonkie.BaseEmbeddings):  # type: ignore[misc]  # a class known at run time only
        def embed(self, text: str) -> Any:  # noqa: ANN401  (a vector)
            return embed([text])[0]

        def embed_batch(self, texts: list[str]) -> list[Any]:
            return list(embed(texts))

        @property
        def dimension(self) -> int:
            return len(self.embed("a"))

        def get_tokenizer(self) -> str:
            return "character"

    return Given()
