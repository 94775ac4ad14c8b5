"""Rules Q1, Q2, Q5 and Q6, each on a scenario worked out on paper (see `readings` and `rows`)."""

from __future__ import annotations

import pytest

from dialsim.testing import Sketch
from engine.readings import run
from engine.rows import START, WEEK_S, calls, dials, life, lines

RETRY = {"max_attempts": 2, "retry_interval": "5m"}
BUSY = "busy 0s"  # holds the slot for the 2 s of the setup


def test_q1_the_limit_is_shared_by_the_campaigns_of_an_organization() -> None:
    # Three slots for two campaigns of three: a slot is held from the dial to the end, 2 s later.
    trace = run(Sketch(3, start=START).campaign("A", *[BUSY] * 3).campaign("B", *[BUSY] * 3))
    assert dials(trace) == lines("""
        0 A 0.1
        0 A 1.1
        0 B 0.1
        2 A 2.1
        2 B 1.1
        2 B 2.1""")


def test_q1_organizations_have_slots_of_their_own() -> None:
    trace = run(
        Sketch(1, start=START)
        .campaign("A", BUSY, BUSY)
        .organization("Bravo", 1)
        .campaign("A", BUSY, BUSY)
    )
    assert dials(trace) == lines("""
        0 Acme/A 0.1
        0 Bravo/A 0.1
        2 Acme/A 1.1
        2 Bravo/A 1.1""")


def test_q1_lowering_the_limit_hangs_up_nobody() -> None:
    # Three lines until 1, then one: the lines of 0 and 1 become free at 3 and 4 and are removed,
    # and only when the third call ends, at 12, is there room for one.
    trace = run(
        Sketch(3, start=START)
        .campaign("A", "busy 1s", "busy 2s", "busy 10s", BUSY, BUSY)
        .at(1, "setConcurrency", 1)
    )
    assert dials(trace)[3:] == ["12 A 3.1", "14 A 4.1"]
    assert [row for row in calls(trace) if "ended" in row][:3] == lines("""
        3 0.1 INITIATED>BUSY ended
        4 1.1 INITIATED>BUSY ended
        12 2.1 INITIATED>BUSY ended""")


def test_q1_a_higher_limit_is_used_at_once() -> None:
    trace = run(Sketch(1, start=START).campaign("A", *["busy 9s"] * 4).at(1, "setConcurrency", 3))
    assert dials(trace) == ["0 A 0.1", "1 A 1.1", "1 A 2.1", "11 A 3.1"]


def test_q1_a_slot_freed_by_a_withdrawal_and_one_by_an_end_are_used_in_the_same_instant() -> None:
    # At 4 person 0's call ends; at 4 A is paused while its person 1 is being set up (from 3 on).
    trace = run(
        Sketch(1, start=START)
        .campaign("A", "busy 2s", BUSY, caller_ids=["021000001"])
        .campaign("B", BUSY, BUSY, requested=3.5)
        .at(3, "setConcurrency", 2)
        .at(4, "pause", "A")
    )
    assert dials(trace) == ["0 A 0.1", "3 A 1.1", "4 B 0.1", "4 B 1.1"]


def released(trace: object, until: float) -> list[str]:
    """`0 0.1 1.1`: who was released when, up to an instant, over all campaigns by name A and B."""
    found: dict[str, list[str]] = {}
    for of in ("A", "B"):
        for row in calls(trace, of):  # type: ignore[arg-type]
            when, who, _, cause = row.split()
            if cause == "released" and float(when) <= until:
                found.setdefault(when, []).append(of.lower() + who)
    return [f"{when}: {' '.join(who)}" for when, who in found.items()]


@pytest.mark.parametrize(
    ("queue_limit", "expected"),
    [
        (None, ["0: a0.1 a1.1 a2.1 a3.1", "2: a4.1 a5.1"]),
        (1, ["0: a0.1 a1.1 a2.1", "2: a3.1 a4.1"]),
        (3, ["0: a0.1 a1.1 a2.1 a3.1 a4.1", "2: a5.1"]),
        ("unlimited", ["0: a0.1 a1.1 a2.1 a3.1 a4.1 a5.1"]),
    ],
)
def test_q2_the_queue_holds_as_many_as_its_limit(queue_limit: object, expected: list[str]) -> None:
    # Two slots: two are dialled in the instant of their release and leave the queue.
    settings = {} if queue_limit is None else {"queue_limit": queue_limit}
    trace = run(Sketch(2, start=START, **settings).campaign("A", *[BUSY] * 6))
    assert released(trace, until=3) == expected


