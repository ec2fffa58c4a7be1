"""The sample world, finished, behind the Dagster UI as a user starts it; and a browser to look."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page, Request, expect, sync_playwright

from decon_assets.instance.home import ensure_home
from decon_core.config.load import Config, load_config
from decon_core.storage.store import Store
from tests.core.report.report_worlds import write_world
from tests.finished_world import copy_finished_world
from tests.ui.report_pages import Open, go, open_page, watched
from tests.waiting import wait_until

DATA = Path(__file__).parents[2] / "data"
BIN = Path(sys.executable).parent

NO_CHROMIUM = (
    "the pages of the Dagster UI and of the report were not looked at, as no Chromium is "
    "installed: `apt-get install chromium` (Debian; elsewhere Chromium or Chrome on the PATH), "
    "then test again"
)

# A shared machine of two cores may be very slow, and waiting ends as soon as the content is there.
PATIENCE_SECONDS = 300


def find_chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave browser tests out where there is no browser, with the reason in the summary."""
    if find_chromium() or os.environ.get("DECON_REQUIRE_BROWSER"):
        return
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.skip(reason=NO_CHROMIUM))


@pytest.fixture(scope="session")
def chromium() -> str:
    found = find_chromium()
    if found is None:
        pytest.fail(f"DECON_REQUIRE_BROWSER is set, but {NO_CHROMIUM}", pytrace=False)
    return found


@dataclass(frozen=True)
class Site:
    """A running UI, and what lies behind it."""

    url: str
    home: Path
    config_path: Path
    log: Path

    @property
    def config(self) -> Config:
        return load_config(self.config_path)

    @property
    def store(self) -> Store:
        return Store(self.config.store)


@pytest.fixture(scope="module")
def site(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The finished sample world, and `decon-assets dev` on it."""
    folder = tmp_path_factory.mktemp("site")
    config_path = copy_finished_world(folder)
    with served(folder, config_path) as site:
        yield site


def copy_of_the_world(folder: Path) -> Path:
    """The sample world as it is before anything was made of it; its configuration."""
    ignored = shutil.ignore_patterns(".d*", "__pycache__")
    return Path(shutil.copytree(DATA, folder / "data", ignore=ignored)) / "decon.toml"


def environment_of(folder: Path, config_path: Path) -> dict[str, str]:
    home = ensure_home(folder / "home")
    return {**os.environ, "DAGSTER_HOME": str(home), "DECON_CONFIG": str(config_path)}


@contextmanager
def served(folder: Path, config_path: Path) -> Iterator[Site]:
    """A world behind the UI, as `decon-assets dev` starts it."""
    environment = environment_of(folder, config_path)
    home = Path(environment["DAGSTER_HOME"])
    port = _free_port()
    site = Site(f"http://127.0.0.1:{port}", home, config_path, folder / "dev.log")
    command = [str(BIN / "decon-assets"), "dev", "--port", str(port)]
    with _running(command, environment, folder, site.log) as process:
        _wait_until_it_answers(site, process)
        yield site


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _running(
    command: list[str], environment: dict[str, str], folder: Path, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A process with a group of its own, which is gone afterwards with all its children.

    It is stopped as with Ctrl-C. A shell that runs us in the background ignores SIGINT, which
    children inherit; a handler, in contrast, becomes the default in them.
    """
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with log.open("wb") as file:
            process = subprocess.Popen(
                command,
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
    finally:
        signal.signal(signal.SIGINT, ours)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=120)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_until_it_answers(site: Site, process: subprocess.Popen[bytes]) -> None:
    def answers() -> bool:
        with suppress(OSError):
            urllib.request.urlopen(f"{site.url}/server_info", timeout=60).close()
            return True
        return False

    if not wait_until(answers, process):
        said = site.log.read_text()
        pytest.fail(f"the UI did not start; {site.log} says:\n{said}", pytrace=False)


# Not for the whole session: while Playwright runs, an event loop runs in this thread, and a test
# elsewhere that starts its own would fail.
@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        arguments = [
            "--no-sandbox",  # containers and CI run as root
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ]
        launched = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a small made-up world."""
    return write_world(tmp_path_factory.mktemp("world") / "report.duckdb")


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens the page of a report. In the end, it may have asked for nothing, and nothing failed."""
    with watched(browser) as new_context:

        def show(report: Path, place: str = "", **options: Any) -> Page:
            return open_page(new_context(**options), report, tmp_path / "report.html", place)

        yield show


@pytest.fixture(scope="module")
def opened(browser: Browser, report: Path) -> Iterator[Page]:
    """One page for all tests of a file that only read it."""
    with watched(browser) as new_context:
        yield open_page(new_context(), report, report.with_name("report.html"))


@pytest.fixture
def at(opened: Page) -> Callable[[str], Page]:
    """Follows a link in the page that tests share."""

    def at(place: str) -> Page:
        go(opened, place)
        return opened

    return at


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    """A page of the UI, of a size that fits a README. In the end, nothing may have gone wrong."""
    expect.set_options(timeout=PATIENCE_SECONDS * 1000)
    context = browser.new_context(
        base_url=site.url,
        viewport={"width": 1120, "height": 520},
        device_scale_factor=1.5,
        timezone_id="UTC",
        locale="en-US",
    )
    context.set_default_timeout(PATIENCE_SECONDS * 1000)
    context.add_init_script("localStorage.setItem('dagster-nav-collapsed', 'true')")
    problems: list[str] = []

    def look_at_request(request: Request) -> None:
        # The page of the report has a port of its own.
        if request.url.startswith("http") and not request.url.startswith("http://127.0.0.1:"):
            problems.append(f"asked elsewhere: {request.url}")

    def look_at_answer(request: Request) -> None:
        if request.url.startswith(f"{site.url}/graphql"):
            with suppress(Error):  # the page has gone on, and its answers with it
                answer = request.response()
                text = answer.text() if answer else "{}"
                if '"PythonError"' in text or json.loads(text).get("errors"):
                    problems.append(text)

    context.on("request", look_at_request)
    context.on("requestfinished", look_at_answer)
    opened = context.new_page()
    opened.on("pageerror", lambda error: problems.append(str(error)))
    yield opened
    context.close()
    assert problems == []


@pytest.fixture
def keep() -> Callable[[Page, str], None]:
    """Keeps a picture for the README, where DECON_KEEP_SCREENSHOTS names a folder."""
    folder = os.environ.get("DECON_KEEP_SCREENSHOTS")

    def screenshot(page: Page, name: str) -> None:
        if folder:
            page.mouse.move(500, 0)  # no tooltips
            page.screenshot(path=Path(folder) / name, animations="disabled")

    return screenshot
