"""The page of a sweep: which variant is best at what, and which differences are real."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any

from dialsim.experiments import experiment_text
from dialsim.experiments.comparison import Comparison
from dialsim.experiments.plots import names_of
from dialsim.report.effects import effect_table, holding, holding_fact
from dialsim.report.page import SIZE, Fact, Grid, Part, Picture, ReportPage, Section, picture
from dialsim.report.run_page import help_fact, how_measured, made_from, retry_notes
from dialsim.report.what_if import SHORTER_RETRIES, Help, NotMeasured, WhatIf, shortens_retries
from dialsim.results.summary_text import FigureTable

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.run_figures import RunFigures
    from dialsim.experiments.sweep import Sweep


def sweep_page(
    found: Sweep, compared: pd.DataFrame, baseline: str, seed: int, further: Mapping[str, Help]
) -> ReportPage:
    """The page of a sweep; `compared` are its differences to the variant `baseline`.

    `further` has the variants that are looked at more closely, with their levers, if measured.
    """
    best = best_variants(found, compared)
    count = len(found.variants)
    which = f"seed {seed}, {count} variants with {found.replications} replications each"
    title, lead, answer = found.scenario.name, found.scenario.description, ""
    if isinstance(found, Comparison):
        title, lead = " or ".join(variant.name for variant in found.variants), ""
        answer = experiment_text.comparison_headline(found, compared, baseline)
    return ReportPage(
        title=title,
        lead=lead or "",
        answer=answer or _answer(found, compared, best),
        facts=[*_facts(found, compared, baseline, best), *_closer(found, baseline, further)],
        sections=[*_sections(found, compared, baseline, further)],
        made_from=made_from(found.scenario.name, which),
    )


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the variants: of which estimate the value is to be small (1) or large (-1).

    `without_loss` says that a variant doesn't count that reaches fewer people than the baseline.
    """

    figure: str
    estimate: str
    sign: int
    text: str
    verdict: str
    without_loss: bool


_QUESTIONS = (
    Question("finish_seconds", "p50", 1, "What finishes first?", "Done first", True),
    Question(
        "people_reached", "mean", -1, "What reaches most people?", "Most people reached", False
    ),
    Question("cost", "mean", 1, "What costs least?", "Lowest cost", True),
)
_SMALL = 0.01
"""Losing so few of the people reached is no reason to put a variant aside."""


def best_variants(found: Sweep, compared: pd.DataFrame) -> dict[Question, str]:
    """The best variant by each figure in which they differ, most important figure first.

    The first to finish, and the cheapest, are not among those that really reach fewer people than
    the baseline: to call fewer people is always sooner done.
    """
    lost, best = _lost(compared), {}
    for question, values in _values(found).items():
        kept = {name: value for name, value in values.items()
                if not (question.without_loss and name in lost)} or values  # fmt: skip
        if len(set(values.values())) > 1 or len(found.variants) == 1:
            best[question] = min(kept, key=lambda name: question.sign * kept[name])
    return best


def _values(found: Sweep) -> dict[Question, dict[str, float]]:
    """The value of each figure, of the variants that have it in all their runs."""
    table = found.intervals()
    rows = experiment_text.by_variant(table[table["scope"] == "run"])
    known = {
        question: {
            variant.name: float(rows[variant.name, question.figure][question.estimate])
            for variant in found.variants
            if isfinite(rows[variant.name, question.figure]["mean"])
        }
        for question in _QUESTIONS
        if question.figure != "cost" or found.scenario.costs is not None
    }
    return {question: values for question, values in known.items() if values}


def _lost(compared: pd.DataFrame) -> dict[str, float]:
    """By how many people the variants fall behind the baseline that really reach fewer."""
    rows = compared[(compared["scope"] == "run") & (compared["figure"] == "people_reached")]
    return {
        row["variant"]: -row["difference"]
        for row in rows.to_dict("records")
        if row["real"] and -row["difference"] > _SMALL * row["baseline_mean"]
    }


