"""Small worlds of leaks, as a report would hold them: for whatever shows a report."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from decon_core.decisions.not_read import NotRead
from tests.core.report.reports import write_report

THRESHOLDS = {"decon": 0.8, "ratcliff": 0.5}
RUN = {
    "state": "a1b2c3d4e5f60718",
    "scan_fingerprint": "5ca9f1a9e2d01347",
    "term_weights": "1df0000000000001",
    "threshold": 0.8,
    "thresholds": json.dumps(THRESHOLDS),
    "snippets": True,
    "made_by": "decon-assets 0.1.0",
    "made_at": "2026-01-02T03:04:05+00:00",
    "policy": "{}",
}

_WORDS = [
    *("harbor", "ferry", "lamp", "twelve", "rows", "seats", "theatre", "shelf", "almanac", "tide"),
    *("lantern", "keeper", "orchard", "barrel", "ledger", "strait", "signal", "rope", "mast"),
    *("chapel", "market", "bridge", "river", "coin", "parcel", "winter", "sailor", "engine"),
]

Row = dict[str, Any]


def sentence(random: Random, n: int) -> str:
    return " ".join(random.choice(_WORDS) for _ in range(n)).capitalize() + "."


def write_world(
    path: Path,
    *,
    benchmarks: Sequence[str] = ("harbor_mc", "ledger_math", "almanac_rc", "strait_mt"),
    sources: Sequence[str] = ("shelf", "parlor", "web"),
    n_items: int = 40,
    share: float = 0.3,
    detectors: Sequence[str] = ("decon", "ratcliff"),
    run: Mapping[str, Any] | None = None,
    **tables: Sequence[Row],
) -> Path:
    """A report in which about this share of the items was found, two in three of them as leaks."""
    random = Random(7)
    items = [*_items(random, benchmarks, n_items)]
    found = [item for item in items if item["is_indexed"] and random.random() < share]
    matched_texts = [
        _matched(random, item, number, sources, detectors) for number, item in enumerate(found)
    ]
    matches = [match for matched in matched_texts for match in _matches(random, matched)]
    made = {
        "runs": [{**RUN, **(run or {})}],
        "benchmarks": [
            {"benchmark": name, "version": f"v-{name}", "n_items": n_items, "n_records": n_items}
            for name in benchmarks
        ],
        "items": items,
        "visibility": [
            {**_place(item), "detector": detector, "is_visible": item["is_indexed"], "n_records": 1}
            for item in items
            for detector in detectors
        ],
        "shards": [*_shards(sources)],
        "not_read": [
            NotRead("row", sources[0], "s-0.jsonl", None, "not JSON", 1, 4000, 0)._asdict()
        ],
        "unreadable": [
            {
                "source": sources[0],
                "shard_name": "s-0.jsonl",
                "row": 7,
                "offset": 900,
                "reason": "not JSON",
                "detail": "line 1, column 4",
            }
        ],
        "matches": matches,
        "matched_texts": matched_texts,
        "mixtures": [*_mixtures(sources)],
        "removed": [*_removed(matches)],
    }
    return write_report(path, **{**made, **tables})


def _items(random: Random, benchmarks: Sequence[str], n_items: int) -> Iterator[Row]:
    for benchmark in benchmarks:
        for number in range(n_items):
            is_indexed = random.random() > 0.05
            yield {
                "benchmark": benchmark,
                "split": "test" if number % 4 else "train",
                "instance_index": number,
                "question": sentence(random, 18),
                "has_answer": random.random() > 0.1,
                "fingerprints": [sha256(f"{benchmark} {number}".encode()).hexdigest()[:16]],
                "n_records": 1,
                "is_indexed": is_indexed,
                "why_not_indexed": None if is_indexed else "too short",
            }


def _place(item: Row) -> Row:
    return {name: item[name] for name in ("benchmark", "split", "instance_index")}


def _matched(
    random: Random, item: Row, number: int, sources: Sequence[str], detectors: Sequence[str]
) -> Row:
    score = round(random.uniform(0.6, 1.0), 4)
    answer = sentence(random, 5) if item["has_answer"] else None
    has_answer = answer is not None and random.random() > 0.4
    before, after = sentence(random, 30), sentence(random, 25)
    text = f"{before}\n\n{item['question']} {answer if has_answer else ''}\n\n{after}"
    start = text.index(item["question"])
    stop = start + len(item["question"])
    marks = [{"start": start, "stop": stop, "part": "question"}]
    if answer and has_answer:
        marks.append({"start": stop + 1, "stop": stop + 1 + len(answer), "part": "answer"})
    source = random.choice(sources)
    return {
        **_place(item),
        "text_id": f"{number:016x}",
        "fingerprint": item["fingerprints"][0],
        "detectors": ", ".join(random.choice([detectors, detectors[:1]])),
        "score": score,
        "is_by_score": score >= 0.75,
        "is_contaminated": score >= 0.75,
        "is_no_answer": 0.68 <= score < 0.75 and answer is not None and not has_answer,
        "n_documents": random.choice([1, 1, 1, 2, 3, 12]),
        "n_matches": 1,
        "source": source,
        "shard_name": f"s-{number % 3}.jsonl",
        "row": number,
        "doc_id": f"doc-{number}",
        "question_overlap": score,
        "answer_overlap": None if answer is None else float(has_answer),
        "question": item["question"],
        "answer": answer,
        "question_marks": [{"start": 0, "stop": len(item["question"]), "part": "question"}],
        "answer_marks": [{"start": 0, "stop": len(answer or ""), "part": "answer"}]
        if has_answer
        else [],
        "text": text,
        "text_marks": marks,
        "text_start": 1200 if number % 2 else 0,
    }


def _matches(random: Random, matched: Row) -> Iterator[Row]:
    own = ("benchmark", "split", "instance_index", "fingerprint", "text_id", "score", "source")
    own += ("shard_name", "doc_id", "question_overlap", "answer_overlap", "is_contaminated")
    own += ("is_no_answer",)
    for detector in matched["detectors"].split(", "):
        for copy in range(matched["n_documents"]):
            yield {
                **{name: matched[name] for name in own},
                "detector": detector,
                "row": matched["row"] // 2 + 1000 * copy,
                "pack": "p-0",
                "is_by_score": matched["is_by_score"],
                "holds_to": round(min(matched["score"] + 0.05, 1.0), 2),
            }


def _shards(sources: Sequence[str]) -> Iterator[Row]:
    for source in sources:
        for number in range(3):
            yield {
                "source": source,
                "pack": "p-0",
                "shard_name": f"s-{number}.jsonl",
                "shard": f"fingerprint-{source}-{number}",
                "n_rows": 4000,
                "n_documents": 4000,
                "n_characters": 2_400_000,
                "n_too_short": 3,
                "n_unreadable": int((source, number) == (sources[0], 0)),
            }


def _mixtures(sources: Sequence[str]) -> Iterator[Row]:
    for mixture, left in (("decontaminated", 11_900), ("control", 11_900), ("spans", 11_999)):
        for source in sources:
            yield {
                "mixture": mixture,
                "pack": "p-0",
                "source": source,
                "shard_name": "s-0.jsonl",
                "is_current": True,
                "n_documents_in": 12_000,
                "n_documents_out": left,
                "n_tokens_in": 1_600_000,
                "n_tokens_out": 1_590_000,
            }


def _removed(matches: Sequence[Row]) -> Iterator[Row]:
    leaks = [match for match in matches if match["is_contaminated"]]
    for mixture, what, why in (
        ("decontaminated", "document", "leak"),
        ("control", "document", "control"),
        ("spans", "spans", "leak"),
    ):
        for match in leaks:
            yield {
                "mixture": mixture,
                "what": what,
                "why": why,
                "is_current": True,
                **{name: match[name] for name in ("source", "shard_name", "row")},
                "n_tokens": 120,
            }
