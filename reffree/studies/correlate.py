"""Do metrics without gold rank systems as gold does?

The study of Ghinassi et al. (2024), Tables 1 and 2, and beyond. Systems are scored by both kinds of
metrics; agreement is measured over systems at corpus level and inside documents, apart for
independent and cohesion-seeking systems, and beside sentinels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain, product
from statistics import fmean, pstdev
from typing import Annotated, Any, Unpack

import numpy as np

from reffree.data.corpus import GOLD, Corpus
from reffree.encoders.embed import Vectors
from reffree.encoders.opening import open_encoder
from reffree.evaluate.metric_set import check_metrics
from reffree.evaluate.result import DocumentText, Field, Result, Table, columns, estimate
from reffree.evaluate.table import judged_by
from reffree.metrics.registry import GOLD_DEFAULT, GOLD_METRICS, STUDIED
from reffree.segmenters.segment import parse_segmenter
from reffree.statistics.meta_evaluation import CORPUS_MEASURES, DOCUMENT_MEASURES
from reffree.statistics.significance import benjamini_hochberg
from reffree.studies.correlate_pool import POOLS, SENTINELS, Case, CaseSettings, make_cases
from reffree.studies.keywords import CorrelationKeywords, EncodersOption, check_encoder
from reffree.studies.study import CorpusPart, corpus_parts, require_gold, study_result
from reffree.util.declare import Option, declared
from reffree.util.errors import CacheError, EncoderError, UnknownNameError, listed
from reffree.util.progress import Progress

ALPHA = 0.05
ARCHITECTURES = ("bilstm", "sheikh-bilstm", "transformer")

NOTABLE_CHANGE = 0.1
"""Of a correlation, between systems that read the text and those that do not."""

DOCUMENT_ROWS = 20_000
"""Scores of single documents kept per case, for the report's strip chart."""

POOL_TITLES = {"independent": "independent systems", "cohesion": "cohesion-seeking systems"}
LEVELS = (
    *columns("number", corpus_pearson="Pearson", corpus_spearman="Spearman"),
    *columns("number", corpus_kendall="Kendall", corpus_spa="SPA"),
    *columns("number", document_pearson="Pearson in documents"),
    *columns("number", document_spearman="Spearman in documents"),
    *columns("number", document_kendall="Kendall in documents"),
    *columns("number", document_acc_eq="acc-eq in documents"),
)
READING = {
    "independent": "systems that do not seek cohesion in vectors: gold, random, lexical, perturbed "
    "and supervised ones",
    "blind": "those of the independent systems that do not read the text: gold, random, perturbed",
    "cohesion": "systems that optimise embedding similarity, which is what the metrics measure; a "
    "metric that ranks these well can be trusted to tune with",
    "pearson": "correlation of corpus scores over systems, all turned so that lower is better; 1 "
    "is perfect agreement, 0 none, below 0 the metric prefers the worse system",
    "interval": "95 %, over resampled documents: where the mean of this value over other corpora "
    "of as many such documents may lie",
    "noiseless": "in the table of all correlations: what the value would be with any number of "
    "documents; few of them leave noise in the scores, which pulls correlations towards 0",
    "spa": "soft pairwise accuracy: agreement on how surely one system beats another; 0.5 is "
    "guessing",
    "document": "the coefficient over the systems of one document, averaged over documents",
    "acc_eq": "share of pairs of systems ordered alike in a document, ties calibrated",
    "p_bh": "one-sided PERM-SYSTEMS (the two metrics swap whole systems) against the best "
    "sentinel, corrected for all metrics (Benjamini–Hochberg)",
    "p_both": "PERM-BOTH (they swap systems and documents), uncorrected; it rejects too often "
    "where metrics favour systems of their own, so the other p decides",
    **{name: f"sentinel: {text}" for name, text in SENTINELS.items()},
}

