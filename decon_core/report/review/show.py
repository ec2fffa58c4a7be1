"""Format a record and a document as lines for a terminal, with the shared text highlighted.

Control and invisible characters are replaced one for one, so texts cannot send escape sequences to
the terminal and character offsets stay valid.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from operator import itemgetter
from typing import Any

from rich.cells import get_character_cell_size

from decon_core.decisions.annotations import Annotation
from decon_core.wording import counted

PARTS = ("question", "answer", "passage")

_LEAST_BESIDE = 100  # columns; below this width, side by side is too narrow to read
_BETWEEN = " │ "
_TAB, _UNSEEN = " ", "\ufffd"
_JOINERS = "\u200c\u200d"  # kept: some scripts and emoji need them
_RESET = "\x1b[0m"
_STYLES = {
    "question": "\x1b[1;33m",
    "answer": "\x1b[1;32m",
    "passage": "\x1b[1;36m",
    "head": "\x1b[1m",
    "faint": "\x1b[2m",
}
_PLAIN_STYLES = _STYLES | dict.fromkeys(PARTS, "\x1b[1;4m") | {"faint": ""}

Matched = Mapping[str, Any]
Mark = Mapping[str, Any]


@dataclass(frozen=True)
class Paint:
    """Terminal styles of highlights: colours, or bold and underlined."""

    has_colour: bool = True

    def of(self, text: str, style: str | None) -> str:
        styles = _STYLES if self.has_colour else _PLAIN_STYLES
        code = styles[style] if style else ""
        return f"{code}{text}{_RESET}" if code and text else text


def inert(text: str) -> str:
    """Replace control and invisible characters, line ends included."""
    return "".join(map(_inert, text))


def _inert(char: str) -> str:
    if char == "\t":
        return _TAB
    kind = unicodedata.category(char)
    if kind == "Cc":  # escape sequences begin with one of these
        return chr(0x2400 + ord(char)) if ord(char) < 0x20 else _UNSEEN
    is_safe = kind not in ("Cf", "Cs", "Zl", "Zp") or char in _JOINERS
    return char if is_safe else _UNSEEN


_Line = Sequence[tuple[str, str | None]]  # pieces of text with their styles
_EMPTY: _Line = ()


def page(matched: Matched, *, width: int, paint: Paint) -> list[str]:
    """Format both texts of a matched text, side by side if the width allows it."""

    def painted(line: _Line) -> str:
        return "".join(paint.of(text, style) for text, style in line)

    if width < _LEAST_BESIDE:
        return [*map(painted, [*_record(matched, width), _EMPTY, *_document(matched, width)])]
    left = (width - len(_BETWEEN)) // 2
    both = _record(matched, left), _document(matched, width - len(_BETWEEN) - left)
    lines = []
    for record, document in zip_longest(*both, fillvalue=_EMPTY):
        n_spaces = left - sum(get_character_cell_size(char) for text, _ in record for char in text)
        lines.append(painted(record) + " " * n_spaces + _BETWEEN + painted(document))
    return lines


def judgement_line(label: Annotation) -> str:
    """Format what a file or a model says of a matched text."""
    if label.is_sd is None:
        return f"{label.by or label.kind}: unjudged ({label.unjudged})"
    sure = f" ({label.confidence:.2f})" if label.confidence is not None else ""
    prompt = f", prompt {label.prompt}" if label.prompt else ""
    said = f"{'duplicate' if label.is_sd else 'not a duplicate'}{sure}, {label.match_type}"
    return f"{label.by or label.kind}{prompt}: {said}. {label.reasoning}"


def _record(matched: Matched, width: int) -> Iterator[_Line]:
    config = f"{matched['config']} " if matched["config"] else ""
    item = f"{matched['benchmark']} {config}{matched['split']} {matched['instance_index']}"
    yield from _heading(f"benchmark: {item}", width)
    for part in PARTS:
        if not matched[part]:
            continue
        overlap = matched[f"{part}_overlap"]
        heading = f"{part}, {overlap:.2f} of it found" if overlap is not None else part
        yield _EMPTY
        yield from _heading(heading, width)
        yield from _text(matched[part], matched[f"{part}_marks"] or (), width)


def _document(matched: Matched, width: int) -> Iterator[_Line]:
    name = f" ({matched['doc_id']})" if matched["doc_id"] else ""
    place = f"{matched['source']}/{matched['shard_name']} row {matched['row']}{name}"
    yield from _heading(f"training text: {place}", width)
    yield _EMPTY
    if matched["text"] is None:
        why = matched.get("why_no_text") or "the report keeps no texts (snippets are off)"
        yield from _text(f"not shown: {why}", (), width)
    else:
        yield from _text(matched["text"], matched["text_marks"] or (), width)
    if matched.get("agreement"):
        yield _EMPTY
        for part in matched["agreement"].split("; "):
            yield from _text(part, (), width)
    if matched.get("probability"):
        yield _EMPTY
        yield from _text(f"probability: {matched['probability']}", (), width)
    places, n = matched.get("documents") or (), matched["n_documents"] or 0
    if n < 2:
        return
    yield _EMPTY
    yield from _heading(f"found in {counted(n, 'document')}", width)
    for place in places:
        yield from _text(inert(str(place)), (), width)
    if len(places) < n:
        query = f"FROM text_documents WHERE text_id = '{matched['text_id']}'"
        rest = f'{n - len(places):,} more: decon-assets report --query "{query}"'
        yield from _text(rest, (), width)


def _heading(text: str, width: int) -> list[_Line]:
    shown = inert(text)
    return [[(shown[start:stop], "head")] for start, stop in _wrapped(shown, width)]


def _text(text: str, marks: Iterable[Mark], width: int) -> Iterator[_Line]:
    styles = _styles(len(text), marks)
    at = 0
    for line in text.split("\n"):
        shown = inert(line)
        for start, stop in _wrapped(shown, width):
            marked = zip(shown[start:stop], styles[at + start : at + stop], strict=True)
            groups = groupby(marked, key=itemgetter(1))
            yield [("".join(char for char, _ in group), style) for style, group in groups]
        at += len(line) + 1


def _styles(n: int, marks: Iterable[Mark]) -> list[str | None]:
    """Return for each character the part it is shared with, or None."""
    styles: list[str | None] = [None] * n
    for mark in marks:
        start, stop = max(0, mark["start"]), min(n, mark["stop"])
        part = mark["part"] if mark["part"] in PARTS else PARTS[0]
        styles[start:stop] = [part] * max(0, stop - start)
    return styles


def _wrapped(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Return start and stop of each wrapped line; words longer than a line are broken."""
    start, space, used = 0, -1, 0
    at = 0
    while at < len(text):
        used += get_character_cell_size(text[at])
        if used > width and at > start:
            stop = space if space > start else at
            yield start, stop
            start = stop + 1 if text[stop] == " " else stop
            at, space, used = start, -1, 0
            continue
        if text[at] == " ":
            space = at
        at += 1
    yield start, len(text)


def clipped(text: str, width: int) -> str:
    """Return a text as one line without control characters, cut to the width."""
    text = inert(text)
    used = 0
    for at, char in enumerate(text):
        used += get_character_cell_size(char)
        if used > width:
            return text[: max(0, at - 1)] + "…"
    return text
