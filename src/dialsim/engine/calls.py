"""The calls of one campaign: the one reader of its log, a row a call, in plain columns.

The log of a run is read at once (`Calls`), each column when it is first asked for; one that grows
is read row by row (`GrowingCalls`). Columns and their meaning are the same. All work is done
on whole columns: ten million rows take about a second.

The reader stands beside the trace, below `webhooks` and `results`, because both are made from it:
messages tell of calls, and tables and figures of calls and messages.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.trace import CHANGES, DIALLED, CallRows, CampaignTrace
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


class _DialChanges(NamedTuple):
    """Dials, and withdrawals, which take back what a dial has left (P5), in the order of the log.

    `call` is the position of the call of each, `at` its instant (ms).
    """

    call: NDArray[np.intp]
    at: NDArray[np.int64]
    is_dial: NDArray[np.bool_]

    @classmethod
    def among(cls, rows: CallRows, calls: NDArray[np.int32]) -> _DialChanges:
        """Those among rows, each of which is of one of `calls`."""
        chosen = rows_of(rows.kind, DIALS | WITHDRAWS)
        return cls(
            calls.take(chosen).astype(np.intp),
            rows.at.take(chosen),
            rows.kind.take(chosen) == DIALLED,
        )

    @property
    def dials(self) -> int:
        """How many are dials."""
        return int(np.count_nonzero(self.is_dial))

    @property
    def dialled_at(self) -> NDArray[np.int64]:
        """By change, what it makes the instant of the call's dial."""
        return np.where(self.is_dial, self.at, NEVER)

    def attempt(self, before: NDArray[np.int32]) -> NDArray[np.int32]:
        """By change, what it makes the call's attempt, by how many each call has before."""
        return np.where(self.is_dial, before.take(self.call) + 1, 0)

    def entries(self, of_dials: Sequence[int], dtype: Any) -> NDArray[Any]:
        """By change, what it makes a column of the call of which each dial has an entry."""
        values = np.full(len(self.call), -1, dtype=dtype)
        values[self.is_dial] = np.array(of_dials)
        return values


