"""The ledger: one campaign's log read as calls, one row per call, in plain columns.

Everything else in `results` (tables, figures, stories) is taken from here or from the log itself.
All work is done on whole columns: a log of ten million rows is read in about a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.trace import ANSWERED, CHANGES, DIALLED, RINGING, CallRows, Trace
from dialsim.interface.status import CallStatus
from dialsim.scenario.history import REACHED
from dialsim.scenario.people import People
from dialsim.scenario.scripts import Step

NEVER = int(np.iinfo(np.int64).min)
"""The instant of what did not happen; numpy reads it as NaT."""

CALL_STATUSES = tuple(CallStatus)

_REACHED = [CALL_STATUSES.index(status) for status in REACHED]
_UNDER_WAY = CallStatus.INITIATED
_WAITING = (CallStatus.SCHEDULED, CallStatus.QUEUED)


def _kinds(*causes: str) -> NDArray[np.bool_]:
    return np.array([change.cause in causes for change in CHANGES])


def _net(*statuses: CallStatus) -> NDArray[np.int8]:
    """By kind of change: by how many it changes the number of calls in these statuses."""
    gains = [
        (change.to_status in statuses) - (change.from_status in statuses) for change in CHANGES
    ]
    return np.array(gains, dtype=np.int8)


TO_STATUS = np.array([CALL_STATUSES.index(change.to_status) for change in CHANGES], dtype=np.int8)
CREATES = _kinds("scheduled", "retry")
RELEASES = _kinds("released")
ENDS = _kinds("ended")
TIMES_OUT = _kinds("queue_timeout")
WITHDRAWS = ~ENDS & np.array(
    [change.from_status == _UNDER_WAY != change.to_status for change in CHANGES]
)
SLOTS = _net(_UNDER_WAY)  # Q1: a slot is held from INITIATED until the end or the withdrawal
WAITING = _net(*_WAITING)
IN_QUEUE = _net(CallStatus.QUEUED)


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one campaign in the order (recipient, call), and the rows they come from.

    Per recipient, `first[r]:first[r + 1]` are the calls of recipient r (int64). Per call: instants
    in ms, int64, `NEVER` where it did not happen; `recipient` (from 0) and `call` (from 1), int32;
    `last_kind`, the last change by the engine, and `final_kind`, the last of all, indexes into
    `CHANGES` (they differ where an analysis failed, A4); `attempt`, int32, 0 if never dialled;
    `number`, `voice` and `behaviour`, indexes into `World.numbers`, `voice_keys` and `behaviours`,
    -1 if none; `scripted` has, by `call_key`, what the scripts of numbers said of calls (P6). A
    dial that was withdrawn leaves none of these, and no `initiated_at` (P5). Per row of the log,
    `row_call` is the index of its call. Per recipient, from their history before the
    scenario begins: `past_attempts`, the attempts counted (int32), `past_status`, how the last call
    ended, an index into `CALL_STATUSES`, -1 for who has none, and `past_ended_at`, when (ms).
    """

    organization: int
    campaign: int
    people: int
    rows: CallRows
    row_call: NDArray[np.int32]
    first: NDArray[np.int64]
    past_attempts: NDArray[np.int32]
    past_status: NDArray[np.int8]
    past_ended_at: NDArray[np.int64]
    recipient: NDArray[np.int32]
    call: NDArray[np.int32]
    created_at: NDArray[np.int64]
    queued_at: NDArray[np.int64]
    initiated_at: NDArray[np.int64]
    ringing_at: NDArray[np.int64]
    started_at: NDArray[np.int64]
    ended_at: NDArray[np.int64]
    changed_at: NDArray[np.int64]
    last_kind: NDArray[np.uint8]
    final_kind: NDArray[np.uint8]
    attempt: NDArray[np.int32]
    number: NDArray[np.int32]
    voice: NDArray[np.int32]
    behaviour: NDArray[np.int16]
    scripted: Mapping[int, Step]

    @property
    def status(self) -> NDArray[np.int8]:
        """The last status of each call, as an index into `CALL_STATUSES`."""
        return TO_STATUS[self.final_kind]

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Which calls count as an attempt: dialled and ended (P5)."""
        return ENDS[self.last_kind]

    @property
    def talk_ms(self) -> NDArray[np.int64]:
        """The length of each conversation that ended; 0 where there was none."""
        talked = (self.started_at != NEVER) & (self.ended_at != NEVER)
        return np.where(talked, self.ended_at - self.started_at, 0)

    @property
    def past_reached(self) -> NDArray[np.bool_]:
        """Which recipients were reached before the scenario begins (R3)."""
        return np.isin(self.past_status, _REACHED)

    @property
    def attempts(self) -> NDArray[np.int64]:
        """How many attempts each recipient has had, those of the history included (P5)."""
        return self.past_attempts + self.per_person(self.counted)

    def of_newest(self, per_call: NDArray[Any], otherwise: int | NDArray[Any]) -> NDArray[Any]:
        """A column of the calls, of each recipient's newest; `otherwise` for who has no call."""
        has_calls = self.first[1:] > self.first[:-1]
        values = np.full(self.people, otherwise, dtype=per_call.dtype)
        values[has_calls] = per_call[self.first[1:][has_calls] - 1]
        return values

    @property
    def newest(self) -> NDArray[np.bool_]:
        """Which calls are their recipient's newest."""
        newest = np.zeros(len(self.recipient), dtype=bool)
        newest[self.first[1:][self.first[1:] > self.first[:-1]] - 1] = True
        return newest

    def per_person(self, per_call: NDArray[np.integer] | NDArray[np.bool_]) -> NDArray[np.int64]:
        """The sum of a column of the calls over each recipient's calls."""
        running = np.concatenate(([0], np.cumsum(per_call, dtype=np.int64)))
        sums: NDArray[np.int64] = running[self.first[1:]] - running[self.first[:-1]]
        return sums

    def rows_by_call(self) -> NDArray[np.int64]:
        """The order that lists the log by (recipient, call), each call's rows as they happened."""
        order = np.arange(len(self.row_call), dtype=np.int64)
        if np.all(self.row_call[1:] >= self.row_call[:-1]):
            return order
        # the packed keys are unique, so numpy's fast unstable sort keeps the order of occurrence
        packed = np.sort(self.row_call.astype(np.int64) << 32 | order)
        return packed & 0xFFFFFFFF


