"""The oracle of `alignment/` and of the kinds of `aligned`, slow and simple: words in lists.

What a word and a number are, and how rare a word is, is defined by `decon_core.text`; what follows
from them is defined here. The best alignment is not unique, so what follows from equal words takes
them as given. No code is shared with the stages: where the two differ, this one is
right.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from decon_core.text.canonical import characters_per_word, words_with_places
from decon_core.text.characters import IGNORABLE, Form
from decon_core.text.content_words import is_content, weight_of
from decon_core.text.markup import stripped_with_offsets
from decon_core.text.numbers import numbers_in
from decon_core.text.segments import begins_sentence


class Unit(NamedTuple):
    key: str
    start: int
    stop: int
    is_number: bool
    is_name: bool


class Run(NamedTuple):
    """Equal units: where they begin in the item and in the document, and how many they are."""

    item: int
    document: int
    size: int


def units(text: str, form: Form) -> list[Unit]:
    """Return the words of a text without its mark-up, those of one number together."""
    plain = stripped_with_offsets(text)
    text = _with_digits_together(plain.text) if form.normalize_unicode else plain.text
    found: list[Unit] = []
    of_numbers = set()
    for word, start, stop in words_with_places(text, replace(form, strip_markup=False)):
        within = [one for one in numbers_in(text) if one.start <= start < one.stop]
        if not within:
            is_capital = text[start].isupper() and len(word) > 1
            is_name = is_capital and not begins_sentence(text, start)
            found.append(Unit(word, *plain.original(start, stop), False, is_name))
        elif within[0].start not in of_numbers:
            number = within[0]
            of_numbers.add(number.start)
            place = plain.original(number.start, max(stop, number.stop))
            found.append(Unit(f"{number.value:.9g}", *place, True, False))
    return found


def _with_digits_together(text: str) -> str:
    """Move each digit before the invisible characters that are between it and another digit."""
    digits = [*text]
    for at, digit in enumerate(digits):
        first = at
        while digit.isdecimal() and first and ord(digits[first - 1]) in IGNORABLE:
            first -= 1
        if 0 < first < at and digits[first - 1].isdecimal():
            digits[first : at + 1] = [digit, *digits[first:at]]
    return "".join(digits)


def units_per_word(keys: Sequence[str]) -> int:
    """Return how many units make a word: more if most are characters of scripts without spaces."""
    per_word = [characters_per_word(key) for key in keys]
    n_alone = sum(n > 1 for n in per_word)
    if 2 * n_alone <= len(keys):
        return 1
    return 4 if 2 * per_word.count(4) > n_alone else 2


# What is equal ------------------------------------------------------------------------------------


def worth(item: Sequence[Unit], runs: Sequence[Run]) -> int:
    """Return what runs in a row are worth, in hundredths: their units, less 22 for each between."""
    value = -22 * sum(b.document - a.document - a.size for a, b in pairwise(runs))
    for run in runs:
        units = item[run.item : run.item + run.size]
        value += sum(map(_worth_of, units)) * (100 if run.size > 1 else 70) // 100
    return value


def _worth_of(unit: Unit) -> int:
    return 100 if unit.is_number or is_content(unit.key) else 40


def worth_of_best(item: Sequence[Unit], document: Sequence[Unit], span: tuple[int, int]) -> int:
    """Return what the best of all alignments that overlap a span is worth; 0 if there is none.

    It has no beginning that the other words behind it make worthless.
    """
    # By the last two equal units: the best that ends with them alone, and with a run.
    best: dict[tuple[int, int], tuple[float, float]] = {}
    most = 0.0
    for at, unit in enumerate(item):
        for place, other in enumerate(document):
            if unit.key != other.key:
                continue
            before = [
                max(values) - 22 * (place - of[1] - 1)
                for of, values in best.items()
                if of[0] < at and of[1] < place
            ]
            start = max([value for value in before if value > 0], default=0.0)
            value = _worth_of(unit)
            alone = start + 0.7 * value if start or place < span[1] else -math.inf
            last_alone, last_run = best.get((at - 1, place - 1), (-math.inf, -math.inf))
            run = value + max(last_run, last_alone + 0.3 * _worth_of(item[at - 1]))
            best[at, place] = alone, run
            if place >= span[0]:
                most = max(most, alone, run)
    return round(most)


# What tells an item from others -------------------------------------------------------------------


class Own(NamedTuple):
    """Which units of a question are its own, which are the middle of an own run, its family."""

    units: list[bool]
    middles: list[bool]
    n_family: int


def own_units(questions: Sequence[Sequence[str]], n_items: Sequence[int]) -> list[Own]:
    """Return for each question what no other one has, or few of its family."""
    n_with: Counter[tuple[str, ...]] = Counter()
    for keys, n in zip(questions, n_items, strict=True):
        for run in {tuple(keys[at : at + 3]) for at in range(len(keys) - 2)}:
            n_with[run] += n
    found = []
    for keys, n in zip(questions, n_items, strict=True):
        most = [
            max([n, *(n_with[tuple(keys[at : at + 3])] for at in _runs_around(place, len(keys)))])
            for place in range(len(keys))
        ]
        n_family = sorted(most)[int(0.6 * (len(most) - 1))] if most else 1
        limit = max(1, n_family // 10)
        middles = [
            0 < place < len(keys) - 1 and n_with[tuple(keys[place - 1 : place + 2])] <= limit
            for place in range(len(keys))
        ]
        found.append(Own([count <= limit for count in most], middles, n_family))
    return found


def _runs_around(place: int, length: int) -> list[int]:
    return [at for at in (place - 2, place - 1, place) if 0 <= at <= length - 3]


# Counts -------------------------------------------------------------------------------------------


def counted(
    item: Sequence[Unit], own_of: Own, document: Sequence[Unit], runs: Sequence[Run]
) -> dict[str, int]:
    """Return what of an item was found, and what stands there instead."""
    found = {run.item + at for run in runs for at in range(run.size)}
    weights = [weight_of([unit.key]) for unit in item]
    numbers = {at for at, unit in enumerate(item) if unit.is_number}
    letters = {at for at, unit in enumerate(item) if len(unit.key) == 1 and unit.key.isascii()}
    names = {at for at, unit in enumerate(item) if unit.is_name}
    own = {at for at in range(len(item)) if own_of.units[at]}
    inner = {run.item + at for run in runs for at in range(1, run.size - 1)}
    least_piece = 4 * units_per_word([unit.key for unit in item])
    counts = Counter(
        n_units=len(item),
        n_found=len(found),
        weight=sum(weights),
        weight_found=sum(weights[at] for at in found),
        longest=max(run.size for run in runs),
        n_in_pieces=sum(run.size for run in runs if run.size >= least_piece),
        extent=max(found) - min(found) + 1,
        own_weight=sum(weights[at] for at in own),
        own_found=sum(weights[at] for at in own & found),
        own_runs_found=sum(weights[at] for at in inner if own_of.middles[at]),
        n_numbers_found=len(numbers & found),
        words_found=sum(weights[at] for at in found - numbers - letters),
        n_names_found=len(names & found),
        start=document[runs[0].document].start,
        stop=document[runs[-1].document + runs[-1].size - 1].stop,
    )
    new_of: dict[str, str] = {}
    for lost, put in _not_found(item, document, runs):
        counts["n_inserted"] += max(0, len(put) - len(lost))
        counts["n_numbers_changed"] += min(
            sum(unit.is_number for unit in lost), sum(unit.is_number for unit in put)
        )
        if len(lost) == len(put):
            counts["n_names_changed"] += _names_changed(lost, put, new_of)
    return counts


def _not_found(
    item: Sequence[Unit], document: Sequence[Unit], runs: Sequence[Run]
) -> list[tuple[Sequence[Unit], Sequence[Unit]]]:
    """Return what stands before, between and after runs: of the item, and in its place.

    Before and after them the nearest units stand for each other one by one, but for the item's
    first, which may be its number in a list.
    """
    head, head_of_document = item[: runs[0].item], document[: runs[0].document]
    before = [*zip(head[:0:-1], head_of_document[::-1], strict=False)][::-1]
    tail = item[runs[-1].item + runs[-1].size :]
    after = [*zip(tail, document[runs[-1].document + runs[-1].size :], strict=False)]
    between = [
        (item[a.item + a.size : b.item], document[a.document + a.size : b.document])
        for a, b in pairwise(runs)
    ]
    ends = [([old for old, _ in end], [new for _, new in end]) for end in (before, after)]
    return [ends[0], *between, ends[1]]


def _names_changed(lost: Sequence[Unit], put: Sequence[Unit], new_of: dict[str, str]) -> int:
    """Count names with another one in their place, the same each time; `new_of` is added to."""
    n_changed = 0
    for old, new in zip(lost, put, strict=True):
        if old.is_name and new.is_name and old.key not in new_of:
            new_of[old.key] = new.key
        n_changed += new_of.get(old.key) == new.key
    return n_changed


# Answers ------------------------------------------------------------------------------------------


def is_filled(filling: Sequence[str], answer: Sequence[str]) -> bool:
    """Return whether words in place of a blank are an answer: the same without articles."""
    without = [
        [word for word in words if word not in ("a", "an", "the", "and")]
        for words in (filling, answer)
    ]
    return bool(without[0]) and without[0] == without[1]


def is_same_measure(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Return whether numbers are equal, and their units.

    The other one may lack a common unit if it is in digits.
    """
    names = {"kilometres per hour": "km/h", "kilograms": "kg"}
    values = [[number.value for number in numbers_in(text)] for text, _ in (one, other)]
    units = [names.get(unit, unit) for _, unit in (one, other)]
    may_lack_unit = units[0] in ("km/h", "kg", "km") and not other[0][0].isalpha()
    return values[0] == values[1] and units[1] in (units[0], "" if may_lack_unit else units[0])


