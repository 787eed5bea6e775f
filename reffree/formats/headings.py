"""Prose whose headings or sections are the gold segmentation, and plain text without any.

* ``markdown``: headings open segments, down to ``level``; they are no units themselves.
* ``headings``: plain text with lines that are headings: ``# Title``, ``== Title ==``, a line
  underlined with = or -, ``2.1 Title`` or ``CHAPTER 3`` between blank lines, a line in capitals
  between blank lines; and Wiki-727K's ``========,2,Title.``, where a line is a unit.
* ``lines``: a unit a line and a blank line between documents, without a segmentation.
* ``wikisection``: ``{"id": …, "text": …, "annotations": [{"begin": 0, "length": 238,
  "sectionHeading": …, "sectionLabel": …}]}`` an article; every annotation is a segment, or every
  run of one label (``boundaries=label``). What no annotation covers is a segment, too.
* ``radionews``: a programme of SBBC-RadioNews a file, ``{"data": {"getProgrammeById": {"segments":
  [{"transcript": …}]}}}``; every segment with a transcript is one.

Units are sentences (sentencex; ``meta["sentences"]`` says which version), or paragraphs with
``units=paragraph``. Titles of segments are kept in ``meta["headings"]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, ClassVar, Literal

from reffree.data.corpus import Document
from reffree.data.sentences import sentence_spans, splitter
from reffree.formats import jsonl
from reffree.formats.format import JSON, TEXT, Format
from reffree.formats.source import Source
from reffree.formats.strict_json import Record
from reffree.util.bounds import check_whole
from reffree.util.errors import Place, mistake, shorten
from reffree.util.optional import require

MARKDOWN = (".md", ".markdown")
PROGRAMME = "getProgrammeById"
SECTIONS = "annotations"
_WIKI727 = re.compile(r"={8,},(\d{1,2}),(.*)")
_UNDERLINE = re.compile(r"\s*(={3,}|-{3,})\s*")
_NUMBERED = re.compile(r"\s*(\d+(?:\.\d+)*)[.)]?\s+(\S.{0,99})")
_NAMED = re.compile(r"\s*((?:chapter|section|part|appendix)\s+\w+\b.{0,99})", re.IGNORECASE)
_LANGUAGE = re.compile(r"//(\w{2,3})\.(?:m\.)?wikipedia\.org|wikisection_([a-z]{2})_")
_LIST = "***LIST***."

Unit = Literal["sentence", "paragraph"]
Block = tuple[int | None, str]
"""A heading's level and its title, or None and a paragraph."""

Section = tuple[str | None, list[str]]
"""A title and what stands under it; a paragraph may be a unit as it is."""


def _prose(
    sections: Sequence[Section],
    kind: Unit,
    language: str,
    place: Place,
    *,
    has_gold: bool = True,
    meta: dict[str, object] | None = None,
) -> Document:
    """Make a document of sections; those without text do not exist."""
    masses, titles, units = [], [], list[str]()
    for title, paragraphs in sections:
        before = len(units)
        for paragraph in paragraphs:
            lines = [" ".join(line.split()) for line in paragraph.splitlines()]
            if kind == "paragraph" and any(lines):
                units.append(" ".join(filter(None, lines)))
            for line in lines if kind == "sentence" else []:
                spans = sentence_spans(line, language, "units=sentence", place)
                units += [line[a:b] for a, b in spans if line[a:b] != _LIST]
        if len(units) > before:
            masses.append(len(units) - before)
            titles.append(title)
    kept = dict(meta or {})
    if any(titles):
        kept["headings"] = titles
    if kind == "sentence":
        kept["sentences"] = splitter(language)
    gold = masses if has_gold and masses else None
    return Document.build(str(place.document), units, gold=gold, meta=kept, place=place)


@dataclass(frozen=True)
class _Headed(Format):
    """Text with headings down to a level."""

    level: int = 6
    units: Unit = "sentence"
    language: str = "en"

    def __post_init__(self) -> None:
        """Refuse levels that headings do not have, and what is no language."""
        check_whole("level", self.level, 1, 6)
        if not re.fullmatch(r"[A-Za-z]{2,3}", self.language):
            found = f"language={shorten(self.language)}"
            raise mistake(None, found, "a code such as en or de", "leave it out for en")

    def document(self, blocks: Sequence[Block], units: Unit, place: Place) -> Document:
        """Make a document of headings and paragraphs; without a heading it has no gold."""
        sections: list[Section] = [(None, [])]
        for rank, text in blocks:
            if rank is None:
                sections[-1][1].append(text)
            elif rank <= self.level:
                sections.append((text, []))
        return _prose(sections, units, self.language, place, has_gold=len(sections) > 1)


