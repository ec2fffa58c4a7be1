"""`python -m bench.code_pairs`: how well `code` tells copies of programs from other programs.

Reads labelled JSON Lines files with either `original` and `reworded` (a pair in each row) or `task`
and `code` (two programs for the same task are a pair). Thresholds are chosen on one half of the
items (by parity) and tested on the other half, and vice versa.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from decon_core.config.policy import Policy
from decon_core.detectors.code import (
    DocumentScores,
    NamedPrograms,
    Program,
    WindowSearch,
    arrays_of,
    weighted_programs,
)
from decon_core.errors import DeconError, InputError, Problem
from decon_core.text.code_form import ProgramText

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

_ALLOWED = (0.01, 0.001)  # shares of pairs of different tasks that may reach the threshold
_THRESHOLDS = (0.2, 0.3, 0.4, 0.45, 0.5, 0.6)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_ENDING = re.compile(r"(?<=...)(ing|ed|es|s|ers?|tion|ly)$")
_DEFINED = re.compile(r"\bdef\s+(\w+)\s*\(([^)]*)\)")
_SOURCES = (".py", ".js", ".ts", ".c", ".h")
_PROMPT_WEIGHT = 2.0  # of the prompts' similarity beside that of the programs


@dataclass(frozen=True)
class Labelled:
    """A program that may be compared as an item, as a document, or both."""

    task: int
    text: str
    prompt: str
    is_item: bool
    is_document: bool
    edition: int = 0  # items of one edition are one benchmark: each task once


def read(path: Path) -> list[Labelled]:
    """Read a labelled file; rows with an empty program are left out and counted."""
    try:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    except (OSError, ValueError) as error:
        raise InputError(Problem(str(path), str(error), "a file of JSON lines")) from None
    if rows and {"original", "reworded"} <= rows[0].keys():
        whole = [row for row in rows if row["original"].strip() and row["reworded"].strip()]
        programs = [
            Labelled(row["item"] // 2, row[name], "", name == "original", name == "reworded")
            for row in whole
            for name in ("original", "reworded")
        ]
    elif rows and {"task", "code"} <= rows[0].keys():
        whole = [row for row in rows if row["code"].strip()]
        tasks = {task: n for n, task in enumerate(dict.fromkeys(row["task"] for row in whole))}
        programs = [
            Labelled(
                tasks[row["task"]],
                row["code"],
                row.get("prompt", ""),
                is_item=True,
                is_document=True,
                edition=row.get("variant", 0),
            )
            for row in whole
        ]
    else:
        expected = "rows with original and reworded, or with task and code"
        raise InputError(Problem(str(path), "other fields", expected))
    print(f"{path.name}: {len(whole)} rows, {len(rows) - len(whole)} without a program left out")
    return programs


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of items (rows) in documents (columns), by method, and which are the same task."""

    by_method: dict[str, Floats]
    is_same: Booleans
    is_other: Booleans


def measure(programs: Sequence[Labelled], policy: Policy) -> Scores:
    """Score every item in every document; each edition is a benchmark of its own."""
    documents = [one for one in programs if one.is_document]
    editions: dict[int, list[Labelled]] = {}
    for one in programs:
        if one.is_item:
            editions.setdefault(one.edition, []).append(one)
    every = [_measure_edition(items, documents, policy) for items in editions.values()]
    return Scores(
        {
            name: np.concatenate([one.by_method[name] for one in every])
            for name in every[0].by_method
        },
        np.concatenate([one.is_same for one in every]),
        np.concatenate([one.is_other for one in every]),
    )


def _measure_edition(
    items: Sequence[Labelled], documents: Sequence[Labelled], policy: Policy
) -> Scores:
    indexed = weighted_programs(
        [(ProgramText(one.text, False, True), [row]) for row, one in enumerate(items)],
        policy.code_ngram_size,
    )
    tokens, both, names = _code_scores(indexed, documents, policy)
    methods = {"tokens alone": tokens, "`code`": both, "`code`, by names": names}
    methods["names in the signature"] = _shares(items, documents, lambda one: _names(one.text))
    if any(one.prompt for one in items):
        methods["prompts"] = _shares(items, documents, lambda one: _stems(one.prompt))
        methods["`code` and prompts"] = both + _PROMPT_WEIGHT * methods["prompts"]
    of_items, of_documents = (np.array([one.task for one in each]) for each in (items, documents))
    is_same_task = of_items[:, None] == of_documents[None, :]
    is_itself = np.array([[one is other for other in documents] for one in items])
    return Scores(methods, is_same_task & ~is_itself, ~is_same_task)


def _code_scores(
    programs: Sequence[Program], documents: Sequence[Labelled], policy: Policy
) -> tuple[Floats, Floats, Floats]:
    tokens, both, names = np.zeros((3, len(programs), len(documents)))
    named = NamedPrograms(programs)
    search = WindowSearch(arrays_of(programs), policy.code_ngram_size, 0.0)
    for column, document in enumerate(documents):
        content = document.text.encode()
        scores = DocumentScores(content)
        for row, (score, _, _) in named.find(np.frombuffer(content, np.uint8)).items():
            names[row, column] = score
        for row, weight, _, *window in search.windows_in(np.frombuffer(content, np.uint8)).tolist():
            program = programs[row]
            tokens[row, column] = weight / max(program.tokens.total, 1)
            if program.tokens.total:
                both[row, column], _ = scores.compare(program, weight, (window[0], window[1]))
    return tokens, both, names


def _stems(text: str) -> set[str]:
    return {_ENDING.sub("", word.lower()) for word in _WORD.findall(text)}


