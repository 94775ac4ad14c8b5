"""Rules Q7 to Q11, each on a scenario worked out on paper (see `readings` and `rows`)."""

from __future__ import annotations

import pytest

from dialsim.testing import Sketch
from engine.readings import run
from engine.rows import START, dials

RETRY = {"max_attempts": 2, "retry_interval": "5m"}
BUSY = "busy 0s"  # holds the line for the 2 s of the setup
TALK = "answered 0s 58s"  # holds it for a minute


def order(*told: str) -> str:
    """Order of the dials: `A0 B0`."""
    return " ".join(f"{entry.split()[1]}{entry.split()[2].split('.')[0]}" for entry in told)


# -- Q7 -------------------------------------------------------------------------------------------


def test_q7_the_smallest_priority_goes_first_and_none_at_all_last() -> None:
    trace = run(
        Sketch(1, start=START, sharing="priority")
        .campaign("A", *[BUSY] * 2)
        .campaign("B", *[BUSY] * 2, priority=2)
        .campaign("C", *[BUSY] * 2, priority=1)
    )
    assert order(*dials(trace)) == "C0 C1 B0 B1 A0 A1"


def test_q7_retries_go_before_all_calls_of_a_lower_priority() -> None:
    # b0, busy at 2, is due again at 302, when 150 people of A have been called; a150 goes after it.
    trace = run(
        Sketch(1, start=START, sharing="priority", queue_limit=1, order="freshFirst")
        .campaign("A", *[BUSY] * 152)
        .campaign("B", BUSY, priority=1, **RETRY)
    )
    around = [entry for entry in dials(trace) if 298 <= int(entry.split()[0]) <= 308]
    # a149 and a150 were dialled and queued at 300; at 302 b0 comes into the queue behind a150.
    assert around == ["298 A 148.1", "300 A 149.1", "302 A 150.1", "304 B 0.2", "306 A 151.1"]


def test_q7_who_stands_in_the_queue_is_not_overtaken() -> None:
    # The example of the rule book: at 1 a0 is under way and a1 queued.
    trace = run(
        Sketch(1, start=START, sharing="priority", queue_limit=1)
        .campaign("A", *[BUSY] * 3)
        .campaign("B", *[BUSY] * 2, priority=1, requested=1)
    )
    assert order(*dials(trace)) == "A0 A1 B0 B1 A2"


def test_q7_equal_priorities_take_turns_and_each_priority_has_its_own_turn() -> None:
    # A and C, without a priority, take turns: a0, c0. B comes at 3, goes before a1, and takes
    # nothing of their turns: after b0 it is A's turn, as c0 was the last of theirs.
    trace = run(
        Sketch(1, start=START, sharing="priority", queue_limit=1)
        .campaign("A", *[BUSY] * 3)
        .campaign("B", BUSY, priority=7, requested=3)
        .campaign("C", *[BUSY] * 3)
    )
    assert order(*dials(trace)) == "A0 C0 A1 B0 C1 A2 C2"


def test_q7_without_any_priority_it_is_round_robin() -> None:
    traces = [
        run(
            Sketch(1, start=START, sharing=sharing)
            .campaign("A", *[BUSY] * 3)
            .campaign("B", *[BUSY] * 2)
        )
        for sharing in ("priority", "roundRobin")
    ]
    assert dials(traces[0]) == dials(traces[1])


# -- Q8 -------------------------------------------------------------------------------------------


def test_q8_the_weights_share_the_lines() -> None:
    # The example of the rule book: of four lines A has three, again after each minute.
    trace = run(
        Sketch(4, start=START, sharing="weighted")
        .campaign("A", *[TALK] * 6, weight=3)
        .campaign("B", *[TALK] * 2)
    )
    assert order(*dials(trace)) == "A0 A1 A2 B0 A3 A4 A5 B1"
    assert [entry.split()[0] for entry in dials(trace)] == ["0"] * 4 + ["60"] * 4


def test_q8_equal_shares_go_in_scenario_order() -> None:
    trace = run(
        Sketch(4, start=START, sharing="weighted", calls_per_second=1)
        .campaign("A", *[TALK] * 2, weight=2)
        .campaign("B", *[TALK] * 2, weight=2)
    )
    assert dials(trace) == ["0 A 0.1", "1 B 0.1", "2 A 1.1", "3 B 1.1"]


