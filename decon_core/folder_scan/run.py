"""Scan a folder of shards for a folder of benchmarks, and write the results to a folder.

    <out>/matches.parquet   every match down to the evidence floor, with score and classification
    <out>/ledger.jsonl      per shard: counts of rows and matches, unreadable rows
    <out>/indexability.parquet   which items each detector can find, and why not the others
    <out>/common.parquet    n-grams of the benchmarks that are in many documents
    <out>/summary.json      the counts; written last, when everything else is complete
    <out>/compat/           leaks as reports of the reference implementation (optional)
    <out>/clean/            the benchmarks without leaked items (optional)
    <out>/.store/           records, index and tiles, reused by the next scan

The stages are those of the pipeline; only what is missing in the store is computed.
"""

from __future__ import annotations

import glob
import os
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from decon_core.benchmarks.folder import records_in
from decon_core.benchmarks.records import Version, load_records, save_records
from decon_core.config.load import Source
from decon_core.config.policy import Policy, unknown_benchmarks, with_preset
from decon_core.corpus.first_rows import Row, sample
from decon_core.corpus.packs import Pack, Shard, require_names_in_utf8, shard_at
from decon_core.corpus.shapes import (
    as_option,
    no_row_read,
    source_for,
    unread_fields,
    with_fields,
)
from decon_core.decisions.common_ngrams import freeze_common
from decon_core.decisions.leaks import entries_of_shard
from decon_core.decisions.verdicts import NO_VERDICTS, Verdicts
from decon_core.errors import (
    ConfigError,
    CorpusError,
    DamagedError,
    InputError,
    MissingError,
    Problem,
    StaleError,
)
from decon_core.index.idf import Snapshot, current_snapshot, freeze
from decon_core.index.parts import build_part, has_part, index_fingerprint
from decon_core.interop.decon_jsonl import write_report
from decon_core.mixtures.clean_evals import LeakedItems, write_clean_evals
from decon_core.quality.integrity import remove_damaged
from decon_core.quality.visibility import indexability
from decon_core.report.rows import ONLY_SOURCE
from decon_core.scan.blocks import kept_scanners
from decon_core.scan.scanner import Progress, scan_packs
from decon_core.scan.tiles import missing_tiles, scan_fingerprint
from decon_core.schemas import ENTRIES
from decon_core.storage.compression import FORMATS, LINE_FORMATS, format_of
from decon_core.storage.paths import (
    RemotePath,
    expand_glob,
    fixed_part,
    is_hidden,
    is_url,
    parse_path,
    stamp_of,
)
from decon_core.storage.store import (
    Store,
    atomic_path,
    read_json,
    remove,
    sweep_beside,
    write_json,
    write_parquet,
    write_plain_json,
)
from decon_core.wording import counted

MATCHES_FILE = "matches.parquet"
LEDGER_FILE = "ledger.jsonl"
SUMMARY_FILE = "summary.json"
COMMON_FILE = "common.parquet"
INDEXABILITY_FILE = "indexability.parquet"
COMPAT_FOLDER = "compat"
CLEAN_FOLDER = "clean"
STORE_FOLDER = ".store"

_FILE = pa.field("file", pa.string(), nullable=False, metadata={"description": "name of the shard"})
MATCHES_SCHEMA = pa.schema([_FILE, *ENTRIES])


@dataclass(frozen=True, kw_only=True)
class Request:
    """The inputs, output folder and options of a folder scan."""

    evals: Path
    corpus: str  # a folder, a file, a glob, or a URL
    out: Path
    policy: Policy
    # If neither `text` nor `messages` is set, each file is read by its field `text`, or else by the
    # fields that its first rows suggest.
    text: str | tuple[str, ...] | None = None
    messages: str | None = None
    roles: tuple[str, ...] = ()
    id: str | None = "id"
    workers: int = 1
    has_compat: bool = False
    has_clean_evals: bool = False
    verdicts: Verdicts = NO_VERDICTS


@dataclass
class BenchmarkCount:
    """The results for one benchmark."""

    benchmark: str
    n_items: int
    n_records: int
    n_leaked_items: int = 0  # by any detector
    n_leaks: int = 0  # pairs of item and document
    n_documents: int = 0  # with a leak
    n_question_only_items: int = 0  # not leaked anywhere, but question-only somewhere
    n_question_only_documents: int = 0  # with a question of it, and no leak of any benchmark
    n_items_by_rule: dict[str, int] = field(default_factory=dict)  # leaked items by detector
    n_items_by_all: int = 0  # leaked by every detector


