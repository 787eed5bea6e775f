"""Which device to use, and what was found out about a model on it, for the next run.

Facts are kept beside the cache, one small file each, so that runs at the same time do not undo each
other's. Nothing there is needed: what cannot be read is found out again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reffree.atomic import replacing
from reffree.encoders.base import EncoderSpec
from reffree.errors import EncoderError, OptionError

if TYPE_CHECKING:
    import torch

PATTERN = re.compile(r"auto|cpu|mps|cuda(:\d+)?")
BUDGETS = "budgets"
ENDPOINTS = "endpoints"
LARGEST_BUDGET = 2**31
SHARE_OF_FREE = 0.8
"""Of a device's free memory; the rest is for what the allocator cannot use for lack of order."""

MOST_TOKENS = 2**16
"""In a batch: cards are busy with fewer, and what is in flight would only take more memory."""


def choose_device(name: str = "auto") -> torch.device:
    """Resolve ``auto`` (CUDA, then MPS, then CPU) or check that the named device is there."""
    if not PATTERN.fullmatch(name):
        raise OptionError(
            f"the device {name!r}",
            expected="auto, cpu, cuda, cuda:1 or mps",
            remedy="use --device auto to let reffree choose",
        )
    import torch

    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
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


def budget_path(folder: Path, spec: EncoderSpec, device: torch.device) -> Path:
    """Name the file of a model on a device; CUDA devices of the same make share it."""
    name = device.type
    if name == "cuda":
        from torch.cuda import get_device_name

        name = get_device_name(device)
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return folder / BUDGETS / f"{spec.fingerprint[:16]}-{slug}.json"


def recalled_budget(path: Path, free: int | None = None) -> int | None:
    """Return the tokens per batch that fitted into memory before.

    Where less of the device's memory is ``free`` than was then, they are fewer by as much.
    """
    facts = recall(path)
    tokens, then = _count(facts.get("batch_tokens")), _count(facts.get("free_bytes"))
    if not 0 < tokens <= LARGEST_BUDGET:
        return None
    if free is None or then <= 0:
        return tokens
    return max(1, min(tokens, tokens * free // then))


def _count(value: object) -> int:
    """Return a whole number that was found in a file; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def budget_within(free: int, peak: Callable[[int], int], length: int) -> int:
    """Return the tokens per batch that fit into free bytes of a device.

    ``peak`` measures the bytes that a batch of some texts of ``length`` tokens takes: of one text
    and of two, since what a text adds is what grows.
    """
    one, two = peak(1), peak(2)
    per_text = max(1, two - one)
    texts = (int(free * SHARE_OF_FREE) - max(0, one - per_text)) // per_text
    return min(max(1, texts) * length, MOST_TOKENS)
