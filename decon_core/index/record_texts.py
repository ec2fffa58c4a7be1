"""The texts of a record that `ratcliff`, `longest_match`, `exact` and `ngram_any` search for.

And their tokens as arrays, as the kernels of `token_runs` search for them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Any

import numpy as np

from decon_core.config.policy import Policy
from decon_core.index.ngram_counts import number_grams, places_of
from decon_core.kernels import grams, token_runs
from decon_core.kernels.arrays import Integers
from decon_core.text.canonical import formed
from decon_core.text.word_cache import Ragged

# The kinds of text of a record. `WHOLE` is what `exact` searches for, `FIELDS` are columns of the
# record, and `COMPARED` are compared by tokens.
QUESTION, ANSWER, QUESTION_AND_ANSWER, CONTINUATION, PROMPT = range(5)
NAMES = ("question", "answer", "question and answer", "continuation", "whole prompt")
WHOLE = (QUESTION, QUESTION_AND_ANSWER, CONTINUATION)
FIELDS = (QUESTION, ANSWER)
COMPARED = (*FIELDS, PROMPT)

# The columns of records that `gather` reads; the last ones only for whole prompts.
COLUMNS = ("question", "answer", "is_correct")
PROMPT_COLUMNS = ("passage", "split", "instance_index", "sub_index", "choice_index")

# The end of a sentence that is followed by another: a full stop or similar before white space (3.14
# is one word), a full-width one, or a line break, with closing quotes and brackets. Possessive
# quantifiers consume a run of such characters at once, so that long runs take linear time.
_CLOSING = "[\"'”’»)\\]」』）]*+"
_SENTENCE_END = re.compile(
    rf"(?:(?<![.!?…])[.!?…]++{_CLOSING}(?=\s)|(?<![。！？])[。！？]++{_CLOSING}|[\r\n\u2028\u2029])\s*+(?=\S)"
)


_PAIR_BITS = 4
_MAX_PAIR_WORDS = 1 << 17


# Texts --------------------------------------------------------------------------------------------


class Pool:
    """Distinct texts and their uses by records."""

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


def gather(pool: Pool, part: int, records: Mapping[int, Mapping[str, Any]], policy: Policy) -> None:
    """Add the texts of records, given by their rows in the record table."""
    form = policy.normalize, policy.form
    for row, record in records.items():
        question, answer = record["question"], record["answer"]
        pool.add(formed(question, *form), part, row, QUESTION)
        # A wrong choice is not an answer: having seen it does not give away the right choice.
        if not answer or record["is_correct"] is False:
            continue
        pool.add(formed(answer, *form), part, row, ANSWER)
        if not question.strip() or not answer.strip():
            continue
        pool.add(formed(followed(question, answer), *form), part, row, QUESTION_AND_ANSWER)
        last = last_sentence(question)
        if last:
            pool.add(formed(followed(last, answer), *form), part, row, CONTINUATION)
    if policy.searches_prompts:
        for row, prompt in zip(records, whole_prompts([*records.values()]), strict=True):
            pool.add(formed(prompt, *form), part, row, PROMPT)


def whole_prompts(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return for each record the prompt of its question; empty if it has no question.

    A line each for passage, question and choices, which have letters, as evaluations ask them.
    Answers of which none is known to be wrong are not choices: an item may accept several.
    """
    columns = ("split", "instance_index", "sub_index", "question", "passage")
    keys = [tuple(record[name] for name in columns) for record in records]
    by_question: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for key, record in zip(keys, records, strict=True):
        by_question.setdefault(key, []).append(record)
    prompts = {key: _whole_prompt(of_question) for key, of_question in by_question.items()}
    return [prompts[key] for key in keys]


def _whole_prompt(records: Sequence[Mapping[str, Any]]) -> str:
    if not records[0]["question"].strip():
        return ""
    lines = [records[0]["passage"], records[0]["question"]]
    choices = [record for record in records if record["choice_index"] is not None]
    if any(choice["is_correct"] is False for choice in choices):
        choices.sort(key=lambda choice: choice["choice_index"])
        labels = [*ascii_uppercase, *map(str, range(len(ascii_uppercase) + 1, len(choices) + 1))]
        for label, choice in zip(labels, choices, strict=False):
            lines.append(f"{label}. {choice['answer'] or ''}")
    return "\n".join(filter(None, lines))


def followed(question: str, answer: str) -> str:
    """Join a question and its answer, with a space unless one of them brings white space."""
    has_space = question[-1:].isspace() or answer[:1].isspace()
    return question + ("" if has_space or not question else " ") + answer


def last_sentence(question: str) -> str | None:
    """Return the last sentence of a question; None if there is no other sentence."""
    # Without trailing white space, every run of white space is followed by text.
    ends = [end.end() for end in _SENTENCE_END.finditer(question.rstrip())]
    if not ends or not question[: ends[-1]].strip():
        return None
    return question[ends[-1] :]


# Tokens -------------------------------------------------------------------------------------------


def texts_of(rows: Ragged, size: int) -> token_runs.Texts:
    """Return token rows with an inverted index of the positions of all their n-grams."""
    table, numbers = number_grams(rows, size)
    is_gram = numbers != grams.NONE
    positions, numbers = np.flatnonzero(is_gram), numbers[is_gram]
    posting_offsets, order = places_of(numbers, len(table))
    row_of = np.repeat(np.arange(len(rows), dtype=np.uint32), rows.lengths)
    gram_at = table.first.astype(np.uint32)
    slots = np.zeros(4 * gram_at.size + 2, np.uint32)
    token_runs.fill_slots(rows.values, gram_at, size, slots)
    # A few bits for each pair, but no more than the CPU caches hold.
    pairs = np.zeros(min(rows.values.size * _PAIR_BITS // 64 + 1, _MAX_PAIR_WORDS), np.uint64)
    token_runs.enter_pairs(rows.values, rows.offsets, pairs)
    return token_runs.Texts(
        tokens=rows.values,
        offsets=rows.offsets,
        pairs=pairs,
        slots=slots,
        gram_at=gram_at,
        posting_offsets=posting_offsets,
        postings=positions[order].astype(np.uint32),
        posting_texts=row_of[positions[order]],
    )
