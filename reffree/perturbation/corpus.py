"""A perturbation of every document of a corpus, as a system with a name."""

from __future__ import annotations

from dataclasses import dataclass

from reffree.corpus import GOLD, Corpus
from reffree.errors import InputError, UnknownNameError
from reffree.perturbation.edits import Edits, Perturbed
from reffree.perturbation.kinds import Perturbation, label, parse_perturbation
from reffree.seeds import rng_for
from reffree.segmentation import Segmentation


@dataclass(frozen=True, slots=True)
class PerturbedSystem:
    """A perturbation of every document, as a system with a name."""

    name: str
    documents: tuple[Perturbed, ...]

    @property
    def segmentations(self) -> tuple[Segmentation, ...]:
        """One per document, in the order of the corpus."""
        return tuple(document.segmentation for document in self.documents)

    @property
    def done(self) -> Edits:
        """Changes over all documents."""
        return sum((document.done for document in self.documents), Edits())

    @property
    def not_done(self) -> Edits:
        """What was asked for and could not be done, over all documents."""
        return sum((document.not_done for document in self.documents), Edits())


def perturb(
    corpus: Corpus, perturbation: Perturbation, seed: int = 0, source: str = GOLD
) -> PerturbedSystem:
    """Perturb gold, or the system called ``source``, in every document.

    The random numbers of a document depend on its id, the seed, the kind and the source: not on
    other documents, and not on the strength, so that strengths are progressive. The system is
    called by kind and strength, after its source unless that is gold.
    """
    documents = tuple(
        perturbation(segmentation, rng_for(seed, source, perturbation.name, document.id))
        for document, segmentation in zip(corpus, _sources(corpus, source), strict=True)
    )
    name = label(perturbation)
    return PerturbedSystem(name if source == GOLD else f"{source}_{name}", documents)


def perturb_corpus(
    corpus: Corpus, kind: str, strength: float, seed: int = 0, source: str = GOLD
) -> PerturbedSystem:
    """`perturb` by kind and strength: an int counts boundaries (units), a float is a share."""
    return perturb(corpus, parse_perturbation(f"{kind}:{strength}"), seed, source)


def _sources(corpus: Corpus, source: str) -> tuple[Segmentation, ...]:
    known = corpus.hypotheses
    if source in known:
        return known[source]
    if source != GOLD:
        raise UnknownNameError("system", source, known)
    raise InputError(
        "no gold to perturb",
        expected="gold in every document",
        remedy="add gold or perturb a system instead",
        place=next(document.place for document in corpus if document.gold is None),
    )
