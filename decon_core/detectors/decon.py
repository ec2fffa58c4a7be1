"""The `decon` detector (AI2), the default: idf-weighted n-grams of question, answer and passage.

Its kernels are in `kernels/gram_runs.py` and `clusters.py`, its method in docs/decon-detector.md,
and a slow plain twin in `tests/oracle/decon.py`. Its settings and their defaults are fields of
`Policy` (`config/policy.py`), since it is the default detector.

A match carries its overlaps and lengths, so every gate and the length penalty can be applied for
any threshold at or above the lowest recorded score.

A match that is not a leak may be of the class *no answer*: the question was found, but not
enough of the answer or passage for a leak (docs/decon-detector.md, section 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from decon_core.config.detector_registry import Reads, Threshold, register
from decon_core.config.policy import Policy
from decon_core.config.rounding import reaches
from decon_core.detectors.batch_texts import BatchTexts
from decon_core.detectors.detector import (
    ABSENT,
    Detector,
    Indexes,
    Nominations,
    Ruled,
    Search,
    column,
    firsts,
    of_needed,
)
from decon_core.detectors.visibility import RecordTexts, Unmet, first_unmet
from decon_core.kernels import clusters, gram_runs
from decon_core.kernels.arrays import Bools, Floats, Integers
from decon_core.kernels.gram_runs import Hits
from decon_core.kernels.jit import is_ready

if TYPE_CHECKING:
    import pyarrow as pa

    from decon_core.corpus.sketch.pack_sketch import PackSketch, Possible
    from decon_core.index.joined_index import Search as GramIndex
    from decon_core.kernels.arrays import Flags, Numbers, Words64
    from decon_core.kernels.ngram_filters import Rows
    from decon_core.kernels.question_index import Index
    from decon_core.text.word_cache import Ragged

_INITIAL_RUNS = 1 << 12
_INITIAL_MATCHES = 1 << 10
_MAX_SERIAL = 1 << 31
_NO_HITS = Hits(np.empty(0, np.int64), np.empty(0, np.int64), np.zeros(1, np.int64))
_SPANS = [
    clusters.START,
    clusters.END,
    clusters.ANSWER_START,
    clusters.ANSWER_STOP,
    clusters.PASSAGE_START,
    clusters.PASSAGE_STOP,
]


@dataclass(frozen=True, eq=False)
class Matches:
    """The matches of a batch: one row per document, entry and position, in that order."""

    whole: Integers  # columns: `clusters.DOCUMENT` to `clusters.PASSAGE_STOP`
    scores: Floats  # columns: `clusters.BASE` to `clusters.SCORE`
    matched: list[bytes]  # one bit per distinct question n-gram, in order of first occurrence

    def __len__(self) -> int:
        return int(self.whole.shape[0])


@register
class Decon(Detector):
    name = "decon"
    summary = "idf-weighted overlap of question, answer and passage n-grams"
    reads = Reads.INDEX
    threshold = Threshold(setting="contamination_score_threshold", floor="lowest_recorded_score")
    uses_ngram_index = True
    needed_parts = ("answer", "passage")
    finds_every_place = True
    advice = (
        "**To apply AI2's method, use `decon`.** It flagged no hard negatives and no background "
        "documents. It finds items despite changes of case, punctuation and line breaks, hyphens "
        "at line ends, HTML, links, escape sequences, accents, and control, zero-width or "
        'look-alike characters (but not with `preset = "reference"`). It needs the answer near the '
        "question. If the answer is missing or far from the question, the match is classified as "
        "`no answer`; mixtures remove such documents, too. Edits reduce its recall: with one word "
        "in twenty changed, it misses about half of the items, and with one in ten nearly all. "
        "Hyphens left over from line breaks hide a third of the items, and LaTeX with `\\href` "
        "hides an eighth."
    )

    def search(self, indexes: Indexes) -> Search:
        return ClusterSearch(indexes.grams, indexes.policy.at_floor)

    def is_bounded(self, policy: Policy) -> bool:
        del policy
        return True

    def possible_blocks(self, indexes: Indexes, sketch: PackSketch) -> Possible:
        return possible_blocks(indexes.grams, sketch)

    def rule(self, matches: pa.Table, policy: Policy, threshold: float) -> Ruled:
        """Apply the length penalty and the gates of the published rule.

        The penalty makes the score depend on the threshold. A stricter policy never adds a leak.
        """
        policy = replace(policy, contamination_score_threshold=threshold)
        overlap, lengths = column(matches, "question_overlap"), column(matches, "question_tokens")
        passes = reaches(overlap, _needed_overlap(lengths, policy))
        base = column(matches, "base_score")
        score = _penalized(base, column(matches, "total_tokens"), policy)
        is_leak = passes & reaches(score, threshold)
        is_no_answer = passes & ~is_leak & _is_leak_without_answer(matches, policy)
        return Ruled(score, is_leak, is_no_answer)

    def unmet_gates(self, entry: Mapping[str, Any], policy: Policy) -> Iterator[str]:
        needed = float(_needed_overlap(np.array([entry["question_tokens"]]), policy)[0])
        if not reaches(entry["question_overlap"], needed):
            yield f"question overlap {of_needed(entry['question_overlap'], needed)}"

    def visibility(self, texts: RecordTexts, policy: Policy) -> Unmet:
        from decon_core.index.joined_index import most_records_of_search

        limit = most_records_of_search(policy, texts.part.n_records)
        return index_visibility(texts, policy, limit)


def index_visibility(texts: RecordTexts, policy: Policy, limit: float) -> Unmet:
    """Return which records the n-gram index lacks, or has without an n-gram in so few records.

    A record that is left out as an exact repeat is as visible as the one that it repeats.
    """
    from decon_core.index.entries import EXACT_REPEAT
    from decon_core.index.entries import REASONS as WHY_DROPPED

    entries, df = texts.part.entries, texts.part.df["question"]
    question = entries.fields["question"]
    n_records, records = texts.part.n_records, entries.records

    def by_record(of_question: Bools) -> Bools:
        meets = np.ones(entries.dropped.size, np.bool_)
        meets[records] = of_question[question.of_entry]
        return meets

    dropped = ("too few different words", "too few tokens", "empty question")
    unmet = first_unmet(
        {
            **{why: entries.dropped != WHY_DROPPED.index(why) for why in dropped},
            "question too short": by_record(df.lengths > 0),
            "only very common n-grams": by_record(_any_in_rows(df.values <= limit, df.offsets)),
            "not informative enough": by_record(_any_in_rows(df.values < n_records, df.offsets)),
        }
    )
    n_tokens = np.zeros(entries.dropped.size, np.int64)
    n_tokens[records] = question.texts.lengths[question.of_entry]
    repeats = np.flatnonzero(entries.dropped == WHY_DROPPED.index(EXACT_REPEAT))
    first = texts.alike[repeats]
    unmet.places[repeats], n_tokens[repeats] = unmet.places[first], n_tokens[first]
    unmet.note_tokens(n_tokens, {"question too short": policy.ngram_size})
    names = texts.records.select(["split", "instance_index"]).take(first).to_pylist()
    for at, name in zip(repeats.tolist(), names, strict=True):
        unmet.details[at] = f"{EXACT_REPEAT} of {name['split']} {name['instance_index']}"
    return unmet


# Search -------------------------------------------------------------------------------------------


def _index_of(search: GramIndex, least_overlap: float | None) -> Index:
    """Return the index of a search, as `ClusterSearch` describes it."""
    from decon_core.index.joined_index import with_least_overlap

    return search.index if least_overlap is None else with_least_overlap(search, least_overlap)


def possible_blocks(
    search: GramIndex, sketch: PackSketch, *, least_overlap: float | None = None
) -> Possible:
    """Return the blocks whose n-grams may have enough weight for a match of `ClusterSearch`."""
    from decon_core.corpus.sketch.shard_sketch import stable_numbers
    from decon_core.kernels.ngram_filters import bound_weights

    index = _index_of(search, least_overlap)
    tokens = stable_numbers(search.ids)[index.question_tokens.astype(np.int64) - 1]

    def look_up(rows: Rows, is_read: Flags, possible: Words64) -> bool:
        return bound_weights(tokens, index, rows, is_read, possible)

    return sketch.possible(search.n_questions, look_up)


class ClusterSearch(Search):
    """Find matches down to the lowest recorded score. One per thread: it holds scratch arrays."""

    def __init__(
        self,
        search: GramIndex,
        policy: Policy,
        *,
        least_overlap: float | None = None,
        item_of_entry: Integers | None = None,
    ) -> None:
        """Find matches that reach the threshold of the index.

        `least_overlap`: find questions with this overlap instead, whatever their length and answer.
        `item_of_entry`: leave room for the choices of each item between its question and answer.
        """
        self._index = _index_of(search, least_overlap)
        if item_of_entry is not None:
            from decon_core.index.joined_index import with_room

            self._index = with_room(self._index, item_of_entry)
        self._search, self._ngram_size = search, policy.ngram_size
        self._is_exhaustive = policy.sampling == "exhaustive"
        kind: type[Any] = np.float64 if self._is_exhaustive else np.int64
        self._scratch: npt.NDArray[Any] = np.zeros(search.n_questions, kind)
        self._runs = np.empty((_INITIAL_RUNS, 3), np.int64)
        # The distinct n-grams of each document, counted to find common n-grams.
        last_seen = np.zeros(search.index.gram_at.size, np.uint32)
        self._seen = gram_runs.Seen(last_seen, first_serial=1)
        self._seen_batches: list[Numbers] = []
        self._alloc_outputs(_INITIAL_MATCHES)

    def _alloc_outputs(self, n: int) -> None:
        whole, scores = np.empty((n, clusters.N_WHOLE), np.int64), np.empty((n, clusters.N_SCORES))
        self._out = clusters.Output(whole, scores)

    def compile(self, documents: Ragged) -> None:
        hits = self._search.hits(documents)
        gram_runs.find_runs(hits, 0, self._index, self._runs)
        self._count(hits)
        self._matched(hits, self._out.whole[:0])

    def compile_judging(self, documents: Ragged) -> None:
        self._judge(documents, _NO_HITS, self._runs[:0], [], [])

    @property
    def is_ready_to_judge(self) -> bool:
        return is_ready(self._judging)

    def nominate(self, texts: BatchTexts) -> Nominations:
        self._count(texts.hits)
        matches, search = self.detect(texts.tokens, texts.hits), self._search
        index = search.index
        whole, scores = matches.whole, matches.scores
        entry = whole[:, clusters.ENTRY]
        question = search.entry_question[entry]
        answer, passage = index.entry_answer[entry], index.entry_passage[entry]
        n_tokens = np.diff(index.question_offsets)[question]
        n_answer = np.append(index.answer_different, 0)[answer]
        n_passage = np.append(np.diff(index.passage_offsets), 0)[passage]
        tokens = whole[:, _SPANS]
        tokens[:, 1] += self._ngram_size
        # A cluster that extends into the answer is cut off where the answer begins.
        start, stop, answer_start = tokens[:, :3].T
        is_cut = (start < answer_start) & (answer_start < stop)
        tokens[is_cut, 1] = answer_start[is_cut]
        return Nominations(
            document=whole[:, clusters.DOCUMENT],
            part=search.entry_part[entry],
            record=search.entry_record[entry],
            score=scores[:, clusters.BASE],
            question_overlap=scores[:, clusters.QUESTION],
            answer_overlap=np.where(answer < 0, ABSENT, scores[:, clusters.ANSWER]),
            passage_overlap=np.where(passage < 0, ABSENT, scores[:, clusters.PASSAGE]),
            n_matched=whole[:, clusters.N_MATCHED],
            n_grams=np.diff(index.question_gram_offsets)[question],
            question_tokens=n_tokens,
            total_tokens=n_tokens + n_answer + n_passage,
            tokens=tokens,
            places=tokens,
            matched=matches.matched,
        )

    def detect(self, documents: Ragged, hits: Hits, *, with_matched: bool = True) -> Matches:
        """Return all matches in documents, given the hits of the index in them.

        `with_matched`: find out for each which n-grams of the question were matched.
        """
        whole = [np.empty((0, clusters.N_WHOLE), np.int64)]
        scores = [np.empty((0, clusters.N_SCORES))]
        document = 0
        while document < len(documents):
            document_before = document
            n, document = gram_runs.find_runs(hits, document, self._index, self._runs)
            if document == document_before:
                self._runs = np.empty((2 * self._runs.shape[0], 3), np.int64)
            self._judge(documents, hits, self._runs[:n], whole, scores)
        ordered = _sorted_unique(np.concatenate(whole), np.concatenate(scores))
        matched = self._matched(hits, ordered[0]) if with_matched else []
        return Matches(*ordered, matched)

    def _count(self, hits: Hits) -> None:
        """Note the distinct n-grams of each document of a batch."""
        n_documents = hits.offsets.size - 1
        if self._seen.first_serial + n_documents > _MAX_SERIAL:
            self._seen.last[:] = 0
            self._seen = self._seen._replace(first_serial=1)
        grams = np.empty(int(hits.offsets[-1]), np.uint32)
        n = gram_runs.find_distinct(hits, self._seen, grams)
        self._seen_batches.append(grams[:n].copy())
        self._seen = self._seen._replace(first_serial=self._seen.first_serial + n_documents)

    def _matched(self, hits: Hits, whole: Integers) -> list[bytes]:
        index = self._index
        questions = self._search.entry_question[whole[:, clusters.ENTRY]].astype(np.int64)
        n_grams = np.diff(index.question_gram_offsets)[questions]
        edges = np.append(0, np.cumsum(n_grams))
        bits = np.zeros(edges[-1], np.uint8)
        clusters.mark_matched(hits, whole, questions, index, edges, bits)
        return [np.packbits(bits[start:stop]).tobytes() for start, stop in pairwise(edges.tolist())]

    def take_counts(self) -> tuple[Numbers, Integers]:
        seen_batches, self._seen_batches = self._seen_batches, []
        seen = np.concatenate([np.empty(0, np.uint32), *seen_batches])
        return np.unique(seen, return_counts=True)

    @property
    def _judging(self) -> Callable[..., tuple[int, int]]:
        if self._is_exhaustive:
            return clusters.judge_exhaustive
        from decon_core.kernels.sampled_clusters import judge_sampled

        return judge_sampled

    def _judge(
        self,
        documents: Ragged,
        hits: Hits,
        runs: Integers,
        whole: list[Integers],
        scores: list[Floats],
    ) -> None:
        run = 0
        while True:
            run_before = run
            tokens, offsets = documents.values, documents.offsets
            n, run = self._judging(
                tokens, offsets, hits, runs, run, self._index, self._scratch, self._out
            )
            whole.append(self._out.whole[:n].copy())
            scores.append(self._out.scores[:n].copy())
            if run == runs.shape[0]:
                return
            if run == run_before:
                self._alloc_outputs(2 * self._out.whole.shape[0])


def _sorted_unique(whole: Integers, scores: Floats) -> tuple[Integers, Floats]:
    """Sort by document, position and entry; of clusters with equal bounds keep the best score."""
    keys = [clusters.END, clusters.ENTRY, clusters.START, clusters.DOCUMENT]
    order = np.lexsort([-scores[:, clusters.SCORE], *(whole[:, key] for key in keys)])
    whole, scores = whole[order], scores[order]
    first = firsts(whole[:, keys])
    return whole[first], scores[first]


# Decisions ----------------------------------------------------------------------------------------


def _needed_overlap(lengths: Floats, policy: Policy) -> Floats:
    """Return the question overlap that questions of these lengths need."""
    least = policy.least_question_overlap
    return np.maximum(least, policy.decay(lengths, least))


def _penalized(base: Floats, lengths: Floats, policy: Policy) -> Floats:
    """Apply the length penalty: a short text needs a higher score, unless it is exactly 1."""
    threshold = policy.contamination_score_threshold
    required = policy.decay(lengths, threshold)
    is_penalized = (base != 1.0) & (required > threshold)
    return np.where(is_penalized, base * threshold / required, base)


def _is_leak_without_answer(matches: pa.Table, policy: Policy) -> Bools:
    """Whether the record would be a leak if it had only its question, or no answer.

    Vectorized version of `is_no_answer` in the oracle, without the gates.
    """
    question = column(matches, "question_overlap")
    passage = column(matches, "passage_overlap")  # nan: the record has none
    has_answer, has_passage = ~np.isnan(column(matches, "answer_overlap")), ~np.isnan(passage)
    n_question = column(matches, "question_tokens")
    alone = _is_leak_of_length(question, n_question, policy)
    n_both = n_question + column(matches, "passage_stop") - column(matches, "passage_start")
    confidence = np.minimum(0.5 + 0.5 * column(matches, "n_grams") / 20, 1.0)
    score = 0.85 * confidence * question + (0.15 + 0.85 * (1 - confidence)) * passage
    both = np.where((question == 1.0) & (passage == 1.0), 1.0, np.minimum(1.0, score))
    # Without a passage match its length is nan, for which every comparison is false.
    with_passage = has_answer & has_passage & _is_leak_of_length(both, n_both, policy)
    return ((has_answer | has_passage) & alone) | with_passage


def _is_leak_of_length(base: Floats, lengths: Floats, policy: Policy) -> Bools:
    """Whether a text of this many tokens would be indexed and reach the threshold."""
    is_indexed = lengths >= policy.eval_min_token_length
    score = _penalized(base, lengths, policy)
    is_found: Bools = is_indexed & reaches(score, policy.contamination_score_threshold)
    return is_found


# Visibility ---------------------------------------------------------------------------------------


def _any_in_rows(flags: Bools, offsets: Integers) -> Bools:
    """Return, per row, whether any of its flags is set."""
    before = np.append(0, np.cumsum(flags))
    return before[offsets[1:]] > before[offsets[:-1]]
