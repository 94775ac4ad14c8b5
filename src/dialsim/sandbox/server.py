"""The server: the application on a port of this machine."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
from contextlib import suppress
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from dialsim.interface.errors import DialsimError
from dialsim.sandbox.app import application
from dialsim.sandbox.connection import Connection
from dialsim.sandbox.control_token import ControlToken
from dialsim.sandbox.exchange import Exchange
from dialsim.sandbox.supervision import Supervision

BACKLOG = 2_048
GRACE_SECONDS = 1
"""What a client has for taking its last answer."""
_MOMENT = 0.01  # seconds in which an accepted socket has become a connection


def serve(exchange: Exchange, listener: socket.socket, token: ControlToken | None = None) -> None:
    """Serve on a listening socket until interrupted or terminated, and print where.

    The journal is closed then; raises JournalError where it can't be told all that has happened.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what Ctrl-C does
    try:
        with suppress(KeyboardInterrupt):  # the usual way to stop it
            print(f"Serving on {address(listener)} - stop with Ctrl-C", flush=True)
            Server(application(exchange, token)).run(sockets=[listener])
    finally:
        if exchange.journal is not None:
            exchange.journal.close()


class Server(uvicorn.Server):
    """A server that breaks off what is under way when it is to stop; others wait for its end.

    `faults` are those of ours so far, each answered with 500. `settings` are further ones of
    uvicorn.
    """

    def __init__(self, app: ASGIApp, **settings: Any) -> None:
        self._supervision = Supervision(app)
        config = configuration(
            self._supervision, timeout_graceful_shutdown=GRACE_SECONDS, **settings
        )
        super().__init__(config)

    @property
    def stopping(self) -> bool:
        """Whether it winds up."""
        return self._supervision.stopping

    @property
    def faults(self) -> list[Exception]:
        """Exceptions that were not foreseen."""
        return self._supervision.faults

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        self._loop = asyncio.get_running_loop()
        self._leaving = asyncio.Event()
        await super().startup(sockets)

    async def main_loop(self) -> None:
        """Wait until it is to stop: uvicorn itself looks every tenth of a second."""
        await self.on_tick(0)
        if not self.should_exit:
            await self._leaving.wait()
        # asyncio loses sockets that are accepted just before their server is closed
        for server in self.servers:
            for listener in server.sockets:
                self._loop.remove_reader(listener)
        await asyncio.sleep(_MOMENT)

    def wind_up(self) -> None:
        """Stop serving, from another thread or a signal handler."""
        self._loop.call_soon_threadsafe(self._wind_up)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop because of a signal; a second one of them waits for nothing."""
        if self.started:
            self.wind_up()
        super().handle_exit(sig, frame)

    def _wind_up(self) -> None:
        self._supervision.stopping = True
        self.should_exit = True
        self._leaving.set()
        for task in tuple(self.server_state.tasks):
            task.cancel()


def configuration(
    app: ASGIApp, connection: type[Connection] = Connection, **more: Any
) -> uvicorn.Config:
    """How the application is served; `more` are further settings of uvicorn."""
    return uvicorn.Config(
        app,
        http=connection,
        ws="none",
        log_level="warning",
        access_log=False,  # what is asked for is no secret, but who asks is
        server_header=False,
        date_header=False,  # uvicorn's is made by its ticks, of which `Server` has none
        proxy_headers=False,  # who asks, by what address, makes no difference
        **more,
    )


def listening(host: str, port: int, token: ControlToken | None = None) -> socket.socket:
    """A socket that listens on an address of this machine: from now on clients may connect.

    Port 0 takes a free one. Raises DialsimError where other machines reach the address and there
    is no control token, or the port can't be had.
    """
    if host == "localhost":
        host = "127.0.0.1"
    try:
        local = ipaddress.ip_address(host)
    except ValueError:
        raise DialsimError(f"--host {host}: give an IP address such as 127.0.0.1") from None
    if token is None and not local.is_loopback:
        raise DialsimError(
            f"--host {host}: other machines reach this address, so it needs a control token: set "
            "DIALSIM_CONTROL_TOKEN (or --control-token), or listen on 127.0.0.1 or ::1"
        )
    family = socket.AF_INET6 if local.version == 6 else socket.AF_INET
    # naming the protocol has asyncio switch off waiting for more to send (Nagle), 40 ms a request
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        says = error.strerror if isinstance(error, OSError) else "ports end at 65535"
        raise DialsimError(f"port {port} of {host} can't be had: {says}") from None
    return listener


def address(listener: socket.socket) -> str:
    """The URL at which a socket is reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