CORRELATIONS = (
    *columns("text", "corpus", "encoder", "pool", "level", "free", "gold", "coefficient"),
    *estimate("value", "value", ci="ci", ci_label="95 % interval"),
    *estimate("noiseless", "without noise", ci_label="its 95 % interval"),
    *columns("count", "n_systems", "documents", "undefined"),
    *columns("text", is_sentinel="sentinel", reason="why undefined"),
)
BY_POOL = (
    *estimate("blind", "blind", ci_label=""),
    *estimate("independent", "independent", ci_label=""),
    *estimate("cohesion", "cohesion-seeking", ci_label=""),
    *columns("number", "change"),
    *estimate("all", "all", ci_label=""),
)
BEYOND_SENTINELS = (
    Field("value", "Pearson"),
    Field("sentinel", "best sentinel", "text"),
    *columns("number", sentinel_value="its |Pearson|", difference="difference"),
    *columns("p", p="p PERM-SYSTEMS", p_bh="corrected", p_both="p PERM-BOTH"),
    Field("p_williams", "p Williams", "p"),
    Field("n_systems", "systems", "count"),
)
SCORES = (
    *columns("text", "corpus", "encoder", "system", "pool", "kind", "metric", "metric_kind"),
    *columns("number", "value", "loss"),
)
DOCUMENTS = (
    *columns("text", "corpus", "encoder", "document", "system", "metric"),
    *columns("number", "value"),
)

Row = dict[str, Any]
UNDEFINED: Row = {"value": None, "ci": None, "n_systems": None}


@declared
def correlate(
    corpora: Mapping[str, Corpus],
    *,
    encoders: EncodersOption = None,
    fallback: Annotated[
        str | None,
        Option(
            "Leave out encoders that are not to be had, with a note; take this one if none is.",
            metavar="ENCODER",
            names="encoders",
            check=check_encoder,
        ),
    ] = None,
    embeddings: Mapping[str, Vectors] | None = None,
    **keywords: Unpack[CorrelationKeywords],
) -> Result:
    """Correlate reference-free with gold-based metrics over the systems of every CORPUS.

    Each CORPUS is read as in reffree score and needs gold, of one or several annotators; where it
    has fewer than eight systems, gold, random, perturbed, lexical and cohesion-seeking ones are
    added. Systems that seek cohesion in the embedding space are reported apart: on them a low loss
    means little. Several encoders are one study each, and all of them together.

    The pool ``paper`` is that of Ghinassi et al. (2024). With ``unsegmented="skip"`` a document
    without a boundary is left out of all of a system's scores, gold-based ones too.
    """
    settings = case_settings(keywords)
    found: list[str | None] = [*encoders] if encoders else [settings.encoder]
    notes = []
    for encoder in tuple(found) if fallback is not None else ():
        try:
            open_encoder(replace(settings, encoder=encoder))
        except CacheError:
            raise
        except EncoderError as error:
            notes.append(f"left out: {error}")
            found.remove(encoder)
    if not found:
        notes.append(f"none of the encoders is to be had: {fallback} was taken instead.")
    cases = make_cases(check_cases(corpora, embeddings, found or [fallback], settings))
    result = correlation_result(cases, settings)
    return replace(result, notes=(*notes, *result.notes))


def case_settings(keywords: CorrelationKeywords) -> CaseSettings:
    """Fill in the default of the kind of metric that is missing, and of supervised systems."""
    given = tuple(keywords.get("metrics") or ())
    check_metrics(given)
    is_gold = [name.partition(":")[0] in GOLD_METRICS or name == "gold" for name in given]
    free = () if not all(is_gold) else STUDIED
    gold = () if any(is_gold) else tuple(GOLD_DEFAULT)
    usual = ARCHITECTURES if keywords.get("pool") == "paper" else ()
    chosen = keywords.get("supervised")
    supervised = usual if chosen is None else tuple(dict.fromkeys(chosen))
    settled: Any = {"metrics": (*free, *given, *gold), "supervised": supervised}
    return CaseSettings(**{**keywords, **settled})


