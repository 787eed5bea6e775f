"""Score every system of a corpus: embed, score, average, attach intervals and a signature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Unpack

from reffree.bounds import check_limit
from reffree.corpus import Corpus
from reffree.encoders.embed import (
    Embeddings,
    Vectors,
    corpus_vectors,
    distinct_texts,
    units_taking_part,
)
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.encoders.sentence_transformer import open_encoder
from reffree.errors import InputError, OptionError
from reffree.evaluate.aggregate import Gathered
from reffree.evaluate.blocks import BlockScores, Settings, block_vectors, cut, score_block
from reffree.evaluate.columns import Average
from reffree.evaluate.corpus_counts import Survey
from reffree.evaluate.gold import no_gold
from reffree.evaluate.metric_set import Chosen, choose_metrics
from reffree.evaluate.table import DocumentScores, ScoreTable
from reffree.progress import Progress, no_progress
from reffree.scoring.engine import Unsegmented


def score(
    corpus: Corpus,
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
    **encoding: Unpack[Encoding],
) -> ScoreTable:
    """Score all systems of a corpus, and its gold where every document has it.

    A document with several annotators' golds is compared with each; its value is the mean.

    Args:
        corpus: from `reffree.load`.
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
        **encoding: which encoder, and how: see `EncoderOptions`.
    """
    _check(corpus, seed, null)
    options = EncoderOptions(**encoding)
    part, given = units_taking_part(corpus, embeddings, options)
    corpus = part.corpus
    survey = Survey.of(corpus)
    chosen = choose_metrics(metrics, survey, seed=seed, offline=options.offline)
    settings = Settings(
        metrics=chosen.names,
        hypotheses=survey.hypotheses,
        options=options,
        unsegmented=unsegmented,
        average=average,
        seed=seed,
        null=null,
        memory=memory,
        per_document=per_document,
        per_segment=per_segment,
        explain=explain,
    )
    check_request(survey, chosen, settings)
    gathered = Gathered(chosen, settings)
    rows: list[DocumentScores] = []
    for block in _scored_blocks(corpus, given, chosen, settings, progress):
        gathered.add(block)
        rows += block.rows
    return gathered.table(
        survey,
        len(distinct_texts(corpus)),
        corpus.notes,
        tuple(rows) if settings.has_rows else None,
        short_signature=short_signature,
    )


def _scored_blocks(
    corpus: Corpus,
    given: Vectors | None,
    chosen: Chosen,
    settings: Settings,
    progress: Progress,
) -> Iterator[BlockScores]:
    """Encode and score a block at a time; of a corpus of one block every stage is shown."""
    options = settings.options
    vectors = None if given is None else corpus_vectors(corpus, given, options, progress)
    encoder = open_encoder(options) if vectors is None and chosen.reference_free else None
    blocks = list(cut(range(len(corpus)), lambda d: len(corpus[d].units)))
    is_one = len(blocks) == 1
    inner = progress if is_one else no_progress
    with (no_progress if is_one else progress)("Scoring", corpus.n_units) as advance:
        for positions in blocks:
            block = Corpus(corpus.documents[positions[0] : positions[-1] + 1])
            made = None
            if encoder is not None:
                made = block_vectors(block, encoder, options, inner)
            elif vectors is not None and chosen.reference_free:
                made = _slice(vectors, positions[0], positions[-1] + 1)
            yield score_block(block, made, chosen, settings, inner)
            advance(block.n_units)


def _slice(vectors: Embeddings, start: int, stop: int) -> Embeddings:
    """Return the vectors of some documents; units cut off are counted once, with the first."""
    n_truncated = 0 if start else vectors.n_truncated
    return replace(vectors, vectors=vectors.vectors[start:stop], n_truncated=n_truncated)


def check_request(survey: Survey, chosen: Chosen, settings: Settings) -> None:
    """Refuse metrics and options that do not go together, and a corpus with nothing to score."""
    if not survey.hypotheses:
        raise InputError(
            "no segmentation to score: no systems, and no gold in every document",
            expected="at least one system or a complete gold",
            remedy='add "systems" to the corpus, or pass --system NAME=FILE',
            place=survey.first,
        )
    check_limit("null_draws", settings.null, f"{settings.null:,} draws for --null")
    if (settings.null or settings.explain or settings.per_segment) and not chosen.reference_free:
        raise OptionError(
            f"only gold-based metrics ({', '.join(chosen.names)})",
            expected="a reference-free one for the chance test, explanations or segments",
            remedy="add one, such as arp_pair, or leave those options out",
        )
    if chosen.gold_based and not survey.n_compared:
        raise no_gold(chosen.gold_based, survey.first)


def _check(corpus: Corpus, seed: int, null: int) -> None:
    """Refuse what cannot be scored."""
    if not isinstance(corpus, Corpus):
        raise InputError(
            f"a {type(corpus).__name__} to score",
            expected="a Corpus",
            remedy='load it first: reffree.score(reffree.load("corpus.jsonl"))',
        )
    if seed < 0 or null < 0:
        raise OptionError(
            f"seed {seed} and null {null}",
            expected="0 or more",
            remedy="use whole numbers that are not negative",
        )
