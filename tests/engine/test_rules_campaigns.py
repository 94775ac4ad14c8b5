"""Rules C1 to C5, each on a scenario worked out on paper (see `readings` and `rows`)."""

from __future__ import annotations

import pytest

from dialsim.testing import Sketch
from engine.readings import run
from engine.rows import (
    START,
    WEEK_S,
    ZERO,
    calls,
    dials,
    life,
    lines,
    numbers,
    refusals,
    stalled,
)

RETRY = {"max_attempts": 2, "retry_interval": "5m"}


def test_c1_a_request_makes_one_waiting_call_per_recipient() -> None:
    trace = run(Sketch(0, start=START).campaign("A", "busy 0s", "busy 0s", requested=7))
    assert calls(trace) == lines("""
        7 0.1 new>SCHEDULED scheduled
        7 1.1 new>SCHEDULED scheduled""")
    assert life(trace)[0] == "7 A DRAFT>SCHEDULED schedule"


@pytest.mark.parametrize(("start", "effective"), [(-50, 7), (7, 7), (7.001, 7.001), (90, 90)])
def test_c1_the_start_is_the_later_of_the_request_and_start_date_time(
    start: float, effective: float
) -> None:
    trace = run(Sketch(1, start=START).campaign("A", "busy 0s", requested=7, start=start))
    assert trace.requests[0, 0].at == ZERO + 7_000
    assert trace.requests[0, 0].start_at == ZERO + effective * 1000  # F3
    assert dials(trace) == [f"{effective} A 0.1"]


def test_c1_a_refused_request_changes_nothing() -> None:
    once = Sketch(1, start=START).campaign("A", "noAnswer 1s", "busy 0s", **RETRY)
    twice = (
        Sketch(1, start=START)
        .campaign("A", "noAnswer 1s", "busy 0s", **RETRY)
        .at(1, "schedule", "A", start=500, max_attempts=9)
    )
    assert refusals(run(twice)) == [
        "1 A schedule CAMPAIGN_ALREADY_STARTED: "
        "Campaign has already been started (current status: RUNNING)"
    ]
    assert calls(run(twice)) == calls(run(once))
    assert run(twice).requests == run(once).requests


def test_c1_an_organization_that_may_not_call_is_refused() -> None:
    trace = run(
        Sketch(1, start=START).having(calling_allowed=False).campaign("A", "busy 0s", requested=3)
    )
    assert refusals(trace) == [
        "3 A schedule CALLING_NOT_ALLOWED: Your organization is not allowed to make calls."
    ]
    assert (calls(trace), life(trace), trace.requests, stalled(trace)) == ([], [], {}, set())


@pytest.mark.parametrize(
    ("start", "ranges", "runs"),
    [(100, "10:00-11:00", 100), (-5, "10:10-10:20", 600), (660, "10:10-10:20", 660)],
)
def test_c2_a_campaign_starts_at_the_first_open_instant_from_its_start_on(
    start: float, ranges: str, runs: float
) -> None:
    trace = run(
        Sketch(1, start=START).campaign("A", "busy 0s", start=start, windows=f"Mon {ranges}")
    )
    assert life(trace)[1] == f"{runs} A SCHEDULED>RUNNING start"
    assert dials(trace) == [f"{runs} A 0.1"]


def test_c2_a_campaign_stays_running_between_windows() -> None:
    trace = run(
        Sketch(1, start=START).campaign(
            "A", "answered 0s 100s", "busy 0s", windows="Mon 10:00-10:01 10:05-10:06"
        )
    )
    assert dials(trace) == ["0 A 0.1", "300 A 1.1"]
    assert life(trace)[1:] == ["0 A SCHEDULED>RUNNING start", "302 A RUNNING>COMPLETED all_final"]


@pytest.mark.parametrize(("end", "starts"), [(600, False), (600.001, True)])
def test_c2_a_campaign_starts_only_before_its_end(end: float, starts: bool) -> None:
    found = life(
        run(Sketch(1, start=START).campaign("A", "busy 0s", windows="Mon 10:10-10:20", end=end))
    )
    assert ("600 A SCHEDULED>RUNNING start" in found) == starts
    assert found[-1].startswith(f"{end} A ")
    assert found[-1].endswith("EXPIRED end_date_time")


def test_c3_a_campaign_completes_when_the_last_recipient_is_final() -> None:
    # Person 0 is reached at 7; person 1 is busy at 2, called again at 302 and busy at 304.
    trace = run(Sketch(2, start=START).campaign("A", "answered 0s 5s", "busy 0s", **RETRY))
    assert life(trace)[-1] == "304 A RUNNING>COMPLETED all_final"


def test_c3_a_campaign_without_recipients_runs_and_completes_when_a_window_opens() -> None:
    trace = run(Sketch(0, start=START).campaign("A", windows="Mon 10:10-10:20"))
    assert life(trace) == lines("""
        0 A DRAFT>SCHEDULED schedule
        600 A SCHEDULED>RUNNING start
        600 A RUNNING>COMPLETED all_final""")
    paused = run(
        Sketch(1, start=START)
        .campaign("A", windows="Mon 10:10-10:20")
        .at(5, "pause", "A")
        .at(700, "resume", "A")
    )
    assert life(paused)[1:] == lines("""
        5 A SCHEDULED>PAUSED pause
        700 A PAUSED>RUNNING resume
        700 A RUNNING>COMPLETED all_final""")


