"""Kernels of the `decon` detector: probe every n-gram, keep possible runs, score their clusters.

Nearly all text is rejected by two fast tests without false negatives: a filter of the n-grams in
the index, and an upper bound of the score of a run of hits. The rest is scored as in
`tests/oracle/decon.py`. `sampled_clusters.py` has the other way to find clusters, that of the
reference tool.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import NONE, Flags, Floats, Integers, Numbers, Table, Words64, filled
from decon_core.kernels.hashing import (
    ONE,
    ZERO,
    digest_of,
    enter_number,
    has_bit,
    pair_digest,
    scaled,
    shift_for,
    table_for,
    value_of,
)
from decon_core.kernels.instructions import lowest_bit, prefetch
from decon_core.kernels.jit import entry, inlined, kernel
from decon_core.kernels.near_texts import find_answer, find_passage
from decon_core.kernels.question_index import (
    Index,
    gram_at,
    grams_of_question,
    may_be_gram,
    n_question_grams,
    postings_of,
    weights_of_question,
)
from decon_core.kernels.scores import (
    NearMatch,
    base_score,
    is_no_answer,
    passes,
    penalized,
    reaches,
    share,
)

# Columns of the output.
DOCUMENT, ENTRY, START, END, N_MATCHED = 0, 1, 2, 3, 4
ANSWER_START, ANSWER_STOP, PASSAGE_START, PASSAGE_STOP = 5, 6, 7, 8
N_WHOLE = 9
BASE, QUESTION, ANSWER, PASSAGE, SCORE = 0, 1, 2, 3, 4
N_SCORES = 5

# Bounds are relaxed by this factor against rounding: false positives, but no false negatives.
_LENIENT = 1.0 - 1e-6
_TOUCHED = 1e-9

_STRETCH = 1 << 10  # pairs of tokens after which their n-grams are looked up
_GROUP = 64  # n-grams of a group: one bit each
_GROUP_BITS = np.uint64(_GROUP)


# Runs of hits -------------------------------------------------------------------------------------


class Seen(NamedTuple):
    """The n-grams of the index in documents, each once for every document that has it."""

    grams: Numbers
    last: Numbers  # per n-gram: serial number of the last document with it
    first_serial: int  # of the first document of a batch


@kernel
def find_runs(
    tokens: Numbers, offsets: Integers, first_document: int, index: Index, runs: Table, seen: Seen
) -> tuple[int, int, int]:
    """Find runs of hits that may contain a match; write document, first and last position.

    Every cluster lies within one run of hits, of any records, whose gaps are no longer than a
    cluster allows. The sum of the weights of all hits in a run bounds the score of any record
    there. Returns the number of runs, the document to continue with if `runs` is full, and the
    number of n-grams in `seen`.
    """
    size, longest_gap = index.policy.ngram_size, index.policy.longest_gap
    last_seen, seen_grams = seen.last, seen.grams
    pairs, in_filter = index.pairs, index.filter
    places, digests = np.empty(_STRETCH, np.int64), np.empty(_STRETCH, np.uint64)
    n_runs = n_seen = 0
    for document in range(first_document, offsets.size - 1):
        start, stop = offsets[document], offsets[document + 1]
        if stop - start < 2 * size:
            continue
        n_before = n_runs
        first = start
        last = start - longest_gap - 1  # the first hit begins a run
        weight, need = 0.0, np.inf
        before = ZERO
        for stretch in range(start, stop - 1, _STRETCH):
            n_pairs = min(_STRETCH, stop - 1 - stretch)
            n_places, before = _possible_places(
                tokens, start, stretch, n_pairs, size, before, pairs, in_filter, places, digests
            )
            for at in range(n_places):
                # The filter first: a call that takes the index costs more.
                if not may_be_gram(digests[at], in_filter):
                    continue
                place = places[at]
                number = gram_at(tokens, place, index)
                if number == NONE:
                    continue
                serial = np.uint32(seen.first_serial + document)
                if last_seen[number] != serial:
                    last_seen[number] = serial
                    seen_grams[n_seen] = np.uint32(number)
                    n_seen += 1
                if place - last > longest_gap:
                    if weight >= need * _LENIENT:
                        n_runs = _add_run(document, first - start, last - start, runs, n_runs)
                    first = place
                    weight, need = 0.0, np.inf
                last = place
                weight += index.weight_levels[index.gram_weight[number]]
                need = min(need, index.need_levels[index.gram_need[number]])
        if weight >= need * _LENIENT:
            n_runs = _add_run(document, first - start, last - start, runs, n_runs)
        if n_runs > runs.shape[0]:
            return n_before, document, n_seen
    return n_runs, offsets.size - 1, n_seen


@inlined
def _possible_places(
    tokens: Numbers,
    start: int,
    stretch: int,
    n_pairs: int,
    size: int,
    before: np.uint64,
    pairs: Words64,
    in_filter: Words64,
    places: Integers,
    digests: Words64,
) -> tuple[int, np.uint64]:
    """Write the places of n-grams whose pairs of tokens all are in questions, and their digests.

    Most text lacks such pairs, so that no n-gram needs to be looked up. The others are prefetched.
    Returns the number of places, and which of the last pairs are known.
    """
    shift = shift_for(pairs)
    n_places = 0
    for group in range(stretch, stretch + n_pairs, _GROUP):
        n = min(_GROUP, stretch + n_pairs - group)
        known = _known_pairs(tokens, group, n, pairs, shift)
        ends = _ends_of_known(known, before, size - 1)
        before = known
        while ends:
            place = group + np.int64(lowest_bit(ends)) + 2 - size
            ends &= ends - ONE
            if place >= start:
                digest = digest_of(tokens, place, size)
                prefetch(in_filter, scaled(digest, in_filter.size))
                places[n_places], digests[n_places] = place, digest
                n_places += 1
    return n_places, before


@inlined
def _known_pairs(
    tokens: Numbers, start: int, n_pairs: int, pairs: Words64, shift: np.uint64
) -> np.uint64:
    """Return a bit for each pair of adjacent tokens from `start` on: 1 if a question may have it.

    Without a branch and independent of each other, so that their look-ups overlap.
    """
    at, known = np.uint64(start), ZERO
    for number in range(np.uint64(n_pairs)):
        digest = pair_digest(tokens[at + number], tokens[at + number + ONE])
        known |= np.uint64(has_bit(pairs, digest >> shift)) << number
    return known


@inlined
def _ends_of_known(known: np.uint64, before: np.uint64, size: int) -> np.uint64:
    """Return a bit for each pair with which `size` known ones end; `before` are the 64 before.

    Of very long n-grams it is 64: it only has to leave out most of the text.
    """
    ends = known
    for step in range(ONE, np.uint64(min(size, _GROUP))):
        ends &= known << step | before >> (_GROUP_BITS - step)
    return ends


@kernel
def _add_run(document: int, first: int, last: int, runs: Table, n_runs: int) -> int:
    """Write a run; return the number of runs, including those that did not fit."""
    if n_runs < runs.shape[0]:
        runs[n_runs, 0], runs[n_runs, 1], runs[n_runs, 2] = document, first, last
    return n_runs + 1


# A cluster ----------------------------------------------------------------------------------------


class Cluster(NamedTuple):
    """Hits of one question in a document that belong together."""

    document: int
    question: int
    bounds: Table  # first and last hit; then those of narrower clusters
    n_matched: int
    overlap: float


class Output(NamedTuple):
    """Room for matches: a row for each."""

    whole: Table  # columns: `DOCUMENT` to `PASSAGE_STOP`
    scores: Floats  # columns: `BASE` to `SCORE`


@inlined
def judge(tokens: Numbers, cluster: Cluster, index: Index, out: Output, n_out: int) -> int:
    """Write the matches of a cluster, one for each record with the question.

    Returns the number of matches, including those that did not fit.
    """
    question, bounds, overlap = cluster.question, cluster.bounds, cluster.overlap
    policy, whole, scores = index.policy, out.whole, out.scores
    n_tokens = index.question_offsets[question + 1] - index.question_offsets[question]
    n_grams = n_question_grams(question, index)
    passage_before = NONE
    passage = NearMatch(0.0, NONE, NONE)
    for at in range(index.entry_offsets[question], index.entry_offsets[question + 1]):
        entry = np.int64(index.entries[at])
        answer_number = np.int64(index.entry_answer[entry])
        passage_number = np.int64(index.entry_passage[entry])
        has_passage = passage_number != NONE
        answer = NearMatch(0.0, NONE, NONE)
        length = n_tokens
        n_answer_tokens = 0
        if answer_number != NONE:
            n_answer_tokens = index.answer_different[answer_number]
            length += n_answer_tokens
            answer = _best_answer(tokens, bounds, n_tokens, answer_number, index)
        if has_passage:
            offsets = index.passage_offsets
            length += offsets[passage_number + 1] - offsets[passage_number]
        if passage_number != passage_before:
            passage = _best_passage(tokens, bounds, passage_number, index)
        passage_before = passage_number
        base = base_score(
            n_grams, n_answer_tokens, has_passage, overlap, answer.overlap, passage.overlap
        )
        score = penalized(base, length, policy)
        is_kept = reaches(score, policy.threshold, policy) or (
            policy.keep_no_answer
            and is_no_answer(
                n_grams, n_tokens, n_answer_tokens, has_passage, overlap, passage, policy
            )
        )
        if not is_kept:
            continue
        if n_out < whole.shape[0]:
            whole[n_out, DOCUMENT] = cluster.document
            whole[n_out, ENTRY] = entry
            whole[n_out, START] = bounds[0, 0]
            whole[n_out, END] = bounds[0, 1]
            whole[n_out, N_MATCHED] = cluster.n_matched
            whole[n_out, ANSWER_START] = answer.start
            whole[n_out, ANSWER_STOP] = answer.stop
            whole[n_out, PASSAGE_START] = passage.start
            whole[n_out, PASSAGE_STOP] = passage.stop
            scores[n_out, BASE] = base
            scores[n_out, QUESTION] = overlap
            scores[n_out, ANSWER] = answer.overlap
            scores[n_out, PASSAGE] = passage.overlap
            scores[n_out, SCORE] = score
        n_out += 1
    return n_out


@inlined
def _best_answer(
    tokens: Numbers, bounds: Table, n_tokens: int, answer: int, index: Index
) -> NearMatch:
    """Find the answer after the ends of a cluster; `n_tokens` are those of the question."""
    best = NearMatch(0.0, NONE, NONE)
    q_end_before = NONE
    for number in range(bounds.shape[0]):
        start, stop = bounds[number, 0], bounds[number, 1] + index.policy.ngram_size
        q_end = stop - 1 - max(0, stop - start - n_tokens)
        if q_end != q_end_before:
            q_end_before = q_end
            found = find_answer(tokens, q_end, answer, index)
            if found.overlap > best.overlap:
                best = found
    return best


@inlined
def _best_passage(tokens: Numbers, bounds: Table, passage: int, index: Index) -> NearMatch:
    """Find the passage before the starts of a cluster; `NONE` is not found."""
    best = NearMatch(0.0, NONE, NONE)
    start_before = NONE
    for number in range(bounds.shape[0] if passage != NONE else 0):
        if bounds[number, 0] != start_before:
            start_before = bounds[number, 0]
            found = find_passage(tokens, start_before, passage, index)
            if found.overlap > best.overlap:
                best = found
    return best


@entry(
    compile_seconds=1.5,
    steps=lambda _tokens, _offsets, whole, *_: 2_000 * len(whole),
)
def mark_matched(
    tokens: Numbers,
    offsets: Integers,
    whole: Table,
    questions: Integers,
    index: Index,
    bit_offsets: Integers,
    bits: Flags,
) -> None:
    """Set a byte per n-gram of every match's question to 1 if it was found. `bits`: zeros."""
    for row in range(questions.size):
        # The records of a question, such as its choices, follow each other.
        if row and questions[row] == questions[row - 1] and _is_same_place(whole, row - 1, row):
            n = bit_offsets[row + 1] - bit_offsets[row]
            for at in range(bit_offsets[row], bit_offsets[row + 1]):
                bits[at] = bits[at - n]
            continue
        _, ordinals = grams_of_question(questions[row], index)
        start = offsets[whole[row, DOCUMENT]]
        for at in range(start + whole[row, START], start + whole[row, END] + 1):
            gram = gram_at(tokens, at, index)
            if gram != NONE:
                ordinal = value_of(gram, ordinals)
                if ordinal != NONE:
                    bits[bit_offsets[row] + ordinal] = 1


