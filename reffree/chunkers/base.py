"""What a chunker is, and what the adapters of libraries share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field, fields
from typing import Any, ClassVar

from reffree.util.bounds import check_whole
from reffree.util.errors import InputError, Place, shorten
from reffree.util.optional import require

Span = tuple[int, int]
"""First character, and the one after the last."""


class Chunker:
    """A way to cut a text; frozen dataclasses with their options as fields inherit from it."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    package: ClassVar[str | None] = None
    """Package to install, whose version belongs beside the scores."""

    sized_by: ClassVar[str | None] = None
    """The option that says how large chunks may be, if there is one."""

    def __post_init__(self) -> None:
        for option in fields(self):
            if option.type == "int":
                least = 0 if option.name == "chunk_overlap" else 1
                check_whole(option.name, getattr(self, option.name), least)
        overlap = getattr(self, "chunk_overlap", 0)
        if overlap > (self.cap or overlap):
            raise InputError(
                f"chunk_overlap={overlap}",
                expected=f"at most {self.sized_by}, {self.cap}",
                remedy=f"write a smaller chunk_overlap beside {self.sized_by}",
            )

    @property
    def name(self) -> str:
        """Registered name, or where the function is."""
        raise NotImplementedError

    @property
    def remark(self) -> str | None:
        """What a reader of its scores must know, as a sentence without its subject."""
        return None

    @property
    def cap(self) -> int | None:
        """Size that chunks are to have at most, in the chunker's own measure; None without one."""
        return getattr(self, self.sized_by) if self.sized_by else None

    def size(self, chunk: str) -> int:
        """Return the size of a chunk in the measure of the cap: characters, or words."""
        return len(chunk.split()) if getattr(self, "tokenizer", "") == "word" else len(chunk)

    def __call__(self, text: str) -> Sequence[Span]:
        """Return the chunks of a text in the order of their starts, as spans of characters."""
        raise NotImplementedError


def library(module: str, package: str, user: str, extra: str = "chunkers") -> Any:  # noqa: ANN401  (a module)
    """Import a library that is not among the requirements, or say how to install it."""
    return require(
        module,
        lambda name: InputError(
            f"no installed {package}",
            expected=f"this library, since {user} needs it",
            remedy=f"install it with pip install {package}, or all that are known with "
            "pip install 'reffree[chunkers]'"
            if extra == "chunkers"
            else f"install it with pip install 'reffree[{extra}]'",
            place=Place(system=user),
        ),
    )


def quote_error(error: BaseException) -> str:
    """Quote an exception of other people's code on one line."""
    words = shorten(" ".join(str(error).split()), 200)
    return f"{type(error).__name__} ({words})" if words else type(error).__name__