def is_whole_answer(answer: Sequence[str], text: Sequence[str]) -> bool:
    """Return whether the words and numbers of a short answer stand in a row in a text.

    An article before them may be missing. Digits beside a number may be groups of it.
    """
    if len(answer) > 1 and answer[0] == "the":
        answer = answer[1:]
    wanted, values = ([_value(word) for word in words] for words in (answer, text))
    for at in range(len(text) - len(answer) + 1):
        stop = at + len(answer)
        has_number = any(word[0].isdigit() for word in answer)  # "sin 2" may be of "3 sin 2"
        is_after_digits = has_number and at > 0 and text[at - 1][-1].isdigit()
        after = text[stop] if stop < len(text) else ""
        is_three = after[:3].isdigit() and len(after) > 2 and not after[3:4].isdigit()
        is_group = answer[-1][-1].isdigit() and is_three
        if values[at:stop] == wanted and not is_after_digits and not is_group:
            return True
    return False


def _value(word: str) -> float | str:
    return float(word.replace(",", "")) if word[0].isdigit() else word.lower()


# What stands before a value: signs, words that name the answer, and other words.
_SIGNS = ("####", "= ", "\\boxed{", "x = ")
_NAMES = ("Answer: ", "The answer is ", "ANSWER ", "Die Antwort ist ", "答案：", "correct option: ")
OPENINGS = (*_SIGNS, *_NAMES, "", "Page ", "It was ", "answers: ", ">= ")


