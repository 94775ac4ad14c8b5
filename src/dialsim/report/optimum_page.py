"""The page of an optimum: the best combination, the evidence for it, and what else could be had."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING

from dialsim.experiments import plan_text
from dialsim.report.effects import holding, holding_fact
from dialsim.report.page import Fact, Grid, Notes, Part, ReportPage, Section, picture
from dialsim.report.replications_page import campaign_table
from dialsim.report.run_page import made_from
from dialsim.report.run_pictures import run_pictures
from dialsim.results.result import Result

if TYPE_CHECKING:
    from dialsim.experiments.optimum import Optimum


def optimum_page(answer: Optimum, example: Result) -> ReportPage:
    """The page of an optimum; `example` is one run with the best, or with what came closest."""
    scenario = example.trace.world.scenario
    runs = sum(part.evidence.replications for part in answer.tried)
    which = f"seed {example.trace.world.seed}, {runs} runs"
    wish = [answer.objective or "the smallest values"]
    wish += [] if answer.goal is None else [f"with {answer.goal}"]
    return ReportPage(
        title=scenario.name,
        lead=f"Which {' and '.join(path.rpartition('.')[2] for path in answer.paths)}? "
        f"Wanted: {', '.join(wish)}.",
        answer=answer.best.name if answer.met else "No combination meets the goal",
        facts=[*_facts(answer, example)],
        sections=[*_sections(answer, example)],
        made_from=made_from(scenario.name, which),
    )


def _facts(answer: Optimum, example: Result) -> Iterator[Fact]:
    best = answer.best
    question = "What does best?" if answer.met else "What comes closest?"
    yield Fact(question, best.name, plan_text.optimum_headline(answer))
    sure = "Sure" if answer.sure else "Not sure"
    tried = f"{len(answer.tried):,} of {answer.count:,} combinations were tried."
    if answer.open:
        tried += f" {len(answer.open):,} of them could not be told from it."
    yield Fact("How sure is that?", sure, tried)
    if len(answer.frontier) > 1:
        most = max(answer.frontier, key=lambda part: part.people_reached)
        said = f"Earliest: {answer.frontier[0].name}. Most people: {most.name}."
        priced = [part for part in answer.frontier if isfinite(part.cost)]
        if priced:
            cheapest = min(priced, key=lambda part: part.cost)
            said += f" Cheapest: {cheapest.name}."
        yield Fact("What else could be had?", f"{len(answer.frontier)} beaten by none", said)
    campaigns = len(example.summary.campaigns)
    yield holding_fact("What holds it back?", holding(best.evidence.runs), campaigns)


def _sections(answer: Optimum, example: Result) -> Iterator[Section]:
    best = answer.best
    if remarks := plan_text.optimum_sentences(answer):
        yield Section("Remarks", [Notes([text.removeprefix("Warning: ") for text in remarks])])
    caption = (
        "Every combination tried: mean cost, or people reached, against when half of its runs are "
        "done. A ring marks those that no other is better than in finish, cost and reach at once."
    )
    shown = picture("frontier", answer.plot.frontier, caption)
    yield Section("Evidence", [Grid([shown]), *plan_text.optimum_tables(answer)])
    if len(example.summary.campaigns) > 1:
        said = f"Of the {best.evidence.replications} runs with {best.name}."
        table = campaign_table(best.evidence.runs, example.summary.currency)
        yield Section("Campaign by campaign", [said, table])
    drawn: list[Part] = list(run_pictures(example))
    if drawn:
        yield Section(f"One run with {best.name}", drawn)
