"""Where there is no Chromium: a user is told what was left out, and CI is not green."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_without_chromium(*, is_required: bool) -> subprocess.CompletedProcess[str]:
    """The browser tests with nothing on the PATH but our own programs."""
    environment = {**os.environ, "PATH": str(Path(sys.executable).parent)}
    environment["DECON_WHOLE_SESSION"] = "1"  # which is left out for a reason of its own
    environment.pop("DECON_REQUIRE_BROWSER", None)
    if is_required:
        environment["DECON_REQUIRE_BROWSER"] = "1"
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "browser", "-p", "no:cacheprovider", "tests/ui"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_pages_are_left_out_and_the_summary_says_why_and_how_to_get_them():
    result = run_without_chromium(is_required=False)
    assert result.returncode == 0, result.stdout
    skipped = [line for line in result.stdout.splitlines() if line.startswith("SKIPPED")]
    (reason,) = {line.split(": ", 1)[1] for line in skipped}
    for part in (
        "of the Dagster UI",
        "of the report",
        "no Chromium is installed",
        "apt-get install",
    ):
        assert part in reason


def test_pages_left_out_are_a_failure_where_a_browser_is_required():
    result = run_without_chromium(is_required=True)
    assert result.returncode == 1
    assert "DECON_REQUIRE_BROWSER is set, but" in result.stdout
    assert "apt-get install chromium" in result.stdout
    assert "passed" not in result.stdout.splitlines()[-1]
    assert "skipped" not in result.stdout.splitlines()[-1]
