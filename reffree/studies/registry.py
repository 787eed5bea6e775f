"""Every study by name; a study's module is imported when it is named."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache

from reffree.errors import UnknownNameError
from reffree.studies.result import StudyResult

HOMES = {
    "correlate": "reffree.studies.correlation.correlate:correlate",
    "perturb": "reffree.studies.strength_curves.perturb:perturb",
    "encoders": "reffree.studies.encoder_choice.encoders:compare_encoders",
    "density": "reffree.studies.density_curves.density:density",
    "granularity": "reffree.studies.granularity_curves.granularity:granularity",
    "diagnose": "reffree.studies.diagnosis.diagnose:diagnose",
}
"""Functions from corpora by name, and keywords, to a `StudyResult`."""

CORRELATION_TABLES = (
    *("independent", "cohesion", "pools", "levels", "beyond_sentinels", "aggregate"),
    *("correlations", "scores", "documents"),
)
TABLES = {
    "correlate": CORRELATION_TABLES,
    "encoders": ("encoders", "agreement", "cross", *CORRELATION_TABLES),
}
"""Every table that the result of a study may have, of those from which one can be chosen."""

Study = Callable[..., StudyResult]


def check_table(study: str, name: str | None) -> None:
    """Refuse the name of a table that the study never has, before it runs."""
    if name is not None and name not in TABLES[study]:
        raise UnknownNameError("table", name, TABLES[study])


@cache
def find_study(name: str) -> Study:
    """Import a study's function."""
    if name not in HOMES:
        raise UnknownNameError("study", name, HOMES)
    module, _, function = HOMES[name].partition(":")
    found: Study = getattr(importlib.import_module(module), function)
    return found
