"""Messages: the results that a campaign owes its receiver, and when each is sent (W1, W3, A5).

Instants alone do not order a run: a command from outside comes after all work of its instant, POSTs
included, and its effects come after that (T4). So events are ordered by their point in the
`sequence` of the run: instant (ms) plus turn, the number of commands so far (see `Trace.turn`).
Without commands the points are the instants.

The newest result of a conversation is its verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.chance import Purpose
from dialsim.engine.log_reader import NOT_HAPPENED, Calls, ColumnTable
from dialsim.engine.trace import ANALYSIS_FAILED, LATE_RESULT, Reanalysis, Trace
from dialsim.interface.instants import LAST_INSTANT
from dialsim.webhooks.analysis import (
    IS_SPOILT,
    Analyses,
    AnalysisOutcome,
    Analyst,
    changes_by,
    conversations,
)


def sequence(
    trace: Trace, at: NDArray[np.int64], turn: NDArray[np.int32] | int = 0
) -> NDArray[np.int64]:
    """Return each event's point in the run's sequence, by its instant `at` and its cause's `turn`.

    An event takes place with the first work of its instant, or in the turn that caused it if that
    is later.
    """
    if not trace.turn:
        return at
    begun = np.searchsorted(np.array(trace.turns, dtype=np.int64), at, side="left")
    summed: NDArray[np.int64] = at + np.maximum(begun, turn)
    return summed


def row_sequence(trace: Trace, calls: Calls) -> NDArray[np.int64]:
    """Return the point in the sequence of each row of the calls' log, rows by analyses included."""
    if not trace.turn:
        return calls.rows.at
    log = trace.campaign(calls.organization, calls.campaign).log
    # Rows by analyses are not in the engine's log, which has the turns.
    written = ~np.isin(calls.rows.kind, (ANALYSIS_FAILED, LATE_RESULT))
    point = sequence(trace, calls.rows.at)
    point[written] = calls.rows.at[written] + log.turns(int(np.count_nonzero(written)))
    return point


def change_sequence(trace: Trace, calls: Calls) -> NDArray[np.int64]:
    """Return the point in the sequence of each call's last change."""
    if not trace.turn:
        return calls.changed_at
    point = np.zeros(len(calls.call), dtype=np.int64)
    # Of several rows of one call numpy keeps the last.
    point[calls.row_call] = row_sequence(trace, calls)
    return point


def with_analyses(calls: Calls, analyses: Analyses, until: int) -> Calls:
    """Add rows for failed analyses and late results up to `until` (ms) to the calls' log (A4)."""
    changes = changes_by(analyses, until)
    if not len(changes.at):
        return calls
    return calls.with_changes(changes.at, changes.call, changes.kind)


FOREVER = int(np.iinfo(np.int64).max)


class Verdict(StrEnum):
    """State of a conversation's analysis.

    - analyzed: there is a result;
    - no_conversation, unavailable: there is the fallback result (A3);
    - not_analyzed: not recorded, or the agent stopped with an error (A2);
    - failed: the analysis failed, and no late result has come (A4);
    - pending: the run ended first.
    """

    ANALYZED = "analyzed"
    NO_CONVERSATION = "no_conversation"
    UNAVAILABLE = "unavailable"
    NOT_ANALYZED = "not_analyzed"
    FAILED = "failed"
    PENDING = "pending"


VERDICTS = tuple(Verdict)
_OF_OUTCOME = np.full(len(AnalysisOutcome), -1, dtype=np.int8)
for _outcome, _verdict in (
    (AnalysisOutcome.NONE, Verdict.ANALYZED),
    (AnalysisOutcome.ANALYSIS_FAILED_LATE, Verdict.ANALYZED),
    (AnalysisOutcome.SILENT, Verdict.NO_CONVERSATION),
    (AnalysisOutcome.ANALYSIS_UNAVAILABLE, Verdict.UNAVAILABLE),
):
    _OF_OUTCOME[_outcome] = VERDICTS.index(_verdict)
"""Index into `VERDICTS` of the result of each outcome; -1 for outcomes without a result."""
_ANALYZED = VERDICTS.index(Verdict.ANALYZED)


