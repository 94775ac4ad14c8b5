"""Calendars, plans, lines by time, and what they are compiled to."""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dialsim
from dialsim.interface.instants import format_instant, midnight, thai
from dialsim.scenario.calendar import DAY_CLASSES
from dialsim.scenario.compiled_plan import compiled_plan
from dialsim.scenario.loading import loads
from dialsim.scenario.organization import TimelineAction
from dialsim.scenario.scenario import Scenario

HALF_HOUR = 30 * 60_000
FIRST = date(2026, 4, 8)  # a Wednesday
Written = dict[str, Any]


def written(plan: Written | None = None, schedule: Written | None = None, **top: Any) -> Written:
    """A scenario that begins on Wednesday 8 April 2026, midnight in Thailand."""
    campaign: Written = {
        "name": "Debt",
        "agent": "R",
        "recipients": {"count": 3},
        "schedule": {"startDateTime": format_instant(midnight(FIRST))} | (schedule or {}),
    }
    if plan is not None:
        campaign["plan"] = plan
    organization = {"name": "Acme", "maxConcurrentCalls": 20, "agents": [{"name": "R"}]}
    organization |= top.pop("organization", {})
    organization["campaigns"] = [campaign]
    return {
        "clock": {"start": format_instant(midnight(FIRST))},
        "organizations": [organization],
    } | top


def read(document: Written) -> Scenario:
    return loads(json.dumps(document))


def told(scenario: Scenario) -> list[tuple[str, str]]:
    """What was compiled to actions, in Thai time."""
    return [
        (thai(each.at).strftime("%a %d %H:%M"), each.action if each.value is None else each.value)
        for each in scenario.organizations[0].planned
    ]


def windows(scenario: Scenario) -> dict[int, list[str]]:
    request = scenario.organizations[0].campaigns[0].schedule
    assert request is not None
    return {
        day.day_of_week: [f"{span.start}-{span.end}" for span in day.time]
        for day in request.time_windows
    }


# -- by hand ---------------------------------------------------------------------------------------


def test_songkran_closed_is_one_pause_from_the_first_opening_to_the_last_closing() -> None:
    plan = {"weekday": "09:00-18:00", "holiday": "closed"}
    scenario = read(written(plan, calendar={"holidays": "TH"}, clock=clock(21)))
    assert windows(scenario) == {day: ["09:00-18:00"] for day in range(1, 6)}
    assert told(scenario) == [("Mon 13 09:00", "pause"), ("Wed 15 18:00", "resume")]


def test_narrower_holidays_are_paused_at_their_borders() -> None:
    plan = {
        "weekday": "09:00-18:00",
        "saturday": "10:00-12:00",
        "holiday": ["10:00-12:00", "14:00-15:00"],
    }
    calendar = {"ownHolidays": {"2026-04-10": "Friday"}}
    scenario = read(written(plan, calendar=calendar, clock=clock(18)))
    assert windows(scenario) == {day: ["09:00-18:00"] for day in range(1, 6)} | {6: ["10:00-12:00"]}
    assert told(scenario) == [
        ("Fri 10 09:00", "pause"),
        ("Fri 10 10:00", "resume"),
        ("Fri 10 12:00", "pause"),
        ("Fri 10 14:00", "resume"),
        ("Fri 10 15:00", "pause"),
        ("Fri 10 18:00", "resume"),
    ]


def test_wider_holidays_make_the_week_wider_and_pauses_cut_the_other_days() -> None:
    plan = {"weekday": "09:00-18:00", "holiday": "08:00-20:00"}
    calendar = {"ownHolidays": {"2026-04-15": "Wednesday", "2026-04-18": "Saturday"}}
    scenario = read(written(plan, calendar=calendar, clock=clock(19)))
    assert windows(scenario) == {
        **{day: ["09:00-18:00"] for day in (1, 2, 4, 5)},
        3: ["08:00-20:00"],
        6: ["08:00-20:00"],
    }
    # Wednesday 8 and Saturday 11 are no holidays: they are cut down to what is planned
    assert told(scenario) == [
        ("Wed 08 08:00", "pause"),
        ("Wed 08 09:00", "resume"),
        ("Wed 08 18:00", "pause"),
        ("Wed 08 20:00", "resume"),
        ("Sat 11 08:00", "pause"),
        ("Sat 11 20:00", "resume"),
    ]


