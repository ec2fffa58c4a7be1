"""Where the text of a file is, told from its first rows: `text`, `messages`, several fields.

`init` writes the answer into a decon.toml, `scan` reads files by it when no field is named, and
what refuses a file of which no row could be read names its fields and the setting that reads it.
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
from decon_core.corpus.first_rows import Field, Row, fields_of, leaves, sample
from decon_core.errors import Problem
from decon_core.wording import counted

# Names under which text is published, the usual ones first. What else there is goes by length.
_TEXTS = ("text", "content", "raw_content", "body", "document", "article", "markdown", "code")
_PAIRS = (("prompt", "chosen", "rejected"), ("chosen", "rejected"))
_ASKED = ("prompt", "problem", "question", "query", "instruction")
# These names are also used for metadata: beside a field of text they must hold prose.
_ASKED_PERHAPS = ("input", "inputs", "user", "context", "source")
_TOLD = (
    *("response", "responses", "completion", "completions", "output", "outputs", "assistant"),
    *("target", "targets", "solution", "solutions", "answer", "answers"),
)
_IDS = ("id", "doc_id", "docid", "document_id", "uuid", "_id", "uid", "record_id")
_LEAST_CHARACTERS = 20  # of a text that is not called one
_LONGEST_TRIED = 3

_ANSWERS = frozenset(
    (
        *("answer", "answers", "solution", "solutions", "response", "responses", "output"),
        *("completion", "target", "label", "gold", "ground_truth", "reference", "rationale"),
        *("final_answer", "expected_answer", "reference_answer", "correct_answer"),
        *("completions", "outputs", "targets", "assistant"),
        "canonical_solution",
    )
)
# Answers by their names, but also metadata (`label`): they must hold prose to be reported.
_METADATA = frozenset(("label", "reference", "gold"))
_LEAST_WORDS = 3  # of prose: a URL, a date or an id has fewer
_PUNCTUATION = ".,;:!?()[]{}\"'*`"
_FIRST_IDEOGRAPH = "\u2e80"  # from here on are scripts that put no space between words
_MOST_TOLD = 8


def reading_of(rows: Sequence[Row]) -> tuple[Source, str] | None:
    """Where the text is, and why that is thought; nothing where no field can be one."""
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
    """How many of these rows are documents, read as a source says."""
    return sum(not isinstance(document_of(row, 0, source), Unreadable) for row in rows)


def _candidates(rows: Sequence[Row]) -> list[tuple[Source, str]]:
    """Ways to read rows with these fields, the likeliest first."""
    fields = fields_of(rows)
    texts = [field for field in fields if "text" in field.kinds]
    known = {field.name for field in fields}
    long = sorted(texts, key=lambda field: -field.n_characters)[:_LONGEST_TRIED]
    prose = in_reading_order(_prose(rows))
    return [
        *(
            (_texts(names), f"{_told(names)} are what preference pairs are called")
            for names in _PAIRS
            if known.issuperset(names)
        ),
        *(
            (_messages(field.name), f"{field.name!r} holds turns of conversations")
            for field in fields
            if "messages" in field.kinds
        ),
        *((_texts(names), f"{_told(names)} belong together") for names in _layouts(rows, texts)),
        *(
            (_text(field.name), f"{field.name!r} is what text is usually called")
            for field in _called_text(texts)
        ),
        *(
            (_text(field.name), f"{field.name!r} is what is asked")
            for name in _ASKED
            for field in texts
            if _tail(field.name) == name
        ),
        *([(_texts(prose), f"{_told(prose)} have long texts")] if len(prose) > 1 else []),
        *(
            (_text(field.name), f"{field.name!r} has long texts: {field.n_characters} characters")
            for field in long
            if field.n_characters >= _LEAST_CHARACTERS
        ),
    ]


def _called_text(texts: Sequence[Field]) -> list[Field]:
    return [field for name in _TEXTS for field in texts if field.name.rpartition(".")[2] == name]


def _layouts(rows: Sequence[Row], texts: Sequence[Field]) -> list[tuple[str, ...]]:
    """Fields of questions and of answers that are read together; the most complete first.

    Where another field, `text`, repeats all of them, they are not needed: then there is none. Where
    it holds something else, and more than a label, it is read with them.
    """
    called = _called_text(texts)
    prose = set(_prose(rows))
    asked, told = _asked(texts, prose if called else None), _named(texts, _TOLD)
    if not asked or not told:
        return []
    whole = (*asked, *told)
    if any(_repeats(rows, field.name, whole) for field in called):
        return []
    beside = [one.name for one in called[:1] if one.n_characters >= _LEAST_CHARACTERS]
    pairs = ((*asked[:1], name) for name in told)
    return [*dict.fromkeys(((*asked, *beside, *told), whole, *pairs))]


def _asked(texts: Sequence[Field], prose: Collection[str] | None) -> list[str]:
    """Fields of questions; `prose`: the fields that hold prose, where metadata is likely."""
    sure = _named(texts, _ASKED)
    perhaps = [
        name
        for name in _named(texts, _ASKED_PERHAPS)
        if (prose is None and not (sure and _tail(name) in ("user", "source")))
        or (prose is not None and name in prose)
    ]
    return [*sure, *perhaps]


def _named(texts: Sequence[Field], names: Sequence[str]) -> list[str]:
    return [field.name for name in names for field in texts if _tail(field.name) == name]


def _tail(path: str) -> str:
    return path.rpartition(".")[2].lower()


def _repeats(rows: Sequence[Row], name: str, others: Collection[str]) -> bool:
    """Whether a field holds the texts of other fields, in all rows that have both."""
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
    """Text fields that hold prose in some row, in the order of the rows' fields."""
    found = {
        path: None
        for row in rows
        for path, value in leaves(row)
        if isinstance(value, str) and _is_prose(value)
    }
    return [field.name for field in fields_of(rows) if field.name in found]


