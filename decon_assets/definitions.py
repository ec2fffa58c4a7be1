"""The code location: the asset graph with its jobs and its sensor.

`assets/__init__.py` says how to add an asset; it is not listed here.
"""

from dagster import Definitions

from decon_assets.everything_job import EVERYTHING_MISSING, stage_run_sensor
from decon_assets.graph import GRAPH, Graph, build_graph, feature_jobs
from decon_assets.sensors import build_sensor


def build_definitions(*, config_path: str = "", graph: Graph = GRAPH) -> Definitions:
    """Build the production definitions; tests pass the path of their own configuration."""
    return Definitions.merge(
        build_graph(config_path=config_path, graph=graph),
        build_sensor(graph),
        Definitions(
            jobs=[EVERYTHING_MISSING, *feature_jobs()],
            sensors=[stage_run_sensor(EVERYTHING_MISSING)],
        ),
    )


definitions = build_definitions()