@dataclass(frozen=True)
class UnreadField:
    """A field that was not read, although it may contain questions or answers."""

    file: str  # name of the shard
    name: str
    n_rows: int  # of the shard


@dataclass
class Outcome:
    """The results of a folder scan."""

    benchmarks: list[BenchmarkCount] = field(default_factory=list)
    n_shards: int = 0
    n_shards_read: int = 0  # in this scan; the tiles of the others exist already
    n_shards_unread: int = 0  # that could not be read
    n_rows: int = 0
    n_documents: int = 0
    n_characters: int = 0
    n_too_short: int = 0
    n_unreadable: int = 0
    n_invalid_utf8: int = 0  # documents with bytes that are not UTF-8
    n_matches: int = 0
    n_leaks: int = 0
    n_contaminated_documents: int = 0
    n_question_only: int = 0  # pairs of item and document, in documents without a leak of the item
    n_question_only_documents: int = 0  # without a leak, but with a question without its answer
    n_common: int = 0  # n-grams that are in many documents
    n_unseen: dict[str, int] = field(default_factory=dict)  # by detector: items it cannot find
    failed: list[Problem] = field(default_factory=list)
    # Shards without a single readable row, mostly because their fields have other names.
    unread: list[Problem] = field(default_factory=list)
    n_rows_unread: int = 0  # rows of the shards in `unread`
    n_bytes_unread: int = 0  # bytes of these shards, and of those that could not be read at all
    skipped: list[str] = field(default_factory=list)  # files that are not shards
    n_bytes_skipped: int = 0
    n_set_aside: int = 0  # files that end like shards, but whose names begin with `_` or `.`
    unread_fields: list[UnreadField] = field(default_factory=list)

    @property
    def is_incomplete(self) -> bool:
        """Whether a whole shard was not read, so that no benchmark can be called clean."""
        return bool(self.n_shards_unread or self.unread)


@dataclass(frozen=True)
class Work:
    """The shards that are still to be scanned."""

    n_shards: int
    n_bytes: int  # size of the files


def load_policy(path: Path, *, like: Policy | None = None) -> Policy:
    """Load a policy from a TOML file: its keys at the top level, or in a table `policy`.

    Settings that are not in the file are taken from `like`, or from the defaults if it is None.
    """
    return policy_from(read_policy(path), path, like=like)


