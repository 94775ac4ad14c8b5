"""What is known of each call's analysis, worked out as conversations end (rules A)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.trace import ANALYSIS_FAILED, LATE_RESULT, Trace
from dialsim.engine.world import CampaignBlock
from dialsim.interface.errors import Refused
from dialsim.interface.status import AgentStatus, CallStatus
from dialsim.results.ledger import CALL_STATUSES, NEVER, TO_STATUS, read_ledger
from dialsim.results.stream.analyses import Analyst, conversations, talked
from dialsim.results.stream.findings import NULL, Findings
from dialsim.results.stream.flaws import Flaw
from dialsim.results.stream.notices import CONTENT_OF, FOREVER, Content, Notices, Owing
from dialsim.results.stream.verdicts import OF_CONTENT, Verdict
from dialsim.sandbox.call_book import CallBook, CallEntry

IN_PROGRESS = "IN_PROGRESS"
"""`agentStatus` while the conversation goes on; the interface names no value for it: ours."""

_FAILED = CALL_STATUSES.index(CallStatus.ANALYSIS_FAILED)
_EMPTY = b"{}"


@dataclass(frozen=True, slots=True)
class Standing:
    """How calls stand at an instant: `status` are indexes into `CALL_STATUSES` (int8).

    `changed_at` (ms) is the last change of each status, analyses included (A4).
    """

    status: NDArray[np.int8]
    changed_at: NDArray[np.int64]


class AnalysisChanges(NamedTuple):
    """Changes of calls by analyses: instants (ms), positions of calls, indexes into `CHANGES`."""

    at: NDArray[np.int64]
    call: NDArray[np.int64]
    kind: NDArray[np.int64]


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
        self._findings = Findings(block.agent.analysis)
        fields = 1 + (len(block.agent.analysis.fields) if block.agent.analysis else 0)
        self._row = np.dtype(
            [
                ("flaw", np.int8),
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
            for field in ("flaw", "ready_at", "failed_at", "found"):
                self._table[field][first.call] = getattr(first, field)
            self._changes = None
        self._analyze_again()

    def standing(self, calls: NDArray[np.int64], at: int) -> Standing:
        """How some calls stand at an instant from now on (A4)."""
        book, failed_at = self._book, self._table["failed_at"][calls]
        status = TO_STATUS[book.column("kind", calls)]
        changed_at = book.column("changed_at", calls)
        failed = (failed_at != NEVER) & (failed_at <= at)
        if failed.any():
            ready_at = self._table["ready_at"][calls]
            mended = failed & (ready_at != NEVER) & (ready_at <= at)
            status = np.where(failed & ~mended, np.int8(_FAILED), status)
            changed_at = np.where(failed, failed_at, changed_at)
            changed_at = np.where(mended, ready_at, changed_at)
        return Standing(status, changed_at)

    @property
    def version(self) -> int:
        """How many re-analyses there were: each may change any result, now or later."""
        return self._reanalyses

    def change_next(self, calls: NDArray[np.int64], at: int) -> NDArray[np.int64]:
        """When (ms) analyses change each of some calls next, after an instant; else `FOREVER`."""
        later = np.full(len(calls), FOREVER, dtype=np.int64)
        for change in ("ready_at", "failed_at"):
            instants = self._table[change][calls]
            np.minimum(later, instants, out=later, where=instants > at)
        ahead = self._again.ready_at[self._again.ready_at > at]
        np.minimum(later, ahead.min(initial=FOREVER), out=later)
        return later

    def mishaps(self, call: int, at: int) -> list[tuple[int, int]]:
        """What a failed analysis has changed up to an instant: when (ms), and to what kind (A4)."""
        row = self._table[call]
        failed_at, ready_at = int(row["failed_at"]), int(row["ready_at"])
        if failed_at == NEVER:
            return []
        changes = [(failed_at, ANALYSIS_FAILED), (ready_at, LATE_RESULT)]
        return [(since, kind) for since, kind in changes if NEVER < since <= at]

    def flaw(self, call: int) -> Flaw:
        """What is wrong with a conversation that has ended, or with its analysis."""
        return Flaw(self._table["flaw"][call])

    def agent_status(self, call: int, entry: CallEntry) -> str:
        """How the agent fared in a call (F2)."""
        if entry.started_at == NEVER:
            return AgentStatus.NOT_STARTED
        if entry.ended_at == NEVER:
            return IN_PROGRESS
        stopped = self._table["flaw"][call] == Flaw.AGENT_ERROR
        return AgentStatus.ERROR if stopped else AgentStatus.COMPLETED

    def result(self, call: int, at: int, masked: bool) -> tuple[bytes, int]:
        """The newest result of a call as JSON, and since when (ms) it is there.

        The empty object and `NEVER` while there is none. `masked`: retention removed the output.
        """
        newest = self._newest(call, at)
        if not len(newest):
            return _EMPTY, NEVER
        text = self._findings.texts(newest, np.array([masked]))[0]
        return (_EMPTY if text == NULL else text), int(newest.ready_at[0])

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
        newest = self._newest(call, at)
        if len(newest):
            return OF_CONTENT[Content(newest.content[0])], int(newest.found[0, 0])
        row = self._table[call]
        if row["flaw"] in (Flaw.AGENT_ERROR, Flaw.NOT_RECORDED):
            return Verdict.NOT_ANALYZED, 0
        failed = NEVER < row["failed_at"] <= at
        return (Verdict.FAILED if failed else Verdict.PENDING), 0

    def changes(self, at: int) -> AnalysisChanges:
        """The changes of calls by their first analyses up to an instant, in that order (A4)."""
        if self._changes is None:
            known = self._table[: len(self._book)]
            failed = np.flatnonzero(known["failed_at"] != NEVER)
            late = failed[known["ready_at"][failed] != NEVER]
            calls = np.concatenate([failed, late])
            instants = np.concatenate([known["failed_at"][failed], known["ready_at"][late]])
            kinds = np.repeat([ANALYSIS_FAILED, LATE_RESULT], [len(failed), len(late)])
            order = np.argsort(instants, kind="stable")
            self._changes = AnalysisChanges(instants[order], calls[order], kinds[order])
        count = int(np.searchsorted(self._changes.at, at, side="right"))
        return AnalysisChanges(*(column[:count] for column in self._changes))

    def _newest(self, call: int, at: int) -> Notices:
        """The newest result of a call, one row, or none while there is none."""
        there = Notices.joined([self.firsts(np.array([call])), self.again(call)])
        rows = np.flatnonzero((there.ready_at != NEVER) & (there.ready_at <= at))
        rows = rows[there.content[rows] != Content.NOTHING]
        return there[rows[np.argsort(there.ready_at[rows], kind="stable")[-1:]]]

    def firsts(self, calls: NDArray[np.int64]) -> Notices:
        """The first results of some calls, at `NEVER` where there is none to come (W1)."""
        table, book = self._table[calls], self._book
        ended_at = book.column("ended_at", calls)
        talked_through = (book.column("started_at", calls) != NEVER) & (ended_at != NEVER)
        ready_at = np.where(talked_through, table["ready_at"], ended_at)
        content = np.where(talked_through, CONTENT_OF[table["flaw"]], np.int8(Content.NOTHING))
        return Notices(
            call=calls,
            result=np.zeros(len(calls), dtype=np.int16),
            content=content,
            found=table["found"],
            ready_at=ready_at,
            sent_at=np.where(ready_at == NEVER, NEVER, ready_at + self._delay),
            turn=np.zeros(len(calls), dtype=np.int32),
        )

    def again(self, call: int) -> Notices:
        """The results of one call's re-analyses, in the order in which they were begun."""
        start, stop = np.searchsorted(self._again.call, [call, call + 1])
        return self._again[np.arange(start, stop)]

    def repeated(self, since: int) -> Notices:
        """The results of all re-analyses but the first `since` (A5)."""
        return self._again[self._again.result > since]

    def failures(self, calls: NDArray[np.int64]) -> NDArray[np.int64]:
        """When (ms) the first analysis of each of some calls fails (A4); else `NEVER`."""
        failed_at: NDArray[np.int64] = self._table["failed_at"][calls]
        return failed_at

    def _analyze_again(self) -> None:
        """Work out the results of re-analyses, once one more has been asked for (A5)."""
        place = self._block.organization, self._block.position
        asked = sum((row.organization, row.campaign) == place for row in self._trace.reanalyses)
        if asked == self._reanalyses:
            return
        self._reanalyses = asked
        ledger = read_ledger(self._trace, *place)
        first = self._analyst.first(conversations(ledger, talked(ledger)))
        promised = Owing(self._trace, ledger, first).promised()
        again = promised[promised.result > 0]
        calls = self._book.find(ledger.recipient[again.call], ledger.call[again.call])
        again = replace(again, call=calls)
        self._again = again[np.lexsort((again.result, again.call))]
