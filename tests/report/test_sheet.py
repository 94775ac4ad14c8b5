"""The manager's sheet: one A4 page for every kind of result, in every language."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import dialsim
from dialsim.experiments.comparison import compare
from dialsim.experiments.forecast import forecast
from dialsim.experiments.known_bounds import UNKNOWN
from dialsim.experiments.optimum import optimize
from dialsim.experiments.plan import plan
from dialsim.experiments.replications import Replications, replicate
from dialsim.experiments.run_figures import RunFigures, figures_of
from dialsim.experiments.sweep import Sweep, sweep
from dialsim.experiments.variants import SettingChange, Variant
from dialsim.interface.instants import DAY
from dialsim.language import LANGUAGES
from dialsim.report.sheet import ManagerSheet, sheet_of
from report.pages import ACME, GOAL, LINES, acme, clients

LONG = "งวดมกราคมของลูกค้าประกันภัย-AVeryLongNameWithoutSpaces" * 6
COSTS = {"perDial": 0.1, "perMinute": 1.2, "perReached": 3, "perLineDay": 35, "fixed": 1234567}


def moved(run: RunFigures, replication: int, later: float, **values: float) -> RunFigures:
    """Return a run whose figures are other ones: the finish later by ms, and values as given."""
    scopes = tuple(
        replace(part, values={**part.values, "finish": part.values["finish"] + later, **values})
        for part in run.scopes
    )
    return replace(run, replication=replication, scopes=scopes)


def long_scenario() -> Any:
    """A scenario of five parts of the cost and a holiday, with names as long as they may be."""
    sketch = acme(5).also(name=LONG[:190], description=LONG, costs=COSTS)
    own = {f"2026-01-{day:02}": LONG[:190] for day in range(5, 32, 3)}
    return sketch.also(calendar={"holidays": "TH", "ownHolidays": own}).scenario()


def long_runs(runs: int, later: int = 0) -> list[RunFigures]:
    """Runs of the long scenario that take a month and more, and lose people."""
    first = figures_of(dialsim.run(long_scenario()))
    return [moved(first, k, (30 + later + k) * DAY, people_lost=123456) for k in range(runs)]


def long_sweep() -> Sweep:
    names = [f"{n}, {LONG}"[:190] for n in range(12)]
    variants = [Variant(name, (SettingChange(LINES, "5"),)) for name in names]
    runs = [long_runs(25, 9 * n) for n in range(12)]
    return Sweep(long_scenario(), variants, runs, [UNKNOWN] * 12)


VARY = {LINES: [4, 8], "organizations.Acme.campaigns.มกราคม.schedule.maxAttempts": [1, 2]}
MADE: dict[str, Callable[[], Any]] = {
    "run": lambda: dialsim.run(ACME.scenario()),
    "replications": lambda: replicate(ACME.scenario(), 6, jobs=1),
    "forecast": lambda: forecast(ACME.scenario(), 19, jobs=1),
    "sweep": lambda: sweep(ACME.scenario(), {LINES: [4, 6, 8]}, 6, jobs=1),
    "comparison": lambda: compare(
        {"january-as-planned": ACME.scenario(), "january-more-lines": acme(7).scenario()}, 4, jobs=1
    ),
    "plan": lambda: plan(
        ACME.scenario(), LINES, (2, 12), GOAL, replications=5, max_replications=5, jobs=1
    ),
    "optimum": lambda: optimize(
        ACME.scenario(), VARY, maximize="mean(people_reached)", replications=4, max_replications=4,
        jobs=1,
    ),
    "many campaigns": lambda: dialsim.run(
        clients(3, 6, name=LONG[:190]).also(costs=COSTS).scenario()
    ),
    "long replications": lambda: Replications(long_scenario(), 3, long_runs(25)),
    "long sweep": long_sweep,
}  # fmt: skip


@cache
def found(kind: str) -> Any:
    return MADE[kind]()


def sheet(kind: str, code: str = "en") -> ManagerSheet:
    return sheet_of(found(kind), code, scenario=ACME.scenario())


@pytest.mark.parametrize("code", LANGUAGES)
@pytest.mark.parametrize("kind", MADE)
def test_a_sheet_is_one_page_on_paper_and_needs_no_scrolling_on_a_phone(
    browser: Any, kind: str, code: str
) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 780}, offline=True)
    page = context.new_page()
    page.set_content(sheet(kind, code).html())
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
    (box,) = {*re.findall(rb"/MediaBox\s*\[([^\]]*)\]", printed)}
    assert [*map(float, box.split())] == pytest.approx([0, 0, 595, 842], abs=1)  # A4 in points
    context.close()
