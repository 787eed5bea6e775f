"""Does an adaptive threshold keep the number of boundaries, whatever the candidates?

Coen, "When F1 Fails", §9.1 and Figure 3: one scorer, its gaps thinned out by a fine and by a coarse
candidate threshold. A static rule takes what candidates there are; the controller of Appendix F
steers both to one rate, and should place boundaries alike. No gold is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, Unpack, get_args

import numpy as np

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.embed import Vectors, corpus_vectors
from reffree.evaluate.metric_set import MetricSet
from reffree.evaluate.result import Result, Table, columns
from reffree.evaluate.signature import Signature
from reffree.metrics.free.silhouette import Silhouette
from reffree.segmenters.base import GapScorer, Inputs
from reffree.segmenters.gap_scores import CHANCE, parse_scored_method, raw_scores
from reffree.segmenters.given import given_scores
from reffree.segmenters.selection import (
    MIN_GAP,
    AdaptiveSelection,
    Candidates,
    StaticSelection,
    select_adaptive,
    speaker_candidates,
)
from reffree.studies.score_files import (
    ScoreFile,
    candidates_field,
    read_score_files,
    score_names,
    score_prints,
    speaker_names,
)
from reffree.studies.study import (
    CorpusPart,
    StudiedCorpus,
    StudyKeywords,
    StudySettings,
    corpus_parts,
    study_result,
)
from reffree.util.arrays import Floats
from reffree.util.bounds import Positive, with_keywords, within_bounds
from reffree.util.errors import OptionError, counted
from reffree.util.naming import spelling_of

METHODS = ("depth", "texttiling", CHANCE)
RATE = 0.167
"""Selected boundaries a gap in Figure 3."""

SHARES = (0.735, 0.577)
"""Gaps that are candidates in Figure 3, fine and coarse."""

BINS = 30
UNRELATED = ("metrics", "unsegmented", "aggregation", "interval")

Rule = Literal["static", "adaptive"]
RULES: tuple[Rule, ...] = get_args(Rule)

RATES = (
    *columns("text", "corpus", "method"),
    *columns("share", share="candidates wanted", candidates="candidates"),
    *columns("number", least="candidate threshold"),
    *columns("share", static="static rate", adaptive="adaptive rate", target="target"),
    *columns("count", boundaries="boundaries"),
    *columns("number", threshold="last threshold"),
)
DIFFERENCES = (
    *columns("text", "corpus", "method", "rule"),
    *columns("share", rates="rates differ by", places="places differ by", same="same boundaries"),
)
PLACES = (
    *columns("text", "corpus", "method", "rule", "thinned"),
    *columns("number", "unit", "value"),
)


@dataclass(frozen=True, slots=True)
class Thinned:
    """What both rules select from the candidates above one threshold."""

    share: float  # of gaps that were to be candidates
    least: float  # the candidate threshold that comes nearest
    candidates: float  # share of gaps that are
    selected: dict[Rule, tuple[Segmentation, ...]]
    threshold: float  # of the controller at the end

    def rate(self, rule: Rule, n_gaps: int) -> float:
        """Boundaries a gap."""
        return sum(len(each) - 1 for each in self.selected[rule]) / n_gaps

    def places(self, rule: Rule, width: int, bins: int) -> Floats:
        """Distribution of boundaries over the number of units before them."""
        at: list[int] = [(b - 1) // width for each in self.selected[rule] for b in each.boundaries]
        counts: Floats = np.bincount(at, minlength=bins) / max(1, len(at))
        return counts


@dataclass(frozen=True, slots=True)
class SelectedCorpus(StudiedCorpus):
    """One corpus, every scorer's gaps thinned out finely and coarsely."""

    n_gaps: int  # that may become boundaries
    longest: int
    thinned: dict[str, list[Thinned]]  # by scorer


