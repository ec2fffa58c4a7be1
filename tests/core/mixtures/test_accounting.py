"""Fifteen hundred documents, and where each of them went: into a mixture, or onto its list."""

import gzip
import json
import random
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from decon_core.config.mixtures import Licenses, Mixture
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack, find_shards
from decon_core.mixtures.builder import Builder
from decon_core.scan.scanner import scan_packs
from decon_core.storage.compression import create
from tests.core.places import build_mixture, manifest_of, removed_in

N_PER_SHARD = 300
N_DOCUMENTS = 5 * N_PER_SHARD
# Two shards have one base name.
SHARDS = {
    "web": ("x/s.jsonl.zst", "y/s.jsonl.zst", "z.jsonl.gz"),
    "tables": ("x/s.parquet",),
    "chats": ("s.jsonl.zst",),
}
SOURCES = {
    "web": Source(name="web", path="web/**/*.jsonl*", text="text", id="id"),
    "tables": Source(name="tables", path="tables/**/*.parquet", text="text", id="id"),
    "chats": Source(name="chats", path="chats/*", messages="messages", id="id"),
}
UNREADABLE = b'{"id": "torn", "text": "no e\n'

CLEAN = Mixture(name="clean")
MIXTURES = (
    CLEAN,
    Mixture(name="cut", cut="spans"),
    Mixture(name="control", take="control", control_of="clean"),
    Mixture(name="mit", licenses=Licenses(fields=("license",), allow=("MIT",))),
    Mixture(name="leaks", take="leaks"),
)


@dataclass(frozen=True)
class Row:
    """A line of a shard, or a row of a table, by what cannot be mistaken for another."""

    id: str | None
    hash: bytes


def corpus(folder: Path, leaks: list[str]) -> dict[tuple[str, str], list[Row]]:
    """All shards written; every row of them."""
    rng = random.Random(4)
    words = [f"w{number}" for number in range(5_000)]
    rows = {}
    for source, names in SHARDS.items():
        for name in names:
            path = folder / source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            found = []
            for number in range(N_PER_SHARD):
                text = " ".join(rng.choices(words, k=rng.randrange(4, 50)))
                if rng.random() < 0.04:
                    text += " " + rng.choice(leaks)
                license_ = rng.choice(("MIT", "GPL-3.0", None))
                found.append(value_of(source, f"{source}-{name}-{number}", text, license_))
            write(path, found)
            rows[source, name] = rows_of(path)
    return rows


def value_of(source: str, id_: str, text: str, license_: str | None) -> dict[str, object]:
    value = {"id": id_, "license": license_}
    if source != "chats":
        return value | {"text": text}
    turns = [("user", "tell me"), ("assistant", text)]
    return value | {"messages": [{"role": role, "content": turn} for role, turn in turns]}


def write(path: Path, rows: list[dict[str, object]]) -> None:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=250)
        return
    lines = [json.dumps(row).encode() + b"\n" for row in rows]
    lines[len(lines) // 2] = UNREADABLE
    with create(path, path.suffix) as file:
        file.write(b"".join(lines))


def rows_of(path: Path) -> list[Row]:
    """Read without anything that is tested here."""
    if path.suffix == ".parquet":
        table = pq.read_table(path).to_pylist()
        return [Row(row["id"], hash_of(json.dumps(row).encode())) for row in table]
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    else:
        content = zstandard.ZstdDecompressor().stream_reader(content).read()
    lines = content.splitlines()
    return [
        Row(None if line == UNREADABLE.rstrip() else json.loads(line)["id"], hash_of(line))
        for line in lines
    ]


def hash_of(line: bytes) -> bytes:
    return sha256(line).digest()


@pytest.fixture
def builder(bench, make_words):
    """The corpus, scanned, and what builds mixtures of it; beside it every row that there is."""
    bench.policy = Policy(tokenizer_str="words", unreadable="drop")
    items = [(make_words(number, 30), make_words((number, "!"), 8), None) for number in range(3)]
    versions = bench.prepare({"a": items})
    rows = corpus(bench.folder, [f"{question} {answer}" for question, answer, _ in items])
    packs = []
    for name, source in SOURCES.items():
        found = find_shards(source, folder=bench.folder, known={})
        packs.append(Pack(name=f"{name}-0000", source=source, shards=tuple(found)))
    scan_packs(bench.store, packs, versions, bench.policy)
    return Builder(bench.store, tuple(packs), tuple(versions), bench.policy, MIXTURES), rows


def test_each_of_fifteen_hundred_documents_is_in_a_mixture_or_on_its_list(builder):
    builder, rows = builder
    assert sum(map(len, rows.values())) == N_DOCUMENTS
    assert len({row.hash for shard in rows.values() for row in shard}) >= N_DOCUMENTS - 10
    for mixture in MIXTURES:
        n_left = n_gone = n_cut = 0
        for pack in builder.packs:
            folder = build_mixture(builder, mixture, pack).folder
            listed = removed_in(folder).to_pylist()
            for shard in pack.shards:
                gone = {
                    (row["row"], row["doc_id"]): row["what"]
                    for row in listed
                    if row["shard"] == shard.name
                }
                there = rows[pack.source.name, shard.name]
                n_cut += require_accounted(there, rows_of(folder / shard.name), gone)
                n_gone += sum(what == "document" for what in gone.values())
            totals = json.loads(manifest_of(folder).read_text())["totals"]
            n_left += totals["n_documents_out"]
            assert totals["n_documents_in"] == totals["n_documents_out"] + sum(
                totals["removed"].values()
            )
        assert n_left + n_gone == N_DOCUMENTS
        assert min(n_left, n_gone) >= (0 if mixture.cut == "spans" else 25)
        assert (n_cut > 25) == (mixture.cut == "spans")


def require_accounted(before: list[Row], after: list[Row], gone: dict[tuple[int, str], str]) -> int:
    """Every row is there as it was and where it was, or on the list; how many were cut."""
    told = dict(gone)
    left = iter(after)
    n_cut = 0
    for number, row in enumerate(before):
        what = told.pop((number, row.id), None)
        if what == "document":
            continue
        found = next(left)
        assert found.id == row.id
        assert (found.hash == row.hash) == (what is None)
        n_cut += what is not None
    assert next(left, None) is None
    assert not told
    return n_cut
