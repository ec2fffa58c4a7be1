"""`python -m bench.text_kinds`: scan rates of several kinds of text, and what a screen could skip.

    python -m bench.text_kinds --benchmarks ../shared/data/evals like_mmlu/recipes.yaml

For each kind of text and each set of benchmarks, prints the rates of decompressing the shard, of
reading its documents, and of the search with the default detector (text to matches), in processor
seconds on one core. Then it prints how much of the text a perfect screen would let through: the
share of documents (pieces of 3,000 characters), of stretches of 64 tokens, and of positions with an
indexed n-gram, and the share of positions where all adjacent pairs of tokens occur in questions.
Each shard repeats its text up to `--mb`. A shard is first scanned once, so words are known.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sysconfig
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from decon_core.benchmarks.folder import saved_records
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.corpus.batches import Batch
from decon_core.corpus.packs import Pack
from decon_core.corpus.shards import read_blocks
from decon_core.kernels.arrays import NONE, Flags, Integers, Numbers
from decon_core.kernels.hashing import has_bit, pair_digest, shift_for
from decon_core.kernels.jit import compiled_at_once, kernel
from decon_core.kernels.question_index import Index, gram_at
from decon_core.library.scan import pack_of
from decon_core.library.stored_index import index_records
from decon_core.scan.blocks import Scanner
from decon_core.storage.compression import create, open_bytes
from decon_core.storage.store import Store

_DOCUMENT_CHARACTERS = 3_000
_STRETCH_TOKENS = 64
_CHUNK_BYTES = 1 << 20
_LIBRARY, _PACKAGES = (Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib"))
_HEAD = (
    "| text | benchmarks | MB | decompress: MB/s | read: MB/s | scan: MB/s "
    "| documents | stretches | positions | all pairs |\n|---|---|" + "---:|" * 8
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--benchmarks", type=Path, nargs="+", required=True)
    parser.add_argument("--texts", type=Path, default=Path("../shared/data/text"))
    parser.add_argument("--mb", type=float, default=20, help="of text in each shard (default 20)")
    parser.add_argument("--rounds", type=int, default=5, help="default 5")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):  # "one core" must not mean a thread on each
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    print(_HEAD, flush=True)
    with tempfile.TemporaryDirectory(prefix="decon-bench-") as folder, compiled_at_once():
        shards = {
            name: _write_shard(Path(folder, f"{number}.jsonl.zst"), texts, options.mb)
            for number, (name, texts) in enumerate(_kinds(options.texts).items())
        }
        for number, benchmarks in enumerate(options.benchmarks):
            scanner = _scanner(Store(Path(folder, f"store-{number}")), benchmarks)
            for name, (shard, n_bytes) in shards.items():
                pack, _ = pack_of(
                    Source(name="text", path=str(shard), text="text"), out=shard.parent, known={}
                )
                rates = _rates(shard, pack, scanner, options.rounds)
                shares = _shares(pack, scanner)
                cells = [f"{benchmarks.stem}", f"{n_bytes / 1e6:.2f}"]
                cells += [f"{rate:.0f}" for rate in rates]
                cells += [f"{100 * share:.2g} %" for share in shares]
                print(f"| {name} | {' | '.join(cells)} |", flush=True)


# Texts --------------------------------------------------------------------------------------------


def _kinds(texts: Path) -> dict[str, list[str]]:
    archives = {
        "speeches": [("inaugural", ".txt"), ("state_union", ".txt")],
        "news": [("abc", ".txt")],
        "web text and chat": [("webtext", ".txt")],
        "Chinese (Declaration of Human Rights)": [
            ("udhr2", "cmn_hans.txt"),
            ("udhr2", "cmn_hant.txt"),
        ],
    }
    kinds = {
        kind: [
            text for name, suffix in parts for text in _of_archive(texts / f"{name}.zip", suffix)
        ]
        for kind, parts in archives.items()
    }
    kinds["documentation of Python packages"] = _of_files(
        _PACKAGES.rglob("*.md"), _PACKAGES.rglob("*.rst"), _PACKAGES.rglob("METADATA")
    )
    kinds["Python source"] = _of_files(_LIBRARY.glob("*.py"))
    return kinds


def _of_archive(path: Path, suffix: str) -> Iterator[str]:
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(suffix):
                yield archive.read(name).decode("utf-8", "replace")


def _of_files(*paths: Iterator[Path]) -> list[str]:
    found = sorted(path for some in paths for path in some)
    return [path.read_text(encoding="utf-8", errors="replace") for path in found]


def _write_shard(path: Path, texts: Sequence[str], mb: float) -> tuple[Path, int]:
    """Write pieces of the texts again and again; return the path, and the bytes of them once."""
    pieces = [
        text[at : at + _DOCUMENT_CHARACTERS]
        for text in texts
        for at in range(0, len(text), _DOCUMENT_CHARACTERS)
    ]
    sizes = [len(piece.encode()) for piece in pieces]
    n_pieces = max(round(mb * 1e6 / sum(sizes) * len(pieces)), len(pieces))
    with create(path, ".zst") as file:
        for piece in islice(cycle(pieces), n_pieces):
            file.write(json.dumps({"text": piece}, ensure_ascii=False).encode() + b"\n")
    return path, sum(sizes)


# Measurements -------------------------------------------------------------------------------------


def _scanner(store: Store, benchmarks: Path) -> Scanner:
    policy = Policy()
    index = index_records(store, saved_records(store, benchmarks), policy)
    return Scanner(store, index.versions, policy, index.index, index.scan)


def _rates(shard: Path, pack: Pack, scanner: Scanner, rounds: int) -> list[float]:
    """Return text per second of processor time: decompressed, read, and also searched."""
    jobs = (partial(_decompress, shard), partial(_read, pack), partial(_scan, pack, scanner))
    n_bytes = jobs[1]()
    jobs[2]()
    seconds = np.array([[_seconds(job) for job in jobs] for _ in range(rounds)])
    return [n_bytes / 1e6 / statistics.median(column) for column in seconds.T.tolist()]


def _seconds(job: Callable[[], int]) -> float:
    started = time.process_time()
    job()
    return time.process_time() - started


def _decompress(shard: Path) -> int:
    with open_bytes(shard) as file:
        return sum(map(len, iter(partial(file.read, _CHUNK_BYTES), b"")))


def _batches(pack: Pack) -> Iterator[Batch]:
    for shard in pack.shards:
        for block in read_blocks(shard, pack.source):
            yield block.read()


def _read(pack: Pack) -> int:
    return sum(int((batch.stops - batch.starts).sum()) for batch in _batches(pack))


def _scan(pack: Pack, scanner: Scanner) -> int:
    for shard in pack.shards:
        for block in read_blocks(shard, pack.source):
            scanner.scan(block)
    scanner.detectors.take_counts()
    return 0


def _shares(pack: Pack, scanner: Scanner) -> list[float]:
    """Return the shares of documents, stretches and positions that a screen would let through."""
    n_passing, n_all = np.zeros((2, 4), np.int64)
    for batch in _batches(pack):
        tokens = scanner.encoder.encode(batch.text, batch.starts, batch.stops)
        is_indexed, has_pairs = np.zeros((2, tokens.values.size), np.uint8)
        _mark(tokens.values, tokens.offsets, scanner.search.index, is_indexed, has_pairs)
        documents = tokens.offsets[:-1][tokens.lengths > 0]
        stretches = np.arange(0, tokens.values.size, _STRETCH_TOKENS)
        of_parts = (np.maximum.reduceat(is_indexed, starts) for starts in (documents, stretches))
        for number, flags in enumerate((*of_parts, is_indexed, has_pairs)):
            n_passing[number] += np.count_nonzero(flags)
            n_all[number] += flags.size
    shares: list[float] = (n_passing / n_all).tolist()
    return shares


@kernel
def _mark(
    tokens: Numbers, offsets: Integers, index: Index, is_indexed: Flags, has_pairs: Flags
) -> None:
    """Mark the positions of indexed n-grams, and of n-grams whose pairs all are in questions."""
    size, shift = index.policy.ngram_size, shift_for(index.pairs)
    for document in range(offsets.size - 1):
        n_known = 0
        for at in range(offsets[document], offsets[document + 1] - 1):
            digest = pair_digest(tokens[at], tokens[at + 1])
            n_known = n_known + 1 if has_bit(index.pairs, digest >> shift) else 0
            if n_known >= size - 1:
                first = at + 2 - size
                has_pairs[first] = 1
                is_indexed[first] = gram_at(tokens, first, index) != NONE


if __name__ == "__main__":
    main()
