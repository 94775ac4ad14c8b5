"""Bottlenecks and levers on the pages of sweeps and plans, also computed by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from math import ceil
from pathlib import Path

import numpy as np
import pytest

import dialsim
from dialsim.experiments import experiment_text
from dialsim.experiments.plan import Plan, plan
from dialsim.experiments.replications import replicate
from dialsim.experiments.run_figures import RunFigures, ScopeFigures, figures_of
from dialsim.experiments.sweep import Sweep, sweep
from dialsim.experiments.variants import SettingChange, Variant
from dialsim.interface.instants import THAI
from dialsim.report import what_if
from dialsim.report.what_if import (
    SHORTER_RETRIES,
    FurtherRuns,
    GoalWhatIf,
    StudiedVariant,
    against_goal,
    asked_of,
    goal_fact,
    goal_table,
    holding,
    what_would_help,
)
from dialsim.report.writing import plan_report, sweep_report
from dialsim.results.bottleneck import Bottleneck, Reason
from dialsim.results.summary import Summary
from dialsim.scenario.scenario import Scenario
from report.pages import ACME, BETA, Reader, acme

pytestmark = pytest.mark.usefixtures("pictures_undrawn")

LINES = "organizations.Acme.maxConcurrentCalls"
PAIRS = 6


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return ACME.scenario()


@pytest.fixture(scope="module")
def swept(scenario: Scenario) -> Sweep:
    return sweep(scenario, {LINES: [4, 8]}, 4, jobs=1)


def planned(scenario: Scenario, goal: str, between: tuple[int, int] = (2, 5)) -> Plan:
    return plan(scenario, LINES, between, goal, replications=4, max_replications=4, jobs=1)


def measured(answer: Plan, scenario: Scenario, pairs: int = PAIRS) -> GoalWhatIf:
    value = Variant("it", (SettingChange(answer.path, str(answer.estimate.value)),))
    runs = replicate(value.of(scenario), answer.estimate.replications, jobs=1).figures
    place = StudiedVariant(value, runs, asked_of(answer)[0])
    (found,) = what_would_help(scenario, None, [place], FurtherRuns(pairs))
    assert found is not None
    return against_goal(answer, found)


def by_hand(*overrides: str) -> list[Summary]:
    varied = ACME.scenario(overrides)
    return [dialsim.run(varied, replication=number).summary for number in range(PAIRS)]


def finishes(runs: list[Summary]) -> list[float]:
    return [run.finish.timestamp() for run in runs if run.finish is not None]


def difference(found: Sweep) -> str:
    """Return the difference of the second variant's finish, as on the page."""
    table = found.differences()
    table = table[(table["scope"] == "run") & (table["figure"] == "finish_seconds")]
    return experiment_text.difference_text(table.iloc[0])


def page_of(found: Sweep, further: FurtherRuns, baseline: str = "4 lines") -> Reader:
    compared = Sweep(
        found.scenario, found.variants, found.figures, found.all_bounds, baseline=baseline
    )
    return Reader(sweep_report(compared, further))


def test_a_sweep_s_levers_come_to_what_their_runs_by_hand_come_to(
    scenario: Scenario, swept: Sweep
) -> None:
    studied = StudiedVariant(swept.variants[1], swept.figures[1])
    (found,) = what_would_help(scenario, None, [studied], FurtherRuns(PAIRS))
    assert found is not None
    names = [lever.name for lever in found.levers]
    assert names[0] == "2 lines more (10)"
    attempts = found.levers[names.index("one attempt more")]
    base = by_hand(f"{LINES}=8")
    for lever, overrides in (
        (found.levers[0], [f"{LINES}=10"]),
        (
            attempts,
            [
                f"{LINES}=8",
                "organizations.0.campaigns.0.schedule.maxAttempts=3",
                "organizations.0.campaigns.1.schedule.maxAttempts=2",
                "organizations.0.campaigns.1.schedule.retryInterval=3600000",
            ],
        ),
    ):
        runs = by_hand(*overrides)
        earlier = [a - b for a, b in zip(finishes(runs), finishes(base), strict=True)]
        more = [a.people_reached - b.people_reached for a, b in zip(runs, base, strict=True)]
        assert lever.finish.estimate == pytest.approx(np.median(earlier))
        assert lever.reached.estimate == pytest.approx(sum(more) / PAIRS)


