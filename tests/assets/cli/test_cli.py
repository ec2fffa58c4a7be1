"""The command line, as typed: what it prints, and with which exit code it ends."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest
from dagster import DagsterInstance

from decon_assets.assets.stage import STAGES
from decon_assets.cli.main import main
from decon_assets.cli.status import _is_held_back
from decon_assets.everything_job import EVERYTHING_MISSING
from decon_assets.resources import Decon
from decon_assets.runner.pipeline import PipelineError
from decon_assets.terminal.output import say_table
from decon_core.config.load import load_config
from decon_core.decisions.not_read import Account, NotRead
from decon_core.features.blends.schemas import blend_folder
from decon_core.mixtures.build import _update_card
from decon_core.planner import Plan
from tests.core.report.reports import write_report


def test_runs_of_the_command_line_are_in_the_overview_of_the_ui_below_one_job(reported):
    with DagsterInstance.from_config(os.environ["DAGSTER_HOME"]) as instance:
        runs = instance.get_runs()
    # The overview leaves out runs without an origin, and groups the others by it and by their job.
    origins = [run.remote_job_origin for run in runs]
    assert {one.repository_origin.get_label() for one in origins} == {
        "__repository__@decon_assets.definitions"
    }
    jobs = [run.job_name for run in runs]
    assert jobs.count("everything_missing") == 1
    assert {"stage_records", "stage_scan", "stage_report"} < {*jobs}
    assert "__ASSET_JOB" not in jobs  # which the overview does not show as a job
    assert len({run.tags["decon/policy"] for run in runs}) == 1
    assert all(run.is_success for run in runs)
    # A job of the UI executes its runs in its process as well.
    assert {run.tags["decon/in_process"] for run in runs} == {"true"}
    assert not any("command_line" in tag for run in runs for tag in run.tags)
    # A daemon does not begin again what a killed command left: the next command does.
    assert {run.tags["dagster/max_retries"] for run in runs} == {"0"}


def test_a_run_prints_one_line_for_each_asset_with_counts_and_on_request_details(
    at_home, capsys, monkeypatch
):
    monkeypatch.setattr("decon_core.features.clusters.slurm_queue.require_slurm", lambda: None)
    monkeypatch.setenv("DECON_ENGINE", "slurm")
    assert main(["run", "--verbose", "--workers", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    off = ("blend", "haystack", "neighbours", "sketch", "study")
    assets = [name for name in STAGES if name not in off]
    told = [line for line in lines if line.endswith(" s)")]
    assert [line.partition(":")[0] for line in told] == assets
    assert told[0].startswith("records: 2 benchmarks, 10 items (")
    scanned = "too little work for a cluster; read 3 shards, wrote 6 scan results"
    assert f"scan: running on this machine: {scanned}" in told[assets.index("scan")]
    assert "1 mixture from 3 packs, 30 of 36 documents kept" in told[assets.index("mixture")]
    assert f"report: {at_home.store.report}" in lines
    assert f"page: {at_home.store.report_page}" in lines
    assert f"next: open {at_home.store.report_page} in a browser" in lines
    assert at_home.store.report.is_file()
    assert main(["status"]) == 0
    assert "harbor: 3 of 3 shards scanned" in capsys.readouterr().out
    first_share = lines[lines.index("mixture …") + 1]
    assert first_share.startswith("  decontaminated, web-0000: kept 10 of 12 documents")
    assert main(["report"]) == 0
    assert "changed after this report was built" not in capsys.readouterr().err


def test_a_number_of_workers_that_is_none_ends_the_run(at_home, capsys, monkeypatch):
    monkeypatch.setenv("DECON_WORKERS", "many")
    assert main(["run"]) == 1
    assert "an integer of at least 1" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["run"], ["backfill", "--missing"]])
def test_an_engine_that_cannot_be_used_ends_a_command_before_it_begins(
    at_home, capsys, monkeypatch, command
):
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    monkeypatch.setenv("DECON_ENGINE", "rya")
    assert main(command) == 2
    assert "Did you mean 'ray'?" in capsys.readouterr().err
    assert main([*command, "--engine", "ray"]) == 1
    told = capsys.readouterr()
    assert "Ray at '127.0.0.1:1': no connection to a cluster: " in told.err
    assert told.out == ""
    assert not at_home.store.root.exists()


def test_an_engine_that_cannot_be_used_ends_the_job_of_the_ui_before_its_first_stage(
    at_home, monkeypatch
):
    monkeypatch.setenv("DECON_ENGINE", "slrum")
    with DagsterInstance.ephemeral() as instance:
        result = EVERYTHING_MISSING.execute_in_process(
            instance=instance, resources={"decon": Decon()}, raise_on_error=False
        )
        assert len(instance.get_runs()) == 1  # none of a stage
    (failure,) = result.get_step_failure_events()
    said = failure.step_failure_data.user_failure_data.description
    assert said.startswith("ConfigError: $DECON_ENGINE: found 'slrum'")
    assert "Did you mean 'slurm'?" in said
    assert not at_home.store.root.exists()


def test_report_prints_the_headline_tables_or_the_answer_to_a_query(reported, capsys):
    capsys.readouterr()
    assert main(["report"]) == 0
    out = capsys.readouterr().out
    assert "95 % interval" in out
    assert "with a leak" in out
    assert main(["report", "--page", "elsewhere/page.html"]) == 0
    assert Path("elsewhere/page.html").read_bytes() == reported.store.report_page.read_bytes()
    assert main(["report", "--database", "nowhere.duckdb"]) == 1
    query = "SELECT count(*) AS n FROM item_status WHERE status = 'leaked'"
    assert main(["report", "--query", query]) == 0
    assert "6" in capsys.readouterr().out
    assert main(["report", "--query", "FROM nowhere"]) == 2


def test_a_report_without_benchmarks_prints_no_empty_tables(tmp_path, capsys):
    assert main(["report", "--database", str(write_report(tmp_path / "r.duckdb"))]) == 0
    out = capsys.readouterr().out
    assert "(nothing)" not in out
    assert "0 documents contain a leak" in out


@pytest.mark.parametrize("query", ["FROM planted", "COPY (SELECT 1) TO 'out.csv'"])
def test_a_query_reaches_the_database_alone_unless_it_may_reach_files(tmp_path, query, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("secret.csv").write_text("a\nb\n")
    with duckdb.connect("theirs.duckdb") as connection:
        shard = "source VARCHAR, pack VARCHAR, shard_name VARCHAR"
        why = "path VARCHAR, benchmarks VARCHAR, reason VARCHAR, remedy VARCHAR"
        connection.execute("CREATE TABLE items (other_questions VARCHAR[])")
        connection.execute(f"CREATE TABLE shards ({shard})")
        connection.execute(f"CREATE TABLE not_scanned ({shard}, {why})")
        connection.execute("CREATE TABLE benchmarks (benchmark VARCHAR)")
        connection.execute(
            "CREATE TABLE not_covered (benchmark VARCHAR, reason VARCHAR, is_refused BOOLEAN)"
        )
        connection.execute("CREATE VIEW planted AS FROM read_csv('secret.csv')")
    command = ["report", "--database", "theirs.duckdb", "--query", query]
    assert main(command) == 2
    assert not Path("out.csv").exists()
    assert main([*command, "--allow-files"]) == 0


def test_a_report_that_this_process_has_open_is_read_all_the_same(reported, capsys):
    with duckdb.connect(str(reported.store.report), read_only=True):
        assert main(["report", "--query", "SELECT 1 + 1 AS two"]) == 0


def test_status_of_a_world_that_never_ran_is_incomplete(at_home, capsys):
    assert main(["status"]) == 1
    out = capsys.readouterr().out
    assert "harbor: no records yet" in out
    assert "mixtures, report: not built yet" in out
    assert "`decon-assets run` builds what is missing" in out
    assert main(["report"]) == 1
    assert "no report yet" in capsys.readouterr().err


def test_status_of_a_run_that_was_killed_before_term_weights_is_incomplete(at_home, capsys):
    at_home.run(until="records")
    assert main(["status"]) == 1
    out = capsys.readouterr().out
    assert "harbor: no term weights yet" in out
    assert "report: not built yet" in out
    assert out.endswith("incomplete: `decon-assets run` builds what is missing\n")


def test_status_of_a_run_that_was_killed_counts_what_it_left_half_done(
    at_home, monkeypatch, capsys
):
    def killed(*_, **__):
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr("decon_core.scan.scanner.join_scan_results", killed)
        with pytest.raises(PipelineError, match="killed"):
            at_home.run(until="scan")
    assert main(["status"]) == 1
    shards = "harbor: 0 of 3 shards scanned, 1 more not yet joined with their pack"
    assert shards in capsys.readouterr().out
    at_home.run(until="mixture")
    plan = Plan(load_config(at_home.config_path), at_home.store)
    _update_card(plan.builder, *plan.config.mixtures, without={"web-0001", "web-0002"})
    assert main(["status"]) == 1
    out = capsys.readouterr().out
    assert "harbor: 3 of 3 shards scanned\n" in out
    assert "decontaminated: 1 of 3 packs up to date, 2 more not yet listed in its README.md" in out


def test_status_names_what_a_new_benchmark_misses(reported, capsys):
    reported.add_benchmark("orchard")
    assert main(["register"]) == 0
    assert "orchard" in capsys.readouterr().out
    assert main(["status"]) == 1
    assert "orchard: no records yet" in capsys.readouterr().out


def test_status_and_report_say_when_files_have_moved_on(reported, capsys):
    names = sorted(path.name for path in (reported.folder / "corpus").iterdir())
    reported.add_shard("s7")
    reported.add_shard(names[0].removesuffix(".jsonl.gz"), n_documents=3)
    (reported.folder / "corpus" / names[1]).unlink()
    reported.benchmarks["ledger"][0]["question"] += " and more"
    reported.write_benchmarks()
    capsys.readouterr()
    assert main(["status"]) == 1
    said = capsys.readouterr().out
    assert "s7.jsonl.gz: new or changed, not registered yet" in said
    assert f"{names[0]}: changed since it was registered" in said
    assert f"{names[1]}: removed since it was registered" in said
    assert f"{names[0]}: new" not in said
    assert "ledger: recipe or files changed" in said
    assert main(["report"]) == 0
    assert "changed after this report was built" in capsys.readouterr().err


def test_what_lies_beside_the_shards_is_named_and_changes_the_exit_code(reported, capsys):
    corpus = reported.folder / "corpus"
    (corpus / "notes.docx").write_text("words")
    (corpus / "README.md").write_text("words")
    (corpus / "more").mkdir()
    for command in ("run", "status", "register"):
        capsys.readouterr()
        assert main([command]) == 0
        said = capsys.readouterr().out
        assert f"on purpose: {corpus}/notes.docx: not matched by the pattern" in said
        assert f"on purpose: {corpus}/README.md: metadata of a dataset" in said
        assert f"on purpose: {corpus}/more/: a folder that the pattern does not enter" in said
    names = [f"gone-{n}.jsonl.gz" for n in range(7)]
    for name in names:
        (corpus / name).symlink_to("nowhere")
    os.mkfifo(corpus / "pipe.jsonl.gz")
    for command in ("run", "register"):
        capsys.readouterr()
        assert main([command]) == 4
        said = capsys.readouterr().out
        assert f"not read: {corpus}/gone-0.jsonl.gz: a broken link" in said
        assert f"8 files, folders and links, all listed in {reported.store.skipped}" in said
        listed = json.loads(reported.store.skipped.read_text())["skipped"]
        counted = [Path(one["path"]).name for one in listed if not one["is_on_purpose"]]
        assert counted == [*names, "pipe.jsonl.gz"]
        assert main([command, "--allow-skipped"]) == 0
    capsys.readouterr()
    assert main(["status"]) == 4
    said = capsys.readouterr().out
    assert all(name in said for name in [*names, "pipe.jsonl.gz", "notes.docx"])
    assert main(["status", "--allow-skipped"]) == 0


def test_what_cannot_be_read_ends_with_1_and_a_benchmark_too_short_to_look_for_does_not(
    at_home, capsys
):
    path = at_home.folder / "corpus" / "s0.jsonl.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b"{broken\n"))
    cut_off = at_home.folder / "corpus" / "s1.jsonl.gz"
    whole = cut_off.read_bytes()
    cut_off.write_bytes(whole[:-50])
    assert main(["run"]) == 1
    said = capsys.readouterr()
    assert "line 13: not JSON" in said.err
    assert "the data is damaged or truncated" in said.err
    assert "Stack Trace" not in said.out + said.err
    assert main(["report", "--query", "SELECT reason FROM unreadable"]) == 1  # s1 is missing
    assert "not JSON" in capsys.readouterr().out
    cut_off.write_bytes(whole)
    at_home.benchmarks["short"] = [{"question": "Who?", "answer": "me"}]
    at_home.write_benchmarks()
    at_home.policy = {"unreadable": "drop"}
    at_home.write_config()
    assert main(["run"]) == 0
    out = capsys.readouterr().out
    assert "1 row of source `web` could not be read: 1 not JSON" in out
    assert "short: no record can be checked; dropped: {'too few tokens': 1}" in out
    query = "SELECT n_not_checkable FROM by_benchmark WHERE benchmark = 'short'"
    assert main(["report", "--query", query]) == 0
    assert "1" in capsys.readouterr().out
    at_home.policy = {}
    at_home.write_config()
    assert main(["run"]) == 4
    assert "mixtures of their packs are not built unless" in capsys.readouterr().out
    assert main(["status"]) == 4


def test_text_that_was_not_read_ends_with_4_until_a_setting_accepts_it(at_home, capsys):
    path = at_home.folder / "corpus" / "s0.jsonl.gz"
    rows = [{"text": "a text", "hint": "some words of a hint that nobody reads"}, {"text": [7] * 9}]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + lines.encode()))
    assert main(["run"]) == 4
    for command in ("run", "status"):  # the mixtures are held back
        assert main([command, "--allow-unread"]) == 4
    check = ["check", "--max-rate", "1"]
    assert main(check) == 4
    assert main([*check, "--allow-unread"]) == 0
    capsys.readouterr()
    assert main(["report"]) == 0
    said = capsys.readouterr().out
    worst = "the most serious: .* % of the text of source `web` was"
    assert re.search(rf"\nnot read: 2 places; {worst}", said)
    assert said.count('report --query "FROM not_read WHERE accepted_by IS NULL"\n') == 1
    assert " of 37 documents contain a leak" in said
    content = at_home.config_path.read_text()
    at_home.config_path.write_text(content.replace("[corpus]\n", '[corpus]\nunread = "report"\n'))
    assert main(["run"]) == 0
    capsys.readouterr()
    assert main(check) == 0
    assert "`text` (" in (said := capsys.readouterr().out)
    assert said.count('(accepted by unread = "report")') == 2


@pytest.mark.parametrize(
    ("missing", "n_clean_missing", "is_held_back"),
    [
        ({"a": {"m"}, "b": set()}, 0, True),
        ({"a": {"m"}, "b": {"m"}}, 1, True),
        ({"a": set(), "b": {"m"}}, 1, False),  # no text of b is unread
        ({"a": set(), "b": set()}, 1, True),
        ({"a": set(), "b": set()}, 0, False),
    ],
)
def test_only_what_depends_on_unread_text_is_held_back_by_it(
    monkeypatch, missing, n_clean_missing, is_held_back
):
    monkeypatch.setattr("decon_assets.cli.status.missing_shares", lambda _: missing)
    clean = ["harbor"] * n_clean_missing
    monkeypatch.setattr("decon_assets.cli.status.missing_clean_benchmarks", lambda _: clean)
    packs = [
        SimpleNamespace(
            name=name, source=SimpleNamespace(name=name), shards=[SimpleNamespace(name="s")]
        )
        for name in "ab"
    ]
    row = NotRead("text", "a", "s", "hint", "not read by the source", 1, 1, 9)
    plan: Any = SimpleNamespace(packs=packs)
    assert _is_held_back(plan, Account((row,))) == is_held_back
    assert not _is_held_back(plan, Account())


def test_a_command_whose_reader_went_away_is_finished_all_the_same(at_home):
    command = [Path(sys.executable).with_name("decon-assets"), "backfill", "--missing"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
    assert process.returncode == 0
    assert len(list(at_home.store.root.glob("scan_results/*/*/ledgers.json"))) == 3


def test_another_snapshot_in_the_configuration_is_never_called_complete(reported, capsys):
    reported.snapshot = ["harbor"]
    reported.write_config()
    capsys.readouterr()
    assert main(["status"]) == 1
    assert "run --new-term-weights" in capsys.readouterr().out
    main(["report"])
    assert "changed after this report was built" in capsys.readouterr().err


def test_what_is_damaged_in_the_store_is_named_with_a_remedy(reported, capsys):
    pack = reported.store.pack("web-0000")
    pack.write_text("{half")
    capsys.readouterr()
    assert main(["run"]) == 2
    assert f"{pack}: the file is damaged" in capsys.readouterr().err
    pack.unlink()
    (pack.parent / "._web-0000.json").write_text("not ours")
    reported.store.report.write_bytes(b"no database")
    assert main(["status"]) == 1
    assert main(["report"]) == 2
    assert main(["run"]) == 0


def test_a_wrong_input_ends_with_2_and_without_a_traceback(at_home, capsys):
    at_home.config_path.write_text("[evals]\nrecipes = 5\n")
    assert main(["run"]) == 2
    said = capsys.readouterr().err
    assert "evals.recipes" in said
    assert "Traceback" not in said


def test_demo_compares_with_the_truth_and_fails_when_something_was_missed(reported, capsys):
    def truth(row):
        line = {
            "source": "web", "shard": "s0.jsonl.gz", "row": row, "kind": "plant",
            "phenomenon": "verbatim", "benchmark": "harbor", "split": "test",
            "instance_index": 0, "expected": True,
        }  # fmt: skip
        return json.dumps(line) + "\n"

    negative = json.loads(truth(1)) | {"instance_index": 3, "expected": False}
    (reported.folder / "truth.jsonl").write_text(truth(5) + json.dumps(negative) + "\n")
    capsys.readouterr()
    assert main(["demo"]) == 1
    out = capsys.readouterr().out
    assert "false alarms" in out
    assert out.count(str(reported.store.report)) == 1
    assert out.count(str(reported.store.report_page)) == 1


def test_demo_says_where_the_sample_data_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 2
    assert "in the folder data/ of the repository" in capsys.readouterr().err


def test_normalize_shows_records_and_refuses_a_bad_row(at_home, capsys):
    assert main(["normalize", "evals.yaml", "--benchmark", "harbor"]) == 0
    assert "harbor: 5 items, 5 records" in capsys.readouterr().out
    (at_home.folder / "harbor.jsonl").write_text('{"question": "only"}\n')
    assert main(["normalize", "evals.yaml", "--benchmark", "harbor"]) == 2
    assert "answer" in capsys.readouterr().err
    assert main(["normalize", "evals.yaml", "--benchmark", "nope"]) == 2
    assert main(["normalize", "."]) == 2
    assert "found a folder" in capsys.readouterr().err


def test_catalog_lists_recipes_and_prints_them_as_yaml(capsys):
    assert main(["catalog"]) == 0
    recipes, sets = capsys.readouterr().out.split("\nsets:\n")
    listed = [line.split()[0] for line in recipes.splitlines()]
    assert len(listed) >= 300
    assert "@frontier" in sets
    assert main(["catalog", listed[0]]) == 0
    assert capsys.readouterr().out.startswith("evals:")
    assert main(["catalog", "no-such-benchmark"]) == 2
    capsys.readouterr()
    assert main(["catalog", "mmlu_p"]) == 2
    assert "Did you mean 'mmlu_pro'" in capsys.readouterr().err


def commands(capsys) -> list[str]:
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out.split("Pipeline:")[1].split("Examples:")[0]
    return re.findall(r"^  (\w+) ", listed, re.MULTILINE)


def test_every_command_explains_itself(capsys):
    names = commands(capsys)
    assert {"run", "backfill", "scan", "why"} < {*names}
    for name in names:
        assert main([name, "--help"]) == 0
        told = capsys.readouterr().out
        assert f"Usage: decon-assets {name}" in told
        assert f"Examples:\n  decon-assets {name}" in told


def test_help_is_plain_and_has_a_short_name(capsys):
    for arguments in (["-h"], ["catalog", "-h"], ["lookup", "-h"], ["compare", "-h"]):
        assert main(arguments) == 0
        told = capsys.readouterr().out
        assert re.search(r"-h, --help +Show this message and exit", told)
        assert not re.search(r"\[\[TEXT|<(str|path|list\[str\])>", told)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "--max-rate", "1%"], "'1%' is not a number; write 0.01 for 1 %"),
        (["compare", "decon.toml"], "expected two reports (FIRST and SECOND), or a decon.toml and"),
    ],
)
def test_what_is_wrong_with_arguments_is_said_in_words(arguments, said, capsys):
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


def test_an_option_before_an_action_is_that_of_the_action(capsys, monkeypatch):
    monkeypatch.setenv("DECON_CONFIG", "elsewhere.toml")
    for arguments in (["--config", "nowhere.toml", "list"], ["list", "--config", "nowhere.toml"]):
        assert main(["mixture", *arguments]) == 2
        assert "nowhere.toml" in capsys.readouterr().err


def test_an_option_takes_all_values_up_to_the_next_option(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--corpus", "one/", "two/", "--evals", "three.yaml"]) == 2
    said = capsys.readouterr().err
    assert all(name in said for name in ("one", "two", "three.yaml"))


def test_a_mistyped_command_or_option_ends_with_2_and_a_suggestion(capsys):
    assert main(["reprot"]) == 2
    assert "Did you mean 'report'" in capsys.readouterr().err
    assert main(["report", "--qurey", "FROM items"]) == 2
    assert "--query" in capsys.readouterr().err


def table_of_width(width, capsys, monkeypatch):
    """A table on a terminal of this width, as lines."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    rows = [
        ("\x1b[one] two", "a text of several words", 12, "4 of 24", 0),
        ("x", "y", 3, "", 0),
    ]
    say_table(("name", "text", "leaked", "of", "none"), rows, spare=("of", "none"))
    return capsys.readouterr().out.splitlines()