def check_cases(
    corpora: Mapping[str, Corpus],
    vectors: Mapping[str, Vectors] | None,
    encoders: Sequence[str | None],
    settings: CaseSettings,
) -> list[tuple[CorpusPart, CaseSettings]]:
    """Refuse what cannot be studied before anything is encoded; a case for every encoder."""
    parts = corpus_parts(corpora, vectors, settings, one_gold=True)
    everything = {name for part in parts for name in part.corpus.hypotheses}
    for name in settings.cohesion:
        if name not in everything:
            raise UnknownNameError("system", name, everything)
    for part in parts:
        remedy = "add it, or ask reffree study diagnose, which needs none"
        require_gold(part.corpus, "to correlate with", remedy)
    chosen = settings.choose_metrics(settings.metrics, parts[0].corpus)
    methods = [parse_segmenter(text) for text in settings.methods.values()]
    cases = [(part, replace(settings, encoder=each)) for each in encoders for part in parts]
    for part, own in cases:
        part.check(chosen.reference_free.values(), methods, own)
    return cases


def correlation_result(cases: Sequence[Case], settings: CaseSettings) -> Result:
    """Measure, tabulate, and say what was found."""
    found = Correlations(cases, settings.progress)
    tests = sentinel_tests(cases, settings.progress)
    scores, documents, document_notes = _score_tables(cases)
    supervised = f"{'+'.join(settings.supervised)}(folds={settings.folds})"
    return study_result(
        "correlate",
        cases,
        question="Do reference-free metrics rank systems as gold-based ones do?",
        verdict=_answer(cases, found, tests),
        tables=[
            *_shown_tables(cases, found, tests),
            *([_aggregate_table(cases, found)] if len(cases) > 1 else []),
            Table.of("correlations", "All correlations", CORRELATIONS, found.rows, shown=False),
            *(scores, documents),
        ],
        signature={
            "pool": settings.pool,
            **({"supervised": supervised} if settings.supervised else {}),
            "resamples": str(settings.resamples),
        },
        settings={
            "metrics": settings.metrics,
            "encoders": list(dict.fromkeys(case.encoder for case in cases)),
            "supervised": settings.supervised,
        },
        notes=[*_pool_notes(cases), *_lexical_notes(cases, found), *document_notes],
        reading=READING,
        texts=_texts_of(cases, settings.texts),
    )


class Correlations:
    """Every pair of metrics, pool, level and coefficient of every case."""

    def __init__(self, cases: Sequence[Case], progress: Progress) -> None:
        """Estimate all of them."""
        self.rows: list[Row] = []
        total = sum(len(case.pools) * len(case.judged) * len(case.gold) for case in cases)
        with progress("Statistics", total) as advance:
            for case in cases:
                rows: list[Row] = []
                # Pools share what was found of a metric, so it is done with before the next.
                for metric, gold, pool in product(case.judged, case.gold, case.pools):
                    about = {"corpus": case.name, "encoder": case.encoder, "pool": pool}
                    about |= {"free": metric, "gold": gold}
                    about["is_sentinel"] = "yes" if metric in SENTINELS else "no"
                    evaluation: Any = case.pools[pool]
                    for level, measures, measure in (
                        ("corpus", CORPUS_MEASURES, evaluation.corpus),
                        ("document", DOCUMENT_MEASURES, evaluation.documents),
                    ):
                        for coefficient in measures:
                            row = about | {"level": level, "coefficient": coefficient}
                            row |= asdict(measure(metric, gold, coefficient))
                            rows.append(row | {"n_systems": row["systems"]})
                    advance(1)
                order = list(case.pools)
                self.rows += sorted(rows, key=lambda row: order.index(row["pool"]))
        names = ("corpus", "encoder", "free", "pool", "gold", "level", "coefficient")
        self._by_key = {tuple(row[name] for name in names): row for row in self.rows}

    def get(self, case: Case, metric: str, pool: str, gold: str, *measure: str) -> Row:
        """Return one correlation, else Pearson's; nothing where the pool has too few systems."""
        measure = measure or ("corpus", "pearson")
        return self._by_key.get((case.name, case.encoder, metric, pool, gold, *measure), UNDEFINED)

    def values(self, cases: Sequence[Case], metric: str, pool: str, gold: str) -> list[float]:
        """Return the Pearson correlations over systems of all cases that have one."""
        cells = [self.get(case, metric, pool, gold)["value"] for case in cases]
        return [value for value in cells if value is not None]


