"""A server on this machine that answers the requests of `huggingface_hub` as the hub does.

`huggingface_hub` and `datasets` run as they do for a user. The server has the datasets of a folder
(`FOLDER/org/name/...`) and can fail as the hub and networks do: rate limits, cut connections,
refused access.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

NOWHERE = "http://127.0.0.1:1"  # a port that refuses
_REVISIONS = {"main", "v1", "refs/convert/parquet"}  # all with the same files
_SET = r"/datasets/(?P<name>[^/]+/[^/]+)"
_WHAT = "(?P<what>auth-check|(tree|revision|paths-info)/(?P<at>[^/]+))"
_API = re.compile(rf"/api{_SET}(/{_WHAT})?/?(?P<path>.*)")
_FILE = re.compile(rf"{_SET}/resolve/(?P<at>[^/]+)/(?P<path>.+)")


class HubServer:
    """Serves a folder of datasets, and counts what is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.gated: set[str] = set()  # listed, but no file is given out
        self.private: set[str] = set()  # answered as if they did not exist
        self.faults: deque[str] = deque()  # of the next requests: "429", "cut", "short" or ""
        self.held: dict[str, int] = {}  # path: the number of its request that waits for `released`
        self.is_holding, self.released = threading.Event(), threading.Event()
        self.n_requests: Counter[str] = Counter()  # for files, by path in the dataset
        self.n_bytes: Counter[str] = Counter()  # of files that were sent, by path
        self._n_puts: Counter[str] = Counter()  # by dataset
        hub = self

        class Handler(_Handler):
            server_of_sets = hub

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign] # a client that died
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def running(self) -> Iterator[HubServer]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()

    def put(self, name: str, content: bytes | str) -> Path:
        """Publish a file: `org/name/path`. Each is a commit."""
        self._n_puts["/".join(name.split("/")[:2])] += 1
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def put_rows(
        self, name: str, rows: Sequence[Mapping[str, Any]], *, split: str, config: str = "default"
    ) -> None:
        """Publish a split of a dataset, beside those that it has."""
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        self.put(f"{name}/{config}/{split}.jsonl", lines)
        files: dict[str, list[dict[str, str]]] = {}
        for path in sorted((self.folder / name).glob("*/*.jsonl")):
            place = {"split": path.stem, "path": f"{path.parent.name}/{path.name}"}
            files.setdefault(path.parent.name, []).append(place)
        configs = [{"config_name": config, "data_files": files[config]} for config in files]
        self.put(f"{name}/README.md", f"---\n{json.dumps({'configs': configs})}\n---\n")

    def commit(self, name: str) -> str:
        """Return today's commit of a dataset."""
        return sha1(f"{name} {self._n_puts[name]}".encode(), usedforsecurity=False).hexdigest()


@contextmanager
def hub_for(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[HubServer]:
    """Run a server that the clients in this process, and those that it starts, take for the hub."""
    hub = HubServer(folder)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder / "cache"))
    clock = SimpleNamespace(sleep=lambda _: None, time=time.time)  # retries come at once
    monkeypatch.setattr("huggingface_hub.utils._http.time", clock)
    use_hub(monkeypatch, hub.url)
    with hub.running():
        yield hub


def use_hub(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("HF_ENDPOINT", url)
    # In this process, the variable was read long ago.
    template = f"{url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", url)
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr("datasets.config.HF_ENDPOINT", url)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_of_sets: HubServer

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if match := _FILE.fullmatch(address.path):
            self._answer_file(match["name"], match["at"], unquote(match["path"]))
        elif match := _API.fullmatch(address.path):
            is_deep = parse_qs(address.query).get("recursive", [""])[0].lower() in ("true", "1")
            self._answer_api(match, is_deep=is_deep)
        else:
            self._refuse(404, "EntryNotFound")

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        match = _API.fullmatch(urlsplit(self.path).path)
        if match and self._has(match["name"], match["at"]):
            top = self.server_of_sets.folder / match["name"]
            paths = [top / name for name in parse_qs(body).get("paths", [])]
            self._send_json([_entry(path, top) for path in paths if path.exists()])

    def _has(self, name: str, revision: str | None) -> bool:
        """Return whether a dataset has a revision; otherwise answer that it has not."""
        hub = self.server_of_sets
        if name in hub.private or not (hub.folder / name).is_dir():
            self._refuse(401, "RepoNotFound")  # without a token, the hub does not say which
        elif unquote(revision or "main") not in {*_REVISIONS, hub.commit(name)}:
            self._refuse(404, "RevisionNotFound")
        else:
            return True
        return False

    def _answer_api(self, match: re.Match[str], *, is_deep: bool) -> None:
        if not self._has(match["name"], match["at"]):
            return
        top = self.server_of_sets.folder / match["name"]
        if match["what"] == "auth-check" and match["name"] in self.server_of_sets.gated:
            self._refuse(403, "GatedRepo")
        elif not (match["what"] or "").startswith("tree"):
            commit = self.server_of_sets.commit(match["name"])
            self._send_json({"id": match["name"], "sha": commit, "siblings": [], "tags": []})
        elif not (folder := top / unquote(match["path"])).is_dir():
            self._refuse(404, "EntryNotFound")
        else:
            paths = folder.rglob("*") if is_deep else folder.iterdir()
            self._send_json([_entry(path, top) for path in sorted(paths)])

    def _answer_file(self, name: str, revision: str, relative: str) -> None:
        hub = self.server_of_sets
        if not self._has(name, revision):
            return
        if name in hub.gated:
            self._refuse(403, "GatedRepo")
            return
        path = hub.folder / name / relative
        if not path.is_file():
            self._refuse(404, "EntryNotFound")
            return
        hub.n_requests[relative] += 1
        if hub.held.get(relative) == hub.n_requests[relative]:
            hub.is_holding.set()
            hub.released.wait()
        fault = hub.faults.popleft() if hub.faults else ""
        if fault == "429":
            self._send(429, b"", {"Retry-After": "0"})
            return
        content = path.read_bytes()
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        first = int(wanted[1]) if wanted else 0
        end = int(wanted[2]) + 1 if wanted and wanted[2] else len(content)
        headers = {
            "ETag": f'"{_blob(path)}"',
            "X-Repo-Commit": hub.commit(name),
            "Accept-Ranges": "bytes",
        }
        served = content[: len(content) // 2] if fault == "short" else content
        part = served[first:end]
        if wanted:
            headers["Content-Range"] = f"bytes {first}-{first + len(part) - 1}/{len(content)}"
        if self.command != "HEAD":
            hub.n_bytes[relative] += len(part)
        self._send(206 if wanted else 200, part, headers, is_cut=fault == "cut")

    def _refuse(self, status: int, code: str) -> None:
        self._send(status, b"", {"X-Error-Code": code})

    def _send_json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send(
        self, status: int, body: bytes, headers: dict[str, str], *, is_cut: bool = False
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if is_cut else body)
        self.close_connection = self.close_connection or is_cut


def _blob(path: Path) -> str:
    return sha1(path.read_bytes(), usedforsecurity=False).hexdigest()


def _entry(path: Path, top: Path) -> dict[str, Any]:
    name = path.relative_to(top).as_posix()
    if path.is_dir():
        return {"type": "directory", "path": name, "oid": sha1(name.encode()).hexdigest()}
    return {"type": "file", "path": name, "size": path.stat().st_size, "oid": _blob(path)}
