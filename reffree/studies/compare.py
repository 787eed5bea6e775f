"""Which system is better, and has one become worse? Score once, then test pairs over documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, replace
from itertools import chain, combinations, pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Unpack

import numpy as np

from reffree.data.corpus import Corpus
from reffree.encoders.embed import Vectors
from reffree.evaluate.metric_set import choose_metrics
from reffree.evaluate.result import Field, Result, Table, columns
from reffree.evaluate.score import refuse_medians, score
from reffree.evaluate.table import PartScore, ScoreTable, judged_by, rounded
from reffree.evaluate.verdict import GOLD, describe, rank
from reffree.formats.source import Source
from reffree.statistics.losses import as_loss
from reffree.statistics.paired import (
    EXACT_DOCUMENTS,
    SWAPS,
    PairedTest,
    letters,
    paired_tests,
    smallest_p,
)
from reffree.statistics.resampling import MIN_DOCUMENTS
from reffree.studies.keywords import StudyKeywords, UnsegmentedOption
from reffree.util.arrays import Floats
from reffree.util.bounds import check_limit
from reffree.util.declare import Option, declared
from reffree.util.errors import (
    InputError,
    OptionError,
    Place,
    counted,
    listed_briefly,
    shorten,
)

ALPHA = 0.05
MANY = 12
"""More systems than that are shown against their neighbours, not every pair."""

TEST = f"paired-permutation({SWAPS})+westfall-young"

Row = dict[str, Any]

SYSTEMS = (
    *columns("text", "system", "metric"),
    Field("value", "value", best="rank", beside="letters"),
    *columns("text", "letters", "group"),  # shared with those it cannot be told apart from
    *columns("count", "rank", "documents"),
    *columns("interval", "ci"),
    *columns("count", "segments"),
    *columns("text", "direction"),
)
GROUPS = (
    *columns("count", group="group", number="systems"),
    *columns("text", systems="which"),
    *columns("number", best="best", worst="worst"),
)
TESTED = (
    *columns("interval", ci="95 % interval"),
    *columns("p", p="p", p_corrected="p corrected"),
    *columns("count", "documents"),
)
PAIRS = (
    *columns("text", "metric", "a", "b"),
    *columns("difference", difference="a − b"),
    *TESTED,
    *columns("text", "better"),
    *columns("number", value_a="", value_b=""),
    *columns("text", letters_a="", letters_b="", direction=""),
)
NEIGHBOURS = (
    *columns("text", "system", next_better="next better"),
    *columns("difference", difference="system − next better"),
    *TESTED,
)
CHANGES = (
    *columns("text", "system", "metric"),
    *columns("number", "before", "now"),
    *columns("difference", difference="change"),
    *TESTED,
    *columns("text", change="worse or better", direction=""),
)
CHANGES_LEGEND = (
    "Every system against itself, paired over the documents scored both times; p from swapping "
    "then and now document by document, corrected (Westfall and Young) for all systems and metrics."
)
NOT_COMPARED = {
    *("metrics", "truncated", "device", "backend", "aggregation", "gold"),
    *("interval", "null", "seed", "reffree"),
}
"""Fields of signatures that a baseline may differ in: of the corpus, of the run, metrics' own."""


