"""Detect the text fields of a file from its first rows: `text`, `messages`, or several fields.

`init` writes the result into decon.toml, `scan` uses it when no field is given, and the error about
a file without readable rows lists its fields and the setting that reads them.
"""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from decon_core.config.load import Source
from decon_core.corpus.documents import Unreadable, document_of
from decon_core.corpus.formats import format_of
from decon_core.errors import Problem
from decon_core.storage.compression import DAMAGE
from decon_core.wording import counted

Row = Mapping[str, Any]

MOST_ROWS = 50  # read per file
_MAX_DEPTH = 4  # levels of objects

MIN_CHARACTERS = 20  # of a text field without a usual name
_MIN_WORDS = 3  # of prose: a URL, a date or an id has fewer
_PUNCTUATION = ".,;:!?()[]{}\"'*`"
_FIRST_IDEOGRAPH = "\u2e80"  # from here on: scripts without spaces between words

# Usual names of text fields, the most common first. Other fields are ranked by length.
_TEXTS = ("text", "content", "raw_content", "body", "document", "article", "markdown", "code")
_PAIRS: tuple[tuple[str, ...], ...] = (("prompt", "chosen", "rejected"), ("chosen", "rejected"))
_QUESTIONS = ("prompt", "problem", "question", "query", "instruction")
# These names are also used for metadata: beside a text field they must contain prose.
_MAYBE_QUESTIONS = ("input", "inputs", "user", "context", "source")
_MAYBE_LABELS = ("user", "source")  # beside a certain question
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
_TURNS = ({"role", "content"}, {"from", "value"})  # the fields of messages
_N_LISTED = 8  # fields listed in a message


@dataclass(frozen=True, eq=False)
class Sample:
    """The first rows of a file."""

    path: Path
    rows: tuple[Row, ...]
    n_unreadable: int = 0
    damage: str = ""  # why the file cannot be read, or not beyond some row


@dataclass(frozen=True)
class Field:
    """A field, and the kinds of its values in the sampled rows."""

    name: str
    kinds: tuple[str, ...]
    n_rows: int
    n_characters: int  # average length of its texts
    has_prose: bool  # in some row

    def __str__(self) -> str:
        length = f", {self.n_characters} characters" if "text" in self.kinds else ""
        name = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in self.name)
        return f"{name} ({' or '.join(self.kinds)}{length})"


def sample(path: Path) -> Sample:
    """Read the first rows of a shard. Damage is noted, not raised."""
    rows: list[Row | None] = []
    damage = ""
    try:
        rows.extend(islice(format_of(path).first_rows(path, MOST_ROWS), MOST_ROWS))
    except (*DAMAGE, pa.ArrowException, OSError) as error:
        damage = f"{error}" or type(error).__name__
    readable = tuple(row for row in rows if row is not None)
    return Sample(path, readable, len(rows) - len(readable), damage)


def fields_of(rows: Sequence[Row]) -> list[Field]:
    """Return the fields of rows in order of first appearance."""
    values: defaultdict[str, list[object]] = defaultdict(list)
    for row in rows:
        for path, value in leaves(row):
            values[path].append(value)
    fields = []
    for path, of_path in values.items():
        kinds = tuple(sorted(set(map(kind_of, of_path))))
        texts = [value for value in of_path if isinstance(value, str)]
        n_characters = sum(map(len, texts)) // max(len(texts), 1)
        fields.append(Field(path, kinds, len(of_path), n_characters, any(map(is_prose, texts))))
    return fields


def is_prose(text: str) -> bool:
    """Return whether a text may be a question or an answer, not a URL, date or id."""
    if len(text) < MIN_CHARACTERS:
        return False
    words = (word.strip(_PUNCTUATION) for word in text.split())
    n_words = sum(word.isalpha() and not word.isupper() for word in words)
    return n_words >= _MIN_WORDS or any(char >= _FIRST_IDEOGRAPH for char in text)


def leaves(value: Row, prefix: str = "", depth: int = 1) -> Iterator[tuple[str, object]]:
    """Yield the values that are not objects, with their dotted paths as used in decon.toml."""
    for key, item in value.items():
        path = f"{prefix}{key}"
        if isinstance(item, dict) and item and depth < _MAX_DEPTH:
            yield from leaves(item, f"{path}.", depth + 1)
        else:
            yield path, item


def kind_of(value: object) -> str:
    """Return the kind of a value in a word, for messages."""
    if value and isinstance(value, list):
        keys = [one.keys() if isinstance(one, dict) else set() for one in value]
        is_turn = (any(names >= form for form in _TURNS) for names in keys)
        return "messages" if all(is_turn) else "list"
    names = {str: "text", bool: "boolean", int: "number", float: "number", dict: "object"}
    names |= {list: "list", type(None): "null"}
    return names.get(type(value), type(value).__name__)


# Which fields hold the text ----------------------------------------------------------------------


def detect_fields(rows: Sequence[Row]) -> tuple[Source, str] | None:
    """Return a source with the text fields and the reason for the choice; None if none fits."""
    tried = [(count_read(source, rows), source, why) for source, why in _candidates(rows)]
    n_read, source, why = max(tried, key=lambda one: one[0], default=(0, _text(""), ""))
    return (replace(source, id=_id_of(rows)), why) if n_read else None


def count_read(source: Source, rows: Iterable[Row]) -> int:
    """Return how many rows are documents when read with a source."""
    return sum(not isinstance(document_of(row, 0, source), Unreadable) for row in rows)


