"""The Arrow schemas of all tables passed between stages."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec

import pyarrow as pa


class _Hidden:
    """An importer that finds no pandas."""

    @staticmethod
    def find_spec(name: str, *_: object) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError(name=name)
        return None


def _keep_pandas_out() -> None:
    """Have Arrow make its first array while it cannot import pandas.

    With that array it imports pandas if it is installed, to recognize objects of pandas: a third of
    a second in every process, though nothing here has such objects. Conversions to and from pandas
    still import it when they are called.
    """
    if "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _Hidden)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(_Hidden)


_keep_pandas_out()


def field(name: str, kind: pa.DataType, meaning: str, *, nullable: bool = True) -> pa.Field:
    return pa.field(name, kind, nullable=nullable, metadata={"description": meaning})


def required(name: str, kind: pa.DataType, meaning: str) -> pa.Field:
    return field(name, kind, meaning, nullable=False)


def _array(name: str, of: pa.DataType, meaning: str) -> pa.Field:
    return required(name, pa.large_list(pa.field("item", of, nullable=False)), meaning)


RECORDS = pa.schema(
    [
        required("benchmark", pa.string(), "name of the benchmark"),
        field("config", pa.string(), "part of the benchmark, such as a subject or language"),
        required("split", pa.string(), "train, validation, test, ..."),
        required("instance_index", pa.int64(), "row within the split: the item that is scored"),
        field("sub_index", pa.int64(), "set when one row holds several questions"),
        field("choice_index", pa.int64(), "set when a question has one record per choice"),
        field("is_correct", pa.bool_(), "whether this choice is the correct one, if known"),
        field("passage", pa.string(), "text that the question is about"),
        required("question", pa.string(), "what the model is asked"),
        field("answer", pa.string(), "what the model should answer, or the text of a choice"),
        required("fingerprint", pa.string(), "first 16 hex digits of the texts' SHA-256"),
        field("extras", pa.string(), "further fields that the recipe keeps, as a JSON object"),
    ]
)

# One row with an array in every column, to be memory-mapped. Token n is the tokenizer's id
# ids[n - 1].
INDEX = pa.schema(
    [
        _array("dropped", pa.uint8(), "why each record is not indexed; 0: it is indexed"),
        _array("ids", pa.int64(), "tokenizer ids that occur, in ascending order"),
        *(
            _array(f"{kind}.{name}", of, meaning.format(kind=kind))
            for kind in ("question", "answer", "passage")
            for name, of, meaning in (
                ("tokens", pa.uint32(), "tokens of each distinct {kind}, concatenated"),
                ("offsets", pa.int64(), "start of each {kind} in the tokens, and end of the last"),
                ("of_entry", pa.int64(), "number of each indexed record's {kind}; -1: none"),
                ("df", pa.uint32(), "records that contain each n-gram of each {kind}, in order"),
                ("df_offsets", pa.int64(), "start of each {kind} in df, and end of the last"),
            )
        ),
    ]
)

FREQUENCIES = pa.schema(
    [
        _array("ids", pa.int64(), "tokenizer ids that occur, in ascending order"),
        _array("token_df", pa.int64(), "number of record fields that contain each id"),
        *(
            _array(f"{kind}.{name}", of, meaning.format(kind=kind))
            for kind in ("question", "answer", "passage")
            for name, of, meaning in (
                ("tokens", pa.uint32(), "tokens of each distinct {kind} n-gram"),
                ("df", pa.int64(), "number of records that contain each"),
            )
        ),
    ]
)

# One row per document of a scanned shard, in order.
DOCUMENTS = pa.schema(
    [
        required("row", pa.int64(), "row of the document in the shard"),
        required("n_bytes", pa.int64(), "length of its text in UTF-8 bytes"),
        required("n_tokens", pa.int64(), "canonical tokens, by which mixtures are measured"),
    ]
)

# One row per n-gram of a benchmark's questions that occurs in a shard.
GRAM_COUNTS = pa.schema(
    [
        required("version", pa.string(), "fingerprint of the benchmark version"),
        required("shard", pa.uint32(), "position of the shard in the file, from 0"),
        required("place", pa.uint32(), "n-gram's first position among the question tokens"),
        required("n_documents", pa.uint32(), "documents that hold it"),
    ]
)

# n-grams of benchmarks that occur in so many documents of a source that they are no evidence.
COMMON = pa.schema(
    [
        required("source", pa.string(), "name of the source"),
        required("benchmark", pa.string(), "whose n-gram it is"),
        required("place", pa.uint32(), "n-gram's first position among the question tokens"),
        required("text", pa.string(), "how it reads there"),
        required("n_questions", pa.int64(), "distinct questions of the benchmark that contain it"),
        required("n_documents", pa.int64(), "documents of the source that contain it"),
        required("share", pa.float64(), "share of all documents of the source"),
    ]
)

# One row per document, record and place. Which record of an item is used, and whether it is a leak,
# is decided later by the thresholds. Records of an item that are found alike share the row of the
# one that decisions would choose of them (`scan/alike.py`). Spans are half-open; characters are
# counted in the original text of the document.
ALIKE = pa.schema(
    [
        field(
            "first_record",
            pa.int64(),
            "first of the item's records that were found alike and share this row; null: only "
            "`record` was found",
        ),
        field("n_alike", pa.int64(), "number of records that share this row; they are consecutive"),
        field(
            "words",
            pa.string(),
            "if records share this row: the SHA-256 of the canonical words of the spans, from "
            "which the ids of their matched texts are derived",
        ),
    ]
)
_MATCH = pa.schema(
    [
        required("shard", pa.string(), "fingerprint of the shard"),
        required("row", pa.int64(), "row of the document in the shard"),
        field("doc_id", pa.string(), "the document's own id, if it has one"),
        required(
            "slot_kind",
            pa.string(),
            "visible: in text that a model sees; hidden: in a reference answer, rubric or similar",
        ),
        required("detector", pa.string(), "the detector that found it"),
        required(
            "detector_fingerprint",
            pa.string(),
            "fingerprint of the detector's settings and the term weights",
        ),
        required("benchmark", pa.string(), "name of the benchmark"),
        field("config", pa.string(), "part of the benchmark"),
        required("split", pa.string(), "split of the item"),
        required("instance_index", pa.int64(), "row of the item within its split"),
        required("record", pa.int64(), "row in the benchmark's record table"),
        required("fingerprint", pa.string(), "of the record"),
        required(
            "text_id",
            pa.string(),
            "id of the matched text: 16 hex digits of the SHA-256 of the record's fingerprint and "
            "the canonical words of the spans",
        ),
        field("is_correct", pa.bool_(), "whether the record holds the correct choice"),
        required(
            "base_score", pa.float64(), "the detector's score; decon: before the length penalty"
        ),
        field(
            "question_overlap",
            pa.float64(),
            "share of the question found; decon: by idf; null: longest_match did not search for it",
        ),
        field("answer_overlap", pa.float64(), "share of the answer found; null: it has none"),
        field("passage_overlap", pa.float64(), "share of the passage found; null: it has none"),
        field(
            "kind",
            pa.string(),
            "how the place relates to the item: verbatim, edited, variant, …; null: its detector "
            "gives only a score",
        ),
        field(
            "searched_text",
            pa.string(),
            "exact, ratcliff: which text of the item was searched for, such as question and answer",
        ),
        required(
            "n_matched",
            pa.int64(),
            "number found: distinct question n-grams (decon), occurrences (exact), tokens (others)",
        ),
        field("matched", pa.binary(), "decon: one bit per question n-gram, set if it was found"),
        required("n_grams", pa.int64(), "question length in n-grams (decon) or tokens (others)"),
        required("question_tokens", pa.int64(), "length of the question in tokens"),
        required("total_tokens", pa.int64(), "length that the length penalty depends on"),
        *(
            field(
                f"{part}{unit}_{edge}",
                pa.int64(),
                f"{'first' if edge == 'start' else 'one past the last'} "
                f"{'character' if unit else 'token'} of the {part} in the document",
            )
            for unit in ("", "_char")
            for part in ("question", "answer", "passage")
            for edge in ("start", "stop")
        ),
        *(
            field(
                f"{part}_part",
                pa.string(),
                f"path, within the row, of the string in which the {part} begins",
            )
            for part in ("question", "answer", "passage")
        ),
    ]
)

MATCHES = pa.schema([*_MATCH, *ALIKE])

# Matches decided by the policy's thresholds and the verdicts of reviews: one row per document, item
# and place.
ENTRIES = pa.schema(
    [
        *_MATCH,
        required("score", pa.float64(), "base score after the length penalty"),
        required(
            "is_by_score",
            pa.bool_(),
            "whether its score reaches the threshold, whatever the verdict",
        ),
        field(
            "holds_to",
            pa.float64(),
            "the highest threshold of the sweep at which it would still be a leak; null: no such "
            "threshold, or no sweep",
        ),
        field("verdict", pa.string(), "verdict of a reviewer; null: none"),
        field(
            "is_judged_duplicate",
            pa.bool_(),
            "whether a file or a model called it a duplicate; null: neither judged it, or a person "
            "decided",
        ),
        required(
            "is_contaminated",
            pa.bool_(),
            "whether it counts as a leak, by its score, a verdict or a judgement",
        ),
        required(
            "needs_review",
            pa.bool_(),
            "whether the policy sends its kind to review (variant, part, reworded, names, near in "
            "meaning) and nobody has confirmed or cleared it",
        ),
        required(
            "is_no_answer",
            pa.bool_(),
            "decon: no leak, but its question (or question and passage) was found without the "
            "answer and would be a leak on its own",
        ),
    ]
)

# One row per reason and document that a mixture leaves out or cuts.
REMOVED = pa.schema(
    [
        required("shard", pa.string(), "name of the shard"),
        required("row", pa.int64(), "row in the shard"),
        field("doc_id", pa.string(), "the document's own id, if it has one"),
        field("n_tokens", pa.int64(), "canonical tokens removed; null: the row could not be read"),
        required("what", pa.string(), "document, turns or spans"),
        required(
            "why",
            pa.string(),
            "leak, no answer, review, license, control, no leak, unreadable, invalid_utf8",
        ),
        field("detector", pa.string(), "for a finding: the detector that found it"),
        field("benchmark", pa.string(), "for a finding: name of the benchmark"),
        field("split", pa.string(), "for a finding: split of the item"),
        field("instance_index", pa.int64(), "for a finding: row of the item in its split"),
        field("score", pa.float64(), "for a finding: score of the whole record"),
        field(
            "detail",
            pa.string(),
            "the license found; why the row could not be read; for a finding: its kind, the text "
            "searched for, who called it a leak, or why it could not be cut out",
        ),
    ]
)

# One row per document that a control leaves out.
DRAWN = pa.schema(
    [
        required("shard", pa.string(), "name of the shard (two shards may have the same bytes)"),
        required("row", pa.int64(), "row in the shard"),
    ]
)

# One row per item and detector: whether the detector could find the item in any document.
VISIBILITY = pa.schema(
    [
        required("benchmark", pa.string(), "name of the benchmark"),
        field("config", pa.string(), "part of the benchmark"),
        required("split", pa.string(), "split of the item"),
        required("instance_index", pa.int64(), "row of the item within its split"),
        required("detector", pa.string(), "a detector that the policy chooses"),
        required("is_visible", pa.bool_(), "whether the detector can find the item"),
        field("reason", pa.string(), "why it cannot find the item; null: it can"),
        required("n_records", pa.int64(), "records of the item"),
        field("detail", pa.string(), "details of the reason, such as a length or a repeated item"),
    ]
)
