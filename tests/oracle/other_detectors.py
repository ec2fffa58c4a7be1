"""The oracle of `ratcliff`, `longest_match`, `exact` and `ngram_any`, slow and simple.

The oracle of `decon` is `decon.py`. Each function compares one document with one text; which texts
of a benchmark are searched, and the thresholds, are defined elsewhere. Tokens are those of the
unchanged text, unless a policy cleans it first. No code is shared with the stages: where the two
differ, this one is right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

Tokens = Sequence[int]


@dataclass(frozen=True)
class Run:
    """A common run of tokens: its start on both sides, and its length."""

    document: int
    text: int
    length: int


# What is shared -----------------------------------------------------------------------------------


def shared_grams(document: Tokens, text: Tokens, size: int) -> list[tuple[int, ...]]:
    """Return the distinct n-grams of a text that the document contains, in order of the text.

    A text of exactly `size` tokens has one n-gram.
    """
    in_document = {tuple(document[at : at + size]) for at in range(len(document) - size + 1)}
    grams = [tuple(text[at : at + size]) for at in range(len(text) - size + 1)]
    return [gram for gram in dict.fromkeys(grams) if gram in in_document]


def forms(text: str, encode: Callable[[str], Tokens]) -> list[tuple[str, Tokens]]:
    """Return a text as it is, and with a leading space, where its first word is another token.

    In a document a text mostly follows a space. Where the space is a separate token, both forms are
    the same search.
    """
    bare = (text, encode(text))
    if not text or text[0].isspace():
        return [bare]
    spaced = (" " + text, encode(" " + text))
    is_same = [*bare[1]] in ([*spaced[1]], [*spaced[1][1:]])
    return [bare] if is_same else [bare, spaced]


def longest_run(document: Tokens, text: Tokens, least: int) -> Run | None:
    """Return the longest common run of at least `least` tokens.

    Of equally long ones the first in the document, and of those the first in the text.
    """
    best = None
    for start in range(len(document)):
        for at in range(len(text)):
            length = _length_of_run(document, start, text, at)
            if length >= least and (best is None or length > best.length):
                best = Run(start, at, length)
    return best


def _length_of_run(document: Tokens, start: int, text: Tokens, at: int) -> int:
    length = 0
    while (
        start + length < len(document)
        and at + length < len(text)
        and document[start + length] == text[at + length]
    ):
        length += 1
    return length


# `ratcliff` ---------------------------------------------------------------------------------------


def whole_prompt(passage: str | None, question: str, choices: Sequence[str | None]) -> str:
    """Return passage, question and choices, a line each, the choices with letters."""
    letters = [*"ABCDEFGHIJKLMNOPQRSTUVWXYZ", *map(str, range(27, 1000))]
    lines = [passage or "", question]
    for letter, choice in zip(letters, choices, strict=False):
        lines.append(f"{letter}. {choice or ''}")
    return "\n".join(line for line in lines if line)


@dataclass(frozen=True)
class Alignment:
    """The Ratcliff-Obershelp blocks of a prompt."""

    blocks: tuple[Run, ...]
    ratio: float


def ratcliff(
    document: Tokens, prompt: Tokens, *, ngram_size: int = 8, least_block: int = 5
) -> Alignment | None:
    """Return the share of a prompt in matching blocks that are long enough.

    None if no n-gram is shared. The longest common run is a block; then the same to its left and
    right.
    """
    if not shared_grams(document, prompt, ngram_size):
        return None
    matcher = SequenceMatcher(None, document, prompt, autojunk=False)
    blocks = tuple(
        Run(block.a, block.b, block.size)
        for block in matcher.get_matching_blocks()
        if block.size >= least_block
    )
    return Alignment(blocks, sum(block.length for block in blocks) / len(prompt))


# `longest_match` and `ngram_any` ------------------------------------------------------------------


def longest_match(document: Tokens, field: Tokens, *, ngram_size: int = 8) -> float | None:
    """Return the share of a field that its longest run in the document covers.

    None: the field is too short to search, which is not the same as not found.
    """
    if len(field) < ngram_size:
        return None
    run = longest_run(document, field, ngram_size)
    return run.length / len(field) if run else 0.0


def ngram_any(document: Tokens, text: Tokens, *, size: int = 13) -> int:
    """Return the length of the longest run if it contains an n-gram, else 0."""
    run = longest_run(document, text, size)
    return run.length if run else 0


# `exact` ------------------------------------------------------------------------------------------


def occurrences(document: str, text: str) -> list[int]:
    """Return every position of a text in a document, overlapping ones too."""
    if not text:
        return []
    return [at for at in range(len(document)) if document.startswith(text, at)]


@dataclass(frozen=True)
class Continuations:
    """The texts of an item to search for. An absent one is None."""

    question: str
    answered: str | None  # the question and its answer
    continuation: str | None  # the last sentence of the question and the answer


def continuations(question: str, answer: str | None) -> Continuations:
    """Return the question, with its answer, and the last of several sentences with the answer.

    A single sentence has no separate continuation: it would be the answered question. An answer
    without a question is not searched for.
    """
    if not answer or not answer.strip() or not question.strip():
        return Continuations(question, None, None)
    sentence = last_sentence(question)
    has_more = sentence != question.lstrip()
    return Continuations(
        question, joined(question, answer), joined(sentence, answer) if has_more else None
    )


def joined(first: str, second: str) -> str:
    """Join two texts, with a space unless there is white space between them."""
    is_apart = not first or first[-1].isspace() or second[:1].isspace()
    return first + second if is_apart else f"{first} {second}"


# After . ! ? … only if white space follows, so that 3.14 stays whole; after full-width ones and
# line breaks always. Closing quotation marks and brackets belong to the sentence, and adjacent
# signs are never separated: 「何？」 is one sentence. An abbreviation ("Dr. Smith") ends a sentence
# here, which is harmless for a text to search for.
_CLOSING = "[\"'”’»)\\]」』）]*+"
_SENTENCE_END = re.compile(
    rf"(?:[.!?…]+{_CLOSING}(?=\s)|[。！？]++{_CLOSING}|[\r\n\u2028\u2029])\s*(?=\S)"
)


def last_sentence(text: str) -> str:
    """Return the text after the last end of a sentence; the whole text without one."""
    start = len(text) - len(text.lstrip())
    for end in _SENTENCE_END.finditer(text):
        start = max(start, end.end())
    return text[start:]
