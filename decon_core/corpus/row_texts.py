"""The text of a row: every string in it, what of it is visible, hidden or unread, and its places.

This is the plain form of the compiled reader (`kernels/row_texts.py`), and reads what that leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import itemgetter
from typing import Any

import numpy as np

from decon_core.config.layouts import Layout
from decon_core.corpus.fields import ANSWERS, RANKS, Field, FieldTree, Kind, rank_of
from decon_core.corpus.origins import Origins, origins_of_row
from decon_core.corpus.row_json import decoded, without_lone_surrogates
from decon_core.corpus.string_kinds import (
    FIRST_ENCODED,
    StringKind,
    counts_of_encoded,
    ids_in_strings,
    is_text,
    kind_of,
    n_bytes_of_text,
    n_ids,
    pieces_in,
    runs_in,
    text_of_bytes,
)
from decon_core.kernels.string_kinds import LEAST_NUMBERS, LEAST_REPEATED

Keys = tuple[str | int, ...]  # path from a row down to a value; JSON in strings takes no step

SEPARATOR = "\n\n"  # between the parts of a document
_LEAST_APART = 200  # bytes between two copies of a text that are both read
LONGEST_NAME = 32  # characters of a key that is not looked at
KEY = "<key>"  # the last step to a key of an object that is itself a text


class WholeRow(dict[str, Any]):
    """A row that mixtures keep or drop, and never cut."""


@dataclass(slots=True)
class Slot:
    """A string of a row that is read."""

    keys: Keys
    text: str
    copies: tuple[Keys, ...] = ()  # other places of the row with the same text

    @property
    def path(self) -> str:
        return path_of(self.keys)


@dataclass(frozen=True)
class RowText:
    """The strings of a row that are read, in reading order, and those that are not."""

    layout: Layout
    visible: Sequence[Slot]
    hidden: Sequence[Slot]
    unread: Mapping[str, list[int]]  # values and bytes, by path
    origins: Origins


def path_of(keys: Keys) -> str:
    """Format the place of a value in a row: `messages[2].content`."""
    if keys[-1:] == (KEY,):
        keys = (*keys[:-2], KEY)  # the text is not its own place
    parts = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return without_lone_surrogates("".join(parts).removeprefix("."))


def text_of_row(value: Mapping[str, Any], tree: FieldTree) -> RowText:
    """Return the text of a parsed row."""
    strings, numbers = _strings_of(value, tree)
    marks = 0
    for at, _, _ in strings:
        marks |= at.marks
    layout = tree.layout_of(marks)
    read: dict[Kind, list[tuple[int, Slot]]] = {Kind.VISIBLE: [], Kind.HIDDEN: []}
    texts: list[tuple[Field, str]] = []
    runs: dict[Field, list[str]] = {}
    encoded: dict[Field, list[tuple[StringKind, str, int]]] = {}
    # Short strings of lists, which are one text together. Keys may contain dots.
    pieces: dict[tuple[str, int], tuple[str, list[str]]] = {}
    unread: dict[str, list[int]] = {}
    for at, keys, text in strings:
        kind = kind_of(text, at.use, is_named=at.has_tokens)
        if kind is StringKind.PIECE:
            pieces.setdefault((at.path, at.number), (at.shown, []))[1].append(text)
        elif kind is not StringKind.TEXT:
            if kind.step:
                found = kind, text[:FIRST_ENCODED], len(text.encode())
                encoded.setdefault(at, []).append(found)
        elif at.place is None:
            _count(unread, at.shown, text)
        else:
            read[at.kind(layout)].append((at.place, Slot(keys, text)))
            texts.append((at, text))
            if lines := runs_in(text):
                runs.setdefault(at, []).extend(lines)
    if len(tree.paths) > 1:
        read[Kind.VISIBLE].sort(key=itemgetter(0))
    visible, hidden = (_once(slot for _, slot in slots) for slots in read.values())
    origins = origins_of_row((at, text) for at, _, text in strings)
    if not tree.is_counting:
        return RowText(layout, visible, hidden, {}, origins)
    for path, short in pieces.values():
        if is_text(" ".join(short)):
            _count(unread, path, "".join(short))
    if visible or hidden:  # of a row without text, the ledger names what it holds instead
        for at, of_field in encoded.items():
            for path, n_bytes in counts_of_encoded(at, of_field):
                _add(unread, path, n_bytes)
        for at, lines in runs.items():
            if n_bytes := n_bytes_of_text(lines):
                _add(unread, f"{at.shown}.{StringKind.BASE64.step}", n_bytes)
        for at, n in (*numbers, *ids_in_strings(texts), *pieces_in(texts)):
            _add(unread, f"{at.shown}.{StringKind.TOKENS.step}", n)
    return RowText(layout, visible, hidden, unread, origins)


def _count(counts: dict[str, list[int]], path: str, text: str) -> None:
    _add(counts, path, len(text.encode()))


def _add(counts: dict[str, list[int]], path: str, n_bytes: int) -> None:
    of_path = counts.setdefault(path, [0, 0])
    of_path[0] += 1
    of_path[1] += n_bytes


def _strings_of(
    row: object, tree: FieldTree
) -> tuple[list[tuple[Field, Keys, str]], list[tuple[Field, int]]]:
    """Return every string of a row that is not empty, in reading order, and lists of tokens."""
    strings: list[tuple[Field, Keys, str]] = []
    numbers: list[tuple[Field, int]] = []
    waiting: list[tuple[object, Field, Keys]] = [(row, tree.root, ())]
    while waiting:  # rows may be nested more deeply than calls
        value, at, keys = waiting.pop()
        if isinstance(value, bytes):
            if at.has_tokens and len(value) >= 2 * LEAST_NUMBERS and not text_of_bytes(value):
                numbers.append((at, len(value)))
            value = text_of_bytes(value)
        if isinstance(value, int | float | Decimal):
            if at.is_answer and at.place is not None and value == value:  # NaN is not
                strings.append((at, keys, text_of_number(value)))
        elif isinstance(value, str):
            if (inner := decoded(value) if at.is_decoded else None) is not None:
                waiting.append((inner, at, keys))
            elif value:
                strings.append((at, keys, without_lone_surrogates(value)))
        else:
            if n := n_ids(value, at):
                numbers.append((at, n))
            waiting += [*_members(value, at, keys, tree)][::-1]
    return strings, numbers


def _members(
    value: object, at: Field, keys: Keys, tree: FieldTree
) -> Iterator[tuple[object, Field, Keys]]:
    """Yield what is in an object or a list, in reading order, and may hold a string."""
    if isinstance(value, dict):
        is_in_order = RANKS.keys().isdisjoint(value)
        for key, inner in value.items() if is_in_order else sorted(value.items(), key=rank_of):
            if len(key) > LONGEST_NAME and is_text(name := without_lone_surrogates(key)):
                yield name, at.child(KEY), (*keys, key, KEY)
            if isinstance(inner, _HOLDING) or key in ANSWERS:
                yield inner, at.child(key), (*keys, key)
    elif isinstance(value, list | tuple):
        element, has_turns = at.element, tree.roles and at.path in tree.paths
        for number, inner in enumerate(value):
            if isinstance(inner, _HOLDING):
                below = element
                if has_turns and (role := role_of(inner)) not in tree.roles:
                    below = element.of_role(role)
                yield inner, below, (*keys, number)


_LEAST_EXPONENT = 1e16  # Python writes larger numbers with an exponent
_HOLDING = (str, bytes, dict, list, tuple)  # values that may hold a string


def text_of_number(value: float | Decimal) -> str:
    """Format a number or a boolean as the text of an answer: 48.0 is 48.

    A float of 32 bits has as few digits as it was written with: 0.1.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, float) or abs(value) >= _LEAST_EXPONENT:
        return str(value)
    if value.is_integer():
        return str(int(value))
    short = np.float32(value)
    return str(short if float(short) == value else value)


