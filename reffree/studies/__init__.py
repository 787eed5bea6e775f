"""Studies: functions from corpora to a result with its tables, notes and settings.

>>> from reffree.studies import correlate
>>> correlate({"mine": corpus}).table("pools")  # doctest: +SKIP

Every study is a module here or in `reffree.studies.papers` that has a function of its own name,
and is imported when it is first named: command lines start without torch.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from reffree.util.errors import UnknownNameError

if TYPE_CHECKING:
    from reffree.evaluate.result import Result
    from reffree.studies.agreement import agreement as agreement
    from reffree.studies.boundaries import boundaries as boundaries
    from reffree.studies.chunks import chunks as chunks
    from reffree.studies.compare import compare as compare
    from reffree.studies.correlate import correlate as correlate
    from reffree.studies.density import density as density
    from reffree.studies.diagnose import diagnose as diagnose
    from reffree.studies.encoders import encoders as encoders
    from reffree.studies.granularity import granularity as granularity
    from reffree.studies.papers.baselines import baselines as baselines
    from reffree.studies.papers.moves import moves as moves
    from reffree.studies.papers.pairs import pairs as pairs
    from reffree.studies.papers.selection import selection as selection
    from reffree.studies.papers.transfer import transfer as transfer
    from reffree.studies.perturb import perturb as perturb


def _find_homes() -> tuple[dict[str, str], dict[str, str]]:
    """Return the module of every function called as its module; and of those that take corpora."""
    homes, studies = {}, {}
    folder = Path(__file__).parent
    for path in sorted([*folder.glob("*.py"), *folder.glob("papers/*.py")], key=lambda p: p.stem):
        text = path.read_text(encoding="utf-8")  # read, as importing would take seconds
        if found := re.search(rf"^def {path.stem}\(\s*(\w+)", text, re.MULTILINE):
            parts = path.relative_to(folder).with_suffix("").parts
            homes[path.stem] = ".".join([__name__, *parts])
            if found[1] == "corpora":
                studies[path.stem] = homes[path.stem]
    return homes, studies


HOMES, STUDIES = _find_homes()
"""Module of every function; and of those from corpora by name, which are studies, by command."""


def __getattr__(name: str) -> Any:  # noqa: ANN401  (a function)
    """Import the module of a function."""
    if name not in HOMES:
        raise AttributeError(f"module 'reffree.studies' has no attribute {name!r}")
    return getattr(importlib.import_module(HOMES[name]), name)


def __dir__() -> list[str]:
    """List the functions too, imported or not."""
    return sorted({*globals(), *HOMES})


def find_study(name: str) -> Callable[..., Result]:
    """Return the function of one of the `STUDIES`: from corpora by name, and keywords."""
    if name not in STUDIES:
        raise UnknownNameError("study", name, STUDIES)
    function: Callable[..., Result] = __getattr__(name)
    return function


class _Package(ModuleType):
    """This package, in which a study's name is its function even after its module is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and name in HOMES:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
