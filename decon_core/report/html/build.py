"""Write the report page as one self-contained HTML file."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from string import Template
from typing import Any

from decon_core.report.html.gather import MOST_PAIRS, Facts, gather
from decon_core.report.html.pairs import chunks, columns
from decon_core.report.html.sections import overview
from decon_core.storage.checksums import seal_page
from decon_core.storage.store import atomic_path

_HERE = Path(__file__).parent
_SCRIPTS = ("data", "texts", "charts", "overview", "verdicts", "pairs", "page")

# Data is base64, so it cannot open or close a script; browsers do not run this script type.
_DATA = '<script type="text/plain" class="data" data-name="{name}">{packed}</script>\n'


def write_page(report: Path, page: Path, *, most_pairs: int = MOST_PAIRS) -> None:
    """Write the page of a report. The same report gives the same bytes."""
    facts = gather(report, most_pairs=most_pairs)
    with atomic_path(page) as draft:
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(_pieces(facts))
        seal_page(draft)


def _pieces(facts: Facts) -> Iterator[str]:
    """Yield the page; texts and the chart library come last, so the list shows before them."""
    script, charting = _script(), _charting_library()
    head = Template(_read("page.html"))
    yield head.substitute(policy=_policy(script, charting), style=_read("page.css"))
    yield _data("run", {name: facts.run.get(name) for name in ("state", "made_by")})
    yield _data("overview", asdict(overview(facts)))
    yield _data("columns", columns(facts))
    yield f"<script>{script}</script>\n"
    for number, chunk in enumerate(chunks(facts)):
        yield _data(f"texts-{number}", chunk)
    yield _packed("charting", charting)
    yield "</body>\n</html>\n"


def _policy(*scripts: str) -> str:
    """Return the content security policy: only these scripts, no network requests.

    Plotly needs inline styles, and data URLs for the images of heat maps.
    """
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(script: str) -> str:
    return b64encode(sha256(script.encode()).digest()).decode()


def _script() -> str:
    body = "\n".join(_read(f"{name}.js") for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{body}\n}})();'


def _charting_library() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _data(name: str, value: Any) -> str:
    return _packed(name, json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _packed(name: str, text: str) -> str:
    packed = gzip.compress(text.encode(), compresslevel=6, mtime=0)
    return _DATA.format(name=name, packed=b64encode(packed).decode())
