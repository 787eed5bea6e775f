"""What a table of scores says in sentences: who is best, by how much, what cannot be said."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reffree.data.corpus import GOLD as GOLD
from reffree.evaluate.corpus_counts import CorpusCounts, dropped_notes
from reffree.evaluate.metric_set import MetricSet, known_readers
from reffree.evaluate.result import DECIMALS, rounded
from reffree.evaluate.scores import Scores, corpus_mean
from reffree.evaluate.table import CorpusScore, SystemScores, judged_by, named_like
from reffree.statistics.losses import Direction, as_loss
from reffree.statistics.paired import PairedTest, paired_tests
from reffree.statistics.resampling import DocumentBootstrap
from reffree.util.errors import listed, listed_briefly

ALPHA = 0.05

WELL, FAIRLY = 0.4, 0.2
"""Placement from which boundaries sit well, and fairly well: gold has .2 to .6 on real text."""

OFTEN = (
    *((0.22, 0.28, "a quarter as often"), (0.3, 0.37, "a third as often")),
    *((0.45, 0.55, "half as often"), (1.9, 2.1, "twice as often")),
)
"""Words for factors of granularity, from … to."""

NOTABLE = 0.12
"""An excess over gold's to speak of. On Wikipedia articles and chats, with two encoders, gold, gold
with mistakes and random systems have at most .09, half of what seeks coherence in the vectors .12
to .39 over gold; 120 segmentations of three stories by language models at most .05."""


def describe(system: str, scores: Mapping[str, Mapping[str, CorpusScore]]) -> list[str]:
    """Say in a sentence how finely a system cuts, and whether its boundaries sit well.

    Nothing where neither `granularity` nor `placement` was scored, or is defined. Scores are by
    system, then by metric; gold's placement is named beside another's.
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
        null, better = found[where].null, ""
        if _is_by_chance(found[where]):
            words = "cannot be told from chance"
            others = [
                (value, name)
                for name, metrics in scores.items()
                if name != GOLD and not _is_by_chance(metrics[where])
                if (value := metrics[where].value) is not None and value > placed
            ]
            if others:
                value, name = max(others)
                better = f", those of {name} can ({_short(value)})"
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
        sits += better
    sentence = "; ".join(filter(None, (cuts, sits)))
    return [f"{sentence}."] if sentence else []


def _is_by_chance(score: CorpusScore) -> bool:
    """Whether a placement cannot be told from 0."""
    if score.null is not None:
        return ALPHA < score.null.p < 1 - ALPHA
    return score.ci is not None and score.ci[0] <= 0 <= score.ci[1]


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
        if not self.values:
            return [*opening, "Only gold is scored: add systems to compare."]
        (best, value), *others = self.values.items()
        aside = "" if self.gold is None else f" (gold {self.gold:.3f})"
        if not others:
            aside = "" if self.gold is None else f"; gold itself {self.gold:.3f}"
            alone = (
                f"{best}: {self.metric} {value:.3f}{aside}. A number alone says little: add "
                "another segmentation, such as one of reffree segment --method even, to hold it "
                "against."
            )
            return [*opening, alone]
        runner_up, other = others[0]
        if value == other:
            shared = f"{best} and {runner_up} share the best {self.metric}: {value:.3f}{aside}."
            return [*opening, shared]
        margin = ""
        if self.p is not None and self.ci is not None:
            n, interval = self.comparisons, "{:.3f} to {:.3f}".format(*self.ci)
            corrected = f", corrected for {n} comparisons" if n > 1 else ""
            margin = f" (next − best: 95 % interval {interval}, {_p(self.p)}{corrected})"
        first = (
            f"{'It' if opening else best} is best of {len(self.values)} systems by {self.metric}: "
            f"{value:.3f}{aside}, then {runner_up}, {other:.3f}{margin}."
        )
        if self.unlike is None:
            return [*opening, first]
        alike = [system for system, _ in others if system not in self.unlike]
        if not self.has_power:
            unsure = "There are too few documents to tell any two of these systems apart."
        elif not alike:
            unsure = "It is told apart from every other system."
        else:
            whom = "any other system" if len(alike) == len(others) else listed_briefly(alike)
            unsure = f"It cannot be told from {whom} on these documents."
        return [*opening, first, unsure]


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
        if score.null is None:
            sentences.append("Not tested against chance: --null 1000 does that.")
        elif score.null.p <= ALPHA:
            p = _p(score.null.p)
            sentences.append(f"Its boundaries are not where chance would put them ({p}).")
        else:
            p = _p(score.null.p)
            sentences.append(f"Chance does as well with segments of the same lengths ({p}).")
    if score.information is not None and _rests_on_prior(score):
        sentences.append("The text says little here: the score rests on what is assumed.")
    if is_free:
        sentences += _name_readers(scores, metric)
        sentences += _explain_better_than_gold(scores, rivals, direction, is_tested=is_tested)
    return tuple(sentences)


