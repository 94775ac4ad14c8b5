"""Goals, such as `p95(finish) <= 2026-01-09T12:00:00Z and mean(cost) <= 5000`, evaluated by runs.

A goal is one clause or several joined by `and`. A clause compares a statistic with a bound:
`mean(FIGURE)`, a quantile such as `p95(FIGURE)`, or `prob(FIGURE <= BOUND)`; the comparison is one
of `<=`, `<`, `>=`, `>`. The result for a set of runs is whether they meet the goal, and whether
that is certain.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf, isfinite, isnan, nan, prod, sqrt
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from dialsim.errors import ExperimentError
from dialsim.experiments.estimates import RuleBreach, finite, instant_text
from dialsim.experiments.expression import Expression, pointed, read_expression
from dialsim.experiments.intervals import (
    Interval,
    Known,
    mean_interval,
    quantile_interval,
    rank,
    share_interval,
)
from dialsim.experiments.known_bounds import UNKNOWN, WHOLE, KnownBounds, Place, campaigns_at
from dialsim.experiments.named_figures import COST, FigureName, chance_after, expected_mean
from dialsim.experiments.run_figures import earliest_start
from dialsim.experiments.sequential import LEAST_TO_BE_SURE, Looks, Tails
from dialsim.experiments.variants import Amount, AmountKind, read_amount
from dialsim.interface.instants import WEEK, minute_text, thai
from dialsim.results.figures import COST_PARTS, Unit, cost_parts
from dialsim.scenario.units import has_offset

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from dialsim.experiments.run_figures import RunFigures
    from dialsim.scenario.scenario import Scenario


_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_SIGN = r"(<=|>=|<|>)"
_CLAUSE = re.compile(rf"(mean|prob|p[0-9]+(?:\.[0-9]+)?)\s*\((.*)\)\s*{_SIGN}\s*([^<>=()]+)")
_EVENT = re.compile(rf"(.+?)\s*{_SIGN}\s*([^<>=()]+)")
# Only an `and` before a statistic separates clauses: names of campaigns and agents may contain the
# word.
_AND = re.compile(r"\s+and\s+(?=(?:mean|prob|p[0-9.]+)\s*\()", re.IGNORECASE)


_OF_TOLERANCE = 0.01
"""Part of the error that the tolerance limit of a distant deadline may use."""


class Statistic(StrEnum):
    """Statistic of a figure's distribution in a clause."""

    MEAN = "mean"
    QUANTILE = "quantile"
    PROBABILITY = "probability"


@dataclass(frozen=True, slots=True)
class Bound:
    """`sign value`, in the figure's unit.

    For an instant the value is ms since 1970, or after the earliest startAt with `after_start`.
    `words` is its notation in words, such as `Fri 18:00`, if any.
    """

    sign: str
    value: float
    after_start: bool = False
    words: str = ""

    @property
    def upper(self) -> bool:
        """True if smaller is better."""
        return self.sign.startswith("<")

    def holds(self, value: float) -> bool:
        """Return True if a value is within the bound; NaN never is."""
        return bool(_COMPARISONS[self.sign](value, self.value))


@dataclass(frozen=True, slots=True)
class Clause:
    """A statistic of an expression of figures, and its bound.

    `share` is the level of a quantile (0.95 for p95), or the bound of a probability. `bound` is
    always the bound of the figure. `wanted` is the sign that compares a probability with `share`.
    """

    text: str
    statistic: Statistic
    figure: Expression
    bound: Bound
    share: float = 1.0
    wanted: str = ">="

    @property
    def sign(self) -> str:
        """Sign that compares the statistic with its bound."""
        return self.wanted if self.statistic is Statistic.PROBABILITY else self.bound.sign

    @property
    def is_instant(self) -> bool:
        """True if the statistic is an instant, or a time after the start."""
        return self.figure.is_instant and self.statistic is not Statistic.PROBABILITY

    @property
    def asked(self) -> str:
        """Statistic as written, without sign and bound: `p95(finish)`."""
        return self.text.rpartition(self.sign)[0].strip()

    @property
    def trap(self) -> str | None:
        """Hint for a quantile that is bounded on its thin side, which is rarely intended.

        `p95(people_reached) >= 183` requires 183 people of only one run in twenty, not of nineteen.
        """
        thin = 1 - self.share if self.share > 0.5 else self.share
        # `p95(finish) <= T` bounds the side with 95 % of the runs; `p95(finish) >= T` bounds the
        # one with 5 %, and is almost always meant as p5.
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
        """True if a smaller figure brings the clause closer to being met."""
        if self.statistic is Statistic.PROBABILITY:
            return self.bound.upper is self.wanted.startswith(">")
        return self.bound.upper

    @property
    def least_share(self) -> float:
        """Required share of runs within the bound."""
        thin = self.statistic is Statistic.QUANTILE and not self.bound.upper
        # A quantile with a lower bound asks for the share above it.
        return 1 - self.share if thin else self.share

    @property
    def share_to_tell(self) -> float:
        """Share that runs must be able to prove for certainty about the clause; 0 for a mean."""
        if self.statistic is Statistic.MEAN or self.share in (0, 1):
            return 0.0
        return max(self.share, 1 - self.share)

    def values(self, runs: Sequence[RunFigures]) -> NDArray[np.float64]:
        """Return the figure in each run, in the unit of the bound."""
        values = self.figure.of(runs)
        return values - (earliest_start(runs) or 0) if self.bound.after_start else values


