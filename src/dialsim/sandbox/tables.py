"""A campaign's calls and their changes as rows of the tables of a run, page by page."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dialsim.engine.calls import CALL_STATUSES, TO_STATUS
from dialsim.engine.trace import CallRows
from dialsim.interface.errors import Refused
from dialsim.interface.model import InstantText, UuidText, WireModel
from dialsim.interface.status import AgentStatus, CallStatus, Phase
from dialsim.results.run_view import Catalog
from dialsim.sandbox.campaign_view import CampaignView
from dialsim.webhooks.analysis import AnalysisChanges
from dialsim.webhooks.bodies import instants_json
from dialsim.webhooks.messages import Verdict

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
