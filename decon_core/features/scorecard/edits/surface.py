"""Edits of the surface of a text: case, punctuation, typography and line breaks."""

from __future__ import annotations

import re
from functools import partial
from textwrap import TextWrapper

from decon_core.features.scorecard.edits.edit import Edit, Material, of_text
from decon_core.features.scorecard.items import as_text

_SIGNS = r".,;:!?\"“”'‘’()\[\]…。，；：！？、—–-"
_PUNCTUATION = re.compile(rf"(?<!\d)[{_SIGNS}]|[{_SIGNS}](?!\d)")  # except within numbers
_TYPESET = (
    (re.compile(r'(?<!\S)"|(?<=[(\[])"'), "“"),
    (re.compile(r'"'), "”"),
    (re.compile(r"(?<=\w)'"), "’"),
    (re.compile(r"'"), "‘"),
    (re.compile(r"\.\.\."), "…"),
    (re.compile(r" -{1,2} |--"), " – "),
    (re.compile(r"(?<=\d) (?=[^\W\d])"), "\u00a0"),
    (re.compile(r"(?<=[.?!]) (?=\S)"), "  "),
    (re.compile(r"fi"), "ﬁ"),
    (re.compile(r"fl"), "ﬂ"),
)
_LONG_WORD = re.compile(r"([^\W\d_]{3,5})([^\W\d_]{3,})")
_HYPHENATED_WIDTH = 60


def verbatim(m: Material) -> str:
    return as_text(m.item)


def without_punctuation(text: str) -> str:
    return re.sub(r"[^\S\n]+", " ", _PUNCTUATION.sub(" ", text)).strip()


def typeset(text: str) -> str:
    for pattern, sign in _TYPESET:
        text = pattern.sub(sign, text)
    return text


def wrapped(width: int, text: str) -> str:
    return "\n".join("\n".join(lines) for lines in _wrapped_lines(text, width))


def hyphenated(text: str) -> str:
    """Wrap, and hyphenate long words; the same text if there is none to hyphenate."""
    paragraphs = _wrapped_lines(text, _HYPHENATED_WIDTH)
    made = [_hyphenated_lines(lines) for lines in paragraphs]
    return text if made == paragraphs else "\n".join("\n".join(lines) for lines in made)


def unwrapped(text: str) -> str:
    """Hyphenate as `hyphenated` does, then write spaces for the line breaks."""
    made = hyphenated(text)
    return text if made == text else made.replace("\n", " ")


def _wrapped_lines(text: str, width: int) -> list[list[str]]:
    wrapper = TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    return [wrapper.wrap(line) for line in text.split("\n")]


def _hyphenated_lines(lines: list[str]) -> list[str]:
    """Move the start of a long first word to the end of the line before."""
    made = list(lines)
    for at in range(len(made) - 1):
        long = _LONG_WORD.match(made[at + 1])
        if made[at] and long:
            made[at] += f" {long.group(1)}-"
            made[at + 1] = made[at + 1][long.end(1) :]
    return made


_CASE, _WRAP = "case and punctuation", "lines"

EDITS = (
    Edit("verbatim", "", verbatim),
    Edit(_CASE, "lower case", of_text(str.lower)),
    Edit(_CASE, "upper case", of_text(str.upper)),
    Edit(_CASE, "no punctuation", of_text(without_punctuation)),
    Edit(_CASE, "typeset", of_text(typeset)),
    Edit(_WRAP, "72 columns", of_text(partial(wrapped, 72))),
    Edit(_WRAP, "40 columns", of_text(partial(wrapped, 40))),
    Edit(_WRAP, "hyphens", of_text(hyphenated)),
    Edit(_WRAP, "hyphens and spaces", of_text(unwrapped)),
)
