"""The five benchmarks: their hand-written texts as items, and the raw rows that are published."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

LETTERS = "ABCD"

# Items (or, in almanac_rc, passages) that go to the first split; the others go to the second.
_FIRST_SPLIT = {
    "harbor_mc": ("validation", 28, "test"),
    "ledger_math": ("train", 20, "test"),
    "almanac_rc": ("dev", 9, "test"),
    "strait_mt": ("test", 0, "test"),
    "orchard_code": ("test", 0, "test"),
}


@dataclass(frozen=True, kw_only=True)
class Item:
    """One benchmark item; `index` is its position within its split, as in the published files."""

    benchmark: str
    slug: str
    question: str
    answers: tuple[str, ...]
    choices: tuple[str, ...] = ()
    passage: str | None = None
    title: str | None = None
    tests: str | None = None
    split: str = ""
    index: int = -1

    @property
    def answer(self) -> str:
        return self.answers[0]

    @property
    def letter(self) -> str:
        return LETTERS[self.choices.index(self.answer)]


def load_items(folder: Path, *, seed: str) -> dict[str, list[Item]]:
    """Every benchmark's items, in the order of their files."""
    readers = {
        "harbor_mc": _multiple_choice,
        "ledger_math": _math,
        "almanac_rc": _reading,
        "strait_mt": _translation,
        "orchard_code": _code,
    }
    return {
        name: _with_splits(list(read(_lines(folder / f"{name}.txt"), Random(f"{seed} {name}"))))
        for name, read in readers.items()
    }


def _lines(path: Path) -> list[str]:
    """A file without its comments; a comment that is a number is an answer of ledger_math."""
    return [
        line
        for line in path.read_text(encoding="utf-8").splitlines()
        if not line.startswith("# ") or re.fullmatch(r"# [\d.]+", line)
    ]


def _with_splits(items: list[Item]) -> list[Item]:
    first, n_first, second = _FIRST_SPLIT[items[0].benchmark]
    units: dict[str, int] = {}
    for item in items:
        units.setdefault(item.title or item.slug, len(units))
    seen: Counter[str] = Counter()
    placed = []
    for item in items:
        split = first if units[item.title or item.slug] < n_first else second
        placed.append(replace(item, split=split, index=seen[split]))
        seen[split] += 1
    return placed


def _records(lines: list[str], start: str = "@ ") -> Iterator[tuple[str, list[str]]]:
    """The blocks of a file that begin with `start`: the rest of that line, and what follows."""
    block: list[str] = []
    for line in [*lines, start]:
        if line.startswith(start):
            if block:
                yield block[0].removeprefix(start), block[1:]
            block = [line]
        elif block:
            block.append(line)


def _marked(lines: list[str], mark: str) -> list[str]:
    return [line.removeprefix(mark + " ") for line in lines if line.startswith(mark + " ")]


def _multiple_choice(lines: list[str], rng: Random) -> Iterator[Item]:
    for slug, body in _records(lines):
        choices = _marked(body, "=") + _marked(body, "-")
        shuffled = tuple(rng.sample(choices, len(choices)))
        yield Item(
            benchmark="harbor_mc",
            slug=slug,
            question=_marked(body, "Q")[0],
            answers=(choices[0],),
            choices=shuffled,
        )


def _math(lines: list[str], _: Random) -> Iterator[Item]:
    for slug, body in _records(lines):
        solution = f"{_marked(body, 'A')[0]}\n#### {_marked(body, '#')[0]}"
        yield Item(
            benchmark="ledger_math",
            slug=slug,
            question=_marked(body, "Q")[0],
            answers=(solution,),
        )


def _reading(lines: list[str], _: Random) -> Iterator[Item]:
    for title, part in _records(lines, "P "):
        for slug, body in _records(part):
            yield Item(
                benchmark="almanac_rc",
                slug=slug,
                question=_marked(body, "Q")[0],
                answers=(*_marked(body, "A"), *_marked(body, "+")),
                passage=_marked(part, "T")[0],
                title=title,
            )


def _translation(lines: list[str], _: Random) -> Iterator[Item]:
    for slug, body in _records(lines):
        yield Item(
            benchmark="strait_mt",
            slug=slug,
            question=_marked(body, "EN")[0],
            answers=(_marked(body, "DE")[0],),
        )


def _code(lines: list[str], _: Random) -> Iterator[Item]:
    for slug, body in _records(lines):
        start, stop = body.index("S"), body.index("T")
        yield Item(
            benchmark="orchard_code",
            slug=slug,
            question=_marked(body, "P")[0],
            answers=("\n".join(body[start + 1 : stop]).strip() + "\n",),
            tests="\n".join(body[stop + 1 :]).strip() + "\n",
        )


def raw_row(item: Item) -> dict[str, Any]:
    """An item in the shape in which its benchmark is published."""
    match item.benchmark:
        case "harbor_mc":
            return {
                "id": item.slug,
                "question": item.question,
                "choices": list(item.choices),
                "answer": item.letter,
            }
        case "ledger_math":
            return {"question": item.question, "answer": item.answer}
        case "almanac_rc":
            return {
                "id": f"almanac-{item.slug}",
                "title": item.title,
                "context": item.passage,
                "question": item.question,
                "answers": {"text": list(item.answers)},
            }
        case "strait_mt":
            return {"id": item.slug, "en": item.question, "de": item.answer}
        case _:
            return {
                "task_id": f"orchard/{item.index}",
                "prompt": item.question,
                "canonical_solution": item.answer,
                "test": item.tests,
                "entry_point": re.findall(r"def (\w+)", item.answer)[-1],
            }
