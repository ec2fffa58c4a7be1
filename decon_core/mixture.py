"""Corpus and decisions to a mixture: the shards of a pack without the documents that leaked.

Fail-closed: a mixture is built only when every shard was scanned against every required benchmark
and nothing was lost in reading, or the policy says to leave out what was. Untouched rows of line
formats keep their bytes. A folder appears whole, with a manifest that accounts for every row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.common import current_common, places_of, without_common
from decon_core.corpus import (
    LINE_FORMATS,
    Document,
    Pack,
    Shard,
    Unreadable,
    hash_file,
    open_arrow,
    read_shard,
)
from decon_core.decisions import decide
from decon_core.errors import CorpusError, DeconError, IncompleteError, MissingError, Problem
from decon_core.index import index_fingerprint, twins_of
from decon_core.policy import Policy
from decon_core.records import Version
from decon_core.schemas import MATCHES
from decon_core.store import Store, aside, read_json
from decon_core.streams import compression_of, create, format_of
from decon_core.tiles import scan_fingerprint

DECONTAMINATED = "decontaminated"
MANIFEST = "_manifest.json"


@dataclass(frozen=True)
class MixtureSummary:
    """What a pack's mixture holds, and what is not in it any more."""

    pack: str
    n_documents_in: int
    n_documents_out: int
    n_removed: int
    n_unreadable: int
    was_there: bool


def build_mixture(
    store: Store, pack: Pack, versions: Sequence[Version], policy: Policy
) -> MixtureSummary:
    """Write the decontaminated shards of a pack, unless they are there already."""
    scan = scan_fingerprint(store, policy)
    require_scanned(store, pack, versions, scan)
    require_readable(store, pack, scan, is_strict=policy.unreadable == "block")
    fingerprint = mixture_fingerprint(store, pack, versions, policy, scan)
    folder = store.mixture(DECONTAMINATED, pack.name)
    manifest = _standing_manifest(folder, fingerprint)
    if manifest is not None and not _damage(folder, manifest):
        return _summary(manifest, was_there=True)
    with aside(folder, drafts=store.drafts) as draft:
        draft.mkdir(parents=True)
        shards = [
            _filter(store, shard, pack, versions, policy, scan, draft) for shard in pack.shards
        ]
        manifest = {
            "mixture": DECONTAMINATED,
            "pack": pack.name,
            "source": pack.source.name,
            "fingerprint": fingerprint,
            "scan": scan,
            "thresholds": policy.thresholds,
            "unreadable": policy.unreadable,
            "benchmarks": {version.benchmark: version.fingerprint for version in versions},
            "shards": shards,
        }
        text = json.dumps(manifest, indent=1, ensure_ascii=False)
        (draft / MANIFEST).write_text(text + "\n", encoding="utf-8")
    return _summary(manifest, was_there=False)


def has_mixture(
    store: Store, pack: Pack, versions: Sequence[Version], policy: Policy, scan: str
) -> bool:
    """Whether a pack's mixture stands, made from today's inputs."""
    fingerprint = mixture_fingerprint(store, pack, versions, policy, scan)
    return _standing_manifest(store.mixture(DECONTAMINATED, pack.name), fingerprint) is not None


def mixture_fingerprint(
    store: Store, pack: Pack, versions: Sequence[Version], policy: Policy, scan: str
) -> str:
    """What a mixture depends on: shards, benchmark versions, scan and decision settings."""
    value = [
        [(shard.name, shard.fingerprint) for shard in pack.shards],
        sorted((version.benchmark, version.fingerprint) for version in versions),
        scan,
        sorted(policy.thresholds.items()),
        policy.unreadable,
        current_common(store, scan, policy)[0] if policy.leave_out_common else None,
    ]
    return sha256(json.dumps(value).encode()).hexdigest()[:16]


def require_scanned(store: Store, pack: Pack, versions: Sequence[Version], scan: str) -> None:
    """Raise unless every shard has a tile for every benchmark: absent means not scanned."""
    if not versions:
        raise MissingError(Problem(f"pack {pack.name!r}", "no benchmark", "at least one"))
    problems = [
        Problem(
            f"shard {shard.name!r} of pack {pack.name!r}",
            f"not scanned against {', '.join(lacking)}",
            "a tile for every benchmark",
            "materialize `scan` for these cells first; until then nothing here counts as clean",
        )
        for shard in pack.shards
        if (lacking := _lacking(store, shard, versions, scan))
    ]
    if problems:
        raise MissingError(problems)


def _lacking(store: Store, shard: Shard, versions: Sequence[Version], scan: str) -> list[str]:
    lacking = [
        version.benchmark
        for version in versions
        if not store.tile(scan, shard.fingerprint, version.fingerprint).is_file()
    ]
    has_ledger = store.ledger(scan, shard.fingerprint).is_file()
    return lacking if has_ledger else [version.benchmark for version in versions]