@dataclass(frozen=True)
class Markdown(_Headed):
    """Markdown."""

    name = "markdown"
    owns: ClassVar[tuple[str, ...]] = MARKDOWN
    folders: ClassVar[tuple[str, ...]] = MARKDOWN
    kinds = "Markdown (.md)"

    def read_document(self, file: Source, place: Place) -> Document:
        """Read a file."""
        return self.document(list(_markdown_blocks(self.text(file), place)), self.units, place)

    def text(self, file: Source) -> str:
        """Return the text of a file, without what stands between two --- at its very start."""
        lines = [line for _, line in file.lines()]
        ends = (i for i, line in enumerate(lines) if i and line.rstrip() in ("---", "..."))
        if lines and lines[0].rstrip() == "---":
            lines = lines[next(ends, -1) + 1 :]
        return "\n".join(lines)


def _markdown_blocks(text: str, place: Place) -> Iterator[Block]:
    remedy = "run python -m pip install 'reffree[markdown]'"
    missing = mistake(place, "Markdown, but no markdown-it-py", "it to read Markdown", remedy)
    markdown_it = require("markdown_it", lambda name: missing)
    heading: int | None = None
    row: list[str] | None = None
    for token in markdown_it.MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "heading_open":
            heading = int(token.tag[1:])
        elif token.type == "tr_open":
            row = []
        elif token.type == "tr_close" and row is not None:
            yield None, " | ".join(filter(None, row))
            row = None
        elif token.type in ("fence", "code_block"):
            yield None, " ".join(token.content.split())
        elif token.type == "inline" and row is not None:
            row.append(_shown_text(token.children or []))
        elif token.type == "inline":
            yield heading, _shown_text(token.children or [])
            heading = None


def _shown_text(children: Sequence[Any]) -> str:
    """Put together what a reader sees of a paragraph."""
    parts = []
    for child in children:
        if child.type in ("text", "code_inline"):
            parts.append(child.content)
        elif child.type == "image":
            parts.append(_shown_text(child.children or []))
        elif child.type in ("softbreak", "hardbreak"):
            parts.append(" ")
    return "".join(parts)


@dataclass(frozen=True)
class Headings(_Headed):
    """Plain text with headings."""

    name = "headings"
    first_line = _WIKI727  # other headings are but text
    suffixes = TEXT
    folders = TEXT
    kinds = "plain text (.txt)"
    rank = 4

    def read_document(self, file: Source, place: Place) -> Document:
        """Read a file."""
        lines = [line for _, line in file.lines()]
        marks = [_WIKI727.fullmatch(line.strip()) for line in lines]
        is_wiki727 = any(marks)
        blocks: list[Block] = [
            (max(1, int(mark[1])), mark[2].strip().removesuffix(".")) if mark else (None, line)
            for line, mark in zip(lines, marks, strict=True)
            if line.strip() not in ("", _LIST)
        ]
        blocks = blocks if is_wiki727 else list(_text_blocks(lines))
        if not any(level is not None and level <= self.level for level, _ in blocks):
            expected = "lines such as # Title, == Title ==, 2.1 Title or TITLE"
            remedy = "mark them so, or read it with --format lines (a unit a line)"
            raise mistake(file.place(), "no headings", expected, remedy)
        return self.document(blocks, "paragraph" if is_wiki727 else self.units, place)


def _text_blocks(lines: Sequence[str]) -> Iterator[Block]:
    """Cut at blank lines and at headings."""
    paragraph: list[str] = []
    skip = False
    for line, after in pairwise([*lines, ""]):
        if skip:
            skip = False
            continue
        is_alone = not paragraph and not after.strip()
        heading = _heading(line, after, is_alone=is_alone, follows_text=bool(paragraph))
        if heading is None and line.strip():
            paragraph.append(line)
            continue
        if paragraph:
            yield None, " ".join(paragraph)
            paragraph = []
        if heading is not None:
            level, title, skip = heading
            yield level, title
    if paragraph:
        yield None, " ".join(paragraph)


