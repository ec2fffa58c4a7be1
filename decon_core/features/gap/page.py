"""Format score gaps as terminal tables, Markdown, CSV and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from decon_core.features.gap.account import ScoreGaps
from decon_core.features.gap.gaps import Average, Estimate, Gap, Group, Name
from decon_core.features.results.items import GROUPS
from decon_core.features.results.join import Joined
from decon_core.report.categories.rates import CATEGORY, MICRO, Rate, rate_lines, rate_row
from decon_core.report.categories.rates import HEADS as RATE_HEADS
from decon_core.report.html.charts import Chart
from decon_core.report.html.figures import Named, intervals, pairs
from decon_core.report.html.still import svg
from decon_core.storage.files import write_plain_json, write_text
from decon_core.text_tables import NOTHING, as_csv, interval, number, p_value, rounded, signed
from decon_core.wording import render

WARNING = (
    "A gap is a correlation. Items that leaked are not a random sample: they may be easier, older "
    "or more popular than the others, and a model may do better on them without having seen them. "
    "Models that cannot have seen the leaked text show how much of a gap has such causes."
)

_NUMBERS = ("gap", "low", "high", "p", "no_answer_gap", "decontaminated", "moved")
_AVERAGE_COUNTS = ("n_categories", "n_items", "n_without_category", "n_in_macro_gap")
_MOST_LISTED = 100

_NAMES = ("model", "benchmark", "split", "by", "subset", "setting", "filter", "metric")
HEADS = (
    *_NAMES, "items", "score", "clean", "leaked", "gap", "95 % interval", "p",
    "no answer", "without these", "moved",
)  # fmt: skip
GROUP_HEADS = (
    *_NAMES, "clean", "leaked", "leaked with the answer", "no answer", "review",
    "cannot be checked", "not fully scanned", "not joined", "remark",
)  # fmt: skip
AVERAGE_HEADS = (
    *(name for name in _NAMES if name != "subset"),
    "categories", "items", "without category", "micro score", "macro score", "95 % interval",
    "micro gap", "95 % interval", "macro gap", "95 % interval", "remark",
)  # fmt: skip
JOIN_HEADS = (
    "file", "model", "task", "benchmark", "split", "rows", "joined by", "not joined", "repeated",
)  # fmt: skip


def tables(
    account: ScoreGaps, gaps: Sequence[Gap]
) -> dict[str, tuple[Sequence[str], Sequence[Sequence[str]]]]:
    """Return heads and rows of these gaps, of averages, leak rates, and files."""
    return {
        "gaps": (HEADS, [line(gap) for gap in gaps]),
        "groups": (GROUP_HEADS, [group_line(gap) for gap in gaps]),
        "averages": (AVERAGE_HEADS, [average_line(average) for average in account.averages]),
        "rates": (RATE_HEADS, [*rate_lines(account.rates)]),
        "joins": (JOIN_HEADS, [join_line(joined) for joined in account.joins]),
    }


def line(gap: Gap) -> tuple[str, ...]:
    """Format a gap as a row under HEADS."""
    return (
        *_names(gap),
        f"{gap.all.n:,}",
        number(gap.all.score),
        _group(gap.clean),
        _group(gap.leaked),
        _signed(gap.gap),
        _interval(gap),
        p_value(gap.p, nothing=NOTHING),
        _group(gap.no_answer),
        _without_leaks(gap),
        _signed(gap.moved),
    )


def group_line(gap: Gap) -> tuple[str, ...]:
    """Format a gap as a row under GROUP_HEADS."""
    groups = [_group(getattr(gap, name)) for name in GROUPS if name != "all"]
    return (*_names(gap), *groups, gap.remark)


def average_line(row: Average) -> tuple[str, ...]:
    """Format averages as a row under AVERAGE_HEADS."""
    name, score = row.name, row.macro_score
    n_in_gap = "" if row.n_in_macro_gap == row.n_categories else f" (of {row.n_in_macro_gap})"
    return (
        name.model,
        name.benchmark,
        name.split,
        row.by,
        *_setting_names(name),
        f"{row.n_categories:,}",
        f"{row.n_items:,}",
        f"{row.n_without_category:,}" if row.n_without_category else "",
        number(row.micro_score.value),
        number(score.value),
        "–" if score.low is None else f"{number(score.low)} to {number(score.high)}",
        _signed(row.micro_gap.value),
        _interval(row.micro_gap),
        f"{_signed(row.macro_gap.value)}{n_in_gap}",
        _interval(row.macro_gap),
        row.remark,
    )


def join_line(joined: Joined) -> tuple[str, ...]:
    """Format a file as a row under JOIN_HEADS."""
    return (
        joined.results.path.name,
        joined.results.model_at_step,
        joined.results.task,
        joined.task.benchmark if joined.task else "not in the report",
        joined.split or "",
        f"{len(joined.results.samples):,}",
        ", ".join(f"{way} {n:,}" for way, n in sorted(joined.ways.items())) or NOTHING,
        f"{joined.n_not_joined:,}",
        f"{joined.n_repeated:,}",
    )


def _names(gap: Gap) -> tuple[str, ...]:
    name = gap.name
    place = name.model, name.benchmark, name.split, gap.by, gap.subset or ""
    return *place, *_setting_names(name)


def _setting_names(name: Name) -> tuple[str, str, str]:
    return "" if name.setting == name.benchmark else name.setting, name.filter, name.metric


def _group(group: Group) -> str:
    return f"{number(group.score)} ({group.n:,})" if group.n else "– (0)"


def _without_leaks(gap: Gap) -> str:
    """Format the decontaminated score, with the number of its items that may have leaked."""
    n_unknown = gap.not_checkable.n + gap.not_fully_scanned.n
    return number(gap.decontaminated) + (f" ({n_unknown:,} unknown)" if n_unknown else "")


def _signed(value: float | None) -> str:
    return signed(value, nothing=NOTHING)


def _interval(estimate: Estimate | Gap) -> str:
    return interval(estimate.low, estimate.high, nothing=NOTHING)


def write(account: ScoreGaps, folder: Path) -> None:
    """Write gap.json, gap.csv, averages.csv, rates.csv, gap.md, and the figures."""
    gaps = [_row(gap) for gap in account.gaps]
    averages = [_average_row(average) for average in account.averages]
    rates = [rate_row(rate) for rate in account.rates]
    content = {
        "report": account.report,
        "gaps": gaps,
        "averages": averages,
        "rates": rates,
        "notes": account.notes,
        "joins": [_join_row(joined) for joined in account.joins],
        "problems": [str(problem) for problem in account.problems],
        "earlier_runs": account.earlier,
        "other_files": account.others,
        "warning": WARNING,
    }
    write_plain_json(folder / "gap.json", content)
    texts = {
        "gap.csv": as_csv(gaps, HEADS),
        "averages.csv": as_csv(averages, AVERAGE_HEADS),
        "rates.csv": as_csv(rates, RATE_HEADS),
        "gap.md": as_markdown(account),
    }
    texts |= {f"{name}.svg": svg(chart) for name, chart in figures(account).items()}
    for name, text in texts.items():
        write_text(folder / name, text)


def figures(account: ScoreGaps) -> dict[str, Chart]:
    """Return the figures by the names of their files; those without anything to draw are absent."""
    whole = [gap for gap in account.gaps if gap.subset is None]
    parts = [gap for gap in account.gaps if gap.subset is not None]
    charts = {
        "gap": _gaps("Scores on clean and on leaked items", whole),
        "gap_by_category": _gaps("Scores on clean and on leaked items, by category", parts),
        "rates": _rates(account.rates),
    }
    return {name: chart for name, chart in charts.items() if chart}


def _gaps(title: str, gaps: Sequence[Gap]) -> Chart | None:
    """Draw the scores on clean and on leaked items; None if no gap has both."""
    rows = {}
    for gap in gaps:
        if gap.clean.score is not None and gap.leaked.score is not None:
            place = gap.name.model, gap.name.benchmark, gap.name.split
            name = ", ".join(filter(None, (*place, *_setting_names(gap.name))))
            name += "" if gap.subset is None else f": {gap.by} {gap.subset}"
            rows[name] = gap.clean.score, gap.leaked.score
    return pairs(title, rows, ("clean", "leaked"), "score") if rows else None


def _rates(rates: Sequence[Rate]) -> Chart | None:
    """Draw the rate of each category and of all of them, with intervals; None without a rate."""
    rows = [
        Named(
            ", ".join(filter(None, (rate.benchmark, rate.split)))
            + f": {rate.by} {rate.category or '(all)'}",
            100 * rate.leak_rate,
            None if rate.low is None else 100 * rate.low,
            None if rate.high is None else 100 * rate.high,
        )
        for rate in rates
        if rate.leak_rate is not None and rate.kind in (CATEGORY, MICRO)
    ]
    axis = "leaked items, in % of those that can be checked"
    return intervals("Leak rates by category", rows, axis) if rows else None


def _row(gap: Gap) -> dict[str, object]:
    """Return a gap as a flat row for JSON and CSV."""
    row: dict[str, object] = {**asdict(gap.name), "by": gap.by, "subset": gap.subset}
    for name in GROUPS:
        group: Group = getattr(gap, name)
        row |= {f"n_{name}": group.n, f"score_{name}": rounded(group.score)}
    row |= {name: rounded(getattr(gap, name)) for name in _NUMBERS}
    # Six digits, not six decimals: no p is 0.
    row["p"] = None if gap.p is None else float(f"{gap.p:.6g}")
    return {**row, "remark": gap.remark}


def _join_row(joined: Joined) -> dict[str, object]:
    """Return how the rows of a file were joined, for JSON."""
    return {
        "path": str(joined.results.path),
        "format": joined.results.format,
        "model": joined.results.model_at_step,
        "task": joined.results.task,
        "benchmark": joined.task.benchmark if joined.task else None,
        "split": joined.split,
        "n_rows": len(joined.results.samples),
        "ways": dict(sorted(joined.ways.items())),
        "n_not_joined": joined.n_not_joined,
        "n_twice": joined.n_repeated,
    }


def _average_row(average: Average) -> dict[str, object]:
    """Return averages as a flat row for JSON and CSV."""
    row: dict[str, object] = {**asdict(average.name), "by": average.by}
    row |= {name: getattr(average, name) for name in _AVERAGE_COUNTS}
    for name in ("micro_score", "macro_score", "micro_gap", "macro_gap"):
        estimate: Estimate = getattr(average, name)
        ends = {"": estimate.value, "_low": estimate.low, "_high": estimate.high}
        row |= {f"{name}{end}": rounded(value) for end, value in ends.items()}
    return {**row, "remark": average.remark}


def as_markdown(account: ScoreGaps) -> str:
    """Return all tables and everything that was left out as one Markdown page."""
    return render(
        "features/gap/page.md.j2",
        warning=WARNING,
        figures=figures(account),
        notes=account.notes,
        tables=tables(account, account.gaps),
        left_out={
            "Not read or not joined": [str(problem) for problem in account.problems],
            "Earlier runs, not counted": account.earlier,
            "Files without results": account.others,
        },
        most=_MOST_LISTED,
    )
