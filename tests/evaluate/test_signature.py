"""Signatures: what they say of settings that are long."""

from __future__ import annotations

from reffree.evaluate.signature import _words
from reffree.metrics.gold.cohesion import FUNCTION_WORDS


def test_the_words_that_sed_leaves_out_have_one_name():
    assert _words(FUNCTION_WORDS) == "function_words"
    some = _words(frozenset(["b", "a", "c"]))
    assert some == _words(frozenset(["c", "b", "a"])) == f"3_words:{some.partition(':')[2]}"
    assert some != _words(frozenset(["c", "b", "d"]))
