"""Compile all kernels into the cache, by scanning a few texts with every detector."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet

from decon_core.config import detector_registry as registry
from decon_core.config.load import policy_from
from decon_core.config.sources import ONLY_SOURCE, Sketch, Source
from decon_core.execution.jobs import in_subprocess, usable_cores
from decon_core.kernels import machine_code
from decon_core.kernels.jit import compiled_at_once
from decon_core.library.scan import Request, scan_folder

_BOUNDED = ["decon", "ngram_any"]  # their matches are looked up in a sketch

# What each scan sets. Together they call every kernel; hardly one is in two of them.
_SCANS: Mapping[str, Callable[[], Mapping[str, Any]]] = {
    "decon and ngram_any": lambda: {"detectors": _BOUNDED},
    "the other detectors": lambda: {"detectors": [*set(registry.names()) - {*_BOUNDED}]},
    "the settings of AI2's decon": lambda: {"preset": "reference", "sampling": "reference"},
}
_MANY_WORDS = 60_000  # more than the word table first has room for

_WORDS = [
    "amber", "barrel", "candle", "dagger", "eagle", "fabric", "garden", "hammer", "island",
    "jacket", "kettle", "ladder", "magnet", "needle", "orchard", "pepper", "quarry", "ribbon",
    "saddle", "timber", "urchin", "velvet", "walnut", "yellow", "zipper",
]  # fmt: skip


class Warmed(NamedTuple):
    """The folder of the machine code, and the kernels that were there and that were added."""

    folder: Path
    n_before: int
    n_new: int


def warm(on_scan: Callable[[str], None], *, small: bool = False) -> Warmed | None:
    """Compile every kernel that is not in the cache; None if no folder for one can be written.

    With `small`, only those that a scan of a few texts with the defaults does not run as plain
    Python. A kernel is compiled for the types of its arguments, which are those of common sizes
    here: a union of benchmarks with more than 65,536 different tokens has wider ones.
    """
    if (folder := machine_code.prepare()) is None:
        return None
    n_before = _n_kernels(folder)
    with TemporaryDirectory() as scratch:
        if small:
            on_scan("a small scan")
            _scan(Path(scratch) / "small", {}, sketch=None)
        else:
            _compile_all(Path(scratch), on_scan)
    return Warmed(folder, n_before, _n_kernels(folder) - n_before)


def _n_kernels(folder: Path) -> int:
    return sum(1 for _ in machine_code.kept_in(folder))


def _compile_all(scratch: Path, on_scan: Callable[[str], None]) -> None:
    jobs = [(name, scratch / str(number)) for number, name in enumerate(_SCANS)]
    first, *others = jobs  # the first compiles what all need
    on_scan(first[0])
    _compile_in_scan(first)
    with ExitStack() as beside:
        for job in others[1:] if usable_cores() > 1 else ():
            beside.enter_context(in_subprocess(_compile_in_scan, job))
        for job in others[:1]:
            on_scan(job[0])
            _compile_in_scan(job)
    for name, place in others[1:]:  # again, with what failed in a subprocess
        on_scan(name)
        _compile_in_scan((name, place.with_name(f"{place.name}-again")))


def _compile_in_scan(job: tuple[str, Path]) -> None:
    name, folder = job
    with compiled_at_once():
        _scan(folder, _SCANS[name](), Sketch())


def _scan(folder: Path, settings: Mapping[str, Any], sketch: Sketch | None) -> None:
    """Scan both kinds of shards, and again with more items: they are looked up in the sketch."""
    corpus, evals = folder / "corpus", folder / "evals.yaml"
    corpus.mkdir(parents=True)
    items = [*_items()]
    texts = [text for item in items for text in _texts(item)]
    texts.append(" ".join(f"word{number}" for number in range(_MANY_WORDS)))
    _write_lines(corpus / "lines.jsonl", [{"text": text} for text in texts])
    parquet.write_table(pa.table({"text": texts}), corpus / "table.parquet")
    request = Request(
        evals=evals,
        source=Source(name=ONLY_SOURCE, path=str(corpus), id="id"),
        out=folder / "found",
        policy=policy_from(settings, folder),
        sketch=sketch,
    )
    for n_items in (len(items) // 2, len(items)):
        rows = folder / f"items-{n_items}.jsonl"
        _write_lines(rows, items[:n_items])
        recipe = {
            "local_path": rows.name,
            "splits": ["test"],
            "prompt": "question",
            "answers": ["answer"],
            "passage": "passage",
        }
        recipes = {"evals": {f"sample{n_items}": recipe}}
        evals.write_text(json.dumps(recipes), encoding="utf-8")
        scan_folder(request)


def _items() -> Iterator[dict[str, str]]:
    """Yield items of distinct words, one of them a program, and one too short to be found."""
    yield {"passage": "", "question": "How many magnets?", "answer": "Twelve"}
    for number in range(4):
        question = [f"{word}{number}" for word in _WORDS]
        yield {
            "passage": " ".join(f"{word}s {number} of" for word in _WORDS),
            "question": f"If {' '.join(question)}, how many are left of {number + 30}?",
            "answer": " ".join(f"{word}ish{number}" for word in reversed(_WORDS)),
        }
    program = [f"def {word}(items, {word}s):" for word in _WORDS[:3]]
    body = "\n".join(
        f"{head}\n    total = {number}\n    for item in items:\n        if item > total:\n"
        f"            total += item * {number + 2}\n    return total\n"
        for number, head in enumerate(program)
    )
    yield {"passage": "", "question": f"Complete the program.\n{body}", "answer": body}


def _texts(item: Mapping[str, str]) -> Iterator[str]:
    """Yield documents with an item: as it is, with mark-up and letters beyond ASCII, edited."""
    whole = "\n\n".join(filter(None, item.values()))
    yield whole
    first, _, rest = whole.partition(" ")
    yield f"<p>Écrit à Zürich: {first}&nbsp;{rest}</p> a%20b%2Dc per-\nhaps Σ"
    yield whole.replace("magnet", "mag\u200bnet").replace("saddle", "stone").replace("; ", ", ")
    yield f"nothing of it: {first} {' '.join(reversed(_WORDS))}"


def _write_lines(path: Path, rows: list[dict[str, str]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