def test_without_holidays_a_plan_is_windows_alone() -> None:
    scenario = read(written({"weekday": ["09:00-12:00", "13:00-18:00"], "sunday": "10:00-11:00"}))
    assert windows(scenario) == {day: ["09:00-12:00", "13:00-18:00"] for day in range(1, 6)} | {
        7: ["10:00-11:00"]
    }
    assert told(scenario) == []


def test_a_plan_without_an_end_is_compiled_for_13_weeks_and_paused_then() -> None:
    plan = {"weekday": "09:00-18:00", "holiday": "closed"}
    scenario = read(written(plan, calendar={"ownHolidays": {"2026-04-13": "Monday"}}))
    assert told(scenario) == [
        ("Mon 13 09:00", "pause"),
        ("Mon 13 18:00", "resume"),
        ("Wed 08 00:00", "pause"),
    ]
    assert compiled_plan(scenario).campaigns[0].horizon.source == "13 weeks"


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        # a pause of the timeline over the end of ours holds: no resume of ours
        ([("13 11:00", "pause"), ("15 11:00", "resume")], [("Mon 13 09:00", "pause")]),
        # one before ours, too; it is resumed inside the holiday, where ours follows at once
        (
            [("10 11:00", "pause"), ("13 11:00", "resume")],
            [("Mon 13 11:00", "pause"), ("Mon 13 18:00", "resume")],
        ),
        # both at the same instant
        (
            [("13 09:00", "pause"), ("13 18:00", "resume")],
            [],
        ),
        # after a cancellation there is nothing to pause
        ([("12 09:00", "cancel")], []),
        # what is paused and resumed elsewhere changes nothing
        (
            [("09 09:00", "pause"), ("09 10:00", "resume")],
            [("Mon 13 09:00", "pause"), ("Mon 13 18:00", "resume")],
        ),
    ],
)
def test_pauses_of_the_timeline_are_respected(
    actions: list[tuple[str, str]], expected: list[tuple[str, str]]
) -> None:
    timeline = [
        {"at": f"2026-04-{at.replace(' ', 'T')}:00+07:00", "action": action, "campaign": "Debt"}
        for at, action in actions
    ]
    document = written(
        {"weekday": "09:00-18:00", "holiday": "closed"},
        organization={"timeline": timeline},
        calendar={"ownHolidays": {"2026-04-13": "Monday"}},
        clock=clock(21),
    )
    assert told(read(document)) == expected


def test_lines_are_settings_of_the_limit() -> None:
    lines = {"Mon-Fri 13:00-18:00": 40, "2026-04-09": 10, "holiday": 5, "17:30-24:00": 7}
    with pytest.raises(Exception, match='17:30-24:00 overlaps "Mon-Fri 13:00-18:00"'):
        read(written(organization={"lines": lines}, calendar={"holidays": "TH"}))
    del lines["17:30-24:00"]
    document = written(organization={"lines": lines}, calendar={"holidays": "TH"}, clock=clock(14))
    assert told(read(document)) == [
        ("Wed 08 13:00", 40),
        ("Wed 08 18:00", 20),
        ("Thu 09 00:00", 10),
        ("Fri 10 00:00", 20),
        ("Fri 10 13:00", 40),
        ("Fri 10 18:00", 20),
        ("Mon 13 00:00", 5),
    ]


def test_set_and_vary_reach_plans_and_lines() -> None:
    document = written(
        {"weekday": "09:00-18:00"}, organization={"lines": {"Mon-Fri 13:00-18:00": 40}}
    )
    base = read(document)
    longer = base.with_("organizations.Acme.campaigns.Debt.plan.weekday=09:00-19:00")
    assert windows(longer)[1] == ["09:00-19:00"]
    more = base.with_("organizations.Acme.lines.Mon-Fri 13:00-18:00=60")
    assert told(more)[0] == ("Wed 08 13:00", 60)
    usual = base.with_("organizations.Acme.maxConcurrentCalls=30")
    assert told(usual)[:2] == [("Wed 08 13:00", 40), ("Wed 08 18:00", 30)]


def test_open_and_own_dates_change_the_country_s_list() -> None:
    calendar = {
        "holidays": "TH",
        "open": ["2026-04-14"],
        "ownHolidays": {"2026-04-17": "Company day"},
    }
    scenario = read(
        written({"weekday": "09:00-18:00", "holiday": "closed"}, calendar=calendar, clock=clock(24))
    )
    assert told(scenario) == [
        ("Mon 13 09:00", "pause"),
        ("Mon 13 18:00", "resume"),
        ("Wed 15 09:00", "pause"),
        ("Wed 15 18:00", "resume"),
        ("Fri 17 09:00", "pause"),
        ("Fri 17 18:00", "resume"),
    ]


