"""The output of `run`: a line for each asset, and the progress of the current one.

On a terminal, the last line is redrawn with the progress. In a log, a long stage prints its
progress every ten seconds.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

Say = Callable[[str], None]

_SECONDS_BETWEEN_LOOKS = 0.5  # on a terminal
_SECONDS_BETWEEN_LINES = 10.0  # in a log
_NO_TERMINAL = (80, 24)


class StageLines:
    """Print the progress of the current stage, and a line with `say` when it ends."""

    def __init__(
        self, say: Say, *, terminal: TextIO | None = None, is_verbose: bool = False
    ) -> None:
        self._say = say
        self._terminal = terminal
        self._is_verbose = is_verbose
        self._lock = threading.RLock()
        self._stage = ""
        self._began = 0.0
        self._printed_at = 0.0
        self._detail = ""
        self._results: list[str] = []

    def line(self, text: str) -> None:
        """Print a permanent line."""
        with self._lock:
            self._erase()
            self._say(text)

    def detail(self, text: str) -> None:
        """Report a finished part of the stage: a line with `--verbose`, else progress."""
        self._detail = text
        now = time.monotonic()
        if self._is_verbose:
            self.line(f"  {text}")
        elif self._terminal is not None:
            self._draw()
        elif now - self._printed_at >= _SECONDS_BETWEEN_LINES:
            self._printed_at = now
            self.line(f"  {self._stage}: {text}")

    def result(self, text: str) -> None:
        """Add a result of the stage to the line that is printed when it ends."""
        self._results.append(text)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Print a stage's progress until the block ends, then its results, also if it failed."""
        self._stage, self._detail, self._results = name, "", []
        self._began = self._printed_at = time.monotonic()
        if self._is_verbose:
            self.line(f"{name} …")
        try:
            with self._drawn():
                yield
        except Exception:  # print the failure, then raise it again
            self.line("; ".join([f"{name}: failed", *self._results]))
            raise
        finally:
            self._stage = ""
        seconds = time.monotonic() - self._began
        results = "; ".join(self._results) or "done"
        self.line(f"{name}: {results} ({seconds:.1f} s)")

    @contextmanager
    def _drawn(self) -> Iterator[None]:
        if self._terminal is None:
            yield
            return
        ended = threading.Event()

        def draw() -> None:
            self._draw()
            while not ended.wait(_SECONDS_BETWEEN_LOOKS):
                self._draw()

        painter = threading.Thread(target=draw, daemon=True)
        painter.start()
        try:
            yield
        finally:
            ended.set()
            painter.join()
            with self._lock:
                self._erase()

    def _draw(self) -> None:
        if self._terminal is None:
            return
        with self._lock:
            seconds = time.monotonic() - self._began
            text = f"{self._stage} … {seconds:.0f} s  {self._detail}"
            shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
            self._terminal.write(f"\r{shown[: _width(self._terminal) - 1]}\x1b[K")
            self._terminal.flush()

    def _erase(self) -> None:
        if self._terminal is not None:
            self._terminal.write("\r\x1b[K")
            self._terminal.flush()


def _width(terminal: TextIO) -> int:
    try:
        return os.get_terminal_size(terminal.fileno()).columns or _NO_TERMINAL[0]
    except OSError:
        return _NO_TERMINAL[0]
