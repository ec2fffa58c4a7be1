"""The rows of layouts are what they say: each expected sentence is where it is said to be."""

import json
from collections import Counter

import pyarrow.parquet as pq
import pytest

from tests.oracle.layout_files import write_rows
from tests.oracle.layouts import (
    Sentences,
    layouts,
    made_up_slots,
    rows_of,
    string_leaves,
    unknown_rows,
)

N_FAMILIES = 27


def require_texts(rows, slots):
    """Fail unless each sentence is in the string at its place, after decoding."""
    leaves = [[*string_leaves(row)] for row in rows]
    for slot in slots:
        texts = [text for place, text in leaves[slot.row] if place == slot.place]
        assert any(slot.text in text for text in texts), slot


@pytest.mark.parametrize("name", layouts())
def test_each_sentence_is_at_its_place_in_any_order_of_keys(name):
    rows, slots = rows_of(layouts()[name], 1, Sentences(1))
    require_texts(rows, slots)
    assert {slot.row for slot in slots} <= {*range(len(rows))}
    counts = Counter(slot.text for slot in slots if not slot.repeats)
    assert {*counts.values()} == {1}
    assert all(slot.text in counts for slot in slots)
    assert all(len(slot.text.split()) >= 9 or len(slot.text) > 40 for slot in slots)
    shuffled, same = rows_of(layouts()[name], 1, Sentences(1), shuffles_keys=True)
    assert slots == same
    require_texts(shuffled, same)


def test_the_table_has_every_family_and_no_repeated_sentence():
    assert {layout.family for layout in layouts().values()} == {*range(1, N_FAMILIES + 1)}
    sentence = Sentences(1)
    texts = [
        slot.text
        for layout in layouts().values()
        for slot in rows_of(layout, 1, sentence)[1]
        if not slot.repeats
    ]
    assert len(texts) == len({*texts})


def test_paths_are_written_as_in_published_descriptions():
    def paths(name):
        return {slot.path for slot in rows_of(layouts()[name], 1, Sentences(1))[1]}

    assert "messages[].tool_calls[].function.arguments (JSON).*" in paths("openai_tools")
    assert "tools (JSON) [].description" in paths("xlam")
    assert "tools (JSON) [].parameters.*" in paths("xlam")
    assert "messages[].content[].content[].text" in paths("anthropic_messages")
    assert "question[][].content" in paths("bfcl")
    assert "messages (JSON) [].tool_calls[].function.arguments (JSON).*" in paths("coderforge")


def test_optional_keys_are_in_the_first_row_and_missing_or_null_in_others():
    rows, _ = rows_of(layouts()["openai_tools"], 1, Sentences(1))
    assert "tools" in rows[0]
    assert any("tools" not in row for row in rows)
    rows, slots = rows_of(layouts()["open_thoughts_metadata"], 1, Sentences(1))
    assert any(row["test_cases"] is None for row in rows)
    assert not any(
        slot.place == "test_cases" and rows[slot.row]["test_cases"] is None for slot in slots
    )


def test_a_repeated_sentence_is_hidden_where_no_model_sees_it():
    _, slots = rows_of(layouts()["verl"], 1, Sentences(1))
    asked = next(slot for slot in slots if slot.place == "prompt[1].content")
    again = next(slot for slot in slots if slot.place == "extra_info.question")
    assert asked.text == again.text
    assert (asked.is_visible, asked.repeats) == (True, False)
    assert (again.is_visible, again.repeats) == (False, True)


@pytest.mark.parametrize("seed", range(40))
def test_each_sentence_of_an_unknown_layout_is_at_its_place(seed):
    rows, slots = unknown_rows(seed, Sentences(seed))
    require_texts(rows, slots)
    assert len({slot.text for slot in slots}) == len(slots) >= len(rows)
    assert unknown_rows(seed, Sentences(seed)) == (rows, slots)


def test_unknown_layouts_have_what_is_hard_to_read():
    layouts_of = [unknown_rows(seed, Sentences(seed)) for seed in range(200)]
    slots = [slot for _, one in layouts_of for slot in one]
    assert any(slot.place.count("(JSON)") > 1 for slot in slots)
    assert any("][" in slot.place for slot in slots)
    assert any(slot.row == 40 and slot.place == "key of a late row" for slot in slots)
    assert any("a.b" in slot.place for slot in slots)
    written = json.dumps([rows for rows, _ in layouts_of])
    assert "data:image/png;base64," in written


@pytest.mark.parametrize(
    ("form", "name"),
    {form: name for name, one in layouts().items() for form in one.files}.items(),
)
def test_each_form_of_file_can_be_written(tmp_path, form, name):
    rows, _ = rows_of(layouts()[name], 1, Sentences(1))
    path = write_rows(tmp_path / "made", form, rows)
    assert path.exists()
    if form == "jsonl":
        assert [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] == rows
    if form == "parquet":
        assert pq.read_table(path).num_rows == len(rows)


def test_a_folder_opens_as_a_saved_data_set(tmp_path):
    datasets = pytest.importorskip("datasets")
    rows, _ = rows_of(layouts()["nemotron_v1"], 1, Sentences(1))
    path = write_rows(tmp_path / "made", "folder", rows)
    assert datasets.load_from_disk(str(path))["train"].to_list() == rows


def test_sentences_of_a_folder_are_listed_by_file(tmp_path):
    line = {
        "file": "a.jsonl",
        "row": 0,
        "slot": "x[].y",
        "visible": False,
        "role": None,
        "text": "z",
    }
    (tmp_path / "slots.jsonl").write_text(json.dumps(line) + "\n")
    (slot,) = made_up_slots(tmp_path)["a.jsonl"]
    assert (slot.path, slot.is_visible, slot.text) == ("x[].y", False, "z")
