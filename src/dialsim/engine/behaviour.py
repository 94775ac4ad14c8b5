"""How people react to being dialled: by script, or by chance (a scenario's `behaviours`)."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.chance import Column, Draws, Purpose, Same, Values
from dialsim.engine.quantiles import durations
from dialsim.engine.windows import HOUR, week_position
from dialsim.interface.status import CallStatus

if TYPE_CHECKING:
    from dialsim.scenario.behaviour import Behaviour
    from dialsim.scenario.distribution import Distribution
    from dialsim.scenario.people import People
    from dialsim.scenario.scripts import Step

_ANSWERED = CallStatus.COMPLETED
_OTHERS = (CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED)


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

    def __init__(self, behaviour: Behaviour, position: int, draws: Draws, people: People) -> None:
        """`position` is the behaviour's among `World.behaviours`."""
        self.behaviour = position
        self._behaviour = behaviour
        self._draws = draws
        self._scripts = people.scripts
        self._script = None if people.script is None else people.script.data
        self._attempts: dict[int, _Attempt] = {}
        self._own_chance = self._own_chances()
        self._segment_odds = self._odds_by_segment(people)
        odds = behaviour.answered_odds
        self._odds_by_week_hour = [
            odds.by_day.get(hour // 24 + 1, 1.0) * odds.by_hour.get(hour % 24, 1.0)
            for hour in range(7 * 24)
        ]
        self._odds_by_attempt = odds.by_attempt or (1.0,)
        self._odds_by_use = odds.by_caller_id_use
        self.recovery = self._odds_by_use.recovery if self._odds_by_use else None
        outcomes = behaviour.outcomes
        rest = outcomes.no_answer + outcomes.busy + outcomes.failed
        shares = (outcomes.no_answer, outcomes.no_answer + outcomes.busy)
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
        odds = self._odds_by_week_hour[week_position(now) // HOUR] * columns.odds
        odds *= self._segment_odds[recipient]
        if self._odds_by_use is not None:
            odds *= self._odds_by_use.per1000 ** (uses / 1000.0)
        own = self._own_chance[recipient]
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
        behaviour, ring, factors = self._behaviour, self._behaviour.ring_time, self._odds_by_attempt
        rings = (ring.answered, ring.no_answer, ring.busy, ring.failed)
        return _Attempt(
            odds=factors[min(attempt, len(factors)) - 1],
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

    def _own_chances(self) -> Values[float]:
        """Each person's own chance to answer, before any odds apply.

        The share `reachable` of people have a chance at all: a Beta variate whose parameters add up
        to `concentration`, with a mean that makes `outcomes` true of everybody together.
        """
        answered, people = self._behaviour.outcomes.answered, self._behaviour.people
        if people is None:
            return Same(answered)
        mean = answered / people.reachable if people.reachable else 0.0
        concentration = inf if people.concentration is None else people.concentration
        if people.reachable >= 1.0 and (concentration == inf or mean in (0.0, 1.0)):
            return Same(min(1.0, mean))

        def fill(block: int, size: int) -> NDArray[np.float64]:
            from scipy.special import betaincinv

            reachable = self._draws.uniforms(Purpose.REACHABLE, 0, block, size) < people.reachable
            if concentration == inf or not 0.0 < mean < 1.0:
                return np.where(reachable, min(1.0, mean), 0.0)
            draws = self._draws.uniforms(Purpose.OWN_CHANCE, 0, block, size)
            own = betaincinv(mean * concentration, (1.0 - mean) * concentration, draws)
            return np.where(reachable, own, 0.0)

        return Column(self._draws.count, np.float64, fill)

    def _odds_by_segment(self, people: People) -> Values[float]:
        odds = self._behaviour.answered_odds.by_segment
        if people.segment is None or not odds:
            return Same(1.0)
        factors = np.array([*(odds.get(name, 1.0) for name in people.segments), 1.0])
        return factors[people.segment].data  # code −1, no segment, is the last factor


def _following(step: Step, setup_ms: int) -> Reaction:
    return Reaction(step.outcome, setup_ms, step.ring, step.talk)


def _with_odds(chance: float, factor: float) -> float:
    """The probability whose odds are those of `chance` times `factor`."""
    if factor == 1.0 or chance in (0.0, 1.0):
        return chance if factor else 0.0
    return chance * factor / (1.0 - chance + chance * factor)
