"""Commands made from declarations: click's options, the reading of inputs, one call, one output."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import click

from reffree.cli.completion import complete
from reffree.cli.declaration import Declaration, Unknown, read_declaration
from reffree.cli.help_page import PagedCommand, SectionOption
from reffree.cli.messages import progress, waiting
from reffree.cli.output import Output
from reffree.cli.reading import (
    INPUT_OPTIONS,
    OUTPUT_OPTIONS,
    TABLE_OPTION,
    Decorator,
    check_encoding,
    corpora_argument,
    files_by_name,
    input_files,
    option_group,
    read_corpora,
    read_corpus,
    read_vectors,
)
from reffree.encoders.options import Encoding
from reffree.studies.keywords import EncodersOption
from reffree.util.bounds import bounds_in
from reffree.util.declare import MISSING, OptionOf, option_in

ENCODER = ("encoder", "encoders", "drop", "device", "offline", "cache")
"""Options that every command that encodes has."""


def plain_type(hint: object) -> tuple[Any, bool]:
    """Return a type without what stands beside it and without None, and whether it may be None."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, types.UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not types.NoneType]
        lists = [kind for kind in kinds if _is_list(kind)]  # as of one name or several
        one = (lists or kinds)[0] if lists or len(kinds) == 1 else None
        return (tuple(kinds) if one is None else plain_type(one)[0]), True
    return hint, False


def click_option(option: OptionOf) -> Decorator:
    """Make click's option of one of a function's."""
    kind, _ = plain_type(option.hint)
    own = option.option
    flags = (own.flag or f"--{option.name.replace('_', '-')}").split("/")
    section = "Encoder" if option.name in ENCODER else "Run" if option.name == "seed" else "Options"
    keywords: dict[str, Any] = {"section": section, "metavar": own.metavar, "cls": SectionOption}
    origin = get_origin(kind)
    if kind is bool:
        keywords |= {"is_flag": True, "flag_value": not option.default, "default": None}
    elif origin is Literal:
        keywords["type"] = click.Choice(get_args(kind))
    elif _is_list(kind):
        inner, _ = plain_type(get_args(kind)[0])
        if inner in (int, float) or isinstance(inner, tuple):
            keywords |= {"callback": _read_numbers, "metavar": own.metavar or "N,N,…"}
        else:
            keywords["multiple"] = True
            if get_origin(inner) is Literal:
                keywords["type"] = click.Choice(get_args(inner))
    elif _is_mapping(kind):
        keywords |= {"multiple": True, "metavar": own.metavar or "NAME=FILE"}
    elif kind is int:
        bounds = bounds_in(option.hint)
        keywords["type"] = click.IntRange(bounds.least, bounds.most) if bounds else int
    elif kind in (float, Path):
        keywords["type"] = float if kind is float else click.Path(path_type=Path)
    if own.names is not None:
        keywords["shell_complete"] = complete(own.names)
    help = own.help + _default_words(option)
    return click.option(*flags, option.name, help=help, **keywords)


def _is_list(kind: object) -> bool:
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Sequence) and origin is not str


def _is_mapping(kind: object) -> bool:
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _default_words(option: OptionOf) -> str:
    """Say the default, in the option's words or as it is."""
    default = option.option.default
    if default is None and not isinstance(option.default, Unknown | bool | types.NoneType):
        value = option.default
        if value is not MISSING and value != ():
            many = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
            default = ", ".join(f"{one:g}" if isinstance(one, float) else str(one) for one in many)
    return "" if default is None else f"  [default: {default}]"


def _read_numbers(
    ctx: click.Context, param: click.Parameter, text: str | None
) -> list[int | float] | None:
    """Read numbers between commas, or the first and the last whole number of a range."""
    if text is None:
        return None
    try:
        first, dash, last = text.partition("-")
        if dash and first.isdecimal() and last.isdecimal():
            return list(range(int(first), int(last) + 1))
        return [int(x) if x.strip().isdecimal() else float(x) for x in text.split(",")]
    except ValueError:
        raise click.UsageError(
            f"{param.opts[0]} {text}: expected numbers with commas between them, such as 1,2,4."
        ) from None


def derived_options(declaration: Declaration, *without: str) -> Decorator:
    """Return one decorator with the options that the command line has, but for some.

    Of two with one flag the function's own goes before the one it shares with others.
    """
    shown: dict[str, OptionOf] = {}
    for each in declaration.options:
        if each.option.cli and each.name not in without:
            shown.setdefault(each.option.flag or f"--{each.name}", each)
    return option_group(*map(click_option, shown.values()))


def encoding_options(*names: str) -> Decorator:
    """Return the options of how texts become vectors: those named, or all."""
    hints = {**get_type_hints(Encoding, include_extras=True), "encoders": EncodersOption}
    found = [(name, hints[name]) for name in names or Encoding.__annotations__]
    return option_group(
        *(click_option(OptionOf(name, h, None, o)) for name, h in found if (o := option_in(h)))
    )


def given_options(declaration: Declaration, given: Mapping[str, Any]) -> dict[str, Any]:
    """Choose the values a user has given; what was not is left to the function's own default."""
    names = {option.name for option in declaration.options}
    return {k: v for k, v in given.items() if k in names and v is not None and v != ()}


def study_command(module: str, name: str, function: str) -> click.Command:
    """Make the command of a function from a corpus, or from corpora by name, to a result."""
    declaration = read_declaration(module, function)

    def run(**given: Any) -> None:  # noqa: ANN401  (values of any option)
        run_study(declaration, given)

    decorate = option_group(
        corpora_argument(required=declaration.needs_corpora),
        derived_options(declaration),
        INPUT_OPTIONS,
        OUTPUT_OPTIONS,
        TABLE_OPTION,
    )
    return click.command(name=name, cls=PagedCommand, help=declaration.help)(decorate(run))


def run_study(declaration: Declaration, given: Mapping[str, Any]) -> None:
    """Read what the options name, call the function, and write what it found.

    Every CORPUS is a corpus of its own, called by its file's name without extension, unless the
    function takes only one.
    """
    options = given_options(declaration, given)
    named = {
        each.name: files_by_name(options.pop(each.name), f"--{each.name}")
        for each in declaration.options
        if each.name in options and _is_mapping(plain_type(each.hint)[0])
    }
    beside = [file for files in named.values() for file in files.values()]
    command, inputs = declaration.function, input_files(given, *beside)
    out = Output.of(given["output_format"], given["output"], inputs, command=command)
    check_encoding(options, given["embeddings"])
    if declaration.takes_one:
        corpora: Any = read_corpus(given)
        options["embeddings"] = read_vectors(corpora, given["embeddings"])
    else:
        reads_text = any(each.name in ENCODER for each in declaration.options)
        corpora = read_corpora(given, text_needed=reads_text)
        if named and len(corpora) > 1:
            raise click.UsageError(
                f"--{next(iter(named))} with {len(corpora)} corpora: name one CORPUS."
            )
        options |= {name: dict.fromkeys(corpora, files) for name, files in named.items()}
        if (file := given["embeddings"]) is not None:
            options["embeddings"] = {name: read_vectors(c, file) for name, c in corpora.items()}
    with waiting("Loading"):
        function = declaration.load()
    out.show(function(corpora, progress=progress, **options), given["table"])
