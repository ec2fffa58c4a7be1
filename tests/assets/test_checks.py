"""Every asset check passes on good data, and fails on planted bad data."""

import gzip
import json

import numpy as np
import pytest
from dagster import AssetCheckSeverity

from decon_assets.checks import (
    blend_adds_up,
    controls_match,
    coverage_is_complete,
    enough_is_indexable,
    every_row_was_read,
    index_is_complete,
    mixture_adds_up,
)
from decon_assets.pipeline import PipelineError
from decon_assets.registration import register
from decon_assets.resources import Decon
from decon_core.config import load_config
from decon_core.errors import ConfigError
from decon_core.index import index_fingerprint
from decon_core.records import current_version
from decon_core.schemas import INDEX
from decon_core.store import map_arrays, write_arrays

ALL = (
    index_is_complete,
    enough_is_indexable,
    every_row_was_read,
    controls_match,
    mixture_adds_up,
    coverage_is_complete,
)


def run_check(check, world):
    return check(Decon(config_path=str(world.config_path)))


@pytest.mark.parametrize("check", ALL, ids=lambda check: check.check_key.name)
def test_passes_on_a_world_that_ran(world, check):
    world.run()
    assert run_check(check, world).passed


def test_index_check_fails_when_a_record_is_gone_or_none_can_be_seen(world):
    world.run()
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
    assert "no indexable record" in result.metadata["problems"].value
    assert result.severity.value == "WARN"


@pytest.fixture
def half_blind(world):
    """Of `short`, half the questions are too short for `ngram_any`, and all for `decon`."""
    short = [{"question": f"what is {n} plus {n} ?", "answer": "even"} for n in range(3)]
    longer = [{"question": f"{'plus one ' * n} is what ?", "answer": "odd"} for n in range(6, 9)]
    world.benchmarks["short"] = [*short, *longer]
    world.write_benchmarks()
    world.policy = {"detectors": ["decon", "ngram_any"]}
    return world


def demand(world, *settings):
    lines = world.config_path.read_text().splitlines()
    at = lines.index("[evals]") + 1
    world.config_path.write_text("\n".join([*lines[:at], *settings, *lines[at:]]) + "\n")


def test_indexability_check_fails_when_a_rule_sees_too_little_of_a_required_benchmark(half_blind):
    half_blind.run()
    demand(half_blind, 'required = ["short"]')
    result = run_check(enough_is_indexable, half_blind)
    assert (result.passed, result.severity.value) == (False, "ERROR")
    assert "short, decon | 0 of 6 items visible" in result.metadata["problems"].value
    assert result.metadata["n_problems"].value == 1
    assert "| short | ngram_any | 6 | 3 | question too short: 3 |" in (
        result.metadata["indexability"].value
    )


def test_indexability_check_asks_for_the_share_that_the_settings_demand(half_blind):
    half_blind.policy = {"detectors": ["ngram_any"]}
    half_blind.run()
    for share, is_enough in ((0.5, True), (0.51, False), (1, False), (0, True)):
        half_blind.write_config()
        demand(half_blind, 'required = ["short"]', f"least_indexable_share = {share}")
        assert run_check(enough_is_indexable, half_blind).passed == is_enough


def test_indexability_check_only_warns_of_a_benchmark_that_is_not_required(half_blind):
    half_blind.run()
    demand(half_blind, 'required = ["harbor", "ledger"]')
    result = run_check(enough_is_indexable, half_blind)
    assert (result.passed, result.severity.value) == (False, "WARN")


def test_indexability_check_fails_when_a_required_benchmark_is_not_there(world):
    world.run()
    demand(world, 'required = ["habor"]')
    result = run_check(enough_is_indexable, world)
    assert (result.passed, result.severity.value) == (False, "ERROR")
    assert "habor" in result.metadata["problems"].value


def test_indexability_check_says_nothing_of_what_is_not_indexed_yet(world):
    world.run()
    world.add_benchmark("late")
    demand(world, 'required = ["late"]')
    assert run_check(enough_is_indexable, world).passed


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("required = 3", "evals.required: found 3"),
        (
            "least_indexable_share = 1.5",
            "evals.least_indexable_share: found 1.5; expected a number",
        ),
        ("least_indexable_share = true", "evals.least_indexable_share: found True"),
        ("requires = []", "did you mean 'required'"),
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
    with pytest.raises(PipelineError, match=r"s1\.jsonl\.gz: line 13: found not JSON"):
        world.run()
    result = run_check(every_row_was_read, world)
    assert not result.passed
    assert "row 12" in result.metadata["problems"].value
    world.policy = {"unreadable": "drop"}
    world.run()
    result = run_check(every_row_was_read, world)
    assert (result.passed, result.severity.value) == (False, "WARN")


def test_mixture_check_fails_when_a_written_shard_was_touched(world):
    world.run()
    shard = world.store.mixture("decontaminated", "web-0000") / "s0.jsonl.gz"
    shard.write_bytes(shard.read_bytes() + b"x")
    assert not run_check(mixture_adds_up, world).passed


def test_mixture_check_fails_when_a_document_is_unaccounted_for(world):
    world.run()
    path = world.store.mixture("decontaminated", "web-0000") / "_manifest.json"
    manifest = json.loads(path.read_text())
    manifest["shards"][0]["removed"]["leak"] -= 1
    path.write_text(json.dumps(manifest))
    assert not run_check(mixture_adds_up, world).passed


def test_blend_check_fails_when_a_part_or_the_account_was_touched(world):
    world.mixtures = '[[mixture]]\nname = "decontaminated"\n[[blend]]\nname = "stream"\n'
    world.mixtures += 'of = "decontaminated"\n'
    world.run()
    assert run_check(blend_adds_up, world).passed
    folder = world.store.blend("stream")
    path = folder / "_manifest.json"
    manifest = json.loads(path.read_text())
    part = folder / manifest["parts"][0]["file"]
    content = part.read_bytes()
    part.write_bytes(content + b"x")
    assert not run_check(blend_adds_up, world).passed
    part.write_bytes(content)
    manifest["totals"]["n_drawn"] += 1
    path.write_text(json.dumps(manifest))
    assert not run_check(blend_adds_up, world).passed


def test_control_check_warns_of_a_control_that_is_not_near_its_treatment(world):
    world.mixtures = '[[mixture]]\nname = "decontaminated"\n[[mixture]]\nname = "control"\n'
    world.mixtures += 'take = "control"\ncontrol_of = "decontaminated"\n'
    world.run()
    path = world.store.mixture("control", "web-0000") / "_manifest.json"
    manifest = json.loads(path.read_text())
    (told,) = manifest["control"]
    assert told["n_drawn"] == told["n_documents"] > 0
    for changes, is_near in (({}, True), ({"n_drawn": 0}, False), ({"n_tokens": 1}, False)):
        near = {"n_drawn_tokens": told["n_tokens"]}
        for folder in world.store.mixtures("control").iterdir():
            content = json.loads((folder / "_manifest.json").read_text())
            content["control"] = [{**told, **near, **changes}]
            (folder / "_manifest.json").write_text(json.dumps(content))
        found = run_check(controls_match, world)
        assert found.passed is is_near
        assert found.severity == AssetCheckSeverity.WARN


def test_coverage_check_fails_when_a_shard_was_not_scanned(world):
    world.run()
    world.add_shard("s7")
    register(world.config_path, world.instance)
    result = run_check(coverage_is_complete, world)
    assert not result.passed
    assert "s7.jsonl.gz" in result.metadata["problems"].value
