"""Many documents, many hypotheses each, all metrics: batches in, raw scores out."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor

from reffree.errors import InputError, Place
from reffree.scoring.layout import Layout
from reffree.scoring.metrics import Metric, parse_metrics, spelling
from reffree.scoring.pairs import TABLE_ELEMENTS, Units
from reffree.scoring.result import MetricScores
from reffree.segmentation import Segmentation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = Tensor | NDArray[np.generic]

Unsegmented = Literal["neutral", "skip", "worst"]
Hypotheses = Sequence[Segmentation | Sequence[int]]

HYPOTHESIS_ELEMENTS = 1 << 20
"""Hypotheses × units scored at a time; some thirty float64 arrays of this size are alive."""

BATCH_ELEMENTS = 1 << 21
"""Units × dimensions of the documents packed together (16 MiB)."""


@dataclass(frozen=True, slots=True)
class RawScores:
    """One metric over all hypotheses of all documents, one tensor per document."""

    documents: list[Tensor]  # (hypotheses,) NaN where undefined
    weights: list[Tensor]  # (hypotheses,) what the document counts for in the corpus mean
    left_out: list[Tensor]  # (hypotheses,) infinite parts that were left out
    segments: list[Tensor]  # (hypotheses, segments) NaN in the padding; empty unless asked for


def score_document(
    embeddings: Array,
    hypotheses: Hypotheses,
    metrics: Sequence[str] | None = None,
    *,
    unsegmented: Unsegmented = "neutral",
) -> dict[str, Tensor]:
    """Raw scores of many segmentations of one document, for training and search loops.

    Args:
        embeddings: one row per unit, any floating dtype, on any device; it is not changed, and no
            gradient flows through the scores.
        hypotheses: one list of masses (or `Segmentation`) each.
        metrics: names as for ``reffree score -m``; all by default.
        unsegmented: what a hypothesis without a boundary scores.

    Returns:
        Metric → float64 tensor, one raw score per hypothesis on the embeddings' device; NaN where
        the score is undefined.

    >>> import numpy as np
    >>> units = np.array([[1, 0], [1, 0.2], [0.9, 0.1], [0, 1], [0.1, 1], [0.2, 0.9], [0.5, 0.5]])
    >>> scores = score_document(units, [[3, 4], [2, 5]], ["arp_pair"])
    >>> [round(score, 6) for score in scores["arp_pair"].tolist()]
    [0.966064, -0.675615]
    """
    parsed = parse_metrics(metrics)
    if not hypotheses:
        device = embeddings.device if isinstance(embeddings, Tensor) else None
        return {spelling(m): torch.empty(0, dtype=torch.float64, device=device) for m in parsed}
    scores = score_documents([embeddings], [hypotheses], parsed, unsegmented=unsegmented)
    return {name: raw.documents[0] for name, raw in scores.items()}


def score_documents(
    embeddings: Sequence[Array],
    hypotheses: Sequence[Hypotheses],
    metrics: Sequence[Metric],
    *,
    unsegmented: Unsegmented = "neutral",
    keep_segments: bool = False,
    device: torch.device | None = None,
    names: Sequence[str] | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> dict[str, RawScores]:
    """Score every hypothesis of every document; ``progress`` is told how many were just done."""
    labels = names or [str(i) for i in range(len(embeddings))]
    documents = [check_embeddings(x, name) for x, name in zip(embeddings, labels, strict=True)]
    masses = [
        check_hypotheses(given, len(document), name)
        for given, document, name in zip(hypotheses, documents, labels, strict=True)
    ]
    results = {
        spelling(metric): RawScores(*([torch.empty(0)] * len(documents) for _ in range(4)))
        for metric in metrics
    }
    for batch in _batches(documents):
        target = device or documents[batch[0]].device
        units = Units([documents[i] for i in batch], target)
        flat = [(slot, m) for slot, i in enumerate(batch) for m in masses[i]]
        parts: dict[str, list[MetricScores]] = {name: [] for name in results}
        step = max(1, HYPOTHESIS_ELEMENTS // units.n_units)
        for start in range(0, len(flat), step):
            slots, chunk = zip(*flat[start : start + step], strict=True)
            layout = Layout.pack(slots, chunk, units.n_units, target)
            sums = units.row_sums(layout, chain.from_iterable(m.requests for m in metrics))
            for metric in metrics:
                scores = _settle_unsegmented(
                    metric(units, layout, sums), layout, metric, unsegmented
                )
                parts[spelling(metric)].append(scores)
            progress(len(chunk))
        counts = [len(masses[i]) for i in batch]
        for name, pieces in parts.items():
            _file(results[name], batch, counts, pieces, keep_segments=keep_segments)
    return results


def _file(
    result: RawScores,
    batch: list[int],
    counts: list[int],
    pieces: list[MetricScores],
    *,
    keep_segments: bool,
) -> None:
    """Hand a batch's flat results back to the documents they belong to."""
    for target, name in (
        (result.documents, "documents"),
        (result.weights, "weights"),
        (result.left_out, "left_out"),
    ):
        flat = torch.cat([getattr(piece, name) for piece in pieces])
        for i, values in zip(batch, torch.split(flat, counts), strict=True):
            target[i] = values
    if keep_segments:
        width = max(piece.segments.shape[1] for piece in pieces)
        padded = [
            torch.nn.functional.pad(x, (0, width - x.shape[1]), value=torch.nan)
            for x in (piece.segments for piece in pieces)
        ]
        for i, rows in zip(batch, torch.split(torch.cat(padded), counts), strict=True):
            result.segments[i] = rows


