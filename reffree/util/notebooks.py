"""Results as notebooks show them: sentences, then tables, as HTML without style or script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from reffree.util.errors import visible

MOST_ROWS = 60
"""Of one table: a notebook is to be looked at, data frames and files have the rest."""


def sentences_html(sentences: Iterable[str]) -> str:
    """A paragraph each."""
    return "".join(f"<p>{escape(visible(sentence))}</p>" for sentence in sentences)


def table_html(header: Iterable[str], rows: Sequence[Iterable[str]], caption: str = "") -> str:
    """One table of texts.

    >>> table_html(["system", "pk"], [["<mine>", "0.2"]])
    '<table><tr><th>system</th><th>pk</th></tr><tr><td>&lt;mine&gt;</td><td>0.2</td></tr></table>'
    """
    lines = [("th", header), *(("td", row) for row in rows[:MOST_ROWS])]
    body = "".join(
        f"<tr>{''.join(f'<{tag}>{escape(visible(each))}</{tag}>' for each in cells)}</tr>"
        for tag, cells in lines
    )
    title = f"<caption>{escape(visible(caption))}</caption>" if caption else ""
    more = len(rows) - MOST_ROWS
    below = f"<p>{more:,} more rows: see to_pandas().</p>" if more > 0 else ""
    return f"<table>{title}{body}</table>{below}"
