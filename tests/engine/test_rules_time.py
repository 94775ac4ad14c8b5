"""Rules T1 to T5, each on a scenario worked out on paper (see `readings` and `rows`)."""

from __future__ import annotations

from typing import Any

import pytest

from dialsim.testing import Sketch
from engine.readings import run
from engine.rows import START, WEEK_S, ZERO, calls, dials, life, lines, refusals, rows, stalled

RETRY = {"max_attempts": 2, "retry_interval": "5m"}


def test_t1_instants_are_whole_milliseconds_however_times_are_drawn() -> None:
    setup = {"dist": "lognormal", "mean": "1500ms", "sd": "700ms"}
    written = Sketch(3, start=START, setup_time=setup, calls_per_second=0.7).campaign(
        "A", *["busy 0s"] * 3
    )
    trace = run(written)
    assert {type(row.at) for row in rows(trace)} == {int}
    # 1000 / 0.7 is 1428.57…: dials are 1429 ms apart
    assert dials(trace) == ["0 A 0.1", "1.429 A 1.1", "2.858 A 2.1"]
    assert trace.calls[0][0].rows().at.dtype == "int64"


def test_t2_a_window_is_read_in_thai_time() -> None:
    # Monday 00:30 in Thailand is Sunday 17:30 UTC: 6 days and 14.5 hours after Monday 10:00.
    trace = run(Sketch(1, start=START).campaign("A", "busy 0s", windows="Mon 00:30-00:31"))
    assert dials(trace) == [f"{6 * 86_400 + 14 * 3600 + 1800} A 0.1"]


def test_t3_a_call_may_start_in_the_last_millisecond_and_not_at_the_end() -> None:
    # The window closes at 300. Person 0 is done at 299.999: 1 is dialled, 2 queued for 1 ms.
    trace = run(
        Sketch(1, start=START).campaign(
            "A", "answered 0s 297999ms", "busy 1s", "busy 1s", windows="Mon 10:00-10:05"
        )
    )
    assert dials(trace) == ["0 A 0.1", "299.999 A 1.1", f"{WEEK_S} A 2.1"]
    assert [row for row in calls(trace) if " 2.1 " in row][1:3] == lines("""
        299.999 2.1 SCHEDULED>QUEUED released
        300 2.1 QUEUED>SCHEDULED window_closed""")
    # The line of person 1 was being set up: it goes on (Q6).
    assert "301.999 1.1 INITIATED>ringing ringing" in calls(trace)


def test_t3_days_not_listed_are_closed_and_the_default_windows_are_the_interfaces() -> None:
    day = 86_400
    asked_and_dialled = {
        -1800: 0,  # asked before the clock starts: Monday 10:00 is open
        9 * 3600 - 0.001: 9 * 3600 - 0.001,  # Monday 18:59:59.999
        9 * 3600: day - 3600,  # Monday 19:00: Tuesday 09:00
        5 * day - 1800: 5 * day,  # Saturday 09:30: 10:00
        6 * day + 9 * 3600: 7 * day - 3600,  # Sunday 19:00: Monday 09:00
    }
    for asked, dialled in asked_and_dialled.items():
        trace = run(Sketch(1, start=START).campaign("A", "busy 0s", time_windows=None, start=asked))
        assert dials(trace) == [f"{dialled:.10g} A 0.1"]
    trace = run(Sketch(1, start=START).campaign("A", "busy 0s", windows="Wed 10:00-11:00"))
    assert dials(trace) == [f"{2 * day} A 0.1"]


def test_t3_ranges_that_touch_or_overlap_do_not_close_in_between() -> None:
    # The slot is taken from 0 to 130. Person 1 waits in the queue over 60 (ranges touch, in two
    # items) and 90 (one inside another) until the window closes at 120.
    first, second = ({"start": f"10:0{m}", "end": f"10:0{m + 1}"} for m in (0, 1))
    items = [{"dayOfWeek": 1, "time": [first]}, {"dayOfWeek": 1, "time": [second, first]}]
    sketch = Sketch(1, start=START).campaign("A", "answered 0s 128s", "busy 0s", time_windows=items)
    trace = run(sketch)
    assert [row for row in calls(trace) if " 1.1 " in row][:3] == lines("""
        0 1.1 new>SCHEDULED scheduled
        0 1.1 SCHEDULED>QUEUED released
        120 1.1 QUEUED>SCHEDULED window_closed""")


def test_t3_the_minute_before_midnight_is_always_closed() -> None:
    # Monday 23:59 is 13 h 59 min after 10:00; the slot is taken for longer.
    trace = run(
        Sketch(1, start=START, queue_timeout="1d").campaign(
            "A", "answered 0s 50500s", "busy 0s", windows="daily 00:00-23:59"
        )
    )
    assert [row for row in calls(trace) if " 1.1 " in row][1:] == lines("""
        0 1.1 SCHEDULED>QUEUED released
        50340 1.1 QUEUED>SCHEDULED window_closed
        50400 1.1 SCHEDULED>QUEUED released
        50502 1.1 QUEUED>dialling dialled
        50504 1.1 INITIATED>BUSY ended""")


