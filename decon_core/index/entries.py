"""Turn records into index entries: choose which are indexed and tokenize their texts.

A text shared by many records (the question of several choices, the passage of many questions) is
tokenized and stored once. Reference: `index_records` in
`tests/oracle/decon.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from decon_core.config.policy import Policy
from decon_core.index.ngram_counts import KINDS, Counted, Counts, Grams, gram_sizes, grams_of
from decon_core.kernels.arrays import Bytes, Integers, distinct
from decon_core.text.canonical import canonical, count_different_words
from decon_core.text.tokenizers import Tokenizer, is_character
from decon_core.text.word_cache import (
    Encoder,
    FixedVocabulary,
    GrowingVocabulary,
    Ragged,
    edges_of,
    keeps_words_apart,
)

NOTHING = -1

# Why a record is not indexed. An index part stores the position in this list.
EXACT_REPEAT = "exact repeat"
REASONS = (None, "too few tokens", "too few different words", EXACT_REPEAT, "empty question")
_TOO_FEW_TOKENS, _TOO_FEW_WORDS, _REPEAT, _EMPTY = range(1, len(REASONS))

COLUMNS = (*KINDS, "fingerprint")  # columns of records that the index reads

# Size of the word table; records are few compared with documents.
_TABLE_MB = 256


@dataclass(frozen=True, eq=False)
class Field:
    """The distinct texts of one kind, and the text of each entry."""

    texts: Ragged
    of_entry: Integers  # per entry: the text's number, `NOTHING` if it has none


@dataclass(frozen=True, eq=False)
class Entries:
    """The indexed records of a benchmark."""

    dropped: Bytes  # per record: position in `REASONS`, 0 if it is indexed
    ids: Integers  # token ids of the tokenizer, ascending; token n of a text is ids[n - 1]
    fields: Mapping[str, Field]

    @property
    def records(self) -> Integers:
        """Return the row of each entry in the record table."""
        return np.flatnonzero(self.dropped == 0)


class RecordTokenizer:
    """Tokenizes the records of benchmarks; a word that occurs in several is tokenized once."""

    def __init__(self, policy: Policy, tokenizer: Tokenizer) -> None:
        self._policy, self._tokenizer = policy, tokenizer
        self._vocabulary = GrowingVocabulary()
        self._encoder = Encoder(tokenizer, self._vocabulary, form=policy.form, table_mb=_TABLE_MB)
        self._is_visible = np.zeros(1, np.bool_)  # per number of a token: it is not white space

    def entries_of(self, table: pa.Table) -> Entries:
        """Tokenize the records of a benchmark and drop those that cannot be indexed.

        `table` has at least `COLUMNS`.
        """
        policy = self._policy
        columns = {
            kind: _Column(
                table[kind], self._encoder, self._vocabulary, counts_words=kind == "question"
            )
            for kind in KINDS
        }
        dropped = self._why_dropped(table, columns)
        indexed = {
            "question": True,
            "answer": policy.index_answers,
            "passage": policy.index_passages,
        }
        kept = np.flatnonzero(dropped == 0)
        tokens = [column.tokens.values for column in columns.values()]
        ids, rank = self._vocabulary.ranked(*tokens)
        fields = {}
        for kind, column in columns.items():
            if indexed[kind]:
                texts, of_entry = column.of_records(kept)
                fields[kind] = Field(Ragged(rank[texts.values], texts.offsets), of_entry)
            else:
                no_texts = Ragged(np.zeros(0, np.uint32), np.zeros(1, np.int64))
                fields[kind] = Field(no_texts, np.full(kept.size, NOTHING))
        return Entries(dropped, ids, fields)

    def _why_dropped(self, table: pa.Table, columns: Mapping[str, _Column]) -> Bytes:
        policy = self._policy
        n_words, is_blank = _words_of(columns["question"], policy)
        dropped = np.zeros(table.num_rows, np.uint8)
        dropped[_has_few_words(columns, n_words, policy)] = _TOO_FEW_WORDS
        dropped[self._visible_tokens(columns) < policy.eval_min_token_length] = _TOO_FEW_TOKENS
        if policy.eval_dedup:
            dropped[_repeats(table["fingerprint"], np.flatnonzero(dropped == 0))] = _REPEAT
        dropped[(dropped == 0) & columns["question"].count(is_blank).astype(bool)] = _EMPTY
        return dropped

    def _visible_tokens(self, columns: Mapping[str, _Column]) -> Integers:
        """Count, per record, the tokens of all its texts that are not white space."""
        is_white_space = self._tokenizer.is_white_space
        if not keeps_words_apart(self._tokenizer):
            joined = _joined(columns, self._policy)
            encoded = self._tokenizer.encode([f" {text}" for text in joined])
            n_tokens = [sum(not is_white_space(token) for token in tokens) for tokens in encoded]
            return np.array(n_tokens, np.int64)
        new = self._vocabulary.ids[self._is_visible.size - 1 :]
        is_visible = is_character(np.array(new, np.int64))
        for at in np.flatnonzero(~is_visible).tolist():
            is_visible[at] = not is_white_space(new[at])
        self._is_visible = np.append(self._is_visible, is_visible)
        counted = np.zeros(next(iter(columns.values())).of_record.size, np.int64)
        for column in columns.values():
            before = np.cumsum(np.append(0, self._is_visible[column.tokens.values]))
            counted += column.count(np.diff(before[column.tokens.offsets]))
        return counted


class _Column:
    """One text column: its distinct texts, tokenized, and the text of each record."""

    def __init__(
        self,
        column: pa.ChunkedArray,
        encoder: Encoder,
        vocabulary: GrowingVocabulary,
        *,
        counts_words: bool,
    ) -> None:
        import pyarrow.compute as pc

        coded = pc.dictionary_encode(column.combine_chunks().cast(pa.large_string()))
        if isinstance(coded, pa.ChunkedArray):
            coded = coded.combine_chunks()
        self.strings = coded.dictionary
        self.of_record = coded.indices.fill_null(NOTHING).to_numpy().astype(np.int64)
        _, offsets, data = self.strings.buffers()
        edges = np.frombuffer(offsets, np.int64)[: len(self.strings) + 1]
        text = np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)
        self.tokens = encoder.encode(text, edges[:-1], edges[1:])
        # Words that begin with different tokens: at most as many as there are different words,
        # without those that are single characters.
        self.least_words = np.zeros(len(self.strings), np.int64)
        if counts_words and (firsts := encoder.first_tokens_of_latest(self.tokens)):
            different = firsts.distinct()
            ids = np.frombuffer(vocabulary.ids, np.int64)[different.values - 1]
            is_word = ~is_character(ids)
            self.least_words = np.diff(np.append(0, np.cumsum(is_word))[different.offsets])

    def texts(self) -> list[str]:
        strings: list[str] = self.strings.to_pylist()
        return strings

    def count(self, per_text: Integers) -> Integers:
        """Spread a number per text over the records; 0 for a record without a text."""
        of_record: Integers = np.append(per_text, 0)[self.of_record]
        return of_record

    def of_records(self, kept: Integers) -> tuple[Ragged, Integers]:
        """Return the texts of the kept records. A text without tokens counts as absent."""
        of_entry = self.of_record[kept]
        has_text = self.count(self.tokens.lengths)[kept] > 0
        used = distinct(of_entry[has_text])
        number = np.full(len(self.tokens) + 1, NOTHING)
        number[used] = np.arange(used.size)
        return self.tokens.take(used), np.where(has_text, number[of_entry], NOTHING)


def _words_of(column: _Column, policy: Policy) -> tuple[Integers, Integers]:
    """Return how many distinct words each text has, and whether its canonical text is empty.

    Of texts that have enough words for sure, at most as many as they have.
    """
    n_words = column.least_words.copy()
    is_blank = np.zeros(n_words.size, np.int64)
    unsure = np.flatnonzero(n_words < max(policy.eval_min_unique_word_count, 1))
    form = policy.form
    for at, text in zip(unsure.tolist(), column.strings.take(unsure).to_pylist(), strict=True):
        cleaned = canonical(text, form)
        n_words[at], is_blank[at] = count_different_words(cleaned, form), not cleaned
    return n_words, is_blank


def _has_few_words(columns: Mapping[str, _Column], n_words: Integers, policy: Policy) -> Integers:
    """Return the records with too few distinct words. Most questions alone have enough."""
    minimum = policy.eval_min_unique_word_count
    candidates = np.flatnonzero(columns["question"].count(n_words) < minimum)
    if not candidates.size:
        return candidates
    joined = _joined(columns, policy, candidates)
    is_few = [count_different_words(text, policy.form) < minimum for text in joined]
    return candidates[np.array(is_few, np.bool_)]


def _joined(
    columns: Mapping[str, _Column], policy: Policy, records: Integers | None = None
) -> list[str]:
    """Join passage, question and answer of each record into one canonical text."""
    order = ("passage", "question", "answer")
    texts = {kind: [*columns[kind].texts(), None] for kind in order}
    numbers = np.arange(columns["question"].of_record.size) if records is None else records
    form = policy.form
    return [
        canonical(
            " ".join(text for kind in order if (text := texts[kind][columns[kind].of_record[at]])),
            form,
        )
        for at in numbers.tolist()
    ]


def _repeats(fingerprints: pa.ChunkedArray, records: Integers) -> Integers:
    """Return those of `records` that have the same texts as an earlier record."""
    coded = fingerprints.combine_chunks().dictionary_encode()
    codes = (coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded).indices
    _, first = np.unique(codes.to_numpy(zero_copy_only=False)[records], return_index=True)
    return np.delete(records, first)


def joined(entries: Sequence[Entries]) -> Entries:
    """Return the entries of several benchmarks as if they were a single benchmark."""
    ids = distinct(np.concatenate([np.zeros(0, np.int64), *(each.ids for each in entries)]))
    vocabulary = FixedVocabulary(ids)
    fields = {}
    for kind in KINDS:
        values, lengths, of_entry = [np.zeros(0, np.uint32)], [], []
        n_texts = 0
        for each in entries:
            field = each.fields[kind]
            values.append(vocabulary.renumbered(field.texts.values, each.ids))
            lengths.append(field.texts.lengths)
            of_entry.append(np.where(field.of_entry >= 0, field.of_entry + n_texts, NOTHING))
            n_texts += len(field.texts)
        none = np.zeros(0, np.int64)
        texts = Ragged(np.concatenate(values), edges_of(np.concatenate([none, *lengths])))
        fields[kind] = Field(texts, np.concatenate([none, *of_entry]))
    dropped = np.concatenate([np.zeros(0, np.uint8), *(each.dropped for each in entries)])
    return Entries(dropped, ids, fields)


# Frequencies --------------------------------------------------------------------------------------


def grams_of_fields(entries: Entries, policy: Policy) -> dict[str, Grams]:
    """Return the n-grams of each kind of text. Short answers have none: they match as a run."""
    texts = {kind: field.texts for kind, field in entries.fields.items()}
    answers = texts["answer"]
    texts["answer"] = answers.only(answers.lengths > policy.short_answer_token_threshold)
    return {kind: grams_of(texts[kind], size) for kind, size in gram_sizes(policy).items()}


def count_entries(entries: Entries, policy: Policy) -> Counts:
    """Count how many of these records contain each n-gram and token."""
    return count_grams(entries, grams_of_fields(entries, policy))


def count_grams(entries: Entries, grams: Mapping[str, Grams]) -> Counts:
    """Count like `count_entries`, given the n-grams of each kind of text."""
    kinds = {}
    token_df = np.zeros(entries.ids.size + 1, np.int64)
    for kind, field in entries.fields.items():
        n_entries_of_text = np.bincount(
            field.of_entry[field.of_entry >= 0], minlength=len(field.texts)
        )
        df = grams[kind].rows.count(n_entries_of_text, len(grams[kind]))
        kinds[kind] = Counted(grams[kind].table, df)
        token_df += field.texts.distinct().count(n_entries_of_text, token_df.size)
    return Counts(entries.records.size, entries.ids, token_df[1:], kinds)
