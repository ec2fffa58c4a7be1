"""Rows of published layouts, and of layouts that nobody published, with a sentence in every slot.

The layouts are in layouts.yaml, which explains how they are written. A slot is a place for text in
a row. It has a path as `messages[].tool_calls[].function.arguments (JSON).*`, where `[]` is any
element, `(JSON)` means that the string holds JSON and the path goes on inside it, and `.*` is every
key below; and a place, which is the same for one row, as `messages[2].content`.

Nothing here reads rows as the product does: what is expected is known from how rows were made.
"""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROLES = ("system", "developer", "user", "assistant", "tool", "tools", "text", "hidden")
_SLOT = re.compile(r"\$([a-z]+)(?:\.([a-z]+))?")
_OPTIONAL = re.compile(r"\((.*?)(~?)\)")
_N_ROWS = 3  # of each template


@dataclass(frozen=True)
class Layout:
    """Templates of rows, and the forms of file in which such rows are published."""

    name: str
    family: int
    rows: Sequence[Any]
    files: Sequence[str] = ("jsonl",)
    is_session: bool = False  # each template once: the file is one document
    n_rows: int = 0

    def template(self, row: int) -> Any:
        return self.rows[row % len(self.rows)]


@dataclass(frozen=True)
class Slot:
    """A sentence that was put into a row."""

    row: int
    path: str
    place: str
    role: str
    repeats: bool  # a slot before it in this file has the same sentence
    text: str

    @property
    def is_visible(self) -> bool:
        """Whether a model sees it."""
        return self.role != "hidden"


@dataclass(frozen=True)
class Encoded:
    """A value that rows hold as a string: as JSON, or as Python prints it."""

    value: Any
    form: str = "json"


@dataclass(frozen=True)
class AnyKeys:
    """A value whose keys are data."""

    value: Any


