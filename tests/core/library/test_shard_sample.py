"""Scans of some whole shards: the others stay closed, are counted as such, and are read later."""

import json
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from decon_core.compare.differences import compare
from decon_core.compare.sides import database_of
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.corpus.sample import ShardSample
from decon_core.library.estimates import rates_of_shards
from decon_core.library.sample_section import sample_section
from decon_core.library.scan import Request, scan_folder
from decon_core.report.open import coverage_of
from decon_core.report.publish.limits import Limits, cases_of
from decon_core.report.publish.summary import summary_of
from tests.core.conftest import words

N_SHARDS = 24


@pytest.fixture(scope="module")
def request_(tmp_path_factory):
    """A request for 24 shards in two folders, of 3 documents, with an item in every third shard."""
    folder = tmp_path_factory.mktemp("world")
    items = [
        {"eval_key": "quiz", "split": "test", "question": words(("q", n), 30), "answer": f"w{n}"}
        for n in range(4)
    ]
    (folder / "evals").mkdir()
    (folder / "evals" / "quiz.jsonl").write_text("".join(json.dumps(row) + "\n" for row in items))
    for number in range(N_SHARDS):
        texts = [words((number, row), 40) for row in range(3)]
        if number % 3 == 0:
            item = items[number % 4]
            texts[1] += f" {item['question']} {item['answer']}"
        path = folder / "corpus" / ("books" if number < 3 else "web") / f"{number:02}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return Request(
        evals=folder / "evals",
        source=Source(name="corpus", path=str(folder / "corpus"), id="id"),
        out=folder / "out",
        policy=Policy(tokenizer_str="words"),
        has_page=False,
    )


@pytest.fixture(scope="module")
def full(request_):
    request = replace(request_, out=request_.out.with_name("full"), has_page=True)
    scan_folder(request)
    return request


@pytest.fixture(scope="module")
def sampled(request_):
    request = replace(request_, sample=ShardSample(n_shards=20), has_page=True)
    return request, scan_folder(request)


def lines_of(request):
    lines = (request.out / "ledger.jsonl").read_text().splitlines()
    return {line["file"]: line for line in map(json.loads, lines)}


def matches_of(request):
    return pq.read_table(request.out / "matches.parquet").sort_by([("file", "ascending")])


def test_drawn_shards_have_the_results_of_a_full_scan_and_the_others_are_named(sampled, full):
    request, outcome = sampled
    lines, lines_of_full = lines_of(request), lines_of(full)
    drawn = {name for name, line in lines.items() if line["is_read"]}
    assert len(drawn) == 20
    assert {name: lines[name] for name in drawn} == {name: lines_of_full[name] for name in drawn}
    for name in {*lines_of_full} - drawn:
        n_bytes = (Path(request.source.path) / name).stat().st_size
        of_file = {"file": name, "is_read": False, "is_drawn": False, "file_bytes": n_bytes}
        assert lines[name] == of_file
    every = matches_of(full)
    in_sample = [name in drawn for name in every["file"].to_pylist()]
    assert matches_of(request).equals(every.filter(in_sample))
    about = json.loads((request.out / "summary.json").read_text())["sample"]
    assert about["n_shards_not_sampled"] == len(outcome.not_drawn) == 4
    assert about["n_bytes_not_sampled"] == sum(shard.n_bytes for shard in outcome.not_drawn)
    assert (about["share"], about["n_documents_not_sampled"]) == (pytest.approx(20 / 24), None)


def test_estimates_are_of_shards_documents_and_items(sampled, full):
    request, outcome = sampled
    rates = {(rate.of, rate.source, rate.benchmark): rate for rate in outcome.rates}
    n_leaky = len({*matches_of(request)["file"].to_pylist()})
    shards, documents = (rates[of, "*", "quiz"] for of in ("shards", "documents"))
    assert (shards.n, shards.n_sampled, shards.n_found) == (24, 20, n_leaky)
    assert shards.low <= len({*matches_of(full)["file"].to_pylist()}) == 8 <= shards.high
    assert (documents.n_sampled, documents.n_found) == (60, n_leaky)
    assert documents.rate_low < documents.rate == n_leaky / 60 < documents.rate_high
    assert (documents.n, documents.estimate, documents.low) == (None, None, None)
    items = rates["items", "*", "quiz"]
    assert items.low == outcome.benchmarks[0].n_leaked_items
    books = rates["documents", "books", "quiz"]
    assert (books.rate, books.rate_high) == (None, None)  # 3 shards are too few
    assert rates["shards", "books", "quiz"].n == 3


