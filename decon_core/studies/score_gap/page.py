"""Format score gaps as terminal tables, Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from decon_core.storage.files import atomic_path, write_plain_json
from decon_core.studies.results.items import GROUPS
from decon_core.studies.score_gap.account import Gap, Group, JoinCount, ScoreGaps
from decon_core.wording import render

WARNING = (
    "A gap is a correlation. Items that leaked are not a random sample: they may be easier, older "
    "or more popular than the others, and a model may do better on them without having seen them. "
    "Models that cannot have seen a text show how much of a gap is that."
)

_NUMBERS = ("gap", "low", "high", "p", "question_only_gap", "decontaminated", "moved")
_DECIMALS = 6
_MOST_LISTED = 100

_NAMES = ("model", "benchmark", "split", "subset", "setting", "filter", "metric")
HEADS = (
    *_NAMES,
    *("items", "score", "clean", "leaked", "gap", "95 % interval", "p"),
    *("question-only", "without these", "moved"),
)
GROUP_HEADS = (
    *_NAMES,
    *("clean", "leaked", "of them with their answer", "question-only"),
    *("candidates", "not indexable"),
    *("not fully scanned", "not joined", "remark"),
)
JOIN_HEADS = ("file", "model", "task", "benchmark", "split", "rows", "joined by", "not", "twice")


def line(gap: Gap) -> tuple[str, ...]:
    """Format a gap as a row under HEADS."""
    return (
        *_names(gap),
        f"{gap.all.n:,}",
        _number(gap.all.score),
        _group(gap.clean),
        _group(gap.leaked),
        _signed(gap.gap),
        f"{_signed(gap.low)} to {_signed(gap.high)}" if gap.low is not None else "–",
        _number(gap.p) if gap.p is None or gap.p >= 0.001 else "< 0.001",
        _group(gap.question_only),
        _number(gap.decontaminated),
        _signed(gap.moved),
    )


def group_line(gap: Gap) -> tuple[str, ...]:
    """Format a gap as a row under GROUP_HEADS."""
    groups = [_group(getattr(gap, name)) for name in GROUPS if name != "all"]
    return (*_names(gap), *groups, gap.remark)


def join_line(count: JoinCount) -> tuple[str, ...]:
    """Format a file as a row under JOIN_HEADS."""
    ways = ", ".join(f"{way} {n:,}" for way, n in count.ways.items())
    return (
        Path(count.path).name,
        count.model,
        count.task,
        count.benchmark or "not in the report",
        count.split or "",
        f"{count.n_rows:,}",
        ways or "–",
        f"{count.n_not_joined:,}",
        f"{count.n_twice:,}",
    )


def _names(gap: Gap) -> tuple[str, ...]:
    name = gap.name
    return (
        *(name.model, name.benchmark, name.split, gap.subset or ""),
        *("" if name.setting == name.benchmark else name.setting, name.filter, name.metric),
    )


def _group(group: Group) -> str:
    return f"{_number(group.score)} ({group.n:,})" if group.n else "– (0)"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _signed(value: float | None) -> str:
    # Adding 0 turns -0.0 into 0.0, which would be shown with the wrong sign.
    return "–" if value is None else f"{round(value, 3) + 0:+.3f}"


def write(account: ScoreGaps, folder: Path) -> None:
    """Write gap.json, gap.csv and gap.md."""
    content = {
        "report": account.report,
        "gaps": [_row(gap) for gap in account.gaps],
        "joins": [asdict(count) for count in account.joins],
        "problems": [str(problem) for problem in account.problems],
        "earlier_runs": account.earlier,
        "other_files": account.others,
        "warning": WARNING,
    }
    write_plain_json(folder / "gap.json", content)
    for name, text in (("gap.csv", _as_csv(account.gaps)), ("gap.md", as_markdown(account))):
        with atomic_path(folder / name) as draft:
            draft.write_text(text, encoding="utf-8")


def _row(gap: Gap) -> dict[str, object]:
    """Return a gap as a flat row for JSON and CSV."""
    row: dict[str, object] = {**asdict(gap.name), "subset": gap.subset}
    for name in GROUPS:
        group: Group = getattr(gap, name)
        row |= {f"n_{name}": group.n, f"score_{name}": _rounded(group.score)}
    row |= {name: _rounded(getattr(gap, name)) for name in _NUMBERS}
    return {**row, "remark": gap.remark}


def _rounded(value: float | None) -> float | None:
    """Round: the last digits of a sum depend on the processor."""
    return None if value is None else round(value, _DECIMALS) + 0.0


def _as_csv(gaps: Sequence[Gap]) -> str:
    text = io.StringIO()
    rows = [_row(gap) for gap in gaps]
    writer = csv.DictWriter(text, rows[0] if rows else HEADS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_markdown(account: ScoreGaps) -> str:
    """Return all tables and everything that was left out as one Markdown page."""
    return render(
        "studies/score_gap/page.md.j2",
        warning=WARNING,
        tables={
            "gaps": (HEADS, [line(gap) for gap in account.gaps]),
            "groups": (GROUP_HEADS, [group_line(gap) for gap in account.gaps]),
            "joins": (JOIN_HEADS, [join_line(count) for count in account.joins]),
        },
        left_out={
            "Not read or not joined": [str(one) for one in account.problems],
            "Earlier runs, not counted": account.earlier,
            "Files without results": account.others,
        },
        most=_MOST_LISTED,
    )
