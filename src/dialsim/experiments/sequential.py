"""Runs that come in looks: a verdict is evaluated repeatedly, until it is certain.

A look is a number of runs after which a value is evaluated (`Looks`). If each look had
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

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from math import ceil, sqrt
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from dialsim.errors import ExperimentError
from dialsim.experiments.estimates import records
from dialsim.experiments.expression import Expression, read_expression
from dialsim.experiments.intervals import CONFIDENCE, Values
from dialsim.experiments.run_figures import earliest_start

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.replications import ExperimentRunner
    from dialsim.experiments.run_spec import RunSpec
    from dialsim.scenario.scenario import Scenario

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
        """Confidence of a symmetric interval that is at least as wide as both tails require."""
        return 1 - 2 * min(self)


@dataclass(frozen=True, slots=True)
class Looks:
    """Looks, given by their numbers of runs in ascending order."""

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

        If the share is exactly at its bound, all looks together call it greater with a probability
        of at most (1 − `confidence`) / 2, and smaller with the same limit.
        """
        index = self.counts.index(count)
        error = (1 - confidence) / 2
        return Tails(
            _nominal(self.counts, share, error)[index],
            _nominal(self.counts, 1 - share, error)[index],
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
        """Return True if runs that all meet a bound can prove that this share of runs does."""
        return self.least(share, confidence) is not None

    def least(self, share: float, confidence: float) -> int | None:
        """Return the fewest runs for which `can_tell` holds; None if no number of runs suffices."""
        enough = (
            count
            for count in self.counts
            if share**count <= self.of_share(share, count, confidence).low
        )
        return next(enough, None)


@cache
def _nominal(counts: tuple[int, ...], share: float, error: float) -> tuple[float, ...]:
    """Return the significance level of each look, given the hit probability `share`.

    A look stops at a number of hits if that number or more is at most as probable as its level. If
    no number may stop the look, its level is the error left to spend, which is smaller than the
    probability of any such number.
    """
    return tuple(_tails(counts, share, error))


def _tails(counts: tuple[int, ...], share: float, error: float) -> Iterator[float]:
    from scipy import stats

    # Probability of each number of hits without an earlier stop.
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


Verdict = Literal["more", "less", "alike", "open"]

INDIFFERENCE = 0.005
"""Default maximum relative difference between equivalent runs."""
_FIRST_LOOK = 8
"""Runs at the first look, as in a plan: enough to stop early if all pairs agree."""
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class Decision:
    """Verdict on a variant against the baseline, and its number of runs.

    Of the pairs of runs, the deciding figure is greater than the baseline's in `more`, smaller in
    `less`, and within the indifference in `alike`, which overlaps with both. The verdict names the
    relation that certainly holds in more than half of all pairs, or is `open`.
    """

    variant: str
    verdict: Verdict
    runs: int
    more: int
    less: int
    alike: int


@dataclass(frozen=True, slots=True)
class Decided:
    """Decisions of a sweep, in its order, with the deciding figure and the baseline.

    A pair is alike if its difference is at most the share `indifference` of the baseline's figure;
    for an instant, of the time since the earliest startAt. No variant has more than `most` runs.
    All verdicts together are true with the given `confidence`.
    """

    figure: Expression
    indifference: float
    baseline: str
    most: int
    confidence: float
    decisions: tuple[Decision, ...]

    def runs(self, variant: str) -> int:
        """Return the number of runs of a variant; the baseline has the maximum."""
        known = {part.variant: part.runs for part in self.decisions}
        return known.get(variant, max(known.values()))

    def to_dict(self) -> dict[str, object]:
        """Return JSON values."""
        return asdict(self) | {"figure": self.figure.text, "decisions": records(self.frame)}

    @property
    def frame(self) -> pd.DataFrame:
        """Table with a row per decision."""
        import pandas as pd

        return pd.DataFrame([asdict(part) for part in self.decisions])


class Deciding:
    """Sequential comparison of variants with the baseline, with no more runs than needed.

    A variant gets no more runs once it certainly differs from the baseline in the deciding figure,
    or certainly does not. The claims are about pairs of runs: the figure is greater in more than
    half of them, or smaller, or within the indifference. Each claim concerns a share of pairs, and
    is evaluated by `Looks` as in a plan. That requires no assumption about the distribution of
    differences; a mean may depend on rare pairs that few runs do not show. The error is divided
    evenly among claims and variants (Bonferroni), so that all verdicts of a sweep are true with
    95 % confidence.
    """

    def __init__(
        self,
        figure: str,
        indifference: float,
        names: Sequence[str],
        baseline: str,
        most: int,
        scenarios: Sequence[Scenario],
    ) -> None:
        """`names` are the names of all variants, each with at most `most` runs.

        Raises ExperimentError for a figure that a scenario lacks, an indifference that is no share,
        and too few runs for any decision.
        """
        # Parsed for every scenario: one of several files may lack the campaign that the figure
        # names.
        (self._figure, *_) = [read_expression(figure, scenario) for scenario in scenarios]
        if not 0 <= indifference < 1:
            raise ExperimentError(f"the indifference is a share such as 0.01, not {indifference}")
        self._indifference = indifference
        self.names = names
        self._baseline = baseline
        if len(names) < 2:
            raise ExperimentError("a sweep that decides needs two variants or more")
        self._most = most
        self._looks = _looks(most)
        # Each variant may turn out more, less or alike: three claims, and none may be wrong.
        claims = 3 * (len(names) - 1)
        # Only one tail of each claim counts.
        self._level = 1 - 2 * (1 - CONFIDENCE) / claims
        if not self._looks.can_tell(_HALF, self._level):
            enough = next(n for n in range(most, 1000) if _looks(n).can_tell(_HALF, self._level))
            raise ExperimentError(
                f"{most} replications are too few to distinguish {len(names)} variants: "
                f"{enough} or more are enough"
            )

    def replicate(self, runner: ExperimentRunner, specs: Sequence[RunSpec]) -> Decided:
        """Run the specs, one per variant, until all is decided or no runs are left."""
        by_name = dict(zip(self.names, specs, strict=True))
        base = by_name.pop(self._baseline)
        still_open, made, decisions = [*by_name], 0, {}
        for count in self._looks.counts:
            # An upper bound for the progress bar, as decided variants drop out.
            runner.ahead = (len(still_open) + 1) * (self._most - made)
            runner.replicate([base, *(by_name[name] for name in still_open)], count)
            made, start = count, earliest_start(base.first(count))
            theirs = self._figure.in_tables(base.first(count), start)
            for name in still_open:
                ours = self._figure.in_tables(by_name[name].first(count), start)
                decisions[name] = self._decision(name, ours, theirs)
            still_open = [name for name in still_open if decisions[name].verdict == "open"]
            if not still_open:
                break
        return Decided(
            self._figure,
            self._indifference,
            self._baseline,
            self._most,
            CONFIDENCE,
            tuple(decisions[name] for name in by_name),
        )

    def _decision(self, name: str, ours: Values, theirs: Values) -> Decision:
        from scipy import stats

        count = len(theirs)
        more, less = int((ours > theirs).sum()), int((ours < theirs).sum())
        alike = self._alike(ours, theirs)
        hits: dict[Verdict, int] = {"more": more, "less": less, "alike": alike}
        # The sign test: with equal variants each pair is more or less with probability 1/2,
        # whatever the distribution.
        tail = self._looks.of_share(_HALF, count, self._level).low
        sure = (each for each in hits if stats.binom.sf(hits[each] - 1, count, _HALF) <= tail)
        return Decision(name, next(sure, "open"), count, more, less, alike)

    def _alike(self, ours: Values, theirs: Values) -> int:
        """Return the number of equivalent pairs, pairs without any finish included."""
        with np.errstate(invalid="ignore"):
            within = np.abs(ours - theirs) <= self._indifference * np.abs(theirs)
        # Equality covers infinities: two runs that never finish are alike, though their difference
        # is NaN.
        return int(((ours == theirs) | (within & np.isfinite(theirs))).sum())


def _looks(most: int) -> Looks:
    return Looks.between(min(_FIRST_LOOK, most), most)
