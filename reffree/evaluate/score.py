"""Score every system of a corpus: embed, score, average, attach intervals and a signature.

Documents are scored a block at a time, whether the corpus is in memory, streamed from shards or
scored by Ray's actors. A document's scores do not depend on its block, and neither blocks nor what
is added up over them depend on where that happens: on one machine the bits are the same, given the
same vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from reffree.data.corpus import Corpus
from reffree.encoders.embed import Embeddings, Vectors, corpus_vectors, units_taking_part
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.evaluate.blocks import BlockScorer, Rows, ScoredBlock, golds_of
from reffree.evaluate.corpus_counts import CorpusCounts, Plan, cut
from reffree.evaluate.metric_set import MetricSet, choose_metrics
from reffree.evaluate.notes import score_notes
from reffree.evaluate.null import corpus_tests
from reffree.evaluate.scores import Average, Scores, ScoreSettings
from reffree.evaluate.signature import Signature
from reffree.evaluate.table import DocumentScores, ScoreTable
from reffree.evaluate.verdict import verdict
from reffree.formats import load
from reffree.formats.shards import Shards
from reffree.formats.values import is_value
from reffree.metrics.free.pooling import document_pool
from reffree.metrics.free.result import Unsegmented
from reffree.statistics.resampling import DocumentBootstrap
from reffree.util.bounds import check_limit, with_keywords
from reffree.util.errors import InputError, OptionError, Place
from reffree.util.progress import Progress, no_progress

if TYPE_CHECKING:
    from reffree.encoders.ray_actors import Actors


@with_keywords(Encoding)
def score(
    corpus: Corpus | Shards | Any,  # noqa: ANN401  (what `load` takes)
    *,
    metrics: Sequence[str] | None = None,
    embeddings: Vectors | None = None,
    per_document: bool = False,
    per_segment: bool = False,
    unsegmented: Unsegmented = "neutral",
    average: Average = "macro",
    null: int = 0,
    explain: bool = False,
    seed: int = 0,
    short_signature: bool = False,
    memory: int | None = None,
    progress: Progress = no_progress,
    actors: Actors | None = None,
    on_rows: Callable[[Rows], None] | None = None,
    **encoding: Unpack[Encoding],
) -> ScoreTable:
    """Score all systems of a corpus, and its gold where every document has it.

    A document with several annotators' golds is compared with each; its value is the mean.

    Args:
        corpus: from `reffree.load`; or what it takes beside files, such as a data frame or a list
            of documents; or shards, which are read twice and never all in memory.
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
            and the best place for one more (implies ``per_document``).
        seed: of the bootstrap, of the null and of shuffles.
        short_signature: abbreviate the signature.
        memory: bytes that scoring lays out at most, beside vectors; a quarter of those free.
        progress: called as stages start.
        actors: Ray's, who encode and score instead of this process.
        on_rows: is given the documents' rows as they come, in order; the table then has none.
        **encoding: which encoder, and how: see `EncoderOptions`.
    """
    settings = ScoreSettings(
        options=EncoderOptions(**encoding),
        unsegmented=unsegmented,
        average=average,
        seed=seed,
        null=null,
        memory=memory,
        keep_spread=True,
        per_document=per_document,
        per_segment=per_segment,
        explain=explain,
    )
    if is_value(corpus):
        corpus = load(corpus)
    _check(corpus, embeddings, actors, settings)
    options = settings.options
    vectors: Embeddings | None = None
    if isinstance(corpus, Corpus):
        part, embeddings = units_taking_part(corpus, embeddings, options)
        corpus = part.corpus
        if embeddings is not None:
            vectors = corpus_vectors(corpus, embeddings, options, progress)
    remote = None
    if actors is not None:
        from reffree.evaluate.ray import RemoteScoring

        remote = RemoteScoring(actors, metrics, settings)
    plan = Plan.of(corpus, options.context, None if remote is None else remote.missing)
    metric_set = choose_metrics(metrics, plan.counts, seed=seed, offline=options.offline)
    _check_request(plan.counts, metric_set, settings)
    metric_set = metric_set.over(golds_of(plan.blocks))
    if remote is not None:
        blocks = remote.score_all(plan, metric_set, progress)
    else:
        scorer = BlockScorer.of(plan.counts.hypotheses, metric_set, settings, vectors)
        blocks = scorer.score_all(plan.blocks, plan.counts.n_units, progress)
    rows: list[DocumentScores] = []
    scores = Scores.concatenate(_without_rows(blocks, rows.extend if on_rows is None else on_rows))
    has_rows = settings.has_rows and on_rows is None
    return _table(scores, plan, tuple(rows) if has_rows else None, short_signature=short_signature)


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
    blocks = [Corpus.of_checked(each) for each in cut(corpus, lambda each: len(each.units))]
    vectors = None
    if embeddings is not None and metrics.reference_free:
        vectors = corpus_vectors(corpus, embeddings, settings.options, progress)
    settled = metrics.over(golds_of(blocks))
    scorer = BlockScorer.of(tuple(corpus.hypotheses), settled, settings, vectors)
    scored = scorer.score_all(blocks, corpus.n_units, progress)
    return Scores.concatenate(scores for scores, _ in scored)


def check_gold(corpus: Corpus, metrics: MetricSet) -> None:
    """Refuse gold-based metrics of a corpus without any gold, before anything is encoded."""
    n_compared = sum(bool(document.references) for document in corpus)
    _check_gold(metrics, n_compared=n_compared, place=corpus[0].place)


def _without_rows(blocks: Iterable[ScoredBlock], take: Callable[[Rows], None]) -> Iterator[Scores]:
    """Yield the scores of blocks, and hand over the documents' rows."""
    for scores, rows in blocks:
        take(rows)
        yield scores


