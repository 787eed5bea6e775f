"""Do metrics prefer the segmentations that people prefer?

Ocampo Diaz and Ouyang (2024), Section 4 and Table 1: pairs of segmentations that differ most under
one metric, which judges vote on; then how far judges agree (Fleiss' κ), and how often a metric
agrees with most of them, beside one that calls all pairs equal.

The two of a pair have one error of the same kind each: two deletions remove different boundaries,
two insertions put a boundary into different places of one segment, two transpositions move one
boundary by a unit, one to either side. Errors at the first segment are left out, as it is mostly an
introduction.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Annotated, Any, Literal, Unpack, get_args

import numpy as np

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.encoders.embed import units_taking_part
from reffree.evaluate.blocks import golds_of
from reffree.evaluate.metric_set import MetricSet, choose_metrics
from reffree.evaluate.result import DocumentText, Result, Table, columns, estimate
from reffree.evaluate.score import check_gold
from reffree.evaluate.signature import Signature
from reffree.formats.source import Source
from reffree.metrics.gold.metric import count_pairs
from reffree.metrics.gold.pairs import Pairs
from reffree.statistics.coefficients import fleiss_kappa
from reffree.statistics.losses import as_loss
from reffree.statistics.resampling import DocumentBootstrap
from reffree.studies.keywords import StudyKeywords, TextsOption, check_metric, metric_option
from reffree.studies.study import (
    StudiedCorpus,
    StudySettings,
    check_study,
    study_result,
)
from reffree.util.arrays import Floats
from reffree.util.declare import Option, declared
from reffree.util.errors import (
    InputError,
    OptionError,
    Place,
    UnknownNameError,
    counted,
    listed,
    shorten,
)
from reffree.util.seeds import rng_for

Kind = Literal["deletion", "insertion", "transposition"]
KINDS = get_args(Kind)

Verdict = Literal["first", "second", "equal"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""What a judge or a metric says of a pair: which is the better one, if any."""

WORDS: dict[str, Verdict | None] = {
    **{verdict: verdict for verdict in VERDICTS},
    "1": "first",
    "2": "second",
    "=": "equal",
    "": None,
}
"""How a judge may write it."""

METRICS = ("boundary_similarity", "alignment", "windowdiff")
"""Those that the paper holds SED against."""

ALL_EQUAL = "all equal"
EQUAL = 1e-9
MADE = columns("text", kind="error", metric="metric")
METRIC_FIELDS = (*MADE, *columns("count", "pairs"), *columns("share", apart="told apart"))
BALLOT = columns("text", "pair", "corpus", "document", "kind", "first", "second")
NO_JUDGE = (*(each.name for each in BALLOT), "signature")
"""Columns that a ballot is written with."""

VERDICT_FIELDS = (
    *columns("text", "pair", "metric", "verdict"),
    *columns("number", "first", "second"),
)
MAJORITY = (*columns("text", "kind", "metric"), *columns("share", "share", "turned"))


@dataclass(frozen=True, slots=True)
class Contrast:
    """A pair of hypotheses of one document, in random order, and the loss of each by metric."""

    name: str
    corpus: str
    document: str
    kind: str
    reference: Segmentation
    first: Segmentation
    second: Segmentation
    losses: dict[str, tuple[float, float]]

    def verdict(self, metric: str) -> Verdict:
        """Which of the two a metric calls better; neither where it is undefined."""
        first, second = self.losses[metric]
        if first < second - EQUAL:
            return "first"
        return "second" if second < first - EQUAL else "equal"


