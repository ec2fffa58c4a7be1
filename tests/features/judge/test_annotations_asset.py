"""An annotation in the file beside decon.toml, and what `decon-assets run` makes of it."""

import duckdb

from decon_assets.cli.main import main
from decon_core.config.load import load_config
from decon_core.decisions.annotations import Annotation, append_annotations
from decon_core.features.judge.settings import annotations_path
from decon_core.planner import evidence_of, input_files
from decon_core.storage.store import Store


def test_an_annotation_builds_the_report_anew_and_removes_nothing(reported, capsys):
    config = load_config(reported.folder / "decon.toml")
    store = Store(config.store)
    query = "SELECT DISTINCT text_id, fingerprint FROM matches WHERE is_contaminated ORDER BY 1"
    with duckdb.connect(str(store.report), read_only=True) as connection:
        pairs = connection.execute(query).fetchall()
        leaks = connection.execute("SELECT count(*) FROM findings WHERE is_contaminated")
        n_leaks = leaks.fetchone()
    said = {"is_sd": False, "match_type": "unrelated", "kind": "model", "by": "m"}
    lines = [Annotation(pair=pair, fingerprint=item, **said) for pair, item in pairs]
    append_annotations(annotations_path(config), lines)
    assert evidence_of(config).annotations.lines == tuple(lines)
    assert str(annotations_path(config)) in {one.path for one in input_files(config)}
    assert main(["status"]) == 1
    assert "report: out of date" in capsys.readouterr().out
    assert main(["run"]) == 0
    said = capsys.readouterr().out
    assert all(f"{asset}: up to date" in said for asset in ("scan", "mixture", "clean_benchmark"))
    with duckdb.connect(str(store.report), read_only=True) as connection:
        curve = "SELECT n_judged, n_sd FROM calibration_fit WHERE benchmark IS NULL"
        assert connection.execute(curve).fetchone() == (len(pairs), 0)
        calls = connection.execute("SELECT count(*) FROM findings WHERE is_contaminated")
        assert calls.fetchone() == n_leaks
    assert main(["status"]) == 0


def test_a_file_of_annotations_that_cannot_be_read_stops_a_run(reported, capsys):
    config = load_config(reported.folder / "decon.toml")
    annotations_path(config).write_text('{"pair": "x"}\n')
    assert main(["run"]) == 2
    assert "annotations.jsonl: line 1: pair" in capsys.readouterr().err
