"""What a store holds, as reports of the reference implementation: a file per shard.

    <out>/<source>/<shard>-simple-0.80.jsonl
    <out>/manifest.json     which file is about which shard of which source

Only what counts as a leak by `decon`, the reference's rule, is in them; decon_jsonl.py says how
they differ from the reference's own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from decon_core.benchmarks.records import load_records
from decon_core.errors import InputError, MissingError, Problem
from decon_core.interop.decon_jsonl import report_name, write_report
from decon_core.mixtures.build import Builder
from decon_core.mixtures.preconditions import require_scanned
from decon_core.storage.store import atomic_path, write_json

MANIFEST = "manifest.json"


def write_reports(builder: Builder, out: Path, *, on_shard: Callable[[str], None]) -> int:
    """Write a report of every shard, empty where nothing leaked; gives how many."""
    _require_free(out)
    if not builder.packs:
        raise MissingError(
            Problem("corpus", "no registered pack", "at least one", "`decon-assets run`")
        )
    reader = builder.reader
    for pack in builder.packs:
        require_scanned(reader, pack, reader.versions)
    records = {one.benchmark: load_records(builder.store, one) for one in reader.versions}
    shards = []
    with atomic_path(out) as draft:
        for pack in builder.packs:
            source = pack.source
            for shard in pack.shards:
                on_shard(shard.name)
                entries = reader.entries(shard, reader.versions, source=source.name)
                folder = draft / source.name
                write_report(folder, shard, source, entries, records, builder.policy)
                file = f"{source.name}/{report_name(shard.name, builder.policy)}"
                shards.append({"file": file, "source": source.name, "shard": shard.name})
        write_json(draft / MANIFEST, {"shards": shards})
    return len(shards)


def _require_free(out: Path) -> None:
    """What stands there goes, so it must be an earlier answer, or nothing."""
    if not out.exists() or (out / MANIFEST).is_file() or (out.is_dir() and not any(out.iterdir())):
        return
    expected = "no such folder, an empty one, or one that this command wrote"
    raise InputError(Problem(str(out), "something else", expected))