class Calls:
    """The calls of one campaign, each at a position that it keeps: in the order (recipient, call).

    Columns of calls are in this order; calls are given by their positions. Instants that did not
    happen are `NEVER`. Every column is read from the log when it is first asked for, and kept.

    `scripted` has, by `call_key`, what the scripts of numbers said of calls (P6). From the history
    before the scenario begins there are, per recipient: `past_attempts`, the attempts counted
    (int32), `past_status`, how the last call ended, an index into `CALL_STATUSES`, -1 for who has
    none, and `past_ended_at`, when (ms).
    """

    def __init__(self, part: CampaignTrace) -> None:
        people = part.block.people
        self.organization = part.organization
        self.campaign = part.campaign
        self.people = people.count
        self.past_attempts, self.past_status, self.past_ended_at = past_of(people)
        self.scripted: Mapping[int, ScriptStep] = part.log.scripted
        self._log = part.log

    def __len__(self) -> int:
        return int(self._before[-1])

    def __getitem__(self, call: int) -> CallEntry:
        return CallEntry(*(int(getattr(self, name)[call]) for name in CallEntry._fields))

    # -- columns ----------------------------------------------------------------------------------

    @cached_property
    def rows(self) -> CallRows:
        """The rows of the log; of one that grows, those taken in last."""
        return self._log_rows

    @cached_property
    def row_call(self) -> NDArray[np.int32]:
        """The call of each of `rows`."""
        return self._log_calls

    @cached_property
    def recipient(self) -> NDArray[np.int32]:
        """The recipient of each call, from 0."""
        return np.repeat(np.arange(self.people, dtype=np.int32), np.diff(self._before))

    @cached_property
    def call(self) -> NDArray[np.int32]:
        """The number of each call among those of its recipient, from 1."""
        number = np.arange(1, 1 + len(self)) - self._before.take(self.recipient)
        return number.astype(np.int32)

    @cached_property
    def previous(self) -> NDArray[np.int32]:
        """The same recipient's call before each; `NO_CALL` for the first."""
        position = np.arange(len(self), dtype=np.int32)
        return np.where(self.call > 1, position - 1, np.int32(NO_CALL))

    @cached_property
    def newest(self) -> NDArray[np.int32]:
        """The newest call of each recipient; `NO_CALL` for who has none."""
        has = self._before[1:] > self._before[:-1]
        return np.where(has, self._before[1:] - 1, NO_CALL).astype(np.int32)

    @cached_property
    def attempts_before(self) -> NDArray[np.int32]:
        """How many attempts of the recipient counted when each call was made (P5)."""
        counted = np.zeros(1 + len(self), dtype=np.int32)  # among the calls before each
        np.cumsum(self.counted, out=counted[1:])
        first = self._before.take(self.recipient)
        before: NDArray[np.int32] = counted[:-1] - counted.take(first)
        return before + self.past_attempts.take(self.recipient)

    @cached_property
    def attempt(self) -> NDArray[np.int32]:
        """The number of each call's own attempt; 0 if never dialled, or withdrawn (P5)."""
        return self._dialled_with(self._dial_changes.attempt(self.attempts_before), 0)

    @cached_property
    def created_at(self) -> NDArray[np.int64]:
        """When each call was created (ms)."""
        return self._newest_at(CREATES)

    @cached_property
    def queued_at(self) -> NDArray[np.int64]:
        """When each call was last released into the queue (ms)."""
        return self._newest_at(RELEASES)

    @cached_property
    def initiated_at(self) -> NDArray[np.int64]:
        """When each call was dialled (ms); `NEVER` if that was withdrawn (P5)."""
        return self._dialled_with(self._dial_changes.dialled_at, NEVER)

    @cached_property
    def ringing_at(self) -> NDArray[np.int64]:
        """When each call rang (ms)."""
        return self._newest_at(RINGS)

    @cached_property
    def started_at(self) -> NDArray[np.int64]:
        """When each call was answered (ms)."""
        return self._newest_at(ANSWERS)

    @cached_property
    def ended_at(self) -> NDArray[np.int64]:
        """When each call ended or timed out in the queue (ms)."""
        return self._newest_at(HAS_END)

    @cached_property
    def changed_at(self) -> NDArray[np.int64]:
        """When each call changed last (ms)."""
        return self._last_of(self._log_rows.at)

    @cached_property
    def last_kind(self) -> NDArray[np.uint8]:
        """The last change of each call by the engine, an index into `CHANGES`."""
        return self._last_of(self._log_rows.kind)

    @cached_property
    def final_kind(self) -> NDArray[np.uint8]:
        """The last change of all; another than `last_kind` where an analysis failed (A4)."""
        return self.last_kind

    @cached_property
    def number(self) -> NDArray[np.int32]:
        """The number that each call was made from, an index into `World.numbers`; -1 if none."""
        return self._of_dials(self._log.dial_numbers, np.int32)

    @cached_property
    def voice(self) -> NDArray[np.int32]:
        """The voice of each call, an index into `World.voice_keys`; -1 if none."""
        return self._of_dials(self._log.dial_voices, np.int32)

    @cached_property
    def behaviour(self) -> NDArray[np.int16]:
        """The behaviour of each call, an index into `World.behaviours`; -1 if none."""
        return self._of_dials(self._log.dial_behaviours, np.int16)

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

    # -- what ends --------------------------------------------------------------------------------

    @property
    def ends(self) -> int:
        """How many calls have ended, or timed out in the queue."""
        return len(self._ended)

    def ended(self, since: int) -> NDArray[np.int64]:
        """These calls from number `since` on, in the order of their ends."""
        return self._ended[since:].astype(np.int64)

    # -- reading ----------------------------------------------------------------------------------

    # `rows` and `row_call` can have changes more than the log (`with_changes`), unlike these two

    @cached_property
    def _log_rows(self) -> CallRows:
        return self._log.rows()

    @cached_property
    def _log_calls(self) -> NDArray[np.int32]:
        rows = self._log_rows
        calls = (self._before - 1).astype(np.int32).take(rows.recipient)
        calls += rows.call
        return calls

    @cached_property
    def _before(self) -> NDArray[np.intp]:
        """How many calls the recipients before each have, and, at the end, all of them."""
        rows = self._log_rows
        created = rows.recipient.take(rows_of(rows.kind, CREATES))
        before = np.zeros(self.people + 1, dtype=np.intp)
        np.cumsum(np.bincount(created, minlength=self.people), out=before[1:])
        return before

    @cached_property
    def _ended(self) -> NDArray[np.int32]:
        """The calls that have ended, or timed out in the queue, in the order of their ends."""
        return self._log_calls.take(rows_of(self._log_rows.kind, HAS_END))

    @cached_property
    def _dial_changes(self) -> _DialChanges:
        return _DialChanges.among(self._log_rows, self._log_calls)

    def _last_of(self, column: NDArray[Any]) -> NDArray[Any]:
        """What a column of the log has in the last row of each call."""
        values = np.empty(len(self), dtype=column.dtype)
        # numpy writes to places of its own type in a third of the time that others take
        values[self._log_calls.astype(np.intp)] = column  # and keeps the last of several
        return values

    def _newest_at(self, kinds: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The instant of each call's newest change of some kinds."""
        values = np.full(len(self), NEVER, dtype=np.int64)
        chosen = rows_of(self._log_rows.kind, kinds)
        values[self._log_calls.take(chosen).astype(np.intp)] = self._log_rows.at.take(chosen)
        return values

    def _dialled_with(self, values: NDArray[Any], blank: int) -> NDArray[Any]:
        """A column of what a call's newest dial or withdrawal has made of it."""
        column = np.full(len(self), blank, dtype=values.dtype)
        column[self._dial_changes.call] = values
        return column

    def _of_dials(self, entries: Sequence[int], dtype: Any) -> NDArray[Any]:
        """A column by the log's entries for its dials; the log may have gone on."""
        known = entries[: self._dial_changes.dials]
        return self._dialled_with(self._dial_changes.entries(known, dtype), -1)


class GrowingCalls(Calls):
    """The calls of a campaign whose log is being written; those found come in the order found.

    `rows` and `row_call` are those taken in last. Here the columns are arrays that `update` writes
    to; they stand in the place of those that are made when asked for.
    """

    def __init__(self, part: CampaignTrace) -> None:
        """Know of no call yet."""
        super().__init__(part)
        self.newest = np.full(self.people, NO_CALL, dtype=np.int32)
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

    def update(self) -> None:
        """Take in what the log has got since the last time."""
        if len(self._log) > self._rows_read:
            rows = self._log.rows(self._rows_read)
            created = np.flatnonzero(CREATES[rows.kind])
            places = len(self) + np.arange(len(created))
            self._show(len(self) + len(places))
            self.recipient[places] = rows.recipient[created]
            self.call[places] = rows.call[created]
            self.created_at[places] = rows.at[created]
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
        changes = _DialChanges.among(rows, calls)
        self.initiated_at[changes.call] = changes.dialled_at
        self.attempt[changes.call] = changes.attempt(self.attempts_before)
        known = slice(self._dials_read, self._dials_read + changes.dials)
        for column, entries in (
            (self.number, self._log.dial_numbers),
            (self.voice, self._log.dial_voices),
            (self.behaviour, self._log.dial_behaviours),
        ):
            column[changes.call] = changes.entries(entries[known], column.dtype)
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