@inlined
def _is_same_place(whole: Table, row: int, other: int) -> bool:
    return (
        whole[row, DOCUMENT] == whole[other, DOCUMENT]
        and whole[row, START] == whole[other, START]
        and whole[row, END] == whole[other, END]
    )


# All clusters -------------------------------------------------------------------------------------


@entry(
    compile_seconds=5.0,
    steps=lambda _tokens, _offsets, runs, *_: (
        2_000 * len(runs) + 40 * int((runs[:, 2] - runs[:, 1] + 1).sum())
    ),
)
def judge_exhaustive(
    tokens: Numbers,
    offsets: Integers,
    runs: Table,
    first_run: int,
    index: Index,
    sums: Floats,
    out: Output,
) -> tuple[int, int]:
    """Write the matches in runs of hits, following each record separately.

    `sums` is scratch: a zero for every question. Returns the number of matches, and the run to
    continue with if the output is full.
    """
    n_out = 0
    touched = np.empty(256, np.int64)
    for run in range(first_run, runs.shape[0]):
        document, first, last = runs[run, 0], runs[run, 1], runs[run, 2]
        text = tokens[offsets[document] : offsets[document + 1]]
        places, grams = _hits(text, first, last, index)
        # An upper bound for each question, before any is scored.
        different = table_for(grams.size)
        n_touched = 0
        for at in range(grams.size):
            if not enter_number(grams[at], 0, different):
                continue
            weight = index.weight_levels[index.gram_weight[grams[at]]]
            # Hundreds of questions may share an n-gram of a template, which adds nothing to them.
            if weight == 0.0 and index.need_levels[index.gram_need[grams[at]]] > 0.0:
                continue
            start, stop = postings_of(grams[at], index)
            for posting in range(start, stop):
                question = np.int64(index.postings[posting])
                if sums[question] == 0.0:
                    if n_touched == touched.size:
                        wider = np.empty(2 * touched.size, np.int64)
                        for earlier in range(n_touched):
                            wider[earlier] = touched[earlier]
                        touched = wider
                    touched[n_touched] = question
                    n_touched += 1
                    sums[question] = _TOUCHED
                sums[question] += weight
        n_before = n_out
        for at in range(n_touched):
            question = touched[at]
            is_possible = sums[question] >= index.question_need[question] * _LENIENT
            sums[question] = 0.0
            if is_possible:
                n_out = _judge_question(text, document, question, places, grams, index, out, n_out)
        if n_out > out.whole.shape[0]:
            return n_before, run
    return n_out, runs.shape[0]


