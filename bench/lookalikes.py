"""Texts with the words of an item in which the item has not leaked, or not with its answer.

They state what the question asks for, ask something else about the same story or passage, join
halves of two questions, or have other names, numbers or nouns. `python -m bench.forms --not-leaked`
plants them. Each form has grammatical text only for some items; the others cannot take it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import cycle

from bench.plants import (
    NAMES,
    NUMBER,
    Form,
    Planted,
    spliced,
    with_other_names,
    with_other_numbers,
    without_letter,
    words_in,
)

_LONGEST_ANSWER = 60  # characters that are written into a sentence
_SENTENCE_END = re.compile(r"(?<=[a-z\d)$%][.!?])\s+(?=[A-Z])(?<!(?:Mr|rs|Dr|Rs|No)\. )")
_FEWEST_WORDS = 4  # of a story, and of its last sentence
_CLAUSE = r"((?:(?:If|When|In|At|On|After|According to|Based on|Given)\b[^?]*?, (?:then )?)?)"
_NOUN_PHRASE = r"((?:the|a|an) [^,;:()?]+)"
# A subject of one word and its verb: only then is it clear where an object may stand.
_CLAUSE_OF_ONE = (
    r"(do|does|did|will|can|could|must|should|would) (he|she|it|they|you|we|[A-Z]\w+) "
    r"(have|need|buy|sell|make|get|take|give|spend|save|earn|pay|eat|use|read|collect)\b"
    r"(?! (?:been|made|sold|bought|spent|\w+e[dn])\b)"
)
_PREDICATE = r"(?:,| best| most| is| was| must| can| could| would)"
# The words of a question that ends with a question mark, and the sentence made of them. "{answer}"
# is that of another item. A rule whose sentence would often be ungrammatical is left out.
_STATEMENTS = tuple(
    (re.compile(_CLAUSE + asked), "{0}" + stated)
    for asked, stated in (
        (rf"[Ww]hat (is|are|was|were) {_NOUN_PHRASE}", "{2} {1} {answer}"),
        (r"[Ww]hat happens ((?:if|when|to) .+)", "nothing happens {1}"),
        (r"[Ww]ho ((?:[a-z]+ed|wrote|won|made|led|built|sang) .+)", "{name} {1}"),
        (rf"[Ww]here (is|are|was|were) {_NOUN_PHRASE}", "{2} {1} in another country"),
        (r"(?:[Ww]hy|[Hh]ow|[Ww]here|[Ww]hen) do ((?!not\b).+)", "{1}"),
        (r"[Hh]ow many (.+?) are there((?: .+)?)", "there are {number} {1}{2}"),
        (rf"[Hh]ow many ([\w ]+?) {_CLAUSE_OF_ONE}(.*)", "{3} {2} {4} {number} {1}{5}"),
        (
            rf"[Hh]ow much ((?!more|less|\w+er\b)\w+) {_CLAUSE_OF_ONE}(.*)",
            "{3} {2} {4} some {1}{5}",
        ),
        (rf"[Ww]hich (?:one )?of the following({_PREDICATE}.+)", "each of the following{1}"),
        *(
            (rf"{modal} (you|we|he|she|it|they|people) (.+)", f"{{1}} {modal.lower()} {{2}}")
            for modal in ("Can", "Could", "Will", "Would", "Should")
        ),
    )
)
_ALL_CHOICES = re.compile(r"\n\([A-Z]\)")
# A solution such as "Choice B is right" may be that of two items.
_NAMES_CHOICE = re.compile(r"\b(?:Choice|Option)\b")
_UNFINISHED = re.compile(r"\b(?:for|of|in|to|on|from|with|by|about|at|as)$")
_TASKS = (
    "Write the story again in your own words.",
    "Which of the words above has the most letters?",
    "Translate the text above into French.",
    "Which sentence above is the shortest, and why?",
    "Count the verbs in this text.",
)
_NOUN = re.compile(
    r"\b(?:[Tt]he|[Aa]n?|[Ee]ach|[Ee]very|[Hh]is|[Hh]er|[Tt]heir) ([a-z]{4,})"
    r"(?=[.,;?!]| (?:of|in|on|at|to|for|from|is|was|are|were|has|had|that|which|who|and|with)\b)"
)
_SENTENCES = (
    "The article about {} has a section on {} and a note on {}.",
    "Many readers look for {} after {}, which older books list under {}.",
    "Of {} and {}, the second is described first, then {}.",
    "See also: {}, {} and {}.",
)
_FEWEST_KEY_WORDS = 4


def _story_and_task(question: str) -> tuple[str, str]:
    """Return the text before the last sentence of a question, and that sentence."""
    text = question.strip()
    ends = [*_SENTENCE_END.finditer(text)]
    if not ends or "def " in text:
        return "", text
    story, task = text[: ends[-1].start()], text[ends[-1].end() :]
    is_split = min(len(story.split()), len(task.split())) >= _FEWEST_WORDS
    return (story, task) if is_split else ("", text)


def _other(item: Planted) -> tuple[str, str] | None:
    """Return question and answer of another item that has another answer.

    If it is not known which choice of the item is right, any text may have some: no answer then.
    """
    known = {_first_line(item.answer), *item.choices}
    for question, answer in item.others:
        if _ALL_CHOICES.search(item.answer):
            return question, ""
        if _first_line(answer) not in known and not _NAMES_CHOICE.search(answer):
            return question, _first_line(answer)
    return None


def _first_line(answer: str) -> str:
    """Return an answer without its letter, and without most of a solution, which has any words."""
    return without_letter(answer.strip().partition("\n")[0]).strip()


def _short_answer(item: Planted) -> str:
    """Return the answer unless it is a solution, which has words of the question, too."""
    return item.answer if len(item.answer) <= _LONGEST_ANSWER else ""


def statement_of(asking: str, item: Planted) -> str | None:
    """Return a sentence that asks as one that states something in the same words."""
    asked = asking.rstrip().removesuffix("?")
    if asked == asking.rstrip() or _UNFINISHED.search(asked):
        return None
    other = _other(item)
    is_short = other and len(other[1]) <= _LONGEST_ANSWER and NUMBER.search(other[1])
    answer = other[1] if other and is_short else "not known"
    facts = {
        "answer": answer,
        "name": item.rng.choice(NAMES),
        "number": item.rng.randint(11, 99),
    }
    for pattern, stated in _STATEMENTS:
        if found := pattern.fullmatch(asked):
            sentence = stated.format(*found.groups(), **facts)
            return f"{sentence[0].upper()}{sentence[1:]}."
    return None


def _stated(item: Planted) -> str | None:
    story, asking = _story_and_task(item.question)
    return None if story else statement_of(asking, item)


def _story_and_statement(item: Planted) -> str | None:
    story, asking = _story_and_task(item.question)
    stated = statement_of(asking, item) if story else None
    return stated and item.write(f"{story} {stated}", has_answer=False)


def _other_task(item: Planted) -> str | None:
    """Return the question with another last sentence, and the answer of the question."""
    story, _ = _story_and_task(item.question)
    task = item.rng.choice(_TASKS)
    text = item.write(f"{story} {task}", has_answer=False)
    return f"{text}\n{_short_answer(item)}" if story else None


def _task_of_other(item: Planted) -> str | None:
    """Return the question with the last sentence of another one, and the answer of that one."""
    story, asking = _story_and_task(item.question)
    other = _other(item)
    if not story or not other:
        return None
    task = _story_and_task(other[0])[1]
    is_same = _key(task) == _key(asking)
    return None if is_same else f"{item.write(f'{story} {task}', has_answer=False)}\n{other[1]}"


def _key(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _same_passage(item: Planted) -> str | None:
    """Return the passage with another question and its answer."""
    other = _other(item)
    return "\n".join((item.passage, *other)) if item.passage and other else None


def _other_names_and_numbers(item: Planted) -> str | None:
    """Return the question with other names and numbers, and the answer of another item."""
    question = with_other_names(item.question, item.rng)
    question = question and with_other_numbers(question, item.rng)
    other = _other(item)
    if not question or not other:
        return None
    return f"{item.write(question, has_answer=False)}\n{other[1]}"


def _halves(item: Planted, *, is_first: bool) -> str | None:
    """Return half of the question and half of another, in one text, and the other's answer."""
    other = _other(item)
    if not other:
        return None
    questions = (item.question, other[0]) if is_first else (other[0], item.question)
    first, second = map(words_in, questions)
    if min(len(first), len(second)) < 2 * _FEWEST_WORDS:
        return None
    stop, start = first[len(first) // 2 - 1].end(), second[len(second) // 2].start()
    lost, new = questions[0][stop:], questions[1][start:]
    if not is_first:
        lost, new = questions[1][:start], questions[0][:stop]
    if 2 * len({*_key(lost)} & {*_key(new)}) > len({*_key(lost)}):
        return None  # stock phrases: nearly the question itself
    joined = f"{questions[0][:stop]} {questions[1][start:]}"
    return f"{item.write(joined, has_answer=False)}\n{other[1]}"


def _other_noun(item: Planted) -> str | None:
    """Return the question with one noun of another question, and the answer of that one."""
    other = _other(item)
    nouns = [*_NOUN.finditer(item.question)]
    asked = {noun[1] for question, _ in item.others for noun in _NOUN.finditer(question)}
    new = sorted(asked - {*_key(item.question)})
    if not (other and nouns and new):
        return None
    noun = item.rng.choice(nouns)
    question = spliced(item.question, [(*noun.span(1), item.rng.choice(new))])
    return f"{item.write(question, has_answer=False)}\n{other[1]}"


def _paragraph(item: Planted) -> str | None:
    """Return a paragraph with the words of the question in another order, and its answer."""
    words = [word for word in re.findall(r"\w+", item.question) if len(word) > 3 or word.isdigit()]
    words = [*dict.fromkeys(words)]
    if len(words) < _FEWEST_KEY_WORDS:
        return None
    item.rng.shuffle(words)
    return f"{' '.join(_sentences_of(words))}\n{_short_answer(item)}"


def _sentences_of(words: list[str]) -> Iterator[str]:
    filled = [*words, *words[: -len(words) % 3]]
    groups = zip(filled[::3], filled[1::3], filled[2::3], strict=True)
    for sentence, group in zip(cycle(_SENTENCES), groups, strict=False):
        yield sentence.format(*group)


NOT_LEAKED: dict[str, Form] = {
    "question as a statement": _stated,
    "last sentence as a statement": _story_and_statement,
    "last sentence of another item": _task_of_other,
    "another task": _other_task,
    "passage with another question": _same_passage,
    "other names and numbers": _other_names_and_numbers,
    "first half, then another's": lambda item: _halves(item, is_first=True),
    "another's half, then second half": lambda item: _halves(item, is_first=False),
    "another noun and answer": _other_noun,
    "key words in a paragraph": _paragraph,
}
# The question is nearly there, without its answer. In all others, "no answer" is wrong, too.
MAY_LACK_ANSWER = frozenset(("another noun and answer",))
