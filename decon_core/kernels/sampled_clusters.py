"""Clusters of the `decon` detector as the reference tool finds them: from every m-th position."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import NONE, Flags, Integers, Numbers, Table, filled, first_at_least
from decon_core.kernels.clusters import Cluster, Output, judge
from decon_core.kernels.gram_runs import Hits
from decon_core.kernels.hashing import value_of
from decon_core.kernels.jit import entry, kernel
from decon_core.kernels.question_index import (
    Index,
    grams_of_question,
    n_question_grams,
    postings_of,
    weights_of_question,
)
from decon_core.kernels.scores import passes, share


class _Traces(NamedTuple):
    """The questions with the n-gram of a seed, and how far each was followed."""

    questions: Integers
    starts: Integers
    ends: Integers
    offsets: Integers  # range of each question in the next two arrays
    grams: Integers
    flags: Flags  # whether an n-gram was found


class _Postings(NamedTuple):
    """The n-gram at each position of a document, and its postings of one benchmark."""

    grams: Integers
    posting_starts: Integers
    posting_stops: Integers


@entry(
    compile_seconds=5.0,
    steps=lambda _tokens, _offsets, _hits, runs, *_: (
        2_000 * len(runs) + 40 * int((runs[:, 2] - runs[:, 1] + 1).sum())
    ),
)
def judge_sampled(
    tokens: Numbers,
    offsets: Integers,
    hits: Hits,
    runs: Table,
    first_run: int,
    index: Index,
    trace_of: Integers,
    out: Output,
) -> tuple[int, int]:
    """Write the matches in documents with runs of hits, walking as the reference tool does.

    `trace_of` is scratch: a zero for every question. Returns the number of matches, and the run to
    continue with if the output is full.
    """
    n_out = 0
    n_parts = index.part_offsets.size - 1
    run = first_run
    while run < runs.shape[0]:
        document = runs[run, 0]
        text = tokens[offsets[document] : offsets[document + 1]]
        grams = filled(text.size - index.policy.ngram_size + 1, NONE)
        has_hits = np.zeros(n_parts, np.uint8)
        for hit in range(hits.offsets[document], hits.offsets[document + 1]):
            grams[hits.places[hit]] = hits.grams[hit]
            part = 0
            start, stop = postings_of(hits.grams[hit], index)
            for posting in range(start, stop):
                while np.int64(index.postings[posting]) >= index.part_offsets[part + 1]:
                    part += 1
                has_hits[part] = 1
        n_before = n_out
        for part in range(n_parts):
            if has_hits[part]:
                n_out = _judge_part(text, document, grams, part, index, trace_of, out, n_out)
        if n_out > out.whole.shape[0]:
            return n_before, run
        while run < runs.shape[0] and runs[run, 0] == document:
            run += 1
    return n_out, run


@kernel
def _judge_part(
    tokens: Numbers,
    document: int,
    grams: Integers,
    part: int,
    index: Index,
    trace_of: Integers,
    out: Output,
    n_out: int,
) -> int:
    """Probe every m-th position of a document for one benchmark; continue after each cluster."""
    policy = index.policy
    low, high = index.part_offsets[part], index.part_offsets[part + 1]
    hits = _Postings(grams, filled(grams.size, 0), filled(grams.size, 0))
    for at in range(grams.size):
        if grams[at] != NONE:
            start, stop = postings_of(grams[at], index)
            hits.posting_starts[at] = first_at_least(index.postings, start, stop, low)
            hits.posting_stops[at] = first_at_least(index.postings, start, stop, high)
    position = 0
    while position < grams.size:
        start, stop = hits.posting_starts[position], hits.posting_stops[position]
        if start == stop:
            position += policy.sample_every
            continue
        if _is_hot(grams[position], np.int64(index.postings[start]), index):
            position += 1
            continue
        traces = _traces_from(position, hits, index)
        last = position
        for trace in range(traces.questions.size):
            trace_of[traces.questions[trace]] = trace + 1
        for step in (-1, 1):
            walked = _walk(hits, position, step, trace_of, traces, index)
            last = max(position, walked)
        for trace in range(traces.questions.size):
            question = traces.questions[trace]
            trace_of[question] = 0
            is_found = traces.flags[traces.offsets[trace] : traces.offsets[trace + 1]]
            overlap = share(
                weights_of_question(question, index), index.weights_of_questions, is_found
            )
            n_tokens = index.question_offsets[question + 1] - index.question_offsets[question]
            if passes(overlap, n_tokens, policy):
                n_matched = 0
                for ordinal in range(is_found.size):
                    n_matched += np.int64(is_found[ordinal])
                bounds = np.empty((1, 2), np.int64)
                bounds[0, 0], bounds[0, 1] = traces.starts[trace], traces.ends[trace]
                cluster = Cluster(document, question, bounds, n_matched, overlap)
                n_out = judge(tokens, cluster, index, out, n_out)
        position = last + 1
    return n_out


@kernel
def _is_hot(gram: int, question: int, index: Index) -> bool:
    """Return whether an n-gram is too common in this question's part to start a cluster."""
    _, ordinals = grams_of_question(question, index)
    weight = weights_of_question(question, index)[value_of(gram, ordinals)]
    return index.is_hot[np.int64(weight)] != 0


@kernel
def _traces_from(position: int, hits: _Postings, index: Index) -> _Traces:
    """Begin a trace for every question of the benchmark with the n-gram at a position."""
    first = hits.posting_starts[position]
    n = hits.posting_stops[position] - first
    questions = np.empty(n, np.int64)
    offsets = filled(n + 1, 0)
    for trace in range(n):
        questions[trace] = index.postings[first + trace]
        offsets[trace + 1] = offsets[trace] + n_question_grams(questions[trace], index)
    grams = np.empty(offsets[n], np.int64)
    flags = np.zeros(offsets[n], np.uint8)
    for trace in range(n):
        of_question, ordinals = grams_of_question(questions[trace], index)
        grams[offsets[trace] : offsets[trace + 1]] = of_question
        flags[offsets[trace] + value_of(hits.grams[position], ordinals)] = 1
    return _Traces(questions, filled(n, position), filled(n, position), offsets, grams, flags)


@kernel
def _walk(
    hits: _Postings, position: int, step: int, trace_of: Integers, traces: _Traces, index: Index
) -> int:
    """Walk in one direction until all traces have ended; return the last position or `NONE`."""
    n = traces.questions.size
    is_active = filled(n, 1)
    misses = filled(n, 0)
    hit_at = filled(n, NONE)
    n_active = n
    last = NONE
    position += step
    while n_active and 0 <= position < hits.grams.size:
        last = position
        for posting in range(hits.posting_starts[position], hits.posting_stops[position]):
            trace = trace_of[np.int64(index.postings[posting])] - 1
            if trace < 0 or not is_active[trace]:
                continue
            hit_at[trace] = position
            flag = traces.offsets[trace]
            while traces.grams[flag] != hits.grams[position]:
                flag += 1
            if not traces.flags[flag]:
                traces.flags[flag] = 1
                misses[trace] = 0
            traces.starts[trace] = min(traces.starts[trace], position)
            traces.ends[trace] = max(traces.ends[trace], position)
        for trace in range(n):
            if is_active[trace] and hit_at[trace] != position:
                misses[trace] += 1
                if misses[trace] >= index.policy.longest_gap:
                    is_active[trace] = 0
                    n_active -= 1
        position += step
    return last