def test_q2_by_default_the_queue_follows_the_limit_of_the_moment_and_removes_nobody() -> None:
    # Three slots: persons 0-2 dialled, 3-5 queued. From 1 on one slot and a queue of one: the three
    # stay; the slots are free at 11. One by one they go, and 6 is released when the queue is empty.
    trace = run(
        Sketch(3, start=START)
        .campaign("A", *["busy 9s"] * 3, *[BUSY] * 5)
        .at(1, "setConcurrency", 1)
    )
    assert released(trace, until=100) == [
        "0: a0.1 a1.1 a2.1 a3.1 a4.1 a5.1",
        "15: a6.1",
        "17: a7.1",
    ]
    assert not [row for row in calls(trace) if row.startswith("1 ")]


def test_q2_with_a_limit_of_0_nothing_is_released_whatever_the_queue_would_hold() -> None:
    for queue_limit in (5, "unlimited"):
        trace = run(
            Sketch(0, start=START, queue_limit=queue_limit)
            .campaign("A", BUSY)
            .at(10, "setConcurrency", 1)
        )
        assert released(trace, until=100) == ["10: a0.1"]


def test_q2_what_is_queued_stays_when_the_limit_falls_to_0() -> None:
    trace = run(
        Sketch(1, start=START)
        .campaign("A", BUSY, BUSY, BUSY)
        .at(1, "setConcurrency", 0)
        .at(10, "setConcurrency", 1)
    )
    assert [row for row in calls(trace) if " 1.1 " in row][1:3] == lines("""
        0 1.1 SCHEDULED>QUEUED released
        10 1.1 QUEUED>dialling dialled""")
    assert released(trace, until=10) == ["0: a0.1 a1.1", "10: a2.1"]


def test_q2_a_retry_is_released_when_due_and_not_before() -> None:
    trace = run(Sketch(5, start=START).campaign("A", BUSY, **RETRY))
    assert released(trace, until=1000) == ["0: a0.1", "302: a0.2"]


def test_q2_release_instants_count_from_the_start_of_the_campaign() -> None:
    # A's grid is 4, 14, 24, …, B's 0, 10, 20, …: one slot, a queue of one, calls of 3 s.
    trace = run(
        Sketch(1, start=START, release_interval="10s")
        .campaign("A", *["busy 1s"] * 3, start=4)
        .campaign("B", *["busy 1s"] * 3)
    )
    # 0: b0 dialled and b1 queued. 3: b1 dialled, the queue is empty, but B's next instant is 10. 4:
    # a0 queued, dialled at 6. 10: b2 queued? a0 ended at 9: b2 is dialled at once. 14: a1, a2.
    assert released(trace, until=100) == ["4: a0.1", "14: a1.1 a2.1", "0: b0.1 b1.1", "10: b2.1"]
    assert dials(trace) == lines("""
        0 B 0.1
        3 B 1.1
        6 A 0.1
        10 B 2.1
        14 A 1.1
        17 A 2.1""")


def test_q2_a_release_instant_outside_the_windows_is_none() -> None:
    # Every 2 minutes from 10:00 on: 10:02 is closed, 10:04 open, and room came at 2 s.
    trace = run(
        Sketch(1, start=START, release_interval="2m").campaign(
            "A", BUSY, BUSY, BUSY, windows="Mon 10:00-10:01 10:03-10:05"
        )
    )
    assert released(trace, until=400) == ["0: a0.1 a1.1", "240: a2.1"]


def test_q2_room_that_comes_between_release_instants_waits_for_the_next() -> None:
    trace = run(
        Sketch(0, start=START, release_interval="10s")
        .campaign("A", *["busy 28s"] * 4)
        .at(5, "setConcurrency", 1)
        .at(20, "setConcurrency", 2)
    )
    # 10: person 0 dialled, 1 queued. 20: the limit rises, 1 dialled, two more may be queued.
    assert released(trace, until=29) == ["10: a0.1 a1.1", "20: a2.1 a3.1"]
    assert dials(trace)[:2] == ["10 A 0.1", "20 A 1.1"]


def test_q2_a_retry_with_a_release_interval_waits_for_the_grid() -> None:
    # Busy at 2, due at 302, released at 310.
    trace = run(Sketch(1, start=START, release_interval="10s").campaign("A", BUSY, **RETRY))
    assert released(trace, until=400) == ["0: a0.1", "310: a0.2"]