def _settle_unsegmented(
    scores: MetricScores, layout: Layout, metric: Metric, unsegmented: Unsegmented
) -> MetricScores:
    """Give hypotheses without a boundary what the policy says; undefined under ``skip``."""
    orientation = metric.orientation
    value = {"neutral": orientation.neutral, "skip": None, "worst": orientation.worst}[unsegmented]
    settled = torch.nan if value is None else value
    raw = torch.where(layout.n_segments == 1, settled, scores.documents)
    return replace(scores, documents=raw)


def _batches(documents: list[Tensor]) -> Iterator[list[int]]:
    """Group documents of similar length whose pair tables fit together."""
    batch: list[int] = []
    for i in sorted(range(len(documents)), key=lambda i: (len(documents[i]), i)):
        n, d = documents[i].shape
        size = len(batch) + 1
        same = not batch or (d, documents[batch[0]].device) == (
            documents[batch[0]].shape[1],
            documents[i].device,
        )
        if batch and (size * n * n > TABLE_ELEMENTS or size * n * d > BATCH_ELEMENTS or not same):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def check_embeddings(embeddings: Array, name: str) -> Tensor:
    """Refuse anything but a finite matrix with a row per unit."""
    x = torch.as_tensor(embeddings)
    if x.ndim != 2 or 0 in x.shape:
        raise InputError(
            f"embeddings of shape {tuple(x.shape)}",
            expected="a matrix with one row per unit and at least one column",
            remedy="stack the units' vectors",
            place=Place(document=name),
        )
    if x.is_complex():
        raise InputError(
            f"embeddings of type {x.dtype}",
            expected="real numbers",
            remedy="convert them to float32",
            place=Place(document=name),
        )
    finite = torch.isfinite(x).all(1)
    if not bool(finite.all()):
        unit = int((~finite).nonzero()[0])
        raise InputError(
            f"NaN or infinity in the vector of unit {unit + 1}",
            expected="finite numbers",
            remedy="encode the unit again (half precision overflows on some models)",
            place=Place(document=name),
        )
    return x


def check_hypotheses(given: Hypotheses, n_units: int, name: str) -> list[Sequence[int]]:
    """Refuse hypotheses whose masses are not positive integers that sum to the units."""
    if not given:
        raise InputError(
            "no hypotheses",
            expected="at least one segmentation",
            remedy="give a list of masses such as [[3, 4]]",
            place=Place(document=name),
        )
    masses: list[Sequence[int]] = []
    for i, hypothesis in enumerate(given):
        given_masses = hypothesis.masses if isinstance(hypothesis, Segmentation) else hypothesis
        try:
            checked = tuple(map(operator.index, given_masses))
        except TypeError:
            found = "masses that are not whole numbers"
        else:
            if checked and min(checked) >= 1 and sum(checked) == n_units:
                masses.append(checked)
                continue
            is_positive = bool(checked) and min(checked) >= 1
            found = (
                f"masses that sum to {sum(checked)}"
                if is_positive
                else "a mass below 1 or none at all"
            )
        raise InputError(
            f"hypothesis {i + 1} with {found}",
            expected=f"positive masses that sum to {n_units}, the number of units",
            remedy="run the segmenter again on these units",
            place=Place(document=name),
        )
    return masses
