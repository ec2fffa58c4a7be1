"""Matched texts with both texts: what is read, what an earlier report lends, what is kept out."""

import json
import re
from pathlib import Path

import duckdb
import pytest

from decon_core.config.load import Report, load_config
from decon_core.config.mixtures import Licenses, Mixture
from decon_core.config.policy import Policy
from decon_core.corpus.shards import values_of
from decon_core.decisions.verdicts import NO_VERDICTS, Verdict, Verdicts
from decon_core.errors import ConfigError
from decon_core.mixtures.builder import Builder
from decon_core.report import matched_texts as module
from decon_core.report.build import is_current
from decon_core.scan.scanner import scan_packs
from tests.core.places import build_mixture, report_of
from tests.core.report.reports import write_report

EXAMPLES = Path(__file__).parents[3] / "examples" / "queries.sql"
SHOWING = Report()
SECRET = "heliotrope"  # in every document, in no benchmark


@pytest.fixture
def scanned(bench, make_words):
    """Two items; the first stands in three documents, the second in one of them and alone."""
    first, second = make_words("first", 30), make_words("second", 30)
    versions = bench.prepare({"quiz": [(first, "nine eggs", None), (second, None, None)]})
    around = [f"{SECRET} {make_words(('around', n), 40)}" for n in range(5)]
    pack = bench.pack(
        {
            "a.jsonl": [
                f"{around[0]} {first} nine eggs {around[1]}",
                f"{around[2]} {first.upper()}! Nine, eggs.",
                around[3],
            ],
            "b.jsonl": [f"{first} nine eggs {around[1]} {second}", f"{second} {around[4]}"],
        }
    )
    scan_packs(bench.store, [pack], versions, bench.policy)
    return bench, versions, pack, first


def report(scanned, showing=SHOWING, verdicts=NO_VERDICTS):
    bench, versions, pack, _ = scanned
    report_of(bench.store, [pack], versions, bench.policy, showing=showing, verdicts=verdicts)
    return bench.store.report


def ask(report, query):
    with duckdb.connect(str(report), read_only=True) as connection:
        return connection.execute(query).fetchall()


def test_of_a_limit_every_benchmark_has_a_share_and_the_doubtful_texts_stay(bench, make_words):
    """Of ten copies of one benchmark and one of another, with ever fewer words of the questions."""
    words = {name: [make_words((name, n), 30) for n in range(10)] for name in ("quiz", "poll")}
    versions = bench.prepare(
        {name: [(question, None, None) for question in asked] for name, asked in words.items()}
    )
    copies = [" ".join(asked.split()[: 30 - n]) for n, asked in enumerate(words["quiz"])]
    pack = bench.pack({"a.jsonl": [*copies, words["poll"][0]]})
    scan_packs(bench.store, [pack], versions, bench.policy)
    report_of(bench.store, [pack], versions, bench.policy, showing=Report(most_texts=3))
    kept = ask(
        bench.store.report, "FROM matched_texts SELECT benchmark, score WHERE text IS NOT NULL"
    )
    ((lowest, highest),) = ask(
        bench.store.report,
        "FROM matched_texts SELECT min(score), max(score) "
        "WHERE is_contaminated AND benchmark = 'quiz'",
    )
    assert {name for name, _ in kept} == {"poll", "quiz"}
    assert {score for name, score in kept if name == "quiz"} <= {lowest, highest}


def test_the_same_words_in_several_documents_are_one_text(scanned):
    found = ask(
        report(scanned),
        "SELECT instance_index, n_documents, n_matches, shard_name, row, is_contaminated "
        "FROM matched_texts ORDER BY instance_index",
    )
    assert found == [(0, 3, 3, "a.jsonl", 0, True), (1, 2, 2, "b.jsonl", 0, True)]


def test_both_texts_are_shown_with_what_they_share(scanned):
    *_, first = scanned
    row = ask(
        report(scanned, Report(context=60)),
        "SELECT question, answer, text, text_marks, question_marks, answer_marks, text_start "
        "FROM matched_texts WHERE instance_index = 0",
    )[0]
    question, answer, text, text_marks, question_marks, answer_marks, start = row
    assert (question, answer) == (first, "nine eggs")
    assert [text[mark["start"] : mark["stop"]] for mark in text_marks] == [first, "nine eggs"]
    assert [mark["part"] for mark in text_marks] == ["question", "answer"]
    assert question_marks == [{"start": 0, "stop": len(first), "part": "question"}]
    assert answer_marks == [{"start": 0, "stop": 9, "part": "answer"}]
    assert start > 0  # not from the beginning: context is short


