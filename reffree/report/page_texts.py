"""Documents of a page: as many as it can carry, from every corpus, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from reffree.errors import InputError, Place, counted
from reffree.studies.result import DocumentText

MAX_CHARACTERS = 600_000
MAX_UNITS = 2_000


def page_texts(texts: Sequence[DocumentText]) -> tuple[list[dict[str, Any]], list[str]]:
    """Take documents from each corpus in turn while there is room; say what is not shown."""
    by_corpus: dict[str, list[DocumentText]] = {}
    for text in texts:
        _check(text)
        by_corpus.setdefault(text.corpus, []).append(text)
    kept: set[int] = set()
    room = MAX_CHARACTERS
    for text in (each for turn in zip_longest(*by_corpus.values()) for each in turn if each):
        room -= sum(map(len, text.units[:MAX_UNITS]))
        if room < 0:
            break
        kept.add(id(text))
    shown = [text for text in texts if id(text) in kept]
    notes = []
    if len(shown) < len(texts):
        notes.append(f"Shown: {len(shown):,} of {counted(len(texts), 'document')}.")
    notes += [
        f"{text.id}: the first {MAX_UNITS:,} of {len(text.units):,} units are shown."
        for text in shown
        if len(text.units) > MAX_UNITS
    ]
    return [_packed(text) for text in shown], notes


def _packed(text: DocumentText) -> dict[str, Any]:
    return {
        "corpus": text.corpus,
        "id": text.id,
        "length": len(text.units),
        "units": text.units[:MAX_UNITS],
        "systems": text.systems,
    }


def _check(text: DocumentText) -> None:
    for system, masses in text.systems.items():
        if sum(masses) != len(text.units) or min(masses, default=1) < 1:
            raise InputError(
                f"masses that sum to {sum(masses):,}",
                expected=f"positive masses that sum to {counted(len(text.units), 'unit')}",
                remedy="run the study again",
                place=Place(document=text.id, system=system),
            )
