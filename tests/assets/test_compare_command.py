"""`decon-assets compare`, as typed, after a run of the whole chain."""

import json
import shutil

import pytest

from decon_assets.cli import main


@pytest.fixture
def at_home(world, tmp_path_factory, monkeypatch):
    """The world with a report, as the current folder."""
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.chdir(world.folder)
    world.write_config()
    assert main(["run"]) == 0
    return world


def test_a_report_is_compared_with_the_one_before(at_home, capsys):
    shutil.copy(at_home.store.report, "before.duckdb")
    assert main(["compare", "before.duckdb", "decon.toml", "--exit-code"]) == 0
    assert "the same: 6 leaks in both" in capsys.readouterr().out
    at_home.add_shard("s9", leaks=at_home.benchmarks["harbor"][3:4])
    assert main(["run"]) == 0
    capsys.readouterr()
    more = ["--json", "c.json", "--html", "c.html"]
    assert main(["compare", "before.duckdb", "decon.toml", "--exit-code", *more]) == 1
    out = capsys.readouterr().out
    assert "6 the same; 0 leaks only in first; 0 leaks only in second" in out
    assert "1 not comparable" in out
    found = json.loads((at_home.folder / "c.json").read_text())
    assert found["n_shards"] == {"in both": 3, "only in second": 1}
    assert (at_home.folder / "c.html").read_text().startswith("<!doctype html>")


def test_one_scan_is_judged_by_two_policies(at_home, capsys):
    policy = at_home.folder / "other.toml"
    policy.write_text('tokenizer_str = "words"\ncontamination_score_threshold = 1.0\n')
    assert main(["compare", "decon.toml", "--policy", "other.toml", "--json", "c.json"]) == 0
    found = json.loads((at_home.folder / "c.json").read_text())
    assert {one["setting"]: one["second"] for one in found["settings"]} == {
        "policy.contamination_score_threshold": 1.0,
        "threshold of decon": 1.0,
    }
    assert found["n_calls"] == {"same": 6}  # whole copies: no threshold is too high for them
    assert "the same: 6 leaks in both" in capsys.readouterr().out
    policy.write_text('tokenizer_str = "words"\nngram_size = 6\n')
    assert main(["compare", "decon.toml", "--policy", "other.toml"]) == 2
    said = capsys.readouterr().err
    assert "other: ngram_size" in said
    assert "a store of its own" in said


def test_compare_wants_two_sides(at_home, capsys):
    assert main(["compare", "decon.toml"]) == 2
    assert main(["compare", "decon.toml", "x.duckdb", "--policy", "p.toml"]) == 2
    assert main(["compare", "decon.toml", "x.duckdb"]) == 2
    assert "no such file" in capsys.readouterr().err
    assert main(["compare", "decon.toml", "decon.toml", "--limit", "-1"]) == 2
