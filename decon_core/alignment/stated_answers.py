"""A short answer that a text states some way behind the question, as after a worked solution.

There, a number may stand by chance. It counts if the text says that it is the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from decon_core.alignment.denials import end_of_statement, is_wrong_before
from decon_core.alignment.pieces import (
    IGNORED,
    Piece,
    folded,
    pieces_of,
    whole_at,
)
from decon_core.kernels.arrays import Flags, Integers
from decon_core.text.numbers import lowered

if TYPE_CHECKING:
    import pyarrow as pa

    from decon_core.storage.tables import Array

_FARTHEST = 3_000  # characters behind the question
LONGEST = 40  # characters of an answer that are compared; longer ones have n-grams
_LONGEST_FORMULA = 200  # characters of an answer whose signs are compared, too
_FORMULA = r"\d\s*[-+*/^=<>≤≥×]|[-+*/^=<>≤≥×]\s*\d|[)(a-z][=^<>+][a-z(]|\\"
SHORT, FORMULA = 1, 2  # sorts of answers
_MOST_OF_CHOICE = 200  # characters of a choice, behind which the next one is
_MOST_BEFORE = 60  # characters between a word such as "answer" and the answer
_MOST_OF_WORD = 15  # characters of a word such as "incorrect" and the space behind it

# What names an answer, in nineteen languages.
_WORDS = (
    "answer|correct option|correct choice|antwort|réponse|respuesta|risposta|resposta|antwoord"
    "|odpowiedź|cevap|jawaban|đáp án|ответ|відповідь|الجواب|الإجابة"
)
_UNSPACED_WORDS = "答案|答え|答:|解答|正解|정답|답|คำตอบ|उत्तर"
_STATEMENT = re.compile(
    rf"(?P<word>\b(?:{_WORDS}|correct(?=:)|ans(?=[.:]))\b|{_UNSPACED_WORDS})|(?P<mark>####)"
    rf"|(?P<box>\\f?box(?:ed)?\b|[选選][择擇]?(?=[{IGNORED}:]*[A-J](?![A-Za-z])))"
    # Not as in width=18.
    r"|(?P<equal>(?<![!<>=≠~])[=≈](?!=)(?!(?<=(?-i:[a-z_]{2})=)['\"]?\d))",
    re.IGNORECASE,
)
# Each statement begins with one of these. Searching them first takes a tenth of the time.
_BEGINNINGS = f"####|\\box|\\fbox|=|≈|选|選|{_WORDS}|correct:|ans|{_UNSPACED_WORDS}".split("|")
# Another value that a text states, as a number or in a short line.
_NUMBER = re.compile(
    rf"[{IGNORED}]*(?:(?:(?:is|was|are|ist|est|es|è|é|jest|adalah|là)\b|equals|therefore|thus|[=是為为は은는])[{IGNORED}]*){{0,2}}"
    rf"(?P<value>-?\d[\d,]*(?:\.\d+)?)(?:\s*[^\W\d_]+\b){{0,3}}"
    rf"[{IGNORED}]*(?:[.,;。!?，！？]|(?<=\n)|$)",
    re.IGNORECASE,
)
_SHORT_LINE = re.compile(
    rf"(?:(?<=:)|[^\w\n]{{0,3}}?:)[{IGNORED}]*(?!(?:let|we|i|first|step)\b)(?P<value>[^\W_]+)"
    r"[^\n]{0,40}(?:\n|$)",
    re.IGNORECASE,
)
_BEFORE_VALUE = re.compile(r"[:)]\s*\S")
_DIRECTLY = re.compile(rf"[{IGNORED}]*")
_CHOICES = frozenset("ABCDEFGHIJ")
_SMALL_LABEL = re.compile(r"[a-j][*_]*(?:[.):]|\s*(?:\n|$))")
_LABEL = re.compile(r"\b[A-J][.):][^\S\n]*[^\s*]")
# Between a word such as "answer" and a letter that is the label of a choice.
_BEFORE_LABEL = re.compile(r"\n|\b[A-J][.):]|\b(?:choice|option)s\b", re.IGNORECASE)
_WORD_OF_LETTER = re.compile(r"[AI]\s+(?!(?:because|since|as|and|or|but|is|for|which)\b)[a-z]")
_LETTER_OF_CHOICE = re.compile(r"^(?:\([A-Z]\)|[A-Z][.):])\s*(?=\S)")


def stated_answer(
    wanted: Sequence[Sequence[str]], text: str, first: int
) -> tuple[int, int] | None:
    """Return the characters at which a text states one of the answers; None if it states none.

    `first`: the first character of the text at which an answer may be.
    """
    start = max(0, first - _MOST_BEFORE)
    region, first = folded(text[start : first + _FARTHEST]), first - start
    dropped: set[str | None] = set()
    for statement in _statements(region):
        if statement.lastgroup in dropped:
            continue
        for pieces in _values(region, statement):
            if pieces[0].start < first:
                continue
            for answer in wanted:
                if place := whole_at(region, pieces, 0, answer, is_stated=True):
                    return place[0] + start, place[1] + start
            if pieces[0].text in _CHOICES:
                # Further letters may be the answers of other questions.
                wanted = [of for of in wanted if of[0] not in _CHOICES or len(of) > 1]
        if _states_other(wanted, region, statement, first):
            dropped.add(statement.lastgroup)  # further ones may be those of other questions
    return None


def _statements(text: str) -> Iterator[re.Match[str]]:
    """Yield what `_STATEMENT` finds, in order, but no "wrong answer"."""
    low = lowered(text)
    places: set[int] = set()
    for beginning in _BEGINNINGS:
        at = low.find(beginning)
        while at >= 0:
            places.add(at)
            at = low.find(beginning, at + 1)
    stop = 0
    for at in sorted(places):
        if at >= stop and (statement := _STATEMENT.match(text, at)):
            stop = statement.end()
            if not is_wrong_before(text, at):
                yield statement


def states_other(wanted: Sequence[Sequence[str]], text: str) -> bool:
    """Whether a text states another value of the same sort as the answers.

    It does not state one of these.
    """
    is_letter = any(len(answer) == 1 and answer[0] in _CHOICES for answer in wanted)
    if is_letter and any(stated_labels(text, is_number=False)):
        return True
    return any(
        _states_other(wanted, text, statement, 0) for statement in _statements(text)
    )


def stated_labels(text: str, *, is_number: bool) -> Iterator[str]:
    """Yield the letters, or numbers, of choices that a text states to be the answer."""
    for statement in _statements(text):
        label = next(_values(text, statement), None)
        if statement.lastgroup != "equal" and label:
            if label[0].text.isdigit() if is_number else _is_label(text, label[0]):
                yield label[0].text.upper()


def _is_label(text: str, piece: Piece) -> bool:
    return piece.text in _CHOICES or bool(_SMALL_LABEL.match(text, piece.start))


def _states_other(
    wanted: Sequence[Sequence[str]], text: str, statement: re.Match[str], first: int
) -> bool:
    """Whether a statement of a question's answer, and not of a step, has another such value."""
    if statement.lastgroup not in ("word", "mark"):
        return False
    numbers = [number for of in wanted if (number := of["-" in of[:1] :][0])[0].isdecimal()]
    other = (_NUMBER if numbers else _SHORT_LINE).match(text, statement.end())
    if not other or other.start("value") < first:
        return False
    value = other["value"].replace(",", "")
    if not numbers:
        is_label = value.upper() in _CHOICES or (value.isdecimal() and len(value) < 3)
        return len(wanted) > 0 and not is_label
    return all(float(value) != float(number) for number in numbers)


