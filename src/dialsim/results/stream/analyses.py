"""Analyses: when each conversation's is ready, and what it finds (rules A)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.chance import Purpose
from dialsim.engine.quantiles import durations
from dialsim.engine.world import CampaignBlock, World
from dialsim.results.ledger import NEVER, Ledger
from dialsim.results.stream.flaws import Conversations, Flaw, flaws, flaws_again, said
from dialsim.scenario.agent import Analysis
from dialsim.scenario.distribution import Distribution


@dataclass(frozen=True, slots=True)
class Analyses:
    """What analyses of conversations come to; a row per conversation, instants in ms.

    `call` is an index into the campaign's ledger, `flaw` a code of `Flaw`. `ready_at` is the
    instant of the result, NEVER where there is none to come; `failed_at` that of a failure, NEVER
    where nothing fails. `found` (uint16) has a column for the funnel, the number of steps reached,
    and one per field, the position of the value in the field's `values`; it is 0 where there is no
    sound result.
    """

    call: NDArray[np.int64]
    flaw: NDArray[np.int8]
    ready_at: NDArray[np.int64]
    failed_at: NDArray[np.int64]
    found: NDArray[np.uint16]


def talked(ledger: Ledger) -> NDArray[np.int64]:
    """The calls of a campaign that were answered and have ended, as indexes into the ledger."""
    return np.flatnonzero((ledger.started_at != NEVER) & (ledger.ended_at != NEVER))


def conversations(ledger: Ledger, calls: NDArray[np.int64]) -> Conversations:
    """The columns that analyses depend on, of some calls that were answered and have ended."""
    return Conversations(
        call=calls,
        recipient=ledger.recipient[calls],
        attempt=ledger.attempt[calls],
        behaviour=ledger.behaviour[calls],
        ended_at=ledger.ended_at[calls],
        said=said(ledger.scripted, ledger.recipient[calls], ledger.call[calls]),
    )


class Analyst:
    """Analyzes the conversations of one campaign."""

    def __init__(self, world: World, block: CampaignBlock) -> None:
        self._block = block
        self._behaviours = [world.scenario.behaviours[name] for name in world.behaviours]

    def first(self, calls: Conversations) -> Analyses:
        """The first analysis of each conversation (A1 to A4)."""
        flaw = flaws(self._block, self._behaviours, calls)
        done = calls.ended_at + self._delays(calls, 0)  # A1
        failed = np.isin(flaw, (Flaw.ANALYSIS_FAILED, Flaw.ANALYSIS_FAILED_LATE))
        ready = np.where(_never_ready(flaw), NEVER, done)
        for behaviour, rows in calls.by_behaviour(self._behaviours):
            late = rows[flaw[rows] == Flaw.ANALYSIS_FAILED_LATE]  # A4
            delay = behaviour.late_result_delay
            ready[late] += self._times(delay, Purpose.LATE_RESULT_DELAY, calls[late], 0)
        return Analyses(
            call=calls.call,
            flaw=flaw,
            ready_at=ready,
            failed_at=np.where(failed, done, NEVER),
            found=self._found(calls, flaw, 0),
        )

    def again(
        self, calls: Conversations, first: NDArray[np.int8], result: int, at: int
    ) -> Analyses:
        """Re-analysis number `result` (from 1), begun at `at`, of delivered conversations (A5).

        `first` holds the flaws of their first analyses. One that fails leaves the call as it is.
        """
        flaw = flaws_again(self._block, self._behaviours, calls, first, result)
        done = at + self._delays(calls, result)
        return Analyses(
            call=calls.call,
            flaw=flaw,
            ready_at=np.where(_never_ready(flaw), NEVER, done),
            failed_at=np.full(len(calls), NEVER, dtype=np.int64),
            found=self._found(calls, flaw, result),
        )

    def _delays(self, calls: Conversations, result: int) -> NDArray[np.int64]:
        """How long each analysis takes, in ms."""
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
        self, calls: Conversations, flaw: NDArray[np.int8], result: int
    ) -> NDArray[np.uint16]:
        """The funnel by one draw per call, and each field by one (see `Analyses.found`)."""
        analysis, draws = self._block.agent.analysis or Analysis(), self._block.draws
        found = np.zeros((len(calls), 1 + len(analysis.fields)), dtype=np.uint16)
        rows = np.flatnonzero(_sound(flaw))
        sound = calls[rows]
        if analysis.funnel is not None:
            drawn = sound.draws(draws, Purpose.FUNNEL, (result,))
            # shares fall from step to step: one draw reaches a step and all before it
            shares = np.array([step.share for step in analysis.funnel])
            found[rows, 0] = len(shares) - np.searchsorted(shares[::-1], drawn, side="right")
        for number, field in enumerate(analysis.fields.values()):
            if len(field.values) > 1:
                drawn = sound.draws(draws, Purpose.FIELD, (result, number))
                ends = np.cumsum([*field.values.values()])[:-1]
                found[rows, 1 + number] = np.searchsorted(ends, drawn, side="right")
        return found


def _sound(flaw: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Which analyses come to a real result, at once or late."""
    return np.isin(flaw, (Flaw.NONE, Flaw.ANALYSIS_FAILED_LATE))


def _never_ready(flaw: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Not analyzed (A2), or failed for good (A4)."""
    return np.isin(flaw, (Flaw.AGENT_ERROR, Flaw.NOT_RECORDED, Flaw.ANALYSIS_FAILED))
