"""A decon.toml from looking at files: it loads, says why, and claims nothing that was not seen."""

import gzip
import json
import re
import shutil
import tomllib
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_core.benchmarks.normalize import normalize
from decon_core.benchmarks.parse import load_recipes
from decon_core.config.json_schema import config_schema
from decon_core.config.load import load_config
from decon_core.config.policy import Policy
from decon_core.corpus.packs import find_shards
from decon_core.discovery.benchmarks import Survey, survey_benchmarks
from decon_core.discovery.corpus import survey_corpus
from decon_core.discovery.settings import packs_for, settings_text
from decon_core.errors import CorpusError, InputError


def write(path: Path, rows) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    match path.suffix:
        case ".gz":
            path.write_bytes(gzip.compress(lines))
        case ".parquet":
            pq.write_table(pa.Table.from_pylist(rows), path)
        case _:
            path.write_bytes(lines)
    return path


def texts(n=3, name="text", **more):
    return [{"id": f"d{at}", name: f"a text of some length, number {at}"} | more for at in range(n)]


def survey(*places):
    return survey_corpus([str(place) for place in places])


def sources(*places):
    return {one.source.name: one for one in survey(*places).sources}


def written(folder, *places):
    """The text of a decon.toml for these places, and its sources."""
    text = settings_text(
        survey(*places or (folder,)).sources, [folder / "evals.yaml"], folder=folder
    )
    return text, tomllib.loads(text)["corpus"]["source"]


def uncommented(text, *keys):
    """The text with these settings, which are examples in comments."""
    return re.sub(rf"^# (({'|'.join(keys)}) = .*)$", r"\1", text, flags=re.MULTILINE)


TURNS = [{"role": "user", "content": "Hello there"}, {"role": "assistant", "content": "Hi"}]


LONG = "the mill at the river stands still since the flood of last year"
CHAT = [{"role": "user", "content": LONG}, {"role": "assistant", "content": f"yes, {LONG}"}]


@pytest.mark.parametrize(
    "row",
    [
        {"text": LONG, "url": "x" * 90},
        {"messages": CHAT, "tools": [{"name": "search"}], "answer": "7"},
        {"nobody": {"knows": [LONG]}, "why": "not"},
    ],
)
def test_a_source_reads_every_text_of_its_rows(tmp_path, row):
    write(tmp_path / "a.jsonl", [row] * 3)
    _, (source,) = written(tmp_path)
    assert source.keys() == {"name", "path"}


def test_layouts_are_named_with_their_rows_and_with_what_is_visible_or_hidden_in_them(tmp_path):
    write(tmp_path / "chat.jsonl", [{"messages": CHAT, "ground_truth": f"so {LONG}"}] * 3)
    write(tmp_path / "odd.jsonl", [{"nobody": {"knows": [f"that {LONG}"]}}])
    (one,) = sources(tmp_path).values()
    assert one.rows.layouts == {"openai_chat": 3, "unknown": 1}
    text, _ = written(tmp_path)
    told = " ".join(text.replace("\n#", "").split())
    assert "Layouts: openai_chat (3 rows), unknown (1 row, all text is read)." in told
    assert "Visible text: `messages[].content`, `nobody.knows[]`." in told
    assert "Hidden text, searched separately: `ground_truth`." in told
    assert "# layout" not in text


def test_the_layout_of_all_rows_and_settings_that_read_less_are_examples(tmp_path):
    write(tmp_path / "a.jsonl", [{"messages": CHAT, "hint": "x", "gold": LONG}] * 2)
    text, _ = written(tmp_path)
    for keys, expected in (
        (["layout"], {"layout": "openai_chat"}),
        (["text", "ignore"], {"text": ["messages"], "ignore": ["gold", "hint"]}),
        (["messages", "roles"], {"messages": "messages", "roles": ["user", "assistant"]}),
    ):
        (tmp_path / "decon.toml").write_text(uncommented(text, *keys))
        (tmp_path / "evals.yaml").touch()
        (source,) = load_config(tmp_path / "decon.toml").corpus.sources
        values = {key: getattr(source, key) for key in expected}
        assert {k: [*v] if isinstance(v, tuple) else v for k, v in values.items()} == expected


