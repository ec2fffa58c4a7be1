"""Install packages with pip and print the progress: `python install.py PIP LOCK_FILE`.

A terminal shows one updated line, a log a line for every tenth of the packages. The output of pip
is printed only if it fails. Imports only the standard library, as nothing else is installed yet.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

# "Ignoring": the lock file also names packages of other platforms.
_PACKAGE = re.compile(r"(?:Collecting|Ignoring|Requirement already satisfied:) ([\w.\[\]-]+)")
_SIZE = re.compile(r"(?:Downloading|Using cached) \S+ \(([^)]+)\)")
_LINES_AFTER_FAILURE = 40


def main(pip: str, lock_file: str) -> int:
    """Install the packages of the lock file; return the exit code of pip."""
    locked = Path(lock_file).read_text(encoding="utf-8")
    n_packages = len(re.findall(r"(?m)^[\w.-]+(?:\[[^\]]*\])?==", locked))
    command = [pip, "install", "--disable-pip-version-check", "--no-color", "--progress-bar", "off"]
    started = time.monotonic()
    print(f"installing {n_packages} packages into .venv", flush=True)
    output: list[str] = []
    with subprocess.Popen(  # noqa: S603 - the pip of the virtual environment
        [*command, "--require-hashes", "-r", lock_file],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        packages: set[str] = set()
        package = ""
        for line in process.stdout or ():
            output.append(line)
            if collected := _PACKAGE.match(line):
                package = collected[1]
                packages.add(package)
                _show_progress(len(packages), n_packages, package)
            elif size := _SIZE.search(line):
                _show_progress(len(packages), n_packages, f"{package} ({size[1]})", is_new=False)
            elif line.startswith("Installing collected packages"):
                _clear_line()
                print("unpacking them; this takes a minute", flush=True)
    _clear_line()
    if process.returncode:
        sys.stderr.writelines(output[-_LINES_AFTER_FAILURE:])
    else:
        print(f"installed in {time.monotonic() - started:.0f} s", flush=True)
    return process.returncode


def _show_progress(n: int, n_total: int, package: str, *, is_new: bool = True) -> None:
    if sys.stdout.isatty():
        print(f"\r{n} of {n_total}: {package}\x1b[K", end="", flush=True)
    elif is_new and n % max(n_total // 10, 1) == 0:
        print(f"{n} of {n_total}: {package}", flush=True)


def _clear_line() -> None:
    if sys.stdout.isatty():
        print("\r\x1b[K", end="", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
