"""The forms in which `bench.forms` plants an item, and the hard negatives.

They are independent of the scorecard's edits, which are used to choose thresholds: a threshold that
only fits those edits fails here.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from token import NAME, STRING
from tokenize import generate_tokens

NAMES = (
    *("Amara", "Benedikt", "Chidi", "Dagny", "Eleni", "Farouk", "Greta", "Hamish", "Ines", "Jorge"),
    *("Kenji", "Lucia", "Malik", "Noor", "Oskar", "Priya", "Quinn", "Rosa", "Stefan", "Tomoko"),
    *("Ulrich", "Vera", "Wanjiru", "Xavier", "Yusuf", "Zora"),
)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}\b")
_MARKED = ("<b>{}</b>", "**{}**", "<i>{}</i>", "\\textbf{{{}}}", "&quot;{}&quot;", "_{}_")
N_EDITS = 3
N_DRAWN = 5  # other items of each item
FAR_WORDS = 400


@dataclass(frozen=True)
class Planted:
    """An item to plant: its texts, and words and texts of others to change it with."""

    passage: str
    question: str
    answer: str
    choices: Sequence[str]  # without their letters
    others: Sequence[tuple[str, str]]  # question and answer of items of the same passage or group
    words: Sequence[str]  # of other items and of the text around
    far_text: str
    rng: Random

    def write(self, question: str | None = None, *, has_answer: bool = True) -> str:
        """Return passage, question and answer, one below the other."""
        parts = [self.passage, self.question if question is None else question]
        return "\n".join(part for part in [*parts, self.answer * has_answer] if part)


Form = Callable[[Planted], str | None]  # None: this item cannot take the form


def without_letter(answer: str) -> str:
    """Return an answer without the letter of its choice."""
    return re.sub(r"^\([A-Z]\)", "", answer)


def words_in(text: str) -> list[re.Match[str]]:
    return [*re.finditer(r"\S+", text)]


def _plain(text: str) -> list[re.Match[str]]:
    """Return the words that are letters only, with the sign behind them: no numbers, no code."""
    return [word for word in words_in(text) if re.fullmatch(r"[^\W\d_]{2,}[.,;:?!]?", word[0])]


def spliced(text: str, changes: Sequence[tuple[int, int, str]]) -> str:
    for start, stop, new in sorted(changes, reverse=True):
        text = text[:start] + new + text[stop:]
    return text


def _other_word(item: Planted, word: str) -> str:
    """Return another word, with the capital and the sign of the one that it replaces."""
    bare = word.rstrip(".,;:?!")
    other = next(
        one
        for one in iter(lambda: item.rng.choice(item.words), None)
        if one.lower() != bare.lower()
    )
    cased = other.capitalize() if bare[0].isupper() else other.lower()
    return cased + word[len(bare) :]


def _edited(item: Planted, kinds: Sequence[str]) -> str | None:
    words = _plain(item.question)
    if len(words) < 2 * len(kinds):
        return None
    changes = []
    for kind, word in zip(kinds, item.rng.sample(words, len(kinds)), strict=True):
        if kind == "replaced":
            changes.append((*word.span(), _other_word(item, word[0])))
        elif kind == "deleted":
            changes.append((word.start(), min(word.end() + 1, len(item.question)), ""))
        else:
            changes.append((word.start(), word.start(), item.rng.choice(item.words).lower() + " "))
    return item.write(spliced(item.question, changes))


def _one_edit(kind: str) -> Form:
    return lambda item: _edited(item, [kind])


def _three_edits(item: Planted) -> str | None:
    return _edited(item, ("replaced", "deleted", "inserted"))


def _many_edits(item: Planted) -> str | None:
    words = _plain(item.question)
    if len(words) < 5:
        return None
    chosen = item.rng.sample(words, round(0.4 * len(words)))
    changes = [(*word.span(), _other_word(item, word[0])) for word in chosen]
    return item.write(spliced(item.question, changes))


def _half(item: Planted) -> str | None:
    words = words_in(item.question)
    if len(words) < 4:
        return None
    return item.question[: words[len(words) // 2 - 1].end()]


def _far_answer(item: Planted) -> str | None:
    if not item.answer:
        return None
    return f"{item.write(has_answer=False)}\n\n{item.far_text}\n\n{item.answer}"


def _marked_up(item: Planted) -> str | None:
    """Mark a fifth of the words, break lines, and write some as entities."""
    words = _plain(item.question)
    if not words:
        return None
    chosen = item.rng.sample(words, max(1, len(words) // 5))
    changes = [(*word.span(), item.rng.choice(_MARKED).format(word[0])) for word in chosen]
    text = spliced(item.question, changes)
    breaks = [
        (at.start(), at.end(), "\n") for at in re.finditer(" ", text) if item.rng.random() < 0.1
    ]
    return item.write(spliced(text, breaks))


def _other_numbers(item: Planted) -> str | None:
    question = with_other_numbers(item.question, item.rng)
    return question and item.write(question, has_answer=False)


def with_other_numbers(question: str, rng: Random) -> str | None:
    """Return a question with each number replaced; None if it has no number."""
    numbers = [*NUMBER.finditer(question)]
    new = {number[0]: other_number(number[0], rng) for number in numbers}
    changes = [(*number.span(), new[number[0]]) for number in numbers]
    return spliced(question, changes) if changes else None


def other_number(number: str, rng: Random) -> str:
    while True:
        digits = "".join(rng.choice("123456789") if one.isdigit() else one for one in number)
        if digits != number:
            return digits


def _other_names(item: Planted) -> str | None:
    question = with_other_names(item.question, item.rng)
    return question and item.write(question, has_answer=False)


def with_other_names(question: str, rng: Random) -> str | None:
    """Return a question with each name replaced; None if it has no name, or more than are known."""
    names = [*_NAME.finditer(question)]
    others = iter(rng.sample(NAMES, len(NAMES)))
    if not names or len({name[0] for name in names}) > len(NAMES):
        return None
    new = {name: next(others) for name in dict.fromkeys(name[0] for name in names)}
    words = re.finditer(r"\w+", question)
    changes = [(*name.span(), new[name[0]]) for name in words if name[0] in new]
    return spliced(question, changes)


FORMS: dict[str, Form] = {
    "verbatim": lambda item: item.write() if item.answer else None,
    "question only": lambda item: item.write(has_answer=False),
    "one word replaced": _one_edit("replaced"),
    "one word deleted": _one_edit("deleted"),
    "one word inserted": _one_edit("inserted"),
    "three edits": _three_edits,
    "mark-up": _marked_up,
    "far answer": _far_answer,
    "40 % of words replaced": _many_edits,
    "first half": _half,
    "other numbers": _other_numbers,
    "other names": _other_names,
    "answer alone": lambda item: item.answer or None,
    "passage alone": lambda item: item.passage or None,
}
# Also planted, of items that are not in the index: nothing may be found.
NEIGHBOURS: dict[str, Form] = {
    "neighbouring item": lambda item: item.write(),
    "neighbour's question": lambda item: item.write(has_answer=False),
}


# How corpora write items --------------------------------------------------------------------------

_DELIMITERS = re.compile(r"\$+|\\[()\[\]]|\\(?:left|right)\b")
_LINE = 66  # characters
_WORDS_OF_REASONING = 40
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WHOLE_NUMBER = re.compile(r"(?<![\w.,^_{$\\-])\d{1,3}(?![\w}^_$]|[.,]\d)")
_SPELLINGS = (
    *(("color", "colour"), ("favor", "favour"), ("labor", "labour"), ("neighbor", "neighbour")),
    *(("behavior", "behaviour"), ("honor", "honour"), ("center", "centre"), ("meter", "metre")),
    *(("liter", "litre"), ("theater", "theatre"), ("organiz", "organis"), ("realiz", "realis")),
    *(("recogniz", "recognis"), ("analyz", "analys"), ("traveled", "travelled")),
    *(("traveling", "travelling"), ("defense", "defence"), ("gray", "grey")),
    *(("catalog", "catalogue"), ("judgment", "judgement"), ("minimiz", "minimis")),
    *(("maximiz", "maximis"), ("summariz", "summaris"), ("criticiz", "criticis")),
)
_FULL_WIDTH = str.maketrans(",;:?!()", "，；：？！（）")
_BLANK = re.compile(r"_{3,}|\(\s*\)|（\s*）")
_WITHOUT_COLOR = "\x1b[0m"
_MENTION = re.compile(r"(?P<quote>[`\'\"]?)\b(?P<name>[a-z]\w*)\b", re.IGNORECASE)
_NO_ENGLISH = re.compile(r"\w*[_\d]\w*|[b-hj-z]")


def _of_question(change: Callable[[Planted], str]) -> Form:
    """Return a form that changes the question; an item that this leaves as it was has none."""

    def form(item: Planted) -> str | None:
        changed = change(item)
        return item.write(changed) if changed != item.question else None

    return form


def _in_json(item: Planted) -> str:
    return json.dumps({"text": item.write(), "source": "web"})


def _lines(text: str) -> list[str]:
    """Return a text in short lines, with its own line ends kept."""
    wrap = textwrap.TextWrapper(_LINE, break_long_words=False, break_on_hyphens=False)
    return [part for line in text.splitlines() for part in wrap.wrap(line) or [""]]


def _hyphenated(text: str) -> str:
    """Fill lines, and break long words at their ends, as in a scanned book."""
    lines = [""]
    for word in text.split():
        left = _LINE - len(lines[-1]) - 2
        if len(lines[-1]) + len(word) < _LINE:
            lines[-1] += f" {word}" * bool(lines[-1]) or word
        elif word.isalpha() and 3 <= left <= len(word) - 3:
            lines[-1] += f" {word[:left]}-"
            lines.append(word[left:])
        else:
            lines.append(word)
    return "\n".join(lines)


def _with_choices(mark: str, between: str) -> Form:
    """Return a form with all choices behind the question, and the mark of the answer.

    If it is not known which one is right, that of any.
    """

    def form(item: Planted) -> str | None:
        if not item.choices:
            return None
        marks = [mark.format(at + 1, _LETTERS[at]) for at in range(len(item.choices))]
        choices = between.join(map(" ".join, zip(marks, item.choices, strict=True)))
        drawn, answer = item.rng.choice(marks), without_letter(item.answer)
        right = marks[item.choices.index(answer)] if answer in item.choices else drawn
        return f"{item.write(has_answer=False)}\n{choices}\nAnswer: {right}"

    return form


def _letter_alone(item: Planted) -> str | None:
    letter = item.rng.choice(_LETTERS[:4])
    return f"{item.write(has_answer=False)}\nAnswer: {letter}" if item.choices else None


def _reordered_choices(item: Planted) -> str | None:
    """Return the question, its choices in another order, and the letter and text of the answer."""
    answer = without_letter(item.answer)
    if answer not in item.choices:
        return None
    choices = item.rng.sample(item.choices, len(item.choices))
    lines = map(". ".join, zip(_LETTERS, choices, strict=False))
    letter = _LETTERS[choices.index(answer)]
    question = item.write(has_answer=False)
    return "\n".join([question, *lines, f"The correct answer is ({letter}) {answer}"])


def _reasoned(item: Planted) -> str | None:
    """Return the question, some sentences, and the answer in a sentence of its own."""
    if not item.answer or "\n" in item.answer:
        return None
    reasoning = " ".join(item.far_text.split()[:_WORDS_OF_REASONING])
    return f"{item.write(has_answer=False)}\n\n{reasoning}\n\nSo the answer is {item.answer}."


def _among_questions(item: Planted) -> str | None:
    """Return the passage with three questions, each with its answer; the planted one is second."""
    if len(item.others) < 2 or not item.answer:
        return None
    before, after = item.others[:2]
    pairs = (before, (item.question, item.answer), after)
    numbered = (
        f"{number}. {question}\nAnswer: {answer}"
        for number, (question, answer) in enumerate(pairs, 1)
    )
    return "\n".join(filter(None, [item.passage, *numbered]))


def _other_answer(item: Planted) -> str | None:
    """Return the question with the answer of another item, which no record of the item has."""
    known = {item.answer, *item.choices}
    answers = (answer for _, answer in item.others)
    answer = next((of for of in answers if not {of, without_letter(of)} & known), None)
    return f"{item.write(has_answer=False)}\n{answer}" if answer else None


def _wrong_choice(item: Planted) -> str | None:
    """Return the question with a wrong choice in place of the answer."""
    answer = without_letter(item.answer)
    if answer not in item.choices:
        return None
    wrong = [choice for choice in item.choices if answer not in choice]
    return f"{item.write(has_answer=False)}\nAnswer: {item.rng.choice(wrong)}" if wrong else None


def _longer_number(item: Planted) -> str | None:
    """Return the question with a number that begins with the answer."""
    answer = without_letter(item.answer)
    if not answer.isdecimal():
        return None
    other = f"{answer}{item.rng.choice(('0', '5', '.5', ',000'))}"
    return f"{item.write(has_answer=False)}\nAnswer: {other}"


def _filled_in(item: Planted) -> str | None:
    """Return the question with the answer in its blank."""
    if len(_BLANK.findall(item.question)) != 1 or not item.answer or "\n" in item.answer:
        return None
    return item.write(_BLANK.sub(lambda _: item.answer, item.question), has_answer=False)


def _in_colors(item: Planted) -> str | None:
    """Return the lines that a terminal shows of a diff: each in green, a fifth of words in red."""
    words = _plain(item.question)
    if not words or not item.answer:
        return None
    chosen = item.rng.sample(words, max(1, len(words) // 5))
    changes = [(*word.span(), f"\x1b[1;31m{word[0]}{_WITHOUT_COLOR}\x1b[32m") for word in chosen]
    lines = _lines(item.write(spliced(item.question, changes)))
    return "\n".join(f"\x1b[32m+{line}{_WITHOUT_COLOR}" for line in lines)


def _in_turns(item: Planted) -> str | None:
    question = item.write(has_answer=False)
    turns = f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n{item.answer}"
    return f"{turns}<|im_end|>" if item.answer else None


def _in_words(number: int) -> str:
    if number < len(_SMALL):
        return _SMALL[number]
    if number < 100:
        tens, rest = _TENS[number // 10 - 2], number % 10
        return f"{tens}-{_SMALL[rest]}" if rest else tens
    hundreds, rest = f"{_SMALL[number // 100]} hundred", number % 100
    return f"{hundreds} and {_in_words(rest)}" if rest else hundreds


def _numbers_in_words(item: Planted) -> str:
    return _WHOLE_NUMBER.sub(lambda number: _in_words(int(number[0])), item.question)


def _british(item: Planted) -> str:
    text = item.question
    for american, british in _SPELLINGS:
        for old, new in ((american, british), (american.capitalize(), british.capitalize())):
            text = re.sub(rf"\b{old}(?!ue)", new, text)
    return text


def _renamed(item: Planted) -> str | None:
    """Rename what a program defines, in prompt, examples and solution, and indent it further."""
    program = f"{item.question}\n{item.answer}"
    try:
        names = sorted(_names_of_code(program))
    except SyntaxError:  # text
        return None
    if not names:
        return None
    words = item.rng.sample(sorted({word.lower() for word in item.words}), len(names))
    new = {name: f"{word}_1" for name, word in zip(names, words, strict=True)}
    lines = program.splitlines(keepends=True)
    for token in reversed([*generate_tokens(iter(lines).__next__)]):
        (line, start), (last, stop) = token.start, token.end
        if token.type == NAME and token.string in new:
            lines[line - 1] = spliced(lines[line - 1], [(start, stop, new[token.string])])
        elif token.type == STRING and token.string.endswith(('"""', "'''")):
            for at in range(line - 1, last):
                lines[at] = _with_new_mentions(lines[at], new)
    return re.sub("(?m)^ +", lambda indent: 2 * indent[0], "".join(lines))