def test_token_ids_beside_the_text_are_proposed_as_ignored(tmp_path):
    ids = {"input_ids": [*range(200, 230)], "attention_mask": [1] * 30}
    write(tmp_path / "a.jsonl", [{"text": LONG, **ids}] * 2)
    (one,) = sources(tmp_path).values()
    assert [*one.rows.token_ids] == ["input_ids.<tokens>"]
    assert "token ids beside the text are not read (`input_ids.<tokens>`)" in one.rows.doubts[0]
    text, _ = written(tmp_path)
    assert text.count("# ignore = ") == 1
    (tmp_path / "decon.toml").write_text(uncommented(text, "ignore"))
    (tmp_path / "evals.yaml").touch()
    (source,) = load_config(tmp_path / "decon.toml").corpus.sources
    assert source.ignore == ("input_ids.<tokens>",)


def test_text_that_a_row_repeats_is_named_at_each_of_its_places(tmp_path):
    write(tmp_path / "a.jsonl", [{"prompt": LONG, "chosen": CHAT[1:], "messages": CHAT}])
    (one,) = sources(tmp_path).values()
    assert {*one.rows.visible} == {"prompt", "chosen[].content", "messages[].content"}


@pytest.mark.parametrize(
    ("rows", "doubt"),
    [
        (
            [{"q": {"body": LONG}, "grade": "B", "tags": ["mill"]}] * 2,
            (
                "2 rows match no known layout and contain texts (`q.body`) and short values "
                "(`grade`, `tags[]`)"
            ),
        ),
        ([{"messages": [{"role": "user", "content": "hi"}], "gold": LONG}], "more hidden text"),
        ([{"text": "some text"}], "no text has 8 words"),
        ([{"text": LONG}, {"id": "x", "text": None}], "1 of 2 rows has no text"),
        (
            [{"text": LONG}, {"text": LONG}, "no row"],
            "1 of 3 rows cannot be read: not a JSON object, or one with a duplicate key (1)",
        ),
        ([{"id": "x", "text": LONG}] * 3, "1 different value of the id `id` in 3 rows"),
    ],
)
def test_what_a_person_should_check_is_marked(tmp_path, rows, doubt):
    write(tmp_path / "a.jsonl", rows)
    (one,) = sources(tmp_path).values()
    assert [doubt in told for told in one.rows.doubts] == [True]
    text, _ = written(tmp_path)
    assert "\n# Check this: " in text


def test_rows_of_a_known_layout_raise_no_doubt(tmp_path):
    write(tmp_path / "a.jsonl", [{"id": "a", "text": LONG, "url": "u"}, {"id": "b", "text": LONG}])
    (one,) = sources(tmp_path).values()
    assert one.rows.layouts == {"documents": 2}
    assert one.rows.doubts == []


def test_the_log_of_an_agent_is_one_row(tmp_path):
    turn = {"sessionId": "s", "uuid": "u", "message": CHAT[0]}
    write(tmp_path / "log.jsonl", [turn, {"type": "summary", "leafUuid": "u", "summary": LONG}])
    (one,) = sources(tmp_path).values()
    assert one.rows.layouts == {"agent_log": 1}
    assert "lines[].message.content" in one.rows.visible


def test_an_id_must_be_in_every_row_that_was_seen(tmp_path):
    write(tmp_path / "a" / "a.jsonl", [{"id": 1, "text": "a"}, {"text": "b"}])
    write(tmp_path / "b" / "a.jsonl", [{"metadata": {"doc_id": "x"}, "text": "a"}])
    found = sources(tmp_path)
    assert found["a"].source.id is None
    assert found["b"].source.id == "metadata.doc_id"


def test_shards_are_grouped_by_folder_format_and_what_they_hold(tmp_path):
    for name in ("web/0.jsonl.gz", "web/deep/1.jsonl.gz", "web/2.parquet", "shelf-1.jsonl"):
        write(tmp_path / name, texts())
    write(tmp_path / "parlor-1.jsonl", [{"messages": TURNS}])
    (tmp_path / "notes.docx").write_text("no shard")
    write(tmp_path / ".cache" / "x.jsonl", texts())
    found = survey(tmp_path)
    assert {one.source.name: len(one.files) for one in found.sources} == {
        tmp_path.name: 2,
        "web": 2,
        "web-parquet": 1,
    }
    assert [*map(str, found.left_out)] == [f"{tmp_path / 'notes.docx'}: no format of shards"]
    for one in found.sources:
        shards = find_shards(one.source, folder=Path("/"), known={})
        assert [shard.path for shard in shards] == [str(path) for path in one.files]


