"""How often can a metric not tell a small error from a large one?

Every move of one boundary: Ocampo Diaz and Ouyang (2022), Section 5 (Figures 13 to 15), take every
reference of n units and hypotheses that move one of its boundaries, and count the references for
which a metric gives the same value to two that it should tell apart:

* ``cross-boundary``: a soft move, and one as far that crosses a boundary;
* ``constant cost``: a soft move, and a hard one as far;
* ``vanishing``: a soft move, and one of the same boundary farther.

A move that stays within the two segments at its boundary is soft if both keep a Jaccard index above
1/2 with what they were, hard if both fall below. Here the references are those, or the gold of
corpora; and references for which a metric even prefers the larger error are counted too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib.metadata import version
from itertools import combinations
from typing import Annotated, Unpack

import numpy as np

from reffree.data.corpus import Corpus
from reffree.evaluate.result import Field, Result, Table, columns
from reffree.evaluate.score import golds_of
from reffree.evaluate.signature import Signature
from reffree.metrics.gold.metric import GoldMetric, count_pairs
from reffree.metrics.gold.pairs import Pairs
from reffree.metrics.registry import parse_metric
from reffree.statistics.losses import as_loss
from reffree.studies.keywords import GoldKeywords, metric_option
from reffree.studies.study import StudiedCorpus, StudySettings, check_study
from reffree.util.arrays import Booleans, Integers
from reffree.util.bounds import check_whole
from reffree.util.declare import Option, declared
from reffree.util.errors import OptionError, counted, listed, mistake
from reffree.util.grid import Row, group_by
from reffree.util.naming import spelling_of

MEANINGS = {
    "cross-boundary": "A soft move of a boundary, and a move as far that crosses another boundary.",
    "constant cost": "A soft move, and a hard one as far: between shorter segments.",
    "vanishing": "A soft move, and one of the same boundary farther.",
}
KINDS = CROSSING, CONSTANT, VANISHING = tuple(MEANINGS)
METRICS = ("boundary_similarity", "windowdiff:padding=exact", "windowdiff", "alignment")
"""Those of the paper, whose WindowDiff is the one with exact padding; and it as it mostly is."""

EVERY = "all of "
"""Begins the name of a set of all references of a length."""

LONGEST = 20
"""Units of references that are all gone through, as in the paper: half a million."""

SAME = 1e-12
"""Values of documents of up to 20 units lie farther apart if they differ, and nearer if not."""

TITLE = "References for which a metric cannot tell a small error from a large one"
ERRORS = (
    *columns("text", "corpus", "metric"),
    *columns("count", "references"),
    *(
        Field(f"{kind}{reversed}", f"{kind}{reversed}", "share")
        for kind in KINDS
        for reversed in ("", " reversed")
    ),
)
BY_SEGMENTS = (
    *columns("text", "corpus"),
    *columns("number", "segments"),
    *columns("text", kind="error", metric="metric"),
    *columns("count", "references", "possible"),
    *columns("share", "share", "reversed"),
)


@declared
def moves(
    corpora: Mapping[str, Corpus] = {},
    *,
    units: Annotated[
        Sequence[int],
        Option(
            "Go through all references of so many units, such as 5-12 or 12,15; at most 20.",
            metavar="LENGTHS",
        ),
    ] = (),
    metrics: Annotated[
        Sequence[str],
        metric_option("Gold-based, as in reffree score; may be repeated.", names="gold"),
    ] = METRICS,
    **keywords: Unpack[GoldKeywords],
) -> Result:
    """Count references for which a metric cannot tell a small error from a large one.

    Moves every boundary of every reference, one at a time, and counts the references for which a
    metric ties a small move with one that crosses a boundary, with one between short segments, or
    with a farther one; or even prefers the larger. References are the gold of every CORPUS, that of
    several annotators too, and all that there are of the --units given; one of the two is needed.
    With padding=exact and without a size of its own, a window is half a mean segment, at least 1
    unit, as in the paper; elsewhere 2. With -f csv the figures by number of segments are written.
    """
    settings = StudySettings(**keywords)
    if not corpora and not units:
        expected = "references to move boundaries of"
        remedy = "name a corpus with gold, or lengths with --units 5-12"
        raise OptionError("neither corpora nor units", expected=expected, remedy=remedy)
    if corpora:
        check_study(corpora, None)
    lengths = list(dict.fromkeys(units))
    for n in lengths:
        check_whole("units", n, 3, most=LONGEST, remedy="write 5 to 16")
    chosen = _choose_metrics(metrics)
    found: list[Row] = []
    studied = []
    for name, corpus in corpora.items():
        alike = _alike_golds(corpus)
        settled = {each: metric.over(golds_of(corpus)) for each, metric in chosen.items()}
        with settings.progress("Moving", len(alike)) as advance:
            for (n, _), golds in alike.items():
                found += count_misjudged(name, n, np.array(golds), settled)
                advance(1)
        studied.append(StudiedCorpus(name, corpus, None, Signature({})))
    with settings.progress("Moving", sum(n - 2 for n in lengths)) as advance:
        for n in lengths:
            for m in range(2, n):
                inner = np.array(list(combinations(range(1, n), m - 1)))
                found += count_misjudged(f"{EVERY}{n} units", n, inner, chosen)
                advance(1)
    rows = list(_shares(found, "corpus"))
    wide: list[Row] = []
    for own in group_by(rows, "corpus", "metric").values():
        wide.append(own[0] | {row["kind"]: row["share"] for row in own})
        wide[-1] |= {f"{row['kind']} reversed": row["reversed"] for row in own}
    by_segments = sorted(_shares(found, "corpus", "segments"), key=lambda row: row["segments"])
    return Result(
        command="moves",
        question="How often can a metric not tell a small error from a large one?",
        verdict=tuple(_describe(rows)),
        signature=f"metrics:{'+'.join(chosen)}|window:half-mean-segment"
        f"|gold:{'+'.join(corpora) or 'none'}|units:{','.join(map(str, lengths)) or 'none'}"
        f"|reffree:{version('reffree')}",
        settings={"units": lengths, "metrics": list(chosen)},
        corpora=tuple(each.description for each in studied),
        tables=(
            Table.of("errors", TITLE, ERRORS, wide),
            Table.of("by_segments", f"{TITLE}, by segments", BY_SEGMENTS, by_segments, shown=False),
        ),
        notes=tuple(note for each in studied for note in each.notes),
        reading={
            "possible": "References that have a small and a large error of the kind at all.",
            "share": "References for which the metric gives the same value to a small and to a "
            "large error; of all that have a boundary, as in the paper.",
            "reversed": "References for which it prefers a large error to a small one; a farther "
            "move may go the other way, into a longer segment.",
            **MEANINGS,
        },
    )


def _choose_metrics(metrics: Sequence[str]) -> dict[str, GoldMetric]:
    """Read the names; refuse metrics that no two segmentations alone have."""
    chosen = {}
    for name in metrics:
        metric = parse_metric(name)
        is_of_text = "word_vectors" in metric.needs or getattr(metric, "unit", "units") != "units"
        if is_of_text or not isinstance(metric, GoldMetric):
            expected = "a gold-based one that reads no text"
            remedy = "choose boundary_similarity, windowdiff, alignment or the like"
            raise OptionError(f"the metric {name!r}", expected=expected, remedy=remedy)
        chosen[spelling_of(metric)] = metric
    if not chosen:
        raise OptionError("no metric", expected="at least one", remedy="leave metrics out for all")
    return chosen


def _alike_golds(corpus: Corpus) -> dict[tuple[int, int], list[Sequence[int]]]:
    """Return the boundaries of golds that have one, by their units and segments."""
    alike: dict[tuple[int, int], list[Sequence[int]]] = {}
    for document in corpus:
        for gold in document.references:
            if len(gold) > 1:
                alike.setdefault((gold.n_units, len(gold)), []).append(gold.boundaries)
    if not alike:
        expected = "gold to move boundaries of"
        remedy = 'add "gold" to the documents, or leave the corpus out and give --units 5-12'
        raise mistake(corpus[0].place, "no gold with a boundary", expected, remedy)
    return alike


def count_misjudged(
    corpus: str, n: int, inner: Integers, metrics: Mapping[str, GoldMetric]
) -> Iterator[Row]:
    """Count references with a tie and with a reversal, a row for every metric and kind of error.

    ``inner`` are their boundaries, (references, m - 1): all are of ``n`` units and m segments, at
    least 2. A row has how many references there are, and of how many a tie is ``possible``.
    """
    m = inner.shape[1] + 1
    pairs, errors = _single_moves(n, inner)
    # A vanishing error is judged among moves of one boundary, others among those of a reference.
    of_reference = {CROSSING: 1, CONSTANT: 1, VANISHING: m - 1}
    possible = {kind: np.zeros(len(inner), dtype=bool) for kind in KINDS}
    for kind, group, small, large in errors:
        both = np.intersect1d(group[small], group[large])
        possible[kind][both // of_reference[kind]] = True
    for name, metric in metrics.items():
        if getattr(metric, "padding", None) == "exact" and getattr(metric, "k", 0) is None:
            window = max(1, round(Fraction(n, 2 * m)))  # the paper's
            metric = replace(metric, k=window)  # type: ignore[call-arg]
        rank, is_defined = _ranks(metric, pairs)
        erring = {kind: np.zeros((2, len(inner)), dtype=bool) for kind in KINDS}
        for kind, group, small, large in errors:
            groups = _misjudged(group, rank, small & is_defined, large & is_defined)
            for which in range(2):
                erring[kind][which, groups[which] // of_reference[kind]] = True
        for kind, (tied, ahead) in erring.items():
            yield {
                **{"corpus": corpus, "segments": m, "metric": name, "kind": kind},
                **{"references": len(inner), "possible": int(possible[kind].sum())},
                **{"tied": int(tied.sum()), "ahead": int(ahead.sum())},
            }


def _single_moves(
    n: int, inner: Integers
) -> tuple[Pairs, list[tuple[str, Integers, Booleans, Booleans]]]:
    """Move every boundary of every reference to every place up to the next but one.

    Returns the hypotheses beside their references, and by kind, for every distance, which of them
    compare: a group for each, the small errors, and the large ones.
    """
    m = inner.shape[1] + 1
    # The document's ends twice, so that there is nothing to cross into beyond them.
    ends = np.zeros((len(inner), 2), dtype=np.int64)
    edges = np.concatenate([ends, inner, ends + n], axis=1)[:, :, None]
    before, start, old, stop, after = (edges[:, i : i + m - 1] for i in range(5))
    new = np.arange(1, n)
    stays = (start < new) & (new < stop) & (new != old)
    crosses = ((before < new) & (new < start)) | ((stop < new) & (new < after))
    reference, boundary, place = np.nonzero(stays | crosses)
    crosses = crosses[reference, boundary, place]
    start, old, stop = (each[reference, boundary, 0] for each in (start, old, stop))
    new = place + 1
    distance = np.abs(new - old)
    grown = np.where(new > old, old - start, stop - old)
    shrunk = np.where(new > old, stop - old, old - start)
    # Jaccard indices grown / (grown + distance) and (shrunk - distance) / shrunk.
    soft = ~crosses & (grown > distance) & (shrunk > 2 * distance)
    hard = ~crosses & (grown < distance) & (shrunk < 2 * distance)
    gaps = np.zeros((len(inner), n - 1), dtype=bool)
    np.put_along_axis(gaps, inner - 1, True, axis=1)
    moved, move = gaps[reference], np.arange(len(reference))
    moved[move, old - 1] = False
    moved[move, new - 1] = True
    of_boundary = reference * (m - 1) + boundary
    errors = []
    for x in np.unique(distance[soft]):
        as_far = distance == x
        small = soft & as_far
        errors += [
            (CROSSING, reference, small, crosses & as_far),
            (CONSTANT, reference, small, hard & as_far),
            (VANISHING, of_boundary, small, ~crosses & (distance > x)),
        ]
    return Pairs.of(moved, gaps[reference]), errors


def _ranks(metric: GoldMetric, pairs: Pairs) -> tuple[Integers, Booleans]:
    """Place of each pair's value among the distinct values, the worst first; which have one."""
    if not len(pairs):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
    metric = metric.over(lambda: [Pairs(pairs.reference, pairs.reference)])
    values = -as_loss(metric.value(count_pairs(metric, pairs)), metric.direction)
    order = np.argsort(values)
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.cumsum(np.diff(values[order], prepend=values[order[:1]]) > SAME)
    return rank, ~np.isnan(values)