@declared
def compare(
    corpus: Corpus,
    *,
    metrics: Annotated[
        Sequence[str] | None,
        Option(
            "Metric, as in reffree score; may be repeated.", flag="-m/--metric", names="metrics"
        ),
    ] = None,
    alpha: Annotated[
        float, Option("Systems are told apart where the corrected p is at most this.")
    ] = ALPHA,
    unsegmented: UnsegmentedOption = "neutral",
    embeddings: Vectors | None = None,
    **keywords: Unpack[StudyKeywords],
) -> Result:
    """Which system is better, paired over documents.

    For every metric: a ranking, with letters for systems that cannot be told apart, and every
    pair's difference over the documents where both have a score, with its interval, its
    permutation p and the p corrected for all pairs of the metric (Westfall and Young). Of more than
    12 systems people are shown each against the next best; all pairs are in ``--table pairs``.
    """
    if not 0 < alpha < 1:
        raise OptionError(
            f"alpha = {alpha}", expected="a number between 0 and 1", remedy="use 0.05 if in doubt"
        )
    if len(corpus.hypotheses) < 2:
        raise InputError(
            f"too few systems to compare ({', '.join(map(repr, corpus.hypotheses)) or 'none'})",
            expected="at least two, gold included where every document has it",
            remedy='add "systems" to the corpus, or pass --system NAME=FILE',
            place=corpus[0].place,
        )
    check_limit("compared_systems", n := len(corpus.hypotheses), f"{n:,} systems to compare")
    seed, offline = keywords.get("seed", 0), keywords.get("offline", False)
    chosen = choose_metrics(metrics, corpus, seed=seed, offline=offline)
    refuse_medians(chosen, "compare, which tests differences of means")
    table = score(
        corpus,
        metrics=metrics,
        embeddings=embeddings,
        per_document=True,
        unsegmented=unsegmented,
        **keywords,
    )
    return compare_table(table, alpha=alpha, seed=seed)


def compare_table(table: ScoreTable, *, alpha: float = ALPHA, seed: int = 0) -> Result:
    """Compare the systems of a score table made with ``per_document=True``."""
    judge = judged_by(table.metrics)
    at = list(combinations(range(len(table.systems)), 2))
    ranked, pairs, hopeless = {}, {}, dict[str, list[str]]()
    for metric in table.metrics:
        _, values, weights = values_by_document(table, metric)
        tests = paired_tests(values, weights, at, np.random.default_rng(seed))
        ranked[metric], pairs[metric] = _compare_metric(table, metric, tests, alpha)
        if remark := _out_of_reach(tests, alpha):
            hopeless.setdefault(remark, []).append(metric)
    notes = [
        f"{metric}: the ranking's values come from different documents; every pair is compared on "
        "the documents where both systems have a score."
        for metric in table.metrics
        if metric in table.incomparable
    ]
    for remark, metrics in hopeless.items():
        notes.append(remark if len(metrics) == len(ranked) else f"{', '.join(metrics)}: {remark}")
    apart = {frozenset((pair["a"], pair["b"])) for pair in pairs[judge] if pair["better"]}
    value_of = {row["system"]: row["value"] for row in ranked[judge]}
    order, is_many = list(value_of), len(value_of) > MANY
    tables, fields = [], SYSTEMS
    if is_many:
        groups, rest = list[list[str]](), [each for each in order if value_of[each] is not None]
        while rest:  # the first one left, and those that cannot be told from it
            groups.append([each for each in rest if {rest[0], each} not in apart])
            rest = [each for each in rest if {rest[0], each} in apart]
        group_of = {system: str(n) for n, group in enumerate(groups, 1) for system in group}
        for row in ranked[judge]:
            row["group"] = group_of.get(row["system"])
        listing = [
            (n, len(each), listed_briefly(each), value_of[each[0]], value_of[each[-1]])
            for n, each in enumerate(groups, 1)
        ]
        title = f"Groups by {judge}: none of a group can be told from its first"
        tables.append(Table.of("groups", title, GROUPS, listing))
        fields = (*SYSTEMS[:2], replace(SYSTEMS[2], beside="group"), *SYSTEMS[3:])
    systems = sorted(chain(*ranked.values()), key=lambda row: order.index(row["system"]))
    tables.append(Table.of("systems", "", fields, systems, wide="metric"))
    if is_many:
        rows = [
            {"system": system, "next_better": better} | _minus(pairs[judge], system, better)
            for better, system in pairwise(each for each in order if value_of[each] is not None)
        ]
        title = f"Each system against the next best, by {judge}"
        tables.append(Table.of("neighbours", title, NEIGHBOURS, rows))
    every = [*chain(*pairs.values())]
    tables.append(Table.of("pairs", "Every pair of systems", PAIRS, every, shown=not is_many))
    has_power = all(judge not in metrics for metrics in hopeless.values())
    return Result(
        command="compare",
        question="Which system is better?",
        verdict=_verdict(table, ranked, pairs[judge], apart, has_power=has_power),
        signature=f"{table.signature}|test:{TEST}|alpha:{alpha:g}",
        settings={"alpha": alpha, "seed": seed},
        corpora=(dict(table.corpus),),
        tables=tuple(tables),
        notes=(*table.notes, *notes),
        legend=_legend(table, every, alpha, is_many=is_many),
    )