def require_readable(store: Store, pack: Pack, scan: str, *, is_strict: bool) -> None:
    """Raise when rows of a shard could not be read: nobody knows what they hold.

    Even where such rows may be left out, a shard of nothing else is more likely a field of another
    name than a shard to be emptied.
    """
    problems = []
    for shard in pack.shards:
        ledger = read_json(store.ledger(scan, shard.fingerprint))
        if ledger["unreadable"] and not ledger["n_documents"]:
            first = ledger["unreadable"][0]
            problems.append(
                Problem(
                    shard.path,
                    f"no row that could be read; the first: {first['reason']} ({first['detail']})",
                    "documents",
                    f"check the fields of the source {pack.source.name!r} in decon.toml",
                )
            )
        elif is_strict:
            problems += [_unreadable_row(shard, row) for row in ledger["unreadable"]]
    if problems:
        raise IncompleteError(problems)


def _unreadable_row(shard: Shard, row: dict[str, Any]) -> Problem:
    # Lines are counted from one, as editors do; rows of tables from zero, as libraries do.
    place = f"row {row['row']}" if row["offset"] is None else f"line {row['row'] + 1}"
    return Problem(
        f"{shard.path}: {place}",
        f"{row['reason']} ({row['detail']})",
        "a document",
        'mend it, or set policy.unreadable = "drop" to leave such rows out',
    )


def entries_of_shard(
    store: Store,
    shard: Shard,
    versions: Sequence[Version],
    policy: Policy,
    scan: str,
    *,
    source: str,
) -> pa.Table:
    """What was found in a shard, with today's threshold."""
    index = index_fingerprint(store, policy)
    common = {}
    if policy.leave_out_common:
        common = places_of(current_common(store, scan, policy)[1], source)
    tables = [MATCHES.empty_table()]
    for version in sorted(versions, key=lambda version: version.benchmark):
        tile = store.tile(scan, shard.fingerprint, version.fingerprint)
        matches = pq.read_table(tile, schema=MATCHES)
        if version.benchmark in common:
            places = common[version.benchmark]
            matches = without_common(matches, places, store, version, policy, index=index)
        tables += [matches, _of_twins(matches, twins_of(store.root, version, index))]
    return decide(pa.concat_tables(tables), policy)


def _entries(
    store: Store,
    shard: Shard,
    pack: Pack,
    versions: Sequence[Version],
    policy: Policy,
    scan: str,
) -> list[dict[str, Any]]:
    found = entries_of_shard(store, shard, versions, policy, scan, source=pack.source.name)
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def _of_twins(matches: pa.Table, twins: Mapping[int, list[dict[str, Any]]]) -> pa.Table:
    """The same matches once more, for records that were left out of the index as repeats.

    Only `decon` leaves any out.
    """
    rows = [
        {**match, **twin}
        for match in (matches.to_pylist() if twins else [])
        for twin in twins.get(match["record"], ())
        if match["detector"] == "decon"
    ]
    return pa.Table.from_pylist(rows, schema=MATCHES)


def _filter(
    store: Store,
    shard: Shard,
    pack: Pack,
    versions: Sequence[Version],
    policy: Policy,
    scan: str,
    folder: Path,
) -> dict[str, Any]:
    reasons: dict[int, list[dict[str, Any]]] = {}
    for entry in _entries(store, shard, pack, versions, policy, scan):
        if entry["is_contaminated"]:
            reasons.setdefault(entry["row"], []).append(
                {key: entry[key] for key in ("benchmark", "split", "instance_index", "score")}
            )
    if shard.name == MANIFEST:
        raise CorpusError(Problem(shard.path, f"a shard named {MANIFEST}", "any other name"))
    target = folder / shard.name
    target.parent.mkdir(parents=True, exist_ok=True)
    counts = _Counts()
    rows = counts.watch(read_shard(shard, pack.source), reasons)
    is_lines = format_of(target) in LINE_FORMATS
    (_write_lines if is_lines else _write_table)(Path(shard.path), target, rows)
    ledger = read_json(store.ledger(scan, shard.fingerprint))
    if (counts.n_documents, counts.n_unreadable) != (
        ledger["n_documents"],
        len(ledger["unreadable"]),
    ):
        raise CorpusError(
            Problem(
                shard.path,
                f"{counts.n_documents} documents and {counts.n_unreadable} unreadable rows",
                f"{ledger['n_documents']} and {len(ledger['unreadable'])}, as when it was scanned",
            )
        )
    return {
        "shard": shard.name,
        "content": shard.content,
        "fingerprint": shard.fingerprint,
        "n_documents_in": counts.n_documents,
        "n_documents_out": counts.n_documents - len(counts.removed),
        "n_unreadable_left_out": counts.n_unreadable,
        "n_characters_in": counts.n_characters,
        "n_characters_out": counts.n_characters_out,
        "n_bytes": target.stat().st_size,
        "output": hash_file(target),
        "removed": counts.removed,
    }


