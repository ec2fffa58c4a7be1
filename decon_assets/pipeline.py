"""The whole graph without a daemon: register what is there, materialize what is missing.

Runs in the calling process on whatever Dagster instance it is given, so that the UI shows the same
history afterwards as if the buttons had been pressed there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dagster import (
    AssetKey,
    DagsterInstance,
    ExecuteInProcessResult,
    InitLoggerContext,
    LoggerDefinition,
    logger,
)

from decon_assets.definitions import build_definitions
from decon_assets.instance import COMMAND_LINE_TAG
from decon_assets.partitions import align, benchmarks, packs, rectangles
from decon_core.config import Config, load_config
from decon_core.corpus import Pack
from decon_core.errors import DeconError, Problem, RecordError
from decon_core.records import current_version
from decon_core.registry import benchmarks_of, register_packs
from decon_core.scan import missing_tiles
from decon_core.store import Store

Echo = Callable[[str], None]

_RANGE_START = "dagster/asset_partition_range_start"
_RANGE_END = "dagster/asset_partition_range_end"

# Enough rows to see that a recipe fits its file; the rest is read when records are materialized.
_ROWS_TRIED = 50


@dataclass(frozen=True)
class Registration:
    """What the configuration names today, known to Dagster from now on."""

    config: Config
    store: Store
    benchmarks: tuple[str, ...]
    packs: tuple[Pack, ...]


def register(config_path: Path, instance: DagsterInstance) -> Registration:
    """Tell Dagster which benchmarks and packs there are.

    A benchmark is tried first: once registered, a bad one would fail every run that covers it.
    """
    config = load_config(config_path)
    store = Store(config.store)
    found = benchmarks_of(config)
    problems: list[Problem] = []
    for benchmark in found.values():
        try:
            benchmark.normalized(limit=_ROWS_TRIED)
        except DeconError as error:
            problems += error.problems
    if problems:
        raise RecordError(problems)
    current, _ = register_packs(config, store)
    align(instance, benchmarks, list(found))
    align(instance, packs, [pack.name for pack in current])
    return Registration(config, store, tuple(found), tuple(current))


class PipelineError(Exception):
    """A stage failed; what it said is in the message."""


class Pipeline:
    """Stages of one configuration, run in order on one instance."""

    def __init__(self, config_path: Path, instance: DagsterInstance, echo: Echo) -> None:
        self._config_path = config_path
        self._instance = instance
        self._echo = echo
        definitions = build_definitions(
            config_path=str(config_path.resolve()), loggers={"console": _echoing(echo)}
        )
        self._job = definitions.resolve_implicit_global_asset_job_def()

    def run(self, *, refreeze: bool = False) -> Registration:
        """Everything that is missing, from records to report."""
        registered = register(self._config_path, self._instance)
        order = self._instance.get_dynamic_partitions("benchmark")
        self._stage("records", (order[0], order[-1]))
        self._stage("idf_snapshot", config={"refreeze": refreeze})
        self._stage("index", (order[0], order[-1]))
        self.scan_missing(registered)
        pack_order = self._instance.get_dynamic_partitions("pack")
        self._stage("mixture", (pack_order[0], pack_order[-1]))
        self._stage("report")
        return registered

    def scan_missing(self, registered: Registration) -> int:
        """Scan the cells that lack tiles, in as few runs as rectangles cover them."""
        store, config = registered.store, registered.config
        versions = [current_version(store, name) for name in registered.benchmarks]
        lacking: dict[str, set[str]] = {}
        for pack, _, absent in missing_tiles(store, registered.packs, versions, config.policy):
            wanted = {version.benchmark for version in absent or versions}
            lacking.setdefault(pack.name, set()).update(wanted)
        areas = rectangles(
            {pack: frozenset(names) for pack, names in lacking.items()},
            pack_order=self._instance.get_dynamic_partitions("pack"),
            benchmark_order=self._instance.get_dynamic_partitions("benchmark"),
        )
        for area in areas:
            self._stage("scan", (area.first, area.last))
        if not areas:
            self._echo("scan: nothing is missing")
        return len(areas)

    def _stage(
        self,
        asset: str,
        key_range: tuple[str, str] | None = None,
        *,
        config: dict[str, object] | None = None,
    ) -> ExecuteInProcessResult:
        self._echo(f"{asset} …")
        tags = {COMMAND_LINE_TAG: "true"}
        if key_range:
            tags |= {_RANGE_START: key_range[0], _RANGE_END: key_range[1]}
        run_config: dict[str, object] = {"loggers": {"console": {"config": {}}}}
        if config:
            run_config["ops"] = {asset: {"config": config}}
        result = self._job.execute_in_process(
            instance=self._instance,
            asset_selection=[AssetKey(asset)],
            tags=tags,
            run_config=run_config,
            raise_on_error=False,
        )
        if not result.success:
            raise PipelineError(_why(asset, result))
        return result


def _why(asset: str, result: ExecuteInProcessResult) -> str:
    for event in result.get_step_failure_events():
        data = event.step_failure_data
        if data.user_failure_data and data.user_failure_data.description:
            return f"{asset}: {data.user_failure_data.description}"
        if data.error:
            return f"{asset}: {data.error.to_string()}"
    checks = [
        f"check {evaluation.check_name} of {evaluation.asset_key.to_user_string()} failed"
        for evaluation in result.get_asset_check_evaluations()
        if not evaluation.passed
    ]
    return "; ".join(checks) or f"{asset} failed"


def _echoing(echo: Echo) -> LoggerDefinition:
    """A logger that passes on what assets say, and leaves out what Dagster says about itself."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            echo(f"  {record.getMessage().rpartition(' - ')[2]}")

    @logger(config_schema={})
    def plain(_: InitLoggerContext) -> logging.Logger:
        found = logging.Logger("decon_assets", level=logging.INFO)  # noqa: LOG001 - of this run only
        found.addHandler(Handler())
        return found

    return plain
