"""Rows and conversations in every form that a program may have them in."""

import datetime as dt
from base64 import b64encode
from itertools import chain

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import decon_core as dc
from decon_core.errors import IncompleteError, InputError
from tests.core.library.samples import CLEAN, HARBOUR, ITEMS, MATH, VERBATIM, data_set
from tests.oracle.layouts import Sentences, layouts, rows_of, unknown_layout

N_UNKNOWN = 60


def chat_of(*contents):
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": text} for n, text in enumerate(contents)]


LEAK = chat_of(MATH["question"], MATH["answer"])
HARMLESS = chat_of(CLEAN, "Thank you.")
ROWS = [{"id": "a", "messages": HARMLESS}, {"id": "b", "messages": LEAK}]


@pytest.fixture(scope="module")
def index():
    return dc.build_index(ITEMS, name="quiz")


def test_a_conversation_is_read_as_one_text_and_a_finding_says_in_which_turns(index):
    findings = index.check(LEAK)
    (finding,) = findings
    assert findings.is_leaked
    assert findings.text == f"{MATH['question']}\n\n{MATH['answer']}"
    assert (finding.question_part, finding.answer_part) == (
        "messages[0].content",
        "messages[1].content",
    )
    assert "question (1.00) in messages[0].content at characters 0-183" in repr(findings)
    row = index.check({"n": 3, "system": CLEAN, "messages": LEAK})
    assert [*index.check_all([LEAK, {"n": 3, "system": CLEAN, "messages": LEAK}])][1][:] == row[:]
    answer = MATH["answer"].rstrip(".")
    assert row.slots(row[0].answer_span) == [("messages[1].content", (0, len(answer)))]
    assert row.slots((0, len(row.text))) == [
        ("system", (0, len(CLEAN))),
        ("messages[0].content", (0, len(MATH["question"]))),
        ("messages[1].content", (0, len(MATH["answer"]))),
    ]
    plain = index.check(VERBATIM)
    assert plain.slots(plain[0].question_span) == [("text", plain[0].question_span)]
    assert plain[0].question_part == "text"


def test_what_is_hidden_in_a_row_is_marked_and_its_row_not_kept(index):
    row = {"messages": HARMLESS, "reference_answer": HARBOUR["question"]}
    (finding,) = findings = index.check(row)
    assert (finding.slot_kind, finding.question_part) == ("hidden", "reference_answer")
    assert "no answer (verbatim, hidden): quiz test 1" in repr(findings)
    assert findings.text[slice(*finding.question_span)] in HARBOUR["question"]
    assert not index.keep(row)
    assert findings.to_arrow()["slot_kind"].to_pylist() == ["hidden"]


def test_an_item_in_visible_and_in_hidden_text_is_found_in_both(index):
    findings = index.check({"messages": chat_of(VERBATIM), "reference_answer": VERBATIM})
    assert [(one.slot_kind, one.question_part) for one in findings] == [
        ("visible", "messages[0].content"),
        ("hidden", "reference_answer"),
    ]


def structs_of(rows):
    return pa.Table.from_pylist(rows).to_struct_array().chunk(0)


def small_chunks(rows):
    table = pa.Table.from_pylist(rows)
    return pa.concat_tables([table.slice(n, 1) for n in range(len(rows))])


# Of the same rows, every form that is read.
FORMS = {
    "dictionaries": lambda rows: rows,
    "other mappings": lambda rows: [*data_set(rows).with_format("numpy")],
    "table": pa.Table.from_pylist,
    "small chunks": small_chunks,
    "record batch": lambda rows: pa.Table.from_pylist(rows).to_batches()[0],
    "struct array": structs_of,
    "sliced struct array": lambda rows: pa.concat_arrays([structs_of(rows)] * 2).slice(len(rows)),
    "polars": pl.DataFrame,
    "struct series": lambda rows: pl.DataFrame(rows).to_struct("rows"),
    "dataset": data_set,
    "numpy dataset": lambda rows: data_set(rows).with_format("numpy"),
    "streamed dataset": lambda rows: data_set(rows).to_iterable_dataset(),
}


