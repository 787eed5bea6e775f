"""Which device to use, and what was found out about a model on it, for the next run.

Facts are kept beside the cache, one small file each, so that runs at the same time do not undo each
other's. Nothing there is needed: what cannot be read is found out again.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reffree.util.atomic import replacing
from reffree.util.errors import EncoderError, OptionError

if TYPE_CHECKING:
    import torch

PATTERN = re.compile(r"auto|cpu|mps|cuda(:\d+)?")
BUDGETS = "budgets"
DEVIATIONS = "deviations"
ENDPOINTS = "endpoints"


def split_devices(name: str) -> list[str]:
    """Read ``--device``: one name, several with commas between, or ``all`` CUDA devices."""
    if name != "all":
        return [part.strip() for part in name.split(",")]
    import torch  # only this word needs it

    n_devices = torch.cuda.device_count()
    if not n_devices:
        raise EncoderError(
            "device 'all': found no CUDA devices; expected at least one; use --device auto, or "
            "name the devices, as in cuda:0,cuda:1"
        )
    return [f"cuda:{i}" for i in range(n_devices)]


def choose_devices(name: str) -> list[torch.device]:
    """Resolve a name, several with commas between, or ``all``; each must be there."""
    return [_chosen(part) for part in split_devices(name)]


def choose_device(name: str = "auto") -> torch.device:
    """Return the device for what is computed on one: of several the first."""
    return choose_devices(name)[0]


def _chosen(name: str) -> torch.device:
    """Resolve ``auto`` (CUDA, then MPS, then CPU) or check that the named device is there."""
    if not PATTERN.fullmatch(name):
        raise OptionError(
            f"the device {name!r}",
            expected="auto, cpu, cuda, cuda:1, mps, several with commas between, or all",
            remedy="use --device auto to let reffree choose",
        )
    import torch

    if name == "auto":
        is_metal = torch.backends.mps.is_available()
        name = "cuda" if torch.cuda.is_available() else "mps" if is_metal else "cpu"
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise EncoderError(
            f"device {name!r}: found {torch.cuda.device_count()} CUDA devices; expected at least "
            f"{(device.index or 0) + 1}; use --device cpu, or install a CUDA build of torch"
        )
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise EncoderError(
            "device 'mps': found no Metal device; expected a Mac with one; use --device cpu"
        )
    if name == "cuda" and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        # One of a launcher's processes: the card that accelerate gives it.
        rank = int(os.environ.get("LOCAL_RANK", "0"))
        return torch.device("cuda", rank % torch.cuda.device_count())
    return device


def scoring_device(device: torch.device) -> torch.device:
    """Return the device to score on: not Metal, which has no float64."""
    import torch

    return torch.device("cpu") if device.type == "mps" else device


def recall(path: Path) -> dict[str, Any]:
    """Read a file of facts; empty where there is none that is readable."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def remember(path: Path, facts: dict[str, Any]) -> None:
    """Write a file, whole or not at all; a folder that takes none only costs the next run time."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(facts) + "\n", encoding="utf-8")


def device_slug(device: torch.device) -> str:
    """Name a device for files; CUDA devices of the same make have one name."""
    name = device.type
    if name == "cuda":
        from torch.cuda import get_device_name

        name = get_device_name(device)
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
