"""The granularity study in sentences: its answer, its notes, how to read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from reffree.errors import counted, listed
from reffree.scoring.expected import Expected
from reffree.statistics.resampling import MIN_DOCUMENTS
from reffree.studies.granularity_curves.curves import POINTS, Crossing, Curves


def answer_of(curves: Sequence[Curves]) -> tuple[str, ...]:
    """Which system is the best at which number of segments, and what is known of that number."""
    sentences: list[str] = []
    for each in curves:
        where = _where(each, curves)
        told = [*_ranking(each), _on_assumed(each), *_on_gold(each)]
        sentences += [f"{where}{sentence}" for sentence in told]
    return tuple(sentences)


def _where(one: Curves, curves: Sequence[Curves]) -> str:
    """Name the corpus, the metric or both, where there are several."""
    names = []
    if len({each.corpus_name for each in curves}) > 1:
        names.append(one.corpus_name)
    if len({each.metric_name for each in curves}) > 1:
        names.append(one.metric_name)
    return f"{', '.join(names)}: " if names else ""


def _ranking(curves: Curves) -> Iterator[str]:
    if curves.crossings:
        yield from map(crossing_sentence, curves.crossings)
    elif curves.runs:
        yield _everywhere(curves)


def crossing_sentence(crossing: Crossing) -> str:
    """Say which system is better on which side, as far as that is clear."""
    a, b = crossing.below, crossing.above
    at, start, end = map(spelt, (crossing.at, crossing.start, crossing.end))
    if crossing.clear_to is None and crossing.clear_from is None:
        return (
            f"{a} and {b} cannot be told apart from {start} to {end} segments a document, though "
            f"their curves cross at {at}."
        )
    if crossing.clear_from is None:
        assert crossing.clear_to is not None
        clear_to = spelt(crossing.clear_to)
        beyond = "" if clear_to == end else f"; from there to {end} they cannot be told apart"
        return f"{a} is better than {b} up to {clear_to} segments a document{beyond}."
    if crossing.clear_to is None:
        return (
            f"{a} and {b} cannot be told apart up to {spelt(crossing.clear_from)} segments a "
            f"document; {b} is better above."
        )
    between = ""
    if not crossing.are_adjacent:
        between = (
            f"; between {spelt(crossing.clear_to)} and {spelt(crossing.clear_from)} they cannot be "
            "told apart"
        )
    return f"{a} is better up to {at} segments a document, {b} above{between}."


def _everywhere(curves: Curves) -> str:
    """Name the system that is best on the whole grid, or is clearly beaten nowhere on it."""
    best = curves.runs[0].system
    name, others = curves.systems[best], [s for s in curves.rivals if s != best]
    numbers = f"from {spelt(curves.grid[0])} to {spelt(curves.grid[-1])} segments a document"
    if not others:
        number = spelt(curves.grid[int(curves.losses[:POINTS, best].argmin())])
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


def _on_assumed(curves: Curves) -> str:
    low, middle, high = map(spelt, curves.mean_span)
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


def _on_gold(curves: Curves) -> Iterator[str]:
    if curves.assumed.gold is None or curves.against_gold is None:
        return
    sentence = f"Gold has {spelt(curves.assumed.gold)} segments a document"
    at = len(curves.assumed.numbers) - 1
    best = curves.best(at)
    found = [curves.real(s) for s in curves.rivals]
    real = [None if each is None else each.value for each in found]
    slope = curves.metric.orientation.slope
    known = [(slope * v, s) for v, s in zip(real, curves.rivals, strict=True) if v is not None]
    if best is not None and known:
        first = min(known)[1]
        sentence += (
            f": there {curves.systems[best]} has the {_first(curves)} {curves.metric_name} "
            f"({curves.means[at, best]:.3f}), and against gold {curves.systems[first]} the "
            f"{_first(curves)} {curves.gold_name} ({real[curves.rivals.index(first)]:.3f})"
        )
    yield f"{sentence}."


def _first(curves: Curves) -> str:
    return "lowest" if curves.metric.orientation.direction == "lower" else "highest"


def spelt(number: float) -> str:
    """Write a number of segments with the digits that matter.

    >>> [spelt(each) for each in (1.02, 2.0, 6.28, 13.7)]
    ['1', '2', '6.3', '14']
    """
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}".removesuffix(".0")


def notes_of(curves: Iterable[Curves]) -> tuple[str, ...]:
    """Say which documents take no part, and where intervals are missing; once a corpus."""
    notes: dict[str, None] = {}
    for each in curves:
        name, is_defined = each.corpus_name, each.assumed.is_defined
        n_short = int((~is_defined).sum())
        if n_short:
            notes[f"{name}: {counted(n_short, 'document')} of fewer than three units left out."] = (
                None
            )
        if is_defined.sum() < MIN_DOCUMENTS:
            notes[
                f"{name}: fewer than {MIN_DOCUMENTS} documents, so no intervals, and no difference "
                "is clear."
            ] = None
        n_gold = sum(bool(document.references) for document in each.corpus)
        if 0 < n_gold < len(each.corpus):
            notes[
                f"{name}: gold in {n_gold:,} of {counted(len(each.corpus), 'document')}; what is "
                "against gold is of these."
            ] = None
    return tuple(notes)


def reading_of(metrics: Mapping[str, Expected]) -> dict[str, str]:
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
