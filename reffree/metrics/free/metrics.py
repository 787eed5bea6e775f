"""The registry of reference-free metrics: names, options, spellings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import Field, replace
from typing import Any, ClassVar, Protocol

from reffree.metrics.free.arp import ArpCos, ArpPair, ArpStd
from reffree.metrics.free.expected import EXPECTED, Expected
from reffree.metrics.free.layout import Layout
from reffree.metrics.free.lookups import Request, Sums
from reffree.metrics.free.pairs import Units
from reffree.metrics.free.result import Orientation, RawScores
from reffree.metrics.free.sag import Sag
from reffree.metrics.free.segrefree import SegReFree
from reffree.metrics.free.silhouette import Silhouette
from reffree.util.naming import parse_named, spelling_of


class Metric(Protocol):
    """A metric with its options."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    name: ClassVar[str]
    orientation: ClassVar[Orientation]  # which way is better
    undefined: ClassVar[str]  # why a document with a boundary may have no score

    @property
    def aggregation(self) -> str:
        """How segments become a document's score, and documents a corpus's."""
        ...

    def __hash__(self) -> int: ...


class PairMetric(Metric, Protocol):
    """A metric made of pair sums: which it needs, and how they become scores."""

    @property
    def requests(self) -> tuple[Request, ...]:
        """Pair sums needed."""
        ...

    def __call__(self, units: Units, layout: Layout, sums: Sums) -> RawScores:
        """Raw scores of every hypothesis in the layout."""
        ...


METRICS: dict[str, type[Any]] = {
    metric.name: metric
    for metric in (*EXPECTED, ArpStd, ArpCos, ArpPair, Silhouette, SegReFree, Sag)
}
DEFAULT = ("expected_pk", "arp_std", "arp_cos", "arp_pair", "silhouette", "segrefree")
"""Scored unless others are asked for: the one to judge by, and the published ones."""

WITHOUT_SEARCH = ("arp_std", "arp_cos", "arp_pair", "silhouette", "segrefree")
"""What a document's hypotheses are scored by without tables or a search made first."""

COMPILED = (
    *("arp_std", "arp_std:p=1", "arp_cos", "arp_pair"),
    *("silhouette", "silhouette:average=units", "segrefree"),
)
"""What the compiled loop scores, in the order of its columns."""


def parse_metric(text: str) -> Metric:
    """Read ``name`` or ``name:option=value,…``, such as ``arp_std:p=1``.

    >>> spelling(parse_metric("silhouette:average=units"))
    'silhouette:average=units'
    >>> spelling(parse_metric("arp_std:p=2"))
    'arp_std'
    """
    parsed: Metric = parse_named(text, METRICS, "metric", "-m")
    return parsed


def parse_metrics(names: Iterable[str] | None, seed: int = 0) -> tuple[Metric, ...]:
    """Read several, each once; None means the default ones, ``all`` every one there is.

    ``seed`` is for those that draw at random.
    """
    given = [names] if isinstance(names, str) else [*DEFAULT] if names is None else [*names]
    every = [one for name in given for one in (METRICS if name == "all" else [name])]
    parsed = [parse_metric(name) for name in every]
    parsed = [replace(m, seed=seed) if isinstance(m, (Sag, Expected)) else m for m in parsed]
    return tuple({spelling(metric): metric for metric in parsed}.values())


def spelling(metric: Metric) -> str:
    """Return the shortest text that `parse_metric` reads as this metric."""
    return spelling_of(metric)
