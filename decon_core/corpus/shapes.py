"""Detect the text fields of a file from its first rows: `text`, `messages`, or several fields.

`init` writes the result into decon.toml, `scan` uses it when no field is given, and the error about
a file without readable rows lists its fields and the setting that reads them.
"""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from decon_core.config.load import Source
from decon_core.corpus.documents import Unreadable, document_of
from decon_core.corpus.first_rows import (
    MIN_CHARACTERS,
    Field,
    Row,
    fields_of,
    is_prose,
    leaves,
    sample,
)
from decon_core.errors import Problem
from decon_core.wording import counted

# Usual names of text fields, the most common first. Other fields are ranked by length.
_TEXTS = ("text", "content", "raw_content", "body", "document", "article", "markdown", "code")
_PAIRS = (("prompt", "chosen", "rejected"), ("chosen", "rejected"))
_QUESTIONS = ("prompt", "problem", "question", "query", "instruction")
# These names are also used for metadata: beside a text field they must contain prose.
_MAYBE_QUESTIONS = ("input", "inputs", "user", "context", "source")
_REPLIES = (
    *("response", "responses", "completion", "completions", "output", "outputs", "assistant"),
    *("target", "targets", "solution", "solutions", "answer", "answers"),
)
_IDS = ("id", "doc_id", "docid", "document_id", "uuid", "_id", "uid", "record_id")
_N_LONGEST = 3  # fields tried by length

_ANSWERS = frozenset(
    (
        *("answer", "answers", "solution", "solutions", "response", "responses", "output"),
        *("completion", "target", "label", "gold", "ground_truth", "reference", "rationale"),
        *("final_answer", "expected_answer", "reference_answer", "correct_answer"),
        *("completions", "outputs", "targets", "assistant"),
        "canonical_solution",
    )
)
# Names of answers, but also of metadata (`label`): only reported if they contain prose.
_METADATA = frozenset(("label", "reference", "gold"))
_N_LISTED = 8  # fields listed in a message


def detect_fields(rows: Sequence[Row]) -> tuple[Source, str] | None:
    """Return a source with the text fields and the reason for the choice; None if none fits."""
    best: tuple[int, Source, str] | None = None
    for source, why in _candidates(rows):
        n = count_read(source, rows)
        if n and (best is None or n > best[0]):
            best = n, source, why
    if best is None:
        return None
    _, source, why = best
    return replace(source, id=_id_of(rows)), why


def count_read(source: Source, rows: Iterable[Row]) -> int:
    """Return how many rows are documents when read with a source."""
    return sum(not isinstance(document_of(row, 0, source), Unreadable) for row in rows)


def _candidates(rows: Sequence[Row]) -> list[tuple[Source, str]]:
    """Return possible sources with the reason for each, the most likely first."""
    fields = fields_of(rows)
    texts = [field for field in fields if "text" in field.kinds]
    known = {field.name for field in fields}
    long = sorted(texts, key=lambda field: -field.n_characters)[:_N_LONGEST]
    prose = in_reading_order(_prose(rows))
    return [
        *(
            (_text(names), f"{_quoted(names)} are the usual names of preference pairs")
            for names in _PAIRS
            if known.issuperset(names)
        ),
        *(
            (
                Source(name="", path="", messages=field.name),
                f"{field.name!r} contains conversations",
            )
            for field in fields
            if "messages" in field.kinds
        ),
        *(
            (_text(names), f"{_quoted(names)} are questions and answers")
            for names in _layouts(rows, texts)
        ),
        *(
            (_text(field.name), f"{field.name!r} is a usual name for text")
            for field in _named_text(texts)
        ),
        *(
            (_text(field.name), f"{field.name!r} is a usual name for questions")
            for name in _QUESTIONS
            for field in texts
            if _tail(field.name) == name
        ),
        *([(_text(prose), f"{_quoted(prose)} have long texts")] if len(prose) > 1 else []),
        *(
            (_text(field.name), f"{field.name!r} has long texts: {field.n_characters} characters")
            for field in long
            if field.n_characters >= MIN_CHARACTERS
        ),
    ]


