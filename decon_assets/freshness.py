"""Checks whether the report matches the current files, settings and verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decon_core.errors import DeconError, Problem

if TYPE_CHECKING:
    from decon_core.config.load import Config
    from decon_core.storage.store import Store

REPORT_IS_STALE = (
    "corpus, benchmarks, policy or verdicts changed after this report was built; "
    "`decon-assets status` lists the changes"
)


def is_report_current(config: Config) -> bool:
    """Whether nothing changed since the report of this configuration was built."""
    from decon_core.config.open_store import open_store

    return not changes_since_report(config, open_store(config))


def changes_since_report(config: Config, store: Store) -> list[Problem]:
    """List the files, settings, verdicts and products that changed since the report was built."""
    from decon_core.planner import Plan
    from decon_core.report.verify import moved_since_report

    try:
        plan = Plan(config, store)
        changes = [Problem(path, what) for path, what in plan.changes.by_shard]
        changes += moved_since_report(plan.builder, config.report, additions=plan.additions)
    except DeconError as error:
        return list(error.problems)  # a configuration that cannot be planned was never reported
    return changes
