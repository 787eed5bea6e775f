"""How far does quality depend on how many boundaries there are?

After Coen, "When F1 Fails", §7.1, Figures 1 and 4, Tables 4 to 6. A method that scores every gap
can be made to give any number of boundaries. Sweeping its threshold moves it along a curve:
horizontally by density, vertically by how well it ranks gaps. Systems whose segmentations are given
are single points beside the curves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Annotated, Any, Literal, Unpack, get_args

import numpy as np

from reffree.data.corpus import GOLD, Corpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.embed import Vectors
from reffree.evaluate.result import Result, Table, columns, estimate
from reffree.evaluate.score import scores_of
from reffree.evaluate.scores import ScoreSettings
from reffree.evaluate.signature import Signature
from reffree.metrics.gold.granularity import Thresholds, failure_mode
from reffree.segmenters.base import Inputs
from reffree.segmenters.gap_scores import (
    CHANCE,
    GapScores,
    gap_scores,
    gap_scores_of,
    parse_scored_method,
)
from reffree.segmenters.segment import given_scores
from reffree.segmenters.selection import speaker_candidates
from reffree.statistics.coefficients import correlation
from reffree.statistics.resampling import MIN_DOCUMENTS, percentile_interval, resampled_documents
from reffree.studies.keywords import (
    CandidatesOption,
    MinGapOption,
    ScoresOption,
    StudyKeywords,
    UnsegmentedOption,
    metric_option,
)
from reffree.studies.study import (
    StudiedCorpus,
    StudySettings,
    candidates_field,
    corpus_parts,
    read_score_files,
    require_gold,
    score_fingerprints,
    study_result,
)
from reffree.util.arrays import Floats, Integers
from reffree.util.declare import Option, declared
from reffree.util.errors import InputError, OptionError, listed
from reffree.util.naming import spelling_of
from reffree.util.seeds import rng_for

METHODS = ("depth", "texttiling", "random")
THRESHOLDS = tuple(round(0.05 * i, 2) for i in range(1, 20))
"""Of §5.1: 0.05 to 0.95 in steps of 0.05."""

METRICS = ("expected_pk", "arp_pair", "silhouette")

Matching = Literal["many_to_one", "one_to_one"]
W_F1 = {"many_to_one": "w_f1", "one_to_one": "w_f1_one_to_one"}
"""Measure of every matching, as of Coen's appendices A and G."""

UNMATCHED = ("bor", "coverage", "purity")
"""Measures that no matching changes."""

MEASURES = ("w_f1", "w_f1_one_to_one", "f1", "bor", "purity", "coverage")

Regime = Literal["conservative", "balanced", "aggressive"]
REGIMES: tuple[Regime, ...] = get_args(Regime)
LIMITS = Thresholds()

POINT_MEASURES = ("w_f1", "w_f1_one_to_one", "f1", "purity", "coverage")

CURVES = (
    *columns("text", "corpus", "method", "matching"),
    *columns("number", "threshold", bor="BOR", density="boundaries per gap"),
    *columns("text", "measure"),
    *columns("number", "value", "low", "high"),
)
POINTS = (
    *columns("text", "corpus", "method", "point"),
    *columns("count", target="boundaries wanted", boundaries="boundaries"),
    *columns("number", "threshold", bor="BOR", density="boundaries per gap"),
    *columns("number", *POINT_MEASURES),
)
BY_REGIME = (
    *columns("text", "corpus", "method", "matching", *REGIMES),
    *estimate("best", "best W-F1"),
    *columns("number", threshold="at threshold", bor="BOR"),
    *columns("text", mode="failure mode"),
    *columns("number", span="W-F1 over sweep"),
    *estimate("own", "own W-F1"),
    *columns("number", own_bor="own BOR"),
    *columns("text", own_regime="own density"),
)
AUDIT = (
    *columns("text", "corpus", "first", "second", at="density"),
    *columns("number", f1="ΔF1"),
    *estimate("w_f1", "ΔW-F1"),
    *estimate("w_f1_one_to_one", "one to one"),
    *estimate("bor", "ΔBOR"),
    *columns("text", shift="from second to first"),
)
LOSSES = (
    *columns("text", "corpus", "method", "metric"),
    *estimate("lowest", "lowest loss"),
    *columns("number", threshold="at threshold", bor="BOR", w_f1="W-F1 there", best="best W-F1"),
    *columns("number", rho="Spearman with 1 − W-F1"),
)