def test_the_page_of_a_sweep_helps_the_baseline_and_the_recommended_variant(swept: Sweep) -> None:
    page = page_of(swept, FurtherRuns(2))
    for name in ("4 lines, the baseline", "8 lines"):
        assert f"What holds it back: {name}?" in page.words
        assert f"What would help: {name}?" in page.words
    assert "4 lines (baseline), changed by finish done by Mon 5 Jan people reached" in page.words
    assert "8 lines, changed by finish done by Mon 5 Jan people reached" in page.words
    assert "in 2 pairs of runs that meet the same chance (20 runs in all)" in page.words


def test_a_baseline_that_is_recommended_is_helped_once(swept: Sweep) -> None:
    words = page_of(swept, FurtherRuns(2), "8 lines").words
    assert words.count("What would help: ") == 1
    assert "(10 runs in all)" in words


def test_every_variant_of_a_sweep_is_named_with_what_holds_it_back(swept: Sweep) -> None:
    page = page_of(swept, FurtherRuns(0))
    assert "What holds each variant back" in [text for _, text in page.headings]
    for variant, runs in zip(swept.variants, swept.figures, strict=True):
        held = dialsim.run(variant.of(swept.scenario), replication=0).summary.held_back
        assert held is not None
        assert runs[0].scopes[0].held_back == held
        most = holding(runs)
        assert most is not None
        assert f"{variant.name} {most.reason} {most.how_often} {most.said}" in page.words
    command = "dialsim report DIR --what-if 6 measures it, DIR being the folder of this page."
    assert f"What would help It was left out, as asked. {command}" in page.words


TRIES = "organizations.Acme.campaigns.0.schedule.maxAttempts"


def test_who_is_done_first_because_fewer_people_are_reached_is_not_the_answer(
    scenario: Scenario,
) -> None:
    variants = [
        Variant("as it is", ()),
        Variant("one attempt", (SettingChange(TRIES, "1"),)),
        Variant("eight lines", (SettingChange(LINES, "8"),)),
    ]
    found = sweep(scenario, variants, 8, jobs=1)
    page = page_of(found, FurtherRuns(0), "as it is")
    runs = found.runs.groupby("variant")[["finish_seconds", "people_reached"]]
    finish, reached = runs.median()["finish_seconds"], runs.mean()["people_reached"]
    assert finish.idxmin() == "one attempt"
    assert finish["eight lines"] < finish["as it is"]
    fewer = reached["as it is"] - reached["one attempt"]
    assert fewer > reached["as it is"] / 6
    assert page.headings[1][1] == "Recommended: eight lines"
    assert "What finishes first? eight lines Half of the runs are done by Mon 5 Jan " in page.words
    unconsidered = f"fewer people than as it is: one attempt ({fewer:,.0f})."
    assert unconsidered in page.words
    other = page_of(found, FurtherRuns(0), "one attempt")
    assert "What finishes first? one attempt" in other.words
    assert "What reaches most people? as it is" in other.words


def test_where_no_variant_finishes_in_half_of_its_runs_that_is_said(scenario: Scenario) -> None:
    found = sweep(acme(end="Mon 09:09").scenario(), {LINES: [4, 5]}, 3, jobs=1)
    words = page_of(found, FurtherRuns(0)).words
    assert "What finishes first? None finishes in half of its runs" in words


def test_variants_that_are_alike_in_a_figure_have_no_best(scenario: Scenario) -> None:
    same = sweep(scenario, {"organizations.Acme.name": ["Acme", "Zenith"]}, 2, jobs=1)
    page = page_of(same, FurtherRuns(0), "name=Acme")
    assert "What finishes first? All are alike" in page.words
    assert page.headings[1][1].startswith("2 variants")


def test_runs_held_back_by_the_same_causes_are_counted_together_whichever_leads() -> None:
    def held(*reasons: Reason) -> RunFigures:
        sentence = f"{' and '.join(reasons)}: said"
        cause = Bottleneck("Acme/January", reasons[0], sentence, 0.5, reasons[1:])
        return RunFigures(0, None, (ScopeFigures("run", None, None, {}, cause),))

    slots, pacing = Reason.LINES, Reason.PACING
    found = holding([held(slots), held(pacing, slots), held(slots, pacing), held(pacing, slots)])
    assert found is not None
    assert (found.how_often, found.reason) == ("in 3 of 4 runs", "pacing and lines")


