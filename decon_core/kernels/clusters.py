"""Kernels of the `decon` detector: probe every n-gram, keep possible runs, score them exactly.

Nearly all text is rejected by two fast tests without false negatives: a filter of the n-grams in
the index, and an upper bound of the score of a run of hits. The rest is scored as in
`tests/oracle/decon.py`, summing in the same order, so that scores agree to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from decon_core.kernels.jit import inlined, kernel

Numbers = npt.NDArray[np.uint32]
Words64 = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
Whole = npt.NDArray[np.int32]
Short = npt.NDArray[np.uint16] | Numbers  # 16 bits where they fit
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.uint8]

NONE = -1


class Index(NamedTuple):
    """The joined index of several benchmarks, with each text once."""

    pairs: Words64  # filter of adjacent token pairs in n-grams: one bit each
    filter: Words64  # Bloom filter of the n-grams: two bits each
    slots: Numbers  # n-gram numbers, from 1
    gram_at: Numbers  # position of each n-gram in the question tokens
    gram_weight: Codes  # upper bound of its weight in any benchmark
    gram_need: Codes  # lower bound of the weight that any question with it needs to match
    weight_levels: Floats  # values of these codes
    need_levels: Floats
    posting_offsets: Numbers
    postings: Numbers  # questions with an n-gram, ascending
    part_offsets: Integers  # range of questions of each benchmark
    question_tokens: Short
    question_offsets: Integers
    question_weights: Short  # of its n-grams, in order of first occurrence: positions in `weights`
    question_gram_offsets: Integers
    question_total: Floats
    question_need: Floats
    entry_offsets: Integers  # range of entries of each question
    entries: Numbers
    entry_answer: Whole
    entry_passage: Whole
    answer_tokens: Short
    answer_offsets: Integers
    answer_weights: Short  # of its distinct n-grams; of a short answer, its distinct tokens
    answer_weight_offsets: Integers
    answer_different: Integers  # number of distinct tokens
    passage_tokens: Short
    passage_offsets: Integers
    passage_weights: Short
    passage_weight_offsets: Integers
    weights: Floats
    is_hot: Flags  # per weight: whether its n-grams are too common to start a cluster


class Thresholds(NamedTuple):
    """The numeric settings of a policy."""

    ngram_size: int
    answer_ngram_size: int
    passage_ngram_size: int
    sample_every: int
    longest_gap: int
    short_answer: int
    short_answer_window: int
    long_answer_window: int
    passage_distance: int
    passage_longest_gap: int
    decay_start: int
    decay_end: int
    threshold: float
    least_overlap: float
    keep_question_only: bool
    least_tokens: int  # minimum for a record to be indexed
    tolerance: float  # values closer than this are equal


class NearMatch(NamedTuple):
    """An answer or a passage near a question."""

    overlap: float
    start: int
    stop: int


# Columns of the output.
DOCUMENT, ENTRY, START, END, N_MATCHED = 0, 1, 2, 3, 4
ANSWER_START, ANSWER_STOP, PASSAGE_START, PASSAGE_STOP = 5, 6, 7, 8
N_WHOLE = 9
BASE, QUESTION, ANSWER, PASSAGE, SCORE = 0, 1, 2, 3, 4
N_SCORES = 5

# Bounds are relaxed by this factor against rounding: false positives, but no false negatives.
_LENIENT = 1.0 - 1e-6
_TOUCHED = 1e-9

_BASE = np.uint64(0xD6E8FEB86659FD93)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_SIX = np.uint64(6)
_SIX_BITS = np.uint64(63)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


# The table of n-grams -----------------------------------------------------------------------------


@kernel
def _digest(tokens: Numbers, at: int, size: int) -> np.uint64:
    digest = _ZERO
    for step in range(size):
        digest = digest * _BASE + np.uint64(tokens[at + step]) * _MIX
    return digest


@kernel
def _spread(digest: np.uint64) -> np.uint64:
    digest = (digest ^ (digest >> _HALF)) * _MIX
    return digest ^ (digest >> _HALF)


@kernel
def _scaled(spread: np.uint64, n: int) -> int:
    return np.int64(((spread >> _HALF) * np.uint64(n)) >> _HALF)


@kernel
def _filter_bits(spread: np.uint64) -> np.uint64:
    return _ONE << (spread & _SIX_BITS) | _ONE << ((spread >> _SIX) & _SIX_BITS)


@kernel
def _pair_bit(first: np.uint64, second: np.uint64, shift: np.uint64) -> np.uint64:
    return ((first * _BASE + second) * _MIX) >> shift


@kernel
def _shift_for(pairs: Words64) -> np.uint64:
    """Return the shift that gives a bit number of an array whose size is a power of two."""
    shift = np.uint64(58)
    n = pairs.size
    while n > 1:
        n >>= 1
        shift -= _ONE
    return shift


@kernel
def fill_table(
    tokens: Numbers,
    gram_at: Integers,
    size: int,
    pairs: Words64,
    in_filter: Words64,
    slots: Numbers,
) -> None:
    """Enter all n-grams into the filters and the table, which must be zeros."""
    shift = _shift_for(pairs)
    for number in range(gram_at.size):
        for at in range(gram_at[number], gram_at[number] + size - 1):
            bit = _pair_bit(np.uint64(tokens[at]), np.uint64(tokens[at + 1]), shift)
            pairs[np.int64(bit >> _SIX)] |= _ONE << (bit & _SIX_BITS)
    for number in range(gram_at.size):
        spread = _spread(_digest(tokens, gram_at[number], size))
        in_filter[_scaled(spread, in_filter.size)] |= _filter_bits(spread)
        slot = _scaled(spread, slots.size)
        while slots[slot]:
            slot += 1
            if slot == slots.size:
                slot = 0
        slots[slot] = np.uint32(number + 1)


@kernel
def bound_grams(
    question_grams: Numbers,
    question_weights: Numbers,
    offsets: Integers,
    weights: Floats,
    question_need: Floats,
    gram_weight: Floats,
    gram_need: Floats,
) -> None:
    """Compute each n-gram's largest weight and the smallest need of a question with it."""
    for question in range(offsets.size - 1):
        for at in range(offsets[question], offsets[question + 1]):
            gram = np.int64(question_grams[at])
            gram_weight[gram] = max(gram_weight[gram], weights[np.int64(question_weights[at])])
            gram_need[gram] = min(gram_need[gram], question_need[question])


