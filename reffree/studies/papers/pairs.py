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
from itertools import combinations, pairwise
from typing import Annotated, Literal, Unpack, get_args

import numpy as np

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.evaluate.metric_set import MetricSet
from reffree.evaluate.result import DocumentText, Result, Table, columns, estimate
from reffree.evaluate.score import check_gold, golds_of
from reffree.evaluate.signature import Signature
from reffree.formats.source import Source
from reffree.metrics.gold.metric import count_pairs
from reffree.metrics.gold.pairs import Pairs
from reffree.statistics.coefficients import fleiss_kappa
from reffree.statistics.losses import as_loss
from reffree.statistics.resampling import DocumentBootstrap
from reffree.studies.keywords import TextsOption, WordKeywords, check_metric, metric_option
from reffree.studies.study import (
    CorpusPart,
    StudiedCorpus,
    StudySettings,
    corpus_parts,
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
    mistake,
    shorten,
)
from reffree.util.grid import Row, group_by
from reffree.util.seeds import rng_for

Kind = Literal["deletion", "insertion", "transposition"]
KINDS = get_args(Kind)

VERDICTS = ("first", "second", "equal")
"""What a judge or a metric says of a pair: which is the better one, if any."""

SHORT = {"1": "first", "2": "second", "=": "equal"}
"""How a judge may write it."""

METRICS = ("boundary_similarity", "alignment", "windowdiff")
"""Those that the paper holds SED against."""

ALL_EQUAL = "all equal"
EQUAL = 1e-9
SIDES = ("gold", "first", "second")
TOLD_APART = (
    *columns("text", kind="error", metric="metric"),
    *columns("count", "pairs"),
    *columns("share", apart="told apart"),
    *columns("number", "difference"),
)
BALLOT = columns("text", "pair", "corpus", "document", "kind", "first", "second")
NO_JUDGE = (*(each.name for each in BALLOT), "signature")
"""Columns that a ballot is written with."""

VERDICT_FIELDS = (
    *columns("text", "pair", "metric", "verdict"),
    *columns("number", "first", "second"),
)
MAJORITY = (*columns("text", "kind", "metric"), *columns("share", "share", "turned"))


