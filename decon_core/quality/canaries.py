"""Items of the benchmarks, planted into shards of their own: a scan has to find them.

A scan that finds nothing looks like a corpus that holds nothing. So items that a rule can see are
put between words that mean nothing, written in two forms, and scanned by the jobs that scan a
corpus, with the index and the search files of the store. What counts is what is decided in the
end: an item that is found below the threshold is lost like one that is not found at all.

The shards and their tiles are thrown away; nothing of them gets among those of the corpus.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.benchmarks.records import Version, load_records
from decon_core.config.load import Source
from decon_core.config.policy import Policy
from decon_core.corpus.packs import Pack, Shard, shard_at
from decon_core.decisions.leaks import entries_of
from decon_core.decisions.verdicts import NO_VERDICTS
from decon_core.errors import Problem
from decon_core.index.parts import index_fingerprint, open_part
from decon_core.quality.visibility import indexability
from decon_core.scan.scanner import scan_packs
from decon_core.scan.tiles import scan_fingerprint
from decon_core.storage.compression import create
from decon_core.storage.store import Store, draft_folder, read_parquet

# Of each benchmark and for each rule. One could be lucky; more say little that is new.
PER_RULE = 2

_LINES, _TABLE = "canaries.jsonl.zst", "canaries.parquet"
_SHARED = ("records", "idf", "index", "search")  # of the store, as the corpus is scanned with them
_SOURCE = Source(name="canaries", path="canaries.*", text="text", id="id")
_N_WORDS = 60  # before and behind an item: more than any rule looks beyond its edges
_REMEDY = (
    "what was scanned since it was found last may lack leaks: delete search/ and index/ of the "
    "store and this scan's tiles, and run again; if it stays lost, this is a bug"
)


class Canary(NamedTuple):
    """An item, and the rule that has to find it."""

    benchmark: str
    rule: str
    split: str
    instance_index: int


@dataclass(frozen=True)
class CanaryResult:
    """What became of the canaries of one scan."""

    planted: tuple[Canary, ...]
    blind: tuple[tuple[str, str], ...]  # benchmarks, and rules that see none of their items
    n_documents: int
    lost: tuple[Problem, ...]


def run_canaries(
    store: Store, versions: Sequence[Version], policy: Policy, *, workers: int = 1
) -> CanaryResult:
    """Plant items of these benchmarks, scan, and say which were not found."""
    policy = replace(policy, leave_out_common=False)  # nothing is common in so few documents
    broken = list(_broken_parts(store, versions, policy))
    whole = [version for version in versions if version.benchmark not in {p.where for p in broken}]
    canaries, blind = _chosen(store, whole, policy)
    if not canaries:
        return CanaryResult((), blind, 0, tuple(broken))
    with draft_folder(store.drafts, "canaries") as folder:
        documents = list(_documents(store, whole, canaries))
        pack = _written(folder / "shards", documents)
        aside = _store_beside(store, folder / "store")
        scan_packs(aside, [pack], whole, policy, workers=workers)
        lost = [
            problem
            for shard in pack.shards
            for problem in _lost(canaries, _scores(store, aside, shard, whole, policy), shard)
        ]
    return CanaryResult(canaries, blind, len(documents), (*broken, *lost))


def _broken_parts(store: Store, versions: Sequence[Version], policy: Policy) -> Iterator[Problem]:
    """Indexes that cannot be those of their benchmarks. Their rows would name other records."""
    index = index_fingerprint(store, policy)
    for version in versions:
        n_records = open_part(store, version, index).entries.dropped.size
        if n_records != version.n_records:
            found = f"an index of {n_records} records"
            yield Problem(version.benchmark, found, f"one of {version.n_records}", _REMEDY)


def _chosen(
    store: Store, versions: Sequence[Version], policy: Policy
) -> tuple[tuple[Canary, ...], tuple[tuple[str, str], ...]]:
    """The same ones at every scan; and where there are none to choose from."""
    seen: dict[tuple[str, str], list[Canary]] = {
        (version.benchmark, rule): [] for version in versions for rule in policy.detectors
    }
    table = indexability(store, versions, policy)
    for row in table.filter(table["is_visible"]).select(Canary._fields).to_pylist():
        seen[row["benchmark"], row["rule"]].append(Canary(**row))
    chosen = [one for found in seen.values() for one in sorted(found, key=_lot)[:PER_RULE]]
    return tuple(sorted(chosen)), tuple(sorted(key for key, found in seen.items() if not found))


def _lot(canary: Canary) -> bytes:
    """Drawn by the item alone, so that most rules have the same ones to find."""
    item = f"{canary.benchmark}\n{canary.split}\n{canary.instance_index}"
    return sha256(item.encode()).digest()


def _documents(
    store: Store, versions: Sequence[Version], canaries: Sequence[Canary]
) -> Iterator[tuple[str, str]]:
    """An id and a text for each record of the items: any of them will do."""
    wanted = {(one.benchmark, one.split, one.instance_index) for one in canaries}
    columns = ["benchmark", "split", "instance_index", "passage", "question", "answer"]
    for version in versions:
        for row, record in enumerate(load_records(store, version, columns=columns).to_pylist()):
            if (version.benchmark, record["split"], record["instance_index"]) in wanted:
                name = f"{version.benchmark} {row}"
                texts = [record[part] for part in ("passage", "question", "answer")]
                said = [_words(f"before {name}"), *texts, _words(f"behind {name}")]
                yield name, " ".join(text for text in said if text)


def _words(seed: str) -> str:
    """Words that stand nowhere else."""
    digest = "".join(sha256(f"{seed} {n}".encode()).hexdigest() for n in range(_N_WORDS // 8))
    return " ".join(digest[at : at + 8] for at in range(0, len(digest), 8))


def _written(folder: Path, documents: Sequence[tuple[str, str]]) -> Pack:
    folder.mkdir(parents=True)
    with create(folder / _LINES, ".zst") as file:
        for name, text in documents:
            file.write(orjson.dumps({"id": name, "text": text}) + b"\n")
    names, texts = zip(*documents, strict=True)
    pq.write_table(pa.table({"id": names, "text": texts}), folder / _TABLE)
    shards = tuple(shard_at(_SOURCE, folder / name, folder) for name in (_LINES, _TABLE))
    return Pack(name="canaries-0000", source=_SOURCE, shards=shards)


def _store_beside(store: Store, root: Path) -> Store:
    """A store that has what a scan reads in common with another, and none of what it writes."""
    root.mkdir()
    for name in _SHARED:
        (store.root / name).mkdir(exist_ok=True)
        (root / name).symlink_to((store.root / name).resolve(), target_is_directory=True)
    return Store(root)


def _scores(
    store: Store, aside: Store, shard: Shard, versions: Sequence[Version], policy: Policy
) -> Mapping[Canary, tuple[bool, float]]:
    """Of every item and rule the best that was found: whether it is a leak, and its score."""
    scan = scan_fingerprint(store, policy)
    tiles = (
        (version, read_parquet(aside.tile(scan, shard.fingerprint, version.fingerprint)))
        for version in versions
    )
    entries = entries_of(
        store, tiles, policy, scan, source=shard.source, verdicts=NO_VERDICTS
    ).to_pylist()
    best: dict[Canary, tuple[bool, float]] = {}
    for entry in entries:
        item = entry["benchmark"], entry["detector"], entry["split"], entry["instance_index"]
        found = entry["is_contaminated"], entry["score"]
        best[Canary(*item)] = max(found, best.get(Canary(*item), found))
    return best


def _lost(
    canaries: Sequence[Canary], scores: Mapping[Canary, tuple[bool, float]], shard: Shard
) -> Iterator[Problem]:
    for canary in canaries:
        is_leak, score = scores.get(canary, (False, None))
        if not is_leak:
            where = f"{canary.benchmark}: {canary.split} {canary.instance_index}, {canary.rule}"
            found = "nothing" if score is None else f"a score of {score:.3f}, which is no leak"
            expected = f"the item that was planted ({shard.name.partition('.')[2]})"
            yield Problem(where, found, expected, _REMEDY)
