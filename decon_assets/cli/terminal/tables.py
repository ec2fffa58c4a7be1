"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decon_core.quality.truth import BenchmarkScore, PhenomenonScore

_WIDTH = 60  # of one column


_BENCHMARK_LEGEND = """\
leaked: items with a leak; planted: leaks put into the corpus on purpose that should be found;
found: planted leaks that were found; false alarms: leaks that were not planted."""
_PHENOMENON_LEGEND = """\
n: places in the corpus; flagged: reported as a leak; expected: should be reported; wrong: not as
expected."""


def truth_tables(benchmarks: Sequence[BenchmarkScore], phenomena: Sequence[PhenomenonScore]) -> str:
    """Format planted and found leaks, by benchmark and by phenomenon."""
    by_benchmark = text_table(
        ("benchmark", "items", "leaked", "planted", "found", "false alarms"),
        [
            (s.benchmark, s.n_items, s.n_leaked, s.n_planted, s.n_found, s.n_false_alarms)
            for s in benchmarks
        ],
    )
    by_phenomenon = text_table(
        ("", "phenomenon", "n", "flagged", "expected", "wrong"),
        [
            (s.kind.replace("_", " "), s.phenomenon, s.n, s.n_flagged, s.n_expected, s.n_wrong)
            for s in phenomena
        ],
    )
    return f"\n{by_benchmark}\n{_BENCHMARK_LEGEND}\n\n{by_phenomenon}\n{_PHENOMENON_LEGEND}\n"


def text_table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Format a table: texts left-aligned, numbers right-aligned; "(nothing)" without rows."""
    if not rows:
        return "(nothing)"
    cells = [[_plain(value) for value in row] for row in (heads, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    aligns = [str.rjust if isinstance(value, int | float) else str.ljust for value in rows[0]]
    lines = [
        "  ".join(
            align(text, width) for text, width, align in zip(row, widths, aligns, strict=True)
        ).rstrip()
        for row in cells
    ]
    lines.insert(1, "  ".join("─" * width for width in widths))
    return "\n".join(lines)


def _plain(value: object) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
    text = " ".join(text.split())
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