def _misjudged(
    group: Integers, rank: Integers, small: Booleans, large: Booleans
) -> tuple[Integers, Integers]:
    """Groups with a small and a large error of the same rank, and with a large one ahead."""
    n_groups, n_ranks = int(group.max(initial=0)) + 1, int(rank.max(initial=0)) + 1
    keys = group * n_ranks + rank
    tied = np.intersect1d(keys[small], keys[large]) // n_ranks
    worst_small = np.full(n_groups, n_ranks)
    np.minimum.at(worst_small, group[small], rank[small])
    best_large = np.full(n_groups, -1)
    np.maximum.at(best_large, group[large], rank[large])
    return tied, np.flatnonzero(best_large > worst_small)


def _shares(found: Iterable[Row], *keys: str) -> Iterator[Row]:
    """Shares of references by corpus, or by corpus and segments; kinds and metrics in order."""
    for values, rows in group_by(found, *keys).items():
        for (metric, kind), own in group_by(rows, "metric", "kind").items():
            counts = ("references", "possible", "tied", "ahead")
            references, possible, tied, ahead = (sum(row[c] for row in own) for c in counts)
            yield {
                **dict(zip(keys, values, strict=True)),
                **{"kind": kind, "metric": metric, "references": references, "possible": possible},
                **{"share": tied / references, "reversed": ahead / references},
            }


def _describe(rows: Sequence[Row]) -> Iterator[str]:
    """How often each metric is at a loss on a corpus, and on the longest of all references."""
    groups = group_by(rows, "corpus")
    enumerated = [name for (name,) in groups if name.startswith(EVERY)]
    for (name,), own in groups.items():
        if name in enumerated[:-1]:
            continue
        at_a_loss, never = [], []
        for (metric,), of_metric in group_by(own, "metric").items():
            shares = [row["share"] for row in of_metric]
            if any(shares):
                at_a_loss.append(f"{metric} in {' / '.join(f'{share:.1%}' for share in shares)}")
            else:
                never.append(metric)
        found = [*at_a_loss, *([f"{listed(never)} in none"] if never else [])]
        of = counted(own[0]["references"], "reference")
        tie = f"a small and a large error ({' / '.join(KINDS)}) tie under {listed(found)}"
        yield f"{name}: of {of}, {tie}."