def _table(
    scores: Scores, plan: Plan, rows: tuple[DocumentScores, ...] | None, *, short_signature: bool
) -> ScoreTable:
    """Average over documents; attach intervals, notes and the signature."""
    counts, settings, embedded = plan.counts, scores.settings, scores.embedded
    bootstrap = DocumentBootstrap(counts.n_documents, np.random.default_rng(settings.seed))
    systems = scores.system_rows(bootstrap, corpus_tests(scores))
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
        signature=signature.short() if short_signature else str(signature),
        corpus=counts.to_dict(plan.n_distinct, embedded),
        systems=systems,
        documents=rows,
        notes=(*plan.notes, *score_notes(scores, counts, systems, incomparable)),
        incomparable=incomparable,
        verdict=verdict(scores, systems, incomparable),
    )


def _check(
    corpus: Corpus | Shards,
    embeddings: Vectors | None,
    actors: Actors | None,
    settings: ScoreSettings,
) -> None:
    """Refuse what cannot be scored."""
    if not isinstance(corpus, (Corpus, Shards)):
        raise InputError(
            f"a {type(corpus).__name__} to score",
            expected="a Corpus",
            remedy='load it first: reffree.score(reffree.load("corpus.jsonl"))',
        )
    if settings.seed < 0 or settings.null < 0:
        raise OptionError(
            f"seed {settings.seed} and null {settings.null}",
            expected="0 or more",
            remedy="use whole numbers that are not negative",
        )
    if embeddings is not None and (actors is not None or isinstance(corpus, Shards)):
        raise OptionError(
            "embeddings beside shards or actors",
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
    if (settings.null or settings.explain or settings.per_segment) and not metrics.reference_free:
        raise OptionError(
            f"only gold-based metrics ({', '.join(metrics.names)})",
            expected="a reference-free one for the chance test, explanations or segments",
            remedy="add one, such as arp_pair, or leave those options out",
        )
    if settings.null:
        refuse_medians(metrics, "--null, which adds up draws over documents")
    _check_gold(metrics, n_compared=counts.n_compared, place=counts.first)


def refuse_medians(metrics: MetricSet, what: str) -> None:
    """Refuse medians over documents where only means can be tested."""
    for name, metric in metrics.reference_free.items():
        if document_pool(metric) == "median":
            raise OptionError(
                f"{name!r} with {what}",
                expected="pool_d=mean or pool_d=length",
                remedy="leave one of the two out",
            )


def _check_gold(metrics: MetricSet, *, n_compared: int, place: Place) -> None:
    """Refuse gold-based metrics of a corpus without any gold."""
    if metrics.gold_based and not n_compared:
        raise InputError(
            f"no gold to compare with, as {', '.join(metrics.gold_based)} must",
            expected="a gold segmentation in the corpus",
            remedy='add "gold" to its documents, or --system gold=FILE, or choose other metrics',
            place=place,
        )
