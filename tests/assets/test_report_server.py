"""The page of the report, for a browser that follows a link in the UI."""

import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from decon_assets.assets.report_server import URL_VARIABLE, link_to, serve_report
from tests.waiting import wait_until

_PARENT = """
import sys, time
from pathlib import Path
from decon_assets.assets.report_server import serve_report
print(serve_report(Path(sys.argv[1])), flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def served(tmp_path):
    for name in ("report.html", "card.md", "contamination.duckdb"):
        (tmp_path / name).write_text(f"this is {name}")
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        yield parent, parent.stdout.readline().strip()
        parent.kill()


def fetch(url, host=None):
    request = urllib.request.Request(url, headers={"Host": host} if host else {})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return answer.read().decode()


def test_the_page_is_served_and_nothing_that_is_not_meant_for_a_browser(served):
    _, address = served
    assert fetch(f"{address}/report.html") == "this is report.html"
    assert fetch(f"{address}/card.md?x=1") == "this is card.md"
    for path in ("/", "/contamination.duckdb", "/summary.json", "/../report.html", "/%2e%2e/x"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            fetch(address + path)


def test_whoever_calls_this_machine_by_another_name_gets_nothing(served):
    _, address = served
    with pytest.raises(urllib.error.HTTPError, match="404"):
        fetch(f"{address}/report.html", host="evil.example:3090")
    assert fetch(f"{address}/report.html", host="localhost:3090")


def test_it_ends_when_its_process_is_killed(served):
    parent, address = served
    assert fetch(f"{address}/report.html")
    parent.kill()

    def is_gone():
        try:
            fetch(f"{address}/report.html")
        except (OSError, urllib.error.URLError):
            return True
        return False

    assert wait_until(is_gone)


def test_a_link_leads_to_where_the_report_is_served(served, tmp_path, monkeypatch):
    """Also a link made by `decon-assets run`, before any server was started."""
    _, address = served
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    assert link_to(tmp_path / "report.html") == f"{address}/report.html"
    assert link_to(tmp_path / "other" / "report.html") != link_to(tmp_path / "report.html")
    monkeypatch.setenv(URL_VARIABLE, "https://decon.example.org/report/")
    assert link_to(tmp_path / "report.html") == "https://decon.example.org/report/report.html"


def test_two_servers_of_a_report_both_serve_it(served, tmp_path):
    _, address = served
    assert serve_report(tmp_path) != address
    assert fetch(f"{address}/report.html")
