"""A run with Slurm's commands, which programs on the PATH stand in for: what it asks of them."""

import sys

import pytest

from decon_core.execution.jobs import run_jobs
from decon_core.features.clusters import slurm, slurm_queue
from decon_core.features.clusters.settings import Slurm
from decon_core.features.clusters.slurm import SlurmEngine
from tests.core.execution.jobs import Job, double, results_of

# The first array fails on n1, the next two submissions are refused, the fourth runs its tasks.
_SBATCH = """
import os, subprocess, sys
from pathlib import Path

folder, script = Path(__file__).parent, sys.stdin.read()
with (folder / "calls").open("a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
n_calls = len((folder / "calls").read_text().splitlines())
if n_calls in (2, 3):
    sys.exit("sbatch: error: the controller is busy")
(array,) = [one for one in sys.argv if one.startswith("--array=")]
n_tasks = int(array.partition("=0-")[2].partition("%")[0]) + 1
for task in range(n_tasks):
    state = "FAILED|n1" if n_calls == 1 else "COMPLETED|n2"
    if n_calls > 1:
        environment = {**os.environ, "SLURM_ARRAY_TASK_ID": str(task)}
        subprocess.run(["bash"], input=script, env=environment, text=True, check=True)
    with (folder / "states").open("a") as states:
        states.write(f"{n_calls}_{task}|{state}\\n")
print(n_calls)
"""
_SQUEUE = """
from pathlib import Path

print((Path(__file__).parent / "states").read_text(), end="")
"""


@pytest.fixture
def commands(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("sbatch", _SBATCH), ("squeue", _SQUEUE), ("scancel", "")):
        program = folder / name
        program.write_text(f"#!{sys.executable}\n{text}")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    for name in ("BETWEEN_READS", "BETWEEN_LOOKS", "AFTER_BAD_START"):
        monkeypatch.setattr(slurm, f"_SECONDS_{name}", 0.0)
    return folder


def test_a_bad_node_is_left_out_and_a_refused_submission_is_repeated(commands, tmp_path, caplog):
    settings = Slurm(jobs_per_task=1, options=("--exclude=n8,n9", "--constraint=rome"))
    engine = SlurmEngine(settings, tmp_path / "drafts", tmp_path / "logs")
    done = run_jobs(double, [Job(n) for n in range(3)], workers=1, engine=engine)
    assert results_of(done) == {0: 0, 1: 2, 2: 4}
    first, *others = [call.split() for call in (commands / "calls").read_text().splitlines()]
    assert first[-2:] == ["--exclude=n8,n9", "--constraint=rome"]
    assert [call[-1] for call in others] == ["--exclude=n8,n9,n1"] * 3
    said = [one for one in caplog.messages if "the controller is busy" in one]
    assert len(said) == 1
    assert said[0].startswith("Slurm refuses the remaining jobs of ended tasks; trying again: ")


def test_a_command_that_cannot_be_started_is_an_answer_that_did_not_come(commands):
    (commands / "squeue").write_text("#!/no/such/program\n")
    assert slurm_queue.states(["1"]) is None
