"""The whole graph on an ephemeral instance: what is done, what is left alone, what is refused."""

import errno
import gzip
import json
import os
import platform
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from dagster import AssetKey, DagsterInstance, materialize

from decon_assets.assets.registration import register
from decon_assets.cli.main import main
from decon_assets.cli.store_state import remove_damaged_files
from decon_assets.graph import GRAPH
from decon_assets.instance.cost import cost_line, cost_of_scans
from decon_assets.partitions import scan_key, share
from decon_assets.runner.pipeline import Pipeline, PipelineError
from decon_core.config.load import load_config
from decon_core.corpus.registration import changed_shards, list_packs
from decon_core.corpus.shards import read_shard
from decon_core.errors import CorpusError, InputError, RecordError, StaleError
from decon_core.features.blends.schemas import blend_folder, blend_manifest
from decon_core.planner import Plan
from decon_core.scan.scan_results import COUNTED
from decon_core.storage import listing
from decon_core.storage.files import write_json
from decon_core.storage.paths import local_stamp
from tests.conftest import graph_until
from tests.scan_result_files import as_read


def shards_read(world) -> int:
    """How many shard reads the last run reported, over all its scans."""
    return sum(
        int(n) for line in world.said for n in re.findall(r"read (\d+) shards?, wrote", line)
    )


def found(world) -> set[tuple[str, int, str]]:
    """Leaked (benchmark, instance, shard) triples of the report."""
    with duckdb.connect(str(world.store.report), read_only=True) as connection:
        return set(
            connection.execute(
                "SELECT benchmark, instance_index, shard_name FROM matches WHERE is_contaminated"
            ).fetchall()
        )


def press(world, asset, partition_key):
    """Materialize one partition of one asset, as the button in the UI does."""
    return materialize(
        [*GRAPH.assets],
        selection=[asset],
        instance=world.instance,
        partition_key=partition_key,
        resources=GRAPH.resources(str(world.config_path)),
        raise_on_error=False,
    )


def test_a_mixture_of_a_changed_shard_is_refused_and_not_called_up_to_date(world, capsys):
    world.start()
    shard = world.folder / "corpus" / "s1.jsonl.gz"
    added = b'{"id": "new", "text": "more"}\n'
    shard.write_bytes(gzip.compress(gzip.decompress(shard.read_bytes()) + added))
    of_changed, of_other = (share(pack=f"web-000{n}", mixture="decontaminated") for n in (1, 0))
    (failure,) = press(world, "mixture", of_changed).get_step_failure_events()
    told = str(failure.step_failure_data)
    assert "s1.jsonl.gz: changed or removed since it was registered" in told
    assert "`decon-assets run` registers and scans it" in told
    assert press(world, "mixture", of_other).success
    assert main(["status", "--config", str(world.config_path)]) == 1
    out = capsys.readouterr().out
    assert "mixture decontaminated: 2 of 3 packs up to date" in out
    assert "report: out of date" in out


def test_a_control_has_only_the_sources_of_its_mixture(world, capsys):
    world.mixtures = """
[[corpus.source]]
name = "other"
path = "other/*.jsonl.gz"
[[mixture]]
name = "decontaminated"
sources = ["web"]
[[mixture]]
name = "control"
take = "control"
control_of = "decontaminated"
"""
    world.write_config()
    shard = world.folder / "other" / "o.jsonl.gz"
    shard.parent.mkdir()
    shard.write_bytes(gzip.compress(b'{"id": "old", "text": "little"}\n'))
    world.start()
    shard.write_bytes(gzip.compress(b'{"id": "new", "text": "more"}\n'))
    assert press(world, "mixture", share(pack="other-0000", mixture="control")).success
    assert main(["status", "--config", str(world.config_path)]) == 1
    out = capsys.readouterr().out
    assert "mixture decontaminated: 4 of 4 packs up to date" in out
    assert "mixture control: 4 of 4 packs up to date" in out


def test_a_first_run_finds_every_leak_and_nothing_else(world):
    world.start()
    expected = {
        (benchmark, number, f"s{number}.jsonl.gz")
        for benchmark in ("harbor", "ledger")
        for number in range(3)
    }
    assert found(world) == expected
    assert shards_read(world) == 3


