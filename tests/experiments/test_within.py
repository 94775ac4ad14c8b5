"""Searches that stop when their time is up, and the certainty of the leader on the way."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

import dialsim
from cli.program import dialsim as program
from dialsim.errors import ExperimentError
from dialsim.experiments import replications as runner
from dialsim.experiments.plan_text import optimum_headline, plan_headline
from experiments.test_optimum import ATTEMPTS, CHANCY, LINES

GRID: dict[str, object] = {LINES: "1..3", ATTEMPTS: "1..2"}


@pytest.fixture
def second_per_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that moves on by a second whenever a run is finished."""
    monkeypatch.setattr(runner, "monotonic", map(float, count()).__next__)


def optimum(**more: Any) -> dialsim.Optimum:
    return dialsim.optimize(
        CHANCY, GRID, "mean(people_reached) >= 30", minimize="mean(cost)", jobs=1, **more
    )


@pytest.mark.usefixtures("second_per_run")
def test_a_search_that_is_out_of_time_returns_its_leader_and_is_not_sure() -> None:
    said: list[str] = []
    stopped = optimum(within=70, known=lambda text: said.append(str(text)))
    whole = optimum()
    assert stopped.stopped_after == 70
    assert sum(part.estimate.replications for part in stopped.tried) <= 70
    assert not stopped.sure
    assert stopped.best.values == whole.best.values
    assert 0 < stopped.certainty < 1
    assert optimum_headline(stopped).startswith(
        "Stopped after 1 min 10 s, with what was known then: "
        f"{whole.best.name} leads, {int(100 * stopped.certainty)} % certain; 6 of 6 combinations"
    )
    assert stopped.to_dict()["stopped_after"] == 70
    assert said
    assert " leads, " in said[0]
    assert " % certain; 6 tried" in said[0]


@pytest.mark.usefixtures("second_per_run")
def test_a_first_look_that_is_cut_short_counts_with_the_runs_that_all_have() -> None:
    stopped = optimum(within=16)
    assert {part.estimate.replications for part in stopped.tried} == {2, 3}
    assert not any(part.estimate.sure for part in stopped.tried)
    with pytest.raises(ExperimentError, match="before any setting had two runs"):
        optimum(within=4)


def test_with_time_enough_the_answer_is_that_without_a_limit() -> None:
    whole, limited = optimum(), optimum(within=10_000)
    assert limited.to_dict() == whole.to_dict()
    assert whole.stopped_after is None
    assert whole.sure
    assert whole.certainty == 1


@pytest.mark.usefixtures("second_per_run")
def test_a_plan_of_one_setting_stops_with_the_values_tried() -> None:
    goal = "p90(finish) <= 30m"
    arguments: dict[str, Any] = {"vary": LINES, "between": "1..16", "goal": goal, "jobs": 1}
    said: list[str] = []
    stopped = dialsim.plan(CHANCY, within=40, known=lambda t: said.append(str(t)), **arguments)
    assert stopped.stopped_after == 40
    assert sum(part.replications for part in stopped.tried) <= 40
    assert stopped.met
    assert plan_headline(stopped).startswith(
        "Stopped after 40 s, with what was known then: best is "
    )
    assert " % certain to meet the goal: p90(finish) <= 30m" in plan_headline(stopped)
    assert "1 line: missed (" in said[0]
    assert "), 16 lines: met (" in said[0]
    with pytest.raises(ExperimentError, match="before any setting had two runs"):
        dialsim.plan(CHANCY, within=1, **arguments)


@pytest.mark.parametrize(
    ("within", "says"), [("soon", "must be a duration"), ("0s", "must be more than 0")]
)
def test_a_time_that_is_none_is_refused(within: str, says: str) -> None:
    asked = ("scenarios/first-campaign.yaml", "--vary", "lines=1..9", "--goal", "mean(cost) <= 5")
    done = program("plan", *asked, "--within", within)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
