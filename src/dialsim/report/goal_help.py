"""Help towards a goal: what a plan's figures come to with each lever, and without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dialsim.experiments import wording
from dialsim.experiments.evidence import Evidence, weigh
from dialsim.experiments.figure_table import is_share
from dialsim.experiments.goal import Clause, Goal
from dialsim.experiments.run_figures import INSTANTS
from dialsim.report.effects import number_effect, points_effect, time_effect
from dialsim.report.levers import SHORTER_RETRIES
from dialsim.report.page import Fact
from dialsim.report.what_if import Effect, Lever, NotMeasured, WhatIf, effect, loses
from dialsim.results.wording import FigureTable

if TYPE_CHECKING:
    from dialsim.experiments.plan import Plan

_CONFIDENCE = 0.95
_NAMED = 3
"""So many levers are named that meet a goal."""


@dataclass(frozen=True, slots=True)
class Pull:
    """A lever set against a goal: the evidence of its runs, and its effect on each clause's figure.

    Effects on `finish` are in seconds, others in the figure's unit.
    """

    lever: Lever
    evidence: Evidence
    effects: tuple[Effect, ...]

    @property
    def name(self) -> str:
        """The lever's name."""
        return self.lever.name


@dataclass(frozen=True, slots=True)
class Toward:
    """Levers set against a plan's goal, which it meets or not.

    `base` is the evidence of the very same runs without any lever.
    """

    what_if: WhatIf
    met: bool
    base: Evidence
    pulls: tuple[Pull, ...]


def asked_of(answer: Plan) -> tuple[str | None, str | None]:
    """The organization and campaign that a goal is about; None where it names several, or none."""
    places = {
        (finding.clause.figure.organization, finding.clause.figure.campaign)
        for finding in answer.evidence.findings
    }
    if len(places) == 1:
        return places.pop()
    owners = {organization for organization, _ in places}
    return (owners.pop(), None) if len(owners) == 1 else (None, None)


def toward(answer: Plan, what_if: WhatIf) -> Toward:
    """Weigh the goal of a plan by the runs of each lever, and by those without."""
    goal = Goal(answer.goal, tuple(finding.clause for finding in answer.evidence.findings))
    return Toward(
        what_if,
        answer.met,
        weigh("as it is", goal, what_if.base, _CONFIDENCE, answer.evidence.prior),
        tuple(
            Pull(
                lever,
                weigh(lever.name, goal, lever.runs, _CONFIDENCE, answer.evidence.prior),
                tuple(_effect(clause, lever, what_if, answer) for clause in goal.clauses),
            )
            for lever in what_if.levers
        ),
    )


def _effect(clause: Clause, lever: Lever, what_if: WhatIf, answer: Plan) -> Effect:
    figure = clause.figure
    unit = 1000 if figure.is_instant else 1
    certain = answer.evidence.prior.certain(figure.column)
    values, base = (figure.of(side) / unit for side in (lever.runs, what_if.base))
    return effect(values, base, certain)


def helpful(helped: Toward) -> list[Pull]:
    """The levers that bring the goal closer, or meet it with more to spare; the best first.

    The change must be real, in the figure of the clause that is furthest from being met, and no
    lever counts that costs people who would be reached without it.
    """
    margins = [finding.margin for finding in helped.base.findings]
    tightest = margins.index(min(margins))
    sign = 1 if helped.base.findings[tightest].clause.smaller_is_better else -1
    found = [
        pull
        for pull in helped.pulls
        if pull.effects[tightest].real
        and sign * pull.effects[tightest].difference < 0
        and _closeness(pull.evidence) >= _closeness(helped.base)
        and not loses(helped.what_if, pull.lever)
    ]
    return sorted(found, key=lambda pull: _closeness(pull.evidence), reverse=True)


def _closeness(part: Evidence) -> tuple[bool, float, float, float]:
    """Whether a goal is met, then how close it is, then how much there is to spare."""
    short, hits = part.shortfall
    return part.met, -short, -hits, min(finding.margin for finding in part.findings)


def goal_fact(question: str, helped: Toward | NotMeasured) -> Fact:
    """What else would help, in the figures of the goal."""
    if isinstance(helped, NotMeasured):
        return Fact(question, "Not measured", helped.said)
    found = helpful(helped)
    if not found:
        tried = f"None of {len(helped.pulls)} small changes brings the goal closer beyond chance."
        return Fact(question, "Nothing that was tried", tried)
    meeting = [pull for pull in found if pull.evidence.met][:_NAMED]
    named = found[:1] if helped.met or not meeting else meeting
    note = f" {SHORTER_RETRIES}" if any(pull.lever.shortens_retries for pull in named) else ""
    if not helped.met and not meeting:
        detail = f"Closest comes {_said(found[0], helped)}.{note}"
        return Fact(question, "No small change alone", detail)
    names = " or ".join(pull.name for pull in named)
    return Fact(question, _capital(names), f"With {_said(named[0], helped)}.{note}")


def _said(pull: Pull, helped: Toward) -> str:
    """`2 lines more (6): p95(finish) is Mon 5 Jan 10:15 instead of Mon 5 Jan 10:24 in 25 runs`."""
    figures = ", ".join(
        f"{with_it.clause.asked} is {wording.finding_text(with_it, with_it.estimate)} instead of "
        f"{wording.finding_text(without, without.estimate)}"
        for with_it, without in zip(pull.evidence.findings, helped.base.findings, strict=True)
    )
    return f"{pull.name}, {figures}, in {helped.what_if.pairs} runs each"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def goal_table(helped: Toward, setting: str) -> FigureTable:
    """The goal's figures with each lever, and whether they meet it."""
    clauses = [finding.clause for finding in helped.base.findings]
    bounds = (wording.bound_text(finding) for finding in helped.base.findings)
    rows = [("the goal", *bounds, "")]
    for name, part in [
        (f"{setting}, as it is", helped.base),
        *((pull.name, pull.evidence) for pull in helped.pulls),
    ]:
        cells = (wording.finding_text(finding, finding.estimate) for finding in part.findings)
        rows.append((name, *cells, wording.verdict_text(part)))
    heads = [*(clause.asked for clause in clauses), "meets it"]
    return FigureTable("With", tuple(heads), tuple(rows))


def goal_effects(helped: Toward) -> FigureTable | None:
    """The paired differences of those figures of the goal that no table of effects has."""
    shown: dict[str, tuple[str, int]] = {}
    for number, finding in enumerate(helped.base.findings):
        figure = finding.clause.figure
        if figure.organization is not None or figure.name not in _IN_EVERY_TABLE:
            shown.setdefault(figure.text, (figure.name, number))
    if not shown:
        return None
    rows = [
        (pull.name, *(_effect_text(name, pull.effects[at]) for name, at in shown.values()))
        for pull in helped.pulls
    ]
    return FigureTable("Changed by", tuple(shown), tuple(rows))


_IN_EVERY_TABLE = ("finish", "people_reached", "cost")


def _effect_text(figure: str, effect: Effect) -> str:
    if figure in INSTANTS:
        return time_effect(effect)
    return points_effect(effect) if is_share(figure) else number_effect(effect)
