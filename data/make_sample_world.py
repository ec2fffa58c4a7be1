"""Makes the sample world: five benchmarks, a corpus of three sources, and a list of planted texts.

    .venv/bin/python data/make_sample_world.py            # writes into data/
    .venv/bin/python data/make_sample_world.py --out DIR  # writes into DIR

The same seed gives the same bytes with the library versions in requirements.lock. With other
versions, compressors and Parquet writers may produce other bytes for the same content.
data/README.md describes the files and the format of the truth file.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from sample_world.content import Item, load_items, raw_row
from sample_world.documents import Writer, chat_license, metadata, page_text
from sample_world.grammar import Grammar
from sample_world.plants import (
    AGENTS,
    PARLOR,
    SHARDS,
    SHELF,
    Plant,
    Rewording,
    all_plants,
    rewordings,
)
from sample_world.sessions import TOOLS, session

SEED = "sample world 1"
N_ROWS = dict.fromkeys(SHELF, 480) | dict.fromkeys(PARLOR, 430) | dict.fromkeys(AGENTS, 120)

_REWORDED, _N_REWORDED = "pages-0000.jsonl.gz", 240

_HERE = Path(__file__).resolve().parent
_TEXTS = _HERE / "sample_world"
_METADATA = pa.struct([("license", pa.string()), ("url", pa.string()), ("lang", pa.string())])

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the sample world.")
    parser.add_argument("--out", type=Path, default=_HERE, help="folder to write into")
    make(parser.parse_args().out)


def make(out: Path) -> None:
    """Write benchmarks, corpus and truth below `out`."""
    items = load_items(_TEXTS, seed=SEED)
    write_benchmarks(items, out)
    writer = Writer(Grammar(_TEXTS))
    plants = all_plants(items, _TEXTS, writer.host, seed=SEED)
    truth: list[Row] = []
    for shard in SHARDS:
        planted = placed([plant for plant in plants if plant.shard == shard], shard)
        make_row = _MAKERS[shard.partition("-")[0]]
        rows = [make_row(writer, shard, at, planted.get(at)) for at in range(N_ROWS[shard])]
        _WRITERS[Path(shard).suffix](out / "corpus" / shard, rows)
        for at in sorted(planted):
            truth += _truth(planted[at], at, rows[at]["id"])
    _write(out / "truth.jsonl", _lines(truth))
    write_rewordings(rewordings(items, _TEXTS), writer, out / "reworded")


def write_rewordings(found: list[Rewording], writer: Writer, folder: Path) -> None:
    """Write a small corpus of its own: pages with a reworded item, or what is only near one."""
    rng = Random(f"{SEED} rows of {_REWORDED}")
    planted = dict(zip(rng.sample(range(_N_REWORDED), len(found)), found, strict=True))
    pages: list[Row] = []
    for at in range(_N_REWORDED):
        of_page = Random(f"{SEED} {_REWORDED} {at}")
        paragraphs = writer.host(of_page) if at in planted else writer.page(of_page)[0]
        if at in planted:
            paragraphs = [*paragraphs[:2], planted[at].text, *paragraphs[2:]]
        pages.append({"id": _identity(_REWORDED, at), "text": "\n\n".join(paragraphs)})
    _write_gz(folder / _REWORDED, pages)
    truth = [
        {
            "source": "pages",
            "shard": _REWORDED,
            "row": at,
            "doc_id": pages[at]["id"],
            "kind": "plant" if one.is_same else "hard_negative",
            "phenomenon": one.kind,
            "benchmark": one.item.benchmark,
            "split": one.item.split,
            "instance_index": one.item.index,
            "expected": one.is_same,
            "note": "",
        }
        for at, one in sorted(planted.items())
    ]
    _write(folder / "truth.jsonl", _lines(truth))


def write_benchmarks(items: dict[str, list[Item]], out: Path) -> None:
    """Every benchmark in its own shape of file."""
    folder = out / "benchmarks"
    for split in ("validation", "test"):
        _write(folder / f"harbor_mc_{split}.jsonl", _lines(_rows_of(items["harbor_mc"], split)))
    for split in ("train", "test"):
        path = folder / f"ledger_math_{split}.jsonl.gz"
        _write_gz(path, _rows_of(items["ledger_math"], split))
    for split in ("dev", "test"):
        path = folder / f"almanac_rc_{split}.parquet"
        _write_table(path, pa.Table.from_pylist(_rows_of(items["almanac_rc"], split)))
    pairs = _rows_of(items["strait_mt"], "test")
    lines = ["\t".join(pairs[0]), *("\t".join(pair.values()) for pair in pairs)]
    _write(folder / "strait_mt.tsv", "".join(line + "\n" for line in lines).encode())
    _write_zst(out / "later" / "orchard_code.jsonl.zst", _rows_of(items["orchard_code"], "test"))


def _rows_of(items: Iterable[Item], split: str) -> list[Row]:
    return [raw_row(item) for item in items if item.split == split]


# Corpus -------------------------------------------------------------------------------------------


def placed(plants: list[Plant], shard: str) -> dict[int, Plant]:
    """A row of the shard for every plant; the first and the last row are always among them."""
    rng = Random(f"{SEED} rows of {shard}")
    last = N_ROWS[shard] - 1
    rows = [0, last, *rng.sample(range(1, last), len(plants) - 2)]
    return dict(zip(rows, rng.sample(plants, len(plants)), strict=True))


def _web_page(writer: Writer, shard: str, at: int, plant: Plant | None) -> Row:
    rng = Random(f"{SEED} {shard} {at}")
    if plant is None:
        paragraphs, language = writer.page(rng)
        text = page_text(paragraphs, rng)
    else:
        paragraphs, language = _planted_page(writer.host(rng), plant), "en"
        text = "\n\n".join(paragraphs)
    row: Row = {"id": _identity(shard, at), "text": text}
    return row | {"metadata": metadata(paragraphs, language, rng)}


def _planted_page(host: list[str], plant: Plant) -> list[str]:
    pieces = [
        f"{piece.ask}\n\n{piece.reply}" if piece.reply else piece.ask for piece in plant.pieces
    ]
    if plant.position == "start":
        return pieces + host
    if plant.position == "end":
        return host + pieces
    spread = list(host)
    for number, piece in enumerate(pieces):
        spread.insert(2 + 2 * number, piece)
    return spread


def _conversation(writer: Writer, shard: str, at: int, plant: Plant | None) -> Row:
    rng = Random(f"{SEED} {shard} {at}")
    messages = writer.chat(rng)
    if plant is not None:
        turns = [
            [
                {"role": "user", "content": piece.ask},
                {"role": "assistant", "content": piece.reply or "Interesting!"},
            ]
            for piece in plant.pieces
        ]
        starts = {"start": 0, "middle": 2, "end": len(messages)}
        start = starts[plant.position]
        planted = [message for turn in turns for message in turn]
        messages = messages[:start] + planted + messages[start:]
    return _licensed({"id": _identity(shard, at), "messages": messages}, rng)


def _agent_session(writer: Writer, shard: str, at: int, plant: Plant | None) -> Row:
    rng = Random(f"{SEED} {shard} {at}")
    messages = session(writer, rng, plant)
    return _licensed({"id": _identity(shard, at), "messages": messages, "tools": TOOLS}, rng)


def _licensed(row: Row, rng: Random) -> Row:
    license_name = chat_license(rng)
    return row if license_name is None else row | {"license": license_name}


_MAKERS = {"shelf": _web_page, "parlor": _conversation, "agents": _agent_session}


def _identity(shard: str, at: int) -> str:
    digest = hashlib.sha256(f"{SEED} {shard} {at}".encode()).hexdigest()[:8]
    return f"{shard.partition('.')[0]}-{at:04}-{digest}"


def _truth(plant: Plant, at: int, identity: str) -> list[Row]:
    return [
        {
            "source": plant.shard.partition("-")[0],
            "shard": plant.shard,
            "row": at,
            "doc_id": identity,
            "kind": claim.kind,
            "phenomenon": claim.phenomenon,
            "benchmark": claim.benchmark,
            "split": claim.item.split if claim.item else None,
            "instance_index": claim.item.index if claim.item else None,
            "expected": claim.expected,
            "note": claim.note,
        }
        for claim in plant.claims
    ]


# Files --------------------------------------------------------------------------------------------


def _lines(rows: Iterable[Row]) -> bytes:
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _write_gz(path: Path, rows: Iterable[Row]) -> None:
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as file:
        file.write(_lines(rows))
    _write(path, buffer.getvalue())


def _write_zst(path: Path, rows: Iterable[Row]) -> None:
    _write(path, zstandard.ZstdCompressor(level=15).compress(_lines(rows)))


def _write_parquet(path: Path, rows: list[Row]) -> None:
    schema = pa.schema([("id", pa.string()), ("text", pa.string()), ("metadata", _METADATA)])
    _write_table(path, pa.Table.from_pylist(rows, schema=schema))


def _write_table(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="zstd")


_WRITERS = {".gz": _write_gz, ".zst": _write_zst, ".parquet": _write_parquet}


if __name__ == "__main__":
    main()
