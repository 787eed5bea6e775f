"""Segmentations made worse on purpose, by a known amount.

Ghinassi et al. (2024) §3.4.2 remove boundaries from gold and move them; inserting, replacing and
mixtures are added. Everything here keeps four promises:

* the document's end is never touched;
* what was asked for and could not be done is counted, so no boundary is lost silently;
* nothing new stands where the source has a boundary: the result and the source share exactly the
  boundaries that were neither removed nor moved;
* removal, insertion and replacement are progressive, as in the paper: from the same state of the
  random numbers, a larger strength does all that a smaller one does, and more.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import astuple, dataclass, fields
from typing import ClassVar, get_args

import numpy as np

from reffree.data.corpus import GOLD, Corpus
from reffree.data.segmentation import Segmentation
from reffree.util.bounds import MANY, check_number, check_whole
from reffree.util.errors import UnknownNameError, mistake
from reffree.util.naming import parse_named, settings_of
from reffree.util.seeds import rng_for


@dataclass(frozen=True, slots=True)
class EditCounts:
    """Boundaries removed, inserted and moved."""

    removed: int = 0
    inserted: int = 0
    moved: int = 0

    def __add__(self, other: EditCounts) -> EditCounts:
        """Add up, kind by kind."""
        return EditCounts(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class Perturbed:
    """A perturbed segmentation, and what was done and could not be done to it."""

    segmentation: Segmentation
    done: EditCounts
    not_done: EditCounts  # asked for, but there was no boundary or no place left


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of boundaries (``k``) or a share of those a document has (``share``).

    A share that is no whole number of boundaries is rounded up or down at random, such that its
    mean is exact: rounding to the nearest would never touch documents of few boundaries.
    """

    k: int | None = None
    share: float | None = None
    name: ClassVar[str]
    edits: ClassVar[tuple[str, ...]] = ()  # what is done to so many boundaries
    whole: ClassVar[str] = "k"  # the option that a whole number as strength stands for
    part: ClassVar[str] = "share"  # the option that a number with a point stands for
    largest_share: ClassVar[float] = 1.0
    needs_amount: ClassVar[bool] = True  # otherwise all boundaries are meant without either

    def __post_init__(self) -> None:
        """Refuse both, neither where one is needed, and values out of range."""
        given = [option for option in ("k", "share") if getattr(self, option) is not None]
        if len(given) == 2 or (self.needs_amount and not given):
            found = " and ".join(given) or "neither k nor share"
            expected = "a number of boundaries (k) or a share of them (share)"
            raise mistake(None, found, expected, f"write {self.name}:k=2 or {self.name}:share=0.3")
        _check_numbers(self, {"share": self.largest_share})

    def __call__(self, segmentation: Segmentation, rng: np.random.Generator) -> Perturbed:
        """Perturb one segmentation."""
        edits = dict.fromkeys(self.edits, self.count(segmentation, rng))
        return edit_boundaries(segmentation, rng, **edits, balanced=len(edits) > 1)

    def count(self, segmentation: Segmentation, rng: np.random.Generator) -> int:
        """Boundaries meant in this document."""
        if self.k is not None:
            return self.k
        share = 1.0 if self.share is None else self.share
        return _rounded(share * (len(segmentation) - 1), rng.random())


@dataclass(frozen=True, slots=True)
class Removal(Amount):
    """Remove boundaries, any set equally likely (Ghinassi et al. 2024 §3.4.2)."""

    name: ClassVar[str] = "removal"
    edits: ClassVar[tuple[str, ...]] = ("remove",)


@dataclass(frozen=True, slots=True)
class Insertion(Amount):
    """Insert boundaries into gaps without one, any set equally likely.

    A share may exceed 1: 2.0 inserts two for each there is.
    """

    name: ClassVar[str] = "insertion"
    edits: ClassVar[tuple[str, ...]] = ("insert",)
    largest_share: ClassVar[float] = MANY


@dataclass(frozen=True, slots=True)
class Replacement(Amount):
    """Remove boundaries and insert as many elsewhere: their number never changes."""

    name: ClassVar[str] = "replacement"
    edits: ClassVar[tuple[str, ...]] = ("remove", "insert")


@dataclass(frozen=True, slots=True)
class Transposition(Amount):
    """Move boundaries (all, ``k`` of them or a ``share``) left or right by ``distance`` units.

    Ghinassi et al. 2024 §3.4.2: the text moves boundaries "a number n of sentences away", the
    caption of Figure 3 counts "transposed boundaries"; both can be asked for. A boundary may go
    neither out of the document nor to a place where the source has a boundary, and no two go to one
    place. Of all ways to move as many as can move, each is equally likely: a boundary on its own
    goes left or right with probability ½.
    """

    distance: int = 1
    name: ClassVar[str] = "transposition"
    whole: ClassVar[str] = "distance"
    needs_amount: ClassVar[bool] = False

    def __call__(self, segmentation: Segmentation, rng: np.random.Generator) -> Perturbed:
        """Perturb one segmentation."""
        k = self.count(segmentation, rng)
        return edit_boundaries(segmentation, rng, move=k, distance=self.distance)


