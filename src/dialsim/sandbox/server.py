"""The server: the application on a port of this machine."""

from __future__ import annotations

import ipaddress
import socket
from contextlib import suppress
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from dialsim.interface.errors import DialsimError
from dialsim.sandbox.app import application
from dialsim.sandbox.exchange import Exchange

BACKLOG = 2_048


def serve(exchange: Exchange, host: str, port: int) -> None:
    """Serve until interrupted, and print where; port 0 takes a free one.

    Raises DialsimError where `host` is not this machine alone, or the port can't be had.
    """
    with listening(host, port) as listener:
        print(f"Serving on {address(listener)} - stop with Ctrl-C", flush=True)
        with suppress(KeyboardInterrupt):  # the usual way to stop it
            uvicorn.Server(configuration(application(exchange))).run(sockets=[listener])


def configuration(app: ASGIApp, **more: Any) -> uvicorn.Config:
    """How the application is served; `more` are further settings of uvicorn."""
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        log_level="warning",
        access_log=False,  # what is asked for is no secret, but who asks is
        server_header=False,
        date_header=False,
        **more,
    )


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens on an address of this machine: from now on clients may connect."""
    if host == "localhost":
        host = "127.0.0.1"
    try:
        local = ipaddress.ip_address(host)
    except ValueError:
        raise DialsimError(f"--host {host}: give an IP address such as 127.0.0.1") from None
    if not local.is_loopback:
        raise DialsimError(
            f"--host {host}: the sandbox listens on this machine alone, 127.0.0.1 or ::1"
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
