"""Does each metric get worse the more a segmentation is damaged?

After Ghinassi et al. (2024) §3.4.2, Figures 2 and 3. Removal changes the number of segments, so a
metric that only counts them follows as well: ``n_segments`` is on every curve, as a sentinel.
Transposition and replacement keep that number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from typing import Annotated, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from reffree.data.corpus import GOLD, Corpus
from reffree.data.perturbation import PERTURBATIONS, Perturbation, parse_perturbation
from reffree.data.perturbation import perturb as perturb_corpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.embed import Vectors
from reffree.evaluate.result import Result, Table, columns, estimate
from reffree.evaluate.score import check_gold, scores_of
from reffree.evaluate.scores import Scores, ScoreSettings
from reffree.evaluate.signature import Signature
from reffree.statistics.coefficients import correlation
from reffree.statistics.losses import MeanOverDocuments, SystemLosses
from reffree.statistics.paired import holm, paired_tests
from reffree.statistics.resampling import (
    CONFIDENCE,
    MIN_DOCUMENTS,
    Counts,
    percentile_interval,
    resampled_documents,
)
from reffree.studies.keywords import StudyKeywords, UnsegmentedOption, metric_option
from reffree.studies.study import StudiedCorpus, StudySettings, corpus_parts, study_result
from reffree.util.arrays import Floats, mean_defined
from reffree.util.bounds import Bounds
from reffree.util.declare import Option, declared
from reffree.util.errors import OptionError, UnknownNameError, counted, listed, mistake
from reffree.util.grid import Row, group_by
from reffree.util.progress import Progress, no_progress
from reffree.util.seeds import rng_for

KINDS = ("removal", "transposition")
"""Of the paper's Figures 2 and 3."""

STRENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9)
"""Of the same figures, as the paper's released code has them: 0 (gold) to 9."""

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""For mixtures, which have no strength in boundaries or units."""

ALPHA = 0.05
SENTINEL = "n_segments"

EQUAL = 1e-9
"""Relative to the largest loss: a document's curve falls only by more than that."""

DIRECTIONS = {
    "lower": "Against gold; lower is better.",
    "higher": "Against gold; higher is better, so its loss is the negative value.",
    "toward_1": "Against gold; best at 1, and shown as the distance from it.",
    "reference-free": "A loss, lower is better.",
}
MONOTONICITY = (
    *columns("text", "corpus", kind="perturbation", metric="metric", role="kind of metric"),
    *estimate("rho", "Spearman"),
    *columns("number", rho_seeds="single seeds", rho_documents="single documents"),
    *columns("share", monotone="monotone documents"),
    *columns("count", documents="of"),
    *columns("text", first="worse from"),
)
CURVES = (
    *columns("text", "corpus", kind="perturbation"),
    *columns("number", "strength"),
    *columns("text", "metric"),
    *columns("number", "value", "low", "high", "scaled"),
    *columns("number", scaled_low="scaled low", scaled_high="scaled high"),
)
EDITS = (
    *columns("text", "corpus", kind="perturbation"),
    *columns("number", "strength"),
    *columns("count", done="edits done", not_done="not possible"),
    *columns("number", unsegmented="documents without a boundary"),
)

Strength = int | float
"""Boundaries (units for transposition), or with a point a share of the boundaries."""

READING = {
    "rho": "Spearman's correlation of the mean curve over seeds with strength, 0 included; 1 "
    "is a loss that rises at every step; the interval is over resampled documents.",
    "rho_seeds": "The mean of the same correlation over the curves of single seeds.",
    "rho_documents": "The mean of the same correlation over the curves of single documents, "
    "each the mean over seeds.",
    "monotone": "Documents whose own curve rises and never falls, of those whose curve is not "
    "constant and has three losses or more.",
    "first": "The smallest strength at which losses exceed the unperturbed ones: paired "
    f"permutation test over documents, Holm over strengths, p at most {ALPHA:g}.",
    "low": "Bands hold the middle 95 % of the seeds; of fewer than 40 that is nearly all.",
    "scaled": "The loss mapped so that the mean curve goes from 0 (best) to 1 (worst).",
    SENTINEL: "Segments per document: no metric, but what some perturbations change as well.",
}


