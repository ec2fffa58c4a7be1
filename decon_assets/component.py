"""The component that adds the asset graph to another Dagster project.

A project may have several, each with a key prefix and a decon.toml of its own. Dagster's tool `dg`
finds the class by the entry point in pyproject.toml.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Annotated, Any

import dagster as dg
from dagster.components import Scaffolder, ScaffoldRequest, scaffold_component
from pydantic import BaseModel, Field

from decon_assets.assets.check_results import partitioned_check
from decon_assets.assets.inputs import observable
from decon_assets.assets.stage import KEY_PREFIX_TAG
from decon_assets.everything_job import everything_job, run_pipeline, stage_run_sensor
from decon_assets.graph import GRAPH, Graph, feature_jobs
from decon_assets.partitions import under
from decon_assets.sensors import build_sensor

_LINEAGE = "dagster/column_lineage"


class ScaffoldParams(BaseModel):
    """Options of `dg scaffold defs decon_assets.component.DeconComponent`."""

    config: str = Field("decon.toml", description="path of decon.toml, from the folder of the file")


class DeconScaffolder(Scaffolder[ScaffoldParams]):
    """Write a defs.yaml that has the name of its folder as key prefix and as group."""

    @classmethod
    def get_scaffold_params(cls) -> type[ScaffoldParams]:
        return ScaffoldParams

    def scaffold(self, request: ScaffoldRequest[ScaffoldParams]) -> None:
        name = request.target_path.name
        attributes = {"config": request.params.config, "key_prefix": [name], "group_name": name}
        scaffold_component(request, attributes)


@dg.scaffold_with(DeconScaffolder)
class DeconComponent(dg.Component, dg.Model, dg.Resolvable):
    """Find and report benchmark leaks in training data, and remove them from a copy of the data.

    Adds all assets of the pipeline, their checks, the sensors `keep_up` and `fail_stage_runs`, and
    the job `everything_missing`.
    """

    config: Annotated[
        str | None,
        dg.Resolver.default(
            description="Path of decon.toml, relative to the folder of this file. If not set, the "
            "project must define the resource.",
            examples=["decon.toml", "{{ context.project_root }}/web/decon.toml"],
        ),
    ] = None
    key_prefix: Annotated[
        Sequence[str] | str,
        dg.Resolver.default(
            description="Prefix of all asset keys: a list, or a string with slashes. It is also "
            "part of the names of partitions, jobs, sensors and the resource, so "
            "several components need different prefixes.",
            examples=[["decon", "web"], "decon/web"],
        ),
    ] = ""
    group_name: Annotated[
        str | None,
        dg.Resolver.default(
            description="Group of all assets. Default: four groups, inputs, benchmarks, scan and "
            "products.",
        ),
    ] = None
    resource: Annotated[
        str | None,
        dg.Resolver.default(
            description="Key of the resource with the configuration, a "
            "`decon_assets.resources.Decon`. Default: `decon` with the key prefix.",
        ),
    ] = None

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        produces = ["asset", "asset_check", "job", "sensor", "resource"]
        return dg.ComponentTypeSpec(owners=["team:decontamination"], produces=produces)

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        graph = self._graph()
        resources = graph.resources()
        if self.config:
            path = (context.path / self.config).resolve()
            if not path.is_file():
                message = (
                    f"{path}: no such file. `config` of {context.path} names it; "
                    "`decon-assets init` writes a decon.toml."
                )
                raise dg.DagsterInvalidDefinitionError(message)
            resources = graph.resources(str(path))
        elif self.resource:
            del resources[graph.resource]  # it is the project's
        else:
            message = f"{context.path}: DeconComponent needs `config` or `resource`."
            raise dg.DagsterInvalidDefinitionError(message)
        everything_missing = everything_job(partial(run_pipeline, graph=graph), graph)
        # No executor: it would be that of all jobs of the project.
        own = dg.Definitions(
            assets=graph.assets,
            asset_checks=graph.checks,
            jobs=[everything_missing, *(_job(graph, job) for job in feature_jobs())],
            sensors=[stage_run_sensor(everything_missing, graph)],
            resources=resources,
        )
        return dg.Definitions.merge(own, build_sensor(graph))

    def _graph(self) -> Graph:
        prefix = self.key_prefix
        if isinstance(prefix, str):
            prefix = prefix.split("/") if prefix else []
        graph = Graph([], [], prefix)
        graph = replace(graph, resource=self.resource or graph.identifier("decon"))
        return replace(
            graph,
            assets=[_asset(graph, self.group_name, asset) for asset in GRAPH.assets],
            checks=[_check(graph, check) for check in GRAPH.checks],
        )


def _asset(
    graph: Graph, group: str | None, asset: dg.AssetsDefinition | dg.AssetSpec
) -> dg.AssetsDefinition | dg.AssetSpec:
    """Return an asset under the names of a graph."""
    if isinstance(asset, dg.AssetSpec):
        return _spec(graph, group, asset)
    (spec,) = asset.specs
    function = _function(graph, asset.op)
    if asset.is_executable and not asset.is_materializable:
        return observable(_spec(graph, group, spec), function)
    # None for a function with the parameter `config`, whose type says it.
    schema = getattr(asset.op.config_schema.config_type, "fields", None)
    if "config" in signature(function).parameters:
        schema = None
    return dg.multi_asset(
        specs=[_spec(graph, group, spec)],
        name=graph.identifier(asset.op.name),
        description=asset.op.description,
        backfill_policy=asset.backfill_policy,
        pool=asset.op.pool,
        config_schema=schema,
    )(function)


def _spec(graph: Graph, group: str | None, spec: dg.AssetSpec) -> dg.AssetSpec:
    metadata = dict(spec.metadata)
    if lineage := metadata.get(_LINEAGE):
        columns = {
            column: [
                dg.TableColumnDep(graph.key(dep.asset_key.to_user_string()), dep.column_name)
                for dep in deps
            ]
            for column, deps in lineage.deps_by_column.items()
        }
        metadata[_LINEAGE] = dg.TableColumnLineage(deps_by_column=columns)
    return spec.replace_attributes(
        key=graph.key(spec.key.to_user_string()),
        deps=[
            dg.AssetDep(
                graph.key(dep.asset_key.to_user_string()), partition_mapping=dep.partition_mapping
            )
            for dep in spec.deps
        ],
        partitions_def=spec.partitions_def and under(graph.key_prefix, spec.partitions_def),
        group_name=group or spec.group_name,
        metadata=metadata,
    )


def _check(graph: Graph, check: dg.AssetChecksDefinition) -> dg.AssetChecksDefinition:
    """Return a check under the names of a graph."""
    (spec,) = check.check_specs
    return partitioned_check(
        _function(graph, check.op),
        asset=graph.key(spec.asset_key.to_user_string()),
        name=spec.name,
        description=spec.description,
        blocking=spec.blocking,
        metadata=spec.metadata,
        partitions_def=spec.partitions_def and under(graph.key_prefix, spec.partitions_def),
    )


def _job(graph: Graph, job: dg.JobDefinition) -> dg.JobDefinition:
    """Return the job of a feature under the names of a graph."""
    (op,) = job.graph.node_defs
    function = _function(graph, op)
    make = dg.op(name=graph.identifier(op.name), description=op.description)(function)
    tags = {KEY_PREFIX_TAG: "/".join(graph.key_prefix)}

    @dg.job(
        name=graph.identifier(job.name),
        description=job.description,
        tags=tags,
        executor_def=dg.in_process_executor,
    )
    def copy() -> None:
        make()

    return copy


def _function(graph: Graph, op: Any) -> Callable[..., Any]:
    """Return the function of an op with the resources of a graph."""
    return graph.bound(op.compute_fn.decorated_fn)