def sentinel_tests(cases: Sequence[Case], progress: Progress) -> list[Row]:
    """Whether each metric correlates better with the first gold-based one than sentinels do.

    Over independent systems, against the sentinel with the largest correlation in either
    direction, negated where it is negative: PERM-SYSTEMS, one-sided, Benjamini–Hochberg over all
    metrics and cases. PERM-BOTH and Williams stand beside it: by simulation PERM-BOTH rejects too
    often where metrics favour systems of their own, as these do.
    """
    rows: list[Row] = []
    with progress("Tests", sum(len(case.free) for case in cases)) as advance:
        for case in cases:
            evaluation = case.pools.get("independent")
            if evaluation is None:
                continue
            gold = case.gold[0]
            found = {s: evaluation.corpus(s, gold, "pearson").value for s in SENTINELS}
            defined = {s: value for s, value in found.items() if value is not None}
            if not defined:
                continue
            best = max(defined, key=lambda s: abs(defined[s]))
            rival = f"-{best}" if defined[best] < 0 else best
            for metric in case.free:
                test = evaluation.permutation_test(metric, rival, gold, "pearson")
                both = evaluation.permutation_test(metric, rival, gold, "pearson", swap="both")
                williams = evaluation.williams_test(metric, rival, gold, "pearson")
                row: Row = {"corpus": case.name, "encoder": case.encoder, "metric": metric}
                row |= {"value": evaluation.corpus(metric, gold, "pearson").value}
                row |= {"sentinel": best, "sentinel_value": abs(defined[best])}
                row |= {"difference": test.difference, "n_systems": test.systems}
                row |= {"p": test.p_greater, "p_both": both.p_greater}
                rows.append({**row, "p_williams": williams.p_greater})
                advance(1)
    corrected = benjamini_hochberg([row["p"] for row in rows])
    return [{**row, "p_bh": p} for row, p in zip(rows, corrected, strict=True)]


def _shown_tables(
    cases: Sequence[Case], found: Correlations, tests: Sequence[Row]
) -> Iterator[Table]:
    """Pearson over each pool (the paper's Table 1) and between pools, other levels, sentinels."""
    gold, first = cases[0].gold, cases[0].gold[0]
    about = {"corpus": {case.name for case in cases}, "encoder": {case.encoder for case in cases}}
    label = columns("text", *(name for name in about if len(about[name]) > 1), "metric")
    pools = [pool for pool in POOL_TITLES if any(pool in case.pools for case in cases)]
    for pool in pools:
        title = f"Pearson correlation with gold-based metrics over {POOL_TITLES[pool]}"
        each = chain(*(estimate(name, name, ci_label="") for name in gold))
        fields = [*label, Field("n_systems", "systems", "count"), *each]
        rows = _rows(cases, found, {name: (pool, name) for name in gold})
        yield Table.of(pool, title, fields, rows)
    if len(pools) == 2:
        rows = _rows(cases, found, {pool: (pool, first) for pool in POOLS})
        for row in rows:
            if row["independent"] is not None and row["cohesion"] is not None:
                row["change"] = row["cohesion"] - row["independent"]
        title = f"Pearson correlation with {first} by pool of systems"
        yield Table.of("pools", title, (*label, *BY_POOL), rows)
    title = f"Agreement with {first} over independent systems, by coefficient and level"
    keys = {each.name: ("independent", first, *each.name.split("_", 1)) for each in LEVELS}
    yield Table.of("levels", title, (*label, *LEVELS), _rows(cases, found, keys))
    title = f"Does a metric say more about {first} than a sentinel? (independent systems)"
    yield Table.of("beyond_sentinels", title, (*label, *BEYOND_SENTINELS), tests)