def read_policy(path: Path) -> dict[str, Any]:
    """Read a TOML file. Call it once per path: a pipe is empty the second time."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(Problem(str(path), "no such file", "a policy in TOML")) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(Problem(str(path), str(error), "valid TOML in UTF-8")) from None


def policy_from(values: Mapping[str, Any], path: Path, *, like: Policy | None = None) -> Policy:
    """Make a policy from the values of a TOML file; `like` as in `load_policy`."""
    section = values.get("policy", values)
    if not isinstance(section, dict):
        raise ConfigError(Problem(f"{path}: policy", repr(section), "a table"))
    tokenizer = section.get("tokenizer_str")
    if isinstance(tokenizer, str) and tokenizer.endswith(".json"):
        section = {**section, "tokenizer_str": str(path.parent / tokenizer)}
    base = asdict(like) if like else {}
    if isinstance(section.get("benchmark"), dict):
        section = {**section, "benchmark": {**base.get("benchmark", {}), **section["benchmark"]}}
    return Policy.from_mapping({**base, **with_preset(section, where=str(path))}, where=str(path))


def scan_folder(
    request: Request,
    *,
    on_step: Callable[[str], None],
    on_work: Callable[[Work], None],
    on_progress: Progress | None = None,
) -> Outcome:
    """Scan and write the results. Shards that cannot be read are listed in the outcome.

    Damaged files of the store are removed and the scan is repeated, which rebuilds only them.
    """
    store = Store(request.out / STORE_FOLDER)
    _require_folder(request.out)
    sweep_beside(request.out)
    store.sweep_drafts()
    removed_before: set[Path] = set()
    while True:
        try:
            return _scan_folder(request, store, on_step, on_work, on_progress)
        except DamagedError as error:
            removed = {*remove_damaged(store, error.problems)} - removed_before
            if not removed:
                raise
            removed_before |= removed
            for path in sorted(removed):
                on_step(f"damaged, will be rebuilt: {path}")


def _scan_folder(
    request: Request,
    store: Store,
    on_step: Callable[[str], None],
    on_work: Callable[[Work], None],
    on_progress: Progress | None,
) -> Outcome:
    for name in (SUMMARY_FILE, CLEAN_FOLDER):  # absent until this scan is complete
        remove(request.out / name)
    corpus = corpus_files(request.corpus, request.out)
    packs, unread_fields_by_shard = _packs(request, corpus, store, on_step)
    if corpus.others:
        on_step(f"not shards, so not looked at: {_some(corpus.others)}")
    versions = _save_benchmarks(request, store, on_step)
    _require_known(request.policy, versions)
    _index(store, versions, request.policy, on_step)
    pa.default_memory_pool().release_unused()  # the memory that reading benchmarks took
    scan = scan_fingerprint(store, request.policy)
    missing = [shard for _, shard, _ in missing_tiles(store, packs, versions, scan)]
    on_work(Work(len(missing), sum(shard.n_bytes for shard in missing)))
    failed: Sequence[Problem] = ()
    try:
        scan_packs(
            store,
            packs,
            versions,
            request.policy,
            workers=request.workers,
            on_progress=on_progress,
        )
    except CorpusError as error:
        failed = error.problems
    kept_scanners.cache_clear()
    unread = {shard.name for _, shard, _ in missing_tiles(store, packs, versions, scan)}
    outcome = Outcome(
        failed=list(failed),
        n_shards=len(corpus.shards),
        skipped=corpus.others,
        n_bytes_skipped=corpus.n_bytes_of_others,
        n_set_aside=corpus.n_set_aside,
    )
    outcome.n_shards_read, outcome.n_shards_unread = len(missing) - len(unread), len(unread)
    scanned = _Scanned(store, packs, versions, scan, unread, unread_fields_by_shard)
    outcome.n_common = _write_common(request, scanned)
    visibility = indexability(store, versions, request.policy)
    write_parquet(request.out / INDEXABILITY_FILE, visibility)
    outcome.n_unseen = dict.fromkeys(request.policy.detectors, 0) | Counter(
        visibility.filter(pc.invert(visibility["is_visible"]))["rule"].to_pylist()
    )
    _write_results(request, scanned, outcome)
    return outcome


def _require_known(policy: Policy, versions: Sequence[Version]) -> None:
    """Raise if the policy has thresholds for an unknown benchmark."""
    problems = [*unknown_benchmarks(policy, [version.benchmark for version in versions])]
    if problems:
        raise ConfigError(problems)


def _require_folder(out: Path) -> None:
    """Raise if `out` exists and is not a folder."""
    if out.exists() and not out.is_dir():
        raise InputError(Problem(str(out), "a file", "an output folder, which may be missing"))


def _write_common(request: Request, scanned: _Scanned) -> int:
    """Count and write the common n-grams, which the policy may exclude; return their number."""
    packs = [
        replace(pack, shards=tuple(one for one in pack.shards if one.name not in scanned.unread))
        for pack in scanned.packs
    ]
    index = index_fingerprint(scanned.store, request.policy)
    common = freeze_common(
        scanned.store, packs, scanned.versions, request.policy, index=index, scan=scanned.scan
    )
    write_parquet(request.out / COMMON_FILE, common)
    return int(common.num_rows)


# Corpus -------------------------------------------------------------------------------------------


def _packs(
    request: Request, corpus: CorpusFiles, store: Store, on_step: Callable[[str], None]
) -> tuple[list[Pack], dict[str, list[str]]]:
    """Return one pack per way in which files are read, and by shard the fields not read."""
    known = {shard.path: shard for pack in _previous_packs(store) for shard in pack.shards}
    by_source: dict[Source, list[Path]] = {}
    unread: dict[tuple[Source, tuple[str, ...], Source | None], list[Path]] = {}
    for file in corpus.shards:
        rows = sample(file).rows
        source = _source(request, rows)
        by_source.setdefault(source, []).append(file)
        if names := tuple(unread_fields(source, rows)):
            unread.setdefault((source, names, with_fields(source, names, rows)), []).append(file)
    if not (request.text or request.messages):
        _report_guessed_fields(by_source, on_step)
    for (_, names, more), files in unread.items():
        on_step(_format_unread_fields(names, more, files))
    by_path = {str(file): [*names] for (_, names, _), files in unread.items() for file in files}
    packs = []
    for number, (source, files) in enumerate(by_source.items()):
        name = f"{ONLY_SOURCE}-{number:04}"
        shards = tuple(shard_at(source, file, corpus.base, known.get(str(file))) for file in files)
        packs.append(Pack(name=name, source=source, shards=shards))
    _save_packs(store, packs)
    all_shards = [shard for pack in packs for shard in pack.shards]
    return packs, {one.name: by_path[one.path] for one in all_shards if one.path in by_path}


def _format_unread_fields(names: Sequence[str], more: Source | None, files: Sequence[Path]) -> str:
    """Format the fields that are not read, and the option that reads them."""
    fields = f"field{'' if len(names) == 1 else 's'} {', '.join(map(repr, names))}"
    remedy = f"; to read all: {as_option(more)}" if more else ""
    return f"not read: {fields} of {_some([file.name for file in files])}{remedy}"


def _previous_packs(store: Store) -> list[Pack]:
    return [Pack.from_json(read_json(path)) for path in _manifests(store)]


def _manifests(store: Store) -> list[Path]:
    return sorted(store.pack(f"{ONLY_SOURCE}-0000").parent.glob(f"{ONLY_SOURCE}-*.json"))


def _save_packs(store: Store, packs: Sequence[Pack]) -> None:
    """Save the packs, so that the next scan need not hash unchanged shards again."""
    for path in _manifests(store)[len(packs) :]:
        path.unlink()
    for pack in packs:
        write_json(store.pack(pack.name), pack.to_json())


def _source(request: Request, rows: Sequence[Row]) -> Source:
    """Return how to read a file: by the requested fields, or by those of its first rows."""
    source = Source(
        name=ONLY_SOURCE,
        path=request.corpus,
        text=None if request.messages else request.text,
        messages=request.messages,
        roles=request.roles,
        id=request.id,
    )
    return source if request.text or request.messages else source_for(rows, source)


def _report_guessed_fields(
    by_source: Mapping[Source, Sequence[Path]], on_step: Callable[[str], None]
) -> None:
    """Report the files that are read by other fields than `text`, as command-line options."""
    for source, files in by_source.items():
        if source.text != "text":
            names = _some([file.name for file in files])
            on_step(f"fields guessed from the first rows: {as_option(source)} for {names}")


def pack_of(source: Source, *, out: Path, known: Mapping[str, Shard]) -> tuple[Pack, list[str]]:
    """Return the shards at a source's path as a pack, and the names of the other files there."""
    corpus = corpus_files(source.path, out)
    shards = [shard_at(source, one, corpus.base, known.get(str(one))) for one in corpus.shards]
    return Pack(name=f"{ONLY_SOURCE}-0000", source=source, shards=tuple(shards)), corpus.others


