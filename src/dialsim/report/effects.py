"""Effects of levers, and bottlenecks of many runs, in words and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING

import numpy as np

from dialsim.experiments import plan_text
from dialsim.experiments.breaches import not_allowed
from dialsim.experiments.expression import Expression
from dialsim.experiments.goal import Clause, Goal, GoalEstimate, Statistic, judge
from dialsim.experiments.intervals import (
    BY_ORDER,
    BY_SHARES,
    CONFIDENCE,
    NO_CHANCE,
    Difference,
    median_difference,
    paired_difference,
)
from dialsim.experiments.run_figures import RunFigures
from dialsim.interface.instants import duration_text, minute_text
from dialsim.report.page import Fact, Notes, Part
from dialsim.report.what_if import (
    SHORTER_RETRIES,
    MeasuredLever,
    NotMeasured,
    WhatIf,
    loses,
)
from dialsim.results.bottleneck import Bottleneck
from dialsim.results.figures import Unit
from dialsim.results.summary_text import FigureTable, ValueText

if TYPE_CHECKING:
    from dialsim.experiments.plan import Plan


def effect_table(what_if: WhatIf, currency: str | None, title: str = "Changed by") -> FigureTable:
    """Return the table of the effects of levers."""
    days = [f"done {name}" for name, _ in what_if.levers[0].days] if what_if.levers else []
    columns = ["finish", *days, "people reached"] + ([f"cost, {currency}"] if currency else [])
    rows = []
    for lever in what_if.levers:
        cells = [finish_effect(lever, what_if), *(points_effect(shift) for _, shift in lever.days)]
        cells.append(number_effect(lever.reached))
        if lever.cost is not None:
            cells.append(number_effect(lever.cost))
        rows.append((lever.name, *cells))
    return FigureTable(title, tuple(columns), tuple(rows))


def not_allowed_notes(measured: Iterable[WhatIf]) -> list[Part]:
    """List the levers that break a compliance rule more often, apart from the others."""
    refused = not_allowed(
        (lever.name, lever.breaches) for what_if in measured for lever in what_if.not_allowed
    )
    return [Notes(refused)] if refused else []


def finish_effect(lever: MeasuredLever, what_if: WhatIf) -> str:
    """Return `time_effect`; if some runs don't finish, how many do with the lever and without."""
    done, before = (
        sum(isfinite(at) for at in finishes)
        for finishes in (_finishes(lever.runs), _finishes(what_if.base))
    )
    if done == before:
        return time_effect(lever.finish)
    return f"done in {done} of {what_if.pairs} runs instead of {before}"


def time_effect(effect: Difference) -> ValueText:
    """Format a difference of time: `2 h 26 min earlier (2 h 20 min to 2 h 30 min)`.

    A mean has `(± 3 min)` instead.
    """
    return ValueText(_time_text(effect), effect.estimate)


def _time_text(effect: Difference) -> str:
    if _no_change(effect):
        return "no change"
    if isfinite(effect.estimate):
        way = "earlier" if effect.estimate < 0 else "later"
        return f"{_duration(effect.estimate)} {way} {_sureness(effect, _duration)}"
    if not effect.rose and not effect.fell:
        return "can't be told"
    # Some runs never finish: their mean is infinite, but the direction of the pairs is known.
    return f"{'earlier' if effect.fell > effect.rose else 'later'} {_sureness(effect, _duration)}"


def number_effect(effect: Difference) -> ValueText:
    """Format a difference of numbers: `+143 (± 12)`."""
    if _no_change(effect):
        return ValueText("no change", 0)
    sign = "+" if effect.estimate >= 0 else "–"
    said = f"{sign}{_number(effect.estimate)} {_sureness(effect, _number)}"
    return ValueText(said, effect.estimate)


def points_effect(effect: Difference) -> ValueText:
    """Format a difference of shares in percentage points: `+3.1 points (± 0.4)`."""
    if _no_change(effect):
        return ValueText("no change", 0)
    sign = "+" if effect.estimate >= 0 else "–"

    def points(value: float) -> str:
        return f"{100 * abs(value):.1f}"

    said = f"{sign}{points(effect.estimate)} points {_sureness(effect, points)}"
    return ValueText(said, effect.estimate)