def test_c3_a_paused_campaign_completes_after_its_resume() -> None:
    trace = run(
        Sketch(1, start=START)
        .campaign("A", "noAnswer 5s")
        .at(3, "pause", "A")
        .at(20, "resume", "A")
    )
    assert calls(trace)[-1] == "7 0.1 INITIATED>NO_ANSWER ended"
    assert life(trace)[2:] == lines("""
        3 A RUNNING>PAUSED pause
        20 A PAUSED>RUNNING resume
        20 A RUNNING>COMPLETED all_final""")


@pytest.mark.parametrize(
    ("pause", "then"),
    [
        (0, "0 0.1 new>SCHEDULED scheduled"),
        (1.999, "1.999 0.1 INITIATED>SCHEDULED paused"),
        (2, "2 0.1 INITIATED>SCHEDULED paused"),
        (2.001, "5 0.1 INITIATED>BUSY ended"),
        (5, "5 0.1 INITIATED>BUSY ended"),
    ],
)
def test_c4_a_pause_withdraws_a_line_being_set_up_and_hangs_up_nobody(
    pause: float, then: str
) -> None:
    # Setup until 2, ringing until 5.
    trace = run(Sketch(1, start=START).campaign("A", "busy 3s").at(pause, "pause", "A"))
    assert calls(trace)[-1] == then
    assert life(trace)[-1].endswith("PAUSED pause")


def test_c4_a_pause_writes_no_row_for_a_call_that_is_scheduled_already() -> None:
    # Person 0 rings, person 1 is QUEUED, person 2 still SCHEDULED (the queue holds one).
    trace = run(
        Sketch(1, start=START).campaign("A", "busy 9s", "busy 0s", "busy 0s").at(4, "pause", "A")
    )
    assert [row for row in calls(trace) if row.startswith("4 ")] == [
        "4 1.1 QUEUED>SCHEDULED paused"
    ]


def test_c4_a_campaign_may_be_paused_before_it_starts() -> None:
    trace = run(
        Sketch(1, start=START)
        .campaign("A", "busy 0s", start=100)
        .at(5, "pause", "A")
        .at(200, "resume", "A")
    )
    assert calls(trace)[1] == "200 0.1 SCHEDULED>QUEUED released"
    assert life(trace)[1:3] == ["5 A SCHEDULED>PAUSED pause", "200 A PAUSED>RUNNING resume"]


def test_c4_pausing_twice_succeeds_and_changes_nothing() -> None:
    once = run(Sketch(1, start=START).campaign("A", "busy 3s").at(1, "pause", "A"))
    twice = run(
        Sketch(1, start=START).campaign("A", "busy 3s").at(1, "pause", "A").at(4, "pause", "A")
    )
    assert (life(twice), calls(twice), refusals(twice)) == (life(once), calls(once), [])


def test_c4_the_slot_of_a_withdrawn_line_is_free_at_once() -> None:
    trace = run(
        Sketch(1, start=START).campaign("A", "busy 3s").campaign("B", "busy 3s").at(1, "pause", "A")
    )
    assert dials(trace) == ["0 A 0.1", "1 B 0.1"]


def test_c4_a_redial_is_the_same_call_with_the_same_number_and_step() -> None:
    # Three numbers to choose from: the redials of all six people show the first dial's number.
    trace = run(
        Sketch(6, start=START)
        .campaign(
            "A", *["noAnswer 1s; busy 0s"] * 6, caller_ids=["021000001", "021000002", "021000003"]
        )
        .at(1, "pause", "A")
        .at(10, "resume", "A")
    )
    shown = numbers(trace)
    assert shown[:6] == shown[6:]
    assert len({number for _, number in shown}) > 1
    assert [row.split()[1:] for row in calls(trace)[-6:]] == [
        [f"{person}.1", "INITIATED>NO_ANSWER", "ended"] for person in range(6)
    ]


@pytest.mark.parametrize(
    ("verb", "refused_in"),
    [
        ("pause", ["DRAFT", "COMPLETED", "CANCELLED", "EXPIRED"]),
        ("resume", ["DRAFT", "SCHEDULED", "RUNNING", "COMPLETED", "CANCELLED", "EXPIRED"]),
        ("cancel", ["COMPLETED", "CANCELLED", "EXPIRED"]),
    ],
)
def test_c4_c5_c6_a_command_is_refused_from_any_other_state(
    verb: str, refused_in: list[str]
) -> None:
    one = Sketch(1, start=START)
    begun = one.campaign("A", "busy 0s")
    to_reach = {
        "DRAFT": one.campaign("A", "busy 0s", requested=None),
        "SCHEDULED": one.campaign("A", "busy 0s", start=900),
        "RUNNING": begun,
        "PAUSED": begun.at(1, "pause", "A"),
        "COMPLETED": begun,
        "CANCELLED": begun.at(1, "cancel", "A"),
        "EXPIRED": one.campaign("A", "busy 0s", end=1),
    }
    for status, sketch in to_reach.items():
        when = 4 if status == "COMPLETED" else 1.5
        trace = run(sketch.at(when, verb, "A"))
        text = f"{when} A {verb} INVALID_CAMPAIGN_STATE: Cannot {verb} a {status} campaign"
        assert refusals(trace) == ([text] if status in refused_in else [])


