"""Units with a twin in another segment of their document: what no segmentation can tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from reffree.arrays import Booleans, Floats, Integers
from reffree.studies.diagnosis.flat_index import FLOAT32_ERROR, flat_index

if TYPE_CHECKING:
    import faiss


THRESHOLD = 0.95
"""Cosine of a near twin. Sentence encoders put the same words with other punctuation or one other
function word above it, and paraphrases, which may well belong to one topic, below."""

TIE = 1e-9
"""Cosines this little below the threshold have reached it: the rest is rounding."""

QUERIES_AT_ONCE = 256
"""Units searched at a time, so that no table of all pairs is ever held."""

CHECKED_AT_ONCE = 1 << 19
"""Numbers gathered at a time to check pairs in double precision (4 MiB)."""


def exact_twins(units: Sequence[str], segment: Integers) -> Booleans:
    """Whether each unit's very text occurs in another segment as well."""
    segments: dict[str, set[int]] = {}
    for text, s in zip(units, segment.tolist(), strict=True):
        segments.setdefault(text, set()).add(s)
    return np.array([len(segments[text]) > 1 for text in units])


def near_twins(rows: Floats, segment: Integers, threshold: float = THRESHOLD) -> Booleans:
    """Whether each unit has one of cosine ``threshold`` or more in another segment.

    Equal vectors are searched once. The search is in single precision; pairs it cannot decide are
    decided in double precision. Rows of zeros are nobody's twin.

    Args:
        rows: `directions` of the units.
        segment: number of each unit's segment.
        threshold: more than 0, at most 1.
    """
    distinct, place = _distinct(rows)
    first = np.full(len(distinct), segment.max())
    last = np.zeros(len(distinct), dtype=np.int64)
    np.minimum.at(first, place, segment)
    np.maximum.at(last, place, segment)
    # A vector's twins, itself among them, lie in several segments or in the unit's own only.
    lowest, highest = first.copy(), last.copy()
    with flat_index(distinct) as index:
        for start in range(0, len(distinct), QUERIES_AT_ONCE):
            queries = slice(start, start + QUERIES_AT_ONCE)
            row, found = _pairs(index, distinct, queries, threshold)
            np.minimum.at(lowest, row, first[found])
            np.maximum.at(highest, row, last[found])
    return ((lowest < highest) & distinct.any(1))[place]


def _distinct(rows: Floats) -> tuple[Floats, Integers]:
    """Equal rows once, and each row's place among them."""
    whole = np.ascontiguousarray(rows).view(np.dtype((np.void, rows[0].nbytes))).ravel()
    _, first, place = np.unique(whole, return_index=True, return_inverse=True)
    return rows[first], place.astype(np.int64)


def _pairs(
    index: faiss.IndexFlatIP, rows: Floats, queries: slice, threshold: float
) -> tuple[Integers, Integers]:
    """Pairs (row, found) that reach the threshold."""
    asked = rows[queries].astype(np.float32)
    limits, cosines, found = index.range_search(asked, threshold - FLOAT32_ERROR)
    counts: Integers = np.diff(limits).astype(np.int64)
    row = queries.start + np.repeat(np.arange(len(asked)), counts)
    is_twin = cosines >= threshold + FLOAT32_ERROR
    undecided = np.flatnonzero(~is_twin)
    step = max(1, CHECKED_AT_ONCE // rows.shape[1])
    for start in range(0, len(undecided), step):
        some = undecided[start : start + step]
        exact = np.einsum("ij,ij->i", rows[row[some]], rows[found[some]])
        is_twin[some] = exact >= threshold - TIE
    return row[is_twin], found[is_twin]
