"""Evidence: what the runs of one value say about a goal, and how sure that is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isfinite, isnan
from typing import TYPE_CHECKING

import numpy as np

from dialsim.experiments.figure_table import earliest_start
from dialsim.experiments.goal import Clause, Goal, Statistic
from dialsim.experiments.intervals import (
    Interval,
    mean_interval,
    quantile_interval,
    rank,
    share_interval,
)
from dialsim.interface.instants import format_instant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dialsim.experiments.run_figures import RunFigures

Plain = float | int | str | None


@dataclass(frozen=True, slots=True)
class Finding:
    """What the runs say of one clause.

    `estimate`, `low` and `high` are the statistic and its interval, in the figure's unit; `hits`
    are the runs within the figure's bound, for quantiles and probabilities. `margin` is how far
    within its bound the estimate is, relative to the bound; negative where it is beyond. `sure`
    says that the interval doesn't straddle the bound.
    """

    clause: Clause
    met: bool
    sure: bool
    estimate: float
    low: float
    high: float
    hits: int | None
    margin: float

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

    `cost` is the mean cost, None without costs; `runs` are the runs themselves.
    """

    value: int | float | str
    met: bool
    sure: bool
    replications: int
    findings: tuple[Finding, ...]
    cost: float | None
    runs: tuple[RunFigures, ...] = field(default=(), repr=False)

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
        }


def weigh(
    value: int | float | str, goal: Goal, runs: Sequence[RunFigures], confidence: float
) -> Evidence:
    """Judge a goal by runs; `confidence` is that of the intervals that decide whether it is sure.

    Runs that are alike in every figure leave no doubt: there is no chance in such a scenario.
    """
    alike = len(runs) > 1 and len({json.dumps([s.values for s in run.scopes]) for run in runs}) == 1
    findings = tuple(_finding(clause, runs, confidence, alike) for clause in goal.clauses)
    met = all(finding.met for finding in findings)
    missed = [finding for finding in findings if not finding.met]
    sure = all(f.sure for f in findings) if met else any(f.sure for f in missed)
    return Evidence(value, met, sure, len(runs), findings, _cost(runs), tuple(runs))


def _cost(runs: Sequence[RunFigures]) -> float | None:
    costs = np.array([run.scopes[0].values["cost"] for run in runs], dtype=np.float64)
    return None if np.isnan(costs).any() else float(costs.mean())


def _finding(clause: Clause, runs: Sequence[RunFigures], confidence: float, alike: bool) -> Finding:
    values = clause.values(runs)
    if clause.statistic is Statistic.MEAN:
        found = _mean(clause, values, confidence)
    elif clause.statistic is Statistic.QUANTILE:
        found = _quantile(clause, values, confidence)
    else:
        found = _probability(clause, values, confidence)
    met, sure, interval, hits, bound = found
    margin = _margin(interval.estimate, bound, clause, runs)
    return Finding(
        clause, met, sure or alike, interval.estimate, interval.low, interval.high, hits, margin
    )


_Found = tuple[bool, bool, Interval, int | None, float]


def _mean(clause: Clause, values: NDArray[np.float64], confidence: float) -> _Found:
    interval = mean_interval(values[~np.isnan(values)], confidence)
    bound = clause.bound
    met = bound.holds(interval.estimate)
    if not isfinite(interval.estimate):
        return met, True, interval, None, bound.value  # more runs can't make it finite
    sure = bound.holds(interval.low) == bound.holds(interval.high) and not isnan(interval.low)
    return met, sure, interval, None, bound.value


def _quantile(clause: Clause, values: NDArray[np.float64], confidence: float) -> _Found:
    """x₍ᵣ₎ ≤ T for r = ⌈n·share⌉ says that r runs or more are ≤ T: a matter of a share."""
    count, share = len(values), clause.share
    hits = sum(clause.bound.holds(value) for value in values)
    late = np.where(np.isnan(values), inf if clause.bound.upper else -inf, values)
    interval = quantile_interval(late, share, confidence)
    # of a lower bound, the runs below it must be fewer than the quantile's rank
    needed = rank(count, share) if clause.bound.upper else count - rank(count, share) + 1
    within = share_interval(hits, count, confidence)
    least = share if clause.bound.upper else 1 - share
    return (
        hits >= needed,
        within.low >= least or within.high < least,
        interval,
        hits,
        (clause.bound.value),
    )


def _probability(clause: Clause, values: NDArray[np.float64], confidence: float) -> _Found:
    hits = sum(clause.bound.holds(value) for value in values)
    interval = share_interval(hits, len(values), confidence)
    wanted = type(clause.bound)(clause.wanted, clause.share)
    sure = wanted.holds(interval.low) == wanted.holds(interval.high)
    return wanted.holds(interval.estimate), sure, interval, hits, clause.share


def _margin(estimate: float, bound: float, clause: Clause, runs: Sequence[RunFigures]) -> float:
    if isnan(estimate):
        return -inf
    origin = 0.0
    if clause.is_instant:
        origin = 0.0 if clause.bound.after_start else float(earliest_start(runs) or 0)
    within = bound - estimate if clause.sign.startswith("<") else estimate - bound
    return within / (abs(bound - origin) or 1.0)
