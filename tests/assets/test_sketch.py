"""The `sketch` asset: off by default, written while shards are scanned, used by later scans."""

import json
import shutil

import pytest
from dagster import AssetKey

from decon_assets.assets.metadata import RATE
from decon_assets.checks.scanning import excluded_blocks_have_no_match
from decon_assets.cli.main import main
from decon_assets.partitions import scan_key
from decon_assets.resources import Decon
from decon_core.benchmarks.records import current_version
from decon_core.config.load import load_config
from decon_core.corpus.registration import list_packs
from decon_core.corpus.sketch.pack_sketch import open_pack_sketch
from decon_core.planner import Plan
from decon_core.scan.coverage import scan_fingerprint
from decon_core.scan.scan_results import ANSWERED, COUNTED, ScanResults, about_counts
from decon_core.schemas import GRAM_COUNTS
from decon_core.storage.tables import read_about, write_table_draft

TABLE = "[sketch]\n"


@pytest.fixture
def sketched(world):
    """A world with [sketch], after a scan by the detector that it excludes most blocks for."""
    return sketched_for(world, "decon")


def sketched_for(world, detector):
    world.mixtures, world.policy = TABLE, {"detectors": [detector]}
    world.start(until="scan")
    return world


def answers(world):
    """The records of the answers, by benchmark."""
    paths = world.store.root.rglob(f"*{ANSWERED}")
    return {path: read_about(path)["answers"] for path in paths}


def scan_results(world):
    """The scan results, without what a full scan also counts and an answer also records."""
    return {
        name: content
        for name, content in world.scan_results().items()
        if not name.endswith((COUNTED, ANSWERED))
    }


def scan_metadata(world, benchmark, pack="web-0000"):
    records = world.instance.fetch_materializations(AssetKey("scan"), limit=100).records
    wanted = scan_key(pack=pack, benchmark=benchmark)
    event = next(one.asset_materialization for one in records if one.partition_key == wanted)
    return {name: value.value for name, value in event.metadata.items()}


def test_without_the_table_nothing_is_made(world):
    world.start(until="scan")
    assert not (world.store.root / "sketch").exists()
    assert any(line == "sketch: skipped: decon.toml has no [sketch] table" for line in said(world))


def said(world):
    world.run(until="scan")
    return world.said


def test_one_pass_makes_the_sketch_and_all_scan_results(sketched):
    assert any(
        line.startswith("sketch: 3 packs sketched, 0 already existed") for line in sketched.said
    )
    assert any("scan: read 0 shards, wrote 0 scan results" in line for line in sketched.said)
    assert not answers(sketched)


def test_scan_results_do_not_depend_on_the_sketch(sketched):
    sketched.add_benchmark("orchard")
    sketched.add_shard("s9", leaks=[sketched.benchmarks["orchard"][1]])
    sketched.run(until="scan")
    with_sketch = scan_results(sketched)
    for folder in ("scan_results", "sketch"):
        shutil.rmtree(sketched.store.root / folder)
    sketched.mixtures = ""
    sketched.run(until="scan")
    assert scan_results(sketched) == with_sketch


def test_a_later_benchmark_without_leaks_reads_no_shard(sketched):
    sketched.add_benchmark("orchard")
    sketched.go_on(until="scan")
    found = [one for of_file in answers(sketched).values() for one in of_file.values()]
    assert [one["blocks_read"] for one in found] == [[], [], []]
    assert any("the sketch rules out a match in 3 of 3 blocks" in line for line in sketched.said)
    metadata = scan_metadata(sketched, "orchard")
    assert metadata["shards_answered_from_sketch"] == metadata["blocks_excluded_by_sketch"] == 1
    assert (metadata["run_shards_read"], metadata["blocks_read"]) == (0, 0)
    assert metadata["run_sketch_bytes_read"] > 0
    assert metadata[RATE] == 0  # nothing was read; a dry run takes the rate of an earlier scan
    assert "shards_answered_from_sketch" not in scan_metadata(sketched, "harbor")


def test_a_second_run_has_nothing_to_do_and_status_says_that_packs_have_no_sketch(sketched, capsys):
    sketched.run()
    assert any(line == "sketch: up to date" for line in sketched.said)
    assert main(["status", "--config", str(sketched.config_path)]) == 0
    shutil.rmtree(sketched.store.root / "sketch")
    capsys.readouterr()
    assert main(["status", "--config", str(sketched.config_path)]) == 1
    assert "  sketch: missing or outdated\n" in capsys.readouterr().out


