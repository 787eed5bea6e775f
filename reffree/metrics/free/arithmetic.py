r"""Distances and sums that come out the same in whatever order a device adds.

Squared distances are dot products, :math:`|x|^2 + |y|^2 - 2xy`, which cancel where vectors are
near. So every component is first written as three whole numbers of 18 bits, digits. Their products,
and sums of these over the dimensions, are whole numbers that float64 holds without rounding: what
comes out is the distance of the rounded vectors, however near they are.

**Bound.** With ``m`` the power of two above a vector's largest component, components become
multiples of ``2^-53 m``, so a vector moves by ``2^-54 √d m`` at most, and a distance by what its
two vectors move. Vectors of float32 whose components are all beyond ``2^-29 m`` do not move at all.
Adding up the digits' products adds ``2^-86 d m²`` at most to the square of vectors nearer than
``2^-18 m``, which matters less than the rounding unless they are nearer than some ``2^-33 m``; to
the square of others, float64's own last bits. There are at most `MOST_EXACT` dimensions, or sums of
products may be rounded like any.

A device that is slow at float64 (`arithmetic_of`) multiplies halves of digits as float32, 256 at a
time, likewise without rounding: the very same numbers. Nine bits are exact even where products are
taken as TF32 or bfloat16, so no setting of torch matters but autocast (`in_own_types`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import Tensor

DIGIT_BITS = 18
"""Of a digit, with its sign; the first has one less."""

N_DIGITS = 3

MOST_EXACT = 8192
"""Dimensions whose products are added up without any rounding, whatever the vectors."""

LEAST_EXPONENT = -400
"""Vectors shorter than 2 to this, of a document's longest, lose digits: their squares vanish."""


@dataclass(frozen=True)
class Arithmetic:
    """How digits are multiplied."""

    dtype_name: str  # that they are multiplied in
    pieces: int  # that a digit is cut into
    terms: int  # products of pieces that add up without rounding

    @property
    def dtype(self) -> torch.dtype:
        """Type that pieces are multiplied in."""
        import torch

        dtype: torch.dtype = getattr(torch, self.dtype_name)
        return dtype

    @property
    def bits(self) -> int:
        """Bits of a piece."""
        return DIGIT_BITS // self.pieces

    @property
    def n_pieces(self) -> int:
        """Pieces of a component."""
        return N_DIGITS * self.pieces


FLOAT64 = Arithmetic("float64", pieces=1, terms=MOST_EXACT)
FLOAT32 = Arithmetic("float32", pieces=2, terms=256)

GOOD_AT_FLOAT64 = frozenset({(6, 0), (7, 0), (8, 0), (9, 0), (10, 0)})
"""CUDA capabilities with at least half as many float64 as float32 operations per second."""


def arithmetic_of(device: torch.device) -> Arithmetic:
    """Choose the faster arithmetic; distances are the same bits.

    Whole digits make 9 products of float64, halves 36 of float32: the former are faster where a
    device does float64 at a quarter of the speed or more. GPUs of data centres do it at half the
    speed, others at 1/16 to 1/64.
    """
    import torch

    if device.type != "cuda":
        return FLOAT64
    is_good = torch.cuda.get_device_capability(device) in GOOD_AT_FLOAT64
    return FLOAT64 if is_good else FLOAT32


