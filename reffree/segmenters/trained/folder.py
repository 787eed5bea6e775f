"""What is known of a trained network, as the JSON beside its weights has it; imports no torch."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Generic, TypeVar, get_args

from reffree.encoders.address import is_endpoint
from reffree.encoders.aliases import ALIASES
from reffree.encoders.base import EncoderSpec
from reffree.encoders.options import SETTINGS, Dropped, EncoderOptions
from reffree.segmenters.trained.settings import (
    CsmSettings,
    Kind,
    LabellerSettings,
    ScorerSettings,
    TrainingSettings,
)
from reffree.util.errors import EncoderError, InputError, Place

SettingsT = TypeVar("SettingsT", bound=TrainingSettings)

FORMAT = 3
DESCRIPTION = "trained.json"
PRECOMPUTED = "precomputed"
"""What vectors that users bring have in place of a model's name."""

KINDS: dict[Kind, type[TrainingSettings]] = {
    "scorer": ScorerSettings,
    "csm": CsmSettings,
    "segmenter": LabellerSettings,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Description(Generic[SettingsT]):
    """Everything about a trained network but its weights."""

    settings: SettingsT
    encoder: EncoderSpec
    dimension: int
    corpora: Mapping[str, tuple[str, ...]]  # names of what each part of the training learns from
    counts: Mapping[str, int]
    figures: Mapping[str, Any]  # on documents held out: threshold, log_loss, temperature …
    history: tuple[Mapping[str, Any], ...]  # a row after every epoch
    is_interrupted: bool
    device: str
    precision: str
    version: str = field(default_factory=lambda: importlib.metadata.version("reffree"))
    weights: str = ""  # sha256; none until they are saved

    @property
    def kind(self) -> Kind:
        """What was trained."""
        return self.settings.kind

    def as_json(self, weights: str) -> str:
        """Write all down, with the digest of the weights."""
        values = asdict(self) | {
            "format": FORMAT,
            "kind": self.kind,
            "fingerprint": self.encoder.fingerprint,  # for people who compare files
            "weights": weights,
        }
        return json.dumps(values, indent=1, sort_keys=True, ensure_ascii=False) + "\n"

    def check_encoder(self, spec: EncoderSpec | None) -> None:
        """Refuse vectors of another encoder than the one it was trained on, if it reads any.

        None where the encoder is not known; of vectors that users bring, in training and now,
        nothing but their size is. TF32, which cards choose by themselves, is float32 here: it moves
        vectors by less than a network notices.
        """
        if spec is None or self.settings.finetune or spec.name == self.encoder.name == PRECOMPUTED:
            return
        if changed := _differences(spec, self.encoder):
            instead = (
                f"{name} {getattr(spec, name)} instead of {getattr(self.encoder, name)}"
                for name in changed
            )
            expected = _on_any_card(self.encoder)
            values = ", ".join(f"{name} {getattr(expected, name)}" for name in changed)
            own = self.encoder.name
            remedy = own if "name" in changed else f"{own} with {values}"
            raise EncoderError(
                f"{self.kind}: found vectors of another encoder ({', '.join(instead)}); expected "
                f"those it was trained on, of {own!r}; use --encoder {remedy}, or train a "
                f"{self.kind} for this one"
            )


def read_description(folder: Path, kind: Kind) -> Description[Any]:
    """Read what is known of a network of this kind that was saved."""
    path = folder / DESCRIPTION
    found = "a damaged description"
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if values.pop("format") != FORMAT:
            found = f"a {kind} of another version of reffree"
        elif values["kind"] in KINDS.keys() - {kind}:
            found = f"no {kind}, but a {values['kind']}"
        elif values.pop("kind") == kind:
            del values["fingerprint"]
            values["settings"] = KINDS[kind](**values["settings"])
            values["encoder"] = EncoderSpec(**values["encoder"])
            values["corpora"] = {part: tuple(names) for part, names in values["corpora"].items()}
            return Description(**values | {"history": tuple(values["history"])})
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        is_old = is_missing and (folder / f"{kind}.json").is_file()
        version = f"a {kind} of another version of reffree"
        found = version if is_old else f"no {kind} ({error.strerror})"
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    raise InputError(
        found,
        expected=f"a folder that reffree train {kind} wrote",
        remedy=f"check the path, or train the {kind} again",
        place=Place(file=str(path)),
    )


def encoders_of(folders: Iterable[str | Path], kind: Kind = "scorer") -> tuple[EncoderSpec, ...]:
    """Encoders whose vectors trained networks read; one that was fine-tuned reads texts."""
    every = [read_description(Path(folder), kind) for folder in folders]
    return tuple(each.encoder for each in every if not each.settings.finetune)


def trained_encoding(options: EncoderOptions, encoders: Sequence[EncoderSpec]) -> EncoderOptions:
    """Return options with the first encoder that networks were trained on, if none is given.

    What its spec has beside the model's own settings is set, too. An endpoint is not taken from a
    folder, which may be someone else's: texts go to a server only where the user names it.
    """
    trained = next(iter(encoders), None)
    if options.encoder is not None or trained is None:
        return options
    if trained.name == PRECOMPUTED or is_endpoint(trained.name):
        return options
    from reffree.encoders.opening import open_encoder

    name = next((a for a, each in ALIASES.items() if each.model == trained.name), trained.name)
    plain = EncoderOptions(encoder=name, offline=options.offline, cache=False)
    changed = _differences(open_encoder(plain).spec, trained)
    settings = {name: getattr(trained, name) for name in changed if name in SETTINGS}
    if "backend" in settings:
        settings["backend"] = trained.backend.partition("+")[2] or "torch"
    text = ",".join(f"{name}={value}" for name, value in settings.items())
    kinds = [kind for kind in get_args(Dropped) if kind in trained.dropped.split("+")]
    encoder = ":".join(filter(None, [name, text]))
    return replace(options, encoder=encoder, drop=options.drop or kinds)


def _on_any_card(spec: EncoderSpec) -> EncoderSpec:
    return replace(spec, dtype="float32") if spec.dtype == "tf32" else spec


def _differences(spec: EncoderSpec, other: EncoderSpec) -> list[str]:
    """Names of the fields by which two encoders differ, whatever the card."""
    one, two = _on_any_card(spec), _on_any_card(other)
    names = [each.name for each in fields(EncoderSpec) if each.compare]
    return [name for name in names if getattr(one, name) != getattr(two, name)]
