"""Effects of levers, and bottlenecks of many runs, in words and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING

import numpy as np

from dialsim.experiments import plan_text
from dialsim.experiments.estimates import MEAN, MEDIAN, PROBABILITY, not_allowed
from dialsim.experiments.experiment_text import difference_text
from dialsim.experiments.goal import Goal, GoalEstimate, judge
from dialsim.experiments.intervals import CONFIDENCE, Difference
from dialsim.experiments.run_figures import RunFigures, day_label
from dialsim.interface.instants import minute_text
from dialsim.interface.phrases import counted
from dialsim.report.page import Fact, Notes, Part
from dialsim.report.what_if import SHORTER_RETRIES, WhatIf, loses
from dialsim.results.bottleneck import Bottleneck
from dialsim.results.figures import is_done_by, is_instant
from dialsim.results.summary_text import FigureTable, ValueText

if TYPE_CHECKING:
    from dialsim.experiments.plan import Plan


def effect_text(figure: str, effect: Difference) -> ValueText:
    """Format a difference of a figure as tables of differences do: `-12 ± 8, real`."""
    # The mean of finishes is infinite as soon as one run never finishes; the median is not.
    statistic = MEDIAN if is_instant(figure) else MEAN
    statistic = PROBABILITY if is_done_by(figure) else statistic
    named = {"figure": figure, "statistic": statistic, "real": effect.real}
    return difference_text({**asdict(effect), **named, "difference": effect.estimate})


def effect_table(what_if: WhatIf, currency: str | None, title: str = "Changed by") -> FigureTable:
    """Return the table of the effects of levers."""
    names = {"finish": "finish", "people_reached": "people reached", "cost": f"cost, {currency}"}
    figures = [*what_if.levers[0].effects] if what_if.levers else [*names][: 2 + bool(currency)]
    heads = [names.get(figure) or f"done {day_label(figure)}" for figure in figures]
    rows = [
        (lever.name, *(effect_text(figure, effect) for figure, effect in lever.effects.items()))
        for lever in what_if.levers
    ]
    return FigureTable(title, tuple(heads), tuple(rows))


def not_allowed_notes(measured: Iterable[WhatIf]) -> list[Part]:
    """List the levers that break a compliance rule more often, apart from the others."""
    refused = not_allowed(
        (lever.name, lever.breaches) for what_if in measured for lever in what_if.not_allowed
    )
    return [Notes(refused)] if refused else []


def spread(what_if: WhatIf) -> str:
    """Return the range of finishes and of the share reached over the runs without a lever."""
    finishes = [run.scopes[0].values["finish"] for run in what_if.base]
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
class GoalWhatIf:
    """Levers compared with the goal of a plan.

    `base` is the estimate of the goal from the runs without any lever. `levers` has an estimate per
    lever of `what_if`, in the same order.
    """

    what_if: WhatIf
    base: GoalEstimate
    levers: tuple[GoalEstimate, ...]


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

    def judged(name: str, runs: Sequence[RunFigures]) -> GoalEstimate:
        return judge(name, goal, runs, CONFIDENCE, answer.estimate.bounds)

    levers = (judged(lever.name, lever.runs) for lever in what_if.levers)
    return GoalWhatIf(what_if, judged("as it is", what_if.base), tuple(levers))


def goal_fact(measured: GoalWhatIf) -> Fact:
    """Return the fact on the levers that meet a goal which the plan misses.

    Levers that lose people who would be reached without them are not named.
    """
    question, what_if = "What would help to meet it?", measured.what_if
    meeting = [
        (lever, estimate)
        for lever, estimate in zip(what_if.levers, measured.levers, strict=True)
        if estimate.met and not loses(what_if, lever)
    ][:_NAMED]
    if not meeting:
        tried = f"None of {len(what_if.levers)} small changes meets the goal."
        return Fact(question, "No small change alone", tried)
    first = meeting[0][1]
    figures = ", ".join(
        f"{with_it.clause.asked} is {plan_text.finding_text(with_it, with_it.estimate)} "
        f"instead of {plan_text.finding_text(without, without.estimate)}"
        for with_it, without in zip(first.findings, measured.base.findings, strict=True)
    )
    said = [f"With {first.value}, {figures}, in {what_if.pairs} runs each."]
    # Levers get fewer runs than the plan's own values.
    if not all(estimate.sure for _, estimate in meeting):
        said.append("Not sure: so few runs may meet it by chance.")
    if any(lever.shortens_retries for lever, _ in meeting):
        said.append(SHORTER_RETRIES)
    names = " or ".join(lever.name for lever, _ in meeting)
    return Fact(question, f"{names[0].upper()}{names[1:]}", " ".join(said))


def goal_table(measured: GoalWhatIf, setting: str) -> FigureTable:
    """Return the table of the goal's figures with each lever, and whether they meet it."""
    clauses = [finding.clause for finding in measured.base.findings]
    bounds = (plan_text.bound_text(finding) for finding in measured.base.findings)
    rows = [("the goal", *bounds, "")]
    names = (f"{setting}, as it is", *(lever.name for lever in measured.what_if.levers))
    for name, part in zip(names, (measured.base, *measured.levers), strict=True):
        cells = (plan_text.finding_text(finding, finding.estimate) for finding in part.findings)
        rows.append((name, *cells, plan_text.verdict_text(part)))
    heads = [*(clause.asked for clause in clauses), "meets it"]
    return FigureTable("With", tuple(heads), tuple(rows), fixed=frozenset({0}))


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
        """Number of runs in words: `in 48 of 50 runs`."""
        return f"in {self.count} of {counted(self.runs, 'run')}"

    @property
    def said(self) -> str:
        """Explanation of the example, without the reason."""
        return self.example.sentence.partition(": ")[2]


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
    often = f"I{found.how_often[1:]}"
    return Fact(question, f"{found.reason}{which}", f"{often}; in the first of them {found.said}")
