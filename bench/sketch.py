"""`python -m bench.sketch`: what the sketch of a corpus costs, and what it saves.

Makes one corpus without benchmark items and one with many, builds the sketch while scanning for one
benchmark, and uses it to scan for the other. Every result is compared with a full scan, file by
file; every match of the full scan must be in a block that is possible for its question. Times are
CPU times of one process with one worker and compiled kernels. `--tables` selects the measurements.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import zstandard

from bench.corpus import SOURCE, make_corpus
from bench.sketch_costs import distinct_ngrams, wide_pack
from decon_core.benchmarks.folder import records_in
from decon_core.benchmarks.records import Version, save_records
from decon_core.config.policy import Policy
from decon_core.config.sources import Sketch, Source
from decon_core.corpus.packs import Pack
from decon_core.corpus.shards import read_places
from decon_core.corpus.sketch.pack_sketch import (
    build_pack_sketch,
    open_pack_sketch,
    sketch_fingerprint,
)
from decon_core.corpus.sketch.shard_sketch import open_blocks
from decon_core.index.joined_index import open_search
from decon_core.index.parts import build_part, index_fingerprint
from decon_core.index.term_weights import freeze
from decon_core.library.scan import pack_of
from decon_core.scan.answers import Answer, answer
from decon_core.scan.coverage import scan_fingerprint
from decon_core.scan.scan_results import Ledger, ScanResults
from decon_core.scan.scanner import ScanSummary, scan_packs
from decon_core.storage.compression import open_bytes
from decon_core.storage.store import Store


@dataclass(frozen=True)
class World:
    """Benchmarks with an index, and a corpus."""

    store: Store
    versions: dict[str, Version]
    pack: Pack
    n_text_bytes: int
    policy: Policy

    @property
    def scan_name(self) -> str:
        return scan_fingerprint(self.store, self.policy)

    def sketch_name(self, sketch: Sketch) -> str:
        return sketch_fingerprint(self.policy, sketch)

    def first_shards(self, n: int) -> World:
        """Return the world with fewer shards."""
        pack = replace(self.pack, shards=self.pack.shards[:n])
        return replace(self, pack=pack, n_text_bytes=self.n_text_bytes * n // len(self.pack.shards))

    def scan(self, names: Sequence[str], sketch: Sketch | None = None) -> tuple[float, ScanSummary]:
        """Scan against benchmarks; return the seconds of the processor."""
        started = time.process_time()
        versions = [self.versions[name] for name in names]
        summary = scan_packs(self.store, [self.pack], versions, self.policy, sketch=sketch)
        return time.process_time() - started, summary

    def files(self, name: str) -> list[tuple[bytes, Ledger, pa.Table]]:
        """Return the joined scan result, ledger and documents of each shard."""
        results, version = ScanResults(self.store, self.scan_name), self.versions[name].fingerprint
        return [
            (
                results.folder(shard.fingerprint, version).scan_result(version).read_bytes(),
                results.ledger(shard.fingerprint),
                results.documents(shard.fingerprint),
            )
            for shard in self.pack.shards
        ]

    def answer(self, name: str, sketch: Sketch) -> Answer:
        """Look up a benchmark in the sketch."""
        found = answer(
            self.store,
            self.sketch_name(sketch),
            self.pack,
            [self.versions[name]],
            self.policy,
            index=index_fingerprint(self.store, self.policy),
            scan=self.scan_name,
        )
        if found is None:
            raise RuntimeError("the pack has no sketch")
        return found

    def forget(self, *folders: str) -> None:
        for folder in folders:
            shutil.rmtree(self.store.root / folder, ignore_errors=True)


def make_world(store: Store, corpus: Path, n_text_bytes: int, evals: Path) -> World:
    """Index all benchmarks of a folder, and register a corpus."""
    policy = Policy(detectors=("decon",))  # of which a sketch excludes most blocks
    tables = records_in(evals)
    versions = {name: save_records(store, name, table) for name, table in tables.items()}
    snapshot = freeze(store, [*versions.values()], policy)
    for version in versions.values():
        build_part(store, version, snapshot, policy)
    source = Source(name=SOURCE, path=str(corpus), text="text", id="id")
    pack, _ = pack_of(source, out=store.root, known={})
    return World(store, versions, pack, n_text_bytes, policy)


_FORMS: dict[str, Callable[[bytes], bytes]] = {
    ".jsonl": bytes,
    ".jsonl.zst": zstandard.compress,
    ".jsonl.gz": partial(gzip.compress, compresslevel=1),
}


def plant(clean: Path, folder: Path, form: str, text: str) -> None:
    """Write the shards of a corpus in a form, with a document in the middle of the first."""
    folder.mkdir(parents=True, exist_ok=True)
    shards = sorted(clean.iterdir())
    for number, shard in enumerate(shards):
        with open_bytes(shard) as file:
            content = file.read()
        if number == 0:
            at = content.index(b"\n", len(content) // 2) + 1
            planted = orjson.dumps({"id": "planted", "text": text}) + b"\n"
            content = content[:at] + planted + content[at:]
        (folder / f"{number:04}{form}").write_bytes(_FORMS[form](content))


def measure(
    world: World, first: str, later: str, sketch: Sketch, *, has_ratio: bool = True
) -> dict[str, Any]:
    """Scan `later` in full, `first` without and with a sketch, and answer `later` from it.

    With `has_ratio`, the scan of `first` with the sketch is compared with one without.
    """
    world.forget("scan_results", "sketch")
    full, _ = world.scan([later])
    expected = world.files(later)
    world.forget("scan_results")
    plain = float("nan")
    if has_ratio:
        plain, _ = world.scan([first])
        world.forget("scan_results")
    sketched, _ = world.scan([first], sketch)
    started = time.process_time()
    build_pack_sketch(world.store, world.sketch_name(sketch), world.pack)
    joined = time.process_time() - started
    answered, summary = world.scan([later], sketch)
    if world.files(later) != expected:
        raise RuntimeError(f"the answer for {later} differs from a full scan")
    looked_up, shard_share = _looked_up(world, later, sketch), _shards_read(world, later, sketch)
    return {
        **looked_up,
        "bits": sketch.bits,
        "later": later,
        "text_mb": world.n_text_bytes / 1e6,
        "sketch_bytes_per_byte": _size(world.store.root / "sketch") / world.n_text_bytes,
        "build_ratio": (sketched + joined) / plain,
        "full_seconds": full,
        "answer_seconds": answered,
        "time_share": answered / full,
        "n_blocks": summary.n_blocks_excluded + summary.n_blocks_read,
        "n_blocks_read": summary.n_blocks_read,
        "shard_share": shard_share,
        "read_share": shard_share + looked_up["row_share"],
        "page_read_share": shard_share + looked_up["page_share"],
    }


def _shards_read(world: World, name: str, sketch: Sketch) -> float:
    """Return the share of the shards' bytes that is read for the blocks that are not excluded."""
    found, sketch_name = world.answer(name, sketch), world.sketch_name(sketch)
    n_read = 0
    for shard in world.pack.shards:
        numbers, _ = found.blocks_of(shard.fingerprint)
        blocks = open_blocks(world.store, sketch_name, shard.fingerprint)
        places = [place for place, _ in blocks.parts(numbers)]
        parts = read_places(shard, world.pack.source, places)
        n_read += max((part.position for part in parts), default=0)
    return n_read / sum(shard.n_bytes for shard in world.pack.shards)