def is_stated(answer: str, opening: str, between: str, value: str, end: str) -> bool:
    """Return whether a text of these four parts states an answer."""
    if opening in _NAMES:
        is_named = between not in ("not ", "never ")
    else:
        is_named = opening in _SIGNS and between in ("", "**")
    if value in ("A", "B"):  # no variable, and no word
        is_named = is_named and not opening.endswith("= ") and (value, end) != ("A", " cars.")
    is_cut = end in ("5", ".5", "/7", " + 2", " is wrong.", "x")
    return is_named and not is_cut and _plain(answer) == _plain(value)


def _plain(text: str) -> str:
    return text.replace(",", "")


# Operators ----------------------------------------------------------------------------------------


def signs(between: str) -> list[str]:
    """Return the operators between two units of plain text, of which only the first three count.

    `between` has neither mark-up nor line ends.
    """
    alike = {"−": "-", "–": "-", "×": "*", "·": "*", "÷": "/"}
    found: list[str] = []
    plain = "".join(alike.get(character, character) for character in between)
    for run in "".join(one if one in "+-*/=<>!^" else " " for one in plain).split():
        while run:
            both = next(
                (one for one in ("**", "<=", ">=", "!=", "==", "=") if run.startswith(one)), run[0]
            )
            run = run.removeprefix(both)
            found += [{"**": "^", "==": "="}.get(both, both)] if both != "!" else []
    return found


