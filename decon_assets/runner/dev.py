"""`dagster dev`, with the webserver of this package in place of Dagster's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dagster._cli import dev

from decon_assets.runner.webserver import MODULE

_start = dev.open_ipc_subprocess  # type: ignore[attr-defined] # imported there; no option for it


def _start_ours(command: Sequence[str], **settings: Any) -> Any:
    """Start one of Dagster's servers; ours if it is the webserver."""
    return _start([MODULE if part == "dagster_webserver" else part for part in command], **settings)


if __name__ == "__main__":
    dev.open_ipc_subprocess = _start_ours  # type: ignore[assignment, attr-defined]
    dev.dev_command()
