"""Every asset check passes on good data, and fails on planted bad data."""

import gzip
import json
import re
import shutil
from types import SimpleNamespace

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dagster import AssetCheckSeverity, AssetKey, AssetRecordsFilter

from decon_assets.assets.registration import register
from decon_assets.assets.report_server import link_to
from decon_assets.checks.benchmarks import (
    enough_can_be_checked,
    index_is_complete,
    no_script_is_split,
    records_are_valid,
)
from decon_assets.checks.products import (
    controls_match,
    coverage_is_complete,
    leak_rate_is_steady,
    mixture_adds_up,
    report_is_todays,
)
from decon_assets.checks.scanning import (
    every_row_was_read,
    ledger_is_complete,
    self_tests_pass,
    text_is_utf8,
)
from decon_assets.cli.main import main
from decon_assets.features.blends import blend_adds_up
from decon_assets.graph import GRAPH
from decon_assets.resources import Decon
from decon_assets.runner.pipeline import PipelineError
from decon_core.benchmarks.configured import benchmarks_of
from decon_core.benchmarks.records import current_version, save_records
from decon_core.config.load import load_config
from decon_core.corpus.registration import list_packs
from decon_core.decisions.match_reader import MatchReader
from decon_core.decisions.score_bins import score_bins
from decon_core.errors import ConfigError
from decon_core.features.blends.schemas import blend_folder
from decon_core.index.parts import index_fingerprint
from decon_core.report.open import connect, rows_of
from decon_core.scan.coverage import scan_fingerprint
from decon_core.schemas import INDEX
from decon_core.storage.checksums import seal_database
from decon_core.storage.drafts import remove
from decon_core.storage.files import read_json, write_json
from decon_core.storage.tables import map_arrays, write_arrays, write_parquet
from tests.core.places import manifest_of
from tests.scan_result_files import ledgers_path, scan_result_path


def run_check(check, world):
    decon = Decon(config_path=str(world.config_path))
    function = check.op.compute_fn
    if not function.has_context_arg():
        return check(decon)
    # Outside of a run it takes no event of a check; `test_by_partition.py` looks at these.
    unrun = SimpleNamespace(
        check_specs=[*check.check_specs],
        instance=world.instance,
        has_partition_key=True,
        partition_key="web-0000" if check.check_key.asset_key.path == ["corpus"] else "harbor",
        op_execution_context=SimpleNamespace(log_event=lambda _: None),
    )
    return function.decorated_fn(unrun, decon)


def test_all_pass_on_a_world_that_ran(world):
    world.start()
    assert [one.check_key.name for one in GRAPH.checks if not run_check(one, world).passed] == []


def said(result):
    return result.metadata["problems"].value


def rewritten(path, change):
    """A table as somebody's hand could leave it, put in place as the program does."""
    write_parquet(path, change(pq.read_table(path)))


def records_of(world, benchmark):
    return world.store.records(benchmark, current_version(world.store, benchmark).fingerprint)


def with_column(name, values):
    def change(table):
        at = table.schema.names.index(name)
        return table.set_column(at, table.schema.field(name), pa.array(values(table[name])))

    return change


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda table: table.slice(1), "4 records of 4 items"),
        (
            lambda table: table.drop_columns(["extras"]),
            "its columns differ from the schema: extras",
        ),
        (with_column("benchmark", lambda _: ["other"] * 5), "records of other"),
        (
            with_column("instance_index", lambda _: [0, 1, 0, 3, 4]),
            "1 item number used for two items",
        ),
        (with_column("question", lambda _: ["x"] * 5), "its content has the hash"),
    ],
)
def test_records_check_fails_when_the_table_is_not_what_was_saved(world, change, told):
    world.start()
    rewritten(records_of(world, "harbor"), change)
    result = run_check(records_are_valid, world)
    assert (result.passed, result.severity.value) == (False, "ERROR")
    assert told in said(result)


def test_records_check_fails_on_a_record_without_any_text_and_nothing_flows_on(world):
    world.start()
    table = pq.read_table(records_of(world, "harbor"))
    blank = with_column("question", lambda column: [*column.to_pylist()[:4], " "])(table)
    blank = with_column("answer", lambda column: [*column.to_pylist()[:4], None])(blank)
    save_records(world.store, "harbor", blank)  # counts and content are those that were saved
    assert "1 record without any text: rows 4" in said(run_check(records_are_valid, world))


