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
    for check in checks:
        last = last_evaluation(instance, check)
        if last and not last.passed and last.severity is dg.AssetCheckSeverity.ERROR:
            failed.append(check)
    return failed


def unfinished_checks(
    instance: dg.DagsterInstance, checks: Iterable[dg.AssetCheckKey]
) -> list[dg.AssetCheckKey]:
    """Return the checks whose last execution never completed: its run was stopped before."""
    storage = instance.event_log_storage
    last = {key: storage.get_asset_check_execution_history(key, 1) for key in checks}
    return [
        key
        for key, records in last.items()
        if records and not isinstance(records[0].evaluation, dg.AssetCheckEvaluation)
    ]


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
