"""Makes the judgements of the reworded sample from truth.jsonl, one for each text of its report.

    decon-assets run --config data/reworded/decon.toml   # builds the report; exits with 1
    .venv/bin/python data/make_judgements.py
    decon-assets judge import data/reworded/judged.jsonl --config data/reworded/decon.toml

A text is judged to be the same question if its item was planted in the document in other words.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import orjson

FOLDER = Path(__file__).resolve().parent / "reworded"
_REPORT = Path(".decon", "report", "contamination.duckdb")
_QUERY = """
    SELECT DISTINCT text_id, fingerprint, doc_id, benchmark, split, instance_index
    FROM matches WHERE detector = 'reworded' ORDER BY text_id, doc_id
"""
_PLACE = ("doc_id", "benchmark", "split", "instance_index")


def main() -> None:
    lines = b"".join(orjson.dumps(line) + b"\n" for line in judgements(FOLDER))
    (FOLDER / "judged.jsonl").write_bytes(lines)


def judgements(folder: Path) -> list[dict[str, object]]:
    """Return a line for each matched text of the report in a folder."""
    truth = [orjson.loads(line) for line in (folder / "truth.jsonl").read_bytes().splitlines()]
    kinds = {tuple(one[name] for name in _PLACE): one["phenomenon"] for one in truth}
    with duckdb.connect(str(folder / _REPORT), read_only=True) as connection:
        found = connection.execute(_QUERY).fetchall()
    by_text = {
        text_id: (record, kinds.get(tuple(place), "another item"))
        for text_id, record, *place in found
    }
    return [_line(text_id, record, kind) for text_id, (record, kind) in by_text.items()]


def _line(text_id: str, record: str, kind: str) -> dict[str, object]:
    is_same = kind == "reworded"
    return {
        "pair": text_id,
        "fingerprint": record,
        "is_sd": is_same,
        "match_type": "equivalent" if is_same else "related",
        "confidence": 1.0,
        "reasoning": f"truth.jsonl: {kind}",
    }


if __name__ == "__main__":
    main()
