"""The oracle of the `decon` detector, slow and simple.

It repeats everything the fast path does with dictionaries and loops, in the order of
`docs/decon-detector.md`: text to tokens, indexed records, frequencies, clusters in one document,
the decision. It shares no code with the stages and takes none of their shortcuts: where the two
differ, this one is right.

Numbers are summed in a defined order (n-grams in order of first occurrence in the field), so that
two implementations can agree to the last bit.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Protocol

from decon_core.config.policy import Policy
from decon_core.config.rounding import TOLERANCE
from tests.oracle.text import (
    THAI_TO_KHMER,
    clean,
    is_between,
    is_unspaced,
    normalized,
    split,
    without_markup,
)

EXACT_REPEAT = "exact repeat"

# The id of a character that is a word is its code point, counted from here.
FIRST_CHARACTER = 1 << 21

Tokens = tuple[int, ...]
Gram = tuple[int, ...]


class Encoder(Protocol):
    """The tokenizer methods that the detector needs."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]: ...

    def is_white_space(self, token: int) -> bool: ...


# 1. Text to tokens ------------------------------------------------------------------------------


def canonical(text: str, policy: Policy) -> str:
    """Return the cleaned text, without mark-up and with normalized words if the policy says so."""
    cleaned = clean(without_markup(text) if policy.strip_markup else text, policy.punctuation_chars)
    if not policy.normalize_unicode:
        return cleaned
    words = split(cleaned)
    return " ".join(piece for word in words for piece in normalized(word, policy.punctuation_chars))


def tokenize(text: str | None, policy: Policy, encoder: Encoder) -> Tokens:
    """Return the tokens of canonical text; none for an empty text."""
    return tokens_of(canonical(text or "", policy), policy, encoder)


def tokens_of(cleaned: str, policy: Policy, encoder: Encoder) -> Tokens:
    """Return the tokens of words, with a space before each, and of characters that are words."""
    if not cleaned:
        return ()
    if not policy.normalize_unicode:
        return tuple(encoder.encode([" " + cleaned])[0])
    tokens: list[int] = []
    for is_alone, words in groupby(cleaned.split(" "), is_character):
        if is_alone:
            tokens += [FIRST_CHARACTER + ord(word) for word in words]
        else:
            tokens += encoder.encode(["".join(f" {word}" for word in words)])[0]
    return tuple(tokens)


def is_character(word: str) -> bool:
    return len(word) == 1 and is_unspaced(word)


def grams(tokens: Tokens, size: int) -> list[Gram]:
    """Return all n-grams in order of position, with repeats."""
    return [tokens[at : at + size] for at in range(len(tokens) - size + 1)]


def unique(items: Iterable[Gram]) -> list[Gram]:
    """Return the distinct n-grams in order of first occurrence."""
    return list(dict.fromkeys(items))


# 2. The index -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Record:
    """A normalized record: a question, optionally an answer and a passage."""

    benchmark: str
    split: str
    instance: int
    question: str
    answer: str | None = None
    passage: str | None = None
    is_correct: bool | None = None
    fingerprint: str | None = None  # None: different from all others


@dataclass(frozen=True)
class Entry:
    """An indexed record, as tokens. An absent component has no tokens."""

    record: Record
    question: Tokens
    answer: Tokens
    passage: Tokens


def question_grams(entry: Entry, policy: Policy) -> list[Gram]:
    """Return the distinct question n-grams; a short question is a single short n-gram."""
    return unique(grams(entry.question, policy.ngram_size)) or [entry.question]


def has_short_answer(entry: Entry, policy: Policy) -> bool:
    return 0 < len(entry.answer) <= policy.short_answer_token_threshold


def answer_grams(entry: Entry, policy: Policy) -> list[Gram]:
    """Return the distinct n-grams of a long answer. A short one is searched as a token run."""
    if has_short_answer(entry, policy):
        return []
    return unique(grams(entry.answer, policy.answer_ngram_size))


def passage_grams(entry: Entry, policy: Policy) -> list[Gram]:
    return unique(grams(entry.passage, policy.passage_ngram_size))


