"""Scans of a sample: what they find is what a full scan finds, and they never pass for one."""

import csv
import gzip
import json
from dataclasses import replace
from fractions import Fraction
from itertools import product

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_core.compare.differences import compare
from decon_core.compare.sides import database_of
from decon_core.config.policy import Policy
from decon_core.config.sources import Sketch, Source
from decon_core.corpus.sample import Sample
from decon_core.corpus.shards import read_blocks
from decon_core.decisions.sampling import Estimate, documents
from decon_core.errors import InputError
from decon_core.library.sample_section import sample_figures
from decon_core.library.scan import Request, scan_folder
from decon_core.report.open import coverage_of
from decon_core.report.publish.limits import Limits, cases_of
from decon_core.report.publish.summary import summary_of
from decon_core.scan import blocks
from tests.core.conftest import words

N_ITEMS = 12
ITEM = {"eval_key": "quiz", "split": "test"}


@pytest.fixture(scope="module")
def request_of(tmp_path_factory):
    """A request for 300 documents in two folders, with a quiz in every tenth of them."""
    folder = tmp_path_factory.mktemp("world")
    items = [
        {
            "eval_key": "quiz",
            "split": "test",
            "question": words(("q", n), 30),
            "answer": f"w{n}",
        }
        for n in range(N_ITEMS)
    ]
    (folder / "evals").mkdir()
    (folder / "evals" / "quiz.jsonl").write_text("".join(json.dumps(row) + "\n" for row in items))
    for name, n_rows in (("web/a.jsonl", 140), ("web/b.jsonl.gz", 100), ("books/c.parquet", 60)):
        rows = [{"text": words((name, row), 40)} for row in range(n_rows)]
        for row in range(3, n_rows, 10):
            item = items[row % N_ITEMS]
            rows[row]["text"] += f" {item['question']} {item['answer']}"
        path = folder / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = "".join(json.dumps(row) + "\n" for row in rows) + "{no\n"
        if path.suffix == ".gz":
            path.write_bytes(gzip.compress(content.encode(), mtime=0))
        elif path.suffix == ".jsonl":
            path.write_text(content)
        else:
            pq.write_table(pa.Table.from_pylist(rows), path)
    plain = Request(
        evals=folder / "evals",
        source=Source(name="corpus", path=str(folder / "corpus"), id="id"),
        out=folder / "out",
        policy=Policy(tokenizer_str="words"),
        has_page=False,
    )
    return lambda out, **changes: replace(plain, out=folder / out, **changes)


def sampled(share, seed=0):
    return Sample.of(Fraction(share), seed=seed)


def scan(request):
    return scan_folder(request)


def scan_with_page(request):
    scan(replace(request, has_page=True))
    return request


def matches_of(request):
    table = pq.read_table(request.out / "matches.parquet").drop_columns(["shard"])
    return table.sort_by([(name, "ascending") for name in ("file", "row", "text_id")])


def ledger_of(request):
    lines = map(json.loads, (request.out / "ledger.jsonl").read_text().splitlines())
    return {line["file"]: line for line in lines}


@pytest.fixture(scope="module")
def full(request_of):
    request = request_of("full")
    scan(request)
    return request


@pytest.mark.parametrize(("seed", "workers", "block_bytes"), [(0, 1, 1 << 22), (3, 2, 900)])
def test_matches_are_those_of_the_full_scan_in_the_documents_of_the_sample(
    request_of, full, monkeypatch, seed, workers, block_bytes
):
    def small_blocks(shard, source):
        return read_blocks(shard, source, block_bytes=block_bytes)

    monkeypatch.setattr(blocks, "read_blocks", small_blocks)
    sample = sampled("0.3", seed)
    request = request_of(f"some-{seed}-{workers}", sample=sample, workers=workers)
    outcome = scan(request)
    every, contents = matches_of(full), contents_of(request)
    pairs = zip(every["file"].to_pylist(), every["row"].to_pylist(), strict=True)
    is_taken = [bool(sample.takes(contents[file], np.array([row]))[0]) for file, row in pairs]
    assert 0 < sum(is_taken) < len(is_taken)
    assert matches_of(request).equals(every.filter(pa.array(is_taken)))
    assert outcome.n_documents == 90
    assert outcome.n_documents + outcome.n_not_sampled == 300


def test_results_do_not_depend_on_workers(request_of):
    requests = [request_of(f"w{n}", sample=sampled("0.3"), workers=n) for n in (1, 2)]
    for request in requests:
        scan(request)
    for name in ("matches.parquet", "ledger.jsonl", "sample.csv", "summary.json"):
        one, two = ((request.out / name).read_bytes() for request in requests)
        assert one == two, name


def contents_of(request):
    """The content of each shard, by name, as the scan registered it."""
    return {
        shard["name"]: shard["content"]
        for path in (request.out / ".store").rglob("corpus-*.json")
        for shard in json.loads(path.read_text())["shards"]
    }


