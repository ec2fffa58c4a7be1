"""Events in SQLite: written without waiting for the disk, and all there for whoever looks."""

import sqlite3
import subprocess
import sys

from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from decon_assets.instance.sqlite_history import _MOST_OPEN, _open, write_quickly


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
