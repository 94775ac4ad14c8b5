"""Goals: `p95(finish) <= 2026-01-09T12:00:00Z and mean(cost) <= 5000`, and whether runs meet them.

A goal is one clause or several joined by `and`. A clause compares a statistic with a bound:
`mean(FIGURE)`, a quantile such as `p95(FIGURE)`, or `prob(FIGURE <= BOUND)`; the comparison is one
of `<=`, `<`, `>=`, `>`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from dialsim.experiments.axis import Amount, Kind, read_amount
from dialsim.experiments.failures import ExperimentError
from dialsim.experiments.figure_name import FigureName, read_figure
from dialsim.experiments.figure_table import earliest_start

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dialsim.experiments.run_figures import RunFigures
    from dialsim.scenario.models import Scenario

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_SIGN = r"(<=|>=|<|>)"
_CLAUSE = re.compile(rf"(mean|prob|p[0-9]+(?:\.[0-9]+)?)\s*\((.*)\)\s*{_SIGN}\s*([^<>=()]+)")
_EVENT = re.compile(rf"(.+?)\s*{_SIGN}\s*([^<>=()]+)")
_AND = re.compile(r"\s+and\s+(?=(?:mean|prob|p[0-9.]+)\s*\()", re.IGNORECASE)


class Statistic(StrEnum):
    """What a clause asks of a figure's distribution."""

    MEAN = "mean"
    QUANTILE = "quantile"
    PROBABILITY = "probability"


@dataclass(frozen=True, slots=True)
class Bound:
    """`sign value`, in the figure's unit.

    Of an instant that is ms since 1970, or after the earliest startAt if `after_start`.
    """

    sign: str
    value: float
    after_start: bool = False

    @property
    def upper(self) -> bool:
        """Whether smaller is better."""
        return self.sign.startswith("<")

    def holds(self, value: float) -> bool:
        """Whether a value is within the bound; NaN never is."""
        return bool(_COMPARISONS[self.sign](value, self.value))


@dataclass(frozen=True, slots=True)
class Clause:
    """A statistic of a figure and its bound.

    `share` is that of a quantile (0.95 for p95), or the bound of a probability; `bound` is always
    that of the figure. `wanted` is the sign with which a probability is compared with `share`.
    """

    text: str
    statistic: Statistic
    figure: FigureName
    bound: Bound
    share: float = 1.0
    wanted: str = ">="

    @property
    def sign(self) -> str:
        """The sign with which the statistic is compared."""
        return self.wanted if self.statistic is Statistic.PROBABILITY else self.bound.sign

    @property
    def is_instant(self) -> bool:
        """Whether the statistic is an instant, or a time after the start."""
        return self.figure.is_instant and self.statistic is not Statistic.PROBABILITY

    @property
    def asked(self) -> str:
        """The statistic as it was written, without sign and bound: `p95(finish)`."""
        return self.text.rpartition(self.sign)[0].strip()

    @property
    def trap(self) -> str | None:
        """What a quantile says that is bounded on its thin side, which is seldom what is meant.

        `p95(people_reached) >= 183` asks it of one run in twenty, and not of nineteen.
        """
        thin = 1 - self.share if self.share > 0.5 else self.share
        thick = (self.share > 0.5) is self.bound.upper or self.share == 0.5
        if self.statistic is not Statistic.QUANTILE or thick:
            return None
        inside = self.text.partition("(")[2].rpartition(")")[0].strip()
        bound = self.text.rpartition(self.sign)[2].strip()
        return (
            f"{self.text} asks that only {100 * thin:.4g} % of the runs have {inside} {self.sign} "
            f"{bound}; if {100 - 100 * thin:.4g} % of them are to have it, write "
            f"p{100 - 100 * self.share:.4g}({inside}) {self.sign} {bound}, or "
            f"prob({inside} {self.sign} {bound}) >= {100 - 100 * thin:.4g} %"
        )

    @property
    def smaller_is_better(self) -> bool:
        """Whether a smaller figure brings the clause closer to being met."""
        if self.statistic is Statistic.PROBABILITY:
            return self.bound.upper is self.wanted.startswith(">")
        return self.bound.upper

    @property
    def share_to_tell(self) -> float:
        """The share of runs that must be told from all of them; 0 for a mean, which has none."""
        if self.statistic is Statistic.MEAN or self.share in (0, 1):
            return 0.0
        return max(self.share, 1 - self.share)

    def values(self, runs: Sequence[RunFigures]) -> NDArray[np.float64]:
        """The figure in each run, in the unit of the bound."""
        values = self.figure.of(runs)
        return values - (earliest_start(runs) or 0) if self.bound.after_start else values


