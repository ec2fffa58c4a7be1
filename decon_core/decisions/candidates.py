"""Candidates: pairs of a benchmark item and a training text that are to be judged.

They come from a report (`report/review/found.py`) or from files: Parquet, or one JSON object
per line:

    {"benchmark": "gsm8k", "item": "…", "text": "…", "detector": "neighbours", "score": 0.71}

The names of the soft-contamination study (`test_text`, `corpus_text`, `similarity`, `test_id`) are
understood, too. Without `pair` the key is made from the two texts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from decon_core.decisions.annotations import (
    KEYS,
    NO_ANNOTATIONS,
    Annotation,
    Annotations,
    Line,
    annotation_of,
    key_problems,
    problems_of,
)
from decon_core.errors import InputError, Problem
from decon_core.storage.line_log import read_objects

_N_BANDS = 10  # bands of scores
_A_FILE = "a file of candidates"
_KEYS = {
    "pair",
    "fingerprint",
    "benchmark",
    "split",
    "instance_index",
    "test_id",
    "detector",
    "item",
    "test_text",
    "text",
    "corpus_text",
    "score",
    "similarity",
}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A pair to judge. A pair that several detectors found is one candidate for each."""

    pair: str
    fingerprint: str  # fingerprint of the record
    benchmark: str
    item: str  # the item in words: split and row, or the name that a file has for it
    detector: str
    score: float | None = None  # None: it can be judged, but tells nothing about a score
    item_text: str = ""
    text: str | None = None  # excerpt of the document
    why_no_text: str = ""


@dataclass(frozen=True)
class Evidence:
    """What people, files and endpoints said of pairs, beside verdicts."""

    annotations: Annotations = NO_ANNOTATIONS
    candidates: tuple[Candidate, ...] = ()

    @cached_property
    def digest(self) -> str:
        value = f"{self.annotations.digest} {self.candidates!r}"
        return sha256(value.encode("utf-8", "backslashreplace")).hexdigest()[:16]


NO_EVIDENCE = Evidence()


def read_candidates(path: Path) -> list[Candidate]:
    """Read a file of candidates; raise InputError with all problems."""
    is_table = path.suffix == ".parquet"
    lines = _read_table(path) if is_table else read_objects(path, _A_FILE, _problems_of)
    candidates = [candidate_of(line, detector=path.stem) for line in lines]
    texts: dict[str, tuple[str, str | None]] = {}
    for candidate in candidates:  # the key of a pair must not stand for two pairs of texts
        own = (candidate.item_text, candidate.text)
        if texts.setdefault(candidate.pair, own) != own:
            found, expected = "two different pairs of texts", "one pair for each key"
            raise InputError(Problem(f"{path}: pair {candidate.pair}", found, expected))
    return candidates


def _read_table(path: Path) -> Sequence[Line]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(Problem(str(path), str(error), _A_FILE)) from None
    rows: list[Line] = table.select([*_KEYS.intersection(table.column_names)]).to_pylist()
    InputError.raise_for(
        problem for at, row in enumerate(rows) for problem in _problems_of(f"{path}: row {at}", row)
    )
    return rows


def candidate_of(line: Line, *, detector: str) -> Candidate:
    item_text, text = _text(line, "item", "test_text"), _text(line, "text", "corpus_text")
    item = line.get("test_id") or [line.get("split"), line.get("instance_index")]
    names = item if isinstance(item, list) else [item]
    return Candidate(
        pair=line.get("pair") or key_of_texts(line["benchmark"], item_text, text),
        fingerprint=line.get("fingerprint") or key_of_texts(item_text),
        benchmark=line["benchmark"],
        item=" ".join(str(name) for name in names if name is not None),
        detector=line.get("detector") or detector,
        score=None if (score := _score(line)) is None else float(score),
        item_text=item_text,
        text=text,
    )


def read_annotated(path: Path) -> list[Annotation]:
    """Read annotations of others, by pair or by both texts; raise InputError with all problems."""
    lines = read_objects(path, "annotations, one JSON object per line", _annotation_problems)
    return [annotation_of({"by": path.name, **_with_keys(line)}) for line in lines]


def _annotation_problems(where: str, line: Line) -> Iterator[Problem]:
    if "pair" not in line and not _has_texts(line):
        expected = "the `pair` key, or `benchmark` and both texts (`item` and `text`)"
        yield Problem(where, "neither a key nor texts", expected)
        return
    yield from problems_of(where, _with_keys(line))


def _with_keys(line: Line) -> Line:
    if "pair" in line:
        return line
    candidate = candidate_of({**line, "score": None}, detector="")
    return {**line, "pair": candidate.pair, "fingerprint": candidate.fingerprint}


def _has_texts(line: Line) -> bool:
    texts = (_text(line, "item", "test_text"), _text(line, "text", "corpus_text"))
    return all(texts) and isinstance(line.get("benchmark"), str)


def _problems_of(where: str, line: Line) -> Iterator[Problem]:
    if not _has_texts(line):
        expected = "`benchmark`, `item` (or `test_text`) and `text` (or `corpus_text`)"
        yield Problem(where, "not all texts", expected)
    yield from key_problems(where, {name: line[name] for name in KEYS if line.get(name)})
    score = _score(line)
    is_number = isinstance(score, int | float) and not isinstance(score, bool)
    if score is not None and not (is_number and math.isfinite(score)):
        yield Problem(f"{where}: score", f"{score!r:.60}", "a number (`score`, or `similarity`)")


def _score(line: Line) -> Any:
    return line.get("score", line.get("similarity"))


def _text(line: Line, *names: str) -> str:
    return next((line[name] for name in names if isinstance(line.get(name), str)), "")


def key_of_texts(*texts: str) -> str:
    return sha256("\0".join(texts).encode("utf-8", "backslashreplace")).hexdigest()[:16]


def in_fair_order(candidates: Iterable[Candidate], *, seed: int = 0) -> list[list[Candidate]]:
    """Return the candidates of each pair, the pairs in an order of which any beginning is fair.

    Benchmarks, detectors and tenths of the score take turns; within one of these a hash decides.
    So a budget that ends early leaves no gap in the scores, and the order does not depend on that
    of the candidates.
    """
    by_pair: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_pair[candidate.pair].append(candidate)
    strata: dict[tuple[str, str, int], list[tuple[bytes, str]]] = defaultdict(list)
    for pair, members in by_pair.items():
        members.sort(key=lambda member: (member.detector, -(member.score or 0.0)))
        first = members[0]
        band = min(int((first.score or 0.0) * _N_BANDS + 1e-9), _N_BANDS)
        hashed = sha256(f"{seed} {pair}".encode()).digest()
        strata[first.detector, first.benchmark, band].append((hashed, pair))
    turns = (
        (turn, hashed, pair)
        for stratum in strata.values()
        for turn, (hashed, pair) in enumerate(sorted(stratum))
    )
    return [by_pair[pair] for _, _, pair in sorted(turns)]
