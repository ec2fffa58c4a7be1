"""What the first rows of a source hold: layouts, ids, and which text is visible or hidden.

A source reads every text of its rows, so no field is chosen. This says what a scan will read, and
what a person should check.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

from decon_core.config.layouts import UNKNOWN
from decon_core.config.sources import Source
from decon_core.corpus.documents import Unreadable, document_of
from decon_core.corpus.fields import field_tree
from decon_core.corpus.row_json import leaves, shown_key
from decon_core.corpus.row_texts import KEY, Keys, Slot, role_of, text_of_row
from decon_core.corpus.shard_head import Row, ShardHead
from decon_core.corpus.string_kinds import StringKind, is_text, kind_at
from decon_core.kernels.string_kinds import LEAST_WORDS
from decon_core.wording import counted, have

_EVERYTHING = Source(name="", path="")
_IDS = ("id", "doc_id", "docid", "document_id", "uuid", "_id", "uid", "record_id")
_CONVERSATIONS = ("messages", "conversations")  # the usual names
_MOST_PATHS = 24  # named in a line


class RowSurvey:
    """What the first rows of some files hold, and what is doubtful about them."""

    def __init__(self, heads: Sequence[ShardHead]) -> None:
        self.rows: list[Row] = []
        self.unreadable = [  # the reason of each row
            head.why_unreadable for head in heads for _ in range(head.n_unreadable)
        ]
        for row in (row for head in heads for row in head.rows):
            document = document_of(row, 0, _EVERYTHING)
            if isinstance(document, Unreadable):
                self.unreadable.append(f"{document.reason} ({document.detail})")
            else:
                self.rows.append(row)
        self.texts = [text_of_row(row, field_tree(_EVERYTHING)) for row in self.rows]

    @property
    def n_rows(self) -> int:
        return len(self.rows) + len(self.unreadable)

    @cached_property
    def has_text(self) -> bool:
        return bool(self.visible or self.hidden)

    @cached_property
    def layouts(self) -> dict[str, int]:
        """The number of rows of each layout, most first."""
        return dict(Counter(text.layout.name for text in self.texts).most_common())

    @property
    def layout(self) -> str | None:
        """The known layout of all rows, if it is the same."""
        names = {*self.layouts} if not self.unreadable else set()
        return names.pop() if len(names) == 1 and UNKNOWN.name not in names else None

    @property
    def layouts_line(self) -> str:
        notes = {UNKNOWN.name: ", all text is read"}
        return ", ".join(
            f"{name} ({counted(n, 'row')}{notes.get(name, '')})" for name, n in self.layouts.items()
        )

    @cached_property
    def visible(self) -> dict[str, int]:
        """The bytes of the text that a model sees, by path, most first."""
        return _bytes_by_path(slot for text in self.texts for slot in text.visible)

    @cached_property
    def hidden(self) -> dict[str, int]:
        """The bytes of other text, by path, most first."""
        return _bytes_by_path(slot for text in self.texts for slot in text.hidden)

    @cached_property
    def token_ids(self) -> list[str]:
        """The paths of token ids beside text. They are not read, which blocks mixtures."""
        if not self.has_text:
            return []
        paths = dict.fromkeys(path for text in self.texts for path in text.unread)
        return [path for path in paths if kind_at(path) is StringKind.TOKENS]

    @cached_property
    def text_fields(self) -> list[str]:
        """The fields of visible text, those with most text first; not of short values."""
        prose = {path for text in self.texts for path in _paths(text.visible, prose=True)}
        return [*dict.fromkeys(p.partition("[")[0] for p in self.visible if p in prose)]

    @cached_property
    def conversation(self) -> tuple[str, tuple[str, ...]] | None:
        """A field that holds turns in every row, and their roles."""
        roles: defaultdict[str, Counter[str]] = defaultdict(Counter)
        n_rows: Counter[str] = Counter()
        for path, value in (leaf for row in self.rows for leaf in leaves(row)):
            names = [role_of(turn) for turn in value] if isinstance(value, list) else []
            if names and all(isinstance(name, str) for name in names):
                n_rows[path] += 1
                roles[path].update(map(str, names))
        fields = [path for path in roles if n_rows[path] == len(self.rows)]
        best = min(fields, key=lambda path: path not in _CONVERSATIONS, default=None)
        return None if best is None else (best, tuple(roles[best]))

    @cached_property
    def ids(self) -> tuple[str, list[object]] | None:
        """The field that has the name of an id and is in every row, and its values."""
        values: defaultdict[str, list[object]] = defaultdict(list)
        for path, value in (leaf for row in self.rows for leaf in leaves(row)):
            if isinstance(value, str | int) and path.rpartition(".")[2].lower() in _IDS:
                values[path].append(value)
        complete = [path for path in values if len(values[path]) == len(self.rows)]
        best = min(complete, key=lambda path: (path.count("."), path), default=None)
        return None if best is None else (best, values[best])

    @cached_property
    def doubts(self) -> list[str]:
        """What a person should check."""
        doubts = []
        if self.unreadable:
            reasons = ", ".join(f"{reason} ({n})" for reason, n in Counter(self.unreadable).items())
            rows = f"{len(self.unreadable)} of {counted(self.n_rows, 'row')}"
            doubts.append(f"{rows} cannot be read: {reasons}")
        doubts += filter(None, [self._without_text(), self._mixed()])
        if self.token_ids:
            doubts.append(
                f"token ids beside the text are not read ({listed_paths(self.token_ids)}), which "
                "blocks mixtures; if they are the tokens of the text, uncomment `ignore`"
            )
        if sum(self.hidden.values()) > sum(self.visible.values()):
            doubts.append(
                f"there is more hidden text than visible text ({listed_paths(self.hidden)}); set "
                "`text` or another `layout` if a model is trained on the hidden text"
            )
        if self.ids and len({*self.ids[1]}) != len(self.rows):
            n_different = counted(len({*self.ids[1]}), "different value")
            rows = counted(len(self.rows), "row")
            doubts.append(f"{n_different} of the id `{self.ids[0]}` in {rows}")
        return doubts

    def _without_text(self) -> str:
        n_empty = sum(not (text.visible or text.hidden) for text in self.texts)
        if n_empty:
            return f"{n_empty} of {counted(self.n_rows, 'row')} {have(n_empty)} no text"
        slots = (slot for text in self.texts for slot in (*text.visible, *text.hidden))
        if self.texts and not any(is_text(slot.text) for slot in slots):
            return f"no text has {LEAST_WORDS} words or more; very short texts match nothing"
        return ""

    def _mixed(self) -> str:
        """Name the rows of no known layout that hold more than texts, which are read as text."""
        prose: dict[str, None] = {}
        short: dict[str, None] = {}
        n_mixed = 0
        for text in (text for text in self.texts if text.layout is UNKNOWN):
            of_row = _paths(text.visible, prose=True), _paths(text.visible, prose=False)
            if all(of_row):
                n_mixed += 1
                prose |= of_row[0]
                short |= of_row[1]
        only_short = [path for path in short if path not in prose]
        if not only_short:
            return ""
        rows = counted(n_mixed, "row")
        values = f"texts ({listed_paths(prose)}) and short values ({listed_paths(only_short)})"
        verb = (
            "matches no known layout and contains"
            if n_mixed == 1
            else "match no known layout and contain"
        )
        return f"{rows} {verb} {values}; all are read"


def listed_paths(paths: Iterable[str]) -> str:
    """Name paths, the first ones of very many."""
    named = [f"`{path}`" for path in paths]
    n_more = len(named) - _MOST_PATHS
    more = [f"and {counted(n_more, 'other path')}"] if n_more > 0 else []
    return ", ".join([*named[:_MOST_PATHS], *more])


def _bytes_by_path(slots: Iterable[Slot]) -> dict[str, int]:
    sizes: Counter[str] = Counter()
    for slot in slots:
        for path in _places(slot):
            sizes[path] += len(slot.text.encode())
    return dict(sizes.most_common())


def _paths(slots: Iterable[Slot], *, prose: bool) -> dict[str, None]:
    """Return the paths of texts, or of values that are too short to be a text."""
    read = (slot for slot in slots if is_text(slot.text) is prose)
    return dict.fromkeys(path for slot in read for path in _places(slot))


def _places(slot: Slot) -> list[str]:
    """Return the paths of a string, also those where the row repeats it."""
    return [_field_path(keys) for keys in (slot.keys, *slot.copies)]


def _field_path(keys: Keys) -> str:
    """Return the path of a field as settings name it: `messages[].content`."""
    if keys and keys[-1] == KEY:
        keys = (*keys[:-2], "*")
    parts = ("[]" if isinstance(key, int) else f".{shown_key(key)}" for key in keys)
    return "".join(parts).removeprefix(".")
