"""What makes metrics mislead on a corpus, and which of them can be trusted? Needs no gold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, NamedTuple, Unpack

import numpy as np

from reffree.data.corpus import GOLD, Corpus
from reffree.data.filter import is_backchannel
from reffree.encoders.embed import Embeddings, Vectors
from reffree.evaluate.metric_set import MetricSet
from reffree.evaluate.result import Result, Table, columns, estimate
from reffree.evaluate.score import scores_of
from reffree.evaluate.scores import ScoreSettings, corpus_mean
from reffree.evaluate.signature import Signature
from reffree.metrics.free.evidence import Reading
from reffree.metrics.free.expected import FEWEST_UNITS, INFORMED, ExpectedPk
from reffree.metrics.registry import GOLD_METRICS, STUDIED
from reffree.statistics.resampling import MIN_DOCUMENTS, DocumentBootstrap
from reffree.studies.diagnose_damage import (
    DAMAGES,
    KINDS,
    MISSES,
    NOTICES,
    PREFERS,
    RANDOM,
    STRENGTHS,
    TOO_FEW,
    UNSEGMENTED,
    DamageTest,
    run_damage_tests,
)
from reffree.studies.diagnose_vectors import (
    EQUAL_MARGIN,
    VectorShape,
    directions,
    exact_twins,
    near_twins,
    semantic_returns,
)
from reffree.studies.keywords import StudyKeywords, metric_option
from reffree.studies.study import (
    CorpusPart,
    StudiedCorpus,
    StudySettings,
    corpus_parts,
    study_result,
)
from reffree.util.arrays import Floats, mean_defined, ratio
from reffree.util.bounds import Bounds
from reffree.util.declare import Option, declared
from reffree.util.errors import InputError, OptionError, UnknownNameError, counted, listed, shorten
from reffree.util.seeds import rng_for

SHOWN_TEXTS = 5
"""Repeated texts named for each corpus, the most frequent first."""

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

Row = dict[str, Any]
Ends = tuple[float, float]


class Rule(NamedTuple):
    """Two limits of a check; where ``watch`` is above ``problem``, low values are the bad ones."""

    check: str
    watch: float
    problem: float
    advice: str  # where the value is not ok

    def verdict(self, value: float) -> str:
        """Judge a value.

        >>> Rule("high", 0.05, 0.2, "").verdict(0.1), Rule("low", 30, 10, "").verdict(9)
        ('watch', 'problem')
        """
        sign = 1 if self.watch <= self.problem else -1
        if sign * value >= sign * self.problem:
            return "problem"
        return "watch" if sign * value >= sign * self.watch else "ok"

    def judge(
        self, unit: str, value: float | None, ci: Ends | None = None, *, by: float | None = None
    ) -> Row:
        """Make a row of a value, judged ``by`` another one where that is given."""
        row: Row = {"check": self.check, "value": value, "unit": unit, "ci": ci}
        if value is None:
            return row
        verdict = self.verdict(value if by is None else by)
        return row | {"verdict": verdict} | ({} if verdict == "ok" else {"advice": self.advice})


RULES = {
    # A segment of ten units then has two that are as much another segment's as its own.
    "exact_twins": Rule("exact twins", 0.05, 0.20, "compare with scores under --drop repeats"),
    # As for exact ones: the embedding space makes no difference between the two.
    "near_twins": Rule(
        *("near twins", 0.05, 0.20),
        "segments share what they say: trust only metrics that notice damage",
    ),
    # As for twins, which backchannels are of each other.
    "backchannels": Rule(
        "backchannels", 0.05, 0.20, "compare with scores under --drop backchannels"
    ),
    # Share of returns beyond chance: one segment in twenty, or in seven, is turned back to.
    "returns": Rule(
        *("semantic returns", 0.05, 0.15),
        "topics come back: no metric here looks beyond neighbouring segments",
    ),
    # One-unit segments have no cohesion: every metric gives them a made-up value (a mean, or 0).
    "singletons": Rule(
        "singletons", 0.10, 0.33, "their scores are made up: prefer expected_pk, which needs none"
    ),
    # Such documents have the same loss whatever their text says; in a quarter, they set the score.
    "unsegmented": Rule("unsegmented", 0.05, 0.25, "compare --unsegmented neutral with skip"),
    # The model saw only the beginning of these units; one in ten shows in any mean over units.
    "truncated": Rule(
        "truncated", 0.01, 0.10, "use an encoder that reads longer texts, or split long units"
    ),
    # Beyond, most of a cosine is what all units share (Ethayarajh 2019: words in GPT-2, up to .99).
    "random_cosine": Rule(
        *("random cosine", 0.30, 0.60),
        "all vectors point one way: try another encoder, and raise --threshold",
    ),
    # At 0, the order of units says nothing about their vectors, so no boundary can show in them.
    "consecutive_gain": Rule(
        *("consecutive gain", 0.03, 0.0),
        "units beside each other are hardly closer than others: try another encoder",
    ),
    # Fewer directions than topics in a document cannot keep its topics apart.
    "effective_dimension": Rule(
        "effective dimension", 10, 3, "too few directions to keep topics apart: try another encoder"
    ),
    # Below, the text says no more about where boundaries are than its units in random order would.
    "information": Rule(
        *("information", 1.4, INFORMED),
        "expected errors rest on the prior, not on this text: try another encoder, or compare "
        "systems with gold",
    ),
    # Bootstrap intervals over fewer than ten documents are too narrow, below thirty still rough.
    "documents": Rule("documents", 29, 9, "intervals over so few documents are rough: add some"),
    # With fewer than five units a document has fewer than four places for a boundary.
    "median_units": Rule(
        "units", 9, 4, "scores of so short documents are unstable: read the corpus's only"
    ),
    # At 1, even the source cannot be told from random boundaries; systems differ by less than that.
    "resolution": Rule(
        "resolution", 0.33, 1.0, "smaller differences between systems are noise: add documents"
    ),
    # Losses move with the number of segments alone: raw Silhouette on drift, .25 at 3, .08 at 21.
    "density": Rule(
        *("density", 1.5, 2.0),
        "use expected_pk, with a length if you know it, or --null: losses move with density",
    ),
}
"""From which value on each check is to be watched, or is a problem, and what to do then."""


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
    diagnosed = [_diagnose(part, source, chosen, threshold, seeds, settings) for part in parts]
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
    damage_tests: dict[str, DamageTest]  # by metric


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


def _diagnose(
    part: CorpusPart,
    name: str | None,
    chosen: MetricSet,
    threshold: float,
    seeds: int,
    settings: StudySettings,
) -> Diagnosis:
    """Choose the source of a corpus, measure, damage, judge."""
    corpus, embedded = part.corpus, part.encode(settings)
    source, reason = _choose_source(corpus, embedded, name, settings)
    bootstrap = DocumentBootstrap(len(corpus), rng_for(settings.seed, "documents"))
    segmentations = corpus.hypotheses[source]
    expected = ExpectedPk(seed=settings.seed)
    repeated: Counter[str] = Counter()
    measured: list[dict[str, float]] = []
    with settings.progress("Diagnosing", len(corpus)) as advance:
        for document, x, segmentation in zip(corpus, embedded.vectors, segmentations, strict=True):
            rows, segment = directions(x), np.array(segmentation.to_segment_ids())
            twins = exact_twins(document.units, segment)
            repeated.update(u for u, is_twin in zip(document.units, twins, strict=True) if is_twin)
            margins, chance = semantic_returns(rows, segmentation.masses)
            # Nats a boundary that the text adds to the prior, and its units in random order;
            # 0 in documents too short for a posterior.
            facts = expected.posterior(x, Reading(document.units)).facts()
            row = {
                **{"documents": 1, "units": len(document.units), "segments": len(segmentation)},
                "exact_twins": twins.sum(),
                "near_twins": near_twins(rows, segment, threshold).sum(),
                "backchannels": sum(map(is_backchannel, document.units)),
                "singletons": sum(mass == 1 for mass in segmentation.masses),
                "unsegmented": len(segmentation) == 1,
                **{"compared": len(margins), "margins": margins.sum(), "by_chance": chance.sum()},
                "returns": (margins > EQUAL_MARGIN).sum(),
                "information": 0.0 if facts is None else facts.information,
                "chance_information": 0.0 if facts is None else facts.chance_information,
            }
            measured.append(row)
            advance(1)
    tests = run_damage_tests(
        corpus, embedded, source, chosen, seeds=seeds, bootstrap=bootstrap, settings=settings
    )
    counts = {name: np.array([row[name] for row in measured], np.float64) for name in measured[0]}
    checks = [
        *_text_checks(embedded, counts, bootstrap, threshold),
        *_size_checks(corpus, source, tests),
    ]
    signature = Signature.of(chosen, corpus, embedded, unsegmented=UNSEGMENTED, seed=settings.seed)
    return Diagnosis(
        *(part.name, corpus, embedded, signature), source, reason, checks, repeated, tests
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
    means = [corpus_mean(raw, np.ones(len(corpus))) for raw in scores.raw[0].T]
    losses = [np.inf if mean is None else metric.orientation.loss(mean) for mean in means]
    best = int(np.argmin(losses))
    return systems[best], f"the lowest expected_pk of {len(systems)} systems ({losses[best]:.3f})"


def _text_checks(
    embedded: Embeddings,
    counts: Mapping[str, Floats],
    bootstrap: DocumentBootstrap,
    threshold: float,
) -> Iterator[Row]:
    """Yield what is wrong with units, segments and vectors; ``counts`` are by document."""
    share = partial(_judge_share, counts, bootstrap)
    yield share("exact_twins", "units", "of units, in another segment")
    unit = f"of units, cosine {threshold:g} or more in another segment"
    yield share("near_twins", "units", unit)
    yield share("backchannels", "units", "of units")
    if embedded.spec.max_length is None:
        yield RULES["truncated"].judge("of units: not known of vectors as given", None)
    else:
        n_units = counts["units"].sum()
        yield RULES["truncated"].judge("of units", embedded.n_truncated / n_units)
    if n := int(counts["compared"].sum()):
        returns, chance, margin = (counts[x].sum() / n for x in ("returns", "by_chance", "margins"))
        unit = f"of {n:,} segments; {chance:.1%} by chance"
        yield share("returns", "compared", unit, by=returns - chance)
        yield {"check": "margin of returns", "value": margin, "unit": "cosine, mean over segments"}
    else:
        yield RULES["returns"].judge("needs documents of 3 segments or more", None)
    yield share("singletons", "segments", "of segments have one unit")
    yield share("unsegmented", "documents", "of documents have no boundary")
    shape = VectorShape.of(map(directions, embedded.vectors))
    yield RULES["random_cosine"].judge("mean over all pairs of units", shape.random_cosine)
    gains = shape.consecutive_gain
    gain = None if np.isnan(gains).all() else float(mean_defined(gains, 0))
    unit = "cosine of consecutive units over that of any two of a document"
    yield RULES["consecutive_gain"].judge(unit, gain, bootstrap.interval(gain, gains))
    unit = "participation ratio of the vectors' covariance"
    yield RULES["effective_dimension"].judge(unit, shape.effective_dimension)
    unit = "times what the units in random order would add to the prior"
    if counts["chance_information"].any():
        yield share("information", "chance_information", unit)
    else:
        rule = RULES["information"]
        yield rule.judge(unit, None) | {"verdict": "problem", "advice": rule.advice}


def _size_checks(
    corpus: Corpus, source: str, damage_tests: Mapping[str, DamageTest]
) -> Iterator[Row]:
    yield RULES["documents"].judge("in the corpus", len(corpus))
    median = float(np.median([len(document.units) for document in corpus]))
    yield RULES["median_units"].judge("in the median document", median)
    known = {name: each.resolution for name, each in damage_tests.items()}
    resolved = {name: value for name, value in known.items() if value is not None}
    unit = "of the way from source to random"
    if resolved:
        best = min(resolved, key=lambda name: (resolved[name], name))
        yield RULES["resolution"].judge(f"{unit}, by {best}", resolved[best])
    else:
        advice = "no metric tells the source from random boundaries: do not rank systems"
        yield RULES["resolution"].judge(unit, None) | {"verdict": "problem", "advice": advice}
    ratios = {name: ratio for name, ratio in _densities(corpus, source).items() if name != source}
    if ratios:
        worst = max(ratios, key=lambda name: abs(np.log(ratios[name])))
        unit = f"segments of {worst!r} for each of {source!r}, the farthest of {len(ratios)}"
        factor = max(ratios[worst], 1 / ratios[worst])
        yield RULES["density"].judge(unit, ratios[worst], by=factor)


def _densities(corpus: Corpus, source: str) -> dict[str, float]:
    """Segments of every system for each segment of the source."""
    counts = {name: sum(map(len, made)) for name, made in corpus.hypotheses.items()}
    return {name: n / counts[source] for name, n in counts.items()}


def _judge_share(
    counts: Mapping[str, Floats],
    bootstrap: DocumentBootstrap,
    name: str,
    whole: str,
    unit: str,
    *,
    by: float | None = None,
) -> Row:
    """Judge the documents' parts together in their wholes, with an interval over documents."""
    pairs = np.stack([counts[name], counts[whole]], axis=1)  # (documents, 2)

    def share(sums: Floats) -> Floats:
        return ratio(sums[..., 0], sums[..., 1])

    value = float(share(pairs.sum(0)))
    interval = bootstrap.pooled_interval(value, pairs, pairs[:, 1] > 0, share)
    return RULES[name].judge(unit, value, interval, by=by)


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
        row = {**test.overall, **{kind: found["share"] for kind, found in test.kinds.items()}}
        row |= {"metric": metric, "verdict": test.verdict, "gap": test.gap, "gap_ci": test.gap_ci}
        row["prefers"] = ", ".join(test.kinds_with(PREFERS)) or None
        yield "metrics", row | {"misses": ", ".join(test.unnoticed) or None}
        for (kind, strength), row in test.damages.items():
            yield "noticed", {"metric": metric, "kind": kind, "strength": float(strength), **row}
        for kind, row in test.kinds.items():
            yield "kinds", {"metric": metric, "kind": kind, **row}
    for about, text in metric_advice(tests):
        yield "advice", {"about": about, "advice": text}
    bad = [check for check in each.checks if check.get("advice")]
    for check in sorted(bad, key=lambda check: check["verdict"] != "problem"):
        text = f"{_describe(check).capitalize()}: {check['advice']}."
        yield "advice", {"about": check["check"], "advice": text}
    for system, share in _densities(each.corpus, each.source).items():
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


