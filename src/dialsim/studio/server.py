"""A studio in the browser: Panel's server on an address of this machine, and who may come in."""

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
from dialsim.studio.files import MOST_BYTES
from dialsim.studio.page import Studio, asset
from dialsim.studio.state import StudioState

_LOGIN = "/login"
_COOKIE_DAYS = 7
"""For so many days a browser is known again."""


class Access(AuthProvider):
    """Lets in who has the token; without one, who is on this machine and asks for it by its name.

    A page of somebody else may reach a server of this machine under a name of its choice (DNS
    rebinding): the name is in the header Host. Whom a request comes from is in Origin.
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
            """Asks for the token, and gives the browser a cookie for it."""

            def get(self) -> None:
                """Ask, or take the token out of the address."""
                offered = self.get_query_argument("token", None)
                if offered is None:
                    self._ask()
                else:
                    self._take(offered)

            def post(self) -> None:
                """Take what was written."""
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
                self.set_header("Cache-Control", "no-store")
                self.set_header("Referrer-Policy", "no-referrer")
                self.finish(asset("login.html").replace("{{error}}", escape(error)))

        return Login

    def _user(self, handler: RequestHandler) -> str | None:
        origin = handler.request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != handler.request.host:
            raise HTTPError(403, reason="This studio answers no pages of other sites")
        if self._token is None:
            if not is_loopback(hostname(f"http://{handler.request.host}")):
                raise HTTPError(403, reason="This studio answers its own machine alone")
            return "planner"
        offered = handler.get_cookie(_cookie_name(handler))
        return "planner" if offered is not None and self._token.is_cookie(offered) else None


def _cookie_name(handler: RequestHandler) -> str:
    """One per port: cookies are shared by all that listens on a machine."""
    return f"dialsim_studio_{handler.request.host.rpartition(':')[2]}"


def server(
    state: StudioState | None, host: str = "127.0.0.1", port: int = 0,
    token: ControlToken | None = None,
) -> Server:  # fmt: skip
    """A server that listens; everybody who opens its page has their own session.

    Port 0 takes a free one. Raises DialsimError where other machines reach the address and there is
    no token, or the port can't be had.
    """
    address = checked_host(host, token)

    def session() -> pn.Template:
        studio = Studio(state, served=True, guest=token is not None)
        pn.state.on_session_destroyed(lambda _: studio.close())
        page = pn.Template(asset("page.html"))
        page.add_panel("studio", studio.page)
        return page

    logging.getLogger("bokeh.server.util").setLevel(logging.ERROR)  # it warns of the *
    try:
        made: Server = get_server(
            {"/": session}, port=port, address=address, title="dialsim studio",
            auth_provider=Access(token), websocket_origin="*",  # Access looks at it
            websocket_max_message_size=2 * MOST_BYTES, show=False,
        )  # fmt: skip
    except OSError as error:
        raise DialsimError(f"port {port} of {host} can't be had: {error.strerror}") from None
    made.start()
    return made
