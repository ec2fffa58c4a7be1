"""`python -m website`: build the site strictly, into build/site."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from website.build import SiteError, build_site


def _build(
    out: Annotated[Path, typer.Option(help="folder of the site; replaced if it exists")] = Path(
        "build/site"
    ),
) -> None:
    """Build the site from the pages of the repository and from the code.

    Links to missing files or headings, and pages that are missing from the navigation, are errors.
    They are listed, and the existing site is kept.
    """
    try:
        build_site(out)
    except SiteError as error:
        sys.exit(f"{error}\nthe site was not built")
    typer.echo(f"{out / 'index.html'}; with search: python -m http.server --directory {out}")


if __name__ == "__main__":
    typer.run(_build)