CONVERSATIONS = {
    "lists": lambda chats: chats,
    "tuples": lambda chats: map(tuple, chats),
    "array": pa.array,
    "list views": lambda chats: pa.array(chats, pa.list_view(pa.array(chats).type.value_type)),
    "series": pl.Series,
    "column": lambda chats: data_set({"chat": chat} for chat in chats)["chat"],
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_read_alike_in_every_form(index, form):
    rows = [*ROWS, {"id": "c", "messages": chat_of(CLEAN * 300)}, *ROWS[::-1]]
    found = [*index.check_all(FORMS[form](rows))]
    assert [len(one) for one in found] == [0, 1, 0, 1, 0]
    assert found == [*index.check_all(rows)]
    assert [*index.check_all(FORMS[form](rows), column="messages")] == found
    paths = ["messages[].content", "id"]
    assert index.keep_all(FORMS[form](rows), column=paths) == [True, False, True, False, True]


@pytest.mark.parametrize("form", CONVERSATIONS)
def test_conversations_are_read_alike_in_every_form(index, form):
    found = [*index.check_all(CONVERSATIONS[form]([HARMLESS, LEAK]))]
    assert [one.is_kept for one in found] == [True, False]
    assert found[1].slots(found[1][0].question_span)[0][0] == "messages[0].content"


def test_texts_rows_conversations_and_nulls_may_be_mixed(index):
    texts = [CLEAN, *ROWS, None, VERBATIM, LEAK, {}, [], ""]
    found = [*index.check_all(iter(texts))]
    assert [len(one) for one in found] == [0, 0, 1, 0, 1, 1, 0, 0, 0]
    assert [one.unreadable for one in found] == [None] * 3 + ["None"] + [None] * 5
    for text, one in zip(texts, found, strict=True):
        assert text is None or index.check(text)[:] == one[:]


@pytest.mark.parametrize(
    "nulls",
    [
        pa.array([ROWS[0], None, None, ROWS[1]]),
        pa.array([None, ROWS[0], None, None, ROWS[1]]).slice(1),
        pa.array([HARMLESS, None, None, LEAK]),
        pl.Series([HARMLESS, None, None, LEAK]),
        pl.Series([ROWS[0], None, None, ROWS[1]]),
    ],
)
def test_a_row_that_is_null_is_not_clean(index, nulls):
    found = [*index.check_all(nulls)]
    assert [one.unreadable for one in found] == [None, "None", "None", None]
    assert [len(one) for one in found] == [0, 0, 0, 1]
    with pytest.raises(IncompleteError, match="text 1: found None"):
        index.keep_all(nulls)


@pytest.mark.parametrize(
    "nothing",
    [[], iter([]), pa.array([], pa.string()), pa.table({"text": []}), pl.DataFrame()],
)
def test_nothing_to_read_has_no_findings(index, nothing):
    assert [*index.check_all(nothing)] == []


def test_a_row_of_a_published_layout_without_its_text_is_not_clean(index):
    row = {"_hf_placeholder": "to be filled", "responses_create_params": {"input": CLEAN}}
    findings = index.check(row)
    assert findings.unreadable == "text is published elsewhere: _hf_placeholder"
    with pytest.raises(IncompleteError, match="published elsewhere"):
        _ = findings.is_kept


# Text that is not read ----------------------------------------------------------------------------

PARTLY = [
    {"text": CLEAN, "meta": {"title": VERBATIM, "note": "short"}},
    {"text": VERBATIM, "meta": {"title": CLEAN, "note": CLEAN}},
    {"text": CLEAN, "meta": {"title": "few words", "note": None}},
]


@pytest.mark.parametrize("form", [list, pa.Table.from_pylist, pl.DataFrame, data_set])
def test_text_beside_the_column_is_named_and_not_clean(index, form):
    rows = form(PARTLY)
    size = len(CLEAN.encode())
    found = [*index.check_all(rows, column="text")]
    assert [one.unread for one in found] == [
        {"meta.title": (1, len(VERBATIM.encode()))},
        {"meta.title": (1, size), "meta.note": (1, size)},
        {},
    ]
    assert repr(found[0]) == "<Findings: nothing found in text 0; not read: meta.title>"
    for ask in (
        lambda: found[0].is_kept,
        lambda: found[0].is_leaked,
        lambda: index.keep_all(rows, column="text"),
        lambda: index.table(rows, column="text"),
    ):
        with pytest.raises(
            IncompleteError, match=r"text 0: .*`meta.title`.*ignore=\['meta.title'\]"
        ):
            ask()
    assert found[1].is_leaked  # whatever the rest holds
    assert not found[1].is_kept
    assert found[2].is_kept


def test_text_may_stay_unread_if_its_path_is_ignored(index):
    for ignore in ("meta", ["meta.title", "meta.note"], "*", ["*.title", "meta.*"]):
        kept = index.keep_all(PARTLY, column="text", ignore=ignore)
        assert kept == [True, False, True]
        table = pa.Table.from_pylist(PARTLY)
        assert index.table(table, column="text", ignore=ignore)["row"].to_pylist() == [1]
    (first, second, _) = index.check_all(PARTLY, column="text", ignore="meta.title")
    assert not first.unread
    assert [*second.unread] == ["meta.note"]
    assert index.keep_all(PARTLY) == [False, False, True]


def test_a_picture_beside_text_is_not_unread_text(index):
    picture = b64encode(bytes(range(256))).decode()
    row = {"text": CLEAN, "image": picture, "url": f"data:image/png;base64,{picture}"}
    for rows in ([row], pa.Table.from_pylist([row])):
        assert index.keep_all(rows) == [True]


@pytest.mark.parametrize(
    "rows",
    [
        [{"input_ids": [7, 8]}],
        [{"text": None, "input_ids": [*range(8)]}],
        [{"text": b64encode(CLEAN.encode() * 9).decode()}],
        [{"text": CLEAN, "file": b64encode(CLEAN.encode() * 9).decode()}],
        pa.table({"text": [""], "blob": [b"\x1f\x8b\x08" + bytes(range(256))]}),
    ],
)
def test_a_row_without_text_that_holds_something_else_is_not_clean(index, rows):
    with pytest.raises(IncompleteError, match="text 0: not all text was read: "):
        index.keep_all(rows)
    assert index.keep_all(rows, ignore="*") == [True]
    assert index.keep_all([{}, {"text": ""}, {"text": "", "tags": [1]}]) == [True] * 3


def test_a_row_that_lacks_the_column_is_not_clean(index):
    found = [*index.check_all([{"text": CLEAN}, {"txet": CLEAN}, {"text": None}], column="text")]
    assert [one.unreadable for one in found] == [None, "field missing: text", "None"]


# Values -------------------------------------------------------------------------------------------

GZIP = b"\x1f\x8b\x08" + bytes(range(256))
WITH_BYTES = [
    {"id": 1, "raw": f"{MATH['question']} {MATH['answer']}".encode()},
    {"id": 2, "raw": CLEAN.encode() + b"\0" * 40, "text": CLEAN},
    {"id": 3, "text": CLEAN, "raw": GZIP},
    {"id": 4, "raw": GZIP},
    {"id": 5, "messages": [{"role": "user", "content": None, "raw": VERBATIM.encode()}]},
    {"id": 6, "text": VERBATIM, "raw": None},
    {"id": 7, "raw": CLEAN.encode("utf-16"), "text": ""},
]


@pytest.mark.parametrize("column", [None, "text"])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_in_rows_are_read_like_columns_of_bytes(index, kind, column):
    def of_kind(value):
        if isinstance(value, dict):
            return {key: of_kind(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [of_kind(inner) for inner in value]
        return kind(value) if isinstance(value, bytes) else value

    names = dict.fromkeys(chain.from_iterable(WITH_BYTES))
    whole = [names | row for row in WITH_BYTES]
    rows = [*map(of_kind, whole)]
    found = [*index.check_all(rows, column=column)]
    expected = [*index.check_all(pa.Table.from_pylist(whole), column=column)]
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours.text, ours.unread) == (theirs.text, theirs.unread)
        assert ours[:] == theirs[:]
        assert bool(ours.unreadable) == bool(theirs.unreadable)
    if column is None:
        assert [bool(one) for one in found] == [True, False, False, False, True, True, False]
        assert not index.check(rows[0]).is_kept
        with pytest.raises(IncompleteError, match=r"not all text was read: .*`raw` \(259 bytes\)"):
            index.keep(WITH_BYTES[3] | {"raw": kind(GZIP)})


def test_times_in_rows_are_no_text(index):
    assert index.check({"when": dt.date(2024, 1, 2), "text": VERBATIM}).text == VERBATIM


def test_values_without_text_are_passed_over_and_unknown_ones_refused(index):
    row = {"n": 1 << 70, 3: "x", "bytes": b"\xff", "array": np.arange(3), "x": float("nan")}
    found = index.check({**row, "\ud800": 1, "messages": np.array(LEAK, object)})
    assert found.is_leaked
    assert index.check({"text": f"\ud800 {VERBATIM}", "n": 1}).text == f"\ufffd {VERBATIM}"
    with pytest.raises(InputError, match=r"text 1: found a value of type set; .*leave it out"):
        [*index.check_all([{}, {"text": {CLEAN}}])]


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        (ROWS[0], {}, "one text or row, call `check`"),
        (pa.table({"a": [CLEAN]}), {"column": "b"}, "no column 'b'; expected one of a"),
        (pa.table([[CLEAN], [VERBATIM]], ["a", "a"]), {}, "two columns 'a'"),
        (pa.array([LEAK]), {"column": "a"}, "a column only with rows"),
        (pl.DataFrame({"input_ids": [[1, 2], [4]], "n": [1, 2]}), {}, "only struct.*token ids"),
        (pa.array([[1, 2]]), {}, "only list.*strings in the rows"),
        ([LEAK], {"column": "a"}, "text 0: .*a column only with rows"),
        ([ROWS[0]], {"column": 3}, "column: found"),
        ([ROWS[0]], {"ignore": [""]}, "ignore: found ''"),
    ],
)
def test_other_inputs_are_refused(index, texts, options, message):
    with pytest.raises(InputError, match=message):
        list(index.check_all(texts, **options))


