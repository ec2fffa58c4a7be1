"""Serves the report's page over HTTP on localhost while `decon-assets dev` runs.

Browsers do not follow links from the Dagster UI to local files. So the link in the metadata of
`report_page` points here, also if `decon-assets run` made the page before `dev` was started; on a
server it points to the report folder behind the server's proxy.
"""

from __future__ import annotations

import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

URL_VARIABLE = "DECON_REPORT_URL"  # the URL of the report's folder
UI_PORT = 3000  # the default of `decon-assets dev`

_HOST = "127.0.0.1"
_PORT_OFFSET = 90  # added to the port of the UI
_NAMES = ("report.html", "card.md", "summary.json")


def link_to(page: Path) -> str:
    """Return the URL of a page of the report; by default that of `decon-assets dev`.

    The link is kept with the run: with another `--port`, or the UI of another project at the
    default one, a page that `decon-assets run` made is not behind it.
    """
    base = os.environ.get(URL_VARIABLE) or f"http://{_HOST}:{UI_PORT + _PORT_OFFSET}"
    return f"{base.rstrip('/')}/{page.name}"


def serve_report(folder: Path, *, port: int) -> str:
    """Serve a report folder from a daemon thread and return its URL; `port` is that of the UI."""
    handler = partial(_Handler, directory=str(folder))
    try:
        server = ThreadingHTTPServer((_HOST, port + _PORT_OFFSET), handler)
    except OSError:  # the port is taken: let the system choose one
        server = ThreadingHTTPServer((_HOST, 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://{_HOST}:{server.server_port}"


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
