"""Dot products of four vectors with four others at once, all sums in registers.

Compilers use half of a wide register for this unless told; told, they are as fast as a linear
algebra library, whose last bits depend on threads and on what else is multiplied. Here a product
has one order of sums, which depends on the vectors' size and the processor alone.
"""

# What the compiler calls has no types of ours.
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

BLOCK = 4
"""Vectors on either side: each number read is used so many times."""

FEATURES = binding.get_host_cpu_features()

LANES = 8 if FEATURES.get("avx512f") else 4 if FEATURES.get("avx") else 2
"""Numbers in a register."""


@intrinsic
def kept_apart(typing_context):
    """Called in a function, keep it out of those that call it.

    A sum in any order is then compiled once, to one order, whoever asks for it.
    """

    def mark(context, builder, signature, arguments):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), mark


@intrinsic
def multiply_blocks(typing_context, x, rows, columns, width, products):
    """Fill ``products`` (16,) from vectors that start at ``rows`` and ``columns`` of ``x``.

    ``width`` numbers of each, a multiple of `LANES`; fastest at addresses that registers divide.
    """
    signature = types.void(x, rows, columns, width, products)
    return signature, _multiply_blocks


def _multiply_blocks(context, builder, signature, arguments):
    numbers, rows, columns, width, products = arguments
    start = context.make_array(signature.args[0])(context, builder, numbers).data
    into = context.make_array(signature.args[4])(context, builder, products).data
    index, number = ir.IntType(64), ir.DoubleType()
    register = ir.VectorType(number, LANES)
    pairs = [(r, c) for r in range(BLOCK) for c in range(BLOCK)]
    sums = [cgutils.alloca_once_value(builder, ir.Constant(register, None)) for _ in pairs]

    def load(places, which, k):
        place = builder.add(builder.extract_value(places, which), k)
        loaded = builder.load(builder.bitcast(builder.gep(start, [place]), register.as_pointer()))
        loaded.align = 8
        return loaded

    # In one step where the processor has it, always or never.
    fused = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(register, [register] * 3), f"llvm.fmuladd.v{LANES}f64"
    )
    zero, step = ir.Constant(index, 0), ir.Constant(index, LANES)
    with cgutils.for_range_slice(builder, zero, width, step) as (k, _):
        left = [load(rows, which, k) for which in range(BLOCK)]
        right = [load(columns, which, k) for which in range(BLOCK)]
        for total, (r, c) in zip(sums, pairs, strict=True):
            builder.store(builder.call(fused, [left[r], right[c], builder.load(total)]), total)
    for place, total in enumerate(sums):
        result = _added_up(builder, builder.load(total))
        builder.store(result, builder.gep(into, [ir.Constant(index, place)]))
    return context.get_dummy_value()


def _added_up(builder, total):
    """Sum of a register's numbers, halves onto each other."""
    lanes = LANES
    while lanes > 1:
        lanes //= 2
        index = ir.VectorType(ir.IntType(32), lanes)
        low, high = (
            builder.shuffle_vector(
                total, total, ir.Constant(index, list(range(first, first + lanes)))
            )
            for first in (0, lanes)
        )
        total = builder.fadd(low, high)
    return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))