@dataclass(frozen=True)
class CorpusFiles:
    """The files at the path of a corpus."""

    base: Path  # names of shards are relative to it
    shards: list[Path]
    others: list[str]  # files that are not shards
    n_bytes_of_others: int
    n_set_aside: int  # files that end like shards, but whose names begin with `_` or `.`


def corpus_files(path: str, out: Path) -> CorpusFiles:
    """Return the shards of a folder, glob or single file, local or remote, without those in `out`.

    Below a folder and for wildcards, files and folders whose names begin with `_` or `.` are left
    out. A file given by its full name is always a shard.
    """
    base, found, named = (_remote_files if is_url(path) else _local_files)(path)
    out = Path(os.path.abspath(out))  # noqa: PTH100 - not resolved: links keep their names
    found = [file for file in found if not file.is_relative_to(out)]
    set_aside = {file for file in found if is_hidden(file.relative_to(base).parts, named)}
    found = [file for file in found if file not in set_aside]
    require_names_in_utf8(found)
    shards = [file for file in found if format_of(file) in FORMATS]
    others = [file for file in found if format_of(file) not in FORMATS]
    if not shards or (others and named):
        names = [file.relative_to(base).as_posix() for file in others]
        what = f"no shard, but {_some(names)}" if names else "no such file or folder"
        if set_aside and not names:
            what = f"only names that begin with _ or .: {_some(sorted(map(str, set_aside)))}"
        expected = f"files that end in {', '.join(FORMATS)}, or compressed ones"
        raise CorpusError(Problem(path, what, expected))
    return CorpusFiles(
        base,
        shards,
        [file.relative_to(base).as_posix() for file in others],
        sum(stamp_of(file).n_bytes for file in others),
        sum(format_of(file) in FORMATS for file in set_aside),
    )


