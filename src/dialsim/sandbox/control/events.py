"""Events for programs: a stream of server-sent events."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from secrets import token_hex
from time import monotonic
from typing import Any

import numpy as np
import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from dialsim.engine.trace import CHANGES
from dialsim.interface.instants import format_instant
from dialsim.interface.model import invalid
from dialsim.interface.payload import NOT_SENT, UNDER_WAY, accepted, response_json
from dialsim.sandbox import failures as fail
from dialsim.sandbox.access import PREFIX
from dialsim.sandbox.campaign_view import CampaignView
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.tables import TransitionTable

STREAM = "text/event-stream"
MOST_STREAMS = 64
_CHUNK = 500  # events
_INTERVAL = 0.05  # seconds between checks for new events
_HEARTBEAT = 15.0  # seconds between keep-alive messages of a silent stream
_ROW_BITS = 40
_CAMPAIGNS, _POSTS, _FIRST_TABLE = 0, 1, 2


class EventLog:
    """Events of one run, numbered from 1 in the order in which they were seen.

    Only this order is stored. Events are read from the trace on request, so slow or returning
    clients get all events, and no client has a queue in memory. New events are sorted by time; a
    POST is new when its response has arrived.
    """

    def __init__(self, core: SandboxCore) -> None:
        self._core = core
        self.run, self.epoch = token_hex(4), core.epoch
        self._order = array("q")  # by event: its source, and the row there
        self._views: list[CampaignView] = []  # sources from `_FIRST_TABLE` on
        self._read: list[int] = [0, 0]  # rows of each source
        self._under_way: list[int] = []  # rows of the log of POSTs

    def __len__(self) -> int:
        return len(self._order)

    def catch_up(self) -> None:
        """Read the events since the last update."""
        core, trace = self._core, self._core.simulation.log
        instants, codes = list[np.ndarray](), list[np.ndarray]()

        def note(source: int, rows: np.ndarray, at: np.ndarray) -> None:
            instants.append(at)
            codes.append(np.int64(source << _ROW_BITS) | rows.astype(np.int64))

        # within an instant, a campaign changes before its calls, but ends after them (C3)
        known = self._read[_CAMPAIGNS]
        changes = trace.campaigns[known:]
        self._read[_CAMPAIGNS] += len(changes)
        changed_at = np.array([change.at for change in changes], dtype=np.int64)
        final = np.array([change.to_status.final for change in changes], dtype=bool)
        note(_CAMPAIGNS, known + np.flatnonzero(~final), changed_at[~final])
        self._find_views()
        for source, view in enumerate(self._views, _FIRST_TABLE):
            view.catch_up()
            table, since = TransitionTable(view), self._read[source]
            count = table.count(core.at)
            if count > since:
                note(source, np.arange(since, count), table.rows(since, count, core.at).at)
                self._read[source] = count
        note(_CAMPAIGNS, known + np.flatnonzero(final), changed_at[final])
        log = core.outbox.log
        self._under_way += range(self._read[_POSTS], len(log))
        self._read[_POSTS] = len(log)
        response = {row: log.row(row).response for row in self._under_way}
        self._under_way = [row for row, code in response.items() if code == UNDER_WAY]
        if over := [row for row, code in response.items() if code not in (UNDER_WAY, NOT_SENT)]:
            note(_POSTS, np.array(over), np.array([log.row(row).at for row in over]))
        at, code = np.concatenate(instants), np.concatenate(codes)
        self._order.frombytes(code[np.argsort(at, kind="stable")].tobytes())

    def events(self, start: int, stop: int) -> list[dict[str, Any]]:
        """Return a range of events, by index from 0, in the form that is sent."""
        codes = np.array(self._order[start:stop], dtype=np.int64)
        sources, rows = codes >> _ROW_BITS, codes & ((1 << _ROW_BITS) - 1)
        found: dict[int, dict[str, Any]] = {}
        for source in np.unique(sources).tolist():
            indexes = np.flatnonzero(sources == source)
            found.update(zip(indexes.tolist(), self._made(source, rows[indexes]), strict=True))
        return [{"id": self.id(start + index + 1), **found[index]} for index in range(len(codes))]

    def id(self, number: int) -> str:
        """Return the id of an event, given its number from 1; 0 is before the first event."""
        return f"{self.run}-{number}"

    def count_up_to(self, identifier: str) -> int | None:
        """Return the number of events up to an id; None for an unknown id or another run."""
        run, _, number = identifier.rpartition("-")
        if identifier == "0":
            return 0
        if run != self.run or not (number.isascii() and number.isdecimal()):
            return None
        return int(number) if int(number[:18]) <= len(self) else None

    # -- the rest ---------------------------------------------------------------------------------

    def _find_views(self) -> None:
        listed = [view for account in self._core.accounts for view in account.views]
        # Campaigns may be added to any organization, so new views may be anywhere in the list.
        # Sources are therefore numbered in the order in which they are found.
        for view in listed:
            if not any(view is known for known in self._views):
                self._views.append(view)
                self._read.append(0)

    def _made(self, source: int, rows: np.ndarray) -> Iterable[dict[str, Any]]:
        if source == _CAMPAIGNS:
            return map(self._campaign, rows.tolist())
        if source == _POSTS:
            return map(self._post, rows.tolist())
        return self._calls(self._views[source - _FIRST_TABLE], rows)

    def _about(self, kind: str, view: CampaignView, at: int) -> dict[str, Any]:
        return {
            "type": kind,
            "at": format_instant(at),
            "organization": view.part.owner.name,
            "campaign": view.campaign.block.name,
            "campaignId": view.identifier,
        }

    def _campaign(self, row: int) -> dict[str, Any]:
        change = self._core.simulation.log.campaigns[row]
        view = self._core.accounts[change.organization].views[change.campaign]
        return self._about("campaign", view, change.at) | {
            "fromStatus": change.from_status,
            "toStatus": change.to_status,
            "cause": change.cause,
        }

    def _post(self, row: int) -> dict[str, Any]:
        """An event of a POST of the webhook that was answered, or failed."""
        post = self._core.outbox.log.row(row)
        view = self._core.accounts[post.key.organization].views[post.key.campaign]
        call = np.array([view.calls.of(post.key.recipient)[post.key.call - 1]])
        return self._about("webhook", view, post.at) | {
            "callId": view.call_ids(call)[0].decode(),
            "result": post.key.result,
            "attempt": post.number,
            "status": "delivered" if accepted(post.response) else "failed",
            "response": response_json(post.response),
            "resent": post.resent,
        }

    def _calls(self, view: CampaignView, rows: np.ndarray) -> Iterator[dict[str, Any]]:
        # Rows of one source are in their order and without gaps, because each update notes all new
        # rows.
        first = int(rows[0])
        changes = TransitionTable(view).rows(first, first + len(rows), self._core.at)
        who = changes.recipient
        calls = np.array([view.calls.of(r)[c - 1] for r, c in zip(who, changes.call, strict=True)])
        ids = zip(view.call_ids(calls), view.recipient_ids(who), strict=True)
        for index, (call_id, recipient_id) in enumerate(ids):
            change = CHANGES[changes.kind[index]]
            yield self._about("call", view, int(changes.at[index])) | {
                "callId": call_id.decode(),
                "recipientId": recipient_id.decode(),
                "call": int(changes.call[index]),
                "fromStatus": change.from_status,
                "toStatus": change.to_status,
                "phase": change.phase,
                "cause": change.cause,
            }


class _Stream(StreamingResponse):
    """Stream of events that reports its end, also where the client left before it began."""

    def __init__(self, events: AsyncIterator[bytes], ended: Callable[[], None]) -> None:
        super().__init__(events, media_type=STREAM, headers={"Cache-Control": "no-store"})
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


class EventRoutes:
    """Route of the stream of events.

    It has no part in the OpenAPI description: readers of descriptions cannot use an answer that
    never ends.
    """

    def __init__(self, core: SandboxCore) -> None:
        self._core = core
        self._log: EventLog | None = None
        self._streams = 0

    def routes(self) -> list[BaseRoute]:
        """The route."""
        return [Route(f"{PREFIX}/events", self._follow)]

    async def _follow(self, request: Request) -> Response:
        """Stream the events, and the state of the clock whenever it changes."""
        if request.method == "HEAD":
            return Response(media_type=STREAM)
        if unknown := request.query_params.keys() - {"after"}:
            raise invalid(*(f"property {name} should not exist" for name in sorted(unknown)))
        if self._streams >= MOST_STREAMS:
            raise fail.TOO_MANY_STREAMS.refused()
        # Counted together with the check: the stream begins later, and requests in between must not
        # exceed the limit.
        self._streams += 1
        after = request.headers.get("last-event-id", request.query_params.get("after"))
        return _Stream(self._stream(after), self._ended)

    def _caught_up(self) -> EventLog:
        """Return the log of the current run, up to date."""
        if self._log is None or self._log.epoch != self._core.epoch:
            self._log = EventLog(self._core)
        self._log.catch_up()
        return self._log

    def _ended(self) -> None:
        self._streams -= 1

    async def _stream(self, after: str | None) -> AsyncIterator[bytes]:
        """Yield events as they happen; a slow client gets them later and delays no other client."""
        yield b"retry: 1000\n\n"
        log = self._caught_up()
        known = len(log) if after is None else log.count_up_to(after)
        run, index, clock, spoke = log.run, known or 0, b"", monotonic()
        if known is None:
            index = len(log)
            yield self._reset(log, index)
        while True:
            log = self._caught_up()
            if log.run != run:
                run, index = log.run, len(log)
                yield self._reset(log, index)
            while index < len(log) and self._core.epoch == log.epoch:
                events = log.events(index, min(index + _CHUNK, len(log)))
                index += len(events)
                # waits until the client's buffer has room
                yield b"".join(_sent(one["type"], one, one["id"]) for one in events)
                spoke = monotonic()
            if (now := self._clock()) != clock:
                clock, spoke = now, monotonic()
                yield clock
            if monotonic() - spoke > _HEARTBEAT:
                spoke = monotonic()
                yield b": alive\n\n"
            await asyncio.sleep(_INTERVAL)

    def _clock(self) -> bytes:
        clock = self._core.clock
        moving = clock.advancing or clock.speed is not None
        state = {
            "now": format_instant(self._core.at),
            "mode": "manual" if clock.speed is None else "running",
            "speed": clock.speed,
            "status": "advancing" if moving else "ready",
        }
        return _sent("clock", state)

    def _reset(self, log: EventLog, index: int) -> bytes:
        return _sent("reset", {"now": format_instant(self._core.at)}, log.id(index))


def _sent(kind: str, data: object, identifier: str | None = None) -> bytes:
    name = b"" if identifier is None else b"id: %s\n" % identifier.encode()
    return b"event: %s\n%sdata: %s\n\n" % (kind.encode(), name, orjson.dumps(data))
