"""`python -m bench.duplicates`: how many items each form of duplicates changes.

Reads the labelled files of `bench.code_pairs`. Programs with examples in their docstrings (`>>>`)
are run before and after the change, in a separate process: the changed program must pass every
example that the original passes. With `--records`, counts for each benchmark how many items each
form changes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from bench.code_pairs import read
from decon_core.benchmarks.folder import records_in
from decon_core.errors import DeconError
from decon_core.features.rewriting.item_texts import ItemTexts
from decon_core.features.rewriting.rewritings import REWRITINGS, Rewriting
from decon_core.features.scorecard.items import items_of

_OF_PROGRAMS = ("identifiers_renamed",)
_LIMIT_SECONDS = 20
_RUN = "import doctest, sys; exec(sys.stdin.read()); print(*doctest.testmod(), file=sys.stderr)"


def made(rewriting: Rewriting, item: ItemTexts, seed: int) -> ItemTexts | None:
    rng = Random(seed)  # noqa: S311 - must be repeatable
    return rewriting(item, lambda n: rng.sample(range(n), n))


def outcome(program: str) -> str:
    """Return how many examples of a program failed and how many there are, or how it ended."""
    try:
        command = [sys.executable, "-c", _RUN]
        done = subprocess.run(
            command,
            input=program,
            capture_output=True,
            text=True,
            timeout=_LIMIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "time-out"
    return (done.stderr.strip().splitlines() or ["nothing"])[-1]


def of_programs(path: Path) -> Iterator[str]:
    """Yield a row for each form: programs changed, of them with examples, and passed."""
    programs = [one.text for one in read(path) if one.is_item]
    before = [outcome(one) if ">>>" in one else "" for one in programs]
    for name in _OF_PROGRAMS:
        counts: Counter[str] = Counter()
        for seed, (program, old) in enumerate(zip(programs, before, strict=True)):
            changed = made(REWRITINGS[name], ItemTexts(question="Write it.", answer=program), seed)
            if changed is None:
                continue
            counts["changed"] += 1
            if old.startswith("0 ") and old != "0 0":
                counts["with examples"] += 1
                counts["passed"] += outcome(changed.answer) == old
        n = tuple(counts[key] for key in ("changed", "with examples", "passed"))
        yield f"| {path.name} | `{name}` | {len(programs)} | {n[0]} | {n[1]} | {n[2]} |"


def of_records(path: Path) -> Iterator[str]:
    """Yield a row for each benchmark: the share of its items that each form changes."""
    tables: Mapping[str, Any] = records_in(path)
    for benchmark, table in sorted(tables.items()):
        items = [
            ItemTexts(
                passage=one.passage or "",
                question=one.question,
                choices=tuple(choice.text for choice in one.choices),
                answer=one.answer or "",
            )
            for one in items_of(table)
        ]
        for name, rewriting in REWRITINGS.items():
            n = sum(made(rewriting, item, seed) is not None for seed, item in enumerate(items))
            yield f"| {benchmark} | `{name}` | {len(items):,} | {n:,} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.duplicates", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="labelled programs, as JSON lines")
    parser.add_argument("--records", type=Path, help="a folder of records, or a recipe file")
    given: Any = parser.parse_args(arguments)
    try:
        if given.records:
            _table(of_records, [given.records], "benchmark", "form", "items", "changed")
        if given.files:
            heads = ("file", "form", "programs", "changed", "with examples", "passed")
            _table(of_programs, given.files, *heads)
    except DeconError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _table(rows: Callable[[Path], Iterator[str]], paths: Sequence[Path], *heads: str) -> None:
    lines = [row for path in paths for row in rows(path)]
    print("", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *lines, "", sep="\n")


if __name__ == "__main__":
    sys.exit(main())
