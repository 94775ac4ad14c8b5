"""Rules C6 to C10: cancellations, the end date, deletions, and requests that are refused."""

from __future__ import annotations

import pytest

from dialsim.interface.errors import Refused
from engine.paper import (
    Act,
    at,
    campaign,
    organization,
    request,
    run,
    scenario,
    service,
    simulation,
)
from engine.paper import windows as week
from engine.rows import calls, dials, life, lines, refusals, stalled

RETRY = {"maxAttempts": 2, "retryInterval": 300_000}


def test_c6_a_cancellation_ends_what_waits_drops_retries_and_lets_talkers_talk() -> None:
    # Two slots, a queue of one. Person 1 is done at 3 (retry due at 303): 2 is dialled, 3 released.
    a = campaign("A", "answered 0s 10s", "noAnswer 1s", *["busy 0s"] * 3, **RETRY)
    trace = run(scenario(a, limit=2, queueLimit=1, timeline=[(4, "cancel", "A")]))
    assert [row for row in calls(trace) if not row.startswith(("0", "2", "3"))] == lines("""
        4 2.1 INITIATED>CANCELLED cancelled
        4 3.1 QUEUED>CANCELLED cancelled
        4 4.1 SCHEDULED>CANCELLED cancelled
        12 0.1 INITIATED>COMPLETED ended""")
    assert life(trace)[2:] == ["4 A RUNNING>CANCELLED cancel"]


def test_c6_a_call_under_way_is_not_retried_after_a_cancellation() -> None:
    trace = run(scenario(campaign("A", "noAnswer 9s", **RETRY), timeline=[(4, "cancel", "A")]))
    assert calls(trace)[-1] == "11 0.1 INITIATED>NO_ANSWER ended"


@pytest.mark.parametrize("when", [301.999, 302, 302.001])
def test_c6_a_retry_due_at_the_very_instant_is_dropped_unseen(when: float) -> None:
    # The action is step 1, the retry falls due in step 6; a millisecond later it is dialled.
    trace = run(scenario(campaign("A", "busy 0s", **RETRY), timeline=[(when, "cancel", "A")]))
    last = calls(trace)[-1]
    expected = (
        "302.001 0.2 INITIATED>CANCELLED cancelled" if when > 302 else "2 0.1 INITIATED>BUSY ended"
    )
    assert last == expected


@pytest.mark.parametrize(
    ("body", "acts", "row"),
    [
        ({"requested": None}, [], "5 A DRAFT>CANCELLED cancel"),
        ({"startDateTime": at(100)}, [], "5 A SCHEDULED>CANCELLED cancel"),
        ({}, [(1, "pause", "A")], "5 A PAUSED>CANCELLED cancel"),
    ],
)
def test_c6_a_campaign_may_be_cancelled_before_it_is_final(
    body: dict, acts: list, row: str
) -> None:
    trace = run(scenario(campaign("A", "busy 0s", **body), timeline=[*acts, (5, "cancel", "A")]))
    assert life(trace)[-1] == row
    last = [] if "requested" in body else ["5 0.1 SCHEDULED>CANCELLED cancelled"]
    assert calls(trace)[-1:] == last
    assert stalled(trace) == set()


def test_c7_at_the_end_date_all_that_waits_expires_even_a_line_just_set_up() -> None:
    # At 2 the setup would be over (step 4), but the end date is step 2.
    a = campaign("A", "answered 0s 1s", "busy 0s", "busy 0s", endDateTime=at(2))
    trace = run(scenario(a))
    assert [row for row in calls(trace) if row.startswith("2 ")] == lines("""
        2 0.1 INITIATED>EXPIRED expired
        2 1.1 QUEUED>EXPIRED expired
        2 2.1 SCHEDULED>EXPIRED expired""")
    assert life(trace)[2:] == ["2 A RUNNING>EXPIRED end_date_time"]


def test_c7_a_call_under_way_goes_on_is_not_retried_and_the_campaign_completes() -> None:
    trace = run(scenario(campaign("A", "noAnswer 5s", **RETRY, endDateTime=at(2.001))))
    assert calls(trace)[-1] == "7 0.1 INITIATED>NO_ANSWER ended"
    assert life(trace)[2:] == ["7 A RUNNING>COMPLETED all_final"]


