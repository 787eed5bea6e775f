"""Gold-based metrics of every system on every document that has gold."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from reffree.corpus import Corpus
from reffree.errors import InputError, Place
from reffree.evaluate.columns import Average, GoldBased
from reffree.masses import mass_matrix
from reffree.reference.metric import GoldMetric, count_pairs
from reffree.reference.pairs import Pairs
from reffree.segmentation import Segmentation


def score_against_gold(
    corpus: Corpus,
    hypotheses: dict[str, tuple[Segmentation, ...]],
    metrics: dict[str, GoldMetric],
    average: Average,
) -> dict[str, GoldBased]:
    """Compare every hypothesis with its document's gold, or with every annotator's."""
    documents = corpus.documents
    has_gold = np.array([bool(document.references) for document in documents])
    if not has_gold.any():
        raise no_gold(metrics, documents[0].place)
    rows = [
        (d, s, segmentations[d], reference)
        for d, document in enumerate(documents)
        for reference in document.references
        for s, segmentations in enumerate(hypotheses.values())
    ]
    pairs = Pairs(
        mass_matrix([hypothesis for _, _, hypothesis, _ in rows], None),
        mass_matrix([reference for _, _, _, reference in rows], None),
        [documents[d].units for d, _, _, _ in rows],
    )
    at = np.array([d for d, _, _, _ in rows]), np.array([s for _, s, _, _ in rows])
    shape = (len(documents), len(hypotheses))
    columns = {}
    for name, metric in metrics.items():
        counts = count_pairs(metric, pairs)
        values = metric.value(counts)
        total, number = np.zeros(shape), np.zeros(shape)
        np.add.at(total, at, np.nan_to_num(values))
        np.add.at(number, at, ~np.isnan(values))
        summed = np.zeros((*shape, counts.shape[1]))
        np.add.at(summed, at, counts)
        means = np.divide(total, number, out=np.full(shape, np.nan), where=number > 0)
        columns[name] = GoldBased(metric, average, means, summed, has_gold)
    return columns


def no_gold(metrics: Iterable[str], place: Place) -> InputError:
    """Say that gold-based metrics need a gold."""
    return InputError(
        f"no gold to compare with, as {', '.join(metrics)} must",
        expected="a gold segmentation in the corpus",
        remedy='add "gold" to its documents, or --system gold=FILE, or choose other metrics',
        place=place,
    )
