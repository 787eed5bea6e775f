"""Things users name on the command line with options: ``name:option=value,option=value``.

A thing is a frozen dataclass with a ``name``; its fields are its options. Types read from text are
``int``, ``float``, ``bool``, ``str`` and ``Literal``, each perhaps ``| None``. Fields whose
metadata say ``{"option": False}`` cannot be named.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, Field, fields
from functools import cache, lru_cache
from numbers import Real
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from reffree.util.bounds import MANY, Bounds, beside, check_choice, check_number, check_whole
from reffree.util.errors import InputError, OptionError, UnknownNameError, shorten

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Value = int | float | bool | str | None


class Named(Protocol):
    """A frozen dataclass registered under a name."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def name(self) -> str:
        """Registered name."""
        ...

    def __hash__(self) -> int: ...


T = TypeVar("T", bound=Named)


def parse_named(text: str, registry: Mapping[str, type[T]], kind: str, flag: str) -> T:
    """Make what ``text`` names; ``kind`` and ``flag`` are for messages."""
    name, _, given = text.partition(":")
    if "," in name:
        parts = [part if part.isprintable() else repr(part) for part in text.split(",")]
        repeated = shorten(" ".join(f"{flag} {part}" for part in parts), 200)
        raise OptionError(
            f"several {kind}s in one, {shorten(text)!r}",
            expected=f"one {kind}",
            remedy=f"repeat the option: {repeated}",
        )
    if name not in registry:
        raise UnknownNameError(kind, name, registry)
    known = {key: kinds for key, (kinds, _, _) in _options(registry[name]).items()}
    values: dict[str, Value] = {}
    for option in filter(None, given.split(",")):
        key, _, value = option.partition("=")
        if key not in known:
            listed = ", ".join(_wording(k, kinds) for k, kinds in known.items())
            raise OptionError(
                f"the option {shorten(option)!r} of {name}",
                expected=listed or "no options",
                remedy=f"write {flag} {name}",
            )
        read = _read(value, known[key])
        if read is None:
            raise OptionError(
                f"the option {shorten(option)!r} of {name}",
                expected=_wording(key, known[key]),
                remedy=f"leave it out for the default: {flag} {name}",
            )
        values[key] = read
    try:
        return registry[name](**values)
    except InputError as error:
        raise OptionError(
            f"{error.found} in {shorten(text)!r}", expected=error.expected, remedy=error.remedy
        ) from None


def settings_of(thing: Named) -> dict[str, Value]:
    """Every option with its value, defaults included."""
    return {name: getattr(thing, name) for name in _options(type(thing))}


@lru_cache(maxsize=1024)
def spelling_of(thing: Named) -> str:
    """Return the shortest text that `parse_named` reads as this thing."""
    changed = [
        f"{name}={_written(getattr(thing, name))}"
        for name, (_, _, default) in _options(type(thing)).items()
        if getattr(thing, name) != default
    ]
    return ":".join(filter(None, [thing.name, ",".join(changed)]))


def check_options(thing: DataclassInstance) -> None:
    """Refuse options that are none of the choices of their type, no numbers, or out of bounds.

    Bounds stand beside the type, ``k: Annotated[int, Bounds(1)]``, and choices in it.
    """
    for name, (kinds, bounds, default) in _options(type(thing)).items():
        value = getattr(thing, name)
        choices = [c for kind in kinds if get_origin(kind) is Literal for c in get_args(kind)]
        is_choice = any(type(value) is type(each) and value == each for each in choices)
        if is_choice or (value is None and NoneType in kinds):
            continue
        limits = bounds or (Bounds(-MANY) if float in kinds else Bounds())
        remedy = (
            limits.remedy if default in (None, MISSING) else f"leave it out for {_written(default)}"
        )
        if int in kinds and float not in kinds:
            check_whole(name, value, limits.least, limits.most, remedy=remedy)
        elif float in kinds and (bounds or not _is_finite(value)):
            check_number(name, value, limits.least, limits.most, remedy=remedy)
        elif choices and not {int, float} & {*kinds}:
            check_choice(name, value, [_written(c) for c in choices], _written(default))


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


@cache
def _options(
    kind: type[DataclassInstance],
) -> dict[str, tuple[tuple[Any, ...], Bounds | None, Any]]:
    """Types, bounds and default of every option."""
    hints, found = get_type_hints(kind, include_extras=True), {}
    for field in fields(kind):
        if field.init and field.metadata.get("option", True):
            hint = hints[field.name]
            bounds = next(filter(None, (beside(x, Bounds) for x in (hint, *get_args(hint)))), None)
            found[field.name] = kinds_of(hint), bounds, field.default
    return found


def _written(value: Value) -> str:
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"  # as a user writes it: length=12
    return str(value).lower() if isinstance(value, bool) or value is None else f"{value}"


def kinds_of(hint: object) -> tuple[Any, ...]:
    """Return the types that a hint allows, without what stands beside them."""
    if get_origin(hint) is Annotated:
        return kinds_of(get_args(hint)[0])
    is_union = get_origin(hint) in (Union, UnionType)
    return tuple(x for part in get_args(hint) for x in kinds_of(part)) if is_union else (hint,)


def _wording(option: str, kinds: Iterable[Any]) -> str:
    names = {int: "INTEGER", float: "NUMBER", bool: "true|false", str: "TEXT"}
    words = []
    for kind in kinds:
        if kind is not NoneType:
            words += [_written(choice) for choice in get_args(kind)] or [names[kind]]
    return " or ".join(f"{option}={word}" for word in words)


def _read(text: str, kinds: Iterable[Any]) -> Value:
    """Return the value, None if the text is of none of the types."""
    for kind in kinds:
        for choice in (True, False) if kind is bool else get_args(kind):  # of a Literal
            if text == _written(choice):
                return cast("Value", choice)
        if kind is str and text:
            return text
        if kind in (int, float):
            with suppress(ValueError):
                if abs(kind(text)) < math.inf:
                    return cast("Value", kind(text))
    return None
