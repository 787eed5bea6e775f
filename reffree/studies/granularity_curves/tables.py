"""The granularity study in tables and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from reffree.evaluate.result import Table, columns, estimate
from reffree.evaluate.scores import corpus_mean
from reffree.metrics.free.expected import Expected
from reffree.statistics.resampling import MIN_DOCUMENTS
from reffree.studies.granularity_curves.curves import (
    POINTS,
    Crossing,
    GranularityCurves,
    gold_name,
)
from reffree.util.errors import counted, listed

SYSTEMS = (
    *columns("text", "corpus", "metric", "system"),
    *columns("count", "segments"),
    *estimate("at_own", "at as many"),
    *columns("count", best_at="best at"),
    *estimate("overall", "as reffree score"),
    *estimate("real", "against gold"),
)
ERRORS = (
    *columns("text", "corpus", "metric"),
    *columns("count", segments="assumed"),
    *columns("text", "best"),
)
CROSSINGS = (
    *columns("text", "corpus", "metric", below="better below", above="better above"),
    *columns("count", at="crossing at", clear_to="clear up to", clear_from="clear from"),
)
CURVES = (
    *columns("text", "corpus", "metric", "system", "point"),
    *columns("count", "segments"),
    *columns("number", "value", "low", "high", real="against gold"),
)
MARKS = (
    *columns("text", "corpus", "metric", "point"),
    *columns("count", low="from", segments="segments", high="to"),
)


def granularity_tables(curves: Sequence[GranularityCurves]) -> Iterator[Table]:
    """Systems, errors by assumed number, crossings where there are any, and what charts draw."""
    rows = [row for each in curves for row in _system_rows(each)]
    yield Table.of("systems", "Systems: segments a document, and errors", SYSTEMS, rows)
    systems = {f"error of {name}": name for each in curves for name in each.systems}
    title = "Errors by the segments a document that annotators are assumed to make"
    rows = [row for each in curves for row in _error_rows(each)]
    yield Table.of("errors", title, (*ERRORS, *columns("number", **systems)), rows)
    title = "Where another system becomes the best"
    rows = [{**_place(each), **asdict(c)} for each in curves for c in each.crossings]
    yield Table.of("crossings", title, CROSSINGS, rows, shown=bool(rows))
    title = "Errors at every assumed number of segments"
    rows = [row for each in curves for row in _curve_rows(each)]
    yield Table.of("curves", title, CURVES, rows, shown=False)
    title = "Numbers of segments that the metric assumes and that gold has"
    rows = [row for each in curves for row in _mark_rows(each)]
    yield Table.of("marks", title, MARKS, rows, shown=False)


def _place(curves: GranularityCurves) -> dict[str, Any]:
    return {"corpus": curves.corpus_name, "metric": curves.metric_name}


def _system_rows(curves: GranularityCurves) -> Iterator[dict[str, Any]]:
    for s, name in enumerate(curves.systems):
        overall = corpus_mean(curves.overall[s], np.ones(len(curves.corpus)))
        row = {
            **_place(curves),
            "system": name,
            "segments": curves.own_numbers[s],
            "at_own": curves.means[curves.own(s), s],
            "at_own_ci": curves.interval(curves.own(s), s),
            "best_at": curves.grid[int(curves.losses[:POINTS, s].argmin())],
            "overall": overall,
            "overall_ci": curves.bootstrap.interval(overall, curves.overall[s]),
        }
        real = curves.real(s)
        if real is not None:
            row |= {"real": real.value, "real_ci": real.ci}
        yield row


def _error_rows(curves: GranularityCurves) -> Iterator[dict[str, Any]]:
    for g, segments in enumerate(curves.grid):
        best = curves.best(g)
        yield {
            **_place(curves),
            "segments": segments,
            "best": None if best is None else curves.systems[best],
            **{f"error of {name}": curves.means[g, s] for s, name in enumerate(curves.systems)},
        }


def _curve_rows(curves: GranularityCurves) -> Iterator[dict[str, Any]]:
    """Every system at the numbers of the grid and at its own."""
    for s, name in enumerate(curves.systems):
        real = curves.real(s)
        for at in (*range(POINTS), curves.own(s)):
            low, high = curves.interval(at, s) or (None, None)
            yield {
                **_place(curves),
                "system": name,
                "point": "grid" if at < POINTS else "own",
                "segments": curves.assumed.numbers[at],
                "value": curves.means[at, s],
                "low": low,
                "high": high,
                "real": None if real is None else real.value,
            }


def _mark_rows(curves: GranularityCurves) -> Iterator[dict[str, Any]]:
    low, middle, high = curves.mean_span
    yield {**_place(curves), "point": "assumed", "low": low, "segments": middle, "high": high}
    if curves.assumed.gold is not None:
        yield {**_place(curves), "point": "gold", "segments": curves.assumed.gold}


def granularity_answer(curves: Sequence[GranularityCurves]) -> Iterator[str]:
    """Which system is the best at which number of segments, and what is known of that number."""
    for each in curves:
        where = _where(each, curves)
        for sentence in (*_ranking(each), _on_assumed(each), *_on_gold(each)):
            yield f"{where}{sentence}"


def _where(one: GranularityCurves, curves: Sequence[GranularityCurves]) -> str:
    """Name the corpus, the metric or both, where there are several."""
    names = []
    if len({each.corpus_name for each in curves}) > 1:
        names.append(one.corpus_name)
    if len({each.metric_name for each in curves}) > 1:
        names.append(one.metric_name)
    return f"{', '.join(names)}: " if names else ""


def _ranking(curves: GranularityCurves) -> Iterator[str]:
    if curves.crossings:
        yield from map(_crossing_sentence, curves.crossings)
    elif curves.runs:
        yield _everywhere(curves)


def _crossing_sentence(crossing: Crossing) -> str:
    """Say which system is better on which side, as far as that is clear."""
    a, b = crossing.below, crossing.above
    at, start, end = map(_spelt, (crossing.at, crossing.start, crossing.end))
    clear_to, clear_from = (
        None if number is None else _spelt(number)
        for number in (crossing.clear_to, crossing.clear_from)
    )
    if clear_to is None and clear_from is None:
        return (
            f"{a} and {b} cannot be told apart from {start} to {end} segments a document, though "
            f"their curves cross at {at}."
        )
    if clear_from is None:
        beyond = "" if clear_to == end else f"; from there to {end} they cannot be told apart"
        return f"{a} is better than {b} up to {clear_to} segments a document{beyond}."
    if clear_to is None:
        return (
            f"{a} and {b} cannot be told apart up to {clear_from} segments a document; {b} is "
            "better above."
        )
    between = f"; between {clear_to} and {clear_from} they cannot be told apart"
    if crossing.are_adjacent:
        between = ""
    return f"{a} is better up to {at} segments a document, {b} above{between}."


def _everywhere(curves: GranularityCurves) -> str:
    """Name the system that is best on the whole grid, or is clearly beaten nowhere on it."""
    best = curves.runs[0].system
    name, others = curves.systems[best], [s for s in curves.rivals if s != best]
    numbers = f"from {_spelt(curves.grid[0])} to {_spelt(curves.grid[-1])} segments a document"
    if not others:
        number = _spelt(curves.grid[int(curves.losses[:POINTS, best].argmin())])
        return (
            f"{name} is the only system; of numbers {numbers} its {curves.metric_name} is "
            f"{_first(curves)} at {number}."
        )
    unclear = [
        curves.systems[s]
        for s in others
        if not all(curves.is_clear(g, best, s) for g in range(POINTS))
    ]
    if not unclear:
        return f"{name} is better than all others {numbers}."
    return (
        f"No system is clearly better than {name} {numbers}; {listed(unclear)} cannot be told from "
        "it everywhere."
    )


def _on_assumed(curves: GranularityCurves) -> str:
    low, middle, high = map(_spelt, curves.mean_span)
    sentence = (
        f"{curves.metric_name} itself assumes {low} to {high} segments a document, {middle} in "
        "the mean"
    )
    means = np.nanmean(curves.overall, axis=1)
    slope = curves.metric.orientation.slope
    best = min(curves.rivals, key=lambda s: float(slope * means[s]), default=None)
    if best is not None:
        sentence += f"; over these {curves.systems[best]} is {_first(curves)} ({means[best]:.3f})"
    return f"{sentence}."


def _on_gold(curves: GranularityCurves) -> Iterator[str]:
    if curves.assumed.gold is None or curves.against_gold is None:
        return
    sentence = f"Gold has {_spelt(curves.assumed.gold)} segments a document"
    at = len(curves.assumed.numbers) - 1
    best = curves.best(at)
    found = {s: curves.real(s) for s in curves.rivals}
    known = {s: each.value for s, each in found.items() if each and each.value is not None}
    if best is not None and known:
        slope = curves.metric.orientation.slope
        first = min(known, key=lambda s: (slope * known[s], s))
        sentence += (
            f": there {curves.systems[best]} has the {_first(curves)} {curves.metric_name} "
            f"({curves.means[at, best]:.3f}), and against gold {curves.systems[first]} the "
            f"{_first(curves)} {gold_name(curves.metric)} ({known[first]:.3f})"
        )
    yield f"{sentence}."


def _first(curves: GranularityCurves) -> str:
    return "lowest" if curves.metric.orientation.direction == "lower" else "highest"


def _spelt(number: float) -> str:
    """Write a number of segments with the digits that matter.

    >>> [_spelt(each) for each in (1.02, 2.0, 6.28, 13.7)]
    ['1', '2', '6.3', '14']
    """
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}".removesuffix(".0")


def granularity_notes(curves: Iterable[GranularityCurves]) -> list[str]:
    """Say which documents take no part, and where intervals are missing; once a corpus."""
    return list(dict.fromkeys(note for each in curves for note in _notes(each)))


def _notes(curves: GranularityCurves) -> Iterator[str]:
    name, is_defined = curves.corpus_name, curves.assumed.is_defined
    n_short = int((~is_defined).sum())
    if n_short:
        yield f"{name}: {counted(n_short, 'document')} of fewer than three units left out."
    if is_defined.sum() < MIN_DOCUMENTS:
        yield (
            f"{name}: fewer than {MIN_DOCUMENTS} documents, so no intervals, and no difference is "
            "clear."
        )
    n_gold = sum(bool(document.references) for document in curves.corpus)
    if 0 < n_gold < len(curves.corpus):
        yield (
            f"{name}: gold in {n_gold:,} of {counted(len(curves.corpus), 'document')}; what is "
            "against gold is of these."
        )


def granularity_reading(metrics: Mapping[str, Expected]) -> dict[str, str]:
    """How to read columns and metrics."""
    return {
        "assumed": "Segments a document that annotators are assumed to make, as a mean over "
        "documents; longer documents are assumed to have more.",
        "segments": "Segments a document that the system has.",
        "at as many": "The error if annotators made as many segments as the system does.",
        "best at": "The assumed number of segments at which the system's error is best.",
        "as reffree score": "The metric itself: an average over the numbers that it assumes.",
        "against gold": "The metric against gold instead of the posterior.",
        "crossing at": "Where the mean over documents of the two systems' difference is zero.",
        "clear up to": "The largest number below the crossing at which the 95 % interval of the "
        "paired difference over documents leaves zero out; clear from: the smallest one above it.",
        **dict.fromkeys(metrics, "Expected over the segmentations that the text makes likely."),
    }