Row = dict[str, Any]


@declared
def density(
    corpora: Mapping[str, Corpus],
    *,
    methods: Annotated[
        Sequence[str],
        Option(
            "With a score per gap: depth, texttiling, posterior, scorer:path=FOLDER, "
            "csm:path=FOLDER or random (uniform scores); may be repeated.",
            flag="--method",
            metavar="METHOD",
            names="gap_methods",
            check=parse_scored_method,
        ),
    ] = METHODS,
    thresholds: Annotated[
        Sequence[float],
        Option(
            "Of the sweep, on probabilities, else on ranks from 0 to 1.",
            metavar="T,T,…",
            default="0.05 to 0.95 in steps of 0.05",
        ),
    ] = THRESHOLDS,
    min_gap: MinGapOption = 3,
    matchings: Annotated[
        Sequence[Matching],
        Option("W-F1's: many_to_one, one_to_one; may be repeated.", flag="--matching", cli=False),
    ] = ("many_to_one", "one_to_one"),
    metrics: Annotated[
        Sequence[str],
        metric_option("Further metrics on the sweep, as in reffree score; may be repeated."),
    ] = METRICS,
    scores: ScoresOption = None,
    candidates_speaker: CandidatesOption = (),
    embeddings: Mapping[str, Vectors] | None = None,
    unsegmented: UnsegmentedOption = "neutral",
    **keywords: Unpack[StudyKeywords],
) -> Result:
    """Sweep boundary thresholds; compare methods and systems as they are and at equal density.

    Scores every point of the sweep by W-F1, coverage, purity and reference-free losses; says which
    thresholds give too few and too many boundaries; and compares methods and the corpus's systems
    in pairs. Each CORPUS is a corpus of its own and needs gold. With -f csv the curves are written.

    Thresholds are those of the static rule of §5.1, on scores from 0 to 1: probabilities of a
    trained scorer, otherwise ranks over the corpus (see `gap_scores`).
    """
    settings = StudySettings(**keywords)
    levels = tuple(sorted(set(map(float, thresholds))))
    wanted = tuple(dict.fromkeys(matchings))
    made = map(parse_scored_method, methods)
    parsed = {CHANCE if each is None else spelling_of(each): each for each in made}
    for found, what, remedy in (
        (parsed, "method", "leave it out for three"),
        (levels, "threshold", "leave them out for 0.05 to 0.95"),
        (wanted, "matching", "leave it out for both"),
    ):
        if not found:
            raise OptionError(f"no {what}", expected="at least one", remedy=remedy)
    parts = corpus_parts(corpora, embeddings, settings)
    chosen = settings.choose_metrics([*MEASURES, *metrics], parts[0].corpus)
    how = ScoreSettings(settings, unsegmented=unsegmented, seed=settings.seed)
    read = read_score_files(corpora, scores, parsed)
    scored = [method for method in parsed.values() if method]
    needs_vectors = bool(chosen.reference_free) or any(m.needs_embeddings for m in scored)
    for part in parts:
        remedy = "add gold, or score the systems without it: reffree score"
        require_gold(part.corpus, "to know how many boundaries there should be", remedy)
        if all(len(each) == 1 for document in part.corpus for each in document.references):
            raise InputError(
                "gold without any boundary",
                expected="at least one boundary in the corpus",
                remedy="density is measured against gold's: choose another corpus",
                place=part.corpus[0].place,
            )
        speaker_candidates(part.corpus, candidates_speaker)  # which refuses what it must
        part.check(chosen.reference_free.values(), scored, settings, needs_vectors=needs_vectors)
    results: list[SweptCorpus] = []
    notes: list[str] = []
    for part in parts:
        corpus, name = part.corpus, part.name
        embedded = part.encode(settings) if needs_vectors else None
        candidates = speaker_candidates(corpus, candidates_speaker)
        inputs = Inputs(corpus, settings.seed, device=settings.device, candidates=candidates)
        if embedded is not None:
            inputs = replace(inputs, embeddings=embedded.vectors, encoder=embedded.spec)
        gaps = [
            gap_scores_of(each, given_scores(part.filtered, each, lists), candidates, min_gap)
            for each, lists in read.get(name, {}).items()
        ]
        notes += [
            f"{name}: the scores of {each.name} do not lie between 0 and 1, so thresholds are "
            "ranks among them."
            for each in gaps
            if each.is_ranked
        ]
        with settings.progress("Segmenting", len(parsed)) as advance:
            for method in parsed.values():
                gaps.append(gap_scores(method, inputs, min_gap))
                advance(1)
        points = lay_out_points(corpus, gaps, levels)
        # Gold is a system of its own accord wherever it is complete, and then the first.
        rest = {f"{i}": p.segmentations for i, p in enumerate(points) if p.kind != "gold"}
        with_points = corpus.only_systems(()).with_systems(rest)
        by_metric = scores_of(with_points, chosen, how, embedded, settings.progress)
        signed = Signature.of(chosen, corpus, embedded, unsegmented=unsegmented, seed=settings.seed)
        measured = {measure: by_metric.own_values(measure) for measure in chosen.names}
        counts = resampled_documents(len(corpus), rng_for(settings.seed, "documents"))
        everything = np.ones((1, len(corpus)))
        results.append(
            SweptCorpus(
                *(name, corpus, embedded, signed, points, count_gold(corpus)),
                {measure: each.over(everything)[0] for measure, each in measured.items()},
                {measure: each.over(counts) for measure, each in measured.items()},
                {m: (~np.isnan(each.values)).sum(1) for m, each in measured.items()},
                tuple(chosen.reference_free),
            )
        )
    prints = score_fingerprints(read)
    return study_result(
        "density",
        results,
        question="How far does quality depend on how many boundaries there are?",
        verdict=[sentence for each in results for sentence in _answer(each, results, wanted[0])],
        tables=_tables(results, wanted),
        signature={
            "methods": "+".join([*parsed, *prints.values()]),
            "thresholds": ",".join(f"{each:g}" for each in levels),
            "gap": f"{min_gap}",
            **candidates_field(candidates_speaker),
        },
        settings={
            "methods": list(parsed),
            "scores": list(prints),
            "thresholds": list(levels),
            "sparse_bor": LIMITS.sparse_bor,
            "dense_bor": LIMITS.dense_bor,
        },
        notes=[*notes, *(note for each in results for note in _notes(each, unsegmented))],
        reading=_reading(min_gap, metrics),
        sizes={each.name: {"gold_boundaries": each.n_gold} for each in results},
    )


