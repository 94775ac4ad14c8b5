"""Evidence: what the runs of one value say about a goal, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite, isnan
from typing import TYPE_CHECKING

import numpy as np

from dialsim.experiments.figure_name import FigureName
from dialsim.experiments.figure_table import earliest_start
from dialsim.experiments.goal import Clause, Goal, Statistic
from dialsim.experiments.intervals import (
    Interval,
    Nature,
    mean_interval,
    quantile_interval,
    rank,
    share_interval,
)
from dialsim.experiments.prior import UNKNOWN, Prior
from dialsim.interface.instants import format_instant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dialsim.experiments.run_figures import RunFigures

LEAST_TO_BE_SURE = 20
"""Of fewer runs no mean is sure: they tell too little of how a figure is spread."""

Plain = float | int | str | None


@dataclass(frozen=True, slots=True)
class Finding:
    """What the runs say of one clause.

    `estimate`, `low` and `high` are the statistic and its interval, in the figure's unit; `hits`
    are the runs within the figure's bound, for quantiles and probabilities. `margin` is how far
    within its bound the estimate is, relative to the bound; negative where it is beyond. `sure`
    says that the interval doesn't straddle the bound. `enough` is that of the interval.
    """

    clause: Clause
    met: bool
    sure: bool
    estimate: float
    low: float
    high: float
    hits: int | None
    margin: float
    enough: int | None = None

    def to_dict(self) -> dict[str, Plain | bool]:
        """As JSON has it; instants are text, and what is not finite is null."""
        values = {"estimate": self.estimate, "low": self.low, "high": self.high}
        instant = self.clause.is_instant
        plain = {
            name: _instant(value, self.clause.bound.after_start) if instant else _number(value)
            for name, value in values.items()
        }
        return {"clause": self.clause.text, "met": self.met, "sure": self.sure, **plain} | (
            {} if self.hits is None else {"hits": self.hits}
        )


def _instant(value: float, after_start: bool) -> Plain:
    if not isfinite(value):
        return None
    return value / 1000 if after_start else format_instant(round(value))


def _number(value: float) -> Plain:
    return value if isfinite(value) else None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What runs say of a goal; `value` is what they have in common, a value or a name.

    `cost` is the mean cost, None without costs; `runs` are the runs themselves, and `prior` what
    was known before them.
    """

    value: int | float | str
    met: bool
    sure: bool
    replications: int
    findings: tuple[Finding, ...]
    cost: float | None
    runs: tuple[RunFigures, ...] = field(default=(), repr=False)
    prior: Prior = UNKNOWN

    @property
    def reach_share(self) -> float | None:
        """The mean share of people reached, of the organization or campaign that the goal is about.

        None without runs, or without people.
        """
        return self._mean("reach_share")

    @property
    def people_lost(self) -> float | None:
        """How many people of it were lost on average; None without runs."""
        return self._mean("people_lost")

    def _mean(self, figure: str) -> float | None:
        places = {(f.clause.figure.organization, f.clause.figure.campaign) for f in self.findings}
        place = places.pop() if len(places) == 1 else (None, None)
        values = FigureName(figure, figure, *place).of(self.runs)
        known = values[~np.isnan(values)]
        return float(known.mean()) if len(known) else None

    @property
    def shortfall(self) -> tuple[float, float]:
        """How far from meeting the goal, to compare values by; smaller is closer."""
        missed = [finding for finding in self.findings if not finding.met]
        hits = sum(finding.hits or 0 for finding in missed)
        return max((-finding.margin for finding in missed), default=0.0), -hits

    def to_dict(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            "value": self.value,
            "met": self.met,
            "sure": self.sure,
            "replications": self.replications,
            "findings": [finding.to_dict() for finding in self.findings],
            "cost_mean": self.cost,
            "reach_share_mean": self.reach_share,
            "people_lost_mean": self.people_lost,
        }


def weigh(
    value: int | float | str,
    goal: Goal,
    runs: Sequence[RunFigures],
    confidence: float,
    prior: Prior = UNKNOWN,
) -> Evidence:
    """Judge a goal by runs of a scenario, of which `prior` was known before.

    It is sure that the goal is met if that is sure of every clause, which is wrong no more often
    than the one clause that is missed. It is sure that it is missed if that is sure of any, so that
    clauses share the risk (Bonferroni). `confidence` is that of the whole.
    """
    each = 1 - (1 - confidence) / len(goal.clauses)
    findings = tuple(_clause_finding(clause, runs, (confidence, each), prior)
                     for clause in goal.clauses)  # fmt: skip
    met = all(finding.met for finding in findings)
    missed = [finding for finding in findings if not finding.met]
    sure = all(f.sure for f in findings) if met else any(f.sure for f in missed)
    return Evidence(value, met, sure, len(runs), findings, _cost(runs), tuple(runs), prior)


