"""Events in SQLite: written without waiting for the disk, and all there for whoever looks."""

import subprocess
import sys

import dagster as dg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import event, text
from sqlalchemy.pool import NullPool, Pool

from decon_assets.instance.sqlite_history import (
    _MOST_OPEN,
    _kept_engine,
    _open,
    write_quickly,
)


def engine_of(path):
    return _kept_engine(f"sqlite:///{path}", poolclass=NullPool, connect_args={"timeout": 30})


@pytest.fixture
def connected():
    """Lists the connections that SQLAlchemy makes while a test runs."""
    made = []

    def note(connection, _):
        made.append(connection)

    event.listen(Pool, "connect", note)
    yield made
    event.remove(Pool, "connect", note)


def test_a_file_stays_open_and_other_processes_read_what_was_written(tmp_path, connected):
    path = tmp_path / "run.db"
    with engine_of(path).begin() as connection:
        assert connection.execute(text("PRAGMA journal_mode = WAL")).scalar() == "wal"
        connection.execute(text("CREATE TABLE events (n INTEGER)"))
    for n in range(3):
        engine = engine_of(path)
        with engine.begin() as connection:
            assert connection.execute(text("PRAGMA synchronous")).scalar() == 1
            connection.execute(text("INSERT INTO events VALUES (:n)"), {"n": n})
        engine.dispose()
    assert len(connected) == 1
    assert path.with_name("run.db-wal").stat().st_size  # nobody was the last to close it
    asking = "SELECT n FROM events"
    program = f"import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute({asking!r}))"
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "(0,) (1,) (2,)"


def test_who_uses_a_file_at_the_same_time_has_another_connection(tmp_path, connected):
    path = tmp_path / "run.db"
    with engine_of(path).connect() as first, engine_of(path).connect() as second:
        assert first.connection.dbapi_connection is not second.connection.dbapi_connection
    engine_of(path).connect().close()
    assert len(connected) == 2


def test_a_file_that_was_removed_is_opened_again(tmp_path):
    path = tmp_path / "run.db"
    for n in range(2):
        with engine_of(path).begin() as connection:
            connection.execute(text("CREATE TABLE events (n INTEGER)"))
        with engine_of(path).begin() as connection:
            connection.execute(text("INSERT INTO events VALUES (:n)"), {"n": n})
            assert connection.execute(text("SELECT n FROM events")).scalars().all() == [n]
        path.unlink()


def test_no_more_files_stay_open_than_are_at_work(tmp_path):
    for number in range(2 * _MOST_OPEN):
        engine_of(tmp_path / str(number)).connect().close()
    assert len(_open) == _MOST_OPEN


def test_dagster_opens_the_files_of_a_history_once_for_all_events(tmp_path, connected):
    write_quickly()
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        for n in range(20):
            instance.report_runless_asset_event(dg.AssetMaterialization("scan", partition=f"{n}"))
            instance.add_dynamic_partitions("packs", [f"{n}"])
        seen = instance.get_materialized_partitions(dg.AssetKey("scan"))
        assert seen == {f"{n}" for n in range(20)}
    assert 0 < len(connected) < 10


def test_the_scripts_of_a_database_are_read_once_and_are_those_that_alembic_reads(tmp_path):
    write_quickly()
    made = []
    for name in ("one", "two"):
        script = tmp_path / name / "versions" / f"{name}.py"
        script.parent.mkdir(parents=True)
        script.write_text(f"revision = {name!r}\ndown_revision = None\n")
        settings = Config()
        settings.set_main_option("script_location", str(tmp_path / name))
        shared, plain = ScriptDirectory.from_config(settings), ScriptDirectory(tmp_path / name)
        assert shared.as_revision_number("head") == plain.as_revision_number("head") == name
        assert ScriptDirectory.from_config(settings) is shared
        made.append(shared)
    assert made[0] is not made[1]
