"""Install packages with pip, and say how far it is: `python install.py PIP LOCK_FILE`.

On a terminal one line moves; in a log there is a line for every tenth of the packages. What pip
says is printed only if it fails. It runs before anything is installed, so it imports nothing else.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

# "Ignoring" is for other platforms than this one: the lock file names the packages of all.
_PACKAGE = re.compile(r"(?:Collecting|Ignoring|Requirement already satisfied:) ([\w.\[\]-]+)")
_SIZE = re.compile(r"(?:Downloading|Using cached) \S+ \(([^)]+)\)")
_SAID_OF_FAILURE = 40  # lines


def main(pip: str, lock_file: str) -> int:
    """Install what the lock file names; the exit code of pip."""
    locked = Path(lock_file).read_text(encoding="utf-8")
    n_packages = len(re.findall(r"(?m)^[\w.-]+(?:\[[^\]]*\])?==", locked))
    command = [pip, "install", "--disable-pip-version-check", "--no-color", "--progress-bar", "off"]
    started = time.monotonic()
    print(f"installing {n_packages} packages into .venv", flush=True)
    said: list[str] = []
    with subprocess.Popen(  # noqa: S603 - the pip of the virtual environment
        [*command, "--require-hashes", "-r", lock_file],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        seen: set[str] = set()
        package = ""
        for line in process.stdout or ():
            said.append(line)
            if found := _PACKAGE.match(line):
                package = found[1]
                seen.add(package)
                _show(len(seen), n_packages, package)
            elif size := _SIZE.search(line):
                _show(len(seen), n_packages, f"{package} ({size[1]})", is_new=False)
            elif line.startswith("Installing collected packages"):
                _end()
                print("unpacking them; this takes a minute", flush=True)
    _end()
    if process.returncode:
        sys.stderr.writelines(said[-_SAID_OF_FAILURE:])
    else:
        print(f"installed in {time.monotonic() - started:.0f} s", flush=True)
    return process.returncode


def _show(n: int, of: int, what: str, *, is_new: bool = True) -> None:
    if sys.stdout.isatty():
        print(f"\r{n} of {of}: {what}\x1b[K", end="", flush=True)
    elif is_new and n % max(of // 10, 1) == 0:
        print(f"{n} of {of}: {what}", flush=True)


def _end() -> None:
    if sys.stdout.isatty():
        print("\r\x1b[K", end="", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
