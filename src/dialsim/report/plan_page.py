"""Reports of a plan and of an optimum: the values that meet the goal, and the estimate."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING

from dialsim.experiments import plan_text, variants
from dialsim.experiments.experiment_text import amount_text
from dialsim.experiments.variants import setting_noun
from dialsim.report.page import Fact, Grid, Notes, Part, Picture, ReportPage, Section, picture
from dialsim.report.replications_page import campaign_table
from dialsim.report.run_page import (
    cost_split,
    help_fact,
    how_measured,
    made_from,
    retry_notes,
    run_pictures,
)
from dialsim.report.what_if import (
    SHORTER_RETRIES,
    GoalWhatIf,
    NotMeasured,
    asked_of,
    effect_table,
    goal_fact,
    goal_table,
    holding,
    holding_fact,
    not_allowed_notes,
)
from dialsim.results.result import Result
from dialsim.results.summary_text import reach_text

if TYPE_CHECKING:
    from dialsim.experiments.goal import GoalEstimate
    from dialsim.experiments.optimum import Optimum
    from dialsim.experiments.plan import Plan


def plan_page(
    answer: Plan, example: Result, measured: GoalWhatIf | NotMeasured | None
) -> ReportPage:
    """Return the report of a plan; `example` is one run with the value found or closest.

    `measured` are the levers at this value, compared with the goal, if they were measured.
    """
    scenario = example.trace.world.scenario
    which = f"seed {example.trace.world.seed}, {_runs(answer)} runs"
    return ReportPage(
        title=scenario.name,
        lead=f"Which {setting_noun(answer.path)}: what meets the goal {answer.goal}?",
        answer=plan_text.plan_headline(answer).removesuffix("."),
        facts=[*_plan_facts(answer, example, measured)],
        sections=_plan_sections(answer, example, measured),
        made_from=made_from(scenario.name, which),
    )


def setting_text(answer: Plan) -> str:
    """Return the value found, or else the closest one, with its setting: `34 lines`."""
    return variants.setting_text(answer.path, answer.estimate.value)


def _runs(answer: Plan) -> int:
    return sum(part.replications for part in answer.tried)


def _plan_facts(
    answer: Plan, example: Result, measured: GoalWhatIf | NotMeasured | None
) -> Iterator[Fact]:
    headline = plan_text.plan_question(answer)
    if answer.path.endswith(".retryInterval"):
        headline += f" {SHORTER_RETRIES}"
    if answer.first_estimate is not None:
        headline += f" {answer.first_estimate}"
    yield Fact("What meets the goal?", setting_text(answer) if answer.met else "Nothing", headline)
    if answer.why_not is not None:
        yield Fact("Why not?", answer.why_not.reason, answer.why_not.text)
    sure = "Sure" if answer.estimate.sure else "Not sure"
    yield Fact("How sure is that?", sure, _said(answer.estimate))
    if answer.neighbour is not None:
        verdict = "does not do" if not answer.neighbour.met else "would do as well"
        said = f"{variants.setting_text(answer.path, answer.neighbour.value)}: {verdict}"
        yield Fact("What about its neighbour?", said, _said(answer.neighbour))
    found = holding(answer.estimate.runs, *asked_of(answer))
    yield holding_fact(f"What holds it back with {setting_text(answer)}?", found,
                       len(example.summary.campaigns))  # fmt: skip
    if isinstance(measured, GoalWhatIf):
        yield help_fact(measured.what_if) if answer.met else goal_fact(measured)
    elif measured is not None:
        yield help_fact(measured)
    if answer.estimate.cost is not None:
        yield _cost_fact(answer.estimate.cost, answer.estimate, example)
    yield Fact("Whom does it reach?", reach_text(example.summary), "In one run with it.")


def _cost_fact(cost: float, part: GoalEstimate, example: Result) -> Fact:
    """Return the mean cost of a value's runs, and its parts."""
    said = f"{amount_text('cost', cost)} {example.summary.currency} on average"
    parts = part.cost_parts(cost=cost)
    return Fact("What does it cost?", said, cost_split(parts, partial(amount_text, "cost")))


def _said(part: GoalEstimate) -> str:
    """Return, for each clause of the goal, what the runs with the value show."""
    found = (
        f"{finding.clause.asked} is {plan_text.finding_text(finding, finding.estimate)}, "
        f"wanted: {plan_text.bound_text(finding)}"
        for finding in part.findings
    )
    return f"{'; '.join(found)} ({part.replications} runs)."


