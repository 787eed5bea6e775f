"""Votes on pairs from a table: a row a pair, a column a judge."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reffree.formats.source import Source
from reffree.studies.judged_pairs.contrasts import VERDICTS, Contrast, Verdict
from reffree.util.arrays import Integers
from reffree.util.errors import InputError, Place, UnknownNameError, listed, shorten

BALLOT = ("pair", "corpus", "document", "kind", "first", "second", "signature")
"""Columns that are no judge's: those that a ballot is written with."""

WORDS: dict[str, Verdict | None] = {
    **{verdict: verdict for verdict in VERDICTS},
    "1": "first",
    "2": "second",
    "=": "equal",
    "": None,
}


@dataclass(frozen=True, slots=True)
class Votes:
    """What judges said, by pair; a judge may have left one out."""

    judges: tuple[str, ...]
    by_pair: dict[str, tuple[Verdict, ...]]

    def majority(self, pair: str) -> Verdict | None:
        """Return what most judges said; None where no verdict has more votes than the others.

        >>> Votes(("a", "b", "c"), {"x": ("first", "equal", "first")}).majority("x")
        'first'
        """
        ranked = Counter(self.by_pair[pair]).most_common(2)
        if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
            return None
        return ranked[0][0]

    def counts(self, pairs: Sequence[str]) -> Integers:
        """Votes for each verdict, (pairs, verdicts)."""
        rows = [[self.by_pair[pair].count(each) for each in VERDICTS] for pair in pairs]
        return np.array(rows, dtype=np.int64).reshape(-1, len(VERDICTS))


@dataclass(frozen=True, slots=True)
class Ballot:
    """A table of votes as it was read, before it is known which pairs there are."""

    judges: tuple[str, ...]
    rows: list[tuple[Place, dict[str, str]]]

    @classmethod
    def read(cls, path: str | Path) -> Ballot:
        """Read a CSV or TSV file: the column ``pair``, and one for each judge.

        Columns that a ballot is written with may stay.
        """
        text = [line for _, line in Source(path).lines()]
        table = list(csv.reader(text, delimiter="\t" if text and "\t" in text[0] else ","))
        header = [name.strip() for name in table[0]] if table else []
        judges = [name for name in header if name not in BALLOT]
        if "pair" not in header or not judges or len(set(header)) < len(header):
            raise InputError(
                f"the columns {listed(map(repr, header))}" if header else "no table",
                expected="a column 'pair', and a column for each judge, each name once",
                remedy="write the ballot with -f csv, and add a column of votes for each judge",
                place=Place(file=str(path)),
            )
        rows = []
        for number, cells in enumerate(table[1:], 2):
            place = Place(file=str(path), line=number)
            if len(cells) != len(header) and any(cells):
                raise InputError(
                    f"{len(cells)} cells",
                    expected=f"{len(header)}, as in the header",
                    remedy="fill the row up with commas, or quote cells that have some",
                    place=place,
                )
            if any(cells):
                rows.append((place, dict(zip(header, map(str.strip, cells), strict=True))))
        return cls(tuple(judges), rows)

    def votes(self, pairs: Mapping[str, Contrast]) -> Votes:
        """Hold every row against its pair.

        A vote is ``first``, ``second`` or ``equal`` (1, 2 and = for short), or nothing. Where the
        columns ``first`` and ``second`` stayed, they must be what the pair is now.
        """
        by_pair: dict[str, tuple[Verdict, ...]] = {}
        for place, row in self.rows:
            _check_pair(row, pairs, by_pair, place)
            given = [_vote(judge, row[judge], place) for judge in self.judges]
            by_pair[row["pair"]] = tuple(vote for vote in given if vote is not None)
        return Votes(self.judges, by_pair)


def _check_pair(
    row: Mapping[str, str], pairs: Mapping[str, Contrast], votes: Mapping[str, object], at: Place
) -> None:
    """Refuse votes on pairs that are not there, or not the same ones."""
    name = row["pair"]
    if name not in pairs:
        raise InputError(
            f"the pair {shorten(name)!r}",
            expected="a pair that the corpus has with these settings",
            remedy=str(UnknownNameError("pair", name, list(pairs)[:5])),
            place=at,
        )
    if name in votes:
        raise InputError(
            f"the pair {shorten(name)!r} a second time",
            expected="a row for each pair",
            remedy="put the votes of several judges into columns",
            place=at,
        )
    for side in ("first", "second"):
        masses = spelt(getattr(pairs[name], side).masses)
        if row.get(side, masses) != masses:
            raise InputError(
                f"{side} of {name} as {shorten(row[side])!r}",
                expected=f"{shorten(masses)!r}, as with these settings",
                remedy="give the same corpus, metrics and seed that made the ballot",
                place=at,
            )


def _vote(judge: str, text: str, at: Place) -> Verdict | None:
    if text.casefold() not in WORDS:
        raise InputError(
            f"the vote {shorten(text)!r} of {shorten(judge)!r}",
            expected="first, second or equal, or nothing",
            remedy="write which of the two is better",
            place=at,
        )
    return WORDS[text.casefold()]


def spelt(masses: Sequence[int]) -> str:
    """Write masses into a cell.

    >>> spelt((3, 4))
    '3 4'
    """
    return " ".join(map(str, masses))
