"""Pages as output: when one is wanted, and what they need installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reffree.errors import InputError
from reffree.optional import require

PAGE_ENDINGS = (".html", ".htm")
EXTRA = ("altair", "vl_convert", "jinja2", "markupsafe")


def is_page(format: str | None, path: Path | None) -> bool:
    """Whether -f or the ending of -o asks for a page."""
    if format is not None:
        return format == "html"
    return path is not None and path.suffix.lower() in PAGE_ENDINGS


def require_report(module: str) -> Any:  # noqa: ANN401  (a module)
    """Import a module of reffree that draws pages or charts, or say what to install."""
    return require(
        module,
        lambda name: InputError(
            f"no installed {name}",
            expected="the libraries that draw charts",
            remedy="install them with pip install 'reffree[report]', or choose -f table, md, "
            "latex, csv or json, which do without",
        ),
        EXTRA,
    )
