"""The one value every format is turned into: a segmentation as a tuple of masses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from numbers import Integral
from typing import Literal, Self, get_args

from reffree.util.errors import mistake, shorten

Convention = Literal["end", "start", "gap"]
CONVENTIONS: tuple[str, ...] = get_args(Convention)


@dataclass(frozen=True, slots=True)
class Segmentation:
    """Segment lengths in document order; hashable, never empty, every mass at least 1.

    >>> Segmentation((3, 4)).boundaries
    (3,)
    >>> Segmentation.from_labels([0, 0, 1, 0, 0, 0, 0]) == Segmentation((3, 4))
    True
    """

    masses: tuple[int, ...]

    def __post_init__(self) -> None:
        """Refuse anything that is not a non-empty sequence of positive integers."""
        masses = self.masses
        if isinstance(masses, (str, bytes)) or not isinstance(masses, Sequence) or not masses:
            found = shorten(masses) if masses or isinstance(masses, (str, bytes)) else "no masses"
            remedy = "give one positive integer per segment, such as [3, 4]"
            raise mistake(None, found, "a non-empty list of segment lengths", remedy)
        for mass in masses:
            if isinstance(mass, bool) or not isinstance(mass, Integral) or mass < 1:
                found = f"the segment length {shorten(repr(mass))}"
                remedy = "write each segment as its number of units; empty segments do not exist"
                if all(type(each) is int and each in (0, 1) for each in masses):
                    lengths = shorten(str(list(self.from_labels(masses).masses)))
                    remedy = f"these look like 0/1 labels: write segment lengths, here {lengths}"
                raise mistake(None, found, "a positive integer", remedy)
        object.__setattr__(self, "masses", tuple(map(int, masses)))

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self.masses)

    @property
    def n_units(self) -> int:
        """Units covered."""
        return sum(self.masses)

    @property
    def boundaries(self) -> tuple[int, ...]:
        """Units before each inner boundary: the document's ends are not boundaries."""
        return tuple(accumulate(self.masses))[:-1]

    @classmethod
    def from_boundaries(cls, boundaries: Sequence[int], n_units: int) -> Self:
        """``b`` lies between units ``b - 1`` and ``b``; order and repeats do not matter."""
        inner = sorted(set(boundaries))
        if inner and not 0 < inner[0] <= inner[-1] < n_units:
            outside = inner[0] if inner[0] <= 0 else inner[-1]
            expected = f"an index from 1 to {n_units - 1} in a document of {n_units} units"
            remedy = "count the units before the boundary and leave out the document's ends"
            raise mistake(None, f"the boundary {outside}", expected, remedy)
        return cls(tuple(b - a for a, b in pairwise([0, *inner, n_units])))

    @classmethod
    def from_labels(cls, labels: Sequence[int], convention: Convention = "end") -> Self:
        """Read one 0/1 label per unit (``end``, ``start``) or per gap between units (``gap``).

        ``end``: 1 closes a segment; ``start``: 1 opens one. The end of the document closes the
        last segment and its start opens the first, marked or not.
        """
        for label in labels:
            if label not in (0, 1):
                remedy = "use segment ids or masses for anything but boundary labels"
                raise mistake(None, f"the label {shorten(label)}", "0 or 1", remedy)
        n_units = len(labels) + (convention == "gap")
        before = convention != "start"
        inner = [i for i, label in enumerate(labels, before) if label and 0 < i < n_units]
        return cls.from_boundaries(inner, n_units)

    @classmethod
    def from_segment_ids(cls, ids: Sequence[object]) -> Self:
        """One id per unit; a new segment starts wherever the id differs from the one before."""
        return cls(tuple(sum(1 for _ in run) for _, run in groupby(ids)))

    @classmethod
    def from_string(cls, text: str, n_units: int, convention: Convention | None = None) -> Self:
        """Read a 0/1 string; its length tells gaps (``n - 1``) from units (``n``).

        A string of ``n`` labels that starts with 1 reads differently as ``end`` and ``start``, and
        one of another length fits no convention: both are refused unless ``convention`` settles it.
        """
        if set(text) - {"0", "1"}:
            found = f"the string {shorten(text)!r}"
            remedy = "strip ids and separators from the boundary string"
            raise mistake(None, found, "only the characters 0 and 1", remedy)
        wanted = {"gap": n_units - 1, "end": n_units, "start": n_units}
        if convention is None:
            if len(text) not in wanted.values():
                found = f"a boundary string of {len(text)} characters for {n_units} units"
                expected = f"{n_units} characters (one per unit) or {n_units - 1} (one per gap)"
                remedy = "check that the string and the text belong to the same document"
                raise mistake(None, found, expected, remedy)
            if len(text) == n_units > 1 and text[0] == "1":
                found = (
                    f"a boundary string that starts with 1, {shorten(text)!r}, for {n_units} units"
                )
                expected = "one reading, but 1 may end a segment (convention end) or start one "
                remedy = "choose with --format NAME:convention=end or convention=start"
                raise mistake(None, found, f"{expected}(convention start)", remedy)
            convention = "gap" if len(text) == n_units - 1 else "end"
        elif len(text) != wanted[convention]:
            found = f"a boundary string of {len(text)} characters for {n_units} units"
            expected = f"{wanted[convention]} characters under the convention {convention!r}"
            remedy = "choose another convention or check that text and string belong together"
            raise mistake(None, found, expected, remedy)
        return cls.from_labels([int(character) for character in text], convention)

    def to_labels(self, convention: Convention = "end") -> tuple[int, ...]:
        """Inverse of `from_labels`; under ``end`` the last unit is 0, under ``start`` the first."""
        marked = set(self.boundaries)
        first, last = convention != "start", self.n_units + (convention == "end")
        return tuple(int(i in marked) for i in range(first, last))

    def to_segment_ids(self) -> tuple[int, ...]:
        """Number the segments from 0; one id per unit."""
        return tuple(i for i, mass in enumerate(self.masses) for _ in range(mass))

    def to_string(self, convention: Convention = "gap") -> str:
        """Write 0/1 characters; ``gap`` is nltk's form."""
        return "".join(map(str, self.to_labels(convention)))

    def keep(self, kept: Sequence[bool]) -> Self:
        """Leave out the units marked False; a segment that loses all its units disappears."""
        ids = self.to_segment_ids()
        return type(self).from_segment_ids([i for i, keep in zip(ids, kept, strict=True) if keep])
