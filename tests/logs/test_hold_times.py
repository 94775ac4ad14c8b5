"""Hold times are estimated from the gaps on saturated lines, and forecasts rest on them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

import dialsim
from dialsim.experiments.forecast import hold_time_note
from dialsim.logs.answering import ANSWERED, NO_ANSWER
from dialsim.logs.backtest import forecast_held_out
from dialsim.logs.behaviour_text import draws_text, summary_lines
from dialsim.logs.calibrate import calibrate, dialled_calls
from dialsim.logs.hold_times import assumed_holds, hold_times
from dialsim.logs.log import Log, read_log
from dialsim.testing import Sketch
from logs.other_service import Service


def log_of(folder: Path, seed: int = 1, **given: object) -> Log:
    file = folder / "webhooks.jsonl"
    Service(**given).write(file, seed)  # type: ignore[arg-type]
    return read_log(file)


@pytest.fixture(scope="module")
def slow_phones(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """Setup takes 4 to 8 s, and phones ring for 40 to 42 s, on a dialler that is not dialsim's."""
    folder = tmp_path_factory.mktemp("log")
    return log_of(folder, people=900, lines=4, setup=(4.0, 8.0), ring=40.0)


def test_hold_times_of_other_phones_are_found(slow_phones: Log) -> None:
    found = hold_times(slow_phones, dialled_calls(slow_phones))
    assert found is not None
    unanswered, answered = found.estimate(NO_ANSWER), found.estimate(ANSWERED)
    assert abs(unanswered.value - 47_000) < 3 * unanswered.error
    assert abs(answered.value - 22_000) < 3 * answered.error
    assert unanswered.error < 2_000
    before = assumed_holds()[0][NO_ANSWER]
    assert unanswered.value - before > 10_000


def test_hold_times_are_written_with_their_errors(slow_phones: Log) -> None:
    found = calibrate(slow_phones)
    block = yaml.safe_load(found.to_yaml())["behaviours"]["default"]
    assert block["setupTime"] == "1ms"
    plan = Sketch(1).scenario().with_(f"behaviours.default={json.dumps(block)}")
    assert plan.behaviours["default"].ring_time.no_answer.dist == "uniform"
    assert " s ± " in found.to_yaml()
    assert any("ringTime.noAnswer: " in line for line in summary_lines(found))
    assert not found.assumes_holds
    draws = yaml.safe_load(draws_text(found, 20))
    lows = {change for draw in draws.values() for change in draw if ".ringTime=" in change}
    assert len(lows) == 20


def test_lines_that_were_never_saturated_are_said(tmp_path: Path) -> None:
    log = log_of(tmp_path, people=300, lines=300)
    assert hold_times(log, dialled_calls(log)) is None
    found = calibrate(log)
    assert found.assumes_holds
    assert "setupTime" not in yaml.safe_load(found.to_yaml())["behaviours"]["default"]
    assert "the lines were never saturated for long" in " ".join(
        found.behaviours["default"].undetermined
    )


def test_a_forecast_says_how_much_assumed_times_move_its_finish() -> None:
    campaign = {"recipients": {"count": 60}, "agent": "Reminder", "windows": "daily 09:00-20:00"}
    sketch = Sketch(1, setup_time=None).having(agents=[{"name": "Reminder"}])
    assumed = sketch.campaign("January", max_attempts=1, **campaign).scenario()
    # 60 calls on one line, 10 s longer each
    assert hold_time_note(assumed, jobs=1) == (
        "The finish rests on assumed ring and setup times: 10 s more would move it by 10 min."
    )
    own = assumed.with_("behaviours.default.setupTime=2s")
    assert hold_time_note(own, jobs=1) is None


@pytest.mark.slow
def test_34_of_40_finishes_with_other_phones_lie_in_the_interval(tmp_path: Path) -> None:
    """The recipients are the model's own; setup takes 4 to 8 s, and phones ring for 40 s."""
    held = []
    for seed in range(40):
        chance = np.random.default_rng([40, seed])
        known = (
            Sketch(4, setup_time=None)
            .having(agents=[{"name": "Reminder"}])
            .behaviour(
                "default",
                outcomes={"answered": 0.4, "noAnswer": 0.45, "busy": 0.05, "failed": 0.1},
                people={"concentration": float(chance.uniform(1.5, 8)), "deadNumbers": 0.05},
                setup_time={"dist": "uniform", "low": "4s", "high": "8s"},
                ring_time={"noAnswer": "40s"},
                talk_time={"dist": "lognormal", "mean": "70s", "sd": "60s"},
            )
            .campaign(
                "January",
                recipients={"count": int(chance.integers(900, 1500))},
                agent="Reminder",
                windows="daily 09:00-17:00",
                max_attempts=3,
                retry_interval="4h",
            )
        )
        dialsim.run(known.scenario(), seed=seed).write(tmp_path / str(seed))
        log = read_log(tmp_path / str(seed) / "webhooks.jsonl")
        [one] = forecast_held_out(log, 0.5, runs=50, jobs=1).campaigns
        held.append(one.held[0])
    assert sum(held) >= 34