def test_records_check_fails_on_a_file_that_is_cut_off_or_gone(world):
    world.start()
    path = records_of(world, "harbor")
    path.write_bytes(path.read_bytes()[:100])
    assert "the file is damaged" in said(run_check(records_are_valid, world))
    path.unlink()
    assert "the file is missing" in said(run_check(records_are_valid, world))


def test_index_check_fails_when_a_record_is_gone_or_none_can_be_seen(world):
    world.start()
    policy = world.policy_in_force()
    version = current_version(world.store, "harbor")
    path = world.store.index_part(
        index_fingerprint(world.store, policy), "harbor", version.fingerprint
    )
    arrays, about = map_arrays(path)
    write_arrays(path, arrays | {"dropped": arrays["dropped"][1:]}, about=about)
    result = run_check(index_is_complete, world)
    assert not result.passed
    assert "4 records" in result.metadata["problems"].value
    blind = arrays | {"dropped": np.ones_like(arrays["dropped"])}
    write_arrays(path, blind, schema=INDEX, about=about)
    result = run_check(index_is_complete, world)
    assert "no record that can be checked" in result.metadata["problems"].value
    assert result.severity.value == "WARN"


@pytest.fixture
def half_blind(world):
    """Of `short`, half the questions are too short for `ngram_any`, and all for `decon`."""
    short = [{"question": f"what is {n} plus {n} ?", "answer": "even"} for n in range(3)]
    longer = [{"question": f"{'plus one ' * n} is what ?", "answer": "odd"} for n in range(6, 9)]
    world.benchmarks["short"] = [*short, *longer]
    world.write_benchmarks()
    world.policy = {"detectors": ["decon", "ngram_any"], "eval_min_token_length": 20}
    return world


def demand(world, *settings):
    lines = world.config_path.read_text().splitlines()
    at = lines.index("[evals]") + 1
    world.config_path.write_text("\n".join([*lines[:at], *settings, *lines[at:]]) + "\n")


def test_visibility_check_fails_when_a_rule_sees_too_little_of_a_required_benchmark(half_blind):
    half_blind.start(until="index")
    demand(half_blind, 'required = ["short"]')
    result = run_check(enough_can_be_checked, half_blind)
    assert (result.passed, result.severity.value) == (False, "ERROR")
    assert "short, decon | 0 of 6 items checkable" in result.metadata["problems"].value
    assert result.metadata["n_problems"].value == 1
    assert "| short | ngram_any | 6 | 3 | question too short: 3 |" in (
        result.metadata["visibility"].value
    )


def test_visibility_check_asks_for_the_share_that_the_settings_demand(half_blind):
    half_blind.policy = {"detectors": ["ngram_any"]}
    half_blind.start(until="index")
    for share, is_enough in ((0.5, True), (0.51, False), (1, False), (0, True)):
        half_blind.write_config()
        demand(half_blind, 'required = ["short"]', f"least_checkable_share = {share}")
        assert run_check(enough_can_be_checked, half_blind).passed == is_enough


def test_visibility_check_only_warns_of_a_benchmark_that_is_not_required(half_blind):
    half_blind.start(until="index")
    demand(half_blind, 'required = ["harbor", "ledger"]')
    result = run_check(enough_can_be_checked, half_blind)
    assert (result.passed, result.severity.value) == (False, "WARN")


