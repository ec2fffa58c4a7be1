"""Reports of the reference implementation: written, and read into a database."""

import json
import re
from pathlib import Path

import duckdb
import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from decon_core.benchmarks.records import load_records
from decon_core.compare.differences import compare
from decon_core.errors import InputError
from decon_core.features.decon_reports.decon_jsonl import MARKS, write_report
from decon_core.features.decon_reports.read import MADE_BY, read_reports
from decon_core.features.decon_reports.report_lines import LineError, Mark, parse_marks, read_line
from decon_core.mixtures.builder import Builder
from decon_core.report.html.build import write_page
from decon_core.report.publish.limits import COVERAGE, Limits, cases_of
from decon_core.report.publish.summary import summary_of
from decon_core.scan.scanner import scan_packs
from tests.core.conftest import DECON
from tests.core.places import report_of
from tests.core.report.pages import data_of

# As the reference implementation 0.3 writes them.
LINE = {
    "training_file": "a.jsonl.gz",
    "training_line": 7,
    "eval_dataset": "quiz",
    "eval_key": "quiz",
    "eval_line": 3,
    "eval_instance_index": 2,
    "split": "test",
    "ngram_match_cnt": 16,
    "eval_unique_ngrams": 17,
    "contamination_score": 0.95,
    "method": "simple",
    "idf_overlap": 0.94,
    "question_start_idx": 10,
    "question_end_idx": 29,
    "training_overlap_text": "... so 【Who keeps the keys】? ⟦The miller⟧ keeps ...",
    "eval_question_text": "who keeps the keys",
    "eval_answer_text": "the miller",
    "answer_idf_overlap": 1.0,
    "eval_token_length": 20,
    "fingerprint": "f1",
    "is_correct": True,
}


def without(*names):
    return {name: value for name, value in LINE.items() if name not in names}


