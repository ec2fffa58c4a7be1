"""`decon-assets card` and `check`: publish a report, and check it against limits."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from decon_assets.cli.command import Command, Say, add_config
from decon_assets.cli.terminal.tables import text_table
from decon_assets.freshness import REPORT_IS_STALE, is_report_current
from decon_core.config.load import load_config
from decon_core.config.open_store import open_store
from decon_core.errors import InputError, Problem
from decon_core.report.open import incomplete_notice
from decon_core.storage.store import atomic_path, write_plain_json

if TYPE_CHECKING:
    from decon_core.report.publish.limits import Case, Limits
    from decon_core.report.publish.summary import Summary

CARD_DESCRIPTION = """\
Write a report as a section for a dataset card: the benchmarks, detectors and thresholds, the leaks
per benchmark and source, what was removed, what could not be detected, and how to repeat the scan.
It contains no text of the corpus or of a benchmark.
"""

CARD_EPILOG = """\
examples:
  decon-assets card                              print it, to paste into a README.md
  decon-assets card --out published              published/card.md and published/summary.json
  decon-assets card --report contamination.duckdb --out published

docs/publishing.md lists the fields of summary.json.

Exit codes: 0 done, 1 the report is incomplete (shards were not scanned) or a run is still building
it, 2 an input is wrong.
"""

CHECK_DESCRIPTION = """\
Fail when a report exceeds a limit, so that a CI build stops when too much of a benchmark leaked.

The check also fails if the answer is not known: a required benchmark is not in the report, too few
of its items can be found by any detector, rows could not be read, the report is empty, or out of
date with the corpus, benchmarks or policy (not checked with --report). If shards were not scanned,
a limit that holds for the others is "unknown", and the exit code is 1.
"""

CHECK_EPILOG = """\
examples:
  decon-assets check --max-rate 0.01 --require mmlu,gsm8k
  decon-assets check --max-rate 0.01 --benchmark gsm8k=0 --junit junit.xml
  decon-assets check --max-rate 0.01 --by upper       the 95 % interval must be below the limit
  decon-assets check --max-document-rate 0.0001 --report contamination.duckdb
  decon-assets check --max-rate 0.01 --max-question-only-rate 0.02

