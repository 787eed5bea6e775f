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
from reffree.util.arrays import Floats
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
        systems = {f"{p['at']}": p["segmentations"] for p in points if p["point"] != "gold"}
        with_points = corpus.only_systems(()).with_systems(systems)
        by_metric = scores_of(with_points, chosen, how, embedded, settings.progress)
        measured = {measure: by_metric.own_values(measure) for measure in chosen.names}
        for measure, each in measured.items():
            values = each.over(np.ones((1, len(corpus))))[0]
            for point, value, defined in zip(points, values, ~np.isnan(each.values), strict=True):
                point |= {"corpus": name, measure: value, f"n_{measure}": defined.sum()}
        signed = Signature.of(chosen, corpus, embedded, unsegmented=unsegmented, seed=settings.seed)
        counts = resampled_documents(len(corpus), rng_for(settings.seed, "documents"))
        drawn = {measure: each.over(counts) for measure, each in measured.items()}
        about = (name, corpus, embedded, signed)
        results.append(SweptCorpus(*about, points, drawn, tuple(chosen.reference_free)))
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
        sizes={each.name: {"gold_boundaries": count_gold(each.corpus)} for each in results},
    )


def count_gold(corpus: Corpus) -> int:
    """Return the boundaries of gold; with several annotators their mean, rounded."""
    sizes = [[len(each) - 1 for each in document.references] for document in corpus]
    return round(sum(sum(each) / len(each) for each in sizes))


def lay_out_points(
    corpus: Corpus, methods: Sequence[GapScores], thresholds: Sequence[float]
) -> list[Row]:
    """Lay out gold, the corpus's own systems, sweeps, operating points and matched points.

    A point is a segmentation of every document: of a ``method`` or system, at a ``threshold`` on a
    sweep or where it was to have the boundaries of a ``target``. It is a row of table ``points``.
    """
    points: list[Row] = []
    n_gaps = sum(len(document.units) - 1 for document in corpus)

    def add(method: str, point: str, made: tuple[Segmentation, ...], **more: float | None) -> None:
        n = sum(len(each) - 1 for each in made)
        row = {"method": method, "point": point, "segmentations": made, "at": len(points)}
        points.append({"threshold": None, **row, "boundaries": n, "density": n / n_gaps, **more})

    n_gold, given = count_gold(corpus), corpus.hypotheses
    names = {each.name for each in methods}
    if GOLD in given:
        add(GOLD, "gold", given.pop(GOLD))
    for name, made in given.items():
        add(f"{name} (given)" if name in names else name, "system", made)
    targets = dict.fromkeys([n_gold, *(p["boundaries"] for p in points if p["point"] == "system")])
    for method in methods:
        for threshold in thresholds:
            add(method.name, "sweep", method.above(threshold), threshold=threshold)
        # Chance is a baseline at gold's density (Coen's Table 3), whatever that is; so are scores
        # on a scale of their own.
        own = method.above(method.nearest(n_gold)) if method.own is None else method.own
        add(method.name, "own", own)
        for target in targets:
            threshold = method.nearest(target)
            shown = threshold if np.isfinite(threshold) else None
            made = method.above(threshold)
            add(method.name, "matched", made, threshold=shown, target=target)
    return points


@dataclass(frozen=True, slots=True)
class SweptCorpus(StudiedCorpus):
    """One corpus and its points, scored by every measure."""

    points: list[Row]  # with losses, but a gold-based metric's own values
    resampled: dict[str, Floats]  # (resamples, points) by measure
    metrics: tuple[str, ...]  # reference-free ones

    @property
    def methods(self) -> list[str]:
        """Names of the methods with a sweep."""
        return list(dict.fromkeys(p["method"] for p in self.points if p["point"] == "sweep"))

    @property
    def systems(self) -> list[str]:
        """Names of the systems the corpus came with, gold excepted."""
        return [point["method"] for point in self.points if point["point"] == "system"]

    def find(self, method: str, *kinds: str) -> list[Row]:
        """Points of a method, or of a system, of some kinds; those of a sweep by threshold."""
        return [p for p in self.points if p["method"] == method and p["point"] in kinds]

    def own(self, name: str) -> Row:
        """A method's operating point, or a system's only one."""
        return self.find(name, "own", "system")[0]

    def matched(self, first: str, second: str) -> tuple[str, Row, Row] | None:
        """Whose density two methods, or a method and a system, are compared at, and their points.

        It is gold's, or the system's; None of two systems.
        """
        systems = [name for name in (first, second) if name in self.systems]
        if len(systems) == 2:
            return None
        target = self.own(systems[0])["boundaries"] if systems else count_gold(self.corpus)
        a, b = (
            next(
                p for p in self.find(name, "matched", "system") if p.get("target", target) == target
            )
            for name in (first, second)
        )
        return f"{systems[0]}'s" if systems else "gold's", a, b

    def interval(self, measure: str, point: Row, other: Row | None = None) -> list[float] | None:
        """95 % over documents of a measure, or of its difference from that of another point."""
        value, drawn = point[measure], self.resampled[measure][:, point["at"]]
        if point[f"n_{measure}"] < MIN_DOCUMENTS:
            return None
        if other is not None:
            value = value - other[measure]
            drawn = drawn - self.resampled[measure][:, other["at"]]
        found = None if np.isnan(value) else percentile_interval(float(value), drawn)
        return None if found is None else list(found)

    def best(self, method: str, measure: str) -> Row:
        """Return the point of a sweep with the highest value, of equals the sparsest."""
        return max(self.find(method, "sweep")[::-1], key=lambda point: point[measure])

    def span(self, method: str, measure: str) -> float:
        """Highest minus lowest value on a sweep."""
        return float(np.ptp([point[measure] for point in self.find(method, "sweep")]))

    def estimate(self, measure: str, point: Row, name: str) -> Row:
        """A measure at a point with its interval, as the columns of that name."""
        return {name: point[measure], f"{name}_ci": self.interval(measure, point)}


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
    points = [p for each in results for p in each.points if p["point"] != "sweep"]
    yield Table.of("points", title, POINTS, points, shown=False)


