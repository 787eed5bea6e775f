"""The registry of reference-free metrics: names, options, spellings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from functools import lru_cache
from typing import Protocol

from torch import Tensor

from reffree.errors import OptionError, UnknownNameError
from reffree.scoring.arp import ArpCos, ArpPair, ArpStd
from reffree.scoring.layout import Layout
from reffree.scoring.pairs import Request, Units
from reffree.scoring.result import MetricScores, Orientation
from reffree.scoring.sag import Sag
from reffree.scoring.segrefree import SegReFree
from reffree.scoring.silhouette import Silhouette


class Metric(Protocol):
    """A metric: which pair sums it needs, and how they become scores."""

    @property
    def name(self) -> str:
        """Registered name."""
        ...

    @property
    def orientation(self) -> Orientation:
        """Which way is better."""
        ...

    @property
    def undefined(self) -> str:
        """Why a document with a boundary may have no score."""
        ...

    @property
    def requests(self) -> tuple[Request, ...]:
        """Pair sums needed."""
        ...

    def __call__(self, units: Units, layout: Layout, sums: dict[Request, Tensor]) -> MetricScores:
        """Raw scores of every hypothesis in the layout."""
        ...

    def __hash__(self) -> int: ...


METRICS: dict[str, type[ArpStd | ArpCos | ArpPair | Silhouette | SegReFree | Sag]] = {
    metric.name: metric for metric in (ArpStd, ArpCos, ArpPair, Silhouette, SegReFree, Sag)
}
CHOICES: dict[str, dict[str, dict[str, object]]] = {
    "arp_std": {"p": {"1": 1.0, "2": 2.0}},
    "silhouette": {"average": {"segments": "segments", "units": "units"}},
    "sag": {"shuffles": {str(2**power): 2**power for power in range(2, 11)}},
}
"""Metric → option → how it is spelt → its value; defaults are those of the metric's class."""

DEFAULT = ("arp_std", "arp_cos", "arp_pair", "silhouette", "segrefree")
"""Scored unless others are asked for; ``sag`` searches every document and takes its time."""

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
    name, _, options = text.partition(":")
    if "," in name:
        raise OptionError(
            f"several metrics in one, {text!r}",
            expected="one metric",
            remedy=f"repeat the option: {' '.join(f'-m {part}' for part in text.split(','))}",
        )
    if name not in METRICS:
        raise UnknownNameError("metric", name, METRICS)
    choices = CHOICES.get(name, {})
    values: dict[str, object] = {}
    for option in filter(None, options.split(",")):
        key, _, value = option.partition("=")
        if key not in choices or value not in choices[key]:
            known = [f"{k}={v}" for k, spellings in choices.items() for v in spellings]
            raise OptionError(
                f"the option {option!r} of {name}",
                expected=" or ".join(known) or "no options",
                remedy=f"write -m {name}" + (f" or -m {name}:{known[0]}" if known else ""),
            )
        values[key] = choices[key][value]
    return METRICS[name](**values)  # type: ignore[arg-type]


def parse_metrics(names: Iterable[str] | None, seed: int = 0) -> tuple[Metric, ...]:
    """Read several, each once; None means `DEFAULT`, and ``all`` every one there is.

    ``seed`` is for those that draw at random.
    """
    given = [names] if isinstance(names, str) else [*DEFAULT] if names is None else [*names]
    every = [one for name in given for one in (METRICS if name == "all" else [name])]
    parsed = [parse_metric(name) for name in every]
    parsed = [replace(m, seed=seed) if isinstance(m, Sag) else m for m in parsed]
    return tuple({spelling(metric): metric for metric in parsed}.values())


def settings(metric: Metric) -> dict[str, str]:
    """Return every option of a metric with its value, defaults included."""
    choices = CHOICES.get(metric.name, {})
    return {
        key: next(spelt for spelt, value in spellings.items() if value == getattr(metric, key))
        for key, spellings in choices.items()
    }


@lru_cache(maxsize=256)
def spelling(metric: Metric) -> str:
    """Return the shortest text that `parse_metric` reads as this metric."""
    default = {field.name: field.default for field in fields(METRICS[metric.name])}
    changed = [
        f"{key}={value}"
        for key, value in settings(metric).items()
        if getattr(metric, key) != default[key]
    ]
    return ":".join(filter(None, [metric.name, ",".join(changed)]))