def _no_change(effect: Difference) -> bool:
    """True if no pair of runs differs."""
    return effect.estimate == 0 and not effect.rose and not effect.fell


def _sureness(effect: Difference, text: Callable[[float], str]) -> str:
    """Format the uncertainty: `(± 12)`, or without an interval `(in 5 of 6 pairs)`.

    A difference that is not significant is marked `may be chance`.
    """
    if effect.method == NO_CHANCE:
        return "(always: without chance)"
    known = f"in {max(effect.rose, effect.fell)} of {effect.pairs} pairs"
    # Pairs that are mostly alike give a median an interval of width 0.
    if isfinite(effect.low) and isfinite(effect.high) and effect.low < effect.high:
        known = f"± {text((effect.high - effect.low) / 2)}"
        if effect.method in (BY_ORDER, BY_SHARES) or not effect.is_symmetric:
            ends = sorted((effect.low, effect.high), key=abs)
            known = " to ".join(
                f"{'' if end * effect.estimate >= 0 else '-'}{text(end)}" for end in ends
            )
    return f"({known})" if effect.real else f"({known}, may be chance)"


def _duration(seconds: float) -> str:
    """Format seconds, rounded to the minute from ten minutes on."""
    # Beyond ten minutes seconds are noise.
    unit = 60 if abs(seconds) >= 600 else 1
    return duration_text(1000 * unit * round(abs(seconds) / unit))


def _number(value: float) -> str:
    size = abs(value)
    return f"{size:,.0f}" if size >= 10 else f"{size:.1f}"


def _finishes(runs: Sequence[RunFigures]) -> list[float]:
    """Return the finish of each run in ms, infinite for runs that don't finish."""
    return [run.scopes[0].values["finish"] for run in runs]


def spread(what_if: WhatIf) -> str:
    """Return the range of finishes and of the share reached over the runs without a lever."""
    finishes = _finishes(what_if.base)
    done = [at for at in finishes if isfinite(at)]
    # Not the other runs: NaN stands for a run in which nothing was scheduled.
    never = sum(at == inf for at in finishes)
    shares = 100 * np.array([run.scopes[0].values["reach_share"] for run in what_if.base])
    reached = f"{shares.min():.1f} to {shares.max():.1f} % reached"
    if not done:
        return f"none of {what_if.pairs} runs finished; {reached}"
    first, last = (minute_text(round(at)) for at in (min(done), max(done)))
    when = f"done {first}" if first == last else f"done between {first} and {last}"
    return f"{when}, {reached}" + (f"; {never} did not finish" if never else "")


_NAMED = 3
"""Levers named, at most, of those that meet a goal."""


@dataclass(frozen=True, slots=True)
class LeverAgainstGoal:
    """A lever compared with a goal: its runs as estimate, and its effect on each clause's figure.

    Effects on `finish` are in seconds, others in the unit of the figure.
    """

    lever: MeasuredLever
    estimate: GoalEstimate
    effects: tuple[Difference, ...]

    @property
    def name(self) -> str:
        """Name of the lever."""
        return self.lever.name


@dataclass(frozen=True, slots=True)
class GoalWhatIf:
    """Levers compared with the goal of a plan, which the plan meets or not.

    `base` is the estimate from the same replications without any lever.
    """

    what_if: WhatIf
    met: bool
    base: GoalEstimate
    levers: tuple[LeverAgainstGoal, ...]


def asked_of(answer: Plan) -> tuple[str | None, str | None]:
    """Return the organization and campaign of a goal; None if not named or not unique."""
    studied = {finding.clause.figure.place for finding in answer.estimate.findings}
    if len(studied) == 1:
        return studied.pop()
    owners = {organization for organization, _ in studied}
    return (owners.pop(), None) if len(owners) == 1 else (None, None)


