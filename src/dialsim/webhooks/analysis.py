"""Analyses of conversations: instants, findings and failures (rules A).

Failures come from a script, or are drawn by the `rates` of the behaviour. Analyses are a function
of the trace and never influence dialling.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.behaviour import durations
from dialsim.engine.chance import Draws, Purpose, rows_by_pair
from dialsim.engine.log_reader import NOT_HAPPENED, Calls, ColumnTable
from dialsim.engine.trace import ANALYSIS_FAILED, LATE_RESULT, call_keys
from dialsim.engine.world import CampaignBlock, World
from dialsim.interface import AgentStatus
from dialsim.scenario.behaviour import Behaviour, Rates, ScriptStep
from dialsim.scenario.distribution import Distribution
from dialsim.scenario.organization import Analysis
from dialsim.scenario.people import People


class AnalysisOutcome(IntEnum):
    """Failure of a conversation or of its analysis, in the order of `rates`."""

    NONE = 0
    SILENT = 1
    AGENT_ERROR = 2
    NOT_RECORDED = 3
    ANALYSIS_UNAVAILABLE = 4
    ANALYSIS_FAILED = 5
    ANALYSIS_FAILED_LATE = 6


def _is_any(*outcomes: AnalysisOutcome) -> NDArray[np.bool_]:
    """Return a table by outcome: True for the given outcomes."""
    # A table lookup per row takes a tenth of the time of np.isin.
    return np.isin(np.arange(len(AnalysisOutcome)), outcomes)


IS_SPOILT = _is_any(AnalysisOutcome.AGENT_ERROR, AnalysisOutcome.NOT_RECORDED)
"""True, per outcome, if there is nothing to analyze (A2)."""
_NEVER_READY = IS_SPOILT | _is_any(AnalysisOutcome.ANALYSIS_FAILED)
"""True, per outcome, if no result ever comes (A2, A4)."""
_FAILS = _is_any(AnalysisOutcome.ANALYSIS_FAILED, AnalysisOutcome.ANALYSIS_FAILED_LATE)
"""True, per outcome, if the analysis fails, for good or at first (A4)."""
_IS_SOUND = _is_any(AnalysisOutcome.NONE, AnalysisOutcome.ANALYSIS_FAILED_LATE)
"""True, per outcome, if the analysis has a real result, at once or late."""

NOT_SAID = -1

_BY_WORD = {
    None: AnalysisOutcome.NONE,
    "silent": AnalysisOutcome.SILENT,
    "agentError": AnalysisOutcome.AGENT_ERROR,
    "notRecorded": AnalysisOutcome.NOT_RECORDED,
    "analysisUnavailable": AnalysisOutcome.ANALYSIS_UNAVAILABLE,
    "analysisFailed": AnalysisOutcome.ANALYSIS_FAILED,
    "analysisFailedLate": AnalysisOutcome.ANALYSIS_FAILED_LATE,
}


@dataclass(frozen=True, slots=True)
class Conversations(ColumnTable):
    """Answered calls of one campaign that have ended, as columns.

    `call` is an index into the campaign's calls. `recipient` counts from 0 and `attempt` from 1.
    `behaviour` is an index into `World.behaviours`, `ended_at` is in ms. `said` is a code of
    `AnalysisOutcome` if the dialled number had a script (P6), else NOT_SAID.
    """

    call: NDArray[np.int64]
    recipient: NDArray[np.int32]
    attempt: NDArray[np.int32]
    behaviour: NDArray[np.int16]
    ended_at: NDArray[np.int64]
    said: NDArray[np.int8]

    def by_behaviour(
        self, behaviours: Sequence[Behaviour]
    ) -> Iterator[tuple[Behaviour, NDArray[np.int64]]]:
        """Yield each behaviour under which any of the calls was dialled, with the rows of these
        calls.
        """
        for index in np.flatnonzero(np.bincount(self.behaviour)).tolist():
            yield behaviours[index], np.flatnonzero(self.behaviour == index)

    def draws(self, draws: Draws, purpose: Purpose, detail: tuple[int, ...]) -> NDArray[np.float64]:
        """Return the draws of these calls for a purpose."""
        return draws.of(purpose, self.attempt, self.recipient, detail)


def said(
    scripted: Mapping[int, ScriptStep], recipients: NDArray[np.int32], calls: NDArray[np.int32]
) -> NDArray[np.int8]:
    """Return each call's outcome by a script of its phone number; NOT_SAID without a script.

    `scripted` has the steps of such scripts by `call_key`.
    """
    codes = np.full(len(calls), NOT_SAID, dtype=np.int8)
    if scripted:
        keys = call_keys(recipients, calls)
        for row in np.flatnonzero(np.isin(keys, [*scripted])).tolist():
            codes[row] = _BY_WORD[scripted[int(keys[row])].analysis]
    return codes


def outcomes(
    block: CampaignBlock, behaviours: Sequence[Behaviour], calls: Conversations
) -> NDArray[np.int8]:
    """Return the outcome of each conversation: from its script, else from one draw and `rates`."""
    found = np.zeros(len(calls), dtype=np.int8)
    for behaviour, rows in calls.by_behaviour(behaviours):
        bounds = _bounds(behaviour.rates)
        if bounds[-1] > 0:
            drawn = calls[rows].draws(block.draws, Purpose.FLAW, (0,))
            found[rows] = _by_bounds(drawn, bounds)
        failed = rows[found[rows] == AnalysisOutcome.ANALYSIS_FAILED]
        late = calls[failed].draws(block.draws, Purpose.LATE_RESULT, (0,))
        found[failed[late < behaviour.rates.late_result]] = AnalysisOutcome.ANALYSIS_FAILED_LATE
    return _scripted(block.people, calls, found)


def outcomes_again(
    block: CampaignBlock,
    behaviours: Sequence[Behaviour],
    calls: Conversations,
    before: NDArray[np.int8],
    result: int,
) -> NDArray[np.int8]:
    """Return the outcome of re-analysis number `result` (from 1) for each conversation (A5).

    A silent conversation stays silent. Whether the analysis can run, or fails, is drawn again. A
    script's `analysisUnavailable` stays. A failure with a late result does not recur.
    """
    found = np.zeros(len(calls), dtype=np.int8)
    for behaviour, rows in calls.by_behaviour(behaviours):
        bounds = _bounds(behaviour.rates)
        spoilt = bounds[AnalysisOutcome.NOT_RECORDED - 1]
        if bounds[-1] > spoilt:
            drawn = calls[rows].draws(block.draws, Purpose.FLAW, (result,))
            # Delivered conversations were neither silent nor spoilt, so the draw is taken from the
            # rest of the unit interval.
            found[rows] = _by_bounds(spoilt + drawn * (1.0 - spoilt), bounds)
    again = _scripted(block.people, calls, found)
    again[again == AnalysisOutcome.ANALYSIS_FAILED_LATE] = AnalysisOutcome.NONE
    again[before == AnalysisOutcome.SILENT] = AnalysisOutcome.SILENT
    return again


def _bounds(rates: Rates) -> NDArray[np.float64]:
    """Return the cumulative rates of the failures, in the order of `AnalysisOutcome`."""
    shares = (
        rates.silent,
        rates.agent_error,
        rates.not_recorded,
        rates.analysis_unavailable,
        rates.analysis_failed,
    )
    return np.cumsum(shares)


def _by_bounds(drawn: NDArray[np.float64], bounds: NDArray[np.float64]) -> NDArray[np.int8]:
    part = np.searchsorted(bounds, drawn, side="right")
    return np.where(part < len(bounds), part + 1, AnalysisOutcome.NONE).astype(np.int8)


def _scripted(people: People, calls: Conversations, drawn: NDArray[np.int8]) -> NDArray[np.int8]:
    """Replace drawn outcomes by the outcomes that scripts of recipients or numbers set."""
    if people.script is not None:
        codes = people.script[calls.recipient]
        scripted = np.flatnonzero(codes >= 0)
        for code, attempt, rows in rows_by_pair(codes[scripted], calls.attempt[scripted]):
            script = people.scripts[code]
            drawn[scripted[rows]] = _BY_WORD[script[min(attempt, len(script)) - 1].analysis]
    return np.where(calls.said == NOT_SAID, drawn, calls.said)


@dataclass(frozen=True, slots=True)
class Analyses:
    """Results of analyses, one row per conversation; instants in ms.

    `call` is an index into the campaign's calls, `outcome` a code of `AnalysisOutcome`. `ready_at`
    is the instant of the result, `failed_at` the instant of a failure; NOT_HAPPENED without one.
    `found` (uint16) has a column for the funnel, the number of steps reached, and one
    per field, the index of the value in the field's `values`; 0 without a sound result.
    """

    call: NDArray[np.int64]
    outcome: NDArray[np.int8]
    ready_at: NDArray[np.int64]
    failed_at: NDArray[np.int64]
    found: NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class AnalysisChanges(ColumnTable):
    """Changes of calls by analyses: instants (ms), indices of calls, indices into `CHANGES`."""

    at: NDArray[np.int64]
    call: NDArray[np.int64]
    kind: NDArray[np.uint8]


AGENT_STATUSES = tuple(AgentStatus)


def agent_statuses(started_at: NDArray[np.int64], analyses: Analyses) -> NDArray[np.int8]:
    """Return the agent's status in each call (F2), as an index into `AGENT_STATUSES`.

    -1 (null) during a conversation. `analyses.call` are indices of the calls.
    """
    completed, error, not_started = (
        np.int8(AGENT_STATUSES.index(status))
        for status in (AgentStatus.COMPLETED, AgentStatus.ERROR, AgentStatus.NOT_STARTED)
    )
    status = np.where(started_at != NOT_HAPPENED, np.int8(-1), not_started)
    stopped = analyses.outcome == AnalysisOutcome.AGENT_ERROR
    status[analyses.call] = np.where(stopped, error, completed)
    return status


def changes_by(analyses: Analyses, until: int | NDArray[np.int64]) -> AnalysisChanges:
    """Return the changes of calls by first analyses, in order of time (A4).

    `until` (ms) is the last instant, for all analyses or for each one. A failed analysis makes its
    call ANALYSIS_FAILED; a late result makes it COMPLETED again.
    """
    last = np.broadcast_to(until, analyses.call.shape)
    failed = np.flatnonzero((analyses.failed_at != NOT_HAPPENED) & (analyses.failed_at <= last))
    ready_at = analyses.ready_at[failed]
    late = failed[(ready_at != NOT_HAPPENED) & (ready_at <= last[failed])]
    at = np.concatenate([analyses.failed_at[failed], analyses.ready_at[late]])
    call = np.concatenate([analyses.call[failed], analyses.call[late]])
    kind = np.repeat(np.array([ANALYSIS_FAILED, LATE_RESULT], np.uint8), [len(failed), len(late)])
    # Stable: a late result comes after the failure of the same instant.
    order = np.argsort(at, kind="stable")
    return AnalysisChanges(at[order], call[order], kind[order])


def talked(calls: Calls) -> NDArray[np.int64]:
    """Return the calls of a campaign that were answered and have ended."""
    return np.flatnonzero((calls.started_at != NOT_HAPPENED) & (calls.ended_at != NOT_HAPPENED))


def conversations(calls: Calls, which: NDArray[np.int64]) -> Conversations:
    """Return the columns that analyses need, for calls that were answered and have ended."""
    return Conversations(
        call=which,
        recipient=calls.recipient.take(which),
        attempt=calls.attempt.take(which),
        behaviour=calls.behaviour.take(which),
        ended_at=calls.ended_at.take(which),
        said=said(calls.scripted, calls.recipient[which], calls.call[which]),
    )


class Analyst:
    """Analyses of one campaign's conversations."""

    def __init__(self, world: World, block: CampaignBlock) -> None:
        self._block = block
        self._behaviours = [world.scenario.behaviours[name] for name in world.behaviours]

    def first(self, calls: Conversations) -> Analyses:
        """Return the first analysis of each conversation (A1 to A4)."""
        outcome = outcomes(self._block, self._behaviours, calls)
        done = calls.ended_at + self._delays(calls, 0)  # A1
        ready = np.where(_NEVER_READY.take(outcome), NOT_HAPPENED, done)
        for behaviour, rows in calls.by_behaviour(self._behaviours):
            late = rows[outcome[rows] == AnalysisOutcome.ANALYSIS_FAILED_LATE]  # A4
            delay = behaviour.late_result_delay
            ready[late] += self._times(delay, Purpose.LATE_RESULT_DELAY, calls[late], 0)
        return Analyses(
            call=calls.call,
            outcome=outcome,
            ready_at=ready,
            failed_at=np.where(_FAILS.take(outcome), done, NOT_HAPPENED),
            found=self._found(calls, outcome, 0),
        )

    def again(
        self, calls: Conversations, first: NDArray[np.int8], result: int, at: int
    ) -> Analyses:
        """Return re-analysis number `result` (from 1), begun at `at`, of delivered conversations
        (A5).

        `first` holds the outcomes of their first analyses. A failed re-analysis leaves the call
        unchanged.
        """
        outcome = outcomes_again(self._block, self._behaviours, calls, first, result)
        done = at + self._delays(calls, result)
        return Analyses(
            call=calls.call,
            outcome=outcome,
            ready_at=np.where(_NEVER_READY.take(outcome), NOT_HAPPENED, done),
            failed_at=np.full(len(calls), NOT_HAPPENED, dtype=np.int64),
            found=self._found(calls, outcome, result),
        )

    def _delays(self, calls: Conversations, result: int) -> NDArray[np.int64]:
        """Return the duration of each analysis in ms."""
        delays = np.zeros(len(calls), dtype=np.int64)
        for behaviour, rows in calls.by_behaviour(self._behaviours):
            delay = behaviour.analysis_delay
            delays[rows] = self._times(delay, Purpose.ANALYSIS_DELAY, calls[rows], result)
        return delays

    def _times(
        self, distribution: Distribution, purpose: Purpose, calls: Conversations, result: int
    ) -> NDArray[np.int64]:
        if distribution.dist == "constant":
            return durations(distribution, np.zeros(len(calls)))
        return durations(distribution, calls.draws(self._block.draws, purpose, (result,)))

    def _found(
        self, calls: Conversations, outcome: NDArray[np.int8], result: int
    ) -> NDArray[np.uint16]:
        """Draw funnel and fields, one draw each per call (see `Analyses.found`)."""
        analysis, draws = self._block.agent.analysis or Analysis(), self._block.draws
        found = np.zeros((len(calls), 1 + len(analysis.fields)), dtype=np.uint16)
        rows = np.flatnonzero(_IS_SOUND.take(outcome))
        sound = calls[rows]
        if analysis.funnel is not None:
            drawn = sound.draws(draws, Purpose.FUNNEL, (result,))
            # Shares fall from step to step, so that one draw decides for a step and all steps
            # before it.
            shares = np.array([step.share for step in analysis.funnel])
            found[rows, 0] = len(shares) - np.searchsorted(shares[::-1], drawn, side="right")
        for number, field in enumerate(analysis.fields.values()):
            if len(field.values) > 1:
                drawn = sound.draws(draws, Purpose.FIELD, (result, number))
                ends = np.cumsum([*field.values.values()])[:-1]
                found[rows, 1 + number] = np.searchsorted(ends, drawn, side="right")
        return found
