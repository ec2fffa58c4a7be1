"""Dagster's webserver, restricted to requests from its pages.

It takes every option of `dagster-webserver`, which answers to any host name, to pages of any other
site, and changes things by GET: a page in the same browser could delete runs. So a request has to
name this server by a known host name (against DNS rebinding), an `Origin` has to be this server,
and mutations need POST, with which a browser sends an `Origin`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection
    from starlette.types import ASGIApp, Receive, Scope, Send

MODULE = "decon_assets.runner.webserver"
HOSTS_VARIABLE = "DECON_UI_HOSTS"  # further host names of the UI, separated by commas

_LOCAL = ("localhost", "127.0.0.1", "::1")


class OwnPagesOnly:
    """Pass on requests of the UI's own pages and of programs; answer others with 403."""

    def __init__(self, app: ASGIApp, host: str) -> None:
        self._app = app
        more = os.environ.get(HOSTS_VARIABLE, "").split(",")
        self._hosts = {*_LOCAL, host.lower(), *(name.strip().lower() for name in more)} - {""}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request or a websocket."""
        from starlette.requests import HTTPConnection
        from starlette.responses import PlainTextResponse
        from starlette.websockets import WebSocketClose

        app = self._app
        if scope["type"] != "lifespan" and (refusal := self._refusal(HTTPConnection(scope))):
            is_websocket = scope["type"] == "websocket"  # closed before it is accepted: a plain 403
            app = WebSocketClose() if is_websocket else PlainTextResponse(f"{refusal}\n", 403)
        await app(scope, receive, send)

    def _refusal(self, request: HTTPConnection) -> str:
        """Return why a request is refused, and what to set; "" if it is not."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if _name(host) not in self._hosts:
            remedy = f"to allow it, set {HOSTS_VARIABLE}={_name(host) or 'NAME'}"
            return f"refused: the UI does not accept the host name {host!r}; {remedy}"
        if origin is not None and origin.lower().partition("://")[2] != host.lower():
            remedy = "behind a proxy, forward the browser's Host header"
            return f"refused: the origin {origin!r} does not match the host {host!r}; {remedy}"
        by_post = request.scope.get("method") == "POST"
        if not by_post and _is_mutation(request.query_params.get("query")):
            return "refused: mutations must be sent by POST"
        return ""


def _name(host: str) -> str:
    """Return the name in a Host header, without its port; "" if there is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:  # brackets without an address
        return ""


def _is_mutation(query: str | None) -> bool:
    """Return whether a GraphQL document would change something."""
    from graphql import GraphQLError, OperationDefinitionNode, OperationType, parse

    try:
        definitions = parse(query or "").definitions
    except GraphQLError:
        return False  # the webserver says what is wrong with it
    return any(
        isinstance(definition, OperationDefinitionNode)
        and definition.operation is OperationType.MUTATION
        for definition in definitions
    )


def main() -> None:
    """Run `dagster-webserver` with this check in front of it."""
    import uvicorn
    from dagster_webserver.cli import main as run_webserver

    serve = uvicorn.run

    def serve_own_pages(app: ASGIApp, *, host: str, **settings: Any) -> None:
        serve(OwnPagesOnly(app, host), host=host, **settings)

    uvicorn.run = serve_own_pages  # type: ignore[assignment] # called with keywords only
    run_webserver()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