def test_a_later_report_reads_only_what_it_does_not_know(scanned, monkeypatch):
    read = []

    def reading(shard, source, rows):
        read.append((shard.name, sorted(rows)))
        return values_of(shard, source, rows)

    monkeypatch.setattr(module, "values_of", reading)
    before = ask(report(scanned), "FROM matched_texts")
    assert read == [("a.jsonl", [0]), ("b.jsonl", [0])]
    read.clear()
    assert ask(report(scanned), "FROM matched_texts") == before
    assert read == []
    report(scanned, Report(context=20))
    assert read == [("a.jsonl", [0]), ("b.jsonl", [0])]


def test_a_shard_that_is_gone_takes_its_texts_with_it_and_says_so(scanned):
    Path(scanned[2].shards[0].path).unlink()
    found = ask(
        report(scanned), "SELECT shard_name, text, why_no_text FROM matched_texts ORDER BY 1"
    )
    assert found[0][1] is None
    assert "a.jsonl can no longer be read as it was scanned" in found[0][2]
    assert found[1][1:] == (found[1][1], None)
    assert found[1][1]


def test_more_texts_than_are_wanted_have_no_texts_and_say_so(scanned):
    found = ask(
        report(scanned, Report(most_texts=1)), "SELECT text, why_no_text FROM matched_texts"
    )
    assert len(found) == 2
    assert found[0][0] is not None
    assert found[1] == (None, "the limit `report.most_texts` was reached")


def test_of_many_items_at_one_place_the_best_have_texts_and_the_others_say_so(bench, make_words):
    template = make_words("template", 40)
    bench.policy = Policy(tokenizer_str="cl100k", detectors=("longest_match",))
    items = [(f"{template} {make_words(n, 4)}", None, None) for n in range(11)]
    versions = bench.prepare({"quiz": items})
    pack = bench.pack({"a.jsonl": [f"{make_words('around', 30)} {template} {SECRET}"]})
    scan_packs(bench.store, [pack], versions, bench.policy)
    shown = report((bench, versions, pack, None))
    found = ask(
        shown, "SELECT text IS NOT NULL, why_no_text, count(*) FROM matched_texts GROUP BY ALL"
    )
    why = "only the 8 best items at a place are kept with their text"
    assert sorted(found, key=str) == [(False, why, 3), (True, None, 8)]


def test_a_private_corpus_stays_private(scanned):
    """No column of any table holds a word that only the corpus has; nor does the file."""
    shown = report(scanned)
    assert SECRET in str(ask(shown, "SELECT text FROM matched_texts"))
    for table, hidden in rows_of(report(scanned, Report(snippets="off"))):
        assert SECRET not in hidden, table
    assert SECRET.encode() not in shown.read_bytes()
    why = ask(shown, "SELECT DISTINCT text, why_no_text FROM matched_texts")
    assert why == [(None, "snippets are off")]
    assert ask(shown, "SELECT snippets FROM runs") == [(False,)]


def test_with_a_new_report_the_page_and_card_of_the_old_one_are_gone(scanned):
    """Or one that was killed before the page would leave texts that were just turned off."""
    report(scanned)
    store = scanned[0].store
    for path in store.report_files:
        path.write_text(SECRET)
    report(scanned, Report(snippets="off"))
    assert [path.name for path in store.report.parent.iterdir()] == [store.report.name]


def test_a_license_that_was_refused_is_not_told_of_a_private_corpus(bench, make_words):
    versions = bench.prepare({"quiz": [(make_words("q", 30), None, None)]})
    row = {"id": "1", "text": make_words("t", 40), "license": f"{SECRET} of mine"}
    pack = bench.pack({"a.jsonl": [row]})
    scan_packs(bench.store, [pack], versions, bench.policy)
    mixture = Mixture(name="open", licenses=Licenses(fields=("license",), allow=("MIT",)))
    build_mixture(
        Builder(bench.store, (pack,), tuple(versions), bench.policy, (mixture,)), mixture, pack
    )
    for showing, told in ((SHOWING, f"{SECRET} of mine"), (Report(snippets="off"), None)):
        report_of(bench.store, [pack], versions, bench.policy, (mixture,), showing=showing)
        assert ask(bench.store.report, "SELECT why, detail FROM removed") == [("license", told)]


def rows_of(report):
    names = ask(report, "SELECT table_name FROM duckdb_tables()")
    return [(name, str(ask(report, f"FROM {name}"))) for (name,) in names]


