"""What a text is made of: headings, code, tables, lists and prose; and the units that it has.

The text may be Markdown, reStructuredText or plain. Prose has sentences for units; a heading, a
block of code, a table and a list are each one unit, and where long several, cut at their lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from typing import Literal, NamedTuple

from reffree.chunkers.base import Span
from reffree.data.sentences import sentence_spans

LONGEST = 600
"""Characters of a unit at most: what the usual encoder reads of code, and more of prose."""

Kind = Literal["headings", "code", "tables", "lists", "prose"]
KINDS: tuple[Kind, ...] = ("code", "tables", "lists", "headings")
"""What a chunker may cut apart beside sentences."""

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_LINE = re.compile(r"\s*([=~^\"'`#*+:._-])\1{2,}\s*")
_MARKS = re.compile(r"\s*([=~^#*+_-])\1+\s*")
_ITEM = re.compile(r"(\s*)(?:[-*+•]|#\.|\(?\d{1,3}[.)])\s+\S")
_FIRST_ITEM = re.compile(r"\s*(?:[-*+•]|#\.|\(?1[.)])\s+\S")
_BREAK = re.compile(r"\n(?=\s*\n|\s*(?:[-*+•]|#\.|\(?\d{1,3}[.)])\s)")
_LINE_END = re.compile(r"\n")
_SPACE = re.compile(r"\s")
_RULE = re.compile(r"\s*(?:\|\s*)?:?-+:?\s*(?:\|\s*:?-+:?\s*)*(?:\|\s*)?")
_GRID = re.compile(r"\s*\+[-=+]+\+\s*")
_COLUMNS = re.compile(r"\s*=+(?:\s+=+)+\s*")
_TAG = re.compile(r"\s*<(table|pre)\b", re.IGNORECASE)
_CODE_DIRECTIVE = re.compile(
    r"\s*\.\. (?:code|code-block|sourcecode|parsed-literal|highlight|math|raw|productionlist)::"
)
_TABLE_DIRECTIVE = re.compile(r"\s*\.\. (?:table|csv-table|list-table)::")
_PROSE = re.compile(r"[.!?…]['\"”’)]*\Z|[a-z]{2}[.!?]\s+[A-Z]")


class Block(NamedTuple):
    """A part of a text, without whitespace at its ends."""

    kind: Kind
    start: int
    end: int

    @property
    def span(self) -> Span:
        """First character, and the one after the last."""
        return self.start, self.end


class _Lines:
    """Lines of a text, and which of them belong together."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.split("\n")
        self.starts = [0, *accumulate(len(line) + 1 for line in self.lines)]

    def is_blank(self, i: int) -> bool:
        """Whether there is no such line, or nothing on it."""
        return not 0 <= i < len(self.lines) or not self.lines[i].strip()

    def indent(self, i: int) -> int:
        line = self.lines[i].expandtabs(4)
        return len(line) - len(line.lstrip())

    def block(self, kind: Kind, first: int, last: int) -> Block:
        """Make a block of lines, the last included."""
        end = self.starts[last] + len(self.lines[last])
        part = self.text[self.starts[first] : end]
        lead = len(part) - len(part.lstrip())
        return Block(kind, self.starts[first] + lead, self.starts[first] + len(part.rstrip()))

    def indented(self, i: int, least: int) -> int:
        """Return the last line of those from ``i`` on that are indented so far, or blank."""
        last = i - 1
        while i < len(self.lines) and (self.is_blank(i) or self.indent(i) >= least):
            last = last if self.is_blank(i) else i
            i += 1
        return last

    def until(self, i: int, pattern: re.Pattern[str]) -> int:
        """Return the first line from ``i`` on with the pattern, else the last of all."""
        rest = range(i, len(self.lines))
        return next((j for j in rest if pattern.search(self.lines[j])), len(self.lines) - 1)

    def heading(self, i: int) -> int | None:
        """Return the last line of a heading that starts here."""
        line = self.lines[i]
        if _HEADING.match(line):
            return i
        is_over = _LINE.fullmatch(line) is not None
        if is_over and not self.is_blank(i + 1) and not self.is_blank(i + 2):
            return i + 2 if self.lines[i + 2].strip() == line.strip() else None
        if is_over or self.is_blank(i + 1) or not self.is_blank(i - 1) or len(line) > 120:
            return None
        under = self.lines[i + 1]
        is_under = _LINE.fullmatch(under) and len(under.strip()) >= min(3, len(line.strip()))
        return i + 1 if is_under and not under.startswith((" ", "\t")) else None

    def table(self, i: int) -> int | None:
        """Return the last line of a table that starts here."""
        line, last = self.lines[i], i
        below = "" if self.is_blank(i + 1) else self.lines[i + 1]
        if "|" in line and "|" in below and "-" in below and _RULE.fullmatch(below):
            while last + 1 < len(self.lines) and "|" in self.lines[last + 1]:
                last += 1
        elif _GRID.fullmatch(line):
            while not self.is_blank(last + 1) and self.lines[last + 1].lstrip()[0] in "|+":
                last += 1
        elif _COLUMNS.fullmatch(line):
            rest = range(i + 1, len(self.lines))
            rules = islice((j for j in rest if _COLUMNS.fullmatch(self.lines[j])), 2)
            last = next((j for j in rules if self.is_blank(j + 1)), i)
        elif _TABLE_DIRECTIVE.match(line):
            last = self.indented(i + 1, self.indent(i) + 1)
        return last if last > i else None

    def code(self, i: int) -> int | None:
        """Return the last line of code that starts here, whatever says that it is code."""
        line = self.lines[i]
        if fence := _FENCE.match(line):
            mark = fence[1]
            closing = re.compile(rf"^\s*{re.escape(mark)}{mark[0]}*\s*$")
            return self.until(i + 1, closing) if i + 1 < len(self.lines) else i
        if i == 0 and line.rstrip() == "---" and any(x.rstrip() == "---" for x in self.lines[1:]):
            return self.until(1, re.compile(r"^---\s*$"))
        if _CODE_DIRECTIVE.match(line):
            return max(i, self.indented(i + 1, self.indent(i) + 1))
        if self.indent(i) < 2 or not self.is_blank(i - 1):
            return None
        above = next((j for j in range(i - 1, -1, -1) if not self.is_blank(j)), None)
        opens = above is not None and self.lines[above].rstrip().endswith("::")
        if above is not None and opens and self.indent(i) > self.indent(above):
            return self.indented(i, self.indent(above) + 1)
        return self.indented_code(i)

    def indented_code(self, i: int) -> int | None:
        """Return the last line of indented paragraphs, as far as none of them reads as prose."""
        last = None
        while i < len(self.lines) and self.indent(i) >= 4:
            end = next(j for j in range(i, len(self.lines) + 1) if self.is_blank(j + 1))
            if _PROSE.search("\n".join(self.lines[i : end + 1]).rstrip()):
                break
            last = end
            i = next((j for j in range(end + 1, len(self.lines)) if not self.is_blank(j)), 10**9)
        return last

    def list(self, i: int, *, in_prose: bool = False) -> int | None:
        """Return the last line of a list that starts here; code in it ends it."""
        item = (_FIRST_ITEM if in_prose else _ITEM).match(self.lines[i])
        if item is None or _LINE.fullmatch(self.lines[i].replace(" ", "")):
            return None
        least, last = self.indent(i), i
        for j in range(i + 1, len(self.lines)):
            line = self.lines[j]
            if not line.strip():
                continue
            is_item = _ITEM.match(line) is not None and self.indent(j) >= least
            if _FENCE.match(line) or self.heading(j) is not None or self.table(j) is not None:
                break
            if self.is_blank(j - 1) and not is_item and self.indent(j) <= least:
                break
            last = j
        return last

    def special(self, i: int, *, in_prose: bool = False) -> tuple[Kind, int] | None:
        """Return what starts at a line, and where it ends, if it is no prose."""
        if (last := self.code(i)) is not None:
            return "code", last
        if (last := self.table(i)) is not None:
            return "tables", last
        if (last := self.heading(i)) is not None:
            return "headings", last
        if (last := self.list(i, in_prose=in_prose)) is not None:
            return "lists", last
        tag = _TAG.match(self.lines[i])  # of an HTML table or preformatted text
        if tag is None:
            return None
        last = self.until(i, re.compile(rf"</{tag[1]}\s*>", re.IGNORECASE))
        return ("tables" if tag[1].lower() == "table" else "code"), last