@kernel
def _number_of(tokens: Numbers, at: int, size: int, spread: np.uint64, index: Index) -> int:
    """Return the number of the n-gram at a position, or `NONE`."""
    slot = _scaled(spread, index.slots.size)
    while True:
        number = np.int64(index.slots[slot]) - 1
        if number < 0:
            return NONE
        known = np.int64(index.gram_at[number])
        is_same = True
        for step in range(size):
            if tokens[at + step] != index.question_tokens[known + step]:
                is_same = False
                break
        if is_same:
            return number
        slot += 1
        if slot == index.slots.size:
            slot = 0


@kernel
def _postings_of(number: int, index: Index) -> tuple[int, int]:
    return np.int64(index.posting_offsets[number]), np.int64(index.posting_offsets[number + 1])


@kernel
def _gram_at(tokens: Numbers, at: int, index: Index, policy: Thresholds) -> int:
    spread = _spread(_digest(tokens, at, policy.ngram_size))
    bits = _filter_bits(spread)
    if index.filter[_scaled(spread, index.filter.size)] & bits != bits:
        return NONE
    return _number_of(tokens, at, policy.ngram_size, spread, index)


# Runs of hits -------------------------------------------------------------------------------------


@kernel
def find_runs(
    tokens: Numbers,
    offsets: Integers,
    first_document: int,
    index: Index,
    policy: Thresholds,
    runs: Integers,
    last_seen: Numbers,
    first_serial: int,
    seen: Numbers,
) -> tuple[int, int, int]:
    """Find runs of hits that may contain a match; write document, first and last position.

    Every cluster lies within one run of hits, of any records, whose gaps are no longer than a
    cluster allows. The sum of the weights of all hits in a run bounds the score of any record
    there. Returns the number of runs, the document to continue with if `runs` is full, and the
    number of n-grams in `seen`, where each occurs once per document that contains it. `last_seen`
    has the serial number of the last such document for each n-gram.
    """
    size = policy.ngram_size
    shift = _shift_for(index.pairs)
    n_runs = n_seen = 0
    n_filter = index.filter.size
    for document in range(first_document, offsets.size - 1):
        start, stop = offsets[document], offsets[document + 1]
        if stop - start < 2 * size:
            continue
        n_before = n_runs
        is_open = False
        first = last = start
        weight = need = 0.0
        # Most text lacks the token pairs of an n-gram, so that no n-gram needs to be looked up.
        n_pairs = 0
        before = np.uint64(tokens[start])
        for place in range(start - size + 2, stop - size + 1):
            token = np.uint64(tokens[place + size - 1])
            bit = _pair_bit(before, token, shift)
            before = token
            n_pairs += 1
            n_pairs *= np.int64((index.pairs[np.int64(bit >> _SIX)] >> (bit & _SIX_BITS)) & _ONE)
            if n_pairs < size - 1:
                continue
            spread = _spread(_digest(tokens, place, size))
            bits = _filter_bits(spread)
            if index.filter[_scaled(spread, n_filter)] & bits != bits:
                continue
            number = _number_of(tokens, place, size, spread, index)
            if number == NONE:
                continue
            serial = np.uint32(first_serial + document)
            if last_seen[number] != serial:
                last_seen[number] = serial
                seen[n_seen] = np.uint32(number)
                n_seen += 1
            if is_open and place - last > policy.longest_gap:
                if weight >= need * _LENIENT:
                    if n_runs == runs.shape[0]:
                        return n_before, document, n_seen
                    runs[n_runs, 0], runs[n_runs, 1] = document, first - start
                    runs[n_runs, 2] = last - start
                    n_runs += 1
                is_open = False
            if not is_open:
                is_open = True
                first = place
                weight = 0.0
                need = np.inf
            last = place
            weight += index.weight_levels[index.gram_weight[number]]
            need = min(need, index.need_levels[index.gram_need[number]])
        if is_open and weight >= need * _LENIENT:
            if n_runs == runs.shape[0]:
                return n_before, document, n_seen
            runs[n_runs, 0], runs[n_runs, 1] = document, first - start
            runs[n_runs, 2] = last - start
            n_runs += 1
    return n_runs, offsets.size - 1, n_seen