@dataclass(frozen=True, slots=True)
class Point:
    """One segmentation of every document."""

    name: str  # of the method or system
    kind: Literal["sweep", "own", "matched", "system", "gold"]
    segmentations: tuple[Segmentation, ...]
    threshold: float | None = None  # on a sweep or matched
    target: int | None = None  # boundaries a matched point was to have

    @property
    def n_boundaries(self) -> int:
        """Boundaries over the corpus."""
        return sum(len(each) - 1 for each in self.segmentations)


def count_gold(corpus: Corpus) -> int:
    """Return the boundaries of gold; with several annotators their mean, rounded."""
    sizes = [[len(each) - 1 for each in document.references] for document in corpus]
    return round(sum(sum(each) / len(each) for each in sizes))


def lay_out_points(
    corpus: Corpus, methods: Sequence[GapScores], thresholds: Sequence[float]
) -> list[Point]:
    """Lay out gold, the corpus's own systems, sweeps, operating points and matched points."""
    n_gold, given = count_gold(corpus), corpus.hypotheses
    names = {each.name for each in methods}
    points = [Point(GOLD, "gold", given[GOLD])] if GOLD in given else []
    for name in (each for each in given if each != GOLD):
        points.append(Point(f"{name} (given)" if name in names else name, "system", given[name]))
    targets = dict.fromkeys([n_gold, *(p.n_boundaries for p in points if p.kind == "system")])
    for method in methods:
        for threshold in thresholds:
            points.append(Point(method.name, "sweep", method.above(threshold), threshold))
        # Chance is a baseline at gold's density (Coen's Table 3), whatever that is; so are scores
        # on a scale of their own.
        own = method.above(method.nearest(n_gold)) if method.own is None else method.own
        points.append(Point(method.name, "own", own))
        for target in targets:
            threshold = method.nearest(target)
            shown = threshold if np.isfinite(threshold) else None
            made = method.above(threshold)
            points.append(Point(method.name, "matched", made, shown, target))
    return points


