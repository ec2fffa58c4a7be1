"""The code location: the asset graph with its jobs and its sensor."""

from collections.abc import Mapping

from dagster import Definitions, LoggerDefinition

from decon_assets.assets.scorecard import scorecard_job
from decon_assets.everything import EVERYTHING_MISSING
from decon_assets.graph import build_graph
from decon_assets.sensors import JOBS, keep_up


def build_definitions(
    *, config_path: str = "", loggers: Mapping[str, LoggerDefinition] | None = None
) -> Definitions:
    """Build the production definitions; tests pass the path of their own configuration."""
    return Definitions.merge(
        build_graph(config_path=config_path, loggers=loggers),
        Definitions(jobs=[EVERYTHING_MISSING, scorecard_job, *JOBS.values()], sensors=[keep_up]),
    )


definitions = build_definitions()
