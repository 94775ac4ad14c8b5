"""Calendars, calling hours, lines by time, and what they are compiled to."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dialsim
from dialsim.interface.instants import midnight, thai
from dialsim.scenario.calendar import DAY_CLASSES
from dialsim.scenario.compiled_hours import compiled_hours
from dialsim.scenario.organization import TimelineAction
from dialsim.scenario.scenario import Scenario
from dialsim.testing import Sketch

HALF_HOUR = 30 * 60_000
FIRST = date(2026, 4, 8)  # a Wednesday


def debt(hours: Any = None, until: int | None = None, **body: Any) -> Sketch:
    """A campaign that begins on Wednesday 8 April 2026, midnight in Thailand.

    The clock ends with a day of that month, `until`, if there is one.
    """
    end = None if until is None else f"{until} Apr 2026 23:59:59.999"
    own = body if hours is None else body | {"calling_hours": hours}
    sketch = Sketch(20, start="8 Apr 2026 00:00", end=end, setup_time=None)
    return sketch.campaign("Debt", recipients={"count": 3}, **own)


def told(scenario: Scenario) -> list[tuple[str, str]]:
    """Return the compiled actions, in Thai time."""
    return [
        (thai(each.at).strftime("%a %d %H:%M"), each.action if each.value is None else each.value)
        for each in scenario.organizations[0].compiled_actions
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
    hours = {"weekday": "09:00-18:00", "holiday": "closed"}
    scenario = debt(hours, 21).also(calendar={"holidays": "TH"}).scenario()
    assert windows(scenario) == {day: ["09:00-18:00"] for day in range(1, 6)}
    assert told(scenario) == [("Mon 13 09:00", "pause"), ("Wed 15 18:00", "resume")]


def test_narrower_holidays_are_paused_at_their_borders() -> None:
    hours = {
        "weekday": "09:00-18:00",
        "saturday": "10:00-12:00",
        "holiday": ["10:00-12:00", "14:00-15:00"],
    }
    calendar = {"ownHolidays": {"2026-04-10": "Friday"}}
    scenario = debt(hours, 18).also(calendar=calendar).scenario()
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
    hours = {"weekday": "09:00-18:00", "holiday": "08:00-20:00"}
    calendar = {"ownHolidays": {"2026-04-15": "Wednesday", "2026-04-18": "Saturday"}}
    scenario = debt(hours, 19).also(calendar=calendar).scenario()
    assert windows(scenario) == {
        **{day: ["09:00-18:00"] for day in (1, 2, 4, 5)},
        3: ["08:00-20:00"],
        6: ["08:00-20:00"],
    }
    # Wednesday 8 and Saturday 11 are no holidays, so they are restricted to the calling hours
    assert told(scenario) == [
        ("Wed 08 08:00", "pause"),
        ("Wed 08 09:00", "resume"),
        ("Wed 08 18:00", "pause"),
        ("Wed 08 20:00", "resume"),
        ("Sat 11 08:00", "pause"),
        ("Sat 11 20:00", "resume"),
    ]


def test_without_holidays_calling_hours_are_windows_alone() -> None:
    hours = {"weekday": ["09:00-12:00", "13:00-18:00"], "sunday": "10:00-11:00"}
    scenario = debt(hours).scenario()
    assert windows(scenario) == {day: ["09:00-12:00", "13:00-18:00"] for day in range(1, 6)} | {
        7: ["10:00-11:00"]
    }
    assert told(scenario) == []


def test_hours_without_an_end_are_compiled_for_13_weeks_and_paused_then() -> None:
    hours = {"weekday": "09:00-18:00", "holiday": "closed"}
    scenario = debt(hours).also(calendar={"ownHolidays": {"2026-04-13": "Monday"}}).scenario()
    assert told(scenario) == [
        ("Mon 13 09:00", "pause"),
        ("Mon 13 18:00", "resume"),
        ("Wed 08 00:00", "pause"),
    ]
    assert compiled_hours(scenario)[0].horizon.source == "13 weeks"


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
    sketch = debt({"weekday": "09:00-18:00", "holiday": "closed"}, 21)
    for at, action in actions:
        day, time = at.split()
        sketch = sketch.at(f"{day} Apr 2026 {time}", action, "Debt")
    scenario = sketch.also(calendar={"ownHolidays": {"2026-04-13": "Monday"}}).scenario()
    assert told(scenario) == expected


def test_lines_are_settings_of_the_limit() -> None:
    lines = {"Mon-Fri 13:00-18:00": 40, "2026-04-09": 10, "holiday": 5, "17:30-24:00": 7}
    sketch = debt(until=14).also(calendar={"holidays": "TH"})
    with pytest.raises(Exception, match='17:30-24:00 overlaps "Mon-Fri 13:00-18:00"'):
        sketch.having(lines=lines).scenario()
    del lines["17:30-24:00"]
    assert told(sketch.having(lines=lines).scenario()) == [
        ("Wed 08 13:00", 40),
        ("Wed 08 18:00", 20),
        ("Thu 09 00:00", 10),
        ("Fri 10 00:00", 20),
        ("Fri 10 13:00", 40),
        ("Fri 10 18:00", 20),
        ("Mon 13 00:00", 5),
    ]


def test_set_and_vary_reach_calling_hours_and_lines() -> None:
    sketch = debt({"weekday": "09:00-18:00"}).having(lines={"Mon-Fri 13:00-18:00": 40})
    base = sketch.scenario()
    longer = base.with_("organizations.Acme.campaigns.Debt.callingHours.weekday=09:00-19:00")
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
    hours = {"weekday": "09:00-18:00", "holiday": "closed"}
    scenario = debt(hours, 24).also(calendar=calendar).scenario()
    assert told(scenario) == [
        ("Mon 13 09:00", "pause"),
        ("Mon 13 18:00", "resume"),
        ("Wed 15 09:00", "pause"),
        ("Wed 15 18:00", "resume"),
        ("Fri 17 09:00", "pause"),
        ("Fri 17 18:00", "resume"),
    ]


def test_the_digest_knows_the_dates() -> None:
    plain = debt().also(calendar={"holidays": "TH"})
    other = debt().also(calendar={"holidays": "LA"})
    assert plain.scenario().digest == plain.scenario().digest != other.scenario().digest


# -- what may not be meant -------------------------------------------------------------------------


def test_warnings_on_dates_hours_and_rules() -> None:
    calendar = {"holidays": "TH", "open": ["2026-04-17"], "closed": ["2026-06-01"]}
    rule = {"name": "House", "contact": {"weekday": "09:00-18:00"}}
    sketch = debt(until=21, max_attempts=3, retry_interval="1h").having(lines={"2027-01-01": 3})
    sketch = sketch.also(calendar=calendar, compliance=["thai-debt-collection", rule])
    assert list(sketch.scenario().warnings) == [
        "The run, from 2026-04-08 to 2026-04-21, does not reach 2026-06-01 (closed) and 2027-01-01 "
        "(lines of Acme).",
        "The calendar has closed dates, and campaigns without callingHours call on them: Debt of "
        "Acme. Give them callingHours.",
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
    sketch = debt({"weekday": "09:00-18:00"}).also(compliance=["thai-debt-collection"])
    (warning,) = sketch.scenario().warnings
    assert warning == (
        "Compliance rule thai-debt-collection has times for holidays, but no day is a holiday: "
        "write calendar: {holidays: TH} at the top level."
    )


# -- any calendar ----------------------------------------------------------------------------------


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
    hours=st.fixed_dictionaries(
        {"weekday": ranges()}, optional={name: ranges() for name in DAY_CLASSES[1:]}
    ),
    holidays=st.sets(DATES, max_size=4),
    closed=st.sets(DATES, max_size=2),
    start=MOMENTS,
    pauses=st.lists(st.tuples(MOMENTS, st.sampled_from(["pause", "resume"])), max_size=4),
)
def test_what_is_compiled_is_open_exactly_in_the_calling_hours(
    hours: dict[str, list[str]],
    holidays: set[str],
    closed: set[str],
    start: int,
    pauses: list[tuple[int, str]],
) -> None:
    """Half hour by half hour, read naively from the file and from the compiled schedule."""
    zero = midnight(FIRST)
    calendar = {"ownHolidays": dict.fromkeys(sorted(holidays), "H"), "closed": sorted(closed)}
    sketch = debt(hours, 21, start=start * HALF_HOUR / 1000).also(calendar=calendar)
    for at, action in pauses:
        sketch = sketch.at(at * HALF_HOUR / 1000, action, "Debt")

    def is_in_hours(half_hour: int) -> bool:
        day, minute = FIRST + timedelta(days=half_hour // 48), half_hour % 48 * 30
        if str(day) in closed:
            return False
        kind = DAY_CLASSES[max(0, day.weekday() - 4)]
        if str(day) in holidays and "holiday" in hours:
            kind = "holiday"
        return within(hours.get(kind, []), minute)

    if not any(is_in_hours(half_hour) for half_hour in range(start // 48 * 48, 14 * 48)):
        return  # an error, if dates matter
    scenario = sketch.scenario()
    weekly, owner = windows(scenario), scenario.organizations[0]
    actions = sorted((*owner.timeline, *owner.compiled_actions), key=lambda action: action.at)
    for half_hour in range(start, 14 * 48):
        at = zero + half_hour * HALF_HOUR
        day = FIRST + timedelta(days=half_hour // 48)
        done = [each.action for each in actions if each.at <= at]
        by_user = last_action(owner.timeline, at) == "pause"
        is_open = within(weekly.get(day.isoweekday(), []), half_hour % 48 * 30)
        calls = is_open and (not done or done[-1] != "pause")
        assert calls == (is_in_hours(half_hour) and not by_user), (half_hour, done)


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
    sketch = debt(until=21).also(calendar={"ownHolidays": {"2026-04-13": "H"}}).having(lines=keys)
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
    scenario = sketch.scenario()
    actions = scenario.organizations[0].compiled_actions
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


def test_a_campaign_that_is_added_has_no_calling_hours() -> None:
    simulation = dialsim.Simulation(debt().scenario())
    campaign = {"name": "More", "agent": "Agent", "recipients": {"count": 1}, "callingHours": {}}
    with pytest.raises(dialsim.ScenarioError, match="callingHours can't come with a campaign"):
        simulation.add_campaign(campaign)


def test_the_former_key_is_refused_with_its_new_name_and_digests_stay() -> None:
    scenario = debt({"weekday": "09:00-18:00"}).scenario()
    with pytest.raises(dialsim.ScenarioError, match=r"did you mean Debt\.callingHours"):
        scenario.with_("Debt.plan={weekday: [09:00-17:00]}")
    # Journals of scenarios with the former key hold this digest.
    assert scenario.digest.startswith("841cb5898ecdcf7d5312b796224469f2")
