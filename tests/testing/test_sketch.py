"""Sketches of scenarios, and the instants and windows in them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

import dialsim
from dialsim.interface.instants import parse_instant
from dialsim.scenario.behaviour import BUILT_IN
from dialsim.testing import Sketch, at
from dialsim.testing.sketch import stamp

MONDAY_9 = datetime(2026, 1, 5, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "later"),
    [
        ("Mon 09:00", timedelta()),
        ("Mon 00:00", -timedelta(hours=9)),
        ("Tue 09:00:30", timedelta(days=1, seconds=30)),
        ("Sun 18:59:59.999", timedelta(days=6, hours=9, minutes=59, seconds=59, milliseconds=999)),
        ("Mon 09:00:00.5", timedelta(milliseconds=500)),
        ("Mon 12 Jan 2026 09:00", timedelta(days=7)),
        ("12 Jan 2026 09:00", timedelta(days=7)),
    ],
)
def test_at_reads_thai_time(text: str, later: timedelta) -> None:
    assert at(text) == MONDAY_9 + later
    assert at(text).utcoffset() == timedelta(hours=7)


@pytest.mark.parametrize("instant", [0, 1_767_578_400_001, 253_402_300_799_999 - 7 * 3_600_000])
def test_at_reads_what_traces_print(instant: int) -> None:
    assert at(stamp(instant)) == datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=instant)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("09:00", "needs a day"),
        ("Mon", "needs a time"),
        ("Mon 9:00", "must have its time as HH:MM"),
        ("Mon09:00:00.1234", "no instant of Thai time"),
        ("Mon 24:00", "write Tue 00:00"),
        ("Mon 30 Feb 2026 09:00", "must name a day that exists"),
        ("Tue 5 Jan 2026 09:00", "5 Jan 2026 is a Monday"),
        ("5 Jan 2569 09:00", "2569 is 2026, so write 5 Jan 2026 09:00"),
        ("2026-01-05T09:00Z", "no instant of Thai time"),
    ],
)
def test_at_says_what_is_wrong(text: str, error: str) -> None:
    with pytest.raises(dialsim.DialsimError, match=error):
        at(text)


@pytest.mark.parametrize("when", ["2569-01-05T02:00Z", datetime(2569, 1, 5, 2, 0, tzinfo=UTC)])
def test_a_sketch_has_no_buddhist_years(when: str | datetime) -> None:
    with pytest.raises(dialsim.DialsimError, match="2569 is 2026, so write 2026-01-05T02:00:00"):
        Sketch(1, start=when)


def time_windows(windows: str) -> list[dict[str, object]]:
    """Windows of a sketch's schedule request."""
    document = json.loads(Sketch(1).campaign("A", windows=windows).text)
    found: list[dict[str, object]]
    found = document["organizations"][0]["campaigns"][0]["schedule"]["timeWindows"]
    return found


def test_windows_are_written_by_days_and_ranges() -> None:
    found = time_windows("Mon-Tue 09:00-12:00 13:00-17:00; Sun 10:00-11:00")
    morning, afternoon = ({"start": "09:00", "end": "12:00"}, {"start": "13:00", "end": "17:00"})
    assert found == [
        {"dayOfWeek": 1, "time": [morning, afternoon]},
        {"dayOfWeek": 2, "time": [morning, afternoon]},
        {"dayOfWeek": 7, "time": [{"start": "10:00", "end": "11:00"}]},
    ]
    assert [item["dayOfWeek"] for item in time_windows("daily 09:00-10:00")] == [
        1,
        2,
        3,
        4,
        5,
        6,
        7,
    ]
    assert [item["dayOfWeek"] for item in time_windows("Sat-Mon 09:00-10:00")] == [1, 6, 7]


@pytest.mark.parametrize("text", ["", "Mon", "Mon 09:00", "Mo 09:00-10:00", "Mon-Foo 09:00-10:00"])
def test_what_are_no_windows_is_said(text: str) -> None:
    with pytest.raises(dialsim.DialsimError, match=r"windows (must|needs)"):
        time_windows(text)


def test_a_sketch_is_a_scenario_like_a_files() -> None:
    sketch = (
        Sketch(3, start="Tue 10:00", end=3600, seed=4, queue_timeout="5m", calls_per_second=2)
        .having(calling_allowed=False)
        .campaign(
            "January",
            "busy 1s",
            {"tel": "0811111111", "customerName": "Somsri"},
            start=60,
            end="Wed 12:00",
            windows="Mon-Fri 09:00-12:00",
            requested="Tue 10:00:30",
            max_attempts=3,
            retry_interval="10m",
        )
        .organization("Bravo", lines=1, caller_ids=["029999999"])
        .campaign("Draft", recipients={"count": 7}, requested=None, agent="Other")
        .behaviour("holiday", outcomes={"noAnswer": 1})
        .at(90, "setConcurrency", 2)
        .at("Tue 10:10", "schedule", "Draft", start=at("Tue 10:20"), max_attempts=1)
        .at("Tue 10:30", "setBehaviour", "holiday", agent="Other")
    )
    scenario = sketch.scenario()
    acme, bravo = scenario.organizations
    ten = parse_instant("2026-01-06T03:00:00Z")
    assert (scenario.clock.start, scenario.clock.end, scenario.seed) == (ten, ten + 3_600_000, 4)
    assert (scenario.engine.queue_timeout, scenario.engine.calls_per_second) == (300_000, 2)
    assert (acme.max_concurrent_calls, acme.calling_allowed) == (3, False)
    request = acme.campaigns[0].schedule
    assert request is not None
    assert acme.campaigns[0].scheduled_at == ten + 30_000
    assert request.start_date_time == ten + 60_000
    assert request.end_date_time == parse_instant("2026-01-07T05:00:00Z")
    assert (request.max_attempts, request.retry_interval) == (3, 600_000)
    assert len(request.time_windows) == 5
    assert bravo.caller_ids == ("029999999",)
    assert [agent.name for agent in bravo.agents] == ["Agent", "Other"]
    assert bravo.campaigns[0].schedule is None
    limit, asked, holiday = bravo.timeline
    assert (limit.at, limit.value) == (ten + 90_000, 2)
    assert asked.body is not None
    assert asked.body.start_date_time == ten + 20 * 60_000
    assert (holiday.agent, holiday.behaviour) == ("Other", "holiday")


