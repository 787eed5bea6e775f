"""A result as one page that needs nothing else: no network, no server, no other file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from reffree.data.corpus import GOLD
from reffree.evaluate.result import DocumentText, Result, Table, format_value
from reffree.evaluate.table import ScoreTable, judged_by
from reffree.report.boundaries import MappedDocument, format_probability, mapped_documents
from reffree.report.charts import charts_of, require_drawing
from reffree.util.errors import InputError, Place, counted, visible, visible_json
from reffree.util.grid import Grid

if TYPE_CHECKING:
    from reffree.report.charts.chart import Row

DIGITS = 5
"""Of numbers in charts: more than a screen can show."""

MAX_ROWS = 500
"""Of one table; a longer one is read as CSV."""

NOTEBOOK_ROWS = 60
"""Of one table in a notebook."""

MAX_CHARACTERS = 600_000
"""Of all documents' texts."""

MAX_UNITS = 2_000
"""Of one document."""

MAX_CELLS = 200_000
"""Of units and systems, over all documents of a map of boundaries."""

MAX_COLUMNS = 16
"""Systems beside the text of a map of boundaries; the tables have all."""


def render_page(result: Result) -> str:
    """Write the page: question, verdict, charts, tables, documents, reading, settings.

    Scripts and styles are in the page, and its policy names them by their hashes, so that neither
    a name nor a text of the corpus could run as one; nothing may be fetched. Vega interprets its
    expressions (``ast``), so the page needs no ``unsafe-eval``.
    """
    charts, tables = charts_of(result), shown_grids(result)
    maps, notes = _maps(list(mapped_documents(result)))
    texts: list[dict[str, Any]] = []
    if not maps:
        texts, notes = page_texts([text for text in result.texts if text.systems])
    packed_charts = [
        {
            "spec": require_drawing().vega_for_page(each),
            "data": packed(each.rows),
            "choices": [{"field": c.field, "columns": c.columns} for c in each.choices],
            **{"required": each.required, "facet": each.facet, "panel": each.panel},
        }
        for each in charts
    ]
    data = {"charts": packed_charts, "texts": texts}
    sections: dict[str, Any] = {"answer": True, "charts": charts, "tables": tables}
    sections |= {"documents": maps, "texts": texts, "reading": result.reading, "settings": True}
    return _render(
        "page.html",
        result.question,
        result.command,
        styles=["page.css", *(["boundaries.css"] if maps else [])],
        scripts=[*([_library()] if charts else []), _static("page.js")],
        result=result,
        data=Markup(_json(data)),
        sections=[(name, name.capitalize()) for name, present in sections.items() if present],
        charts=charts,
        tables=[replace(each, rows=each.rows[:MAX_ROWS]) for each in tables],
        long={
            each.name: f"Shown: the first {MAX_ROWS:,} of {counted(len(each.rows), 'row')}; all of "
            f"them with reffree report RESULTS.json -f csv --table {each.name}."
            for each in tables
            if len(each.rows) > MAX_ROWS
        },
        has_best=any(cell.is_best for each in tables for row in each.rows for cell in row),
        documents=maps,
        texts=texts,
        document_notes=notes,
        corpora=page_corpora(result.corpora),
        settings=page_settings(result.settings),
    )


def render_index(
    name: str, steps: Sequence[tuple[str, str, Sequence[str]]], pages: Collection[str]
) -> str:
    """Write the page that leads to the results of a run.

    A step is the name of its files, its question and its verdict; ``pages`` have one of their own.
    """
    listed = []
    for step, question, verdict in steps:
        endings = [*(["html"] if step in pages else []), "md", "json"]
        files = [f"{step}.{ending}" for ending in endings]
        listed.append({"name": step, "question": question, "verdict": verdict, "files": files})
    return _render("index.html", name, "run", styles=["page.css"], steps=listed)


