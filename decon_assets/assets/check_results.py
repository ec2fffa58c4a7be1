"""Check results made from problems, and results reported outside of a check's own run."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import dagster as dg

from decon_assets.assets.metadata import preview
from decon_core.errors import DeconError, Problem, sentence

if TYPE_CHECKING:
    from decon_core.config.load import Config
    from decon_core.storage.store import Store
    from decon_core.storage.verification import Inspection

_PROBLEM_WIDTH = 400  # wide enough for whole paths and remedies


def result_of(
    problems: Sequence[Problem],
    *,
    is_warning: bool = False,
    **metadata: dg.MetadataValue | int | str,
) -> dg.AssetCheckResult:
    """Return a check result that passes if there are no problems and lists them otherwise."""
    rows = [{**asdict(problem), "remedy": sentence(problem.remedy)} for problem in problems]
    return dg.AssetCheckResult(
        passed=not problems,
        severity=dg.AssetCheckSeverity.WARN if is_warning else dg.AssetCheckSeverity.ERROR,
        metadata={
            "problems": preview(rows, width=_PROBLEM_WIDTH),
            "n_problems": len(problems),
            **metadata,
        },
    )


def result_of_inspection(
    inspection: "Inspection", *, is_warning: bool = False
) -> dg.AssetCheckResult:
    """Return the result of an incremental check, with how much of it was skipped as unchanged."""
    counts = {"looked_at": inspection.n_inspected, "right_and_unchanged": inspection.n_unchanged}
    return result_of(inspection.problems, is_warning=is_warning, **counts)


def report_before_failure(
    context: dg.AssetExecutionContext, complete: Iterable[str], **checks: dg.AssetCheckResult
) -> None:
    """Report the complete partitions and the checks of a step that is about to fail.

    Dagster shows all partitions of a failed step as failed, and skips its checks.
    """
    for partition in complete:
        context.log_event(dg.AssetMaterialization(context.asset_key, partition=partition))
    for name, result in checks.items():
        report_for_other_asset(context, context.asset_key, name, result)


def report_for_other_asset(
    context: dg.AssetExecutionContext, asset: dg.AssetKey, check: str, result: dg.AssetCheckResult
) -> None:
    """Report the result of a check of an asset that this step does not materialize."""
    context.instance.report_runless_asset_event(
        dg.AssetCheckEvaluation(
            asset_key=asset,
            check_name=check,
            passed=result.passed,
            severity=result.severity,
            metadata=result.metadata,
        )
    )


# The blocking checks of the scan. Dagster skips the checks of a failed step. A scan that cannot
# read one shard fails, but its other scan results are used, so the asset `scan` then reports them.


def inspect_self_tests(config: "Config", store: "Store") -> dg.AssetCheckResult:
    """Return the result of `self_tests_pass`."""
    from decon_core.execution.jobs import wanted_workers
    from decon_core.planner import Plan
    from decon_core.quality.self_tests import run_self_tests

    try:
        versions = Plan(config, store).indexed_versions
        self_tests = run_self_tests(store, versions, config.policy, workers=wanted_workers())
    except DeconError as error:
        return result_of(error.problems)
    problems = [*self_tests.lost]
    if versions and not self_tests.planted:
        found = "no item that any detector can find"
        problems.append(Problem("all benchmarks", found, "at least one item"))
    blind = [{"benchmark": name, "detector": detector} for name, detector in self_tests.blind]
    return result_of(
        problems,
        planted=len(self_tests.planted),
        documents=self_tests.n_documents,
        nothing_to_plant=preview(blind),
    )


def inspect_ledgers(config: "Config", store: "Store") -> dg.AssetCheckResult:
    """Return the result of `ledger_is_complete`."""
    from decon_core.planner import Plan
    from decon_core.quality.store_faults import changed_faults_of_scan

    plan = Plan(config, store)
    return result_of_inspection(
        changed_faults_of_scan(store, plan.packs, plan.indexed_versions, plan.scan)
    )