def test_t4_requests_come_before_actions_and_actions_in_file_order() -> None:
    trace = run(
        Sketch(1, start=START)
        .campaign("A", "busy 0s", requested=5)
        .at(5, "pause", "A")
        .at(5, "resume", "A")
        .at(5, "cancel", "A")
        .at(3, "pause", "A")
    )
    assert life(trace) == lines("""
        5 A DRAFT>SCHEDULED schedule
        5 A SCHEDULED>PAUSED pause
        5 A PAUSED>RUNNING resume
        5 A RUNNING>CANCELLED cancel""")
    assert calls(trace) == lines("""
        5 0.1 new>SCHEDULED scheduled
        5 0.1 SCHEDULED>CANCELLED cancelled""")
    assert refusals(trace) == ["3 A pause INVALID_CAMPAIGN_STATE: Cannot pause a DRAFT campaign"]


def test_t4_actions_of_one_instant_in_the_other_order_end_otherwise() -> None:
    # Resume is refused while RUNNING; after the pause it is not.
    sketch = Sketch(1, start=START).campaign("A", "busy 0s")
    for one, other, ends in (("resume", "pause", "PAUSED"), ("pause", "resume", "COMPLETED")):
        trace = run(sketch.at(1, one, "A").at(1, other, "A"))
        assert trace.campaigns[-1].to_status == ends


def test_t4_limits_set_in_one_instant_count_as_the_last_says() -> None:
    trace = run(
        Sketch(0, start=START)
        .campaign("A", *["busy 0s"] * 3)
        .at(0, "setConcurrency", 3)
        .at(0, "setConcurrency", 2)
    )
    assert dials(trace) == ["0 A 0.1", "0 A 1.1", "2 A 2.1"]
    assert [change.limit for change in trace.limits] == [0, 3, 2]


def test_t4_an_action_beats_the_end_of_a_setup_and_of_a_call() -> None:
    # Step 1 before step 4: at 2 the line is not yet ringing, at 5 the call has not yet ended.
    withdrawn = run(Sketch(1, start=START).campaign("A", "busy 3s").at(2, "cancel", "A"))
    assert calls(withdrawn)[-1] == "2 0.1 INITIATED>CANCELLED cancelled"
    under_way = run(Sketch(1, start=START).campaign("A", "busy 3s", **RETRY).at(5, "cancel", "A"))
    assert calls(under_way)[-1] == "5 0.1 INITIATED>BUSY ended"
    assert life(under_way)[-1] == "5 A RUNNING>CANCELLED cancel"


def test_t4_the_end_date_comes_before_a_closing_window() -> None:
    trace = run(
        Sketch(1, start=START).campaign(
            "A", "answered 0s 90s", "busy 0s", "busy 0s", windows="Mon 10:00-10:01", end=60
        )
    )
    assert [row for row in calls(trace) if row.startswith("60 ")] == lines("""
        60 1.1 QUEUED>EXPIRED expired
        60 2.1 SCHEDULED>EXPIRED expired""")


def test_t4_a_closing_window_comes_before_the_end_of_a_call() -> None:
    # At 60 the slot becomes free (step 4), but person 1 has left the queue by then (step 3).
    trace = run(
        Sketch(1, start=START).campaign(
            "A", "answered 0s 58s", "busy 0s", windows="Mon 10:00-10:01"
        )
    )
    assert [row for row in calls(trace) if row.startswith("60 ")] == lines("""
        60 0.1 INITIATED>COMPLETED ended
        60 1.1 QUEUED>SCHEDULED window_closed""")
    assert dials(trace)[1] == f"{WEEK_S} A 1.1"


def test_t4_an_end_a_timeout_a_retry_and_a_dial_of_one_instant() -> None:
    # At 5: person 0's call ends (step 4) and leaves the slot free, person 1 has waited 5 s (step 5:
    # too late for the slot), its new call is created (6), and then released and dialled (7).
    trace = run(Sketch(1, start=START, queue_timeout="5s").campaign("A", "noAnswer 3s", "busy 0s"))
    assert [row for row in calls(trace) if row.startswith("5 ")] == lines("""
        5 0.1 INITIATED>NO_ANSWER ended
        5 1.1 QUEUED>CANCELLED queue_timeout
        5 1.2 new>SCHEDULED retry
        5 1.2 SCHEDULED>QUEUED released
        5 1.2 QUEUED>dialling dialled""")


