"""Write leaks as reports of the reference implementation: JSON lines, one file per shard.

Programs that read the reference's reports can read these; docs/reference.md lists the differences.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl
import pyarrow as pa

from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.corpus.documents import Document
from decon_core.corpus.packs import Shard
from decon_core.corpus.shards import read_shard
from decon_core.text.canonical import canonical

_WORDS_BEFORE = 30
_WORDS_AFTER = 60
_MOST_EVAL_WORDS = 1000
MARKS = {"passage": ("⟨", "⟩"), "question": ("【", "】"), "answer": ("⟦", "⟧")}


def report_name(shard: str, policy: Policy) -> str:
    """Return the path of a shard's report file below the report folder."""
    return f"{shard}-simple-{policy.contamination_score_threshold:.2f}.jsonl"


def write_report(
    folder: Path,
    shard: Shard,
    source: Source,
    entries: pa.Table,
    records: Mapping[str, pa.Table],
    policy: Policy,
) -> None:
    """Write the leaks of a shard, which is read again. `records`: the tables by benchmark."""
    path = folder / report_name(shard.name, policy)
    path.parent.mkdir(parents=True, exist_ok=True)
    leaks: dict[int, list[dict[str, Any]]] = {}
    # Only `decon`, the detector of the reference.
    is_leak = pl.col("is_contaminated") & (pl.col("detector") == "decon")
    for entry in pl.DataFrame(entries).filter(is_leak).to_dicts():
        leaks.setdefault(entry["row"], []).append(entry)
    with path.open("wb") as file:
        # Rows are read to the end of the shard, where its checksum is verified.
        for row in read_shard(shard, source) if leaks else ():
            if not isinstance(row, Document):
                continue
            for entry in leaks.get(row.row, ()):
                record = records[entry["benchmark"]].slice(entry["record"], 1).to_pylist()[0]
                line = report_line(entry, record, row.text, training_file=shard.name, policy=policy)
                file.write(orjson.dumps(line) + b"\n")


def report_line(
    entry: Mapping[str, Any],
    record: Mapping[str, Any],
    text: str,
    *,
    training_file: str,
    policy: Policy,
) -> dict[str, Any]:
    """Return the report line of one leak; fields without a value are left out."""
    length = entry["question_stop"] - entry["question_start"]
    question_tokens, answer_stop = np.array([entry["question_tokens"]]), entry["answer_stop"]
    threshold = policy.decay(question_tokens, policy.least_question_overlap)[0]
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
        "length_adjusted_question_threshold": float(threshold),
        "method": "simple",
        "idf_overlap": entry["question_overlap"],
        "question_start_idx": entry["question_start"],
        "question_end_idx": entry["question_stop"] - 1,
        "training_overlap_text": overlap_text(text, entry),
        "eval_overlap_text": _canonical(record["question"], policy),
        **{
            f"eval_{part}_text": _canonical(record[part], policy)
            for part in ("question", "answer", "passage")
        },
        "answer_overlap_ratio": entry["answer_overlap"],
        "answer_idf_overlap": entry["answer_overlap"],
        "answer_start_idx": entry["answer_start"],
        "answer_end_idx": None if answer_stop is None else answer_stop - 1,
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
    """Return the item's index in the reference's own file if it is known, else ours."""
    extras = orjson.loads(record["extras"] or "{}")
    return int(extras.get("eval_instance_index", record["instance_index"]))


def _canonical(text: str | None, policy: Policy) -> str | None:
    if text is None:
        return None
    return " ".join(canonical(text, policy.form).split(" ")[:_MOST_EVAL_WORDS])


def overlap_text(text: str, entry: Mapping[str, Any]) -> str:
    """Cut the match from the original text, with its parts marked and words of context."""
    spans = sorted(
        (entry[f"{part}_char_start"], entry[f"{part}_char_stop"], marks)
        for part, marks in MARKS.items()
        if entry[f"{part}_char_start"] is not None
    )
    at = _words_before(text, spans[0][0])
    pieces = ["... " if at else "", text[at : spans[0][0]]]
    at = spans[0][0]
    for start, stop, (opening, closing) in spans:
        # Overlapping parts are cut, not repeated, so that the text stays in order.
        first, last = max(start, at), max(stop, at)
        pieces += [text[at:first], opening, text[first:last], closing]
        at = last
    end = _words_after(text, at)
    return "".join([*pieces, text[at:end], " ..." if end < len(text) else ""])


def _words_before(text: str, at: int) -> int:
    # A bounded window, so that long texts cost no more: 50 characters per word are enough.
    window = max(0, at - 50 * _WORDS_BEFORE)
    starts = [word.start() for word in re.finditer(r"\S+", text[window:at])]
    return window + starts[-_WORDS_BEFORE] if len(starts) > _WORDS_BEFORE else window


def _words_after(text: str, at: int) -> int:
    window = text[at : at + 50 * _WORDS_AFTER]
    stops = [word.end() for word in re.finditer(r"\S+", window)]
    return at + (stops[_WORDS_AFTER - 1] if len(stops) > _WORDS_AFTER else len(window))
