"""Text that an encoder was not made for, by its script, and for encoders of English its language.

Known of the models that have aliases. A unit is of the script that most of its letters have; a
corpus, of the language whose stop words it has most of.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from reffree.encoders.aliases import ALIASES

LATIN = "Latin"
ENGLISH = "en"
SAMPLE = 500
"""Units that are looked at for their language, spread evenly."""

_SAME = {
    "CJK": "Han",
    **dict.fromkeys(("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HALFWIDTH"), "Kana"),
    "FULLWIDTH": LATIN,
}
"""Scripts that the names of letters begin with otherwise."""

LANGUAGES: dict[str, Mapping[str, Sequence[str]]] = {
    known.model: known.languages for known in ALIASES.values()
}
"""By model: codes of languages by script."""


def unread_units(model: str, units: Sequence[str]) -> dict[str, int]:
    """Count units that a model was not made for, by script or language; none where unknown.

    >>> unread_units("FacebookAI/roberta-base", ["Bees dance.", "蜜蜂会跳舞。", "42"])
    {'Han script': 1}
    """
    made_for = LANGUAGES.get(model)
    if not made_for:
        return {}
    scripts = [main_script(unit) for unit in units]
    found = Counter(f"{each} script" for each in scripts if each and each not in made_for)
    if made_for.get(LATIN) == [ENGLISH]:
        latin = [unit for unit, each in zip(units, scripts, strict=True) if each == LATIN]
        language = _foreign_language(latin[:: len(latin) // SAMPLE + 1])
        if language is not None:
            found[language] = len(latin)
    return dict(found)


def readers(scripts: Iterable[str]) -> list[str]:
    """Return the aliases of the models that were made for many languages in all these scripts."""
    wanted = [each.removesuffix(" script") for each in scripts if each.endswith(" script")]
    return [
        alias
        for alias, known in ALIASES.items()
        if len(known.languages) > 1 and all(script in known.languages for script in wanted)
    ]


def main_script(text: str) -> str:
    """Return the script of most letters; empty without any.

    >>> main_script("GPT说话"), main_script("…")
    ('Latin', '')
    """
    if text.isascii():
        return LATIN if any(map(str.isalpha, text)) else ""
    scripts = Counter(script for letter in text if (script := _script_of(letter)))
    return max(scripts, key=lambda script: scripts[script], default="")


@cache
def _script_of(sign: str) -> str:
    """Return the script that a letter's name begins with; empty for what is no letter."""
    if not unicodedata.category(sign).startswith("L"):
        return ""
    first = unicodedata.name(sign, "").partition(" ")[0]
    return _SAME.get(first, first.capitalize())


def _foreign_language(units: Sequence[str]) -> str | None:
    from reffree.util.words import language_of

    language = language_of(units)
    return None if language in (None, "english") else str(language).capitalize()
