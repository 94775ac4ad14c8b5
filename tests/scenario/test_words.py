"""A planner's words in overrides: short paths, days, windows, lists, and exact errors."""

from __future__ import annotations

import itertools
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialsim.errors import DialsimError, ScenarioError
from dialsim.interface.instants import day_start, format_instant, parse_instant
from dialsim.scenario.campaign import Campaign
from dialsim.scenario.loading import loads, long_path, understood
from dialsim.scenario.overrides import Understood
from dialsim.scenario.problems import Problem
from dialsim.scenario.scenario import Scenario
from dialsim.scenario.week import (
    instant_in_words,
    read_windows,
    union,
    week_of,
    week_text,
    without,
)

TWO = """\
organizations:
  - name: Acme
    maxConcurrentCalls: 2
    callerIds: ["021000001", "021000002"]
    agents: [{name: Reminder}]
    campaigns:
      - name: Debt
        agent: Reminder
        recipients: {count: 10}
        schedule: {startDateTime: 2026-01-05T02:00:00Z, callerIds: ["021000002"]}
      - name: VIP
        agent: Reminder
        recipients: {count: 10}
        schedule: {startDateTime: 2026-01-06T02:00:00Z}
"""
"""Calling begins on Monday 5 January 2026 at 09:00 in Thailand."""

MONDAY = parse_instant("2026-01-04T17:00:00Z")


def debt(*overrides: str) -> Campaign:
    return loads(TWO, overrides=overrides).organizations[0].campaigns[0]


def schedule(*overrides: str) -> Any:
    return debt(*overrides).schedule


def windows(*overrides: str) -> str:
    return week_text(week_of(schedule(*overrides).time_windows))


# -- short paths ----------------------------------------------------------------------------------

ACME = "organizations.Acme"
PATHS = {
    "lines": f"{ACME}.maxConcurrentCalls",
    "Acme.lines": f"{ACME}.maxConcurrentCalls",
    "Acme.callerIds": f"{ACME}.callerIds",
    "Debt.maxAttempts": f"{ACME}.campaigns.Debt.schedule.maxAttempts",
    "Debt.schedule.maxAttempts": f"{ACME}.campaigns.Debt.schedule.maxAttempts",
    "Acme/Debt.retryInterval": f"{ACME}.campaigns.Debt.schedule.retryInterval",
    "Acme.Debt.windows": f"{ACME}.campaigns.Debt.schedule.timeWindows",
    "Debt.start": f"{ACME}.campaigns.Debt.schedule.startDateTime",
    "Debt.end": f"{ACME}.campaigns.Debt.schedule.endDateTime",
    "VIP.people": f"{ACME}.campaigns.VIP.recipients.count",
    "Reminder.voiceKey": f"{ACME}.agents.Reminder.voiceKey",
    "timeline": f"{ACME}.timeline",
    "callsPerSecond": "engine.callsPerSecond",
    "perDial": "costs.perDial",
    "default.outcomes.answered": "behaviours.default.outcomes.answered",
    "talkTime": "behaviours.default.talkTime",
    "seed": "seed",
    "organizations.0.maxConcurrentCalls": "organizations.0.maxConcurrentCalls",
}


@pytest.mark.parametrize("short", PATHS)
def test_a_short_path_is_the_full_one_where_only_one_can_be_meant(short: str) -> None:
    assert long_path(loads(TWO), short) == PATHS[short]


def test_a_short_path_leads_where_the_full_one_does() -> None:
    short = loads(TWO, overrides=["lines=40", "Debt.maxAttempts=3", "VIP.people=7"])
    full = loads(TWO, overrides=[f"{ACME}.maxConcurrentCalls=40",
                                 f"{ACME}.campaigns.Debt.schedule.maxAttempts=3",
                                 f"{ACME}.campaigns.VIP.recipients.count=7"])  # fmt: skip
    assert short.digest == full.digest != loads(TWO).digest


