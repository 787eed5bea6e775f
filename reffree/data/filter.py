"""Units that take no part: backchannels and repeats, left out as units without text are.

A segmentation of the document is carried over to the units that stay, so what is left out has no
vector, no neighbours and no place in a metric, gold-based ones included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reffree.data.corpus import Corpus, Document
from reffree.data.segmentation import Segmentation
from reffree.util.errors import counted, mistake

BACKCHANNELS = frozenset(
    {
        *("ah", "aha", "alright", "hm", "hmm", "huh", "mhm", "mm", "mmhm", "mmhmm", "mmm", "oh"),
        *("ok", "okay", "right", "sure", "uh", "uhhuh", "um", "yeah", "yep", "yup"),
    }
)
"""English, without hyphens. A unit of these words alone is a backchannel: "Oh, okay." is one,
"Right, the budget." is none. "Yes" and "no" are answers and stay."""

WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class FilteredCorpus:
    """A corpus of the units that take part, beside the one it comes from."""

    corpus: Corpus
    whole: Corpus
    kept: tuple[tuple[bool, ...], ...]  # by document, over the whole corpus's units
    dropped: str  # kinds of units left out, as specs and signatures name them

    def restored(self, corpus: Corpus) -> Corpus:
        """Put systems made for the units that take part onto the whole corpus.

        A unit that was left out goes with the unit before it, which it answers or repeats; at the
        start of a document with the first.
        """
        whole = self.whole
        ids = [document.id for document in whole.documents]
        for name in corpus.hypotheses:
            if name not in whole.hypotheses:
                made = corpus.hypotheses[name]
                masses = [restore(s, mask) for s, mask in zip(made, self.kept, strict=True)]
                whole = whole.with_system(name, dict(zip(ids, masses, strict=True)))
        return whole


def filter_units(corpus: Corpus, drop: Sequence[str]) -> FilteredCorpus:
    """Return the corpus without units of the kinds to drop (see `KINDS`), beside the whole one."""
    if not drop:
        everything = tuple((True,) * len(document.units) for document in corpus.documents)
        return FilteredCorpus(corpus, corpus, everything, "none")
    counts = dict.fromkeys(drop, 0)
    documents, masks = [], []
    for document in corpus.documents:
        kept = np.ones(len(document.units), dtype=bool)
        for kind in counts:
            leaves = np.array(KINDS[kind](document.units))
            counts[kind] += int((kept & leaves).sum())
            kept &= ~leaves
        documents.append(_only(document, kept))
        masks.append(tuple(kept.tolist()))
    notes = [
        f"{counted(n, 'unit')} left out as {kind}, the boundaries reindexed."
        for kind, n in counts.items()
    ]
    chosen = Corpus.of_checked(documents, (*corpus.notes, *notes))
    return FilteredCorpus(chosen, corpus, tuple(masks), "+".join(drop))


def restore(segmentation: Segmentation, kept: Sequence[bool]) -> Segmentation:
    """Carry a segmentation of kept units over to all of them: a boundary stays before its unit.

    >>> restore(Segmentation((1, 2)), [True, False, True, True]).masses
    (2, 2)
    """
    positions = np.flatnonzero(np.asarray(kept))
    boundaries = [int(positions[b]) for b in segmentation.boundaries]
    return Segmentation.from_boundaries(boundaries, len(kept))


def is_backchannel(unit: str) -> bool:
    """Whether a unit says no more than that somebody listens.

    >>> is_backchannel("Mm-hmm, yeah."), is_backchannel("Right, the budget."), is_backchannel("…")
    (True, False, False)
    """
    words = WORD.findall(unit.casefold().replace("-", ""))
    return bool(words) and BACKCHANNELS.issuperset(words)


def _repeats(units: Sequence[str]) -> list[bool]:
    first: dict[str, int] = {}
    return [first.setdefault(unit, i) < i for i, unit in enumerate(units)]


KINDS: dict[str, Callable[[Sequence[str]], list[bool]]] = {
    "backchannels": lambda units: [is_backchannel(unit) for unit in units],
    "repeats": _repeats,
}
"""Which of a document's units are of a kind, in order."""


def _only(document: Document, kept: NDArray[np.bool_]) -> Document:
    """Return a document without some of its units."""
    if not kept.any():
        found = f"nothing but units to leave out ({counted(len(kept), 'unit')})"
        expected = "at least one unit that takes part"
        raise mistake(document.place, found, expected, "remove the document, or leave out --drop")
    if kept.all():
        return document
    mask = tuple(kept.tolist())
    staying = iter(mask)
    speakers = document.speakers
    return replace(
        document,
        units=tuple(u for u, keep in zip(document.units, mask, strict=True) if keep),
        speakers=None
        if speakers is None
        else tuple(s for s, keep in zip(speakers, mask, strict=True) if keep),
        kept=tuple(had_text and next(staying) for had_text in document.kept),
        n_left_out=document.n_left_out + int((~kept).sum()),
        gold=None if document.gold is None else document.gold.keep(mask),
        golds={name: s.keep(mask) for name, s in document.golds.items()},
        systems={name: s.keep(mask) for name, s in document.systems.items()},
    )