def _looked_up(world: World, name: str, sketch: Sketch) -> dict[str, Any]:
    """Return what is read of the sketch, relative to the shards, and which items are possible."""
    found = world.answer(name, sketch)
    n_blocks = found.by_detector["decon"].n_blocks_of_texts()
    n_bytes = sum(shard.n_bytes for shard in world.pack.shards)
    return {
        "row_share": found.sketch.n_bytes_read / n_bytes,
        "page_share": found.sketch.n_page_bytes_read / n_bytes,
        "n_questions": n_blocks.size,
        "n_questions_possible": int((n_blocks > 0).sum()),
    }


def lost_matches(world: World, sketch: Sketch) -> dict[str, Any]:
    """Count matches of a full scan, and those whose block is not possible for their question."""
    world.forget("scan_results", "sketch")
    names = [*world.versions]
    world.scan(names, sketch)
    build_pack_sketch(world.store, world.sketch_name(sketch), world.pack)
    n_matches = n_lost = n_true = n_possible = 0
    for name in names:
        found = world.answer(name, sketch).by_detector["decon"]
        possible = {
            (question, block)
            for question in range(found.n_blocks_of_texts().size)
            for block in found.blocks_of(question)
        }
        true = list(_matched_blocks(world, name, sketch))
        n_matches += len(true)
        n_lost += sum(pair not in possible for pair in true)
        n_true += len({*true})
        n_possible += len(possible)
    return {
        "n_matches": n_matches,
        "n_lost": n_lost,
        "n_pairs": n_true,
        "possible_per_pair": n_possible / max(n_true, 1),
    }