def read_calls(trace: Trace, organization: int, campaign: int) -> Calls:
    """Read the log of one campaign, given by its positions in the scenario."""
    log = trace.calls[organization][campaign]
    block = trace.world.organizations[organization].campaigns[campaign]
    people, past = block.people.count, past_of(block.people)
    rows = log.rows()
    creations = rows.recipient[CREATES[rows.kind]]
    first = np.zeros(people + 1, dtype=np.int64)
    np.cumsum(np.bincount(creations, minlength=people), out=first[1:])
    recipient = np.repeat(np.arange(people, dtype=np.int32), np.diff(first))
    of_row = (first[rows.recipient] + rows.call - 1).astype(np.int32)
    reading = _Reading(rows, of_row, len(recipient))
    last_kind = reading.last_kind()
    dials = np.flatnonzero(rows.kind == DIALLED)
    # P5: of a call whose newest dial was withdrawn, nothing of the dial is shown
    dialled = reading.last_row(dials) > reading.last_row(np.flatnonzero(WITHDRAWS[rows.kind]))
    number, voice, behaviour = (
        np.where(dialled, reading.of_dials(dials, np.array(column, dtype=np.int32)), np.int32(-1))
        for column in (log.dial_numbers, log.dial_voices, log.dial_behaviours)
    )
    return Calls(
        organization=organization,
        campaign=campaign,
        people=people,
        rows=rows,
        row_call=of_row,
        first=first,
        past_attempts=past.attempts,
        past_status=past.status,
        past_ended_at=past.ended_at,
        recipient=recipient,
        call=(np.arange(len(recipient)) - first[recipient] + 1).astype(np.int32),
        created_at=reading.instant(CREATES[rows.kind]),
        queued_at=reading.instant(RELEASES[rows.kind]),
        initiated_at=np.where(dialled, reading.instant(rows.kind == DIALLED), NEVER),
        ringing_at=reading.instant(rows.kind == RINGING),
        started_at=reading.instant(rows.kind == ANSWERED),
        ended_at=reading.instant((ENDS | TIMES_OUT)[rows.kind]),
        changed_at=reading.instant(slice(None)),
        last_kind=last_kind,
        final_kind=last_kind,
        attempt=np.where(
            dialled, _attempts(ENDS[last_kind], first, recipient) + past.attempts[recipient], 0
        ),
        number=number,
        voice=voice,
        behaviour=behaviour.astype(np.int16),
        scripted=log.scripted,
    )


class PastCalls(NamedTuple):
    """What histories tell, per recipient; see `past_attempts` and so on of `Calls`."""

    attempts: NDArray[np.int32]
    status: NDArray[np.int8]
    ended_at: NDArray[np.int64]


def past_of(people: People) -> PastCalls:
    """The histories of one campaign's people as columns (new arrays)."""
    attempts = np.zeros(people.count, dtype=np.int32)
    status = np.full(people.count, -1, dtype=np.int8)
    ended_at = np.full(people.count, NEVER, dtype=np.int64)
    for recipient, past in people.history.items():
        attempts[recipient] = past.call_attempt
        status[recipient] = CALL_STATUSES.index(past.latest_call_status)
        ended_at[recipient] = past.last_ended_at
    return PastCalls(attempts, status, ended_at)


def _attempts(
    counted: NDArray[np.bool_], first: NDArray[np.int64], recipient: NDArray[np.int32]
) -> NDArray[np.int32]:
    """The number of each call's attempt: one more than the person's counted before (P5)."""
    before = np.concatenate((np.zeros(1, np.int32), np.cumsum(counted, dtype=np.int32)))
    return before[:-1] - before[first[recipient]] + np.int32(1)


class _Reading:
    """Rows scattered onto their calls; of several rows of a call numpy keeps the last."""

    def __init__(self, rows: CallRows, of_row: NDArray[np.int32], calls: int) -> None:
        self._rows = rows
        self._of_row = of_row
        self._calls = calls

    def instant(self, chosen: NDArray[np.bool_] | slice) -> NDArray[np.int64]:
        instants = np.full(self._calls, NEVER, dtype=np.int64)
        instants[self._of_row[chosen]] = self._rows.at[chosen]
        return instants

    def last_kind(self) -> NDArray[np.uint8]:
        kinds = np.zeros(self._calls, dtype=np.uint8)
        kinds[self._of_row] = self._rows.kind
        return kinds

    def last_row(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        index = np.full(self._calls, -1, dtype=np.int64)
        index[self._of_row[chosen]] = chosen
        return index

    def of_dials(self, dials: NDArray[np.int64], column: NDArray[np.int32]) -> NDArray[np.int32]:
        values = np.full(self._calls, -1, dtype=np.int32)
        values[self._of_row[dials]] = column
        return values
