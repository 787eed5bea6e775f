"""Score every system of a corpus: embed, score, average, attach intervals and a signature."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

import numpy as np

from reffree.data.corpus import Corpus, Document
from reffree.data.masses import mass_matrix
from reffree.encoders.device import parse_ray
from reffree.encoders.embed import Embeddings, Vectors, corpus_vectors, units_taking_part
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.evaluate.corpus_counts import BLOCK_UNITS, CorpusCounts, blocks_of
from reffree.evaluate.metric_set import (
    MetricSet,
    check_metric,
    check_scorers,
    choose_metrics,
    readings,
    with_scorers_encoder,
)
from reffree.evaluate.scores import Scores, ScoreSettings
from reffree.evaluate.signature import Signature
from reffree.evaluate.table import DocumentScores, NullTest, PartScore, ScoreTable
from reffree.evaluate.verdict import score_notes, verdict
from reffree.formats.shards import Shards
from reffree.metrics.free.result import document_pool
from reffree.metrics.gold.metric import Golds, count_pairs
from reffree.metrics.gold.pairs import Pairs
from reffree.metrics.registry import spelling
from reffree.util.bounds import MOST_SEED, check_limit
from reffree.util.declare import Bounds, Option, declared
from reffree.util.errors import InputError, OptionError
from reffree.util.progress import Progress, no_progress

if TYPE_CHECKING:
    from reffree.metrics.free.attribution import Explanation
    from reffree.metrics.free.result import RawScores

METRIC_HELP = (
    "Without gold: placement, granularity, expected_pk (_windowdiff …), arp_std, arp_cos, "
    "arp_pair, silhouette, segrefree, or all. With it: pk, windowdiff, boundary_similarity, w_f1 "
    "…, or gold for all. Options as in pk:k=3; may be repeated."
)


@declared
def score(
    corpus: Corpus | Shards | Any,  # noqa: ANN401  (what `load` takes)
    *,
    metrics: Annotated[
        Sequence[str] | None,
        Option(
            METRIC_HELP,
            flag="-m/--metric",
            default="placement to segrefree; with gold pk, windowdiff and boundary_similarity, too",
            check=check_metric,
            names="metrics",
        ),
    ] = None,
    embeddings: Vectors | None = None,
    per_document: Annotated[bool, Option("Also every document's scores.")] = False,
    per_segment: Annotated[bool, Option("Also every segment's scores.", cli=False)] = False,
    unsegmented: Annotated[
        Literal["neutral", "skip", "worst"],
        Option("What a document without a boundary scores.", metavar="RULE"),
    ] = "neutral",
    average: Annotated[
        Literal["macro", "micro"], Option("Of gold-based metrics over documents.", metavar="HOW")
    ] = "macro",
    null: Annotated[
        int,
        Bounds(0),
        Option(
            "Hold every score against N random orders of the same segment lengths: z and p.",
            metavar="N",
        ),
    ] = 0,
    explain: Annotated[
        bool, Option("Also segments' scores, what boundaries contribute, and better places.")
    ] = False,
    seed: Annotated[int, Bounds(0, MOST_SEED), Option("Seed of everything random.")] = 0,
    progress: Progress = no_progress,
    **encoding: Unpack[Encoding],
) -> ScoreTable:
    """Score all systems of a corpus, and its gold where every document has it.

    A document with several annotators' golds is compared with each; its value is the mean.

    Args:
        corpus: from `reffree.load`; or what it takes beside files, such as a data frame or a list
            of documents; or `reffree.formats.shards.Shards`, which are never all in memory.
        metrics: names such as ``arp_pair``, ``arp_std:p=1`` or ``pk``; ``all`` stands for every
            reference-free one, ``gold`` for every gold-based one. By default the reference-free
            ones, and where there is gold Pk, WindowDiff and boundary similarity.
        embeddings: one array per document, in corpus order or by id, instead of an encoder.
        per_segment: implies ``per_document``, as ``explain`` implies both.
        unsegmented: ``neutral`` (raw 0; SegReFree skips it), ``skip`` (undefined) or ``worst``
            (raw -1, SegReFree 10).
        average: ``macro``, the mean of values, or ``micro``, the value of all counts together.
        progress: called as stages start.
        **encoding: which encoder, how and where: see `EncoderOptions`. With the device
            ``ray:address=…,actors=N`` documents are encoded and scored by Ray's actors.
    """
    settings = ScoreSettings(
        options=EncoderOptions(**encoding),
        unsegmented=unsegmented,
        average=average,
        seed=seed,
        null=null,
        keep_spread=True,
        per_document=per_document,
        per_segment=per_segment or explain,
        explain=explain,
    )
    if not isinstance(corpus, Corpus | Shards):
        corpus = _load_value(corpus)
    options = settings.options
    is_remote = parse_ray(options.device) is not None
    _check_source(corpus, settings, is_given=embeddings is not None, is_remote=is_remote)
    given: Embeddings | None = None
    if isinstance(corpus, Corpus):
        part, embeddings = units_taking_part(corpus, embeddings, options)
        corpus = part.corpus
        if embeddings is not None:
            given = corpus_vectors(corpus, embeddings, options, progress)
    counts = CorpusCounts.of(corpus)
    counts.check_complete()
    chosen = choose_metrics(metrics, counts, seed=seed, offline=options.offline)
    if given is None and isinstance(corpus, Corpus):
        options = with_scorers_encoder(chosen.reference_free.values(), options)
        if options is not settings.options:
            settings = replace(settings, options=options)
            corpus = units_taking_part(corpus, None, options)[0].corpus
            counts = CorpusCounts.of(corpus)
    _check_request(counts, chosen, settings)
    check_gold(corpus, chosen)
    plan = Plan(counts.hypotheses, chosen.over(golds_of(corpus)), settings)
    if is_remote:
        from reffree.evaluate.ray import score_on_ray

        scores = score_on_ray(corpus, plan, counts.n_units, progress)
    else:
        plan = plan.with_encoder() if given is None else plan.with_vectors(part.corpus, given)
        scores = _score_blocks(corpus, plan, counts.n_units, progress)
    return _table(scores, counts, corpus.notes)


def scores_of(
    corpus: Corpus,
    metrics: MetricSet,
    settings: ScoreSettings,
    embeddings: Vectors | None = None,
    progress: Progress = no_progress,
) -> Scores:
    """Score all systems of a corpus, for studies: arrays instead of a table.

    The corpus is of the units that take part (`units_taking_part`); it is encoded where a metric
    needs vectors and none are given.
    """
    check_gold(corpus, metrics)
    plan = Plan(tuple(corpus.hypotheses), metrics.over(golds_of(corpus)), settings)
    if embeddings is None or not metrics.reference_free:
        plan = plan.with_encoder()
    else:
        given = corpus_vectors(corpus, embeddings, settings.options, progress)
        plan = plan.with_vectors(corpus, given)
    return _score_blocks(corpus, plan, corpus.n_units, progress)


@dataclass(frozen=True, slots=True)
class Plan:
    """How every document of a corpus is scored."""

    systems: tuple[str, ...]  # a block may have a complete gold where its corpus has none
    metrics: MetricSet
    settings: ScoreSettings
    embed: Callable[[Corpus, Progress], Embeddings] | None = None  # vectors, if they are needed

    def with_encoder(self) -> Plan:
        """Open the encoder, if a metric needs vectors."""
        if not self.metrics.reference_free:
            return self
        from reffree.encoders.embed import encode_corpus
        from reffree.encoders.opening import open_encoder

        options = self.settings.options
        encoder = open_encoder(options)
        spec = replace(encoder.spec, context=options.context, dropped=options.dropped)
        check_scorers(self.metrics.reference_free.values(), spec)
        return replace(self, embed=lambda block, show: encode_corpus(block, encoder, options, show))

    def with_vectors(self, corpus: Corpus, given: Embeddings) -> Plan:
        """Take the vectors that are given for the whole corpus."""
        by_id = {each.id: x for each, x in zip(corpus, given.vectors, strict=True)}
        counted_once = replace(given, n_truncated=0, unread={})

        def embed(block: Corpus, progress: Progress) -> Embeddings:
            vectors = [by_id[document.id] for document in block]
            return replace(given if block[0].id == corpus[0].id else counted_once, vectors=vectors)

        check_scorers(self.metrics.reference_free.values(), given.spec)
        return replace(self, embed=embed) if self.metrics.reference_free else self


def _score_blocks(
    documents: Iterable[Document], plan: Plan, n_units: int, progress: Progress
) -> Scores:
    """Score blocks one after the other; of a short corpus every stage is shown."""
    is_short = n_units <= BLOCK_UNITS
    parts = []
    with (no_progress if is_short else progress)("Scoring", n_units) as advance:
        for block in blocks_of(documents):
            parts.append(score_documents(block, plan, progress if is_short else no_progress))
            advance(block.n_units)
    return Scores.concatenate(parts)


def score_documents(documents: Corpus, plan: Plan, progress: Progress = no_progress) -> Scores:
    """Score some documents by all metrics, and make their rows if any are wanted.

    A document is scored alone, so neither its block nor the process that scores it changes its
    scores.
    """
    every = documents.hypotheses
    hypotheses = {system: every[system] for system in plan.systems}
    by_document = list(zip(*hypotheses.values(), strict=True))
    has_gold = [bool(document.references) for document in documents]
    scores = Scores.empty(plan.metrics, plan.settings, hypotheses, has_gold)
    _score_against_gold(scores, documents)
    if plan.embed is None:
        return replace(scores, rows=_rows(scores, documents, {}, {}, []))
    from reffree.encoders.device import device_names
    from reffree.metrics.free import engine
    from reffree.metrics.free.placement import watched_excess

    settings, metrics = plan.settings, list(plan.metrics.reference_free.values())
    embedded = plan.embed(documents, progress)
    vectors = embedded.vectors
    device = device_names(settings.options.device)[0]
    device = "cpu" if device == "mps" else device  # which has no float64
    read = readings(documents, metrics, vectors, embedded.spec, settings.options.device)
    size = len(plan.systems) * len(documents)
    watched = watched_excess(metrics) if settings.keep_spread else []
    with progress("Scoring", size) as advance:
        found = engine.score_documents(
            vectors,
            by_document,
            [*metrics, *watched],
            keep_segments=settings.per_segment,
            unsegmented=settings.unsegmented,
            device=device,
            names=[document.id for document in documents],
            readings=read,
            keep_spread=settings.keep_spread,
            progress=advance,
        )
    raw = {name: [each.on_host() for each in by_metric] for name, by_metric in found.items()}
    for excess in watched:
        each = raw.pop(spelling(excess))
        both = np.array([[f.documents for f in each], [f.weights for f in each]])
        scores = replace(scores, excess=both)
    for name, by_metric in raw.items():
        scores.put(name, by_metric)
    tests: dict[tuple[int, int, str], NullTest | None] = {}
    if settings.null:
        from reffree.evaluate.null import draw_null

        with progress("Null", size * settings.null) as advance:
            null, tests = draw_null(scores, documents, vectors, read, device, advance)
        scores = replace(scores, null=null)
    explanations: list[dict[str, Explanation]] = []
    if settings.explain:
        from reffree.metrics.free.attribution import explain_document

        with progress("Explaining", len(documents)) as advance:
            for d, document in enumerate(documents):
                explanations += explain_document(
                    vectors[d],
                    by_document[d],
                    metrics,
                    unsegmented=settings.unsegmented,
                    device=device,
                    name=document.id,
                    reading=read[d],
                )
                advance(1)
    rows = _rows(scores, documents, raw, tests, explanations)
    return replace(scores, embedded=replace(embedded, vectors=[]), rows=rows)


def _rows(
    scores: Scores,
    documents: Corpus,
    raw: Mapping[str, Sequence[RawScores]],
    tests: Mapping[tuple[int, int, str], NullTest | None],
    explanations: Sequence[dict[str, Explanation]],
) -> tuple[DocumentScores, ...]:
    """Return every document under every system, if rows are wanted."""
    rows: list[DocumentScores] = []
    for d, document in enumerate(documents) if scores.settings.has_rows else ():
        for s, system in enumerate(scores.systems):
            parts = {name: scores.part_score(name, d, s) for name in scores.metrics.names}
            for name, part in parts.items():
                if name in raw and scores.settings.per_segment:
                    values = raw[name][d].segments[s, : scores.n_segments[d, s]].tolist()
                    shown = scores.metrics.metric(name).shown
                    known = [(None, None) if math.isnan(x) else (shown(x), x) for x in values]
                    part = replace(part, segments=tuple(PartScore(*each) for each in known))
                parts[name] = replace(part, null=tests.get((d, s, name)))
            text: dict[str, Any] = {}
            if explanations:
                text = {"units": document.units, "clocks": document.clocks}
                text["explanations"] = explanations[len(rows)]
            rows.append(DocumentScores(document.id, system, parts, **text))
    return tuple(rows)


def golds_of(documents: Iterable[Document]) -> Golds:
    """Return what goes through the golds of a corpus, every annotator's, a block at a time."""

    def golds() -> Iterator[Pairs]:
        for block in blocks_of(documents):
            found = [(gold, d.units) for d in block for gold in d.references]
            if found:
                masses = mass_matrix([gold for gold, _ in found], None)
                yield Pairs(masses, masses, [units for _, units in found])

    return golds


