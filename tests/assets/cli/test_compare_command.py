"""`decon-assets compare`, as typed, after a run of the whole chain."""

import json
import os
import shutil

import pytest

from decon_assets.cli.main import main


def through_a_pipe(text):
    """A path that can be read once, as `<(...)` of a shell gives it."""
    out, into = os.pipe()
    os.write(into, text.encode())
    os.close(into)
    return f"/dev/fd/{out}"


def test_a_report_is_compared_with_the_one_before(reported, capsys):
    shutil.copy(reported.store.report, "before.duckdb")
    assert main(["compare", "before.duckdb", "decon.toml", "--exit-code"]) == 0
    assert "the same: 6 leaks in both" in capsys.readouterr().out
    reported.add_shard("s9", leaks=reported.benchmarks["harbor"][3:4])
    reported.run(until="report")
    capsys.readouterr()
    more = ["--json", "c.json", "--html", "c.html"]
    assert main(["compare", "before.duckdb", "decon.toml", "--exit-code", *more]) == 1
    out = capsys.readouterr().out
    assert "6 leaks unchanged; 0 leaks only in first; 0 leaks only in second" in out
    assert "1 not comparable" in out
    found = json.loads((reported.folder / "c.json").read_text())
    assert found["n_shards"] == {"in both": 3, "only in second": 1}
    assert (reported.folder / "c.html").read_text().startswith("<!doctype html>")


def test_one_scan_is_judged_by_two_policies(reported, capsys):
    policy = reported.folder / "other.toml"
    policy.write_text('tokenizer_str = "words"\naligned_threshold = 1.0\n')
    assert main(["compare", "decon.toml", "--policy", "other.toml", "--json", "c.json"]) == 0
    found = json.loads((reported.folder / "c.json").read_text())
    assert {one["setting"]: one["second"] for one in found["settings"]} == {
        "policy.aligned_threshold": 1.0,
        "threshold of aligned": 1.0,
    }
    assert found["n_findings"] == {"same": 6}  # whole copies: no threshold is too high for them
    assert "the same: 6 leaks in both" in capsys.readouterr().out
    policy.write_text('tokenizer_str = "words"\nngram_size = 6\n')
    assert main(["compare", "decon.toml", "--policy", "other.toml"]) == 2
    said = capsys.readouterr().err
    assert "changes ngram_size" in said
    assert "its own store" in said


def test_compare_wants_two_sides(reported, capsys):
    assert main(["compare", "decon.toml"]) == 2
    assert main(["compare", "decon.toml", "x.duckdb", "--policy", "p.toml"]) == 2
    assert main(["compare", "decon.toml", "x.duckdb"]) == 2
    assert "no such file" in capsys.readouterr().err
    assert main(["compare", "decon.toml", "decon.toml", "--limit", "-1"]) == 2


def test_a_policy_that_comes_through_a_pipe_is_applied(reported, capsys):
    policy = through_a_pipe("aligned_threshold = 0.95\n")
    assert main(["compare", "decon.toml", "--policy", policy, "--json", "c.json"]) == 0
    found = json.loads((reported.folder / "c.json").read_text())
    assert {one["setting"]: one["second"] for one in found["settings"]} == {
        "policy.aligned_threshold": 0.95,
        "threshold of aligned": 0.95,
    }
    assert "does not change the policy" not in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "[policy]\n", 'tokenizer_str = "words"\n'])
def test_a_policy_that_changes_nothing_says_so(reported, capsys, text):
    assert main(["compare", "decon.toml", "--policy", through_a_pipe(text)]) == 0
    assert "does not change the policy of decon.toml" in capsys.readouterr().out


def test_after_a_new_benchmark_the_rest_is_compared_and_the_new_one_is_named(reported, capsys):
    reported.add_benchmark("orchard")
    (reported.folder / "p.toml").write_text("aligned_threshold = 1.0\n")
    assert main(["compare", "decon.toml", "--policy", "p.toml", "--html", "c.html"]) == 0
    out = capsys.readouterr().out
    assert "left out: benchmark orchard: not scanned as it is now" in out
    assert "the same: 6 leaks in both" in out
    assert "benchmark orchard" in (reported.folder / "c.html").read_text()


def test_after_a_corrected_benchmark_the_others_are_compared(reported, capsys):
    reported.benchmarks["ledger"][4]["question"] = "another question " * 10
    reported.write_benchmarks()
    (reported.folder / "p.toml").write_text("aligned_threshold = 1.0\n")
    assert main(["compare", "decon.toml", "--policy", "p.toml"]) == 0
    out = capsys.readouterr().out
    assert "left out: benchmark ledger: not scanned as it is now" in out
    assert "the same: 3 leaks in both" in out
