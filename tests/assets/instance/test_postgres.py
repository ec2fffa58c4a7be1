"""With Postgres everything is as with SQLite; and what deploy/ holds is what is meant.

A cluster of its own is made for these tests, on loopback, where Postgres is installed.
"""

import os
import pwd
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from dagster import AssetKey, DagsterInstance

from decon_assets.cli.main import main
from decon_assets.instance.home import ensure_home
from decon_assets.runner.webserver import HOSTS_VARIABLE, MODULE
from tests.assets.ticks import Daemon
from tests.long_runs import only_in_long_runs
from tests.scan_result_files import as_read

DEPLOY = Path(__file__).parents[3] / "deploy"
NO_POSTGRES = (
    "nothing was tried with Postgres: it is not installed (Debian: apt-get install postgresql), or "
    "dagster-postgres is not"
)


def find_program(name: str) -> str | None:
    """Debian keeps these out of the PATH."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(map(str, places)))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def postgres(tmp_path_factory) -> Iterator[dict[str, str]]:
    """A cluster with a database `decon`; what its address is called in the environment."""
    if not (find_program("initdb") and find_program("pg_ctl")):
        pytest.skip(NO_POSTGRES)
    pytest.importorskip("dagster_postgres", reason=NO_POSTGRES)
    folder = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    port, password = free_port(), folder / "password"
    password.write_text("a secret: with / and @")
    owner = give_away(folder)
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    made = ["-D", str(folder / "data"), "-U", "decon", "--auth=md5", "-E", "UTF8"]
    run_as(owner, find_program("initdb"), *made, f"--pwfile={password}", "--locale=C")
    ctl = [find_program("pg_ctl"), "-D", str(folder / "data")]
    run_as(owner, *ctl, "-w", "-l", str(folder / "log"), "-o", options, "start")
    address = {"HOST": "127.0.0.1", "DB": "postgres", "USER": "decon"}
    found = {f"DECON_PG_{name}": value for name, value in address.items()}
    try:
        yield {**found, "DECON_PG_PASSWORD": password.read_text(), "port": str(port)}
    finally:
        run_as(owner, *ctl, "-m", "immediate", "stop")
        shutil.rmtree(folder)


def give_away(folder: Path) -> str | None:
    """Postgres refuses to be root: then somebody else owns its files."""
    if os.geteuid() != 0:
        return None
    owner = next((name for name in ("postgres", "nobody") if has_user(name)), None)
    subprocess.run(["chown", "-R", str(owner), folder], check=True)
    return owner


def has_user(name: str) -> bool:
    return name in {user.pw_name for user in pwd.getpwall()}


def run_as(owner: str | None, *command: str) -> None:
    subprocess.run(command, user=owner, check=True, stdout=subprocess.DEVNULL, cwd="/")


@pytest.fixture
def in_postgres(world, postgres, tmp_path_factory, monkeypatch):
    """The world with the settings of deploy/, as the current folder."""
    home = tmp_path_factory.mktemp("in-postgres")
    settings = (DEPLOY / "dagster-postgres.yaml").read_text()
    (home / "dagster.yaml").write_text(settings.replace("5432", postgres["port"]))
    for name, value in {**postgres, "DAGSTER_HOME": str(home)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(world.folder)
    world.write_config()
    return world


def scanned_partitions(instance: DagsterInstance) -> set[str]:
    """The partitions of the grid that Dagster knows as scanned."""
    return set(instance.get_materialized_partitions(AssetKey("scan")))


@pytest.mark.postgres
def test_run_and_backfill_do_the_same_with_postgres_as_with_sqlite(in_postgres, capsys):
    world = in_postgres
    assert main(["run"]) == 0
    before = world.scan_results()
    assert main(["backfill", "--missing"]) == 0
    assert main(["status"]) == 0
    assert world.scan_results() == before
    world.add_benchmark("orchard")
    assert main(["backfill", "--benchmark", "orchard"]) == 0
    said = capsys.readouterr().out
    assert "nothing is missing" in said
    assert "secret" not in said
    with DagsterInstance.get() as instance:
        partitions = scanned_partitions(instance)
    assert len(partitions) == 9

    # The world's own history is in SQLite.
    results = as_read(world.scan_results())
    shutil.rmtree(world.store.root)
    world.run(until="scan")
    assert as_read(world.scan_results()) == results
    assert scanned_partitions(world.instance) == partitions


@only_in_long_runs("run and backfill use the same storage")
@pytest.mark.postgres
def test_the_sensor_brings_a_new_benchmarks_column_with_postgres(in_postgres):
    with DagsterInstance.get() as instance:
        daemon = Daemon(in_postgres, instance)
        stages = [daemon.tick() for _ in range(6)]
        assert stages[-1] == ["scan"]
        in_postgres.add_benchmark("orchard")
        asked = [daemon.tick() for _ in range(5)]
        partitions = set(instance.get_materialized_partitions(AssetKey("scan")))
    assert asked[1:] == [["inventory"], ["records"], ["index"], ["scan"]]
    assert {key.split("|")[0] for key in partitions} == {"harbor", "ledger", "orchard"}


def test_the_settings_for_postgres_in_deploy_differ_only_in_the_storage(tmp_path):
    written = (ensure_home(tmp_path) / "dagster.yaml").read_text()
    shipped = yaml.safe_load((DEPLOY / "dagster-postgres.yaml").read_text())
    storage = shipped.pop("storage")["postgres"]["postgres_db"]
    assert shipped == yaml.safe_load(written)
    assert storage["password"] == {"env": "DECON_PG_PASSWORD"}


def test_no_unit_listens_anywhere_but_on_loopback_and_what_others_reach_changes_nothing():
    units = {path.name: path.read_text() for path in (DEPLOY / "systemd").glob("*.service")}
    servers = {name: text for name, text in units.items() if "webserver" in name}
    assert all("-h 127.0.0.1 " in text for text in servers.values())
    proxied = [name for name, text in servers.items() if " -p 3001" in text]
    assert proxied == ["decon-webserver-read-only.service"]
    assert "--read-only" in units[proxied[0]]
    assert "proxy_pass http://127.0.0.1:3001" in (DEPLOY / "nginx" / "decon.conf").read_text()
    assert ":3000" not in (DEPLOY / "nginx" / "decon.conf").read_text()


def test_what_is_reached_by_a_browser_refuses_pages_of_other_sites():
    units = [path.read_text() for path in (DEPLOY / "systemd").glob("*webserver*.service")]
    assert len(units) == 2
    assert all(f"/python -m {MODULE} -m " in text for text in units)
    proxy = (DEPLOY / "nginx" / "decon.conf").read_text()
    assert "proxy_set_header Host $http_host;" in proxy  # with the port, as an Origin has it
    assert "proxy_set_header Origin" not in proxy
    (name,) = {*re.findall(r"server_name (\S+);", proxy)}
    assert f"{HOSTS_VARIABLE}={name}" in (DEPLOY / "systemd" / "decon.env.example").read_text()