def write_lines(path: Path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = [line if isinstance(line, bytes) else orjson.dumps(line) for line in lines]
    path.write_bytes(b"".join(line + b"\n" for line in raw))


@pytest.fixture
def reports(tmp_path):
    return tmp_path / "reports"


@pytest.fixture
def ask(tmp_path, reports):
    """Reads the reports at the first query; gives what queries of the database answer."""

    def read_and_ask(query):
        if not (tmp_path / "r.duckdb").exists():
            read_reports(reports, tmp_path / "r.duckdb")
        with duckdb.connect(str(tmp_path / "r.duckdb"), read_only=True) as connection:
            return connection.execute(query).fetchall()

    return read_and_ask


# Reading ------------------------------------------------------------------------------------------


def test_a_line_is_a_match_of_the_shard_that_its_file_is_named_for(reports, ask):
    write_lines(reports / "web" / "a.jsonl.gz-simple-0.80.jsonl", LINE)
    columns = "shard_name, row, benchmark, split, instance_index, detector, score, question_stop"
    assert ask(f"SELECT {columns} FROM matches") == [
        ("web/a.jsonl.gz", 7, "quiz", "test", 2, "decon", 0.95, 30)
    ]
    assert ask("SELECT threshold, made_by FROM runs") == [(0.8, MADE_BY)]
    assert ask("SELECT status, n_documents, what_leaked FROM item_status") == [
        ("leaked", 1, "with its answer")
    ]


def test_the_marks_of_a_text_become_places_in_it(reports, ask):
    write_lines(reports / "a.jsonl.gz-simple-0.80.jsonl", LINE)
    ((text, marks, question, n),) = ask(
        "SELECT text, text_marks, question, n_documents FROM matched_texts"
    )
    assert text == "... so Who keeps the keys? The miller keeps ..."
    assert {one["part"]: text[one["start"] : one["stop"]] for one in marks} == {
        "question": "Who keeps the keys",
        "answer": "The miller",
    }
    assert (question, n) == ("who keeps the keys", 1)


def test_the_same_words_of_the_same_record_are_one_pair(reports, ask):
    shouted = LINE["training_overlap_text"].upper().replace(" SO ", " And so ")
    other = "【Who keeps the】 keys? ⟦The miller⟧"
    write_lines(
        reports / "a.jsonl.gz-simple-0.80.jsonl",
        LINE,
        LINE | {"training_line": 9, "training_overlap_text": shouted, "contamination_score": 0.8},
        LINE | {"training_line": 9, "training_overlap_text": other},
    )
    query = "SELECT n_matches, n_documents, score FROM matched_texts ORDER BY n_matches"
    assert ask(query) == [(1, 1, 0.95), (2, 2, 0.95)]


def test_an_empty_report_says_that_its_shard_was_scanned(reports, ask):
    write_lines(reports / "a.jsonl.gz-simple-0.80.jsonl", LINE)
    write_lines(reports / "b.jsonl.gz-simple-0.80.jsonl")
    assert ask("SELECT shard_name, n_contaminated_documents FROM by_shard") == [
        ("a.jsonl.gz", 1),
        ("b.jsonl.gz", 0),
    ]


def test_what_such_a_report_does_not_say_is_null_and_nothing_is_called_clean(
    reports, tmp_path, ask
):
    write_lines(reports / "a.jsonl.gz-simple-0.80.jsonl", LINE)
    assert ask("SELECT n_items, version FROM benchmarks") == [(None, None)]
    assert ask("SELECT n_documents, n_unreadable, shard FROM shards") == [(None, None, None)]
    write_page(tmp_path / "r.duckdb", tmp_path / "r.html")
    told = data_of(tmp_path / "r.html", "overview")
    assert told["classes"]["rows"] == [
        ["items", "–", "1", "0", "0", "–", "–"],
        ["documents", "–", "1", "0", "0", "–", "–"],
    ]
    words = json.dumps(told, ensure_ascii=False)
    assert "number of unreadable rows is unknown" in words
    assert "Every row was read" not in words
    assert "No share is given" in words
    cases = cases_of(summary_of(tmp_path / "r.duckdb"), Limits(max_rate=1.0))
    assert [case.name for case in cases if not case.is_passed] == ["quiz", COVERAGE]


def test_lines_that_cannot_be_read_are_refused_with_file_and_line(reports, tmp_path):
    path = reports / "a.jsonl.gz-simple-0.80.jsonl"
    write_lines(path, LINE, b"{no", LINE | {"contamination_score": "high"}, without("eval_key"))
    with pytest.raises(InputError) as caught:
        read_reports(reports, tmp_path / "r.duckdb")
    told = str(caught.value)
    for line in (f"{path} line 2: ", f"{path} line 3: ", f"{path} line 4: no 'eval_key'"):
        assert line in told
    assert "3 lines cannot be read" in told
    assert "--skip-bad" in told
    assert not (tmp_path / "r.duckdb").exists()


def test_lines_that_are_skipped_are_counted_and_stand_in_the_database(reports, tmp_path, ask):
    write_lines(reports / "a.jsonl.gz-simple-0.80.jsonl", LINE, b"{no")
    (reports / "notes.txt").write_text("nothing")
    read = read_reports(reports, tmp_path / "r.duckdb", may_skip=True)
    assert (read.n_bad, read.others) == (1, ["notes.txt"])
    assert ask("SELECT count(*) FROM matches") == [(1,)]
    ((shard, reason, detail),) = ask("SELECT shard_name, reason, detail FROM unreadable")
    assert (shard, reason) == ("a.jsonl.gz", "line of the report")
    assert detail.startswith("line 2: ")
    assert ask("SELECT made_by FROM runs") == [(f"{MADE_BY}; 1 lines could not be read",)]


def test_a_shard_that_was_reported_twice_and_two_thresholds_are_refused(reports, tmp_path):
    for threshold in ("0.80", "0.85"):
        write_lines(reports / f"a.jsonl.gz-simple-{threshold}.jsonl", LINE)
    with pytest.raises(InputError) as caught:
        read_reports(reports, tmp_path / "r.duckdb")
    assert "a second report of shard a.jsonl.gz" in str(caught.value)
    assert "different thresholds: 0.8, 0.85" in str(caught.value)


def test_a_folder_without_reports_is_refused(reports, tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        read_reports(reports, tmp_path / "r.duckdb")
    (reports / "notes.txt").parent.mkdir()
    (reports / "notes.txt").write_text("nothing")
    with pytest.raises(InputError, match=r"no file that ends in \.jsonl"):
        read_reports(reports, tmp_path / "r.duckdb")


@pytest.mark.parametrize(
    "wrong",
    [
        *(without(name) for name in ("training_file", "training_line", "eval_instance_index")),
        LINE | {"training_line": -1},
        LINE | {"training_line": True},
        LINE | {"training_line": 2**63},
        LINE | {"eval_key": 3},
        LINE | {"contamination_score": None},
        LINE | {"is_correct": "yes"},
        LINE | {"idf_overlap": "much"},
        [LINE],
    ],
)
def test_a_line_that_is_none_is_not_read(wrong):
    with pytest.raises(LineError):
        read_line(orjson.dumps(wrong))


def test_fields_that_only_some_versions_write_may_be_missing(reports, ask):
    needed = ("training_file", "training_line", "eval_key", "eval_instance_index")
    line = {name: LINE[name] for name in (*needed, "contamination_score")}
    write_lines(reports / "a.jsonl.gz-simple-0.80.jsonl", line)
    assert ask("SELECT row, split, question_start FROM matches") == [(7, "", None)]
    assert ask("SELECT text, why_no_text FROM matched_texts") == [
        (None, "the report does not contain the text")
    ]


# Marks --------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.text(), st.text()), max_size=3), st.text(), st.permutations([*MARKS]))
def test_marks_come_out_as_they_went_in(parts, tail, order):
    signs = "[" + "".join(sign for pair in MARKS.values() for sign in pair) + "]"
    text = marked = ""
    marks = []
    for part, (between, within) in zip(order, parts, strict=False):
        between, within = re.sub(signs, "", between), re.sub(signs, "", within)
        opening, closing = MARKS[part]
        start = len(text) + len(between)
        text += between + within
        marked += f"{between}{opening}{within}{closing}"
        marks.append(Mark(start, start + len(within), part))
    tail = re.sub(signs, "", tail)
    read = parse_marks(marked + tail)
    assert (read.text, sorted(read.marks, key=repr)) == (text + tail, sorted(marks, key=repr))
    assert read.unclear == ()


@pytest.mark.parametrize(
    "text", ["【a】 b 【c】", "【a 【b】 c】", "a 【b", "a】 b", "】a【", "【news】 ⟦a⟧ 【who】"]
)
def test_brackets_of_the_document_are_not_taken_for_marks(text):
    read = parse_marks(text)
    assert read.unclear == ("question",)
    assert not [mark for mark in read.marks if mark.part == "question"]
    assert read.text.count("【") == text.count("【")


@given(st.text(alphabet="ab 【】⟦⟧⟨⟩", max_size=30))
@example("⟨【⟩】")
def test_nothing_but_marks_is_taken_out_of_a_text(text):
    read = parse_marks(text)
    assert len(read.text) == len(text) - 2 * len(read.marks)
    for mark in read.marks:
        assert 0 <= mark.start <= mark.stop <= len(read.text)


# There and back -----------------------------------------------------------------------------------


@pytest.fixture
def scanned(bench, make_words):
    """A store with a report, of two shards; a question with a passage, and one of four choices."""
    asked, told, passage = (make_words(name, 30) for name in ("q", "a", "p"))
    choice, choices = make_words("c", 40), [make_words(("choice", n), 6) for n in range(2)]
    bench.policy = DECON
    versions = bench.prepare(
        {
            "quiz": [(make_words("x", 30), make_words("y", 6), None), (asked, told, passage)],
            "maths": [(choice, one, None) for one in choices],
        }
    )
    shards = {
        "a.jsonl": [make_words(0, 50), f"{passage}! {asked.upper()}? {told}. {make_words(1, 30)}"],
        "b.jsonl": [f"{make_words(2, 50)} {choice}: {choices[1]} {make_words(3, 50)}"],
        "c.jsonl": [make_words(4, 50)],
    }
    pack = bench.pack(shards)
    scan_packs(bench.store, [pack], versions, bench.policy)
    report_of(bench.store, [pack], versions, bench.policy)
    return Builder(bench.store, (pack,), tuple(versions), bench.policy, ())


def test_what_is_written_and_read_is_the_pipelines_own_report(scanned, tmp_path):
    out, database = tmp_path / "reports", tmp_path / "r.duckdb"
    reader = scanned.reader
    records = {one.benchmark: load_records(scanned.store, one) for one in reader.versions}
    for pack in scanned.packs:
        for shard in pack.shards:
            entries = reader.entries(shard, reader.versions, source=pack.source.name)
            write_report(out, shard, pack.source, entries, records, scanned.policy)
    read = read_reports(out, database)
    assert (read.n_files, read.n_bad, read.n_unclear, read.others) == (3, 0, 0, [])
    found = compare(scanned.store.report, database, most=10)
    # Document, item and score. The published form has leaks alone, and no class `no answer`.
    assert found["n_findings"] == {"same": 2, "no answer, only in first": 1}
    assert found["n_shards"] == {"in both": 3}
    # A pair keeps its name on the way, so that what people said of it holds for either.
    query = (
        "SELECT benchmark, instance_index, text_id FROM matches WHERE is_contaminated ORDER BY ALL"
    )
    text_ids = []
    for path in (scanned.store.report, database):
        with duckdb.connect(str(path), read_only=True) as connection:
            text_ids.append(connection.execute(query).fetchall())
    assert text_ids[0] == text_ids[1]
