"""Check a report against limits, for builds that must fail when one is exceeded.

`--max-rate` counts leaked items; no-answer items have a limit of their own.

Items that no detector can find may all have leaked, or none. A limit that all items together may
exceed, but leaked items alone do not, is undecided (`is_undecided`), unless the caller assumes that
the items of this benchmark that cannot be found are clean.

Unknown counts as failed: a report without benchmarks, a benchmark without a number of items, or an
unreadable row does not show that a corpus is clean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from fnmatch import fnmatchcase
from itertools import compress
from typing import Literal
from xml.etree import ElementTree as ET

from decon_core.config.rounding import exceeds
from decon_core.config.validation import did_you_mean
from decon_core.decisions.not_read import OPTIONS, SETTINGS, What
from decon_core.errors import InputError, Problem
from decon_core.report.blind_spots import QUESTIONS_LEFT_OUT
from decon_core.report.publish.summary import (
    Summary,
    account_in,
    keeps_no_answer,
    not_scanned_by_reason,
)
from decon_core.wording import counted, percent

By = Literal["point", "upper"]

DOCUMENTS = "all documents"
COVERAGE = "coverage"

# Noun and verb of what has a limit, and the name of its rate.
_ITEMS = ("item", "leaked", "leak rate")
_DOCUMENTS = ("document", "with a leak", "share of documents with a leak")
_NO_ANSWER = ("item", "are found without the answer", "no-answer rate")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits for a report; shares are from 0 to 1."""

    max_rate: float | None = None  # limit for the items of every benchmark
    of_benchmark: Mapping[str, float] = field(default_factory=dict)  # instead of max_rate
    max_document_rate: float | None = None
    max_no_answer_rate: float | None = None  # limit for the items of every benchmark
    required: Sequence[str] = ()  # names of benchmarks; * matches anything
    assumed_clean: Sequence[str] = ()  # names of benchmarks whose items cannot all be found
    by: By = "point"  # upper: the upper end of the 95 % interval
    may_be_unreadable: bool = False
    may_be_unread: bool = False  # text in fields that no source reads
    may_be_skipped: bool = False  # files that are no shards, and not skipped on purpose
    settings: Sequence[str] = ()  # of decon.toml that accept what was not read: `SETTINGS`

    def __post_init__(self) -> None:
        shares = {
            "--max-rate": self.max_rate,
            "--max-document-rate": self.max_document_rate,
            "--max-no-answer-rate": self.max_no_answer_rate,
            **{f"--benchmark {name}": rate for name, rate in self.of_benchmark.items()},
        }
        problems = [
            Problem(name, f"{share:g}", "a share from 0 to 1, such as 0.01 for 1 %")
            for name, share in shares.items()
            if share is not None and not 0 <= share <= 1
        ]
        rates = {self.max_rate, self.max_document_rate, self.max_no_answer_rate}
        if rates == {None} and not self.of_benchmark and not self.required:
            options = "--max-rate, --benchmark, --max-document-rate, --max-no-answer-rate"
            remedy = "For example, `decon-assets check --max-rate 0.01` fails above 1 %"
            problems.append(Problem("check", "no limit", f"{options} or --require", remedy))
        InputError.raise_for(problems)

    def requires(self, benchmark: str) -> bool:
        return _is_named(benchmark, self.required)

    def has_rate(self, benchmark: str) -> bool:
        return self.of(benchmark) is not None or self.max_no_answer_rate is not None

    def of(self, benchmark: str) -> float | None:
        """Return the limit of a benchmark; None if there is none."""
        return self.of_benchmark.get(benchmark, self.max_rate)


@dataclass(frozen=True)
class Case:
    """One check; it passes if `wrong` is empty."""

    name: str
    _: KW_ONLY
    n: int | None = None  # items, or documents
    n_leaked: int | None = None
    n_checkable: int | None = None  # items that a detector can find; all documents
    n_leaked_checkable: int | None = None  # those of them that leaked
    rate: float | None = None  # leaked share of n_checkable
    low: float | None = None
    high: float | None = None
    limit: float | None = None
    wrong: tuple[str, ...] = ()
    n_no_answer: int | None = None  # not counted in n_leaked
    no_answer_rate: float | None = None
    no_answer_limit: float | None = None
    is_unknown: bool = False  # within its limit, but part of the corpus was not scanned
    at_least: float | None = None  # share of all items, if no unknown one leaked
    at_most: float | None = None  # and if all of them did
    is_undecided: bool = False  # the limit is between these two

    @property
    def is_passed(self) -> bool:
        return not self.wrong


def cases_of(summary: Summary, limits: Limits, *, is_todays: bool = True) -> list[Case]:
    """Return a case per benchmark, one for documents if they have a limit, and one for coverage.

    `is_todays`: whether the report was made from the current corpus, benchmarks and policy.
    """
    n_shards = summary["n_shards_in_corpus"]
    cases = [_benchmark(benchmark, limits, n_shards) for benchmark in summary["benchmarks"]]
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
    return replace(
        case,
        wrong=(*case.wrong, f"unknown: {n} {verb} not scanned in full"),
        is_unknown=not case.wrong or case.is_undecided,
        is_undecided=False,
    )