def test_names_with_dots_and_names_that_are_numbers_are_found() -> None:
    text = TWO.replace("name: Acme", "name: Acme Co. Ltd.").replace("name: VIP", 'name: "2026"')
    scenario = loads(text, overrides=["Acme Co. Ltd..lines=9", "2026.maxAttempts=4"])
    organization = scenario.organizations[0]
    assert organization.max_concurrent_calls == 9
    assert organization.campaigns[1].schedule is not None
    assert organization.campaigns[1].schedule.max_attempts == 4
    assert long_path(scenario, "2026.maxAttempts") == (
        "organizations.Acme Co. Ltd..campaigns.1.schedule.maxAttempts"
    )


def test_a_short_path_is_said_back_and_a_full_one_is_not() -> None:
    scenario = loads(TWO, overrides=["lines=40", f"{ACME}.maxConcurrentCalls=41", "seed=3"])
    assert understood(scenario) == [Understood("lines=40", f"{ACME}.maxConcurrentCalls")]


# -- days, durations, shares ----------------------------------------------------------------------

INSTANTS = {
    "Fri 18:00": "2026-01-09T11:00",
    "friday 18:00": "2026-01-09T11:00",
    "Mon 08:00": "2026-01-05T01:00",  # before calling begins, on its day
    "Sun 00:00": "2026-01-10T17:00",
    "Tue 6 Jan 19:00": "2026-01-06T12:00",
    "6 January 19:00": "2026-01-06T12:00",
    "Tue 6 Jan 2026 19:00": "2026-01-06T12:00",
    "4 Jan 10:00": "2027-01-04T03:00",  # the first one from that day on
    "29 Feb 10:00": "2028-02-29T03:00",
    "2026-01-09 18:00": "2026-01-09T11:00",
    "2026-01-09 18:00:30": "2026-01-09T11:00:30",
}


@pytest.mark.parametrize("words", INSTANTS)
def test_an_instant_in_words_is_thai_time_from_the_day_on_which_calling_begins(words: str) -> None:
    assert schedule(
        f"Debt.endDateTime={words}", "Debt.start=2026-01-05T00:30:00Z"
    ).end_date_time == (parse_instant(INSTANTS[words] + "Z"))


@given(st.integers(0, 10_000), st.integers(0, 6), st.integers(0, 1439))
def test_a_day_of_the_week_is_the_first_one_from_that_day_on(
    day: int, wanted: int, at: int
) -> None:
    first = MONDAY + day * 86_400_000
    name = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[wanted]
    found = instant_in_words(f"{name} {at // 60:02}:{at % 60:02}", first)
    assert found is not None
    assert first <= found < first + 7 * 86_400_000
    assert day_start(found) == found - at * 60_000
    assert (date(1970, 1, 1) + timedelta(milliseconds=found + 7 * 3_600_000)).weekday() == wanted


def test_the_day_on_which_calling_begins_is_the_same_before_and_after_reading() -> None:
    later = loads(TWO, overrides=["clock.start=2026-01-01T00:00:00Z", "Debt.start=Wed 09:00"])
    assert format_instant(later.organizations[0].campaigns[0].schedule.start_date_time) == (  # type: ignore[union-attr]
        "2026-01-07T02:00:00.000Z"
    )
    assert later.first_day == MONDAY + 86_400_000  # VIP begins on Tuesday
    assert later.with_("Debt.end=Mon 09:00").origin is not None


def test_words_are_understood_inside_of_what_is_appended() -> None:
    added = loads(TWO, overrides="timeline+={at: Tue 13:00, action: setConcurrency, value: 30}")
    (action,) = added.organizations[0].timeline
    assert (action.at, action.value) == (parse_instant("2026-01-06T06:00:00Z"), 30)
    assert understood(added)[0].instants == {"Tue 13:00": action.at}


def test_a_retry_interval_is_a_duration_or_milliseconds() -> None:
    both = [
        schedule("Debt.maxAttempts=2", f"Debt.retryInterval={text}") for text in ("2h", 7_200_000)
    ]
    assert [request.retry_interval for request in both] == [7_200_000, 7_200_000]


def test_a_percentage_is_a_share() -> None:
    scenario = loads(TWO, overrides=["default.outcomes={answered: 35%, noAnswer: 65 %}",
                                     "description=95%"])  # fmt: skip
    assert scenario.behaviours["default"].outcomes.answered == 0.35
    assert scenario.description == "95%"


