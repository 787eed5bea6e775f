"""What was found out about a model on a device, kept beside the cache for the next run.

One small file per fact, so that runs at the same time do not undo each other's. Nothing here is
needed: what cannot be read is found out again.
"""

from __future__ import annotations

import json
import re
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reffree.encoders.base import EncoderSpec

if TYPE_CHECKING:
    import torch

BUDGETS = "budgets"
LARGEST_BUDGET = 2**31


def recall(path: Path) -> dict[str, Any]:
    """Read a file of facts; empty where there is none that is readable."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def remember(path: Path, facts: dict[str, Any]) -> None:
    """Write a file, whole or not at all; a folder that takes none only costs the next run time."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(facts) + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()


def budget_path(folder: Path, spec: EncoderSpec, device: torch.device) -> Path:
    """Name the file of a model on a device; CUDA devices of the same make share it."""
    name = device.type
    if name == "cuda":
        from torch.cuda import get_device_name

        name = get_device_name(device)
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return folder / BUDGETS / f"{spec.fingerprint[:16]}-{slug}.json"


def recalled_budget(path: Path) -> int | None:
    """Return the tokens per batch that fitted into memory before."""
    tokens = recall(path).get("batch_tokens")
    if isinstance(tokens, int) and not isinstance(tokens, bool) and 0 < tokens <= LARGEST_BUDGET:
        return tokens
    return None
