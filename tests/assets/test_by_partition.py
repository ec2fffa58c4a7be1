"""What Dagster shows of packs, benchmarks and columns, asked in GraphQL as the UI asks it."""

import gzip
import sys
from pathlib import Path

import pytest
from dagster import AssetCheckKey, AssetKey, evaluate_automation_conditions
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster_graphql.test.utils import execute_dagster_graphql

from decon_assets.definitions import build_definitions
from decon_assets.runner.pipeline import PipelineError
from decon_core.corpus.registration import list_packs
from decon_core.report.tables import TABLES
from decon_core.scan.coverage import scan_fingerprint
from decon_core.storage.files import read_json, write_json
from tests.scan_result_files import ledgers_path

CHECKS = """query Checks($asset: AssetKeyInput!) {
  assetNodeOrError(assetKey: $asset) { ... on AssetNode { assetChecksOrError {
    ... on AssetChecks { checks { name partitionStatuses {
      ... on AssetCheckDefaultPartitionStatuses { succeededPartitions failedPartitions }
    } } }
  } } }
}"""
STATE = """query State($asset: AssetKeyInput!) {
  assetNodeOrError(assetKey: $asset) { ... on AssetNode { staleStatus } }
}"""
STATES = """query States($asset: AssetKeyInput!) {
  assetNodeOrError(assetKey: $asset) { ... on AssetNode {
    partitionKeys staleStatusByPartition
  } }
}"""

COLUMNS = """{assetNodes {assetKey {path} metadataEntries {
    ... on TableSchemaMetadataEntry {schema {columns {name}}}
    ... on TableColumnLineageMetadataEntry {
        lineage {columnName columnDeps {assetKey {path} columnName}}}}}}"""
# What describes files, decisions and settings: no asset has such columns.
WITHOUT_LINEAGE = {
    *("runs", "earlier_rates", "shards", "unreadable", "not_read", "row_origins"),
    "invalid_utf8",
}
WITHOUT_LINEAGE |= {"verdicts", "source_labels", "neighbour_sample", "not_covered"}


@pytest.fixture
def ask_all(world, monkeypatch):
    """A function that asks, by a query, what the webserver would answer."""
    monkeypatch.setenv("DECON_CONFIG", str(world.config_path))
    # Servers of code locations would need it, of which there is none.
    monkeypatch.setattr(world.instance, "get_ref", lambda: None)
    location = LoadableTargetOrigin(
        executable_path=sys.executable, module_name="decon_assets.definitions"
    )
    target = InProcessWorkspaceLoadTarget(InProcessCodeLocationOrigin(location))

    def answer(query, **variables):
        with (
            WorkspaceProcessContext(world.instance, target) as process,
            process.create_request_context() as context,
        ):
            return execute_dagster_graphql(context, query, variables).data

    return answer


@pytest.fixture
def ask(ask_all):
    """The same about an asset."""
    return lambda query, name: ask_all(query, asset={"path": [name]})["assetNodeOrError"]


def checks_of(ask, asset):
    """For each check, the partitions that passed and those that failed."""
    return {
        check["name"]: (set(states["succeededPartitions"]), set(states["failedPartitions"]))
        for check in ask(CHECKS, asset)["assetChecksOrError"]["checks"]
        if (states := check["partitionStatuses"])
    }


def stale(ask, asset):
    node = ask(STATES, asset)
    states = zip(node["partitionKeys"], node["staleStatusByPartition"], strict=True)
    return {key for key, state in states if state == "STALE"}


def job_of(world):
    definitions = build_definitions(config_path=str(world.config_path))
    return definitions.resolve_implicit_global_asset_job_def()


def execute(world, assets=(), checks=()):
    keys = {AssetKey(name) for name in assets}
    job = job_of(world).get_subset(asset_selection=keys, asset_check_selection={*checks})
    return job.execute_in_process(instance=world.instance, raise_on_error=False)


