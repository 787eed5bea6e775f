"""Diagnosis of metrics: which of them notice damage to a segmentation, without any gold.

The source is perturbed in known ways, and held against random boundaries of the same number. A
metric that says something about the corpus gives the damaged segmentation the higher loss in more
than half of the documents; one that rewards the damage in fewer. Where a document's losses are
equal it counts half.

Half is not all that chance can do: losses move with the number of segments and with their lengths,
whatever the text says, and damage changes both. So the same segmentations are also scored on the
document rotated: its units in the same order, but begun elsewhere, as a ring. Lengths,
damage and text are then the same, and only the boundaries stand in other places. What is noticed
there as often is not noticed because of where the boundaries are. Every draw has a rotation of its
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reffree.data.corpus import Corpus
from reffree.data.perturbation import parse_perturbation, perturb
from reffree.data.segmentation import Segmentation
from reffree.encoders.embed import Embeddings
from reffree.evaluate.metric_set import MetricSet
from reffree.evaluate.score import scores_of
from reffree.evaluate.scores import Scores, ScoreSettings, corpus_mean
from reffree.metrics.free.result import Unsegmented
from reffree.statistics.resampling import DocumentBootstrap
from reffree.studies.study import StudySettings
from reffree.util.arrays import Booleans, Floats, Integers, mean_defined
from reffree.util.seeds import rng_for

STRENGTHS: dict[str, tuple[str, ...]] = {
    "removal": ("0.25", "0.5", "1.0"),
    "insertion": ("0.25", "0.5", "1.0"),
    "transposition": ("1", "2", "3"),
    "replacement": ("0.25", "0.5", "1.0"),
}
"""Shares of the boundaries, or the units they move by."""

RANDOM = "random"
KINDS = (*STRENGTHS, RANDOM)
DAMAGES = (*((kind, s) for kind, values in STRENGTHS.items() for s in values), (RANDOM, "1.0"))

UNSEGMENTED: Unsegmented = "neutral"
"""What a document scores without its last boundary: the default of all commands."""

CHANCE = 0.5
"""Share of documents below which a metric rewards the damage."""

CLEAR = 0.05
"""Distance from chance below which noticing is of no use, however surely it is there: such a metric
prefers the damaged one of two segmentations in 45 of 100 documents."""

TIE = 1e-9
"""Losses nearer than this, relative to their size, are equal: the rest is rounding."""

NOTICES = "notices"
MISSES = "does not notice"
PREFERS = "prefers the damage"
TOO_FEW = "too few documents"


Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DamageTest:
    """How often one metric notices damage to the source of one corpus: a row for each kind."""

    damages: dict[tuple[str, str], Row]  # by kind and strength
    kinds: dict[str, Row]  # all strengths of a kind together
    overall: Row  # the mean of the kinds
    gap: float | None  # mean loss of random boundaries minus that of the source
    gap_ci: tuple[float, float] | None

    @property
    def verdict(self) -> str:
        """What it prefers counts most; then whether it notices where boundaries are."""
        verdict: str = self.overall["verdict"]
        return PREFERS if self.kinds_with(PREFERS) else verdict

    def kinds_with(self, *verdicts: str) -> list[str]:
        """Kinds of damage of these verdicts, those of the first one first."""
        return [kind for v in verdicts for kind, row in self.kinds.items() if row["verdict"] == v]

    @property
    def unnoticed(self) -> list[str]:
        """Kinds of damage it neither notices nor prefers, as far as can be told."""
        return self.kinds_with(MISSES, TOO_FEW)

    @property
    def resolution(self) -> float | None:
        """Half the gap's interval as a part of the gap: smaller differences drown in noise."""
        if self.gap is None or self.gap_ci is None or self.gap <= 0:
            return None
        return (self.gap_ci[1] - self.gap_ci[0]) / 2 / self.gap


def judge_share(
    share: float | None, ci: tuple[float, float] | None, excess_ci: tuple[float, float] | None
) -> str:
    """Say whether a metric notices damage, as far as the intervals support it.

    ``share`` is that of documents in which its loss rises, ``ci`` its interval; ``excess_ci`` is
    that of the share beyond the one on rotated documents.
    """
    if share is None or ci is None:
        return TOO_FEW
    is_place = excess_ci is not None and excess_ci[0] > 0
    if ci[0] > CHANCE and share >= CHANCE + CLEAR and is_place:
        return NOTICES
    return PREFERS if ci[1] < CHANCE and share <= CHANCE - CLEAR else MISSES


def damaged(
    corpus: Corpus, source: str, *, seeds: int, seed: int
) -> list[tuple[Segmentation, ...]]:
    """Every damage of every seed, in the order of `DAMAGES` and then seeds."""
    made = []
    for kind, strength in DAMAGES:
        for i in range(seed * seeds, (seed + 1) * seeds):  # another seed shares no draw
            if kind == RANDOM:
                made.append(_random(corpus, source, i))
            else:
                perturbation = parse_perturbation(f"{kind}:{strength}")
                made.append(perturb(corpus, perturbation, i, source).segmentations)
    return made


