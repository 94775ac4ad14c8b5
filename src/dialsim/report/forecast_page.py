"""The page of a forecast: that of replications, from today on, with what has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dialsim.report.page import Fact, Part, ReportPage, Section
from dialsim.report.replications_page import replications_page
from dialsim.report.what_if import Help
from dialsim.results.result import Result

if TYPE_CHECKING:
    from dialsim.experiments.forecast import Forecast


def forecast_page(found: Forecast, first: Result, measured: Help) -> ReportPage:
    """The page of a forecast; `first` and `measured` are as in `replications_page`."""
    page = replications_page(found.runs, first, measured)
    if found.figures is None:
        return page
    facts = forecast_facts(found, page.facts)
    sections = [*page.sections]
    if found.earlier:
        said: list[Part] = [*found.change_sentences(), found.history_table()]
        sections.insert(0, Section("Since the last forecast", said))
    return replace(page, answer=found.answer(), facts=facts, sections=sections)


def forecast_facts(found: Forecast, facts: Sequence[Fact]) -> list[Fact]:
    """The facts of a forecast: when, and whom, in place of those that its runs have as such.

    `facts` are those of `replications_facts`; something must be scheduled.
    """
    _, _, _, *others = facts
    reach = found.reach_text().removeprefix("it will reach ")
    return [
        Fact("When is it done?", found.half_text(), found.span_sentence()),
        Fact("Whom will it reach?", *reach.split(", ", 1)),
        *others,
    ]