def test_a_list_of_texts_is_no_conversation(index):
    with pytest.raises(InputError, match="call `check_all`"):
        index.check([CLEAN, VERBATIM])


# Layouts ------------------------------------------------------------------------------------------


def test_every_slot_of_published_and_of_random_layouts_is_read():
    """The sentences are written apart from the layouts that the reader knows."""
    sentence = Sentences(1)
    chosen = [*layouts().values(), *map(unknown_layout, range(N_UNKNOWN))]
    made = [rows_of(layout, 1, sentence) for layout in chosen]
    texts = sorted({slot.text for _, slots in made for slot in slots})
    numbers = {text: number for number, text in enumerate(texts)}
    policy = dc.Policy(detectors=("exact",), normalize="decon", exact_threshold=1e-6)
    index = dc.build_index([{"question": text} for text in texts], policy=policy)
    found = index.check_all(chain.from_iterable(rows for rows, _ in made))
    missed = []
    for layout, (rows, slots) in zip(chosen, made, strict=True):
        every = [next(found) for _ in rows]
        read = [{finding.instance_index for finding in one} for one in every]
        for slot in slots:
            places = read if layout.is_session else [read[slot.row]]
            is_named = not layout.is_session and every[slot.row].unreadable
            if not is_named and not any(numbers[slot.text] in place for place in places):
                missed.append((layout.name, slot.place))
    assert missed == []