@declared
def pairs(
    corpora: Mapping[str, Corpus],
    *,
    kinds: Annotated[
        Sequence[Kind], Option("Of error; may be repeated.", flag="--kind", metavar="KIND")
    ] = KINDS,
    by: Annotated[
        str,
        Option(
            "Gold-based: under which the two of a pair differ most.",
            metavar="METRIC",
            check=check_metric,
            names="gold",
        ),
    ] = "sed",
    metrics: Annotated[
        Sequence[str],
        metric_option("Gold-based ones to hold against it; may be repeated.", names="gold"),
    ] = METRICS,
    votes: Annotated[
        str | None, Option("CSV or TSV: the column pair, and one for each judge.", metavar="FILE")
    ] = None,
    first_segment: Annotated[
        bool, Option("Make errors at the first segment of a document too.")
    ] = False,
    texts: TextsOption = 3,
    **keywords: Unpack[StudyKeywords],
) -> Result:
    """Make pairs of segmentations to be judged by people, and hold their votes against metrics.

    For every gold and kind of error makes the pair of segmentations that one metric tells apart
    most. With -f csv it writes them as a ballot: show the pairs to judges (reffree report shows
    texts), add a column of votes for each (first, second or equal), and give the file as --votes
    for how far judges agree, and metrics with most of them. Each CORPUS needs gold; each
    annotator's is a reference. Nothing is encoded but for word vectors of sed.
    """
    settings = StudySettings(**keywords)
    check_study(corpora, None)
    judges, ballot = ((), []) if votes is None else read_ballot(votes)
    studied: list[StudiedCorpus] = []
    every: dict[str, Contrast] = {}
    notes: list[str] = []
    for name, whole in corpora.items():
        corpus = units_taking_part(whole, None, settings)[0].corpus
        chosen = _choose_metrics([by, *metrics], corpus, settings)
        n_golds = sum(len(document.references) for document in corpus)
        with settings.progress("Pairing", n_golds * len(kinds)) as advance:
            missing: Counter[str] = Counter()
            for kind, contrast in find_contrasts(
                name,
                corpus,
                kinds,
                chosen,
                first_segment=first_segment,
                seed=settings.seed,
                is_named=len(corpora) > 1,
            ):
                if contrast is None:
                    missing[kind] += 1
                else:
                    every[contrast.name] = contrast
                advance(1)
        for kind, n in missing.items():
            notes.append(f"{name}, {kind}: {counted(n, 'reference')} without a pair that differs.")
        signature = Signature.of(chosen, corpus, None, seed=settings.seed)
        studied.append(StudiedCorpus(name, corpus, None, signature))
    if not every:
        raise InputError(
            "no pair that the metric tells apart",
            expected="documents of three segments or more, of several units each",
            remedy="choose another kind of error, or --first-segment",
            place=next(iter(corpora.values()))[0].place,
        )
    names = list(chosen.names)
    voted = match_votes(judges, ballot, every)
    agreement = _agreement(every, judges, voted, names, settings.seed)
    return study_result(
        "pairs",
        studied,
        question="Do metrics prefer the segmentations that people prefer?",
        verdict=_describe(every, names, agreement),
        tables=_tables(every, names, agreement),
        signature={"by": names[0], "kinds": "+".join(kinds)}
        | ({} if votes is None else {"judges": f"{len(judges)}"}),
        settings={"by": names[0], "metrics": names},
        notes=notes,
        reading={
            "apart": "Pairs to whose two hypotheses the metric gives different values.",
            "difference": "Between the two of a pair, mean over pairs.",
            "kappa": "Fleiss' κ of the judges: agreement beyond chance on first, second or equal.",
            "majority": "Pairs on which one verdict has more votes than each other; only these "
            "count for metrics.",
            ALL_EQUAL: "A metric that tells none of the pairs apart.",
        },
        texts=[text for each in studied for text in _texts(each, every, texts)],
    )


def _choose_metrics(names: Sequence[str], corpus: Corpus, settings: StudySettings) -> MetricSet:
    """Read the metrics, the one that pairs differ by first, as the corpus settles them."""
    chosen = choose_metrics(names, corpus, seed=settings.seed, offline=settings.offline)
    for name in chosen.reference_free:
        raise OptionError(
            f"the metric {name!r}",
            expected="gold-based ones: the pairs are of one gold",
            remedy="choose sed, alignment, boundary_similarity or the like",
        )
    check_gold(corpus, chosen)
    return chosen.over(golds_of([corpus]))


