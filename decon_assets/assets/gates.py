"""What a check that failed holds back.

Dagster holds back what comes after it in the same run. But each stage is a run of its own, from the
command line and the sensor and mostly in a backfill, so stages look for themselves: nothing is made
while a blocking check before it failed when it was last tried.
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
_FOUND = ("records", "index", "scan")
BEFORE = {
    "idf_snapshot": ("records",),
    "index": ("records",),
    "scan": ("records", "index"),
    "common_ngrams": _FOUND,
    "mixture": _FOUND,
    "clean_benchmark": _FOUND,
    "blend": (*_FOUND, "mixture"),
    "report": (*_FOUND, "mixture", "blend"),
    "report_page": (*_FOUND, "mixture", "blend"),
    "scorecard": ("records",),
}
_REMEDY = (
    "mend it, then execute the check in the UI, or call `decon-assets run`, which tries it again"
)


def require_unblocked(
    context: AssetExecutionContext | OpExecutionContext,
    config: Config,
    store: Store,
    *,
    asset: str = "",
) -> None:
    """Raise while something that an asset is made from failed a check that blocks.

    `asset`: for an op that makes one; of an asset its own name is known.
    """
    if not asset:
        (key,) = context.assets_def.keys
        asset = key.to_user_string()
    before = BEFORE[asset]
    problems = [
        Problem(f"{check.asset_key.to_user_string()}: {check.name}", "failed", "passed", _REMEDY)
        for check in failed_checks(context.instance, before)
    ]
    if "index" in before:  # what is demanded may have changed since that was tried
        problems += required_shortfalls(config, store)
    if problems:
        raise IncompleteError(problems)


def failed_checks(instance: Instance, assets: Iterable[str]) -> list[AssetCheckKey]:
    """The blocking checks of some assets that failed when they were last tried."""
    checks = [
        AssetCheckKey(AssetKey(asset), name) for asset in assets for name in BLOCKING.get(asset, ())
    ]
    return [check for check in checks if _has_failed(instance, check)]


def _has_failed(instance: Instance, check: AssetCheckKey) -> bool:
    tried = instance.event_log_storage.get_asset_check_execution_history(
        check, limit=1, status={Status.SUCCEEDED, Status.FAILED}
    )
    evaluation = tried[0].evaluation if tried else None
    return bool(
        evaluation and not evaluation.passed and evaluation.severity is AssetCheckSeverity.ERROR
    )
