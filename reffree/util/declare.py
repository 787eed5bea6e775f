"""What a user can run, said once: a function whose typed keywords are its options.

A keyword with an `Option` beside its type is an option: of the command (`reffree.cli.derive`), of a
study file, of the settings a result repeats. Function, command and file validate it alike. Keywords
without one belong to a call alone, such as ``progress`` or arrays of vectors.

>>> @declared
... def study(
...     corpora: object,
...     *,
...     resamples: Annotated[int, Bounds(100, 1000), Option("Of documents, for intervals.")] = 100,
...     pool: Annotated[Literal["given", "both"], Option("Which systems.")] = "both",
... ) -> int:
...     return resamples
>>> study({}, resamples=5)
Traceback (most recent call last):
reffree.util.errors.OptionError: found resamples = 5; expected a whole number, 100 or more; leave \
it out for its default
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, is_dataclass, replace
from functools import cache, wraps
from pathlib import PurePath
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Unpack,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from reffree.util.bounds import DEFAULT, Bounds, beside, show_value
from reffree.util.errors import InputError, OptionError, mistake, shorten

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["Annotated", "Bounds", "Literal", "Option", "OptionOf", "declared", "options_of"]

P = ParamSpec("P")
R = TypeVar("R")
MISSING = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Option:
    """What a keyword does, in words, and how the command line calls it.

    Attributes:
        help: a sentence for the help page and the documentation.
        flag: on the command line, such as ``-m/--metric``; else the keyword's own name.
        metavar: placeholder of the value on the help page.
        default: words for a default that is settled later.
        check: reads a value, or each of several, and refuses what it cannot read.
        names: kind of names a shell completes: metrics, methods, encoders, files, …
        cli: whether the command line has it; functions and study files have it in any case.
        initial: default of a key of a TypedDict, which cannot say one itself.
    """

    help: str
    flag: str | None = None
    metavar: str | None = None
    default: str | None = None
    check: Callable[[str], object] | None = None
    names: str | None = None
    cli: bool = True
    initial: Any = None


@dataclass(frozen=True, slots=True)
class OptionOf:
    """An option of a function: a keyword with its type and default."""

    name: str
    hint: Any  # the whole type, bounds and option beside it
    default: Any  # MISSING where there is none
    option: Option


@cache
def options_of(function: Callable[..., Any]) -> tuple[OptionOf, ...]:
    """Return the options of a function, its own first, then those of its ``**keywords``."""
    function = inspect.unwrap(function)
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters
    return choose_options((n, hints.get(n), each.default) for n, each in parameters.items())


def choose_options(found: Iterable[tuple[str, Any, Any]]) -> tuple[OptionOf, ...]:
    """Return the options among keywords with types and defaults, keys of a TypedDict among them."""
    options = []
    for name, hint, default in found:
        if (option := beside(hint, Option)) is not None:
            options.append(OptionOf(name, hint, default, option))
        elif get_origin(hint) is Unpack:
            shared = get_type_hints(get_args(hint)[0], include_extras=True)
            each = [(key, of, beside(of, Option)) for key, of in shared.items()]
            options += [OptionOf(key, of, o.initial, o) for key, of, o in each if o is not None]
    return tuple(options)


def declared(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function validate its options before anything runs, and repeat them in its result.

    A result that is a dataclass with ``settings`` gets the value of every option there.
    """

    @wraps(function)
    def checked(*args: P.args, **keywords: P.kwargs) -> R:
        _refuse_unknown(function, keywords)
        parameters = inspect.signature(function).parameters
        by_place = dict(zip(parameters, args, strict=False))
        taken = {name: parameters[name].annotation for name in by_place}
        _refuse_other_than_corpora(taken, {**by_place, **keywords})
        settings = validate_options(function, {**keywords, **by_place})
        by_name = {name: value for name, value in settings.items() if name not in by_place}
        result = function(*args, **{**keywords, **by_name})
        if is_dataclass(result) and hasattr(result, "settings"):
            given = {option.name: option.default for option in options_of(function)} | settings
            echo = {n: _plain(value) for n, value in given.items() if value is not MISSING}
            return cast("R", replace(cast("Any", result), settings=echo | dict(result.settings)))
        return result

    return checked


