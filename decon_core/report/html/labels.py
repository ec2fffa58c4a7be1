"""Make untrusted text safe to display: hidden characters are shown, chart markup is escaped."""

from __future__ import annotations

import html
import unicodedata

from decon_core.wording import percent

_ELLIPSIS = "…"
LONGEST_LABEL = 30
MOST_CHARACTERS = 200  # Longest name on several lines.
_BREAK_AFTER = " _-/.,:·"

# Control, format (direction, zero width), lone surrogates, line and paragraph separators.
_INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"  # needed by Persian, Indic scripts and emoji


def shown(text: str | None) -> str:
    """Return text on one line; invisible and direction characters appear as code points."""
    line = " ".join((text or "").split())
    if line.isprintable():
        return line  # nothing is invisible
    return "".join(
        f"⟨U+{ord(character):04X}⟩"
        if unicodedata.category(character) in _INVISIBLE and character not in _JOINERS
        else character
        for character in line
    )


def shortened(text: str, longest: int = LONGEST_LABEL) -> str:
    """Cut the middle out of a long text: names differ at both ends."""
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 2
    return text[: longest - 1 - tail] + _ELLIPSIS + text[-tail:]


def label(text: str | None, longest: int = LONGEST_LABEL) -> str:
    """Return a name for a chart, escaped: Plotly interprets `<b>`, `<a href>` and entities."""
    return html.escape(shortened(shown(text), longest), quote=False)


def wrapped(text: str | None, width: int = LONGEST_LABEL) -> str:
    """Return a name for a chart, escaped and wrapped with `<br>`: at separators if possible."""
    lines = []
    rest = shortened(shown(text), MOST_CHARACTERS)
    while len(rest) > width:
        ends = [at + 1 for at, sign in enumerate(rest[:width]) if sign in _BREAK_AFTER]
        # Breaking after only a few characters would force a break within the next word.
        end = ends[-1] if ends and ends[-1] > width // 3 else width
        lines.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    return "<br>".join(html.escape(line, quote=False) for line in [*lines, rest])


def n_lines(label: str) -> int:
    return label.count("<br>") + 1


def whole_label(text: str | None) -> str:
    return label(text, longest=MOST_CHARACTERS)


def beginning(text: str | None, longest: int) -> str:
    """Return the first characters of a text, on one line."""
    line = shown((text or "")[: 4 * longest])
    return line if len(line) <= longest else line[: longest - 1] + _ELLIPSIS


def count(n: float) -> str:
    return f"{n:,.0f}"


def share(part: float, whole: float) -> str:
    return percent(part / whole) if whole else "–"
