"""The code location: valid, light to import, complete."""

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace

import pytest
from dagster import AssetKey, load_asset_checks_from_modules, load_assets_from_modules

from decon_assets.assets.metadata import OWNERS, code_reference
from decon_assets.assets.stage import STAGES
from decon_assets.definitions import definitions
from decon_assets.graph import GRAPH
from decon_assets.partitions import MOST_PARTITIONS
from decon_core.feature import all_features

_SENTENCE = r"[a-z]+(_[a-z]+)*_(is|are|was|adds|match|can|pass)(_[a-z0-9]+)*"

# What only some steps, checks and commands need. Dagster imports the location again for every run
# and every code server, so that each of these would be paid for each time.
_HEAVY = (
    "datasets",
    "decon_core.benchmarks",
    "decon_core.config.load",
    "decon_core.corpus",
    "decon_core.planner",
    "decon_core.mixtures",
    "decon_core.report.build",
    "decon_core.scan",
    "fsspec",
    "huggingface_hub",
    "numba",
    "numpy",
    "pandas",
    "plotly",
    "pyarrow",
    "splintr",
    "polars",
    "sqlalchemy",
    "tokenizers",
    "typer",
)
_LOADED = """
import sys
import decon_assets.definitions
print(*sorted(set(sys.argv[1:]) & set(sys.modules)))
"""


def test_importing_the_location_loads_only_what_describes_the_graph():
    command = [sys.executable, "-c", _LOADED, *_HEAVY]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert loaded == []


def test_the_graph_has_every_stage_and_every_asset_says_what_it_is():
    graph = definitions.resolve_asset_graph()
    names = {key.to_user_string() for key in graph.get_all_asset_keys()}
    assert names == {
        "inventory",
        "benchmark_files",
        "corpus",
        "records",
        "term_weights",
        "index",
        "scan",
        "common_ngrams",
        "haystack",
        "neighbours",
        "sketch",
        "mixture",
        "blend",
        "clean_benchmark",
        "report",
        "report_page",
        "scorecard",
        "study",
    }
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        assert node.description, key
        assert node.group_name != "default", key
        assert node.owners == OWNERS, key
        assert node.kinds, key
        assert node.code_version, key


def test_every_function_that_a_stage_names_is_there():
    for stage in STAGES.values():
        for function in (stage.missing_function, stage.remarks_function, stage.unmet_function):
            assert not function or callable(resolve_name(function))


def test_a_feature_that_declares_neither_products_nor_jobs_has_only_commands():
    others = [import_module(one.definitions) for one in all_features() if not one.has_assets]
    assert not load_assets_from_modules(others, include_specs=True)
    assert not load_asset_checks_from_modules(others)


def test_materialize_all_leaves_out_the_scorecard_which_has_a_job_of_its_own():
    graph = definitions.resolve_asset_graph()
    assert graph.materializable_asset_keys == {AssetKey(name) for name in ("inventory", *STAGES)}
    assert definitions.resolve_job_def("scorecard").description


def test_the_inventory_is_tied_to_the_files_and_makes_nothing_else_outdated():
    node = definitions.resolve_asset_graph().get(AssetKey("inventory"))
    assert node.parent_keys == {AssetKey("benchmark_files"), AssetKey("corpus")}
    assert node.child_keys == set()


def test_the_sensor_and_every_job_say_what_they_do():
    repository = definitions.get_repository_def()
    assert {one.name for one in repository.sensor_defs} == {"keep_up", "fail_stage_runs"}
    assert all(one.description for one in repository.sensor_defs)
    jobs = [one for one in repository.get_all_jobs() if not one.name.startswith("__")]
    assert {"everything_missing", "scorecard", "stage_scan"} < {one.name for one in jobs}
    assert all(one.description for one in jobs)


def test_a_grid_is_filled_in_runs_of_so_many_partitions_and_all_else_in_one_run():
    graph = definitions.resolve_asset_graph()
    most = {
        key.to_user_string(): policy.max_partitions_per_run
        for key in graph.get_all_asset_keys()
        if (policy := graph.get(key).backfill_policy) is not None
    }
    grids = {name: n for name, n in most.items() if n is not None}
    assert grids == {"scan": MOST_PARTITIONS, "mixture": MOST_PARTITIONS}
    # Without a policy each partition would be a run of its own.
    partitioned = (k for k in graph.materializable_asset_keys if graph.get(k).is_partitioned)
    assert {key.to_user_string() for key in partitioned} == most.keys()