@dataclass(frozen=True, slots=True)
class SweptCorpus(StudiedCorpus):
    """One corpus and its points, scored by every measure."""

    points: list[Point]
    n_gold: int  # boundaries of gold
    values: dict[str, Floats]  # (points,) losses, but a gold-based metric's own values
    resampled: dict[str, Floats]  # (resamples, points)
    n_defined: dict[str, Integers]  # (points,) documents with a value
    metrics: tuple[str, ...]  # reference-free ones

    @property
    def methods(self) -> list[str]:
        """Names of the methods with a sweep."""
        return list(dict.fromkeys(p.name for p in self.points if p.kind == "sweep"))

    @property
    def systems(self) -> list[str]:
        """Names of the systems the corpus came with, gold excepted."""
        return [point.name for point in self.points if point.kind == "system"]

    def sweep(self, method: str) -> list[int]:
        """Numbers of the points of a method's sweep, by threshold."""
        return [i for i, p in enumerate(self.points) if p.name == method and p.kind == "sweep"]

    def own(self, name: str) -> int:
        """Number of a method's operating point, or of a system."""
        kinds = ("own", "system")
        return next(i for i, p in enumerate(self.points) if p.name == name and p.kind in kinds)

    def matched(self, first: str, second: str) -> tuple[str, int, int] | None:
        """Whose density two methods, or a method and a system, are compared at, and their points.

        It is gold's, or the system's; None of two systems.
        """
        systems = [name for name in (first, second) if name in self.systems]
        if len(systems) == 2:
            return None
        target = self.points[self.own(systems[0])].n_boundaries if systems else self.n_gold
        at = [(p.name, p.kind, p.target) for p in self.points]
        a, b = (
            self.own(name) if name in systems else at.index((name, "matched", target))
            for name in (first, second)
        )
        return f"{systems[0]}'s" if systems else "gold's", a, b

    def interval(self, measure: str, point: int, other: int | None = None) -> list[float] | None:
        """95 % over documents of a measure, or of its difference from that of another point."""
        value, drawn = self.values[measure][point], self.resampled[measure][:, point]
        if self.n_defined[measure][point] < MIN_DOCUMENTS:
            return None
        if other is not None:
            value = value - self.values[measure][other]
            drawn = drawn - self.resampled[measure][:, other]
        found = None if np.isnan(value) else percentile_interval(float(value), drawn)
        return None if found is None else list(found)

    def best(self, method: str, measure: str) -> int:
        """Number of the point of a sweep with the highest value, of equals the sparsest."""
        return max(self.sweep(method)[::-1], key=self.values[measure].__getitem__)

    def span(self, method: str, measure: str) -> float:
        """Highest minus lowest value on a sweep."""
        return float(np.ptp(self.values[measure][self.sweep(method)]))

    def density(self, point: int) -> tuple[float, float]:
        """Boundaries of a point per gold boundary, and per gap."""
        n_gaps = sum(len(document.units) - 1 for document in self.corpus)
        return self.values["bor"][point], self.points[point].n_boundaries / n_gaps

    def estimate(self, measure: str, point: int, name: str) -> Row:
        """A measure at a point with its interval, as the columns of that name."""
        return {name: self.values[measure][point], f"{name}_ci": self.interval(measure, point)}


def regime(bor: float) -> Regime:
    """Name a density (Coen §9 and Table 5): BOR below 1, about 1 (`LIMITS`), or well above 1."""
    if bor < LIMITS.sparse_bor:
        return "conservative"
    return "aggressive" if bor > LIMITS.dense_bor else "balanced"


