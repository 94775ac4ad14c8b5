"""How people react to being dialled: by script, or by chance (a scenario's `behaviours`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dialsim.engine.chance import Column, Draws, Purpose, Same, Values
from dialsim.engine.odds import Odds
from dialsim.engine.own_chance import DEAD, own_chances
from dialsim.engine.quantiles import durations
from dialsim.interface.status import CallStatus

if TYPE_CHECKING:
    from dialsim.interface.schedule import ScheduleRequest
    from dialsim.scenario.behaviour import Behaviour
    from dialsim.scenario.distribution import Distribution
    from dialsim.scenario.people import People
    from dialsim.scenario.scripts import Step

_ANSWERED = CallStatus.COMPLETED
_FAILED = CallStatus.FAILED
_OTHERS = (CallStatus.NO_ANSWER, CallStatus.BUSY, _FAILED)


class Reaction(NamedTuple):
    """What comes of a dial: how the call ends and how long each phase lasts, in ms (P1, P2)."""

    outcome: CallStatus
    setup_ms: int
    ring_ms: int
    talk_ms: int


class _Attempt(NamedTuple):
    """What one attempt holds in store for every person: a factor and a column for each draw."""

    odds: float
    outcome: Values[float]
    setup: Values[int]
    ring: dict[CallStatus, Values[int]]
    talk: Values[int]


class Reactions:
    """The reactions of one campaign's people under one behaviour.

    The same person on the same attempt meets the same draws whatever else happens: a redial after
    a withdrawn dial, or a dial under another limit, differs only by what the instant decides
    (hour and day, wear of the caller ID).
    """

    def __init__(
        self,
        behaviour: Behaviour,
        position: int,
        draws: Draws,
        people: People,
        request: ScheduleRequest,
    ) -> None:
        """`position` is the behaviour's among `World.behaviours`.

        `request` is the campaign's: the attempts of a history were made under it (P8).
        """
        self.behaviour = position
        self._behaviour = behaviour
        self._draws = draws
        self._scripts = people.scripts
        self._script = None if people.script is None else people.script.data
        self._attempts: dict[int, _Attempt] = {}
        self._odds = Odds(behaviour.answered_odds, people)
        self._segment_odds = self._odds.of_people()
        self._own_chance = own_chances(behaviour, self._odds, people, draws, request)  # P7
        self._odds_by_use = behaviour.answered_odds.by_caller_id_use
        self.recovery = self._odds_by_use.recovery if self._odds_by_use else None
        dead = 0.0 if behaviour.people is None else behaviour.people.dead_numbers
        no_answer, busy, failed = behaviour.outcomes.others(dead)
        rest = no_answer + busy + failed
        shares = (no_answer, no_answer + busy)
        self._other_bounds = tuple(share / rest for share in shares) if rest else (1.0, 1.0)

    def dial(self, recipient: int, attempt: int, now: int, uses: float) -> Reaction:
        """The reaction of a person to attempt number `attempt` dialled now.

        `uses` is the decayed count of the organization's dials of the caller ID.
        """
        columns = self._columns(attempt)
        setup = columns.setup[recipient] or 1  # P1: at least 1 ms
        if self._script is not None and (code := self._script[recipient]) >= 0:
            script = self._scripts[code]
            return _following(script[min(attempt, len(script)) - 1], setup)
        outcome = self._outcome(columns, recipient, now, uses)
        talk = columns.talk[recipient] if outcome is _ANSWERED else 0
        return Reaction(outcome, setup, columns.ring[outcome][recipient], talk)

    def follow(self, step: Step, recipient: int, attempt: int) -> Reaction:
        """What comes of an attempt dialled to a number with a script, of which this is the step."""
        return _following(step, self._columns(attempt).setup[recipient] or 1)  # P1, P6

    def _outcome(self, columns: _Attempt, recipient: int, now: int, uses: float) -> CallStatus:
        own = self._own_chance[recipient]
        if own == DEAD:
            return _FAILED  # P7
        odds = self._odds.at(now) * columns.odds * self._segment_odds[recipient]
        if self._odds_by_use is not None:
            odds *= self._odds_by_use.per1000 ** (uses / 1000.0)
        answered = _with_odds(own, odds)
        draw = columns.outcome[recipient]
        if draw < answered:
            return _ANSWERED
        rest = (draw - answered) / (1.0 - answered)
        no_answer, busy = self._other_bounds
        return _OTHERS[0] if rest < no_answer else _OTHERS[1] if rest < busy else _OTHERS[2]

    def _columns(self, attempt: int) -> _Attempt:
        columns = self._attempts.get(attempt)
        if columns is None:
            columns = self._attempts[attempt] = self._columns_of(attempt)
        return columns

    def _columns_of(self, attempt: int) -> _Attempt:
        behaviour, ring = self._behaviour, self._behaviour.ring_time
        rings = (ring.answered, ring.no_answer, ring.busy, ring.failed)
        return _Attempt(
            odds=self._odds.of_attempt(attempt),
            outcome=self._draws.column(Purpose.OUTCOME, attempt),
            setup=self._durations(behaviour.setup_time, Purpose.SETUP_TIME, attempt),
            ring={
                outcome: self._durations(distribution, Purpose.RING_TIME, attempt)
                for outcome, distribution in zip((_ANSWERED, *_OTHERS), rings, strict=True)
            },
            talk=self._durations(behaviour.talk_time, Purpose.TALK_TIME, attempt),
        )

    def _durations(self, distribution: Distribution, purpose: Purpose, attempt: int) -> Values[int]:
        if distribution.dist == "constant":
            return Same(int(durations(distribution, np.zeros(1))[0]))
        return Column(
            self._draws.count,
            np.int64,
            lambda b, n: durations(distribution, self._draws.uniforms(purpose, attempt, b, n)),
        )


def _following(step: Step, setup_ms: int) -> Reaction:
    return Reaction(step.outcome, setup_ms, step.ring, step.talk)


def _with_odds(chance: float, factor: float) -> float:
    """The probability whose odds are those of `chance` times `factor`."""
    if factor == 1.0 or chance in (0.0, 1.0):
        return chance if factor else 0.0
    return chance * factor / (1.0 - chance + chance * factor)