def test_a_script_that_the_tokenizer_splits_is_a_warning_and_run_says_it_too(at_home, capsys):
    urdu = "تمام انسان آزاد اور حقوق و عزت کے اعتبار سے برابر پیدا ہوئے ہیں"
    at_home.benchmarks["urdu"] = [{"question": f"{n} {urdu}", "answer": str(n)} for n in range(3)]
    at_home.write_benchmarks()
    at_home.policy = {"tokenizer_str": "cl100k", "detectors": ["ratcliff"]}
    at_home.write_config()
    for shard in at_home.folder.glob("corpus/*"):  # so that the run ends with the scan
        shard.write_bytes(shard.read_bytes()[:100])
    assert main(["run"]) == 1
    assert re.search(r"urdu: cl100k needs 3\.\d times as many tokens", capsys.readouterr().err)
    result = run_check(no_script_is_split, at_home)
    assert (result.passed, result.severity.value) == (False, "WARN")
    assert "| urdu | cl100k needs 3." in result.metadata["problems"].value
    assert result.metadata["n_problems"].value == 1
    at_home.policy["detectors"] = ["exact"]
    at_home.write_config()
    assert run_check(no_script_is_split, at_home).passed


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ('required = ["habor"]', r"evals\.required: found 'habor'.*Did you mean 'harbor'"),
        ('benchmarks = ["harbor", "legder"]', r"evals\.benchmarks: .*Did you mean 'ledger'"),
        (
            'benchmarks = ["ledger"]\nrequired = ["harbor"]',
            r"evals\.required: found 'harbor'; expected one of ledger",
        ),
    ],
)
def test_a_benchmark_that_no_recipe_has_is_refused_wherever_it_is_named(world, setting, said):
    world.write_config()
    demand(world, setting)
    with pytest.raises(ConfigError, match=said):
        benchmarks_of(load_config(world.config_path))


def test_visibility_check_says_nothing_of_what_is_not_indexed_yet(world):
    world.start()
    world.add_benchmark("late")
    demand(world, 'required = ["late"]')
    assert run_check(enough_can_be_checked, world).passed


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("required = 3", "evals.required: found 3"),
        (
            "least_checkable_share = 1.5",
            "evals.least_checkable_share: found 1.5; expected a number",
        ),
        ("least_checkable_share = true", "evals.least_checkable_share: found True"),
        ("requires = []", "Did you mean 'required'"),
    ],
)
def test_a_demand_that_makes_no_sense_is_refused(world, setting, said):
    world.write_config()
    demand(world, setting)
    with pytest.raises(ConfigError, match=said):
        load_config(world.config_path)


