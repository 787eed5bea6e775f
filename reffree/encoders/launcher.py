"""Several processes on one host, one per device: started here, or by torchrun or accelerate.

Every step is run by all ranks, and its failure is told to all, so that none waits for a rank that
has given up. A rank that is killed closes its connections, which ends the others' waiting too.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import Any, NoReturn, TypeVar

from reffree.util.errors import EncoderError, ReffreeError, first_line, shorten

T = TypeVar("T")

SIZES = ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
"""Where torchrun, accelerate and MPI say how many processes they started."""

PATIENCE = timedelta(days=1)
"""How long a rank waits for slower ones; one that ends early is noticed at once."""

LONGEST_MESSAGE = 500

PARTING_SECONDS = 5
"""What the others get to save what they have, once one has failed."""

INTERRUPTED_SECONDS = 3
"""How long to wait for processes to stop by themselves before each is interrupted."""


def launch(work: Callable[..., None], arguments: Sequence[Any], n: int) -> int:
    """Run ``work(*arguments)`` in ``n`` new processes, which find each other as ranks.

    Returns the exit code: 0, or that of the first rank that failed. The first rank speaks for all;
    this raises only if it could not.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=_rank, args=(rank, n, port, work, *arguments)) for rank in range(n)
    ]
    try:
        for process in processes:
            process.start()
        failed = _wait_for_first_failure(processes)
        _wait(processes, PARTING_SECONDS)
        speaker = processes[0].exitcode
    finally:
        _end(processes)
    if failed is not None and (speaker is None or speaker < 0):
        code = processes[failed].exitcode or 0
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with code {code}"
        raise EncoderError(
            f"process {failed + 1} of {n} ended {how}; expected it to finish; free memory or use "
            "fewer devices, and run it again to go on from what the cache holds"
        )
    codes = [process.exitcode or 0 for process in processes]
    return next((1 if code < 0 else code for code in codes if code), 0)


def _rank(rank: int, size: int, port: int, work: Callable[..., None], *arguments: Any) -> None:  # noqa: ANN401
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    code: Any = 0
    try:
        work(*arguments)
    except KeyboardInterrupt:
        code = 130
    except SystemExit as left:
        code = left.code or 0
    end_rank(code)


def end_rank(code: int) -> NoReturn:
    """End this process with an exit code, without the interpreter's own way down.

    Modules that are imported after the ranks have met keep their group as a default argument, so
    gloo's threads outlive the group's end; one that then lets go of a tensor while the interpreter
    ends aborts the process, now and then (https://github.com/pytorch/pytorch/pull/179291).
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # closed, or nobody reads it any more
            stream.flush()
    os._exit(code)


def _wait_for_first_failure(processes: Sequence[SpawnProcess]) -> int | None:
    """Return the rank of a process that has failed, as soon as there is one.

    A process that is killed closes its sentinel a moment before it has an exit code: each is
    therefore joined before its code is read.
    """
    running = dict(enumerate(processes))
    while running:
        ended = wait([process.sentinel for process in running.values()])
        for rank in [rank for rank, process in running.items() if process.sentinel in ended]:
            process = running.pop(rank)
            process.join()
            if process.exitcode:
                return rank
    return None


def _wait(processes: Sequence[SpawnProcess], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))


def _end(processes: Sequence[SpawnProcess]) -> None:
    """Let those still running save what they have, then stop them.

    A terminal interrupts all at once; other senders of signals only the parent.
    """

    def interrupt(process: SpawnProcess) -> None:
        assert process.pid is not None
        os.kill(process.pid, signal.SIGINT)

    started = [process for process in processes if process.pid is not None]
    _wait(started, INTERRUPTED_SECONDS)
    for stop in (interrupt, SpawnProcess.terminate, SpawnProcess.kill):
        alive = [process for process in started if process.is_alive()]
        for process in alive:
            stop(process)
        _wait(alive, PARTING_SECONDS)


def is_launched() -> bool:
    """Whether a launcher started several processes of which this is one."""
    return any(os.environ.get(name, "1") not in ("", "0", "1") for name in SIZES)


class RankError(EncoderError):
    """Some rank has failed; raised in all of them."""


class SingleProcess:
    """The only process: nothing to tell, nobody to wait for."""

    rank = 0
    size = 1

    def run(self, step: Callable[[], T]) -> T:
        """Return what a step of the work returns."""
        return step()

    def share(self, numbers: Sequence[int]) -> list[int]:
        """Return the first rank's numbers."""
        return list(numbers)

    def gather(self, number: int) -> list[int]:
        """Return every rank's number."""
        return [number]

    def leave(self) -> None:
        """Wait for the others, then part."""


