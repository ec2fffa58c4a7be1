"""The code location: assets, checks and the resource, put together."""

from collections.abc import Mapping

from dagster import Definitions, LoggerDefinition, in_process_executor, load_assets_from_modules

from decon_assets.assets import benchmarks, inputs, products, scanning, scorecard
from decon_assets.checks import CHECKS
from decon_assets.resources import Decon
from decon_assets.sensors import JOBS, keep_up

ASSETS = load_assets_from_modules(
    [inputs, benchmarks, scanning, products, scorecard], include_specs=True
)


def build_definitions(
    *, config_path: str = "", loggers: Mapping[str, LoggerDefinition] | None = None
) -> Definitions:
    """The production graph; tests and the command line give it a configuration of their own."""
    return Definitions(
        assets=ASSETS,
        asset_checks=CHECKS,
        jobs=[*JOBS.values()],
        sensors=[keep_up],
        resources={"decon": Decon(config_path=config_path)},
        loggers=loggers,
        # One process per run: the scan has a pool of its own. Dagster's default starts one per
        # step, which took 18 s where this took 1.3 s.
        executor=in_process_executor,
    )


definitions = build_definitions()
