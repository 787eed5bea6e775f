"""Do metrics prefer what people prefer? Pairs to be judged, and agreement with the votes.

Ocampo Diaz and Ouyang (2024), Section 4 and Table 1: pairs of segmentations that differ most under
one metric, which judges vote on; then how far judges agree (Fleiss' κ), and how often a metric
agrees with most of them, beside one that calls all pairs equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from reffree.data.corpus import Corpus
from reffree.encoders.embed import units_taking_part
from reffree.evaluate.blocks import golds_of
from reffree.evaluate.metric_set import MetricSet, choose_metrics
from reffree.evaluate.result import DocumentText, Result, Table, columns, estimate
from reffree.evaluate.score import check_gold
from reffree.evaluate.signature import Signature
from reffree.statistics.coefficients import fleiss_kappa
from reffree.statistics.resampling import DocumentBootstrap
from reffree.studies.judged_pairs.contrasts import KINDS, Contrast, Kind, contrasts
from reffree.studies.judged_pairs.votes import Ballot, Votes, spelt
from reffree.studies.study import (
    StudiedCorpus,
    StudyKeywords,
    StudySettings,
    check_study,
    study_result,
)
from reffree.util.bounds import Count, with_keywords, within_bounds
from reffree.util.errors import InputError, OptionError, counted, listed

METRICS = ("boundary_similarity", "alignment", "windowdiff")
"""Those that the paper holds SED against."""

ALL_EQUAL = "all equal"


@with_keywords(StudyKeywords)
@within_bounds
def pairs(
    corpora: Mapping[str, Corpus],
    *,
    kinds: Sequence[Kind] = KINDS,
    by: str = "sed",
    metrics: Sequence[str] = METRICS,
    votes: str | None = None,
    first_segment: bool = False,
    texts: Count = 3,
    **keywords: Unpack[StudyKeywords],
) -> Result:
    """Make pairs of segmentations that one metric tells apart most; hold votes against metrics.

    Args:
        corpora: from `reffree.load`, by name, with gold; each annotator's is a reference.
        kinds: of error: ``deletion``, ``insertion``, ``transposition``.
        by: the gold-based metric under which the two of a pair differ most.
        metrics: others to hold against it, gold-based too.
        votes: a CSV file with the column ``pair`` and one for each judge.
        first_segment: make errors at the first segment too.
        texts: documents of each corpus whose text goes into the result, for `reffree report`.
        **keywords: see `StudySettings`; nothing is encoded, but for word vectors of ``sed``.
    """
    settings = StudySettings(**keywords)
    check_study(corpora, None)
    for kind in kinds:
        if kind not in KINDS:
            raise OptionError(
                f"the kind {kind!r}", expected=listed(KINDS), remedy="leave kinds out for all"
            )
    ballot = None if votes is None else Ballot.read(votes)
    studied: list[ContrastedCorpus] = []
    for name, whole in corpora.items():
        part, _ = units_taking_part(whole, None, settings)
        chosen = _chosen(by, metrics, part.corpus, settings)
        check_gold(part.corpus, chosen)
        chosen = chosen.over(golds_of([part.corpus]))
        n_golds = sum(len(document.references) for document in part.corpus)
        with settings.progress("Pairing", n_golds * len(kinds)) as advance:
            found: list[Contrast] = []
            missing: Counter[str] = Counter()
            for kind, contrast in contrasts(
                *(name, part.corpus, kinds, chosen.names[0], chosen.gold_based),
                first_segment=first_segment,
                seed=settings.seed,
                named=len(corpora) > 1,
            ):
                if contrast is None:
                    missing[kind] += 1
                else:
                    found.append(contrast)
                advance(1)
        signature = Signature.of(chosen, part.corpus, None, seed=settings.seed)
        studied.append(ContrastedCorpus(name, part.corpus, None, signature, found, missing))
    every = {contrast.name: contrast for each in studied for contrast in each.contrasts}
    if not every:
        raise InputError(
            "no pair that the metric tells apart",
            expected="documents of three segments or more, of several units each",
            remedy="choose another kind of error, or --first-segment",
            place=next(iter(corpora.values()))[0].place,
        )
    names = list(chosen.names)
    voted = None if ballot is None else ballot.votes(every)
    agreement = [] if voted is None else _agreement(every, voted, names, settings.seed)
    return study_result(
        "pairs",
        studied,
        question="Do metrics prefer the segmentations that people prefer?",
        verdict=_answer(every, names, agreement),
        tables=_tables(every, names, agreement),
        signature={"by": names[0], "kinds": "+".join(kinds)}
        | ({} if voted is None else {"judges": f"{len(voted.judges)}"}),
        settings={
            "kinds": list(kinds),
            "by": names[0],
            "metrics": names,
            "votes": votes,
            "first_segment": first_segment,
            "seed": settings.seed,
        },
        notes=[note for each in studied for note in each.missing_notes()],
        reading={
            "apart": "Pairs to whose two hypotheses the metric gives different values.",
            "difference": "Between the two of a pair, mean over pairs.",
            "kappa": "Fleiss' κ of the judges: agreement beyond chance on first, second or equal.",
            "majority": "Pairs on which one verdict has more votes than each other; only these "
            "count for metrics.",
            ALL_EQUAL: "A metric that tells none of the pairs apart.",
        },
        texts=[text for each in studied for text in each.document_texts(texts)],
    )


def _chosen(by: str, metrics: Sequence[str], corpus: Corpus, settings: StudySettings) -> MetricSet:
    """Read the metrics, the one that pairs differ by first."""
    chosen = choose_metrics([by, *metrics], corpus, seed=settings.seed, offline=settings.offline)
    for name in chosen.reference_free:
        raise OptionError(
            f"the metric {name!r}",
            expected="gold-based ones: the pairs are of one gold",
            remedy="choose sed, alignment, boundary_similarity or the like",
        )
    return chosen


@dataclass(frozen=True, slots=True)
class ContrastedCorpus(StudiedCorpus):
    """One corpus and its pairs."""

    contrasts: list[Contrast]
    missing: Counter[str]  # references without a pair, by kind

    def missing_notes(self) -> Iterator[str]:
        """Say how many references have no pair."""
        for kind, n in self.missing.items():
            yield f"{self.name}, {kind}: {counted(n, 'reference')} without a pair that differs."

    def document_texts(self, n: int) -> Iterator[DocumentText]:
        """The first documents with a pair: gold, and the two of every kind."""
        of_document: dict[str, list[Contrast]] = {}
        for each in self.contrasts:
            of_document.setdefault(each.document, []).append(each)
        units = {document.id: document.units for document in self.corpus}
        for id in list(of_document)[:n]:
            systems = {"gold": of_document[id][0].reference.masses}
            for each in of_document[id]:
                systems |= {
                    f"{each.name}, first": each.first.masses,
                    f"{each.name}, second": each.second.masses,
                }
            yield DocumentText(self.name, id, tuple(units[id]), systems)


def _agreement(
    every: Mapping[str, Contrast], votes: Votes, names: Sequence[str], seed: int
) -> list[dict[str, Any]]:
    """A row per kind: κ, and how often each metric says what most judges say."""
    rows = []
    for kind in dict.fromkeys(contrast.kind for contrast in every.values()):
        voted = [p for p, c in every.items() if c.kind == kind and p in votes.by_pair]
        if not voted:
            continue
        decided = {p: m for p in voted if (m := votes.majority(p)) is not None}
        agrees = {
            name: [every[p].verdict(name) == m for p, m in decided.items()] for name in names
        } | {ALL_EQUAL: [m == "equal" for m in decided.values()]}
        bootstrap = DocumentBootstrap(max(1, len(decided)), np.random.default_rng(seed))
        row: dict[str, Any] = {
            "kind": kind,
            "pairs": len(voted),
            "judges": len(votes.judges),
            "kappa": fleiss_kappa(votes.counts(voted)),
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
    for kind in dict.fromkeys(contrast.kind for contrast in every.values()):
        of_kind = [contrast for contrast in every.values() if contrast.kind == kind]
        for name in names:
            apart = [x for each in of_kind if not np.isnan(x := each.difference(name))]
            told = [contrast.verdict(name) != "equal" for contrast in of_kind]
            rows.append(
                (kind, name, len(of_kind), float(np.mean(told)), float(np.mean(apart or [np.nan])))
            )
    fields = (
        *columns("text", kind="error", metric="metric"),
        *columns("count", "pairs"),
        *columns("share", apart="told apart"),
        *columns("number", "difference"),
    )
    yield Table.of("metrics", "What metrics tell apart in the pairs", fields, rows)
    ballot = columns("text", "pair", "corpus", "document", "kind", "first", "second")
    cells = [
        (c.name, c.corpus, c.document, c.kind, spelt(c.first.masses), spelt(c.second.masses))
        for c in every.values()
    ]
    yield Table.of("ballot", "Pairs to be judged", ballot, cells, shown=False)
    fields = (
        *columns("text", "pair", "metric", "verdict"),
        *columns("number", "first", "second"),
    )
    verdicts = [
        (c.name, name, c.verdict(name), *c.losses[name]) for c in every.values() for name in names
    ]
    if agreement:
        long = [(r["kind"], n, r[n], r[ALL_EQUAL]) for r in agreement for n in names]
        of_chart = (*columns("text", "kind", "metric"), *columns("share", "share", "turned"))
        yield Table.of("majority", "Agreement, a row a metric", of_chart, long, shown=False)
    yield Table.of("verdicts", "Losses of both, by metric", fields, verdicts, shown=False)


def _answer(
    every: Mapping[str, Contrast], names: Sequence[str], agreement: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """What judges and metrics agree on; without votes, which pairs there are to vote on."""
    for row in agreement:
        shares = [
            f"{name} {row[name]:.0%}" for name in (*names, ALL_EQUAL) if row[name] is not None
        ]
        kappa = "undefined" if row["kappa"] is None else f"{row['kappa']:.2f}"
        said = f"agreement with most judges: {listed(shares)}" if shares else "no majority"
        yield f"{row['kind'].capitalize()}: κ {kappa} over {counted(row['pairs'], 'pair')}; {said}."
    if not agreement:
        by_kind = Counter(contrast.kind for contrast in every.values())
        found = [counted(n, f"{kind} pair") for kind, n in by_kind.items()]
        yield (
            f"{listed(found)}: write them with -f csv, add a column of votes for each judge, and "
            "give the file as --votes."
        )
    for name in names[1:]:
        told = sum(contrast.verdict(name) != "equal" for contrast in every.values())
        if told:
            yield f"{name} tells {told / len(every):.0%} of the pairs apart."
