"""Segment edit distance: content-aware cost of turning the reference into the hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from reffree.data.segmentation import Segmentation
from reffree.metrics.gold import sed_kernel
from reffree.metrics.gold.cohesion import FUNCTION_WORDS, WordVectors, read_words
from reffree.metrics.gold.metric import GoldMetric, MetricValue
from reffree.metrics.gold.pairs import Pairs, Segmentations, check_text
from reffree.metrics.gold.sed_kernel import Words
from reffree.util.arrays import Floats
from reffree.util.errors import InputError

Kind = Literal["match", "transposition", "split", "merge"]


@dataclass(frozen=True, slots=True)
class Sed(GoldMetric):
    """Segment edit distance (Ocampo Diaz & Ouyang 2024, §3), reconstructed: no code is public.

    Segments are aligned in order, one with one, one of the reference with several of the
    hypothesis (split) or several with one (merge), each overlapping its partner. With CL the
    cohesion (`reffree.metrics.gold.cohesion.cohesion`), r and h segments, S a group, ``|r|`` units:

    - one with one: TC = (1 - CL(r, what h has more)) + CL(r, what h lacks), without empty parts;
    - split: 1 - CL(r, S) · (``|r|`` - ``|S|``)/(``|r|`` - 1) · (1 - mean CL of pairs in S);
    - merge: 1 - CL(h, S) · (``|h|`` - ``|S|``)/(``|h|`` - 1) · mean CL of pairs in S.

    SED is the mean cost of the edits of the alignment of least total cost; of alignments that
    cost the same, of the one with most edits. Pooled: all costs over all edits. Range [0, 2],
    0 for equal segmentations; not symmetric. Undefined where no word of the document has a vector.

    Departs from the print (docs/definitions.md): its factor (``|s|`` - 1)(``|S|`` - 1)/(``|s|``
    - 1) lost a minus. A group has two segments or more, where its pseudocode may try one, and
    words are chosen more simply (`reffree.metrics.gold.cohesion.content_words`).
    """

    name = "sed"
    direction = "lower"
    undefined = "no word of the document has a vector"

    needs = frozenset({"gold", "text", "word_vectors"})
    vectors: str = "minilm"
    """The encoder or file that word vectors come from. A word goes through an encoder as a text of
    its own; with ``pieces`` it is the mean of the encoder's input embeddings."""
    pieces: bool = False
    threshold: float | None = None  # least cosine of related words; by default the vectors' own
    table: WordVectors | None = field(default=None, repr=False, metadata={"option": False})
    left_out: frozenset[str] = field(default=FUNCTION_WORDS, repr=False, metadata={"option": False})

    def __post_init__(self) -> None:
        GoldMetric.__post_init__(self)
        if self.threshold is not None and not 0 < self.threshold <= 1:
            raise InputError(
                f"threshold {self.threshold}",
                expected="a cosine above 0, at most 1",
                remedy="leave threshold out for its default",
            )

    def with_vectors(self, table: WordVectors) -> Sed:
        """Return the metric once the word vectors are there."""
        return replace(self, table=table)

    def counts(self, pairs: Pairs) -> Floats:
        """Cost of the alignment, and its edits; both 0 where undefined."""
        counts = np.zeros((len(pairs), 2))
        for units, rows in pairs.documents(self.name):
            words = self.read(units)
            if len(words.numbers):
                part = np.zeros((len(rows), 2))
                sides = pairs.hypothesis[rows], pairs.reference[rows]
                sed_kernel.count_edits(words, sed_kernel.make_notes(words), *sides, part)
                counts[rows] = part
        return counts

    def read(self, units: Sequence[str]) -> Words:
        """Look up the words of a document."""
        assert self.table is not None, "word vectors are to be opened first: with_vectors()"
        return read_words(units, self.table, threshold=self.threshold, left_out=self.left_out)


