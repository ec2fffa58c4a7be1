"""Build the site: write its pages, and have MkDocs make HTML of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from website.pages import ROOT, write_pages

_SETTINGS = Path(__file__).with_name("mkdocs.yml")
_STYLE = Path(__file__).with_name("site.css")
_PROBLEMS = ("WARNING", "ERROR", "  - ", "Aborted")


class SiteError(Exception):
    """Problems of pages or of the navigation; the site was not built."""


def build_site(out: Path, *, root: Path = ROOT) -> None:
    """Build the site of the repository at `root` into a folder, which is replaced at the end."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix="site-") as folder:
        work = Path(folder)
        if problems := write_pages(work / "docs", root=root):
            raise SiteError("\n".join(problems))
        shutil.copy(_SETTINGS, work)
        shutil.copy(_STYLE, work / "docs")
        # With --quiet, warnings would not count. The theme's notice is about its end of support.
        built = subprocess.run(
            [sys.executable, "-m", "mkdocs", "build", "--strict"],
            cwd=work,
            env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if built.returncode:
            lines = [line for line in built.stdout.splitlines() if line.startswith(_PROBLEMS)]
            raise SiteError("\n".join(lines or [built.stdout]))
        if out.exists():
            shutil.rmtree(out)
        (work / "site").rename(out)
