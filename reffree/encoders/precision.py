"""What a card computes in: chosen for the card, and held against float32 once per model.

On a CPU nothing is chosen: it computes in what the settings say, float32 by default. A CUDA card
that has TF32 multiplies the matrices of float32 weights in it, which is several times as fast, and
weights that are stored in half precision are computed in it. How far that moves the cosines of
`PROBE` is measured, remembered beside the cache, and part of the signature.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.resources import files
from importlib.util import find_spec

import numpy as np
import torch
from numpy.typing import NDArray

from reffree.encoders.models import ModelFolder
from reffree.encoders.options import ModelSettings
from reffree.util.errors import EncoderError

HALVES = ("bfloat16", "float16")
FLASH = "flash_attention_2"
AMPERE = (8, 0)
"""Compute capability of the first cards with TF32, bfloat16 and what flash-attn needs."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What all devices of a run can do."""

    is_new: bool = False  # TF32 and bfloat16
    flash: bool = False


def abilities_of(devices: Sequence[torch.device], backend: str = "torch") -> Abilities:
    """Ask CUDA cards; others have none of it, and backends that are held against torch need none.

    AMD's cards, which torch calls CUDA's too, have no TF32.
    """
    is_cuda = all(device.type == "cuda" for device in devices) and torch.version.hip is None
    if not is_cuda or backend != "torch":
        return Abilities()
    is_new = all(torch.cuda.get_device_capability(device) >= AMPERE for device in devices)
    return Abilities(is_new, is_new and find_spec("flash_attn") is not None)


def suit_devices(folder: ModelFolder, settings: ModelSettings, can: Abilities) -> ModelFolder:
    """Choose type and attention that were left to us, as they suit the devices."""
    spec = folder.spec
    if folder.loader == "static":
        return folder
    if settings.dtype in (None, "auto") and spec.dtype == "float32" and can.is_new:
        half = "bfloat16" if spec.quantisation != "none" else folder.stored
        spec = replace(spec, dtype=half if half in HALVES else "tf32")
    if settings.attention is None and spec.dtype in HALVES and can.flash:
        import transformers
        from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

        kind = getattr(transformers, str(MODEL_MAPPING_NAMES.get(folder.architecture)), None)
        has_flash = bool(getattr(kind, "_supports_flash_attn", False))
        spec = replace(spec, attention=FLASH if has_flash else "auto")
    return replace(folder, spec=spec)


def check_type(dtype: str, device: torch.device) -> None:
    """Refuse to compute in what a device does not have, where it would silently be another."""
    if dtype == "tf32" and not abilities_of([device]).is_new:
        raise EncoderError(
            f"dtype tf32 on {device}: found a device without it; expected a CUDA card of compute "
            "capability 8.0 or later; use dtype=float32 or auto"
        )


def is_reduced(folder: ModelFolder) -> bool:
    """Whether the computation has fewer bits than the weights that are stored."""
    is_ours = folder.loader != "static" and folder.spec.quantisation == "none"
    return is_ours and folder.spec.dtype != "float32" and folder.spec.dtype != folder.stored


def in_float32(folder: ModelFolder) -> ModelFolder:
    """Describe the same model in full precision."""
    attention = "auto" if folder.spec.attention == FLASH else folder.spec.attention
    return replace(folder, spec=replace(folder.spec, dtype="float32", attention=attention))


_lock = threading.Lock()
_users: list[bool] = []
"""A true or false a thread that computes in TF32: what the setting was before it."""


@contextmanager
def tf32() -> Iterator[None]:
    """Let CUDA multiply float32 matrices in TF32, in this block only.

    It is a setting of the whole process: of several threads the last out turns it back, so that
    scores are never computed with it.
    """
    matmul = torch.backends.cuda.matmul
    with _lock:
        _users.append(matmul.allow_tf32)
        matmul.allow_tf32 = True
    try:
        yield
    finally:
        with _lock:
            before = _users.pop()
            if not _users:
                matmul.allow_tf32 = before


def _texts() -> tuple[str, ...]:
    resource = files("reffree") / "resources" / "probe.json"
    found: list[str] = json.loads(resource.read_text(encoding="utf-8"))
    n = len(found)
    openings = (" ".join(sentence.split()[:3]) for sentence in found)
    pairs = (f"{found[i]} {found[(i + 5) % n]}" for i in range(n))
    passages = (" ".join(found[(i + 3 * k) % n] for k in range(4)) for i in range(n))
    return (*found, *openings, *pairs, *passages)


PROBE = _texts()
"""64 English texts of 3 to 60 words, which never change."""


def cosine_deviation(found: NDArray[np.float32], expected: NDArray[np.float32]) -> float:
    """Return the largest difference of the cosines of any two texts."""

    def cosines(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
        x = vectors.astype(np.float64)
        lengths = np.linalg.norm(x, axis=1, keepdims=True)
        x /= np.where(lengths > 0, lengths, 1)
        return x @ x.T

    return float(np.abs(cosines(found) - cosines(expected)).max())


def one_digit_up(deviation: float) -> str:
    """One digit that counts, upwards.

    >>> one_digit_up(0.00034), one_digit_up(0.0101), one_digit_up(0.0)
    ('4e-04', '2e-02', '0')
    """
    if deviation <= 0:
        return "0"
    power = math.floor(math.log10(deviation))
    return f"{math.ceil(round(deviation / 10**power, 6)) * 10**power:.0e}"
