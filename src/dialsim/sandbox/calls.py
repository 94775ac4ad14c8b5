"""The call book: one campaign's calls as they stand now, kept up with a log that goes on.

What is known of each call's analysis, worked out as conversations end (rules A).
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.calls import (
    CALL_STATUSES,
    CREATES,
    ENDS,
    NEVER,
    RELEASES,
    TIMES_OUT,
    TO_STATUS,
    WITHDRAWS,
    past_of,
    read_calls,
)
from dialsim.engine.trace import (
    ANSWERED,
    DIALLED,
    RINGING,
    CallLog,
    CallRows,
    Trace,
)
from dialsim.engine.world import CampaignBlock
from dialsim.interface.errors import Refused
from dialsim.interface.status import AgentStatus, CallStatus
from dialsim.scenario.people import People
from dialsim.webhooks.analysis import (
    Analyses,
    AnalysisChanges,
    AnalysisOutcome,
    Analyst,
    Conversations,
    changes_by,
    conversations,
    said,
    talked,
)
from dialsim.webhooks.bodies import Body, CallFacts, CallResultMaker
from dialsim.webhooks.messages import FOREVER, Content, MessageBuilder, Messages, first_messages
from dialsim.webhooks.stream import VERDICTS, Verdict, verdicts

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
    call of a history, as in `Calls`.
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


IN_PROGRESS = "IN_PROGRESS"
"""`agentStatus` while the conversation goes on; the interface names no value for it: ours."""

_FAILED = CALL_STATUSES.index(CallStatus.ANALYSIS_FAILED)


@dataclass(frozen=True, slots=True)
class Standing:
    """How calls stand at an instant: `status` are indexes into `CALL_STATUSES` (int8).

    `changed_at` (ms) is the last change of each status, analyses included (A4).
    """

    status: NDArray[np.int8]
    changed_at: NDArray[np.int64]


class CallResults:
    """The analyses of one campaign's calls.

    First analyses are made in batches, each conversation's once, when it has ended. Re-analyses are
    rare: a campaign that has one is read as a whole, once for each.
    """

    def __init__(self, trace: Trace, block: CampaignBlock, book: CallBook) -> None:
        self._trace = trace
        self._block = block
        self._book = book
        self._analyst = Analyst(trace.world, block)
        self._results = CallResultMaker(block.agent.analysis)
        fields = 1 + (len(block.agent.analysis.fields) if block.agent.analysis else 0)
        self._row = np.dtype(
            [
                ("outcome", np.int8),
                ("ready_at", np.int64),
                ("failed_at", np.int64),
                ("found", np.uint16, (fields,)),
            ]
        )
        self._table = np.empty(0, dtype=self._row)
        self._changes: AnalysisChanges | None = None
        self._delay = trace.world.scenario.engine.webhook_delay
        self._reanalyses = 0
        self._again = self.firsts(np.empty(0, dtype=np.int64))  # none, so far; by (call, result)

    def catch_up(self) -> None:
        """Analyze what has ended since the last time; the book comes first."""
        if len(self._book) > len(self._table):
            blank = np.zeros(max(len(self._book), 2 * len(self._table)), dtype=self._row)
            blank["ready_at"] = blank["failed_at"] = NEVER
            blank[: len(self._table)] = self._table
            self._table = blank
        new = self._book.new_conversations()
        if new is not None:
            first = self._analyst.first(new)
            for field in ("outcome", "ready_at", "failed_at", "found"):
                self._table[field][first.call] = getattr(first, field)
            self._changes = None
        self._analyze_again()

    def standing(self, calls: NDArray[np.int64], at: int) -> Standing:
        """How some calls stand at an instant from now on (A4)."""
        status = TO_STATUS[self._book.column("kind", calls)]
        changed_at = self._book.column("changed_at", calls)
        changed = changes_by(self._analyses(calls), at)
        status[changed.call] = TO_STATUS[changed.kind]  # numpy keeps the last of several
        changed_at[changed.call] = changed.at
        return Standing(status, changed_at)

    @property
    def version(self) -> int:
        """How many re-analyses there were: each may change any result, now or later."""
        return self._reanalyses

    def mishaps(self, call: int, at: int) -> list[tuple[int, int]]:
        """What a failed analysis has changed up to an instant: when (ms), and to what kind (A4)."""
        changed = changes_by(self._analyses(np.array([call])), at)
        return [*zip(changed.at.tolist(), changed.kind.tolist(), strict=True)]

    def outcome(self, call: int) -> AnalysisOutcome:
        """What is wrong with a conversation that has ended, or with its analysis."""
        return AnalysisOutcome(self._table["outcome"][call])

    def agent_status(self, call: int, entry: CallEntry) -> str:
        """How the agent fared in a call (F2)."""
        if entry.started_at == NEVER:
            return AgentStatus.NOT_STARTED
        if entry.ended_at == NEVER:
            return IN_PROGRESS
        stopped = self._table["outcome"][call] == AnalysisOutcome.AGENT_ERROR
        return AgentStatus.ERROR if stopped else AgentStatus.COMPLETED

    def result(self, call: int, at: int, masked: bool) -> tuple[Body, int]:
        """The newest result of a call as JSON, and since when (ms) it is there.

        The empty object and `NEVER` while there is none. `masked`: retention removed the output.
        """
        newest = self._newest(call, at)
        if not len(newest):
            return {}, NEVER
        [result] = self._results.of(newest, np.array([masked]))
        return result or {}, int(newest.ready_at[0])

    def require_delivered(self, call: int, at: int) -> None:
        """Refuse a call that is not COMPLETED, or whose first POST is not out yet (A5)."""
        status = CALL_STATUSES[self.standing(np.array([call]), at).status[0]]
        row = self._table[call]
        ready_at = int(row["ready_at"])
        if status is not CallStatus.COMPLETED:
            text = f"Cannot re-analyze a {status} call"
        elif ready_at == row["failed_at"] == NEVER:
            text = "Cannot re-analyze a call that is not analyzed"
        elif ready_at == NEVER or ready_at + self._trace.world.scenario.engine.webhook_delay > at:
            text = "Cannot re-analyze a call whose result has not been delivered yet"
        else:
            return
        raise Refused(409, "INVALID_CALL_STATE", [text])

    def verdict(self, call: int, entry: CallEntry, at: int) -> tuple[Verdict | None, int]:
        """What the analysis of a call has come to, and the funnel steps found, 0 for none.

        None where there was no conversation, or it goes on.
        """
        if NEVER in (entry.started_at, entry.ended_at):
            return None, 0
        one, there = np.zeros(1, dtype=np.int64), self._there(call, at)
        there = replace(there, call=np.zeros(len(there), dtype=np.int64))
        known = verdicts(self._analyses(one + call), there, 1, at)
        return VERDICTS[known.code[0]], int(known.found[0, 0])

    def changes(self, at: int) -> AnalysisChanges:
        """The changes of calls by their first analyses up to an instant, in that order (A4)."""
        if self._changes is None:
            known = np.arange(len(self._book), dtype=np.int64)
            self._changes = changes_by(self._analyses(known), FOREVER)
        count = int(np.searchsorted(self._changes.at, at, side="right"))
        return self._changes[:count]

    def _newest(self, call: int, at: int) -> Messages:
        """The newest result of a call, one row, or none while there is none."""
        there = self._there(call, at)
        rows = np.flatnonzero(there.content != Content.NOTHING)
        return there[rows[np.argsort(there.ready_at[rows], kind="stable")[-1:]]]

    def _there(self, call: int, at: int) -> Messages:
        """The results of a call that are there at an instant."""
        known = Messages.joined([self.firsts(np.array([call])), self.again(call)])
        return known[(known.ready_at != NEVER) & (known.ready_at <= at)]

    def _analyses(self, calls: NDArray[np.int64]) -> Analyses:
        """The first analyses of some calls, by index into these; NEVER where there is none."""
        table = self._table[calls]
        return Analyses(
            call=np.arange(len(calls), dtype=np.int64),
            outcome=table["outcome"],
            ready_at=table["ready_at"],
            failed_at=table["failed_at"],
            found=table["found"],
        )

    def firsts(self, calls: NDArray[np.int64]) -> Messages:
        """The first results of some calls, at `NEVER` where there is none to come (W1)."""
        started_at = self._book.column("started_at", calls)
        ended_at = self._book.column("ended_at", calls)
        talked_through = np.flatnonzero((started_at != NEVER) & (ended_at != NEVER))
        analyses = replace(self._analyses(calls[talked_through]), call=talked_through)
        return first_messages(calls, ended_at, analyses, self._delay)

    def again(self, call: int) -> Messages:
        """The results of one call's re-analyses, in the order in which they were begun."""
        start, stop = np.searchsorted(self._again.call, [call, call + 1])
        return self._again[np.arange(start, stop)]

    def repeated(self, since: int) -> Messages:
        """The results of all re-analyses but the first `since` (A5)."""
        return self._again[self._again.result > since]

    def failures(self, calls: NDArray[np.int64]) -> NDArray[np.int64]:
        """When (ms) the first analysis of each of some calls fails (A4); else `NEVER`."""
        failed_at: NDArray[np.int64] = self._table["failed_at"][calls]
        return failed_at

    def _analyze_again(self) -> None:
        """Work out the results of re-analyses, once one more has been asked for (A5)."""
        place = self._block.organization, self._block.position
        asked = len(self._trace.campaign(*place).reanalyses)
        if asked == self._reanalyses:
            return
        self._reanalyses = asked
        ledger = read_calls(self._trace, *place)
        first = self._analyst.first(conversations(ledger, talked(ledger)))
        promised = MessageBuilder(self._trace, ledger, first).promised()
        again = promised[promised.result > 0]
        calls = self._book.find(ledger.recipient[again.call], ledger.call[again.call])
        again = replace(again, call=calls)
        self._again = again[np.lexsort((again.result, again.call))]
