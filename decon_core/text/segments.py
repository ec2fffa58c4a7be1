"""Find words, sentences, formulas and numbers in a text of any language, heuristically."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from decon_core.text.numbers import SMALL_NUMBERS, TENS

Span = tuple[int, int]

# Han and kana have no spaces: each character is a word. Vowel signs of Indic scripts and Thai,
# points and accents do not match `\w`, but belong to the word.
_ALONE = r"\u3040-\u30ff\u3400-\u9fff"
_SIGNS = r"\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0971-\u0d7f\u0e31-\u0e4e"
_LETTER = rf"(?:(?![{_ALONE}_])[\w{_SIGNS}])"
_WORD = re.compile(rf"[{_ALONE}]|{_LETTER}+(?:['’]{_LETTER}+)*")
_IS_ALONE = re.compile(rf"[{_ALONE}]")

# A dollar sign may also be a price: "$5 and $10" is not a formula.
_LATEX = re.compile(
    r"\$\$.+?\$\$|\\\[.+?\\\]|\\\(.+?\\\)|\\begin\{(\w+\*?)\}.+?\\end\{\1\}"
    r"|(?<!\\)\$(?=\S)[^$\n]*(?<=\S)(?<!\\)\$(?!\d)",
    re.DOTALL,
)
_PROSE = re.compile(r"(?<![\\{])\b[A-Za-z]{3,} +[A-Za-z]{3,} ")
_OPERAND = r"[(\[]*[-−]?√?(?:\d+(?:\.\d+)?[a-z]?|[a-zA-Z])(?:\^\d+)?[)\]]*"
_EXPRESSION = re.compile(rf"(?<![\w$])(?:{_OPERAND}\s?[-−+*/=^<>≤≥×÷]\s?)+{_OPERAND}(?!\w)")

_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?!\w)|(?<=\$)\d+(?:[.,]\d+)*")
NUMBER_WORDS = (*SMALL_NUMBERS.split()[2:], *TENS.split(), "hundred")
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(NUMBER_WORDS)})\b", re.IGNORECASE)

_SENTENCE_END = re.compile(r"[.!?…؟]+[\"'”’)\]]*\s+|[。！？]+[”’」』]*\s*|\s*\n\s*")
OPENS_SENTENCE = ".!?…:;\"“”'‘(*-–—>"  # after one of these, a capital is not informative
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|St|vs|etc|No|Jr|Sr|e\.g|i\.e)|\b[A-Z])$")


def words(text: str) -> list[str]:
    return _WORD.findall(text)


def canonical_words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def word_spans(text: str) -> list[Span]:
    return [match.span() for match in _WORD.finditer(text)]


def plain_words(text: str) -> list[Span]:
    """Return the words without digits that are not in a formula and not a LaTeX command."""
    spans = [
        match.span()
        for match in _WORD.finditer(text)
        if not any(character.isdigit() for character in match.group())
        and text[max(0, match.start() - 1) : match.start()] != "\\"
    ]
    return outside(spans, formulas(text))


def owners(text: str, spans: Iterable[Span]) -> list[Span]:
    """Return the words without "'s"."""
    return [(start, start + len(re.split("['’]", text[start:stop])[0])) for start, stop in spans]


def outside(spans: Iterable[Span], others: Iterable[Span]) -> list[Span]:
    """Return the spans that overlap none of the others."""
    others = list(others)
    return [
        (start, stop)
        for start, stop in spans
        if all(stop <= begin or end <= start for begin, end in others)
    ]


def formulas(text: str) -> list[Span]:
    """Return LaTeX formulas and plain ones such as `x^2 + 5x = 14`."""
    found = [match.span() for match in _LATEX.finditer(text) if not _PROSE.search(match.group())]
    plain = [
        match.span()
        for match in _EXPRESSION.finditer(text)
        if re.search(r"[=^+*×÷]", match.group()) and re.search(r"[\d=]", match.group())
    ]
    return sorted(found + outside(plain, found))


def numbers(text: str) -> list[Span]:
    """Return numbers in digits and English words from two up ("one" is mostly no number)."""
    found = [match.span() for match in _NUMBER.finditer(text)]
    return sorted(found + [match.span() for match in _NUMBER_WORD.finditer(text)])


def sentences(text: str) -> list[str]:
    cuts = [
        match.end()
        for match in _SENTENCE_END.finditer(text)
        if match.group()[0] != "." or not _ABBREVIATION.search(text[: match.start()])
    ]
    found = (text[start:stop].strip() for start, stop in pairwise([0, *cuts, len(text)]))
    return [sentence for sentence in found if sentence]


def begins_sentence(text: str, at: int) -> bool:
    """Return whether a sentence may begin here, so that a capital is not informative."""
    end = at
    while end and text[end - 1].isspace():
        end -= 1
    return not end or text[end - 1] in OPENS_SENTENCE or "\n" in text[end:at]


def spliced(text: str, changes: Iterable[tuple[Span, str]]) -> str:
    """Return the text with spans replaced."""
    pieces, end = [], 0
    for (start, stop), new in sorted(changes):
        pieces += [text[end:start], new]
        end = stop
    return "".join(pieces) + text[end:]


def joined(made: Iterable[str]) -> str:
    """Join words, with spaces where the script has them."""
    text = ""
    for word in made:
        is_close = not text or (_IS_ALONE.fullmatch(word) and _IS_ALONE.fullmatch(text[-1]))
        text += word if is_close else f" {word}"
    return text
