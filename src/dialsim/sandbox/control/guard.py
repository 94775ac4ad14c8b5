"""Access to the control plane: the control token, this machine alone, no page of another site."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dialsim.interface.errors import Refused
from dialsim.sandbox.access import ControlToken, hostname, is_loopback
from dialsim.sandbox.http.answers import failure

PREFIX = "/_dialsim"

_PAGE = f"{PREFIX}/"
_SCHEMES = ("http", "https")  # a proxy may have added the s
_READS = ("GET", "HEAD")


class ControlGuard:
    """Answers 403 to a request under /_dialsim that a page of another site may have made.

    Such a request says so in `Origin`. Without a token, when only this machine is listened to, one
    that reaches it under a name of somebody else's choice (DNS rebinding) says so in `Host`. With a
    token, whoever does not have it gets 401.
    """

    def __init__(self, app: ASGIApp, token: ControlToken | None = None) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and is_control(scope["path"]):
            try:
                answer = self._answer(Request(scope))
            except Refused as refused:
                challenge = {"WWW-Authenticate": "Bearer"} if refused.status == 401 else None
                answer = failure(refused, challenge)
            if answer is not None:
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _answer(self, request: Request) -> Response | None:
        """The guard's own answer; None lets the request pass. Raises Refused where it may not."""
        if self._token is None:
            if not (_is_addressed_here(request) and _is_of_our_pages(request)):
                raise _forbidden("The control plane answers this machine alone")
            return None
        if not _is_of_our_pages(request):
            raise _forbidden("The control plane answers no pages of other sites")
        offered = request.query_params.get("token")
        if request.method == "GET" and request.scope["path"] == _PAGE and offered is not None:
            return self._cookie_for(offered, request, self._token)
        self._require_token(request, self._token)
        return None

    def _cookie_for(self, offered: str, request: Request, token: ControlToken) -> Response:
        """Take the token out of the address and put a cookie in its place."""
        if not token.is_token(offered):
            raise _wrong()
        answer = RedirectResponse(
            _PAGE, 303, {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
        )
        answer.set_cookie(
            _cookie_name(request),
            token.cookie,
            path=PREFIX,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    def _require_token(self, request: Request, token: ControlToken) -> None:
        scheme, _, offered = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            if not token.is_token(offered.strip()):
                raise _wrong()
            return
        cookie = request.cookies.get(_cookie_name(request))
        if cookie is None or not _is_sent_by_our_pages(request) or not token.is_cookie(cookie):
            raise Refused(401, "CONTROL_TOKEN_REQUIRED", ["The control token is required"])


def is_control(path: str) -> bool:
    """Whether a path belongs to the control plane or its page."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def _is_addressed_here(request: Request) -> bool:
    hosts = request.headers.getlist("host")
    return len(hosts) == 1 and is_loopback(hostname(f"http://{hosts[0]}"))


def _is_of_our_pages(request: Request) -> bool:
    """Whether no page made the request, or one of this very address."""
    host = request.headers.get("host", "")
    ours = [f"{scheme}://{host}" for scheme in _SCHEMES]
    return all(origin in ours for origin in request.headers.getlist("origin"))


def _is_sent_by_our_pages(request: Request) -> bool:
    """Whether a cookie counts: browsers send it from other ports of the same machine, too.

    A browser that doesn't say where the request comes from may read; what it reads it doesn't give
    to pages from elsewhere.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    return request.method in _READS or "origin" in request.headers


def _cookie_name(request: Request) -> str:
    """One per port: cookies are shared by all that listens on a machine."""
    return f"dialsim_control_{request.scope['server'][1]}"


def _forbidden(text: str) -> Refused:
    return Refused(403, "FORBIDDEN", [text])


def _wrong() -> Refused:
    return Refused(401, "INVALID_CONTROL_TOKEN", ["Invalid control token"])
