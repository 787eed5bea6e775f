"""Systems that read what the judge reads, or beat gold: what a verdict says of them.

A segmenter that looks for coherence in vectors, or in words, finds what a posterior that reads the
same sees, noise and all. It is known by its name, or noticed by its `Excess`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from reffree.data.corpus import GOLD
from reffree.statistics.losses import Direction, as_loss
from reffree.statistics.paired import PairedTest
from reffree.statistics.resampling import DocumentBootstrap
from reffree.util.errors import listed_briefly

if TYPE_CHECKING:
    from reffree.evaluate.scores import Scores

READERS = {
    "vectors": ("depth", "changepoint", "greedy", "optimal"),
    "words": ("texttiling", "c99", "textseg"),
}
"""Methods of ``reffree segment`` by what they look for coherence in; systems are called as they."""

JUDGES = ("placement", "expected_pk")
"""What a verdict opens with that reads all sources."""

NOTABLE = 0.12
"""An excess over gold's to speak of. On Wikipedia articles and chats, with two encoders, gold, gold
with mistakes and random systems have at most .09, half of what seeks coherence in the vectors .12
to .39 over gold; 120 segmentations of three stories by language models at most .05."""


def known_readers(systems: Iterable[str]) -> dict[str, list[str]]:
    """Return the systems that are known to have looked for coherence in a source, by source."""
    named = {system: system.partition(":")[0] for system in systems}
    found = {s: [n for n, name in named.items() if name in names] for s, names in READERS.items()}
    return {source: names for source, names in found.items() if names}


def without_read_sources(metrics: Sequence[str], systems: Iterable[str]) -> list[str]:
    """Put before metrics that read all sources the same without the one that systems have read.

    Nothing is added where systems have read several: leaving out all of them leaves too little.
    """
    readers = list(known_readers(systems))
    found = []
    for metric in metrics:
        if len(readers) == 1 and metric in JUDGES:
            found.append(f"{metric}:without={readers[0]}")
        found.append(metric)
    return found


def name_readers(scores: Scores, judge: str) -> list[str]:
    """Say which systems have read what the judge reads, or may have.

    Args:
        scores: of all systems, with their `Excess` where it was made.
        judge: the metric that a verdict rests on.
    """
    metric = scores.metrics.metric(judge)
    if getattr(metric, "evidence", None) != "all":
        return []
    kind, without = judge.partition(":")[0], getattr(metric, "without", None)
    sentences = []
    readers = known_readers(scores.systems)
    for source, names in readers.items():
        who = f"{listed_briefly(names)} looked for coherence in the {source}"
        if source == without:
            sentences.append(f"{who}: {judge} judges where boundaries are by the rest.")
        elif without is None:
            advice = f"-m {kind}:without={source} judges by the rest"
            sentences.append(f"{who}, which {judge} reads too: {advice}.")
    if without is None and scores.excess is not None:
        sentences += _suspects(scores, kind, readers.get("vectors", []))
    return sentences


def _suspects(scores: Scores, kind: str, known: Iterable[str]) -> list[str]:
    """Say which systems agree with the vectors far more than with words and cues.

    Nothing where gold does so itself: there vectors see topics better, and nobody looked for them.
    """
    from reffree.evaluate.scores import corpus_mean

    assert scores.excess is not None
    values, weights = scores.excess
    bootstrap = DocumentBootstrap(len(values), np.random.default_rng(scores.settings.seed))
    means = {s: corpus_mean(values[:, i], weights[:, i]) for i, s in enumerate(scores.systems)}
    least = max(0.0, means.get(GOLD) or 0.0) + NOTABLE
    if least >= 2 * NOTABLE:
        return []
    found = {}
    for i, (system, mean) in enumerate(means.items()):
        if system != GOLD and system not in known and mean is not None and mean >= least:
            interval = bootstrap.interval(mean, values[:, i], weights[:, i])
            if interval is not None and interval[0] > 0:
                found[system] = mean, interval
    if not found:
        return []
    first = max(found, key=lambda system: found[system][0])
    mean, (low, high) = found[first]
    names = [first, *(system for system in found if system != first)]
    verb = "agrees" if len(names) == 1 else "agree"
    figures = f"{mean:.2f}, 95 % interval {low:.2f} to {high:.2f}"
    aside = "" if len(names) == 1 else f" for {first}"
    gold = "" if means.get(GOLD) is None else f"; gold {means[GOLD]:.2f}"
    return [
        f"{listed_briefly(names)} {verb} with the vectors far more than with words and cues "
        f"(difference of placements {figures}{aside}{gold}): made by looking for them, perhaps. "
        f"-m {kind}:without=vectors judges by the rest."
    ]


def explain_better_than_gold(
    judge: str,
    direction: Direction,
    values: Mapping[str, float],
    gold: float | None,
    test: PairedTest | None,
) -> list[str]:
    """Say that systems get a better score than gold, and what that means.

    Args:
        judge: the metric.
        direction: which way it is better.
        values: of the systems, best first, without gold.
        gold: gold's value.
        test: of gold against the best; the interval is that of gold's value minus the best one's.
    """
    if gold is None:
        return []
    own = as_loss(gold, direction)
    better = [system for system, value in values.items() if as_loss(value, direction) < own]
    if not better:
        return []
    beside = ""
    if test is not None and test.p is not None and test.ci is not None:
        low, high = test.ci
        p = "p < .001" if test.p < 0.0005 else f"p {test.p:.3f}".replace("p 0.", "p .")
        told = "told apart" if test.p <= 0.05 else "not told apart"
        beside = f"; gold − {better[0]}: 95 % interval {low:.3f} to {high:.3f}, {p}, {told}"
    first = f"{better[0]} is better than gold by {judge} ({values[better[0]]:.3f}, gold {gold:.3f}"
    others = f", and so are {len(better) - 1} more" if len(better) > 2 else ""
    others = f", and so is {better[1]}" if len(better) == 2 else others
    return [
        f"{first}{beside}){others}: gold is one annotator's choice, and who looks for what this "
        "score reads finds more of it than people follow. pk says who agrees with this gold."
    ]