@kernel
def places_in_parts(
    grams: Numbers, index: Index, size: int, rows: Integers, parts: Integers, places: Integers
) -> int:
    """Find the first occurrence of n-grams in every benchmark that contains them.

    Writes the row of `grams`, the benchmark, and the position in the tokens of its questions.
    Returns the number of rows.
    """
    n = 0
    for row in range(grams.size):
        gram = np.int64(grams[row])
        known = np.int64(index.gram_at[gram])
        part = NONE
        start, stop = _postings_of(gram, index)
        for posting in range(start, stop):
            question = np.int64(index.postings[posting])
            if part != NONE and question < index.part_offsets[part + 1]:
                continue
            part = max(part, 0)
            while question >= index.part_offsets[part + 1]:
                part += 1
            at = index.question_offsets[question] - 1
            n_same = 0
            while n_same < size:
                at += 1
                n_same = 0
                while n_same < size and (
                    index.question_tokens[at + n_same] == index.question_tokens[known + n_same]
                ):
                    n_same += 1
            rows[n], parts[n] = row, part
            places[n] = at - index.question_offsets[index.part_offsets[part]]
            n += 1
    return n


@kernel
def _filled(n: int, value: int) -> Integers:
    """Like `np.full`, which takes ten times as long to compile."""
    array = np.empty(n, np.int64)
    for at in range(n):
        array[at] = value
    return array


# The n-grams of one text --------------------------------------------------------------------------


@kernel
def _table_for(n: int) -> Integers:
    size = 4
    while size < 2 * n:
        size *= 2
    return np.zeros(size, np.int64)


@kernel
def _enter_number(number: int, value: int, table: Integers, values: Integers) -> bool:
    """Store a value under a number; return False if the number exists."""
    mask = np.uint64(table.size - 1)
    slot = np.int64(_spread(np.uint64(number + 1)) & mask)
    while table[slot]:
        if table[slot] == number + 1:
            return False
        slot = np.int64(np.uint64(slot + 1) & mask)
    table[slot] = number + 1
    values[slot] = value
    return True


@kernel
def _value_of(number: int, table: Integers, values: Integers) -> int:
    mask = np.uint64(table.size - 1)
    slot = np.int64(_spread(np.uint64(number + 1)) & mask)
    while table[slot]:
        if table[slot] == number + 1:
            return values[slot]
        slot = np.int64(np.uint64(slot + 1) & mask)
    return NONE


@kernel
def _place_in(table: Integers, text: Numbers, size: int, tokens: Numbers, at: int) -> int:
    """Return the slot of an n-gram in the table of a text's n-grams, or a free slot.

    The table contains positions in the text, from 1.
    """
    mask = np.uint64(table.size - 1)
    slot = np.int64(_spread(_digest(tokens, at, size)) & mask)
    while table[slot]:
        known = table[slot] - 1
        is_same = True
        for step in range(size):
            if tokens[at + step] != text[known + step]:
                is_same = False
                break
        if is_same:
            break
        slot = np.int64(np.uint64(slot + 1) & mask)
    return slot


@kernel
def _enter_text(text: Numbers, size: int, table: Integers, ordinals: Integers) -> int:
    """Number a text's n-grams in order of first occurrence; return how many are distinct."""
    n = 0
    for at in range(text.size - size + 1):
        slot = _place_in(table, text, size, text, at)
        if not table[slot]:
            table[slot] = at + 1
            ordinals[slot] = n
            n += 1
    return n


@kernel
def _share(weight_of: Numbers, weights: Floats, is_found: Flags) -> float:
    """Return the weight of the found n-grams over the weight of all, both summed in order."""
    part = 0.0
    whole = 0.0
    for ordinal in range(weight_of.size):
        weight = weights[np.int64(weight_of[ordinal])]
        whole += weight
        if is_found[ordinal]:
            part += weight
    return part / whole if whole > 0 else 0.0


# Answer and passage -------------------------------------------------------------------------------


@inlined
def _find_short_answer(
    tokens: Numbers,
    q_end: int,
    answer: Numbers,
    weight_of: Numbers,
    index: Index,
    policy: Thresholds,
) -> NearMatch:
    weight = 0.0
    for at in range(weight_of.size):
        weight += index.weights[np.int64(weight_of[at])]
    if weight <= 0:
        return NearMatch(0.0, NONE, NONE)
    last = min(q_end + policy.short_answer_window, tokens.size - answer.size)
    for start in range(q_end + 1, last + 1):
        is_same = True
        for step in range(answer.size):
            if tokens[start + step] != answer[step]:
                is_same = False
                break
        if is_same:
            return NearMatch(1.0, start, start + answer.size)
    return NearMatch(0.0, NONE, NONE)


