"""What a declared function takes, and refuses before anything runs."""

from __future__ import annotations

import re

import pytest

import reffree
from reffree.util.errors import InputError


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: reffree.compare("corpus.jsonl"), "found a str; expected a Corpus; load it first"),
        (lambda: reffree.segment({"a": 1}, ["even:k=2"]), "found a dict; expected a Corpus"),
        (
            lambda: reffree.study.correlate({"a": "corpus.jsonl"}),
            "found corpora['a']: a str; expected corpora by name",
        ),
    ],
)
def test_what_is_no_corpus_is_a_sentence(call, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        call()
