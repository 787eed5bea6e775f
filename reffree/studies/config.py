"""A study in a YAML file: read strictly, with every field checked before any work begins.

The fields of a step are the options of its study's function (`reffree.util.declare`), so that file,
function and command cannot drift apart.
"""

from __future__ import annotations

import difflib
import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reffree.encoders.options import Encoding
from reffree.formats import corpus_names
from reffree.formats.source import Source
from reffree.studies import STUDIES, find_study
from reffree.util.bounds import Seed
from reffree.util.declare import check_names, expectation, options_model, options_of
from reffree.util.errors import (
    InputError,
    Place,
    ReffreeError,
    UnknownNameError,
    located,
    mistake,
    shorten,
)

FILE_NAME = re.compile(r"\w[\w .+=,-]*(?<! )")
MOST_NAME = 200  # bytes, before the ending
MOST_BITS = 4_096  # of a whole number: no field takes one as large

SHIPPED = Path(__file__).parents[1] / "configs"
"""The papers' own studies, and a small one of all kinds."""


@dataclass(frozen=True, slots=True)
class Step:
    """One study with all its settings."""

    name: str  # of the results file
    study: str
    settings: dict[str, Any]  # keywords of the study's function, all of them


@dataclass(frozen=True, slots=True)
class Config:
    """A whole configuration, every default filled in."""

    name: str
    corpora: dict[str, str]  # name → file, or the packaged corpus ``demo``
    steps: tuple[Step, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return what the resolved file says; reading it gives the same configuration."""
        return {
            "name": self.name,
            "corpora": dict(self.corpora),
            "studies": [{"name": s.name, "study": s.study, **s.settings} for s in self.steps],
        }


class _File(BaseModel):
    """The top of a file."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    name: str
    corpora: list[str] | dict[str, str]
    seed: Seed = 0
    encoding: dict[str, Any] = {}
    studies: list[dict[str, Any]] = Field(min_length=1)


def shipped_configs() -> dict[str, str]:
    """Return what each configuration that ships with reffree is about, by its name."""
    return {
        path.stem: path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        for path in sorted(SHIPPED.glob("*.yaml"))
    }


def find_config(name: str) -> Path:
    """Return the path of a file, or of the configuration of that name that ships with reffree."""
    path = Path(name)
    if path.suffix or path.name != name or path.is_file():
        return path
    if name not in (shipped := shipped_configs()):
        raise UnknownNameError("configuration", name, shipped)
    return SHIPPED / f"{name}.yaml"


def load_config(path: Path | str, corpora: Mapping[str, str] | None = None) -> Config:
    """Read a file; ``corpora`` (name → file) takes the place of those it names.

    Files are looked for relative to the working directory, as on the command line.
    """
    place = Place(file=str(path))
    data = _read_yaml(path)
    with located(place):
        if not isinstance(data, dict):
            remedy = "see the config.yaml that reffree run smoke writes"
            expected = "fields such as name, corpora and studies"
            raise mistake(place, f"{type(data).__name__} at the top", expected, remedy)
        top = _validated(_File, data, "")
    given = top.corpora if corpora is None else corpora
    named = dict(given) if isinstance(given, Mapping) else corpus_names(given)
    with located(place):
        if not named:
            remedy = "name them under corpora, or pass --corpus NAME=FILE"
            raise mistake(place, "no corpora", "at least one", remedy)
        for name, file in named.items():
            if file in ("", "-") or not name:  # which could not be read again after a stop
                found = f"corpora: {shorten(name)!r}, read from {shorten(file)!r}"
                raise mistake(place, found, "a name and a file", "write the file's path")
        _check_file_name("name", top.name)
        for field in sorted(top.encoding.keys() - Encoding.__annotations__.keys()):
            raise _unknown(f"encoding.{field}", field, Encoding.__annotations__)
        shared = {"seed": top.seed, **top.encoding}
        steps = [_step(f"studies.{i}", step, shared) for i, step in enumerate(top.studies)]
        names = [step.name.casefold() for step in steps]  # of files, whose case may not matter
        for i, name in enumerate(names):
            if name in names[:i]:
                found = f"studies.{i}: the name {steps[i].name!r} a second time"
                expected = "a name of its own for every step"
                raise mistake(place, found, expected, "add name: to one of them")
            _check_scores(f"studies.{i}.scores", steps[i].settings.get("scores") or {}, named)
    return Config(top.name, named, tuple(steps))


def _step(where: str, data: Mapping[str, Any], shared: Mapping[str, Any]) -> Step:
    """Check the fields of a step, those it shares with all others filled in."""
    own = dict(data)
    study = own.pop("study", None)
    if not isinstance(study, str) or study not in STUDIES:
        found = f"{where}.study: {'nothing' if study is None else _show(study)}"
        hint = _nearest(str(study), STUDIES, f"write study: {next(iter(STUDIES))}")
        raise mistake(None, found, " or ".join(STUDIES), hint)
    name = own.pop("name", study)
    _check_file_name(f"{where}.name", name)
    function = find_study(study)
    known = {option.name for option in options_of(function)}
    common = {name: value for name, value in shared.items() if name in known}
    checked = _validated(options_model(function), {**common, **own}, where)
    for option in options_of(function):
        value = getattr(checked, option.name)
        many = [value] if isinstance(value, str) or not isinstance(value, Sequence) else value
        for i, one in enumerate(many):
            at = option.name if many is not value else f"{option.name}.{i}"
            try:
                check_names(option.name, one, option.option)
            except ReffreeError as error:
                if option.option.names == "encoders":  # an address may hold a secret
                    raise
                found = f"{where}.{at}: {_show(one)}"
                raise mistake(None, found, "a name that exists", str(error)) from None
    return Step(name, study, checked.model_dump(mode="json"))


def _check_scores(
    where: str, scores: Mapping[str, Mapping[str, object]], corpora: Mapping[str, str]
) -> None:
    """Refuse scores of a corpus that is not there, and files that are not, before any work."""
    for corpus, files in scores.items():
        if corpus not in corpora:
            raise _unknown(f"{where}.{shorten(corpus)}", corpus, corpora)
        for name, file in files.items():
            if not isinstance(file, str) or not Path(file).is_file():
                found = f"{where}.{shorten(corpus)}.{shorten(name)}: {_show(file)}"
                remedy = "check the path, from the folder in which reffree runs"
                raise mistake(None, f"{found}, which is no file", "a file of gap scores", remedy)


def _check_file_name(field: str, name: object) -> None:
    """Refuse what cannot be a file's or a folder's name: the results are called by it."""
    text = name if isinstance(name, str) else ""
    if not FILE_NAME.fullmatch(text) or len(text.encode(errors="replace")) > MOST_NAME:
        expected = (
            f"a file's name of at most {MOST_NAME} bytes: letters, digits, spaces and "
            "- _ . + = , the first a letter, a digit or _"
        )
        raise mistake(None, f"{field}: {_show(name)}", expected, "choose another")


def _show(value: object) -> str:
    """Show any value on one line; one that repeats itself over and over is cut short."""
    return shorten(reprlib.repr(value))


def _validated(model: type[Any], data: Mapping[str, Any], where: str) -> Any:  # noqa: ANN401  (the model's own type)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(filter(None, [where, *map(str, first["loc"])]))
        match first["type"]:
            case "extra_forbidden":
                raise _unknown(field, str(first["loc"][-1]), model.model_fields) from None
            case "invalid_key":
                raise _unknown(field, "", model.model_fields) from None
            case "missing":
                raise mistake(None, f"no field {field!r}", "it to be there", "add it") from None
        found, expected = f"{field}: {_show(first['input'])}", expectation(dict(first))
        raise mistake(None, found, expected, "correct the field") from None


def _unknown(field: str, name: str, known: Mapping[str, Any]) -> InputError:
    found, expected = f"the unknown field {shorten(field)!r}", f"one of {', '.join(known)}"
    return mistake(None, found, expected, _nearest(name, known, "remove it"))


def _nearest(name: str, known: Iterable[str], otherwise: str) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else otherwise


class _Loader(yaml.SafeLoader):
    """YAML whose every mistake has a place: PyYAML lets some through as errors of Python's own."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401
        """Refuse a scalar that is not what its form or tag says, such as 2001-02-30."""
        if not isinstance(node, yaml.ScalarNode):
            return super().construct_object(node, deep)
        kind = node.tag.rpartition(":")[2]
        try:
            value = super().construct_object(node, deep)
        except (ValueError, OverflowError, TypeError, KeyError, AttributeError):
            raise _mistake(f"{shorten(node.value)!r}, which is no {kind}", node) from None
        if isinstance(value, int) and value.bit_length() > MOST_BITS:
            raise _mistake(f"a number of {len(node.value):,} digits", node)
        return value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Refuse a key that comes twice, of which PyYAML would silently keep the last."""
        if not isinstance(node, yaml.MappingNode):
            raise _mistake("a map that is none", node)
        seen = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise _mistake("a key that is a list or a map", key_node)
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise _mistake(f"the key {key!r} a second time", key_node)
            seen.add(key)
        return super().construct_mapping(node, deep)


def _mistake(found: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, found, node.start_mark)


def _read_yaml(path: Path | str) -> object:
    text = "\n".join(line for _, line in Source(path).lines())
    try:
        return yaml.load(text, _Loader)  # a safe loader
    except RecursionError:
        problem, line = "endlessly nested lists or maps", None
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or str(error)
        mark = getattr(error, "problem_mark", None)
        line = None if mark is None else mark.line + 1
    found = f"no YAML ({shorten(' '.join(problem.split()), 120)})"
    remedy = "correct it there"
    raise mistake(Place(file=str(path), line=line), found, "fields and their values", remedy)
