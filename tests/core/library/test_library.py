"""The library as a program uses it: inputs, what could not be read, folders, output."""

import gc
import itertools
import json
import pickle
import threading
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import decon_core as dc
from decon_core.errors import (
    ConfigError,
    DamagedError,
    IncompleteError,
    InputError,
    RecordError,
    StaleError,
)
from decon_core.library import stored_index
from decon_core.library.findings import FINDINGS
from tests.core.library.samples import (
    CLEAN,
    HARBOUR,
    ITEMS,
    MATH,
    NO_ANSWER,
    TEXTS,
    VERBATIM,
    data_set,
)


@pytest.fixture(scope="module")
def index():
    return dc.build_index(ITEMS, name="quiz")


def test_a_leak_is_an_object_a_row_and_a_place_in_the_text(index):
    findings = index.check(VERBATIM)
    (finding,) = findings
    assert finding.item == "quiz test 0"
    assert (finding.outcome, finding.detector, finding.score) == ("leak", "aligned", 1.0)
    assert VERBATIM[slice(*finding.question_span)] == MATH["question"].rstrip("?")
    assert VERBATIM[slice(*finding.answer_span)] == MATH["answer"].rstrip(".")
    assert finding.passage_span is finding.passage_overlap is None
    assert findings.is_leaked
    assert not findings.is_kept
    assert findings[0] == findings[:1][0] == finding
    assert findings.to_arrow().schema == FINDINGS
    assert findings.to_polars()["score"].to_list() == [1.0]
    assert index.record(finding)["answer"] == MATH["answer"]
    assert "leak (verbatim): quiz test 0, by aligned, score 1.000; question (1.00) at" in repr(
        findings
    )


def test_a_question_without_its_answer_is_no_leak_and_not_kept(index):
    findings = index.check(NO_ANSWER)
    assert [finding.outcome for finding in findings] == ["no answer"]
    assert not findings.is_leaked
    assert not findings.is_kept
    clean = index.check(CLEAN)
    assert (len(clean), clean.is_leaked, clean.is_kept, clean.text) == (0, False, True, None)
    assert repr(clean) == "<Findings: nothing found in text 0>"
    assert clean.to_arrow() == FINDINGS.empty_table()
    assert [*map(index.keep, TEXTS[:3])] == index.keep_all(TEXTS[:3]) == [False, True, False]


def test_a_stream_without_end_is_read_a_little_ahead(index):
    n_read = 0

    def texts():
        nonlocal n_read
        for n_read in itertools.count(1):
            yield CLEAN * 100 if n_read != 3 else VERBATIM

    for threads in (1, 2):
        found = index.check_all(texts(), threads=threads)
        first = [*itertools.islice(found, 5)]
        assert [one.row for one in first if one.is_leaked] == [2]
        assert n_read < 20_000
        found.close()


def test_a_row_without_a_text_is_neither_clean_nor_leaked(index):
    texts = [VERBATIM, None, CLEAN]
    found = [*index.check_all(texts)]
    assert [one.unreadable for one in found] == [None, "None", None]
    assert "could not be read" in repr(found[1])
    assert "could not be read" in found[1]._repr_html_()
    for ask in (
        lambda: found[1].is_leaked,
        lambda: found[1].is_kept,
        lambda: index.keep_all(texts),
        lambda: index.table(pa.array(texts)),
    ):
        with pytest.raises(IncompleteError, match=r"text 1: found None; .*unreadable='drop'"):
            ask()
    dropping = dc.open_index(index.folder, policy={"unreadable": "drop"})
    assert dropping.keep_all(texts) == [False, False, True]
    assert dropping.table(texts)["row"].to_pylist() == [0]
    assert pa.array([None]).type == pa.null()
    assert [one.unreadable for one in index.check_all(pa.array([None, None]))] == ["None"] * 2