@dataclass(frozen=True, slots=True)
class Messages(ColumnTable):
    """Results that one campaign owes its receiver, by (call, result); instants in ms.

    `call` is an index into the calls. `result` is 0 for a call's first result and n for the result
    of re-analysis number n. `verdict` is an index into `VERDICTS`, -1 without a conversation;
    `found` is as in `Analyses`. `ready_at` is the instant of the result, `sent_at` the instant of
    its first POST (W3). `turn` is the turn in which the re-analysis began (see `Trace.turn`), and 0
    for first results, because no command ends a call within the command's instant (P1).
    """

    call: NDArray[np.int64]
    result: NDArray[np.int16]
    verdict: NDArray[np.int8]
    found: NDArray[np.uint16]
    ready_at: NDArray[np.int64]
    sent_at: NDArray[np.int64]
    turn: NDArray[np.int32]


def horizon(trace: Trace) -> int:
    """Return the last instant (ms) at which results are sent and analyses change calls.

    A finished run without clock.end goes on until its last result has arrived (T5 ends it for calls
    and campaigns only). A run under way, and a sandbox, end at their current instant.
    """
    unbounded = trace.world.scenario.clock.end is None and trace.posts is None
    return LAST_INSTANT if trace.idle and unbounded else trace.end


def first_messages(
    calls: NDArray[np.int64], ended_at: NDArray[np.int64], analyses: Analyses, delay: int
) -> Messages:
    """Return the first result of each call; `ready_at` is NOT_HAPPENED where none comes (W1).

    Calls without a conversation are reported at their end, others when their analysis is ready
    (interface, section 6.3). `analyses` are the analyses of the conversations, by index into
    `calls`; `delay` (ms) is `webhookDelay`.
    """
    ready, verdict = ended_at.copy(), np.full(len(calls), -1, dtype=np.int8)
    found = np.zeros((len(calls), analyses.found.shape[1]), dtype=np.uint16)
    ready[analyses.call] = analyses.ready_at
    verdict[analyses.call] = _OF_OUTCOME[analyses.outcome]
    found[analyses.call] = analyses.found
    return Messages(
        call=calls,
        result=np.zeros(len(calls), dtype=np.int16),
        verdict=verdict,
        found=found,
        ready_at=ready,
        sent_at=np.where(ready == NOT_HAPPENED, NOT_HAPPENED, ready + delay),
        turn=np.zeros(len(calls), dtype=np.int32),
    )


