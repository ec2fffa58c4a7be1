"""`decon-assets daemon`: Dagster's daemon for queued runs, backfills and sensors, on a server."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from decon_assets.cli.command import Command, Say, add_config, add_workers
from decon_core.config.load import load_config
from decon_core.config.location import CONFIG_VARIABLE
from decon_core.scan.workers import WORKERS_VARIABLE

DESCRIPTION = """\
Run Dagster's daemon for this configuration: queued runs, backfills, sensors. `decon-assets dev`
starts its own; this command is for servers (docs/deployment.md). Runs left over from a daemon that
was killed are marked as failed first, so that Dagster retries them if the settings say so.
"""


def daemon(options: argparse.Namespace, say: Say) -> int:
    from decon_assets.instance.home import HOME_VARIABLE, ensure_history, ensure_home, home_for
    from decon_assets.runner.daemon import take_over

    load_config(options.config)  # report its errors before anything starts
    home = ensure_home(home_for(options.config))
    ensure_history(home)
    take_over(home, say)
    os.environ[CONFIG_VARIABLE] = str(options.config.resolve())
    if options.workers:
        os.environ[WORKERS_VARIABLE] = str(options.workers)
    os.environ[HOME_VARIABLE] = str(home)
    program = Path(sys.executable).with_name("dagster-daemon")
    command = [str(program), "run", "-m", "decon_assets.definitions"]
    os.execv(program, command)  # noqa: S606 - the daemon takes over this process


COMMAND = Command(daemon, (add_workers, add_config), DESCRIPTION)
