"""Gates: an asset is not made while a blocking check of an upstream asset is failed.

Dagster enforces blocking checks only within one run. Here each stage is usually a run of its own
(command line, sensor, most backfills), so every asset body checks the last results itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from dagster import (
    AssetCheckKey,
    AssetCheckSeverity,
    AssetExecutionContext,
    AssetKey,
    OpExecutionContext,
)
from dagster import DagsterInstance as Instance
from dagster._core.storage.asset_check_execution_record import (
    AssetCheckExecutionRecordStatus as Status,
)

from decon_core.config.load import Config
from decon_core.errors import IncompleteError, Problem
from decon_core.quality.requirements import required_shortfalls
from decon_core.storage.store import Store

BLOCKING = {
    "records": ("records_are_valid",),
    "index": ("index_is_complete", "enough_is_indexable"),
    "scan": ("canaries_are_found", "ledger_is_complete"),
    "mixture": ("mixture_adds_up",),
    "blend": ("blend_adds_up",),
}
_UP_TO_SCAN = ("records", "index", "scan")
BEFORE = {
    "idf_snapshot": ("records",),
    "index": ("records",),
    "scan": ("records", "index"),
    "common_ngrams": _UP_TO_SCAN,
    "mixture": _UP_TO_SCAN,
    "clean_benchmark": _UP_TO_SCAN,
    "blend": (*_UP_TO_SCAN, "mixture"),
    "report": (*_UP_TO_SCAN, "mixture", "blend"),
    "report_page": (*_UP_TO_SCAN, "mixture", "blend"),
    "scorecard": ("records",),
}
_REMEDY = "fix the cause, then execute the check in the UI or call `decon-assets run`"


def require_unblocked(
    context: AssetExecutionContext | OpExecutionContext,
    config: Config,
    store: Store,
    *,
    asset: str = "",
) -> None:
    """Raise IncompleteError if a blocking check of an upstream asset is failed.

    `asset` is needed only in an op; in an asset body the name is taken from the context.
    """
    if not asset:
        (key,) = context.assets_def.keys
        asset = key.to_user_string()
    before = BEFORE[asset]
    problems = [
        Problem(f"{check.asset_key.to_user_string()}: {check.name}", "failed", "passed", _REMEDY)
        for check in failed_checks(context.instance, before)
    ]
    if "index" in before:  # the required shares may have changed since that check ran
        problems += required_shortfalls(config, store)
    if problems:
        raise IncompleteError(problems)


def failed_checks(instance: Instance, assets: Iterable[str]) -> list[AssetCheckKey]:
    """Return the blocking checks of these assets whose last execution failed."""
    checks = [
        AssetCheckKey(AssetKey(asset), name) for asset in assets for name in BLOCKING.get(asset, ())
    ]
    return [check for check in checks if _has_failed(instance, check)]


def _has_failed(instance: Instance, check: AssetCheckKey) -> bool:
    executions = instance.event_log_storage.get_asset_check_execution_history(
        check, limit=1, status={Status.SUCCEEDED, Status.FAILED}
    )
    evaluation = executions[0].evaluation if executions else None
    return bool(
        evaluation and not evaluation.passed and evaluation.severity is AssetCheckSeverity.ERROR
    )
