"""What a table of scores says at a glance: who is best, by how much, and what cannot be said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reffree.evaluate.judges import explain_better_than_gold, name_readers
from reffree.evaluate.scores import Scores
from reffree.evaluate.table import (
    DECIMALS,
    CorpusScore,
    SystemScores,
    judged_by,
    named_like,
    rounded,
)
from reffree.statistics.losses import Direction, as_loss
from reffree.statistics.paired import PairedTest, paired_tests
from reffree.util.errors import listed_briefly

ALPHA = 0.05
GOLD = "gold"

WELL, FAIRLY = 0.4, 0.2
"""Placement from which boundaries sit well, and fairly well: gold has .2 to .6 on real text."""

OFTEN = (
    *((0.22, 0.28, "a quarter as often"), (0.3, 0.37, "a third as often")),
    *((0.45, 0.55, "half as often"), (1.9, 2.1, "twice as often")),
)
"""Words for factors of granularity, from … to."""


def describe(system: str, scores: Mapping[str, Mapping[str, CorpusScore]]) -> list[str]:
    """Say in a sentence how finely a system cuts, and whether its boundaries sit well.

    Nothing where neither `granularity` nor `placement` was scored, or is defined.

    Args:
        system: which of those that were scored.
        scores: by system, then by metric; gold's placement is named beside another's.
    """
    found = scores[system]
    cuts = sits = ""
    how_many, where = (named_like(kind, found) for kind in ("granularity", "placement"))
    if how_many is not None and (factor := found[how_many].value) is not None:
        words = next((w for low, high, w in OFTEN if low <= factor <= high), "")
        low, high = found[how_many].allowed or (factor, factor)
        if low <= factor <= high:
            words = "about as often"
        cuts = (
            f"{system} cuts {words or f'{factor:.2g} times as often'} as the text suggests "
            f"({f'{factor:.2g} ×; ' if words else ''}{low:.2g} to {high:.2g} is allowed)"
        )
    if where is not None and (placed := found[where].value) is not None:
        null, (low, high) = found[where].null, found[where].ci or (placed, placed)
        if low <= 0 <= high if null is None else ALPHA < null.p < 1 - ALPHA:
            words = "cannot be told from chance"
        elif placed < 0:
            words = "sit worse than by chance"
        else:
            well = "well" if placed >= WELL else "fairly well" if placed >= FAIRLY else ""
            words = f"sit {well}" if well else "sit little better than by chance"
        aside = "" if null is None else f", {_p(null.p)}"
        gold = scores[GOLD][where].value if GOLD in scores and system != GOLD else None
        aside += "" if gold is None else f"; gold {_short(gold)}"
        owner = "its" if cuts else f"{system}'s"
        sits = f"{owner} boundaries {words} ({_short(placed)} of what is possible, chance 0{aside})"
    sentence = "; ".join(filter(None, (cuts, sits)))
    return [f"{sentence}."] if sentence else []


@dataclass(frozen=True, slots=True)
class Rivals:
    """The systems of one metric, gold apart, best first, and what tells them from the best."""

    metric: str
    values: dict[str, float]
    gold: float | None
    ci: tuple[float, float] | None = None  # of the next one's value minus the best one's
    p: float | None = None  # of the best and the next, corrected for all comparisons
    comparisons: int = 1
    unlike: frozenset[str] | None = None  # told apart from the best; None without a test
    has_power: bool = True  # whether so many documents can tell systems apart

    @property
    def best(self) -> str | None:
        """Name of the first; None without any."""
        return next(iter(self.values), None)

    def sentences(self, opening: Sequence[str] = ()) -> list[str]:
        """Say who is best, by how much, and who cannot be told from it.

        The opening is about the best one, which then goes without its name.
        """
        if len(self.values) < 2:
            return [*opening, *self._alone()]
        (best, value), (runner_up, other), *_ = self.values.items()
        aside = "" if self.gold is None else f" (gold {self.gold:.3f})"
        if value == other:
            shared = f"{best} and {runner_up} share the best {self.metric}: {value:.3f}{aside}."
            return [*opening, shared]
        return [
            *opening,
            f"{'It' if opening else best} is best of {len(self.values)} systems by {self.metric}: "
            f"{value:.3f}{aside}, then {runner_up}, {other:.3f}{self._margin()}.",
            *self._unsure(best),
        ]

    def _alone(self) -> list[str]:
        if not self.values:
            return ["Only gold is scored: add systems to compare."]
        ((system, value),) = self.values.items()
        aside = "" if self.gold is None else f"; gold itself {self.gold:.3f}"
        return [
            f"{system}: {self.metric} {value:.3f}{aside}. A number alone says little: add another "
            "segmentation, such as one of reffree segment --method even, to hold it against."
        ]

    def _margin(self) -> str:
        if self.p is None or self.ci is None:
            return ""
        low, high = self.ci
        n = self.comparisons
        corrected = f", corrected for {n} comparisons" if n > 1 else ""
        return f" (next − best: 95 % interval {low:.3f} to {high:.3f}, {_p(self.p)}{corrected})"

    def _unsure(self, best: str) -> list[str]:
        """Name those that may be as good as the best."""
        if self.unlike is None:
            return []
        if not self.has_power:
            return ["There are too few documents to tell any two of these systems apart."]
        alike = [system for system in self.values if system != best and system not in self.unlike]
        if not alike:
            return ["It is told apart from every other system."]
        if len(alike) == len(self.values) - 1:
            return ["It cannot be told from any other system on these documents."]
        return [f"It cannot be told from {listed_briefly(alike)} on these documents."]


def _short(share: float) -> str:
    return f"{share:z.2f}".replace("0.", ".", 1)


def _p(p: float) -> str:
    return "p < .001" if p < 0.0005 else f"p {p:.3f}".replace("p 0.", "p .")


def rank(metric: str, direction: Direction, values: Mapping[str, float | None]) -> Rivals:
    """Order the systems of a metric, best first."""
    known = {system: value for system, value in values.items() if value is not None}
    gold = known.pop(GOLD, None)
    order = sorted(known, key=lambda system: as_loss(known[system], direction))
    return Rivals(metric, {system: known[system] for system in order}, gold)


def tested(rivals: Rivals, tests: Mapping[str, PairedTest]) -> Rivals:
    """Add what paired tests of the best against each of the others say, corrected for all."""
    p_of = {system: test.p_corrected for system, test in tests.items() if test.p is not None}
    if not p_of:
        return rivals
    runner_up = list(rivals.values)[1]
    return replace(
        rivals,
        ci=tests[runner_up].ci,
        p=p_of.get(runner_up),
        unlike=frozenset(system for system, p in p_of.items() if p is not None and p <= ALPHA),
        comparisons=len(p_of),
        has_power=min(tests[system].smallest_p for system in p_of) <= ALPHA,
    )


def verdict(
    scores: Scores, systems: Sequence[SystemScores], incomparable: frozenset[str]
) -> tuple[str, ...]:
    """Say in a few sentences what a table shows by the metric it is best judged by."""
    metric = judged_by(scores.metrics.names)
    direction = scores.metrics.metric(metric).direction
    found = {row.system: row.metrics for row in systems}
    if metric in incomparable:
        return (f"{metric} cannot rank these systems: they were scored on different documents.",)
    values = {system: rounded(metrics[metric].value) for system, metrics in found.items()}
    rivals = rank(metric, direction, values)
    if not rivals.values and rivals.gold is None:
        return (f"{metric} is undefined for every system on these documents.",)
    is_tested = not scores.is_pooled(metric) and not scores.is_median(metric)
    if len(rivals.values) > 1 and is_tested:
        rivals = tested(rivals, _tests_of_best(scores, metric, list(rivals.values)))
    best = rivals.best or GOLD
    sentences = rivals.sentences(describe(best, found))
    score = found[best][metric]
    is_free = metric in scores.metrics.reference_free
    if is_free and rivals.values and named_like("placement", found[best]) is None:
        sentences.append(_against_chance(score))
    if score.information is not None:
        from reffree.metrics.free.expected import INFORMED

        if score.information <= INFORMED * (score.chance_information or 0.0):
            sentences.append("The text says little here: the score rests on what is assumed.")
    if is_free:
        against_gold = None
        if rivals.best and rivals.gold is not None and is_tested:
            against_gold = _tests_of_best(scores, metric, [rivals.best, GOLD])[GOLD]
        found_better = (metric, direction, rivals.values, rivals.gold, against_gold)
        sentences += [*name_readers(scores, metric), *explain_better_than_gold(*found_better)]
    return tuple(sentences)


def _against_chance(score: CorpusScore) -> str:
    """Say whether random orders do as well, of a score that does not say it itself."""
    if score.null is None:
        return "Not tested against chance: --null 1000 does that."
    if score.null.p <= ALPHA:
        return f"Its boundaries are not where chance would put them ({_p(score.null.p)})."
    return f"Chance does as well with segments of the same lengths ({_p(score.null.p)})."


def _tests_of_best(scores: Scores, metric: str, order: Sequence[str]) -> dict[str, PairedTest]:
    """Test each of the others against the first, over the documents both have.

    Differences are those of the values that tables show: the other one's minus the first one's.
    """
    m, at = scores.index(metric), {system: i for i, system in enumerate(scores.systems)}
    places = [at[system] for system in order]
    values = scores.shown(metric).T[places]
    pairs = [(i, 0) for i in range(1, len(order))]
    rng = np.random.default_rng(scores.settings.seed)
    tests = paired_tests(np.round(values, DECIMALS), scores.weights[m].T[places], pairs, rng)
    return dict(zip(order[1:], tests, strict=True))
