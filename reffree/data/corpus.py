"""Documents, their gold and their systems' segmentations, checked once and then trusted.

`Document.build` checks a document and `Corpus` that documents go together. What is made from a
corpus (`Corpus.of_checked`, `Corpus.with_system`, …) is not checked again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, pairwise
from numbers import Real
from typing import Any

from reffree.data.segmentation import Segmentation
from reffree.util.bounds import check_limit
from reffree.util.errors import InputError, Place, counted, located, mistake, shorten, visible

GOLD = "gold"
TIMES = "times"
"""Key of a document's meta: [start, end] of every unit, in seconds."""

Segments = Segmentation | Sequence[int]
"""A segmentation, or its masses."""


@dataclass(frozen=True, slots=True)
class Document:
    """Units of text with the segmentations proposed for them; make it with `Document.build`."""

    id: str
    units: tuple[str, ...]
    gold: Segmentation | None = None
    golds: Mapping[str, Segmentation] = field(default_factory=dict)  # by annotator
    systems: Mapping[str, Segmentation] = field(default_factory=dict)
    speakers: tuple[str, ...] | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    kept: tuple[bool, ...] = ()
    n_left_out: int = field(default=0, compare=False)  # of the units not kept, those with text
    place: Place = field(default_factory=Place, compare=False)

    @classmethod
    def build(
        cls,
        id: str,
        units: Sequence[str],
        *,
        gold: Segments | None = None,
        golds: Mapping[str, Segments] | None = None,
        systems: Mapping[str, Segments] | None = None,
        speakers: Sequence[str] | None = None,
        meta: Mapping[str, Any] | None = None,
        place: Place | None = None,
    ) -> Document:
        """Check everything, drop units without text and reindex the segmentations to match."""
        place = place or Place()
        if not is_name(id):
            found = f"the document id {shorten(repr(id))}"
            remedy = 'give every document an "id" of its own, in quotes'
            raise mistake(place, found, "a non-empty string without control characters", remedy)
        place = replace(place, document=id)
        units = _check_units(units, place)
        kept = tuple(bool(unit.strip()) for unit in units)
        if not any(kept):
            found = f"{counted(len(units), 'unit')} without any text" if units else "no units"
            expected = "at least one unit with text"
            raise mistake(place, found, expected, "remove the document or restore its text")
        if speakers is not None:
            speakers = tuple(compress(_check_speakers(speakers, len(units), place), kept))
        texts = tuple(compress(units, kept))
        document = cls(id, texts, speakers=speakers, meta=dict(meta or {}), kept=kept, place=place)
        own = None if gold is None else document.align(gold, replace(place, system=GOLD))
        checked, checked_golds = dict[str, Segmentation](), dict[str, Segmentation]()
        for given, aligned in ((systems, checked), (golds, checked_golds)):
            for name, value in (given or {}).items():
                _check_system_name(name, place)
                aligned[name] = document.align(value, replace(place, system=name))
        # A system called "gold" is the gold segmentation under another key.
        named = checked.pop(GOLD, own)
        if own is not None and named != own:
            found = f"a gold segmentation and another system called {GOLD!r}"
            raise mistake(place, found, "one gold segmentation", "rename the system")
        return replace(document, gold=named, golds=checked_golds, systems=checked)

    def __post_init__(self) -> None:
        """Without word of what was dropped, every unit was kept."""
        object.__setattr__(self, "kept", self.kept or (True,) * len(self.units))

    @property
    def n_dropped(self) -> int:
        """Units that take no part: without text, or left out by an option."""
        return len(self.kept) - len(self.units)

    @property
    def segmentations(self) -> dict[str, Segmentation]:
        """Gold, where there is one, and the systems, by name."""
        gold = {} if self.gold is None else {GOLD: self.gold}
        return {**gold, **self.systems}

    @property
    def references(self) -> tuple[Segmentation, ...]:
        """What gold-based metrics compare with: every annotator's gold, else the one gold."""
        if self.golds:
            return tuple(self.golds.values())
        return () if self.gold is None else (self.gold,)

    @property
    def times(self) -> tuple[tuple[float, float], ...] | None:
        """Start and end of every unit in seconds, where ``meta["times"]`` has them for all."""
        given = self.meta.get(TIMES)
        if not isinstance(given, Sequence) or isinstance(given, str):
            return None
        if len(given) == len(self.kept):
            given = list(compress(given, self.kept))
        spans = [each for each in given if isinstance(each, Sequence) and len(each) == 2]
        numbers = [each for span in spans for each in span]
        is_known = len(given) == len(spans) == len(self.units) and all(
            isinstance(each, (int, float)) and not isinstance(each, bool) for each in numbers
        )
        if not is_known or not all(0 <= start <= end < 1e9 for start, end in spans):
            return None
        return tuple((float(start), float(end)) for start, end in spans)

    @property
    def clocks(self) -> tuple[str, ...]:
        """Where every unit starts, as people read it; nothing where the times are not known."""
        return tuple(clock(start) for start, _ in self.times or ())

    def align_scores(self, values: Sequence[float], place: Place | None = None) -> list[float]:
        """Check a score per gap of the units as given, and carry them over to the units kept.

        Where units were dropped, the gap around them has the highest of their gaps' scores.
        """
        place = replace(place or self.place, document=self.id)
        if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
            found = f"{shorten(values)} as scores"
            expected = "a list of numbers, one for every gap between units"
            raise mistake(place, found, expected, "write them as [0.1, 0.9]")
        for i, value in enumerate(values):
            if isinstance(value, bool) or not (isinstance(value, Real) and math.isfinite(value)):
                found = f"score {i + 1} of {len(values)}, {shorten(value)}"
                remedy = "score every gap, with a low number where there can be no boundary"
                raise mistake(place, found, "a finite number", remedy)
        if len(values) == len(self.units) - 1:
            return [float(value) for value in values]
        if len(values) == len(self.kept) - 1:
            return keep_scores(values, self.kept)
        units = counted(len(self.kept), "unit")
        expected = f"{len(self.kept) - 1}, one for every gap between the document's {units}"
        remedy = "score this version of the corpus again"
        remedy = "leave out the document's end" if len(values) == len(self.kept) else remedy
        raise mistake(place, counted(len(values), "score"), expected, remedy)

    def align(self, value: Segments, place: Place | None = None) -> Segmentation:
        """Check masses over the units as given and carry them over to the units that were kept.

        Masses that cover the kept units already, as of a segmenter that saw only those, stay.
        """
        place = replace(place or self.place, document=self.id)
        if not isinstance(value, Sequence | Segmentation) or isinstance(value, (str, bytes)):
            remedy = "write masses such as [3, 4], or convert the file with reffree convert"
            found = f"the segmentation {shorten(value)}"
            raise mistake(place, found, "a list of segment lengths", remedy)
        with located(place):
            segmentation = value if isinstance(value, Segmentation) else Segmentation(tuple(value))
        if segmentation.n_units == len(self.units):
            return segmentation
        if segmentation.n_units == len(self.kept):
            return segmentation.keep(self.kept)
        found = f"a segmentation that covers {counted(segmentation.n_units, 'unit')}"
        expected = f"{len(self.kept)}, the number of units in the document"
        remedy = "run the segmenter again on this version of the corpus"
        raise mistake(place, found, expected, remedy)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents in file order, every system present in every one of them."""

    documents: tuple[Document, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse no documents, repeated ids and systems that miss documents."""
        if not self.documents:
            raise mistake(None, "no documents", "at least one", "check that the file is not empty")
        first: dict[str, Place] = {}
        for document in self.documents:
            refuse_repeat(document, first)
        for name in dict.fromkeys(name for doc in self.documents for name in doc.systems):
            if missing := [doc for doc in self.documents if name not in doc.systems]:
                place = replace(missing[0].place, system=name)
                raise lacking_system(len(missing), len(self.documents), place)

    @classmethod
    def of_checked(cls, documents: Iterable[Document], notes: tuple[str, ...] = ()) -> Corpus:
        """Make a corpus of documents that are known to go together; nothing is checked again."""
        corpus = object.__new__(cls)
        object.__setattr__(corpus, "documents", tuple(documents))
        object.__setattr__(corpus, "notes", notes)
        return corpus

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.documents)

    def __iter__(self) -> Iterator[Document]:
        """Go through the documents in order."""
        return iter(self.documents)

    def __getitem__(self, index: int) -> Document:
        """Return the document at a position."""
        return self.documents[index]

    @property
    def n_units(self) -> int:
        """Units kept over all documents."""
        return sum(len(document.units) for document in self.documents)

    @property
    def n_dropped(self) -> int:
        """Units that take no part: without text, or left out by an option."""
        return sum(document.n_dropped for document in self.documents)

    @property
    def n_without_text(self) -> int:
        """Units that were dropped because they have no text."""
        return self.n_dropped - sum(document.n_left_out for document in self.documents)

    @property
    def has_gold(self) -> bool:
        """Whether every document has a gold segmentation."""
        return all(document.gold is not None for document in self.documents)

    @property
    def hypotheses(self) -> dict[str, tuple[Segmentation, ...]]:
        """System name → one segmentation per document; gold is the first where it is complete."""
        table: dict[str, tuple[Segmentation, ...]] = {}
        if self.has_gold:
            table[GOLD] = tuple(doc.gold for doc in self.documents if doc.gold is not None)
        for name in self.documents[0].systems:
            table[name] = tuple(document.systems[name] for document in self.documents)
        return table

    def check_new_system(
        self, name: str, others: Iterable[str] = (), place: Place | None = None
    ) -> None:
        """Refuse what names no system, or one that is here or among the others already."""
        place = replace(place or Place(), system=name)
        _check_system_name(name, place)
        known = {*self.documents[0].systems, *others}
        if name in known or (name == GOLD and any(document.gold for document in self.documents)):
            remedy = "give the other segmentation another name"
            raise mistake(place, "the system a second time", "every system name once", remedy)

    def with_system(
        self,
        name: str,
        segmentations: Mapping[str, Segments],
        places: Mapping[str, Place] | None = None,
        place: Place | None = None,
    ) -> Corpus:
        """Add a system from document id → segmentation; every document once, none unknown.

        Under the name ``gold`` it becomes the documents' gold.
        """
        self.check_new_system(name, place=place)
        at = self._place_all(segmentations, name, places, place, "segmentation")
        documents = []
        for document in self.documents:
            aligned = document.align(segmentations[document.id], at[document.id])
            added: Any = aligned if name == GOLD else {**document.systems, name: aligned}
            documents.append(replace(document, **{GOLD if name == GOLD else "systems": added}))
        return Corpus.of_checked(documents, self.notes)

    def align_scores(
        self,
        name: str,
        scores: Mapping[str, Sequence[float]] | Sequence[Sequence[float]],
        places: Mapping[str, Place] | None = None,
        place: Place | None = None,
    ) -> tuple[list[float], ...]:
        """Check a scorer's gap scores, by document id or in corpus order: every document once."""
        place = replace(place or Place(), system=name)
        _check_system_name(name, place)
        if not isinstance(scores, Mapping):
            if len(scores) != len(self):
                found = f"scores of {counted(len(scores), 'document')}"
                expected = f"{len(self)}, a list for every document of the corpus"
                remedy = "give them in corpus order, or by document id"
                raise mistake(place, found, expected, remedy)
            scores = {each.id: values for each, values in zip(self, scores, strict=True)}
        at = self._place_all(scores, name, places, place, "list of scores")
        return tuple(each.align_scores(scores[each.id], at[each.id]) for each in self)

    def _place_all(
        self,
        given: Mapping[str, object],
        name: str,
        places: Mapping[str, Place] | None,
        place: Place | None,
        what: str,
    ) -> dict[str, Place]:
        """Refuse ids that the corpus does not have, and documents without; return their places."""
        place, places = place or Place(), places or {}
        known = {each.id: replace(places.get(each.id, place), system=name) for each in self}
        for id in given:
            if id not in known:
                at = replace(places.get(id, place), system=name, document=id)
                found = "a document that the corpus does not have"
                expected = f"one of its {counted(len(known), 'id')}, such as {self[0].id!r}"
                raise mistake(at, found, expected, "check that it belongs to this corpus")
        for id in known:
            if id not in given:
                at = replace(place, system=name, document=id)
                raise lacking_system(len(known) - len(given), len(known), at, what)
        return known

    def with_systems(self, systems: Mapping[str, Sequence[Segmentation]]) -> Corpus:
        """Add systems of names that are free, a segmentation for every document in order."""
        documents = (
            replace(each, systems={**each.systems, **{name: s[d] for name, s in systems.items()}})
            for d, each in enumerate(self.documents)
        )
        return Corpus.of_checked(documents, self.notes)

    def only_systems(self, names: Iterable[str]) -> Corpus:
        """Return the corpus with these of its systems; gold stays."""
        kept = set(names)
        documents = [
            replace(d, systems={name: s for name, s in d.systems.items() if name in kept})
            for d in self.documents
        ]
        return Corpus.of_checked(documents, self.notes)

    @classmethod
    def merge(cls, corpora: Iterable[Corpus]) -> Corpus:
        """Put the documents of several corpora behind one another."""
        parts = list(corpora)
        documents = tuple(document for part in parts for document in part.documents)
        notes = tuple(note for part in parts for note in part.notes)
        has_repeats = len({document.id for document in documents}) < len(documents)
        if has_repeats or len({frozenset(part[0].systems) for part in parts}) != 1:
            return cls(documents, notes)  # which says what is wrong
        return cls.of_checked(documents, notes)


