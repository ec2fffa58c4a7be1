"""Measures how well `reworded` finds changed GSM8K questions, and its false alarms.

    python -m bench.reworded --pairs ../shared/data/semantic --evals ../shared/data/evals \\
        --texts ../shared/data/text --recipes made/recipes.yaml

Each question, in other words or with other numbers, is planted in a document between two pieces of
unrelated text. The threshold is chosen on one half of the items (by the parity of their numbers)
and tested on the other half, and vice versa. It is the lowest threshold at which the unrelated
texts have at most one candidate per 10 MB. The last table shows the matches in unrelated texts for
every benchmark, including those of recipe files such as the ones made by
`../shared/tools/like_mmlu`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from decon_core.benchmarks.folder import records_in
from decon_core.config.policy import Policy
from decon_core.corpus.batches import Batch
from decon_core.detectors.detector import detector
from decon_core.detectors.reworded.evidence import REWORDED
from decon_core.detectors.reworded.search import RewordedSearch
from decon_core.features.scorecard.corpora import texts_below

_THRESHOLDS = [round(0.2 + 0.01 * step, 2) for step in range(31)]
_MOST_PER_10_MB = 1.0
_WORDS_OF_VARIANT = 0.8  # share of the words with which other numbers count as found
_AROUND = 800  # characters of unrelated text before and after a reworded question


@dataclass(frozen=True)
class Hit:
    """A candidate: a document, the number of an item, and its score."""

    document: int
    item: int
    score: float
    is_same: bool  # else it has other numbers


class Detector:
    """The detector over the records of a benchmark."""

    def __init__(self, records: pa.Table) -> None:
        policy = Policy(detectors=("reworded",))
        reworded = detector("reworded")
        rows = records.select([*reworded.own_columns]).to_pylist()
        self.item_of = records["instance_index"].to_pylist()
        own = reworded.own_index([rows], policy)
        self._search = RewordedSearch(own, policy, policy.reworded_lowest_recorded)

    def hits(self, texts: Sequence[str]) -> list[Hit]:
        """Return matches of either kind, once for each item and document."""
        found = self._search.findings(Batch.of_texts(texts))
        return [
            Hit(document, item, one.score, one.kind == REWORDED)
            for (document, item), one in {
                (one.document, self.item_of[one.record]): one
                for one in found
                if one.kind == REWORDED or (one.question_overlap or 0) >= _WORDS_OF_VARIANT
            }.items()
        ]


@dataclass(frozen=True)
class _Pair:
    item: int
    kind: str
    text: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    for name in ("pairs", "evals", "texts"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--recipes", type=Path, nargs="*", default=[], help="more benchmarks")
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    given = parser.parse_args()
    texts = [text for one in texts_below(given.texts) for text in one.texts]
    lines = [*_report(given.evals, texts, [*_pairs(given.pairs)])]
    lines += ["", *_false_candidates([given.evals, *given.recipes], texts)]
    report = "\n".join(lines)
    print(report)
    if given.out:
        given.out.write_text(report + "\n")


def _report(evals: Path, texts: Sequence[str], pairs: Sequence[_Pair]) -> Iterator[str]:
    at_work = Detector(_of_gsm8k(evals, "test"))
    mb = sum(len(text.encode()) for text in texts) / 1e6
    unrelated = at_work.hits(texts)
    same_template = at_work.hits(_of_gsm8k(evals, "train")["question"].to_pylist())
    by_kind = {
        kind: _scores(at_work, [pair for pair in pairs if pair.kind == kind], texts)
        for kind in dict.fromkeys(pair.kind for pair in pairs)
    }
    yield f"| threshold | candidates per 10 MB of {mb:.1f} MB | GSM8K train | " + " | ".join(
        by_kind
    )
    yield "|---:|---:|---:|" + "---:|" * len(by_kind)
    for threshold in _THRESHOLDS[::5]:
        shares = (f"{_share(scores.values(), threshold):.3f}" for scores in by_kind.values())
        n_train = len({hit.document for hit in same_template if _reaches(hit, threshold)})
        yield (
            f"| {threshold} | {_per_10_mb(unrelated, mb, threshold):.1f} | {n_train} | "
            + " | ".join(shares)
            + " |"
        )
    yield ""
    for half in (0, 1):
        chosen = _chosen(unrelated, mb, half)
        tested = [hit for hit in unrelated if _half(hit.item) != half]
        shares = (
            f"{kind} {_share([x for item, x in one.items() if _half(item) != half], chosen):.3f}"
            for kind, one in by_kind.items()
        )
        rate = 2 * _per_10_mb(tested, mb, chosen)
        yield (
            f"- threshold chosen on half {half}: {chosen}; on the other half: "
            f"{rate:.1f} candidates per 10 MB (as for all items); " + ", ".join(shares)
        )


def _of_gsm8k(folder: Path, split: str) -> pa.Table:
    records = records_in(folder)["gsm8k"]
    return records.filter(pc.equal(records["split"], split))


def _false_candidates(places: Sequence[Path], texts: Sequence[str]) -> Iterator[str]:
    mb = sum(len(text.encode()) for text in texts) / 1e6
    threshold = Policy().reworded_threshold
    yield f"| benchmark | items | candidates in {mb:.1f} MB | other numbers |"
    yield "|---|---:|---:|---:|"
    for place in places:
        for name, records in records_in(place).items():
            hits = Detector(records).hits(texts)
            n_same = sum(hit.is_same and hit.score >= threshold for hit in hits)
            n_items = len(
                {
                    *zip(
                        records["split"].to_pylist(),
                        records["instance_index"].to_pylist(),
                        strict=True,
                    )
                }
            )
            label = f"{place.parent.name} {name}" if place.is_file() else name
            yield f"| {label} | {n_items} | {n_same} | {sum(not hit.is_same for hit in hits)} |"


def _reaches(hit: Hit, threshold: float) -> bool:
    return not hit.is_same or hit.score >= threshold


def _pairs(folder: Path) -> Iterator[_Pair]:
    for row in _lines(folder / "gsm8k_reworded.jsonl"):
        yield _Pair(row["item"], "reworded", row["reworded"])
    for row in _lines(folder / "gsm8k_variants.jsonl"):
        yield _Pair(row["item"], row["kind"], row["variant"])


def _lines(path: Path) -> Iterator[Mapping[str, Any]]:
    return map(orjson.loads, path.read_bytes().splitlines())


def _scores(at_work: Detector, pairs: Sequence[_Pair], texts: Sequence[str]) -> dict[int, float]:
    """Return the score of each item in a document with its other form; 0: not found."""
    long = [text for text in texts if len(text) > 2 * _AROUND]
    documents = []
    for number, pair in enumerate(pairs):
        around = long[number % len(long)]
        start = 97 * number % (len(around) - 2 * _AROUND)
        before, after = around[start:][:_AROUND], around[start + _AROUND :][:_AROUND]
        documents.append(f"{before}\n\n{pair.text}\n\n{after}")
    found = {
        hit.item: hit.score if hit.is_same else 1.0
        for hit in at_work.hits(documents)
        if hit.item == pairs[hit.document].item
    }
    return {pair.item: found.get(pair.item, 0.0) for pair in pairs}


def _half(item: int) -> int:
    return item // 2 % 2  # the labelled items have even numbers


def _share(scores: Iterable[float], threshold: float) -> float:
    return float(np.mean([score >= threshold for score in scores]))


def _per_10_mb(hits: Iterable[Hit], mb: float, threshold: float) -> float:
    return 10 * sum(_reaches(hit, threshold) for hit in hits) / mb


def _chosen(unrelated: Sequence[Hit], mb: float, half: int) -> float:
    """Return the lowest threshold at which the items of a half have few enough candidates."""
    of_half = [hit for hit in unrelated if _half(hit.item) == half]
    fits = (t for t in _THRESHOLDS if 2 * _per_10_mb(of_half, mb, t) <= _MOST_PER_10_MB)
    return next(fits, _THRESHOLDS[-1])


if __name__ == "__main__":
    main()