def candidates(reference: Segmentation, kind: str, *, first_segment: bool) -> list[list[set[int]]]:
    """Boundaries of hypotheses with one error; any two of a list make a pair.

    >>> candidates(Segmentation((1, 2, 3)), "insertion", first_segment=False)
    [[{1, 2, 3}], [{1, 3, 4}, {1, 3, 5}]]
    """
    own = set(reference.boundaries)
    allowed = reference.boundaries if first_segment else reference.boundaries[1:]
    if kind == "deletion":
        return [[own - {boundary} for boundary in allowed]]
    if kind == "insertion":
        edges = [0, *reference.boundaries, reference.n_units]
        segments = list(pairwise(edges))[0 if first_segment else 1 :]
        return [[own | {place} for place in range(a + 1, b)] for a, b in segments]
    free = set(range(1, reference.n_units)) - own
    return [
        [own - {boundary} | {place} for place in (boundary - 1, boundary + 1)]
        for boundary in allowed
        if {boundary - 1, boundary + 1} <= free
    ]


def find_contrasts(
    name: str,
    corpus: Corpus,
    kinds: Sequence[str],
    metrics: MetricSet,
    *,
    first_segment: bool,
    seed: int,
    is_named: bool,
) -> Iterator[tuple[str, Contrast | None]]:
    """Yield the pair of every kind that is farthest apart by the first metric, for every gold.

    Of pairs as far apart, the one that the other metrics put nearest together. None where there is
    no pair, or none that the metric tells apart. ``is_named``: pairs are called by the corpus too.
    """
    for document in corpus:
        golds = document.golds or ({} if document.gold is None else {"": document.gold})
        for annotator, gold in golds.items():
            of = f"{document.id}@{annotator}" if annotator else document.id
            by_kind = {kind: candidates(gold, kind, first_segment=first_segment) for kind in kinds}
            hypotheses = [
                Segmentation.from_boundaries(sorted(each), gold.n_units)
                for groups in by_kind.values()
                for group in groups
                for each in group
            ]
            losses = {key: np.zeros(0) for key in metrics.gold_based}
            if hypotheses:
                made = Pairs.of(hypotheses, gold, document.units)
                for key, metric in metrics.gold_based.items():
                    losses[key] = as_loss(metric.value(count_pairs(metric, made)), metric.direction)
            start = 0
            for kind, groups in by_kind.items():
                sizes = [len(group) for group in groups]
                best = _farthest(start, sizes, losses, metrics.names[0])
                start += sum(sizes)
                if best is None:
                    yield kind, None
                    continue
                # Which comes first says nothing of which is better.
                i, j = best if rng_for(seed, "pairs", of, kind).random() < 0.5 else best[::-1]
                both = {key: (float(x[i]), float(x[j])) for key, x in losses.items()}
                title = ":".join([*([name] if is_named else []), of, kind])
                pair = (gold, hypotheses[i], hypotheses[j], both)
                yield kind, Contrast(title, name, document.id, kind, *pair)


def _farthest(
    start: int,
    sizes: Sequence[int],
    losses: Mapping[str, Floats],
    by: str,
) -> tuple[int, int] | None:
    """Numbers of the two hypotheses of one group that differ most; the first is ``start``."""
    best: tuple[tuple[float, float], tuple[int, int]] | None = None
    for size in sizes:
        for i, j in combinations(range(start, start + size), 2):
            apart = {key: abs(float(x[i] - x[j])) for key, x in losses.items()}
            others = sum(x for key, x in apart.items() if key != by and not np.isnan(x))
            merit = round(apart[by] / EQUAL) * EQUAL, -others  # rounding decides nothing
            if apart[by] > EQUAL and (best is None or merit > best[0]):
                best = merit, (i, j)
        start += size
    return None if best is None else best[1]


def read_ballot(path: str) -> tuple[tuple[str, ...], list[tuple[Place, dict[str, str]]]]:
    """Read votes from a CSV or TSV file: the column ``pair``, and one for each judge.

    Returns the judges, and a row for every pair with its place. Columns that a ballot is written
    with may stay.
    """
    text = [line for _, line in Source(path).lines()]
    table = list(csv.reader(text, delimiter="\t" if text and "\t" in text[0] else ","))
    header = [name.strip() for name in table[0]] if table else []
    judges = tuple(name for name in header if name not in NO_JUDGE)
    if "pair" not in header or not judges or len(set(header)) < len(header):
        raise InputError(
            f"the columns {listed(map(repr, header))}" if header else "no table",
            expected="a column 'pair', and a column for each judge, each name once",
            remedy="write the ballot with -f csv, and add a column of votes for each judge",
            place=Place(file=path),
        )
    rows = []
    for number, cells in enumerate(table[1:], 2):
        place = Place(file=path, line=number)
        if len(cells) != len(header) and any(cells):
            raise InputError(
                f"{len(cells)} cells",
                expected=f"{len(header)}, as in the header",
                remedy="fill the row up with commas, or quote cells that have some",
                place=place,
            )
        if any(cells):
            rows.append((place, dict(zip(header, map(str.strip, cells), strict=True))))
    return judges, rows


