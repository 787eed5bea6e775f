"""A device for tests that does its work late, in any order its queues allow, and fails at random.

It is a scheduler without clock or threads: whenever the host asks for something, a few heads of
queues are done, drawn at random; waiting for an event does more until it is reached. Work finds its
arguments as they are when it is done, not when it was given: what is not there yet, or was let go
of, is a hazard that is counted; on a card its memory would be another batch's.
"""

from __future__ import annotations

import random
import weakref
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import torch

DONE = "what work returns that returns nothing"


class Later:
    """What queued work will return; the host holds it, and with it the memory."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        weakref.finalize(self, memory.free)


@dataclass
class Memory:
    """Of one result: nothing at first, and nothing once it is freed."""

    device: DelayedDevice
    value: Any = None
    state: str = "empty"

    def fill(self, value: Any) -> None:
        if self.state != "freed":
            self.value, self.state = value, "full"

    def free(self) -> None:
        if self.state != "freed":
            self.device.live -= 1
        self.value, self.state = None, "freed"


@dataclass
class DelayedEvent:
    """A point of a queue; ``error`` is what failed on the way to it."""

    device: DelayedDevice
    is_reached: bool = False
    error: RuntimeError | None = None

    def synchronize(self) -> None:
        while not self.is_reached:
            self.device.step()
        if self.error is not None:
            raise RuntimeError(str(self.error))


@dataclass
class DelayedQueue:
    """Work that waits to be done."""

    device: DelayedDevice
    todo: deque[Any] = field(default_factory=deque)
    error: RuntimeError | None = None

    def run(self, work, *arguments):
        self.device.give_time()
        self.device.fail("given")
        memory = Memory(self.device)
        self.device.live += 1
        self.device.most_live = max(self.device.most_live, self.device.live)
        # The queue holds memory, not the host's handles to it, nor the host's own objects.
        held = [a.memory if isinstance(a, Later) else weak(a) for a in arguments]
        self.todo.append(("work", work, held, memory))
        return Later(memory)

    def record_event(self):
        self.device.give_time()
        event = DelayedEvent(self.device)
        self.todo.append(("record", event))
        return event

    def wait_event(self, event):
        self.todo.append(("wait", event))

    @property
    def is_ready(self) -> bool:
        return bool(self.todo) and not (
            self.todo[0][0] == "wait" and not self.todo[0][1].is_reached
        )

    def do(self) -> None:
        kind, *rest = self.todo.popleft()
        if kind == "wait":
            self.error = self.error or rest[0].error
        elif kind == "record":
            rest[0].is_reached, rest[0].error, self.error = True, self.error, None
        elif self.error is None:
            work, held, memory = rest
            try:
                self.device.fail("done")
                found = [one() if callable(one) else one.value for one in held]
                if any(one is None for one in found):
                    self.device.n_hazards += 1
                else:
                    result = work(*found)
                    memory.fill(DONE if result is None else result)
            except RuntimeError as error:
                self.error = error.with_traceback(None)  # whose frames hold the host's handles


class Features(dict):
    """A batch on the host that can be told from one that was let go of, unlike a plain dict."""

    __slots__ = ("__weakref__",)


def weak(argument):
    return (lambda: argument) if type(argument) is dict else weakref.ref(argument)


class DelayedDevice:
    """The accelerator itself; ``failures`` is the share of work that fails."""

    def __init__(self, seed=0, failures=0.0, message="CUDA out of memory."):
        self.random = random.Random(seed)
        self.failures, self.message = failures, message
        self.queues: list[DelayedQueue] = []
        self.n_hazards = self.n_failed = self.live = self.most_live = self.n_pinned = 0

    def queue(self):
        self.queues.append(DelayedQueue(self))
        return self.queues[-1]

    def pinned(self, tensor):
        self.n_pinned += 1
        return tensor

    def send(self, features):
        return Features(
            (k, v.clone() if isinstance(v, torch.Tensor) else v) for k, v in features.items()
        )

    def fetch(self, vectors, into):
        into.copy_(vectors)

    def free_bytes(self):
        return None

    def step(self) -> None:
        ready = [queue for queue in self.queues if queue.is_ready]
        assert ready, "all queues wait for each other"
        self.random.choice(ready).do()

    def give_time(self) -> None:
        """Do a few things, or none, while the host is at it."""
        for _ in range(self.random.choice((0, 0, 0, 1, 5))):
            if any(queue.is_ready for queue in self.queues):
                self.step()

    def fail(self, when: str) -> None:
        if self.random.random() < self.failures:
            self.n_failed += 1
            raise RuntimeError(f"{self.message} ({when})")
