"""What to do, in plain sentences that claim no more than the intervals support."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reffree.corpus import GOLD
from reffree.errors import listed
from reffree.statistics.resampling import MIN_DOCUMENTS
from reffree.studies.diagnosis.checks import Check
from reffree.studies.diagnosis.damage_test import (
    MISSES,
    NOTICES,
    PREFERS,
    RANDOM,
    TOO_FEW,
    Noticing,
)
from reffree.studies.diagnosis.source import Source


def metric_advice(noticed: Mapping[str, Noticing]) -> list[tuple[str, str]]:
    """Which metrics to use and which not: what each sentence is about, and the sentence."""
    by_verdict: dict[str, list[str]] = {NOTICES: [], PREFERS: [], MISSES: [], TOO_FEW: []}
    for name in sorted(noticed, key=lambda name: (-(noticed[name].overall.share or 0.0), name)):
        by_verdict[noticed[name].verdict].append(name)
    whole = [name for name in by_verdict[NOTICES] if not noticed[name].unnoticed]
    partly = [name for name in by_verdict[NOTICES] if noticed[name].unnoticed]
    sentences = []
    if whole:
        its = "its" if len(whole) == 1 else "their"
        sentences.append(
            (
                ", ".join(whole),
                f"Use {_told(whole, noticed)}: every kind of damage raises {its} loss in more "
                "documents than by chance.",
            )
        )
    if partly:
        weak = [f"{_told([n], noticed)} may miss {_kinds(noticed[n].unnoticed)}" for n in partly]
        sentences.append((", ".join(partly), f"Use with care: {'; '.join(weak)}."))
    for name in by_verdict[PREFERS]:
        kinds = noticed[name].kinds_with(PREFERS)
        shares = [
            f"{_kinds([kind])} ({1 - (noticed[name].kinds[kind].share or 0):.0%})" for kind in kinds
        ]
        sentences.append(
            (
                name,
                f"Do not use {name}: {listed(shares)} lower{'s' if len(kinds) == 1 else ''} its "
                "loss in that share of documents.",
            )
        )
    if blind := by_verdict[MISSES]:
        notice = "it notices" if len(blind) == 1 else "they notice"
        sentences.append(
            (
                ", ".join(blind),
                f"Do not rely on {_told(blind, noticed)}: whether {notice} damage here cannot be "
                "told from chance.",
            )
        )
    if unknown := by_verdict[TOO_FEW]:
        sentences.append(
            (
                ", ".join(unknown),
                f"Whether {listed(unknown)} can be trusted is not known: fewer than "
                f"{MIN_DOCUMENTS} documents could be damaged and scored.",
            )
        )
    if not (whole or partly or unknown):
        sentences.insert(0, ("all", "Rank no systems here without gold: no metric notices damage."))
    return sentences


def check_advice(checks: Sequence[Check]) -> list[tuple[str, str]]:
    """What to do about the checks that are not ok, problems first."""
    bad = sorted(
        (check for check in checks if check.advice), key=lambda check: check.verdict != "problem"
    )
    return [(check.check, f"{_described(check).capitalize()}: {check.advice}.") for check in bad]


def answer(
    advised: Mapping[str, Sequence[tuple[str, str]]], checks: Mapping[str, Sequence[Check]]
) -> tuple[str, ...]:
    """Which metrics to use on each corpus (`metric_advice`), and what stands in their way."""
    sentences = []
    for corpus, advice in advised.items():
        where = f"{corpus}: " if len(advised) > 1 else ""
        sentences.append(where + " ".join(text for _, text in advice))
        problems = [_described(check) for check in checks[corpus] if check.verdict == "problem"]
        if problems:
            sentences.append(f"{where}What misleads metrics here: {listed(problems)}.")
        else:
            sentences.append(f"{where}None of the {len(checks[corpus])} checks is a problem.")
    return tuple(sentences)


def source_note(corpus: str, source: Source) -> str:
    """Say what was damaged, and what that means where it is no gold."""
    told = f"{corpus}: checked with and damaged was {source.name}, {source.reason}."
    if source.name == GOLD:
        return told
    return (
        f"{told} Metrics that resemble what this system looks for notice any damage to it: "
        "that they do says less than with gold."
    )


def _told(names: Sequence[str], noticed: Mapping[str, Noticing]) -> str:
    shares = {name: noticed[name].overall for name in names}
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
