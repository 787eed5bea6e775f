"""What makes metrics mislead on a corpus, and which of them can be trusted? Needs no gold.

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

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, Unpack

import numpy as np

from reffree.data.corpus import GOLD, Corpus
from reffree.data.perturbation import parse_perturbation, perturb
from reffree.data.segmentation import Segmentation
from reffree.encoders.embed import Embeddings, Vectors
from reffree.evaluate.metric_set import MetricSet
from reffree.evaluate.result import Result, Table, columns, estimate
from reffree.evaluate.score import scores_of
from reffree.evaluate.scores import Scores, ScoreSettings, corpus_mean
from reffree.evaluate.signature import Signature
from reffree.metrics.free.expected import FEWEST_UNITS, ExpectedPk
from reffree.metrics.free.result import Unsegmented
from reffree.metrics.registry import GOLD_METRICS, STUDIED
from reffree.statistics.resampling import MIN_DOCUMENTS, DocumentBootstrap
from reffree.studies.diagnose_checks import RULES, Ends, Row, check_corpus, densities
from reffree.studies.keywords import StudyKeywords, metric_option
from reffree.studies.study import (
    StudiedCorpus,
    StudySettings,
    corpus_parts,
    study_result,
)
from reffree.util.arrays import Booleans, Floats, Integers, mean_defined
from reffree.util.bounds import Bounds
from reffree.util.declare import Option, declared
from reffree.util.errors import InputError, OptionError, UnknownNameError, counted, listed, shorten
from reffree.util.seeds import rng_for

SHOWN_TEXTS = 5
"""Repeated texts named for each corpus, the most frequent first."""

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

SHARE = (
    *estimate("share", "noticed", "share", ci="ci"),
    *columns("count", "documents", "undefined"),
    *columns("share", turned="by chance"),
    *columns("interval", excess_ci="beyond chance, 95 %"),
    *columns("text", "verdict"),
)
CHECKS = (
    *columns("text", "corpus", "check", "verdict", "advice", unit="what"),
    *estimate("value", "value", ci="ci"),
)
REPEATED = (*columns("text", "corpus", "text"), *columns("count", "units"))
METRICS = (
    *columns("text", "corpus", "metric", "verdict", "prefers", misses="may miss"),
    *estimate("share", "noticed", "share", ci="ci"),
    *columns("share", turned="by chance"),
    *columns("share", *KINDS),
    *estimate("gap", "gap"),
)
NOTICED = (*columns("text", "corpus", "metric", "kind"), *columns("number", "strength"), *SHARE)
KIND_SHARES = (*columns("text", "corpus", "metric", "kind"), *SHARE)
DENSITY = (
    *columns("text", "corpus", "system"),
    *columns("count", "segments"),
    *columns("number", per_unit="per unit", ratio="of the source's"),
)
SHOWN_TABLES = {
    "checks": ("What may mislead metrics", CHECKS),
    "repeated": ("Most frequent exact twins", REPEATED),
    "metrics": ("Share of documents in which damage raises the loss", METRICS),
    "advice": ("Advice", columns("text", "corpus", "about", "advice")),
}
CHART_TABLES = {
    "noticed": ("By kind and strength", NOTICED),
    "kinds": ("By kind", KIND_SHARES),
    "density": ("Segments of systems", DENSITY),
}

READING = {
    "value": "shares are over the whole corpus, with an interval over documents",
    "verdict": "of a check: ok, watch or problem, by limits in the settings; none where it cannot "
    "be judged",
    "noticed": "share of documents in which damage to the source raises the metric's loss, mean "
    "over kinds of damage; equal losses count half",
    "by chance": "the same share with the same segmentations on turned documents, whose units "
    "begin elsewhere and form a ring: what the number and lengths of segments do wherever the "
    "boundaries are; 50 % for a metric that they do not move",
    "notices": "the interval lies above 50 %, the share is 55 % or more, and it is surely more "
    "than by chance",
    "does not notice": "what is neither noticed nor preferred by these rules",
    "prefers the damage": "of one kind at least: the interval lies below 50 %, the share at 45 % "
    "or less",
    "random": "as many boundaries as the source has, in random places",
    "gap": "mean loss of those random boundaries minus that of the source",
    "resolution": "half the width of the gap's interval as a part of the gap, for the metric where "
    "it is smallest: smaller differences between systems drown in noise",
    "semantic returns": "segments whose nearest segment by centroid is no neighbour; by chance: if "
    "the order of segments said nothing",
    "information": "what the text adds to a prior over segmentations, for each nat that its units "
    "in random order would add: at 1, expected errors rest on the prior",
    "consecutive gain": "what the order of units says about their vectors; without it no boundary "
    "can show",
}


@declared
def diagnose(
    corpora: Mapping[str, Corpus],
    *,
    source: Annotated[
        str | None,
        Option(
            "The segmentation to trust most, which is checked and damaged.",
            metavar="NAME",
            default="gold where it is complete, else the system with the lowest expected_pk",
        ),
    ] = None,
    metrics: Annotated[
        Sequence[str] | None,
        metric_option(
            "Reference-free, as in reffree score; may be repeated.",
            names="free",
            default="those of reffree score",
        ),
    ] = None,
    threshold: Annotated[float, Option("Cosine from which two units are near twins.")] = 0.95,
    seeds: Annotated[int, Bounds(1, 10_000), Option("Draws of every damage.")] = 5,
    embeddings: Mapping[str, Vectors] | None = None,
    **keywords: Unpack[StudyKeywords],
) -> Result:
    """Check what misleads reference-free metrics, and which of them notice damage.

    Looks for units with twins in other segments, topics that come back, one-unit segments, text
    that was cut off and vectors that say little. Then damages the best segmentation at hand and
    sees which metrics notice; no gold is needed. Each CORPUS is a corpus of its own.
    """
    settings = StudySettings(**keywords)
    for name in metrics or ():
        if name == "gold" or name.partition(":")[0] in GOLD_METRICS:
            raise OptionError(
                f"the gold-based metric {name!r}",
                expected="reference-free metrics",
                remedy="leave it out: what is diagnosed here are scores without gold",
            )
    if not 0 < threshold <= 1:
        raise OptionError(
            f"threshold {threshold}",
            expected="a cosine above 0, at most 1",
            remedy="leave it out for 0.95",
        )
    parts = corpus_parts(corpora, embeddings, settings, one_gold=True)
    wanted = STUDIED if metrics is None else metrics
    chosen = settings.choose_metrics(wanted, parts[0].corpus)
    for part in parts:
        _check_source(part.corpus, source)
        part.check(chosen.reference_free.values(), (), settings)
    diagnosed = []
    for part in parts:
        corpus, embedded = part.corpus, part.encode(settings)
        found, reason = _choose_source(corpus, embedded, source, settings)
        bootstrap = DocumentBootstrap(len(corpus), rng_for(settings.seed, "documents"))
        how = (bootstrap, settings)
        tests = run_damage_tests(corpus, embedded, found, chosen, seeds, *how)
        resolutions = {name: test.get("resolution") for name, test in tests.items()}
        judged = check_corpus(corpus, embedded, found, resolutions, threshold, *how)
        signature = Signature.of(chosen, corpus, embedded, seed=settings.seed)
        about = (part.name, corpus, embedded, signature)
        diagnosed.append(Diagnosis(*about, found, reason, *judged, tests))
    return study_result(
        "diagnose",
        diagnosed,
        question="What makes metrics mislead on this corpus, and which of them can be trusted?",
        verdict=_answer(diagnosed),
        tables=_tables(diagnosed),
        signature={
            "source": "+".join(dict.fromkeys(each.source for each in diagnosed)),
            "threshold": f"{threshold:g}",
            "damage": "+".join(f"{k}({','.join(s)})" for k, s in STRENGTHS.items()) + "+random",
            "seeds": f"{seeds}",
        },
        settings={
            "sources": {d.name: {"name": d.source, "reason": d.reason} for d in diagnosed},
            "metrics": list(chosen.names),
            "damages": [list(damage) for damage in DAMAGES],
            "unsegmented": UNSEGMENTED,
            "rules": {n: {"watch": r.watch, "problem": r.problem} for n, r in RULES.items()},
        },
        notes=[note for each in diagnosed for note in _source_notes(each)],
        reading=READING,
    )


@dataclass(frozen=True, slots=True)
class Diagnosis(StudiedCorpus):
    """One corpus, looked at from every side."""

    source: str  # the best segmentation at hand, which is what is damaged
    reason: str  # why it was taken
    checks: list[Row]
    repeated: Counter[str]  # units with an exact twin in another segment, by text
    damage_tests: dict[str, Row]  # by metric, as of `run_damage_tests`


def _check_source(corpus: Corpus, name: str | None) -> None:
    """Refuse a corpus without any segmentation, and a name that it does not have."""
    if not corpus.hypotheses:
        raise InputError(
            "no segmentation to diagnose with: no systems, and no gold in every document",
            expected="at least one system or a complete gold",
            remedy='add "systems" to the corpus, or make some with reffree segment',
            place=corpus.documents[0].place,
        )
    if name is not None and name not in corpus.hypotheses:
        raise UnknownNameError("system", name, corpus.hypotheses)
    must_choose = name is None and GOLD not in corpus.hypotheses and len(corpus.hypotheses) > 1
    if must_choose and all(len(document.units) < FEWEST_UNITS for document in corpus):
        raise InputError(
            "no system with an expected_pk to choose the source by",
            expected=f"a document of {FEWEST_UNITS} units or more",
            remedy="name the system to trust most with --source",
            place=corpus.documents[0].place,
        )


def _choose_source(
    corpus: Corpus, embedded: Embeddings, name: str | None, settings: StudySettings
) -> tuple[str, str]:
    """Return the named one, else gold, else the system with the lowest ``expected_pk``; and why.

    It is the one metric here that punishes too many boundaries and too few: others would pick the
    system that searched hardest, or cut most. Of equal systems the first is taken.
    """
    systems = list(corpus.hypotheses)
    if name is not None:
        return name, "as asked for"
    if GOLD in systems:
        return GOLD, "complete in every document"
    if len(systems) == 1:
        return systems[0], "the only system"
    metric = ExpectedPk(seed=settings.seed)
    metrics = MetricSet((metric.name,), {metric.name: metric}, {})
    scores = scores_of(corpus, metrics, ScoreSettings(settings, seed=settings.seed), embedded)
    losses = mean_defined(metric.losses(scores.raw[0]), 0)
    best = int(np.nanargmin(losses))
    return systems[best], f"the lowest expected_pk of {len(systems)} systems ({losses[best]:.3f})"


def judge_share(share: float | None, ci: Ends | None, excess_ci: Ends | None) -> str:
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
    draws = range(seed * seeds, (seed + 1) * seeds)  # another seed shares no draw
    return [
        _random(corpus, source, draw)
        if kind == RANDOM
        else perturb(corpus, parse_perturbation(f"{kind}:{s}"), draw, source).segmentations
        for (kind, s), draw in product(DAMAGES, draws)
    ]


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
    seeds: int,
    bootstrap: DocumentBootstrap,
    settings: StudySettings,
) -> dict[str, Row]:
    """Damage the source in every way, with ``seeds`` draws each, and score it by every metric.

    A metric's row has the mean of the kinds of damage, rows of the ``kinds``, and of all
    ``damages`` by kind and strength.
    """
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
) -> Row:
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
    gap_ci = bootstrap.interval(gap, gaps, weights)
    kinds = {kind: notice([at[kind]]) for kind in KINDS}
    by_verdict = {
        verdict: [kind for kind, row in kinds.items() if row["verdict"] == verdict]
        for verdict in (PREFERS, MISSES, TOO_FEW)
    }
    # What it prefers counts most; then whether it notices where boundaries are.
    row = notice(list(at.values()))
    row |= {"verdict": PREFERS} if by_verdict[PREFERS] else {}
    row |= {"preferred": by_verdict[PREFERS], "unnoticed": by_verdict[MISSES] + by_verdict[TOO_FEW]}
    if gap is not None and gap_ci is not None and gap > 0:
        # Half the gap's interval as a part of the gap: smaller differences drown in noise.
        row["resolution"] = (gap_ci[1] - gap_ci[0]) / 2 / gap
    row |= {"gap": gap, "gap_ci": gap_ci, "kinds": kinds}
    return row | {"damages": {damage: notice([[j]]) for j, damage in enumerate(DAMAGES)}}


def _random(corpus: Corpus, source: str, seed: int) -> tuple[Segmentation, ...]:
    """As many boundaries as the source has in each document, any set of gaps equally likely."""
    made = []
    for document, segmentation in zip(corpus, corpus.hypotheses[source], strict=True):
        n = segmentation.n_units
        rng = rng_for(seed, source, RANDOM, document.id)
        gaps = rng.permutation(n - 1)[: len(segmentation) - 1] + 1
        made.append(Segmentation.from_boundaries(gaps.tolist(), n))
    return tuple(made)


def _tables(diagnosed: Sequence[Diagnosis]) -> Iterator[Table]:
    """Verdicts and advice to be read, then what charts are made from."""
    by_table: dict[str, list[Row]] = {name: [] for name in SHOWN_TABLES | CHART_TABLES}
    for each in diagnosed:
        for name, row in _rows(each):
            by_table[name].append({"corpus": each.name, **row})
    for name, (title, fields) in (SHOWN_TABLES | CHART_TABLES).items():
        if by_table[name] or name != "repeated":
            yield Table.of(name, title, fields, by_table[name], shown=name in SHOWN_TABLES)


def _rows(each: Diagnosis) -> Iterator[tuple[str, Row]]:
    """Yield the rows of every table, each with the table's name."""
    yield from (("checks", row) for row in each.checks)
    repeated = sorted(each.repeated.items(), key=lambda item: (-item[1], item[0]))
    for text, n in repeated[:SHOWN_TEXTS]:
        yield "repeated", {"text": shorten(" ".join(text.split())), "units": n}
    tests = each.damage_tests
    for metric, test in tests.items():
        row = test | {"metric": metric, "prefers": ", ".join(test["preferred"]) or None}
        row |= {kind: found["share"] for kind, found in test["kinds"].items()}
        yield "metrics", row | {"misses": ", ".join(test["unnoticed"]) or None}
        for (kind, strength), row in test["damages"].items():
            yield "noticed", {"metric": metric, "kind": kind, "strength": float(strength), **row}
        for kind, row in test["kinds"].items():
            yield "kinds", {"metric": metric, "kind": kind, **row}
    for about, text in metric_advice(tests):
        yield "advice", {"about": about, "advice": text}
    bad = [check for check in each.checks if check.get("advice")]
    for check in sorted(bad, key=lambda check: check["verdict"] != "problem"):
        text = f"{_describe(check).capitalize()}: {check['advice']}."
        yield "advice", {"about": check["check"], "advice": text}
    for system, share in densities(each.corpus, each.source).items():
        n = sum(map(len, each.corpus.hypotheses[system]))
        row = {"system": system, "segments": n, "per_unit": n / each.corpus.n_units}
        yield "density", row | {"ratio": share}