def _score_against_gold(scores: Scores, documents: Corpus) -> None:
    """Compare every hypothesis with its document's gold; with several, the value is the mean.

    Values, and counts summed over annotators, are put into ``scores``.
    """
    hypotheses = documents.hypotheses
    rows = [
        (d, s, hypotheses[system][d], reference)
        for d, document in enumerate(documents)
        for reference in document.references
        for s, system in enumerate(scores.systems)
    ]
    if not rows or not scores.metrics.gold_based:
        return
    ds, ss, hypothesis, reference = zip(*rows, strict=True)
    masses = mass_matrix(hypothesis, None), mass_matrix(reference, None)
    pairs = Pairs(*masses, [documents[d].units for d in ds])
    at, shape = (np.array(ds), np.array(ss)), scores.n_segments.shape
    for name, metric in scores.metrics.gold_based.items():
        counts = count_pairs(metric, pairs)
        values = metric.value(counts)
        total, number = np.zeros(shape), np.zeros(shape)
        np.add.at(total, at, np.nan_to_num(values))
        np.add.at(number, at, ~np.isnan(values))
        np.divide(total, number, out=scores.raw[scores.index(name)], where=number > 0)
        scores.counts[name] = np.zeros((*shape, counts.shape[1]))
        np.add.at(scores.counts[name], at, counts)


