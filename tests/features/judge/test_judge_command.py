"""`decon-assets judge`, as typed: against a server on this machine, killed and resumed."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from decon_assets.cli.main import main
from decon_core.decisions.annotations import read_annotations
from decon_core.decisions.verdicts import append_verdicts
from decon_core.storage.drafts import locked_or_refused
from tests.core.report import reports
from tests.core.report.review_reports import key, matched_text
from tests.features.endpoints.chat_server import Reply, answer, serving
from tests.waiting import wait_until

RUN = "import sys; from decon_assets.cli.main import main; sys.exit(main())"
N = 12


def match(of_text, **values):
    names = (
        "text_id",
        "benchmark",
        "split",
        "instance_index",
        "source",
        "shard_name",
        "row",
        "score",
    )
    return {**{name: of_text[name] for name in names}, "detector": "decon", **values}


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A report of twelve matched texts, and a decon.toml that names no endpoint yet."""
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    pairs = [matched_text(number, score=0.5 + number / 40) for number in range(N)]
    pairs[3] |= {"text": None, "why_no_text": "snippets are off"}
    matches = [match(one) for one in pairs]
    matches += [match(pairs[5], detector="ratcliff", score=0.4)]
    reports.write_report(tmp_path / "report.duckdb", matched_texts=pairs, matches=matches)
    configure(tmp_path)
    return tmp_path


def configure(desk, **judge):
    settings = "\n".join(f"{name} = {json.dumps(value)}" for name, value in judge.items())
    (desk / "decon.toml").write_text(
        '[evals]\nrecipes = ["evals.yaml"]\n'
        '[[corpus.source]]\nname = "web"\npath = "web/*.jsonl"\ntext = "text"\n'
        '[policy]\ndetectors = ["decon", "ratcliff"]\n'
        f"[judge]\n{settings}\n"
    )


def endpoint(server, **others):
    return {"url": server.url, "model": "m", "first_wait": 0.001, "retries": 1, **others}


def arguments(desk, *typed):
    named = ["--config", str(desk / "decon.toml")]
    return ["judge", *typed, *named, *(["--report", str(desk / "report.duckdb")])]


def judge(desk, *typed):
    return main(arguments(desk, *typed))


def kept(desk):
    lines = read_annotations(desk / "annotations.jsonl").lines
    return {int(one.pair, 16): one.is_sd for one in lines}


def test_a_dry_run_says_how_much_it_is_and_sends_nothing(desk, capsys):
    with serving(lambda *_: Reply(answer())) as server:
        configure(desk, **endpoint(server, max_requests=4))
        append_verdicts(
            desk / "verdicts.jsonl",
            [{"pair": key(0), "fingerprint": key(1000), "verdict": "leak"}],
        )
        assert judge(desk, "--dry-run") == 0
    out = capsys.readouterr().out
    assert "12 pairs selected" in out
    assert "1 with a person's verdict" in out
    assert "1 cannot be judged: snippets are off" in out
    assert "10 to ask: 10 requests with about" in out
    assert "at most 10,240 in answers" in out
    assert "limits of one command: max_requests = 4" in out
    assert "nothing was sent" in out
    assert server.asked.total() == 0
    assert not (desk / "annotations.jsonl").exists()


def test_answers_are_saved_and_not_asked_for_again(desk, capsys):
    with serving(lambda _, item, __: Reply(answer(**decided(item)))) as server:
        configure(desk, **endpoint(server))
        assert judge(desk) == 1  # one has no text
        out = capsys.readouterr().out
        assert "11 pairs judged (6 duplicates, 5 others)" in out
        assert "1 pair unjudged, which does not mean clean:\n  1: snippets are off" in out
        before = (desk / "annotations.jsonl").read_bytes()
        assert judge(desk) == 1
        assert judge(desk, "--detector", "ratcliff") == 0
    assert kept(desk) == {n: n % 2 == 0 for n in range(N) if n != 3}
    assert {*server.asked.values()} == {1}
    assert (desk / "annotations.jsonl").read_bytes() == before
    (line, *_) = read_annotations(desk / "annotations.jsonl").lines
    assert (line.kind, line.by, len(line.request), len(line.prompt)) == ("model", "m", 32, 16)