def role_of(turn: object) -> object:
    return turn.get("role", turn.get("from")) if isinstance(turn, dict) else None


def _once(slots: Iterator[Slot]) -> list[Slot]:
    """Return the slots with each longer text once, where it stands first, or again."""
    copies: dict[str, list[Keys]] = {}  # of each longer text, after its first place
    kept: list[Slot] = []
    all_slots = [*slots]
    texts = [slot.text.encode() for slot in all_slots]
    again = read_again(texts)
    for at, slot in enumerate(all_slots):
        if len(texts[at]) >= LEAST_REPEATED and at not in again:
            if slot.text in copies:
                copies[slot.text].append(slot.keys)
                continue
            copies[slot.text] = []
        kept.append(slot)
    for slot in kept:
        slot.copies = tuple(copies.pop(slot.text, ()))
    return kept


def read_again(texts: Sequence[bytes]) -> set[int]:
    """Return which repeats of texts are read again: those of questions with another short answer.

    An answer is looked for behind its question. A repeat is read again if a short text follows it
    that did not follow it before, unless the text that was read last is near.
    """
    stops: dict[bytes, int] = {}  # where each longer text was read last
    followed: set[tuple[bytes, bytes]] = set()
    again: set[int] = set()
    n = 0
    for at, text in enumerate(texts):
        if len(text) >= LEAST_REPEATED:
            pair = text, next(iter(texts[at + 1 : at + 2]), text)
            is_answered = len(pair[1]) < LEAST_REPEATED and pair not in followed
            if is_answered:
                followed.add(pair)
            if text in stops:
                if not is_answered or n - stops[text] < _LEAST_APART:
                    continue
                again.add(at)
            stops[text] = n + len(text)
        n += len(text)
    return again