def why_dropped(
    record: Record, policy: Policy, encoder: Encoder, seen: set[tuple[str, str]]
) -> str | None:
    """Return why a record cannot be indexed, or None. `seen` collects fingerprints."""
    parts = (record.passage, record.question, record.answer)
    joined = canonical(" ".join(part for part in parts if part), policy)
    tokens = tokens_of(joined, policy, encoder)
    n_visible = sum(
        token >= FIRST_CHARACTER or not encoder.is_white_space(token) for token in tokens
    )
    if n_visible < policy.eval_min_token_length:
        return "too few tokens"
    if n_different_words(joined, policy) < policy.eval_min_unique_word_count:
        return "too few different words"
    if policy.eval_dedup and record.fingerprint is not None:
        identity = (record.benchmark, record.fingerprint)
        if identity in seen:
            return EXACT_REPEAT
        seen.add(identity)
    if not canonical(record.question, policy):
        return "empty question"
    return None


def n_different_words(text: str, policy: Policy) -> int:
    """Return how many different words a canonical text has.

    The published count is that of words between spaces. With `normalize_unicode`, two characters of
    Chinese and Japanese and four of Thai, Lao, Burmese and Khmer count as a word.
    """
    words = set(text.split(" "))
    if not policy.normalize_unicode:
        return len(words)
    characters = {word for word in words if is_character(word)}
    n_fourths = sum(is_between(char, THAI_TO_KHMER) for char in characters)
    n_halves = len(characters) - n_fourths
    return len(words - characters) + math.ceil(n_halves / 2 + n_fourths / 4)


def entry_of(record: Record, policy: Policy, encoder: Encoder) -> Entry:
    return Entry(
        record=record,
        question=tokenize(record.question, policy, encoder),
        answer=tokenize(record.answer, policy, encoder) if policy.index_answers else (),
        passage=tokenize(record.passage, policy, encoder) if policy.index_passages else (),
    )


def index_records(records: Iterable[Record], policy: Policy, encoder: Encoder) -> list[Entry]:
    """Return the indexed records, tokenized, in order."""
    seen: set[tuple[str, str]] = set()
    return [
        entry_of(record, policy, encoder)
        for record in records
        if why_dropped(record, policy, encoder, seen) is None
    ]


@dataclass(frozen=True)
class Frequencies:
    """The number of records with each n-gram and token, for idf. Frequencies can be added."""

    n_records: int = 0
    question: Mapping[Gram, int] = field(default_factory=dict)
    answer: Mapping[Gram, int] = field(default_factory=dict)
    passage: Mapping[Gram, int] = field(default_factory=dict)
    # Number of fields (question, answer, passage of any record) with a token.
    token: Mapping[int, int] = field(default_factory=dict)

    def __add__(self, other: Frequencies) -> Frequencies:
        return Frequencies(
            self.n_records + other.n_records,
            Counter(self.question) + Counter(other.question),
            Counter(self.answer) + Counter(other.answer),
            Counter(self.passage) + Counter(other.passage),
            Counter(self.token) + Counter(other.token),
        )

    def idf(self, document_frequency: int) -> float:
        return math.log(self.n_records / document_frequency)


def count(entries: Iterable[Entry], policy: Policy) -> Frequencies:
    """Count the frequencies of a set of indexed records."""
    n_records = 0
    question: Counter[Gram] = Counter()
    answer: Counter[Gram] = Counter()
    passage: Counter[Gram] = Counter()
    token: Counter[int] = Counter()
    for entry in entries:
        n_records += 1
        question.update(question_grams(entry, policy))
        answer.update(answer_grams(entry, policy))
        passage.update(passage_grams(entry, policy))
        for component in (entry.question, entry.answer, entry.passage):
            token.update(set(component))
    return Frequencies(n_records, question, answer, passage, token)


@dataclass(frozen=True)
class Index:
    """The records with each n-gram, and the frequencies for idf."""

    entries: Sequence[Entry]
    frequencies: Frequencies
    policy: Policy
    postings: Mapping[Gram, Sequence[int]]

    def is_hot(self, gram: Gram) -> bool:
        """Return whether an n-gram is too common among the records to start a cluster."""
        limit = max(self.policy.hot_ngram_records, 2 * math.isqrt(self.frequencies.n_records))
        return self.frequencies.question[gram] > limit


