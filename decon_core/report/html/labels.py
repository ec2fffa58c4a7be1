"""Texts of others, fit to be shown: nothing hidden in them, nothing that a chart would obey."""

from __future__ import annotations

import html
import unicodedata

_ELLIPSIS = "…"
LONGEST_LABEL = 30
MOST_CHARACTERS = 200  # of a name that is shown whole, on several lines
_PARTING = " _-/.,:·"

# Control, format (direction, zero width), half a surrogate pair, ends of lines and paragraphs.
_SHAPELESS = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"  # Persian, Indian scripts and emoji are written with them


def shown(text: str | None) -> str:
    """One line of a text; what has no shape, or turns the direction of others, as its number."""
    return "".join(map(_visible, " ".join((text or "").split())))


def _visible(character: str) -> str:
    if unicodedata.category(character) in _SHAPELESS and character not in _JOINERS:
        return f"⟨U+{ord(character):04X}⟩"
    return character


def shortened(text: str, longest: int = LONGEST_LABEL) -> str:
    """Without its middle when it is long: names differ at both ends."""
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 2
    return text[: longest - 1 - tail] + _ELLIPSIS + text[-tail:]


def label(text: str | None, longest: int = LONGEST_LABEL) -> str:
    """A name as a chart may have it: Plotly reads `<b>` and `<a href>`, and knows entities."""
    return html.escape(shortened(shown(text), longest), quote=False)


def wrapped(text: str | None, width: int = LONGEST_LABEL) -> str:
    """A name for a chart, on as many lines as it needs: Plotly takes `<br>` for the end of one."""
    lines = _lines(shortened(shown(text), MOST_CHARACTERS), width)
    return "<br>".join(html.escape(line, quote=False) for line in lines)


def _lines(text: str, width: int) -> list[str]:
    """Lines that end behind a space or a sign that parts words, if there is one."""
    lines = []
    rest = text
    while len(rest) > width:
        ends = [at + 1 for at, sign in enumerate(rest[:width]) if sign in _PARTING]
        # A line of a few characters would be followed by one that is cut within a word.
        end = ends[-1] if ends and ends[-1] > width // 3 else width
        lines.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    return [*lines, rest]


def n_lines(label: str) -> int:
    """How many lines a wrapped label takes."""
    return label.count("<br>") + 1


def whole_label(text: str | None) -> str:
    return label(text, longest=MOST_CHARACTERS)


def beginning(text: str | None, longest: int) -> str:
    """The first characters of a text in one line."""
    line = shown((text or "")[: 4 * longest])
    return line if len(line) <= longest else line[: longest - 1] + _ELLIPSIS


def count(n: float) -> str:
    return f"{n:,.0f}"


def share(part: float, whole: float) -> str:
    """As percent; what is small is not rounded to nothing."""
    if not whole:
        return "–"
    percent = 100 * part / whole
    if percent == 0:
        return "0 %"
    return f"{percent:.1f} %" if percent >= 0.1 else f"{percent:.2g} %"


def things(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"