def test_files_of_one_stem_give_the_source_its_name(tmp_path):
    for name in ("shelf-0.jsonl.gz", "shelf-1.jsonl.gz", "parlor-0.jsonl"):
        write(tmp_path / name, texts())
    assert {name: one.source.path for name, one in sources(tmp_path).items()} == {
        "parlor": f"{tmp_path}/*.jsonl",
        "shelf": f"{tmp_path}/*.jsonl.gz",
    }


def test_files_that_no_glob_tells_apart_together_are_a_source_for_each_stem(tmp_path):
    for name in ("a-0.jsonl", "a-1.jsonl", "b-0.jsonl", "c-0.jsonl"):
        write(tmp_path / name, texts())
    found = sources(tmp_path / "[ab]-*.jsonl")
    assert [one.source.path for one in found.values()] == [str(tmp_path / "[ab]-*.jsonl")]
    write(tmp_path / "b-0.parquet", texts())
    found = sources(tmp_path / "[ab]-*")
    assert {name: one.source.path for name, one in found.items()} == {
        "a": f"{tmp_path}/a*.jsonl",
        "b": f"{tmp_path}/b*.jsonl",
        "b-parquet": f"{tmp_path}/*.parquet",
    }


def test_folders_may_be_called_anything(tmp_path):
    write(tmp_path / "my [web] data" / "a b.jsonl", texts())
    write(tmp_path / "my (web) data" / "a.jsonl", texts())
    found = sources(tmp_path)
    assert sorted(found) == ["my-web-data", "my-web-data-jsonl"]
    for one in found.values():
        assert len(find_shards(one.source, folder=tmp_path, known={})) == 1


def test_a_place_that_is_no_source_is_a_line_and_ends_none_of_the_others(tmp_path):
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "a.jsonl.gz").write_bytes(gzip.compress(b'{"text": "x"}\n' * 20)[:-9])
    write(tmp_path / "odd" / "a.jsonl", [{"n": 5}])
    write(tmp_path / "odd" / "b.jsonl", [{"n": 5}])
    write(tmp_path / "lines" / "a.jsonl", ["no row", "none", {"text": LONG}])
    (tmp_path / "none").mkdir()
    write(tmp_path / "good" / "0.jsonl", texts())
    names = ("cut", "odd", "lines", "none", "nowhere")
    found = survey(*(tmp_path / name for name in (*names, "good")))
    assert "good" in [one.source.name for one in found.sources]
    told = "\n".join([*map(str, [*found.left_out, *found.problems])])
    for expected in (
        "cut/a.jsonl.gz: found .*(too early|truncated|end-of-stream)",
        r"odd/a.jsonl: rows without text, but with the fields n \(number\)",
        r"odd/b.jsonl: rows without text, but with the fields n \(number\)",
        "lines/a.jsonl: 2 of its first 3 rows cannot be read: not a JSON object",
        "none: no shard",
        "nowhere: no such file or folder",
    ):
        assert re.search(expected, told), expected


def test_without_any_source_all_reasons_are_an_error(tmp_path):
    write(tmp_path / "odd" / "a.jsonl", [{"n": 5}])
    with pytest.raises(CorpusError) as error:
        survey(tmp_path / "odd", tmp_path / "nowhere")
    told = " ".join(map(str, error.value.problems))
    assert "odd/a.jsonl: rows without text" in told
    assert "nowhere: no such file or folder" in told


def test_a_damaged_file_among_whole_ones_is_named_and_stays_in_the_source(tmp_path):
    for number in range(3):
        write(tmp_path / f"a-{number}.jsonl.gz", texts())
    damaged = tmp_path / "a-1.jsonl.gz"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    found = survey(tmp_path)
    assert [problem.where for problem in found.problems] == [str(damaged)]
    assert [len(one.files) for one in found.sources] == [3]


