"""Boundaries drawn in the text: how probable each is, or what it contributes to a score.

A line is a unit: its number, a bar as long as a boundary before it is likely, a letter for every
system that has one there, and the text. Stretches where nothing happens are folded.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING, Any

from reffree.evaluate.result import Result, damaged, format_value
from reffree.report.grid import console, render_terminal
from reffree.util.errors import counted, shorten, visible
from reffree.util.grid import Cell, Grid

if TYPE_CHECKING:
    from rich.text import Text

NOTICED = 0.05
"""Probabilities from this on are written beside their bars."""

AGAIN = "run reffree boundaries again"
BAR = 12
NO_MARK = "·"
EIGHTHS = " ▏▎▍▌▋▊▉"
NEGLIGIBLE = 5e-4
"""Changes of the loss that the three decimals shown do not see."""

FOLDED = 3
"""Units on end in which nothing happens, from which on they are one line."""

SCREEN_LINES = 100
"""Drawn on a terminal before further documents have to be asked for."""

LETTERS = string.ascii_lowercase
"""Of systems; where there are more of them, they are counted."""

NEEDED = {
    "gaps": {"document": "text", "probability": "number"},
    "documents": {
        **{"document": "text", "units": "count", "assumed_segments": "number"},
        **{"information": "number", "mean_probability": "number", "reason": "text"},
    },
    "own": {"document": "text", "system": "text"},
}
"""Columns that are drawn, by table, and their kinds."""


@dataclass(frozen=True, slots=True)
class MappedDocument:
    """A document of a map of boundaries."""

    id: str
    units: tuple[str, ...]
    clocks: tuple[str, ...]
    probabilities: list[float | None]  # of every gap; None where there is no posterior
    places: dict[str, set[int]]  # units before the boundaries of each system
    facts: str  # what the posterior rests on, in a sentence
    grid: Grid  # its systems, with the letters that mark them

    @property
    def has_letters(self) -> bool:
        """Whether there is a letter for every system."""
        return len(self.places) <= len(LETTERS)

    @property
    def disagreement(self) -> float:
        """Return the share of gaps at which two of its systems differ, on average over pairs."""
        n, n_gaps = len(self.places), len(self.units) - 1
        counts = Counter(at for places in self.places.values() for at in places)
        differing = sum(count * (n - count) for count in counts.values())
        return 2 * differing / (n * (n - 1) * n_gaps) if n > 1 and n_gaps else 0.0

    def having(self, unit: int) -> list[str]:
        """Systems with a boundary after so many units."""
        return [name for name, places in self.places.items() if unit in places]


def mapped_documents(result: Result) -> Iterator[MappedDocument]:
    """Put together what a result of boundaries holds of each document; none of other results."""
    if result.command != "boundaries":
        return
    for name, kinds in NEEDED.items():
        found = {each.name: each.kind for each in result.table(name).fields}
        if not kinds.items() <= found.items():
            raise damaged(f"the header of table {name!r}", remedy=AGAIN)
    gaps: dict[str, list[float | None]] = {}
    for row in result.table("gaps").records():
        gaps.setdefault(row["document"], []).append(row["probability"])
    facts = {row["document"]: row for row in result.table("documents").records()}
    own = result.table("own")
    for text in result.texts:
        probabilities = gaps.get(text.id, [])
        is_whole = all(sum(masses) == len(text.units) for masses in text.systems.values())
        is_known = text.id in facts and len(text.clocks) in (0, len(text.units))
        if not (is_whole and is_known and len(probabilities) == len(text.units) - 1):
            raise damaged(f"document {shorten(text.id)!r}", remedy=AGAIN)
        rows = tuple(row for row in own.rows if row[0] == text.id)
        grid = replace(own, rows=rows, title="").grid().columns(range(1, len(own.fields)))
        letters = [*LETTERS] if len(rows) <= len(LETTERS) else [""] * len(rows)
        places = {name: set(accumulate(masses[:-1])) for name, masses in text.systems.items()}
        marked = zip(letters, grid.rows, strict=False)
        grid = replace(
            grid,
            header=("", *grid.header),
            rows=tuple((Cell(mark), *row) for mark, row in marked),
            is_number=(False, *grid.is_number),
        )
        described = (probabilities, places, _describe_facts(facts[text.id]), grid)
        yield MappedDocument(text.id, text.units, text.clocks, *described)


def draw_boundaries(result: Result, *, color: bool, width: int | None) -> tuple[str, list[str]]:
    """Draw documents beside their probabilities, and say how to read it and what is not drawn.

    A terminal gets the first ones, unless documents were chosen.
    """
    from rich.text import Text

    drawn: list[str] = []
    n_lines = widest = 0
    is_cut = width is not None and not result.settings.get("documents")
    for document in mapped_documents(result):
        out, file = console(color=color, width=width)
        out.print(Text(visible(document.id), style="bold"), no_wrap=True, overflow="ellipsis")
        out.print(Text(document.facts), soft_wrap=width is None)
        table = "\n"
        if document.places:
            table = render_terminal([document.grid], [], color=color, width=width)
        # Systems that have no letters stand below the text.
        file.write(table if document.has_letters and document.places else "")
        for line in _draw_lines(document):
            out.print(line, no_wrap=True, overflow="ellipsis", crop=True)
        file.write("\n" if document.has_letters else table)
        n_lines += (text := file.getvalue()).count("\n")
        if is_cut and drawn and n_lines > SCREEN_LINES:
            break
        drawn.append(text)
        widest = max(widest, len(document.places))
    if not drawn:
        return "", []
    letters = "; letters mark the systems that have one there" if widest else ""
    if widest > len(LETTERS):
        letters = "; beside it stands how many systems have one there, choose some with --only NAME"
    legend = (
        "A bar is the posterior probability, given the text alone, of a boundary before its "
        f"unit{letters}."
    )
    further = len(result.texts) - len(drawn)
    more = (
        f"{counted(further, 'further document')} not drawn here: choose with --document ID, or "
        "see all with -o boundaries.html."
    )
    return "".join(drawn), [*([more] if further else []), legend]


def _describe_facts(row: dict[str, Any]) -> str:
    """Say in a sentence what the posterior of a document rests on."""
    units = counted(row["units"], "unit")
    if row["reason"] is not None:
        return f"{units}; no posterior: {row['reason']}."
    return (
        f"{units}, about {row['assumed_segments'] or 0:.1f} segments assumed; the text adds "
        f"{row['information'] or 0:.2f} nats per boundary; mean probability of a gap "
        f"{format_value(row['mean_probability'], 'number')}."
    )


def format_probability(probability: float | None) -> str:
    """Two decimals, from `NOTICED` on.

    >>> format_probability(0.784), format_probability(0.999), format_probability(0.01)
    ('.78', '1.0', '')
    """
    if probability is None or probability < NOTICED:
        return ""
    return "1.0" if probability >= 0.995 else f"{probability:.2f}".removeprefix("0")


def _draw_lines(document: MappedDocument) -> Iterator[Text]:
    """Draw every unit as a line, or several on end without anything at their gaps as one."""
    from rich.text import Text

    happens = [
        bool(document.having(at)) or (probability or 0.0) >= NOTICED
        for at, probability in enumerate(document.probabilities, start=1)
    ]
    # The text's first and last unit are always drawn.
    is_quiet = [not (before or after) for before, after in pairwise([True, *happens, True])]
    digits = len(f"{len(document.units)}")
    before = [None, *document.probabilities]  # of every unit
    for quiet, group in groupby(range(len(document.units)), key=is_quiet.__getitem__):
        units = list(group)
        if quiet and len(units) >= FOLDED:
            known = [p for unit in units if (p := before[unit]) is not None]
            most = f", none above {max(known):.3f}" if known else ""
            yield Text(f"{'⋮':>{digits}}  {counted(len(units), 'unit')}{most}", style="dim")
            continue
        for unit in units:
            line = Text(f"{unit + 1:{digits}} ")
            line.append(_bar(before[unit] or 0.0), style="cyan")
            line.append(f"{format_probability(before[unit]):>4} ")
            names = document.having(unit)
            marks = (f"{len(names)}" if names else "").rjust(len(f"{len(document.places)}"))
            if document.has_letters:
                letters = zip(document.places, LETTERS, strict=False)
                marks = "".join(mark if name in names else NO_MARK for name, mark in letters)
            for mark in marks:
                line.append(mark, style="dim" if mark == NO_MARK else "bold green")
            line.append(f" [{document.clocks[unit]}]" if document.clocks else "", style="dim")
            line.append(f" {visible(' '.join(document.units[unit].split()))}")
            yield line


def _bar(probability: float) -> str:
    """Blocks, in eighths, of a share of `BAR` columns.

    >>> _bar(1.0) == "█" * BAR, _bar(0.0) == " " * BAR, _bar(1 / 8 / BAR)[0]
    (True, True, '▏')
    """
    whole, eighths = divmod(round(probability * BAR * 8), 8)
    return f"{'█' * whole}{EIGHTHS[eighths].strip()}".ljust(BAR)


# Explanations of scores


def draw_explanations(result: Result, *, color: bool, width: int | None) -> str:
    """Draw every document under every system, with what its boundaries do to the first metric."""
    from rich.text import Text

    out, file = console(color=color, width=width)
    explanations = result.table("explanations")
    metric = result.table("systems").column("metric")[0]
    rows = result.table("documents").records(metric=metric)
    for text, row in zip(result.texts, rows, strict=True):
        of = {"document": row["document"], "system": row["system"], "metric": metric}
        value = "undefined" if row["value"] is None else f"{row['value']:.3f}"
        title = f"{row['document']} · {row['system']} · {metric} {value}"
        lines = [Text(visible(title), style="bold")]
        found = explanations.records(**of)
        effects = {each["at"]: each for each in found if each["kind"] == "boundary"}
        for i, unit in enumerate(text.units):
            if i in effects:
                lines.append(_boundary_line(effects[i]))
            time = f"[{text.clocks[i]}] " if text.clocks else ""
            lines.append(Text(f"{i + 1:5}  {time}{visible(' '.join(unit.split()))}"))
        more = [each for each in found if each["kind"] == "addition"]
        said = "Every unit is a segment: there is no place for one more boundary."
        if more and more[0]["contribution"] < NEGLIGIBLE:
            said = "No further boundary would lower the loss."
        elif more:
            at, gain = more[0]["at"], more[0]["contribution"]
            said = f"One more boundary after unit {at} would lower the loss by {gain:.3f}."
        for line in [*lines, Text(f"       {said}\n", style="italic")]:
            out.print(line, no_wrap=True, overflow="ellipsis", crop=True)
    return file.getvalue()


def _boundary_line(effect: Mapping[str, Any]) -> Text:
    """Say what a boundary does, and whether it would do better elsewhere."""
    from rich.text import Text

    contribution, shift, gain = (
        effect[name] for name in ("contribution", "best_shift", "shift_gain")
    )
    if contribution is None:
        style, said = "dim", "its effect is undefined"
    elif abs(contribution) < NEGLIGIBLE:
        style, said = "yellow", "makes no difference"
    elif contribution > 0:
        style, said = "green", f"helps by {contribution:.3f}"
    else:
        style, said = "red", f"harms by {-contribution:.3f}"
    if shift and gain >= NEGLIGIBLE:
        side = "later" if shift > 0 else "earlier"
        said += f"; {counted(abs(shift), 'unit')} {side} would gain {gain:.3f}"
    return Text(f"  ─── {said} ───", style=style)
