"""What has changed since a baseline, in every output format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reffree.evaluate.table import rounded
from reffree.report.grid import Grid, OutputFormat, json_text, render_grids, shown, to_csv

if TYPE_CHECKING:
    from reffree.studies.changes import Changes

CSV_HEADER = (
    *("system", "metric", "before", "now", "difference", "ci_low", "ci_high", "p", "p_holm"),
    *("documents", "change", "direction", "alpha", "baseline", "signature"),
)


def render(result: Changes, format: OutputFormat, *, color: bool, width: int | None) -> str:
    """Write the changes as text; ``color`` and ``width`` matter to the terminal format only."""
    if format == "json":
        return json_text(result.to_dict())
    if format == "csv":
        rows = [
            [
                *(each.system, each.metric),
                *map(rounded, (each.before, each.now, each.difference, *(each.ci or (None, None)))),
                *map(rounded, (each.p, each.p_holm)),
                *(each.documents, each.change, each.direction),
                *(result.alpha, result.baseline, result.signature),
            ]
            for each in result.changes
        ]
        return to_csv(CSV_HEADER, rows)
    grid = Grid.of(
        ("system", "metric", "before", "now", "change", "95 % interval", "p Holm", "documents", ""),
        [
            (
                *(each.system, each.metric, shown(each.before), shown(each.now)),
                shown(rounded(each.difference), "+.3f"),
                "–" if each.ci is None else f"[{each.ci[0]:+.3f}, {each.ci[1]:+.3f}]",
                *(shown(rounded(each.p_holm), ".4f"), str(each.documents), each.change or "–"),
            )
            for each in result.changes
        ],
        n_labels=2,
    )
    worse = result.worse
    opening = (
        f"Worse than {result.baseline}: {'; '.join(worse)}."
        if worse
        else f"Nothing is worse than in {result.baseline}, as far as can be told."
    )
    legend = (
        "Every system against itself, paired over the documents scored both times; p from swapping "
        "then and now document by document, corrected (Holm) for all systems and metrics."
    )
    return render_grids(
        *([grid], [legend, *result.notes], result.signature, format),
        color=color,
        width=width,
        signature_first=True,
        opening=[opening],
    )