@dataclass(frozen=True, slots=True)
class Goal:
    """Clauses that must all hold."""

    text: str
    clauses: tuple[Clause, ...]

    @property
    def figures(self) -> frozenset[str]:
        """Names of the figures that its evaluation needs."""
        asked = (figure.name for clause in self.clauses for figure in clause.figure.figures)
        return OF_ESTIMATE | frozenset(asked)

    @property
    def deadlines(self) -> list[tuple[int, Place]]:
        """Deadlines (ms), each with its campaign."""
        return [
            (round(clause.bound.value), clause.figure.place)
            for clause in self.clauses
            if clause.figure.is_instant and clause.bound.upper and not clause.bound.after_start
        ]


OF_ESTIMATE = frozenset({"cost", "people", "people_lost", "reach_share", *COST_PARTS})
"""Figures that the evaluation of every goal contains."""


def read_goal(text: str, scenario: Scenario) -> Goal:
    """Parse a goal over figures of a scenario. Raises ExperimentError with the fault."""
    parts = [part.strip() for part in _AND.split(text.strip())]
    return Goal(text.strip(), tuple(_clause(part, scenario) for part in parts))


def doubts_of(goal: Goal, scenario: Scenario) -> list[str]:
    """Return warnings about a goal before any run: traps, and bounds above the number of people."""
    traps = [trap for clause in goal.clauses if (trap := clause.trap) is not None]
    return [*traps, *(text for clause in goal.clauses if (text := _too_many(clause, scenario)))]


def _too_many(clause: Clause, scenario: Scenario) -> str | None:
    figure, bound = clause.figure, clause.bound
    if not figure.is_figure or figure.name not in ("people_reached", "reach_share") or bound.upper:
        return None
    people = sum(campaign.size for campaign in campaigns_at(scenario, figure.place))
    wanted = bound.value * (people if figure.name == "reach_share" else 1)
    if wanted < people or (wanted == people and bound.sign == ">="):
        return None
    said = f"{wanted:,.0f}" if bound.sign == ">=" else f"more than {wanted:,.0f}"
    return f"{clause.text} asks that {said} people be reached, but there are only {people:,}"


def _clause(text: str, scenario: Scenario) -> Clause:
    match = _CLAUSE.fullmatch(text)
    if match is None:
        _refuse_clause(text)
    name, inner, sign, bound = match.groups()
    end = _end_of_bracket(text, match.start(2))
    # The greedy pattern took a bracket of a second statistic for the end of the first one.
    if end < match.end(2):
        # Sums and quotients of statistics have no joint interval.
        reason = (
            "a clause has one statistic, of an expression that has a value in each run, such as "
            "mean(cost / people_reached)"
        )
        raise ExperimentError(pointed(f"goal {text}: {reason}", text, end + 1, match.end(2) + 1))
    if name == "prob":
        return _probability(text, match.start(2), inner, sign, bound.strip(), scenario)
    figure = read_expression(inner, scenario, text, match.start(2))
    limit = _bound(figure, sign, bound, text, scenario)
    if name == "mean":
        return Clause(text, Statistic.MEAN, figure, limit)
    share = float(name[1:]) / 100
    if not 0 < share < 1:
        _refuse(text, f"{name} is no quantile: write p1 to p99, such as p95(finish)")
    return Clause(text, Statistic.QUANTILE, figure, limit, share)


