"""Agreement between the annotators of a corpus."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from reffree.data.corpus import Corpus
from reffree.evaluate.result import plain
from reffree.metrics.gold.agreement import Agreement
from reffree.metrics.gold.agreement import agreement as agreement_of
from reffree.util.errors import InputError, counted


@dataclass(frozen=True, slots=True)
class CorpusAgreement:
    """Everything `reffree agreement` prints, in one value."""

    signature: str
    agreement: Agreement
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the structure of the JSON output."""
        return {"signature": self.signature, **plain(self.agreement), "notes": list(self.notes)}


def agreement(corpus: Corpus, *, systems: bool = False, n_t: int = 2) -> CorpusAgreement:
    """Measure how far annotators agree beyond chance (`reffree.metrics.gold.agreement`).

    Args:
        corpus: from `reffree.load`, with several annotators' ``golds``.
        systems: take its systems, and its gold, as annotators instead.
        n_t: boundaries nearer than this many units are near misses.
    """
    if systems:
        hypotheses = corpus.hypotheses
        annotations = {
            document.id: {name: given[d] for name, given in hypotheses.items()}
            for d, document in enumerate(corpus.documents)
        }
    else:
        annotations = {document.id: dict(document.golds) for document in corpus.documents}
    if all(len(given) < 2 for given in annotations.values()):
        raise InputError(
            f"no document of two or more {'systems' if systems else 'annotators'}",
            expected='several segmentations under "golds", such as {"ann": [3, 4], "bob": [2, 5]}',
            remedy="add them, or take the systems as annotators with --systems",
            place=corpus.documents[0].place,
        )
    found = agreement_of(annotations, n_t=n_t)
    notes = list(corpus.notes)
    if found.n_left_out:
        left_out = counted(found.n_left_out, "document")
        notes.append(f"{left_out} with fewer than two annotators left out.")
    signature = f"agreement:boundary_similarity(n_t={n_t})|reffree:{version('reffree')}"
    return CorpusAgreement(signature, found, tuple(notes))