def keep_scores(scores: Sequence[float], kept: Sequence[bool]) -> list[float]:
    """Carry scores of all gaps over to those between units that are kept, the highest of several.

    >>> keep_scores([0.1, 0.9, 0.2], [True, False, True, True])
    [0.9, 0.2]
    """
    places = [i for i, keep in enumerate(kept) if keep]
    return [float(max(scores[a:b])) for a, b in pairwise(places)]


def refuse_repeat(document: Document, first: dict[str, Place]) -> None:
    """Refuse a document whose id is in ``first``; else its place is noted there."""
    if document.id in first:
        earlier = replace(first[document.id], document=None)
        where = f", first at {earlier}" if str(earlier) else ""
        remedy = "rename or remove one of the two"
        raise mistake(document.place, f"the id a second time{where}", "every document once", remedy)
    first[document.id] = document.place


def lacking_system(
    missing: int, documents: int, place: Place, what: str = "segmentation"
) -> InputError:
    """Say that some documents lack a system, the first of them at ``place``."""
    found = f"no {what} ({missing} of {documents} documents lack it)"
    remedy = "add the missing ones, so that systems are compared on the same text"
    return mistake(place, found, "one for every document of the corpus", remedy)


def clock(seconds: float) -> str:
    """Write a time as people read it.

    >>> clock(0.4), clock(75), clock(3_725.9)
    ('0:00', '1:15', '1:02:05')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _check_units(units: object, place: Place) -> tuple[str, ...]:
    if isinstance(units, (str, bytes)) or not isinstance(units, Sequence):
        remedy = "split the text into sentences or utterances first"
        raise mistake(place, f"{type(units).__name__} as units", "a list of strings", remedy)
    for i, unit in enumerate(units):
        if not isinstance(unit, str):
            found = f"unit {i + 1} of {len(units)} is {shorten(unit)} ({type(unit).__name__})"
            raise mistake(place, found, "a string", "write the unit as text in quotes")
        if not unit.isascii() and any("\ud800" <= character <= "\udfff" for character in unit):
            found = f"half a character in unit {i + 1} of {len(units)}"
            raise mistake(place, found, "text that UTF-8 can hold", "replace the lone surrogate")
    longest = max(map(len, units), default=0)
    check_limit("unit_characters", longest, f"a unit of {longest:,} characters", place)
    return tuple(units)


def _check_speakers(speakers: object, n_units: int, place: Place) -> tuple[str, ...]:
    if isinstance(speakers, (str, bytes)) or not isinstance(speakers, Sequence):
        found = f"{type(speakers).__name__} as speakers"
    elif len(speakers) != n_units:
        found = counted(len(speakers), "speaker")
    elif not all(isinstance(speaker, str) for speaker in speakers):
        found = "a speaker that is not a string"
    else:
        return tuple(speakers)
    remedy = "repeat the speaker for every unit or leave the field out"
    raise mistake(place, found, f"{n_units} strings, one for every unit", remedy)


def _check_system_name(name: object, place: Place) -> None:
    if not is_name(name):
        found = f"the system name {shorten(repr(name))}"
        expected = "a non-empty string without control characters"
        raise mistake(place, found, expected, "rename the system")


def is_name(value: object) -> bool:
    """Whether a value can stand in a table: text, and nothing that steers a terminal."""
    return isinstance(value, str) and bool(value.strip()) and visible(value) == value
