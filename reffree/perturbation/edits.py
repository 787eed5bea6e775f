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

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from reffree.bounds import check_whole
from reffree.segmentation import Segmentation


@dataclass(frozen=True, slots=True)
class Edits:
    """Boundaries by what was to happen to them."""

    removed: int = 0
    inserted: int = 0
    moved: int = 0

    def __add__(self, other: Edits) -> Edits:
        """Add up, kind by kind."""
        return Edits(
            self.removed + other.removed,
            self.inserted + other.inserted,
            self.moved + other.moved,
        )


@dataclass(frozen=True, slots=True)
class Perturbed:
    """A perturbed segmentation and the account of it."""

    segmentation: Segmentation
    done: Edits
    not_done: Edits  # asked for, but there was no boundary or no place left
    not_moved: tuple[int, ...] = ()  # boundaries that were to move and had nowhere to go


def removal(segmentation: Segmentation, k: int, rng: np.random.Generator) -> Perturbed:
    """Remove ``k`` boundaries, any set equally likely (Ghinassi et al. 2024 §3.4.2)."""
    return mixture(segmentation, rng, remove=k)


def insertion(segmentation: Segmentation, k: int, rng: np.random.Generator) -> Perturbed:
    """Insert ``k`` boundaries into gaps without one, any set equally likely."""
    return mixture(segmentation, rng, insert=k)


def replacement(segmentation: Segmentation, k: int, rng: np.random.Generator) -> Perturbed:
    """Remove ``k`` boundaries and insert as many elsewhere: their number never changes."""
    return mixture(segmentation, rng, remove=k, insert=k, balanced=True)


def transposition(
    segmentation: Segmentation, distance: int, rng: np.random.Generator, k: int | None = None
) -> Perturbed:
    """Move ``k`` boundaries (all without ``k``) left or right by exactly ``distance`` units.

    Ghinassi et al. 2024 §3.4.2: the text moves boundaries "a number n of sentences away", the
    caption of Figure 3 counts "transposed boundaries"; both can be asked for. A boundary may go
    neither out of the document nor to a place where the source has a boundary, and no two go to one
    place. Of all ways to move as many as can move, each is equally likely: a boundary on its own
    goes left or right with probability ½.
    """
    move = len(segmentation) - 1 if k is None else k
    return mixture(segmentation, rng, move=move, distance=distance)


def mixture(
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
    remove, insert = whole_number("remove", remove), whole_number("insert", insert)
    distance = whole_number("distance", distance)
    move = whole_number("move", move) if distance else 0
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
    done = Edits(len(removed), len(inserted), len(targets))
    return Perturbed(
        Segmentation.from_boundaries(sorted(result), n_units),
        done,
        Edits(remove - done.removed, insert - done.inserted, move - done.moved),
        tuple(sorted(set(moving) - targets.keys())),
    )


def _targets(
    moving: Collection[int],
    source: set[int],
    n_units: int,
    distance: int,
    rng: np.random.Generator,
) -> dict[int, int]:
    """Return where each boundary goes; those that cannot move are left out.

    Only two boundaries that are two distances apart can want the same place, the one between them.
    Linked by such places they form chains. Those before some turn of a chain go left and those
    after it right, if both ends are free; all go to the free end, if there is one; else one stays
    and the others move towards it. So a uniform turn is a uniform choice of all that is possible.
    """

    def is_free(place: int) -> bool:
        return 0 < place < n_units and place not in source

    unseen, targets = set(moving), {}
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
        targets.update({boundary: boundary - distance for boundary in going_left})
        targets.update({boundary: boundary + distance for boundary in going_right})
    return targets


def whole_number(option: str, value: int) -> int:
    """Return a number of things as Python's own; refuse anything else."""
    check_whole(option, value, remedy="write 2 for two boundaries or units")
    return int(value)
