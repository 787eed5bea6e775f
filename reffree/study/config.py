"""A study in a YAML file: read strictly, with every field checked before any work begins.

The fields of a step are the keywords of its study's function, with their types and defaults, so
that file, function and command cannot drift apart.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from reffree.encoders.options import EncoderOptions, Encoding
from reffree.errors import InputError, Place, shorten
from reffree.study.registry import HOMES, find_study

PER_RUN = ("embeddings", "memory", "progress", "short_signature")
"""Keywords that a file cannot hold: they belong to the machine or to the caller."""

STRICT = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)


class ConfigError(InputError):
    """A field of a configuration that cannot be used."""


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

    model_config = STRICT

    name: str = Field(pattern=r"^[\w.-]+$")
    corpora: list[str] | dict[str, str]
    seed: int = Field(default=0, ge=0)
    encoding: dict[str, Any] = {}
    studies: list[dict[str, Any]] = Field(min_length=1)


def load_config(path: Path | str, corpora: Mapping[str, str] | None = None) -> Config:
    """Read a file; ``corpora`` (name → file) takes the place of those it names.

    Files are looked for relative to the working directory, as on the command line.
    """
    place = Place(file=str(path))
    data = _read_yaml(path, place)
    if not isinstance(data, dict):
        raise ConfigError(
            f"{type(data).__name__} at the top",
            expected="fields such as name, corpora and studies",
            remedy="see configs/smoke.yaml",
            place=place,
        )
    top = _validated(_File, data, "", place)
    named = _named(top.corpora) if corpora is None else dict(corpora)
    if not named:
        raise ConfigError(
            "no corpora",
            expected="at least one",
            remedy="name them under corpora, or pass --corpus NAME=FILE",
            place=place,
        )
    shared = {"seed": top.seed, **top.encoding}
    steps = [_step(i, step, shared, place) for i, step in enumerate(top.studies)]
    names = [step.name for step in steps]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ConfigError(
                f"studies.{i}: the name {name!r} a second time",
                expected="a name of its own for every step",
                remedy="add name: to one of them",
                place=place,
            )
    return Config(top.name, named, tuple(steps))


def settings_model(study: str) -> type[BaseModel]:
    """Return the fields of a study: its function's keywords and those of its encoder."""
    function = find_study(study)
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and name not in PER_RUN:
            fields[name] = (hints[name], parameter.default)
    defaults = EncoderOptions()
    for name, hint in get_type_hints(Encoding, include_extras=True).items():
        fields.setdefault(name, (hint, getattr(defaults, name)))
    return create_model(study, __config__=STRICT, **fields)


def _step(i: int, data: Mapping[str, Any], shared: Mapping[str, Any], place: Place) -> Step:
    where = f"studies.{i}"
    own = dict(data)
    study = own.pop("study", None)
    if study not in HOMES:
        near = difflib.get_close_matches(str(study), HOMES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"write study: {next(iter(HOMES))}"
        raise ConfigError(
            f"{where}.study: {'nothing' if study is None else repr(study)}",
            expected=" or ".join(HOMES),
            remedy=hint,
            place=place,
        )
    name = own.pop("name", study)
    if not isinstance(name, str) or not name or set(name) & set("/\\"):
        raise ConfigError(
            f"{where}.name: {shorten(repr(name))}",
            expected="a name for a file, in letters",
            remedy="leave it out to call the step by its study",
            place=place,
        )
    model = settings_model(study)
    known = {key: value for key, value in shared.items() if key in model.model_fields}
    unknown = sorted(shared.keys() - known.keys() - Encoding.__annotations__.keys() - {"seed"})
    if unknown:
        raise _unknown(f"encoding.{unknown[0]}", unknown[0], Encoding.__annotations__, place)
    checked = _validated(model, {**known, **own}, where, place)
    return Step(name, study, checked.model_dump(mode="json"))


def _validated(model: type[Any], data: Mapping[str, Any], where: str, place: Place) -> Any:  # noqa: ANN401  (the model's own type)
    try:
        return model(**data)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        field = ".".join(filter(None, [where, path]))
        if first["type"] == "extra_forbidden":
            raise _unknown(field, str(first["loc"][-1]), model.model_fields, place) from None
        if first["type"] == "missing":
            raise ConfigError(
                f"no field {field!r}", expected="it to be there", remedy="add it", place=place
            ) from None
        raise ConfigError(
            f"{field}: {shorten(repr(first['input']))}",
            expected=first["msg"].removeprefix("Input should be ").removeprefix("Value error, "),
            remedy="correct the field",
            place=place,
        ) from None


def _unknown(
    field: str, name: str, known: Sequence[str] | Mapping[str, Any], place: Place
) -> ConfigError:
    near = difflib.get_close_matches(name, known, n=1)
    return ConfigError(
        f"the unknown field {field!r}",
        expected=f"one of {', '.join(known)}",
        remedy=f"did you mean {near[0]!r}?" if near else "remove it",
        place=place,
    )


def _named(corpora: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    if isinstance(corpora, Mapping):
        return dict(corpora)
    return {Path(file).stem: file for file in corpora}


class _UniqueKeys(yaml.SafeLoader):
    """YAML without repeated keys, of which PyYAML would silently keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Refuse a key that comes twice."""
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} a second time", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def _read_yaml(path: Path | str, place: Place) -> object:
    try:
        text = Path(path).read_text(encoding="utf-8")
        return yaml.load(text, _UniqueKeys)  # a safe loader
    except OSError as error:
        raise ConfigError(
            f"a file that cannot be read ({error.strerror})",
            expected="a study's configuration, in YAML",
            remedy="check the path",
            place=place,
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError, TypeError) as error:
        problem = getattr(error, "problem", None) or str(error)
        mark = getattr(error, "problem_mark", None)
        raise ConfigError(
            f"no YAML ({shorten(str(problem))})",
            expected="fields and their values",
            remedy="correct it there",
            place=Place(file=str(path), line=None if mark is None else mark.line + 1),
        ) from None