def test_reading_check_fails_on_a_broken_line_and_the_mixture_is_refused(world):
    path = world.folder / "corpus" / "s1.jsonl.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b"{broken\n"))
    with pytest.raises(PipelineError, match=r"s1\.jsonl\.gz: line 13: not JSON"):
        world.start(until="mixture")
    for _ in range(2):  # told until it is mended, and the others are not read again for it
        result = run_check(every_row_was_read, world)
        assert not result.passed
        assert "row 12" in result.metadata["problems"].value
    assert (result.metadata["looked_at"].value, result.metadata["n_problems"].value) == (1, 1)
    world.policy = {"unreadable": "drop"}
    world.run(until="mixture")
    result = run_check(every_row_was_read, world)
    assert (result.passed, result.severity.value) == (False, "WARN")


def test_utf8_check_names_the_row_and_blocks_only_where_the_policy_does(world):
    world.start()
    assert run_check(text_is_utf8, world).passed
    path = world.folder / "corpus" / "s1.jsonl.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b'{"text": "caf\xe9"}\n'))
    world.run(until="mixture")
    for _ in range(2):
        result = run_check(text_is_utf8, world)
        assert (result.passed, result.severity.value) == (False, "WARN")
        assert "row 12" in result.metadata["problems"].value
    world.policy = {"invalid_utf8": "block"}
    with pytest.raises(PipelineError, match=r"s1\.jsonl\.gz.*UTF-8"):
        world.run(until="mixture")
    result = run_check(text_is_utf8, world)
    assert (result.passed, result.severity.value) == (False, "ERROR")


def unioned(world):
    """The search file that a scan of everything maps to memory."""
    # Not the questions of `aligned` and the tables of visible items, which lie beside it.
    files = (world.store.root / "search").rglob("*.arrow")
    (path,) = (file for file in files if "-" not in file.stem)
    return path


@pytest.mark.parametrize(
    ("array", "damage"),
    [
        ("filter", np.zeros_like),  # no n-gram gets past it
        ("ids", lambda ids: ids + 1),  # as when another tokenizer speaks
        ("weights", np.zeros_like),  # nothing tells anything
        ("own_question_total", lambda total: total * 20),  # a share that nothing can reach
        ("postings", np.zeros_like),  # every n-gram leads to one question
    ],
)
def test_self_test_check_fails_when_the_search_is_broken(world, array, damage):
    world.start()
    path = unioned(world)
    arrays, about = map_arrays(path)
    write_arrays(path, arrays | {array: damage(arrays[array])}, about=about)
    result = run_check(self_tests_pass, world)
    assert (result.passed, result.severity.value) == (False, "ERROR")
    assert result.metadata["n_problems"].value > 0
    assert "the planted item (jsonl.zst)" in said(result)


def test_self_test_check_fails_when_the_index_is_that_of_another_benchmark(world):
    world.add_benchmark("short", n_items=3)
    world.start(until="scan")
    fingerprint = index_fingerprint(world.store, world.policy_in_force())
    parts = {
        name: world.store.index_part(
            fingerprint, name, current_version(world.store, name).fingerprint
        )
        for name in ("harbor", "ledger", "short")
    }
    remove(world.store.root / "search")
    shutil.copyfile(parts["ledger"], parts["harbor"])
    result = run_check(self_tests_pass, world)
    assert "| harbor: test" in said(result)
    assert "| ledger: test" not in said(result)
    shutil.copyfile(parts["short"], parts["harbor"])
    assert "an index of 3 records" in said(run_check(self_tests_pass, world))


def test_self_test_check_fails_when_the_settings_find_nothing(world):
    world.policy = {"eval_min_token_length": 1000}
    with pytest.raises(PipelineError, match="self_tests_pass"):
        world.run(until="scan")
    result = run_check(self_tests_pass, world)
    assert "no item that a detector can find" in said(result)
    assert "| harbor | aligned |" in result.metadata["nothing_to_plant"].value


def test_self_test_check_says_of_which_benchmark_nothing_can_be_planted_and_passes(half_blind):
    half_blind.start(until="scan")
    result = run_check(self_tests_pass, half_blind)
    assert result.passed
    assert result.metadata["nothing_to_plant"].value.splitlines()[2:] == ["| short | decon |"]


def test_self_tests_of_items_whose_answer_is_a_number_or_a_choice_pass(world):
    for item, answer in zip(
        world.benchmarks["harbor"], ("18", "-3", "(B)120", "4,200", "x"), strict=True
    ):
        item["answer"] = answer
    world.write_benchmarks()
    world.start(until="scan")
    assert run_check(self_tests_pass, world).passed


def test_self_tests_leave_nothing_behind_among_what_was_scanned(world):
    world.start()
    before = {path for path in world.store.root.rglob("*") if path.is_file()}
    assert run_check(self_tests_pass, world).passed
    assert {path for path in world.store.root.rglob("*") if path.is_file()} == before


def scanned(world, number=0):
    """Of a shard: its fingerprint, and how scan results are named."""
    shard = list_packs(world.store)[number].shards[0]
    return scan_fingerprint(world.store, world.policy_in_force()), shard.fingerprint


def change_ledger(world, change):
    """Change the ledgers of all shards in the file that has the ledger of the first."""
    path = ledgers_path(world.store, *scanned(world))
    write_json(path, of_each(read_json(path), change))


def of_each(ledgers, change):
    return {shard: change(ledger) for shard, ledger in ledgers.items()}


def with_17_rows(ledger):
    return {**ledger, "n_rows": 17}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda ledger: {**ledger, "n_documents": 11}, "12 rows: 11 documents and 0 unreadable"),
        (
            lambda ledger: {**ledger, "n_documents": 11, "n_rows": 11},
            "12 documents | 11, as in the ledger",
        ),
        (lambda ledger: {**ledger, "shard": "another"}, "a ledger of shard another"),
        (lambda ledger: {"n_rows": 12}, "invalid ledgers"),
    ],
)
def test_ledger_check_fails_when_the_account_does_not_fit(world, change, told):
    world.start()
    change_ledger(world, change)
    result = run_check(ledger_is_complete, world)
    assert (result.passed, result.severity.value) == (False, "ERROR")
    assert told in said(result)


def test_ledger_check_fails_when_scan_results_have_no_ledger(world):
    world.start()
    ledgers_path(world.store, *scanned(world)).unlink()
    assert "documents without ledgers" in said(run_check(ledger_is_complete, world))


