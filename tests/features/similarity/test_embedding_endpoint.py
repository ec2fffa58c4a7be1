"""An OpenAI-compatible endpoint for embeddings, against a real server on this machine."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep

import numpy as np
import pytest

from decon_core.errors import ConfigError, InputError
from decon_core.features.similarity.embedders import EmbeddingEndpoint, load_embedder
from decon_core.storage.paths import UnreachableError


def vector_of(text):
    return [float(len(text)), 1.0, float(text.count("a"))]


def good(request, _):
    data = [{"index": at, "embedding": vector_of(one)} for at, one in enumerate(request["input"])]
    return 200, {"data": data[::-1]}  # the order is the indexes'


@dataclass
class Server:
    """What the server answers, request by request, and what it was asked."""

    url: str = ""
    answers: list[Callable] = field(default_factory=list)  # then `good`
    requests: list[tuple[dict, dict]] = field(default_factory=list)

    def next_answer(self):
        return self.answers.pop(0) if self.answers else good

    def endpoint(self, **settings):
        settings = {"concurrency": 1, "first_wait": 0.001, **settings}
        return EmbeddingEndpoint(url=self.url, model="small", **settings)


@pytest.fixture
def server():
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append((request, dict(self.headers)))
            code, body, *headers = state.next_answer()(request, self)
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(code)
            for name, value in headers or [("Content-Length", str(len(content)))]:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{http.server_port}/v1"
    yield state
    http.shutdown()
    http.server_close()


def failing(code, *headers):
    return lambda *_: (code, {"error": {"message": "try later"}}, *headers)


def test_vectors_are_in_the_order_of_the_texts(server):
    texts = [f"{'a' * n}b" for n in range(10)]
    vectors = server.endpoint(batch=3, concurrency=4).embed(texts)
    np.testing.assert_array_equal(vectors, [vector_of(text) for text in texts])
    assert sorted(len(request["input"]) for request, _ in server.requests) == [1, 3, 3, 3]
    assert {request["model"] for request, _ in server.requests} == {"small"}


def test_the_key_comes_from_the_environment(server, monkeypatch):
    monkeypatch.setenv("TEST_KEY", "secret-1")
    server.endpoint(key_env="TEST_KEY").embed(["a"])
    assert server.requests[0][1]["Authorization"] == "Bearer secret-1"


def test_a_missing_key_is_named_before_anything_is_sent(server, monkeypatch):
    monkeypatch.delenv("TEST_KEY", raising=False)
    with pytest.raises(ConfigError, match=r"\$TEST_KEY"):
        server.endpoint(key_env="TEST_KEY").embed(["a"])
    assert not server.requests


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503])
def test_what_may_pass_is_tried_again(server, code):
    server.answers = [failing(code), failing(code)]
    assert server.endpoint().embed(["a"]).shape == (1, 3)
    assert len(server.requests) == 3


def test_the_server_may_say_how_long_to_wait(server):
    server.answers = [failing(429, ("Retry-After", "1"), ("Content-Length", "35"))]
    waiting = threading.Event()
    thread = threading.Thread(target=lambda: (server.endpoint().embed(["a"]), waiting.set()))
    thread.start()
    assert not waiting.wait(0.5)
    assert waiting.wait(10)
    thread.join()


def test_a_connection_that_breaks_off_is_tried_again(server):
    server.answers = [lambda *_: (200, b'{"data": [', ("Content-Length", "5000"))]
    assert server.endpoint(timeout=0.5).embed(["a"]).shape == (1, 3)
    assert len(server.requests) == 2


def test_a_slow_answer_is_tried_again(server):
    server.answers = [lambda *_: (sleep(1), good(*_))[1]]
    assert server.endpoint(timeout=0.2).embed(["a"]).shape == (1, 3)


def test_after_the_last_try_the_failure_is_temporary(server):
    server.answers = [failing(503)] * 3
    with pytest.raises(UnreachableError, match=r"3 times.*503.*try later"):
        server.endpoint(retries=2).embed(["a"])


def test_no_server_is_a_temporary_failure(server):
    endpoint = EmbeddingEndpoint(url="http://127.0.0.1:9", model="m", retries=1, first_wait=0.001)
    with pytest.raises(UnreachableError, match="refused"):
        endpoint.embed(["a"])


@pytest.mark.parametrize(("code", "remedy"), [(401, "Check the key"), (404, "name of the model")])
def test_what_will_not_pass_is_an_input_error_at_once(server, monkeypatch, code, remedy):
    monkeypatch.setenv("TEST_KEY", "secret-1")
    server.answers = [failing(code)]
    with pytest.raises(InputError, match=remedy) as error:
        server.endpoint(key_env="TEST_KEY").embed(["a"])
    assert len(server.requests) == 1
    assert "secret-1" not in str(error.value)


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>",
        b"[]",
        {"data": []},
        {"data": [{"index": 0, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]},
        {"data": [{"index": at, "embedding": ["x"]} for at in range(2)]},
        b'{"data": [{"index": 0, "embedding": [NaN]}, {"index": 1, "embedding": [1]}]}',
        {"data": [{"index": at, "embedding": [1.0] * (at + 1)} for at in range(2)]},
    ],
)
def test_an_answer_of_another_form_is_an_input_error(server, answer):
    server.answers = [lambda *_: (200, answer)]
    with pytest.raises(InputError, match=r"embedding|length"):
        server.endpoint().embed(["a", "b"])


def test_an_endpoint_is_an_embedder(server):
    embedder = load_embedder(server.url, model="small")
    cosines = embedder.cosines(["aa", "", "b"], ["aa", "b", "aa"])
    assert cosines[0] == pytest.approx(1)
    assert cosines[1] == 0
    assert "" not in [text for request, _ in server.requests for text in request["input"]]
    assert embedder.fingerprint != load_embedder(server.url, model="large").fingerprint


def test_an_endpoint_needs_a_model(server):
    with pytest.raises(InputError, match="no model"):
        load_embedder(server.url)