def _is_prose(text: str) -> bool:
    """Whether this can be a question or an answer, and is no URL, date or id."""
    if len(text) < _LEAST_CHARACTERS:
        return False
    words = (word.strip(_PUNCTUATION) for word in text.split())
    n_words = sum(word.isalpha() and not word.isupper() for word in words)
    return n_words >= _LEAST_WORDS or any(char >= _FIRST_IDEOGRAPH for char in text)


def in_reading_order(names: Iterable[str]) -> tuple[str, ...]:
    """What is asked first, answers last, and otherwise the order given."""

    def place(name: str) -> int:
        tail = _tail(name)
        return 0 if tail in (*_ASKED, *_ASKED_PERHAPS) else 2 if tail in _ANSWERS else 1

    return tuple(sorted(names, key=place))


def _text(name: str) -> Source:
    return Source(name="", path="", text=name)


def _messages(name: str) -> Source:
    return Source(name="", path="", messages=name)


def _texts(names: tuple[str, ...]) -> Source:
    return Source(name="", path="", text=names)


def _told(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _id_of(rows: Sequence[Row]) -> str | None:
    """A field that is called an id, and is another in every row that was looked at."""
    columns: defaultdict[str, list[object]] = defaultdict(list)
    for row in rows:
        for path, value in leaves(row):
            if isinstance(value, str | int) and path.rpartition(".")[2].lower() in _IDS:
                columns[path].append(value)
    likely = sorted(columns, key=lambda path: (path.count("."), path))
    return next((path for path in likely if len(columns[path]) == len(rows)), None)


# Fields that a reading leaves out -----------------------------------------------------------------


def left_out(source: Source, fields: Sequence[Field]) -> tuple[list[str], list[str]]:
    """Fields that a source does not read: those that are called an answer, and other texts."""
    read = {*texts_of(source), *((source.messages,) if source.messages else ()), source.id}
    others = [one for one in fields if one.name not in read]
    answers = [one.name for one in others if _is_answer(one)]
    texts = [
        one.name
        for one in others
        if "text" in one.kinds and one.n_characters >= _LEAST_CHARACTERS and one.name not in answers
    ]
    return answers, texts


def _is_answer(one: Field) -> bool:
    name = one.name.rpartition(".")[2].lower()
    return name in _ANSWERS and not {"text", "number", "list"}.isdisjoint(one.kinds)


def texts_of(source: Source) -> tuple[str, ...]:
    """The fields with text that a source reads."""
    return (source.text,) if isinstance(source.text, str) else source.text or ()


# Files whose fields a source does not name --------------------------------------------------------


def source_for(rows: Sequence[Row], source: Source) -> Source:
    """A source that reads a file of these first rows: by the field `text`, or else as they look.

    `text` must be in most rows, and be more than a label beside fields with the actual text. A file
    whose fields tell nothing is read by `text`: its rows are then unreadable, and reported.
    """
    usual = replace(source, text="text", messages=None)
    found = None if _is_read_by_text(rows, usual) else reading_of(rows)
    if found is None:
        return usual
    like = replace(source, text=found[0].text, messages=found[0].messages)
    has_id = like.id is not None and any(like.id in row for row in rows)
    return like if has_id else replace(like, id=found[0].id or like.id)


def _is_read_by_text(rows: Sequence[Row], usual: Source) -> bool:
    texts = [field for field in fields_of(rows) if "text" in field.kinds]
    n_characters = sum(field.n_characters for field in texts if field.name == "text")
    return (
        2 * count_read(usual, rows) >= len(rows) > 0
        and n_characters >= _LEAST_CHARACTERS
        and not _layouts(rows, texts)
    )


def unread_fields(source: Source, rows: Sequence[Row]) -> list[str]:
    """Fields with text that can be a question or an answer, and that a source does not read.

    A field whose text is repeated by what is read is not among them.
    """
    read = {*texts_of(source), *((source.messages,) if source.messages else ()), source.id}
    found: dict[str, None] = {}
    for row in rows:
        document = document_of(row, 0, source)
        text = "" if isinstance(document, Unreadable) else document.text
        for path, value in leaves(row):
            if path not in read and any(
                _may_be_asked_or_told(path, one) and one.strip() not in text
                for one in _strings(value)
            ):
                found[path] = None
    return [field.name for field in fields_of(rows) if field.name in found]


def _may_be_asked_or_told(path: str, text: str) -> bool:
    tail = _tail(path)
    if tail in _ASKED or tail in _ANSWERS - _METADATA:
        return bool(text.strip())
    return _is_prose(text) or (tail in _TEXTS and len(text) >= _LEAST_CHARACTERS)


def _strings(value: object) -> Iterator[str]:
    """All texts in a value, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _strings(one)


def with_fields(source: Source, names: Sequence[str], rows: Sequence[Row]) -> Source | None:
    """A source that reads these fields as well; None where it would read fewer of the rows."""
    own = texts_of(source) or ((source.messages,) if source.messages else ())
    if source.roles:
        return None
    more = replace(source, text=in_reading_order((*own, *names)), messages=None)
    return more if count_read(more, rows) >= count_read(source, rows) else None


def no_row_read(
    path: Path, source: Source, n_rows: int, first: str, *, remedy: str = ""
) -> Problem:
    """A file of rows of which none is a document: the fields that it has, and what reads them.

    `first`: what is wrong with its first row. `remedy`: where the settings are written.
    """
    rows = sample(path).rows
    fields = [str(field) for field in fields_of(rows)]
    more = f" and {len(fields) - _MOST_TOLD} more" if len(fields) > _MOST_TOLD else ""
    has = f"the fields {', '.join(fields[:_MOST_TOLD])}{more}" if fields else "no field"
    found = reading_of(rows)
    tried = as_setting(source)
    return Problem(
        str(path),
        f"{counted(n_rows, 'row')}, and not one that could be read by {tried} ({first}); it "
        f"has {has}",
        "documents",
        f"{_either(found[0])} reads them{remedy}" if found else "leave the file out of the corpus",
    )


def _either(source: Source) -> str:
    return f"{as_setting(source)} ({as_option(source)})"


def as_setting(source: Source) -> str:
    """How a [[corpus.source]] says which field is read."""
    if source.messages:
        return f"messages = {json.dumps(source.messages, ensure_ascii=False)}"
    names = [json.dumps(name, ensure_ascii=False) for name in texts_of(source)]
    return f"text = {names[0]}" if isinstance(source.text, str) else f"text = [{', '.join(names)}]"


def as_option(source: Source) -> str:
    """How the options of `scan` say it."""
    if source.messages:
        return f"--messages {shlex.quote(source.messages)}"
    return " ".join(f"--text {shlex.quote(name)}" for name in texts_of(source))