def _plan_sections(
    answer: Plan, example: Result, measured: GoalWhatIf | NotMeasured | None
) -> list[Section]:
    sections = []
    if answer.warnings:
        sections.append(Section("Remarks", [Notes([f"{text}." for text in answer.warnings])]))
    if refused := plan_text.not_allowed_of_plan(answer):
        sections.append(Section("Not allowed", [Notes(refused)]))
    sections.append(Section("Evidence", [Grid([*_pictures(answer)])]))
    sections += _by_campaign(answer.estimate, setting_text(answer), example)
    if measured is not None:
        parts = _help_parts(measured, answer, example.summary.currency)
        sections.append(Section("What would help", parts))
    shown = run_pictures(example)
    if shown:
        sections.append(Section(f"One run with {setting_text(answer)}", shown))
    sections.append(Section("All values tried", [plan_text.plan_table(answer)]))
    return sections


def _by_campaign(part: GoalEstimate, setting: str, example: Result) -> Iterator[Section]:
    if len(example.summary.campaigns) > 1:
        table = campaign_table(part.runs, example.summary.currency)
        said = f"Of the {part.replications} runs with {setting}."
        yield Section("Campaign by campaign", [said, table])


def _help_parts(
    measured: GoalWhatIf | NotMeasured, answer: Plan, currency: str | None
) -> list[Part]:
    """Return the goal's figures with each lever, then the effects of the levers on whole runs."""
    if isinstance(measured, NotMeasured):
        return [measured.said]
    what_if, setting = measured.what_if, setting_text(answer)
    said = how_measured(setting, [what_if])
    if what_if.pairs < answer.estimate.replications:
        said += f" The runs of {setting} are the first {what_if.pairs} of those above."
    doubt = f"“Not sure” stands where {what_if.pairs} runs are too few to be 95 % sure."
    shown = [goal_table(measured, setting), effect_table(what_if, currency)]
    notes = [*not_allowed_notes([what_if]), *retry_notes([what_if])]
    return [f"{said} {doubt}", *shown, *notes]


def _pictures(answer: Plan) -> Iterator[Picture]:
    for number, finding in enumerate(answer.estimate.findings):
        caption = (
            f"Estimates of {finding.clause.text} at the {len(answer.tried)} values tried, with "
            "their intervals; the dashed line is the bound."
        )
        yield picture(f"clause{number}", partial(answer.plot.estimates, number), caption)


def optimum_page(answer: Optimum, example: Result) -> ReportPage:
    """Return the report of an optimum; `example` is one run with the best values or the closest."""
    scenario = example.trace.world.scenario
    runs = sum(part.estimate.replications for part in answer.tried)
    which = f"seed {example.trace.world.seed}, {runs} runs"
    wish = [answer.objective or "the smallest values"]
    wish += [] if answer.goal is None else [f"with {answer.goal}"]
    return ReportPage(
        title=scenario.name,
        lead=f"Which {' and '.join(map(setting_noun, answer.paths))}? Wanted: {', '.join(wish)}.",
        answer=answer.best.name if answer.met else "No combination meets the goal",
        facts=[*_optimum_facts(answer, example)],
        sections=[*_optimum_sections(answer, example)],
        made_from=made_from(scenario.name, which),
    )


def _optimum_facts(answer: Optimum, example: Result) -> Iterator[Fact]:
    best = answer.best
    question = "What does best?" if answer.met else "What comes closest?"
    yield Fact(question, best.name, plan_text.optimum_headline(answer))
    sure = "Sure" if answer.sure else "Not sure"
    tried = f"{len(answer.tried):,} of {answer.count:,} combinations were tried."
    if answer.open:
        tried += f" {len(answer.open):,} of them could not be distinguished from it."
    yield Fact("How sure is that?", sure, tried)
    if len(answer.frontier) > 1:
        most = max(answer.frontier, key=lambda part: part.people_reached)
        said = f"Earliest: {answer.frontier[0].name}. Most people: {most.name}."
        priced = [part for part in answer.frontier if isfinite(part.cost)]
        if priced:
            cheapest = min(priced, key=lambda part: part.cost)
            said += f" Cheapest: {cheapest.name}."
        yield Fact("What else could be had?", f"{len(answer.frontier)} beaten by none", said)
    if isfinite(best.cost):
        yield _cost_fact(best.cost, best.estimate, example)
    campaigns = len(example.summary.campaigns)
    yield holding_fact("What holds it back?", holding(best.estimate.runs), campaigns)


def _optimum_sections(answer: Optimum, example: Result) -> Iterator[Section]:
    best = answer.best
    if remarks := plan_text.optimum_sentences(answer):
        yield Section("Remarks", [Notes([text.removeprefix("Warning: ") for text in remarks])])
    caption = (
        "Every combination tried: mean cost, or people reached, against the median finish of its "
        "runs. A ring marks those that no other is better than in finish, cost and reach at once."
    )
    shown = picture("frontier", answer.plot.frontier, caption)
    yield Section("Evidence", [Grid([shown]), *plan_text.optimum_tables(answer)])
    yield from _by_campaign(best.estimate, best.name, example)
    drawn: list[Part] = list(run_pictures(example))
    if drawn:
        yield Section(f"One run with {best.name}", drawn)
