"""Rules C6 to C10: cancellations, the end date, deletions, and requests that are refused."""

from __future__ import annotations

import pytest

from dialsim.engine.simulation import Simulation
from dialsim.errors import Refused
from dialsim.testing import Sketch
from engine.readings import run
from engine.rows import START, calls, dials, life, lines, refusals, stalled

RETRY = {"max_attempts": 2, "retry_interval": "5m"}
AT_ONCE = {"startDateTime": "2026-01-05T03:00:00Z"}
"""The body of a schedule request."""


def test_c6_a_cancellation_ends_what_waits_drops_retries_and_lets_talkers_talk() -> None:
    # Two slots, a queue of one. Person 1 is done at 3 (retry due at 303): 2 is dialled, 3 released.
    trace = run(
        Sketch(2, start=START, queue_limit=1)
        .campaign("A", "answered 0s 10s", "noAnswer 1s", *["busy 0s"] * 3, **RETRY)
        .at(4, "cancel", "A")
    )
    assert [row for row in calls(trace) if not row.startswith(("0", "2", "3"))] == lines("""
        4 2.1 INITIATED>CANCELLED cancelled
        4 3.1 QUEUED>CANCELLED cancelled
        4 4.1 SCHEDULED>CANCELLED cancelled
        12 0.1 INITIATED>COMPLETED ended""")
    assert life(trace)[2:] == ["4 A RUNNING>CANCELLED cancel"]


def test_c6_a_call_under_way_is_not_retried_after_a_cancellation() -> None:
    trace = run(Sketch(1, start=START).campaign("A", "noAnswer 9s", **RETRY).at(4, "cancel", "A"))
    assert calls(trace)[-1] == "11 0.1 INITIATED>NO_ANSWER ended"


@pytest.mark.parametrize("when", [301.999, 302, 302.001])
def test_c6_a_retry_due_at_the_very_instant_is_dropped_unseen(when: float) -> None:
    # The action is step 1, the retry falls due in step 6; a millisecond later it is dialled.
    trace = run(Sketch(1, start=START).campaign("A", "busy 0s", **RETRY).at(when, "cancel", "A"))
    last = calls(trace)[-1]
    expected = (
        "302.001 0.2 INITIATED>CANCELLED cancelled" if when > 302 else "2 0.1 INITIATED>BUSY ended"
    )
    assert last == expected


@pytest.mark.parametrize(
    ("body", "acts", "row"),
    [
        ({"requested": None}, [], "5 A DRAFT>CANCELLED cancel"),
        ({"start": 100}, [], "5 A SCHEDULED>CANCELLED cancel"),
        ({}, [(1, "pause", "A")], "5 A PAUSED>CANCELLED cancel"),
    ],
)
def test_c6_a_campaign_may_be_cancelled_before_it_is_final(
    body: dict, acts: list, row: str
) -> None:
    sketch = Sketch(1, start=START).campaign("A", "busy 0s", **body)
    for act in acts:
        sketch = sketch.at(*act)
    trace = run(sketch.at(5, "cancel", "A"))
    assert life(trace)[-1] == row
    last = [] if "requested" in body else ["5 0.1 SCHEDULED>CANCELLED cancelled"]
    assert calls(trace)[-1:] == last
    assert stalled(trace) == set()


def test_c7_at_the_end_date_all_that_waits_expires_even_a_line_just_set_up() -> None:
    # At 2 the setup would be over (step 4), but the end date is step 2.
    trace = run(Sketch(1, start=START).campaign("A", "answered 0s 1s", "busy 0s", "busy 0s", end=2))
    assert [row for row in calls(trace) if row.startswith("2 ")] == lines("""
        2 0.1 INITIATED>EXPIRED expired
        2 1.1 QUEUED>EXPIRED expired
        2 2.1 SCHEDULED>EXPIRED expired""")
    assert life(trace)[2:] == ["2 A RUNNING>EXPIRED end_date_time"]


def test_c7_a_call_under_way_goes_on_is_not_retried_and_the_campaign_completes() -> None:
    trace = run(Sketch(1, start=START).campaign("A", "noAnswer 5s", **RETRY, end=2.001))
    assert calls(trace)[-1] == "7 0.1 INITIATED>NO_ANSWER ended"
    assert life(trace)[2:] == ["7 A RUNNING>COMPLETED all_final"]


