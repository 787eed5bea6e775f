"""What is known of a trained scorer, as JSON beside its weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from reffree.encoders.base import EncoderSpec
from reffree.errors import InputError, Place
from reffree.segmenters.scorer.settings import Training

FORMAT = 1
DESCRIPTION = "scorer.json"

Stage = Literal["splices", "gold"]


@dataclass(frozen=True, slots=True)
class Epoch:
    """How the held-out documents fare after one epoch, without a temperature.

    F1 (of exact boundaries, pooled over documents), BOR and the negative control (gaps that get a
    boundary when a held-out segment is a document of its own) are those of the paper's static rule
    at a threshold of 0.5 (Coen Tables 7 and 8).
    """

    stage: Stage
    epoch: int
    training_loss: float
    log_loss: float
    f1: float
    bor: float | None  # None where held-out gold has no boundary
    negative_control: float


@dataclass(frozen=True, slots=True)
class Description:
    """Everything about a checkpoint but its weights."""

    version: str  # of reffree
    settings: Training
    encoder: EncoderSpec
    dimension: int
    temperature: float
    threshold: float  # of the highest held-out F1
    log_loss: float  # held-out, with the temperature
    counts: Mapping[str, int]
    history: tuple[Epoch, ...]
    is_interrupted: bool
    weights: str  # sha256

    def to_json(self) -> str:
        """Write it, with the encoder's fingerprint for people who compare files."""
        values = {"format": FORMAT, **asdict(self), "fingerprint": self.encoder.fingerprint}
        return json.dumps(values, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def read_description(folder: Path) -> Description:
    """Read a checkpoint's description; says what is wrong with one that is none."""
    path = folder / DESCRIPTION
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if values.pop("format") != FORMAT:
            raise _refusal(path, "a scorer of another version of reffree")
        del values["fingerprint"]
        return Description(
            **values
            | {
                "settings": Training(**values["settings"]),
                "encoder": EncoderSpec(**values["encoder"]),
                "history": tuple(Epoch(**epoch) for epoch in values["history"]),
            }
        )
    except OSError as error:
        raise _refusal(path, f"no scorer ({error.strerror})") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise _refusal(path, "a damaged description") from None


def _refusal(path: Path, found: str) -> InputError:
    return InputError(
        found,
        expected="a folder that reffree train-scorer wrote",
        remedy="check the path, or train the scorer again",
        place=Place(file=str(path)),
    )