def _source_notes(each: Diagnosis) -> Iterator[str]:
    """What a reader must know before trusting the verdicts."""
    note = f"{each.name}: checked with and damaged was {each.source}, {each.reason}."
    if each.source != GOLD:
        note += (
            " Metrics that resemble what this system looks for notice any damage to it: that "
            "they do says less than with gold."
        )
    yield note
    if undamaged := sum(len(made) == 1 for made in each.corpus.hypotheses[each.source]):
        were = "was" if undamaged == 1 else "were"
        documents = counted(undamaged, "document")
        yield f"{each.name}: {documents} without a boundary {were} not damaged."


def _answer(diagnosed: Sequence[Diagnosis]) -> Iterator[str]:
    """Which metrics to use on each corpus, and what stands in their way."""
    for each in diagnosed:
        where = f"{each.name}: " if len(diagnosed) > 1 else ""
        yield where + " ".join(text for _, text in metric_advice(each.damage_tests))
        problems = [_describe(c) for c in each.checks if c.get("verdict") == "problem"]
        if problems:
            yield f"{where}What misleads metrics here: {listed(problems)}."
        else:
            yield f"{where}None of the {len(each.checks)} checks is a problem."


def metric_advice(tests: Mapping[str, Row]) -> Iterator[tuple[str, str]]:
    """Say which metrics to use and which not: what each sentence is about, and the sentence."""
    by_verdict: dict[str, list[str]] = {NOTICES: [], PREFERS: [], MISSES: [], TOO_FEW: []}
    for name in sorted(tests, key=lambda name: (-(tests[name]["share"] or 0.0), name)):
        by_verdict[tests[name]["verdict"]].append(name)
    whole = [name for name in by_verdict[NOTICES] if not tests[name]["unnoticed"]]
    partly = [name for name in by_verdict[NOTICES] if tests[name]["unnoticed"]]
    blind, unknown = by_verdict[MISSES], by_verdict[TOO_FEW]
    if not (whole or partly or unknown):
        yield "all", "Rank no systems here without gold: no metric notices damage."
    if whole:
        its = "its" if len(whole) == 1 else "their"
        why = f"every kind of damage raises {its} loss in more documents than by chance"
        yield ", ".join(whole), f"Use {_shares(whole, tests)}: {why}."
    if partly:
        weak = [f"{_shares([n], tests)} may miss {_kinds(tests[n]['unnoticed'])}" for n in partly]
        yield ", ".join(partly), f"Use with care: {'; '.join(weak)}."
    for name in by_verdict[PREFERS]:
        kinds, preferred = tests[name]["kinds"], tests[name]["preferred"]
        shares = [f"{_kinds([k])} ({1 - (kinds[k]['share'] or 0):.0%})" for k in preferred]
        lower = "lowers" if len(shares) == 1 else "lower"
        why = f"{listed(shares)} {lower} its loss in that share of documents"
        yield name, f"Do not use {name}: {why}."
    if blind:
        notice = "it notices" if len(blind) == 1 else "they notice"
        why = f"whether {notice} damage here cannot be told from chance"
        yield ", ".join(blind), f"Do not rely on {_shares(blind, tests)}: {why}."
    if unknown:
        why = f"fewer than {MIN_DOCUMENTS} documents could be damaged and scored"
        yield ", ".join(unknown), f"Whether {listed(unknown)} can be trusted is not known: {why}."


def _shares(names: Sequence[str], tests: Mapping[str, Row]) -> str:
    rows = {name: tests[name] for name in names}
    return listed(
        f"{name} ({row['share']:.0%}, by chance {row['turned']:.0%})" for name, row in rows.items()
    )


def _kinds(kinds: Sequence[str]) -> str:
    return listed("random boundaries" if kind == RANDOM else kind for kind in kinds)


def _describe(check: Row) -> str:
    """Name a check with its value."""
    value, unit = check["value"], check["unit"]
    if value is None:
        return str(check["check"])
    shown = f"{value:.1%}" if unit.startswith("of ") else f"{value:.3g}"
    return f"{check['check']} ({shown} {unit})"