def test_nothing_found_leaves_all_items_open(full, tmp_path):
    pq.write_table(matches_of(full).slice(0, 0), tmp_path / "none.parquet")
    n_documents = {f"web/{number}": 3 for number in range(20)}
    others = [*(f"web/{number}" for number in range(20, 50)), "code/0"]
    rates = rates_of_shards(tmp_path / "none.parquet", n_documents, others, {"quiz": 4})
    by_line = {(rate.of, rate.source): rate for rate in rates if rate.benchmark == "quiz"}
    items, shards, documents = (by_line[of, "*"] for of in ("items", "shards", "documents"))
    assert (items.n_found, items.low, items.high, items.n) == (0, 0, 4, 4)
    assert (shards.low, shards.high) == (0, 8)  # 0.168 of 51
    assert documents.rate_high == pytest.approx(1 - 0.025 ** (1 / 20))
    code = by_line["shards", "code"]  # none of it was drawn
    assert (code.n, code.low, code.high, code.rate) == (1, 0, 1, None)


def test_a_drawn_shard_that_cannot_be_read_counts_as_unknown_not_as_clean(request_, tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for name in ("a", "b", "bad"):
        row = "{no" if name == "bad" else json.dumps({"text": words(name, 40)})
        (corpus / f"{name}.jsonl").write_text(f"{row}\n")
    samples = (ShardSample(n_shards=2, seed=seed) for seed in range(99))
    names = ["a.jsonl", "b.jsonl", "bad.jsonl"]
    sample = next(sample for sample in samples if "bad.jsonl" in sample.draw(names))
    source = replace(request_.source, path=str(corpus))
    outcome = scan_folder(replace(request_, source=source, out=tmp_path / "out", sample=sample))
    assert outcome.not_read.exit_code == 1
    shards = next(rate for rate in outcome.rates if rate.of == "shards")
    assert (shards.n, shards.n_sampled, shards.n_found, shards.high) == (3, 1, 0, 2)


def test_as_a_report_shards_that_were_not_drawn_are_not_scanned(sampled, full):
    request, outcome = sampled
    database, whole = (database_of(side.out) for side in (request, full))
    notice = "4 of 24 shards are not in the sample of 20 shards, seed 0."
    coverage = coverage_of(database)
    assert notice in coverage.notice
    assert {row["shard"] for row in coverage.not_scanned} == {s.path for s in outcome.not_drawn}
    with duckdb.connect(str(database), read_only=True) as connection:
        statuses = connection.execute("SELECT DISTINCT status FROM item_status").fetchall()
    assert {*statuses} <= {("leaked",), ("not fully scanned",)}
    cases = cases_of(summary_of(database), Limits(max_rate=1.0, max_document_rate=1.0))
    assert not any(case.is_passed for case in cases)
    (gap,) = next(case.wrong for case in cases if case.name == "coverage")
    assert "1 more were not scanned against quiz: not in the sample of 20 shards" in gap

    card = (request.out / "card.md").read_text()
    assert notice in card
    assert " and 1 more of `corpus` were not scanned against `quiz`: not in the sample" in card
    assert {"report.html", "sample.svg", "sample_items.svg"} <= {
        path.name for path in request.out.iterdir()
    }
    (table,) = sample_section(outcome.rates).tables
    (whole_corpus,) = (row for row in table.rows if row[:3] == ["documents", "*", "*"])
    assert whole_corpus[4:8] == [None] * 4
    assert whole_corpus[8].endswith(" %")

    found = compare(whole, database, most=5)
    n_found = matches_of(request).num_rows
    assert found["n_findings"] == {"same": n_found, "not comparable": 8 - n_found}


def test_later_scans_read_only_shards_that_were_not_drawn_before(sampled, full):
    request, outcome = sampled
    smaller = scan_folder(replace(request, sample=ShardSample(n_shards=19), has_page=False))
    assert (smaller.n_shards_read, len(smaller.not_drawn)) == (0, 5)
    assert all(rate.rate is None for rate in smaller.rates if rate.of == "documents")
    later = scan_folder(replace(request, sample=None, has_page=False))
    assert (later.n_shards_read, later.n_shards) == (4, 24)
    assert matches_of(request).equals(matches_of(full))
    for name in ("summary.json", "ledger.jsonl"):
        assert (request.out / name).read_text() == (full.out / name).read_text()
    assert not (request.out / "sample.csv").exists()
    assert outcome.n_shards_read == 20