def build_index(
    entries: Sequence[Entry], policy: Policy, frequencies: Frequencies | None = None
) -> Index:
    """Build an index of these entries, optionally with the frequencies of a snapshot."""
    postings: defaultdict[Gram, list[int]] = defaultdict(list)
    for number, entry in enumerate(entries):
        for gram in question_grams(entry, policy):
            postings[gram].append(number)
    frequencies = frequencies or count(entries, policy)
    n = frequencies.n_records
    if postings and all(frequencies.question[gram] >= n for gram in postings):
        # No n-gram says which record it is of, so all weigh the same.
        frequencies = replace(frequencies, n_records=2 * n)
    return Index(entries, frequencies, policy, dict(postings))


# 3. Clusters in one document --------------------------------------------------------------------


@dataclass(frozen=True)
class Cluster:
    """A cluster of one record's question n-grams in a document."""

    number: int  # of the entry
    matched: frozenset[Gram]
    start: int  # first and last n-gram position
    end: int


@dataclass
class _Trace:
    """The state of a walk for one record."""

    matched: set[Gram]
    start: int
    end: int
    misses: int = 0


def expand(document: Sequence[Gram], seed: int, numbers: Iterable[int], index: Index) -> _Expansion:
    """Grow clusters from the n-gram at `seed` to both sides, for these records with it."""
    traces = {number: _Trace({document[seed]}, seed, seed) for number in numbers}
    _walk(document, range(seed - 1, -1, -1), traces, index)
    for trace in traces.values():
        trace.misses = 0  # matches and boundaries stay
    last = _walk(document, range(seed + 1, len(document)), traces, index)
    clusters = [
        Cluster(number, frozenset(trace.matched), trace.start, trace.end)
        for number, trace in sorted(traces.items())
    ]
    return _Expansion(clusters, seed if last is None else last)


@dataclass(frozen=True)
class _Expansion:
    clusters: list[Cluster]
    right_end: int  # last position of the walk to the right


def _walk(
    document: Sequence[Gram], positions: range, traces: dict[int, _Trace], index: Index
) -> int | None:
    """Walk until all records have too many misses; return the last position, if any."""
    active = set(traces)
    last = None
    for position in positions:
        if not active:
            break
        last = position
        gram = document[position]
        shared = active.intersection(index.postings.get(gram, ()))
        for number in shared:
            trace = traces[number]
            if gram not in trace.matched:
                trace.matched.add(gram)
                trace.misses = 0
            trace.start = min(trace.start, position)
            trace.end = max(trace.end, position)
        for number in active - shared:
            traces[number].misses += 1
        limit = index.policy.question_max_consecutive_misses
        active -= {number for number in active - shared if traces[number].misses >= limit}
    return last


def sampled_clusters(document: Sequence[Gram], index: Index) -> Iterator[Cluster]:
    """Search as AI2's decon does: probe every m-th position, continue after each cluster."""
    position = 0
    while position < len(document):
        gram = document[position]
        if gram not in index.postings:
            position += index.policy.sample_every_m_tokens
        elif index.is_hot(gram):
            position += 1
        else:
            expansion = expand(document, position, index.postings[gram], index)
            yield from expansion.clusters
            position = max(position, expansion.right_end + 1)


def exhaustive_clusters(document: Sequence[Gram], index: Index) -> Iterator[Cluster]:
    """Search from every position, following each record separately.

    Any hit of a record, new or not, extends its cluster. So a cluster is a maximal run of hits with
    fewer than `question_max_consecutive_misses` positions between neighbours, and it needs one hit
    that is not hot. It contains every cluster that a sampled seed inside it could have grown.
    """
    hits: defaultdict[int, list[int]] = defaultdict(list)
    for position, gram in enumerate(document):
        for number in index.postings.get(gram, ()):
            hits[number].append(position)
    for number in sorted(hits):
        for run in _runs(hits[number], index.policy.question_max_consecutive_misses):
            matched = frozenset(document[position] for position in run)
            if not all(index.is_hot(gram) for gram in matched):
                yield Cluster(number, matched, run[0], run[-1])


