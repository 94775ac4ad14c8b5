"""The calls of one campaign: the one reader of its log, a row a call, in plain columns.

A log is read at once (`read_calls`), or row by row as it grows (`Calls.update`); columns and their
meaning are the same. All work is done on whole columns: ten million rows take about a second.

The reader stands beside the trace, below `webhooks` and `results`, because both are made from it:
messages tell of calls, and tables and figures of calls and messages.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.trace import CHANGES, DIALLED, CallRows, CampaignTrace, Trace
from dialsim.interface.status import CallStatus
from dialsim.scenario.campaign import REACHED
from dialsim.scenario.people import People
from dialsim.scenario.scripts import ScriptStep

NEVER = int(np.iinfo(np.int64).min)
"""The instant of what did not happen; numpy reads it as NaT."""

NO_CALL = -1
"""Where the position of a call is wanted, and there is none."""

CALL_STATUSES = tuple(CallStatus)

_UNDER_WAY = CallStatus.INITIATED
_WAITING = (CallStatus.SCHEDULED, CallStatus.QUEUED)


def by_status(statuses: Collection[CallStatus]) -> NDArray[np.bool_]:
    """By status, an index into `CALL_STATUSES`: whether it is among these; -1, no call, is not."""
    return np.array([*(status in statuses for status in CALL_STATUSES), False])


def _kinds(*causes: str) -> NDArray[np.bool_]:
    return np.array([change.cause in causes for change in CHANGES])


def _net(*statuses: CallStatus) -> NDArray[np.int8]:
    """By kind of change: by how many it changes the number of calls in these statuses."""
    gains = [
        (change.to_status in statuses) - (change.from_status in statuses) for change in CHANGES
    ]
    return np.array(gains, dtype=np.int8)


_WAS_REACHED = by_status(REACHED)  # R3
TO_STATUS = np.array([CALL_STATUSES.index(change.to_status) for change in CHANGES], dtype=np.int8)
FROM_STATUS = np.array(
    [
        -1 if change.from_status is None else CALL_STATUSES.index(change.from_status)
        for change in CHANGES
    ],
    dtype=np.int8,
)
CREATES = _kinds("scheduled", "retry")
RELEASES = _kinds("released")
DIALS = _kinds("dialled")
RINGS = _kinds("ringing")
ANSWERS = _kinds("answered")
ENDS = _kinds("ended")
TIMES_OUT = _kinds("queue_timeout")
HAS_END = ENDS | TIMES_OUT
WITHDRAWS = ~ENDS & np.array(
    [change.from_status == _UNDER_WAY != change.to_status for change in CHANGES]
)
SLOTS = _net(_UNDER_WAY)  # Q1: a slot is held from INITIATED until the end or the withdrawal
WAITING = _net(*_WAITING)
IN_QUEUE = _net(CallStatus.QUEUED)


def rows_of(kind: NDArray[np.uint8], kinds: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Where a column of kinds of change holds one of `kinds`."""
    found = np.zeros(len(kind), dtype=bool)
    for each in np.flatnonzero(kinds).tolist():
        found |= kind == each  # comparing with a few takes a fraction of looking each row up
    return np.flatnonzero(found)


_INSTANTS = {
    "queued_at": RELEASES,
    "ringing_at": RINGS,
    "started_at": ANSWERS,
    "ended_at": HAS_END,
}
"""The columns that hold the instant of a call's newest change of some kinds, its creation aside."""

_COLUMNS: dict[str, tuple[type[np.integer], int]] = {
    "recipient": (np.int32, 0),
    "call": (np.int32, 0),
    "previous": (np.int32, NO_CALL),
    "attempts_before": (np.int32, 0),
    "attempt": (np.int32, 0),
    **dict.fromkeys([*_INSTANTS, "created_at", "initiated_at", "changed_at"], (np.int64, NEVER)),
    "last_kind": (np.uint8, 0),
    "number": (np.int32, -1),
    "voice": (np.int32, -1),
    "behaviour": (np.int16, -1),
}
"""The type of each column, and what stands in it where nothing is known."""


