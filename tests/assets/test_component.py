"""The component: the graph in a project of somebody else, twice, and what `dg` says of both."""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import pytest

from decon_assets.assets.gates import failed_checks
from decon_assets.component import DeconComponent
from decon_assets.definitions import definitions
from decon_assets.graph import GRAPH
from decon_assets.instance.home import ensure_home
from decon_assets.resources import Decon
from tests.conftest import World
from tests.dg_projects import PACKAGE, dg_dev, write_project
from tests.long_runs import only_in_long_runs

ROOT = Path(__file__).parents[2]
NAMES = ("web", "code")
# Copies of definitions by Dagster, of which users see nothing either (`decon_assets/__init__.py`).
pytestmark = pytest.mark.filterwarnings("ignore:(?s).* is currently in beta")

TYPE = "decon_assets.component.DeconComponent"


@pytest.fixture
def worlds(tmp_path, instance):
    """Two corpora with benchmarks of their own, and one instance."""
    made = {}
    for name in NAMES:
        (tmp_path / name).mkdir()
        world = made[name] = World(tmp_path / name, instance)
        items = world.add_benchmark(f"{name}_quiz")
        world.add_shard(f"{name}0", leaks=items[:2])
        world.write_config()
    return made


@pytest.fixture
def project(worlds, tmp_path, monkeypatch):
    """The loaded definitions of a project with a component for each corpus."""
    defs = write_project(tmp_path / "project", {n: worlds[n].config_path for n in NAMES})
    monkeypatch.syspath_prepend(str(tmp_path / "project"))
    yield SimpleNamespace(defs=defs, load=lambda: _load(defs.parent))
    for module in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[module]


def _load(package):
    import_module(PACKAGE)
    return dg.load_from_defs_folder(path_within_project=package)


def key_of(name, asset):
    return dg.AssetKey(["decon", name, asset])


def partitions(instance, name):
    dimensions = ("benchmark", "pack", "mixture")
    return [instance.get_dynamic_partitions(f"decon/{name}/{one}") for one in dimensions]


# The graph ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_graph_is_that_of_this_location_under_the_key_prefix(project, name):
    own = definitions.resolve_asset_graph()
    graph = project.load().resolve_asset_graph()
    assert len(graph.get_all_asset_keys()) == len(NAMES) * len(own.get_all_asset_keys())
    for key in own.get_all_asset_keys():
        was, node = own.get(key), graph.get(key_of(name, key.to_user_string()))
        for kept in ("description", "kinds", "owners", "code_version", "backfill_policy", "pools"):
            assert getattr(node, kept) == getattr(was, kept), (key, kept)
        assert node.is_executable == was.is_executable
        assert node.parent_keys == {key_of(name, one.path[-1]) for one in was.parent_keys}
        assert node.partition_mappings == {
            key_of(name, parent.path[-1]): mapping
            for parent, mapping in was.partition_mappings.items()
        }
        assert type(node.partitions_def) is type(was.partitions_def)
        assert node.group_name == name
        assert node.tags["corpus"] == name
        assert _dimensions(node) == [f"decon/{name}/{one}" for one in _dimensions(was)]
        lineage, expected = (one.metadata.get("dagster/column_lineage") for one in (node, was))
        assert bool(lineage) == bool(expected)
        for column, deps in (expected.deps_by_column if expected else {}).items():
            (dep,), (before,) = lineage.deps_by_column[column], deps
            assert dep.asset_key == key_of(name, before.asset_key.path[-1])
            assert dep.column_name == before.column_name
    for check in own.asset_check_keys:
        was = own.get(check)
        node = graph.get(dg.AssetCheckKey(key_of(name, check.asset_key.path[-1]), check.name))
        assert (node.blocking, node.description) == (was.blocking, was.description)


def _dimensions(node):
    partitions = node.partitions_def
    if isinstance(partitions, dg.MultiPartitionsDefinition):
        return [one.partitions_def.name for one in partitions.partitions_defs]
    return [partitions.name] if partitions else []


