"""The Dagster instance of a project: a folder with its history and its settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dagster import DagsterInstance

HOME_VARIABLE = "DAGSTER_HOME"
DEFAULT_HOME = Path(".dagster")

# Loopback only and silent: the webserver has no login, and nobody asked for telemetry. The pool
# keeps two scans from competing for the same cores.
_SETTINGS = """\
telemetry:
  enabled: false
nux:
  enabled: false
concurrency:
  pools:
    default_limit: 1
"""


def ensure_home(home: Path | None = None) -> Path:
    """The instance's folder: as given, else $DAGSTER_HOME, else ./.dagster. Made when absent."""
    found = home or Path(os.environ.get(HOME_VARIABLE) or DEFAULT_HOME)
    found = found.resolve()
    found.mkdir(parents=True, exist_ok=True)
    settings = found / "dagster.yaml"
    if not settings.exists():
        settings.write_text(_SETTINGS)
    return found


@contextmanager
def open_instance(home: Path | None = None) -> Iterator[DagsterInstance]:
    """The persistent instance, for runs in this process."""
    os.environ[HOME_VARIABLE] = str(ensure_home(home))
    with DagsterInstance.get() as instance:
        yield instance