def test_an_instant_with_an_offset_is_what_it_says() -> None:
    assert schedule("Debt.end=2026-01-09 18:00Z").end_date_time == parse_instant(
        "2026-01-09T18:00Z"
    )


# -- windows and lists ----------------------------------------------------------------------------

WEEKS = {
    "Debt.windows=Mon-Fri 09:00-19:00": "Mon-Fri 09:00-19:00",
    "Debt.windows=Mon-Fri 09:00-12:00, 13:00-17:00; Sat 10:00-14:00": (
        "Mon-Fri 09:00-12:00 13:00-17:00; Sat 10:00-14:00"
    ),
    "Debt.windows=Sat-Mon 10:00-11:00": "Mon 10:00-11:00; Sat-Sun 10:00-11:00",
    "Debt.windows=weekdays 9:00-12:00": "Mon-Fri 09:00-12:00",
    "Debt.windows+=Sun 18:00-20:00": "Mon-Fri 09:00-19:00; Sat 10:00-19:00; Sun 10:00-20:00",
    "Debt.windows-=Sat": "Mon-Fri 09:00-19:00; Sun 10:00-19:00",
    "Debt.windows-=Mon-Fri 12:00-13:00": "Mon-Fri 09:00-12:00 13:00-19:00; Sat-Sun 10:00-19:00",
    "Debt.windows-=weekends": "Mon-Fri 09:00-19:00",
    "Debt.windows+=[{dayOfWeek: 7, time: [{start: '19:00', end: '20:00'}]}]": (
        "Mon-Fri 09:00-19:00; Sat 10:00-19:00; Sun 10:00-20:00"
    ),
}


@pytest.mark.parametrize("override", WEEKS)
def test_windows_are_set_opened_and_closed_in_words(override: str) -> None:
    assert windows(override) == WEEKS[override]
    (said,) = understood(loads(TWO, overrides=override))
    assert said.windows == WEEKS[override]


def test_changes_of_windows_add_up() -> None:
    text = TWO.replace("callerIds: [\"021000002\"]}", "timeWindows: [{dayOfWeek: 1, time: "
                       "[{start: '09:00', end: '12:00'}]}]}")  # fmt: skip
    changed = loads(
        text, overrides=["Debt.windows+=Sun 09:00-18:00", "Debt.windows-=Sun 12:00-13:00"]
    )
    (_, said) = understood(changed)
    assert said.windows == "Mon 09:00-12:00; Sun 09:00-12:00 13:00-18:00"


SPANS = st.lists(
    st.tuples(st.integers(0, 100), st.integers(1, 50)).map(lambda s: (s[0], s[0] + s[1])),
    max_size=6,
)


@given(SPANS, SPANS)
def test_spans_are_union_and_cut_minute_by_minute(spans: Any, cuts: Any) -> None:
    def minutes(parts: Any) -> set[int]:
        return {minute for start, end in parts for minute in range(start, end)}

    whole, left = union(spans), without(spans, cuts)
    assert minutes(whole) == minutes(spans)
    assert minutes(left) == minutes(spans) - minutes(cuts)
    for parts in (whole, left):
        assert all(a < b for a, b in parts)
        assert all(b <= c for (_, b), (c, _) in itertools.pairwise(parts))
    assert all(b < c for (_, b), (c, _) in itertools.pairwise(whole))


def test_what_a_week_is_said_to_be_reads_back_as_the_week() -> None:
    week = read_windows("Mon Wed-Fri 09:00-12:00 13:00-17:00; Sat 10:00-14:00; Sun 00:00-23:59")
    assert read_windows(week_text(week)) == week


def test_lists_are_added_to_and_taken_from() -> None:
    assert schedule("Debt.callerIds+=021000001").caller_ids == ("021000002", "021000001")
    both = ("Debt.callerIds+=021000001", "Debt.callerIds-=[021000002]")
    assert schedule(*both).caller_ids == ("021000001",)
    assert [c.name for c in loads(TWO, overrides="campaigns-=VIP").organizations[0].campaigns] == [
        "Debt"
    ]


