"""First estimates: close to runs, left out where they would mislead, never decisive."""

from __future__ import annotations

import logging
from importlib import import_module
from math import inf
from typing import Any

import numpy as np
import pytest

import dialsim
from cli.program import ROOT
from dialsim.experiments import fluid, optimum, search
from dialsim.experiments.fluid import USUAL_ERROR, estimate_text, first_estimate, seems_met
from dialsim.experiments.goal import read_goal
from dialsim.experiments.plan_text import plan_sentences
from dialsim.experiments.run_figures import RunFigures
from experiments.scenarios import CHANCY, LIMIT, crowd

FIRST = "scenarios/first-campaign.yaml"
SCHEDULE = "organizations.Acme.campaigns.January.schedule"
# The segment that answers takes longer calls than the other one.
SEGMENTS = [
    "organizations.Acme.campaigns.January.recipients.segments={gold: 0.5, other: 0.5}",
    "behaviours.default.answeredOdds.bySegment={gold: 20, other: 0.05}",
    "lines=4",
]


def first(*overrides: str, people: int = 2000) -> dialsim.Scenario:
    return dialsim.load(ROOT / FIRST, overrides=[f"people={people}", *overrides])


def estimated(scenario: dialsim.Scenario) -> dict[str, Any]:
    estimate = first_estimate(scenario)
    assert estimate is not None
    return dict(estimate.scopes[-1].values)


def test_without_chance_the_estimate_is_the_run() -> None:
    # 1,200 calls of a minute on 4 lines
    values = estimated(crowd(1200, 4))
    (run,) = dialsim.replicate(crowd(1200, 4), 1, jobs=1).figures
    for name in ("people_reached", "dials", "talk_minutes", "cost", "cost_per_reached"):
        assert values[name] == pytest.approx(run.scopes[0].values[name], rel=1e-6), name
    assert values["finish"] == pytest.approx(run.scopes[0].values["finish"], abs=90_000)


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["lines=10", "January.retryInterval=4h", "costs.perLineDay=35"],
        ["lines=200", "January.maxAttempts=5"],
        ["engine.order=retriesFirst", "engine.callsPerSecond=0.2"],
        ["January.end=Mon 12:00"],
        ["organizations.Acme.lines={Mon 10:00-11:00: 4}"],
        SEGMENTS,
    ],
)
def test_an_estimate_is_close_to_the_mean_of_runs(overrides: list[str]) -> None:
    scenario = first(*overrides)
    values, runs = estimated(scenario), dialsim.replicate(scenario, 4, jobs=1).runs
    for name in ("people_reached", "dials", "cost", "people_lost"):
        assert values[name] == pytest.approx(runs[name].mean(), rel=0.04, abs=1.0), name


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (["organizations.Acme.campaigns.January.atMost=3"], "atMost and reserved"),
        (["engine.releaseInterval=1m"], "engine.releaseInterval"),
        (["engine.queueLimit=unlimited"], "engine.queueLimit"),
        (["clock.end=2026-01-05T05:00:00Z"], "clock.end"),
        (["behaviours.default.answeredOdds.byCallerIdUse={per1000: 0.9, recovery: 1d}"],
         "fatigue of caller IDs"),
        (["people=200"], None),
    ],
)  # fmt: skip
def test_where_the_approximation_does_not_apply_it_names_the_reason(
    overrides: list[str], reason: str | None
) -> None:
    scenario = first(*overrides, people=400)
    assert first_estimate(scenario) is None
    said = None if reason is None else f"No first estimate: the approximation leaves out {reason}."
    assert estimate_text(scenario) == said
    few = {"jobs": 1, "replications": 2, "max_replications": 2}
    found = dialsim.plan(scenario, LIMIT, (20, 21), "mean(finish) <= 9d", **few)
    assert found.first_estimate == found.to_dict()["first_estimate"] == said
    best = dialsim.optimize(scenario, {LIMIT: [20, 21]}, minimize="mean(finish)", **few)
    assert best.first_estimate == said


def test_a_campaign_without_lines_is_never_done() -> None:
    values = estimated(first("lines=0"))
    assert (values["finish"], values["dials"], values["cost_per_reached"]) == (inf, 0, inf)
    assert "not done" in str(estimate_text(first("lines=0")))