def _named_text(texts: Sequence[Field]) -> list[Field]:
    return [field for name in _TEXTS for field in texts if field.name.rpartition(".")[2] == name]


def _layouts(rows: Sequence[Row], texts: Sequence[Field]) -> list[tuple[str, ...]]:
    """Return groups of question and answer fields to read together, the most complete first.

    Empty if a field such as `text` repeats all of them. If that field contains something else that
    is longer than a label, it is part of the first group.
    """
    text_fields = _named_text(texts)
    prose = set(_prose(rows))
    questions = _question_fields(texts, prose if text_fields else None)
    replies = _named(texts, _REPLIES)
    if not questions or not replies:
        return []
    both = (*questions, *replies)
    if any(_repeats(rows, field.name, both) for field in text_fields):
        return []
    extra = [one.name for one in text_fields[:1] if one.n_characters >= MIN_CHARACTERS]
    pairs = ((*questions[:1], name) for name in replies)
    return [*dict.fromkeys(((*questions, *extra, *replies), both, *pairs))]


def _question_fields(texts: Sequence[Field], prose: Collection[str] | None) -> list[str]:
    """Return the question fields; ambiguous names only if in `prose` (None: not checked)."""
    certain = _named(texts, _QUESTIONS)
    possible = [
        name
        for name in _named(texts, _MAYBE_QUESTIONS)
        if (prose is None and not (certain and _tail(name) in ("user", "source")))
        or (prose is not None and name in prose)
    ]
    return [*certain, *possible]


def _named(texts: Sequence[Field], names: Sequence[str]) -> list[str]:
    return [field.name for name in names for field in texts if _tail(field.name) == name]


def _tail(path: str) -> str:
    return path.rpartition(".")[2].lower()


def _repeats(rows: Sequence[Row], name: str, others: Collection[str]) -> bool:
    """Return whether a field contains the texts of other fields in all rows that have both."""
    values = [dict(leaves(row)) for row in rows]
    compared = [
        text.strip() in str(row[name])
        for row in values
        if isinstance(row.get(name), str)
        for other in others
        for text in _strings(row.get(other))
    ]
    return bool(compared) and all(compared)


def _prose(rows: Sequence[Row]) -> list[str]:
    """Return the fields that contain prose in some row."""
    return [field.name for field in fields_of(rows) if field.has_prose]


def in_reading_order(names: Iterable[str]) -> tuple[str, ...]:
    """Sort field names: questions first, answers last, otherwise in the given order."""

    def rank(name: str) -> int:
        tail = _tail(name)
        return 0 if tail in (*_QUESTIONS, *_MAYBE_QUESTIONS) else 2 if tail in _ANSWERS else 1

    return tuple(sorted(names, key=rank))


def _text(names: str | tuple[str, ...]) -> Source:
    return Source(name="", path="", text=names)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _id_of(rows: Sequence[Row]) -> str | None:
    """Return a field with the name of an id that is in every row, or None."""
    columns: defaultdict[str, list[object]] = defaultdict(list)
    for row in rows:
        for path, value in leaves(row):
            if isinstance(value, str | int) and _tail(path) in _IDS:
                columns[path].append(value)
    likely = sorted(columns, key=lambda path: (path.count("."), path))
    return next((path for path in likely if len(columns[path]) == len(rows)), None)


def left_out(source: Source, fields: Sequence[Field]) -> tuple[list[str], list[str]]:
    """Return the fields that a source does not read: answers by their names, and other texts."""
    read = {*texts_of(source), *((source.messages,) if source.messages else ()), source.id}
    others = [one for one in fields if one.name not in read]
    answers = [one.name for one in others if _is_answer(one)]
    texts = [
        one.name
        for one in others
        if one.has_prose and one.n_characters >= MIN_CHARACTERS and one.name not in answers
    ]
    return answers, texts


def _is_answer(one: Field) -> bool:
    return _tail(one.name) in _ANSWERS and not {"text", "number", "list"}.isdisjoint(one.kinds)


def texts_of(source: Source) -> tuple[str, ...]:
    """Return the text fields that a source reads."""
    return (source.text,) if isinstance(source.text, str) else source.text or ()


