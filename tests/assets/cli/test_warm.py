"""`decon-assets warm` compiles kernels beforehand, where the commands find them."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from decon_assets.cli.main import main
from decon_core.kernels import machine_code
from decon_core.library import warm

ROOT = Path(__file__).parents[3]


def test_kernels_are_compiled_into_the_cache_that_commands_use(monkeypatch, capsys):
    scans = {name: warm._SCANS[name] for name in ["the settings of AI2's decon"]}
    monkeypatch.setattr(warm, "_SCANS", scans)
    assert main(["warm"]) == 0
    first, *_, counts, place = capsys.readouterr().out.splitlines()
    assert first == "compiling: the settings of AI2's decon"
    assert re.fullmatch(r"\d+ kernels? compiled in \d+ s, [\d,]+ already cached", counts)
    folder = machine_code.prepare()
    assert place == f"cache: {folder}"
    names = {path.name.split("-")[0] for path in folder.rglob("*.nbc")}
    assert {"sampled_clusters.judge_sampled", "json_lines.read_lines"} <= names


def test_a_small_scan_needs_the_kernels_that_are_compiled_for_it_and_no_others(tmp_path):
    """In processes of their own: what this one has compiled already is not compiled again."""
    program = Path(sys.executable).with_name("decon-assets")
    cache, scratch = tmp_path / "cache", tmp_path / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "0", "NUMBA_CACHE_DIR": str(cache)}

    def kernels_after(*command):
        subprocess.run(
            [program, *command], cwd=ROOT, env=environment, check=True, capture_output=True
        )
        return {path.name for path in cache.rglob("*.nbc")}

    compiled = kernels_after("warm", "--small")
    shard = "data/corpus/shelf-0000.jsonl.gz"
    scan = ["scan", "--evals", "data/evals.yaml", shard, "--out", str(scratch / "out")]
    assert kernels_after(*scan) == compiled


def test_a_folder_that_cannot_be_used_is_refused(monkeypatch, tmp_path, capsys):
    done = SimpleNamespace(folder=tmp_path / "another")
    for result in (None, done):
        monkeypatch.setattr(warm, "warm", lambda _, small, result=result: result)
        monkeypatch.setenv("NUMBA_CACHE_DIR", "")
        assert main(["warm", "--cache", str(tmp_path / "full")]) == 1
        assert "choose a folder with --cache or $NUMBA_CACHE_DIR" in capsys.readouterr().err
    assert main(["warm", "--cache", "/proc/none"]) == 1  # nobody can create a folder there
    assert "choose a folder with --cache or $NUMBA_CACHE_DIR" in capsys.readouterr().err
