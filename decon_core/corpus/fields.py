"""The fields that rows have, as a tree, and what a source does with the text in each.

All elements of a list are one field, and so is a value whether it is written as JSON or as a string
that holds JSON: `messages[].tool_calls[].function.arguments.city`. Fields are added as rows have
them; the compiled reader has a copy of the tree.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from enum import IntEnum
from functools import cached_property, lru_cache
from importlib.resources import files
from threading import RLock

from decon_core.config.layouts import EVERYTHING, UNKNOWN, Layout, covers, known_layouts, leads_to
from decon_core.config.sources import Source
from decon_core.corpus.row_json import shown_key, without_lone_surrogates
from decon_core.kernels.string_kinds import COUNT, COUNT_TOGETHER, IGNORE, READ, READ_IF_TEXT

_NAMES = tomllib.loads(files(__package__).joinpath("field_names.toml").read_text("utf-8"))
LABELS, ANSWERS = frozenset(_NAMES["labels"]), frozenset(_NAMES["answers"])
ORIGINS, SPLITS = frozenset(_NAMES["origins"]), frozenset(_NAMES["splits"])
_MIDDLE = len(_NAMES["before"])  # the rank of fields with other names
# The order of fields with known names among their siblings.
RANKS = {name: rank for rank, names in enumerate(_NAMES["before"]) for name in names} | {
    name: rank for rank, names in enumerate(_NAMES["after"], _MIDDLE + 1) for name in names
}

# Names of lists of token ids, such as `prompt_token_ids`. Those of pictures or sound are no text.
_TOKENS = re.compile(
    r"\w*(?:input|token|prompt|completion|response|output|generated|chosen|rejected|text|query|target"
    r"|label|context|question|answer|solution)_?ids(?:\.npy)?"
    r"|(?:(?!n_|num_)\w*tokens|\w+_tensors?)(?:\.npy)?",
    re.ASCII | re.IGNORECASE,
)

# Kept of a source. Keys may be data, such as names of users, which would fill the memory.
MOST_FIELDS = 1 << 14


def rank_of(member: tuple[str, object]) -> int:
    """Return where a member of an object, a name with a value, comes among the others."""
    return RANKS.get(member[0], _MIDDLE)


class Kind(IntEnum):
    """What is done with the text in a field."""

    VISIBLE = 1
    HIDDEN = 2  # read, apart from the visible text
    UNREAD = 3  # counted


class Names(IntEnum):
    """What a short value of a field may name."""

    NOTHING = 0
    ORIGIN = 1  # the dataset that the row is from
    SPLIT = 2  # the split of this dataset


class Field:
    """A place in rows, and those below it."""

    def __init__(
        self, tree: FieldTree, path: str, *, key: str | None, parent: Field | None
    ) -> None:
        self.path, self.key, self.parent = path, key, parent
        # Numbers follow the order in which rows had them; below 0: made anew for each row.
        self.number = len(tree.fields) if len(tree.fields) < MOST_FIELDS else -1
        self.is_label = key in LABELS and path not in tree.paths
        self.rank = RANKS.get(key or "", _MIDDLE)
        self.is_in_list: bool = parent is not None and (key is None or parent.is_in_list)
        # Whether short strings here that are not read are one text together.
        self.is_joined = self.is_in_list and not self.is_label
        # Whether whole numbers in a list here are token ids.
        self.has_tokens: bool = (
            bool(_TOKENS.fullmatch(key)) if key is not None else bool(parent and parent.has_tokens)
        )
        # Whether this may be a member of an archive with an array, which is passed over.
        self.is_of_arrays = (key or "").lower().endswith(".npy")
        # Whether a number or a boolean here is read as text, if any text here is.
        self.is_answer = key in ANSWERS
        self.children: dict[str, Field] = {}
        self._kinds: dict[str, Kind] = {}
        self._tree = tree
        if self.number >= 0:
            tree.fields.append(self)

    def child(self, key: str) -> Field:
        """Return the field of a key; add it if no row had it before."""
        known = self.children.get(key)
        return self._tree.add(self, key) if known is None else known

    @cached_property
    def element(self) -> Field:
        """The field of the elements of a list. They may be pieces of a text: no labels."""
        with self._tree.lock:
            return Field(self._tree, f"{self.path}[]", key=None, parent=self)

    @property
    def is_element(self) -> bool:
        return self.key is None and self.parent is not None

    @property
    def has_element(self) -> bool:
        return "element" in self.__dict__

    @cached_property
    def shown(self) -> str:
        """The path as messages and reports name it, with `*` for keys that are sentences."""
        if self.parent is None:
            return self.path
        if self.key is None:
            return f"{self.parent.shown}[]"
        separator = "." if self.parent.path and not self.key.startswith("[") else ""
        return f"{self.parent.shown}{separator}{without_lone_surrogates(shown_key(self.key))}"

    def of_role(self, role: object) -> Field:
        """Return the field of turns that are left out because of their role."""
        return self.child(f"[role={role}]")

    @cached_property
    def marks(self) -> int:
        """The marks of layouts that text here sets, as bits."""
        if self._tree.is_uniform:
            return 0
        marks, closed = _marks()
        bits = sum(1 << at for at, mark in enumerate(marks) if covers(mark, self.path))
        return bits | sum(1 << at for at, layout in closed if not layout.names(self.path))

    @cached_property
    def names(self) -> Names:
        """What a short value here may name: that of a field of the row, or one level below it."""
        above, _, key = self.path.rpartition(".")
        if not self._tree.is_counting or "." in above or "[" in self.path:
            return Names.NOTHING
        return Names.ORIGIN if key in ORIGINS else Names.SPLIT if key in SPLITS else Names.NOTHING

    @cached_property
    def place(self) -> int | None:
        """The first of the source's paths that covers this field; None: it is not read."""
        if "[role=" in self.path:
            return None
        paths = self._tree.paths
        if not paths:
            return 0
        return next((at for at, path in enumerate(paths) if covers(path, self.path)), None)

    @cached_property
    def use(self) -> int:
        """What is done with the strings of this field, in rows of any layout."""
        if self.place is not None:
            return READ_IF_TEXT if self.is_label else READ
        if not self._tree.is_counting:
            return IGNORE
        return COUNT_TOGETHER if self.is_joined else COUNT

    @cached_property
    def is_decoded(self) -> bool:
        """Whether JSON in a string is read as the value that it holds."""
        paths = self._tree.paths
        return self.place is not None or any(leads_to(self.path, path) for path in paths)

    def kind(self, layout: Layout) -> Kind:
        """Return what is done with text here in rows of a layout."""
        kind = self._kinds.get(layout.name)
        if kind is None:
            if self.place is None:
                kind = Kind.UNREAD
            elif self._tree.paths or layout is UNKNOWN or layout.is_visible(self.path):
                kind = Kind.VISIBLE
            else:
                kind = Kind.HIDDEN
            self._kinds[layout.name] = kind
        return kind