def metric_advice(tests: Mapping[str, DamageTest]) -> Iterator[tuple[str, str]]:
    """Say which metrics to use and which not: what each sentence is about, and the sentence."""
    by_verdict: dict[str, list[str]] = {NOTICES: [], PREFERS: [], MISSES: [], TOO_FEW: []}
    for name in sorted(tests, key=lambda name: (-(tests[name].overall["share"] or 0.0), name)):
        by_verdict[tests[name].verdict].append(name)
    whole = [name for name in by_verdict[NOTICES] if not tests[name].unnoticed]
    partly = [name for name in by_verdict[NOTICES] if tests[name].unnoticed]
    blind, unknown = by_verdict[MISSES], by_verdict[TOO_FEW]
    if not (whole or partly or unknown):
        yield "all", "Rank no systems here without gold: no metric notices damage."
    if whole:
        its = "its" if len(whole) == 1 else "their"
        why = f"every kind of damage raises {its} loss in more documents than by chance"
        yield ", ".join(whole), f"Use {_shares(whole, tests)}: {why}."
    if partly:
        weak = [f"{_shares([n], tests)} may miss {_kinds(tests[n].unnoticed)}" for n in partly]
        yield ", ".join(partly), f"Use with care: {'; '.join(weak)}."
    for name in by_verdict[PREFERS]:
        preferred = {kind: tests[name].kinds[kind] for kind in tests[name].kinds_with(PREFERS)}
        shares = [f"{_kinds([k])} ({1 - (row['share'] or 0):.0%})" for k, row in preferred.items()]
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


def _shares(names: Sequence[str], tests: Mapping[str, DamageTest]) -> str:
    rows = {name: tests[name].overall for name in names}
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
