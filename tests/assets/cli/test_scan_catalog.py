"""`decon-assets scan --evals @set`: benchmarks of the catalog, downloaded from a stand-in hub."""

import json
from pathlib import Path

import duckdb
import pytest
import yaml

from decon_assets.cli.main import main
from decon_core.benchmarks import catalog
from decon_core.report.publish.summary import card_from, notice_of, summary_of
from decon_core.storage.store import Store
from tests.core.report.pages import data_of
from tests.hub_server import NOWHERE, hub_for, use_hub

LEAK = " ".join(f"asked{number}" for number in range(40))


@pytest.fixture
def hub(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(catalog, "sets", lambda: {"small": ["gsm8k", "gpqa_d*", "frontier_math"]})
    (tmp_path / "policy.toml").write_text('tokenizer_str = "words"')
    monkeypatch.chdir(tmp_path)
    with hub_for(monkeypatch, tmp_path / "hub") as hub:
        rows = [{"question": LEAK, "answer": "told by the miller"}]
        for split in ("train", "test"):
            hub.put_rows("openai/gsm8k", rows, split=split, config="main")
        hub.put_rows("Idavidrein/gpqa", [], split="train", config="gpqa_diamond")
        hub.gated.add("Idavidrein/gpqa")
        hub.put("mill/traces/a.jsonl", json.dumps({"text": "plain words " * 40}) + "\n")
        yield hub


def scan(*arguments, corpus="hf://datasets/mill/traces"):
    return main(["scan", corpus, "--evals", "@small", "--policy", "policy.toml", *arguments])


def test_a_gated_benchmark_is_a_named_gap_in_the_summary_the_page_and_the_card(hub, capsys):
    assert scan() == 4
    said = capsys.readouterr().out
    assert "searched for items of 1 of 3 benchmarks; not of:" in said
    assert (
        "  gpqa_diamond: Idavidrein/gpqa is a gated dataset to which you have no access. Accept"
        in said
    )
    assert "  frontier_math: private" in said
    assert "NOT scanned: 1 benchmark: gpqa_diamond" in said
    summary = json.loads(Path("traces-scan/summary.json").read_text())
    assert summary["revisions"] == {"gsm8k": hub.commit("openai/gsm8k")}
    recipes = yaml.safe_load(Path("traces-scan/evals.yaml").read_text())["evals"]
    pins = {name: recipe.get("hf_revision") for name, recipe in recipes.items()}
    assert pins == {**summary["revisions"], "gpqa_diamond": None}
    assert [entry["benchmark"] for entry in summary["not_covered"]] == [
        "gpqa_diamond",
        "frontier_math",
    ]
    report = Store(Path("traces-scan/.store")).report
    published = summary_of(report)
    assert not published["is_complete"]
    notice = "Incomplete: 1 of 3 benchmarks could not be downloaded: gpqa_diamond."
    assert notice_of(published).startswith(notice)
    card = card_from(published)
    assert "searched for the items of 1 of 3 benchmarks" in card
    assert "Benchmark `frontier_math` was not searched for: private" in card
    assert f"dataset at `{hub.commit('openai/gsm8k')[:12]}`" in card
    overview = data_of(Path("traces-scan/report.html"), "overview")
    assert notice in overview["notice"]
    assert "of 1 of 3 benchmarks." in str(overview)
    with duckdb.connect(str(report), read_only=True) as connection:
        ((revision,),) = connection.sql("SELECT revision FROM benchmarks").fetchall()
    assert revision == hub.commit("openai/gsm8k")


def test_a_benchmark_that_nobody_can_have_does_not_fail_the_scan(hub, capsys):
    hub.gated.clear()
    rows = [{"Question": LEAK, "Correct Answer": "a", "High-level domain": "", "Subdomain": ""}]
    rows[0] |= {f"Incorrect Answer {number}": f"b{number}" for number in (1, 2, 3)}
    hub.put_rows("Idavidrein/gpqa", rows, split="train", config="gpqa_diamond")
    assert scan("--no-page") == 0
    assert "searched for items of 2 of 3 benchmarks; not of:" in capsys.readouterr().out


def test_offline_without_a_cache_the_missing_benchmarks_are_named(hub, capsys, monkeypatch):
    use_hub(monkeypatch, NOWHERE)
    Path("a.jsonl").write_text(json.dumps({"text": "plain words " * 40}) + "\n")
    assert scan("--no-page", corpus="a.jsonl") == 1
    said = capsys.readouterr().err
    assert "benchmarks: gsm8k, gpqa_diamond" in said
    assert "could not download 2 of 2 benchmarks, which the cache does not contain" in said


def test_the_catalog_is_compared_with_the_data_sets_of_today(hub, capsys):
    rows = [{"query": "Which?", "answer": "1"}]
    for split in ("test", "train"):
        hub.put_rows("openai/gsm8k", rows, split=split, config="main")
    hub.put_rows("allenai/IFBench_test", [{"prompt": "Write."}], split="train")
    assert main(["catalog", "gsm8k", "ifbench", "beyond_aime", "--check"]) == 1
    said = capsys.readouterr().out
    assert "gsm8k: found columns that differ from those of its recipe: no 'question' among" in said
    assert "ifbench: as in the recipe" in said
    assert "beyond_aime" in said
    assert "2 of 3 recipes do not fit" in said
