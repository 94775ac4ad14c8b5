"""Each person's own chance to answer: as `people` says, or as a history leaves it (P7, P8)."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.chance import BLOCK_BITS, Column, Draws, Purpose, Same, Values
from dialsim.engine.failed_attempts import FailedAttempts

if TYPE_CHECKING:
    from dialsim.engine.odds import Odds
    from dialsim.interface.schedule import ScheduleRequest
    from dialsim.scenario.behaviour import Behaviour
    from dialsim.scenario.people import People

Floats = NDArray[np.float64]

DEAD = -1.0
"""What a dead number has in place of a chance: it fails on every attempt."""

# Ends of the cells in which the weight of a history is taken for even. Whatever the odds, it
# changes over a unit of the log odds of the chance, of which a cell is a sixteenth.
_LOG_ODDS = np.linspace(-36.0, 36.0, 1153)
_CHANCE, _REST = 1.0 / (1.0 + np.exp(-_LOG_ODDS)), 1.0 / (1.0 + np.exp(_LOG_ODDS))


def own_chances(
    behaviour: Behaviour, odds: Odds, people: People, draws: Draws, request: ScheduleRequest
) -> Values[float]:
    """Each person's own chance to answer, before any odds apply; `DEAD` for a dead number.

    `request` is the one under which the attempts of a history were made.
    """
    crowd = _Crowd.of(behaviour)
    if crowd.alike:
        return Same(crowd.mean)
    past = FailedAttempts.of(people.history, request.max_attempts)
    known = _known(crowd, past, odds, draws, request) if len(past.recipient) else np.empty(0)

    def fill(block: int, size: int) -> Floats:
        kinds = draws.uniforms(Purpose.REACHABLE, 0, block, size)
        chances = crowd.quantiles(draws.uniforms(Purpose.OWN_CHANCE, 0, block, size))
        own = _of_kind(kinds, crowd.reachable, crowd.dead, chances)
        first = block << BLOCK_BITS
        low, high = np.searchsorted(past.recipient, (first, first + size))
        own[past.recipient[low:high] - first] = known[low:high]
        return own

    return Column(draws.count, np.float64, fill)


@dataclass(frozen=True, slots=True)
class _Crowd:
    """How people differ: shares of the reachable and of dead numbers, and the reachable's chances.

    These have a Beta distribution of this mean with a + b = `concentration`, or all the mean.
    `failing` is the share of FAILED among the ends other than an answer where no number is dead.
    """

    reachable: float
    dead: float
    mean: float
    concentration: float | None
    failing: float

    @classmethod
    def of(cls, behaviour: Behaviour) -> _Crowd:
        outcomes, people = behaviour.outcomes, behaviour.people
        if people is None:
            return cls(1.0, 0.0, outcomes.answered, None, 0.0)
        # `outcomes` hold over everybody together, whoever they are
        mean = min(1.0, outcomes.answered / people.reachable) if people.reachable else 0.0
        others = outcomes.others(people.dead_numbers)
        return cls(
            reachable=people.reachable,
            dead=people.dead_numbers,
            mean=mean,
            concentration=people.concentration if 0.0 < mean < 1.0 else None,
            failing=others[-1] / sum(others) if sum(others) else 0.0,
        )

    @property
    def alike(self) -> bool:
        """Whether everybody has the same chance."""
        return self.reachable >= 1.0 and self.concentration is None

    @property
    def beta(self) -> tuple[float, float]:
        """a and b of the reachable's distribution."""
        assert self.concentration is not None
        return self.mean * self.concentration, (1.0 - self.mean) * self.concentration

    def quantiles(self, uniforms: Floats) -> Floats:
        """The chances of reachable people of whom nothing is known."""
        from scipy.special import betaincinv

        if self.concentration is None:
            return np.full(len(uniforms), self.mean)
        chances: Floats = betaincinv(*self.beta, uniforms)
        return chances


