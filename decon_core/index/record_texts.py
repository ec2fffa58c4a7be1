"""The texts of a record that `ratcliff`, `longest_match`, `exact` and `ngram_any` search for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from decon_core.config.policy import Policy
from decon_core.text.compared_text import formed

Integers = npt.NDArray[np.int64]

# The kinds of text of a record. The last two are only searched for as whole texts.
QUESTION, ANSWER, QUESTION_AND_ANSWER, CONTINUATION = range(4)
NAMES = ("question", "answer", "question and answer", "continuation")
WHOLE = (QUESTION, QUESTION_AND_ANSWER, CONTINUATION)
FIELDS = (QUESTION, ANSWER)

# The end of a sentence that is followed by another: a full stop or similar before white space (3.14
# is one word), a full-width one, or a line break, with closing quotes and brackets. Possessive
# quantifiers consume a run of such characters at once, so that long runs take linear time.
_CLOSING = "[\"'”’»)\\]」』）]*+"
_SENTENCE_END = re.compile(
    rf"(?:(?<![.!?…])[.!?…]++{_CLOSING}(?=\s)|(?<![。！？])[。！？]++{_CLOSING}|[\r\n\u2028\u2029])\s*+(?=\S)"
)


# Texts --------------------------------------------------------------------------------------------


class Pool:
    """Distinct texts and their uses."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.uses: list[tuple[int, int, int, int]] = []  # text, part, record, kind

    def add(self, text: str, part: int, record: int, kind: int) -> None:
        if text:
            number = self.numbers.setdefault(text, len(self.numbers))
            self.uses.append((number, part, record, kind))

    @property
    def texts(self) -> list[str]:
        return list(self.numbers)

    def table(self) -> Integers:
        """Return the uses, sorted: columns text, part, record, kind."""
        uses = np.array(self.uses, np.int64).reshape(-1, 4)
        return uses[np.lexsort(uses.T[::-1])]


def gather(pool: Pool, part: int, records: Sequence[Mapping[str, Any]], policy: Policy) -> None:
    form = policy.normalize, policy.form
    for row, record in enumerate(records):
        question, answer = record["question"], record["answer"]
        pool.add(formed(question, *form), part, row, QUESTION)
        # A wrong choice is not an answer: having seen it does not give away the right one.
        if not answer or record["is_correct"] is False:
            continue
        pool.add(formed(answer, *form), part, row, ANSWER)
        if not question.strip() or not answer.strip():
            continue
        pool.add(formed(followed(question, answer), *form), part, row, QUESTION_AND_ANSWER)
        last = last_sentence(question)
        if last:
            pool.add(formed(followed(last, answer), *form), part, row, CONTINUATION)


def followed(question: str, answer: str) -> str:
    """Join a question and its answer, with a space unless one of them brings white space."""
    has_space = question[-1:].isspace() or answer[:1].isspace()
    return question + ("" if has_space or not question else " ") + answer


def last_sentence(question: str) -> str | None:
    """Return the last sentence of a question; None if it has only one."""
    # Without trailing white space, every run of white space is followed by text.
    ends = [end.end() for end in _SENTENCE_END.finditer(question.rstrip())]
    if not ends or not question[: ends[-1]].strip():
        return None
    return question[ends[-1] :]
