"""Check results made from problems, of everything and by partition, and how they are reported."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import dagster as dg

from decon_assets.assets.inputs import benchmark_files, corpus
from decon_assets.assets.metadata import preview
from decon_assets.resources import Decon
from decon_core.errors import DeconError, Problem, sentence

if TYPE_CHECKING:
    from decon_core.planner import Plan
    from decon_core.storage.verification import Inspection

_PROBLEM_WIDTH = 400  # wide enough for whole paths and remedies

# The input whose partitions are the parts of a check. By partition of a grid, the planned events of
# a check would take too much space (docs/decisions, 0018).
INPUT_OF = {
    "self_tests_pass": benchmark_files,
    "ledger_is_complete": corpus,
    "every_row_was_read": corpus,
    "text_is_utf8": corpus,
    "mixture_adds_up": corpus,
}

Context: TypeAlias = dg.AssetExecutionContext | dg.AssetCheckExecutionContext


@dataclass(frozen=True)
class Inspected:
    """The result of a check, and the problems of each pack or benchmark."""

    result: dg.AssetCheckResult
    parts: Mapping[str, Sequence[Problem]]

    def result_of_part(self, name: str) -> dg.AssetCheckResult:
        is_warning = self.result.severity is dg.AssetCheckSeverity.WARN
        return result_of(self.parts.get(name, ()), is_warning=is_warning)


Inspect: TypeAlias = "Callable[[Plan], Inspected]"


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


def partitioned_check(
    function: Callable[..., dg.AssetCheckResult], **options: Any
) -> dg.AssetChecksDefinition:
    """Return a check that may have partitions, without Dagster's warning that these are new."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.PreviewWarning)
        return dg.asset_check(**options)(function)


def checks_by_part(
    asset: dg.AssetsDefinition, name: str, inspect: Inspect, *, blocking: bool = False
) -> tuple[dg.AssetChecksDefinition, dg.AssetChecksDefinition]:
    """Return a check of an asset, and the same check of each partition of an input.

    The first one also reports the results of the partitions. They show which pack or benchmark
    failed, and block nothing themselves. The docstring of `inspect` describes both.
    """
    about, of_all = cleandoc(inspect.__doc__ or ""), asset.key.to_user_string()
    source = INPUT_OF[name]

    def execute(context: dg.AssetCheckExecutionContext, decon: Decon) -> dg.AssetCheckResult:
        (spec,) = context.check_specs
        # Without a partition, Dagster would fail after all were inspected.
        if spec.partitions_def and not context.has_partition_key:
            remedy = f"Execute `{name}` of `{of_all}`, which reports every partition here"
            message = f"This check needs one partition. {remedy}, or choose a partition."
            raise dg.Failure(message, allow_retries=False)
        from decon_core.planner import Plan

        with decon.writable_store() as (config, store):
            inspected = inspect(Plan(config, store))
        report_parts(context, spec.key, inspected)
        if spec.partitions_def:
            return inspected.result_of_part(context.partition_key)
        return inspected.result

    of_partition = partitioned_check(
        execute,
        asset=source,
        name=name,
        description=f"{about}\n\nThe result of one partition, reported by the check of `{of_all}`, "
        "which covers all partitions.",
        partitions_def=source.partitions_def,
    )
    check = dg.asset_check(asset=asset, name=name, description=about, blocking=blocking)
    return check(execute), of_partition


def report_parts(context: Context, check: dg.AssetCheckKey, inspected: Inspected) -> None:
    """Report the same check of an input for each partition that is new, fails or passes again."""
    if not inspected.parts:
        return
    prefix = check.asset_key.path[:-1]
    source = dg.AssetKey([*prefix, *INPUT_OF[check.name].key.path])
    check = dg.AssetCheckKey(source, check.name)
    infos = context.instance.event_log_storage.get_asset_check_partition_info([check])
    passed = {
        info.partition_key for info in infos if info.latest_execution_status.value == "SUCCEEDED"
    }
    for name, problems in inspected.parts.items():
        if problems or name not in passed:
            # Dagster accepts only one event of a partition that belongs to no run.
            result = inspected.result_of_part(name)
            event = _evaluation(check.asset_key, check.name, result, partition=name)
            # It accepts events of checks, which its declared type lacks.
            context.op_execution_context.log_event(event)  # type: ignore[arg-type]


