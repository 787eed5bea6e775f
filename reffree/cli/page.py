"""Pages as output: when one is wanted, and what they need installed."""

from __future__ import annotations

from pathlib import Path

from reffree.errors import InputError

PAGE_ENDINGS = (".html", ".htm")
EXTRA = ("altair", "vl_convert", "jinja2", "markupsafe")


def is_page(format: str | None, path: Path | None) -> bool:
    """Whether -f or the ending of -o asks for a page."""
    if format is not None:
        return format == "html"
    return path is not None and path.suffix.lower() in PAGE_ENDINGS


def without_extra(error: ModuleNotFoundError) -> Exception:
    """Say how to install what draws pages and charts; any other missing module stays an error."""
    if error.name is None or error.name.partition(".")[0] not in EXTRA:
        return error
    return InputError(
        f"no installed {error.name}",
        expected="the libraries that draw charts",
        remedy="install them with pip install 'reffree[report]', or choose -f table, md, latex, "
        "csv or json, which do without",
    )
