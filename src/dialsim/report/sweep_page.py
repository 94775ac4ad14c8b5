"""The page of a sweep: which variant is best at what, and which differences are real."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any

from dialsim.experiments import wording
from dialsim.experiments.plots.curves import names_of
from dialsim.report.effects import effect_table
from dialsim.report.holding import holding, holding_fact
from dialsim.report.inline import SIZE, picture
from dialsim.report.levers import SHORTER_RETRIES, shortens_retries
from dialsim.report.page import Fact, Facts, Page, Part, Picture, Pictures, Section, Table, Text
from dialsim.report.run_page import help_fact, how_measured, made_from, retry_notes
from dialsim.report.what_if import Help, NotMeasured, WhatIf
from dialsim.results.wording import FigureTable

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.run_figures import RunFigures
    from dialsim.experiments.sweep import Sweep

_Rows = dict[tuple[str, str], dict[str, Any]]


def sweep_page(
    found: Sweep,
    compared: pd.DataFrame,
    baseline: str,
    seed: int,
    helped: Mapping[str, Help],
) -> Page:
    """The page of a sweep; `compared` are its differences to the variant `baseline`.

    `helped` are the variants that are looked at more closely, with their levers, if measured.
    """
    best = best_variants(found)
    count = len(found.variants)
    which = f"seed {seed}, {count} variants with {found.replications} replications each"
    headline = wording.sweep_headline(found)
    return Page(
        title=found.scenario.name,
        lead=found.scenario.description or "",
        answer=f"{next(iter(best)).verdict}: {next(iter(best.values()))}" if best else headline,
        facts=Facts([*_facts(found, compared, baseline, best), *_closer(found, baseline, helped)]),
        sections=[*_sections(found, compared, baseline, helped)],
        made_from=made_from(found.scenario.name, which),
    )


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the variants: of which figure the mean is to be small (1) or large (-1)."""

    figure: str
    sign: int
    text: str
    verdict: str


_QUESTIONS = (
    Question("finish_seconds", 1, "What finishes first?", "Done first"),
    Question("people_reached", -1, "What reaches most people?", "Most people reached"),
    Question("cost", 1, "What costs least?", "Lowest cost"),
)


def best_variants(found: Sweep) -> dict[Question, str]:
    """The best variant by each figure in which they differ, most important figure first."""
    best = {}
    for question, means in _means(found).items():
        if len(set(means.values())) > 1 or len(found.variants) == 1:
            best[question] = min(means, key=lambda name: question.sign * means[name])
    return best


def _means(found: Sweep) -> dict[Question, dict[str, float]]:
    """The means of each figure, of the variants that have it in all their runs."""
    table = found.intervals()
    rows = wording.by_variant(table[table["scope"] == "run"])
    known = {
        question: {
            variant.name: float(mean)
            for variant in found.variants
            if isfinite(mean := rows[variant.name, question.figure]["mean"])
        }
        for question in _QUESTIONS
        if question.figure != "cost" or found.scenario.costs is not None
    }
    return {question: means for question, means in known.items() if means}


def _facts(
    found: Sweep, compared: pd.DataFrame, baseline: str, best: Mapping[Question, str]
) -> Iterator[Fact]:
    """The best variant by each figure, and how it differs from the baseline."""
    differences = wording.by_variant(compared[compared["scope"] == "run"])
    sooner = _with_shorter_retries(found, baseline)
    for question, means in _means(found).items():
        name = best.get(question)
        mean = _mean(found, question.figure, means[name or next(iter(means))])
        against = "" if name is None else _against(differences, name, question.figure, baseline)
        note = f" {SHORTER_RETRIES}" if name in sooner else ""
        yield Fact(question.text, name or "All are alike", f"{mean} on average{against}.{note}")
    yield _sure(found, compared, baseline)


