"""From what chunkers return to spans of characters; whitespace belongs to no span.

Chunkers strip, join and collapse whitespace as they like, so chunks are looked up in the text
without any, and spans begin and end with other characters. Everything else must be as it stands
in the text.
"""

from __future__ import annotations

import operator
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress

from reffree.chunkers.base import Span
from reffree.errors import InputError, shorten

_IN_ORDER = "chunks in order and without overlap"
_NO_OVERLAP = "set the chunker's overlap to 0"


def spans_of(text: str, returned: object) -> list[Span]:
    """Read what a function returned: an iterable of chunks or of ``(start, end)`` pairs."""
    chunks = _listed(returned)
    if all(isinstance(chunk, str) for chunk in chunks):
        return locate(text, [chunk for chunk in chunks if isinstance(chunk, str)])
    return trimmed(text, [_pair(chunk, number) for number, chunk in enumerate(chunks, 1)])


def locate(text: str, chunks: Iterable[str]) -> list[Span]:
    """Find every chunk behind the one before; chunks without text are left out.

    A chunk that does not follow immediately may have lost text before it, or overlap the previous
    one: where both are possible it is refused, since a wrong guess would move a boundary.
    """
    squeezed = "".join(text.split())
    positions = array("q", (i for i, character in enumerate(text) if not character.isspace()))
    spans: list[Span] = []
    start = end = 0  # of the previous chunk in the squeezed text
    for number, chunk in enumerate(chunks, 1):
        wanted = "".join(chunk.split())
        if not wanted:
            continue
        if squeezed.startswith(wanted, end):
            found = end
        else:
            # Occurrences that begin in the previous chunk and end behind it.
            low = max(start + 1, end - len(wanted) + 1)
            overlaps = squeezed.find(wanted, low, end + len(wanted) - 1) >= 0
            found = squeezed.find(wanted, end)
            if overlaps or (found < 0 and wanted in squeezed):
                raise InputError(
                    f"chunk {number}, {shorten(chunk)!r}, which goes back behind the end of the "
                    "chunk before",
                    expected=_IN_ORDER,
                    remedy=f"{_NO_OVERLAP}, or return (start, end) of each chunk",
                )
            if found < 0:
                raise InputError(
                    f"chunk {number}, {shorten(chunk)!r}, which does not occur in the text",
                    expected="chunks as they stand in the text, whitespace aside",
                    remedy="keep the chunker from changing characters, or return (start, end) of "
                    "each chunk",
                )
        start, end = found, found + len(wanted)
        spans.append((positions[start], positions[end - 1] + 1))
    return spans


def trimmed(text: str, spans: Iterable[Span]) -> list[Span]:
    """Take whitespace off both ends of spans; spans without text are left out."""
    result = []
    for number, (start, end) in enumerate(spans, 1):
        if not 0 <= start <= end <= len(text):
            raise InputError(
                f"chunk {number} from character {start} to {end}",
                expected=f"0 ≤ start ≤ end ≤ {len(text)}, the characters of the text",
                remedy="count characters of the text as it was given, not bytes or tokens",
            )
        inside = text[start:end]
        lead = len(inside) - len(inside.lstrip())
        if lead < len(inside):
            result.append((start + lead, start + len(inside.rstrip())))
    return result


def check_order(chunks: Sequence[Span]) -> None:
    """Refuse chunks that overlap or stand in another order than the text."""
    for number in range(1, len(chunks)):
        start, end = chunks[number][0], chunks[number - 1][1]
        if start < end:
            raise InputError(
                f"chunk {number + 1}, which starts at character {start} before chunk {number} "
                f"ends at {end}",
                expected=_IN_ORDER,
                remedy=_NO_OVERLAP,
            )


def _listed(returned: object) -> list[object]:
    if isinstance(returned, Iterable) and not isinstance(returned, (str, bytes)):
        return list(returned)
    raise InputError(
        f"{type(returned).__name__} from the chunker",
        expected="a list of chunks, as strings or as (start, end)",
        remedy="return such a list, or yield its items",
    )


def _pair(chunk: object, number: int) -> Span:
    if isinstance(chunk, Iterable) and not isinstance(chunk, (str, bytes)):
        with suppress(TypeError, ValueError):  # not two, or not whole numbers: told below
            start, end = chunk
            return operator.index(start), operator.index(end)
    raise InputError(
        f"chunk {number}, {shorten(chunk)} ({type(chunk).__name__})",
        expected="all chunks as strings, or all as (start, end) in characters",
        remedy="return one of the two, such as the text of each chunk object",
    )