def test_files_whose_rows_cannot_be_read_do_not_hide_whole_ones(tmp_path):
    whole = tmp_path / "a.csv"
    whole.write_text("id,text\n" + f'1,"{LONG}, and more"\n' * 3)
    for name in ("b", "c"):
        (tmp_path / f"{name}.csv").write_text("id,text\n" + f"1,{LONG}, and more\n" * 40)
    found = survey(tmp_path)
    assert [(len(one.files), one.rows.layouts) for one in found.sources] == [(3, {"documents": 3})]
    assert found.left_out == []
    cells = "more or fewer cells than the first row, or a wrong quotation mark"
    for name, problem in zip("bc", found.problems, strict=True):
        assert problem.where == str(tmp_path / f"{name}.csv")
        assert problem.found == f"40 of its first 40 rows cannot be read: {cells}"
    whole.unlink()
    with pytest.raises(CorpusError, match=cells):
        survey(tmp_path)


def test_files_without_rows_are_part_of_what_lies_around_them(tmp_path):
    write(tmp_path / "a-0.jsonl", texts())
    (tmp_path / "b-0.jsonl").write_bytes(b"")
    (one,) = sources(tmp_path).values()
    assert len(one.files) == 2


def test_files_with_different_fields_are_one_source(tmp_path):
    for at in range(4):
        write(tmp_path / f"a-{at}.jsonl", texts() if at else [{"messages": CHAT}] * 5)
    (one,) = sources(tmp_path).values()
    assert len(one.files) == 4
    assert one.rows.layouts == {"documents": 9, "openai_chat": 5}
    assert one.source.id is None


def test_init_does_not_decide_that_unreadable_rows_are_left_out(tmp_path):
    write(tmp_path / "a.jsonl", [*texts(20), *(["no row"] * 15)])
    text, _ = written(tmp_path)
    assert '\n# unreadable = "drop"' in text
    reason = "not a JSON object, or one with a duplicate key (15)"
    assert f"# Check this: 15 of 35 rows cannot be read: {reason}." in text


def test_a_place_that_is_given_twice_or_lies_in_another_is_said(tmp_path):
    write(tmp_path / "web" / "deep" / "a.jsonl", texts())
    web, deep = str(tmp_path / "web"), str(tmp_path / "web" / "deep")
    with pytest.raises(CorpusError, match=f"{web}: the path was given twice"):
        survey_corpus([web, web])
    with pytest.raises(CorpusError, match=f"{deep}: a file in it is also in {web}"):
        survey_corpus([web, deep])
    write(tmp_path / "web" / "quiz.jsonl", [{"question": "How far?", "answer": "7"}])
    with pytest.raises(InputError, match="the path was given twice"):
        survey_benchmarks([tmp_path / "web", tmp_path / "web"])


def test_letters_with_accents_become_plain_ones(tmp_path):
    write(tmp_path / "Ünï" / "a.jsonl", texts())
    assert list(sources(tmp_path)) == ["Uni"]
    folder = tmp_path / "b"
    for name in ("évals ünï", "quíz", "quiz"):
        write(folder / f"{name}.jsonl", [{"question": "How far?", "answer": "7"}])
    (written,) = survey_benchmarks([folder]).drafts
    assert written.names == ("quiz", "quiz_2", "evals_uni")