def test_the_digest_knows_the_dates() -> None:
    plain = written(calendar={"holidays": "TH"})
    other = written(calendar={"holidays": "LA"})
    assert read(plain).digest == read(plain).digest != read(other).digest


# -- what may not be meant -------------------------------------------------------------------------


def test_warnings_on_dates_plans_and_rules() -> None:
    calendar = {"holidays": "TH", "open": ["2026-04-17"], "closed": ["2026-06-01"]}
    rule = {"name": "House", "contact": {"weekday": "09:00-18:00"}}
    document = written(
        schedule={"maxAttempts": 3, "retryInterval": 3600000},
        organization={"lines": {"2027-01-01": 3}},
        calendar=calendar,
        compliance=["thai-debt-collection", rule],
        clock=clock(21),
    )
    assert list(read(document).warnings) == [
        "The calendar has dates that the run does not reach, from 2026-04-08 to 2026-04-21: "
        "2026-06-01 (closed).",
        "The calendar has 2026-04-17 under open, which is no holiday of TH: it is an ordinary day "
        "anyhow.",
        "The calendar has closed dates, and campaigns without a plan call on them: Debt of Acme. "
        "Give them a plan.",
        "Lines of Acme on 2027-01-01 have no effect: the run does not get there.",
        "Campaign Debt of Acme may dial outside thai-debt-collection: on Saturdays 18:00-19:00 "
        "(first 2026-04-11); on Sundays 18:00-19:00 (first 2026-04-12) and on holidays 18:00-19:00 "
        "(first 2026-04-13).",
        "Campaign Debt of Acme may dial a person more than once a day, which thai-debt-collection "
        "does not allow: maxAttempts is 3, and retryInterval less than a day's calling time.",
        "Campaign Debt of Acme may dial outside House: on weekdays 18:00-19:00 (first 2026-04-08); "
        "on Saturdays 10:00-19:00 (first 2026-04-11); on Sundays 10:00-19:00 (first 2026-04-12) "
        "and 1 more.",
    ]


def test_a_rule_with_holidays_asks_for_a_calendar() -> None:
    (warning,) = read(
        written({"weekday": "09:00-18:00"}, compliance=["thai-debt-collection"])
    ).warnings
    assert warning == (
        "Compliance rule thai-debt-collection has times for holidays, and no day is one: write "
        "calendar: {holidays: TH} at the top level."
    )


# -- any calendar ----------------------------------------------------------------------------------


def clock(last: int) -> Written:
    """From 8 April 2026 up to the end of a day of that month."""
    end = midnight(date(2026, 4, last) + timedelta(days=1))
    return {"start": format_instant(midnight(FIRST)), "end": format_instant(end - 1)}


@st.composite
def ranges(draw: st.DrawFn) -> list[str]:
    """Ranges apart, on the half hour; the day ends at 23:30."""
    edges = sorted(draw(st.sets(st.integers(0, 47), max_size=6)))
    pairs = zip(edges[::2], edges[1::2], strict=False)
    return [f"{a // 2:02}:{a % 2 * 30:02}-{b // 2:02}:{b % 2 * 30:02}" for a, b in pairs]


DATES = st.sampled_from([str(FIRST + timedelta(days=day)) for day in range(14)])
MOMENTS = st.integers(0, 14 * 48)  # half hours after the start


def minutes(text: str) -> int:
    return int(text[:2]) * 60 + int(text[3:])


def within(spans: list[str], minute: int) -> bool:
    return any(minutes(span[:5]) <= minute < minutes(span[6:]) for span in spans)


