"""Studies: functions from corpora to a result with its tables, notes and settings.

>>> from reffree.studies import correlate
>>> correlate({"mine": corpus}).table("pools")  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reffree.studies.boundary_posterior import boundaries
    from reffree.studies.comparison import compare
    from reffree.studies.correlation.correlate import correlate
    from reffree.studies.density_curves.density import density
    from reffree.studies.diagnosis.diagnose import diagnose
    from reffree.studies.encoder_choice.encoders import compare_encoders
    from reffree.studies.granularity_curves.granularity import granularity
    from reffree.studies.strength_curves.perturb import perturb

__all__ = [
    "boundaries",
    "compare",
    "compare_encoders",
    "correlate",
    "density",
    "diagnose",
    "granularity",
    "perturb",
]

_HOMES = {
    "boundaries": "boundary_posterior",
    "compare": "comparison",
    "compare_encoders": "encoder_choice.encoders",
    "correlate": "correlation.correlate",
    "density": "density_curves.density",
    "diagnose": "diagnosis.diagnose",
    "granularity": "granularity_curves.granularity",
    "perturb": "strength_curves.perturb",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401  (a function)
    """Import a study when it is first named: command lines start without torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'reffree.studies' has no attribute {name!r}")
    return getattr(importlib.import_module(f"reffree.studies.{_HOMES[name]}"), name)