@pytest.mark.parametrize(("timeout", "lost_at"), [("1ms", 0.001), ("4999ms", 4.999), ("5s", 5)])
def test_q5_a_call_that_waits_its_time_in_the_queue_is_cancelled(
    timeout: str, lost_at: float
) -> None:
    # The slot is free at 5: too late even where the wait ends in that very instant (T4).
    trace = run(
        Sketch(1, start=START, queue_timeout=timeout).campaign(
            "A", "busy 3s", BUSY, retry_interval="5m"
        )
    )
    assert f"{lost_at} 1.1 QUEUED>CANCELLED queue_timeout" in calls(trace)
    assert dials(trace) == ["0 A 0.1", f"{round(300 + lost_at, 3):.10g} A 1.2"]


def test_q5_a_millisecond_more_and_the_call_is_dialled() -> None:
    trace = run(Sketch(1, start=START, queue_timeout="5001ms").campaign("A", "busy 3s", BUSY))
    assert dials(trace) == ["0 A 0.1", "5 A 1.1"]


def test_q5_the_default_is_ten_minutes() -> None:
    trace = run(
        Sketch(1, start=START).campaign("A", "answered 0s 3000s", BUSY, retry_interval="5m")
    )
    assert "600 1.1 QUEUED>CANCELLED queue_timeout" in calls(trace)


def test_q5_it_counts_as_no_attempt_and_the_person_gets_another_call() -> None:
    # maxAttempts is 1: person 1 times out at 10 and 20, is dialled at 22, and has had its attempt.
    trace = run(Sketch(1, start=START, queue_timeout="10s").campaign("A", "busy 20s", "busy 0s"))
    assert [
        row for row in calls(trace) if row.split()[1].startswith("1.") and "new" not in row
    ] == lines("""
        0 1.1 SCHEDULED>QUEUED released
        10 1.1 QUEUED>CANCELLED queue_timeout
        10 1.2 SCHEDULED>QUEUED released
        20 1.2 QUEUED>CANCELLED queue_timeout
        20 1.3 SCHEDULED>QUEUED released
        22 1.3 QUEUED>dialling dialled
        24 1.3 INITIATED>BUSY ended""")
    assert life(trace)[-1] == "24 A RUNNING>COMPLETED all_final"


def test_q5_the_wait_starts_anew_after_a_pause() -> None:
    # Queued at 0, back at 6, queued again at 7: lost at 17, not at 10.
    trace = run(
        Sketch(1, start=START, queue_timeout="10s")
        .campaign("A", "busy 30s", BUSY, retry_interval="5m")
        .at(6, "pause", "A")
        .at(7, "resume", "A")
    )
    assert [row for row in calls(trace) if "queue_timeout" in row] == [
        "17 1.1 QUEUED>CANCELLED queue_timeout"
    ]


def test_q6_a_closing_window_takes_back_what_is_queued_and_keeps_the_due_instant() -> None:
    # Closed from 60 to 120. Person 1, due at 0, comes back before 2, due at 0 as well, and waits
    # anew: had the wait gone on it would have been lost at 100.
    trace = run(
        Sketch(1, start=START, queue_timeout="100s").campaign(
            "A", "answered 0s 148s", BUSY, BUSY, windows="Mon 10:00-10:01 10:02-10:04"
        )
    )
    assert [row for row in calls(trace) if row.split()[1] in ("1.1", "2.1")][2:] == lines("""
        0 2.1 new>SCHEDULED scheduled
        60 1.1 QUEUED>SCHEDULED window_closed
        120 1.1 SCHEDULED>QUEUED released
        150 1.1 QUEUED>dialling dialled
        150 2.1 SCHEDULED>QUEUED released
        152 1.1 INITIATED>BUSY ended
        152 2.1 QUEUED>dialling dialled
        154 2.1 INITIATED>BUSY ended""")


def test_q6_lines_being_set_up_and_conversations_go_on() -> None:
    # Dialled at 59; the window closes at 60.
    trace = run(
        Sketch(1, start=START).campaign(
            "A", "answered 0s 57s", "answered 1s 9s", windows="Mon 10:00-10:01"
        )
    )
    assert [row for row in calls(trace) if " 1.1 " in row][2:] == lines("""
        59 1.1 QUEUED>dialling dialled
        61 1.1 INITIATED>ringing ringing
        62 1.1 INITIATED>talking answered
        71 1.1 INITIATED>COMPLETED ended""")


def test_q6_only_the_campaign_whose_window_closes_loses_its_place() -> None:
    # a1 and b0 are queued (unlimited queue); A closes at 60, the slot is free at 100.
    trace = run(
        Sketch(1, start=START, queue_limit="unlimited")
        .campaign("A", "busy 98s", BUSY, windows="Mon 10:00-10:01")
        .campaign("B", BUSY)
    )
    assert dials(trace) == ["0 A 0.1", "100 B 0.1", f"{WEEK_S} A 1.1"]
    assert not [row for row in calls(trace, "B") if "window_closed" in row]
