"""Records of the oracle as the engine's arrays, so that the two can be asked the same question."""

from collections.abc import Iterable, Sequence

import numpy as np

from decon_core.config.policy import Policy
from decon_core.detectors.decon import ClusterSearch
from decon_core.index.entries import NOTHING, Entries, Field, count_entries
from decon_core.index.joined_index import Search, join, search_from_arrays
from decon_core.index.ngram_counts import KINDS
from decon_core.index.parts import weigh
from decon_core.kernels import clusters
from decon_core.text.word_cache import FixedVocabulary, Ragged
from tests.oracle.decon import NOT_FOUND, Entry, Match, NearMatch, Tokens, reaches


def ragged(rows: Iterable[Sequence[int]], ids: np.ndarray) -> Ragged:
    rows = [np.array(row, np.int64) for row in rows]
    offsets = np.concatenate([[0], np.cumsum([row.size for row in rows], dtype=np.int64)])
    flat = np.concatenate([*rows, np.zeros(0, np.int64)]).astype(np.int64)
    return Ragged(FixedVocabulary(ids).numbers(flat), offsets.astype(np.int64))


def entries_of(known: Sequence[Entry]) -> Entries:
    ids = np.unique([t for one in known for kind in KINDS for t in getattr(one, kind)])
    fields = {}
    for kind in KINDS:
        texts = list(dict.fromkeys(getattr(one, kind) for one in known if getattr(one, kind)))
        numbers = {text: number for number, text in enumerate(texts)}
        of_entry = [numbers.get(getattr(one, kind), NOTHING) for one in known]
        fields[kind] = Field(ragged(texts, ids), np.array(of_entry, np.int64))
    return Entries(np.zeros(len(known), np.uint8), ids.astype(np.int64), fields)


def search_for(known: Sequence[Entry], policy: Policy) -> Search:
    entries = entries_of(known)
    part = weigh(entries, count_entries(entries, policy), policy, is_counted=True)
    return search_from_arrays(join([part], policy), [], policy)


def found(start: int, stop: int, overlap: float) -> NearMatch:
    return NOT_FOUND if start < 0 else NearMatch(overlap, start, stop)


def detect_all(documents: Sequence[Tokens], search: Search, policy: Policy) -> list[list[Match]]:
    """What the engine finds in each document, as the oracle would say it."""
    texts = ragged(documents, search.ids)
    matches = ClusterSearch(search, policy).detect(texts, search.hits(texts))
    out: list[list[Match]] = [[] for _ in documents]
    for whole, scores in zip(matches.whole.tolist(), matches.scores.tolist(), strict=True):
        out[whole[clusters.DOCUMENT]].append(
            Match(
                number=whole[clusters.ENTRY],
                start=whole[clusters.START],
                end=whole[clusters.END],
                n_matched=whole[clusters.N_MATCHED],
                question_overlap=scores[clusters.QUESTION],
                answer=found(
                    whole[clusters.ANSWER_START],
                    whole[clusters.ANSWER_STOP],
                    scores[clusters.ANSWER],
                ),
                passage=found(
                    whole[clusters.PASSAGE_START],
                    whole[clusters.PASSAGE_STOP],
                    scores[clusters.PASSAGE],
                ),
                base_score=scores[clusters.BASE],
                score=scores[clusters.SCORE],
                # What is kept and is no leak is found without the answer.
                is_no_answer=not reaches(
                    scores[clusters.SCORE], policy.contamination_score_threshold
                ),
            )
        )
    return out