@dataclass(frozen=True, slots=True)
class Mixture:
    """Remove, insert and move boundaries in one go.

    Either ``share``: a third of that share of the boundaries is removed, a third moved, and as many
    inserted as removed, so the number of boundaries never changes. Or ``removal``, ``insertion``
    and ``transposition``: a share of the boundaries each. Shares are rounded as in `Amount`.
    """

    share: float | None = None
    removal: float | None = None
    insertion: float | None = None
    transposition: float | None = None
    distance: int = 1
    name: ClassVar[str] = "mixture"
    whole: ClassVar[str] = "share"
    part: ClassVar[str] = "share"

    def __post_init__(self) -> None:
        """Refuse both forms at once, neither, and values out of range."""
        parts = (self.removal, self.insertion, self.transposition)
        if (self.share is None) == (parts == (None, None, None)):
            found = "no strength" if self.share is None else "a share and the strength of a part"
            expected = "share, or any of removal, insertion and transposition"
            remedy = "write mixture:share=0.3 or mixture:removal=0.1,insertion=0.2"
            raise mistake(None, found, expected, remedy)
        largest = dict.fromkeys(("share", "removal", "transposition"), 1.0)
        _check_numbers(self, {**largest, "insertion": MANY})
        if (self.removal or 0.0) + (self.transposition or 0.0) > 1:
            found = f"removal = {self.removal} and transposition = {self.transposition}"
            remedy = "lower one of them: no boundary is both removed and moved"
            raise mistake(None, found, "shares of the boundaries that add up to 1 at most", remedy)

    def __call__(self, segmentation: Segmentation, rng: np.random.Generator) -> Perturbed:
        """Perturb one segmentation."""
        parts = (self.removal, self.insertion, self.transposition)
        shares = parts if self.share is None else (self.share / 3,) * 3
        removed, inserted, moved = ((s or 0.0) * (len(segmentation) - 1) for s in shares)
        # One random number rounds the sum and its part: together never more than there are.
        rounding, other = rng.random(2)
        remove = _rounded(removed, rounding)
        return edit_boundaries(
            segmentation,
            rng,
            remove=remove,
            insert=_rounded(inserted, other) if self.share is None else remove,
            move=_rounded(removed + moved, rounding) - remove,
            distance=self.distance,
            balanced=self.share is not None,
        )


Perturbation = Removal | Insertion | Replacement | Transposition | Mixture
PERTURBATIONS: dict[str, type[Perturbation]] = {kind.name: kind for kind in get_args(Perturbation)}


def parse_perturbation(text: str, flag: str = "--perturbation") -> Perturbation:
    """Read ``kind:strength`` or ``kind:option=value,…``; ``flag`` is for messages.

    A whole number as strength is a number of boundaries (of units for ``transposition``), one with
    a point a share of the boundaries.

    >>> parse_perturbation("removal:2")
    Removal(k=2, share=None)
    >>> parse_perturbation("transposition:distance=2,share=0.5")
    Transposition(k=None, share=0.5, distance=2)
    """
    name, _, strength = text.partition(":")
    if name in PERTURBATIONS and "=" not in strength and any(map(str.isdecimal, strength)):
        kind = PERTURBATIONS[name]
        is_whole = strength.lstrip("+-").isdecimal()
        text = f"{name}:{kind.whole if is_whole else kind.part}={strength}"
    return parse_named(text, PERTURBATIONS, "perturbation", flag)


def label(perturbation: Perturbation) -> str:
    """Name a system by kind and strength, then by any option that differs from its default.

    >>> label(Removal(k=2)), label(Transposition()), label(Mixture(share=0.3))
    ('removal_2', 'transposition_1', 'mixture_0.3')
    >>> label(Transposition(k=3, distance=2)), label(Mixture(removal=0.1, insertion=0.2))
    ('transposition_2_k_3', 'mixture_removal_0.1_insertion_0.2')
    """
    settings = settings_of(perturbation)
    is_share = settings[perturbation.part] is not None
    strength = settings.pop(perturbation.part if is_share else perturbation.whole)
    defaults = {field.name: field.default for field in fields(perturbation)}
    words = [f"{k}_{value}" for k, value in settings.items() if value != defaults[k]]
    return "_".join([perturbation.name, *([] if strength is None else [f"{strength}"]), *words])


@dataclass(frozen=True, slots=True)
class PerturbedSystem:
    """A perturbation of every document of a corpus, as a system with a name."""

    name: str
    documents: tuple[Perturbed, ...]

    @property
    def segmentations(self) -> tuple[Segmentation, ...]:
        """One per document, in the order of the corpus."""
        return tuple(document.segmentation for document in self.documents)

    @property
    def done(self) -> EditCounts:
        """Changes over all documents."""
        return sum((document.done for document in self.documents), EditCounts())

    @property
    def not_done(self) -> EditCounts:
        """What was asked for and could not be done, over all documents."""
        return sum((document.not_done for document in self.documents), EditCounts())