def report_before_failure(
    context: dg.AssetExecutionContext, complete: Iterable[str], **checks: Inspected
) -> None:
    """Report the complete partitions and the checks of a step that is about to fail.

    Dagster shows all partitions of a failed step as failed, and skips its checks.
    """
    for partition in complete:
        context.log_event(dg.AssetMaterialization(context.asset_key, partition=partition))
    for name, inspected in checks.items():
        report_for_other_asset(context, context.asset_key, name, inspected.result)
        report_parts(context, dg.AssetCheckKey(context.asset_key, name), inspected)


def report_for_other_asset(
    context: dg.AssetExecutionContext, asset: dg.AssetKey, check: str, result: dg.AssetCheckResult
) -> None:
    """Report the result of a check of an asset that this step does not materialize."""
    context.instance.report_runless_asset_event(_evaluation(asset, check, result))


def _evaluation(
    asset: dg.AssetKey, check: str, result: dg.AssetCheckResult, *, partition: str | None = None
) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=asset,
        check_name=check,
        passed=result.passed,
        severity=result.severity,
        metadata=result.metadata,
        partition=partition,
    )


# Dagster skips the checks of a failed step. A scan that cannot read one shard fails, but its other
# scan results are used, so `scan` then reports its blocking checks, and so does `mixture`.


def inspect_self_tests(plan: "Plan") -> Inspected:
    """The scan finds benchmark items planted into synthetic shards, with every detector."""
    from decon_core.execution.jobs import wanted_workers
    from decon_core.quality.self_tests import run_self_tests

    try:
        store, versions, workers = plan.store, plan.indexed_versions, wanted_workers()
        self_tests = run_self_tests(store, versions, plan.config.policy, workers=workers)
    except DeconError as error:
        return Inspected(result_of(error.problems), {})
    parts: dict[str, list[Problem]] = {version.benchmark: [] for version in versions}
    for benchmark, problem in self_tests.lost:
        parts[benchmark].append(problem)
    problems = [problem for _, problem in self_tests.lost]
    if versions and not self_tests.planted:
        found = "no item that a detector can find"
        problems.append(Problem("all benchmarks", found, "at least one item"))
    blind = [{"benchmark": name, "detector": detector} for name, detector in self_tests.blind]
    result = result_of(
        problems,
        planted=len(self_tests.planted),
        documents=self_tests.n_documents,
        nothing_to_plant=preview(blind),
    )
    return Inspected(result, parts)


def inspect_ledgers(plan: "Plan") -> Inspected:
    """The ledger of each scanned shard accounts for all its rows and matches its scan results."""
    from decon_core.quality.store_faults import changed_faults_of_scan

    inspection = changed_faults_of_scan(plan.store, plan.packs, plan.indexed_versions, plan.scan)
    return Inspected(result_of_inspection(inspection), inspection.by_group)


def inspect_rows(plan: "Plan") -> Inspected:
    """All rows of the scanned shards could be read.

    Unreadable rows block the mixtures of their pack, unless the policy drops such rows.
    """
    return _inspect_rows(plan, "rows", is_warning=plan.config.policy.unreadable == "drop")


def inspect_utf8(plan: "Plan") -> Inspected:
    """All rows of the scanned shards are valid UTF-8; invalid bytes are scanned as U+FFFD."""
    return _inspect_rows(plan, "utf8", is_warning=plan.config.policy.invalid_utf8 != "block")


def _inspect_rows(plan: "Plan", what: Literal["rows", "utf8"], *, is_warning: bool) -> Inspected:
    from decon_core.quality.store_faults import changed_rows

    inspection = changed_rows(plan.store, plan.packs, plan.scan, what=what)
    result = result_of_inspection(inspection, is_warning=is_warning)
    return Inspected(result, inspection.by_group)


def inspect_mixtures(plan: "Plan") -> Inspected:
    """Documents kept and documents removed add up to documents read, and no file was changed."""
    from decon_core.mixtures.verify import inspect_changed_mixtures

    inspection = inspect_changed_mixtures(plan.store, plan.config.mixtures, plan.packs)
    return Inspected(result_of_inspection(inspection), inspection.by_group)