def blocks_of(text: str) -> list[Block]:
    r"""Find the parts of a text in order; blank lines and rules (---) belong to none.

    >>> text = "# A\n\nText.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    >>> [(block.kind, text[block.start : block.end][:7]) for block in blocks_of(text)]
    [('headings', '# A'), ('prose', 'Text.'), ('tables', '| a | b')]
    """
    lines, found, i = _Lines(text), list[Block](), 0
    while i < len(lines.lines):
        if lines.is_blank(i):
            i += 1
            continue
        special = lines.special(i)
        if special is None and _MARKS.fullmatch(lines.lines[i]):
            i += 1
            continue
        kind, last = special or ("prose", i)
        while special is None and not lines.is_blank(last + 1):
            if lines.special(last + 1, in_prose=True) is not None:
                break
            last += 1
        found.append(lines.block(kind, i, last))
        i = last + 1
    return found


def units_of(text: str, blocks: Sequence[Block], language: str, user: str) -> list[Block]:
    """Return the units of a text, none longer than `LONGEST`; those of prose are sentences.

    Sentences are sentencex's; ``user`` is who needs it, for the error without it.
    """
    units = []
    for kind, start, end in blocks:
        inside = [(0, end - start)]
        if kind == "prose":
            inside = sentence_spans(text[start:end], language, user)
        for first, last in inside:
            units += [Block(kind, *each) for each in pieces(text, start + first, start + last)]
    return units


def pieces(text: str, start: int, end: int) -> Iterator[Span]:
    """Cut a part of a text that is too long: at blank lines and items, else lines, else spaces."""
    places = ((_BREAK, LONGEST // 3), (_LINE_END, LONGEST // 6), (_SPACE, 1))
    while end - start > LONGEST:
        window = text[start : start + LONGEST]
        found = ([m.start() for m in pattern.finditer(window, least)] for pattern, least in places)
        at = start + next(filter(None, found), [LONGEST])[-1]  # the last of the best places
        yield start, start + len(text[start:at].rstrip())
        start = at + len(text[at:end]) - len(text[at:end].lstrip())
    if start < end:
        yield start, end