@pytest.mark.parametrize(("end", "last"), [(301, "busy"), (302, "busy"), (302.001, "set up again")])
def test_c7_a_retry_not_yet_due_is_dropped_and_the_campaign_expires(end: float, last: str) -> None:
    # Busy at 2, due again at 302: the end date at 302 is step 2, the retry step 6.
    trace = run(scenario(campaign("A", "busy 0s", **RETRY, endDateTime=at(end))))
    dropped = "2 0.1 INITIATED>BUSY ended"
    assert calls(trace)[-1] == (
        dropped if last == "busy" else f"{end} 0.2 INITIATED>EXPIRED expired"
    )
    assert life(trace)[-1] == f"{end} A RUNNING>EXPIRED end_date_time"


def test_c7_a_waiting_retry_expires() -> None:
    # The window closes at 300; the retry is created at 302 and waits.
    body = {**RETRY, "timeWindows": week("10:00-10:05"), "endDateTime": at(400)}
    trace = run(scenario(campaign("A", "busy 0s", **body)))
    assert calls(trace)[-2:] == lines("""
        302 0.2 new>SCHEDULED retry
        400 0.2 SCHEDULED>EXPIRED expired""")


@pytest.mark.parametrize("end", [2, 3.5, 9])
def test_c7_with_nothing_left_to_drop_the_state_stays(end: float) -> None:
    # The one call rings from 2 on, at 12 it is over. At 2 itself it is still being set up.
    trace = run(scenario(campaign("A", "busy 10s", endDateTime=at(end))))
    expired = ["2 A RUNNING>EXPIRED end_date_time"]
    assert life(trace)[2:] == (expired if end == 2 else ["12 A RUNNING>COMPLETED all_final"])


def test_c7_an_end_already_past_expires_the_campaign_at_its_request() -> None:
    for end in (-50, 0):
        a = campaign("A", "busy 0s", startDateTime=at(-100), endDateTime=at(end))
        trace = run(scenario(a))
        assert calls(trace) == lines("""
            0 0.1 new>SCHEDULED scheduled
            0 0.1 SCHEDULED>EXPIRED expired""")
        assert life(trace) == lines("""
            0 A DRAFT>SCHEDULED schedule
            0 A SCHEDULED>EXPIRED end_date_time""")


def test_c7_a_campaign_that_never_ran_expires_even_without_recipients() -> None:
    trace = run(scenario(campaign("A", timeWindows=week("10:10-10:20"), endDateTime=at(500))))
    assert life(trace)[1:] == ["500 A SCHEDULED>EXPIRED end_date_time"]


def test_c7_holds_for_a_paused_campaign() -> None:
    a = campaign("A", "busy 0s", endDateTime=at(50))
    trace = run(scenario(a, timeline=[(1, "pause", "A"), (60, "resume", "A")]))
    assert life(trace)[-1] == "50 A PAUSED>EXPIRED end_date_time"
    assert calls(trace)[-1] == "50 0.1 SCHEDULED>EXPIRED expired"
    assert refusals(trace) == [
        "60 A resume INVALID_CAMPAIGN_STATE: Cannot resume a EXPIRED campaign"
    ]


def test_c7_a_paused_campaign_with_nothing_left_stays_paused_and_completes_when_resumed() -> None:
    a = campaign("A", "busy 3s", endDateTime=at(10))
    paused = run(scenario(a, timeline=[(3, "pause", "A")]))
    assert life(paused)[-1] == "3 A RUNNING>PAUSED pause"
    assert stalled(paused) == {"A"}
    resumed = run(scenario(a, timeline=[(3, "pause", "A"), (20, "resume", "A")]))
    assert life(resumed)[-2:] == lines("""
        20 A PAUSED>RUNNING resume
        20 A RUNNING>COMPLETED all_final""")


