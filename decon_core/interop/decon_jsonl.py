"""Leaks in the reference implementation's report form: a JSON object a line, one file per shard.

Programs that read the reference's reports read these. What differs, and why:

- `training_file` keeps the shard's folder and whole file name, as the name of the report file does:
  the reference gives the base name only, so that two shards of one name cannot be told apart. A
  shard without leaks has an empty file, which says that it was scanned.
- `training_overlap_text` is cut from the original text, with its capitals and punctuation, and
  marked as there: ⟨passage⟩ 【question】 ⟦answer⟧. Context is counted in words, not in tokens.
- `answer_overlap_ratio` and `passage_overlap_ratio` are the shares by idf, as in the fields beside
  them: tiles keep no plain counts.
- `cluster_token_length` ends where the answer begins, like `question_end_idx`; there it goes on to
  the end of the cluster.
- Of an item's choices the best one is reported, not whichever came first; and an item that repeats
  another is reported like the first.
- `eval_line` is the row in the benchmark's record table, and `reference_file` that table: files may
  have been read by a recipe, and have no line for a record.
- Rows that could not be read are not in it, as they are not there: they are in the ledger.

As there: `training_line` and `eval_line` count from 0, the `_idx` fields are positions of tokens in
the canonical text, with the last one included, and the texts of the benchmark are canonical, the
first 1000 words of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl
import pyarrow as pa

from decon_core.config.load import Source
from decon_core.config.policy import Policy
from decon_core.corpus.documents import Document
from decon_core.corpus.packs import Shard
from decon_core.corpus.shards import read_shard
from decon_core.text.canonical import canonical

_WORDS_BEFORE = 30
_WORDS_AFTER = 60
_MOST_EVAL_WORDS = 1000
MARKS = {"passage": ("⟨", "⟩"), "question": ("【", "】"), "answer": ("⟦", "⟧")}
_EVAL_TEXTS = ("question", "answer", "passage")


def report_name(shard: str, policy: Policy) -> str:
    """The report file of a shard, below the folder of all reports."""
    return f"{shard}-simple-{policy.contamination_score_threshold:.2f}.jsonl"


def write_report(
    folder: Path,
    shard: Shard,
    source: Source,
    entries: pa.Table,
    records: Mapping[str, pa.Table],
    policy: Policy,
) -> None:
    """Write what leaked into a shard. `records` are the benchmarks' tables, by name.

    The shard is read once more, for its texts; it raises when it is not what was scanned.
    """
    path = folder / report_name(shard.name, policy)
    path.parent.mkdir(parents=True, exist_ok=True)
    leaks: dict[int, list[dict[str, Any]]] = {}
    is_leak = pl.col("is_contaminated") & (pl.col("detector") == "decon")  # the reference's rule
    for entry in pl.DataFrame(entries).filter(is_leak).to_dicts():
        leaks.setdefault(entry["row"], []).append(entry)
    with path.open("wb") as file:
        for text, entry in _with_texts(shard, source, leaks):
            record = records[entry["benchmark"]].slice(entry["record"], 1).to_pylist()[0]
            line = report_line(entry, record, text, training_file=shard.name, policy=policy)
            file.write(orjson.dumps(line) + b"\n")


def _with_texts(
    shard: Shard, source: Source, leaks: Mapping[int, list[dict[str, Any]]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    if not leaks:
        return
    for row in read_shard(shard, source):  # to its end: only there it is known to be the same
        if isinstance(row, Document):
            for entry in leaks.get(row.row, ()):
                yield row.text, entry


def report_line(
    entry: Mapping[str, Any],
    record: Mapping[str, Any],
    text: str,
    *,
    training_file: str,
    policy: Policy,
) -> dict[str, Any]:
    """One leak; a field that has no value is left out."""
    length = entry["question_stop"] - entry["question_start"]
    asked = np.array([entry["question_tokens"]])
    line = {
        "training_file": training_file,
        "training_line": entry["row"],
        "eval_dataset": entry["benchmark"],
        "eval_key": entry["benchmark"],
        "eval_line": entry["record"],
        "eval_instance_index": _original_instance(record),
        "split": entry["split"],
        "ngram_match_cnt": entry["n_matched"],
        "eval_unique_ngrams": entry["n_grams"],
        "contamination_score": entry["score"],
        "length_adjusted_question_threshold": float(
            policy.decay(asked, policy.least_question_overlap)[0]
        ),
        "method": "simple",
        "idf_overlap": entry["question_overlap"],
        "question_start_idx": entry["question_start"],
        "question_end_idx": entry["question_stop"] - 1,
        "training_overlap_text": overlap_text(text, entry),
        "eval_overlap_text": _canonical(record["question"], policy),
        **{f"eval_{part}_text": _canonical(record[part], policy) for part in _EVAL_TEXTS},
        "answer_overlap_ratio": entry["answer_overlap"],
        "answer_idf_overlap": entry["answer_overlap"],
        "answer_start_idx": entry["answer_start"],
        "answer_end_idx": _last(entry["answer_stop"]),
        "passage_overlap_ratio": entry["passage_overlap"],
        "passage_idf_overlap": entry["passage_overlap"],
        "cluster_token_length": length,
        "eval_token_length": entry["question_tokens"],
        "token_length_delta": length - entry["question_tokens"],
        "fingerprint": entry["fingerprint"],
        "is_correct": entry["is_correct"],
        "reference_file": entry["benchmark"],
    }
    return {name: value for name, value in line.items() if value is not None}


def _original_instance(record: Mapping[str, Any]) -> int:
    """Its number in the reference's own file, where that is known to differ from ours."""
    extras = orjson.loads(record["extras"]) if record["extras"] else {}
    number = extras.get("eval_instance_index", record["instance_index"])
    return int(number)


def _last(stop: int | None) -> int | None:
    return None if stop is None else stop - 1


def _canonical(text: str | None, policy: Policy) -> str | None:
    if text is None:
        return None
    words = canonical(text, policy.form).split(" ")
    return " ".join(words[:_MOST_EVAL_WORDS])


def overlap_text(text: str, entry: Mapping[str, Any]) -> str:
    """The place in the original text, its parts marked, with words before and behind it."""
    spans = sorted(
        (entry[f"{part}_char_start"], entry[f"{part}_char_stop"], marks)
        for part, marks in MARKS.items()
        if entry[f"{part}_char_start"] is not None
    )
    at = _words_before(text, spans[0][0])
    pieces = ["... " if at else "", text[at : spans[0][0]]]
    at = spans[0][0]
    for start, stop, (opening, closing) in spans:
        # Parts that overlap are cut, not repeated: what is between the marks is the text in order.
        first, last = max(start, at), max(stop, at)
        pieces += [text[at:first], opening, text[first:last], closing]
        at = last
    end = _words_behind(text, at)
    return "".join([*pieces, text[at:end], " ..." if end < len(text) else ""])


def _words_before(text: str, at: int) -> int:
    # Of a text of any length only this much is looked at: words may be longer, not by much.
    window = max(0, at - 50 * _WORDS_BEFORE)
    starts = [word.start() for word in re.finditer(r"\S+", text[window:at])]
    return window + starts[-_WORDS_BEFORE] if len(starts) > _WORDS_BEFORE else window


def _words_behind(text: str, at: int) -> int:
    window = text[at : at + 50 * _WORDS_AFTER]
    stops = [word.end() for word in re.finditer(r"\S+", window)]
    return at + (stops[_WORDS_AFTER - 1] if len(stops) > _WORDS_AFTER else len(window))
