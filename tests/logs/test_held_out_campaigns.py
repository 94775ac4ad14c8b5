"""Campaigns that go on after a cut, forecast from the calls before it, against what happened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dialsim
from dialsim.engine.rules import Windows
from dialsim.experiments.forecast import ForecastFigures, Span, Widening
from dialsim.interface.instants import DAY, format_instant, parse_instant
from dialsim.logs.backtest import (
    Backtest,
    HeldOutCampaigns,
    _written_settings,
    forecast_held_out,
    past_forecast,
)
from dialsim.logs.log import Log, read_log
from dialsim.testing import Sketch

HOUR = 3_600_000
OUTCOMES = {"answered": 0.5, "noAnswer": 0.34, "busy": 0.06, "failed": 0.1}


HOURS: dict[str, Any] = {"windows": "daily 09:00-20:00", "max_attempts": 3, "retry_interval": "2h"}
CALLED: dict[str, Any] = {"recipients": {"count": 300}, "agent": "Reminder", **HOURS}
ONE = (
    Sketch(3, setup_time=None)
    .having(agents=[{"name": "Reminder"}])
    .behaviour(
        "default",
        outcomes=OUTCOMES,
        people={"concentration": 2},
        talk_time={"dist": "gamma", "mean": "90s", "sd": "60s"},
    )
    .campaign("First", **CALLED)
)
"""An organization with three lines whose people behave otherwise than the default's."""
TWO = ONE.campaign("Second", start="Fri 09:00", **CALLED)


