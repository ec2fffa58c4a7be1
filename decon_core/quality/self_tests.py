"""Self-tests: benchmark items planted into temporary shards, which a scan must find.

A scan that is broken and finds nothing looks like a clean corpus. So items that a detector can see
are placed between random words, written in two shard formats, and scanned by the same jobs as a
corpus, with the index and search files of the store. What counts is the final decision: an item
that scores below the threshold is lost like one that is not found at all. One that is found without
its answer is not lost: a very short answer may not be recognized between random words.

The shards and their scan results are temporary; they never mix with those of the corpus.

A sketch excludes blocks that hold no match. `matches_in_excluded_blocks` scans some of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.benchmarks.records import Version, load_records
from decon_core.config.policy import Policy
from decon_core.config.seeding import shuffled
from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack, Shard, shard_at
from decon_core.corpus.sketch.shard_sketch import has_blocks
from decon_core.decisions.match_reader import MatchReader
from decon_core.decisions.visibility import visibility_table
from decon_core.errors import Problem, collecting
from decon_core.index.parts import index_fingerprint, open_part
from decon_core.scan.blocks import ShardJob, SomeBlocks, scan_blocks
from decon_core.scan.coverage import scan_fingerprint
from decon_core.scan.plan import build_search_files
from decon_core.scan.scan_results import ScanResults
from decon_core.scan.scanner import scan_packs
from decon_core.storage.compression import create
from decon_core.storage.files import draft_folder
from decon_core.storage.store import Store, linked_store

# Self-tests per benchmark and detector. One could be found by luck; more add little.
PER_DETECTOR = 2

_LINES, _TABLE = "self-tests.jsonl.zst", "self-tests.parquet"
_SHARED = ("records", "idf", "index", "search")  # folders of the store that a scan reads
_SOURCE = Source(name="self-tests", path="self-tests.*", text="text", id="id")
_DECISIONS = ("is_contaminated", "is_no_answer", "needs_review")  # any of them: it was found
_N_WORDS = 60  # before and after an item: more context than any detector looks at
_REMEDY = (
    "scans since this self-test last passed may have missed leaks: delete search/ and index/ in "
    "the store and the results of this scan, then run again; if the self-test still fails, report "
    "a bug"
)


class SelfTest(NamedTuple):
    """An item, and the detector that must find it."""

    benchmark: str
    detector: str
    split: str
    instance_index: int


@dataclass(frozen=True)
class SelfTestResult:
    """The self-tests of one scan, and which were not found."""

    planted: tuple[SelfTest, ...]
    blind: tuple[tuple[str, str], ...]  # (benchmark, detector that sees none of its items)
    n_documents: int
    lost: tuple[tuple[str, Problem], ...]  # each with its benchmark


def run_self_tests(
    store: Store, versions: Sequence[Version], policy: Policy, *, workers: int = 1
) -> SelfTestResult:
    """Plant items of these benchmarks, scan them, and return which were not found."""
    policy = replace(policy, leave_out_common=False)  # nothing is common in so few documents
    index = index_fingerprint(store, policy)
    broken: list[tuple[str, Problem]] = []
    whole: list[Version] = []
    for version in versions:
        n_records = open_part(store, version, index).entries.dropped.size
        if n_records == version.n_records:
            whole.append(version)
        else:
            found, expected = f"an index of {n_records} records", f"{version.n_records} records"
            name = version.benchmark
            broken.append((name, Problem(name, found, expected, _REMEDY)))
    self_tests, blind = _choose(store, whole, policy)
    if not self_tests:
        return SelfTestResult((), blind, 0, tuple(broken))
    lost: list[tuple[str, Problem]] = []
    with draft_folder(store.drafts, "self-tests") as folder:
        documents = list(_documents(store, whole, self_tests))
        pack = _write_pack(folder / "shards", documents)
        scratch = linked_store(store, folder / "store", _SHARED)
        scan_packs(scratch, [pack], whole, policy, workers=workers)
        reader = MatchReader(scratch, tuple(whole), policy, scan_fingerprint(store, policy))
        for shard in pack.shards:
            entries = reader.entries(shard, whole, source=pack.source.name)
            lost += _lost(entries, shard, self_tests)
    return SelfTestResult(self_tests, blind, len(documents), (*broken, *lost))


def _choose(
    store: Store, versions: Sequence[Version], policy: Policy
) -> tuple[tuple[SelfTest, ...], tuple[tuple[str, str], ...]]:
    """Return the self-tests, the same at every scan, and the pairs without a visible item."""
    seen: dict[tuple[str, str], list[SelfTest]] = {
        (version.benchmark, detector): [] for version in versions for detector in policy.detectors
    }
    table = visibility_table(store, versions, policy)
    for row in table.filter(table["is_visible"]).select(SelfTest._fields).to_pylist():
        seen[row["benchmark"], row["detector"]].append(SelfTest(**row))

    # The item alone decides, so that most detectors get the same.
    def draw(test: SelfTest) -> bytes:
        item = f"{test.benchmark}\n{test.split}\n{test.instance_index}"
        return sha256(item.encode()).digest()

    chosen = [item for items in seen.values() for item in sorted(items, key=draw)[:PER_DETECTOR]]
    return tuple(sorted(chosen)), tuple(sorted(key for key, items in seen.items() if not items))


def _documents(
    store: Store, versions: Sequence[Version], self_tests: Sequence[SelfTest]
) -> Iterator[tuple[str, str]]:
    """Yield an id and a text per record of the items; one found record finds the item."""
    items = {(test.benchmark, test.split, test.instance_index) for test in self_tests}
    columns = ["benchmark", "split", "instance_index", "passage", "question", "answer"]
    for version in versions:
        for row, record in enumerate(load_records(store, version, columns=columns).to_pylist()):
            if (version.benchmark, record["split"], record["instance_index"]) in items:
                name = f"{version.benchmark} {row}"
                texts = [record[part] for part in ("passage", "question", "answer")]
                parts = [_words(f"before {name}"), *texts, _words(f"behind {name}")]
                yield name, "\n\n".join(text for text in parts if text)


def _words(seed: str) -> str:
    """Return pseudo-random words that occur nowhere else."""
    digest = "".join(sha256(f"{seed} {n}".encode()).hexdigest() for n in range(_N_WORDS // 8))
    return " ".join(digest[at : at + 8] for at in range(0, len(digest), 8))


def _write_pack(folder: Path, documents: Sequence[tuple[str, str]]) -> Pack:
    folder.mkdir(parents=True)
    with create(folder / _LINES, ".zst") as file:
        for name, text in documents:
            file.write(orjson.dumps({"id": name, "text": text}) + b"\n")
    names, texts = zip(*documents, strict=True)
    pq.write_table(pa.table({"id": names, "text": texts}), folder / _TABLE)
    shards = tuple(shard_at(_SOURCE, folder / name, folder) for name in (_LINES, _TABLE))
    return Pack(name="self-tests-0000", source=_SOURCE, shards=shards)


def _lost(
    entries: pa.Table, shard: Shard, self_tests: Sequence[SelfTest]
) -> Iterator[tuple[str, Problem]]:
    """Yield the self-tests whose best match in a shard does not reach its threshold."""
    best: dict[tuple[object, ...], tuple[bool, float]] = {}
    for entry in entries.to_pylist():
        item = entry["benchmark"], entry["detector"], entry["split"], entry["instance_index"]
        found = any(entry[name] for name in _DECISIONS), entry["score"]
        best[item] = max(found, best.get(item, found))
    for test in self_tests:
        is_found, score = best.get(test, (False, None))
        if not is_found:
            where = f"{test.benchmark}: {test.split} {test.instance_index}, {test.detector}"
            planted = f"the planted item ({shard.name.partition('.')[2]})"
            failure = f"{planted} was not found"
            if score is not None:
                failure = f"{planted} was found with a score of {score:.3f}, but does not count"
            yield test.benchmark, Problem(where, failure, remedy=_REMEDY)


N_SAMPLED = 3  # blocks; one takes about as long as 14 MB of a scan

_SKETCH_REMEDY = (
    "report this as a bug; remove the table [sketch], delete `scan_results` and run again"
)


def matches_in_excluded_blocks(
    store: Store, packs: Sequence[Pack], versions: Sequence[Version], policy: Policy
) -> tuple[list[Problem], int]:
    """Scan a random sample of excluded blocks; return the problems and the number of blocks.

    The sample changes whenever scan results are added. Blocks of a sketch that was removed since
    are left out.
    """
    scan, index = scan_fingerprint(store, policy), index_fingerprint(store, policy)
    results = ScanResults(store, scan)
    by_folder = [folder.answered for folder in results.folders]
    with_answers = frozenset[str]().union(*by_folder)
    answered = [
        (pack, shard, version, answer)
        for pack in packs
        for shard in pack.shards
        for version in versions
        if version.fingerprint in with_answers
        and (answer := results.answer(shard.fingerprint, version.fingerprint))
    ]
    problems: list[Problem] = []
    n_sampled = 0
    for number in shuffled(f"excluded blocks of {len(answered)} results", len(answered)).tolist():
        if n_sampled == N_SAMPLED:
            break
        pack, shard, version, record = answered[number]
        excluded = sorted({*range(record["n_blocks"])} - {*record["blocks_read"]})
        # A sketch that was removed since does not say any more where its blocks lie.
        if not (excluded and has_blocks(store, record["sketch"], shard.fingerprint)):
            continue
        n_sampled += 1
        name = f"{shard.fingerprint} {version.fingerprint}"
        block = excluded[int(shuffled(name, len(excluded))[0])]
        sample = SomeBlocks(record["sketch"], (block,), record["n_blocks"])
        job = ShardJob(store.root, shard, pack.source, (version,), policy, index, scan, some=sample)
        build_search_files(store, job.versions, policy, index=index, scan=scan)
        n = 0
        with collecting(problems):
            n = sum(len(match["part"]) for scanned in scan_blocks(job) for match in scanned.matches)
        if n:
            where = f"{pack.name}: {shard.name}, block {block}"
            found = f"{n:,} matches of {version.benchmark}"
            problems.append(
                Problem(where, found, "none, because the sketch excludes it", _SKETCH_REMEDY)
            )
    return problems, n_sampled
