"""Texts that tests of chunkers share: prose, awkward and odd ones."""

from __future__ import annotations

from hypothesis import strategies as st

from reffree.chunkers.chunked import PlainText, chunked
from reffree.util.errors import Place

PROSE = (
    "The server failed at noon. Dr. Smith restarted it twice! Was the disk full? It was.\n\n"
    "Bees make honey in summer. They sleep in winter,\nclose together. The queen stays warm.\n\n"
    "Our budget is small. We sell two lamps. The rest must wait until spring comes again."
)
AWKWARD = {
    "one sentence": "Only one sentence here.",
    "one character": "x",
    "no final stop": "One here. Two there",
    "windows line ends": "One here.\r\nTwo there.\r\n\r\nThree now.\r\n",
    "old Mac line ends": "One here.\rTwo there.\r\rThree now.",
    "emoji and combining": "Cafe\u0301 is nice. 👩‍👩‍👧 family! 🎉 Party. naïve e\u0301e\u0301. End",
    "repeated": "Same again. " * 40,
    "no spaces": "中文句子。第二句！第三句？" * 10,
    "one long word": "a" * 500,
    "rare whitespace": "Vitamin B\xa0. And\u2003C\u2028. Next\u3000one.\x0bLast\x1fone. K\u2009. Z",
    "leading and trailing": "\n\n  \t First one. Second one.  \n\n\n\n\n Third one. \n\n",
    "zero width": "\ufeffOne\u200bhere. Two\x00there. Three.",
    "only punctuation": "... !!! ??? … . . .",
    "prose": PROSE,
}
ODD = [
    *("a", "B", "word ", "Dr. ", ". ", "! ", "。", "\n", "\n\n", "\n\n\n\n", "\r\n", "\t", " "),
    *("\xa0", "\u2028", "\x85", "e\u0301", "👩‍👧", '"', "”", "(", "1.", "U.S.", "...", "\x1c"),
    *("\u200b", "İ"),
]
odd_texts = st.lists(st.sampled_from(ODD), min_size=1, max_size=40).map("".join)


def plain(text, id="a"):
    return PlainText(id, text, Place(file=f"{id}.txt"))


def unit_spans(text, language="en"):
    return [unit.span for unit in plain(text).units(language)]


def cut(texts, chunkers):
    return chunked(texts, [text.units("en") for text in texts], chunkers)


def squeezed(text):
    return "".join(text.split())