def _names_of_code(program: str) -> set[str]:
    """Return the functions, parameters and variables of a program that can be renamed."""
    defined, fixed = set[str](), {*dir(builtins)}
    for node in ast.walk(ast.parse(program)):
        match node:
            case ast.FunctionDef(name=name) | ast.arg(arg=name):
                defined.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                defined.add(name)
            case ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                fixed.add(name)
    return defined - fixed


def _with_new_mentions(line: str, new: Mapping[str, str]) -> str:
    """Rename in a line of a docstring: all of an example, else names that are no English words."""
    is_example = ">>>" in line or "==" in line or "->" in line

    def renamed(word: re.Match[str]) -> str:
        is_name = is_example or word["quote"] or _NO_ENGLISH.fullmatch(word["name"])
        return word["quote"] + new.get(word["name"], word["name"]) if is_name else word[0]

    return _MENTION.sub(renamed, line)


AMONG = "among other questions"
WITHIN = "within a paragraph"  # the text around it has no line ends either
# Items as corpora write them; `bench.forms --as-written` plants these. Behind the question of
# "another item's answer", "wrong choice" and "longer number", the right answer is missing.
WRITTEN: dict[str, Form] = {
    "JSON string": lambda item: _in_json(item) if item.answer else None,
    "no formula delimiters": _of_question(lambda item: _DELIMITERS.sub("", item.question)),
    "choices on one line": _with_choices("({})", " "),
    "choices and letter": _with_choices("{1}.", "\n"),
    "letter alone": _letter_alone,
    "chat turns": _in_turns,
    "hyphenated lines": lambda item: _hyphenated(item.write()) if item.answer else None,
    "numbers in words": _of_question(_numbers_in_words),
    "British spelling": _of_question(_british),
    "full-width signs": _of_question(lambda item: item.question.translate(_FULL_WIDTH)),
    WITHIN: lambda item: " ".join(item.write().split()) if item.answer else None,
    "quoted lines": lambda item: "\n".join(f"> {line}" for line in _lines(item.write())),
    "choices in another order": _reordered_choices,
    "reasoning before the answer": _reasoned,
    AMONG: _among_questions,
    "blank filled in": _filled_in,
    "terminal colors": _in_colors,
    "another item's answer": _other_answer,
    "wrong choice": _wrong_choice,
    "longer number": _longer_number,
    "numbered lines": lambda item: "\n".join(
        f"{number:>4}  {line}" for number, line in enumerate(_lines(item.write()), 17)
    ),
    "renamed code": _renamed,
}
