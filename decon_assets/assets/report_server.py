"""The report's page over HTTP, on this machine only, while `decon-assets dev` runs.

A browser that shows the Dagster UI refuses to follow a link to a file. So the link in the metadata
of `report_page` leads here; on a server, to where its proxy serves the folder of the report.
"""

from __future__ import annotations

import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

URL_VARIABLE = "DECON_REPORT_URL"  # the address of the folder that the report is in

_HOST = "127.0.0.1"
_AWAY = 90  # from the port of the UI
_NAMES = ("report.html", "card.md", "summary.json")


def link_to(page: Path) -> str:
    """Where a browser finds a page of the report."""
    served = os.environ.get(URL_VARIABLE)
    return f"{served.rstrip('/')}/{page.name}" if served else page.resolve().as_uri()


def serve_report(folder: Path, *, port: int) -> str:
    """Serve a folder's report from a thread, until this process ends; its address."""
    server = _bound(folder, port + _AWAY)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://{_HOST}:{server.server_port}"


def _bound(folder: Path, port: int) -> ThreadingHTTPServer:
    handler = partial(_Handler, directory=str(folder))
    try:
        return ThreadingHTTPServer((_HOST, port), handler)
    except OSError:  # somebody else's
        return ThreadingHTTPServer((_HOST, 0), handler)


class _Handler(SimpleHTTPRequestHandler):
    """Three files, to whoever asks for them by this machine's own name."""

    def send_head(self):  # type: ignore[no-untyped-def] # the base class has no types for it
        name = self.headers.get("Host", "").rpartition(":")[0]
        # Another name may be one that a page elsewhere made point here, to read along.
        if name not in (_HOST, "localhost") or self.path.partition("?")[0][1:] not in _NAMES:
            self.send_error(404)
            return None
        return super().send_head()

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - its name there
        """Nothing: the terminal belongs to Dagster."""