def test_ledger_check_names_scan_results_that_are_another_shards_or_cannot_be_read(world):
    world.start()
    version = current_version(world.store, "harbor").fingerprint
    first, second = (
        scan_result_path(world.store, *scanned(world, number), version) for number in range(2)
    )
    whole = first.read_bytes()
    for content, told in (
        (second.read_bytes(), "matches of shard"),
        (whole[:-20], "the file is damaged"),
        (b"", "the file is damaged"),
    ):
        remove(first)
        first.write_bytes(content)
        result = run_check(ledger_is_complete, world)
        assert told in said(result)
        assert str(first)[-40:] in said(result)
    remove(first)
    first.write_bytes(whole)
    assert run_check(ledger_is_complete, world).passed


def overwrite_json(path, value):
    """Another content with its own checksum, written into the file that is there."""
    aside = path.parents[1] / "elsewhere.json"
    write_json(aside, value)
    content = aside.read_bytes()
    aside.unlink()
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda path, other, _: path.write_bytes(other.read_bytes()), "matches of shard"),
        (lambda path, *_: path.write_bytes(b"x" * path.stat().st_size), "the file is damaged"),
        (
            lambda *paths: overwrite_json(paths[2], of_each(read_json(paths[2]), with_17_rows)),
            "17 rows: 12 documents",
        ),
    ],
)
def test_ledger_check_sees_what_was_written_in_place_after_it_was_found_right(world, damage, told):
    world.start()
    assert run_check(ledger_is_complete, world).passed
    version = current_version(world.store, "harbor").fingerprint
    path, other = (
        scan_result_path(world.store, *scanned(world, number), version) for number in range(2)
    )
    ledger = ledgers_path(world.store, *scanned(world))
    folder = path.parent.stat().st_mtime_ns
    damage(path, other, ledger)
    assert path.parent.stat().st_mtime_ns == folder  # of the folder's own date nobody can tell
    assert told in said(run_check(ledger_is_complete, world))


def test_ledger_check_fails_on_a_scan_result_whose_matches_are_gone_until_it_is_made_again(world):
    harbor = world.benchmarks["harbor"]
    world.add_shard("s7", leaks=harbor[:3])
    world.start(until="scan")
    version = current_version(world.store, "harbor").fingerprint
    packs = {pack.shards[0].name: pack for pack in list_packs(world.store)}
    scan = scanned(world)[0]
    shard = packs["s7.jsonl.gz"].shards[0].fingerprint
    path = scan_result_path(world.store, scan, shard, version)
    n_matches = pq.read_metadata(path).num_rows
    rewritten(path, lambda table: table.slice(0, 1))
    for _ in range(2):  # a fault is not learnt
        assert f"1 matches | {n_matches}, as first seen" in said(
            run_check(ledger_is_complete, world)
        )
    world.add_benchmark("late")  # other stamps for all shards
    assert not run_check(ledger_is_complete, world).passed
    remove(path.parent)
    world.run(until="scan")
    assert run_check(ledger_is_complete, world).passed


def test_ledger_check_fails_on_a_scan_result_of_other_columns(world):
    world.start()
    version = current_version(world.store, "harbor").fingerprint
    path = scan_result_path(world.store, *scanned(world), version)
    rewritten(path, lambda table: table.drop_columns(["text_id"]))
    assert "its columns differ from the schema: text_id" in said(
        run_check(ledger_is_complete, world)
    )


def test_what_was_right_and_did_not_change_is_not_looked_at_again(world):
    world.start()
    checks = (ledger_is_complete, every_row_was_read, mixture_adds_up)
    for check in (records_are_valid, *checks):
        run_check(check, world)
        metadata = run_check(check, world).metadata
        assert metadata["looked_at"].value == 0
        assert metadata["right_and_unchanged"].value > 0
    world.add_shard("s7")
    world.run(until="mixture")
    for check in checks:
        metadata = run_check(check, world).metadata
        assert metadata["right_and_unchanged"].value == 4


def test_what_is_wrong_is_told_again_until_it_is_mended(world):
    world.start()
    shard = world.store.mixture("decontaminated", "web-0000") / "s0.jsonl.gz"
    content = shard.read_bytes()
    shard.write_bytes(content + b"x")
    for _ in range(2):
        assert not run_check(mixture_adds_up, world).passed
    shard.write_bytes(content)
    assert run_check(mixture_adds_up, world).passed


def test_mixture_check_tells_of_an_account_that_cannot_be_read(world):
    world.start()
    manifest_of(world.store.mixture("decontaminated", "web-0000")).write_text("{")
    assert "damaged" in said(run_check(mixture_adds_up, world))


