"""A stage: an asset that `decon-assets run` keeps up to date, declared in one place.

In addition to what Dagster needs, `stage` takes a function that returns what is missing. The order
of the stages, their gates, the plan, the status and the sensor follow from the asset graph
(`decon_assets/graph.py`).

The code location is loaded again for every run, so an asset's module imports only what describes
the asset. Functions of the core are named as `module:name`, or imported in the body.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import cleandoc
from pkgutil import resolve_name
from types import FunctionType
from typing import TYPE_CHECKING, TypeAlias, cast

import dagster as dg

from decon_assets.assets.gates import failed_checks
from decon_assets.assets.metadata import OWNERS, Column, Metadata, code_reference, columns
from decon_assets.failures import dagster_failures
from decon_assets.partitions import MOST_PARTITIONS, PACK
from decon_assets.resources import Decon
from decon_core.errors import IncompleteError, Problem
from decon_core.execution.engine import ENGINE_LOG
from decon_core.feature import feature_entries

if TYPE_CHECKING:
    from decon_core.config.load import Config
    from decon_core.planner import Plan
    from decon_core.schemas import Column as DeclaredColumn
    from decon_core.storage.store import Store

# Whether a whole asset is missing; or the keys of its missing partitions; or, for a grid, those of
# each pack.
Missing = bool | Collection[str] | Mapping[str, Collection[str]]
Partitions = dg.DynamicPartitionsDefinition | dg.MultiPartitionsDefinition
Gates = Mapping[str, Sequence[dg.AssetCheckKey]]  # the blocking checks upstream of each asset
KEY_PREFIX_TAG = "decon/key_prefix"  # tag with a component's prefix, on runs of jobs without assets
Body: TypeAlias = "Callable[[dg.AssetExecutionContext, Config, Store], Metadata | None]"


@dataclass(frozen=True)
class Stage:
    """What a plan needs to know of an asset."""

    name: str
    missing_function: str
    dimensions: tuple[str, ...]  # dimensions of its partitions; in a grid, the pack comes first
    is_required: bool  # whether later stages wait until nothing of it is missing
    priority: int  # position in the queue: assets that others depend on, and quick ones, come first
    remarks_function: str
    unmet_function: str
    table: str  # the table of decon.toml that asks for it; empty: it is always made

    def missing(self, plan: "Plan") -> Missing:
        """Return what of it is missing or outdated."""
        missing: Missing = resolve_name(self.missing_function)(plan)
        return missing

    def remarks(self, config: "Config", store: "Store") -> Sequence[Problem]:
        """Return remarks on a stage that is kept as it is. May raise."""
        return _problems(self.remarks_function, config, store)

    def unmet(self, config: "Config", store: "Store") -> Sequence[Problem]:
        """Return requirements in the settings that are not met."""
        return _problems(self.unmet_function, config, store)

    def not_configured(self, config: "Config") -> str | None:
        """Return the table that decon.toml lacks, if the stage needs a table."""
        is_made = not self.table or config.has_table(self.table.strip("[]"))
        return None if is_made else self.table


def _problems(function: str, config: "Config", store: "Store") -> Sequence[Problem]:
    problems: Sequence[Problem] = resolve_name(function)(config, store) if function else ()
    return problems


STAGES: dict[str, Stage] = {}  # keyed by the name of the asset


def stage(
    *,
    group: str,
    kind: str,
    missing: str = "",
    deps: Sequence[dg.AssetDep | dg.AssetsDefinition | dg.AssetSpec | str] = (),
    partitions_def: Partitions | None = None,
    schema: "Sequence[DeclaredColumn]" = (),
    origins: Mapping[str, Column] | None = None,
    code_version: str = "1",
    pool: str | None = None,
    run_config: type[dg.Config] | None = None,
    is_required: bool = False,
    priority: int = 0,
    remarks: str = "",
    unmet: str = "",
    table: str = "",
) -> Callable[[Body], dg.AssetsDefinition]:
    """Declare an asset of the pipeline.

    Its function is called with the run's context, the configuration and the open store, when no
    upstream check blocks it; what it returns is the metadata of an unpartitioned asset. The product
    of a feature is made if decon.toml has its table, and the feature says what of it is missing.
    """
    dimensions: tuple[str, ...] = ()
    backfill_policy = None
    if isinstance(partitions_def, dg.MultiPartitionsDefinition):
        dimensions = PACK, *sorted({*partitions_def.partition_dimension_names} - {PACK})
        backfill_policy = dg.BackfillPolicy.multi_run(MOST_PARTITIONS)
    elif partitions_def:  # without a policy, each partition of a backfill would be a separate run
        dimensions = (partitions_def.name or "",)
        backfill_policy = dg.BackfillPolicy.single_run()

    def declare(body: Body) -> dg.AssetsDefinition:
        name = body.__name__
        STAGES[name] = Stage(
            name,
            missing or feature_entries("products")[name],
            dimensions,
            is_required,
            priority,
            remarks,
            unmet,
            table or ("" if missing else f"[{name}]"),
        )

        def execute(
            context: dg.AssetExecutionContext, decon: Decon, gates: dg.ResourceParam[Gates]
        ) -> None:
            with dagster_failures(), decon.writable_store() as (config, store):
                require_unblocked(context.instance, gates[name], config, store)
                with engine_log(context):
                    metadata = body(context, config, store)
                if metadata:
                    context.add_asset_metadata(metadata)

        return dg.asset(
            name=name,
            description=cleandoc(body.__doc__ or ""),
            deps=[dep if isinstance(dep, dg.AssetDep) else dg.AssetDep(dep) for dep in deps],
            partitions_def=partitions_def,
            backfill_policy=backfill_policy,
            pool=pool,
            group_name=group,
            owners=OWNERS,
            kinds={kind},
            code_version=code_version,
            config_schema=run_config.to_fields_dict() if run_config else None,
            metadata={
                **code_reference(cast("FunctionType", body)),
                **(columns(schema, origins or {}) if schema else {}),
            },
        )(execute)

    return declare


class _RunLogHandler(logging.Handler):
    """Pass records on to the log of a run."""

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        super().__init__()
        self._context = context

    def emit(self, record: logging.LogRecord) -> None:
        level = min(record.levelno, logging.WARNING)  # Dagster logs the error that ends the run
        self._context.log.log(level, record.getMessage())


@contextmanager
def engine_log(context: dg.AssetExecutionContext) -> Iterator[None]:
    """Log in the run what engines log: submitted jobs, dead workers, lost nodes."""
    handler, level, propagates = _RunLogHandler(context), ENGINE_LOG.level, ENGINE_LOG.propagate
    ENGINE_LOG.addHandler(handler)
    ENGINE_LOG.setLevel(logging.DEBUG)
    ENGINE_LOG.propagate = False  # otherwise a warning is printed twice
    try:
        yield
    finally:
        ENGINE_LOG.removeHandler(handler)
        ENGINE_LOG.setLevel(level)
        ENGINE_LOG.propagate = propagates


def require_unblocked(
    instance: dg.DagsterInstance,
    gates: Sequence[dg.AssetCheckKey],
    config: "Config",
    store: "Store",
) -> None:
    """Raise IncompleteError if a blocking check of an upstream asset is failed, or a demand unmet.

    Dagster enforces blocking checks only within one run. Here each stage is usually a run of its
    own (command line, sensor, most backfills), so every asset looks at the last results itself.
    """
    problems = [
        Problem(check.asset_key.to_user_string(), f"the check {check.name} failed", remedy=_REMEDY)
        for check in failed_checks(instance, gates)
    ]
    for asset_name in dict.fromkeys(gate.asset_key.path[-1] for gate in gates):
        problems += STAGES[asset_name].unmet(config, store)
    IncompleteError.raise_for(problems)


_REMEDY = "Fix the cause, then run the check in the UI, or `decon-assets run`"
