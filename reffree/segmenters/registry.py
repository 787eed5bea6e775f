"""Every method by name; a method's module is imported when it is named."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping

from reffree.naming import parse_named
from reffree.segmenters.base import Segmenter

HOMES = {
    "none": "naive:NoBoundaries",
    "all": "naive:AllBoundaries",
    "even": "naive:Even",
    "random": "naive:Random",
    "random_known": "naive:RandomKnown",
    "random_unknown": "naive:RandomUnknown",
    "oracle_random": "naive:OracleRandom",
    "oracle_periodic": "naive:OraclePeriodic",
    "texttiling": "texttiling:TextTiling",
    "c99": "c99:C99",
    "textseg": "textseg:TextSeg",
    "depth": "depth:Depth",
    "changepoint": "changepoint:ChangePoint",
    "greedy": "maximise:Greedy",
    "optimal": "maximise:Optimal",
    "posterior": "posterior:LeastExpectedPk",
    "scorer": "scorer.method:Scorer",
}


class _Segmenters(Mapping[str, type[Segmenter]]):
    def __getitem__(self, name: str) -> type[Segmenter]:
        module, _, kind = HOMES[name].partition(":")
        found: type[Segmenter] = getattr(
            importlib.import_module(f"reffree.segmenters.{module}"), kind
        )
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(HOMES)

    def __len__(self) -> int:
        return len(HOMES)


SEGMENTERS: Mapping[str, type[Segmenter]] = _Segmenters()


def parse_segmenter(text: str) -> Segmenter:
    """Read ``name`` or ``name:option=value,…``, such as ``random:p=0.1``."""
    return parse_named(text, SEGMENTERS, "method", "--method")
