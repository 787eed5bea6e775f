"""Does an adaptive threshold keep the rate of boundaries, whatever the candidates?

Coen, "When F1 Fails", §9.1 and Figure 3: one scorer, its gaps thinned out by a fine and by a coarse
candidate threshold. A static rule takes what candidates there are; the controller of Appendix F
steers both to one rate, and should place boundaries alike. No gold is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Annotated, Unpack

import numpy as np

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.embed import Vectors
from reffree.evaluate.metric_set import MetricSet
from reffree.evaluate.result import Result, Table, columns
from reffree.evaluate.signature import Signature
from reffree.metrics.free.published import Silhouette
from reffree.segmenters.base import Inputs
from reffree.segmenters.gap_scores import CHANCE, parse_scored_method, raw_scores
from reffree.segmenters.segment import given_scores
from reffree.segmenters.selection import (
    AdaptiveSelection,
    Candidates,
    StaticSelection,
    select_adaptive,
    speaker_candidates,
)
from reffree.studies.keywords import (
    CandidatesOption,
    MinGapOption,
    ScoresOption,
    StudyKeywords,
    method_option,
)
from reffree.studies.study import (
    StudiedCorpus,
    StudySettings,
    candidates_field,
    corpus_parts,
    read_score_files,
    score_fingerprints,
    study_result,
)
from reffree.util.arrays import Floats
from reffree.util.bounds import Bounds
from reffree.util.declare import Option, declared
from reffree.util.errors import OptionError, counted
from reffree.util.grid import Row, group_by
from reffree.util.naming import spelling_of

METHODS = ("depth", "texttiling", "random")
SHARES = (0.735, 0.577)
"""Gaps that are candidates in Figure 3, fine and coarse."""

BINS = 30
UNRELATED = ("metrics", "unsegmented", "aggregation", "interval")
RULES = ("static", "adaptive")

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


@declared
def selection(
    corpora: Mapping[str, Corpus],
    *,
    methods: Annotated[
        Sequence[str],
        method_option(
            "With a score per gap: depth, texttiling, posterior, scorer:path=FOLDER, "
            "csm:path=FOLDER or random; may be repeated.",
            parse_scored_method,
            names="gap_methods",
        ),
    ] = METHODS,
    scores: ScoresOption = None,
    rate: Annotated[
        float, Option("Boundaries a gap that the adaptive threshold is steered to.")
    ] = 0.167,
    shares: Annotated[
        Sequence[float],
        Option("Of gaps that are candidates, from fine to coarse.", metavar="S,S,…"),
    ] = SHARES,
    min_gap: MinGapOption = 3,
    window: Annotated[
        int, Bounds(1), Option("Gaps over which the controller looks at its rate.", cli=False)
    ] = 50,
    step_size: Annotated[
        float,
        Option("How far the threshold can move at a time, on the scores' own scale.", "--step"),
    ] = 0.2,
    threshold: Annotated[float, Option("The first threshold.", cli=False)] = 0.5,
    lifetime: Annotated[
        int, Bounds(1), Option("Steps for which a candidate gathers evidence.", cli=False)
    ] = 3,
    candidates_speaker: CandidatesOption = (),
    embeddings: Mapping[str, Vectors] | None = None,
    **keywords: Unpack[StudyKeywords],
) -> Result:
    """Say whether an adaptive threshold keeps the number of boundaries, whatever the candidates.

    Thins out the gaps that each scorer scores, by a fine and by a coarse candidate threshold.
    Selects from both statically and by the adaptive threshold that is steered to a rate, and says
    how far rates and places of boundaries differ. No gold is needed. Each CORPUS is a corpus of its
    own.
    """
    settings = StudySettings(**keywords)
    rule = AdaptiveSelection(rate, min_gap, window, step_size, threshold, lifetime)
    wanted = tuple(dict.fromkeys(float(each) for each in shares))
    if len(wanted) < 2 or not all(0 < each <= 1 for each in wanted):
        expected = "at least two numbers above 0 and up to 1: a fine and a coarse one"
        remedy = "leave them out for 0.735 and 0.577, the paper's"
        raise OptionError(f"the shares {list(shares)}", expected=expected, remedy=remedy)
    parsed = {CHANCE if m is None else spelling_of(m): m for m in map(parse_scored_method, methods)}
    read = read_score_files(corpora, scores, parsed)
    parts = corpus_parts(corpora, embeddings, settings)
    scorers = [method for method in parsed.values() if method]
    needs_vectors = any(method.needs_embeddings for method in scorers)
    for part in parts:
        speaker_candidates(part.corpus, candidates_speaker)  # which refuses what it must
        part.check((), scorers, settings, needs_vectors=needs_vectors)
    studied: list[StudiedCorpus] = []
    rates: list[Row] = []
    differences: list[Row] = []
    places: list[Row] = []
    n_gaps: dict[str, int] = {}
    for part in parts:
        corpus, embedded = part.corpus, part.encode(settings) if needs_vectors else None
        inputs = Inputs(corpus, settings.seed, device=settings.device)
        if embedded is not None:
            inputs = Inputs(corpus, settings.seed, embedded.vectors, embedded.spec, settings.device)
        every = [np.ones(len(document.units) - 1, dtype=bool) for document in corpus]
        masks = speaker_candidates(corpus, candidates_speaker) or every
        n_gaps[part.name] = max(1, sum(int(mask.sum()) for mask in masks))
        longest = max(len(document.units) - 1 for document in corpus)
        given = read.get(part.name, {})
        with settings.progress("Selecting", len(parsed) + len(given)) as advance:
            for method in (*given, *parsed):
                if method in given:
                    scored = given_scores(part.filtered, method, given[method])
                else:
                    scored = raw_scores(parsed[method], inputs)
                thinned = [_thin(scored, masks, share, rule) for share in wanted]
                place = {"corpus": part.name, "method": method}
                for row, selected in thinned:
                    each = {name: _count(selected[name]) / n_gaps[part.name] for name in RULES}
                    rates.append({**place, **row, **each, "target": rate})
                made = [selected for _, selected in thinned]
                for name in RULES:
                    spread = [row[name] for row in rates[-len(wanted) :]]
                    apart, shared = _differences([each[name] for each in made], longest)
                    values = {"rates": max(spread) - min(spread), "places": apart, "same": shared}
                    differences.append({**place, "rule": name, **values})
                places += [
                    {**place, "rule": name, "thinned": f"{share:.1%} candidates", **row}
                    for share, each in zip(wanted, made, strict=True)
                    for name in RULES
                    for row in _places(each[name], longest)
                ]
                advance(1)
        silhouette = MetricSet(("silhouette",), {"silhouette": Silhouette()}, {})
        signed = Signature.of(silhouette, corpus, embedded, seed=settings.seed)
        fields = {key: value for key, value in signed.fields.items() if key not in UNRELATED}
        studied.append(StudiedCorpus(part.name, corpus, embedded, Signature(fields)))
    prints = score_fingerprints(read)
    depends = "How far what is selected depends on the candidates"
    where = "Where boundaries lie: their distribution over the units before them"
    return study_result(
        "selection",
        studied,
        question="Does an adaptive threshold keep the number of boundaries, whatever the "
        "candidates?",
        verdict=_describe_rates(rates),
        tables=(
            Table.of("rates", "Boundaries a gap, from few candidates and from many", RATES, rates),
            Table.of("differences", depends, DIFFERENCES, differences),
            Table.of("places", where, PLACES, places, shown=False),
        ),
        signature={
            "methods": "+".join([*parsed, *prints.values()]),
            "select": spelling_of(rule),
            "shares": ",".join(f"{each:g}" for each in wanted),
            **candidates_field(candidates_speaker),
        },
        settings={"methods": list(parsed), "scores": list(prints), "shares": list(wanted)},
        notes=_notes(rates, n_gaps),
        reading=READING,
    )


def _thin(
    scores: Sequence[Floats], masks: Sequence[Candidates], share: float, rule: AdaptiveSelection
) -> tuple[Row, dict[str, tuple[Segmentation, ...]]]:
    """Select by both rules from the gaps above the threshold that comes nearest to a share."""
    pooled = np.sort(np.concatenate([s[m] for s, m in zip(scores, masks, strict=True)]))[::-1]
    levels = np.unique(pooled)[::-1]  # thresholds: as many gaps score at least each of them
    above = np.searchsorted(-pooled, -levels, side="right")
    least = float(levels[np.argmin(np.abs(above - share * len(pooled)))]) if len(levels) else 0.0
    controller = rule.controller()
    controller.least = least
    adaptive = tuple(select_adaptive(s, controller, m) for s, m in zip(scores, masks, strict=True))
    row = {
        "share": share,
        "candidates": float((pooled >= least).mean()) if len(pooled) else 0.0,
        "least": least,
        "boundaries": _count(adaptive),
        "threshold": controller.threshold,
    }
    return row, {"static": StaticSelection(least, rule.gap)(scores, masks), "adaptive": adaptive}


def _count(selected: Sequence[Segmentation]) -> int:
    """Return the boundaries of all documents."""
    return sum(len(each) - 1 for each in selected)


def _places(selected: Sequence[Segmentation], longest: int) -> Iterator[dict[str, float]]:
    """Yield the distribution of boundaries over the number of units before them, in bins."""
    width = -(-longest // BINS) or 1
    at: list[int] = [(b - 1) // width for each in selected for b in each.boundaries]
    counts = np.bincount(at, minlength=-(-longest // width) or 1) / max(1, len(at))
    for i, value in enumerate(counts):
        yield {"unit": i * width + (width + 1) / 2, "value": float(value)}


def _differences(
    made: Sequence[Sequence[Segmentation]], longest: int
) -> tuple[float, float | None]:
    """Compare selections in pairs: how far places lie apart, and what share of boundaries is same.

    The largest total variation between distributions, and the least of boundaries in both of all in
    either, over the corpus; None where there are none.
    """
    spread = [np.array([row["value"] for row in _places(each, longest)]) for each in made]
    apart = max(float(np.abs(a - b).sum() / 2) for a, b in combinations(spread, 2))
    own = [{(d, b) for d, each in enumerate(m) for b in each.boundaries} for m in made]
    shared = [len(a & b) / len(a | b) for a, b in combinations(own, 2) if a | b]
    return apart, min(shared, default=None)


def _describe_rates(rates: Sequence[Row]) -> Iterator[str]:
    """Say for every method what both rules take of the fewest and of the most candidates."""
    has_several = len({row["corpus"] for row in rates}) > 1
    for (corpus, method), rows in group_by(rates, "corpus", "method").items():
        spans = ([row[rule] for row in rows] for rule in RULES)
        static, adaptive = (f"{min(span):.1%} to {max(span):.1%}" for span in spans)
        yield (
            f"{f'{corpus}: ' if has_several else ''}{method}: from {rows[0]['candidates']:.1%} and "
            f"{rows[-1]['candidates']:.1%} of the gaps a static rule takes {static}, the "
            f"adaptive threshold {adaptive} (target {rows[0]['target']:.1%})."
        )


def _notes(rates: Sequence[Row], n_gaps: Mapping[str, int]) -> Iterator[str]:
    """Name scorers whose rate the controller did not reach."""
    for (corpus,), own in group_by(rates, "corpus").items():
        far = (row["method"] for row in own if abs(row["adaptive"] / row["target"] - 1) > 0.1)
        if missed := dict.fromkeys(far):
            yield (
                f"{corpus}: {', '.join(missed)} missed the target by more than a tenth in "
                f"{counted(n_gaps[corpus], 'gap')}: a longer corpus, or a step and a first "
                "threshold on the scale of the scores, come nearer."
            )