def _candidates(rows: Sequence[Row]) -> Iterator[tuple[Source, str]]:
    """Yield possible sources with the reason for each, the most likely first."""
    fields = fields_of(rows)
    texts = [field for field in fields if "text" in field.kinds]
    for names in _PAIRS:
        if {field.name for field in fields}.issuperset(names):
            yield _text(names), f"{_quoted(names)} are the usual names of preference pairs"
    for field in fields:
        if "messages" in field.kinds:
            source = Source(name="", path="", messages=field.name)
            yield source, f"{field.name!r} contains conversations"
    for names in _layouts(rows, texts):
        yield _text(names), f"{_quoted(names)} are questions and answers"
    for field in _named_text(texts):
        yield _text(field.name), f"{field.name!r} is a usual name for text"
    for field in _named(texts, _QUESTIONS):
        yield _text(field.name), f"{field.name!r} is a usual name for questions"
    prose = in_reading_order(field.name for field in fields if field.has_prose)
    if len(prose) > 1:
        yield _text(prose), f"{_quoted(prose)} have long texts"
    for field in sorted(texts, key=lambda field: -field.n_characters)[:_N_LONGEST]:
        if field.n_characters >= MIN_CHARACTERS:
            length = f"{field.n_characters} characters"
            yield _text(field.name), f"{field.name!r} has long texts: {length}"


def _named_text(texts: Sequence[Field]) -> list[Field]:
    return [field for name in _TEXTS for field in texts if field.name.rpartition(".")[2] == name]


def _named(texts: Sequence[Field], names: Sequence[str]) -> list[Field]:
    return [field for name in names for field in texts if _tail(field.name) == name]


def _tail(path: str) -> str:
    return path.rpartition(".")[2].lower()


def _layouts(rows: Sequence[Row], texts: Sequence[Field]) -> list[tuple[str, ...]]:
    """Return groups of question and answer fields to read together, the most complete first.

    Empty if a field such as `text` repeats all of them. If that field contains something else that
    is longer than a label, it is part of the first group.
    """
    text_fields, certain = _named_text(texts), _named(texts, _QUESTIONS)
    possible = [
        one
        for one in _named(texts, _MAYBE_QUESTIONS)
        if (one.has_prose if text_fields else not certain or _tail(one.name) not in _MAYBE_LABELS)
    ]
    questions = [field.name for field in (*certain, *possible)]
    replies = [field.name for field in _named(texts, _REPLIES)]
    if not questions or not replies:
        return []
    both = (*questions, *replies)
    if any(_repeats(rows, field.name, both) for field in text_fields):
        return []
    extra = [one.name for one in text_fields[:1] if one.n_characters >= MIN_CHARACTERS]
    pairs = ((*questions[:1], name) for name in replies)
    return [*dict.fromkeys(((*questions, *extra, *replies), both, *pairs))]


def _repeats(rows: Sequence[Row], name: str, others: Collection[str]) -> bool:
    """Return whether a field contains the texts of other fields in all rows that have both."""
    compared = [
        text.strip() in str(row[name])
        for row in (dict(leaves(row)) for row in rows)
        if isinstance(row.get(name), str)
        for other in others
        for text in _strings(row.get(other))
    ]
    return bool(compared) and all(compared)


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
    answers, texts = [], []
    for one in fields:
        if one.name in (*fields_read(source), source.id):
            continue
        if _tail(one.name) in _ANSWERS and {"text", "number", "list"} & {*one.kinds}:
            answers.append(one.name)
        elif one.has_prose and one.n_characters >= MIN_CHARACTERS:
            texts.append(one.name)
    return answers, texts


def fields_read(source: Source) -> tuple[str, ...]:
    """Return the fields that a source reads: texts, or messages."""
    if source.messages:
        return (source.messages,)
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
    """Return unread fields that may hold a question or an answer that the read ones do not."""
    read = {*fields_read(source), source.id}
    unread: set[str] = set()
    for row in rows:
        document = document_of(row, 0, source)
        text = "" if isinstance(document, Unreadable) else document.text
        for path, value in leaves(row):
            strings = _strings(value) if path not in read else ()
            if any(_may_leak(path, one) and one.strip() not in text for one in strings):
                unread.add(path)
    return [field.name for field in fields_of(rows) if field.name in unread]


def _may_leak(path: str, text: str) -> bool:
    """Return whether a text may be a question or an answer."""
    tail = _tail(path)
    if tail in _QUESTIONS or tail in _ANSWERS - _METADATA:
        return bool(text.strip())
    return is_prose(text) or (tail in _TEXTS and len(text) >= MIN_CHARACTERS)


def _strings(value: object) -> Iterator[str]:
    """Yield all strings in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _strings(one)


def with_fields(source: Source, names: Sequence[str], rows: Sequence[Row]) -> Source | None:
    """Return a source that also reads these fields; None if it would read fewer of the rows."""
    if source.roles:
        return None
    fields = in_reading_order((*fields_read(source), *names))
    more = replace(source, text=fields, messages=None)
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
    unread = f"{counted(n_rows, 'row')}, none readable with {as_setting(source)} ({first})"
    if detected := detect_fields(rows):
        remedy = f"{as_setting(detected[0])} ({as_option(detected[0])}) reads them{remedy}"
    else:
        remedy = "leave the file out of the corpus"
    return Problem(str(path), f"{unread}; the file has {listed}", "documents", remedy)


def as_setting(source: Source) -> str:
    """Format the fields of a source as in a [[corpus.source]]."""
    names = ", ".join(map(in_toml, fields_read(source)))
    if source.messages:
        return f"messages = {names}"
    return f"text = {names}" if isinstance(source.text, str) else f"text = [{names}]"


def in_toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def as_option(source: Source) -> str:
    """Format the fields of a source as options of `scan`."""
    option = "--messages" if source.messages else "--text"
    return " ".join(f"{option} {shlex.quote(name)}" for name in fields_read(source))
