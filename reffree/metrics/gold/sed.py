"""Segment edit distance: content-aware cost of turning the reference into the hypothesis.

It rests on the lexical cohesion of texts by static word vectors (Ocampo Diaz & Ouyang 2024,
§3.2-3.3).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from reffree.data.segmentation import Segmentation
from reffree.metrics.gold import sed_kernel
from reffree.metrics.gold.metric import GoldMetric, MetricValue
from reffree.metrics.gold.pairs import Pairs, Segmentations, check_text
from reffree.metrics.gold.sed_kernel import Words
from reffree.util.arrays import Booleans, Floats, Integers
from reffree.util.errors import mistake, shorten

Kind = Literal["match", "transposition", "split", "merge"]

ROUNDING = 1e-12
"""How far below the threshold a cosine may be computed and still reach it."""

BLOCK_ELEMENTS = 1 << 22
"""Cosines worked out at a time."""

_FUNCTION_WORDS = """
a an the this that these those each every either neither both all any some no none such another
other others much many more most few fewer less least several enough own same
i me my mine myself you your yours yourself yourselves he him his himself she her hers herself
it its itself we us our ours ourselves they them their theirs themselves one ones oneself
who whom whose which what whatever whoever whichever somebody someone something anybody anyone
anything nobody nothing everybody everyone everything
about above across after against along amid among around as at before behind below beneath beside
besides between beyond by despite down during except for from in inside into like near of off on
onto out outside over past per since through throughout till to toward towards under underneath
until unto up upon via with within without
and but or nor so yet if unless because although though while whereas whether than when whenever
where wherever why how then there here
am is are was were be been being have has had having do does did doing done can could may might
must shall should will would ought cannot not n
s t d m re ve ll don doesn didn isn aren wasn weren hasn haven hadn won wouldn shouldn couldn
mustn needn ain
two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred
thousand million billion
ah eh hello hey hi hm hmm huh mm mmm oh ok okay uh um wow yeah yep yes
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""English words that are no noun, verb, adjective or open-class adverb, and what apostrophes leave.

They stand in for the paper's tagger, which keeps nouns, verbs, adjectives and adverbs only.
"""


class WordVectors(Protocol):
    """Where static word vectors come from."""

    @property
    def name(self) -> str:
        """Say which vectors these are."""
        ...

    @property
    def threshold(self) -> float:
        """Least cosine of two words that counts as cohesion: .7 with the paper's (§3.3, step 2)."""
        ...

    def look_up(self, words: Sequence[str]) -> tuple[Floats, Booleans]:
        """Vectors of lower-case words, (words, d), and which words are known.

        The rows of unknown words are not read.
        """
        ...


def content_words(text: str, left_out: frozenset[str] = FUNCTION_WORDS) -> list[str]:
    """Words that may make a text cohesive: runs of letters and digits, in lower case.

    Left out are the given words and numbers written in digits. Words are not reduced to lemmas:
    vectors put the forms of a word close together.

    >>> content_words("The 3 cities weren't states.")
    ['cities', 'states']
    """
    words = re.findall(r"[^\W_]+", text.lower())
    return [word for word in words if word not in left_out and not word.isnumeric()]


def read_words(
    units: Sequence[str],
    vectors: WordVectors,
    *,
    threshold: float | None = None,
    left_out: frozenset[str] = FUNCTION_WORDS,
) -> Words:
    """Look up the words of a document and find, for each, those that are similar to it.

    Similar are those whose cosine reaches the threshold, by default the vectors' own.

    A word without a vector, or with one of zeros, is unknown: it is left out and counted.
    """
    found = [content_words(unit, left_out) for unit in units]
    distinct = sorted({word for words in found for word in words})
    matrix, known = _look_up(distinct, vectors)
    numbers = {word: i for i, word in enumerate(np.array(distinct)[known].tolist())}
    kept = [[numbers[word] for word in words if word in numbers] for words in found]
    sizes = np.array([len(unit) for unit in kept], dtype=np.int64)
    in_order = np.array([number for unit in kept for number in unit], dtype=np.int32)
    users = np.repeat(np.arange(len(kept), dtype=np.int32), sizes)
    return Words(
        in_order,
        _starts(sizes),
        *_similar_words(matrix, vectors.threshold if threshold is None else threshold),
        _starts(np.bincount(in_order, minlength=len(numbers))),
        users[np.argsort(in_order, kind="stable")],
        n_unknown=sum(map(len, found)) - len(in_order),
    )


