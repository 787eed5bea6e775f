"""Whether systems have become worse since their scores were written: paired over documents."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reffree.data.corpus import GOLD
from reffree.evaluate.result import Result, Table, columns
from reffree.evaluate.table import ScoreTable
from reffree.formats.source import Source
from reffree.statistics.losses import as_loss
from reffree.statistics.paired import PairedTest, paired_tests
from reffree.studies.compare import ALPHA, TEST, TESTED, out_of_reach, values_by_document
from reffree.util.arrays import Floats
from reffree.util.errors import InputError, Place, counted, shorten

NOT_COMPARED = {
    *("metrics", "truncated", "device", "backend", "aggregation", "gold"),
    *("interval", "null", "seed", "reffree"),
}
"""Fields of signatures that may differ: those of the corpus, of the run, and metrics' own."""

FIELDS = (
    *columns("text", "system", "metric"),
    *columns("number", "before", "now"),
    *columns("difference", difference="change"),
    *TESTED,
    *columns("text", change="worse or better", direction=""),
)
LEGEND = (
    "Every system against itself, paired over the documents scored both times; p from swapping "
    "then and now document by document, corrected (Westfall and Young) for all systems and metrics."
)


@dataclass(frozen=True, slots=True)
class Baseline:
    """Scores by document that were written before."""

    file: str
    signature: dict[str, str]
    scores: dict[tuple[str, str, str], tuple[float, float]]  # by system, metric, document
    documents: frozenset[str]


def read_baseline(path: Path | str) -> Baseline:
    """Read what ``reffree score --per-document -f json`` has written."""
    place = Place(file=str(path))
    data = Source(path).json
    try:
        assert isinstance(data, dict)
        signature = dict(part.split(":", 1) for part in data["signature"].split("|"))
        scores = {}
        for row in data["documents"]:
            for name, part in row["metrics"].items():
                if part["value"] is not None:
                    at = str(row["system"]), str(name), str(row["id"])
                    scores[at] = float(part["value"]), float(part.get("weight", 1.0))
        documents = frozenset(str(row["id"]) for row in data["documents"])
    except (AssertionError, AttributeError, KeyError, TypeError, ValueError):
        raise InputError(
            "no scores by document",
            expected="what reffree score --per-document -f json writes",
            remedy="make it with reffree score … --per-document -o baseline.json",
            place=place,
        ) from None
    return Baseline(str(path), signature, scores, documents)


def changes_since(
    table: ScoreTable, baseline: Baseline, *, alpha: float = ALPHA, seed: int = 0
) -> Result:
    """Hold a score table made with ``per_document=True`` against scores that were written before.

    Every system but gold is paired with itself over the documents scored both times, by every
    metric that both have; p-values are those of `compare`, corrected for all of them together.
    """
    _check_settings(table, baseline)
    found: list[tuple[str, str]] = []
    values, weights = list[Floats](), list[Floats]()  # now, then, now, then, …
    for metric in table.metrics:
        ids, now, weighed = values_by_document(table, metric)
        for i, row in enumerate(table.systems):
            known = [baseline.scores.get((row.system, metric, id)) for id in ids]
            if row.system != GOLD and any(known):
                found.append((row.system, metric))
                before = np.array([each or (np.nan, 1.0) for each in known]).T
                values += [now[i], before[0]]
                weights += [weighed[i], before[1]]
    if not found:
        raise InputError(
            "no document, system and metric that both have",
            expected="scores of the same systems on the same documents",
            remedy="name systems and documents as they were",
            place=Place(file=baseline.file),
        )
    pairs = [(at, at + 1) for at in range(0, len(values), 2)]
    tests = paired_tests(np.stack(values), np.stack(weights), pairs, np.random.default_rng(seed))
    rows: list[dict[str, Any]] = []
    for (system, metric), test, (at, _) in zip(found, tests, pairs, strict=True):
        direction = table.systems[0].metrics[metric].direction
        both, weight = np.stack(values[at : at + 2]), np.stack(weights[at : at + 2])
        is_common = ~np.isnan(both).any(0) & (weight > 0).all(0)
        means, change = [None, None], None
        if test.p_corrected is not None:
            means = np.average(both[:, is_common], axis=1, weights=weight[:, is_common]).tolist()
            here, there = (as_loss(mean, direction) for mean in means)
            if test.p_corrected <= alpha:
                change = "worse" if here > there else "better"
        own = {"system": system, "metric": metric, "now": means[0], "before": means[1]}
        rows.append(own | asdict(test) | {"change": change, "direction": direction})
    changes = Table.of("changes", "Every system then and now", FIELDS, rows)
    worse = worse_systems(changes)
    verdict = (
        f"Worse than {baseline.file}: {'; '.join(worse)}."
        if worse
        else f"Nothing is worse than in {baseline.file}, as far as can be told."
    )
    return Result(
        command="compare",
        question="Which systems have become worse?",
        verdict=(verdict,),
        signature=f"{table.signature}|test:{TEST}|alpha:{alpha:g}",
        settings={"baseline": baseline.file, "alpha": alpha, "seed": seed},
        corpora=(dict(table.corpus),),
        tables=(changes,),
        notes=(*table.notes, *_notes(table, baseline, tests, alpha)),
        legend=(LEGEND,),
    )


def worse_systems(changes: Table) -> list[str]:
    """Say of every system that has become worse by how much, from the table of changes."""
    return [
        f"system {row['system']!r}: {row['metric']} was {row['before']:.4g} and is "
        f"{row['now']:.4g} over {counted(int(row['documents']), 'document')} "
        f"(corrected p {row['p_corrected']:.2g})"
        for row in changes.records(change="worse")
    ]


def _check_settings(table: ScoreTable, baseline: Baseline) -> None:
    """Refuse scores of another encoder, or otherwise made differently."""
    now = dict(part.split(":", 1) for part in table.signature.split("|"))
    for name in sorted((now.keys() | baseline.signature.keys()) - NOT_COMPARED):
        before, here = baseline.signature.get(name), now.get(name)
        if before != here:
            raise InputError(
                f"scores made with {name} {shorten(before or 'unset')}",
                expected=f"{shorten(here or 'unset')}, as now",
                remedy="score the baseline again with the settings of now",
                place=Place(file=baseline.file),
            )


def _notes(
    table: ScoreTable, baseline: Baseline, tests: list[PairedTest], alpha: float
) -> list[str]:
    """Say which documents are in only one of the two, and whether any change could be found."""
    notes = []
    here = {row.id for row in table.documents or ()}
    if here != baseline.documents:
        both = len(here & baseline.documents)
        notes.append(
            f"{counted(both, 'document')} in both; {len(here) - both:,} new and "
            f"{len(baseline.documents) - both:,} no longer there are left out."
        )
    remark = out_of_reach(tests, alpha)
    return notes if remark is None else [*notes, remark]
