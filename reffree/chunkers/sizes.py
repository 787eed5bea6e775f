"""How large chunks are, and which parts of a Markdown text they cut apart."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from reffree.chunkers.base import Chunker, Span

AT_CAP = 0.95
"""A chunk is at the cap from this share of it on."""

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
RULE = re.compile(r"\s*(?:\|\s*)?:?-+:?\s*(?:\|\s*:?-+:?\s*)*(?:\|\s*)?")

Parts = dict[str, list[Span]]
KINDS = ("fences", "tables", "headings")


def parts_of(text: str) -> Parts:
    r"""Find fenced code, tables, and headings with the start of what is below them.

    >>> parts_of("# A\n\nText.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")["tables"]
    [(12, 41)]
    """
    found: Parts = {kind: [] for kind in KINDS}
    lines = list(_lines(text))
    i = 0
    while i < len(lines):
        start, line = lines[i]
        opening = FENCE.match(line)
        last = i
        if opening:
            closing = re.compile(rf" {{0,3}}{re.escape(opening[1])}{opening[1][0]}*\s*")
            last = next(
                (j for j in range(i + 1, len(lines)) if closing.fullmatch(lines[j][1])),
                len(lines) - 1,
            )
            found["fences"].append((start, _end(lines[last])))
        elif "|" in line and i + 1 < len(lines) and _is_rule(lines[i + 1][1]):
            while last + 1 < len(lines) and "|" in lines[last + 1][1]:
                last += 1
            found["tables"].append((start, _end(lines[last])))
        elif HEADING.match(line):
            below = next((j for j in range(i + 1, len(lines)) if lines[j][1].strip()), None)
            if below is not None:
                at, under = lines[below]
                found["headings"].append((start, at + len(under) - len(under.lstrip()) + 1))
        i = last + 1
    return found


def _lines(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for line in text.split("\n"):
        yield at, line
        at += len(line) + 1


def _end(line: tuple[int, str]) -> int:
    return line[0] + len(line[1].rstrip())


def _is_rule(line: str) -> bool:
    return "|" in line and "-" in line and RULE.fullmatch(line) is not None


def n_cut(chunks: Sequence[Span], parts: Sequence[Span]) -> int:
    """Return how many parts no chunk holds whole.

    >>> n_cut([(0, 10), (10, 20)], [(2, 9), (8, 12)])
    1
    """
    return sum(not any(a <= start and end <= b for a, b in chunks) for start, end in parts)


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """Sizes of one chunker's chunks over all texts, and parts that it cut."""

    characters: tuple[int, ...] = ()
    own: tuple[int, ...] = ()  # in the measure of the cap
    tokens: tuple[int, ...] | None = None  # of an encoder, where there is one
    cap: int | None = None
    parts: dict[str, int] = field(default_factory=dict)  # by kind
    cut: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, chunker: Chunker, text: str, chunks: Sequence[Span]) -> ChunkSizes:
        """Measure the chunks of one text."""
        texts = [text[start:end] for start, end in chunks]
        parts = parts_of(text)
        return cls(
            tuple(map(len, texts)),
            tuple(chunker.size(each) for each in texts) if chunker.cap else (),
            None,
            chunker.cap,
            {kind: len(found) for kind, found in parts.items()},
            {kind: n_cut(chunks, found) for kind, found in parts.items()},
        )

    def __add__(self, other: ChunkSizes) -> ChunkSizes:
        """Put those of several texts together; tokens are counted afterwards."""
        return ChunkSizes(
            self.characters + other.characters,
            self.own + other.own,
            None,
            other.cap,
            {kind: self.parts.get(kind, 0) + n for kind, n in other.parts.items()},
            {kind: self.cut.get(kind, 0) + n for kind, n in other.cut.items()},
        )

    @property
    def share_at_cap(self) -> float | None:
        """Share of chunks of at least 95 % of the cap; None without a cap."""
        if not self.cap or not self.own:
            return None
        return sum(size >= AT_CAP * self.cap for size in self.own) / len(self.own)

    def to_dict(self) -> dict[str, float | int | None]:
        """Return plain values for JSON."""
        return {
            "chunks": len(self.characters),
            **_statistics("characters", self.characters),
            **_statistics("tokens", self.tokens),
            "at_cap": None if self.share_at_cap is None else round(self.share_at_cap, 6),
            **{kind: self.parts.get(kind, 0) for kind in KINDS},
            **{f"{kind}_cut": self.cut.get(kind, 0) for kind in KINDS},
        }


def _statistics(name: str, sizes: Sequence[int] | None) -> dict[str, int | None]:
    found = {"p50": percentile(sizes, 50), "p95": percentile(sizes, 95), "max": None}
    found["max"] = max(sizes) if sizes else None
    return {f"{name}_{key}": value for key, value in found.items()}


def percentile(sizes: Sequence[int] | None, percent: int) -> int | None:
    """Return the smallest size that so many percent of all do not exceed; None without any.

    >>> percentile([5, 1, 3, 2, 4], 50), percentile([7], 95), percentile([], 50)
    (3, 7, None)
    """
    if not sizes:
        return None
    return sorted(sizes)[max(0, math.ceil(percent / 100 * len(sizes)) - 1)]
