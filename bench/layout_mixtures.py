"""`python -m bench.layout_mixtures`: what mixtures keep of rows in all layouts.

Writes rows as `bench.layouts` does, makes items from some sentences of every second row, and runs
the pipeline with mixtures that remove documents, cut spans or turns, or mask text. Scans each
mixture for every sentence. Counts for each mixture:

- leaked sentences that remain (there must be none),
- other sentences that are missing from rows without a leak (there must be none),
- other sentences that remain in rows with a leak, and how many there were.

Sentences that the first scan cannot find are left out.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.layouts import Case, read_items, scan_for, write_cases
from decon_assets.cli.main import main as command
from decon_core.storage.store import Store
from tests.oracle.layouts import layouts

Found = Collection[tuple[str, str]]  # sentences, each with the place of its case

_MIXTURES: Mapping[str, str] = {
    "documents": 'cut = "documents"',
    "spans": 'cut = "spans"',
    "turns": 'cut = "turns"',
    "masked": 'cut = "spans"\nmask = "[…]"',
}
_CONFIG = """
[evals]
recipes = ["leaks.yaml"]
[corpus]
unread = "report"
pack_shards = 100_000
[[corpus.source]]
name = "rows"
path = "corpus/**"
[policy]
detectors = ["exact"]
normalize = "decon"
exact_threshold = 1e-6
"""
_RECIPE = """evals:
  leaks:
    local_path: leaks.jsonl
    splits: [test]
    prompt: question
"""


def chosen_leaks(cases: Sequence[Case], seed: int) -> set[str]:
    """Return a third of the sentences in every second row, at least one of each."""
    rng, leaks = random.Random(f"leaks {seed}"), set()  # noqa: S311 - not for secrets
    for case in cases:
        rows: dict[int, list[str]] = {}
        for slot in case.slots:
            rows.setdefault(slot.row, []).append(slot.text)
        for row, texts in rows.items():
            if row % 2:
                leaks |= {*rng.sample(texts, max(1, len(texts) // 3))}
    return leaks


def run_pipeline(folder: Path, leaks: Collection[str]) -> None:
    """Run the pipeline with all mixtures over `corpus` in a folder."""
    items = [{"question": text} for text in sorted(leaks)]
    (folder / "leaks.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in items))
    (folder / "leaks.yaml").write_text(_RECIPE)
    mixtures = (
        f'[[mixture]]\nname = "{name}"\n{settings}\n' for name, settings in _MIXTURES.items()
    )
    config = folder / "decon.toml"
    config.write_text(_CONFIG + "".join(mixtures))
    code = command(["run", "--config", str(config)])
    if code not in (0, 4):
        raise RuntimeError(f"decon-assets run: exit code {code}")


def counted(
    cases: Sequence[Case], leaks: Collection[str], before: Found, after: Found
) -> tuple[Counter[str], list[str]]:
    """Count the sentences of all cases by what a mixture did with them, and list its errors.

    `before` and `after`: which sentences of which case are found in the corpus and in the mixture.
    """
    counts: Counter[str] = Counter()
    errors = []
    for case in cases:
        leaky = {slot.row for slot in case.slots if slot.text in leaks}
        if leaky and case.is_session:
            leaky = {slot.row for slot in case.slots}
        for slot in case.slots:
            place = case.place, slot.text
            if slot.repeats or place not in before:
                continue
            kind = "leaked" if slot.text in leaks else "beside" if slot.row in leaky else "apart"
            counts[kind] += 1
            counts[f"{kind}, left"] += place in after
            if (place in after) != (kind == "apart") and kind != "beside":
                errors.append(f"{case.name}: {slot.path} ({slot.role}), {kind}")
    return counts, errors


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.layout_mixtures",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add: Any = parser.add_argument
    add("--unknown", type=int, default=50, metavar="N", help="random layouts (default 50)")
    add("--seed", type=int, default=0, help="of sentences, rows, random layouts and leaks")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        cases = write_cases(
            folder / "corpus", n_unknown=chosen.unknown, seed=chosen.seed, names=[*layouts()]
        )
        leaks = chosen_leaks(cases, chosen.seed)
        run_pipeline(folder, leaks)
        before = _sentences_in(folder / "corpus", cases, folder / "before")
        for name in _MIXTURES:
            (made,) = Store(folder / ".decon").mixtures(name).glob("rows-*")
            after = _sentences_in(made, cases, folder / name)
            counts, errors = counted(cases, leaks, before, after)
            print(name, dict(counts))
            print(*(f"  {error}, {n}" for error, n in Counter(errors).items()), sep="\n")


def _sentences_in(corpus: Path, cases: Sequence[Case], out: Path) -> set[tuple[str, str]]:
    """Return the sentences that a scan finds, each with the place of its case."""
    items = scan_for({slot.text for case in cases for slot in case.slots}, corpus, out)
    texts = {number: text for text, number in items.items()}
    return {(place, texts[number]) for place, number in read_items(out)}


if __name__ == "__main__":
    main()
