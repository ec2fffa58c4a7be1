"""Partitions of the grid: what is missing is done, in few runs, and nothing twice."""

import shutil
import subprocess
import sys

import pytest
from dagster import AssetKey, DagsterInstance

from decon_assets.assets.registration import register
from decon_assets.cli.main import main
from decon_assets.definitions import build_definitions
from decon_assets.instance.home import home_for
from decon_assets.run_requests import RANGE_END, RANGE_START
from decon_core.benchmarks.records import current_version
from decon_core.config.load import load_config
from decon_core.corpus.registration import list_packs
from decon_core.scan.coverage import missing_scan_results, scan_fingerprint
from decon_core.scan.scan_results import ScanResults
from decon_core.scan.scanner import scan_packs
from decon_core.storage.checksums import hash_file
from decon_core.storage.drafts import remove
from tests.first_runs import run_command
from tests.scan_result_files import as_read

SCAN = AssetKey("scan")


@pytest.fixture
def indexed(world):
    """A world with everything that a scan needs, and no scan."""
    world.start(until="index")
    assert len(list_packs(world.store)) == 3
    return world


@pytest.fixture
def prepared(at_home):
    """The same where commands are typed."""
    at_home.start(until="index")
    return at_home


def backfilled(world):
    """After `backfill --missing`, or a copy of what it left in another test."""
    run_command(world.folder, "backfill", "--missing")


def register_world(world):
    world.write_config()
    return register(world.config_path, world.instance)


def press(world, asset, corners=None):
    """A run over a range of partitions, as a backfill from the UI starts them."""
    job = build_definitions(
        config_path=str(world.config_path)
    ).resolve_implicit_global_asset_job_def()
    tags = {RANGE_START: corners[0], RANGE_END: corners[1]} if corners else {}
    return job.execute_in_process(
        instance=world.instance,
        asset_selection=[AssetKey(asset)],
        tags=tags,
        raise_on_error=False,
    )


def shards_read(result):
    events = result.asset_materializations_for_node("scan")
    return max(event.metadata["run_shards_read"].value for event in events)


def scanned(instance):
    return set(instance.get_materialized_partitions(SCAN))


def test_a_backfill_that_the_ui_cuts_by_benchmark_reads_each_shard_once(indexed):
    first = press(indexed, "scan", ("harbor|web-0000", "harbor|web-0002"))
    second = press(indexed, "scan", ("ledger|web-0000", "ledger|web-0002"))
    assert (shards_read(first), shards_read(second)) == (3, 0)
    assert len(scanned(indexed.instance)) == 6


def test_what_was_scanned_along_has_the_bytes_of_a_scan_of_its_own(indexed):
    press(indexed, "scan", ("harbor|web-0000", "harbor|web-0002"))
    along = as_read(indexed.scan_results())
    config = load_config(indexed.config_path)
    remove(indexed.store.root / "scan_results")
    for name in ("ledger", "harbor"):
        version = current_version(indexed.store, name)
        scan_packs(indexed.store, list_packs(indexed.store), [version], config.policy)
    assert as_read(indexed.scan_results()) == along


def test_a_benchmark_without_an_index_is_not_scanned_along(indexed):
    indexed.add_benchmark("orchard")
    register_world(indexed)
    press(indexed, "records", ("orchard", "orchard"))
    result = press(indexed, "scan", ("harbor|web-0000", "harbor|web-0002"))
    assert result.success
    version = current_version(indexed.store, "orchard")
    scan = scan_fingerprint(indexed.store, load_config(indexed.config_path).policy)
    assert (
        len(
            missing_scan_results(
                ScanResults(indexed.store, scan), list_packs(indexed.store), [version]
            )
        )
        == 3
    )


def test_a_partition_that_fails_takes_no_other_with_it(indexed):
    path = indexed.folder / "corpus" / "s1.jsonl.gz"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    register_world(indexed)  # another shard, in a pack of its own
    result = press(indexed, "scan", ("harbor|web-0000", "ledger|web-0003"))
    assert not result.success
    expected = {f"{name}|web-000{n}" for name in ("harbor", "ledger") for n in (0, 2)}
    assert scanned(indexed.instance) == expected


