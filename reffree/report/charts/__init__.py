"""The charts of every study, made from the tables of its result."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from reffree.evaluate.result import Result

if TYPE_CHECKING:
    from reffree.report.charts.chart import Chart

CHARTS = {
    "correlate": ("heatmaps.correlations", "points.scatter", "points.strip"),
    "encoders": (
        *("points.speed", "heatmaps.correlations", "points.scatter", "heatmaps.agreement"),
        *("heatmaps.cross", "points.strip"),
    ),
    "perturb": ("curves.perturbation",),
    "density": ("curves.density",),
    "selection": ("curves.selection",),
    "granularity": ("curves.granularity",),
    "diagnose": ("points.noticed",),
    "baselines": ("points.baselines",),
    "moves": ("curves.moves",),
    "pairs": ("points.judged",),
    "transfer": ("points.transfer",),
    "chunks": ("curves.tuned",),
}
"""What draws the charts of a command, in the order in which they are read."""


def charts_of(result: Result) -> list[Chart]:
    """Return the charts of a result for which it has data; the libraries that draw are needed."""
    charts: list[Chart] = []
    for place in CHARTS.get(result.command, ()):
        module, _, name = place.partition(".")
        charts += getattr(import_module(f"{__name__}.{module}"), name)(result)
    return charts