class FieldTree:
    """The fields of the rows that are read with the same settings."""

    def __init__(self, source: Source) -> None:
        self.fields: list[Field] = []
        self.lock = RLock()
        self.compiled: object = None  # a copy for the compiled reader
        self.paths = source.paths
        self.roles = source.roles
        self.is_counting = EVERYTHING not in source.ignore
        self._named = known_layouts()[source.layout] if source.layout else None
        self.root = Field(self, "", key=None, parent=None)
        # Below it are the names of answers: the compiled reader leaves a row with one of them to
        # Python if the row's field is unknown.
        self.answers = Field(self, "", key=None, parent=None)
        for name in sorted(ANSWERS):
            self.answers.child(name)
        self._layouts: dict[int, Layout] = {}

    def add(self, parent: Field, key: str) -> Field:
        with self.lock:
            if key not in parent.children:
                separator = "." if parent.path and not key.startswith("[") else ""
                path = f"{parent.path}{separator}{without_lone_surrogates(key)}"
                added = Field(self, path, key=key, parent=parent)
                if added.number < 0:
                    return added
                parent.children[key] = added
            return parent.children[key]

    @property
    def is_uniform(self) -> bool:
        """Whether all rows are read in the same way: no layout is recognised."""
        return bool(self._named or self.paths)

    def layout_of(self, marks: int) -> Layout:
        """Return the layout of a row by the marks of its fields."""
        if self.is_uniform:
            return self._named or UNKNOWN
        if marks not in self._layouts:
            self._layouts[marks] = next(_fitting(marks), UNKNOWN)
        return self._layouts[marks]


@lru_cache(maxsize=1)
def _marks() -> tuple[dict[str, int], list[tuple[int, Layout]]]:
    """Return the bit of each path that marks a layout, and of text beside a closed layout.

    The compiled reader has 128 bits for both.
    """
    layouts = known_layouts().values()
    paths = [path for layout in layouts for paths in layout.alternatives for path in paths]
    marks = {path: at for at, path in enumerate(dict.fromkeys(paths))}
    closed = [layout for layout in layouts if layout.is_closed]
    return marks, [*enumerate(closed, start=len(marks))]


def _fitting(marks: int) -> Iterator[Layout]:
    """Yield the layouts whose marks a row has, the first one first."""
    bits, closed = _marks()
    foreign = {layout.name for at, layout in closed if marks >> at & 1}
    for layout in known_layouts().values():
        is_marked = any(
            all(marks >> bits[path] & 1 for path in paths) for paths in layout.alternatives
        )
        if is_marked and layout.name not in foreign:
            yield layout


@lru_cache(maxsize=128)
def field_tree(source: Source) -> FieldTree:
    """Return the fields of a source; the same object for all sources that are read alike."""
    return FieldTree(source) if source == source.reading else field_tree(source.reading)