@pytest.mark.parametrize(("end", "last"), [(301, "busy"), (302, "busy"), (302.001, "set up again")])
def test_c7_a_retry_not_yet_due_is_dropped_and_the_campaign_expires(end: float, last: str) -> None:
    # Busy at 2, due again at 302: the end date at 302 is step 2, the retry step 6.
    trace = run(Sketch(1, start=START).campaign("A", "busy 0s", **RETRY, end=end))
    dropped = "2 0.1 INITIATED>BUSY ended"
    assert calls(trace)[-1] == (
        dropped if last == "busy" else f"{end} 0.2 INITIATED>EXPIRED expired"
    )
    assert life(trace)[-1] == f"{end} A RUNNING>EXPIRED end_date_time"


def test_c7_a_waiting_retry_expires() -> None:
    # The window closes at 300; the retry is created at 302 and waits.
    trace = run(
        Sketch(1, start=START).campaign("A", "busy 0s", **RETRY, windows="Mon 10:00-10:05", end=400)
    )
    assert calls(trace)[-2:] == lines("""
        302 0.2 new>SCHEDULED retry
        400 0.2 SCHEDULED>EXPIRED expired""")


@pytest.mark.parametrize("end", [2, 3.5, 9])
def test_c7_with_nothing_left_to_drop_the_state_stays(end: float) -> None:
    # The one call rings from 2 on, at 12 it is over. At 2 itself it is still being set up.
    trace = run(Sketch(1, start=START).campaign("A", "busy 10s", end=end))
    expired = ["2 A RUNNING>EXPIRED end_date_time"]
    assert life(trace)[2:] == (expired if end == 2 else ["12 A RUNNING>COMPLETED all_final"])


def test_c7_an_end_already_past_expires_the_campaign_at_its_request() -> None:
    for end in (-50, 0):
        trace = run(Sketch(1, start=START).campaign("A", "busy 0s", start=-100, end=end))
        assert calls(trace) == lines("""
            0 0.1 new>SCHEDULED scheduled
            0 0.1 SCHEDULED>EXPIRED expired""")
        assert life(trace) == lines("""
            0 A DRAFT>SCHEDULED schedule
            0 A SCHEDULED>EXPIRED end_date_time""")


def test_c7_a_campaign_that_never_ran_expires_even_without_recipients() -> None:
    trace = run(Sketch(1, start=START).campaign("A", windows="Mon 10:10-10:20", end=500))
    assert life(trace)[1:] == ["500 A SCHEDULED>EXPIRED end_date_time"]


def test_c7_holds_for_a_paused_campaign() -> None:
    trace = run(
        Sketch(1, start=START)
        .campaign("A", "busy 0s", end=50)
        .at(1, "pause", "A")
        .at(60, "resume", "A")
    )
    assert life(trace)[-1] == "50 A PAUSED>EXPIRED end_date_time"
    assert calls(trace)[-1] == "50 0.1 SCHEDULED>EXPIRED expired"
    assert refusals(trace) == [
        "60 A resume INVALID_CAMPAIGN_STATE: Cannot resume a EXPIRED campaign"
    ]


def test_c7_a_paused_campaign_with_nothing_left_stays_paused_and_completes_when_resumed() -> None:
    paused = run(Sketch(1, start=START).campaign("A", "busy 3s", end=10).at(3, "pause", "A"))
    assert life(paused)[-1] == "3 A RUNNING>PAUSED pause"
    assert stalled(paused) == {"A"}
    resumed = run(
        Sketch(1, start=START)
        .campaign("A", "busy 3s", end=10)
        .at(3, "pause", "A")
        .at(20, "resume", "A")
    )
    assert life(resumed)[-2:] == lines("""
        20 A PAUSED>RUNNING resume
        20 A RUNNING>COMPLETED all_final""")


def test_c7_a_cancelled_campaign_does_not_expire() -> None:
    trace = run(Sketch(1, start=START).campaign("A", "busy 0s", end=50).at(1, "cancel", "A"))
    assert life(trace)[-1] == "1 A RUNNING>CANCELLED cancel"


def test_c7_the_end_of_one_campaign_frees_its_slots_for_another() -> None:
    trace = run(Sketch(1, start=START).campaign("A", "busy 0s", end=1).campaign("B", "busy 0s"))
    assert dials(trace) == ["0 A 0.1", "1 B 0.1"]