def _tables(results: Sequence[SweptCorpus], matchings: Sequence[str]) -> Iterator[Table]:
    """Densities, pairs and losses to be read, then what charts are made from."""
    rows = [row for each in results for row in _regime_rows(each, matchings)]
    yield Table.of("regimes", "Thresholds by density, and the best of them", BY_REGIME, rows)
    title = "Pairs as they are and at equal density: first minus second"
    yield Table.of("audit", title, AUDIT, [row for each in results for row in _audit_rows(each)])
    title = "Where reference-free losses are lowest on the same sweep"
    rows = [row for each in results for row in _loss_rows(each, W_F1[matchings[0]])]
    yield Table.of("losses", title, LOSSES, rows)
    title = "Density and quality of every threshold and system"
    curves = [row for each in results for row in _curve_rows(each, matchings)]
    yield Table.of("curves", title, CURVES, curves, shown=False)
    title = "Systems, operating points and points of equal density"
    points = [
        (
            *(each.name, p.name, p.kind, p.target, p.n_boundaries, p.threshold),
            *each.density(i),
            *(each.values[name][i] for name in POINT_MEASURES),
        )
        for each in results
        for i, p in enumerate(each.points)
        if p.kind != "sweep"
    ]
    yield Table.of("points", title, POINTS, points, shown=False)


