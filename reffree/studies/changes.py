"""Whether systems have become worse since their scores were written: paired over documents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from reffree.data.corpus import GOLD
from reffree.evaluate.result import plain
from reffree.evaluate.table import ScoreTable, rounded
from reffree.formats.source import Source
from reffree.statistics.losses import Direction, as_loss
from reffree.statistics.paired import SWAPS, PairedTest, holm, paired_tests
from reffree.studies.comparison import ALPHA, values_by_document
from reffree.util.arrays import Floats
from reffree.util.errors import InputError, Place, counted, shorten

NOT_COMPARED = {
    *("metrics", "truncated", "device", "backend", "aggregation", "gold"),
    *("interval", "null", "seed", "reffree"),
}
"""Fields of signatures that may differ: those of the corpus, of the run, and metrics' own."""


@dataclass(frozen=True, slots=True)
class Change:
    """One system by one metric, before and now, on the documents scored both times."""

    system: str
    metric: str
    direction: Direction
    before: float | None
    now: float | None
    difference: float | None  # now - before
    ci: tuple[float, float] | None
    p: float | None
    p_holm: float | None  # corrected for all systems and metrics
    documents: int
    change: Literal["worse", "better"] | None  # None: cannot be told apart


@dataclass(frozen=True, slots=True)
class Changes:
    """Everything ``reffree compare --baseline`` prints, in one value."""

    signature: str
    baseline: str  # the file
    alpha: float
    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()

    @property
    def worse(self) -> list[str]:
        """Say of every system that has become worse by how much."""
        return [
            f"system {each.system!r}: {each.metric} was {each.before:.4g} and is {each.now:.4g} "
            f"over {counted(each.documents, 'document')} (corrected p {each.p_holm:.2g})"
            for each in self.changes
            if each.change == "worse"
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the structure of the JSON output."""
        made: dict[str, Any] = plain(self)
        return made


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
) -> Changes:
    """Hold a score table made with ``per_document=True`` against scores that were written before.

    Every system but gold is paired with itself over the documents scored both times, by every
    metric that both have; p-values are those of `compare`, corrected (Holm) for all of them.
    """
    _check_settings(table, baseline)
    found: list[tuple[str, str, PairedTest, Floats]] = []
    for metric in table.metrics:
        ids, now, weights = values_by_document(table, metric)
        for i, row in enumerate(table.systems):
            known = [baseline.scores.get((row.system, metric, id)) for id in ids]
            if row.system == GOLD or not any(known):
                continue
            before = np.array([np.nan if each is None else each[0] for each in known])
            weighed = np.array([1.0 if each is None else each[1] for each in known])
            values = np.stack([now[i], before])
            both = np.stack([weights[i], weighed])
            (test,) = paired_tests(values, both, [(0, 1)], np.random.default_rng(seed))
            found.append((row.system, metric, test, _means(values, both)))
    if not found:
        raise InputError(
            "no document, system and metric that both have",
            expected="scores of the same systems on the same documents",
            remedy="name systems and documents as they were",
            place=Place(file=baseline.file),
        )
    tested = [test.p for _, _, test, _ in found if test.p is not None]
    corrected = iter(holm(tested).tolist())
    directions = {name: table.systems[0].metrics[name].direction for name in table.metrics}
    changes = []
    for system, metric, test, (now_mean, before_mean) in found:
        p_holm = None if test.p is None else rounded(next(corrected))
        change: Literal["worse", "better"] | None = None
        if p_holm is not None and p_holm <= alpha and test.difference:
            losses = (as_loss(float(x), directions[metric]) for x in (now_mean, before_mean))
            change = "worse" if next(losses) > next(losses) else "better"
        changes.append(
            Change(
                system=system,
                metric=metric,
                direction=directions[metric],
                before=rounded(before_mean),
                now=rounded(now_mean),
                difference=test.difference,
                ci=test.ci,
                p=test.p,
                p_holm=p_holm,
                documents=test.documents,
                change=change,
            )
        )
    return Changes(
        signature=f"{table.signature}|test:paired-permutation({SWAPS})+holm|alpha:{alpha:g}",
        baseline=baseline.file,
        alpha=alpha,
        changes=tuple(changes),
        notes=(*table.notes, *_notes(table, baseline, [test for _, _, test, _ in found], alpha)),
    )


def _means(values: Floats, weights: Floats) -> Floats:
    """Weighted means of both rows over the documents where both are defined; NaN without any."""
    is_defined = ~np.isnan(values).any(axis=0) & (weights > 0).all(axis=0)
    if not is_defined.any():
        return np.full(2, np.nan)
    kept = weights[:, is_defined]
    means: Floats = (values[:, is_defined] * kept).sum(axis=1) / kept.sum(axis=1)
    return means


def _check_settings(table: ScoreTable, baseline: Baseline) -> None:
    """Refuse scores of another encoder, or otherwise made differently."""
    now = dict(part.split(":", 1) for part in table.signature.split("|"))
    shared = (now.keys() | baseline.signature.keys()) - NOT_COMPARED
    for name in sorted(shared):
        before, here = baseline.signature.get(name), now.get(name)
        if before != here:
            raise InputError(
                f"scores made with {name} {shorten(before or 'unset')}",
                expected=f"{shorten(here or 'unset')}, as now",
                remedy="score the baseline again with the settings of now, without --short",
                place=Place(file=baseline.file),
            )


def _notes(
    table: ScoreTable, baseline: Baseline, tests: list[PairedTest], alpha: float
) -> list[str]:
    notes = []
    here = {row.id for row in table.documents or ()}
    if here != baseline.documents:
        both = len(here & baseline.documents)
        notes.append(
            f"{counted(both, 'document')} in both; {len(here) - both:,} new and "
            f"{len(baseline.documents) - both:,} no longer there are left out."
        )
    smallest = min(1.0, len(tests) * min(test.smallest_p for test in tests))
    if smallest > alpha:
        notes.append(
            f"No change can be told at alpha {alpha:g}, however large: with "
            f"{counted(max(test.documents for test in tests), 'document')} and "
            f"{counted(len(tests), 'comparison')} the smallest corrected p is {smallest:.3g}."
        )
    return notes
