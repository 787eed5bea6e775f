"""Which system is better: score once, then compare every pair over documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain, combinations, pairwise
from typing import Annotated, Any, Unpack

import numpy as np

from reffree.data.corpus import Corpus
from reffree.encoders.embed import Vectors
from reffree.evaluate.metric_set import choose_metrics
from reffree.evaluate.result import Field, Result, Table, columns
from reffree.evaluate.score import refuse_medians, score
from reffree.evaluate.table import ScoreTable, judged_by, rounded
from reffree.evaluate.verdict import GOLD, describe, rank
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
from reffree.util.errors import InputError, OptionError, counted, listed_briefly

ALPHA = 0.05
SHARED = "systems that share a letter cannot be told apart"
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
        listed = ", ".join(map(repr, corpus.hypotheses)) or "none"
        raise InputError(
            f"too few systems to compare ({listed})",
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
    at = list(combinations(range(len(table.systems)), 2))
    judge = judged_by(table.metrics)
    ranked, pairs, hopeless = {}, {}, dict[str, list[str]]()
    for metric in table.metrics:
        _, values, weights = values_by_document(table, metric)
        tests = paired_tests(values, weights, at, np.random.default_rng(seed))
        ranked[metric], pairs[metric] = _compare_metric(table, metric, tests, alpha)
        if remark := out_of_reach(tests, alpha):
            hopeless.setdefault(remark, []).append(metric)
    notes = [
        f"{metric}: the ranking's values come from different documents; every pair is compared on "
        "the documents where both systems have a score."
        for metric in table.metrics
        if metric in table.incomparable
    ]
    for remark, metrics in hopeless.items():
        where = "" if len(metrics) == len(ranked) else f"{', '.join(metrics)}: "
        notes.append(where + remark)
    order = [row["system"] for row in ranked[judge]]
    is_many = len(order) > MANY
    tables, fields = [], SYSTEMS
    if is_many:
        known = [row["system"] for row in ranked[judge] if row["rank"] is not None]
        groups = _groups(known, pairs[judge])
        for number, group in enumerate(groups, 1):
            for row in ranked[judge]:
                row |= {"group": str(number)} if row["system"] in group else {}
        value_of = {row["system"]: row["value"] for row in ranked[judge]}
        listing = [
            (i, len(each), listed_briefly(each), value_of[each[0]], value_of[each[-1]])
            for i, each in enumerate(groups, 1)
        ]
        title = f"Groups by {judge}: none of a group can be told from its first"
        tables.append(Table.of("groups", title, GROUPS, listing))
        fields = (*SYSTEMS[:2], replace(SYSTEMS[2], beside="group"), *SYSTEMS[3:])
    systems = sorted(chain(*ranked.values()), key=lambda row: order.index(row["system"]))
    tables.append(Table.of("systems", "", fields, systems, wide="metric"))
    if is_many:
        rows = [
            {"system": system, "next_better": better} | _minus(pairs[judge], system, better)
            for better, system in pairwise(known)
        ]
        title = f"Each system against the next best, by {judge}"
        tables.append(Table.of("neighbours", title, NEIGHBOURS, rows))
    every = [*chain(*pairs.values())]
    tables.append(Table.of("pairs", "Every pair of systems", PAIRS, every, shown=not is_many))
    has_power = all(judge not in metrics for metrics in hopeless.values())
    return Result(
        command="compare",
        question="Which system is better?",
        verdict=_verdict(table, ranked, pairs[judge], has_power=has_power),
        signature=f"{table.signature}|test:{TEST}|alpha:{alpha:g}",
        settings={"alpha": alpha, "seed": seed},
        corpora=(dict(table.corpus),),
        tables=tuple(tables),
        notes=(*table.notes, *notes),
        legend=_legend(table, every, alpha, is_many=is_many),
    )


def _groups(ranking: Sequence[str], pairs: Sequence[Row]) -> list[list[str]]:
    """Cut a ranking into groups: the first one left, and those that cannot be told from it."""
    apart = {frozenset((pair["a"], pair["b"])) for pair in pairs if pair["better"]}
    groups, rest = [], list(ranking)
    while rest:
        groups.append([each for each in rest if {rest[0], each} not in apart])
        rest = [each for each in rest if {rest[0], each} in apart]
    return groups


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
    sentences = [
        f"{counted(table.corpus['documents'], 'document')}, "
        f"{counted(table.corpus['units'], 'unit')}. {direction}; "
        + ("none of a group can be told from its first" if is_many else SHARED)
        + f" at alpha {alpha:g}.",
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
    table: ScoreTable, ranked: Mapping[str, list[Row]], pairs: Sequence[Row], *, has_power: bool
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
    apart = {frozenset((pair["a"], pair["b"])) for pair in pairs if pair["better"]}
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
    system = {row.system: i for i, row in enumerate(table.systems)}
    document = {id: i for i, id in enumerate(dict.fromkeys(row.id for row in table.documents))}
    values = np.full((len(system), len(document)), np.nan)
    weights = np.ones_like(values)
    for row in table.documents:
        part = row.metrics[metric]
        at = system[row.system], document[row.id]
        value = rounded(part.value)
        if value is not None:
            values[at] = value
        if part.weight is not None:
            weights[at] = part.weight
    return list(document), values, weights


def _compare_metric(
    table: ScoreTable, metric: str, tests: Sequence[PairedTest], alpha: float
) -> tuple[list[Row], list[Row]]:
    """Return the rows of a metric's systems, best first, and those of its pairs."""
    scores = {row.system: row.metrics[metric] for row in table.systems}
    n_segments = {row.system: row.segments for row in table.systems}
    losses = {system: score.loss for system, score in scores.items()}
    direction = next(iter(scores.values())).direction
    pairs: list[Row] = []
    for (a, b), test in zip(combinations(scores, 2), tests, strict=True):
        better = None
        if test.difference is not None and (test.p_corrected or 0.0) <= alpha:
            is_lower = test.difference < 0
            better = a if is_lower == (direction == "lower") else b
            if direction == "toward_1":
                better = min(a, b, key=losses.__getitem__)
        row = {"metric": metric, "a": a, "b": b, **asdict(test), "better": better}
        row |= {"value_a": scores[a].value, "value_b": scores[b].value, "direction": direction}
        pairs.append(row)
    ranking = sorted(scores, key=losses.__getitem__)  # those without a value last
    known = [system for system in ranking if scores[system].value is not None]
    groups = letters(known, [(pair["a"], pair["b"]) for pair in pairs if pair["better"]])
    for pair in pairs:
        pair |= {f"letters_{side}": groups.get(pair[side], "") for side in "ab"}
    systems: list[Row] = []
    for system in ranking:
        place = sum(loss < losses[system] for loss in losses.values()) + 1
        row = {"system": system, "metric": metric, "value": rounded(scores[system].value)}
        row |= {"letters": groups.get(system, ""), "documents": scores[system].documents}
        row |= {"rank": place if system in groups else None, "direction": direction}
        row |= {"ci": scores[system].ci, "segments": n_segments[system]}
        systems.append(row)
    return systems, pairs


def out_of_reach(tests: Sequence[PairedTest], alpha: float) -> str | None:
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
