"""What a detector found, as rows of a tile, with the characters of the original text behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from decon_core.corpus import Document, Shard
from decon_core.index import Target
from decon_core.policy import Policy
from decon_core.reference import Found, Match, question_grams, total_length
from decon_core.text import clean_with_offsets
from decon_core.tokens import Tokenizer, load_tokenizer

_DETECTOR = "decon"


def match_rows(
    document: Document,
    found: Sequence[Match],
    target: Target,
    *,
    shard: Shard,
    scan: str,
    policy: Policy,
) -> list[dict[str, Any]]:
    """The tile rows of what was found in a document."""
    place = _Place(document.text, policy, load_tokenizer(policy.tokenizer_str))
    rows = []
    for match in found:
        row = target.rows[match.number]
        record = target.records.slice(row, 1).to_pylist()[0]
        entry = target.index.entries[match.number]
        question = (match.start, match.end + policy.ngram_size)
        if question[0] < match.answer.start < question[1]:
            question = (question[0], match.answer.start)  # the cluster ran into the answer
        rows.append(
            {
                "shard": shard.fingerprint,
                "row": document.row,
                "doc_id": document.id,
                "detector": _DETECTOR,
                "detector_fingerprint": scan,
                "benchmark": record["benchmark"],
                "config": record["config"],
                "split": record["split"],
                "instance_index": record["instance_index"],
                "record": row,
                "fingerprint": record["fingerprint"],
                "is_correct": record["is_correct"],
                "base_score": match.base_score,
                "question_overlap": match.question_overlap,
                "answer_overlap": match.answer.overlap if entry.answer else None,
                "passage_overlap": match.passage.overlap if entry.passage else None,
                "n_matched": match.n_matched,
                "n_grams": len(question_grams(entry, policy)),
                "question_tokens": len(entry.question),
                "total_tokens": total_length(entry),
                **place.columns("question", question),
                **place.columns("answer", _span(match.answer)),
                **place.columns("passage", _span(match.passage)),
            }
        )
    return rows


def _span(found: Found) -> tuple[int, int] | None:
    return None if found.start < 0 else (found.start, found.stop)


class _Place:
    """Token ranges of one document, with the original characters behind them."""

    def __init__(self, text: str, policy: Policy, tokenizer: Tokenizer) -> None:
        self._canonical = clean_with_offsets(text, punctuation=policy.punctuation_chars)
        self._spans = tokenizer.spans(" " + self._canonical.text)

    def columns(self, name: str, tokens: tuple[int, int] | None) -> dict[str, int | None]:
        start, stop = tokens or (None, None)
        char_start, char_stop = self._characters(*tokens) if tokens else (None, None)
        return {
            f"{name}_start": start,
            f"{name}_stop": stop,
            f"{name}_char_start": char_start,
            f"{name}_char_stop": char_stop,
        }

    def _characters(self, start: int, stop: int) -> tuple[int, int]:
        # One off for the space in front of the text; a word's own leading space is not part of it.
        first = max(self._spans[start][0] - 1, 0)
        last = self._spans[stop - 1][1] - 1
        if self._canonical.text[first] == " ":
            first += 1
        return self._canonical.original(first, max(last, first + 1))
