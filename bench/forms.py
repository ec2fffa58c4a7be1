"""`python -m bench.forms`: how a scan classifies items that are planted in many forms.

Some items of each group (a benchmark or a subset of one) are planted in each form of `plants.py`,
each in a separate document between natural texts. A tenth of the items is not indexed and planted
as hard negatives. The tables show how each detector classifies the planted item, and how many other
items it reports. The untouched groups listed in `forms.toml`, which were not used for tuning, have
separate tables. `--as-written` plants the forms in which corpora write items: in JSON, in
quoted or numbered lines, with all choices. `--not-leaked` plants texts with the words of an item in
which the item has not leaked (`lookalikes.py`); the column *wrong* counts leaks and, unless only
the answer is another one, questions without their answer.

The first half of a question may be a stock phrase. Distinctive first halves are also counted
separately: they contain three runs of three words that no other question of the benchmark has.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import re
import subprocess
import sys
import tempfile
import tomllib
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pyarrow as pa

import decon_core as dc
from bench.lookalikes import MAY_LACK_ANSWER, NOT_LEAKED
from bench.plants import (
    AMONG,
    FAR_WORDS,
    FORMS,
    N_DRAWN,
    NEIGHBOURS,
    WITHIN,
    WRITTEN,
    Form,
    Planted,
    without_letter,
)
from decon_core.alignment.kinds import KINDS
from decon_core.features.scorecard.corpora import hosts_below
from decon_core.library.evals import records_of
from decon_core.library.findings import Findings

_SETTINGS: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_name("forms.toml").read_text(encoding="utf-8")
)
WORLDS = tuple(_SETTINGS["worlds"])
UNTOUCHED = frozenset(_SETTINGS["untouched"]["groups"])
_AROUND = 1_500  # characters of natural text before and after what is planted
_HELD_OUT = 10  # one item in so many is not indexed
_LENGTHS = ((12, "12 words or more"), (8, "8 to 11 words"), (0, "fewer than 8 words"))
_WORDS_FOR_THREE_EDITS = 20
_FEWEST_OWN_RUNS = 3
_NOT_FOUND = "nothing"
_HALF, _OWN_HALF = "first half", "distinctive first half"
_ROWS = (*FORMS, _OWN_HALF, *WRITTEN, *NOT_LEAKED, *NEIGHBOURS)
_OUTCOMES = ("leak", "no answer", "review", "no leak", _NOT_FOUND)


@dataclass(frozen=True)
class Item:
    """An item of a benchmark, with its right answer, or all its choices if none is known."""

    group: str
    split: str
    number: int
    passage: str
    question: str
    answer: str
    rows: tuple[Mapping[str, Any], ...]  # its records

    @property
    def is_held_out(self) -> bool:
        digest = sha256(f"{self.group} {self.split} {self.number}".encode()).digest()
        return not digest[0] % _HELD_OUT

    @property
    def choices(self) -> tuple[str, ...]:
        """Its choices without their letters, and without a solution, which also is right."""
        answers = dict.fromkeys(
            row["answer"]
            for row in self.rows
            if row["answer"] and (not row["is_correct"] or row["answer"] == self.answer)
        )
        choices = tuple(map(without_letter, answers))
        return choices if len(choices) > 2 else ()

    @property
    def length(self) -> str:
        n_words = len(self.question.split())
        return next(name for least, name in _LENGTHS if n_words >= least)


@dataclass(frozen=True)
class Plant:
    item: Item
    form: str
    planted: str
    text: str  # with what stands around it
    other_questions: Collection[str]  # of items that are planted with it


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("worlds", nargs="*", default=[*WORLDS], help="default: all")
    parser.add_argument("--detectors", nargs="+", default=["decon", "aligned"], metavar="NAME")
    parser.add_argument("--tuned-only", action="store_true", help="leave out untouched groups")
    add_list = partial(parser.add_argument, action="store_const", dest="forms", default=FORMS)
    add_list("--as-written", const=WRITTEN, help="plant other forms: WRITTEN")
    add_list("--not-leaked", const=NOT_LEAKED, help="plant other forms: NOT_LEAKED")
    parser.add_argument("--rows", type=Path, help="also write a row for each plant (.parquet)")
    add_arguments(parser)
    given = parser.parse_args(arguments)
    pages = pages_below(given.texts)
    measured = (_measured(name, pages, given) for name in given.worlds)
    rows = pl.concat([of_world for of_world in measured if of_world.width])
    if given.rows:
        rows.write_parquet(given.rows)
    print("\n".join(_tables(rows)))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `plants_of` and `pages_below` ask for."""
    parser.add_argument("--per-form", type=int, default=60, help="items of each group")
    parser.add_argument("--texts", type=Path, default=Path("../shared/data/text"))
    parser.add_argument("--seed", type=int, default=1)


