"""Commands made from declarations: click's options, the reading of inputs, one call, one output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click

from reffree.cli import LazyGroup
from reffree.cli.declaration import Declaration, Unknown, read_declaration, source_of
from reffree.cli.files import (
    Output,
    check_encoding,
    input_files,
    read_corpora,
    read_corpus,
    read_vectors,
)
from reffree.cli.messages import progress
from reffree.cli.options import (
    INPUT_OPTIONS,
    OUTPUT_OPTIONS,
    TABLE_OPTION,
    Decorator,
    PagedCommand,
    SectionOption,
    complete,
    corpora_argument,
    files_by_name,
    option_group,
)
from reffree.encoders.options import Encoding
from reffree.studies import STUDIES
from reffree.studies.keywords import EncodersOption
from reffree.util.bounds import Bounds, beside
from reffree.util.declare import MISSING, OptionOf, choose_options
from reffree.util.naming import kinds_of

ENCODER = ("encoder", "encoders", "drop", "device", "offline", "cache")
"""Options that every command that encodes has."""


def plain_type(hint: object) -> Any:  # noqa: ANN401  (a type, or several)
    """Return a type without what stands beside it and without None."""
    kinds = [kind for kind in kinds_of(hint) if kind is not NoneType]
    lists = [kind for kind in kinds if _is_a(Sequence, kind)]  # as of one name or several
    return (lists or kinds)[0] if lists or len(kinds) == 1 else tuple(kinds)


def _is_a(kind: type, hint: object) -> bool:
    """Whether a type is such a collection, of something."""
    origin = get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, kind)


def click_option(option: OptionOf) -> Decorator:
    """Make click's option of one of a function's."""
    kind, own = plain_type(option.hint), option.option
    flags = (own.flag or f"--{option.name.replace('_', '-')}").split("/")
    section = "Encoder" if option.name in ENCODER else "Run" if option.name == "seed" else "Options"
    keywords: dict[str, Any] = {"section": section, "metavar": own.metavar, "cls": SectionOption}
    if kind is bool:
        keywords |= {"is_flag": True, "flag_value": not option.default, "default": None}
    elif get_origin(kind) is Literal:
        keywords["type"] = click.Choice(get_args(kind))
    elif _is_a(Sequence, kind):
        inner = plain_type(get_args(kind)[0])
        if inner in (int, float) or isinstance(inner, tuple):
            keywords |= {"callback": _read_numbers, "metavar": own.metavar or "N,N,…"}
        else:
            keywords["multiple"] = True
            if get_origin(inner) is Literal:
                keywords["type"] = click.Choice(get_args(inner))
    elif _is_a(Mapping, kind):
        keywords |= {"multiple": True, "callback": files_by_name}
        keywords["metavar"] = own.metavar or "NAME=FILE"
    elif kind is int:
        bounds = beside(option.hint, Bounds)
        keywords["type"] = click.IntRange(bounds.least, bounds.most) if bounds else int
    elif kind in (float, Path):
        keywords["type"] = float if kind is float else click.Path(path_type=Path)
    if own.names is not None:
        keywords["shell_complete"] = complete(own.names)
    help = own.help + _default_words(option)
    return click.option(*flags, option.name, help=help, **keywords)


def _default_words(option: OptionOf) -> str:
    """Say the default, in the option's words or as it is."""
    words, value = option.option.default, option.default
    is_said = value is MISSING or value == () or isinstance(value, Unknown | bool | None)
    if words is None and not is_said:
        many = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        words = ", ".join(f"{one:g}" if isinstance(one, float) else str(one) for one in many)
    return "" if words is None else f"  [default: {words}]"


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


def click_options(found: Iterable[tuple[str, Any, Any]]) -> Decorator:
    """Make click's options of those among keywords with types and defaults."""
    return option_group(*map(click_option, choose_options(found)))


def derived_options(declaration: Declaration) -> Decorator:
    """Return one decorator with the options that the command line has.

    Of two with one flag the function's own goes before the one it shares with others.
    """
    shown: dict[str, OptionOf] = {}
    for each in declaration.options:
        if each.option.cli:
            shown.setdefault(each.option.flag or f"--{each.name}", each)
    return option_group(*map(click_option, shown.values()))


def encoding_options(*names: str) -> Decorator:
    """Return the options of how texts become vectors: those named, or all."""
    hints = {**get_type_hints(Encoding, include_extras=True), "encoders": EncodersOption}
    return click_options((name, hints[name], None) for name in names or Encoding.__annotations__)


def given_options(declaration: Declaration, given: Mapping[str, Any]) -> dict[str, Any]:
    """Choose the values a user has given; what was not is left to the function's own default."""
    names = {option.name for option in declaration.options}
    options = {k: v for k, v in given.items() if k in names and v not in (None, (), {})}
    check_encoding(options, given.get("embeddings"))
    return options


def derived_command(
    declaration: Declaration, *options: Decorator, name: str = "", help: str = ""
) -> Callable[[Callable[..., None]], click.Command]:
    """Make the command of a function from what it does with the values of these options."""
    decorate = option_group(*options)
    words = {"name": name or declaration.function, "help": help or declaration.help}
    return lambda run: click.command(cls=PagedCommand, **words)(decorate(run))


def study_command(module: str, function: str) -> click.Command:
    """Make the command of a function from a corpus, or from corpora by name, to a result."""
    declaration = read_declaration(module, function)

    @derived_command(
        declaration,
        corpora_argument(required=declaration.needs_corpora),
        derived_options(declaration),
        INPUT_OPTIONS,
        OUTPUT_OPTIONS,
        TABLE_OPTION,
    )
    def command(**given: Any) -> None:  # noqa: ANN401  (values of any option)
        run_study(declaration, given)

    return command


def study_group() -> LazyGroup:
    """Make the command that has a command for every study."""
    return LazyGroup(
        "study",
        help="Run one study: corpora in, tables, charts and a sentence or two out.\n\nEvery CORPUS "
        "is a corpus of its own. A file of several studies is run by reffree run.",
        helps={
            name: source_of(module).split('"""', 2)[1].strip().splitlines()[0]
            for name, module in STUDIES.items()
        },
        load=lambda name: study_command(STUDIES[name], name),
    )


def run_study(declaration: Declaration, given: Mapping[str, Any]) -> None:
    """Read what the options name, call the function, and write what it found.

    Every CORPUS is a corpus of its own, called by its file's name without extension, unless the
    function takes only one.
    """
    options = given_options(declaration, given)
    named = {name: files for name, files in options.items() if isinstance(files, dict)}
    inputs = input_files(given, *(file for files in named.values() for file in files.values()))
    out = Output(given, inputs, command=declaration.function)
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
    out.show(declaration.load()(corpora, progress=progress, **options))
