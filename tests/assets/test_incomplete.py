"""A corpus of which one shard is cut off: what is made of the others, and how it is marked."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree as ET

import duckdb
import pytest
from dagster import AssetCheckKey, AssetKey

from decon_assets.cli.main import main
from decon_assets.partitions import scan_key, share
from decon_assets.runner.pipeline import PipelineError
from decon_core.report.open import coverage_of
from tests.conftest import FindsNothing, World

CUT_OFF = "the data is damaged or truncated"
PROGRAM = "import sys; from decon_assets.cli.program import program; sys.exit(program())"


def cut_off(world, name="s1") -> None:
    path = world.folder / "corpus" / f"{name}.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-200])


def asked(world, query):
    with duckdb.connect(str(world.store.report), read_only=True) as connection:
        return connection.execute(query).fetchall()


@pytest.fixture
def incomplete(world):
    """Three shards, one of them cut off, after a run."""
    cut_off(world)
    with pytest.raises(PipelineError, match=CUT_OFF):
        world.start(until="report")
    return world


def test_one_truncated_shard_leaves_a_report_of_the_others(incomplete):
    leaked = asked(incomplete, "SELECT DISTINCT shard_name FROM matches WHERE is_contaminated")
    assert sorted(leaked) == [("s0.jsonl.gz",), ("s2.jsonl.gz",)]
    assert asked(incomplete, "SELECT n_shards_not_scanned FROM runs") == [(1,)]
    ((shard, pack, benchmarks, reason, remedy),) = asked(
        incomplete, "SELECT shard_name, pack, benchmarks, reason, remedy FROM not_scanned"
    )
    assert (shard, pack, benchmarks) == ("s1.jsonl.gz", "web-0001", ["harbor", "ledger"])
    assert CUT_OFF in reason
    assert "replace the shard" in remedy


def test_an_item_without_a_finding_is_not_called_clean_while_a_shard_is_missing(incomplete):
    counts = dict(asked(incomplete, "SELECT status, count(*) FROM item_status GROUP BY ALL"))
    assert counts == {"leaked": 4, "not fully scanned": 6}
    detectors = dict(
        asked(incomplete, "SELECT status, count(*) FROM items_by_detector GROUP BY ALL")
    )
    assert detectors == counts
    flow = asked(incomplete, "SELECT sum(n_clean), sum(n_not_fully_scanned) FROM flow")
    assert flow == [(0, 6)]


def test_mixtures_of_the_complete_packs_are_built_and_that_of_the_truncated_one_is_not(incomplete):
    built = incomplete.instance.get_materialized_partitions(AssetKey("mixture"))
    expected = {share(pack=f"web-000{number}", mixture="decontaminated") for number in (0, 2)}
    assert built == expected
    assert not incomplete.store.mixture("decontaminated", "web-0001").exists()


def test_the_history_shows_the_failed_partitions_and_an_incomplete_report(incomplete):
    scanned = incomplete.instance.get_materialized_partitions(AssetKey("scan"))
    assert scanned == {
        scan_key(pack=f"web-000{number}", benchmark=benchmark)
        for number in (0, 2)
        for benchmark in ("harbor", "ledger")
    }
    event = incomplete.instance.get_latest_materialization_event(AssetKey("report"))
    metadata = event.asset_materialization.metadata
    assert metadata["is_complete"].value is False
    assert CUT_OFF in metadata["not_scanned"].value
    evaluation = last_evaluation(incomplete, "report", "coverage_is_complete")
    assert not evaluation.passed
    assert CUT_OFF in evaluation.metadata["problems"].value


@pytest.mark.parametrize("check", ["self_tests_pass", "ledger_is_complete"])
def test_the_blocking_checks_of_a_scan_that_fails_are_evaluated_all_the_same(incomplete, check):
    assert last_evaluation(incomplete, "scan", check).passed


def test_a_report_is_held_back_where_a_failed_scan_misses_its_self_tests(world, monkeypatch):
    cut_off(world)
    monkeypatch.setattr("decon_core.quality.self_tests.MatchReader", FindsNothing)
    with pytest.raises(PipelineError, match="self_tests_pass"):
        world.run(until="report")
    assert not world.store.report.exists()


def last_evaluation(world, asset, check):
    key = AssetCheckKey(AssetKey(asset), check)
    (record,) = world.instance.event_log_storage.get_asset_check_execution_history(key, limit=1)
    return record.evaluation


def test_a_mended_shard_makes_the_report_complete_again(incomplete):
    (incomplete.folder / "corpus" / "s1.jsonl.gz").unlink()
    incomplete.add_shard("s1", leaks=[incomplete.benchmarks["harbor"][1]])
    incomplete.run()
    assert coverage_of(incomplete.store.report).is_complete
    assert dict(asked(incomplete, "SELECT status, count(*) FROM item_status GROUP BY ALL")) == {
        "leaked": 5,
        "clean": 5,
    }
    page = incomplete.store.report_page.with_name("card.md").read_text()
    assert "Incomplete" not in page


def test_a_report_of_which_nothing_was_read_is_refused(world):
    for name in ("s0", "s1", "s2"):
        cut_off(world, name)
    with pytest.raises(PipelineError, match=CUT_OFF):
        world.run(until="report")
    assert not world.store.report.exists()


def test_common_ngrams_of_what_was_read_do_not_wait_for_a_truncated_shard(world):
    world.policy = {"leave_out_common": True, "common_least_documents": 2}
    cut_off(world)
    with pytest.raises(PipelineError, match=CUT_OFF):
        world.run(until="report")
    assert asked(world, "SELECT count(*) FROM not_scanned") == [(1,)]
    assert world.store.mixture("decontaminated", "web-0000").is_dir()
    assert "common_ngrams: up to date" not in world.said


def test_a_partition_that_was_never_tried_is_listed_as_not_scanned_yet(world):
    world.start(until="scan")
    world.add_benchmark("orchard")
    world.write_config()
    for asset in ("records", "index"):
        material = press(world, asset, "orchard")
        assert material.success
    assert press(world, "report").success
    rows = asked(world, "SELECT DISTINCT benchmarks, reason FROM not_scanned")
    assert rows == [(["orchard"], "not scanned yet")]
    counts = asked(world, "SELECT DISTINCT status FROM item_status WHERE benchmark = 'orchard'")
    assert counts == [("not fully scanned",)]
    others = asked(
        world, "SELECT DISTINCT status FROM item_status WHERE benchmark <> 'orchard' ORDER BY 1"
    )
    assert others == [("clean",), ("leaked",)]


def press(world, asset, partition=None):
    """Materialize an asset as the button in the UI does."""
    from dagster import materialize

    from decon_assets.assets.registration import register
    from decon_assets.graph import GRAPH

    register(world.config_path, world.instance, echo=world.said.append)
    return materialize(
        [*GRAPH.assets],
        selection=[asset],
        instance=world.instance,
        partition_key=partition,
        resources=GRAPH.resources(str(world.config_path)),
        raise_on_error=False,
    )


# From the command line ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder in which `run` ended with a truncated shard; read by the tests below."""
    world = World(tmp_path_factory.mktemp("incomplete"), instance=None)
    harbor, ledger = world.add_benchmark("harbor"), world.add_benchmark("ledger")
    for number in range(3):
        world.add_shard(f"s{number}", leaks=[harbor[number], ledger[number]])
    cut_off(world)
    world.write_config()
    return world


