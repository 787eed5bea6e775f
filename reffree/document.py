"""One document: its units, its gold and the segmentations proposed for it, checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reffree.errors import InputError, Place, counted, shorten
from reffree.limits import check_limit
from reffree.segmentation import Segmentation
from reffree.visible import visible

GOLD = "gold"


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
        gold: Segmentation | Sequence[int] | None = None,
        golds: Mapping[str, Segmentation | Sequence[int]] | None = None,
        systems: Mapping[str, Segmentation | Sequence[int]] | None = None,
        speakers: Sequence[str] | None = None,
        meta: Mapping[str, Any] | None = None,
        place: Place | None = None,
    ) -> Document:
        """Check everything, drop units without text and reindex the segmentations to match."""
        place = place or Place()
        if not is_name(id):
            raise InputError(
                f"the document id {shorten(repr(id))}",
                expected="a non-empty string without control characters",
                remedy='give every document an "id" of its own, in quotes',
                place=place,
            )
        place = replace(place, document=id)
        units = _check_units(units, place)
        kept = tuple(bool(unit.strip()) for unit in units)
        if not any(kept):
            raise InputError(
                f"{counted(len(units), 'unit')} without any text" if units else "no units",
                expected="at least one unit with text",
                remedy="remove the document or restore its text",
                place=place,
            )
        if speakers is not None:
            speakers = _check_speakers(speakers, len(units), place)
        document = cls(
            id=id,
            units=tuple(u for u, keep in zip(units, kept, strict=True) if keep),
            speakers=None
            if speakers is None
            else tuple(s for s, keep in zip(speakers, kept, strict=True) if keep),
            meta=dict(meta or {}),
            kept=kept,
            place=place,
        )
        checked_gold = None if gold is None else document.align(gold, replace(place, system=GOLD))
        checked = {
            check_system_name(name, place): document.align(value, replace(place, system=name))
            for name, value in (systems or {}).items()
        }
        checked_golds = {
            check_system_name(name, place): document.align(value, replace(place, system=name))
            for name, value in (golds or {}).items()
        }
        # A system called "gold" is the gold segmentation under another key.
        named = checked.pop(GOLD, checked_gold)
        if checked_gold is not None and named != checked_gold:
            raise InputError(
                f"a gold segmentation and another system called {GOLD!r}",
                expected="one gold segmentation",
                remedy="rename the system",
                place=place,
            )
        return replace(document, gold=named, golds=checked_golds, systems=checked)

    def __post_init__(self) -> None:
        """Without word of what was dropped, every unit was kept."""
        if not self.kept:
            object.__setattr__(self, "kept", (True,) * len(self.units))

    @property
    def n_dropped(self) -> int:
        """Units that take no part: without text, or left out by an option."""
        return len(self.kept) - len(self.units)

    @property
    def references(self) -> tuple[Segmentation, ...]:
        """What gold-based metrics compare with: every annotator's gold, else the one gold."""
        if self.golds:
            return tuple(self.golds.values())
        return () if self.gold is None else (self.gold,)

    def align(
        self, value: Segmentation | Sequence[int], place: Place | None = None
    ) -> Segmentation:
        """Check masses over the units as given and carry them over to the units that were kept.

        Masses that cover the kept units already, as of a segmenter that saw only those, stay.
        """
        place = replace(place or self.place, document=self.id)
        try:
            segmentation = value if isinstance(value, Segmentation) else Segmentation(_tuple(value))
        except InputError as error:
            raise InputError(
                error.found, expected=error.expected, remedy=error.remedy, place=place
            ) from None
        if segmentation.n_units == len(self.units):
            return segmentation
        if segmentation.n_units == len(self.kept):
            return segmentation.keep(self.kept)
        raise InputError(
            f"a segmentation that covers {counted(segmentation.n_units, 'unit')}",
            expected=f"{len(self.kept)}, the number of units in the document",
            remedy="run the segmenter again on this version of the corpus",
            place=place,
        )


def _tuple(value: object) -> tuple[int, ...]:
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return tuple(value)
    raise InputError(
        f"the segmentation {shorten(value)}",
        expected="a list of segment lengths",
        remedy="write masses such as [3, 4], or convert the file with reffree convert",
    )


def _check_units(units: object, place: Place) -> tuple[str, ...]:
    if isinstance(units, (str, bytes)) or not isinstance(units, Sequence):
        raise InputError(
            f"{type(units).__name__} as units",
            expected="a list of strings",
            remedy="split the text into sentences or utterances first",
            place=place,
        )
    for i, unit in enumerate(units):
        if not isinstance(unit, str):
            raise InputError(
                f"unit {i + 1} of {len(units)} is {shorten(unit)} ({type(unit).__name__})",
                expected="a string",
                remedy="write the unit as text in quotes",
                place=place,
            )
        if not unit.isascii() and any("\ud800" <= character <= "\udfff" for character in unit):
            raise InputError(
                f"half a character in unit {i + 1} of {len(units)}",
                expected="text that UTF-8 can hold",
                remedy="replace the lone surrogate",
                place=place,
            )
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
    raise InputError(
        found,
        expected=f"{n_units} strings, one for every unit",
        remedy="repeat the speaker for every unit or leave the field out",
        place=place,
    )


def check_system_name(name: object, place: Place) -> str:
    """Refuse what cannot name a system."""
    if isinstance(name, str) and is_name(name):
        return name
    raise InputError(
        f"the system name {shorten(repr(name))}",
        expected="a non-empty string without control characters",
        remedy="rename the system",
        place=place,
    )


def is_name(value: object) -> bool:
    """Whether a value can stand in a table: text, and nothing that steers a terminal."""
    return isinstance(value, str) and bool(value.strip()) and visible(value) == value
