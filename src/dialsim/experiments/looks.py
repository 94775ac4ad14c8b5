"""Looks: the numbers of runs after which a value is evaluated, and the confidence of each
evaluation.

A value is evaluated repeatedly as its runs come in, until the verdict is certain. If each look had
the confidence of the whole, some look would be wrong far too often. So the error is spent gradually
(Lan & DeMets 1983, "Discrete sequential boundaries for clinical trials", Biometrika 70): after n of
N runs, at most the share √(n/N) of it (the power family of Kim & DeMets 1987, Biometrika 74, with ρ
= 1/2, which spends early, where a verdict saves most runs). The error of a look is computed
exactly, for a share exactly at its bound: the probability of run sequences that this look stops and
no earlier one (Jennison & Turnbull 2000, "Group Sequential Methods with Applications to Clinical
Trials", section 12.1.3).

Runs also stop if the remaining ones are unlikely to decide: by the predictive probability that the
last look is certain (Spiegelhalter, Freedman & Blackburn 1986, "Monitoring clinical trials:
conditional or predictive power?", Controlled Clinical Trials 7). That declares nothing certain, so
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
"""Fewest runs for certainty about a mean, because the spread is unknown before."""
_GROWTH = 1.5
"""Growth of the number of runs from one look to the next."""
_TOSSES = 4000
"""Number of coin tosses that approximates the sum of all runs of a figure."""


class Tails(NamedTuple):
    """Error probabilities of the lower and the upper limit at a look."""

    low: float
    high: float

    @property
    def confidence(self) -> float:
        """Confidence of the symmetric interval that is never narrower."""
        return 1 - 2 * min(self)


@dataclass(frozen=True, slots=True)
class Looks:
    """Numbers of runs of the looks, ascending."""

    counts: tuple[int, ...]

    @classmethod
    def between(cls, first: int, most: int) -> Looks:
        """Return looks from `first` to `most`, each with half as many runs again as the one
        before.
        """
        counts = [first]
        while counts[-1] < most:
            counts.append(min(most, ceil(counts[-1] * _GROWTH)))
        return cls(tuple(counts))

    def of_share(self, share: float, count: int, confidence: float) -> Tails:
        """Return the tails at the look of `count` runs that compares a share of runs with `share`.

        All looks together call a share at its bound greater, or smaller, with a probability of at
        most (1 − `confidence`) / 2 each.
        """
        place = self.counts.index(count)
        error = (1 - confidence) / 2
        return Tails(
            _nominal(self.counts, share, error)[place],
            _nominal(self.counts, 1 - share, error)[place],
        )

    def of_mean(self, count: int, confidence: float) -> Tails:
        """Return the tails of the comparison of a mean with its bound, at the look of `count` runs.

        They hold for a normal figure with known variance (the significance levels are then used
        with t: Jennison & Turnbull, section 4.4), whose sums are approximated by sums of coin
        tosses.
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
        """Return the probabilities that the last look calls a share greater, or smaller, than
        `share`.

        `hits` of `count` runs are known. The share has a Beta distribution with Jeffreys' prior.
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
        """Return the probability that the last look is certain about the side of its bound for a
        mean.

        After `count` runs the interval reaches `half` to either side of the mean, and the bound is
        at a `distance`. Figures are treated as normal.
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
        """Return True if the runs can prove that a share this large meets a bound, if all of
        them do.
        """
        return self.least(share, confidence) is not None

    def least(self, share: float, confidence: float) -> int | None:
        """Return the fewest runs that can prove that; None if the last look cannot."""
        enough = (
            count
            for count in self.counts
            if share**count <= self.of_share(share, count, confidence).low
        )
        return next(enough, None)


@cache
def _nominal(counts: tuple[int, ...], share: float, error: float) -> tuple[float, ...]:
    """Return, per look, the greatest probability of a number of hits at which it stops.

    A look stops at a number of hits if this number or more is at most that probable, given the hit
    probability `share`. If no number may stop it, the result is the error left to spend, which is
    smaller than any of these probabilities.
    """
    return tuple(_tails(counts, share, error))


def _tails(counts: tuple[int, ...], share: float, error: float) -> Iterator[float]:
    from scipy import stats

    # Probabilities of the number of hits, of runs that are not stopped.
    going_on, before, spent = np.ones(1), 0, 0.0
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