def check_gold(documents: Iterable[Document], metrics: MetricSet) -> None:
    """Refuse gold-based metrics of documents without any gold, before anything is encoded."""
    if metrics.gold_based and not any(document.references for document in documents):
        raise InputError(
            f"no gold to compare with, as {', '.join(metrics.gold_based)} must",
            expected="a gold segmentation in the corpus",
            remedy='add "gold" to its documents, or --system gold=FILE, or choose other metrics',
            place=next(iter(documents)).place,
        )


def _table(scores: Scores, counts: CorpusCounts, notes: Sequence[str]) -> ScoreTable:
    """Average over documents; attach intervals, notes and the signature."""
    settings, embedded, names = scores.settings, scores.embedded, scores.metrics.names
    tests: dict[tuple[str, str], NullTest | None] = {}
    if settings.null:
        from reffree.evaluate.null import corpus_tests

        tests = corpus_tests(scores)
    systems = scores.system_rows(tests)
    signature = Signature.of(
        scores.metrics,
        counts,
        embedded,
        seed=settings.seed,
        unsegmented=settings.unsegmented,
        average=settings.average,
        null=settings.null,
        dropped=settings.options.dropped,
    )
    incomparable = frozenset(name for name in names if not scores.is_comparable(name))
    return ScoreTable(
        signature=str(signature),
        corpus=counts.to_dict(embedded),
        systems=systems,
        documents=scores.rows if settings.has_rows else None,
        notes=(*notes, *score_notes(scores, counts, systems, incomparable)),
        incomparable=incomparable,
        verdict=verdict(scores, systems, incomparable),
    )


