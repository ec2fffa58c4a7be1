"""What a report keeps of the leak rates of earlier ones, and how the page shows it."""

import pyarrow as pa
import pytest

from decon_core.report import database
from decon_core.report.build import read_earlier
from decon_core.report.database import write_database
from decon_core.report.html.gather import gather
from decon_core.report.html.opening import opening
from decon_core.report.html.sections import section
from decon_core.report.tables import table_of
from decon_core.report.verify import drift_of

PLACE = {"benchmark": "quiz", "split": "test"}
ITEMS = [{**PLACE, "instance_index": n, "is_indexed": True} for n in range(10)]


def tables(state, n_leaked, version="v1", n_gaps=0, **run):
    matches = [
        {**PLACE, "source": "web", "shard_name": "a", "row": n, "instance_index": n}
        | {"score": 1.0, "is_contaminated": True}
        for n in range(n_leaked)
    ]
    run = {"state": state, "policy": "{}", "n_shards_not_scanned": n_gaps, **run}
    benchmark = {"benchmark": "quiz", "version": version, "n_items": len(ITEMS)}
    rows = {"runs": [run], "benchmarks": [benchmark], "items": ITEMS, "matches": matches}
    return {name: table_of(name, of_table) for name, of_table in rows.items()}


@pytest.fixture
def replace(tmp_path, monkeypatch):
    """Replace the report by one whose columns have no comments, which take much of the time."""
    monkeypatch.setattr(database, "_comments", lambda _: ())
    report = tmp_path / "r.duckdb"

    def write(state, n_leaked, **settings):
        earlier, _ = read_earlier(report, str(state))
        rows = tables(str(state), n_leaked, made_at=f"2026-11-0{state}T10:00:00+00:00", **settings)
        write_database(report, rows | {"earlier_rates": earlier})
        return report

    return write


def rates_in(facts):
    return [row["n_leaked_checkable"] for row in facts["rates_by_report"]]


def test_the_first_report_has_no_history(replace):
    facts = gather(replace(1, 3))
    assert rates_in(facts) == []
    assert opening(facts)["since"] == ""
    assert [chart.title for chart in section("rates", facts).choices[0].charts] == [
        "Share of checkable items that leaked"
    ]


def test_each_report_keeps_the_rates_before_it_and_shows_the_change(replace):
    replace(1, 3)
    replace(2, 5)
    facts = gather(replace(3, 4))
    assert rates_in(facts) == [3, 5, 4]
    first = opening(facts)
    assert first["since"] == "2026-11-02"
    assert [row["change"] for row in first["ranked"]] == ["−10.0"]
    _, chart = section("rates", facts).choices[0].charts
    assert chart.data[0]["y"] == pytest.approx([30, 50, 40])
    assert chart.data[0]["marker"]["symbol"] == ["circle"] * 3
    assert chart.description.endswith("quiz from 30 to 40, highest 50.")


def test_a_report_that_is_built_again_is_no_earlier_report(replace):
    replace(1, 3)
    replace(2, 3)
    facts = gather(replace(2, 3))
    assert rates_in(facts) == [3, 3]
    assert opening(facts)["ranked"][0]["change"] == "same"


def test_rates_that_cannot_be_compared_show_no_change(replace):
    first = replace(1, 3).read_bytes()
    others = [{"policy": '{"a": 1}'}, {"scan_fingerprint": "b"}, {"version": "v2"}, {"n_gaps": 1}]
    for settings in others:
        report = replace(2, 5, **settings)
        facts = gather(report)
        assert opening(facts)["ranked"][0]["change"] == "–"
        _, chart = section("rates", facts).choices[0].charts
        assert chart.data[0]["marker"]["symbol"] == ["circle-open", "circle"]
        (problem,), _ = drift_of(report, 0.1)
        is_incomplete = problem.remedy.endswith("(one of the two reports is incomplete)")
        assert is_incomplete == ("n_gaps" in settings)
        report.write_bytes(first)


def test_a_report_of_another_version_or_none_starts_anew(tmp_path):
    path = tmp_path / "r.duckdb"
    assert read_earlier(path, "1")[0].num_rows == 0
    path.write_bytes(b"no database")
    assert read_earlier(path, "1")[0].num_rows == 0


def test_only_the_last_hundred_reports_are_kept(tmp_path):
    path = tmp_path / "r.duckdb"
    of_first = [
        {"report": number, "benchmark": name} for number in range(1, 101) for name in ("a", "quiz")
    ]
    write_database(path, tables("1", 3) | {"earlier_rates": table_of("earlier_rates", of_first)})
    kept, _ = read_earlier(path, "2")
    assert kept["report"].to_pylist() == [n for n in range(2, 101) for _ in "ab"] + [101]
    assert isinstance(kept, pa.Table)
