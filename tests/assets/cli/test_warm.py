"""`decon-assets warm` compiles kernels beforehand, where the commands find them."""

from types import SimpleNamespace

from decon_assets.cli.main import main
from decon_core.folder_scan import warm
from decon_core.kernels import jit


def test_kernels_are_compiled_into_the_cache_that_commands_use(monkeypatch, capsys):
    scans = {name: warm._SCANS[name] for name in ["the settings of AI2's decon"]}
    monkeypatch.setattr(warm, "_SCANS", scans)
    assert main(["warm"]) == 0
    assert main(["warm"]) == 0
    first, *_, counts, place = capsys.readouterr().out.splitlines()
    assert first == "compiling: the settings of AI2's decon"
    assert counts.startswith("0 kernels compiled in ")
    folder = jit.cache_folder()
    assert place == f"cache: {folder}"
    names = {path.name.split("-")[0] for path in folder.rglob("*.nbc")}
    assert {"sampled_clusters.judge_sampled", "json_lines.read_lines"} <= names


def test_a_folder_that_cannot_be_used_is_refused(monkeypatch, tmp_path, capsys):
    done = SimpleNamespace(folder=tmp_path / "another")
    for result in (None, done):
        monkeypatch.setattr(warm, "warm", lambda _, result=result: result)
        monkeypatch.setenv("NUMBA_CACHE_DIR", "")
        assert main(["warm", "--cache", str(tmp_path / "full")]) == 1
        assert "choose a folder with --cache or $NUMBA_CACHE_DIR" in capsys.readouterr().err
