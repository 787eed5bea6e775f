"""Chunks as segments: every chunk's start moves to the nearest start of a unit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import accumulate, pairwise

from reffree.chunkers.base import Span
from reffree.chunkers.blocks import LONGEST
from reffree.chunkers.spans import check_order
from reffree.data.segmentation import Segmentation
from reffree.util.errors import InputError, counted


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
        """Put two reports together."""
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
    check_order(chunks)
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