class MessageBuilder:
    """Builder of a campaign's messages; `analyses` are the first analyses of the calls."""

    def __init__(self, trace: Trace, calls: Calls, analyses: Analyses) -> None:
        self._trace = trace
        self._calls = calls
        self._analyses = analyses
        self._delay = trace.world.scenario.engine.webhook_delay

    def messages(self) -> Messages:
        """Return every result that exists by the horizon, even if it is sent later."""
        owed = self.promised()
        return owed[owed.ready_at <= horizon(self._trace)]

    def promised(self) -> Messages:
        """Return every result of the calls and re-analyses so far, even if it exists only later."""
        first = self._first()
        owed = Messages.joined([first, *self._again(first)])
        return owed[np.lexsort((owed.result, owed.call))] if owed.result.any() else owed

    def _first(self) -> Messages:
        """Return the first result of each call that owes one (W1; interface, section 6.3)."""
        calls = self._calls
        everything = np.arange(len(calls.call))
        first = first_messages(everything, calls.ended_at, self._analyses, self._delay)
        return first[first.ready_at != NOT_HAPPENED]

    def _again(self, first: Messages) -> list[Messages]:
        """Return the results of each re-analysis (A5)."""
        calls = self._calls
        actions = self._trace.campaign(calls.organization, calls.campaign).reanalyses
        if not actions:
            return []
        again = [
            self._reanalysis(first, action, number) for number, action in enumerate(actions, 1)
        ]
        # Point of the sequence from which on each call has a good result, of its first analysis or
        # a re-analysis.
        good_since = np.full(len(self._calls.call), FOREVER, dtype=np.int64)
        for part in (first, *again):
            good = part[part.verdict == _ANALYZED]
            good_since[good.call] = np.minimum(good_since[good.call], self._ready(good))
        # A5: a fallback result never replaces a good one.
        return [
            part[(part.verdict == _ANALYZED) | (self._ready(part) < good_since[part.call])]
            for part in again
        ]

    def _ready(self, messages: Messages) -> NDArray[np.int64]:
        """Return the point of the sequence at which each result is ready."""
        return sequence(self._trace, messages.ready_at, messages.turn)

    def _reanalysis(self, first: Messages, action: Reanalysis, number: int) -> Messages:
        """Return the results of one re-analysis; its calls had their first POST before it began."""
        calls, analyses = self._calls, self._analyses
        block = self._trace.campaign(calls.organization, calls.campaign).block
        sent = np.full(len(calls.call), FOREVER, dtype=np.int64)
        sent[first.call] = sequence(self._trace, first.sent_at, first.turn)
        rows = np.flatnonzero(sent[analyses.call] < action.at + action.turn)
        if action.only is not None:
            only = calls.of(action.only[0])[action.only[1] - 1]
            rows = rows[analyses.call[rows] == only]
        talks = conversations(calls, analyses.call[rows])
        drawn = talks.draws(block.draws, Purpose.REANALYSIS, (number,))
        chosen = np.flatnonzero(drawn < action.share)
        outcome = analyses.outcome[rows[chosen]]
        redone = Analyst(self._trace.world, block).again(talks[chosen], outcome, number, action.at)
        ready = np.flatnonzero(redone.ready_at != NOT_HAPPENED)
        return Messages(
            call=redone.call[ready],
            result=np.full(len(ready), number, dtype=np.int16),
            verdict=_OF_OUTCOME[redone.outcome[ready]],
            found=redone.found[ready],
            ready_at=redone.ready_at[ready],
            sent_at=redone.ready_at[ready] + self._delay,
            turn=np.full(len(ready), action.turn, dtype=np.int32),
        )


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Verdict of each call of a campaign: `code` is an index into `VERDICTS`, -1 without a
    conversation.

    `found` has the findings of each newest result, as in `Analyses`; only where `code` is analyzed.
    """

    code: NDArray[np.int8]
    found: NDArray[np.uint16]


def verdicts(analyses: Analyses, owed: Messages, calls: int, until: int) -> Verdicts:
    """Return the verdict of each call at an instant (ms); newer results replace older ones.

    `owed` are the results that exist at that instant, and `calls` is the number of calls. `owed`
    and the first `analyses` refer to calls by index.
    """
    code = np.full(calls, -1, dtype=np.int8)
    found = np.zeros((calls, analyses.found.shape[1]), dtype=np.uint16)
    code[analyses.call] = VERDICTS.index(Verdict.PENDING)
    failed = (analyses.failed_at != NOT_HAPPENED) & (analyses.failed_at <= until)
    code[analyses.call[failed]] = VERDICTS.index(Verdict.FAILED)
    code[analyses.call[IS_SPOILT.take(analyses.outcome)]] = VERDICTS.index(Verdict.NOT_ANALYZED)
    rows = np.flatnonzero(owed.verdict >= 0)
    # Sorting is needed only after re-analyses: otherwise each call has at most one result.
    if owed.result.any():
        rows = rows[np.argsort(owed.ready_at[rows], kind="stable")]
    which = owed.call.take(rows)
    # Of several results of one call numpy keeps the last.
    code[which] = owed.verdict.take(rows)
    found[which] = owed.found.take(rows, axis=0)
    return Verdicts(code, found)


def funnel_steps(verdicts: Verdicts, has_funnel: bool) -> NDArray[np.int16]:
    """Return the number of funnel steps in each call's newest result; -1 if unknown.

    0 stands for Unknown: not even the first step was reached, or the result is a fallback, which
    has a funnel whether or not the agent defines one.
    """
    kinds = [Verdict.NO_CONVERSATION, Verdict.UNAVAILABLE]
    if has_funnel:
        kinds.append(Verdict.ANALYZED)
    known = np.isin(verdicts.code, [VERDICTS.index(kind) for kind in kinds])
    return np.where(known, verdicts.found[:, 0].astype(np.int16), np.int16(-1))
