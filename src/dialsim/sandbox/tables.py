"""Page numbers: lists come in pages of one size, asked for by number (interface, section 4.3).

A campaign's calls as rows of the calls table, any of them at a time.

The changes of a campaign's calls as rows of the transitions table, any of them at a time.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dialsim.engine.calls import CALL_STATUSES, NEVER, TO_STATUS
from dialsim.engine.trace import CHANGES, CallLog, CallRows, Trace
from dialsim.interface.errors import Refused
from dialsim.interface.instants import format_instant
from dialsim.interface.model import InstantText, UuidText, WireModel
from dialsim.interface.payload import UNKNOWN
from dialsim.interface.status import AgentStatus, CallStatus, Phase
from dialsim.results.tables import price
from dialsim.sandbox.calls import (
    IN_PROGRESS,
    NONE,
    CallBook,
    CallEntry,
    CallResults,
)
from dialsim.webhooks.analysis import AnalysisChanges
from dialsim.webhooks.stream import Verdict

if TYPE_CHECKING:
    from dialsim.sandbox.campaign_view import CampaignView


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


class _Names(NamedTuple):
    recipient_id: str
    call_id: str
    session_id: str


class CallTable:
    """Rows are made when they are asked for, from what is known by now of each call."""

    def __init__(
        self, view: CampaignView, trace: Trace, book: CallBook, results: CallResults
    ) -> None:
        self._view = view
        self._trace = trace
        self._block = view.campaign.block
        self._book = book
        self._results = results

    def __len__(self) -> int:
        return len(self._book)

    def find(
        self, at: int, status: CallStatus | None, recipients: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        """The calls in a status at an instant, and of some recipients; None: whichever."""
        calls = np.arange(len(self._book), dtype=np.int64)
        if recipients is not None:
            calls = calls[np.isin(self._book.column("recipient", calls), recipients)]
        if status is not None:
            wanted = CALL_STATUSES.index(status)
            calls = calls[self._results.standing(calls, at).status == wanted]
        return calls

    def analyzed_again(self, call: int, at: int) -> tuple[int, int]:
        """Recipient and number of a call that may be analyzed again; refuses any other (A5)."""
        self._results.require_delivered(call, at)
        entry = self._book[call]
        return entry.recipient, entry.number

    def rows(self, calls: NDArray[np.int64], at: int) -> list[CallRow]:
        """Some calls as they stand at an instant (ms) from now on."""
        view, who = self._view, self._book.column("recipient", calls)
        names = zip(
            view.recipient_ids(who).tolist(),
            view.call_ids(calls).tolist(),
            view.session_ids(calls).tolist(),
            strict=True,
        )
        statuses = self._results.standing(calls, at).status.tolist()
        return [
            self._row(call, CALL_STATUSES[status], _Names(*map(bytes.decode, ids)), at)
            for call, status, ids in zip(calls.tolist(), statuses, names, strict=True)
        ]

    def _row(self, call: int, status: CallStatus, names: _Names, at: int) -> CallRow:
        entry, people, world = self._book[call], self._block.people, self._trace.world
        dialled = entry.initiated_at != NEVER
        talked = NEVER not in (entry.started_at, entry.ended_at)
        segment = NONE if people.segment is None else int(people.segment[entry.recipient])
        agent_status = self._results.agent_status(call, entry)
        verdict, steps = self._results.verdict(call, entry, at)
        return CallRow(
            recipient=entry.recipient,
            recipient_id=names.recipient_id,
            tel=people.tel(entry.recipient),
            call_id=names.call_id,
            session_id=names.session_id,
            call=entry.number,
            attempt=self._attempt(entry) if dialled else None,
            status=status,
            agent_status=None if agent_status == IN_PROGRESS else AgentStatus(agent_status),
            caller_id=world.numbers[entry.caller_id] if dialled else None,
            voice_key=world.voice_keys[entry.voice] if dialled and entry.voice != NONE else None,
            segment=None if segment == NONE else people.segments[segment],
            created_at=format_instant(entry.created_at),
            queued_at=_instant(entry.queued_at),
            initiated_at=_instant(entry.initiated_at),
            ringing_at=_instant(entry.ringing_at),
            call_started_at=_instant(entry.started_at),
            call_ended_at=_instant(entry.ended_at),
            call_duration_ms=entry.ended_at - entry.started_at if talked else None,
            analysis=verdict,
            funnel=self._funnel(verdict, steps),
            cost=self._cost(dialled, entry.ended_at - entry.started_at if talked else 0),
            voice_engine=self._engine,
        )

    def _attempt(self, entry: CallEntry) -> int:
        """The attempt's number; one that goes on is one more than those that have ended (P5)."""
        return entry.attempt or int(self._book.attempts[entry.recipient]) + 1

    def _funnel(self, verdict: Verdict | None, steps: int) -> str | None:
        if verdict in (Verdict.NO_CONVERSATION, Verdict.UNAVAILABLE):
            return UNKNOWN
        analysis = self._block.agent.analysis
        if verdict is not Verdict.ANALYZED or analysis is None or analysis.funnel is None:
            return None
        return analysis.funnel[steps - 1].step if steps else UNKNOWN

    def _cost(self, dialled: bool, talk_ms: int) -> float | None:
        costs = self._trace.world.scenario.costs
        if costs is None:
            return None
        return float(price(costs, np.array([dialled]), np.array([talk_ms]))[0])

    @property
    def _engine(self) -> int:
        """The generation of the voice engine (F3)."""
        scheduled = self._trace.campaign(self._block.organization, self._block.position).scheduled
        return 2 if scheduled is not None and scheduled.request.tts_voice_keys else 1


def _instant(ms: int) -> str | None:
    return None if ms == NEVER else format_instant(ms)


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

    def __init__(self, log: CallLog, book: CallBook, results: CallResults) -> None:
        self._log = log
        self._book = book
        self._results = results

    def count(self, at: int) -> int:
        """How many changes there are by now, which is the instant `at` (ms)."""
        return len(self._log) + len(self._results.changes(at).at)

    def rows(self, start: int, stop: int, at: int) -> CallRows:
        """Some of the changes there are by now; their number alone says how long it takes."""
        analyses = self._results.changes(at)

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
        who = self._book.column("recipient", analyses.call)
        number = self._book.column("number", analyses.call)
        return CallRows(
            at=np.insert(logged.at, before, analyses.at),
            recipient=np.insert(logged.recipient, before, who),
            call=np.insert(logged.call, before, number),
            kind=np.insert(logged.kind, before, analyses.kind),
        )


def shown(rows: CallRows) -> list[TransitionRow]:
    """Changes as they are shown."""
    columns = (rows.at.tolist(), rows.recipient.tolist(), rows.call.tolist(), rows.kind.tolist())
    return [
        TransitionRow(
            at=format_instant(at),
            recipient=recipient,
            call=call,
            from_status=CHANGES[kind].from_status,
            to_status=CHANGES[kind].to_status,
            phase=CHANGES[kind].phase,
            cause=CHANGES[kind].cause,
        )
        for at, recipient, call, kind in zip(*columns, strict=True)
    ]
