"""The studio as a web server on a local address, with access control."""

from __future__ import annotations

import logging
from collections.abc import Callable
from html import escape
from typing import Any
from urllib.parse import urlsplit

import panel as pn
from bokeh.server.auth_provider import AuthProvider
from panel.io.server import Server, get_server
from tornado.web import HTTPError, RequestHandler
from typing_extensions import override

from dialsim.errors import DialsimError
from dialsim.sandbox.access import ControlToken, checked_host, hostname, is_loopback
from dialsim.studio.files import MOST_BYTES, OpenedList
from dialsim.studio.page import Studio, asset
from dialsim.studio.state import StudioState

_LOGIN = "/login"
_COOKIE_DAYS = 7
"""Lifetime of a login (days)."""


class Access(AuthProvider):
    """Admit requests with the token; if there is none, requests from this machine to its own name.

    A foreign page can reach a local server under a name of its choice (DNS rebinding); the header
    Host has that name, and Origin the page that sends the request.
    """

    def __init__(self, token: ControlToken | None) -> None:
        self._token = token
        super().__init__()

    @property
    @override
    def get_user(self) -> Callable[[Any], Any]:
        return self._user

    @property
    @override
    def login_url(self) -> str:
        return _LOGIN

    @property
    @override
    def login_handler(self) -> type[RequestHandler] | None:
        token = self._token
        if token is None:
            return None
        known: ControlToken = token

        class Login(RequestHandler):
            """Asks for the token and sets a cookie for it."""

            def get(self) -> None:
                """Ask, or take the token from the URL."""
                offered = self.get_query_argument("token", None)
                if offered is None:
                    self._ask()
                else:
                    self._take(offered)

            def post(self) -> None:
                """Take the token from the form."""
                self._take(self.get_body_argument("token", ""))

            def _take(self, offered: str) -> None:
                if not known.is_token(offered.strip()):
                    self.set_status(401)
                    self._ask("This is not the token.")
                    return
                self.set_cookie(
                    _cookie_name(self), known.cookie, expires_days=_COOKIE_DAYS, httponly=True,
                    samesite="Strict",
                )  # fmt: skip
                self.redirect(".")

            def _ask(self, error: str = "") -> None:
                self.set_header(*_NO_FRAMES)
                self.set_header("Cache-Control", "no-store")
                self.set_header("Referrer-Policy", "no-referrer")
                self.finish(asset("login.html").replace("{{error}}", escape(error)))

        return Login

    def _user(self, handler: RequestHandler) -> str | None:
        if handler.request.headers.get("Upgrade") is None:  # a websocket's answer has no page
            handler.set_header(*_NO_FRAMES)
        origin = handler.request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != handler.request.host:
            raise HTTPError(403, reason="This studio answers no pages of other sites")
        if self._token is None:
            if not is_loopback(hostname(f"http://{handler.request.host}")):
                raise HTTPError(403, reason="This studio answers its own machine alone")
            return "planner"
        offered = handler.get_cookie(_cookie_name(handler))
        return "planner" if offered is not None and self._token.is_cookie(offered) else None


_NO_FRAMES = "Content-Security-Policy", "frame-ancestors 'self'"
"""Header that keeps pages of other sites from showing the studio in a frame."""


def _cookie_name(handler: RequestHandler) -> str:
    """Return the name of the cookie with the port: browsers share cookies between ports."""
    return f"dialsim_studio_{handler.request.host.rpartition(':')[2]}"


def server(
    state: StudioState | None, host: str = "127.0.0.1", port: int = 0,
    token: ControlToken | None = None, listed: OpenedList | None = None,
) -> Server:  # fmt: skip
    """Return a listening server, with a session per visitor of its page.

    Without a state, the page begins with questions, and with the list `listed` if there is one.
    Port 0 takes a free one. Raises DialsimError if other machines can reach the address and there
    is no token, or if the port is not available.
    """
    address = checked_host(host, token)

    def session() -> pn.Template:
        studio = Studio(state, served=True, guest=token is not None, listed=listed)
        pn.state.on_session_destroyed(lambda _: studio.close())
        page = pn.Template(asset("page.html"))
        page.add_panel("studio", studio.page)
        return page

    # Panel warns of websocket_origin="*"
    logging.getLogger("bokeh.server.util").setLevel(logging.ERROR)
    try:
        made: Server = get_server(
            {"/": session}, port=port, address=address, title="dialsim studio",
            # Access checks the origin, which may be any name that leads to this server
            auth_provider=Access(token), websocket_origin="*",
            websocket_max_message_size=2 * MOST_BYTES, show=False,
        )  # fmt: skip
    except OSError as error:
        raise DialsimError(f"port {port} of {host} is not available: {error.strerror}") from None
    made.start()
    return made
