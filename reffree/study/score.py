"""Score every system of a corpus: embed, score, average, attach intervals and a signature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np

from reffree.corpus import Corpus
from reffree.encoders.embed import distinct_texts
from reffree.encoders.options import EncoderOptions, Encoding
from reffree.errors import InputError, OptionError
from reffree.scoring.engine import Unsegmented
from reffree.study.columns import Average
from reffree.study.metrics import choose_metrics
from reffree.study.notes import score_notes
from reffree.study.progress import Progress, no_progress
from reffree.study.rows import document_rows, system_rows
from reffree.study.scored import score_columns
from reffree.study.signature import Signature
from reffree.study.table import ScoreTable
from reffree.study.vectors import Vectors, units_taking_part


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
        memory: bytes that scoring may use; a quarter of what is free by default.
        progress: called as stages start.
        **encoding: which encoder, and how: see `EncoderOptions`.
    """
    _check(corpus, seed, null)
    options = EncoderOptions(**encoding)
    part, embeddings = units_taking_part(corpus, embeddings, options)
    corpus = part.corpus
    hypotheses = corpus.hypotheses
    chosen = choose_metrics(metrics, corpus, seed=seed, offline=options.offline)
    if (null or explain or per_segment) and not chosen.reference_free:
        raise OptionError(
            f"only gold-based metrics ({', '.join(chosen.names)})",
            expected="a reference-free one for the chance test, explanations or segments",
            remedy="add one, such as arp_pair, or leave those options out",
        )
    scored = score_columns(
        corpus,
        chosen,
        options,
        embeddings=embeddings,
        unsegmented=unsegmented,
        average=average,
        seed=seed,
        memory=memory,
        progress=progress,
        keep_segments=per_segment,
        null=null,
    )
    columns, embedded, task = scored.columns, scored.embedded, scored.reference_free
    documents = None
    if per_document or per_segment or explain:
        ids = [document.id for document in corpus.documents]
        documents = document_rows(columns, hypotheses, ids, per_segment=per_segment)
        documents = task.explained(documents) if task and explain else documents
    signature = Signature.of(
        chosen,
        corpus,
        embedded,
        unsegmented=unsegmented,
        average=average,
        seed=seed,
        null=null,
        dropped=options.dropped,
    )
    systems = system_rows(columns, hypotheses, np.random.default_rng(seed))
    incomparable = frozenset(name for name, column in columns.items() if not column.is_comparable)
    notes = score_notes(corpus, systems, embedded, incomparable, unsegmented, chosen)
    return ScoreTable(
        signature=signature.short() if short_signature else str(signature),
        corpus={
            "documents": len(corpus),
            "units": corpus.n_units,
            "dropped_units": corpus.n_dropped,
            "distinct_units": len(distinct_texts(corpus)),
            "truncated_units": 0 if embedded is None else embedded.n_truncated,
        },
        systems=systems,
        documents=documents,
        notes=(*corpus.notes, *notes),
        incomparable=incomparable,
    )


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
    if not corpus.hypotheses:
        raise InputError(
            "no segmentation to score: no systems, and no gold in every document",
            expected="at least one system or a complete gold",
            remedy='add "systems" to the corpus, or pass --system NAME=FILE',
            place=corpus.documents[0].place,
        )
