r"""Metrics that researchers bring: their own Score of a segment and its neighbours (eq. 2).

.. math:: C_i^d = Score(E_i, E_{i \pm 1})

Ghinassi et al. (2024), §3.1. A function is called for every segment, as Python runs it: slow, and
right for anything that can be said of a segment's vectors and its neighbours'.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from inspect import getsource
from typing import Any, ClassVar

import numpy as np

from reffree.metrics.free.result import Orientation, Pooled
from reffree.metrics.registry import FREE_METRICS, METRICS
from reffree.statistics.losses import Direction
from reffree.util.arrays import Floats
from reffree.util.errors import InputError, OptionError, Place, first_line, mistake, shorten

Score = Callable[[Floats, Floats | None, Floats | None], float | None]
"""From the vectors of a segment, of the previous and of the next one to the segment's score."""

NAME = re.compile(r"[a-z][a-z0-9_]*")
RESERVED = ("all", "gold")
_CODES: dict[str, str] = {}


@dataclass(frozen=True)
class CustomMetric(Pooled):
    """What all metrics share that users register; each is a class of its own."""

    name: ClassVar[str]
    orientation: ClassVar[Orientation]
    code: ClassVar[str]  # hash of the function
    score: ClassVar[Score]
    undefined: ClassVar[str] = "no segment has a score"

    def segments(self, vectors: Floats, masses: Iterable[Sequence[int]], document: str) -> Floats:
        """Scores of the segments of every hypothesis (h, s), NaN where there is none.

        A segment between the same neighbours is scored once.
        """
        rows = [[int(m) for m in row if m] for row in masses]
        found = np.full((len(rows), max(map(len, rows), default=0)), np.nan)
        known: dict[tuple[int, ...], float] = {}
        for h, row in enumerate(rows):
            ends = np.concatenate([[0], np.cumsum(row)]).tolist()
            for i in range(len(row) if len(row) > 1 else 0):
                at = tuple(ends[max(0, i - 1) : i + 3])
                key = (i > 0, *at)
                if key not in known:
                    known[key] = self._score(vectors, ends, i, document)
                found[h, i] = known[key]
        return found

    def _score(self, vectors: Floats, ends: Sequence[int], i: int, document: str) -> float:
        def part(j: int) -> Floats:
            return vectors[ends[j] : ends[j + 1]].copy()

        before = part(i - 1) if i > 0 else None
        after = part(i + 1) if i + 2 < len(ends) else None
        try:
            value = type(self).score(part(i), before, after)
            number = math.nan if value is None else float(value)
        except Exception as error:
            said = f"{type(error).__name__} ({first_line(error)})"
            raise self._refusal(said, i, document) from error
        if math.isinf(number):
            raise self._refusal("an infinite score", i, document)
        return number

    def _refusal(self, found: str, i: int, document: str) -> InputError:
        found = f"{found} from the metric {self.name!r} for segment {i + 1}"
        expected = "a number, or None where there is no score"
        remedy = "correct the function that was registered"
        return mistake(Place(document=document), found, expected, remedy)


def register_metric(
    name: str,
    score: Score,
    *,
    higher_is_better: bool = True,
    neutral: float | None = None,
    worst: float | None = None,
) -> None:
    """Make a metric of a function; every command and study then takes it by its name.

    Tables show its own values, in its own direction.

    Args:
        name: of lower-case letters, digits and ``_``. One that was registered before is replaced.
        score: takes the vectors of a segment, of the segment before and of the one after it, rows
            in float64, None where there is no such segment; returns the segment's score (eq. 2), or
            None for none, as for the last segment in ARP. It is not called for a document of one
            segment.
        higher_is_better: which way.
        neutral: score of a document without a boundary; None leaves it out.
        worst: its score under ``unsegmented="worst"``; likewise.

    Examples:
        >>> def contrast(segment, before, after):
        ...     near = [x for x in (before, after) if x is not None]
        ...     return min(np.linalg.norm(segment.mean(0) - x.mean(0)) for x in near)
        >>> register_metric("contrast", contrast)  # doctest: +SKIP
        >>> score(corpus, metrics=["contrast", "contrast:pool_n=median"])  # doctest: +SKIP
    """
    is_taken = name in RESERVED or (name in METRICS and name not in _CODES)
    if not isinstance(name, str) or not NAME.fullmatch(name) or is_taken:
        found = f"the metric name {shorten(repr(name))}" + (", which is taken" if is_taken else "")
        expected = "lower-case letters, digits and _ that no metric of reffree is called"
        raise OptionError(found, expected=expected, remedy="choose another name")
    if not callable(score):
        found = f"{type(score).__name__} as the metric {name!r}"
        expected = "a function of a segment's vectors and those of its neighbours"
        remedy = "write def score(segment, before, after): return …"
        raise OptionError(found, expected=expected, remedy=remedy)
    direction: Direction
    slope, direction = (-1.0, "higher") if higher_is_better else (1.0, "lower")
    own: dict[str, Any] = {
        "__module__": __name__,
        "name": name,
        "orientation": Orientation(0.0, slope, neutral, worst, True, direction),
        "code": _code(score, (higher_is_better, neutral, worst)),
        "score": staticmethod(score),
    }
    _CODES[name] = own["code"]
    FREE_METRICS.add(dataclass(frozen=True)(type(name, (CustomMetric,), own)))


def registered() -> dict[str, str]:
    """Names of the metrics that were registered, and what their functions hash to."""
    return dict(_CODES)


def _code(score: Score, settings: tuple[object, ...]) -> str:
    """Hash a function's text, or where there is none its bytecode."""
    try:
        text = getsource(score).encode()
    except (OSError, TypeError):
        compiled = getattr(score, "__code__", None)
        text = repr(score).encode() if compiled is None else compiled.co_code
    return hashlib.blake2b(text + repr(settings).encode(), digest_size=4).hexdigest()