def test_a_count_of_caller_ids_takes_the_first_then_others_then_made_up_ones() -> None:
    def used(count: int) -> tuple[Scenario, tuple[str, ...]]:
        scenario = loads(TWO, overrides=f"Debt.callerIds={count}")
        request = scenario.organizations[0].campaigns[0].schedule
        assert request is not None
        return scenario, request.caller_ids or ()

    assert used(1)[1] == ("021000002",)
    assert used(2)[1] == ("021000002", "021000001")
    scenario, four = used(4)
    assert four == ("021000002", "021000001", "000000001", "000000002")
    assert set(four) <= set(scenario.organizations[0].caller_ids)
    assert scenario.warnings == (
        "Campaign Debt of Acme calls from 000000001 and 000000002, which are made-up caller IDs, "
        "to be rented in addition to those in the file.",
    )
    assert used(2)[0].warnings == ()


def test_windows_of_a_campaign_with_calling_hours_are_not_changed() -> None:
    hours = "Debt.callingHours={weekday: [09:00-17:00]}"
    with pytest.raises(ScenarioError) as refused:
        loads(TWO, overrides=[hours, "Debt.windows+=Sun 09:00-18:00"])
    assert "timeWindows can't be changed: the campaign has callingHours instead" in str(
        refused.value
    )


def test_lines_is_how_many_there_are_and_lines_by_time_have_a_full_path() -> None:
    by_time = loads(TWO, overrides=["lines=4", f"{ACME}.lines={{Mon-Fri 13:00-18:00: 9}}"])
    assert by_time.organizations[0].max_concurrent_calls == 4
    assert by_time.organizations[0].lines == {"Mon-Fri 13:00-18:00": 9}


# -- errors ---------------------------------------------------------------------------------------

