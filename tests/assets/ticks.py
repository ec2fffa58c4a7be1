"""The sensor, tick after tick on an instance, with the runs that it asks for."""

from dagster import AssetKey, build_sensor_context

from decon_assets.assets.stage import STAGES
from decon_assets.definitions import build_definitions
from decon_assets.graph import GRAPH
from decon_assets.resources import Decon
from decon_assets.run_requests import Materialized, Request, requests
from decon_core.config.load import load_config
from decon_core.planner import Plan
from tests.first_runs import run_or_copy

ALL_DONE = "everything is up to date"
AFTER_SCAN = ["common_ngrams", "mixture", "clean_benchmark", "report", "report_page"]
SETTLED = (ALL_DONE, "requested but still missing")


class Daemon:
    """Ticks the sensor, and executes what it asks for, as Dagster's daemon does."""

    def __init__(self, world, instance=None, graph=GRAPH):
        world.write_config()
        self.world, self.graph = world, graph
        self.instance = instance or world.instance
        definitions = build_definitions(config_path=str(world.config_path), graph=graph)
        self.jobs = definitions.get_repository_def()
        self.cursor = None
        self.asked = []

    def tick(self, *, end=None):
        """One tick; the assets that were asked for, or the reason for none.

        With `end` their runs are not executed, but come to that.
        """
        context = build_sensor_context(
            instance=self.instance,
            cursor=self.cursor,
            resources={"decon": Decon(config_path=str(self.world.config_path))},
        )
        with context:
            result = self.jobs.get_sensor_def("keep_up")(context)
        self.cursor = result.cursor
        if result.skip_reason:
            return result.skip_reason.skip_message
        for request in result.run_requests:
            job = self.jobs.get_job(request.job_name)
            if end:
                end(self.instance.create_run_for_job(job, tags=request.tags))
                continue
            job.execute_in_process(instance=self.instance, tags=request.tags, raise_on_error=False)
        names = [one.job_name.removeprefix("stage_") for one in result.run_requests]
        self.asked += names
        return names

    def press(self, asset, **config):
        """What an asset lacks, as somebody who presses "Materialize" has it."""
        plan = Plan(load_config(self.world.config_path), self.world.store)
        todo = requests(plan, Materialized(self.instance), asset) if asset in STAGES else []
        for request in todo or [Request(asset)]:
            self.jobs.get_job("__ASSET_JOB").get_subset(
                asset_selection={AssetKey(asset)}
            ).execute_in_process(
                instance=self.instance,
                tags=request.tags,
                run_config={"ops": {asset: {"config": config}}} if config else None,
            )

    def settle(self, *, until=None):
        """Ticks until there is nothing to do any more, or an asset was asked for; all that were.

        From nothing, what the same world's first ticks left in another test is copied.
        """
        self.asked = []
        if self.cursor is None and self.instance is self.world.instance and self.graph is GRAPH:
            self.cursor, asked = run_or_copy(
                self._tick_to_the_end, [self.world.folder], self.instance
            )
            self.asked = [*asked]
        else:
            self._tick_to_the_end(until)
        return self.asked

    def _tick_to_the_end(self, until=None):
        for _ in range(40):
            if str(self.tick()).startswith(SETTLED) or until in self.asked:
                return self.cursor, (*self.asked,)
        raise AssertionError(f"no end: {self.asked}")
