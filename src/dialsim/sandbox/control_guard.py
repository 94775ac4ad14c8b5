"""Who may steer: programs on this machine, and no web page from elsewhere."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from dialsim.interface.errors import Refused
from dialsim.sandbox.envelopes import failure

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
PREFIX = "/_dialsim"


class ControlGuard:
    """Answers 403 to a request under /_dialsim that a page of another site may have made.

    Such a request says so in `Origin`; one that reaches this machine under a name of somebody
    else's choice (DNS rebinding) says so in `Host`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and _is_control(scope["path"]) and not _is_local(scope):
            text = "The control plane answers this machine alone"
            await failure(Refused(403, "FORBIDDEN", [text]))(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _is_control(path: str) -> bool:
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def _is_local(scope: Scope) -> bool:
    headers = scope["headers"]
    hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
    origins = [value.decode("latin-1") for name, value in headers if name == b"origin"]
    return (
        len(hosts) == 1
        and _hostname(f"http://{hosts[0]}") in LOOPBACK
        and all(origin == f"http://{hosts[0]}" for origin in origins)
    )


def _hostname(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
