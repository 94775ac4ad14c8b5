"""The server: the application on a port of this machine, in this thread or its own thread.

uvicorn's own limits are unused where stricter limits apply here: `limit_concurrency` would answer
without the error envelope and block the control plane too, and `timeout_keep_alive` alone drops no
client that sends its request, or reads its answer, byte by byte.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from asyncio import CancelledError
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from email.utils import formatdate
from threading import Event, Lock, Thread
from types import FrameType
from typing import Any, TypeVar

import h11
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from dialsim.errors import DialsimError, Refused
from dialsim.sandbox.access import Certificate, ControlToken, address_url, checked_host, is_control
from dialsim.sandbox.answers import failure
from dialsim.sandbox.application import DROP, application
from dialsim.sandbox.core import SandboxCore

_CLOSE = {"Connection": "close"}
_NO_HTTP = Refused(400, "BAD_REQUEST", ["This is no valid HTTP request"])


@dataclass(frozen=True, slots=True)
class Patience:
    """Time limits (s) for a request's head, its body, and its answer.

    `idle` is the longest time without a request on a connection, `pause` the longest wait for the
    next piece of a body, `linger` the longest time for which a body may continue after the answer,
    `answer` the longest time in which a client reads nothing of its answer.
    """

    idle: int = 75
    head: float = 10
    pause: float = 10
    body: float = 300
    linger: float = 10
    answer: float = 30

    @property
    def tick(self) -> float:
        """Interval (s) between checks of a connection."""
        return min(self.head, self.pause, self.body, self.linger, self.answer) / 4


class Connection(H11Protocol):
    """Connection of one client. Slow clients are dropped without an answer.

    A head that is too long gets 431, invalid HTTP gets 400. Beyond `most` connections, only control
    requests are answered and all others get 503: if clients with slow answers could take every
    connection, the fault could not be ended. Beyond twice `most`, connections are not read.
    """

    patience = Patience()
    most = 256
    most_headers = 100
    most_head_bytes = 16_384

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.timeout_keep_alive = self.patience.idle
        self._application = self.app
        self.app = self._serve
        self._watch: asyncio.TimerHandle | None = None
        self._begun = self._heard = self._answered = self._taken = self.loop.time()
        self._untaken = 0
        self._is_one_too_many = False

    # -- callbacks of the transport ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Listen to a new client, unless there are more than twice `most`."""
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        self._is_one_too_many = len(self.connections) > self.most
        # Half of the connections are left to the control plane: a fault must be endable although
        # clients with slow answers hold the others.
        if len(self.connections) > 2 * self.most:
            transport.abort()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after a client disconnected."""
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive data of a client."""
        self._heard = self.loop.time()
        if self.timeout_keep_alive_task is not None and self.conn.their_state is h11.IDLE:
            # The first bytes of a further request on a kept connection: its limits begin now.
            self._begun = self._heard
        super().data_received(data)

    def resume_writing(self) -> None:
        """Resume sending to a client that reads again."""
        self._taken = self.loop.time()
        super().resume_writing()

    # -- slow clients -----------------------------------------------------------------------------

    def _look(self) -> None:
        """Check the client at intervals, and drop an overdue client."""
        if self._is_overdue(self.loop.time()):
            self.transport.abort()
        else:
            self._watch = self.loop.call_later(self.patience.tick, self._look)

    def _is_overdue(self, now: float) -> bool:
        patience, they = self.patience, self.conn.their_state
        if self._takes_nothing(now):
            return True
        # Between requests the limit is keep-alive, which uvicorn measures.
        if they is h11.IDLE:
            return self.timeout_keep_alive_task is None and now - self._begun > patience.head
        if they is not h11.SEND_BODY or self.flow.read_paused:
            return False
        if self.cycle.response_complete and now - self._answered > patience.linger:
            return True
        return now - self._heard > patience.pause or now - self._begun > patience.body

    def _takes_nothing(self, now: float) -> bool:
        untaken = self.transport.get_write_buffer_size()
        if untaken == 0 or untaken < self._untaken:
            self._taken = now
        self._untaken = untaken
        return now - self._taken > self.patience.answer

    def on_response_complete(self) -> None:
        """Go on to the next request."""
        self._answered = self.loop.time()
        super().on_response_complete()

    # -- refusals ---------------------------------------------------------------------------------

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, unless its head or the number of connections forbids it."""

        async def dated(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [_date(), *message["headers"]]
            await send(message)

        refused = self._refusal(scope)
        scope[DROP] = self.transport.abort
        if refused is None:
            await self._application(scope, receive, dated)
        else:
            await failure(refused, _CLOSE)(scope, receive, dated)

    def _refusal(self, scope: Scope) -> Refused | None:
        self._is_one_too_many &= len(self.connections) > self.most
        if self._is_one_too_many and not is_control(scope["path"]):
            text = f"There are more than {self.most} connections"
            return Refused(503, "TOO_MANY_CONNECTIONS", [text])
        if self._is_too_long(scope):
            return _too_long(self.most_headers, self.most_head_bytes)
        return _NO_HTTP if _is_ambiguous(scope) else None

    def _is_too_long(self, scope: Scope) -> bool:
        headers = scope["headers"]
        size = len(scope["raw_path"]) + len(scope["query_string"])
        size += sum(len(name) + len(value) for name, value in headers)
        return len(headers) > self.most_headers or size > self.most_head_bytes

    def send_400_response(self, _msg: str) -> None:
        """Answer invalid HTTP or a head that is too long with the error envelope, and hang up."""
        error = sys.exception()
        too_long = isinstance(error, h11.RemoteProtocolError) and error.error_status_hint == 431
        refused = _too_long(self.most_headers, self.most_head_bytes) if too_long else _NO_HTTP
        if self.cycle is not None:
            # A request under way on this connection is not answered any more: its answer would be
            # misread.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        # An answer that has begun cannot be replaced by an error: the connection is closed in its
        # middle.
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._send(refused)
        self.transport.close()

    def _send(self, refused: Refused) -> None:
        response = failure(refused, _CLOSE)
        headers = [_date(), *response.raw_headers]
        head = h11.Response(status_code=response.status_code, headers=headers)
        for event in (head, h11.Data(data=bytes(response.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")


def _is_ambiguous(scope: Scope) -> bool:
    """True if a proxy in front may read a request's body length differently.

    This holds for `Content-Length` beside `Transfer-Encoding`, and for chunked bodies in HTTP/1.0
    (RFC 9112, section 6.1).
    """
    names = {name for name, _ in scope["headers"]}
    if b"transfer-encoding" not in names:
        return False
    return b"content-length" in names or scope["http_version"] == "1.0"


def _date() -> tuple[bytes, bytes]:
    """Return the Date header of an answer, in real time (RFC 9110, section 6.6.1)."""
    return b"date", formatdate(usegmt=True).encode()


def _too_long(headers: int, size: int) -> Refused:
    text = f"A request's head must not have more than {headers} headers or {size} bytes"
    return Refused(431, "HEADERS_TOO_LARGE", [text])


class Supervision:
    """Wrapper of the application; `faults` are unexpected errors, which were answered with 500.

    Once `stopping` is set, cancelled and new requests are answered with 503, and answers under way,
    such as streams, end at once.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.stopping = False
        self.faults: list[Exception] = []
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            if scope["type"] != "http" or not self.stopping:
                await self._app(scope, receive, noted)
                return
        except CancelledError:
            if not self.stopping:
                raise
        except Exception as fault:
            self.faults.append(fault)
            raise
        if begun:
            with suppress(Exception):  # of an answer that announced its length
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            refused = Refused(503, "STOPPED", ["The sandbox was stopped"])
            await failure(refused)(scope, receive, send)


