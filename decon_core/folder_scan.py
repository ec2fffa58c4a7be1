"""A folder of benchmarks and a folder of shards to everything a person wants to know of them.

    <out>/matches.parquet   every match down to the evidence floor, with score and call
    <out>/ledger.jsonl      per shard: what was read, what could not be, what was found
    <out>/indexability.parquet   which items each rule can see, and why not the others
    <out>/common.parquet    n-grams of the benchmarks that many documents hold
    <out>/summary.json      the counts; written last, so it is there when all the others are
    <out>/compat/           the leaks in the reference implementation's report form, if asked for
    <out>/clean/            the benchmarks without the items that leaked, if asked for
    <out>/.store/           records, index and tiles: what saves the same work the next time

The stages are those of the pipeline; only what is missing in the store is done.
"""

from __future__ import annotations

import glob
import os
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from decon_core.common import freeze_common
from decon_core.compat import write_report
from decon_core.config import Source
from decon_core.corpus import Pack, Shard, require_names_in_utf8, shard_at
from decon_core.errors import (
    ConfigError,
    CorpusError,
    InputError,
    MissingError,
    Problem,
    StaleError,
)
from decon_core.evals.folder import records_in
from decon_core.idf import Snapshot, current_snapshot, freeze
from decon_core.index import build_part, has_part, index_fingerprint
from decon_core.indexability import indexability
from decon_core.leaks import entries_of_shard
from decon_core.mixtures.clean_evals import Leaked, write_clean_evals
from decon_core.policy import Policy
from decon_core.records import Version, load_records, save_records
from decon_core.scan import Progress, let_go, scan_packs
from decon_core.schemas import ENTRIES
from decon_core.store import Store, aside, read_json, remove, write_json, write_parquet
from decon_core.streams import FORMATS, LINE_FORMATS, format_of
from decon_core.tiles import missing_tiles, scan_fingerprint
from decon_core.verdicts import NO_VERDICTS, Verdicts

MATCHES_FILE = "matches.parquet"
LEDGER_FILE = "ledger.jsonl"
SUMMARY_FILE = "summary.json"
COMMON_FILE = "common.parquet"
INDEXABILITY_FILE = "indexability.parquet"
COMPAT_FOLDER = "compat"
CLEAN_FOLDER = "clean"
STORE_FOLDER = ".store"

_SOURCE = "corpus"
_PACK = f"{_SOURCE}-0000"
_FILE = pa.field("file", pa.string(), nullable=False, metadata={"description": "name of the shard"})
FOUND = pa.schema([_FILE, *ENTRIES])  # a shard's fingerprint says nothing to a person


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is looked for, where, and where the answer goes."""

    evals: Path
    corpus: str  # a folder, a file, or a glob
    out: Path
    policy: Policy
    text: str | tuple[str, ...] | None = "text"
    messages: str | None = None
    roles: tuple[str, ...] = ()
    id: str | None = "id"
    workers: int = 1
    has_compat: bool = False
    has_clean_evals: bool = False
    verdicts: Verdicts = NO_VERDICTS


@dataclass
class BenchmarkCount:
    """What was found of one benchmark."""

    benchmark: str
    n_items: int
    n_records: int
    n_leaked_items: int = 0  # by any rule
    n_leaks: int = 0  # pairs of item and document
    n_documents: int = 0
    n_items_by_rule: dict[str, int] = field(default_factory=dict)
    n_items_by_all: int = 0


@dataclass
class Outcome:
    """What a scan came to."""

    benchmarks: list[BenchmarkCount] = field(default_factory=list)
    n_shards: int = 0
    n_shards_read: int = 0  # this time; the others were done before
    n_shards_unread: int = 0  # that could not be
    n_rows: int = 0
    n_documents: int = 0
    n_characters: int = 0
    n_too_short: int = 0
    n_unreadable: int = 0
    n_matches: int = 0
    n_leaks: int = 0
    n_contaminated_documents: int = 0
    n_common: int = 0  # n-grams that many documents hold
    n_unseen: dict[str, int] = field(default_factory=dict)  # by rule: items that it cannot see
    failed: list[Problem] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)  # files that are no shards

    @property
    def has_read_nothing(self) -> bool:
        """Whether there were rows, and not one could be read."""
        return self.n_unreadable > 0 and self.n_documents == 0


@dataclass(frozen=True)
class Work:
    """What a scan still has to do."""

    n_shards: int
    n_bytes: int  # of the shards, as they lie on the disk


def load_policy(path: Path, *, like: Policy | None = None) -> Policy:
    """A policy from a TOML file: its keys at the top level, or in a table `policy`.

    `like`: has what the file does not name; else it is as always.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(Problem(str(path), "no such file", "a policy in TOML")) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(Problem(str(path), str(error), "valid TOML in UTF-8")) from None
    section = values.get("policy", values)
    if not isinstance(section, dict):
        raise ConfigError(Problem(f"{path}: policy", repr(section), "a table"))
    tokenizer = section.get("tokenizer_str")
    if isinstance(tokenizer, str) and tokenizer.endswith(".json"):
        section = {**section, "tokenizer_str": str(path.parent / tokenizer)}
    given = asdict(like) if like else {}
    return Policy.from_mapping({**given, **section}, where=str(path))


