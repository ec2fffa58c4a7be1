"""Requests to the UI of `decon-assets dev`: of its own pages, of programs, and of other sites."""

import http.client
import socket
from contextlib import closing
from urllib.parse import quote

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.waiting import wait_until

MUTATION = f"/graphql?query={quote('mutation Seen { setNuxSeen } query Q { version }')}"
QUERY = f"/graphql?query={quote('{ version }')}"


def ask(port, method, path, **headers):
    """Status and text of the answer to a request."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def answers(port):
    try:
        return ask(port, "GET", "/server_info")[0] == 200
    except OSError:
        return False


def require_own_pages_only(port):
    """It answers its own pages and programs, also as decon.example.org, and nobody else."""
    assert wait_until(lambda: answers(port))
    ours = f"http://127.0.0.1:{port}"
    for host in (f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}", "decon.example.org"):
        assert ask(port, "GET", "/server_info", Host=host)[0] == 200, host
    assert ask(port, "GET", QUERY)[0] == 200
    assert "setNuxSeen" in ask(port, "POST", f"{MUTATION}&operationName=Seen", Origin=ours)[1]

    for host in (f"evil.example:{port}", "evil.example", "127.0.0.1.evil.example", "[", ""):
        assert ask(port, "GET", "/server_info", Host=host)[0] in (400, 403), host
    status, text = ask(port, "GET", "/server_info", Host=f"evil.example:{port}")
    assert (status, text.count("\n")) == (403, 1)
    assert "set DECON_UI_HOSTS=evil.example" in text

    for origin in ("http://evil.example", "null", "http://localhost:8888", f"{ours}.evil.example"):
        for path in (MUTATION, QUERY, "/report_asset_materialization/records"):
            assert ask(port, "POST", path, Origin=origin)[0] == 403, origin
    for method in ("GET", "HEAD"):
        assert ask(port, method, f"{MUTATION}&operationName=Seen")[0] == 403
    assert "by POST" in ask(port, "GET", MUTATION)[1]

    address = f"ws://127.0.0.1:{port}/graphql"
    for origin in (ours, None):
        with connect(address, origin=origin, subprotocols=["graphql-ws"]) as websocket:
            websocket.send('{"type": "connection_init"}')
            assert "connection_ack" in websocket.recv()
    with pytest.raises(InvalidStatus, match="403"):
        connect(address, origin="http://evil.example")
    by_address = socket.create_connection(("127.0.0.1", port))
    with closing(by_address), pytest.raises(InvalidStatus, match="403"):
        connect("ws://evil.example/graphql", sock=by_address)
