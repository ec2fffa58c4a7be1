"""Opens the engine that the configuration or the environment names."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from decon_core.config.execution import (
    ENGINE_VARIABLE,
    ENGINES,
    NEEDS_FOLDER,
    EngineName,
    Execution,
)
from decon_core.config.validation import did_you_mean
from decon_core.errors import ConfigError, Problem
from decon_core.execution.engine import Engine
from decon_core.execution.local import LocalEngine
from decon_core.storage.paths import RemotePath
from decon_core.storage.store import Store

_log = logging.getLogger(__name__)


def open_engine(
    settings: Execution, store: Store, *, store_url: RemotePath | None = None
) -> Engine:
    """Return the engine named by $DECON_ENGINE, or else by the settings; it starts nothing yet.

    On a cluster, all nodes must see the folder of the store. Without `shared_store`, they get files
    from `store_url`; work that does not pass it runs on this machine.
    """
    name = engine_name(settings)
    if name == "local":
        return LocalEngine()
    if not settings.shared_store:
        return _engine_without_folder(settings, name, store_url)
    if name == "ray":
        from decon_core.execution.ray_cluster import RayEngine

        return RayEngine(settings.ray)
    from decon_core.execution.slurm import SlurmEngine

    logs = Path(settings.slurm.logs) if settings.slurm.logs else store.root / "logs"
    return SlurmEngine(settings.slurm, store.drafts.resolve(), logs.resolve())


def require_engine(settings: Execution) -> None:
    """Raise an error if the engine has an unknown name, or cannot be used from this machine."""
    name = engine_name(settings)
    if name == "slurm":
        from decon_core.execution.slurm_queue import require_slurm

        require_slurm()
    elif name == "ray":
        from decon_core.execution.ray_cluster import require_ray

        require_ray(settings.ray)


def _engine_without_folder(
    settings: Execution, name: EngineName, store_url: RemotePath | None
) -> Engine:
    if name != "ray":
        raise ConfigError(NEEDS_FOLDER)
    if store_url is None:
        _log.info("this step runs on this machine: the nodes do not see the folder of the store")
        return LocalEngine()
    from decon_core.execution.ray_cluster import RayEngine

    return RayEngine(settings.ray, store_url)


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