class CallEntry(NamedTuple):
    """One call: the columns of `Calls` as plain numbers."""

    recipient: int
    call: int
    attempt: int
    created_at: int
    queued_at: int
    initiated_at: int
    ringing_at: int
    started_at: int
    ended_at: int
    changed_at: int
    last_kind: int
    number: int
    voice: int
    behaviour: int

    @property
    def has_talked(self) -> bool:
        """Whether there was a conversation that has ended."""
        return NEVER not in (self.started_at, self.ended_at)

    @property
    def talk_ms(self) -> int:
        """The length of the conversation; 0 where none has ended."""
        return self.ended_at - self.started_at if self.has_talked else 0


class Calls:
    """The calls of one campaign, each at a position that it keeps.

    Read at once they are in the order (recipient, call). Those that `update` finds come behind, in
    the order of their creation.

    Per call: instants in ms, int64, `NEVER` where it did not happen; `recipient` (from 0) and
    `call` (from 1), int32; `previous`, the position of the same recipient's call before, `NO_CALL`
    for the first; `attempts_before`, how many attempts of the recipient counted when the call was
    made (P5), and `attempt`, the number of its own, 0 if never dialled, int32; `last_kind`, the
    last change by the engine, and `final_kind`, the last of all, indexes into `CHANGES` (they
    differ where an analysis failed, A4); `number`, `voice` and `behaviour`, indexes into
    `World.numbers`, `voice_keys` and `behaviours`, -1 if none. A dial that was withdrawn leaves
    none of these, no `attempt` and no `initiated_at` (P5). `scripted` has, by `call_key`, what the
    scripts of numbers said of calls (P6).

    Per row of the log that was taken in last, which is every row where the log was read at once:
    `rows`, and `row_call`, the position of its call.

    Per recipient: `newest`, the position of the newest call (int32); from the history before the
    scenario begins, `past_attempts`, the attempts counted (int32), `past_status`, how the last
    call ended, an index into `CALL_STATUSES`, -1 for who has none, and `past_ended_at`, when (ms).
    """

    recipient: NDArray[np.int32]
    call: NDArray[np.int32]
    previous: NDArray[np.int32]
    attempts_before: NDArray[np.int32]
    attempt: NDArray[np.int32]
    created_at: NDArray[np.int64]
    queued_at: NDArray[np.int64]
    initiated_at: NDArray[np.int64]
    ringing_at: NDArray[np.int64]
    started_at: NDArray[np.int64]
    ended_at: NDArray[np.int64]
    changed_at: NDArray[np.int64]
    last_kind: NDArray[np.uint8]
    final_kind: NDArray[np.uint8]
    number: NDArray[np.int32]
    voice: NDArray[np.int32]
    behaviour: NDArray[np.int16]
    rows: CallRows
    row_call: NDArray[np.int32]

    def __init__(self, part: CampaignTrace) -> None:
        """Know of no call yet."""
        people = part.block.people
        self.organization = part.organization
        self.campaign = part.campaign
        self.people = people.count
        self.past_attempts, self.past_status, self.past_ended_at = past_of(people)
        self.scripted: Mapping[int, ScriptStep] = part.log.scripted
        self.newest = np.full(people.count, NO_CALL, dtype=np.int32)
        self._log = part.log
        self._rows_read = 0
        self._dials_read = 0
        self._kept: dict[str, NDArray[Any]] = {}
        self._ended = np.empty(0, dtype=np.int32)
        self._ends = 0
        self._searched = 0  # rows of the log before this one are read, or end no call
        self.rows, self.row_call = self._log.rows(0, 0), np.empty(0, dtype=np.int32)
        self._show(0)

    def __len__(self) -> int:
        return len(self.recipient)

    def __getitem__(self, call: int) -> CallEntry:
        return CallEntry(*(int(getattr(self, name)[call]) for name in CallEntry._fields))

    def update(self) -> None:
        """Take in what the log has got since the last time."""
        if len(self._log) > self._rows_read:
            rows = self._log.rows(self._rows_read)
            created = np.flatnonzero(CREATES[rows.kind])
            places = len(self) + np.arange(len(created))
            self._create(rows, created, places)
            calls = np.empty(len(rows), dtype=np.int32)
            calls[created] = places
            for chosen in self._by_turns(rows):
                # Of a recipient all these rows are of one call: the newest, or one that they create
                self._begin(calls[chosen][CREATES[rows.kind[chosen]]])
                calls[chosen] = self.newest[rows.recipient[chosen]]
                # numpy keeps the last of several
                self.last_kind[calls[chosen]] = rows.kind[chosen]
                self.changed_at[calls[chosen]] = rows.at[chosen]
            self._take_in(rows, calls)

    def read(self) -> None:
        """Take in the whole log at once, before any of it was: in the order (recipient, call)."""
        rows = self._log.rows()
        created = rows_of(rows.kind, CREATES)
        before = np.zeros(self.people + 1, dtype=np.intp)  # calls of the recipients before each
        np.cumsum(np.bincount(rows.recipient[created], minlength=self.people), out=before[1:])
        row_call = (before - 1).astype(np.int32).take(rows.recipient)
        row_call += rows.call
        self._create(rows, created, row_call.take(created).astype(np.intp))
        last_row = np.empty(len(self), dtype=np.int32)
        # numpy writes to places of its own type in a third of the time that others take
        last_row[row_call.astype(np.intp)] = np.arange(len(rows), dtype=np.int32)
        self.last_kind[:] = rows.kind.take(last_row)
        self.changed_at[:] = rows.at.take(last_row)
        position = np.arange(len(self), dtype=np.int32)
        self.previous[:] = np.where(self.call > 1, position - 1, NO_CALL)
        self.newest[:] = np.where(before[1:] > before[:-1], before[1:] - 1, NO_CALL)
        counted = np.append(0, np.cumsum(self.counted, dtype=np.int32))
        self.attempts_before[:] = counted[:-1] - counted.take(position - self.call + 1)
        self.attempts_before += self.past_attempts.take(self.recipient)
        self._take_in(rows, row_call)

    # -- what is known of calls -------------------------------------------------------------------

    @property
    def status(self) -> NDArray[np.int8]:
        """The last status of each call, as an index into `CALL_STATUSES`."""
        return TO_STATUS.take(self.final_kind)

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Which calls count as an attempt: dialled and ended (P5)."""
        return ENDS.take(self.last_kind)

    @property
    def talk_ms(self) -> NDArray[np.int64]:
        """The length of each conversation that ended; 0 where there was none."""
        talked = (self.started_at != NEVER) & (self.ended_at != NEVER)
        return np.where(talked, self.ended_at - self.started_at, 0)

    def newest_at(
        self, recipients: NDArray[np.integer], at: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The newest call of some recipients at an instant (ms) each, by which they have one."""
        found: NDArray[np.int64] = self.newest[recipients].astype(np.int64)
        while len(later := np.flatnonzero(self.created_at[found] > at)):
            found[later] = self.previous[found[later]]
        return found

    def status_before_next(
        self, calls: NDArray[np.int64], at: NDArray[np.int64]
    ) -> NDArray[np.int8]:
        """The statuses of calls before their first change later than an instant (ms) each.

        There is such a change, and it is among `rows`.
        """
        order = np.arange(len(self.row_call), dtype=np.int64)
        keys = np.sort(self.row_call.astype(np.int64) << 32 | order)
        first = np.searchsorted(self.rows.at, at, side="right")
        rows = keys[np.searchsorted(keys, calls << 32 | first)] & 0xFFFFFFFF
        status: NDArray[np.int8] = FROM_STATUS[self.rows.kind[rows]]
        return status

    def find(
        self, recipients: NDArray[np.integer], numbers: NDArray[np.integer]
    ) -> NDArray[np.int64]:
        """The positions of calls that there are, by recipient and call."""
        found: NDArray[np.int64] = self.newest[recipients].astype(np.int64)
        while len(later := np.flatnonzero(self.call[found] > numbers)):
            found[later] = self.previous[found[later]]
        return found

    def of(self, recipient: int) -> list[int]:
        """The calls of one recipient, the oldest first."""
        calls, call = list[int](), int(self.newest[recipient])
        while call != NO_CALL:
            calls.append(call)
            call = int(self.previous[call])
        return calls[::-1]

    def latest(self, most: int, status: int | None = None) -> NDArray[np.int64]:
        """The calls that changed last, newest first; `status` is an index into `CALL_STATUSES`.

        Analyses, which the engine knows nothing of, are no changes here.
        """
        chosen = np.arange(len(self))
        if status is not None:
            chosen = np.flatnonzero(TO_STATUS[self.last_kind] == status)
        if len(chosen) > most:  # there may be millions: only the last ones are sorted
            at = self.changed_at[chosen]
            chosen = chosen[at >= np.partition(at, -most)[-most]]
        return chosen[np.argsort(self.changed_at[chosen], kind="stable")[::-1]][:most]

    # -- what is known of recipients --------------------------------------------------------------

    @property
    def past_reached(self) -> NDArray[np.bool_]:
        """Which recipients were reached before the scenario begins (R3)."""
        return _WAS_REACHED.take(self.past_status)

    @property
    def attempts(self) -> NDArray[np.int64]:
        """How many attempts each recipient has had, those of the history included (P5)."""
        return self.attempts_of(np.arange(self.people)).astype(np.int64)

    def attempts_of(self, recipients: NDArray[np.integer]) -> NDArray[np.int32]:
        """How many attempts some recipients have had, those of the history included (P5)."""
        attempts: NDArray[np.int32] = self.past_attempts.take(recipients)
        calls = self.newest.take(recipients)
        has = np.flatnonzero(calls != NO_CALL)
        newest = calls.take(has)
        attempts[has] = self.attempts_before.take(newest) + self.counted.take(newest)
        return attempts

    def of_newest(self, per_call: NDArray[Any], otherwise: int | NDArray[Any]) -> NDArray[Any]:
        """A column of the calls, of each recipient's newest; `otherwise` for who has no call."""
        has = np.flatnonzero(self.newest != NO_CALL)
        values = np.full(self.people, otherwise, dtype=per_call.dtype)
        values[has] = per_call.take(self.newest.take(has))
        return values

    # -- the log by calls -------------------------------------------------------------------------

    def rows_by_call(self) -> NDArray[np.int64]:
        """The order that lists `rows` by call, each call's rows as they happened."""
        order = np.arange(len(self.row_call), dtype=np.int64)
        if np.all(self.row_call[1:] >= self.row_call[:-1]):
            return order
        # a sort of numbers takes a quarter of a stable argsort, and all of these are different
        return np.sort(self.row_call.astype(np.int64) << 32 | order) & 0xFFFFFFFF

    def with_changes(
        self, at: NDArray[np.int64], call: NDArray[np.int64], kind: NDArray[np.uint8]
    ) -> Calls:
        """The same calls with changes that the log hasn't (A4), given by ascending instants (ms).

        Each stands behind the rows of its instant. The log must have been read at once.
        """
        place = np.searchsorted(self.rows.at, at, side="right")
        other = copy(self)
        other.rows = CallRows(
            at=np.insert(self.rows.at, place, at),
            recipient=np.insert(self.rows.recipient, place, self.recipient[call]),
            call=np.insert(self.rows.call, place, self.call[call]),
            kind=np.insert(self.rows.kind, place, kind),
        )
        other.row_call = np.insert(self.row_call, place, call)
        other.changed_at, other.final_kind = self.changed_at.copy(), self.final_kind.copy()
        other.changed_at[call], other.final_kind[call] = at, kind  # numpy keeps the last of several
        return other

    # -- what ends, as it goes on -----------------------------------------------------------------

    @property
    def ends(self) -> int:
        """How many calls have ended, or timed out in the queue, by what was taken in."""
        return self._ends

    def ended(self, since: int) -> NDArray[np.int64]:
        """These calls from number `since` on, in the order of their ends."""
        return self._ended[since : self._ends].astype(np.int64)

    def has_ends_ahead(self) -> bool:
        """Whether any more have ended, by what was not taken in yet."""
        since = max(self._rows_read, self._searched)
        found = self._log.has_any(_ENDINGS, since)
        if not found:
            self._searched = len(self._log)
        return found

    # -- reading ----------------------------------------------------------------------------------

    def _create(self, rows: CallRows, created: NDArray[np.intp], places: NDArray[np.intp]) -> None:
        """Have calls more; the rows `created` create them, `places` are their positions."""
        self._show(len(self) + len(places))
        self.recipient[places] = rows.recipient.take(created)
        self.call[places] = rows.call.take(created)
        self.created_at[places] = rows.at.take(created)

    def _take_in(self, rows: CallRows, calls: NDArray[np.int32]) -> None:
        """Take in the next rows of the log, each of which is of one of `calls`."""
        for name, kinds in _INSTANTS.items():
            chosen = rows_of(rows.kind, kinds)
            changed = calls.take(chosen).astype(np.intp)
            getattr(self, name)[changed] = rows.at.take(chosen)
            if kinds is HAS_END:
                self._take_in_ends(changed)
        self._take_in_dials(rows, calls)
        self._rows_read += len(rows)
        self.rows, self.row_call = rows, calls

    def _by_turns(self, rows: CallRows) -> list[NDArray[np.int64]]:
        """The rows of the newest calls known, then those of calls that are created one later, …

        A recipient's calls follow one another, and only the newest ever changes.
        """
        known = self.newest[rows.recipient]
        later = rows.call - np.where(known == NO_CALL, 0, self.call[known])
        # numpy sorts small numbers by radix, which takes a tenth of the time
        later = later.astype(np.min_scalar_type(later.max(initial=0)))
        order = np.argsort(later, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(later[order])) + 1)

    def _begin(self, calls: NDArray[np.int32]) -> None:
        """Link calls that are created to those before them."""
        who = self.recipient[calls]
        self.attempts_before[calls] = self.attempts_of(who)
        self.previous[calls] = self.newest[who]
        self.newest[who] = calls

    def _take_in_dials(self, rows: CallRows, calls: NDArray[np.int32]) -> None:
        """Take in dials, and withdrawals, which take back what a dial has left (P5)."""
        chosen = rows_of(rows.kind, DIALS | WITHDRAWS)
        places, dialled = calls.take(chosen).astype(np.intp), rows.kind.take(chosen) == DIALLED
        self.initiated_at[places] = np.where(dialled, rows.at.take(chosen), NEVER)
        self.attempt[places] = np.where(dialled, self.attempts_before.take(places) + 1, 0)
        known = slice(self._dials_read, self._dials_read + int(np.count_nonzero(dialled)))
        for column, texts in (
            (self.number, self._log.dial_numbers),
            (self.voice, self._log.dial_voices),
            (self.behaviour, self._log.dial_behaviours),
        ):
            values = np.full(len(places), -1, dtype=column.dtype)
            values[dialled] = np.array(texts[known])
            column[places] = values
        self._dials_read = known.stop

    def _take_in_ends(self, calls: NDArray[np.intp]) -> None:
        ends = self._ends + len(calls)
        if ends > len(self._ended):
            self._ended = np.resize(self._ended, max(ends, 2 * len(self._ended)))
        self._ended[self._ends : ends] = calls
        self._ends = ends

    def _show(self, count: int) -> None:
        """Have so many calls; the columns are the beginnings of longer ones, so that they grow."""
        for name, (dtype, blank) in _COLUMNS.items():
            kept = self._kept.get(name, np.empty(0, dtype))
            if count > len(kept):
                longer = np.full(max(count, 2 * len(kept)), blank, dtype=dtype)
                longer[: len(kept)] = kept
                kept = self._kept[name] = longer
            setattr(self, name, kept[:count])
        self.final_kind = self.last_kind


_ENDINGS = frozenset(np.flatnonzero(HAS_END).tolist())


def read_calls(trace: Trace, organization: int, campaign: int) -> Calls:
    """Read the log of one campaign at once, given by its positions in the scenario."""
    part = trace.campaign(organization, campaign)
    calls = Calls(part)
    calls.read()
    return calls


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