def _benchmark(benchmark: Summary, limits: Limits, n_shards: int) -> Case:
    name, n_items = benchmark["benchmark"], benchmark["n_items"]
    limit, no_answer_limit = limits.of(name), limits.max_no_answer_rate
    n_leaked, n_no_answer = benchmark["n_leaked"], benchmark["n_no_answer"]
    high, no_answer_high = benchmark["high"], benchmark["no_answer_high"]
    rates = (
        _Rate(n_leaked, n_items, limit, high, _ITEMS, benchmark["n_unknown"]),
        _Rate(
            n_no_answer,
            n_items,
            no_answer_limit,
            no_answer_high,
            _NO_ANSWER,
            benchmark["n_not_checkable"],
        ),
    )
    wrong = [fault for rate in rates for fault in rate.faults(limits.by)]
    if limits.requires(name) and not limits.has_rate(name) and not n_items:
        wrong.append("no items, or their number is unknown")
    is_assumed_clean = _is_named(name, limits.assumed_clean)
    undecided = [] if is_assumed_clean else [*_undecided(benchmark, limits, rates)]
    case = Case(
        name,
        n=n_items,
        rate=benchmark["leak_rate"],
        limit=limit,
        no_answer_limit=no_answer_limit,
        wrong=(*wrong, *undecided),
        # A summary has many of the fields under the same names.
        **{own.name: benchmark[own.name] for own in fields(Case) if own.name in benchmark},
        is_undecided=bool(undecided) and not wrong,
    )
    return _with_coverage(case, benchmark["n_shards_not_scanned"], n_shards)


def _undecided(benchmark: Summary, limits: Limits, rates: Sequence[_Rate]) -> Iterator[str]:
    """Yield the limits that are exceeded if the items that cannot be found leaked."""
    name, n_items = benchmark["benchmark"], benchmark["n_items"]
    if not n_items:
        return
    of_items = f"of {counted(n_items, 'item')}"
    remedy = f"use --assume-clean {name} to pass"
    if others := benchmark["checkable_by_others"]:  # the detector that finds most comes first
        detector, n = others[0]["detector"], others[0]["n_items"]
        remedy = f"add the detector {detector}, which can find {n:,} more, or {remedy}"
    for rate in rates:
        if rate.n is None or rate.limit is None:
            continue
        ends = rate.n / n_items, (rate.n + rate.n_unknown) / n_items
        if exceeds(ends[1], rate.limit) and not exceeds(ends[0], rate.limit):
            yield (
                f"cannot tell: {rate.n_unknown:,} {of_items} were not found, and no chosen "
                f"detector can find them: {percent(ends[0])} to {percent(ends[1])} "
                f"{rate.words[1]}, the limit is {percent(rate.limit)}; {remedy}"
            )
    if not benchmark["n_checkable"] and not limits.has_rate(name) and limits.requires(name):
        yield f"cannot tell: no chosen detector can find any {of_items}; {remedy}"


@dataclass(frozen=True)
class _Rate:
    """A count of items or documents, and the limit of their share."""

    n: int | None
    whole: int | None
    limit: float | None
    high: float | None  # upper end of the interval
    words: tuple[str, str, str]
    n_unknown: int = 0  # items that cannot be found and were not

    def faults(self, by: By) -> Iterator[str]:
        """Check the share against its limit."""
        noun, verb, rate = self.words
        if self.limit is None:
            return
        if not self.whole or self.n is None:
            yield f"{rate} unknown: no {noun}s, or their number is unknown"
            return
        # Rates in summaries are rounded; the limit applies to the exact quotient.
        share = self.n / self.whole
        least = "at least " if self.n_unknown else ""
        text = f"{self.n:,} of {counted(self.whole, noun)} {verb} ({least}{percent(share)}"
        limit, high = percent(self.limit), self.high
        if exceeds(share, self.limit):
            yield f"{text}), more than {limit}"
        elif by == "upper" and high is not None and exceeds(high, self.limit):
            yield f"{text}; interval up to {percent(high)}), which may be more than {limit}"


def _documents(corpus: Summary, limits: Limits) -> Case:
    n, n_leaked, high = corpus["n_documents"], corpus["n_contaminated_documents"], corpus["high"]
    limit = limits.max_document_rate
    return Case(
        DOCUMENTS,
        n=n,
        n_leaked=n_leaked,
        n_checkable=n,
        n_leaked_checkable=n_leaked,
        rate=corpus["document_rate"],
        low=corpus["low"],
        high=high,
        limit=limit,
        wrong=tuple(_Rate(n_leaked, n, limit, high, _DOCUMENTS).faults(limits.by)),
        n_no_answer=corpus["n_no_answer_documents"],
        no_answer_rate=corpus["no_answer_rate"],
    )