class Sentences:
    """Makes sentences of 9 to 14 made-up words in several scripts, each only once."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(f"sentences {seed}")
        syllables = [onset + vowel for onset in "bdfghklmnprstv" for vowel in "aeiou"]
        self._words = sorted(
            {
                "".join((*self._rng.choices(syllables, k=2), self._rng.choice("nlrs")))
                for _ in range(1500)
            }
        )
        self._made: set[tuple[str, ...]] = set()

    def __call__(self, *, is_plain: bool = False) -> str:
        """Return a new sentence; a plain one has nothing that JSON or Python would escape."""
        words = self._rng.sample(self._words, self._rng.randint(9, 14))
        if tuple(words) in self._made:
            return self(is_plain=is_plain)
        self._made.add(tuple(words))
        style = 0 if is_plain else len(self._made) % len(_STYLES)
        return _STYLES[style](words)


_CYRILLIC = str.maketrans("abdefghiklmnoprstuv", "абдефгхиклмнопрстув")
_HAN = str.maketrans("abdefghiklmnoprstuv", "山水木火土金石田力口日月目手足犬牛羊鳥")
_STYLES: tuple[Callable[[list[str]], str], ...] = (
    lambda words: f"{' '.join(words).capitalize()}.",
    lambda words: f"{' '.join(words[:4])}\n{' '.join(words[4:])}",
    lambda words: f'{words[0]} "{" ".join(words[1:4])}" {" ".join(words[4:])}?',
    lambda words: " ".join(f"{word}é" if word > "h" else f"Ü{word}" for word in words),
    lambda words: f"{' '.join(words[:5])}:\r\n\t{' '.join(words[5:])}\n",
    lambda words: f"{' '.join(words[:3])} \\ {' '.join(words[3:6])} — “{' '.join(words[6:])}”",
    lambda words: " ".join(word.translate(_CYRILLIC) for word in words),
    lambda words: f"{''.join(words).translate(_HAN)}。",  # a script without spaces
)  # fmt: skip


@cache
def layouts() -> Mapping[str, Layout]:
    """Return the published layouts by name."""
    path = Path(__file__).with_suffix(".yaml")
    table = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    del table["shared"]
    return {name: _layout(name, entry) for name, entry in table.items()}


def _layout(name: str, entry: Mapping[str, Any]) -> Layout:
    rows, is_session = entry["rows"], entry.get("session", False)
    n_rows = len(rows) * (1 if is_session else _N_ROWS)
    return Layout(
        name, entry["family"], rows, entry.get("files", ("jsonl",)), is_session, n_rows=n_rows
    )


class _Loader(yaml.CSafeLoader):
    """Reads the tags of layouts.yaml."""


def _value(loader: _Loader, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    return loader.construct_sequence(node, deep=True)


_Loader.add_constructor("!json", lambda *node: Encoded(_value(*node)))
_Loader.add_constructor("!repr", lambda *node: Encoded(_value(*node), "repr"))
_Loader.add_constructor("!any", lambda *node: AnyKeys(_value(*node)))
_Loader.add_constructor("!arguments", lambda *node: Encoded(AnyKeys(_value(*node))))


def rows_of(
    layout: Layout, seed: int, sentence: Sentences, *, shuffles_keys: bool = False
) -> tuple[list[Any], list[Slot]]:
    """Return rows of a layout and what was put into them; the first row has every optional key."""
    rng = random.Random(f"{layout.name} {seed}")
    order = random.Random(f"order of keys {seed}") if shuffles_keys else None
    rows, slots = [], []
    session = _Filling(0, rng, sentence)
    for row in range(layout.n_rows):
        filling = session if layout.is_session else _Filling(row, rng, sentence)
        filling.row, filling.has_all = row, row < len(layout.rows)
        is_ascii = rng.random() < 0.5
        rows.append(_rendered(filling.fill(layout.template(row), "", ""), is_ascii, order))
        if not layout.is_session:
            slots += filling.slots
    return rows, slots or session.slots


@dataclass
class _Filling:
    """Fills templates with sentences."""

    row: int
    rng: random.Random
    sentence: Sentences
    has_all: bool = True
    names: dict[str, str] = field(default_factory=dict)
    slots: list[Slot] = field(default_factory=list)

    def fill(self, node: Any, path: str, place: str) -> Any:
        """Return a value with sentences, in which strings that hold JSON are still `Encoded`."""
        match node:
            case dict():
                return self._filled_object(node, path, place)
            case list():
                return [
                    self.fill(one, _below(path, "[]"), _below(place, f"[{number}]"))
                    for number, one in enumerate(node)
                ]
            case Encoded(value, "json"):
                return Encoded(self.fill(value, _below(path, " (JSON)"), f"{place} (JSON)"))
            case Encoded(value, form):  # no path goes on inside it
                plain = _Filling(self.row, self.rng, self.sentence, names={"": ""})
                filled = Encoded(plain.fill(value, "", ""), form)
                self.slots += [
                    Slot(self.row, path, place, one.role, one.repeats, one.text)
                    for one in plain.slots
                ]
                return filled
            case AnyKeys(value):
                return self.fill(value, f"{path}.*", place)
            case str():
                return _SLOT.sub(lambda found: self._text(found, path, place), node)
        return node

    def _filled_object(self, node: dict[str, Any], path: str, place: str) -> dict[str, Any]:
        filled = {}
        for key, value in node.items():
            optional = _OPTIONAL.fullmatch(key)
            name = optional[1] if optional else key
            if optional and not self.has_all and self.rng.random() < 0.6:
                if optional[2]:
                    filled[name] = None
                continue
            step = f".{name}" if place else name
            filled[name] = self.fill(value, _below(path, step), place + step)
        return filled

    def _text(self, found: re.Match[str], path: str, place: str) -> str:
        role, name = found.groups()
        if role not in ROLES:
            raise ValueError(f"{place}: ${role} is none of {ROLES}")
        # A sentence inside other text must be the same in whatever quotes it stands.
        is_plain = found[0] != found.string or "" in self.names
        text = self.names.get(name) or self.sentence(is_plain=is_plain)
        self.slots.append(Slot(self.row, path, place, role, name in self.names, text))
        if name:
            self.names[name] = text
        return text


def _below(path: str, step: str) -> str:
    """Return the path of a value inside another one; below `.*` it stays the same."""
    if path.endswith(".*"):
        return path
    return f"{path} {step}" if path.endswith(" (JSON)") and step[0] == "[" else path + step


def _rendered(value: Any, is_ascii: bool, order: random.Random | None) -> Any:
    match value:
        case dict():
            keys = order.sample([*value], len(value)) if order else value
            return {key: _rendered(value[key], is_ascii, order) for key in keys}
        case list():
            return [_rendered(one, is_ascii, order) for one in value]
        case Encoded(inner, form):
            plain = _rendered(inner, is_ascii, order)
            return repr(plain) if form == "repr" else json.dumps(plain, ensure_ascii=is_ascii)
    return value


def string_leaves(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Return every string of a row with its place, decoding strings that are JSON as a whole."""
    match value:
        case dict():
            for key, one in value.items():
                yield from string_leaves(one, f"{place}.{key}" if place else key)
        case list():
            for number, one in enumerate(value):
                yield from string_leaves(one, _below(place, f"[{number}]"))
        case str():
            decoded = _decoded(value)
            if decoded is None:
                yield place, value
            else:
                yield from string_leaves(decoded, f"{place} (JSON)")