def cohesion(
    first: str,
    second: str,
    vectors: WordVectors,
    *,
    threshold: float | None = None,
    left_out: frozenset[str] = FUNCTION_WORDS,
) -> float:
    """Cross-segment lexical cohesion CL of two texts (§3.3).

    CL = 2·xy/(x + y), where x is, over the words of the first text, the mean cosine with the
    closest word of the second, cosines below the threshold counting 0, and y is the reverse.
    Range [0, 1]; 0 where a text has no known word. Unknown words count nowhere, which the paper
    leaves open. Words are those of `content_words`; the paper's are lemmas chosen by a tagger.
    """
    words = read_words([first, second], vectors, threshold=threshold, left_out=left_out)
    return float(sed_kernel.cohesion(words, sed_kernel.make_notes(words), 0, 1, 1, 2, 2, 2))


def _look_up(words: list[str], vectors: WordVectors) -> tuple[Floats, Booleans]:
    """Vectors of length 1 of the known words, and which words those are."""
    if not words:
        return np.zeros((0, 1)), np.zeros(0, dtype=bool)
    matrix, known = vectors.look_up(words)
    given = np.asarray(matrix, dtype=np.float64)
    known = np.array(known, dtype=bool)
    broken = known & ~np.isfinite(given).all(1)
    if broken.any():
        found = f"NaN or infinity in the vector of {shorten(words[int(np.argmax(broken))])!r}"
        raise mistake(None, found, "finite numbers", f"use other word vectors than {vectors.name}")
    length = np.zeros(len(words))
    length[known] = np.linalg.norm(given[known], axis=1)
    known &= length > 0
    return given[known] / length[known, None], known


def _similar_words(
    unit_vectors: Floats, threshold: float
) -> tuple[Integers, NDArray[np.int32], Floats]:
    """Words whose cosine reaches the threshold, most similar first: starts, words, cosines."""
    n = len(unit_vectors)
    step = max(1, BLOCK_ELEMENTS // max(1, n))
    counts = np.zeros(n, dtype=np.int64)
    similar, cosines = [np.zeros(0, dtype=np.int32)], [np.zeros(0)]
    for start in range(0, n, step):
        block = unit_vectors[start : start + step] @ unit_vectors.T
        own = np.arange(len(block))
        block[own, start + own] = 1.0
        row, column = np.nonzero(block >= threshold - ROUNDING)
        cosine = np.minimum(block[row, column], 1.0)
        order = np.lexsort((column, -cosine, row))
        similar.append(column[order].astype(np.int32))
        cosines.append(cosine[order])
        counts[start : start + step] = np.bincount(row, minlength=len(block))
    return _starts(counts), np.concatenate(similar), np.concatenate(cosines)


def _starts(sizes: Integers) -> Integers:
    """Where runs of these sizes start, and the end."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])


@dataclass(frozen=True, slots=True)
class Sed(GoldMetric):
    """Segment edit distance (Ocampo Diaz & Ouyang 2024, §3), reconstructed: no code is public.

    Segments are aligned in order, one with one, one of the reference with several of the
    hypothesis (split) or several with one (merge), each overlapping its partner. With CL the
    cohesion (`cohesion`), r and h segments, S a group, ``|r|`` units:

    - one with one: TC = (1 - CL(r, what h has more)) + CL(r, what h lacks), without empty parts;
    - split: 1 - CL(r, S) · (``|r|`` - ``|S|``)/(``|r|`` - 1) · (1 - mean CL of pairs in S);
    - merge: 1 - CL(h, S) · (``|h|`` - ``|S|``)/(``|h|`` - 1) · mean CL of pairs in S.

    SED is the mean cost of the edits of the alignment of least total cost; of alignments that
    cost the same, of the one with most edits. Pooled: all costs over all edits. Range [0, 2],
    0 for equal segmentations; not symmetric. Undefined where no word of the document has a vector.

    Departs from the print (docs/definitions.md): its factor (``|s|`` - 1)(``|S|`` - 1)/(``|s|``
    - 1) lost a minus. A group has two segments or more, where its pseudocode may try one, and
    words are chosen more simply (`content_words`).
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
            expected, remedy = "a cosine above 0, at most 1", "leave threshold out for its default"
            raise mistake(None, f"threshold {self.threshold}", expected, remedy)

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
    rows = pair.hypothesis[0].copy(), pair.reference[0].copy()
    sides = sed_kernel.read_masses(rows[0]), sed_kernel.read_masses(rows[1])
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
