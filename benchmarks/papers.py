"""Write ``benchmarks/papers.md``: what five papers say, what reffree gets, and why they differ.

The rows are in ``benchmarks/results/papers/*.json``, a list of objects a file, each with the
`KEYS` as strings; a file that is anything else is refused with a sentence, before anything is
written.

    python benchmarks/papers.py
    python benchmarks/papers.py --check
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
ROWS = HERE / "results" / "papers"
TABLE = HERE / "papers.md"

KEYS = {
    "paper": "its first author and year",
    "where": "the table, figure or section",
    "what": "the quantity",
    "says": "the paper's figure",
    "we_get": "ours, with the corpus it is of",
    "why": "why they differ, or that they do not",
    "command": "what gives our figure",
}
"""Fields of a row and what is in them."""

PAPERS = {
    "Ghinassi 2024": "Ghinassi, Wang, Newell and Purver 2024, *When Cohesion Lies in the Embedding "
    "Space: Embedding-Based Reference-Free Metrics for Topic Segmentation*",
    "Coen": "Coen, *When F1 Fails: Granularity-Aware Evaluation for Dialogue Topic Segmentation* "
    "(preprint)",
    "Georgescul 2006": "Georgescul, Clark and Armstrong 2006, *An Analysis of Quantitative Aspects "
    "in the Evaluation of Thematic Segmentation Algorithms*",
    "Ocampo Diaz 2022": "Ocampo Diaz and Ouyang 2022, *An Alignment-Based Approach to Text "
    "Segmentation Similarity Scoring*",
    "Ocampo Diaz 2024": "Ocampo Diaz and Ouyang 2024, *Measuring Cross-Text Cohesion for "
    "Segmentation Similarity Scoring*",
}
"""Papers in the order of the page; a row names one of them by these words, in any spelling."""

OPENING = """# The papers' figures, and ours

A row for every figure of a paper that reffree was held against: what the paper says, what the
command gives here, and why the two differ. Corpora are named where a figure is of one; those that
are not the paper's cannot give its figure, and then it is the order and the shape that count.

```console
$ python benchmarks/papers.py
```

Run again on 0.5: every row that is one line of Python; of Coen, Tables 3 and 4 but for CSM, and
Figures 1 and 3; the three supervised systems on TIAGE. All other rows are as measured on 0.4 and
before, whose scores 0.5 keeps.
"""

Row = Mapping[str, str]


class RowError(ValueError):
    """A row that cannot be shown, in a sentence."""


def paper_of(name: str) -> str | None:
    """Return the key in `PAPERS` whose every word a row's name of its paper has.

    >>> paper_of("Ocampo Diaz & Ouyang (2024)"), paper_of("coen-when-f1-fails"), paper_of("Choi")
    ('Ocampo Diaz 2024', 'Coen', None)
    """
    for key in PAPERS:
        if all(word in name.casefold() for word in key.casefold().split()):
            return key
    return None


def read_rows(path: Path) -> list[Row]:
    """Read one file of rows; raise `RowError` for anything that is none."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise RowError(f"{path.name}: found no JSON ({error}); expected a list of rows.") from None
    if not isinstance(rows, list) or not rows:
        raise RowError(f"{path.name}: found {type(rows).__name__}; expected a list of rows.")
    for number, row in enumerate(rows, 1):
        place = f"{path.name}, row {number}"
        if not isinstance(row, dict):
            raise RowError(f"{place}: found {type(row).__name__}; expected an object.")
        for key, meaning in KEYS.items():
            value = row.get(key)
            if not isinstance(value, str) or not value.strip():
                found = "no" if key not in row else f"{value!r} as"
                raise RowError(f"{place}: found {found} {key!r}; expected {meaning}, as a string.")
        for key in row.keys() - KEYS.keys():
            raise RowError(f"{place}: found {key!r}; expected only {', '.join(KEYS)}.")
        if paper_of(row["paper"]) is None:
            raise RowError(
                f"{place}: found the paper {row['paper']!r}; expected one of {', '.join(PAPERS)}."
            )
    return rows


def place_in_paper(where: str) -> tuple[int, list[int]]:
    """Sort tables before figures before sections, each by number.

    >>> sorted(["§4.3", "Figure 2", "Table 10", "Table 9"], key=place_in_paper)
    ['Table 9', 'Table 10', 'Figure 2', '§4.3']
    """
    kinds = [word in where.casefold() for word in ("table", "figure")]
    return [*kinds, True].index(True), [int(number) for number in re.findall(r"\d+", where)]


def cell(text: str) -> str:
    """Fit text into a cell: one line, without bars of its own."""
    return " ".join(text.split()).replace("|", r"\|")


def code(command: str) -> str:
    """Set a command in a cell's code, which may itself have a bar."""
    return f"`{cell(command).strip('`')}`"


def page(rows: Iterable[Row]) -> str:
    """Markdown of all rows, by paper."""
    by_paper: dict[str, list[Row]] = {key: [] for key in PAPERS}
    for row in rows:
        by_paper[str(paper_of(row["paper"]))].append(row)
    parts = [OPENING]
    for key, found in by_paper.items():
        if found:
            parts += [f"## {PAPERS[key]}\n", paper_table(found)]
    return "\n".join(parts)


def paper_table(rows: Sequence[Row]) -> str:
    """Markdown of one paper's rows, in the paper's order."""
    lines = [
        "| where | what | paper | reffree | why they differ | command |",
        "|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: place_in_paper(row["where"])):
        cells = [cell(row[key]) for key in ("where", "what", "says", "we_get", "why")]
        lines.append(f"| {' | '.join([*cells, code(row['command'])])} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page; with ``--check`` only look at the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="check the rows and write nothing")
    arguments = parser.parse_args()
    try:
        rows = [row for path in sorted(ROWS.glob("*.json")) for row in read_rows(path)]
    except RowError as error:
        sys.exit(str(error))
    if not arguments.check:
        TABLE.write_text(page(rows), encoding="utf-8")
    print(f"{len(rows)} rows")


if __name__ == "__main__":
    main()
