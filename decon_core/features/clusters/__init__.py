"""Slurm and Ray: engines that run the jobs of a scan and of products on other machines.

`settings` reads [execution]; `slurm` and `ray_cluster` are the engines. A task of Slurm is the
program `slurm_task`, which gets its jobs by `task_files`; one of Ray calls `ray_task`.
"""

from decon_core.feature import Feature

_SETTINGS = "decon_core.features.clusters.settings:Execution"

FEATURE = Feature(
    name="clusters",
    tables={"execution": _SETTINGS},
    engines={"slurm": _SETTINGS, "ray": _SETTINGS},
)
