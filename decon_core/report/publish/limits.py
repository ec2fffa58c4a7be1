"""Check a report against limits, for builds that must fail when one is exceeded.

`--max-rate` counts leaked items; question-only items have a limit of their own.

Unknown counts as failed: a report without benchmarks, a benchmark without a number of items, or an
unreadable row does not show that a corpus is clean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Literal

from decon_core.config.policy import QUESTIONS_LEFT_OUT
from decon_core.config.rounding import exceeds, reaches
from decon_core.errors import InputError, Problem
from decon_core.report.publish.summary import Summary, keeps_question_only
from decon_core.wording import counted, percent, size

By = Literal["point", "upper"]

DOCUMENTS = "all documents"
COVERAGE = "coverage"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits for a report; shares are from 0 to 1."""

    max_rate: float | None = None  # of the items of every benchmark
    of_benchmark: Mapping[str, float] = field(default_factory=dict)  # instead of max_rate
    max_document_rate: float | None = None
    max_question_only_rate: float | None = None  # of the items of every benchmark
    required: Sequence[str] = ()  # names of benchmarks; * matches anything
    least_indexable: float = 0.5  # share of a benchmark's items
    by: By = "point"  # upper: the upper end of the 95 % interval
    may_be_unreadable: bool = False
    may_be_unread: bool = False  # text in fields that no source reads

    def __post_init__(self) -> None:
        shares = {
            "--max-rate": self.max_rate,
            "--max-document-rate": self.max_document_rate,
            "--max-question-only-rate": self.max_question_only_rate,
            "--least-indexable": self.least_indexable,
            **{f"--benchmark {name}": rate for name, rate in self.of_benchmark.items()},
        }
        problems = [
            Problem(name, f"{share:g}", "a share from 0 to 1: 0.01 is one in a hundred")
            for name, share in shares.items()
            if share is not None and not 0 <= share <= 1
        ]
        rates = {self.max_rate, self.max_document_rate, self.max_question_only_rate}
        if rates == {None} and not self.of_benchmark and not self.required:
            options = "--max-rate, --benchmark, --max-document-rate, --max-question-only-rate"
            problems.append(Problem("check", "no limit", f"{options} or --require"))
        if problems:
            raise InputError(problems)

    def of(self, benchmark: str) -> float | None:
        """Return the limit of a benchmark; None if there is none."""
        return self.of_benchmark.get(benchmark, self.max_rate)


@dataclass(frozen=True)
class Case:
    """One check; it passes if `wrong` is empty."""

    name: str
    n: int | None = None  # items, or documents
    n_leaked: int | None = None
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None
    wrong: tuple[str, ...] = ()
    n_question_only: int | None = None  # not counted in n_leaked
    question_only_rate: float | None = None
    question_only_limit: float | None = None
    is_unknown: bool = False  # within its limit, but part of the corpus was not scanned

    @property
    def is_passed(self) -> bool:
        return not self.wrong


def cases_of(summary: Summary, limits: Limits, *, is_todays: bool = True) -> list[Case]:
    """Return a case per benchmark, one for documents if they have a limit, and one for coverage.

    `is_todays`: whether the report was made from the current corpus, benchmarks and policy.
    """
    n_shards = summary["n_shards_in_corpus"]
    cases = [_benchmark(one, limits, n_shards) for one in summary["benchmarks"]]
    if limits.max_document_rate is not None:
        documents = _documents(summary["corpus"], limits)
        cases.append(_with_coverage(documents, len(summary["not_scanned"]), n_shards))
    return [*cases, Case(COVERAGE, wrong=tuple(_not_covered(summary, limits, is_todays)))]


def _with_coverage(case: Case, n_not_scanned: int, n_shards: int) -> Case:
    """Mark a case as failed if shards were not scanned, and as unknown if it passed otherwise."""
    if not n_not_scanned:
        return case
    verb = "was" if n_not_scanned == 1 else "were"
    n = f"{n_not_scanned:,} of {counted(n_shards, 'shard')}"
    reason = f"unknown: {n} {verb} not scanned in full"
    return replace(case, wrong=(*case.wrong, reason), is_unknown=not case.wrong)


def _benchmark(one: Summary, limits: Limits, n_shards: int) -> Case:
    limit, question_only_limit = limits.of(one["benchmark"]), limits.max_question_only_rate
    n_items, n_questions = one["n_items"], one["n_question_only"]
    high = one["question_only_high"]
    wrong = [
        *_over(one["n_leaked"], n_items, limit, one["high"], limits.by),
        *_over(n_questions, n_items, question_only_limit, high, limits.by, _QUESTION_ONLY),
    ]
    has_limit = limit is not None or question_only_limit is not None
    if has_limit or any(_is_named(one["benchmark"], wanted) for wanted in limits.required):
        wrong += _too_few_detectable(one, limits)
    case = Case(
        one["benchmark"],
        n_items,
        one["n_leaked"],
        one["leak_rate"],
        one["low"],
        one["high"],
        limit,
        tuple(wrong),
        n_questions,
        one["question_only_rate"],
        question_only_limit,
    )
    return _with_coverage(case, one["n_shards_not_scanned"], n_shards)


