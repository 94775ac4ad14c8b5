"""The manager's sheet: one A4 page for every kind of result, in every language."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import dialsim
from dialsim.errors import DialsimError
from dialsim.experiments.experiment_text import amount_text
from dialsim.experiments.forecast import forecast
from dialsim.experiments.known_bounds import UNKNOWN
from dialsim.experiments.optimum import optimize
from dialsim.experiments.plan import plan
from dialsim.experiments.replications import Replications, replicate
from dialsim.experiments.run_figures import RunFigures, figures_of
from dialsim.experiments.sweep import Sweep, compare, sweep
from dialsim.experiments.variants import SettingChange, Variant
from dialsim.interface.instants import DAY, minute_text, ms_of
from dialsim.language import LANGUAGES, language
from dialsim.report.sheet import MOST_ROWS, MOST_WEEKS, ManagerSheet, _Sentences, sheet_of
from report.pages import ACME, GOAL, LINES, Reader, acme, clients

LONG = "งวดมกราคมของลูกค้าประกันภัย-AVeryLongNameWithoutSpaces" * 6
SONGKRAN = dialsim.load(Path(__file__).parents[2] / "scenarios" / "songkran.yaml")
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


@pytest.mark.parametrize("kind", MADE)
def test_a_sheet_has_all_its_parts_in_both_languages(kind: str) -> None:
    english, thai = sheet(kind), sheet(kind, "th")
    for made in (english, thai):
        assert made.decision
        assert made.risk
        assert made.finish
        assert made.reached
        assert made.assumptions
        assert made.cost
        assert sum(share for _, _, share in made.cost_parts) == pytest.approx(1, abs=0.01)
        assert any(day.lines and day.hours for week in made.weeks for day in week)
        assert Reader(made.html()).words
    assert not re.search("[ก-๙]", re.sub("งวดมกราคม.*?…|มกราคม", "", english.decision))
    assert "2569" in thai.finish[0]
    assert "2026" not in thai.finish[0]
    assert [row.reached for row in thai.rows] == [row.reached for row in english.rows]
    assert len(english.rows) <= MOST_ROWS
    assert len(english.weeks) <= MOST_WEEKS


def test_what_a_sheet_has_no_room_for_is_said() -> None:
    made = sheet("long sweep")
    assert made.more_rows == "and 6 more in report.html"
    assert made.more_days.startswith("The calendar goes on until")
    assert sum(row.is_chosen for row in made.rows) == 1


def test_a_run_says_its_finish_reach_and_cost() -> None:
    made, summary = sheet("run"), found("run").summary
    assert made.decision == (
        f"As planned, calling is done by {minute_text(ms_of(summary.finish))}, with "
        f"{summary.people_reached} of {summary.people} people "
        f"({100 * summary.reach_share:.0f} %) reached."
    )
    assert made.cost[0] == f"{amount_text('cost', summary.cost)} THB"
    parts = {name: amount for name, amount, _ in made.cost_parts}
    assert parts["dials"] == f"{summary.cost_of_dials:,.1f}"


def test_days_have_holidays_hours_and_lines_by_time() -> None:
    made = sheet_of(dialsim.run(SONGKRAN), "th")
    days = [day for week in made.weeks for day in week if day.state != "outside"]
    assert [(day.label, day.holiday, day.hours, day.lines) for day in days[:4]] == [
        ("10", "", "8–20", "4–8"),
        ("11", "", "8–18", "4"),
        ("12", "", "", ""),
        ("13", "วันสงกรานต์", "10–16", "2"),
    ]
    assert days[2].state == "closed"
    assert [day.mark for day in days].count("เสร็จ") == 1
    shares = [day.reached or 0 for day in days]
    assert shares == sorted(shares)


def test_the_main_risk_is_the_first_of_the_documented_order() -> None:
    scenario = ACME.scenario()
    runs = replicate(scenario, 20, jobs=1).figures

    def risk(*, later: int = 0, one: bool = False, **values: float) -> str:
        changed = [moved(run, k, later * (k % 3 == 0), **values) for k, run in enumerate(runs)]
        return sheet_of(Replications(scenario, 3, changed[:1] if one else changed)).risk

    rule = {"compliance_one a day_repeated": 7.0}
    assert "12 people are lost" in risk(people_lost=12, later=2 * DAY, **rule)
    assert "“one a day”: 7" in risk(later=2 * DAY, **rule)
    assert "35 % calling runs over from Mon 5 Jan 2026" in risk(later=2 * DAY)
    assert "This is one run" in risk(one=True)
    assert "How people answer is assumed" in risk()
    doubtful = sheet("plan")
    assert doubtful.risk == "Whether the goal is met is not sure: more runs would tell." or (
        doubtful.risk.startswith("The goal is missed")
    )


@pytest.mark.parametrize(
    ("share", "words"),
    [(1, "virtually certain"), (0.99, "virtually certain"), (0.9, "very likely"),
     (0.7, "likely"), (0.5, "about as likely as not"), (0.2, "unlikely"), (0.05, "very unlikely")],
)  # fmt: skip
def test_probabilities_have_the_words_of_the_ipcc(share: float, words: str) -> None:
    assert _Sentences(language("en")).likelihood(share) == words


def test_a_goal_is_said_in_words() -> None:
    assert sheet("plan").lead == (
        "Goal: done by Mon 5 Jan 2026 10:24 in 95 % of the runs and at least 90 people reached on "
        "average"
    )
    assert sheet("optimum", "th").lead == "เป้าหมาย: ติดต่อได้มากที่สุด"


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(DialsimError, match='there is no language "xx" here: it is one of en, th'):
        sheet("run", "xx")


def test_a_plan_needs_its_scenario() -> None:
    with pytest.raises(DialsimError, match="needs the scenario that was varied"):
        sheet_of(found("plan"))