class Ranks(SingleProcess):
    """One of several processes that a launcher started on this host."""

    def __init__(self) -> None:
        """Meet the other ranks; they talk over gloo, whatever device each encodes on."""
        from accelerate import PartialState

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # accelerate tells of the threads it sets
                self._state = PartialState(cpu=True, backend="gloo", timeout=PATIENCE)
        except (RuntimeError, ValueError) as error:
            raise EncoderError(
                f"the launcher's processes cannot meet ({first_line(error)}); expected those of "
                "torchrun or accelerate launch on one host; start it again, or without a launcher"
            ) from error
        self.rank = self._state.process_index
        self.size = self._state.num_processes
        if self.size != int(os.environ.get("LOCAL_WORLD_SIZE", self.size)):
            raise EncoderError(
                f"found {self.size} ranks on several hosts; expected one host, since the cache is "
                "a file on its disk; embed a part of the corpus on each, then reffree cache merge"
            )

    def run(self, step: Callable[[], T]) -> T:
        """Run a step; if it fails in any rank, fail in all."""
        result: T | None = None
        failure: Exception | None = None
        try:
            result = step()
        except Exception as error:  # told to the others before it is raised again
            failure = error
        message = "" if failure is None else str(failure) or type(failure).__name__
        try:
            told = self._tell(shorten(message, LONGEST_MESSAGE))
        except RankError as lost:
            raise failure or lost from None
        if failure is not None and not isinstance(failure, ReffreeError):
            raise failure
        failed = [(rank, message) for rank, message in enumerate(told) if message]
        if failed:
            rank, message = failed[0]
            same = all(other == message for other in told)
            raise RankError(message if same else f"rank {rank}: {message}")
        return result  # type: ignore[return-value]  # there is one where nothing failed

    def share(self, numbers: Sequence[int]) -> list[int]:
        """Return the first rank's numbers."""
        told: list[list[int]] = self._tell(list(numbers) if self.rank == 0 else [])
        return told[0]

    def gather(self, number: int) -> list[int]:
        """Return every rank's number."""
        return self._tell(number)

    def leave(self) -> None:
        """Wait for the others, then part."""
        self._talk(self._state.wait_for_everyone)
        self._state.destroy_process_group()

    def _tell(self, value: Any) -> list[Any]:  # noqa: ANN401  (JSON is any)
        """Tell the others a value that JSON can hold; returns every rank's."""
        import torch

        text = json.dumps(value).encode()
        sizes = torch.zeros(self.size, dtype=torch.int64)
        sizes[self.rank] = len(text)
        self._talk(lambda: torch.distributed.all_reduce(sizes))
        own = torch.zeros(int(sizes.max()), dtype=torch.uint8)
        own[: len(text)] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        told = [torch.zeros_like(own) for _ in range(self.size)]
        self._talk(lambda: torch.distributed.all_gather(told, own))
        return [json.loads(bytes(one[:n].numpy())) for one, n in zip(told, sizes, strict=True)]

    def _talk(self, exchange: Callable[[], object]) -> None:
        try:
            exchange()
        except RuntimeError as error:
            raise RankError(
                f"another rank has ended ({first_line(error)}); expected all to stay to the end; "
                "see what it said, and run it again to go on from what the cache holds"
            ) from error
