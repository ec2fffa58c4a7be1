"""Find programs: those of a record, the digests of their tokens, and a function in a document."""

from __future__ import annotations

import ast
import re
import textwrap
import tomllib
import warnings
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import Words64, distinct
from decon_core.kernels.code.lexer import CALLED, digest_of_bytes, enter_names
from decon_core.kernels.code.windows import grams_of

_FENCED = re.compile(r"^[ \t]*(```+|~~~+)[^\n`]*\n(.*?)(?:^[ \t]*\1|\Z)", re.DOTALL | re.MULTILINE)
_CALL = re.compile(r"\w\(")
_ENDS_IN_BRACE = re.compile(r"[;{}][ \t]*$", re.MULTILINE)
_OPENS_BRACE = re.compile(r"\{[ \t]*$", re.MULTILINE)
_LATEX = re.compile(r"\\[A-Za-z]{2,}\{|\[asy\]|\\\{")
_LINE = re.compile(r"\S[^\n]*")
_LEAST_BRACE_LINES = 3
_BRACE_SHARE = 0.4

# A statement that prose or a formula does not have; `x = 5` parses as Python, too.
_STATEMENTS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.While, ast.With)
_LEAST_STATEMENTS = 3

_HEADER = re.compile(rb"[ \t]*(?:async[ \t]+def|def|class)[ \t]")
_MOST_LINES_UP = 200
_LONGEST_UNIT = 1 << 15  # bytes; a longer function is not the program of an item


class ProgramText(NamedTuple):
    """The program of a record, and the fields that it is made of."""

    text: str
    has_question: bool
    has_answer: bool


def program_of(question: str, answer: str | None) -> ProgramText | None:
    """Return the program of a record; None if it has none.

    The answer if it is one, after a question that it completes; else the code in the question.
    """
    if answer:
        whole = question + answer
        # HumanEval: the question ends inside the function that the answer completes.
        if _CALL.search(question) and "def " in question and _is_python(whole):
            return ProgramText(whole, has_question=True, has_answer=True)
        if text := _code_in(answer):
            return ProgramText(text, has_question=False, has_answer=True)
    text = _code_in(question)
    return ProgramText(text, has_question=True, has_answer=False) if text else None


def _code_in(text: str) -> str | None:
    """Return a text that is a program, or the fenced code in it, without common indentation."""
    if not _CALL.search(text):
        return None
    blocks = [textwrap.dedent(block[2]) for block in _FENCED.finditer(text)]
    code = "\n".join(blocks) if blocks else textwrap.dedent(text)
    return code if _is_python(code) or _has_braces(code) else None


def _is_python(text: str) -> bool:
    if (tree := parsed(text)) is None:
        return False
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    is_structured = any(isinstance(node, _STATEMENTS) for node in statements)
    return is_structured or len(statements) >= _LEAST_STATEMENTS


def _has_braces(text: str) -> bool:
    """Return whether a text is made of blocks in braces, and no LaTeX or figure of a question."""
    if not _OPENS_BRACE.search(text) or _LATEX.search(text):
        return False
    n_ends, n_lines = len(_ENDS_IN_BRACE.findall(text)), len(_LINE.findall(text))
    return n_ends >= _LEAST_BRACE_LINES and n_ends >= _BRACE_SHARE * n_lines


def parsed(text: str) -> ast.Module | None:
    """Parse Python; None if it is something else."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as invalid escapes
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


# Fingerprints -------------------------------------------------------------------------------------


class StandardNames(NamedTuple):
    """Names that count as themselves."""

    keywords: frozenset[str]
    called: frozenset[str]  # only after a dot or before a bracket


@cache
def standard_names() -> StandardNames:
    content = files("decon_core.text").joinpath("code_names.toml").read_text("utf-8")
    names = {group: frozenset(listed.split()) for group, listed in tomllib.loads(content).items()}
    return StandardNames(**names)


@cache
def names_table() -> Words64:
    """Return the table of the names that count as themselves, for kernels."""
    names = standard_names()
    digests = [_digest(name) for name in sorted(names.keywords)]
    digests += [_digest(name) ^ CALLED for name in sorted(names.called)]
    table = np.zeros(4 * len(digests), np.uint64)
    enter_names(np.array(digests, np.uint64), table)
    return table


def _digest(name: str) -> np.uint64:
    content = name.encode()
    return digest_of_bytes(np.frombuffer(content, np.uint8), 0, len(content))


def fingerprints(text: str, size: int) -> tuple[Words64, int]:
    """Return the distinct digests of consecutive tokens of a program, and its number of tokens."""
    content = np.frombuffer(text.encode(), np.uint8)
    room = np.empty(max(content.size, 1), np.uint64)
    n, n_tokens = grams_of(content, 0, content.size, size, names_table(), room)
    return distinct(room[:n]), int(n_tokens)


# Functions in documents ---------------------------------------------------------------------------


def function_around(document: bytes, start: int, stop: int) -> tuple[int, int] | None:
    """Return the lines of the Python functions around a range of bytes; None if they are too long.

    From the header above that is indented no more than any line of the range, else from the first
    header in it, to the end of the last function. A fence of Markdown ends the code. Without any
    header: the lines of the range.
    """
    within = [*_lines(document, start, stop)]
    indentation = min((_indentation(line) for _, line in within), default=0)
    header = _header_above(document, start, indentation) or next(
        ((at, _indentation(line)) for at, line in within if _HEADER.match(line)), None
    )
    if header is None:
        return document.rfind(b"\n", 0, start) + 1, _line_end(document, stop)
    first, indentation = header
    last = stop
    for at, line in _lines(document, stop, min(first + _LONGEST_UNIT + 2, len(document))):
        if at >= stop and (_indentation(line) <= indentation or _is_fence(line)):
            break
        last = at + len(line)
    return (first, last) if last - first <= _LONGEST_UNIT else None


def _header_above(document: bytes, start: int, indentation: int) -> tuple[int, int] | None:
    """Return the place and indentation of the header that a line belongs to."""
    end = _line_end(document, start)
    for _ in range(_MOST_LINES_UP):
        at = document.rfind(b"\n", 0, end) + 1
        line = document[at:end]
        if line.strip():
            indentation = min(indentation, _indentation(line))
            if _HEADER.match(line) and _indentation(line) <= indentation:
                return at, indentation
        if at == 0 or _is_fence(line):
            return None
        end = at - 1
    return None


def _lines(document: bytes, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """Yield place and content of the lines in a range that are not blank, whole."""
    at = document.rfind(b"\n", 0, start) + 1
    while at < stop:
        end = _line_end(document, at)
        line = document[at:end]
        if line.strip():
            yield at, line
        at = end + 1


def _line_end(document: bytes, at: int) -> int:
    end = document.find(b"\n", at)
    return len(document) if end < 0 else end


def _indentation(line: bytes) -> int:
    return len(line) - len(line.lstrip())


def _is_fence(line: bytes) -> bool:
    return line.lstrip().startswith((b"```", b"~~~"))