def match_votes(
    judges: Sequence[str],
    rows: Sequence[tuple[Place, Mapping[str, str]]],
    pairs: Mapping[str, Contrast],
) -> dict[str, tuple[Verdict, ...]]:
    """Return the votes on every pair, each row held against its pair.

    A vote is ``first``, ``second`` or ``equal`` (1, 2 and = for short), or nothing. Where the
    columns ``first`` and ``second`` stayed, they must be what the pair is now.
    """
    votes: dict[str, tuple[Verdict, ...]] = {}
    for place, row in rows:
        _check_pair(row, pairs, votes, place)
        given = [_read_vote(judge, row[judge], place) for judge in judges]
        votes[row["pair"]] = tuple(vote for vote in given if vote is not None)
    return votes


def _check_pair(
    row: Mapping[str, str], pairs: Mapping[str, Contrast], votes: Mapping[str, object], at: Place
) -> None:
    """Refuse votes on pairs that are not there, or not the same ones."""
    name = row["pair"]
    if name not in pairs:
        raise InputError(
            f"the pair {shorten(name)!r}",
            expected="a pair that the corpus has with these settings",
            remedy=str(UnknownNameError("pair", name, list(pairs)[:5])),
            place=at,
        )
    if name in votes:
        raise InputError(
            f"the pair {shorten(name)!r} a second time",
            expected="a row for each pair",
            remedy="put the votes of several judges into columns",
            place=at,
        )
    for side in ("first", "second"):
        masses = spell_masses(getattr(pairs[name], side))
        if row.get(side, masses) != masses:
            raise InputError(
                f"{side} of {name} as {shorten(row[side])!r}",
                expected=f"{shorten(masses)!r}, as with these settings",
                remedy="give the same corpus, metrics and seed that made the ballot",
                place=at,
            )


def _read_vote(judge: str, text: str, at: Place) -> Verdict | None:
    if text.casefold() not in WORDS:
        raise InputError(
            f"the vote {shorten(text)!r} of {shorten(judge)!r}",
            expected="first, second or equal, or nothing",
            remedy="write which of the two is better",
            place=at,
        )
    return WORDS[text.casefold()]


def spell_masses(segmentation: Segmentation) -> str:
    """Write masses into a cell.

    >>> spell_masses(Segmentation((3, 4)))
    '3 4'
    """
    return " ".join(map(str, segmentation.masses))


def majority_of(votes: Sequence[Verdict]) -> Verdict | None:
    """Return what most judges said; None where no verdict has more votes than the others.

    >>> majority_of(("first", "equal", "first"))
    'first'
    """
    ranked = Counter(votes).most_common(2)
    if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]


def _by_kind(every: Mapping[str, Contrast]) -> dict[str, list[Contrast]]:
    found: dict[str, list[Contrast]] = {}
    for contrast in every.values():
        found.setdefault(contrast.kind, []).append(contrast)
    return found


def _agreement(
    every: Mapping[str, Contrast],
    judges: Sequence[str],
    votes: Mapping[str, Sequence[Verdict]],
    names: Sequence[str],
    seed: int,
) -> list[dict[str, Any]]:
    """A row per kind: κ, and how often each metric says what most judges say."""
    rows = []
    for kind, contrasts in _by_kind(every).items():
        voted = [each for each in contrasts if each.name in votes]
        if not voted:
            continue
        counts = [[votes[each.name].count(verdict) for verdict in VERDICTS] for each in voted]
        decided = [(each, m) for each in voted if (m := majority_of(votes[each.name])) is not None]
        agrees = {name: [each.verdict(name) == m for each, m in decided] for name in names}
        agrees[ALL_EQUAL] = [m == "equal" for _, m in decided]
        bootstrap = DocumentBootstrap(max(1, len(decided)), np.random.default_rng(seed))
        row: dict[str, Any] = {
            "kind": kind,
            "pairs": len(voted),
            "judges": len(judges),
            "kappa": fleiss_kappa(np.array(counts, dtype=np.int64)),
            "majority": len(decided),
        }
        for name, found in agrees.items():
            share = float(np.mean(found)) if found else None
            row[name] = share
            row[f"{name}_ci"] = bootstrap.interval(share, np.array(found, dtype=float))
        rows.append(row)
    return rows


