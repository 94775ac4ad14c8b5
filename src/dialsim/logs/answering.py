"""Estimation of answers and failures: maximum likelihood for the model of P7.

Each person is reachable with a probability p of their own, from a Beta distribution, or never
answers, or has a dead number. Under odds times f a call is answered with probability f·p / (1 − p +
f·p). A person's calls are one term of the likelihood, averaged over the kinds of people; a person
with fewer attempts contributes fewer factors and is not dropped.

The factors of hours, days, attempts and segments are shrunk towards 1: the logarithms of a group
are draws from a normal distribution whose spread is estimated by the evidence of the data
(empirical Bayes; MacKay 1992, "Bayesian Interpolation", Neural Computation 4). The mean over p uses
Gauss-Jacobi quadrature. Standard errors come from the information matrix, computed as the sum of
squares of people's scores (Berndt, Hall, Hall and Hausman 1974).

Fatigue of caller IDs is the factor per1000^(n/1000) on the odds, n the earlier dials of the number,
decaying by exp(−age/recovery). Both parameters are estimated in the same likelihood, if fatigue is
significant. Without fatigue the recovery has no meaning, so the test covers all recoveries and uses
the strongest sign of fatigue, with the bound on its probability by Davies (1987, "Hypothesis
testing when a nuisance parameter is present only under the alternative", Biometrika 74).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import erfc, exp, log, pi, sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

ENDS = ("answered", "noAnswer", "busy", "failed")
"""Names of the outcomes in a behaviour, by their codes."""
ANSWERED, NO_ANSWER, BUSY, FAILED = range(4)
UNSEEN = -1
"""Code of an unanswered attempt that the log does not contain."""

_NODES = 20
_CHUNK = 100_000
"""Calls processed at once, to bound memory."""
_LEAST_SPREAD, _MOST_SPREAD = 0.02, 2.0
_FAR = 800.0
"""Distance at which the exponential function of its negative is 0."""
_ROUNDS = 15
_FEW = 30
"""Attempts with fewer calls share the factor of the attempt before."""

# Prior of the differences between people: the built-in behaviour's figures with a standard
# deviation so wide that it hardly matters for a log of some hundred people.
_NEVER, _DEAD, _CONCENTRATION = -4.0, log(0.05 / 0.95), log(2.8)
_PRIOR_MEAN = np.array([0.0, _NEVER, _DEAD, _CONCENTRATION, -1.0])
_PRIOR_SD = np.array([5.0, 2.0, 3.0, 1.5, 5.0])
_TOLD, _SURE = 0.6, 0.03
"""Thresholds for a value that the log determines: reduction of its uncertainty, or standard
error of a share.
"""
_LOG_MOST = log(300.0)
"""Logarithm of the smallest concentration at which people count as equal."""
_CHANCE, _NEVERS, _DEADS, _ALIKE, _FAILING = range(5)
_MIXTURE = 5
_ATTEMPT = 2
"""Index of attempts among the groups of factors."""
_ORDINARY = 2.0
"""Standard errors from the median within which a level is typical."""
_GROUPS = 4
"""Number of groups: hours, days, attempts and segments.

