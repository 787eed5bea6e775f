"""Which system is better where annotators cut coarsely, and where they cut finely?

Topics nest, and a text hardly says how finely its annotators would cut. So expected errors are
followed along the number of segments that annotators are assumed to make (`AssumedSegments`), and
each curve is read with what is known of that number: what the metric itself assumes, how many
segments the system has, and how many gold has where there is gold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise, product
from typing import Annotated, Unpack

import numpy as np
from numpy.typing import NDArray

from reffree.data.corpus import GOLD, Corpus
from reffree.data.masses import mass_matrix
from reffree.encoders.embed import Vectors
from reffree.evaluate.metric_set import MetricSet, readings
from reffree.evaluate.result import Result, Table, columns, estimate
from reffree.evaluate.score import scores_of
from reffree.evaluate.scores import Scores, ScoreSettings, corpus_mean, opening_scores
from reffree.evaluate.signature import Signature
from reffree.evaluate.table import CorpusScore
from reffree.evaluate.verdict import describe
from reffree.metrics.free.cues import share_of_talk
from reffree.metrics.free.expected import EXPECTED, FEWEST_UNITS, Expected
from reffree.metrics.free.inputs import check_embeddings
from reffree.metrics.free.placement import Granularity, Placement, allowed_segments
from reffree.metrics.free.posterior import FEWEST, assumed_segments, most_segments
from reffree.metrics.gold.metric import GoldMetric
from reffree.metrics.registry import GOLD_METRICS, parse_metrics, spelling
from reffree.statistics.resampling import MIN_DOCUMENTS, DocumentBootstrap
from reffree.studies.keywords import StudyKeywords, metric_option
from reffree.studies.study import (
    CorpusPart,
    StudiedCorpus,
    StudySettings,
    corpus_parts,
    study_result,
)
from reffree.util.arrays import Floats
from reffree.util.bounds import check_number
from reffree.util.declare import Option, declared
from reffree.util.errors import OptionError, counted, listed, mistake
from reffree.util.grid import Row

METRICS = ("expected_pk",)

POINTS = 12
"""Assumed numbers of segments at which all systems are compared."""

LOW, HIGH_AT_LEAST, UNITS_AT_MOST = 2.0, 4.0, 3.0
"""The numbers go from 2 segments a document to one in three units, 4 in short documents."""

HALVINGS = 60

SYSTEMS = (
    *columns("text", "corpus", "metric", "system"),
    *columns("count", "segments"),
    *estimate("placement", "placement"),
    *columns("number", "granularity"),
    *estimate("at_own", "at as many"),
    *columns("count", best_at="best at"),
    *estimate("overall", "as reffree score"),
    *estimate("real", "against gold"),
)
ERRORS = (
    *columns("text", "corpus", "metric"),
    *columns("count", segments="assumed"),
    *columns("text", "best"),
)
CROSSINGS = (
    *columns("text", "corpus", "metric", below="better below", above="better above"),
    *columns("count", at="crossing at", clear_to="clear up to", clear_from="clear from"),
)
CURVES = (
    *columns("text", "corpus", "metric", "system", "point"),
    *columns("count", "segments"),
    *columns("number", "value", "low", "high", real="against gold"),
)
MARKS = (
    *columns("text", "corpus", "metric", "point"),
    *columns("count", low="from", segments="segments", high="to"),
)
READING = {
    "assumed": "Segments a document that annotators are assumed to make, as a mean over "
    "documents; longer documents are assumed to have more.",
    "segments": "Segments a document that the system has.",
    "placement": "Where boundaries are: 0 is chance, 1 the best of as many.",
    "granularity": "How many segments there are, by what the text suggests.",
    "at as many": "The error if annotators made as many segments as the system does.",
    "best at": "The assumed number of segments at which the system's error is best.",
    "as reffree score": "The metric itself: an average over the numbers that it assumes.",
    "against gold": "The metric against gold instead of the posterior.",
    "crossing at": "Where the mean over documents of the two systems' difference is zero.",
    "clear up to": "The largest number below the crossing at which the 95 % interval of the "
    "paired difference over documents leaves zero out; clear from: the smallest one above it.",
}


@declared
def granularity(
    corpora: Mapping[str, Corpus],
    *,
    metrics: Annotated[
        Sequence[str],
        metric_option(
            "expected_pk, expected_windowdiff, expected_boundary_similarity or expected_w_f1; may "
            "be repeated.",
            names="expected",
        ),
    ] = METRICS,
    length: Annotated[
        float | None,
        Option(
            "Units that a segment is expected to have, where that is known and a metric does not "
            "say.",
            metavar="UNITS",
        ),
    ] = None,
    evidence: Annotated[
        str,
        Option(
            "What posteriors rest on, where a metric does not say: embedding, words, cues, "
            "scorer:FOLDER or all at hand.",
            metavar="SOURCE",
        ),
    ] = "all",
    embeddings: Mapping[str, Vectors] | None = None,
    **keywords: Unpack[StudyKeywords],
) -> Result:
    """Follow expected errors along the assumed number of segments; say where curves cross.

    Follows every system's expected error along the number of segments that annotators are assumed
    to make, and says where another system becomes the best. Beside the curves: how many segments
    each system has, how many the metric itself assumes, and where there is gold, how many gold has
    and the metric against it. No gold is needed. Each CORPUS is a corpus of its own. With -f csv
    the curves are written.
    """
    settings = StudySettings(**keywords)
    chosen = _parse_metrics(metrics, length, evidence, settings.seed)
    parts = corpus_parts(corpora, embeddings, settings)
    for part in parts:
        place = part.corpus[0].place
        if not part.corpus.hypotheses:
            expected = "a segmentation to score in every document"
            remedy = "make some with reffree segment, or add --system NAME=FILE"
            raise mistake(place, "no systems", expected, remedy)
        if all(len(document.units) < FEWEST_UNITS for document in part.corpus):
            short = f"no document of {FEWEST_UNITS} units or more"
            expected = "at least one: in a shorter one no window of Pk fits"
            raise mistake(place, short, expected, "check how the text is split into units")
        part.check(chosen.values(), (), settings)
    studied: list[StudiedCorpus] = []
    curves: list[GranularityCurves] = []
    for part in parts:
        corpus, found = _follow(part, chosen, settings)
        studied.append(corpus)
        curves += found
    return study_result(
        "granularity",
        studied,
        question="Which system is better where annotators cut coarsely, and where they cut finely?",
        verdict=answer(curves),
        tables=_tables(curves),
        signature={"assumed": f"{POINTS}(log-spaced)"},
        settings={"metrics": list(chosen), "points": POINTS},
        notes=dict.fromkeys(note for each in curves for note in _notes(each)),
        reading=READING
        | dict.fromkeys(chosen, "Expected over the segmentations that the text makes likely."),
    )


def _parse_metrics(
    names: Sequence[str], length: float | None, evidence: str, seed: int
) -> dict[str, Expected]:
    """Every metric once, with the length and the evidence that go for all."""
    if length is not None:
        check_number("length", length, 1, remedy="leave it out where it is not known")
        length = float(length)
    metrics: dict[str, Expected] = {}
    for metric in parse_metrics(names, seed):
        found = f"the metric {spelling(metric)!r}"
        if not isinstance(metric, Expected):
            remedy = "only expected errors can be followed along the number of segments"
            expected = " or ".join(each.name for each in EXPECTED)
            raise OptionError(found, expected=expected, remedy=remedy)
        if metric.pool_d != "mean":
            remedy = "leave it out: curves are means over documents"
            raise OptionError(found, expected="pool_d=mean", remedy=remedy)
        filled = replace(
            metric,
            length=length if metric.length is None else metric.length,
            evidence=evidence if metric.evidence == "all" else metric.evidence,
        )
        metrics[spelling(filled)] = filled
    if not metrics:
        remedy = f"leave it out for {METRICS[0]}"
        raise OptionError("no metric", expected="at least one", remedy=remedy)
    return metrics


def _follow(
    part: CorpusPart, metrics: Mapping[str, Expected], settings: StudySettings
) -> tuple[StudiedCorpus, list[GranularityCurves]]:
    """Make every document's posteriors, and score all systems at every assumed number."""
    corpus, embedded = part.corpus, part.encode(settings)
    for x, document in zip(embedded.vectors, corpus, strict=True):
        check_embeddings(x, document.id)
    # The metrics themselves, whose expectations these are, where any document has gold.
    against: dict[str, GoldMetric] = {}
    gold = None
    if any(document.references for document in corpus):
        against = {n: GOLD_METRICS[n]() for n in map(gold_name, metrics.values())}
        gold = scores_of(corpus, MetricSet(tuple(against), {}, against), ScoreSettings())
    # The same resamples as of reffree score, so that intervals agree.
    bootstrap = DocumentBootstrap(len(corpus), np.random.default_rng(settings.seed))
    systems = corpus.hypotheses.values()
    masses = [mass_matrix([each[d] for each in systems], None) for d in range(len(corpus))]
    curves = []
    with settings.progress("Scoring", len(corpus) * len(metrics)) as advance:
        for metric in metrics.values():
            assumed = AssumedSegments.of(corpus, metric.length)
            shape = (len(corpus.hypotheses), len(corpus))
            values = np.full((len(assumed.numbers), *shape), np.nan)
            overall, span = np.full(shape, np.nan), np.full((3, len(corpus)), np.nan)
            placed, room, factors = np.full((3, *shape), np.nan)
            allowed = np.full((len(corpus), 2), np.nan)
            own = Placement(evidence=metric.evidence, without=metric.without, seed=settings.seed)
            read = readings(corpus, [metric], embedded.vectors, embedded.spec, settings.device)
            for d in range(len(corpus)):
                if assumed.is_defined[d]:
                    posterior = metric.posterior(embedded.vectors[d], read[d])
                    overall[:, d] = metric.scores(posterior, masses[d])
                    placed[:, d], room[:, d] = own.weighted_scores(posterior, masses[d])
                    factors[:, d] = Granularity().scores(posterior, masses[d])
                    allowed[d] = np.array(allowed_segments(posterior)) / posterior.segments
                    segments = [node.segments for node in posterior.nodes]
                    span[:, d] = min(segments), posterior.segments, max(segments)
                    for i, number in enumerate(assumed.of_documents[:, d]):
                        values[i, :, d] = metric.scores(posterior.at(number), masses[d])
                advance(1)
            by_system = {
                name: opening_scores(placed[s], room[s], factors[s], allowed, bootstrap)
                for s, name in enumerate(corpus.hypotheses)
            }
            found = (metric, corpus, assumed, values, overall, span, gold, bootstrap, by_system)
            curves.append(GranularityCurves(part.name, *found))
    every = MetricSet((*metrics, *against), dict(metrics), against)
    signature = Signature.of(every, corpus, embedded, seed=settings.seed)
    return StudiedCorpus(part.name, corpus, embedded, signature), curves