def test_bytes_that_are_not_utf8_are_replaced_and_reported(index):
    buffers = pa.array([b"\xff " + VERBATIM.encode(), CLEAN.encode()]).buffers()
    column = pa.Array.from_buffers(pa.string(), 2, buffers)
    found = [*index.check_all(column)]
    assert [one.has_invalid_utf8 for one in found] == [True, False]
    assert found[0].text == f"\ufffd {VERBATIM}"
    assert found[0].is_leaked
    clean = pa.chunked_array([column.slice(1), pa.array([CLEAN]), column])
    assert [one.has_invalid_utf8 for one in index.check_all(clean)] == [False, False, True, False]
    block = dc.open_index(index.folder, policy={"invalid_utf8": "block"})
    with pytest.raises(IncompleteError, match="not UTF-8"):
        block.keep_all(column)
    drop = dc.open_index(index.folder, policy={"invalid_utf8": "drop"})
    assert drop.keep_all(column) == [False, True]


def test_lone_surrogates_become_replacement_characters_as_in_a_shard(index):
    findings = index.check(f"\ud800 {VERBATIM}")
    assert findings.text == f"\ufffd {VERBATIM}"
    assert findings.text[slice(*findings[0].question_span)] == MATH["question"].rstrip("?")


def test_columns_of_tables_and_data_sets_are_read_as_lists_are(index):
    texts = [CLEAN, None, VERBATIM, "", NO_ANSWER]
    expected = [*index.check_all(texts)]
    frame = pl.DataFrame({"n": range(5), "text": texts})
    dataset = data_set({"n": n, "text": text} for n, text in enumerate(["first", *texts]))
    selected = dataset.select(range(1, 6))
    for table in (
        frame,
        frame.to_arrow(),
        frame.with_columns(pl.col("text").cast(pl.Categorical)),
        selected,
        selected.with_format("numpy"),
        selected.to_iterable_dataset(),
    ):
        assert [*index.check_all(table, column="text")] == expected
    for column in (frame["text"], selected["text"], pa.array(texts, pa.string_view())):
        assert [*index.check_all(column)] == expected
    assert dc.build_index(data_set(ITEMS)).check(VERBATIM).is_leaked


@pytest.mark.parametrize(
    ("texts", "column", "message"),
    [
        (VERBATIM, None, "one string; .*call `check`"),
        ({"text": [CLEAN]}, None, "an object with 'text'; .*pass a table"),
        (b"bytes", None, "bytes; .*Decode them"),
        (7, None, "the number 7"),
        ([CLEAN, 7], None, "text 1: found the number 7; .*or None"),
        (pa.array([1]), None, "a column of int64; expected strings, lists"),
        (pa.table({"a": [CLEAN]}), "b", "no column 'b'"),
        ([CLEAN], "a", "a column only with rows, a table or a dataset"),
    ],
)
def test_other_inputs_are_refused_with_what_is_expected(index, texts, column, message):
    with pytest.raises(InputError, match=message):
        list(index.check_all(texts, column=column))


def test_one_text_and_some_threads_are_required(index):
    with pytest.raises(InputError, match="call `check_all`"):
        index.check(None)
    with pytest.raises(InputError, match="threads: found 0"):
        index.check_all([CLEAN], threads=0)