_Files = tuple[Path, list[Path], tuple[str, ...]]  # base, files, parts of the pattern below it


def _local_files(path: str) -> _Files:
    # Not resolved: links keep their names.
    corpus = Path(os.path.abspath(path))  # noqa: PTH100
    if corpus.is_dir():
        return corpus, sorted(file for file in corpus.rglob("*") if file.is_file()), ()
    if corpus.is_file():
        return corpus.parent, [corpus], (corpus.name,)
    names = glob.glob(str(corpus), recursive=True)  # noqa: PTH207 - Path.glob takes no absolute path
    base = fixed_part(corpus)
    found = sorted(file for name in names if (file := Path(name)).is_file())
    return base, found, corpus.parts[len(base.parts) :]


def _remote_files(path: str) -> _Files:
    corpus = parse_path(path.rstrip("/"))
    if not isinstance(corpus, RemotePath):  # file://
        return _local_files(str(corpus))
    if not glob.has_magic(path) and corpus.is_dir():
        return corpus, [file for file, _ in expand_glob(f"{corpus}/**")], ()
    base = fixed_part(corpus)
    if not glob.has_magic(path):
        return base, [corpus] if corpus.is_file() else [], (corpus.name,)
    return base, [file for file, _ in expand_glob(path)], corpus.parts[len(base.parts) :]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


# Benchmarks ---------------------------------------------------------------------------------------


def _save_benchmarks(
    request: Request, store: Store, on_step: Callable[[str], None]
) -> list[Version]:
    tables = records_in(request.evals)
    if not tables:
        raise InputError(Problem(str(request.evals), "no record in any file", "at least one"))
    versions = [save_records(store, name, table) for name, table in tables.items()]
    n_records = sum(version.n_records for version in versions)
    n_items = sum(version.n_items for version in versions)
    on_step(
        f"{counted(len(versions), 'benchmark')}: {counted(n_items, 'item')}, "
        f"{counted(n_records, 'record')}"
    )
    return versions


def _index(
    store: Store, versions: Sequence[Version], policy: Policy, on_step: Callable[[str], None]
) -> None:
    """Freeze idf over exactly these benchmarks, and build missing index parts."""
    snapshot = _snapshot(store, versions, policy)
    index = index_fingerprint(store, policy)
    n_built = 0
    for version in versions:
        if not has_part(store, version, index):
            build_part(store, version, snapshot, policy)
            n_built += 1
    on_step(f"index: {n_built} built, {len(versions) - n_built} reused")


def _snapshot(store: Store, versions: Sequence[Version], policy: Policy) -> Snapshot:
    try:
        snapshot = current_snapshot(store, policy)
    except (MissingError, StaleError):
        return freeze(store, versions, policy)
    if snapshot.members == {version.benchmark: version.fingerprint for version in versions}:
        return snapshot
    return freeze(store, versions, policy)


# Results ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scanned:
    """The scanned shards and benchmarks, and the store with their tiles."""

    store: Store
    packs: Sequence[Pack]
    versions: Sequence[Version]
    scan: str
    unread: set[str]  # shards without tiles
    unread_fields: Mapping[str, Sequence[str]]  # by shard

    @property
    def shards(self) -> list[tuple[Shard, Source]]:
        """Return all shards with their sources, sorted by path."""
        shards = [(shard, pack.source) for pack in self.packs for shard in pack.shards]
        return sorted(shards, key=lambda one: Path(one[0].path))

    def entries(self, shard: Shard, request: Request) -> pa.Table:
        return entries_of_shard(
            self.store,
            shard,
            self.versions,
            request.policy,
            self.scan,
            source=ONLY_SOURCE,
            verdicts=request.verdicts,
        )


