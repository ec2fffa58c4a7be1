"""Write the report page as one self-contained HTML file."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from decon_core.report.html.gather import MOST_TEXTS, Facts, gather
from decon_core.report.html.matched_texts import chunks, columns, documents
from decon_core.report.html.opening import Scanned
from decon_core.report.html.sections import overview
from decon_core.report.page_additions import Addition, key_of
from decon_core.storage.checksums import seal_page
from decon_core.storage.files import atomic_path
from decon_core.wording import pieces

_HERE = Path(__file__).parent
_SCRIPTS_HERE = _HERE / "scripts"

# The order matters: constants of a script may use the scripts before it.
_SCRIPTS = (
    "data",
    "texts",
    "charts",
    "points",
    "places",
    "csv",
    "overview",
    "verdicts",
    "filter",
    "rows",
    "matched_texts",
    "matched_text",
    "documents",
    "keys",
    "page",
)


def write_page(
    report: Path,
    page: Path,
    *,
    most_texts: int = MOST_TEXTS,
    additions: Sequence[Addition] = (),
    scanned: Scanned | None = None,
) -> Facts:
    """Write the page of a report, and return what it shows.

    The same report and additions give the same bytes.
    `scanned`: the scan of a folder that made the report, for the commands on the page.
    """
    facts = gather(report, most_texts=most_texts)
    first = {
        "run": {name: facts.run.get(name) for name in ("state", "made_by")},
        "overview": overview(
            facts, [addition.section() for addition in additions], scanned=scanned
        ),
        "columns": columns(facts),
    }
    body = "\n".join((_SCRIPTS_HERE / f"{name}.js").read_text("utf-8") for name in _SCRIPTS)
    script = f'(() => {{\n"use strict";\n{body}\n}})();'
    charting, digest_of_charting = _charting()
    with atomic_path(page) as draft:
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(
                pieces(
                    "report/html/page.html.j2",
                    policy=_policy(_digest(script.encode()), digest_of_charting),
                    additions=key_of(additions),
                    style=(_HERE / "page.css").read_text(encoding="utf-8"),
                    script=script,
                    overview=[(name, _packed(value)) for name, value in first.items()],
                    details=_details(facts, charting),
                )
            )
        seal_page(draft)
    return facts


def _policy(*digests: str) -> str:
    """Return the content security policy: only scripts with these digests, no network requests.

    Plotly needs inline styles, and data URLs for the images of heat maps.
    """
    hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(script: bytes) -> str:
    return b64encode(sha256(script).digest()).decode()


@cache
def _charting() -> tuple[str, str]:
    """Return the script of Plotly, compressed, and the digest of it as it is.

    Its Python package would bring 64 MB for this file, so the wheel has it (`make charting`).
    """
    packed, digest = _HERE / "plotly.min.js.gz", _HERE / "plotly.min.js.sha256"
    return b64encode(packed.read_bytes()).decode(), digest.read_text(encoding="ascii").strip()


def _details(facts: Facts, charting: str) -> Iterator[tuple[str, str]]:
    for number, chunk in enumerate(chunks(facts)):
        yield f"texts-{number}", _packed(chunk)
    yield "documents", _packed(documents(facts))
    yield "charting", charting


def _packed(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return b64encode(gzip.compress(text.encode(), compresslevel=6, mtime=0)).decode()
