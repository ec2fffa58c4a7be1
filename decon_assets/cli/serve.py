"""`decon-assets dev` and `daemon`: Dagster's servers for a configuration."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from decon_assets.terminal.options import ConfigPath, Workers, option
from decon_assets.terminal.output import say
from decon_core.config import CONFIG_VARIABLE
from decon_core.config.load import Config, load_config
from decon_core.execution.choice import ENGINE_VARIABLE
from decon_core.execution.jobs import WORKERS_VARIABLE
from decon_core.storage.store import Store

# Dagster recommends `dg dev` instead, which needs a project that `dg` created; `dagster dev` takes
# a module.
_IGNORE_DG_HINT = "ignore:Function `dev_command` is superseded:FutureWarning"


def dev(
    *,
    port: int = option("port of the UI (default 3000)", "PORT", min=1, max=65535, default=3000),
    workers: Workers = None,
    config: ConfigPath,
) -> int:
    """Start the Dagster UI on 127.0.0.1, with a daemon for its runs and sensors.

    The UI shows runs that were started on the command line, and can start runs itself. It
    has no login. Stop the command with Ctrl-C.

    Examples:
      decon-assets dev
      decon-assets dev --config data/decon.toml --port 3001
    """
    from decon_assets.assets.report_server import URL_VARIABLE, serve_report
    from decon_assets.instance.home import LOCATION
    from decon_assets.runner.supervisor import run_supervised

    loaded = _prepare(config, workers)
    if URL_VARIABLE not in os.environ:
        os.environ[URL_VARIABLE] = serve_report(Store(loaded.store).report.parent)
    command = [
        sys.executable, "-W", _IGNORE_DG_HINT, "-m", "decon_assets.runner.dev",
        "-m", LOCATION, "-h", "127.0.0.1", "-p", str(port),
    ]  # fmt: skip
    say(f"http://127.0.0.1:{port}  (stop with Ctrl-C)")
    return run_supervised(command)


def daemon(*, workers: Workers = None, config: ConfigPath) -> int:
    """Start the Dagster daemon, which handles queued runs, backfills and sensors.

    Use it on a server (docs/deployment.md); `decon-assets dev` already includes a daemon. Runs left
    over from a killed daemon are first marked as failed; Dagster then retries them if it is
    configured to.

    Examples:
      decon-assets daemon --config /srv/corpus/decon.toml
    """
    from decon_assets.instance.home import LOCATION

    _prepare(config, workers)
    program = str(Path(sys.executable).with_name("dagster-daemon"))
    command = [program, "run", "-m", LOCATION]
    os.execv(program, command)  # noqa: S606 - the daemon takes over this process


def export_workers(workers: int | None) -> None:
    """Pass `--workers` to the assets by the environment, as Dagster runs them."""
    if workers:
        os.environ[WORKERS_VARIABLE] = str(workers)


def export_engine(engine: str | None) -> None:
    """Pass `--engine` to the assets by the environment, as Dagster runs them."""
    if engine:
        os.environ[ENGINE_VARIABLE] = engine


def _prepare(config: Path, workers: int | None) -> Config:
    """Prepare Dagster's home, and the environment of a server that reads the configuration."""
    from decon_assets.instance.home import HOME_VARIABLE, ensure_history, ensure_home, home_for
    from decon_assets.runner.daemon import take_over

    loaded = load_config(config)  # report its errors before anything starts
    home = ensure_home(home_for(config))
    ensure_history(home)
    take_over(home, say)
    os.environ[HOME_VARIABLE] = str(home)
    os.environ[CONFIG_VARIABLE] = str(config.resolve())
    export_workers(workers)
    return loaded
