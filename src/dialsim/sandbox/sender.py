"""The sender: makes the POSTs of the webhook over HTTP (interface, section 6.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

from dialsim.interface.payload import BROKEN, REFUSED, TIMED_OUT, TIMEOUT_MS
from dialsim.sandbox.outbox import Delivery

AT_ONCE = 5
"""The most POSTs under way at once: as many as a plain `http.server` lets wait for being accepted.

Others wait their turn, and their time begins when they leave.
"""
_LONGEST_IDLE = 1  # seconds: a receiver hardly closes a connection that was used just now


class Sender:
    """Takes deliveries to their URLs.

    What comes of a POST is told to `report(delivery, response)`: an HTTP status, or a code of
    `interface.delivery`. `timeout` is in seconds of real time, from connecting to the reply's end.
    """

    def __init__(self, service: str, report: Callable[[Delivery, int], None]) -> None:
        """`service` is the name of the service in the headers."""
        self.timeout = TIMEOUT_MS / 1000
        self._report = report
        self._headers = {
            "Content-Type": "application/json",
            "User-Agent": f"{service}-Webhook/1.0",
            f"X-{service}-Event": "CALL_RESULT",
        }
        self._free = asyncio.Semaphore(AT_ONCE)
        self._under_way: dict[int, asyncio.Task[None]] = {}  # by row of the log
        self._client: httpx.AsyncClient | None = None

    @property
    def busy(self) -> bool:
        """Whether any POST is under way."""
        return bool(self._under_way)

    def take(self, deliveries: Iterable[Delivery]) -> None:
        """Send deliveries on their way; where there are any, an event loop must be running."""
        for delivery in deliveries:
            self._under_way[delivery.row] = asyncio.create_task(self._deliver(delivery))

    async def settled(self) -> None:
        """Wait until no POST is under way, also none that has left meanwhile."""
        while self._under_way:
            done, _ = await asyncio.wait(self._under_way.values())
            for task in done:
                if not task.cancelled():
                    task.result()  # raises a fault of ours

    async def came_back(self, row: int) -> None:
        """Wait until the POST of a row of the log is not under way any more."""
        task = self._under_way.get(row)
        if task is not None:
            await asyncio.wait([task])

    async def close(self) -> None:
        """Break off what is under way, unreported, and give everything back."""
        tasks = [*self._under_way.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._client is not None:
            await self._client.aclose()

    async def _deliver(self, delivery: Delivery) -> None:
        try:
            async with self._free:
                response = await self._make(delivery)
            self._report(delivery, response)
        finally:
            del self._under_way[delivery.row]

    async def _make(self, delivery: Delivery) -> int:
        """Make one POST, or what a fault makes of it; no fault takes any time."""
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
                await self.post(delivery)  # the service knows of one alone
                return response
            case "stale" if delivery.stale is not None:
                response = await self.post(delivery)
                await self.post(replace(delivery, body=delivery.stale))
                return response
        return await self.post(delivery)

    async def post(self, delivery: Delivery) -> int:
        """Send one request; it is answered when the reply is there as a whole, which is dropped."""
        request = self._http.stream(
            "POST", delivery.url, content=delivery.body, headers=self._headers
        )
        try:
            async with asyncio.timeout(self.timeout), request as reply:
                async for _ in reply.aiter_raw():
                    pass
                return reply.status_code
        except TimeoutError:
            return TIMED_OUT
        except (httpx.ConnectError, httpx.UnsupportedProtocol, httpx.InvalidURL):
            return REFUSED
        except httpx.TransportError:
            return BROKEN

    @property
    def _http(self) -> httpx.AsyncClient:
        """The client, made when it is first needed; it reads no settings of its surroundings."""
        if self._client is None:
            self._client = httpx.AsyncClient(
                timeout=None,
                trust_env=False,
                limits=httpx.Limits(
                    max_keepalive_connections=AT_ONCE, keepalive_expiry=_LONGEST_IDLE
                ),
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            )
        return self._client


class SilentSender(Sender):
    """Has no POST leave: each counts as answered with 200."""

    async def post(self, delivery: Delivery) -> int:  # noqa: ARG002 (nothing is sent)
        """Send nothing."""
        return 200