def _render(
    template: str,
    title: str,
    command: str,
    *,
    styles: Sequence[str],
    scripts: Sequence[str] = (),
    **values: Any,  # noqa: ANN401  (what the template shows)
) -> str:
    """Fill a template of a page."""
    style = "".join(map(_static, styles))
    by_hash = " ".join(map(_hash, scripts)) or "'none'"
    policy = (
        f"default-src 'none'; script-src {by_hash}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    values |= {"style": Markup(style), "scripts": list(map(Markup, scripts)), "policy": policy}
    return _templates().get_template(template).render(title=title, command=command, **values)


@cache
def _templates() -> Environment:
    """Return what fills templates; texts are no markup, and show what would steer a reader."""
    templates = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(_static),
        finalize=lambda v: visible(v) if isinstance(v, str) and not isinstance(v, Markup) else v,
    )
    templates.filters["thousands"] = lambda n: f"{n:,}"
    templates.filters["exact"] = escape  # to be found among the data
    templates.filters["breakable"] = lambda s: escape(visible(s)).replace("_", Markup("_<wbr>"))
    return templates


def render_notebook(shown: Result | ScoreTable | Table) -> str:
    """Write verdict and tables for a notebook, whose style they take."""
    if isinstance(shown, ScoreTable):
        shown = shown.sorted_by(judged_by(shown.metrics)).result
    grids = [shown.grid()] if isinstance(shown, Table) else shown_grids(shown)
    values: dict[str, Any] = {
        "verdict": () if isinstance(shown, Table) else shown.verdict,
        "tables": [replace(each, rows=each.rows[:NOTEBOOK_ROWS]) for each in grids],
        "longer": {g.name: n for g in grids if (n := len(g.rows) - NOTEBOOK_ROWS) > 0},
    }
    return _templates().get_template("notebook.html").render(values)


def shown_grids(result: Result) -> list[Grid]:
    """Return the tables for people, where there is something in them."""
    return [each.grid() for each in result.tables if each.shown and each.rows]


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _static(name: str) -> str:
    """Return one of the files that pages are made of."""
    return (files("reffree.report") / "static" / name).read_text(encoding="utf-8")


# Charts


@cache
def _library() -> str:
    """Vega and its embedder; some seconds to put together, so once a process."""
    import vl_convert

    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # An HTML parser would end the element here, or turn carriage returns into line feeds.
    return bundle.replace("</script", r"<\/script").replace("<!--", r"<\!--").replace("\r", "")


def packed(rows: Sequence[Row]) -> dict[str, Any]:
    """Write rows by column: a value for all, texts by number, or a list.

    >>> packed([{"a": "x", "b": 1, "c": 0.123456789}, {"a": "y", "b": 1, "c": None}])["columns"]
    {'a': {'texts': ['x', 'y'], 'at': [0, 1]}, 'b': {'same': 1}, 'c': {'values': [0.12346, None]}}
    """
    columns: dict[str, dict[str, Any]] = {}
    for name in rows[0]:
        values = [_short(row[name]) for row in rows]
        if all(value == values[0] for value in values):
            columns[name] = {"same": values[0]}
        elif all(isinstance(value, str) for value in values):
            places = {text: i for i, text in enumerate(dict.fromkeys(values))}
            columns[name] = {"texts": list(places), "at": [places[text] for text in values]}
        else:
            columns[name] = {"values": values}
    return {"length": len(rows), "columns": columns}


def _short(value: Any) -> Any:  # noqa: ANN401  (any plain value)
    if not isinstance(value, float):
        return value
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() else short


def _json(data: object) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return visible_json(text)


# Corpora and settings


def page_corpora(corpora: Sequence[Mapping[str, Any]]) -> Grid:
    """One row a corpus, with whatever is known of each."""
    keys = list(dict.fromkeys(key for corpus in corpora for key in corpus))
    rows = [[_plain(corpus.get(key)) for key in keys] for corpus in corpora]
    return Grid.of((key.replace("_", " ") for key in keys), rows, len(keys), "Corpora")


def page_settings(settings: Mapping[str, Any]) -> Grid:
    """One row a setting, those within others as ``outer.inner``."""

    def rows(settings: Mapping[str, Any], above: str) -> Iterator[tuple[str, str]]:
        for name, value in settings.items():
            if isinstance(value, Mapping) and value:
                yield from rows(value, f"{above}{name}.")
            else:
                yield f"{above}{name}", _plain(value)

    return Grid.of(("setting", "value"), rows(settings, ""), 2, "Settings")


def _plain(value: object) -> str:
    if value is None or isinstance(value, str):
        return "–" if value is None else value
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return f"{value:,}" if is_number else json.dumps(value, ensure_ascii=False)


# Documents


