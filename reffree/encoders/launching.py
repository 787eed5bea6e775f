"""Several devices in one call: one process per device, as a launcher would start them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import Any

from reffree.errors import EncoderError

PARTING_SECONDS = 5
"""What the others get to save what they have, once one has failed."""

INTERRUPTED_SECONDS = 3
"""How long to wait for processes to stop by themselves before each is interrupted."""


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
    try:
        work(*arguments)
    except KeyboardInterrupt:
        sys.exit(130)


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


def _interrupt(process: SpawnProcess) -> None:
    if process.pid is not None:
        os.kill(process.pid, signal.SIGINT)


def _end(processes: Sequence[SpawnProcess]) -> None:
    """Let those still running save what they have, then stop them.

    A terminal interrupts all at once; other senders of signals only the parent.
    """
    started = [process for process in processes if process.pid is not None]
    _wait(started, INTERRUPTED_SECONDS)
    for stop in (_interrupt, SpawnProcess.terminate, SpawnProcess.kill):
        alive = [process for process in started if process.is_alive()]
        for process in alive:
            stop(process)
        _wait(alive, PARTING_SECONDS)
