"""Detect Ctrl-C and SIGTERM during Dagster runs: Dagster ignores them between the steps of a run.

While Dagster executes a run, it replaces the handlers of both. Its handler raises inside a step,
and drops a signal that arrives before the first step or after the last one; what it raises may be
turned into another error by a library, or ignored, as in a callback. The interpreter writes to the
wakeup descriptor with any handler installed, so it also shows signals that were lost.
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_BYTES = 64
_STOPPING = {signal.SIGINT, signal.SIGTERM}

_watching: list[Callable[[], bool]] = []  # the outermost block's test for an arrived signal


@contextmanager
def watch_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt when the block ends, also with an error, if it was to be stopped.

    Blocks within another one share its record, and do not begin after a signal. Outside the main
    thread nothing is recorded.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
    elif _watching:
        stop_if_asked()
        with _stopped_at_end(_watching[0]):
            yield
    else:
        with _recorded() as is_to_stop, _stopped_at_end(is_to_stop):
            yield


def stop_if_asked() -> None:
    """Raise KeyboardInterrupt if the watched block was to be stopped; does nothing in a thread."""
    if _watching and threading.current_thread() is threading.main_thread() and _watching[0]():
        raise KeyboardInterrupt


@contextmanager
def _stopped_at_end(is_to_stop: Callable[[], bool]) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if is_to_stop():
            raise KeyboardInterrupt from error
        raise
    if is_to_stop():
        raise KeyboardInterrupt


@contextmanager
def _recorded() -> Iterator[Callable[[], bool]]:
    """Record signals until the block ends; yields a function that tells whether one arrived."""
    received, written = socket.socketpair()
    arrived: set[int] = set()
    wanted = {number for number in _STOPPING if signal.getsignal(number) is not signal.SIG_IGN}

    def is_to_stop() -> bool:
        with suppress(BlockingIOError):
            while signals := received.recv(_BYTES):
                arrived.update(signals)
        return not arrived.isdisjoint(wanted)

    with received, written:
        received.setblocking(False)
        written.setblocking(False)
        before = signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)
        _watching.append(is_to_stop)
        try:
            with _handled():
                yield is_to_stop
        finally:
            _watching.clear()
            signal.set_wakeup_fd(before)


@contextmanager
def _handled() -> Iterator[None]:
    """Let SIGTERM interrupt, also before and after Dagster does so; set both handlers back.

    Dagster gives SIGTERM the handler of SIGINT, which a shell's `&` may have ignored; a signal that
    is ignored by the system is not recorded.
    """
    handlers = {number: signal.getsignal(number) for number in _STOPPING}
    if handlers[signal.SIGTERM] is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    if handlers[signal.SIGINT] is signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