@inlined
def _hits(tokens: Numbers, first: int, last: int, index: Index) -> tuple[Integers, Integers]:
    """Return the places and numbers of the n-grams of the index from one place to another."""
    places, grams = np.empty(last - first + 1, np.int64), np.empty(last - first + 1, np.int64)
    n = 0
    for at in range(first, last + 1):
        gram = gram_at(tokens, at, index)
        if gram != NONE:
            places[n], grams[n] = at, gram
            n += 1
    return places[:n], grams[:n]


@inlined
def _judge_question(
    tokens: Numbers,
    document: int,
    question: int,
    hit_places: Integers,
    hit_grams: Integers,
    index: Index,
    out: Output,
    n_out: int,
) -> int:
    """Score all clusters of one question in a run of hits."""
    policy = index.policy
    weight_of = weights_of_question(question, index)
    _, ordinal_of = grams_of_question(question, index)
    is_cold = np.empty(weight_of.size, np.uint8)
    for ordinal in range(weight_of.size):
        is_cold[ordinal] = not index.is_hot[np.int64(weight_of[ordinal])]
    places = np.empty(hit_places.size, np.int64)
    ordinals = np.empty(hit_places.size, np.int64)
    n = 0
    for at in range(hit_places.size):
        ordinal = value_of(hit_grams[at], ordinal_of)
        if ordinal != NONE:
            places[n], ordinals[n] = hit_places[at], ordinal
            n += 1
    n_tokens = index.question_offsets[question + 1] - index.question_offsets[question]
    is_found = np.empty(weight_of.size, np.uint8)
    start = 0
    while start < n:
        stop = start + 1
        while stop < n and places[stop] - places[stop - 1] <= policy.longest_gap:
            stop += 1
        for ordinal in range(is_found.size):
            is_found[ordinal] = 0
        n_matched = 0
        is_any_cold = False
        for at in range(start, stop):
            ordinal = ordinals[at]
            if not is_found[ordinal]:
                is_found[ordinal] = 1
                n_matched += 1
                is_any_cold = is_any_cold or is_cold[ordinal] != 0
        overlap = share(weight_of, index.weights_of_questions, is_found)
        if is_any_cold and passes(overlap, n_tokens, policy):
            longest_gap = policy.longest_gap
            if not _has_answer_or_passage(question, index):
                longest_gap = tokens.size  # narrower bounds would change nothing
            bounds = _bounds(places[start:stop], ordinals[start:stop], is_cold, longest_gap)
            cluster = Cluster(document, question, bounds, n_matched, overlap)
            n_out = judge(tokens, cluster, index, out, n_out)
        start = stop
    return n_out


