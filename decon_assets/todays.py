"""Whether a report says something of what is there now."""

from __future__ import annotations

from decon_core.config import Config
from decon_core.errors import DeconError
from decon_core.mirror import at_hand

NOT_TODAYS = (
    "corpus, benchmarks, policy or verdicts are no longer those of this report; "
    "`decon-assets status` says what changed"
)


def is_report_todays(config: Config) -> bool:
    """Whether corpus, benchmarks and policy, as they lie there, are those of the report."""
    from decon_core.registry import blender_of, plan
    from decon_core.report.build import is_current

    store = at_hand(config)
    try:
        today = plan(config, store)
        blender = blender_of(config, store)
    except DeconError:
        return False  # what cannot be planned cannot be what was reported
    return not (today.new or today.gone or today.renamed) and is_current(blender, config.showing)
