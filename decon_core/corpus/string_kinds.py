r"""What is this string? The kinds of strings in rows, and the rules that tell them apart.

`StringKind` is the table of the kinds: paths, messages and decisions about them come from it.
`kind_of` classifies a string by itself; other rules look at all strings of a field or of a row:
base64 in lines (`counts_of_encoded`, `n_bytes_of_text`), and numbers (`n_ids`, `ids_in_strings`).
The thresholds are in `kernels/string_kinds.py`, the screen of the compiled readers. It settles most
strings, and leaves the rows of others to the plain reader, which asks here.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import a2b_base64
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import unquote

from decon_core.corpus.archives import FIRST_BYTES, PACKED, contents_of, may_hold_text
from decon_core.kernels.string_kinds import (
    COUNT_TOGETHER,
    IGNORE,
    LARGEST_VOCABULARY,
    LEAST_BETWEEN,
    LEAST_BYTES,
    LEAST_CODES,
    LEAST_ENCODED,
    LEAST_JOINED,
    LEAST_LARGE,
    LEAST_LETTERS,
    LEAST_NUMBERS,
    LEAST_WORDS,
    LINE_OF_BASE64,
    MOST_NESTED,
    READ,
    READ_IF_TEXT,
)

if TYPE_CHECKING:
    from decon_core.corpus.fields import Field


class StringKind(Enum):
    """What a string is, or a list of numbers: a row of the table of kinds."""

    TEXT = "", True, "not read by the source", ""
    PIECE = "", True, "a short string of a list", ""  # all pieces of a list may be a text
    VALUE = "", False, "a short value", ""
    BASE64 = "<base64>", True, "base64", "decode it before the scan"
    HEX = "<hex>", True, "hex", "decode it before the scan"
    TOKENS = "<tokens>", True, "token ids", "decode them, unless they are those of the text"
    ARCHIVE = "<unknown>", True, "base64 of unknown content", "unpack it before the scan"
    DATA = "<data>", False, "base64", ""  # such as a picture or a hash

    def __init__(self, step: str, is_blocking: bool, reason: str, advice: str) -> None:
        self.step = step  # the last step of the path under which it is counted
        self.is_blocking = is_blocking  # it may hold text: unread, it holds back mixtures
        self.reason = reason  # why it was not read
        self.advice = advice  # how to have it read


def kind_at(path: str) -> StringKind:
    """Return the kind of what was counted at a path."""
    return _BY_STEP.get(path.rpartition(".")[2], StringKind.TEXT)


_BY_STEP = {kind.step: kind for kind in StringKind if kind.step}


def kind_of(value: str, use: int = READ, *, is_named: bool = False) -> StringKind:
    """Return what a string is.

    `use`: what the source does with its field (see `kernels/string_kinds.py`): all that is read is
    text unless it is encoded. `is_named`: its field is one of token ids.
    """
    if is_encoded(value):
        is_passed = use == IGNORE or (use == READ_IF_TEXT and not value.startswith("data:"))
        return StringKind.VALUE if is_passed else kind_of_encoded(value, is_named=is_named)
    if use == READ_IF_TEXT:
        return StringKind.TEXT if is_text_of_label(value) else StringKind.VALUE
    if use == READ or (use != IGNORE and (is_text(value) or is_escaped_text(value))):
        return StringKind.TEXT
    return StringKind.PIECE if use == COUNT_TOGETHER else StringKind.VALUE


# Text --------------------------------------------------------------------------------------------

_LETTER = re.compile(rb"[0-9A-Za-z\x80-\xff]")
_WIDE_SPACE = re.compile("[\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
# Thai, Lao, Tibetan, Burmese, Khmer, Tai, Balinese, from the CJK radicals on to Yi, Javanese; their
# compatibility forms.
_UNSPACED = re.compile(
    rb"\xe0[\xb8-\xbf]|\xe1[\x80-\x82\x9e\x9f\xa5-\xaa\xac\xad]|\xe2[\xba-\xbf]"
    rb"|[\xe3-\xe9][\x80-\xbf]|\xea[\x80-\x93\xa6\xa7\xa9]|\xef[\xa4-\xab\xbc-\xbe]"
    rb"|\xf0[\xa0-\xbf]"
)
# Signs between the words of a URL or of a name of a file, and letters of scripts without spaces.
_JOINT = re.compile(rb"(?:[-_+]|%20)(?=[A-Za-z%\x80-\xff])")
_QUOTED = re.compile(rb"%[Ee][3-9]")
_CONTROL = re.compile("[\\x00-\\x08\\x0e-\\x1f\ufffd]")
_ESCAPES = re.compile(  # three or more, not from each of many backslashes on, which is slow
    r"(?<!\\)(?:\\+u[0-9a-fA-F]{4}){3,}|(?:&#(?:[0-9]{2,7}|[xX][0-9a-fA-F]{2,6});){3,}"
)


def is_text(value: str) -> bool:
    """Return whether a string is long enough to hold a question: some words, or many letters."""
    if 4 * len(value) < LEAST_BYTES:
        return False
    content = (value if value.isascii() else _WIDE_SPACE.sub(" ", value)).encode()
    words = filter(_LETTER.search, content.split())
    if len([*islice(words, LEAST_WORDS)]) == LEAST_WORDS:
        return True
    return _n_unspaced(value) >= LEAST_LETTERS


def _n_unspaced(value: str) -> int:
    """Return how many letters of scripts without spaces a string has."""
    return 0 if value.isascii() else len(_UNSPACED.findall(value.encode()))


def is_joined(value: str) -> bool:
    """Return whether a string is a text whose words are joined, as in a URL or an identifier."""
    content = value.encode()
    n_quoted = len(_QUOTED.findall(content))
    return len(_JOINT.findall(content)) + 1 >= LEAST_JOINED or n_quoted >= LEAST_LETTERS


def is_text_of_label(value: str) -> bool:
    """Return whether the value of a label is a text, which may be encoded as a URL is."""
    if value.startswith("data:") and is_text(unquote(value)):
        return True
    return is_text(value) or is_joined(value)


def is_escaped_text(value: str) -> bool:
    r"""Return whether a string has as many escapes (`&#24352;`, `\u5f20`) as a text has letters."""
    if "\\u" not in value and "&#" not in value:
        return False
    runs: list[str] = _ESCAPES.findall(value)
    return sum(run.count("u") + run.count(";") for run in runs) >= LEAST_LETTERS


def text_of_bytes(value: bytes) -> str:
    """Return the text that bytes hold, which may be padded with zeros; empty if they hold none.

    At most a tenth of a text is control characters, or bytes that are not UTF-8.
    """
    first = value[:FIRST_BYTES].rstrip(b"\0").decode("utf-8", "replace")
    if 10 * len(_CONTROL.findall(first)) > len(first):
        return ""
    return value.rstrip(b"\0").decode("utf-8", "replace")


# Base64 and hex digits ---------------------------------------------------------------------------

FIRST_ENCODED = FIRST_BYTES // 3 * 4  # characters that decide what is encoded
_BASE64 = re.compile(
    rf"(?:[A-Za-z0-9+/_-]{{{LINE_OF_BASE64},}}\r?\n)*[A-Za-z0-9+/_-]+={{0,2}}\s*", re.ASCII
)
_DATA_URI = re.compile(  # text may follow one
    r"data:(?:[\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+(?:=[^;,\s]*)?)*;base64,[A-Za-z0-9+/=_%-]*\s*",
    re.ASCII,
)
_HEX = re.compile(r"(?:0[xX])?([0-9A-Fa-f\s]+)", re.ASCII)


def is_encoded(value: str) -> bool:
    """Return whether a string is base64 or a data URI with base64, which no text is."""
    if value.startswith("data:"):
        return bool(_DATA_URI.fullmatch(value))
    if len(value) < LEAST_ENCODED or not _BASE64.fullmatch(value):
        return False
    return _has_few_separators(value)


def _has_few_separators(value: str) -> bool:
    """Return whether base64 is no words that are joined by its signs that are no letters."""
    return LEAST_BETWEEN * sum(map(value.count, "+/_-")) <= len(value)


def kind_of_encoded(value: str, *, is_named: bool = False) -> StringKind:
    """Return what a string is that `is_encoded`; its first characters are enough."""
    if len(value) < LEAST_ENCODED:
        return StringKind.VALUE
    head = value[value.find(",") + 1 :][:FIRST_ENCODED]  # a data URI has a comma, base64 none
    if _is_text(_text_in(_bytes_of_hex(head))):
        return StringKind.HEX
    content = _bytes_of_base64(head)
    if _is_text(_text_in(content)):
        return StringKind.BASE64
    if is_named:
        return StringKind.TOKENS
    return StringKind.ARCHIVE if may_hold_text(content) else StringKind.DATA


def counts_of_encoded(
    at: Field, strings: Sequence[tuple[StringKind, str, int]]
) -> Iterator[tuple[str, int]]:
    """Yield path and bytes of the encoded strings of one field of a row.

    `strings`: of each its kind, its first characters and its bytes. Those of a list may be lines.
    """
    kinds = [kind for kind, _, _ in strings]
    of_lines = StringKind.DATA
    if at.key is None and len(strings) > 1 and StringKind.DATA in kinds:
        lines = "".join(head for _, head, _ in strings)
        of_lines = kind_of_encoded(lines[:FIRST_ENCODED])
    if of_lines in (StringKind.BASE64, StringKind.HEX):
        kinds = [of_lines if kind is StringKind.DATA else kind for kind in kinds]
    for kind, (_, _, n_bytes) in zip(kinds, strings, strict=True):
        yield f"{at.shown}.{kind.step}", n_bytes


def _is_text(text: str) -> bool:
    return is_text(text) or is_escaped_text(text)


def _bytes_of_hex(value: str) -> bytes:
    digits = _HEX.fullmatch(value)
    if not digits:
        return b""
    pairs = "".join(digits[1].split())
    return bytes.fromhex(pairs[: len(pairs) // 2 * 2])


def _bytes_of_base64(value: str) -> bytes:
    letters = re.sub(r"[^A-Za-z0-9+/]", "", unquote(value).replace("-", "+").replace("_", "/"))
    return b64decode(letters[: len(letters) // 4 * 4])


def _text_in(content: bytes, depth: int = MOST_NESTED) -> str:
    """Return the text that bytes hold, also as UTF-16, packed or encoded again; empty if none."""
    if depth and (contents := contents_of(content)):
        return "\n".join(_text_in(inner, depth - 1) for inner in contents)
    for letters, zeros in ((content[::2], content[1::2]), (content[1::2], content[::2])):
        if 10 * zeros.count(0) > 9 * len(zeros):
            return text_of_bytes(letters)
    text = text_of_bytes(content)
    if depth and is_encoded(text):
        return _text_in(_bytes_of_hex(text) or _bytes_of_base64(text), depth - 1)
    return text


# Lines of base64 in a text -----------------------------------------------------------------------

_LINE = rf"[A-Za-z0-9+/_-]{{{LINE_OF_BASE64},}}"
_RUN = re.compile(rf"{_LINE}(?:\r?\n{_LINE})*", re.ASCII)
_FIRST_LETTERS = 16  # letters of a run that are looked at first
_STANDARD = bytes.maketrans(b"-_", b"+/")
_BROKEN_UTF8 = re.compile(rb"[\xc0-\xff][^\x80-\xbf]|[\x00-\x7f][\x80-\xbf]", re.DOTALL)
_WORD = re.compile(r"(?<!\S)[^\W\d_]+[,.;:!?]?(?!\S)")


def runs_in(text: str) -> list[str]:
    """Return the lines of base64 in a string with other text; neighbours are one run."""
    if max(map(len, text.split()), default=0) < LINE_OF_BASE64:  # fast
        return []
    return _RUN.findall(text)


def n_bytes_of_text(runs: Sequence[str]) -> int:
    """Return how many bytes of the runs of one field may be text; 0 if they encode no sentence.

    Each may encode one by itself, or all together. Most runs are no base64 but paths and names.
    """
    runs = [run for run in runs if _may_encode_text(run)]
    likely = [run for run in runs if _has_few_separators(run)]
    if not likely:
        return 0
    contents = [_bytes_of_base64(run[:FIRST_ENCODED]) for run in likely]
    texts = (_text_in(content) for content in (b"".join(contents), *contents))
    return sum(map(len, runs)) if any(map(_has_sentence, texts)) else 0


def _may_encode_text(run: str) -> bool:
    """Return whether the first bytes that base64 encodes may be UTF-8, or packed text."""
    first = a2b_base64(run[:_FIRST_LETTERS].encode().translate(_STANDARD))  # fast
    return first.startswith(PACKED) or not _BROKEN_UTF8.search(first)


def _has_sentence(text: str) -> bool:
    """Return whether a text has words between white space: SVG has few, though it is a text."""
    n_words = sum(1 for _ in islice(_WORD.finditer(text), LEAST_WORDS))
    is_sentence = n_words >= LEAST_WORDS or _n_unspaced(text) >= LEAST_LETTERS
    return is_sentence or is_escaped_text(text)


# Numbers -----------------------------------------------------------------------------------------

_PRINTABLE = re.compile(rb"[\x09-\x0d\x20-\x7e\x80-\xff]")
_CODE_OF_LETTER = re.compile(rb"[A-Za-z\x80-\xff]")
_ONLY_NUMBERS = re.compile(r"[0-9 \t\r\n.,;\[\]()-]+")
_NUMBER = re.compile(r"(?<![\d.-])(\d{1,9})(?:\.0*)?(?![\d.-])", re.ASCII)
_ANY_NUMBER = re.compile(r"\d[\d.-]*", re.ASCII)  # also a fraction or a date
_MARKS_OF_PIECES = "Ġ", "▁", "##"
_KEYS_OF_ID = ("id", "token_id", "token")


def n_ids(value: object, at: Field) -> int:
    """Return how many numbers in a list or object of a field are a text; 0 if they are none.

    In a field of token ids, whole numbers are. Others may be the bytes of a text.
    """
    n = _n_of_list(value, is_named=at.has_tokens) if isinstance(value, list | tuple) else 0
    return n or _n_loose(value, at)


def _n_of_list(values: Sequence[object], *, is_named: bool) -> int:
    if len(values) < LEAST_NUMBERS:
        return 0
    numbers = [value for value in values if type(value) is int and value >= 0]
    if is_named:
        return len(numbers) if len(numbers) >= LEAST_NUMBERS else 0
    n = len(numbers)
    codes = bytes(number for number in numbers if number < 256)
    n_letters, n_spaces = len(_CODE_OF_LETTER.findall(codes)), codes.count(b" ")
    n_printable = len(_PRINTABLE.findall(codes))
    is_text = 10 * n_printable >= 9 * n and 2 * n_letters >= n and 16 * n_spaces >= n
    return n if n >= LEAST_CODES and is_text else 0


def _n_loose(value: object, at: Field) -> int:
    """Return how many token ids are in nested lists, objects or floats of a field; 0 if none.

    Lists that are a text by themselves do not count here.
    """
    if not (at.has_tokens and at.key):
        return 0
    if isinstance(value, dict):  # a member of a tar archive that is passed over
        n_bytes = value.get("n_bytes") if len(value) == 1 else None
        return n_bytes if isinstance(n_bytes, int) and at.is_of_arrays else 0
    if not isinstance(value, list | tuple):
        return 0
    first = next((inner for inner in value if inner is not None), None)
    if not isinstance(first, list | tuple | dict | float):
        return 0
    n, waiting = 0, [value]
    while waiting:
        for inner in waiting.pop():
            if isinstance(inner, list | tuple):
                if not _n_of_list(inner, is_named=True):
                    waiting.append(inner)
            else:
                n += _is_id_alone(inner) if isinstance(inner, dict) else _is_id(inner)
    return n if n >= LEAST_NUMBERS else 0


def _is_id(value: object) -> bool:
    if type(value) is float:
        return value >= 0 and value.is_integer()
    return type(value) is int and value >= 0


def _is_id_alone(value: dict[str, object]) -> bool:
    """Return whether an object has a token id, and no string, as of the word itself."""
    has_string = any(isinstance(inner, str | bytes) for inner in value.values())
    return not has_string and any(_is_id(value.get(key)) for key in _KEYS_OF_ID)


def ids_in_strings(texts: Sequence[tuple[Field, str]]) -> Iterator[tuple[Field, int]]:
    """Yield the fields of a row whose strings are token ids, and how many.

    `texts`: the strings of the row that are read. If all that are longer than a word or two are
    lists of numbers, the name of the field does not matter.
    """
    strings: dict[Field, list[str]] = {}
    is_only = True
    for at, text in texts:
        if _ONLY_NUMBERS.fullmatch(text):
            strings.setdefault(at, []).append(text)
        elif len(text.encode()) >= LEAST_BYTES:
            is_only = False
    for at, of_field in strings.items():
        text = " ".join(of_field)
        ids = [*map(int, _NUMBER.findall(text))]
        n_others = len(_ANY_NUMBER.findall(text)) - len(ids)
        are_lists = is_only and all(string.lstrip().startswith("[") for string in of_field)
        are_likely = are_lists and 10 * n_others <= len(ids) and are_like_ids(ids)
        if len(ids) >= LEAST_NUMBERS and (at.has_tokens or are_likely):
            yield at, len(ids)


def pieces_in(texts: Sequence[tuple[Field, str]]) -> Iterator[tuple[Field, int]]:
    """Yield the lists of a row whose strings are pieces of words, and how many bytes they have.

    Tokenizers mark the pieces that begin a word, or those that do not. Other pieces are characters.
    """
    strings: dict[Field, list[str]] = {}
    for at, text in texts:
        if at.is_element:
            strings.setdefault(at, []).append(text)
    for at, pieces in strings.items():
        n, n_marked = len(pieces), sum(piece.startswith(_MARKS_OF_PIECES) for piece in pieces)
        n_characters = sum(len(piece) == 1 for piece in pieces)
        are_pieces = n >= LEAST_NUMBERS and 8 * n_marked >= n
        if are_pieces or (n >= LEAST_CODES and 10 * n_characters >= 9 * n):
            yield at, sum(len(piece.encode()) for piece in pieces)


def are_like_ids(numbers: Sequence[int]) -> bool:
    """Return whether numbers look like the token ids of a text, whatever their field is called.

    Ids are below the size of a vocabulary, and of all sizes. Those of frequent words repeat: one is
    a fiftieth of a text or more. Few are round, as prices are. docs/layouts.md says how sure it is.
    """
    n, counts = len(numbers), Counter(numbers)
    if n < LEAST_CODES or not 16 * min(counts) <= max(counts) < LARGEST_VOCABULARY:
        return False
    n_most = max(counts.values())
    n_large = sum(number >= LEAST_LARGE for number in numbers)
    n_round = sum(number % 10 in (0, 5, 9) for number in counts)
    is_frequent = n_most >= 3 and 50 * n_most >= n and 16 * (n - len(counts)) >= n
    return is_frequent and 2 * n_large >= n and 2 * n_round <= len(counts)
