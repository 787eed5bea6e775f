"""What is imported when it is needed: libraries that may be missing, and what shows results.

Reports stand above the results that they show in notebooks, so they are imported by name.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from reffree.util.errors import ReffreeError

if TYPE_CHECKING:
    import altair as alt


def require(
    module: str, refusal: Callable[[str], ReffreeError], packages: Iterable[str] = ()
) -> Any:  # noqa: ANN401  (a module)
    """Import a module, or raise ``refusal(name)`` if the package ``name`` is not installed.

    Args:
        module: such as ``pyarrow.parquet``.
        refusal: makes the error to raise.
        packages: those that the module imports and that may be missing, if not its own.
    """
    try:
        importlib.import_module(module.partition(".")[0])
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        name = error.name or ""
        if name.partition(".")[0] not in (list(packages) or [module.partition(".")[0]]):
            raise
        raise refusal(name) from None


def require_pandas() -> Any:  # noqa: ANN401  (a module)
    """Import pandas, for the functions that return data frames."""
    sentence = (
        "found no pandas; expected it for data frames; run python -m pip install pandas, "
        "or use to_dict()"
    )
    return require("pandas", lambda name: ReffreeError(sentence))


def missing_packages(packages: Iterable[str]) -> list[str]:
    """List those of some packages that are not installed; imports none."""
    return [name for name in packages if importlib.util.find_spec(name) is None]


def notebook_html(shown: object) -> str:
    """Return the verdict and the tables of a result, or one table, as HTML without a style."""
    html: str = importlib.import_module("reffree.report.page").render_notebook(shown)
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
        drawing = importlib.import_module("reffree.report.charts").require_drawing()
        drawn: alt.TopLevelMixin = drawing.chart_with_data(self, chart, choices)
        return drawn