@dataclass(frozen=True, slots=True)
class Edit:
    """One step of an alignment.

    The terms of a transposition are the cohesion of the reference segment with what the hypothesis
    segment has more (``extra``) and lacks (``missing``), as far as there is such a part; of a
    split or merge ``cohesion`` of the one segment with the group, the share ``unbroken`` of the one
    segment's inner gaps that the group leaves, and the mean cohesion of the group's pairs,
    ``related``.
    """

    kind: Kind
    hypothesis: range  # segments, from 0
    reference: range
    cost: float
    terms: dict[str, float]


@dataclass(frozen=True, slots=True)
class SedAlignment:
    """The alignment that SED rests on."""

    edits: tuple[Edit, ...]
    n_known: int  # words of the document with a vector
    n_unknown: int

    @property
    def cost(self) -> float:
        """Cost of all edits."""
        return sum(edit.cost for edit in self.edits)

    @property
    def value(self) -> float | None:
        """SED, or None where it is undefined."""
        return self.cost / len(self.edits) if self.n_known else None


def sed(
    hypothesis: Segmentations,
    reference: Segmentations,
    units: Sequence[str],
    vectors: WordVectors,
    *,
    threshold: float | None = None,
) -> MetricValue:
    """Segment edit distance over a document's text (`Sed`); `align_segments` gives the edits.

    ``vectors`` come from `reffree.encoders.word_vectors.open_word_vectors`.
    """
    return Sed(threshold=threshold, table=vectors)(hypothesis, reference, units)


def align_segments(
    hypothesis: Segmentation | Sequence[int],
    reference: Segmentation | Sequence[int],
    units: Sequence[str],
    metric: Sed,
) -> SedAlignment:
    """Show which segments SED matches, transposes, splits and merges, and what each costs."""
    pair = Pairs.of([hypothesis], [reference])
    check_text(units, int(pair.n_units[0]))
    words = metric.read(units)
    notes = sed_kernel.make_notes(words)
    # Copies, so that compiled code meets one memory layout only.
    sides = (
        sed_kernel.read_masses(pair.hypothesis[0].copy()),
        sed_kernel.read_masses(pair.reference[0].copy()),
    )
    _, steps = sed_kernel.align(words, notes, *sides)
    steps = steps[:, ::-1]
    edits = [
        _explain(words, notes, *sides, range(h - m, h), range(r - n, r))
        for m, n, h, r in np.concatenate([steps, np.cumsum(steps, axis=1)]).T.tolist()
    ]
    return SedAlignment(tuple(edits), len(words.numbers), words.n_unknown)


def _explain(
    words: Words,
    notes: sed_kernel.Notes,
    hypothesis: sed_kernel.Segments,
    reference: sed_kernel.Segments,
    of_hypothesis: range,
    of_reference: range,
) -> Edit:
    """Terms and cost of aligning these segments."""
    c, d = hypothesis.edges[[of_hypothesis.start, of_hypothesis.stop]].tolist()
    a, b = reference.edges[[of_reference.start, of_reference.stop]].tolist()
    is_split, is_merge = len(of_hypothesis) > 1, len(of_reference) > 1
    kind: Kind
    if is_split or is_merge:
        kind = "split" if is_split else "merge"
        group, side = (of_hypothesis, hypothesis) if is_split else (of_reference, reference)
        sums = np.zeros(4)
        sed_kernel.pair_sums(words, notes, side, group.start, group.stop - 1, sums)
        spans = (c, d, len(group), a, b) if is_split else (a, b, len(group), c, d)
        whole, unbroken, related = sed_kernel.group_terms(words, notes, *spans, sums.sum())
        cost = sed_kernel.group_cost(whole, unbroken, related, is_split)
        terms = {"cohesion": whole, "unbroken": unbroken, "related": related}
    else:
        kind = "match" if (a, b) == (c, d) else "transposition"
        extra, missing = sed_kernel.transposition_terms(words, notes, a, b, c, d)
        cost = sed_kernel.transposition_cost(extra, missing)
        parts = {"extra": extra, "missing": missing}
        terms = {name: value for name, value in parts.items() if not np.isnan(value)}
    return Edit(kind, of_hypothesis, of_reference, cost, terms)
