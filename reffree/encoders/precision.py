"""What a card computes in: chosen for the card, and held against float32 once per model.

On a CPU nothing is chosen: it computes in what the settings say, float32 by default. A CUDA card
that has TF32 multiplies the matrices of float32 weights in it, which is several times as fast, and
weights that are stored in half precision are computed in it. How far that moves the cosines of
`probe.PROBE` is measured, remembered beside the cache, and part of the signature.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from reffree.encoders.backends.probe import PROBE, cosine_deviation, one_digit_up
from reffree.encoders.base import EncoderSpec
from reffree.encoders.batching import batch_of
from reffree.encoders.device import DEVIATIONS, device_slug, recall, remember
from reffree.encoders.forward import DeviceForward
from reffree.encoders.models import ModelFolder
from reffree.encoders.options import ModelSettings
from reffree.encoders.pipeline import Matrix
from reffree.util.errors import EncoderError

if TYPE_CHECKING:
    from reffree.encoders.accelerators import Accelerator
    from reffree.encoders.tokenising import Tokeniser

logger = logging.getLogger(__name__)

HALVES = ("bfloat16", "float16")
FLASH = "flash_attention_2"
AMPERE = (8, 0)
"""Compute capability of the first cards with TF32, bfloat16 and what flash-attn needs."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What all devices of a run can do."""

    tf32: bool = False
    bfloat16: bool = False
    flash: bool = False


def abilities_of(devices: Sequence[torch.device], backend: str = "torch") -> Abilities:
    """Ask CUDA cards; others have none of it, and backends that are held against torch need none.

    AMD's cards, which torch calls CUDA's too, have no TF32.
    """
    is_cuda = all(device.type == "cuda" for device in devices) and torch.version.hip is None
    if not is_cuda or backend != "torch":
        return Abilities()
    is_new = all(torch.cuda.get_device_capability(device) >= AMPERE for device in devices)
    return Abilities(is_new, is_new, is_new and find_spec("flash_attn") is not None)


def suited(folder: ModelFolder, settings: ModelSettings, can: Abilities) -> ModelFolder:
    """Choose type and attention that were left to us, as they suit the devices."""
    spec = folder.spec
    if folder.loader == "static":
        return folder
    if settings.dtype in (None, "auto") and spec.dtype == "float32":
        spec = replace(spec, dtype=_best_type(folder, can))
    if settings.attention is None and spec.dtype in HALVES and can.flash:
        spec = replace(spec, attention=FLASH if _has_flash(folder.architecture) else "auto")
    return replace(folder, spec=spec)


def _best_type(folder: ModelFolder, can: Abilities) -> str:
    """Return the type for a model on devices."""
    if can.bfloat16 and folder.spec.quantisation != "none":
        return "bfloat16"
    if can.bfloat16 and folder.stored in HALVES:
        return folder.stored
    return "tf32" if can.tf32 else "float32"


def check_type(dtype: str, device: torch.device) -> None:
    """Refuse to compute in what a device does not have, where it would silently be another."""
    if dtype == "tf32" and not abilities_of([device]).tf32:
        raise EncoderError(
            f"dtype tf32 on {device}: found a device without it; expected a CUDA card of compute "
            "capability 8.0 or later; use --dtype float32 or auto"
        )


def _has_flash(architecture: str) -> bool:
    """Whether transformers can run an architecture with flash attention."""
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    name = MODEL_MAPPING_NAMES.get(architecture)
    kind = getattr(transformers, name, None) if isinstance(name, str) else None
    return bool(getattr(kind, "_supports_flash_attn", False))


def is_reduced(folder: ModelFolder) -> bool:
    """Whether the computation has fewer bits than the weights that are stored."""
    is_ours = folder.loader != "static" and folder.spec.quantisation == "none"
    return is_ours and folder.spec.dtype != "float32" and folder.spec.dtype != folder.stored


def deviation_path(kept: Path, folder: ModelFolder, device: torch.device) -> Path:
    """Name the file of a model's deviation on a make of devices."""
    return kept / DEVIATIONS / f"{folder.spec.fingerprint[:16]}-{device_slug(device)}.json"


def deviation_from_float32(
    spec: EncoderSpec, path: Path | None, measure: Callable[[], float | None]
) -> float | None:
    """Return how far a model's cosines are from float32's: what the file says, or measured now.

    What was measured is written to the file and said, once.
    """
    found = recall(path).get("cosine_deviation") if path is not None else None
    if isinstance(found, float) and 0 <= found <= 2:
        return found
    measured = measure()
    if measured is not None:
        logger.warning(
            "reffree: note: encoder %r computes in %s, which moves cosines of %d texts by %s at "
            "most; --dtype float32 is exact.",
            *(spec.name, spec.dtype, len(PROBE), one_digit_up(measured)),
        )
        if path is not None:
            remember(path, {"cosine_deviation": measured})
    return measured


def measured_deviation(
    computed: DeviceForward, exact: DeviceForward, tokeniser: Tokeniser, accelerator: Accelerator
) -> float:
    """Return the largest difference of the cosines of any two texts of the probe."""

    def vectors(forward: DeviceForward) -> Matrix:
        reads = tokeniser.read(range(len(PROBE)), PROBE)
        parts = [batch_of(reads[i : i + 8], tokeniser) for i in range(0, len(reads), 8)]
        made = [forward(accelerator.send(forward.features_of(part))).cpu() for part in parts]
        return np.concatenate([part.numpy() for part in made])

    return cosine_deviation(vectors(computed), vectors(exact))


def in_float32(folder: ModelFolder) -> ModelFolder:
    """Describe the same model in full precision."""
    attention = "auto" if folder.spec.attention == FLASH else folder.spec.attention
    return replace(folder, spec=replace(folder.spec, dtype="float32", attention=attention))
