"""A service whose every answer a test decides, over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass
class Reply:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})


@contextmanager
def stub(reply: Callable[[str], Reply]) -> Iterator[str]:
    """Serve what `reply` makes of a path; yields the URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = reply(self.path)
            self.send_response_only(answer.status)
            own = {"Date": self.date_time_string(), "Content-Length": str(len(answer.body))}
            for name, value in (own | answer.headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
