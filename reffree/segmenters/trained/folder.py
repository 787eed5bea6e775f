"""Folders of trained networks: weights as safetensors, and a description as JSON beside them."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args

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
from reffree.util.atomic import check_new_folder, replacing
from reffree.util.errors import EncoderError, InputError, Place

if TYPE_CHECKING:
    from torch import nn

SettingsT = TypeVar("SettingsT", bound=TrainingSettings)

FORMAT = 3
DESCRIPTION, WEIGHTS = "trained.json", "weights.safetensors"
PRECOMPUTED = "precomputed"
"""What vectors that users bring have in place of a model's name."""

KINDS: dict[Kind, type[TrainingSettings]] = {
    settings.kind: settings for settings in (ScorerSettings, CsmSettings, LabellerSettings)
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

    def check_encoder(self, spec: EncoderSpec | None) -> None:
        """Refuse vectors of another encoder than the one it was trained on, if it reads any.

        None where the encoder is not known; of vectors that users bring, in training and now,
        nothing but their size is. TF32, which cards choose by themselves, is float32 here: it moves
        vectors by less than a network notices.
        """
        if spec is None or self.settings.finetune or spec.name == self.encoder.name == PRECOMPUTED:
            return
        changed = _differences(spec, self.encoder)
        if changed:
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

    def check_vectors(self, spec: EncoderSpec | None, dimension: int) -> None:
        """Refuse vectors of another encoder, as far as that is known, or of another size."""
        self.check_encoder(spec)
        if dimension != self.dimension:
            raise EncoderError(
                f"{self.kind}: found vectors of {dimension} dimensions; expected "
                f"{self.dimension}, those of {self.encoder.name!r}, which it was trained on; use "
                f"that encoder, or train a {self.kind} for this one"
            )


def read_description(folder: Path, kind: Kind) -> Description[Any]:
    """Read what `write_network` wrote of a network of this kind."""
    path = folder / DESCRIPTION

    def refusal(found: str) -> InputError:
        return InputError(
            found,
            expected=f"a folder that reffree train {kind} wrote",
            remedy=f"check the path, or train the {kind} again",
            place=Place(file=str(path)),
        )

    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if values.pop("format") != FORMAT:
            raise refusal(f"a {kind} of another version of reffree")
        found = values.pop("kind")
        if found != kind:
            raise refusal(
                f"no {kind}, but a {found}" if found in KINDS else "a damaged description"
            )
        del values["fingerprint"]
        values["settings"] = KINDS[kind](**values["settings"])
        values["encoder"] = EncoderSpec(**values["encoder"])
        values["corpora"] = {part: tuple(names) for part, names in values["corpora"].items()}
        return Description(**values | {"history": tuple(values["history"])})
    except OSError as error:
        is_old = (folder / f"{kind}.json").is_file()
        version = f"a {kind} of another version of reffree"
        raise refusal(version if is_old else f"no {kind} ({error.strerror})") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise refusal("a damaged description") from None


def read_weights(folder: Path, network: nn.Module, description: Description[Any]) -> None:
    """Give a network the weights that a description beside them is of; nothing in them is run."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    kind, path = description.kind, folder / WEIGHTS
    try:
        weights = path.read_bytes()
        if hashlib.sha256(weights).hexdigest() == description.weights:
            network.load_state_dict(load(weights))
            network.eval()
            return
        found = "weights that do not belong to the description beside them"
    except OSError as error:
        found = f"no weights ({error.strerror})"
    except (SafetensorError, RuntimeError):
        found = "weights of another shape than described"
    raise InputError(
        found,
        expected=f"the weights of a {kind} that reffree train {kind} wrote",
        remedy=f"copy the whole folder again, or train the {kind} again",
        place=Place(file=str(path)),
    )


def write_network(
    folder: Path,
    network: nn.Module,
    description: Description[Any],
    write_more: Callable[[Path], None] = lambda folder: None,
) -> None:
    """Write a new folder, whole or not at all; ``write_more`` adds files."""
    check_new_folder(folder)
    from safetensors.torch import save

    weights = save({k: v.detach().cpu().contiguous() for k, v in network.state_dict().items()})
    values = asdict(description) | {
        "format": FORMAT,
        "kind": description.kind,
        "fingerprint": description.encoder.fingerprint,  # for people who compare files
        "weights": hashlib.sha256(weights).hexdigest(),
    }
    text = json.dumps(values, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    try:
        with replacing(folder) as temporary:
            temporary.mkdir()
            (temporary / WEIGHTS).write_bytes(weights)
            (temporary / DESCRIPTION).write_text(text, encoding="utf-8")
            write_more(temporary)
            if folder.is_dir():
                folder.rmdir()
    except OSError as error:
        raise InputError(
            f"a folder that cannot be written ({error.strerror or error})",
            expected=f"a place with room for the {description.kind}",
            remedy="choose another, or create the folder it is to be in",
            place=Place(file=str(folder)),
        ) from None


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
    drop = options.drop or [
        kind for kind in get_args(Dropped) if kind in trained.dropped.split("+")
    ]
    return replace(options, encoder=":".join(filter(None, [name, text])), drop=drop)


def _on_any_card(spec: EncoderSpec) -> EncoderSpec:
    return replace(spec, dtype="float32") if spec.dtype == "tf32" else spec


def _differences(spec: EncoderSpec, other: EncoderSpec) -> list[str]:
    """Names of the fields by which two encoders differ, whatever the card."""
    one, two = _on_any_card(spec), _on_any_card(other)
    names = [each.name for each in fields(EncoderSpec) if each.compare]
    return [name for name in names if getattr(one, name) != getattr(two, name)]
