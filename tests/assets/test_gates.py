"""What a failed check holds back: in the run that failed, in the next one, and in a backfill."""

import pytest
from dagster import AssetCheckKey, AssetKey, DagsterInvalidDefinitionError, materialize

from decon_assets.assets.gates import last_evaluation, unfinished_checks
from decon_assets.definitions import build_definitions
from decon_assets.graph import GRAPH
from decon_assets.resources import Decon
from decon_assets.run_requests import Materialized, next_requests
from decon_assets.runner.pipeline import PipelineError
from decon_core.config.load import load_config
from decon_core.planner import Plan
from tests.conftest import FindsNothing, graph_until

AFTER_THE_SCAN = ("common", "mixtures", "clean", "report")


def demand(world, *settings: str) -> None:
    """The settings of required benchmarks, which `write_config` does not know."""
    world.write_config()
    text = world.config_path.read_text()
    world.config_path.write_text(text.replace("[evals]", "\n".join(["[evals]", *settings])))


def run_as_it_is(world):
    """A run without writing the settings anew."""
    from decon_assets.runner.pipeline import Pipeline

    world.said.clear()
    return Pipeline(
        world.config_path, world.instance, world.said.append, graph=graph_until("report")
    ).run()


def made(world) -> set[str]:
    return {name for name in AFTER_THE_SCAN if any((world.store.root / name).glob("**/*.*"))}


def test_what_is_held_back_is_all_that_comes_after_a_check_that_blocks():
    graph = build_definitions().resolve_asset_graph()
    blocking = {key for key in graph.asset_check_keys if graph.get(key).blocking}
    assert len(blocking) == 9
    for key in graph.get_all_asset_keys():
        ancestors = graph.get_ancestor_asset_keys(key)
        held_by = {check for check in blocking if check.asset_key in ancestors}
        assert held_by == {*GRAPH.gates[key.to_user_string()]}, key


def test_an_asset_without_a_list_of_its_gates_is_refused(world):
    world.write_config()
    resources = {"decon": Decon(config_path=str(world.config_path))}
    with pytest.raises(DagsterInvalidDefinitionError, match="resource with key 'gates'"):
        materialize(
            GRAPH.assets,
            instance=world.instance,
            resources=resources,
            selection=["term_weights"],
        )


def test_nothing_is_made_of_a_scan_that_misses_its_self_tests_until_it_finds_them(
    world, monkeypatch
):
    with monkeypatch.context() as patched:
        patched.setattr("decon_core.quality.self_tests.MatchReader", FindsNothing)
        for _ in range(2):  # nothing is left to scan the second time
            with pytest.raises(PipelineError, match="self_tests_pass"):
                world.run(until="clean_benchmark report")
            assert not made(world)
    world.run(until="clean_benchmark report")
    assert made(world) == {*AFTER_THE_SCAN}


class Stopped:
    """A reader in place of one whose process is stopped."""

    def __init__(self, *_, **__):
        raise KeyboardInterrupt


def test_checks_that_a_stopped_run_left_out_are_made_up_for_by_the_next(world, monkeypatch):
    """All scan results are there: without the checks, the scan would be up to date."""
    of_scan = GRAPH.checks_of("scan")
    with monkeypatch.context() as patched:
        patched.setattr("decon_core.quality.self_tests.MatchReader", Stopped)
        with pytest.raises(KeyboardInterrupt):
            world.run(until="scan")
    assert AssetCheckKey(AssetKey("scan"), "self_tests_pass") in unfinished_checks(
        world.instance, of_scan
    )
    scan_results = world.scan_results()
    world.run(until="scan")
    assert "scan: checked again" in world.said
    assert world.scan_results() == scan_results
    assert unfinished_checks(world.instance, of_scan) == []
    assert all(last_evaluation(world.instance, key).passed for key in of_scan)
    world.run(until="scan")
    assert "scan: up to date" in world.said


def test_what_was_held_back_is_asked_for_again_once_the_check_passes(world, monkeypatch):
    def asked_for(before):
        config, store = load_config(world.config_path), world.store
        known = Materialized(world.instance)
        found, after = next_requests(Plan(config, store), known, before)
        return {request.asset for request in found}, after

    with monkeypatch.context() as patched:
        patched.setattr("decon_core.quality.self_tests.MatchReader", FindsNothing)
        with pytest.raises(PipelineError, match="self_tests_pass"):
            world.run(until="scan")
        asked: dict[str, str] = {}
        for stage in ("common_ngrams", "mixture", "clean_benchmark", "report"):
            fresh, asked = asked_for(asked)
            assert fresh == {stage}
        assert asked_for(asked)[0] == set()
    job = build_definitions(
        config_path=str(world.config_path)
    ).resolve_implicit_global_asset_job_def()
    check = AssetCheckKey(AssetKey("scan"), "self_tests_pass")
    again = job.get_subset(asset_selection=frozenset(), asset_check_selection={check})
    assert again.execute_in_process(instance=world.instance).success
    assert asked_for(asked)[0] == {"common_ngrams"}


@pytest.fixture
def blind(world):
    """A benchmark that no detector can see, in a world that ran before the policy required it."""
    world.benchmarks["short"] = [{"question": f"what is {n} ?", "answer": "even"} for n in range(3)]
    world.write_benchmarks()
    world.start(until="report")
    return world


def test_what_is_demanded_later_stops_every_run_until_it_is_so(blind):
    report = blind.store.report.stat().st_mtime_ns
    blind.add_shard("later")
    demand(blind, 'required = ["short"]')
    for _ in range(2):
        with pytest.raises(PipelineError, match="0 of 3 items checkable"):
            run_as_it_is(blind)
    assert blind.store.report.stat().st_mtime_ns == report
    blind.write_config()
    run_as_it_is(blind)
    assert blind.store.report.stat().st_mtime_ns > report


def test_a_stage_that_is_asked_for_alone_looks_for_what_failed_before_it(blind):
    demand(blind, 'required = ["short"]')
    job = build_definitions(
        config_path=str(blind.config_path)
    ).resolve_implicit_global_asset_job_def()
    for asset in ("report", "report_page"):
        result = job.execute_in_process(
            instance=blind.instance, asset_selection=[AssetKey(asset)], raise_on_error=False
        )
        (failure,) = result.get_step_failure_events()
        assert "0 of 3 items checkable" in failure.step_failure_data.user_failure_data.description
