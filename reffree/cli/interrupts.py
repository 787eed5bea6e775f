"""Ctrl-C ends the command, at any moment and soon.

Python tells the main thread with a `KeyboardInterrupt`. That is not enough: one that is raised
where C code calls Python, as the compiler does, is printed and lost; it waits for as long as
compiled code runs; the interpreter does not end before other threads have; and it kills itself
in place of the exit code if the interrupt met it in code made from a string.
"""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from types import FrameType, TracebackType

STUCK_SECONDS = 5.0
"""How long the main thread may take to hear of it; it then is in code that does not listen."""

UNWINDING_SECONDS = 60.0
"""How long the command may take to save what it has done."""

LEAVING_SECONDS = 5.0
"""How long the interpreter may take to end, once the command has."""

AGAIN_SECONDS = 0.05
INTERRUPTED = 130
MESSAGE = "reffree: interrupted; run it again to go on from what the cache holds."


def end_process(code: int) -> None:
    """End the process at once, but for what is to be written."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with suppress(OSError, ValueError):  # closed, or nobody reads it any more
            stream.flush()
    os._exit(code)


class Interrupts:
    """A context around a command that has the process for itself; the process ends with it."""

    def __enter__(self) -> None:
        """Listen, unless whoever started the process wants Ctrl-C ignored."""
        self._is_heard, self._is_over = threading.Event(), threading.Event()
        self._report = sys.unraisablehook
        if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):
            return
        atexit.register(self._leave)  # before all others, so that it is the last to be called
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._watch, daemon=True, name="reffree-interrupts").start()
        sys.unraisablehook = self._unraisable
        signal.signal(signal.SIGINT, self._hear)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Raise `KeyboardInterrupt` in place of any other error of an interrupted command."""
        self._is_over.set()
        if self._is_heard.is_set() and not isinstance(error, SystemExit | KeyboardInterrupt):
            raise KeyboardInterrupt from error

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if not self._is_over.is_set():
            self._is_heard.set()
            raise KeyboardInterrupt
        if not self._is_heard.is_set():  # all is done but the interpreter's own end
            os._exit(INTERRUPTED)

    def _unraisable(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Interrupt once more, a moment later, where an interrupt was about to be lost."""
        if unraisable.exc_type is KeyboardInterrupt:
            threading.Timer(AGAIN_SECONDS, _thread.interrupt_main).start()
        else:
            self._report(unraisable)

    def _leave(self) -> None:
        """End an interrupted process, as the last function that is called at its exit.

        Of one that is done the interpreter would make a killed one, at a Ctrl-C in its own end.
        """
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if self._is_heard.is_set():
            end_process(INTERRUPTED)

    def _watch(self) -> None:
        """End the process if it does not end by itself; other signals than SIGINT are not ours."""
        while self._reader.recv(1) != bytes([signal.SIGINT]):
            pass
        is_heard = self._is_heard.wait(STUCK_SECONDS) or self._is_over.is_set()
        if is_heard and self._is_over.wait(UNWINDING_SECONDS):
            time.sleep(LEAVING_SECONDS)
        else:
            os.write(2, f"{MESSAGE}\n".encode())
        if "multiprocessing" in sys.modules:
            for child in sys.modules["multiprocessing"].active_children():
                child.kill()
        os._exit(INTERRUPTED)