def test_names_are_words_with_underscores_and_every_check_says_what_must_hold():
    graph = definitions.resolve_asset_graph()
    checks = [graph.get(key) for key in graph.asset_check_keys]
    assert {check.key.name for check in checks} == {one.check_key.name for one in GRAPH.checks}
    for name in [*(key.to_user_string() for key in graph.get_all_asset_keys())]:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", name)
    for check in checks:
        # A sentence that is true when all is well: "records are valid", "index is complete".
        assert re.fullmatch(_SENTENCE, check.key.name), check.key
        assert check.description, check.key
        assert check.description.split("\n")[0].endswith("."), check.key


def test_wrong_data_does_not_flow_on_and_news_does_not_stop_anything():
    graph = definitions.resolve_asset_graph()
    blocking = {key.name for key in graph.asset_check_keys if graph.get(key).blocking}
    assert blocking == {
        "records_are_valid",
        "index_is_complete",
        "enough_can_be_checked",
        "self_tests_pass",
        "ledger_is_complete",
        "excluded_blocks_have_no_match",
        "mixture_adds_up",
        "blend_adds_up",
        "clean_benchmark_adds_up",
    }


def test_every_column_that_comes_from_another_is_one_of_both_assets():
    graph = definitions.resolve_asset_graph()
    columns, lineage = {}, {}
    for key in graph.materializable_asset_keys:
        metadata = graph.get(key).metadata
        if schema := metadata.get("dagster/column_schema"):
            columns[key] = {column.name for column in schema.columns}
        if came := metadata.get("dagster/column_lineage"):
            lineage[key] = came.deps_by_column
    assert len(lineage) == 8
    for asset, came in lineage.items():
        upstream = graph.get_ancestor_asset_keys(asset)
        for name, (dep,) in came.items():
            assert name in columns[asset], (asset, name)
            assert dep.column_name in columns[dep.asset_key], dep
            assert dep.asset_key in upstream, (asset, dep)


def test_every_stage_names_the_place_of_its_code():
    graph = definitions.resolve_asset_graph()
    for stage in GRAPH.stages:
        metadata = graph.get(AssetKey(stage.name)).metadata
        (place,) = metadata["dagster/code_references"].code_references
        lines = Path(place.file_path).read_text().splitlines()[place.line_number - 1 :]
        first = next(line for line in lines if line.startswith("def "))
        assert first.startswith(f"def {stage.name}(")


@pytest.mark.parametrize("is_set", [True, False])
def test_code_of_a_known_repository_is_linked_there(monkeypatch, is_set):
    url = "https://git.example.org/lab/decon/src/v1"
    if is_set:
        monkeypatch.setenv("DECON_CODE_URL", f"{url}/")
    else:  # what pip writes of an install from a repository
        url = "https://github.com/lab/decon/tree/abc"
        origin = {"url": "https://github.com/lab/decon.git", "vcs_info": {"commit_id": "abc"}}
        installed = SimpleNamespace(read_text=lambda _: json.dumps(origin))
        monkeypatch.setattr("decon_assets.assets.metadata.distribution", lambda _: installed)
    (place,) = code_reference(code_reference)["dagster/code_references"].code_references
    line = code_reference.__code__.co_firstlineno
    assert place.url == f"{url}/decon_assets/assets/metadata.py#L{line}"


def test_columns_name_in_the_ui_where_they_come_from():
    metadata = definitions.resolve_asset_graph().get(AssetKey("mixture")).metadata
    schema = metadata["dagster/column_schema"]
    (score,) = (column for column in schema.columns if column.name == "score")
    said = "for a finding: score of the whole record (`scan`: base_score)"
    assert score.description == said
    lineage = metadata["dagster/column_lineage"].deps_by_column
    assert lineage["score"][0].asset_key == AssetKey("scan")


def test_the_lineage_goes_from_files_to_report():
    graph = definitions.resolve_asset_graph()
    upstream = graph.get(AssetKey("scan")).parent_keys
    assert upstream == {AssetKey("index"), AssetKey("corpus"), AssetKey("sketch")}
    assert graph.get(AssetKey("index")).parent_keys == {
        AssetKey("records"),
        AssetKey("term_weights"),
    }
