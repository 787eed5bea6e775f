"""Perturbations by name and options, as users write them."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from reffree.bounds import MANY, check_number
from reffree.errors import InputError
from reffree.naming import parse_named, settings_of
from reffree.perturbation.edits import (
    Perturbed,
    insertion,
    mixture,
    removal,
    replacement,
    transposition,
    whole_number,
)
from reffree.segmentation import Segmentation


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of boundaries (``k``) or a share of those a document has (``share``).

    A share that is no whole number of boundaries is rounded up or down at random, such that its
    mean is exact: rounding to the nearest would never touch documents of few boundaries.
    """

    k: int | None = None
    share: float | None = None
    name: ClassVar[str]
    whole: ClassVar[str] = "k"  # the option that a whole number as strength stands for
    part: ClassVar[str] = "share"  # the option that a number with a point stands for
    largest_share: ClassVar[float] = 1.0
    needs_amount: ClassVar[bool] = True  # otherwise all boundaries are meant without either

    def __post_init__(self) -> None:
        """Refuse both, neither where one is needed, and values out of range."""
        given = [option for option in ("k", "share") if getattr(self, option) is not None]
        if len(given) == 2 or (self.needs_amount and not given):
            raise InputError(
                " and ".join(given) or "neither k nor share",
                expected="a number of boundaries (k) or a share of them (share)",
                remedy=f"write {self.name}:k=2 or {self.name}:share=0.3",
            )
        if self.k is not None:
            object.__setattr__(self, "k", whole_number("k", self.k))
        if self.share is not None:
            object.__setattr__(self, "share", _share("share", self.share, self.largest_share))

    def count(self, segmentation: Segmentation, rng: np.random.Generator) -> int:
        """Boundaries meant in this document."""
        if self.k is not None:
            return self.k
        share = 1.0 if self.share is None else self.share
        return _rounded(share * (len(segmentation) - 1), rng.random())


@dataclass(frozen=True, slots=True)
class Removal(Amount):
    """Remove boundaries: `removal`."""

    name: ClassVar[str] = "removal"

    def __call__(self, segmentation: Segmentation, rng: np.random.Generator) -> Perturbed:
        """Perturb one segmentation."""
        return removal(segmentation, self.count(segmentation, rng), rng)


@dataclass(frozen=True, slots=True)
class Insertion(Amount):
    """Insert boundaries: `insertion`. A share may exceed 1: 2.0 inserts two for each there is."""

    name: ClassVar[str] = "insertion"
    largest_share: ClassVar[float] = MANY

    def __call__(self, segmentation: Segmentation, rng: np.random.Generator) -> Perturbed:
        """Perturb one segmentation."""
        return insertion(segmentation, self.count(segmentation, rng), rng)


@dataclass(frozen=True, slots=True)
class Replacement(Amount):
    """Remove boundaries and insert as many elsewhere: `replacement`."""

    name: ClassVar[str] = "replacement"

    def __call__(self, segmentation: Segmentation, rng: np.random.Generator) -> Perturbed:
        """Perturb one segmentation."""
        return replacement(segmentation, self.count(segmentation, rng), rng)


@dataclass(frozen=True, slots=True)
class Transposition(Amount):
    """Move boundaries by ``distance``: all, ``k`` of them or a ``share``: `transposition`."""

    distance: int = 1
    name: ClassVar[str] = "transposition"
    whole: ClassVar[str] = "distance"
    needs_amount: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse values out of range, and k with share."""
        Amount.__post_init__(self)
        object.__setattr__(self, "distance", whole_number("distance", self.distance))

    def __call__(self, segmentation: Segmentation, rng: np.random.Generator) -> Perturbed:
        """Perturb one segmentation."""
        return transposition(segmentation, self.distance, rng, self.count(segmentation, rng))


@dataclass(frozen=True, slots=True)
class Mixture:
    """Remove, insert and move boundaries in one go: `mixture`.

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
            raise InputError(
                "no strength" if self.share is None else "a share and the strength of a part",
                expected="share, or any of removal, insertion and transposition",
                remedy="write mixture:share=0.3 or mixture:removal=0.1,insertion=0.2",
            )
        for option in ("share", "removal", "insertion", "transposition"):
            value = getattr(self, option)
            if value is not None:
                largest = MANY if option == "insertion" else 1.0
                object.__setattr__(self, option, _share(option, value, largest))
        object.__setattr__(self, "distance", whole_number("distance", self.distance))
        if (self.removal or 0.0) + (self.transposition or 0.0) > 1:
            raise InputError(
                f"removal = {self.removal} and transposition = {self.transposition}",
                expected="shares of the boundaries that add up to 1 at most",
                remedy="lower one of them: no boundary is both removed and moved",
            )

    def __call__(self, segmentation: Segmentation, rng: np.random.Generator) -> Perturbed:
        """Perturb one segmentation."""
        parts = (self.removal, self.insertion, self.transposition)
        shares = parts if self.share is None else (self.share / 3,) * 3
        removed, inserted, moved = ((s or 0.0) * (len(segmentation) - 1) for s in shares)
        # One random number rounds the sum and its part: together never more than there are.
        rounding, other = rng.random(2)
        remove = _rounded(removed, rounding)
        return mixture(
            segmentation,
            rng,
            remove=remove,
            insert=_rounded(inserted, other) if self.share is None else remove,
            move=_rounded(removed + moved, rounding) - remove,
            distance=self.distance,
            balanced=self.share is not None,
        )


Perturbation = Removal | Insertion | Replacement | Transposition | Mixture
PERTURBATIONS: dict[str, type[Perturbation]] = {
    kind.name: kind for kind in (Removal, Insertion, Replacement, Transposition, Mixture)
}


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


def _rounded(expected: float, rounding: float) -> int:
    """Round down, or up with the probability of the fraction; ``rounding`` is from [0, 1)."""
    below = math.floor(expected)
    return below + (rounding < expected - below)


def _share(option: str, value: float, largest: float) -> float:
    check_number(option, value, 0, largest, remedy="write 0.3 for three in ten boundaries")
    return float(value)