def test_every_action_of_the_timeline_can_be_sketched() -> None:
    sketch = Sketch(1).behaviour("b").campaign("A", "busy 0s")
    told = {"pause": "A", "resume": "A", "cancel": "A", "delete": "A", "schedule": "A"}
    told |= {"setBehaviour": "b", "setWebhookUrl": "https://example.test/hook"}
    for action, what in told.items():
        sketch = sketch.at(1, action, what)
    sketch = sketch.at(1, "setCallingAllowed", True).at(1, "setConcurrency", 2)
    sketch = sketch.at(1, "reanalyze", "A", share=0.5)
    done = [action.action for action in sketch.scenario().organizations[0].timeline]
    assert done == [*told, "setCallingAllowed", "setConcurrency", "reanalyze"]


def test_keys_at_the_top_and_of_agents_are_written_where_they_belong() -> None:
    outage = {"from": at("Mon 10:00"), "to": at("Mon 10:20")}
    sketch = (
        Sketch(2)
        .also(name="January", costs={"perDial": 1}, calendar={"closed": ["2026-01-06"]})
        .having(webhook={"url": "https://example.test", "receiver": {"outages": [outage]}})
        .agent("Reminder", voice_key="malee")
        .campaign("A", "busy 0s", agent="Reminder", calling_hours={"weekday": "10:00-11:00"},
                  value={"reached": 3}, id="7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10")
        .agent("Reminder", behaviour="slow")
        .behaviour("slow", setup_time="9s")
    )  # fmt: skip
    scenario = sketch.scenario()
    (acme,) = scenario.organizations
    (january,) = acme.campaigns
    assert scenario.name == "January"
    assert scenario.costs is not None
    assert scenario.costs.per_dial == 1
    assert scenario.has_closed_dates
    assert acme.webhook is not None
    assert acme.webhook.receiver.outages[0].from_ == parse_instant("2026-01-05T03:00:00Z")
    assert [agent.name for agent in acme.agents] == ["Agent", "Reminder"]
    assert (acme.agents[1].voice_key, acme.agents[1].behaviour) == ("malee", "slow")
    assert january.calling_hours is not None
    assert january.value is not None
    assert january.id == "7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10"


def test_without_a_setup_time_people_behave_as_the_built_in_behaviour_says() -> None:
    assert Sketch(1, setup_time=None).scenario().behaviours == {"default": BUILT_IN}
    assert Sketch(1).scenario().behaviours != {"default": BUILT_IN}


def test_a_sketch_is_never_changed() -> None:
    base = Sketch(1).campaign("A", "busy 0s")
    before = base.text
    more = base.at(1, "pause", "A").campaign("B").having(caller_ids=["021111111"])
    more.behaviour("x").organization("Bravo", 1)
    more.also(name="Other").agent("Agent", voice_key="malee")
    assert base.text == before != more.text


def test_a_sketch_has_no_chance_in_it() -> None:
    sketch = Sketch(1).campaign("A", "busy 1s; answered 3s 9s", "noAnswer 7s", max_attempts=2)
    texts = {dialsim.run(sketch.scenario(), seed=seed).sequences.str.cat() for seed in range(5)}
    assert len(texts) == 1


def test_mistakes_show_as_in_a_file() -> None:
    wrong = Sketch(1, queue_time="5m").campaign("A", "busy", max_attempts=0)
    with pytest.raises(dialsim.ScenarioError) as caught:
        wrong.scenario()
    text = str(caught.value)
    assert "<sketch>:" in text
    assert "queueTime" in text
    assert "organizations.0.campaigns.0.schedule.maxAttempts must not be less than 1" in text
    assert "organizations.0.campaigns.0.recipients.0.script" in text


def test_what_a_sketch_cannot_be_is_said() -> None:
    with pytest.raises(dialsim.DialsimError, match="no organization yet"):
        Sketch().campaign("A")
    with pytest.raises(dialsim.DialsimError, match="retry_interval needs a unit"):
        Sketch(1).campaign("A", retry_interval="5")
    with pytest.raises(dialsim.DialsimError, match="no value that a scenario file can contain"):
        _ = Sketch(1).also(name=b"bytes").text
    with pytest.raises(dialsim.DialsimError, match="has no time zone"):
        Sketch(1, start=datetime(2026, 1, 5, 9))  # noqa: DTZ001