def _curve_rows(result: SweptCorpus, matchings: Sequence[str]) -> Iterator[Row]:
    """Yield a row per threshold or system, matching and measure; most need no matching."""
    further = [name for name in result.resampled if name not in (*W_F1.values(), *UNMATCHED)]
    points = [point for point in result.points if point["point"] not in ("own", "matched")]
    for matching in matchings:
        for measure in (W_F1[matching], *UNMATCHED, *further):
            shown = "w_f1" if measure == W_F1[matching] else measure
            for p in points:
                low, high = result.interval(measure, p) or (None, None)
                found = {"measure": shown, "value": p[measure], "low": low, "high": high}
                yield p | {"matching": matching} | found


def _regime_rows(result: SweptCorpus, matchings: Sequence[str]) -> Iterator[Row]:
    """Where each method's thresholds lie, its best point and its own; systems have one point."""
    for name, matching in product((*result.methods, *result.systems), matchings):
        measure, sweep, own = W_F1[matching], result.find(name, "sweep"), result.own(name)
        row: Row = {"corpus": result.name, "method": name, "matching": matching}
        row |= result.estimate(measure, own, "own")
        row |= {"own_bor": own["bor"], "own_regime": regime(own["bor"])}
        for kind in REGIMES if sweep else ():
            found = [f"{p['threshold']:g}" for p in sweep if regime(p["bor"]) == kind]
            row[kind] = "–".join(dict.fromkeys((found[0], found[-1]))) if found else None
        at = result.best(name, measure) if sweep else own
        if sweep:
            row |= result.estimate(measure, at, "best")
            row |= {"threshold": at["threshold"], "bor": at["bor"]}
            row |= {"span": result.span(name, measure)}
        mode = failure_mode(at[measure], at["bor"], at["purity"], at["coverage"])
        yield row | {"mode": mode.label}


def _audit_rows(result: SweptCorpus) -> Iterator[Row]:
    """Every pair at its operating points, then at equal density where one can be had."""
    for first, second in combinations((*result.methods, *result.systems), 2):
        as_they_are = "own", result.own(first), result.own(second)
        for at, a, b in filter(None, (as_they_are, result.matched(first, second))):
            row: Row = {"corpus": result.name, "first": first, "second": second, "at": at}
            row["shift"] = f"{regime(b['bor'])} → {regime(a['bor'])}"
            for measure in ("f1", "w_f1", "w_f1_one_to_one", "bor"):
                row[measure] = a[measure] - b[measure]
                row[f"{measure}_ci"] = result.interval(measure, a, b)
            yield row


def _loss_rows(result: SweptCorpus, measure: str) -> Iterator[Row]:
    """Where on a sweep each reference-free metric would stop, and what W-F1 is there."""
    for method, metric in product(result.methods, result.metrics):
        sweep = result.find(method, "sweep")
        losses, w_f1 = (np.array([point[name] for point in sweep]) for name in (metric, measure))
        row: Row = {"corpus": result.name, "method": method, "metric": metric, "best": w_f1.max()}
        if not np.isnan(losses).all():
            lowest = sweep[int(np.nanargmin(losses))]
            row |= result.estimate(metric, lowest, "lowest")
            row |= {"threshold": lowest["threshold"], "bor": lowest["bor"]}
            row |= {"w_f1": lowest[measure], "rho": correlation(losses, 1 - w_f1, "spearman")}
        yield row


def _answer(result: SweptCorpus, results: Sequence[SweptCorpus], matching: str) -> Iterator[str]:
    """What density does, what methods do at equal density, where losses would stop."""
    measure, methods = W_F1[matching], result.methods
    where = f"{result.name}: " if len(results) > 1 else ""
    spans = [f"{result.span(name, measure):.2f} ({name})" for name in methods]
    sentence = f"{where}Sweeping the threshold moves W-F1 by {listed(spans)}"
    pairs = [result.matched(*names) for names in combinations(methods, 2)]
    gaps = [abs(pair[1][measure] - pair[2][measure]) for pair in pairs if pair]
    if gaps:
        sentence += f"; at gold's density the methods differ by at most {max(gaps):.2f}"
    yield f"{sentence}."
    peaks = []
    for name in methods:
        best = result.best(name, measure)
        is_edge = best is result.find(name, "sweep")[0]
        at_edge = ", its densest point" if is_edge else ""
        peaks.append(f"{best[measure]:.2f} at BOR {best['bor']:.2f} ({name}{at_edge})")
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
        if point["point"] == "matched" and point["boundaries"] != point["target"]:
            yield (
                f"{result.name}: {point['method']} has {point['boundaries']:,} boundaries where it "
                f"was matched to {point['target']:,}; no threshold comes nearer."
            )
    last = {name: result.find(name, "sweep")[-1]["segmentations"] for name in result.methods}
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
