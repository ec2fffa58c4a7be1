"""Write a store's leaks by `decon` as reports of the reference implementation, one file per shard.

<out>/<source>/<shard>-simple-0.80.jsonl, and <out>/manifest.json: source and shard of each file
"""

from __future__ import annotations

from pathlib import Path

from decon_core.benchmarks.records import load_records
from decon_core.decisions.match_reader import require_scanned
from decon_core.errors import ConfigError, InputError, MissingError, Problem
from decon_core.features.decon_reports.decon_jsonl import report_name, write_report
from decon_core.mixtures.builder import Builder
from decon_core.storage.files import atomic_path, write_json

MANIFEST = "manifest.json"


def write_reports(builder: Builder, out: Path) -> int:
    """Write one report per shard, empty if it has no leaks; return the number of shards."""
    is_free = not out.exists() or (out.is_dir() and not any(out.iterdir()))
    if not is_free and not (out / MANIFEST).is_file():  # an earlier result is replaced
        expected = "a new or empty folder, or one that this command wrote"
        raise InputError(Problem(str(out), "other files", expected))
    if "decon" not in builder.policy.detectors:
        found = ", ".join(builder.policy.detectors)
        remedy = 'set detectors = ["decon"], or preset = "reference", and run again'
        expected = "decon, because the reports have its format"
        raise ConfigError(Problem("policy.detectors", found, expected, remedy))
    if not builder.packs:
        problem = Problem("corpus", "no registered pack", "at least one", "`decon-assets run`")
        raise MissingError(problem)
    reader, store = builder.reader, builder.store
    for pack in builder.packs:
        require_scanned(reader, pack, reader.versions)
    records = {version.benchmark: load_records(store, version) for version in reader.versions}
    shards = []
    with atomic_path(out) as draft:
        for pack in builder.packs:
            source = pack.source
            for shard in pack.shards:
                entries = reader.entries(shard, reader.versions, source=source.name)
                folder = draft / source.name
                write_report(folder, shard, source, entries, records, builder.policy)
                file = f"{source.name}/{report_name(shard.name, builder.policy)}"
                shards.append({"file": file, "source": source.name, "shard": shard.name})
        write_json(draft / MANIFEST, {"shards": shards})
    return len(shards)
