"""The Arrow schema of every table that crosses a stage. A stage may not add a column on its own."""

from __future__ import annotations

import pyarrow as pa


def _required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


RECORDS = pa.schema(
    [
        _required("benchmark", pa.string()),
        pa.field("config", pa.string()),
        _required("split", pa.string()),
        # Position of the source row within its split: the instance that people count and score.
        _required("instance_index", pa.int64()),
        # Set when one row holds several questions (parallel arrays, several prompts).
        pa.field("sub_index", pa.int64()),
        # Set when one question was expanded into one record per choice or per accepted answer.
        pa.field("choice_index", pa.int64()),
        pa.field("is_correct", pa.bool_()),
        pa.field("passage", pa.string()),
        _required("question", pa.string()),
        pa.field("answer", pa.string()),
        # First 16 hex digits of SHA-256 over passage + question + answer.
        _required("fingerprint", pa.string()),
        # JSON object, sorted keys; null when the recipe keeps no extra fields.
        pa.field("extras", pa.string()),
    ]
)

INDEX = pa.schema(
    [
        # Row in the benchmark's record table.
        _required("record", pa.int64()),
        # Why the record is not indexed; null when it is.
        pa.field("dropped", pa.string()),
        _required("question", pa.list_(pa.int64())),
        _required("answer", pa.list_(pa.int64())),
        _required("passage", pa.list_(pa.int64())),
        # Document frequencies of the unique n-grams, in the order in which they first occur. For an
        # answer too short for n-grams: of its different tokens.
        _required("question_df", pa.list_(pa.int64())),
        _required("answer_df", pa.list_(pa.int64())),
        _required("passage_df", pa.list_(pa.int64())),
    ]
)

FREQUENCIES = pa.schema(
    [
        _required("kind", pa.string()),  # question, answer, passage: n-grams; token: single tokens
        _required("gram", pa.list_(pa.int64())),
        _required("df", pa.int64()),
    ]
)

# One row per document, record and place. Which of several records of one item speaks for it, and
# whether it is a leak, is decided later, by threshold. Spans are half-open; characters count in the
# original text of the document.
MATCHES = pa.schema(
    [
        _required("shard", pa.string()),  # fingerprint
        _required("row", pa.int64()),
        pa.field("doc_id", pa.string()),
        _required("detector", pa.string()),
        _required("detector_fingerprint", pa.string()),
        _required("benchmark", pa.string()),
        pa.field("config", pa.string()),
        _required("split", pa.string()),
        _required("instance_index", pa.int64()),
        _required("record", pa.int64()),
        _required("fingerprint", pa.string()),
        pa.field("is_correct", pa.bool_()),
        # Weighted overlaps before the length penalty, which needs the threshold.
        _required("base_score", pa.float64()),
        _required("question_overlap", pa.float64()),
        pa.field("answer_overlap", pa.float64()),  # null: the record has none
        pa.field("passage_overlap", pa.float64()),
        _required("n_matched", pa.int64()),
        _required("n_grams", pa.int64()),
        _required("question_tokens", pa.int64()),
        _required("total_tokens", pa.int64()),  # what the length penalty goes by
        _required("question_start", pa.int64()),
        _required("question_stop", pa.int64()),
        pa.field("answer_start", pa.int64()),  # null: not found
        pa.field("answer_stop", pa.int64()),
        pa.field("passage_start", pa.int64()),
        pa.field("passage_stop", pa.int64()),
        _required("question_char_start", pa.int64()),
        _required("question_char_stop", pa.int64()),
        pa.field("answer_char_start", pa.int64()),
        pa.field("answer_char_stop", pa.int64()),
        pa.field("passage_char_start", pa.int64()),
        pa.field("passage_char_stop", pa.int64()),
    ]
)

# What the matches amount to at the policy's threshold: one row per document, item and place.
ENTRIES = pa.schema(
    [
        *MATCHES,
        _required("score", pa.float64()),
        _required("is_contaminated", pa.bool_()),
    ]
)
