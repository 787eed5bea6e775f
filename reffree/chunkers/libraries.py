"""Splitters of LangChain, chonkie, semantic-text-splitter, LlamaIndex and docling.

Options are called as the libraries call them. Sizes are in characters, those of chonkie in words
for ``tokenizer=word``, those of LlamaIndex in tokens of OpenAI's cl100k_base, which comes with it.
Docling reads the text as Markdown. LlamaIndex and docling have extras of their own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, ClassVar, Literal

from reffree.chunkers.base import Chunker, Span, library
from reffree.chunkers.spans import locate, locate_items, trimmed
from reffree.util.errors import InputError
from reffree.util.naming import settings_of

Embed = Callable[[Sequence[str]], Any]
"""From texts to an array with a row for each."""

Tokenizer = Literal["character", "word"]
SEPARATORS = {"paragraph": "\n\n", "line": "\n", "space": " "}


@dataclass(frozen=True, slots=True)
class LangChainRecursive(Chunker):
    """``RecursiveCharacterTextSplitter``: paragraphs, else lines, else words, else characters.

    Chunks that overlap count by their starts.
    """

    chunk_size: int = 4000
    chunk_overlap: int = 0
    name: ClassVar[str] = "langchain-recursive"
    splitter: ClassVar[str] = "RecursiveCharacterTextSplitter"
    package: ClassVar[str | None] = "langchain-text-splitters"
    sized_by: ClassVar[str | None] = "chunk_size"
    always: ClassVar[str] = ""  # a remark whatever the overlap is

    @property
    def remark(self) -> str | None:
        """Tell of the overlap, and what else there is to say."""
        overlap = "" if self.chunk_overlap else "chunk_overlap is 0 here, 200 in LangChain"
        return "; ".join(filter(None, [overlap, self.always])) or None

    def __call__(self, text: str) -> Sequence[Span]:
        """Cut a text."""
        module = library("langchain_text_splitters", "langchain-text-splitters", self.name)
        options = settings_of(self)
        if "separator" in options:
            options["separator"] = SEPARATORS[str(options["separator"])]
        # LangChain logs a line for every chunk that is too long; the remark says it once.
        logger = logging.getLogger("langchain_text_splitters.base")
        level = logger.level
        logger.setLevel(logging.ERROR)
        try:
            chunks = getattr(module, self.splitter)(**options).split_text(text)
        finally:
            logger.setLevel(level)
        return locate(text, chunks, lambda shared: len(shared) <= self.chunk_overlap)


@dataclass(frozen=True, slots=True)
class LangChainCharacter(LangChainRecursive):
    """``CharacterTextSplitter``: at one separator only, so chunks may be longer than asked for."""

    separator: Literal["paragraph", "line", "space"] = "paragraph"
    name: ClassVar[str] = "langchain-character"
    splitter: ClassVar[str] = "CharacterTextSplitter"
    always: ClassVar[str] = "cuts at one separator only, so chunks may be longer than chunk_size"


class Chonkie(Chunker):
    """A chunker of chonkie.

    Chunks are looked up by their text: chonkie's indices fall behind by every space that the word
    tokenizer leaves out between two.
    """

    __slots__ = ()
    splitter: ClassVar[str]
    package: ClassVar[str | None] = "chonkie"
    sized_by: ClassVar[str | None] = "chunk_size"

    def __call__(self, text: str) -> Sequence[Span]:
        """Cut a text."""
        chonkie = library("chonkie", "chonkie", self.name)
        chunker = getattr(chonkie, self.splitter)(**settings_of(self), **self.model(chonkie))
        return locate(text, [chunk.text for chunk in chunker.chunk(text)])

    def model(self, chonkie: Any) -> dict[str, Any]:  # noqa: ANN401  (a module)
        """Return what the chunker takes beside its options."""
        return {}


@dataclass(frozen=True, slots=True)
class ChonkieRecursive(Chonkie):
    """``RecursiveChunker``: paragraphs, else sentences, else clauses, else words."""

    chunk_size: int = 2048
    tokenizer: Tokenizer = "character"
    min_characters_per_chunk: int = 24
    name: ClassVar[str] = "chonkie-recursive"
    splitter: ClassVar[str] = "RecursiveChunker"


@dataclass(frozen=True, slots=True)
class ChonkieToken(Chonkie):
    """``TokenChunker``: so many characters or words, whatever they are."""

    chunk_size: int = 2048
    tokenizer: Tokenizer = "character"
    name: ClassVar[str] = "chonkie-token"
    splitter: ClassVar[str] = "TokenChunker"


@dataclass(frozen=True, slots=True)
class ChonkieSentence(Chonkie):
    """``SentenceChunker``: sentences by their punctuation, as many as fit."""

    chunk_size: int = 2048
    tokenizer: Tokenizer = "character"
    min_sentences_per_chunk: int = 1
    min_characters_per_sentence: int = 12
    name: ClassVar[str] = "chonkie-sentence"
    splitter: ClassVar[str] = "SentenceChunker"


@dataclass(frozen=True, slots=True)
class ChonkieSemantic(Chonkie):
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
    splitter: ClassVar[str] = "SemanticChunker"
    remark: ClassVar[str | None] = (
        "cuts by the encoder that scores it, which the published reference-free metrics reward: "
        "compare by expected_pk"
    )

    def __post_init__(self) -> None:
        Chunker.__post_init__(self)
        if not 0 < self.threshold < 1:
            raise InputError(
                f"threshold={self.threshold:g}",
                expected="a number between 0 and 1",
                remedy="write threshold=0.8 or another such number",
            )

    def model(self, chonkie: Any) -> dict[str, Any]:  # noqa: ANN401  (a module)
        """Wrap the function as what chonkie takes for a model; sizes are in characters."""
        if self.embed is None:
            raise InputError(
                f"{self.name} without an encoder",
                expected="a function from texts to vectors",
                remedy="give it as embed=",
            )
        embed: Embed = self.embed

        class Model(chonkie.BaseEmbeddings):  # type: ignore[misc]  # a class known at run time only
            def embed(self, text: str) -> Any:  # noqa: ANN401  (a vector)
                return embed([text])[0]

            def embed_batch(self, texts: list[str]) -> list[Any]:
                return list(embed(texts))

            @property
            def dimension(self) -> int:
                return len(self.embed("a"))

            def get_tokenizer(self) -> str:
                return "character"

        return {"embedding_model": Model()}


@dataclass(frozen=True, slots=True)
class SemanticTextSplitter(Chunker):
    """``TextSplitter``: the largest Unicode units that fit: lines, sentences, words, characters.

    The library has no default size; 1000 is that of its documentation's examples.
    """

    chunk_size: int = 1000
    name: ClassVar[str] = "semantic-text-splitter"
    package: ClassVar[str | None] = "semantic-text-splitter"
    sized_by: ClassVar[str | None] = "chunk_size"

    def __call__(self, text: str) -> Sequence[Span]:
        """Cut a text."""
        module = library("semantic_text_splitter", "semantic-text-splitter", self.name)
        chunks = module.TextSplitter(self.chunk_size).chunk_indices(text)
        return trimmed(text, [(start, start + len(chunk)) for start, chunk in chunks])


@dataclass(frozen=True, slots=True)
class LlamaIndexSentence(Chunker):
    """``SentenceSplitter``: whole sentences as far as they fit."""

    chunk_size: int = 1024
    chunk_overlap: int = 200
    name: ClassVar[str] = "llamaindex-sentence"
    splitter: ClassVar[str] = "SentenceSplitter"
    package: ClassVar[str | None] = "llama-index-core"
    sized_by: ClassVar[str | None] = "chunk_size"

    def size(self, chunk: str) -> int:
        """Return the number of tokens."""
        return len(self._tokenizer()(chunk))

    def __call__(self, text: str) -> Sequence[Span]:
        """Cut a text."""
        tokens = self._tokenizer()
        chunks = getattr(self._module("node_parser"), self.splitter)(
            **settings_of(self)
        ).split_text(text)
        return locate(text, chunks, lambda shared: len(tokens(shared)) <= self.chunk_overlap)

    def _tokenizer(self) -> Callable[[str], list[int]]:
        found: Callable[[str], list[int]] = self._module("utils").get_tokenizer()
        return found

    def _module(self, name: str) -> Any:  # noqa: ANN401  (a module)
        return library(f"llama_index.core.{name}", "llama-index-core", self.name, "llamaindex")


@dataclass(frozen=True, slots=True)
class LlamaIndexToken(LlamaIndexSentence):
    """``TokenTextSplitter``: words as far as they fit."""

    chunk_overlap: int = 20
    name: ClassVar[str] = "llamaindex-token"
    splitter: ClassVar[str] = "TokenTextSplitter"


class Docling(Chunker):
    """A chunker of docling, on the text read as Markdown.

    Docling takes marks off and writes tables anew, so chunks are looked up by their letters and
    digits. The first under a heading starts with it, and each reaches to the next.
    """

    __slots__ = ()
    splitter: ClassVar[str]
    package: ClassVar[str | None] = "docling-slim"
    remark: ClassVar[str | None] = "reads the text as Markdown"

    def __call__(self, text: str) -> Sequence[Span]:
        """Cut a text."""
        converter = library("docling.document_converter", "docling-slim", self.name, "docling")
        models = library("docling.datamodel.base_models", "docling-slim", self.name, "docling")
        chunkers = library("docling_core.transforms.chunker", "docling-core", self.name, "docling")
        stream = models.DocumentStream(name="text.md", stream=BytesIO(text.encode()))
        read = converter.DocumentConverter(allowed_formats=[models.InputFormat.MD]).convert(stream)
        found = getattr(chunkers, self.splitter)(**self.options()).chunk(read.document)
        return locate_items(text, [(tuple(each.meta.headings or ()), each.text) for each in found])

    def options(self) -> dict[str, Any]:
        """Return what docling's chunker takes."""
        return {}


