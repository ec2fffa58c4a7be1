"""What `run` prints: a line for each asset, and how far the work is until it ends.

On a terminal the last line is drawn again and again. In a log every line stays: there a stage that
takes long says how far it is from time to time.
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
    """Print a line for each stage that ends, by `say`, and its progress meanwhile."""

    def __init__(
        self, say: Say, *, terminal: TextIO | None = None, is_verbose: bool = False
    ) -> None:
        self._say = say
        self._terminal = terminal
        self._is_verbose = is_verbose
        self._lock = threading.RLock()
        self._stage = ""
        self._began = 0.0
        self._told_at = 0.0
        self._detail = ""
        self._results: list[str] = []

    def line(self, text: str) -> None:
        """Print a line that stays."""
        with self._lock:
            self._erase()
            self._say(text)

    def detail(self, text: str) -> None:
        """Tell of a part of the stage: it stays with `--verbose`, else it shows the progress."""
        self._detail = text
        now = time.monotonic()
        if self._is_verbose:
            self.line(f"  {text}")
        elif self._terminal is not None:
            self._draw()
        elif now - self._told_at >= _SECONDS_BETWEEN_LINES:
            self._told_at = now
            self.line(f"  {self._stage}: {text}")

    def result(self, text: str) -> None:
        """Tell what the stage made: it is printed when the stage ends."""
        self._results.append(text)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Name a stage until the block ends; its line says what it made, also if it failed."""
        self._stage, self._detail, self._results = name, "", []
        self._began = self._told_at = time.monotonic()
        if self._is_verbose:
            self.line(f"{name} …")
        try:
            with self._drawn():
                yield
        except Exception:  # of any kind: the stage is said to have failed, and it goes on up
            self.line("; ".join([f"{name}: failed", *self._results]))
            raise
        finally:
            self._stage = ""
        seconds = time.monotonic() - self._began
        told = "; ".join(self._results) or "done"
        self.line(f"{name}: {told} ({seconds:.1f} s)")

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
