"""A diagnosis in tables and sentences, which claim no more than the intervals support."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from reffree.evaluate.result import Table, columns, estimate
from reffree.statistics.resampling import MIN_DOCUMENTS
from reffree.studies.diagnosis.checks import Check, densities
from reffree.studies.diagnosis.damage_test import (
    KINDS,
    MISSES,
    NOTICES,
    PREFERS,
    RANDOM,
    TOO_FEW,
    DamageTest,
    NoticedShare,
)
from reffree.util.errors import listed

if TYPE_CHECKING:
    from reffree.studies.diagnosis.diagnose import CorpusDiagnosis

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
METRICS = (
    *columns("text", "corpus", "metric", "verdict", "prefers", misses="may miss"),
    *estimate("share", "noticed", "share", ci="ci"),
    *columns("share", turned="by chance"),
    *columns("share", *KINDS),
    *estimate("gap", "gap"),
)
ADVICE = columns("text", "corpus", "about", "advice")
REPEATED = (*columns("text", "corpus", "text"), *columns("count", "units"))
NOTICED = (*columns("text", "corpus", "metric", "kind"), *columns("number", "strength"), *SHARE)
KIND_SHARES = (*columns("text", "corpus", "metric", "kind"), *SHARE)
DENSITY = (
    *columns("text", "corpus", "system"),
    *columns("count", "segments"),
    *columns("number", per_unit="per unit", ratio="of the source's"),
)

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


def diagnosis_tables(diagnosed: Sequence[CorpusDiagnosis]) -> Iterator[Table]:
    """Verdicts and advice to be read, then what charts are made from."""
    metrics = [
        ({"corpus": each.name, "metric": metric}, test)
        for each in diagnosed
        for metric, test in each.damage_tests.items()
    ]
    rows: list[dict[str, Any]] = [
        {"corpus": each.name, **asdict(check)} for each in diagnosed for check in each.checks
    ]
    yield Table.of("checks", "What may mislead metrics", CHECKS, rows)
    rows = [
        {"corpus": each.name, "text": text, "units": n}
        for each in diagnosed
        for text, n in each.measured.repeated_texts
    ]
    if rows:
        yield Table.of("repeated", "Most frequent exact twins", REPEATED, rows)
    title = "Share of documents in which damage raises the loss"
    rows = [
        {
            **place,
            **_cells(test.overall),
            **{kind: share.share for kind, share in test.kinds.items()},
            "verdict": test.verdict,
            "prefers": ", ".join(test.kinds_with(PREFERS)) or None,
            "misses": ", ".join(test.unnoticed) or None,
            "gap": test.gap,
            "gap_ci": test.gap_ci,
        }
        for place, test in metrics
    ]
    yield Table.of("metrics", title, METRICS, rows)
    rows = [
        {"corpus": each.name, "about": about, "advice": text}
        for each in diagnosed
        for about, text in (*metric_advice(each.damage_tests), *check_advice(each.checks))
    ]
    yield Table.of("advice", "Advice", ADVICE, rows)
    rows = [
        {**place, "kind": kind, "strength": float(strength), **_cells(share)}
        for place, test in metrics
        for (kind, strength), share in test.damages.items()
    ]
    yield Table.of("noticed", "By kind and strength", NOTICED, rows, shown=False)
    rows = [
        {**place, "kind": kind, **_cells(share)}
        for place, test in metrics
        for kind, share in test.kinds.items()
    ]
    yield Table.of("kinds", "By kind", KIND_SHARES, rows, shown=False)
    rows = [row for each in diagnosed for row in _densities(each)]
    yield Table.of("density", "Segments of systems", DENSITY, rows, shown=False)


def _cells(share: NoticedShare) -> dict[str, Any]:
    return {**asdict(share), "verdict": share.verdict}


def _densities(each: CorpusDiagnosis) -> Iterator[dict[str, Any]]:
    ratios = {each.source.name: 1.0, **densities(each.corpus, each.source.name)}
    for system, segmentations in each.corpus.hypotheses.items():
        segments = sum(map(len, segmentations))
        yield {
            "corpus": each.name,
            "system": system,
            "segments": segments,
            "per_unit": segments / each.corpus.n_units,
            "ratio": ratios[system],
        }


def metric_advice(tests: Mapping[str, DamageTest]) -> list[tuple[str, str]]:
    """Which metrics to use and which not: what each sentence is about, and the sentence."""
    by_verdict: dict[str, list[str]] = {NOTICES: [], PREFERS: [], MISSES: [], TOO_FEW: []}
    for name in sorted(tests, key=lambda name: (-(tests[name].overall.share or 0.0), name)):
        by_verdict[tests[name].verdict].append(name)
    whole = [name for name in by_verdict[NOTICES] if not tests[name].unnoticed]
    partly = [name for name in by_verdict[NOTICES] if tests[name].unnoticed]
    blind, unknown = by_verdict[MISSES], by_verdict[TOO_FEW]
    advice = []
    if not (whole or partly or unknown):
        advice.append(("all", "Rank no systems here without gold: no metric notices damage."))
    if whole:
        its = "its" if len(whole) == 1 else "their"
        sentence = (
            f"Use {_told(whole, tests)}: every kind of damage raises {its} loss in more documents "
            "than by chance."
        )
        advice.append((", ".join(whole), sentence))
    if partly:
        weak = [f"{_told([n], tests)} may miss {_kinds(tests[n].unnoticed)}" for n in partly]
        advice.append((", ".join(partly), f"Use with care: {'; '.join(weak)}."))
    for name in by_verdict[PREFERS]:
        preferred = {kind: tests[name].kinds[kind] for kind in tests[name].kinds_with(PREFERS)}
        shares = [f"{_kinds([k])} ({1 - (each.share or 0):.0%})" for k, each in preferred.items()]
        lower = "lowers" if len(shares) == 1 else "lower"
        sentence = (
            f"Do not use {name}: {listed(shares)} {lower} its loss in that share of documents."
        )
        advice.append((name, sentence))
    if blind:
        notice = "it notices" if len(blind) == 1 else "they notice"
        sentence = (
            f"Do not rely on {_told(blind, tests)}: whether {notice} damage here cannot be told "
            "from chance."
        )
        advice.append((", ".join(blind), sentence))
    if unknown:
        sentence = (
            f"Whether {listed(unknown)} can be trusted is not known: fewer than {MIN_DOCUMENTS} "
            "documents could be damaged and scored."
        )
        advice.append((", ".join(unknown), sentence))
    return advice


def check_advice(checks: Sequence[Check]) -> list[tuple[str, str]]:
    """What to do about the checks that are not ok, problems first."""
    bad = sorted(
        (check for check in checks if check.advice), key=lambda check: check.verdict != "problem"
    )
    return [(check.check, f"{_described(check).capitalize()}: {check.advice}.") for check in bad]


def diagnosis_answer(diagnosed: Sequence[CorpusDiagnosis]) -> Iterator[str]:
    """Which metrics to use on each corpus, and what stands in their way."""
    for each in diagnosed:
        where = f"{each.name}: " if len(diagnosed) > 1 else ""
        yield where + " ".join(text for _, text in metric_advice(each.damage_tests))
        problems = [_described(check) for check in each.checks if check.verdict == "problem"]
        if problems:
            yield f"{where}What misleads metrics here: {listed(problems)}."
        else:
            yield f"{where}None of the {len(each.checks)} checks is a problem."


def _told(names: Sequence[str], tests: Mapping[str, DamageTest]) -> str:
    shares = {name: tests[name].overall for name in names}
    return listed(f"{name} ({s.share:.0%}, by chance {s.turned:.0%})" for name, s in shares.items())


def _kinds(kinds: Sequence[str]) -> str:
    return listed("random boundaries" if kind == RANDOM else kind for kind in kinds)


def _described(check: Check) -> str:
    """Name a check with its value."""
    if check.value is None:
        return check.check
    is_share = check.unit.startswith("of ")
    value = f"{check.value:.1%}" if is_share else f"{check.value:.3g}"
    return f"{check.check} ({value} {check.unit})"
