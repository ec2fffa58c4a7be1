"""Scan a folder of shards for a folder of benchmarks, and write the results to a folder.

The stages are those of the pipeline; only what is missing in the store is computed.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from decon_core.benchmarks.folder import records_in
from decon_core.benchmarks.records import Version, load_records, save_records
from decon_core.config.policy import Policy, unknown_benchmarks, with_preset
from decon_core.config.sketch import Sketch
from decon_core.config.sources import MAX_ROW_BYTES, Source
from decon_core.corpus.packs import Pack, Shard
from decon_core.corpus.sample import Sample, sampled_packs
from decon_core.corpus.sketch.pack_sketch import build_pack_sketch, has_pack_sketch, pack_key
from decon_core.decisions.common_ngrams import freeze_common
from decon_core.decisions.indexability import blind_items, findable_by_others, indexability
from decon_core.decisions.match_reader import MatchReader
from decon_core.decisions.scripts import split_scripts
from decon_core.decisions.verdicts import NO_VERDICTS, Verdicts
from decon_core.errors import (
    ConfigError,
    CorpusError,
    DamagedError,
    InputError,
    Problem,
)
from decon_core.execution.engine import Engine
from decon_core.execution.local import LOCAL
from decon_core.feature import feature_hooks
from decon_core.folder_scan import results
from decon_core.folder_scan.corpus import corpus_files, saved_pack
from decon_core.folder_scan.estimates import SAMPLE_FILE, write_rates
from decon_core.index.parts import index_alone, index_fingerprint
from decon_core.mixtures.clean_evals import LeakedItems, write_clean_evals
from decon_core.quality.integrity import remove_damaged
from decon_core.report.tables import ONLY_SOURCE
from decon_core.scan.answers import why_unbounded
from decon_core.scan.blocks import kept_scanners
from decon_core.scan.coverage import missing_tiles, scan_fingerprint, uncounted
from decon_core.scan.scanner import Progress, ScanSummary, scan_packs
from decon_core.storage.drafts import remove, sweep_beside
from decon_core.storage.files import atomic_path, write_plain_json
from decon_core.storage.store import Store
from decon_core.storage.tables import write_parquet
from decon_core.text.tokenizers import load_tokenizer
from decon_core.wording import counted


@dataclass(frozen=True, kw_only=True)
class Request:
    """The inputs, output folder and options of a folder scan."""

    evals: Path
    corpus: str  # a folder, a file, a glob, or a URL
    out: Path
    policy: Policy
    # What is read of rows, as of a source: all text if none of these is set.
    text: str | tuple[str, ...] | None = None
    messages: str | None = None
    roles: tuple[str, ...] = ()
    layout: str | None = None
    ignore: tuple[str, ...] = ()
    id: str | None = "id"
    workers: int = 1
    sketch: Sketch | None = None  # None: neither written nor used
    has_compat: bool = False
    has_clean_evals: bool = False
    verdicts: Verdicts = NO_VERDICTS
    max_row_bytes: int = MAX_ROW_BYTES
    sample: Sample | None = None  # of the documents that are scanned; None: all

    def require_sampleable(self) -> None:
        """Raise `InputError` if an option needs all documents, and only a sample is scanned."""
        if self.sample is None:
            return
        given = {
            "clean benchmarks": (self.has_clean_evals, "an item may have leaked into the rest"),
            "reports for AI2 decon": (self.has_compat, "their format cannot say what they are of"),
            "a sketch": (self.sketch is not None, "it would have no n-grams of the rest"),
            "policy.leave_out_common": (
                self.policy.leave_out_common,
                "how common an n-gram is would depend on the sample",
            ),
        }
        if problems := [
            Problem("sample", f"{name}, too", f"a scan of all documents for it: {why}")
            for name, (is_given, why) in given.items()
            if is_given
        ]:
            raise InputError(problems)

    @property
    def source(self) -> Source:
        """How all files are read."""
        return Source(
            name=ONLY_SOURCE,
            path=self.corpus,
            text=None if self.messages else self.text,
            messages=self.messages,
            roles=self.roles,
            layout=self.layout,
            ignore=self.ignore,
            id=self.id,
            max_row_bytes=self.max_row_bytes,
        )


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
    on_work: Callable[[Sequence[Shard]], None],
    on_progress: Progress | None = None,
    engine: Engine = LOCAL,
) -> results.Outcome:
    """Scan and write the results. Shards that cannot be read are listed in the outcome.

    `on_work` is called with the shards that are still to be scanned.
    Damaged files of the store are removed and the scan is repeated, which rebuilds only them.
    """
    store = Store(request.out / results.STORE_FOLDER)
    request.require_sampleable()
    if request.out.exists() and not request.out.is_dir():
        found, expected = "a file", "an output folder, which may be missing"
        raise InputError(Problem(str(request.out), found, expected))
    sweep_beside(request.out)
    store.sweep_drafts()
    removed_before: set[Path] = set()
    while True:
        try:
            return _scan_folder(request, store, engine, on_step, on_work, on_progress)
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
    engine: Engine,
    on_step: Callable[[str], None],
    on_work: Callable[[Sequence[Shard]], None],
    on_progress: Progress | None,
) -> results.Outcome:
    out, policy = request.out, request.policy
    _report_writers(request)
    # These are absent until this scan is complete. The format of the reports has no place that says
    # that they are of a sample, so none stand beside one, not even those of an earlier full scan.
    outdated = [results.SUMMARY_FILE, results.CLEAN_FOLDER, SAMPLE_FILE]
    outdated += [results.COMPAT_FOLDER] if request.sample else []
    for name in outdated:
        remove(out / name)
    corpus = corpus_files(request.corpus, out)
    packs = [saved_pack(corpus, request.source, store)]
    if request.sample:
        packs = sampled_packs(packs, request.sample)
    if n_skipped := sum(not skipped.is_on_purpose for skipped in corpus.skipped):
        on_step(f"skipped: {n_skipped:,}, listed in {out / results.SKIPPED_FILE}")
    versions = _save_benchmarks(request, store, on_step)
    if problems := [*unknown_benchmarks(policy, [version.benchmark for version in versions])]:
        raise ConfigError(problems)
    n_built = index_alone(store, versions, policy)
    on_step(f"index: {n_built} built, {len(versions) - n_built} reused")
    pa.default_memory_pool().release_unused()  # the memory that reading benchmarks took
    scan = scan_fingerprint(store, policy)
    missing = [shard for _, shard, _ in missing_tiles(store, packs, versions, scan)]
    on_work(missing)
    failed: Sequence[Problem] = ()
    try:
        summary = scan_packs(
            *(store, packs, versions, policy),
            workers=request.workers,
            engine=engine,
            on_progress=on_progress,
            sketch=request.sketch,
        )
        _say_sketch(request, summary, on_step)
    except CorpusError as error:
        failed = error.problems
    if request.sketch:
        _join_sketches(store, request.sketch, packs, policy)
    kept_scanners.cache_clear()
    unread = {shard.name for _, shard, _ in missing_tiles(store, packs, versions, scan)}
    reader = MatchReader(store, tuple(versions), policy, scan, request.verdicts)
    scanned = results.ScannedFolder(reader, packs, unread)
    visibility = indexability(store, versions, policy)
    write_parquet(out / results.INDEXABILITY_FILE, visibility)
    invisible = visibility.filter(pc.invert(visibility["is_visible"]))
    outcome = results.Outcome(
        failed=list(failed),
        n_shards=len(corpus.shards),
        n_shards_read=len(missing) - len(unread),
        n_shards_unread=len(unread),
        skipped=corpus.skipped,
        n_common=_write_common(out, scanned),
        n_unseen=dict.fromkeys(policy.detectors, 0) | Counter(invisible["detector"].to_pylist()),
        split_scripts=split_scripts(store, versions, policy),
        findable_by_others=findable_by_others(store, versions, policy, visibility),
        sample=request.sample,
    )
    results.write_skipped(out, corpus.skipped)
    leaked = results.write_matches(out, scanned, outcome)
    if request.sample:
        files = out, out / results.MATCHES_FILE
        share = request.sample.share
        n_known = {one.benchmark: one.n_known_items for one in outcome.benchmarks}
        outcome.rates = write_rates(*files, outcome.strata, n_known, share=share)
    _write_optional(request, scanned, outcome, leaked)
    settings = {
        "evals": str(request.evals),
        "corpus": request.corpus,
        "policy": asdict(policy),
        "n_verdicts": len(request.verdicts.by_pair),
    }
    write_plain_json(out / results.SUMMARY_FILE, {**settings, **results.summary_of(outcome)})
    return outcome


def _save_benchmarks(
    request: Request, store: Store, on_step: Callable[[str], None]
) -> list[Version]:
    tables = records_in(request.evals)
    if not tables:
        raise InputError(Problem(str(request.evals), "no record in any file", "at least one"))
    versions = [save_records(store, name, table) for name, table in tables.items()]
    n_items = counted(sum(version.n_items for version in versions), "item")
    n_records = counted(sum(version.n_records for version in versions), "record")
    on_step(f"{counted(len(versions), 'benchmark')}: {n_items}, {n_records}")
    return versions


def _say_sketch(request: Request, summary: ScanSummary, on_step: Callable[[str], None]) -> None:
    """Report how much the sketch excluded."""
    n_blocks = summary.n_blocks_excluded + summary.n_blocks_read
    if n_blocks:
        excluded = f"{summary.n_blocks_excluded} of {counted(n_blocks, 'block')}"
        on_step(f"sketch: no match is possible in {excluded}, which were not read")
    elif request.sketch and (why := why_unbounded(request.policy)):
        on_step(f"sketch: written, but not used: {why}")


def _join_sketches(store: Store, sketch: Sketch, packs: Sequence[Pack], policy: Policy) -> None:
    """Write the sketches of packs, and remove those of packs that have other shards now.

    The filters of shards are kept: the next scan of the folder may have more shards.
    """
    name = sketch.fingerprint(policy, tokenizer=load_tokenizer(policy.tokenizer_str).fingerprint)
    for pack in packs:
        if not has_pack_sketch(store, name, pack):
            build_pack_sketch(store, name, pack, keeps_filters=True)
    keys = {pack_key(pack) for pack in packs}
    for path in store.pack_sketch(name, "any").parent.glob("*"):
        if path.stem not in keys:
            remove(path)


def _write_common(out: Path, scanned: results.ScannedFolder) -> int:
    """Count and write the common n-grams, which the policy may exclude; return their number."""
    packs = [
        replace(pack, shards=tuple(one for one in pack.shards if one.name not in scanned.unread))
        for pack in scanned.packs
    ]
    store, policy = scanned.reader.store, scanned.reader.policy
    index, scan = index_fingerprint(store, policy), scanned.reader.scan
    versions = scanned.reader.versions
    missing = uncounted(store, packs, versions, scan)
    common = freeze_common(store, packs, versions, policy, index=index, scan=scan, missing=missing)
    write_parquet(out / results.COMMON_FILE, common)
    return int(common.num_rows)


def _report_writers(request: Request) -> list[Any]:
    """Return what writes a report of each shard; raise `InputError` if nothing can."""
    writers = [*feature_hooks("shard_report")] if request.has_compat else []
    if request.has_compat and not writers:
        found, expected = "no feature that writes them", "a feature with the hook `shard_report`"
        raise InputError(Problem("reports for AI2 decon", found, expected))
    return writers


def _write_optional(
    request: Request, scanned: results.ScannedFolder, outcome: results.Outcome, leaked: LeakedItems
) -> None:
    """Write reports in AI2 decon's format, and the clean benchmarks, if they are requested."""
    store, versions = scanned.reader.store, scanned.reader.versions
    for write_report in _report_writers(request):
        records = {version.benchmark: load_records(store, version) for version in versions}
        with atomic_path(request.out / results.COMPAT_FOLDER) as folder:
            folder.mkdir()
            for shard, source in scanned.shards:
                if shard.name not in scanned.unread:
                    entries = scanned.entries(shard)
                    write_report(folder, shard, source, entries, records, request.policy)
    # What was not read may contain any item: then no benchmark can be called clean.
    if request.has_clean_evals and not outcome.is_incomplete and not outcome.unread_text:
        unseen = {"n_unreadable_rows": outcome.n_unreadable, "n_invisible_items": outcome.n_unseen}
        folder = request.out / results.CLEAN_FOLDER
        blind = blind_items(pq.read_table(request.out / results.INDEXABILITY_FILE))
        write_clean_evals(folder, store, versions, leaked, request.policy, blind, unseen)