def _write_results(request: Request, scanned: _Scanned, outcome: Outcome) -> None:
    counts = _Counts(scanned.versions, request.policy.detectors)
    leaked = LeakedItems(request.policy)
    with (
        atomic_path(request.out / MATCHES_FILE) as matches,
        atomic_path(request.out / LEDGER_FILE) as ledger,
        pq.ParquetWriter(matches, MATCHES_SCHEMA, compression="zstd") as writer,
        ledger.open("wb") as lines,
    ):
        for shard, source in scanned.shards:
            if shard.name in scanned.unread:
                line = _failed_line(shard, outcome.failed)
                outcome.n_bytes_unread += shard.n_bytes
            else:
                entries = scanned.entries(shard, request)
                names = pa.repeat(pa.scalar(shard.name), entries.num_rows)
                writer.write_table(entries.add_column(0, _FILE, names).cast(MATCHES_SCHEMA))
                line = _ledger_line(scanned, shard, entries)
                counts.add(entries)
                leaked.add(shard.name, entries)
                _add_up(outcome, line, shard, source)
                if line["n_documents"]:
                    outcome.unread_fields += [
                        UnreadField(shard.name, name, line["n_rows"])
                        for name in scanned.unread_fields.get(shard.name, ())
                    ]
            lines.write(orjson.dumps(line) + b"\n")
    outcome.benchmarks = counts.finish()
    outcome.n_leaks = sum(count.n_leaks for count in outcome.benchmarks)
    outcome.n_question_only = counts.n_question_only
    if request.has_compat:
        _write_compat(request, scanned)
    # A shard that was not read may contain any item: then no benchmark can be called clean.
    if request.has_clean_evals and not outcome.is_incomplete:
        unseen = {"n_unreadable_rows": outcome.n_unreadable, "n_invisible_items": outcome.n_unseen}
        write_clean_evals(
            request.out / CLEAN_FOLDER,
            scanned.store,
            scanned.versions,
            leaked,
            request.policy,
            unseen=unseen,
        )
    write_plain_json(request.out / SUMMARY_FILE, _summary(request, outcome))


def _failed_line(shard: Shard, problems: Sequence[Problem]) -> dict[str, Any]:
    of_shard = [
        str(problem)
        for problem in problems
        if problem.where == shard.path or problem.where.startswith(f"{shard.path}:")
    ]
    return {"file": shard.name, "is_read": False, "problems": of_shard}


def _ledger_line(scanned: _Scanned, shard: Shard, entries: pa.Table) -> dict[str, Any]:
    read = read_json(scanned.store.ledger(scanned.scan, shard.fingerprint))
    leaks = entries.filter(entries["is_contaminated"])
    questions = entries.filter(entries["is_question_only"])
    rows_of_questions = {*questions["row"].to_pylist()} - {*leaks["row"].to_pylist()}
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
        "n_question_only": questions.num_rows,
        "n_question_only_documents": len(rows_of_questions),
        **{
            name: [{"line": row["row"] + 1, **row} if has_lines else row for row in read[name]]
            for name in ("unreadable", "invalid_utf8")
        },
    }


def _add_up(outcome: Outcome, line: dict[str, Any], shard: Shard, source: Source) -> None:
    if line["unreadable"] and not line["n_documents"]:
        first = line["unreadable"][0]
        why = f"the first: {first['reason']} ({first['detail']})"
        outcome.unread.append(no_row_read(parse_path(shard.path), source, line["n_rows"], why))
        outcome.n_rows_unread += line["n_rows"]
        outcome.n_bytes_unread += shard.n_bytes
    outcome.n_rows += line["n_rows"]
    outcome.n_documents += line["n_documents"]
    outcome.n_characters += line["n_characters"]
    outcome.n_too_short += line["n_too_short"]
    outcome.n_unreadable += len(line["unreadable"])
    outcome.n_invalid_utf8 += len(line["invalid_utf8"])
    outcome.n_matches += line["n_matches"]
    outcome.n_contaminated_documents += line["n_contaminated_documents"]
    outcome.n_question_only_documents += line["n_question_only_documents"]


_Item = tuple[str, str, int]


