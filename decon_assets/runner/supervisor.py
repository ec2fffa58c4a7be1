"""Run a program in its own session: copy its output, and stop all of its processes.

Dagster starts servers, and those start runs. A terminal sends Ctrl-C to all of them at once, and
each prints its own errors. In their own session, they get signals only from this process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SECONDS_BETWEEN_LOOKS = 0.1
# Dagster's own limit for each of its servers, after which it kills them.
_SECONDS_TO_END = 60.0

# A warning by Dagster's daemon for every new home: a run that failed before its first start is not
# retried.
_EXPECTED = b"No cursor for event type"


def run_supervised(command: Sequence[str]) -> int:
    """Run a command until it ends and return its exit code.

    SIGINT, SIGTERM and SIGHUP interrupt all of its processes, and later output is dropped; when all
    have ended, KeyboardInterrupt is raised. A second signal kills them.
    """
    with _note_signals() as signals:
        # Inheritable descriptors stay open, so the daemon's lock is held until Dagster ends.
        with subprocess.Popen(  # noqa: S603 - the command comes from this package
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            close_fds=False,
        ) as process:
            _attend(process, signals)
        if signals:
            raise KeyboardInterrupt
        return process.returncode


@contextmanager
def _note_signals() -> Iterator[list[int]]:
    """Collect signals that ask this process to stop, instead of stopping at once."""
    received: list[int] = []
    before = {number: signal.getsignal(number) for number in _STOPPING}
    for number, handler in before.items():
        # `nohup` and a shell's `&` ignore some; with SIG_IGN, the command would inherit that.
        take = (lambda *_: None) if handler is signal.SIG_IGN else (lambda n, _: received.append(n))
        signal.signal(number, take)
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _attend(process: subprocess.Popen[bytes], signals: list[int]) -> None:
    """Forward signals until the last process of the session has ended.

    All processes write to one pipe, which is at its end when all have ended.
    """
    copying = threading.Thread(target=_copy, args=(process.stdout, signals), daemon=True)
    copying.start()
    n_passed_on, is_ended = 0, False
    kill_at = float("inf")
    while copying.is_alive():
        if len(signals) > n_passed_on:
            _signal_all(process, signal.SIGKILL if n_passed_on else signal.SIGINT)
            n_passed_on = len(signals)
            kill_at = min(kill_at, time.monotonic() + _SECONDS_TO_END)
        if not is_ended and process.poll() is not None:
            is_ended = True
            _signal_all(process, signal.SIGTERM)
            kill_at = min(kill_at, time.monotonic() + _SECONDS_TO_END)
        if time.monotonic() > kill_at:
            _signal_all(process, signal.SIGKILL)
        copying.join(_SECONDS_BETWEEN_LOOKS)
    process.wait()
    # Kill what closed its output. Bounded: in a container whose first process never reaps, ended
    # processes stay in the group.
    for _ in range(20):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        time.sleep(_SECONDS_BETWEEN_LOOKS / 2)


def _copy(source: IO[bytes], signals: list[int]) -> None:
    for line in source:
        if not signals and _EXPECTED not in line:
            with suppress(OSError):  # the terminal is gone, and SIGHUP will follow
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()


def _signal_all(process: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
