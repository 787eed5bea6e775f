"""Two segmentations with one error of the same kind each, as far apart under a metric as can be.

Ocampo Diaz and Ouyang (2024), Section 4.2: two deletions remove different boundaries, two
insertions put a boundary into different places of one segment, two transpositions move one boundary
by a unit, one to either side. Errors at the first segment are left out, as it is mostly an
introduction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Literal, get_args

import numpy as np

from reffree.data.corpus import Corpus
from reffree.data.segmentation import Segmentation
from reffree.metrics.gold.metric import GoldMetric, count_pairs
from reffree.metrics.gold.pairs import Pairs
from reffree.statistics.losses import as_loss
from reffree.util.arrays import Floats
from reffree.util.seeds import rng_for

Kind = Literal["deletion", "insertion", "transposition"]
KINDS: tuple[Kind, ...] = get_args(Kind)

Verdict = Literal["first", "second", "equal"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""What a judge or a metric says of a pair: which is the better one, if any."""

EQUAL = 1e-9


@dataclass(frozen=True, slots=True)
class Contrast:
    """A pair of hypotheses of one document, in random order, and the loss of each by metric."""

    name: str
    corpus: str
    document: str
    kind: Kind
    reference: Segmentation
    first: Segmentation
    second: Segmentation
    losses: dict[str, tuple[float, float]]

    def difference(self, metric: str) -> float:
        """How far apart a metric puts the two."""
        first, second = self.losses[metric]
        return abs(first - second)

    def verdict(self, metric: str) -> Verdict:
        """Which of the two a metric calls better; neither where it is undefined."""
        first, second = self.losses[metric]
        if first < second - EQUAL:
            return "first"
        return "second" if second < first - EQUAL else "equal"


def candidates(reference: Segmentation, kind: Kind, *, first_segment: bool) -> list[list[set[int]]]:
    """Boundaries of hypotheses with one error; any two of a list make a pair.

    >>> candidates(Segmentation((1, 2, 3)), "insertion", first_segment=False)
    [[{1, 2, 3}], [{1, 3, 4}, {1, 3, 5}]]
    """
    own = set(reference.boundaries)
    allowed = reference.boundaries if first_segment else reference.boundaries[1:]
    if kind == "deletion":
        return [[own - {boundary} for boundary in allowed]]
    if kind == "insertion":
        edges = [0, *reference.boundaries, reference.n_units]
        segments = list(pairwise(edges))[0 if first_segment else 1 :]
        return [[own | {place} for place in range(a + 1, b)] for a, b in segments]
    free = set(range(1, reference.n_units)) - own
    return [
        [own - {boundary} | {place} for place in (boundary - 1, boundary + 1)]
        for boundary in allowed
        if {boundary - 1, boundary + 1} <= free
    ]


def contrasts(
    name: str,
    corpus: Corpus,
    kinds: Sequence[Kind],
    by: str,
    metrics: Mapping[str, GoldMetric],
    *,
    first_segment: bool,
    seed: int,
    named: bool,
) -> Iterator[tuple[Kind, Contrast | None]]:
    """The pair of every kind that is farthest apart by one metric, for every gold of a corpus.

    Of pairs as far apart, the one that the other metrics put nearest together. None where there is
    no pair, or none that ``by`` tells apart. ``named``: pairs are called by the corpus too.
    """
    for document in corpus:
        golds = document.golds or ({} if document.gold is None else {"": document.gold})
        for annotator, gold in golds.items():
            of = f"{document.id}@{annotator}" if annotator else document.id
            by_kind = {kind: candidates(gold, kind, first_segment=first_segment) for kind in kinds}
            hypotheses = [
                Segmentation.from_boundaries(sorted(each), gold.n_units)
                for groups in by_kind.values()
                for group in groups
                for each in group
            ]
            losses = {
                key: _losses(metric, hypotheses, gold, document.units)
                for key, metric in metrics.items()
            }
            start = 0
            for kind, groups in by_kind.items():
                sizes = [len(group) for group in groups]
                best = _farthest(start, sizes, losses, by)
                start += sum(sizes)
                if best is None:
                    yield kind, None
                    continue
                # Which comes first says nothing of which is better.
                i, j = best if rng_for(seed, "pairs", of, kind).random() < 0.5 else best[::-1]
                yield (
                    kind,
                    Contrast(
                        name=":".join([*([name] if named else []), of, kind]),
                        corpus=name,
                        document=document.id,
                        kind=kind,
                        reference=gold,
                        first=hypotheses[i],
                        second=hypotheses[j],
                        losses={key: (float(x[i]), float(x[j])) for key, x in losses.items()},
                    ),
                )


def _losses(
    metric: GoldMetric,
    hypotheses: Sequence[Segmentation],
    reference: Segmentation,
    units: Sequence[str],
) -> Floats:
    if not hypotheses:
        return np.zeros(0)
    pairs = Pairs.of(list(hypotheses), reference, units)
    values: Floats = as_loss(metric.value(count_pairs(metric, pairs)), metric.direction)
    return values


def _farthest(
    start: int,
    sizes: Sequence[int],
    losses: Mapping[str, Floats],
    by: str,
) -> tuple[int, int] | None:
    """Numbers of the two hypotheses of one group that differ most; the first is ``start``."""
    best: tuple[tuple[float, float], tuple[int, int]] | None = None
    for size in sizes:
        for i, j in combinations(range(start, start + size), 2):
            apart = {key: abs(float(x[i] - x[j])) for key, x in losses.items()}
            others = sum(x for key, x in apart.items() if key != by and not np.isnan(x))
            merit = round(apart[by] / EQUAL) * EQUAL, -others  # rounding decides nothing
            if apart[by] > EQUAL and (best is None or merit > best[0]):
                best = merit, (i, j)
        start += size
    return None if best is None else best[1]