def gold_name(metric: Expected) -> str:
    """Name of the gold-based metric whose expectation a metric is."""
    return metric.name.removeprefix("expected_")


@dataclass(frozen=True, slots=True)
class AssumedSegments:
    r"""Numbers of segments that annotators are assumed to make.

    A number is a mean over the documents of at least three units. Documents have their parts of it
    in proportion to the numbers :math:`p_d` that the metric would assume for them
    (`assumed_segments`: more for more units):

    .. math:: K_d = \min(\max(c \, p_d, 1.02), m_d - 0.5), \quad \overline{K_d} = number,

    with one factor :math:`c` for all, and :math:`m_d` the steps of a document, mostly its units.
    First come `POINTS` numbers, evenly spaced in the logarithm, from 2 to a third of the units;
    then the number of segments that each system has; then gold's, where there is gold. One that no
    :math:`c` gives is taken to be the nearest that one does.
    """

    numbers: Floats  # (x,) segments per document
    of_documents: Floats  # (x, documents) NaN where too short
    is_defined: NDArray[np.bool_]  # (documents,)
    gold: float | None  # segments per document that has gold

    @classmethod
    def of(cls, corpus: Corpus, length: float | None) -> AssumedSegments:
        """Lay out the numbers for a corpus with at least one document that is long enough."""
        units = np.array([len(document.units) for document in corpus], dtype=np.float64)
        is_defined = units >= FEWEST_UNITS
        most = np.array([most_segments(int(n)) for n in units])[is_defined]
        assumed = (assumed_segments(len(d.units), length, share_of_talk(d.units)) for d in corpus)
        share = np.array([number for number, _ in assumed])[is_defined]
        highest = max(
            float(np.minimum(units[is_defined] / UNITS_AT_MOST, most).mean()),
            min(HIGH_AT_LEAST, float(most.mean())),
        )
        systems = corpus.hypotheses.values()
        own = [np.mean(np.array([len(each) for each in made])[is_defined]) for made in systems]
        long = [document for document in corpus if len(document.units) >= FEWEST_UNITS]
        golds = [np.mean([len(g) for g in d.references]) for d in long if d.references]
        gold = float(np.mean(golds)) if golds else None
        grid = np.geomspace(min(LOW, highest / 2), highest, POINTS)
        numbers = np.array([*grid, *own, *([] if gold is None else [gold])])
        of_documents = np.full((len(numbers), len(units)), np.nan)
        of_documents[:, is_defined] = [parts_of(number, share, most) for number in numbers]
        return cls(numbers, of_documents, is_defined, gold)


