"""The charts of a study's result: made from its tables by name, none where a table is missing."""

from __future__ import annotations

from reffree.evaluate.result import Result
from reffree.report.charts.chart import Chart, Choice
from reffree.report.charts.curves import density, granularity, moves, perturbation, selection, tuned
from reffree.report.charts.heatmaps import agreement, correlations, cross
from reffree.report.charts.points import baselines, judged, noticed, scatter, speed, strip, transfer

__all__ = ["Chart", "Choice", "charts_of"]

BUILDERS = (
    *(
        speed,
        correlations,
        scatter,
        agreement,
        cross,
        perturbation,
        density,
        selection,
        granularity,
    ),
    *(noticed, baselines, moves, judged, transfer, tuned, strip),
)


def charts_of(result: Result) -> list[Chart]:
    """Return every chart that the result has data for, in the order they are read."""
    return [chart for build in BUILDERS for chart in build(result)]
