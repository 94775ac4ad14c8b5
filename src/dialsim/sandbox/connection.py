"""Connections: how long a client may take, how much it may say, and how many there may be."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any

import h11
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from dialsim.interface.errors import Refused
from dialsim.sandbox.control_guard import is_control
from dialsim.sandbox.envelopes import failure

_CLOSE = {"Connection": "close"}
_NO_HTTP = Refused(400, "BAD_REQUEST", ["This is no valid HTTP request"])


@dataclass(frozen=True, slots=True)
class Patience:
    """How long (s) a client may take over a request's head, its body, and its answer.

    `idle` is how long a connection is kept without being asked anything, `pause` the longest wait
    for the next piece of a body, `linger` the longest time for which a body goes on when it has
    been answered already, `answer` the longest time in which a client takes nothing of what it is
    sent.
    """

    idle: int = 75
    head: float = 10
    pause: float = 10
    body: float = 300
    linger: float = 10
    answer: float = 30

    @property
    def tick(self) -> float:
        """How often a connection is looked at."""
        return min(self.head, self.pause, self.body, self.linger, self.answer) / 4


class Connection(H11Protocol):
    """One client's connection. Whoever is too slow is dropped without an answer.

    A head that is too long gets 431, what is no HTTP 400. Of connections beyond `most` at a time
    only requests to the control plane are answered, all others get 503: were they taken by clients
    that wait for slow answers, nobody could end the fault. Those beyond twice as many are not
    listened to at all.
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

    # -- what the transport tells -----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Listen to a new client, if there are not far too many."""
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        self._is_one_too_many = len(self.connections) > self.most
        if len(self.connections) > 2 * self.most:
            transport.abort()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a client that is gone."""
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what a client says."""
        self._heard = self.loop.time()
        if self.timeout_keep_alive_task is not None and self.conn.their_state is h11.IDLE:
            self._begun = self._heard  # the first word of a further request
        super().data_received(data)

    def resume_writing(self) -> None:
        """Go on sending to a client that takes it."""
        self._taken = self.loop.time()
        super().resume_writing()

    # -- slow clients -----------------------------------------------------------------------------

    def _look(self) -> None:
        """Look at the client now and then, and drop it when it is overdue."""
        if self._is_overdue(self.loop.time()):
            self.transport.abort()
        else:
            self._watch = self.loop.call_later(self.patience.tick, self._look)

    def _is_overdue(self, now: float) -> bool:
        patience, they = self.patience, self.conn.their_state
        if self._takes_nothing(now):
            return True
        if they is h11.IDLE:  # between requests it is keep-alive that runs out
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
        """Serve one request, unless it is refused for its head or for want of room."""

        async def dated(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [_date(), *message["headers"]]
            await send(message)

        refused = self._refusal(scope)
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
        """Answer what is no HTTP, or has too long a head, in the error envelope, and hang up."""
        error = sys.exception()
        too_long = isinstance(error, h11.RemoteProtocolError) and error.error_status_hint == 431
        refused = _too_long(self.most_headers, self.most_head_bytes) if too_long else _NO_HTTP
        if self.cycle is not None:
            self.cycle.disconnected = True  # whatever is under way is not answered any more
            self.cycle.message_event.set()
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
    """Whether a body's length is said so that a proxy in front may understand another request.

    That is one with `Content-Length` beside `Transfer-Encoding`, or chunked in HTTP/1.0 (RFC 9112,
    section 6.1).
    """
    names = {name for name, _ in scope["headers"]}
    if b"transfer-encoding" not in names:
        return False
    return b"content-length" in names or scope["http_version"] == "1.0"


def _date() -> tuple[bytes, bytes]:
    """The header that says when an answer was made, in real time (RFC 9110, section 6.6.1)."""
    return b"date", formatdate(usegmt=True).encode()


def _too_long(headers: int, size: int) -> Refused:
    text = f"A request's head must not have more than {headers} headers or {size} bytes"
    return Refused(431, "HEADERS_TOO_LARGE", [text])
