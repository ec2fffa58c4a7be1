"""What a match is by the rule of its detector, its kind and the policy, before any verdict.

A detector states its threshold and its kinds (`config/detector_registry.py`); the policy says which
kinds are leaks and which need review. What has no kind is a leak by its threshold alone, as in
the published rules. A verdict on a pair overrides all this (`decide.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from decon_core.config.policy import LEAST_ANSWER_OVERLAP, Policy
from decon_core.detectors.detector import Detector, column, detector, of_needed
from decon_core.kernels.arrays import Bools, Floats, Integers

if TYPE_CHECKING:
    import polars as pl

_STEPS = 100  # steps from 0 to 1


class Judged(NamedTuple):
    """Score and class of each match, without verdicts."""

    score: Floats
    is_leak: Bools
    is_no_answer: Bools  # never together with `is_leak`
    needs_review: Bools  # nor with one of these
    is_by_score: Bools  # a leak, or to review, and its kind has a threshold


def judge(matches: pa.Table, policy: Policy) -> Judged:
    """Score and classify every match by the settings of its benchmark."""
    n = matches.num_rows
    flags = [np.zeros(n, np.bool_) for _ in range(4)]
    judged = Judged(np.zeros(n), *flags)
    for finder, rows, its_matches, own in _by_rule(matches, policy):
        judge_at = _judge_of(finder, its_matches, own)
        values = judge_at(finder.configured_threshold(own))
        for into, column_values in zip(judged, values, strict=True):
            into[rows] = column_values
    return judged


def highest_thresholds(matches: pa.Table, policy: Policy) -> Floats:
    """Return for each match the highest step at which its score is enough; nan if there is none.

    Steps are hundredths, starting at the detector's floor, and the current threshold. Where a
    threshold is a length, the result is the number of matched tokens.
    """
    highest = np.full(matches.num_rows, np.nan)
    hundredths = np.arange(1, _STEPS + 1) / _STEPS
    for finder, rows, its_matches, own in _by_rule(matches, policy):
        if finder.threshold.is_length:
            highest[rows] = column(its_matches, "n_matched")
            continue
        threshold = finder.configured_threshold(own)
        floor = finder.setting(own, finder.threshold.floor) if finder.threshold.floor else 0.0
        steps = np.unique([*hundredths[hundredths >= floor], floor or threshold, threshold])
        judge_at = _judge_of(finder, its_matches, own)
        for step in steps.tolist():
            highest[rows[judge_at(step).is_by_score]] = step
    return highest


def _by_rule(
    matches: pa.Table, policy: Policy
) -> Iterator[tuple[Detector, Integers, pa.Table, Policy]]:
    """Yield each detector with the rows of its matches, these matches, and the policy for them.

    Benchmarks with settings of their own come apart.
    """
    benchmark = matches["benchmark"].to_numpy(zero_copy_only=False)
    is_own = np.isin(benchmark, [*policy.benchmark])
    names = matches["detector"].to_numpy(zero_copy_only=False)
    groups = [(~is_own, replace(policy, benchmark={}))]
    groups += [(benchmark == name, policy.for_benchmark(name)) for name in policy.benchmark]
    for is_of_group, own in groups:
        for name in dict.fromkeys(names[is_of_group].tolist()):
            rows = np.flatnonzero(is_of_group & (names == name))
            its_matches = matches if rows.size == names.size else matches.take(pa.array(rows))
            yield detector(name), rows, its_matches, own


def _judge_of(finder: Detector, matches: pa.Table, policy: Policy) -> Callable[[float], Judged]:
    """Return what judges matches of a detector at a threshold.

    If its kind needs the answer, a match without it is a leak only if there is none to have. A
    short question without its passage then says too little, and the class is not `no answer`,
    either.
    """
    is_kind = _kinds_of(matches)
    has_kind, of = is_kind(kind.name for kind in finder.kinds), finder.threshold.of
    has_threshold = is_kind(filter(None, of)) | (~has_kind & (None in of))
    may_leak = np.where(has_kind, is_kind(policy.leak), None in of)
    may_wait = has_kind & is_kind(policy.review)
    needs_answer = is_kind(kind.name for kind in finder.kinds if kind.needs_answer)
    answer = column(matches, "answer_overlap")
    is_right = matches["is_correct"].fill_null(fill_value=True).to_numpy(zero_copy_only=False)
    is_answered = (answer >= LEAST_ANSWER_OVERLAP) & is_right.astype(np.bool_)
    lacks_answer = needs_answer & ~np.isnan(answer) & ~is_answered
    has_passage = matches["passage_char_start"].is_valid().to_numpy()
    is_telling = (column(matches, "question_tokens") >= finder.fewest_words) | has_passage

    def judge_at(threshold: float) -> Judged:
        ruled = finder.rule(matches, policy, threshold)
        is_enough = ruled.reaches | ~has_threshold
        is_copy, needs_review = may_leak & is_enough, may_wait & is_enough
        is_leak = is_copy & ~lacks_answer & (is_answered | is_telling)
        is_no_answer = ruled.is_no_answer | (is_copy & lacks_answer & is_telling)
        is_by_score = is_leak | (needs_review & has_threshold)
        return Judged(ruled.score, is_leak, is_no_answer, needs_review, is_by_score)

    return judge_at


def _kinds_of(matches: pa.Table) -> Callable[[Iterable[str]], Bools]:
    """Return what tells the matches whose kind is among some names."""
    encoded = matches["kind"].combine_chunks().dictionary_encode()
    names = encoded.dictionary.to_pylist()
    number: Integers = encoded.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)

    def is_kind(kinds: Iterable[str]) -> Bools:
        chosen = {*kinds}
        is_chosen: Bools = np.array([name in chosen for name in names] + [False], np.bool_)
        return is_chosen[number]

    return is_kind


def may_need_review(matches: pa.Table, policy: Policy) -> pa.Array:
    """Return whether each match needs review if its score is enough and no verdict says more."""
    import pyarrow.compute as pc

    own_kinds = (policy.for_benchmark(name).review for name in policy.benchmark)
    kinds = {*policy.review, *chain(*own_kinds)}
    return pc.is_in(matches["kind"], pa.array(kinds, pa.string()))


def may_prove(policy: Policy) -> pl.Expr:
    """Return whether a detector finds leaks of a benchmark, of a table with these columns."""
    import polars as pl

    benchmark, name = pl.col("benchmark"), pl.col("detector")
    proves = name.is_in(policy.acting)
    for own, acting in policy.acting_by_benchmark.items():
        proves = pl.when(benchmark == own).then(name.is_in(acting)).otherwise(proves)
    return proves


def missing(entry: Mapping[str, Any], policy: Policy, record: Mapping[str, Any]) -> Iterator[str]:
    """Yield what an entry lacks to be a leak by its kind and score, in words."""
    finder = detector(entry["detector"])
    kind = next((kind for kind in finder.kinds if kind.name == entry["kind"]), None)
    name = kind and kind.name
    may_leak = name is None or name in policy.leak
    if entry["is_by_score"] and may_leak:
        return
    if kind and not may_leak:
        yield kind.lacks or f"`leak` in [policy] does not list {name}"
    elif entry["question_tokens"] < finder.fewest_words and entry["passage_char_start"] is None:
        yield f"the question has too few words ({entry['question_tokens']})"
    elif name is None and None not in finder.threshold.of:
        yield "its score alone does not prove a leak"
    yield from finder.unmet_gates(entry, policy)
    needed = finder.score_threshold(policy)
    is_low = name in finder.threshold.of and not finder.reaches_threshold(entry["score"], needed)
    if is_low or kind:
        is_wrong = kind and kind.needs_answer and entry["is_correct"] is False
        for part in finder.needed_parts:
            if part == "answer" and is_wrong and entry["answer_overlap"]:
                yield "the answer that was found is a wrong choice"
            elif record[part]:
                yield from _part_missing(part, entry[f"{part}_overlap"], policy)
    if is_low:
        more = "more than " if finder.threshold.is_exclusive else ""
        yield f"score {of_needed(entry['score'], needed, more)}"
        if entry["score"] < entry["base_score"] and not finder.threshold.is_length:
            yield (
                f"score lowered from {entry['base_score']:.3f} because the matched texts are short "
                f"({entry['total_tokens']} tokens)"
            )


def _part_missing(part: str, overlap: float | None, policy: Policy) -> Iterator[str]:
    setting = f"index_{part}s"
    if not getattr(policy, setting):
        yield f"{part} not searched for ({setting} is off)"
    elif not overlap:
        yield f"{part} not found"
    elif overlap < 1:
        yield f"only {overlap:.2f} of the {part} found"