def _runs(positions: Sequence[int], longest_step: int) -> Iterator[list[int]]:
    run: list[int] = []
    for position in positions:
        if run and position - run[-1] > longest_step:
            yield run
            run = []
        run.append(position)
    if run:
        yield run


def narrower_clusters(
    document: Sequence[Gram], cluster: Cluster, index: Index
) -> list[tuple[int, int]]:
    """Return the bounds that sampled search would grow from the seeds in an exhaustive cluster.

    Sampled search ends a record after too many misses even if repeated n-grams follow, so its
    clusters may be narrower; the end of the question determines where an answer is searched.
    """
    found = []
    for seed in range(cluster.start, cluster.end + 1):
        gram = document[seed]
        if cluster.number in index.postings.get(gram, ()) and not index.is_hot(gram):
            grown = expand(document, seed, [cluster.number], index).clusters[0]
            found.append((grown.start, grown.end))
    return list(dict.fromkeys(found))


# 4. From cluster to match -----------------------------------------------------------------------


def decay(length: int, target: float, policy: Policy) -> float:
    """Return 1.0 for short texts, `target` for long ones, and interpolate linearly between."""
    start, end = policy.perfect_match_decay_start, policy.perfect_match_decay_end
    if length <= start:
        return 1.0
    if length >= end:
        return target
    return 1.0 - (1.0 - target) * (length - start) / (end - start)


def reaches(value: float, threshold: float) -> bool:
    """Return whether a value is at least the threshold, up to rounding errors."""
    return value >= threshold - TOLERANCE


def least_question_overlap(policy: Policy) -> float:
    """Return the overlap below which not even a perfect answer and passage reach the threshold."""
    return max(0.0, (policy.contamination_score_threshold - 0.3) / 0.7)


def share_of_idf(
    wanted: Sequence[Gram],
    found: Iterable[Gram],
    frequency: Mapping[Gram, int],
    frequencies: Frequencies,
) -> float:
    """Return the idf of the found n-grams over the idf of all wanted; 0.0 without any weight."""
    found = set(found)
    part = whole = 0.0
    for gram in wanted:
        weight = frequencies.idf(frequency[gram])
        whole += weight
        if gram in found:
            part += weight
    return part / whole if whole > 0 else 0.0


@dataclass(frozen=True)
class NearMatch:
    """The overlap of an answer or a passage near the question, and its token range."""

    overlap: float = 0.0
    start: int = -1
    stop: int = -1


NOT_FOUND = NearMatch()


def question_end(start: int, end: int, question: Tokens, policy: Policy) -> int:
    """Return the last token of the question; a longer cluster may already contain the answer."""
    cluster_tokens = end + policy.ngram_size - start
    excess = max(0, cluster_tokens - len(question))
    return end + policy.ngram_size - 1 - excess


def find_short_answer(tokens: Tokens, q_end: int, entry: Entry, index: Index) -> NearMatch:
    """Find the answer as an exact token run that starts soon after the question."""
    frequencies = index.frequencies
    weight = 0.0
    for token in dict.fromkeys(entry.answer):  # not sum(): Python 3.12 rounds differently
        weight += frequencies.idf(frequencies.token[token])
    if weight <= 0:
        return NOT_FOUND
    size = len(entry.answer)
    for start in range(q_end + 1, q_end + 1 + index.policy.short_answer_window_length):
        if tokens[start : start + size] == entry.answer:
            return NearMatch(1.0, start, start + size)
    return NOT_FOUND


def find_long_answer(tokens: Tokens, q_end: int, entry: Entry, index: Index) -> NearMatch:
    """Find the share of the answer's n-grams in a window right after the question."""
    policy = index.policy
    size = policy.answer_ngram_size
    window = max(2 * len(entry.answer), policy.min_long_answer_window)
    stop = min(q_end + 1 + window, len(tokens))
    wanted = answer_grams(entry, policy)
    wanted_set = set(wanted)
    positions = [
        at for at in range(q_end + 1, stop - size + 1) if tokens[at : at + size] in wanted_set
    ]
    if not positions:
        return NOT_FOUND
    found = {tokens[at : at + size] for at in positions}
    overlap = share_of_idf(wanted, found, index.frequencies.answer, index.frequencies)
    return NearMatch(overlap, positions[0], positions[-1] + size)


