"""Tables as one page in the design of all pages, without scripts and further packages."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import quote

from reffree.util.errors import visible

if TYPE_CHECKING:
    from reffree.report.grid import Cell, Grid

MAX_CHARACTERS = 600_000
"""Of all documents' texts."""

MAX_UNITS = 2_000
"""Of one document."""


def render_page(
    grids: Sequence[Grid],
    remarks: Sequence[str],
    signature: str,
    *,
    command: str,
    question: str,
    opening: Sequence[str],
) -> str:
    """Write the page: question, verdict, tables, what is to be known, signature."""
    style = static_text("page.css")
    verdict = "".join(f'<p class="answer" dir="auto">{_text(each)}</p>\n' for each in opening)
    notes = "".join(f'<li dir="auto">{_text(each)}</li>\n' for each in remarks)
    settings = "|<wbr>".join(map(_text, signature.split("|")))
    tables = "".join(map(html_table, grids))
    return f"""<!doctype html>
<html lang="en">
{page_head(style, (), f"{question} · reffree {command}")}
<body>
<header>
<p class="eyebrow">reffree {_text(command)}</p>
<h1>{_text(question)}</h1>
</header>
<main>
<section id="answer" class="card">
{verdict}</section>
<section id="tables">
{tables}</section>
<section id="notes" aria-labelledby="notes-title">
<h2 id="notes-title">To know when reading it</h2>
<ul>
{notes}</ul>
</section>
<section id="settings" aria-labelledby="settings-title">
<h2 id="settings-title">Signature</h2>
<p><code class="signature">{settings}</code></p>
</section>
</main>
</body>
</html>
"""


def render_index(
    name: str, steps: Sequence[tuple[str, str, Sequence[str]]], pages: Collection[str]
) -> str:
    """Write the page that leads to the results of a run.

    A step is the name of its files, its question and its answer; ``pages`` have one of their own.
    """
    style = static_text("page.css")
    cards = "".join(
        f'<section class="card">\n<h2>{_text(step)}</h2>\n<p class="answer">{_text(question)}</p>\n'
        + "".join(f'<p dir="auto">{_text(each)}</p>\n' for each in answer)
        + f"<p>{_links(step, has_page=step in pages)}</p>\n</section>\n"
        for step, question, answer in steps
    )
    return f"""<!doctype html>
<html lang="en">
{page_head(style, (), f"{name} · reffree run")}
<body>
<header>
<p class="eyebrow">reffree run</p>
<h1>{_text(name)}</h1>
</header>
<main>
{cards}</main>
</body>
</html>
"""


def _links(step: str, *, has_page: bool) -> str:
    """Links to a step's files beside the page."""
    endings = (*(["html"] if has_page else []), "md", "json")
    return " · ".join(
        f'<a href="{escape(quote(f"{step}.{ending}"))}">{_text(step)}.{ending}</a>'
        for ending in endings
    )


def html_table(grid: Grid) -> str:
    """Write a table; the columns that name its rows stay in sight when it is scrolled."""
    kinds = ["" if i < grid.n_labels else ' class="n"' for i in range(len(grid.header))]
    head = "".join(
        f'<th scope="col"{kind}>{_text(name).replace("_", "_<wbr>")}</th>'
        for name, kind in zip(grid.header, kinds, strict=True)
    )
    labels = [_text(name) for name in grid.header]
    body = "".join(
        f"<tr>{''.join(map(_cell, row, kinds, labels, range(len(row))))}</tr>\n"
        for row in grid.rows
    )
    title = f"<caption>{_text(grid.title)}</caption>" if grid.title else ""
    return (
        '<div class="scroll" tabindex="0" role="region">\n<table class="records">'
        f"{title}\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n</div>\n"
    )


def _cell(cell: Cell, kind: str, label: str, column: int) -> str:
    text = f"<b>{_text(cell.text)}</b>" if cell.is_best else _text(cell.text)
    beside = f" <small>{_text(cell.beside)}</small>" if cell.beside else ""
    below = "".join(f" <small>{_text(line)}</small>" for line in cell.below)
    if column == 0:
        return f'<th scope="row" dir="auto">{text}</th>'
    return f'<td{kind} data-label="{label}">{text}{beside}{below}</td>'


def _text(text: str) -> str:
    return escape(visible(text))


# What all pages share


def page_head(style: str, scripts: Sequence[str], title: str) -> str:
    """Write what stands before the body: policy, style and title."""
    return f"""<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(policy_of(style, scripts))}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="reffree">
<link rel="icon" href="data:,">
<title>{_text(title)}</title>
<style>{style}</style>
</head>"""


def policy_of(style: str, scripts: Sequence[str]) -> str:
    """Allow the page's own scripts and style, by hash, and nothing else."""
    by_hash = " ".join(map(_hash, scripts)) or "'none'"
    return (
        f"default-src 'none'; script-src {by_hash}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def static_text(name: str) -> str:
    """Return one of the files that pages are made of."""
    return (files("reffree.report") / "static" / name).read_text(encoding="utf-8")