def pages_below(texts: Path) -> list[str]:
    """Return natural texts that are long enough to plant something between them."""
    return [page for page in islice(hosts_below(texts), 4_000) if len(page) >= _AROUND]


def index_of(items: Sequence[Item], detector: str) -> dc.Index:
    """Return an index of the items that are not held out."""
    records = (row for item in items if not item.is_held_out for row in item.rows)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")  # of items that cannot be found
        path = Path(folder, "records.jsonl")
        path.write_text("".join(json.dumps(row) + "\n" for row in records))
        return dc.build_index(path, policy={"detectors": [detector]})


def _measured(world: str, pages: Sequence[str], given: argparse.Namespace) -> pl.DataFrame:
    """Return a row for each detector and plant: what it says of the item and of others."""
    items = items_of(world)
    plants = [
        plant
        for plant in plants_of(items, pages, given, given.forms)
        if not (given.tuned_only and plant.item.group in UNTOUCHED)
    ]
    texts = [plant.text for plant in plants]
    indexed = {item.question for item in items if not item.is_held_out}
    n_with = Counter(run for question in indexed for run in _runs(question))
    rows = []
    for detector in given.detectors:
        index = index_of(items, detector)
        for plant, findings in zip(plants, index.check_all(texts), strict=True):
            row = {"detector": detector, **_row(plant, findings, index)}
            rows.append(row)
            n_own = sum(n_with[run] == 1 for run in _runs(plant.planted))
            if plant.form == _HALF and n_own >= _FEWEST_OWN_RUNS:
                rows.append({**row, "form": _OWN_HALF})
    return pl.DataFrame(rows)


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {*zip(words, words[1:], words[2:], strict=False)}


def _row(plant: Plant, findings: Findings, index: dc.Index) -> dict[str, Any]:
    said: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    others = set()
    for finding in findings:
        question = index.record(finding)["question"]
        if question in plant.other_questions:
            continue
        is_planted = question == plant.item.question and plant.form not in NEIGHBOURS
        said[is_planted].append((finding.outcome, finding.kind or ""))
        if not is_planted and finding.outcome != "no leak":
            others.add(question)
    best = {
        is_planted: min(
            of, key=lambda one: _OUTCOMES.index(one[0]), default=(_NOT_FOUND, _NOT_FOUND)
        )
        for is_planted, of in said.items()
    }
    return {
        "group": plant.item.group,
        "form": plant.form,
        "length": plant.item.length,
        "item": plant.item.number,
        "outcome": best[True][0],
        "kind": best[True][1],
        "other_outcome": best[False][0],
        "other_kind": best[False][1],
        "n_others": len(others),
    }


# Items and plants ---------------------------------------------------------------------------------


def items_of(world: str) -> list[Item]:
    where = _SETTINGS["worlds"][world]
    if isinstance(where, int):
        with tempfile.TemporaryDirectory() as folder:
            made = ["../shared/tools/like_mmlu", str(where), folder]
            subprocess.run([sys.executable, *made], check=True, stdout=subprocess.DEVNULL)
            tables = records_of(Path(folder, "recipes.yaml"))
        tables = {world: next(iter(tables.values()))}
    elif recipe := _SETTINGS["recipes"].get(world):
        tables = records_of([*_rows_of(Path(where))], name=world, recipe=recipe)
    else:
        tables = records_of(where)
    return [item for name, table in tables.items() for item in _items_of(name, table)]


