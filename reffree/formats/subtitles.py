"""Text with times: SubRip and WebVTT subtitles, transcripts; and chapters, which have only times.

Units keep their times, in seconds, in ``meta["times"]``. Subtitles are read with pysubs2, a cue
being a unit, or as many cues as end with a sentence (``units=sentence``). A transcript has a time
in brackets at the start of a unit, ``[00:01:02] text`` or ``[00:00.000 --> 00:04.200] text``; lines
without one belong to the unit before. Speakers are those of ``<v Ann>`` or, where most units begin
so, of ``Ann: ``. Captions that scroll, with a time at every word as YouTube makes them, show a line
in several cues: it counts once.

Chapters are podcast chapters, ``{"chapters": [{"startTime": 94, "title": "…"}]}``, or the lines
``0:00 Intro`` of a video's description. They are the gold segmentation of a text with times
(``--text``): a unit belongs to the chapter that its middle lies in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from reffree.data.corpus import GOLD, Document
from reffree.formats.format import JSON, TEXT, Format
from reffree.formats.labels import Label, Starts, TimedUnit, timed_document
from reffree.formats.source import Source
from reffree.formats.strict_json import Record, read_seconds
from reffree.util.errors import Place, counted, mistake, shorten
from reffree.util.optional import require

SUBTITLES = (".vtt", ".srt")
CHAPTERS = "chapters"
MOST_CHAPTERS = 1_000
_CLOCK = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{2})(?:[.,](\d{1,3}))?"
_TIMED = re.compile(rf"\s*[\[(]{_CLOCK}(?:\s*(?:-->|-|–|—)\s*{_CLOCK})?[\])]\s*:?\s*(.*)")
_CHAPTER = re.compile(rf"\s*[\[(]?{_CLOCK}[\])]?(.*)")
_ARROW = re.compile(r"\s*[\d:.,]+\s*-->\s*[\d:.,]+")
_TAG = re.compile(r"<([^<>]*)>")
_TIME_TAG = re.compile(r"<[\d:.]+>")
_WORD_TIME = re.compile(r"<\d{2}:\d{2}:\d{2}\.\d{3}><c>")
_SPEAKER = re.compile(r"(?:>>\s*|-\s*)?([^\W\d_][^:\n]{0,39}):\s+(?=\S)")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’)\]]*$")

Speakers = Literal["auto", "prefix", "none"]


@dataclass(frozen=True)
class Subtitles(Format):
    """SubRip and WebVTT."""

    units: Literal["cue", "sentence"] = "cue"
    speakers: Speakers = "auto"
    name = "subtitles"
    first_line = re.compile("WEBVTT")
    owns = SUBTITLES
    suffixes = TEXT
    folders = SUBTITLES
    kinds = "subtitles (.srt, .vtt)"
    rank = 4

    def read_document(self, file: Source, place: Place) -> Document:
        """Read a file."""
        units = _cues(file)
        if not units:
            expected = "lines such as 00:00:01,000 --> 00:00:04,000 with text under them"
            raise mistake(file.place(), "no cues", expected, "check that the file is the right one")
        units = _with_speakers(units, self.speakers, self.name, file)
        return timed_document(_sentences(units) if self.units == "sentence" else units, place)


def _cues(file: Source) -> list[TimedUnit]:
    lines = [line for _, line in file.lines()]
    is_vtt = file.suffix == ".vtt" or bool(lines and lines[0].startswith("WEBVTT"))
    remedy = "run python -m pip install pysubs2"
    missing = mistake(file.place(), "subtitles, but no pysubs2", "pysubs2 to read them", remedy)
    pysubs2 = require("pysubs2", lambda name: missing)
    text = "\n\n".join(_blocks(lines, is_vtt=is_vtt))
    try:
        kind = "vtt" if is_vtt else "srt"
        cues = pysubs2.SSAFile.from_string(text, format_=kind, keep_unknown_html_tags=True)
    except (ValueError, IndexError, OverflowError, pysubs2.exceptions.Pysubs2Error) as error:
        found = f"subtitles that cannot be read ({shorten(str(error).splitlines()[0], 120)})"
        remedy = "save them again as one of the two"
        raise mistake(file.place(), found, "SubRip or WebVTT", remedy) from None
    is_rolling = any(_WORD_TIME.search(line) for line in lines)
    units: list[TimedUnit] = []
    before: list[str] = []
    for cue in sorted(cues, key=lambda cue: cue.start):
        shown = [" ".join(_TAG.sub("", line).split()) for line in cue.plaintext.splitlines()]
        shown = [line for line in shown if line]
        new = _scrolled(shown, before) if is_rolling else shown
        before = shown or before
        start, end = cue.start / 1000, max(cue.start, cue.end) / 1000
        tags = [tag[1].split() for tag in _TAG.finditer(cue.plaintext)]  # such as <v Name>
        voices = (" ".join(tag[1:]) for tag in tags if tag and tag[0].partition(".")[0] == "v")
        if new:
            units.append(TimedUnit(" ".join(new), start, end, next(filter(None, voices), "")))
        elif shown and units:
            units[-1] = replace(units[-1], end=max(end, units[-1].end))
    return units


def _scrolled(shown: list[str], before: Sequence[str]) -> list[str]:
    """Leave out the lines of a cue that the cue before had at its end and still shows.

    >>> _scrolled(["b", "c"], ["a", "b"]), _scrolled(["b"], ["a", "b"]), _scrolled(["c"], ["a"])
    (['c'], [], ['c'])
    """
    for n in range(min(len(shown), len(before)), 0, -1):
        if shown[:n] == list(before[-n:]):
            return shown[n:]
    return shown


def _blocks(lines: Sequence[str], *, is_vtt: bool) -> list[str]:
    """Keep of every block what stands from its times on: no notes, styles, numbers, names.

    A blank line ends a block; in WebVTT it is one without spaces.
    """
    starts = [i for i, line in enumerate(lines) if _ARROW.match(line)]
    blocks = []
    for first, last in pairwise([*starts, len(lines)]):
        body = list(lines[first + 1 : last])
        ends = (i for i, line in enumerate(body) if not (line if is_vtt else line.strip()))
        # pysubs2 takes a line with two times for the start of a cue.
        text = [_TIME_TAG.sub("", line) for line in body[: next(ends, len(body))] if line.strip()]
        blocks.append("\n".join([lines[first], *text]))
    return blocks


@dataclass(frozen=True)
class Transcript(Format):
    """Text with times in brackets."""

    speakers: Speakers = "auto"
    name = "transcript"
    first_line = _TIMED
    suffixes = TEXT
    folders = TEXT
    kinds = "transcripts (.txt)"
    rank = 4

    def read_document(self, file: Source, place: Place) -> Document:
        """Read a file."""
        return timed_document(_with_speakers(_timed(file), self.speakers, self.name, file), place)


def _timed(file: Source) -> list[TimedUnit]:
    found: list[tuple[float, float | None, list[str]]] = []
    for number, line in file.lines_with_text():
        match = _TIMED.fullmatch(line)
        if match is None:
            if not found:
                expected = "a time such as [00:01:02] before the first words"
                remedy = "put one there, or move what stands above the first time elsewhere"
                raise mistake(file.place(number), f"the line {shorten(line)!r}", expected, remedy)
            found[-1][2].append(line.strip())
            continue
        start = _seconds(match.groups()[:4])
        end = _seconds(match.groups()[4:8]) if match[6] is not None else None
        if found and start < found[-1][0]:
            wrong = f"the time {line.split()[0]} after a later one"
            remedy = "correct the time, or sort the lines"
            raise mistake(file.place(number), wrong, "times in order", remedy)
        found.append((start, end, [match[9]] if match[9].strip() else []))
    return [
        TimedUnit(" ".join(words), start, max(start, after if end is None else end))
        for (start, end, words), (after, _, _) in pairwise([*found, *found[-1:]])
        if words
    ]


def _seconds(groups: Sequence[str | None]) -> float:
    hours, minutes, seconds, rest = groups
    whole = int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    return whole + float(f"0.{rest or 0}")


def _with_speakers(
    units: Sequence[TimedUnit], speakers: Speakers, format: str, file: Source
) -> list[TimedUnit]:
    """Take names before a colon for speakers, where that is asked for or most units have one."""
    if speakers == "none" or any(unit.speaker for unit in units):
        return list(units)
    found = [_SPEAKER.match(unit.text) for unit in units]
    names = Counter(match[1] for match in found if match)
    n = names.total()
    is_dialogue = 2 * n > len(units) and any(count > 1 for count in names.values())
    if speakers == "auto":
        if not is_dialogue:
            return list(units)
        shown = f"{counted(n, 'unit')} of {len(units):,} that begin as {shorten(min(names))}: does"
        option = f"--format {format}:speakers=none"
        remedy = f"they were taken for speakers, keep them in the text with {option}"
        file.note(shown, "speakers there", remedy)
    speaker, named = "", []
    for unit, match in zip(units, found, strict=True):
        speaker = match[1].strip() if match else speaker
        text = unit.text[match.end() :] if match else unit.text
        named.append(replace(unit, text=text, speaker=speaker))
    return named


def _sentences(units: Sequence[TimedUnit]) -> list[TimedUnit]:
    """Put cues of one speaker together until one ends with a sentence."""
    joined: list[TimedUnit] = []
    for unit in units:
        last = joined[-1] if joined else None
        if last and last.speaker == unit.speaker and not _SENTENCE_END.search(last.text):
            joined[-1] = replace(unit, text=f"{last.text} {unit.text}", start=last.start)
        else:
            joined.append(unit)
    return joined


class Chapters(Format):
    """Podcast chapters."""

    name = "chapters"
    keys = (CHAPTERS,)
    suffixes = JSON
    has_text = False

    def read(self, source: Source) -> list[Label]:
        """Read podcast chapters; those that no table of contents shows are left out."""
        place = source.place()
        chapters = Record(source.json, "the content", place).objects(CHAPTERS, "chapter")
        starts = []
        for i, chapter in enumerate(chapters):
            if chapter.get("toc") is not False:
                start = chapter.need("startTime")
                what = f"the startTime {shorten(start)} of chapter {i + 1}"
                starts.append(read_seconds(start, what, place, "write a number such as 94"))
        return _label(starts, place)


class Youtube(Format):
    """Chapters of a video's description."""

    name = "youtube"
    suffixes = TEXT
    rank = 5
    has_text = False

    @classmethod
    def matches(cls, source: Source) -> bool:
        """Whether lines are all a time without brackets and a title, from 0:00 on and in order."""
        times: list[float] = []
        for line in source.shown():
            start = None if line.strip()[0] in "[(" else _chapter_start(line)
            is_next = start is not None and (start > times[-1] if times else start == 0)
            if start is None or not is_next or len(times) == MOST_CHAPTERS:
                return False
            times.append(start)
        return len(times) > 1

    def read(self, source: Source) -> list[Label]:
        """Read lines of a time and a title; others are left out and counted."""
        found = [_chapter_start(line) for _, line in source.lines_with_text()]
        starts = [start for start in found if start is not None]
        if len(starts) < len(found):
            others = f"{counted(len(found) - len(starts), 'line')} without a time"
            source.note(others, "lines such as 3:45 Title", "they were not read")
        return _label(starts, source.place())


def _chapter_start(line: str) -> float | None:
    """Return the time before a chapter's title; None where a line has not both."""
    found = _CHAPTER.fullmatch(line)
    return _seconds(found.groups()[:4]) if found and found[5].strip() else None


def _label(starts: Sequence[float], place: Place) -> list[Label]:
    if not starts:
        raise mistake(place, "no chapters", "at least one", "check that the file is the right one")
    for i, (a, b) in enumerate(pairwise(starts)):
        if b <= a:
            found = f"chapter {i + 2}, which starts at {b:g} s, after one that starts at {a:g} s"
            raise mistake(place, found, "chapters in order", "sort them, or correct the time")
    return [Label(None, GOLD, Starts(starts), place)]
