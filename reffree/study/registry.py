"""Every study by name; a study's module is imported when it is named."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache

from reffree.errors import UnknownNameError
from reffree.study.result import StudyResult

HOMES = {
    "correlate": "reffree.study.correlate:correlate",
    "perturb": "reffree.study.perturb:perturbation_study",
    "encoders": "reffree.study.encoders:compare_encoders",
    "density": "reffree.study.density:density",
    "diagnose": "reffree.study.diagnose:diagnose",
}
"""Functions from corpora by name, and keywords, to a `StudyResult`."""

Study = Callable[..., StudyResult]


@cache
def find_study(name: str) -> Study:
    """Import a study's function."""
    if name not in HOMES:
        raise UnknownNameError("study", name, HOMES)
    module, _, function = HOMES[name].partition(":")
    found: Study = getattr(importlib.import_module(module), function)
    return found
