"""A sandbox on a port of this machine, for tests that need real sockets."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, NamedTuple

from dialsim.sandbox.access import ControlToken
from dialsim.sandbox.application import application
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.server import Connection, Server, address, listening

EVERY_RESULT: dict[str, Any] = {
    "outcomes": {"answered": 0.5, "noAnswer": 0.3, "busy": 0.1, "failed": 0.1},
    "talk_time": "20s",
    "analysis_delay": {"dist": "uniform", "low": "1s", "high": "40s"},
    "rates": {"analysisFailed": 0.1, "lateResult": 0.5},
}
"""A behaviour, as `Sketch.behaviour` takes it, whose calls end and are analysed in every way."""


class Served(NamedTuple):
    """A sandbox that is being served."""

    url: str
    server: Server

    def connect(self) -> socket.socket:
        """A bare connection to it, on which nothing takes longer than ten minutes."""
        host, _, port = self.url.removeprefix("http://").partition(":")
        return socket.create_connection((host, int(port)), timeout=600)

    @property
    def connections(self) -> int:
        """Number of connected clients."""
        return len(self.server.server_state.connections)


@contextmanager
def served(
    core: SandboxCore,
    token: ControlToken | None = None,
    connection: type[Connection] = Connection,
) -> Iterator[Served]:
    """Serve in a thread."""
    with listening("127.0.0.1", 0) as listener:
        up = Event()
        server = Server(application(core, token), up, connection=connection, log_config=None)
        thread = Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        assert up.wait(600)
        try:
            yield Served(address(listener), server)
        finally:
            if not server.stopping:
                server.wind_up()
            thread.join()