@inlined
def _find_long_answer(
    tokens: Numbers,
    q_end: int,
    answer: Numbers,
    weight_of: Numbers,
    index: Index,
    policy: Thresholds,
) -> NearMatch:
    size = policy.answer_ngram_size
    window = max(2 * answer.size, policy.long_answer_window)
    stop = min(q_end + 1 + window, tokens.size)
    table = _table_for(answer.size)
    ordinals = np.empty(table.size, np.int64)
    is_found = np.zeros(_enter_text(answer, size, table, ordinals), np.uint8)
    first = last = NONE
    for at in range(q_end + 1, stop - size + 1):
        slot = _place_in(table, answer, size, tokens, at)
        if table[slot]:
            is_found[ordinals[slot]] = 1
            last = at
            if first == NONE:
                first = at
    if first == NONE:
        return NearMatch(0.0, NONE, NONE)
    return NearMatch(_share(weight_of, index.weights, is_found), first, last + size)


@inlined
def _find_answer(
    tokens: Numbers, q_end: int, number: int, index: Index, policy: Thresholds
) -> NearMatch:
    answer = index.answer_tokens[index.answer_offsets[number] : index.answer_offsets[number + 1]]
    weight_of = index.answer_weights[
        index.answer_weight_offsets[number] : index.answer_weight_offsets[number + 1]
    ]
    if answer.size <= policy.short_answer:
        return _find_short_answer(tokens, q_end, answer, weight_of, index, policy)
    return _find_long_answer(tokens, q_end, answer, weight_of, index, policy)


@inlined
def _find_passage(
    tokens: Numbers, start: int, number: int, index: Index, policy: Thresholds
) -> NearMatch:
    passage = index.passage_tokens[
        index.passage_offsets[number] : index.passage_offsets[number + 1]
    ]
    weight_of = index.passage_weights[
        index.passage_weight_offsets[number] : index.passage_weight_offsets[number + 1]
    ]
    size = policy.passage_ngram_size
    window = max(2 * passage.size, policy.passage_distance)
    table = _table_for(passage.size)
    ordinals = np.empty(table.size, np.int64)
    is_found = np.zeros(_enter_text(passage, size, table, ordinals), np.uint8)
    first = last = NONE
    misses = 0
    at = start - 1 - size
    while at >= max(start - 1 - window, 0):
        slot = _place_in(table, passage, size, tokens, at)
        if table[slot]:
            is_found[ordinals[slot]] = 1
            first = at
            if last == NONE:
                last = at
            misses = 0
        elif last != NONE:
            misses += 1
            if misses > policy.passage_longest_gap:
                break
        at -= 1
    if last == NONE:
        return NearMatch(0.0, NONE, NONE)
    return NearMatch(_share(weight_of, index.weights, is_found), first, last + size)


# Scoring ------------------------------------------------------------------------------------------


@kernel
def _reaches(value: float, threshold: float, policy: Thresholds) -> bool:
    return value >= threshold - policy.tolerance


@kernel
def _decay(length: int, target: float, policy: Thresholds) -> float:
    if length <= policy.decay_start:
        return 1.0
    if length >= policy.decay_end:
        return target
    return 1.0 - (1.0 - target) * (length - policy.decay_start) / (
        policy.decay_end - policy.decay_start
    )


@kernel
def _base_score(
    n_grams: int,
    n_answer_tokens: int,
    has_passage: bool,
    question: float,
    answer: float,
    passage: float,
) -> float:
    """Return the weighted sum of the overlaps. 0 answer tokens: no answer."""
    has_answer = n_answer_tokens > 0
    is_answer_whole = not has_answer or answer == 1.0
    if question == 1.0 and is_answer_whole and (not has_passage or passage == 1.0):
        return 1.0
    c_q = 0.5 + 0.5 * n_grams / 20 if n_grams < 20 else 1.0
    w_q = 1.0
    w_a = 0.0
    w_p = 0.0
    if has_answer and has_passage:
        lost = 0.7 * (1 - c_q)
        of_answer = 0.2 + lost / 2
        of_passage = 0.1 + lost / 2
        c_a = 0.5 + 0.5 * n_answer_tokens / 4 if n_answer_tokens < 4 else 1.0
        w_q = 0.7 * c_q
        w_a = of_answer * c_a
        w_p = of_passage + of_answer * (1 - c_a)
    elif has_answer:
        w_q = 0.75 * c_q
        w_a = 0.25 + 0.75 * (1 - c_q)
    elif has_passage:
        w_q = 0.85 * c_q
        w_p = 0.15 + 0.85 * (1 - c_q)
    return min(1.0, w_q * question + w_a * answer + w_p * passage)


@kernel
def _penalized(base: float, length: int, policy: Thresholds) -> float:
    required = _decay(length, policy.threshold, policy)
    if base == 1.0 or required <= policy.threshold:
        return base
    return base * policy.threshold / required


