"""Chunkers as users name them: ``name:option=value``, ``library:splitter``, ``module:function``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import ClassVar

from reffree.chunkers.base import Chunker, Span, said_by
from reffree.chunkers.libraries import (
    ChonkieRecursive,
    ChonkieSemantic,
    ChonkieSentence,
    ChonkieToken,
    LangChainCharacter,
    LangChainRecursive,
    SemanticTextSplitter,
)
from reffree.chunkers.node_parsers import (
    DoclingHierarchical,
    DoclingHybrid,
    LlamaIndexSentence,
    LlamaIndexToken,
)
from reffree.chunkers.spans import spans_of
from reffree.util.errors import InputError, OptionError, shorten
from reffree.util.naming import parse_named

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
        LlamaIndexSentence,
        LlamaIndexToken,
        DoclingHierarchical,
        DoclingHybrid,
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
    "llamaindex": {"SentenceSplitter": "sentence", "TokenTextSplitter": "token"},
    "docling": {"HybridChunker": "hybrid", "HierarchicalChunker": "hierarchical"},
}
"""Libraries of several splitters: classes as we call them, the first unless one is named."""

_DOTTED = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_FUNCTION = re.compile(f"{_DOTTED}:{_DOTTED}")


@dataclass(frozen=True, slots=True)
class FunctionChunker:
    """Any callable from a text to its chunks, as strings or as ``(start, end)`` in characters."""

    name: str = field(metadata={"option": False})
    function: Callable[[str], object] = field(metadata={"option": False}, compare=False, repr=False)
    package: ClassVar[str | None] = None
    remark: ClassVar[str | None] = None
    cap: ClassVar[int | None] = None

    def size(self, chunk: str) -> int:
        """Return the number of characters."""
        return len(chunk)

    def __call__(self, text: str) -> Sequence[Span]:
        """Cut a text."""
        return spans_of(text, self.function(text))


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


def find_function(name: str) -> FunctionChunker:
    """Import ``module:function``; the function may be an attribute of an object, ``a:b.c``."""
    module_name, _, attributes = name.partition(":")
    try:
        found: object = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise _broken(name, module_name, error) from error
        raise OptionError(
            f"no module {module_name!r} in {name!r}",
            expected="a module that Python can import, or the name of a chunker",
            remedy="run reffree in the module's folder, install it, or see reffree chunkers --help",
        ) from None
    except (Exception, SystemExit) as error:  # whatever the user's code raises
        raise _broken(name, module_name, error) from error
    for attribute in attributes.split("."):
        try:
            found = getattr(found, attribute)
        except AttributeError:
            raise OptionError(
                f"no {attribute!r} in {name!r}",
                expected="a function of this module",
                remedy="check the name",
            ) from None
    if not callable(found):
        raise OptionError(
            f"{name!r}, which is {shorten(found)} ({type(found).__name__})",
            expected="a function from a text to its chunks",
            remedy="name a function",
        )
    return FunctionChunker(name, found)


def _broken(name: str, module: str, error: BaseException) -> InputError:
    return InputError(
        f"{said_by(error)} on importing {module!r} for {name!r}",
        expected="a module that can be imported",
        remedy=f"see what python -c 'import {module}' says",
    )