Parameters of fatigue form a separate group.
"""
# A log determines the product of the two parameters, which is the fatigue of a number in steady
# use, better than each of them. Of logarithms the product is a sum, so that the likelihood is close
# to a normal distribution.
_WEAR, _RECOVERY = -2, -1
"""Indices of the parameters of fatigue: logarithms of −ln(per1000) and of the recovery (ms)."""
_WEAR_MEAN = np.array([log(0.2), log(12 * 3_600_000.0)])
_WEAR_SD = np.array([3.0, 3.0])
_KNOWN_RECOVERY = 0.8
"""Standard error of the logarithm beyond which a recovery is undetermined."""
_RECOVERIES = np.geomspace(0.25, 768.0, 13) * 3_600_000.0
"""Recoveries in the test for fatigue: a quarter of an hour to 32 days."""
_BY_CHANCE = 0.01
"""Significance level of the test for fatigue."""
_STEP = 1e-3
DAYS_OF_WEEK = 7
"""Codes of days above this are dates that are left out: each has its own factor."""
_SURELY, _MATTERS = 5.0, 0.02
"""Standard errors, and share of calls, at which answers contradict figures."""


class DialHistory:
    """All dials of a log: caller ID and instant of each.

    Caller IDs are per organization: a number of two organizations tires separately for each.
    """

    def __init__(self, number: Integers, at: Integers) -> None:
        """`number` is a code from 0, `at` in ms; dials of one instant count in their order."""
        self._order = np.lexsort((at, number))
        self._number = number[self._order]
        # Relative to the first dial: ms since 1970 leave too few digits for exp() of small ages.
        self._at = (at[self._order] - (at.min() if len(at) else 0)).astype(np.float64)

    def __len__(self) -> int:
        return len(self._order)

    def uses(self, recovery: float) -> Floats:
        """Return the number of earlier dials of each dial's caller ID, decayed by exp(−age ÷
        recovery).
        """
        if not len(self):
            return np.empty(0)
        # One cumulative sum for all numbers: each number's dials are shifted so far behind the
        # previous number's that nothing of these is left.
        ages = self._at / recovery
        ages += self._number * (ages.max() + _FAR)
        sums = np.logaddexp.accumulate(ages)
        found = np.zeros(len(self))
        # Up to the dial before: a dial does not count as an earlier use of itself.
        found[self._order[1:]] = np.exp(sums[:-1] - ages[1:])
        return found


COLUMNS = ("person", "attempt", "hour", "day", "segment", "outcome", "dial", "dialled_at")


@dataclass(frozen=True, slots=True)
class Attempts:
    """Dialled and ended calls, by person and attempt; columns of equal length.

    `person` is sorted. `hour` is 0 to 23, `day` 1 to 7 (Thai time), `attempt` from 1. `segment` is
    an index into `segments`, −1 for none. `outcome` is a code of this module. `dial` is the index
    of the dial in `dials`, `dialled_at` its instant (ms). For an `UNSEEN` attempt hour, day and
    dial are −1, and the instant is 0.
    """

    person: Integers
    attempt: Integers
    hour: Integers
    day: Integers
    segment: Integers
    outcome: Integers
    dial: Integers
    dialled_at: Integers
    segments: tuple[str, ...] = ()
    dials: DialHistory | None = None
    """None if the log does not contain caller IDs."""

    def __len__(self) -> int:
        return len(self.person)

    def __getitem__(self, rows: Mask | slice) -> Attempts:
        return replace(self, **{name: getattr(self, name)[rows] for name in COLUMNS})

    @property
    def seen(self) -> Mask:
        """True for attempts in the log."""
        seen: Mask = self.outcome != UNSEEN
        return seen


@dataclass(frozen=True, slots=True)
class PointEstimate:
    """Estimate with its standard error and the number of observations."""

    value: float
    error: float
    count: int

    @property
    def low(self) -> float:
        """Lower limit of the 95 % interval."""
        return self.value - 1.96 * self.error

    @property
    def high(self) -> float:
        """Upper limit of the 95 % interval."""
        return self.value + 1.96 * self.error


@dataclass(frozen=True, slots=True)
class Level(PointEstimate):
    """Estimate of the logarithm of a factor on the odds, or of a time (ms)."""

    @property
    def factor(self) -> PointEstimate:
        """The factor or time itself; its error by the delta method."""
        value = exp(self.value)
        return PointEstimate(value, value * self.error, self.count)


def slopes(function: Callable[[Floats], Floats], at: Floats, count: int) -> Floats:
    """Return the derivatives of a function by its first `count` parameters, a column for each."""
    steps = np.eye(len(at))[:count] * 1e-5
    return np.stack([(function(at + step) - function(at - step)) / 2e-5 for step in steps], axis=1)


@dataclass(frozen=True, slots=True)
class Wear:
    """Fatigue of caller IDs: `byCallerIdUse` of a behaviour."""

    per1000: Level
    recovery: Level


@dataclass(frozen=True, slots=True)
class Answering:
    """Estimate of answers and failures.

    `outcomes` are shares of all people at a first attempt under factors of 1. Factor 1 belongs to
    typical `hours`, `days` and `segments`, which are not distinguishable from the median of the
    log's first attempts; to the first of `attempts`; and, with `wear`, to a number without recent
    dials. Without `wear`, `no_wear` is the reason. `reachable`, `dead_numbers` and `concentration`
    are the values of `people` in a behaviour; `determined` names those that the log determines.
    `spread` is the standard deviation of the logarithms of each group's factors. `covariance`
    belongs to the model's parameters.
    """

    outcomes: Mapping[str, PointEstimate]
    reachable: PointEstimate
    dead_numbers: PointEstimate
    concentration: PointEstimate
    determined: frozenset[str]
    hours: Mapping[int, Level]
    days: Mapping[int, Level]
    attempts: tuple[Level, ...]
    segments: Mapping[str, Level]
    wear: Wear | None
    no_wear: str
    spread: Mapping[str, float]
    model: AnsweringModel
    covariance: Floats

    def draw(self, chance: np.random.Generator) -> Answering:
        """Draw parameters from their posterior.

        The posterior is a normal distribution around the estimates (Laplace's approximation; Gelman
        et al. 2013, "Bayesian Data Analysis", section 4.1). Parameters that the log does not
        determine are drawn from their prior.
        """
        layout = self.model.layout
        ringing, busy = self.outcomes["noAnswer"].value, self.outcomes["busy"].value
        drawn = _drawn(self.model.parameters, self.covariance, chance)
        figures = _figures(drawn, ringing / max(ringing + busy, 1e-12))
        levels = layout.effects @ drawn[_MIXTURE:]
        wear = None if self.wear is None else Wear(
            Level(-exp(drawn[_WEAR]), 0.0, 0), Level(float(drawn[_RECOVERY]), 0.0, 0)
        )  # fmt: skip
        return replace(
            self,
            determined=frozenset(("reachable", "deadNumbers", "concentration")),
            **_named(
                layout,
                [PointEstimate(value, 0.0, 0) for value in figures.tolist()],
                [Level(value, 0.0, 0) for value in levels.tolist()],
                [*self.segments], wear,
            ),
        )  # fmt: skip

    def chances(self, attempts: Attempts) -> Floats:
        """Return each call's probability of an answer, given the ends of the person's calls
        before it.
        """
        return self.model.chances(attempts)

    @property
    def weekdays(self) -> Mapping[int, Level]:
        """Factors of days of the week, without dates that are left out."""
        return {day: level for day, level in self.days.items() if day <= DAYS_OF_WEEK}

    def contradicted(self, attempts: Attempts) -> str | None:
        """Describe the first attempt of a log whose answers these estimates do not reproduce."""
        chances = self.chances(attempts)
        for number in range(1, len(self.attempts) + 1):
            rows = attempts.seen & (attempts.attempt == number)
            calls, answered = int(rows.sum()), int((attempts.outcome[rows] == ANSWERED).sum())
            expected, own = float(chances[rows].sum()), chances[rows]
            error = sqrt(float((own * (1.0 - own)).sum()))
            off = abs(answered - expected)
            if calls >= _FEW and off > max(_SURELY * error, _MATTERS * calls):
                return (
                    f"of {calls:,} calls of attempt {number} {expected / calls:.1%} were expected "
                    f"to be answered, but {answered / calls:.1%} were"
                )
        return None


@dataclass(frozen=True, slots=True)
class _Layout:
    """Levels of each group, and the effects of parameters on them.

    `starts` has each group's first level. The logarithms of the levels' factors are `effects @
    parameters`. With `dials` the last two parameters describe fatigue, which belongs to no level.
    """

    hours: Integers
    days: Integers
    attempts: int
    segments: int
    effects: Floats
    group: Integers  # by parameter
    shares: Floats  # share of the log's first attempts, by level
    dials: DialHistory | None = None

    @classmethod
    def of(cls, attempts: Attempts) -> _Layout:
        seen = attempts[attempts.seen]
        hours, days = np.unique(seen.hour), np.unique(seen.day)
        counts = np.bincount(attempts.attempt)[1:]
        # argmin of booleans is the index of the first False, which the appended 0 guarantees.
        enough = int(np.argmin(np.append(counts, 0) >= _FEW))
        last = max(1, enough)
        # Levels are weighted by shares of first attempts: the hours of retries depend on the
        # answers to first attempts.
        first = seen[seen.attempt == 1] if (seen.attempt == 1).any() else seen
        shares = [
            _shares(np.searchsorted(hours, first.hour), len(hours)),
            _shares(np.searchsorted(days, first.day), len(days)),
            _shares(np.zeros(1, dtype=np.int64), last),
            _shares(first.segment[first.segment >= 0], len(attempts.segments)),
        ]
        blocks = [_centred(part) for part in shares]
        # each attempt's effect builds on the one before
        blocks[_ATTEMPT] = np.tril(np.ones((last, last - 1)), -1)
        group = np.repeat(np.arange(_GROUPS), [block.shape[1] for block in blocks])
        effects = _diagonal(blocks)
        return cls(
            hours, days, last, len(attempts.segments), effects, group, np.concatenate(shares)
        )

    def worn(self, dials: DialHistory) -> _Layout:
        """Return the layout with the parameters of fatigue."""
        return replace(
            self,
            effects=np.pad(self.effects, ((0, 0), (0, len(_WEAR_MEAN)))),
            group=np.append(self.group, np.full(len(_WEAR_MEAN), _GROUPS)),
            dials=dials,
        )

    def around(self, effects: Floats, errors: Floats) -> _Layout:
        """Return the layout in which the factors of typical levels have the geometric mean 1.

        A level is typical if its effect, estimated in this layout, is not distinguishable from the
        median.
        """
        made = self.effects.copy()
        for group, (start, end) in enumerate(pairwise(self.starts)):
            columns = np.flatnonzero(self.group == group)
            if group == _ATTEMPT or not len(columns):
                continue
            own, shares = effects[start:end], self.shares[start:end]
            order = np.argsort(own)
            middle = own[order][np.searchsorted(np.cumsum(shares[order]), 0.5)]
            ordinary = np.abs(own - middle) <= _ORDINARY * errors[start:end]
            # At least the median itself: all errors may be 0.
            ordinary |= own == middle
            made[start:end, columns] = _centred(np.where(ordinary, shares, 0.0))
        return replace(self, effects=made)

    @property
    def starts(self) -> tuple[int, int, int, int, int]:
        """First level of each group, and the number of all levels."""
        first = len(self.hours)
        second = first + len(self.days)
        third = second + self.attempts
        return 0, first, second, third, third + self.segments

    def levels(self, attempts: Attempts) -> Integers:
        """Return the levels of each call, a column per group; −1 for none."""
        _, day, attempt, segment, _ = self.starts
        of_attempt = attempt + np.minimum(attempts.attempt, self.attempts) - 1
        of_segment = np.where(attempts.segment >= 0, segment + attempts.segment, -1)
        of_hour, of_day = (
            pd.Index(known).get_indexer(pd.Index(values))
            for known, values in ((self.hours, attempts.hour), (self.days, attempts.day))
        )
        of_day = np.where(of_day >= 0, day + of_day, -1)
        return np.stack([of_hour, of_day, of_attempt, of_segment], axis=1)


def _shares(codes: Integers, count: int) -> Floats:
    shares: Floats = np.bincount(codes, minlength=count) / max(len(codes), 1)
    return shares


def _centred(shares: Floats) -> Floats:
    """Return a matrix of effects with mean 0, weighted by `shares`; one level has no parameter."""
    if len(shares) < 2 or not shares.any():
        return np.zeros((len(shares), 0))
    centred: Floats = np.eye(len(shares)) - shares / shares.sum()
    return centred


def _diagonal(blocks: Sequence[Floats]) -> Floats:
    from scipy.linalg import block_diag

    rows = sum(len(block) for block in blocks)
    made: Floats = block_diag(*blocks).reshape(rows, -1)
    return made


def _named(
    layout: _Layout,
    figures: Sequence[PointEstimate],
    levels: Sequence[Level],
    segments: Sequence[str],
    wear: Wear | None,
) -> dict[str, Any]:
    """Return the fields of `Answering` for the values of `_figures` and of all levels."""
    hour, day, attempt, segment, end = layout.starts
    return {
        "outcomes": dict(zip(ENDS, figures[:4], strict=True)),
        "reachable": figures[4],
        "dead_numbers": figures[5],
        "concentration": figures[6],
        "hours": dict(zip(layout.hours.tolist(), levels[hour:day], strict=True)),
        "days": dict(zip(layout.days.tolist(), levels[day:attempt], strict=True)),
        "attempts": (*levels[attempt:segment],),
        "segments": dict(zip(segments, levels[segment:end], strict=True)),
        "wear": wear,
    }


@dataclass(frozen=True, slots=True)
class _Piece:
    """Calls of some people as arrays; `first` are each person's first row.

    Calls under equal factors have one `kind`; `kinds` has a row of levels for each.
    """

    calls: Attempts
    first: Integers
    sizes: Integers
    kind: Integers
    kinds: Integers
    design: Any  # scipy.sparse.csr_array, a row per call and a column per level
    of_person: Any  # scipy.sparse.csr_array, a row per person and a column per call
    answered: Mask
    failed: Integers
    unanswered: Integers
    never: Mask  # no call was answered
    dead: Mask  # every call failed


def _piece(calls: Attempts, layout: _Layout) -> _Piece:
    from scipy.sparse import csr_array

    levels = layout.levels(calls)
    there = levels >= 0
    if layout.dials is None:
        kinds, kind = np.unique(levels, axis=0, return_inverse=True)
    else:  # with fatigue, no two calls have equal factors
        kinds, kind = levels, np.arange(len(levels))
    first = np.flatnonzero(np.diff(calls.person, prepend=calls.person[0] - 1))
    sizes = np.diff(np.append(first, len(calls)))
    number = np.repeat(np.arange(len(first)), sizes)
    size = len(calls), layout.starts[-1]
    answered = calls.outcome == ANSWERED
    failed = np.add.reduceat((calls.outcome == FAILED).astype(np.int64), first)
    known = np.add.reduceat((calls.outcome > ANSWERED).astype(np.int64), first)
    # Rows of a person are adjacent, so that sums per person are segments.
    answers = np.add.reduceat(answered.astype(np.int64), first)
    return _Piece(
        calls=calls,
        first=first,
        sizes=sizes,
        kind=kind,
        kinds=kinds,
        design=csr_array((np.ones(there.sum()), (there.nonzero()[0], levels[there])), shape=size),
        of_person=csr_array(
            (np.ones(len(calls)), (number, np.arange(len(calls)))), shape=(len(first), len(calls))
        ),
        answered=answered,
        failed=failed,
        unanswered=known,
        never=answers == 0,
        dead=(answers == 0) & (known == failed),
    )


@dataclass(frozen=True, slots=True)
class _Shares:
    """Parameters of the mixture of kinds of people."""

    mean: float
    reachable: float
    never: float
    dead: float
    concentration: float
    failing: float

    @classmethod
    def of(cls, parameters: Floats) -> _Shares:
        # The optimizer tries extreme values, at which exp() would overflow.
        chance, never, dead, concentration, failing = np.clip(parameters[:_MIXTURE], -30.0, 30.0)
        weights = np.exp([0.0, never, dead])
        reachable, nevers, deads = weights / weights.sum()
        return cls(
            mean=float(1.0 / (1.0 + np.exp(-chance))),
            reachable=float(reachable),
            never=float(nevers),
            dead=float(deads),
            concentration=float(np.exp(np.clip(concentration, -3.0, _LOG_MOST))),
            failing=float(1.0 / (1.0 + np.exp(-failing))),
        )


def _quadrature(mean: float, concentration: float) -> tuple[Floats, Floats, Floats]:
    """Return probabilities p of reachable people, 1 − p, and the logarithms of the weights of p."""
    from scipy.special import roots_jacobi

    a, b = mean * concentration, (1.0 - mean) * concentration
    # Gauss-Jacobi nodes fit the Beta density itself, so that 20 of them suffice.
    at, weights = roots_jacobi(_NODES, b - 1.0, a - 1.0)
    with np.errstate(divide="ignore"):
        return (1.0 + at) / 2.0, (1.0 - at) / 2.0, np.log(weights / weights.sum())


def _log_sum(logs: Floats) -> Floats:
    """Return the logarithm of the sum of exponentials of each row."""
    # The largest is subtracted before exp(), which would underflow for people with many calls.
    top = logs.max(axis=1)
    total: Floats = top + np.log(np.exp(logs - top[:, np.newaxis]).sum(axis=1))
    return total


def _mixture(
    shares: _Shares, reached: Floats, ends: Floats, no_answer: Mask, only_failed: Mask
) -> tuple[Floats, Floats]:
    """Return log likelihoods, and the posterior share of each kind of people.

    `reached` are the log likelihoods of the answers under the reachable kind, `ends` the log
    likelihoods of the ends of unanswered calls. Answers exclude people who never answer, and other
    ends than failures exclude dead numbers.
    """
    with np.errstate(divide="ignore"):
        reachable, never, dead = np.log([shares.reachable, shares.never, shares.dead])
    kinds = np.stack(
        [
            reachable + reached + ends,
            np.where(no_answer, never + ends, -np.inf),
            np.where(only_failed, dead, -np.inf),
        ]
    )
    total: Floats = np.logaddexp.reduce(kinds, axis=0)
    return total, np.exp(kinds - total)


class AnsweringModel:
    """Model with its parameters: five for the differences between people, then factors and
    fatigue.
    """

    def __init__(self, layout: _Layout, parameters: Floats) -> None:
        self.layout = layout
        self.parameters = parameters

    @cached_property
    def _wear(self) -> tuple[Floats, Floats]:
        """Logarithm of each dial's factor of fatigue, and its derivatives by the parameters.

        The last row is for a call without a dial in the log.
        """
        dials = self.layout.dials
        assert dials is not None
        slope = -np.exp(np.clip(self.parameters[_WEAR], -20.0, 20.0))
        ends = log(_RECOVERIES[0]) - 3.0, log(_RECOVERIES[-1]) + 3.0
        recovery = np.clip(self.parameters[_RECOVERY], *ends)
        uses, less, more = (
            np.append(dials.uses(np.exp(recovery + step)), 0.0) / 1000.0
            for step in (0.0, -_STEP, _STEP)
        )
        return slope * uses, slope * np.stack([uses, (more - less) / (2.0 * _STEP)], axis=1)

    def _nodes(self, piece: _Piece, parameters: Floats) -> tuple[Floats, Floats, Floats]:
        """Return values for each node of the quadrature of p, a column per node.

        The probability of each kind of call to be answered, the logarithm of the probability of
        each call's end, and the logarithms of the nodes' weights.
        """
        shares = _Shares.of(parameters)
        chance, rest, weights = _quadrature(shares.mean, shares.concentration)
        # Level −1 indexes the appended 0.
        effects = np.append(self.layout.effects @ parameters[_MIXTURE:], 0.0)
        odds = effects[piece.kinds].sum(axis=1)
        if self.layout.dials is not None:
            odds += self._wear[0][piece.calls.dial]
        factor = np.exp(np.clip(odds, -30.0, 30.0))[:, np.newaxis]
        answered = factor * chance / (rest + factor * chance)
        with np.errstate(divide="ignore"):
            ends = np.log(np.stack([rest / (rest + factor * chance), answered]))
        return answered, ends[piece.answered.astype(np.intp), piece.kind], weights

    def _reached(self, piece: _Piece, parameters: Floats) -> Floats:
        """Return the log likelihoods of the answers under the reachable kind."""
        _, ends, weights = self._nodes(piece, parameters)
        nodes = np.add.reduceat(ends, piece.first, axis=0) + weights
        return _log_sum(nodes)

    def scores(self, piece: _Piece, parameters: Floats) -> tuple[float, Floats]:
        """Return the log likelihood of people, and each person's derivatives."""
        answered, ends, weights = self._nodes(piece, parameters)
        log_nodes = np.add.reduceat(ends, piece.first, axis=0) + weights
        reached = _log_sum(log_nodes)
        shares = _Shares.of(parameters)
        ends_known = piece.failed * np.log(shares.failing)
        ends_known = ends_known + (piece.unanswered - piece.failed) * np.log1p(-shares.failing)
        total, (of_reachable, of_never, of_dead) = _mixture(
            shares, reached, ends_known, piece.never, piece.dead
        )
        scores = np.empty((len(piece.first), len(parameters)))
        # The quadrature depends on these two parameters; its derivatives are taken numerically.
        for column in (_CHANCE, _ALIKE):
            step = np.zeros(len(parameters))
            step[column] = 1e-4
            above, below = (self._reached(piece, parameters + sign * step) for sign in (1.0, -1.0))
            scores[:, column] = of_reachable * (above - below) / 2e-4
        scores[:, _NEVERS] = of_never - shares.never
        scores[:, _DEADS] = of_dead - shares.dead
        expected = shares.failing * piece.unanswered
        scores[:, _FAILING] = (1.0 - of_dead) * (piece.failed - expected)
        likely = np.repeat(np.exp(log_nodes - reached[:, np.newaxis]), piece.sizes, axis=0)
        surprise = piece.answered - np.einsum("ij,ij->i", likely, answered[piece.kind])
        surprise *= np.repeat(of_reachable, piece.sizes)
        by_level = piece.of_person @ piece.design.multiply(surprise[:, np.newaxis])
        scores[:, _MIXTURE:] = by_level.toarray() @ self.layout.effects
        if self.layout.dials is not None:
            of_wear = surprise[:, np.newaxis] * self._wear[1][piece.calls.dial]
            scores[:, [_WEAR, _RECOVERY]] = piece.of_person @ of_wear
        return float(total.sum()), scores

    def chances(self, attempts: Attempts) -> Floats:
        """Return the chance of each call to be answered, given the recipient's earlier calls."""
        return self.chances_of_ends(attempts)[0]

    def chances_of_ends(self, attempts: Attempts) -> tuple[Floats, Floats]:
        """Return each call's chances to be answered and to fail, given the earlier calls."""
        found = np.empty((2, len(attempts)))
        for rows in _chunks(attempts.person):
            piece = _piece(attempts[rows], self.layout)
            found[:, rows] = self._chances(piece)
        return found[0], found[1]

    def _chances(self, piece: _Piece) -> Floats:
        parameters, shares = self.parameters, _Shares.of(self.parameters)
        answered, terms, weights = self._nodes(piece, parameters)

        def before(values: Floats) -> Floats:
            """Return the sums over the person's calls before each call."""
            sums = np.cumsum(values, axis=0) - values
            earlier: Floats = sums - np.repeat(sums[piece.first], piece.sizes, axis=0)
            return earlier

        outcome = piece.calls.outcome
        known = np.where(outcome == FAILED, np.log(shares.failing), np.log1p(-shares.failing))
        ends = before(np.where(outcome > ANSWERED, known, 0.0))
        talks = before(piece.answered.astype(np.float64))
        others = before(np.isin(outcome, (NO_ANSWER, BUSY)).astype(np.float64)) + talks
        nodes = before(terms) + weights
        reached = _log_sum(nodes)
        _, (reachable, _, dead) = _mixture(shares, reached, ends, talks == 0, others == 0)
        own = np.einsum("ij,ij->i", np.exp(nodes - reached[:, np.newaxis]), answered[piece.kind])
        answers = reachable * own
        found: Floats = np.stack([answers, dead + (1.0 - dead - answers) * shares.failing])
        return found