def _matched_blocks(world: World, name: str, sketch: Sketch) -> list[tuple[int, int]]:
    """Return question and block of the pack of every match."""
    version = world.versions[name]
    index = index_fingerprint(world.store, world.policy)
    search = open_search(
        world.store, [version], world.policy.at_floor, index=index, scan=world.scan_name
    )
    records, questions = search.entry_record.tolist(), search.entry_question.tolist()
    question_of = dict(zip(records, questions, strict=True))
    pack_sketch = open_pack_sketch(world.store, world.sketch_name(sketch), world.pack)
    found = []
    results = ScanResults(world.store, world.scan_name)
    for number, shard in enumerate(world.pack.shards):
        blocks = open_blocks(world.store, world.sketch_name(sketch), shard.fingerprint)
        matches = results.matches([shard.fingerprint], version.fingerprint)
        for match in matches.select(["row", "record"]).to_pylist():
            block = int(pack_sketch.offsets[number]) + blocks.block_of(match["row"])
            found.append((question_of[match["record"]], block))
    return found


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def leaks(work: Path, world: World, first: str, later: str, evals: Path) -> list[dict[str, Any]]:
    """Measure corpora with an item of `later` in some blocks, in several forms of shards."""
    (item,) = records_in(evals)[later].slice(0, 1).to_pylist()
    text = "\n".join(item[part] for part in ("question", "answer"))
    rows = []
    for form in _FORMS:
        folder = work / "leak"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(work / "leak-store", ignore_errors=True)
        plant(Path(world.pack.source.path), folder, form, text)
        with_leak = make_world(Store(work / "leak-store"), folder, world.n_text_bytes, evals)
        row = measure(with_leak, first, later, Sketch(bits=8), has_ratio=False)
        rows.append(row | {"later": f"{later}{form}"})
    return rows


def end_to_end(work: Path, clean: Path, planted: World, evals: Path) -> list[dict[str, Any]]:
    """Answer a corpus of which half has planted items, and compare it with a full scan."""
    folder = work / "half-planted"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    hidden = [Path(shard.path) for shard in planted.pack.shards]
    n_bytes = sum(path.stat().st_size for path in hidden)
    for path in hidden:
        (folder / f"planted-{path.name}").hardlink_to(path)
    for path in sorted(clean.iterdir()):
        if n_bytes > 0:
            (folder / f"clean-{path.name}").hardlink_to(path)
        n_bytes -= path.stat().st_size
    world = make_world(Store(work / "half-store"), folder, 2 * planted.n_text_bytes, evals)
    rows = []
    for later in world.versions:
        (first,) = (name for name in world.versions if name != later)
        row = measure(world, first, later, Sketch(bits=8), has_ratio=False)
        shards = [shard.fingerprint for shard in world.pack.shards]
        version = world.versions[later].fingerprint
        n_matches = ScanResults(world.store, world.scan_name).n_matches(shards, version)
        # `measure` raises if a byte of a scan result differs.
        rows.append(row | {"later": f"{later}: {n_matches} matches, 0 lost"})
    return rows