def test_the_failed_pack_of_each_check_is_told_and_blocks_until_it_is_mended(world, ask):
    path = world.folder / "corpus" / "s1.jsonl.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b"{broken\n"))
    world.policy = {"unreadable": "drop"}
    world.run(until="mixture")
    others = {"web-0000", "web-0002"}
    every = {*others, "web-0001"}
    assert checks_of(ask, "corpus") == {
        "every_row_was_read": (others, {"web-0001"}),
        "ledger_is_complete": (every, set()),
        "mixture_adds_up": (every, set()),
        "text_is_utf8": (every, set()),
    }
    assert checks_of(ask, "benchmark_files") == {"self_tests_pass": ({"harbor", "ledger"}, set())}

    shard = list_packs(world.store)[2].shards[0].fingerprint
    scan = scan_fingerprint(world.store, world.policy_in_force())
    ledgers = ledgers_path(world.store, scan, shard)
    content = read_json(ledgers)
    of_pack = AssetCheckKey(AssetKey("corpus"), "ledger_is_complete")
    (failure,) = execute(world, checks=[of_pack]).get_step_failure_events()
    assert (
        "Execute `ledger_is_complete` of `scan`"
        in failure.step_failure_data.user_failure_data.description
    )
    write_json(ledgers, {shard: content[shard] | {"n_rows": 17}})
    check = AssetCheckKey(AssetKey("scan"), "ledger_is_complete")
    assert not execute(world, checks=[check]).success
    assert checks_of(ask, "corpus")["ledger_is_complete"] == (every - {"web-0002"}, {"web-0002"})
    with pytest.raises(PipelineError, match=r"ledger_is_complete(.|\n)*17 rows"):
        world.run(until="mixture")
    write_json(ledgers, content)
    assert execute(world, checks=[check]).success
    assert checks_of(ask, "corpus")["ledger_is_complete"] == (every, set())


def test_a_changed_shard_and_a_changed_benchmark_make_only_their_partitions_stale(world, ask):
    world.start(until="scan")
    assert not stale(ask, "scan") | stale(ask, "records")
    assert ask(STATE, "inventory")["staleStatus"] == "FRESH"
    path = world.folder / "corpus" / "s1.jsonl.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b'{"text": "more"}\n'))
    world.add_benchmark("ledger", n_items=7)
    for _ in range(2):
        result = execute(world, ["corpus", "benchmark_files"])
        events = [event for event in result.all_events if event.is_asset_observation]
    assert result.success
    assert events == []  # nothing changed since it was first observed
    assert stale(ask, "scan") == {"harbor|web-0001", "ledger|web-0001"}
    assert stale(ask, "records") == {"ledger"}
    world.run(until="scan")
    assert not stale(ask, "scan") | stale(ask, "records")


@pytest.mark.filterwarnings("ignore::dagster.PreviewWarning", "ignore::dagster.BetaWarning")
def test_the_automation_condition_of_the_docs_waits_for_all_parts_then_asks_for_the_report(world):
    page = (Path(__file__).parents[2] / "docs" / "backfills.md").read_text(encoding="utf-8")
    (code,) = (block for block in page.split("```python\n")[1:] if "automatic =" in block)
    names = {}
    exec(code.partition("```")[0], names)
    world.start(until="report_page")
    cursor = None

    def requested():
        nonlocal cursor
        result = evaluate_automation_conditions(names["automatic"], world.instance, cursor=cursor)
        cursor = result.cursor
        every = (AssetKey("report"), AssetKey("report_page"))
        return [key.to_user_string() for key in every if result.get_num_requested(key)]

    assert requested() == []
    world.add_shard("s7")
    world.run(until="scan")
    assert requested() == []  # of the mixture, a partition is missing
    world.run(until="mixture")
    assert requested() == ["report", "report_page"]
    assert requested() == []


def test_the_ui_knows_where_the_columns_of_all_tables_come_from(world, ask_all):
    world.write_config()
    columns, lineage = {}, {}
    for node in ask_all(COLUMNS)["assetNodes"]:
        (asset,) = node["assetKey"]["path"]
        for entry in node["metadataEntries"]:
            if "schema" in entry:
                columns[asset] = [column["name"] for column in entry["schema"]["columns"]]
            for column in entry.get("lineage", ()):
                (dep,) = column["columnDeps"]
                origin = ".".join((*dep["assetKey"]["path"], dep["columnName"]))
                lineage[asset, column["columnName"]] = origin
    declared = {f"{name}.{c}": t for name, t in TABLES.items() for c in t.schema.names}
    assert columns["report"] == [*declared]
    with_lineage = {name.partition(".")[0] for asset, name in lineage if asset == "report"}
    assert with_lineage == {*TABLES} - WITHOUT_LINEAGE
    for column, table in declared.items():
        origin = lineage.get(("report", column))
        name = column.partition(".")[2]
        if name in table.origins:
            assert origin == table.origins[name]
        else:
            assert origin in (None, f"{table.origin}.{name}")
    for asset in ("mixture", "blend", "clean_benchmark"):
        assert lineage[asset, "instance_index"].endswith(".instance_index")
