"""Asset checks, one file per stage.

Each check examines all partitions on disk, as a run over a range of partitions has only one result
per check. Checks that read every record, ledger, tile, mixture or blend skip what passed before and
has not changed since. The others examine everything each time, which is cheap: they map index parts
into memory and read only manifests of mixtures and tables of the report.
"""

from decon_assets.checks.benchmarks import (
    enough_is_indexable,
    index_is_complete,
    records_are_valid,
    snapshot_is_of_todays_versions,
)
from decon_assets.checks.products import (
    blend_adds_up,
    controls_match,
    coverage_is_complete,
    leak_rate_is_steady,
    mixture_adds_up,
    report_is_todays,
)
from decon_assets.checks.scanning import (
    canaries_are_found,
    every_row_was_read,
    ledger_is_complete,
    text_is_utf8,
)

CHECKS = [
    records_are_valid,
    snapshot_is_of_todays_versions,
    index_is_complete,
    enough_is_indexable,
    canaries_are_found,
    ledger_is_complete,
    every_row_was_read,
    text_is_utf8,
    mixture_adds_up,
    controls_match,
    blend_adds_up,
    coverage_is_complete,
    report_is_todays,
    leak_rate_is_steady,
]

__all__ = [
    "CHECKS",
    "blend_adds_up",
    "canaries_are_found",
    "controls_match",
    "coverage_is_complete",
    "enough_is_indexable",
    "every_row_was_read",
    "index_is_complete",
    "leak_rate_is_steady",
    "ledger_is_complete",
    "mixture_adds_up",
    "records_are_valid",
    "report_is_todays",
    "snapshot_is_of_todays_versions",
    "text_is_utf8",
]
