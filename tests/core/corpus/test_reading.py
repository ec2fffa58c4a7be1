"""Reading shards: every row is a document or is accounted for."""

import gzip
import json
import os
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_core.config.load import load_config
from decon_core.config.sources import Source
from decon_core.corpus.documents import Document, Part, Unreadable
from decon_core.corpus.packs import find_shards
from decon_core.corpus.shard_head import ShardHead
from decon_core.corpus.shards import read_blocks, read_shard
from decon_core.decisions.not_read import UnreadRule, account_of
from decon_core.discovery.row_survey import RowSurvey
from decon_core.errors import ConfigError, CorpusError
from decon_core.storage.compression import compression_of, create

TEXT = Source(name="web", path="*", text="text", id="id")


def rows_of(path, source=TEXT):
    source = Source(**{**source.__dict__, "path": path.name})
    (shard,) = find_shards(source, folder=path.parent, known={})
    return list(read_shard(shard, source))


def lines(tmp_path, *rows, name="a.jsonl"):
    path = tmp_path / name
    path.write_bytes(b"".join(row if isinstance(row, bytes) else row.encode() for row in rows))
    return path


def test_rows_keep_their_number_their_id_and_their_bytes(tmp_path):
    first, second = '{"text": "one", "id": 7}\n', '{"id": "x", "text": "two", "other": [1]}\n'
    parts = (Part("text", 0, 3),)
    assert rows_of(lines(tmp_path, first, "\n", second)) == [
        Document(0, "7", "one", first.encode(), parts),
        Document(2, "x", "two", second.encode(), parts),
    ]


@pytest.mark.parametrize(
    ("line", "reason", "detail"),
    [
        ("{not json\n", "not JSON", "Expecting property name"),
        ("[1, 2]\n", "not an object", "list"),
        ('{"id": 1}\n', "field missing", "text"),
        ('{"text": null}\n', "field is null", "text"),
        ('{"text": 5}\n', "field is not text", "text is int"),
        ('{"text": true, "other": ["a"]}\n', "field is not text", "text is bool"),
        ('{"text": "a", "text": "b"}\n', "a key twice", "duplicate key `text`"),
        ('{"text": "a", "n": [{"b": ["c"], "b": null}]}\n', "a key twice", "duplicate key `b`"),
        ('{"te\\u0078t": "a", "text": ""}\n', "a key twice", "duplicate key `text`"),
    ],
)
def test_a_row_that_is_no_document_is_kept_apart_with_place_and_reason(
    tmp_path, line, reason, detail
):
    good = '{"text": "fine"}\n'
    document, bad, after = rows_of(lines(tmp_path, good, line, good))
    assert isinstance(document, Document)
    assert isinstance(after, Document)
    assert isinstance(bad, Unreadable)
    assert (bad.row, bad.offset, bad.reason) == (1, len(good), reason)
    assert detail in bad.detail


def test_an_id_that_changes_its_type_and_metadata_that_drifts_break_nothing(tmp_path):
    rows = rows_of(
        lines(
            tmp_path,
            '{"text": "a", "id": 1, "meta": {"x": 1}}\n',
            '{"text": "b", "id": "two", "meta": "none"}\n',
            '{"text": "c", "id": null, "meta": [NaN]}\n',
        )
    )
    assert [(row.id, row.text) for row in rows] == [("1", "a"), ("two", "b"), (None, "c")]


def test_bytes_that_are_not_utf8_and_lone_surrogates_become_replacement_characters(tmp_path):
    rows = rows_of(
        lines(tmp_path, b'{"text": "caf\xe9"}\n', '{"text": "x\\ud800y \\ud83d\\ude80"}\n')
    )
    assert [row.text for row in rows] == ["caf\ufffd", "x\ufffdy \U0001f680"]


def test_nested_fields_are_found_and_so_are_keys_that_hold_dots(tmp_path):
    source = Source(name="web", path="", text="metadata.body", id="m.id")
    path = lines(
        tmp_path, '{"metadata": {"body": "deep"}, "m.id": 3}\n', '{"metadata.body": "flat"}\n'
    )
    assert [(row.id, row.text) for row in rows_of(path, source)] == [("3", "deep"), (None, "flat")]


