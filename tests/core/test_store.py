"""Outputs appear whole or not at all."""

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_core.schemas import GRAM_COUNTS, MATCHES
from decon_core.store import (
    aside,
    growing_parquet,
    has_no_rows,
    read_json,
    write_json,
    write_tile,
)


def leftovers(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_a_file_appears_only_when_its_block_ends_well(tmp_path):
    path = tmp_path / "deep" / "a.json"
    with pytest.raises(RuntimeError), aside(path) as draft:
        draft.write_text("half")
        raise RuntimeError
    assert not path.exists()
    write_json(path, {"a": 1})
    assert read_json(path) == {"a": 1}
    assert leftovers(path.parent) == []


def test_a_failed_rewrite_keeps_what_was_there(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, "old")
    with pytest.raises(RuntimeError), aside(path) as draft:
        draft.write_text("new")
        raise RuntimeError
    assert read_json(path) == "old"


def test_a_folder_replaces_another_whole(tmp_path):
    path = tmp_path / "mixture"
    for content in ("old", "new"):
        with aside(path) as draft:
            draft.mkdir()
            (draft / content).write_text(content)
    assert [file.name for file in path.iterdir()] == ["new"]
    with pytest.raises(RuntimeError), aside(path) as draft:
        draft.mkdir()
        raise RuntimeError
    assert [file.name for file in path.iterdir()] == ["new"]
    assert leftovers(tmp_path) == []


def test_a_tile_without_rows_is_the_file_that_arrow_would_write(tmp_path):
    told = pa.schema([pa.field("a", pa.int64(), metadata={"unit": "token"})], {"made": "today"})
    untold = pa.schema([pa.field("a", pa.int64())])
    one = pa.table({"a": pa.array([1])}).slice(0, 0)
    for table in (told.empty_table(), untold.empty_table(), MATCHES.empty_table(), one):
        write_tile(tmp_path / "ours", table)
        pq.write_table(table, tmp_path / "theirs", compression="zstd", store_schema=False)
        assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
        assert pq.read_schema(tmp_path / "ours").equals(table.schema)
        assert has_no_rows(tmp_path / "ours", table.schema)
    assert not has_no_rows(tmp_path / "ours", MATCHES)


@pytest.mark.parametrize("schema", [MATCHES, GRAM_COUNTS])
def test_a_tile_has_the_declared_columns_and_is_small_without_rows(tmp_path, schema):
    ones = pa.array([1, 1, 1])
    columns = [
        pa.nulls(3, field.type) if field.nullable else ones.cast(field.type) for field in schema
    ]
    for table in (schema.empty_table(), pa.table(columns, schema=schema)):
        write_tile(tmp_path / "tile", table)
        assert pq.read_table(tmp_path / "tile").equals(table)
        assert pl.read_parquet(tmp_path / "tile").to_arrow().cast(schema).equals(table)
        assert has_no_rows(tmp_path / "tile", schema) == (table.num_rows == 0)
    write_tile(tmp_path / "tile", schema.empty_table())
    assert (tmp_path / "tile").stat().st_size < 4096  # a block of most file systems


def test_how_rows_came_leaves_no_trace_in_a_file_that_grows(tmp_path, monkeypatch):
    monkeypatch.setattr("decon_core.store._ROWS_PER_GROUP", 10)
    table = pa.table({"a": range(37), "b": [str(n) * (n % 5) for n in range(37)]})
    for name, step in (("ones", 1), ("sevens", 7), ("whole", 37)):
        with growing_parquet(tmp_path / name, table.schema) as write:
            for first in range(0, 37, step):
                write(table.slice(first, step))
    assert pq.read_table(tmp_path / "ones").equals(table)
    assert pq.read_metadata(tmp_path / "ones").num_row_groups == 4
    content = {(tmp_path / name).read_bytes() for name in ("ones", "sevens", "whole")}
    assert len(content) == 1
    with growing_parquet(tmp_path / "empty", table.schema):
        pass
    assert pq.read_table(tmp_path / "empty").equals(table.schema.empty_table())


def test_a_file_that_broke_off_while_it_grew_is_not_there(tmp_path):
    table = pa.table({"a": [1]})
    with pytest.raises(RuntimeError), growing_parquet(tmp_path / "a", table.schema) as write:
        write(table)
        raise RuntimeError
    assert [*tmp_path.iterdir()] == []
