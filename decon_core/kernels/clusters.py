"""Score the clusters in runs of hits, as `tests/oracle/decon.py` does.

`sampled_clusters.py` has the other way to find clusters, that of the reference tool.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import (
    NONE,
    Flags,
    Floats,
    Integers,
    Numbers,
    Table,
    Words64,
    filled,
    first_at_least,
    n_same,
)
from decon_core.kernels.gram_runs import LENIENT, Hits
from decon_core.kernels.hashing import (
    enter_number,
    table_for,
    value_of,
)
from decon_core.kernels.jit import entry, inlined, kernel
from decon_core.kernels.near_texts import (
    find_answer,
    find_answer_before,
    find_passage,
    grams_beside,
)
from decon_core.kernels.question_index import (
    Index,
    grams_of_question,
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

_TOUCHED = 1e-9
_MOST_STEPS = 1 << 17  # of comparing hits with the n-grams of a question


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
    edges = _edges_of(bounds, n_tokens, index)
    beside = _grams_beside(tokens, edges, question, index)
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
            room = _room_of(entry, index)
            answer = _best_answer(tokens, edges, answer_number, has_passage, room, beside, index)
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
def _room_of(entry: int, index: Index) -> int:
    return np.int64(index.entry_room[entry]) if index.entry_room.size else 0


@kernel
def _grams_beside(tokens: Numbers, edges: Table, question: int, index: Index) -> Words64:
    """Return a filter of the n-grams beside a cluster, for the answers of its records.

    The records of a question, such as its choices, share it: most answers have none of these.
    """
    longest = room = 0
    for at in range(index.entry_offsets[question], index.entry_offsets[question + 1]):
        entry = np.int64(index.entries[at])
        number = np.int64(index.entry_answer[entry])
        if number != NONE:
            n_answer = index.answer_offsets[number + 1] - index.answer_offsets[number]
            longest = max(longest, n_answer)
            room = max(room, _room_of(entry, index))
    if longest <= index.policy.short_answer:
        return np.zeros(1, np.uint64)  # no n-gram is needed
    return grams_beside(tokens, edges, longest, room, index)


@kernel
def _edges_of(bounds: Table, n_tokens: int, index: Index) -> Table:
    """Return the first and last token of a question at each of the bounds of a cluster."""
    edges = np.empty(bounds.shape, np.int64)
    for number in range(bounds.shape[0]):
        start, stop = bounds[number, 0], bounds[number, 1] + index.policy.ngram_size
        edges[number, 0] = start
        edges[number, 1] = stop - 1 - max(0, stop - start - n_tokens)
    return edges


@inlined
def _best_answer(
    tokens: Numbers,
    edges: Table,
    answer: int,
    has_passage: bool,
    room: int,
    beside: Words64,
    index: Index,
) -> NearMatch:
    """Find the answer after the question, or before it: a passage there may contain the answer."""
    best = NearMatch(0.0, NONE, NONE)
    for side in range(1 if has_passage else 2):
        edge_before = NONE
        for number in range(edges.shape[0]):
            edge = edges[number, 1 - side]
            if edge == edge_before:
                continue
            edge_before = edge
            if side == 0:
                found = find_answer(tokens, edge, answer, room, beside, index)
            else:
                found = find_answer_before(tokens, edge, answer, beside, index)
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
    steps=lambda _hits, whole, *_: 2_000 * len(whole),
)
def mark_matched(
    hits: Hits,
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
        document = whole[row, DOCUMENT]
        start, stop = hits.offsets[document], hits.offsets[document + 1]
        hit = first_at_least(hits.places, start, stop, whole[row, START])
        while hit < stop and hits.places[hit] <= whole[row, END]:
            ordinal = value_of(hits.grams[hit], ordinals)
            if ordinal != NONE:
                bits[bit_offsets[row] + ordinal] = 1
            hit += 1


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
    steps=lambda _tokens, _offsets, _hits, runs, *_: (
        2_000 * len(runs) + 40 * int((runs[:, 2] - runs[:, 1] + 1).sum())
    ),
)
def judge_exhaustive(
    tokens: Numbers,
    offsets: Integers,
    hits: Hits,
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
        places, grams = hits.places[first : last + 1], hits.grams[first : last + 1]
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
            is_possible = sums[question] >= index.question_need[question] * LENIENT
            sums[question] = 0.0
            if is_possible:
                n_out = _judge_question(text, document, question, places, grams, index, out, n_out)
        if n_out > out.whole.shape[0]:
            return n_before, run
    return n_out, runs.shape[0]


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
    is_cold = np.empty(weight_of.size, np.uint8)
    for ordinal in range(weight_of.size):
        is_cold[ordinal] = not index.is_hot[np.int64(weight_of[ordinal])]
    places = np.empty(hit_places.size, np.int64)
    ordinals = np.empty(hit_places.size, np.int64)
    n = _hits_of_question(tokens, question, hit_places, hit_grams, index, places, ordinals)
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


@kernel
def _hits_of_question(
    tokens: Numbers,
    question: int,
    hit_places: Integers,
    hit_grams: Integers,
    index: Index,
    places: Integers,
    ordinals: Integers,
) -> int:
    """Write the places of the hits of a question, and the ordinals of their n-grams; count them.

    Where a question has each n-gram once, its ordinal is its position. Unless there are many, hits
    are looked for in its tokens, which are near each other in memory: looking its n-grams up in the
    index takes longer.
    """
    known, size = index.question_tokens, index.policy.ngram_size
    start = index.question_offsets[question]
    n_places = index.question_offsets[question + 1] - start - size + 1
    n = 0
    if hit_places.size * n_places <= _MOST_STEPS and n_question_grams(question, index) == n_places:
        ordinal = 0
        for hit in range(hit_places.size):
            place = hit_places[hit]
            for _ in range(n_places):  # the next one is mostly that after the last
                ordinal = ordinal + 1 if ordinal + 1 < n_places else 0
                if n_same(tokens, place, known, start + ordinal, size) == size:
                    places[n], ordinals[n] = place, ordinal
                    n += 1
                    break
        return n
    _, ordinal_of = grams_of_question(question, index)
    for hit in range(hit_places.size):
        ordinal = value_of(hit_grams[hit], ordinal_of)
        if ordinal != NONE:
            places[n], ordinals[n] = hit_places[hit], ordinal
            n += 1
    return n


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
