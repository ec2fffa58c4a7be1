"""[execution] in decon.toml: where jobs run: on this machine, on Slurm, or on Ray."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field
from pydantic.dataclasses import dataclass

from decon_core.config.validation import (
    TABLE,
    Bytes,
    Name,
    Positive,
    SettingsReader,
    did_you_mean,
    expects,
)
from decon_core.errors import ConfigError, Problem

ENGINE_VARIABLE = "DECON_ENGINE"  # overrides `engine`

EngineName = Literal["local", "slurm", "ray"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)

Lines = Annotated[tuple[Name, ...], expects("a list of lines in quotes")]
_Amount = Annotated[float, Field(ge=0)]


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Slurm:
    """[execution.slurm]: what the tasks of an array job ask for."""

    partition: Name | None = None
    """Partition; default: that of the cluster, or $SBATCH_PARTITION."""
    account: Name | None = None
    """Account to charge; default: yours, or $SBATCH_ACCOUNT."""
    qos: Name | None = None
    """Quality of service."""
    time: Name | None = None
    """Time limit of a task as sbatch takes it: "90" minutes, "4:00:00". A task that runs into it
    keeps what it finished; the rest is submitted again."""
    memory: Name | None = None
    """Memory of a task as sbatch takes it: "16G". A process takes the index and some 430 MB."""
    cpus_per_task: Positive = 1
    """Processes of a task, each with one CPU."""
    array_size: Positive = 100
    """Tasks that may run at once."""
    jobs_per_task: Positive | None = None
    """Shards of a task; default: as many as make `array_size` tasks."""
    setup: Lines = ()
    """Lines of shell that a task runs first, such as "module load gcc"."""
    python: Name | None = None
    """Python on the nodes; default: the one that submits."""
    options: Lines = ()
    """More options of sbatch, such as "--constraint=rome"."""
    logs: Annotated[Name | None, expects("a folder that all nodes see")] = None
    """Folder for the logs of tasks that fail; default: `logs` in the store."""


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Ray:
    """[execution.ray]: the cluster, and what each task asks for."""

    address: Name | None = None
    """Address of the cluster; default: $RAY_ADDRESS, else a cluster on this machine."""
    cpus: _Amount = 1
    """CPUs of a task, which scans one shard at a time."""
    memory: Bytes | None = None
    """Memory that a task reserves: a number, or "4 GB"."""
    resources: dict[str, _Amount] = Field(default_factory=dict)
    """Custom resources of a task, by name."""
    runtime_env: dict[str, Any] = Field(default_factory=dict)
    """Ray's runtime environment: pip, env_vars, working_dir and others."""


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Execution:
    """[execution]: where shards are scanned and products are made."""

    engine: EngineName = "local"
    """Local: processes of this machine. --engine and $DECON_ENGINE override it
    (docs/ten-terabytes.md)."""
    shared_store: bool = True
    """Whether nodes see the folder of the store. If not, they read and write its URL: only with Ray
    and a store at a URL (docs/ten-terabytes.md)."""
    slurm: Slurm = Field(default_factory=Slurm)
    """Settings of Slurm."""
    ray: Ray = Field(default_factory=Ray)
    """Settings of Ray."""

    def beside(self, folder: Path) -> Execution:
        """Return the settings with paths below the folder of their file."""
        if self.slurm.logs is None:
            return self
        return replace(self, slurm=replace(self.slurm, logs=str(folder / self.slurm.logs)))

    def problem(self, *, has_url: bool) -> Problem | None:
        """Return what is wrong with the place of the store; `has_url`: it is kept at a URL."""
        if self.shared_store:
            return None
        if self.engine == "slurm":
            return NEEDS_FOLDER
        if has_url:
            return None
        found, expected = "false, and a store that is a folder", "true, or a store at a URL"
        remedy = 'set `path = "s3://..."` in [store]'
        return Problem("execution.shared_store", found, expected, remedy)


NEEDS_FOLDER = Problem(
    "execution.shared_store",
    'false with the engine "slurm"',
    'true, or the engine "ray"',
    "tasks of Slurm get their jobs by files in a folder that all nodes see",
)


def load_execution(path: Path) -> Execution:
    """Read the table [execution] of a TOML file. Raises one `ConfigError` with all problems."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        found, expected = error.strerror or str(error), "a TOML file with the table [execution]"
        raise ConfigError(Problem(str(path), found, expected)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(Problem(str(path), str(error), "valid TOML in UTF-8")) from error
    if "execution" not in values:
        found = f"only {', '.join(sorted(values))}" if values else "nothing in it"
        guesses = (did_you_mean(name, ("execution",)) for name in values)
        remedy = next((guess for guess in guesses if guess), "")
        raise ConfigError(Problem(str(path), found, "the table [execution]", remedy))
    reader = SettingsReader(str(path))
    settings = reader.table(Execution, "execution", values["execution"])
    if settings is None:
        raise ConfigError(reader.problems)
    if not settings.shared_store:  # its store is a folder of the output
        expected = "true: the nodes of this command must see the output folder"
        raise ConfigError(Problem(f"{path}: execution.shared_store", "false", expected))
    return settings.beside(path.resolve().parent)