@with_keywords(StudyKeywords)
@within_bounds
def selection(
    corpora: Mapping[str, Corpus],
    *,
    methods: Sequence[str] = METHODS,
    scores: Mapping[str, Mapping[str, ScoreFile]] | None = None,
    rate: float = RATE,
    shares: Sequence[float] = SHARES,
    min_gap: Positive = MIN_GAP,
    window: Positive = 50,
    step_size: float = 0.2,
    threshold: float = 0.5,
    lifetime: Positive = 3,
    candidates_speaker: str | Sequence[str] = (),
    embeddings: Mapping[str, Vectors] | None = None,
    **keywords: Unpack[StudyKeywords],
) -> Result:
    """Thin out gaps by candidate thresholds; select statically and by the adaptive threshold.

    Args:
        corpora: from `reffree.load`, by name.
        methods: those with a score per gap, as for `reffree.studies.density`.
        scores: any scorer's gap scores, by corpus and name, as for `reffree.studies.density`.
        rate: boundaries a gap that the controller steers to.
        shares: of gaps that are candidates, from fine to coarse; thresholds come as near as ties
            let them.
        min_gap: units between two boundaries.
        window: gaps over which the controller looks at its rate.
        step_size: how far its threshold can move at a step, on the scores' own scale.
        threshold: its first threshold.
        lifetime: steps for which a candidate gathers evidence.
        candidates_speaker: only these speakers' turns may start a segment; rates are of those gaps.
        embeddings: arrays of every document by corpus, instead of an encoder.
        **keywords: how to encode and run: see `StudySettings`.
    """
    settings = StudySettings(**keywords)
    rule = AdaptiveSelection(rate, min_gap, window, step_size, threshold, lifetime)
    wanted = _checked_shares(shares)
    parsed = _parsed(methods)
    read = read_score_files(corpora, scores, parsed)
    parts = corpus_parts(corpora, embeddings, settings)
    scored = [method for method in parsed.values() if method]
    needs_vectors = any(method.needs_embeddings for method in scored)
    for part in parts:
        speaker_candidates(part.corpus, candidates_speaker)  # which refuses what it must
        part.check((), scored, settings, needs_vectors=needs_vectors)

    def study(part: CorpusPart) -> SelectedCorpus:
        name, corpus, embedded = part.name, part.corpus, None
        candidates = speaker_candidates(corpus, candidates_speaker)
        inputs = Inputs(corpus, settings.seed, device=settings.device)
        if needs_vectors:
            embedded = corpus_vectors(corpus, part.vectors, settings, settings.progress)
            inputs = Inputs(corpus, settings.seed, embedded.vectors, embedded.spec, settings.device)
        found = {}
        with settings.progress("Selecting", len(parsed) + len(read.get(name, ()))) as advance:
            for each, lists in read.get(name, {}).items():
                found[each] = _thin(
                    given_scores(part.filtered, each, lists), candidates, wanted, rule
                )
                advance(1)
            for each, method in parsed.items():
                found[each] = _thin(raw_scores(method, inputs), candidates, wanted, rule)
                advance(1)
        masks = candidates or [np.ones(len(d.units) - 1, dtype=bool) for d in corpus]
        silhouette = MetricSet(("silhouette",), {"silhouette": Silhouette()}, {})
        signed = Signature.of(silhouette, corpus, embedded, seed=settings.seed)
        fields = {key: value for key, value in signed.fields.items() if key not in UNRELATED}
        return SelectedCorpus(
            name,
            corpus,
            embedded,
            Signature(fields),
            max(1, sum(int(mask.sum()) for mask in masks)),
            max(len(document.units) - 1 for document in corpus),
            found,
        )

    results = [study(part) for part in parts]
    return study_result(
        "selection",
        results,
        question="Does an adaptive threshold keep the number of boundaries, whatever the "
        "candidates?",
        verdict=_answer(results, rate),
        tables=_tables(results, rate),
        signature={
            "methods": "+".join([*parsed, *score_prints(read)]),
            "select": spelling_of(rule),
            "shares": ",".join(f"{each:g}" for each in wanted),
            **candidates_field(candidates_speaker),
        },
        settings={
            "methods": list(parsed),
            "scores": score_names(read),
            "rate": rate,
            "shares": list(wanted),
            "min_gap": min_gap,
            "window": window,
            "step_size": step_size,
            "threshold": threshold,
            "lifetime": lifetime,
            "candidates_speaker": speaker_names(candidates_speaker),
            "seed": settings.seed,
        },
        notes=_notes(results, rate),
        reading=READING,
    )


READING = {
    "candidates": "Share of gaps that score at least the candidate threshold, which is chosen "
    "for the share that is wanted.",
    "static": "Boundaries a gap if every candidate is taken, highest first, the least distance "
    "apart: what one gets without a rule for the number.",
    "adaptive": "Boundaries a gap by the adaptive threshold, over the corpus, document after "
    "document.",
    "rates": "Largest minus smallest rate over the candidate thresholds: 0 is a rate that does not "
    "depend on them.",
    "places": "Half the summed difference between two distributions of boundaries over the units "
    "before them, in 30 bins at most: 0 is alike, 100 % apart. The largest over pairs.",
    "same": "Boundaries that two candidate thresholds share, of those that either has; the fewest "
    "over pairs.",
    "threshold": "The controller's last threshold, on the scores' own scale.",
}


def _parsed(methods: Sequence[str]) -> dict[str, GapScorer | None]:
    parsed = [parse_scored_method(text) for text in methods]
    return {CHANCE if each is None else spelling_of(each): each for each in parsed}


def _checked_shares(shares: Sequence[float]) -> tuple[float, ...]:
    made = tuple(dict.fromkeys(float(each) for each in shares))
    if len(made) < 2 or not all(0 < each <= 1 for each in made):
        raise OptionError(
            f"the shares {list(shares)}",
            expected="at least two numbers above 0 and up to 1: a fine and a coarse one",
            remedy="leave them out for 0.735 and 0.577, the paper's",
        )
    return made


