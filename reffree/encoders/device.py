"""Which device to use, or why it cannot be used."""

from __future__ import annotations

import re

import torch

from reffree.errors import EncoderError, OptionError

PATTERN = re.compile(r"auto|cpu|mps|cuda(:\d+)?")


def choose_device(name: str = "auto") -> torch.device:
    """Resolve ``auto`` (CUDA, then MPS, then CPU) or check that the named device is there."""
    if not PATTERN.fullmatch(name):
        raise OptionError(
            f"the device {name!r}",
            expected="auto, cpu, cuda, cuda:1 or mps",
            remedy="use --device auto to let reffree choose",
        )
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
    """Scores need float64, which Metal does not have."""
    return torch.device("cpu") if device.type == "mps" else device
