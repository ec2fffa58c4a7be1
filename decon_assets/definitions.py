"""The code location: the asset graph with its jobs and its sensor."""

from collections.abc import Iterator
from importlib import import_module

from dagster import Definitions, JobDefinition

from decon_assets.everything_job import EVERYTHING_MISSING
from decon_assets.graph import GRAPH, Graph, build_graph
from decon_assets.sensors import build_sensor
from decon_core.feature import all_features


def build_definitions(*, config_path: str = "", graph: Graph = GRAPH) -> Definitions:
    """Build the production definitions; tests pass the path of their own configuration."""
    return Definitions.merge(
        build_graph(config_path=config_path, graph=graph),
        build_sensor(graph),
        Definitions(jobs=[EVERYTHING_MISSING, *_feature_jobs()]),
    )


def _feature_jobs() -> Iterator[JobDefinition]:
    for module in (import_module(feature.definitions) for feature in all_features()):
        yield from (one for one in vars(module).values() if isinstance(one, JobDefinition))


definitions = build_definitions()