def decided(item):
    is_sd = item % 2 == 0
    return {"is_sd": is_sd, "match_type": "equivalent" if is_sd else "related"}


def test_what_fails_is_unjudged_counted_and_asked_for_again_another_time(desk, capsys):
    is_well = threading.Event()

    def behave(_, item, __):
        if item == 2 and not is_well.is_set():
            return Reply({}, status=500)
        if item == 4 and not is_well.is_set():
            return Reply(answer("yes"))
        return Reply(answer())

    with serving(behave) as server:
        configure(desk, **endpoint(server))
        assert judge(desk) == 1
        out = capsys.readouterr().out
        assert "3 pairs unjudged, which does not mean clean:" in out
        assert "  1: HTTP 500\n" in out
        assert "  1: unusable answer (no JSON object)\n" in out
        assert kept(desk)[2] is kept(desk)[4] is None
        assert judge(desk, "status") == 0
        assert "1 pair unjudged by the model: HTTP 500" in capsys.readouterr().out
        is_well.set()
        assert judge(desk) == 1
        assert "2 to ask" in capsys.readouterr().out
    assert kept(desk)[2] is kept(desk)[4] is True
    assert server.asked[2] == 3
    assert {n for item, n in server.answered.items() if item != 4} == {1}


def test_a_command_that_was_killed_goes_on_and_asks_nothing_twice(desk):
    """The server answers four requests and holds back the others until the command is dead."""
    go_on = threading.Event()
    with serving(lambda n, *_: Reply(answer(), hold=None if n < 4 else go_on)) as server:
        configure(desk, **endpoint(server, concurrency=2))
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, *arguments(desk)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert wait_until(lambda: len(kept(desk)) == 4 and server.asked.total() == 6)
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        answered = {*kept(desk)}
        go_on.set()
        assert judge(desk) == 1
    assert len(answered) == 4
    assert kept(desk) == {n: True for n in range(N) if n != 3}
    assert {item: server.asked[item] for item in answered} == dict.fromkeys(answered, 1)
    lines = (desk / "annotations.jsonl").read_text().splitlines()
    assert len(lines) == len({json.loads(line)["request"] for line in lines}) == N - 1


def test_ctrl_c_ends_it_at_once_and_keeps_the_answers(desk):
    never = threading.Event()
    with serving(lambda n, *_: Reply(answer(), hold=None if n < 3 else never)) as server:
        configure(desk, **endpoint(server, concurrency=2))
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, *arguments(desk)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            assert wait_until(lambda: len(kept(desk)) == 3 and server.asked.total() == 5)
            os.kill(process.pid, signal.SIGINT)
            _, err = process.communicate()
        finally:
            process.kill()
            process.wait()
            never.set()
    assert process.returncode == 130
    assert b"finished work is kept" in err
    assert b"Traceback" not in err
    assert len(kept(desk)) == 3


def test_two_commands_do_not_ask_at_the_same_time(desk, capsys):
    with serving(lambda *_: Reply(answer())) as server:
        configure(desk, **endpoint(server))
        with locked_or_refused(desk / ".annotations.jsonl.lock", "this test"):
            assert judge(desk) == 2
    assert "another `decon-assets judge` is running" in capsys.readouterr().err
    assert server.asked.total() == 0


def test_pairs_with_a_verdict_are_asked_about_only_on_demand(desk, capsys):
    line = {"pair": key(2), "fingerprint": key(1002), "verdict": "template"}
    append_verdicts(desk / "verdicts.jsonl", [line])
    with serving(lambda *_: Reply(answer())) as server:
        configure(desk, **endpoint(server))
        judge(desk)
        assert server.asked[2] == 0
        judge(desk, "--all")
        assert (server.asked[2], server.asked.total()) == (1, 11)
        capsys.readouterr()
        judge(desk, "status")
    assert "agrees with people or files on 0 of 1 pair;" in capsys.readouterr().out


def test_a_limit_leaves_the_rest_unjudged_and_the_next_command_goes_on(desk, capsys):
    with serving(lambda *_: Reply(answer())) as server:
        configure(desk, **endpoint(server, max_requests=5))
        assert judge(desk) == 1
        assert "6: not asked: judge.max_requests = 5" in capsys.readouterr().out
        assert judge(desk) == 1
        assert judge(desk) == 1
    assert len(kept(desk)) == 11
    assert {*server.asked.values()} == {1}