@kernel
def _is_leak_of_length(base: float, length: int, policy: Thresholds) -> bool:
    """Return whether a record of that length would be indexed and reach the threshold."""
    score = _penalized(base, length, policy)
    return length >= policy.least_tokens and _reaches(score, policy.threshold, policy)


@kernel
def _is_question_only(
    n_grams: int,
    n_tokens: int,
    n_answer_tokens: int,
    has_passage: bool,
    overlap: float,
    passage: NearMatch,
    policy: Thresholds,
) -> bool:
    """Return whether a record whose question passed would be a leak without its answer."""
    if n_answer_tokens == 0 and not has_passage:
        return False
    if _is_leak_of_length(overlap, n_tokens, policy):
        return True
    if n_answer_tokens == 0 or passage.start == NONE:
        return False
    base = _base_score(n_grams, 0, True, overlap, 0.0, passage.overlap)
    return _is_leak_of_length(base, n_tokens + passage.stop - passage.start, policy)


@inlined
def _judge(
    tokens: Numbers,
    document: int,
    question: int,
    bounds: Integers,
    n_matched: int,
    overlap: float,
    index: Index,
    policy: Thresholds,
    whole: Integers,
    scores: Floats,
    n_out: int,
) -> int:
    """Write the matches of a cluster, one for each record with the question.

    `bounds` are those of the cluster, then narrower ones. Returns the number of matches, including
    those that did not fit.
    """
    size = policy.ngram_size
    n_tokens = index.question_offsets[question + 1] - index.question_offsets[question]
    n_grams = index.question_gram_offsets[question + 1] - index.question_gram_offsets[question]
    passage_before = NONE
    passage = NearMatch(0.0, NONE, NONE)
    for at in range(index.entry_offsets[question], index.entry_offsets[question + 1]):
        entry = np.int64(index.entries[at])
        answer_number = np.int64(index.entry_answer[entry])
        passage_number = np.int64(index.entry_passage[entry])
        answer = NearMatch(0.0, NONE, NONE)
        length = n_tokens
        n_answer_tokens = 0
        if answer_number != NONE:
            n_answer_tokens = index.answer_different[answer_number]
            length += n_answer_tokens
            q_end_before = NONE
            for number in range(bounds.shape[0]):
                start, end = bounds[number, 0], bounds[number, 1]
                q_end = end + size - 1 - max(0, end + size - start - n_tokens)
                if q_end == q_end_before:
                    continue
                q_end_before = q_end
                found = _find_answer(tokens, q_end, answer_number, index, policy)
                if found.overlap > answer.overlap:
                    answer = found
        if passage_number == NONE:
            passage = NearMatch(0.0, NONE, NONE)
        else:
            length += (
                index.passage_offsets[passage_number + 1] - index.passage_offsets[passage_number]
            )
            if passage_number != passage_before:
                passage = NearMatch(0.0, NONE, NONE)
                start_before = NONE
                for number in range(bounds.shape[0]):
                    if bounds[number, 0] == start_before:
                        continue
                    start_before = bounds[number, 0]
                    found = _find_passage(tokens, start_before, passage_number, index, policy)
                    if found.overlap > passage.overlap:
                        passage = found
        passage_before = passage_number
        base = _base_score(
            n_grams,
            n_answer_tokens,
            passage_number != NONE,
            overlap,
            answer.overlap,
            passage.overlap,
        )
        score = _penalized(base, length, policy)
        if not _reaches(score, policy.threshold, policy) and not (
            policy.keep_question_only
            and _is_question_only(
                n_grams,
                n_tokens,
                n_answer_tokens,
                passage_number != NONE,
                overlap,
                passage,
                policy,
            )
        ):
            continue
        if n_out < whole.shape[0]:
            whole[n_out, DOCUMENT] = document
            whole[n_out, ENTRY] = entry
            whole[n_out, START] = bounds[0, 0]
            whole[n_out, END] = bounds[0, 1]
            whole[n_out, N_MATCHED] = n_matched
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
def _has_answer_or_passage(question: int, index: Index) -> bool:
    """Return whether a record with the question has an answer or a passage."""
    for at in range(index.entry_offsets[question], index.entry_offsets[question + 1]):
        entry = np.int64(index.entries[at])
        if index.entry_answer[entry] != NONE or index.entry_passage[entry] != NONE:
            return True
    return False


@inlined
def _passes(overlap: float, question: int, index: Index, policy: Thresholds) -> bool:
    n_tokens = index.question_offsets[question + 1] - index.question_offsets[question]
    required = max(policy.least_overlap, _decay(n_tokens, policy.least_overlap, policy))
    return _reaches(overlap, required, policy)


@kernel
def _grams_of_question(
    question: int,
    index: Index,
    policy: Thresholds,
    table: Integers,
    values: Integers,
    grams: Integers,
) -> None:
    """Compute a question's n-grams in order of first occurrence, and a table of their ordinals.

    Stored for every question, they would be a tenth of the index; few questions are ever scored.
    """
    n = 0
    for at in range(
        index.question_offsets[question],
        index.question_offsets[question + 1] - policy.ngram_size + 1,
    ):
        number = _gram_at(index.question_tokens, at, index, policy)
        if _enter_number(number, n, table, values):
            grams[n] = number
            n += 1