def _chunks(person: Integers) -> list[slice]:
    """Return slices of rows that contain whole people."""
    edges = [0]
    while edges[-1] < len(person):
        end = min(edges[-1] + _CHUNK, len(person))
        edges.append(int(np.searchsorted(person, person[end - 1], "right")))
    return [slice(*pair) for pair in pairwise(edges)]


@dataclass(frozen=True, slots=True)
class _People:
    """Calls of some people, and attempts before the log begins of people in `late` (indices)."""

    # A person who had answered before would not be in the log. So the likelihood is conditional on
    # no answer before.
    calls: _Piece
    before: _Piece | None
    late: Integers

    @classmethod
    def of(cls, attempts: Attempts, layout: _Layout) -> _People:
        calls = _piece(attempts, layout)
        seen = np.cumsum(attempts.seen)
        of_others: Integers = np.repeat(seen[calls.first] - attempts.seen[calls.first], calls.sizes)
        early = seen == of_others  # no earlier attempt of the person is in the log
        before = _piece(attempts[early], layout) if early.any() else None
        return cls(calls, before, np.flatnonzero(early[calls.first]))

    def scores(self, model: AnsweringModel, parameters: Floats) -> tuple[float, Floats]:
        """Return the log likelihood, and each person's derivatives."""
        total, scores = model.scores(self.calls, parameters)
        if self.before is not None:
            known, of_known = model.scores(self.before, parameters)
            total -= known
            # The likelihood is divided by that of the condition.
            scores[self.late] -= of_known
        return total, scores


