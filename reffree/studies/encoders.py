"""Which encoder's scores agree best with gold, and do encoders agree with one another?

Cross-judging: systems that optimise similarity under one encoder are scored with another. Where
they beat gold under their own encoder only, their low loss is the encoder's, not the text's.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, product
from statistics import fmean
from typing import Annotated, Any, Unpack

import numpy as np
import psutil
import torch

from reffree.data.corpus import GOLD, Corpus
from reffree.encoders.address import is_endpoint
from reffree.encoders.device import choose_device
from reffree.encoders.embed import distinct_texts
from reffree.encoders.opening import open_encoder
from reffree.encoders.options import EncoderOptions
from reffree.evaluate.result import Field, Result, Table, columns, estimate
from reffree.statistics.meta_evaluation import MetaEvaluation
from reffree.statistics.significance import benjamini_hochberg
from reffree.studies.correlate import ALPHA, case_settings, check_cases, correlation_result
from reffree.studies.correlate_pool import Case, CaseSettings, make_cases, score_case
from reffree.studies.diagnose_checks import VectorShape, directions
from reffree.studies.keywords import CorrelationKeywords, EncodersOption
from reffree.util.arrays import mean_defined
from reffree.util.declare import Option, declared
from reffree.util.errors import InputError, listed
from reffree.util.grid import group_by
from reffree.util.seeds import rng_for

RECOMMENDED = "expected_pk"
"""The metric that encoders are chosen by, where it is among the metrics."""

SAMPLE, ROUNDS = 256, 3
"""Distinct texts that are encoded to measure speed, drawn at random, and how often."""

READING = {
    "difference": "Pearson's correlation of a metric with a gold-based one under encoder a, less "
    "that under encoder b, over the same independent systems; interval and p are over the same "
    "resamples of documents for both, so of these very systems on other documents",
    "p_bh of a difference": "two-sided, corrected for all rows of the table (Benjamini–Hochberg)",
}

Cases = Mapping[tuple[str, str], Case]
"""By encoder and corpus."""

PAIR = columns("text", "corpus", encoder_a="encoder a", encoder_b="encoder b", metric="metric")
ENCODERS = (
    *columns("text", "encoder", "corpus"),
    *columns("count", dimension="dimension", max_length="max length"),
    *columns("share", "truncated"),
    *columns("number", "anisotropy", effective_dimension="effective dimension"),
    *columns("number", consecutive_gain="neighbours' gain"),
)
SPEED = (
    Field("units_per_second", "units/s", "count", best="high"),
    Field("slowest_round", "slowest of 3 rounds", "share"),
    Field("load_seconds", "load s"),
    Field("memory_mb", "memory MB", "count", best="low"),
    Field("device", "device", "text"),
)
AGREEMENT = (
    *PAIR,
    *estimate("kendall", "Kendall", ci="ci", ci_label=""),
    *columns("count", n_systems="systems"),
)
DIFFERENCES = (
    *PAIR,
    *columns("text", gold="gold-based"),
    *estimate("difference", "Pearson, a less b", ci="ci", ci_label=""),
    *columns("p", p="p", p_bh="p corrected"),
    *columns("count", n_systems="systems"),
)
CROSS = (
    *columns("text", "corpus", made_with="made with", scored_with="scored with", metric="metric"),
    *estimate("value", "Pearson", ci="ci", ci_label=""),
    *columns("number", beyond_gold="loss minus gold's"),
)

Row = dict[str, Any]


@declared
def encoders(
    corpora: Mapping[str, Corpus],
    *,
    encoders: EncodersOption = None,
    measure: Annotated[
        bool,
        Option(
            "Measure speed and memory of every encoder here, but for endpoints, whose requests may "
            "cost.",
            flag="--measure/--no-measure",
        ),
    ] = True,
    **keywords: Unpack[CorrelationKeywords],
) -> Result:
    """Compare encoders: agreement with gold, speed, anisotropy, and how they judge each other.

    Runs the study correlate under every --encoder, two at least, on the same systems; those that
    seek cohesion are made with every encoder and scored with every other. --no-measure leaves out
    speed and memory, which no two runs measure alike.
    """
    settings = case_settings(keywords)
    chosen = list(dict.fromkeys(encoders or ()))
    if len(chosen) < 2:
        raise InputError(
            f"the encoders {listed(map(repr, chosen)) if chosen else 'none'}",
            expected="at least two different ones",
            remedy="repeat --encoder, such as --encoder minilm --encoder wordllama",
        )
    checked = check_cases(corpora, None, chosen, settings)
    cases = {
        (encoder, part.name): replace(case, encoder=encoder)
        for (part, own), case in zip(checked, make_cases(checked), strict=True)
        if (encoder := own.encoder)
    }
    base = correlation_result(list(cases.values()), settings)
    speeds = {}
    if measure:
        sample = distinct_texts(next(iter(corpora.values())))
        with settings.progress("Measuring", len(chosen)) as advance:
            for encoder in chosen:
                if not is_endpoint(encoder):
                    own = replace(settings, encoder=encoder)
                    speeds[encoder] = measure_speed(own, sample, settings.seed)
                advance(1)
    agreement, differences = _pair_tables(cases, settings)
    cross = _cross_table(cases, settings)
    return replace(
        base,
        command="encoders",
        question="Which encoder's scores agree best with gold, and do encoders agree with one "
        "another?",
        verdict=tuple(_answer(base, differences, agreement, cross, speeds)),
        tables=(_encoder_table(cases, speeds), differences, agreement, cross, *base.tables),
        settings={**base.settings, "encoders": chosen},
        reading={**base.reading, **READING},
    )


def measure_speed(options: EncoderOptions, texts: Sequence[str], seed: int) -> Row:
    """Load the encoder anew and encode a sample without the cache; loading is timed apart.

    The best of several rounds counts, and the slowest is told as a share of it.
    Memory is the peak on the device if it is CUDA, else the growth of the process. Measured, so
    never twice the same.
    """
    chosen = np.random.default_rng(seed).permutation(len(texts))[:SAMPLE]
    sample = [texts[i] for i in sorted(chosen)]
    device = choose_device(options.device)
    process = psutil.Process()
    before = process.memory_info().rss
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    start = time.perf_counter()
    encoder = open_encoder(replace(options, cache=False))
    for _ in encoder.stream(sample[:1]):
        pass
    loaded = time.perf_counter()
    rounds = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        done = sum(len(encoded.positions) for encoded in encoder.stream(sample))
        rounds.append(done / (time.perf_counter() - begun))
    if device.type == "cuda":
        peak = torch.cuda.max_memory_allocated(device)
    else:
        peak = max(0, process.memory_info().rss - before)
    return {
        "units_per_second": max(rounds),
        "slowest_round": min(rounds) / max(rounds),
        "load_seconds": loaded - start,
        "memory_mb": peak / 1e6,
        "texts": len(sample),
        "device": str(device),
    }


def _encoder_table(cases: Cases, speeds: Mapping[str, Row]) -> Table:
    """Dimension, shape of the vectors, speed and memory of every encoder on every corpus."""
    rows = []
    for (encoder, corpus), case in cases.items():
        embedded = case.embedded
        found = VectorShape.of(map(directions, embedded.vectors))
        row = {"encoder": encoder, "corpus": corpus, "anisotropy": found.random_cosine}
        row |= {"dimension": embedded.vectors[0].shape[1], "max_length": embedded.spec.max_length}
        row |= {"truncated": embedded.n_truncated / case.corpus.n_units}
        row |= {"effective_dimension": found.effective_dimension}
        row |= {"consecutive_gain": float(mean_defined(found.consecutive_gain, 0))}
        rows.append(row | speeds.get(encoder, {}))
    return Table.of("encoders", "Encoders", (*ENCODERS, *(SPEED if speeds else ())), rows)


def _pair_tables(cases: Cases, settings: CaseSettings) -> tuple[Table, Table]:
    """How alike two encoders rank the same systems, and which of them follows gold better.

    Cohesion-seeking systems were made with each encoder and are not the same ones. Differences are
    over independent systems and the same resampled documents.
    """
    kendalls: list[Row] = []
    rows: list[Row] = []
    names, corpora = (dict.fromkeys(names) for names in zip(*cases, strict=True))
    for corpus in corpora:
        own = {encoder: cases[encoder, corpus] for encoder in names}
        # The metrics of all encoders side by side, as ``metric (encoder)``, and gold-based ones.
        losses = {f"{m} ({name})": case.losses[m] for name, case in own.items() for m in case.free}
        first = next(iter(own.values()))
        losses |= {gold: first.losses[gold] for gold in first.gold}
        rng = partial(rng_for, settings.seed)
        every = MetaEvaluation(losses, rng=rng, resamples=settings.resamples)
        shared = every.among(np.flatnonzero([m.kind != "cohesion" for m in first.members]))
        independent = every.among(np.flatnonzero([m.is_in("independent") for m in first.members]))
        for (a, b), metric in product(combinations(names, 2), first.free):
            both = f"{metric} ({a})", f"{metric} ({b})"
            about = {"corpus": corpus, "encoder_a": a, "encoder_b": b, "metric": metric}
            found = shared.corpus(*both, "kendall")
            about["n_systems"] = found.systems
            kendalls.append(about | {"kendall": found.value, "ci": found.ci})
            for gold in first.gold:
                found = independent.corpus_difference(*both, gold, "pearson")
                row = about | {"gold": gold, "n_systems": found.systems}
                rows.append(row | {"difference": found.value, "ci": found.ci, "p": found.p})
    for row, p in zip(rows, benjamini_hochberg([row["p"] for row in rows]), strict=True):
        row["p_bh"] = p
    title = "Does a metric follow gold better under one encoder than under another?"
    return (
        Table.of("agreement", "Do two encoders rank the same systems alike?", AGREEMENT, kendalls),
        Table.of("differences", title, DIFFERENCES, rows),
    )


def _cross_table(cases: Cases, settings: CaseSettings) -> Table:
    """Cohesion-seeking systems made with one encoder and scored with another."""
    rows = []
    names, corpora = (dict.fromkeys(names) for names in zip(*cases, strict=True))
    for corpus, made_with, scored_with in product(corpora, names, names):
        case = cases[made_with, corpus]
        if "cohesion" not in case.pools:
            continue
        if scored_with != made_with:
            vectors = cases[scored_with, corpus].embedded
            options = replace(settings, encoder=scored_with)
            case = score_case(corpus, case.corpus, case.members, vectors, options)
        losses = case.corpus_losses
        seekers = [i for i, m in enumerate(case.members) if m.pool == "cohesion"]
        gold = [m.system for m in case.members].index(GOLD)
        for metric in case.free:
            found = case.pools["cohesion"].corpus(metric, case.gold[0], "pearson")
            beyond = float(mean_defined(losses[metric][seekers], 0)) - losses[metric][gold]
            rows.append((corpus, made_with, scored_with, metric, found.value, found.ci, beyond))
    title = "Cohesion-seeking systems, made with one encoder, scored with another"
    return Table.of("cross", title, CROSS, rows)


def _answer(
    base: Result, differences: Table, agreement: Table, cross: Table, speeds: Mapping[str, Row]
) -> Iterator[str]:
    wanted = {"pool": "independent", "level": "corpus", "coefficient": "pearson"}
    rows = base.table("correlations").records(is_sentinel="no", **wanted)
    known = [row for row in rows if row["value"] is not None]
    if known:
        yield from recommend(known, differences.records(), speeds)
    if kendalls := [row["kendall"] for row in agreement.records() if row["kendall"] is not None]:
        yield (
            f"Two encoders rank the same systems with a Kendall of {min(kendalls):.2f} to "
            f"{max(kendalls):.2f}."
        )
    rows = [row for row in cross.records() if row["beyond_gold"] is not None]
    for is_own, words in ((True, "their own encoder"), (False, "another encoder")):
        part = [row for row in rows if (row["made_with"] == row["scored_with"]) == is_own]
        if part:
            better = sum(row["beyond_gold"] < 0 for row in part)
            yield (
                f"Scored with {words}, cohesion-seeking systems look better than gold in {better} "
                f"of {len(part)} cases."
            )


def recommend(
    correlations: Sequence[Row], differences: Sequence[Row], speeds: Mapping[str, Row]
) -> Iterator[str]:
    """Say which encoder to use: the one under which the recommended metric follows gold best.

    Also of the next, or of one that cannot be told from it and is more than twice as fast.
    """
    gold = correlations[0]["gold"]
    about = [row for row in correlations if row["gold"] == gold]
    of_metric = {key[0]: own for key, own in group_by(about, "free").items()}

    def mean(rows: Sequence[Row]) -> float:
        return fmean(row["value"] for row in rows)

    best_metric = max(of_metric, key=lambda name: mean(of_metric[name]))
    metric = RECOMMENDED if RECOMMENDED in of_metric else best_metric
    means = {key[0]: mean(own) for key, own in group_by(of_metric[metric], "encoder").items()}
    values = dict(sorted(means.items(), key=lambda item: -item[1]))
    best, *others = values
    verdicts = {}
    equal = [best]
    for other in others:
        is_better, verdicts[other] = tell_apart(differences, (metric, gold), best, other)
        equal += [] if is_better else [other]
    yield (
        f"Use {best}: {metric} agrees with {gold} over independent systems with a Pearson of "
        f"{listed(f'{value:.2f} under {encoder}' for encoder, value in values.items())}."
    )
    speed = {encoder: speeds.get(encoder, {}).get("units_per_second", 0.0) for encoder in equal}
    fastest = max(equal, key=lambda encoder: speed[encoder])
    if speed[fastest] > 2 * speed[best] > 0:
        factor = speed[fastest] / speed[best]
        yield f"{verdicts[fastest]} {fastest} encodes {factor:.0f} times as many units a second."
    elif others:
        yield verdicts[others[0]]


def tell_apart(
    differences: Sequence[Row], of: tuple[str, str], best: str, other: str
) -> tuple[bool, str]:
    """Say whether a metric follows gold better under one encoder than under another."""
    rows = [
        row
        for row in differences
        if {row["encoder_a"], row["encoder_b"]} == {best, other}
        and (row["metric"], row["gold"]) == of
        and None not in (row["difference"], row["p_bh"])
    ]
    if not rows:
        return False, f"Whether {best} is better than {other} cannot be tested: too few documents."
    clear = [row for row in rows if row["p_bh"] <= ALPHA]
    better = sum((row["difference"] > 0) == (row["encoder_a"] == best) for row in clear)
    is_better = 2 * better > len(clear)
    told = f"{best} is better than {other}" if is_better else f"{other} cannot be told from {best}"
    if len(rows) > 1:
        worse = f", worse on {len(clear) - better}" if better < len(clear) else ""
        return is_better, (
            f"{told}: better on {better} of {len(rows)} corpora{worse}, at p {ALPHA:g}, corrected "
            "for all comparisons."
        )
    (row,) = rows
    sign = 1 if row["encoder_a"] == best else -1
    low, high = sorted(sign * end for end in row["ci"])
    return is_better, (
        f"{told} (best − other: {sign * row['difference']:.2f}, 95 % interval {low:.2f} to "
        f"{high:.2f}, p {row['p_bh']:.2g}, corrected for all comparisons)."
    )