def test_jobs_sensors_and_resources_of_two_components_have_names_of_their_own(project):
    both = project.load()
    repository = both.get_repository_def()
    own = {job.name for job in definitions.get_repository_def().get_all_jobs()}
    jobs = {job.name for job in repository.get_all_jobs()}
    assert jobs - {"__ASSET_JOB"} == {
        f"decon__{name}__{job}" for name in NAMES for job in own - {"__ASSET_JOB"}
    }
    assert {one.name for one in repository.sensor_defs} == {
        f"decon__{name}__{one}" for name in NAMES for one in ("keep_up", "fail_stage_runs")
    }
    assert {*both.resources} == {
        f"decon__{name}__{one}" for name in NAMES for one in ("decon", "gates")
    }
    assert both.executor is None  # it would be that of all jobs of the project


def test_without_a_prefix_all_names_are_those_of_this_location(world, tmp_path):
    world.write_config()
    component = DeconComponent(config=str(world.config_path))
    built = component.build_defs(SimpleNamespace(path=tmp_path))
    graph, own = built.resolve_asset_graph(), definitions.resolve_asset_graph()
    assert graph.get_all_asset_keys() == own.get_all_asset_keys()
    assert {graph.get(key).group_name for key in graph.get_all_asset_keys()} == {
        "inputs", "benchmarks", "scan", "products"
    }  # fmt: skip
    assert {*built.resources} == {"decon", "gates"}


# Two corpora --------------------------------------------------------------------------------------


def materialize(both, instance, name, asset, **tags):
    job = both.get_repository_def().get_job("__ASSET_JOB")
    part = job.get_subset(asset_selection={key_of(name, asset)})
    return part.execute_in_process(instance=instance, raise_on_error=False, **tags)


def test_two_components_keep_partitions_stores_and_reports_apart(project, worlds, instance):
    both = project.load()
    for name in NAMES:
        assert materialize(both, instance, name, "inventory").success
    for name in NAMES:
        assert partitions(instance, name) == [[f"{name}_quiz"], ["web-0000"], ["decontaminated"]]
        assert materialize(both, instance, name, "records", partition_key=f"{name}_quiz").success
        assert (worlds[name].store.root / "records" / f"{name}_quiz").is_dir()
    for dimension in ("benchmark", "pack", "mixture"):
        assert instance.get_dynamic_partitions(dimension) == []
    for number, name in enumerate(NAMES):
        job = both.get_repository_def().get_job(f"decon__{name}__everything_missing")
        assert job.execute_in_process(instance=instance).success
        done = [
            bool(instance.get_latest_materialization_event(key_of(one, "report"))) for one in NAMES
        ]
        assert done == [at <= number for at in range(len(NAMES))]
        assert worlds[name].store.report.is_file()
        scanned = instance.get_materialized_partitions(key_of(name, "scan"))
        assert {*scanned} == {f"{name}_quiz|web-0000"}
    assert not instance.get_materialized_partitions(dg.AssetKey("scan"))
    # Runs in the process of a job that no code location started: they are in none.
    assert all("dagster/code_location" not in run.tags for run in instance.get_runs())


def test_run_configuration_and_checks_of_other_assets_keep_the_prefix(project, instance):
    both = project.load()
    part = {"partition_key": "web_quiz"}
    settings = {"inventory": {"retire": True}, "term_weights": {"refreeze": True}}
    for name, tags in {"inventory": {}, "records": part, "term_weights": {}}.items():
        config = {"config": settings[name]} if name in settings else {}
        run_config = {"ops": {f"decon__web__{name}": config}}
        made = materialize(both, instance, "web", name, run_config=run_config, **tags)
        assert made.success
    history = instance.event_log_storage.get_asset_check_execution_history
    check = dg.AssetCheckKey(key_of("web", "term_weights"), "snapshot_is_of_todays_versions")
    before = len(history(check, 10))
    assert materialize(both, instance, "web", "records", **part).success
    assert len(history(check, 10)) == before + 1


def test_a_failed_check_blocks_only_its_own_component(project, worlds, instance):
    both = project.load()
    for name in NAMES:
        materialize(both, instance, name, "inventory")
        materialize(both, instance, name, "records", partition_key=f"{name}_quiz")
    (table,) = (worlds["web"].store.root / "records" / "web_quiz").rglob("*.parquet")
    table.write_bytes(b"damaged")
    check = dg.AssetCheckKey(key_of("web", "records"), "records_are_valid")
    job = both.get_repository_def().get_job("__ASSET_JOB")
    part = job.get_subset(asset_selection=frozenset(), asset_check_selection={check})
    part.execute_in_process(instance=instance, raise_on_error=False)
    assert failed_checks(instance, [check]) == [check]
    web, code = (materialize(both, instance, name, "term_weights") for name in NAMES)
    (failure,) = web.get_step_failure_events()
    reason = failure.step_failure_data.user_failure_data.description
    assert "decon/web/records: the check records_are_valid failed" in reason
    assert code.success