def _load_value(value: object) -> Corpus:
    """Make a corpus of a data frame or a list of documents; refuse what is none."""
    from reffree.formats import load
    from reffree.formats.values import is_value

    if not is_value(value):
        raise InputError(
            f"a {type(value).__name__} to score",
            expected="a Corpus",
            remedy='load it first: reffree.score(reffree.load("corpus.jsonl"))',
        )
    return load(value)


def _check_source(
    corpus: Corpus | Shards, settings: ScoreSettings, *, is_given: bool, is_remote: bool
) -> None:
    """Refuse what goes with a corpus in memory only, or scored here."""
    if is_given and (is_remote or isinstance(corpus, Shards)):
        raise OptionError(
            "embeddings beside shards or Ray's actors",
            expected="vectors of a corpus that is in memory and scored here",
            remedy="leave them out",
        )
    if isinstance(corpus, Shards) and settings.options.dropped != "none":
        raise OptionError(
            f"shards of which units are to be left out ({settings.options.dropped})",
            expected="a corpus in memory",
            remedy="load it with reffree.load",
        )


def _check_request(counts: CorpusCounts, metrics: MetricSet, settings: ScoreSettings) -> None:
    """Refuse metrics and options that do not go together, and a corpus with nothing to score."""
    if not counts.hypotheses:
        raise InputError(
            "no segmentation to score: no systems, and no gold in every document",
            expected="at least one system or a complete gold",
            remedy='add "systems" to the corpus, or pass --system NAME=FILE',
            place=counts.first,
        )
    for name, metric in metrics.reference_free.items():
        if (length := getattr(metric, "length", None)) is not None and length > counts.n_longest:
            raise OptionError(
                f"{name}, and no document of more than {counts.n_longest:,} units",
                expected="segments that documents have room for",
                remedy="give length= the units that a segment has on average, or leave it out",
            )
    check_limit("null_draws", settings.null, f"{settings.null:,} draws for --null")
    if settings.explain:
        found = f"a document of {counts.n_longest:,} units for --explain"
        check_limit("explained_units", counts.n_longest, found)
    if (settings.null or settings.per_segment) and not metrics.reference_free:
        raise OptionError(
            f"only gold-based metrics ({', '.join(metrics.names)})",
            expected="a reference-free one for the chance test, explanations or segments",
            remedy="add one, such as arp_pair, or leave those options out",
        )
    if settings.null:
        refuse_medians(metrics, "--null, which adds up draws over documents")


def refuse_medians(metrics: MetricSet, what: str) -> None:
    """Refuse medians over documents where only means can be tested."""
    for name, metric in metrics.reference_free.items():
        if document_pool(metric) == "median":
            raise OptionError(
                f"{name!r} with {what}",
                expected="pool_d=mean or pool_d=length",
                remedy="leave one of the two out",
            )
