"""[execution] in decon.toml: where jobs run: on this machine, on Slurm, or on Ray."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field
from pydantic.dataclasses import dataclass

from decon_core.config.load import ConfigReader
from decon_core.config.validation import TABLE, Bytes, Name, Positive, SettingsReader, expects
from decon_core.errors import ConfigError, Problem
from decon_core.execution.choice import EngineTable
from decon_core.execution.engine import ENGINE_LOG, Engine
from decon_core.execution.local import LocalEngine
from decon_core.storage.paths import RemotePath
from decon_core.storage.store import Store

Lines = Annotated[tuple[Name, ...], expects("a list of lines in quotes")]
_Amount = Annotated[float, Field(ge=0)]


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Slurm:
    """[execution.slurm]: what the tasks of an array job request."""

    partition: Name | None = None
    """Partition; default: $SBATCH_PARTITION, otherwise the default of the cluster."""
    account: Name | None = None
    """Account to charge; default: $SBATCH_ACCOUNT, otherwise your default account."""
    qos: Name | None = None
    """Quality of service."""
    time: Name | None = None
    """Time limit of a task in sbatch's format: "90" (minutes) or "4:00:00". A task that reaches it
    keeps what it has finished; the rest is submitted again."""
    memory: Name | None = None
    """Memory of a task in sbatch's format: "16G". A process needs the index plus about 430 MB."""
    cpus_per_task: Positive = 1
    """Number of processes per task, each with one CPU."""
    array_size: Positive = 100
    """Maximum number of tasks that run at once."""
    jobs_per_task: Positive | None = None
    """Shards per task; default: the number that gives `array_size` tasks."""
    setup: Lines = ()
    """Shell commands that a task runs first, such as "module load gcc"."""
    python: Name | None = None
    """Python interpreter on the nodes; default: the one that submits the job."""
    options: Lines = ()
    """Additional sbatch options, such as "--constraint=rome"."""
    logs: Annotated[Name | None, expects("a folder that all nodes see")] = None
    """Folder for the logs of tasks that fail; default: `logs` in the store."""


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Ray:
    """[execution.ray]: the cluster, and what each task requests."""

    address: Name | None = None
    """Address of the cluster; default: $RAY_ADDRESS, else a cluster on this machine."""
    cpus: _Amount = 1
    """CPUs per task. A task scans one shard at a time."""
    memory: Bytes | None = None
    """Memory that a task reserves: a number of bytes, or "4 GB"."""
    resources: dict[str, _Amount] = Field(default_factory=dict)
    """Custom resources of a task, by name."""
    runtime_env: dict[str, Any] = Field(default_factory=dict)
    """Ray's runtime environment: pip, env_vars, working_dir and others."""


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Execution(EngineTable):
    """[execution]: where shards are scanned and products are made."""

    engine: Literal["local", "slurm", "ray"] = "local"
    """Where jobs run; "local": in processes on this machine. --engine and $DECON_ENGINE override
    this (docs/ten-terabytes.md)."""
    shared_store: bool = True
    """Whether nodes can access the folder of the store. If not, they read and write its URL, which
    requires Ray and a store at a URL (docs/ten-terabytes.md)."""
    slurm: Slurm = Field(default_factory=Slurm)
    """Settings of Slurm."""
    ray: Ray = Field(default_factory=Ray)
    """Settings of Ray."""

    def checked(self, reader: SettingsReader) -> Self:
        """Return the settings with paths below the folder of their file.

        Reports a store that nodes without its folder cannot reach.
        """
        if not self.shared_store:
            problem = _NEEDS_FOLDER
            if not isinstance(reader, ConfigReader):  # a command whose store is in its output
                expected = "true, because the nodes must see the output folder"
                reader.wrong(problem.where, "false", expected)
            elif self.engine == "slurm":
                reader.wrong(problem.where, problem.found, problem.expected, problem.remedy)
            elif not reader.has_store_url:
                found, expected = "false, with a local store", "true, or a store at a URL"
                remedy = 'set `path = "s3://..."` in [store]'
                reader.wrong(problem.where, found, expected, remedy)
        if self.slurm.logs is None:
            return self
        return replace(self, slurm=replace(self.slurm, logs=str(reader.folder / self.slurm.logs)))

    def open(self, name: str, store: Store, store_url: RemotePath | None) -> Engine:
        """Return an engine. Without `shared_store`, nodes get files from `store_url`.

        Work that does not pass it then runs on this machine.
        """
        if name == "ray":
            from decon_core.features.clusters.ray_cluster import RayEngine

            if not self.shared_store and store_url is None:
                reason = "nodes do not see the folder of the store"
                ENGINE_LOG.info(f"this step runs on this machine: {reason}")
                return LocalEngine()
            return RayEngine(self.ray, None if self.shared_store else store_url)
        if not self.shared_store:
            raise ConfigError(_NEEDS_FOLDER)
        from decon_core.features.clusters.slurm import SlurmEngine

        logs = Path(self.slurm.logs) if self.slurm.logs else store.root / "logs"
        return SlurmEngine(self.slurm, store.drafts.resolve(), logs.resolve())

    def require(self, name: str) -> None:
        """Raise an error if Slurm or Ray cannot be used from this machine."""
        if name == "slurm":
            from decon_core.features.clusters.slurm_queue import require_slurm

            require_slurm()
        else:
            from decon_core.features.clusters.ray_cluster import require_ray

            require_ray(self.ray)


_NEEDS_FOLDER = Problem(
    "execution.shared_store",
    'false with the engine "slurm"',
    'true, or the engine "ray"',
    "Slurm tasks read their jobs from files in a folder that all nodes see",
)