def test_the_scorecard_of_a_component_is_under_its_prefix(project, instance):
    both = project.load()
    for job in ("everything_missing", "scorecard"):
        config = {"per_transformation": 1, "background": 1, "detectors": ["decon"]}
        ops = {"decon__web__plant_and_scan": {"config": config}} if job == "scorecard" else {}
        result = (
            both.get_repository_def()
            .get_job(f"decon__web__{job}")
            .execute_in_process(instance=instance, run_config={"ops": ops})
        )
    (event,) = result.get_asset_materialization_events()
    assert event.asset_key == key_of("web", "scorecard")


# The sensor ---------------------------------------------------------------------------------------


def tick(both, instance, name, cursor, end=None):
    repository = both.get_repository_def()
    key = f"decon__{name}__decon"
    context = dg.build_sensor_context(
        instance=instance, cursor=cursor, resources={key: both.resources[key]}
    )
    with context:
        result = repository.get_sensor_def(f"decon__{name}__keep_up")(context)
    for request in result.run_requests or ():
        job = repository.get_job(request.job_name)
        if end:
            end(instance.create_run_for_job(job, tags=request.tags))
        else:
            assert job.execute_in_process(instance=instance, tags=request.tags).success
    reason = result.skip_reason.skip_message if result.skip_reason else ""
    return reason or [request.job_name for request in result.run_requests], result.cursor


def test_the_sensor_of_a_component_makes_its_report_and_waits_only_for_its_own_runs(
    project, instance
):
    both = project.load()
    other = both.get_repository_def().get_job("decon__code__stage_inventory")
    run = instance.create_run_for_job(other, status=dg.DagsterRunStatus.STARTED)
    asked, cursor = [], None
    for _ in range(30):
        said, cursor = tick(both, instance, "web", cursor)
        if said == "everything is up to date":
            break
        asked += said if isinstance(said, list) else []
    assert asked[0] == "decon__web__stage_inventory"
    assert asked[-1] == "decon__web__stage_report_page"
    assert instance.get_latest_materialization_event(key_of("web", "report_page"))
    _, cursor = tick(both, instance, "code", None)
    assert tick(both, instance, "code", cursor)[0] == "waiting for 1 unfinished run"
    instance.report_run_failed(run, "over")
    assert tick(both, instance, "code", cursor)[0] == ["decon__code__stage_inventory"]


def test_the_sensor_waits_for_an_inventory_of_its_component_that_was_cancelled(project, instance):
    both, cursor = project.load(), None
    for _ in range(2):
        _, cursor = tick(both, instance, "web", cursor, end=instance.report_run_canceled)
    said, cursor = tick(both, instance, "web", cursor)
    assert "`inventory` was cancelled" in said
    assert materialize(both, instance, "code", "inventory").success
    assert tick(both, instance, "web", cursor)[0] == said
    assert materialize(both, instance, "web", "inventory").success
    assert tick(both, instance, "web", cursor)[0] == ["decon__web__stage_records"]


# What a project sets ------------------------------------------------------------------------------


def write_component(project, name, **attributes):
    text = {"type": TYPE, "attributes": attributes}
    (project.defs / name / "defs.yaml").write_text(json.dumps(text))


def test_the_resource_may_be_that_of_the_project(project, worlds, instance, monkeypatch):
    write_component(project, "web", key_prefix="decon/web", resource="corpus_of_the_web")
    (project.defs / "resources.py").write_text(
        "import dagster as dg\n"
        "from decon_assets.resources import Decon\n"
        "@dg.definitions\n"
        "def resources():\n"
        "    path = dg.EnvVar('WEB_CONFIG')\n"
        "    return dg.Definitions(resources={'corpus_of_the_web': Decon(config_path=path)})\n"
    )
    monkeypatch.setenv("WEB_CONFIG", str(worlds["web"].config_path))
    both = project.load()
    job = both.get_repository_def().get_job("decon__web__everything_missing")
    assert job.execute_in_process(instance=instance).success
    assert worlds["web"].store.report.is_file()
    assert isinstance(both.resources["decon__code__decon"], Decon)


