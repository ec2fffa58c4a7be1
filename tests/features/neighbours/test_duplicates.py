"""The share of items with a judged duplicate: by benchmark, source and any column of the items."""

import json

import duckdb
import pytest

from decon_core.decisions.calibration import wilson
from decon_core.report.open import rows_of
from tests.core.report.report_worlds import RUN
from tests.core.report.reports import write_report

N = 20
_ITEM = {"benchmark": "quiz", "split": "test"}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Each item has its nearest neighbour in web, the next one in books.

    Of every second item the first is a duplicate, of every fifth the second. The last four have no
    judgement.
    """
    items = [
        {**_ITEM, "instance_index": n, "extras": json.dumps({"rating": 100 * n, "level": "a"})}
        for n in range(N)
    ]
    neighbours, judged = [], []
    for n in range(N):
        for rank, source in enumerate(("web", "books"), start=1):
            place = {"source": source, "shard_name": "s", "row": n, "rank": rank, "start": 0}
            pair = f"{n} {rank}"
            sampled = {"weight": 10.0 * rank, "stands_for": 1.0, "pair": pair}
            neighbours.append({**_ITEM, "instance_index": n, **place, **sampled})
            if n < N - 4:
                is_sd = n % (2 if rank == 1 else 5) == 0
                judged.append({"pair": pair, "detector": "neighbours", "is_sd": is_sd})
    sources = [{"source": "web", "n_documents": 1000}, {"source": "books", "n_documents": 3000}]
    return write_report(
        tmp_path_factory.mktemp("report") / "r.duckdb",
        runs=[RUN],
        items=items,
        neighbours=neighbours,
        judged_pairs=judged,
        neighbour_sample=sources,
    )


def asked(report, query):
    with duckdb.connect(str(report), read_only=True) as connection:
        return rows_of(connection, query)


FIRST = {n for n in range(N - 4) if n % 2 == 0}
SECOND = {n for n in range(N - 4) if n % 5 == 0}


def test_the_share_is_of_the_judged_items_with_its_interval(report):
    (row,) = asked(report, "FROM duplicates_by_benchmark")
    n = len(FIRST | SECOND)
    assert (row["benchmark"], row["split"]) == ("quiz", "test")
    assert (row["n_items"], row["n_judged"], row["n_duplicated"]) == (N, N - 4, n)
    assert row["share"] == n / (N - 4)
    assert (row["low"], row["high"]) == pytest.approx(wilson(n / (N - 4), N - 4), abs=1e-4)


def test_documents_in_ten_thousand_are_those_that_the_sampled_ones_stand_for(report):
    (row,) = asked(report, "FROM duplicates_by_benchmark")
    documents = 10 * len(FIRST) + 20 * len(SECOND)
    assert row["per_10_000"] == pytest.approx(10_000 * documents / (N - 4) / 4000)
    by_source = {row["source"]: row for row in asked(report, "FROM duplicates_by_source")}
    assert {name: row["n_duplicated"] for name, row in by_source.items()} == {
        "web": len(FIRST),
        "books": len(SECOND),
    }
    in_books = 10_000 * 20 * len(SECOND) / (N - 4) / 3000
    assert by_source["books"]["per_10_000"] == pytest.approx(in_books)


def test_only_the_nearest_count_if_asked(report):
    (row,) = asked(report, "FROM duplicates_by('split', top := 1)")
    assert (row["n_judged"], row["n_duplicated"]) == (N - 4, len(FIRST))


def test_items_are_grouped_by_any_column_and_by_edges_of_numbers(report):
    (row,) = asked(report, "FROM duplicates_by('level')")
    assert (row["category"], row["n_items"]) == ("a", N)
    rows = asked(report, "FROM duplicates_by('rating', edges := [300, 1200])")
    assert {row["category"]: row["n_items"] for row in rows} == {
        "below 300": 3,
        "300 to 1200": 9,
        "from 1200": 8,
    }
    (row,) = [row for row in rows if row["category"] == "from 1200"]
    assert (row["n_judged"], row["n_duplicated"]) == (4, 3)
    (row,) = asked(report, "FROM duplicates_by('nothing')")
    assert row["category"] is None


def test_without_neighbours_there_is_no_share(tmp_path):
    empty = write_report(tmp_path / "r.duckdb", runs=[RUN], items=[{**_ITEM, "instance_index": 0}])
    assert not asked(empty, "FROM duplicates_by_benchmark")