def test_t4_a_campaign_that_starts_is_dialled_in_the_same_instant_with_what_was_freed() -> None:
    # At 60 A's call ends, its window closes and B's opens.
    trace = run(
        Sketch(1, start=START)
        .campaign("A", "answered 0s 58s", windows="Mon 10:00-10:01")
        .campaign("B", "busy 0s", windows="Mon 10:01-10:02")
    )
    assert dials(trace) == ["0 A 0.1", "60 B 0.1"]
    assert life(trace)[3:5] == ["60 A RUNNING>COMPLETED all_final", "60 B SCHEDULED>RUNNING start"]


def test_t5_clock_end_is_worked_off_and_nothing_after_it() -> None:
    for end, last, cut in (
        (2, "2 A RUNNING>COMPLETED all_final", False),
        (1.999, "0 A SCHEDULED>RUNNING start", True),
    ):
        trace = run(Sketch(1, start=START, end=end).campaign("A", "busy 0s"))
        assert life(trace)[-1] == last
        assert (trace.end, trace.cut) == (ZERO + round(end * 1000), cut)
        assert stalled(trace) == set()


def test_t5_a_run_lasts_until_clock_end_even_if_all_is_done_before() -> None:
    trace = run(Sketch(1, start=START, end=1000).campaign("A", "busy 0s"))
    assert (trace.end, trace.cut) == (ZERO + 1_000_000, False)


def test_t5_a_run_ends_with_the_last_change() -> None:
    trace = run(Sketch(1, start=START).campaign("A", "answered 0s 90s", **RETRY))
    assert (trace.end, trace.cut, stalled(trace)) == (ZERO + 92_000, False, set())


@pytest.mark.parametrize(
    ("limit", "acts", "settings", "status"),
    [
        (0, [], {}, "RUNNING"),
        (1, [(1, "setConcurrency", 0)], {}, "RUNNING"),
        (1, [(1, "pause", "A")], {}, "PAUSED"),
        # Releases on the hour from 10:00:00.001 on; the window is 10:05 to 10:20.
        (1, [], {"release_interval": "1h"}, "RUNNING"),
    ],
)
def test_t5_a_campaign_that_can_never_be_dialled_is_stalled(
    limit: int, acts: list, settings: dict, status: str
) -> None:
    body: dict[str, Any] = {"windows": "Mon 10:00-10:20"}
    if settings:
        body = {"windows": "Mon 10:05-10:20", "start": 0.001}
    sketch = Sketch(limit, start=START, **settings).campaign("A", *["busy 9s"] * 5, **body)
    for act in acts:
        sketch = sketch.at(*act)
    trace = run(sketch)
    assert stalled(trace) == {"A"}
    assert trace.campaigns[-1].to_status == status
    assert not trace.cut


def test_t5_what_lies_ahead_keeps_a_campaign_from_stalling() -> None:
    raised = run(Sketch(0, start=START).campaign("A", "busy 0s").at(500, "setConcurrency", 1))
    assert (dials(raised), stalled(raised)) == (["500 A 0.1"], set())
    resumed = run(
        Sketch(1, start=START).campaign("A", "busy 0s").at(1, "pause", "A").at(500, "resume", "A")
    )
    assert (dials(resumed), stalled(resumed)) == (["0 A 0.1", "500 A 0.1"], set())
    ended = run(Sketch(0, start=START).campaign("A", "busy 0s", end=500))
    assert (life(ended)[-1], stalled(ended)) == ("500 A RUNNING>EXPIRED end_date_time", set())


def test_t5_a_draft_and_a_finished_campaign_are_not_stalled() -> None:
    trace = run(
        Sketch(1, start=START)
        .campaign("A", "busy 0s")
        .campaign("D", "busy 0s", requested=None)
        .campaign("B", "busy 0s")
        .at(0, "pause", "B")
    )
    assert stalled(trace) == {"B"}


def test_t5_organizations_go_on_without_one_that_is_stalled() -> None:
    trace = run(
        Sketch(0, start=START)
        .campaign("A", "busy 0s")
        .organization("Bravo", 1)
        .campaign("A", "busy 0s", requested=50)
    )
    assert stalled(trace) == {"Acme/A"}
    assert dials(trace) == ["50 Bravo/A 0.1"]


def test_t5_a_release_instant_that_comes_weeks_later_is_waited_for() -> None:
    # Every 11 minutes from 10:00 on: a week is 4 minutes more than 916 times 11, so the first
    # release after 10:00 is at 10:11 this week, at 10:07 the next, and at 10:03 two weeks on.
    trace = run(
        Sketch(1, start=START, release_interval="11m").campaign(
            "A", "busy 0s", windows="Mon 10:03-10:05"
        )
    )
    assert dials(trace) == [f"{2 * WEEK_S + 180} A 0.1"]


def test_t5_a_request_ahead_is_waited_for() -> None:
    trace = run(
        Sketch(1, start=START)
        .campaign("A", "busy 0s", requested=None)
        .at(900, "schedule", "A", start=1000)
    )
    assert dials(trace) == ["1000 A 0.1"]
