"""Events for programs: a stream of server-sent events, or page by page."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Callable, Iterator
from secrets import token_hex
from time import monotonic
from typing import Annotated, Any, Literal

import numpy as np
import orjson
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from dialsim.engine.trace import CHANGES
from dialsim.interface.instants import format_instant
from dialsim.interface.model import InstantText, UuidText, WireModel
from dialsim.interface.payload import NOT_SENT, UNDER_WAY, accepted, response_json
from dialsim.interface.status import CallStatus, CampaignStatus, Phase
from dialsim.sandbox import failures as fail
from dialsim.sandbox.access import PREFIX
from dialsim.sandbox.campaign_view import CampaignView
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.http.answers import refuse_body
from dialsim.sandbox.http.operation import Operations, operation
from dialsim.sandbox.tables import TransitionTable
from dialsim.scenario.fields import Text

STREAM = "text/event-stream"
PAGE = 500
"""Events per chunk of the stream, and per page."""
MOST_STREAMS = 64
_INTERVAL = 0.05  # seconds between checks for new events
_HEARTBEAT = 15.0  # seconds between keep-alive messages of a silent stream
_ROW_BITS = 40
_CAMPAIGNS, _POSTS, _FIRST_TABLE = 0, 1, 2


class _Event(WireModel):
    """Something that happened."""

    id: str = Field(description="Its place: what comes after it is asked for by it.")
    at: InstantText
    organization: str = Field(description="Its name.")
    campaign: str = Field(description="Its name.")
    campaign_id: UuidText


class CallEvent(_Event):
    """A call changed its status or its phase."""

    type: Literal["call"] = "call"
    call_id: UuidText
    recipient_id: UuidText
    call: int = Field(description="1, 2, … of this recipient.")
    from_status: CallStatus | None
    to_status: CallStatus
    phase: Phase | None
    cause: str


class CampaignEvent(_Event):
    """A campaign changed its status."""

    type: Literal["campaign"] = "campaign"
    from_status: CampaignStatus
    to_status: CampaignStatus
    cause: str


class WebhookEvent(_Event):
    """Event: a POST of the webhook was answered, or failed."""

    type: Literal["webhook"] = "webhook"
    call_id: UuidText
    result: int
    attempt: int
    status: Literal["delivered", "failed"]
    response: int | str
    resent: bool


Event = CallEvent | CampaignEvent | WebhookEvent


class EventPage(WireModel):
    """Events in the order in which they happened."""

    events: list[Event]
    last: str = Field(description="The id to go on from.")
    more: bool = Field(description="Whether there are more by now.")


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

        # within an instant a campaign changes before its calls do, but ends after them (C3)
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

    def events(self, start: int, stop: int) -> list[Event]:
        """Some events, by their places from 0."""
        codes = np.array(self._order[start:stop], dtype=np.int64)
        sources, rows = codes >> _ROW_BITS, codes & ((1 << _ROW_BITS) - 1)
        found: dict[int, Event] = {}
        for source in np.unique(sources).tolist():
            places = np.flatnonzero(sources == source)
            made = self._made(
                source, rows[places], [self.id(start + n + 1) for n in places.tolist()]
            )
            found.update(zip(places.tolist(), made, strict=True))
        return [found[place] for place in range(len(codes))]

    def id(self, number: int) -> str:
        """Return the id of an event, given its number from 1; 0 is before the first event."""
        return f"{self.run}-{number}"

    def place(self, identifier: str) -> int | None:
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
        for view in listed:  # added campaigns come after the campaigns of the scenario
            if not any(view is known for known in self._views):
                self._views.append(view)
                self._read.append(0)

    def _made(self, source: int, rows: np.ndarray, ids: list[str]) -> Iterator[Event]:
        if source == _CAMPAIGNS:
            return (self._campaign(row, id) for row, id in zip(rows.tolist(), ids, strict=True))
        if source == _POSTS:
            return (self._post(row, id) for row, id in zip(rows.tolist(), ids, strict=True))
        return self._calls(self._views[source - _FIRST_TABLE], rows, ids)

    def _about(self, view: CampaignView, at: int, identifier: str) -> dict[str, Any]:
        return {
            "id": identifier,
            "at": format_instant(at),
            "organization": view.part.owner.name,
            "campaign": view.campaign.block.name,
            "campaign_id": view.identifier,
        }

    def _campaign(self, row: int, identifier: str) -> CampaignEvent:
        change = self._core.simulation.log.campaigns[row]
        view = self._core.accounts[change.organization].views[change.campaign]
        return CampaignEvent.model_construct(
            None,
            **self._about(view, change.at, identifier),
            from_status=change.from_status,
            to_status=change.to_status,
            cause=change.cause,
        )

    def _post(self, row: int, identifier: str) -> WebhookEvent:
        post = self._core.outbox.log.row(row)
        view = self._core.accounts[post.key.organization].views[post.key.campaign]
        call = np.array([view.calls.of(post.key.recipient)[post.key.call - 1]])
        return WebhookEvent.model_construct(
            None,
            **self._about(view, post.at, identifier),
            call_id=view.call_ids(call)[0].decode(),
            result=post.key.result,
            attempt=post.number,
            status="delivered" if accepted(post.response) else "failed",
            response=response_json(post.response) or "",
            resent=post.resent,
        )

    def _calls(self, view: CampaignView, rows: np.ndarray, ids: list[str]) -> Iterator[CallEvent]:
        first = int(rows[0])  # rows of one source stand in their order, without gaps
        changes = TransitionTable(view).rows(first, first + len(rows), self._core.at)
        who = changes.recipient
        calls = np.array([view.calls.of(r)[c - 1] for r, c in zip(who, changes.call, strict=True)])
        named = zip(view.call_ids(calls), view.recipient_ids(who), ids, strict=True)
        for place, (call_id, recipient_id, identifier) in enumerate(named):
            change = CHANGES[changes.kind[place]]
            yield CallEvent.model_construct(
                None,
                **self._about(view, int(changes.at[place]), identifier),
                call_id=call_id.decode(),
                recipient_id=recipient_id.decode(),
                call=int(changes.call[place]),
                from_status=change.from_status,
                to_status=change.to_status,
                phase=change.phase,
                cause=change.cause,
            )


class EventQuery(WireModel):
    """Starting point of a list of events."""

    after: Annotated[Text, Field()] | None = Field(
        default=None,
        description="The id of the last event that is known; 0: from the start. Left out: a page "
        "begins at the start, a stream now. Of a stream Last-Event-ID says the same.",
        examples=["0"],
    )


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


class EventOperations(Operations):
    """Operations that publish events to programs."""

    def __init__(self, core: SandboxCore) -> None:
        super().__init__(core)
        self._log: EventLog | None = None
        self._chunks: dict[tuple[str, int], bytes] = {}
        self._streams = 0

    @operation("GET", f"{PREFIX}/events", fail.EVENTS_GONE, fail.TOO_MANY_STREAMS, answer=EventPage)
    async def list_events(self, query: EventQuery, request: Request) -> EventPage | Response:
        """List what happened, or follow it.

        Changes of calls and campaigns, and webhooks that came back, up to 500 a page. A request
        that accepts text/event-stream gets a stream of them as they happen, with the state of the
        clock whenever it changes.
        """
        await refuse_body(request)
        accepts = STREAM in request.headers.get("accept", "")
        if accepts and request.method != "HEAD":
            if self._streams >= MOST_STREAMS:
                raise fail.TOO_MANY_STREAMS.refused()
            self._streams += 1  # in the step of the check: others come while a stream begins
            after = request.headers.get("last-event-id", query.after)
            return _Stream(self._stream(after), self._ended)
        log = self._caught_up()
        start = log.place("0" if query.after is None else query.after)
        if start is None:
            raise fail.EVENTS_GONE.refused()
        stop = min(start + PAGE, len(log))
        return EventPage.model_construct(
            None, events=log.events(start, stop), last=log.id(stop), more=stop < len(log)
        )

    def _caught_up(self) -> EventLog:
        """The log of the present run, with all that has happened."""
        if self._log is None or self._log.epoch != self.core.epoch:
            self._log = EventLog(self.core)
            self._chunks.clear()
        self._log.catch_up()
        return self._log

    def _ended(self) -> None:
        self._streams -= 1

    async def _stream(self, after: str | None) -> AsyncIterator[bytes]:
        """Yield events as they happen; a slow client gets them later and delays no other client."""
        yield b"retry: 1000\n\n"
        log = self._caught_up()
        known = len(log) if after is None else log.place(after)
        run, place, clock, spoke = log.run, known or 0, b"", monotonic()
        if known is None:
            place = len(log)
            yield self._reset(log, place)
        while True:
            log = self._caught_up()
            if log.run != run:
                run, place = log.run, len(log)
                yield self._reset(log, place)
            while place < len(log) and self.core.epoch == log.epoch:
                chunk, place = self._chunk(log, place)
                yield chunk  # it takes until the client has room for it
                spoke = monotonic()
            if (now := self._clock()) != clock:
                clock, spoke = now, monotonic()
                yield clock
            if monotonic() - spoke > _HEARTBEAT:
                spoke = monotonic()
                yield b": alive\n\n"
            await asyncio.sleep(_INTERVAL)

    def _chunk(self, log: EventLog, place: int) -> tuple[bytes, int]:
        """Return the next events as bytes, and the index after them; clients share the bytes."""
        stop = min(place - place % PAGE + PAGE, len(log))
        key = log.run, place << 32 | stop
        if key not in self._chunks:
            if len(self._chunks) >= MOST_STREAMS:
                del self._chunks[next(iter(self._chunks))]
            self._chunks[key] = b"".join(
                _sent(one.type, one.model_dump(mode="json", by_alias=True), one.id)
                for one in log.events(place, stop)
            )
        return self._chunks[key], stop

    def _clock(self) -> bytes:
        clock = self.core.clock
        moving = clock.advancing or clock.speed is not None
        state = {
            "now": format_instant(self.core.at),
            "mode": "manual" if clock.speed is None else "running",
            "speed": clock.speed,
            "status": "advancing" if moving else "ready",
        }
        return _sent("clock", state)

    def _reset(self, log: EventLog, place: int) -> bytes:
        return _sent("reset", {"now": format_instant(self.core.at)}, log.id(place))


def _sent(kind: str, data: object, identifier: str | None = None) -> bytes:
    name = b"" if identifier is None else b"id: %s\n" % identifier.encode()
    return b"event: %s\n%sdata: %s\n\n" % (kind.encode(), name, orjson.dumps(data))
