"""TextSeg: the most probable segmentation under word probabilities of its own segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from reffree.segmentation import Segmentation
from reffree.segmenters.base import Inputs
from reffree.segmenters.textseg_kernel import cheapest_path, cheapest_path_of
from reffree.segmenters.words import (
    BoundaryCount,
    check_count,
    check_language,
    terms_of,
    wanted_boundaries,
)
from reffree.words import Language, Terms


@dataclass(frozen=True, slots=True)
class TextSeg:
    r"""The segmentation S with the lowest cost C(S) (Utiyama & Isahara 2001, §2–3).

    .. math:: C(S) = \sum_i \Big( \log n
              + \sum_j \log \frac{n_i + d}{f_i(w_j) + 1} \Big)

    over the segments i and the terms j in each: n terms in the document, d of them distinct, n_i in
    the segment, f_i of them the same. The second sum are Laplace-smoothed probabilities of the
    terms given their segment, log n is the prior of one more segment. The cheapest path is found
    exactly, by dynamic programming over the gaps between units.

    ``k`` boundaries, or with ``auto`` as many as the cheapest path has; ``gold`` is for oracles. A
    document of ``k`` units or fewer has a boundary after every unit.

    A unit without terms costs the same on both sides of a boundary: it goes to the later segment. A
    document without terms is one segment.
    """

    k: BoundaryCount = "auto"
    language: Language = "english"
    name: ClassVar[str] = "textseg"
    needs_embeddings: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse numbers of boundaries and languages that do not exist."""
        check_count(self.k, self.name)
        check_language(self.language)

    def __call__(self, inputs: Inputs) -> tuple[Segmentation, ...]:
        """Segment every document."""
        wanted = wanted_boundaries(inputs, self.k, self.name)
        every = terms_of(inputs.corpus, self.language)
        return tuple(segment(terms, k) for terms, k in zip(every, wanted, strict=True))


def segment(terms: Terms, k: int | None) -> Segmentation:
    """Find the cheapest segmentation, of those with k boundaries if k is given."""
    if k is not None:
        gaps = cheapest_path_of(terms.ids, terms.n_distinct, terms.edges, k).tolist()
    else:
        came_from = cheapest_path(terms.ids, terms.n_distinct, terms.edges)
        gaps = []
        gap = int(came_from[-1])
        while gap > 0:
            gaps.append(gap)
            gap = int(came_from[gap])
    return Segmentation.from_boundaries(gaps, terms.n_units)