def test_c8_deleting_ends_what_waits_and_lets_calls_under_way_finish() -> None:
    # Two slots, a queue of one; person 0 talks until 12, 1 is done at 3.
    trace = run(
        Sketch(2, start=START, queue_limit=1)
        .campaign("A", "answered 0s 10s", "noAnswer 1s", *["busy 0s"] * 3, **RETRY)
        .at(4, "delete", "A")
    )
    assert [row for row in calls(trace) if not row.startswith(("0", "2", "3"))] == lines("""
        4 2.1 INITIATED>CANCELLED deleted
        4 3.1 QUEUED>CANCELLED deleted
        4 4.1 SCHEDULED>CANCELLED deleted
        12 0.1 INITIATED>COMPLETED ended""")
    assert life(trace)[2:] == ["4 A RUNNING>CANCELLED delete"]
    assert stalled(trace) == set()


@pytest.mark.parametrize(
    ("body", "acts", "row"),
    [
        ({"requested": None}, [], "5 A DRAFT>CANCELLED delete"),
        ({"start": 100}, [], "5 A SCHEDULED>CANCELLED delete"),
        ({}, [(1, "pause", "A")], "5 A PAUSED>CANCELLED delete"),
        ({}, [], "5 A COMPLETED>COMPLETED delete"),
        ({}, [(1, "cancel", "A")], "5 A CANCELLED>CANCELLED delete"),
        ({"end": 1}, [], "5 A EXPIRED>EXPIRED delete"),
    ],
)
def test_c8_a_campaign_may_be_deleted_in_every_state(body: dict, acts: list, row: str) -> None:
    sketch = Sketch(1, start=START).campaign("A", "busy 0s", **body)
    for act in acts:
        sketch = sketch.at(*act)
    trace = run(sketch.at(5, "delete", "A"))
    assert life(trace)[-1] == row
    assert sum("delete" in line for line in life(trace)) == 1


def test_c8_afterwards_the_campaign_is_not_found() -> None:
    sketch = Sketch(1, start=START).campaign("A", "busy 0s")
    for verb in ("delete", "pause", "resume", "cancel", "delete"):
        sketch = sketch.at(5, verb, "A")
    trace = run(sketch.at(6, "schedule", "A"))
    verbs = ["5 A pause", "5 A resume", "5 A cancel", "5 A delete", "6 A schedule"]
    text = "CAMPAIGN_NOT_FOUND: Campaign not found"
    assert refusals(trace) == [f"{verb} {text}" for verb in verbs]


def refusal(body: object, *, status: str = "DRAFT", allowed: bool = True) -> Refused:
    """The refusal of a schedule request by a campaign in that state."""
    live = Simulation(
        Sketch(1, start=START)
        .having(calling_allowed=allowed)
        .campaign("A", "busy 0s", requested=None if status == "DRAFT" else 0)
        .scenario()
    )
    if status == "deleted":
        live.delete("A")
    before = live.trace.size()
    with pytest.raises(Refused) as caught:
        live.schedule("A", body)
    assert live.trace.size() == before  # C1: it changes nothing
    return caught.value


def test_c9_the_checks_come_in_the_interfaces_order() -> None:
    bad_shape = AT_ONCE | {"maxAttempts": 0}
    bad_condition = AT_ONCE | {"callerIds": ["099999999"]}
    found = [
        (refused.status, refused.code)
        for refused in (
            refusal(bad_shape, status="deleted"),
            refusal(bad_condition, status="deleted"),
            refusal(bad_condition, status="RUNNING"),
            refusal(bad_condition, allowed=False),
            refusal(AT_ONCE, allowed=False),
        )
    ]
    assert found == [
        (400, "VALIDATION_FAILED"),  # step 1 before 2
        (404, "CAMPAIGN_NOT_FOUND"),  # 2 before 4
        (409, "CAMPAIGN_ALREADY_STARTED"),  # 3 before 4
        (400, "VALIDATION_FAILED"),  # 4 before 5
        (403, "CALLING_NOT_ALLOWED"),
    ]


def test_c9_the_conditions_hold_in_a_running_simulation() -> None:
    body = {"callerIds": ["099999999"], "ttsVoiceKeys": ["nobody"], "retryInterval": 5}
    assert refusal(AT_ONCE | body).errors == (
        "retryInterval must be at least 300000 ms (5 minutes) (or 0)",
        "Unknown voice: nobody",
        "Unknown caller ID: 099999999",
    )


def test_c10_all_failures_of_a_step_are_listed_unknown_fields_first() -> None:
    refused = refusal({"maxAttempts": "two", "endDateTime": 5, "foo": 1, **AT_ONCE})
    assert refused.errors == (
        "property foo should not exist",
        "endDateTime must be a valid ISO 8601 date string",
        "maxAttempts must be an integer number",
    )
    assert refused.message == refused.errors[0]