def refusal(project):
    with pytest.raises(Exception, match="DeconComponent") as raised:
        project.load()
    return str(raised.value.__cause__)


def test_a_component_says_what_it_lacks(project):
    write_component(project, "web", key_prefix=["decon", "web"])
    assert "needs `config` or `resource`" in refusal(project)
    write_component(project, "web", key_prefix=["decon", "web"], config="nowhere.toml")
    assert "defs/web/nowhere.toml: no such file" in refusal(project)


def test_two_components_with_one_prefix_are_refused(project, worlds):
    write_component(project, "web", key_prefix="decon/code", config=str(worlds["web"].config_path))
    assert "same key 'decon__code__" in refusal(project)


# dg -----------------------------------------------------------------------------------------------


DG = Path(sys.executable).with_name("dg")


@pytest.fixture
def ask_dg(tmp_path):
    """What `dg` prints in a folder."""
    home = ensure_home(tmp_path / "dagster_home")  # its settings send no usage data
    environment = {**os.environ, "VIRTUAL_ENV": sys.prefix, "DAGSTER_HOME": str(home)}

    def ask(folder, *command, code=0):
        done = subprocess.run(
            [DG, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    return ask


def test_dg_lists_and_scaffolds_in_a_project_with_two_components(project, worlds, tmp_path, ask_dg):
    """`tests/test_wheel.py` asks `dg check defs` and `dg dev` of such a project."""
    folder = tmp_path / "project"
    # From the folder of the new file to that of the corpus.
    config = os.path.relpath(worlds["web"].config_path, project.defs / "third")
    ask_dg(folder, "scaffold", "defs", TYPE, "third", "--config", config)
    listed = json.loads(ask_dg(folder, "list", "defs", "--json"))
    groups = {one["asset_key"]: one["group_name"] for one in listed["assets"]}
    prefixes = {f"decon/{name}": name for name in NAMES} | {"third": "third"}
    assert groups == {
        f"{prefix}/{asset}": group for prefix, group in prefixes.items() for asset in GRAPH.upstream
    }
    assert {one["name"] for one in listed["sensors"]} == {
        f"{prefix.replace('/', '__')}__{one}"
        for prefix in prefixes
        for one in ("keep_up", "fail_stage_runs")
    }
    file = project.defs / "third" / "defs.yaml"
    file.write_text(file.read_text().replace("group_name", "groupname"))
    assert "groupname" in ask_dg(folder, "check", "yaml", f"{PACKAGE}/defs/third", code=1)


def test_an_editor_gets_a_schema_that_describes_each_attribute(project, tmp_path, ask_dg):
    said = ask_dg(
        tmp_path / "project", "utils", "inspect-component", TYPE, "--defs-yaml-json-schema"
    )
    assert '"additionalProperties": false' in said
    for attribute in ("config", "key_prefix", "group_name", "resource"):
        field = DeconComponent.model().model_fields[attribute]
        assert f'"{attribute}"' in said
        assert field.description.endswith(".")
        assert field.description in said


def test_dg_checks_and_lists_the_definitions_of_this_project(ask_dg):
    assert "All definitions loaded" in ask_dg(ROOT, "check", "defs")
    listed = json.loads(ask_dg(ROOT, "list", "defs", "--json"))
    assert {one["asset_key"] for one in listed["assets"]} == {*GRAPH.upstream}
    assert {one["name"] for one in listed["sensors"]} == {"keep_up", "fail_stage_runs"}


@only_in_long_runs("the test above loads it, and tests/test_wheel.py starts `dg dev` elsewhere")
@pytest.mark.release
def test_dg_dev_serves_this_project(tmp_path, unused_port):
    locations = "repositoriesOrError {... on RepositoryConnection {nodes {location {name}}}}"
    with dg_dev(DG, ROOT, tmp_path / "home", unused_port, os.environ) as ask:
        said = ask(f"{{assetNodes {{assetKey {{path}}}} {locations}}}")
    assert {one["assetKey"]["path"][0] for one in said["assetNodes"]} == {*GRAPH.upstream}
    (repository,) = said["repositoriesOrError"]["nodes"]
    assert repository["location"]["name"] == "decon_assets"
