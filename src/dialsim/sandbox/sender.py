"""The sender: makes the POSTs of the webhook over HTTP (interface, section 6.2).

A week of results passes in seconds, so a POST may take only a fraction of a millisecond of
processor time. With kept connections and a body of 1.5 kB, a POST takes httpx 2 ms, httpcore 1.4,
aiohttp 0.35, h11 on asyncio's streams 0.3, and httptools on an asyncio protocol 0.11. Few parts of
HTTP are needed: a request of known length, and the status of the reply.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from ssl import SSLContext
from typing import NamedTuple

import httptools
import httpx

from dialsim.interface.payload import BROKEN, REFUSED, TIMED_OUT, TIMEOUT_MS
from dialsim.sandbox.access import Destinations
from dialsim.sandbox.outbox import Delivery
from dialsim.scenario.service import Service

LOOKUP_SECONDS = 5  # a test suite must not wait for one failing lookup per result
_LONGEST_IDLE = 1  # seconds: a receiver hardly closes a connection that was used just now
_NEXT_ADDRESS = 2  # seconds until the next address of a name is tried
_SWITCHING_PROTOCOLS = 101  # the only status below 200 that is a final reply


class Sender:
    """Sends deliveries to their URLs, up to `at_once` at a time.

    Deliveries in excess wait their turn, and their time begins when they leave. The outcome of a
    POST goes to `report(delivery, response)`: an HTTP status, or a code of `interface.payload`.
    `timeout` is in seconds of real time, from connecting to the end of the reply.
    """

    def __init__(
        self,
        service: Service,
        destinations: Destinations,
        report: Callable[[Delivery, int], None],
    ) -> None:
        self.timeout = TIMEOUT_MS / 1000
        self.at_once = service.webhook_concurrency
        self._destinations = destinations
        self._lookups = Lookups()
        self._report = report
        # The headers of the service (interface, section 6.2); its client is named after it.
        self._headers = {
            "Accept": "*/*",
            "Accept-Encoding": "gzip, deflate",
            "Connection": "keep-alive",
            "Content-Type": "application/json",
            "User-Agent": f"{service.name}-Webhook/1.0",
            f"X-{service.name}-Event": "CALL_RESULT",
        }
        self._waiting: deque[Delivery] = deque()
        self._under_way = 0  # including deliveries that wait
        self._workers: set[asyncio.Task[None]] = set()
        self._reporting = False
        self._progress = asyncio.Event()
        self._fault: Exception | None = None
        self._targets: dict[str, _Target] = {}
        self._idle: list[tuple[_Target, _Connection]] = []  # most recently used last
        self._is_closed = False

    @property
    def busy(self) -> bool:
        """True while a POST is under way."""
        return self._under_way > 0

    def take(self, deliveries: Iterable[Delivery]) -> None:
        """Start to send deliveries; unless there are none, an event loop must be running."""
        for delivery in deliveries:
            self._waiting.append(delivery)
            self._under_way += 1
        # the reporting task continues with the next POST
        more = len(self._waiting) - self._reporting
        for _ in range(min(more, self.at_once - len(self._workers))):
            worker = asyncio.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    async def progress(self) -> None:
        """Wait until a POST has ended, or the sender is closed; raises internal errors."""
        if self._fault is None:
            self._progress.clear()
            await self._progress.wait()
        if self._fault is not None:
            raise self._fault

    async def settled(self) -> None:
        """Wait until no POST is under way, including POSTs that leave during the wait."""
        while self.busy:
            await self.progress()

    async def close(self) -> None:
        """Cancel POSTs under way without a report, and close everything."""
        self._is_closed = True
        workers = [*self._workers]
        for worker in workers:
            worker.cancel()
        if workers:
            await asyncio.wait(workers)
        for _, connection in self._idle:
            connection.close()
        self._idle.clear()
        # Tasks that wait for progress wake up and see that the sender is closed.
        self._progress.set()

    async def _work(self) -> None:
        """Make one POST after the other while any waits."""
        try:
            while self._waiting:
                delivery = self._waiting.popleft()
                response = await self._make(delivery)
                self._under_way -= 1
                self._reporting = True
                try:
                    self._report(delivery, response)
                finally:
                    self._reporting = False
                self._progress.set()
        # A bug of dialsim. It is raised in the caller that waits: a task alone would only log it.
        except Exception as fault:
            self._fault = fault
            self._progress.set()

    async def _make(self, delivery: Delivery) -> int:
        """Send one POST, changed by its fault, if any; no fault takes real time."""
        match delivery.fault:
            case "timeout":
                return TIMED_OUT
            case "refuse":
                return REFUSED
            case "late":
                response = await self.post(delivery)
                return TIMED_OUT if response > 0 else response
            case "twice":
                response = await self.post(delivery)
                # The service itself would make one POST: only the answer to the first one counts.
                await self.post(delivery)
                return response
            case "stale" if delivery.stale is not None:
                response = await self.post(delivery)
                await self.post(replace(delivery, body=delivery.stale))
                return response
        return await self.post(delivery)

    async def post(self, delivery: Delivery) -> int:
        """Send one request and return after the whole reply, whose body is dropped."""
        connection: _Connection | None = None
        try:
            async with asyncio.timeout(self.timeout):
                target = self._target(delivery.url)
                connection = self._kept(target) or await self._connect(target)
                response = await connection.send(target.request(delivery.body))
        except TimeoutError:
            return TIMED_OUT
        except (OSError, httpx.InvalidURL, UnicodeError):
            return REFUSED
        else:
            self._keep(target, connection)
            connection = None
            return response
        finally:
            if connection is not None:
                connection.close()

    # -- connections ------------------------------------------------------------------------------

    def _target(self, url: str) -> _Target:
        if url not in self._targets:
            self._targets[url] = _Target.of(httpx.URL(url), self._headers)
        return self._targets[url]

    async def _connect(self, target: _Target) -> _Connection:
        """Open a connection at the first address of the host that answers.

        Raises OSError if there is none, none may be called, or the certificate is wrong.
        """
        found = await self._lookups.addresses(target.host, target.port)
        left = [one for one in found if self._destinations.permits(target.host, one)]
        while left:
            address = left.pop(0)
            try:
                async with asyncio.timeout(_NEXT_ADDRESS if left else None):
                    _, connection = await asyncio.get_running_loop().create_connection(
                        _Connection,
                        address,
                        target.port,
                        ssl=self._encryption if target.is_encrypted else None,
                        server_hostname=target.host if target.is_encrypted else None,
                    )
                    return connection
            except OSError:
                if not left:
                    raise
        raise OSError(f"no address of {target.host} may be called")

    @cached_property
    def _encryption(self) -> SSLContext:
        """TLS context that verifies certificates like httpx, without environment variables."""
        context = httpx.create_ssl_context(trust_env=False)
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _kept(self, target: _Target) -> _Connection | None:
        """A connection to the same server that was used just now."""
        now = asyncio.get_running_loop().time()
        for known, connection in [*self._idle]:
            if not connection.is_open or now - connection.used_at > _LONGEST_IDLE:
                connection.close()
                self._idle.remove((known, connection))
        for index in range(len(self._idle) - 1, -1, -1):
            if self._idle[index][0].server == target.server:
                return self._idle.pop(index)[1]
        return None

    def _keep(self, target: _Target, connection: _Connection) -> None:
        if not connection.is_open:
            return
        if self._is_closed:
            connection.close()
            return
        self._idle.append((target, connection))
        if len(self._idle) > self.at_once:
            self._idle.pop(0)[1].close()


class SilentSender(Sender):
    """Sender that sends nothing: each POST counts as answered with 200."""

    async def post(self, delivery: Delivery) -> int:  # noqa: ARG002 (nothing is sent)
        """Send nothing."""
        return 200


class _Target(NamedTuple):
    """Parsed URL; `head` is the head of a request, without the length of its body."""

    is_encrypted: bool
    host: str
    port: int
    head: bytes

    @classmethod
    def of(cls, url: httpx.URL, headers: dict[str, str]) -> _Target:
        """Return the target of a URL; raises httpx.InvalidURL for an unusable URL."""
        if url.scheme not in ("http", "https") or not url.host:
            raise httpx.InvalidURL(f"{url} can't be asked for")
        if url.userinfo:
            secret = b64encode(f"{url.username}:{url.password}".encode()).decode()
            headers = {**headers, "Authorization": f"Basic {secret}"}
        lines = httpx.Headers({"Host": url.netloc.decode("ascii"), **headers}).raw
        head = b"POST " + url.raw_path + b" HTTP/1.1\r\n"
        head += b"".join(name + b": " + value + b"\r\n" for name, value in lines)
        is_encrypted = url.scheme == "https"
        port = url.port or (443 if is_encrypted else 80)
        return cls(is_encrypted, url.raw_host.decode("ascii"), port, head)

    @property
    def server(self) -> tuple[bool, str, int]:
        """Key of connections that can be shared."""
        return self[:3]

    def request(self, body: bytes) -> bytes:
        """A request with a body."""
        return b"%bContent-Length: %d\r\n\r\n%b" % (self.head, len(body), body)


class _Connection(asyncio.Protocol):
    """Connection for consecutive requests; `used_at` is in loop time."""

    def __init__(self) -> None:
        self.is_open = False
        self.used_at = 0.0
        self._loop = asyncio.get_running_loop()
        self._reply: asyncio.Future[int] | None = None

    def send(self, request: bytes) -> asyncio.Future[int]:
        """Send a request; its future is the status of the whole reply, or `BROKEN`."""
        self._status, self._has_head, self._has_length = 0, False, False
        self._parser = httptools.HttpResponseParser(self)
        self._reply = self._loop.create_future()
        if self.is_open:
            self._transport.write(request)
        else:
            self._end(BROKEN)
        return self._reply

    def close(self) -> None:
        """Hang up at once."""
        self.is_open = False
        self._transport.abort()

    # -- callbacks of the transport ---------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Be ready for a request."""
        assert isinstance(transport, asyncio.Transport)
        self._transport, self.is_open = transport, True

    def data_received(self, data: bytes) -> None:
        """Parse received data; unrequested data closes the connection."""
        if self._reply is None or self._reply.done():
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._end(self._status)
            self.close()
        except httptools.HttpParserError:
            self._end(BROKEN)
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """End a reply without a length (RFC 9112, section 6.3), or fail one in the middle."""
        self.is_open = False
        # Without a length the end of the connection is the end of the reply (RFC 9112, section
        # 6.3).
        is_whole = exc is None and self._has_head and not self._has_length
        self._end(self._status if is_whole else BROKEN)

    # -- callbacks of the parser ------------------------------------------------------------------

    def on_header(self, name: bytes, _value: bytes) -> None:
        """Record a header that gives the length of the body."""
        self._has_length |= name.lower() in (b"content-length", b"transfer-encoding")

    def on_headers_complete(self) -> None:
        """Note the status."""
        self._status = self._parser.get_status_code()
        self._has_head = self._status >= 200

    def on_message_complete(self) -> None:
        """Complete the reply, unless it only announces another reply."""
        if self._status < 200 and self._status != _SWITCHING_PROTOCOLS:
            self._has_length = False
            return
        self.used_at = self._loop.time()
        # The receiver announced that it closes the connection: the next POST would be lost.
        if not self._parser.should_keep_alive():
            self.close()
        self._end(self._status)

    def _end(self, response: int) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_result(response)


class Lookups:
    """Name lookups, each remembered for some seconds, failures as well."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], asyncio.Task[list[str]]] = {}

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host; raises OSError if there is none."""
        server = host, port
        if server not in self._found:
            task = asyncio.create_task(_resolved(host, port))
            self._found[server] = task
            task.add_done_callback(
                lambda done: done.get_loop().call_later(
                    LOOKUP_SECONDS, self._found.pop, server, None
                )
            )
        return await asyncio.shield(self._found[server])


async def _resolved(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, proto=6)  # 6: TCP
    return [*dict.fromkeys(str(server[0]) for *_, server in found)]