def _values(text: str, statement: re.Match[str]) -> Iterator[list[Piece]]:
    """Yield the pieces of text at each place where a statement may name the answer."""
    first = reach = statement.end()
    is_direct = statement.lastgroup != "word"
    if not is_direct:
        reach = end_of_statement(text, first)
    pieces = pieces_of(text, first, first + _MOST_BEFORE + 2 * LONGEST)
    has_number = False
    for at, piece in enumerate(pieces):
        is_next = not has_number and _DIRECTLY.fullmatch(text, reach, piece.start)
        is_farther = piece.start > reach and not is_next
        has_number = has_number or piece.text.isdecimal()
        if is_farther or piece.start > first + _MOST_BEFORE or (is_direct and at):
            break
        is_number = piece.text[0].isdigit() and text[first : piece.start].isspace()
        if is_number and not is_direct and _BEFORE_VALUE.match(text, piece.stop):
            continue  # "Answer 18: 43"
        if piece.text not in _CHOICES or _is_stated_letter(text, statement, piece.start):
            yield pieces[at:]


def _is_stated_letter(text: str, statement: re.Match[str], at: int) -> bool:
    """Whether a letter is no label of a choice, no word, and no variable."""
    if statement.lastgroup == "equal" or _WORD_OF_LETTER.match(text, at):
        return False
    if not _LABEL.match(text, at):
        return True
    following = chr(ord(text[at]) + 1)
    next_one = _STATEMENT.search(text, at, at + _MOST_OF_CHOICE)
    choices = text[at : next_one.start() if next_one else at + _MOST_OF_CHOICE]
    is_list = re.search(rf"\b{following}[.):]", choices) is not None
    return not is_list and not _BEFORE_LABEL.search(text, statement.end(), at)


# Index --------------------------------------------------------------------------------------------


def short_answers_of(table: pa.Table, item_of: Integers, is_wrong: Flags) -> dict[str, Array]:
    """Return the short right answers of a benchmark's items, in order of the items.

    Of answers that are not short, only formulas. `answer_sort`: of each record.
    """
    import pyarrow.compute as pc

    answers = table["answer"]
    length = pc.utf8_length(answers).fill_null(_LONGEST_FORMULA + 1).to_numpy()
    may_be_formula = pc.match_substring_regex(answers, _FORMULA).fill_null(False).to_numpy()
    is_formula = may_be_formula & (length > LONGEST) & (length <= _LONGEST_FORMULA)
    sort = np.where(length <= LONGEST, SHORT, np.where(is_formula, FORMULA, 0))
    rows = np.flatnonzero((sort > 0) & (is_wrong == 0))
    rows = rows[np.argsort(item_of[rows], kind="stable")]
    short = [folded(answer.strip()) for answer in answers.take(rows).to_pylist()]
    texts = [_LETTER_OF_CHOICE.sub("", answer, count=1).encode() for answer in short]
    return {
        "answer_sort": sort.astype(np.uint8),
        "answer_items": item_of[rows],
        "answer_sizes": np.array([*map(len, texts)], np.int64),
        "answer_bytes": np.frombuffer(b"".join(texts), np.uint8),
    }


class ShortAnswers:
    """The short right answers of all items, by the item's number."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self._items, self._bytes = arrays["answer_items"], arrays["answer_bytes"]
        self._edges = arrays["answer_edges"]

    def of(self, item: int) -> list[str]:
        first, stop = np.searchsorted(self._items, [item, item + 1]).tolist()
        edges = self._edges[first : stop + 1].tolist()
        return [
            self._bytes[edges[at] : edges[at + 1]].tobytes().decode() for at in range(stop - first)
        ]