def find_answer(tokens: Tokens, q_end: int, entry: Entry, index: Index) -> NearMatch:
    if has_short_answer(entry, index.policy):
        return find_short_answer(tokens, q_end, entry, index)
    return find_long_answer(tokens, q_end, entry, index)


def find_passage(tokens: Tokens, start: int, entry: Entry, index: Index) -> NearMatch:
    """Find the share of the passage's n-grams when walking left from the question."""
    policy = index.policy
    size = policy.passage_ngram_size
    window = max(2 * len(entry.passage), policy.min_passage_distance)
    wanted = passage_grams(entry, policy)
    wanted_set = set(wanted)
    positions: list[int] = []
    misses = 0
    for at in range(start - 1 - size, max(start - 1 - window, 0) - 1, -1):
        if tokens[at : at + size] in wanted_set:
            positions.append(at)
            misses = 0
        elif positions:
            misses += 1
            if misses > policy.passage_max_consecutive_misses:
                break
    if not positions:
        return NOT_FOUND
    found = {tokens[at : at + size] for at in positions}
    overlap = share_of_idf(wanted, found, index.frequencies.passage, index.frequencies)
    return NearMatch(overlap, positions[-1], positions[0] + size)


# 5. The score -----------------------------------------------------------------------------------


def question_confidence(n_unique_grams: int) -> float:
    return 0.5 + 0.5 * n_unique_grams / 20 if n_unique_grams < 20 else 1.0


def answer_confidence(n_unique_tokens: int) -> float:
    return 0.5 + 0.5 * n_unique_tokens / 4 if n_unique_tokens < 4 else 1.0


def weights(entry: Entry, policy: Policy) -> tuple[float, float, float]:
    """Return the weights of question, answer, passage; low confidence shifts them to others."""
    c_q = question_confidence(len(question_grams(entry, policy)))
    if entry.answer and entry.passage:
        lost = 0.7 * (1 - c_q)
        answer, passage = 0.2 + lost / 2, 0.1 + lost / 2
        c_a = answer_confidence(len(set(entry.answer)))
        return 0.7 * c_q, answer * c_a, passage + answer * (1 - c_a)
    if entry.answer:
        return 0.75 * c_q, 0.25 + 0.75 * (1 - c_q), 0.0
    if entry.passage:
        return 0.85 * c_q, 0.0, 0.15 + 0.85 * (1 - c_q)
    return 1.0, 0.0, 0.0


def base_score(
    entry: Entry, question: float, answer: float, passage: float, policy: Policy
) -> float:
    """Return the weighted overlaps, before the length penalty."""
    present = [question]
    present += [answer] if entry.answer else []
    present += [passage] if entry.passage else []
    if all(overlap == 1.0 for overlap in present):
        return 1.0  # exactly, without the rounding of a weighted sum
    w_q, w_a, w_p = weights(entry, policy)
    return min(1.0, w_q * question + w_a * answer + w_p * passage)


def total_length(entry: Entry) -> int:
    """Return the tokens of question and passage, plus the distinct tokens of the answer."""
    return len(entry.question) + len(set(entry.answer)) + len(entry.passage)


def penalized(score: float, length: int, policy: Policy) -> float:
    """Scale down the score of a short item unless it is perfect."""
    threshold = policy.contamination_score_threshold
    required = decay(length, threshold, policy)
    if score == 1.0 or required <= threshold:
        return score
    return score * threshold / required


# 6. Questions without their answer ---------------------------------------------------------------


def is_no_answer(entry: Entry, question: float, passage: NearMatch, policy: Policy) -> bool:
    """Return whether a record whose question passed would be a leak without its answer.

    For a record that is no leak. Its question is scored as a separate record; if it has an answer
    and a passage, so are its question and passage, with as much of the passage as the document
    contains.
    """
    if not entry.answer and not entry.passage:
        return False
    if _is_leak_of_length(question, len(entry.question), policy):
        return True
    if not entry.answer or passage == NOT_FOUND:
        return False
    base = base_score(replace(entry, answer=()), question, 0.0, passage.overlap, policy)
    length = len(entry.question) + passage.stop - passage.start
    return _is_leak_of_length(base, length, policy)


