"""Chunkers as users name them: ``name:option=value``, ``library:splitter``, ``module:function``."""

from __future__ import annotations

import re

from reffree.chunkers.base import Chunker
from reffree.chunkers.chonkie import (
    ChonkieRecursive,
    ChonkieSemantic,
    ChonkieSentence,
    ChonkieToken,
)
from reffree.chunkers.function import find_function
from reffree.chunkers.langchain import LangChainCharacter, LangChainRecursive
from reffree.chunkers.semantic_text_splitter import SemanticTextSplitter
from reffree.naming import parse_named

FLAG = "--chunker"
CHUNKERS: dict[str, type[Chunker]] = {
    kind.name: kind
    for kind in (
        LangChainRecursive,
        LangChainCharacter,
        ChonkieToken,
        ChonkieSentence,
        ChonkieRecursive,
        ChonkieSemantic,
        SemanticTextSplitter,
    )
}
LIBRARIES = {
    "langchain": {
        "RecursiveCharacterTextSplitter": "recursive",
        "CharacterTextSplitter": "character",
    },
    "chonkie": {
        "RecursiveChunker": "recursive",
        "TokenChunker": "token",
        "SentenceChunker": "sentence",
        "SemanticChunker": "semantic",
    },
}
"""Libraries of several splitters: classes as we call them, the first unless one is named."""

_DOTTED = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_FUNCTION = re.compile(f"{_DOTTED}:{_DOTTED}")


def is_function(spec: str) -> bool:
    """Whether a specification names a function: it has no dash, every registered name has one."""
    library = spec.partition(":")[0]
    return _FUNCTION.fullmatch(spec) is not None and library not in LIBRARIES


def find_chunker(spec: str) -> Chunker:
    """Make the chunker that a specification names.

    ``langchain:recursive,chunk_size=500`` is ``langchain-recursive:chunk_size=500``; without a
    splitter a library's first is meant.
    """
    if is_function(spec):
        return find_function(spec)
    library, _, given = spec.partition(":")
    if library in LIBRARIES:
        first, _, rest = given.partition(",")
        splitter, options = (first, rest) if first and "=" not in first else ("", given)
        known = LIBRARIES[library]
        kind = known.get(splitter, splitter) or next(iter(known.values()))
        spec = ":".join(filter(None, [f"{library}-{kind}", options]))
    return parse_named(spec, CHUNKERS, "chunker", FLAG)