@kernel
def mark_matched(
    tokens: Numbers,
    offsets: Integers,
    whole: Integers,
    questions: Integers,
    index: Index,
    policy: Thresholds,
    bit_offsets: Integers,
    bits: Flags,
) -> None:
    """Set a byte per n-gram of every match's question to 1 if it was found. `bits`: zeros."""
    for row in range(questions.size):
        question = questions[row]
        first = index.question_gram_offsets[question]
        grams_of_question = np.empty(index.question_gram_offsets[question + 1] - first, np.int64)
        table = _table_for(grams_of_question.size)
        values = np.empty(table.size, np.int64)
        _grams_of_question(question, index, policy, table, values, grams_of_question)
        document = whole[row, DOCUMENT]
        text = tokens[offsets[document] : offsets[document + 1]]
        for at in range(whole[row, START], whole[row, END] + 1):
            gram = _gram_at(text, at, index, policy)
            if gram != NONE:
                ordinal = _value_of(gram, table, values)
                if ordinal != NONE:
                    bits[bit_offsets[row] + ordinal] = 1


@kernel
def base_scores(
    n_grams: Integers,
    n_answer_tokens: Integers,
    has_passage: Flags,
    overlaps: Floats,
    scores: Floats,
) -> None:
    """Compute weighted sums of overlaps; columns of `overlaps`: question, answer, passage."""
    for row in range(scores.size):
        scores[row] = _base_score(
            n_grams[row],
            n_answer_tokens[row],
            has_passage[row] != 0,
            overlaps[row, 0],
            overlaps[row, 1],
            overlaps[row, 2],
        )


# Exhaustive ---------------------------------------------------------------------------------------


@kernel
def _narrower(
    places: Integers, ordinals: Integers, is_cold: Flags, n_grams: int, longest_gap: int
) -> Integers:
    """Return the bounds that sampled search could give a cluster, starting from each of its hits.

    The first are those of the cluster. In sampled search a repeated hit does not reset the misses.
    """
    n = places.size
    bounds = np.empty((n + 1, 2), np.int64)
    bounds[0, 0], bounds[0, 1] = places[0], places[n - 1]
    n_bounds = 1
    # Too few misses in total to end any walk. Saves time in very long repetitive texts.
    if places[n - 1] - places[0] + 1 - n < longest_gap:
        return bounds[:1]
    seen = _filled(n_grams, NONE)
    for seed in range(n):
        if not is_cold[ordinals[seed]]:
            continue
        seen[ordinals[seed]] = seed
        start = end = seed
        misses = 0
        for at in range(seed - 1, -1, -1):
            misses += places[at + 1] - places[at] - 1
            if misses >= longest_gap:
                break
            if seen[ordinals[at]] != seed:
                seen[ordinals[at]] = seed
                misses = 0
            start = at
        misses = 0
        for at in range(seed + 1, n):
            misses += places[at] - places[at - 1] - 1
            if misses >= longest_gap:
                break
            if seen[ordinals[at]] != seed:
                seen[ordinals[at]] = seed
                misses = 0
            end = at
        if bounds[n_bounds - 1, 0] != places[start] or bounds[n_bounds - 1, 1] != places[end]:
            bounds[n_bounds, 0], bounds[n_bounds, 1] = places[start], places[end]
            n_bounds += 1
    return bounds[:n_bounds]


@inlined
def _judge_question(
    tokens: Numbers,
    document: int,
    question: int,
    hit_places: Integers,
    hit_grams: Integers,
    index: Index,
    policy: Thresholds,
    whole: Integers,
    scores: Floats,
    n_out: int,
) -> int:
    """Score all clusters of one question in a run of hits."""
    first = index.question_gram_offsets[question]
    n_grams = index.question_gram_offsets[question + 1] - first
    table = _table_for(n_grams)
    values = np.empty(table.size, np.int64)
    is_cold = np.empty(n_grams, np.uint8)
    weight_of = index.question_weights[first : first + n_grams]
    grams = np.empty(n_grams, np.int64)
    _grams_of_question(question, index, policy, table, values, grams)
    for ordinal in range(n_grams):
        is_cold[ordinal] = not index.is_hot[np.int64(weight_of[ordinal])]
    places = np.empty(hit_places.size, np.int64)
    ordinals = np.empty(hit_places.size, np.int64)
    n = 0
    for at in range(hit_places.size):
        ordinal = _value_of(hit_grams[at], table, values)
        if ordinal != NONE:
            places[n], ordinals[n] = hit_places[at], ordinal
            n += 1
    has_answer_or_passage = _has_answer_or_passage(question, index)
    is_found = np.empty(n_grams, np.uint8)
    start = 0
    while start < n:
        stop = start + 1
        while stop < n and places[stop] - places[stop - 1] <= policy.longest_gap:
            stop += 1
        for ordinal in range(n_grams):
            is_found[ordinal] = 0
        n_matched = 0
        is_any_cold = False
        for at in range(start, stop):
            ordinal = ordinals[at]
            if not is_found[ordinal]:
                is_found[ordinal] = 1
                n_matched += 1
                is_any_cold = is_any_cold or is_cold[ordinal] != 0
        overlap = _share(weight_of, index.weights, is_found)
        if is_any_cold and _passes(overlap, question, index, policy):
            bounds = np.empty((1, 2), np.int64)
            bounds[0, 0], bounds[0, 1] = places[start], places[stop - 1]
            if has_answer_or_passage:
                bounds = _narrower(
                    places[start:stop], ordinals[start:stop], is_cold, n_grams, policy.longest_gap
                )
            n_out = _judge(
                tokens,
                document,
                question,
                bounds,
                n_matched,
                overlap,
                index,
                policy,
                whole,
                scores,
                n_out,
            )
        start = stop
    return n_out