DEBT = f"{ACME}.campaigns.Debt.schedule"
REFUSED = {
    "maxAttempts=3": "maxAttempts is ambiguous; write "
    f"{DEBT}.maxAttempts or {ACME}.campaigns.VIP.schedule.maxAttempts",
    "callerIds=3": "callerIds is ambiguous; write "
    f"{DEBT}.callerIds or {ACME}.campaigns.VIP.schedule.callerIds",
    "Dept.maxAttempts=3": "Dept is not a known key; did you mean Debt.maxAttempts?",
    "Debt.maxAttemps=3": "Debt has no maxAttemps; did you mean Debt.maxAttempts?",
    "line=4": "line is not a known key; did you mean lines?",
    "Debt=4": "Debt is a name alone: write one of its settings, such as Debt.startDateTime",
    "foo=4": "foo is neither a key of the file nor a name in it; paths are such as lines, "
    "CAMPAIGN.maxAttempts or organizations.ORGANIZATION.maxConcurrentCalls",
    "lines+=4": f"{ACME}.maxConcurrentCalls is no list: += is for lists",
    "Debt.callerIds-=099": f"{DEBT}.callerIds has no item 099; it has 021000002",
    "Debt.callerIds=0": f"{DEBT}.callerIds must be 1 to 1,000 caller IDs, not 0",
    "Debt.callerIds=021000001": f"{DEBT}.callerIds must be a list of numbers, "
    '["021000001"], or how many of them: 3, for instance',
    "Debt.windows+=Sunn 09:00-10:00": f"{DEBT}.timeWindows must name a day, which "
    '"Sunn" is not; did you mean Sun?',
    "Debt.windows+=Sun": f'{DEBT}.timeWindows needs times behind the days "Sun", such as '
    "Mon-Fri 09:00-19:00",
    "Debt.windows+=Mon 09:00-10:00": f'{DEBT}.timeWindows has "Mon 09:00-10:00" open '
    "already: it is Mon-Fri 09:00-19:00; Sat-Sun 10:00-19:00",
    "Debt.windows-=Sun 20:00-21:00": f'{DEBT}.timeWindows has "Sun 20:00-21:00" not open: '
    "it is Mon-Fri 09:00-19:00; Sat-Sun 10:00-19:00",
    "Debt.windows-=daily": f"{DEBT}.timeWindows must leave some time for calls",
    "Debt.windows=Mon 18:00-09:00": f"{DEBT}.timeWindows must end after it starts, which "
    '"18:00-09:00" does not: write 09:00-18:00',
    "Debt.windows=Mon 9-17": f"{DEBT}.timeWindows must be a time such as 09:00-18:00, not "
    '"9-17": write 09:00-17:00',
    "Debt.windows=daily 09:00-24:00": f"{DEBT}.timeWindows must be a time such as 09:00-18:00, "
    'not "09:00-24:00": days end at 23:59, so write 09:00-23:59',
    "Debt.windows=09:00-17:00": f"{DEBT}.timeWindows must be days and times such as Mon-Fri "
    '09:00-19:00, not "09:00-17:00"',
    "Debt.windows=Mon 09:00-10:00 Tue 09:00-10:00": f"{DEBT}.timeWindows must have a semicolon "
    'before the days "Tue"',
    "Debt.end=Frii 18:00": f'{DEBT}.endDateTime must name a day, which "Frii" in "Frii 18:00" is '
    "not; did you mean Fri?",
    "Debt.end=Fri": f'{DEBT}.endDateTime needs a time: "Fri 18:00", for instance, Thai time',
    "Debt.end=18:00": f'{DEBT}.endDateTime needs a day: "Mon 18:00" or "2026-01-05 18:00", '
    "for instance",
    "Debt.end=2026-01-09": f'{DEBT}.endDateTime needs a time: "2026-01-09 18:00", for instance, '
    "Thai time",
    "Debt.end=Fri 6pm": f'{DEBT}.endDateTime must have its time as HH:MM, which "Fri 6pm" has not: '
    "write 18:00",
    "Debt.end=Fri 24:00": f"{DEBT}.endDateTime must have a time from 00:00 to 23:59: write Sat "
    '00:00 for "Fri 24:00"',
    "Debt.end=Wed 6 Jan 18:00": f'{DEBT}.endDateTime must name one day, but "Wed 6 Jan 18:00" does '
    "not: 6 Jan 2026 is a Tuesday",
    "Debt.end=Tue 6 Jan 2569 18:00": f"{DEBT}.endDateTime must not count years in the Buddhist "
    "era: 2569 is 2026, so write Tue 6 Jan 2026 18:00",
    "Debt.end=2569-01-09 18:00": f"{DEBT}.endDateTime must not count years in the Buddhist era: "
    "2569 is 2026, so write 2026-01-09 18:00",
    "Debt.end=30 Feb 10:00": f'{DEBT}.endDateTime must name a day that exists, which "30 Feb '
    '10:00" does not',
    "Debt.retryInterval=2x": f"{DEBT}.retryInterval must be a duration such as 250ms, 45s, 10m, "
    '1h30m or 2d, not "2x"; or milliseconds, or next calling day',
}  # fmt: skip


@pytest.mark.parametrize("override", REFUSED)
def test_words_that_say_nothing_or_too_much_get_exactly_this_error(override: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        loads(TWO, overrides=override)
    assert str(refused.value) == f"--set {override}: {REFUSED[override]}"


def test_a_campaign_of_two_organizations_needs_theirs_in_front() -> None:
    text = TWO + TWO.removeprefix("organizations:\n").replace("Acme", "Bolt")
    with pytest.raises(ScenarioError) as refused:
        loads(text, overrides="Debt.maxAttempts=2")
    assert str(refused.value) == (
        f"--set Debt.maxAttempts=2: Debt.maxAttempts is ambiguous; write {DEBT}.maxAttempts or "
        "organizations.Bolt.campaigns.Debt.schedule.maxAttempts"
    )
    bolt = loads(text, overrides="Bolt/Debt.maxAttempts=2").organizations[1]
    assert bolt.campaigns[0].schedule is not None
    assert bolt.campaigns[0].schedule.max_attempts == 2


def test_an_unknown_short_path_in_python_is_an_error_of_dialsim() -> None:
    with pytest.raises(DialsimError, match="did you mean lines"):
        long_path(loads(TWO), "line")


@given(st.text(alphabet="linesDebt.windowsMon 0123:-+=[]{},;%", max_size=30))
def test_any_words_are_understood_or_refused(override: str) -> None:
    problems: tuple[Problem, ...] = ()
    try:
        loads(TWO, overrides=[override])
    except ScenarioError as error:
        problems = error.problems
    assert all(problem.message for problem in problems)
