"""Every POST made and every payload kept, as rows that are made when they are asked for."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import Field, JsonValue

from dialsim.engine.identity import call_ids
from dialsim.engine.post_log import Post, PostKey
from dialsim.interface.errors import Refused
from dialsim.interface.instants import format_instant
from dialsim.interface.model import InstantText, UuidText, WireModel
from dialsim.interface.payload import NOT_SENT, UNDER_WAY, accepted, response_json
from dialsim.results.run_view import RunView
from dialsim.results.timeline import Position
from dialsim.sandbox.live_engine import LiveEngine
from dialsim.sandbox.outbox import Outbox
from dialsim.webhooks.bodies import Body
from dialsim.webhooks.deliveries import CampaignStream, Stream, urls
from dialsim.webhooks.messages import sequence

Fate = Literal["delivered", "failed", "kept", "underWay"]


class WebhookRow(WireModel):
    """A POST of the webhook, or a payload that had no URL to go to and was kept."""

    n: int = Field(description="Its place in the list, from 1; it stays.")
    at: InstantText
    organization: str = Field(description="Its name.")
    campaign: str = Field(description="Its name.")
    campaign_id: UuidText
    call_id: UuidText
    result: int = Field(
        description="0: the call's first result; n: that of the campaign's n-th re-analysis."
    )
    attempt: int | None = Field(description="null where the payload was kept.")
    url: str | None = Field(description="null where the payload was kept.")
    status: Fate
    response: int | str | None = Field(
        description="An HTTP status, or timeout, refused or broken; null while there is none."
    )
    received: bool = Field(description="Whether a 2xx came back.")
    resent: bool = Field(description="Whether somebody asked for it.")
    body: dict[str, JsonValue]


class _Told(NamedTuple):
    """What a row of the list tells of: a message of a campaign's part of the stream."""

    place: Position
    part: CampaignStream
    message: int

    @property
    def key(self) -> PostKey:
        """The key of the result."""
        calls, call = self.part.calls, int(self.part.messages.call[self.message])
        result = int(self.part.messages.result[self.message])
        return PostKey(*self.place, int(calls.recipient[call]), int(calls.call[call]), result)


class _List(NamedTuple):
    """The list as it was in some state."""

    state: tuple[int, ...]
    places: list[Position]
    stream: Stream

    def told(self, row: int) -> _Told:
        """What a row tells of."""
        place = int(self.stream.place[row])
        message = int(self.stream.posts.message[row])
        return _Told(self.places[place], self.stream.parts[place], message)


