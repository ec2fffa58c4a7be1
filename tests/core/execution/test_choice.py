"""Which engine settings and environment name, and the errors where it cannot be used."""

import sys
from dataclasses import replace

import pytest

from decon_core.config.execution import ENGINE_VARIABLE, Execution, Ray, Slurm, load_execution
from decon_core.errors import ConfigError, EngineError
from decon_core.execution.choice import open_engine
from decon_core.execution.jobs import run_jobs, useful_workers
from decon_core.execution.local import LocalEngine
from decon_core.execution.ray_cluster import RayEngine
from decon_core.execution.slurm import SlurmEngine
from decon_core.storage.store import Store
from tests.cluster.jobs import Job, double, results_of


def test_the_environment_overrides_the_settings(tmp_path, monkeypatch):
    store = Store(tmp_path / "store")
    monkeypatch.delenv(ENGINE_VARIABLE, raising=False)
    assert isinstance(open_engine(Execution(), store), LocalEngine)
    chosen = open_engine(Execution(engine="slurm"), store)
    assert isinstance(chosen, SlurmEngine)
    assert (chosen.drafts, chosen.logs) == (store.drafts, store.root / "logs")
    monkeypatch.setenv(ENGINE_VARIABLE, "ray")
    assert isinstance(open_engine(Execution(engine="slurm"), store), RayEngine)
    monkeypatch.setenv(ENGINE_VARIABLE, "slrum")
    with pytest.raises(ConfigError, match=r"one of local, slurm, ray. did you mean 'slurm'\?"):
        open_engine(Execution(), store)


def test_settings_are_read_from_a_file_of_their_own(tmp_path):
    path = tmp_path / "cluster.toml"
    path.write_text(
        '[execution]\nengine = "slurm"\n[execution.slurm]\nlogs = "logs"\ntime = "90"\n'
    )
    found = load_execution(path)
    assert found.slurm == Slurm(logs=str(tmp_path / "logs"), time="90")
    path.write_text('[execution]\nengine = "slrum"\nray = { cpus = -1 }\n')
    with pytest.raises(ConfigError) as caught:
        load_execution(path)
    said = str(caught.value)
    assert "2 problems" in said
    assert "execution.engine: found 'slrum'; expected one of local, slurm, ray" in said
    assert "execution.ray.cpus" in said
    with pytest.raises(ConfigError, match="No such file"):
        load_execution(tmp_path / "none.toml")


def test_a_machine_without_slurm_or_ray_is_told_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    slurm = SlurmEngine(Slurm(), tmp_path / "drafts", tmp_path / "logs")
    with pytest.raises(EngineError, match="no sbatch, squeue, scancel on the PATH"):
        results_of(run_jobs(double, [Job(1)], workers=1, engine=slurm))
    assert not (tmp_path / "drafts").exists()
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EngineError, match=r"pip install 'decon-assets\[ray\]'"):
        results_of(run_jobs(double, [Job(1)], workers=1, engine=RayEngine(Ray())))


def test_an_address_where_nothing_answers_is_named():
    pytest.importorskip("ray")
    engine = RayEngine(Ray(address="127.0.0.1:1"))
    with pytest.raises(EngineError, match=r"Ray at '127\.0\.0\.1:1': found .*refused"):
        results_of(run_jobs(double, [Job(1)], workers=1, engine=engine))


def test_little_work_is_done_here_and_a_cluster_is_used_from_one_worker_on(tmp_path):
    slurm = SlurmEngine(Slurm(array_size=3, cpus_per_task=2), tmp_path, tmp_path)
    many = [1_000_000_000] * 50
    assert useful_workers(1, [1000], engine=slurm) == 0
    assert useful_workers(1, many, engine=slurm) == 6
    assert useful_workers(1, many) == 1
    assert useful_workers(8, many, engine=replace(slurm, settings=Slurm(array_size=40))) == 40
    found = results_of(run_jobs(double, [Job(1)], workers=0, engine=slurm))
    assert found == {1: 2}
