"""`python -m bench.many_items`: the cost of a first scan with many items in many benchmarks.

    python -m bench.many_items --sizes 20000:1 20000:130 200000:130 --corpus shards/ --rate more/

Items of `like_mmlu` (../shared/tools) are shuffled and split into benchmarks. For each size, a
first scan of the small folder `--corpus` normalizes the items and builds the index. With `--rate`,
a second scan into the same output folder also reads these shards. Its speed is computed from the
additional time compared with a third scan, which has nothing to read. Times are CPU times.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import yaml

from decon_core.storage.compression import open_bytes

_RECIPE = {
    "splits": ["test"],
    "prompt": "question",
    "answers": [{"expand_choices": {"field": "choices", "correct_index": "answer"}}],
}
_SCAN = [sys.executable, "-c", "from decon_assets.cli.program import program; program()", "scan"]
_HEAD = "| items | benchmarks | first scan: s | memory: GB | MB/s |\n|---:|---:|---:|---:|---:|"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sizes", nargs="+", default=["20000:1", "20000:130"], metavar="ITEMS:BENCHMARKS"
    )
    parser.add_argument("--corpus", type=Path, required=True, help="a few documents")
    parser.add_argument("--rate", type=Path, help="shards to measure the rate with")
    parser.add_argument("--tool", type=Path, default=Path("../shared/tools/like_mmlu"))
    parser.add_argument("--seed", type=int, default=3)
    given = parser.parse_args()
    print(_HEAD, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for line in _measured(given, Path(folder)):
            print(line, flush=True)


def _measured(given: argparse.Namespace, work: Path) -> Iterator[str]:
    for size in given.sizes:
        n_items, n_benchmarks = map(int, size.split(":"))
        items = work / str(n_items)
        if not items.exists():
            made = [sys.executable, str(given.tool), str(given.seed), str(items), str(n_items)]
            subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
        recipes = _split(items / "items.jsonl", work / f"evals-{size}", n_benchmarks)
        out = work / f"out-{size}"
        seconds, n_bytes = _scan(recipes, given.corpus, out)
        rate = ""
        if given.rate:
            twice = [_scan(recipes, given.rate, out)[0] for _ in range(2)]
            rate = f"{_n_bytes(given.rate) / 1e6 / (twice[0] - twice[1]):.0f}"
        cells = f"{n_items:,} | {n_benchmarks:,} | {seconds:.1f} | {n_bytes / 1e9:.2f}"
        yield f"| {cells} | {rate} |"


def _split(items: Path, folder: Path, n_benchmarks: int) -> Path:
    """Write benchmarks of about equal size, and the recipes that read them."""
    folder.mkdir()
    lines = items.read_text(encoding="utf-8").splitlines(keepends=True)
    Random(n_benchmarks).shuffle(lines)  # noqa: S311 - must be repeatable
    recipes = {}
    for number in range(n_benchmarks):
        name = f"benchmark_{number:03}"
        text = "".join(lines[number::n_benchmarks])
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
        recipes[name] = {"local_path": f"{name}.jsonl", **_RECIPE}
    path = folder / "recipes.yaml"
    path.write_text(yaml.safe_dump({"evals": recipes}), encoding="utf-8")
    return path


def _scan(recipes: Path, corpus: Path, out: Path) -> tuple[float, int]:
    """Scan in a process of its own; return its seconds of the processor and its peak memory."""
    command = [*_SCAN, *map(str, (corpus, "--evals", recipes, "--out", out))]
    process = subprocess.Popen([*command, "--workers", "1", "--no-page"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if code := os.waitstatus_to_exitcode(status):
        sys.exit(f"a scan ended with exit code {code}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def _n_bytes(corpus: Path) -> int:
    """Return the size of the shards, decompressed."""
    n_bytes = 0
    for path in sorted(corpus.iterdir()):
        with open_bytes(path) as file:
            while block := file.read(1 << 20):
                n_bytes += len(block)
    return n_bytes


if __name__ == "__main__":
    main()