def are_other_signs(one: Sequence[str], other: Sequence[str]) -> bool:
    return bool(one) and len(one) == len(other) and one != other


# Attribution --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """An item at a place: the characters where its units begin, with their weights."""

    weights: Mapping[int, int]
    support: int
    weight: int  # of the item
    n_units: int
    is_whole: bool
    of_passage: frozenset[int] = frozenset()  # those that are words of the item's own passage


def siblings(found: Sequence[Found]) -> list[bool]:
    """Return for each item whether another one holds the words that were found of it."""
    is_sibling = [False] * len(found)
    holders: dict[int, Found] = {}  # by character
    # Python sorts stably: of equals the first one is the first.
    for at in sorted(range(len(found)), key=lambda at: -evidence(found[at], found)):
        one = found[at]
        free = one.weights.keys() - holders.keys() - one.of_passage
        if sum(one.weights[place] for place in free) >= 0.34 * sum(one.weights.values()):
            holders |= dict.fromkeys(free, one)
            continue
        of_holders = max((holders[at].n_units for at in one.weights if at in holders), default=0)
        is_sibling[at] = not (one.is_whole and one.n_units >= of_holders)
    return is_sibling


def evidence(one: Found, found: Sequence[Found]) -> int:
    """Return what was found of an item, and what supports it.

    If it has half of the units of one that is there as a whole, less what was not found.
    """
    of_item = sum(weight for at, weight in one.weights.items() if at not in one.of_passage)
    is_beside = any(
        other.is_whole and 2 * len(other.weights.keys() & one.weights) >= len(other.weights)
        for other in found
    )
    return of_item + one.support - (one.weight - of_item if is_beside else 0)


# Passages -----------------------------------------------------------------------------------------

Grams = list[tuple[int, ...]]


def grams(tokens: Sequence[int], size: int) -> Grams:
    return [tuple(tokens[at : at + size]) for at in range(len(tokens) - size + 1)]


def passage_in(
    document: Sequence[int],
    passage: Sequence[int],
    weight_of: Mapping[tuple[int, ...], float],
    size: int,
    least: float,
) -> tuple[float, int, int] | None:
    """Return the share of a passage in a document, and the tokens where most of it is together.

    None if it is less than the least share. `weight_of`: the weight of each n-gram.
    """
    wanted = dict.fromkeys(grams(passage, size))
    places = [at for at, gram in enumerate(grams(document, size)) if gram in wanted]
    found = {tuple(document[at : at + size]) for at in places}
    whole = sum(weight_of[gram] for gram in wanted)
    share = sum(weight_of[gram] for gram in wanted if gram in found) / whole if whole else 0.0
    if not found or share < least:
        return None
    runs: list[list[int]] = []
    for at in places:
        if runs and at - runs[-1][-1] <= 17:
            runs[-1].append(at)
        else:
            runs.append([at])
    longest = max(runs, key=len)
    return share, longest[0], longest[-1] + size


def beside_passage(
    document: Sequence[int], passage: Sequence[int], first: int, stop: int, size: int
) -> tuple[int, int]:
    """Return a range of tokens without words of a passage that goes on beyond it.

    An n-gram of the passage crosses an edge of the range, and others overlap it in a row.
    """
    of_passage = {*grams(passage, size)}
    hits = [at for at, gram in enumerate(grams(document, size)) if gram in of_passage]
    for at in hits:
        if at < first < at + size:
            first = at + size
    for at in reversed(hits):
        if at < stop < at + size:
            stop = at
    return first, stop


# Kinds --------------------------------------------------------------------------------------------


