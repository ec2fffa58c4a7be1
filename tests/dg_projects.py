"""A Dagster project of somebody else with the component of this one, and `dg dev` in a project."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from decon_assets.instance.home import ensure_home
from tests.waiting import wait_until

PACKAGE = "somebody"

_PROJECT = f"""
[project]
name = "{PACKAGE}"
version = "1"

[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "{PACKAGE}"
code_location_name = "{PACKAGE}"
"""

_DEFINITIONS = """
from pathlib import Path
from dagster import definitions, load_from_defs_folder

@definitions
def defs():
    return load_from_defs_folder(path_within_project=Path(__file__).parent)
"""

# The lines that docs/pipeline.md shows.
_PAGE = (Path(__file__).parents[1] / "docs/pipeline.md").read_text()
_COMPONENT = _PAGE.split("```yaml\ntype: decon")[1].split("```")[0]
_CONFIG = '"{{ context.project_root }}/web/decon.toml"'


def write_project(folder: Path, configs: Mapping[str, Path | str]) -> Path:
    """Write a project with a component for each configuration; return the folder of components."""
    defs = folder / PACKAGE / "defs"
    defs.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(_PROJECT)
    (defs.parent / "__init__.py").touch()
    (defs / "__init__.py").touch()
    (defs.parent / "definitions.py").write_text(_DEFINITIONS)
    for name, config in configs.items():
        (defs / name).mkdir()
        assert _CONFIG in _COMPONENT
        lines = f'config: "{config}"'.join(
            part.replace("web", name) for part in _COMPONENT.split(f"config: {_CONFIG}")
        )
        (defs / name / "defs.yaml").write_text(f"type: decon{lines}")
    return defs


Ask = Callable[..., Any]


@contextmanager
def dg_dev(
    dg: Path, folder: Path, home: Path, port: int, environment: Mapping[str, str]
) -> Iterator[Ask]:
    """Start `dg dev` in a project, and yield what asks its GraphQL; stop it after the block."""
    command = [str(dg), "dev", "--port", str(port), "--live-data-poll-rate", "60000"]
    log = ensure_home(home) / "dg_dev.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**environment, "DAGSTER_HOME": str(home)},
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        is_up = wait_until(lambda: _ask(port, "{version}"), process, pause=0.5)
        assert is_up, log.read_text()
        yield lambda query, **variables: _ask(port, query, **variables)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _ask(port: int, query: str, **variables: object) -> Any:
    """What the webserver answers; None as long as it does not."""
    body = json.dumps({"query": query, "variables": variables}).encode()
    headers = {"Content-Type": "application/json"}
    request = Request(f"http://127.0.0.1:{port}/graphql", body, headers)
    with suppress(OSError), urlopen(request) as answer:
        return json.load(answer)["data"]
    return None
