"""`decon-assets card` and `check`, as typed."""

import json
import shutil
from xml.etree import ElementTree as ET

import pytest

from decon_assets.cli.main import main
from decon_core.report.publish.summary import format_headline
from decon_core.storage.checksums import sealed_page
from tests.core.report.reports import write_report


@pytest.fixture
def report(tmp_path):
    """One of two items leaked, into one of four documents."""
    item = {"benchmark": "quiz", "split": "test", "is_indexed": True}
    match = {"source": "web", "shard_name": "a", "row": 1, "instance_index": 0, "score": 0.9}
    return write_report(
        tmp_path / "r.duckdb",
        runs=[{"state": "s", "thresholds": '{"decon": 0.8}', "made_by": "decon-assets 0.1.0"}],
        benchmarks=[{"benchmark": "quiz", "n_items": 2}],
        items=[{**item, "instance_index": n} for n in range(2)],
        shards=[{"source": "web", "shard_name": "a", "n_documents": 4, "n_unreadable": 0}],
        matches=[{**match, "benchmark": "quiz", "split": "test", "is_contaminated": True}],
    )


def check(report, *more):
    return main(["check", "--report", str(report), *more])


def test_check_ends_with_0_within_the_limits_and_1_over_them(report, capsys):
    assert check(report, "--max-rate", "0.5", "--require", "quiz, q*") == 0
    assert "2 of 2 passed" in capsys.readouterr().out
    assert check(report, "--max-rate", "0.4") == 1
    out = capsys.readouterr().out
    assert "FAILED  quiz" in out
    assert "1 of 2 items leaked (50.0 %), more than 40.0 %" in out
    assert check(report, "--max-rate", "0.4", "--benchmark", "quiz=0.5") == 0
    assert check(report, "--max-rate", "0.5", "--by", "upper") == 1
    assert check(report, "--max-document-rate", "0.2") == 1
    assert check(report, "--max-rate", "1", "--require", "quiz,mmlu") == 1


def test_check_ends_with_6_if_items_that_cannot_be_found_decide(tmp_path, capsys):
    """One of three items can be found, and it did not leak: 0 to 2 of 3 leaked."""
    item = {"benchmark": "quiz", "split": "test"}
    blind = write_report(
        tmp_path / "b.duckdb",
        runs=[{"state": "s", "thresholds": '{"decon": 0.8}'}],
        benchmarks=[{"benchmark": "quiz", "n_items": 3}],
        items=[{**item, "instance_index": n, "is_indexed": n == 0} for n in range(3)],
        shards=[{"source": "web", "shard_name": "a", "n_documents": 4, "n_unreadable": 0}],
    )
    assert check(blind, "--max-rate", "0.5") == 6
    out = capsys.readouterr().out
    assert "cannot tell  quiz" in out
    assert "0 of 1 " in out
    assert "0 % to 66.7 %" in out
    assert check(blind, "--max-rate", "0.7") == 0
    assert check(blind, "--max-rate", "0.5", "--assume-clean", "quiz") == 0
    assert check(blind, "--max-rate", "0.5", "--require", "mmlu") == 1


def test_check_says_which_items_had_no_limit_where_only_questions_were_found(tmp_path, capsys):
    """All cases pass: nothing leaked. That is not to be read as clean."""
    place = {"source": "web", "shard_name": "a", "row": 1, "score": 0.7}
    questions = write_report(
        tmp_path / "q.duckdb",
        runs=[{"state": "s", "thresholds": '{"decon": 0.8}'}],
        benchmarks=[{"benchmark": "quiz", "n_items": 2}],
        items=[
            {"benchmark": "quiz", "split": "test", "is_indexed": True, "instance_index": n}
            for n in range(2)
        ],
        shards=[{"source": "web", "shard_name": "a", "n_documents": 4, "n_unreadable": 0}],
        matches=[
            {**place, "benchmark": "quiz", "split": "test", "instance_index": n}
            | {"is_no_answer": True}
            for n in range(2)
        ],
    )
    told = "2 items were found without the answer; no limit is set (--max-no-answer-rate)"
    assert check(questions, "--max-rate", "0") == 0
    out = capsys.readouterr().out
    assert f"2 of 2 passed\n{told}" in out
    assert "no-answer share" in out
    assert check(questions, "--max-rate", "0", "--max-no-answer-rate", "1") == 0
    assert told not in capsys.readouterr().out