def test_a_conversation_is_one_document_of_all_turns(tmp_path):
    source = Source(name="chat", path="", messages="messages")
    turns = [
        {"role": "user", "content": "Question?"},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "assistant", "content": [{"type": "text", "text": "Answer"}]},
    ]
    path = lines(tmp_path, json.dumps({"messages": turns}) + "\n")
    assert [row.text for row in rows_of(path, source)] == ["Question?\n\nAnswer"]


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ("hello", "hello"),
        (["hello", ["you"]], "hello\n\nyou"),
        ({"0": {"content": "hello"}}, "hello"),
        ([{"role": "user", "content": {"parts": ["hello", 5]}}], "hello"),
        ([{"role": "user", "words": "hello"}], "hello"),
        (json.dumps([{"role": "user", "content": "hello"}]), "hello"),
        ([{"role": "user"}], ""),
        ([{"role": "user", "content": 5}], ""),
        ([], ""),
    ],
)
def test_a_conversation_of_another_shape_is_read_too(tmp_path, messages, text):
    source = Source(name="chat", path="", messages="messages")
    (row,) = rows_of(lines(tmp_path, json.dumps({"messages": messages}) + "\n"), source)
    assert row.text == text


def test_strings_of_turns_keep_their_places_in_the_text(tmp_path):
    source = Source(name="chat", path="", messages="chat.turns")
    turns = [
        {"role": "system", "content": ""},
        {"role": "user", "content": "Naïve?"},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"text": "b"}]},
    ]
    (row,) = rows_of(lines(tmp_path, json.dumps({"chat": {"turns": turns}}) + "\n"), source)
    assert row.text == "Naïve?\n\na\n\nb"
    assert row.parts == (
        Part("chat.turns[1].content", 0, 6),
        Part("chat.turns[2].content[0].text", 8, 9),
        Part("chat.turns[2].content[1].text", 11, 12),
    )
    assert [row.text[part.start : part.stop] for part in row.parts] == ["Naïve?", "a", "b"]


def test_only_the_turns_of_the_named_roles_are_read_and_the_text_of_others_is_counted(tmp_path):
    rules, whose = (
        "Be nice to people and answer all of their questions.",
        f"Whose is this? {'x ' * 9}",
    )
    turns = [
        {"role": "system", "content": rules},
        {"role": "user", "content": "Q"},
        {"role": "tool", "content": 5},
        {"role": "assistant", "content": "A"},
        {"content": whose},
    ]
    path = lines(tmp_path, json.dumps({"messages": turns}) + "\n")
    source = Source(name="chat", path="", messages="messages", roles=("user", "assistant"))
    (row,) = rows_of(path, source)
    assert row.text == "Q\n\nA"
    assert [part.path for part in row.parts] == ["messages[1].content", "messages[3].content"]
    assert row.unread == {
        "messages[][role=system].content": [1, len(rules)],
        "messages[][role=None].content": [1, len(whose)],
    }


def test_the_short_strings_of_an_unread_list_count_as_one_text(tmp_path):
    words = ["A", "keeper", "climbs", "214", "steps", "every", "evening", "then"]
    chinese = ["人人生而自由", "在尊严和权利上一律平等", "他们赋有理性和良心"]
    rows = [
        {"text": "a", "words": words, "info": {"words": [words[:2], words[2:]]}, "zh": chinese},
        {"text": "b", "words": words[:7], "tags": ["x", "y" * 90]},
    ]
    path = lines(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))
    source = Source(name="rows", path="", text="text")
    size = sum(map(len, words))
    expected = {"words[]": [1, size], "info.words[][]": [1, size], "zh[]": [1, 78]}
    data = {"tags[].<data>": [1, 90]}  # of the alphabet of base64
    assert [dict(row.unread) for row in rows_of(path, source)] == [expected, data]


