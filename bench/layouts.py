"""`python -m bench.layouts`: which text of which layouts of training rows a scan reads.

Writes rows with a different sentence in every slot (tests/oracle/layouts.py), makes an item from
each sentence, scans the files with the detector `exact`, and counts for each layout the sentences
that were found. The remaining sentences are divided into those in rows or files that the scan could
not read, those under a path that the scan reports as unread, and those that were missed silently,
which are listed by path. A sentence has the wrong kind if its `slot_kind` in the matches differs
from that of the layout.

Sentences that a layout repeats count once, and count as visible if a model sees one of the copies.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.library.results import LEDGER_FILE, MATCHES_FILE, SUMMARY_FILE
from decon_core.library.scan import Request, scan_folder
from tests.oracle.layout_files import write_rows
from tests.oracle.layouts import (
    Sentences,
    Slot,
    layouts,
    made_up_slots,
    rows_of,
    unknown_layout,
)

_KINDS = (
    "visible",
    "visible read",
    "hidden",
    "hidden read",
    "named",
    "refused",
    "missed",
    "wrong kind",
)
_PUBLISHED, _UNKNOWN = "published layouts", "unknown layouts"
# Sentences are compared as canonical text, and every one of them is informative.
_POLICY = Policy(detectors=("exact",), normalize="decon", exact_threshold=1e-6)


@dataclass(frozen=True)
class Case:
    """A file or folder of the corpus, and the sentences in it."""

    group: str
    name: str
    place: str  # relative to the corpus
    slots: Sequence[Slot]
    is_session: bool = False  # the file is one document


@dataclass(frozen=True)
class Result:
    """What a scan did with the sentences of a case."""

    case: Case
    counts: Counter[str]
    missed: Sequence[Slot]


def write_cases(corpus: Path, *, n_unknown: int, seed: int, names: Sequence[str]) -> list[Case]:
    """Write every layout in each of its forms, every second with shuffled keys, and random ones."""
    sentence = Sentences(seed)
    cases: list[Case] = []
    published = [layout for name, layout in layouts().items() if not names or name in names]
    for layout in [*published, *map(unknown_layout, range(seed, seed + n_unknown))]:
        for form in layout.files:
            shuffles = len(cases) % 2 == 1
            rows, slots = rows_of(layout, seed, sentence, shuffles_keys=shuffles)
            place = f"{layout.name}-{form}"
            write_rows(corpus / place, form, rows)
            group = _PUBLISHED if layout.family else _UNKNOWN
            name = f"{layout.name} ({form})"
            cases.append(Case(group, name, place, slots, is_session=layout.is_session))
    return cases


def copy_cases(corpus: Path, folder: Path) -> list[Case]:
    """Copy the files that the `slots.jsonl` of a folder names."""
    cases = []
    for file, slots in made_up_slots(folder).items():
        place = f"made-up-{file}"
        (corpus / place).mkdir(parents=True)
        shutil.copy(folder / file, corpus / place)
        cases.append(Case(str(folder), file, place, slots))
    return cases


def scan_cases(corpus: Path, cases: Sequence[Case], out: Path) -> list[Result]:
    """Scan all files at once with an item for each sentence, and count what was found."""
    items = scan_for({slot.text for case in cases for slot in case.slots}, corpus, out)
    read = read_items(out)
    refused, named = refused_rows(out, [case.place for case in cases]), named_paths(out)
    return [_result(case, items, read, refused[case.place], named) for case in cases]


def scan_for(texts: Collection[str], corpus: Path, out: Path) -> dict[str, int]:
    """Scan a folder with an item for each text; return the numbers of the items."""
    items = {text: number for number, text in enumerate(sorted(texts))}
    evals = out.with_name(f"{out.name}-evals")
    _write_items(evals, items)
    request = Request(
        evals=evals,
        source=Source(name="corpus", path=str(corpus), id="id"),
        out=out,
        policy=_POLICY,
    )
    outcome = scan_folder(request)
    if unseen := outcome.n_unseen["exact"]:
        raise RuntimeError(f"{unseen} sentences cannot be found by `exact` in any file")
    return items


def _write_items(evals: Path, items: Mapping[str, int]) -> None:
    evals.mkdir()
    rows = (
        {"eval_key": "slots", "eval_instance_index": number, "split": "test", "question": text}
        for text, number in items.items()
    )
    lines = "".join(json.dumps(row | {"answer": None}) + "\n" for row in rows)
    (evals / "slots_test.jsonl").write_text(lines)


def _case_of(file: str) -> str:
    return file.partition("/")[0]


def read_items(out: Path) -> dict[tuple[str, int], bool]:
    """Return the items found, by place of a case and number: whether a match is in visible text."""
    matches = pq.read_table(out / MATCHES_FILE).to_pylist()
    read: dict[tuple[str, int], bool] = {}
    for match in matches:
        key = _case_of(match["file"]), match["instance_index"]
        read[key] = read.get(key, False) or match.get("slot_kind") != "hidden"
    return read


def refused_rows(out: Path, places: Sequence[str]) -> dict[str, Callable[[int], bool]]:
    """Return by place of a case whether a row of it was refused, with a reason, by the scan."""
    others = json.loads((out / SUMMARY_FILE).read_text())["not_looked_at"]
    files: dict[str, list[dict[str, Any]]] = {place: [] for place in places}
    for line in map(json.loads, (out / LEDGER_FILE).read_text().splitlines()):
        files[_case_of(line["file"])].append(line)
    refused: dict[str, Callable[[int], bool]] = {}
    for place, lines in files.items():
        read = [line for line in lines if line["is_read"] and line["n_documents"]]
        rows = {row["row"] for line in read for row in line["unreadable"]}
        is_named = bool(lines) or any(name.startswith(f"{place}/") for name in others)
        refused[place] = rows.__contains__ if read or not is_named else lambda _: True
    return refused


def named_paths(out: Path) -> list[re.Pattern[str]]:
    """Return patterns of the paths that the summary names as unread."""
    unread = json.loads((out / SUMMARY_FILE).read_text()).get("unread", [])
    return [_pattern(entry["path"]) for entry in unread]


def _pattern(path: str) -> re.Pattern[str]:
    """Return a pattern of a path and all below it; `*` is any key."""
    return re.compile(re.escape(plain_path(path)).replace(r"\*", ".+") + r"(?:[.\[].*)?", re.DOTALL)


def plain_path(path: str) -> str:
    """Return a path without what differs between descriptions: numbers, and where JSON begins."""
    return re.sub(r"\[\d+\]", "[]", path.replace(" (JSON) ", "").replace(" (JSON)", ""))


def _result(
    case: Case,
    items: Mapping[str, int],
    read: Mapping[tuple[str, int], bool],
    is_refused: Callable[[int], bool],
    named: Sequence[re.Pattern[str]],
) -> Result:
    """Sort the sentences of a case."""
    counts: Counter[str] = Counter(dict.fromkeys(_KINDS, 0))
    seen = {slot.text for slot in case.slots if slot.is_visible}
    missed = []
    for slot in case.slots:
        if slot.repeats:
            continue
        kind = "visible" if slot.text in seen else "hidden"
        counts[kind] += 1
        is_visible = read.get((case.place, items[slot.text]))
        if is_visible is not None:
            counts[f"{kind} read"] += 1
            counts["wrong kind"] += is_visible != (kind == "visible")
        elif is_refused(slot.row):
            counts["refused"] += 1
        elif any(pattern.fullmatch(plain_path(slot.place)) for pattern in named):
            counts["named"] += 1
        else:
            counts["missed"] += 1
            missed.append(slot)
    return Result(case, counts, missed)


def markdown(results: Sequence[Result]) -> Iterator[str]:
    """Return a table with a line for each case, but one for all random layouts, and totals."""
    lines: list[tuple[str, Counter[str]]] = []
    for group in dict.fromkeys(result.case.group for result in results):
        cases = [result for result in results if result.case.group == group]
        total = Counter(dict.fromkeys(_KINDS, 0))
        for result in cases:
            total.update(result.counts)
        if group != _UNKNOWN:
            lines += [(result.case.name, result.counts) for result in cases]
        lines.append((f"**{group}**", total))
    yield f"| layout | {' | '.join(_KINDS)} |"
    yield f"|---|{'---:|' * len(_KINDS)}"
    for name, counts in lines:
        yield f"| {name} | {' | '.join(f'{counts[kind]:,}' for kind in _KINDS)} |"


def missed_paths(results: Sequence[Result]) -> Iterator[str]:
    """Return a line for each path of a case that was silently missed."""
    for result in results:
        paths = Counter((slot.path, slot.role) for slot in result.missed)
        for (path, role), n in paths.items():
            yield f"{result.case.name}: {path} ({role}), {n:,}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.layouts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add: Any = parser.add_argument
    add("--folder", type=Path, action="append", default=[], help="files beside a slots.jsonl")
    add("--unknown", type=int, default=200, metavar="N", help="random layouts (default 200)")
    known = {"choices": [*layouts()], "metavar": "NAME"}
    add("--layouts", nargs="*", default=[], help="only these (default: all)", **known)
    add("--seed", type=int, default=0, help="of sentences, rows and random layouts")
    add("--most-missed", type=int, default=50, metavar="N", help="paths to list (default 50)")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as work:
        corpus, out = Path(work) / "corpus", Path(work) / "out"
        cases = write_cases(
            corpus, n_unknown=chosen.unknown, seed=chosen.seed, names=chosen.layouts
        )
        for folder in chosen.folder:
            cases += copy_cases(corpus, folder)
        results = scan_cases(corpus, cases, out)
    print(*markdown(results), sep="\n")
    missed = [*missed_paths(results)]
    if missed:
        print(f"\nsilently missed, {len(missed):,} paths:", *missed[: chosen.most_missed], sep="\n")


if __name__ == "__main__":
    main()