def page_texts(texts: Sequence[DocumentText]) -> tuple[list[dict[str, Any]], list[str]]:
    """Take documents from each corpus in turn while there is room; say what is not shown."""
    by_corpus: dict[str, list[DocumentText]] = {}
    for text in texts:
        for system, masses in text.systems.items():
            if sum(masses) != len(text.units) or min(masses, default=1) < 1:
                raise InputError(
                    f"masses that sum to {sum(masses):,}",
                    expected=f"positive masses that sum to {counted(len(text.units), 'unit')}",
                    remedy="run the study again",
                    place=Place(document=text.id, system=system),
                )
        by_corpus.setdefault(text.corpus, []).append(text)
    in_turn = [each for turn in zip_longest(*by_corpus.values()) for each in turn if each]
    sizes = accumulate(sum(map(len, text.units[:MAX_UNITS])) for text in in_turn)
    kept = {id(text) for text, size in zip(in_turn, sizes, strict=True) if size <= MAX_CHARACTERS}
    shown = [text for text in texts if id(text) in kept]
    packed_texts = [
        {
            **{"corpus": text.corpus, "id": text.id, "length": len(text.units)},
            **{"units": text.units[:MAX_UNITS], "systems": text.systems},
        }
        for text in shown
    ]
    return packed_texts, _cut_notes(shown, len(texts))


def _cut_notes(shown: Sequence[DocumentText | MappedDocument], n_all: int) -> list[str]:
    """Say how many documents are shown of all, and which of them not to their ends."""
    fewer = f"Shown: {len(shown):,} of {counted(n_all, 'document')}."
    return [fewer] * (len(shown) < n_all) + [
        f"{text.id}: the first {MAX_UNITS:,} of {len(text.units):,} units are shown."
        for text in shown
        if len(text.units) > MAX_UNITS
    ]


def _maps(documents: Sequence[MappedDocument]) -> tuple[list[dict[str, Any]], list[str]]:
    """Take documents while there is room, one in any case, and say what is not shown.

    The first is that where systems differ most, the others are in their order.
    """
    most_apart = max(documents, key=lambda document: document.disagreement, default=None)
    characters, cells = MAX_CHARACTERS, MAX_CELLS
    kept: list[MappedDocument] = []
    for document in sorted(documents, key=lambda document: document is not most_apart):
        units = document.units[:MAX_UNITS]
        characters -= sum(map(len, units))
        cells -= len(units) * (min(len(document.places), MAX_COLUMNS) + 1)
        if kept and min(characters, cells) < 0:
            break
        kept.append(document)
    notes = _cut_notes(kept, len(documents))
    if len(documents) > 1 and kept[0].disagreement:
        share = format_value(kept[0].disagreement, "share")
        notes.append(
            f"First stands the document where systems differ most: two of them at {share} of its "
            "gaps on average."
        )
    most = max((len(document.places) for document in kept), default=0)
    if most > MAX_COLUMNS:
        notes.append(
            f"The first {MAX_COLUMNS} of {most:,} systems have a column beside the text; choose "
            "others with --only NAME."
        )
    shown = [
        {
            **{"id": document.id, "facts": document.facts},
            "grid": document.grid.columns(range(1, len(document.grid.header))),
            "systems": list(document.places)[:MAX_COLUMNS],
            "lines": list(_map_lines(document)),
        }
        for document in kept
    ]
    return shown, notes


def _map_lines(document: MappedDocument) -> Iterator[dict[str, Any]]:
    """Units in turn with the gaps between them; a system's column changes its shade per segment.

    ``marks`` are the classes of each system's cell.
    """
    boundaries = list(document.places.values())[:MAX_COLUMNS]
    gold = document.places.get(GOLD, set())
    shades = [""] * len(boundaries)
    for unit, text in enumerate(document.units[:MAX_UNITS]):
        if unit:
            has = [unit in at for at in boundaries]
            probability = document.probabilities[unit - 1]
            yield {
                "is_gap": True,
                "marks": ["end" if ends else s for ends, s in zip(has, shades, strict=True)],
                "probability": probability,
                "percent": f"{100 * (probability or 0.0):.1f}",
                "shown": format_probability(probability),
                "is_gold": unit in gold,
            }
            turned = {"": "odd", "odd": ""}
            shades = [turned[s] if ends else s for ends, s in zip(has, shades, strict=True)]
        line = " ".join(text.split())
        line = f"[{document.clocks[unit]}] {line}" if document.clocks else line
        yield {"is_gap": False, "marks": shades, "number": unit + 1, "text": line}