@pytest.mark.parametrize("key", ["<data>", "x.<data>", "x<base64>.<data>", "[role=<data>"])
@pytest.mark.parametrize("text", ["a", ""])
def test_no_key_passes_for_the_mark_of_base64_without_text(tmp_path, key, text):
    answer = "He climbs them every evening, and then again."
    ids = [*range(9)]
    inner: object = {key: answer} if text else {key: ids}
    path = lines(tmp_path, json.dumps({"text": text, "qa": inner}) + "\n")
    source = Source(name="rows", path="", text="text")
    (read,) = rows_of(path, source)
    (shown,) = read.unread
    assert "data" in shown
    assert "<data>" not in shown
    (shard,) = find_shards(replace(source, path=path.name), folder=tmp_path, known={})
    (batch,) = [block.read() for block in read_blocks(shard, source)]
    assert batch.unread.keys() == {shown}
    unread = [
        {"path": path, "n_values": n, "n_bytes": n_bytes}
        for path, (n, n_bytes) in batch.unread.items()
    ]
    counts = dict.fromkeys(("n_documents", "n_too_short", "n_without_text", "n_rows", "n_bytes"), 1)
    ledger = {**counts, "unreadable": [], "unread": unread, "file": "a"}
    account = account_of([("rows", ledger)])
    assert account.exit_code == 4
    assert account.sizes("rows").keys() == {shown}
    assert not account_of([("rows", ledger)], UnreadRule((("rows", (shown,)),))).sizes("rows")


def test_a_key_that_is_a_sentence_is_no_part_of_a_path(tmp_path):
    answer = "He climbs them every evening, and then again."
    row = {"text": "a", "qa": {"How many steps does he climb?": answer, "known as": [answer]}}
    path = lines(tmp_path, json.dumps(row) + "\n")
    source = Source(name="rows", path="", text="text")
    (read,) = rows_of(path, source)
    assert read.unread == {"qa.*": [1, 45], "qa.known as[]": [1, 45]}
    assert UnreadRule((("rows", ("qa.*",)),)).is_ignored("rows", "qa.*")
    (shard,) = find_shards(replace(source, path=path.name), folder=tmp_path, known={})
    (batch,) = [block.read() for block in read_blocks(shard, source)]
    assert batch.unread == read.unread
    survey = RowSurvey([ShardHead(path, (row,))])
    assert sorted(survey.visible) == ["qa.*", "qa.known as[]", "text"]


def test_turns_may_be_written_as_from_and_value(tmp_path):
    turns = [{"from": "human", "value": "Q"}, {"from": "gpt", "value": "A"}]
    path = lines(tmp_path, json.dumps({"conversations": turns}) + "\n")
    everyone = Source(name="chat", path="", messages="conversations")
    assert [row.text for row in rows_of(path, everyone)] == ["Q\n\nA"]
    answers = Source(name="chat", path="", messages="conversations", roles=("gpt",))
    assert [row.text for row in rows_of(path, answers)] == ["A"]


PAIRS = Source(name="pairs", path="", text=("prompt", "chosen", "rejected"), id="id")


def test_a_preference_pair_is_one_document_of_all_its_fields(tmp_path):
    plain = {"prompt": "Q", "chosen": "good", "rejected": "bad", "id": 1}
    turns = {
        "prompt": "Q",
        "chosen": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "good"}],
        "rejected": [{"role": "assistant", "content": "bad"}],
    }
    first, second = rows_of(
        lines(tmp_path, *(json.dumps(row) + "\n" for row in (plain, turns))), PAIRS
    )
    assert (first.id, first.text) == ("1", "Q\n\ngood\n\nbad")
    assert first.parts == (Part("prompt", 0, 1), Part("chosen", 3, 7), Part("rejected", 9, 12))
    assert second.text == "Q\n\nQ\n\ngood\n\nbad"
    assert [part.path for part in second.parts] == [
        "prompt",
        "chosen[0].content",
        "chosen[1].content",
        "rejected[0].content",
    ]


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"prompt": "Q", "chosen": "A"}, "Q\n\nA"),
        ({"prompt": "Q", "chosen": None, "rejected": "B"}, "Q\n\nB"),
        ({"prompt": 5, "chosen": "A", "rejected": "B"}, "A\n\nB"),
        ({"prompt": "Q", "chosen": [{"role": "user"}], "rejected": "B"}, "Q\n\nB"),
        ({"prompt": "", "chosen": [], "rejected": {}}, ""),
    ],
)
def test_a_pair_that_lacks_some_of_its_fields_is_read_by_the_others(tmp_path, row, text):
    (document,) = rows_of(lines(tmp_path, json.dumps(row) + "\n"), PAIRS)
    assert document.text == text


