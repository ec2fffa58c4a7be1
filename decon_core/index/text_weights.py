"""How informative each searched text of a record is, by the idf of its n-grams."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from decon_core.benchmarks.records import Version, load_records
from decon_core.config.policy import Policy
from decon_core.index.entries import REASONS, Entries, count_entries
from decon_core.index.ngram_counts import Grams, grams_of, places_of
from decon_core.index.parts import open_part
from decon_core.index.record_texts import QUESTION, WHOLE, Pool
from decon_core.index.term_weights import current_snapshot
from decon_core.kernels.arrays import Floats, Integers
from decon_core.storage.store import Store
from decon_core.text.tokenizers import Tokenizer
from decon_core.text.word_cache import Encoder, GrowingVocabulary, Ragged, Vocabulary, edges_of

_TOO_SHORT = [REASONS.index(reason) for reason in ("too few tokens", "too few different words")]
_TABLE_MB = 256


# Weights ------------------------------------------------------------------------------------------


def weights_of(
    pool: Pool, store: Store, versions: Sequence[Version], tokenizer: Tokenizer, policy: Policy
) -> Floats:
    """Return how informative each used text is: 1 if its n-grams occur in no other record.

    Counts are those of the frozen snapshot, plus the benchmark's own records that are not in it:
    all of them if the benchmark version was not counted, and always those too short to be indexed,
    among them questions that ask nothing by themselves. So a weight does not depend on which other
    benchmarks are scanned.
    """
    uses = pool.table()
    is_weighed = np.isin(uses[:, 3], WHOLE)
    wanted = {*uses[is_weighed, 0].tolist()}
    texts = [text if number in wanted else "" for number, text in enumerate(pool.texts)]
    grams, ids = _grams(texts, tokenizer, policy)
    snapshot = current_snapshot(store, policy)
    index = policy.index_fingerprint(tokenizer=tokenizer.fingerprint, snapshot=snapshot.fingerprint)
    counted = snapshot.counts.gram_frequency("question", grams.table.tokens, ids)
    weights = np.zeros(len(uses))
    edges, in_order = places_of(uses[:, 1].astype(np.uint32), len(versions))
    for part, version in enumerate(versions):
        rows_of_part = in_order[edges[part] : edges[part + 1]]
        rows_of_part = rows_of_part[is_weighed[rows_of_part]]
        numbers, text_of = np.unique(uses[rows_of_part, 0], return_inverse=True)
        rows = grams.rows.take(numbers)
        df, n_records = counted[rows.values], snapshot.counts.n_records
        entries = open_part(store, version, index).entries
        if not snapshot.has(version):
            counts = count_entries(entries, policy)
            distinct, gram_of = np.unique(rows.values, return_inverse=True)
            tokens = grams.table.tokens.reshape(-1, grams.table.size)[distinct].ravel()
            df = df + counts.gram_frequency("question", tokens, ids)[gram_of]
            n_records += counts.n_records
        short = _too_short(store, version, entries)
        uses_of_part = uses[rows_of_part]
        is_short_question = (uses_of_part[:, 3] == QUESTION) & np.isin(uses_of_part[:, 2], short)
        short_questions = uses_of_part[is_short_question, 0]
        if short_questions.size:
            times = np.bincount(np.searchsorted(numbers, short_questions), minlength=numbers.size)
            _, gram_of = np.unique(rows.values, return_inverse=True)
            df_of_short = np.bincount(gram_of, np.repeat(times, rows.lengths))
            df = df + df_of_short[gram_of].astype(np.int64)
        n_records += short.size
        is_question = np.zeros(numbers.size, np.bool_)
        is_question[text_of[uses_of_part[:, 3] == QUESTION]] = True
        of_questions = df[np.repeat(is_question, rows.lengths)]
        if of_questions.size and (of_questions >= n_records).all():
            # One record in two has them, as it were: all weigh the same.
            df, n_records = df // n_records, 2
        weights[rows_of_part] = _mean_idf(df, rows.offsets, n_records)[text_of]
    return weights


def _too_short(store: Store, version: Version, entries: Entries) -> Integers:
    """Return the records not indexed because they are short; of equal ones only the first."""
    short = np.flatnonzero(np.isin(entries.dropped, _TOO_SHORT))
    if not short.size:
        return short
    alike = load_records(store, version, columns=["fingerprint"])["fingerprint"].take(short)
    first = dict(zip(reversed(alike.to_pylist()), reversed(short.tolist()), strict=True))
    return np.sort(np.fromiter(first.values(), np.int64, len(first)))


def _grams(texts: Sequence[str], tokenizer: Tokenizer, policy: Policy) -> tuple[Grams, Integers]:
    """Return the n-grams of texts, and the token ids: token n is ids[n - 1]."""
    vocabulary = GrowingVocabulary()
    rows = encode_texts(texts, vocabulary, tokenizer, policy)
    ids, rank = vocabulary.ranked(rows.values)
    return grams_of(Ragged(rank[rows.values], rows.offsets), policy.ngram_size), ids


def _mean_idf(df: Integers, offsets: Integers, n_records: int) -> Floats:
    """Return the mean idf of the n-grams of each row, divided by ln N, its maximum."""
    distinct = np.flatnonzero(np.bincount(df))
    weight_of = np.zeros(distinct.max(initial=0) + 1, np.uint32)
    weight_of[distinct] = np.arange(distinct.size)
    # Python's logarithm and a fixed order: the same to the last bit on every machine.
    most = math.log(max(n_records, 1)) or 1.0
    weights = [math.log(max(n_records, 1) / max(n, 1)) / most for n in distinct.tolist()]
    rows = Ragged(weight_of[df], offsets)
    return rows.sums(np.array(weights)[rows.values]) / np.maximum(np.diff(offsets), 1)


def encode_texts(
    texts: Sequence[str], vocabulary: Vocabulary, tokenizer: Tokenizer, policy: Policy
) -> Ragged:
    encoder = Encoder(tokenizer, vocabulary, form=policy.form, table_mb=_TABLE_MB)
    contents = [text.encode() for text in texts]
    edges = edges_of([len(content) for content in contents])
    data = np.frombuffer(b"".join(contents), np.uint8)
    return encoder.encode(data, edges[:-1], edges[1:])
