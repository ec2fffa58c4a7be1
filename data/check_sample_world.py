"""Run the oracle of the decon detector on the sample world, and compare with data/truth.jsonl.

Searches for all benchmarks together. With `--each`, also searches without the benchmark that is
added later, and for each benchmark alone.

    .venv/bin/python -m data.check_sample_world --each
    .venv/bin/python -m data.check_sample_world --sampling reference

Exits with 1 if a planted item is missed or a false alarm is raised. Also runs the tests of the code
benchmark on its solutions.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from decon_core.benchmarks.normalize import normalize
from decon_core.benchmarks.parse import load_recipes
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.corpus.documents import Document
from decon_core.corpus.packs import find_shards
from decon_core.corpus.shards import read_shard
from decon_core.text.tokenizers import load_tokenizer
from tests.oracle.decon import (
    Index,
    Record,
    Tokens,
    build_index,
    detect,
    index_records,
    report,
    tokenize,
)

_HERE = Path(__file__).resolve().parent
_SOURCES = (
    Source(name="shelf", path="corpus/shelf-*", text="text", id="id"),
    Source(name="parlor", path="corpus/parlor-*", messages="messages", id="id"),
    Source(name="agents", path="corpus/agents-*", id="id"),
)

_COLUMNS = ("benchmark", "split", "question", "answer", "passage", "is_correct", "fingerprint")

Place = tuple[str, int]  # shard and row
Key = tuple[str, str, int]  # benchmark, split, instance
Flagged = dict[tuple[Place, Key], float]  # best score of an item in a document


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the sample world.")
    parser.add_argument("--world", type=Path, default=_HERE)
    parser.add_argument("--sampling", choices=["exhaustive", "reference"], default="exhaustive")
    parser.add_argument("--each", action="store_true")
    options = parser.parse_args()
    world: Path = options.world
    policy = Policy(sampling=options.sampling)
    encoder = load_tokenizer(policy.tokenizer_str)
    benchmarks = read_benchmarks(world)
    documents = [
        (place, tokenize(document.text, policy, encoder)) for place, document in _documents(world)
    ]
    truth = [json.loads(line) for line in (world / "truth.jsonl").read_text().splitlines()]
    print(f"{len(documents)} documents, {len(truth)} lines of truth")

    wrong = list(_wrong_code(world))
    for names in _groups(benchmarks) if options.each else [tuple(benchmarks)]:
        records = [record for name in names for record in benchmarks[name]]
        index = build_index(index_records(records, policy, encoder), policy)
        flagged = scan(documents, index)
        told = [line for line in truth if line["benchmark"] in names]
        found = [*_wrong_verdicts(told, flagged), *_untold(told, flagged)]
        _print_index(names, records, index, flagged)
        wrong += [f"{' '.join(names)}: {line}" for line in found]
        if names == tuple(benchmarks):
            _print_table(told, flagged)
    for line in wrong:
        print("WRONG", line)
    return 1 if wrong else 0


def read_benchmarks(world: Path) -> dict[str, list[Record]]:
    return {
        name: records_of(normalize(recipe, base=folder))
        for folder in (world, world / "later")
        for name, recipe in load_recipes(folder / "evals.yaml").items()
    }


def records_of(table: pa.Table) -> list[Record]:
    return [
        Record(instance=row["instance_index"], **{name: row[name] for name in _COLUMNS})
        for row in table.to_pylist()
    ]


def _groups(names: Iterable[str]) -> list[tuple[str, ...]]:
    """idf weights depend on what is indexed together; the verdicts must not."""
    first = tuple(names)
    return [first, first[:-1], *((name,) for name in first)]


def scan(documents: Iterable[tuple[Place, Tokens]], index: Index) -> Flagged:
    """Return the leaks by document and item; a question without its answer is none."""
    flagged: Flagged = {}
    for place, tokens in documents:
        for match in report(detect(tokens, index), index):
            if match.is_no_answer:
                continue
            pair = (place, _key(index, match.number))
            flagged[pair] = max(match.score, flagged.get(pair, 0.0))
    return flagged


def _print_index(
    names: tuple[str, ...], records: list[Record], index: Index, flagged: Flagged
) -> None:
    items = {(record.benchmark, record.split, record.instance) for record in records}
    seen = {_key(index, number) for number in range(len(index.entries))}
    lowest = min(flagged.values(), default=0.0)
    print(
        f"{' '.join(names)}: {len(items)} items, {len(items - seen)} too short to be indexed, "
        f"{len(flagged)} flagged, lowest score {lowest:.3f}"
    )


def _key(index: Index, number: int) -> Key:
    record = index.entries[number].record
    return record.benchmark, record.split, record.instance


def _documents(world: Path) -> Iterator[tuple[Place, Document]]:
    for source in _SOURCES:
        for shard in find_shards(source, folder=world, known={}):
            for document in read_shard(shard, source):
                if not isinstance(document, Document):
                    raise TypeError(f"{shard.name}: {document}")
                yield (shard.name, document.row), document


def _place(line: dict[str, Any]) -> Place:
    return line["shard"], line["row"]


def _is_flagged(line: dict[str, Any], flagged: Flagged) -> bool:
    if line["instance_index"] is None:
        return any(place == _place(line) for place, _ in flagged)
    key = (line["benchmark"], line["split"], line["instance_index"])
    return (_place(line), key) in flagged


def _wrong_verdicts(truth: list[dict[str, Any]], flagged: Flagged) -> Iterator[str]:
    for line in truth:
        # Notes name `decon` where an alignment is needed to find the plant.
        expected = line["expected"] and "`decon`" not in line["note"]
        if expected is not None and expected != _is_flagged(line, flagged):
            yield f"expected {expected}: {line}"


def _untold(truth: list[dict[str, Any]], flagged: Flagged) -> Iterator[str]:
    """Flagged pairs that are no plant."""
    planted = {
        (_place(line), (line["benchmark"], line["split"], line["instance_index"]))
        for line in truth
        if line["kind"] == "plant"
    }
    for pair in sorted(set(flagged) - planted):
        yield f"flagged, but never planted: {pair} with {flagged[pair]:.3f}"


def _wrong_code(world: Path) -> Iterator[str]:
    recipe = load_recipes(world / "later" / "evals.yaml")["orchard_code"]
    for record in normalize(recipe, base=world / "later").to_pylist():
        tests = json.loads(record["extras"])["test"]
        try:
            exec(f"{record['answer']}\n{tests}", {})  # noqa: S102 - our own text
        except Exception as error:  # noqa: BLE001 - whatever a solution does wrong
            yield f"{record['question'][:60]}: {error!r}"


def _print_table(truth: list[dict[str, Any]], flagged: Flagged) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    found: Counter[tuple[str, str]] = Counter()
    expected: Counter[tuple[str, str]] = Counter()
    for line in truth:
        row = (line["kind"], line["phenomenon"])
        counts[row] += 1
        found[row] += _is_flagged(line, flagged)
        expected[row] += line["expected"] is True
    print(f"{'':14} {'':26} {'n':>4} {'expected':>9} {'flagged':>8}")
    for kind, phenomenon in sorted(counts, key=lambda row: (row[0] != "plant", row[1])):
        row = (kind, phenomenon)
        print(f"{kind:14} {phenomenon:26} {counts[row]:4} {expected[row]:9} {found[row]:8}")


if __name__ == "__main__":
    sys.exit(main())
