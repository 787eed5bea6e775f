"""What a chunker is, and what the adapters of libraries share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field
from typing import Any, ClassVar, Protocol

from reffree.util.errors import InputError, Place, shorten
from reffree.util.optional import require

Span = tuple[int, int]
"""First character, and the one after the last."""


class Chunker(Protocol):
    """A way to cut a text, with its options; frozen dataclasses implement it."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def name(self) -> str:
        """Registered name, or where the function is."""
        ...

    @property
    def package(self) -> str | None:
        """Package to install, whose version belongs beside the scores; none for functions."""
        ...

    @property
    def remark(self) -> str | None:
        """What a reader of its scores must know, as a sentence without its subject."""
        ...

    @property
    def cap(self) -> int | None:
        """Size that chunks are to have at most, in the chunker's own measure; None without one."""
        ...

    def size(self, chunk: str) -> int:
        """Return the size of a chunk in the measure of the cap."""
        ...

    def __call__(self, text: str) -> Sequence[Span]:
        """Return the chunks of a text in the order of their starts, as spans of characters."""
        ...

    def __hash__(self) -> int: ...


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


def said_by(error: BaseException) -> str:
    """Quote an exception of other people's code on one line."""
    words = shorten(" ".join(str(error).split()), 200)
    return f"{type(error).__name__} ({words})" if words else type(error).__name__