def _rows_of(path: Path) -> Iterator[Mapping[str, Any]]:
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as lines:
            yield from csv.DictReader(lines)
    else:
        with gzip.open(path) as lines:
            yield from map(json.loads, lines)


def _items_of(name: str, table: pa.Table) -> Iterator[Item]:
    left_out = ("benchmark", "instance_index", "extras", "fingerprint")
    by_item: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        by_item.setdefault((row["split"], row["instance_index"]), []).append(row)
    for (split, number), records in by_item.items():
        first = records[0]
        right = [one["answer"] for one in records if one["is_correct"] and one["answer"]]
        answers = right[:1] or [one["answer"] for one in records if one["answer"]]
        config = first["config"] if name == "agi_eval" else None
        yield Item(
            " ".join(filter(None, [name, config])),
            split,
            number,
            first["passage"] or "",
            first["question"],
            "\n".join(answers),
            tuple(
                {"eval_key": name, "eval_instance_index": number}
                | {key: value for key, value in one.items() if key not in left_out}
                for one in records
            ),
        )


def plants_of(
    items: Sequence[Item],
    pages: Sequence[str],
    given: argparse.Namespace,
    planted: Mapping[str, Form] = FORMS,
) -> Iterator[Plant]:
    indexed = {item.question for item in items if not item.is_held_out}
    for group in sorted({item.group for item in items}):
        rng = Random(f"{given.seed} {group}")  # noqa: S311
        of_group = [item for item in items if item.group == group and item.question.strip()]
        rng.shuffle(of_group)
        words = _words_around(of_group, pages)
        around = cycle(rng.sample(pages, len(pages)))
        for forms, is_held_out in ((planted, False), (NEIGHBOURS, True)):
            kept = [item for item in of_group if item.is_held_out == is_held_out]
            if is_held_out:
                kept = [item for item in kept if item.question not in indexed]
            for name, form in forms.items():
                made = _of_form(kept, name, form, words, around, rng)
                yield from islice(made, given.per_form)


def _words_around(items: Sequence[Item], pages: Sequence[str]) -> list[str]:
    texts = [*(item.question for item in items[:500]), *pages[:50]]
    return [word for text in texts for word in text.split() if word.isalpha() and len(word) > 2]


def _of_form(
    items: Sequence[Item],
    name: str,
    form: Form,
    words: Sequence[str],
    around: Iterator[str],
    rng: Random,
) -> Iterator[Plant]:
    by_passage: dict[str, list[Item]] = {}
    for item in items:
        by_passage.setdefault(item.passage, []).append(item)
    for item in items:
        if name == "three edits" and len(item.question.split()) < _WORDS_FOR_THREE_EDITS:
            continue
        far = " ".join(next(around).split()[:FAR_WORDS])
        others = _others(item, by_passage[item.passage])
        if name in NOT_LEAKED:
            others = others or _others(item, items)
        text = form(
            Planted(item.passage, item.question, item.answer, item.choices, others, words, far, rng)
        )
        if text:
            before, after = next(around)[:_AROUND], next(around)[:_AROUND]
            whole = f"{before}\n\n{text}\n\n{after}"
            whole = " ".join(whole.split()) if name == WITHIN else whole
            has_others = name == AMONG or name in NOT_LEAKED
            yield Plant(item, name, text, whole, dict(others).keys() if has_others else ())


def _others(item: Item, items: Sequence[Item]) -> list[tuple[str, str]]:
    """Draw questions and answers of other items."""
    rng = Random(f"{item.group} {item.split} {item.number}")  # noqa: S311
    drawn = rng.sample(items, min(len(items), N_DRAWN))
    others = ((other.question, other.answer) for other in drawn if other.answer)
    return [pair for pair in others if pair[0] != item.question]


