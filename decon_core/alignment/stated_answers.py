"""A short answer that a text states some way behind the question, as after a worked solution.

There, a number may stand by chance. It counts if the text says that it is the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from decon_core.kernels.arrays import Flags, Integers
from decon_core.text.canonical import UNSPACED

if TYPE_CHECKING:
    import pyarrow as pa

    from decon_core.storage.tables import Array

_FARTHEST = 3_000  # characters behind the question
_LONGEST = 40  # characters of an answer that are compared; longer ones have n-grams
_MOST_BEFORE = 60  # characters between a word such as "answer" and the answer
_UNSPACED = "".join(f"{chr(first)}-{chr(last)}" for first, last in UNSPACED)
_SIGNS = r"\s$*_`:'\"(){}\[\]\\“”‘’「」『』【】《》"
# Full-width signs, digits and letters, and the minus sign, to those of ASCII.
_FOLDED = {0xFF01 + at: 0x21 + at for at in range(94)} | {ord("−"): "-"}
_PIECE = re.compile(
    rf"(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?|[{_UNSPACED}]|[^\W\d_{_UNSPACED}]+"
    rf"|[^\w{_SIGNS},;.!?。，、；]"
)
_STATEMENT = re.compile(
    r"(?P<direct>####|\\f?box(?:ed)?\b|(?<![!<>=≠~])[=≈](?!=)"
    rf"|[选選][择擇]?(?=[{_SIGNS}:]*[A-H](?![A-Za-z])))"
    r"|\b(?:answer|correct (?:option|choice)|antwort|réponse|respuesta|risposta|resposta|antwoord"
    r"|odpowiedź|cevap|jawaban|đáp án|ответ|відповідь|الجواب|الإجابة)\b"
    r"|答案|答え|答:|解答|正解|정답|답|คำตอบ|उत्तर",
    re.IGNORECASE,
)
_BETWEEN = re.compile(
    rf"(?:(?!\b(?:not|nicht|pas|no|non|не)\b|不|非)[^.。\n]){{0,30}}?[{_SIGNS}]*", re.IGNORECASE
)
_DIRECTLY = re.compile(rf"[{_SIGNS}]*")
# What follows an answer that is only a part of another number or word, or of a calculation.
_AFTER = re.compile(
    rf"[^\W{_UNSPACED}]|[.,/:]\d|\s*[+/^×÷√]|\*{{1,2}}[\w(]|\s+\*\s|\s*-\s*\d"
    r"|\s*\\(?:sqrt|d?frac|cdot|times|pi)\b"
)
_WITHIN_UNSPACED = re.compile(rf"[{_UNSPACED}]{{2}}")
_CHOICES = frozenset("ABCDEFGH")
_LETTER_OF_CHOICE = re.compile(r"^(?:\([A-Z]\)|[A-Z][.):])\s*(?=\S)")


class _Piece(NamedTuple):
    """A word, number or sign of a text, and its characters."""

    text: str
    start: int
    stop: int


def stated_answer(answers: Sequence[str], text: str, first: int) -> tuple[int, int] | None:
    """Return the characters at which a text states one of the answers; None if it states none.

    `first`: the first character of the text at which an answer may be.
    """
    wanted = [of for answer in answers if (of := [piece.text for piece in _pieces(answer)])]
    if not wanted:
        return None
    start = max(0, first - _MOST_BEFORE)
    region = text[start : first + _FARTHEST]
    if not region.isascii():
        region = region.translate(_FOLDED)
    for pieces in _stated_pieces(region):
        if pieces[0].start + start < first:
            continue
        for answer in wanted:
            stop = pieces[min(len(pieces), len(answer)) - 1].stop
            if _are_equal(pieces[: len(answer)], answer) and not _is_cut(region, stop):
                return pieces[0].start + start, stop + start
        if pieces[0].text in _CHOICES:
            # Further letters may be the answers of other questions.
            wanted = [answer for answer in wanted if answer[0] not in _CHOICES or len(answer) > 1]
    return None


def _stated_pieces(text: str) -> Iterator[list[_Piece]]:
    """Yield the pieces of text at each place that may state an answer."""
    for statement in _STATEMENT.finditer(text):
        first = statement.end()
        is_direct = statement["direct"] is not None
        between = _DIRECTLY if is_direct else _BETWEEN
        pieces = _pieces(text, first, first + _MOST_BEFORE + 2 * _LONGEST)
        for at, piece in enumerate(pieces):
            if piece.start > first + _MOST_BEFORE or (is_direct and at):
                break
            is_negative = text[piece.start - 1] == "-" and piece.text[0].isdigit()
            if not is_negative and between.fullmatch(text, first, piece.start):
                yield pieces[at:]


def _pieces(text: str, start: int = 0, stop: int = _FARTHEST) -> list[_Piece]:
    return [
        _Piece(piece[0].replace(",", ""), *piece.span())
        for piece in _PIECE.finditer(text, start, stop)
    ]


def _are_equal(found: Sequence[_Piece], answer: Sequence[str]) -> bool:
    """Whether two texts are equal except for case; a letter alone, such as "A", needs its case."""
    if len(found) < len(answer):
        return False
    if len(answer) == 1 and len(answer[0]) == 1:
        return found[0].text == answer[0]
    return all(
        piece.text.lower() == word.lower() for piece, word in zip(found, answer, strict=True)
    )


def _is_cut(text: str, stop: int) -> bool:
    """Whether the text that ends at `stop` is a part of something longer."""
    return bool(_AFTER.match(text, stop) or _WITHIN_UNSPACED.fullmatch(text, stop - 1, stop + 1))


# Index --------------------------------------------------------------------------------------------


def short_answers_of(table: pa.Table, item_of: Integers, is_wrong: Flags) -> dict[str, Array]:
    """Return the short right answers of a benchmark's items, in order of the items."""
    import pyarrow.compute as pc

    answers = table["answer"]
    is_short = pc.less_equal(pc.utf8_length(answers), _LONGEST).fill_null(False).to_numpy()
    rows = np.flatnonzero(is_short & (is_wrong == 0))
    rows = rows[np.argsort(item_of[rows], kind="stable")]
    short = [answer.strip().translate(_FOLDED) for answer in answers.take(rows).to_pylist()]
    texts = [_LETTER_OF_CHOICE.sub("", answer, count=1).encode() for answer in short]
    return {
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