def test_two_scans_at_once_read_no_shard_twice_and_leave_the_same_bytes(indexed):
    press(indexed, "scan", ("harbor|web-0000", "harbor|web-0002"))
    alone = as_read(indexed.scan_results())
    remove(indexed.store.root / "scan_results")
    command = [sys.executable, "-c", _SCAN, str(indexed.config_path)]
    both = [
        subprocess.Popen([*command, *names], stdout=subprocess.PIPE, text=True)
        for names in (("harbor", "ledger"), ("ledger", "harbor"))
    ]
    n_read = sum(int(one.communicate(timeout=600)[0]) for one in both)
    assert n_read == 3
    assert as_read(indexed.scan_results()) == alone
    assert not [*indexed.store.drafts.glob("*.lock")]


_SCAN = """
import sys
from pathlib import Path
from decon_core.config.load import load_config
from decon_core.benchmarks.records import current_version
from decon_core.corpus.registration import list_packs
from decon_core.scan.scanner import scan_packs
from decon_core.storage.store import Store

config = load_config(Path(sys.argv[1]))
store = Store(config.store)
versions = [current_version(store, name) for name in sys.argv[2:]]
print(scan_packs(store, list_packs(store), versions, config.policy).n_shards_read)
"""


def test_the_command_scans_what_is_missing_in_runs_of_so_many_partitions(prepared, capsys):
    assert main(["backfill", "--missing", "--partitions-per-run", "2"]) == 0
    assert "3 runs" in capsys.readouterr().out
    assert main(["backfill", "--missing"]) == 0
    assert "nothing is missing" in capsys.readouterr().out


def test_the_command_takes_patterns_and_leaves_the_rest_alone(at_home):
    assert main(["backfill", "--benchmark", "har*", "--pack", "web-000[01]"]) == 0
    (scan, *_) = at_home.instance.get_runs()
    asked = {"command": "backfill", "benchmarks": "har*", "packs": "web-000[01]"}
    assert {f"decon/{name}": value for name, value in asked.items()}.items() <= scan.tags.items()
    with DagsterInstance.from_config(str(home_for(at_home.config_path))) as instance:
        assert scanned(instance) == {"harbor|web-0000", "harbor|web-0001"}


def test_what_was_scanned_along_is_told_to_dagster_by_the_next_backfill(prepared, capsys):
    assert main(["backfill", "--benchmark", "harbor"]) == 0
    n_scan_results = len(prepared.scan_results())
    capsys.readouterr()
    assert main(["backfill", "--missing"]) == 0
    assert "read 0 shards" in capsys.readouterr().out
    assert len(prepared.scan_results()) == n_scan_results
    with DagsterInstance.from_config(str(home_for(prepared.config_path))) as instance:
        assert len(scanned(instance)) == 6