def test_figures_kept_as_text_come_back_with_what_held_the_run_back(scenario: Scenario) -> None:
    figures = figures_of(dialsim.run(scenario))
    assert figures.scopes[0].held_back is not None
    again = type(figures).from_text(figures.to_text())
    assert again.to_text() == figures.to_text()  # what has no value is NaN, which equals nothing
    assert again.scopes[0].held_back == figures.scopes[0].held_back
    assert replace(again, scopes=()) == replace(figures, scopes=())


def test_a_plan_s_levers_are_set_against_the_goal_as_their_runs_by_hand_are(
    scenario: Scenario,
) -> None:
    answer = planned(scenario, "p95(finish) <= 2026-01-05T03:20:00Z")
    assert (answer.met, answer.estimate.value) == (False, 5)
    found = measured(answer, scenario)
    lines = next(lever for lever in found.levers if lever.value == "2 lines more (7)")
    base, more = finishes(by_hand(f"{LINES}=5")), finishes(by_hand(f"{LINES}=7"))
    rank = ceil(0.95 * PAIRS) - 1
    for estimate, runs in ((found.base, base), (lines, more)):
        assert estimate.findings[0].estimate == pytest.approx(1000 * sorted(runs)[rank])
    assert (found.base.met, lines.met) == (False, True)
    fact = goal_fact(found)
    assert fact.answer == "2 lines more (7) or retries after 30 min"
    latest = max(more)
    when = datetime.fromtimestamp(latest, THAI).strftime("%H:%M")
    assert fact.detail == (
        f"With 2 lines more (7), p95(finish) is Mon 5 Jan {when} instead of Mon 5 Jan 10:24, "
        f"in 6 runs each. Not sure: so few runs may meet it by chance. {SHORTER_RETRIES}"
    )
    table = goal_table(found, "5 lines")
    assert table.columns == ("p95(finish)", "meets it")
    assert table.rows[0] == ("the goal", "≤ Mon 5 Jan 10:20", "")
    assert table.rows[1][:2] == ("5 lines, as it is", "Mon 5 Jan 10:24")
    assert table.rows[1][2].startswith("no")
    assert table.rows[2][2].startswith("yes")


def test_the_page_of_a_plan_that_nothing_meets_says_what_would_help_at_the_closest(
    scenario: Scenario,
) -> None:
    answer = planned(scenario, "p95(finish) <= 2026-01-05T03:20:00Z")
    page = Reader(plan_report(answer, scenario, None, FurtherRuns(PAIRS)))
    assert page.headings[1][1].startswith("No number of lines from ")
    held = dialsim.run(scenario).summary.held_back
    assert held is not None
    reason, _, said = held.sentence.partition(": ")
    assert (
        f"What holds it back with 5 lines? {reason} ({held.campaign}) In 4 of 4 "
        f"runs; in the first of them {said}"
    ) in page.words
    assert "What would help to meet it? 2 lines more (7) or retries after 30 min" in page.words
    assert "What would help" in [text for _, text in page.headings]


def test_where_no_lever_meets_the_goal_that_is_said(scenario: Scenario) -> None:
    answer = planned(scenario, "p50(finish) <= 2026-01-05T02:10:00Z", (2, 4))
    fact = goal_fact(measured(answer, scenario))
    assert fact.answer == "No small change alone"
    assert re.fullmatch(r"None of \d small changes meets the goal\.", fact.detail)


@pytest.mark.slow
def test_the_page_of_a_plan_that_is_met_says_what_else_would_help(scenario: Scenario) -> None:
    answer = planned(scenario, "p95(finish) <= 2026-01-05T03:24:00Z", (2, 9))
    assert answer.met
    page = Reader(plan_report(answer, scenario, None, FurtherRuns(PAIRS)))
    assert "What would help" in [text for _, text in page.headings]
    assert f"{answer.value} lines, as it is" in page.words


