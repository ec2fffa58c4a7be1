"""The whole graph without a daemon: register what is there, materialize what is missing.

Runs in the calling process on whatever Dagster instance it is given, so that the UI shows the same
history afterwards as if the buttons had been pressed there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
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
from decon_assets.partitions import (
    BENCHMARK,
    BLEND,
    MIXTURE,
    PACK,
    align,
    benchmarks,
    blends,
    mixtures,
    neighbours,
    packs,
    rectangles,
)
from decon_core.common import has_common
from decon_core.config import Config, load_config
from decon_core.corpus import Pack
from decon_core.errors import DeconError, Problem, RecordError
from decon_core.idf import current_snapshot, require_frozen_from
from decon_core.index import has_part, index_fingerprint
from decon_core.mirror import at_work
from decon_core.mixtures.clean_evals import has_clean_benchmark
from decon_core.records import current_version
from decon_core.registry import (
    benchmarks_of,
    blender_of,
    builder_of,
    current_versions,
    grid_warning,
    register_packs,
    stale_benchmarks,
)
from decon_core.store import Store
from decon_core.tiles import missing_tiles, scan_fingerprint
from decon_core.tokens import load_tokenizer

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


def register(
    config_path: Path,
    instance: DagsterInstance,
    *,
    may_retire: bool = False,
    echo: Echo = print,
) -> Registration:
    """Tell Dagster which benchmarks and packs there are.

    A benchmark is tried first: once registered, a bad one would fail every run that covers it.
    """
    config = load_config(config_path)
    with at_work(config) as store:
        return _register(config, store, instance, may_retire=may_retire, echo=echo)


def _register(
    config: Config, store: Store, instance: DagsterInstance, *, may_retire: bool, echo: Echo
) -> Registration:
    load_tokenizer(config.policy.tokenizer_str)
    found = benchmarks_of(config)
    problems: list[Problem] = []
    for benchmark in found.values():
        try:
            benchmark.normalized(limit=_ROWS_TRIED)
        except DeconError as error:
            problems += error.problems
    if problems:
        raise RecordError(problems)
    store.sweep_drafts()
    plan = register_packs(config, store, may_retire=may_retire)
    for pack in plan.retired:
        echo(f"{pack.name}: shards are gone or changed; the pack and its mixture are removed")
    for old, new in plan.renamed:
        echo(f"{old}: renamed to {new}; its pack and what was found in it stay")
    if warning := grid_warning(config, plan.current):
        echo(f"warning: {warning}")
    align(instance, benchmarks, list(found))
    align(instance, packs, [pack.name for pack in plan.current])
    align(instance, mixtures, [mixture.name for mixture in config.mixtures])
    align(instance, blends, [blend.name for blend in config.blends])
    return Registration(config, store, tuple(found), tuple(plan.current))


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

    def run(self, *, refreeze: bool = False, may_retire: bool = False) -> Registration:
        """Everything that is missing or no longer today's, from records to report."""
        registered = register(
            self._config_path, self._instance, may_retire=may_retire, echo=self._echo
        )
        config, store = registered.config, registered.store
        self._stages("records", stale_benchmarks(config, store), BENCHMARK)
        if refreeze or not store.current_snapshot.is_file():
            self._stage("idf_snapshot", config={"refreeze": refreeze})
        current_snapshot(store, config.policy)
        require_frozen_from(store, config.snapshot)
        index, versions = index_fingerprint(store, config.policy), current_versions(config, store)
        lacking = [v.benchmark for v in versions if not has_part(store, v, index)]
        self._stages("index", lacking, BENCHMARK)
        refusals: list[str] = []
        is_scanned = True
        try:
            self.scan_missing(registered)
        except PipelineError as error:  # of some shards; what needs no other goes on
            refusals.append(str(error))
            is_scanned = False
        scan = scan_fingerprint(store, config.policy)
        if is_scanned and not has_common(store, registered.packs, versions, config.policy, scan):
            self._stage("common_ngrams")
        refusals += self._mix(registered)
        refusals += [*self._blend(registered), *self._clean(registered)]
        if is_scanned:
            self._stage("report")  # it says which rows could not be read
            self._stage("report_page")
        if refusals:
            raise PipelineError("\n".join(refusals))
        return registered

    def _mix(self, registered: Registration) -> list[str]:
        """Build the mixtures that are not today's; what was refused. One does not stop others."""
        builder = builder_of(registered.config, registered.store)
        lacking = {
            pack.name: frozenset(
                mixture.name for mixture in builder.mixtures if not builder.stands(mixture, pack)
            )
            for pack in registered.packs
        }
        return self._fill("mixture", MIXTURE, lacking)[1]

    def _blend(self, registered: Registration) -> list[str]:
        """Build the blends that are not today's; what was refused."""
        blender = blender_of(registered.config, registered.store)
        lacking = [blend.name for blend in blender.blends if not blender.stands(blend)]
        if not blender.blends:
            return []
        try:
            self._stages("blend", lacking, BLEND)
        except PipelineError as error:
            return [str(error)]
        return []

    def _clean(self, registered: Registration) -> list[str]:
        """Benchmarks without what leaked, where they are not today's; what was refused."""
        builder = builder_of(registered.config, registered.store)
        lacking = [
            version.benchmark
            for version in builder.versions
            if not has_clean_benchmark(builder, version)
        ]
        try:
            self._stages("clean_benchmark", lacking, BENCHMARK)
        except PipelineError as error:
            return [str(error)]
        return []

    def _stages(self, asset: str, keys: Sequence[str], dimension: str) -> None:
        """Materialize these partitions, neighbours in one run."""
        for run in neighbours(keys, self._instance.get_dynamic_partitions(dimension)):
            self._stage(asset, (run[0], run[-1]))
        if not keys:
            self._echo(f"{asset}: up to date")

    def scan_missing(self, registered: Registration) -> int:
        """Scan the cells that lack tiles, in as few runs as rectangles cover them."""
        store, config = registered.store, registered.config
        versions = [current_version(store, name) for name in registered.benchmarks]
        scan = scan_fingerprint(store, config.policy)
        lacking: dict[str, set[str]] = {}
        for pack, _, absent in missing_tiles(store, registered.packs, versions, scan):
            wanted = {version.benchmark for version in absent or versions}
            lacking.setdefault(pack.name, set()).update(wanted)
        by_pack = {pack: frozenset(names) for pack, names in lacking.items()}
        n_areas, refusals = self._fill("scan", BENCHMARK, by_pack)
        if refusals:
            raise PipelineError("\n".join(refusals))
        return n_areas

    def _fill(
        self, asset: str, other: str, lacking: Mapping[str, frozenset[str]]
    ) -> tuple[int, list[str]]:
        """Materialize what packs lack, in as few runs as rectangles cover it.

        How many runs, and what was refused: one does not stop the others.
        """
        areas = rectangles(
            lacking,
            pack_order=self._instance.get_dynamic_partitions(PACK),
            other_order=self._instance.get_dynamic_partitions(other),
        )
        refusals = []
        for area in areas:
            try:
                self._stage(asset, area.corners(other))
            except PipelineError as error:
                refusals.append(str(error))
        if not areas:
            self._echo(f"{asset}: up to date")
        return len(areas), refusals

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
            if _was_interrupted(result):
                raise KeyboardInterrupt
            raise PipelineError(_why(asset, result))
        return result


