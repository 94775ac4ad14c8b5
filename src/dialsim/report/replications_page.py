"""Reports of replications (how certain are the results of a scenario?) and of forecasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf, isfinite, isnan
from typing import TYPE_CHECKING, Any

from dialsim.experiments import experiment_text
from dialsim.experiments.intervals import rank
from dialsim.experiments.run_figures import RunFigures, run_values
from dialsim.interface.instants import short_text
from dialsim.interface.phrases import counted, percent
from dialsim.report.page import Fact, Grid, Notes, Part, ReportPage, Section, picture
from dialsim.report.run_page import (
    cost_split,
    help_fact,
    help_parts,
    made_from,
    run_pictures,
)
from dialsim.report.what_if import Help, holding, holding_fact
from dialsim.results.figures import COST_PARTS, cost_parts
from dialsim.results.result import Result
from dialsim.results.summary_text import FigureTable, ValueText

if TYPE_CHECKING:
    from dialsim.experiments.forecast import Forecast
    from dialsim.experiments.replications import Replications
    from dialsim.scenario.service import Costs


def replications_page(runs: Replications, first: Result, measured: Help) -> ReportPage:
    """Return the report of replications; `first` is replication 0, for its figures."""
    table = runs.intervals()
    rows = {row["figure"]: row for row in table[table["scope"] == "run"].to_dict("records")}
    facts = replications_facts(rows, runs)
    if measured:
        # Before the cost, which is the only fact that may be missing
        facts.insert(4, help_fact(measured))
    return ReportPage(
        title=runs.scenario.name,
        lead=runs.scenario.description or "",
        answer=replications_answer(rows["finish_seconds"], runs),
        facts=facts,
        sections=_sections(runs, first, measured),
        made_from=made_from(
            runs.scenario.name, f"seed {runs.seed}, {counted(len(runs), 'replication')}"
        ),
    )


def replications_facts(rows: Mapping[Any, Any], runs: Replications) -> list[Fact]:
    """Return the answers to a planner's questions from many runs; `rows` are estimates by figure.

    Will it finish, how sure is that, whom does it reach, what is the bottleneck, and, if the
    scenario has costs, what does it cost.
    """
    scenario = runs.scenario
    campaigns = sum(len(organization.campaigns) for organization in scenario.organizations)
    return [
        _finishes(rows),
        _sure(rows["finish_seconds"], runs),
        _reach(rows, runs),
        holding_fact("What holds it back?", holding(runs.figures), campaigns),
        *_cost(rows, scenario.costs),
    ]


def replications_answer(finish: Mapping[Any, Any], runs: Replications) -> str:
    """Return the answer in one sentence without a full stop; `finish` is the estimate of the
    finish.
    """
    if not finish["runs"]:
        return "Nothing was scheduled"
    if finish["p95"] == inf:
        return (
            f"Not sure to finish: not done in {finish['unfinished']} of {counted(len(runs), 'run')}"
        )
    # The upper limit, not the estimate: the sentence makes a promise.
    if isfinite(finish["p95_high"]):
        done_by = experiment_text.when_text(finish["p95_high"], runs)
        return f"95 % sure to be done by {done_by} Thai time"
    return (
        f"Half of the runs are done by {experiment_text.when_text(finish['p50'], runs)} Thai time"
    )


def _finishes(rows: Mapping[Any, Any]) -> Fact:
    finish = rows["finish_seconds"]
    question, count, never = "Will it finish?", finish["runs"], finish["unfinished"]
    if not count:
        return Fact(question, "No", "Nothing was scheduled.")
    if not never:
        runs = "the run" if count == 1 else f"all {count} runs"
        return Fact(question, f"Yes, in {runs}", experiment_text.day_sentence(rows))
    share = percent((count - never) / count)
    lost = experiment_text.amount_text("people_lost", rows["people_lost"]["mean"])
    said = f"{never} did not finish. On average {lost} people are lost."
    said = " ".join(filter(None, [said, experiment_text.day_sentence(rows)]))
    return Fact(question, f"In {share} of {counted(count, 'run')}", said)


def _sure(finish: Mapping[Any, Any], runs: Replications) -> Fact:
    """Return the fact on the median finish, and on their 95 % quantile."""
    half, late = (experiment_text.when_text(finish[part], runs) for part in ("p50", "p95"))
    said = f"Half of the runs are done by {half}."
    if not isfinite(finish["p95"]):
        return Fact("How sure is that?", counted(len(runs), "run"), said)
    if isfinite(finish["p95_low"]) and isfinite(finish["p95_high"]):
        low, high = (
            experiment_text.when_text(finish[f"p95_{end}"], runs) for end in ("low", "high")
        )
        said += (
            f" 95 % of these are done by {late}; with 95 % confidence, 95 % of all that chance may "
            f"bring are done by an instant between {low} and {high}."
        )
    else:
        said += (
            f" 95 % of these are done by {late}, but {counted(len(runs), 'run')} can't tell how "
            f"late it may get: {finish['p95_enough']} or more would."
        )
    return Fact("How sure is that?", counted(len(runs), "run"), said)


def _reach(rows: Mapping[Any, Any], runs: Replications) -> Fact:
    reached, share = rows["people_reached"], rows["reach_share"]
    text = experiment_text.amount_text("people_reached", reached["mean"])
    people = round(runs.figures[0].scopes[0].values["people"])
    answer = f"{text} of {people:,} people on average ({100 * share['mean']:.1f} %)"
    ends = (experiment_text.amount_text("people_reached", reached[name]) for name in ("p05", "p95"))
    return Fact("Whom does it reach?", answer, f"{' to '.join(ends)} in nine of ten of these runs.")


def _cost(rows: Mapping[Any, Any], costs: Costs | None) -> list[Fact]:
    if costs is None:
        return []
    cost = rows["cost"]
    mean, low, high = (
        experiment_text.amount_text("cost", cost[name]) for name in ("mean", "p05", "p95")
    )
    parts = cost_parts({name: rows[name]["mean"] for name in ("cost", *COST_PARTS)})
    split = cost_split(parts, partial(experiment_text.amount_text, "cost"))
    detail = f"{low} to {high} in nine of ten of these runs. {split}".strip()
    return [Fact("What does it cost?", f"{mean} {costs.currency} on average", detail)]


def _sections(runs: Replications, first: Result, measured: Help) -> list[Section]:
    sections = []
    remarks = [*first.summary.warnings, *experiment_text.precision_sentences(runs)]
    if remarks:
        sections.append(Section("Remarks", [Notes(remarks)]))
    if len(first.summary.campaigns) > 1:
        table = campaign_table(runs.figures, first.summary.currency)
        sections.append(Section("Campaign by campaign", [table]))
    if measured is not None:
        sections.append(Section("What would help", help_parts(measured, first.summary.currency)))
    sections.append(Section("All runs", [Grid(_pictures(runs))]))
    sections.append(
        Section("Figures of all runs", [Grid(experiment_text.replications_tables(runs))])
    )
    shown = run_pictures(first)
    if shown:
        sections.append(Section("One of the runs, replication 0", shown))
    return sections


def campaign_table(runs: Sequence[RunFigures], currency: str | None) -> FigureTable:
    """Return a table with a row per campaign and one for all."""
    parts = [(part.scope, part.organization, part.campaign) for part in runs[0].scopes]
    listed = [
        (part, [run.scopes[number].values for run in runs])
        for number, part in enumerate(parts)
        if part[0] != "organization"
    ]
    # The row of all campaigns comes last
    listed.sort(key=lambda part: part[0][0] == "run")
    finishes = [_sorted("finish", values) for _, values in listed]
    columns: dict[str, list[str]] = {
        "organization": [organization or "" for (_, organization, _), _ in listed],
        "median finish": [_done_by(known, 0.5) for known in finishes],
        "95 % done": [_done_by(known, 0.95) for known in finishes],
        "people": [_mean("people", values) for _, values in listed],
        "reached": [_mean("people_reached", values) for _, values in listed],
        "lost": [_mean("people_lost", values) for _, values in listed],
        f"cost, {currency}": [_mean("cost", values) for _, values in listed],
    }
    if len({organization for _, organization, _ in parts if organization}) == 1:
        del columns["organization"]
    if not run_values(runs, "people_lost").any():
        del columns["lost"]
    if currency is None:
        del columns[f"cost, {currency}"]
    names = [campaign or "all" for (_, _, campaign), _ in listed]
    rows = tuple(zip(names, *columns.values(), strict=True))
    return FigureTable("Campaign", tuple(columns), rows, fixed=frozenset({len(rows) - 1}))


def _sorted(figure: str, values: Sequence[Mapping[str, float]]) -> list[float]:
    # NaN cannot be sorted. A run in which nothing was scheduled never finishes.
    return sorted(inf if isnan(run[figure]) else run[figure] for run in values)


def _done_by(finishes: Sequence[float], share: float) -> ValueText:
    """Return the quantile of the finishes for a share of the runs."""
    instant = finishes[rank(len(finishes), share) - 1]
    return ValueText(short_text(round(instant)) if isfinite(instant) else "never", instant)


def _mean(figure: str, values: Sequence[Mapping[str, float]]) -> str:
    return experiment_text.amount_text(figure, sum(run[figure] for run in values) / len(values))


def _pictures(runs: Replications) -> list[Any]:
    progress = (
        f"Share of people reached over time in {counted(len(runs), 'run')}: the line is the middle "
        "of them, the bands hold half and nine tenths; ticks above are the runs' finishes."
    )
    finish = "Share of runs that are done by each instant."
    return [
        picture("fan", runs.plot.progress, progress),
        picture("finishes", runs.plot.finish, finish),
    ]


def forecast_page(found: Forecast, first: Result, measured: Help) -> ReportPage:
    """Return the report of a forecast; `first` and `measured` as in `replications_page`."""
    page = replications_page(found.runs, first, measured)
    if found.figures is None:
        return page
    facts = forecast_facts(found, page.facts)
    sections = [*page.sections]
    if found.notes:
        sections.insert(0, Section("What does it rest on?", [*found.notes]))
    if found.earlier:
        said: list[Part] = [*found.change_sentences(), found.history_table()]
        sections.insert(0, Section("Since the last forecast", said))
    return replace(page, answer=found.answer(), facts=facts, sections=sections)


def forecast_facts(found: Forecast, facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts of a forecast. Its finish, certainty and reach replace those of its runs.

    `facts` come from `replications_facts`; something must be scheduled.
    """
    # The first three are finish, certainty and reach, which a forecast states in its own words.
    _, _, _, *others = facts
    reach = found.reach_text().removeprefix("it will reach ")
    return [
        Fact("When is it done?", found.half_text(), found.span_sentence()),
        Fact("Whom will it reach?", *reach.split(", ", 1)),
        *others,
    ]