def parse_kind(kind: str, strengths: Sequence[Strength] | None = None) -> tuple[Strength, ...]:
    """Check a kind of perturbation and its strengths; return these in order, without 0.

    Whole numbers count boundaries (units for transposition), numbers with a point are shares. One
    curve has one or the other. A kind may name the option that its strengths are of.

    >>> parse_kind("transposition:distance=2,k", [3, 1])
    (1, 3)
    """
    name = kind.partition(":")[0]
    if name not in PERTURBATIONS:
        raise UnknownNameError("perturbation", name, PERTURBATIONS)
    option = _option(kind)
    if not option or "=" in option:
        expected = "after the colon, at last the option that strengths are of, without value"
        remedy = "write transposition:k or transposition:distance=2,k"
        raise OptionError(f"the kind {kind!r}", expected=expected, remedy=remedy)
    default = STRENGTHS if option in ("k", "distance") else SHARES
    wanted = sorted({s for s in (default if strengths is None else strengths) if s != 0})
    for strength in wanted:
        _make_perturbation(kind, strength)
    if len({isinstance(strength, float) for strength in wanted}) != 1:
        found = f"{'whole numbers and shares' if wanted else 'no strength above 0'} as strengths"
        expected = "whole numbers (boundaries or units) or shares (with a point)"
        raise OptionError(found, expected=expected, remedy="write 1 2 3 or 0.1 0.2 0.3")
    return tuple(wanted)


@declared
def perturb(
    corpora: Mapping[str, Corpus],
    *,
    kinds: Annotated[
        Sequence[str],
        Option(
            "removal, insertion, replacement, transposition or mixture; transposition moves all "
            "boundaries by so many units, transposition:k so many by one unit, "
            "transposition:distance=2,k by two; may be repeated.",
            "--kind",
            "KIND",
            names="perturbations",
            check=parse_kind,
        ),
    ] = KINDS,
    strengths: Annotated[
        Sequence[int | float] | None,
        Option(
            "Boundaries (units for transposition) such as 1,2,4 or, with a point, shares of them "
            "such as 0.1,0.5; 0 is always there.",
            metavar="LIST",
            default="1 to 9, none above the mean number of boundaries; shares for mixtures",
        ),
    ] = None,
    seeds: Annotated[int, Bounds(1, 10_000), Option("Draws of every strength.")] = 20,
    metrics: Annotated[
        Sequence[str] | None,
        metric_option("As in reffree score; may be repeated.", default="as in reffree score"),
    ] = None,
    source: Annotated[str, Option("The system to perturb.", metavar="NAME")] = "gold",
    embeddings: Mapping[str, Vectors] | None = None,
    unsegmented: UnsegmentedOption = "neutral",
    **keywords: Unpack[StudyKeywords],
) -> Result:
    """Score gold, or a system, ever more perturbed: curves, and how monotone they are.

    Says how each metric follows the strength: Spearman's correlation over the curve, documents
    whose own loss never falls, and the first strength that is worse for certain. Each CORPUS is a
    corpus of its own. -f csv has the curves, raw and scaled.

    Draws have the seeds ``seed``, ``seed + 1``, … Gold of several annotators is each one's in turn,
    draw by draw, beginning with the first again where draws are more.
    """
    settings = StudySettings(**keywords)
    wanted = {kind: parse_kind(kind, strengths) for kind in kinds}
    if not wanted:
        remedy = "leave kinds out for both"
        raise mistake(None, "no perturbation", "at least one kind", remedy)
    how = ScoreSettings(settings, unsegmented=unsegmented, seed=settings.seed)
    draws = range(settings.seed, settings.seed + seeds)
    parts = corpus_parts(corpora, embeddings, settings)
    for part in parts:
        if source not in (GOLD, *part.corpus.hypotheses):
            raise UnknownNameError("system", source, part.corpus.hypotheses)
        for document in part.corpus if source == GOLD else ():
            if not document.references:
                found, remedy = "no gold to perturb", "add gold or perturb a system instead"
                raise mistake(document.place, found, "gold in every document", remedy)
        chosen = settings.choose_metrics(metrics, part.corpus)
        check_gold(part.corpus, chosen)
        free = chosen.reference_free
        part.check(free.values(), (), settings, needs_vectors=bool(free))
    studied: list[StudiedCorpus] = []
    curves: list[Row] = []
    edits: list[Row] = []
    by_corpus: dict[str, dict[str, tuple[Strength, ...]]] = {}
    for part in parts:
        own = wanted if strengths is not None else fit_strengths(wanted, part.corpus, source)
        grid, at, steps = build_grid(part.corpus, own, draws, source, settings.progress)
        chosen = settings.choose_metrics(metrics, grid)
        scores = scores_of(grid, chosen, how, part.vectors, settings.progress)
        signature = Signature.of(
            chosen, part.corpus, scores.embedded, unsegmented=unsegmented, seed=settings.seed
        )
        studied.append(StudiedCorpus(part.name, part.corpus, scores.embedded, signature))
        curves += ({"corpus": part.name, **row} for row in _curves_of(scores, at, own, settings))
        edits += ({"corpus": part.name, **step} for step in steps)
        by_corpus[part.name] = own
    # What was done somewhere: without strengths given, corpora of few boundaries have fewer.
    done = {kind: max((own[kind] for own in by_corpus.values()), key=len) for kind in wanted}
    spelt = [f"{kind}({','.join(f'{each:g}' for each in done[kind])})" for kind in done]
    fitted = {} if strengths is not None else {"strengths": "fitted"}
    title = f"Loss against strength of perturbation of {source}"
    curve_of = {c["metric"]: c for c in curves if c["role"] != "sentinel"}
    raw_and_scaled = "Metrics against strength, raw and scaled"
    points = [row for curve in curves for row in _points(curve)]
    reading = {
        name: DIRECTIONS[curve["direction"] if curve["role"] == "gold-based" else curve["role"]]
        for name, curve in curve_of.items()
    }
    return study_result(
        "perturb",
        studied,
        question="Does each metric get worse the more a segmentation is damaged?",
        verdict=_answer(curves, source),
        tables=[
            Table.of("monotonicity", title, MONOTONICITY, curves),
            Table.of("curves", raw_and_scaled, CURVES, points, shown=False),
            Table.of("edits", "What each strength did", EDITS, edits, shown=False),
        ],
        signature={
            "source": source,
            "perturbations": "+".join(spelt),
            **fitted,
            "seeds": f"{seeds}",
            "test": f"paired-permutation+holm({ALPHA:g})",
        },
        settings={
            "strengths": done,
            **({"strengths_by_corpus": by_corpus} if fitted else {}),
            "metrics": list(curve_of),
            "alpha": ALPHA,
        },
        notes=[
            *(
                f"{part.name}: draw by draw another annotator's gold was perturbed; gold-based "
                "metrics compare with all of them."
                for part in parts
                if source == GOLD and not part.corpus.has_gold
            ),
            *_notes(curves, edits, {part.name: len(part.corpus) for part in parts}, unsegmented),
        ],
        reading=READING | reading,
    )


