"""Install the packages of a lock file: `python install.py PYTHON LOCK_FILE`.

uv, itself a package of the lock file, takes a fifth of the time that pip takes. pip installs uv,
and where uv fails all packages. Imports only the standard library, as nothing is installed yet.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# uv does not read the configuration of pip: where it finds packages is passed on.
_UV_VARIABLES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
}
_PACKAGE = re.compile(r"(?m)^([\w.-]+)(?:\[[^\]]*\])?==(?:.*\\\n)*.*\n?")


def main(python: str, lock_file: str) -> int:
    """Install the packages of the lock file; return the exit code."""
    locked = {match[1]: match[0] for match in _PACKAGE.finditer(Path(lock_file).read_text("utf-8"))}
    print(f"installing {len(locked)} packages into {Path(python).parents[1]}", flush=True)
    started = time.monotonic()
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    code = _install_with_uv(python, pip, lock_file, locked.get("uv", ""))
    if code:
        print("uv failed: pip installs them, which takes longer", flush=True)
        code = subprocess.call([*pip, "install", "--require-hashes", "-r", lock_file])
    if not code:
        print(f"installed in {time.monotonic() - started:.0f} s", flush=True)
    return code


def _install_with_uv(python: str, pip: list[str], lock_file: str, uv: str) -> int:
    """Install uv as it is locked, and then all packages; return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        only_uv = Path(folder) / "uv.lock"
        only_uv.write_text(uv, encoding="utf-8")
        command = [*pip, "install", "--quiet", "--require-hashes", "-r", str(only_uv)]
        if code := subprocess.call(command):
            return code
    # Without bytecode, which pip makes: compiling all modules takes ten times as long as installing
    # them, and few are ever imported.
    command = [python, "-m", "uv", "pip", "install", "--python", python, "--require-hashes"]
    if not sys.stderr.isatty():  # there it shows its progress
        command.append("--quiet")
    return subprocess.call([*command, "-r", lock_file], env=os.environ | _settings_of_pip(pip))


def _settings_of_pip(pip: list[str]) -> dict[str, str]:
    """Return the variables of uv that say what pip is configured to."""
    listed = subprocess.run([*pip, "config", "list"], capture_output=True, text=True, check=False)
    found = re.findall(r"(?m)^[\w:]+\.([\w-]+)='(.*)'$", listed.stdout)
    return {
        variable: " ".join(value.split("\\n")).strip()
        for name, value in found
        if (variable := _UV_VARIABLES.get(name)) and variable not in os.environ
    }


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