def _tables(
    every: Mapping[str, Contrast], names: Sequence[str], agreement: Sequence[Mapping[str, Any]]
) -> Iterator[Table]:
    if agreement:
        fields = (
            *columns("text", kind="error"),
            *columns("count", "pairs", "judges"),
            *columns("number", kappa="Fleiss κ"),
            *columns("count", "majority"),
            *(f for name in (*names, ALL_EQUAL) for f in estimate(name, name, "share")),
        )
        yield Table.of("agreement", "Agreement with most judges", fields, agreement)
    rows = []
    for kind, contrasts in _by_kind(every).items():
        for name in names:
            apart = [abs(a - b) for a, b in (each.losses[name] for each in contrasts)]
            defined = [x for x in apart if not np.isnan(x)]
            told = float(np.mean([each.verdict(name) != "equal" for each in contrasts]))
            rows.append((kind, name, len(contrasts), told, float(np.mean(defined or [np.nan]))))
    fields = (*METRIC_FIELDS, *columns("number", "difference"))
    yield Table.of("metrics", "What metrics tell apart in the pairs", fields, rows)
    cells = [
        (c.name, c.corpus, c.document, c.kind, spell_masses(c.first), spell_masses(c.second))
        for c in every.values()
    ]
    yield Table.of("ballot", "Pairs to be judged", BALLOT, cells, shown=False)
    if agreement:
        long = [(r["kind"], n, r[n], r[ALL_EQUAL]) for r in agreement for n in names]
        yield Table.of("majority", "Agreement, a row a metric", MAJORITY, long, shown=False)
    verdicts = [
        (c.name, name, c.verdict(name), *c.losses[name]) for c in every.values() for name in names
    ]
    yield Table.of("verdicts", "Losses of both, by metric", VERDICT_FIELDS, verdicts, shown=False)


def _texts(part: StudiedCorpus, every: Mapping[str, Contrast], n: int) -> Iterator[DocumentText]:
    """Yield the first documents with a pair: gold, and the two of every kind."""
    units = {document.id: document.units for document in part.corpus}
    systems: dict[str, dict[str, tuple[int, ...]]] = {}
    for each in every.values():
        if each.corpus == part.name:
            own = systems.setdefault(each.document, {"gold": each.reference.masses})
            own |= {
                f"{each.name}, first": each.first.masses,
                f"{each.name}, second": each.second.masses,
            }
    for id in list(systems)[:n]:
        yield DocumentText(part.name, id, tuple(units[id]), systems[id])


def _describe(
    every: Mapping[str, Contrast], names: Sequence[str], agreement: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """What judges and metrics agree on; without votes, which pairs there are to vote on."""
    for row in agreement:
        shares = [
            f"{name} {row[name]:.0%}" for name in (*names, ALL_EQUAL) if row[name] is not None
        ]
        kappa = "undefined" if row["kappa"] is None else f"{row['kappa']:.2f}"
        found = f"agreement with most judges: {listed(shares)}" if shares else "no majority"
        over = counted(row["pairs"], "pair")
        yield f"{row['kind'].capitalize()}: κ {kappa} over {over}; {found}."
    if not agreement:
        by_kind = Counter(contrast.kind for contrast in every.values())
        made = [counted(n, f"{kind} pair") for kind, n in by_kind.items()]
        yield (
            f"{listed(made)}: write them with -f csv, add a column of votes for each judge, and "
            "give the file as --votes."
        )
    for name in names[1:]:
        told = sum(contrast.verdict(name) != "equal" for contrast in every.values())
        if told:
            yield f"{name} tells {told / len(every):.0%} of the pairs apart."