class _Fit:
    """Search for the parameters; the last evaluation is cached."""

    def __init__(self, attempts: Attempts, layout: _Layout) -> None:
        self.layout = layout
        self.people = [_People.of(attempts[rows], self.layout) for rows in _chunks(attempts.person)]
        self.size = _MIXTURE + len(self.layout.group)
        self.spread = np.full(_GROUPS, 0.2)
        self._at: Floats | None = None
        self._found: tuple[float, Floats, Floats] = 0.0, np.empty(0), np.empty(0)

    def start(self, attempts: Attempts) -> Floats:
        """Return initial parameters from the observed shares."""
        parameters = self._assumed()
        first = attempts[attempts.seen]
        first = first[first.attempt == first.attempt.min()]
        share = np.clip((first.outcome == ANSWERED).mean() / 0.95, 0.01, 0.99)
        parameters[_CHANCE] = np.log(share / (1.0 - share))
        return parameters

    @property
    def precision(self) -> Floats:
        """Precision of the prior of each parameter."""
        factors = self.layout.group[self.layout.group < _GROUPS]
        wear = _WEAR_SD if self.layout.dials is not None else np.empty(0)
        return np.concatenate([_PRIOR_SD, self.spread[factors], wear]) ** -2.0

    def likelihood(self, parameters: Floats) -> tuple[float, Floats, Floats]:
        """Return the log likelihood, its gradient and the information, without the prior."""
        if self._at is None or not np.array_equal(self._at, parameters):
            model = AnsweringModel(self.layout, parameters)
            total, gradient = 0.0, np.zeros(self.size)
            information = np.zeros((self.size, self.size))
            for people in self.people:
                value, scores = people.scores(model, parameters)
                total += value
                gradient += scores.sum(axis=0)
                # The outer product of scores estimates the information without second derivatives
                # (Berndt et al. 1974).
                information += scores.T @ scores
            # Kept, because the optimizer asks for loss, gradient and Hessian of a point in turn.
            self._at, self._found = parameters.copy(), (total, gradient, information)
        return self._found

    def loss(self, parameters: Floats) -> tuple[float, Floats]:
        """Return the negative log posterior and its gradient."""
        total, gradient, _ = self.likelihood(parameters)
        off = parameters - self._assumed()
        return (
            -total + 0.5 * float(self.precision @ off**2),
            -gradient + self.precision * off,
        )

    def curvature(self, parameters: Floats) -> Floats:
        """Return the information matrix, with the prior's."""
        information: Floats = self.likelihood(parameters)[2] + np.diag(self.precision)
        return information

    def _assumed(self) -> Floats:
        assumed = np.concatenate([_PRIOR_MEAN, np.zeros(len(self.layout.group))])
        if self.layout.dials is not None:
            assumed[[_WEAR, _RECOVERY]] = _WEAR_MEAN
        return assumed

    def centre(self, parameters: Floats, covariance: Floats) -> None:
        """Rescale the factors so that a typical level has factor 1."""
        effects = self.layout.effects
        variance = effects @ covariance[_MIXTURE:, _MIXTURE:] @ effects.T
        errors = np.sqrt(np.maximum(np.diag(variance), 0.0))
        self.layout = self.layout.around(effects @ parameters[_MIXTURE:], errors)
        self._at = None

    def best(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Return the best parameters and their covariance, under the spreads of most evidence."""
        from scipy.optimize import minimize

        for _ in range(_ROUNDS):
            found = minimize(
                self.loss, parameters, jac=True, hess=self.curvature, method="trust-exact",
                options={"gtol": 0.05, "maxiter": 50},
            )  # fmt: skip
            parameters = found.x
            covariance: Floats = np.linalg.inv(self.curvature(parameters)).astype(np.float64)
            before = self.spread.copy()
            for group in range(_GROUPS):
                of = np.flatnonzero(self.layout.group == group)
                if len(of):
                    own = _MIXTURE + of
                    variance = self.spread[group] ** 2
                    # The effective number of parameters of the group (MacKay 1992): the spread is
                    # updated to its fixed point.
                    free = len(of) - np.trace(covariance[np.ix_(own, own)]) / variance
                    squares = float((parameters[own] ** 2).sum())
                    spread = np.sqrt(squares / max(free, 1e-3))
                    self.spread[group] = np.clip(spread, _LEAST_SPREAD, _MOST_SPREAD)
            if np.allclose(self.spread, before, rtol=0.05, atol=0.003):
                break
        return parameters, covariance


def answering(attempts: Attempts) -> Answering:
    """Estimate answers and failures from attempts, at least one of which is in the log."""
    fit = _Fit(attempts, _Layout.of(attempts))
    parameters, covariance = fit.best(fit.start(attempts))
    # Twice: which levels are typical is known only after a first fit.
    fit.centre(parameters, covariance)
    parameters, covariance = fit.best(parameters)
    if attempts.dials is None:
        why = "the log does not have the number that a call showed"
        return _answering(attempts, fit, parameters, covariance, why)
    worn = _Fit(attempts, fit.layout.worn(attempts.dials))
    worn.spread = fit.spread.copy()
    sign = _sign_of_wear(worn, parameters)
    if sign is None:
        why = "the calls don't distinguish wear from chance"
        return _answering(attempts, fit, parameters, covariance, why)
    of_worn, of_both = worn.best(np.append(parameters, sign))
    worn.centre(of_worn, of_both)
    of_worn, of_both = worn.best(of_worn)
    if of_both[_RECOVERY, _RECOVERY] >= _KNOWN_RECOVERY**2:
        why = "numbers wear, but the calls don't show how soon they recover"
        return _answering(attempts, fit, parameters, covariance, why)
    return _answering(attempts, worn, of_worn, of_both, "")


def _sign_of_wear(fit: _Fit, unworn: Floats) -> Floats | None:
    """Return initial parameters of fatigue, or None if it is not significant.

    `unworn` are the parameters without fatigue. The score test of each recovery gives the number of
    standard errors in favour of fatigue.
    """
    starts, signs = [], []
    nearly = -8.0  # so little fatigue that its score equals the score of none
    for recovery in np.log(_RECOVERIES):
        parameters = np.concatenate([unworn, [nearly, recovery]])
        model, score = AnsweringModel(fit.layout, parameters), 0.0
        information = np.diag(fit.precision)
        information[_WEAR, _WEAR] = 0.0
        for people in fit.people:
            _, scores = people.scores(model, parameters)
            score += float(scores[:, _WEAR].sum())
            information += scores.T @ scores
        others, shared = information[:_WEAR, :_WEAR], information[:_WEAR, _WEAR]
        known = information[_WEAR, _WEAR] - shared @ np.linalg.solve(others, shared)
        slope = score / known if known > 0.0 else 0.0
        starts.append((nearly + log(max(slope, 1.0)), recovery))
        signs.append(slope * np.sqrt(known) if known > 0.0 else 0.0)
    best = int(np.argmax(signs))
    strongest, way = signs[best], float(np.abs(np.diff(signs)).sum())
    # The recovery is only identified if there is fatigue: the maximum over recoveries is corrected
    # by its upcrossings (Davies 1987).
    by_chance = 0.5 * erfc(strongest / sqrt(2.0)) + way * exp(-0.5 * strongest**2) / sqrt(8.0 * pi)
    return np.array(starts[best]) if strongest > 0.0 and by_chance < _BY_CHANCE else None


def _answering(
    attempts: Attempts, fit: _Fit, parameters: Floats, covariance: Floats, no_wear: str
) -> Answering:
    """Return the estimate; `no_wear` is the reason for missing fatigue, "" with fatigue."""
    seen, layout = attempts[attempts.seen], fit.layout
    people = len(np.unique(attempts.person))
    no_answer, busy = ((seen.outcome == end).sum() for end in (NO_ANSWER, BUSY))
    ringing = no_answer / max(no_answer + busy, 1)  # among calls neither answered nor failed
    values = _figures(parameters, ringing)
    by_mixture = slopes(lambda at: _figures(at, ringing), parameters, _MIXTURE)
    known = covariance[:_MIXTURE, :_MIXTURE]
    variance = np.einsum("ij,jk,ik->i", by_mixture, known, by_mixture)
    # The split of calls that are neither answered nor failed has a binomial variance as well.
    split = ringing * (1.0 - ringing) / max(no_answer + busy, 1)
    variance[1:3] += (values[1] + values[2]) ** 2 * split
    errors = np.sqrt(variance)
    calls = len(seen)
    estimates = [
        PointEstimate(float(value), float(error), calls if index < 4 else people)
        for index, (value, error) in enumerate(zip(values, errors, strict=True))
    ]
    effects = layout.effects @ parameters[_MIXTURE:]
    spread = layout.effects @ covariance[_MIXTURE:, _MIXTURE:] @ layout.effects.T
    error = np.sqrt(np.maximum(np.diag(spread), 0.0))
    levels = layout.levels(seen)
    counts = np.bincount(levels[levels >= 0], minlength=layout.starts[-1])
    factors = [*map(Level, effects.tolist(), error.tolist(), counts.tolist())]
    own = np.sqrt(np.diag(covariance)[:_MIXTURE])
    again = len(np.unique(attempts.person[attempts.attempt > 1]))  # people, not calls
    narrow = own < _TOLD * _PRIOR_SD[:_MIXTURE]
    determined = {
        "reachable": narrow[_NEVERS] or errors[4] < _SURE,
        "deadNumbers": narrow[_DEADS] or errors[5] < _SURE,
        "concentration": narrow[_ALIKE],
    }
    wear = None
    if layout.dials is not None:
        slope, recovery = exp(parameters[_WEAR]), float(parameters[_RECOVERY])
        of_slope, of_recovery = np.sqrt(np.diag(covariance)[_WEAR:]).tolist()
        wear = Wear(
            Level(-slope, slope * of_slope, calls),
            Level(recovery, of_recovery, calls),
        )
    return Answering(
        **_named(layout, estimates, factors, attempts.segments, wear),
        determined=frozenset(
            name for name, is_narrow in determined.items() if is_narrow and again >= _FEW
        ),
        no_wear=no_wear,
        spread=dict(zip(("hour", "day", "attempt", "segment"), fit.spread.tolist(), strict=True)),
        model=AnsweringModel(layout, parameters),
        covariance=covariance,
    )


def _drawn(parameters: Floats, covariance: Floats, chance: np.random.Generator) -> Floats:
    """Draw parameters around the estimates."""
    # A log determines the shares of answers and failures better than the people behind both. So
    # these shares are drawn instead of the probability of reachable people and the share of
    # failures; otherwise a draw with more people who never answer would have fewer answers than the
    # log.
    by_parameter = np.eye(len(parameters))
    by_parameter[:, :_MIXTURE] = slopes(_seen, parameters, _MIXTURE)
    spread = by_parameter @ covariance @ by_parameter.T
    while True:
        drawn = chance.multivariate_normal(_seen(parameters), spread, method="eigh")
        answered, failed = 1.0 / (1.0 + np.exp(-drawn[[_CHANCE, _FAILING]]))
        shares = _Shares.of(drawn)
        mean = answered / shares.reachable
        failing = (failed - shares.dead) / max(1.0 - answered - shares.dead, 1e-9)
        if 0.0 < mean < 1.0 and 0.0 < failing < 1.0:  # otherwise no mixture has these shares
            drawn[[_CHANCE, _FAILING]] = np.log([mean, failing]) - np.log1p([-mean, -failing])
            return drawn


def _seen(parameters: Floats) -> Floats:
    """Return the parameters, two of them replaced by the log odds of answers and of failures."""
    answered, _, _, failed, *_ = _figures(parameters, 0.5).tolist()
    seen = parameters.copy()
    seen[[_CHANCE, _FAILING]] = log(answered / (1.0 - answered)), log(failed / (1.0 - failed))
    return seen


def _figures(parameters: Floats, ringing: float) -> Floats:
    """Return the four outcomes, then `reachable`, `deadNumbers` and `concentration`.

    `ringing` is the share of NO_ANSWER among calls that are neither answered nor failed.
    """
    shares = _Shares.of(parameters)
    answered = shares.reachable * shares.mean
    rest = 1.0 - answered - shares.dead
    working = rest * (1.0 - shares.failing)
    return np.array(
        [
            answered,
            working * ringing,
            working * (1.0 - ringing),
            shares.dead + rest * shares.failing,
            shares.reachable,
            shares.dead,
            shares.concentration,
        ]
    )
