"""T6: what calling hours and lines are compiled to, in both engines and in the naive reading."""

from __future__ import annotations

import json
import random
from datetime import timedelta

import pytest

import dialsim
from dialsim.engine import Engine, run_world
from dialsim.engine.world import World
from dialsim.interface.instants import format_instant, thai, thai_date
from dialsim.testing import Sketch, assert_no_violations
from engine.breadth import add_calling_hours
from engine.readings import ENGINES, assert_both_agree, first_reading, loaded
from engine.rows import told
from oracle.given import clock_start, instant
from oracle.scenarios import Draft, Scenario, add_trouble
from oracle.second_reading import second_reading

SONGKRAN = (
    Sketch(1, start="10 Apr 2026 00:00")
    .also(calendar={"holidays": "TH"})
    .campaign(
        "Debt",
        "noAnswer 20s",
        "noAnswer 20s",
        start="10 Apr 2026 09:00",
        end="24 Apr 2026 18:00",
        calling_hours={"weekday": "09:00-18:00", "holiday": "10:00-12:00"},
        max_attempts=5,
        retry_interval="1d",
    )
)


def as_compiled(written: Scenario) -> Scenario:
    """Return the same schedule in windows and compiled actions, as the second reading takes it."""
    scenario, said = loaded(written), json.loads(json.dumps(written))
    for organization, owner in zip(said["organizations"], scenario.organizations, strict=True):
        organization["planned"] = [
            {"at": format_instant(each.at), "action": each.action}
            | ({"campaign": each.campaign} if each.campaign else {"value": each.value})
            for each in owner.compiled_actions
        ]
        for entry, campaign in zip(organization["campaigns"], owner.campaigns, strict=True):
            if campaign.calling_hours is not None and campaign.schedule is not None:
                entry["schedule"] = campaign.schedule.model_dump(mode="json", by_alias=True)
    return said


def scenario_with_hours(seed: int) -> Scenario:
    """A nasty scenario with calling hours and lines at the minute at which it happens."""
    rng = random.Random(f"planned {seed}")
    draft = Draft(rng)
    scenario = draft.scenario()
    if rng.random() < 0.6:
        add_trouble(rng, scenario)
    rng = random.Random(seed)
    while "calendar" not in scenario:
        add_calling_hours(rng, scenario, draft.minute)
    for behaviour in scenario["behaviours"].values():
        behaviour.pop("answeredOdds", None)  # the reading knows no chance
    if "end" not in scenario.get("clock", {}) and rng.random() < 0.5:
        end = clock_start(scenario) + 3 * 86_400_000
        scenario.setdefault("clock", {})["end"] = format_instant(end)
    return scenario


@pytest.mark.parametrize("seed", range(30))
def test_t6_all_readings_agree_on_hours_and_lines(seed: int) -> None:
    check_readings(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(30, 600, 30))
def test_t6_all_readings_agree_on_hundreds_of_hours_and_lines(first: int) -> None:
    for seed in range(first, first + 30):
        check_readings(seed)


def check_readings(seed: int) -> None:
    written = scenario_with_hours(seed)
    model = loaded(written)
    oracle = second_reading(as_compiled(written))
    for engine in ENGINES:
        found = first_reading(run_world(World(model), engine))
        assert_both_agree(found, oracle, f"seed {seed}, {engine}")


