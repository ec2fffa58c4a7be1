"""Figures of how leaks are spread over the corpus, against counts in plain Python."""

from collections import Counter, defaultdict
from itertools import pairwise

import duckdb
import pytest

from decon_core.report.html import charts
from decon_core.report.html.gather import gather
from decon_core.report.html.spread import spread
from tests.core.report.report_worlds import write_world
from tests.core.report.reports import write_report

PLACE = {"benchmark": "quiz", "split": "test"}


def leak(item, row, source="web", shard="a.jsonl"):
    where = {"source": source, "shard_name": shard, "row": row}
    return {**PLACE, **where, "instance_index": item, "score": 1.0, "is_contaminated": True}


@pytest.fixture
def facts(tmp_path):
    """Two shards of 50 rows; item 0 is in five documents, 1 and 2 share one, 3 is alone."""
    matches = [leak(0, row) for row in (0, 1, 2, 10, 49)]
    matches += [leak(1, 3, shard="b.jsonl"), leak(2, 3, shard="b.jsonl")]
    matches += [leak(3, 49, shard="b.jsonl")]
    shards = [
        {"source": "web", "shard_name": name, "n_rows": 50} for name in ("a.jsonl", "b.jsonl")
    ]
    items = [{**PLACE, "instance_index": n, "is_indexed": True} for n in range(5)]
    benchmarks = [{"benchmark": "quiz", "n_items": 5}]
    report = tmp_path / "r.duckdb"
    write_report(report, matches=matches, shards=shards, items=items, benchmarks=benchmarks)
    return gather(report)


def test_documents_are_at_their_position_in_the_source(facts):
    squares = {(row["source"], row["part"]): row["n_documents"] for row in facts["positions"]}
    # Row n of 100 is in part n // 2; the second shard begins with row 50.
    expected = Counter(("web", n // 2) for n in (0, 1, 2, 10, 49, 53, 99))
    assert squares == expected


def test_bars_have_the_items_by_their_number_of_documents(facts):
    _, bars, _ = spread(facts)
    heights = dict(zip(bars.data[0]["x"], bars.data[0]["y"], strict=True))
    assert heights == {"1": 3, "2": 0, "3–4": 0, "5–8": 1}


def test_the_document_with_the_most_items_comes_first(facts):
    *_, curve = spread(facts)
    steps = [*zip(curve.data[0]["x"], curve.data[0]["y"], strict=True)]
    assert steps == [(0, 0), (1, 50), (2, 75), (7, 100)]
    half, whole = "Half of the 4 items are in the first 1 document", "all in the first 7 documents."
    assert curve.description == f"{half}, {whole}"


def test_the_curve_of_a_large_report_is_that_of_a_plain_count(tmp_path):
    report = write_world(tmp_path / "r.duckdb", n_items=400)
    items_of = defaultdict(set)
    query = "SELECT source, shard_name, row, benchmark, split, instance_index FROM findings "
    with duckdb.connect(str(report), read_only=True) as connection:
        leaks = connection.sql(query + "WHERE is_contaminated").fetchall()
    for *document, benchmark, split, item in leaks:
        items_of[tuple(document)].add((benchmark, split, item))
    seen, expected = set(), {}
    ranked = sorted(items_of, key=lambda document: (-len(items_of[document]), document))
    for number, document in enumerate(ranked, start=1):
        seen |= items_of[document]
        expected[number] = len(seen)
    rows = gather(report)["concentration"]
    assert 2 < len(rows) <= 201
    assert {row["n_documents"]: row["n_items"] for row in rows}.items() <= expected.items()
    assert rows[-1]["n_items"] == rows[-1]["n_all"] == len(seen)
    assert all(a["n_items"] < b["n_items"] for a, b in pairwise(rows))


def test_few_removals_and_many_have_a_dot_each():
    mixtures = [{"mixture": name, "n_documents_in": 10_000} for name in ("clean", "licensed")]
    rows = [
        {"mixture": "clean", "why": "leak", "n_documents": 44},
        {"mixture": "licensed", "why": "leak", "n_documents": 44},
        {"mixture": "licensed", "why": "license", "n_documents": 3646},
    ]
    chart = charts.removed(rows, mixtures)
    dots = defaultdict(dict)
    for trace in chart.data:
        dots[trace["name"]] |= dict(zip(trace["y"], trace["x"], strict=True))
    assert dots["leak"] == pytest.approx({0: 0.44, 1: 0.44})
    assert dots["license"] == pytest.approx({1: 36.46})
    assert "clean: 0.4 % (44), reason: leak" in chart.description