@settings(max_examples=60, deadline=None)
@given(
    plan=st.fixed_dictionaries(
        {"weekday": ranges()}, optional={name: ranges() for name in DAY_CLASSES[1:]}
    ),
    holidays=st.sets(DATES, max_size=4),
    closed=st.sets(DATES, max_size=2),
    start=MOMENTS,
    pauses=st.lists(st.tuples(MOMENTS, st.sampled_from(["pause", "resume"])), max_size=4),
)
def test_what_is_compiled_is_open_exactly_when_it_was_planned(
    plan: Written, holidays: set[str], closed: set[str], start: int, pauses: list[tuple[int, str]]
) -> None:
    """Half hour by half hour, read naively from the file and from what was compiled."""
    zero = midnight(FIRST)
    timeline = [
        {"at": format_instant(zero + at * HALF_HOUR), "action": action, "campaign": "Debt"}
        for at, action in pauses
    ]
    document = written(
        plan,
        {"startDateTime": format_instant(zero + start * HALF_HOUR)},
        organization={"timeline": timeline},
        calendar={"ownHolidays": dict.fromkeys(sorted(holidays), "H"), "closed": sorted(closed)},
        clock=clock(21),
    )

    def is_planned(half_hour: int) -> bool:
        day, minute = FIRST + timedelta(days=half_hour // 48), half_hour % 48 * 30
        if str(day) in closed:
            return False
        kind = DAY_CLASSES[max(0, day.weekday() - 4)]
        if str(day) in holidays and "holiday" in plan:
            kind = "holiday"
        return within(plan.get(kind, []), minute)

    if not any(is_planned(half_hour) for half_hour in range(start // 48 * 48, 14 * 48)):
        return  # an error, if dates matter
    scenario = read(document)
    weekly, owner = windows(scenario), scenario.organizations[0]
    actions = sorted((*owner.timeline, *owner.planned), key=lambda action: action.at)
    for half_hour in range(start, 14 * 48):
        at = zero + half_hour * HALF_HOUR
        day = FIRST + timedelta(days=half_hour // 48)
        done = [each.action for each in actions if each.at <= at]
        by_user = last_action(owner.timeline, at) == "pause"
        is_open = within(weekly.get(day.isoweekday(), []), half_hour % 48 * 30)
        calls = is_open and (not done or done[-1] != "pause")
        assert calls == (is_planned(half_hour) and not by_user), (half_hour, done)


def last_action(timeline: tuple[TimelineAction, ...], at: int) -> str | None:
    """The last action of the timeline up to an instant; of those at one instant the last listed."""
    done = sorted((each for each in timeline if each.at <= at), key=lambda each: each.at)
    return done[-1].action if done else None


@settings(max_examples=60, deadline=None)
@given(
    lines=st.dictionaries(
        st.tuples(
            st.sampled_from(
                ["", "Mon-Fri", "Sat,Sun", "Thu", "holiday", "2026-04-10", "2026-04-13"]
            ),
            st.sampled_from(["", "13:00-18:00", "18:00-24:00", "00:00-09:30"]),
        ).filter(any),
        st.integers(0, 9),
        max_size=6,
    )
)
def test_lines_hold_when_the_file_says_so(lines: dict[tuple[str, str], int]) -> None:
    keys = {f"{days} {time}".strip(): count for (days, time), count in lines.items()}
    document = written(
        organization={"lines": keys}, calendar={"ownHolidays": {"2026-04-13": "H"}}, clock=clock(21)
    )
    kinds = [
        ("2026-04-10", lambda day: str(day) == "2026-04-10"),
        ("2026-04-13", lambda day: str(day) == "2026-04-13"),
        ("holiday", lambda day: str(day) == "2026-04-13"),
        ("Mon-Fri", lambda day: day.weekday() < 5),
        ("Sat,Sun", lambda day: day.weekday() >= 5),
        ("Thu", lambda day: day.weekday() == 3),
        ("", lambda _day: True),
    ]
    weekly = [days for days, _ in lines if days in ("", "Mon-Fri", "Sat,Sun", "Thu")]
    if len(set(weekly)) > 1:
        return  # they may overlap, which is an error
    scenario = read(document)
    actions = scenario.organizations[0].planned
    for half_hour in range(14 * 48):
        day, minute = FIRST + timedelta(days=half_hour // 48), half_hour % 48 * 30
        wanted = 20
        for name, holds in reversed(kinds):  # what stands higher up wins
            if not holds(day):
                continue
            for timed in (False, True):
                for (days, time), count in lines.items():
                    if days != name or bool(time) != timed:
                        continue
                    if not time or within([time], minute):
                        wanted = count
        at = midnight(FIRST) + half_hour * HALF_HOUR
        done = [each.value for each in actions if each.at <= at]
        assert (done[-1] if done else 20) == wanted, half_hour


def test_a_campaign_that_is_added_has_no_plan() -> None:
    simulation = dialsim.Simulation(read(written()))
    campaign = {"name": "More", "agent": "R", "recipients": {"count": 1}, "plan": {}}
    with pytest.raises(dialsim.ScenarioError, match="plan can't come with a campaign that is"):
        simulation.add_campaign(campaign)
