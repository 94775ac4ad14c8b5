"""Calls of one campaign, read from its log into plain columns with one row per call.

`Calls` reads the log of a finished run, each column on first use. `GrowingCalls` follows a log that
is still being written. Columns and their meaning are the same. All work is done on whole columns:
ten million rows take about a second.

The module stands beside the trace, below `webhooks` and `results`, because both are made from it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.trace import CHANGES, CallRows, CampaignTrace, PackedRows
from dialsim.interface import CallStatus
from dialsim.scenario.behaviour import ScriptStep
from dialsim.scenario.campaign import REACHED
from dialsim.scenario.people import People

NOT_HAPPENED = int(np.iinfo(np.int64).min)
"""Instant of an event that has not happened; numpy reads it as NaT."""

NO_CALL = -1
"""Index in place of a call that does not exist."""

CALL_STATUSES = tuple(CallStatus)

_UNDER_WAY = CallStatus.INITIATED
_WAITING = (CallStatus.SCHEDULED, CallStatus.QUEUED)


@dataclass(frozen=True, slots=True)
class ColumnTable:
    """Columns of equal length; an index array, a mask or a slice selects rows of all columns."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def __getitem__(self, rows: NDArray[np.integer] | NDArray[np.bool_] | slice) -> Self:
        if isinstance(rows, slice):
            return type(self)(*(getattr(self, part.name)[rows] for part in fields(self)))
        if rows.dtype == bool:
            # Most masks of a finished run select everything; a million rows need no copy then.
            if rows.all():
                return self
            # Taking by index is ten times as fast as by mask.
            rows = np.flatnonzero(rows)
        return type(self)(*(getattr(self, part.name).take(rows, axis=0) for part in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Concatenate tables; at least one."""
        # Empty parts are skipped, because concatenating copies; one remains for its dtypes.
        parts = [part for part in parts if len(part)] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        names = [part.name for part in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def by_status(statuses: Collection[CallStatus]) -> NDArray[np.bool_]:
    """Return a table by status, an index into `CALL_STATUSES`: True for the given statuses."""
    # The additional last element answers index -1, which stands for no call.
    return np.array([*(status in statuses for status in CALL_STATUSES), False])


def _kinds(*causes: str) -> NDArray[np.bool_]:
    return np.array([change.cause in causes for change in CHANGES])


def _net(*statuses: CallStatus) -> NDArray[np.int8]:
    """Return a table by kind of change: change in the number of calls in these statuses."""
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
RETRIES = _kinds("retry")
RELEASES = _kinds("released")
DIALS = _kinds("dialled")
RINGS = _kinds("ringing")
ANSWERS = _kinds("answered")
ENDS = _kinds("ended")
TIMES_OUT = _kinds("queue_timeout")
HAS_END = ENDS | TIMES_OUT
# Whatever leaves INITIATED without an end: pauses, cancellations, deletions and expiries of a dial
# (C4).
WITHDRAWS = ~ENDS & np.array(
    [change.from_status == _UNDER_WAY != change.to_status for change in CHANGES]
)
# P5: a dial counts unless it was withdrawn, which leads to another last change of its call.
HAS_DIAL = DIALS | RINGS | ANSWERS | ENDS
# Q1: a line is held from INITIATED until the end or the withdrawal.
SLOTS = _net(_UNDER_WAY)
WAITING = _net(*_WAITING)
IN_QUEUE = _net(CallStatus.QUEUED)


def holds(kind: NDArray[np.uint8], kinds: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return True for each row of a column of kinds that holds one of `kinds`."""
    found = np.zeros(len(kind), dtype=bool)
    # The last kinds, of pauses and early ends, are absent from most logs.
    occurring = kinds[: int(kind.max(initial=0)) + 1]
    for each in np.flatnonzero(occurring).tolist():
        # Comparing with a few values takes a fraction of the time of a table lookup per row.
        found |= kind == each
    return found


def rows_of(kind: NDArray[np.uint8], kinds: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the row indices at which a column of kinds holds one of `kinds`."""
    return np.flatnonzero(holds(kind, kinds))


_INSTANTS = {
    "queued_at": RELEASES,
    "ringing_at": RINGS,
    "started_at": ANSWERS,
    "ended_at": HAS_END,
}
"""Columns with the instant of a call's newest change of some kinds."""

_COLUMNS: dict[str, tuple[type[np.integer], int]] = {
    "recipient": (np.int32, 0),
    "call": (np.int32, 0),
    "previous": (np.int32, NO_CALL),
    "attempts_before": (np.int32, 0),
    "attempt": (np.int32, 0),
    **dict.fromkeys(
        [*_INSTANTS, "created_at", "initiated_at", "changed_at"], (np.int64, NOT_HAPPENED)
    ),
    "last_kind": (np.uint8, 0),
    "number": (np.int32, -1),
    "voice": (np.int32, -1),
    "behaviour": (np.int16, -1),
}
"""Type of each column, and the value where nothing is known."""


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
        """True if a conversation took place and has ended."""
        return NOT_HAPPENED not in (self.started_at, self.ended_at)

    @property
    def talk_ms(self) -> int:
        """Duration of the conversation in ms; 0 if none has ended."""
        return self.ended_at - self.started_at if self.has_talked else 0


class Calls:
    """Calls of one campaign as columns, sorted by (recipient, call) and given by index.

    Instants without an event are `NOT_HAPPENED`. Each column is read from the log on first use, and
    kept. `scripted` maps `call_key` to the step of a number's script (P6). Columns per
    recipient from histories: `past_attempts` (int32), `past_status` (index into `CALL_STATUSES`; -1
    without a history) and `past_ended_at` (ms).
    """

    def __init__(self, part: CampaignTrace) -> None:
        people = part.block.people
        self.organization = part.organization
        self.campaign = part.campaign
        self.people = people.count
        self.scripts = people.script  # by recipient: codes, -1 for whoever has no script
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
        """Rows of the log; of a growing one, the rows read last."""
        return self._log_rows

    @cached_property
    def answer_rows(self) -> NDArray[np.int32]:
        """Rows of the log in which calls are answered."""
        return rows_of(self._log_rows.kind, ANSWERS).astype(np.int32)

    @cached_property
    def dial_rows(self) -> NDArray[np.int32]:
        """Rows of the log in which calls are dialled."""
        return rows_of(self._log_rows.kind, DIALS).astype(np.int32)

    @cached_property
    def row_call(self) -> NDArray[np.int32]:
        """Call index of each of `rows`."""
        return self._log_calls

    @cached_property
    def recipient(self) -> NDArray[np.int32]:
        """Recipient of each call, from 0."""
        return np.repeat(np.arange(self.people, dtype=np.int32), np.diff(self._before))

    @cached_property
    def call(self) -> NDArray[np.int32]:
        """Ordinal of each call among the calls of its recipient, from 1."""
        number = np.arange(1, 1 + len(self)) - self._before.take(self.recipient)
        return number.astype(np.int32)

    @cached_property
    def previous(self) -> NDArray[np.int32]:
        """Index of the same recipient's call before each call; `NO_CALL` for the first."""
        position = np.arange(len(self), dtype=np.int32)
        return np.where(self.call > 1, position - 1, np.int32(NO_CALL))

    @cached_property
    def newest(self) -> NDArray[np.int32]:
        """Index of each recipient's newest call; `NO_CALL` without calls."""
        has = self._before[1:] > self._before[:-1]
        return np.where(has, self._before[1:] - 1, NO_CALL).astype(np.int32)

    @cached_property
    def attempts_before(self) -> NDArray[np.int32]:
        """Number of attempts of the recipient that had counted when each call was created (P5)."""
        # Calls are sorted by recipient, so that one cumulative sum serves all recipients.
        counted = np.zeros(1 + len(self), dtype=np.int32)
        np.cumsum(self.counted, out=counted[1:])
        own = self.past_attempts - counted.take(self._before[:-1])
        before: NDArray[np.int32] = counted[:-1] + own.take(self.recipient)
        return before

    @cached_property
    def attempt(self) -> NDArray[np.int32]:
        """Ordinal of each call's attempt; 0 if never dialled, or withdrawn (P5)."""
        return np.where(self._has_dial, self.attempts_before + 1, np.int32(0))

    @cached_property
    def created_at(self) -> NDArray[np.int64]:
        """Instant of each call's creation (ms)."""
        return self._newest_at(rows_of(self._log_rows.kind, CREATES))

    @cached_property
    def queued_at(self) -> NDArray[np.int64]:
        """Instant of each call's latest release into the queue (ms)."""
        return self._newest_at(rows_of(self._log_rows.kind, RELEASES))

    @cached_property
    def initiated_at(self) -> NDArray[np.int64]:
        """Instant of each call's dial (ms); `NOT_HAPPENED` if it was withdrawn (P5)."""
        return np.where(self._has_dial, self._newest_at(self.dial_rows), NOT_HAPPENED)

    @cached_property
    def ringing_at(self) -> NDArray[np.int64]:
        """Instant at which each call began to ring (ms)."""
        return self._newest_at(rows_of(self._log_rows.kind, RINGS))

    @cached_property
    def started_at(self) -> NDArray[np.int64]:
        """Instant at which each call was answered (ms)."""
        return self._newest_at(self.answer_rows)

    @cached_property
    def ended_at(self) -> NDArray[np.int64]:
        """Instant at which each call ended or timed out in the queue (ms)."""
        return self._newest_at(self._end_rows)

    @cached_property
    def changed_at(self) -> NDArray[np.int64]:
        """Instant of each call's last change (ms)."""
        return self._last_of(self._log_rows.at)

    @cached_property
    def last_kind(self) -> NDArray[np.uint8]:
        """Each call's last change by the engine, an index into `CHANGES`."""
        return self._last_of(self._log_rows.kind)

    @cached_property
    def final_kind(self) -> NDArray[np.uint8]:
        """Each call's last change; differs from `last_kind` after a failed analysis (A4)."""
        return self.last_kind

    @cached_property
    def number(self) -> NDArray[np.int32]:
        """Caller ID of each call, an index into `World.numbers`; -1 if none."""
        return self._of_dials(self._log.dial_numbers, np.int32)

    @cached_property
    def voice(self) -> NDArray[np.int32]:
        """Voice of each call, an index into `World.voice_keys`; -1 if none."""
        return self._of_dials(self._log.dial_voices, np.int32)

    @cached_property
    def behaviour(self) -> NDArray[np.int16]:
        """Behaviour of each call, an index into `World.behaviours`; -1 if none."""
        return self._of_dials(self._log.dial_behaviours, np.int16)

    # -- what is known of calls -------------------------------------------------------------------

    @property
    def status(self) -> NDArray[np.int8]:
        """Last status of each call, as an index into `CALL_STATUSES`."""
        return TO_STATUS.take(self.final_kind)

    @property
    def counted(self) -> NDArray[np.bool_]:
        """True for calls that count as an attempt: dialled and ended (P5)."""
        return ENDS.take(self.last_kind)

    @property
    def talk_ms(self) -> NDArray[np.int64]:
        """Duration of each ended conversation in ms; 0 without one."""
        talked = (self.started_at != NOT_HAPPENED) & (self.ended_at != NOT_HAPPENED)
        return np.where(talked, self.ended_at - self.started_at, 0)

    def newest_at(
        self, recipients: NDArray[np.integer], at: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the newest call of each given recipient at its instant (ms).

        Each recipient must have a call by then.
        """
        found: NDArray[np.int64] = self.newest[recipients].astype(np.int64)
        # Calls of a recipient are few, so this walks back a few steps at most, all recipients at
        # once.
        while len(later := np.flatnonzero(self.created_at[found] > at)):
            found[later] = self.previous[found[later]]
        return found

    def status_before_next(
        self, calls: NDArray[np.int64], at: NDArray[np.int64]
    ) -> NDArray[np.int8]:
        """Return the status of each call before its first change after its instant (ms).

        `rows` must contain such a change for each call.
        """
        order = np.arange(len(self.row_call), dtype=np.int64)
        keys = np.sort(self.row_call.astype(np.int64) << 32 | order)
        # Keys are (call, row): the first row of a call behind this index is its next change.
        first = np.searchsorted(self.rows.at, at, side="right")
        rows = keys[np.searchsorted(keys, calls << 32 | first)] & 0xFFFFFFFF
        status: NDArray[np.int8] = FROM_STATUS[self.rows.kind[rows]]
        return status

    def find(
        self, recipients: NDArray[np.integer], numbers: NDArray[np.integer]
    ) -> NDArray[np.int64]:
        """Return the indices of existing calls, given by recipient and ordinal."""
        found: NDArray[np.int64] = self.newest[recipients].astype(np.int64)
        while len(later := np.flatnonzero(self.call[found] > numbers)):
            found[later] = self.previous[found[later]]
        return found

    def of(self, recipient: int) -> list[int]:
        """Return the indices of a recipient's calls, oldest first."""
        calls, call = list[int](), int(self.newest[recipient])
        while call != NO_CALL:
            calls.append(call)
            call = int(self.previous[call])
        return calls[::-1]

    def latest(self, most: int) -> NDArray[np.int64]:
        """Return the calls that changed last, newest first, at most `most`.

        Changes by analyses do not count, because the engine does not make them.
        """
        chosen = np.arange(len(self))
        # There may be millions of calls: only the newest ones are sorted.
        if len(chosen) > most:
            at = self.changed_at[chosen]
            chosen = chosen[at >= np.partition(at, -most)[-most]]
        return chosen[np.argsort(self.changed_at[chosen], kind="stable")[::-1]][:most]

    # -- what is known of recipients --------------------------------------------------------------

    @property
    def past_reached(self) -> NDArray[np.bool_]:
        """True for recipients who were reached before the scenario begins (R3)."""
        return _WAS_REACHED.take(self.past_status)

    @property
    def attempts(self) -> NDArray[np.int64]:
        """Number of counted attempts of each recipient, history included (P5)."""
        return self.attempts_of(np.arange(self.people)).astype(np.int64)

    def attempts_of(self, recipients: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the number of counted attempts of the given recipients, history included (P5)."""
        attempts: NDArray[np.int32] = self.past_attempts.take(recipients)
        calls = self.newest.take(recipients)
        has = np.flatnonzero(calls != NO_CALL)
        newest = calls.take(has)
        attempts[has] = self.attempts_before.take(newest) + self.counted.take(newest)
        return attempts

    def of_newest(self, per_call: NDArray[Any], otherwise: int | NDArray[Any]) -> NDArray[Any]:
        """Return the value of each recipient's newest call in a column of calls.

        Recipients without a call get `otherwise`.
        """
        # Indices instead of a mask: numpy takes by index in a fraction of the time.
        has = np.flatnonzero(self.newest != NO_CALL)
        values = np.full(self.people, otherwise, dtype=per_call.dtype)
        values[has] = per_call.take(self.newest.take(has))
        return values

    # -- the log by calls -------------------------------------------------------------------------

    def rows_by_call(self) -> NDArray[np.int64]:
        """Return the order that sorts `rows` by call, keeping the order of events within a call."""
        order = np.arange(len(self.row_call), dtype=np.int64)
        if np.all(self.row_call[1:] >= self.row_call[:-1]):
            return order
        # Sorting integers takes a quarter of the time of a stable argsort. Row numbers in the low
        # bits make the keys unique, hence the sort stable.
        return np.sort(self.row_call.astype(np.int64) << 32 | order) & 0xFFFFFFFF

    def with_changes(
        self, at: NDArray[np.int64], call: NDArray[np.int64], kind: NDArray[np.uint8]
    ) -> Calls:
        """Return a copy with additional changes that the log does not contain (A4).

        They are sorted by instant (ms); each is inserted behind the rows of its instant. The log
        must not be growing.
        """
        index = np.searchsorted(self.rows.at, at, side="right")
        other = copy(self)
        other.rows = CallRows(
            at=np.insert(self.rows.at, index, at),
            recipient=np.insert(self.rows.recipient, index, self.recipient[call]),
            call=np.insert(self.rows.call, index, self.call[call]),
            kind=np.insert(self.rows.kind, index, kind),
        )
        other.row_call = np.insert(self.row_call, index, call)
        other.changed_at, other.final_kind = self.changed_at.copy(), self.final_kind.copy()
        # Of several changes of one call numpy keeps the last.
        other.changed_at[call], other.final_kind[call] = at, kind
        return other

    # -- what ends --------------------------------------------------------------------------------

    @property
    def ends(self) -> int:
        """Number of calls that have ended or timed out in the queue."""
        return len(self._ended)

    def ended(self, since: int) -> NDArray[np.int64]:
        """Return the ended calls in the order of their ends, without the first `since`."""
        return self._ended[since:].astype(np.int64)

    # -- reading ----------------------------------------------------------------------------------

    # `rows` and `row_call` may contain changes that are not in the log (`with_changes`); these two
    # never do.

    @cached_property
    def _log_rows(self) -> PackedRows:
        return self._log.rows()

    @cached_property
    def _log_calls(self) -> NDArray[np.int32]:
        rows = self._log_rows
        # Indices of type intp, because numpy would convert others slowly.
        calls = (self._before - 1).take(rows.recipient.astype(np.intp))
        calls += rows.unpacked_calls()
        return calls

    @cached_property
    def _before(self) -> NDArray[np.int32]:
        """Number of calls of all recipients before each index; the last element is the number of
        all calls.
        """
        rows = self._log_rows
        created = rows.recipient.take(rows_of(rows.kind, CREATES))
        before = np.zeros(self.people + 1, dtype=np.int32)
        np.cumsum(np.bincount(created, minlength=self.people), dtype=np.int32, out=before[1:])
        return before

    @property
    def _has_dial(self) -> NDArray[np.bool_]:
        """True for calls with a dial that was not withdrawn."""
        return HAS_DIAL.take(self.last_kind)

    @cached_property
    def _end_rows(self) -> NDArray[np.int32]:
        """Rows of the log in which calls end or time out in the queue."""
        return rows_of(self._log_rows.kind, HAS_END).astype(np.int32)

    @cached_property
    def _ended(self) -> NDArray[np.int32]:
        """Calls that have ended or timed out in the queue, in the order of their ends."""
        return self._log_calls.take(self._end_rows)

    def _last_of(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return each call's value in the last of its rows of the log."""
        values = np.empty(len(self), dtype=column.dtype)
        ended = self._ended.astype(np.intp)
        # Most calls have ended, and an end is the last row of a call: only the others need a search
        # for their last row.
        if len(ended) < len(self):
            is_open = np.ones(len(self), dtype=bool)
            is_open[ended] = False
            rows = np.flatnonzero(is_open.take(self._log_calls))
            # Of several rows of one call numpy keeps the last.
            values[self._log_calls.take(rows).astype(np.intp)] = column.take(rows)
        values[ended] = column.take(self._end_rows)
        return values

    def _newest_at(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the instant of each call's newest change among some rows of the log."""
        values = np.full(len(self), NOT_HAPPENED, dtype=np.int64)
        # numpy writes to indices of type intp in a third of the time of other types.
        values[self._log_calls.take(rows).astype(np.intp)] = self._log_rows.at.take(rows)
        return values

    def _of_dials(self, entries: Sequence[int], dtype: Any) -> NDArray[Any]:
        """Return a column made from the log's entries per dial."""
        dialled = self._log_calls.take(self.dial_rows).astype(np.intp)
        column = np.full(len(self), -1, dtype=dtype)
        # A live log may have more dials by now than the rows that were read.
        column[dialled] = entries[: len(dialled)]
        if len(dialled) > np.count_nonzero(self._has_dial):
            column[~self._has_dial] = -1
        return column


class GrowingCalls(Calls):
    """Calls of a campaign whose log is still being written, in the order of their creation.

    `rows` and `row_call` are the rows read last. Columns are arrays that `update` writes to, in
    place of the lazily computed ones.
    """

    def __init__(self, part: CampaignTrace) -> None:
        """Start without calls."""
        super().__init__(part)
        self.newest = np.full(self.people, NO_CALL, dtype=np.int32)
        self._rows_read = 0
        self._dials_read = 0
        self._kept: dict[str, NDArray[Any]] = {}
        self._ended = np.empty(0, dtype=np.int32)
        self._ends = 0
        self._searched = 0  # rows of the log before this index are read, or end no call
        self.rows, self.row_call = self._log.rows(0, 0), np.empty(0, dtype=np.int32)
        self._show(0)

    def __len__(self) -> int:
        return len(self.recipient)

    def update(self) -> None:
        """Read the rows appended to the log since the last update."""
        if len(self._log) > self._rows_read:
            rows = self._log.rows(self._rows_read)
            created = np.flatnonzero(CREATES[rows.kind])
            # Calls get their index in order of creation, unlike in `Calls`: an index must not move
            # while readers hold it.
            places = len(self) + np.arange(len(created))
            self._show(len(self) + len(places))
            self.recipient[places] = rows.recipient[created]
            self.call[places] = rows.call[created]
            self.created_at[places] = rows.at[created]
            calls = np.empty(len(rows), dtype=np.int32)
            calls[created] = places
            for chosen in self._by_turns(rows):
                # Within one turn all rows of a recipient belong to one call: the newest, or one
                # that they create.
                self._begin(calls[chosen][CREATES[rows.kind[chosen]]])
                calls[chosen] = self.newest[rows.recipient[chosen]]
                # Of several rows of one call numpy keeps the last.
                self.last_kind[calls[chosen]] = rows.kind[chosen]
                self.changed_at[calls[chosen]] = rows.at[chosen]
            self._take_in(rows, calls)

    @property
    def ends(self) -> int:
        """Number of calls that have ended or timed out in the queue, in the rows read so far."""
        return self._ends

    def ended(self, since: int) -> NDArray[np.int64]:
        """Return the ended calls in the order of their ends, without the first `since`."""
        return self._ended[since : self._ends].astype(np.int64)

    def has_ends_ahead(self) -> bool:
        """Return True if unread rows of the log end a call."""
        since = max(self._rows_read, self._searched)
        found = self._log.has_any(_ENDINGS, since)
        if not found:
            self._searched = len(self._log)
        return found

    def _take_in(self, rows: CallRows, calls: NDArray[np.int32]) -> None:
        """Read rows into the columns; `calls` has the call index of each row."""
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
        """Split rows into turns: rows of the newest known calls, then of the calls created next,
        and so on.
        """
        # A recipient's calls follow one another and only the newest one changes, so that each turn
        # has at most one call per recipient.
        known = self.newest[rows.recipient]
        later = rows.call - np.where(known == NO_CALL, 0, self.call[known])
        # numpy sorts small integers by radix, in a tenth of the time.
        later = later.astype(np.min_scalar_type(later.max(initial=0)))
        order = np.argsort(later, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(later[order])) + 1)

    def _begin(self, calls: NDArray[np.int32]) -> None:
        """Link newly created calls to the calls before them."""
        recipients = self.recipient[calls]
        self.attempts_before[calls] = self.attempts_of(recipients)
        self.previous[calls] = self.newest[recipients]
        self.newest[recipients] = calls

    def _take_in_dials(self, rows: CallRows, calls: NDArray[np.int32]) -> None:
        dials = rows_of(rows.kind, DIALS)
        dialled = calls.take(dials)
        self.initiated_at[dialled] = rows.at.take(dials)
        self.attempt[dialled] = self.attempts_before[dialled] + 1
        known = slice(self._dials_read, self._dials_read + len(dials))
        self._dials_read = known.stop
        for column, entries in (
            (self.number, self._log.dial_numbers),
            (self.voice, self._log.dial_voices),
            (self.behaviour, self._log.dial_behaviours),
        ):
            column[dialled] = entries[known]
        withdrawn = calls.take(rows_of(rows.kind, WITHDRAWS))
        for name in ("initiated_at", "attempt", "number", "voice", "behaviour"):
            # Calls that were dialled again keep the values of the new dial.
            blanks = withdrawn[~HAS_DIAL.take(self.last_kind[withdrawn])]
            getattr(self, name)[blanks] = _COLUMNS[name][1]

    def _take_in_ends(self, calls: NDArray[np.intp]) -> None:
        ends = self._ends + len(calls)
        if ends > len(self._ended):
            # Doubled, so that each end costs constant time on average.
            self._ended = np.resize(self._ended, max(ends, 2 * len(self._ended)))
        self._ended[self._ends : ends] = calls
        self._ends = ends

    def _show(self, count: int) -> None:
        """Set the number of calls to `count`."""
        # Columns are views of longer arrays that double in size, so that growth takes constant time
        # per call.
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
    """Histories as columns per recipient; see `past_attempts` and so on of `Calls`."""

    attempts: NDArray[np.int32]
    status: NDArray[np.int8]
    ended_at: NDArray[np.int64]


def past_of(people: People) -> PastCalls:
    """Return the histories of one campaign's recipients as columns, not to be written to."""
    if not people.history:  # one entry stands for all, which saves 13 bytes a person
        return PastCalls(
            np.broadcast_to(np.int32(0), people.count),
            np.broadcast_to(np.int8(-1), people.count),
            np.broadcast_to(np.int64(NOT_HAPPENED), people.count),
        )
    attempts = np.zeros(people.count, dtype=np.int32)
    status = np.full(people.count, -1, dtype=np.int8)
    ended_at = np.full(people.count, NOT_HAPPENED, dtype=np.int64)
    for recipient, past in people.history.items():
        attempts[recipient] = past.call_attempt
        status[recipient] = CALL_STATUSES.index(past.latest_call_status)
        ended_at[recipient] = past.last_ended_at
    return PastCalls(attempts, status, ended_at)