def _minus(pairs: Sequence[Row], system: str, better: str) -> Row:
    """Return the test of a pair as the one system's value minus the better one's."""
    pair = next(pair for pair in pairs if {pair["a"], pair["b"]} == {system, better})
    if pair["a"] == system or pair["difference"] is None:
        return pair
    ci = pair["ci"] and (-pair["ci"][1], -pair["ci"][0])
    return pair | {"difference": -pair["difference"], "ci": ci}


def _legend(
    table: ScoreTable, pairs: Sequence[Row], alpha: float, *, is_many: bool
) -> tuple[str, ...]:
    """Say how to read the tables."""
    scores = table.systems[0].metrics
    higher = [name for name, score in scores.items() if score.direction == "higher"]
    direction = "Lower is better" + (f" (higher for {', '.join(higher)})" if higher else "")
    alike = "systems that share a letter cannot be told apart"
    if is_many:
        alike = "none of a group can be told from its first"
    sentences = [
        f"{counted(table.corpus['documents'], 'document')}, "
        f"{counted(table.corpus['units'], 'unit')}. {direction}; {alike} at alpha {alpha:g}.",
        "Documents are the unit: differences are over the documents both have a score for; p from "
        "swapping the two systems document by document, p corrected for all pairs of the metric "
        "(Westfall and Young), intervals not corrected.",
    ]
    if any(pair["ci"] is None for pair in pairs):
        sentences.append(
            f"No interval: fewer than {MIN_DOCUMENTS} documents with a score from both systems."
        )
    if is_many:
        sentences.append(f"All {len(pairs):,} pairs: --table pairs, or as CSV or JSON.")
    return tuple(sentences)


def _verdict(
    table: ScoreTable,
    ranked: Mapping[str, list[Row]],
    pairs: Sequence[Row],
    apart: Set[frozenset[str]],
    *,
    has_power: bool,
) -> tuple[str, ...]:
    """Say who is best by the metric to judge by, and by how many of all."""
    metric = judged_by(table.metrics)
    if metric in table.incomparable:
        return table.verdict
    every = {
        name: rank(name, rows[0]["direction"], {row["system"]: row["value"] for row in rows})
        for name, rows in ranked.items()
    }
    rivals = every[metric]
    best, *others = rivals.values or [GOLD]
    opening = describe(best, {row.system: row.metrics for row in table.systems})
    if not others:
        return tuple(rivals.sentences(opening))
    nearest = _minus(pairs, others[0], best)
    sentences = replace(
        rivals,
        ci=nearest["ci"],
        p=nearest["p_corrected"],
        comparisons=len(pairs),
        unlike=frozenset(system for system in others if {system, best} in apart),
        has_power=has_power,
    ).sentences(opening)
    if len(ranked) > 1:
        n_best = sum(each.best == best for each in every.values())
        sentences.append(f"It is best by {n_best} of {len(ranked)} metrics.")
    return tuple(sentences)


def values_by_document(table: ScoreTable, metric: str) -> tuple[list[str], Floats, Floats]:
    """Return documents' ids, values and weights (systems, documents), NaN where undefined.

    Losses are linear in raw scores, so the mean of losses is the loss of the mean. They are
    rounded as in the output: what batching can change must not break a tie. As in the corpus
    score, a document with a score but no weight counts as much as the system's average one.
    """
    if table.documents is None:
        raise InputError(
            "a score table without documents",
            expected="every document's scores",
            remedy="make it with per_document=True",
        )
    ids = list(dict.fromkeys(row.id for row in table.documents))
    found = {(row.system, row.id): row.metrics[metric] for row in table.documents}
    parts = [
        [found.get((row.system, id), PartScore(None, None)) for id in ids] for row in table.systems
    ]
    values = [[rounded(part.value) for part in row] for row in parts]
    weights = [[1.0 if part.weight is None else part.weight for part in row] for row in parts]
    return ids, np.array(values, dtype=np.float64), np.array(weights)


