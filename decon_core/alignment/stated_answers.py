"""A short answer that a text states some way behind the question, as after a worked solution.

There, a number may stand by chance. It counts if the text says that it is the answer.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from decon_core.alignment.denials import IS, end_of_statement, is_wrong_before
from decon_core.alignment.labels import LETTERS, begins_list, is_label_at, label_named, stands_alone
from decon_core.alignment.pieces import (
    IGNORED,
    Piece,
    ends_value,
    folded,
    is_within_unspaced,
    pieces_of,
    plain,
    whole_at,
)
from decon_core.kernels.arrays import Flags, Integers
from decon_core.text.characters import MARKS
from decon_core.text.numbers import lowered
from decon_core.text.plain_letters import with_plain_letters

if TYPE_CHECKING:
    import pyarrow as pa

    from decon_core.storage.tables import Array

_FARTHEST = 3_000  # characters behind the question
LONGEST = 40  # characters of an answer that are compared; longer ones have n-grams
_LONGEST_FORMULA = 200  # characters of an answer whose signs are compared, too
_FORMULA = r"\d\s*[-+*/^=<>≤≥×]|[-+*/^=<>≤≥×]\s*\d|[)(a-z][=^<>+][a-z(]|\\"
SHORT, FORMULA = 1, 2  # sorts of answers
_MOST_OF_CHOICE, _MOST_OF_LINES = 200, 2_000  # characters of a choice, before the next one
# What names an answer, in nineteen languages.
_WORDS = (
    "answer|correct option|correct choice|antwort|réponse|respuesta|risposta|resposta|antwoord"
    "|odpowiedź|cevap|jawaban|đáp án|ответ|відповідь|الجواب|الإجابة"
    "|right option|right choice|правильный вариант|верный вариант|doğru seçenek"
)
_CHOOSE = "choose|select|pick|chọn|solution|lösung|wähle|richtig ist"
_UNSPACED_WORDS = "答案|答え|答:|解答|正解|정답|답|คำตอบ|उत्तर|सही विकल्प"
# Also as they are in texts with plain letters.
_WORDS, _UNSPACED_WORDS, _CHOOSE = (
    f"{words}|{plain(words)}" for words in (_WORDS, _UNSPACED_WORDS, _CHOOSE)
)
_STATEMENT = re.compile(
    rf"(?P<word>\b(?:{_WORDS}|correct(?=:)|ans(?=[.:]))\b|{_UNSPACED_WORDS})|(?P<mark>####)"
    rf"|(?P<box>\\f?box(?:ed)?|[选選][择擇]?(?=[{IGNORED}:]*[A-J])"
    rf"|(?:\b(?:{_CHOOSE})\b|ตอบ|ข้อที่ถูกคือ)(?=[{IGNORED}:]*(?-i:[A-J])\b(?!\.?\s[a-z]))"
    rf"|\b(?:key|gold|label|target)(?=\W?\s?:[{IGNORED}]*(?-i:[A-J])\b(?!\.?\s[a-z]))"
    r"|\b(?:option|choice)(?=\s\W?(?-i:[A-J])\W?\s(?:is|was)\s(?:the\s)?(?:correct|right|best)\b))"
    # Not as in width=18.
    r"|(?P<equal>(?<![!<>=≠~])[=≈](?!=)(?!(?<=(?-i:[a-z_]{2})=)['\"]?\d))",
    re.IGNORECASE,
)
# Each statement begins with one of these. Searching them first takes a tenth of the time.
_BEGINNINGS = (
    f"####|\\box|\\fbox|=|≈|选|選|{_WORDS}|correct:|ans|{_UNSPACED_WORDS}|{_CHOOSE}|ตอบ|ข้อที่ถูกคือ"
    "|key|gold|label|target|option|choice"
).split("|")
# Another value that a text states, as a number or in a short line.
_NUMBER = re.compile(
    rf"[{IGNORED}]*(?:(?:\b{IS}|equals|therefore|thus|[=是為为は은는])[{IGNORED}]*){{0,2}}"
    rf"(?P<value>-?\d[\d,]*(?:\.\d+)?)(?:\s*(?:[^\W\d_][{MARKS}]*)+(?!\w)){{0,3}}[{IGNORED}]*(?:[.,;。!?，！？]|(?<=\n)|$)",
    re.IGNORECASE,
)
_SHORT_LINE = re.compile(
    rf"(?:(?<=:)|[^\w\n]{{0,3}}?:)[{IGNORED}]*(?!(?:let|we|i|first|step)\b)(?P<value>[^\W_]+)"
    r"[^\n]{0,40}(?:\n|$)",
    re.IGNORECASE,
)
_CHOSEN = re.compile(
    rf"(?:\b(?:{_CHOOSE})\b|[故应應][选選]|ตอบ|ข้อที่ถูกคือ)[{IGNORED}:]*", re.IGNORECASE
)
# A letter that is all of a line, or of a value, or is said to be correct.
_LABEL_ALONE = re.compile(
    r"(?:[\n:=>|]|\s[-–]|\b(?:is|be)\s|['’]s\s)[^\S\n]*(?:(?:Option|Choice)\s)?[*_$(\[\"']*"
    r"(?P<last>[A-J])(?:[*_$)\]}.]*(?=\s*(?:\n|$))|(?=[\"']\s*[,}\]\n]|[\"']$))"
    r"|[\n(][^\S\n]*(?P<correct>[A-J])\W?\s(?:is|was)\s(?:the\s)?(?:correct|right|best)\b"
)
# The number of a question at the beginning of its line, of which a few words may be changed.
_QUESTION_NUMBER = re.compile(
    r"(?:^|\n)[^\w\n]{0,5}(?:[a-z]{1,8}\.?\s?|第)?(\d{1,3})题?[^\w\n]{1,5}(?:\w[^\n]{0,20})?$",
    re.IGNORECASE,
)
_MOST_OF_NUMBER = 40  # characters
# The heading of a list of answers, and what stands behind the number of an entry.
_LISTS = (
    "answers|answer key|key|solutions|lösungen|réponses|respuestas|risposte|respostas|ответы"
    "|答案|解答|정답"
)
_ENTRY = (
    r"(?:(?<![\w.,-])|(?<=\b[AaQq第])){0}题?\s?[.):、|]"  # "1. 387", "A1: 387", "| 1 | 387 |"
    r"|^{0}(?=[^\S\n])"  # "1 387"
)
_ANSWER_LIST = re.compile(
    rf"\n[^\w\n]{{0,9}}(?:\w{{1,20}}?\s?)?(?:{_LISTS})"
    r"(?:[^\w\n]{0,9}(?=\n)|\W{0,9}?(?=\d{1,3}\s?[.):、]))",
    re.IGNORECASE,
)
_MOST_LISTS = 8  # behind a question that are looked at
_ENDS_ENTRY = re.compile(
    r"(?:(?<=\d)\s?[^\W\d_]{1,12}[.,;。；]?)?\s*(?:\n|$|(?<=\s)\d{1,3}\s?[.):、])"  # "387 eggs"
)
_BEFORE_VALUE = re.compile(r"[:)]\s*\S")
_DIRECTLY = re.compile(rf"[{IGNORED}]*")
_OF_QUESTION = ("word", "mark")  # a text has one of these for each question
_CHOICES = frozenset(LETTERS)
# Between a word such as "answer" and a letter that is the label of a choice.
_BEFORE_LABEL = re.compile(r"\b[A-J][.):]|\b(?:choice|option)s\b", re.IGNORECASE)
_WORD_OF_LETTER = re.compile(
    r"[AIai]\s+(?!(?:because|since|as|and|or|but|is|for|which)\b|s[ıi]kk)[a-z]"
)
_LETTER_BEFORE = re.compile(r"[\s(*]*[A-J][.):]")
_LETTER_OF_CHOICE = re.compile(r"^(?:\([A-Z]\)|[A-Z][.):])\s*(?=\S)")


def stated_answer(wanted: Sequence[Sequence[str]], text: str, first: int) -> tuple[int, int] | None:
    """Return the characters at which a text states one of the answers from a place on, if any."""
    letters = with_plain_letters(text[first : first + _FARTHEST])
    region = folded(letters.text)
    is_past = False  # whether a further "answer" may be that of another question
    for statement in _statements(region):
        is_of_question = statement.lastgroup in _OF_QUESTION
        if is_past and is_of_question:
            continue
        for pieces in _values(region, statement):
            if _begins_line(region, statement, pieces[0].start):
                continue  # "Select the best answer:\nC. ash"
            for answer in wanted:
                place = whole_at(region, pieces, 0, answer)
                if place and not is_within_unspaced(region, place[1]):
                    start, stop = letters.original(*place)
                    return start + first, stop + first
            if pieces[0].text in _CHOICES:  # the same of further letters
                wanted = [of for of in wanted if of[0] not in _CHOICES or len(of) > 1]
        is_past = is_past or (is_of_question and _is_other(wanted, region, statement.end()))
    return None


def listed_answer(
    wanted: Sequence[Sequence[str]], text: str, start: int, stop: int
) -> tuple[int, int] | None:
    """Return the characters of an answer in a list of answers, behind the number of its question.

    The question is at `start` to `stop`; its number is before it.
    """
    for at in _listed(text, start, stop):
        region = folded(text[at : at + 2 * LONGEST])
        pieces = pieces_of(region)
        for place in filter(None, (whole_at(region, pieces, 0, answer) for answer in wanted)):
            if ends_value(region, place[1]) or _ENDS_ENTRY.match(region, place[1]):
                return at + place[0], at + place[1]
    return None


def beginnings_of_answers(text: str, start: int, stop: int) -> Iterator[int]:
    """Yield where a text may state the answer to the question at `start` to `stop`."""
    stated = (stop + at for at in _beginnings_of_values(text[stop : stop + _FARTHEST]))
    for at in chain(stated, _listed(text, start, stop)):
        yield at
        if letter := _LETTER_BEFORE.match(text, at):
            yield letter.end()


def _listed(text: str, start: int, stop: int) -> Iterator[int]:
    """Yield where lists of answers have a value for the question at `start` to `stop`."""
    number = _QUESTION_NUMBER.search(text, max(0, start - _MOST_OF_NUMBER), start)
    if number:
        entry = re.compile(_ENTRY.format(f"0?{int(number[1])}"), re.MULTILINE)
        lists = _answer_lists(text)
        nearest = bisect_left(lists, stop)
        for first in lists[nearest : nearest + _MOST_LISTS]:
            region = folded(text[first : first + _FARTHEST])
            yield from (first + found.end() for found in entry.finditer(region))


@lru_cache(maxsize=1)
def _answer_lists(text: str) -> list[int]:
    """Return where lists of answers begin; a text may have thousands of questions."""
    return [heading.end() for heading in _ANSWER_LIST.finditer(text)]


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
    """Whether a text states another value of the same sort as the answers, and none of these."""
    is_letter = any(len(of) == 1 and of[0] in _CHOICES for of in wanted)
    if is_letter and any(stated_labels(text, is_number=False)):
        return True
    return any(
        _is_other(wanted, text, statement.end())
        for statement in _statements(text)
        if statement.lastgroup in _OF_QUESTION
    )


def _is_other(wanted: Sequence[Sequence[str]], text: str, at: int) -> bool:
    """Whether a value behind a statement is another one, of the same sort as the answers."""
    values = ["".join(of[: 1 + of[0].count("-")]) for of in wanted]  # "-" and "5" are "-5"
    numbers = [float(number) for number in values if number[-1].isdecimal()]
    other = (_NUMBER if numbers else _SHORT_LINE).match(text, at)
    value = other["value"].replace(",", "") if other else ""
    if numbers:
        return bool(value) and float(value) not in numbers
    is_label = value.upper() in _CHOICES or (value.isdecimal() and len(value) < 3)
    return bool(value and wanted) and not is_label


def stated_labels(text: str, *, is_number: bool, known: Collection[str] = ()) -> Iterator[str]:
    """Yield the letters, or numbers, of choices that a text states to be the answer.

    `known`: the labels in the text; behind further words of a statement, only these count.
    """
    for statement in _statements(text):
        if statement.lastgroup == "equal":
            continue
        for number, (piece, *_) in enumerate(_values(text, statement)):
            label, at = label_named(piece.text), piece.start
            if not label or label.isdigit() != is_number or _is_of_list(text, statement, at):
                continue
            is_word = _WORD_OF_LETTER.match(text, at) or _begins_line(text, statement, at)
            is_first = not number and piece.text.isascii() and not is_word
            if is_first or (label in known and stands_alone(text, at, piece.stop)):
                yield label
                break


def labels_alone(text: str, first: int) -> Iterator[int]:
    """Yield where a letter stands alone behind a name or in a line from a place on: "Output: C"."""
    for letter in _LABEL_ALONE.finditer(text, first):
        yield letter.start(letter.lastgroup or 0)


def stated_choice(
    text: str, choices: Sequence[tuple[str, Sequence[str]]]
) -> tuple[int, int, str] | None:
    """Return the characters at which a text states a choice in full, and the choice's label."""
    longest = max((len(wanted) for _, wanted in choices), default=0)
    for at in _beginnings_of_values(text):
        pieces = pieces_of(text, at, most=longest)
        places = [(label, whole_at(text, pieces, 0, wanted)) for label, wanted in choices]
        ends = [(*of, label) for label, of in places if of and ends_value(text, of[1])]
        if ends:
            return max(ends, key=lambda end: end[1])
    return None


