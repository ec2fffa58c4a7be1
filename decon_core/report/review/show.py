"""Format a record and a document as lines for a terminal, with the shared text highlighted.

Control and invisible characters are replaced one for one, so texts cannot send escape sequences to
the terminal and character offsets stay valid.
"""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.box import MINIMAL
from rich.cells import get_character_cell_size
from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text

from decon_core.decisions.annotations import Annotation
from decon_core.wording import counted

PARTS = ("question", "answer", "passage")

_LEAST_BESIDE = 100  # columns; below this width, side by side is too narrow to read
_TAB, _UNSEEN = " ", "\ufffd"
_JOINERS = "\u200c\u200d"  # kept: some scripts and emoji need them
_STYLES = {
    "question": "bold yellow",
    "answer": "bold green",
    "passage": "bold cyan",
    "head": "bold",
    "faint": "dim",
}
_PLAIN_STYLES = _STYLES | dict.fromkeys(PARTS, "bold underline") | {"faint": ""}

Matched = Mapping[str, Any]
Mark = Mapping[str, Any]


@dataclass(frozen=True)
class Paint:
    """Terminal styles of highlights: colours, or bold and underlined."""

    has_colour: bool = True

    def style(self, name: str) -> Style:
        return Style.parse((_STYLES if self.has_colour else _PLAIN_STYLES)[name])

    def of(self, text: str, name: str) -> str:
        return self.style(name).render(text)


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


def page(matched: Matched, *, width: int, paint: Paint) -> list[str]:
    """Format both texts of a matched text, side by side if the width allows it."""
    record, document = [*_record(matched, paint)], [*_document(matched, paint)]
    between = Text("\n\n")
    shown: Table | Text = between.join([*record, *document])
    if width >= _LEAST_BESIDE:
        shown = Table(box=MINIMAL, show_header=False, show_edge=False, pad_edge=False, expand=True)
        shown.add_column(ratio=1, overflow="fold")
        shown.add_column(ratio=1, overflow="fold")
        shown.add_row(between.join(record), between.join(document))
    # A height, because Rich takes a width without one for a guess.
    console = Console(
        file=io.StringIO(), width=width, height=25, color_system="standard", force_terminal=True
    )
    with console.capture() as capture:
        console.print(shown, overflow="fold")
    return capture.get().removesuffix("\n").split("\n")


def judgement_line(label: Annotation) -> str:
    """Format what a file or a model says of a matched text."""
    if label.is_sd is None:
        return f"{label.by or label.kind}: unjudged ({label.unjudged})"
    sure = f" ({label.confidence:.2f})" if label.confidence is not None else ""
    prompt = f", prompt {label.prompt}" if label.prompt else ""
    said = f"{'duplicate' if label.is_sd else 'not a duplicate'}{sure}, {label.match_type}"
    return f"{label.by or label.kind}{prompt}: {said}. {label.reasoning}"


def _record(matched: Matched, paint: Paint) -> Iterator[Text]:
    """Yield blocks of lines, between which a line is empty."""
    config = f"{matched['config']} " if matched["config"] else ""
    item = f"{matched['benchmark']} {config}{matched['split']} {matched['instance_index']}"
    yield _text(f"benchmark: {item}{matched.get('also_in', '')}", paint, "head")
    for part in PARTS:
        if matched[part]:
            overlap = matched[f"{part}_overlap"]
            heading = f"{part}, {overlap:.2f} of it found" if overlap is not None else part
            text = _marked(matched[part], matched[f"{part}_marks"] or (), paint)
            yield Text("\n").join([_text(heading, paint, "head"), text])


def _document(matched: Matched, paint: Paint) -> Iterator[Text]:
    name = f" ({matched['doc_id']})" if matched["doc_id"] else ""
    place = f"{matched['source']}/{matched['shard_name']} row {matched['row']}{name}"
    yield _text(f"training text: {place}", paint, "head")
    if matched["text"] is None:
        why = matched.get("why_no_text") or "the report keeps no texts (snippets are off)"
        yield _text(f"not shown: {why}", paint)
    else:
        yield _marked(matched["text"], matched["text_marks"] or (), paint)
    if matched.get("agreement"):
        yield _text(matched["agreement"].replace("; ", "\n"), paint)
    if matched.get("probability"):
        yield _text(f"probability: {matched['probability']}", paint)
    places, n = matched.get("documents") or (), matched["n_documents"] or 0
    if n < 2:
        return
    lines = [inert(str(place)) for place in places]
    if len(places) < n:
        query = f"FROM text_documents WHERE text_id = '{matched['text_id']}'"
        lines.append(f'{n - len(places):,} more: decon-assets report --query "{query}"')
    heading = _text(f"found in {counted(n, 'document')}", paint, "head")
    yield Text("\n").join([heading, _text("\n".join(lines), paint)])


def _text(text: str, paint: Paint, style: str = "") -> Text:
    """Return lines in a style; only line ends are left of their control characters."""
    lines = "\n".join(map(inert, text.split("\n")))
    return Text(lines, paint.style(style) if style else "")


def _marked(text: str, marks: Iterable[Mark], paint: Paint) -> Text:
    """Return a text with its characters that both texts share in the style of their part."""
    shown = _text(text, paint)
    for mark in marks:
        shown.stylize(paint.style(mark["part"]), mark["start"], mark["stop"])
    return shown


def clipped(text: str, width: int) -> str:
    """Return a text as one line without control characters, cut to the width."""
    text = inert(text)
    used = 0
    for at, char in enumerate(text):
        used += get_character_cell_size(char)
        if used > width:
            return text[: max(0, at - 1)] + "…"
    return text