def test_few_shards_are_rows_of_their_own_and_many_keep_the_grid_small():
    assert packs_for(64, 10**9, 4).shards == 1
    for n_shards in (65, 1_000, 100_000, 10**7):
        packs = packs_for(n_shards, n_shards * 10**6, 20)
        assert -(-n_shards // packs.shards) * 20 <= 5_000
    assert packs_for(1_000, 2 * 10**12, 4).has_bytes
    assert not packs_for(1_000, 10**9, 4).has_bytes


# Benchmarks ---------------------------------------------------------------------------------------


def entry(text, name):
    return re.search(rf"  {name}:\n((?:    .*\n)*)", text)[1]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (
            {"question": "How far is it?", "answer": "7 miles"},
            ["prompt: question", "answers: [answer]"],
        ),
        (
            {"question": "Which?", "choices": ["a", "b"], "answer": 1},
            ["expand_choices: {field: choices, correct_index: answer}"],
        ),
        (
            {"question": "Who?", "context": "Ann came.", "answers": {"text": ["Ann"]}},
            ["passage: context", "answers: [answers.text]"],
        ),
        ({"stem": "The mill stands still."}, ["prompt: stem"]),
        (
            {"Aufgabenstellung": "Zähle die Räder der Mühle.", "Musterlösung": "Es sind drei."},
            ["prompt: Aufgabenstellung", "answers: [Musterlösung]"],
        ),
        (
            {"frage": "Wie weit ist es?", "antwort": "7 Meilen", "kontext": "Ein langer Weg."},
            ["prompt: frage", "passage: kontext", "answers: [antwort]"],
        ),
        (
            {"article": "The mill burned down on Monday.", "highlights": "A mill burned."},
            ["prompt: article", "answers: [highlights]"],
        ),
        (
            {
                "query": "SELECT count(*) FROM mill WHERE wheels > 3",
                "query_toks": ["SELECT", "count", "FROM", "mill"],
                "question": "How many mills have more than three wheels?",
                "sql": {"from": [["mill"]]},
            },
            ["prompt: question", "answers: [query]"],
        ),
        (
            {"query": "Select a word from the list.", "response": "the mill"},
            ["prompt: query", "answers: [response]"],
        ),
    ],
)
def test_rows_without_a_recipe_get_one_that_fits_them(tmp_path, row, expected):
    write(tmp_path / "quiz_test.jsonl", [row] * 3)
    survey = survey_benchmarks([tmp_path])
    (written,) = survey.drafts
    assert survey.recipes == []
    assert written.names == ("quiz",)
    for part in expected:
        assert part in entry(written.text, "quiz")


def test_a_benchmark_without_an_answer_is_named(tmp_path):
    write(tmp_path / "riddle.jsonl", [{"vraag": "Hoe ver is het naar de zee?", "afstand": "7"}])
    write(tmp_path / "quiz.jsonl", [{"question": "How far is it?", "answer": "7 miles"}])
    (written,) = survey_benchmarks([tmp_path]).drafts
    doubts = {one.name: one.doubts for one in written.guesses}
    assert doubts["quiz"] == ()
    assert "no field looks like an answer by name and values" in doubts["riddle"]
    assert "# check this: no field looks like an answer by name and values" in entry(
        written.text, "riddle"
    )
    assert '# answers: ["..."]' in entry(written.text, "riddle")
    assert "# answers" not in entry(written.text, "quiz")


def test_splits_and_parts_are_told_by_the_names_of_files(tmp_path):
    row = {"question": "How far?", "answer": "7"}
    for name in ("mill_train.jsonl", "mill_test.jsonl", "tide/dev-0.jsonl", "tide/dev-1.jsonl"):
        write(tmp_path / name, [row])
    (written,) = survey_benchmarks([tmp_path]).drafts
    assert written.names == ("mill", "tide")
    assert '{"test": ["mill_test.jsonl"], "train": ["mill_train.jsonl"]}' in written.text
    assert '{"dev": ["tide/dev-0.jsonl", "tide/dev-1.jsonl"]}' in written.text


def test_a_folder_with_recipes_is_taken_at_their_word(tmp_path):
    write(tmp_path / "mill.jsonl", [{"question": "How far?", "answer": "7"}])
    write(tmp_path / "other.jsonl", [{"question": "How far?", "answer": "7"}])
    recipe = {"local_path": "mill.jsonl", "splits": ["test"], "prompt": "question"}
    path = tmp_path / "evals.yaml"
    path.write_text("evals:\n  mill: " + json.dumps(recipe))
    (tmp_path / "notes.yaml").write_text("about: this\n")
    survey = survey_benchmarks([tmp_path])
    assert survey == Survey(recipes=[path], left_out=[str(tmp_path / "other.jsonl")])


def test_benchmarks_that_ask_nothing_are_all_told(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / f"{name}.jsonl", [{"n": 5}])
    with pytest.raises(InputError) as error:
        survey_benchmarks([tmp_path, tmp_path / "nowhere"])
    assert len(error.value.problems) == 3


