"""Agreement between annotators in every output format."""

from __future__ import annotations

from dataclasses import asdict

from reffree.errors import counted
from reffree.report.grid import Cell, Grid, json_text, latex_page, markdown_page, to_csv
from reffree.report.score import OutputFormat
from reffree.report.terminal import render_terminal
from reffree.studies.annotators import CorpusAgreement


def render(result: CorpusAgreement, format: OutputFormat, *, color: bool, width: int | None) -> str:
    """Write an agreement as text; ``color`` and ``width`` matter to the terminal format only."""
    if format == "json":
        return json_text(result.to_dict())
    if format == "csv":
        values = {**asdict(result.agreement), "signature": result.signature}
        return to_csv(list(values), [list(values.values())])
    found = result.agreement
    rows = [
        ("multi-π (Fleiss)", found.pi, found.expected_pi),
        ("multi-κ (Davies and Fleiss)", found.kappa, found.expected_kappa),
    ]
    grid = Grid(
        ("coefficient", "value", "observed", "by chance"),
        tuple(
            (Cell(name), _number(value), _number(found.observed), _number(expected))
            for name, value, expected in rows
        ),
    )
    size = (
        f"{counted(found.n_documents, 'document')}, {counted(found.n_annotators, 'annotator')}, "
        f"{counted(found.n_pairs, 'pair')} of segmentations; mean boundary similarity "
        f"{found.mean_similarity:.3f}."
    )
    remarks = [size, *([f"Undefined: {found.undefined}."] if found.undefined else [])]
    remarks += result.notes
    if format == "table":
        return render_terminal([grid], [*remarks, result.signature], color=color, width=width)
    if format == "md":
        return markdown_page([grid], remarks, result.signature)
    return latex_page([grid], [*remarks, result.signature])


def _number(value: float | None) -> Cell:
    return Cell("–" if value is None else f"{value:.3f}")
