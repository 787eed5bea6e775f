"""Score every system of a corpus: embed, score, average, attach intervals and a signature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reffree.corpus import Corpus
from reffree.encoders.device import choose_device, scoring_device
from reffree.encoders.embed import Embeddings, distinct_texts, embed
from reffree.encoders.open import open_encoder
from reffree.encoders.precomputed import from_arrays
from reffree.errors import InputError
from reffree.scoring.engine import RawScores, Unsegmented, score_documents
from reffree.scoring.metrics import Metric, parse_metrics, spelling
from reffree.segmentation import Segmentation
from reffree.study.bootstrap import MIN_DOCUMENTS, DocumentBootstrap
from reffree.study.signature import Signature
from reffree.study.table import CorpusScore, DocumentScores, PartScore, ScoreTable, SystemScores

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Called with a stage and its size; yields a function that is told how many were just done."""

Floats = NDArray[np.float64]


def no_progress(stage: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    """Show nothing."""
    return nullcontext(lambda done: None)


def score(
    corpus: Corpus,
    *,
    metrics: Sequence[str] | None = None,
    encoder: str | None = None,
    embeddings: Sequence[ArrayLike] | Embeddings | None = None,
    per_document: bool = False,
    per_segment: bool = False,
    unsegmented: Unsegmented = "neutral",
    seed: int = 0,
    short_signature: bool = False,
    device: str = "auto",
    batch_tokens: int | None = None,
    offline: bool = False,
    cache: bool = True,
    cache_dir: Path | str | None = None,
    progress: Progress = no_progress,
) -> ScoreTable:
    """Score all systems of a corpus, and its gold where every document has it.

    Args:
        corpus: from `reffree.load`.
        metrics: names such as ``arp_pair`` or ``arp_std:p=1``; all by default.
        encoder: alias, folder or hub id of a model; the packaged MiniLM by default.
        embeddings: one array per document in corpus order, instead of an encoder.
        per_document: also return every document's scores.
        per_segment: also return every segment's scores (implies ``per_document``).
        unsegmented: what a document without a boundary scores: ``neutral`` (raw 0; SegReFree
            skips it), ``skip`` (undefined), ``worst`` (raw -1, SegReFree 10).
        seed: of the bootstrap.
        short_signature: abbreviate the signature.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``.
        batch_tokens: tokens per encoder batch; chosen by device if not given.
        offline: never connect to a model hub.
        cache: keep vectors on disk.
        cache_dir: where, if not in the user's cache folder.
        progress: called as stages start.
    """
    parsed = parse_metrics(metrics)
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
    with progress("Scoring", len(hypotheses) * len(corpus)) as advance:
        raw = score_documents(
            embedded.vectors,
            list(zip(*hypotheses.values(), strict=True)),
            parsed,
            unsegmented=unsegmented,
            keep_segments=per_segment,
            device=scoring_device(chosen),
            names=[document.id for document in corpus.documents],
            progress=advance,
        )
    signature = Signature.of(
        parsed,
        embedded.spec,
        truncated_share=embedded.n_truncated / corpus.n_units,
        unsegmented=unsegmented,
        device=embedded.device,
        seed=seed,
    )
    systems = _systems(hypotheses, raw, parsed, np.random.default_rng(seed))
    incomparable = _incomparable(raw)
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
        documents=_documents(corpus, hypotheses, raw, parsed, unsegmented, per_segment)
        if per_document or per_segment
        else None,
        notes=(*corpus.notes, *_notes(corpus, systems, embedded, unsegmented, incomparable)),
        incomparable=incomparable,
    )


def _systems(
    hypotheses: dict[str, tuple[Segmentation, ...]],
    raw: dict[str, RawScores],
    metrics: Sequence[Metric],
    rng: np.random.Generator,
) -> tuple[SystemScores, ...]:
    n_documents = len(next(iter(hypotheses.values())))
    bootstrap = DocumentBootstrap(n_documents, rng)
    rows = []
    for i, (system, segmentations) in enumerate(hypotheses.items()):
        cells = {}
        for metric in metrics:
            scores = raw[spelling(metric)]
            values, weights, left_out = (
                np.array([float(x[i]) for x in column])
                for column in (scores.documents, scores.weights, scores.left_out)
            )
            cells[spelling(metric)] = _corpus_score(values, weights, left_out, metric, bootstrap)
        rows.append(
            SystemScores(
                system=system,
                segments=sum(map(len, segmentations)),
                unsegmented=sum(len(segmentation) == 1 for segmentation in segmentations),
                metrics=cells,
            )
        )
    return tuple(rows)


