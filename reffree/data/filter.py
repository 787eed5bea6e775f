"""Units that take no part: backchannels and repeats, left out as units without text are.

A segmentation of the document is carried over to the units that stay, so what is left out has no
vector, no neighbours and no place in a metric, gold-based ones included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import compress

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

        A unit that was left out goes with the one before it; at a document's start with the first.
        """
        known, ids = self.whole.hypotheses, [document.id for document in self.whole]
        whole = self.whole
        for name, made in corpus.hypotheses.items():
            if name not in known:
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
        kept = (True,) * len(document.units)
        for kind in counts:
            mask = tuple(
                keep and not leaves
                for keep, leaves in zip(kept, KINDS[kind](document.units), strict=True)
            )
            counts[kind] += sum(kept) - sum(mask)
            kept = mask
        documents.append(_only(document, kept))
        masks.append(kept)
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
    positions = [i for i, keep in enumerate(kept) if keep]
    return Segmentation.from_boundaries([positions[b] for b in segmentation.boundaries], len(kept))


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


def _only(document: Document, kept: tuple[bool, ...]) -> Document:
    if not any(kept):
        found = f"nothing but units to leave out ({counted(len(kept), 'unit')})"
        expected = "at least one unit that takes part"
        raise mistake(document.place, found, expected, "remove the document, or leave out --drop")
    if all(kept):
        return document
    staying = iter(kept)
    return replace(
        document,
        units=tuple(compress(document.units, kept)),
        speakers=document.speakers and tuple(compress(document.speakers, kept)),
        kept=tuple(had_text and next(staying) for had_text in document.kept),
        n_left_out=document.n_left_out + kept.count(False),
        gold=document.gold and document.gold.keep(kept),
        golds={name: s.keep(kept) for name, s in document.golds.items()},
        systems={name: s.keep(kept) for name, s in document.systems.items()},
    )