@pytest.mark.parametrize(
    ("row", "reason", "detail"),
    [
        ({"x": "Q"}, "field missing", "prompt"),
        ({"prompt": "", "chosen": ""}, "field missing", "rejected"),
        ({"prompt": "", "chosen": None, "rejected": []}, "field is null", "chosen"),
        ({"prompt": 5}, "field is not text", "prompt is int"),
    ],
)
def test_a_pair_without_text_that_lacks_a_field_is_kept_apart(tmp_path, row, reason, detail):
    (unread,) = rows_of(lines(tmp_path, json.dumps(row) + "\n"), PAIRS)
    assert (unread.reason, unread.detail) == (reason, detail)


EVERYTHING = Source(name="a", path="")
WORDS = "Which of all these many words is the answer to question"


@pytest.mark.parametrize(
    "row",
    [
        {"question": {f"{WORDS} 1": "first", f"{WORDS} 2": ["second"]}},
        {
            "reward_model": {"ground_truth": "second"},
            "extra_info": {"a": {f"{WORDS} 1": "first"}, "b": f"{WORDS} 2"},
        },
    ],
)
def test_an_answer_is_behind_its_question(tmp_path, row):
    """Also if the question is its key, or if the row has the answer first."""
    (document,) = rows_of(lines(tmp_path, json.dumps(row) + "\n"), EVERYTHING)
    assert document.text == f"{WORDS} 1\n\nfirst\n\n{WORDS} 2\n\nsecond"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((48, "48"), (48.0, "48"), (-7, "-7"), (0.25, "0.25"), (True, "true"), (False, "false")),
        ([48], None),  # as many as a list may be token ids
        *((None, None), ("", None)),
    ],
)
@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
@pytest.mark.parametrize("fields", [None, ("question", "answer"), "question"])
def test_a_number_or_a_boolean_is_text_if_it_may_be_an_answer(tmp_path, name, value, text, fields):
    """Rows without an answer come first: the reader has to notice the name when it meets it."""
    row = {"question": WORDS, "answer": value, "score": 5, "more": {"ground_truth": value, "n": 2}}
    rows = [{"question": WORDS, "more": {"n": 1}}, row]
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(rows[1:]), tmp_path / name)
    else:
        lines(tmp_path, *(json.dumps(one) + "\n" for one in rows))
    document = rows_of(tmp_path / name, replace(EVERYTHING, text=fields))[-1]
    n = 0 if text is None else {None: 2, "question": 0}.get(fields, 1)
    assert document.text.split("\n\n") == [WORDS, *[text] * n]


def test_a_number_of_32_bits_has_the_digits_that_it_was_written_with(tmp_path):
    table = pa.table({"question": [WORDS], "Answer": pa.array([0.1], pa.float32())})
    pq.write_table(table, tmp_path / "a.parquet")
    (document,) = rows_of(tmp_path / "a.parquet", EVERYTHING)
    assert document.text == f"{WORDS}\n\n0.1"


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        ("Q f Q a f", "Q f Q a"),
        ("Q a f Q a Q a", "Q a f a a"),  # no other answer
        ("Q a f Q b g Q c g Q b", "Q a f Q b g Q c b"),
        ("Q b Q a", "Q b a"),  # near the first copy
        ("Q f Q f Q", "Q f"),
        ("Q f f Q g Q a", "Q f g Q a"),
    ],
)
def test_a_question_is_read_again_before_another_short_answer(tmp_path, texts, kept):
    said = {"Q": f"{WORDS} 1?", "f": WORDS * 4, "g": WORDS * 5, "a": "(A)", "b": "(B)", "c": "(C)"}
    texts, kept = ([said[one] for one in names.split()] for names in (texts, kept))
    turns = [{"role": "user", "content": text} for text in texts]
    (document,) = rows_of(lines(tmp_path, json.dumps({"messages": turns}) + "\n"), EVERYTHING)
    assert document.text == "\n\n".join(kept)
    places = [keys for part in document.parts for keys in part.places]
    assert sorted(places) == [("messages", at, "content") for at in range(len(texts))]