def _with_shorter_retries(found: Sweep, baseline: str) -> set[str]:
    """The variants that leave less time between attempts than the baseline."""
    changed = {change.path for variant in found.variants for change in variant.changes}
    if not any(path.endswith(".retryInterval") for path in changed):
        return set()  # to make a scenario may mean to read a long CSV again
    scenarios = {variant.name: variant.of(found.scenario) for variant in found.variants}
    base = scenarios[baseline]
    return {name for name, varied in scenarios.items() if shortens_retries(varied, base)}


def _closer(found: Sweep, baseline: str, helped: Mapping[str, Help]) -> Iterator[Fact]:
    """What holds the baseline back and the best, and what would help there."""
    figures = _by_name(found)
    for name, measured in helped.items():
        which = f"{name}, the baseline" if name == baseline else name
        campaigns = sum(part.scope == "campaign" for part in figures[name][0].scopes)
        question = f"What holds it back: {which}?"
        yield holding_fact(question, holding(figures[name]), campaigns)
        if measured is not None:
            yield help_fact(f"What would help most: {which}?", measured)


def _by_name(found: Sweep) -> dict[str, tuple[RunFigures, ...]]:
    names = (variant.name for variant in found.variants)
    return dict(zip(names, found.figures, strict=True))


def _mean(found: Sweep, figure: str, mean: float) -> str:
    if figure == "finish_seconds":
        return f"{wording.when_text(mean, found)} Thai time"
    unit = found.scenario.costs.currency if figure == "cost" and found.scenario.costs else "people"
    return f"{wording.amount_text(figure, mean)} {unit}"


def _against(differences: _Rows, variant: str, figure: str, baseline: str) -> str:
    if (variant, figure) not in differences:
        return ""
    return f"; against {baseline}: {wording.difference_text(differences[variant, figure])}"


def _sure(found: Sweep, compared: pd.DataFrame, baseline: str) -> Fact:
    shown = compared[
        (compared["scope"] == "run")
        & compared["figure"].isin(["finish_seconds", "people_reached", "cost"])
    ]
    real = int(shown["real"].sum())
    return Fact(
        "How sure is that?",
        f"{found.replications} runs of each variant",
        f"{real} of {len(shown)} differences to {baseline} are real: their 95 % intervals exclude "
        "0. All variants met the same chance, so they are compared run by run.",
    )


def _sections(
    found: Sweep, compared: pd.DataFrame, baseline: str, helped: Mapping[str, Help]
) -> Iterator[Section]:
    tables = wording.sweep_tables(found, compared, baseline)
    said = "After ± stands half the width of the 95 % interval of the mean difference."
    yield Section("Variants", [Table(tables[0])])
    for table in tables[1:]:
        yield Section("Differences", [Text(said), Table(table)])
    yield Section("What holds each variant back", [Table(_holding_table(found))])
    parts = [*_help_parts(found, baseline, helped)]
    if parts:
        yield Section("What would help", parts)
    yield Section("Pictures", [Pictures([*_pictures(found)])])


def _holding_table(found: Sweep) -> FigureTable:
    rows = [
        (name, held.reason, held.how_often, held.said)
        for name, runs in _by_name(found).items()
        if (held := holding(runs)) is not None
    ]
    return FigureTable("Variant", ("reason", "how often", "in the first such run"), tuple(rows))


def _help_parts(found: Sweep, baseline: str, helped: Mapping[str, Help]) -> Iterator[Part]:
    """The levers of each variant that is looked at more closely."""
    yield from (
        Text(said)
        for said in dict.fromkeys(
            reason.said for reason in helped.values() if isinstance(reason, NotMeasured)
        )
    )
    measured = {name: found for name, found in helped.items() if isinstance(found, WhatIf)}
    if not measured:
        return
    pairs = next(iter(measured.values())).pairs
    runs = sum(what_if.runs for what_if in measured.values())
    yield Text(how_measured("the variant as it is", pairs, runs))
    currency = found.scenario.costs.currency if found.scenario.costs else None
    for name, what_if in measured.items():
        which = f"{name} (baseline), changed by" if name == baseline else f"{name}, changed by"
        yield Table(effect_table(what_if, currency, which))
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