def _names(text: str) -> set[str]:
    """Return the names of functions, their words, and the names of parameters."""
    found = _DEFINED.findall(text)
    words = {word.lower() for name, _ in found for word in _WORD.findall(name)}
    parameters = {re.split("[:=]", one)[0].strip() for _, each in found for one in each.split(",")}
    return words | {f"def {name}" for name, _ in found} | {f"({one})" for one in parameters}


def _shares(
    items: Sequence[Labelled],
    documents: Sequence[Labelled],
    features_of: Callable[[Labelled], Iterable[str]],
) -> Floats:
    """Return the share of each item's features in each document, by idf over the items."""
    of_items = [{*features_of(one)} for one in items]
    counts = Counter(one for each in of_items for one in each)
    weights = {one: math.log((len(items) + 1) / n) for one, n in counts.items()}
    of_documents = [{*features_of(one)} for one in documents]
    shares = np.zeros((len(items), len(documents)))
    for row, each in enumerate(of_items):
        total = sum(weights[one] for one in each) or 1.0
        for column, other in enumerate(of_documents):
            shares[row, column] = sum(weights[one] for one in sorted(each & other)) / total
    return shares


def _threshold(scores: Floats, is_other: Booleans, allowed: float) -> float:
    """Return the lowest threshold that at most a share of the pairs of other tasks reaches."""
    others = np.sort(scores[is_other])[::-1]
    return float(np.nextafter(others[int(allowed * others.size)], 2.0 * others[0] + 1.0))


def table(halves: Sequence[Scores]) -> list[str]:
    """Return recall and false positives at thresholds that were chosen on the other half."""
    lines = ["| method | " + " | ".join(f"recall at ≤ {one:.1%}" for one in _ALLOWED) + " |"]
    lines.append("|---|" + "---|" * len(_ALLOWED))
    for method in halves[0].by_method:
        cells = []
        for allowed in _ALLOWED:
            n_same = n_found = n_other = n_false = 0
            thresholds = []
            for chosen_on, tested_on in (halves, halves[::-1]):
                least = _threshold(chosen_on.by_method[method], chosen_on.is_other, allowed)
                reaches = tested_on.by_method[method] >= least
                n_same += tested_on.is_same.sum()
                n_found += (reaches & tested_on.is_same).sum()
                n_other += tested_on.is_other.sum()
                n_false += (reaches & tested_on.is_other).sum()
                thresholds.append(f"{least:.2f}")
            share = f"{n_found / n_same:.3f} <sub>{n_false / n_other:.2%} false"
            cells.append(f"{share}, thresholds {' and '.join(thresholds)}</sub>")
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return lines


def curve(halves: Sequence[Scores]) -> list[str]:
    """Return recall and false positives of `code` and of its names at fixed thresholds."""
    methods = ("`code`", "`code`, by names")
    lines = ["| threshold" + " | recall | between tasks" * 2 + " |", "|---|---|---|---|---|"]
    for threshold in _THRESHOLDS:
        counts = np.zeros((2, 2, 2))
        for half in halves:
            for n, method in enumerate(methods):
                reaches = half.by_method[method] >= threshold
                for row, pairs in enumerate((half.is_same, half.is_other)):
                    counts[n, row] += (reaches & pairs).sum(), pairs.sum()
        shares = counts[:, :, 0] / counts[:, :, 1]
        cells = (f"{recall:.3f} | {false:.3%}" for recall, false in shares)
        lines.append(f"| {threshold} | {' | '.join(cells)} |")
    return lines


def false_alarms(programs: Sequence[Labelled], folder: Path, policy: Policy) -> list[str]:
    """Return how many items unrelated source files hold by score, per 10 MB."""
    items = [one for one in programs if one.is_item]
    first = {one.task: one for one in reversed(items)}
    indexed = weighted_programs(
        [(ProgramText(one.text, False, True), [row]) for row, one in enumerate(first.values())],
        policy.code_ngram_size,
    )
    kept = [one for one in indexed if one.n_tokens >= policy.code_min_tokens and one.tokens.total]
    search = WindowSearch(
        arrays_of(kept), policy.code_ngram_size, 0.6 * policy.code_lowest_recorded
    )
    named = NamedPrograms(kept)
    scores, by_names, n_bytes = [], [], 0
    for path in sorted(one for ending in _SOURCES for one in folder.rglob(f"*{ending}")):
        content = path.read_bytes()
        n_bytes += len(content)
        document = DocumentScores(content)
        for row, weight, _, *window in search.windows_in(np.frombuffer(content, np.uint8)).tolist():
            scores.append(document.compare(kept[row], weight, (window[0], window[1]))[0])
        found = named.find(np.frombuffer(content, np.uint8))
        by_names += [score for score, _, _ in found.values()]
    of = f"{len(kept)} programs in {n_bytes / 1e6:.1f} MB of {folder}"
    lines = []
    for what, every in (("found", np.array(scores)), ("found by names", np.array(by_names))):
        cells = [
            f"{(every >= one).sum() / n_bytes * 1e7:.1f} at {one}"
            for one in _THRESHOLDS
            if one >= policy.code_lowest_recorded
        ]
        lines.append(f"{what} per 10 MB, of {of}: {', '.join(cells)}")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table for each file."""
    parser = argparse.ArgumentParser(prog="python -m bench.code_pairs", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="labelled pairs, as JSON lines")
    parser.add_argument("--unrelated", type=Path, help="a folder of source files, for false alarms")
    given: Any = parser.parse_args(arguments)
    policy = Policy()
    try:
        for path in given.files:
            programs = read(path)
            halves = [
                measure([one for one in programs if one.task % 2 == half], policy)
                for half in range(2)
            ]
            print("", *table(halves), "", *curve(halves), "", sep="\n")
            if given.unrelated:
                print(*false_alarms(programs, given.unrelated, policy), "", sep="\n")
    except DeconError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