def _rests_on_prior(score: CorpusScore) -> bool:
    from reffree.metrics.free.expected import INFORMED

    return (score.information or 0.0) <= INFORMED * (score.chance_information or 0.0)


def _tests_of_best(scores: Scores, metric: str, order: Sequence[str]) -> dict[str, PairedTest]:
    """Test each of the others against the first, over the documents both have.

    Differences are those of the values that tables show: the other one's minus the first one's.
    """
    places = [scores.systems.index(system) for system in order]
    values = scores.shown(metric).T[places]
    weights = scores.weights[scores.index(metric)].T[places]
    pairs = [(i, 0) for i in range(1, len(order))]
    rng = np.random.default_rng(scores.settings.seed)
    tests = paired_tests(np.round(values, DECIMALS), weights, pairs, rng)
    return dict(zip(order[1:], tests, strict=True))


# Systems that read what the judge reads, or beat gold. A segmenter that looks for coherence in
# vectors, or in words, finds what a posterior that reads the same sees, noise and all. It is known
# by its name, or noticed by its `Excess`.


def _name_readers(scores: Scores, judge: str) -> Iterator[str]:
    """Say which systems have read what the judge reads, or may have."""
    metric = scores.metrics.metric(judge)
    if getattr(metric, "evidence", None) != "all":
        return
    kind, without = judge.partition(":")[0], getattr(metric, "without", None)
    readers = known_readers(scores.systems)
    for source, names in readers.items():
        who = f"{listed_briefly(names)} looked for coherence in the {source}"
        if source == without:
            yield f"{who}: {judge} judges where boundaries are by the rest."
        elif without is None:
            advice = f"-m {kind}:without={source} judges by the rest"
            yield f"{who}, which {judge} reads too: {advice}."
    if without is None and scores.excess is not None:
        yield from _suspects(scores, kind, readers.get("vectors", []))


def _suspects(scores: Scores, kind: str, known: Iterable[str]) -> Iterator[str]:
    """Say which systems agree with the vectors far more than with words and cues.

    Nothing where gold does so itself: there vectors see topics better, and nobody looked for them.
    """
    assert scores.excess is not None
    values, weights = scores.excess
    bootstrap = DocumentBootstrap(len(values), np.random.default_rng(scores.settings.seed))
    means = {s: corpus_mean(values[:, i], weights[:, i]) for i, s in enumerate(scores.systems)}
    least = max(0.0, means.get(GOLD) or 0.0) + NOTABLE
    found = {}
    for i, (system, mean) in enumerate(means.items()):
        if system != GOLD and system not in known and mean is not None and mean >= least:
            interval = bootstrap.interval(mean, values[:, i], weights[:, i])
            if interval is not None and interval[0] > 0:
                found[system] = mean, interval
    if not found or least >= 2 * NOTABLE:
        return
    first = max(found, key=lambda system: found[system][0])
    mean, (low, high) = found[first]
    names = [first, *(system for system in found if system != first)]
    verb, aside = ("agrees", "") if len(names) == 1 else ("agree", f" for {first}")
    gold = "" if means.get(GOLD) is None else f"; gold {means[GOLD]:.2f}"
    yield (
        f"{listed_briefly(names)} {verb} with the vectors far more than with words and cues "
        f"(difference of placements {mean:.2f}, 95 % interval {low:.2f} to {high:.2f}{aside}{gold}"
        f"): made by looking for them, perhaps. -m {kind}:without=vectors judges by the rest."
    )