def _compare_metric(
    table: ScoreTable, metric: str, tests: Sequence[PairedTest], alpha: float
) -> tuple[list[Row], list[Row]]:
    """Return the rows of a metric's systems, best first, and those of its pairs."""
    scores = {row.system: row.metrics[metric] for row in table.systems}
    losses = {system: score.loss for system, score in scores.items()}
    direction = next(iter(scores.values())).direction
    ranking = sorted(scores, key=losses.__getitem__)  # those without a value last
    known = [system for system in ranking if scores[system].value is not None]
    pairs: list[Row] = []
    for (a, b), test in zip(combinations(scores, 2), tests, strict=True):
        better = None
        if test.difference is not None and (test.p_corrected or 0.0) <= alpha:
            better = a if (test.difference < 0) == (direction == "lower") else b
            if direction == "toward_1":
                better = min(a, b, key=losses.__getitem__)
        row = {"metric": metric, "a": a, "b": b, **asdict(test), "better": better}
        row |= {"value_a": scores[a].value, "value_b": scores[b].value, "direction": direction}
        pairs.append(row)
    groups = letters(known, [(pair["a"], pair["b"]) for pair in pairs if pair["better"]])
    for pair in pairs:
        pair |= {f"letters_{side}": groups.get(pair[side], "") for side in "ab"}
    systems: list[Row] = []
    n_segments = {row.system: row.segments for row in table.systems}
    for system in ranking:
        place = sum(loss < losses[system] for loss in losses.values()) + 1
        row = {"system": system, "metric": metric, "value": rounded(scores[system].value)}
        row |= {"letters": groups.get(system, ""), "documents": scores[system].documents}
        row |= {"rank": place if system in groups else None, "direction": direction}
        systems.append(row | {"ci": scores[system].ci, "segments": n_segments[system]})
    return systems, pairs


def _out_of_reach(tests: Sequence[PairedTest], alpha: float) -> str | None:
    """Say it where no difference, however large, could be found."""
    n_documents = max(test.documents for test in tests)
    smallest = smallest_p(n_documents)
    if not n_documents or smallest <= alpha:
        return None
    enough = (n for n in range(EXACT_DOCUMENTS + 2) if smallest_p(n) <= alpha)
    needed = "".join(f"; {n} would be enough to tell a large one" for n in [*enough][:1])
    return (
        f"No difference can be told at alpha {alpha:g}, however large: with "
        f"{counted(n_documents, 'document')} the smallest p is {smallest:.3g}{needed}."
    )


class Baseline(NamedTuple):
    """Scores by document that were written before."""

    file: str
    signature: dict[str, str]
    scores: dict[tuple[str, str, str], tuple[float, float]]  # by system, metric, document
    documents: frozenset[str]


def read_baseline(path: Path | str) -> Baseline:
    """Read what ``reffree score --per-document -f json`` has written."""
    data: Any = Source(path).json
    try:
        scores = {}
        for row in data["documents"]:
            for name, part in row["metrics"].items():
                if part["value"] is not None:
                    at = str(row["system"]), str(name), str(row["id"])
                    scores[at] = float(part["value"]), float(part.get("weight", 1.0))
        documents = frozenset(str(row["id"]) for row in data["documents"])
        return Baseline(str(path), _fields(data["signature"]), scores, documents)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(
            "no scores by document",
            expected="what reffree score --per-document -f json writes",
            remedy="make it with reffree score … --per-document -o baseline.json",
            place=Place(file=str(path)),
        ) from None


def _fields(signature: str) -> dict[str, str]:
    return dict(part.split(":", 1) for part in signature.split("|"))