def _end_of_bracket(text: str, at: int) -> int:
    """Return the index of the bracket's end; brackets in quotes do not count."""
    depth = 1
    for match in re.compile(r"""\"[^"]*"|'[^']*'|[()]""").finditer(text, at):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if not depth:
            return match.start()
    return len(text)


def _probability(
    text: str, at: int, inner: str, sign: str, share: str, scenario: Scenario
) -> Clause:
    match = _EVENT.fullmatch(inner)
    if match is None:
        _refuse(text, "write a comparison into prob(…), such as prob(finish <= 5d) >= 0.95")
    name, event_sign, event_bound = match.groups()
    figure = read_expression(name, scenario, text, at)
    bound = _bound(figure, event_sign, event_bound, text, scenario)
    wanted = _share(share)
    if wanted is None or not 0 <= wanted <= 1:
        _refuse(text, f"{share} is no probability: write 0.95 or 95 %")
    return Clause(text, Statistic.PROBABILITY, figure, bound, wanted, sign)


def _share(text: str) -> float | None:
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*(%?)", text)
    return None if match is None else float(match[1]) / (100 if match[2] else 1)


def _bound(figure: Expression, sign: str, text: str, clause: str, scenario: Scenario) -> Bound:
    """Parse the bound of an expression, in its unit; a currency may follow an amount."""
    text = text.strip()
    if figure.unit.is_money and figure.measure.currency:
        text = text.removesuffix(figure.measure.currency).strip()
    try:
        amount = read_amount(text, scenario.first_day)
    except ExperimentError as error:
        _refuse(clause, str(error))
    if text.endswith("%") and not figure.measure.is_share:
        _refuse(clause, f"{figure.text} is no share, so it can't be compared with {text}")
    after_start = amount.kind is AmountKind.DURATION and figure.is_instant
    value = _in_unit(figure, amount, clause)
    in_words = figure.is_instant and not after_start and not has_offset(text)
    if in_words and sign.startswith("<"):
        _check_is_ahead(figure, text, value, clause, scenario)
    return Bound(sign, value, after_start, text if in_words else "")


