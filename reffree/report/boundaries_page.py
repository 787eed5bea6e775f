"""A map of boundaries as one page that needs nothing else: no network, no script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from reffree.data.corpus import GOLD
from reffree.report.boundaries import document_grid, facts_of, shown_probability, summary_grid
from reffree.report.tables_page import MAX_CHARACTERS, MAX_UNITS, policy_of, static_text
from reffree.studies.boundary_posterior import BoundaryMap, DocumentBoundaries
from reffree.util.errors import counted, visible

MAX_CELLS = 200_000
"""Of units and systems, over all documents."""

MAX_COLUMNS = 16
"""Systems beside the text; the tables have all."""


def render_page(result: BoundaryMap) -> str:
    """Write the page: how to read it, the systems, every document with its gaps, the signature.

    Its policy allows its own style and nothing else, so that no text of the corpus could run.
    """
    style = static_text("page.css") + static_text("boundaries.css")
    kept = list(_kept(result.documents))
    notes = [*result.notes]
    if len(kept) < len(result.documents):
        notes.append(f"Shown: {len(kept):,} of {counted(len(result.documents), 'document')}.")
    notes += [
        f"{document.id}: the first {MAX_UNITS:,} of {len(document.units):,} units are shown."
        for document in kept
        if len(document.units) > MAX_UNITS
    ]
    most = max(len(document.systems) for document in kept)
    if most > MAX_COLUMNS:
        notes.append(
            f"The first {MAX_COLUMNS} of {most:,} systems have a column beside the text; choose "
            "others with --only NAME."
        )
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    size = result.corpus
    return environment.from_string(static_text("boundaries.html")).render(
        policy=policy_of(style, []),
        style=Markup(style),
        size=f"{counted(size['documents'], 'document')}, {counted(size['units'], 'unit')}",
        summary=summary_grid(result) if result.names else None,
        documents=[_page_document(document) for document in kept],
        notes=list(map(visible, notes)),
        signature=visible(result.signature),
    )


def _kept(documents: Sequence[DocumentBoundaries]) -> Iterator[DocumentBoundaries]:
    """Take documents while there is room; the first in any case."""
    characters, cells = MAX_CHARACTERS, MAX_CELLS
    for i, document in enumerate(documents):
        units = document.units[:MAX_UNITS]
        characters -= sum(map(len, units))
        cells -= len(units) * (min(len(document.systems), MAX_COLUMNS) + 1)
        if i and min(characters, cells) < 0:
            return
        yield document


def _page_document(document: DocumentBoundaries) -> dict[str, Any]:
    return {
        "title": visible(document.id),
        "facts": facts_of(document),
        "systems": [visible(each.system) for each in document.systems[:MAX_COLUMNS]],
        "grid": document_grid(document),
        "lines": list(_lines(document)),
    }


def _lines(document: DocumentBoundaries) -> Iterator[dict[str, Any]]:
    """Units in turn with the gaps between them; a system's column changes its shade per segment.

    ``marks`` are the classes of each system's cell.
    """
    boundaries = [set(each.at) for each in document.systems[:MAX_COLUMNS]]
    gold = set(document[GOLD].at) if GOLD in (each.system for each in document.systems) else set()
    shades = [""] * len(boundaries)
    for unit, text in enumerate(document.units[:MAX_UNITS]):
        if unit:
            has = [unit in at for at in boundaries]
            probability = document.probability_at(unit - 1)
            yield {
                "is_gap": True,
                "marks": ["end" if ends else s for ends, s in zip(has, shades, strict=True)],
                "probability": probability,
                "percent": f"{100 * (probability or 0.0):.1f}",
                "shown": shown_probability(probability),
                "is_gold": unit in gold,
            }
            for i, ends in enumerate(has):
                if ends:
                    shades[i] = "" if shades[i] else "odd"
        line = visible(" ".join(text.split()))
        line = f"[{document.clocks[unit]}] {line}" if document.clocks else line
        yield {"is_gap": False, "marks": list(shades), "number": unit + 1, "text": line}
