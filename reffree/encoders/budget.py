"""How many tokens a batch may hold: what fitted into a device's memory before, or is tried."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from reffree.encoders.accelerators import Accelerator
from reffree.encoders.base import EncoderSpec
from reffree.encoders.batching import batch_of
from reffree.encoders.device import BUDGETS, device_slug, recall
from reffree.encoders.forward import DeviceForward
from reffree.encoders.tokenising import Tokeniser

LARGEST_BUDGET = 2**31
SHARE_OF_FREE = 0.8
"""Of a device's free memory; the rest is for what the allocator cannot use for lack of order."""

MOST_TOKENS = 2**16
"""In a batch: cards are busy with fewer, and what is in flight would only take more memory."""

MUCH_MORE = 2
"""Times what was free, and memory is measured again: another program has ended."""

PROBED_TOKENS = 512
"""Of the texts that memory is measured with; longer ones may need smaller batches."""


def budget_path(folder: Path, spec: EncoderSpec, device: torch.device) -> Path:
    """Name the file of a model on a device."""
    return folder / BUDGETS / f"{spec.fingerprint[:16]}-{device_slug(device)}.json"


def recalled_budget(path: Path, free: int | None = None) -> int | None:
    """Return the tokens per batch that fitted into memory before.

    Where less of the device's memory is ``free`` than was then, they are fewer by as much; None
    where there is so much more that it is worth another try.
    """
    facts = recall(path)
    tokens, then = _count(facts.get("batch_tokens")), _count(facts.get("free_bytes"))
    if not 0 < tokens <= LARGEST_BUDGET:
        return None
    if free is None or then <= 0:
        return tokens
    if free > MUCH_MORE * then and tokens < MOST_TOKENS:
        return None
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


def tried_budget(
    free: int, accelerator: Accelerator, forward: DeviceForward, tokeniser: Tokeniser
) -> int:
    """Measure what a model takes on a device, and return the tokens per batch that fit."""
    (read,) = tokeniser.read([0], ["word " * PROBED_TOKENS])

    def peak(rows: int) -> int:
        batch = batch_of([read] * rows, tokeniser)
        return accelerator.peak_bytes(lambda: forward(accelerator.send(forward.features_of(batch))))

    try:
        return budget_within(free, peak, read.length)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        return read.length


def is_out_of_memory(error: Exception) -> bool:
    """Whether smaller batches may help."""
    from accelerate.utils.memory import should_reduce_batch_size

    return bool(should_reduce_batch_size(error))