def test_mixture_check_fails_when_a_written_shard_was_touched(world):
    world.start()
    shard = world.store.mixture("decontaminated", "web-0000") / "s0.jsonl.gz"
    shard.write_bytes(shard.read_bytes() + b"x")
    assert not run_check(mixture_adds_up, world).passed


def test_mixture_check_fails_when_a_document_is_unaccounted_for(world):
    world.start()
    path = manifest_of(world.store.mixture("decontaminated", "web-0000"))
    manifest = json.loads(path.read_text())
    manifest["shards"][0]["removed"]["leak"] -= 1
    path.write_text(json.dumps(manifest))
    assert not run_check(mixture_adds_up, world).passed


PRODUCTS = """
[[mixture]]
name = "decontaminated"
[[mixture]]
name = "control"
take = "control"
control_of = "decontaminated"
[[blend]]
name = "stream"
of = "decontaminated"
"""


@pytest.fixture
def blended(world):
    world.mixtures = PRODUCTS
    world.start(until="blend")
    return world


def test_blend_check_fails_when_a_part_or_the_account_was_touched(blended):
    assert run_check(blend_adds_up, blended).passed
    folder = blend_folder(blended.store, "stream")
    path = manifest_of(folder)
    manifest = json.loads(path.read_text())
    part = folder / manifest["parts"][0]["file"]
    content = part.read_bytes()
    part.write_bytes(content + b"x")
    assert not run_check(blend_adds_up, blended).passed
    part.write_bytes(content)
    manifest["totals"]["n_drawn"] += 1
    path.write_text(json.dumps(manifest))
    assert not run_check(blend_adds_up, blended).passed


def test_control_check_warns_of_a_control_that_is_not_near_its_treatment(blended):
    path = manifest_of(blended.store.mixture("control", "web-0000"))
    manifest = json.loads(path.read_text())
    (told,) = manifest["control"]
    assert told["n_drawn"] == told["n_documents"] > 0
    for changes, is_near in (({}, True), ({"n_drawn": 0}, False), ({"n_tokens": 1}, False)):
        near = {"n_drawn_tokens": told["n_tokens"]}
        for path in blended.store.mixture_manifests("control").glob("*/manifest.json"):
            content = json.loads(path.read_text())
            content["control"] = [{**told, **near, **changes}]
            write_json(path, content)
        found = run_check(controls_match, blended)
        assert found.passed is is_near
        assert found.severity == AssetCheckSeverity.WARN


def test_coverage_check_fails_when_a_shard_was_not_scanned(world):
    world.start()
    world.add_shard("s7")
    register(world.config_path, world.instance)
    result = run_check(coverage_is_complete, world)
    assert not result.passed
    assert "s7.jsonl.gz" in result.metadata["problems"].value


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("DELETE FROM matches", "matches: harbor | none in `matches`, 3 matches, 3 findings"),
        ("UPDATE matches SET is_contaminated = false", "harbor | 3 matches, 3 findings, 0 leaks"),
        ("DELETE FROM findings", "documents | 6 findings, 6 leaks | 0 findings, 0 leaks"),
        ("DELETE FROM documents", "documents | 0 findings, 0 leaks | 6 findings, 6 leaks"),
        ("DELETE FROM items", "items: harbor | 0 items, but 5 in table `benchmarks`"),
        (
            "DELETE FROM items WHERE instance_index = 4",
            "items: ledger | 4 items, but 5 in table `benchmarks`",
        ),
        ("DELETE FROM removed", "removed: decontaminated, web | none in the report, 6 rows now"),
        ("DELETE FROM shards WHERE shard_name LIKE 's0%'", "s0.jsonl.gz | none in the report, "),
        ("DELETE FROM mixtures WHERE shard_name LIKE 's0%'", "0 shards, or different counts"),
        ("UPDATE mixtures SET n_documents_out = 0", "with the counts of its manifest"),
        ("DROP TABLE benchmarks CASCADE", "cannot be queried"),
    ],
)
def test_coverage_check_holds_the_report_to_the_store(world, damage, told):
    world.start()
    with duckdb.connect(str(world.store.report)) as connection:
        connection.execute(damage)
    seal_database(world.store.report)  # changed on purpose, not by a disk
    result = run_check(coverage_is_complete, world)
    assert (result.passed, told in said(result)) == (False, True), said(result)


