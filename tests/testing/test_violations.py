"""The checker would notice: sound traces are broken on purpose, rule by rule."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dialsim.engine.simulation import Simulation
from dialsim.engine.trace import CHANGES, DIALLED, CallLog, LimitChange, Trace, call_key
from dialsim.errors import Refused
from dialsim.interface import CampaignStatus
from dialsim.interface.schedule import read_schedule
from dialsim.testing import Sketch, assert_no_violations, violations
from engine.readings import loaded, run
from engine.rows import START, ZERO, after
from oracle.scenarios import random_scenario

Entry = list[int]  # at (ms after ZERO), recipient, call, kind
RETRY = {"max_attempts": 2, "retry_interval": "5m"}


def mondays(start: str, end: str) -> list[dict[str, object]]:
    """A window of a schedule request."""
    return [{"dayOfWeek": 1, "time": [{"start": start, "end": end}]}]


def pair(slots: int = 1, **body: Any) -> Sketch:
    """Two people, one slot: 0 is busy from 2 to 5 and again; 1 answers at 7, and talks 10 s."""
    people = "busy 3s", "answered 0s 10s"
    return Sketch(slots, start=START).campaign("A", *people, **RETRY, **body)


def sound() -> Trace:
    """The run of such a pair."""
    return run(pair())


def rewritten(trace: Trace, edit: Callable[[Entry], Entry | None]) -> Trace:
    """The trace with every row edited; None leaves a row out."""
    old, new = trace.calls[0][0], CallLog()
    rows, dialled = old.rows(), 0
    for entry in zip(rows.at - ZERO, rows.recipient, rows.call, rows.kind, strict=True):
        edited = edit([int(value) for value in entry])
        dialled += entry[3] == DIALLED
        if edited is not None:
            when, recipient, call, kind = edited
            new.append(ZERO + when, call_key(recipient, call) | kind)
            if kind == DIALLED:
                new.dial_numbers.append(old.dial_numbers[dialled - 1])
                new.dial_voices.append(old.dial_voices[dialled - 1])
                new.dial_behaviours.append(old.dial_behaviours[dialled - 1])
    trace.calls[0][0] = new
    return trace


def moved(cause: str, by: int, call: tuple[int, int] | None = None) -> Callable[[Entry], Entry]:
    """Rows of a cause, of all calls or of one, later by so many ms."""

    def edit(entry: Entry) -> Entry:
        if CHANGES[entry[3]].cause == cause and call in (None, (entry[1], entry[2])):
            entry[0] += by
        return entry

    return edit


def without(cause: str, call: tuple[int, int]) -> Callable[[Entry], Entry | None]:
    """Without the row of a cause of one call."""
    return lambda e: None if (CHANGES[e[3]].cause, e[1], e[2]) == (cause, *call) else e


def rules(trace: Trace) -> set[str]:
    return {violation.rule for violation in violations(trace)}


def test_the_trace_that_is_broken_below_is_sound() -> None:
    assert rules(sound()) == set()


@pytest.mark.parametrize(
    ("edit", "rule"),
    [
        (moved("retry", 1), "R2"),
        (moved("retry", -1), "R2"),
        (without("retry", (0, 2)), "Q2"),
        (without("released", (1, 1)), "Q4"),
        (without("dialled", (1, 1)), "P1"),
        (without("ended", (1, 1)), "P2"),
        (without("answered", (1, 1)), "P2"),
        (without("scheduled", (1, 1)), "C1"),
        (moved("scheduled", 1, (0, 1)), "C1"),
        (moved("dialled", 1, (1, 1)), "Q4"),  # a line was free for 1 ms
        (moved("dialled", -1, (1, 1)), "Q1"),  # no slot was free yet
        (moved("dialled", 2000, (1, 1)), "P1"),  # set up in no time
        (moved("released", 1, (0, 2)), "Q2"),  # in vain
        (moved("released", -ZERO, (0, 1)), "T5"),
        (moved("ended", 10_000, (0, 2)), "C3"),  # COMPLETED comes too early
        (moved("ended", -ZERO, (1, 1)), "T5"),
    ],
)
def test_a_row_moved_or_missing_is_noticed(edit: Any, rule: str) -> None:
    assert rule in rules(rewritten(sound(), edit))


def test_a_call_after_an_answer_is_noticed() -> None:
    # Person 0's first call ended BUSY at 5: made COMPLETED, its retry must not be.
    busy, completed = (
        next(i for i, c in enumerate(CHANGES) if (c.cause, str(c.to_status)) == ("ended", status))
        for status in ("BUSY", "COMPLETED")
    )
    trace = rewritten(sound(), lambda e: [*e[:3], completed] if (e[3], e[2]) == (busy, 1) else e)
    assert {"R3", "P2"} <= rules(trace)


def test_a_missing_retry_and_a_missing_person_are_noticed() -> None:
    assert "R1" in rules(rewritten(sound(), lambda e: None if e[2] == 2 else e))
    assert "C1" in rules(rewritten(sound(), lambda e: None if e[1] == 1 else e))
    assert "R2" in rules(rewritten(sound(), lambda e: None if e[1:3] == [0, 1] else e))


def with_request(trace: Trace, **body: Any) -> Trace:
    """The trace as if another request had been made."""
    made = trace.requests[0, 0]
    same = {"startDateTime": "2026-01-05T03:00:00Z", "maxAttempts": 2, "retryInterval": 300_000}
    trace.requests[0, 0] = made._replace(request=read_schedule(same | body))
    return trace


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ({"timeWindows": mondays("10:01", "11:00")}, "T3"),
        ({"timeWindows": mondays("10:01", "11:00")}, "C2"),
        ({"maxAttempts": 1}, "R1"),
        ({"maxAttempts": 3}, "C3"),  # COMPLETED with an attempt left
        ({"retryInterval": 300_001}, "R2"),
        ({"endDateTime": "2026-01-05T03:00:04Z"}, "C7"),
    ],
)
def test_what_another_request_would_not_allow_is_noticed(body: dict, rule: str) -> None:
    assert rule in rules(with_request(sound(), **body))


def test_a_dial_before_the_start_is_noticed() -> None:
    trace = sound()
    trace.requests[0, 0] = trace.requests[0, 0]._replace(start_at=ZERO + 1)
    assert {"C1", "C2"} <= rules(trace)


def test_more_calls_than_slots_are_noticed() -> None:
    trace = run(pair(2))
    trace.limits = [LimitChange(ZERO, 0, 1)]
    assert "Q1" in rules(trace)
    trace.limits = [LimitChange(ZERO, 0, 0)]
    assert {"Q1", "Q2"} <= rules(trace)


@pytest.mark.parametrize(
    ("settings", "other", "rule"),
    [
        ({"slots": 2}, {"calls_per_second": 3}, "Q4"),
        ({"calls_per_second": 0.1}, {"calls_per_second": 0.2}, "Q4"),  # in vain
        ({"queue_limit": 2}, {"queue_timeout": "4s"}, "Q5"),
        ({"queue_timeout": "3s"}, {"queue_timeout": "4s"}, "Q5"),
        ({"queue_timeout": "3s"}, {"queue_timeout": "2999ms"}, "Q5"),
        ({}, {"release_interval": "7s"}, "Q2"),
        ({"release_interval": "7s"}, {}, "Q2"),  # in vain
        ({"queue_limit": 1}, {"queue_limit": 2}, "Q2"),  # in vain
        ({"queue_limit": 3}, {"queue_limit": 1}, "Q2"),
    ],
)
def test_what_other_settings_would_not_allow_is_noticed(
    settings: dict, other: dict, rule: str
) -> None:
    def three(slots: int = 1, **engine: Any) -> Sketch:
        people = "busy 3s", "busy 10s", "busy 1s"
        return Sketch(slots, start=START, **engine).campaign("A", *people, **RETRY)

    trace = run(three(**settings))
    trace.world.scenario = run(three(settings.get("slots", 1), **other)).world.scenario
    assert rule in rules(trace)


TALK = "answered 0s 58s"


@pytest.mark.parametrize(
    ("sharing", "first", "second", "rule"),
    [
        ("priority", {}, {"priority": 2}, "Q7"),
        ("priority", {"priority": 3}, {"priority": 2}, "Q7"),
        ("weighted", {}, {"weight": 3}, "Q8"),
        ("weighted", {"weight": 9}, {"weight": 2}, "Q8"),
        ("deadline", {}, {"end": 3000}, "Q9"),
        ("roundRobin", {"at_most": 1}, {}, "Q10"),
        ("roundRobin", {}, {"at_most": 2}, "Q10"),  # no call waits without a line
        ("roundRobin", {"at_most": 9}, {"reserved": 3}, "Q11"),
    ],
)
def test_what_another_share_of_the_lines_would_not_allow_is_noticed(
    sharing: str, first: dict, second: dict, rule: str
) -> None:
    # Three lines. A goes first while it has people to call, B comes at 30 and waits for its turn.
    def shared(one: dict, other: dict) -> Trace:
        return run(
            Sketch(3, start=START, sharing=sharing)
            .campaign("A", *[TALK] * 9, **one)
            .campaign("B", *[TALK] * 6, **{"start": 30, **other})
        )

    lines_are_counted = {"at_most": 9} if rule == "Q11" else {}
    trace, other = shared(lines_are_counted, {}), shared(first, second)
    assert rules(trace) == set()
    for block, stated in zip(
        trace.world.organizations[0].campaigns,
        other.world.organizations[0].campaigns,
        strict=True,
    ):
        block.share = stated.share
        place = 0, block.position
        request = other.requests[place].request
        trace.requests[place] = trace.requests[place]._replace(request=request)
    assert rule in rules(trace)


def test_a_line_that_is_idle_in_vain_is_noticed() -> None:
    # B keeps to one line of three; without its atMost it might have had two.
    trace = run(
        Sketch(3, start=START).campaign("A", TALK, at_most=1).campaign("B", *[TALK] * 6, at_most=1)
    )
    block = trace.world.organizations[0].campaigns[1]
    block.share = replace(block.share, at_most=2)
    assert "Q2" in rules(trace)


def test_illegal_steps_of_a_campaign_are_noticed() -> None:
    for index, fields, rule in (
        (1, {"from_status": CampaignStatus.PAUSED}, "C2"),
        (1, {"cause": "resume"}, "C5"),
        (2, {"to_status": CampaignStatus.EXPIRED}, "C3"),
        (1, {"at": ZERO + 1}, "C2"),
        (2, {"at": ZERO + 999_999}, "C3"),
    ):
        trace = sound()
        trace.campaigns[index] = trace.campaigns[index]._replace(**fields)
        assert rule in rules(trace)


def test_a_dial_during_a_pause_is_noticed() -> None:
    # The campaign's rows say PAUSED at 1, its calls don't know.
    trace, paused = sound(), run(pair().at(1, "pause", "A"))
    trace.campaigns = paused.campaigns
    assert "Q2" in rules(trace)


def test_a_queue_that_survives_a_closing_window_is_noticed() -> None:
    # Person 1 is queued until 102; with a window that ends at 60 it would have been taken back.
    trace = run(Sketch(1, start=START).campaign("A", "answered 0s 100s", "busy 0s", **RETRY))
    assert "Q6" not in rules(trace)
    assert "Q6" in rules(with_request(trace, timeWindows=mondays("10:00", "10:01")))


def test_a_run_that_stops_too_early_is_noticed() -> None:
    trace = rewritten(sound(), lambda e: e if e[0] < 10_000 else None)
    del trace.campaigns[2]
    assert {"T5", "P2", "R1"} <= rules(trace)


def test_a_violation_names_the_rule_the_call_and_the_instant() -> None:
    text = (
        "R2 at Mon 5 Jan 2026 10:05:05.000 (Thai time), Acme/A recipient 0 call 2: "
        "made 300000 ms after the call before, not 300001 ms"
    )
    trace = with_request(sound(), retryInterval=300_001)
    assert [str(violation) for violation in violations(trace)] == [text]
    with pytest.raises(AssertionError) as caught:
        assert_no_violations(trace)
    assert text in str(caught.value)


def renumbered(trace: Trace, dial: int, number: int) -> Trace:
    """The trace with another number shown by a dial."""
    trace.calls[0][0].dial_numbers[dial] = number
    return trace


def test_a_retry_from_the_number_before_or_from_a_strange_one_is_noticed() -> None:
    sketch = pair(caller_ids=["021000001", "021000002"])
    first, _, again = run(sketch).calls[0][0].dial_numbers
    assert first != again
    assert rules(renumbered(run(sketch), 2, first)) == {"P3"}
    strange = run(sketch)
    strange.world.number("029999999")
    assert rules(renumbered(strange, 2, 2)) == {"P3"}


def test_a_redial_from_another_number_is_noticed() -> None:
    # The pause at 1 withdraws the first dial; the redial after it shows the same number.
    sketch = pair(caller_ids=["021000001", "021000002"])
    sketch = sketch.at(1, "pause", "A").at(2, "resume", "A")
    first = run(sketch).calls[0][0].dial_numbers[0]
    assert "C4" in rules(renumbered(run(sketch), 1, 1 - first))


def test_a_voice_of_another_campaign_is_noticed() -> None:
    trace = run(pair(tts_voice_keys=["malee", "kanya"]))
    trace.calls[0][0].dial_voices[1] = trace.world.voice("narin")
    assert rules(trace) == {"P4"}


def test_what_a_pause_leaves_in_the_queue_is_noticed() -> None:
    # The campaign's rows say PAUSED from 1 to 9, its calls don't know: 0 was dialled, 1 queued.
    trace, paused = sound(), run(pair().at(1, "pause", "A").at(9, "resume", "A"))
    trace.campaigns = paused.campaigns
    assert {str(v).split(", ")[1][:26] for v in violations(trace) if v.rule == "C4"} == {
        "Acme/A recipient 0 call 1:",
        "Acme/A recipient 1 call 1:",
    }


def past(attempts: int, status: str, ended: float) -> dict[str, Any]:
    return {"callAttempt": attempts, "latestCallStatus": status, "lastEndedAt": after(ended)}


def forecast() -> Trace:
    """Four people with a past: reached, due at 100, due at once, and with no attempt left."""
    pasts = [(1, "COMPLETED", -500), (1, "BUSY", -200), (1, "BUSY", -999), (2, "BUSY", -400)]
    people = [{"script": "busy 0s", "history": past(*known)} for known in pasts]
    return run(Sketch(1, start=START).campaign("A", *people, **RETRY))


def test_a_forecast_from_the_middle_is_checked_from_there() -> None:
    assert rules(forecast()) == set()
    assert "R2" in rules(rewritten(forecast(), moved("retry", 1)))
    assert {"R1"} == rules(rewritten(forecast(), lambda e: None if e[1] == 2 else e)) - {"C3"}
    assert "R3" in rules(rewritten(forecast(), lambda e: [e[0], 0, *e[2:]] if e[1] == 2 else e))
    assert "R1" in rules(rewritten(forecast(), lambda e: [e[0], 3, *e[2:]] if e[1] == 2 else e))


def test_whoever_was_removed_as_a_duplicate_is_not_to_be_called() -> None:
    trace = sound()
    trace.requests[0, 0] = trace.requests[0, 0]._replace(removed=(1,))
    assert rules(trace) == {"D3"}


@pytest.mark.parametrize(
    ("cause", "rule"), [("cancel", "C6"), ("delete", "C8"), ("end_date_time", "C7")]
)
def test_what_waits_on_after_the_end_is_noticed(cause: str, rule: str) -> None:
    # The campaign is over at 4, when person 0 rings and person 1 is queued.
    over = pair(end=4) if cause == "end_date_time" else pair().at(4, cause, "A")
    ended, trace = run(over), sound()
    trace.campaigns, trace.requests = ended.campaigns, ended.requests
    texts = [v.text for v in violations(trace) if v.rule == rule and v.recipient == 1]
    assert "waits on although the campaign is over" in texts
    assert any("after the campaign was over" in text for text in texts)


def commanded(seed: int) -> Simulation:
    """A random scenario, stepped by hand with random commands in between."""
    rng = random.Random(f"commands {seed}")
    live = Simulation(loaded(random_scenario(seed)))
    names = [
        f"{block.name}/{part.name}"
        for block in live.trace.world.organizations
        for part in block.campaigns
    ]
    for _ in range(rng.choice((3, 10, 30))):
        name = rng.choice(names)
        try:
            match rng.choice(("pause", "pause", "resume", "resume", "cancel", "limit", "limit")):
                case "limit":
                    live.set_concurrency(rng.choice((0, 1, 2, 5)), name.split("/")[0])
                case verb:
                    getattr(live, verb)(name)
        except Refused:
            pass
        if rng.random() < 0.8 and live.next_event_at is not None:
            live.advance(until="nextEvent")
    return live


ORDERS = ("due", "freshFirst", "retriesFirst")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("stated", ORDERS)
def test_q3_releases_in_another_order_than_the_stated_one_are_noticed(
    order: str, stated: str
) -> None:
    # One slot. Of 100 people every tenth talks, and who is in the queue meanwhile comes again, not
    # called yet (Q5): in the end they wait side by side with the retries of the others.
    people = [*["busy 3s"] * 9, "answered 0s 60s"] * 10
    trace = run(
        Sketch(1, start=START, order=order, queue_limit=1, queue_timeout="8s").campaign(
            "A", *people, max_attempts=3, retry_interval="5m"
        )
    )
    ran = trace.world.scenario
    engine = ran.engine.model_copy(update={"order": stated})
    trace.world.scenario = ran.model_copy(update={"engine": engine})
    assert ("Q3" in rules(trace)) == (order != stated)


def test_q3_a_call_released_before_its_turn_is_noticed() -> None:
    trace = run(
        Sketch(1, start=START, queue_limit=1).campaign("A", "busy 3s", "busy 3s", "busy 3s")
    )
    swapped = {1: 2, 2: 1}
    rewritten(trace, lambda e: [e[0], swapped.get(e[1], e[1]), *e[2:]])
    (found,) = [violation for violation in violations(trace) if violation.rule == "Q3"]
    assert (found.recipient, found.call, found.at) == (2, 1, ZERO)
    assert found.text == "released while recipient 1 waits, who goes first"


def test_q3_people_go_on_from_their_history_in_their_turn() -> None:
    past = {"callAttempt": 1, "latestCallStatus": "BUSY", "lastEndedAt": after(-400)}
    people = [{"tel": f"08123456{n}", "script": "busy 3s"} for n in (70, 71, 72)]
    people[1]["history"] = past
    for order in ORDERS:
        sketch = Sketch(1, start=START, order=order, queue_limit=1)
        assert "Q3" not in rules(run(sketch.campaign("A", *people, **RETRY)))


@pytest.mark.parametrize("seeds", [12, pytest.param(120, marks=pytest.mark.slow)])
def test_a_simulation_may_be_checked_wherever_it_stands(seeds: int) -> None:
    for seed in range(seeds):
        live = commanded(seed)
        assert_no_violations(live)
        live.advance(until="idle")
        assert_no_violations(live)


def test_a_command_excuses_its_own_instant_alone() -> None:
    # Dialled at 0 and paused in the same instant, from outside: fine.
    live = Simulation(Sketch(1, start=START).campaign("A", "busy 3s", **RETRY).scenario())
    live.pause("A")
    live.advance(seconds=9)
    assert violations(live) == []
    of_file = live.trace
    of_file.turns = of_file.turns[:0]
    assert "Q2" in rules(of_file)  # a file's pause would have come before the dial
    rewritten(live.trace, lambda e: e if CHANGES[e[3]].cause == "scheduled" else [1, *e[1:]])
    assert "Q2" in {violation.rule for violation in violations(live)}


def test_a_failure_says_which_rules_and_shows_the_first_of_many() -> None:
    trace = run(Sketch(40, start=START).campaign("A", *["busy 0s"] * 40))
    trace.limits = [LimitChange(ZERO, 0, 1)]
    trace.requests[0, 0] = trace.requests[0, 0]._replace(start_at=ZERO + 1)
    with pytest.raises(AssertionError) as caught:
        assert_no_violations(trace)
    lines = str(caught.value).splitlines()
    assert lines[0] == "the run breaks C2, C1, Q1:"
    assert len(lines) == 22
    assert lines[-1].startswith("… and ")
