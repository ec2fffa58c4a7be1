"""The output of `run`: a line for each asset, and the progress of the current one.

On a terminal, a bar moves below the lines. In a log, a long stage prints its progress every ten
seconds.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from decon_assets.terminal.output import Say

if TYPE_CHECKING:
    from rich.progress import Progress

_SECONDS_BETWEEN_LINES = 10.0  # limits the lines of a log
_SHARDS_DONE = re.compile(r"shard (\d+) of (\d+): ")  # beginning of a detail of a scan


class StageLines:
    """Print the progress of the current stage, and a line with `say` when it ends."""

    def __init__(self, say: Say, *, is_terminal: bool = False, is_verbose: bool = False) -> None:
        self._say = say
        self._is_terminal = is_terminal
        self._is_verbose = is_verbose
        self._stage = ""
        self._began = 0.0
        self._printed_at = 0.0
        self._results: list[str] = []
        self._n_done = 0
        self._bar: Progress | None = None

    def line(self, text: str) -> None:
        """Print a permanent line."""
        if self._bar:
            self._bar.stop()
        self._say(text)
        if self._bar:
            self._bar.start()

    def detail(self, text: str) -> None:
        """Report a finished part of the stage: a line with `--verbose`, else progress."""
        now = time.monotonic()
        self._n_done += 1
        if self._is_verbose:
            self.line(f"  {text}")
        if self._bar:
            self._move(self._bar, text, now - self._began)
        elif not self._is_verbose and now - self._printed_at >= _SECONDS_BETWEEN_LINES:
            self._printed_at = now
            self.line(f"  {self._stage}: {text}")

    def result(self, text: str) -> None:
        """Add a result of the stage to the line that is printed when it ends."""
        if text not in self._results:  # a stage may do its work in steps
            self._results.append(text)

    @contextmanager
    def stage(self, name: str, *, n_parts: int = 1) -> Iterator[None]:
        """Print a stage's progress until the block ends, then its results, also if it failed."""
        self._stage, self._results, self._n_done = name, [], 0
        self._began = self._printed_at = time.monotonic()
        if self._is_verbose:
            self.line(f"{name} …")
        try:
            with self._moving_bar(n_parts):
                yield
        except Exception:  # print the failure, then raise it again
            self.line("; ".join([f"{name}: failed", *self._results]))
            raise
        seconds = time.monotonic() - self._began
        results = "; ".join(self._results) or "done"
        self.line(f"{name}: {results} ({seconds:.1f} s)")

    @contextmanager
    def _moving_bar(self, n_parts: int) -> Iterator[None]:
        if not self._is_terminal:
            yield
            return
        from rich.progress import (
            BarColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.table import Column

        rest_of_line = Column(ratio=1, no_wrap=True, overflow="ellipsis")
        with Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[detail]}", markup=False, table_column=rest_of_line),
            expand=True,
            transient=True,
        ) as bar:
            bar.add_task(self._stage, total=n_parts if n_parts > 1 else None, detail="")
            self._bar = bar
            try:
                yield
            finally:
                self._bar = None

    def _move(self, bar: Progress, detail: str, seconds: float) -> None:
        """Show a part that is done; details of a scan count the shards, and have the rate."""
        (task,) = bar.task_ids
        shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in detail)
        if shards := _SHARDS_DONE.match(detail):
            n_done, n_parts = map(int, shards.groups())
            bar.update(task, completed=n_done, total=n_parts, detail=shown)
        else:
            rate = self._n_done / max(seconds, 1e-9)
            bar.update(task, completed=self._n_done, detail=f"{rate:.1f}/s  {shown}")
