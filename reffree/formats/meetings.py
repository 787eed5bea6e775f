"""Meetings of the AMI and ICSI corpora with their topics, as published in NXT's XML.

A folder with, anywhere below it, for every meeting ``M.topic.xml``, ``M.SPEAKER.words.xml`` and
``M.SPEAKER.segments.xml`` (AMI) or ``M.SPEAKER.segs.xml`` (ICSI). Elements point to others by
``<nite:child href="M.A.words.xml#id(M.A.words0)..id(M.A.words9)"/>``, from one to another in the
order of the file. AMI's topics point to words, ICSI's to segments.

Units are turns: what a speaker says until another does, or the topic changes (``units=segment``:
the transcribers' segments). Segments follow one another by their start; a boundary lies where the
topic changes between two units (Coen, appendix D), and what is in no topic is a topic of its own.
Topics may have topics in them: ``topics=all`` counts those, by default they are part of the topic
around them. A unit's topic is that of its first word that has one. Meetings without a topic file
are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal
from xml.etree import ElementTree
from xml.parsers import expat

from reffree.data.corpus import Document
from reffree.data.segmentation import Segmentation
from reffree.formats.format import Format
from reffree.formats.labels import TimedUnit, timed_document
from reffree.formats.source import Source, checked_name
from reffree.formats.strict_json import read_seconds
from reffree.util.errors import Place, mistake, shorten

TOPICS = ".topic.xml"
_WORDS = ".words.xml"
_SEGMENTS = (".segments.xml", ".segs.xml")
_NITE = "{http://nite.sourceforge.net/}"
_CHILD, _ID = f"{_NITE}child", f"{_NITE}id"
_SAME_VERSION = "check that the files are of the same version of the corpus"
_HREF = re.compile(r"([^#]+)#id\(([^)]+)\)(?:\.\.id\(([^)]+)\))?")


@dataclass(frozen=True)
class Meetings(Format):
    """AMI and ICSI."""

    units: Literal["turn", "segment"] = "turn"
    topics: Literal["top", "all"] = "top"
    name = "nxt"
    folders = (".xml",)
    rank = 0

    @classmethod
    def matches_folder(cls, folder: Source) -> bool:
        """Whether a file has topics."""
        return any(file.path.name.endswith(TOPICS) for file in folder.files.values())

    def read(self, source: Source) -> list[Document]:
        """Read every meeting of a folder that has a topic file."""
        if not source.is_folder:
            expected = "a folder, since a meeting of the format nxt has many files"
            raise mistake(source.place(), "a file", expected, "give the folder that has them all")
        files = _Files(source)
        return [
            self._meeting(checked_name(name.removesuffix(TOPICS), source.place()), files)
            for name in files.files
            if name.endswith(TOPICS)
        ]

    def _meeting(self, id: str, files: _Files) -> Document:
        name = f"{id}{TOPICS}"
        place = Place(files.files[name].name, document=id)
        root = files.elements(name)[0]
        topics = root.iter("topic") if self.topics == "all" else root.findall("topic")
        topic_of: dict[str, int] = {}
        for number, topic in enumerate(topics):
            children = topic.iter(_CHILD) if self.topics == "top" else topic.findall(_CHILD)
            for child in children:
                for pointed in files.pointed(child, place):
                    topic_of[pointed.get(_ID, "")] = number
        segments = list(_segments(id, files, topic_of))
        segments.sort(key=lambda each: (each.start, each.speaker))
        if not segments:
            found = "a topic file without segments"
            expected = f"files such as {id}.A{_SEGMENTS[0]} and {id}.A{_WORDS} in the folder"
            raise mistake(place, found, expected, "unpack the whole corpus into it")
        units = list(_turns(segments)) if self.units == "turn" else segments
        gold = Segmentation.from_segment_ids([unit.topic for unit in units])
        return timed_document(units, place, gold)


class _Files:
    """The XML files of a folder by their names, each read once."""

    def __init__(self, source: Source) -> None:
        self.files = {file.path.name: file for file in source.files.values()}
        self._elements: dict[str, list[ElementTree.Element]] = {}
        self._index: dict[str, dict[str, int]] = {}

    def elements(self, name: str) -> list[ElementTree.Element]:
        """All elements of a file in its order, the root first."""
        if name not in self._elements:
            found = list(_read_xml(self.files[name]).iter())
            self._elements[name] = found
            self._index[name] = {id: i for i, each in enumerate(found) if (id := each.get(_ID))}
        return self._elements[name]

    def pointed(self, child: ElementTree.Element, place: Place) -> list[ElementTree.Element]:
        """Follow a pointer to elements of another file."""
        href = child.get("href") or ""
        match = _HREF.fullmatch(href.strip())
        if match is None or match[1] not in self.files:
            found = f"the pointer {shorten(href)!r}"
            expected = "a file of the folder and an id in it"
            raise mistake(place, found, expected, "unpack the whole corpus into the folder")
        name, first, last = match[1], match[2], match[3] or match[2]
        elements, index = self.elements(name), self._index[name]
        for id in (first, last):
            if id not in index:
                found = f"a pointer to {shorten(id)!r}, which {name} does not have"
                raise mistake(place, found, "an id of that file", _SAME_VERSION)
        return elements[index[first] : index[last] + 1]


def _read_xml(file: Source) -> ElementTree.Element:
    """Read XML in the encoding it names; declarations of its own, which can grow, are refused."""
    content = file.content()
    expected, remedy = "files as NXT writes them", "unpack the corpus again"
    if any(part in content for part in (b"<!DOCTYPE", b"<!ENTITY", b"\0")):
        found = "XML with declarations of its own (<!DOCTYPE, <!ENTITY), or in UTF-16"
        raise mistake(file.place(), found, expected, remedy)
    try:
        return ElementTree.fromstring(content)
    except (ElementTree.ParseError, expat.ExpatError, LookupError, ValueError) as error:
        found = f"a file that is not XML ({shorten(str(error))})"
        raise mistake(file.place(), found, "XML as NXT has it", remedy) from None


def _segments(id: str, files: _Files, topic_of: dict[str, int]) -> Iterator[TimedUnit]:
    for name, file in files.files.items():
        suffix = next((each for each in _SEGMENTS if name.endswith(each)), None)
        if suffix is None or not name.startswith(f"{id}."):
            continue
        place = Place(file.name, document=id)
        channel = name.removeprefix(f"{id}.").removesuffix(suffix)
        for element in files.elements(name):
            if element.tag != "segment":
                continue
            pointed = [w for child in element.findall(_CHILD) for w in files.pointed(child, place)]
            words = [each for each in pointed if each.tag == "w" and (each.text or "").strip()]
            if words:
                ids = [each.get(_ID, "") for each in (element, *words)]
                topic = next((topic_of[id] for id in ids if id in topic_of), -1)
                times: list[float] = []
                for which, word in (("start", words[0]), ("end", words[-1])):
                    text = element.get(f"{which}time") or element.get(f"transcriber_{which}")
                    text = text or word.get(f"{which}time") or "".join(map(str, times))
                    what = f"the time {shorten(text)!r} of a segment"
                    times.append(read_seconds(text, what, place, _SAME_VERSION))
                speaker = element.get("participant") or channel
                yield TimedUnit(_text(words), times[0], times[1], speaker, topic)


def _text(words: Sequence[ElementTree.Element]) -> str:
    """Put words together; what has no letter or begins with an apostrophe follows immediately."""
    text = ""
    for word in words:
        said = (word.text or "").strip()
        is_joined = said.startswith("'") or not any(map(str.isalnum, said))
        text += said if is_joined or not text else f" {said}"
    return text


def _turns(segments: Sequence[TimedUnit]) -> Iterator[TimedUnit]:
    for _, run in groupby(segments, key=lambda segment: (segment.speaker, segment.topic)):
        first, *others = run
        text = " ".join([first.text, *(other.text for other in others)])
        yield replace(first, text=text, end=max([first.end, *(other.end for other in others)]))
