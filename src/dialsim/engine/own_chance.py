"""Probability of each recipient to answer: factors of `answeredOdds`, and an own probability.

The own probability is drawn as `people` specifies, conditional on the failed attempts of a history
(P7, P8).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.chance import BLOCK_BITS, Column, Draws, Purpose, Same, Values, beta_quantiles
from dialsim.engine.rules import DEAD, Windows, on_holiday, week_position
from dialsim.interface import CallStatus
from dialsim.interface.instants import DAY, HOUR, THAI_OFFSET, WEEK

if TYPE_CHECKING:
    from dialsim.interface.schedule import ScheduleRequest
    from dialsim.scenario.behaviour import AnsweredOdds, Behaviour
    from dialsim.scenario.campaign import Past
    from dialsim.scenario.people import People


class Odds:
    """Factors on the odds of an answer for one campaign's recipients under one behaviour.

    `by_week_hour` has one factor for each of the 168 hours of the Thai week, `by_attempt` one per
    attempt from the first (the last one repeats), and `by_segment` one per segment that occurs, the
    last for people without a segment. `segment` has each recipient's index into `by_segment`; None
    if all are equal. `on_holiday` applies on `holidays`, sorted days since 1970.
    """

    __slots__ = (
        "_holidays",
        "_now",
        "by_attempt",
        "by_segment",
        "by_week_hour",
        "on_holiday",
        "segment",
    )

    def __init__(self, odds: AnsweredOdds, people: People, holidays: Sequence[int] = ()) -> None:
        self.by_week_hour = np.array(
            [
                odds.by_day.get(hour // 24 + 1, 1.0) * odds.by_hour.get(hour % 24, 1.0)
                for hour in range(7 * 24)
            ]
        )
        self._now: list[float] = self.by_week_hour.tolist()
        self._holidays = holidays
        self.on_holiday = odds.on_holiday
        self.by_attempt = odds.by_attempt
        self.by_segment = np.ones(1)
        self.segment: NDArray[np.int16] | None = None
        if people.segment is not None and odds.by_segment:
            listed = (odds.by_segment.get(name, 1.0) for name in people.segments)
            self.by_segment = np.array([*listed, 1.0])
            self.segment = people.segment  # code −1, no segment, indexes the last factor

    @property
    def matter(self) -> bool:
        """True if any factor differs from 1, apart from holidays, which do not apply to
        histories (P8).
        """
        factors = (*self._now, *self.by_attempt, *self.by_segment.tolist())
        return any(factor != 1.0 for factor in factors)

    def at(self, now: int) -> float:
        """Return the factor at an instant: of its Thai hour and day, and of holidays."""
        factor = self._now[week_position(now) // HOUR]
        return factor * on_holiday(self._holidays, self.on_holiday, now)

    def of_attempt(self, attempt: int) -> float:
        """Return the factor of an attempt, from 1."""
        return self.by_attempt[min(attempt, len(self.by_attempt)) - 1]

    def attempts(self, count: int) -> list[tuple[float, int]]:
        """Return the factors of the first `count` attempts, each with its number of attempts."""
        *each, repeated = self.by_attempt
        return [
            *((factor, 1) for factor in each[:count]),
            *([(repeated, count - len(each))] if count > len(each) else []),
        ]

    def of_people(self) -> Values[float]:
        """Return each recipient's factor by segment."""
        if self.segment is None:
            return Same(1.0)
        factors = self.by_segment[self.segment]

        def fill(block: int, size: int) -> NDArray[np.float64]:
            return factors[block << BLOCK_BITS :][:size]

        return Column(len(factors), np.float64, fill)


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_MONDAY = 4 * DAY - THAI_OFFSET  # 1970-01-05, midnight in Thailand
# Latest possible instants of earlier attempts are rounded up to multiples of this, so that few
# distinct instants remain.
_STEP = HOUR // 4
_ANSWERING = frozenset({CallStatus.NO_ANSWER, CallStatus.BUSY})  # ends that exclude a dead number


