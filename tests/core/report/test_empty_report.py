"""The empty database that a store keeps, and reports that are written into a copy of it."""

import duckdb

from decon_core.report.database import write_database
from decon_core.report.tables import table_of
from decon_core.storage.checksums import is_whole, note_in_database

ITEM = {"benchmark": "quiz", "split": "test", "instance_index": 0}
FOUND = {**ITEM, "source": "web", "shard_name": "a", "row": 3, "score": 1.0}
ROWS = {
    "benchmarks": [{"benchmark": "quiz", "n_items": 1}],
    "items": [{**ITEM, "is_indexed": True}],
    "matches": [{**FOUND, "is_contaminated": True}],
}


def write(path, **settings):
    write_database(path, {name: table_of(name, rows) for name, rows in ROWS.items()}, **settings)
    with duckdb.connect(str(path), read_only=True) as connection:
        names = [name for (name,) in connection.execute("SHOW TABLES").fetchall()]
        return {name: connection.execute(f"FROM {name}").fetchall() for name in names}


def test_a_report_in_a_copy_of_the_empty_database_has_the_same_rows(tmp_path):
    empty, outdated = tmp_path / "empty" / "new.duckdb", tmp_path / "empty" / "old.duckdb"
    outdated.parent.mkdir()
    outdated.write_bytes(b"of an earlier version")
    expected = write(tmp_path / "alone.duckdb")
    assert expected["by_benchmark"]
    assert expected["findings"]
    assert write(tmp_path / "first.duckdb", empty=empty) == expected
    assert [*outdated.parent.iterdir()] == [empty]
    content = empty.read_bytes()
    assert write(tmp_path / "second.duckdb", empty=empty) == expected
    assert empty.read_bytes() == content
    assert is_whole(tmp_path / "second.duckdb")


def test_a_damaged_empty_database_is_written_again(tmp_path):
    empty = tmp_path / "empty" / "new.duckdb"
    expected = write(tmp_path / "first.duckdb", empty=empty)
    empty.write_bytes(empty.read_bytes()[:-300_000] + bytes(300_000))
    assert write(tmp_path / "second.duckdb", empty=empty) == expected
    assert is_whole(empty)


def test_a_note_is_behind_the_end_of_a_database_until_it_is_changed(tmp_path):
    path, note = tmp_path / "noted.duckdb", {"state": "0", "counts": [1, None, "é\nnote:"]}
    assert write(path, note=lambda _: note) == write(tmp_path / "plain.duckdb")
    assert is_whole(path)
    assert note_in_database(path) == note
    assert note_in_database(tmp_path / "plain.duckdb") == {}
    assert note_in_database(tmp_path / "none.duckdb") == {}
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE numbers AS SELECT random() FROM range(100_000)")
    assert note_in_database(path) == {}
