"""Four more rules, slow and plain: the oracle of `ratcliff`, `longest_match`, `exact`, `ngram_any`.

Beside `reference.py`, which tells the `decon` rule. Each rule says what one document shares with
one text; which texts of a benchmark are looked for, and from where on something is a leak, is said
elsewhere. Tokens are those of the text as it stands, except where a policy cleans it first.
Nothing here is shared with the stages: where the two differ, this one is right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

Tokens = Sequence[int]


@dataclass(frozen=True)
class Run:
    """Tokens that stand in both, one after the other: where they begin, and how many there are."""

    document: int
    text: int
    length: int


# What is shared -----------------------------------------------------------------------------------


def shared_grams(document: Tokens, text: Tokens, size: int) -> list[tuple[int, ...]]:
    """The different n-grams of a text that the document holds, as they first occur in the text.

    Including the last one: a text of exactly `size` tokens has one n-gram.
    """
    held = {tuple(document[at : at + size]) for at in range(len(document) - size + 1)}
    grams = [tuple(text[at : at + size]) for at in range(len(text) - size + 1)]
    return [gram for gram in dict.fromkeys(grams) if gram in held]


def forms(text: str, encode: Callable[[str], Tokens]) -> list[tuple[str, Tokens]]:
    """A text by itself, and behind a space, where its first word is another token.

    Within a document a text mostly stands behind a space. Where the space is a token of its own,
    the second form is the same search as the first.
    """
    alone = (text, encode(text))
    if not text or text[0].isspace():
        return [alone]
    behind = (" " + text, encode(" " + text))
    is_same = [*alone[1]] in ([*behind[1]], [*behind[1][1:]])
    return [alone] if is_same else [alone, behind]


def longest_run(document: Tokens, text: Tokens, least: int) -> Run | None:
    """The longest run of at least so many tokens that stands in both.

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


@dataclass(frozen=True)
class Alignment:
    """What Ratcliff and Obershelp's matching leaves of a prompt."""

    blocks: tuple[Run, ...]
    ratio: float


def ratcliff(
    document: Tokens, prompt: Tokens, *, ngram_size: int = 8, least_block: int = 5
) -> Alignment | None:
    """How much of a prompt lies in matching blocks that are long enough; None is not looked at.

    The longest common run is a block; then the same to the left of it, and to the right.
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
    """The share of a field that its longest run in the document covers.

    None says that the field is too short to be searched, which is not the same as not found.
    """
    if len(field) < ngram_size:
        return None
    run = longest_run(document, field, ngram_size)
    return run.length / len(field) if run else 0.0


def ngram_any(document: Tokens, text: Tokens, *, size: int = 13) -> int:
    """The length of the longest run, if it holds an n-gram: any one is a hit. Else 0."""
    run = longest_run(document, text, size)
    return run.length if run else 0


# `exact` ------------------------------------------------------------------------------------------


def occurrences(document: str, text: str) -> list[int]:
    """Every place at which a text stands verbatim, one within another too."""
    if not text:
        return []
    return [at for at in range(len(document)) if document.startswith(text, at)]


@dataclass(frozen=True)
class Continuations:
    """The texts of an item that are looked for. An absent one is None."""

    question: str
    answered: str | None  # the question and its answer
    continuation: str | None  # the last sentence of the question and the answer


def continuations(question: str, answer: str | None) -> Continuations:
    """The question; with its answer; and, of several sentences, the last one with the answer.

    With a single sentence there is no continuation apart: it would be the answered question. An
    answer to nothing is not looked for.
    """
    if not answer or not answer.strip() or not question.strip():
        return Continuations(question, None, None)
    sentence = last_sentence(question)
    has_more = sentence != question.lstrip()
    return Continuations(
        question, joined(question, answer), joined(sentence, answer) if has_more else None
    )


def joined(first: str, second: str) -> str:
    """One after the other, with a space between them unless white space is there already."""
    is_apart = not first or first[-1].isspace() or second[:1].isspace()
    return first + second if is_apart else f"{first} {second}"


# Behind . ! ? … only where white space follows, so that 3.14 stays whole, and a closing quotation
# mark or bracket belongs to what it closes; behind the full-width ones and line breaks always. A
# sign is never cut off those that stand with it: 「何？」 is one sentence.
# An abbreviation ("Dr. Smith") does end a sentence here: the text is looked for, not read.
_CLOSING = "[\"'”’»)\\]」』）]*+"
_SENTENCE_END = re.compile(
    rf"(?:[.!?…]+{_CLOSING}(?=\s)|[。！？]++{_CLOSING}|[\r\n\u2028\u2029])\s*(?=\S)"
)


def last_sentence(text: str) -> str:
    """What stands behind the last end of a sentence that text follows; all of it without one."""
    start = len(text) - len(text.lstrip())
    for end in _SENTENCE_END.finditer(text):
        start = max(start, end.end())
    return text[start:]