def test_a_plan_or_a_sweep_of_the_retry_interval_says_that_a_shorter_one_is_optimistic(
    scenario: Scenario,
) -> None:
    path = "organizations.Acme.campaigns.0.schedule.retryInterval"
    found = sweep(scenario, {path: [3600000, 1800000]}, 2, jobs=1)
    page = page_of(found, FurtherRuns(0), "retries after 1 h").words
    assert page.count(SHORTER_RETRIES) == 1
    assert f"against retries after 1 h: {difference(found)}." in page
    longer = page_of(found, FurtherRuns(0), "retries after 30 min").words
    assert SHORTER_RETRIES not in longer
    goal = "p95(finish) <= 2026-01-05T03:18:00Z"
    answer = plan(
        scenario, path, (1800000, 1800001), goal, replications=2, max_replications=2, jobs=1
    )
    assert SHORTER_RETRIES in Reader(plan_report(answer, scenario, None, FurtherRuns(0))).words


def test_a_goal_about_one_organization_is_helped_there() -> None:
    scenario = BETA.scenario()
    answer = planned(scenario, "p95(Second.finish) <= 2026-01-05T03:05:00Z", (4, 4))
    assert asked_of(answer) == ("Acme", "Second")
    page = Reader(plan_report(answer, scenario, None, FurtherRuns(2)))
    assert "2 lines more (6)" in page.words
    assert "What holds it back with 4 lines? " in page.words
    assert "(Acme/Second)" in page.words
    two = "p95(Second.finish) <= 5d and p95(Acme.finish) <= 5d"
    assert asked_of(planned(scenario, two, (4, 4))) == ("Acme", None)
    three = "p95(Second.finish) <= 5d and p95(Slow.finish) <= 5d"
    assert asked_of(planned(scenario, three, (4, 4))) == (None, None)


@pytest.mark.slow
def test_pages_are_the_same_for_any_number_of_processes(scenario: Scenario, swept: Sweep) -> None:
    one, two = (sweep_report(swept, FurtherRuns(2, jobs=jobs)) for jobs in (1, 2))
    assert one == two


@pytest.mark.slow
def test_runs_in_the_store_are_not_made_again(swept: Sweep, tmp_path: Path) -> None:
    done: list[int] = []
    further = FurtherRuns(2, jobs=1, store=tmp_path, progress=lambda at, _: done.append(at))
    first = page_of(swept, further)
    assert len(done) == 20
    again = page_of(swept, further)
    assert len(done) == 20
    assert again.words == first.words


def test_an_experiment_of_many_people_is_not_helped_without_being_asked(
    swept: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(what_if, "BUDGET", 3000)
    words = page_of(swept, FurtherRuns()).words
    assert words.count("What would help: 4 lines, the baseline? Not measured") == 1
    why = (
        "It takes 3 runs or more of each of 10 variants, which call 4,800 people; without being "
        "asked a page calls 3,000. dialsim report DIR --what-if 6 measures it, DIR being the "
        "folder of this page."
    )
    assert words.count(why) == 3  # of both variants, and where the table would stand
    monkeypatch.setattr(what_if, "BUDGET", 4800)
    assert "(30 runs in all)" in page_of(swept, FurtherRuns()).words


def test_a_plan_that_was_not_helped_says_why(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(what_if, "BUDGET", 100)
    answer = planned(scenario, "p95(finish) <= 2026-01-05T03:24:00Z", (5, 5))
    words = Reader(plan_report(answer, scenario, None, FurtherRuns())).words
    assert "What would help? Not measured It takes 3 runs or more of each of 5 variants" in words
    assert "What would help It takes 3 runs" in words
    words = Reader(plan_report(answer, scenario, None, FurtherRuns(0))).words
    assert (
        "What would help? Not measured It was left out, as asked. dialsim report DIR "
        "--what-if 6 measures it, DIR being the folder of this page."
    ) in words


def test_where_a_plan_has_more_runs_than_pairs_the_page_says_which_are_compared(
    scenario: Scenario,
) -> None:
    answer = planned(scenario, "p95(finish) <= 2026-01-05T03:24:00Z", (5, 5))
    few = Reader(plan_report(answer, scenario, None, FurtherRuns(2))).words
    assert "The runs of 5 lines are the first 2 of those above." in few