def rotation(n: int, id: str, seed: int) -> Integers:
    """Order of a document's units begun elsewhere, at least a quarter of it away, as a ring."""
    least = max(1, n // 4)
    start = int(rng_for(seed, "turned", id).integers(least, n - least + 1)) if n > 1 else 0
    return np.roll(np.arange(n), -start)


def run_damage_tests(
    corpus: Corpus,
    embedded: Embeddings,
    source: str,
    metrics: MetricSet,
    *,
    seeds: int,
    bootstrap: DocumentBootstrap,
    settings: StudySettings,
) -> dict[str, DamageTest]:
    """Damage the source in every way, with ``seeds`` draws each, and score it by every metric."""
    seed = settings.seed
    how = ScoreSettings(settings, UNSEGMENTED, seed=seed)
    columns = [corpus.hypotheses[source], *damaged(corpus, source, seeds=seeds, seed=seed)]
    hypotheses = list(zip(*columns, strict=True))  # by document

    def score(rows: Sequence[tuple[Segmentation, ...]], orders: Sequence[Integers]) -> Scores:
        """Score hypotheses of every document on its units in this order."""
        documents, vectors = [], []
        for document, x, row, order in zip(corpus, embedded.vectors, rows, orders, strict=True):
            units = tuple(document.units[at] for at in order)
            systems = {f"{i}": each for i, each in enumerate(row)}
            documents.append(replace(document, units=units, gold=None, golds={}, systems=systems))
            vectors.append(x[order])
        encoded = replace(embedded, vectors=vectors)
        return scores_of(Corpus.of_checked(documents), metrics, how, encoded, settings.progress)

    as_it_is = score(hypotheses, [np.arange(len(each.units)) for each in corpus])
    rotated = [
        score(
            [(row[0], *row[1 + i :: seeds]) for row in hypotheses],
            [rotation(len(each.units), each.id, seed * seeds + i) for each in corpus],
        )
        for i in range(seeds)
    ]
    is_changed = np.array([[h != row[0] for h in row[1:]] for row in hypotheses])
    return {
        name: _damage_test(
            metrics.metric(name).losses(as_it_is.raw[m]),
            as_it_is.weights[m, :, 0],
            metrics.metric(name).losses(np.stack([x.raw[m] for x in rotated], 2)),
            is_changed,
            bootstrap,
        )
        for m, name in enumerate(metrics.names)
    }


def risen(before: Floats, after: Floats) -> Floats:
    """1 where a loss rises, 0 where it falls, ½ where it stays; NaN where either is undefined."""
    slack = TIE * np.maximum(1.0, np.maximum(np.abs(before), np.abs(after)))
    change = after - before
    is_change = np.where(np.isnan(change), np.nan, np.abs(change) > slack)
    rises: Floats = 0.5 + 0.5 * np.sign(change) * is_change
    return rises


def _damage_test(
    losses: Floats,
    weights: Floats,
    on_rings: Floats,
    is_changed: Booleans,
    bootstrap: DocumentBootstrap,
) -> DamageTest:
    """Count; losses are (d, 1 + damages * seeds), those on rings (d, 1 + damages, seeds)."""
    seeds = on_rings.shape[2]
    shape = (len(losses), len(DAMAGES), seeds)
    changed = is_changed.reshape(shape)
    rises = risen(losses[:, :1], losses[:, 1:]).reshape(shape)
    told, by_chance = (
        mean_defined(np.where(changed, each, np.nan), 2)
        for each in (rises, risen(on_rings[:, :1], on_rings[:, 1:]))
    )  # (d, damages)
    was_damaged: Booleans = np.any(changed, axis=2)

    def notice(chosen: Sequence[Sequence[int]]) -> Row:
        """In which share of documents the loss rises: mean over kinds of that over damages.

        ``documents`` tell; ``undefined`` are damaged, but without a loss before or after;
        ``turned`` is the share of rotated documents, which is due to lengths alone.
        """
        values, chance = (
            mean_defined(np.stack([mean_defined(x[:, kind], 1) for kind in chosen], 1), 1)
            for x in (told, by_chance)
        )
        touched = np.any(was_damaged[:, [j for kind in chosen for j in kind]], axis=1)
        defined = ~np.isnan(values)
        share, turned, excess = (
            corpus_mean(x, np.ones_like(x)) for x in (values, chance, values - chance)
        )
        ci = bootstrap.interval(share, values)
        excess_ci = bootstrap.interval(excess, values - chance)
        row = {"share": share, "ci": ci, "turned": turned, "excess_ci": excess_ci}
        row |= {"documents": int(defined.sum()), "undefined": int((touched & ~defined).sum())}
        return row | {"verdict": judge_share(share, ci, excess_ci)}

    at = {kind: [j for j, damage in enumerate(DAMAGES) if damage[0] == kind] for kind in KINDS}
    first = 1 + at[RANDOM][0] * seeds
    gaps = mean_defined(losses[:, first : first + seeds], 1) - losses[:, 0]
    gap = corpus_mean(gaps, weights)
    return DamageTest(
        damages={damage: notice([[j]]) for j, damage in enumerate(DAMAGES)},
        kinds={kind: notice([at[kind]]) for kind in KINDS},
        overall=notice(list(at.values())),
        gap=gap,
        gap_ci=bootstrap.interval(gap, gaps, weights),
    )


def _random(corpus: Corpus, source: str, seed: int) -> tuple[Segmentation, ...]:
    """As many boundaries as the source has in each document, any set of gaps equally likely."""
    made = []
    for document, segmentation in zip(corpus, corpus.hypotheses[source], strict=True):
        n = segmentation.n_units
        rng = rng_for(seed, source, RANDOM, document.id)
        gaps = rng.permutation(n - 1)[: len(segmentation) - 1] + 1
        made.append(Segmentation.from_boundaries(gaps.tolist(), n))
    return tuple(made)