def _clause_finding(
    clause: Clause, runs: Sequence[RunFigures], levels: tuple[float, float], prior: Prior
) -> Finding:
    """A finding that is sure at the first level if it is met, at the second if it is missed."""
    finding = _finding(clause, runs, levels[0], prior)
    if finding.met or not finding.sure or levels[0] == levels[1]:
        return finding
    return replace(finding, sure=_finding(clause, runs, levels[1], prior).sure)


def _cost(runs: Sequence[RunFigures]) -> float | None:
    costs = np.array([run.scopes[0].values["cost"] for run in runs], dtype=np.float64)
    return None if np.isnan(costs).any() else float(costs.mean())


def _finding(
    clause: Clause, runs: Sequence[RunFigures], confidence: float, prior: Prior
) -> Finding:
    values = clause.values(runs)
    nature = Nature.of(clause.figure.column, prior)
    if clause.statistic is Statistic.MEAN:
        origin = 0.0 if clause.bound.after_start or not clause.is_instant else _start(runs)
        found = _mean(clause, values, origin, confidence, nature)
    elif clause.statistic is Statistic.QUANTILE:
        found = _quantile(clause, values, confidence, nature.certain)
    else:
        found = _probability(clause, values, confidence, nature.certain)
    met, sure, interval, hits, bound = found
    margin = _margin(interval.estimate, bound, clause, runs)
    ends = interval.estimate, interval.low, interval.high
    return Finding(clause, met, sure, *ends, hits, margin, interval.enough)


_Found = tuple[bool, bool, Interval, int | None, float]


def _mean(
    clause: Clause,
    values: NDArray[np.float64],
    origin: float,
    confidence: float,
    nature: Nature,
) -> _Found:
    """Of an instant, the interval is that of the time since `origin`."""
    known = values[~np.isnan(values)]
    if clause.is_instant:
        nature = replace(nature, spill=1000 * nature.spill)
    interval = mean_interval(known - origin, confidence, nature)
    interval = replace(
        interval,
        estimate=interval.estimate + origin,
        low=interval.low + origin,
        high=interval.high + origin,
    )
    bound = clause.bound
    met = bound.holds(interval.estimate)
    if not isfinite(interval.estimate):
        return met, True, interval, None, bound.value  # more runs can't make it finite
    enough = nature.certain or len(known) >= LEAST_TO_BE_SURE
    within = bound.holds(interval.low) == bound.holds(interval.high) and not isnan(interval.low)
    return met, enough and within, interval, None, bound.value


def _quantile(
    clause: Clause, values: NDArray[np.float64], confidence: float, certain: bool
) -> _Found:
    """x₍ᵣ₎ ≤ T for r = ⌈n·share⌉ says that r runs or more are ≤ T: a matter of a share."""
    count, share = len(values), clause.share
    hits = sum(clause.bound.holds(value) for value in values)
    late = np.where(np.isnan(values), inf if clause.bound.upper else -inf, values)
    interval = quantile_interval(late, share, confidence, certain)
    # of a lower bound, the runs below it must be fewer than the quantile's rank
    needed = rank(count, share) if clause.bound.upper else count - rank(count, share) + 1
    within = share_interval(hits, count, confidence, certain)
    least = share if clause.bound.upper else 1 - share
    sure = within.low >= least or within.high < least
    return hits >= needed, sure, interval, hits, clause.bound.value


def _probability(
    clause: Clause, values: NDArray[np.float64], confidence: float, certain: bool
) -> _Found:
    hits = sum(clause.bound.holds(value) for value in values)
    interval = share_interval(hits, len(values), confidence, certain)
    wanted = type(clause.bound)(clause.wanted, clause.share)
    sure = wanted.holds(interval.low) == wanted.holds(interval.high)
    return wanted.holds(interval.estimate), sure, interval, hits, clause.share


def _start(runs: Sequence[RunFigures]) -> float:
    return float(earliest_start(runs) or 0)


def _margin(estimate: float, bound: float, clause: Clause, runs: Sequence[RunFigures]) -> float:
    if isnan(estimate):
        return -inf
    origin = 0.0
    if clause.is_instant:
        origin = 0.0 if clause.bound.after_start else _start(runs)
    within = bound - estimate if clause.sign.startswith("<") else estimate - bound
    return within / (abs(bound - origin) or 1.0)
