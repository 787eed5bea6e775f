"""Libraries that may not be installed: imported when they are needed, or said to be missing."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from typing import Any

from reffree.util.errors import ReffreeError


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