def test_a_table_on_a_terminal_wraps_texts_and_leaves_out_what_has_no_room(capsys, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    wide = table_of_width(80, capsys, monkeypatch)
    assert wide[0].split() == ["name", "text", "leaked", "of"]  # all zero: left out
    assert wide[2] == "\ufffd[one] two  a text of several words      12  4 of 24"
    narrow = table_of_width(34, capsys, monkeypatch)
    assert max(map(len, narrow)) <= 34
    assert "not shown" not in "".join(narrow)
    assert any("4 of 24" in line for line in narrow)  # a number never wraps
    narrower = table_of_width(24, capsys, monkeypatch)
    assert max(map(len, narrower[:-1])) <= 24
    assert narrower[-1] == "not shown (terminal too narrow): of"


def test_what_is_bad_has_a_colour_and_none_if_the_terminal_has_none(capsys, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[31m" in "".join(table_of_width(80, capsys, monkeypatch))
    for name, value in (("TERM", "dumb"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
        assert "\x1b" not in "".join(table_of_width(80, capsys, monkeypatch))


def test_help_is_there_at_once_and_a_scan_does_not_wait_for_dagster():
    program = (
        "import sys; from decon_assets.cli.main import main\n"
        "main(sys.argv[1:]); sys.stderr.write(' '.join(sys.modules))"
    )
    for arguments, absent in (
        (["--help"], {"dagster", "pyarrow", "polars", "duckdb"}),
        (["scan", "--help"], {"dagster", "duckdb"}),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
        )
        assert not absent & {*done.stderr.split()}


def test_mixtures_are_listed_and_held_to_their_account(at_home, capsys):
    everything = '[[mixture]]\nname = "all"\ntake = "everything"\n'
    some = '[[mixture]]\nname = "some"\n[mixture.leaks]\nbenchmarks = ["harbor"]\n'
    masks = '[[mixture]]\nname = "masks"\ncut = "spans"\nwrite = "mask"\ntokenizer = "cl100k"\n'
    at_home.mixtures = f'[[mixture]]\nname = "clean"\n{everything}{some}{masks}'
    at_home.start(until="mixture")
    assert main(["mixture", "list"]) == 0
    said = capsys.readouterr().out
    assert "3 of 3" in said
    assert "everything" in said
    assert "harbor, ledger (all benchmarks)" in said
    assert "harbor (1 of 2 benchmarks)" in said
    assert "clean, spans masked" in said
    (masked,) = re.findall(r"masks: ([\d,]+ of [\d,]+ cl100k tokens masked \(.*%\))", said)
    assert not masked.startswith("0 ")
    assert main(["mixture", "verify"]) == 0
    said = capsys.readouterr().out
    assert "clean: matches its manifest; 30 documents" in said
    assert "masks: matches its manifest" in said
    assert masked in said
    # A number of leaks is one of the benchmarks that the mixture looks for, so they are named.
    assert (
        "0 documents with a leak and 0 with a question but not its answer, searched for "
        "harbor, ledger (all benchmarks)" in said
    )
    assert (
        "6 documents with a leak and 0 with a question but not its answer, searched for "
        "harbor, ledger (all benchmarks)" in said
    )
    assert (
        "0 documents with a leak and 0 with a question but not its answer, searched for "
        "harbor (1 of 2 benchmarks)" in said
    )
    folder = at_home.store.mixtures("clean")
    shard = next(folder.glob("*/s0.jsonl.gz"))
    content = bytearray(shard.read_bytes())
    content[4:8] = b"time"  # of the gzip header: the same size, the same text
    shard.write_bytes(content)
    assert main(["mixture", "verify", "all", "--workers", "1"]) == 0
    assert main(["mixture", "verify", "clean"]) == 1
    assert "checksum mismatch" in capsys.readouterr().err
    assert main(["mixture", "verify", "nobody"]) == 2
    at_home.add_shard("s9")
    assert main(["mixture", "verify", "all", "--workers", "1"]) == 1
    assert "s9.jsonl.gz: new or changed, not registered yet" in capsys.readouterr().out
    at_home.mixtures = everything
    at_home.write_config()
    assert main(["mixture", "list"]) == 0
    assert f"no longer declared in decon.toml, so not updated: {folder}" in capsys.readouterr().out


BLENDS = """
[[mixture]]
name = "clean"
[[blend]]
name = "stream"
of = "clean"
[[blend.phase]]
documents = 60
[[blend.contamination]]
benchmarks = ["harbor"]
seen = 0.5
copies = 1
window = [0.0, 1.0]
most_per_batch = 0.5
[[blend]]
name = "crowded"
of = "clean"
[[blend.contamination]]
benchmarks = ["harbor"]
copies = 1000
[[blend]]
name = "control"
of = "clean"
[[blend.phase]]
documents = 60
"""


def test_blends_are_planned_listed_and_held_to_their_account(at_home, capsys):
    at_home.mixtures = BLENDS
    with pytest.raises(PipelineError, match="may be:"):  # one of the two has none
        at_home.start(until="blend")
    assert main(["blend", "plan", "stream"]) == 0
    said = capsys.readouterr().out
    assert "passes" in said
    assert "harbor" in said
    assert main(["blend", "plan"]) == 1
    said = capsys.readouterr()
    assert "crowded: refused" in said.out
    assert "may be:" in said.err
    assert main(["blend", "list"]) == 0
    said = capsys.readouterr().out
    assert [line.split()[2] for line in said.splitlines()[2:]] == ["yes", "no", "yes"]
    assert main(["blend", "compare", "control", "control"]) == 0
    assert "identical, byte for byte" in capsys.readouterr().out
    assert main(["blend", "compare", "control", "stream"]) == 0
    said = capsys.readouterr().out
    assert "first difference: document 59\n" in said
    assert "stream, phase-1/part-00000.holds-test-items.jsonl.zst:" in said
    assert main(["blend", "compare", "control", "crowded"]) == 2
    assert "'crowded'" in capsys.readouterr().err
    assert main(["blend", "verify", "stream"]) == 0
    assert "stream: matches its manifest; 60 documents" in capsys.readouterr().out
    assert main(["blend", "verify"]) == 1
    assert "not built" in capsys.readouterr().err
    assert main(["blend", "plan", "nobody"]) == 2
    assert main(["status"]) == 1
    assert "blends: 2 of 3 up to date" in capsys.readouterr().out
    at_home.mixtures = ""
    at_home.write_config()
    assert main(["blend", "list"]) == 0
    folder = blend_folder(at_home.store, "stream")
    assert f"no longer declared in decon.toml, so not updated: {folder}" in capsys.readouterr().out


def test_what_a_terminal_would_obey_is_not_passed_on(reported, capsys):
    capsys.readouterr()
    assert main(["report", "--query", "SELECT chr(27) || '[31mred' AS text, 'é\tü' AS other"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\ufffd[31mred" in out
    assert "é" in out