def test_a_sample_is_drawn_over_the_scores(desk):
    with serving(lambda *_: Reply(answer())) as server:
        configure(desk, **endpoint(server))
        judge(desk, "--sample", "4", "--detector", "decon")
        first = {*kept(desk)}
        judge(desk, "--sample", "8", "--detector", "decon")
    assert len(first) in (3, 4)  # one pair has no text
    assert {int(10 * (0.5 + n / 40)) for n in first} >= {5, 6, 7}
    assert first < {*kept(desk)}
    assert {*server.asked.values()} == {1}


def test_an_endpoint_that_is_not_named_or_has_no_key_is_refused(desk, capsys):
    assert judge(desk) == 2
    err = capsys.readouterr().err
    assert "judge.url: missing;" in err
    assert "judge.model: missing;" in err
    configure(desk, url="http://127.0.0.1:9/v1", model="m", key_env="JUDGE_KEY")
    assert judge(desk) == 2
    assert "environment: JUDGE_KEY: not set;" in capsys.readouterr().err


def test_a_name_that_no_pair_has_is_refused(desk, capsys):
    assert judge(desk, "status", "--detector", "decom", "--benchmark", "quizz") == 2
    err = capsys.readouterr().err
    assert "--detector: found 'decom', which has no pairs" in err


def test_the_key_comes_from_the_environment_and_goes_nowhere_else(desk, capsys, monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "sesame-1234")
    echo = {"error": "unknown key: sesame-1234"}
    with serving(lambda *_: Reply(echo, status=401)) as server:
        configure(desk, **endpoint(server, key_env="JUDGE_KEY"))
        assert judge(desk) == 2
    assert {*server.keys} == {"Bearer sesame-1234"}
    out, err = capsys.readouterr()
    assert "does not accept the key" in err
    files = b"".join(path.read_bytes() for path in desk.iterdir() if path.is_file())
    assert "sesame" not in out + err
    assert b"sesame" not in files


def test_files_of_candidates_need_no_report(desk, capsys):
    lines = [
        {"benchmark": "mbpp", "item": f"number {n}", "text": f"the {n}", "similarity": n / 10}
        for n in range(4)
    ]
    (desk / "neighbours.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    with serving(lambda *_: Reply(answer())) as server:
        configure(desk, **endpoint(server, candidates=["neighbours.jsonl"]))
        typed = ["--config", str(desk / "decon.toml")]
        assert main(["judge", *typed]) == 0
        assert server.asked.total() == 4
        assert main(["judge", "status", *typed]) == 0
    assert "neighbours  mbpp" in capsys.readouterr().out


def test_annotations_are_imported_once_and_compared_with_the_model(desk, capsys):
    lines = [
        {"pair": key(n), "fingerprint": key(n + 1000), "is_sd": n % 2, "match_type": "related"}
        for n in range(4)
    ]
    path = desk / "judged.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    typed = ["--config", str(desk / "decon.toml")]
    assert main(["judge", "import", str(path), *typed]) == 0
    assert "4 lines: 4 new, 0 repeated or already known" in capsys.readouterr().out
    assert main(["judge", "import", str(path), *typed]) == 0
    assert "4 lines: 0 new, 4 repeated or already known" in capsys.readouterr().out
    with serving(lambda *_: Reply(answer())) as server:
        configure(desk, **endpoint(server))
        assert judge(desk) == 1
    assert judge(desk, "status") == 0
    out = capsys.readouterr().out
    assert "agrees with people or files on 1 of 3 pairs" in out
    assert "duplicates missed: 0, other pairs called duplicates: 2" in out
    assert "decon" in out
    path.write_text(path.read_text() + json.dumps(lines[0] | {"is_sd": 1}) + "\n")
    assert main(["judge", "import", str(path), *typed]) == 0
    said = capsys.readouterr().out
    assert "5 lines: 1 new, 4 repeated or already known" in said
    assert "1 pair judged both ways in this file: the last line counts" in said
    path.write_text('{"is_sd": true, "match_type": "exact"}\n')
    assert main(["judge", "import", str(path), *typed]) == 2
    assert "neither a key nor texts" in capsys.readouterr().err
