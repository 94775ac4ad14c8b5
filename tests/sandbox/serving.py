"""A sandbox on a port of this machine, for tests that need real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dialsim.sandbox.exchange import Exchange
from dialsim.sandbox.server import address, listening
from dialsim.sandbox.server_thread import ServerThread


@contextmanager
def served(exchange: Exchange) -> Iterator[str]:
    """Serve in a thread; gives the address. No fault of ours may come up meanwhile."""
    listener = listening("127.0.0.1", 0)
    url, thread = address(listener), ServerThread(exchange, listener)
    thread.start()
    try:
        yield url
    finally:
        thread.stop()
    assert thread.faults == []