def _is_leak_of_length(base: float, length: int, policy: Policy) -> bool:
    """Return whether a record of that length would be indexed and reach the threshold."""
    is_indexed = length >= policy.eval_min_token_length
    score = penalized(base, length, policy)
    return is_indexed and reaches(score, policy.contamination_score_threshold)


# 7. Reported matches ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Match:
    """One record found at one position of one document."""

    number: int  # of the entry
    start: int  # n-gram positions, both included
    end: int
    n_matched: int
    question_overlap: float
    answer: NearMatch
    passage: NearMatch
    base_score: float
    score: float
    is_no_answer: bool = False  # else a leak


def call(tokens: Tokens, document: Sequence[Gram], cluster: Cluster, index: Index) -> Match | None:
    """Return the match of a cluster if it is a leak, or no answer and these are kept."""
    policy = index.policy
    entry = index.entries[cluster.number]
    wanted = question_grams(entry, policy)
    overlap = share_of_idf(wanted, cluster.matched, index.frequencies.question, index.frequencies)
    least = least_question_overlap(policy)
    required = max(least, decay(len(entry.question), least, policy))
    if not reaches(overlap, required):
        return None

    bounds = [(cluster.start, cluster.end)]
    if policy.sampling == "exhaustive" and (entry.answer or entry.passage):
        bounds += narrower_clusters(document, cluster, index)
    answer = passage = NOT_FOUND
    for start, end in bounds:
        if entry.answer:
            q_end = question_end(start, end, entry.question, policy)
            answer = _better(answer, find_answer(tokens, q_end, entry, index))
        if entry.passage:
            passage = _better(passage, find_passage(tokens, start, entry, index))

    base = base_score(entry, overlap, answer.overlap, passage.overlap, policy)
    score = penalized(base, total_length(entry), policy)
    is_leak = reaches(score, policy.contamination_score_threshold)
    is_without_answer = not is_leak and is_no_answer(entry, overlap, passage, policy)
    if not is_leak and not (policy.keep_no_answer and is_without_answer):
        return None
    return Match(
        number=cluster.number,
        start=cluster.start,
        end=cluster.end,
        n_matched=len(cluster.matched),
        question_overlap=overlap,
        answer=answer,
        passage=passage,
        base_score=base,
        score=score,
        is_no_answer=is_without_answer,
    )


def _better(first: NearMatch, second: NearMatch) -> NearMatch:
    return second if second.overlap > first.overlap else first


def detect(tokens: Tokens, index: Index) -> list[Match]:
    """Return the matches in a document, one per cluster, by position and record."""
    policy = index.policy
    if len(tokens) < 2 * policy.ngram_size:
        return []
    document = grams(tokens, policy.ngram_size)
    clusters = sampled_clusters if policy.sampling == "reference" else exhaustive_clusters
    found = [call(tokens, document, cluster, index) for cluster in clusters(document, index)]
    best: dict[tuple[int, int, int], Match] = {}
    for match in filter(None, found):  # two seeds may grow to the same bounds
        place = (match.start, match.number, match.end)
        if place not in best or match.score > best[place].score:
            best[place] = match
    return [best[place] for place in sorted(best)]


def report(matches: Iterable[Match], index: Index) -> list[Match]:
    """Return one match per benchmark item and position.

    Preferred are leaks, then the highest score, the correct choice, the first record.
    """
    best: dict[tuple[str, str, int, int], Match] = {}

    def rank(match: Match) -> tuple[bool, float, bool, int]:
        is_correct = index.entries[match.number].record.is_correct
        return not match.is_no_answer, match.score, is_correct is True, -match.number

    for match in matches:
        record = index.entries[match.number].record
        item = (record.benchmark, record.split, record.instance, match.start)
        if item not in best or rank(match) > rank(best[item]):
            best[item] = match
    return list(best.values())
