"""A simulation stepped and steered by hand (T4, T5; see `rows`)."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialsim.engine.simulation import Simulation
from dialsim.engine.trace import Trace
from dialsim.errors import DialsimError, Refused
from dialsim.interface import CampaignStatus
from dialsim.scenario.scenario import Scenario
from dialsim.testing import Sketch, assert_no_violations
from engine.chancy import chancy_scenario
from engine.readings import loaded
from engine.rows import START, ZERO, after, calls, dials, life, lines, rows, stalled, tables
from oracle.given import clock_start
from oracle.scenarios import iso, random_scenario

RETRY = {"max_attempts": 2, "retry_interval": "5m"}
AT_ONCE = {"startDateTime": "2026-01-05T03:00:00Z"}
"""The body of a schedule request."""


def busy(*, end: float | None = None, **body: Any) -> Simulation:
    """One person: setup until 2, ringing until 5, BUSY."""
    return Simulation(Sketch(1, start=START, end=end).campaign("A", "busy 3s", **body).scenario())


def test_a_new_simulation_stands_at_clock_start_with_that_instants_work_done() -> None:
    live = busy()
    assert live.now == START
    assert live.now.tzinfo is UTC
    assert live.status("A") is CampaignStatus.RUNNING
    assert dials(live.trace) == ["0 A 0.1"]
    assert live.next_event_at == after(2)


def test_a_simulation_says_in_a_line_where_it_stands() -> None:
    live = Simulation(
        Sketch(1, start=START)
        .campaign("A", "busy 3s")
        .campaign("B", "busy 3s", requested=None)
        .scenario()
    )
    live.advance(to=after(1.5))
    assert repr(live) == (
        "<dialsim.Simulation 'Sketch' at 2026-01-05T03:00:01.500Z, campaigns: 1 RUNNING, 1 DRAFT>"
    )
    nobody = Simulation(Sketch(1, start=START).scenario())
    assert repr(nobody) == (
        "<dialsim.Simulation 'Sketch' at 2026-01-05T03:00:00.000Z, campaigns: none>"
    )


def test_t5_advancing_to_an_instant_includes_it() -> None:
    live = busy()
    assert live.advance(to=after(1.999)) == after(1.999)
    assert len(calls(live.trace)) == 3
    live.advance(to=after(2))
    assert calls(live.trace)[3:] == ["2 0.1 INITIATED>ringing ringing"]
    live.advance(to=after(2))  # nothing is done twice
    assert len(calls(live.trace)) == 4


@pytest.mark.parametrize(
    "to",
    [
        "2026-01-05T03:00:05Z",
        "2026-01-05T10:00:05+07:00",
        "2026-01-05T03:00:05",
        after(5).astimezone(UTC),
        after(5),
    ],
)
def test_an_instant_is_a_text_or_a_datetime_of_any_zone(to: Any) -> None:
    live = busy()
    assert live.advance(to=to) == after(5)
    assert life(live.trace)[-1] == "5 A RUNNING>COMPLETED all_final"


def test_spans_add_up() -> None:
    live = busy()
    assert live.advance(seconds=1, milliseconds=500) == after(1.5)
    assert live.advance(minutes=2) == after(121.5)
    assert live.advance(days=1, hours=0.5) == after(86_400 + 1800 + 121.5)
    assert live.advance() == live.now
    assert live.trace.end == ZERO + 86_400_000 + 1_800_000 + 121_500


def test_next_event_goes_to_the_next_change_and_nowhere_when_there_is_none() -> None:
    live = busy(**RETRY)
    stops = [live.advance(until="nextEvent") for _ in range(8)]
    # ringing, busy, the retry (due, released and dialled at once), ringing, busy
    assert stops == [after(s) for s in (2, 5, 305, 307, 310, 310, 310, 310)]
    assert live.next_event_at is None


def test_next_event_passes_over_instants_at_which_nothing_changes() -> None:
    # At 600 person 1's wait in the queue would have been too long, had it not been dialled at 100.
    written = Sketch(1, start=START).campaign("A", "answered 0s 98s", "answered 0s 1000s")
    live = Simulation(written.scenario())
    stops = [live.advance(until="nextEvent") for _ in range(4)]
    assert stops == [after(s) for s in (2, 100, 102, 1102)]


def test_next_event_stops_where_a_limit_changes_or_something_is_refused() -> None:
    live = Simulation(
        Sketch(1, start=START)
        .campaign("A", "busy 0s")
        .at(50, "setConcurrency", 3)
        .at(70, "resume", "A")
        .scenario()
    )
    stops = [live.advance(until="nextEvent") for _ in range(3)]
    assert stops == [after(s) for s in (2, 50, 70)]
    assert live.trace.refused[0].message == "Cannot resume a COMPLETED campaign"


def test_idle_is_when_nothing_is_left_to_happen() -> None:
    live = busy(**RETRY)
    assert live.advance(until="idle") == after(310)
    assert live.next_event_at is None
    assert live.advance(until="idle") == after(310)
    assert live.status("A") is CampaignStatus.COMPLETED


def test_t5_the_clock_does_not_pass_clock_end() -> None:
    live = busy(end=4)
    for _ in range(5):
        assert live.advance(until="nextEvent") <= after(4)
    live.advance(until="idle")
    assert live.next_event_at == after(5)
    live.advance(to=after(4))
    assert live.trace.cut
    assert stalled(live.trace) == set()
    assert live.run().end == ZERO + 4000


PAST = "advance: 2026-01-05T03:00:09.000Z is before now, 2026-01-05T03:00:10.000Z"
LATE = "advance: 2026-01-05T03:00:21.000Z is after clock.end, 2026-01-05T03:00:20.000Z"
ONE = "advance: give one of `to`, `until` or a span such as `hours=2`"
BUDDHIST = (
    "advance: to must not count years in the Buddhist era: 2569 is 2026, so write 2026-01-05T03:00:"
)
NAIVE = "advance: 2026-01-05 04:00:00 has no time zone; give an aware datetime or text"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"to": after(9)}, PAST),
        ({"seconds": -1}, PAST),
        ({"to": after(21)}, LATE),
        ({"milliseconds": 11_000}, LATE),
        ({"to": after(11), "seconds": 1}, ONE),
        ({"until": "idle", "seconds": 1}, ONE),
        ({"until": "idle", "to": after(11)}, ONE),
        ({"until": "noon"}, "until must be 'nextEvent' or 'idle', not 'noon'"),
        ({"to": datetime(2026, 1, 5, 4)}, NAIVE),  # noqa: DTZ001
        ({"to": "2569-01-05T03:00:11Z"}, BUDDHIST + "11Z"),
        ({"to": datetime(2569, 1, 5, 3, 0, 12, tzinfo=UTC)}, BUDDHIST + "12+00:00"),
    ],
)
def test_an_impossible_advance_is_refused_and_moves_nothing(arguments: Any, text: str) -> None:
    live = busy(end=20)
    live.advance(to=after(10))
    with pytest.raises(DialsimError) as caught:
        live.advance(**arguments)
    assert str(caught.value) == text
    assert live.now == after(10)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"to": "tomorrow"}, "advance: 'tomorrow' is not an ISO 8601 date or date-time such as"),
        ({"days": 3_000_000}, "advance: the clock stays within the years 1970 to 9999"),
        ({"days": -30_000}, "advance: the clock stays within the years 1970 to 9999"),
    ],
)
def test_an_instant_that_there_is_not_is_an_error_of_dialsim(arguments: Any, text: str) -> None:
    with pytest.raises(DialsimError) as caught:
        busy().advance(**arguments)
    assert str(caught.value).startswith(text)


def test_t4_a_command_comes_after_all_of_the_instants_work() -> None:
    # A pause of the file at 2 is step 1 and withdraws the line; this one finds it ringing.
    live = busy()
    live.advance(to=after(2))
    live.pause("A")
    live.advance(until="idle")
    assert calls(live.trace)[-1] == "5 0.1 INITIATED>BUSY ended"
    assert life(live.trace)[-1] == "2 A RUNNING>PAUSED pause"
    live.resume("A")
    assert life(live.trace)[-2:] == lines("""
        5 A PAUSED>RUNNING resume
        5 A RUNNING>COMPLETED all_final""")


def test_t4_what_a_command_brings_about_happens_in_the_same_instant() -> None:
    live = Simulation(
        Sketch(1, start=START).campaign("A", "busy 3s").campaign("B", "busy 3s").scenario()
    )
    live.advance(to=after(1))
    live.pause("A")  # its slot is free at once
    assert dials(live.trace) == ["0 A 0.1", "1 B 0.1"]
    live.set_concurrency(2)
    live.resume("A")
    assert dials(live.trace) == ["0 A 0.1", "1 A 0.1", "1 B 0.1"]
    live.cancel("B")
    assert calls(live.trace, "B")[-1] == "1 0.1 INITIATED>CANCELLED cancelled"
    assert live.now == after(1)


def test_the_commands_do_what_they_say() -> None:
    live = Simulation(
        Sketch(0, start=START)
        .behaviour("slow", setup_time="5s")
        .campaign("A", "busy 0s", "busy 0s", requested=None)
        .scenario()
    )
    assert live.status("A") is CampaignStatus.DRAFT
    live.schedule("A", {"startDateTime": "2026-01-05T03:00:10Z"})
    assert live.status("A") is CampaignStatus.SCHEDULED
    live.pause("A")
    live.resume("A")
    live.advance(to=after(20))
    assert live.status("A") is CampaignStatus.RUNNING
    live.set_concurrency(1)
    assert dials(live.trace) == ["20 A 0.1"]
    live.set_behaviour("Agent", "slow")
    live.advance(to=after(23))
    live.delete("A")
    assert [row for row in calls(live.trace) if " 1.1 " in row][2:] == lines("""
        22 1.1 QUEUED>dialling dialled
        23 1.1 INITIATED>CANCELLED deleted""")
    assert live.status("A") is CampaignStatus.CANCELLED
    assert_no_violations(live)


def test_a_slow_behaviour_holds_from_the_next_dial_on() -> None:
    live = Simulation(
        Sketch(1, start=START)
        .behaviour("slow", setup_time="5s")
        .campaign("A", "busy 0s", "busy 0s")
        .scenario()
    )
    live.set_behaviour("Agent", "slow", organization="Acme")
    live.advance(until="idle")
    assert [row for row in calls(live.trace) if row.endswith("ended")] == lines("""
        2 0.1 INITIATED>BUSY ended
        7 1.1 INITIATED>BUSY ended""")


def test_c9_a_request_with_a_buddhist_year_is_an_error_that_proposes_the_year() -> None:
    live = Simulation(Sketch(1, start=START).campaign("D", "busy 3s", requested=None).scenario())
    with pytest.raises(DialsimError) as caught:
        live.schedule("D", {"startDateTime": "2026-01-05", "endDateTime": "2569-01-06T12:00Z"})
    assert str(caught.value) == (
        "schedule: endDateTime must not count years in the Buddhist era: 2569 is 2026, "
        "so write 2026-01-06T12:00:00Z"
    )
    assert live.status("D") is CampaignStatus.DRAFT


NOT_NOW = (409, "INVALID_CAMPAIGN_STATE")


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        (lambda live: live.resume("A"), NOT_NOW, "Cannot resume a RUNNING campaign"),
        (lambda live: live.pause("D"), NOT_NOW, "Cannot pause a DRAFT campaign"),
        (
            lambda live: live.schedule("A", AT_ONCE),
            (409, "CAMPAIGN_ALREADY_STARTED"),
            "Campaign has already been started (current status: RUNNING)",
        ),
        (
            lambda live: live.schedule("D", {}),
            (400, "VALIDATION_FAILED"),
            "startDateTime must be a valid ISO 8601 date string",
        ),
    ],
)
def test_a_refused_command_raises_the_interfaces_text_and_changes_nothing(
    command: Callable[[Simulation], None], code: tuple[int, str], text: str
) -> None:
    live = Simulation(
        Sketch(1, start=START).campaign("A", "busy 3s").campaign("D", requested=None).scenario()
    )
    live.advance(to=after(1))
    before = tables(live.trace)
    with pytest.raises(Refused) as caught:
        command(live)
    assert (caught.value.status, caught.value.code) == code
    assert str(caught.value) == caught.value.message == text
    assert tables(live.trace) == before  # nor is it listed: the caller got the error
    assert live.trace.turn == 0
    assert live.run().refused == []


def test_a_campaign_is_named_alone_or_with_its_organization() -> None:
    live = Simulation(
        Sketch(2, start=START)
        .campaign("January", "busy 3s")
        .campaign("May", "busy 3s")
        .organization("Bravo", 1)
        .campaign("January", "busy 3s")
        .scenario()
    )
    live.pause("Acme/January")
    live.pause("May")
    statuses = [live.status(name) for name in ("Acme/January", "Bravo/January", "Acme/May")]
    assert statuses == ["PAUSED", "RUNNING", "PAUSED"]
    for name, text in (
        ("January", "more than one campaign 'January'; say which: Acme/January, Bravo/January"),
        ("June", "no campaign 'June'; there are: Acme/January, Acme/May, Bravo/January"),
        ("Bravo/May", "no campaign 'Bravo/May'; there are: Acme/January, Acme/May, Bravo/January"),
    ):
        with pytest.raises(DialsimError) as caught:
            live.pause(name)
        assert str(caught.value) == text


def test_of_several_organizations_one_must_be_named() -> None:
    live = Simulation(
        Sketch(1, start=START)
        .campaign("A", "busy 3s")
        .organization("Bravo", 1)
        .campaign("A", "busy 3s")
        .scenario()
    )
    live.set_concurrency(0, "Bravo")
    assert [(row.organization, row.limit) for row in live.trace.limits] == [(0, 1), (1, 1), (1, 0)]
    for name, text in (
        (None, "name the organization: Acme, Bravo"),
        ("Coda", "no organization 'Coda'; there are: Acme, Bravo"),
    ):
        with pytest.raises(DialsimError) as caught:
            live.set_concurrency(3, name)
        assert str(caught.value) == text


@pytest.mark.parametrize("value", [-1, 1.5, True, "3", None])
def test_a_limit_is_a_whole_number(value: Any) -> None:
    with pytest.raises(DialsimError) as caught:
        busy().set_concurrency(value)
    right = "0 or more" if value == -1 else "a whole number"
    assert str(caught.value) == f"value must be {right}, not {value!r}"


@pytest.mark.parametrize("name", ["seed", "replication"])
@pytest.mark.parametrize(
    ("value", "says"),
    [
        (-1, "-1 is not an integer of 0 or more"),
        (1.5, "must be a whole number, not 1.5"),
        (True, "must be a whole number, not True"),
        ("3", "must be a whole number, not '3'"),
    ],
)
def test_a_seed_or_replication_that_there_is_not_is_an_error(
    name: str, value: Any, says: str
) -> None:
    with pytest.raises(DialsimError) as caught:
        Simulation(Sketch(1, start=START).campaign("A", "busy 3s").scenario(), **{name: value})
    assert str(caught.value) == f"{name} {says}"


def test_a_file_that_was_not_loaded_is_an_error() -> None:
    with pytest.raises(DialsimError) as caught:
        Simulation("first.yaml")  # type: ignore[arg-type]
    assert str(caught.value) == (
        "scenario must be a Scenario, from dialsim.load or dialsim.scenario, not 'first.yaml'"
    )


def test_an_unknown_behaviour_or_agent_is_an_error() -> None:
    sketch = Sketch(1, start=START).behaviour("slow", setup_time="5s").agent("Other")
    live = Simulation(sketch.scenario())
    with pytest.raises(DialsimError, match=r"no behaviour 'fast'; there are: default, slow"):
        live.set_behaviour("Agent", "fast")
    with pytest.raises(DialsimError, match=r"no agent 'Nobody'; there are: Agent, Other"):
        live.set_behaviour("Nobody", "slow")


def test_progress_is_told_and_ends_with_everybody() -> None:
    told: list[tuple[int, int]] = []
    live = Simulation(
        Sketch(1, start=START)
        .campaign("A", *["busy 3s"] * 5)
        .campaign("B", *["busy 3s"] * 2)
        .at(6, "cancel", "B")
        .scenario()
    )
    live.run(lambda done, people: told.append((done, people)))
    assert told[-1] == (7, 7)
    assert told == sorted(told)


@cache
def reference(seed: int) -> tuple[Scenario, bytes, int, int]:
    """A scenario of this seed, its tables when run at once, and when it begins and ends."""
    scenario = loaded(chancy_scenario(seed) if seed % 2 else random_scenario(seed))
    trace = Simulation(scenario).run()
    return scenario, tables(trace), scenario.clock.start, trace.end


@settings(max_examples=20)
@given(st.data())
def test_stepping_in_any_increments_yields_the_trace_of_one_run(data: st.DataObject) -> None:
    scenario, expected, start, end = reference(data.draw(st.integers(0, 30)))
    live = Simulation(scenario)
    for _ in range(data.draw(st.integers(0, 12))):
        now = round(live.now.timestamp() * 1000)
        if now >= end:
            break
        match data.draw(st.sampled_from(("to", "span", "nextEvent", "look"))):
            case "to":
                instant = data.draw(st.integers(now, end))
                live.advance(to=datetime.fromtimestamp(instant / 1000, UTC))
            case "span":
                live.advance(milliseconds=data.draw(st.integers(0, min(60_000, end - now))))
            case "nextEvent":
                live.advance(until="nextEvent")
            case "look":
                assert len(tables(live.trace)) <= len(expected) + 500
    assert start <= live.now.timestamp() * 1000 <= end
    assert tables(live.run()) == expected


def quiet_instants(trace: Trace, rng: random.Random) -> list[int]:
    """Return instants within a run without any event."""
    taken = {row.at for row in rows(trace)} | {row.at for row in trace.campaigns}
    taken |= {row.at for row in trace.limits} | {row.at for row in trace.refused}
    near = {rng.choice(sorted(taken)) + rng.randint(2, 999) for _ in range(9)}
    return [at for at in sorted(near - taken) if at < trace.end]


def test_a_command_given_at_a_quiet_instant_does_what_the_files_action_does() -> None:
    # Without other events it makes no difference that commands come last (T4).
    compared = 0
    for seed in range(5):
        rng, written = random.Random(seed), chancy_scenario(seed, people=8)
        acme = written["organizations"][0]
        written["clock"] = {"start": iso(clock_start(written))}
        model = loaded(written)
        for moment in quiet_instants(Simulation(model).run(), rng):
            verb = rng.choice(("pause", "resume", "cancel", "delete"))
            name = f"Acme/{rng.choice(acme['campaigns'])['name']}"
            live = Simulation(model)
            live.advance(to=iso(moment))
            try:
                getattr(live, verb)(name)
            except Refused:
                continue
            action = {"at": iso(moment), "action": verb, "campaign": name.removeprefix("Acme/")}
            filed = acme | {"timeline": [*acme["timeline"], action]}
            others = written["organizations"][1:]
            same = Simulation(loaded(written | {"organizations": [filed, *others]}))
            assert tables(live.run()) == tables(same.run())
            compared += 1
    assert compared > 5


def test_a_snapshot_of_the_trace_shares_nothing_that_grows() -> None:
    simulation = Simulation(Sketch(1, start=START).campaign("A", "answered 5s 60s").scenario())
    simulation.advance(seconds=1)
    trace = simulation.trace
    snapshot, size = trace.snapshot(), trace.size()
    growing = [
        (getattr(trace, field.name), getattr(snapshot, field.name))
        for field in fields(trace)
        if isinstance(getattr(trace, field.name), list | dict | array)
    ]
    growing += [
        (getattr(trace.calls[0][0], column), getattr(snapshot.calls[0][0], column))
        for column in trace.calls[0][0].__slots__
    ]
    growing.append(
        (trace.world.organizations[0].campaigns, snapshot.world.organizations[0].campaigns)
    )
    assert len(growing) >= 12
    assert [ours for ours, theirs in growing if ours is theirs] == []
    simulation.advance(until="idle")
    assert snapshot.size() == size < trace.size()
