"""Labelled pairs from the five files of reworded items, and the metrics on them.

`python -m bench.pair_metrics --data ../shared/data/semantic --out pairs --page
docs/pair-metrics.md` writes a file of labelled pairs for each of these files, scores it, and
inserts the tables into the page. Nothing is tuned on the pairs, so no part of them is held out.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from decon_core.features.similarity.embedders import Embedder, load_embedder
from decon_core.features.similarity.metrics import content_weights
from decon_core.features.similarity.pair_card import PairCard, score_pairs
from decon_core.storage.files import atomic_path
from decon_core.wording import counted

Row = dict[str, Any]

_TABLES = re.compile(r"(<!-- tables of bench.pair_metrics -->\n).*(<!-- end -->)", re.DOTALL)
# In GSM-Plus these are other questions. Left out: "distraction insertion", the same question with a
# sentence that does not matter, which is neither.
_OTHER_QUESTIONS = (
    *("numerical substitution", "digit expansion", "integer-decimal-fraction conversion"),
    *("adding operation", "reversing operation", "critical thinking"),
)


@dataclass(frozen=True)
class Pair:
    original: str
    other: str
    label: bool
    kind: str


@dataclass(frozen=True)
class Text:
    """A text of an item; `item` tells which texts are the same."""

    item: object
    text: str


def reworded(rows: Sequence[Row], embedder: Embedder) -> Iterator[Pair]:
    """Each item and its rewording; and each item with the most similar rewordings of others."""
    for row in rows:
        yield Pair(row["original"], row["reworded"], True, "reworded")
    yield from negatives(
        [Text(row["item"], row["original"]) for row in rows],
        [Text(row["item"], row["reworded"]) for row in rows],
        embedder,
    )


def variants(rows: Sequence[Row], _: Embedder) -> Iterator[Pair]:
    """Each item and its variants: a rewording is a duplicate, another question is none."""
    for row in rows:
        is_same = row["kind"] == "problem understanding"
        if is_same or row["kind"] in _OTHER_QUESTIONS:
            yield Pair(row["original"], row["variant"], is_same, row["kind"])


def mbpp(field: str) -> Callable[[Sequence[Row], Embedder], Iterator[Pair]]:
    """Return a maker of pairs of two prompts, or two programs, of a task."""

    def pairs(rows: Sequence[Row], embedder: Embedder) -> Iterator[Pair]:
        by_task: dict[object, list[str]] = {}
        for row in rows:
            by_task.setdefault(row["task"], []).append(row[field])
        for of_task in by_task.values():
            for one, other in combinations(of_task, 2):
                yield Pair(one, other, True, "same task")
        texts = [Text(row["task"], row[field]) for row in rows]
        yield from negatives(texts, texts, embedder)

    return pairs


def judged(rows: Sequence[Row], _: Embedder) -> Iterator[Pair]:
    """Items and passages of a corpus, as judged."""
    for row in rows:
        kind = str(row["match_type"]).removeprefix("MatchType.").lower()
        yield Pair(row["test_text"], row["corpus_text"], bool(row["is_sd"]), kind)


def negatives(texts: Sequence[Text], others: Sequence[Text], embedder: Embedder) -> Iterator[Pair]:
    """Pair each text with the most similar text of another item, in two ways.

    By shared content words and by an embedder: with one of them alone, the metrics that resemble it
    would face harder pairs than the rest.
    """
    is_own = np.array([[one.item == other.item for other in others] for one in texts])
    for kind, alike in (
        ("nearest by words", _by_words(texts, others)),
        ("nearest by embedding", _by_embedding(texts, others, embedder)),
    ):
        nearest = np.where(is_own, -1.0, alike).argmax(axis=1)
        for one, row in zip(texts, nearest.tolist(), strict=True):
            yield Pair(one.text, others[row].text, False, kind)


def _by_words(texts: Iterable[Text], others: Iterable[Text]) -> np.ndarray[Any, Any]:
    """Return the weight of the content words that two texts share, by that of either."""
    columns = [content_weights(other.text) for other in others]
    totals = [sum(one.values()) for one in columns]
    rows = []
    for text in texts:
        own = content_weights(text.text)
        shared = [sum(own[stem] for stem in own.keys() & one.keys()) for one in columns]
        total = sum(own.values())
        rows.append([n / max(total + m - n, 1) for n, m in zip(shared, totals, strict=True)])
    return np.array(rows)


def _by_embedding(
    texts: Iterable[Text], others: Iterable[Text], embedder: Embedder
) -> np.ndarray[Any, Any]:
    sides = ([one.text for one in side] for side in (texts, others))
    vectors, other_vectors = map(embedder.embed, sides)
    return vectors @ other_vectors.T


# By name of the labelled file: the file it is made from, and how.
_FILES: dict[str, tuple[str, Callable[[Sequence[Row], Embedder], Iterator[Pair]]]] = {
    "gsm8k_reworded": ("gsm8k_reworded", reworded),
    "gsm8k_variants": ("gsm8k_variants", variants),
    "humaneval_reworded": ("humaneval_reworded", reworded),
    "mbpp_prompts": ("mbpp_duplicates", mbpp("prompt")),
    "mbpp_programs": ("mbpp_duplicates", mbpp("code")),
    "judged_pairs": ("judged_pairs", judged),
}


def write_pairs(data: Path, out: Path, embedder: Embedder) -> list[Path]:
    """Write the files of labelled pairs; return their paths."""
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, (source, make) in _FILES.items():
        lines = (data / f"{source}.jsonl").read_text(encoding="utf-8").splitlines()
        made = make([json.loads(line) for line in lines], embedder)
        pairs = dict.fromkeys(made)  # two ways may choose the same text
        path = out / f"{name}.jsonl"
        with atomic_path(path) as draft:
            texts = (json.dumps(asdict(one), ensure_ascii=False) for one in pairs)
            draft.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        paths.append(path)
    return paths


def tables(cards: Iterable[PairCard]) -> str:
    """Return the sections of the page: a heading, counts and tables for each file."""
    parts = []
    for card in cards:
        counts = card.counts()
        line = (
            f"This file has {counts['n_duplicates']:,} duplicates and {counts['n_others']:,} other "
            f"pairs, made from {counts['n_originals']:,} originals"
        )
        if card.problems:
            verb = "was" if len(card.problems) == 1 else "were"
            pairs = counted(len(card.problems), "pair")
            line += f"; {pairs} without a second text {verb} left out"
        parts.append(f"\n### {card.name.removesuffix('.jsonl')}\n\n{line}.\n\n{card.tables()}")
    return "".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.pair_metrics", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the five files")
    parser.add_argument("--out", type=Path, required=True, help="folder for the labelled pairs")
    parser.add_argument("--page", type=Path, help="page whose tables are replaced")
    given = parser.parse_args()
    embedders = [load_embedder("wordllama"), load_embedder("minilm")]
    paths = write_pairs(given.data, given.out, embedders[0])
    cards = []
    for path in paths:
        print(path)
        cards.append(score_pairs(path, embedders=embedders))
        cards[-1].write(given.out / path.stem)
    if given.page:
        text = given.page.read_text(encoding="utf-8")
        text = _TABLES.sub(lambda found: f"{found[1]}{tables(cards)}\n{found[2]}", text)
        with atomic_path(given.page) as draft:
            draft.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