Exit codes: 0 all limits hold, 1 a limit does not hold or is unknown, 2 an input is wrong.
"""


def add_card_arguments(parser: argparse.ArgumentParser) -> None:
    _add_report(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="write card.md and summary.json")


def add_check_arguments(parser: argparse.ArgumentParser) -> None:
    _add_report(parser)
    parser.add_argument(
        "--max-rate",
        type=float,
        metavar="SHARE",
        help="maximum share of leaked items of each benchmark: 0.01 is one in a hundred; "
        "question-only items do not count",
    )
    parser.add_argument(
        "--benchmark",
        action="append",
        default=[],
        metavar="NAME=SHARE",
        help="a different limit for this benchmark; may be repeated",
    )
    parser.add_argument(
        "--max-document-rate",
        type=float,
        metavar="SHARE",
        help="maximum share of documents with a leak",
    )
    parser.add_argument(
        "--max-question-only-rate",
        type=float,
        metavar="SHARE",
        help="maximum share of question-only items of each benchmark: not leaked, but a document "
        "holds the question without its answer",
    )
    parser.add_argument(
        "--require",
        type=_names,
        default=(),
        metavar="NAMES",
        help="benchmarks that must be in the report, comma-separated; * matches anything",
    )
    parser.add_argument(
        "--least-indexable",
        type=float,
        metavar="SHARE",
        help="minimum share of a benchmark's items that some detector can find "
        "(default: evals.least_indexable_share, 0.5)",
    )
    parser.add_argument(
        "--by",
        choices=("point", "upper"),
        default="point",
        help="compare limits with the share, or with the upper end of its interval",
    )
    parser.add_argument(
        "--allow-unreadable", action="store_true", help="pass even if rows could not be read"
    )
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write the cases as JUnit XML")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the cases as JSON")


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--report",
        type=Path,
        metavar="PATH",
        help="a report's database, or the folder of a `decon-assets scan` (default: the report of "
        "the configuration)",
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for part in text.split(",") if (name := part.strip()))


def card(options: argparse.Namespace, say: Say) -> int:
    """Print the card, or write it and the summary; return 1 for an incomplete report."""
    from decon_core.report.publish.card import card_from
    from decon_core.report.publish.files import CARD, SUMMARY, write_published

    summary = _summary(options)
    if not options.report and not is_report_current(load_config(options.config)):
        sys.stderr.write(f"note: {REPORT_IS_STALE}\n")
    code = _code_of(summary)
    if not options.out:
        say(card_from(summary))
        return code
    write_published(summary, options.out)
    say(f"{options.out / CARD}\n{options.out / SUMMARY}")
    return code


def _code_of(summary: Summary) -> int:
    """Return 1 for an incomplete report, with a note on stderr, else 0."""
    notice = incomplete_notice(len(summary["not_scanned"]), summary["n_shards_in_corpus"])
    if notice:
        sys.stderr.write(f"{notice}\n")
    return 1 if notice else 0


def check(options: argparse.Namespace, say: Say) -> int:
    """Print a case for each limit; return 1 if any does not hold or is unknown."""
    from decon_core.report.publish.junit import junit_of
    from decon_core.report.publish.limits import cases_of

    limits = _limits(options)
    summary = _summary(options)
    is_todays = bool(options.report) or is_report_current(load_config(options.config))
    cases = cases_of(summary, limits, is_todays=is_todays)
    if options.junit:
        _write(options.junit, junit_of(cases))
    if options.json:
        write_plain_json(options.json, _as_json(cases, limits, summary))
    say(text_table(_HEADS, [_row(case) for case in cases]))
    failed = [case for case in cases if not case.is_passed]
    for case in failed:
        for wrong in case.wrong:
            say(f"\n{case.name}: {wrong}")
    say(f"\n{len(cases) - len(failed)} of {len(cases)} passed")
    n = sum(one["n_question_only"] for one in summary["benchmarks"])
    if n and limits.max_question_only_rate is None:
        items = "1 item is" if n == 1 else f"{n:,} items are"
        say(f"{items} question-only, which no limit covers (--max-question-only-rate)")
    return 1 if failed else 0


def _summary(options: argparse.Namespace) -> Summary:
    from decon_core.compare.sides import database_of
    from decon_core.report.publish.summary import summary_of

    if not options.report:
        return summary_of(open_store(load_config(options.config)).report)
    with TemporaryDirectory(prefix="decon-publish-") as folder:
        return summary_of(database_of(options.report, Path(folder) / "r.duckdb"))


def _limits(options: argparse.Namespace) -> Limits:
    from decon_core.report.publish.limits import Limits

    least = options.least_indexable
    if least is None and not options.report:
        least = load_config(options.config).least_indexable_share
    return Limits(
        max_rate=options.max_rate,
        of_benchmark=dict(_limit_of(typed) for typed in options.benchmark),
        max_document_rate=options.max_document_rate,
        max_question_only_rate=options.max_question_only_rate,
        required=options.require,
        least_indexable=0.5 if least is None else least,
        by=options.by,
        may_be_unreadable=options.allow_unreadable,
    )


def _limit_of(typed: str) -> tuple[str, float]:
    name, _, share = typed.rpartition("=")
    try:
        return name, float(share)
    except ValueError:
        expected = "NAME=SHARE, for example gsm8k=0.01"
        raise InputError(Problem("--benchmark", repr(typed), expected)) from None


_HEADS = (
    *("", "benchmark", "items", "leaked", "share", "95 % interval", "limit"),
    *("question-only", "question-only share", "question-only limit"),
)


def _row(case: Case) -> Sequence[object]:
    from decon_core.wording import percent

    has_numbers = case.n_leaked is not None
    return (
        "passed" if case.is_passed else "unknown" if case.is_unknown else "FAILED",
        case.name,
        "" if case.n is None else f"{case.n:,}",
        "" if case.n_leaked is None else f"{case.n_leaked:,}",
        percent(case.rate) if has_numbers else "",
        f"{percent(case.low)} to {percent(case.high)}" if case.low is not None else "",
        "" if case.limit is None else percent(case.limit),
        "" if case.n_question_only is None else f"{case.n_question_only:,}",
        "" if case.n_question_only is None else percent(case.question_only_rate),
        "" if case.question_only_limit is None else percent(case.question_only_limit),
    )


def _as_json(cases: Sequence[Case], limits: Limits, summary: Summary) -> dict[str, object]:
    from dataclasses import asdict

    return {
        "is_passed": all(case.is_passed for case in cases),
        "limits": asdict(limits),
        "cases": [{**asdict(case), "is_passed": case.is_passed} for case in cases],
        "report": {
            name: summary[name]
            for name in ("made_by", "state", "scan_fingerprint", "rules", "is_complete")
        },
    }


def _write(path: Path, text: str) -> None:
    with atomic_path(path) as draft:
        draft.write_text(text, encoding="utf-8")


CARD = Command(card, (add_card_arguments, add_config), CARD_DESCRIPTION, CARD_EPILOG)
CHECK = Command(check, (add_check_arguments, add_config), CHECK_DESCRIPTION, CHECK_EPILOG)