def _of_kind(
    kinds: Floats, reachable: float | Floats, dead: float | Floats, chances: Floats
) -> Floats:
    """Own chances of people: uniforms share them out into reachable, never answering, and dead."""
    own = np.where(kinds < reachable, chances, 0.0)
    own[kinds >= 1.0 - dead] = DEAD
    return own


def _known(
    crowd: _Crowd, past: FailedAttempts, odds: Odds, draws: Draws, request: ScheduleRequest
) -> Floats:
    """The own chances of people who were called before in vain (P8).

    The draws are those of the same purposes, at the number of attempts so far. Those of a person
    without a history led to the failures already where it tells of a run with the same seed: they
    would count them twice.
    """
    kinds = draws.of(Purpose.REACHABLE, past.count, past.recipient)
    uniforms = draws.of(Purpose.OWN_CHANCE, past.count, past.recipient)
    chances, failures = np.empty_like(uniforms), np.empty_like(uniforms)
    for count in np.unique(past.count).tolist():
        after = _After(crowd, count)
        for rows, weight in past.weights(count, odds, request, after.chance, after.rest):
            chances[rows], failures[rows] = after.quantiles(uniforms[rows], weight)
    # What is left of each kind of people, by Bayes: log(share) + log(chance of this history)
    failed = np.where(past.failed, _log(crowd.failing), 0.0) if crowd.dead else 0.0
    never = max(0.0, 1.0 - crowd.reachable - crowd.dead)
    logs = np.stack(
        [
            _log(crowd.reachable) + failed + failures,
            _log(never if never > 1e-12 else 0.0) + failed + np.zeros_like(failures),
            np.where(past.working & (crowd.dead < 1.0), -inf, _log(crowd.dead)),
        ]
    )
    shares = np.exp(logs - logs.max(axis=0))
    reachable, _, dead = shares / shares.sum(axis=0)
    return _of_kind(kinds, reachable, dead, chances)


class _After:
    """The chances of reachable people after a number of failed attempts.

    `chance` are chances to weigh, `rest` what each leaves to 1.
    """

    def __init__(self, crowd: _Crowd, count: int) -> None:
        from scipy.special import betainc, betaln

        self._beta: tuple[float, float] | None = None
        if crowd.concentration is None:
            rest = max(1.0 - crowd.mean, 2.0**-53)  # who surely answers has not failed by chance
            self.chance, self.rest = np.array([crowd.mean]), np.array([rest])
            self._failing = count * log(rest)
            return
        a, b = crowd.beta
        self._beta = a, b + count
        self.chance, self.rest = _CHANCE, _REST
        self._failing = float(betaln(a, b + count) - betaln(a, b))
        below, above = betainc(a, b + count, _CHANCE), betainc(b + count, a, _REST)
        # The probability of each cell, from the end of the scale where it is exact
        self._edges = np.array([0.0, *below, 1.0])
        cells = np.where(
            self._edges[1:] < 0.5, np.diff(self._edges), -np.diff(np.array([1.0, *above, 0.0]))
        )
        self._cells = np.log(cells, out=np.full_like(cells, -inf), where=cells > 0.0)

    def quantiles(self, uniforms: Floats, weight: Floats) -> tuple[Floats, float]:
        """Chances, and the logarithm of the probability that all those attempts failed.

        `weight` is the logarithm of the weight of each of `chance`.
        """
        from scipy.special import betaincinv

        if self._beta is None:
            return np.repeat(self.chance, len(uniforms)), self._failing + float(weight[0])
        if not weight.any():
            return betaincinv(*self._beta, uniforms), self._failing
        edges = np.array([weight[0], *weight, weight[-1]])
        cells = self._cells + np.logaddexp(edges[:-1], edges[1:]) - log(2.0)
        top = cells.max()
        sums = np.array([0.0, *np.cumsum(np.exp(cells - top))])
        at = np.interp(uniforms * sums[-1], sums, self._edges)
        return betaincinv(*self._beta, at), self._failing + top + log(sums[-1])


def _log(share: float) -> float:
    return log(share) if share > 0.0 else -inf