def _was_interrupted(result: ExecuteInProcessResult) -> bool:
    """Dagster turns a Ctrl-C into a failed step."""
    errors = [event.step_failure_data.error for event in result.get_step_failure_events()]
    return any(error and "Interrupt" in (error.cls_name or "") for error in errors)


def _why(asset: str, result: ExecuteInProcessResult) -> str:
    """What failed, without the stack: that is kept in the run's log, which the UI shows."""
    checks = [
        f"{evaluation.check_name}: {evaluation.metadata['problems'].value}"
        for evaluation in result.get_asset_check_evaluations()
        if not evaluation.passed and evaluation.blocking
    ]
    if checks:
        return f"{asset}: {'; '.join(checks)}"
    for event in result.get_step_failure_events():
        data = event.step_failure_data
        if data.user_failure_data and data.user_failure_data.description:
            return f"{asset}: {data.user_failure_data.description}"
        error = data.error
        while error and error.cause:
            error = error.cause
        if error:
            return f"{asset}: {error.message.strip()}"
    return f"{asset} failed"


def _echoing(echo: Echo) -> LoggerDefinition:
    """A logger that passes on what assets say, and leaves out what Dagster says about itself."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            meta = getattr(record, "dagster_meta", {})
            if not meta.get("dagster_event"):  # failures are told once, in the end
                echo(f"  {meta.get('orig_message') or record.getMessage()}")

    @logger(config_schema={})
    def plain(_: InitLoggerContext) -> logging.Logger:
        found = logging.Logger("decon_assets", level=logging.INFO)  # noqa: LOG001 - of this run only
        found.addHandler(Handler())
        return found

    return plain