@pytest.mark.parametrize("engine", ENGINES)
def test_t6_songkran_worked_by_hand(engine: Engine) -> None:
    """Each call is a day after the one before; Mon 13 to Wed 15 are holidays, from 10:00."""
    result = dialsim.run(SONGKRAN.scenario(), engine=engine)
    assert_no_violations(result.trace)
    first = result.calls[result.calls["recipient"] == 0]
    dialled = [
        thai(round(at.timestamp() * 1000)).strftime("%a %d %H:%M:%S")
        for at in first["initiated_at"]
    ]
    # the calls end 22 s after their dial, and the second person's 22 s later; a day later each is
    # due again, on Monday to Wednesday not before 10:00
    assert dialled == [
        "Fri 10 09:00:00",
        "Mon 13 10:00:00",
        "Tue 14 10:00:22",
        "Wed 15 10:00:44",
        "Thu 16 10:01:06",
    ]
    owner = result.trace.world.scenario.organizations[0]
    said = [(thai(each.at).strftime("%a %d %H:%M"), each.action) for each in owner.compiled_actions]
    assert said == [
        ("Mon 13 09:00", "pause"),
        ("Mon 13 10:00", "resume"),
        ("Mon 13 12:00", "pause"),
        ("Tue 14 10:00", "resume"),
        ("Tue 14 12:00", "pause"),
        ("Wed 15 10:00", "resume"),
        ("Wed 15 12:00", "pause"),
        ("Wed 15 18:00", "resume"),
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_t6_a_run_does_not_wait_for_what_is_compiled_and_nothing_is_refused(engine: Engine) -> None:
    overrides = [
        "organizations.Acme.campaigns.Debt.schedule.maxAttempts=1",
        "organizations.Acme.lines={holiday: 3, Sat: 2}",
    ]
    result = dialsim.run(SONGKRAN.scenario(overrides), engine=engine)
    assert thai(result.trace.end).strftime("%a %d %H:%M:%S") == "Fri 10 09:00:44"
    assert not result.summary.refused
    assert [row.limit for row in result.trace.limits] == [1]
    cut = dialsim.run(
        SONGKRAN.scenario([*overrides, "clock.end=2026-04-15T00:00:00Z"]), engine=engine
    )
    assert not cut.summary.refused
    assert [row.limit for row in cut.trace.limits] == [1, 2, 1, 3]


@pytest.mark.parametrize("engine", ENGINES)
def test_t6_a_campaign_that_was_refused_is_not_waited_for(engine: Engine) -> None:
    result = dialsim.run(
        SONGKRAN.scenario(["organizations.Acme.callingAllowed=false"]), engine=engine
    )
    assert [row.action for row in result.summary.refused] == ["schedule"]
    assert thai(result.trace.end).strftime("%a %d %H:%M") == "Fri 10 00:00"


def test_t6_stepping_to_idle_ends_where_a_run_ends() -> None:
    scenario = SONGKRAN.scenario(["organizations.Acme.lines={Sat: 2}"])
    simulation = dialsim.Simulation(scenario)
    simulation.advance(until="idle")
    run = dialsim.run(scenario, engine="simpy").trace
    assert simulation.trace.end == run.end
    assert simulation.next_event_at is None
    limits = [row[:3] for row in simulation.trace.limits]
    assert limits == [row[:3] for row in run.limits]
    simulation.advance(days=10)  # whoever goes on finds the lines of the day
    assert [row.limit for row in simulation.trace.limits][-2:] == [2, 1]


def test_t6_an_organization_is_told_of_lines_on_the_first_day_from_the_start() -> None:
    scenario = SONGKRAN.scenario(["organizations.Acme.lines={2026-04-10 00:00-10:00: 4}"])
    at = scenario.organizations[0].compiled_actions[0].at
    assert (at, thai_date(at).day) == (instant("2026-04-09T17:00:00Z"), 10)
    assert timedelta(
        milliseconds=scenario.organizations[0].compiled_actions[1].at - at
    ) == timedelta(hours=10)


HOLIDAY = (
    Sketch(50, start="13 Apr 2026 00:00", setup_time=None)
    .also(calendar={"ownHolidays": {"2026-04-13": "Monday"}})
    .behaviour("default", outcomes={"answered": 0.4, "noAnswer": 0.6})
    .campaign(
        "Debt",
        recipients={"count": 800},
        start="13 Apr 2026 09:00",
        max_attempts=4,
        retry_interval="10h",
    )
)
ODDS = "behaviours.default.answeredOdds"


@pytest.mark.parametrize("engine", ENGINES)
def test_odds_on_a_holiday_are_those_of_its_day_of_the_week(engine: Engine) -> None:
    """Monday is the only holiday, so a factor on Mondays makes the very same calls."""
    by_holiday, by_day, plain = (
        told(dialsim.run(HOLIDAY.scenario(overrides), engine=engine).trace)
        for overrides in (
            [f"{ODDS}.onHoliday=0.5", f"{ODDS}.byHour={{9: 0.8}}"],
            [f"{ODDS}.byDay={{1: 0.5}}", f"{ODDS}.byHour={{9: 0.8}}", "calendar="],
            [f"{ODDS}.byHour={{9: 0.8}}", "calendar="],
        )
    )
    assert by_holiday == by_day != plain


@pytest.mark.parametrize("engine", ENGINES)
def test_odds_on_holidays_move_the_share_that_answers_as_odds_do(engine: Engine) -> None:
    result = dialsim.run(HOLIDAY.scenario([f"{ODDS}.onHoliday=0.5"]), engine=engine)
    first = result.calls[result.calls["attempt"] == 1]
    share = (first["status"] == "COMPLETED").mean()
    expected = 0.4 * 0.5 / (0.6 + 0.4 * 0.5)  # 0.25
    assert abs(share - expected) < 4 * (expected * (1 - expected) / len(first)) ** 0.5


@pytest.mark.parametrize("engine", ENGINES)
def test_a_calendar_alone_changes_no_call(engine: Engine) -> None:
    with_it = dialsim.run(HOLIDAY.scenario(), engine=engine).trace
    without = dialsim.run(HOLIDAY.scenario(["calendar="]), engine=engine).trace
    assert told(with_it) == told(without)
