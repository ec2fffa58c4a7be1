"""What may be in a report at most, and whether it is: for builds that must fail when it is not.

`--max-rate` counts items that leaked; items of which only the question was found have a limit of
their own.

What cannot be told is a failure. A report without benchmarks, a benchmark that nobody counted, a
row that nobody could read: none of them says that a corpus is clean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Literal

from decon_core.config.policy import QUESTIONS_LEFT_OUT, exceeds, reaches
from decon_core.errors import InputError, Problem
from decon_core.report.publish.card import percent
from decon_core.report.publish.summary import Summary, keeps_question_only
from decon_core.wording import counted

By = Literal["point", "upper"]

DOCUMENTS = "all documents"
COVERAGE = "coverage"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a report is held to; shares are from 0 to 1."""

    max_rate: float | None = None  # of the items of every benchmark
    of_benchmark: Mapping[str, float] = field(default_factory=dict)  # instead of it
    max_document_rate: float | None = None
    max_question_only_rate: float | None = None  # of the items of every benchmark
    required: Sequence[str] = ()  # names of benchmarks; * is anything
    least_indexable: float = 0.5  # share of a benchmark's items
    by: By = "point"  # upper: the end of the 95 % interval
    may_be_unreadable: bool = False

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
        if not self._is_any:
            expected = (
                "--max-rate, --benchmark, --max-document-rate, --max-question-only-rate or "
                "--require"
            )
            problems.append(Problem("check", "nothing to hold the report to", expected))
        if problems:
            raise InputError(problems)

    @property
    def _is_any(self) -> bool:
        rates = (self.max_rate, self.max_document_rate, self.max_question_only_rate)
        return bool(self.of_benchmark or self.required) or any(one is not None for one in rates)

    def of(self, benchmark: str) -> float | None:
        """What a benchmark is held to."""
        return self.of_benchmark.get(benchmark, self.max_rate)


@dataclass(frozen=True)
class Case:
    """One thing that was looked at, and what is wrong with it: nothing, then it passes."""

    name: str
    n: int | None = None  # items, or documents
    n_leaked: int | None = None
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None
    wrong: tuple[str, ...] = ()
    n_question_only: int | None = None  # not among the leaked
    question_only_rate: float | None = None
    question_only_limit: float | None = None
    is_unknown: bool = False  # not over a limit, but not all of the corpus was scanned

    @property
    def is_passed(self) -> bool:
        return not self.wrong


def cases_of(summary: Summary, limits: Limits, *, is_todays: bool = True) -> list[Case]:
    """A case for each benchmark, one for the documents if they have a limit, and one for coverage.

    `is_todays`: whether the report was made from what corpus, benchmarks and policy are now.
    """
    n_shards = summary["n_shards_in_corpus"]
    cases = [_benchmark(one, limits, n_shards) for one in summary["benchmarks"]]
    if limits.max_document_rate is not None:
        documents = _documents(summary["corpus"], limits)
        cases.append(_held_to(documents, len(summary["not_scanned"]), n_shards))
    return [*cases, Case(COVERAGE, wrong=tuple(_not_covered(summary, limits, is_todays)))]


def _held_to(case: Case, n_lacking: int, n_shards: int) -> Case:
    """A case that passes is unknown where shards were not scanned."""
    if not n_lacking:
        return case
    verb = "was" if n_lacking == 1 else "were"
    told = f"not known: {n_lacking:,} of {counted(n_shards, 'shard')} {verb} not scanned"
    return replace(case, wrong=(*case.wrong, told), is_unknown=not case.wrong)


def _benchmark(one: Summary, limits: Limits, n_shards: int) -> Case:
    limit = limits.of(one["benchmark"])
    case = Case(
        one["benchmark"],
        one["n_items"],
        one["n_leaked"],
        one["leak_rate"],
        one["low"],
        one["high"],
        limit,
        n_question_only=one["n_question_only"],
        question_only_rate=one["question_only_rate"],
        question_only_limit=limits.max_question_only_rate,
    )
    wrong = [*_over(case, "items", limits.by)]
    wrong += _over_in_questions(case, one["question_only_high"], limits.by)
    has_limit = limit is not None or limits.max_question_only_rate is not None
    if has_limit or _is_required(case.name, limits):
        wrong += _too_little(one, limits)
    return _held_to(replace(case, wrong=tuple(wrong)), one["n_shards_not_scanned"], n_shards)


