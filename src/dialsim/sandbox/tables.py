"""The tables of a sandbox: calls, their changes, and webhooks, as rows, page by page."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import Field, JsonValue

from dialsim.engine.calls import CALL_STATUSES, TO_STATUS
from dialsim.engine.identity import call_ids
from dialsim.engine.post_log import Post, PostKey
from dialsim.engine.trace import CallRows
from dialsim.errors import Refused
from dialsim.interface.instants import format_instant
from dialsim.interface.model import InstantText, UuidText, WireModel
from dialsim.interface.payload import NOT_SENT, UNDER_WAY, accepted, response_json
from dialsim.interface.status import AgentStatus, CallStatus, Phase
from dialsim.results.campaigns import Position
from dialsim.results.run_view import Catalog, RunView
from dialsim.sandbox.campaign_view import CampaignView
from dialsim.sandbox.live_engine import LiveEngine
from dialsim.sandbox.outbox import Outbox
from dialsim.webhooks.analysis import AnalysisChanges
from dialsim.webhooks.bodies import Body, instants_json
from dialsim.webhooks.deliveries import CampaignStream, Stream, urls
from dialsim.webhooks.messages import Verdict, sequence

if TYPE_CHECKING:
    import pandas as pd

PAGE_SIZE = 100

_PAGE = re.compile(r"0*([1-9][0-9]*)")
_MOST_DIGITS = 12  # a page with more is beyond any list, and may be beyond an integer of JSON
_BEYOND = 10**_MOST_DIGITS


class PageNumber(NamedTuple):
    """A page that was asked for: its number as digits, and counted from 0."""

    digits: str
    place: int

    @property
    def rows(self) -> slice:
        """The rows of a list that are on the page."""
        return slice(self.place * PAGE_SIZE, (self.place + 1) * PAGE_SIZE)


def read_page(text: str | None) -> PageNumber:
    """The page of a query, the first if it names none; 400 if it is no whole number from 1 on."""
    match = _PAGE.fullmatch("1" if text is None else text)
    if match is None:
        raise Refused(400, "VALIDATION_FAILED", ["page must be an integer of 1 or more"])
    digits = match[1]
    return PageNumber(digits, int(digits) - 1 if len(digits) <= _MOST_DIGITS else _BEYOND)


def count_pages(total: int) -> int:
    """How many pages a list has."""
    return -(-total // PAGE_SIZE)


class CallRow(WireModel):
    """A call as it stands: the columns of the calls table, and whom it is for."""

    recipient: int = Field(description="Position in the campaign's list, from 0.")
    recipient_id: UuidText
    tel: str
    call_id: UuidText
    session_id: str
    call: int = Field(description="1, 2, … of this recipient.")
    attempt: int | None
    status: CallStatus
    agent_status: AgentStatus | None
    caller_id: str | None
    voice_key: str | None
    segment: str | None
    created_at: InstantText
    queued_at: InstantText | None
    initiated_at: InstantText | None
    ringing_at: InstantText | None
    call_started_at: InstantText | None
    call_ended_at: InstantText | None
    call_duration_ms: int | None
    analysis: Verdict | None
    funnel: str | None
    cost: float | None
    voice_engine: int


class CallTable:
    """Rows are made when they are asked for, from what is known by now of each call."""

    def __init__(self, view: CampaignView) -> None:
        self._view = view

    def __len__(self) -> int:
        return len(self._view.calls)

    def find(
        self, at: int, status: CallStatus | None, recipients: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        """The calls in a status at an instant, and of some recipients; None: whichever."""
        calls = np.arange(len(self))
        if recipients is not None:
            calls = calls[np.isin(self._view.calls.recipient, recipients)]
        if status is not None:
            wanted = CALL_STATUSES.index(status)
            calls = calls[self._view.analyses.standing(calls, at).status == wanted]
        return calls

    def rows(self, chosen: NDArray[np.int64], at: int) -> list[CallRow]:
        """Some calls as they stand at an instant (ms) from now on."""
        from dialsim.results.tables import ChosenCalls, call_columns

        view, world = self._view, self._view.part.trace.world
        part = ChosenCalls(
            part=view.part,
            calls=view.calls,
            chosen=chosen,
            status=view.analyses.standing(chosen, at).status,
            analyses=view.analyses.of(chosen),
            verdicts=view.analyses.verdicts(chosen, at),
        )
        who = view.calls.recipient[chosen]
        columns = {
            "recipient_id": view.recipient_ids(who).astype(str),
            "tel": [view.part.block.people.tel(recipient) for recipient in who.tolist()],
            **call_columns(world, Catalog.of(world), [part]),
        }
        return [CallRow.model_validate(row) for row in json_rows(columns)]


def json_rows(columns: dict[str, Any]) -> list[dict[str, object]]:
    """The rows of a table as they are in JSON: instants as texts, null for what is missing."""
    import pandas as pd  # slow to import: a server starts sooner without it

    series = [_json_column(pd.Series(column)) for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*series, strict=True)]


def _json_column(column: pd.Series[Any]) -> list[object]:
    from dialsim.results.tables import INSTANT

    if column.dtype == INSTANT:
        return [*instants_json(column.dt.tz_localize(None).to_numpy().view(np.int64))]
    values: list[object] = column.astype(object).where(column.notna(), None).tolist()
    return values


class TransitionRow(WireModel):
    """A change of a call: the columns of the transitions table."""

    at: InstantText
    recipient: int = Field(description="Position in the campaign's list, from 0.")
    call: int = Field(description="1, 2, … of this recipient.")
    from_status: CallStatus | None
    to_status: CallStatus
    phase: Phase | None
    cause: str


class TransitionTable:
    """Changes in the order in which they happened; new ones come behind the others.

    What analyses change (A4) stands behind everything else of its instant.
    """

    def __init__(self, view: CampaignView) -> None:
        self._log = view.campaign.log
        self._calls = view.calls
        self._analyses = view.analyses

    def count(self, at: int) -> int:
        """How many changes there are by now, which is the instant `at` (ms)."""
        return len(self._log) + len(self._analyses.changes(at).at)

    def rows(self, start: int, stop: int, at: int) -> CallRows:
        """Some of the changes there are by now; their number alone says how long it takes."""
        analyses = self._analyses.changes(at)

        def place(change: int) -> int:
            """Where a change by an analysis stands among all."""
            return self._log.count_until(int(analyses.at[change])) + change

        everything = range(len(analyses.at))
        first = bisect_left(everything, start, key=place)
        last = bisect_left(everything, stop, key=place)
        logged = self._log.rows(start - first, max(stop - last, start - first))
        chosen = analyses[first:last]
        before = [place(change) - change - (start - first) for change in everything[first:last]]
        return self._merged(logged, chosen, before)

    def find(
        self, at: int, status: CallStatus | None, recipients: NDArray[np.int64] | None
    ) -> CallRows:
        """The changes to a status, and of calls to some recipients; None: whichever."""
        rows = self.rows(0, self.count(at), at)
        chosen = np.ones(len(rows.at), dtype=bool)
        if status is not None:
            chosen &= TO_STATUS[rows.kind] == CALL_STATUSES.index(status)
        if recipients is not None:
            chosen &= np.isin(rows.recipient, recipients)
        return rows[chosen]

    def _merged(self, logged: CallRows, analyses: AnalysisChanges, before: list[int]) -> CallRows:
        """Rows of the log with changes by analyses, each put in before a row of the log."""
        if not before:
            return logged
        calls = self._calls
        return CallRows(
            at=np.insert(logged.at, before, analyses.at),
            recipient=np.insert(logged.recipient, before, calls.recipient[analyses.call]),
            call=np.insert(logged.call, before, calls.call[analyses.call]),
            kind=np.insert(logged.kind, before, analyses.kind),
        )


def shown(changes: CallRows) -> list[TransitionRow]:
    """Changes as they are shown."""
    from dialsim.results.tables import change_columns

    return [TransitionRow.model_validate(row) for row in json_rows(change_columns(changes))]


Fate = Literal["delivered", "failed", "kept", "underWay"]


class WebhookRow(WireModel):
    """A POST of the webhook, or a payload that was kept, not sent."""

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
    url: str | None = Field(description="The URL at that time; null where there was none.")
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