def test_q8_long_conversations_take_no_more_lines() -> None:
    # Three lines, weights 2 and 1. At 0: a0 at 1/2, a1 at 2/2, which is B's 1/1, and b0. B talks
    # four times as long and keeps its one line; A's two serve all people of A in the meantime.
    trace = run(
        Sketch(3, start=START, sharing="weighted", queue_limit=1)
        .campaign("A", *[TALK] * 6, weight=2)
        .campaign("B", *["answered 0s 238s"] * 2)
    )
    told = dials(trace)
    assert [entry for entry in told if " B " in entry] == ["0 B 0.1", "180 B 1.1"]
    assert order(*told[:3]) == "A0 A1 B0"


def test_q8_a_share_that_is_not_used_is_not_made_up_for() -> None:
    # A alone has both lines until B comes at 59; then they have one each, however much A had.
    trace = run(
        Sketch(2, start=START, sharing="weighted", queue_limit=1)
        .campaign("A", *[TALK] * 6)
        .campaign("B", *[TALK] * 3, requested=59)
    )
    told = dials(trace)
    assert told[:6] == ["0 A 0.1", "0 A 1.1", "60 A 2.1", "60 B 0.1", "120 A 3.1", "120 B 1.1"]


# -- Q9 -------------------------------------------------------------------------------------------


def test_q9_the_earliest_end_date_goes_first_and_none_at_all_last() -> None:
    trace = run(
        Sketch(1, start=START, sharing="deadline")
        .campaign("A", *[BUSY] * 2)
        .campaign("B", *[BUSY] * 2, end=3000)
        .campaign("C", *[BUSY] * 2, end=2999)
    )
    assert order(*dials(trace)) == "C0 C1 B0 B1 A0 A1"


def test_q9_equal_end_dates_go_in_scenario_order() -> None:
    one = Sketch(1, start=START, sharing="deadline")
    trace = run(one.campaign("A", *[BUSY] * 2).campaign("B", *[BUSY] * 2))
    assert order(*dials(trace)) == "A0 A1 B0 B1"
    trace = run(one.campaign("A", *[BUSY] * 2, end=100).campaign("B", *[BUSY] * 2, end=100))
    assert order(*dials(trace)) == "A0 A1 B0 B1"


# -- Q10 ------------------------------------------------------------------------------------------


def test_q10_a_campaign_never_has_more_lines_than_at_most() -> None:
    # Of three lines A has one, B the others; B is done at 60, and A still has one.
    trace = run(
        Sketch(3, start=START).campaign("A", *[TALK] * 3, at_most=1).campaign("B", *[TALK] * 2)
    )
    assert dials(trace) == ["0 A 0.1", "0 B 0.1", "0 B 1.1", "60 A 1.1", "120 A 2.1"]


def test_q10_whoever_has_no_line_waits_in_scheduled_and_does_not_time_out() -> None:
    # Two people and a line, a queue timeout of 10 s: without atMost the second one times out at 10.
    people = [TALK, TALK]
    free = run(
        Sketch(1, start=START, queue_timeout="10s").campaign("A", *people, retry_interval="5m")
    )
    assert dials(free) == ["0 A 0.1", "310 A 1.2"]
    capped = run(Sketch(1, start=START, queue_timeout="10s").campaign("A", *people, at_most=1))
    assert dials(capped) == ["0 A 0.1", "60 A 1.1"]


def test_q10_the_queue_of_the_others_does_not_dilute_a_share() -> None:
    # If B could fill the queue, A would have to wait for it at 60.
    trace = run(
        Sketch(4, start=START, sharing="fifo", queue_limit="unlimited")
        .campaign("A", *[TALK] * 4, at_most=2)
        .campaign("B", *[TALK] * 9)
    )
    assert order(*dials(trace)[:8]) == "A0 A1 B0 B1 A2 A3 B2 B3"


def test_q10_the_pace_is_kept_and_the_queue_waits_for_it() -> None:
    trace = run(
        Sketch(3, start=START, calls_per_second=0.5)
        .campaign("A", *[TALK] * 2, at_most=1)
        .campaign("B", *[TALK] * 2)
    )
    assert dials(trace) == ["0 A 0.1", "2 B 0.1", "4 B 1.1", "60 A 1.1"]


def test_q10_a_limit_that_is_raised_is_used_at_once_and_a_lowered_one_hangs_up_nobody() -> None:
    trace = run(
        Sketch(1, start=START)
        .campaign("A", *[TALK] * 4, at_most=3)
        .at(10, "setConcurrency", 3)
        .at(20, "setConcurrency", 1)
    )
    assert dials(trace) == ["0 A 0.1", "10 A 1.1", "10 A 2.1", "70 A 3.1"]