def test_c7_a_cancelled_campaign_does_not_expire() -> None:
    a = campaign("A", "busy 0s", endDateTime=at(50))
    assert (
        life(run(scenario(a, timeline=[(1, "cancel", "A")])))[-1] == "1 A RUNNING>CANCELLED cancel"
    )


def test_c7_the_end_of_one_campaign_frees_its_slots_for_another() -> None:
    a = campaign("A", "busy 0s", endDateTime=at(1))
    trace = run(scenario(a, campaign("B", "busy 0s")))
    assert dials(trace) == ["0 A 0.1", "1 B 0.1"]


def test_c8_deleting_ends_what_waits_and_lets_calls_under_way_finish() -> None:
    # Two slots, a queue of one; person 0 talks until 12, 1 is done at 3.
    a = campaign("A", "answered 0s 10s", "noAnswer 1s", *["busy 0s"] * 3, **RETRY)
    trace = run(scenario(a, limit=2, queueLimit=1, timeline=[(4, "delete", "A")]))
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
        ({"startDateTime": at(100)}, [], "5 A SCHEDULED>CANCELLED delete"),
        ({}, [(1, "pause", "A")], "5 A PAUSED>CANCELLED delete"),
        ({}, [], "5 A COMPLETED>COMPLETED delete"),
        ({}, [(1, "cancel", "A")], "5 A CANCELLED>CANCELLED delete"),
        ({"endDateTime": at(1)}, [], "5 A EXPIRED>EXPIRED delete"),
    ],
)
def test_c8_a_campaign_may_be_deleted_in_every_state(body: dict, acts: list, row: str) -> None:
    trace = run(scenario(campaign("A", "busy 0s", **body), timeline=[*acts, (5, "delete", "A")]))
    assert life(trace)[-1] == row
    assert sum("delete" in line for line in life(trace)) == 1


def test_c8_afterwards_the_campaign_is_not_found() -> None:
    acts: list[Act] = [(5, verb, "A") for verb in ("delete", "pause", "resume", "cancel", "delete")]
    trace = run(scenario(campaign("A", "busy 0s"), timeline=[*acts, (6, "schedule", "A")]))
    verbs = ["5 A pause", "5 A resume", "5 A cancel", "5 A delete", "6 A schedule"]
    text = "CAMPAIGN_NOT_FOUND: Campaign not found"
    assert refusals(trace) == [f"{verb} {text}" for verb in verbs]


def refusal(body: object, *, status: str = "DRAFT", allowed: bool = True) -> Refused:
    """The refusal of a schedule request by a campaign in that state."""
    a = campaign("A", "busy 0s", requested=None if status == "DRAFT" else 0)
    live = simulation(service(organization("Acme", a, callingAllowed=allowed)))
    if status == "deleted":
        live.delete("A")
    before = live.trace.size()
    with pytest.raises(Refused) as caught:
        live.schedule("A", body)
    assert live.trace.size() == before  # C1: it changes nothing
    return caught.value


def test_c9_the_checks_come_in_the_interfaces_order() -> None:
    bad_shape = {"startDateTime": at(0), "maxAttempts": 0}
    bad_condition = {"startDateTime": at(0), "callerIds": ["099999999"]}
    good = request()
    found = [
        (refused.status, refused.code)
        for refused in (
            refusal(bad_shape, status="deleted"),
            refusal(bad_condition, status="deleted"),
            refusal(bad_condition, status="RUNNING"),
            refusal(bad_condition, allowed=False),
            refusal(good, allowed=False),
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
    body = request(callerIds=["099999999"], ttsVoiceKeys=["nobody"], retryInterval=5)
    assert refusal(body).errors == (
        "retryInterval must be at least 300000 ms (5 minutes) (or 0)",
        "Unknown voice: nobody",
        "Unknown caller ID: 099999999",
    )


def test_c10_all_failures_of_a_step_are_listed_unknown_fields_first() -> None:
    refused = refusal({"maxAttempts": "two", "endDateTime": 5, "foo": 1, "startDateTime": at(0)})
    assert refused.errors == (
        "property foo should not exist",
        "endDateTime must be a valid ISO 8601 date string",
        "maxAttempts must be an integer number",
    )
    assert refused.message == refused.errors[0]