def _answer(found: Sweep, compared: pd.DataFrame, best: Mapping[Question, str]) -> str:
    """The first to finish, or what else tells the variants apart; and whether that is chance."""
    if not best:
        return experiment_text.sweep_headline(found)
    question, name = next(iter(best.items()))
    said = f"{question.verdict}: {name}"
    if name in _lost(compared):
        return f"{said}, which reaches fewer people"
    row = _rows(compared).get((name, question.figure))
    return f"{said}, which may be chance" if row is not None and not row["real"] else said


def _facts(
    found: Sweep, compared: pd.DataFrame, baseline: str, best: Mapping[Question, str]
) -> Iterator[Fact]:
    """The best variant by each figure, and how it differs from the baseline."""
    sooner, lost = _with_shorter_retries(found, baseline), _lost(compared)
    known = _values(found)
    if _QUESTIONS[0] not in known:
        yield _unfinished(found)
    for question, values in known.items():
        name = best.get(question)
        said = _said(found, question, values[name or next(iter(values))])
        against = "" if name is None else _against(compared, name, question.figure, baseline)
        notes = [f"{said}{against}."]
        if name in lost:
            notes.append(f"It reaches {lost[name]:,.0f} people fewer than {baseline}.")
        first = min(values, key=lambda other: question.sign * values[other])
        if name is not None and first != name and first in lost:
            notes.append(
                f"{first}: {_said(found, question, values[first])}, but it reaches "
                f"{lost[first]:,.0f} people fewer than {baseline}."
            )
        if question.sign < 0 and name is not None:
            notes.append(_price(compared, name))
        if name in sooner:
            notes.append(SHORTER_RETRIES)
        yield Fact(question.text, name or "All are alike", " ".join(filter(None, notes)))
    yield _sure(found, compared, baseline)


def _unfinished(found: Sweep) -> Fact:
    """Where no variant finishes in all its runs: which does most often."""
    table = found.intervals()
    rows = experiment_text.by_variant(table[table["scope"] == "run"])
    done = {
        variant.name: int(row["runs"] - row["unfinished"])
        for variant in found.variants
        if (row := rows[variant.name, "finish_seconds"])["runs"]
    }
    question = _QUESTIONS[0].text
    if not done:
        return Fact(question, "Nothing was scheduled")
    most = max(done, key=lambda name: done[name])
    often = f"{most} finishes in {done[most]} of {found.replications} runs, the others in fewer."
    if len({*done.values()}) == 1:
        often = f"Each finishes in {done[most]} of {found.replications} runs."
    lost = experiment_text.amount_text("people_lost", rows[most, "people_lost"]["mean"])
    detail = f"{often} With {most} {lost} people are lost on average."
    return Fact(question, "None finishes in all its runs", detail)


def _price(compared: pd.DataFrame, name: str) -> str:
    """What reaching most people costs in time, if it does."""
    row = _rows(compared).get((name, "finish_seconds"))
    if row is None or not row["real"] or not row["difference"] > 0:
        return ""
    return f"Finish: {experiment_text.difference_text(row)}."


def _with_shorter_retries(found: Sweep, baseline: str) -> set[str]:
    """The variants that leave less time between attempts than the baseline."""
    changed = {change.path for variant in found.variants for change in variant.changes}
    if not any(path.endswith(".retryInterval") for path in changed):
        return set()  # to make a scenario may mean to read a long CSV again
    scenarios = {variant.name: variant.of(found.scenario) for variant in found.variants}
    base = scenarios[baseline]
    return {name for name, varied in scenarios.items() if shortens_retries(varied, base)}


def _closer(found: Sweep, baseline: str, further: Mapping[str, Help]) -> Iterator[Fact]:
    """What holds the baseline back and the best, and what would help there."""
    figures = _by_name(found)
    for name, measured in further.items():
        which = f"{name}, the baseline" if name == baseline else name
        campaigns = sum(part.scope == "campaign" for part in figures[name][0].scopes)
        question = f"What holds it back: {which}?"
        yield holding_fact(question, holding(figures[name]), campaigns)
        if measured is not None:
            yield help_fact(f"What would help most: {which}?", measured)


def _by_name(found: Sweep) -> dict[str, tuple[RunFigures, ...]]:
    names = (variant.name for variant in found.variants)
    return dict(zip(names, found.figures, strict=True))