def test_a_dry_run_says_what_there_is_to_read_and_changes_nothing(at_home, capsys, monkeypatch):
    before = sorted(path for path in at_home.folder.rglob("*") if ".dagster" not in str(path))
    assert main(["backfill", "--missing", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "6 partitions in 3 packs" in said
    assert "full scan: 3 shards, read once, " in said
    assert "assumed: no scan has taken 10 s yet" in said
    assert sorted(p for p in at_home.folder.rglob("*") if ".dagster" not in str(p)) == before
    assert main(["backfill", "--benchmark", "harbor"]) == 0
    capsys.readouterr()
    at_home.add_shard("s9")
    assert main(["backfill", "--missing", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "2 partitions in 1 pack\n" in said  # the others were scanned along
    assert "full scan: 1 shard, read once, " in said
    assert "assumed: no scan has taken 10 s yet" in said
    assert "not registered yet: 1 new shard" in said
    monkeypatch.setattr("decon_assets.cli.backfill._LEAST_SECONDS", 0)
    assert main(["backfill", "--missing", "--dry-run"]) == 0
    assert "rate of the last scan" in capsys.readouterr().out


def test_a_new_history_is_told_what_is_scanned_in_runs_of_so_many_partitions(
    prepared, capsys, monkeypatch
):
    backfilled(prepared)
    monkeypatch.setenv("DAGSTER_HOME", str(prepared.folder / "another"))
    capsys.readouterr()
    assert main(["backfill", "--missing", "--dry-run"]) == 0
    assert "nothing to scan" in capsys.readouterr().out
    assert main(["backfill", "--missing", "--partitions-per-run", "4"]) == 0
    assert "2 runs" in capsys.readouterr().out


def test_a_dry_run_counts_what_is_there_twice_as_read_once(prepared, capsys):
    shard = prepared.folder / "corpus" / "s1.jsonl.gz"
    shutil.copy(shard, shard.with_name("s9.jsonl.gz"))
    assert main(["backfill", "--missing", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "8 partitions in 4 packs" in said
    assert "full scan: 3 shards, read once, " in said
    assert main(["backfill", "--missing"]) == 0
    assert "read 3 shards" in capsys.readouterr().out


def test_when_most_shards_are_gone_a_dry_run_refuses_as_the_backfill_does(prepared, capsys):
    backfilled(prepared)
    for name in ("s1", "s2"):
        (prepared.folder / "corpus" / f"{name}.jsonl.gz").unlink()
    capsys.readouterr()
    refusals = []
    for more in (["--dry-run"], []):
        assert main(["backfill", "--missing", *more]) == 2
        refusals.append(capsys.readouterr().err)
    assert refusals[0] == refusals[1]
    assert "2 of 3 registered shards" in refusals[0]
    assert main(["backfill", "--missing", "--retire", "--dry-run"]) == 0
    assert "nothing to scan" in capsys.readouterr().out
    assert main(["backfill", "--missing", "--retire"]) == 0
    assert len(list_packs(prepared.store)) == 1


def test_what_a_command_registers_is_an_inventory_in_the_ui(at_home):
    assert main(["register"]) == 0
    assert main(["register"]) == 0  # nothing new, and looked at nevertheless
    at_home.add_shard("s9")
    assert main(["register"]) == 0
    with DagsterInstance.from_config(str(home_for(at_home.config_path))) as instance:
        found = instance.fetch_materializations(AssetKey("inventory"), limit=9).records
    n_shards = [record.asset_materialization.metadata["shards"].value for record in found]
    assert n_shards == [4, 3, 3]


def test_nothing_chosen_and_names_that_nobody_has_are_refused(at_home, capsys):
    assert main(["backfill"]) == 2
    assert "--missing for all" in capsys.readouterr().err
    assert main(["backfill", "--benchmark", "nobody"]) == 2
    assert "--benchmark nobody: no benchmark matches" in capsys.readouterr().err
    assert main(["backfill", "--pack", "sea-*", "--dry-run"]) == 2
    assert "--pack sea-*: no pack matches" in capsys.readouterr().err


def test_a_new_history_is_told_what_the_store_has_and_nothing_is_read(world):
    world.start(until="report")
    report = hash_file(world.store.report)
    with DagsterInstance.ephemeral() as another:
        world.instance = another
        world.run(until="report")
        assert "read 0 shards" in "".join(world.said)
        assert "report: up to date" in world.said
        assert hash_file(world.store.report) == report
        assert len(scanned(another)) == 6
        assert len(another.get_materialized_partitions(AssetKey("mixture"))) == 3


def test_a_pipeline_says_which_run_was_refused_and_does_the_others(world):
    world.start(until="scan")
    path = world.add_shard("s9")
    path.write_bytes(path.read_bytes()[:-20])
    world.add_shard("t1")
    with pytest.raises(Exception, match=r"s9\.jsonl\.gz"):
        world.run(until="scan")
    config = load_config(world.config_path)
    scan = scan_fingerprint(world.store, config.policy)
    versions = [current_version(world.store, name) for name in ("harbor", "ledger")]
    lacking = missing_scan_results(
        ScanResults(world.store, scan), list_packs(world.store), versions
    )
    assert [shard.name for _, shard, _ in lacking] == ["s9.jsonl.gz"]