@dataclass(frozen=True, slots=True)
class DoclingHybrid(Docling):
    """``HybridChunker``: a chunk for every paragraph, list or table, split and merged to a size.

    Sizes are in words or characters: docling's own tokenizer would have to be downloaded.
    """

    max_tokens: int = 256
    tokenizer: Literal["word", "character"] = "word"
    merge_peers: bool = True
    name: ClassVar[str] = "docling-hybrid"
    splitter: ClassVar[str] = "HybridChunker"
    sized_by: ClassVar[str | None] = "max_tokens"

    def options(self) -> dict[str, Any]:
        """Return a tokenizer that counts as this one does, and whether peers are merged."""
        home = "docling_core.transforms.chunker.tokenizer.base"
        base = library(home, "docling-core", self.name, "docling")
        size, most = self.size, self.max_tokens

        class Counter(base.BaseTokenizer):  # type: ignore[misc, name-defined]
            def count_tokens(self, text: str) -> int:
                return size(text)

            def get_max_tokens(self) -> int:
                return most

            def get_tokenizer(self) -> Callable[[str], int]:
                return size

        return {"tokenizer": Counter(), "merge_peers": self.merge_peers}


@dataclass(frozen=True, slots=True)
class DoclingHierarchical(Docling):
    """``HierarchicalChunker``: a chunk for every paragraph, list or table."""

    name: ClassVar[str] = "docling-hierarchical"
    splitter: ClassVar[str] = "HierarchicalChunker"
