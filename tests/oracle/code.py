"""The oracle of `code`: tokens of programs, their weights, and the window that holds most of one.

Slow and plain: regular expressions on bytes (as Latin-1), sets and counters. What a Python program
computes from what has no twin; `tests/core/text/test_python_flow.py` tests properties of it.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

LONGEST = 1 << 14
UNIT = 1 << 20

_NAMES = Path(__file__).parents[2] / "decon_core/text/code_names.toml"
_KEYWORDS, _CALLED = (set(names.split()) for names in tomllib.loads(_NAMES.read_text()).values())

_LETTER = "A-Za-z_\x80-\xff"
_WORD = re.compile(f"[{_LETTER}][{_LETTER}0-9]*")
_NUMBER = re.compile(f"[0-9][{_LETTER}0-9.]*")
_SIGN = re.compile(r"[()\[\]{},.:@?]")
_OPERATORS = re.compile(r"[=+\-*/<>!%&|^~]+")
_LINE_COMMENT = re.compile(r"[^\n]*")
_BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_TRIPLE = re.compile(r'("""|\'\'\')(?:\\.|[^\\])*?\1', re.DOTALL)
_STRING = re.compile(r'"(?:\\[^\n]|[^"\\\n])*"|\'(?:\\[^\n]|[^\'\\\n])*\'')
_LINE_START = re.compile(rf"(?:\A|\n)[ \t\r\f\v]*[{_LETTER}]{{0,2}}\Z")


class Token(NamedTuple):
    text: str
    start: int  # bytes
    stop: int


def tokens(document: bytes) -> list[Token]:
    """Return the tokens of a text; `name` and `string` stand for all names and strings."""
    text = document.decode("latin-1")
    return [*_tokens(text, _has_slash_comments(text))]


def _has_slash_comments(text: str) -> bool:
    ends = Counter(line.rstrip(" \t\n\r\f\v")[-1:] for line in text.split("\n"))
    return ends[";"] + ends["{"] + ends["}"] > ends[":"]


def _tokens(text: str, has_slashes: bool) -> Iterator[Token]:
    at = 0
    while at < len(text):
        if found := _WORD.match(text, at):
            word = _of_word(text, found)
            if word:
                yield Token(word, at, found.end())
        elif found := _NUMBER.match(text, at) or _SIGN.match(text, at):
            yield Token(found[0], at, found.end())
        elif text[at] in "\"'":
            found = _string(text, at)
            if found and not (found[0][:3] in ('"""', "'''") and _LINE_START.search(text[:at])):
                yield Token("string", at, found.end())
        elif text[at] == "#" or _comment(text, at, has_slashes):
            found = _comment(text, at, has_slashes) or _LINE_COMMENT.match(text, at)
        elif found := _OPERATORS.match(text, at):
            end = next(
                (one for one in range(at + 1, found.end()) if _comment(text, one, has_slashes)),
                found.end(),
            )
            yield Token(text[at:end], at, end)
            at = end
            continue
        at = found.end() if found else at + 1


def _of_word(text: str, found: re.Match[str]) -> str | None:
    word, after = found[0], text[found.end() : found.end() + 1]
    if after and after in "\"'" and re.fullmatch("[rbfuRBFU]{1,2}", word):
        return None
    is_called = after == "(" or text[: found.start()].endswith(".")
    if word in _KEYWORDS or (is_called and word in _CALLED):
        return None if word == "pass" else f"={word}"
    return "name"


def _string(text: str, at: int) -> re.Match[str] | None:
    if text[at : at + 3] in ('"""', "'''"):
        found = _TRIPLE.match(text, at)
        return found if found and len(found[0]) <= LONGEST else None
    return _STRING.match(text, at)


def _comment(text: str, at: int, has_slashes: bool) -> re.Match[str] | None:
    if has_slashes and text.startswith("//", at):
        return _LINE_COMMENT.match(text, at)
    found = _BLOCK_COMMENT.match(text, at) if has_slashes else None
    return found if found and len(found[0]) <= LONGEST else None


# Weights and windows ------------------------------------------------------------------------------

Gram = tuple[str, ...]


def grams(of: Sequence[Token], size: int) -> list[Gram]:
    return [tuple(one.text for one in of[at : at + size]) for at in range(len(of) - size + 1)]


def weights(programs: Sequence[bytes], size: int) -> list[dict[Gram, int]]:
    """Return the weights of the informative fingerprints of each program."""
    every = [set(grams(tokens(program), size)) for program in programs]
    counts = Counter(gram for program in every for gram in program)
    most = max(3, 0.1 * len(programs))
    return [
        {
            gram: round(math.log((len(programs) + 1) / counts[gram]) * UNIT)
            for gram in program
            if counts[gram] <= most
        }
        for program in every
    ]


class Window(NamedTuple):
    weight: int
    n_matched: int
    start: int
    stop: int


def best_window(document: bytes, of: Mapping[Gram, int], size: int, span: int) -> Window | None:
    """Return the heaviest window of so many places; of equal ones that which ends first.

    Of windows with the same fingerprints and end, the shortest.
    """
    words = tokens(document)
    found = [(at, gram) for at, gram in enumerate(grams(words, size)) if gram in of]
    best = None
    for right, (stop, _) in enumerate(found):
        inside = [(at, gram) for at, gram in found[: right + 1] if stop - at < span]
        distinct = {gram for _, gram in inside}
        while inside[0][1] in {gram for _, gram in inside[1:]}:
            inside.pop(0)
        weight = sum(of[gram] for gram in distinct)
        if best is None or weight > best.weight:
            start = words[inside[0][0]].start
            best = Window(weight, len(distinct), start, words[stop + size - 1].stop)
    return best
