"""The tables of a sandbox: calls, their changes, and webhooks, as rows, page by page."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import Field, JsonValue
from pydantic.alias_generators import to_camel

from dialsim.engine.chance import call_ids
from dialsim.engine.trace import CallRows
from dialsim.interface import AgentStatus, CallStatus, Phase
from dialsim.interface.model import InstantText, Moment, UuidText, WireModel
from dialsim.interface.payload import NOT_SENT, UNDER_WAY, Post, PostKey, accepted, response_json
from dialsim.results.campaigns import Position
from dialsim.results.run_view import Catalog, RunView
from dialsim.sandbox import failures as fail
from dialsim.sandbox.campaign_view import CampaignView
from dialsim.sandbox.live_engine import LiveEngine
from dialsim.sandbox.outbox import Outbox
from dialsim.webhooks.analysis import AnalysisChanges
from dialsim.webhooks.bodies import instants_json
from dialsim.webhooks.deliveries import Stream, urls
from dialsim.webhooks.messages import Verdict, sequence

PAGE_SIZE = 100

_PAGE = re.compile(r"0*([1-9][0-9]*)")
_MOST_DIGITS = 12  # a longer number is beyond any list, and may be beyond the integers of JSON
_BEYOND = 10**_MOST_DIGITS


class PageNumber(NamedTuple):
    """Requested page: its number as digits, and the number of pages before it."""

    digits: str
    pages_before: int

    @property
    def rows(self) -> slice:
        """The rows of a list that are on the page."""
        return slice(self.pages_before * PAGE_SIZE, (self.pages_before + 1) * PAGE_SIZE)


def read_page(text: str | None) -> PageNumber:
    """Return the page of a query, by default the first; 400 unless it is a whole number from 1."""
    match = _PAGE.fullmatch("1" if text is None else text)
    if match is None:
        raise fail.INVALID_PAGE.refused()
    digits = match[1]
    return PageNumber(digits, int(digits) - 1 if len(digits) <= _MOST_DIGITS else _BEYOND)


def count_pages(total: int) -> int:
    """Return the number of pages of a list."""
    return -(-total // PAGE_SIZE)


Row = dict[str, Any]
"""Row of a table as plain values, which the model of the row describes."""


class CallRow(WireModel):
    """Current state of a call: the columns of the calls table, and the recipient."""

    recipient: int = Field(description="Position in the campaign's list, from 0.")
    recipient_id: UuidText
    tel: str
    call_id: UuidText
    session_id: str
    call: int = Field(description="Ordinal among the recipient's calls, from 1.")
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


def call_rows(view: CampaignView, chosen: NDArray[np.int64], at: int) -> list[Row]:
    """Return calls as of a current or future instant (ms); see `CallRow`."""
    from dialsim.results.tables import ChosenCalls, call_columns

    world = view.part.trace.world
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
        "recipient_id": view.recipient_ids(who).astype(str).tolist(),
        "tel": [view.part.block.people.tel(recipient) for recipient in who.tolist()],
        **call_columns(world, Catalog.of(world), [part]),
    }
    return _json_rows(columns)


def _json_rows(columns: dict[str, Any]) -> list[Row]:
    """Return the rows of a table as in JSON: instants as texts, null for missing values."""
    # Plain values: to validate each row with its model takes longer than to answer the request.
    names = [*map(_camel, columns)]
    values = map(_json_column, columns.values())
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


_camel = cache(to_camel)


def _json_column(column: Any) -> list[Any]:
    # Slow to import: a server starts sooner without it.
    import pandas as pd

    if isinstance(column, pd.Categorical):
        known = [*map(str, column.categories), None]  # code -1 is a missing value
        return [known[code] for code in column.codes.tolist()]
    if isinstance(column, pd.arrays.DatetimeArray):
        return [*instants_json(np.asarray(column, "datetime64[ms]").view(np.int64))]
    if isinstance(column, list):
        return column
    values: list[Any] = column.tolist()
    for row in np.flatnonzero(pd.isna(column)).tolist():
        values[row] = None
    return values


class TransitionRow(WireModel):
    """A change of a call: the columns of the transitions table."""

    at: InstantText
    recipient: int = Field(description="Position in the campaign's list, from 0.")
    call: int = Field(description="Ordinal among the recipient's calls, from 1.")
    from_status: CallStatus | None
    to_status: CallStatus
    phase: Phase | None
    cause: str


class TransitionTable:
    """Log of changes in order of their instants; new changes are appended."""

    def __init__(self, view: CampaignView) -> None:
        self._log = view.campaign.log
        self._calls = view.calls
        self._analyses = view.analyses

    def count(self, at: int) -> int:
        """Return the number of changes up to the instant `at` (ms)."""
        return len(self._log) + len(self._analyses.changes(at).at)

    def rows(self, start: int, stop: int, at: int) -> CallRows:
        """Return some of the changes up to `at`. The time taken depends on their number alone."""
        analyses = self._analyses.changes(at)

        def listed_index(change: int) -> int:
            """Return the index of an analysis change among all changes."""
            # Changes by analyses are not in the engine's log: each comes behind the rows of its
            # instant.
            return self._log.count_until(int(analyses.at[change])) + change

        everything = range(len(analyses.at))
        first = bisect_left(everything, start, key=listed_index)
        last = bisect_left(everything, stop, key=listed_index)
        logged = self._log.rows(start - first, max(stop - last, start - first))
        chosen = analyses[first:last]
        before = [
            listed_index(change) - change - (start - first) for change in everything[first:last]
        ]
        return self._merged(logged, chosen, before)

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


def shown(changes: CallRows) -> list[Row]:
    """Return changes as they are answered; see `TransitionRow`."""
    from dialsim.results.tables import change_columns

    return _json_rows(change_columns(changes))


Fate = Literal["delivered", "failed", "kept", "underWay"]


class WebhookRow(WireModel):
    """A POST of the webhook, or a payload that was kept, not sent."""

    n: int = Field(description="Number in the list, from 1; it never changes.")
    at: Moment
    organization: str = Field(description="Name of the organization.")
    campaign: str = Field(description="Name of the campaign.")
    campaign_id: UuidText
    call_id: UuidText
    result: int = Field(
        description="0: the call's first result; n: the result of the campaign's n-th re-analysis."
    )
    attempt: int | None = Field(description="null where the payload was kept.")
    url: str | None = Field(description="The URL at that time; null where there was none.")
    status: Fate
    response: int | str | None = Field(
        description="An HTTP status, or timeout, refused or broken; null while there is none."
    )
    received: bool = Field(description="Whether the response was a 2xx.")
    resent: bool = Field(description="Whether a client asked for this POST.")
    body: dict[str, JsonValue]


class _List(NamedTuple):
    """List of webhooks as of one state of the run."""

    state: tuple[int, ...]
    positions: list[Position]
    stream: Stream

    def key(self, row: int) -> PostKey:
        """Return the key of the result in a row."""
        index = int(self.stream.part_index[row])
        part, message = self.stream.parts[index], int(self.stream.posts.message[row])
        call, result = int(part.messages.call[message]), int(part.messages.result[message])
        recipient, number = int(part.calls.recipient[call]), int(part.calls.call[call])
        return PostKey(*self.positions[index], recipient, number, result)


class WebhookTable:
    """POSTs and kept payloads in the order in which they left, all organizations together.

    New rows are appended. The list is read from the trace again after any event.
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
        campaign: Position | None = None,
        call: tuple[int, int] | None = None,
    ) -> NDArray[np.int64]:
        """Return the rows (from 0) that match all filters; None as a filter matches everything."""
        _, positions, stream = self._list()
        chosen = np.ones(len(stream.posts), dtype=bool)
        if status is not None:
            chosen &= _having(stream.posts.response, status)
        if campaign is not None:
            chosen &= stream.part_index == positions.index(campaign)
        rows = np.flatnonzero(chosen)
        if campaign is None or call is None:
            return rows
        part = stream.parts[positions.index(campaign)]
        calls = part.messages.call[stream.posts.message[rows]]
        wanted = (part.calls.recipient[calls] == call[0]) & (part.calls.call[calls] == call[1])
        found: NDArray[np.int64] = rows[wanted]
        return found

    def rows(self, rows: NDArray[np.int64]) -> list[Row]:
        """Return some rows (from 0); see `WebhookRow`."""
        _, positions, stream = self._list()
        made: dict[int, Row] = {}
        for index in np.unique(stream.part_index[rows]).tolist():
            own = rows[stream.part_index[rows] == index]
            made.update(zip(own.tolist(), self._rows(own, positions[index], index), strict=True))
        return [made[row] for row in rows.tolist()]

    def _rows(self, rows: NDArray[np.int64], position: Position, index: int) -> Iterator[Row]:
        """Yield rows of one campaign, given by its positions and its index among the parts."""
        stream, trace = self._list().stream, self._simulation.log
        posts, part = stream.posts[rows], stream.parts[index]
        owner = trace.world.organizations[position[0]]
        campaign = owner.campaigns[position[1]]
        messages = part.messages[posts.message]
        calls = part.calls.recipient[messages.call], part.calls.call[messages.call]
        # Retries go to the URL of the result's first POST, resent results to the current one (W6)
        at = np.where(posts.resent, posts.at, messages.sent_at)
        turn = np.where(posts.resent, posts.turn, messages.turn)
        columns = (
            rows.tolist(),
            instants_json(posts.at),
            call_ids(trace.world.seed, *position, *calls).astype(str).tolist(),
            messages.result.tolist(),
            posts.number.tolist(),
            urls(trace, position[0], sequence(trace, at, turn)),
            posts.response.tolist(),
            posts.received.tolist(),
            posts.resent.tolist(),
            part.bodies(posts.message),
        )
        for row, left_at, call_id, result, number, url, response, received, resent, body in zip(
            *columns, strict=True
        ):
            yield {
                "n": row + 1,
                "at": left_at,
                "organization": owner.name,
                "campaign": campaign.name,
                "campaignId": campaign.id,
                "callId": call_id,
                "result": result,
                "attempt": number or None,
                "url": url,
                "status": fate_of(response),
                "response": response_json(response),
                "received": received,
                "resent": resent,
                "body": body,
            }

    def row_of(self, post: Post) -> int:
        """The row (from 0) of a POST that has left."""
        _, positions, stream = self._list()
        # Looked for by number and instant first: keys are built row by row.
        chosen = (stream.posts.number == post.number) & (stream.posts.at == post.at)
        rows = np.flatnonzero(
            chosen & (stream.part_index == positions.index(post.key[:2]))
        ).tolist()
        return next(row for row in rows if self._list().key(row) == post.key)

    def key(self, n: int) -> PostKey:
        """Return the key of the result in row `n` (from 1); 404 if the row does not exist."""
        listed = self._list()
        if not 1 <= n <= len(listed.stream.posts):
            raise fail.NO_WEBHOOK.refused()
        return listed.key(n - 1)

    def body(self, key: PostKey) -> bytes:
        """The body of a result that was sent, or kept."""
        _, positions, stream = self._list()
        part = stream.parts[positions.index(key[:2])]
        call = part.calls.of(key.recipient)[key.call - 1]
        rows = (part.messages.call == call) & (part.messages.result == key.result)
        return orjson.dumps(next(part.bodies(np.flatnonzero(rows))))

    def _list(self) -> _List:
        log = self._simulation.log
        # Nothing can change the list without changing one of these numbers.
        state = (self._simulation.at, log.turn, log.size(), self._outbox.changes)
        if self._kept is None or self._kept.state != state:
            reading = RunView(self._simulation.trace)
            stream = reading.stream
            # a kept payload is listed once no POST can precede it
            stream.drop(
                (stream.posts.response == NOT_SENT) & (stream.posts.at >= self._outbox.front)
            )
            self._kept = _List(state, [*reading.campaigns], stream)
        return self._kept


def fate_of(response: int) -> Fate:
    """Return the kind of a response: an HTTP status, or a code instead of a status."""
    if response == NOT_SENT:
        return "kept"
    if response == UNDER_WAY:
        return "underWay"
    return "delivered" if accepted(response) else "failed"


def _having(responses: NDArray[np.int16], status: str) -> NDArray[np.bool_]:
    """Return the responses that match a status, in the notation of `WebhookTable.find`."""
    fitting = []
    # Few responses differ, so each is compared once and not by row.
    for code in np.unique(responses).tolist():
        shown = response_json(code)
        if status == fate_of(code) or (shown is not None and status == str(shown)):
            fitting.append(code)
    return np.isin(responses, fitting)