@dataclass(frozen=True, slots=True)
class FailedAttempts:
    """Recipients with unanswered attempts in their history who will be called again, as columns.

    `count` is the number of attempts, `ended_at` (ms) the end of the last call. The last call
    either `failed`, or had another ending, which shows the number to be `working`, or only `waited`
    in the queue (Q5) and was no attempt.
    """

    recipient: Integers
    count: Integers
    ended_at: Integers
    failed: NDArray[np.bool_]
    working: NDArray[np.bool_]
    waited: NDArray[np.bool_]

    @classmethod
    def of(cls, history: Mapping[int, Past], max_attempts: int) -> FailedAttempts:
        """Select the recipients of a history with fewer than `max_attempts` attempts and no
        answer.
        """
        past = {
            recipient: past
            for recipient, past in sorted(history.items())
            if not past.reached and 0 < past.call_attempt < max_attempts
        }
        ends = [entry.latest_call_status for entry in past.values()]
        return cls(
            recipient=np.array([*past], dtype=np.int64),
            count=np.array([entry.call_attempt for entry in past.values()], dtype=np.int64),
            ended_at=np.array([entry.last_ended_at for entry in past.values()], dtype=np.int64),
            failed=np.array([end is CallStatus.FAILED for end in ends], dtype=np.bool_),
            working=np.array([end in _ANSWERING for end in ends], dtype=np.bool_),
            waited=np.array([end is CallStatus.CANCELLED for end in ends], dtype=np.bool_),
        )

    def weights(
        self, count: int, odds: Odds, request: ScheduleRequest, chance: Floats, rest: Floats
    ) -> Iterator[tuple[NDArray[np.intp], Floats]]:
        """Yield (rows, weight) for recipients with `count` attempts, grouped by equal weight.

        Under odds times f, a recipient with probability p fails to answer with probability (1 − p)
        / (1 − p + f·p). `chance` holds values of p, `rest` is 1 − p. The weight is the logarithm of
        that probability over all attempts, without the powers of 1 − p. The instant of the last
        attempt is known; an earlier one may have been made whenever windows were open (P8).
        """
        rows = np.flatnonzero(self.count == count)
        if not odds.matter:
            yield rows, np.zeros_like(chance)
            return
        hours = _Hours(odds.by_week_hour, Windows.of(request.time_windows))
        segment = np.zeros_like(rows)
        if odds.segment is not None:
            segment = odds.segment[self.recipient[rows]].astype(np.int64)
        last = np.where(self.waited[rows], -1, hours.kinds(self.ended_at[rows]))
        until = self.ended_at[rows] - request.retry_interval
        until = -(-until // _STEP) * _STEP if hours.vary else np.zeros_like(until)
        alike, group = np.unique(np.stack([segment, last, until]), axis=1, return_inverse=True)
        shares = hours.shares(request.start_date_time, alike[2])
        for number, (kind, hour, _) in enumerate(alike.T.tolist()):
            of_person = odds.by_segment[kind]
            earlier, weight = count, np.zeros_like(chance)
            if hour >= 0:
                earlier -= 1
                factor = odds.of_attempt(count) * of_person * hours.factors[hour]
                weight -= np.log(rest + factor * chance)
            for of_attempt, times in odds.attempts(earlier):
                factors = of_attempt * of_person * hours.factors
                failing = shares[number] @ (1.0 / (rest + factors[:, np.newaxis] * chance))
                weight += times * np.log(failing)
            yield rows[group == number], weight


class _Hours:
    """Distinct factors of the hours of the week, and the time that windows are open under each."""

    def __init__(self, by_week_hour: Floats, windows: Windows) -> None:
        self.factors, self._kinds = np.unique(by_week_hour, return_inverse=True)
        self.vary = len(self.factors) > 1
        opens, closes = (windows.open_spans(_MONDAY, _MONDAY + WEEK) - _MONDAY).T
        # Between two neighbouring instants the hour does not change, nor whether windows are open.
        self._instants = np.unique([*range(0, WEEK + 1, HOUR), *opens, *closes])
        begins = self._instants[:-1]
        is_open = np.searchsorted(opens, begins, "right") > np.searchsorted(closes, begins, "right")
        of_factor = np.zeros((len(begins), len(self.factors)))
        of_factor[np.arange(len(begins)), self._kinds[begins // HOUR]] = np.where(
            is_open, np.diff(self._instants), 0
        )
        self._open_before = np.vstack([np.zeros(len(self.factors)), np.cumsum(of_factor, axis=0)])

    def kinds(self, instants: Integers) -> Integers:
        """Return the indices into `factors` at instants (ms)."""
        kinds: Integers = self._kinds[(instants - _MONDAY) % WEEK // HOUR]
        return kinds

    def shares(self, start: int, until: Integers) -> Floats:
        """Return each factor's share of the open time from `start` up to each of `until` (ms).

        Without open time in between, the shares in a whole week are returned.
        """
        open_time = self._since_monday(until) - self._since_monday(np.array([start]))
        open_time[open_time.sum(axis=1) <= 0.0] = self._open_before[-1]
        shares: Floats = open_time / open_time.sum(axis=1, keepdims=True)
        return shares

    def _since_monday(self, instants: Integers) -> Floats:
        """Return the open time under each factor from a fixed Monday up to each instant (ms)."""
        weeks, position = np.divmod(instants - _MONDAY, WEEK)
        within = [np.interp(position, self._instants, before) for before in self._open_before.T]
        since: Floats = weeks[:, np.newaxis] * self._open_before[-1] + np.stack(within, axis=1)
        return since


# Edges of the cells within which the weight of a history is taken as constant. For all odds it
# changes over about one unit of the log odds of the probability, and a cell is a sixteenth of a
# unit.
_LOG_ODDS = np.linspace(-36.0, 36.0, 1153)
_CHANCE, _REST = 1.0 / (1.0 + np.exp(-_LOG_ODDS)), 1.0 / (1.0 + np.exp(_LOG_ODDS))


def own_chances(
    behaviour: Behaviour, odds: Odds, people: People, draws: Draws, request: ScheduleRequest
) -> Values[float]:
    """Return each recipient's own probability to answer, before odds; `DEAD` for a dead number.

    `request` is the schedule request under which the attempts of a history were made.
    """
    crowd = Crowd.of(behaviour)
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
class Crowd:
    """Parameters of P7: shares of reachable people and dead numbers, and the distribution of
    chances.

    The probabilities of reachable people have a Beta distribution with this mean and a + b =
    `concentration`, or are all equal to the mean. `failing` is the share of FAILED among unanswered
    calls to numbers that are not dead.
    """

    reachable: float
    dead: float
    mean: float
    concentration: float | None
    failing: float

    @classmethod
    def of(cls, behaviour: Behaviour) -> Crowd:
        """Read the parameters of a behaviour."""
        outcomes, people = behaviour.outcomes, behaviour.people
        if people is None:
            return cls(1.0, 0.0, outcomes.answered, None, 0.0)
        # `outcomes` hold over all people together, so the reachable must answer more often.
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
        """True if all people have the same probability."""
        return self.reachable >= 1.0 and self.concentration is None

    @property
    def beta(self) -> tuple[float, float]:
        """Parameters a and b of the Beta distribution of reachable people."""
        assert self.concentration is not None
        return self.mean * self.concentration, (1.0 - self.mean) * self.concentration

    def quantiles(self, uniforms: Floats) -> Floats:
        """Return probabilities of reachable people without a history."""
        if self.concentration is None:
            return np.full(len(uniforms), self.mean)
        return beta_quantiles(*self.beta, uniforms)


def _of_kind(
    kinds: Floats, reachable: float | Floats, dead: float | Floats, chances: Floats
) -> Floats:
    """Return own probabilities; the uniforms `kinds` divide people into reachable, never
    answering, dead.
    """
    own = np.where(kinds < reachable, chances, 0.0)
    own[kinds >= 1.0 - dead] = DEAD
    return own


def _known(
    crowd: Crowd, past: FailedAttempts, odds: Odds, draws: Draws, request: ScheduleRequest
) -> Floats:
    """Return the own probabilities of recipients with failed attempts in their history (P8)."""
    # Addressed by the number of attempts so far, not by attempt 0: if the history comes from a run
    # with the same seed, those draws have already led to the failures and would count twice.
    kinds = draws.of(Purpose.REACHABLE, past.count, past.recipient)
    uniforms = draws.of(Purpose.OWN_CHANCE, past.count, past.recipient)
    chances, failures = np.empty_like(uniforms), np.empty_like(uniforms)
    for count in np.unique(past.count).tolist():
        after = _After(crowd, count)
        for rows, weight in past.weights(count, odds, request, after.chance, after.rest):
            chances[rows], failures[rows] = after.quantiles(uniforms[rows], weight)
    # Posterior shares by Bayes: log(prior share) + log(probability of this history).
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
    """Distribution of reachable people's probabilities after a number of failed attempts.

    `chance` are the probabilities at which weights are evaluated, `rest` is 1 − `chance`.
    """

    def __init__(self, crowd: Crowd, count: int) -> None:
        from scipy.special import betainc, betaln

        self._beta: tuple[float, float] | None = None
        if crowd.concentration is None:
            # Keeps the logarithm finite for people who answer with certainty.
            rest = max(1.0 - crowd.mean, 2.0**-53)
            self.chance, self.rest = np.array([crowd.mean]), np.array([rest])
            self._failing = count * log(rest)
            return
        a, b = crowd.beta
        self._beta = a, b + count
        self.chance, self.rest = _CHANCE, _REST
        self._failing = float(betaln(a, b + count) - betaln(a, b))
        below, above = betainc(a, b + count, _CHANCE), betainc(b + count, a, _REST)
        # The probability of each cell, computed from the end of the scale where it is exact.
        self._edges = np.array([0.0, *below, 1.0])
        cells = np.where(
            self._edges[1:] < 0.5, np.diff(self._edges), -np.diff(np.array([1.0, *above, 0.0]))
        )
        self._cells = np.log(cells, out=np.full_like(cells, -inf), where=cells > 0.0)

    def quantiles(self, uniforms: Floats, weight: Floats) -> tuple[Floats, float]:
        """Return probabilities, and the logarithm of the probability that all those attempts
        failed.

        `weight` is the logarithm of the weight at each of `chance`.
        """
        if self._beta is None:
            return np.repeat(self.chance, len(uniforms)), self._failing + float(weight[0])
        if not weight.any():
            return beta_quantiles(*self._beta, uniforms), self._failing
        edges = np.array([weight[0], *weight, weight[-1]])
        cells = self._cells + np.logaddexp(edges[:-1], edges[1:]) - log(2.0)
        top = cells.max()
        sums = np.array([0.0, *np.cumsum(np.exp(cells - top))])
        # Below 1, as uniforms are; the last edge is 1.
        at = np.minimum(np.interp(uniforms * sums[-1], sums, self._edges), 1.0 - 2.0**-53)
        return beta_quantiles(*self._beta, at), self._failing + top + log(sums[-1])


def _log(share: float) -> float:
    return log(share) if share > 0.0 else -inf
