"""The analyses of one campaign's calls in a simulation that goes on (rules A)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.calls import CALL_STATUSES, NEVER, TO_STATUS, Calls
from dialsim.engine.trace import CampaignTrace
from dialsim.interface.errors import Refused
from dialsim.interface.status import CallStatus
from dialsim.webhooks.analysis import (
    Analyses,
    AnalysisChanges,
    AnalysisOutcome,
    Analyst,
    changes_by,
    conversations,
)
from dialsim.webhooks.bodies import Body, CallResultMaker
from dialsim.webhooks.messages import (
    FOREVER,
    Content,
    MessageBuilder,
    Messages,
    Verdicts,
    first_messages,
    verdicts,
)


@dataclass(frozen=True, slots=True)
class Standing:
    """How calls stand at an instant: `status` are indexes into `CALL_STATUSES` (int8).

    `changed_at` (ms) is the last change of each status, analyses included (A4).
    """

    status: NDArray[np.int8]
    changed_at: NDArray[np.int64]


class LiveAnalyses:
    """The analyses of one campaign's calls, known from the end of each conversation on.

    First analyses are made in batches, each conversation's once. Re-analyses are rare: all of them
    are worked out anew when one more is asked for. `reanalyses` counts them.
    """

    def __init__(self, part: CampaignTrace, calls: Calls) -> None:
        self._part = part
        self._calls = calls
        self._analyst = Analyst(part.trace.world, part.block)
        self._delay = part.trace.world.scenario.engine.webhook_delay
        analysis = part.block.agent.analysis
        self._results = CallResultMaker(analysis)
        self._row = np.dtype(
            [
                ("outcome", np.int8),
                ("ready_at", np.int64),
                ("failed_at", np.int64),
                ("found", np.uint16, (1 + (len(analysis.fields) if analysis else 0),)),
            ]
        )
        self._table = np.empty(0, dtype=self._row)  # a row per call, and room for more
        self._ends_seen = 0
        self._changes: AnalysisChanges | None = None
        self.reanalyses = 0
        self._again = self.firsts(np.empty(0, dtype=np.int64))  # none, so far; by (call, result)

    def update(self) -> None:
        """Analyze what has ended since the last time; the calls come first."""
        calls = self._calls
        if len(calls) > len(self._table):
            table = np.zeros(max(len(calls), 2 * len(self._table)), dtype=self._row)
            table["ready_at"] = table["failed_at"] = NEVER
            table[: len(self._table)] = self._table
            self._table = table
        ended = calls.ended(self._ends_seen)
        self._ends_seen = calls.ends
        talked = ended[calls.started_at[ended] != NEVER]
        if len(talked):
            first = self._analyst.first(conversations(calls, talked))
            for column in ("outcome", "ready_at", "failed_at", "found"):
                self._table[column][talked] = getattr(first, column)
            self._changes = None
        asked = len(self._part.reanalyses)
        if asked > self.reanalyses:
            self.reanalyses = asked
            everything = self.of(np.arange(len(calls)))
            promised = MessageBuilder(self._part.trace, calls, everything).promised()
            self._again = promised[promised.result > 0]

    # -- how calls stand --------------------------------------------------------------------------

    def standing(self, calls: NDArray[np.integer], at: int | NDArray[np.int64]) -> Standing:
        """How some calls stand, by the engine's changes so far and those of analyses up to `at`.

        `at` (ms) is one instant, or one for each call (A4).
        """
        status, changed_at = TO_STATUS[self._calls.last_kind[calls]], self._calls.changed_at[calls]
        first = self.of(calls)
        changed = changes_by(first, np.broadcast_to(at, calls.shape)[first.call])
        status[changed.call] = TO_STATUS[changed.kind]  # numpy keeps the last of several
        changed_at[changed.call] = changed.at
        return Standing(status, changed_at)

    def changes(self, at: int) -> AnalysisChanges:
        """The changes of calls by their first analyses up to an instant, in that order (A4)."""
        if self._changes is None:
            self._changes = changes_by(self.of(np.arange(len(self._calls))), FOREVER)
        count = int(np.searchsorted(self._changes.at, at, side="right"))
        return self._changes[:count]

    def changes_of(self, call: int, at: int) -> list[tuple[int, int]]:
        """The changes of one call up to an instant: when (ms), and the kind (A4)."""
        changes = changes_by(self.of(np.array([call])), at)
        return [*zip(changes.at.tolist(), changes.kind.tolist(), strict=True)]

    # -- what analyses come to --------------------------------------------------------------------

    def of(self, calls: NDArray[np.integer]) -> Analyses:
        """The first analyses of some calls; `call` is the place of a conversation among these."""
        started_at, ended_at = self._calls.started_at[calls], self._calls.ended_at[calls]
        talked = np.flatnonzero((started_at != NEVER) & (ended_at != NEVER))
        rows = self._table[calls[talked]]
        return Analyses(talked, rows["outcome"], rows["ready_at"], rows["failed_at"], rows["found"])

    def outcome(self, call: int) -> AnalysisOutcome:
        """What is wrong with a conversation that has ended, or with its analysis."""
        return AnalysisOutcome(self._table["outcome"][call])

    def verdicts(self, calls: NDArray[np.int64], at: int) -> Verdicts:
        """What the analyses of some calls have come to at an instant from now on."""
        return verdicts(self.of(calls), self._there(calls, at), len(calls), at)

    def result(self, call: int, at: int, masked: bool) -> tuple[Body, int]:
        """The newest result of a call as JSON, and since when (ms) it is there.

        The empty object and `NEVER` while there is none. `masked`: retention removed the output.
        """
        there = self._there(np.array([call]), at)
        there = there[there.content != Content.NOTHING]
        newest = there[np.argsort(there.ready_at, kind="stable")[-1:]]
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
        elif ready_at == NEVER or ready_at + self._delay > at:
            text = "Cannot re-analyze a call whose result has not been delivered yet"
        else:
            return
        raise Refused(409, "INVALID_CALL_STATE", [text])

    # -- what is owed to the receiver -------------------------------------------------------------

    def firsts(self, calls: NDArray[np.int64]) -> Messages:
        """The first results of some calls, at `NEVER` where there is none to come (W1)."""
        return first_messages(calls, self._calls.ended_at[calls], self.of(calls), self._delay)

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

    def _there(self, calls: NDArray[np.int64], at: int) -> Messages:
        """The results of some calls that are there at an instant; `call` is a place among these."""
        again = self._again[np.isin(self._again.call, calls)]
        order = np.argsort(calls)
        place = order[np.searchsorted(calls, again.call, sorter=order)]
        first = replace(self.firsts(calls), call=np.arange(len(calls)))
        known = Messages.joined([first, replace(again, call=place)])
        return known[(known.ready_at != NEVER) & (known.ready_at <= at)]