def _corpus_score(
    raw: Floats, weights: Floats, left_out: Floats, metric: Metric, bootstrap: DocumentBootstrap
) -> CorpusScore:
    defined = ~np.isnan(raw)
    mean = float(np.average(raw[defined], weights=weights[defined])) if defined.any() else None
    loss = metric.orientation.loss
    interval = bootstrap.interval(raw, weights)
    reason = f"fewer than {MIN_DOCUMENTS} documents with a score" if interval is None else None
    low, high = sorted(map(loss, interval)) if interval else (0.0, 0.0)
    return CorpusScore(
        value=None if mean is None else loss(mean),
        raw=mean,
        ci=(low, high) if interval else None,
        ci_reason=reason,
        documents=int(defined.sum()),
        undefined=int((~defined).sum()),
        left_out=int(left_out.sum()),
    )


def _incomparable(raw: dict[str, RawScores]) -> frozenset[str]:
    """Metrics that are defined on different documents for different systems."""
    return frozenset(
        name
        for name, scores in raw.items()
        if any(0 < int(x.isnan().sum()) < len(x) for x in scores.documents)
    )


def _documents(
    corpus: Corpus,
    hypotheses: dict[str, tuple[Segmentation, ...]],
    raw: dict[str, RawScores],
    metrics: Sequence[Metric],
    unsegmented: Unsegmented,
    per_segment: bool,
) -> tuple[DocumentScores, ...]:
    scores = {
        spelling(metric): (metric, [x.tolist() for x in raw[spelling(metric)].documents])
        for metric in metrics
    }
    rows = []
    for d, document in enumerate(corpus.documents):
        for h, (system, segmentations) in enumerate(hypotheses.items()):
            parts = {}
            for name, (metric, values) in scores.items():
                part = _part(metric, values[d][h])
                reason = None
                if part.value is None:
                    reason = (
                        f"no boundary (unsegmented={unsegmented})"
                        if len(segmentations[d]) == 1
                        else "the centroids of all neighbouring segments are equal"
                    )
                segments = (
                    tuple(_part(metric, x) for x in _segments(raw[name], d, h, segmentations[d]))
                    if per_segment
                    else None
                )
                parts[name] = PartScore(part.value, part.raw, reason, segments)
            rows.append(DocumentScores(document.id, system, parts))
    return tuple(rows)


def _segments(raw: RawScores, d: int, h: int, segmentation: Segmentation) -> list[float]:
    return [float(x) for x in raw.segments[d][h][: len(segmentation)]]


def _part(metric: Metric, raw: float) -> PartScore:
    return PartScore(None, None) if raw != raw else PartScore(metric.orientation.loss(raw), raw)


def _notes(
    corpus: Corpus,
    systems: Sequence[SystemScores],
    embedded: Embeddings,
    unsegmented: Unsegmented,
    incomparable: frozenset[str],
) -> list[str]:
    """Say what a reader must know before trusting the numbers."""
    notes = []
    if corpus.n_dropped:
        notes.append(
            f"{corpus.n_dropped} units without text were dropped and the boundaries reindexed."
        )
    if embedded.n_truncated:
        notes.append(
            f"{embedded.n_truncated} of {corpus.n_units} units are longer than the encoder's "
            f"{embedded.spec.max_length} tokens and were truncated."
        )
    n_gold = sum(document.gold is not None for document in corpus.documents)
    if 0 < n_gold < len(corpus):
        notes.append(f"Gold was not scored: only {n_gold} of {len(corpus)} documents have it.")
    for name in systems[0].metrics:
        if name in incomparable:
            listed = ", ".join(f"{row.system} {row.metrics[name].documents}" for row in systems)
            notes.append(
                f"{name}: the systems were scored on different documents ({listed}) and must not "
                "be compared."
            )
    single = [row for row in systems if row.unsegmented]
    if single:
        listed = ", ".join(f"{row.system} {row.unsegmented}" for row in single)
        notes.append(f"Documents without a boundary ({unsegmented}): {listed}.")
    return notes
