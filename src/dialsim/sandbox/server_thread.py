"""The server in a thread of this process, with its own event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Event, Lock, Thread
from typing import TypeVar

from starlette.types import ASGIApp

from dialsim.interface.errors import DialsimError
from dialsim.sandbox.app import application
from dialsim.sandbox.exchange import Exchange
from dialsim.sandbox.server import GRACE_SECONDS, Server

T = TypeVar("T")


class ServerThread:
    """Serves an exchange on a listening socket, from `start` to `stop`; both come once.

    `failure` is what ended the server other than `stop`, if anything did.
    """

    def __init__(self, exchange: Exchange, listener: socket.socket) -> None:
        self.failure: BaseException | None = None
        self._listener = listener
        self._up = Event()
        self._server = _Server(application(exchange), self._up)
        port = listener.getsockname()[1]
        self._thread = Thread(target=self._serve, name=f"dialsim-sandbox-{port}", daemon=True)
        self._stopping = Lock()  # who holds it finds the loop going on

    @property
    def faults(self) -> list[Exception]:
        """The faults of ours so far, each answered with 500."""
        return self._server.faults

    @property
    def alive(self) -> bool:
        """Whether it serves."""
        return self._thread.is_alive() and not self._server.stopping

    def start(self) -> None:
        """Serve from now on; raises DialsimError if that fails."""
        self._thread.start()
        self._up.wait()
        if not self._server.started:
            raise DialsimError(f"the sandbox can't start: {self.failure!r}") from self.failure

    def stop(self) -> None:
        """Break off whatever is under way, close all connections, and end the thread."""
        with self._stopping:
            if self.alive:
                self._server.wind_up()
        self._thread.join()

    def ask(self, question: Callable[[], T]) -> T:
        """What `question` returns in the server's thread, where nothing moves meanwhile."""
        answer: Future[T] = Future()

        def reply() -> None:
            try:
                answer.set_result(question())
            except BaseException as error:  # raised where it was asked
                answer.set_exception(error)

        with self._stopping:
            if not self.alive:
                raise DialsimError("the sandbox was stopped")
            self._loop.call_soon_threadsafe(reply)
            while not wait([answer], timeout=GRACE_SECONDS).done:
                if not self._thread.is_alive():
                    raise DialsimError(f"the sandbox ended by itself: {self.failure!r}")
            return answer.result()

    def _serve(self) -> None:
        try:
            asyncio.run(self._serve_until_stopped())
        except BaseException as error:  # told to whoever uses the sandbox
            self.failure = error
        finally:
            self._listener.close()
            self._up.set()

    async def _serve_until_stopped(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._server.serve(sockets=[self._listener])
        for connection in tuple(self._server.server_state.connections):
            connection.transport.abort()  # its client didn't take the answer in time


class _Server(Server):
    """Says when it is up, and leaves the logging of the process alone."""

    def __init__(self, app: ASGIApp, up: Event) -> None:
        super().__init__(app, log_config=None)
        self._up = up

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._up.set()
