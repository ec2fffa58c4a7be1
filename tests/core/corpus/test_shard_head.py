"""The first rows of a shard, and what an error says of a file that no row could be read of."""

import json

from decon_core.config.sources import Source
from decon_core.corpus.shard_head import MOST_ROWS, head_of, in_toml, listed_fields, no_row_read

BODY = Source(name="web", path="*", text="body")


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_only_the_first_rows_are_read_and_unreadable_ones_are_counted(tmp_path):
    head = head_of(write(tmp_path / "a.jsonl", ["no row", *([{"text": "x"}] * 100)]))
    assert len(head.rows) == MOST_ROWS - 1
    assert head.n_unreadable == 1
    assert head.damage == ""


def test_a_file_that_is_none_of_its_format_is_damaged(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and nothing else")
    head = head_of(tmp_path / "a.parquet")
    assert head.rows == ()
    assert head.damage


def test_fields_are_named_with_their_kinds(tmp_path):
    turns = [{"role": "user", "content": "x"}]
    rows = [{"a": {"b": "four"}, "turns": turns, "n": 1}, {"a": {"b": None}, "odd\n": []}]
    assert listed_fields(rows) == (
        "the fields a.b (null or text, 4 characters), turns (messages), n (number), "
        "odd\N{REPLACEMENT CHARACTER} (list)"
    )


def test_an_unread_file_is_described_with_what_would_read_it(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"text": "words", "n": 1}] * 2)
    problem = no_row_read(path, BODY, 2, "the first: field missing (body)", remedy=" here")
    assert '2 rows, none readable with text = "body" (the first: field missing' in problem.found
    assert "the file has the fields text (text, 5 characters), n (number)" in problem.found
    assert problem.remedy == 'leave out text = "body" (--text) to read every text of a row here'
    path.write_text("no json\n")
    assert no_row_read(path, BODY, 1, "not JSON").remedy == "leave the file out of the corpus"


def test_very_many_fields_are_counted(tmp_path):
    path = write(tmp_path / "a.jsonl", [{f"f{n}": n for n in range(20)}])
    assert no_row_read(path, BODY, 1, "x").found.endswith("f11 (number), and 8 other fields")


def test_strings_are_written_as_toml():
    assert in_toml(['a"b', "\x7f"]) == '["a\\"b", "\\u007f"]'
