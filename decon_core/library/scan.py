"""Scan a folder of shards for benchmarks, and write the results to a folder: `decon-assets scan`.

The stages are those of the pipeline; only what is missing in the store is computed.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from glob import has_magic
from pathlib import Path
from typing import Any

import orjson

from decon_core.benchmarks.folder import saved_records
from decon_core.benchmarks.records import NotCovered, recorded_revision
from decon_core.config.policy import Policy
from decon_core.config.sources import ONLY_SOURCE, Sketch, Source
from decon_core.corpus.formats import known_suffixes
from decon_core.corpus.packs import Pack, Shard, only_shards, require_names_in_utf8, shards_in
from decon_core.corpus.sample import Sample, ShardSample, sampled_packs
from decon_core.corpus.sketch.pack_sketch import (
    build_pack_sketch,
    has_pack_sketch,
    pack_key,
    sketch_fingerprint,
)
from decon_core.decisions.common_ngrams import freeze_common
from decon_core.decisions.scripts import split_scripts
from decon_core.decisions.verdicts import NO_VERDICTS, Verdicts
from decon_core.decisions.visibility import blind_items, checkable_by_others
from decon_core.errors import CorpusError, DamagedError, InputError, Problem, collecting
from decon_core.execution.engine import Engine
from decon_core.execution.local import LOCAL
from decon_core.feature import feature_hooks
from decon_core.library import results
from decon_core.library.estimates import (
    SAMPLE_FILE,
    Rate,
    rates_of_documents,
    rates_of_shards,
    write_rates,
)
from decon_core.library.evals import require_records
from decon_core.library.page import CARD_FILE, FIGURE_FILES, PAGE_FILE, write_report
from decon_core.library.stored_index import OnStep, StoredIndex, index_records, no_step
from decon_core.scan.answers import why_unbounded
from decon_core.scan.blocks import kept_scanners
from decon_core.scan.coverage import missing_scan_results, uncounted
from decon_core.scan.scan_results import ScanResults
from decon_core.scan.scanner import Progress, scan_packs
from decon_core.storage.drafts import remove, sweep_beside
from decon_core.storage.files import (
    atomic_path,
    make_folder,
    read_json,
    read_plain_json,
    write_json,
    write_plain_json,
)
from decon_core.storage.listing import Listing, Skipped, list_path
from decon_core.storage.paths import fixed_part, is_url, parse_path, require_access, why_absent
from decon_core.storage.store import Store
from decon_core.storage.tables import write_parquet
from decon_core.wording import counted, size, to_scan

_PACK = f"{ONLY_SOURCE}-0000"
_DATA_SET = re.compile(r"hf://datasets/[^/@]+/(?P<name>[^/@]+)")


@dataclass(frozen=True, kw_only=True)
class Request:
    """The inputs, output folder and options of a scan of a folder."""

    evals: Path
    source: Source  # its path: a folder, a file, a glob, or a URL
    out: Path
    policy: Policy
    workers: int = 1
    sketch: Sketch | None = None  # None: neither written nor used
    has_compat: bool = False
    has_clean_evals: bool = False
    allowed: Sequence[str] = ()  # `OPTIONS`: clean benchmarks are written in spite of them
    has_page: bool = True
    verdicts: Verdicts = NO_VERDICTS
    sample: Sample | ShardSample | None = None  # what is scanned: documents or shards; None: all

    def require_sampleable(self) -> None:
        """Raise `InputError` if an option needs all documents, and only a sample is scanned."""
        given = {
            "--clean-evals": (
                self.has_clean_evals,
                "an item may have leaked into documents outside the sample",
            ),
            "--compat": (self.has_compat, "the format of AI2's decon cannot mark a sample"),
            "--sketch": (
                self.sketch is not None,
                "the sketch would lack the n-grams of documents outside the sample",
            ),
            "policy.leave_out_common": (
                self.policy.leave_out_common,
                "how common an n-gram is would depend on the sample",
            ),
        }
        InputError.raise_for(
            Problem("sample", f"{name} cannot be combined with a sample, because {why}")
            for name, (is_given, why) in given.items()
            if is_given and self.sample
        )


def scan_folder(
    request: Request,
    *,
    on_step: OnStep = no_step,
    on_progress: Progress | None = None,
    engine: Engine = LOCAL,
) -> results.Outcome:
    """Scan and write the results. Shards that cannot be read are listed in the outcome.

    Damaged files of the store are removed and the scan is repeated, which rebuilds only them.
    """
    store = Store(request.out / results.STORE_FOLDER)
    request.require_sampleable()
    make_folder(request.out)
    sweep_beside(request.out)
    store.sweep_drafts()
    removed_before: set[Path] = set()
    while True:
        try:
            return _scan_folder(request, store, engine, on_step, on_progress)
        except DamagedError as error:
            from decon_core.quality.integrity import remove_damaged

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
    on_step: OnStep,
    on_progress: Progress | None,
) -> results.Outcome:
    out, policy = request.out, request.policy
    report_writers = _report_writers(request)
    # These are absent until this scan is complete. The format of the reports cannot say that they
    # describe a sample, so a sample has none, not even those of an earlier full scan.
    outdated = [results.SUMMARY_FILE, results.CLEAN_FOLDER, SAMPLE_FILE, PAGE_FILE, CARD_FILE]
    outdated += FIGURE_FILES
    outdated += [results.COMPAT_FOLDER] if request.sample else []
    for name in outdated:
        remove(out / name)
    pack, (skipped, not_drawn) = _saved_pack(request, store)
    if not_drawn:
        on_step(_what_was_drawn(pack, not_drawn))
    if n_skipped := sum(not file.is_on_purpose for file in skipped):
        on_step(f"files skipped: {n_skipped:,}, listed in {out / results.SKIPPED_FILE}")
    require_access(parse_path(pack.shards[0].path))  # before benchmarks are downloaded
    not_covered: list[NotCovered] = []
    versions = saved_records(store, request.evals, not_covered=not_covered, on_step=on_step)
    require_records(str(request.evals), sum(version.n_records for version in versions))
    index = index_records(store, versions, policy, on_step)
    missing = _missing(index, pack)
    different = {shard.fingerprint: shard for shard in missing}.values()
    on_step(to_scan(len(different), sum(shard.n_bytes for shard in different)))
    failed = _scan_pack(request, index, pack, engine, on_step, on_progress)
    unread = {shard.name for shard in _missing(index, pack)}
    scanned = results.ScannedPack(index.reader(request.verdicts), pack, unread)
    write_parquet(out / results.VISIBILITY_FILE, index.visibility)
    n_unseen = Counter(index.invisible["detector"].to_pylist())
    outcome = results.Outcome(
        failed=failed,
        n_shards=len(pack.shards) + len(not_drawn),
        n_shards_read=len(missing) - len(unread),
        skipped=skipped,
        not_drawn=not_drawn,
        n_common=_write_common(out, index, scanned),
        n_unseen={name: n_unseen[name] for name in policy.detectors},
        split_scripts=split_scripts(store, index.versions, policy),
        checkable_by_others=checkable_by_others(store, index.versions, policy),
        sample=request.sample,
        not_covered=not_covered,
        revisions={
            version.benchmark: revision
            for version in versions
            if (revision := recorded_revision(store, version.benchmark))
        },
    )
    with atomic_path(out / results.SKIPPED_FILE) as path:
        path.write_bytes(b"".join(orjson.dumps(asdict(file)) + b"\n" for file in skipped))
    _write_results(request, index, scanned, outcome)
    if report_writers:
        _write_reports(out / results.COMPAT_FOLDER, index, scanned, report_writers)
    write_report(request, index, scanned, outcome)
    settings = {
        "evals": str(request.evals),
        "corpus": request.source.path,
        "policy": asdict(policy),
        "n_verdicts": len(request.verdicts.by_text),
    }
    write_plain_json(out / results.SUMMARY_FILE, {**settings, **results.summary_of(outcome)})
    return outcome


def output_for(corpus: str) -> Path:
    """Return the default output folder of a corpus: its name with `-scan`, in the current folder.

    Raises `InputError` if that folder contains the scan of another corpus.
    """
    if match := _DATA_SET.match(corpus):
        name = match["name"]
    else:
        path = Path(os.path.abspath(corpus.partition("://")[2] or corpus))  # noqa: PTH100 - links keep their names
        is_whole = path.is_dir() or not has_magic(str(path))
        name = (path if is_whole else fixed_part(path)).name.split(".")[0]
    out = Path(f"{name or ONLY_SOURCE}-scan")
    summary = out / results.SUMMARY_FILE
    scanned = read_plain_json(summary)["corpus"] if summary.is_file() else corpus
    if scanned != corpus:
        found, remedy = (
            f"contains the scan of {scanned}",
            f"Choose another folder for {corpus} with --out",
        )
        raise InputError(Problem(str(out), found, remedy=remedy))
    return out


# Files that are not read: what is no shard, and the shards that are not in the sample. Paths are
# relative to the corpus, if they are in it.
LeftOut = tuple[list[Skipped], list[Skipped]]


def pack_of(
    source: Source,
    *,
    out: Path,
    known: Mapping[str, Shard],
    sample: ShardSample | None = None,
) -> tuple[Pack, LeftOut]:
    """Return the shards at a source's path as a pack, without those in `out`, and what is left out.

    The path is a folder, glob or single file, local or remote. A shard in `known` (by path) is
    hashed again only if its file changed; with a `sample`, only the drawn shards are opened. Raises
    `CorpusError` if there is no shard.
    """
    listing = list_corpus(source.path, out)
    start = f"{listing.base}".rstrip("/") + "/"
    skipped = [replace(file, path=file.path.removeprefix(start)) for file in listing.skipped]
    not_drawn: list[Skipped] = []
    if sample:
        listing, not_drawn = _drawn(listing, sample, start=start)
    shards = shards_in(listing, source, known=known)
    pack = Pack(name=_PACK, source=source, shards=tuple(shards))
    return pack, (skipped, not_drawn)


def list_corpus(path: str, out: Path) -> Listing:
    """List the shards at a path, without those in `out`; raise `CorpusError` if there are none."""
    where = parse_path(path.rstrip("/")) if is_url(path) else Path(os.path.abspath(path))  # noqa: PTH100 - links keep their names
    outputs = Path(os.path.abspath(out))  # noqa: PTH100 - links keep their names
    if not is_url(path) and where.is_dir() and where.resolve() == outputs.resolve():
        found = "the output folder is also the corpus, so a later scan would read the output"
        raise InputError(Problem(str(out), found, remedy="change --out"))
    listing = only_shards(list_path(where, without=[outputs]))
    if not listing.files:
        if why := why_absent(where):
            remedy = "Correct the address; if it is private, run `hf auth login` or set HF_TOKEN"
            raise CorpusError(Problem(path, why, remedy=remedy))
        is_there = listing.instead or where.is_dir()
        found = f"no shard{listing.instead}" if is_there else "no such file or folder"
        expected = f"files that end in {known_suffixes()}, compressed or not"
        raise CorpusError(Problem(path, found, expected))
    return listing


def _drawn(listing: Listing, sample: ShardSample, *, start: str) -> tuple[Listing, list[Skipped]]:
    """Return the drawn files of a listing, and the others, whose paths lose their `start`."""
    require_names_in_utf8(Path(path) for path, _ in listing.files)
    names = {path: path.removeprefix(start) for path, _ in listing.files}
    drawn = sample.draw([*names.values()])
    not_drawn = [
        Skipped(names[path], "not in the sample", is_on_purpose=True, n_bytes=stamp.n_bytes)
        for path, stamp in listing.files
        if names[path] not in drawn
    ]
    files = [(path, stamp) for path, stamp in listing.files if names[path] in drawn]
    return replace(listing, files=files), sorted(not_drawn)


def _what_was_drawn(pack: Pack, not_drawn: Sequence[Skipped]) -> str:
    n_bytes = sum(shard.n_bytes for shard in pack.shards)
    n_bytes_of_all = n_bytes + sum(shard.n_bytes for shard in not_drawn)
    n_shards = f"{len(pack.shards):,} of {len(pack.shards) + len(not_drawn):,} shards"
    return f"sample: {n_shards}, {size(n_bytes)} of {size(n_bytes_of_all)}"


def _saved_pack(request: Request, store: Store) -> tuple[Pack, LeftOut]:
    """Return the pack that is scanned. It is saved: unchanged shards need not be hashed again."""
    path = store.pack(_PACK)
    before = Pack.from_json(read_json(path)).shards if path.is_file() else ()
    known = {shard.path: shard for shard in before}
    sample = request.sample
    of_shards = sample if isinstance(sample, ShardSample) else None
    pack, left_out = pack_of(request.source, out=request.out, known=known, sample=of_shards)
    write_json(path, pack.to_json())
    if isinstance(sample, Sample):
        (pack,) = sampled_packs([pack], sample)
    return pack, left_out


def _missing(index: StoredIndex, pack: Pack) -> list[Shard]:
    """Return the shards that are not scanned for all benchmarks."""
    missing = missing_scan_results(ScanResults(index.store, index.scan), [pack], index.versions)
    return [shard for _, shard, _ in missing]


def _scan_pack(
    request: Request,
    index: StoredIndex,
    pack: Pack,
    engine: Engine,
    on_step: OnStep,
    on_progress: Progress | None,
) -> list[Problem]:
    """Write missing scan results, and the sketch if there is one; return what could not be read."""
    failed: list[Problem] = []
    with collecting(failed, CorpusError):
        summary = scan_packs(
            index.store,
            [pack],
            index.versions,
            index.policy,
            workers=request.workers,
            engine=engine,
            on_progress=on_progress,
            sketch=request.sketch,
        )
        n_blocks = counted(summary.n_blocks_excluded + summary.n_blocks_read, "block")
        if summary.n_blocks_excluded or summary.n_blocks_read:
            excluded = f"{summary.n_blocks_excluded} of {n_blocks}"
            on_step(f"sketch: no match is possible in {excluded}, which were not read")
        elif request.sketch and (why := why_unbounded(request.policy)):
            on_step(f"sketch: written, but not used: {why}")
    if request.sketch:
        _join_sketch(index, request.sketch, pack)
    kept_scanners.cache_clear()
    return failed


def _join_sketch(index: StoredIndex, sketch: Sketch, pack: Pack) -> None:
    """Write the sketch of the pack, and remove those of other shards.

    The filters of shards are kept: the next scan of the folder may have more shards.
    """
    store, name = index.store, sketch_fingerprint(index.policy, sketch)
    if not has_pack_sketch(store, name, pack):
        build_pack_sketch(store, name, pack, keeps_filters=True)
    for path in store.pack_sketch(name, "any").parent.glob("*"):
        if path.stem != pack_key(pack):
            remove(path)


def _write_common(out: Path, index: StoredIndex, scanned: results.ScannedPack) -> int:
    """Count and write the common n-grams, which the policy may exclude; return their number."""
    read = tuple(shard for shard in scanned.pack.shards if shard.name not in scanned.unread)
    packs = [replace(scanned.pack, shards=read)]
    common = freeze_common(
        index.store,
        packs,
        index.versions,
        index.policy,
        index=index.index,
        scan=index.scan,
        missing=uncounted(ScanResults(index.store, index.scan), packs, index.versions),
    )
    write_parquet(out / results.COMMON_FILE, common)
    return int(common.num_rows)


def _write_results(
    request: Request, index: StoredIndex, scanned: results.ScannedPack, outcome: results.Outcome
) -> None:
    """Write the matches, and what follows from them: estimates, and the clean benchmarks."""
    out, sample = request.out, request.sample
    leaked = None
    if request.has_clean_evals:
        from decon_core.mixtures.clean_evals import LeakedItems, write_clean_evals

        leaked = LeakedItems(index.policy)
    results.write_matches(out, scanned, outcome, leaked)
    if sample:
        outcome.rates = _rates(out / results.MATCHES_FILE, scanned, sample, outcome)
        write_rates(out, outcome.rates)
    # What was not read may contain any item: then no benchmark can be called clean.
    is_whole = outcome.n_documents and not outcome.not_read.accepting(*request.allowed).open()
    if leaked and is_whole:
        write_clean_evals(
            out / results.CLEAN_FOLDER,
            index.store,
            index.versions,
            leaked,
            index.policy,
            blind_items(index.visibility, index.policy),
            {"n_unreadable_rows": outcome.n_unreadable, "n_invisible_items": outcome.n_unseen},
        )


def _rates(
    matches: Path,
    scanned: results.ScannedPack,
    sample: Sample | ShardSample,
    outcome: results.Outcome,
) -> list[Rate]:
    """Return the estimates from a sample of documents or of shards."""
    n_known = {benchmark.benchmark: benchmark.n_known_items for benchmark in outcome.benchmarks}
    if isinstance(sample, Sample):
        return rates_of_documents(matches, outcome.strata, n_known, share=sample.share)
    read = outcome.n_documents_of_shards
    others = [shard.name for shard in scanned.shards if shard.name not in read]
    others += [shard.path for shard in outcome.not_drawn]
    return rates_of_shards(matches, read, others, n_known)


def _report_writers(request: Request) -> list[Any]:
    """Return what writes a report of each shard; raise `InputError` if nothing can."""
    writers = [*feature_hooks("shard_report")] if request.has_compat else []
    if request.has_compat and not writers:
        found = "no installed feature writes reports in the format of AI2's decon"
        raise InputError(Problem("--compat", found))
    if request.has_compat and "decon" not in request.policy.detectors:
        found, expected = ", ".join(request.policy.detectors), "decon, whose format the reports use"
        raise InputError(Problem("detectors", found, expected, "add `--detectors decon`"))
    return writers


def _write_reports(
    path: Path, index: StoredIndex, scanned: results.ScannedPack, writers: Sequence[Any]
) -> None:
    """Write reports in AI2 decon's format."""
    records = {version.benchmark: index.records(version.benchmark) for version in index.versions}
    with atomic_path(path) as folder:
        folder.mkdir()
        for shard in scanned.shards:
            if shard.name not in scanned.unread:
                entries = scanned.entries(shard)
                for write in writers:
                    write(folder, shard, scanned.pack.source, entries, records, index.policy)