def scan_folder(
    request: Request,
    *,
    on_step: Callable[[str], None],
    on_work: Callable[[Work], None],
    on_progress: Progress | None = None,
) -> Outcome:
    """Scan, and write the answer. Shards that cannot be read are named in it; the others count."""
    store = Store(request.out / STORE_FOLDER)
    _require_folder(request.out)
    for name in (SUMMARY_FILE, CLEAN_FOLDER):  # until this scan is through, there is no answer
        remove(request.out / name)
    pack, skipped = _pack(request, store)
    if skipped:
        on_step(f"not shards, so not looked at: {_some(skipped)}")
    versions = _save_benchmarks(request, store, on_step)
    _index(store, versions, request.policy, on_step)
    pa.default_memory_pool().release_unused()  # what reading benchmarks took is not needed again
    scan = scan_fingerprint(store, request.policy)
    lacking = [shard for _, shard, _ in missing_tiles(store, [pack], versions, scan)]
    on_work(Work(len(lacking), sum(shard.n_bytes for shard in lacking)))
    failed: Sequence[Problem] = ()
    try:
        scan_packs(
            store,
            [pack],
            versions,
            request.policy,
            workers=request.workers,
            on_progress=on_progress,
        )
    except CorpusError as error:
        failed = error.problems
    let_go()
    unread = {shard.name for _, shard, _ in missing_tiles(store, [pack], versions, scan)}
    outcome = Outcome(failed=list(failed), skipped=skipped, n_shards=len(pack.shards))
    outcome.n_shards_read, outcome.n_shards_unread = len(lacking) - len(unread), len(unread)
    scanned = _Scanned(store, pack, versions, scan, unread)
    outcome.n_common = _write_common(request, scanned)
    seen = indexability(store, versions, request.policy)
    write_parquet(request.out / INDEXABILITY_FILE, seen)
    outcome.n_unseen = dict.fromkeys(request.policy.detectors, 0) | Counter(
        seen.filter(pc.invert(seen["is_visible"]))["rule"].to_pylist()
    )
    _write_answer(request, scanned, outcome)
    return outcome


def _require_folder(out: Path) -> None:
    """Raise where the answer cannot go."""
    if out.exists() and not out.is_dir():
        raise InputError(Problem(str(out), "a file", "a folder, there or not, for the answer"))