def kind(
    counts: Mapping[str, int],
    *,
    n_family: int,
    units_per_word: int = 1,
    passage: float | None,
    is_sibling: bool,
    is_answered: bool,
    told: float = 0.0,
) -> tuple[str, float] | None:
    """Return the kind of a place, and its score."""
    fewest = 7 * units_per_word
    n, found = counts["n_units"], counts["n_found"]
    is_whole = found == n and not counts["n_inserted"]
    has_passage = passage is not None and passage >= 0.5
    if counts["weight_found"] < 12_000 and not (is_whole and (is_answered or has_passage)):
        return None
    is_of_family = n_family >= 20
    share = counts["weight_found"] / counts["weight"]
    own = _share_of_own(counts, share, is_whole, n_family, passage, is_sibling, told)
    is_most = (
        share >= 0.4
        and found >= fewest
        and counts["extent"] >= 0.6 * n
        and (3 * counts["n_inserted"] < found or counts["n_in_pieces"] >= 0.9 * n)
    )
    template = ("template", share) if share >= 0.4 else None
    if is_whole and own > 0 and not is_sibling:
        return "verbatim", 1.0
    if counts["words_found"] < 2_000 and found < 0.85 * n:
        return None
    if is_sibling:
        return template
    changed = {kind: counts[f"n_{kind}_changed"] for kind in ("numbers", "names")}
    are_other = {
        kind: n_changed > 0 and n_changed >= least * counts[f"n_{kind}_found"]
        for (kind, n_changed), least in zip(changed.items(), (0.5, 1), strict=True)
    }
    if (
        is_most
        and any(are_other.values())
        and found >= 0.75 * (n - sum(changed.values()))
        and (own >= 0.4 or not is_of_family)
    ):
        return "variant", share
    is_telling = counts["own_found"] >= 5_000 or counts["own_runs_found"] >= 9_000
    is_fifth = 5 * counts["weight_found"] >= counts["weight"]
    is_long = counts["longest"] >= max(20 * units_per_word, 0.2 * n)
    is_long_run = not is_most and is_fifth and is_long
    if (
        is_telling
        and (is_long_run or counts["longest"] >= max(fewest, 0.4 * n))
        and (found < 0.7 * n or not is_most)
        and not has_passage
    ):
        return "part", share
    if is_most and own >= (0.75 if is_of_family else 0.4):
        return "edited", min(share, own)
    if is_whole and told >= 0.4:
        return "part", share
    return template if is_of_family or own < 0.4 else None


def _share_of_own(
    counts: Mapping[str, int],
    share: float,
    is_whole: bool,
    n_family: int,
    passage: float | None,
    is_sibling: bool,
    told: float,
) -> float:
    """Return how much of what tells an item from others was found; 0 if nothing tells it."""
    has_own = counts["own_weight"] >= 5_000
    own = counts["own_found"] / counts["own_weight"] if has_own else 0.0
    if passage is None:
        if not has_own and not is_sibling and (is_whole or share >= 0.85):
            return share
        return own
    if passage >= 0.5 or told >= 1:
        return max(own, share)
    return own if n_family < 20 else 0.0


# Sentences ----------------------------------------------------------------------------------------


def sentences(text: str) -> list[tuple[int, bool]]:
    """Return the character behind each sentence of a text without mark-up, and whether it asks."""
    ends = [
        (at, sign in "?？؟")
        for at, sign in enumerate(text)
        if sign in "。！？"
        or (sign in ".!?؟।" and (at + 1 == len(text) or text[at + 1] in " \n\t\"'”’)]*"))
    ]
    return [*ends, (len(text), False)]


def has_sentences(
    found: Sequence[bool], weights: Sequence[int], sentence_of: Sequence[int], asking: int
) -> bool:
    """Return whether enough of each heavy sentence, of each half, and of what asks was found.

    `sentence_of`: the sentence of each unit.
    """
    half = (len(found) + 1) // 2
    for start in range(len(found) - half + 1):
        if _is_missing(found, weights, range(start, start + half), 0.4):
            return False
    for sentence in {*sentence_of}:
        units = [at for at, of in enumerate(sentence_of) if of == sentence]
        is_heavy = sum(weights[at] for at in units) >= 0.15 * sum(weights)
        if is_heavy and _is_missing(found, weights, units, 0.4):
            return False
        if sentence == asking and (
            _is_missing(found, weights, units, 0.5)
            or _is_missing(found, [1] * len(weights), units, 0.5)
        ):
            return False
    return True


def _is_missing(
    found: Sequence[bool], weights: Sequence[int], units: Sequence[int], least: float
) -> bool:
    n_lost = sum(not found[at] for at in units)
    there = sum(weights[at] for at in units if found[at])
    return n_lost >= 3 and there < least * sum(weights[at] for at in units)
