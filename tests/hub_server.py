"""A server that answers like the Hugging Face hub, for a folder `root/ORG/NAME/...` of data sets.

Commands read it with `HF_ENDPOINT`, so that they take the way that they take to the hub itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

COMMIT = "c0ffee" + 34 * "0"
_API = re.compile(r"/api/datasets/([^/]+/[^/]+)(?:/(revision|tree|paths-info)/([^/]+)(/.*)?)?")
_RESOLVE = re.compile(r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
_CONTENT = "/content/"  # files are served here, after a redirect, as on the hub's storage
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


@dataclass
class Hub:
    """The folder that is served, the failures to come, and what was asked for."""

    root: Path
    endpoint: str = ""
    gated: set[str] = field(default_factory=set)  # data sets that answer 401, or 403 with a token
    revisions: set[str] = field(default_factory=lambda: {"main", COMMIT})
    too_many: int = 0  # next requests for file content that are answered with 429
    cut: int = 0  # next requests for file content whose connection ends in the middle
    truncated: set[str] = field(default_factory=set)  # file names of which half arrives as a whole
    n_bytes: Counter[str] = field(default_factory=Counter)  # sent, by file name

    def file(self, repository: str, name: str) -> Path:
        return self.root / repository / name

    def entry(self, repository: str, path: Path) -> dict[str, object]:
        """Describe a file or folder as the hub's listing does."""
        name = path.relative_to(self.root / repository).as_posix()
        if path.is_dir():
            oid = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()
            return {"type": "directory", "oid": oid, "size": 0, "path": name}
        content = path.read_bytes()
        oid = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
        return {"type": "file", "oid": oid.hexdigest(), "size": len(content), "path": name}


@contextmanager
def serving(root: Path) -> Iterator[Hub]:
    """Serve a folder on a free port of this machine until the block ends."""
    hub = Hub(root)
    handler = type("Handler", (_Handler,), {"hub": hub})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        hub.endpoint = f"http://127.0.0.1:{server.server_port}"
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield hub
        finally:
            server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if path.startswith(_CONTENT):
            self._content(path.removeprefix(_CONTENT))
        elif match := _RESOLVE.fullmatch(path):
            self._resolve(*match.groups())
        elif match := _API.fullmatch(path):
            self._describe(*match.groups(default=""))
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "", "no such page")

    do_HEAD = do_GET  # noqa: N815 - the name that the base class calls

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        repository, _, revision, _ = _API.fullmatch(unquote(self.path)).groups()
        if self._is_refused(repository, revision):
            return
        names = [unquote(part.partition("=")[2]) for part in body.split("&") if "paths=" in part]
        paths = [self.hub.file(repository, name) for name in names]
        self._send_json([self.hub.entry(repository, path) for path in paths if path.exists()])

    def _describe(self, repository: str, kind: str, revision: str, below: str) -> None:
        if self._is_refused(repository, revision or "main"):
            return
        if kind != "tree":
            self._send_json({"id": repository, "sha": COMMIT, "private": False, "tags": []})
            return
        folder = self.hub.file(repository, below.strip("/"))
        if not folder.is_dir():
            self._refuse(HTTPStatus.NOT_FOUND, "EntryNotFound", "no such entry")
            return
        is_recursive = "recursive=true" in self.path.lower()
        paths = sorted(folder.rglob("*") if is_recursive else folder.iterdir())
        self._send_json([self.hub.entry(repository, path) for path in paths])

    def _resolve(self, repository: str, revision: str, name: str) -> None:
        if self._is_refused(repository, revision, is_content=True):
            return
        path = self.hub.file(repository, name)
        if not path.is_file():
            self._refuse(HTTPStatus.NOT_FOUND, "EntryNotFound", "no such entry")
            return
        self.send_response(HTTPStatus.FOUND)
        self.send_header("Location", f"{self.hub.endpoint}{_CONTENT}{repository}/{name}")
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("X-Linked-Size", str(path.stat().st_size))
        self.send_header("ETag", f'"{self.hub.entry(repository, path)["oid"]}"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _content(self, name: str) -> None:
        if self.hub.too_many:
            self.hub.too_many -= 1
            self._refuse(HTTPStatus.TOO_MANY_REQUESTS, "", "slow down", **{"Retry-After": "0"})
            return
        content = (self.hub.root / name).read_bytes()
        asked = _RANGE.fullmatch(self.headers.get("Range") or "")
        start = int(asked[1]) if asked else 0
        stop = min(int(asked[2]) + 1, len(content)) if asked and asked[2] else len(content)
        body = content[start:stop]
        if name.rpartition("/")[2] in self.hub.truncated:
            body = body[: len(body) // 2]
        self.send_response(HTTPStatus.PARTIAL_CONTENT if asked else HTTPStatus.OK)
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(content)}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.hub.cut:
            self.hub.cut -= 1
            body, self.close_connection = body[: len(body) // 2], True
        if self.command == "GET":
            self.hub.n_bytes[name.rpartition("/")[2]] += len(body)
            self.wfile.write(body)

    def _is_refused(self, repository: str, revision: str, *, is_content: bool = False) -> bool:
        """Refuse a repository or revision that is not there, and content of a gated repository."""
        if not (self.hub.root / repository).is_dir():
            self._refuse(HTTPStatus.UNAUTHORIZED, "RepoNotFound", "Repository not found")
        elif revision not in self.hub.revisions:
            self._refuse(HTTPStatus.NOT_FOUND, "RevisionNotFound", f"Invalid rev id: {revision}")
        elif repository in self.hub.gated and is_content:
            has_token = "Authorization" in self.headers
            status = HTTPStatus.FORBIDDEN if has_token else HTTPStatus.UNAUTHORIZED
            self._refuse(status, "GatedRepo", f"Access to dataset {repository} is restricted.")
        else:
            return False
        return True

    def _refuse(self, status: HTTPStatus, code: str, message: str, **headers: str) -> None:
        headers |= {"X-Error-Code": code, "X-Error-Message": message}
        self._send_json({"error": message}, status, headers)

    def _send_json(
        self,
        value: object,
        status: HTTPStatus = HTTPStatus.OK,
        headers: dict[str, str] | None = None,
    ) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