def test_c5_a_resume_leads_to_running_where_the_campaign_ran_or_would_now() -> None:
    # It starts at 100: resumed at 50 it is SCHEDULED again, resumed at 150 it runs, with no start.
    trace = run(
        Sketch(1, start=START)
        .campaign("A", "busy 0s", start=100)
        .at(40, "pause", "A")
        .at(50, "resume", "A")
        .at(60, "pause", "A")
        .at(150, "resume", "A")
    )
    assert life(trace) == lines("""
        0 A DRAFT>SCHEDULED schedule
        40 A SCHEDULED>PAUSED pause
        50 A PAUSED>SCHEDULED resume
        60 A SCHEDULED>PAUSED pause
        150 A PAUSED>RUNNING resume
        152 A RUNNING>COMPLETED all_final""")
    assert dials(trace) == ["150 A 0.1"]


def test_c5_a_campaign_resumed_at_its_end_date_does_not_run() -> None:
    # The resume is step 1 and the end date step 2, but C2 wants an instant before the end.
    trace = run(
        Sketch(1, start=START)
        .campaign("A", "busy 0s", end=50)
        .at(0, "pause", "A")
        .at(50, "resume", "A")
    )
    assert life(trace)[2:] == lines("""
        50 A PAUSED>SCHEDULED resume
        50 A SCHEDULED>EXPIRED end_date_time""")


def test_c5_a_campaign_resumed_to_scheduled_starts_in_its_time() -> None:
    trace = run(
        Sketch(1, start=START)
        .campaign("A", "busy 0s", start=100)
        .at(40, "pause", "A")
        .at(50, "resume", "A")
    )
    assert life(trace)[2:4] == ["50 A PAUSED>SCHEDULED resume", "100 A SCHEDULED>RUNNING start"]


@pytest.mark.parametrize(("first_pause", "status"), [(30, "SCHEDULED"), (65, "RUNNING")])
def test_c5_between_windows_only_a_campaign_that_ran_is_running(
    first_pause: float, status: str
) -> None:
    # Open from 60 to 120 and from 300 on; resumed at 200. Paused at 30 it never ran.
    trace = run(
        Sketch(1, start=START)
        .campaign("A", "busy 90s", "busy 0s", windows="Mon 10:01-10:02 10:05-10:06")
        .at(first_pause, "pause", "A")
        .at(200, "resume", "A")
    )
    assert f"200 A PAUSED>{status} resume" in life(trace)
    assert ("300 A SCHEDULED>RUNNING start" in life(trace)) == (status == "SCHEDULED")
    # 92 s per call: where the first is dialled at 300 only, the second must wait for next Monday.
    assert dials(trace)[-1] == ("300 A 1.1" if status == "RUNNING" else f"{WEEK_S + 60} A 1.1")


def test_c5_retries_fall_due_during_a_pause_and_keep_their_place() -> None:
    # Person 0's retry is due at 302, created while PAUSED; person 1 keeps its due instant 0.
    trace = run(
        Sketch(1, start=START)
        .campaign("A", "busy 0s; failed 0s", "busy 0s", **RETRY)
        .at(2.5, "pause", "A")
        .at(1000, "resume", "A")
    )
    assert calls(trace)[7:] == lines("""
        2.5 1.1 INITIATED>SCHEDULED paused
        302 0.2 new>SCHEDULED retry
        1000 0.2 SCHEDULED>QUEUED released
        1000 1.1 SCHEDULED>QUEUED released
        1000 1.1 QUEUED>dialling dialled
        1002 0.2 QUEUED>dialling dialled
        1002 1.1 INITIATED>BUSY ended
        1004 0.2 INITIATED>FAILED ended
        1302 1.2 new>SCHEDULED retry
        1302 1.2 SCHEDULED>QUEUED released
        1302 1.2 QUEUED>dialling dialled
        1304 1.2 INITIATED>BUSY ended""")


def test_c5_a_queued_call_comes_back_from_a_pause_with_its_due_instant() -> None:
    # 0 is busy at 2 and due again at 302, 1 talks until 404, 2 is queued (due 0) and paused at 310.
    trace = run(
        Sketch(1, start=START)
        .campaign("A", "busy 0s", "answered 0s 400s", "busy 0s", **RETRY)
        .at(310, "pause", "A")
        .at(500, "resume", "A")
    )
    assert dials(trace)[2:4] == ["500 A 2.1", "502 A 0.2"]