def test_shards_that_were_scanned_before_are_read_once_more(world):
    world.start(until="scan")
    before = scan_results(world)
    world.mixtures = TABLE
    world.run(until="scan")
    assert any(line.startswith("sketch: 3 packs sketched") for line in world.said)
    assert scan_results(world) == before


def test_a_damaged_sketch_is_made_again_by_the_next_run(sketched, caplog):
    config = load_config(sketched.config_path)
    pack = list_packs(sketched.store)[0]
    path = open_pack_sketch(sketched.store, Plan(config, sketched.store).sketch, pack).path
    path.write_bytes(bytes(path.stat().st_size))
    sketched.add_benchmark("orchard")
    sketched.run(until="scan")
    assert "removed; the pack is scanned without it" in caplog.text
    sketched.run(until="scan")
    assert any("1 pack sketched, 0 already existed" in line for line in sketched.said)


def test_common_ngrams_say_nothing_of_a_benchmark_that_was_answered(sketched):
    sketched.add_benchmark("orchard")
    sketched.go_on(until="common_ngrams")
    sketched.run(until="common_ngrams")
    assert any(line == "common_ngrams: up to date" for line in sketched.said)


def test_a_dry_run_says_that_less_may_be_read(sketched, capsys):
    sketched.add_benchmark("orchard")
    sketched.write_config()
    command = ["backfill", "--missing", "--dry-run", "--config", str(sketched.config_path)]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "full scan: 3 shards, read once, " in said
    assert "the sketch excludes blocks, so less may be read" in said


def test_why_says_that_a_row_is_in_a_block_that_was_not_read(sketched, capsys):
    sketched.add_benchmark("orchard")
    sketched.go_on(until="scan")
    shard = list_packs(sketched.store)[0].shards[0]
    capsys.readouterr()
    command = ["why", f"{shard.name}:1", "--config", str(sketched.config_path)]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert (
        "orchard: answered from the sketch; 0 of 1 block of the shard were read; "
        "the block with this row was not, because it cannot contain a match"
    ) in said
    assert main([*command, "--json"]) == 0
    (account,) = json.loads(capsys.readouterr().out)
    (answer,) = account["answered_from_sketch"]
    expected = {"n_blocks": 1, "n_blocks_read": 0, "block": 0, "is_excluded": True}
    assert answer == {"benchmark": "orchard", **expected}


# The check ----------------------------------------------------------------------------------------


def run_check(world):
    return excluded_blocks_have_no_match(Decon(config_path=str(world.config_path)))


def test_excluded_blocks_are_scanned_and_have_no_match(sketched):
    sketched.add_benchmark("orchard")
    sketched.go_on(until="scan")
    result = run_check(sketched)
    assert result.passed
    assert result.metadata["blocks_scanned"].value == 3


def test_blocks_of_a_sketch_that_was_removed_are_not_scanned(sketched):
    sketched.add_benchmark("orchard")
    sketched.go_on(until="scan")
    shutil.rmtree(sketched.store.root / "sketch")
    result = run_check(sketched)
    assert result.passed
    assert result.metadata["blocks_scanned"].value == 0


def test_a_match_in_an_excluded_block_fails_the_check(sketched):
    version = current_version(sketched.store, "harbor")
    scan = scan_fingerprint(sketched.store, load_config(sketched.config_path).policy)
    name = Plan(load_config(sketched.config_path), sketched.store).sketch
    for pack in list_packs(sketched.store):
        for shard in pack.shards:
            results = ScanResults(sketched.store, scan)
            folder = results.folder(shard.fingerprint, version.fingerprint)
            path = folder.counts(version.fingerprint)
            answer = {"sketch": name, "n_blocks": 1, "blocks_read": []}
            about = {**about_counts(path), "answers": {shard.fingerprint: answer}}
            path.unlink()
            answered = path.with_name(path.name.replace(COUNTED, ANSWERED))
            write_table_draft(answered, [], GRAM_COUNTS, about=about)
    result = run_check(sketched)
    assert not result.passed
    assert "matches of harbor" in str(result.metadata["problems"].value)
