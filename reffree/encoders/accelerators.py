"""Devices whose work is queued and done later, as the pipeline needs them: CUDA's, and plain ones.

The pipeline knows these protocols only, so that it can be run on a device made for tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import torch

from reffree.encoders.tokenising import Features

R = TypeVar("R")


class Event(Protocol):
    """A point of a queue."""

    def synchronize(self) -> None:
        """Wait, on the host, until the device has come to it; raises what failed there."""
        ...


class DeviceQueue(Protocol):
    """Work of a device, done one after the other, some time after it was given."""

    def run(self, work: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401
        """Queue work; what it returns may be given to other work before it is computed."""
        ...

    def record_event(self) -> Event:
        """Return the point that is reached when everything queued so far is done."""
        ...

    def wait_event(self, event: Event) -> None:
        """Begin nothing that is queued from now on before another queue has reached a point."""
        ...


class Accelerator(Protocol):
    """A device with queues, and host memory that it reads and writes by itself."""

    def queue(self) -> DeviceQueue:
        """Make a queue."""
        ...

    def pinned(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the host in memory that the device can reach."""
        ...

    def send(self, features: Features) -> Features:
        """Copy a batch to the device; for `DeviceQueue.run`."""
        ...

    def fetch(self, vectors: torch.Tensor, into: torch.Tensor) -> None:
        """Copy vectors to memory of the host; for `DeviceQueue.run`."""
        ...

    def free_bytes(self) -> int | None:
        """Return what may still be allocated; None where that is not known."""
        ...

    def peak_bytes(self, work: Callable[[], object]) -> int:
        """Do some work and wait for it; returns what it allocated, at its most."""
        ...


class Immediate:
    """A queue, and a point of it, of a device that does its work at once: torch's own order."""

    def run(self, work: Callable[..., R], *arguments: Any) -> R:  # noqa: ANN401
        """Do the work."""
        return work(*arguments)

    def record_event(self) -> Immediate:
        """Return this: everything is done."""
        return self

    def wait_event(self, event: Event) -> None:
        """Go on: everything is done."""

    def synchronize(self) -> None:
        """Go on."""


class PlainAccelerator:
    """A device without queues of our own: the CPU, and Metal, whose one queue is torch's."""

    def __init__(self, device: torch.device) -> None:
        """Take the device."""
        self.device = device

    def queue(self) -> Immediate:
        """Make a queue."""
        return Immediate()

    def pinned(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor: copies wait for their end."""
        return tensor

    def send(self, features: Features) -> Features:
        """Copy a batch to the device."""
        return sent(features, self.device, non_blocking=False)

    def fetch(self, vectors: torch.Tensor, into: torch.Tensor) -> None:
        """Copy vectors and wait for them: Metal's copies to the host may be late as CUDA's are."""
        into.copy_(vectors)

    def free_bytes(self) -> None:
        """Say nothing: what is free is also the other programs'."""
        return

    def peak_bytes(self, work: Callable[[], object]) -> int:
        """Say nothing; not asked where `free_bytes` is None."""
        raise NotImplementedError


class CudaQueue:
    """A stream of a CUDA device."""

    def __init__(self, device: torch.device) -> None:
        """Make a stream that begins when all that was queued before is done, such as loading."""
        self._stream: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._stream.wait_stream(torch.cuda.current_stream(device))

    def run(self, work: Callable[..., R], *arguments: Any) -> R:  # noqa: ANN401
        """Have the work's kernels and copies put into this stream."""
        with torch.cuda.stream(self._stream):
            return work(*arguments)

    def record_event(self) -> Event:
        """Return the point after everything so far; waiting for it leaves the core to others."""
        event: Any = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
        event.record(self._stream)
        point: Event = event
        return point

    def wait_event(self, event: Event) -> None:
        """Have the stream wait, not the host."""
        self._stream.wait_event(event)


class CudaAccelerator:
    """A CUDA device."""

    def __init__(self, device: torch.device) -> None:
        """Take the device."""
        self.device = device

    def queue(self) -> CudaQueue:
        """Make a queue."""
        return CudaQueue(self.device)

    def pinned(self, tensor: torch.Tensor) -> torch.Tensor:
        """Copy to page-locked memory; torch keeps it for the next tensor of the size."""
        with torch.cuda.device(self.device):  # without it, a thread would open the first device
            return tensor.pin_memory()

    def send(self, features: Features) -> Features:
        """Queue the copies of a batch."""
        return sent(features, self.device, non_blocking=True)

    def fetch(self, vectors: torch.Tensor, into: torch.Tensor) -> None:
        """Queue the copy of vectors to memory that was `pinned`."""
        into.copy_(vectors, non_blocking=True)

    def free_bytes(self) -> int:
        """Count what the card has left, and what torch has taken from it but not given out."""
        kept = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return torch.cuda.mem_get_info(self.device)[0] + kept

    def peak_bytes(self, work: Callable[[], object]) -> int:
        """Measure by torch's own count."""
        torch.cuda.reset_peak_memory_stats(self.device)
        before = torch.cuda.memory_allocated(self.device)
        work()
        torch.cuda.synchronize(self.device)
        return torch.cuda.max_memory_allocated(self.device) - before


def accelerator_of(device: torch.device) -> Accelerator:
    """Return the queues of a device."""
    return CudaAccelerator(device) if device.type == "cuda" else PlainAccelerator(device)


def sent(features: Features, device: torch.device, *, non_blocking: bool) -> Features:
    """Copy the tensors of a batch to a device."""
    return {
        name: value.to(device, non_blocking=non_blocking)
        if isinstance(value, torch.Tensor)
        else value
        for name, value in features.items()
    }
