"""Gates: the blocking checks that an asset waits for, and the last results of checks.

Which gates an asset has follows from the asset graph.
"""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

_PAGE = 20


def failed_checks(
    instance: dg.DagsterInstance, checks: Iterable[dg.AssetCheckKey]
) -> list[dg.AssetCheckKey]:
    """Return the checks whose last completed execution failed."""
    failed = []
    for check, last in _last_executions(instance, checks).items():
        result = last or last_evaluation(instance, check)
        if result and not result.passed and result.severity is dg.AssetCheckSeverity.ERROR:
            failed.append(check)
    return failed


def unfinished_checks(
    instance: dg.DagsterInstance, checks: Iterable[dg.AssetCheckKey]
) -> list[dg.AssetCheckKey]:
    """Return the checks whose last execution never completed: its run was stopped before."""
    return [check for check, last in _last_executions(instance, checks).items() if last is None]


def _last_executions(
    instance: dg.DagsterInstance, checks: Iterable[dg.AssetCheckKey]
) -> dict[dg.AssetCheckKey, dg.AssetCheckEvaluation | None]:
    """Return the result of the last execution of each check; None if it never completed."""
    keys = [*checks]
    last = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    evaluations = {key: last[key].evaluation for key in keys if key in last}
    return {
        key: evaluation if isinstance(evaluation, dg.AssetCheckEvaluation) else None
        for key, evaluation in evaluations.items()
    }


def last_evaluation(
    instance: dg.DagsterInstance, check: dg.AssetCheckKey
) -> dg.AssetCheckEvaluation | None:
    """Return the last result of a check; executions that never completed have none."""
    storage, cursor = instance.event_log_storage, None
    while records := storage.get_asset_check_execution_history(check, _PAGE, cursor):
        for record in records:
            if isinstance(record.evaluation, dg.AssetCheckEvaluation):
                return record.evaluation
        cursor = records[-1].id
    return None
