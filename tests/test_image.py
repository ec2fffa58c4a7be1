"""The image and the compose file of deploy/: by a linter, a parser, and what our code reads.

The image is built where a builder answers.
"""

import copy
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import compose_spec
import pytest
import yaml

from decon_assets.instance.home import HOME_VARIABLE, LOCATION
from decon_assets.runner.webserver import MODULE
from decon_core.config import CONFIG_VARIABLE

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
COMPOSE = (DEPLOY / "compose.yaml").read_text()
DAGSTER = (DEPLOY / "dagster-postgres.yaml").read_text()
IMAGE = "decon-assets:local"
# Dagster reads this one; its name is in no file of ours.
EVENT_BATCHES = "DAGSTER_EVENT_BATCH_SIZE"


def composed(**variables):
    """The compose file with the variables put in, as `docker compose` does it."""

    def value(match):
        name, operator, rest = match.groups()
        if name in variables:
            return variables[name]
        assert operator == "-", f"{name}: {rest}"
        return rest

    return yaml.safe_load(re.sub(r"\$\{(\w+):([?-])([^}]*)\}", value, COMPOSE))


@pytest.fixture
def file():
    return composed(DECON_PG_PASSWORD="p", DECON_PROJECT="/srv/project", DECON_CORPUS="/srv/shards")


@pytest.fixture
def services(file):
    return file["services"]


def checked(file):
    parsed = compose_spec.PyCompose.from_yaml(yaml.safe_dump(file))
    parsed.validate()
    return parsed.service_names()


def test_the_compose_file_is_one_by_its_specification(file):
    assert checked(file) == ["daemon", "postgres", "webserver"]
    for place, key in (("daemon", "helthcheck"), ("postgres", "enviroment")):
        broken = copy.deepcopy(file)
        broken["services"][place][key] = {}
        with pytest.raises(ValueError, match=key):
            checked(broken)
    broken = copy.deepcopy(file)
    broken["services"]["daemon"]["volumes"].append("nowhere:/nowhere")
    with pytest.raises(ValueError, match="nowhere"):
        checked(broken)


@pytest.mark.parametrize("name", ["DECON_PG_PASSWORD", "DECON_PROJECT", "DECON_CORPUS"])
def test_what_has_no_default_is_asked_for(name):
    others = {"DECON_PG_PASSWORD", "DECON_PROJECT", "DECON_CORPUS"} - {name}
    with pytest.raises(AssertionError, match=f"{name}: set the "):
        composed(**dict.fromkeys(others, "/x"))


def test_the_daemon_and_the_webserver_see_the_same(services):
    daemon, webserver = services["daemon"], services["webserver"]
    for key in ("image", "environment", "volumes", "depends_on"):
        assert daemon[key] == webserver[key], key
    assert daemon["image"] == IMAGE
    assert daemon["command"] == ["daemon"]
    assert webserver["entrypoint"] == ["python", "-m", MODULE]
    assert LOCATION in webserver["command"]


def test_every_variable_is_read_and_what_is_read_is_set(services):
    given = services["daemon"]["environment"]
    read = set(re.findall(r"\{env: (\w+)\}", DAGSTER)) | {CONFIG_VARIABLE, HOME_VARIABLE}
    assert {*given} == read | {EVENT_BATCHES}
    assert EVENT_BATCHES in (DEPLOY / "systemd/decon.env.example").read_text()


def test_the_database_is_the_one_that_the_settings_name(services):
    given, postgres = services["daemon"]["environment"], services["postgres"]
    made = postgres["environment"]
    assert given["DECON_PG_HOST"] in services
    assert given["DECON_PG_DB"] == made["POSTGRES_DB"]
    assert given["DECON_PG_USER"] == made["POSTGRES_USER"]
    assert given["DECON_PG_PASSWORD"] == made["POSTGRES_PASSWORD"] == "p"
    settings = yaml.safe_load(DAGSTER)["storage"]["postgres"]["postgres_db"]
    assert settings["port"] == 5432
    assert "ports" not in postgres  # other machines cannot reach it
    check = postgres["healthcheck"]["test"]
    assert f"--dbname={made['POSTGRES_DB']}" in check
    assert services["daemon"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}


