"""`decon-assets reference`, as typed: from a scan to reports, from reports to a database."""

from decon_assets.cli.main import main


def test_reports_are_written_read_and_compared(at_home, capsys):
    scan = ["scan", "corpus", "--evals", "evals.yaml", "--out", "found", "--detectors", "decon"]
    assert main([*scan, "--compat"]) == 0
    capsys.readouterr()
    assert main(["reference", "read", "found/compat", "--out", "r.duckdb"]) == 0
    assert "6 leaks from 3 reports: r.duckdb" in capsys.readouterr().out
    assert main(["compare", "r.duckdb", "found", "--exit-code"]) == 0
    out = capsys.readouterr().out
    assert "the same: 6 leaks in both" in out
    assert "reference implementation, which reports only leaks" in out
    assert main(["check", "--report", "r.duckdb", "--max-rate", "1"]) == 1
    assert "their number is unknown" in capsys.readouterr().out


def test_bad_lines_end_it_with_2_or_are_skipped_and_told(tmp_path, capsys):
    report = tmp_path / "a.jsonl-simple-0.80.jsonl"
    report.write_text('{"training_file": "a.jsonl"}\n')
    out = tmp_path / "r.duckdb"
    assert main(["reference", "read", str(report), "--out", str(out)]) == 2
    assert f"{report} line 1: no 'training_line'" in capsys.readouterr().err
    assert not out.exists()
    assert main(["reference", "read", str(report), "--out", str(out), "--skip-bad"]) == 0
    said = capsys.readouterr()
    assert "0 leaks from 1 reports" in said.out
    assert "1 lines skipped" in said.err
    assert out.is_file()
