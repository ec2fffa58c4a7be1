"""Makes a world of many benchmarks and many small shards.

The cost of a grid does not depend on the content of the texts, so the texts are synthetic and as
small as possible.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from decon_core.errors import InputError, Problem

_ITEMS = 30
_WORDS_PER_QUESTION = 40
_WORDS_PER_ANSWER = 8
_DOCUMENTS_PER_SHARD = 20
_WORDS_PER_DOCUMENT = 60
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
_VOCABULARY = 4_000


@dataclass(frozen=True)
class GridSizes:
    """The size of a grid: it has benchmarks times packs partitions."""

    n_benchmarks: int = 20
    n_packs: int = 500
    n_shards: int = 10  # of each pack

    def __post_init__(self) -> None:
        wrong = {name: value for name, value in vars(self).items() if value < 1}
        if wrong:
            raise InputError(Problem(name, str(n), "1 or more") for name, n in wrong.items())

    @property
    def n_partitions(self) -> int:
        return self.n_benchmarks * self.n_packs

    @property
    def n_shards_in_all(self) -> int:
        return self.n_packs * self.n_shards


def make_world(folder: Path, sizes: GridSizes) -> Path:
    """Write benchmarks, shards with a leak in each, and the configuration; return its path."""
    names = [benchmark_name(number) for number in range(sizes.n_benchmarks)]
    for number in range(sizes.n_benchmarks):
        _write_lines(folder / f"{names[number]}.jsonl", _items(number))
    _write_recipes(folder, names)
    for number in range(sizes.n_shards_in_all):
        leak = _leak(number, sizes)
        _write_lines(folder / "corpus" / f"s{number:06}.jsonl", _documents(number, leak))
    config = folder / "decon.toml"
    config.write_text(_configuration(names, sizes))
    return config


def add_benchmark(folder: Path, sizes: GridSizes) -> str:
    """Add a benchmark: its file and its recipe; return its name."""
    names = [benchmark_name(number) for number in range(sizes.n_benchmarks + 1)]
    _write_lines(folder / f"{names[-1]}.jsonl", _items(sizes.n_benchmarks))
    _write_recipes(folder, names)
    return names[-1]


def benchmark_name(number: int) -> str:
    return f"bench_{number:03}"


def _configuration(names: list[str], sizes: GridSizes) -> str:
    """Return a configuration with the default mixture; idf is frozen from the first benchmarks."""
    return f"""\
[evals]
recipes = ["evals.yaml"]
[term_weights]
benchmarks = {json.dumps(names)}
[corpus]
pack_shards = {sizes.n_shards}
[[corpus.source]]
name = "web"
path = "corpus/*.jsonl"
text = "text"
id = "id"
"""


def _write_recipes(folder: Path, names: list[str]) -> None:
    recipes = {
        name: {
            "local_path": f"{name}.jsonl",
            "splits": ["test"],
            "prompt": "question",
            "answers": ["answer"],
        }
        for name in names
    }
    (folder / "evals.yaml").write_text(json.dumps({"evals": recipes}, indent=1))


def _items(benchmark: int) -> list[dict[str, str]]:
    words = _words(benchmark, "items", _ITEMS * (_WORDS_PER_QUESTION + _WORDS_PER_ANSWER))
    return [
        {
            "question": " ".join(next(words) for _ in range(_WORDS_PER_QUESTION)),
            "answer": " ".join(next(words) for _ in range(_WORDS_PER_ANSWER)),
        }
        for _ in range(_ITEMS)
    ]


def _leak(shard: int, sizes: GridSizes) -> str:
    """Return the item that a shard contains; the benchmarks alternate."""
    item = _items(shard % sizes.n_benchmarks)[shard // sizes.n_benchmarks % _ITEMS]
    return f"{item['question']} {item['answer']}"


def _documents(shard: int, leak: str) -> list[dict[str, Any]]:
    words = _words(shard, "documents", _DOCUMENTS_PER_SHARD * _WORDS_PER_DOCUMENT)
    texts = [
        " ".join(next(words) for _ in range(_WORDS_PER_DOCUMENT))
        for _ in range(_DOCUMENTS_PER_SHARD)
    ]
    texts[shard % _DOCUMENTS_PER_SHARD] += f" {leak}"
    return [{"id": f"{shard}-{row}", "text": text} for row, text in enumerate(texts)]


def _words(number: int, what: str, n: int) -> Iterator[str]:
    rng = np.random.default_rng([number, *what.encode()])
    syllables = np.array(_SYLLABLES)
    vocabulary = np.random.default_rng(0).integers(0, syllables.size, (_VOCABULARY, 3))
    return iter("".join(row) for row in syllables[vocabulary[rng.integers(0, _VOCABULARY, n)]])


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
