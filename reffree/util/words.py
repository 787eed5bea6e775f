"""Words and terms of texts.

A term is the stem of a word in lower case that is no stop word. Words are runs of letters and
digits with their marks, so hyphens and apostrophes part them; the lists of stop words have what
apostrophes leave. Numbers and single letters make no term.

Chinese, Japanese, Thai, Lao, Khmer and Burmese put no spaces between words: there, every two
letters that stand side by side make a word, as is usual in retrieval (a letter that stands alone
is one by itself). Most words of Chinese have two letters; of other pairs, those that straddle words
are as rare as chance has it, and those within a longer word recur when it does.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from reffree.util.arrays import Integers

# fmt: off
Language = Literal[
    "danish", "dutch", "english", "french", "german", "italian", "norwegian", "portuguese",
    "russian", "spanish", "swedish", "turkish",
]
# fmt: on
STOP_WORDS: dict[Language, tuple[str, ...]] = {
    language: tuple(words.split())
    for language, words in json.loads(
        (Path(__file__).parents[1] / "resources" / "stop_words.json").read_text("utf-8")
    )["words"].items()
}
"""NLTK's lists, of function words; that of English has 179."""

WORD = re.compile(r"[^\W_]+")
PLAIN = re.compile("[\0-\u02ff\u0370-\u0482\u048a-\u0590\u10a0-\u10ff\u1e00-\u20cf\uac00-\ud7a3]*")
"""Texts of Latin, Greek, Cyrillic and Korean letters without marks: there `WORD` finds what
`_patterns` do, in a sixth of the time."""

# Letters that the Unicode line breaking algorithm would need a dictionary for (SA) are those of
# Thai, Lao, Khmer, Burmese and their neighbours; the prolonged sound mark is of both kana.
_UNSPACED = r"[[\p{Han}\p{Hiragana}\p{Katakana}ー\p{Line_Break=SA}]&&[\p{L}\p{Nl}]]"
_LETTER = rf"[[\p{{L}}\p{{N}}]--{_UNSPACED}]"
NO_TERM = -1


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """The terms of one document in order; units and blocks of them are slices."""

    ids: Integers  # (t,) from 0 to n_distinct - 1
    n_distinct: int
    places: Integers  # (t,) words before each term, those that make no term among them
    edges: Integers  # (n + 1,) terms before each unit, and all
    word_edges: Integers  # (n + 1,) words before each unit, and all

    @property
    def n_units(self) -> int:
        """Units of the document."""
        return len(self.edges) - 1


class Lexicon(dict[str, int]):
    """Word in lower case → the number of its term, given out when first asked for."""

    def __init__(self, language: Language) -> None:
        """Take the stop words and the stemmer of a language."""
        super().__init__()
        self._stop_words = frozenset(STOP_WORDS[language])
        self._stem = _stemmer(language)
        self._numbers: dict[str, int] = {}

    def __missing__(self, word: str) -> int:
        """Look a word up for the first time."""
        number = NO_TERM
        if len(word) > 1 and not word.isnumeric() and word not in self._stop_words:
            number = self._numbers.setdefault(self._stem(word), len(self._numbers))
        self[word] = number
        return number

    def terms(self, units: Iterable[str]) -> Terms:
        """Find the terms of a document's units and number them anew, from 0 without gaps."""
        numbers: list[int] = []
        word_edges = [0]
        for unit in units:
            numbers += [self[word] for word in words_of(unit)]
            word_edges.append(len(numbers))
        every = np.array(numbers, dtype=np.int64)
        places = np.flatnonzero(every != NO_TERM)
        distinct, ids = np.unique(every[places], return_inverse=True)
        return Terms(
            ids=ids.astype(np.int64),
            n_distinct=len(distinct),
            places=places.astype(np.int64),
            edges=np.searchsorted(places, word_edges).astype(np.int64),
            word_edges=np.array(word_edges, dtype=np.int64),
        )


@cache
def _stemmer(language: Language) -> Callable[[str], str]:
    """Return a language's stemmer, for English that of Porter (1980); it stems a word once."""
    import snowballstemmer  # type: ignore[import-untyped]

    found = snowballstemmer.stemmer("porter" if language == "english" else language)
    return cache(found.stemWord)


@cache
def english() -> Lexicon:
    """Return the English words read so far."""
    return Lexicon("english")


def language_of(texts: Iterable[str]) -> Language | None:
    """Return the language whose stop words are most frequent; None where it is not clear.

    Clear is a fifth of the words, 20 of them or more, and twice as many as English has.

    >>> language_of(["Der Hund und die Katze sind nicht in dem Haus."] * 4)
    'german'
    """
    words = Counter(word for text in texts for word in words_of(text))
    found = {
        language: sum(words[word] for word in set(stop_words))
        for language, stop_words in STOP_WORDS.items()
    }
    best = max(found, key=lambda language: found[language])
    is_frequent = found[best] >= max(20, words.total() / 5)
    is_clear = best == "english" or found[best] >= 2 * found["english"]
    return best if is_frequent and is_clear else None


def words_of(text: str) -> list[str]:
    """Words in lower case, in order.

    >>> words_of("The U.S. didn't re-open John’s 2 cafés.")
    ['the', 'u', 's', 'didn', 't', 're', 'open', 'john', 's', '2', 'cafés']
    >>> words_of("蜜蜂会跳舞, say 2 个 हिन्दी")
    ['蜜蜂', '蜂会', '会跳', '跳舞', 'say', '2', '个', 'हिन्दी']
    """
    if text.isascii():
        return WORD.findall(text.lower())
    # Stop words and stemmers know composed letters only.
    composed = unicodedata.normalize("NFC", text.lower())
    if PLAIN.fullmatch(composed):
        return WORD.findall(composed)
    words: list[str] = []
    word_or_run, letter = _patterns()
    for found in word_or_run.finditer(composed):
        if (run := found["run"]) is None:
            words.append(found.group())
        else:
            letters = letter.findall(run)
            words += [a + b for a, b in pairwise(letters)] or letters
    return words


@cache
def _patterns() -> tuple[Any, Any]:
    """Words and runs of letters that no spaces part; a letter with its marks."""
    import regex

    word = rf"(?V1)(?:{_LETTER}\p{{M}}*)+|(?P<run>(?:{_UNSPACED}\p{{M}}*)+)"
    return regex.compile(word), regex.compile(r"[\p{L}\p{Nl}]\p{M}*")
