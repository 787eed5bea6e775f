"""Score every system of a corpus: embed, score, average, attach intervals and a signature."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal, Unpack

import numpy as np

from reffree.data.corpus import Corpus, Document
from reffree.encoders.device import parse_ray
from reffree.encoders.embed import Embeddings, Vectors, corpus_vectors, units_taking_part
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.evaluate.blocks import Plan, golds_of, score_blocks
from reffree.evaluate.corpus_counts import CorpusCounts, blocks_of
from reffree.evaluate.metric_set import MetricSet, check_metric, choose_metrics
from reffree.evaluate.notes import score_notes
from reffree.evaluate.scores import Scores, ScoreSettings
from reffree.evaluate.signature import Signature
from reffree.evaluate.table import NullTest, ScoreTable
from reffree.evaluate.trained_scorers import with_scorers_encoder
from reffree.evaluate.verdict import verdict
from reffree.formats import load
from reffree.formats.shards import Shards
from reffree.formats.values import is_value
from reffree.metrics.free.pooling import document_pool
from reffree.statistics.resampling import DocumentBootstrap
from reffree.util.bounds import MOST_SEED, check_limit
from reffree.util.declare import Bounds, Option, declared
from reffree.util.errors import InputError, OptionError
from reffree.util.progress import Progress, no_progress

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
        per_document: also return every document's scores.
        per_segment: also return every segment's scores (implies ``per_document``).
        unsegmented: what a document without a boundary scores: ``neutral`` (raw 0; SegReFree
            skips it), ``skip`` (undefined), ``worst`` (raw -1, SegReFree 10).
        average: of gold-based metrics over documents: ``macro``, the mean of their values, or
            ``micro``, the value of all their counts together.
        null: random arrangements of the same segment lengths to hold every score against, giving
            z and p per document and per system; 0 for none.
        explain: also return, for every boundary, what it contributes and where it would be better,
            and the best place for one more (implies ``per_segment``).
        seed: of the bootstrap, of the null and of the draws of expected errors.
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
    if is_value(corpus):
        corpus = load(corpus)
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
    plan = Plan(counts.hypotheses, chosen.over(golds_of(partial(blocks_of, corpus))), settings)
    if is_remote:
        from reffree.evaluate.ray import score_on_ray

        scores = score_on_ray(blocks_of(corpus), plan, counts.n_units, progress)
    else:
        plan = plan.with_encoder() if given is None else plan.with_vectors(part.corpus, given)
        scores = score_blocks(blocks_of(corpus), plan, counts.n_units, progress)
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
    settled = metrics.over(golds_of(partial(blocks_of, corpus)))
    plan = Plan(tuple(corpus.hypotheses), settled, settings)
    if embeddings is None or not metrics.reference_free:
        plan = plan.with_encoder()
    else:
        given = corpus_vectors(corpus, embeddings, settings.options, progress)
        plan = plan.with_vectors(corpus, given)
    return score_blocks(blocks_of(corpus), plan, corpus.n_units, progress)


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
    settings, embedded = scores.settings, scores.embedded
    bootstrap = DocumentBootstrap(counts.n_documents, np.random.default_rng(settings.seed))
    tests: dict[tuple[str, str], NullTest | None] = {}
    if settings.null:
        from reffree.evaluate.null import corpus_tests

        tests = corpus_tests(scores)
    systems = scores.system_rows(bootstrap, tests)
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
    names = scores.metrics.names
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


def _check_source(
    corpus: Corpus | Shards, settings: ScoreSettings, *, is_given: bool, is_remote: bool
) -> None:
    """Refuse what cannot be scored."""
    if not isinstance(corpus, Corpus | Shards):
        raise InputError(
            f"a {type(corpus).__name__} to score",
            expected="a Corpus",
            remedy='load it first: reffree.score(reffree.load("corpus.jsonl"))',
        )
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
