"""A verdict in the file beside decon.toml, and what `decon-assets run` makes of it."""

import duckdb

from decon_assets.cli.main import main
from decon_core.config.load import load_config
from decon_core.decisions.verdicts import append_verdicts
from decon_core.planner import Plan
from decon_core.storage.store import Store


def test_a_verdict_builds_anew_what_it_bears_on_and_nothing_is_scanned(reported, capsys):
    config = load_config(reported.folder / "decon.toml")
    store = Store(config.store)
    query = "SELECT text_id, fingerprint, benchmark FROM matches WHERE is_contaminated LIMIT 1"
    with duckdb.connect(str(store.report), read_only=True) as connection:
        text_id, fingerprint, benchmark = connection.execute(query).fetchone()
    root = store.root / "scan_results"
    results = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    said = {"pair": text_id, "fingerprint": fingerprint, "verdict": "template"}
    said["note"] = "half a character: \ud83d"  # as of a text that was cut
    append_verdicts(config.verdicts, [said])
    assert main(["status"]) == 1
    out = capsys.readouterr().out
    assert "report: out of date" in out
    assert "    the verdicts: " in out
    assert main(["run", "--verbose"]) == 0
    said = capsys.readouterr().out
    assert "scan: up to date" in said
    assert f"{benchmark}: " in said  # its clean version
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == results
    with duckdb.connect(str(store.report), read_only=True) as connection:
        query = (
            "SELECT DISTINCT verdict, is_by_score, is_contaminated FROM matches WHERE text_id = ?"
        )
        assert connection.execute(query, [text_id]).fetchall() == [("template", True, False)]
    assert Plan(config, store).builder.verdicts.decisive == {text_id: False}
    assert main(["status"]) == 0


def test_a_file_of_verdicts_that_git_could_not_merge_stops_a_run(reported, capsys):
    load_config(reported.folder / "decon.toml").verdicts.write_text("<<<<<<< HEAD\n")
    capsys.readouterr()
    assert main(["run"]) == 2
    said = capsys.readouterr()
    assert "found a merge conflict marker (<<<<<<<)" in said.err
    assert not said.out
    assert main(["status"]) == 1
