"""From what chunkers return to spans of characters, and from these to segments of units.

Chunkers strip, join and collapse whitespace as they like, so chunks are looked up in the text
without any, and spans begin and end with other characters. All else must be as in the text.
"""

from __future__ import annotations

import operator
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from itertools import accumulate, pairwise, takewhile

from reffree.chunkers.base import Span
from reffree.chunkers.blocks import LONGEST, blocks_of
from reffree.data.segmentation import Segmentation
from reffree.util.errors import InputError, counted, shorten

WORD = re.compile(r"[^\W_]+")
_IN_ORDER = "chunks in the order in which they start"


def spans_of(text: str, returned: object) -> list[Span]:
    """Read what a function returned: an iterable of chunks or of ``(start, end)`` pairs."""
    if not isinstance(returned, Iterable) or isinstance(returned, (str, bytes)):
        raise InputError(
            f"{type(returned).__name__} from the chunker",
            expected="a list of chunks, as strings or as (start, end)",
            remedy="return such a list, or yield its items",
        )
    chunks = list(returned)
    if all(isinstance(chunk, str) for chunk in chunks):
        return locate(text, [chunk for chunk in chunks if isinstance(chunk, str)])
    return trimmed(text, [_read_pair(chunk, number) for number, chunk in enumerate(chunks, 1)])


def locate(
    text: str, chunks: Iterable[str], may_share: Callable[[str], bool] | None = None
) -> list[Span]:
    """Find every chunk behind the start of the one before; chunks without text are left out.

    Neighbours may overlap. ``may_share`` is what is known of their library: whether they may have
    this text in common; of several places a chunk then stands at the first that may be. Without
    it, a chunk that does not follow immediately may have lost text before it, or overlap the
    previous one: where several places are possible it is refused, since a wrong guess would move a
    boundary.
    """
    squeezed = "".join(text.split())
    positions = array("q", (i for i, character in enumerate(text) if not character.isspace()))
    spans: list[Span] = []
    start, end = -1, 0  # of the previous chunk in the squeezed text
    for number, chunk in enumerate(chunks, 1):
        wanted = "".join(chunk.split())
        if not wanted:
            continue
        inside = _inside(squeezed, wanted, start, end)
        if may_share is not None:
            shared = (text[positions[i] : positions[end - 1] + 1] for i in inside)
            found = next((i for i, each in zip(inside, shared, strict=True) if may_share(each)), -1)
            found = found if found >= 0 else squeezed.find(wanted, end)
            found = found if found >= 0 or not inside else inside[-1]
        elif squeezed.startswith(wanted, end):
            found = end
        else:
            behind = squeezed.find(wanted, end)
            found = max([behind, *inside])
            if len(inside) + (behind >= 0) > 1:
                raise InputError(
                    f"chunk {number}, {shorten(chunk)!r}, which stands at several places behind "
                    "the start of the chunk before",
                    expected="one place",
                    remedy="return (start, end) of each chunk",
                )
        if found < 0:
            raise _not_found(number, chunk, is_earlier=wanted in squeezed)
        start, end = found, found + len(wanted)
        spans.append((positions[start], positions[end - 1] + 1))
    return spans


def _inside(squeezed: str, wanted: str, start: int, end: int) -> list[int]:
    """Occurrences that begin in the previous chunk, behind its start, and end behind it."""
    found = []
    at = squeezed.find(wanted, max(start + 1, end - len(wanted) + 1), end + len(wanted) - 1)
    while 0 <= at < end:
        found.append(at)
        at = squeezed.find(wanted, at + 1, end + len(wanted) - 1)
    return found


def _not_found(number: int, chunk: str, *, is_earlier: bool) -> InputError:
    if is_earlier:
        return InputError(
            f"chunk {number}, {shorten(chunk)!r}, which stands only before or inside the chunk "
            "before",
            expected=_IN_ORDER,
            remedy="return chunks in the order of the text, or (start, end) of each",
        )
    return InputError(
        f"chunk {number}, {shorten(chunk)!r}, which does not occur in the text",
        expected="chunks as they stand in the text, whitespace aside",
        remedy="keep the chunker from changing characters, or return (start, end) of each chunk",
    )


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


def _read_pair(chunk: object, number: int) -> Span:
    if isinstance(chunk, Iterable) and not isinstance(chunk, (str, bytes)):
        with suppress(TypeError, ValueError):  # not two, or not whole numbers: told below
            start, end = chunk
            return operator.index(start), operator.index(end)
    raise InputError(
        f"chunk {number}, {shorten(chunk)} ({type(chunk).__name__})",
        expected="all chunks as strings, or all as (start, end) in characters",
        remedy="return one of the two, such as the text of each chunk object",
    )


