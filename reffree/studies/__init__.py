"""Studies: functions from corpora to a result with its tables, notes and settings.

>>> from reffree.studies import correlate
>>> correlate({"mine": corpus}).table("pools")  # doctest: +SKIP

A study's module is imported when it is first named: command lines start without torch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reffree.util.errors import UnknownNameError

if TYPE_CHECKING:
    from reffree.evaluate.result import Result
    from reffree.studies.annotators import agreement
    from reffree.studies.blind_systems import baselines
    from reffree.studies.boundary_posterior import boundaries
    from reffree.studies.comparison import compare
    from reffree.studies.correlation.correlate import correlate
    from reffree.studies.density_curves.density import density
    from reffree.studies.diagnosis.diagnose import diagnose
    from reffree.studies.encoders import compare_encoders
    from reffree.studies.granularity_curves.granularity import granularity
    from reffree.studies.judged_pairs.pairs import pairs
    from reffree.studies.selection_rates import selection
    from reffree.studies.settings import tune
    from reffree.studies.single_moves import moves
    from reffree.studies.strength_curves.perturb import perturb
    from reffree.studies.unseen_corpora import transfer

__all__ = [
    "agreement",
    "baselines",
    "boundaries",
    "compare",
    "compare_encoders",
    "correlate",
    "density",
    "diagnose",
    "granularity",
    "moves",
    "pairs",
    "perturb",
    "selection",
    "transfer",
    "tune",
]

_HOMES = {
    "correlate": "correlation.correlate",
    "perturb": "strength_curves.perturb",
    "compare_encoders": "encoders",
    "density": "density_curves.density",
    "granularity": "granularity_curves.granularity",
    "diagnose": "diagnosis.diagnose",
    "selection": "selection_rates",
    "baselines": "blind_systems",
    "moves": "single_moves",
    "pairs": "judged_pairs.pairs",
    "transfer": "unseen_corpora",
    "agreement": "annotators",
    "tune": "settings",
    "boundaries": "boundary_posterior",
    "compare": "comparison",
}
"""Module of every function."""

STUDIES = (
    *("correlate", "perturb", "encoders", "density", "selection", "granularity", "diagnose"),
    *("baselines", "moves", "pairs", "transfer"),
)
"""Studies of several corpora, which a file of `reffree run` may have, by their commands."""

_CORRELATION = (
    *("independent", "cohesion", "pools", "levels", "beyond_sentinels", "aggregate"),
    *("correlations", "scores", "documents"),
)
TABLES = {
    "correlate": _CORRELATION,
    "encoders": ("encoders", "differences", "agreement", "cross", *_CORRELATION),
}
"""Every table that the result of a study may have, of those from which one can be chosen."""


def __getattr__(name: str) -> Any:  # noqa: ANN401  (a function)
    """Import the module of a function."""
    if name not in _HOMES:
        raise AttributeError(f"module 'reffree.studies' has no attribute {name!r}")
    return getattr(importlib.import_module(f"reffree.studies.{_HOMES[name]}"), name)


def find_study(name: str) -> Callable[..., Result]:
    """Return the function of one of the `STUDIES`: from corpora by name, and keywords."""
    if name not in STUDIES:
        raise UnknownNameError("study", name, STUDIES)
    function: Callable[..., Result] = __getattr__(
        "compare_encoders" if name == "encoders" else name
    )
    return function


def check_table(study: str, name: str | None) -> None:
    """Refuse the name of a table that the study never has, before it runs."""
    if name is not None and name not in TABLES[study]:
        raise UnknownNameError("table", name, TABLES[study])