def _is_named(name: str, patterns: Iterable[str]) -> bool:
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def _not_covered(summary: Summary, limits: Limits, is_todays: bool) -> Iterator[str]:
    names = [row["benchmark"] for row in summary["benchmarks"]]
    corpus = summary["corpus"]
    if not names:
        yield "the report has no benchmarks"
    matched = (*limits.required, *limits.assumed_clean)  # in these, * matches anything
    for given in dict.fromkeys((*matched, *limits.of_benchmark)):
        patterns = [given] if given in matched else []
        if given not in names and not any(_is_named(name, patterns) for name in names):
            found = f"{given} is not in the report"
            yield "; ".join(filter(None, [found, did_you_mean(given, names)]))
    if not corpus["n_shards"]:
        yield "the report has no shards"
    elif corpus["n_documents"] == 0:
        yield "no document was scanned"
    if limits.max_no_answer_rate is not None and not keeps_no_answer(summary["policy"]):
        yield f"not all no-answer items are known: {QUESTIONS_LEFT_OUT}"
    for row in summary["not_covered"]:
        if not row["is_refused"]:
            yield f"{row['benchmark']} was not searched for: {row['reason']}"
    for row in not_scanned_by_reason(summary):
        more = [f"{row['n_more']:,} more"] if row["n_more"] else []
        shards = ", ".join([*row["shards"], *more])
        were = "were" if len(row["shards"]) > 1 else "was"
        against = ", ".join(row["benchmarks"])
        remedy = f"; {row['remedy']}" if row["remedy"] else ""
        reason = row["reason"] or "reason unknown"
        yield f"{shards} {were} not scanned against {against}: {reason}{remedy}"
    if not is_todays:
        yield (
            "the corpus, benchmarks, policy or verdicts changed since the report was built: run "
            "`decon-assets run` (`decon-assets status` lists the changes)"
        )
    yield from (line for _, line in lines_of_account(summary, limits))
    if corpus["n_shards"] and corpus["n_unreadable"] is None and not limits.may_be_unreadable:
        yield "the number of unreadable rows is unknown (use --allow-unreadable to pass)"


def lines_of_account(summary: Summary, limits: Limits) -> Iterator[tuple[What, str]]:
    """Yield what was not read and no limit accepts, by kind, with the option that accepts it."""
    allowed = limits.may_be_unreadable, limits.may_be_unread, limits.may_be_skipped
    accepted = *limits.settings, *compress(OPTIONS, allowed)
    for line in account_in(summary).accepting(*accepted).lines():
        option = next((name for name, kinds in OPTIONS.items() if line.what in kinds), None)
        yield line.what, f"{line.text} (use {option} to pass)" if option else line.text


def lines_of_settings(summary: Summary, limits: Limits) -> Iterator[str]:
    """Yield lines about unread input that a setting accepts; each names the setting."""
    by = {what: name for name in limits.settings for what in SETTINGS[name]}
    for line in account_in(summary).lines():
        if line.what in by:
            yield f"{line.text} (accepted by {by[line.what]})"


SUITE = "decon-assets check"

# Characters that XML 1.0 does not allow, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_of(cases: Sequence[Case]) -> str:
    """Return the cases as an XML document."""
    n_failed = sum(not case.is_passed for case in cases)
    counts = {"tests": str(len(cases)), "failures": str(n_failed), "errors": "0", "skipped": "0"}
    root = ET.Element("testsuites", {"name": SUITE, **counts})
    suite = ET.SubElement(root, "testsuite", {"name": SUITE, **counts})
    for case in cases:
        names = {"classname": SUITE.replace(" ", "."), "name": _xml(case.name), "time": "0"}
        element = ET.SubElement(suite, "testcase", names)
        if case.wrong:
            is_known = not (case.is_unknown or case.is_undecided)
            kind = "contamination" if is_known else "incomplete"
            failure = {"message": _xml("; ".join(case.wrong)), "type": kind}
            ET.SubElement(element, "failure", failure).text = _xml("\n".join(case.wrong))
        if case.n_leaked is not None:
            ET.SubElement(element, "system-out").text = _xml(_counts(case))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _counts(case: Case) -> str:
    whole = "an unknown number" if case.n is None else f"{case.n:,}"
    leaked = f"{case.n_leaked:,} of {whole} leaked"
    if case.n_checkable != case.n and case.n_checkable is not None:
        leaked += f"; {case.n_leaked_checkable:,} of the {case.n_checkable:,} that can be found"
    rows = [(leaked, case.rate, case.limit)]
    if case.n_no_answer is not None:
        questions = f"{case.n_no_answer:,} of {whole} found without the answer"
        rows.append((questions, case.no_answer_rate, case.no_answer_limit))
    return "\n".join(
        f"{words}: {percent(rate)}; limit: {'none' if limit is None else percent(limit)}"
        for words, rate, limit in rows
    )


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
