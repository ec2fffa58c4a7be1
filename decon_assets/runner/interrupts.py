"""Detect Ctrl-C during Dagster runs: Dagster ignores it between the steps of a run.

While Dagster executes a run, it replaces the handler of SIGINT. That handler raises inside a step,
and drops a signal that arrives before the first step or after the last one. The interpreter writes
to the wakeup descriptor with any handler installed, so it also shows dropped signals.
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_BYTES = 64


class Interrupts:
    """The SIGINTs received since `watch_interrupts` began."""

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
        """Raise KeyboardInterrupt if Ctrl-C was pressed, even if Dagster dropped the signal."""
        if self.is_interrupted:
            raise KeyboardInterrupt


@contextmanager
def watch_interrupts() -> Iterator[Interrupts]:
    """Record every SIGINT until the block ends; outside the main thread, record none."""
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
