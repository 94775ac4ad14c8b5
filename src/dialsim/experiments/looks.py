"""Looks: the numbers of runs after which a value is judged, and how sure each judgement may be.

A value is judged again and again as its runs come in, until its verdict is sure. Were each look as
sure as the whole is to be, some look would be wrong far more often. So the error is spent bit by
bit (Lan & DeMets 1983, "Discrete sequential boundaries for clinical trials", Biometrika 70): after
n of N runs, no more than the share √(n/N) of it (the power family of Kim & DeMets 1987, Biometrika
74, with ρ = 1/2, which spends early, where a verdict spares most runs). What a look may spend is
computed exactly, for a share that lies right at its bound: of all sequences of runs that no earlier
look has stopped, those that this look stops (Jennison & Turnbull 2000, "Group Sequential Methods
with Applications to Clinical Trials", section 12.1.3).

Runs are stopped, too, where those that are left will hardly tell: by the predictive probability
that the last look is sure (Spiegelhalter, Freedman & Blackburn 1986, "Monitoring clinical trials:
conditional or predictive power?", Controlled Clinical Trials 7). Nothing is called sure by that, so
no error grows (Lan, Simon & Halperin 1982, "Stochastically curtailed tests in long-term clinical
trials", Sequential Analysis 1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import ceil, sqrt
from typing import NamedTuple

import numpy as np

LEAST_TO_BE_SURE = 20
"""Of fewer runs no mean is sure: they tell too little of how a figure is spread."""
_GROWTH = 1.5
"""A value in doubt has so many times the runs at its next look."""
_TOSSES = 4000
"""By so many tosses of a coin the sum of all runs of a figure is approximated."""


class Tails(NamedTuple):
    """The probabilities with which a look may take the lower and the upper limit for wrong."""

    low: float
    high: float

    @property
    def confidence(self) -> float:
        """That of a symmetric interval which is never narrower."""
        return 1 - 2 * min(self)


@dataclass(frozen=True, slots=True)
class Looks:
    """The numbers of runs of the looks, ascending."""

    counts: tuple[int, ...]

    @classmethod
    def between(cls, first: int, most: int) -> Looks:
        """From the first look to the last; each has half as many runs again as the one before."""
        counts = [first]
        while counts[-1] < most:
            counts.append(min(most, ceil(counts[-1] * _GROWTH)))
        return cls(tuple(counts))

    def of_share(self, share: float, count: int, confidence: float) -> Tails:
        """The tails at the look of `count` runs that compares a share of runs with `share`.

        All looks together call a share that is at its bound greater, or smaller, with a probability
        of at most (1 − `confidence`) / 2 each.
        """
        place = self.counts.index(count)
        error = (1 - confidence) / 2
        return Tails(
            _nominal(self.counts, share, error)[place],
            _nominal(self.counts, 1 - share, error)[place],
        )

    def of_mean(self, count: int, confidence: float) -> Tails:
        """The tails at the look of `count` runs that compares a mean with its bound.

        They are those of a normal figure with known variance (the significance levels are then used
        with t: Jennison & Turnbull, section 4.4), whose sums are taken for those of coin tosses.
        """
        error = (1 - confidence) / 2
        known = tuple(each for each in self.counts if each >= LEAST_TO_BE_SURE)
        if count not in known:
            return Tails(error, error)
        tosses = max(1, _TOSSES // known[-1])
        nominal = _nominal(tuple(each * tosses for each in known), 0.5, error)
        return Tails(*2 * [nominal[known.index(count)]])

    def prospect_of_share(
        self, share: float, hits: int, count: int, confidence: float
    ) -> tuple[float, float]:
        """The probabilities that the last look calls a share greater than `share`, or smaller.

        `hits` of `count` runs are known; the share is taken for one drawn from a Beta distribution,
        of which nothing was known before (Jeffreys' prior).
        """
        from scipy import stats

        most = self.counts[-1]
        tails, all_hits = self.of_share(share, most, confidence), np.arange(most + 1)
        greater = stats.binom.sf(all_hits - 1, most, share) <= tails.low
        smaller = stats.binom.cdf(all_hits, most, share) <= tails.high
        more = stats.betabinom(most - count, hits + 0.5, count - hits + 0.5).pmf(all_hits - hits)
        return float(more[greater].sum()), float(more[smaller].sum())

    def prospect_of_mean(
        self, distance: float, half: float, count: int, confidence: float
    ) -> float:
        """The probability that the last look is sure on which side of its bound a mean lies.

        After `count` runs the interval reaches `half` to either side of the mean, and the bound is
        at a `distance`. Figures are taken for normal.
        """
        from scipy import stats

        most = self.counts[-1]
        now, last = (
            float(stats.norm.isf(self.of_mean(each, confidence).low)) for each in (count, most)
        )
        error = half / now
        needed, spread = last * error * sqrt(count / most), error * sqrt(1 - count / most)
        return float(stats.norm.sf([needed - distance, needed + distance], scale=spread).sum())

    def can_tell(self, share: float, confidence: float) -> bool:
        """Whether runs can tell that so great a share of them meets a bound, if all do."""
        return self.least(share, confidence) is not None

    def least(self, share: float, confidence: float) -> int | None:
        """The fewest runs that can tell that, None if the last look can't."""
        enough = (
            count
            for count in self.counts
            if share**count <= self.of_share(share, count, confidence).low
        )
        return next(enough, None)


@cache
def _nominal(counts: tuple[int, ...], share: float, error: float) -> tuple[float, ...]:
    """For each look the greatest probability of so many hits at which it stops.

    A look stops where so many hits or more have no greater probability, if hits have the
    probability `share`. Where none of its hits may stop it, the probability is what is left to
    spend, which is smaller than that of any.
    """
    return tuple(_tails(counts, share, error))


def _tails(counts: tuple[int, ...], share: float, error: float) -> Iterator[float]:
    from scipy import stats

    going_on, before, spent = np.ones(1), 0, 0.0  # by the number of hits, of those not stopped
    for count in counts:
        step = count - before
        going_on = np.convolve(going_on, stats.binom.pmf(np.arange(step + 1), step, share))
        left = error * sqrt(count / counts[-1]) - spent
        beyond = np.append(np.cumsum(going_on[::-1])[::-1], 0.0)  # P(k hits or more, not stopped)
        stop = int(np.argmax(beyond <= left))
        spent += float(beyond[stop])
        going_on[stop:] = 0.0
        yield max(left, float(stats.binom.sf(stop - 1, count, share)) if stop <= count else 0.0)
        before = count