def _option(kind: str) -> str:
    """Return the option that the strengths of a kind are of."""
    name, colon, options = kind.partition(":")
    return options.rpartition(",")[2] if colon else PERTURBATIONS[name].whole


def _make_perturbation(kind: str, strength: Strength) -> Perturbation:
    return parse_perturbation(f"{kind}={strength}" if ":" in kind else f"{kind}:{strength}")


def fit_strengths(
    strengths: Mapping[str, Sequence[Strength]], corpus: Corpus, source: str = GOLD
) -> dict[str, tuple[Strength, ...]]:
    """Leave out numbers of boundaries above the source's mean number a document, but for 1.

    More edits than that are not possible in most documents. Distances and shares stay.
    """
    cuts = [d.references if source == GOLD else [d.systems[source]] for d in corpus]
    n_boundaries = [len(each) - 1 for of_document in cuts for each in of_document]
    most = max(1, sum(n_boundaries) // len(n_boundaries))
    return {
        kind: tuple(s for s in wanted if _option(kind) != "k" or s <= most)
        for kind, wanted in strengths.items()
    }


def build_grid(
    corpus: Corpus,
    strengths: Mapping[str, Sequence[Strength]],
    seeds: Sequence[int],
    source: str = GOLD,
    progress: Progress = no_progress,
) -> tuple[Corpus, dict[str, NDArray[np.intp]], list[Row]]:
    """Perturb gold, or the system ``source``, with every kind, strength and seed.

    Seeds and names are those of `reffree.data.perturbation.perturb`: any step can be made again on
    its own. Where gold is several annotators', draw i perturbs that of annotator i, of as many as a
    document has. Returns the corpus with the source and all its perturbations as systems; by kind,
    which systems they are, (seeds, 1 + strengths), the source first; and what each strength did.
    """
    systems: dict[str, tuple[Segmentation, ...]] = {}
    offset = int(corpus.has_gold)  # gold is the first system wherever it is complete
    corpora = [corpus] * len(seeds)  # by draw
    places_of_source = np.zeros(len(seeds), dtype=np.intp)
    if source != GOLD:
        systems[source] = corpus.hypotheses[source]
        places_of_source += offset
    elif not corpus.has_gold:
        n_sources = min(math.lcm(*{len(d.references) for d in corpus}), len(seeds))
        of_draw = [
            Corpus.of_checked(replace(d, gold=d.references[i % len(d.references)]) for d in corpus)
            for i in range(n_sources)
        ]
        corpora = [of_draw[i % n_sources] for i in range(len(seeds))]
        systems |= {f"gold of draw {i}": c.hypotheses[GOLD] for i, c in enumerate(of_draw)}
        places_of_source += np.arange(len(seeds)) % n_sources
    at: dict[str, NDArray[np.intp]] = {}
    steps: list[Row] = []
    with progress("Perturbing", len(seeds) * sum(map(len, strengths.values()))) as advance:
        for kind, wanted in strengths.items():
            at[kind] = np.repeat(places_of_source[:, None], len(wanted) + 1, axis=1)
            for j, strength in enumerate(wanted):
                done = not_done = bare = 0
                for i, seed in enumerate(seeds):
                    made = perturb_corpus(
                        corpora[i], _make_perturbation(kind, strength), seed, source
                    )
                    at[kind][i, j + 1] = offset + len(systems)
                    systems[f"{made.name} seed {seed}"] = made.segmentations
                    done += sum(astuple(made.done))
                    not_done += sum(astuple(made.not_done))
                    bare += sum(len(each) == 1 for each in made.segmentations)
                    advance(1)
                step = {"kind": kind, "strength": strength, "done": done, "not_done": not_done}
                steps.append({**step, "unsegmented": bare / len(seeds)})
    return corpus.only_systems(()).with_systems(systems), at, steps


def _curves_of(
    scores: Scores,
    at: Mapping[str, NDArray[np.intp]],
    strengths: Mapping[str, Sequence[Strength]],
    settings: StudySettings,
) -> Iterator[Row]:
    """Describe every kind of perturbation under every metric and the sentinel."""
    metrics: dict[str, tuple[str, str, SystemLosses]] = {}
    for name in scores.metrics.names:
        gold = scores.metrics.gold_based.get(name)
        about = ("gold-based", gold.direction) if gold else ("reference-free", "lower")
        metrics[name] = (*about, scores.losses(name))
    sizes = MeanOverDocuments(scores.n_segments.T.astype(np.float64))
    metrics[SENTINEL] = "sentinel", "lower", sizes
    counts = resampled_documents(len(scores.n_segments), rng_for(settings.seed, "documents"))
    with settings.progress("Testing", len(metrics) * len(at)) as advance:
        for kind, places in at.items():
            for metric, (role, direction, losses) in metrics.items():
                row = {"kind": kind, "metric": metric, "role": role, "direction": direction}
                from_0 = (0, *strengths[kind])
                row |= describe_curve(losses, places, from_0, counts, settings.seed)
                yield row | ({"first": None} if role == "sentinel" else {})
                advance(1)


def describe_curve(
    losses: SystemLosses,
    at: NDArray[np.intp],
    strengths: tuple[Strength, ...],
    counts: Counts,
    seed: int,
) -> Row:
    """Describe the curve of systems ``at`` (seeds, strengths) with ``strengths``, 0 first.

    The curve is the mean over seeds of the systems' losses; its Spearman correlation with strength
    has an interval over documents (cluster bootstrap, ``counts``), and it ``rises`` or ``falls``
    where that leaves no doubt. ``first``: see `_first_worse`, which may be ``out_of_reach`` of so
    few documents; between ``fewest`` and ``most`` documents are behind the points. What the other
    columns mean is in `READING`.
    """
    x = np.array(strengths, dtype=np.float64)
    curves = losses.over(np.ones((1, losses.values.shape[1])))[0][at]  # (seeds, k)
    mean, low, high = band(curves)
    rho = float(correlation(x, mean, "spearman"))
    rho_ci = None
    if not np.isnan(rho) and (~np.isnan(losses.values[at[0, 0]])).sum() >= MIN_DOCUMENTS:
        resampled = mean_defined(losses.over(counts)[:, at], 1)  # (resamples, k)
        rho_ci = percentile_interval(rho, correlation(x, resampled, "spearman"))
    by_document = mean_defined(losses.values[at], 0).T  # (documents, k)
    own = correlation(x, by_document, "spearman")  # (documents,)
    has_own = ~np.isnan(own)
    behind = (~np.isnan(by_document)).sum(0)
    known = by_document[has_own]  # NaN is no fall
    slack = EQUAL * np.fmax.reduce(np.abs(known), axis=None, initial=0.0)
    falls = (known < np.fmax.accumulate(known, axis=1) - slack).any(1)
    # The mean curve is mapped onto [0, 1] and its band alike; the band may reach beyond.
    best, worst = np.fmin.reduce(mean), np.fmax.reduce(mean)
    span = worst - best if worst > best else np.nan
    first, out_of_reach = _first_worse(losses, at, seed)
    return {
        "strengths": strengths,
        "mean": mean,
        "band": (low, high),
        "scaled": [(each - best) / span for each in (mean, low, high)],
        "rho": rho,
        "rho_ci": rho_ci,
        "rho_seeds": float(mean_defined(correlation(x, curves, "spearman"), 0)),
        "rho_documents": float(mean_defined(own, 0)),
        "monotone": 1 - float(mean_defined(falls, 0)),
        "documents": int(has_own.sum()),
        "fewest": int(behind.min()),
        "most": int(behind.max()),
        "first": None if first is None else f"{strengths[first]:g}",
        "out_of_reach": out_of_reach,
        "rises": rho_ci is not None and rho_ci[0] > 0,
        "falls": rho_ci is not None and rho_ci[1] < 0,
    }


def band(losses: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean over seeds of losses (seeds, k), and the range of the middle 95 %, which holds it.

    Of those that are not NaN; NaN where there is none.
    """
    has = (~np.isnan(losses)).any(0)
    bounds = np.full((2, losses.shape[1]), np.nan)
    tail = (1 - CONFIDENCE) / 2
    bounds[:, has] = np.nanquantile(losses[:, has], [tail, 1 - tail], axis=0)
    mean = mean_defined(losses, 0)
    return mean, np.minimum(bounds[0], mean), np.maximum(bounds[1], mean)


def _first_worse(losses: SystemLosses, at: NDArray[np.intp], seed: int) -> tuple[int | None, bool]:
    """Return the number of the first strength that is worse, and whether none can be found.

    It is the smallest at which the documents' mean losses over seeds exceed the unperturbed ones in
    the paired permutation test, p corrected for the number of strengths (Holm) and at most `ALPHA`.
    """
    values = mean_defined(losses.contributions[at], 0)  # (k, documents)
    pairs = [(j, 0) for j in range(1, len(values))]
    tests = paired_tests(values, np.ones_like(values), pairs, rng_for(seed, "first worse"))
    tested = [(j, test) for (j, _), test in zip(pairs, tests, strict=True) if test.p is not None]
    if not tested:
        return None, True
    corrected = holm([test.p or 0.0 for _, test in tested])
    out_of_reach = len(tested) * min(test.smallest_p for _, test in tested) > ALPHA
    for (j, test), p in zip(tested, corrected, strict=True):
        if p <= ALPHA and (test.difference or 0.0) > 0:
            return j, False
    return None, out_of_reach


def _points(curve: Row) -> Iterator[tuple[Any, ...]]:
    """Yield a row per strength; a metric that is better when higher has its own value back."""
    numbers = [curve["mean"], *curve["band"]]
    if curve["direction"] == "higher":
        mean, low, high = numbers
        numbers = [-mean, -high, -low]
    for j, strength in enumerate(curve["strengths"]):
        place = (curve["corpus"], curve["kind"], strength, curve["metric"])
        yield (*place, *(each[j] for each in (*numbers, *curve["scaled"])))


def _answer(curves: Sequence[Row], source: str) -> Iterator[str]:
    """One sentence per kind of perturbation, then what keeps a reader from believing them."""
    n_corpora = len({curve["corpus"] for curve in curves})
    roles = {curve["role"] for curve in curves}
    role = "reference-free" if "reference-free" in roles else "gold-based"
    for (kind,), of_kind in group_by(curves, "kind").items():
        by_metric = group_by((curve for curve in of_kind if curve["role"] == role), "metric")
        by_outcome: dict[str, list[str]] = {}
        for (metric,), own in by_metric.items():
            by_outcome.setdefault(_outcome(own, n_corpora), []).append(metric)
        parts = [f"the loss of {listed(names)} {words}" for words, names in by_outcome.items()]
        if parts:
            yield f"{kind.capitalize()}: {'; '.join(parts)}{_steady(by_metric.values())}."
        golds = (curve for curve in of_kind if curve["role"] == "gold-based")
        for (corpus,), own in group_by(golds, "corpus").items():
            if not any(curve["rises"] for curve in own):
                yield (
                    f"In {corpus} {listed(c['metric'] for c in own)} cannot be said to get worse "
                    f"with {kind} either: there, strength does not measure damage (the notes count "
                    "the edits that were not possible)."
                )
    # Where the number of segments follows strength, curves prove less.
    sizes = [curve for curve in curves if curve["metric"] == SENTINEL]
    changing = dict.fromkeys(c["kind"] for c in sizes if np.ptp(c["mean"]) > 0)
    keeping = [c["kind"] for c in sizes if c["kind"] not in changing]
    if changing:
        verb = "changes" if len(changing) == 1 else "change"
        keep = f"; {listed(dict.fromkeys(keeping))} did not" if keeping else ""
        yield (
            f"{listed(changing).capitalize()} {verb} the number of segments of {source}, so a "
            f"metric that only counts them would follow as well{keep}."
        )


def _outcome(curves: Sequence[Row], n_corpora: int) -> str:
    """Say where one metric's loss goes with strength, where against it, and where neither."""
    rises = [curve["corpus"] for curve in curves if curve["rises"]]
    if len(rises) == n_corpora:
        where = " in every corpus" if n_corpora > 1 else ""
        return f"goes up with strength{where} (95 % interval of Spearman's correlation above 0)"
    falls = [curve["corpus"] for curve in curves if curve["falls"]]
    outcomes = {
        "goes up with strength": rises,
        "goes down": falls,
        "neither goes up nor down for certain": [
            curve["corpus"] for curve in curves if curve["corpus"] not in (*rises, *falls)
        ],
    }
    return listed(
        verb + (f" in {listed(found)}" if n_corpora > 1 else "")
        for verb, found in outcomes.items()
        if found
    )


def _steady(by_metric: Iterable[Sequence[Row]]) -> str:
    """Say whose mean curve never falls, among the losses that correlate with strength."""
    steady, rises = [], False
    for own in by_metric:
        means = [each["mean"][~np.isnan(each["mean"])] for each in own if each["rises"]]
        rises = rises or bool(means)
        if len(means) == len(own) and not any((np.diff(mean) < 0).any() for mean in means):
            steady.append(own[0]["metric"])
    if not rises:
        return ""
    return f"; only that of {listed(steady)} never falls" if steady else "; each falls somewhere"


def _notes(
    curves: Sequence[Row], edits: Sequence[Row], sizes: Mapping[str, int], unsegmented: str
) -> Iterator[str]:
    """Say what could not be done, what was left without a boundary, and what points rest on."""
    for (corpus, kind), steps in group_by(edits, "corpus", "kind").items():
        undone = sum(step["not_done"] for step in steps)
        asked = undone + sum(step["done"] for step in steps)
        last = steps[-1]
        parts = []
        if undone:
            parts.append(
                f"{undone:,} of {asked:,} edits were not possible in documents with too few "
                f"boundaries or too little room ({last['not_done']:,} of them at strength "
                f"{last['strength']:g})"
            )
        if last["unsegmented"]:
            mean = f"{last['unsegmented']:.1f}".removesuffix(".0")  # over seeds
            parts.append(
                f"at strength {last['strength']:g}, {mean} of "
                f"{counted(sizes[corpus], 'document')} had no boundary left and "
                f"got what the policy gives ({unsegmented})"
            )
        if parts:
            yield f"{corpus}, {kind}: {'; '.join(parts)}."
    shifting = (curve for curve in curves if curve["fewest"] < curve["most"])
    groups = group_by(shifting, "corpus", "kind", "fewest", "most")
    for (corpus, kind, fewest, most), own in groups.items():
        names = listed(curve["metric"] for curve in own)
        over = f"means over {fewest} to {most} documents, whichever have a score"
        yield f"{corpus}, {kind}: the points of {names} are {over}."
    hopeless = [c["corpus"] for c in curves if c["out_of_reach"] and c["role"] != "sentinel"]
    for corpus in dict.fromkeys(hopeless):
        alike = f"no strength can be told from none at alpha {ALPHA:g}"
        yield f"{corpus}: with so few documents {alike} for some or all metrics."