def _write_common(request: Request, scanned: _Scanned) -> int:
    """What is boilerplate here, before it is decided what leaked: it may not count."""
    pack = replace(scanned.pack, shards=tuple(_read_shards(scanned)))
    index = index_fingerprint(scanned.store, request.policy)
    common = freeze_common(
        scanned.store, [pack], scanned.versions, request.policy, index=index, scan=scanned.scan
    )
    write_parquet(request.out / COMMON_FILE, common)
    return int(common.num_rows)


# What is scanned ----------------------------------------------------------------------------------


def _pack(request: Request, store: Store) -> tuple[Pack, list[str]]:
    """All shards as one pack, and the names of files beside them that are none."""
    manifest = store.pack(_PACK)
    before = Pack.from_json(read_json(manifest)).shards if manifest.is_file() else ()
    source = Source(
        name=_SOURCE,
        path=request.corpus,
        text=None if request.messages else request.text,
        messages=request.messages,
        roles=request.roles,
        id=request.id,
    )
    known = {shard.path: shard for shard in before}
    pack, skipped = pack_of(source, out=request.out, known=known)
    write_json(manifest, pack.to_json())
    return pack, skipped


def pack_of(source: Source, *, out: Path, known: Mapping[str, Shard]) -> tuple[Pack, list[str]]:
    """The shards that a source's path leads to, whatever it is, and what beside them is none."""
    base, files, skipped = _corpus_files(source.path, out)
    shards = [shard_at(source, file, base, known.get(str(file))) for file in files]
    return Pack(name=_PACK, source=source, shards=tuple(shards)), skipped


def _corpus_files(path: str, out: Path) -> tuple[Path, list[Path], list[str]]:
    """The folder that names start from, the shards, and what is beside them."""
    # Not resolved: people name links, and want to find their names again.
    corpus, out = Path(os.path.abspath(path)), Path(os.path.abspath(out))  # noqa: PTH100
    is_folder = corpus.is_dir()
    if is_folder:
        base, found = corpus, sorted(file for file in corpus.rglob("*") if file.is_file())
    elif corpus.is_file():
        base, found = corpus.parent, [corpus]
    else:
        names = glob.glob(str(corpus), recursive=True)  # noqa: PTH207 - a Path takes no pattern
        found = sorted(file for name in names if (file := Path(name)).is_file())
        wild = next((at for at, part in enumerate(corpus.parts) if glob.has_magic(part)), -1)
        base = Path(*corpus.parts[:wild])
    # An earlier answer below the corpus is no part of it, nor is what programs keep for themselves.
    found = [
        file
        for file in found
        if not file.is_relative_to(out) and not _is_hidden(file.relative_to(base))
    ]
    require_names_in_utf8(found)
    shards = [file for file in found if format_of(file) in FORMATS]
    others = [file.relative_to(base).as_posix() for file in found if format_of(file) not in FORMATS]
    if not shards or (others and not is_folder):
        what = "no such file or folder" if not found else f"no shard, but {_some(others)}"
        expected = f"files that end in {', '.join(FORMATS)}, each also compressed"
        raise CorpusError(Problem(path, what, expected))
    return base, shards, others


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


# What is looked for -------------------------------------------------------------------------------


def _save_benchmarks(
    request: Request, store: Store, on_step: Callable[[str], None]
) -> list[Version]:
    tables = records_in(request.evals)
    if not tables:
        raise InputError(Problem(str(request.evals), "no record in any file", "at least one"))
    versions = [save_records(store, name, table) for name, table in tables.items()]
    n_records = sum(version.n_records for version in versions)
    n_items = sum(version.n_items for version in versions)
    on_step(f"{len(versions)} benchmarks: {n_items:,} items, {n_records:,} records")
    return versions


def _index(
    store: Store, versions: Sequence[Version], policy: Policy, on_step: Callable[[str], None]
) -> None:
    """Freeze idf over exactly these benchmarks, and build the parts that are missing."""
    snapshot = _snapshot(store, versions, policy)
    index = index_fingerprint(store, policy)
    n_built = 0
    for version in versions:
        if not has_part(store, version, index):
            build_part(store, version, snapshot, policy)
            n_built += 1
    on_step(f"index: {n_built} built, {len(versions) - n_built} already there")