def test_coverage_check_names_a_share_of_a_mixture_that_is_gone_and_one_that_never_was(world):
    world.start()
    remove(world.store.mixture("decontaminated", "web-0000"))
    told = said(run_check(coverage_is_complete, world))
    assert (
        "mixtures: decontaminated, web-0000 | the files that the report lists are not in the store"
        in told
    )
    assert "web-0001" not in told
    with duckdb.connect(str(world.store.report)) as connection:
        connection.execute("DELETE FROM mixtures WHERE pack = 'web-0000'")
    seal_database(world.store.report)
    assert "web-0000 | not built" in said(run_check(coverage_is_complete, world))


def test_coverage_check_fails_without_a_report(world):
    world.start()
    remove(world.store.report)
    assert "no such file" in said(run_check(coverage_is_complete, world))


def test_report_check_warns_once_files_settings_or_products_moved_on_and_says_which(world):
    world.start()
    assert run_check(report_is_todays, world).passed
    shard = world.folder / "corpus" / "s1.jsonl.gz"
    content = shard.read_bytes()
    shard.write_bytes(gzip.compress(gzip.decompress(content).replace(b"CC0-1.0", b"CC0-1.1")))
    result = run_check(report_is_todays, world)
    assert (result.passed, result.severity.value) == (False, "WARN")
    for told in (said(result), said(run_check(coverage_is_complete, world))):
        assert told.count("s1.jsonl.gz | changed since it was registered") == 1
        assert told.count("s1.jsonl.gz") == 1
        assert "s0.jsonl.gz" not in told
    shard.write_bytes(content)
    world.policy = {"aligned_threshold": 0.95}
    world.write_config()
    told = said(run_check(report_is_todays, world))
    assert re.search(r"the thresholds \| \S.* in the report, .* now", told)
    state = "up to date when the report was built, out of date or missing now"
    assert re.search(rf"mixture decontaminated web-\S.* \| {state}", told)
    world.policy = {}
    world.write_config()
    remove(world.store.mixture("decontaminated", "web-0001"))
    (row,) = said(run_check(report_is_todays, world)).splitlines()[2:]
    mixture = "mixture decontaminated web-0001"
    assert f"{mixture} | {state}" in row
    world.run()
    assert run_check(report_is_todays, world).passed


def test_report_check_warns_of_a_benchmark_that_changed_and_of_a_report_that_is_gone(world):
    world.start()
    world.add_benchmark("harbor", n_items=6)
    assert "harbor" in said(run_check(report_is_todays, world))
    world.add_benchmark("harbor")
    remove(world.store.report)
    assert "no such file" in said(run_check(report_is_todays, world))


def test_drift_check_warns_of_a_leak_rate_that_jumped_and_says_what_changed(world):
    world.start()
    assert run_check(leak_rate_is_steady, world).metadata["benchmarks_compared"].value == (
        "no previous report"
    )
    harbor = world.benchmarks["harbor"]
    world.add_shard("s7", leaks=harbor[3:])
    world.go_on(until="report")
    for _ in range(2):  # asked again, it says the same
        result = run_check(leak_rate_is_steady, world)
        assert (result.passed, result.severity.value) == (False, "WARN")
        told = "| harbor | 100.0 % of 5 checkable items leaked | 60.0 % ± 5.0 %"
        assert told in said(result)
        assert "check the shards" in said(result)
        assert result.metadata["benchmarks_compared"].value == 2
    world.policy = {"aligned_threshold": 0.9}
    world.add_benchmark("ledger", n_items=30)
    world.run(until="report", refreeze=True)
    told = said(run_check(leak_rate_is_steady, world))
    assert "the benchmark itself" in told
    assert "term weights, the policy" in told
    world.policy = {"aligned_threshold": 0.8}
    world.run(until="report")
    result = run_check(leak_rate_is_steady, world)  # with the last report, not with the first
    assert (result.passed, result.metadata["benchmarks_compared"].value) == (True, 2)


