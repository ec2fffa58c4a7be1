"""The progress of a long command: a moving bar on a terminal, else lines in a log."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Self, TextIO

from decon_assets.terminal.output import without_control
from decon_core.execution.engine import Engine
from decon_core.execution.local import LOCAL
from decon_core.wording import counted, size

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_SECONDS_BETWEEN_LINES = 10.0


class ShardProgress(logging.Handler):
    """Print shards done, rate and time left, and the core's log records, while it is entered."""

    def __init__(self, stream: TextIO, engine: Engine = LOCAL) -> None:
        super().__init__(logging.INFO)
        self._stream = stream
        self._engine = engine
        self._printed_at = -_SECONDS_BETWEEN_LINES
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        core = logging.getLogger("decon_core")
        self._level = core.level
        core.addHandler(self)
        core.setLevel(logging.INFO)
        return self

    def __exit__(self, *_: object) -> None:
        core = logging.getLogger("decon_core")
        core.removeHandler(self)
        core.setLevel(self._level)
        self._end()

    def emit(self, record: logging.LogRecord) -> None:
        self.step(record.getMessage())

    def step(self, line: str) -> None:
        """Print a line that stays."""
        self._end()
        self._stream.write(f"{without_control(line)}\n")
        self._stream.flush()

    def update(
        self, n_done: int, n_shards: int, n_bytes: int, n_bytes_in_all: int, seconds: float
    ) -> None:
        """Show the progress: at once on a terminal, else every ten seconds and at the end."""
        is_last = n_done == n_shards
        line = f"{n_done:,} of {counted(n_shards, 'shard')}, {size(n_bytes)}"
        if n_bytes and seconds:
            rate = n_bytes / seconds
            left = (n_bytes_in_all - n_bytes) / rate
            line += f" at {size(rate)}/s"
            line += f" in {_span(seconds)}" if is_last else f", {_span(left)} left"
        if self._engine.is_remote and self._engine.counts.n_jobs:
            line += f"; {self._engine.counts}"
        self._show(line, n_bytes, n_bytes_in_all, is_last=is_last)

    def count(self, noun: str, n_done: int, n: int, seconds: float, *, about: str = "") -> None:
        """Show the progress of things that are counted, as `update` does."""
        is_last, line = n_done == n, f"{n_done:,} of {counted(n, noun)}"
        if n_done and seconds:
            rate = n_done / seconds
            line += f" at {rate:.3g}/s"
            line += f" in {_span(seconds)}" if is_last else f", {_span((n - n_done) / rate)} left"
        self._show(line + about, n_done, n, is_last=is_last)

    def _show(self, line: str, done: float, total: float, *, is_last: bool) -> None:
        if not self._stream.isatty():
            if is_last or time.monotonic() - self._printed_at >= _SECONDS_BETWEEN_LINES:
                self._printed_at = time.monotonic()
                self.step(line)
            return
        if self._bar is None or self._task is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            self._bar = Progress(
                BarColumn(),
                TextColumn("{task.description}", markup=False),
                console=Console(file=self._stream),
                auto_refresh=False,  # without a thread: worker processes are started meanwhile
            )
            self._task = self._bar.add_task("")
            self._bar.start()
        self._bar.update(self._task, description=line, completed=done, total=total, refresh=True)

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
