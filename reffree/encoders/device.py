"""Which device computes: a name, several side by side, or a Ray cluster's actors.

``auto``, ``cpu``, ``mps``, ``cuda`` and ``cuda:1`` name one device; ``cuda:0,cuda:1`` and ``all``
(every CUDA device) several, of which the first does what is not encoding;
``ray:address=auto,actors=4`` encodes and scores in actors of a Ray cluster, and without an address
in actors on this host. Torch is imported only where there may be another device than the CPU.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reffree.util.errors import EncoderError, OptionError, shorten

if TYPE_CHECKING:
    import torch

PATTERN = re.compile(r"auto|cpu|mps|cuda(:\d{1,3})?")
RAY = re.compile(
    r"ray(?::(?:(?:address=(?P<address>\S+?)|actors=(?P<actors>[1-9]\d{0,5}))(?:,|$))+)?"
)
CARDS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""Where Linux has NVIDIA's cards, AMD's, and those of Windows below it."""


@dataclass(frozen=True, slots=True)
class RayCluster:
    """Whose actors work: None for the address starts a cluster on this host, None actors is all."""

    address: str | None = None
    actors: int | None = None


def check_device(device: str) -> None:
    """Refuse what names no device; whether it is there is seen when it is used."""
    if parse_ray(device) is not None or device == "all":
        return
    for name in map(str.strip, str(device).split(",")):
        if not PATTERN.fullmatch(name):
            raise OptionError(
                f"the device {shorten(name)!r}",
                expected="auto, cpu, cuda, cuda:1, mps, several with commas between, all, or "
                "ray:address=HOST:PORT,actors=N",
                remedy="use --device auto to let reffree choose",
            )


def parse_ray(device: object) -> RayCluster | None:
    """Return the cluster that a device names; None for devices of this machine.

    >>> parse_ray("ray:address=10.0.0.1:6379,actors=4")
    RayCluster(address='10.0.0.1:6379', actors=4)
    """
    found = RAY.fullmatch(device) if isinstance(device, str) else None
    return found and RayCluster(found["address"], int(found["actors"] or 0) or None)


def device_names(device: str) -> list[str]:
    """Return the devices that a name stands for, each of which is there."""
    check_device(device)
    if parse_ray(device) is not None:
        return ["cpu"]  # of the process that has actors work
    if device != "all":
        return [_device_name(part.strip()) for part in device.split(",")]
    import torch

    if not (n_devices := torch.cuda.device_count()):
        raise EncoderError(
            "device 'all': found no CUDA devices; expected at least one; use --device auto, or "
            "name the devices, as in cuda:0,cuda:1"
        )
    return [f"cuda:{i}" for i in range(n_devices)]


def choose_device(device: str = "auto") -> torch.device:
    """Return the device for what is computed on one: of several the first."""
    import torch

    return torch.device(device_names(device)[0])


def may_have_card() -> bool:
    """Whether this machine may have another device than its CPU; asked without torch."""
    return sys.platform != "linux" or any(map(os.path.exists, CARDS))


def _device_name(name: str) -> str:
    """Resolve ``auto`` (CUDA, then MPS, then CPU), or check that the named device is there."""
    if name == "cpu" or (name == "auto" and not may_have_card()):
        return "cpu"
    import torch

    if name == "auto":
        is_metal = torch.backends.mps.is_available()
        name = "cuda" if torch.cuda.is_available() else "mps" if is_metal else "cpu"
    index, n_cards = int(name.partition(":")[2] or 0), torch.cuda.device_count()
    if name.startswith("cuda") and index >= n_cards:
        raise EncoderError(
            f"device {name!r}: found {n_cards} CUDA devices; expected at least {index + 1}; use "
            "--device cpu, or install a CUDA build of torch"
        )
    if name == "mps" and not torch.backends.mps.is_available():
        raise EncoderError(
            "device 'mps': found no Metal device; expected a Mac with one; use --device cpu"
        )
    if name == "cuda" and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        # One of a launcher's processes: the card that accelerate gives it.
        return f"cuda:{int(os.environ.get('LOCAL_RANK', '0')) % n_cards}"
    return name