def test_places_and_keys_with_half_a_character_can_be_written(tmp_path):
    words = "a key of many words, all of which are a text of the row"
    rows = {"a\ud800": {f"{words} \udc00": "x"}, "b": ["y"]}
    everything = Source(name="web", path="")
    (row,) = rows_of(lines(tmp_path, json.dumps(rows) + "\n"), everything)
    assert row.text == f"{words} \ufffd\n\nx\n\ny"
    assert [part.path for part in row.parts] == [
        "a\ufffd.<key>",
        f"a\ufffd.{words} \ufffd",
        "b[0]",
    ]
    assert row.parts[1].keys == ("a\ud800", f"{words} \udc00")


SOURCE = """
[evals]
recipes = ["evals.yaml"]
[[corpus.source]]
name = "web"
path = "*"
"""


def test_fields_and_roles_are_taken_from_decon_toml(tmp_path):
    path = tmp_path / "decon.toml"
    path.write_text(SOURCE + 'text = ["prompt", "chosen"]\n')
    assert load_config(path).corpus.sources[0].text == ("prompt", "chosen")
    path.write_text(SOURCE + 'messages = "m"\nroles = ["user"]\n')
    assert load_config(path).corpus.sources[0].roles == ("user",)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("text = []", r"source\[0\]\.text: found \[\]; expected a list of one or more names"),
        ('text = ["a", "a"]', r"source\[0\]\.text: found 'a' more than once"),
        (
            'text = ["a", 5]',
            r"source\[0\]\.text: found .*; expected the path of a field",
        ),
        ("text = 5", r"source\[0\]\.text: found 5; expected the path of a field, or a list"),
        ('text = "a"\nroles = ["user"]', r"roles: no 'messages'"),
        ('messages = "m"\nroles = "user"', r"roles: found 'user'; expected a list of one or more"),
        ('messages = "m"\nroles = []', r"roles: found \[\]; expected a list of one or more"),
        ('messages = ["m"]', r"messages: found \['m'\]; expected the path of a field"),
    ],
)
def test_fields_and_roles_that_make_no_sense_are_refused(tmp_path, settings, said):
    path = tmp_path / "decon.toml"
    path.write_text(f"{SOURCE}{settings}\n")
    with pytest.raises(ConfigError, match=said):
        load_config(path)


def test_parquet_rows_are_read_by_name_with_nested_fields(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"id": [1, 2, 3], "meta": [{"text": "a"}, {"text": None}, {"text": "c"}]})
    pq.write_table(table, path, row_group_size=2)
    source = Source(name="web", path="", text="meta.text", id="id")
    first, second, third = rows_of(path, source)
    assert (first.row, first.id, first.text) == (0, "1", "a")
    assert isinstance(second, Unreadable)
    assert (third.row, third.text) == (2, "c")


