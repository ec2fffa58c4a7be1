"""The clauses of sentences in another order: the same words, the same facts.

Two changes. A clause or phrase before a comma ("If she sells two, how many are left?") goes behind
the rest, and one at the end to the front. And a last question without pronouns goes before the
facts that it asks about. A pronoun never moves before the only word that it can stand for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from decon_core.features.rewriting.item_texts import ItemTexts, Shuffle, listed
from decon_core.features.rewriting.names import persons_in
from decon_core.text import segments

_CONJUNCTIONS = "if|when|whenever|while|because|although|though|unless|once|after|before|until"
_FIRST = re.compile(
    rf"(?P<first>(?:{_CONJUNCTIONS}|since|in|on|at|during|by|for|from|with)\s[^,;:()\"]+),\s+"
    r"(?P<rest>[A-Za-z][^,;:()\"]+)(?P<end>[.?!]+)",
    re.IGNORECASE,
)
_LAST = re.compile(
    rf"(?P<rest>[A-Z][^,;:()\"]+?)\s+(?P<last>(?:{_CONJUNCTIONS})\s[^,;:()\"]+)(?P<end>[.?!]+)"
)
# Words before a conjunction that does not begin an adverbial clause: "asked if", "even if".
_TIED = re.compile(
    r"\b(?:ask\w*|wonder\w*|kn[eo]w\w*|see|check|determine|decide\w*|find|remember\w*|even|only|just"
    r"|than|soon|long|right|shortly|and|or|but|not|is|are|was|were"
    r"|(?:second|minute|hour|day|week|month|year|time|mile|page|night|morning)s?|\d+)$",
    re.IGNORECASE,
)
_REFERS_BACK = re.compile(
    r"^(?:then|so|if so|now|and)\b|\b(?:above|below|following|previous|shown|given)\b",
    re.IGNORECASE,
)
_BELONGS_ELSEWHERE = re.compile(
    r"\b(?:who|which|that|whose|where|and|or|but|then|so)\b", re.IGNORECASE
)

_PRONOUNS = (
    r"\b(?:he|him|his|himself)\b",
    r"\b(?:she|her|hers|herself)\b",
    r"\b(?:it|its|itself|this|that)\b",
    r"\b(?:they|them|their|theirs|these|those|each|both|other|others|another|same)\b",
)


def clauses_reordered(item: ItemTexts, shuffle: Shuffle) -> ItemTexts | None:
    """Move some of the clauses that can move, at least one; None if none can."""
    names = frozenset(persons_in(item))
    texts = [segments.sentences(item.passage), segments.sentences(item.question)]
    moved = [
        (text, at, new)
        for text, sentences in enumerate(texts)
        for at, sentence in enumerate(sentences)
        if (new := _clause_moved(sentence, names))
    ]
    asked_last = _is_movable_question(texts[1]) and "\n" not in item.question
    n_changes = len(moved) + asked_last
    if not n_changes:
        return None
    chosen = sorted(shuffle(n_changes)[: 1 + shuffle(n_changes)[0]])
    changes: dict[int, list[tuple[str, str]]] = {0: [], 1: []}
    for number in chosen:
        if number < len(moved):
            text, at, new = moved[number]
            changes[text].append((texts[text][at], new))
    made = replace(
        item,
        passage=_replaced(item.passage, changes[0]),
        question=_replaced(item.question, changes[1]),
    )
    if asked_last and n_changes - 1 in chosen:
        *facts, question = segments.sentences(made.question)
        made = replace(made, question=" ".join([question, *facts]))
    return made


def _replaced(text: str, changes: list[tuple[str, str]]) -> str:
    """Replace sentences in their order; what is between them stays."""
    pieces, end = [], 0
    for old, new in changes:
        start = text.index(old, end)
        pieces += [text[end:start], new]
        end = start + len(old)
    return "".join(pieces) + text[end:]


def _clause_moved(sentence: str, names: frozenset[str]) -> str | None:
    """Return a sentence with its first clause last, or its last one first."""
    if found := _FIRST.fullmatch(sentence):
        first, rest = found["first"], found["rest"]
        if _BELONGS_ELSEWHERE.match(rest) or not _may_go_first(rest, first):
            return None
        return f"{_with_first(rest, str.upper)} {_with_first(first, str.lower)}{found['end']}"
    if found := _LAST.fullmatch(sentence):
        rest, last = found["rest"], found["last"]
        start = rest.split()[0]
        lowered = rest if start in names else _with_first(rest, str.lower)
        is_known = start in names or start in listed("clauses", "starts")
        is_tied = _TIED.search(rest) or _BELONGS_ELSEWHERE.search(rest)
        if is_known and not is_tied and _may_go_first(last, rest):
            return f"{_with_first(last, str.upper)}, {lowered}{found['end']}"
    return None


def _with_first(text: str, change: Callable[[str], str]) -> str:
    return change(text[0]) + text[1:]


def _may_go_first(clause: str, other: str) -> bool:
    """Return whether no pronoun of a clause needs a word of the other clause.

    It does not if the other one begins with the same pronoun: "if she", "she".
    """
    return len(clause.split()) > 1 and all(
        re.match(rf"(?:\w+\s+)?{pronoun}", other, re.IGNORECASE)
        for pronoun in _PRONOUNS
        if re.search(pronoun, clause, re.IGNORECASE)
    )


def _is_movable_question(sentences: list[str]) -> bool:
    return (
        len(sentences) > 1
        and sentences[-1].endswith("?")
        and not any(sentence.endswith("?") for sentence in sentences[:-1])
        and all(sentence[-1] in ".!" for sentence in sentences[:-1])
        and not any(re.search(pronoun, sentences[-1], re.IGNORECASE) for pronoun in _PRONOUNS)
        and not _REFERS_BACK.search(sentences[-1])
    )
