"""Outputs appear whole or not at all."""

import json
import os
import subprocess
import sys

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_core.errors import DamagedError
from decon_core.schemas import GRAM_COUNTS, MATCHES
from decon_core.storage.checksums import is_whole, require_whole, sealed_page
from decon_core.storage.files import atomic_path, read_json, write_json
from decon_core.storage.store import Store
from decon_core.storage.tables import (
    count_rows,
    has_no_rows,
    read_about,
    read_arrow,
    read_parquet,
    row_groups,
    write_arrow,
    write_parquet,
    write_table_draft,
    write_tables,
)


def leftovers(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_a_file_appears_only_when_its_block_ends_well(tmp_path):
    path = tmp_path / "deep" / "a.json"
    with pytest.raises(RuntimeError), atomic_path(path) as draft:
        draft.write_text("half")
        raise RuntimeError
    assert not path.exists()
    write_json(path, {"a": 1})
    assert read_json(path) == {"a": 1}
    assert leftovers(path.parent) == []


def test_a_failed_rewrite_keeps_what_was_there(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"is": "old"})
    with pytest.raises(RuntimeError), atomic_path(path) as draft:
        draft.write_text("new")
        raise RuntimeError
    assert read_json(path) == {"is": "old"}


def test_a_folder_replaces_another_whole(tmp_path):
    path = tmp_path / "mixture"
    for content in ("old", "new"):
        with atomic_path(path) as draft:
            draft.mkdir()
            (draft / content).write_text(content)
    assert [file.name for file in path.iterdir()] == ["new"]
    with pytest.raises(RuntimeError), atomic_path(path) as draft:
        draft.mkdir()
        raise RuntimeError
    assert [file.name for file in path.iterdir()] == ["new"]
    assert leftovers(tmp_path) == []


def test_a_scan_result_without_rows_is_one_file_that_any_reader_opens(tmp_path):
    told = pa.schema([pa.field("a", pa.int64(), metadata={"unit": "token"})], {"made": "today"})
    untold = pa.schema([pa.field("a", pa.int64())])
    one = pa.table({"a": pa.array([1])}).slice(0, 0)
    for table in (told.empty_table(), untold.empty_table(), MATCHES.empty_table(), one):
        write_table_draft(tmp_path / "ours", [table], table.schema)
        require_whole((tmp_path / "ours").read_bytes(), tmp_path / "ours")
        assert pq.read_table(tmp_path / "ours").equals(table)
        assert pq.read_schema(tmp_path / "ours").equals(table.schema)
        assert has_no_rows(tmp_path / "ours", table.schema)
    assert not has_no_rows(tmp_path / "ours", MATCHES)


@pytest.mark.parametrize("schema", [MATCHES, GRAM_COUNTS])
def test_a_scan_result_has_the_declared_columns_and_is_small_without_rows(tmp_path, schema):
    ones = pa.array([1, 1, 1])
    columns = [
        pa.nulls(3, field.type) if field.nullable else ones.cast(field.type) for field in schema
    ]
    for table in (schema.empty_table(), pa.table(columns, schema=schema)):
        write_table_draft(tmp_path / "scan_result", [table], table.schema)
        assert pq.read_table(tmp_path / "scan_result").equals(table)
        assert pl.read_parquet(tmp_path / "scan_result").to_arrow().cast(schema).equals(table)
        assert has_no_rows(tmp_path / "scan_result", schema) == (table.num_rows == 0)
    write_table_draft(tmp_path / "scan_result", [], schema)
    assert (tmp_path / "scan_result").stat().st_size < 4096  # a block of most file systems


def test_how_rows_came_leaves_no_trace_in_a_file_that_grows(tmp_path, monkeypatch):
    monkeypatch.setattr("decon_core.storage.tables._ROWS_PER_GROUP", 10)
    table = pa.table({"a": range(37), "b": [str(n) * (n % 5) for n in range(37)]})
    for name, step in (("ones", 1), ("sevens", 7), ("whole", 37)):
        tables = (table.slice(first, step) for first in range(0, 37, step))
        write_tables(tmp_path / name, table.schema, row_groups(tables))
    assert pq.read_table(tmp_path / "ones").equals(table)
    assert pq.read_metadata(tmp_path / "ones").num_row_groups == 4
    content = {(tmp_path / name).read_bytes() for name in ("ones", "sevens", "whole")}
    assert len(content) == 1
    write_tables(tmp_path / "empty", table.schema, row_groups([]))
    assert pq.read_table(tmp_path / "empty").equals(table.schema.empty_table())


def test_a_file_that_broke_off_while_it_grew_is_not_there(tmp_path):
    table = pa.table({"a": [1]})

    def tables():
        yield table
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_tables(tmp_path / "a", table.schema, tables())
    assert [*tmp_path.iterdir()] == []


