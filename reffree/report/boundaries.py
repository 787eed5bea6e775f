"""Posterior probabilities of boundaries beside the text, with the boundaries of every system.

A line is a unit: its number, a bar as long as a boundary before it is likely, a letter for every
system that has one there, and the text. Stretches where nothing happens are folded.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from reffree.evaluate.table import rounded
from reffree.report.grid import Cell, Grid, console, json_text, render_terminal, shown, to_csv
from reffree.studies.boundary_posterior import BoundaryMap, DocumentBoundaries
from reffree.util.errors import counted, visible

if TYPE_CHECKING:
    from rich.text import Text

NOTICED = 0.05
"""Probabilities from this on are written beside their bars."""

BAR = 12
NO_MARK = "·"
EIGHTHS = " ▏▎▍▌▋▊▉"
FOLDED = 3
"""Units on end in which nothing happens, from which on they are one line."""

SCREEN_LINES = 100
"""Drawn on a terminal before further documents have to be asked for."""

LETTERS = string.ascii_lowercase
"""Of systems; where there are more of them, they are counted."""


def render(
    result: BoundaryMap,
    format: Literal["table", "json", "csv"],
    *,
    color: bool,
    width: int | None,
    most_lines: int | None = None,
) -> str:
    """Write a map of boundaries as text; the other arguments matter to the terminal format only.

    ``most_lines`` is how much is drawn before further documents are only counted.
    """
    if format == "json":
        return json_text(result.to_dict())
    if format == "csv":
        header = ("document", "at", "probability", *result.names, "signature")
        return to_csv(header, _csv_rows(result))
    drawn, n_lines, n_drawn = [], 0, 0
    for document in result.documents:
        text = _document(document, color=color, width=width)
        n_lines += text.count("\n")
        if most_lines is not None and n_drawn and n_lines > most_lines:
            break
        drawn.append(text)
        n_drawn += 1
    remarks = [*_legend(result, n_drawn), *result.notes, result.signature]
    grids = [summary_grid(result)] if result.systems and len(result.documents) > 1 else []
    above = "".join(drawn)
    below = render_terminal(grids, remarks, color=color, width=width)
    return (above if grids else above.removesuffix("\n")) + below


def summary_grid(result: BoundaryMap) -> Grid:
    """One row per system over all documents."""
    errors = _error_cells([each.expected_pk for each in result.systems])
    rows = [
        (
            *(each.system, f"{each.documents:,}", f"{each.boundaries:,}"),
            *(shown(each.probability), shown(each.gap_probability), error),
        )
        for each, error in zip(result.systems, errors, strict=True)
    ]
    header = ("system", "documents", "boundaries", "probability", "of any gap", "expected_pk")
    title = "Mean posterior probability of each system's boundaries, over all documents"
    return Grid.of(header, rows, title=title)


def document_grid(document: DocumentBoundaries) -> Grid:
    """One row per system, with the letter that marks it beside the text."""
    errors = _error_cells([each.expected_pk for each in document.systems])
    letters = letters_of(document)
    rows = [
        (
            *(letters.get(each.system, ""), each.system, f"{len(each.at):,}"),
            *(shown(each.probability), error),
        )
        for each, error in zip(document.systems, errors, strict=True)
    ]
    header = ("", "system", "boundaries", "probability", "expected_pk")
    return Grid.of(header, rows, n_labels=2)


def _error_cells(values: Sequence[float | None]) -> list[Cell]:
    """Expected errors, the lowest of several pointed out."""
    known = [value for value in map(rounded, values) if value is not None]
    best = min(known) if len(values) > 1 and known else None
    return [Cell(shown(v), is_best=best is not None and rounded(v) == best) for v in values]


def letters_of(document: DocumentBoundaries) -> dict[str, str]:
    """A letter for every system; none where there are more systems than letters."""
    names = [each.system for each in document.systems]
    return dict(zip(names, LETTERS, strict=False)) if len(names) <= len(LETTERS) else {}


def facts_of(document: DocumentBoundaries) -> str:
    """Say in a sentence what the posterior of a document rests on."""
    units = counted(len(document.units), "unit")
    if document.probabilities is None:
        return f"{units}; no posterior: {document.reason}."
    assert document.assumed_segments is not None
    return (
        f"{units}, about {document.assumed_segments:.1f} segments assumed; the text adds "
        f"{document.information:.2f} nats per boundary; mean probability of a gap "
        f"{shown(document.mean_probability)}."
    )


def shown_probability(probability: float | None) -> str:
    """Two decimals, from `NOTICED` on.

    >>> shown_probability(0.784), shown_probability(0.999), shown_probability(0.01)
    ('.78', '1.0', '')
    """
    if probability is None or probability < NOTICED:
        return ""
    return "1.0" if probability >= 0.995 else f"{probability:.2f}".removeprefix("0")


def _document(document: DocumentBoundaries, *, color: bool, width: int | None) -> str:
    """Title, systems with their letters, text; systems without letters stand below it."""
    from rich.text import Text

    out, file = console(color=color, width=width)
    out.print(Text(visible(document.id), style="bold"), no_wrap=True, overflow="ellipsis")
    out.print(Text(facts_of(document)), soft_wrap=width is None)
    grids = [document_grid(document)] if document.systems else []
    table = render_terminal(grids, [], color=color, width=width) if grids else ""
    has_letters = bool(letters_of(document))
    file.write(table if has_letters else "")
    for line in _lines(document):
        out.print(line, no_wrap=True, overflow="ellipsis", crop=True)
    file.write("\n" if has_letters else table or "\n")
    return file.getvalue()


def _lines(document: DocumentBoundaries) -> Iterator[Text]:
    """Draw every unit, or several that are folded, as a line."""
    from rich.text import Text

    digits = len(f"{len(document.units)}")
    letters = letters_of(document)
    marked = [(), *document.systems_at]
    for is_folded, group in groupby(enumerate(_is_folded(document)), key=lambda each: each[1]):
        units = [unit for unit, _ in group]
        if is_folded:
            most = max(document.probability_at(unit - 1) or 0.0 for unit in units)
            said = "" if document.probabilities is None else f", none above {shown(most)}"
            yield Text(f"{'⋮':>{digits}}  {counted(len(units), 'unit')}{said}", style="dim")
            continue
        for unit in units:
            probability = document.probability_at(unit - 1) if unit else None
            line = Text(f"{unit + 1:{digits}} ")
            line.append(_bar(probability or 0.0), style="cyan")
            line.append(f"{shown_probability(probability):>4} ")
            for mark in _marks(marked[unit], letters, len(document.systems)):
                line.append(mark, style="dim" if mark == NO_MARK else "bold green")
            line.append(f" [{document.clocks[unit]}]" if document.clocks else "", style="dim")
            line.append(f" {visible(' '.join(document.units[unit].split()))}")
            yield line


def _is_folded(document: DocumentBoundaries) -> list[bool]:
    """Tell for every unit whether it is folded: several on end without anything at their gaps."""
    happens = [
        bool(names) or (document.probability_at(gap) or 0.0) >= NOTICED
        for gap, names in enumerate(document.systems_at)
    ]
    # The text's first and last unit are always drawn.
    is_quiet = [
        not (before or after)
        for before, after in zip([True, *happens], [*happens, True], strict=True)
    ]
    folded: list[bool] = []
    for quiet, group in groupby(is_quiet):
        n = len(list(group))
        folded += [quiet and n >= FOLDED] * n
    return folded


def _bar(probability: float) -> str:
    """Blocks, in eighths, of a share of `BAR` columns.

    >>> _bar(1.0) == "█" * BAR, _bar(0.0) == " " * BAR, _bar(1 / 8 / BAR)[0]
    (True, True, '▏')
    """
    whole, eighths = divmod(round(probability * BAR * 8), 8)
    return f"{'█' * whole}{EIGHTHS[eighths].strip()}".ljust(BAR)


def _marks(names: Sequence[str], letters: dict[str, str], n_systems: int) -> str:
    """The letter of each system with a boundary, in its column; without letters, how many."""
    if len(letters) < n_systems:
        return (f"{len(names)}" if names else "").rjust(len(f"{n_systems}"))
    return "".join(letter if name in names else NO_MARK for name, letter in letters.items())


def _legend(result: BoundaryMap, n_drawn: int) -> list[str]:
    """Say how to read it, and what was not drawn."""
    size = result.corpus
    legend = (
        f"{counted(size['documents'], 'document')}, {counted(size['units'], 'unit')}. A bar is the "
        "posterior probability, given the text alone, of a boundary before its unit"
    )
    if result.names:
        marks = "letters mark the systems that have one there"
        if len(result.names) > len(LETTERS):
            marks = "beside it stands how many systems have one there, choose some with --only NAME"
        legend += (
            f"; {marks}. probability: mean over a system's "
            "boundaries. expected_pk: lower is better, * marks the lowest"
        )
    said = [f"{legend}."]
    further = len(result.documents) - n_drawn
    if further:
        said.insert(
            0,
            f"{counted(further, 'further document')} not drawn here: choose with --document ID, "
            "or see all with -o boundaries.html.",
        )
    return said


def _csv_rows(result: BoundaryMap) -> Iterator[list[object]]:
    for document in result.documents:
        having = {each.system for each in document.systems}
        for gap, names in enumerate(document.systems_at):
            marks = [int(name in names) if name in having else None for name in result.names]
            probability = rounded(document.probability_at(gap))
            yield [document.id, gap + 1, probability, *marks, result.signature]