def against_goal(answer: Plan, what_if: WhatIf) -> GoalWhatIf:
    """Evaluate the goal of a plan on the runs of each lever, and on those without."""
    goal = Goal(answer.goal, tuple(finding.clause for finding in answer.estimate.findings))
    return GoalWhatIf(
        what_if,
        answer.met,
        judge("as it is", goal, what_if.base, CONFIDENCE, answer.estimate.bounds),
        tuple(
            LeverAgainstGoal(
                lever,
                judge(lever.name, goal, lever.runs, CONFIDENCE, answer.estimate.bounds),
                tuple(_effect(clause, lever, what_if, answer) for clause in goal.clauses),
            )
            for lever in what_if.levers
        ),
    )


def _effect(clause: Clause, lever: MeasuredLever, what_if: WhatIf, answer: Plan) -> Difference:
    figure = clause.figure
    sides, bounds = (lever.runs, what_if.base), answer.estimate.bounds
    values, base = (figure.in_tables(side, 0) for side in sides)
    known, other = (figure.facts_in_tables(side, bounds) for side in sides)
    if clause.statistic is Statistic.MEAN or not figure.is_instant:
        return paired_difference(values, base, CONFIDENCE, (known, other))
    return median_difference(values, base, CONFIDENCE, known.certain and other.certain)


def helpful(measured: GoalWhatIf) -> list[LeverAgainstGoal]:
    """Return the levers that bring the goal closer, or meet it with more margin, the best first.

    The effect must be significant for the figure of the clause with the smallest margin. A lever
    that loses people who would be reached without it does not count.
    """
    margins = [finding.margin for finding in measured.base.findings]
    # A lever that improves a clause with room to spare does not bring the goal closer.
    tightest = margins.index(min(margins))
    sign = 1 if measured.base.findings[tightest].clause.smaller_is_better else -1
    found = [
        lever
        for lever in measured.levers
        if lever.effects[tightest].real
        and sign * lever.effects[tightest].estimate < 0
        and _closeness(lever.estimate) >= _closeness(measured.base)
        and not loses(measured.what_if, lever.lever)
    ]
    return sorted(found, key=lambda lever: _closeness(lever.estimate), reverse=True)


def _closeness(part: GoalEstimate) -> tuple[float, ...]:
    """Sort key of estimate: whether the goal is met, the distance to it, and the margin."""
    shortfall = (-distance for distance in part.shortfall)
    return part.met, *shortfall, min(finding.margin for finding in part.findings)


def goal_fact(question: str, measured: GoalWhatIf | NotMeasured) -> Fact:
    """Return the fact on what else would help, in the figures of the goal."""
    if isinstance(measured, NotMeasured):
        return Fact(question, "Not measured", measured.said)
    found = helpful(measured)
    if not found:
        tried = (
            f"None of {len(measured.levers)} small changes brings the goal closer beyond chance."
        )
        return Fact(question, "Nothing that was tried", tried)
    meeting = [lever for lever in found if lever.estimate.met][:_NAMED]
    named = found[:1] if measured.met or not meeting else meeting
    note = f" {SHORTER_RETRIES}" if any(lever.lever.shortens_retries for lever in named) else ""
    if not measured.met and not meeting:
        detail = f"Closest comes {_said(found[0], measured)}.{note}"
        return Fact(question, "No small change alone", detail)
    names = " or ".join(lever.name for lever in named)
    sure = all(lever.estimate.sure for lever in named)
    # Levers get fewer runs than the plan's own values.
    doubt = "" if sure else " Not sure: so few runs may meet it by chance."
    return Fact(question, _capital(names), f"With {_said(named[0], measured)}.{doubt}{note}")


