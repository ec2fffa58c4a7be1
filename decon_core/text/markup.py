"""Remove mark-up from texts, and map offsets back.

`docs/decon-detector.md` defines mark-up; the simple version is in `tests/oracle/text.py`. Texts
without mark-up are returned unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from decon_core.kernels import markup
from decon_core.kernels.arrays import Bytes, Integers
from decon_core.kernels.html_tags import NUMBERS, POINT_BITS, Names, hash_of
from decon_core.text.characters import (
    COMMANDS,
    ENTITIES,
    LIKE_ESCAPES,
    N_CASED,
    TAGS,
    WINDOWS_1252,
)

_INITIAL_SIGNS = 1 << 12
_NO_EDITS = np.empty((0, markup.EDIT_NUMBERS), np.int64)


class Stripper:
    """Remove mark-up from batches of texts. One per thread: it holds scratch arrays."""

    def __init__(self) -> None:
        self._signs = np.empty(_INITIAL_SIGNS, np.int64)
        self._out = np.empty(0, np.uint8)

    def strip(
        self, text: Bytes, starts: Integers, stops: Integers
    ) -> tuple[Bytes, Integers, Integers]:
        """Return texts without mark-up, starts and stops; valid until the next call."""
        # Another array type would make the kernels compile again.
        is_usual = text.flags.writeable and text.ctypes.data % 8 == 0
        data = text if is_usual else text.copy()
        signs = self.signs(data, int(starts.min(initial=text.size)), int(stops.max(initial=0)))
        if not signs.size:
            return data, starts, stops
        size = int((stops - starts).sum())
        if self._out.size < size:
            self._out = np.empty(2 * size, np.uint8)
        offsets = np.zeros(starts.size + 1, np.int64)
        texts = data, starts, stops, signs, np.searchsorted(signs, starts)
        markup.strip(*texts, _tables(), self._out, offsets, _NO_EDITS)
        return self._out, offsets[:-1], offsets[1:]

    def signs(self, text: Bytes, start: int, stop: int) -> Integers:
        """Return the positions at which mark-up may begin."""
        n = 0
        while start < stop:
            n_signs, start = markup.find_signs(text, start, stop, self._signs[n:])
            n += n_signs
            if start < stop:
                self._signs = np.concatenate([self._signs, np.empty_like(self._signs)])
        return self._signs[:n]


def compile_markup() -> None:
    """Compile the kernels by stripping a text that needs each of them."""
    stripped_with_offsets("<b>a</b>")


@dataclass(frozen=True, eq=False)
class Stripped:
    """A text without mark-up, and for each character its original range."""

    text: str
    starts: Integers
    stops: Integers

    def original(self, start: int, stop: int) -> tuple[int, int]:
        """Map a range of its characters to original characters."""
        return int(self.starts[start]), int(self.stops[stop - 1])


# A pattern that begins with one character is searched ten times as fast as one with a choice.
_JOINTS = [(hyphen, re.compile(f"{hyphen}[ \t]*\r?\n")) for hyphen in "-\u2010\u00ad"]


def may_have_markup(text: str) -> bool:
    """Return whether a text has any sign of mark-up; most have none, and need no kernels."""
    if "<" in text or "&" in text or "%" in text or "\\" in text or "](" in text:
        return True
    if "\x1b" in text or "^[[" in text:
        return True
    if "\n" in text:
        for hyphen, joint in _JOINTS:
            if hyphen in text and joint.search(text):
                return True
    return False


def stripped(text: str) -> str:
    """Return a text without mark-up."""
    if not may_have_markup(text):
        return text
    content = np.frombuffer(text.encode(), np.uint8).copy()
    edges = np.array([0, content.size])
    left, starts, stops = Stripper().strip(content, edges[:1], edges[1:])
    return text if left is content else left[starts[0] : stops[0]].tobytes().decode()


def stripped_with_offsets(text: str) -> Stripped:
    """Return a text without mark-up, with the original offsets of every character."""
    return _stripped_together([text])[0]


def stripped_texts(texts: Sequence[str]) -> list[Stripped | None]:
    """Return what each text is without mark-up; None of those that have none."""
    having = [at for at, text in enumerate(texts) if may_have_markup(text)]
    stripped: list[Stripped | None] = [None] * len(texts)
    for at, left in zip(having, _stripped_together([texts[at] for at in having]), strict=True):
        stripped[at] = left
    return stripped


def _stripped_together(texts: Sequence[str]) -> list[Stripped]:
    if not texts:
        return []
    contents = [text.encode() for text in texts]
    edges = np.cumsum([0, *map(len, contents)])
    content = np.frombuffer(b"".join(contents), np.uint8).copy()
    signs = Stripper().signs(content, 0, content.size)
    out, offsets = np.empty(content.size, np.uint8), np.zeros(edges.size, np.int64)
    edits = np.empty((signs.size, markup.EDIT_NUMBERS), np.int64)
    of_texts = content, edges[:-1], edges[1:], signs, np.searchsorted(signs, edges[:-1])
    n = markup.strip(*of_texts, _tables(), out, offsets, edits)
    left = out[: offsets[-1]]
    starts, stops = np.empty((2, left.size), np.int64)
    n_characters = markup.original_characters(content, edits[:n], left, starts, stops)
    text = left.tobytes().decode()
    n_before = np.append(0, np.cumsum(left & 0xC0 != 0x80))[offsets]
    of_text = np.repeat(np.cumsum([0, *map(len, texts)])[:-1], np.diff(n_before))
    starts, stops = starts[:n_characters] - of_text, stops[:n_characters] - of_text
    return [
        Stripped(text[first:stop], starts[first:stop], stops[first:stop])
        for first, stop in pairwise(n_before.tolist())
    ]


@lru_cache(maxsize=1)
def _tables() -> markup.Tables:
    numbers = [WINDOWS_1252.get(number, number) for number in range(0x80, 0xA0)]
    is_lower = np.strings.islower(np.arange(N_CASED, dtype=np.uint32).view("U1"))
    last = int(np.flatnonzero(is_lower)[-1])
    return markup.Tables(
        tags=_names(TAGS),
        entities=_names(ENTITIES),
        commands=_names(COMMANDS),
        like_escapes=_names(dict.fromkeys(sorted(LIKE_ESCAPES), "")),
        windows_1252=np.array(numbers),
        is_lower=is_lower[: last + 1].copy(),
    )


def _names(values: Mapping[str, str]) -> Names:
    names = [name.encode() for name in values]
    data = np.frombuffer(b"".join(names), np.uint8).copy()
    n_slots = 2 * len(names) + 1
    slots = np.zeros(NUMBERS * n_slots, np.int64)
    stop = 0
    for name, text in zip(names, values.values(), strict=True):
        start, stop = stop, stop + len(name)
        slot = hash_of(data, start, stop) % n_slots
        while slots[NUMBERS * slot + 1]:
            slot = (slot + 1) % n_slots
        value = sum(ord(char) << POINT_BITS * at for at, char in enumerate(text))
        slots[NUMBERS * slot : NUMBERS * (slot + 1)] = start, stop, value
    return Names(data, slots)