def _snapshot(store: Store, versions: Sequence[Version], policy: Policy) -> Snapshot:
    try:
        snapshot = current_snapshot(store, policy)
    except (MissingError, StaleError):
        return freeze(store, versions, policy)
    if snapshot.members == {version.benchmark: version.fingerprint for version in versions}:
        return snapshot
    return freeze(store, versions, policy)


# The answer ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scanned:
    """What was scanned, and where its tiles are."""

    store: Store
    pack: Pack
    versions: Sequence[Version]
    scan: str
    unread: set[str]  # shards without tiles

    def entries(self, shard: Shard, request: Request) -> pa.Table:
        return entries_of_shard(
            self.store,
            shard,
            self.versions,
            request.policy,
            self.scan,
            source=self.pack.source.name,
            verdicts=request.verdicts,
        )


def _write_answer(request: Request, scanned: _Scanned, outcome: Outcome) -> None:
    counts = _Counts(scanned.versions, request.policy.detectors)
    leaked = Leaked(request.policy)
    with (
        aside(request.out / MATCHES_FILE) as matches,
        aside(request.out / LEDGER_FILE) as ledger,
        pq.ParquetWriter(matches, FOUND, compression="zstd") as writer,
        ledger.open("wb") as lines,
    ):
        for shard in scanned.pack.shards:
            if shard.name in scanned.unread:
                line = _failed_line(shard, outcome.failed)
            else:
                entries = scanned.entries(shard, request)
                names = pa.repeat(pa.scalar(shard.name), entries.num_rows)
                writer.write_table(entries.add_column(0, _FILE, names).cast(FOUND))
                line = _ledger_line(scanned, shard, entries)
                counts.add(entries)
                leaked.add(shard.name, entries)
                _add_up(outcome, line)
            lines.write(orjson.dumps(line) + b"\n")
    outcome.benchmarks = counts.finish()
    outcome.n_leaks = sum(count.n_leaks for count in outcome.benchmarks)
    if request.has_compat:
        _write_compat(request, scanned)
    # What nobody has seen may hold any item: then no benchmark can be called clean.
    is_blind = outcome.n_shards_unread or outcome.has_read_nothing
    if request.has_clean_evals and not is_blind:
        unseen = {"n_unreadable_rows": outcome.n_unreadable, "n_invisible_items": outcome.n_unseen}
        write_clean_evals(
            request.out / CLEAN_FOLDER,
            scanned.store,
            scanned.versions,
            leaked,
            request.policy,
            unseen=unseen,
        )
    write_json(request.out / SUMMARY_FILE, _summary(request, outcome))


def _failed_line(shard: Shard, problems: Sequence[Problem]) -> dict[str, Any]:
    told = [
        str(problem)
        for problem in problems
        if problem.where == shard.path or problem.where.startswith(f"{shard.path}:")
    ]
    return {"file": shard.name, "is_read": False, "problems": told}


def _ledger_line(scanned: _Scanned, shard: Shard, entries: pa.Table) -> dict[str, Any]:
    read = read_json(scanned.store.ledger(scanned.scan, shard.fingerprint))
    leaks = entries.filter(entries["is_contaminated"])
    has_lines = format_of(Path(shard.path)) in LINE_FORMATS
    return {
        "file": shard.name,
        "is_read": True,
        "n_rows": read["n_rows"],
        "n_documents": read["n_documents"],
        "n_characters": read["n_characters"],
        "n_too_short": read["n_too_short"],
        "n_matches": entries.num_rows,
        "n_leaks": leaks.num_rows,
        "n_contaminated_documents": pc.count_distinct(leaks["row"]).as_py(),
        "unreadable": [
            {"line": row["row"] + 1, **row} if has_lines else row for row in read["unreadable"]
        ],
    }