def test_what_people_said_stands_in_the_report(scanned):
    [(text_id, fingerprint)] = ask(
        report(scanned), "SELECT text_id, fingerprint FROM matched_texts WHERE instance_index = 0"
    )
    said = Verdict(
        pair=text_id, fingerprint=fingerprint, verdict="template", note="a form", by="ann"
    )
    gone = Verdict(pair="0" * 16, fingerprint="1" * 16, verdict="leak")
    made = report(scanned, verdicts=Verdicts({one.pair: one for one in (said, gone)}))
    assert ask(
        made, "SELECT text_id, verdict, note, said_by, is_found FROM verdicts ORDER BY 1"
    ) == [
        (gone.pair, "leak", "", "", False),
        (text_id, "template", "a form", "ann", True),
    ]
    called = "SELECT verdict, is_by_score, is_contaminated FROM {} WHERE instance_index = 0"
    assert ask(made, called.format("matched_texts")) == [("template", True, False)]
    assert {*ask(made, called.format("findings"))} == {("template", True, False)}
    assert ask(made, "SELECT status FROM item_status WHERE instance_index = 0") == [("clean",)]
    assert ask(made, "SELECT n_leaked_items FROM documents ORDER BY shard_name, row") == [
        (0,), (0,), (1,), (1,)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cleared", "expected"),
    [(True, ("a", "template", 0.86, False)), (False, ("a", None, 0.86, True))],
)
def test_what_makes_a_leak_speaks_for_it_and_still_does_when_it_was_cleared(
    tmp_path, cleared, expected
):
    """Another detector scores higher but below its threshold; that match has a verdict, too."""
    item = {"benchmark": "b", "split": "test", "source": "web", "shard_name": "s", "row": 1}
    by_score = {
        "text_id": "a", "score": 0.86, "is_by_score": True,
        "is_contaminated": not cleared, "verdict": "template" if cleared else None,
    }  # fmt: skip
    other = {"text_id": "z", "score": 0.9, "verdict": None if cleared else "template"}
    made = write_report(
        tmp_path / "r.duckdb",
        matches=[
            {**item, "detector": "decon", **by_score},
            {**item, "detector": "longest_match", **other},
        ],
    )
    assert ask(made, "SELECT text_id, verdict, score, is_contaminated FROM findings") == [expected]


def test_the_sweep_counts_items_at_every_threshold(scanned):
    found = ask(report(scanned), "SELECT threshold, n_leaked FROM threshold_sweep")
    assert found == [(1.0, 2)]


def test_the_sweep_has_every_benchmark_at_every_step_so_that_sums_are_right(tmp_path):
    ends = {("b", 0): 0.7, ("b", 1): 0.9, ("c", 0): 0.93, ("c", 1): None}
    matches = [
        {"benchmark": name, "split": "test", "instance_index": item, "detector": "decon",
         "holds_to": end}
        for (name, item), end in ends.items()
    ]  # fmt: skip
    made = write_report(tmp_path / "r.duckdb", matches=matches)
    sums = dict(
        ask(made, "SELECT threshold, sum(n_leaked)::BIGINT FROM threshold_sweep GROUP BY 1")
    )
    for threshold in (0.7, 0.75, 0.9, 0.91, 0.93, 1.0):
        assert sums[threshold] == sum(end is not None and end >= threshold for end in ends.values())
    assert ask(made, "SELECT count(DISTINCT n) FROM (SELECT count(*) AS n FROM threshold_sweep "
               "GROUP BY benchmark)") == [(1,)]  # fmt: skip


def test_each_of_the_twelve_questions_is_answered(scanned):
    made = report(scanned)
    text = EXAMPLES.read_text()
    stripped = re.sub(r"^--.*$", "", text, flags=re.MULTILINE)
    questions = [part.strip() for part in stripped.split(";")]
    assert questions.pop() == ""  # behind the last semicolon
    assert len(questions) == len(re.findall(r"^-- \d+\. ", text, flags=re.MULTILINE)) == 12
    for question in questions:
        ask(made, question)
    assert ask(made, questions[0])[0][:4] == ("quiz", "test", 2, 2)
    assert ask(made, questions[6])[-1] == ("aligned", 1.0, 2)


def test_every_column_of_what_is_filled_says_what_it_holds(scanned):
    silent = ask(
        report(scanned),
        "SELECT table_name, column_name FROM duckdb_columns() "
        "WHERE comment IS NULL AND NOT internal AND table_name IN "
        "(SELECT table_name FROM duckdb_tables())",
    )
    assert silent == []


def test_settings_of_the_report_are_checked(tmp_path):
    needed = (
        '[evals]\nrecipes = ["e"]\n[[corpus.source]]\nname = "web"\npath = "*"\ntext = "text"\n'
    )
    wrong = '[report]\nsnippets = "maybe"\ncontext = -1\nmost_texts = true\nfont = "serif"\n'
    (tmp_path / "decon.toml").write_text(needed + wrong)
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "decon.toml")
    told = " ".join(map(str, caught.value.problems))
    assert all(name in told for name in ("snippets", "context", "most_texts", "font"))


def test_another_way_of_showing_asks_for_another_report(scanned):
    from decon_core.config.mixtures import DEFAULT

    bench, versions, pack, _ = scanned
    report(scanned)
    builder = Builder(bench.store, (pack,), tuple(versions), bench.policy, (DEFAULT,))
    assert is_current(builder, Report())
    assert not is_current(builder, Report(snippets="off"))
    assert json.loads(ask(bench.store.report, "SELECT thresholds FROM runs")[0][0]) == {
        "aligned": 0.6
    }