def _said(found: Sweep, question: Question, value: float) -> str:
    if question.figure == "finish_seconds":
        return f"Half of the runs are done by {experiment_text.when_text(value, found)} Thai time"
    costs = found.scenario.costs
    unit = costs.currency if question.figure == "cost" and costs else "people"
    return f"{experiment_text.amount_text(question.figure, value)} {unit} on average"


def _against(compared: pd.DataFrame, variant: str, figure: str, baseline: str) -> str:
    row = _rows(compared).get((variant, figure))
    return "" if row is None else f"; against {baseline}: {experiment_text.difference_text(row)}"


def _rows(compared: pd.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """The differences of whole runs by variant and figure."""
    return experiment_text.by_variant(compared[compared["scope"] == "run"])


def _sure(found: Sweep, compared: pd.DataFrame, baseline: str) -> Fact:
    shown = compared[
        (compared["scope"] == "run")
        & compared["figure"].isin(["finish_seconds", "people_reached", "cost"])
    ]
    real = int(shown["real"].sum())
    return Fact(
        "How sure is that?",
        f"{found.replications} runs of each variant",
        f"{real} of {len(shown)} differences to {baseline} are real: beyond chance with 95 % "
        "confidence. All variants met the same chance, so they are compared run by run.",
    )


def _sections(
    found: Sweep, compared: pd.DataFrame, baseline: str, further: Mapping[str, Help]
) -> Iterator[Section]:
    (variants, *minus), campaigns = experiment_text.sweep_tables(found, compared, baseline)
    said = (
        "After ± stands half the width of the 95 % interval of the mean difference. Where the runs "
        "are too few, too alike or too skewed for one, the pairs that differ are counted."
    )
    if isinstance(found, Comparison):
        said_differently = [*experiment_text.comparison_sentences(found)]
        changed = experiment_text.changed_tables(found)
        yield Section("What the files say differently", [*said_differently, *changed])
    yield Section("Variants", [variants])
    if minus:
        yield Section("Differences", [said, *minus])
    if campaigns:
        yield Section("Each campaign", campaigns)
    yield Section("What holds each variant back", [_holding_table(found)])
    parts = [*_help_parts(found, baseline, further)]
    if parts:
        yield Section("What would help", parts)
    yield Section("Pictures", [Grid([*_pictures(found)])])


def _holding_table(found: Sweep) -> FigureTable:
    rows = [
        (name, held.reason, held.how_often, held.said)
        for name, runs in _by_name(found).items()
        if (held := holding(runs)) is not None
    ]
    return FigureTable("Variant", ("reason", "how often", "in the first such run"), tuple(rows))


def _help_parts(found: Sweep, baseline: str, further: Mapping[str, Help]) -> Iterator[Part]:
    """The levers of each variant that is looked at more closely."""
    yield from (
        said
        for said in dict.fromkeys(
            reason.said for reason in further.values() if isinstance(reason, NotMeasured)
        )
    )
    measured = {name: found for name, found in further.items() if isinstance(found, WhatIf)}
    if not measured:
        return
    yield how_measured("the variant as it is", [*measured.values()])
    currency = found.scenario.costs.currency if found.scenario.costs else None
    for name, what_if in measured.items():
        which = f"{name} (baseline), changed by" if name == baseline else f"{name}, changed by"
        yield effect_table(what_if, currency, which)
    yield from retry_notes(measured.values())


def _pictures(found: Sweep) -> Iterator[Picture]:
    """As high as the names take that stand below one another."""
    plot = found.plot
    width, height = SIZE
    size = (width, max(height, 1.4 + 0.36 * names_of(found)))
    band = "with the band that holds nine runs of ten"
    said = f"When half of the runs of each variant are done, {band}."
    yield picture("finish", plot.curve, said, size)

    reached = partial(plot.curve, "people_reached")
    said = f"How many people each variant reaches on average, {band}."
    yield picture("reached", reached, said, size)
    if found.scenario.costs is not None:
        said = f"What each variant costs on average, {band}."
        yield picture("cost", partial(plot.curve, "cost"), said, size)
        said = (
            "Mean cost against the instant at which half of the runs are done; a ring marks the "
            "variants that no other beats in both."
        )
        yield picture("trade", plot.cost, said, size)
