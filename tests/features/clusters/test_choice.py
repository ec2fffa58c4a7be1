"""Which engine settings and environment name, and the errors where it cannot be used."""

import sys
from dataclasses import replace

import pytest

from decon_core.config.load import config_from
from decon_core.errors import ConfigError, EngineError
from decon_core.execution.choice import ENGINE_VARIABLE, load_engine_tables, open_engine
from decon_core.execution.jobs import run_jobs, useful_workers
from decon_core.execution.local import LocalEngine
from decon_core.features.clusters.ray_cluster import RayEngine
from decon_core.features.clusters.settings import Execution, Ray, Slurm
from decon_core.features.clusters.slurm import SlurmEngine
from decon_core.storage.paths import parse_path
from decon_core.storage.store import Store
from tests.core.execution.jobs import Job, double, results_of


def test_the_environment_overrides_the_settings(tmp_path, monkeypatch):
    store = Store(tmp_path / "store")
    monkeypatch.delenv(ENGINE_VARIABLE, raising=False)
    assert isinstance(open_engine({}, store), LocalEngine)
    chosen = open_engine({"execution": Execution(engine="slurm")}, store)
    assert isinstance(chosen, SlurmEngine)
    assert (chosen.drafts, chosen.logs) == (store.drafts, store.root / "logs")
    monkeypatch.setenv(ENGINE_VARIABLE, "ray")
    assert isinstance(open_engine({"execution": Execution(engine="slurm")}, store), RayEngine)
    monkeypatch.setenv(ENGINE_VARIABLE, "slrum")
    with pytest.raises(ConfigError, match=r"one of local, slurm, ray. Did you mean 'slurm'\?"):
        open_engine({}, store)


def test_settings_are_read_from_a_file_of_their_own(tmp_path):
    path = tmp_path / "cluster.toml"
    path.write_text(
        '[execution]\nengine = "slurm"\n[execution.slurm]\nlogs = "logs"\ntime = "90"\n'
    )
    tables = load_engine_tables(path)
    assert tables["execution"].slurm == Slurm(logs=str(tmp_path / "logs"), time="90")
    path.write_text('[execution]\nengine = "slrum"\nray = { cpus = -1 }\n')
    with pytest.raises(ConfigError) as caught:
        load_engine_tables(path)
    said = str(caught.value)
    assert "2 problems" in said
    assert "execution.engine: found 'slrum'; expected one of local, slurm, ray" in said
    assert "execution.ray.cpus" in said
    path.write_text('[executon]\nengine = "slurm"\n')
    with pytest.raises(ConfigError, match=r"executon: .*Did you mean 'execution'\?"):
        load_engine_tables(path)
    path.write_text('[execution]\nengine = "slurm"\n[executon.slurm]\nmemory = "4G"\n')
    with pytest.raises(ConfigError, match=r"cluster\.toml: executon: .* mean 'execution'\?"):
        load_engine_tables(path)
    path.write_text("[report]\ndrift = 0.1\n")
    with pytest.raises(ConfigError, match=r"only report; expected the table \[execution\]"):
        load_engine_tables(path)
    with pytest.raises(ConfigError, match="no such file"):
        load_engine_tables(tmp_path / "none.toml")


def test_nodes_that_share_no_folder_need_ray_and_a_store_at_a_url(tmp_path, monkeypatch, caplog):
    monkeypatch.delenv(ENGINE_VARIABLE, raising=False)
    store, url = Store(tmp_path / "store"), parse_path("s3://mill/out")
    settings = Execution(engine="ray", shared_store=False)
    assert open_engine({"execution": settings}, store, store_url=url).store_url == url
    assert (
        open_engine({"execution": Execution(engine="ray")}, store, store_url=url).store_url is None
    )
    with caplog.at_level("INFO"):
        assert isinstance(open_engine({"execution": settings}, store), LocalEngine)
    assert "this step runs on this machine" in caplog.text
    monkeypatch.setenv(ENGINE_VARIABLE, "slurm")
    with pytest.raises(ConfigError, match=r'shared_store.*the engine "ray"'):
        open_engine({"execution": settings}, store, store_url=url)
    monkeypatch.setenv(ENGINE_VARIABLE, "local")
    assert isinstance(open_engine({"execution": settings}, store, store_url=url), LocalEngine)

    path = tmp_path / "cluster.toml"
    path.write_text('[execution]\nengine = "ray"\nshared_store = false\n')
    place = r"cluster\.toml: execution\.shared_store: found false; "
    reason = r"expected true, because .* output folder$"
    with pytest.raises(ConfigError, match=place + reason):
        load_engine_tables(path)


@pytest.mark.parametrize(
    ("engine", "store", "expected"),
    [
        ("ray", "out", "true, or a store at a URL"),
        ("local", "out", "true, or a store at a URL"),
        ("slurm", "s3://mill/out", 'true, or the engine "ray"'),
        ("ray", "s3://mill/out", None),
    ],
)
def test_a_store_that_nodes_cannot_reach_is_refused(tmp_path, engine, store, expected):
    values = {
        "evals": {"recipes": ["evals.yaml"]},
        "corpus": {"source": [{"name": "web", "path": "*.jsonl", "text": "text"}]},
        "store": {"path": store},
        "execution": {"engine": engine, "shared_store": False},
    }
    (tmp_path / "evals.yaml").write_text("{}")
    path = tmp_path / "decon.toml"
    if expected is None:
        assert not config_from(values, path).tables["execution"].shared_store
        return
    with pytest.raises(ConfigError, match=r"decon\.toml: execution\.shared_store: ") as caught:
        config_from(values, path)
    assert f"expected {expected}" in str(caught.value)


def test_a_machine_without_slurm_or_ray_is_told_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    slurm = SlurmEngine(Slurm(), tmp_path / "drafts", tmp_path / "logs")
    with pytest.raises(EngineError, match="not on the PATH: sbatch, squeue, scancel"):
        results_of(run_jobs(double, [Job(1)], workers=1, engine=slurm))
    assert not (tmp_path / "drafts").exists()
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EngineError, match=r"pip install 'decon-assets\[ray\]'"):
        results_of(run_jobs(double, [Job(1)], workers=1, engine=RayEngine(Ray())))


def test_an_address_where_nothing_answers_is_named():
    pytest.importorskip("ray")
    engine = RayEngine(Ray(address="127.0.0.1:1"))
    with pytest.raises(EngineError, match=r"Ray at '127.*: no connection to a cluster: .*refused"):
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