def _decoded(text: str) -> Any:
    """Return the object or list that a string holds as JSON, or None."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


# Layouts that nobody published

_LATE_ROW = 40
# Names that mean something elsewhere, and names that are hard to write as a path.
_KEYS = (
    *("messages", "content", "text", "role", "tool_calls", "arguments", "signature", "images"),
    *("metadata", "id", "url", "data", "choices", "value", "input", "output", "history", "meta"),
    *("glarn", "vosk_ti", "Pelu", "tovar", "x", "zig-zag", "two words", "a.b", "c[0]", "d[]", "a*"),
    *(
        "clé",
        "ключ",
        "鍵",
        'q"uote',
        "back\\slash",
        "(JSON)",
        "$ref",
        "@type",
        "0",
        "🙂",
        "new\nline",
    ),
)


def unknown_layout(seed: int) -> Layout:
    """Return a random layout: nested objects and lists, JSON in strings, mixed types, noise."""
    rng = random.Random(f"unknown {seed}")
    rows: list[Any] = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):  # several shapes in one file
        row = _random_object(rng, rng.randint(1, 6))
        rows.append(row | {"last": "$text"})
    n_rows = len(rows) * _N_ROWS
    if seed % 10 == 0:
        early = {"first": "$text"}
        late = _random_object(rng, 3) | early | {"key of a late row": "$text"}
        rows, n_rows = [early] * _LATE_ROW + [late, late], _LATE_ROW + 2
    return Layout(f"unknown_{seed:04}", 0, rows, n_rows=n_rows)


def unknown_rows(seed: int, sentence: Sentences) -> tuple[list[Any], list[Slot]]:
    """Return rows of a random layout, and every sentence that was put into them."""
    return rows_of(unknown_layout(seed), seed, sentence)


def _random_object(rng: random.Random, depth: int) -> dict[str, Any]:
    keys = rng.sample(_KEYS, rng.randint(2, 4))
    return {key: _random_value(rng, depth - 1) for key in keys}


def _random_value(rng: random.Random, depth: int) -> Any:
    kinds = ["text", "noise"] + ["object", "list", "mixed", "lists", "json"] * (depth > 0)
    match rng.choice(kinds):
        case "text":
            return "$text"
        case "noise":
            return _noise(rng)
        case "object":
            return _random_object(rng, depth)
        case "list":
            one = _random_value(rng, depth - 1)
            return [one] * rng.randint(0, 3)
        case "mixed":
            return [_random_value(rng, depth - 1), "$text", 3, None, ["$text"], True, {}, ""]
        case "lists":
            return [["$text", _random_value(rng, depth - 2)], [], ["$text"]]
        case _:
            return Encoded(rng.choice((_random_object(rng, depth), ["$text", _twice(rng, depth)])))


def _twice(rng: random.Random, depth: int) -> Any:
    return {"inner": Encoded({**_random_object(rng, depth), "again": "$text"})}


def _noise(rng: random.Random) -> Any:
    """Return a value without text."""
    binary = base64.b64encode(rng.randbytes(rng.randint(60, 400))).decode()
    return rng.choice(
        (
            *(binary, f"data:image/png;base64,{binary}", f"data:text/plain;base64,{binary}"),
            *(None, True, 0, -1.5, 2**60, "", [], {}, "a short value", "https://example.org/a?b=c"),
        )
    )


def made_up_slots(folder: Path) -> dict[str, list[Slot]]:
    """Return the sentences of `slots.jsonl` in a folder, by the file of the folder they are in."""
    slots: dict[str, list[Slot]] = {}
    with (folder / "slots.jsonl").open(encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            role = (line["role"] or "text") if line["visible"] else "hidden"
            path = line["slot"]
            slots.setdefault(line["file"], []).append(
                Slot(line["row"], path, path, role, False, line["text"])
            )
    return slots
