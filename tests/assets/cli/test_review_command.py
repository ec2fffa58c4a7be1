"""`decon-assets review`, as typed: on a real terminal, and for scripts."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from contextlib import ExitStack

import duckdb
import pytest

from decon_assets.cli.main import main
from decon_core.decisions.verdicts import read_lines, read_verdicts
from decon_core.storage.checksums import seal_database
from tests.core.report.review_reports import finding, key, matched_text, write_report
from tests.waiting import wait_until

RUN = "import sys; from decon_assets.cli.main import main; sys.exit(main())"
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[31m\x9b31m\u202eevil\r\x08\x00 what is the number 0"


@pytest.fixture
def desk(tmp_path):
    """A report of four matched texts, the most doubtful first: 2, 1, 0, 3."""
    rows = [
        matched_text(0, score=0.9, text=HOSTILE, doc_id="\x1b[31mid", text_marks=None),
        matched_text(1, score=0.85, n_documents=3),
        matched_text(2, score=0.79, text=None),
        matched_text(3, score=1.0, benchmark="exam", text="word " * 900),
    ]
    write_report(tmp_path / "report.duckdb", rows)
    return tmp_path


def places(desk):
    return ["--report", str(desk / "report.duckdb"), "--verdicts", str(desk / "verdicts.jsonl")]


def said(desk):
    return [(int(one["pair"], 16), one["verdict"]) for one in read_lines(desk / "verdicts.jsonl")]


class Terminal:
    """The command on a terminal of its own."""

    def __init__(self, desk, *options, size=(120, 30), **environment):
        self._main, side = pty.openpty()
        self._resize(side, size)
        self.before = termios.tcgetattr(side)
        self._side = side
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUN, "review", *places(desk), "--by", "ada", *options],
            stdin=side,
            stdout=side,
            stderr=side,
            env={**os.environ, "TERM": "xterm", **environment},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self.shown = ""

    def _resize(self, side, size):
        columns, lines = size
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize(self, *size):
        self._resize(self._side, size)

    def wait_for(self, text):
        """Read until a text is there; the screen that it is on."""
        return self.wait_until(lambda page: text in page)

    def wait_until(self, is_right):
        def is_there():
            return is_right(self.page) or (self._read() and is_right(self.page))

        assert wait_until(is_there, pause=0), self.shown
        return self.page

    def _read(self):
        """Read what was written meanwhile; return False if that is nothing for a moment."""
        if not select.select([self._main], [], [], 0.1)[0]:
            return False
        self.shown += os.read(self._main, 65_536).decode("utf-8", "replace")
        return True

    @property
    def page(self):
        """What was drawn last."""
        return self.shown.rpartition("\x1b[2J")[2]

    def press(self, keys):
        os.write(self._main, keys.encode())

    def end(self):
        """The exit code; the terminal has to be as it was."""

        def has_ended():
            self._read()
            return self.process.poll() is not None

        assert wait_until(has_ended, pause=0), self.shown
        while self._read():
            pass
        assert termios.tcgetattr(self._side) == self.before
        return self.process.returncode

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self._main)
        os.close(self._side)


@pytest.fixture
def terminal_of():
    """Opens terminals, and sees to it that none stays."""
    with ExitStack() as opened:

        def open_one(*arguments, **options):
            terminal = Terminal(*arguments, **options)
            opened.callback(terminal.close)
            return terminal

        yield open_one


def without_styles(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_a_key_is_a_verdict_in_the_file_at_once_or_does_nothing(terminal_of, desk):
    terminal = terminal_of(desk)
    terminal.wait_for("1 of 4")
    terminal.wait_for("q quit")
    terminal.press("\x04\x1b[15~\x1bOPLé\n")  # of F5 and F1, say, no part is a letter
    terminal.press("l")
    terminal.wait_for("2 of 4")
    assert said(desk) == [(2, "leak")]
    terminal.press("t")
    terminal.wait_for("3 of 4")
    terminal.press("c")
    terminal.wait_for("4 of 4")
    terminal.press("u")
    terminal.wait_for("end of the queue (4 texts)")
    terminal.press("q")
    assert terminal.end() == 0
    assert said(desk) == [(2, "leak"), (1, "template"), (0, "common source"), (3, "unsure")]
    (first, *_) = read_lines(desk / "verdicts.jsonl")
    assert first["by"] == "ada"
    assert (first["benchmark"], first["instance_index"], first["row"]) == ("quiz", 2, 2)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", first["at"])
    assert "4 verdicts" in terminal.shown


def test_a_note_and_a_match_type_go_with_the_verdict_which_another_replaces(terminal_of, desk):
    terminal = terminal_of(desk)
    terminal.wait_for("1 of 4")
    terminal.press("n")
    terminal.wait_for("note (empty: none): ")
    terminal.press("größer\x7f\x7f als l\n")
    terminal.wait_for("note, to be saved with your verdict: größ als l")
    terminal.press("s")
    terminal.wait_for("2 of 4")
    terminal.press("b")
    terminal.wait_for("note, to be saved with your verdict: größ als l")
    terminal.press("u")
    terminal.wait_for("2 of 4")
    terminal.press("m")
    terminal.wait_for("match type (exact, ")
    terminal.press("unre\n")
    terminal.wait_for("match type, to be saved with your verdict: unrelated")
    terminal.press("l")
    terminal.wait_for("'unrelated' contradicts leak")
    terminal.press("t")
    terminal.wait_for("3 of 4")
    terminal.press("b")
    terminal.wait_for("verdict: template (unrelated)")
    terminal.press("l")
    terminal.wait_for("3 of 4")
    terminal.press("\x1b[D")  # an arrow, and no letters
    terminal.wait_for("verdict: leak")
    terminal.press("ss")  # keys that are typed ahead count, one after the other
    terminal.wait_for("4 of 4")
    terminal.press("q")
    assert terminal.end() == 0
    assert said(desk) == [(2, "unsure"), (1, "template"), (1, "leak")]
    lines = read_lines(desk / "verdicts.jsonl")
    assert [line.get("note") for line in lines] == ["größ als l", None, None]
    assert [line.get("match_type") for line in lines] == [None, "unrelated", None]
    assert read_verdicts(desk / "verdicts.jsonl").by_text[key(1)].verdict == "leak"


def test_a_text_that_is_not_kept_help_and_what_a_model_says_are_shown(terminal_of, desk):
    said = {
        "is_sd": True,
        "match_type": "subset",
        "confidence": 0.8,
        "reasoning": "same \x1b[2J sum",
    }
    line = {"pair": key(2), "fingerprint": key(1002), "kind": "model", "by": "m", **said}
    (desk / "annotations.jsonl").write_text(json.dumps(line) + "\n")
    terminal = terminal_of(desk)
    page = terminal.wait_for("j judge  l leak")
    assert "not shown: the report keeps no texts" in page
    assert "duplicate" not in page
    terminal.press("?")
    terminal.wait_for("If in doubt: would a model")
    terminal.press("x")
    terminal.wait_for("1 of 4")
    terminal.press("j")
    terminal.wait_for("m: duplicate (0.80), subset. same ␛[2J sum")
    terminal.press("s")
    page = terminal.wait_for("2 of 4")
    assert "j judge" not in terminal.wait_for("q quit")
    terminal.press("q")
    assert terminal.end() == 0


def test_what_both_share_stands_out_and_nothing_in_a_text_is_a_command(terminal_of, desk):
    """The window decides how the texts stand."""
    terminal = terminal_of(desk, "--benchmark", "quiz", "--order", "documents")
    wide = terminal.wait_for("q quit")
    assert "\x1b[1;33mWhat is the number\x1b[0m" in wide
    assert "\x1b[1;33mwhat is the number\x1b[0m" in wide
    (line,) = [one for one in without_styles(wide).splitlines() if "Somebody" in one]
    assert re.match(r"question, 0.85 of it found +│ Somebody asked: what is the number 1", line)
    terminal.resize(50, 20)
    terminal.wait_for("\n\x1b[1mtraining text")  # at the beginning of a line
    narrow = terminal.wait_for("l leak")
    assert "Somebody asked: \x1b[1;33mwhat is the number\x1b[0m" in narrow
    assert "│" not in narrow
    assert all(len(one) <= 50 for one in without_styles(narrow).splitlines())
    terminal.resize(20, 8)
    terminal.wait_for("more lines")
    terminal.resize(120, 30)
    terminal.press("s")
    terminal.wait_for("evil")
    page = terminal.wait_for("q quit")
    assert "␛]0;owned␇␛[2J␛[31m" in without_styles(page)
    left = without_styles(page.replace("\r\n", "\n"))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", left)
    terminal.press("q")
    assert terminal.end() == 0
    assert "\x1b]" not in terminal.shown


def test_without_colours_what_both_share_is_underlined(terminal_of, desk):
    terminal = terminal_of(desk, "--order", "documents", NO_COLOR="1")
    page = terminal.wait_for("q quit")
    assert "\x1b[1;4mWhat is the number\x1b[0m" in page
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", terminal.shown)
    terminal.press("q")
    assert terminal.end() == 0


def test_a_long_text_is_gone_through_page_by_page(terminal_of, desk):
    terminal = terminal_of(desk, "--benchmark", "exam", size=(80, 12))
    terminal.wait_for("more lines (press space)")
    assert "benchmark: exam test 3" in terminal.page
    terminal.press(" ")
    terminal.wait_until(lambda page: "word word" in page and "benchmark: exam" not in page)
    terminal.press("\x1b[A")
    terminal.wait_for("benchmark: exam test 3")
    terminal.press("q")
    assert terminal.end() == 0


@pytest.mark.parametrize("is_typed", [True, False])
def test_stopped_at_any_time_nothing_is_lost(terminal_of, desk, is_typed):
    terminal = terminal_of(desk)
    terminal.wait_for("1 of 4")
    terminal.press("l")
    terminal.wait_for("2 of 4")
    if is_typed:
        terminal.press("\x03")
    else:
        os.kill(terminal.process.pid, signal.SIGINT)
    assert terminal.end() == 130
    assert "stopped" in terminal.shown
    assert said(desk) == [(2, "leak")]


def test_a_file_that_is_damaged_is_refused_before_anybody_looks(desk, capsys):
    (desk / "verdicts.jsonl").write_text("<<<<<<< HEAD\n")
    assert main(["review", *places(desk)]) == 2
    assert "found a merge conflict marker (<<<<<<<)" in capsys.readouterr().err


# For scripts --------------------------------------------------------------------------------------


def test_without_a_terminal_it_is_refused_with_a_way_out(desk, capsys):
    assert main(["review", *places(desk)]) == 2
    told = capsys.readouterr().err
    assert "no terminal" in told
    assert "review --list" in told


def test_the_queue_can_be_had_as_a_table_and_as_json(desk, capsys):
    assert main(["review", *places(desk), "--list"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in table[2:]] == [key(n) for n in (2, 1, 0, 3)]
    assert main(["review", *places(desk), "--list", "json", "--order", "score"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["text_id"] for row in rows] == [key(n) for n in (3, 0, 1, 2)]
    assert rows[2]["n_documents"] == 3


def test_the_queue_may_have_only_what_needs_review(tmp_path, capsys):
    rows = [matched_text(n, needs_review=n == 1) for n in range(3)]
    write_report(tmp_path / "report.duckdb", rows)
    for options in (["--needs-review"], ["--needs-review", "--all"]):
        assert main(["review", *places(tmp_path), "--list", "json", *options]) == 0
        (row,) = capsys.readouterr().out.splitlines()
        assert json.loads(row)["text_id"] == key(1)
    assert main(["review", *places(tmp_path), "--needs-review", "--sample", "2"]) == 2


def test_a_verdict_can_be_set_taken_back_and_asked_for_by_the_beginning_of_a_key(desk, capsys):
    assert main(["review", *places(desk), "set", key(1), "common-source", "--note", "a law"]) == 0
    assert main(["review", "set", key(2), "leak", *places(desk)]) == 0
    assert main(["review", *places(desk), "--list", "json"]) == 0
    left = [json.loads(line)["text_id"] for line in capsys.readouterr().out.splitlines()[2:]]
    assert left == [key(0), key(3)]
    assert main(["review", *places(desk), "set", key(1), "none"]) == 0
    assert [*read_verdicts(desk / "verdicts.jsonl").by_text] == [key(2)]
    assert main(["review", *places(desk), "set", "0000", "leak"]) == 2
    assert "several ids begin with this" in capsys.readouterr().err
    assert main(["review", *places(desk), "set", "ffff", "leak"]) == 2
    assert "not in" in capsys.readouterr().err
    assert main(["review", *places(desk), "set", key(1), "perhaps"]) == 2
    about = ["--match-type", "subset", "--confidence", "0.8"]
    assert main(["review", *places(desk), "set", key(1), "leak", *about]) == 0
    found = read_verdicts(desk / "verdicts.jsonl").by_text[key(1)]
    assert (found.match_type, found.confidence) == ("subset", 0.8)
    assert main(["review", *places(desk), "set", key(1), "template", *about[:1], "exact"]) == 2
    told = capsys.readouterr().err
    assert "found 'exact' with the verdict template; expected one of subset, superset" in told
    assert main(["review", *places(desk), "set", key(1), "common", "source"]) == 2
    assert "write common-source or quote it" in capsys.readouterr().err


def test_a_verdict_in_a_file_that_a_run_does_not_read_says_so(desk, capsys):
    assert main(["review", *places(desk), "set", key(1), "leak"]) == 0
    assert "applies the file that decon.toml names" in capsys.readouterr().out
    source = '[[corpus.source]]\nname = "web"\npath = "*.jsonl"\nid = "id"\n'
    (desk / "decon.toml").write_text(f'[evals]\nrecipes = ["e.yaml"]\n{source}')
    options = ["--config", str(desk / "decon.toml"), "--report", str(desk / "report.duckdb")]
    assert main(["review", *options, "set", key(1), "leak"]) == 0
    assert "apply with `decon-assets run`" in capsys.readouterr().out


def test_verdicts_of_the_page_are_taken_and_counted(desk, capsys):
    def line(number, verdict):
        return json.dumps({"pair": key(number), "fingerprint": "f" * 16, "verdict": verdict}) + "\n"

    (desk / "verdicts.jsonl").write_text(line(0, "leak") + line(1, "unsure"))
    export = desk / "export.jsonl"
    export.write_text(line(0, "leak") + line(1, "template") + line(2, "leak") + line(77, "leak"))
    assert main(["review", *places(desk), "import", str(export)]) == 0
    told = capsys.readouterr().out
    assert "4 lines: 2 new, 1 changed, 1 unchanged" in told
    assert "1 for texts that are not in this report" in told
    assert len(read_lines(desk / "verdicts.jsonl")) == 5
    assert main(["review", *places(desk), "import", str(export)]) == 0
    assert "0 new, 0 changed, 4 unchanged" in capsys.readouterr().out
    assert len(read_lines(desk / "verdicts.jsonl")) == 5
    assert main(["review", *places(desk), "import", str(desk / "verdicts.jsonl")]) == 2
    assert "the verdicts file itself" in capsys.readouterr().err
    export.write_text(line(0, "leak") * 2)
    assert main(["review", *places(desk), "import", str(export)]) == 0
    assert "2 lines on 1 text: 0 new, 0 changed, 1 unchanged" in capsys.readouterr().out
    export.write_text(line(0, "perhaps") + "{")
    assert main(["review", *places(desk), "import", str(export)]) == 2
    assert "line 2" in capsys.readouterr().err


def test_a_verdict_on_a_text_that_is_no_longer_found_is_listed_and_can_be_withdrawn(desk, capsys):
    place = {"benchmark": "quiz", "split": "test", "instance_index": 1, "shard": "a", "row": 7}
    line = {"pair": "e" * 16, "fingerprint": "f" * 16, "verdict": "leak", "by": "ada", **place}
    (desk / "verdicts.jsonl").write_text(json.dumps(line) + "\n")
    with duckdb.connect(str(desk / "report.duckdb")) as connection:
        connection.execute(
            "INSERT INTO matches (text_id, benchmark, split, instance_index, shard_name, row) "
            "VALUES (?, 'quiz', 'test', 1, 'a', 7)",
            [key(1)],
        )
    seal_database(desk / "report.duckdb")
    assert main(["review", *places(desk), "status"]) == 0
    told = capsys.readouterr().out
    assert "1 verdict is on a text that this scan did not find, and has no effect:" in told
    assert f"decon-assets review set {'e' * 16} none" in told
    (row,) = [line.split() for line in told.splitlines() if line.startswith("eeee")]
    assert row == ["e" * 16, "leak", "ada", "quiz", "test", "1", "a", "row", "7", key(1)]
    assert main(["review", *places(desk), "set", "eeee", "leak"]) == 2
    assert main(["review", *places(desk), "set", "eeee", "none"]) == 0
    assert not read_verdicts(desk / "verdicts.jsonl").by_text


def test_older_verdicts_that_differ_are_listed_with_both_reviewers(desk, capsys):
    def lines(verdicts, by, at):
        said = {"fingerprint": "f" * 16, "by": by, "at": at}
        rows = [{"pair": key(n), "verdict": verdict, **said} for n, verdict in verdicts.items()]
        return "".join(json.dumps(row) + "\n" for row in rows)

    mine = dict.fromkeys(range(25), "leak")
    (desk / "verdicts.jsonl").write_text(lines(mine, "ada", "2026-11-22T05:00:00+00:00"))
    theirs = {0: "leak"} | dict.fromkeys(range(1, 23), "template")
    export = desk / "export.jsonl"
    export.write_text(lines(theirs, "bob", "2026-11-21T05:00:00+00:00"))
    assert main(["review", *places(desk), "import", str(export)]) == 0
    told = capsys.readouterr().out
    assert "22 ignored: older than the current verdict on the same text\n" in told
    ignored = "template (by bob, 2026-11-21T05:00:00+00:00)"
    assert f"  {key(1)}: {ignored}; current: leak (by ada, 2026-11-22T05:00:00+00:00)\n" in told
    assert (told.count("current: leak"), key(0) in told) == (20, False)
    assert "  … and 2 more\n" in told
    assert len(read_lines(desk / "verdicts.jsonl")) == 25
    export.write_text(lines({0: "leak", 1: "template"}, "bob", "2026-11-23T05:00:00+00:00"))
    assert main(["review", *places(desk), "import", str(export)]) == 0
    told = capsys.readouterr().out
    assert "1 with another verdict than before:\n" in told
    assert f"  {key(1)}: template (by bob, 2026-11-23T05:00:00+00:00); before: leak (by ada" in told
    assert told.count("before: ") == 1
    export.write_text(lines({0: "template"}, "bob", "2999-01-01"))
    assert main(["review", *places(desk), "import", str(export)]) == 2
    assert "a date that is not in the future" in capsys.readouterr().err
    assert len(read_lines(desk / "verdicts.jsonl")) == 26


def test_status_says_how_far_it_is_and_what_a_sample_says(desk, capsys):
    for number, verdict in ((0, "leak"), (1, "template"), (3, "leak")):
        main(["review", *places(desk), "set", key(number), verdict])
    capsys.readouterr()
    assert main(["review", *places(desk), "status", "--sample", "9"]) == 0
    told = capsys.readouterr().out
    assert "3 texts whose current verdict is not in the report yet" in told
    assert "3 of 3 findings drawn, strata: benchmark and score, seed 0" in told
    assert "precision 0.667, 95 % interval 0.667 to 0.667" in told
    assert "unsure or not reviewed" not in told
    assert main(["review", "status", "--json", *places(desk), "--sample", "2", "--seed", "5"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sample"]["seed"] == 5
    assert sum(one["n_leaks"] + one["n_others"] for one in told["sample"]["strata"]) == 2
    assert told["matched_texts"]["exam"]["said"]["leak"] == 1


def test_a_text_of_items_of_two_benchmarks_is_counted_and_named_in_both(desk, capsys):
    with duckdb.connect(str(desk / "report.duckdb")) as connection:
        for benchmark in ("quiz", "copy"):
            connection.execute(
                "INSERT INTO matches (text_id, benchmark, split, instance_index) "
                "VALUES (?, ?, 'test', 0)",
                [key(0), benchmark],
            )
    seal_database(desk / "report.duckdb")
    assert main(["review", *places(desk), "set", key(0), "leak"]) == 0
    assert f"{key(0)} (quiz test 0; also copy test 0): leak." in capsys.readouterr().out
    assert main(["review", *places(desk), "--list", "--all"]) == 0
    assert "quiz test 0; also copy test 0" in capsys.readouterr().out
    for options, names in (([], ["copy", "exam", "quiz"]), (["--benchmark", "quiz"], ["quiz"])):
        assert main(["review", *places(desk), "status", "--json", *options]) == 0
        told = json.loads(capsys.readouterr().out)["matched_texts"]
        assert [*told] == names
        assert told[names[0]]["said"]["leak"] == 1


def test_a_sample_is_the_queue_and_its_own_order(desk, capsys):
    assert main(["review", *places(desk), "--sample", "2", "--list", "json"]) == 0
    first = [json.loads(line)["text_id"] for line in capsys.readouterr().out.splitlines()]
    assert main(["review", *places(desk), "--sample", "2", "--list", "json"]) == 0
    assert [json.loads(one)["text_id"] for one in capsys.readouterr().out.splitlines()] == first
    assert len(first) == 2
    assert key(2) not in first  # no finding: it does not reach the threshold


def test_names_that_nobody_knows_are_refused(desk, capsys):
    assert main(["review", *places(desk), "--list", "--benchmark", "quizz"]) == 2
    assert "Did you mean 'quiz'" in capsys.readouterr().err
    assert main(["review", *places(desk), "--sample", "3", "--stratify", "colour"]) == 2


def test_a_text_of_several_documents_is_one_question(tmp_path, capsys):
    rows = [matched_text(0)]
    findings = [finding(rows[0]), finding(rows[0], row=5), finding(rows[0], row=6)]
    write_report(tmp_path / "report.duckdb", rows, findings)
    assert main(["review", *places(tmp_path), "--sample", "3", "--list", "json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    main(["review", *places(tmp_path), "set", key(0), "leak"])
    assert main(["review", *places(tmp_path), "status", "--sample", "3"]) == 0
    assert "precision 1.000, 95 % interval 1.000 to 1.000" in capsys.readouterr().out


def test_a_narrow_window_keeps_the_keys_for_help_and_quit(terminal_of, desk):
    terminal = terminal_of(desk, "--benchmark", "exam", size=(64, 24))
    page = without_styles(terminal.wait_for("q quit"))
    assert "? help  q quit" in page
    assert "b back" not in page
    assert "in 1 document" in page.replace("\r\n", " ")
    terminal.press("q")
    assert terminal.end() == 0
