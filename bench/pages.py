"""Measures how long pages of the Dagster UI and the report take to open in Chromium."""

from __future__ import annotations

import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_PATIENCE_SECONDS = 60.0
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def why_no_pages() -> str | None:
    """Return why pages cannot be opened; None if they can."""
    try:
        import playwright.sync_api  # noqa: F401 - only whether it is there
    except ImportError:
        return "Playwright is not installed"
    return None if _chromium() else "no Chromium is on the PATH"


def seconds_until_shown(
    pages: Mapping[str, tuple[str, str]], environment: Mapping[str, str], log: Path
) -> dict[str, tuple[float, float]]:
    """Measure pages, given by name as a path and a text to wait for: the first time and again."""
    from playwright.sync_api import sync_playwright

    with _webserver(environment, log) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=_chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        found = {}
        for name, (path, text) in pages.items():
            first, again = (_seconds(browser, f"{url}{path}", f"text={text}") for _ in range(2))
            found[name] = (first, again)
        browser.close()
    return found


def seconds_to_open(page: Path, views: Mapping[str, str]) -> dict[str, float]:
    """Measure views of a report page, given by address and a selector to wait for."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium(), args=["--no-sandbox"])
        found = {
            view: _seconds(browser, f"{page.as_uri()}#{view}", awaited)
            for view, awaited in views.items()
        }
        browser.close()
    return found


def _seconds(browser: Browser, url: str, awaited: str) -> float:
    """Measure a page in a new browser context; infinite if the selector does not appear.

    A page that fails must not take with it what was measured for half an hour.
    """
    from playwright.sync_api import Error

    context = browser.new_context(viewport={"width": 1400, "height": 800})
    started = time.monotonic()
    try:
        page = context.new_page()
        page.goto(url, wait_until="commit")
        page.locator(awaited).first.wait_for(timeout=_PATIENCE_SECONDS * 1000)
    except Error:
        return math.inf
    finally:
        context.close()
    return time.monotonic() - started


def _chromium() -> str | None:
    return next(filter(None, map(shutil.which, _NAMES)), None)


@contextmanager
def _webserver(environment: Mapping[str, str], log: Path) -> Iterator[str]:
    """Run the UI, read-only, on a free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [
        str(Path(sys.executable).with_name("dagster-webserver")),
        *("-m", "decon_assets.definitions", "-h", "127.0.0.1", "-p", str(port), "--read-only"),
    ]
    with log.open("wb") as file:
        process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait(f"http://127.0.0.1:{port}", process, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError):
            urllib.request.urlopen(f"{url}/server_info", timeout=5).close()  # noqa: S310 - loopback
            return
        time.sleep(0.2)
    raise RuntimeError(f"the UI did not start; {log} says why")