def test_threads_may_share_an_index(index):
    found: list[int] = []
    workers = [
        threading.Thread(target=lambda: found.extend(map(len, index.check_all(TEXTS * 5))))
        for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    for _ in index.check_all(TEXTS):  # a check while others are going on
        assert index.check(VERBATIM).is_leaked
    for worker in workers:
        worker.join()
    assert sorted(found) == sorted([len(index.check(text)) for text in TEXTS] * 15)


def test_a_page_marks_what_was_found_and_escapes_the_rest(index):
    hostile = f"<script>alert(1)</script> & {VERBATIM} <img src=x>"
    html = index.check(hostile)._repr_html_()
    assert "<script>" not in html
    assert "<img" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; An exercise." in html
    marked = html.partition('title="question">')[2].partition("</mark>")[0]
    assert marked == MATH["question"].rstrip("?")
    assert html.count('title="answer"') == 2  # in the text, and in the item beside it
    assert "color: inherit" in html
    assert "nothing found in text 0" in index.check(CLEAN)._repr_html_()
    rows = [{**MATH, "benchmark": f"copy_{number:02}"} for number in range(12)]
    many = dc.build_index([*rows, HARBOUR]).check(VERBATIM)
    assert len(many) == 12
    assert "and 2 findings more" in many._repr_html_()


def test_a_program_under_other_names_is_marked_as_well():
    index = dc.build_index(ITEMS, policy={"detectors": ["decon", "code"]})
    assert "decon, code; 2 items that code cannot find" in repr(index)
    (findings,) = index.check_all([TEXTS[3]])
    assert [(one.detector, one.is_leak) for one in findings] == [("code", True)]
    assert "<mark" in findings._repr_html_()


# Benchmarks ---------------------------------------------------------------------------------------


def test_benchmarks_come_as_rows_tables_files_or_by_a_recipe(tmp_path):
    path = tmp_path / "evals.jsonl"
    rows = [{**row, "eval_key": "quiz", "split": "dev"} for row in ITEMS]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    other = [{"problem": one["question"], "solution": one["answer"]} for one in ITEMS]
    (tmp_path / "raw.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in other))
    recipe = {"prompt": "problem", "answers": ["solution"]}
    table = {"local_path": "raw.jsonl", "splits": ["dev"], **recipe}
    (tmp_path / "evals.yaml").write_text(json.dumps({"evals": {"quiz": table}}))
    sources = [
        dc.build_index(rows),
        dc.build_index(iter(rows)),
        dc.build_index(pa.Table.from_pylist(rows)),
        dc.build_index(path),
        dc.build_index(str(tmp_path / "evals.yaml")),
    ]
    for index in sources:
        assert (index.benchmarks, index.n_items) == (("quiz",), 3)
        assert [one.item for one in index.check(VERBATIM)] == ["quiz dev 0"]
    named = dc.build_index(other, name="raw", recipe=recipe)
    assert [one.item for one in named.check(VERBATIM)] == ["raw test 0"]
    several = dc.build_index([{**MATH, "benchmark": "b"}, {**HARBOUR, "benchmark": "a"}])
    assert several.benchmarks == ("a", "b")
    assert "<Index: 2 benchmarks, 2 items; aligned; in " in repr(several)


def test_a_single_item_is_found():
    assert dc.build_index(ITEMS[:1]).check(VERBATIM).is_leaked


@pytest.mark.parametrize(
    ("evals", "options", "error", "message"),
    [
        ([], {}, InputError, "no item"),
        (MATH, {}, InputError, "Put it into a list"),
        (5, {}, InputError, "found the number 5"),
        ([MATH, "text"], {}, RecordError, "evals row 2"),
        ([{"answer": "x"}], {}, RecordError, "evals row 1, field 'question'"),
        ([{"question": "x", "anwser": "y"}], {}, RecordError, "'anwser'.* Did you mean 'answer'"),
        (ITEMS, {"name": "no such/name"}, InputError, "no such/name"),
        (ITEMS, {"recipe": {"promt": "question"}}, InputError, "promt"),
        (ITEMS, {"recipe": {"splits": ["a"], "prompt": "question"}}, InputError, "splits"),
        (ITEMS, {"recipe": {"prompt": {1, 2}.__class__}}, InputError, "cannot be written as YAML"),
        ("evals.yaml", {"recipe": {"prompt": "question"}}, InputError, "expected only the path"),
        ("no such file", {}, InputError, "no such file"),
        (ITEMS, {"policy": {"detectors": ["dacon"]}}, ConfigError, "detectors"),
        (ITEMS, {"policy": 3}, InputError, "a Policy, or a dictionary"),
        (ITEMS, {"policy": {"leave_out_common": True}}, ConfigError, "depends on the whole corpus"),
        (
            [{"question": "Too short?"}],
            {},
            InputError,
            "none of 1 item checkable .too few tokens: 1",
        ),
    ],
)
def test_what_cannot_be_indexed_is_refused(evals, options, error, message):
    with pytest.raises(error, match=message):
        dc.build_index(evals, **options)


def test_other_fields_of_rows_may_have_any_name():
    rows = [{**row, "message": "hello", "answers": 3} for row in ITEMS]
    assert dc.build_index(rows).n_items == len(ITEMS)


def test_items_that_cannot_be_found_are_named():
    with pytest.warns(UserWarning, match="can find 1 of 4 items .too few tokens: 1"):
        index = dc.build_index([*ITEMS, {"question": "Too short?"}])
    assert index.invisible().select(["instance_index", "reason"]).to_pylist() == [
        {"instance_index": 3, "reason": "too few tokens"}
    ]
    assert "1 item that aligned cannot find" in repr(index)


# Folders ------------------------------------------------------------------------------------------


def test_a_folder_is_kept_opened_and_built_anew_for_other_items(tmp_path, monkeypatch):
    folder = tmp_path / "index"
    index = dc.build_index(ITEMS, folder=folder)
    assert index.folder == folder
    written = {path: path.stat().st_ino for path in folder.rglob("*")}
    dc.build_index(ITEMS, folder=str(folder))
    assert {path: path.stat().st_ino for path in folder.rglob("*")} == written
    assert [*dc.open_index(folder).check(VERBATIM)] == [*index.check(VERBATIM)]
    strict = dc.open_index(folder, policy={"perfect_match_decay_end": 50, "benchmark": {}})
    assert strict.policy == dc.Policy()
    with pytest.raises(StaleError, match="Build it again"):
        dc.open_index(folder, policy={"ngram_size": 6})
    pickled = pickle.dumps(index)
    assert pickle.loads(pickled).check(VERBATIM).is_leaked
    # A build that fails leaves what was there.
    with monkeypatch.context() as patch:
        patch.setattr(stored_index, "write_json", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            dc.build_index(ITEMS[:2], folder=folder)
    assert dc.open_index(folder).n_items == 3
    dc.build_index(ITEMS[:2], folder=folder)
    assert dc.open_index(folder).n_items == 2
    with pytest.raises(StaleError, match="fingerprint"):
        pickle.loads(pickled)
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_thresholds_may_change_without_a_build(tmp_path):
    index = dc.build_index(ITEMS, folder=tmp_path / "index")
    text = VERBATIM.replace("puppet", "village").replace("12, 14", "12, 15")
    (finding,) = index.check(text)
    assert 0.8 < finding.score < 0.95
    assert finding.is_leak
    strict = dc.open_index(tmp_path / "index", policy={"aligned_threshold": 0.95})
    (same,) = strict.check(text)
    assert (same.score, same.outcome) == (finding.score, "no leak")
    assert strict.check(text).is_kept
    assert "no leak (edited): evals test 0" in repr(strict.check(text))


def test_other_folders_are_neither_opened_nor_replaced(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="this one would be replaced"):
        dc.build_index(ITEMS, folder=tmp_path)
    with pytest.raises(InputError, match="a file; expected a folder"):
        dc.build_index(ITEMS, folder=tmp_path / "notes.txt")
    with pytest.raises(InputError, match=r"no index\.json"):
        dc.open_index(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_damaged_folder_is_refused_and_built_anew(tmp_path):
    folder = tmp_path / "index"
    dc.build_index(ITEMS, folder=folder)
    manifest = folder / "index.json"
    manifest.write_text(manifest.read_text().replace("quiz", "quit").replace("evals", "evils"))
    with pytest.raises(DamagedError):
        dc.open_index(folder)
    assert dc.build_index(ITEMS, folder=folder).check(VERBATIM).is_leaked
    assert dc.open_index(folder).check(VERBATIM).is_leaked


def test_a_temporary_folder_goes_with_its_index():
    index = dc.build_index(ITEMS)
    root = Path(index.folder).parent
    copy = pickle.loads(pickle.dumps(index))
    del copy
    gc.collect()
    assert root.is_dir()  # only the index that made it removes it
    findings = index.check(VERBATIM)
    del index
    gc.collect()
    assert "<mark" in findings._repr_html_()  # which still refers to the index
    del findings
    gc.collect()
    assert not root.exists()