def test_estimates_hold_what_the_full_scan_finds(request_of, full):
    """Drawn from the matches of the full scan; the scan of a sample gives the same numbers."""
    every, contents = matches_of(full), contents_of(full)
    n_rows = {name: line["n_rows"] for name, line in ledger_of(full).items()}
    leaks = {name: np.zeros(n, np.bool_) for name, n in n_rows.items()}
    for file, row in zip(every["file"].to_pylist(), every["row"].to_pylist(), strict=True):
        leaks[file][row] = True
    is_unreadable = {name: len(line["unreadable"]) for name, line in ledger_of(full).items()}
    n_held, estimates = 0, []
    for seed in range(100):
        sample = sampled("0.2", seed)
        n_found = n_sampled = n_draws = 0
        for name, is_leak in leaks.items():
            is_taken = sample.takes(contents[name], np.arange(is_leak.size - is_unreadable[name]))
            n_found += int((is_leak[: is_taken.size] & is_taken).sum())
            n_sampled += int(is_taken.sum())
            n_draws += sample.n_draws(is_leak.size)
        drawn = {"n_sampled": n_sampled, "n_draws": n_draws, "n_documents": 300}
        estimates.append(documents(n_found, **drawn, share=sample.share))
        n_held += estimates[-1].low <= 30 <= estimates[-1].high
    assert n_held >= 93

    for seed in (0, 1):
        rates = scan(request_of("seeds", sample=sampled("0.2", seed))).rates
        (whole,) = (one for one in rates if (one.source, one.benchmark) == ("*", "*"))
        assert Estimate(whole.estimate, whole.low, whole.high) == estimates[seed]
        assert all(rate.low <= rate.estimate <= rate.high for rate in rates)
    kinds = {(rate.of, rate.source, rate.benchmark) for rate in rates}
    assert kinds == {
        *product(["documents"], ["*", "web", "books"], ["*", "quiz"]),
        ("items", "*", "quiz"),
    }


def test_a_sample_is_never_taken_for_a_full_scan_nor_the_other_way_round(request_of, full):
    request = request_of("same", sample=sampled("0.1"))
    outcome = scan(request)
    summary = json.loads((request.out / "summary.json").read_text())
    assert summary["sample"]["about"] == "sample of 10 %, seed 0"
    assert summary["sample"]["n_documents_not_sampled"] == 270
    with (request.out / "sample.csv").open(newline="") as file:
        rows = [*csv.DictReader(file)]
    assert [row["of"] for row in rows] == [one["of"] for one in summary["sample"]["estimates"]]
    assert (rows[0]["n"], rows[0]["n_sampled"]) == ("300", str(outcome.n_documents))
    documents, items = sample_figures(outcome.rates).values()
    shares = [float(row["rate"]) for row in rows]
    assert [x / 100 for x in (*documents.data[0]["x"], *items.data[0]["x"])] == (
        pytest.approx(shares)
    )

    later = scan(replace(request, sample=None))
    assert (later.n_shards_read, later.n_documents) == (3, 300)
    assert matches_of(request).equals(matches_of(full))
    assert not (request.out / "sample.csv").exists()
    assert (request.out / "summary.json").read_text() == ((full.out / "summary.json").read_text())

    other = scan(replace(request, sample=sampled("0.1", 1)))
    assert (other.n_shards_read, other.n_documents) == (3, 30)
    again = scan(request)
    assert (again.n_shards_read, again.n_documents) == (0, 30)
    assert json.loads((request.out / "summary.json").read_text()) == summary


def test_rows_that_cannot_be_read_are_reported_also_outside_the_sample(request_of, full):
    request = request_of("unreadable", sample=sampled("0.01"))
    outcome = scan(request)
    lines, lines_of_full = ledger_of(request), ledger_of(full)
    assert outcome.n_unreadable == 2
    for name, line in lines.items():
        assert line["unreadable"] == lines_of_full[name]["unreadable"]
        assert line["n_rows"] == lines_of_full[name]["n_rows"]
    assert outcome.not_read.exit_code != 1  # a shard without a sampled document was still read


def test_what_needs_all_documents_is_refused(request_of):
    common = Policy(tokenizer_str="words", leave_out_common=True)
    request = request_of(
        "refused",
        sample=sampled("0.5"),
        has_compat=True,
        has_clean_evals=True,
        sketch=Sketch(),
        policy=common,
    )
    with pytest.raises(InputError) as error:
        scan(request)
    assert len(error.value.problems) == 4
    assert not request.out.exists()


def test_reports_of_a_full_scan_do_not_stay_beside_a_sample(request_of):
    policy = Policy(tokenizer_str="words", detectors=("decon",))
    request = request_of("beside", has_compat=True, has_clean_evals=True, policy=policy)
    scan(request)
    scan(replace(request, has_compat=False, has_clean_evals=False, sample=sampled("0.5")))
    assert not [name for name in ("compat", "clean") if (request.out / name).exists()]


def test_as_a_report_a_sample_is_incomplete_and_no_item_is_clean(request_of, full):
    request = request_of("report", sample=sampled("0.1"))
    database, whole = (database_of(scan_with_page(one).out) for one in (request, full))
    coverage = coverage_of(database)
    assert not coverage.is_complete
    assert "only a sample of 10 %, seed 0, was scanned in 3 of 3 shards" in coverage.notice
    with duckdb.connect(str(database), read_only=True) as connection:
        statuses = connection.execute("SELECT DISTINCT status FROM item_status").fetchall()
    assert {*statuses} <= {("leaked",), ("not fully scanned",)}
    limits = Limits(max_rate=1.0, max_document_rate=1.0, may_be_unreadable=True)
    assert not any(case.is_passed for case in cases_of(summary_of(database), limits))

    found = compare(whole, database, most=5)
    n_found = pq.read_table(request.out / "matches.parquet").num_rows
    assert found["n_findings"].get("same", 0) == n_found
    assert found["n_findings"]["not comparable"] == 30 - n_found
    assert {*found["n_findings"]} <= {"same", "not comparable"}
    ((why,),) = {tuple(one.values())[:1] for one in found["not_comparable"]}
    assert why == (
        "the other side scanned only part of the shard, or did not search it for the benchmark"
    )
