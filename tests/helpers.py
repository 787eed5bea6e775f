"""What the tests of several rooms share."""

from __future__ import annotations

import pytest

from reffree.corpus import Corpus, Document
from reffree.errors import InputError


def refusal(call, *args, **keywords) -> str:
    """The sentence with which a call refuses its input."""
    with pytest.raises(InputError) as error:
        call(*args, **keywords)
    return str(error.value)


def corpus_of(*golds, systems=None) -> Corpus:
    """A document for every gold, d0, d1, …, and with a system's segmentations where given."""
    return Corpus(
        tuple(
            Document.build(f"d{i}", ["x"] * sum(gold), gold=gold, systems=systems and systems[i])
            for i, gold in enumerate(golds)
        )
    )
