"""A digest of all that a compiled function is made of: itself, what it calls, its constants.

numba looks at the function alone, and would go on using its code after a change in what it calls.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

PLAIN = (bool, int, float, complex, str, bytes, type(None), tuple, frozenset, dict)
NAMED = (ModuleType, BuiltinFunctionType, type, np.ufunc)


def made_of(function: Callable[..., Any]) -> str:
    """Return the digest of a function, compiled or not, and of whatever it names."""
    digest = hashlib.sha256()
    for part in _parts(function, set()):
        digest.update(part.encode())
    return digest.hexdigest()


def _parts(function: Any, seen: set[FunctionType]) -> Iterator[str]:  # noqa: ANN401
    inner = getattr(function, "__wrapped__", function)
    if inner in seen:
        return
    seen.add(inner)
    yield f"{inner.__module__}.{inner.__qualname__}"
    yield repr(sorted(getattr(function, "targetoptions", {}).items()))
    names = set()
    for code in _codes(inner.__code__):
        yield repr((code.co_code, code.co_names, code.co_varnames, _constants(code)))
        names |= set(code.co_names)
    variables = dict(inner.__globals__)
    for name, cell in zip(inner.__code__.co_freevars, inner.__closure__ or (), strict=True):
        names.add(name)
        variables[name] = cell.cell_contents
    for name in sorted(names & variables.keys()):
        yield name
        yield from _value(name, variables[name], seen)


def _value(name: str, value: Any, seen: set[FunctionType]) -> Iterator[str]:  # noqa: ANN401
    if isinstance(value, PLAIN):
        yield _written(value)
    elif isinstance(value, np.ndarray | np.generic):
        yield repr((value.dtype.str, value.shape, value.tobytes()))
    elif isinstance(value, NAMED):
        yield str(getattr(value, "__name__", value))
    elif isinstance(getattr(value, "__wrapped__", value), FunctionType):
        yield from _parts(value, seen)
    else:
        raise TypeError(f"no digest of {name}, of type {type(value).__name__}, in compiled code")


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _constants(code: CodeType) -> list[str]:
    return [_written(c) for c in code.co_consts if not isinstance(c, CodeType)]


def _written(value: object) -> str:
    """Spell a constant; the order of a set changes from process to process."""
    return repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value)