class _Counts:
    """Tells which rows stay, and keeps account of the others."""

    def __init__(self) -> None:
        self.n_documents = self.n_unreadable = self.n_characters = self.n_characters_out = 0
        self.removed: list[dict[str, Any]] = []

    def watch(
        self, rows: Iterable[Document | Unreadable], reasons: dict[int, list[dict[str, Any]]]
    ) -> Iterator[Document]:
        """The documents that stay."""
        for row in rows:
            if isinstance(row, Unreadable):
                self.n_unreadable += 1
                continue
            self.n_documents += 1
            self.n_characters += len(row.text)
            if row.row in reasons:
                self.removed.append({"row": row.row, "id": row.id, "because": reasons[row.row]})
            else:
                self.n_characters_out += len(row.text)
                yield row


def _write_lines(_: Path, target: Path, rows: Iterator[Document]) -> None:
    with create(target, compression_of(target)) as file:
        for row in rows:
            file.write(row.raw or b"")  # only a shard's last line may lack its line break


def _write_table(path: Path, target: Path, rows: Iterator[Document]) -> None:
    kept = {row.row for row in rows}
    (_write_parquet if format_of(path) == ".parquet" else _write_arrow)(path, target, kept)


def _write_parquet(path: Path, target: Path, kept: set[int]) -> None:
    """Row groups as they were, less the rows that go. Every column passes through."""
    source = pq.ParquetFile(path)
    first = 0
    with pq.ParquetWriter(target, source.schema_arrow, compression="zstd") as writer:
        for number in range(source.num_row_groups):
            group = source.read_row_group(number)
            writer.write_table(group.filter(_mask(kept, first, group.num_rows)))
            first += group.num_rows


def _write_arrow(path: Path, target: Path, kept: set[int]) -> None:
    """Batches as they were, less the rows that go; a file stays a file, a stream a stream."""
    table = open_arrow(path)
    create_table = pa.ipc.new_file if table.is_file else pa.ipc.new_stream
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    first = 0
    with create_table(str(target), table.schema, options=options) as writer:
        for batch in table.batches:
            writer.write_batch(batch.filter(_mask(kept, first, batch.num_rows)))
            first += batch.num_rows


def _mask(kept: set[int], first: int, n_rows: int) -> pa.Array:
    return pa.array([row in kept for row in range(first, first + n_rows)], pa.bool_())


def _standing_manifest(folder: Path, fingerprint: str) -> dict[str, Any] | None:
    """The manifest of a mixture that is there already, whole and from the same inputs."""
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        manifest: dict[str, Any] = read_json(path)
        is_standing = manifest["fingerprint"] == fingerprint and all(
            (folder / shard["shard"]).is_file()
            and (folder / shard["shard"]).stat().st_size == shard["n_bytes"]
            for shard in manifest["shards"]
        )
    except (DeconError, KeyError):
        return None  # damaged, or of an older form: it is built again
    return manifest if is_standing else None


def _summary(manifest: dict[str, Any], *, was_there: bool) -> MixtureSummary:
    shards = manifest["shards"]
    return MixtureSummary(
        pack=manifest["pack"],
        n_documents_in=sum(shard["n_documents_in"] for shard in shards),
        n_documents_out=sum(shard["n_documents_out"] for shard in shards),
        n_removed=sum(len(shard["removed"]) for shard in shards),
        n_unreadable=sum(shard["n_unreadable_left_out"] for shard in shards),
        was_there=was_there,
    )


def verify(store: Store, pack: Pack) -> list[Problem]:
    """What does not add up in a pack's mixture: rows in and out, and the bytes on disk."""
    folder = store.mixture(DECONTAMINATED, pack.name)
    if not (folder / MANIFEST).is_file():
        return [Problem(str(folder), "no manifest", "a mixture")]
    return _damage(folder, read_json(folder / MANIFEST))


def _damage(folder: Path, manifest: dict[str, Any]) -> list[Problem]:
    problems = []
    for shard in manifest["shards"]:
        file = folder / shard["shard"]
        n_accounted = shard["n_documents_out"] + len(shard["removed"])
        if n_accounted != shard["n_documents_in"]:
            problems.append(
                Problem(str(file), f"{n_accounted} documents", f"{shard['n_documents_in']}")
            )
        if not file.is_file() or hash_file(file) != shard["output"]:
            problems.append(
                Problem(
                    str(file),
                    "other bytes",
                    "those that were written",
                    "materialize `mixture` for this pack again",
                )
            )
    return problems
