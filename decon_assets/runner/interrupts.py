"""Ctrl-C during runs of Dagster, which ignores it between the steps of a run.

While Dagster executes a run it replaces the handler of SIGINT. It raises inside of a step, and
drops a signal that arrives before the first step or after the last one. The wakeup descriptor of
the interpreter is written to whichever handler is installed, so it tells what Dagster dropped.
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_BYTES = 64


class Interrupts:
    """The SIGINTs that reached this process since the watch began."""

    def __init__(self, received: socket.socket | None = None) -> None:
        self._received = received
        self._is_interrupted = False

    @property
    def is_interrupted(self) -> bool:
        if self._received is not None:
            with suppress(BlockingIOError):
                while signals := self._received.recv(_BYTES):
                    self._is_interrupted |= signal.SIGINT in signals
        return self._is_interrupted

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed, whatever became of the signal."""
        if self.is_interrupted:
            raise KeyboardInterrupt


@contextmanager
def watch_interrupts() -> Iterator[Interrupts]:
    """Note every SIGINT until the block ends. Only the main thread can; elsewhere none is noted."""
    if threading.current_thread() is not threading.main_thread():
        yield Interrupts()
        return
    received, written = socket.socketpair()
    with received, written:
        received.setblocking(False)
        written.setblocking(False)
        before = signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)
        try:
            yield Interrupts(received)
        finally:
            signal.set_wakeup_fd(before)
