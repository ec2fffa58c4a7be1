"""The UI of `decon-assets dev`: what pages of other sites cannot do with it."""

import http.client
import os
import socket
import subprocess
import sys
from contextlib import closing
from urllib.parse import quote

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.waiting import wait_until

PROGRAM = "import sys; from decon_assets.cli.main import main; sys.exit(main())"
MUTATION = f"/graphql?query={quote('mutation Seen { setNuxSeen } query Q { version }')}"
QUERY = f"/graphql?query={quote('{ version }')}"


@pytest.fixture
def at_home(at_home_on_disk):
    """Other processes open the history."""
    return at_home_on_disk


@pytest.fixture
def port(at_home, unused_port):
    """The port of a UI that also answers to decon.example.org."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "dev", "--port", str(unused_port)],
        env=os.environ | {"DECON_UI_HOSTS": "x.example, decon.example.org"},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            assert wait_until(lambda: answers(unused_port), process)
            yield unused_port
        finally:
            process.terminate()


def answers(port):
    try:
        return ask(port, "GET", "/server_info")[0] == 200
    except OSError:
        return False


def ask(port, method, path, **headers):
    """Status and text of the answer to a request."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_the_ui_answers_its_own_pages_and_programs_and_nobody_else(port):
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
