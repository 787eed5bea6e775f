"""Score every system of a corpus: embed, score, average, attach intervals and a signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike

from reffree.corpus import Corpus
from reffree.encoders.device import choose_device, scoring_device
from reffree.encoders.embed import Embeddings, distinct_texts, embed
from reffree.encoders.open import open_encoder
from reffree.encoders.precomputed import from_arrays
from reffree.errors import InputError, OptionError, counted
from reffree.scoring.attribution import explain_document
from reffree.scoring.engine import Unsegmented, score_documents
from reffree.scoring.metrics import parse_metrics
from reffree.study.aggregate import Scored
from reffree.study.null import NullTests, against_null
from reffree.study.signature import Signature
from reffree.study.table import DocumentScores, ScoreTable, SystemScores

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Called with a stage and its size; yields a function that is told how many were just done."""


def no_progress(stage: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    """Show nothing."""
    return nullcontext(lambda done: None)


def score(
    corpus: Corpus,
    *,
    metrics: Sequence[str] | None = None,
    encoder: str | None = None,
    embeddings: Sequence[ArrayLike] | Mapping[str, ArrayLike] | Embeddings | None = None,
    per_document: bool = False,
    per_segment: bool = False,
    unsegmented: Unsegmented = "neutral",
    null: int = 0,
    explain: bool = False,
    seed: int = 0,
    short_signature: bool = False,
    device: str = "auto",
    batch_tokens: int | None = None,
    offline: bool = False,
    cache: bool = True,
    cache_dir: Path | str | None = None,
    memory: int | None = None,
    progress: Progress = no_progress,
) -> ScoreTable:
    """Score all systems of a corpus, and its gold where every document has it.

    Args:
        corpus: from `reffree.load`.
        metrics: names such as ``arp_pair`` or ``arp_std:p=1``; all but ``sag`` by default.
        encoder: alias, folder or hub id of a model; the packaged MiniLM by default.
        embeddings: one array per document, in corpus order or by id, instead of an encoder.
        per_document: also return every document's scores.
        per_segment: also return every segment's scores (implies ``per_document``).
        unsegmented: what a document without a boundary scores: ``neutral`` (raw 0; SegReFree
            skips it), ``skip`` (undefined), ``worst`` (raw -1, SegReFree 10).
        null: random arrangements of the same segment lengths to hold every score against, giving
            z and p per document and per system; 0 for none.
        explain: also return, for every boundary, what it contributes and where it would be better,
            and the best place for one more (implies ``per_document``).
        seed: of the bootstrap, of the null and of shuffles.
        short_signature: abbreviate the signature.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``.
        batch_tokens: tokens per encoder batch; chosen by device if not given.
        offline: never connect to a model hub.
        cache: keep vectors on disk.
        cache_dir: where, if not in the user's cache folder.
        memory: bytes that scoring may use; a quarter of what is free by default.
        progress: called as stages start.
    """
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
    parsed = parse_metrics(metrics, seed)
    if not parsed:
        raise InputError(
            "no metrics", expected="at least one", remedy="leave metrics out to get all of them"
        )
    hypotheses = corpus.hypotheses
    if not hypotheses:
        raise InputError(
            "no segmentation to score: no systems, and no gold in every document",
            expected="at least one system or a complete gold",
            remedy='add "systems" to the corpus, or pass --system NAME=FILE',
            place=corpus.documents[0].place,
        )
    chosen = choose_device(device)
    if isinstance(embeddings, Embeddings):
        embedded = embeddings
    elif embeddings is not None:
        embedded = from_arrays(corpus, embeddings)
    else:
        opened = open_encoder(
            encoder,
            device=chosen,
            batch_tokens=batch_tokens,
            offline=offline,
            use_cache=cache,
            cache_dir=None if cache_dir is None else Path(cache_dir),
        )
        texts = distinct_texts(corpus)
        with progress("Encoding", len(texts)) as advance:
            embedded = embed(corpus, opened, str(chosen), texts, advance)
    ids = [document.id for document in corpus.documents]
    scoring = scoring_device(chosen)
    with progress("Scoring", len(hypotheses) * len(corpus)) as advance:
        raw = score_documents(
            embedded.vectors,
            list(zip(*hypotheses.values(), strict=True)),
            parsed,
            keep_segments=per_segment,
            unsegmented=unsegmented,
            device=scoring,
            names=ids,
            memory=memory,
            progress=advance,
        )
    nulls = NullTests({}, {})
    if null:
        with progress("Null", len(hypotheses) * len(corpus) * null) as advance:
            nulls = against_null(
                embedded.vectors,
                ids,
                hypotheses,
                raw,
                parsed,
                draws=null,
                seed=seed,
                unsegmented=unsegmented,
                device=scoring,
                memory=memory,
                progress=advance,
            )
    signature = Signature.of(
        parsed,
        embedded.spec,
        truncated_share=embedded.n_truncated / corpus.n_units,
        unsegmented=unsegmented,
        device=embedded.device,
        seed=seed,
        null=null,
    )
    scored = Scored(hypotheses, raw, parsed, nulls, unsegmented)
    documents = None
    if per_document or per_segment or explain:
        documents = scored.documents(ids, per_segment=per_segment)
    if explain and documents is not None:
        with progress("Explaining", len(corpus)) as advance:
            documents = _explained(documents, corpus, embedded, scored, scoring, advance)
    systems = scored.systems(np.random.default_rng(seed))
    return ScoreTable(
        signature=signature.short() if short_signature else str(signature),
        corpus={
            "documents": len(corpus),
            "units": corpus.n_units,
            "dropped_units": corpus.n_dropped,
            "distinct_units": embedded.n_distinct,
            "truncated_units": embedded.n_truncated,
        },
        systems=systems,
        documents=documents,
        notes=(*corpus.notes, *_notes(corpus, systems, embedded, scored)),
        incomparable=scored.incomparable,
    )


def _explained(
    rows: Sequence[DocumentScores],
    corpus: Corpus,
    embedded: Embeddings,
    scored: Scored,
    device: torch.device,
    advance: Callable[[int], None],
) -> tuple[DocumentScores, ...]:
    """Add the explanation of every boundary, and the text it stands in."""
    explained = []
    by_document = iter(rows)
    for d, document in enumerate(corpus.documents):
        explanations = explain_document(
            embedded.vectors[d],
            [segmentations[d] for segmentations in scored.hypotheses.values()],
            scored.metrics,
            unsegmented=scored.unsegmented,
            device=device,
            name=document.id,
        )
        for explanation in explanations:
            row = next(by_document)
            explained.append(replace(row, units=document.units, explanations=explanation))
        advance(1)
    return tuple(explained)


def _notes(
    corpus: Corpus,
    systems: Sequence[SystemScores],
    embedded: Embeddings,
    scored: Scored,
) -> list[str]:
    """Say what a reader must know before trusting the numbers."""
    notes = []
    if corpus.n_dropped:
        dropped = counted(corpus.n_dropped, "unit")
        notes.append(f"{dropped} without text dropped, the boundaries reindexed.")
    if embedded.n_truncated:
        notes.append(
            f"{embedded.n_truncated:,} of {counted(corpus.n_units, 'unit')} cut off at the "
            f"encoder's {embedded.spec.max_length} tokens."
        )
    n_gold = sum(document.gold is not None for document in corpus.documents)
    if 0 < n_gold < len(corpus):
        notes.append(f"Gold was not scored: only {n_gold} of {len(corpus)} documents have it.")
    differing: dict[str, list[str]] = {}
    for name in systems[0].metrics:
        if name in scored.incomparable:
            listed = ", ".join(f"{row.system} {row.metrics[name].documents}" for row in systems)
            differing.setdefault(listed, []).append(name)
    for listed, names in differing.items():
        notes.append(
            f"{', '.join(names)}: the systems were scored on different documents ({listed}) and "
            "must not be compared."
        )
    single = [row for row in systems if row.unsegmented]
    if single:
        listed = ", ".join(f"{row.system} {row.unsegmented}" for row in single)
        notes.append(f"Documents without a boundary ({scored.unsegmented}): {listed}.")
    return notes