def _curve_rows(result: SweptCorpus, matchings: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield a row per threshold or system, matching and measure; most need no matching."""
    further = [name for name in result.values if name not in (*W_F1.values(), *UNMATCHED)]
    for matching in matchings:
        for measure in (W_F1[matching], *UNMATCHED, *further):
            shown = "w_f1" if measure == W_F1[matching] else measure
            for i, p in enumerate(result.points):
                if p.kind not in ("own", "matched"):
                    interval = result.interval(measure, i) or (None, None)
                    place = (result.name, p.name, matching, p.threshold, *result.density(i))
                    yield (*place, shown, result.values[measure][i], *interval)


def _regime_rows(result: SweptCorpus, matchings: Sequence[str]) -> Iterator[Row]:
    """Where each method's thresholds lie, its best point and its own; systems have one point."""
    for name, matching in product((*result.methods, *result.systems), matchings):
        measure, sweep, own = W_F1[matching], result.sweep(name), result.own(name)
        bor = result.values["bor"]
        row: Row = {"corpus": result.name, "method": name, "matching": matching}
        row |= result.estimate(measure, own, "own")
        row |= {"own_bor": bor[own], "own_regime": regime(bor[own])}
        for kind in REGIMES if sweep else ():
            found = [f"{result.points[i].threshold:g}" for i in sweep if regime(bor[i]) == kind]
            row[kind] = "–".join(dict.fromkeys((found[0], found[-1]))) if found else None
        at = result.best(name, measure) if sweep else own
        if sweep:
            row |= result.estimate(measure, at, "best")
            row |= {"threshold": result.points[at].threshold, "bor": bor[at]}
            row |= {"span": result.span(name, measure)}
        w_f1, purity, coverage = (result.values[x][at] for x in (measure, "purity", "coverage"))
        yield row | {"mode": failure_mode(w_f1, bor[at], purity, coverage).label}


def _audit_rows(result: SweptCorpus) -> Iterator[Row]:
    """Every pair at its operating points, then at equal density where one can be had."""
    for first, second in combinations((*result.methods, *result.systems), 2):
        as_they_are = "own", result.own(first), result.own(second)
        for at, a, b in filter(None, (as_they_are, result.matched(first, second))):
            row: Row = {"corpus": result.name, "first": first, "second": second, "at": at}
            row["shift"] = " → ".join(regime(result.values["bor"][i]) for i in (b, a))
            for measure in ("f1", "w_f1", "w_f1_one_to_one", "bor"):
                row[measure] = result.values[measure][a] - result.values[measure][b]
                row[f"{measure}_ci"] = result.interval(measure, a, b)
            yield row


def _loss_rows(result: SweptCorpus, measure: str) -> Iterator[Row]:
    """Where on a sweep each reference-free metric would stop, and what W-F1 is there."""
    for method in result.methods:
        sweep = result.sweep(method)
        w_f1 = result.values[measure][sweep]
        for metric in result.metrics:
            losses = result.values[metric][sweep]
            row: Row = {"corpus": result.name, "method": method, "metric": metric}
            row["best"] = float(w_f1.max())
            if not np.isnan(losses).all():
                lowest = sweep[int(np.nanargmin(losses))]
                row |= result.estimate(metric, lowest, "lowest")
                row |= {"threshold": result.points[lowest].threshold}
                row |= {"bor": result.values["bor"][lowest], "w_f1": result.values[measure][lowest]}
                row["rho"] = float(correlation(losses, 1 - w_f1, "spearman"))
            yield row


def _answer(result: SweptCorpus, results: Sequence[SweptCorpus], matching: str) -> Iterator[str]:
    """What density does, what methods do at equal density, where losses would stop."""
    measure, methods = W_F1[matching], result.methods
    where = f"{result.name}: " if len(results) > 1 else ""
    spans = [f"{result.span(name, measure):.2f} ({name})" for name in methods]
    sentence = f"{where}Sweeping the threshold moves W-F1 by {listed(spans)}"
    pairs = [result.matched(*names) for names in combinations(methods, 2)]
    gaps = [abs(result.values[measure][p[1]] - result.values[measure][p[2]]) for p in pairs if p]
    if gaps:
        sentence += f"; at gold's density the methods differ by at most {max(gaps):.2f}"
    yield f"{sentence}."
    peaks = []
    for name in methods:
        best = result.best(name, measure)
        value, bor = result.values[measure][best], result.values["bor"][best]
        at_edge = ", its densest point" if best == result.sweep(name)[0] else ""
        peaks.append(f"{value:.2f} at BOR {bor:.2f} ({name}{at_edge})")
    yield f"{where}W-F1 is highest at {listed(peaks)}."
    if CHANCE in methods and len(methods) > 1:
        better: list[str] = []
        unclear: list[str] = []
        for name in methods:
            pair = None if name == CHANCE else result.matched(name, CHANCE)
            if pair is not None:
                interval = result.interval(measure, pair[1], pair[2])
                (better if interval and interval[0] > 0 else unclear).append(name)
        parts = []
        if better:
            parts.append(f"W-F1 puts {listed(better)} above random scores (95 % interval)")
        if unclear:
            names = listed(unclear)
            parts.append(f"W-F1 cannot tell {names} from random scores, or not for the better")
        yield f"{where}At gold's density {' and '.join(parts)}."


def _notes(result: SweptCorpus, unsegmented: str) -> Iterator[str]:
    """Where densities could not be had, and where reference-free losses are of no boundary."""
    for point in result.points:
        if point.kind == "matched" and point.n_boundaries != point.target:
            yield (
                f"{result.name}: {point.name} has {point.n_boundaries:,} boundaries where it was "
                f"matched to {point.target:,}; no threshold comes nearer."
            )
    last = {name: result.points[result.sweep(name)[-1]].segmentations for name in result.methods}
    n_bare = {name: sum(len(each) == 1 for each in made) for name, made in last.items()}
    bare = [f"{name} {n}" for name, n in n_bare.items() if n]
    if bare and result.metrics:
        yield (
            f"{result.name}: documents without a boundary ({unsegmented}) at the highest "
            f"threshold: {listed(bare)} of {len(result.corpus)}."
        )


def _reading(min_gap: int, metrics: Sequence[str]) -> dict[str, str]:
    """Say how to read columns and measures."""
    return {
        "bor": "Boundaries per gold boundary over the corpus: 1 is gold's density.",
        "conservative": f"Thresholds with BOR below {LIMITS.sparse_bor:g}: too few boundaries.",
        "balanced": f"Thresholds with BOR from {LIMITS.sparse_bor:g} to {LIMITS.dense_bor:g}.",
        "aggressive": f"Thresholds with BOR above {LIMITS.dense_bor:g}: too many boundaries.",
        "threshold": "On scores from 0 to 1: probabilities, as of a trained scorer, otherwise the "
        f"share of lower scores among all boundaries that can be {min_gap} units apart.",
        "best": "The highest W-F1 of the sweep: chosen on the same gold, so it flatters.",
        "span": "Highest minus lowest W-F1 over the sweep: what density alone can do.",
        "own": "A method as reffree segment runs it, a system as given, scores of --scores at a "
        "threshold of 0.5; random, and scores not from 0 to 1, have as many boundaries as gold.",
        "at": "own: each at its own density; gold's, or a system's: thresholds with that many "
        "boundaries, so that only their places differ.",
        "w_f1": "F of boundaries at most 1 unit from one of the other side; with many_to_one one "
        "boundary may serve several.",
        "coverage": "Share of units in the predicted segment that holds most of their gold one.",
        "purity": "Share of units in the gold segment that holds most of their predicted one.",
        "rho": "Spearman's correlation along the sweep of a loss with 1 − W-F1: 1 is a loss that "
        "would choose as gold does.",
        **{name: "On the same sweep; a reference-free loss is best when low." for name in metrics},
    }
