"""A benchmark that is corrected after idf was frozen from it: said everywhere, and frozen anew."""

import pytest
from dagster import AssetCheckKey, AssetKey

from decon_assets.cli.main import main
from decon_core.benchmarks.records import current_version
from decon_core.index.term_weights import read_current

CHECK = AssetCheckKey(AssetKey("term_weights"), "snapshot_is_of_todays_versions")


def correct(world) -> None:
    """Remove one of five items of `ledger`, change one, and add one: three keep their texts."""
    items = world.benchmarks["ledger"]
    items[4]["question"] = " ".join(reversed(items[4]["question"].split()))
    del items[0]
    items.append({"question": "twelve lanterns " * 20, "answer": "none"})
    world.write_benchmarks()


def evaluation(world):
    (record,) = world.instance.event_log_storage.get_asset_check_execution_history(CHECK, limit=1)
    return record.evaluation


@pytest.fixture
def corrected(world):
    world.start(until="index")
    frozen = read_current(world.store)
    correct(world)
    world.go_on(until="index")
    assert read_current(world.store) == frozen  # kept on purpose: no other score may change
    return world


def test_a_run_says_that_the_snapshot_is_of_an_earlier_version(corrected):
    said = "\n".join(corrected.said)
    assert "term_weights: up to date" not in said
    old = read_current(corrected.store)["members"]["ledger"]
    new = current_version(corrected.store, "ledger").fingerprint
    assert f"frozen from version {old}; expected version {new}" in said
    assert "1 of 5 items changed, 1 added, 1 removed" in said
    assert "decon-assets run --new-term-weights" in said
    assert "harbor: found weights frozen" not in said


def test_the_check_of_the_snapshot_warns_as_soon_as_the_records_are_made_anew(corrected):
    found = evaluation(corrected)
    assert not found.passed
    assert found.severity.value == "WARN"
    assert "1 of 5 items changed" in found.metadata["problems"].value


def test_refreeze_counts_the_corrected_version_and_says_so(corrected):
    corrected.run(until="index", refreeze=True)
    said = "\n".join(corrected.said)
    new = current_version(corrected.store, "ledger").fingerprint
    assert read_current(corrected.store)["members"]["ledger"] == new
    assert "frozen again" in said
    assert "term_weights: up to date" not in said
    assert evaluation(corrected).passed
    corrected.run(until="index")
    assert "term_weights: up to date" in corrected.said


def test_status_names_the_versions_and_the_command(reported, capsys):
    correct(reported)
    assert main(["run"]) == 0
    capsys.readouterr()
    assert main(["status"]) == 0
    out = capsys.readouterr().out
    assert "term weights: ledger: found weights frozen from version" in out
    assert "decon-assets run --new-term-weights" in out