def perturb(
    corpus: Corpus, perturbation: Perturbation, seed: int = 0, source: str = GOLD
) -> PerturbedSystem:
    """Perturb gold, or the system called ``source``, in every document.

    The random numbers of a document depend on its id, the seed, the kind and the source: not on
    other documents, and not on the strength, so that strengths are progressive. The system is
    called by kind and strength, after its source unless that is gold.
    """
    known = corpus.hypotheses
    if source not in known and source != GOLD:
        raise UnknownNameError("system", source, known)
    if source not in known:
        place = next(document.place for document in corpus if document.gold is None)
        remedy = "add gold or perturb a system instead"
        raise mistake(place, "no gold to perturb", "gold in every document", remedy)
    documents = tuple(
        perturbation(segmentation, rng_for(seed, source, perturbation.name, document.id))
        for document, segmentation in zip(corpus, known[source], strict=True)
    )
    name = label(perturbation)
    return PerturbedSystem(name if source == GOLD else f"{source}_{name}", documents)


def edit_boundaries(
    segmentation: Segmentation,
    rng: np.random.Generator,
    *,
    remove: int = 0,
    insert: int = 0,
    move: int = 0,
    distance: int = 1,
    balanced: bool = False,
) -> Perturbed:
    """Remove, insert and move so many boundaries; none is both removed and moved.

    ``balanced``: no more are removed than inserted and the other way round.
    """
    move = move if distance else 0
    n_units, source = segmentation.n_units, set(segmentation.boundaries)
    # Both orders are drawn whole, whatever the strength: larger strengths then contain smaller.
    order = rng.permutation(segmentation.boundaries).tolist()
    places = rng.permutation([gap for gap in range(1, n_units) if gap not in source]).tolist()
    removed = order[:remove]
    # Moved boundaries come from the other end of the order, so that the two never meet.
    moving = order[max(len(removed), len(order) - move) :]
    targets = _targets(moving, source, n_units, distance, rng)
    taken = set(targets.values())
    inserted = [place for place in places if place not in taken][:insert]
    if balanced:
        both = min(len(removed), len(inserted))
        removed, inserted = removed[:both], inserted[:both]
    result = (source - set(removed) - targets.keys()) | taken | set(inserted)
    done = EditCounts(len(removed), len(inserted), len(targets))
    not_done = EditCounts(remove - done.removed, insert - done.inserted, move - done.moved)
    return Perturbed(Segmentation.from_boundaries(sorted(result), n_units), done, not_done)


def _targets(
    moving: Collection[int], source: set[int], n_units: int, distance: int, rng: np.random.Generator
) -> dict[int, int]:
    """Return where each boundary goes; those that cannot move are left out.

    Only two boundaries that are two distances apart can want the same place, the one between them.
    Linked by such places they form chains. Those before some turn of a chain go left and those
    after it right, if both ends are free; all go to the free end, if there is one; else one stays
    and the others move towards it. So a uniform turn is a uniform choice of all that is possible.
    """

    def is_free(place: int) -> bool:
        return 0 < place < n_units and place not in source

    unseen, targets = set(moving), dict[int, int]()
    for first in sorted(moving):
        if first not in unseen:
            continue
        chain = [first]
        while chain[-1] + 2 * distance in unseen and is_free(chain[-1] + distance):
            chain.append(chain[-1] + 2 * distance)
        unseen.difference_update(chain)
        left, right = is_free(first - distance), is_free(chain[-1] + distance)
        if left or right:
            turn = int(rng.integers(len(chain) + 1)) if left and right else len(chain) * left
            going_left, going_right = chain[:turn], chain[turn:]
        else:
            stays = int(rng.integers(len(chain)))
            going_right, going_left = chain[:stays], chain[stays + 1 :]
        targets |= {boundary: boundary - distance for boundary in going_left}
        targets |= {boundary: boundary + distance for boundary in going_right}
    return targets


def _rounded(expected: float, rounding: float) -> int:
    """Round down, or up with the probability of the fraction; ``rounding`` is from [0, 1)."""
    below = math.floor(expected)
    return below + (rounding < expected - below)


def _check_numbers(perturbation: Amount | Mixture, largest: Mapping[str, float]) -> None:
    """Refuse shares beyond the largest and other numbers that are not whole; make them Python's."""
    for field in fields(perturbation):
        value = getattr(perturbation, field.name)
        if value is None:
            continue
        if field.name in largest:
            remedy = "write 0.3 for three in ten boundaries"
            check_number(field.name, value, 0, largest[field.name], remedy=remedy)
        else:
            check_whole(field.name, value, remedy="write 2 for two boundaries or units")
        kind = float if field.name in largest else int
        object.__setattr__(perturbation, field.name, kind(value))
