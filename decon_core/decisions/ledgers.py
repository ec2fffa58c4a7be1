"""What ledgers say of a corpus: text that was not read, and rows that name a benchmark.

A row may hold text in fields that its source does not read. Nothing is known of that text, so what
depends on it is not clean. The same holds for a shard without any text, such as one of token ids:
its fields are listed among the unread ones, with no texts (`n_values`). A row that names the
benchmark that it is from is evidence of a leak that needs no detector.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from decon_core.benchmarks.named import benchmark_named, is_held_out
from decon_core.config.layouts import covers_any
from decon_core.corpus.packs import Pack
from decon_core.decisions.match_reader import MatchReader
from decon_core.errors import Problem
from decon_core.scan.scan_results import Ledger
from decon_core.wording import counted, first_of, percent, size


@dataclass(frozen=True)
class UnreadRule:
    """Which text may stay unread."""

    ignore: tuple[tuple[str, tuple[str, ...]], ...] = ()  # source, and paths
    is_blocking: bool = True  # whether unread text holds back mixtures

    def is_ignored(self, source: str, path: str) -> bool:
        return covers_any(dict(self.ignore).get(source, ()), path)


NOTHING_IGNORED = UnreadRule()


@dataclass(frozen=True)
class UnreadText:
    """The text of a source that was not read and is not ignored."""

    source: str
    n_bytes_read: int
    texts: tuple[tuple[str, int], ...]  # paths with the bytes of each, most first
    # Shards without any text, and the paths of what they hold instead.
    shards: tuple[str, ...] = ()
    others: tuple[tuple[str, int], ...] = ()

    @property
    def paths(self) -> dict[str, int]:
        """All paths with the bytes of each."""
        return dict(Counter(dict(self.texts)) + Counter(dict(self.others)))

    @property
    def share(self) -> float:
        n_bytes = sum(n for _, n in self.texts)
        return n_bytes / (n_bytes + self.n_bytes_read)

    @property
    def parts(self) -> list[str]:
        """What was not read, without where it is."""
        parts = [f"{percent(self.share)} of the text"] if self.texts else []
        return parts + [f"{counted(len(self.shards), 'shard')} without text"] * bool(self.shards)

    def line(self, whole: str = "") -> str:
        """Say how much was not read, and where it is; `whole` is what it is a part of."""
        texts, others = (
            ", ".join(f"`{path}` ({size(n)})" for path, n in paths)
            for paths in (self.texts, self.others)
        )
        of = whole or f"source `{self.source}`"
        lines = [f"{self.parts[0]} of {of} was not read: {texts}"] if self.texts else []
        if self.shards:
            shards = counted(len(self.shards), "shard") + ("" if whole else f" of {of}")
            lines.append(f"no text in {shards} ({first_of(self.shards)}), only {others}")
        return "; ".join(lines)

    @property
    def setting(self) -> str:
        """The line of a [[corpus.source]] that leaves this text unread on purpose."""
        return f"ignore = {json.dumps([*self.paths], ensure_ascii=False)}"


def unread_texts(
    ledgers: Iterable[tuple[str, Mapping[str, Any]]], rule: UnreadRule
) -> list[UnreadText]:
    """Return the unread text by source, from ledgers that are given with their source."""
    n_read: Counter[str] = Counter()
    unread: dict[str, list[Mapping[str, Any]]] = {}
    for source, ledger in ledgers:
        n_read[source] += ledger["n_bytes"]
        fields = (
            {"file": ledger["file"], **field}
            for field in ledger["unread"]
            if not rule.is_ignored(source, field["path"])
        )
        unread.setdefault(source, []).extend(fields)
    return [_unread_text(source, n_read[source], of) for source, of in unread.items() if of]


def _unread_text(source: str, n_bytes_read: int, fields: Sequence[Mapping[str, Any]]) -> UnreadText:
    """Sum up the unread fields of the shards of a source."""
    of_texts, of_others = Counter[str](), Counter[str]()
    for field in fields:
        (of_texts if field["n_values"] else of_others)[field["path"]] += field["n_bytes"]
    texts, others = (
        tuple(sorted(counts.items(), key=lambda path: (-path[1], path[0])))
        for counts in (of_texts, of_others)
    )
    shards = sorted({field["file"] for field in fields if not field["n_values"]})
    return UnreadText(source, n_bytes_read, texts, tuple(shards), others)


def sources_without_text(ledgers: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Problem]:
    """Return a problem for each source of whose documents none is long enough to be searched."""
    counts: dict[str, Counter[str]] = {}
    for source, ledger in ledgers:
        names = ("n_documents", "n_characters", "n_too_short")
        counts.setdefault(source, Counter()).update({name: ledger[name] for name in names})
    return [
        Problem(
            f"source {source!r}",
            f"all {n['n_documents']:,} documents ({n['n_characters']:,} characters) are too short "
            "to be searched",
            remedy="check `text`, `messages` or `layout` of the source",
        )
        for source, n in counts.items()
        if n["n_documents"] and n["n_too_short"] == n["n_documents"]
    ]


def ledgers_of(reader: MatchReader, packs: Iterable[Pack]) -> Iterator[tuple[str, Ledger]]:
    """Yield source and ledger of each shard that was scanned, with its name as `file`."""
    for pack in packs:
        for shard in pack.shards:
            if reader.scan_results.is_read(shard.fingerprint):
                yield pack.source.name, {**reader.ledger(shard), "file": shard.name}


def shards_without_document(
    reader: MatchReader, packs: Iterable[Pack]
) -> Iterator[tuple[str, str]]:
    """Yield pack and name of each shard that was scanned and has rows, none of them readable."""
    for pack in packs:
        for shard in pack.shards:
            if reader.scan_results.is_read(shard.fingerprint):
                ledger = reader.ledger(shard)
                if ledger["unreadable"] and not ledger["n_documents"]:
                    yield pack.name, shard.name


Row = dict[str, Any]


def named_rows(ledger: Mapping[str, Any], searched: Iterable[str]) -> Iterator[Row]:
    """Yield the names in a ledger or its line, each with the benchmark that it stands for.

    `searched`: the benchmarks of the scan, which may not be in the catalog.
    """
    searched = tuple(searched)
    for row in ledger["origins"]:
        named = benchmark_named(row["value"], searched) if row["value"] else None
        yield {
            **row,
            "benchmark": named.benchmark if named else None,
            "is_held_out": is_held_out(row["split"], named),
        }


def rows_of_benchmarks(shards: Iterable[tuple[str, Iterable[Row]]]) -> list[Row]:
    """Return the rows that name a held-out split of a benchmark, summed over shards; most first."""
    sums: dict[tuple[str, ...], Row] = {}
    for shard, rows in shards:
        for row in rows:
            if row["benchmark"] and row["is_held_out"]:
                key = row["field"], row["value"], row["split"]
                known = sums.setdefault(key, {**row, "n_rows": 0, "n_shards": 0, "shard": shard})
                known["n_rows"] += row["n_rows"]
                known["n_shards"] += 1
    return sorted(sums.values(), key=lambda row: (-row["n_rows"], row["field"], row["value"]))
