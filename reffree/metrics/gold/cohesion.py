"""Lexical cohesion of texts by static word vectors (Ocampo Diaz & Ouyang 2024, §3.2-3.3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reffree.metrics.gold import sed_kernel
from reffree.metrics.gold.sed_kernel import Words
from reffree.util.arrays import Booleans, Floats, Integers
from reffree.util.errors import InputError, shorten

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
    numbers = {
        word: i for i, word in enumerate(w for w, k in zip(distinct, known, strict=True) if k)
    }
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
        raise InputError(
            f"NaN or infinity in the vector of {shorten(words[int(np.argmax(broken))])!r}",
            expected="finite numbers",
            remedy=f"use other word vectors than {vectors.name}",
        )
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