def test_q10_other_organizations_keep_their_queue() -> None:
    trace = run(
        Sketch(1, start=START, queue_timeout="10s")
        .campaign("A", TALK, TALK, at_most=1)
        .organization("Bravo", 1)
        .campaign("B", TALK, TALK, retry_interval="5m")
    )
    assert sorted(dials(trace)) == [
        "0 Acme/A 0.1",
        "0 Bravo/B 0.1",
        "310 Bravo/B 1.2",
        "60 Acme/A 1.1",
    ]


# -- Q11 ------------------------------------------------------------------------------------------


def test_q11_held_lines_stay_free_for_retries_and_no_more_than_people_are_left() -> None:
    # The example of the rule book: b1 is busy at 60 and due again at 360. A has the free line, and
    # the one that b0 gave back; the third stays free until b1 takes it.
    trace = run(
        Sketch(3, start=START)
        .campaign("A", *[TALK] * 30)
        .campaign("B", TALK, "busy 58s", reserved=2, **RETRY)
    )
    told = dials(trace)
    by_minute = {
        minute: sorted(e.split()[1] for e in told if int(e.split()[0]) // 60 == minute)
        for minute in range(8)
    }
    assert by_minute[0] == ["A", "B", "B"]
    assert all(by_minute[minute] == ["A", "A"] for minute in range(1, 6))
    assert by_minute[6] == ["A", "A", "B"]
    assert by_minute[7] == ["A", "A", "A"]
    assert "360 B 1.2" in told


def test_q11_a_campaign_shares_in_the_other_lines_beyond_those_reserved() -> None:
    trace = run(
        Sketch(4, start=START, calls_per_second=1)
        .campaign("A", *[TALK] * 9)
        .campaign("B", *[TALK] * 9, reserved=1)
    )
    assert order(*dials(trace)[:4]) == "A0 B0 A1 B1"


def test_q11_no_line_is_held_outside_the_windows() -> None:
    # B's window opens at 300 and closes at 600, with one recipient left who is busy every time.
    hours = "Mon 10:05-10:10"
    trace = run(
        Sketch(2, start=START)
        .campaign("A", *[TALK] * 40)
        .campaign("B", "busy 0s", reserved=1, windows=hours, max_attempts=9, retry_interval="1000s")
    )
    told = dials(trace)
    per_minute = [
        sum(e.split()[1] == "A" for e in told if int(e.split()[0]) // 60 == minute)
        for minute in range(12)
    ]
    assert per_minute == [2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 2, 2]


@pytest.mark.parametrize("action", ["pause", "cancel", "delete"])
def test_q11_a_campaign_that_does_not_run_lends_its_lines_at_once(action: str) -> None:
    trace = run(
        Sketch(2, start=START)
        .campaign("A", *[TALK] * 6)
        .campaign("B", "busy 0s", reserved=1, max_attempts=2, retry_interval="50m")
        .at(90, action, "B")
    )
    assert dials(trace)[:5] == ["0 A 0.1", "0 B 0.1", "60 A 1.1", "90 A 2.1", "120 A 3.1"]


def test_q11_an_end_date_gives_the_lines_back() -> None:
    trace = run(
        Sketch(2, start=START)
        .campaign("A", *[TALK] * 6)
        .campaign("B", "busy 0s", reserved=1, max_attempts=2, retry_interval="50m", end=90)
    )
    assert dials(trace)[:5] == ["0 A 0.1", "0 B 0.1", "60 A 1.1", "90 A 2.1", "120 A 3.1"]


def test_q11_lines_that_others_use_are_held_as_they_fall_free() -> None:
    # B comes at 30 and reserves both lines; A's calls finish at 60, and a2 waits until B is done.
    trace = run(
        Sketch(2, start=START)
        .campaign("A", *[TALK] * 3)
        .campaign("B", TALK, TALK, reserved=2, start=30)
    )
    assert dials(trace) == ["0 A 0.1", "0 A 1.1", "60 B 0.1", "60 B 1.1", "120 A 2.1"]


def test_q11_where_more_is_reserved_than_there_is_the_reserving_share_what_there_is() -> None:
    # From 30 on there is one line: B and C take turns with it, and A has none until both are done.
    trace = run(
        Sketch(2, start=START)
        .campaign("A", TALK, TALK)
        .campaign("B", TALK, TALK, reserved=1)
        .campaign("C", TALK, TALK, reserved=1)
        .at(30, "setConcurrency", 1)
    )
    told = dials(trace)
    assert order(*told[:2]) == "B0 C0"
    assert order(*told[2:]) == "B1 C1 A0 A1"
    assert [entry.split()[0] for entry in told] == ["0", "0", "60", "120", "180", "240"]