def locate_items(text: str, chunks: Sequence[tuple[tuple[str, ...], str]]) -> list[Span]:
    """Find chunks with their headings by letters and digits, each behind the one before.

    Where a chunk was written anew, as tables are, its words are followed as far as they stand in
    the text behind one another, none further on than the chunk is long. Marks at the start of a
    line, a table's head and a fence belong to the chunk that follows them.
    """
    places = array("q", (i for i, character in enumerate(text) if character.isalnum()))
    bare = "".join(text[i] for i in places)
    starts: list[int] = []
    wholes = [each.span for each in blocks_of(text) if each.kind in ("tables", "code")]
    above: tuple[str, ...] = ()
    end = previous = 0
    for number, (headings, chunk) in enumerate(chunks, 1):
        wanted = "".join(WORD.findall(chunk))
        if not wanted:
            continue
        start = None
        pairs = zip(above, headings, strict=False)
        n_common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        for heading in headings[n_common:]:
            plain = "".join(WORD.findall(heading))
            at = bare.find(plain, end)
            if plain and at >= 0:
                start, end = (at if start is None else start), at + len(plain)
        above = headings
        at = bare.find(wanted, end)
        words = [wanted] if at >= 0 else WORD.findall(chunk)
        for word in words:
            at = bare.find(word, end)
            if at >= 0 and (len(words) == 1 or at - end <= len(wanted)):
                start, end = (at if start is None else start), at + len(word)
        if start is None:
            raise InputError(
                f"chunk {number}, {shorten(chunk)!r}, which does not occur in the text",
                expected="chunks whose words stand in the text",
                remedy="check how docling reads the text as Markdown",
            )
        before = 0 if not starts else places[previous - 1] + 1
        starts.append(_move_back(text, places[start], before, wholes))
        previous = end
    return trimmed(text, list(pairwise([*starts, len(text)])))


def _move_back(text: str, start: int, before: int, wholes: Sequence[Span]) -> int:
    """Move a start back to what opens there, though not before the end of the chunk before."""
    for first, last in wholes:
        if before <= first < start < last:
            return first
    line = text.rfind("\n", 0, start) + 1
    is_marks = not any(character.isalnum() for character in text[line:start])
    return line if is_marks and line >= before else start


@dataclass(frozen=True, slots=True)
class SnapReport:
    """What snapping did to the chunks of one text or, added up, of several.

    The first chunk of a text starts a segment wherever it starts, so it counts as no start.
    """

    chunks: int = 0  # with text
    segments: int = 0
    starts: int = 0  # of chunks that are not the first of their text
    inside: int = 0  # starts within a unit
    moved: int = 0  # starts that were not a unit's
    distance: int = 0  # characters that starts moved, added up
    furthest: int = 0  # characters
    left_out: int = 0  # starts too far from any unit's to be moved
    outside: int = 0  # units that no chunk touches
    overlapping: int = 0  # chunks that start before the one before ends
    shared: int = 0  # characters they share with it, added up

    def __add__(self, other: SnapReport) -> SnapReport:
        values = {
            each.name: (max if each.name == "furthest" else int.__add__)(
                getattr(self, each.name), getattr(other, each.name)
            )
            for each in fields(self)
        }
        return SnapReport(**values)

    @property
    def merged(self) -> int:
        """Chunks that start with the same unit as the one before."""
        return self.chunks - self.segments - self.left_out

    @property
    def row(self) -> dict[str, float | int | None]:
        """The counts as a table has them, distances as means."""
        return {
            **{each.name: getattr(self, each.name) for each in fields(self)},
            "merged": self.merged,
            "inside": self.inside / self.starts if self.starts else None,
            "distance": self.distance / self.moved if self.moved else None,
            "shared": self.shared / self.overlapping if self.overlapping else None,
        }


def snap(chunks: Sequence[Span], units: Sequence[Span]) -> tuple[Segmentation, SnapReport]:
    """Turn chunks of a text into a segmentation of its units, and say what that took.

    Each chunk's start moves to the nearest unit's start, the earlier of two equally near, so
    chunks that fall inside one unit merge, and chunks that overlap count by their starts. A start
    that would have to move further than a unit is to be long (`LONGEST`), as inside very long units
    that were given, is no boundary and is counted. Both kinds of spans are in order and without
    whitespace at their ends; units do not overlap.
    """
    if not chunks:
        raise InputError(
            "no chunks with text",
            expected=f"at least one, since the text has {counted(len(units), 'unit')}",
            remedy="check the chunker's options on this text",
        )
    for number, (before, after) in enumerate(pairwise(chunks), start=2):
        if after[0] <= before[0]:
            raise InputError(
                f"chunk {number}, which starts at character {after[0]}, where chunk {number - 1} "
                f"starts at {before[0]}",
                expected=_IN_ORDER,
                remedy="sort them, and leave out the smaller of two with one start",
            )
    starts = [start for start, _ in units]
    boundaries: set[int] = set()
    distances: list[int] = []
    inside = 0
    for start, _ in chunks[1:]:
        later = bisect_left(starts, start)
        near = range(max(0, later - 1), min(later + 1, len(starts)))
        nearest = min(near, key=lambda i: (abs(starts[i] - start), i))
        inside += later > 0 and starts[later - 1] < start < units[later - 1][1]
        if (distance := abs(starts[nearest] - start)) <= LONGEST:
            boundaries.add(nearest)
            distances.append(distance)
    chunk_starts = [start for start, _ in chunks]
    reached = list(accumulate((end for _, end in chunks), max))
    outside = 0
    for start, end in units:
        last = bisect_left(chunk_starts, end) - 1  # the last that starts before the unit ends
        outside += last < 0 or reached[last] <= start
    shares = [max(0, before[1] - start) for before, (start, _) in pairwise(chunks)]
    segmentation = Segmentation.from_boundaries(sorted(boundaries - {0}), len(units))
    report = SnapReport(
        chunks=len(chunks),
        segments=len(segmentation),
        starts=len(chunks) - 1,
        inside=inside,
        moved=sum(distance > 0 for distance in distances),
        distance=sum(distances),
        furthest=max(distances, default=0),
        left_out=len(chunks) - 1 - len(distances),
        outside=outside,
        overlapping=sum(share > 0 for share in shares),
        shared=sum(shares),
    )
    return segmentation, report
