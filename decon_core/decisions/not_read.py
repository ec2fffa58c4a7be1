"""The account of what was not read: one list of rows, from which every surface takes what it says.

What was not read may hold any item, so nothing that depends on it is clean. A row says what was not
read, where, why and how much, and which setting or option accepts that; without one it is open:

    text      text in a field that the source does not read, or as base64 in any field; base64 that
              encodes no text, such as a picture, also has a row, which is never open
    no text   rows without text that is read, such as rows of token ids, with what they hold instead
    row       rows that could not be read
    shard     a shard that could not be opened, or of which no row could be read
    short     a source whose documents are all too short to be searched
    file      a file, folder or link that is no shard, or that is left out in decon.toml

`account_of` makes the rows from ledgers and skipped files. A report keeps them in its table
`not_read`. `Account` turns them into lines, settings and exit codes. Mixtures are held back by open
rows of their pack.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from decon_core.config.layouts import EVERYTHING, covers_any
from decon_core.corpus.packs import Pack, Shard
from decon_core.corpus.string_kinds import kind_at
from decon_core.decisions.match_reader import MatchReader
from decon_core.errors import Problem
from decon_core.scan.coverage import Gap
from decon_core.scan.scan_results import Ledger, with_text
from decon_core.storage.listing import Skipped
from decon_core.wording import code, counted, first_of, percent, plain, size

What = Literal["text", "no text", "row", "shard", "short", "file"]
WORST_FIRST: tuple[What, ...] = ("shard", "short", "row", "text", "no text", "file")

# The options of commands that accept what was not read, and the settings by which it does not hold
# back mixtures. Nothing accepts shards and sources of which nothing was read.
OPTIONS: Mapping[str, tuple[What, ...]] = {
    "--allow-unreadable": ("row",),
    "--allow-unread": ("text", "no text"),
    "--allow-skipped": ("file",),
}
SETTINGS: Mapping[str, tuple[What, ...]] = {
    'unreadable = "drop"': ("row",),
    'unread = "report"': ("text", "no text"),
}


NO_TEXT = "no text"  # what accepts base64 without text


@dataclass(frozen=True)
class UnreadRule:
    """Which text may stay unread."""

    ignore: tuple[tuple[str, tuple[str, ...]], ...] = ()  # source, and paths
    is_blocking: bool = True  # whether unread text holds back mixtures

    def is_ignored(self, source: str, path: str) -> bool:
        return covers_any(dict(self.ignore).get(source, ()), path)

    def ignores_everything(self, source: str) -> bool:
        """Return whether the text that a source does not read is not even counted."""
        return EVERYTHING in dict(self.ignore).get(source, ())


NOTHING_IGNORED = UnreadRule()


class NotRead(NamedTuple):
    """Something that was not read: a row of the table `not_read` of a report."""

    what: What
    source: str | None  # None: of a file
    place: str  # the shard, or the path of the file; empty: the source
    path: str | None  # the field, if it is text or instead of text
    reason: str
    n: int  # texts, rows (0: of a shard that could not be opened), documents, or 1 file
    n_of: int  # rows of the shard, documents of the source
    n_bytes: int
    accepted_by: str | None = None  # the setting or option; None: it is open


def has_no_row(ledger: Mapping[str, Any]) -> bool:
    """Return whether a shard has rows, none of them readable."""
    n_documents: int = ledger["n_documents"] + ledger.get("n_left_out", 0)
    return bool(ledger["unreadable"]) and not n_documents


def _of_shard(source: str, ledger: Mapping[str, Any], rule: UnreadRule) -> Iterator[NotRead]:
    place, n_rows = ledger["file"], ledger["n_rows"]
    reasons = Counter(row["reason"] for row in ledger["unreadable"]).most_common()
    if has_no_row(ledger):
        why, n_bytes = f"no readable row ({reasons[0][0]})", ledger["file_bytes"]
        yield NotRead("shard", source, place, None, why, n_rows, n_rows, n_bytes)
        reasons = []
    for reason, n in reasons:
        yield NotRead("row", source, place, None, reason, n, n_rows, 0)
    if rule.ignores_everything(source):
        why = "not counted"
        yield NotRead("text", source, place, EVERYTHING, why, 0, n_rows, 0, "ignore")
    for text in ledger["unread"]:
        path, n_bytes = text["path"], text["n_bytes"]
        setting = "ignore" if rule.is_ignored(source, path) else None
        if n := text["n_values"]:
            kind = kind_at(path)
            setting = setting if kind.is_blocking else NO_TEXT
            yield NotRead("text", source, place, path, kind.reason, n, n_rows, n_bytes, setting)
        else:
            # Fields are counted in the whole shard, also if only a sample is searched.
            n = ledger["n_without_text"] + ledger.get("n_left_out_without_text", 0)
            reason = "no text"
            yield NotRead("no text", source, place, path, reason, n, n_rows, n_bytes, setting)


def has_open_text(shard: Shard, ledger: Ledger, rule: UnreadRule) -> bool:
    """Return whether text of a scanned shard was not read, and `ignore` does not name it."""
    if not ledger["unread"]:
        return False
    rows = _of_shard(shard.source, with_file(ledger, shard), rule)
    return any(row.what in ("text", "no text") and not row.accepted_by for row in rows)


def gaps_without_rows(reader: MatchReader, packs: Iterable[Pack]) -> Iterator[Gap]:
    """Yield the shards that were scanned and have rows, none of them readable."""
    names = tuple(version.benchmark for version in reader.versions)
    for pack in packs:
        for shard in pack.shards:
            if reader.scan_results.is_read(shard.fingerprint):
                ledger = reader.ledger(shard)
                if has_no_row(ledger):
                    found = f"no readable row ({ledger['unreadable'][0]['reason']})"
                    cause = Problem(shard.path, found, remedy=_READ_OTHERWISE)
                    yield Gap(pack, shard, names, True, cause, is_scanned=True)


_READ_OTHERWISE = "read other fields of it, or leave it out of the corpus"


def account_of(
    ledgers: Iterable[tuple[str, Mapping[str, Any]]],
    rule: UnreadRule = NOTHING_IGNORED,
    skipped: Iterable[Skipped] = (),
    gaps: Iterable[Gap] = (),
) -> Account:
    """Return the account of ledgers, given with their source, and of files that are no shards.

    `gaps`: the shards that have no ledger.
    """
    rows = [
        NotRead(
            "shard", gap.pack.source.name, gap.shard.name, None, gap.reason, 0, 0, gap.shard.n_bytes
        )
        for gap in gaps
    ]
    counts: dict[str, Counter[str]] = {}
    for source, ledger in ledgers:
        rows += _of_shard(source, ledger, rule)
        counts.setdefault(source, Counter()).update({**with_text(ledger)})
        counts[source]["n_bytes"] += ledger["n_bytes"]
    for source, n in counts.items():
        of = n["n_documents"]
        if of and n["n_too_short"] == of and not n["n_left_out"]:
            why = "too short to be searched"
            rows.append(NotRead("short", source, "", None, why, of, of, n["n_bytes"]))
    rows += [
        NotRead("file", None, file.path, None, file.why, 1, 1, file.n_bytes)
        for file in skipped
        if not file.is_on_purpose
    ]
    return Account(
        tuple(_with_grouped_paths(rows)), {source: n["n_bytes"] for source, n in counts.items()}
    )


def _with_grouped_paths(rows: Sequence[NotRead]) -> Iterator[NotRead]:
    """Yield rows with the fields of an object of many keys as one; all others as they are."""
    paths: dict[str | None, set[str]] = {}
    for row in rows:
        if row.path is not None:
            paths.setdefault(row.source, set()).add(row.path)
    grouped = {source: _grouped_paths(of_source) for source, of_source in paths.items()}
    sums: dict[tuple[NotRead, int | None], list[int]] = {}
    for number, row in enumerate(rows):
        path = grouped.get(row.source, {}).get(row.path or "", row.path)
        is_text = row.what == "text"  # rows without text are the same for all that they hold
        alike = row._replace(path=path, n=0 if is_text else row.n, n_bytes=0)
        total = sums.setdefault((alike, None if path != row.path else number), [0, 0])
        total[0] = total[0] + row.n if is_text else row.n
        total[1] += row.n_bytes
    for (row, _), (n, n_bytes) in sums.items():
        yield row._replace(n=n, n_bytes=n_bytes)


def ledgers_of(reader: MatchReader, packs: Iterable[Pack]) -> Iterator[tuple[str, Ledger]]:
    """Yield source and ledger of each shard that was scanned, with its name and size."""
    for pack in packs:
        for shard in pack.shards:
            if reader.scan_results.is_read(shard.fingerprint):
                yield pack.source.name, with_file(reader.ledger(shard), shard)


def with_file(ledger: Ledger, shard: Shard) -> Ledger:
    """Return a ledger with the name and size of its shard."""
    return {**ledger, "file": shard.name, "file_bytes": shard.n_bytes}


class Line(NamedTuple):
    """What is open of one kind and source."""

    what: What
    source: str | None
    amount: str  # how much was not read
    text: str  # the whole line


@dataclass(frozen=True)
class Account:
    """What was not read, and the bytes of text that were read of each source."""

    rows: tuple[NotRead, ...] = ()
    n_bytes_read: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def stored(
        cls, rows: Iterable[Mapping[str, Any]], sources: Iterable[Mapping[str, Any]]
    ) -> Account:
        """Return the account in a report: rows of its table, and sources with their bytes."""
        n_read = {source["source"]: source["n_bytes"] or 0 for source in sources}
        return cls(tuple(NotRead(**row) for row in rows), n_read)

    def accepting(self, *names: str) -> Account:
        """Return the account with what some of `OPTIONS` and `SETTINGS` accept."""
        by = {what: name for name in names for what in OPTIONS.get(name, SETTINGS.get(name, ()))}
        rows = (row._replace(accepted_by=row.accepted_by or by.get(row.what)) for row in self.rows)
        return replace(self, rows=tuple(rows))

    def open(self, *kinds: What) -> list[NotRead]:
        """Return the rows of some kinds, or of all, that nothing accepts."""
        return [
            row for row in self.rows if not row.accepted_by and (not kinds or row.what in kinds)
        ]

    def accepted_text(self) -> Account:
        """Return the account of text that settings leave unread, as if nothing accepted it."""
        rows = [
            row._replace(accepted_by=None)
            for row in self.rows
            if row.what in ("text", "no text") and row.accepted_by != NO_TEXT
        ]
        return replace(self, rows=tuple(rows))

    def n(self, *kinds: What) -> int:
        return sum(row.n for row in self.open(*kinds))

    @property
    def exit_code(self) -> int:
        """The exit code of a command that has no worse news."""
        return 1 if self.open("shard", "short") else 4 if self.open() else 0

    def sizes(self, source: str | None) -> dict[str, int]:
        """Return the bytes of text that was not read by field of a source, the most first."""
        return _sizes(row for row in self.open("text", "no text") if row.source == source)

    def setting(self, source: str | None) -> str:
        """Return the line of a [[corpus.source]] that leaves this text unread on purpose."""
        return f"ignore = {json.dumps(self.to_ignore(source), ensure_ascii=False)}"

    def to_ignore(self, source: str | None) -> list[str]:
        """Return the paths by which this text may stay unread."""
        return [*dict.fromkeys(map(_path_to_ignore, self.sizes(source)))]

    def advice(self, source: str | None) -> list[str]:
        """Return how to have this text read, if it is encoded."""
        kinds = dict.fromkeys(map(kind_at, self.sizes(source)))
        return [f"{kind.step}: {kind.advice}" for kind in kinds if kind.advice]

    def ignored(self) -> list[str]:
        """Return how much text is left unread because of the setting `ignore`."""
        rows = (row for row in self.rows if row.accepted_by == "ignore")
        return [line.amount for line in replace(self, rows=tuple(rows)).accepted_text().lines()]

    def lines(self, whole: str = "", shown: Callable[[str], str] = code) -> Iterator[Line]:
        """Yield what is open, by source and kind.

        `whole`: what it is a part of, instead of a source. `shown`: how names are written.
        """
        groups: dict[tuple[str | None, What], list[NotRead]] = {}
        for row in self.open():
            groups.setdefault((row.source, row.what), []).append(row)
        for (source, what), rows in groups.items():
            of = whole or f"source {shown(source or '')}"
            n_read = self.n_bytes_read.get(source or "", 0)
            yield Line(what, source, *_said(what, rows, of, n_read, shown))


NOTHING_UNREAD = Account()


def _said(
    what: What, rows: Sequence[NotRead], of: str, n_read: int, shown: Callable[[str], str]
) -> tuple[str, str]:
    """Return how much was not read, and the line that says so."""
    n, places = sum(row.n for row in rows), [*dict.fromkeys(row.place for row in rows)]
    names, sizes = first_of([*map(shown, places)]), _sizes(rows)
    fields = ", ".join(f"{shown(path)} ({size(n_bytes)})" for path, n_bytes in sizes.items())
    if what == "text":
        if {*sizes} == {EVERYTHING} and not n:
            return "text that was not counted", f"the unread text of {of} was not counted"
        n_bytes = sum(sizes.values())
        amount = f"{percent(n_bytes / (n_bytes + n_read))} of the text"
        return amount, f"{amount} of {of} was not read: {fields}"
    if what == "no text":
        of_places = {row.place: (row.n, row.n_of) for row in rows}.values()
        n, n_rows = map(sum, zip(*of_places, strict=True))
        rows_of = f"{n:,} of {counted(n_rows, 'row')}"
        where = f"{counted(len(places), 'shard')} of {of} ({names})"
        return f"{rows_of} without text", f"no text in {rows_of} in {where}, only {fields}"
    amount, verb = counted(n, "row"), "was" if n == 1 else "were"
    if what == "short":
        documents = counted(n, "document")
        return (
            f"{documents} too short to be searched",
            f"all {documents} of {of} are too short to be searched",
        )
    if what == "row":
        reasons = Counter[str]()
        for row in rows:
            reasons[row.reason] += row.n
        why = ", ".join(f"{n:,} {plain(reason)}" for reason, n in reasons.most_common())
        return amount, f"{amount} of {of} could not be read: {why}"
    named = first_of([f"{shown(row.place)} ({plain(row.reason)})" for row in rows])
    if what == "file":
        files = f"{n:,} file or folder" if n == 1 else f"{n:,} files or folders"
        return f"{files}: {named}", f"{files} {verb} not read: {named}"
    shards, file_bytes = counted(len(rows), "shard"), size(sum(row.n_bytes for row in rows))
    return (
        f"{shards} ({file_bytes}{f', {amount}' * bool(n)})",
        f"{shards} of {of} could not be read: {named}",
    )


def _sizes(rows: Iterable[NotRead]) -> dict[str, int]:
    """Return the bytes at each path, the most first."""
    sizes = Counter[str]()
    for row in rows:
        sizes[row.path or ""] += row.n_bytes
    return dict(sorted(sizes.items(), key=lambda path: (-path[1], path[0])))


# One path for the fields of an object with many keys, which are data such as names of users -------

_MOST_KEYS = 20  # of an object that are named
_MOST_COLUMNS = 200  # of a row that are named


def _grouped_paths(paths: Iterable[str]) -> Mapping[str, str]:
    """Return the path under which each of these is listed: `m.*` in place of many below `m`."""
    split = {path: _split(path) for path in paths}
    keys: dict[tuple[str, ...], set[str]] = {}
    for steps, _ in split.values():
        for at, key in enumerate(steps):
            keys.setdefault(steps[:at], set()).add(key)
    many = {
        above
        for above, below in keys.items()
        if len(below) > (_MOST_KEYS if above else _MOST_COLUMNS)
    }
    return {path: _grouped(*parts, many) for path, parts in split.items()} if many else {}


def _split(path: str) -> tuple[tuple[str, ...], list[str]]:
    """Return the keys of a path, and its ending if it is of encoded text."""
    keys = path.split(".")
    n_endings = bool(kind_at(path).step)
    return tuple(keys[: len(keys) - n_endings]), keys[len(keys) - n_endings :]


def _grouped(steps: tuple[str, ...], ending: list[str], many: set[tuple[str, ...]]) -> str:
    for at in range(len(steps)):
        if steps[:at] in many:
            steps = (*steps[:at], EVERYTHING)
            break
    return ".".join([*steps, *ending])


def _path_to_ignore(path: str) -> str:
    """Return the shortest setting that leaves unread what is listed under a path: `m` for `m.*`."""
    steps, _ = _split(path)
    is_of_many = len(steps) > 1 and steps[-1] == EVERYTHING
    return ".".join(steps[:-1]) if is_of_many else path
