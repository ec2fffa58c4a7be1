"""Serves the report's page over HTTP on localhost while `decon-assets dev` runs.

Browsers do not follow links from the Dagster UI to local files. So the link in the metadata of
`report_page` points here, also if `decon-assets run` made the page before `dev` was started: each
project has a port of its own for its report, whatever the port of the UI. On a server the link
points to the report folder behind the server's proxy.
"""

from __future__ import annotations

import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zlib import crc32

URL_VARIABLE = "DECON_REPORT_URL"  # the URL of the report's folder

_HOST = "127.0.0.1"
_PORTS = range(20_000, 30_000)  # below those that Linux and Kubernetes give out
_NAMES = ("report.html", "card.md", "summary.json")


def link_to(page: Path) -> str:
    """Return the URL of a page of the report; by default that of `decon-assets dev`."""
    base = os.environ.get(URL_VARIABLE) or f"http://{_HOST}:{_port_of(page.parent)}"
    return f"{base.rstrip('/')}/{page.name}"


def serve_report(folder: Path) -> str:
    """Serve a report folder from a daemon thread and return its URL."""
    handler = partial(_Handler, directory=str(folder))
    try:
        server = ThreadingHTTPServer((_HOST, _port_of(folder)), handler)
    except OSError:  # the port is taken: let the system choose one
        server = ThreadingHTTPServer((_HOST, 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://{_HOST}:{server.server_port}"


def _port_of(folder: Path) -> int:
    """Return the port of a report folder: a link that a run keeps is valid for later servers."""
    return _PORTS[crc32(str(folder.resolve()).encode()) % len(_PORTS)]


class _Handler(SimpleHTTPRequestHandler):
    """Serves the three files of the report, for requests to localhost only."""

    def send_head(self):  # type: ignore[no-untyped-def] # the base class has no types for it
        name = self.headers.get("Host", "").rpartition(":")[0]
        # Against DNS rebinding: a foreign page may let its host name point to this address.
        if name not in (_HOST, "localhost") or self.path.partition("?")[0][1:] not in _NAMES:
            self.send_error(404)
            return None
        return super().send_head()

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - its name there
        """Log nothing: the terminal shows the output of Dagster."""