@declared
def pairs(
    corpora: Mapping[str, Corpus],
    *,
    kinds: Annotated[
        Sequence[Kind], Option("Of error; may be repeated.", "--kind", "KIND")
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
    **keywords: Unpack[WordKeywords],
) -> Result:
    """Make pairs of segmentations to be judged by people, and hold their votes against metrics.

    For every gold and kind of error makes the pair of segmentations that one metric tells apart
    most. With -f csv it writes them as a ballot: show the pairs to judges (reffree report shows
    texts), add a column of votes for each (first, second or equal), and give the file as --votes
    for how far judges agree, and metrics with most of them. Each CORPUS needs gold; each
    annotator's is a reference. Nothing is encoded but for word vectors of sed.
    """
    settings = StudySettings(**keywords)
    parts = corpus_parts(corpora, None, settings)
    judges, ballot = ((), []) if votes is None else _read_ballot(votes)
    studied: list[StudiedCorpus] = []
    made: dict[str, Row] = {}
    notes: list[str] = []
    for part in parts:
        chosen = settings.choose_metrics([by, *metrics], part.corpus)
        for name in chosen.reference_free:
            expected = "gold-based ones: the pairs are of one gold"
            remedy = "choose sed, alignment, boundary_similarity or the like"
            raise OptionError(f"the metric {name!r}", expected=expected, remedy=remedy)
        check_gold(part.corpus, chosen)
        chosen = chosen.over(golds_of(part.corpus))
        n_golds = sum(len(document.references) for document in part.corpus)
        missing: Counter[str] = Counter()
        with settings.progress("Pairing", n_golds * len(kinds)) as advance:
            for kind, row in _find_pairs(part, kinds, chosen, settings.seed, first_segment):
                if row is None:
                    missing[kind] += 1
                else:
                    name = f"{part.name}:{row['pair']}" if len(parts) > 1 else row["pair"]
                    made[name] = {**row, "pair": name}
                advance(1)
        without = ((kind, counted(n, "reference")) for kind, n in missing.items())
        notes += [f"{part.name}, {k}: {n} without a pair that differs." for k, n in without]
        signature = Signature.of(chosen, part.corpus, None, seed=settings.seed)
        studied.append(StudiedCorpus(part.name, part.corpus, None, signature))
    if not made:
        raise InputError(
            "no pair that the metric tells apart",
            expected="documents of three segments or more, of several units each",
            remedy="choose another kind of error, or --first-segment",
            place=next(iter(corpora.values()))[0].place,
        )
    rows, names = list(made.values()), list(chosen.names)
    voted = _match_votes(judges, ballot, made)
    agreement = _agreement(rows, judges, voted, names, settings.seed)
    return study_result(
        "pairs",
        studied,
        question="Do metrics prefer the segmentations that people prefer?",
        verdict=_describe(rows, names, agreement),
        tables=_tables(rows, names, agreement),
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
        texts=[text for each in studied for text in _texts(each, rows, texts)],
    )


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


def _find_pairs(
    part: CorpusPart, kinds: Sequence[str], metrics: MetricSet, seed: int, first_segment: bool
) -> Iterator[tuple[str, Row | None]]:
    """Yield, for every gold and kind, the pair that is farthest apart by the first metric.

    None where there is no pair, or none that the metric tells apart. A row has the pair's names,
    the masses of gold and of both, which are in random order, and by metric both losses.
    """
    for document in part.corpus:
        golds = document.golds or ({} if document.gold is None else {"": document.gold})
        for annotator, gold in golds.items():
            of = f"{document.id}@{annotator}" if annotator else document.id
            for kind in kinds:
                groups = candidates(gold, kind, first_segment=first_segment)
                hypotheses = [
                    Segmentation.from_boundaries(sorted(each), gold.n_units)
                    for group in groups
                    for each in group
                ]
                losses: dict[str, Floats] = {}
                if hypotheses:
                    made = Pairs.of(hypotheses, gold, document.units)
                    for key, metric in metrics.gold_based.items():
                        values = metric.value(count_pairs(metric, made))
                        losses[key] = as_loss(values, metric.direction)
                best = _farthest([len(group) for group in groups], losses, metrics.names[0])
                if best is None:
                    yield kind, None
                    continue
                # Which comes first says nothing of which is better.
                i, j = best if rng_for(seed, "pairs", of, kind).random() < 0.5 else best[::-1]
                row: Row = {"pair": f"{of}:{kind}", "corpus": part.name, "document": document.id}
                for side, cut in zip(SIDES, (gold, hypotheses[i], hypotheses[j]), strict=True):
                    row[side] = " ".join(map(str, cut.masses))
                both = {key: (float(x[i]), float(x[j])) for key, x in losses.items()}
                yield kind, {**row, "kind": kind, "losses": both}


def _farthest(
    sizes: Sequence[int], losses: Mapping[str, Floats], by: str
) -> tuple[int, int] | None:
    """Return the two hypotheses of one group that differ most; groups follow each other.

    Of pairs as far apart, the one that the other metrics put nearest together.
    """
    best: tuple[tuple[float, float], tuple[int, int]] | None = None
    start = 0
    for size in sizes:
        for i, j in combinations(range(start, start + size), 2):
            apart = {key: abs(float(x[i] - x[j])) for key, x in losses.items()}
            others = sum(x for key, x in apart.items() if key != by and not np.isnan(x))
            merit = round(apart[by] / EQUAL) * EQUAL, -others  # rounding decides nothing
            if apart[by] > EQUAL and (best is None or merit > best[0]):
                best = merit, (i, j)
        start += size
    return None if best is None else best[1]


def _verdict(row: Row, metric: str) -> str:
    """Say which of the two a metric calls better; neither where it is undefined."""
    first, second = row["losses"][metric]
    if first < second - EQUAL:
        return "first"
    return "second" if second < first - EQUAL else "equal"


def _read_ballot(path: str) -> tuple[tuple[str, ...], list[tuple[Place, dict[str, str]]]]:
    """Read votes: the judges, and a row for every pair with its place.

    Columns that a ballot is written with may stay.
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
            remedy = "fill the row up with commas, or quote cells that have some"
            raise mistake(place, f"{len(cells)} cells", f"{len(header)}, as in the header", remedy)
        if any(cells):
            rows.append((place, dict(zip(header, map(str.strip, cells), strict=True))))
    return judges, rows


def _match_votes(
    judges: Sequence[str], ballot: Sequence[tuple[Place, Row]], pairs: Mapping[str, Row]
) -> dict[str, list[str]]:
    """Return the votes on every pair; refuse other pairs, and words that are no vote.

    Where the columns ``first`` and ``second`` stayed, they must be what the pair is now.
    """
    votes: dict[str, list[str]] = {}
    for place, row in ballot:
        name = row["pair"]
        if name not in pairs:
            expected = "a pair that the corpus has with these settings"
            remedy = str(UnknownNameError("pair", name, list(pairs)[:5]))
            raise mistake(place, f"the pair {shorten(name)!r}", expected, remedy)
        if name in votes:
            expected, remedy = "a row for each pair", "put the votes of several judges into columns"
            raise mistake(place, f"the pair {shorten(name)!r} a second time", expected, remedy)
        for side in ("first", "second"):
            masses = pairs[name][side]
            if row.get(side, masses) != masses:
                found = f"{side} of {name} as {shorten(row[side])!r}"
                remedy = "give the same corpus, metrics and seed that made the ballot"
                raise mistake(place, found, f"{shorten(masses)!r}, as with these settings", remedy)
        given = [SHORT.get(vote, vote) for vote in (row[judge].casefold() for judge in judges)]
        for judge, vote in zip(judges, given, strict=True):
            if vote not in ("", *VERDICTS):
                found = f"the vote {shorten(row[judge])!r} of {shorten(judge)!r}"
                remedy = "write which of the two is better"
                raise mistake(place, found, "first, second or equal, or nothing", remedy)
        votes[name] = [vote for vote in given if vote]
    return votes


def majority_of(votes: Sequence[str]) -> str | None:
    """Return what most judges said; None where no verdict has more votes than the others.

    >>> majority_of(("first", "equal", "first"))
    'first'
    """
    ranked = Counter(votes).most_common(2)
    is_tied = len(ranked) == 2 and ranked[0][1] == ranked[1][1]
    return ranked[0][0] if ranked and not is_tied else None


def _agreement(
    pairs: Sequence[Row],
    judges: Sequence[str],
    votes: Mapping[str, Sequence[str]],
    names: Sequence[str],
    seed: int,
) -> list[Row]:
    """A row per kind: κ, and how often each metric says what most judges say."""
    rows = []
    for (kind,), own in group_by((r for r in pairs if r["pair"] in votes), "kind").items():
        counts = [[votes[row["pair"]].count(verdict) for verdict in VERDICTS] for row in own]
        most = [(row, majority_of(votes[row["pair"]])) for row in own]
        decided = [(row, verdict) for row, verdict in most if verdict is not None]
        agrees = {name: [_verdict(row, name) == most for row, most in decided] for name in names}
        agrees[ALL_EQUAL] = [most == "equal" for _, most in decided]
        bootstrap = DocumentBootstrap(max(1, len(decided)), np.random.default_rng(seed))
        row: Row = {"kind": kind, "pairs": len(own), "judges": len(judges)}
        row |= {"kappa": fleiss_kappa(np.array(counts, dtype=np.int64)), "majority": len(decided)}
        for name, found in agrees.items():
            share = float(np.mean(found)) if found else None
            interval = bootstrap.interval(share, np.array(found, dtype=float))
            row |= {name: share, f"{name}_ci": interval}
        rows.append(row)
    return rows


def _tables(
    pairs: Sequence[Row], names: Sequence[str], agreement: Sequence[Row]
) -> Iterator[Table]:
    """Yield agreement with judges, if there are any, what metrics tell apart, and the ballot."""
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
    for (kind,), own in group_by(pairs, "kind").items():
        for name in names:
            apart = [abs(a - b) for a, b in (row["losses"][name] for row in own)]
            defined = [x for x in apart if not np.isnan(x)]
            told = float(np.mean([_verdict(row, name) != "equal" for row in own]))
            rows.append((kind, name, len(own), told, float(np.mean(defined or [np.nan]))))
    yield Table.of("metrics", "What metrics tell apart in the pairs", TOLD_APART, rows)
    yield Table.of("ballot", "Pairs to be judged", BALLOT, pairs, shown=False)
    if agreement:
        long = [(r["kind"], n, r[n], r[ALL_EQUAL]) for r in agreement for n in names]
        yield Table.of("majority", "Agreement, a row a metric", MAJORITY, long, shown=False)
    verdicts = [
        (row["pair"], name, _verdict(row, name), *row["losses"][name])
        for row in pairs
        for name in names
    ]
    yield Table.of("verdicts", "Losses of both, by metric", VERDICT_FIELDS, verdicts, shown=False)


def _texts(part: StudiedCorpus, pairs: Sequence[Row], n: int) -> Iterator[DocumentText]:
    """Yield the first documents with a pair: gold, and the two of every kind."""
    units = {document.id: document.units for document in part.corpus}
    systems: dict[str, dict[str, tuple[int, ...]]] = {}
    for row in pairs:
        if row["corpus"] == part.name:
            gold, first, second = (tuple(map(int, row[side].split())) for side in SIDES)
            own = systems.setdefault(row["document"], {"gold": gold})
            own |= {f"{row['pair']}, first": first, f"{row['pair']}, second": second}
    for id in list(systems)[:n]:
        yield DocumentText(part.name, id, tuple(units[id]), systems[id])


def _describe(
    pairs: Sequence[Row], names: Sequence[str], agreement: Sequence[Row]
) -> Iterator[str]:
    """Say what judges and metrics agree on; without votes, which pairs there are to vote on."""
    for row in agreement:
        every = (*names, ALL_EQUAL)
        shares = [f"{name} {row[name]:.0%}" for name in every if row[name] is not None]
        kappa = "undefined" if row["kappa"] is None else f"{row['kappa']:.2f}"
        found = f"agreement with most judges: {listed(shares)}" if shares else "no majority"
        over = counted(row["pairs"], "pair")
        yield f"{row['kind'].capitalize()}: κ {kappa} over {over}; {found}."
    if not agreement:
        by_kind = group_by(pairs, "kind").items()
        made = [counted(len(own), f"{kind} pair") for (kind,), own in by_kind]
        how = "write them with -f csv, add a column of votes for each judge"
        yield f"{listed(made)}: {how}, and give the file as --votes."
    for name in names[1:]:
        told = sum(_verdict(row, name) != "equal" for row in pairs)
        if told:
            yield f"{name} tells {told / len(pairs):.0%} of the pairs apart."