@inlined
def _has_answer_or_passage(question: int, index: Index) -> bool:
    """Return whether a record with the question has an answer or a passage."""
    for at in range(index.entry_offsets[question], index.entry_offsets[question + 1]):
        entry = np.int64(index.entries[at])
        if index.entry_answer[entry] != NONE or index.entry_passage[entry] != NONE:
            return True
    return False


@kernel
def _bounds(places: Integers, ordinals: Integers, is_cold: Flags, longest_gap: int) -> Table:
    """Return the bounds of a cluster, and those that sampled search could give it.

    Sampled search starts from one of the hits. There, a repeated hit does not reset the misses.
    """
    n = places.size
    bounds = np.empty((n + 1, 2), np.int64)
    bounds[0, 0], bounds[0, 1] = places[0], places[n - 1]
    n_bounds = 1
    # Too few misses in total to end any walk. Saves time in very long repetitive texts.
    if places[n - 1] - places[0] + 1 - n < longest_gap:
        return bounds[:1]
    seen = filled(is_cold.size, NONE)
    for seed in range(n):
        if not is_cold[ordinals[seed]]:
            continue
        seen[ordinals[seed]] = seed
        for side in range(2):
            step = 2 * side - 1  # back, then forward
            edge = seed
            misses = 0
            at = seed + step
            while 0 <= at < n:
                misses += abs(places[at] - places[at - step]) - 1
                if misses >= longest_gap:
                    break
                if seen[ordinals[at]] != seed:
                    seen[ordinals[at]] = seed
                    misses = 0
                edge = at
                at += step
            bounds[n_bounds, side] = places[edge]
        n_bounds += (
            bounds[n_bounds, 0] != bounds[n_bounds - 1, 0]
            or bounds[n_bounds, 1] != bounds[n_bounds - 1, 1]
        )
    return bounds[:n_bounds]