class WebhookTable:
    """POSTs and kept payloads in the order in which they left, all organizations together.

    New ones come behind the others. The list is read from the trace, anew when anything has
    happened since it was last asked for.
    """

    def __init__(self, simulation: LiveEngine, outbox: Outbox) -> None:
        self._simulation = simulation
        self._outbox = outbox
        self._kept: _List | None = None

    def __len__(self) -> int:
        return len(self._list().stream.posts)

    def find(
        self,
        status: str | None = None,
        place: Position | None = None,
        call: tuple[int, int] | None = None,
    ) -> NDArray[np.int64]:
        """The rows (from 0) that are wanted; filters hold together, None stands for all.

        `status` is a `Fate`, or a response as it is shown; `place` is a campaign's, and `call` a
        recipient (from 0) of that campaign and the number (from 1) of a call.
        """
        _, places, stream = self._list()
        chosen = np.ones(len(stream.posts), dtype=bool)
        if status is not None:
            chosen &= _having(stream.posts.response, status)
        if place is not None:
            chosen &= stream.place == places.index(place)
        rows = np.flatnonzero(chosen)
        if place is None or call is None:
            return rows
        part = stream.parts[places.index(place)]
        told = part.messages.call[stream.posts.message[rows]]
        wanted = (part.calls.recipient[told] == call[0]) & (part.calls.call[told] == call[1])
        found: NDArray[np.int64] = rows[wanted]
        return found

    def rows(self, rows: NDArray[np.int64]) -> list[WebhookRow]:
        """Some rows (from 0)."""
        bodies = self._list().stream.bodies(rows)
        return [self._row(row, body) for row, body in zip(rows.tolist(), bodies, strict=True)]

    def row_of(self, post: Post) -> int:
        """The row (from 0) of a POST that has left."""
        _, places, stream = self._list()
        chosen = (stream.posts.number == post.number) & (stream.posts.at == post.at)
        rows = np.flatnonzero(chosen & (stream.place == places.index(post.key[:2]))).tolist()
        return next(row for row in rows if self._list().told(row).key == post.key)

    def key(self, n: int) -> PostKey:
        """The result that number `n` (from 1) of the list tells of; 404 if there is none."""
        listed = self._list()
        if not 1 <= n <= len(listed.stream.posts):
            raise Refused(404, "WEBHOOK_NOT_FOUND", ["Webhook not found"])
        return listed.told(n - 1).key

    def body(self, key: PostKey) -> bytes:
        """The body of a result that was sent, or kept."""
        _, places, stream = self._list()
        part = stream.parts[places.index(key[:2])]
        call = part.calls.of(key.recipient)[key.call - 1]
        rows = (part.messages.call == call) & (part.messages.result == key.result)
        return orjson.dumps(next(part.bodies(np.flatnonzero(rows))))

    def _row(self, row: int, body: Body) -> WebhookRow:
        listed, world = self._list(), self._simulation.log.world
        posts, told = listed.stream.posts, listed.told(row)
        key, response = told.key, int(posts.response[row])
        owner = world.organizations[key.organization]
        campaign = owner.campaigns[key.campaign]
        who, number = np.array([key.recipient]), np.array([key.call])
        [call_id] = call_ids(world.seed, key.organization, key.campaign, who, number).tolist()
        return WebhookRow(
            n=row + 1,
            at=format_instant(int(posts.at[row])),
            organization=owner.name,
            campaign=campaign.name,
            campaign_id=campaign.id,
            call_id=call_id.decode(),
            result=key.result,
            attempt=int(posts.number[row]) or None,
            url=self._url(row, told),
            status=_fate(response),
            response=response_json(response),
            received=bool(posts.received[row]),
            resent=bool(posts.resent[row]),
            body=orjson.loads(orjson.dumps(body)),
        )

    def _url(self, row: int, told: _Told) -> str | None:
        """Where a POST went: to the URL of the result's first one, unless it was resent (W6)."""
        trace, posts, messages = self._simulation.log, self._list().stream.posts, told.part.messages
        if posts.response[row] == NOT_SENT:
            return None
        if posts.resent[row]:
            sent = sequence(trace, posts.at[[row]], posts.turn[[row]])
        else:
            sent = sequence(trace, messages.sent_at[[told.message]], messages.turn[[told.message]])
        return urls(trace, told.place[0], sent)[0]

    def _list(self) -> _List:
        log = self._simulation.log
        state = (self._simulation.at, log.turn, log.size(), self._outbox.changes)
        if self._kept is None or self._kept.state != state:
            reading = RunView(self._simulation.trace)
            stream = reading.stream
            # a payload that was kept is listed where no POST can come before it any more
            stream.drop(
                (stream.posts.response == NOT_SENT) & (stream.posts.at >= self._outbox.front)
            )
            self._kept = _List(state, [*reading.streams], stream)
        return self._kept


def _fate(response: int) -> Fate:
    if response == NOT_SENT:
        return "kept"
    if response == UNDER_WAY:
        return "underWay"
    return "delivered" if accepted(response) else "failed"


def _having(responses: NDArray[np.int16], status: str) -> NDArray[np.bool_]:
    """Which responses are of a status, as `WebhookTable.find` takes it."""
    fitting = []
    for code in np.unique(responses).tolist():
        shown = response_json(code)
        if status == _fate(code) or (shown is not None and status == str(shown)):
            fitting.append(code)
    return np.isin(responses, fitting)
