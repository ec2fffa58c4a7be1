"""The wheel: built, installed in an empty environment, and used from a folder of its own.

It has the machine code that was compiled for these tests, as `make wheel` would compile it again.
"""

import gzip
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from contextlib import suppress
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from decon_assets.instance.home import ensure_home
from decon_core.kernels import machine_code
from tests.conftest import invented_words
from tests.dg_projects import dg_dev, write_project
from tests.waiting import wait_until

pytestmark = pytest.mark.release

ROOT = Path(__file__).parents[1]
PACKAGES = ("decon_assets", "decon_core")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
UV = [sys.executable, "-m", "uv"]
N_LEAKS = 2
N_DOCUMENTS = 20

# docs/deployment.md lists what weighs. A new dependency is worth a look at it.
MOST_MB = 1_080


def done(*command, **options):
    """The output of a command that must succeed."""
    result = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, check=False, **options
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A copy: setuptools leaves files beside the sources, and takes up those of earlier times."""
    folder = tmp_path_factory.mktemp("sources")
    left_out = shutil.ignore_patterns("__pycache__", machine_code.SHIPPED.name)
    for name in (*PACKAGES, "tests/oracle", "bench"):  # the last two must not be in the wheel
        shutil.copytree(ROOT / name, folder / name, ignore=left_out)
    compiled = machine_code.prepare()
    shipped = folder / machine_code.SHIPPED.relative_to(ROOT) / compiled.name
    # Other processes may write to it, each file whole under another name first.
    shutil.copytree(compiled, shipped, ignore=shutil.ignore_patterns("*.tmp.*"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(sources):
    command = [*UV, "build", "--wheel", "--offline", "--no-build-isolation"]
    done(*command, "--python", sys.executable, "--out-dir", sources / "dist", sources)
    (path,) = (sources / "dist").glob("*.whl")
    return path


@pytest.fixture(scope="module")
def programs(wheel, tmp_path_factory):
    """The folder of the programs of an environment with the wheel and what it needs, as locked."""
    folder = tmp_path_factory.mktemp("installed")
    done(*UV, "venv", "--offline", "--python", sys.executable, folder / "venv")
    _install(folder / "venv/bin", wheel)
    return folder / "venv/bin"


def _install(programs, package):
    """Install a package, and what it needs, in the environment of these programs.

    uv has the packages in its cache after `make setup`. The index is asked only if they are not.
    """
    command = [*UV, "pip", "install", "--python", programs / "python"]
    command += ["--constraint", ROOT / "requirements.lock", package]
    try:
        done(*command, "--offline")
    except AssertionError:
        done(*command)


@pytest.fixture(scope="module")
def place(programs, tmp_path_factory):
    """A folder with a benchmark and a shard that has leaks of it, and the environment there."""
    folder = tmp_path_factory.mktemp("elsewhere")
    rng = random.Random(0)
    items = [
        {"question": invented_words(rng, 40), "answer": invented_words(rng, 8)} for _ in range(5)
    ]
    recipe = {"local_path": "quiz.jsonl", "splits": ["test"], "prompt": "question"}
    (folder / "evals.yaml").write_text(
        json.dumps({"evals": {"quiz": recipe | {"answers": ["answer"]}}})
    )
    (folder / "quiz.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    documents = [{"id": f"d{row}", "text": invented_words(rng, 60)} for row in range(N_DOCUMENTS)]
    for document, item in zip(documents, items[:N_LEAKS], strict=False):
        document["text"] += f" {item['question']}\nAnswer: {item['answer']} and so on"
    (folder / "shards").mkdir()
    lines = "".join(json.dumps(document) + "\n" for document in documents)
    (folder / "shards/web.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (folder / "home").mkdir()
    kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
    environment = {
        **kept,
        "HOME": str(folder / "home"),
        "PATH": f"{programs}:/usr/bin:/bin",
    }
    return {"cwd": folder, "env": environment}


def test_the_wheel_has_all_files_of_the_packages_and_no_others(sources, wheel):
    expected = {
        str(path.relative_to(sources))
        for name in PACKAGES
        for path in (sources / name).rglob("*")
        if path.is_file()
    }
    found = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert found == expected


def test_a_wheel_with_machine_code_names_its_platform(wheel):
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert wheel.name.endswith(f"-py3-none-{platform}.whl")


def test_the_base_install_has_no_package_of_a_group_and_stays_small(programs):
    listed = json.loads(done(*UV, "pip", "list", "--format=json", "--python", programs / "python"))
    installed = {one["name"] for one in listed}
    assert "decon-assets" in installed
    assert installed.isdisjoint({"datasets", "plotly", "ray", "s3fs", "scikit-learn", "torch"})
    files = [path for path in programs.parent.rglob("*") if path.is_file()]
    sizes = sum(path.stat().st_size for path in files if "__pycache__" not in path.parts)
    assert sizes / 1e6 < MOST_MB


def test_every_group_in_a_message_or_a_page_exists():
    named = set()
    for path in (ROOT / "README.md", ROOT / "docs", ROOT / "deploy", *map(ROOT.joinpath, PACKAGES)):
        for file in [path] if path.is_file() else path.rglob("*"):
            if file.suffix in {".md", ".py", ".toml", ".yaml", ""} and file.is_file():
                groups = re.findall(
                    r"(?:decon-assets|\.|\.whl\))\[([a-z0-9,]+)\]", file.read_text()
                )
                named.update(name for group in groups for name in group.split(","))
    assert named >= {"hub", "postgres", "ray", "s3", "semantic"}
    assert named <= {*EXTRAS}


_IMPORT_ALL = """
import importlib, pkgutil, sys
import decon_assets, decon_core
for package in (decon_assets, decon_core):
    assert "site-packages" in package.__file__
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
"""


def test_every_module_can_be_imported_without_the_groups(place, programs):
    done(programs / "python", "-c", _IMPORT_ALL, **place)


_COMPILE = """
from decon_core.kernels import jit, utf8
assert utf8.is_digit(0x31) and not utf8.is_digit(0x61)
assert jit.is_new(utf8.is_digit)
"""


def test_a_kernel_that_is_not_shipped_is_compiled_and_kept_beside_the_installed_files(
    place, programs
):
    plainest = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": ""}  # of all x86 processors
    environment = place["env"] | plainest
    done(programs / "python", "-c", _COMPILE, cwd=place["cwd"], env=environment)
    kernels = programs.parent.glob("lib/*/site-packages/decon_core/kernels/__pycache__")
    assert [*next(kernels).glob("kernels-*/utf8.is_digit*")]


def test_the_first_scan_compiles_nothing(place, wheel, tmp_path):
    environment = place["env"] | {"NUMBA_CACHE_DIR": str(tmp_path / "empty")}
    scan = ["scan", "--evals", "evals.yaml", "shards", "--out", str(tmp_path / "found")]
    done("decon-assets", *scan, cwd=place["cwd"], env=environment)
    shipped = {Path(name).name for name in zipfile.ZipFile(wheel).namelist()}
    used = {path.name for path in (tmp_path / "empty").rglob("*.nbc")}
    assert "gram_runs.find_runs" in {name.partition("-")[0] for name in used}
    assert used == {name for name in shipped if name.endswith(".nbc")}


def test_scan_run_and_dev_work_in_another_folder(place, programs, unused_port):
    scan = ["scan", "--evals", "evals.yaml", "shards", "--workers", "1"]
    said = done("decon-assets", *scan, "--out", "found", **place)
    assert f"{N_LEAKS} of {N_DOCUMENTS} documents contain a leak" in said
    done("decon-assets", "init", "--corpus", "shards", "--evals", "evals.yaml", **place)
    said = done("decon-assets", "run", "--workers", "1", **place)
    assert f"report: {N_LEAKS} of 5 items leaked" in said
    page = place["cwd"] / ".decon/report/report.html"
    assert page.stat().st_size > 1e6  # with the script of the charts
    _dev(place, unused_port)


_QUERY = """{
    repositoriesOrError { __typename ... on RepositoryConnection { nodes { assetNodes { id } } } }
    runsOrError { ... on Runs { results { status } } }
}"""


def _dev(place, port):
    """Start the UI, and stop it when it shows the assets and the runs of the command line."""
    command = ["decon-assets", "dev", "--port", str(port)]
    with (place["cwd"] / "dev.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, **place)
    try:
        shown = []
        assert wait_until(lambda: shown.append(_ask(port)) or shown[-1], process, pause=0.5), (
            place["cwd"] / "dev.log"
        ).read_text()
        (repository,) = shown[-1]["repositoriesOrError"]["nodes"]
        assert len(repository["assetNodes"]) > 10
        assert {run["status"] for run in shown[-1]["runsOrError"]["results"]} == {"SUCCESS"}
        process.send_signal(signal.SIGTERM)
        assert wait_until(lambda: process.poll() is not None)
        assert process.returncode == 130
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _ask(port):
    """What the UI answers; None as long as it does not."""
    body = json.dumps({"query": _QUERY}).encode()
    headers = {"Content-Type": "application/json"}
    request = Request(f"http://127.0.0.1:{port}/graphql", body, headers)
    with suppress(OSError), urlopen(request) as answer:
        return json.load(answer)["data"]
    return None


_BOTH = """{
    repositoriesOrError { ... on RepositoryConnection { nodes {
        assetNodes { assetKey { path } groupName partitionKeys }
        jobs { name }
        sensors { name }
    } } }
    runsOrError { ... on Runs { results {
        jobName status assetSelection { path } repositoryOrigin { repositoryLocationName }
    } } }
}"""
_LAUNCH = """mutation($job: String!) { launchRun(executionParams: {
    mode: "default", runConfigData: "{}", selector: {
        jobName: $job, repositoryName: "__repository__", repositoryLocationName: "somebody"
    }
}) { __typename } }"""


def test_a_project_with_two_components_builds_the_report_of_one(
    place, programs, tmp_path, unused_port
):
    """With the wheel and `dg`, which no test above this one has, and a corpus in two folders.

    `tests/assets/test_component.py` builds both.
    """
    _install(programs, "dagster-dg-cli")
    environment = place["env"]
    names = ("web", "code")
    for name in names:
        shutil.copytree(place["cwd"], tmp_path / name, ignore=shutil.ignore_patterns(".*", "found"))
        (tmp_path / name / "decon.toml").unlink(missing_ok=True)  # of another test
        init = ["init", "--corpus", "shards", "--evals", "evals.yaml"]
        done(programs / "decon-assets", *init, cwd=tmp_path / name, env=environment)
    folder, home = tmp_path / "project", ensure_home(tmp_path / "dagster_home")
    write_project(folder, {n: f"{{{{ context.project_root }}}}/../{n}/decon.toml" for n in names})
    here = {"cwd": folder, "env": environment | {"DAGSTER_HOME": str(home)}}
    assert "All definitions loaded" in done(programs / "dg", "check", "defs", **here)

    with dg_dev(programs / "dg", folder, home, unused_port, environment) as ask:
        said = ask(_LAUNCH, job="decon__web__everything_missing")
        assert said == {"launchRun": {"__typename": "LaunchRunSuccess"}}
        shown = []

        def is_over():
            shown.append(ask(_BOTH))
            runs = shown[-1]["runsOrError"]["results"] if shown[-1] else []
            jobs = [run for run in runs if run["jobName"].endswith("everything_missing")]
            return bool(jobs) and jobs[0]["status"] in {"SUCCESS", "FAILURE"}

        assert wait_until(is_over, pause=0.5)
    (repository,) = shown[-1]["repositoriesOrError"]["nodes"]
    assert {one["name"] for one in repository["sensors"]} >= {f"decon__{n}__keep_up" for n in names}
    grids = {
        one["groupName"]: one["partitionKeys"]
        for one in repository["assetNodes"]
        if one["assetKey"]["path"][-1] == "scan"
    }
    assert grids == {"web": ["quiz|web-0000"], "code": []}
    runs = shown[-1]["runsOrError"]["results"]
    assert {run["status"] for run in runs} == {"SUCCESS"}
    assert {run["repositoryOrigin"]["repositoryLocationName"] for run in runs} == {"somebody"}
    made = {tuple(key["path"]) for run in runs for key in run["assetSelection"] or ()}
    assert ("decon", "web", "report") in made
    assert not any("code" in key for key in made)
    assert (tmp_path / "web/.decon/report/report.html").is_file()