def write_arrow(path, table, *, is_file=True):
    with (pa.ipc.new_file if is_file else pa.ipc.new_stream)(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


@pytest.mark.parametrize("name", ["a.arrow", "a.feather"])
@pytest.mark.parametrize("is_file", [True, False])
def test_arrow_files_and_streams_are_read_like_parquet(tmp_path, name, is_file):
    table = pa.table(
        {"x": [0, 0, 0], "id": [1, 2, 3], "meta": [{"text": "a"}, {"text": None}, {"text": "c"}]}
    )
    write_arrow(tmp_path / name, table, is_file=is_file)
    source = Source(name="web", path="", text="meta.text", id="id")
    first, second, third = rows_of(tmp_path / name, source)
    assert (first.row, first.id, first.text) == (0, "1", "a")
    assert (second.row, second.reason) == (1, "field is null")
    assert (third.row, third.id, third.text) == (2, "3", "c")


@pytest.mark.parametrize(
    "name", ["a.jsonl.gz", "a.jsonl.zst", "a.jsonl.bz2", "a.jsonl.xz", "a.parquet", "a.arrow"]
)
@pytest.mark.parametrize("kept", [slice(0, -10), slice(0, 0), slice(0, 30)])
def test_a_damaged_shard_raises_with_its_place(tmp_path, name, kept):
    path = tmp_path / name
    match path.suffix:
        case ".parquet":
            pq.write_table(pa.table({"text": ["x"] * 100}), path)
        case ".arrow":
            write_arrow(path, pa.table({"text": ["x"] * 100}))
        case compression:
            with create(path, compression) as file:
                file.write(b'{"text": "x"}\n' * 5000)
    path.write_bytes(path.read_bytes()[kept])
    with pytest.raises(CorpusError, match=name):
        rows_of(path)


def test_what_stands_before_the_damage_is_read_and_the_damage_says_where_it_is(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    whole = gzip.compress(b'{"text": "x"}\n' * 100)
    path.write_bytes(whole + gzip.compress(b'{"text": "y"}\n' * 100)[:-9])
    (shard,) = find_shards(
        Source(name="web", path=path.name, text="text"), folder=tmp_path, known={}
    )
    rows = []
    with pytest.raises(
        CorpusError, match=r"after 200 rows, byte 2800 .*the data is damaged or truncated"
    ):
        rows.extend(read_shard(shard, TEXT))
    assert len(rows) == 200


@pytest.mark.parametrize("compression", [".gz", ".zst", ".bz2", ".xz"])
def test_what_stands_behind_the_end_of_a_compressed_shard_is_damage(tmp_path, compression):
    path = tmp_path / f"a.jsonl{compression}"
    with create(path, compression) as file:
        file.write(b'{"text": "x"}\n')
    path.write_bytes(path.read_bytes() + b'{"text": "y"}\n')
    with pytest.raises(
        CorpusError, match=r"after 1 row, byte 14 .*the data is damaged or truncated"
    ):
        rows_of(path)


def test_an_arrow_stream_without_its_end_is_cut_off(tmp_path):
    path = tmp_path / "a.arrow"
    write_arrow(path, pa.table({"text": ["x"] * 100}), is_file=False)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(CorpusError, match="the stream has no end mark"):
        rows_of(path)


@pytest.mark.parametrize(
    ("suffix", "cell"),
    [
        (".parquet", "text"),
        (".parquet", "meta.text"),
        (".parquet", "views"),
        (".arrow", "text"),
        (".arrow", "meta.text"),
        (".arrow", "views"),
        (".arrow", "words"),
    ],
)
def test_one_text_that_is_not_utf8_does_not_cost_the_table(tmp_path, cell, suffix):
    views = [b"good", b"caf\xe9, in the longer form of a view"]
    latin = pa.Array.from_buffers(
        pa.string(), 2, pa.array([b"good", b"caf\xe9"], pa.binary()).buffers()
    )
    table = pa.table(
        {
            "text": latin,
            "meta": pa.StructArray.from_arrays([latin], names=["text"]),
            "words": pa.DictionaryArray.from_arrays(pa.array([0, 1]), latin),
            "views": pa.array(views, pa.binary_view()).view(pa.string_view()),
        }
    )
    path = tmp_path / f"a{suffix}"
    if suffix == ".parquet":
        pq.write_table(table.drop_columns("words"), path)  # the library refuses such a dictionary
    else:
        write_arrow(path, table)
    good, bad = rows_of(path, Source(name="web", path="", text=cell))
    assert good.text == "good"
    assert bad.text.startswith("caf\ufffd")


def test_arrow_fields_that_are_always_null_do_not_cost_the_file(tmp_path):
    """`Array.view` shortens fields of type null inside lists (Apache Arrow issue 43838)."""
    turns = [{"role": None, "content": "one turn"}, {"role": None, "content": "another"}]
    labels = pa.array([[("a", None), ("b", None)]], pa.map_(pa.string(), pa.null()))
    path = tmp_path / "a.arrow"
    write_arrow(path, pa.table({"turns": pa.array([turns]), "labels": labels}))
    (row,) = rows_of(path, Source(name="web", path="", text="turns[].content"))
    assert (row.text.count("one turn"), row.text.count("another")) == (1, 1)


MISNAMED = [
    ("a.jsonl", "gz", "a gzip file", r"\.jsonl", r"Rename it to a\.jsonl\.gz"),
    ("a.jsonl", "zst", "a zstd file", r"\.jsonl", r"Rename it to a\.jsonl\.zst"),
    ("a.jsonl", "bz2", "a bzip2 file", r"\.jsonl", r"Rename it to a\.jsonl\.bz2"),
    ("a.jsonl", "xz", "an xz file", r"\.jsonl", r"Rename it to a\.jsonl\.xz"),
    ("a.jsonl", "parquet", "a parquet file", r"\.jsonl", r"Rename it to a\.parquet"),
    ("a.jsonl", "arrow", "an Arrow file", r"\.jsonl", r"Rename it to a\.arrow"),
    ("a.jsonl.gz", "", "plain text", r"\.jsonl\.gz", r"Rename it to a\.jsonl, if"),
    ("a.jsonl.gz", "zst", "a zstd file", r"\.jsonl\.gz", r"Rename it to a\.jsonl\.zst"),
    ("a.jsonl.zst", "parquet", "a parquet file", r"\.jsonl\.zst", r"Rename it to a\.parquet"),
    ("a.parquet", "", "plain text", r"\.parquet", r"Rename it to a\.jsonl, if"),
    ("a.parquet", "gz", "a gzip file", r"\.parquet", r"Rename it to a\.jsonl\.gz"),
    ("a.parquet", "arrow", "an Arrow file", r"\.parquet", r"Rename it to a\.arrow"),
    ("a.feather", "parquet", "a parquet file", r"\.feather", r"Rename it to a\.parquet"),
]


@pytest.mark.parametrize(("name", "made_as", "found", "expected", "remedy"), MISNAMED)
def test_a_file_that_is_not_what_its_name_says_is_refused(
    tmp_path, name, made_as, found, expected, remedy
):
    path = tmp_path / name
    table = pa.table({"text": ["x"] * 9})
    match made_as:
        case "parquet":
            pq.write_table(table, path)
        case "arrow":
            write_arrow(path, table)
        case _:
            with create(path, f".{made_as}") as file:
                file.write(b'{"text": "x"}\n' * 9)
    by_bytes = f"found {found}, judging by its first bytes"
    problem = rf"{by_bytes}; expected {expected}, judging by its name\. {remedy}"
    with pytest.raises(CorpusError, match=f"{name}: {problem}"):
        rows_of(path)


def test_what_was_compressed_must_be_text_too(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(gzip.compress(b'{"text": "x"}\n')))
    twice = r"a\.jsonl\.gz: the file was compressed twice: it contains a gzip file.*once"
    with pytest.raises(CorpusError, match=twice):
        rows_of(path)


def test_an_empty_plain_file_has_no_rows_and_an_empty_compressed_one_is_cut_off(tmp_path):
    assert rows_of(lines(tmp_path)) == []
    with pytest.raises(CorpusError, match=r"b\.jsonl\.zst.*the file is empty"):
        rows_of(lines(tmp_path, name="b.jsonl.zst"))


def test_a_key_may_come_twice_if_no_text_is_lost_by_it(tmp_path):
    line = '{"text": null, "text": "a", "n": 1, "n": {"m": "", "m": 2}}\n'
    (document,) = rows_of(lines(tmp_path, line))
    assert document.text == "a"


def test_json_in_a_string_that_has_a_key_twice_is_read_as_it_is(tmp_path):
    inner = '{"a": "one text", "a": "another text"}'
    (document,) = rows_of(lines(tmp_path, json.dumps({"text": inner}) + "\n"))
    assert (document.text, document.parts[0].path) == (inner, "text")


@pytest.mark.parametrize(
    ("line", "reason", "detail"),
    [
        ('{"type": "user", "sess', "not JSON", "line 2: Unterminated"),
        ('{"a": "x", "a": "y"}', "a key twice", "line 2: duplicate key `a`"),
    ],
)
def test_a_log_of_an_agent_that_cannot_be_read_is_named(tmp_path, line, reason, detail):
    first = {"type": "user", "sessionId": "s", "uuid": "u", "message": {"content": "a"}}
    path = lines(tmp_path, f"{json.dumps(first)}\n", line)
    (row,) = rows_of(path, Source(name="logs", path=""))
    assert row.reason == reason
    assert row.detail.startswith(detail)


def test_nul_characters_are_text_when_escaped_and_a_broken_line_when_not(tmp_path):
    escaped, bare = rows_of(lines(tmp_path, '{"text": "a\\u0000b"}\n', '{"text": "a\x00b"}\n'))
    assert escaped.text == "a\x00b"
    assert (bare.row, bare.reason) == (1, "not JSON")


def test_documents_of_one_id_are_told_apart_by_their_rows(tmp_path):
    rows = rows_of(lines(tmp_path, '{"text": "a", "id": 1}\n' * 2))
    assert [(row.row, row.id) for row in rows] == [(0, "1"), (1, "1")]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.parquet"])
def test_a_shard_that_changes_while_it_is_read_raises_before_the_end(tmp_path, name):
    """Same size and same time: only its bytes tell."""
    path = tmp_path / name
    source = Source(name="web", path=name, text="text")

    def write(letter):
        rows = [{"text": letter * 500} for _ in range(3_000)]
        if name.endswith("parquet"):
            pq.write_table(
                pa.Table.from_pylist(rows), path, compression="none", use_dictionary=False
            )
        else:
            with create(path, compression_of(path)) as file:
                file.write(b"".join(json.dumps(row).encode() + b"\n" for row in rows))

    write("a")
    status = path.stat()
    (shard,) = find_shards(source, folder=tmp_path, known={})
    assert len(list(read_shard(shard, source))) == 3_000
    write("b")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(CorpusError, match="changed since it was registered"):
        list(read_shard(shard, source))


def test_a_line_nested_too_deeply_and_an_id_of_half_a_character_stop_nothing(tmp_path):
    deep = ['{"text": "x", "meta": ' + "[" * n + "]" * n + "}\n" for n in (199, 200, 100_000)]
    read, *deeper, odd = rows_of(lines(tmp_path, *deep, '{"text": "y", "id": "a\\ud800"}\n'))
    assert read.text == "x"
    for row in deeper:
        assert isinstance(row, Unreadable)
        assert row.reason == "not JSON"
        assert row.detail == "nested more than 200 levels deep"
    assert odd.id == "a\ufffd"


def test_a_byte_order_mark_is_no_part_of_the_first_line_s_json_but_of_its_bytes(tmp_path):
    first = b'\xef\xbb\xbf{"text": "a"}\n'
    (row,) = rows_of(lines(tmp_path, first))
    assert (row.text, row.raw) == ("a", first)


def test_a_folder_with_brackets_in_its_name_is_a_folder(tmp_path):
    folder = tmp_path / "v[1]"
    folder.mkdir()
    (row,) = rows_of(lines(folder, '{"text": "a"}\n'))
    assert row.text == "a"


def test_a_parquet_page_that_is_damaged_raises_with_its_file(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": [f"row {n} of many" for n in range(20_000)]}), path)
    damaged = bytearray(path.read_bytes())
    damaged[2000:2200] = bytes(200)
    path.write_bytes(damaged)
    with pytest.raises(CorpusError, match=r"a\.parquet"):
        rows_of(path)
