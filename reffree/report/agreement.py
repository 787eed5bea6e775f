"""Agreement between annotators in every output format."""

from __future__ import annotations

from dataclasses import asdict

from reffree.report.grid import Grid, OutputFormat, json_text, render_grids, shown, to_csv
from reffree.studies.annotators import CorpusAgreement
from reffree.util.errors import counted


def render(result: CorpusAgreement, format: OutputFormat, *, color: bool, width: int | None) -> str:
    """Write an agreement as text; ``color`` and ``width`` matter to the terminal format only."""
    if format == "json":
        return json_text(result.to_dict())
    found = result.agreement
    if format == "csv":
        values = {**asdict(found), "signature": result.signature}
        return to_csv(values, [values.values()])
    rows = [
        ("multi-π (Fleiss)", found.pi, found.expected_pi),
        ("multi-κ (Davies and Fleiss)", found.kappa, found.expected_kappa),
    ]
    grid = Grid.of(
        ("coefficient", "value", "observed", "by chance"),
        (
            (name, shown(value), shown(found.observed), shown(expected))
            for name, value, expected in rows
        ),
    )
    size = (
        f"{counted(found.n_documents, 'document')}, {counted(found.n_annotators, 'annotator')}, "
        f"{counted(found.n_pairs, 'pair')} of segmentations; mean boundary similarity "
        f"{found.mean_similarity:.3f}."
    )
    undefined = [f"Undefined: {found.undefined}."] if found.undefined else []
    remarks = [size, *undefined, *result.notes]
    return render_grids(
        *([grid], remarks, result.signature, format),
        color=color,
        width=width,
        command="agreement",
        question="How far do annotators agree?",
    )