def _documents(corpus: Summary, limits: Limits) -> Case:
    n, n_leaked, high = (corpus[key] for key in ("n_documents", "n_contaminated_documents", "high"))
    limit = limits.max_document_rate
    return Case(
        DOCUMENTS,
        n,
        n_leaked,
        corpus["document_rate"],
        corpus["low"],
        high,
        limit,
        tuple(_over(n_leaked, n, limit, high, limits.by, _DOCUMENTS)),
        corpus["n_question_only_documents"],
        corpus["question_only_rate"],
    )


# Noun and verb of what has a limit, and the name of its rate.
_ITEMS = ("item", "leaked", "leak rate")
_DOCUMENTS = ("document", "leaked", "leak rate")
_QUESTION_ONLY = ("item", "are question-only", "question-only rate")


def _over(
    n: int | None,
    whole: int | None,
    limit: float | None,
    high: float | None,
    by: By,
    words: tuple[str, str, str] = _ITEMS,
) -> Iterator[str]:
    """Check a share against its limit; `high` is the upper end of the share's interval."""
    noun, verb, rate = words
    if limit is None:
        return
    if not whole or n is None:
        yield f"{rate} unknown: no {noun}s, or their number is unknown"
        return
    # Rates in summaries are rounded; the limit applies to the exact quotient.
    share = f"{n:,} of {counted(whole, noun)} {verb} ({percent(n / whole)}"
    if by == "point" and exceeds(n / whole, limit):
        yield f"{share}), more than {percent(limit)}"
    if by == "upper" and (high is None or exceeds(high, limit)):
        yield f"{share}, at most {percent(high)}), which may be more than {percent(limit)}"


def _too_few_detectable(one: Summary, limits: Limits) -> Iterator[str]:
    n_items, n_not_indexable = one["n_items"], one["n_not_indexable"]
    if not n_items:
        if limits.of(one["benchmark"]) is None and limits.max_question_only_rate is None:
            yield "no items, or their number is unknown"
        return
    n = n_items - n_not_indexable
    share, least = n / n_items, limits.least_indexable
    if not reaches(share, least):
        found = f"{n:,} of {counted(n_items, 'item')} ({percent(share)})"
        yield f"only {found} can be found by any detector, less than {percent(least)}"


def _is_named(name: str, wanted: str) -> bool:
    return name == wanted or fnmatchcase(name, wanted)


def _not_covered(summary: Summary, limits: Limits, is_todays: bool) -> Iterator[str]:
    names = [one["benchmark"] for one in summary["benchmarks"]]
    corpus = summary["corpus"]
    if not names:
        yield "no benchmark is in the report"
    for wanted in dict.fromkeys((*limits.required, *limits.of_benchmark)):
        is_pattern = wanted in limits.required
        if not any(name == wanted or (is_pattern and _is_named(name, wanted)) for name in names):
            yield f"{wanted} is not in the report"
    if not corpus["n_shards"]:
        yield "no shard is in the report"
    elif corpus["n_documents"] == 0:
        yield "no document was scanned"
    if limits.max_question_only_rate is not None and not keeps_question_only(summary["policy"]):
        yield f"not all question-only items are known: {QUESTIONS_LEFT_OUT}"
    for one in summary["not_scanned"]:
        against = ", ".join(one["benchmarks"])
        remedy = f"; {one['remedy']}" if one["remedy"] else ""
        reason = one["reason"] or "reason unknown"
        yield f"{one['shard']} was not scanned against {against}: {reason}{remedy}"
    if not is_todays:
        yield "corpus, benchmarks, policy or verdicts changed since the report was built"
    if not limits.may_be_unreadable:
        yield from _unreadable(summary)
    if not limits.may_be_unread:
        yield from unread_lines(summary)


def unread_lines(summary: Summary) -> Iterator[str]:
    """Yield a line for each path of text that was not read."""
    for one in summary["unread_text"]:
        place = f"`{one['path']}` of source `{one['source']}`"
        yield f"{size(one['n_bytes'])} of text were not read: {place} (pass with --allow-unread)"


def _unreadable(summary: Summary) -> Iterator[str]:
    # Lines of an imported report and unreadable whole shards are listed, but not counted by shard.
    n_listed = sum(one["n_rows"] for one in summary["unreadable"])
    n_counted = summary["corpus"]["n_unreadable"]
    if n := max(n_listed, n_counted or 0):
        yield f"{counted(n, 'row')} could not be read (pass with --allow-unreadable)"
    elif n_counted is None and summary["corpus"]["n_shards"]:
        yield "number of unreadable rows unknown (pass with --allow-unreadable)"
