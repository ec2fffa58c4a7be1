"""What the scans of a project cost, as tags of their runs.

The cost differs from run to run, so it is not in the report: its tables are those of its inputs.
"""

from collections.abc import Sequence

import dagster as dg

from decon_core.execution.jobs import Cost
from decon_core.wording import counted

_OF = "decon/cost_of"  # the asset
_SECONDS, _GIGABYTES = "decon/core_seconds", "decon/gigabytes_read"
_PEAK, _NODES = "decon/peak_process_megabytes", "decon/nodes"


def tag_cost(context: dg.AssetExecutionContext, cost: Cost) -> None:
    """Write what a run has cost into its tags."""
    tags = {
        _OF: context.asset_key.to_user_string(),
        _SECONDS: f"{cost.core_seconds:.3f}",
        _GIGABYTES: f"{cost.n_bytes / 1e9:.9f}",
        _PEAK: f"{cost.peak_bytes / 1e6:.0f}",
        _NODES: ", ".join(sorted(cost.nodes)),
    }
    context.instance.add_run_tags(context.run.run_id, tags)


def cost_of_scans(instance: dg.DagsterInstance, prefix: Sequence[str] = ()) -> tuple[int, Cost]:
    """Return the number of runs that scanned, of assets with this prefix, and their total cost."""
    total, n_runs = Cost(), 0
    for name in ("sketch", "scan"):
        asset = dg.AssetKey([*prefix, name]).to_user_string()
        for run in instance.get_runs(dg.RunsFilter(tags={_OF: asset})):
            seconds, gigabytes, peak = (float(run.tags[n]) for n in (_SECONDS, _GIGABYTES, _PEAK))
            nodes = frozenset(filter(None, run.tags[_NODES].split(", ")))
            total += Cost(seconds, round(gigabytes * 1e9), round(peak * 1e6), nodes)
            n_runs += 1
    return n_runs, total


def cost_line(instance: dg.DagsterInstance) -> str:
    """Return the cost of all scans in one line."""
    n_runs, cost = cost_of_scans(instance)
    return (
        f"all scans so far: {counted(n_runs, 'run')}, {cost.core_seconds:,.1f} core-seconds, "
        f"{cost.n_bytes / 1e9:,.3f} GB read, at most {cost.peak_bytes / 1e6:,.0f} MB per process, "
        f"on {', '.join(sorted(cost.nodes)) or 'no machine'}"
    )
