"""`decon-assets card` and `check`: publish a report, and check it against limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from decon_assets.cli.store_state import accepting_settings
from decon_assets.freshness import REPORT_IS_STALE, is_report_current
from decon_assets.terminal.options import (
    ConfigPath,
    ReportPath,
    flag,
    names_in,
    option,
    optional,
    repeatable,
    share,
)
from decon_assets.terminal.output import say, say_rows, warn
from decon_core.compare.sides import database_of
from decon_core.config.load import load_config
from decon_core.config.open_store import open_store
from decon_core.errors import InputError, Problem
from decon_core.report.publish.limits import (
    Case,
    Limits,
    cases_of,
    junit_of,
    lines_of_account,
    lines_of_settings,
)
from decon_core.report.publish.summary import (
    CARD,
    SUMMARY,
    Summary,
    card_from,
    notice_of,
    summary_of,
    write_published,
)
from decon_core.storage.files import write_plain_json, write_text
from decon_core.wording import bounds, of_checkable, percent, verdicts_not_found


def card(
    *,
    report: ReportPath = None,
    out: Path | None = optional("write card.md and summary.json to this folder", "DIR"),
    config: ConfigPath,
) -> int:
    """Write a report as a section for a dataset card.

    The section lists the benchmarks, detectors and thresholds, the leaks per benchmark and source,
    what was removed, what could not be checked, and how to repeat the scan. It contains no text
    from the corpus or the benchmarks.

    Examples:
      decon-assets card                              print it, to paste into a README.md
      decon-assets card --out published              published/card.md and published/summary.json
      decon-assets card --report contamination.duckdb --out published

    docs/publishing.md lists the fields of summary.json.

    Exit codes: 0 done; 1 the report is incomplete (some shards were not scanned) or a run is still
    building it; 2 invalid input.
    """
    summary = _summary(report, config)
    if not report and not is_report_current(load_config(config)):
        warn(f"note: {REPORT_IS_STALE}")
    notice = notice_of(summary)
    if notice:
        warn(notice)
    if out:
        write_published(summary, out)
        say(f"{out / CARD}\n{out / SUMMARY}")
    else:
        say(card_from(summary))
    return 1 if notice else 0


def check(
    *,
    report: ReportPath = None,
    max_rate: float | None = optional(
        "maximum share of leaked items in each benchmark, such as 0.01 for 1 %; "
        "no-answer items do not count as leaked",
        "SHARE",
        parser=share,
    ),
    benchmark: list[str] = repeatable("a different limit for this benchmark", "NAME=SHARE"),
    max_document_rate: float | None = optional(
        "maximum share of documents with a leak", "SHARE", parser=share
    ),
    max_no_answer_rate: float | None = optional(
        "maximum share of no-answer items in each benchmark; these items did not leak, but a "
        "document contains their question without its answer",
        "SHARE",
        parser=share,
    ),
    require: str = option(
        "benchmarks that must be in the report, comma-separated; * matches anything",
        "NAMES",
        default="",
    ),
    assume_clean: list[str] = repeatable(
        "count as clean the items of this benchmark that no detector can find; * matches anything",
        "NAME",
    ),
    by: Literal["point", "upper"] = option(
        "point: compare the share with the limit (default); upper: compare the upper end of its "
        "interval",
        default="point",
    ),
    allow_unreadable: bool = flag("--allow-unreadable", "pass even if rows could not be read"),
    allow_skipped: bool = flag("--allow-skipped", "pass even if files or folders were skipped"),
    allow_unread: bool = flag(
        "--allow-unread",
        "pass even if there is text in fields that no source reads, or rows without text",
    ),
    junit: Path | None = optional("write the cases as JUnit XML", "FILE"),
    json: Path | None = optional("write the cases as JSON", "FILE"),
    config: ConfigPath,
) -> int:
    """Fail when a report exceeds a limit, to stop a CI build if too much has leaked.

    The check also fails if the report cannot give an answer: if a required benchmark is not in it,
    if rows or text were not read, if it is empty, or if it does not match the current corpus,
    benchmarks and policy (not checked with --report). If some shards were not scanned and no limit
    is exceeded in the others, the result is "unknown" and the exit code is 1.

    As in `run`, the setting unread = "report" accepts unread text, and unreadable = "drop" accepts
    unreadable rows: the check prints them and passes. With --report, the check does not read the
    settings, and only the --allow- options accept unread text and rows.

    Items that no chosen detector can find may or may not have leaked. If a limit is met only
    without these items, the result is "cannot tell" and the exit code is 6. Choose detectors that
    can find more of these items, or use --assume-clean to count them as clean.

    Examples:
      decon-assets check --max-rate 0.01 --require mmlu,gsm8k
      decon-assets check --max-rate 0.01 --benchmark gsm8k=0 --junit junit.xml
      decon-assets check --max-rate 0.01 --by upper       the 95 % interval must be below the limit
      decon-assets check --max-document-rate 0.0001 --report contamination.duckdb
      decon-assets check --max-rate 0.01 --max-no-answer-rate 0.02
      decon-assets check --max-rate 0.05 --assume-clean truthfulqa

    Exit codes: 0 all limits are met; 1 a limit is exceeded, or the result is unknown; 2 invalid
    input; 4 the limits are met, but some text or files were not read; 6 the limits are met for the
    items that can be found, but perhaps not for all items.
    """
    limit_of_benchmark = {}
    for typed in benchmark:
        name, _, limit = typed.rpartition("=")
        try:
            limit_of_benchmark[name] = float(limit)
        except ValueError:
            expected = "NAME=SHARE, for example gsm8k=0.01"
            raise InputError(Problem("--benchmark", repr(typed), expected)) from None
    limits = Limits(
        max_rate=max_rate,
        of_benchmark=limit_of_benchmark,
        max_document_rate=max_document_rate,
        max_no_answer_rate=max_no_answer_rate,
        required=tuple(names_in(require)),
        assumed_clean=tuple(assume_clean),
        by=by,
        may_be_unreadable=allow_unreadable,
        may_be_unread=allow_unread,
        may_be_skipped=allow_skipped,
        settings=() if report else tuple(accepting_settings(load_config(config))),
    )
    summary = _summary(report, config)
    is_todays = bool(report) or is_report_current(load_config(config))
    cases = cases_of(summary, limits, is_todays=is_todays)
    if junit:
        write_text(junit, junit_of(cases))
    if json:
        named = ("made_by", "state", "scan_fingerprint", "detectors", "is_complete")
        content = {
            "is_passed": all(case.is_passed for case in cases),
            "limits": asdict(limits),
            "cases": [{**asdict(case), "is_passed": case.is_passed} for case in cases],
            "report": {name: summary[name] for name in named},
        }
        write_plain_json(json, content)
    return _say_cases(cases, limits, summary)


def _summary(report: Path | None, config: Path) -> Summary:
    return summary_of(database_of(report) if report else open_store(load_config(config)).report)


def _say_cases(cases: Sequence[Case], limits: Limits, summary: Summary) -> int:
    """Print a case for each limit; return the exit code."""
    say_rows([_row(case) for case in cases], spare=_SPARE)
    failed = [case for case in cases if not case.is_passed]
    if failed:
        say()
    for case in failed:
        for wrong in case.wrong:
            say(f"{case.name}: {wrong}")
    said = f"\n{len(cases) - len(failed)} of {len(cases)} passed"
    say(said, tone="bad" if failed else "good")
    for line in lines_of_settings(summary, limits):
        say(line)
    if n_not_found := summary["n_verdicts_not_found"]:
        say(verdicts_not_found(n_not_found))
    n = sum(row["n_no_answer"] for row in summary["benchmarks"])
    if n and limits.max_no_answer_rate is None:
        items = "1 item was" if n == 1 else f"{n:,} items were"
        say(f"{items} found without the answer; no limit is set (--max-no-answer-rate)")
    if not failed:
        return 0
    unread = {line for what, line in lines_of_account(summary, limits) if what != "short"}
    others = [case for case in failed if not case.is_undecided]
    if any(not unread.issuperset(case.wrong) for case in others):
        return 1
    return 6 if len(others) < len(failed) else 4


# Columns that are left out if they say nothing, or have no room; the least important first.
_SPARE = (
    "no-answer limit",
    "no-answer share",
    "no answer",
    "of all items",
    "95 % interval",
    "of checkable",
)


def _row(case: Case) -> Mapping[str, object]:
    has_leaked, has_questions = case.n_leaked is not None, case.n_no_answer is not None
    rate = percent(case.rate) if has_leaked else ""
    of_all = "" if case.at_least is None else bounds(case.at_least, case.at_most)
    return {
        "": _standing(case),
        "benchmark": case.name,
        "items": "" if case.n is None else f"{case.n:,}",
        "leaked": f"{case.n_leaked:,}" if has_leaked else "",
        "of checkable": of_checkable(case.n_leaked_checkable, case.n_checkable, n_items=case.n),
        "share": rate,
        "limit": "" if case.limit is None else percent(case.limit),
        "95 % interval": "" if case.low is None else f"{percent(case.low)} to {percent(case.high)}",
        "of all items": "" if of_all == rate else of_all,
        "no answer": f"{case.n_no_answer:,}" if has_questions else "",
        "no-answer share": percent(case.no_answer_rate) if has_questions else "",
        "no-answer limit": "" if case.no_answer_limit is None else percent(case.no_answer_limit),
    }


def _standing(case: Case) -> str:
    if case.is_passed:
        return "passed"
    if case.is_undecided:
        return "cannot tell"
    return "unknown" if case.is_unknown else "FAILED"
