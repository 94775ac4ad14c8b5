"""Differences between a log and its fitted model are named, with their sizes and risks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from dialsim.cli import commands
from dialsim.errors import DialsimError
from dialsim.logs.answering import PointEstimate
from dialsim.logs.backtest import _people
from dialsim.logs.behaviour_text import _held_out
from dialsim.logs.calibrate import Bin, Calibration, HoldOut, calibrate
from dialsim.logs.durations import FittedDurations
from dialsim.logs.log import Log, read_log
from dialsim.logs.misfit import _tails
from dialsim.report.log_pages import calibration_page
from dialsim.scenario.distribution import distribution
from logs.other_service import Service

TUESDAY = 20_459  # 2026-01-06
OUTAGE: dict[str, Any] = {"people": 900, "lines": 3, "attempts": 3, "answered": 0.4, "spread": 0.4}


def log_of(folder: Path, seed: int = 1, **given: Any) -> Log:
    file = folder / "webhooks.jsonl"
    Service(**given).write(file, seed)
    return read_log(file)


def block(found: Calibration) -> dict[str, Any]:
    behaviours: dict[str, Any] = yaml.safe_load(found.to_yaml())["behaviours"]
    return behaviours["default"]


@pytest.fixture(scope="module")
def with_outage(tmp_path_factory: pytest.TempPathFactory) -> Log:
    return log_of(tmp_path_factory.mktemp("outage"), outage=1, **OUTAGE)


@pytest.fixture(scope="module")
def without_outage(tmp_path_factory: pytest.TempPathFactory) -> Log:
    return log_of(tmp_path_factory.mktemp("sound"), **OUTAGE)


def test_a_day_of_an_outage_is_named_and_is_no_weekday(
    with_outage: Log, without_outage: Log
) -> None:
    found, sound = calibrate(with_outage), calibrate(without_outage)
    [outage] = found.outages
    assert outage.date == TUESDAY
    assert 0.5 < outage.failed < 0.8
    assert str(outage).startswith("2026-01-06: ")
    assert sound.outages == ()
    days = block(found)["answeredOdds"].get("byDay", {})
    assert set(days) <= {1, 3, 4, 5, 6, 7}  # the only Tuesday is left out
    ours, theirs = block(found)["outcomes"], block(sound)["outcomes"]
    assert abs(ours["failed"] - theirs["failed"]) < 0.03
    assert abs(ours["answered"] - theirs["answered"]) < 0.05


def test_a_date_can_be_left_out(without_outage: Log) -> None:
    found = calibrate(without_outage, without=[TUESDAY])
    assert found.without == (TUESDAY,)
    assert 2 not in block(found)["answeredOdds"].get("byDay", {})
    assert {8} == set(found.behaviours["default"].answering.days) - {1, 2, 3, 4, 5, 6, 7}
    with pytest.raises(DialsimError, match=r"no call was made on 2026-03-15, .* from 2026-01-05 "):
        calibrate(without_outage, without=[TUESDAY + 68])


def test_a_day_to_leave_out_that_no_call_has_is_refused(tmp_path: Path) -> None:
    log_of(tmp_path, people=100)
    out = tmp_path / "behaviour.yaml"
    command = ["calibrate", str(tmp_path / "webhooks.jsonl"), "--out", str(out), "--without"]
    refused = CliRunner().invoke(commands, [*command, "2027-01-01"])
    assert "no call was made on 2027-01-01" in str(refused.exception)
    assert not out.exists()
    assert CliRunner().invoke(commands, [*command, "yesterday"]).exit_code == 2


@pytest.mark.slow
def test_people_with_hours_of_their_own_are_named(tmp_path: Path) -> None:
    given: dict[str, Any] = {"people": 6000, "lines": 7, "attempts": 5, "retry_ms": 20 * 3_600_000}
    found = calibrate(log_of(tmp_path, rhythm=1.0, **given)).behaviours["default"]
    named = [one for one in found.misfits if one.startswith("Called again at an hour at which ")]
    assert len(named) == 1
    assert "People with hours of their own are not modelled" in named[0]


def test_a_log_of_the_model_has_no_misfit(without_outage: Log) -> None:
    assert calibrate(without_outage).behaviours["default"].misfits == ()


@pytest.mark.parametrize("share", [0.0, 0.03])
def test_a_tail_of_hold_times_is_named(share: float, tmp_path: Path) -> None:
    log = log_of(tmp_path, people=900, lines=3, attempts=3, ring_tail=share)
    named = [one for one in calibrate(log).behaviours["default"].misfits if "hold times" in one]
    assert len(named) == (share > 0)
    assert all("At risk: the finish" in one for one in named)


def test_a_tail_of_measured_ring_times_is_named() -> None:
    times = np.append(np.random.default_rng(1).uniform(20_000, 30_000, 4_950), [200_000.0] * 50)
    shape = {"dist": "uniform", "low": "20s", "high": "30s"}
    known = FittedDurations(distribution(shape), shape, {}, len(times), {}, times)
    [named] = _tails({"ring times before noAnswer": known}, None)
    assert named.startswith("The longest 1 % of ring times before noAnswer: 200 s on average")


def test_a_contradicted_group_is_a_warning_and_no_table_cell() -> None:
    sure = PointEstimate(0.5, 0.01, 400)
    groups = (Bin(0.5, sure), Bin(0.3, sure))
    held = HoldOut(0, 900, 800, 0.6, 0.7, PointEstimate(0.1, 0.01, 800), groups)
    *_, table, warning = _held_out(held)
    assert table == "  forecast → answered: 50% → 50%"
    assert warning == "warning: of 400 calls forecast at 30%, 50% were answered"


def test_a_failure_in_an_outage_is_no_sign_of_a_dead_number(with_outage: Log) -> None:
    calls, end = with_outage.calls, 2_000_000_000_000
    known, ours = (_people(calls, end, without) for without in ((), (TUESDAY,)))
    before, after = (people["history.latestCallStatus"] for people in (known, ours))
    failed = known["history.lastEndedAt"].str.startswith("2026-01-06") & (before == "FAILED")
    assert failed.sum() > 20
    assert set(after[failed]) == {"CANCELLED"}
    assert (after[~failed] == before[~failed]).all()


def test_the_page_names_the_outage(with_outage: Log) -> None:
    html = calibration_page(calibrate(with_outage)).html()
    assert "2026-01-06: " in html
    assert "an outage, not behaviour" in html