def _explain_better_than_gold(
    scores: Scores, rivals: Rivals, direction: Direction, *, is_tested: bool
) -> Iterator[str]:
    """Say that systems get a better score than gold, and what that means."""
    judge, gold = rivals.metric, rivals.gold
    if gold is None:
        return
    own = as_loss(gold, direction)
    better = [system for system, value in rivals.values.items() if as_loss(value, direction) < own]
    if not better:
        return
    first, *others = better
    beside = ""
    test = _tests_of_best(scores, judge, [first, GOLD])[GOLD] if is_tested else None
    if test is not None and test.p is not None and test.ci is not None:
        low, high = test.ci
        told = "told apart" if test.p <= ALPHA else "not told apart"
        beside = f"; gold − {first}: 95 % interval {low:.3f} to {high:.3f}, {_p(test.p)}, {told}"
    also = f", and so are {len(others)} more" if others else ""
    also = f", and so is {others[0]}" if len(others) == 1 else also
    yield (
        f"{first} is better than gold by {judge} ({rivals.values[first]:.3f}, gold {gold:.3f}"
        f"{beside}){also}: gold is one annotator's choice, and who looks for what this score reads "
        "finds more of it than people follow. pk says who agrees with this gold."
    )


# Notes: what a reader must know before trusting a table


def score_notes(
    scores: Scores,
    counts: CorpusCounts,
    systems: Sequence[SystemScores],
    incomparable: Collection[str],
) -> list[str]:
    """Collect the sentences, as far as there is something to say."""
    notes = dropped_notes(counts, scores.embedded)
    if 0 < counts.n_gold < counts.n_documents:
        notes.append(
            f"Gold was not scored: only {counts.n_gold} of {counts.n_documents} documents have it."
        )
    if scores.metrics.gold_based and counts.annotators:
        numbers = " to ".join(map(str, sorted({min(counts.annotators), max(counts.annotators)})))
        notes.append(f"Gold-based metrics: mean over {numbers} annotators of each document.")
    differing: dict[str, list[str]] = {}
    for name in systems[0].metrics:
        if name in incomparable:
            having = [f"{row.system} {row.metrics[name].documents}" for row in systems]
            differing.setdefault(listed_briefly(having), []).append(name)
    for numbers, names in differing.items():
        notes.append(
            f"{', '.join(names)}: the systems were scored on different documents ({numbers}) and "
            "must not be compared."
        )
    single = [f"{row.system} {row.unsegmented}" for row in systems if row.unsegmented]
    if single and scores.metrics.reference_free:
        policy, numbers = scores.settings.unsegmented, listed_briefly(single)
        notes.append(f"Documents without a boundary ({policy}): {numbers}.")
    return [*notes, *_posterior_notes(systems, scores.metrics)]


def _posterior_notes(systems: Sequence[SystemScores], metrics: MetricSet) -> Iterator[str]:
    """How finely expected errors assume that documents are cut, and whether the text says much."""
    assumed: dict[str, list[str]] = {}
    uninformed: dict[tuple[str, str], list[str]] = {}
    for name, metric in metrics.reference_free.items():
        score = systems[0].metrics[name]  # the posterior is the same for all systems
        if score.information is None:
            continue
        if getattr(metric, "length", None) is None and score.assumed_segments is not None:
            assumed.setdefault(f"{score.assumed_segments:.1f}", []).append(name)
        if _rests_on_prior(score):
            key = (f"{score.information:.2f}", f"{score.chance_information or 0.0:.2f}")
            uninformed.setdefault(key, []).append(name)
    for segments, names in assumed.items():
        yield (
            f"{listed(names)}: {segments} segments a document assumed; give length=N, units a "
            "segment, if you know better."
        )
    for (found, chance), names in uninformed.items():
        from reffree.metrics.free.expected import INFORMED

        yield (
            f"{listed(names)}: this rests on the prior. The text adds {found} nats a boundary to "
            f"it, its units in random order {chance}; information is more than {INFORMED:g} times "
            "that."
        )