def parts_of(number: float, share: Floats, most: Floats) -> Floats:
    """Numbers of segments of documents: in proportion to ``share``, within bounds, of that mean.

    >>> parts_of(3.0, np.array([1.0, 2.0]), np.array([50.0, 50.0])).round(6).tolist()
    [2.0, 4.0]
    >>> parts_of(3.0, np.array([1.0, 2.0]), np.array([50.0, 3.5])).round(6).tolist()
    [2.5, 3.5]
    """
    low, high = np.log(FEWEST / share.max()), np.log((most / share).max())
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_below = np.clip(np.exp(middle) * share, FEWEST, most).mean() < number
        low, high = (middle, high) if is_below else (low, middle)
    parts: Floats = np.clip(np.exp(high) * share, FEWEST, most)
    return parts


@dataclass
class GranularityCurves:
    """One metric of all systems of a corpus, over assumed numbers of segments; NaN where short."""

    corpus_name: str
    metric: Expected
    corpus: Corpus
    assumed: AssumedSegments
    values: Floats  # (x, systems, documents)
    overall: Floats  # (systems, documents) of the metric as it is
    span: Floats  # (3, documents) fewest, mean and most segments that the metric assumes
    against_gold: Scores | None  # by the metrics whose expectations these are
    bootstrap: DocumentBootstrap
    opening: dict[str, dict[str, CorpusScore]]  # by system: placement and granularity

    def __post_init__(self) -> None:
        """Take means over documents, and turn them so that lower is better: (x, systems)."""
        self.place: Row = {"corpus": self.corpus_name, "metric": spelling(self.metric)}
        self.systems = list(self.corpus.hypotheses)  # gold first where every document has it
        self.rivals = [s for s, name in enumerate(self.systems) if name != GOLD]
        self.grid = self.assumed.numbers[:POINTS]
        self.means: Floats = np.nanmean(self.values, axis=2)
        self.slope = self.metric.orientation.slope
        self.losses = self.means * self.slope
        self.mean_span = [float(np.nanmean(row)) for row in self.span]
        self.extreme = "lowest" if self.metric.orientation.direction == "lower" else "highest"
        self.best_overall = self._best(self.slope * np.nanmean(self.overall, axis=1))

    def _best(self, losses: Floats) -> int | None:
        return min(self.rivals, key=lambda s: float(losses[s]), default=None)

    def best(self, at: int) -> int | None:
        """System with the lowest loss at a number of segments; None without systems but gold."""
        return self._best(self.losses[at])

    def real(self, system: int) -> CorpusScore | None:
        """Score of a system against gold, where there is gold."""
        if self.against_gold is None:
            return None
        return self.against_gold.corpus_score(gold_name(self.metric), system, self.bootstrap)

    def interval(self, at: int, system: int) -> tuple[float, float] | None:
        """95 % over documents of a system at a number of segments."""
        return self.bootstrap.interval(float(self.means[at, system]), self.values[at, system])

    def is_clear(self, at: int, better: int, worse: int) -> bool:
        """Whether the interval of the paired difference over documents says that one is better."""
        difference = self.slope * (self.values[at, better] - self.values[at, worse])
        interval = self.bootstrap.interval(float(np.nanmean(difference)), difference)
        return interval is not None and interval[1] < 0

    @cached_property
    def stretches(self) -> list[tuple[int, int, int]]:
        """Stretches of the grid by the system that is best there: system, first and last.

        One between two others that is nowhere clearly better than either of them is left out.
        """
        winners = [(g, best) for g in range(POINTS) if (best := self.best(g)) is not None]
        found: list[tuple[int, int, int]] = []
        kept = _join([(system, g, g) for g, system in winners])
        while len(kept) != len(found):
            found, clear = kept, []
            for i, (system, first, last) in enumerate(found):
                beside = [found[j][0] for j in (i - 1, i + 1) if 0 < i < len(found) - 1]
                grid = product(beside, range(first, last + 1))
                if not beside or any(self.is_clear(g, system, other) for other, g in grid):
                    clear.append((system, first, last))
            kept = _join(clear)
        return found

    @cached_property
    def crossings(self) -> list[Row]:
        """Where the best system changes, from few segments to many.

        One system is the better ``below``, another ``above``. ``clear_to`` and ``clear_from`` are
        the numbers up to which, and from which on, the interval of the paired difference leaves
        zero out, if there are any; ``is_adjacent`` says that no number of the grid lies between
        the two. ``start`` and ``end`` are those of the stretches on which they are the best.
        """
        found = []
        for (a, start, a_last), (b, b_first, end) in pairwise(self.stretches):
            clear_a = [g for g in range(start, a_last + 1) if self.is_clear(g, a, b)]
            clear_b = [g for g in range(b_first, end + 1) if self.is_clear(g, b, a)]
            between = slice(a_last, b_first + 1)
            gaps = self.losses[between, a] - self.losses[between, b]
            logs = np.log(self.grid[between])
            after = int(np.flatnonzero(gaps > 0)[0]) if (gaps > 0).any() else len(gaps) - 1
            rise = gaps[after] - gaps[after - 1]
            part = -gaps[after - 1] / rise if rise > 0 else 0.5
            row: Row = {"below": self.systems[a], "above": self.systems[b]}
            row["at"] = float(np.exp(logs[after - 1] + part * (logs[after] - logs[after - 1])))
            row |= {"start": float(self.grid[start]), "end": float(self.grid[end])}
            row["clear_to"] = float(self.grid[clear_a[-1]]) if clear_a else None
            row["clear_from"] = float(self.grid[clear_b[0]]) if clear_b else None
            row["is_adjacent"] = bool(clear_a and clear_b) and clear_b[0] - clear_a[-1] == 1
            found.append(row)
        return found