def _documents(corpus: Summary, limits: Limits) -> Case:
    case = Case(
        DOCUMENTS,
        corpus["n_documents"],
        corpus["n_contaminated_documents"],
        corpus["document_rate"],
        corpus["low"],
        corpus["high"],
        limits.max_document_rate,
        n_question_only=corpus["n_question_only_documents"],
        question_only_rate=corpus["question_only_rate"],
    )
    return replace(case, wrong=tuple(_over(case, "documents", limits.by)))


def _over(case: Case, what: str, by: By) -> Iterator[str]:
    if case.limit is None:
        return
    if not case.n or case.n_leaked is None:
        yield f"no share can be told: there are no {what}, or nobody counted them"
        return
    told = f"{case.n_leaked:,} of {case.n:,} {what} leaked ({percent(case.rate)}"
    # Summaries round; what is held to a limit is the quotient itself.
    if by == "point" and exceeds(case.n_leaked / case.n, case.limit):
        yield f"{told}), more than {percent(case.limit)}"
    if by == "upper" and (case.high is None or exceeds(case.high, case.limit)):
        yield f"{told}, at most {percent(case.high)}), which may be more than {percent(case.limit)}"


def _over_in_questions(case: Case, high: float | None, by: By) -> Iterator[str]:
    """Items of which only the question was found, held to a limit of their own."""
    limit, n = case.question_only_limit, case.n_question_only
    if limit is None:
        return
    if not case.n or n is None:
        yield "no share of question-only items is known: there are no items, or no count of them"
        return
    told = f"{n:,} of {counted(case.n, 'item')} are question-only ({percent(n / case.n)}"
    if by == "point" and n / case.n > limit:
        yield f"{told}), more than {percent(limit)}"
    if by == "upper" and (high is None or high > limit):
        yield f"{told}, at most {percent(high)}), which may be more than {percent(limit)}"


def _too_little(one: Summary, limits: Limits) -> Iterator[str]:
    n_items, n_unseen = one["n_items"], one["n_not_indexable"]
    if not n_items:
        if limits.of(one["benchmark"]) is None and limits.max_question_only_rate is None:
            yield "it has no items, or nobody counted them"
        return
    share = (n_items - n_unseen) / n_items
    if not reaches(share, limits.least_indexable):
        seen = f"{n_items - n_unseen:,} of {counted(n_items, 'item')} ({percent(share)})"
        yield f"only {seen} can be found by any rule, less than {percent(limits.least_indexable)}"


def _is_required(name: str, limits: Limits) -> bool:
    return any(name == wanted or fnmatchcase(name, wanted) for wanted in limits.required)


def _not_covered(summary: Summary, limits: Limits, is_todays: bool) -> Iterator[str]:
    names = [one["benchmark"] for one in summary["benchmarks"]]
    corpus = summary["corpus"]
    if not names:
        yield "no benchmark is in the report"
    for wanted in dict.fromkeys((*limits.required, *limits.of_benchmark)):
        is_pattern = wanted in limits.required
        if not any(name == wanted or (is_pattern and fnmatchcase(name, wanted)) for name in names):
            yield f"{wanted} is not in the report"
    if not corpus["n_shards"]:
        yield "no shard of a corpus is in the report"
    elif corpus["n_documents"] == 0:
        yield "no document was scanned"
    if limits.max_question_only_rate is not None and not keeps_question_only(summary["policy"]):
        yield f"question-only items are not all known: {QUESTIONS_LEFT_OUT}"
    for one in summary["not_scanned"]:
        against = ", ".join(one["benchmarks"])
        remedy = f"; {one['remedy']}" if one["remedy"] else ""
        reason = one["reason"] or "the reason is not known"
        yield f"{one['shard']} was not scanned against {against}: {reason}{remedy}"
    if not is_todays:
        yield "corpus, benchmarks, policy or verdicts are no longer those of this report"
    if not limits.may_be_unreadable:
        yield from _unreadable(summary)


def _unreadable(summary: Summary) -> Iterator[str]:
    # Of lines of a report, or of whole shards, no shard has a count.
    n_listed = sum(one["n_rows"] for one in summary["unreadable"])
    n_counted = summary["corpus"]["n_unreadable"]
    if n := max(n_listed, n_counted or 0):
        yield f"{counted(n, 'row')} could not be read, and may hold anything (--allow-unreadable)"
    elif n_counted is None and summary["corpus"]["n_shards"]:
        yield "whether there are rows that could not be read is not known (--allow-unreadable)"