# Command ------------------------------------------------------------------------------------------

_COLUMNS = {
    "text_mb": "{:,.0f}",
    "later": "{}",
    "bits": "{}",
    "sketch_bytes_per_byte": "{:.3f}",
    "build_ratio": "{:.2f}",
    "full_seconds": "{:.1f}",
    "answer_seconds": "{:.2f}",
    "time_share": "{:.1%}",
    "row_share": "{:.1%}",
    "page_share": "{:.1%}",
    "n_blocks": "{}",
    "n_blocks_read": "{}",
    "shard_share": "{:.1%}",
    "read_share": "{:.1%}",  # of shards and rows, relative to the size of the shards
    "page_read_share": "{:.1%}",
    "n_questions": "{:,}",
    "n_questions_possible": "{:,}",
}


_TABLES = ("ngrams", "wide", "answers", "planted", "leaks")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the chosen tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.sketch", description=__doc__)
    parser.add_argument("--evals", type=Path, required=True, help="folder of benchmarks")
    parser.add_argument("--texts", type=Path, required=True, help="folder of texts")
    parser.add_argument("--work", type=Path, required=True, help="folder of corpora and stores")
    parser.add_argument("--mb", type=float, default=2000, help="megabytes of text")
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--bits", type=int, nargs="+", default=[4, 5, 6, 8])
    parser.add_argument("--planted", type=int, default=8000, help="items, in a quarter of the text")
    parser.add_argument("--wide-blocks", type=int, default=1500, help="blocks of the wide pack")
    parser.add_argument("--tables", nargs="+", choices=_TABLES, default=_TABLES)
    given: Any = parser.parse_args(arguments)
    made = {"texts": given.texts, "evals": given.evals, "n_shards": given.shards}
    clean, full = given.work / "clean", given.work / "planted"
    if "ngrams" in given.tables:
        print(distinct_ngrams(given.texts, Policy()), flush=True)
    size = make_corpus(clean, **made, mb=given.mb, n_hidden=0)
    world = make_world(Store(given.work / "store"), clean, size.n_text_bytes, given.evals)
    gsm8k = next(name for name in world.versions if "gsm8k" in name)
    other = next(name for name in world.versions if name != gsm8k)
    world.first_shards(1).scan([gsm8k, other], Sketch())  # compiles the kernels
    measure(world.first_shards(1), other, gsm8k, Sketch())
    if "wide" in given.tables:
        versions = [*world.versions.values()]
        name = world.sketch_name(Sketch())
        for row in wide_pack(
            world.store, world.pack, name, versions, world.policy, n=given.wide_blocks
        ):
            print(row, flush=True)
        world.forget("sketch")
    if "answers" in given.tables:
        rows = [measure(world, other, gsm8k, Sketch(bits=bits)) for bits in given.bits]
        rows += [measure(world, gsm8k, other, Sketch(bits=bits)) for bits in given.bits]
        rows += [
            measure(world.first_shards(given.shards // part), other, gsm8k, Sketch())
            for part in (4, 2)
        ]
        _print(rows)
    if "planted" in given.tables:
        size = make_corpus(full, **made, mb=given.mb / 4, n_hidden=given.planted)
        store = Store(given.work / "planted-store")
        planted = make_world(store, full, size.n_text_bytes, given.evals)
        _print(end_to_end(given.work, clean, planted, given.evals))
        print(lost_matches(planted, Sketch()), flush=True)
    if "leaks" in given.tables:
        _print(leaks(given.work, world, other, gsm8k, given.evals))
    return 0


def _print(rows: Sequence[dict[str, Any]]) -> None:
    print(f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|", sep="\n")
    for row in rows:
        print("|", *(f"{form.format(row[name])} |" for name, form in _COLUMNS.items()), flush=True)


if __name__ == "__main__":
    sys.exit(main())
