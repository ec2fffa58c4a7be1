"""The asset graph: assets and checks, and the jobs and gates derived from their dependencies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from importlib import import_module
from inspect import signature
from pkgutil import resolve_name
from types import ModuleType
from typing import TYPE_CHECKING, Any

import dagster as dg

from decon_assets import assets, checks
from decon_assets.assets.stage import STAGES, Gates, Stage
from decon_assets.resources import Decon
from decon_core.feature import all_features

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import (  # noqa: TID251 - a type
        UnresolvedAssetJobDefinition,
    )


@dataclass(frozen=True)
class Graph:
    """Assets and their checks.

    The graph of a component has a prefix on all its asset keys, and on the names of its partitions,
    jobs and resources. Stages and what follows from their dependencies are named without it.
    """

    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec]
    checks: Sequence[dg.AssetChecksDefinition]
    key_prefix: Sequence[str] = ()
    resource: str = "decon"  # key of the resource with the configuration

    def extended(self, *modules: ModuleType) -> Graph:
        """Return the graph with the assets and checks of more modules."""
        loaded = _known(dg.load_assets_from_modules(modules, include_specs=True))
        known = {asset.key for asset in self.assets}  # the modules import some of these
        return Graph(
            [*self.assets, *(asset for asset in loaded if asset.key not in known)],
            [*self.checks, *dg.load_asset_checks_from_modules(modules)],
        )

    def key(self, name: str) -> dg.AssetKey:
        return dg.AssetKey([*self.key_prefix, name])

    def identifier(self, name: str) -> str:
        """Return the name of a job, an op, a sensor or a resource of this graph."""
        return self.key(name).to_python_identifier()

    def job_name(self, asset: str) -> str:
        return self.identifier(f"stage_{asset}")

    @property
    def stage_jobs(self) -> Sequence[UnresolvedAssetJobDefinition]:
        """The jobs of which the runs of stages are, by command, job or sensor.

        There is one per asset: Dagster does not accept a job of assets with different partitions.
        """
        return [
            dg.define_asset_job(
                self.job_name(asset),
                dg.AssetSelection.assets(self.key(asset)),
                description=f"Materialize `{asset}` alone. Runs of the command line, of "
                "`everything_missing` and of the sensor `keep_up` are listed here.",
                executor_def=dg.in_process_executor,
            )
            for asset in ("inventory", *(stage.name for stage in self.stages))
        ]

    def bound(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with the resources of this graph.

        The name of a parameter is the key of its resource, so `decon` and `gates` are renamed.
        """
        keys = {"decon": self.resource, "gates": self.identifier("gates")}
        names = {key: name for name, key in keys.items()}

        @wraps(function)
        def call(*args: object, **resources: object) -> object:
            given = {names.get(key, key): resource for key, resource in resources.items()}
            return function(*args, **given)

        declared = signature(function)
        parameters = [
            parameter.replace(name=keys.get(name, name))
            for name, parameter in declared.parameters.items()
        ]
        # `inspect` reads this attribute, which types of functions do not declare.
        call.__signature__ = declared.replace(parameters=parameters)  # type: ignore[attr-defined]
        annotations = function.__annotations__.items()
        call.__annotations__ = {keys.get(name, name): kind for name, kind in annotations}
        return call

    def _name(self, key: dg.AssetKey) -> str:
        return "/".join(key.path[len(self.key_prefix) :])

    @cached_property
    def upstream(self) -> Mapping[str, tuple[str, ...]]:
        """For each asset, in an order in which they can be made, all assets that it depends on.

        Stages come in the order in which they are declared, as far as dependencies allow.
        """
        specs = {
            self._name(spec.key): spec
            for asset in self.assets
            for spec in ([asset] if isinstance(asset, dg.AssetSpec) else asset.specs)
        }
        found: dict[str, tuple[str, ...]] = {}

        def visit(name: str) -> tuple[str, ...]:
            if name not in found:
                parents = [self._name(dep.asset_key) for dep in specs[name].deps]
                before = [asset for parent in parents for asset in (*visit(parent), parent)]
                found[name] = tuple(dict.fromkeys(before))
            return found[name]

        for name in (*filter(specs.__contains__, STAGES), *specs):
            visit(name)
        return found

    @cached_property
    def stages(self) -> Sequence[Stage]:
        """The assets that a run brings up to date, upstream first."""
        return [STAGES[name] for name in self.upstream if name in STAGES]

    @cached_property
    def blocking(self) -> Mapping[str, list[dg.AssetCheckKey]]:
        """The blocking checks of each asset."""
        found: dict[str, list[dg.AssetCheckKey]] = {name: [] for name in self.upstream}
        for spec in (spec for check in self.checks for spec in check.check_specs):
            if spec.blocking:
                found[self._name(spec.asset_key)].append(spec.key)
        return found

    def checks_of(self, asset: str) -> list[dg.AssetCheckKey]:
        specs = (spec for check in self.checks for spec in check.check_specs)
        return [spec.key for spec in specs if spec.asset_key == self.key(asset)]

    @cached_property
    def gates(self) -> Gates:
        """The blocking checks that each asset waits for: those of all assets upstream of it."""
        return {
            name: [gate for asset in before for gate in self.blocking[asset]]
            for name, before in self.upstream.items()
        }

    def resources(self, config_path: str = "") -> dict[str, object]:
        """Return the resources that the assets of this graph need.

        The gates are one of their own: Dagster would copy and check a setting several times a run.
        """
        return {
            self.resource: Decon(config_path=config_path),
            self.identifier("gates"): self.gates,
        }


def _known(loaded: Iterable[object]) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    return [
        definition
        for definition in loaded
        if isinstance(definition, dg.AssetsDefinition | dg.AssetSpec)
    ]


GRAPH = Graph(
    _known(dg.load_assets_from_package_module(assets, include_specs=True)),
    dg.load_asset_checks_from_package_module(checks),
).extended(
    *(import_module(feature.definitions) for feature in all_features() if feature.has_assets)
)


def feature_jobs() -> list[dg.JobDefinition]:
    """Return the jobs of features, which have one op each."""
    return [
        resolve_name(f"{feature.definitions}:{job}")
        for feature in all_features()
        for job in feature.jobs
    ]


def build_graph(
    *,
    config_path: str = "",
    loggers: Mapping[str, dg.LoggerDefinition] | None = None,
    graph: Graph = GRAPH,
) -> dg.Definitions:
    """Build the definitions of assets and checks for one configuration."""
    return dg.Definitions(
        assets=graph.assets,
        asset_checks=graph.checks,
        resources=graph.resources(config_path),
        loggers=loggers,
        # One process per run: the scan has its own pool of workers. Dagster's default, a process
        # per step, took 18 s where this took 1.3 s.
        executor=dg.in_process_executor,
    )
