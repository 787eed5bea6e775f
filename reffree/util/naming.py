"""Things users name on the command line with options: ``name:option=value,option=value``.

A thing is a frozen dataclass with a ``name``; its fields are its options. Types read from text are
``int``, ``float``, ``bool``, ``str`` and ``Literal``, each perhaps ``| None``. Fields whose
metadata say ``{"option": False}`` cannot be named.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from functools import cache, lru_cache
from numbers import Real
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from reffree.util.bounds import MANY, Bounds, bounds_in, check_choice, check_number, check_whole
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
        raise OptionError(
            f"several {kind}s in one, {shorten(text)!r}",
            expected=f"one {kind}",
            remedy=f"repeat the option: {_repeated(text, flag)}",
        )
    if name not in registry:
        raise UnknownNameError(kind, name, registry)
    known = _options(registry[name])
    values: dict[str, Value] = {}
    for option in filter(None, given.split(",")):
        key, _, value = option.partition("=")
        if key not in known:
            listed = ", ".join(_wording(k, hint) for k, hint in known.items())
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


def _repeated(text: str, flag: str) -> str:
    parts = [part if part.isprintable() else repr(part) for part in text.split(",")]
    return shorten(" ".join(f"{flag} {part}" for part in parts), 200)


def settings_of(thing: Named) -> dict[str, Value]:
    """Every option with its value, defaults included."""
    return {name: getattr(thing, name) for name in _options(type(thing))}


@lru_cache(maxsize=1024)
def spelling_of(thing: Named) -> str:
    """Return the shortest text that `parse_named` reads as this thing."""
    defaults = {field.name: field.default for field in fields(thing)}
    changed = [
        f"{name}={_written(value)}"
        for name, value in settings_of(thing).items()
        if value != defaults[name]
    ]
    return ":".join(filter(None, [thing.name, ",".join(changed)]))


def check_options(thing: DataclassInstance) -> None:
    """Refuse options that are none of the choices of their type, no numbers, or out of bounds.

    Bounds stand beside the type, ``k: Annotated[int, Bounds(1)]``, and choices in it.
    """
    for name, (kinds, bounds, default) in _checks(type(thing)).items():
        value = getattr(thing, name)
        choices = [c for kind in kinds if get_origin(kind) is Literal for c in get_args(kind)]
        is_choice = any(type(value) is type(each) and value == each for each in choices)
        if is_choice or (value is None and NoneType in kinds):
            continue
        limits = bounds or (Bounds(-MANY) if float in kinds else Bounds())
        remedy = limits.remedy if default is None else f"leave it out for {_written(default)}"
        if int in kinds and float not in kinds:
            check_whole(name, value, limits.least, limits.most, remedy=remedy)
        elif float in kinds and (bounds or isinstance(value, bool) or not _is_finite(value)):
            check_number(name, value, limits.least, limits.most, remedy=remedy)
        elif choices and not {int, float} & {*kinds}:
            check_choice(name, value, [_written(c) for c in choices], _written(default))


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


@cache
def _checks(
    kind: type[DataclassInstance],
) -> dict[str, tuple[tuple[object, ...], Bounds | None, Any]]:
    """Types, bounds and default of every option."""
    hints, found = _options(kind), {}
    for field in fields(kind):
        if field.name in hints:
            parts = (hints[field.name], *get_args(hints[field.name]))
            bounds = next(filter(None, map(bounds_in, parts)), None)
            default = None if field.default is MISSING else field.default
            found[field.name] = _kinds(hints[field.name]), bounds, default
    return found


@cache
def _options(kind: type[DataclassInstance]) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {
        field.name: hints[field.name]
        for field in fields(kind)
        if field.init and field.metadata.get("option", True)
    }


def _written(value: Value) -> str:
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"  # as a user writes it: length=12
    return str(value).lower() if isinstance(value, bool) or value is None else f"{value}"


def _kinds(hint: object) -> tuple[object, ...]:
    """Return the types that a hint allows, without what stands beside them."""
    if get_origin(hint) is Annotated:
        return _kinds(get_args(hint)[0])
    is_union = get_origin(hint) is not None and get_origin(hint) is not Literal
    return tuple(one for part in get_args(hint) for one in _kinds(part)) if is_union else (hint,)


def _wording(option: str, hint: object) -> str:
    words = []
    for kind in _kinds(hint):
        if get_origin(kind) is Literal:
            words += [_written(choice) for choice in get_args(kind)]
        elif kind is not NoneType:
            names = {int: "INTEGER", float: "NUMBER", bool: "true|false", str: "TEXT"}
            words.append(names[kind])  # type: ignore[index]
    return " or ".join(f"{option}={word}" for word in words)


def _read(text: str, hint: object) -> Value:
    """Return the value, None if the text is none of this type."""
    for kind in _kinds(hint):
        if get_origin(kind) is Literal:
            for choice in get_args(kind):
                if text == _written(choice):
                    value: Value = choice
                    return value
        elif kind is bool and text in ("true", "false"):
            return text == "true"
        elif kind in (int, float) and _is_number(text, kind):
            return int(text) if kind is int else float(text)
        elif kind is str and text:
            return text
    return None


def _is_number(text: str, kind: object) -> bool:
    try:
        return abs(int(text) if kind is int else float(text)) < float("inf")
    except ValueError:
        return False