BACKLOG = 2_048
GRACE_SECONDS = 1
"""Time for a client to read its last answer."""
_MOMENT = 0.01  # seconds until an accepted socket becomes a connection, and until one closes


def serve(
    core: SandboxCore,
    listener: socket.socket,
    token: ControlToken | None = None,
    tls: Certificate | None = None,
) -> None:
    """Serve on a listening socket until interrupted or terminated, and print the address.

    Closes the journal when it stops. Raises JournalError if pending entries cannot be written.
    """
    # SIGTERM must have the effect of Ctrl-C: the journal is closed, so that one file has it all.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt):  # the usual way to stop it
            settings: dict[str, Any] = {}
            if tls is not None:
                settings = {"ssl_certfile": str(tls.chain), "ssl_keyfile": str(tls.key)}
            print(f"Serving on {address(listener, tls)} - stop with Ctrl-C", flush=True)
            Server(application(core, token), **settings).run(sockets=[listener])
    finally:
        if core.journal is not None:
            core.journal.close()


class Server(uvicorn.Server):
    """Server that cancels requests under way when it stops, where uvicorn waits for their end.

    `faults` are the unexpected errors so far, each answered with 500. `up` is set once the server
    accepts requests. `settings` are further settings of uvicorn.
    """

    def __init__(self, app: ASGIApp, up: Event | None = None, **settings: Any) -> None:
        self._supervision = Supervision(app)
        self._up = Event() if up is None else up
        super().__init__(configuration(self._supervision, **settings))

    @property
    def stopping(self) -> bool:
        """True once the server is shutting down."""
        return self._supervision.stopping

    @property
    def faults(self) -> list[Exception]:
        """Unexpected errors so far."""
        return self._supervision.faults

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        self._loop = asyncio.get_running_loop()
        self._leaving = asyncio.Event()
        await super().startup(sockets)
        self._up.set()

    async def main_loop(self) -> None:
        """Wait for the request to stop: uvicorn itself checks only every tenth of a second."""
        await self.on_tick(0)
        if not self.should_exit:
            await self._leaving.wait()
        # asyncio loses sockets that are accepted just before their server is closed
        for server in self.servers:
            for listener in server.sockets:
                self._loop.remove_reader(listener)
        await asyncio.sleep(_MOMENT)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let clients read their last answers, without the tenth of a second that uvicorn waits.

        Clients that are not done in time are disconnected.
        """
        for server in self.servers:
            server.close()
        for listener in sockets or ():
            listener.close()
        state, end = self.server_state, self._loop.time() + GRACE_SECONDS
        for connection in tuple(state.connections):
            connection.shutdown()
        while (state.connections or state.tasks) and not self.force_exit:
            if self._loop.time() > end:
                break
            await asyncio.sleep(_MOMENT)
        for connection in tuple(state.connections):
            connection.transport.abort()
        if not self.force_exit:
            await self.lifespan.shutdown()

    def wind_up(self) -> None:
        """Stop serving, from another thread or a signal handler."""
        self._loop.call_soon_threadsafe(self._wind_up)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop because of a signal; a second signal stops without waiting."""
        if self.started:
            self.wind_up()
        super().handle_exit(sig, frame)

    def _wind_up(self) -> None:
        self._supervision.stopping = True
        self.should_exit = True
        self._leaving.set()
        # requests of this moment begin first: a task cancelled before it begins answers nothing
        self._loop.call_soon(self._break_off)

    def _break_off(self) -> None:
        for task in tuple(self.server_state.tasks):
            task.cancel()


