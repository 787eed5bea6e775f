"""Gap scores from elsewhere, as given for a corpus: checked and carried over to its units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from reffree.data.corpus import Corpus, keep_scores
from reffree.data.filter import FilteredCorpus
from reffree.encoders.options import EncoderOptions
from reffree.util.arrays import Floats
from reffree.util.errors import OptionError

Given = Mapping[str, Sequence[float]] | Sequence[Sequence[float]]
"""Any scorer's gap scores: lists by document id, or in corpus order."""


def checked_scores(corpus: Corpus, name: str, scores: Given) -> tuple[list[float], ...]:
    """Check scores of a corpus, lists or arrays; return them in its order."""
    if isinstance(scores, Mapping):
        return corpus.align_scores(name, {id: _plain(each) for id, each in scores.items()})
    return corpus.align_scores(name, [_plain(each) for each in scores])


def given_scores(part: FilteredCorpus, name: str, scores: Given) -> tuple[Floats, ...]:
    """Check scores of a whole corpus, and carry them over to the units that take part."""
    whole = checked_scores(part.whole, name, scores)
    return tuple(
        np.array(keep_scores(each, kept)) for each, kept in zip(whole, part.kept, strict=True)
    )


def _plain(values: Sequence[float]) -> Sequence[float]:
    return values.tolist() if isinstance(values, np.ndarray) else values


def are_probabilities(scores: Sequence[ArrayLike]) -> bool:
    """Whether all scores lie between 0 and 1."""
    return all(((np.asarray(each) >= 0) & (np.asarray(each) <= 1)).all() for each in scores)


def refuse_dropped(options: EncoderOptions) -> None:
    """Refuse to leave units out of scores that are to be kept: they are of all units' gaps."""
    if options.dropped != "none":
        raise OptionError(
            f"scores to be kept, with {options.dropped} left out",
            expected="a score for every gap of the corpus",
            remedy="leave out --drop-backchannels and --drop-repeats",
        )
