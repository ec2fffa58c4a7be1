"""Makes a corpus of any size from a small amount of text, with benchmark items hidden in it.

Each document is composed of short runs of sentences from one file, so documents read like text and
no two are the same. Sentences and their n-grams are repeated, so such a corpus would lack the new
words that real text keeps adding. Therefore, some words are misspelled, at the rate at which
natural text of this size introduces new words.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson

from decon_core.benchmarks.folder import records_in
from decon_core.errors import InputError, Problem
from decon_core.features.scorecard.corpora import texts_below
from decon_core.storage.compression import create

SHARD = "mixed-{:04}.jsonl.zst"
TRUTH = "truth.jsonl"
SOURCE = "mixed"

_SENTENCE_END = re.compile(r"(?<=[.!?。।])\s+|\n+")
_LONGEST_SENTENCE = 600
_FEWEST_CHARACTERS = 4_000  # of a file: a shorter one would make one document again and again
_MEDIAN_CHARACTERS = 1_800
_SPREAD = 0.9  # of the logarithm; one document in a hundred is longer than 14,000 characters
_LONGEST_RUN = 4  # sentences that stay together
# 20 million words then hold some 300,000 different ones, as many as mixed English prose does.
_MISSPELLED = 0.07  # of the runs
_FEWEST_HIDDEN_CHARACTERS = 200  # shorter items may be too short to be looked for
_LETTERS = "etaoinshrdlucmfwypvbgk"

# For mixtures that look at one.
LICENSES = ("CC-BY-4.0", "CC0-1.0", "GPL-3.0-only", "MIT")

# What is hidden, in turn, and whether a scan must find it (None: either is fine).
_DISGUISES: dict[str, bool | None] = {
    "verbatim": True,
    "other_punctuation_and_case": True,
    "one_word_changed": None,
    "no_answer": None,
}


@dataclass(frozen=True)
class Made:
    """The size of a corpus that was made."""

    n_documents: int
    n_text_bytes: int
    n_hidden: int


@dataclass(frozen=True)
class _Item:
    benchmark: str
    split: str
    instance: int
    passage: str
    question: str
    answer: str


_Shelf = list[list[str]]  # the files of one source, each as its sentences


def make_corpus(
    folder: Path,
    *,
    texts: Path,
    evals: Path,
    mb: float,
    n_shards: int = 8,
    n_hidden: int = 1_000,
    seed: int = 0,
) -> Made:
    """Write shards of `mb` megabytes of text (in UTF-8) together, and what is hidden in them.

    The same arguments give the same bytes. The list of what is hidden lies beside the folder, or a
    scan of the folder would take it for a shard.
    """
    shelves = _shelves(texts)
    items = _items(evals, n_hidden, np.random.default_rng([seed, 0]))
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Made] = []
    with truth_file(folder).open("w", encoding="utf-8") as truth:
        for number in range(n_shards):
            rng = np.random.default_rng([seed, 1, number])
            hidden = items[number::n_shards]
            size = round(mb * 1e6 / n_shards)
            shard = _Shard(folder / SHARD.format(number), rng, shelves, size)
            made.append(shard.write(hidden, truth))
    return Made(
        sum(part.n_documents for part in made),
        sum(part.n_text_bytes for part in made),
        sum(part.n_hidden for part in made),
    )


def truth_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-{TRUTH}")


# What documents are made from ---------------------------------------------------------------------


def _shelves(texts: Path) -> list[_Shelf]:
    """Sources of text: an archive, a folder of shards or loose files each make one."""
    found = [
        shelf
        for name, files in sorted(_text_files(texts).items())
        if (shelf := [_sentences(text) for text in files if len(text) >= _FEWEST_CHARACTERS])
    ]
    if not found:
        where, expected = str(texts), f"text of {_FEWEST_CHARACTERS:,} characters or more"
        raise InputError(Problem(where, "no .zip, .txt or shard with enough text", expected))
    return found


def _text_files(texts: Path) -> dict[str, list[str]]:
    """Join all documents of a shard into one file; single documents would be too short."""
    return {
        found.name: ["\n".join(found.texts)] if found.has_documents else list(found.texts)
        for found in texts_below(texts)
    }


def _sentences(text: str) -> list[str]:
    """Split a text into sentences; text without full stops is cut at words."""
    found: list[str] = []
    for sentence in _SENTENCE_END.split(text):
        words = sentence.split()
        if len(sentence) <= _LONGEST_SENTENCE:
            found += [" ".join(words)] if words else []
            continue
        step = max(1, len(words) * _LONGEST_SENTENCE // len(sentence))
        found += [" ".join(words[at : at + step]) for at in range(0, len(words), step)]
    return found


# What is hidden -----------------------------------------------------------------------------------


def _items(evals: Path, n: int, rng: np.random.Generator) -> list[_Item]:
    """Draw different items that are long enough to be found; of several choices the correct one."""
    found: dict[tuple[str, str, int], _Item] = {}
    for name, table in records_in(evals).items():
        columns = ("split", "instance_index", "is_correct", "passage", "question", "answer")
        for row in table.select(columns).to_pylist():
            key = (name, row["split"], row["instance_index"])
            if row["is_correct"] is False or key in found:
                continue
            texts = [row[part] or "" for part in ("passage", "question", "answer")]
            if sum(map(len, texts)) >= _FEWEST_HIDDEN_CHARACTERS:
                found[key] = _Item(*key, *texts)
    items = list(found.values())
    return [items[at] for at in rng.permutation(len(items))[:n]]


def _disguised(item: _Item, disguise: str, rng: np.random.Generator) -> str:
    question, parts = item.question, [item.passage, item.question, item.answer]
    if disguise == "one_word_changed":
        words = question.split(" ")
        words[int(rng.integers(len(words)))] = "otherwise"
        parts[1] = " ".join(words)
    if disguise == "no_answer":
        parts = [question]
    text = "\n".join(part for part in parts if part)
    if disguise == "other_punctuation_and_case":
        return text.upper().replace(".", " ;").replace(",", " -")
    return text


# Shards -------------------------------------------------------------------------------------------


class _Shard:
    """Writes one file of documents."""

    def __init__(
        self, path: Path, rng: np.random.Generator, shelves: Sequence[_Shelf], size: int
    ) -> None:
        self._path, self._rng, self._shelves, self._size = path, rng, shelves, size
        self._weights = [
            np.cumsum([sum(map(len, sentences)) for sentences in shelf]) for shelf in shelves
        ]

    def write(self, hidden: Sequence[_Item], truth: io.TextIOBase) -> Made:
        n_bytes = n_documents = n_hidden = 0
        with create(self._path, self._path.suffix) as file:
            while n_bytes < self._size:
                shelf = int(self._rng.integers(len(self._shelves)))
                sentences = self._document(shelf)
                # Spread evenly; what is left when the shard is full is not hidden at all.
                if n_hidden < len(hidden) and n_bytes >= self._size * n_hidden / len(hidden):
                    disguise = list(_DISGUISES)[n_hidden % len(_DISGUISES)]
                    item = hidden[n_hidden]
                    at = int(self._rng.integers(len(sentences) + 1))
                    sentences.insert(at, f"\n{_disguised(item, disguise, self._rng)}\n")
                    truth.write(self._line(n_documents, item, disguise))
                    n_hidden += 1
                text = " ".join(sentences)
                row = {
                    "id": f"{self._path.name.partition('.')[0]}-{n_documents}",
                    "text": text,
                    "metadata": {
                        "shelf": shelf,
                        "n_sentences": len(sentences),
                        "license": LICENSES[n_documents % len(LICENSES)],
                    },
                }
                file.write(orjson.dumps(row) + b"\n")
                n_bytes += len(text.encode())
                n_documents += 1
        return Made(n_documents, n_bytes, n_hidden)

    def _line(self, row: int, item: _Item, disguise: str) -> str:
        line = {
            "source": SOURCE,
            "shard": self._path.name,
            "row": row,
            "kind": "plant",
            "phenomenon": disguise,
            "benchmark": item.benchmark,
            "split": item.split,
            "instance_index": item.instance,
            "expected": _DISGUISES[disguise],
        }
        return json.dumps(line, ensure_ascii=False) + "\n"

    def _document(self, shelf: int) -> list[str]:
        """Return runs of sentences of one file, at most half of its sentences."""
        rng, weights = self._rng, self._weights[shelf]
        file = int(np.searchsorted(weights, rng.random() * weights[-1], side="right"))
        sentences = self._shelves[shelf][file]
        wanted = min(rng.lognormal(np.log(_MEDIAN_CHARACTERS), _SPREAD), 60_000)
        document: list[str] = []
        n_characters = 0
        while n_characters < wanted and len(document) <= len(sentences) // 2:
            at = int(rng.integers(len(sentences)))
            run = sentences[at : at + int(rng.integers(1, _LONGEST_RUN + 1))]
            if rng.random() < _MISSPELLED:
                run[0] = self._misspelled(run[0])
            document += run
            n_characters += sum(map(len, run))
        return document

    def _misspelled(self, sentence: str) -> str:
        at, letter = self._rng.integers([len(sentence), len(_LETTERS)])
        return sentence[:at] + _LETTERS[letter] + sentence[at:]