def test_settings_project_corpus_and_store_are_where_they_are_looked_for(services):
    daemon = services["daemon"]
    given = daemon["environment"]
    mounted = {target: (source, mode) for source, target, *mode in map(split, daemon["volumes"])}
    source, mode = mounted[f"{given[HOME_VARIABLE]}/dagster.yaml"]
    assert (DEPLOY / source).read_text() == DAGSTER
    assert mode == ["ro"]
    project = str(Path(given[CONFIG_VARIABLE]).parent)
    assert mounted[project] == ("/srv/project", [])
    assert mounted[f"{project}/.decon"] == ("store", [])
    assert mounted["/srv/corpus"] == ("/srv/shards", ["ro"])
    # The image has these settings, too, and the folders of volumes, which get their owner from it.
    for name in (HOME_VARIABLE, CONFIG_VARIABLE):
        assert f"{name}={given[name]}" in DOCKERFILE
    made = re.search(r"install -d -o decon -g decon (.*)", DOCKERFILE)[1].split()
    assert {project, f"{project}/.decon", "/srv/corpus"} == {*made}


def split(volume):
    return volume.split(":")


def test_the_ui_is_on_loopback_and_every_service_is_watched_and_has_no_privileges(services):
    webserver = services["webserver"]
    port = webserver["command"][webserver["command"].index("-p") + 1]
    assert webserver["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert f"127.0.0.1:{port}/server_info" in " ".join(webserver["healthcheck"]["test"])
    compile(webserver["healthcheck"]["test"][-1], "healthcheck", "exec")
    for service in services.values():
        assert service["healthcheck"]["test"][0] == "CMD"
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]


def test_the_linter_of_dockerfiles_finds_nothing():
    linter = Path(sys.executable).with_name("hadolint")
    command = [str(linter), str(DEPLOY / "Dockerfile")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    bad = DOCKERFILE.replace("USER ${UID}:${UID}", "USER root")
    done = subprocess.run(
        [str(linter), "-"], input=bad, capture_output=True, text=True, check=False
    )
    assert "Last USER should not be root" in done.stdout


def test_only_the_wheel_and_the_lock_file_get_into_the_image():
    copied = [line.split()[1:] for line in DOCKERFILE.splitlines() if line.startswith("COPY")]
    assert [one[0] for one in copied] == ["requirements.lock", "dist/*.whl", "--from=installed"]
    let_in = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    assert let_in == ["*", "!requirements.lock", "!dist/*.whl"]


def test_kernels_are_compiled_by_root_into_a_folder_that_no_volume_hides(services):
    before, after = DOCKERFILE.split("RUN decon-assets warm\n")
    assert "\nUSER" not in before
    assert after.startswith("USER ${UID}")
    folder = re.search(r"NUMBA_CACHE_DIR=(\S+)", before)[1]
    targets = [split(volume)[1] for volume in services["daemon"]["volumes"]]
    assert not [one for one in targets if folder.startswith(one)]


def test_the_image_has_groups_that_exist_and_postgres():
    groups = re.search(r"ARG EXTRAS=(\S+)", DOCKERFILE)[1]
    assert {"postgres"} <= {*groups.split(",")} <= {*PROJECT["optional-dependencies"]}
    assert f"EXTRAS ?= {groups}\n" in (ROOT / "Makefile").read_text()


def test_the_image_is_built_and_runs_as_a_user_without_privileges():
    try:
        docker("info")
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("no builder: `docker info` fails on this machine")
    # The environment of this run is the one that `make setup` would make.
    subprocess.run(["make", "--old-file=.venv/installed", "image"], cwd=ROOT, check=True)
    assert docker("run", "--rm", "--entrypoint", "id", IMAGE, "-u").strip() == "1000"
    assert "scan" in docker("run", "--rm", "--read-only", IMAGE, "--help")
    assert "0 kernels compiled" in docker("run", "--rm", IMAGE, "warm")
    assert "webserver" in docker(
        "run", "--rm", "--entrypoint", "dagster-webserver", IMAGE, "--help"
    )


def docker(*arguments):
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True)
    return done.stdout
