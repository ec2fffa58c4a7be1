"""Opens the engine that the configuration or the environment names."""

from __future__ import annotations

import os
from pathlib import Path

from decon_core.config.execution import ENGINE_VARIABLE, ENGINES, EngineName, Execution
from decon_core.config.validation import did_you_mean
from decon_core.errors import ConfigError, Problem
from decon_core.execution.engine import Engine
from decon_core.execution.local import LocalEngine
from decon_core.storage.store import Store


def open_engine(settings: Execution, store: Store) -> Engine:
    """Return the engine named by $DECON_ENGINE, or else by the settings; it starts nothing yet.

    On a cluster, all nodes must see the folder of the store.
    """
    match engine_name(settings):
        case "slurm":
            from decon_core.execution.slurm import SlurmEngine

            logs = Path(settings.slurm.logs) if settings.slurm.logs else store.root / "logs"
            return SlurmEngine(settings.slurm, store.drafts.resolve(), logs.resolve())
        case "ray":
            from decon_core.execution.ray_cluster import RayEngine

            return RayEngine(settings.ray)
        case "local":
            return LocalEngine()


def engine_name(settings: Execution) -> EngineName:
    """Return the name of the engine to use."""
    value = os.environ.get(ENGINE_VARIABLE)
    if not value:
        return settings.engine
    for name in ENGINES:
        if name == value:
            return name
    expected, remedy = f"one of {', '.join(ENGINES)}", did_you_mean(value, ENGINES)
    raise ConfigError(Problem(f"${ENGINE_VARIABLE}", repr(value), expected, remedy))