def test_a_file_or_folder_that_cannot_be_read_ends_none_of_the_others(tmp_path):
    good = write(tmp_path / "good" / "quiz.jsonl", [{"question": "How far?", "answer": "7"}] * 3)
    shutil.copy(good, tmp_path / "good" / "quiz2.jsonl.gz")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "evals.yaml").write_text("evals: {quiz: {promt: a}}\n")
    (tmp_path / "table.parquet").write_bytes(b"no table")
    survey = survey_benchmarks([*sorted(tmp_path.iterdir()), tmp_path / "nowhere"])
    assert [one.names for one in survey.drafts] == [("quiz",)]
    named = " ".join(one.where for one in survey.problems)
    for place in ("quiz2.jsonl.gz", "broken/evals.yaml", "table.parquet", "nowhere"):
        assert named.count(place) >= 1


def test_a_question_that_no_field_convinces_as_is_asked(tmp_path):
    row = {"alpha": "A poem about the dark mill.", "beta": "The lamp was lit by the cat.", "n": 4}
    write(tmp_path / "odd.jsonl", [row | {"alpha": f"{row['alpha']} {at}"} for at in range(3)])
    write(tmp_path / "quiz.jsonl", [{"question": "How far?", "answer": "7"}])
    (written,) = survey_benchmarks([tmp_path]).drafts
    assert written.names == ("quiz",)
    written.path.write_text(written.text)
    assert list(load_recipes(written.path)) == ["quiz"]
    uncommented = re.sub(r"^  # (?!  #)", "  ", written.text, flags=re.MULTILINE)
    written.path.write_text(uncommented)
    odd = load_recipes(written.path)["odd"]
    assert normalize(odd, base=tmp_path)["question"][0].as_py() == f"{row['alpha']} 0"
    assert '# prompt: "beta"' in uncommented


def test_two_recipes_that_read_the_same_fields_otherwise_are_a_doubt(tmp_path):
    row = {"question": "우산은 언제 쓰나?", "A": "밤", "B": "비", "C": "잠", "D": "밥"}
    write(tmp_path / "law.jsonl", [row | {"answer": 2, "Category": "Law"}] * 3)
    (written,) = survey_benchmarks([tmp_path]).drafts
    doubt = "the fields also match ceval_computer_network, which reads them differently"
    assert doubt in written.guesses[0].doubts


def test_a_long_text_that_is_not_read_is_a_doubt(tmp_path):
    rows = [
        {"Aufgabe": f"Wie weit ist es von Ort {n} zum Meer?", "Antwort": f"{n} Meilen", "Umfeld": n}
        for n in range(9)
    ]
    doubt = "Umfeld is not read, but may be a passage: it is long"
    for length, is_doubtful in ((2, False), (30, True)):
        rows = [row | {"Umfeld": f"Es war der Tag {row['Antwort']}. " * length} for row in rows]
        write(tmp_path / f"{length}" / "meer.jsonl", rows)
        (written,) = survey_benchmarks([tmp_path / f"{length}"]).drafts
        assert (doubt in written.guesses[0].doubts) == is_doubtful


# The file -----------------------------------------------------------------------------------------


def test_the_examples_of_the_policy_are_its_defaults(tmp_path):
    write(tmp_path / "a" / "x.jsonl", [{"text": LONG}])
    text, _ = written(tmp_path, tmp_path)
    policy = tomllib.loads(re.sub("(?m)^# (?=[a-z_]+ = )", "", text.split("[policy]")[1]))
    for name in ("detectors", "aligned_threshold"):
        default = getattr(Policy(), name)
        assert policy[name] == ([*default] if isinstance(default, tuple) else default)


def test_names_of_fields_cannot_break_the_file(tmp_path):
    odd = 'a"b\nc\\d\x07 [x]'
    write(tmp_path / "a" / "x.jsonl", [{odd: LONG, "id": {odd: "1"}}])
    text, (source,) = written(tmp_path, tmp_path)
    assert source["path"] == "a/*.jsonl"
    (source,) = tomllib.loads(uncommented(text, "text"))["corpus"]["source"]
    assert source["text"] == [odd.partition("[")[0]]


def test_an_editor_finds_the_schema_of_the_settings_without_a_network(tmp_path):
    write(tmp_path / "a" / "x.jsonl", [{"text": "a text that is long enough to be one"}])
    first, *_ = written(tmp_path)[0].splitlines()
    place = urlsplit(first.removeprefix("#:schema "))
    assert place.scheme == "file"
    assert json.loads(Path(url2pathname(place.path)).read_text()) == config_schema()
