"""Planted, scanned, marked: what is counted, and what lies in the folder."""

import polars as pl
import pyarrow.compute as pc
import pytest

from decon_core.config.policy import Policy
from decon_core.errors import InputError
from decon_core.features.scorecard.items import as_text
from decon_core.features.scorecard.run import run_scorecard

POLICY = Policy(detectors=("decon", "ngram_any"), tokenizer_str="words")


@pytest.fixture(scope="module")
def tables(records):
    names = sorted(set(records["benchmark"].to_pylist()))
    return {name: records.filter(pc.equal(records["benchmark"], name)) for name in names}


def run(tables, hosts, out, **settings):
    settings = {"per_transformation": 2, "n_background": 5, "seed": 1, "about": {}} | settings
    return run_scorecard(tables, hosts, POLICY, out, **settings)


def test_a_leak_that_a_host_brings_is_no_false_alarm_of_a_planting(tables, items, tmp_path):
    leak = as_text(next(item for item in items if item.answer and len(item.question) > 200))
    card = run(tables, [f"once upon a time\n\n{leak}\n\nthe end"] * 300, tmp_path / "card")
    totals = card.marks.totals.filter(detector="decon").row(0, named=True)
    assert totals["n_background_flagged"] == 5
    assert totals["n_false_alarms"] == 0


def test_any_hit_is_scored_by_its_length(tables, tmp_path):
    card = run(tables, [], tmp_path / "card")
    scores = card.marks.curves.filter(detector="ngram_any")["score"]
    assert scores.n_unique() > 10
    assert scores.max() > POLICY.ngram_any_size
    findings = pl.read_parquet(tmp_path / "card" / "findings.parquet").filter(detector="ngram_any")
    is_long = findings["score"] >= POLICY.ngram_any_size
    assert (findings["is_contaminated"] == is_long).all()


def test_the_tables_are_those_of_the_marks(tables, tmp_path):
    card = run(tables, [], tmp_path / "card")
    for name in ("recall", "negatives", "totals", "curves", "agreement", "found"):
        marked = getattr(card.marks, name)
        written = pl.read_csv(tmp_path / "card" / f"{name}.csv", schema=marked.schema)
        assert written.height == marked.height
        assert (
            written.select(pl.col(pl.String)).fill_null("").equals(marked.select(pl.col(pl.String)))
        )
    assert not (tmp_path / "card" / ".store").exists()


def test_an_earlier_scorecard_is_replaced_and_nothing_else(tables, tmp_path):
    out = tmp_path / "card"
    run(tables, [], out)
    before = (out / "summary.json").read_text()
    run(tables, [], out, seed=2)
    assert (out / "summary.json").read_text() != before
    (out / "thesis.tex").write_text("ten years of work")
    with pytest.raises(InputError, match=r"'thesis\.tex' in it"):
        run(tables, [], out)
    assert (out / "thesis.tex").exists()
    with pytest.raises(InputError, match="a file"):
        run(tables, [], out / "thesis.tex")


def test_a_corpus_that_breaks_off_leaves_the_earlier_scorecard(tables, tmp_path):
    def broken():
        yield "one text"
        raise OSError("the disk is gone")

    out = tmp_path / "card"
    run(tables, [], out)
    before = {path.name: path.read_bytes() for path in out.glob("*.csv")}
    with pytest.raises(OSError, match="the disk is gone"):
        run(tables, broken(), out)
    assert {path.name: path.read_bytes() for path in out.glob("*.csv")} == before
    assert [path.name for path in tmp_path.iterdir()] == ["card"]