def test_an_estimate_says_that_it_is_one_and_how_wrong_it_may_be() -> None:
    text = str(estimate_text(first()))
    assert text.startswith("First estimate, before any run: done Mon 5 Jan 2026 ")
    assert text.endswith(f"({USUAL_ERROR}).")


def test_goals_seem_to_be_met_by_the_estimate() -> None:
    scenario, estimate = first(), first_estimate(first())
    for goal, met in {
        "p95(finish) <= 3d": True,
        "p95(finish) <= 1h": False,
        "prob(people_reached >= 100) >= 0.9": True,
        "prob(people_reached >= 100) <= 0.1": False,
        "mean(cost) <= 1 and mean(people_reached) >= 100": False,
        "mean(webhooks.lost) <= 1": None,
    }.items():
        assert seems_met(read_goal(goal, scenario), estimate) is met, goal


@pytest.mark.parametrize(
    ("goal", "estimate"),
    [
        ("mean(finish) <= Tue 12:00", "2 lines"),
        ("mean(finish) <= Mon 09:30", "no value"),
        ("mean(finish) <= 30d", "1 line"),
        ("mean(webhooks.lost) <= 1", None),
    ],
)
def test_a_plan_begins_with_the_value_that_its_segments_seem_to_need(
    goal: str, estimate: str | None
) -> None:
    scenario = first(*SEGMENTS, people=600)
    found = dialsim.plan(scenario, LIMIT, (1, 4), goal, jobs=1, replications=2, max_replications=20)
    said = f"First estimate, before any run, of what is enough: {estimate} ({USUAL_ERROR})."
    if estimate is None:
        said = f"No first estimate: the approximation leaves out {goal}."
    assert plan_sentences(found)[-1] == said
    if found.met and estimate is not None:
        assert f"{found.value} line" in estimate


def wrong(scenario: dialsim.Scenario) -> RunFigures | None:
    """An estimate that is far too good with few lines, and far too bad with many."""
    estimate = first_estimate(scenario)
    assert estimate is not None
    lines = scenario.organizations[0].max_concurrent_calls
    for part in estimate.scopes:
        part.values["finish"] = (estimate.start or 0) + 3.6e6 * lines
        part.values["cost"] = 1.0 * lines
    return estimate


def test_a_plan_is_the_same_with_right_wrong_and_no_estimates(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def answer() -> tuple[Any, ...]:
        found = dialsim.plan(
            crowd(400, 4, **CHANCY), LIMIT, (1, 60), "p95(finish) <= 2h", jobs=1,
            max_replications=40,
        )  # fmt: skip
        return found.value, found.met, found.estimate.replications, len(found.tried)

    with caplog.at_level(logging.INFO, "dialsim"):
        right = answer()
    assert "First estimate, before any run, of what is enough: " in caplog.text
    monkeypatch.setattr(search, "first_estimate", lambda _: None)
    none = answer()
    monkeypatch.setattr(search, "first_estimate", wrong)
    assert right[:3] == none[:3] == answer()[:3]
    assert right[3] <= none[3]


def test_an_optimum_tries_what_promises_most_first_and_decides_by_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer() -> tuple[str, list[str]]:
        looked: list[str] = []
        found = dialsim.optimize(
            crowd(300, 4, **CHANCY), {LIMIT: "2,4,8,12", "January.maxAttempts": "1,2"},
            "p95(finish) <= 1d", minimize="mean(finish)", jobs=1, max_replications=20,
            known=looked.append,
        )  # fmt: skip
        return found.best.name, looked

    monkeypatch.setattr(optimum, "_AT_ONCE", 1)
    best, looked = answer()
    assert looked[0].startswith(f"{best} leads")
    monkeypatch.setattr(optimum, "first_estimate", wrong)
    other, looked = answer()
    assert other == best
    assert not looked[0].startswith(f"{best} leads")


@pytest.mark.slow(minutes=2)
@pytest.mark.parametrize("people", [300, 3_000, 30_000])
def test_the_usual_error_holds_on_random_scenarios(
    people: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    found = import_module("fluid").sample(40, 20260105, people)
    assert "4 %" in fluid.USUAL_ERROR
    # Runs of 300 people vary by as much themselves.
    most = 0.06 if people == 300 else 0.04
    for figure in ("cost", "people_reached", "dials"):
        assert np.quantile(np.abs(found[figure]), 0.95) <= most, figure
    assert np.mean(found["day"]) >= 0.9
    assert np.quantile(np.abs(found["finish"]), 0.5) <= 0.25  # hours