def _add_up(outcome: Outcome, line: dict[str, Any]) -> None:
    outcome.n_rows += line["n_rows"]
    outcome.n_documents += line["n_documents"]
    outcome.n_characters += line["n_characters"]
    outcome.n_too_short += line["n_too_short"]
    outcome.n_unreadable += len(line["unreadable"])
    outcome.n_matches += line["n_matches"]
    outcome.n_contaminated_documents += line["n_contaminated_documents"]


class _Counts:
    """Leaks by benchmark and rule, over all shards."""

    def __init__(self, versions: Sequence[Version], rules: Sequence[str]) -> None:
        self._counts = {
            version.benchmark: BenchmarkCount(
                version.benchmark,
                version.n_items,
                version.n_records,
                n_items_by_rule=dict.fromkeys(rules, 0),
            )
            for version in versions
        }
        self._rules: dict[tuple[str, str, int], set[str]] = {}  # that found an item

    def add(self, entries: pa.Table) -> None:
        """The leaks of one more shard."""
        names = ["benchmark", "split", "instance_index", "row", "detector"]
        leaks = entries.filter(entries["is_contaminated"]).select(names).to_pylist()
        for leak in leaks:
            item = leak["benchmark"], leak["split"], leak["instance_index"]
            self._rules.setdefault(item, set()).add(leak["detector"])
        pairs = {
            (leak["benchmark"], leak["split"], leak["instance_index"], leak["row"])
            for leak in leaks
        }
        for name, n in Counter(name for name, *_ in pairs).items():
            self._counts[name].n_leaks += n
        documents = {(name, row) for name, _, _, row in pairs}
        for name, n in Counter(name for name, _ in documents).items():
            self._counts[name].n_documents += n

    def finish(self) -> list[BenchmarkCount]:
        for (name, _, _), rules in self._rules.items():
            count = self._counts[name]
            count.n_leaked_items += 1
            count.n_items_by_all += len(rules) == len(count.n_items_by_rule)
            for rule in rules:
                count.n_items_by_rule[rule] += 1
        return list(self._counts.values())


def _write_compat(request: Request, scanned: _Scanned) -> None:
    records = {
        version.benchmark: load_records(scanned.store, version) for version in scanned.versions
    }
    with aside(request.out / COMPAT_FOLDER) as folder:
        folder.mkdir()
        for shard in _read_shards(scanned):
            write_report(
                folder,
                shard,
                scanned.pack.source,
                scanned.entries(shard, request),
                records,
                request.policy,
            )


def _read_shards(scanned: _Scanned) -> Iterator[Shard]:
    return (shard for shard in scanned.pack.shards if shard.name not in scanned.unread)


def _summary(request: Request, outcome: Outcome) -> dict[str, Any]:
    """Nothing of when or how fast: scanning the same again gives the same file."""
    return {
        "evals": str(request.evals),
        "corpus": request.corpus,
        "policy": asdict(request.policy),
        "n_verdicts": len(request.verdicts.by_pair),
        "n_shards": outcome.n_shards,
        "n_shards_unread": outcome.n_shards_unread,
        "n_rows": outcome.n_rows,
        "n_documents": outcome.n_documents,
        "n_characters": outcome.n_characters,
        "n_too_short": outcome.n_too_short,
        "n_unreadable": outcome.n_unreadable,
        "n_matches": outcome.n_matches,
        "n_leaks": outcome.n_leaks,
        "n_contaminated_documents": outcome.n_contaminated_documents,
        "n_common_ngrams": outcome.n_common,
        "n_items_not_visible": outcome.n_unseen,
        "not_looked_at": outcome.skipped,
        "benchmarks": {
            count.benchmark: {
                name: value for name, value in asdict(count).items() if name != "benchmark"
            }
            for count in outcome.benchmarks
        },
    }
