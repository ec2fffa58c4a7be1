"""Measures how well detectors find grids, tables and series of numbers, and their false alarms.

    python -m bench.grids --items 100 --set ngram_any_size=27

Every kind of puzzle is a benchmark of invented items, which is searched for separately. Each item
is planted in one document between two pieces of text. The same number of documents contain other
puzzles of the same kind: a leak found in one of them is a false alarm. `--set` changes a setting of
the policy.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from decon_core.config.policy import Policy
from decon_core.config.seeding import numbers, shuffled
from decon_core.config.sources import Source
from decon_core.library.results import MATCHES_FILE
from decon_core.library.scan import Request, scan_folder
from decon_core.wording import table

DETECTORS = ("decon", "ratcliff", "longest_match", "exact", "ngram_any")
_WORDS = (
    *("river", "paper", "winter", "garden", "letter", "stone", "market", "window", "silver"),
    *("through", "before", "between", "carried", "followed", "the", "a", "of", "with", "and"),
)
_N_AROUND = 60  # words of text before and after a puzzle
_HOUSES = (
    ("Name", ("Arnold", "Eric", "Peter", "Alice", "Bob", "Carol")),
    ("Colour", ("red", "green", "blue", "yellow", "white", "purple")),
    ("Drink", ("tea", "milk", "water", "coffee", "beer", "juice")),
    ("Pet", ("cat", "dog", "bird", "fish", "horse", "hamster")),
)


class Draw:
    """Random choices for one puzzle, by its name."""

    def __init__(self, name: str) -> None:
        self._name, self._n = name, 0

    def below(self, most: int) -> int:
        self._n += 1
        return int(numbers(self._name, 1, first=self._n)[0] % np.uint64(most))

    def order(self, n: int) -> list[int]:
        self._n += 1
        places: list[int] = shuffled(f"{self._name} {self._n}", n).tolist()
        return places


def _sudoku(draw: Draw) -> list[list[int]]:
    """Return a solved grid: digits, bands, and rows and columns in them in another order."""
    digits = draw.order(9)
    rows, columns = (
        [3 * band + one for band in draw.order(3) for one in draw.order(3)] for _ in range(2)
    )
    return [[digits[(3 * (r % 3) + r // 3 + c) % 9] + 1 for c in columns] for r in rows]


def _rows(cells: Sequence[Sequence[object]], between: str) -> str:
    return "\n".join(between.join(map(str, row)) for row in cells)


def _houses(draw: Draw) -> str:
    columns = [[values[at] for at in draw.order(6)[:5]] for _, values in _HOUSES]
    heads = ["House", *(name for name, _ in _HOUSES)]
    rows = [(str(n + 1), *(column[n] for column in columns)) for n in range(5)]
    return table(rows, heads)


def _sums(draw: Draw) -> str:
    pairs = [(10 + draw.below(90), 10 + draw.below(90)) for _ in range(10)]
    return "\n".join(f"{a} + {b} = {a + b}" for a, b in pairs)


def _colours(draw: Draw) -> list[list[int]]:
    """Return a grid in which most cells are empty, as in ARC-AGI."""
    return [[max(draw.below(14) - 8, 0) for _ in range(10)] for _ in range(10)]


def _nonogram(draw: Draw) -> str:
    return _rows([[".#"[draw.below(2)] for _ in range(15)] for _ in range(10)], "")


KINDS: Mapping[str, Callable[[Draw], str]] = {
    "houses in a table (as ZebraLogic)": _houses,
    "sudoku, `5 3 4 …`": lambda draw: _rows(_sudoku(draw), " "),
    "sudoku, `534…`": lambda draw: _rows(_sudoku(draw), ""),
    "sudoku on one line": lambda draw: _rows(_sudoku(draw), "").replace("\n", ""),
    "coloured grid, `0 0 3 …`": lambda draw: _rows(_colours(draw), " "),
    "coloured grid, as JSON": lambda draw: json.dumps(_colours(draw)),
    "ten sums": _sums,
    "series of 12 numbers": lambda draw: ", ".join(str(draw.below(1000)) for _ in range(12)),
    "four numbers": lambda draw: " ".join(str(1 + draw.below(13)) for _ in range(4)),
    "nonogram, `#..#`": _nonogram,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Help)
    parser.add_argument("--items", type=int, default=100, help="puzzles of each kind")
    parser.add_argument("--set", action="append", default=[], help="NAME=VALUE, as in [policy]")
    given = parser.parse_args()
    settings: dict[str, Any] = tomllib.loads("\n".join(given.set))
    policy = Policy.from_mapping({"detectors": [*DETECTORS], **settings})
    rows = [[kind, *_cells(kind, given.items, policy)] for kind in KINDS]
    print(table(rows, ["found of each, false alarms", *policy.detectors], n_text=1))


_Help = argparse.RawDescriptionHelpFormatter


def _cells(kind: str, n_items: int, policy: Policy) -> Iterator[str]:
    found = measure(KINDS[kind], n_items, policy)
    for detector in policy.detectors:
        n_found, n_false = found[detector]
        yield f"{n_found / n_items:.2f}, {n_false / n_items:.2f}"


def measure(
    make: Callable[[Draw], str], n_items: int, policy: Policy
) -> dict[str, tuple[int, int]]:
    """Return by detector how many items were found, and how many other puzzles for one."""
    puzzles = [make(Draw(f"grid {n}")) for n in range(2 * n_items)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        evals = folder / "evals" / "grids_test-1.jsonl"
        _write(evals, (_item(n, puzzle) for n, puzzle in enumerate(puzzles[:n_items])))
        documents = (_document(n, puzzle) for n, puzzle in enumerate(puzzles))
        _write(folder / "corpus" / "documents.jsonl", documents)
        request = Request(
            evals=evals.parent,
            source=Source(name="corpus", path=str(folder / "corpus"), id="id"),
            out=folder / "out",
            policy=policy,
        )
        scan_folder(request)
        matches = pl.read_parquet(folder / "out" / MATCHES_FILE)
    leaks = matches.filter(pl.col("is_contaminated"))
    is_item = pl.col("row") == pl.col("instance_index")
    is_other = pl.col("row") >= n_items
    return {
        detector: (
            leaks.filter(pl.col("detector") == detector, is_item)["row"].n_unique(),
            leaks.filter(pl.col("detector") == detector, is_other)["row"].n_unique(),
        )
        for detector in policy.detectors
    }


def _write(path: Path, rows: Iterator[Mapping[str, object]]) -> None:
    path.parent.mkdir()
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _item(number: int, puzzle: str) -> dict[str, object]:
    named = {"eval_key": "grids", "eval_instance_index": number, "split": "test"}
    return {**named, "question": puzzle}


def _document(number: int, puzzle: str) -> dict[str, object]:
    draw = Draw(f"text {number}")
    before, after = (
        " ".join(_WORDS[draw.below(len(_WORDS))] for _ in range(_N_AROUND)) for _ in range(2)
    )
    return {"id": f"{number}", "text": f"{before}.\n\n{puzzle}\n\n{after}."}


if __name__ == "__main__":
    main()
