"""What every metric is: a name, options, what it needs, and which way is better."""

from __future__ import annotations

from dataclasses import Field
from typing import Any, ClassVar

from reffree.statistics.losses import Direction
from reffree.util.arrays import Floats
from reffree.util.naming import check_options


class Metric:
    """A metric with its options: a frozen dataclass, whose fields they are.

    ``needs`` are inputs beside segmentations: ``vectors``, ``gold``, ``text``, ``word_vectors``.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    name: ClassVar[str]
    needs: ClassVar[frozenset[str]]
    direction: ClassVar[Direction]  # which way what tables show is better
    undefined: ClassVar[str] = "it never is"  # why a document with a boundary may have no score

    def __post_init__(self) -> None:
        """Refuse options out of their bounds."""
        check_options(self)

    def losses(self, raw: Floats) -> Floats:
        """Turn raw scores so that lower is better."""
        raise NotImplementedError

    def shown(self, raw: float) -> float:
        """Return what tables show of a raw score."""
        raise NotImplementedError