def configuration(
    app: ASGIApp, connection: type[Connection] = Connection, **more: Any
) -> uvicorn.Config:
    """Return the uvicorn configuration; `more` are further settings."""
    return uvicorn.Config(
        app,
        http=connection,
        ws="none",
        log_level="warning",
        # Requests are no secret, but the addresses of clients are.
        access_log=False,
        server_header=False,
        # uvicorn updates its date in ticks of its main loop, which `Server` does not have.
        date_header=False,
        # Nothing depends on the address of a client, so a proxy need not be trusted about it.
        proxy_headers=False,
        **more,
    )


def listening(host: str, port: int, token: ControlToken | None = None) -> socket.socket:
    """A socket that listens on an address of this machine: from now on clients may connect.

    Port 0 takes a free one. Raises DialsimError where other machines reach the address and there
    is no control token, or the port is not available.
    """
    host = checked_host(host, token)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm (40 ms a request) only if the protocol is named
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        says = error.strerror if isinstance(error, OSError) else "ports end at 65535"
        raise DialsimError(f"port {port} of {host} is not available: {says}") from None
    return listener


def address(listener: socket.socket, tls: Certificate | None = None) -> str:
    """The URL at which a socket is reached."""
    host, port = listener.getsockname()[:2]
    return address_url(host, port, "http" if tls is None else "https")


T = TypeVar("T")


class ServerThread:
    """Thread that serves a sandbox on a socket; `start` and `stop` are each called once."""

    def __init__(self, core: SandboxCore, listener: socket.socket) -> None:
        self.failure: BaseException | None = None
        self._listener = listener
        self._up = Event()
        # the logging of the process is left alone
        self._server = Server(application(core), self._up, log_config=None)
        port = listener.getsockname()[1]
        self._thread = Thread(target=self._serve, name=f"dialsim-sandbox-{port}", daemon=True)
        # While it is held, the event loop is known to run: nothing may stop it between check and
        # use.
        self._stopping = Lock()

    @property
    def faults(self) -> list[Exception]:
        """Unexpected errors so far, each answered with 500."""
        return self._server.faults

    @property
    def alive(self) -> bool:
        """True while the server accepts requests."""
        return self._thread.is_alive() and not self._server.stopping

    def start(self) -> None:
        """Serve from now on; raises DialsimError if that fails."""
        self._thread.start()
        self._up.wait()
        if not self._server.started:
            raise DialsimError(f"the sandbox can't start: {self.failure!r}") from self.failure

    def stop(self) -> None:
        """Cancel requests under way, close all connections, and end the thread."""
        with self._stopping:
            if self.alive:
                self._server.wind_up()
        self._thread.join()

    def ask(self, question: Callable[[], T]) -> T:
        """Call `question` in the server's thread and return its result.

        No other code of the sandbox runs during the call.
        """
        answer: Future[T] = Future()

        def reply() -> None:
            try:
                answer.set_result(question())
            # Raised in the thread that asked, which waits for the answer.
            except BaseException as error:
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
        # Kept for the thread that uses the sandbox: a traceback of a daemon thread is easily
        # missed.
        except BaseException as error:
            self.failure = error
        finally:
            self._listener.close()
            self._up.set()

    async def _serve_until_stopped(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._server.serve(sockets=[self._listener])
