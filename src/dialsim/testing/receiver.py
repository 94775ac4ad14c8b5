"""Webhook receiver on a local port that records requests and returns prepared answers.

python -m dialsim.testing.receiver --port 8500    # as a separate process
"""

from __future__ import annotations

import argparse
import json
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self

from dialsim.errors import DialsimError
from dialsim.interface.arguments import checked

CONTROL = "/-/"
"""Prefix of paths that are not recorded, to control a receiver in another process: GET requests,
PUT answers.
"""


@checked(DialsimError)
@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to a request: status and body, after `delay` seconds.

    With `then="reset"` the connection breaks in the middle of the reply; with "endless" the body
    never ends. `first` is called before the answer, in the receiver's thread.

    >>> dialsim.testing.Answer(503, delay=0.5).status
    503
    """

    status: int = 200
    delay: float = 0.0
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    then: Literal["close", "reset", "endless"] = "close"
    first: Callable[[ReceivedRequest], object] | None = None


@checked(DialsimError)
@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """Request as received; `at` is in seconds of `time.monotonic`."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float

    @property
    def json(self) -> Any:
        """Decoded body."""
        return json.loads(self.body)


@checked(DialsimError)
class Receiver:
    """Receiver from its creation until `stop`, or the end of its `with` block.

    Each request gets the next of the prepared answers, or `otherwise` if none is left. `requests`
    are all requests, in the order in which they were read.

    >>> from urllib.request import urlopen
    >>> with dialsim.testing.Receiver() as receiver:
    ...     receiver.answer(dialsim.testing.Answer(202))
    ...     status = urlopen(receiver.url, b'{"type": "test"}').status
    >>> status, receiver.requests[0].json
    (202, {'type': 'test'})
    """

    def __init__(self, port: int = 0, otherwise: Answer | None = None) -> None:
        """Listen on a port of 127.0.0.1; 0 selects a free one.

        Raises DialsimError if the port is taken.
        """
        if not 0 <= port < 2**16:
            raise DialsimError(f"port must be from 0 to 65535, not {port}")
        self.otherwise = otherwise or Answer()
        self.requests: list[ReceivedRequest] = []
        self._answers: deque[Answer] = deque()
        self._news = threading.Condition()
        self._stopping = threading.Event()
        self._port = port
        self._server: _Server | None = None
        self.accept()

    @property
    def url(self) -> str:
        """URL for webhooks to this receiver."""
        return f"http://127.0.0.1:{self._port}/webhook"

    def answer(self, *answers: Answer) -> None:
        """Prepare the answers to the next requests, in this order."""
        # Appending to a deque is atomic, so that the server's threads need no lock for it.
        self._answers.extend(answers)

    def accept(self) -> None:
        """Accept connections (again)."""
        if self._server is None:
            try:
                self._server = _Server(self, self._port)
            except OSError as error:
                text = f"port {self._port} of 127.0.0.1 is not available: {error.strerror}"
                raise DialsimError(text) from None
            # Kept, so that `accept` after `refuse` listens on the same port.
            self._port = self._server.server_address[1]
            threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def refuse(self) -> None:
        """Refuse connections from now on; requests under way are still answered."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def wait_for(self, count: int, seconds: float = 10.0) -> list[ReceivedRequest]:
        """Wait for a number of requests, and return them. Raises DialsimError after `seconds`."""
        with self._news:
            if not self._news.wait_for(lambda: len(self.requests) >= count, seconds):
                raise DialsimError(
                    f"{len(self.requests)} requests came in {seconds} seconds, not {count}"
                )
            return self.requests[:]

    def stop(self) -> None:
        """Stop the receiver, and break off replies under way."""
        self._stopping.set()
        self.refuse()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_failure: object) -> None:
        self.stop()

    def _take(self, request: ReceivedRequest) -> Answer:
        with self._news:
            self.requests.append(request)
            self._news.notify_all()
            return self._answers.popleft() if self._answers else self.otherwise


class _Server(ThreadingHTTPServer):
    # A client that keeps its connection open must not keep the test process alive.
    daemon_threads = True
    block_on_close = False
    # The default of 5 drops connections when many results are sent at once.
    request_queue_size = 128

    def __init__(self, receiver: Receiver, port: int) -> None:
        self.receiver = receiver
        super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def handle_any(self) -> None:
        """Record a request, and send the prepared answer."""
        receiver = self.server.receiver
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if len(body) < length:  # the client has disconnected
            self.close_connection = True
            return
        if self.path.startswith(CONTROL):
            self._control(receiver, body)
            return
        headers = dict(self.headers.items())
        request = ReceivedRequest(self.command, self.path, headers, body, time.monotonic())
        answer = receiver._take(request)
        if answer.first is not None:
            answer.first(request)
        if not receiver._stopping.wait(answer.delay):
            self._reply(answer)

    do_GET = do_POST = do_PUT = handle_any  # noqa: N815 - names that http.server calls

    def log_message(self, *_arguments: object) -> None:
        """Suppress the log."""

    def _reply(self, answer: Answer) -> None:
        content = answer.body.encode()
        # A length beyond the body makes the client wait for the rest until the reset.
        length = len(content) + 1_000 if answer.then == "reset" else len(content)
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.then == "endless":
            self.send_header("Transfer-Encoding", "chunked")
        elif answer.status not in (204, 304):
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(content if answer.then != "endless" else b"")
        self.wfile.flush()
        if answer.then == "endless":
            while not self.server.receiver._stopping.wait(0.001):
                self.wfile.write(b"400\r\n" + b"x" * 1024 + b"\r\n")
        elif answer.then == "reset":
            # SO_LINGER with time 0: closing sends a reset at once.
            no_goodbye = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_goodbye)
            self.connection.close()
            self.close_connection = True

    def _control(self, receiver: Receiver, body: bytes) -> None:
        if self.command == "PUT":
            receiver._answers.clear()
            receiver.answer(*(Answer(**one) for one in json.loads(body)))
        told = [{**asdict(request), "body": request.body.decode()} for request in receiver.requests]
        content = json.dumps(told).encode()
        self.send_response_only(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def main() -> None:
    """Run a receiver until interrupted; the first printed line is the URL."""
    parser = argparse.ArgumentParser(
        prog="python -m dialsim.testing.receiver",
        description="Receive webhooks. GET /-/requests returns the requests so far. PUT "
        '/-/answers sets the next answers, such as [{"status": 500}, {"delay": 11}].',
    )
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    with Receiver(parser.parse_args().port) as receiver:
        print(receiver.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
