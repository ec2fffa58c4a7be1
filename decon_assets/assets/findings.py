"""Problems as a check tells them; also where Dagster would leave a check out."""

from collections.abc import Sequence

from dagster import (
    AssetCheckEvaluation,
    AssetCheckResult,
    AssetCheckSeverity,
    AssetExecutionContext,
    AssetKey,
    MetadataValue,
)

from decon_assets.assets.metadata import preview
from decon_core.errors import Problem
from decon_core.storage.verification import Inspection

_PROBLEM_WIDTH = 400  # a path or a remedy that is cut off helps nobody


def result_of(
    problems: Sequence[Problem], *, is_warning: bool = False, **metadata: MetadataValue | int | str
) -> AssetCheckResult:
    """A check's result: it passes when there is no problem."""
    rows = [
        {
            "where": problem.where,
            "found": problem.found,
            "expected": problem.expected,
            "remedy": problem.remedy,
        }
        for problem in problems
    ]
    return AssetCheckResult(
        passed=not problems,
        severity=AssetCheckSeverity.WARN if is_warning else AssetCheckSeverity.ERROR,
        metadata={
            "problems": preview(rows, width=_PROBLEM_WIDTH),
            "n_problems": len(problems),
            **metadata,
        },
    )


def result_of_inspection(found: Inspection, *, is_warning: bool = False) -> AssetCheckResult:
    """The result of a look that leaves out what was right and has not changed."""
    told = {"looked_at": found.n_inspected, "right_and_unchanged": found.n_unchanged}
    return result_of(found.problems, is_warning=is_warning, **told)


def report_before_failure(
    context: AssetExecutionContext, check: str, result: AssetCheckResult
) -> None:
    """Tell a check's result from within a step that is going to fail.

    Dagster leaves out the checks of such a step, and what it did make would go unchecked.
    """
    report_for_other_asset(context, context.asset_key, check, result)


def report_for_other_asset(
    context: AssetExecutionContext, asset: AssetKey, check: str, result: AssetCheckResult
) -> None:
    """Report the result of a check of an asset that this step does not make."""
    context.instance.report_runless_asset_event(
        AssetCheckEvaluation(
            asset_key=asset,
            check_name=check,
            passed=result.passed,
            severity=result.severity,
            metadata=result.metadata,
        )
    )