class _Counts:
    """Counts of leaks and question-only matches by benchmark and detector, over all shards."""

    def __init__(self, versions: Sequence[Version], detectors: Sequence[str]) -> None:
        self._counts = {
            version.benchmark: BenchmarkCount(
                version.benchmark,
                version.n_items,
                version.n_records,
                n_items_by_rule=dict.fromkeys(detectors, 0),
            )
            for version in versions
        }
        self._detectors: dict[_Item, set[str]] = {}  # by leaked item
        self._question_only: set[_Item] = set()  # items that are question-only in some document
        self.n_question_only = 0

    def add(self, entries: pa.Table) -> None:
        """Add the entries of a shard."""
        names = ["benchmark", "split", "instance_index", "row", "detector"]
        leaks = entries.filter(entries["is_contaminated"]).select(names).to_pylist()
        for leak in leaks:
            self._detectors.setdefault(_item(leak), set()).add(leak["detector"])
        pairs = {(*_item(leak), leak["row"]) for leak in leaks}
        for name, n in Counter(name for name, *_ in pairs).items():
            self._counts[name].n_leaks += n
        documents = {(name, row) for name, _, _, row in pairs}
        for name, n in Counter(name for name, _ in documents).items():
            self._counts[name].n_documents += n
        questions = entries.filter(entries["is_question_only"]).select(names).to_pylist()
        self._add_questions({(*_item(one), one["row"]) for one in questions} - pairs, pairs)

    def _add_questions(
        self, pairs: set[tuple[str, str, int, int]], leaks: set[tuple[str, str, int, int]]
    ) -> None:
        self.n_question_only += len(pairs)
        self._question_only |= {(name, split, number) for name, split, number, _ in pairs}
        rows_with_leak = {row for *_, row in leaks}
        documents = {(name, row) for name, _, _, row in pairs if row not in rows_with_leak}
        for name, n in Counter(name for name, _ in documents).items():
            self._counts[name].n_question_only_documents += n

    def finish(self) -> list[BenchmarkCount]:
        for (name, _, _), detectors in self._detectors.items():
            count = self._counts[name]
            count.n_leaked_items += 1
            count.n_items_by_all += len(detectors) == len(count.n_items_by_rule)
            for detector in detectors:
                count.n_items_by_rule[detector] += 1
        for name, _, _ in self._question_only - self._detectors.keys():
            self._counts[name].n_question_only_items += 1
        return list(self._counts.values())


def _item(entry: Mapping[str, Any]) -> _Item:
    return entry["benchmark"], entry["split"], entry["instance_index"]


def _write_compat(request: Request, scanned: _Scanned) -> None:
    records = {
        version.benchmark: load_records(scanned.store, version) for version in scanned.versions
    }
    with atomic_path(request.out / COMPAT_FOLDER) as folder:
        folder.mkdir()
        for shard, source in scanned.shards:
            if shard.name in scanned.unread:
                continue
            write_report(
                folder,
                shard,
                source,
                scanned.entries(shard, request),
                records,
                request.policy,
            )


def _summary(request: Request, outcome: Outcome) -> dict[str, Any]:
    """Return the contents of summary.json, without times: the same scan gives the same file."""
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
        "n_invalid_utf8": outcome.n_invalid_utf8,
        "n_matches": outcome.n_matches,
        "n_leaks": outcome.n_leaks,
        "n_contaminated_documents": outcome.n_contaminated_documents,
        "n_question_only": outcome.n_question_only,
        "n_question_only_documents": outcome.n_question_only_documents,
        "n_common_ngrams": outcome.n_common,
        "n_items_not_visible": outcome.n_unseen,
        "not_looked_at": [
            *outcome.skipped,
            *(
                f"{one.file}: field {one.name!r} of {counted(one.n_rows, 'row')}"
                for one in outcome.unread_fields
            ),
        ],
        "n_shards_without_a_readable_row": len(outcome.unread),
        "n_bytes_not_looked_at": outcome.n_bytes_unread + outcome.n_bytes_skipped,
        "n_files_set_aside": outcome.n_set_aside,
        "benchmarks": {
            count.benchmark: {
                name: value for name, value in asdict(count).items() if name != "benchmark"
            }
            for count in outcome.benchmarks
        },
    }
