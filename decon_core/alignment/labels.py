"""The labels of choices, in the alphabets in which exams write them: "(A)", "②", "乙、", "в)".

A label is named by its position in its alphabet: "A" to "J", or "1", "2" and so on.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from decon_core.text.characters import MARKS

LETTERS = "ABCDEFGHIJ"
_CIRCLED = "ⒶⒷⒸⒹⒺⒻⒼⒽⒾⒿ ⓐⓑⓒⓓⓔⓕⓖⓗⓘⓙ ㉠㉡㉢㉣㉤㉥㉦㉧㉨㉩ ㉮㉯㉰㉱㉲㉳㉴㉵㉶㉷"
_CIRCLED_NUMBERS = "①②③④⑤⑥⑦⑧⑨⑩ ⑴⑵⑶⑷⑸⑹⑺⑻⑼⑽ ❶❷❸❹❺❻❼❽❾❿"
_NUMBERS = "一二三四五六七八九十 ⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩ"
_UPPER = "АБВГДЕЖЗИК ΑΒΓΔΕΖΗΘΙΚ"
_OTHERS = (
    "甲乙丙丁戊己庚辛壬癸 アイウエオカキクケコ 가나다라마바사아자차 ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊ กขคงจฉชซฌญ"
    " أبجدهوزحطي कखगघङचछजझञ אבגדהוזחטי"
)
_POSITIONS = {
    letter: label
    for labels, alphabets in (
        ([*LETTERS], f"{LETTERS} {LETTERS.lower()} {_CIRCLED} {_UPPER} {_UPPER.lower()} {_OTHERS}"),
        ([*map(str, range(1, 11))], f"{_CIRCLED_NUMBERS} {_NUMBERS}"),
    )
    for alphabet in alphabets.split()
    for letter, label in zip(alphabet, labels, strict=True)
}
_SIGNS = "".join((_CIRCLED + _CIRCLED_NUMBERS).split())  # labels without anything behind them
_BARE = "".join((_UPPER + _NUMBERS + _OTHERS).split())
_LOWER = "".join(_UPPER.lower().split())
# The label of a choice. Not initials or abbreviations: "J. B. Rhine", "B.C."
LABEL = (
    rf"(?:(?=[{_SIGNS}])|(?<![^\s(*\[])(?<!\w\[)(?<![A-Z]\. ))"
    rf"([A-Ja-j{_SIGNS}{_BARE}{_LOWER}]|\d{{1,2}})"
    rf"(?:\)|(?<![{_LOWER}])\.(?!\w)|(?<=[A-J{_BARE}])\.(?!\w\.)|(?<=\[[A-Ja-j{_BARE}])\]"
    rf"|(?<=[{_BARE}])、|(?<=[{_SIGNS}]))"
)
_LABEL = re.compile(LABEL)
_MOST_OF_LABEL = 4  # characters, with what tells initials from labels
_PAIRS = frozenset((a, b) for of in (LETTERS, "123456789") for a, b in pairwise(of))
# A letter that is a word or the beginning of one: "a matter", "I think", "В это время".
_WORD_BEHIND = re.compile(
    r"\s+(?!(?:because|since|as|and|or|but|is|for|which|est|es|ist|weil|perché|porque)\b|s[ıi]kk)"
    r"(?:(?<=[A-Za-z]\s)[a-z]|(?<=[А-Яа-я]\s)[а-я])"
)
# What may stand beside a label in scripts without spaces: "答えはイです".
_COPULA_BEFORE = re.compile(r"(?<!\w)|(?<=[是为為は即选選擇择])|(?<=คือ)")
_COPULA = "です|でし|だ|であ|입니|이다|이에|예요|번|项|項|号"
_GOES_ON = re.compile(rf"(?!{_COPULA})[\w{MARKS}]")
_LATIN_BEFORE = re.compile(r"(?<![\dA-Za-zÀ-ɏ])")
_LATIN_GOES_ON = re.compile(r"[\dA-Za-zÀ-ɏ]|\.\s?[A-Z]\.")
_LOWER_ALONE = re.compile(r"[)\].*\n]|$")


class Label(NamedTuple):
    """The label of a choice: its name, and its characters with the sign behind it."""

    text: str
    start: int
    stop: int


def label_named(text: str) -> str:
    """Return the name of a letter or number that may be a label, or nothing."""
    return str(int(text)) if text.isdecimal() else _POSITIONS.get(text, "")


def labels_of(text: str) -> list[Label]:
    return [
        Label(label_named(label[1]), label.start(1), label.end()) for label in _LABEL.finditer(text)
    ]


def is_label_at(text: str, at: int) -> bool:
    return _LABEL.match(text[at : at + _MOST_OF_LABEL]) is not None


def begins_list(text: str, at: int, most: int) -> bool:
    """Whether a label stands at a place, and the next one of its alphabet is the next label."""
    labels = labels_of(text[at : at + most])[:2] if is_label_at(text, at) else ()
    return len(labels) == 2 and is_pair(*labels)


def is_pair(label: Label, other: Label) -> bool:
    """Whether two labels follow each other in their alphabet."""
    return (label.text, other.text) in _PAIRS


def stands_alone(text: str, start: int, stop: int) -> bool:
    """Whether a letter or number within a sentence is a label, and no word or part of one."""
    is_latin = text[start].isascii()
    before, goes_on = (_LATIN_BEFORE, _LATIN_GOES_ON) if is_latin else (_COPULA_BEFORE, _GOES_ON)
    if text[start].islower() and not _LOWER_ALONE.match(text, stop):
        return False
    is_word = goes_on.match(text, stop) or _WORD_BEHIND.match(text, stop)
    return before.match(text, start) is not None and not is_word
