"""Whether a report says something of what is there now."""

from __future__ import annotations

from decon_core.config.load import Config
from decon_core.config.open_store import open_store
from decon_core.errors import DeconError, Problem
from decon_core.storage.store import Store

NOT_TODAYS = (
    "corpus, benchmarks, policy or verdicts are no longer those of this report; "
    "`decon-assets status` says what changed"
)


def is_report_current(config: Config) -> bool:
    """Whether corpus, benchmarks and policy, as they lie there, are those of the report."""
    return not changes_since_report(config, open_store(config))


def changes_since_report(config: Config, store: Store) -> list[Problem]:
    """What the report in a store does not know of: files, settings, verdicts, products."""
    from decon_core.inventory import blender_of, plan_registration
    from decon_core.report.verify import moved_since_report

    try:
        today = plan_registration(config, store)
        moved = [Problem(path, "gone or changed", "as it was registered") for path in today.gone]
        moved += [Problem(path, "new or changed", "a registered shard") for path in today.new]
        moved += [Problem(now, "another name", f"{was}, as before") for was, now in today.renamed]
        moved += moved_since_report(blender_of(config, store), config.showing)
    except DeconError as error:
        return list(error.problems)  # what cannot be planned cannot be what was reported
    return moved
