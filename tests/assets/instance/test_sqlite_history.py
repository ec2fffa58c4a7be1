"""Events in SQLite: written without waiting for the disk, and all there for whoever looks."""

import sqlite3
import subprocess
import sys

from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import column, create_engine, select, table, text
from sqlalchemy.pool import NullPool

from decon_assets.instance.sqlite_history import (
    _MOST_OPEN,
    _MOST_STATEMENTS,
    _open,
    _Statements,
    _statements,
    write_quickly,
)


def test_a_file_stays_open_and_other_processes_read_what_was_written(tmp_path):
    write_quickly()
    write_quickly()  # once is enough
    path = tmp_path / "run.db"
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    with engine.begin() as connection:
        assert connection.execute(text("PRAGMA journal_mode = WAL")).scalar() == "wal"
        connection.execute(text("CREATE TABLE events (n INTEGER)"))
    for n in range(3):
        with engine.begin() as connection:
            assert connection.execute(text("PRAGMA synchronous")).scalar() == 1
            connection.execute(text("INSERT INTO events VALUES (:n)"), {"n": n})
    assert path.with_name("run.db-wal").stat().st_size  # nobody was the last to close it
    asking = "SELECT n FROM events"
    program = f"import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute({asking!r}))"
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "(0,) (1,) (2,)"


def test_no_more_files_stay_open_than_are_at_work(tmp_path):
    write_quickly()
    for number in range(2 * _MOST_OPEN):
        engine = create_engine(f"sqlite:///{tmp_path / str(number)}", poolclass=NullPool)
        with engine.begin() as connection:
            connection.execute(text("PRAGMA journal_mode = WAL"))
        engine.connect().close()
    assert len(_open) == _MOST_OPEN
    assert all(isinstance(held, sqlite3.Connection) for held in _open.values())


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


def test_engines_share_compiled_statements_and_each_answers_from_its_own_file(tmp_path):
    write_quickly()
    query = select(column("n")).select_from(table("events")).where(column("n") >= 1)
    n_compiled = []
    for n in (1, 2):
        engine = create_engine(f"sqlite:///{tmp_path / str(n)}", poolclass=NullPool)
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE events (n INTEGER)"))
            connection.execute(text("INSERT INTO events VALUES (:n)"), {"n": n})
            assert connection.execute(query).scalars().all() == [n]
        n_compiled.append(len(_statements))
    assert n_compiled[0] == n_compiled[1] > 0


def test_shared_statements_are_bounded():
    statements = _Statements()
    for n in range(2 * _MOST_STATEMENTS):
        statements[(n,)] = n
    assert len(statements) <= _MOST_STATEMENTS
    assert statements.get((2 * _MOST_STATEMENTS - 1,)) == 2 * _MOST_STATEMENTS - 1
