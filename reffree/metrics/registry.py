"""What every metric is, and all metrics by name, imported when first asked for."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field, replace
from importlib import import_module
from typing import Any, ClassVar

from reffree.metrics import names
from reffree.metrics.names import COMPILED as COMPILED
from reffree.metrics.names import DEFAULT as DEFAULT
from reffree.metrics.names import GOLD_DEFAULT as GOLD_DEFAULT
from reffree.metrics.names import STUDIED as STUDIED
from reffree.metrics.names import WITHOUT_SEARCH as WITHOUT_SEARCH
from reffree.statistics.losses import Direction
from reffree.util.arrays import Floats
from reffree.util.naming import check_options, parse_named, spelling_of


class Metric:
    """A metric with its options: a frozen dataclass, whose fields they are.

    ``needs`` are inputs beside segmentations: ``vectors``, ``gold``, ``text``, ``word_vectors``.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    name: ClassVar[str]
    needs: ClassVar[frozenset[str]]
    direction: ClassVar[Direction]  # which way what tables show is better
    undefined: ClassVar[str] = "it never is"  # why a document with a boundary may have no score

    def __post_init__(self) -> None:
        """Refuse options out of their bounds."""
        check_options(self)

    def losses(self, raw: Floats) -> Floats:
        """Turn raw scores so that lower is better."""
        raise NotImplementedError

    def shown(self, raw: float) -> float:
        """Return what tables show of a raw score."""
        raise NotImplementedError


class Registry(Mapping[str, type[Any]]):
    """Metrics of one kind by name."""

    def __init__(self, homes: Mapping[str, str]) -> None:
        """Remember where each is, as ``module.Class`` below `reffree.metrics`."""
        self._homes = homes
        self._known: dict[str, type[Any]] = dict.fromkeys(homes, Metric)

    def __getitem__(self, name: str) -> type[Any]:
        if self._known[name] is Metric:
            module, _, metric = self._homes[name].rpartition(".")
            self._known[name] = getattr(import_module(f"reffree.metrics.{module}"), metric)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def add(self, metric: type[Metric]) -> None:
        """Add a metric under its name, or replace one."""
        self._known[metric.name] = metric

    def discard(self, name: str) -> None:
        """Forget a metric that was added."""
        self._known.pop(name, None)


FREE_METRICS = Registry(names.FREE)
GOLD_METRICS = Registry(names.GOLD)
METRICS: Mapping[str, type[Any]] = ChainMap(FREE_METRICS, GOLD_METRICS)  # type: ignore[arg-type]


def parse_metric(text: str, among: Mapping[str, type[Any]] = METRICS) -> Any:  # noqa: ANN401
    """Read ``name`` or ``name:option=value,…``, such as ``arp_std:p=1`` or ``pk:k=3``.

    >>> spelling(parse_metric("silhouette:average=units"))
    'silhouette:average=units'
    >>> spelling(parse_metric("arp_std:p=2"))
    'arp_std'
    """
    return parse_named(text, among, "metric", "-m")


def parse_metrics(given: Iterable[str] | None, seed: int = 0) -> tuple[Any, ...]:
    """Read several reference-free ones, each once; None means the default ones, ``all`` every one.

    ``seed`` is for those that draw at random.
    """
    texts = [given] if isinstance(given, str) else [*DEFAULT] if given is None else [*given]
    every = [one for text in texts for one in (FREE_METRICS if text == "all" else [text])]
    parsed = [parse_metric(text, FREE_METRICS) for text in every]
    parsed = [replace(m, seed=seed) if hasattr(m, "seed") else m for m in parsed]
    return tuple({spelling(metric): metric for metric in parsed}.values())


spelling = spelling_of
"""The shortest text that `parse_metric` reads as a metric."""