def _join(stretches: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Make one of neighbours that are of one system."""
    groups = [list(group) for _, group in groupby(stretches, key=lambda each: each[0])]
    return [(group[0][0], group[0][1], group[-1][2]) for group in groups]


def _tables(curves: Sequence[GranularityCurves]) -> Iterator[Table]:
    """Systems, errors by assumed number, crossings where there are any, and what charts draw."""
    systems, errors, points, marks = [], [], [], []
    for each in curves:
        for s, name in enumerate(each.systems):
            row, real = _system_row(each, s), each.real(s)
            systems.append(row)
            for at in (*range(POINTS), POINTS + s):  # of the grid, and its own number
                low, high = each.interval(at, s) or (None, None)
                row = {**each.place, "system": name, "point": "grid" if at < POINTS else "own"}
                row |= {"segments": each.assumed.numbers[at], "value": each.means[at, s]}
                real_value = None if real is None else real.value
                points.append(row | {"low": low, "high": high, "real": real_value})
        for g, segments in enumerate(each.grid):
            best = each.best(g)
            row = {"segments": segments, "best": None if best is None else each.systems[best]}
            values = zip(each.systems, each.means[g], strict=True)
            errors.append(each.place | row | {f"error of {name}": value for name, value in values})
        span = dict(zip(("low", "segments", "high"), each.mean_span, strict=True))
        marks.append({**each.place, "point": "assumed", **span})
        if each.assumed.gold is not None:
            marks.append({**each.place, "point": "gold", "segments": each.assumed.gold})
    yield Table.of("systems", "Systems: segments a document, and errors", SYSTEMS, systems)
    labels = {f"error of {name}": name for each in curves for name in each.systems}
    title = "Errors by the segments a document that annotators are assumed to make"
    yield Table.of("errors", title, (*ERRORS, *columns("number", **labels)), errors)
    title = "Where another system becomes the best"
    rows = [each.place | crossing for each in curves for crossing in each.crossings]
    yield Table.of("crossings", title, CROSSINGS, rows, shown=bool(rows))
    title = "Errors at every assumed number of segments"
    yield Table.of("curves", title, CURVES, points, shown=False)
    title = "Numbers of segments that the metric assumes and that gold has"
    yield Table.of("marks", title, MARKS, marks, shown=False)


def _system_row(curves: GranularityCurves, s: int) -> Row:
    own, real, opening = POINTS + s, curves.real(s), curves.opening[curves.systems[s]]
    overall = corpus_mean(curves.overall[s], np.ones(len(curves.corpus)))
    row = {
        **curves.place,
        "system": curves.systems[s],
        "segments": curves.assumed.numbers[own],
        "placement": opening["placement"].value,
        "placement_ci": opening["placement"].ci,
        "granularity": opening["granularity"].value if "granularity" in opening else None,
        "at_own": curves.means[own, s],
        "at_own_ci": curves.interval(own, s),
        "best_at": curves.grid[int(curves.losses[:POINTS, s].argmin())],
        "overall": overall,
        "overall_ci": curves.bootstrap.interval(overall, curves.overall[s]),
    }
    return row if real is None else {**row, "real": real.value, "real_ci": real.ci}


def answer(curves: Sequence[GranularityCurves]) -> Iterator[str]:
    """Say which system is the best at which number of segments, and what is known of that."""
    names = ("corpus", "metric")
    several = [name for name in names if len({each.place[name] for each in curves}) > 1]
    for each in curves:
        where = f"{', '.join(each.place[name] for name in several)}: " if several else ""
        sentences = [_describe_crossing(crossing) for crossing in each.crossings]
        if each.stretches and not sentences:
            sentences.append(_describe_best(each))
        best = each.best_overall
        opening = [] if best is None else describe(each.systems[best], each.opening)
        for sentence in (*opening, *sentences, *_on_numbers(each)):
            yield f"{where}{sentence}"


def _describe_crossing(crossing: Row) -> str:
    """Say which system is better on which side, as far as that is clear."""
    a, b = crossing["below"], crossing["above"]
    at, start, end, clear_to, clear_from = (
        None if crossing[name] is None else _spell(crossing[name])
        for name in ("at", "start", "end", "clear_to", "clear_from")
    )
    apart = f"{a} and {b} cannot be told apart"
    if clear_to is None and clear_from is None:
        span = f"from {start} to {end} segments a document"
        return f"{apart} {span}, though their curves cross at {at}."
    if clear_from is None:
        beyond = "" if clear_to == end else f"; from there to {end} they cannot be told apart"
        return f"{a} is better than {b} up to {clear_to} segments a document{beyond}."
    if clear_to is None:
        return f"{apart} up to {clear_from} segments a document; {b} is better above."
    between = f"; between {clear_to} and {clear_from} they cannot be told apart"
    between = "" if crossing["is_adjacent"] else between
    return f"{a} is better up to {at} segments a document, {b} above{between}."


def _describe_best(curves: GranularityCurves) -> str:
    """Name the system that is best on the whole grid, or is clearly beaten nowhere on it."""
    best = curves.stretches[0][0]
    name, others = curves.systems[best], [s for s in curves.rivals if s != best]
    numbers = f"from {_spell(curves.grid[0])} to {_spell(curves.grid[-1])} segments a document"
    if not others:
        number = _spell(curves.grid[int(curves.losses[:POINTS, best].argmin())])
        best_at = f"its {curves.place['metric']} is {curves.extreme} at {number}"
        return f"{name} is the only system; of numbers {numbers} {best_at}."
    unclear = [
        curves.systems[s]
        for s in others
        if not all(curves.is_clear(g, best, s) for g in range(POINTS))
    ]
    if not unclear:
        return f"{name} is better than all others {numbers}."
    alike = f"{listed(unclear)} cannot be told from it everywhere"
    return f"No system is clearly better than {name} {numbers}; {alike}."


def _on_numbers(curves: GranularityCurves) -> Iterator[str]:
    """Say what the metric assumes, and what is known by gold."""
    low, middle, high = map(_spell, curves.mean_span)
    over = ""
    if (best := curves.best_overall) is not None:
        mean = float(np.nanmean(curves.overall[best]))
        over = f"; over these {curves.systems[best]} is {curves.extreme} ({mean:.3f})"
    assumed = f"{low} to {high} segments a document, {middle} in the mean"
    yield f"{curves.place['metric']} itself assumes {assumed}{over}."
    if curves.assumed.gold is None or curves.against_gold is None:
        return
    sentence = f"Gold has {_spell(curves.assumed.gold)} segments a document"
    at = len(curves.assumed.numbers) - 1
    best = curves.best(at)
    found = {s: curves.real(s) for s in curves.rivals}
    known = {s: each.value for s, each in found.items() if each and each.value is not None}
    if best is not None and known:
        first = min(known, key=lambda s: (curves.slope * known[s], s))
        sentence += (
            f": there {curves.systems[best]} has the {curves.extreme} {curves.place['metric']} "
            f"({curves.means[at, best]:.3f}), and against gold {curves.systems[first]} the "
            f"{curves.extreme} {gold_name(curves.metric)} ({known[first]:.3f})"
        )
    yield f"{sentence}."


def _spell(number: float) -> str:
    """Write a number of segments with the digits that matter.

    >>> [_spell(each) for each in (1.02, 2.0, 6.28, 13.7)]
    ['1', '2', '6.3', '14']
    """
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}".removesuffix(".0")


def _notes(curves: GranularityCurves) -> Iterator[str]:
    name, is_defined = curves.corpus_name, curves.assumed.is_defined
    n_short = int((~is_defined).sum())
    if n_short:
        yield f"{name}: {counted(n_short, 'document')} of fewer than three units left out."
    if is_defined.sum() < MIN_DOCUMENTS:
        few = f"fewer than {MIN_DOCUMENTS} documents"
        yield f"{name}: {few}, so no intervals, and no difference is clear."
    n_gold = sum(bool(document.references) for document in curves.corpus)
    if 0 < n_gold < len(curves.corpus):
        of = counted(len(curves.corpus), "document")
        yield f"{name}: gold in {n_gold:,} of {of}; what is against gold is of these."