def _heading(
    line: str, after: str, *, is_alone: bool, follows_text: bool
) -> tuple[int, str, bool] | None:
    """Return level, title, and whether the next line belongs to it; None for other lines."""
    text = line.strip()
    if not text:
        return None
    marks = len(text) - len(text.lstrip("#"))
    if 1 <= marks <= 6 and (text[marks:] == "" or text[marks].isspace()) and line[:4].strip():
        return marks, text[marks:].strip().rstrip("#").rstrip(), False
    marks = len(text) - len(text.lstrip("="))
    title = text[marks:-marks].strip() if text.endswith("=" * marks) else ""
    if 2 <= marks <= 6 and title:
        return marks - 1, title, False
    underline = _UNDERLINE.fullmatch(after)
    if underline and not follows_text and not _UNDERLINE.fullmatch(line):
        return (1 if "=" in underline[1] else 2), text, True
    if not is_alone or text[-1] in ".!?,;" or len(text) > 100:
        return None
    if found := _NUMBERED.fullmatch(line):
        return min(6, found[1].count(".") + 1), text, False
    if _NAMED.fullmatch(line) or (text.isupper() and sum(map(str.isalpha, text)) > 2):
        return 1, text, False
    return None


@dataclass(frozen=True)
class Lines(Format):
    """Text of a unit a line: documents between blank lines, or ``documents=one``."""

    documents: Literal["blank-line", "one"] = "blank-line"
    name = "lines"

    def read(self, source: Source) -> list[Document]:
        """Read a file; its documents are numbered where there are several."""
        if self.documents == "one":
            blocks = [list(source.lines_with_text())]
        else:
            runs = groupby(source.lines(), key=lambda line: bool(line[1].strip()))
            blocks = [list(run) for has_text, run in runs if has_text]
        blocks = list(filter(None, blocks))
        stem = source.stem
        ids = [stem] if len(blocks) == 1 else [f"{stem}/{i + 1}" for i in range(len(blocks))]
        return [
            Document.build(id, [text for _, text in block], place=source.place(block[0][0]))
            for id, block in zip(ids, blocks, strict=True)
        ]


@dataclass(frozen=True)
class WikiSection(Format):
    """WikiSection; the language is that of an article's address or of the file's name, else en."""

    boundaries: Literal["section", "label"] = "section"
    units: Unit = "sentence"
    name = "wikisection"
    keys = (f"text {SECTIONS}",)
    suffixes = JSON

    def read(self, source: Source) -> list[Document]:
        """Read a file's articles."""
        documents = []
        for i, table in enumerate(jsonl.tables(source)):
            id = table.identify("id", f"{source.stem}/{i + 1}")
            text = table.need_text("text")
            found = _LANGUAGE.search(f"{id} {source.stem}")
            language = (found[1] or found[2]) if found else "en"
            sections = self._sections(text, table)
            meta = {key: table[key] for key in ("title", "type") if key in table}
            documents.append(_prose(sections, self.units, language, table.place, meta=meta))
        return documents

    def _sections(self, text: str, article: Record) -> list[Section]:
        sections: list[Section] = []
        end, label = 0, None
        for i, table in enumerate(article.objects(SECTIONS, "annotation")):
            begin, length = table.need("begin"), table.need("length")
            is_whole = type(begin) is int and type(length) is int
            if not is_whole or not end <= begin <= begin + length <= len(text):
                found = f"annotation {i + 1} with begin {shorten(begin)} and "
                found += f"length {shorten(length)}"
                expected = (
                    f"characters from {end} to {len(text)}, since sections follow one another"
                )
                raise mistake(table.place, found, expected, "correct it")
            if text[end:begin].strip():
                sections.append((None, [text[end:begin]]))
                label = None
            title, end = table.get("sectionHeading"), begin + length
            is_same = label is not None and table.get("sectionLabel") == label
            if self.boundaries == "label" and is_same:
                sections[-1][1].append(text[begin:end])
            else:
                sections.append((str(title) if title else None, [text[begin:end]]))
            label = table.get("sectionLabel")
        if text[end:].strip():
            sections.append((None, [text[end:]]))
        return sections


@dataclass(frozen=True)
class RadioNews(Format):
    """SBBC-RadioNews."""

    units: Unit = "sentence"
    name = "radionews"
    keys = (f"data/{PROGRAMME}", "segments/transcript")
    suffixes = JSON
    folders = (".json",)
    kinds = "programmes (.json)"
    rank = 6

    def read_document(self, file: Source, place: Place) -> Document:
        """Read a programme."""
        programme = Record(file.json, "a programme", place)
        if "data" in programme:
            programme = programme.need_object("data").need_object(PROGRAMME)
        sections: list[Section] = []
        for segment in programme.objects("segments", "segment"):
            has_text = segment.need("transcript") is not None
            title = segment.get("title")
            title = title if isinstance(title, str) else None
            sections.append((title, [segment.need_text("transcript")] if has_text else []))
        return _prose(sections, self.units, "en", place)
