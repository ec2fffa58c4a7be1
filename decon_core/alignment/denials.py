"""Where a text says that a value is not the answer, in nineteen languages."""

from __future__ import annotations

import re

# The words with accents also without: texts are compared without them.
_NOT = "not|never|cannot|nicht|kein|pas|niet|nie|bukan|không|khong|no|non|não|nao"
_WRONG = (
    r"wrong|incorrect[oa]?|false|falsche?|faux|fausse|mauvaise|fals[oa]|errad[oa]|fout|sbagliat[oa]"
    r"|onjuist|bł[ęe]d\w+|de[ğg]il|yanl[ıi][şs]|salah|sai|не|неверн\w+|неправ\w+|ليس|ليست|خطأ"
)
IS = r"(?:is|was|are|be|ist|war|n['’]est|est|es|è|é|e|jest|adalah|l[àa])\b"
_UNSPACED = (
    "不[对對]|错|錯|误|誤|間違|ではな|ではあり|じゃな|아니|아닙|아닌|틀린|틀리|틀렸|오답"
    "|ไม่|ผิด|नहीं|गलत"
)
_WRONG_BEFORE = re.compile(rf"(?:\b(?:{_WRONG})|(?:{_UNSPACED})\w?)[^\S\n]*\Z", re.IGNORECASE)
_MOST_BEFORE = 15  # characters of a word such as "incorrect" and the space behind it
_WRONG_BEHIND = re.compile(
    rf"[^\w\n.,;!?。，；！？]*(?:\b(?:(?!don)[a-z]+n['’]t|(?:{IS}[^\S\n]*)+(?:{_NOT})|(?:{_NOT})\s+{IS}|(?:{IS}[^\S\n]*)*(?:{_WRONG}))\b"
    rf"|[^\W\d]{{0,4}}[^\S\n]?(?:{_UNSPACED}))",
    re.IGNORECASE,
)
_NOT_DENIED = re.compile(
    rf"(?:(?!\b(?:{_NOT}|{_WRONG})\b|n['’]t\b|{_UNSPACED}|不|非)[^.。\n]){{0,30}}", re.IGNORECASE
)


def is_wrong_before(text: str, at: int) -> bool:
    """Whether what stands before a word such as "answer" denies it: "wrong answer"."""
    return _WRONG_BEFORE.search(text, max(0, at - _MOST_BEFORE), at) is not None


def is_wrong_behind(text: str, stop: int) -> bool:
    """Whether what stands behind a value denies it: "18 is wrong", "18 isn't"."""
    return _WRONG_BEHIND.match(text, stop) is not None


def end_of_statement(text: str, at: int) -> int:
    """Return up to where a statement may have its value: before "not", and in the same sentence."""
    found = _NOT_DENIED.match(text, at)
    return found.end() if found else at