def _said(lever: LeverAgainstGoal, measured: GoalWhatIf) -> str:
    """Format a lever: `2 lines more (6): p95(finish) is Mon 5 Jan 10:15 instead of Mon 5 Jan
    10:24`.
    """
    figures = ", ".join(
        f"{with_it.clause.asked} is {plan_text.finding_text(with_it, with_it.estimate)} "
        f"instead of {plan_text.finding_text(without, without.estimate)}"
        for with_it, without in zip(lever.estimate.findings, measured.base.findings, strict=True)
    )
    return f"{lever.name}, {figures}, in {measured.what_if.pairs} runs each"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def goal_table(measured: GoalWhatIf, setting: str) -> FigureTable:
    """Return the table of the goal's figures with each lever, and whether they meet it."""
    clauses = [finding.clause for finding in measured.base.findings]
    bounds = (plan_text.bound_text(finding) for finding in measured.base.findings)
    rows = [("the goal", *bounds, "")]
    for name, part in [
        (f"{setting}, as it is", measured.base),
        *((lever.name, lever.estimate) for lever in measured.levers),
    ]:
        cells = (plan_text.finding_text(finding, finding.estimate) for finding in part.findings)
        rows.append((name, *cells, plan_text.verdict_text(part)))
    heads = [*(clause.asked for clause in clauses), "meets it"]
    return FigureTable("With", tuple(heads), tuple(rows), fixed=frozenset({0}))


def goal_effects(measured: GoalWhatIf) -> FigureTable | None:
    """Return paired differences of figures of the goal that are not in every table of effects."""
    shown: dict[str, tuple[Expression, int]] = {}
    for number, finding in enumerate(measured.base.findings):
        figure = finding.clause.figure
        if figure.place != (None, None) or figure.name not in _IN_EVERY_TABLE:
            # Two clauses may bound one figure, such as its mean and its p95: one column serves
            # both.
            shown.setdefault(figure.text, (figure, number))
    if not shown:
        return None
    rows = [
        (lever.name, *(_effect_text(figure, lever.effects[at]) for figure, at in shown.values()))
        for lever in measured.levers
    ]
    return FigureTable("Changed by", tuple(shown), tuple(rows))


_IN_EVERY_TABLE = ("finish", "people_reached", "cost")


def _effect_text(figure: Expression, effect: Difference) -> str:
    if figure.is_instant:
        return time_effect(effect)
    return points_effect(effect) if figure.unit is Unit.SHARE else number_effect(effect)


@dataclass(frozen=True, slots=True)
class Holding:
    """Bottleneck that `count` of `runs` runs share; `example` is the bottleneck of the first
    one.
    """

    example: Bottleneck
    count: int
    runs: int

    @property
    def reason(self) -> str:
        """The reason in a word or two, such as `Pacing`."""
        return self.example.sentence.partition(": ")[0]

    @property
    def how_often(self) -> str:
        """Number of runs in words: `in all 50 runs`, `in 48 of 50 runs`."""
        if self.runs == 1:
            return "in 1 run"
        if self.count == self.runs:
            return f"in all {self.runs} runs"
        return f"in {self.count} of {self.runs} runs"

    @property
    def said(self) -> str:
        """Explanation of the example, without the reason."""
        return self.example.sentence.partition(": ")[2]

    @property
    def detail(self) -> str:
        """Number of runs, and the explanation of the first."""
        often = f"{self.how_often[0].upper()}{self.how_often[1:]}"
        return f"{often}; in the first of them {self.said}"


def holding(
    runs: Sequence[RunFigures], organization: str | None = None, campaign: str | None = None
) -> Holding | None:
    """Return the most frequent bottleneck of runs or of a part of them; None if there was nothing
    to do.

    Without names it is the bottleneck of the campaign that finishes last.
    """
    listed = [
        part.held_back
        for run in runs
        for part in run.scopes
        if part.held_back is not None
        and (part.organization, part.campaign) == (organization, campaign)
    ]
    # As sets: which of two joint causes is named first differs from run to run.
    causes = [frozenset({held.reason, *held.also}) for held in listed]
    if not causes:
        return None
    most, count = Counter(causes).most_common(1)[0]
    return Holding(listed[causes.index(most)], count, len(listed))


def holding_fact(question: str, found: Holding | None, campaigns: int) -> Fact:
    """Return the fact on the bottleneck; it names the campaign if there are several."""
    if found is None:
        return Fact(question, "Nothing")
    which = f" ({found.example.campaign})" if campaigns > 1 else ""
    return Fact(question, f"{found.reason}{which}", found.detail)
