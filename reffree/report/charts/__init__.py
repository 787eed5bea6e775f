"""The charts of every study, made from the tables of its result."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from reffree.evaluate.result import Result
from reffree.util.errors import InputError
from reffree.util.optional import require

if TYPE_CHECKING:
    from reffree.report.charts.chart import Chart

CHARTS = {
    "score": ("points.systems",),
    "compare": ("points.systems",),
    "correlate": ("heatmaps.correlations", "points.scatter", "points.strip"),
    "encoders": (
        *("points.speed", "heatmaps.correlations", "points.scatter", "heatmaps.agreement"),
        *("heatmaps.cross", "points.strip"),
    ),
    "perturb": ("curves.curves",),
    "density": ("curves.density",),
    "selection": ("curves.curves",),
    "granularity": ("curves.granularity",),
    "diagnose": ("points.noticed",),
    "baselines": ("points.baselines",),
    "moves": ("curves.curves",),
    "pairs": ("points.judged",),
    "transfer": ("points.transfer",),
    "chunks": ("curves.curves",),
}
"""What draws the charts of a command, in the order in which they are read."""


def require_drawing(instead: str = "") -> Any:  # noqa: ANN401  (a module)
    """Import what draws charts, or say what to install, or what to do ``instead``."""
    return require(
        f"{__name__}.drawing",
        lambda name: InputError(
            f"no installed {name}",
            expected="the libraries that draw charts",
            remedy=f"install them with pip install 'reffree[report]'{instead}",
        ),
        ("altair", "vl_convert"),
    )


def charts_of(result: Result) -> list[Chart]:
    """Return the charts of a result for which it has data; refuse where nothing can draw them."""
    charts: list[Chart] = []
    if result.command in CHARTS:
        require_drawing()
    for place in CHARTS.get(result.command, ()):
        module, _, name = place.partition(".")
        charts += getattr(import_module(f"{__name__}.{module}"), name)(result)
    return charts
