"""`python -m bench.closure`: the modules and lines of this project that importing a module loads.

Each module is imported in a separate process. Without arguments: the settings, the scanner, the
report and the code location, and the number of lines of each package. `--against FOLDER` compares
the numbers with those of another checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

_MODULES = (
    "decon_core.config.load",
    "decon_core.scan.scanner",
    "decon_core.report.build",
    "decon_assets.definitions",
)
_PACKAGES = ("decon_core", "decon_assets")
_LOADED = """
import importlib, json, sys
importlib.import_module(sys.argv[1])
own = [one for name, one in sys.modules.items() if name.split(".")[0] in sys.argv[2:]]
print(json.dumps(sorted(one.__file__ for one in own if one.__file__)))
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="*", default=_MODULES, help="modules to import")
    parser.add_argument("--against", type=Path, help="another checkout")
    options = parser.parse_args(arguments)
    checkouts = [*filter(None, [options.against]), Path(__file__).parents[1]]
    for name in options.modules:
        counts = [_loaded(name, folder) for folder in checkouts]
        print(f"{name:30}", " -> ".join(f"{n:4} modules, {lines:6,} lines" for n, lines in counts))
    rooms = [_lines_by_room(folder) for folder in checkouts]
    for room in sorted({*rooms[0], *rooms[-1]}):
        print(f"{room:40}", " -> ".join(f"{one[room]:7,}" for one in rooms))
    print(f"{'all':40}", " -> ".join(f"{one.total():7,}" for one in rooms))


def _loaded(name: str, folder: Path) -> tuple[int, int]:
    """Return how many modules of this project an import loads, and their lines."""
    done = subprocess.run(
        [sys.executable, "-c", _LOADED, name, *_PACKAGES],
        env={**os.environ, "PYTHONPATH": str(folder)},
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    files = [Path(file) for file in json.loads(done.stdout)]
    return len(files), sum(map(_n_lines, files))


def _lines_by_room(folder: Path) -> Counter[str]:
    lines = Counter[str]()
    for package in _PACKAGES:
        for file in (folder / package).rglob("*.py"):
            parts = file.relative_to(folder).parts[:-1]
            is_feature = "features" in parts
            lines["/".join(parts[: 3 if is_feature else 2])] += _n_lines(file)
    return lines


def _n_lines(file: Path) -> int:
    return file.read_text(encoding="utf-8").count("\n")


if __name__ == "__main__":
    main()
