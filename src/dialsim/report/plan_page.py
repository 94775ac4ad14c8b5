"""The page of a plan: the value that meets the goal, and the evidence for it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from dialsim.experiments import wording
from dialsim.report.inline import picture
from dialsim.report.page import Fact, Facts, Notes, Page, Picture, Pictures, Section, Table
from dialsim.report.run_page import held_back_fact, made_from
from dialsim.report.run_pictures import run_pictures
from dialsim.results.result import Result
from dialsim.results.wording import reach_text

if TYPE_CHECKING:
    from dialsim.experiments.evidence import Evidence
    from dialsim.experiments.plan import Plan


def plan_page(answer: Plan, example: Result) -> Page:
    """The page of a plan; `example` is one run with the value found, or with what came closest."""
    scenario = example.trace.world.scenario
    name = answer.path.rpartition(".")[2]
    which = f"seed {example.trace.world.seed}, {_runs(answer)} runs"
    return Page(
        title=scenario.name,
        lead=f"Which {name} meets the goal {answer.goal}?",
        answer=f"{name} = {answer.value}" if answer.met else "No value meets the goal",
        facts=Facts([*_facts(answer, example)]),
        sections=_sections(answer, example),
        made_from=made_from(scenario.name, which),
    )


def _runs(answer: Plan) -> int:
    return sum(part.replications for part in answer.tried)


def _facts(answer: Plan, example: Result) -> Iterator[Fact]:
    headline = wording.plan_headline(answer)
    yield Fact("What meets the goal?", str(answer.value) if answer.met else "Nothing", headline)
    sure = "Sure" if answer.evidence.sure else "Narrow"
    yield Fact("How sure is that?", sure, _said(answer.evidence))
    if answer.neighbour is not None:
        verdict = "does not do" if not answer.neighbour.met else "would do as well"
        said = f"{answer.neighbour.value} {verdict}"
        yield Fact("What about its neighbour?", said, _said(answer.neighbour))
    if answer.evidence.cost is not None:
        currency = example.summary.currency
        cost = wording.amount_text("cost", answer.evidence.cost)
        yield Fact("What does it cost?", f"{cost} {currency} on average")
    yield Fact("Whom does it reach?", reach_text(example.summary), "In one run with it.")
    yield held_back_fact(example.summary)


def _said(part: Evidence) -> str:
    """What the runs of a value say of each clause."""
    found = (
        f"{finding.clause.text}: {'yes' if finding.met else 'no'}, estimate "
        f"{wording.finding_text(finding, finding.estimate)}"
        for finding in part.findings
    )
    return f"{'; '.join(found)} ({part.replications} runs)."


def _sections(answer: Plan, example: Result) -> list[Section]:
    sections = []
    if answer.warnings:
        sections.append(Section("Remarks", [Notes([f"{text}." for text in answer.warnings])]))
    tables = [Table(table) for table in wording.plan_tables(answer)]
    sections.append(Section("Evidence", [Pictures([*_pictures(answer)]), *tables]))
    shown = run_pictures(example)
    if shown:
        name = answer.path.rpartition(".")[2]
        sections.append(
            Section(f"One run with {name} = {answer.evidence.value}", [Pictures(shown)])
        )
    return sections


def _pictures(answer: Plan) -> Iterator[Picture]:
    for number, finding in enumerate(answer.evidence.findings):
        caption = (
            f"Estimates of {finding.clause.text} at the {len(answer.tried)} values tried, with "
            "their intervals; the dashed line is the bound."
        )
        yield picture(f"clause{number}", partial(answer.plot.evidence, number), caption)
