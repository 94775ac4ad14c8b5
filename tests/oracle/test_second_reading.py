"""The second reading and both engines, held to scenarios worked out on paper."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from dialsim.testing import Sketch
from dialsim.testing.scheduler import PAPER, random_sketches
from engine.readings import Agree
from engine.rows import START, after
from oracle.paper import ZERO, calls, dials, life, lines

RETRY = {"max_attempts": 2, "retry_interval": "5m"}


def test_p1_what_takes_no_time_happens_in_the_same_instant(agreed: Agree) -> None:
    # Ringing of 0 s has no row; the answer has one even though the talk is over at once.
    reading = agreed(Sketch(1, start=START).campaign("A", "answered 0s 0s"))
    assert calls(reading) == lines("""
        0 0.1 new>SCHEDULED scheduled
        0 0.1 SCHEDULED>QUEUED released
        0 0.1 QUEUED>dialling dialled
        2 0.1 INITIATED>talking answered
        2 0.1 INITIATED>COMPLETED ended""")
    assert life(reading) == lines("""
        0 A DRAFT>SCHEDULED schedule
        0 A SCHEDULED>RUNNING start
        2 A RUNNING>COMPLETED all_final""")


def test_r2_a_retry_is_created_at_its_due_instant_and_a_reached_person_left_alone(
    agreed: Agree,
) -> None:
    # 2 s setup + 3 s ringing: ends at 5, due at 305; 307 ringing, 308 answered, 312 over.
    reading = agreed(
        Sketch(1, start=START).campaign(
            "A", "noAnswer 3s; answered 1s 4s", max_attempts=3, retry_interval="5m"
        )
    )
    assert calls(reading) == lines("""
        0 0.1 new>SCHEDULED scheduled
        0 0.1 SCHEDULED>QUEUED released
        0 0.1 QUEUED>dialling dialled
        2 0.1 INITIATED>ringing ringing
        5 0.1 INITIATED>NO_ANSWER ended
        305 0.2 new>SCHEDULED retry
        305 0.2 SCHEDULED>QUEUED released
        305 0.2 QUEUED>dialling dialled
        307 0.2 INITIATED>ringing ringing
        308 0.2 INITIATED>talking answered
        312 0.2 INITIATED>COMPLETED ended""")
    assert life(reading)[-1] == "312 A RUNNING>COMPLETED all_final"


def test_t4_an_end_a_timeout_a_retry_and_a_dial_share_one_instant_in_their_order(
    agreed: Agree,
) -> None:
    # Person 0 holds the slot from 0 to 5. Person 1 is QUEUED at 0 and too long so at 5: the slot is
    # free by then (step 4), but step 5 comes before step 7. With retryInterval 0 the new call is
    # created in step 6 and dialled in step 7. The timeout counts no attempt (maxAttempts is 1).
    reading = agreed(
        Sketch(1, start=START, queue_timeout="5s").campaign("A", "noAnswer 3s", "busy 0s")
    )
    assert calls(reading) == lines("""
        0 0.1 new>SCHEDULED scheduled
        0 0.1 SCHEDULED>QUEUED released
        0 0.1 QUEUED>dialling dialled
        0 1.1 new>SCHEDULED scheduled
        0 1.1 SCHEDULED>QUEUED released
        2 0.1 INITIATED>ringing ringing
        5 0.1 INITIATED>NO_ANSWER ended
        5 1.1 QUEUED>CANCELLED queue_timeout
        5 1.2 new>SCHEDULED retry
        5 1.2 SCHEDULED>QUEUED released
        5 1.2 QUEUED>dialling dialled
        7 1.2 INITIATED>BUSY ended""")


def test_q6_a_closing_window_takes_queued_calls_back_and_their_wait_starts_anew(
    agreed: Agree,
) -> None:
    # The slot is taken from 0 to 72. Person 1 waits from 0, is taken back at 60, released again at
    # 120: had the wait gone on, it would have been too long at 100.
    reading = agreed(
        Sketch(1, start=START, queue_timeout="100s").campaign(
            "A", "answered 0s 70s", "failed 0s", windows="Mon 10:00-10:01 10:02-10:03"
        )
    )
    assert calls(reading)[-6:] == lines("""
        2 0.1 INITIATED>talking answered
        60 1.1 QUEUED>SCHEDULED window_closed
        72 0.1 INITIATED>COMPLETED ended
        120 1.1 SCHEDULED>QUEUED released
        120 1.1 QUEUED>dialling dialled
        122 1.1 INITIATED>FAILED ended""")


def test_t3_ranges_that_touch_in_two_items_of_a_day_are_one_and_end_half_open(
    agreed: Agree,
) -> None:
    # Nothing closes at 60; at 120 the window is closed, so that person 2 waits for next Monday.
    reading = agreed(
        Sketch(1, start=START, queue_limit=1).campaign(
            "A",
            "answered 0s 68s",
            "noAnswer 48s",
            "busy 0s",
            time_windows=[
                {"dayOfWeek": 1, "time": [{"start": "10:00", "end": "10:01"}]},
                {"dayOfWeek": 1, "time": [{"start": "10:01", "end": "10:02"}]},
            ],
        )
    )
    assert dials(reading) == ["0 A 0.1", "70 A 1.1", "604800 A 2.1"]
    assert "120 2.1 QUEUED>SCHEDULED window_closed" in calls(reading)
    assert "120 1.1 INITIATED>NO_ANSWER ended" in calls(reading)


def test_t2_windows_follow_the_thai_week(agreed: Agree) -> None:
    # Monday 00:30 in Thailand is Sunday 17:30 UTC: 6 days and 14.5 hours after Monday 10:00.
    reading = agreed(Sketch(1, start=START).campaign("A", "busy 0s", windows="Mon 00:30-00:31"))
    assert dials(reading) == ["570600 A 0.1"]  # seconds


def test_c4_a_pause_withdraws_what_does_not_ring_yet_and_hangs_up_nobody(agreed: Agree) -> None:
    # One dial a second: 0 at 0, 1 at 1; person 2 waits for a slot. At 2.5 person 0 rings, 1 is
    # being set up, 2 is QUEUED. After the resume at 6: 1 at 6 (pace: 1 + 1), 2 at 7.
    reading = agreed(
        Sketch(2, start=START, calls_per_second=1)
        .campaign("A", "noAnswer 3s", "busy 0s", "busy 0s")
        .at(2.5, "pause", "A")
        .at(6, "resume", "A")
    )
    assert calls(reading)[7:] == lines("""
        1 1.1 QUEUED>dialling dialled
        2 0.1 INITIATED>ringing ringing
        2.5 1.1 INITIATED>SCHEDULED paused
        2.5 2.1 QUEUED>SCHEDULED paused
        5 0.1 INITIATED>NO_ANSWER ended
        6 1.1 SCHEDULED>QUEUED released
        6 1.1 QUEUED>dialling dialled
        6 2.1 SCHEDULED>QUEUED released
        7 2.1 QUEUED>dialling dialled
        8 1.1 INITIATED>BUSY ended
        9 2.1 INITIATED>BUSY ended""")
    assert life(reading)[2:] == lines("""
        2.5 A RUNNING>PAUSED pause
        6 A PAUSED>RUNNING resume
        9 A RUNNING>COMPLETED all_final""")


def test_q4_a_withdrawn_dial_counts_for_the_pace_but_not_as_an_attempt(agreed: Agree) -> None:
    # Dialled at 0, withdrawn at 1, back in the queue at 1; two dials are 2 s apart: 2. It is still
    # attempt 1 of 1, by step 1 of the script.
    reading = agreed(
        Sketch(1, start=START, calls_per_second=0.5)
        .campaign("A", "busy 0s; failed 0s")
        .at(1, "pause", "A")
        .at(1, "resume", "A")
    )
    assert calls(reading)[3:] == lines("""
        1 0.1 INITIATED>SCHEDULED paused
        1 0.1 SCHEDULED>QUEUED released
        2 0.1 QUEUED>dialling dialled
        4 0.1 INITIATED>BUSY ended""")


def test_q4_the_gap_between_dials_is_rounded_up_to_a_millisecond(agreed: Agree) -> None:
    reading = agreed(Sketch(2, start=START, calls_per_second=3).campaign("A", "busy 0s", "busy 0s"))
    assert dials(reading) == ["0 A 0.1", "0.334 A 1.1"]


def test_c6_a_cancellation_ends_what_waits_drops_retries_and_lets_talkers_talk(
    agreed: Agree,
) -> None:
    # Two slots, a queue of one. Person 1 is over at 3, with a retry due at 303; then 2 is dialled
    # and 3 QUEUED. At 4 person 0 talks (until 12).
    reading = agreed(
        Sketch(2, start=START, queue_limit=1)
        .campaign("A", "answered 0s 10s", "noAnswer 1s", "busy 0s", "busy 0s", **RETRY)
        .at(4, "cancel", "A")
    )
    assert calls(reading)[-7:] == lines("""
        2 1.1 INITIATED>ringing ringing
        3 1.1 INITIATED>NO_ANSWER ended
        3 2.1 QUEUED>dialling dialled
        3 3.1 SCHEDULED>QUEUED released
        4 2.1 INITIATED>CANCELLED cancelled
        4 3.1 QUEUED>CANCELLED cancelled
        12 0.1 INITIATED>COMPLETED ended""")
    assert life(reading)[2:] == ["4 A RUNNING>CANCELLED cancel"]


def test_c7_at_end_date_time_even_a_line_just_set_up_expires(agreed: Agree) -> None:
    # At 2 the setup would be over (step 4), but endDateTime is step 2.
    reading = agreed(
        Sketch(1, start=START).campaign("A", "answered 0s 1s", "busy 0s", "busy 0s", end=2)
    )
    assert calls(reading)[-3:] == lines("""
        2 0.1 INITIATED>EXPIRED expired
        2 1.1 QUEUED>EXPIRED expired
        2 2.1 SCHEDULED>EXPIRED expired""")
    assert life(reading)[2:] == ["2 A RUNNING>EXPIRED end_date_time"]


def test_c7_a_call_that_rings_goes_on_is_not_retried_and_the_campaign_completes(
    agreed: Agree,
) -> None:
    reading = agreed(Sketch(1, start=START).campaign("A", "noAnswer 5s", **RETRY, end=3))
    assert calls(reading)[-1] == "7 0.1 INITIATED>NO_ANSWER ended"
    assert life(reading)[2:] == ["7 A RUNNING>COMPLETED all_final"]


def test_c7_a_retry_not_yet_due_is_dropped_and_the_campaign_expires(agreed: Agree) -> None:
    reading = agreed(Sketch(1, start=START).campaign("A", "busy 0s", **RETRY, end=302))
    assert calls(reading)[-1] == "2 0.1 INITIATED>BUSY ended"
    assert life(reading)[2:] == ["302 A RUNNING>EXPIRED end_date_time"]


def test_c7_holds_for_an_end_already_past_at_the_request(agreed: Agree) -> None:
    reading = agreed(Sketch(1, start=START).campaign("A", "busy 0s", start=-100, end=-50))
    assert calls(reading) == lines("""
        0 0.1 new>SCHEDULED scheduled
        0 0.1 SCHEDULED>EXPIRED expired""")
    assert life(reading) == lines("""
        0 A DRAFT>SCHEDULED schedule
        0 A SCHEDULED>EXPIRED end_date_time""")


def test_c3_a_campaign_without_recipients_runs_and_completes_when_a_window_opens(
    agreed: Agree,
) -> None:
    reading = agreed(Sketch(1, start=START).campaign("A", windows="Mon 10:10-10:20"))
    assert life(reading) == lines("""
        0 A DRAFT>SCHEDULED schedule
        600 A SCHEDULED>RUNNING start
        600 A RUNNING>COMPLETED all_final""")


def test_c3_a_paused_campaign_completes_after_its_resume(agreed: Agree) -> None:
    paused = Sketch(1, start=START).campaign("A", "noAnswer 5s")
    paused = paused.at(3, "pause", "A").at(3, "pause", "A")
    reading = agreed(paused.at(20, "resume", "A"))
    assert life(reading)[2:] == lines("""
        3 A RUNNING>PAUSED pause
        20 A PAUSED>RUNNING resume
        20 A RUNNING>COMPLETED all_final""")
    assert reading.refused == []
    assert agreed(paused).stalled == {("Acme", "A")}


def test_c8_a_deleted_campaign_keeps_a_final_status_and_is_not_found_afterwards(
    agreed: Agree,
) -> None:
    reading = agreed(
        Sketch(3, start=START, queue_limit=1)
        .campaign("A", "busy 0s")
        .campaign("B", "busy 0s", "answered 0s 9s", "busy 0s")
        .at(5, "pause", "A")
        .at(5, "delete", "A")
        .at(5, "resume", "A")
        .at(5, "delete", "A")
        .at(3, "delete", "B")
    )
    # Three slots: A's call and two of B's are dialled at 0, B's third at 2.
    assert calls(reading, of="B")[-3:] == lines("""
        2 2.1 QUEUED>dialling dialled
        3 2.1 INITIATED>CANCELLED deleted
        11 1.1 INITIATED>COMPLETED ended""")
    assert life(reading)[4:] == lines("""
        2 A RUNNING>COMPLETED all_final
        3 B RUNNING>CANCELLED delete
        5 A COMPLETED>COMPLETED delete""")
    gone = ("CAMPAIGN_NOT_FOUND", "Campaign not found")
    assert reading.refused == [
        (ZERO + 5000, "Acme", "A", "pause", "INVALID_CAMPAIGN_STATE",
         "Cannot pause a COMPLETED campaign"),
        (ZERO + 5000, "Acme", "A", "resume", *gone),
        (ZERO + 5000, "Acme", "A", "delete", *gone),
    ]  # fmt: skip


def test_c1_a_refused_schedule_request_changes_nothing(agreed: Agree) -> None:
    refused = Sketch(1, start=START).campaign("A", "busy 0s").at(1, "schedule", "A", start=0)
    text = "Campaign has already been started (current status: RUNNING)"
    reading = agreed(refused)
    assert reading.refused == [
        (ZERO + 1000, "Acme", "A", "schedule", "CAMPAIGN_ALREADY_STARTED", text)
    ]
    reading = agreed(refused.having(calling_allowed=False))
    assert [row[4] for row in reading.refused] == ["CALLING_NOT_ALLOWED"] * 2
    assert reading.transitions == reading.campaigns == []
    assert reading.stalled == set()


def test_q2_release_interval_lets_calls_into_the_queue_only_at_its_instants(agreed: Agree) -> None:
    # At 0: person 0 released and dialled, 1 released. The queue is empty from 3 on, but the next
    # release is at 10.
    reading = agreed(
        Sketch(1, start=START, release_interval="10s").campaign(
            "A", "busy 1s", "busy 1s", "busy 1s"
        )
    )
    assert dials(reading) == ["0 A 0.1", "3 A 1.1", "10 A 2.1"]
    assert "10 2.1 SCHEDULED>QUEUED released" in calls(reading)


@pytest.mark.parametrize(
    ("sharing", "expected"),
    [
        ("roundRobin", ["A 0.1", "B 0.1", "A 1.1", "B 1.1"]),
        ("fifo", ["A 0.1", "A 1.1", "B 0.1", "B 1.1"]),
    ],
)
def test_q3_between_campaigns(agreed: Agree, sharing: str, expected: list[str]) -> None:
    # One slot, a queue of one: one release at a time, 2 s apart, so the turn is kept over instants.
    reading = agreed(
        Sketch(1, start=START, sharing=sharing)
        .campaign("A", "busy 0s", "busy 0s")
        .campaign("B", "busy 0s", "busy 0s")
    )
    assert dials(reading) == [f"{2 * i} {call}" for i, call in enumerate(expected)]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("due", ["500 A 3.1", "502 A 0.2", "504 A 2.2"]),
        ("freshFirst", ["500 A 3.1", "502 A 2.2", "504 A 0.2"]),
        ("retriesFirst", ["500 A 0.2", "502 A 3.1", "504 A 2.2"]),
    ],
)
def test_q3_inside_a_campaign(agreed: Agree, order: str, expected: list[str]) -> None:
    # 0 is BUSY at 2 (due 302, one attempt). 1 holds the slot from 2 to 404. 2 times out at 7 (due
    # 307, no attempt). 3 is released at 7 and withdrawn by the pause at 8 (due 0). At 500 all wait.
    reading = agreed(
        Sketch(1, start=START, order=order, queue_timeout="5s")
        .campaign("A", "busy 0s", "answered 0s 400s", "busy 0s", "busy 0s", **RETRY)
        .at(8, "pause", "A")
        .at(500, "resume", "A")
    )
    assert dials(reading)[2:5] == expected


def test_q1_a_lower_limit_hangs_up_nobody_and_0_releases_nothing(agreed: Agree) -> None:
    # At 1 two calls are being set up, two are QUEUED, one waits. At 3 both slots are given up, but
    # the limit is 0 until 10, and 1 from then on.
    reading = agreed(
        Sketch(2, start=START, queue_limit=2)
        .campaign("A", *["busy 1s"] * 5)
        .at(1, "setConcurrency", 0)
        .at(10, "setConcurrency", 1)
    )
    assert dials(reading) == ["0 A 0.1", "0 A 1.1", "10 A 2.1", "13 A 3.1", "16 A 4.1"]
    assert "3 1.1 INITIATED>BUSY ended" in calls(reading)
    assert "10 4.1 SCHEDULED>QUEUED released" in calls(reading)


def test_t5_a_campaign_that_can_never_dial_is_stalled(agreed: Agree) -> None:
    no_slots = agreed(Sketch(0, start=START).campaign("A", "busy 0s"))
    assert no_slots.stalled == {("Acme", "A")}
    assert life(no_slots)[-1] == "0 A SCHEDULED>RUNNING start"
    # Releases on the hour, a window from 10:05 to 10:20.
    reading = agreed(
        Sketch(1, start=START, release_interval="1h").campaign(
            "A", "busy 0s", windows="Mon 10:05-10:20"
        )
    )
    assert reading.stalled == {("Acme", "A")}
    assert life(reading)[-1] == "300 A SCHEDULED>RUNNING start"
    # Every 11 minutes from 10:00 on: a week is 10,080 minutes, 4 more than 916 times 11, so that
    # the first release after opening comes 4 minutes earlier each week: week 0 at 10:11, 1 at
    # 10:07, 2 at 10:03.
    reading = agreed(
        Sketch(1, start=START, release_interval="11m").campaign(
            "A", "busy 0s", windows="Mon 10:03-10:05"
        )
    )
    assert dials(reading) == [f"{2 * 604800 + 180} A 0.1"]


def test_t5_clock_end_is_the_last_instant_worked_off(agreed: Agree) -> None:
    ends = []
    for last in (2, 1.999):
        reading = agreed(Sketch(1, start=START, end=last).campaign("A", "busy 0s"))
        ends.append(life(reading)[-1])
        assert reading.stalled == set()
    assert ends == ["2 A RUNNING>COMPLETED all_final", "0 A SCHEDULED>RUNNING start"]


def test_set_behaviour_holds_for_dials_from_then_on(agreed: Agree) -> None:
    reading = agreed(
        Sketch(1, start=START)
        .behaviour("slow", setup_time="5s")
        .campaign("A", "busy 0s", "busy 0s")
        .at(1, "setBehaviour", "slow")
    )
    ended = [text for text in calls(reading) if "ended" in text]
    assert ended == ["2 0.1 INITIATED>BUSY ended", "7 1.1 INITIATED>BUSY ended"]


def called_before(attempts: int, status: str, ended: float) -> dict[str, Any]:
    """A person who is busy, with earlier attempts, the last of which ended at …"""
    history = {"callAttempt": attempts, "latestCallStatus": status, "lastEndedAt": after(ended)}
    return {"script": "busy 0s", "history": history}


def test_r2_a_history_goes_on_with_the_next_call_at_the_later_of_request_and_interval(
    agreed: Agree,
) -> None:
    # Person 0 was reached, person 1 has had both attempts: nothing more for them. Person 2 is due
    # at -100 + 300, person 3 at once: there 2 s setup, BUSY at 2, and that was the last attempt.
    histories = [(1, "COMPLETED", -9), (2, "BUSY", -9), (1, "FAILED", -100), (1, "BUSY", -400)]
    people = [called_before(*history) for history in histories]
    reading = agreed(Sketch(1, start=START).campaign("A", *people, **RETRY))
    assert calls(reading) == lines("""
        0 3.1 new>SCHEDULED retry
        0 3.1 SCHEDULED>QUEUED released
        0 3.1 QUEUED>dialling dialled
        2 3.1 INITIATED>BUSY ended
        200 2.1 new>SCHEDULED retry
        200 2.1 SCHEDULED>QUEUED released
        200 2.1 QUEUED>dialling dialled
        202 2.1 INITIATED>BUSY ended""")
    assert life(reading)[-1] == "202 A RUNNING>COMPLETED all_final"


def test_d3_who_was_reached_within_the_window_is_off_the_list(agreed: Agree) -> None:
    # Person 0 of A is reached from 2 to 9. At 19 that is 10 s ago, at the edge of the window;
    # person 1, BUSY in A, is called again.
    def second(requested: float) -> Sketch:
        return (
            Sketch(2, start=START)
            .having(duplicate_call_alert={"window": "10s"})
            .campaign("A", "answered 0s 7s", "busy 0s")
            .campaign("B", "busy 0s", "busy 0s", requested=requested, remove_duplicates=True)
        )

    reading = agreed(second(19))
    assert reading.removed == {("Acme", "B", 0)}
    assert dials(reading) == ["0 A 0.1", "0 A 1.1", "19 B 1.1"]
    assert agreed(second(19.001)).removed == set()


def test_d3_nobody_left_is_refused_and_calling_must_be_allowed_first(agreed: Agree) -> None:
    written = (
        Sketch(1, start=START)
        .having(duplicate_call_alert={"window": "1d"})
        .campaign("A", "answered 0s 7s")
        .campaign("B", "busy 0s", requested=19, remove_duplicates=True)
    )
    nobody = ("VALIDATION_FAILED", "All recipients are duplicates within the configured window")
    assert [row[3:] for row in agreed(written).refused] == [("schedule", *nobody)]
    forbidden = written.at(5, "setCallingAllowed", False)
    assert [row[4] for row in agreed(forbidden).refused] == ["CALLING_NOT_ALLOWED"]


@pytest.mark.parametrize("number", range(len(PAPER)))
def test_paper_scenarios_for_schedulers_under_test_are_read_alike(
    number: int, agreed: Agree
) -> None:
    agreed(PAPER[number])


@settings(max_examples=30, deadline=None, suppress_health_check=[*HealthCheck])
@given(random_sketches())
def test_random_scenarios_for_schedulers_under_test_are_read_alike(
    agreed: Agree, sketch: Sketch
) -> None:
    agreed(sketch)
