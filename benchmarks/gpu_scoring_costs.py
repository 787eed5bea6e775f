"""Operations, bytes and kernels of scoring on a card, counted while the code itself runs.

Scoring is run on torch's meta device, where every operation is called and none is computed, with
within the memory of a card. So there is no second description of it that could
be of older code; `gpu_costs.py` has the cards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from gpu_costs import (
    FREE_SHARE,
    KERNEL_SECONDS,
    MEMORY_SHARE,
    PCIE_SHARE,
    Card,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from reffree.metrics.free import engine, on_devices
from reffree.metrics.registry import WITHOUT_SEARCH, parse_metrics

SECTOR_BYTES = 32
"""A card reads at least so much for an entry of a table that stands alone."""

READ_HYPOTHESIS_SECONDS = 0.9e-6
"""The host's time to read one hypothesis (`scoring_limits.py`)."""

HOST_BYTES_PER_SECOND = 5e9
"""Vectors that one thread of the host looks at for NaN and copies to memory that a card reads;
13 GB/s were measured on a CPU where the copy stays in its cache."""

MOST_MEMORY = 1e12
"""Bytes taken for a card whose memory is not known."""

DISTANCE_SHARE = 0.25
"""Of a card's peak in float64 that distances reach: that of matrix products is twice what a card
does otherwise, and each difference waits for two numbers from a cache."""

SEGMENT_UNITS = 16

NO_KERNEL = {"empty", "empty_like", "empty_strided", "new_empty", "scalar_tensor", "lift_fresh"}
OVERWRITTEN = {"copy_", "fill_", "zero_"}
SHAPE_ONLY = {"new_zeros", "zeros_like", "ones_like", "full_like", "new_full", "new_ones"}
LOOK_UPS = {"take": SECTOR_BYTES, "index": SECTOR_BYTES, "gather": 0}
"""Bytes that are read of a table per entry; rows that are gathered from stay in caches."""


