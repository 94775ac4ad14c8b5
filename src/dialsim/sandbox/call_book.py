"""The call book: one campaign's calls as they stand now, kept up with a log that goes on."""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.trace import ANSWERED, DIALLED, RINGING, CallLog, CallRows
from dialsim.results.ledger import (
    CREATES,
    ENDS,
    NEVER,
    RELEASES,
    TIMES_OUT,
    TO_STATUS,
    WITHDRAWS,
    past_of,
)
from dialsim.results.stream.bodies import CallFacts
from dialsim.results.stream.flaws import Conversations, said
from dialsim.scenario.people import People

NONE = -1

_GROUP_BITS = 6  # recipients whose changes are counted together
_MOST_RECENT = 4_096  # changes that are kept for `latest`, several times what is ever shown

_CALL = np.dtype(
    [
        ("recipient", np.int32),
        ("number", np.int32),
        ("attempt", np.int32),
        ("behaviour", np.int16),
        ("kind", np.uint8),
        ("created_at", np.int64),
        ("started_at", np.int64),
        ("ended_at", np.int64),
        ("changed_at", np.int64),
        ("queued_at", np.int64),
        ("initiated_at", np.int64),
        ("ringing_at", np.int64),
        ("caller_id", np.int32),
        ("voice", np.int32),
    ]
)
_BLANK = np.array([(NONE, 0, 0, NONE, 0, *[NEVER] * 7, NONE, NONE)], dtype=_CALL)
_HAS_END = ENDS | TIMES_OUT
_ENDINGS = frozenset(np.flatnonzero(_HAS_END).tolist())


class CallEntry(NamedTuple):
    """A call as the engine left it; instants in ms, `NEVER` where it did not happen.

    `recipient` counts from 0, `number` from 1 (the recipient's first call); `attempt` is 0 until
    the call has ended as one; `behaviour` is an index into `World.behaviours`, -1 if never dialled;
    `kind`, the last change, is an index into `CHANGES`. `caller_id` and `voice` are indexes into
    `World.numbers` and `World.voice_keys`, -1 if there is none; they and `initiated_at` are those
    of the newest dial, and say nothing where that was withdrawn (P5).
    """

    recipient: int
    number: int
    attempt: int
    behaviour: int
    kind: int
    created_at: int
    started_at: int
    ended_at: int
    changed_at: int
    queued_at: int
    initiated_at: int
    ringing_at: int
    caller_id: int
    voice: int


