"""An asset is one file: a toy asset is in the plan, the gates and what the sensor asks for."""

import sys
from types import ModuleType

import pytest
from dagster import AssetCheckKey, AssetKey

from decon_assets.assets.gates import failed_checks
from decon_assets.assets.stage import STAGES
from decon_assets.cli.main import main
from decon_assets.graph import GRAPH
from decon_assets.runner.pipeline import Pipeline, PipelineError
from tests.assets.ticks import Daemon
from tests.conftest import graph_until

# A new asset with a blocking check: this is all the code that it needs.
TOY = '''
from dagster import AssetCheckResult, asset_check

from decon_assets.assets.benchmarks import index
from decon_assets.assets.stage import stage


def lengths_of(store):
    return store.root / "lengths" / "lengths.txt"


def has_no_lengths(plan):
    return not lengths_of(plan.store).is_file()


@stage(
    missing="toy:has_no_lengths",
    deps=[index],
    group="toys",
    kind="file",
)
def lengths(context, config, store):
    """Lengths of the benchmarks."""
    lengths_of(store).parent.mkdir()
    lengths_of(store).write_text("3")
    context.log.info("lengths written")
    return {"n_lengths": 1}


@asset_check(asset=lengths, blocking=True)
def lengths_are_right(decon):
    """Lengths are three."""
    _, store = decon.open_store()
    is_right = lengths_of(store).read_text() == "3"
    return AssetCheckResult(passed=is_right, metadata={"problems": "not three"})


def is_always_missing(plan):
    return True


@stage(missing="toy:is_always_missing", deps=[lengths], group="toys", kind="file")
def after_lengths(context, config, store):
    """What is made of the lengths."""
'''
CHECK = AssetCheckKey(AssetKey("lengths"), "lengths_are_right")


@pytest.fixture
def toy():
    """The toy's file, as a module."""
    module = ModuleType("toy")
    sys.modules["toy"] = module  # where Dagster looks for types
    known = dict(STAGES)
    exec(TOY.replace("(decon)", "(decon: Decon)").replace(
        "from dagster import", "from decon_assets.resources import Decon\nfrom dagster import", 1
    ), module.__dict__)  # fmt: skip
    yield module
    del sys.modules["toy"]
    STAGES.clear()
    STAGES.update(known)


@pytest.fixture
def graph(toy):
    """The pipeline, as if the toy's file were among the assets."""
    return GRAPH.extended(toy)


@pytest.fixture
def first(toy):
    """The same without what comes after the index."""
    return graph_until("index").extended(toy)


def run(world, graph):
    world.write_config()
    world.said.clear()
    Pipeline(world.config_path, world.instance, world.said.append, graph=graph).run()
    return world.said


def test_a_toy_asset_has_the_gates_of_all_that_is_before_it(graph):
    assert graph.gates["lengths"] == GRAPH.gates["scan"]
    assert graph.gates["after_lengths"] == [*GRAPH.gates["scan"], CHECK]
    names = [stage.name for stage in graph.stages]
    assert names.index("index") < names.index("lengths") < names.index("after_lengths")


def test_a_toy_asset_is_made_when_it_is_missing_and_kept_otherwise(world, first):
    assert "lengths: lengths written" in [line.rpartition(" (")[0] for line in run(world, first)]
    assert "lengths: up to date" in run(world, first)


def test_a_failed_check_of_a_toy_asset_holds_back_what_comes_after_it(world, first, graph):
    run(world, first)
    file = world.store.root / "lengths" / "lengths.txt"
    file.write_text("4")
    check = Daemon(world, graph=graph).jobs.get_job("__ASSET_JOB").get_subset(
        asset_selection=frozenset(),
        asset_check_selection={CHECK},
    )  # fmt: skip
    check.execute_in_process(instance=world.instance, raise_on_error=False)
    assert failed_checks(world.instance, graph.blocking["lengths"])
    with pytest.raises(PipelineError, match="lengths_are_right"):
        run(world, first)
    assert "lengths: checked again" in world.said
    file.write_text("3")
    run(world, first)


def test_a_missing_toy_asset_makes_the_status_incomplete(world, graph, monkeypatch, capsys):
    world.start()
    assert main(["status", "--config", str(world.config_path)]) == 0
    monkeypatch.setattr("decon_assets.graph.GRAPH", graph)
    assert main(["status", "--config", str(world.config_path)]) == 1
    assert "  lengths: missing or outdated\n" in capsys.readouterr().out


def test_the_sensor_asks_for_a_toy_asset(world, graph):
    daemon = Daemon(world, graph=graph)
    asked = daemon.settle()
    assert asked.index("index") < asked.index("lengths") < asked.index("after_lengths")
    (world.store.root / "lengths" / "lengths.txt").unlink()
    (world.store.root / "lengths").rmdir()
    daemon.press("term_weights")  # a run that ends, so that the store is looked at again
    assert "lengths" in daemon.settle()