@kernel
def judge_exhaustive(
    tokens: Numbers,
    offsets: Integers,
    runs: Integers,
    first_run: int,
    index: Index,
    policy: Thresholds,
    sums: Floats,
    whole: Integers,
    scores: Floats,
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
        hit_places = np.empty(last - first + 1, np.int64)
        hit_grams = np.empty(last - first + 1, np.int64)
        n_hits = 0
        for at in range(first, last + 1):
            number = _gram_at(text, at, index, policy)
            if number != NONE:
                hit_places[n_hits], hit_grams[n_hits] = at, number
                n_hits += 1
        hit_places, hit_grams = hit_places[:n_hits], hit_grams[:n_hits]
        # An upper bound for each question, before any is scored.
        table = _table_for(n_hits)
        values = np.empty(table.size, np.int64)
        n_touched = 0
        for at in range(n_hits):
            number = hit_grams[at]
            if not _enter_number(number, 0, table, values):
                continue
            weight = index.weight_levels[index.gram_weight[number]]
            start, stop = _postings_of(number, index)
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
                n_out = _judge_question(
                    text,
                    document,
                    question,
                    hit_places,
                    hit_grams,
                    index,
                    policy,
                    whole,
                    scores,
                    n_out,
                )
        if n_out > whole.shape[0]:
            return n_before, run
    return n_out, runs.shape[0]


# Sampled ------------------------------------------------------------------------------------------


@kernel
def _ordinal_of(gram: int, grams: Integers) -> int:
    """Return the ordinal of an n-gram among those of a question that contains it."""
    ordinal = 0
    while grams[ordinal] != gram:
        ordinal += 1
    return ordinal


@kernel
def _first_at_least(numbers: Numbers, start: int, stop: int, least: int) -> int:
    """Return the first position at which ascending numbers reach a value."""
    while start < stop:
        middle = (start + stop) // 2
        if np.int64(numbers[middle]) < least:
            start = middle + 1
        else:
            stop = middle
    return start


@kernel
def _walk(
    grams: Integers,
    posting_starts: Integers,
    posting_stops: Integers,
    position: int,
    step: int,
    trace_of: Integers,
    trace_question: Integers,
    trace_start: Integers,
    trace_end: Integers,
    flag_offsets: Integers,
    trace_grams: Integers,
    flags: Flags,
    index: Index,
    longest_gap: int,
) -> int:
    """Walk in one direction until all records have ended; return the last position or `NONE`."""
    n = trace_question.size
    is_active = _filled(n, 1)
    misses = np.zeros(n, np.int64)
    hit_at = _filled(n, NONE)
    n_active = n
    last = NONE
    while n_active and 0 <= position < grams.size:
        last = position
        gram = grams[position]
        for posting in range(posting_starts[position], posting_stops[position]):
            question = np.int64(index.postings[posting])
            trace = trace_of[question] - 1
            if trace < 0 or not is_active[trace]:
                continue
            hit_at[trace] = position
            flag = flag_offsets[trace] + _ordinal_of(gram, trace_grams[flag_offsets[trace] :])
            if not flags[flag]:
                flags[flag] = 1
                misses[trace] = 0
            trace_start[trace] = min(trace_start[trace], position)
            trace_end[trace] = max(trace_end[trace], position)
        for trace in range(n):
            if is_active[trace] and hit_at[trace] != position:
                misses[trace] += 1
                if misses[trace] >= longest_gap:
                    is_active[trace] = 0
                    n_active -= 1
        position += step
    return last


@kernel
def _is_hot(gram: int, question: int, index: Index, policy: Thresholds) -> bool:
    """Return whether an n-gram is too common in this question's part to start a cluster."""
    first, stop = index.question_gram_offsets[question], index.question_gram_offsets[question + 1]
    grams_of_question = np.empty(stop - first, np.int64)
    table = _table_for(grams_of_question.size)
    _grams_of_question(
        question, index, policy, table, np.empty(table.size, np.int64), grams_of_question
    )
    return (
        index.is_hot[np.int64(index.question_weights[first + _ordinal_of(gram, grams_of_question)])]
        != 0
    )


@kernel
def _judge_sampled(
    tokens: Numbers,
    document: int,
    grams: Integers,
    part: int,
    index: Index,
    policy: Thresholds,
    trace_of: Integers,
    whole: Integers,
    scores: Floats,
    n_out: int,
) -> int:
    """Probe every m-th position of a document for one benchmark; continue after each cluster."""
    low, high = index.part_offsets[part], index.part_offsets[part + 1]
    posting_starts = np.zeros(grams.size, np.int64)
    posting_stops = np.zeros(grams.size, np.int64)
    for at in range(grams.size):
        if grams[at] != NONE:
            start, stop = _postings_of(grams[at], index)
            posting_starts[at] = _first_at_least(index.postings, start, stop, low)
            posting_stops[at] = _first_at_least(index.postings, start, stop, high)
    position = 0
    while position < grams.size:
        start, n = posting_starts[position], posting_stops[position] - posting_starts[position]
        if n == 0:
            position += policy.sample_every
            continue
        if _is_hot(grams[position], np.int64(index.postings[start]), index, policy):
            position += 1
            continue
        questions = np.empty(n, np.int64)
        flag_offsets = np.zeros(n + 1, np.int64)
        for trace in range(n):
            question = np.int64(index.postings[start + trace])
            questions[trace] = question
            trace_of[question] = trace + 1
            flag_offsets[trace + 1] = flag_offsets[trace] + (
                index.question_gram_offsets[question + 1] - index.question_gram_offsets[question]
            )
        trace_grams = np.empty(flag_offsets[n], np.int64)
        for trace in range(n):
            grams_of_question = trace_grams[flag_offsets[trace] : flag_offsets[trace + 1]]
            table = _table_for(grams_of_question.size)
            values = np.empty(table.size, np.int64)
            _grams_of_question(questions[trace], index, policy, table, values, grams_of_question)
        flags = np.zeros(flag_offsets[n], np.uint8)
        for trace in range(n):
            grams_of_question = trace_grams[flag_offsets[trace] : flag_offsets[trace + 1]]
            flags[flag_offsets[trace] + _ordinal_of(grams[position], grams_of_question)] = 1
        starts = _filled(n, position)
        ends = _filled(n, position)
        last = NONE
        for step in (-1, 1):
            last = _walk(
                grams,
                posting_starts,
                posting_stops,
                position + step,
                step,
                trace_of,
                questions,
                starts,
                ends,
                flag_offsets,
                trace_grams,
                flags,
                index,
                policy.longest_gap,
            )
        for trace in range(n):
            question = questions[trace]
            trace_of[question] = 0
            is_found = flags[flag_offsets[trace] : flag_offsets[trace + 1]]
            first = index.question_gram_offsets[question]
            weight_of = index.question_weights[first : first + is_found.size]
            overlap = _share(weight_of, index.weights, is_found)
            if _passes(overlap, question, index, policy):
                n_matched = 0
                for ordinal in range(is_found.size):
                    n_matched += np.int64(is_found[ordinal])
                bounds = np.empty((1, 2), np.int64)
                bounds[0, 0], bounds[0, 1] = starts[trace], ends[trace]
                n_out = _judge(
                    tokens,
                    document,
                    question,
                    bounds,
                    n_matched,
                    overlap,
                    index,
                    policy,
                    whole,
                    scores,
                    n_out,
                )
        position = max(position, (position if last == NONE else last) + 1)
    return n_out


@kernel
def judge_sampled(
    tokens: Numbers,
    offsets: Integers,
    runs: Integers,
    first_run: int,
    index: Index,
    policy: Thresholds,
    trace_of: Integers,
    whole: Integers,
    scores: Floats,
) -> tuple[int, int]:
    """Write the matches in documents with runs of hits, walking as the reference tool does.

    `trace_of` is scratch: a zero for every question. Returns the same as `judge_exhaustive`.
    """
    n_out = 0
    n_parts = index.part_offsets.size - 1
    run = first_run
    while run < runs.shape[0]:
        document = runs[run, 0]
        text = tokens[offsets[document] : offsets[document + 1]]
        grams = np.empty(text.size - policy.ngram_size + 1, np.int64)
        has_hits = np.zeros(n_parts, np.uint8)
        for at in range(grams.size):
            grams[at] = _gram_at(text, at, index, policy)
            if grams[at] == NONE:
                continue
            part = 0
            start, stop = _postings_of(grams[at], index)
            for posting in range(start, stop):
                while np.int64(index.postings[posting]) >= index.part_offsets[part + 1]:
                    part += 1
                has_hits[part] = 1
        n_before = n_out
        for part in range(n_parts):
            if has_hits[part]:
                n_out = _judge_sampled(
                    text, document, grams, part, index, policy, trace_of, whole, scores, n_out
                )
        if n_out > whole.shape[0]:
            return n_before, run
        while run < runs.shape[0] and runs[run, 0] == document:
            run += 1
    return n_out, run