def test_check_and_headline_count_verdicts_on_texts_that_were_not_found(tmp_path, capsys):
    said = [{"text_id": str(n), "verdict": "leak", "is_found": n == 0} for n in range(3)]
    report = write_report(
        tmp_path / "v.duckdb",
        runs=[{"state": "s", "thresholds": '{"decon": 0.8}'}],
        benchmarks=[{"benchmark": "quiz", "n_items": 2}],
        items=[{"benchmark": "quiz", "split": "test", "instance_index": 0, "is_indexed": True}],
        shards=[{"source": "web", "shard_name": "a", "n_documents": 4, "n_unreadable": 0}],
        verdicts=said,
    )
    told = "2 verdicts are on texts that this scan did not find, and have no effect: decon-assets"
    assert check(report, "--max-rate", "0.5") == 0
    assert told in capsys.readouterr().out
    assert told in format_headline(report)


def test_check_ends_with_2_when_it_cannot_be_done(report, tmp_path, capsys):
    assert check(report) == 2
    told = capsys.readouterr().err
    assert "check: no limit" in told
    assert "For example, `decon-assets check --max-rate 0.01`" in told
    assert check(report, "--benchmark", "quiz") == 2
    assert "NAME=SHARE" in capsys.readouterr().err
    assert check(report, "--max-rate", "5") == 2
    assert check(tmp_path / "nowhere.duckdb", "--max-rate", "1") == 2


def test_check_writes_junit_and_json_whether_or_not_it_passes(report, tmp_path):
    junit, cases = tmp_path / "out" / "junit.xml", tmp_path / "out" / "cases.json"
    for limit, n_failed in (("1", "0"), ("0", "1")):
        check(report, "--max-rate", limit, "--junit", str(junit), "--json", str(cases))
        assert ET.parse(junit).getroot().get("failures") == n_failed
        told = json.loads(cases.read_text())
        assert told["is_passed"] == (n_failed == "0")
        assert [case["name"] for case in told["cases"]] == ["quiz", "coverage"]


def test_card_is_printed_or_written_beside_its_summary(report, tmp_path, capsys):
    assert main(["card", "--report", str(report)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("## Benchmark contamination")
    out = tmp_path / "published"
    assert main(["card", "--report", str(report), "--out", str(out)]) == 0
    written = (out / "card.md").read_text()
    assert written == sealed_page(printed.removesuffix("\n")).decode()
    assert json.loads((out / "summary.json").read_text())["schema"] == "decon-assets/summary/5"


def test_a_device_is_no_folder_and_is_not_replaced_by_a_file(report, tmp_path, capsys, monkeypatch):
    assert main(["card", "--report", str(report), "--out", "/dev/null"]) == 2
    said = capsys.readouterr().err
    assert "/dev/null: not a folder; expected an output folder, new or existing" in said
    monkeypatch.setattr("decon_core.storage.files._DEVICES", {tmp_path})
    (tmp_path / "stdout").symlink_to(tmp_path / "output")
    limit = ["check", "--report", str(report), "--max-rate", "1"]
    assert main([*limit, "--json", str(tmp_path / "stdout")]) == 0
    assert (tmp_path / "stdout").is_symlink()
    assert json.loads((tmp_path / "output").read_text())["is_passed"]


def test_a_report_that_is_not_todays_fails_its_check(at_home, capsys):
    at_home.start(until="report")
    limits = ["check", "--max-rate", "0.6", "--require", "harbor,ledger"]
    assert main(limits) == 0
    assert main(["card"]) == 0
    assert "changed after this report" not in capsys.readouterr().err
    at_home.add_shard("s7")
    assert main(limits) == 1
    assert "changed since the report was built: run `decon-assets run`" in capsys.readouterr().out
    assert main(["card"]) == 0
    assert "changed after this report" in capsys.readouterr().err


def test_a_report_is_todays_however_sources_are_ordered(at_home):
    """A blend draws from them in the order of the packs, which is another one."""
    shutil.copytree(at_home.folder / "corpus", at_home.folder / "attic")
    at_home.mixtures = (
        '[[corpus.source]]\nname = "attic"\npath = "attic/s0*"\ntext = "text"\n'
        '[[mixture]]\nname = "clean"\n'
        '[[blend]]\nname = "stream"\nof = "clean"\n[[blend.phase]]\ndocuments = 5\n'
    )
    at_home.run(until="report")
    assert main(["check", "--max-rate", "1"]) == 0
