"""The declared tables of a report and their columns. Views are in views.sql.

The descriptions become comments in the database; a change to one rebuilds the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from decon_core.schemas import BLEND_ITEMS, COMMON, ENTRIES, INDEXABILITY, REMOVED


@dataclass(frozen=True)
class ReportTable:
    """A table filled from the store; `derived.sql` computes others from these."""

    about: str
    schema: pa.Schema


def _column(name: str, kind: pa.DataType, about: str = "") -> pa.Field:
    return pa.field(name, kind, metadata={"description": about} if about else None)


_TEXT, _WHOLE, _NUMBER, _FLAG = pa.string(), pa.int64(), pa.float64(), pa.bool_()

MARK = pa.struct([("start", pa.int64()), ("stop", pa.int64()), ("part", pa.string())])
_MARKS = pa.list_(MARK)

_SHARD = (
    _column("source", _TEXT, "name of the source"),
    _column("pack", _TEXT, "the shards that are scanned together"),
    _column("shard_name", _TEXT, "name of the shard within its source"),
)

# Counts in a mixture's manifest, for each shard, and in a blend's, for the whole.
ACCOUNT = {
    "n_documents_in": "documents of the shard",
    "n_documents_out": "documents that the mixture keeps of them",
    "n_bytes_in": "bytes of their texts",
    "n_bytes_out": "bytes of the texts that are kept",
    "n_tokens_in": "canonical tokens of them",
    "n_tokens_out": "canonical tokens that are kept",
    "n_cut": "documents of which a part was cut out",
    "n_unreadable_left_out": "rows that could not be read, and were left out",
    "n_invalid_utf8_replaced": "rows with bytes that are not UTF-8, written with U+FFFD instead",
}
_TOTALS = {
    "n_documents": "texts written",
    "n_tokens": "canonical tokens of them",
    "n_drawn": "documents drawn from the mixture",
    "n_drawn_tokens": "canonical tokens of them",
    "n_replaced": "documents that a test item took the place of",
    "n_replaced_tokens": "canonical tokens of them",
    "n_test_texts": "texts of test items put in",
    "n_test_tokens": "canonical tokens of them",
}

TABLES: Mapping[str, ReportTable] = {
    "runs": ReportTable(
        "One row: the settings this report was made with",
        pa.schema(
            [
                _column("state", _TEXT, "of all that went into the report; another one: made anew"),
                _column("scan_fingerprint", _TEXT, "of the scan's settings, and of frozen idf"),
                _column("idf_snapshot", _TEXT, "of frozen idf"),
                _column("threshold", _NUMBER, "of decon: from this score on it is a leak"),
                _column(
                    "thresholds",
                    _TEXT,
                    "of every chosen rule, as JSON; `benchmarks` has those of single ones",
                ),
                _column("snippets", _FLAG, "whether text of the corpus may stand in the report"),
                _column(
                    "n_shards_not_scanned",
                    _WHOLE,
                    "shards that lack a scan against some benchmark: see `not_scanned`; 0: none",
                ),
                _column("verdicts", _TEXT, "digest of what people said of pairs"),
                _column("made_by", _TEXT, "program and version"),
                _column("made_at", _TEXT, "when: date and time in UTC; null: not known"),
                _column("policy", _TEXT, "all settings, as JSON"),
            ]
        ),
    ),
    "benchmarks": ReportTable(
        "One row per benchmark: the version that was scanned for, and what could be indexed",
        pa.schema(
            [
                _column("benchmark", _TEXT, "name of the benchmark"),
                _column("version", _TEXT, "hash of its records"),
                _column("n_items", _WHOLE, "rows that people score"),
                _column("n_records", _WHOLE, "texts that are looked for: an item may have several"),
                _column("n_indexed_records", _WHOLE, "of them in decon's index"),
                _column("is_in_idf_snapshot", _FLAG, "whether idf was counted from it as well"),
                _column("thresholds", _TEXT, "of every chosen rule, as they apply to it, as JSON"),
                _column("n_shards_not_scanned", _WHOLE, "shards not scanned against it; 0: none"),
            ]
        ),
    ),
    "items": ReportTable(
        "One row per benchmark row (instance); is_indexed is false when no chosen rule can see it",
        pa.schema(
            [
                _column("benchmark", _TEXT, "name of the benchmark"),
                _column("config", _TEXT, "part of the benchmark: a subject, a language"),
                _column("split", _TEXT, "train, validation, test, ..."),
                _column("instance_index", _WHOLE, "row within the split"),
                _column("question", _TEXT, "what the model is asked, by its first record"),
                _column("has_answer", _FLAG, "whether any record of it has an answer"),
                _column("fingerprints", pa.list_(pa.string()), "of its records, in order"),
                _column("n_records", _WHOLE, "records that it became"),
                _column("is_indexed", _FLAG, "whether a chosen rule sees one of them"),
                _column("why_not_indexed", _TEXT, "the first rule's reason; null: it is"),
            ]
        ),
    ),
    "indexability": ReportTable(
        "One row per item and chosen rule: whether the rule could find it in any document, why not",
        INDEXABILITY,
    ),
    "common_ngrams": ReportTable(
        "One row per source and n-gram of a benchmark that many of its documents hold", COMMON
    ),
    "shards": ReportTable(
        "One row per shard of the corpus: what was read of it",
        pa.schema(
            [
                *_SHARD,
                _column("path", _TEXT, "where it was"),
                _column("shard", _TEXT, "fingerprint of its content and of how it is read"),
                _column("n_rows", _WHOLE, "rows read, with those that could not be"),
                _column("n_documents", _WHOLE, "documents scanned"),
                _column("n_characters", _WHOLE, "characters of text scanned"),
                _column("n_too_short", _WHOLE, "documents with too little text to say anything"),
                _column("n_unreadable", _WHOLE, "rows that could not be read"),
                _column("n_invalid_utf8", _WHOLE, "documents with bytes that are not UTF-8"),
            ]
        ),
    ),
    "not_scanned": ReportTable(
        "One row per shard that was not scanned against all benchmarks; none: the report is "
        "complete",
        pa.schema(
            [
                *_SHARD,
                _column("path", _TEXT, "where it is"),
                _column("benchmarks", pa.list_(pa.string()), "that it was not scanned against"),
                _column("reason", _TEXT, "what the reader found, or that no scan was tried"),
                _column("remedy", _TEXT, "what to do"),
            ]
        ),
    ),
    "unreadable": ReportTable(
        "One row per row of a shard that could not be read, with its place and the reason",
        pa.schema(
            [
                _column("source", _TEXT, "name of the source"),
                _column("shard_name", _TEXT, "name of the shard"),
                _column("row", _WHOLE, "row in the shard, from 0"),
                _column("offset", _WHOLE, "byte at which it begins, uncompressed"),
                _column("reason", _TEXT, "what is wrong"),
                _column("detail", _TEXT, "more of it"),
            ]
        ),
    ),
    "invalid_utf8": ReportTable(
        "One row per document with bytes that are not UTF-8: scanned with U+FFFD in their place",
        pa.schema(
            [
                _column("source", _TEXT, "name of the source"),
                _column("shard_name", _TEXT, "name of the shard"),
                _column("row", _WHOLE, "row in the shard, from 0"),
                _column("offset", _WHOLE, "the first such byte, uncompressed; null: of a table"),
                _column("detail", _TEXT, "the byte and how many places; of a table the columns"),
            ]
        ),
    ),
    "matches": ReportTable(
        "One row per document, item and place where it was found, down to the evidence floor",
        pa.schema([*_SHARD, *ENTRIES]),
    ),
    "pairs": ReportTable(
        "One row per pair: what was found of a record, however many documents hold it just so; "
        "with both texts, of one of the documents",
        pa.schema(
            [
                _column("pair", _TEXT, "hash of the record's texts and of the words found"),
                _column("fingerprint", _TEXT, "of the record's texts"),
                _column("benchmark", _TEXT, "of the first item that has them"),
                _column("config", _TEXT, "part of the benchmark"),
                _column("split", _TEXT, "its split"),
                _column("instance_index", _WHOLE, "its row within the split"),
                _column("rules", _TEXT, "the rules that found just this"),
                _column("score", _NUMBER, "the best one's score"),
                _column("is_by_score", _FLAG, "whether a score alone makes it a leak"),
                _column("verdict", _TEXT, "what a person said of it; null: nobody did"),
                _column("is_contaminated", _FLAG, "whether it counts as a leak"),
                _column(
                    "is_question_only",
                    _FLAG,
                    "in no document a leak, but in some the question without its answer",
                ),
                _column("n_documents", _WHOLE, "documents that hold it: view `pair_documents`"),
                _column("n_matches", _WHOLE, "rows of `matches`"),
                _column("source", _TEXT, "of the document whose text is shown"),
                _column("shard_name", _TEXT, "its shard"),
                _column("row", _WHOLE, "its row in the shard"),
                _column("doc_id", _TEXT, "its own id, if it has one"),
                _column("question_overlap", _NUMBER, "share of the question found there"),
                _column("answer_overlap", _NUMBER, "share of the answer; null: it has none"),
                _column("passage_overlap", _NUMBER, "share of the passage; null: it has none"),
                _column("question", _TEXT, "text of the record"),
                _column("answer", _TEXT, "text of the record"),
                _column("passage", _TEXT, "text of the record"),
                _column("question_marks", _MARKS, "characters of the question found there"),
                _column("answer_marks", _MARKS, "characters of the answer found there"),
                _column("passage_marks", _MARKS, "characters of the passage found there"),
                _column("text", _TEXT, "the document there; null: not kept, or snippets are off"),
                _column("text_marks", _MARKS, "characters of `text` that both sides share"),
                _column("text_start", _WHOLE, "character of the document at which `text` begins"),
                _column("text_part", _TEXT, "the field or message in which the question begins"),
                _column("why_no_text", _TEXT, "why `text` is null"),
                _column("evidence", _TEXT, "of all that `text` and the marks were made from"),
            ]
        ),
    ),
    "verdicts": ReportTable(
        "One row per pair that a person said something of; is_found is false where it is no more",
        pa.schema(
            [
                _column("pair", _TEXT, "hash of the record's texts and of the words found"),
                _column("verdict", _TEXT, "leak, template, common source, unsure"),
                _column("note", _TEXT, "in the person's words"),
                _column("said_by", _TEXT, "who said it"),
                _column("said_at", _TEXT, "when"),
                _column("is_found", _FLAG, "whether this scan found the pair"),
            ]
        ),
    ),
    "mixtures": ReportTable(
        "One row per shard of each mixture; not is_current: its inputs are no longer today's",
        pa.schema(
            [
                _column("mixture", _TEXT, "name of the mixture"),
                _column("pack", _TEXT, "the shards that are written together"),
                _column("source", _TEXT, "name of the source"),
                _column("shard_name", _TEXT, "name of the shard"),
                _column("is_current", _FLAG, "whether it was made from today's inputs"),
                *(_column(name, _WHOLE, about) for name, about in ACCOUNT.items()),
            ]
        ),
    ),
    "removed": ReportTable(
        "One row per document that a mixture leaves out, or cuts something out of, and reason",
        pa.schema(
            [
                _column("mixture", _TEXT, "name of the mixture"),
                _column("source", _TEXT, "name of the source"),
                _column("is_current", _FLAG, "whether it was made from today's inputs"),
                _column("shard_name", _TEXT, "name of the shard"),
                *list(REMOVED)[1:],
            ]
        ),
    ),
    "blends": ReportTable(
        "One row per blend: texts drawn, replaced by test items, and written",
        pa.schema(
            [
                _column("blend", _TEXT, "name of the blend"),
                _column("mixture", _TEXT, "whose documents it draws"),
                _column("is_current", _FLAG, "whether it was made from today's inputs"),
                *(_column(name, _WHOLE, about) for name, about in _TOTALS.items()),
            ]
        ),
    ),
    "blend_sources": ReportTable(
        "One row per blend, phase and source: what was drawn, and how often the source went by",
        pa.schema(
            [
                _column("blend", _TEXT, "name of the blend"),
                _column("is_current", _FLAG, "whether it was made from today's inputs"),
                _column("phase", _WHOLE, "number of the phase, from 0"),
                _column("source", _TEXT, "name of the source"),
                _column("n_drawn", _WHOLE, "documents drawn in the phase"),
                _column("n_drawn_tokens", _WHOLE, "tokens of them"),
                _column("share_of_tokens", _NUMBER, "of the phase"),
                _column("n_documents", _WHOLE, "documents of the mixture's source"),
                _column("n_tokens", _WHOLE, "tokens of them"),
                _column("passes", _NUMBER, "how often the source went by, over all phases"),
            ]
        ),
    ),
    "blend_items": ReportTable(
        "One row per blend, contamination and item: whether it is in the blend, and how often",
        pa.schema(
            [
                _column("blend", _TEXT, "name of the blend"),
                _column("is_current", _FLAG, "whether it was made from today's inputs"),
                *BLEND_ITEMS,
            ]
        ),
    ),
}
