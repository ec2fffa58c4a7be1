"""A short answer that a text states some way behind the question, as after a worked solution.

There, a number may stand by chance. It counts if the text says that it is the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import normalize

import numpy as np

from decon_core.alignment.measures import names_something
from decon_core.kernels.arrays import Flags, Integers
from decon_core.text.canonical import UNSPACED
from decon_core.text.numbers import lowered

if TYPE_CHECKING:
    import pyarrow as pa

    from decon_core.storage.tables import Array

_FARTHEST = 3_000  # characters behind the question
LONGEST = 40  # characters of an answer that are compared; longer ones have n-grams
_LONGEST_FORMULA = 200  # characters of an answer whose signs are compared, too
_FORMULA = r"\d\s*[-+*/^=<>≤≥×]|[-+*/^=<>≤≥×]\s*\d|[)(a-z][=^<>+][a-z(]|\\"
SHORT, FORMULA = 1, 2  # sorts of answers
_MOST_OF_WORD = 15  # characters of a word such as "incorrect" and the space behind it
_MOST_OF_CHOICE = 200  # characters of a choice, behind which the next one is
_MOST_BEFORE = 60  # characters between a word such as "answer" and the answer
_UNSPACED = "".join(f"{chr(first)}-{chr(last)}" for first, last in UNSPACED)
_SIGNS = r"\s$*_`:'\"(){}\[\]\\“”‘’「」『』【】《》"
# Full-width signs, digits and letters, and signs like a minus, to those of ASCII.
_FOLDED = {0xFF01 + at: 0x21 + at for at in range(94)} | dict.fromkeys(map(ord, "−‐‑–"), "-")
_MAY_FOLD = re.compile("[！-～−‐‑–]")
_PIECE = re.compile(
    rf"(?<!\d)0,\d+(?!,?\d)|(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?|(?<![\w)])\.\d+|[{_UNSPACED}]|[^\W\d_{_UNSPACED}]+"
    # Hyphens within words are no signs.
    rf"|(?!(?<=[^\W\d_]{{2}})-\s*[^\W\d_]{{2}})[^\w{_SIGNS},;.!?。，、；]"
)
_DIRECT = (
    r"####|\\f?box(?:ed)?\b|(?P<equal>(?<![!<>=≠~])[=≈](?!=)"
    r"(?!(?<=(?-i:[a-z_]{2})=)['\"]?\d))"  # not as in width=18
    rf"|[选選][择擇]?(?=[{_SIGNS}:]*[A-J](?![A-Za-z]))"
)
_WORDS = (
    "answer|correct option|correct choice|antwort|réponse|respuesta|risposta|resposta|antwoord"
    "|odpowiedź|cevap|jawaban|đáp án|ответ|відповідь|الجواب|الإجابة"
)
_UNSPACED_WORDS = "答案|答え|答:|解答|正解|정답|답|คำตอบ|उत्तर"
_STATEMENT = re.compile(
    rf"(?P<direct>{_DIRECT})|\b(?:{_WORDS}|correct(?=:)|ans(?=[.:]))\b|{_UNSPACED_WORDS}",
    re.IGNORECASE,
)
# Each statement begins with one of these. Searching them first takes a tenth of the time.
_BEGINNINGS = f"####|\\box|\\fbox|=|≈|选|選|{_WORDS}|correct:|ans|{_UNSPACED_WORDS}".split("|")
_NOT = (
    r"\b(?:not|cannot|never|wrong|incorrect|nicht|kein|falsch|pas|faux|fausse|no|incorrect[oa]|non"
    r"|sbagliat[oa]|não|niet|fout|nie|değil|yanlış|bukan|salah|không|sai|не|неверн\w+|неправ\w+"
    r"|ليس|ليست|خطأ)\b|n['’]t\b|不|非|错|錯|間違|誤り|틀린|오답|ไม่|ผิด|नहीं|गलत"
)
_BETWEEN = re.compile(rf"(?:(?!{_NOT})[^.。\n]){{0,30}}", re.IGNORECASE)
_WRONG_BEFORE = re.compile(
    r"(?:\b(?:wrong|incorrect|false|falsche|mauvaise)\s*|错误|錯誤|間違った\s*|틀린\s*)$",
    re.IGNORECASE,
)
# What says behind a value that it is not the answer: "18 is wrong".
_IS = (
    r"(?:\b(?:is|was|are|be|isn|wasn|cannot|can|ist|war|n['’]est|est|no|es|è|é|não|jest|adalah|là)"
    r"\b[^\S\n]*)"
)
_WRONG_BEHIND = re.compile(
    rf"(?:(?!\n)[{_SIGNS}])*(?:{_IS}+(?:['’]t\b|\b(?:not|never|nicht|pas|niet|nie|bukan|không)\b)"
    rf"|\b(?:no es|non è|não é)\b"
    rf"|{_IS}*\b(?:wrong|incorrect|false|falsch|faux|fausse|incorrect[oa]|fals[oa]|errad[oa]|fout"
    r"|sbagliat[oa]|onjuist|błęd\w+|değil|yanlış|salah|sai|не|неверн\w+|неправ\w+|ليس|ليست|خطأ"
    r")\b|नहीं|गलत"
    r"|[^\W\d]{0,4}(?:不对|不對|错|錯|有误|有誤|ではな|ではあり|じゃな|間違|誤り|ไม่ใช่|ผิด)"
    r"|[가-힣]{0,3}[^\S\n]*(?:아니|아닙|아닌|틀리|틀렸|틀린|오답))",
    re.IGNORECASE,
)
# Another value that a text states, as a number or in a short line.
_NUMBER = re.compile(
    rf"[{_SIGNS}]*(?:(?:is|was|are|equals|therefore|thus|ist|est|es|è|é|jest|adalah|là|[=是为為は은는])"
    rf"[{_SIGNS}]*){{0,2}}(?P<value>-?\d[\d,]*(?:\.\d+)?)(?:\s*[^\W\d_]+\b){{0,3}}"
    rf"[{_SIGNS}]*(?:[.,;。!?，！？]|(?<=\n)|$)",
    re.IGNORECASE,
)
_SHORT_LINE = re.compile(
    rf"(?:(?<=:)|[^\w\n]{{0,3}}?:)[{_SIGNS}]*(?!(?:let|we|i|first|step)\b)(?P<value>[^\W_]+)[^\n]{{0,40}}(?:\n|$)",
    re.IGNORECASE,
)
_BEFORE_VALUE = re.compile(r"[:)]\s*\S")
_DIRECTLY = re.compile(rf"[{_SIGNS}]*")
# What follows an answer that is only a part of another number or word, or of a calculation.
_AFTER = re.compile(
    rf"(?<=\d)\s\d{{3}}(?!\d)|(?<=\d)[万萬亿億千百만억천백십조]|(?!(?<=\d)[가-힣])[^\W{_UNSPACED}]|[.,/:]\d|\s*[+/^×÷√]|\*{{1,2}}[\w(]|\s+\*\s|\s*-\s*\d"
    r"|\s*\\(?:sqrt|d?frac|cdot|times|pi)\b"
)
_PART_BEFORE = re.compile(r"(?:\w\*|\d|(?:^|\W)[.]|[-+/^×÷·])[\\({$\[]*$")
_DIGITS_BEFORE = re.compile(r"\d[.,: ][\\({$\[]*$")
_MOST_OF_NAME = 20  # characters before a number
_WITHIN_UNSPACED = re.compile(rf"[{_UNSPACED}]{{2}}")
_CHOICES = frozenset("ABCDEFGHIJ")
_SMALL_LABEL = re.compile(r"[a-j][*_]*(?:[.):]|\s*(?:\n|$))")
_LABEL = re.compile(r"\b[A-J][.):][^\S\n]*[^\s*]")
# Between a word such as "answer" and a letter that is the label of a choice.
_BEFORE_LABEL = re.compile(r"\n|\b[A-J][.):]|\b(?:choice|option)s\b", re.IGNORECASE)
_WORD_OF_LETTER = re.compile(r"[AI]\s+(?!(?:because|since|as|and|or|but|is|for|which)\b)[a-z]")
_LETTER_OF_CHOICE = re.compile(r"^(?:\([A-Z]\)|[A-Z][.):])\s*(?=\S)")


class Piece(NamedTuple):
    """A word, number or sign of a text, and its characters."""

    text: str
    start: int
    stop: int


def stated_answer(answers: Sequence[str], text: str, first: int) -> tuple[int, int] | None:
    """Return the characters at which a text states one of the answers; None if it states none.

    `first`: the first character of the text at which an answer may be.
    """
    wanted = [of for answer in answers if (of := [piece.text for piece in pieces_of(answer)])]
    if not wanted:
        return None
    start = max(0, first - _MOST_BEFORE)
    region = text[start : first + _FARTHEST]
    region, first = folded(region), first - start
    dropped: set[str] = set()
    for statement in _statements(region):
        kind = _kind_of(statement)
        if kind in dropped or _is_called_wrong(region, statement.start()):
            continue
        for pieces in _stated_pieces(region, statement):
            if pieces[0].start < first:
                continue
            for answer in wanted:
                stop = pieces[min(len(pieces), len(answer)) - 1].stop
                if not are_equal(pieces[: len(answer)], answer) or is_cut(region, stop):
                    continue
                if not (has_maths(answer) and is_part_before(region, pieces[0].start)):
                    return pieces[0].start + start, stop + start
            if pieces[0].text in _CHOICES:
                # Further letters may be the answers of other questions.
                wanted = [of for of in wanted if of[0] not in _CHOICES or len(of) > 1]
        if kind and _states_other(wanted, region, statement.end(), first):
            dropped.add(kind)  # further ones may be those of other questions
    return None


def folded(text: str) -> str:
    if text.isascii() or not _MAY_FOLD.search(text):
        return text
    return text.translate(_FOLDED)  # which is slow


def _statements(text: str) -> Iterator[re.Match[str]]:
    """Yield what `_STATEMENT` finds, in order."""
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
            yield statement
            stop = statement.end()


def _kind_of(statement: re.Match[str]) -> str:
    """Return what names an answer if a text does so once for each question, and not for steps."""
    direct = statement["direct"]
    return "word" if direct is None else direct if direct == "####" else ""


def _is_called_wrong(text: str, at: int) -> bool:
    return _WRONG_BEFORE.search(text, max(0, at - _MOST_OF_WORD), at) is not None


def states_other(wanted: Sequence[Sequence[str]], text: str) -> bool:
    """Whether a text states another value of the same sort as the answers.

    It does not state one of these.
    """
    is_letter = any(len(answer) == 1 and answer[0] in _CHOICES for answer in wanted)
    if is_letter and any(stated_labels(text, 0, is_number=False)):
        return True
    return any(
        _kind_of(statement) and _states_other(wanted, text, statement.end(), 0)
        for statement in _statements(text)
        if not _is_called_wrong(text, statement.start())
    )


def stated_labels(text: str, first: int, *, is_number: bool) -> Iterator[str]:
    """Yield the letters, or numbers, of choices that a text states to be the answer."""
    for statement in _STATEMENT.finditer(text, first):
        if statement["equal"] is None and not _is_called_wrong(text, statement.start()):
            label = next(_stated_pieces(text, statement), None)
            if label and (label[0].text.isdigit() if is_number else _is_label(text, label[0])):
                yield label[0].text.upper()


def _is_label(text: str, piece: Piece) -> bool:
    return piece.text in _CHOICES or bool(_SMALL_LABEL.match(text, piece.start))


def _states_other(wanted: Sequence[Sequence[str]], text: str, at: int, first: int) -> bool:
    """Whether a text states another value, of the same sort as the answers, behind a place."""
    first_of = (answer["-" in answer[:1] :] for answer in wanted)
    numbers = [of[0] for of in first_of if of and of[0][0].isdecimal()]
    other = (_NUMBER if numbers else _SHORT_LINE).match(text, at)
    if not other or other.start("value") < first:
        return False
    value = other["value"].replace(",", "")
    if not numbers:
        is_label = value.upper() in _CHOICES or (value.isdecimal() and len(value) < 3)
        return len(wanted) > 0 and not is_label
    return all(float(value) != float(number) for number in numbers)


def _stated_pieces(text: str, statement: re.Match[str]) -> Iterator[list[Piece]]:
    """Yield the pieces of text at each place where a statement may name the answer."""
    first = reach = statement.end()
    is_direct = statement["direct"] is not None
    if not is_direct and (between := _BETWEEN.match(text, first)):
        reach = between.end()
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
    if statement["equal"] is not None or _WORD_OF_LETTER.match(text, at):
        return False
    if not _LABEL.match(text, at):
        return True
    following = chr(ord(text[at]) + 1)
    next_one = _STATEMENT.search(text, at, at + _MOST_OF_CHOICE)
    choices = text[at : next_one.start() if next_one else at + _MOST_OF_CHOICE]
    is_list = re.search(rf"\b{following}[.):]", choices) is not None
    return not is_list and not _BEFORE_LABEL.search(text, statement.end(), at)


def pieces_of(text: str, start: int = 0, stop: int = _FARTHEST) -> list[Piece]:
    return [
        Piece(_value_of(piece[0]), *piece.span()) for piece in _PIECE.finditer(text, start, stop)
    ]


def _value_of(piece: str) -> str:
    """Return a number as it is written without commas and needless zeros, or a word unchanged."""
    if not piece[-1].isdecimal():
        return piece
    number = piece.replace(",", "." if piece.startswith("0,") else "")
    whole, point, rest = number.partition(".")
    rest = rest.rstrip("0")
    return f"{whole or '0'}.{rest}" if point and rest else whole


def are_equal(found: Sequence[Piece], answer: Sequence[str]) -> bool:
    """Whether two texts are equal except for case; a letter alone, such as "A", needs its case."""
    if len(found) < len(answer):
        return False
    if len(answer) == 1 and len(answer[0]) == 1:
        return found[0].text == answer[0]
    return all(
        _spelled(piece.text) == _spelled(word) for piece, word in zip(found, answer, strict=True)
    )


def _spelled(piece: str) -> str:
    return piece.lower() if piece.isascii() else normalize("NFKC", piece).casefold()


def is_cut(text: str, stop: int) -> bool:
    """Whether the text that ends at `stop` is a part of something longer, or said to be wrong."""
    is_within = _WITHIN_UNSPACED.fullmatch(text, stop - 1, stop + 1) is not None
    return is_within or is_part_or_wrong(text, stop)


def has_maths(answer: Sequence[str]) -> bool:
    """Whether an answer has a number or a sign, or is a variable."""
    return len(answer) == 1 == len(answer[0]) or not all(word.isalpha() for word in answer)


def is_part_before(text: str, start: int) -> bool:
    """Whether a number or formula that begins at `start` is a part, or the name of something."""
    before = text[max(0, start - _MOST_OF_NAME) : start]
    if _PART_BEFORE.search(before):
        return True
    is_word = text[start].isalpha() and not before.endswith("\\")
    return not is_word and bool(_DIGITS_BEFORE.search(before) or names_something(text, start))


def is_part_or_wrong(text: str, stop: int) -> bool:
    return bool(_AFTER.match(text, stop) or _WRONG_BEHIND.match(text, stop))


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
