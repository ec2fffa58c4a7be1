r"""Text whose characters are written as escapes: `&#24352;&#20255;`, `\u5f20\u4f1f`.

Such a text has no words, and the compiled readers leave rows that may have one to the plain reader.
"""

from __future__ import annotations

import re

import numpy as np

from decon_core.corpus.byte_places import places_of
from decon_core.corpus.text_values import LEAST_LETTERS
from decon_core.kernels.arrays import Bytes, Integers

_LEAST_RUN = 3  # escapes one behind the other
_ESCAPE = r"\\+u[0-9a-fA-F]{4}"
_ENTITY = r"&#(?:[0-9]{2,7}|[xX][0-9a-fA-F]{2,6});"
_ESCAPES = re.compile(rf"(?:{_ESCAPE}){{{_LEAST_RUN},}}|(?:{_ENTITY}){{{_LEAST_RUN},}}")
# In JSON, a backslash in a string takes two, and some writers escape `&`.
_IN_JSON = re.compile(
    rf"(?:\\{_ESCAPE}){{{_LEAST_RUN}}}|(?:(?:&|\\*u0026){_ENTITY[1:]}){{{_LEAST_RUN}}}".encode()
)
_BEGINNINGS_IN_JSON = (b"\\\\u", b"&#", b"u0026#")
_IN_TEXT = re.compile(_ESCAPES.pattern.encode())
_BEGINNINGS = (b"\\u", b"&#")


def is_escaped_text(value: str) -> bool:
    """Return whether a string has as many escapes as a text has letters."""
    if "\\u" not in value and "&#" not in value:
        return False
    runs: list[str] = _ESCAPES.findall(value)
    return sum(run.count("u") + run.count(";") for run in runs) >= LEAST_LETTERS


def lines_with_escapes(lines: Bytes, line_starts: Integers) -> Integers:
    """Return the numbers of the lines of JSON that may have such a text."""
    places = places_of(_IN_JSON, _BEGINNINGS_IN_JSON, lines)
    return np.searchsorted(line_starts, places, side="right") - 1


def strings_with_escapes(text: Bytes, starts: Integers) -> Integers:
    """Return the numbers of the strings that may be such a text."""
    places = places_of(_IN_TEXT, _BEGINNINGS, text)
    if not places.size:
        return places
    order = np.argsort(starts, kind="stable")
    return order[np.searchsorted(starts[order], places, side="right") - 1]