def _check_is_ahead(
    figure: Expression, text: str, value: float, clause: str, scenario: Scenario
) -> None:
    """Reject an instant in words that precedes the start of its campaign."""
    starts = [
        campaign.schedule.start_date_time
        for campaign in campaigns_at(scenario, figure.place)
        if campaign.schedule is not None
    ]
    begin = min(starts, default=scenario.calling_begins)
    if value > begin:
        return
    # `Fri` means the first Friday from the scenario's first day on, which may precede a later
    # campaign.
    later = thai(round(value) + WEEK * int((begin - value) // WEEK + 1))
    _refuse(
        clause,
        f"{text} is {minute_text(round(value))}, and calling begins at {minute_text(begin)}; for a "
        f"later week write the date, {later:%Y-%m-%d %H:%M}",
    )


def _in_unit(figure: Expression, amount: Amount, clause: str) -> float:
    value = float(amount.value)
    number = amount.kind in (AmountKind.WHOLE, AmountKind.DECIMAL)
    if figure.is_instant:
        if number:
            _refuse(clause, f"{figure.name} is compared with an instant, such as "
                            "2026-01-09T12:00:00Z, or a time after the earliest start, "
                            "such as 5d")  # fmt: skip
        return value
    if amount.kind is AmountKind.DURATION and figure.measure.ms:
        return value / figure.measure.ms
    if not number:
        label = "" if figure.is_figure else figure.measure.label
        what = f"a number of {label}" if label else "a number"
        _refuse(clause, f"{figure.text} is compared with {what}, not with {amount.text}")
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


Plain = float | int | str | None


@dataclass(frozen=True, slots=True)
class ClauseFinding:
    """Evaluation of one clause by runs.

    `estimate`, `low` and `high` are the statistic and its interval, in the figure's unit. `hits` is
    the number of runs within the figure's bound, for quantiles and probabilities. `margin` is the
    distance of the estimate from its bound, relative to the bound; negative if the clause is
    missed. `sure` is True if the interval is on one side of the bound. `enough` is as in
    `Interval`.
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
        """Return JSON values; instants are text, and infinite numbers null."""
        values = {"estimate": self.estimate, "low": self.low, "high": self.high}
        instant = self.clause.is_instant
        plain = {
            name: _instant(value, self.clause.bound.after_start) if instant else finite(value)
            for name, value in values.items()
        }
        return {"clause": self.clause.text, "met": self.met, "sure": self.sure, **plain} | (
            {} if self.hits is None else {"hits": self.hits}
        )


def _instant(value: float, after_start: bool) -> Plain:
    return finite(value / 1000) if after_start else instant_text(value)


@dataclass(frozen=True, slots=True)
class GoalEstimate:
    """Evaluation of a goal by runs of one value; `value` is the setting or name that they share.

    `cost` is the mean cost, None without costs. `bounds` are the limits known before the runs.
    `runs` are the runs themselves, each with at least the figures of `Goal.figures`.
    `breaches` are the compliance rules that they break more often than the scenario as it is; with
    any, the goal is not met.
    """

    value: int | float | str
    met: bool
    sure: bool
    replications: int
    findings: tuple[ClauseFinding, ...]
    cost: float | None
    runs: tuple[RunFigures, ...] = field(default=(), repr=False)
    bounds: KnownBounds = UNKNOWN
    breaches: tuple[RuleBreach, ...] = ()

    @property
    def reach_share(self) -> float | None:
        """Mean share of people reached, in the organization or campaign of the goal.

        None without runs, or without people.
        """
        return self._mean("reach_share")

    @property
    def people_lost(self) -> float | None:
        """Mean number of lost people in the organization or campaign of the goal; None without
        runs.
        """
        return self._mean("people_lost")

    def cost_parts(self, place: Place = WHOLE, cost: float | None = None) -> dict[str, float]:
        """Return the parts of the mean cost by name; `cost` is the mean cost if known to the
        caller.
        """
        named = {name: FigureName(name, *place) for name in ("cost", *COST_PARTS)}
        means = {name: float(figure.of(self.runs).mean()) for name, figure in named.items()}
        means["cost"] = cost or expected_mean(named["cost"], self.runs, self.bounds)
        return cost_parts(means)

    def _mean(self, figure: str) -> float | None:
        places = {finding.clause.figure.place for finding in self.findings}
        place = places.pop() if len(places) == 1 else (None, None)
        values = FigureName(figure, *place).of(self.runs)
        known = values[~np.isnan(values)]
        return float(known.mean()) if len(known) else None

    @property
    def shortfall(self) -> tuple[float, float, float, int]:
        """Distance from meeting the goal, to compare values by; smaller is closer.

        Values are compared by the number of broken rules, then by the distance of the estimate from
        its bound, then by people lost and by runs within the bounds.
        """
        missed = [finding for finding in self.findings if not finding.met]
        hits = sum(finding.hits or 0 for finding in missed)
        distance = max((-finding.margin for finding in missed), default=0.0)
        # All values that never finish are infinitely far away; fewer lost people is closer.
        lost = 0.0 if isfinite(distance) else self.people_lost or 0.0
        # Breaches go first: no distance from a goal outweighs a rule that must not be broken.
        return len(self.breaches), distance, lost, -hits

    def to_dict(self) -> dict[str, object]:
        """Return JSON values."""
        return {
            "value": self.value,
            "met": self.met,
            "sure": self.sure,
            "replications": self.replications,
            "findings": [finding.to_dict() for finding in self.findings],
            "cost_mean": self.cost,
            "reach_share_mean": self.reach_share,
            "people_lost_mean": self.people_lost,
            "breaches": [breach.text for breach in self.breaches],
        }


def estimates_frame(
    rows: Sequence[Mapping[str, object]], estimates: Sequence[GoalEstimate]
) -> pd.DataFrame:
    """Return a table of settings that were tried, with the evaluation of each.

    `rows` has the columns of the settings. Further columns: met, sure, replications, cost (mean,
    NaN without costs), reach_share and people_lost (means); and for each clause of the goal the
    columns `CLAUSE` (its estimate), `CLAUSE low` and `CLAUSE high`. Instants are timestamps in UTC,
    NaT for never. `attrs["units"]` has the units of the other columns.
    """
    import pandas as pd

    made, units = [], {"cost": Unit.CURRENCY.value, "reach_share": Unit.SHARE.value}
    units |= {"people_lost": Unit.PEOPLE.value, "replications": "runs"}
    for row, part in zip(rows, estimates, strict=True):
        found: dict[str, object] = {}
        for finding in part.findings:
            clause = finding.clause
            is_at = clause.is_instant and not clause.bound.after_start
            for end, suffix in (("estimate", ""), ("low", " low"), ("high", " high")):
                value = getattr(finding, end)
                is_given = isfinite(value)
                if is_at:
                    found[clause.text + suffix] = (
                        pd.Timestamp(round(value), unit="ms", tz="UTC") if is_given else pd.NaT
                    )
                    continue
                found[clause.text + suffix] = value / 1000 if clause.is_instant else value
                is_share = clause.statistic is Statistic.PROBABILITY
                label = "s" if clause.is_instant else clause.figure.measure.label
                units[clause.text + suffix] = Unit.SHARE.value if is_share else label
        means = {"cost": nan if part.cost is None else part.cost}
        means |= {name: getattr(part, name) for name in ("reach_share", "people_lost")}
        verdict = {"met": part.met, "sure": part.sure, "replications": part.replications}
        made.append({**row, **verdict, **means, **found})
    frame = pd.DataFrame(made)
    frame.attrs["units"] = units
    return frame


def judge(
    value: int | float | str,
    goal: Goal,
    runs: Sequence[RunFigures],
    confidence: float,
    bounds: KnownBounds = UNKNOWN,
    looks: Looks | None = None,
    breaches: tuple[RuleBreach, ...] = (),
) -> GoalEstimate:
    """Evaluate a goal by runs of a scenario with known limits `bounds`.

    The evaluation is one of `looks`, or the only one. `confidence` holds for the whole goal. A
    setting with `breaches` certainly misses every goal.
    """
    # Certainty that a goal is met needs certainty of every clause, at the full level: a wrong
    # answer needs a wrong answer about the one missed clause. Certainty that it is missed needs one
    # certain clause, so the clauses share the risk (Bonferroni).
    looks = looks or Looks((len(runs),))
    each = 1 - (1 - confidence) / max(1, len(goal.clauses))
    findings = tuple(_clause_finding(clause, runs, (confidence, each), bounds, looks)
                     for clause in goal.clauses)  # fmt: skip
    met = all(finding.met for finding in findings) and not breaches
    missed = [finding for finding in findings if not finding.met]
    sure = all(f.sure for f in findings) if met else any(f.sure for f in missed) or bool(breaches)
    cost = _cost(runs, bounds)
    return GoalEstimate(value, met, sure, len(runs), findings, cost, tuple(runs), bounds, breaches)


def _clause_finding(
    clause: Clause,
    runs: Sequence[RunFigures],
    levels: tuple[float, float],
    bounds: KnownBounds,
    looks: Looks,
) -> ClauseFinding:
    """Evaluate a clause at the first confidence level if it is met, at the second if missed."""
    finding = _finding(clause, runs, levels[0], bounds, looks)
    # Most clauses need a single evaluation; the second level matters only for a certain miss.
    if finding.met or not finding.sure or levels[0] == levels[1]:
        return finding
    return replace(finding, sure=_finding(clause, runs, levels[1], bounds, looks).sure)


def _cost(runs: Sequence[RunFigures], bounds: KnownBounds) -> float | None:
    cost = expected_mean(COST, runs, bounds)
    return None if isnan(cost) else cost


def chance_of_meeting(estimate: GoalEstimate) -> float:
    """Estimate the probability that a value meets the goal, for the display of a search.

    Shares of runs have Jeffreys' prior, means are treated as normal; no verdict depends on it.
    """
    if estimate.sure:
        return float(estimate.met)
    return prod(_chance(part, estimate.runs) for part in estimate.findings)


def certainty_text(chance: float) -> str:
    """Format a chance: `88 % certain`, or `sure` where nothing is open."""
    return "sure" if chance == 1 else f"{min(99, int(100 * chance))} % certain"


def _chance(finding: ClauseFinding, runs: Sequence[RunFigures]) -> float:
    from scipy.special import betainc, stdtr

    clause, count = finding.clause, len(runs)
    if finding.hits is not None:
        least = clause.least_share
        below = float(betainc(finding.hits + 0.5, count - finding.hits + 0.5, least))
        return below if clause.wanted.startswith("<") else 1 - below
    values = clause.values(runs)
    spread = float(np.std(values, ddof=1)) if count > 1 else 0.0
    if not spread or not isfinite(spread):
        return float(finding.met)
    within = clause.bound.value - float(values.mean())
    sign = 1 if clause.bound.upper else -1
    return float(stdtr(count - 1, sign * within / spread * sqrt(count)))


def _finding(
    clause: Clause, runs: Sequence[RunFigures], confidence: float, bounds: KnownBounds, looks: Looks
) -> ClauseFinding:
    values = clause.values(runs)
    known = clause.figure.facts(runs, bounds)
    if clause.statistic is Statistic.MEAN:
        origin = 0.0 if clause.bound.after_start or not clause.is_instant else _start(runs)
        each = looks.of_mean(len(runs), confidence).confidence
        found = _mean(clause, values, origin, each, known)
    else:
        tails = looks.of_share(clause.least_share, len(runs), confidence)
        inside = sum(clause.bound.holds(value) for value in values)
        within = share_interval(inside, len(values), tails, known.certain)
        late = _chance_of_late(clause, runs, bounds, tails.low)
        within = replace(within, low=max(within.low, 1.0 - late))
        if clause.statistic is Statistic.QUANTILE:
            found = _quantile(clause, values, within, tails, known.certain)
        else:
            found = _share_found(clause, within, inside)
    met, sure, interval, hits, bound = found
    margin = _margin(interval.estimate, bound, clause, runs)
    ends = interval.estimate, interval.low, interval.high
    return ClauseFinding(clause, met, sure, *ends, hits, margin, interval.enough)


_Found = tuple[bool, bool, Interval, int | None, float]


def _mean(
    clause: Clause, values: NDArray[np.float64], origin: float, confidence: float, known: Known
) -> _Found:
    """Evaluate a mean; the interval of an instant is computed for the time since `origin`."""
    given = ~np.isnan(values)
    values = values[given]
    # Counted from 1970, times would lose digits as floats, and their relative spread would be 0.
    interval = mean_interval(values - origin, confidence, known.among(given))
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
    enough = known.certain or len(values) >= LEAST_TO_BE_SURE
    within = bound.holds(interval.low) == bound.holds(interval.high) and not isnan(interval.low)
    return met, enough and within, interval, None, bound.value


def _chance_of_late(
    clause: Clause, runs: Sequence[RunFigures], bounds: KnownBounds, error: float
) -> float:
    """Return an upper limit of the probability that a run misses a deadline. 1 if the runs are too
    close to the deadline for a limit, and for bounds of other kinds.
    """
    figure = clause.figure
    if not (figure.is_figure and figure.is_instant and clause.bound.upper):
        return 1.0
    until = clause.bound.value + (_start(runs) if clause.bound.after_start else 0.0)
    # A small part of the error suffices for a distant deadline, so that the exact limit of the
    # share hardly changes.
    return chance_after(figure.figures[0], runs, bounds, until, error * _OF_TOLERANCE)


def _quantile(
    clause: Clause, values: NDArray[np.float64], within: Interval, tails: Tails, certain: bool
) -> _Found:
    """Evaluate a quantile as the share of runs `within` its bound."""
    # x₍ᵣ₎ ≤ T with r = ⌈n·share⌉ means that at least r runs are ≤ T.
    count, share, hits = len(values), clause.share, round(within.estimate * len(values))
    # A run without the figure counts against the goal, whichever side the bound is on.
    late = np.where(np.isnan(values), inf if clause.bound.upper else -inf, values)
    interval = quantile_interval(late, share, tails.confidence, certain)
    # For a lower bound, fewer runs than the quantile's rank may lie below it.
    needed = rank(count, share) if clause.bound.upper else count - rank(count, share) + 1
    sure = within.low >= clause.least_share or within.high < clause.least_share
    return hits >= needed, sure, interval, hits, clause.bound.value


def _share_found(clause: Clause, within: Interval, hits: int) -> _Found:
    # The share has a bound of its own, with the second sign of `prob(FIGURE <= BOUND) >= 0.95`.
    wanted = type(clause.bound)(clause.wanted, clause.share)
    sure = wanted.holds(within.low) == wanted.holds(within.high)
    return wanted.holds(within.estimate), sure, within, hits, clause.share


def _start(runs: Sequence[RunFigures]) -> float:
    return float(earliest_start(runs) or 0)


def _margin(estimate: float, bound: float, clause: Clause, runs: Sequence[RunFigures]) -> float:
    if isnan(estimate):
        return -inf
    origin = 0.0
    if clause.is_instant:
        origin = 0.0 if clause.bound.after_start else _start(runs)
    within = bound - estimate if clause.sign.startswith("<") else estimate - bound
    # Relative, so that margins of clauses in different units can be compared; a bound of 0 has no
    # scale.
    return within / (abs(bound - origin) or 1.0)
