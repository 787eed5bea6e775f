"""Trained networks kept in folders: weights as safetensors, a description as JSON beside them.

What a folder holds is its ``kind``: ``scorer``, ``segmenter`` or ``csm``, the files
``KIND.safetensors`` and ``KIND.json``, written by ``reffree train-KIND``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from reffree.encoders.base import EncoderSpec
from reffree.util.atomic import replacing
from reffree.util.errors import EncoderError, InputError, Place

if TYPE_CHECKING:
    from torch import nn

Kind = Literal["scorer", "segmenter", "csm"]
DescriptionT = TypeVar("DescriptionT", bound="NetworkDescription")

PRECOMPUTED = "precomputed"
"""What vectors that users bring have in place of a model's name."""


class NetworkDescription:
    """What the descriptions of all kinds have in common; each is a dataclass of its own fields."""

    __slots__ = ()
    kind: ClassVar[Kind]
    format: ClassVar[int]

    settings: Any
    encoder: EncoderSpec
    dimension: int
    is_interrupted: bool
    weights: str  # sha256

    def check_encoder(self, spec: EncoderSpec | None) -> None:
        """Refuse vectors of another encoder than the one it was trained on, if it reads any."""
        if not getattr(self.settings, "finetune", False):
            check_encoder(self.kind, spec, self.encoder)

    def check_vectors(self, spec: EncoderSpec | None, found: int) -> None:
        """Refuse vectors of another encoder, as far as that is known, or of another size."""
        check_encoder(self.kind, spec, self.encoder)
        if found != self.dimension:
            raise EncoderError(
                f"{self.kind}: found vectors of {found} dimensions; expected {self.dimension}, "
                f"those of {self.encoder.name!r}, which it was trained on; use that encoder, or "
                f"train a {self.kind} for this one"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return what is written, with the encoder's fingerprint for people who compare files."""
        values = asdict(self)  # type: ignore[call-overload]
        return {"format": self.format, **values, "fingerprint": self.encoder.fingerprint}


def check_target(folder: Path) -> None:
    """Refuse to write over anything, and where nothing can be written."""
    place = Place(file=str(folder))
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InputError(
            "a folder that is not empty" if folder.is_dir() else "a file",
            expected="a new or an empty folder",
            remedy="choose another, or remove it first",
            place=place,
        )
    if not folder.absolute().parent.is_dir():
        raise InputError(
            f"no folder {str(folder.parent)!r}",
            expected="a folder that exists",
            remedy="create it first",
            place=place,
        )


def write_network(
    folder: Path,
    network: nn.Module,
    description: NetworkDescription,
    write_more: Callable[[Path], None] = lambda folder: None,
) -> None:
    """Write a new folder, whole or not at all; ``write_more`` adds files."""
    check_target(folder)
    from safetensors.torch import save

    kind = description.kind
    weights = save({k: v.detach().cpu().contiguous() for k, v in network.state_dict().items()})
    values = description.to_dict() | {"weights": hashlib.sha256(weights).hexdigest()}
    text = json.dumps(values, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    try:
        with replacing(folder) as temporary:
            temporary.mkdir()
            _weights_in(temporary, kind).write_bytes(weights)
            _description_in(temporary, kind).write_text(text, encoding="utf-8")
            write_more(temporary)
            if folder.is_dir():
                folder.rmdir()
    except OSError as error:
        raise InputError(
            f"a folder that cannot be written ({error.strerror or error})",
            expected=f"a place with room for the {kind}",
            remedy="choose another, or create the folder it is to be in",
            place=Place(file=str(folder)),
        ) from None


def read_values(
    folder: Path, made: type[DescriptionT], **parts: Callable[[Any], Any]
) -> DescriptionT:
    """Make a description of what `write_network` wrote; says what is wrong with one that is none.

    ``parts`` make the fields that are more than JSON has; they may raise what comes of damage.
    """
    kind = made.kind
    path = _description_in(folder, kind)
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if values.pop("format") != made.format:
            raise _refusal(path, kind, f"a {kind} of another version of reffree")
        del values["fingerprint"]
        values["encoder"] = EncoderSpec(**values["encoder"])
        return made(**values | {name: make(values[name]) for name, make in parts.items()})
    except OSError as error:
        raise _refusal(path, kind, f"no {kind} ({error.strerror})") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise _refusal(path, kind, "a damaged description") from None


def read_weights(folder: Path, network: nn.Module, description: NetworkDescription) -> None:
    """Give a network the weights that a description beside them is of; nothing in them is run."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    kind = description.kind
    path = _weights_in(folder, kind)
    try:
        weights = path.read_bytes()
        if hashlib.sha256(weights).hexdigest() != description.weights:
            raise _damaged(path, kind, "weights that do not belong to the description beside them")
        network.load_state_dict(load(weights))
    except OSError as error:
        raise _damaged(path, kind, f"no weights ({error.strerror})") from None
    except (SafetensorError, RuntimeError):
        raise _damaged(path, kind, "weights of another shape than described") from None
    network.eval()


def check_encoder(kind: Kind, spec: EncoderSpec | None, trained: EncoderSpec) -> None:
    """Refuse another encoder than the network was trained on; None where it is not known.

    Of vectors that users bring, in training and now, nothing but their size is known. TF32, which
    cards choose by themselves, is float32 here: it moves vectors by less than a network notices.
    """
    if spec is not None and spec.name == trained.name == PRECOMPUTED:
        return
    if spec is None:
        return
    found, expected = _on_any_device(spec), _on_any_device(trained)
    names = [field.name for field in fields(found) if field.compare]
    changed = [name for name in names if getattr(found, name) != getattr(expected, name)]
    if changed:
        told = (
            f"{name} {getattr(spec, name)} instead of {getattr(trained, name)}" for name in changed
        )
        settings = ", ".join(f"{name} {getattr(expected, name)}" for name in changed)
        remedy = trained.name if "name" in changed else f"{trained.name} with {settings}"
        raise EncoderError(
            f"{kind}: found vectors of another encoder ({', '.join(told)}); expected those "
            f"it was trained on, of {trained.name!r}; use --encoder {remedy}, or train "
            f"a {kind} for this one"
        )


def _on_any_device(spec: EncoderSpec) -> EncoderSpec:
    return replace(spec, dtype="float32") if spec.dtype == "tf32" else spec


def _weights_in(folder: Path, kind: Kind) -> Path:
    return folder / f"{kind}.safetensors"


def _description_in(folder: Path, kind: Kind) -> Path:
    return folder / f"{kind}.json"


def _refusal(path: Path, kind: Kind, found: str) -> InputError:
    return InputError(
        found,
        expected=f"a folder that reffree train-{kind} wrote",
        remedy=f"check the path, or train the {kind} again",
        place=Place(file=str(path)),
    )


def _damaged(path: Path, kind: Kind, found: str) -> InputError:
    return InputError(
        found,
        expected=f"the weights of a {kind} that reffree train-{kind} wrote",
        remedy=f"copy the whole folder again, or train the {kind} again",
        place=Place(file=str(path)),
    )