def _beginnings_of_values(text: str) -> Iterator[int]:
    """Yield where the value of a statement may begin, and what stands behind "choose"."""
    for statement in _statements(text):
        if statement.lastgroup in _OF_QUESTION:
            yield from (pieces[0].start for pieces in _values(text, statement))
    for chosen in _CHOSEN.finditer(text):
        yield chosen.end()


def _values(text: str, statement: re.Match[str]) -> Iterator[list[Piece]]:
    """Yield the pieces of text at each place where a statement may name the answer."""
    first = reach = statement.end()
    is_word = statement.lastgroup == "word"
    if is_word:
        reach = end_of_statement(text, first)
    pieces = pieces_of(text, first, reach + 2 * LONGEST)
    has_number = False
    for at, piece in enumerate(pieces):
        is_next = not has_number and _DIRECTLY.fullmatch(text, reach, piece.start)
        if piece.start > reach and not is_next:
            break
        has_number = has_number or piece.text.isdecimal()
        is_name = is_word and piece.text[0].isdigit() and text[first : piece.start].isspace()
        if is_name and _BEFORE_VALUE.match(text, piece.stop):
            continue  # "Answer 18: 43"
        if piece.text not in _CHOICES or _is_stated_letter(text, statement, piece.start):
            yield pieces[at:]


def _is_stated_letter(text: str, statement: re.Match[str], at: int) -> bool:
    """Whether a letter is no variable, no word, and no label in a list of choices."""
    if statement.lastgroup == "equal" or _WORD_OF_LETTER.match(text, at):
        return False
    return not _is_of_list(text, statement, at)


def _is_of_list(text: str, statement: re.Match[str], at: int) -> bool:
    """Whether the label at a place is one of a list of choices, which may be in lines."""
    has_lines = "\n" in text[statement.end() : at]
    if begins_list(text, at, _MOST_OF_LINES if has_lines else _MOST_OF_CHOICE):
        return True
    return is_label_at(text, at) and _BEFORE_LABEL.search(text, statement.end(), at) is not None


def _begins_line(text: str, statement: re.Match[str], at: int) -> bool:
    """Whether the letter at a place begins a line as the label of one of a list of choices."""
    return text[at].isalpha() and "\n" in text[statement.end() : at] and is_label_at(text, at)


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