class CallBook:
    """The calls of one campaign in order of creation, so that a call's position never changes.

    `catch_up` reads only what the log has got since the last time. Per recipient, `newest` (int32)
    is the position of the newest call, -1 for none, and `attempts` (int32) how many attempts are
    counted, those of a history included (P5); `past_status` and `past_ended_at` tell of the last
    call of a history, as in `Ledger`.
    """

    def __init__(self, log: CallLog, people: People) -> None:
        self._log = log
        self._rows_read = 0
        self._dials_read = 0
        self._calls = np.repeat(_BLANK, 16)
        self._count = 0
        self._talked: list[NDArray[np.int64]] = []
        self._ended = array("q")
        self._looked_at = 0  # rows of the log before this one are read, or end no call
        self._touched = np.zeros((people.count >> _GROUP_BITS) + 1, dtype=np.int64)
        self._recent = np.empty(0, dtype=np.int64)  # the calls of the last changes, newest last
        self.newest = np.full(people.count, NONE, dtype=np.int32)
        past = past_of(people)
        self.attempts = past.attempts
        self.past_status = past.status
        self.past_ended_at = past.ended_at

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, call: int) -> CallEntry:
        return CallEntry(*self._calls[call].item())

    def column(self, name: str, calls: NDArray[np.integer]) -> NDArray[np.int64]:
        """One field of `CallEntry`, of some calls."""
        values: NDArray[np.int64] = self._calls[name][calls].astype(np.int64, copy=False)
        return values

    def facts(self, calls: NDArray[np.int64]) -> CallFacts:
        """What payloads say of some calls that have ended."""
        table = self._calls[calls]
        return CallFacts(
            recipient=table["recipient"],
            call=table["number"],
            last_kind=table["kind"],
            started_at=table["started_at"],
            ended_at=table["ended_at"],
        )

    def find(
        self, recipients: NDArray[np.integer], numbers: NDArray[np.integer]
    ) -> NDArray[np.int64]:
        """The positions of calls that there are, by recipient and number."""
        table = self._calls[: self._count]
        keys = table["recipient"].astype(np.int64) << 32 | table["number"]
        order = np.argsort(keys)
        wanted = recipients.astype(np.int64) << 32 | numbers
        found: NDArray[np.int64] = order[np.searchsorted(keys, wanted, sorter=order)]
        return found

    def version(self, first: int, last: int) -> int:
        """A number that grows whenever calls of these recipients, `last` included, change."""
        touched = self._touched[first >> _GROUP_BITS : (last >> _GROUP_BITS) + 1]
        newest: int = max(touched.tolist())
        return newest

    @property
    def ends(self) -> int:
        """How many calls have ended, or timed out in the queue, by what it has taken in."""
        return len(self._ended)

    def has_ends_ahead(self) -> bool:
        """Whether any more have, by what it has not taken in yet."""
        since = max(self._rows_read, self._looked_at)
        if len(self._log) == since:
            return False
        found = self._log.has_any(_ENDINGS, since)
        if not found:
            self._looked_at = len(self._log)
        return found

    def ended(self, since: int) -> NDArray[np.int64]:
        """The calls that ended or timed out in the queue, in that order, from number `since` on."""
        return np.array(self._ended[since:], dtype=np.int64)

    def catch_up(self) -> None:
        """Take in the rows that the log has got since the last time."""
        if len(self._log) == self._rows_read:
            return
        rows = self._log.rows(self._rows_read)
        self._rows_read += len(rows.at)
        self._touched[rows.recipient >> _GROUP_BITS] = self._rows_read
        calls = self._positions(rows)
        table, at, kind = self._calls, rows.at, rows.kind
        self._recent = np.concatenate([self._recent, calls[-_MOST_RECENT:]])[-_MOST_RECENT:]
        table["changed_at"][calls] = at  # numpy keeps the last of several
        table["kind"][calls] = kind
        for field, chosen in (
            ("created_at", CREATES[kind]),
            ("started_at", kind == ANSWERED),
            ("ended_at", _HAS_END[kind]),
            ("queued_at", RELEASES[kind]),
            ("ringing_at", kind == RINGING),
        ):
            table[field][calls[chosen]] = at[chosen]
        self._ended.frombytes(calls[_HAS_END[kind]].tobytes())
        self._read_dials(calls, at, kind)
        self._count_attempts(calls[ENDS[kind]])

    def of_recipient(self, recipient: int) -> NDArray[np.int64]:
        """The calls of one recipient, in the order of their creation."""
        return np.flatnonzero(self._calls["recipient"][: self._count] == recipient)

    def latest(self, most: int, status: int | None = None) -> NDArray[np.int64]:
        """The calls that changed last, newest first; `status` is an index into `CALL_STATUSES`.

        The last changes are kept at hand; all calls are looked at only for a status that is rare
        among them. Analyses, which the engine knows nothing of, are no changes here.
        """
        calls = _newest_first(self._recent, self._calls["kind"], status)
        if len(calls) < most and len(self._recent) == _MOST_RECENT:
            order = np.argsort(self._calls["changed_at"][: self._count], kind="stable")
            calls = _newest_first(order, self._calls["kind"], status)
        return calls[:most]

    def new_conversations(self) -> Conversations | None:
        """The conversations that have ended since this was last asked, in that order, if any."""
        if not self._talked:
            return None
        calls = np.concatenate(self._talked)
        self._talked.clear()
        table = self._calls[calls]
        return Conversations(
            call=calls,
            recipient=table["recipient"],
            attempt=table["attempt"],
            behaviour=table["behaviour"],
            ended_at=table["ended_at"],
            said=said(self._log.scripted, table["recipient"], table["number"]),
        )

    def _read_dials(
        self, calls: NDArray[np.int64], at: NDArray[np.int64], kind: NDArray[np.uint8]
    ) -> None:
        """Take in dials, and withdrawals, which take back what a dial has left (P5)."""
        table, log, dialled = self._calls, self._log, kind == DIALLED
        begun = np.where(dialled, at, NEVER)
        dials = calls[dialled]
        for field, texts in (
            ("behaviour", log.dial_behaviours),
            ("caller_id", log.dial_numbers),
            ("voice", log.dial_voices),
        ):
            table[field][dials] = np.array(texts[self._dials_read :])
        self._dials_read += len(dials)
        concerned = dialled | WITHDRAWS[kind]
        table["initiated_at"][calls[concerned]] = begun[concerned]

    def _positions(self, rows: CallRows) -> NDArray[np.int64]:
        """The call of each row; calls that the rows create are put in first.

        Only a recipient's newest call ever changes, so a row is of the newest call known before,
        or of one that is created here.
        """
        created = np.flatnonzero(CREATES[rows.kind])
        first = self._count
        self._make_room(first + len(created))
        who, number = rows.recipient[created], rows.call[created]
        new = np.arange(first, first + len(created), dtype=np.int64)
        self._calls["recipient"][new] = who
        self._calls["number"][new] = number
        calls = self.newest[rows.recipient].astype(np.int64)
        known = np.where(calls == NONE, 0, self._calls["number"][calls])
        later = np.flatnonzero(rows.call > known)
        keys = who.astype(np.int64) << 32 | number
        order = np.argsort(keys, kind="stable")
        wanted = rows.recipient[later].astype(np.int64) << 32 | rows.call[later]
        calls[later] = new[order[np.searchsorted(keys, wanted, sorter=order)]]
        self.newest[who] = new  # of several, the last is the newest
        return calls

    def _make_room(self, count: int) -> None:
        spare = max(count, 2 * len(self._calls)) - len(self._calls)
        if count > len(self._calls):
            self._calls = np.concatenate([self._calls, np.repeat(_BLANK, spare)])
        self._count = count

    def _count_attempts(self, ended: NDArray[np.int64]) -> None:
        """Number the attempts that ended, in the order of their ends (P5)."""
        who = self._calls["recipient"][ended]
        order = np.argsort(who, kind="stable")
        grouped = who[order]
        place = np.arange(len(order))
        starts = np.concatenate([[True], grouped[1:] != grouped[:-1]])[: len(order)]
        rank = place - np.maximum.accumulate(np.where(starts, place, 0))
        self._calls["attempt"][ended[order]] = self.attempts[grouped] + rank + 1
        np.add.at(self.attempts, who, 1)
        talked = ended[self._calls["started_at"][ended] != NEVER]
        if len(talked):
            self._talked.append(talked)


def _newest_first(
    changes: NDArray[np.int64], kinds: NDArray[np.uint8], status: int | None
) -> NDArray[np.int64]:
    """The different calls of some changes, those of one status if it is given, last one first."""
    calls, places = np.unique(changes[::-1], return_index=True)
    calls = calls[np.argsort(places)]
    return calls if status is None else calls[TO_STATUS[kinds[calls]] == status]