def test_every_partition_of_the_grid_is_materialized_in_the_history(world):
    world.start()
    materialized = world.instance.get_materialized_partitions(AssetKey("scan"))
    wanted = {
        scan_key(pack=f"web-{number:04}", benchmark=benchmark)
        for number in range(3)
        for benchmark in ("harbor", "ledger")
    }
    assert materialized == wanted


def test_running_again_materializes_nothing_and_changes_no_byte(world):
    world.start()
    before = world.scan_results()
    root = world.store.root / "scan_results"
    stamps = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    world.run()
    assert world.scan_results() == before
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == stamps
    states = {stage.name: "up to date" for stage in GRAPH.stages}
    states["blend"] = "skipped: decon.toml has no [[blend]] table"
    states["haystack"] = "skipped: decon.toml has no [haystack] table"
    states["neighbours"] = "skipped: decon.toml has no [neighbours] table"
    states["sketch"] = "skipped: decon.toml has no [sketch] table"
    states["study"] = "skipped: decon.toml has no [study] table"
    assert [line for line in world.said if not line.startswith(" ")] == [
        f"{asset}: {state}" for asset, state in states.items()
    ]


def test_after_a_failed_stage_what_needs_it_is_skipped_and_each_retry_is_named(world, monkeypatch):
    def fill_disk(*_args, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("decon_assets.failures._SECONDS_BEFORE_RETRY", 0)
    monkeypatch.setattr("decon_core.scan.scanner.scan_packs", fill_disk)
    with pytest.raises(PipelineError, match=r"scan: .*No space left on device"):
        world.run()
    retries = [line for line in world.said if "trying again" in line]
    assert retries == ["  OSError: [Errno 28] No space left on device; trying again in 0 s"] * 2
    assert "scan: failed" in world.said
    for stage in ("common_ngrams", "report_page"):
        assert f"{stage}: skipped: scan failed" in world.said


def test_a_benchmark_added_later_is_scanned_alone_and_equals_a_run_from_scratch(
    world, tmp_path_factory
):
    world.start()
    before = world.scan_results()
    world.add_benchmark("orchard")
    world.run(until="scan")
    after = world.scan_results()

    assert {path: after[path] for path in before} == before
    added = set(after) - set(before)
    assert len(added) == 6  # one new scan result per shard, and its n-gram counts
    assert shards_read(world) == 3

    from_scratch = tmp_path_factory.mktemp("from-scratch")
    for item in world.folder.iterdir():
        if item.name != ".decon":
            copy = shutil.copytree if item.is_dir() else shutil.copy2
            copy(item, from_scratch / item.name)
    with DagsterInstance.ephemeral() as other:
        graph = graph_until("scan")
        Pipeline(from_scratch / "decon.toml", other, lambda _: None, graph=graph).run()
    root = from_scratch / ".decon" / "scan_results"
    scratch = {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }
    assert as_read(scratch) == as_read(after)


def test_a_shard_added_later_is_the_only_one_that_is_read(world):
    world.start()
    before = world.scan_results()
    world.add_shard("s9", leaks=[world.benchmarks["harbor"][4]])
    world.run(until="report")
    after = world.scan_results()
    assert {path: after[path] for path in before} == before
    # Two scan results and their counts; shards, ledgers, documents.
    assert len(set(after) - set(before)) == 6
    assert shards_read(world) == 1
    assert ("harbor", 4, "s9.jsonl.gz") in found(world)


def test_a_new_shard_and_a_new_benchmark_together_read_every_shard_once(world):
    world.start()
    world.add_benchmark("orchard")
    world.add_shard("s9")
    world.run(until="scan")
    assert shards_read(world) == 4


def test_changing_one_item_scans_only_that_benchmark_again(world):
    world.start()
    before = world.scan_results()
    world.benchmarks["ledger"][4]["question"] = world.benchmarks["ledger"][4]["question"][::-1]
    world.write_benchmarks()
    world.run(until="scan")
    after = world.scan_results()
    assert {path: after[path] for path in before} == before
    added = set(after) - set(before)
    (version,) = {Path(path).stem for path in added if not path.endswith(COUNTED)}
    current = json.loads(world.store.current_records("ledger").read_text())
    assert version == current["version"]
    assert len(added) == 6
    assert shards_read(world) == 3


def test_a_benchmark_that_is_taken_out_leaves_no_matches_behind(world):
    world.start()
    del world.benchmarks["ledger"]
    world.snapshot = None
    world.write_benchmarks()
    world.run(until="report")
    assert {benchmark for benchmark, _, _ in found(world)} == {"harbor"}
    assert "ledger" not in world.instance.get_dynamic_partitions("benchmark")


def test_a_shard_that_is_taken_out_takes_its_mixture_along_and_its_number_is_not_used_again(world):
    world.start()
    (world.folder / "corpus" / "s2.jsonl.gz").unlink()
    world.run(until="mixture")
    assert [pack.name for pack in list_packs(world.store)] == ["web-0000", "web-0001"]
    assert not world.store.mixture("decontaminated", "web-0002").exists()
    world.add_shard("s5", leaks=[world.benchmarks["harbor"][4]])
    world.run(until="report")
    assert [pack.name for pack in list_packs(world.store)] == ["web-0000", "web-0001", "web-0003"]
    assert ("harbor", 4, "s5.jsonl.gz") in found(world)


def write_stored(path, text, n_bytes):
    """Write a shard of this many bytes of text, blank lines at its end, without compression."""
    content = text.encode().ljust(n_bytes, b"\n")
    path.write_bytes(gzip.compress(content, compresslevel=0, mtime=0))


def test_a_shard_that_was_written_again_with_its_size_and_date_is_scanned_again(world):
    path = world.folder / "corpus" / "s1.jsonl.gz"
    text = gzip.decompress(path.read_bytes()).decode()
    old, new = (world.benchmarks["harbor"][n] for n in (1, 4))
    other = text.replace(old["question"], new["question"]).replace(old["answer"], new["answer"])
    n_bytes = max(len(text), len(other))
    write_stored(path, text, n_bytes)
    world.run(until="report")
    status = path.stat()
    assert ("harbor", 4, "s1.jsonl.gz") not in found(world)
    write_stored(path, other, n_bytes)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    config = load_config(world.config_path)
    (problem,) = filter(None, changed_shards(list_packs(world.store)))
    assert problem.where == str(path)
    assert Plan(config, world.store).changes.new == [str(path)]
    world.run(until="report")
    assert ("harbor", 4, "s1.jsonl.gz") in found(world)


def test_verify_finds_a_shard_that_changed_behind_its_stamp(world, monkeypatch):
    """As on a file system without inodes and times of change."""
    world.start()
    path = world.folder / "corpus" / "s1.jsonl.gz"
    before = local_stamp(path.stat())
    path.write_bytes((world.folder / "corpus" / "s2.jsonl.gz").read_bytes())
    stamp = listing.local_stamp

    def as_before(status):
        return before if status.st_ino == path.stat().st_ino else stamp(status)

    monkeypatch.setattr(listing, "local_stamp", as_before)
    (pack,) = (one for one in list_packs(world.store) if one.shards[0].path == str(path))
    n_bytes, modified_ns, tag = before
    shard = replace(pack.shards[0], n_bytes=n_bytes, modified_ns=modified_ns, tag=tag)
    write_json(world.store.pack(pack.name), replace(pack, shards=(shard,)).to_json())
    config = load_config(world.config_path)
    assert Plan(config, world.store).changes.new == []
    said = []
    remove_damaged_files(config, said.append)
    assert f"  {path}: its content changed since it was registered" in said
    assert Plan(config, world.store).changes.new == [str(path)]


def test_most_of_the_corpus_gone_asks_before_it_removes_anything(world):
    world.start()
    for name in ("s1", "s2"):
        (world.folder / "corpus" / f"{name}.jsonl.gz").unlink()
    with pytest.raises(CorpusError, match=r"2 of 3 registered shards.*--retire"):
        world.run()
    assert world.store.mixture("decontaminated", "web-0001").is_dir()
    world.run(until="mixture", may_retire=True)
    assert [pack.name for pack in list_packs(world.store)] == ["web-0000"]
    assert "web-0001: shards are gone or changed" in "\n".join(world.said)


def test_a_renamed_shard_is_not_scanned_again_and_stands_in_mixtures_under_its_new_name(world):
    world.start()
    before = world.scan_results()
    old = world.folder / "corpus" / "s1.jsonl.gz"
    new = old.with_name("t1.jsonl.gz")
    old.rename(new)
    world.run(until="report")
    assert f"{old}: renamed to {new}; keeping its pack and matches" in world.said
    assert world.scan_results() == before
    assert shards_read(world) == 0
    assert [pack.name for pack in list_packs(world.store)] == ["web-0000", "web-0001", "web-0002"]
    folder = world.store.mixture("decontaminated", "web-0001")
    assert [path.name for path in folder.iterdir() if path.suffix == ".gz"] == ["t1.jsonl.gz"]
    assert "t1.jsonl.gz" in {shard for _, _, shard in found(world)}
    world.run(until="mixture")
    assert "mixture: up to date" in world.said


def test_a_project_that_moved_goes_on_where_it_was(world, tmp_path_factory):
    world.start()
    before = world.scan_results()
    moved = tmp_path_factory.mktemp("elsewhere") / "project"
    world.folder.rename(moved)
    world.folder = moved
    world.run(until="scan")
    assert world.scan_results() == before
    assert shards_read(world) == 0
    shard = list_packs(world.store)[0].shards[0]
    assert shard.path.startswith(str(moved))


def test_a_benchmark_is_left_without_what_leaked_and_waits_for_every_shard(world):
    world.start()
    for name, rows in world.benchmarks.items():
        folder = world.store.clean_benchmark(name)
        manifest = json.loads((folder / "manifest.json").read_text())
        gone = {item["instance_index"] for item in manifest["removed"]}
        lines = (folder / "evals" / f"{name}.jsonl").read_bytes().splitlines()
        left = [json.loads(line) for line in lines]
        assert {row["instance_index"] for row in left} == {*range(len(rows))} - gone
        table = pq.read_table(folder / "parquet" / f"{name}.parquet")
        assert table["question"].to_pylist() == [row["question"] for row in left]
    world.add_shard("s9", leaks=[world.benchmarks["harbor"][4]])
    register(world.config_path, world.instance)
    result = press(world, "clean_benchmark", "harbor")
    (failure,) = result.get_step_failure_events()
    assert "no scan result for harbor" in failure.step_failure_data.user_failure_data.description
    world.run(until="clean_benchmark")
    manifest = json.loads((world.store.clean_benchmark("harbor") / "manifest.json").read_text())
    assert 4 in {item["instance_index"] for item in manifest["removed"]}


def test_a_shard_that_breaks_off_stops_only_what_needs_it(world):
    world.start()
    shutil.rmtree(world.store.root / "mixtures")
    shutil.rmtree(world.store.root / "clean")
    world.add_shard("s8")
    path = world.add_shard("s9", leaks=[])
    broken = path if isinstance(path, Path) else world.folder / "corpus" / "s9.jsonl.gz"
    broken.write_bytes(broken.read_bytes()[:-20])
    with pytest.raises(PipelineError, match=r"s9.*damaged or truncated"):
        world.run(until="mixture clean_benchmark")
    built = sorted(path.parent.name for path in world.store.root.glob("mixtures/*/*/*.gz"))
    names = {pack.name: [shard.name for shard in pack.shards] for pack in list_packs(world.store)}
    assert built == sorted(name for name, shards in names.items() if "s9.jsonl.gz" not in shards)
    assert not (world.store.root / "clean").exists()  # any shard may hold any item


def test_a_mixture_whose_tokenizer_cannot_be_read_stops_no_other_and_no_report(world):
    (world.folder / "broken.json").write_text("{")
    masks = 'cut = "spans"\nwrite = "mask"\ntokenizer = "broken.json"\n'
    world.mixtures = f'[[mixture]]\nname = "clean"\n[[mixture]]\nname = "masks"\n{masks}'
    with pytest.raises(PipelineError, match=r"broken\.json.*expected a tokenizer\.json"):
        world.run(until="report")
    built = {path.parts[-3] for path in world.store.root.glob("mixtures/*/*/*")}
    assert built == {"clean"}
    assert world.store.report.is_file()


BLENDS = """
[[mixture]]
name = "clean"
[[blend]]
name = "plain"
of = "clean"
[[blend]]
name = "contaminated"
of = "clean"
[[blend.contamination]]
benchmarks = ["harbor"]
copies = 1
window = [0.0, 1.0]
most_per_batch = 0.5
"""


def test_blends_are_built_behind_their_mixture_and_one_that_is_refused_stops_no_other(world):
    world.mixtures = BLENDS.replace("copies = 1", "copies = 1000")
    with pytest.raises(PipelineError, match=r"blend 'contaminated': .*but only [0-9]+ may be"):
        world.run(until="report")
    assert blend_manifest(world.store, "plain").is_file()
    assert not blend_folder(world.store, "contaminated").exists()
    with duckdb.connect(str(world.store.report), read_only=True) as connection:
        assert connection.execute("SELECT blend FROM blends").fetchall() == [("plain",)]

    world.mixtures = BLENDS
    world.run(until="report")
    before = modified(blend_folder(world.store, "plain"))
    with duckdb.connect(str(world.store.report), read_only=True) as connection:
        rows = connection.execute(
            "SELECT blend, is_current, n_test_texts FROM blends ORDER BY blend"
        ).fetchall()
        assert rows == [("contaminated", True, 5), ("plain", True, 0)]
        (passes,) = connection.execute(
            "SELECT passes FROM blend_sources WHERE blend = 'plain'"
        ).fetchone()
        assert passes == 1.0
        seen = connection.execute("SELECT count(*) FROM blend_items WHERE is_seen").fetchone()
        assert seen == (5,)
    world.run(until="blend")
    assert modified(blend_folder(world.store, "plain")) == before  # stands, and is left alone
    world.add_shard("s6")
    world.run(until="blend")
    assert modified(blend_folder(world.store, "plain")) != before


EVERYTHING = """
[[mixture]]
name = "original"
take = "everything"
"""


def test_a_setting_that_some_shares_do_not_depend_on_and_then_a_new_shard_outdate_no_card(world):
    plain = '[[blend]]\nname = "whole"\nof = "original"\n'
    world.mixtures = BLENDS + EVERYTHING + plain
    world.start(until="report")
    kept = modified(world.store.mixture("original", "web-0000"))
    world.policy = {"common_share": 0.4}
    world.run(until="report")
    world.add_shard("s6")
    world.run(until="report")
    assert "mixture: 2 mixtures from 1 of 4 packs" in "\n".join(world.said)
    assert modified(world.store.mixture("original", "web-0000")) == kept
    plan = Plan(world.run(until="report").config, world.store)
    assert {"mixture: up to date", "blend: up to date", "report: up to date"} <= {*world.said}
    assert all(
        plan.builder.current_packs(mixture) == {pack.name for pack in plan.packs}
        for mixture in plan.builder.mixtures
    )


def test_a_report_is_built_again_when_other_ngrams_are_common_and_when_they_are_left_out(world):
    """Also if no mixture depends on them."""
    for name in ("s7", "s8"):
        world.add_shard(name, leaks=[world.benchmarks["harbor"][0]])
    world.mixtures = EVERYTHING
    world.policy = {"detectors": ["decon"], "common_least_documents": 4}
    world.start(until="report")
    everything = found(world)

    def common():
        with duckdb.connect(str(world.store.report), read_only=True) as connection:
            return connection.execute("SELECT count(*) FROM common_ngrams").fetchone()

    assert common() == (0,)
    world.policy["common_least_documents"] = 3
    world.run(until="report")
    assert common() > (0,)
    assert found(world) == everything
    world.policy["leave_out_common"] = True
    world.run(until="report")
    assert {(benchmark, number) for benchmark, number, _ in everything - found(world)} == {
        ("harbor", 0)
    }
    world.run(until="report")
    assert "report: up to date" in world.said


def modified(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_mixture_and_report_refuse_records_that_their_file_has_moved_away_from(world):
    world.start()
    world.benchmarks["ledger"][0]["question"] = "something else now"
    world.write_benchmarks()
    for asset, key in (("mixture", "decontaminated|web-0000"), ("report", None)):
        result = press(world, asset, key)
        (failure,) = result.get_step_failure_events()
        description = failure.step_failure_data.user_failure_data.description
        assert "benchmark 'ledger': its recipe or files changed" in description


def test_each_shard_is_opened_once_in_a_scan_of_many_benchmarks(world):
    """Counted by the interpreter itself, not by what the log says."""
    world.add_benchmark("orchard")
    opened, during = [], {}

    def on_open(event, arguments):
        if event == "open" and str(arguments[0]).endswith(".jsonl.gz"):
            opened.append(Path(arguments[0]).name)

    def echo(line):
        """The line of an asset is printed when it is made."""
        during.setdefault(line.partition(":")[0], []).extend(opened)
        opened.clear()

    world.write_config()
    sys.addaudithook(on_open)  # stays for good: later runs append to a list nobody reads
    Pipeline(world.config_path, world.instance, echo, graph=graph_until("scan")).run()
    assert sorted(during["scan"]) == ["s0.jsonl.gz", "s1.jsonl.gz", "s2.jsonl.gz"]


def test_a_partition_says_what_it_holds_even_when_its_scan_results_were_there_already(world):
    world.start()
    press(world, "scan", scan_key(pack="web-0001", benchmark="ledger"))
    event = world.instance.get_latest_materialization_event(AssetKey("scan"))
    metadata = {k: v.value for k, v in event.asset_materialization.metadata.items()}
    assert (metadata["documents"], metadata["matches"]) == (12, 1)
    assert metadata["leaked_items_before_review"] == 1
    assert (metadata["run_shards_read"], metadata["run_scan_results_already_there"]) == (0, 1)
    assert metadata["run_core_seconds"] == metadata["run_gigabytes_read"] == 0
    assert "pack_core_seconds" not in metadata  # nothing of the pack was read


def test_the_cost_of_a_scan_is_told_by_pack_and_run_and_summed_for_the_report(world):
    world.start(until="scan")
    world.add_shard("s7")
    world.run(until="report")
    scan, report = AssetKey("scan"), AssetKey("report")
    records = world.instance.fetch_materializations(scan, limit=20).records
    costs = {}
    for record in records:
        pack = record.partition_key.keys_by_dimension["pack"]
        metadata = record.asset_materialization.metadata
        costs.setdefault(pack, {k: v.value for k, v in metadata.items() if k.startswith("pack_")})
    files = {
        f"web-000{n}": world.folder / "corpus" / f"s{k}.jsonl.gz" for n, k in enumerate("0127")
    }
    assert {pack: cost["pack_gigabytes_read"] for pack, cost in costs.items()} == {
        pack: round(path.stat().st_size / 1e9, 6) for pack, path in files.items()
    }
    assert {cost["pack_nodes"] for cost in costs.values()} == {platform.node()}
    n_runs, total = cost_of_scans(world.instance)
    assert (n_runs, total.n_bytes) == (2, sum(path.stat().st_size for path in files.values()))
    assert total.core_seconds > 0
    of_report = world.instance.get_latest_materialization_event(report).asset_materialization
    assert of_report.metadata["scan_gigabytes_read"].value == round(total.n_bytes / 1e9, 6)
    assert of_report.metadata["scan_runs"].value == n_runs
    peak = of_report.metadata["scan_peak_process_megabytes"].value
    assert cost_line(world.instance) == (
        f"all scans so far: 2 runs, {total.core_seconds:.1f} core-seconds, 0.000 GB read, at most "
        f"{peak:,} MB per process, on {platform.node()}"
    )


def test_the_threshold_moves_without_another_scan(world):
    question = world.benchmarks["harbor"][3]["question"].split()
    # 44 of 51 n-grams and no answer: 0.75 * 44 / 51 = 0.647
    most = {"question": " ".join(question[:48]), "answer": "nothing of the kind"}
    world.add_shard("s3", leaks=[most])
    world.policy = {"detectors": ["decon"], "contamination_score_threshold": 0.95}
    world.start(until="report")
    strict = found(world)
    world.policy = {"detectors": ["decon"], "contamination_score_threshold": 0.6}
    world.run(until="report")
    assert shards_read(world) == 0
    assert found(world) - strict == {("harbor", 3, "s3.jsonl.gz")}


def test_refreezing_idf_asks_for_a_whole_new_scan(world):
    world.start()
    world.add_benchmark("orchard")
    world.snapshot = ["harbor", "ledger", "orchard"]
    with pytest.raises(StaleError, match=r"or recount with `decon-assets run --new-term-weights`"):
        world.run()
    world.run(until="scan", refreeze=True)
    assert shards_read(world) == 3
    scans = {path.partition("/")[0] for path in world.scan_results()}
    assert len(scans) == 2


def test_a_snapshot_counted_under_other_settings_is_refused_with_the_way_out(world):
    world.start()
    world.policy = {"ngram_size": 6}
    with pytest.raises(StaleError, match=r"other policy settings.*run --new-term-weights"):
        world.run()
    current = json.loads(world.store.current_snapshot.read_text())
    write_json(world.store.current_snapshot, {**current, "version": 0})
    with pytest.raises(StaleError, match=r"another version of decon-assets.*--new-term-weights"):
        world.run()
    world.run(until="report", refreeze=True)
    assert len(found(world)) == 6


def test_a_pack_typed_into_the_ui_is_refused(world):
    world.start()
    world.instance.add_dynamic_partitions("pack", ["web-9999"])
    result = press(world, "mixture", "decontaminated|web-9999")
    (failure,) = result.get_step_failure_events()
    description = failure.step_failure_data.user_failure_data.description
    assert "pack 'web-9999': no such pack; expected a registered pack" in description


def test_a_scan_whose_index_is_missing_fails_and_names_the_benchmark(world):
    world.start()
    shutil.rmtree(world.store.root / "index")
    shutil.rmtree(world.store.root / "scan_results")
    (failure,) = press(world, "scan", "harbor|web-0000").get_step_failure_events()
    description = failure.step_failure_data.user_failure_data.description
    assert "'harbor'" in description
    assert "no index" in description
    assert "materialize the `index` asset" in description
    assert not world.scan_results()


@pytest.mark.parametrize("name", ["mmlu|stem", "a...b", "a,b", "a b", "../a", "", "-x"])
def test_a_benchmark_name_that_dagster_would_lose_is_refused(world, name):
    world.benchmarks[name] = world.benchmarks.pop("ledger")
    recipes = json.loads((world.folder / "evals.yaml").read_text())
    recipes["evals"][name] = recipes["evals"].pop("ledger")
    (world.folder / "evals.yaml").write_text(json.dumps(recipes))
    world.snapshot = None
    world.write_config()
    with pytest.raises(InputError, match="Rename it") as error:
        register(world.config_path, world.instance)
    assert repr(name) in str(error.value)
    assert world.instance.get_dynamic_partitions("benchmark") == []


@pytest.mark.parametrize("name", ["mmlu|stem", "never_heard_of"])
def test_a_benchmark_key_typed_into_the_ui_is_checked_again(world, name):
    world.start()
    world.instance.add_dynamic_partitions("benchmark", [name])
    result = press(world, "records", name)
    (failure,) = result.get_step_failure_events()
    description = failure.step_failure_data.user_failure_data.description
    assert name in description
    assert "harbor, ledger" in description


def test_a_bad_benchmark_is_refused_before_it_is_registered(world):
    del world.benchmarks["ledger"][2]["answer"]
    world.write_benchmarks()
    world.write_config()
    with pytest.raises(RecordError, match="answer"):
        register(world.config_path, world.instance)
    assert world.instance.get_dynamic_partitions("benchmark") == []


def test_a_cut_off_shard_fails_its_own_partitions_and_no_others(world):
    path = world.folder / "corpus" / "s1.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(PipelineError, match=r"s1\.jsonl\.gz.*damaged or truncated"):
        world.start(until="scan")
    shards = {path.split("/")[1] for path in world.scan_results()}
    assert len(shards) == 2


def test_a_shard_without_a_readable_row_is_a_problem_as_a_damaged_one(world):
    path = world.folder / "corpus" / "s1.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-200])
    (path.parent / "s3.jsonl.gz").write_bytes(gzip.compress(b"not JSON\n"))
    with pytest.raises(PipelineError, match=r"2 problems:(.|\n)*s3\.jsonl\.gz.*no readable row"):
        world.start(until="scan")


def test_a_shard_that_changed_after_it_was_registered_is_refused(world):
    world.write_config()
    registered = register(world.config_path, world.instance)
    world.add_shard("s1", n_documents=20)
    shard = registered.packs[1].shards[0]
    with pytest.raises(
        CorpusError, match=r"changed since it was registered.*Run the command again"
    ):
        list(read_shard(shard, registered.packs[1].source))
