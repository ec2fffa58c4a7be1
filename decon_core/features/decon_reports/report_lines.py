"""Check a line of the reference implementation's reports; convert it to a match and its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from decon_core.config.policy import Policy
from decon_core.config.sources import ONLY_SOURCE
from decon_core.features.decon_reports.decon_jsonl import MARKS
from decon_core.scan.matches import digest_of, text_id_of
from decon_core.text.canonical import canonical

Line = Mapping[str, Any]

_TEXT, _WHOLE, _NUMBER, _FLAG = "a text", "a whole number, 0 or more", "a number", "true or false"

# Required for a match. The optional ones may be missing or null, but not of another type.
_REQUIRED = {
    "training_file": _TEXT,
    "training_line": _WHOLE,
    "eval_key": _TEXT,
    "eval_instance_index": _WHOLE,
    "contamination_score": _NUMBER,
}
_PARTS = ("question", "answer", "passage")  # order of a matched text's digest
_OPTIONAL = {
    **dict.fromkeys(("split", "fingerprint", "training_overlap_text", "eval_overlap_text"), _TEXT),
    **{f"eval_{part}_text": _TEXT for part in _PARTS},
    **dict.fromkeys(("eval_line", "ngram_match_cnt", "eval_unique_ngrams"), _WHOLE),
    "eval_token_length": _WHOLE,
    **dict.fromkeys(("idf_overlap", "answer_idf_overlap", "passage_idf_overlap"), _NUMBER),
    **{f"{part}_{edge}_idx": _WHOLE for part in _PARTS for edge in ("start", "end")},
    "is_correct": _FLAG,
}

_MOST = 2**63

_FORM = Policy().form


class LineError(ValueError):
    """A line that cannot be used: what was found, and what was expected."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(found, expected)
        self.found, self.expected = found, expected


def read_line(raw: bytes) -> Line:
    """Parse and check a line; raise `LineError` if it is not a report line."""
    try:
        line = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise LineError(str(error), "JSON") from None
    if not isinstance(line, dict):
        raise LineError("JSON that is not an object", "an object")
    for name, kind in (_REQUIRED | _OPTIONAL).items():
        value = line.get(name)
        if value is None and name in _OPTIONAL:
            continue
        if name not in line:
            raise LineError(f"no {name!r}", kind)
        if not _is(value, kind):
            raise LineError(f"{name!r}: {str(value)[:80]!r}", kind)
    return line


def _is(value: object, kind: str) -> bool:
    if kind == _FLAG or isinstance(value, bool):
        return kind == _FLAG and isinstance(value, bool)
    if kind == _WHOLE:
        return isinstance(value, int) and 0 <= value < _MOST
    return isinstance(value, str if kind == _TEXT else int | float)


def match_row(line: Line, marked: Marked, *, shard: str) -> dict[str, Any]:
    """Convert a line to a row of `matches`; the base score is not reported, so it is the score."""
    score = float(line["contamination_score"])
    length = line.get("eval_token_length") or 0
    spans: dict[str, int | None] = {}
    for part in _PARTS:
        # The reference's ranges include the last token; ours are half-open.
        start, last = line.get(f"{part}_start_idx"), line.get(f"{part}_end_idx")
        span = (None, None) if start is None or last is None else (start, last + 1)
        spans[f"{part}_start"], spans[f"{part}_stop"] = span
    return {
        "source": ONLY_SOURCE,
        "shard_name": shard,
        "row": line["training_line"],
        "detector": "decon",
        "benchmark": line["eval_key"],
        "split": line.get("split") or "",
        "instance_index": line["eval_instance_index"],
        "record": line.get("eval_line") or 0,
        "fingerprint": line.get("fingerprint") or "",
        "text_id": _text_id(line, marked),
        "is_correct": line.get("is_correct"),
        "base_score": score,
        "question_overlap": line.get("idf_overlap"),
        "answer_overlap": line.get("answer_idf_overlap"),
        "passage_overlap": line.get("passage_idf_overlap"),
        "n_matched": line.get("ngram_match_cnt") or 0,
        "n_grams": line.get("eval_unique_ngrams") or 0,
        "question_tokens": length,
        "total_tokens": length,
        **spans,
        "score": score,
        "is_by_score": True,
        "is_contaminated": True,
    }


def _text_id(line: Line, marked: Marked) -> str:
    """Return the id that a scan by the default policy gives this text, so that verdicts apply.

    The id differs if parts overlap, which the marks cannot show.
    """
    texts = {mark.part: marked.text[mark.start : mark.stop] for mark in marked.marks}
    words = [canonical(texts.get(part, ""), _FORM) for part in _PARTS]
    return text_id_of(line.get("fingerprint") or "", digest_of(words))


def matched_text_of(line: Line, marked: Marked) -> dict[str, Any]:
    """Return the texts of a row of `matched_texts`, without marks in those of the benchmark."""
    return {
        "question": line.get("eval_question_text") or line.get("eval_overlap_text"),
        "answer": line.get("eval_answer_text"),
        "passage": line.get("eval_passage_text"),
        "text": marked.text or None,
        "text_marks": [{**vars(mark)} for mark in marked.marks],
        "why_no_text": None if marked.text else "the report does not contain the text",
    }


@dataclass(frozen=True)
class Mark:
    """A marked part of a text, as a range of characters."""

    start: int
    stop: int
    part: str


@dataclass(frozen=True)
class Marked:
    """A text without its marks, the marks, and the kinds of marks that are ambiguous."""

    text: str
    marks: tuple[Mark, ...]
    unclear: tuple[str, ...]


def parse_marks(text: str) -> Marked:
    """Remove and return the marks; the program's dots at both ends of the text are kept.

    A document may contain such brackets itself. The program writes each kind at most once, so a
    kind that is repeated or not closed is ambiguous: its brackets stay and mark nothing.
    """
    edges: dict[int, tuple[str, bool]] = {}
    unclear = []
    for part, (opening, closing) in MARKS.items():
        n_open, n_close = text.count(opening), text.count(closing)
        start, stop = text.find(opening), text.find(closing)
        if (n_open, n_close) == (1, 1) and start < stop:
            edges |= {start: (part, True), stop: (part, False)}
        elif n_open or n_close:
            unclear.append(part)
    marks, starts, plain, last = [], {}, "", 0
    for at, (part, is_opening) in sorted(edges.items()):
        plain += text[last:at]
        last = at + 1
        if is_opening:
            starts[part] = len(plain)
        else:
            marks.append(Mark(starts[part], len(plain), part))
    marks.sort(key=lambda mark: mark.start)
    return Marked(plain + text[last:], tuple(marks), tuple(unclear))
