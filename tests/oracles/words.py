"""Words by their definition, letter by letter."""

from __future__ import annotations

import unicodedata

UNSPACED = ("CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


def words_of(text: str) -> list[str]:
    """Runs of letters and digits with marks; pairs of letters where there are no spaces."""
    runs: list[tuple[bool, list[str]]] = []
    may_go_on = False
    for sign in unicodedata.normalize("NFC", text.lower()):
        kind = unicodedata.category(sign)
        if kind[0] == "M" and may_go_on:
            runs[-1][1][-1] += sign
            continue
        if kind[0] not in "LN":
            may_go_on = False
            continue
        name = unicodedata.name(sign)
        is_unspaced = name.startswith(UNSPACED) and (kind[0] == "L" or kind == "Nl")
        if not may_go_on or runs[-1][0] != is_unspaced:
            runs.append((is_unspaced, []))
        runs[-1][1].append(sign)
        may_go_on = True
    words: list[str] = []
    for is_unspaced, letters in runs:
        if not is_unspaced:
            words.append("".join(letters))
        elif len(letters) == 1:
            words += letters
        else:
            words += [letters[i] + letters[i + 1] for i in range(len(letters) - 1)]
    return words