@pytest.fixture
def at_incomplete(home, monkeypatch):
    monkeypatch.setenv("DAGSTER_HOME", str(home.folder / ".dagster"))
    monkeypatch.chdir(home.folder)
    if not home.store.report.is_file():
        assert main(["run"]) == 1
    return home


def test_a_run_ends_with_1_and_names_the_incomplete_report(at_incomplete, capsys):
    assert main(["run"]) == 1
    out, err = capsys.readouterr()
    assert CUT_OFF in err
    assert "Incomplete: 1 of 3 shards was not scanned" in out
    assert str(at_incomplete.store.report) in out


def test_the_tables_of_an_incomplete_report_say_so_first_and_end_with_1(at_incomplete, capsys):
    assert main(["report"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("Incomplete: 1 of 3 shards was not scanned")
    assert CUT_OFF in out
    assert "pack web-0001" in out
    assert ". Replace the shard" in out
    assert main(["report", "--query", "FROM by_source"]) == 1
    assert "Incomplete" in capsys.readouterr().err


def test_status_names_the_shard_that_could_not_be_scanned_and_why(at_incomplete, capsys):
    assert main(["status"]) == 1
    out = capsys.readouterr().out
    assert "s1.jsonl.gz could not be scanned" in out
    assert out.endswith(
        "incomplete: replace the shards that could not be scanned, then run again\n"
    )
    assert "report: up to date, incomplete" in out


def test_verify_says_why_a_run_did_not_build_the_mixture_of_a_pack(at_incomplete, capsys):
    assert main(["mixture", "verify"]) == 1
    err = capsys.readouterr().err
    assert CUT_OFF in err
    assert "not built" not in err


def test_status_and_report_count_a_shard_without_a_readable_row_as_not_scanned(world, capsys):
    shard = world.folder / "corpus" / "s1.jsonl.gz"
    shard.write_bytes(gzip.compress(b'{"text": \n' * 3, mtime=0))
    with pytest.raises(PipelineError, match="none readable"):
        world.start(until="report")
    config = ["--config", str(world.config_path)]
    assert main(["status", *config]) == 1
    assert "harbor: 2 of 3 shards scanned" in capsys.readouterr().out
    assert main(["report", *config]) == 1
    assert "1 of 3 shards was not scanned" in capsys.readouterr().out


def test_every_stage_names_all_shards_without_a_readable_row_and_where_they_are_listed(
    world, capsys
):
    names = ("s1.jsonl.gz", "s2.jsonl.gz")
    for name in names:
        broken = gzip.compress(b'{"text": \n' * 3, mtime=0)
        (world.folder / "corpus" / name).write_bytes(broken)
    with pytest.raises(PipelineError) as error:
        world.start()
    of_stage = str(error.value).partition("clean_benchmark: ")[2]
    assert all(f"{name}: found 3 rows, none readable" in of_stage for name in names)
    assert main(["status", "--config", str(world.config_path)]) == 1
    listed = 'to list all shards: decon-assets report --query "FROM not_scanned"'
    assert listed in capsys.readouterr().out


def test_a_limit_that_holds_for_what_was_read_is_unknown_and_does_not_pass(
    at_incomplete, capsys, tmp_path
):
    junit = tmp_path / "junit.xml"
    assert main(["check", "--max-rate", "0.9", "--junit", str(junit)]) == 1
    out = capsys.readouterr().out
    assert "unknown  harbor" in out
    assert "passed " not in out.replace("of 3 passed", "")
    kinds = {
        case.get("name"): case.find("failure").get("type")
        for case in ET.parse(junit).iter("testcase")
    }
    assert kinds["harbor"] == kinds["ledger"] == "incomplete"
    assert main(["check", "--max-rate", "0.01"]) == 1
    assert re.search("FAILED +harbor", capsys.readouterr().out)


def test_page_card_and_summary_are_marked_as_incomplete(at_incomplete, capsys):
    from tests.core.report.pages import data_of

    folder = at_incomplete.store.report.parent
    assert "**Incomplete: 1 of 3 shards" in (folder / "card.md").read_text()
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["is_complete"] is False
    (row,) = summary["not_scanned"]
    assert (row["shard"], row["benchmarks"]) == ("s1.jsonl.gz", ["harbor", "ledger"])
    assert str(at_incomplete.folder) not in json.dumps(summary)
    overview = data_of(at_incomplete.store.report_page, "overview")
    assert overview["notice"].startswith("Incomplete: 1 of 3 shards")
    assert main(["card"]) == 1
    assert "Incomplete" in capsys.readouterr().err


def test_why_of_a_document_in_another_shard_does_not_fail_on_the_truncated_one(
    at_incomplete, capsys
):
    assert main(["why", "s2-8"]) == 0  # nothing was found of it: all rows are searched
    out, err = capsys.readouterr()
    assert "row 8 of s2.jsonl.gz" in out
    assert "note: the search is incomplete" in err


def test_why_of_a_row_in_the_truncated_shard_gives_the_reason(at_incomplete, capsys):
    assert main(["why", "s1.jsonl.gz:0"]) == 0
    out = capsys.readouterr().out
    assert CUT_OFF in out
    assert "no match at or above" not in out
    assert "no result for these benchmarks\n" in out
    assert "no match in the others" not in out  # there are no others: none was scanned


def test_a_review_of_an_incomplete_report_says_so(at_incomplete, capsys):
    assert main(["review", "--list", "json"]) == 0
    assert "Incomplete: 1 of 3 shards was not scanned" in capsys.readouterr().err


def test_a_comparison_says_which_side_is_incomplete(at_incomplete, capsys, tmp_path):
    other = tmp_path / "other.duckdb"
    shutil.copyfile(at_incomplete.store.report, other)
    assert main(["compare", "decon.toml", str(other)]) == 0
    out = capsys.readouterr().out
    assert "first: Incomplete: 1 of 3 shards was not scanned" in out
    assert "second: Incomplete: 1 of 3 shards was not scanned" in out


def test_a_shard_without_read_permission_blocks_only_what_depends_on_it(world):
    world.write_config()
    path = world.folder / "corpus" / "s1.jsonl.gz"
    path.chmod(0)
    done = as_plain_user("run", "--config", str(world.config_path))
    assert done.returncode == 1
    assert f"{path}: no permission to read the file. Give this user read permission" in done.stderr
    assert asked(world, "SELECT shard_name FROM not_scanned") == [("s1.jsonl.gz",)]
    assert world.store.mixture("decontaminated", "web-0000").exists()
    assert not world.store.mixture("decontaminated", "web-0001").exists()
    path.chmod(0o644)
    assert as_plain_user("run", "--config", str(world.config_path)).returncode == 0
    assert coverage_of(world.store.report).is_complete
    path.chmod(0)  # its content is known now
    assert as_plain_user("status", "--config", str(world.config_path)).returncode == 0


def as_plain_user(*arguments):
    """Run a command without the capabilities by which root may read every file."""
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    program = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run([*drop, *program], capture_output=True, text=True, check=False)
