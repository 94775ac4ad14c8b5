"""Calibrations in Python: their parts, their draws, and forecasts with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dialsim
from dialsim.errors import DialsimError, LogError
from dialsim.testing import Sketch
from logs.other_service import Service

SCENARIO = dialsim.scenario(150, lines=4, attempts=2, behaviour=0.4)


def log_of(scenario: dialsim.Scenario, folder: Path) -> dialsim.Log:
    return dialsim.read_log(dialsim.run(scenario, seed=3).write(folder))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dialsim.Calibration:
    return dialsim.calibrate(log_of(SCENARIO, tmp_path_factory.mktemp("log") / "run"))


def test_a_calibration_has_the_parts_of_an_answer(found: dialsim.Calibration) -> None:
    assert not found.sure  # 150 people called twice do not determine the concentration
    assert repr(found).startswith("<dialsim.Calibration of ")
    assert len(repr(found).splitlines()) <= 15
    assert "<table>" in found._repr_html_()
    assert [part for part in dir(found.plot) if not part.startswith("_")] == [
        "factors", "talk_times",
    ]  # fmt: skip


def test_the_frame_has_the_estimates_of_the_file(found: dialsim.Calibration) -> None:
    frame = found.frame.set_index("key")
    who = found.behaviours["default"].answering
    assert frame.loc["outcomes.answered", "value"] == who.outcomes["answered"].value
    assert frame.loc["answeredOdds.byAttempt.1", "value"] == pytest.approx(1.0)
    assert [*frame.index[~frame.sure]] == [
        f"people.{name}" for name in ("reachable", "deadNumbers", "concentration")
        if name not in who.determined
    ]  # fmt: skip
    assert (frame.low <= frame.high).all()
    assert frame.loc["people.concentration", "unit"] == ""
    assert set(frame.unit) >= {"share", "factor"}


def test_draws_are_behaviours_around_the_estimate_and_the_same_each_time(
    found: dialsim.Calibration,
) -> None:
    draws = found.draws
    assert draws == found.draws
    assert len(draws) == 50
    applied = found.apply(SCENARIO)
    shares = [draw.of(applied).behaviours["default"].outcomes.answered for draw in draws[:20]]
    answered = found.frame.set_index("key").loc["outcomes.answered"]
    assert len({*shares}) == 20
    assert np.mean([answered.low <= share <= answered.high for share in shares]) >= 0.75


def test_a_forecast_is_made_with_the_draws_and_prints_the_check_of_misfit(
    found: dialsim.Calibration,
) -> None:
    mine = found.forecast(SCENARIO, 20, seed=5, jobs=1)
    assert mine.draws == 50
    assert "Check of misfit: the log contradicts none of the estimates." in repr(mine)
    same = dialsim.forecast(found.apply(SCENARIO), 20, draws=found.draws, seed=5, jobs=1)
    pd.testing.assert_frame_equal(mine.frame, same.frame)


def test_a_misfit_is_printed_with_the_forecast(tmp_path: Path) -> None:
    file = tmp_path / "webhooks.jsonl"
    Service(people=900, lines=3, attempts=3, ring_tail=0.03).write(file, 1)
    found = dialsim.calibrate(dialsim.read_log(file))
    [first, *_] = found.misfit
    assert first.startswith("The log contradicts behaviour default: ")
    assert not found.sure
    assert f"{first}." in found.forecast(SCENARIO, 19, jobs=1).sentences()


def test_behaviours_by_campaign_and_agent_go_where_they_belong(tmp_path: Path) -> None:
    two = [{"name": "Reminder"}, {"name": "Survey"}]
    sketch = Sketch(4).having(agents=two)
    for campaign, agent in (("January", "Reminder"), ("February", "Survey")):
        sketch = sketch.campaign(campaign, recipients={"count": 90}, agent=agent)
    scenario = sketch.scenario()
    one_agent = scenario.with_({"organizations.0.campaigns.1.agent": "Reminder"})
    log = log_of(scenario, tmp_path / "run")
    by_agent = dialsim.calibrate(log, "agent").apply(scenario)
    assert [one.behaviour for one in by_agent.organizations[0].agents] == ["Reminder", "Survey"]
    by_campaign = dialsim.calibrate(log, "campaign").apply(scenario)
    assert [one.behaviour for one in by_campaign.organizations[0].agents] == ["January", "February"]
    with pytest.raises(DialsimError, match="no agent of the scenario has a behaviour; there are"):
        dialsim.calibrate(log, "agent").apply(SCENARIO)
    with pytest.raises(DialsimError, match="calls February and January: calibrate by agent"):
        dialsim.calibrate(log, "campaign").apply(one_agent)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda found: dialsim.calibrate("x"), "log must be a Log, from dialsim.read_log, not 'x'"),
        (lambda found: found.forecast("x"), "scenario must be a Scenario, .* not 'x'"),
        (lambda found: found.apply(None), "scenario must be a Scenario, .* not None"),
        (
            lambda found: found.plot.factors("year"),
            "by must be 'hour', 'day' or 'segment', not 'year'",
        ),
        (lambda found: found.plot.talk_times("gold"), "no behaviour gold; there are default"),
    ],
)
def test_wrong_arguments_are_named(
    found: dialsim.Calibration, wrong: Callable[[Any], object], says: str
) -> None:
    with pytest.raises(DialsimError, match=says):
        wrong(found)
    with pytest.raises(LogError, match="not 3"):
        dialsim.calibrate(3)  # type: ignore[arg-type]


def test_plots_have_their_titles(found: dialsim.Calibration) -> None:
    assert found.plot.factors("hour").get_title(loc="left") == "Odds of an answer by hour"
    assert found.plot.talk_times().get_xlabel() == "seconds"