KILLED = """
import os, signal, sys
from pathlib import Path
from decon_core.storage.files import atomic_path, draft_folder
from decon_core.storage.store import Store
store = Store(Path(sys.argv[1]))
with (
    atomic_path(store.report) as file,
    atomic_path(store.mixture("m", "p"), drafts=store.drafts) as folder,
    draft_folder(store.drafts, "self-tests"),
    store.locked_shard("scan", "shard"),
):
    file.write_bytes(b"half")
    folder.mkdir()
    (folder / "a").write_bytes(b"half")
    print("written", flush=True)
    sys.stdin.read()
"""


def test_drafts_of_killed_processes_go_and_those_of_living_ones_stay(tmp_path):
    store = Store(tmp_path)
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "written\n"
    hidden = {*tmp_path.rglob(".*")}
    assert len(hidden) == 4
    store.sweep_drafts()
    assert {*tmp_path.rglob(".*")} == hidden
    process.kill()
    process.communicate()
    of_another_machine = store.drafts / ".m.0123456789ab-1-1-01234567.tmp"
    of_a_transfer = store.drafts / ".manifest.json.tmp"
    for path in (of_another_machine, of_a_transfer):
        path.mkdir()
    store.sweep_drafts()
    assert {*tmp_path.rglob(".*")} == {of_another_machine, of_a_transfer}
    for path in (of_another_machine, of_a_transfer):
        os.utime(path, (0, 0))
    store.sweep_drafts()
    assert not [*tmp_path.rglob(".*")]


FORKED = """
import os, time
from decon_core.storage.drafts import draft_name
def named():
    return [int(part, 16) for part in draft_name("a").split("-")[1:3]]
before = named()
time.sleep(0.1)
child = os.fork()
if child:
    os.waitpid(child, 0)
print(*before, os.getpid(), *named(), flush=True)
"""


def test_drafts_of_a_forked_process_have_its_own_start_in_their_name():
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, check=True)
    child, parent = ([*map(int, line.split())] for line in done.stdout.splitlines())
    process, start = parent[:2]
    assert parent == [process, start, process, process, start]
    assert child[2] == child[3] != process
    assert child[4] > start


def test_a_bit_that_flips_anywhere_in_a_file_is_noticed_in_every_format(tmp_path):
    table = pa.table({"a": [1, 2], "b": ["xxh3-128:" + "0" * 32, "z"]})
    write_json(tmp_path / "a.json", {"text": "xxh3-128:" + "0" * 32, "n": [1]})
    write_json(tmp_path / "none.json", {})
    write_parquet(tmp_path / "a.parquet", table)
    write_arrow(tmp_path / "a.arrow", table)
    write_table_draft(tmp_path / "empty", [], GRAM_COUNTS)
    (tmp_path / "page").write_bytes(sealed_page("# A page"))
    assert read_json(tmp_path / "a.json") == {"text": "xxh3-128:" + "0" * 32, "n": [1]}
    assert read_json(tmp_path / "none.json") == {}
    assert json.loads((tmp_path / "a.json").read_text())["n"] == [1]  # as other programs read it
    assert read_parquet(tmp_path / "a.parquet").equals(table)
    assert pq.read_table(tmp_path / "a.parquet").equals(table)
    assert read_arrow(tmp_path / "a.arrow").equals(table)
    for path in sorted(tmp_path.iterdir()):
        assert is_whole(path)
        content = path.read_bytes()
        for at in range(8 * len(content)):
            damaged = bytearray(content)
            damaged[at // 8] ^= 1 << at % 8
            with pytest.raises(DamagedError, match="damaged file"):
                require_whole(bytes(damaged), path)
        for cut in range(len(content)):
            with pytest.raises(DamagedError):
                require_whole(content[:cut], path)


def test_what_is_read_from_the_end_of_a_damaged_file_fails_only_by_naming_it(tmp_path):
    path, schema = tmp_path / "result", pa.schema({"a": pa.int64()})
    write_table_draft(path, [pa.table({"a": [1, 2]}, schema)], schema, about={"n": 1})
    content = path.read_bytes()
    said = []
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 64]) + content[at + 1 :])
        for read in (read_about, lambda file: count_rows(file, schema)):
            try:
                read(path)
            except DamagedError as error:
                said.append(str(error))
    assert len(said) > 100
    assert all(str(path) in one for one in said)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        read_about(path)


def test_a_parquet_file_without_a_column_that_is_asked_for_is_damaged(tmp_path):
    path, table = tmp_path / "a.parquet", pa.table({"a": [1], "b": ["x"]})
    write_parquet(path, table)
    assert read_parquet(path, columns=["b", "a"]).column_names == ["b", "a"]
    wider = table.schema.append(pa.field("c", pa.int64()))
    assert read_parquet(path, schema=wider)["c"].to_pylist() == [None]
    with pytest.raises(DamagedError, match="FieldRef"):
        read_parquet(path, columns=["a", "c"])
