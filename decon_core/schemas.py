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
        field("config", pa.string(), "part of the benchmark: a subject, a language"),
        required("split", pa.string(), "train, validation, test, ..."),
        required("instance_index", pa.int64(), "row within the split: the item that people score"),
        field("sub_index", pa.int64(), "set when one row holds several questions"),
        field("choice_index", pa.int64(), "set when a question has one record per choice"),
        field("is_correct", pa.bool_(), "whether this choice is the correct one, if known"),
        field("passage", pa.string(), "text that the question is about"),
        required("question", pa.string(), "what the model is asked"),
        field("answer", pa.string(), "what it should say, or the text of a choice"),
        required("fingerprint", pa.string(), "first 16 hex digits of the texts' SHA-256"),
        field("extras", pa.string(), "further fields that the recipe keeps, as a JSON object"),
    ]
)

# One row with an array in every column, to be memory-mapped. Token n is the tokenizer's id
# ids[n - 1].
INDEX = pa.schema(
    [
        _array("dropped", pa.uint8(), "per record: why it is not indexed; 0: it is"),
        _array("ids", pa.int64(), "the tokenizer's ids that occur, ascending"),
        *(
            _array(f"{kind}.{name}", of, meaning.format(kind=kind))
            for kind in ("question", "answer", "passage")
            for name, of, meaning in (
                ("tokens", pa.uint32(), "tokens of every different {kind}, one after the other"),
                ("offsets", pa.int64(), "where each {kind} begins in them, and the last one ends"),
                ("of_entry", pa.int64(), "per indexed record: its {kind}; -1: it has none"),
                ("df", pa.uint32(), "records that hold each n-gram of each {kind}, in order"),
                ("df_offsets", pa.int64(), "where those of each {kind} begin, and the last end"),
            )
        ),
    ]
)

FREQUENCIES = pa.schema(
    [
        _array("ids", pa.int64(), "the tokenizer's ids that occur, ascending"),
        _array("token_df", pa.int64(), "how many fields of records hold each id"),
        *(
            _array(f"{kind}.{name}", of, meaning.format(kind=kind))
            for kind in ("question", "answer", "passage")
            for name, of, meaning in (
                ("tokens", pa.uint32(), "tokens of every different {kind} n-gram"),
                ("df", pa.int64(), "how many records hold each"),
            )
        ),
    ]
)

# One row per document of a scanned shard, in order.
DOCUMENTS = pa.schema(
    [
        required("row", pa.int64(), "row of the document in the shard"),
        required("n_bytes", pa.int64(), "length of its text in UTF-8"),
        required("n_tokens", pa.int64(), "canonical tokens: what mixtures are measured by"),
    ]
)

# One row per n-gram of a benchmark's questions that occurs in a shard.
GRAM_COUNTS = pa.schema(
    [
        required("shard", pa.uint32(), "which of the shards of the file, from zero"),
        required("place", pa.uint32(), "token of the questions at which it first occurs"),
        required("n_documents", pa.uint32(), "documents that hold it"),
    ]
)

# n-grams of benchmarks that occur in so many documents of a source that they are no evidence.
COMMON = pa.schema(
    [
        required("source", pa.string(), "name of the source"),
        required("benchmark", pa.string(), "whose n-gram it is"),
        required("place", pa.uint32(), "token of the questions at which it first occurs"),
        required("text", pa.string(), "how it reads there"),
        required("n_questions", pa.int64(), "different questions of the benchmark that hold it"),
        required("n_documents", pa.int64(), "documents of the source that hold it"),
        required("share", pa.float64(), "of all documents of the source"),
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
            "the first of the item's records that were found alike, and share this row; null: only "
            "`record`",
        ),
        field("n_alike", pa.int64(), "how many records share this row; they follow one another"),
        field(
            "words",
            pa.string(),
            "if records share this row: the SHA-256 of the canonical words of the spans, by which "
            "their matched texts have ids",
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
            "visible: in text that a model sees; hidden: in a reference answer, rubric or the like",
        ),
        required("detector", pa.string(), "the detector that found it"),
        required(
            "detector_fingerprint",
            pa.string(),
            "of the detector's settings and the term weights",
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
            "what was found, wherever it occurs: 16 hex digits of the SHA-256 of the record's "
            "fingerprint and the canonical words of the spans",
        ),
        field("is_correct", pa.bool_(), "whether the record holds the correct choice"),
        required(
            "base_score", pa.float64(), "the detector's score; decon: before the length penalty"
        ),
        field(
            "question_overlap",
            pa.float64(),
            "share of the question found; decon: by idf; null: longest_match cannot look for it",
        ),
        field("answer_overlap", pa.float64(), "the same for the answer; null: it has none"),
        field("passage_overlap", pa.float64(), "the same for the passage; null: it has none"),
        field(
            "kind",
            pa.string(),
            "what the place is to the item: verbatim, edited, variant, …; null: its detector "
            "only has a score",
        ),
        field(
            "searched_text",
            pa.string(),
            "exact, ratcliff: which text of the item was searched for, such as question and answer",
        ),
        required(
            "n_matched",
            pa.int64(),
            "decon: different question n-grams found; exact: occurrences; others: tokens",
        ),
        field("matched", pa.binary(), "decon: a bit for each of the question's n-grams, in order"),
        required("n_grams", pa.int64(), "of how many: n-grams, or tokens of the question"),
        required("question_tokens", pa.int64(), "length of the question"),
        required("total_tokens", pa.int64(), "the length that the length penalty goes by"),
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
                f"path of the string of the row in which the {part} begins",
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
            "the highest threshold of the sweep at which it would still be a leak; null: not asked "
            "for, or none",
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
            "whether its kind needs review by the policy (variant, part, reworded, names, near "
            "in meaning), and nobody confirmed or cleared it",
        ),
        required(
            "is_no_answer",
            pa.bool_(),
            "decon: no leak, but its question was found (or question and passage) without the "
            "answer, and would be a leak by itself",
        ),
    ]
)

# One row per reason and document that a mixture leaves out or cuts.
REMOVED = pa.schema(
    [
        required("shard", pa.string(), "name of the shard"),
        required("row", pa.int64(), "row in the shard"),
        field("doc_id", pa.string(), "the document's own id, if it has one"),
        field("n_tokens", pa.int64(), "canonical tokens that went; null: it could not be read"),
        required("what", pa.string(), "document, turns or spans"),
        required(
            "why",
            pa.string(),
            "leak, no answer, review, license, control, no leak, unreadable, invalid_utf8",
        ),
        field("detector", pa.string(), "leak, no answer: the detector that found it"),
        field("benchmark", pa.string(), "leak, no answer: name of the benchmark"),
        field("split", pa.string(), "leak, no answer: split of the item"),
        field("instance_index", pa.int64(), "leak, no answer: row of the item in its split"),
        field("score", pa.float64(), "leak, no answer: the score of the whole record"),
        field(
            "detail",
            pa.string(),
            "license: the one found; unreadable, invalid_utf8: why; exact: the text looked for; "
            "that a person decided; a remark",
        ),
    ]
)

# One row per document that a control leaves out.
DRAWN = pa.schema(
    [
        required("shard", pa.string(), "name of the shard: two may have the same bytes"),
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
        required("detector", pa.string(), "one of the detectors that the policy chooses"),
        required("is_visible", pa.bool_(), "whether the detector can find it"),
        field("reason", pa.string(), "why it can find none of them; null: it can find one"),
        required("n_records", pa.int64(), "records of the item"),
        field("detail", pa.string(), "what it looks for, how short a text is, what is repeated"),
    ]
)
