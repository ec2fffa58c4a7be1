"""The code location: valid, quick to import, complete."""

import subprocess
import sys

from dagster import AssetKey

from decon_assets.definitions import definitions

_COST = """
import sys, time
import dagster
before, start = set(sys.modules), time.process_time()  # others may be at work here
import decon_assets.definitions
print(time.process_time() - start)
print(" ".join(m for m in ("numba", "splintr", "tokenizers", "datasets") if m in sys.modules))
"""


def test_importing_the_location_costs_under_a_second_and_loads_no_tokenizer():
    costs = []
    for _ in range(3):
        out = subprocess.run(
            [sys.executable, "-c", _COST], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        costs.append(float(out[0]))
        assert out[1] == ""
    assert min(costs) < 1.0, costs


def test_the_graph_has_every_stage_and_every_asset_says_what_it_is():
    graph = definitions.resolve_asset_graph()
    names = {key.to_user_string() for key in graph.get_all_asset_keys()}
    assert names == {
        "inventory",
        "benchmark_files",
        "corpus",
        "records",
        "idf_snapshot",
        "index",
        "scan",
        "common_ngrams",
        "mixture",
        "blend",
        "clean_benchmark",
        "report",
        "report_page",
        "scorecard",
    }
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        assert node.description, key
        assert node.group_name != "default", key


def test_the_lineage_goes_from_files_to_report():
    graph = definitions.resolve_asset_graph()
    upstream = graph.get(AssetKey("scan")).parent_keys
    assert upstream == {AssetKey("index"), AssetKey("corpus")}
    assert graph.get(AssetKey("index")).parent_keys == {
        AssetKey("records"),
        AssetKey("idf_snapshot"),
    }


def test_dagster_itself_finds_the_location_valid(monkeypatch):
    monkeypatch.delenv("DAGSTER_HOME", raising=False)  # one that does not exist is an error
    command = [sys.executable, "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