@dataclass(frozen=True, slots=True)
class Goal:
    """Clauses all of which are to hold."""

    text: str
    clauses: tuple[Clause, ...]


def read_goal(text: str, scenario: Scenario) -> Goal:
    """Read a goal over figures of a scenario. Raises ExperimentError that says what is wrong."""
    parts = [part.strip() for part in _AND.split(text.strip())]
    return Goal(text.strip(), tuple(_clause(part, scenario) for part in parts))


def _clause(text: str, scenario: Scenario) -> Clause:
    match = _CLAUSE.fullmatch(text)
    if match is None:
        _refuse_clause(text)
    name, inner, sign, bound = match.groups()
    if name == "prob":
        return _probability(text, inner, sign, bound.strip(), scenario)
    figure = read_figure(inner, scenario)
    if name == "mean":
        return Clause(text, Statistic.MEAN, figure, _bound(figure, sign, bound, text))
    share = float(name[1:]) / 100
    if not 0 < share < 1:
        _refuse(text, f"{name} is no quantile: write p1 to p99, such as p95(finish)")
    return Clause(text, Statistic.QUANTILE, figure, _bound(figure, sign, bound, text), share)


def _probability(text: str, inner: str, sign: str, share: str, scenario: Scenario) -> Clause:
    match = _EVENT.fullmatch(inner.strip())
    if match is None:
        _refuse(text, "write a comparison into prob(…), such as prob(finish <= 5d) >= 0.95")
    name, event_sign, event_bound = match.groups()
    figure = read_figure(name, scenario)
    bound = _bound(figure, event_sign, event_bound, text)
    wanted = _share(share)
    if wanted is None or not 0 <= wanted <= 1:
        _refuse(text, f"{share} is no probability: write 0.95 or 95 %")
    return Clause(text, Statistic.PROBABILITY, figure, bound, wanted, sign)


def _share(text: str) -> float | None:
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*(%?)", text)
    return None if match is None else float(match[1]) / (100 if match[2] else 1)


def _bound(figure: FigureName, sign: str, text: str, clause: str) -> Bound:
    """The bound of a figure, in its unit."""
    text = text.strip()
    if figure.name.endswith("_share") and text.endswith("%"):
        share = _share(text)
        if share is not None:
            return Bound(sign, share)
    try:
        amount = read_amount(text)
    except ExperimentError as error:
        _refuse(clause, str(error))
    after_start = amount.kind is Kind.DURATION and figure.is_instant
    return Bound(sign, _in_unit(figure, amount, clause), after_start)


def _in_unit(figure: FigureName, amount: Amount, clause: str) -> float:
    value = float(amount.value)
    number = amount.kind in (Kind.WHOLE, Kind.DECIMAL)
    if figure.is_instant:
        if number:
            _refuse(clause, f"{figure.name} is compared with an instant, such as "
                            "2026-01-09T12:00:00Z, or a time after the earliest start, "
                            "such as 5d")  # fmt: skip
        return value
    if amount.kind is Kind.DURATION and figure.name.endswith("_seconds"):
        return value / 1000
    if amount.kind is Kind.DURATION and figure.name.endswith("_minutes"):
        return value / 60_000
    if not number:
        _refuse(clause, f"{figure.text} is compared with a number, not with {amount.text}")
    return value


def _refuse_clause(text: str) -> NoReturn:
    bare = _EVENT.fullmatch(text)
    if bare is not None and "(" not in bare[1]:
        name, sign, bound = bare.groups()
        _refuse(
            text,
            f"say of many runs, mean({name}) {sign} {bound}, p95({name}) {sign} {bound} or "
            f"prob({name} {sign} {bound}) >= 0.95",
        )
    _refuse(
        text,
        "write a statistic, a comparison and a bound, such as p95(finish) <= 2026-01-09T12:00:00Z, "
        "mean(cost) <= 5000 or prob(January.finish <= 5d) >= 0.95, joined by and",
    )


def _refuse(clause: str, says: str) -> NoReturn:
    raise ExperimentError(f"goal {clause or '(nothing)'}: {says}")
