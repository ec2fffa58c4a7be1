"""A chat endpoint on this machine that answers as a test says: well, slowly, wrongly, or not."""

import json
import re
import threading
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GOOD = {"reasoning": "the same", "match_type": "equivalent", "is_sd": True, "confidence": 0.9}


def answer(content=None, *, n_tokens=100, **changes):
    """The body of an answer: a judgement with these fields changed, or any content."""
    text = json.dumps({**GOOD, **changes}) if content is None else content
    usage = {"prompt_tokens": n_tokens - 10, "completion_tokens": 10, "total_tokens": n_tokens}
    return {"choices": [{"message": {"role": "assistant", "content": text}}], "usage": usage}


class Reply:
    """What the server does with one request."""

    def __init__(
        self, body=None, *, status=200, headers=(), raw=None, hold=None, hang_up_after=None
    ):
        self.status, self.headers = status, dict(headers)
        self.content = json.dumps(body).encode() if raw is None else raw
        self.hold = hold  # an event to wait for
        self.hang_up_after = hang_up_after  # bytes of the body


class ChatServer:
    """Asks `behave(number, item, body)` for the reply to each request, and keeps what it saw."""

    def __init__(self, behave):
        self.behave = behave
        self.asked = Counter()  # requests by item
        self.answered = Counter()  # of them with a whole answer 200
        self.bodies, self.keys = [], []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def start(self):
        self._thread.start()

    def stop(self):
        """Close the port: what is asked from now on finds nobody."""
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._server.shutdown()
            self._server.server_close()

    def _handler(self):
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                item = item_in(body["messages"][0]["content"])
                with outer._lock:
                    number = outer.asked.total()
                    outer.asked[item] += 1
                    outer.bodies.append(body)
                    outer.keys.append(self.headers.get("Authorization"))
                reply = outer.behave(number, item, body)
                if reply.hold is not None:
                    reply.hold.wait()
                outer._send(self, reply, item)

        return Handler

    def _send(self, handler, reply, item):
        try:
            handler.send_response(reply.status)
            for name, value in reply.headers.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(reply.content)))
            handler.end_headers()
            handler.wfile.write(reply.content[: reply.hang_up_after])
        except OSError:
            return  # the client is gone
        if reply.hang_up_after is not None:
            handler.close_connection = True
        elif reply.status == 200:
            with self._lock:
                self.answered[item] += 1


def item_in(prompt):
    """The number of the item that a prompt is about."""
    found = re.search(r"number (\d+)", prompt)
    return int(found[1]) if found else None


@contextmanager
def serving(behave):
    server = ChatServer(behave)
    server.start()
    try:
        yield server
    finally:
        server.stop()