class Traffic(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts kernels, operations of distances, and bytes read and written if each array is once.

    A lower bound of what they move, and an upper one of what comes from a card's memory, since
    small arrays stay in its cache.
    """

    def __init__(self) -> None:
        """Begin at nothing."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.kernels = 0
        self.moved = 0
        self.flops = 0

    def __torch_dispatch__(
        self,
        function: Any,  # noqa: ANN401
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        """Call an operation and count it."""
        named = kwargs or {}
        result = function(*args, **named)
        name = function.__name__.split(".")[0]
        if function.is_view or name in NO_KERNEL:
            return result
        given = [x for x in tree_leaves((args, _without_out(named))) if isinstance(x, torch.Tensor)]
        made = [x for x in tree_leaves(result) if isinstance(x, torch.Tensor)]
        if name in LOOK_UPS:
            given = given[1:]
            self.moved += made[0].numel() * LOOK_UPS[name]
        elif name in OVERWRITTEN:
            given = given[1:]
        elif name in SHAPE_ONLY:
            given = []
        if name == "_cdist_forward":  # a difference, its square, a sum
            self.flops += 3 * made[0].numel() * given[0].shape[-1]
        self.kernels += 1
        self.moved += sum(map(_nbytes, (*given, *made)))
        return result


def _without_out(named: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in named.items() if name != "out"}


def _nbytes(x: torch.Tensor) -> int:
    """Bytes of a tensor, those that it repeats once."""
    own = [size for size, stride in zip(x.shape, x.stride(), strict=True) if stride]
    return x.element_size() * int(np.prod(own))


@contextmanager
def by_torch() -> Iterator[None]:
    """Score CPU tensors by torch, as other devices' are, not by the compiled loop."""
    with patch.object(engine, "COMPILED_DEVICES", frozenset()):
        yield


@dataclass(frozen=True, slots=True)
class Counted:
    """What scoring some documents takes."""

    flops: float
    moved: float
    kernels: int


@lru_cache
def count(
    documents: int,
    shape: tuple[int, int],
    hypotheses: int,
    memory: int,
    device: str = "meta",
) -> Counted:
    """Score documents of a shape (units, dimensions), so many hypotheses each, and count."""
    vectors = torch.ones(shape, device=device)
    masses = np.tile(_masses(shape[0]), (hypotheses, 1))
    with by_torch(), Traffic() as traffic:
        engine.score_documents(
            [vectors] * documents,
            [masses] * documents,
            parse_metrics(WITHOUT_SEARCH),
            memory=memory,
        )
    return Counted(traffic.flops, traffic.moved, traffic.kernels)


def _masses(units: int) -> list[int]:
    """Segments of equal length, as many as random ones with a boundary every 16 units."""
    inner = max(1, units // SEGMENT_UNITS)
    step = units // (inner + 1)
    return [step] * inner + [units - inner * step]


@dataclass(frozen=True, slots=True)
class Scoring:
    """Seconds of scoring on a card and on its host, for so many hypotheses."""

    hypotheses: int
    products: float
    memory: float
    copies: float  # to the card, in the order of its kernels
    launches: float
    reading: float  # of hypotheses by the host
    vectors: float  # of documents, looked at and copied by the host

    @property
    def on_card(self) -> dict[str, float]:
        """What is done one after the other on the card."""
        return {"products": self.products, "memory": self.memory, "copies": self.copies}

    @property
    def on_host(self) -> dict[str, float]:
        """What one thread does one after the other."""
        return {"launches": self.launches, "reading": self.reading, "vectors": self.vectors}

    @property
    def in_stream(self) -> float:
        """Hypotheses a second of many batches: the host prepares one while the card is busy."""
        return self.hypotheses / max(sum(self.on_card.values()), sum(self.on_host.values()))

    @property
    def bound_in_stream(self) -> str:
        """What takes longest, of the side that takes longer."""
        return _longest(max(self.on_card, self.on_host, key=lambda side: sum(side.values())))

    @property
    def alone(self) -> float:
        """Hypotheses a second of one call that is waited for."""
        return self.hypotheses / sum(self._in_turn.values())

    @property
    def bound_alone(self) -> str:
        """What takes longest of it."""
        return _longest(self._in_turn)

    @property
    def _in_turn(self) -> dict[str, float]:
        """Parts of one call: the card begins when all is read, and works while kernels start."""
        is_starved = self.launches > sum(self.on_card.values())
        working = {"launches": self.launches} if is_starved else self.on_card
        return {"reading": self.reading, "vectors": self.vectors, **working}


def _longest(parts: dict[str, float]) -> str:
    return max(parts, key=lambda name: parts[name])


def scoring(
    units: int,
    dimension: int,
    hypotheses: int,
    card: Card,
    *,
    corpus: bool = False,
) -> Scoring:
    """Predict the five metrics without a search.

    Of one document whose vectors are on the card, or of a ``corpus`` of such documents that come
    from the host, as many together as the card's memory holds.
    """
    memory = int(min(card.memory, MOST_MEMORY) * FREE_SHARE) // 4
    n = _together(memory, units, dimension, hypotheses) if corpus else 1
    found = count(n, (units, dimension), hypotheses, memory)
    segments = len(_masses(units))
    sent = 8.0 * (segments + 2) * n * hypotheses  # edges, and which document's they are
    vectors = 4.0 * n * units * dimension if corpus else 0.0
    return Scoring(
        hypotheses=n * hypotheses,
        products=found.flops / (card.peak["float64"] * DISTANCE_SHARE),
        memory=found.moved / (card.bandwidth * MEMORY_SHARE),
        copies=(sent + vectors) / (card.bus * PCIE_SHARE),
        launches=found.kernels * KERNEL_SECONDS,
        reading=n * hypotheses * READ_HYPOTHESIS_SECONDS,
        vectors=vectors / HOST_BYTES_PER_SECOND,
    )


def _together(memory: int, units: int, dimension: int, hypotheses: int) -> int:
    """Documents of a batch whose hypotheses are laid out together."""
    each = on_devices.UNIT_BYTES * units + on_devices.SEGMENT_BYTES * len(_masses(units))
    most = memory // (4 * each * hypotheses)
    pairs = memory // (2 * on_devices.PAIR_BYTES * units**2)
    components = memory // (4 * on_devices.COMPONENT_BYTES * units * dimension)
    return max(1, min(most, pairs, components))