def _refuse_other_than_corpora(types: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Refuse names of files and the like where a corpus, or corpora by name, are to be given."""
    if types.get("corpus") == "Corpus" and not hasattr(arguments["corpus"], "documents"):
        kind = type(arguments["corpus"]).__name__
        remedy = 'load it first: reffree.load("corpus.jsonl")'
        raise mistake(None, f"a {kind}", "a Corpus", remedy)
    corpora = arguments.get("corpora", {})
    found = {"corpora": corpora}
    if isinstance(corpora, Mapping):
        found = {f"corpora[{name!r}]": each for name, each in corpora.items()}
    for name, value in found.items():
        if not hasattr(value, "documents"):
            remedy = 'load them first: {"mine": reffree.load("corpus.jsonl")}'
            raise mistake(None, f"{name}: a {type(value).__name__}", "corpora by name", remedy)


def _plain(value: object) -> object:
    """Return a value as JSON has it when it is read back."""
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, PurePath) else value


def validate_options(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options among keywords as their types want them; refuse what they do not take."""
    known = {option.name: option for option in options_of(function)}
    own = {name: value for name, value in given.items() if name in known}
    from pydantic import ValidationError  # not needed for help

    try:
        found = options_model(function).__pydantic_validator__.validate_python(own)
    except ValidationError as error:
        first = error.errors()[0]
        raise OptionError(
            f"{first['loc'][0]} = {show_value(first['input'])}",
            expected=expectation(dict(first)),
            remedy=DEFAULT,
        ) from None
    settings = {name: getattr(found, name) for name in own}
    for name, value in settings.items():
        check_names(name, value, known[name].option)
    return settings


@cache
def options_model(function: Callable[..., Any]) -> type[BaseModel]:
    """Return the options of a function as fields, for validation and for study files."""
    from pydantic import ConfigDict, create_model

    strict = ConfigDict(
        extra="forbid", strict=True, arbitrary_types_allowed=True, allow_inf_nan=False
    )
    fields: dict[str, Any] = {
        option.name: (option.hint, ... if option.default is MISSING else option.default)
        for option in options_of(function)
    }
    return create_model(function.__name__, __config__=strict, **fields)


def check_names(field: str, value: object, option: Option) -> None:
    """Let the option's own reader refuse a name, or one of several."""
    if option.check is None or value is None:
        return
    many = [value] if isinstance(value, str) or not hasattr(value, "__iter__") else value
    for name in many:
        try:
            option.check(name)
        except InputError as error:
            if isinstance(error, OptionError):
                raise
            raise OptionError(
                f"{error.found} ({field})", expected=error.expected, remedy=error.remedy
            ) from None


def expectation(error: Mapping[str, Any]) -> str:
    """Say in the words of this package what pydantic expected of a value."""
    kind, context = error["type"], error.get("ctx") or {}
    match kind:
        case "greater_than_equal":
            return f"a whole number, {context['ge']:,} or more"
        case "less_than_equal":
            return f"a whole number, {context['le']:,} or less"
        case "int_type" | "int_from_float" | "int_parsing":
            return "a whole number"
        case "literal_error":
            return str(context["expected"]).replace("'", "").replace(", ", " or ")
        case "bool_type":
            return "true or false"
        case "sequence_str":
            return "a list"
        case "string_type":
            return "text"
    return str(error["msg"]).removeprefix("Input should be ").removeprefix("Value error, ")


def _refuse_unknown(function: Callable[..., Any], given: Iterable[str]) -> None:
    """Refuse a keyword that the function, or what it passes keywords on to, does not have."""
    known: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        is_shared = parameter.kind is parameter.VAR_KEYWORD
        shared = get_args(get_type_hints(function)[name])[0].__annotations__ if is_shared else ()
        known += shared if is_shared else [name]
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(
                f"{function.__name__}() got an unexpected keyword argument {shorten(name)!r}{hint}"
            )
