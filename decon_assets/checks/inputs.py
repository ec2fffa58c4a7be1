"""Checks of the inputs: the checks of later assets, by pack and by benchmark.

Whenever a check of an asset is executed, it also reports the results of the partitions here. They
show which pack or benchmark failed, and block nothing themselves.
"""

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetsDefinition,
    Failure,
)

from decon_assets.assets.check_results import (
    Inspect,
    inspect_and_report,
    inspect_ledgers,
    inspect_mixtures,
    inspect_rows,
    inspect_self_tests,
    inspect_utf8,
    partitioned_check,
)
from decon_assets.assets.inputs import benchmark_files, corpus
from decon_assets.checks.products import mixture_adds_up
from decon_assets.checks.scanning import (
    every_row_was_read,
    ledger_is_complete,
    self_tests_pass,
    text_is_utf8,
)
from decon_assets.resources import Decon


def _by_partition(
    check: AssetChecksDefinition, asset: AssetsDefinition, inspect: Inspect
) -> AssetChecksDefinition:
    """Return the same check of an input, for each of its partitions."""
    (spec,) = check.check_specs

    of_all = spec.asset_key.to_user_string()

    def execute(context: AssetCheckExecutionContext, decon: Decon) -> AssetCheckResult:
        if not context.has_partition_key:  # Dagster would fail after all were inspected
            remedy = f"Execute `{spec.name}` of `{of_all}`, which reports every partition here"
            message = f"This check needs one partition. {remedy}, or choose a partition."
            raise Failure(message, allow_retries=False)
        return inspect_and_report(context, decon, inspect)

    return partitioned_check(
        asset=asset,
        name=spec.name,
        description=f"{spec.description}\n\nThe result of one partition, reported by the check of "
        f"`{of_all}`, which covers all partitions.",
        partitions_def=asset.partitions_def,
    )(execute)


self_tests_of_benchmark = _by_partition(self_tests_pass, benchmark_files, inspect_self_tests)
ledger_of_pack = _by_partition(ledger_is_complete, corpus, inspect_ledgers)
rows_of_pack = _by_partition(every_row_was_read, corpus, inspect_rows)
text_of_pack = _by_partition(text_is_utf8, corpus, inspect_utf8)
mixtures_of_pack = _by_partition(mixture_adds_up, corpus, inspect_mixtures)
