"""The corpus of reworded items in data/reworded, from the first run to a calibrated mixture."""

import json
import shutil
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from data.make_judgements import judgements
from decon_assets.cli.main import main

DATA = Path(__file__).parents[1] / "data"
N_REWORDED = 21


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reworded")
    for name in ("benchmarks", "reworded"):
        ignored = shutil.ignore_patterns(".d*", "annotations.jsonl")
        shutil.copytree(DATA / name, folder / name, ignore=ignored)
    shutil.copy2(DATA / "evals.yaml", folder)
    return folder / "reworded"


@pytest.fixture(scope="module")
def run(folder):
    def run() -> int:
        return main(["run", "--config", str(folder / "decon.toml")])

    return run


@pytest.fixture(scope="module")
def before(folder, run):
    """The first run, before anything is judged: its exit code, its report, and its mixtures."""
    code = run()
    return code, rows(folder), mixtures(folder)


@pytest.fixture(scope="module")
def after(before, folder, run):
    """The run after the judgements came in."""
    config = ["--config", str(folder / "decon.toml")]
    assert main(["judge", "import", str(folder / "judged.jsonl"), *config]) == 0
    return run(), mixtures(folder)


def rows(folder):
    query = """SELECT doc_id, benchmark, split, instance_index, needs_review, is_contaminated
               FROM findings"""
    with duckdb.connect(str(report(folder)), read_only=True) as connection:
        return connection.sql(query).fetchall()


def report(folder):
    return folder / ".decon" / "report" / "contamination.duckdb"


def mixtures(folder):
    """The ids that each mixture left out."""
    built = (folder / ".decon" / "manifests" / "mixtures").glob("*/*/removed.parquet")
    return {path.parent.parent.name: {*pq.read_table(path)["doc_id"].to_pylist()} for path in built}


def truth(folder):
    return {
        (one["doc_id"], one["benchmark"], one["split"], one["instance_index"]): one["phenomenon"]
        for one in lines_of(folder / "truth.jsonl")
    }


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_rewordings_are_candidates_and_what_is_only_near_an_item_is_not(before, folder):
    _, found, _ = before
    kinds = truth(folder)
    assert not any(is_leak for *_, is_leak in found)  # no detector of copies finds any
    candidates = {tuple(key) for *key, needs_review, _ in found if needs_review}
    called = [kinds.get(key, "another item") for key in candidates]
    assert called.count("reworded") == N_REWORDED - 1
    assert called.count("other_numbers") == called.count("same_topic") == 0
    assert called.count("another item") <= 1


def test_without_judgements_nothing_is_removed_and_the_mixture_by_probability_is_refused(
    before,
):
    code, _, built = before
    assert code == 1
    assert built == {"by_verdicts": set()}


def test_with_judgements_the_probable_ones_are_removed(after, folder):
    code, built = after
    assert code == 0
    assert built["by_verdicts"] == set()
    reworded = {key[0] for key, kind in truth(folder).items() if kind == "reworded"}
    assert len(built["by_probability"] & reworded) == N_REWORDED - 1
    assert len(built["by_probability"] - reworded) <= 1
    with duckdb.connect(str(report(folder)), read_only=True) as connection:
        of_reworded = "detector = 'reworded' AND benchmark IS NULL"
        query = f"SELECT n_judged, n_sd FROM calibration_fit WHERE {of_reworded}"
        assert connection.sql(query).fetchall() == [(N_REWORDED - 1, N_REWORDED - 1)]


def test_the_stored_judgements_are_those_of_the_report(before, folder):
    assert lines_of(folder / "judged.jsonl") == judgements(folder)