def run(known: Sketch, folder: Path, seed: int = 1) -> Path:
    dialsim.run(known.scenario(), seed=seed).write(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of two campaigns, one after the other."""
    return run(TWO, tmp_path_factory.mktemp("log") / "run")


@pytest.fixture(scope="module")
def log(folder: Path) -> Log:
    return read_log(folder)


def held_out(log: Log, share: float = 0.45, **options: Any) -> HeldOutCampaigns:
    return forecast_held_out(log, share, runs=20, jobs=1, **options)


@pytest.mark.slow
def test_the_finish_of_a_campaign_lies_in_the_interval(log: Log) -> None:
    assert_second_held(held_out(log), log)


def assert_second_held(found: HeldOutCampaigns, log: Log) -> None:
    """The second campaign, and no other, is forecast, and what happened lies in the intervals."""
    assert found.missing == ()
    [second] = found.campaigns
    assert second.campaign == "Second"
    finish, reach = second.figures
    ends = log.calls.loc[log.calls["campaign"] == 1, "ended_at"]
    assert finish.truth == round(ends.max().timestamp() * 1000)
    assert finish.span.high - finish.span.low < 6 * HOUR
    # The widest interval of the reach ends at the number of people on the list
    assert reach.widened(1e9).span.high == 300
    assert 0 < reach.span.low < reach.truth
    assert all(second.held)
    assert any(line.startswith("  Second, the finish: ") for line in found.lines())


@pytest.mark.slow
def test_of_one_campaign_the_rest_is_forecast(log: Log) -> None:
    calls = log.calls[log.calls["campaign"] == 0]
    found = held_out(replace(log, calls=calls), 0.5)
    assert [one.campaign for one in found.campaigns] == ["First"]
    finish, reach = found.campaigns[0].figures
    assert 0 < reach.span.low < reach.truth
    assert finish.truth > found.cut


def test_several_cuts_widen_the_intervals_like_a_backtest() -> None:
    nine = parse_instant("2026-01-05T02:00:00Z")
    done = Span(nine + HOUR, nine + 2 * HOUR, nine + 3 * HOUR)
    figures = ForecastFigures(nine, 100, 100, 10, done.high, done, Span(40.0, 50.0, 60.0))
    windows = Windows([(d * DAY + 9 * HOUR, d * DAY + 17 * HOUR) for d in range(7)])
    late = past_forecast("January", figures, nine + 26 * HOUR, 55, windows)  # 10 open hours
    past = Backtest([late])
    assert past.widening == Widening(8.0, 1.0)
    line, reach = [*HeldOutCampaigns(nine, (late,), ()).lines(past.widening)][1:]
    assert "outside; widened " in line
    assert line.endswith("Tue 6 Jan 11:00: in it")
    assert "widened" not in reach
    assert next(past.lines()) == "Of 1 earlier forecast 0 held for the finish, 1 for people reached"


def test_a_campaign_that_is_not_finished_says_so(folder: Path, tmp_path: Path) -> None:
    lines = (folder / "webhooks.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    cut = tmp_path / "cut.jsonl"
    cut.write_text("".join(lines[: len(lines) * 7 // 8]), encoding="utf-8")
    found = held_out(read_log(cut), 0.2)
    assert found.campaigns == ()
    [why] = found.missing
    assert why.startswith("Second: it is not finished in the log: of ")
    assert "were neither reached nor called 3 times" in why
    assert why.endswith("people who were never called are not in it")


def test_too_few_calls_before_the_cut_say_so(log: Log) -> None:
    found = held_out(log, 0.99)
    assert found.campaigns == ()
    assert len(found.missing) == 1
    assert found.missing[0].endswith("a behaviour is estimated from 30 calls or more")


def test_what_no_campaign_can_be_forecast_from(log: Log, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "calls.parquet").write_bytes((folder / "calls.parquet").read_bytes())
    bare = read_log(tmp_path)
    settings = "Second: the log doesn't show its schedule and its lines: give a scenario"
    assert held_out(bare).missing == (settings,)
    none = "Second: the scenario has no campaign of this id or name"
    assert held_out(bare, scenario=ONE.scenario()).missing == (none,)
    [segment] = held_out(log, by="segment").missing
    assert segment.startswith("an agent has one behaviour")
    masked = log.calls.assign(recipient=log.calls["recipient"].where(log.calls["attempt"] < 2))
    [why] = held_out(replace(log, calls=masked)).missing
    assert "are of people who are masked" in why


def test_a_scenario_tells_settings(tmp_path: Path) -> None:
    known = TWO.at("Wed 09:00", "setConcurrency", 9)
    run(known, tmp_path / "run")
    (tmp_path / "run" / "webhooks.jsonl").unlink()
    log = read_log(tmp_path / "run")
    assert_second_held(held_out(log, scenario=known.scenario()), log)


@pytest.mark.slow
def test_a_campaign_is_not_forecast_from_the_calls_of_another(log: Log) -> None:
    few = "Second: there are too few calls before the cut to learn from"
    found = held_out(log, 0.6, by="campaign")
    assert found.missing == (few,)
    assert [one.campaign for one in found.campaigns] == ["First"]  # over before the second begins


@pytest.mark.slow
def test_bodies_tell_as_much(folder: Path) -> None:
    [second] = held_out(read_log(folder / "webhooks.jsonl")).campaigns
    assert all(second.held)


@pytest.mark.slow
def test_the_truth_lies_in_the_interval_of_8_of_10_seeds(tmp_path: Path) -> None:
    found = []
    for seed in range(10):
        [second] = held_out(read_log(run(TWO, tmp_path / str(seed), 20 + seed)), 0.48).campaigns
        found.append(second.held)
    assert sum(finish for finish, _ in found) >= 8
    assert sum(reach for _, reach in found) >= 8


def test_assumed_hold_times_are_noted_where_lines_were_never_saturated(tmp_path: Path) -> None:
    known = Sketch(60, setup_time=None).campaign("Only", recipients={"count": 300}, **HOURS)
    log = read_log(run(known, tmp_path / "run") / "webhooks.jsonl")
    [note] = held_out(log, 0.3).notes
    assert note.startswith("The finish rests on assumed ring and setup times: 10 s more would move")


def test_a_past_request_keeps_its_first_calls_due_since_it_was_made(log: Log) -> None:
    """C1, Q2: scheduledAt is later than startDateTime here, and before the cut."""
    asked = parse_instant("2026-01-05T03:30:00Z")
    known = ONE.scenario().with_(
        "organizations.0.campaigns.0.scheduledAt=2026-01-05T03:30:00Z",
    )
    [campaign] = known.organizations[0].campaigns
    assert campaign.schedule is not None
    assert campaign.schedule.start_date_time < asked
    settings = _written_settings(log, 0, asked + HOUR, known)
    assert "scheduledAt" not in settings.block
    assert settings.block["schedule"]["startDateTime"] == format_instant(asked)