def _aggregate_table(cases: Sequence[Case], found: Correlations) -> Table:
    """Mean and standard deviation over corpora and encoders: the paper's Table 2.

    Deviations are those of a population, as the paper's. Under ``all`` stand those of the
    correlations with all gold-based metrics together, as its caption says; what it prints there is
    the mean of the three deviations.
    """
    gold = cases[0].gold
    rows = []
    for pool in POOL_TITLES:
        for metric in cases[0].judged:
            values = {name: found.values(cases, metric, pool, name) for name in gold}
            every = [value for own in values.values() for value in own]
            row: Row = {"pool": pool, "metric": metric, "defined": len(every)}
            for name, own in values.items():
                row[name], row[f"{name}_sd"] = mean_and_sd(own)
            row["mean"], row["sd"] = mean_and_sd(every)
            rows.append(row)
    fields = [*columns("text", "pool", "metric")]
    for name in gold:
        fields += [Field(name, name), Field(f"{name}_sd", "sd")]
    fields += columns("number", mean="all", sd="sd") if len(gold) > 1 else ()
    fields += columns("count", "defined")
    title = f"Mean and standard deviation of Pearson correlations over {len(cases)} cases"
    return Table.of("aggregate", title, fields, rows)


def _score_tables(cases: Sequence[Case]) -> tuple[Table, Table, list[str]]:
    """Scores of every system, those of single documents, and what of the latter was left out.

    A gold-based metric has its own value; those best at 1 stay a distance from it.
    """
    scores, documents, notes = [], [], []
    for case in cases:
        kinds = dict.fromkeys(case.free, "free") | dict.fromkeys(case.gold, "gold")
        ids = [document.id for document in case.corpus.documents]
        kept = max(1, DOCUMENT_ROWS // (len(kinds) * len(case.members)))
        if kept < len(ids):
            notes.append(
                f"{case.name}: scores of single documents are kept for the first {kept} of "
                f"{len(ids)}."
            )
        of_corpus = case.corpus_losses
        for metric, kind in (kinds | dict.fromkeys(SENTINELS, "sentinel")).items():
            gold = case.chosen.gold_based.get(metric)
            sign = -1.0 if gold is not None and gold.direction == "higher" else 1.0
            values = case.losses[metric].values[:, :kept].tolist()
            for member, loss, own in zip(case.members, of_corpus[metric], values, strict=True):
                about = (case.name, case.encoder, member.system, member.pool, member.kind)
                scores.append((*about, metric, kind, sign * loss, loss))
                for id, each in zip(ids, own, strict=False) if metric in kinds else ():
                    documents.append((*about[:2], id, member.system, metric, sign * each))
    return (
        Table.of("scores", "Scores of every system", SCORES, scores, shown=False),
        Table.of("documents", "Scores of single documents", DOCUMENTS, documents, shown=False),
        notes,
    )


def _texts_of(cases: Sequence[Case], count: int) -> list[DocumentText]:
    """The first documents of every corpus, with all its systems under the first encoder.

    Gold comes first, then the systems by the metric to judge by, best first.
    """
    texts = []
    for name in dict.fromkeys(case.name for case in cases):
        case = next(case for case in cases if case.name == name)
        losses = case.corpus_losses[judged_by(case.chosen.names)].tolist()
        loss = dict(zip((member.system for member in case.members), losses, strict=True))
        hypotheses = case.corpus.hypotheses
        order = sorted(hypotheses, key=lambda s: (s != GOLD, loss.get(s, np.inf)))
        for d, document in enumerate(case.corpus.documents[:count]):
            masses = {system: hypotheses[system][d].masses for system in order}
            texts.append(DocumentText(case.name, document.id, document.units, masses))
    return texts


def mean_and_sd(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Mean and population standard deviation; the latter of at least two."""
    return fmean(values) if values else None, pstdev(values) if len(values) > 1 else None


def _rows(
    cases: Sequence[Case], found: Correlations, cells: Mapping[str, tuple[str, ...]]
) -> list[Row]:
    """Return a row per case and metric; ``cells`` are what `Correlations.get` takes, by column."""
    rows = []
    for case in cases:
        for metric in case.judged:
            label = f"{metric} (sentinel)" if metric in SENTINELS else metric
            row: Row = {"corpus": case.name, "encoder": case.encoder, "metric": label}
            for column, key in cells.items():
                cell = found.get(case, metric, *key)
                row |= {column: cell["value"], f"{column}_ci": cell["ci"]}
                row.setdefault("n_systems", cell["n_systems"])
            rows.append(row)
    return rows


def _pool_notes(cases: Sequence[Case]) -> Iterator[str]:
    has_one_encoder = len({case.encoder for case in cases}) == 1
    for case in cases:
        sizes = {pool: sum(member.is_in(pool) for member in case.members) for pool in POOL_TITLES}
        missing = [pool for pool in sizes if pool not in case.pools]
        where = case.name if has_one_encoder else f"{case.name}, {case.encoder}"
        too_few = f"; too few {listed(missing)} ones to correlate." if missing else "."
        yield (
            f"{where}: {sizes['independent']} independent and {sizes['cohesion']} "
            f"cohesion-seeking systems{too_few}"
        )
        if case.n_left_out:
            of_all = f"of {len(case.members) * len(case.corpus):,} documents of systems"
            yield (
                f"{where}: {case.n_left_out:,} {of_all} have no boundary and are left out of all "
                "scores."
            )


def _lexical_notes(cases: Sequence[Case], found: Correlations) -> Iterator[str]:
    """Say it where systems that read the text, though not the vectors, lower a correlation."""
    for case in cases:
        gold = case.gold[0]
        parts = []
        for metric in case.free:
            blind = found.get(case, metric, "blind", gold)["value"]
            every = found.get(case, metric, "independent", gold)["value"]
            if None not in (blind, every) and blind - every >= NOTABLE_CHANGE:
                parts.append(f"{metric} {blind:.2f} to {every:.2f}")
        independent = [member for member in case.members if member.is_in("independent")]
        readers = [member.system for member in independent if not member.is_in("blind")]
        if parts:
            yield (
                f"{case.name}: {listed(readers)} read the text and lower the correlation with "
                f"{gold} over independent systems: {listed(parts)}."
            )


def _answer(cases: Sequence[Case], found: Correlations, tests: Sequence[Row]) -> Iterator[str]:
    """How well the best metric does, what becomes of it on seekers, and whether sentinels do."""
    gold = cases[0].gold[0]
    values = {m: found.values(cases, m, "independent", gold) for m in cases[0].free}
    means = {metric: fmean(each) for metric, each in values.items() if each}
    if not means:
        yield "No reference-free metric has a defined correlation over independent systems."
        return
    metric = max(means, key=lambda name: means[name])
    span = f"mean of {len(cases)} cases"
    if len(cases) == 1:
        ci = found.get(cases[0], metric, "independent", gold)["ci"]
        span = "no interval" if ci is None else f"95 % interval {ci[0]:.2f} to {ci[1]:.2f}"
    yield (
        f"Over independent systems {metric} agrees best with {gold}: Pearson {means[metric]:.2f} "
        f"({span})."
    )
    if cohesion := found.values(cases, metric, "cohesion", gold):
        means_little = "there a lower loss does not mean better boundaries"
        yield (
            f"Over systems that seek cohesion in the embedding space it is {fmean(cohesion):.2f}: "
            f"{'there it still ranks systems' if fmean(cohesion) >= 0.5 else means_little}."
        )
    if tests:
        strongest = max(tests, key=lambda test: test["sentinel_value"])
        beating = sorted(
            {t["metric"] for t in tests if t["p_bh"] is not None and t["p_bh"] <= ALPHA}
        )
        told = "no metric does significantly better"
        if beating:
            does = "does" if len(beating) == 1 else "do"
            somewhere = " somewhere" if len(cases) > 1 else ""
            told = f"{listed(beating)} {does} significantly better{somewhere}"
        yield (
            f"The sentinel {strongest['sentinel']}, which reads no text, reaches "
            f"{strongest['sentinel_value']:.2f}; {told}."
        )
