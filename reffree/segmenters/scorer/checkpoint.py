"""A trained scorer on disk: weights as safetensors, everything else as JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import nn

from reffree.atomic import replacing
from reffree.encoders.base import EncoderSpec
from reffree.encoders.device import choose_device
from reffree.errors import EncoderError, InputError, Place
from reffree.segmenters.scorer.calibration import probabilities
from reffree.segmenters.scorer.data import windows_of
from reffree.segmenters.scorer.description import DESCRIPTION, Description, read_description
from reffree.segmenters.scorer.model import GapModel, Head, HeadOnVectors, logits_of
from reffree.segmenters.scorer.pair import (
    PairClassifier,
    PairOnTexts,
    read_layout,
    reads_first,
    write_layout,
)

WEIGHTS = "scorer.safetensors"
LAYOUT = "transformer"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A network and what is known of it; ``tokenizer`` only where the encoder is fine-tuned."""

    network: Head | PairClassifier
    description: Description
    tokenizer: Any = None

    def check_encoder(self, spec: EncoderSpec) -> None:
        """Refuse vectors of another encoder than the one the scorer was trained on."""
        trained = self.description.encoder
        if spec.fingerprint != trained.fingerprint:
            changed = [
                f"{field} {getattr(spec, field)} instead of {getattr(trained, field)}"
                for field in EncoderSpec.__dataclass_fields__
                if getattr(spec, field) != getattr(trained, field)
            ]
            raise EncoderError(
                f"scorer: found vectors of another encoder ({', '.join(changed)}); expected those "
                f"it was trained on, of {trained.name!r}; use --encoder {trained.name}, or train "
                "a scorer for this one"
            )

    def on_vectors(self, vectors: Sequence[NDArray[np.generic]]) -> GapModel:
        """Look at these vectors; refuses those of another size."""
        assert isinstance(self.network, Head)
        for x in vectors:
            if x.shape[1] != self.description.dimension:
                raise EncoderError(
                    f"scorer: found vectors of {x.shape[1]} dimensions; expected "
                    f"{self.description.dimension}, those of {self.description.encoder.name!r}, "
                    "which it was trained on; use that encoder, or train a scorer for this one"
                )
        return HeadOnVectors(self.network, vectors)

    def on_texts(self, texts: Sequence[str]) -> GapModel:
        """Look at these texts."""
        assert isinstance(self.network, PairClassifier)
        max_length = self.description.encoder.max_length
        return PairOnTexts(self.network, self.tokenizer, texts, max_length, choose_device())

    def scores(self, model: GapModel, n_units: int) -> NDArray[np.float64]:
        """Calibrated probabilities at the gaps of a document that ``model`` looks at."""
        windows = windows_of(np.arange(n_units), self.description.settings.window)
        return probabilities(logits_of(model, windows), self.description.temperature)

    def save(self, folder: Path) -> None:
        """Write a new folder, whole or not at all."""
        check_target(folder)
        state = {k: v.detach().cpu().contiguous() for k, v in self.network.state_dict().items()}
        weights = save(state)
        description = replace(self.description, weights=hashlib.sha256(weights).hexdigest())
        try:
            with replacing(folder) as temporary:
                temporary.mkdir()
                (temporary / WEIGHTS).write_bytes(weights)
                (temporary / DESCRIPTION).write_text(description.to_json(), encoding="utf-8")
                if isinstance(self.network, PairClassifier):
                    write_layout(self.network, self.tokenizer, temporary / LAYOUT)
                if folder.is_dir():
                    folder.rmdir()
        except OSError as error:
            raise InputError(
                f"a folder that cannot be written ({error.strerror or error})",
                expected="a place with room for the scorer",
                remedy="choose another, or create the folder it is to be in",
                place=Place(file=str(folder)),
            ) from None


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


def load_checkpoint(folder: Path) -> Checkpoint:
    """Read a scorer back; nothing in the folder is run."""
    description = read_description(folder)
    settings = description.settings
    path = folder / WEIGHTS
    try:
        weights = path.read_bytes()
    except OSError as error:
        raise _damaged(path, f"no weights ({error.strerror})") from None
    if hashlib.sha256(weights).hexdigest() != description.weights:
        raise _damaged(path, "weights that do not belong to the description beside them")
    tokenizer = None
    network: Head | PairClassifier
    if settings.finetune:
        transformer, tokenizer = read_layout(folder / LAYOUT)
        network = PairClassifier(transformer, reads_first=reads_first(tokenizer))
    else:
        network = Head(description.dimension, settings.window, settings.hidden, settings.dropout)
    _fill(network, weights, path)
    return Checkpoint(network.eval(), description, tokenizer)


def _fill(network: nn.Module, weights: bytes, path: Path) -> None:
    try:
        network.load_state_dict(load(weights))
    except (SafetensorError, RuntimeError):
        raise _damaged(path, "weights of another shape than described") from None


def _damaged(path: Path, found: str) -> InputError:
    return InputError(
        found,
        expected="the weights of a scorer that reffree train-scorer wrote",
        remedy="copy the whole folder again, or train the scorer again",
        place=Place(file=str(path)),
    )
