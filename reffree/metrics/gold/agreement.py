"""How far several annotators agree on the boundaries of the same documents, beyond chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from reffree.data.corpus import Corpus
from reffree.data.masses import mass_matrix
from reffree.data.segmentation import Segmentation
from reffree.metrics.gold.boundary_edits import BoundarySimilarity
from reffree.metrics.gold.metric import count_pairs
from reffree.metrics.gold.pairs import Pairs
from reffree.util.arrays import Floats, Integers
from reffree.util.errors import Place, counted, mistake

Annotations = Mapping[str, Mapping[str, Segmentation]]
"""Segmentations by document, then by annotator."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of annotators by boundary similarity B, and what chance would give.

    ``pi`` and ``kappa`` are None where chance cannot be told from agreement; ``undefined`` has the
    reason.
    """

    pi: float | None
    kappa: float | None
    undefined: str | None
    observed: float
    mean_similarity: float
    expected_pi: float
    expected_kappa: float
    n_documents: int
    n_left_out: int  # documents of fewer than two annotators
    n_annotators: int
    n_pairs: int


def agreement(documents: Annotations, *, n_t: int = 2) -> Agreement:
    r"""Measure the agreement of two or more annotators.

    .. math:: \pi, \kappa = (A_a - A_e) / (1 - A_e)

    after Fournier and Inkpen (2012), with the B of Fournier (2013) in place of their S. Observed
    agreement A_a pools B over all pairs of annotators of all documents (numerators and denominators
    add up); ``mean_similarity`` is the plain mean of B over the same pairs. B gives nothing for
    places that both left empty, so neither does chance; with p = boundaries placed / places, A_e is

    * for multi-π (Fleiss; Scott's π for two): the square of p over all segmentations;
    * for multi-κ (Davies and Fleiss; Cohen's κ for two): the product of two annotators' own p over
      all they segmented, averaged over pairs, each weighted by the places both were shown.

    Annotators may differ between documents: every pair that shares a document is compared there.
    A document of fewer than two annotators is left out and counted. Undefined where nobody placed
    a boundary or everybody placed all. Departs from segeval for π of several documents: segeval
    averages p over documents, where the paper's P_e, like κ's, divides sums.
    """
    kept = {name: given for name, given in documents.items() if len(given) > 1}
    if not kept:
        expected = "the same document segmented by at least two"
        remedy = "give every document as a mapping from annotators to their segmentations"
        raise mistake(None, "no document of two or more annotators", expected, remedy)
    for name, given in kept.items():
        (first, one), *others = given.items()
        for annotator, other in others:
            if other.n_units != one.n_units:
                by = f"{one.n_units} units segmented by {first!r} and {other.n_units}"
                remedy = "check that both annotated the same version of the document"
                place, found = Place(document=name), f"{by} by {annotator!r}"
                raise mistake(place, found, "segmentations of the same units", remedy)
    annotators = {name: i for i, name in enumerate(sorted(set(chain(*kept.values()))))}
    who = np.array([annotators[a] for given in kept.values() for a in given])
    masses = mass_matrix([s for given in kept.values() for s in given.values()], None)
    left, right = _pairs_within([len(given) for given in kept.values()])

    metric = BoundarySimilarity(n_t)
    counts = count_pairs(metric, Pairs(masses[left], masses[right]))
    observed = float(metric.value(counts.sum(0)))
    placed, places = (masses > 0).sum(1) - 1, masses.sum(1) - 1
    rate = _share(np.bincount(who, placed), np.bincount(who, places))[who]
    expected_pi = float(_share(placed.sum(), places.sum())) ** 2
    by_pair = rate[left] * rate[right] * places[left]
    expected_kappa = float(_share(by_pair.sum(), places[left].sum()))
    undefined = None
    if not placed.any():
        undefined = "no annotator placed a boundary"
    elif (placed == places).all():
        undefined = "every annotator placed every boundary"
    return Agreement(
        pi=None if undefined else (observed - expected_pi) / (1 - expected_pi),
        kappa=None if undefined else (observed - expected_kappa) / (1 - expected_kappa),
        undefined=undefined,
        observed=observed,
        mean_similarity=float(metric.value(counts).mean()),
        expected_pi=expected_pi,
        expected_kappa=expected_kappa,
        n_documents=len(kept),
        n_left_out=len(documents) - len(kept),
        n_annotators=len(annotators),
        n_pairs=len(left),
    )


def with_central_gold(corpus: Corpus) -> Corpus:
    """Give documents with several annotators and no gold of their own the central one's.

    That is the annotator whose segmentation has the highest mean boundary similarity to those of
    the others, of equal ones the first. What gold-based metrics compare with stays all of them. A
    corpus that has documents without any gold is returned as it is.
    """
    several = [d for d, each in enumerate(corpus) if each.gold is None and each.golds]
    if not several or not all(document.references for document in corpus):
        return corpus
    documents = list(corpus.documents)
    given = [tuple(documents[d].golds.values()) for d in several]
    masses = mass_matrix([*chain(*given)], None)
    left, right = _pairs_within([*map(len, given)])
    total = np.zeros(len(masses))
    if len(left):
        metric = BoundarySimilarity()
        similarity = metric.value(count_pairs(metric, Pairs(masses[left], masses[right])))
        np.add.at(total, left, similarity)
        np.add.at(total, right, similarity)
    # Rounded, as sums in another order tie.
    parts = np.split(np.round(total, 9), np.cumsum([*map(len, given)])[:-1])
    for d, golds, each in zip(several, given, parts, strict=True):
        documents[d] = replace(documents[d], gold=golds[int(np.argmax(each))])
    note = "gold as a system is the one of its annotators who agrees best with the others"
    return Corpus.of_checked(
        documents, (*corpus.notes, f"{counted(len(several), 'document')}: {note}.")
    )


def _pairs_within(sizes: list[int]) -> tuple[Integers, Integers]:
    """Every two rows of the same document, where rows stand document by document."""
    starts = np.cumsum([0, *sizes[:-1]])
    within = (np.stack(np.triu_indices(n, 1)) for n in sizes)
    left, right = np.concatenate([a + b for a, b in zip(starts, within, strict=True)], axis=1)
    return left, right


def _share(placed: Floats | Integers, places: Floats | Integers) -> Floats:
    """Boundaries per place; none where one unit leaves no place."""
    return placed / np.maximum(1, places)
