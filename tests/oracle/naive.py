"""The specification a second time, from its words alone: clusters and scores on plain tuples.

Nothing here imports `decon_core`: this file was written before its author had read the oracle, so
that the two cannot share a misreading by copying one. It is quadratic and proud of it.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

Tokens = tuple[int, ...]

QUESTION_SIZE = 5
ANSWER_SIZE = 3
PASSAGE_SIZE = 4


class Cluster(NamedTuple):
    """What one record matched in one stretch; `start` and `end` are n-gram positions, both in."""

    record: int
    grams: frozenset[Tokens]
    start: int
    end: int


@dataclass(frozen=True)
class Item:
    """A record as token runs; an absent component is the empty run."""

    question: Tokens
    answer: Tokens = ()
    passage: Tokens = ()


def grams(tokens: Tokens, size: int) -> list[Tokens]:
    """Every n-gram in order; a run shorter than `size` is one n-gram of all its tokens."""
    if len(tokens) < size:
        return [tokens] if tokens else []
    return [tokens[i : i + size] for i in range(len(tokens) - size + 1)]


@lru_cache(maxsize=1000)
def _held(question: Tokens) -> frozenset[Tokens]:
    return frozenset(grams(question, QUESTION_SIZE))


def holders(questions: list[Tokens], gram: Tokens) -> frozenset[int]:
    """The records whose question holds `gram`."""
    return frozenset(r for r, question in enumerate(questions) if gram in _held(question))


def is_hot(questions: list[Tokens], gram: Tokens, *, hot_records: int) -> bool:
    """Held by more records than max(`hot_records`, 2 * floor(sqrt(N)))."""
    return len(holders(questions, gram)) > max(hot_records, 2 * math.isqrt(len(questions)))


def expand(
    questions: list[Tokens], document: Tokens, seed: int, *, allowed: int = 11
) -> tuple[list[Cluster], int]:
    """One cluster per record that holds the seed, and where the right walk looked last."""
    n_positions = len(document) - QUESTION_SIZE + 1
    first = holders(questions, document[seed : seed + QUESTION_SIZE])
    matched = {r: {document[seed : seed + QUESTION_SIZE]} for r in first}
    left = dict.fromkeys(first, seed)
    right = dict.fromkeys(first, seed)
    last = seed
    for walk, boundary in (
        (range(seed - 1, -1, -1), left),
        (range(seed + 1, n_positions), right),
    ):
        misses = dict.fromkeys(first, 0)
        last = seed
        for position in walk:
            if not misses:
                break
            last = position
            gram = document[position : position + QUESTION_SIZE]
            here = holders(questions, gram)
            for record in list(misses):
                if record in here:
                    boundary[record] = position
                    if gram not in matched[record]:
                        matched[record].add(gram)
                        misses[record] = 0
                else:
                    misses[record] += 1
                    if misses[record] >= allowed:
                        del misses[record]
    return [Cluster(r, frozenset(matched[r]), left[r], right[r]) for r in sorted(first)], last


def sampled(
    questions: list[Tokens],
    document: Tokens,
    *,
    step: int = 10,
    allowed: int = 11,
    hot_records: int = 2000,
) -> list[Cluster]:
    """Every cluster that the sampling scan grows, in the order in which it grows them."""
    if len(document) < 2 * QUESTION_SIZE:
        return []
    found: list[Cluster] = []
    position = 0
    while position + QUESTION_SIZE <= len(document):
        gram = document[position : position + QUESTION_SIZE]
        if not holders(questions, gram):
            position += step
        elif is_hot(questions, gram, hot_records=hot_records):
            position += 1
        else:
            clusters, last = expand(questions, document, position, allowed=allowed)
            found += clusters
            position = max(position, last + 1)
    return found


def exhaustive(
    questions: list[Tokens],
    document: Tokens,
    *,
    allowed: int = 11,
    hot_records: int = 2000,
) -> list[Cluster]:
    """Each record for itself: its hits, cut wherever `allowed` positions in a row miss.

    A run of hits with no n-gram that may seed (all hot) is no cluster.
    """
    if len(document) < 2 * QUESTION_SIZE:
        return []
    found: list[Cluster] = []
    for record in range(len(questions)):
        runs: list[list[int]] = []
        for position, gram in enumerate(grams(document, QUESTION_SIZE)):
            if record not in holders(questions, gram):
                continue
            if runs and position - runs[-1][-1] - 1 < allowed:
                runs[-1].append(position)
            else:
                runs.append([position])
        for run in runs:
            held = [document[p : p + QUESTION_SIZE] for p in run]
            if all(is_hot(questions, gram, hot_records=hot_records) for gram in held):
                continue
            found.append(Cluster(record, frozenset(held), run[0], run[-1]))
    return found


def decay(length: int, floor: float, *, start: int = 20, end: int = 50) -> float:
    if length <= start:
        return 1.0
    if length >= end:
        return floor
    return 1.0 - (1.0 - floor) * (length - start) / (end - start)


def _ratio(part: set[Tokens], whole: set[Tokens], pool: list[set[Tokens]], n: int) -> float:
    """idf of `part` over that of `whole`; df counts the members of `pool` that hold an n-gram."""

    def idf(gram: Tokens) -> float:
        return math.log(n / sum(gram in one for one in pool))

    total = math.fsum(map(idf, whole))
    return math.fsum(map(idf, part)) / total if total > 0 else 0.0


def score(
    items: list[Item],
    document: Tokens,
    cluster: Cluster,
    *,
    threshold: float = 0.8,
    decay_start: int = 20,
    decay_end: int = 50,
    short_window: int = 50,
    long_window: int = 100,
    passage_distance: int = 100,
) -> float | None:
    """The score of one cluster, or None where a gate stops it (sections 4 and 5)."""
    n = len(items)
    item = items[cluster.record]
    questions = [set(grams(one.question, QUESTION_SIZE)) for one in items]
    mine = questions[cluster.record]
    overlap = _ratio(set(cluster.grams), mine, questions, n)
    minimum = max(0.0, (threshold - 0.3) / 0.7)
    if overlap < minimum or overlap < decay(
        len(item.question), minimum, start=decay_start, end=decay_end
    ):
        return None

    cluster_tokens = cluster.end + 5 - cluster.start
    q_end = cluster.end + 4 - max(0, cluster_tokens - len(item.question))

    answer = passage = 0.0
    if len(item.answer) > 3:
        answer = _long_answer(items, document, cluster.record, q_end, long_window)
    elif item.answer:
        answer = _short_answer(items, document, cluster.record, q_end, short_window)
    if item.passage:
        passage = _passage(items, document, cluster.record, cluster.start, passage_distance)

    u, t = len(mine), len(set(item.answer))
    c_q = 1.0 if u >= 20 else 0.5 + 0.5 * u / 20
    c_a = 1.0 if t >= 4 else 0.5 + 0.5 * t / 4
    if item.answer and item.passage:
        w_q = 0.7 * c_q
        lost = 0.7 * (1 - c_q)
        w_a = (0.2 + lost / 2) * c_a
        w_p = 1.0 - w_q - w_a
    elif item.answer:
        w_q, w_a, w_p = 0.75 * c_q, 0.25 + 0.75 * (1 - c_q), 0.0
    elif item.passage:
        w_q, w_a, w_p = 0.85 * c_q, 0.0, 0.15 + 0.85 * (1 - c_q)
    else:
        w_q, w_a, w_p = 1.0, 0.0, 0.0
    value = min(1.0, w_q * overlap + w_a * answer + w_p * passage)
    length = len(item.question) + t + len(item.passage)
    required = decay(length, threshold, start=decay_start, end=decay_end)
    if required > threshold and value < 1.0 - 1e-12:
        value = value * threshold / required
    return value


def _short_answer(
    items: list[Item], document: Tokens, record: int, q_end: int, window: int
) -> float:
    answer = items[record].answer
    fields = [set(f) for one in items for f in (one.question, one.answer, one.passage) if f]
    total = math.fsum(
        math.log(len(items) / sum(token in field for field in fields)) for token in set(answer)
    )
    starts = range(q_end + 1, q_end + window + 1)
    is_there = any(document[s : s + len(answer)] == answer for s in starts)
    return 1.0 if is_there and total > 0 else 0.0


def _long_answer(items: list[Item], document: Tokens, record: int, q_end: int, least: int) -> float:
    answer = items[record].answer
    window = document[q_end + 1 : q_end + max(2 * len(answer), least) + 1]
    whole = set(grams(answer, ANSWER_SIZE))
    seen = whole & set(grams(window, ANSWER_SIZE))
    pool = [set(grams(one.answer, ANSWER_SIZE)) for one in items if len(one.answer) > 3]
    return _ratio(seen, whole, pool, len(items))


def _passage(items: list[Item], document: Tokens, record: int, start: int, distance: int) -> float:
    passage = items[record].passage
    whole = set(grams(passage, PASSAGE_SIZE))
    pool = [set(grams(one.passage, PASSAGE_SIZE)) for one in items if one.passage]
    lowest = start - 1 - max(2 * len(passage), distance)
    seen: set[Tokens] = set()
    misses = 0
    for position in range(start - 5, max(0, lowest) - 1, -1):
        gram = document[position : position + PASSAGE_SIZE]
        if gram in whole:
            seen.add(gram)
            misses = 0
        elif seen:
            misses += 1
            if misses > 2:
                break
    return _ratio(seen, whole, pool, len(items))