@dataclass(frozen=True)
class Digits:
    """Vectors (b, n, d) as whole numbers."""

    arithmetic: Arithmetic
    pieces: Tensor  # (b, pieces, parts, n, d / parts) from the first; parts of `terms` at most
    size: Tensor  # (b, n) the power of two that is above all components of a unit

    @classmethod
    def of(cls, vectors: Tensor, arithmetic: Arithmetic) -> Digits:
        """Write float64 vectors (b, n, d), none beyond 1, as digits."""
        import torch

        b, n, d = vectors.shape
        exponent = torch.frexp(vectors.abs().amax(-1)).exponent.clamp(min=LEAST_EXPONENT)
        n_parts = -(-d // arithmetic.terms)
        width = -(-d // n_parts)
        pieces = vectors.new_empty(
            (b, arithmetic.n_pieces, n_parts, n, width), dtype=arithmetic.dtype
        )
        rest = vectors * power_of_two(-exponent)[..., None]  # below 1
        rest = torch.nn.functional.pad(rest, (0, n_parts * width - d))
        rest = rest.view(b, n, n_parts, width).transpose(1, 2)  # (b, parts, n, d / parts)
        for k in range(arithmetic.n_pieces):
            rest = rest * 2.0 ** (arithmetic.bits - (k == 0))
            whole = rest.round()
            pieces[:, k] = whole
            rest = rest - whole  # at most a half
        return cls(arithmetic, pieces, power_of_two(exponent))

    @cached_property
    def squares(self) -> list[Tensor]:
        """What each power of the digits adds to the vectors' squared lengths: (b, n) each."""
        found = []
        for power in range(2 * N_DIGITS - 1):
            total = self.size.new_zeros(self.size.shape)
            for own, other in self._factors(power):
                product = (self.pieces[:, own] * self.pieces[:, other].flip(1)).sum(4)
                product = product.sum((1, 2), dtype=total.dtype)
                total = total * 2.0**self.arithmetic.bits + product
            found.append(total * _weight(power) * self.size * self.size)
        return found

    @cached_property
    def lengths(self) -> Tensor:
        """Lengths of the vectors."""
        total = self.squares[-1]
        for square in self.squares[-2::-1]:
            total = total + square
        return total.sqrt()  # (b, n)

    def squared_distances(self, rows: slice, columns: slice) -> Tensor:
        """Squared distances of some units with others: (b, rows, columns)."""
        import torch

        left, right = self.size[:, rows, None], self.size[:, None, columns]
        result = torch.zeros_like(left * right)
        for power, squares in enumerate(self.squares):
            total = torch.zeros_like(result)
            for own, other in self._factors(power):
                total.mul_(2.0**self.arithmetic.bits)
                for part in range(self.pieces.shape[2]):
                    backwards = self.pieces[:, other, part, columns].flip(1)
                    products = torch.matmul(
                        self.pieces[:, own, part, rows], backwards.transpose(2, 3)
                    )  # (b, factors, rows, columns)
                    total.add_(products.sum(1, dtype=torch.float64))
                    del products
            total.mul_(left * (-2.0 * _weight(power))).mul_(right)
            total.add_(squares[:, rows, None]).add_(squares[:, None, columns])
            result.add_(total)
            del total
        return result.clamp_(min=0.0)

    def _factors(self, power: int) -> Iterator[tuple[slice, slice]]:
        """Pieces, and from the last to the first others, whose products belong to a power.

        That is of the digits. Halves of digits come from the highest power of theirs on: first
        halves with first ones, first with second and second with first, second with second.
        """
        n, pieces = self.arithmetic.n_pieces, self.arithmetic.pieces
        for place in range(2 * pieces - 1):
            total = pieces * power + place  # that the places of the two add up to
            first, last = max(0, total - n + 1), min(total, n - 1)
            step = 1
            if pieces == 2 and place != 1:
                step = 2
                first += (first + place // 2) % 2
                last -= (last + place // 2) % 2
            yield slice(first, last + 1, step), slice(total - last, total - first + 1, step)


def in_own_types(device: torch.device) -> AbstractContextManager[object]:
    """Multiply in the types that factors have, though a training loop around asks for fewer bits.

    Products of halves of digits have no place in these.
    """
    import torch

    if not torch.amp.is_autocast_available(device.type):
        return nullcontext()
    return torch.autocast(device.type, enabled=False)


def _weight(power: int) -> float:
    """What a product of digits counts."""
    return 2.0 ** -(2 * (DIGIT_BITS - 1) + DIGIT_BITS * power)


def power_of_two(exponent: Tensor) -> Tensor:
    """2 to whole numbers within ±1000, exactly, whatever a device's own function rounds."""
    import torch

    return ((exponent.long() + 1023) << 52).view(torch.float64)


def running_sums(x: Tensor, dim: int, *, backwards: bool = False) -> Tensor:
    """Sums of everything up to each place of a dimension, or from it on.

    In an order that depends on the numbers summed alone: the last one, the one before it, the two
    before these, the four before those … So zeros at the far end change nothing, and no device has
    an order of its own.
    """
    import torch

    n = x.shape[dim]
    given, spare = x, None
    step = 1
    while step < n:
        # What stays is at the end where sums begin.
        first, rest = (n - step, 0) if backwards else (0, step)
        into = torch.empty_like(x) if spare is None else spare
        into.narrow(dim, first, step).copy_(x.narrow(dim, first, step))
        torch.add(
            x.narrow(dim, 0, n - step),
            x.narrow(dim, step, n - step),
            out=into.narrow(dim, rest, n - step),
        )
        spare = None if x is given else x  # the caller's tensor is not changed
        x, step = into, 2 * step
    return x


def row_sums(x: Tensor) -> Tensor:
    """Sums over the second dimension (h, s), neighbours first; zeros at the end change nothing."""
    import torch

    while x.shape[1] > 1:
        x = torch.nn.functional.pad(x, (0, x.shape[1] % 2))
        x = x[:, ::2] + x[:, 1::2]
    return x[:, 0] if x.shape[1] else x.new_zeros(len(x))
