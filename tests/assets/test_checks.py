"""Every asset check passes on good data, and fails on planted bad data."""

import gzip
import json

import numpy as np
import pytest

from decon_assets.checks import (
    coverage_is_complete,
    every_row_was_read,
    index_is_complete,
    mixture_adds_up,
)
from decon_assets.pipeline import PipelineError, register
from decon_assets.resources import Decon
from decon_core.index import index_fingerprint
from decon_core.records import current_version
from decon_core.schemas import INDEX
from decon_core.store import map_arrays, write_arrays

ALL = (index_is_complete, every_row_was_read, mixture_adds_up, coverage_is_complete)


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
    manifest["shards"][0]["removed"].pop()
    path.write_text(json.dumps(manifest))
    assert not run_check(mixture_adds_up, world).passed


def test_coverage_check_fails_when_a_shard_was_not_scanned(world):
    world.run()
    world.add_shard("s7")
    register(world.config_path, world.instance)
    result = run_check(coverage_is_complete, world)
    assert not result.passed
    assert "s7.jsonl.gz" in result.metadata["problems"].value
