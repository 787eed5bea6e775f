"""Chunks as segments: every chunk's start moves to the nearest start of a sentence."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import accumulate, pairwise

from reffree.chunkers.base import Span
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
    moved: int = 0  # starts that were not the start of a sentence
    distance: int = 0  # characters they moved, added up
    furthest: int = 0  # characters
    outside: int = 0  # sentences that no chunk touches
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

    def __str__(self) -> str:
        """Say it in a sentence, without its subject and its full stop."""
        parts = [f"{counted(self.chunks, 'chunk')}, {counted(self.segments, 'segment')}"]
        merged = self.chunks - self.segments
        if self.overlapping:
            parts.append(
                f"{self.overlapping:,} of {counted(self.starts, 'chunk start')} lay inside the "
                f"chunk before, with {self.shared / self.overlapping:.1f} characters in common on "
                "average: a segment ends where the next chunk starts"
            )
        if self.moved:
            parts.append(
                f"{self.moved:,} of {counted(self.starts, 'chunk start')} "
                f"({self.moved / self.starts:.1%}) lay inside a sentence and moved to the nearest "
                f"sentence start, by {self.distance / self.moved:.1f} characters on average and "
                f"{self.furthest:,} at most"
            )
        elif self.starts:
            parts.append("every chunk starts with a sentence")
        if merged:
            parts.append(
                f"{counted(merged, 'chunk')} came to start with the same sentence as the "
                "chunk before and merged with it"
            )
        if self.outside:
            parts.append(
                f"{counted(self.outside, 'sentence')} in no chunk, counted to the segment around"
            )
        return "; ".join(parts)


def snap(chunks: Sequence[Span], sentences: Sequence[Span]) -> tuple[Segmentation, SnapReport]:
    """Turn chunks of a text into a segmentation of its sentences, and say what that took.

    Each chunk's start moves to the nearest sentence start, the earlier of two equally near, so
    chunks that fall inside one sentence merge, and chunks that overlap count by their starts. Both
    kinds of spans are in order and without whitespace at their ends; sentences do not overlap.
    """
    if not chunks:
        raise InputError(
            "no chunks with text",
            expected=f"at least one, since the text has {counted(len(sentences), 'sentence')}",
            remedy="check the chunker's options on this text",
        )
    check_order(chunks)
    starts = [start for start, _ in sentences]
    boundaries: set[int] = set()
    distances: list[int] = []
    for start, _ in chunks[1:]:
        later = bisect_left(starts, start)
        near = range(max(0, later - 1), min(later + 1, len(starts)))
        nearest = min(near, key=lambda i: (abs(starts[i] - start), i))
        boundaries.add(nearest)
        distances.append(abs(starts[nearest] - start))
    chunk_starts = [start for start, _ in chunks]
    reached = list(accumulate((end for _, end in chunks), max))
    outside = 0
    for start, end in sentences:
        last = bisect_left(chunk_starts, end) - 1  # the last that starts before the sentence ends
        outside += last < 0 or reached[last] <= start
    shares = [max(0, before[1] - start) for before, (start, _) in pairwise(chunks)]
    segmentation = Segmentation.from_boundaries(sorted(boundaries - {0}), len(sentences))
    report = SnapReport(
        chunks=len(chunks),
        segments=len(segmentation),
        starts=len(distances),
        moved=sum(distance > 0 for distance in distances),
        distance=sum(distances),
        furthest=max(distances, default=0),
        outside=outside,
        overlapping=sum(share > 0 for share in shares),
        shared=sum(shares),
    )
    return segmentation, report
