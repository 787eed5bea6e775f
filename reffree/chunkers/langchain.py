"""Splitters of langchain-text-splitters, which measure in characters.

LangChain lets neighbouring chunks share 200 characters unless told otherwise; shared text is in no
segment or in two, so the default is 0 here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from reffree.bounds import check_whole
from reffree.chunkers.base import Span, library
from reffree.chunkers.spans import locate
from reffree.errors import InputError

PACKAGE = "langchain-text-splitters"
_SEPARATORS = {"paragraph": "\n\n", "line": "\n", "space": " "}


@dataclass(frozen=True, slots=True)
class LangChainRecursive:
    """``RecursiveCharacterTextSplitter``: paragraphs, else lines, else words, else characters."""

    chunk_size: int = 4000
    chunk_overlap: int = 0
    name: ClassVar[str] = "langchain-recursive"
    package: ClassVar[str | None] = PACKAGE

    def __post_init__(self) -> None:
        """Refuse sizes that LangChain refuses."""
        _check(self.chunk_size, self.chunk_overlap)

    @property
    def remark(self) -> str | None:
        """Tell of the overlap."""
        return _remark(self.chunk_overlap)

    def __call__(self, text: str) -> Sequence[Span]:
        """Cut a text."""
        splitter = _library(self.name).RecursiveCharacterTextSplitter(
            chunk_size=self.chunk_size, chunk_overlap=self.chunk_overlap
        )
        return locate(text, splitter.split_text(text))


@dataclass(frozen=True, slots=True)
class LangChainCharacter:
    """``CharacterTextSplitter``: at one separator only, so chunks may be longer than asked for."""

    chunk_size: int = 4000
    chunk_overlap: int = 0
    separator: Literal["paragraph", "line", "space"] = "paragraph"
    name: ClassVar[str] = "langchain-character"
    package: ClassVar[str | None] = PACKAGE

    def __post_init__(self) -> None:
        """Refuse sizes that LangChain refuses."""
        _check(self.chunk_size, self.chunk_overlap)

    @property
    def remark(self) -> str | None:
        """Tell of the overlap and of the size."""
        longer = "cuts at one separator only, so chunks may be longer than chunk_size"
        return "; ".join(filter(None, [_remark(self.chunk_overlap), longer]))

    def __call__(self, text: str) -> Sequence[Span]:
        """Cut a text."""
        splitter = _library(self.name).CharacterTextSplitter(
            separator=_SEPARATORS[self.separator],
            chunk_size=self.chunk_size,
            chunk_overlap=self.chunk_overlap,
        )
        with _without_warnings():
            chunks = splitter.split_text(text)
        return locate(text, chunks)


def _library(user: str) -> Any:  # noqa: ANN401  (a module)
    return library("langchain_text_splitters", PACKAGE, user)


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


def _check(chunk_size: int, chunk_overlap: int) -> None:
    check_whole("chunk_size", chunk_size, 1)
    check_whole("chunk_overlap", chunk_overlap, 0)
    if chunk_overlap > chunk_size:
        raise InputError(
            f"chunk_overlap={chunk_overlap}",
            expected=f"at most chunk_size, {chunk_size}",
            remedy="leave it out: chunks that overlap cannot be scored",
        )


def _remark(chunk_overlap: int) -> str | None:
    if chunk_overlap:
        return None
    return "chunk_overlap is 0 here, 200 in LangChain, since segments do not overlap"
