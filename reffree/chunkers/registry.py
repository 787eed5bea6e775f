"""Chunkers as users name them: ``name:option=value``, ``library:splitter``, ``module:function``."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from reffree.chunkers import libraries
from reffree.chunkers.base import Chunker, Span, library, quote_error
from reffree.chunkers.spans import locate, spans_of, trimmed
from reffree.util.errors import InputError, OptionError, shorten
from reffree.util.naming import parse_named

FLAG = "--chunker"
CHUNKERS: dict[str, type[Chunker]] = {
    kind.name: kind
    for kind in (
        *(libraries.LangChainRecursive, libraries.LangChainCharacter, libraries.ChonkieRecursive),
        *(libraries.ChonkieToken, libraries.ChonkieSentence, libraries.ChonkieSemantic),
        *(libraries.SemanticTextSplitter, libraries.LlamaIndexSentence, libraries.LlamaIndexToken),
        *(libraries.DoclingHybrid, libraries.DoclingHierarchical),
    )
}
LIBRARIES = ("langchain", "chonkie", "llamaindex", "docling")
"""Libraries of several splitters, of which the first is meant unless one is named."""

_DOTTED = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_FUNCTION = re.compile(f"{_DOTTED}:{_DOTTED}")


@dataclass(frozen=True, slots=True)
class FunctionChunker(Chunker):
    """Any callable from a text to its chunks, as strings or as ``(start, end)`` in characters."""

    name: str = field(metadata={"option": False})
    function: Callable[[str], object] = field(metadata={"option": False}, compare=False, repr=False)

    def __call__(self, text: str) -> Sequence[Span]:
        """Cut a text."""
        return spans_of(text, self.function(text))


@dataclass(frozen=True, slots=True)
class SplitterChunker(Chunker):
    """A splitter that was made with its own library."""

    name: str = field(metadata={"option": False})
    splitter: Any = field(metadata={"option": False}, compare=False, repr=False)
    method: str = field(metadata={"option": False})

    def __call__(self, text: str) -> Sequence[Span]:
        """Cut a text."""
        given: Any = text
        if self.method == "get_nodes_from_documents":
            home = "llama_index.core.schema"
            given = [library(home, "llama-index-core", self.name, "llamaindex").Document(text=text)]
        chunks = list(getattr(self.splitter, self.method)(given))
        if self.method == "chunk_indices":
            return trimmed(text, [(start, start + len(chunk)) for start, chunk in chunks])
        texts = [each if isinstance(each, str) else _text_of(each) for each in chunks]
        overlap = getattr(self.splitter, "_chunk_overlap", None)
        if overlap is None:
            overlap = getattr(self.splitter, "chunk_overlap", None)
        measure = getattr(self.splitter, "_length_function", None)
        measure = measure or getattr(self.splitter, "_tokenizer", None)
        if not isinstance(overlap, int) or measure is None:
            return locate(text, texts)

        def size(shared: str) -> int:
            measured = measure(shared)
            return measured if isinstance(measured, int) else len(measured)

        return locate(text, texts, lambda shared: size(shared) <= overlap)


def _text_of(chunk: object) -> str:
    """Return the text of a chunk of any library."""
    for name in ("text", "page_content"):
        if isinstance(found := getattr(chunk, name, None), str):
            return found
    raise InputError(
        f"chunks of type {type(chunk).__name__}",
        expected="strings, or objects with text or page_content",
        remedy="wrap the splitter: lambda text: [… for chunk in splitter…]",
    )


SIZES = ("chunk_size", "chunk_overlap", "chunk_max_size")
METHODS = ("split_text", "chunk_indices", "get_nodes_from_documents", "chunk")
"""By which splitters of LangChain and LlamaIndex, semantic-text-splitter, LlamaIndex's parsers and
chonkie are known; what has none of them is to be callable."""


def chunker_of(given: object) -> Chunker:
    """Make a chunker of a specification, of a library's splitter, or of a function of a text."""
    if isinstance(given, str):
        return find_chunker(given)
    if isinstance(given, Chunker):
        return given
    method = next((name for name in METHODS if hasattr(given, name)), None)
    if method is None and not callable(given):
        raise OptionError(
            f"{type(given).__name__} as a chunker",
            expected="a name, a function of a text, or a splitter of LangChain, LlamaIndex, "
            "chonkie or semantic-text-splitter",
            remedy="wrap it: lambda text: its chunks",
        )
    if method is None:
        kind = given if hasattr(given, "__qualname__") else type(given)
        name = f"{kind.__module__}:{kind.__qualname__}"
        return FunctionChunker(name, cast(Callable[[str], object], given))
    sizes = {key: getattr(given, key, getattr(given, f"_{key}", None)) for key in SIZES}
    shown = ",".join(f"{key}={size}" for key, size in sizes.items() if type(size) is int)
    name = ":".join(filter(None, [type(given).__name__, shown]))
    return SplitterChunker(name, given, method)


def find_chunker(spec: str) -> Chunker:
    """Make the chunker that a specification names.

    ``langchain:RecursiveCharacterTextSplitter,chunk_size=500`` and ``langchain:chunk_size=500`` are
    ``langchain-recursive:chunk_size=500``. What has no dash and is of no library is a function.
    """
    library, _, given = spec.partition(":")
    if library in LIBRARIES:
        first, _, rest = given.partition(",")
        splitter, options = (first, rest) if first and "=" not in first else ("", given)
        own = [name for name in CHUNKERS if name.startswith(f"{library}-")]
        names = {getattr(CHUNKERS[name], "splitter", ""): name for name in own} | {"": own[0]}
        spec = ":".join(filter(None, [names.get(splitter, f"{library}-{splitter}"), options]))
    elif _FUNCTION.fullmatch(spec):
        return find_function(spec)
    return parse_named(spec, CHUNKERS, "chunker", FLAG)


def find_function(name: str) -> FunctionChunker:
    """Import ``module:function``; the function may be an attribute of an object, ``a:b.c``.

    Modules are looked for in the working directory, too, as ``python -m`` does.
    """
    module_name, _, attributes = name.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found: object = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise _broken(name, module_name, error) from error
        raise OptionError(
            f"no module {module_name!r} in {name!r}",
            expected="a module that Python can import, or the name of a chunker",
            remedy="run reffree in the module's folder, install it, or see reffree chunks --help",
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
        f"{quote_error(error)} on importing {module!r} for {name!r}",
        expected="a module that can be imported",
        remedy=f"see what python -c 'import {module}' says",
    )
