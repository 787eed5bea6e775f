"""Batches on an accelerator: copied there, computed and copied back while the host goes on.

Three queues of the device run beside each other: batches in, the model, vectors out. The order
within a queue is kept; between queues it is an event that one records and the other waits for.
Vectors arrive in a ring of host buffers, one per batch in flight, which is what bounds the memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from reffree.encoders.accelerators import Accelerator, Event
from reffree.encoders.tokenising import Features

T = TypeVar("T")
Matrix = NDArray[np.float32]
"""A vector a text."""

IN_FLIGHT = 3
"""Batches that are queued on a device: one computed, one behind it, one on its way back."""


class Slot:
    """A host buffer for the vectors of one batch; grows to the largest it has held."""

    def __init__(self, accelerator: Accelerator) -> None:
        """Hold nothing yet."""
        self._accelerator = accelerator
        self._buffer = _host_buffer(0)
        self._rows = self._buffer

    def receive(self, vectors: torch.Tensor) -> None:
        """Copy vectors here; for `DeviceQueue.run`."""
        size = vectors.numel()
        if size > len(self._buffer):
            self._buffer = self._accelerator.pinned(_host_buffer(size))
        self._rows = self._buffer[:size].view(vectors.shape)
        self._accelerator.fetch(vectors, self._rows)

    def read(self) -> Matrix:
        """Return what has arrived, in memory of its own."""
        rows: Matrix = self._rows.numpy().copy()
        return rows


def _host_buffer(size: int) -> torch.Tensor:
    return torch.empty(size, dtype=torch.float32, device="cpu")  # whatever the program's defaults


@dataclass(frozen=True, slots=True)
class Flight:
    """A batch under way.

    It holds everything that the device reads or writes until that is done: memory that is let go
    earlier would be given to the next batch.
    """

    slot: Slot
    held: tuple[Any, ...]
    arrived: Event


class Pipeline:
    """Computes batches on one device, several in flight, and returns their vectors in order."""

    def __init__(
        self,
        accelerator: Accelerator,
        forward: Callable[[Features], torch.Tensor],
        in_flight: int = IN_FLIGHT,
    ) -> None:
        """Take a device, and what makes float32 vectors of a batch that is there."""
        self._accelerator = accelerator
        self._forward = forward
        self._inward, self._model, self._outward = (accelerator.queue() for _ in range(3))
        self._free = deque(Slot(accelerator) for _ in range(in_flight))

    def compute(self, features: Features) -> Matrix:
        """Compute one batch and wait for it; another slot must be free."""
        return self._landed(self._begin(features))

    def stream(
        self, items: Iterable[T], features_of: Callable[[T], Features]
    ) -> Generator[tuple[T, Callable[[], Matrix]], None, None]:
        """Yield items in order, each with a function that returns its vectors, or raises.

        One slot is free whenever an item is yielded, for `compute`. Closing this, or an interrupt,
        waits for what is in flight: a device may still write to the buffers.
        """
        under_way: deque[tuple[T, Flight | Exception]] = deque()
        try:
            for item in items:
                begun = self._begun(features_of(item))
                under_way.append((item, begun))
                # Whoever splits a batch that was too large does so before the next is begun.
                while under_way and (not self._free or isinstance(begun, Exception)):
                    yield self._outcome(*under_way.popleft())
            while under_way:
                yield self._outcome(*under_way.popleft())
        except BaseException:  # closed early, interrupted, or the source has failed
            self._settle()
            flights = [flight for _, flight in under_way if isinstance(flight, Flight)]
            self._free.extend(flight.slot for flight in flights)
            raise

    def _begun(self, features: Features) -> Flight | Exception:
        """Queue a batch; an error, such as that of memory that ran out, waits for its turn."""
        try:
            return self._begin(features)
        except (RuntimeError, IndexError) as error:
            return error.with_traceback(None)  # whose frames hold memory of the device

    def _begin(self, features: Features) -> Flight:
        slot = self._free.popleft()
        try:
            there = self._inward.run(self._accelerator.send, features)
            self._model.wait_event(self._inward.record_event())
            vectors = self._model.run(self._forward, there)
            self._outward.wait_event(self._model.record_event())
            self._outward.run(slot.receive, vectors)
            return Flight(slot, (features, there, vectors), self._outward.record_event())
        except BaseException:
            # What was queued of it must end before its memory is another batch's.
            self._settle()
            self._free.append(slot)
            raise

    def _outcome(self, item: T, flight: Flight | Exception) -> tuple[T, Callable[[], Matrix]]:
        """Take a batch's slot back before its vectors are asked for."""
        try:
            outcomes = [flight if isinstance(flight, Exception) else self._landed(flight)]
        except (RuntimeError, IndexError) as error:
            outcomes = [error.with_traceback(None)]

        def result() -> Matrix:
            outcome = outcomes.pop()
            try:
                if isinstance(outcome, Exception):
                    raise outcome
                return outcome
            finally:
                del outcome  # an error whose frames hold it would hold them until the next gc

        return item, result

    def _landed(self, flight: Flight) -> Matrix:
        try:
            flight.arrived.synchronize()
            return flight.slot.read()
        except KeyboardInterrupt:
            self._settle()
            raise
        finally:
            self._free.append(flight.slot)

    def _settle(self) -> None:
        """Wait for all queues; what has failed in them belongs to batches that are given up."""
        for queue in (self._inward, self._model, self._outward):
            try:
                queue.record_event().synchronize()
            except RuntimeError:
                continue
