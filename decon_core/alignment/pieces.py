"""A text cut into words, numbers and signs, in which a short answer is searched for.

N-grams of tokens have no signs, and "2400" begins with the token of "240". Of a short answer, all
pieces must therefore be there in a row, and must not be a part of something longer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from decon_core.alignment.denials import is_wrong_behind
from decon_core.text.characters import MARKS, UNSPACED
from decon_core.text.markup import stripped
from decon_core.text.plain_letters import with_plain_letters

ALL_UNSPACED = "".join(f"{chr(first)}-{chr(last)}" for first, last in UNSPACED)
_COPULA = "입니다|이다|이에요|예요|입니까"  # "is", behind a word
IGNORED = r"\s$*_`:'\"(){}\[\]\\“”‘’「」『』【】《》"  # signs that are no pieces
# Full-width signs, digits and letters, and signs like a minus, to those of ASCII.
_FOLDED = {0xFF01 + at: 0x21 + at for at in range(94)} | dict.fromkeys(map(ord, "−‐‑–"), "-")
_MAY_FOLD = re.compile("[！-～−‐‑–]")
_PIECE = re.compile(
    # Numbers: "0,25", "1,200.50", ".5".
    r"(?<!\d)0,\d+(?!,?\d)|(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|(?<![\w)])\.\d+"
    # In Korean, what follows a word without a space: "B입니다".
    rf"|[{ALL_UNSPACED}]|[가-힣]+?(?=(?:{_COPULA})(?!\w))|[가-힣]+|[^\W\d_{ALL_UNSPACED}가-힣]+"
    # Hyphens within words are no signs.
    rf"|(?!(?<=[^\W\d_]{{2}})-\s*[^\W\d_]{{2}})[^\w{IGNORED},;.!?。，、；]"
)
_WITHIN_UNSPACED = re.compile(rf"[{ALL_UNSPACED}]{{2}}")
# What stands before a part of a longer number or of a calculation, and before a negative number.
_PART_BEFORE = re.compile(r"(?:\d[.,: ]?|\w\s?\*\s?|[+/^×÷·]\s*)[\\({$\[]*$")
_MINUS_BEFORE = re.compile(r"(?:-|\bminus\s+)[\\({$\[]*$")
_PART_BEHIND = re.compile(
    rf"(?<=\d)[^\S\n]\d{{3}}(?!\d)|(?<=\d)[万萬亿億千百만억천백십조]"
    rf"|(?!(?<=[\dA-Za-z])[가-힣]|(?:{_COPULA})(?!\w))[^\W{ALL_UNSPACED}]|[{MARKS}]|[.,/:]\d|\*{{1,2}}[\w(]"
    r"|[^\S\n]*(?:[+/^×÷√]|(?<=[^\S\n])\*\s|-\s*\d|\\(?:sqrt|d?frac|cdot|times|pi)\b)"
)
# Numbers and dates of a row of comma-separated values, behind another value: `"How many?",12,48`.
_CELLS = re.compile(r"(?:^|(?<=[^\s\d,]))(?=,+-?[$€£]?\d)(?:,(?:-?[$€£]?\d[\d.:/-]*%?)?)+")
# What ends a sentence or a part of it, or a value of a table.
END = re.compile(r"\s*(?:$|(?<=\t)|[\n.,;:!)\]}*|<\"'，。；：！）」”’—]|\\[)\]n\"])")
_ENDS_VALUE = re.compile(
    rf"[》】」』”’\"'*_$)\]]*(?:{END.pattern}|\s?(?:{_COPULA}|です|でし|だ|であ|है))"
)
# What stands before a number that only names something: "Question 48", "No. 48".
_NAMED = re.compile(
    r"(?:\b(?:questions?|exercise|problem|example|item|step|lesson|pages?|chapter|section|part"
    r"|volume|line|figure|fig\.?|table|equation|nos?\.|nr\.?|number|pp?\.)|(?<!#)#)\s*\(?$",
    re.IGNORECASE,
)
_MOST_BEFORE = 20  # characters before a piece that are read


class Piece(NamedTuple):
    """A word, number or sign of a text, and its characters."""

    text: str
    start: int
    stop: int


def folded(text: str) -> str:
    """Return a text with the signs of ASCII in place of full-width ones."""
    if text.isascii() or not _MAY_FOLD.search(text):
        return text
    return text.translate(_FOLDED)  # which is slow


def plain(text: str) -> str:
    """Return a text with the letters and signs that are compared."""
    return folded(with_plain_letters(text).text)


def with_separate_cells(text: str) -> str:
    """Return a text with semicolons between the numbers of comma-separated values."""
    return _CELLS.sub(lambda cells: cells[0].replace(",", ";"), text)


def pieces_of(
    text: str, start: int = 0, stop: int = 1 << 30, most: int | None = None
) -> list[Piece]:
    found = islice(_PIECE.finditer(text, start, stop), most)
    return [Piece(_value_of(piece[0]), *piece.span()) for piece in found]


def _value_of(piece: str) -> str:
    """Return a number as it is written without commas and needless zeros, or a word unchanged."""
    if not piece[-1].isdecimal():
        return piece
    number = piece.replace(",", "." if piece.startswith("0,") else "")
    whole, point, rest = number.partition(".")
    rest = rest.rstrip("0")
    return f"{whole or '0'}.{rest}" if point and rest else whole


@lru_cache(maxsize=1 << 10)
def wanted_of(answer: str) -> tuple[str, ...]:
    """Return the pieces of an answer."""
    return tuple(piece.text for piece in pieces_of(plain(stripped(answer))))


def without_article(wanted: Sequence[str]) -> Sequence[str]:
    has_article = len(wanted) > 1 and wanted[0].lower() in ("a", "an", "the")
    return wanted[1:] if has_article and len(wanted[1]) > 1 else wanted


def whole_at(
    text: str, pieces: Sequence[Piece], at: int, wanted: Sequence[str]
) -> tuple[int, int] | None:
    """Return the characters of an answer whose pieces are those from a place on, as a whole."""
    found = pieces[at : at + len(wanted)]
    if not found or not _are_equal([piece.text for piece in found], wanted):
        return None
    start, stop = found[0].start, found[-1].stop
    has_maths = len(wanted) == 1 == len(wanted[0]) or not all(map(str.isalpha, wanted))
    if has_maths and (is_part_before(text, start) or is_minus_before(text, start)):
        return None
    return None if is_part_behind(text, stop) or is_wrong_behind(text, stop) else (start, stop)


def _are_equal(found: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether pieces are those of an answer, in any case; a letter alone needs its case."""
    if len(wanted) == 1 == len(wanted[0]):
        return found[0] == wanted[0]
    return [*map(str.casefold, found)] == [*map(str.casefold, wanted)]


def is_within_unspaced(text: str, stop: int) -> bool:
    """Whether characters of a script without spaces are before and behind a place."""
    return _WITHIN_UNSPACED.fullmatch(text, stop - 1, stop + 1) is not None


def ends_value(text: str, stop: int) -> bool:
    """Whether a value ends a sentence or a part of it, or has only "is" behind it."""
    return _ENDS_VALUE.match(text, stop) is not None


def is_part_before(text: str, start: int) -> bool:
    """Whether a number or formula goes on from what stands before it, or names something."""
    before = text[max(0, start - _MOST_BEFORE) : start]
    is_of_name = text[start].isdigit() and before[-1:].isascii() and before[-1:].isalpha()  # "x2"
    return is_of_name or any(pattern.search(before) for pattern in (_PART_BEFORE, _NAMED))


def is_minus_before(text: str, start: int) -> bool:
    return _MINUS_BEFORE.search(text, max(0, start - _MOST_BEFORE), start) is not None


def is_part_behind(text: str, stop: int) -> bool:
    return _PART_BEHIND.match(text, stop) is not None