def test_drift_check_goes_by_the_settings(world):
    world.start()
    world.add_shard("s7", leaks=world.benchmarks["harbor"][3:])
    world.go_on(until="report")
    for drift, is_steady in ((0.39, False), (0.41, True), (0, False), (1, True)):
        world.write_config()
        world.config_path.write_text(world.config_path.read_text() + f"[report]\ndrift = {drift}\n")
        assert run_check(leak_rate_is_steady, world).passed == is_steady
    world.config_path.write_text(world.config_path.read_text().replace("drift = 1", "drift = 2"))
    with pytest.raises(ConfigError, match=r"report\.drift: found 2; expected a number from 0 to 1"):
        load_config(world.config_path)


def test_the_mixtures_that_were_built_are_checked_although_one_was_refused(world):
    """Dagster leaves out the checks of a step that fails."""
    world.start()
    path = world.folder / "corpus" / "s1.jsonl.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b"{broken\n"))
    world.add_shard("s7")
    with pytest.raises(PipelineError, match="not JSON"):
        world.run(until="mixture")
    key = mixture_adds_up.check_key
    storage = world.instance.event_log_storage
    last = storage.get_asset_check_execution_history(key, limit=1)[0]
    evaluation = last.event.dagster_event.event_specific_data
    assert (evaluation.passed, evaluation.metadata["looked_at"].value) == (True, 1)
    assert evaluation.metadata["right_and_unchanged"].value == 2  # of s1 there is none


def test_the_report_and_its_page_show_rates_scores_and_where_everything_lies(world):
    world.start()
    event = world.instance.get_latest_materialization_event(AssetKey("report"))
    metadata = event.asset_materialization.metadata
    assert "| harbor | 5 | 3 | 5 | 3 | 0.600 |" in metadata["by_benchmark"].value
    assert str(world.store.mixtures("decontaminated")) in metadata["mixtures"].value
    scan = scan_fingerprint(world.store, world.policy_in_force())
    assert metadata["scan_results"].value == str(world.store.scan_results(scan))
    page = world.instance.get_latest_materialization_event(AssetKey("report_page"))
    metadata = page.asset_materialization.metadata
    assert metadata["link"].value == link_to(world.store.report_page)
    for name in ("leak_rates", "scores"):
        assert "data:image/svg+xml;base64," in metadata[name].value
    scans = world.instance.fetch_materializations(AssetKey("scan"), limit=100).records
    told = [record.asset_materialization.metadata for record in scans]
    (scores,) = (metadata["scores"].value for metadata in told if "scores" in metadata)
    assert "data:image/svg+xml;base64," in scores


def test_scores_of_partitions_are_those_that_the_report_counts(world):
    harbor = world.benchmarks["harbor"]
    half = " ".join(harbor[4]["question"].split()[:36])
    world.add_shard("s7", leaks=[{"question": half, "answer": harbor[4]["answer"]}])
    world.policy = {"detectors": ["decon", "ratcliff"]}
    world.start(until="report")
    versions = tuple(current_version(world.store, name) for name in ("harbor", "ledger"))
    policy = world.policy_in_force()
    reader = MatchReader(world.store, versions, policy, scan_fingerprint(world.store, policy))
    bins = score_bins(reader, list_packs(world.store), versions)
    columns = "n_matches", "n_contaminated", "n_no_answer", "n_review"
    sums = ", ".join(f"sum({column})::BIGINT AS {column}" for column in columns)
    query = f"SELECT detector, bin, {sums} FROM score_histogram GROUP BY ALL ORDER BY ALL"
    with connect(world.store.report) as connection:
        assert bins == [*rows_of(connection, query)]
    assert {one["detector"] for one in bins} == {"decon", "ratcliff"}
    assert any(one["n_matches"] > one["n_contaminated"] for one in bins)


def test_records_and_index_say_what_is_in_them_and_what_can_be_found(world):
    world.start()
    for name in ("harbor", "ledger"):
        assert "| test | 5 | 5 |" in _told_of(world, "records", name)["splits"].value
        visible = _told_of(world, "index", name)["can be checked"].value
        assert f"| {name} | aligned | 5 | 5 |  | 1.000 |" in visible


def _told_of(world, asset, partition):
    """What the last materialization of one partition says of itself.

    One run does all partitions, and Dagster gives their events an order of its own.
    """
    asked = AssetRecordsFilter(AssetKey(asset), asset_partitions=[partition])
    (record,) = world.instance.fetch_materializations(asked, limit=1).records
    return record.asset_materialization.metadata
