"""Results show themselves in notebooks, with the words, tables and charts of reports.

Reports stand above what they show, so they are imported by name, when something is to be shown.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import altair as alt


def notebook_html(shown: object) -> str:
    """Return the verdict and the tables of a result, or one table, as HTML without a style."""
    html: str = import_module("reffree.report.page").render_notebook(shown)
    return html


class ShowsItself:
    """What a notebook shows of a result, and its charts."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return notebook_html(self)

    def plot(self, chart: str | None = None, /, **choices: str) -> alt.TopLevelMixin:
        """Draw a chart, which a notebook shows and ``save("chart.svg")`` writes.

        Args:
            chart: its name; without one, the first of those on the result's page.
            choices: what it shows, by the choices of the page, such as ``metric="placement"``; of
                each that is left out, the first.

        Raises:
            InputError: reffree[report] is not installed, or the result has nothing to draw.
        """
        drawing = import_module("reffree.report.charts").require_drawing()
        drawn: alt.TopLevelMixin = drawing.chart_with_data(self, chart, choices)
        return drawn