def _check_settings(table: ScoreTable, baseline: Baseline) -> None:
    """Refuse scores of another encoder, or otherwise made differently."""
    settings, then = _fields(table.signature), baseline.signature
    for name in sorted((settings.keys() | then.keys()) - NOT_COMPARED):
        if then.get(name) != settings.get(name):
            raise InputError(
                f"scores made with {name} {shorten(then.get(name) or 'unset')}",
                expected=f"{shorten(settings.get(name) or 'unset')}, as now",
                remedy="score the baseline again with the settings of now",
                place=Place(file=baseline.file),
            )


def changes_since(
    table: ScoreTable, baseline: Baseline, *, alpha: float = ALPHA, seed: int = 0
) -> Result:
    """Hold a score table made with ``per_document=True`` against scores that were written before.

    Every system but gold is paired with itself over the documents scored both times, by every
    metric that both have; p-values are those of `compare`, corrected for all of them together.
    """
    _check_settings(table, baseline)
    found: list[tuple[str, str]] = []
    sides: list[Floats] = []  # now, then, now, then, …: values and weights
    for metric in table.metrics:
        ids, *now = values_by_document(table, metric)
        for row, value, weight in zip(table.systems, *now, strict=True):
            known = [baseline.scores.get((row.system, metric, id)) for id in ids]
            if row.system != GOLD and any(known):
                found.append((row.system, metric))
                then = np.array([each or (np.nan, 1.0) for each in known]).T
                sides += [np.stack([value, weight]), then]
    if not found:
        raise InputError(
            "no document, system and metric that both have",
            expected="scores of the same systems on the same documents",
            remedy="name systems and documents as they were",
            place=Place(file=baseline.file),
        )
    values, weights = np.stack(sides, axis=1)  # (sides, documents) each
    pairs = [(at, at + 1) for at in range(0, len(sides), 2)]
    tests = paired_tests(values, weights, pairs, np.random.default_rng(seed))
    rows: list[Row] = []
    for (system, metric), test, at in zip(found, tests, map(list, pairs), strict=True):
        direction = table.systems[0].metrics[metric].direction
        is_common = ~np.isnan(values[at]).any(0) & (weights[at] > 0).all(0)
        means, change = [None, None], None
        if test.p_corrected is not None:
            both, weight = values[at][:, is_common], weights[at][:, is_common]
            means = np.average(both, axis=1, weights=weight).tolist()
            here, there = (as_loss(mean, direction) for mean in means)
            if test.p_corrected <= alpha:
                change = "worse" if here > there else "better"
        own = {"system": system, "metric": metric, "now": means[0], "before": means[1]}
        rows.append(own | asdict(test) | {"change": change, "direction": direction})
    changes = Table.of("changes", "Every system then and now", CHANGES, rows)
    verdict = f"Nothing is worse than in {baseline.file}, as far as can be told."
    if worse := worse_systems(changes):
        verdict = f"Worse than {baseline.file}: {'; '.join(worse)}."
    notes = []
    here, there = {row.id for row in table.documents or ()}, baseline.documents
    if here != there:
        notes.append(
            f"{counted(len(here & there), 'document')} in both; {len(here - there):,} new and "
            f"{len(there - here):,} no longer there are left out."
        )
    return Result(
        command="compare",
        question="Which systems have become worse?",
        verdict=(verdict,),
        signature=f"{table.signature}|test:{TEST}|alpha:{alpha:g}",
        settings={"baseline": baseline.file, "alpha": alpha, "seed": seed},
        corpora=(dict(table.corpus),),
        tables=(changes,),
        notes=(*table.notes, *notes, *filter(None, [_out_of_reach(tests, alpha)])),
        legend=(CHANGES_LEGEND,),
    )


def worse_systems(changes: Table) -> list[str]:
    """Say of every system that has become worse by how much, from the table of changes."""
    return [
        f"system {row['system']!r}: {row['metric']} was {row['before']:.4g} and is "
        f"{row['now']:.4g} over {counted(int(row['documents']), 'document')} "
        f"(corrected p {row['p_corrected']:.2g})"
        for row in changes.records(change="worse")
    ]