# Tables -------------------------------------------------------------------------------------------


def _tables(rows: pl.DataFrame) -> Iterator[str]:
    is_untouched = pl.col("group").is_in(UNTOUCHED)
    for detector in rows["detector"].unique(maintain_order=True):
        for title, chosen in (("tuned", ~is_untouched), ("untouched", is_untouched)):
            kept = rows.filter(chosen & (pl.col("detector") == detector))
            if kept.height:
                groups = ", ".join(kept["group"].unique().sort())
                yield f"\n## `{detector}`, {title} groups: {groups}"
                for _, length in _LENGTHS:
                    yield from _table(kept.filter(pl.col("length") == length), length)
                yield from _by_group(kept)
                yield from _by_kind(kept)


def _table(rows: pl.DataFrame, length: str) -> Iterator[str]:
    if not rows.height:
        return
    yield f"\n### Questions of {length}\n"
    has_wrong = rows["form"].is_in([*NOT_LEAKED]).any()
    wrong = ("wrong",) if has_wrong else ()
    heads = ("form", "n", *wrong, *_OUTCOMES, "other items per plant", "plants with other items")
    yield f"| {' | '.join(heads)} |"
    yield "|---|" + "---:|" * (len(heads) - 1)
    for form in _ROWS:
        if (of_form := rows.filter(pl.col("form") == form)).height:
            said = of_form["other_outcome" if form in NEIGHBOURS else "outcome"]
            counted = [*([_wrong_of(form)] if has_wrong else []), *([one] for one in _OUTCOMES)]
            shares = " | ".join(f"{_mean(said.is_in(outcomes)):.3f}" for outcomes in counted)
            n_others = of_form["n_others"]
            others = f"{_mean(n_others):.2f} | {_mean(n_others > 0):.3f}"
            yield f"| {form} | {of_form.height} | {shares} | {others} |"


def _wrong_of(form: str) -> Sequence[str]:
    """Return what may not be said of a form in which the item has not leaked."""
    return _OUTCOMES[: 1 if form in MAY_LACK_ANSWER else 2]


def _by_group(rows: pl.DataFrame) -> Iterator[str]:
    """Yield the share that is not called clean, per group and form."""
    groups = rows["group"].unique().sort().to_list()
    yield "\n### Share reported as leak, no answer or review, by group: 12 words or more\n"
    yield "| form | " + " | ".join(groups) + " |"
    yield "|---|" + "---:|" * len(groups)
    long = rows.filter(pl.col("length") == _LENGTHS[0][1])
    for form in filter(set(long["form"]).__contains__, _ROWS):
        column = "other_outcome" if form in NEIGHBOURS else "outcome"
        cells = []
        for group in groups:
            said = long.filter((pl.col("form") == form) & (pl.col("group") == group))[column]
            cells.append(f"{_mean(said.is_in(_OUTCOMES[:3])):.2f}" if said.len() else "")
        yield f"| {form} | " + " | ".join(cells) + " |"


def _by_kind(rows: pl.DataFrame) -> Iterator[str]:
    """Yield how many plants of each form were called each kind, of a detector that names kinds."""
    if not rows["kind"].is_in(KINDS).any():
        return
    kinds = (*KINDS, _NOT_FOUND)
    yield "\n### Planted texts by form and reported kind: 12 words or more\n"
    yield "| planted | " + " | ".join(kinds) + " |"
    yield "|---|" + "---:|" * len(kinds)
    long = rows.filter(pl.col("length") == _LENGTHS[0][1])
    for form in _ROWS:
        said = long.filter(pl.col("form") == form)["other_kind" if form in NEIGHBOURS else "kind"]
        if said.len():
            yield f"| {form} | " + " | ".join(f"{(said == kind).sum():,}" for kind in kinds) + " |"


def _mean(values: pl.Series) -> float:
    return float(values.sum()) / values.len()


if __name__ == "__main__":
    main()