def source_for(rows: Sequence[Row], source: Source) -> Source:
    """Return a source for a file with these first rows: the field `text`, or detected fields.

    `text` is used if it is in most rows and is more than a label beside the actual text. It is also
    used if nothing is detected: the rows are then reported as unreadable.
    """
    usual = replace(source, text="text", messages=None)
    detected = None if _has_usual_text(rows, usual) else detect_fields(rows)
    if detected is None:
        return usual
    like = replace(source, text=detected[0].text, messages=detected[0].messages)
    has_id = like.id is not None and any(like.id in row for row in rows)
    return like if has_id else replace(like, id=detected[0].id or like.id)


def _has_usual_text(rows: Sequence[Row], usual: Source) -> bool:
    texts = [field for field in fields_of(rows) if "text" in field.kinds]
    n_characters = sum(field.n_characters for field in texts if field.name == "text")
    return (
        2 * count_read(usual, rows) >= len(rows) > 0
        and n_characters >= MIN_CHARACTERS
        and not _layouts(rows, texts)
    )


def unread_fields(source: Source, rows: Sequence[Row]) -> list[str]:
    """Return unread fields that may contain questions or answers.

    Without fields whose text is repeated in the fields that are read.
    """
    read = {*texts_of(source), *((source.messages,) if source.messages else ()), source.id}
    unread: set[str] = set()
    for row in rows:
        document = document_of(row, 0, source)
        text = "" if isinstance(document, Unreadable) else document.text
        for path, value in leaves(row):
            if path not in read and any(
                _may_be_question_or_answer(path, one) and one.strip() not in text
                for one in _strings(value)
            ):
                unread.add(path)
    return [field.name for field in fields_of(rows) if field.name in unread]


def _may_be_question_or_answer(path: str, text: str) -> bool:
    tail = _tail(path)
    if tail in _QUESTIONS or tail in _ANSWERS - _METADATA:
        return bool(text.strip())
    return is_prose(text) or (tail in _TEXTS and len(text) >= MIN_CHARACTERS)


def _strings(value: object) -> Iterator[str]:
    """Yield all strings in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _strings(one)


def with_fields(source: Source, names: Sequence[str], rows: Sequence[Row]) -> Source | None:
    """Return a source that also reads these fields; None if it would read fewer of the rows."""
    read = texts_of(source) or ((source.messages,) if source.messages else ())
    if source.roles:
        return None
    more = replace(source, text=in_reading_order((*read, *names)), messages=None)
    return more if count_read(more, rows) >= count_read(source, rows) else None


def no_row_read(
    path: Path, source: Source, n_rows: int, first: str, *, remedy: str = ""
) -> Problem:
    """Describe a file without readable rows: its fields, and the setting that reads them.

    `first`: what is wrong with its first row. `remedy`: where the setting belongs.
    """
    rows = sample(path).rows
    fields = [str(field) for field in fields_of(rows)]
    more = f" and {len(fields) - _N_LISTED} more" if len(fields) > _N_LISTED else ""
    listed = f"the fields {', '.join(fields[:_N_LISTED])}{more}" if fields else "no fields"
    detected = detect_fields(rows)
    both = f"{as_setting(detected[0])} ({as_option(detected[0])})" if detected else ""
    return Problem(
        str(path),
        f"{counted(n_rows, 'row')}, none readable with {as_setting(source)} ({first}); the file "
        f"has {listed}",
        "documents",
        f"{both} reads them{remedy}" if both else "leave the file out of the corpus",
    )


def as_setting(source: Source) -> str:
    """Format the fields of a source as in a [[corpus.source]]."""
    if source.messages:
        return f"messages = {json.dumps(source.messages, ensure_ascii=False)}"
    names = [json.dumps(name, ensure_ascii=False) for name in texts_of(source)]
    return f"text = {names[0]}" if isinstance(source.text, str) else f"text = [{', '.join(names)}]"


def as_option(source: Source) -> str:
    """Format the fields of a source as options of `scan`."""
    if source.messages:
        return f"--messages {shlex.quote(source.messages)}"
    return " ".join(f"--text {shlex.quote(name)}" for name in texts_of(source))
