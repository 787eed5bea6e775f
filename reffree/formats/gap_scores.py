"""Gap scores of any scorer: JSONL, ``{"id": "m1", "scores": [0.1, 0.9]}`` a line.

One number for every gap between units, higher = more of a boundary; documents in any order, every
one once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from reffree.data.corpus import Corpus
from reffree.formats import jsonl
from reffree.formats.source import Source
from reffree.formats.strict_json import listed, require_field
from reffree.util.atomic import write_file
from reffree.util.errors import InputError, Place, shorten

_KEYS = ("id", "scores")
_WHAT = "a list of numbers, one for every gap between units"


def read_scores(path: str | Path, corpus: Corpus, name: str = "scores") -> dict[str, list[float]]:
    """Read a scorer's score of every gap, by document id, in corpus order.

    ``name`` is what messages call the scorer. Where units without text were dropped, scores of
    all units' gaps are carried over to those that were kept.
    """
    source = Source(path)
    scores: dict[str, Sequence[float]] = {}
    places: dict[str, Place] = {}
    for table, place in jsonl.tables(source):
        place = replace(place, system=name)
        values = require_field(table, "scores", place, what=_WHAT)
        for key in table:
            if key not in _KEYS:
                raise InputError(
                    f"the unknown key {shorten(key)!r}",
                    expected=f"only {listed(_KEYS)}",
                    remedy="remove it",
                    place=place,
                )
        scores[jsonl.record_id(table, place, places)] = cast(Any, values)
    found = corpus.align_scores(name, scores, places, source.place())
    return {document.id: each for document, each in zip(corpus, found, strict=True)}


def write_scores(path: str | Path, scores: Mapping[str, Sequence[float]]) -> None:
    """Write a scorer's score of every gap by document id; ``-`` is standard output."""
    target = Path(path)
    lines = (
        jsonl.dumps({"id": id, "scores": [float(each) for each in values]}, Place(document=id))
        + "\n"
        for id, values in scores.items()
    )
    write_file(target, lines)