def _thin(
    scores: Sequence[Floats],
    candidates: Sequence[Candidates] | None,
    shares: Sequence[float],
    rule: AdaptiveSelection,
) -> list[Thinned]:
    """Select from the gaps above each candidate threshold, by both rules."""
    masks = candidates or [np.ones(len(each), dtype=bool) for each in scores]
    pooled = np.sort(np.concatenate([s[m] for s, m in zip(scores, masks, strict=True)]))[::-1]
    found = []
    for share in shares:
        levels = np.unique(pooled)[::-1]  # thresholds: as many gaps score at least each of them
        above = np.searchsorted(-pooled, -levels, side="right")
        least = float(levels[np.argmin(np.abs(above - share * len(pooled)))]) if len(levels) else 0
        controller = rule.controller()
        controller.least = least
        adaptive = tuple(
            select_adaptive(s, controller, m) for s, m in zip(scores, masks, strict=True)
        )
        static = StaticSelection(least, rule.gap)(scores, masks)
        realised = float((pooled >= least).mean()) if len(pooled) else 0.0
        selected: dict[Rule, tuple[Segmentation, ...]] = {"static": static, "adaptive": adaptive}
        found.append(Thinned(share, least, realised, selected, controller.threshold))
    return found


def _tables(results: Sequence[SelectedCorpus], target: float) -> Iterator[Table]:
    rates: list[dict[str, Any]] = []
    differences: list[dict[str, Any]] = []
    places: list[dict[str, Any]] = []
    for result in results:
        width = -(-result.longest // BINS) or 1
        bins = -(-result.longest // width) or 1
        for method, thinned in result.thinned.items():
            place = {"corpus": result.name, "method": method}
            for each in thinned:
                boundaries = sum(len(s) - 1 for s in each.selected["adaptive"])
                rates.append(
                    {
                        **place,
                        "share": each.share,
                        "candidates": each.candidates,
                        "least": each.least,
                        **{rule: each.rate(rule, result.n_gaps) for rule in RULES},
                        "target": target,
                        "boundaries": boundaries,
                        "threshold": each.threshold,
                    }
                )
                for rule in RULES:
                    for i, value in enumerate(each.places(rule, width, bins)):
                        unit = i * width + (width + 1) / 2
                        spelt = f"{each.share:.1%} candidates"
                        row = {**place, "rule": rule, "thinned": spelt}
                        places.append({**row, "unit": unit, "value": value})
            for rule in RULES:
                of_rule = [each.rate(rule, result.n_gaps) for each in thinned]
                differences.append(
                    {
                        **place,
                        "rule": rule,
                        "rates": max(of_rule) - min(of_rule),
                        "places": _apart(thinned, rule, width, bins),
                        "same": _shared(thinned, rule),
                    }
                )
    yield Table.of("rates", "Boundaries a gap, from few candidates and from many", RATES, rates)
    title = "How far what is selected depends on the candidates"
    yield Table.of("differences", title, DIFFERENCES, differences)
    title = "Where boundaries lie: their distribution over the units before them"
    yield Table.of("places", title, PLACES, places, shown=False)


def _apart(thinned: Sequence[Thinned], rule: Rule, width: int, bins: int) -> float:
    """Return the largest total variation between distributions of boundaries."""
    made = [each.places(rule, width, bins) for each in thinned]
    return max(float(np.abs(a - b).sum() / 2) for a, b in combinations(made, 2))


def _shared(thinned: Sequence[Thinned], rule: Rule) -> float | None:
    """Boundaries in both of all in either, over the corpus; None where there are none."""
    made = [
        {(d, b) for d, each in enumerate(t.selected[rule]) for b in each.boundaries}
        for t in thinned
    ]
    found = [len(a & b) / len(a | b) for a, b in combinations(made, 2) if a | b]
    return min(found) if found else None


def _answer(results: Sequence[SelectedCorpus], target: float) -> Iterator[str]:
    for result in results:
        where = f"{result.name}: " if len(results) > 1 else ""
        for method, thinned in result.thinned.items():
            spans = {rule: [each.rate(rule, result.n_gaps) for each in thinned] for rule in RULES}
            static, adaptive = (f"{min(span):.1%} to {max(span):.1%}" for span in spans.values())
            yield (
                f"{where}{method}: from {thinned[0].candidates:.1%} and "
                f"{thinned[-1].candidates:.1%} of the gaps a static rule takes {static}, the "
                f"adaptive threshold {adaptive} (target {target:.1%})."
            )


def _notes(results: Sequence[SelectedCorpus], target: float) -> Iterator[str]:
    """Name scorers whose rate the controller did not reach."""
    for result in results:
        missed = [
            method
            for method, thinned in result.thinned.items()
            if any(abs(t.rate("adaptive", result.n_gaps) / target - 1) > 0.1 for t in thinned)
        ]
        if missed:
            yield (
                f"{result.name}: {', '.join(missed)} missed the target by more than a tenth in "
                f"{counted(result.n_gaps, 'gap')}: a longer corpus, or a step and a first "
                "threshold on the scale of the scores, come nearer."
            )
