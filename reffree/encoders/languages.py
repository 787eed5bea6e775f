"""Text that an encoder was not made for, by its script, and for encoders of English its language.

Known of the models that have aliases. A unit is of the script that most of its letters have; a
corpus, of the language whose stop words it has most of.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

from reffree.encoders.aliases import ALIASES

SAMPLE = 500
"""Units that are looked at for their language, spread evenly."""

KANA = dict.fromkeys(("Hiragana", "Katakana", "Katakana-hiragana", "Halfwidth"), "Kana")
SAME = {"Cjk": "Han", "Fullwidth": "Latin", **KANA}
"""Scripts that the names of letters begin with otherwise."""


def unread_units(model: str, units: Sequence[str]) -> dict[str, int]:
    """Count units that a model was not made for, by script or language; none where unknown.

    >>> unread_units("FacebookAI/roberta-base", ["Bees dance.", "蜜蜂会跳舞。", "42"])
    {'Han script': 1}
    """
    made_for = next((known.languages for known in ALIASES.values() if known.model == model), None)
    if not made_for:
        return {}
    scripts = [main_script(unit) for unit in units]
    found = Counter(f"{each} script" for each in scripts if each and each not in made_for)
    if made_for.get("Latin") == ["en"]:
        from reffree.util.words import language_of

        latin = [unit for unit, each in zip(units, scripts, strict=True) if each == "Latin"]
        language = language_of(latin[:: len(latin) // SAMPLE + 1])
        if language not in (None, "english"):
            found[str(language).capitalize()] = len(latin)
    return dict(found)


def readers(scripts: Iterable[str]) -> list[str]:
    """Return the aliases of the models that were made for many languages in all these scripts."""
    wanted = {each.removesuffix(" script") for each in scripts if each.endswith(" script")}
    many = {alias: set(known.languages) for alias, known in ALIASES.items()}
    return [alias for alias, known in many.items() if len(known) > 1 and wanted <= known]


def main_script(text: str) -> str:
    """Return the script of most letters; empty without any.

    >>> main_script("GPT说话"), main_script("…")
    ('Latin', '')
    """
    if text.isascii():
        return "Latin" if any(map(str.isalpha, text)) else ""
    scripts = Counter(filter(None, map(_script_of, text)))
    return max(scripts, key=lambda script: scripts[script], default="")


@cache
def _script_of(sign: str) -> str:
    """Return the script that a letter's name begins with; empty for what is no letter."""
    if not unicodedata.category(sign).startswith("L"):
        return ""
    first = unicodedata.name(sign, "").partition(" ")[0].capitalize()
    return SAME.get(first, first)
