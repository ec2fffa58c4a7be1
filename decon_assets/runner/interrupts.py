"""Detect Ctrl-C during Dagster runs: Dagster ignores it between the steps of a run.

While Dagster executes a run, it replaces the handler of SIGINT. That handler raises inside a step,
and drops a signal that arrives before the first step or after the last one. The interpreter writes
to the wakeup descriptor with any handler installed, so it also shows dropped signals.
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_BYTES = 64


@contextmanager
def watch_interrupts() -> Iterator[Callable[[], None]]:
    """Record every SIGINT until the block ends; outside the main thread, record none.

    Yields a function that raises KeyboardInterrupt if Ctrl-C was pressed, even if Dagster dropped
    the signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    received, written = socket.socketpair()

    def check() -> None:
        with suppress(BlockingIOError):
            while signals := received.recv(_BYTES):
                if signal.SIGINT in signals:
                    raise KeyboardInterrupt

    with received, written:
        received.setblocking(False)
        written.setblocking(False)
        before = signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)
        try:
            yield check
        finally:
            signal.set_wakeup_fd(before)
