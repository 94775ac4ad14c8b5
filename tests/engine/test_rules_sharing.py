"""Rules Q7 to Q11, each on a scenario worked out on paper (see `paper` and `rows`)."""

from __future__ import annotations

import pytest

from engine.paper import Act, at, campaign, organization, run, scenario, service, windows
from engine.rows import dials

RETRY = {"maxAttempts": 2, "retryInterval": 300_000}
BUSY = "busy 0s"  # holds the line for the 2 s of the setup
TALK = "answered 0s 58s"  # holds it for a minute


def order(*told: str) -> str:
    """Who was dialled, one after the other: `A0 B0`."""
    return " ".join(f"{entry.split()[1]}{entry.split()[2].split('.')[0]}" for entry in told)


# -- Q7 -------------------------------------------------------------------------------------------


def test_q7_the_smallest_priority_goes_first_and_none_at_all_last() -> None:
    a, b = campaign("A", *[BUSY] * 2), campaign("B", *[BUSY] * 2, priority=2)
    c = campaign("C", *[BUSY] * 2, priority=1)
    trace = run(scenario(a, b, c, sharing="priority"))
    assert order(*dials(trace)) == "C0 C1 B0 B1 A0 A1"


def test_q7_retries_go_before_all_calls_of_a_lower_priority() -> None:
    # b0, busy at 2, is due again at 302, when 150 people of A have been called; a150 goes after it.
    a = campaign("A", *[BUSY] * 152)
    b = campaign("B", BUSY, priority=1, **RETRY)
    trace = run(scenario(a, b, sharing="priority", queueLimit=1, order="freshFirst"))
    around = [entry for entry in dials(trace) if 298 <= int(entry.split()[0]) <= 308]
    # a149 and a150 were dialled and queued at 300; at 302 b0 comes into the queue behind a150.
    assert around == ["298 A 148.1", "300 A 149.1", "302 A 150.1", "304 B 0.2", "306 A 151.1"]


def test_q7_who_stands_in_the_queue_is_not_overtaken() -> None:
    # The example of the rule book: at 1 a0 is under way and a1 queued.
    a = campaign("A", *[BUSY] * 3)
    b = campaign("B", *[BUSY] * 2, priority=1, requested=1)
    trace = run(scenario(a, b, sharing="priority", queueLimit=1))
    assert order(*dials(trace)) == "A0 A1 B0 B1 A2"


def test_q7_equal_priorities_take_turns_and_each_priority_has_its_own_turn() -> None:
    # A and C, without a priority, take turns: a0, c0. B comes at 3, goes before a1, and takes
    # nothing of their turns: after b0 it is A's turn, as c0 was the last of theirs.
    a, c = campaign("A", *[BUSY] * 3), campaign("C", *[BUSY] * 3)
    b = campaign("B", BUSY, priority=7, requested=3)
    trace = run(scenario(a, b, c, sharing="priority", queueLimit=1))
    assert order(*dials(trace)) == "A0 C0 A1 B0 C1 A2 C2"


def test_q7_without_any_priority_it_is_round_robin() -> None:
    a, b = campaign("A", *[BUSY] * 3), campaign("B", *[BUSY] * 2)
    traces = [run(scenario(a, b, sharing=sharing)) for sharing in ("priority", "roundRobin")]
    assert dials(traces[0]) == dials(traces[1])


# -- Q8 -------------------------------------------------------------------------------------------


def test_q8_the_weights_share_the_lines() -> None:
    # The example of the rule book: of four lines A has three, again after each minute.
    a, b = campaign("A", *[TALK] * 6, weight=3), campaign("B", *[TALK] * 2)
    trace = run(scenario(a, b, limit=4, sharing="weighted"))
    assert order(*dials(trace)) == "A0 A1 A2 B0 A3 A4 A5 B1"
    assert [entry.split()[0] for entry in dials(trace)] == ["0"] * 4 + ["60"] * 4


def test_q8_equal_shares_go_in_scenario_order() -> None:
    a, b = campaign("A", *[TALK] * 2, weight=2), campaign("B", *[TALK] * 2, weight=2)
    trace = run(scenario(a, b, limit=4, sharing="weighted", callsPerSecond=1))
    assert dials(trace) == ["0 A 0.1", "1 B 0.1", "2 A 1.1", "3 B 1.1"]


def test_q8_long_conversations_take_no_more_lines() -> None:
    # Three lines, weights 2 and 1. At 0: a0 at 1/2, a1 at 2/2, which is B's 1/1, and b0. B talks
    # four times as long, and keeps its one line; A's two serve everybody of A in the meantime.
    a, b = campaign("A", *[TALK] * 6, weight=2), campaign("B", *["answered 0s 238s"] * 2)
    trace = run(scenario(a, b, limit=3, sharing="weighted", queueLimit=1))
    told = dials(trace)
    assert [entry for entry in told if " B " in entry] == ["0 B 0.1", "180 B 1.1"]
    assert order(*told[:3]) == "A0 A1 B0"


def test_q8_a_share_that_is_not_used_is_not_made_up_for() -> None:
    # A alone has both lines until B comes at 59; then they have one each, however much A had.
    a, b = campaign("A", *[TALK] * 6), campaign("B", *[TALK] * 3, requested=59)
    trace = run(scenario(a, b, limit=2, sharing="weighted", queueLimit=1))
    told = dials(trace)
    assert told[:6] == ["0 A 0.1", "0 A 1.1", "60 A 2.1", "60 B 0.1", "120 A 3.1", "120 B 1.1"]


# -- Q9 -------------------------------------------------------------------------------------------


def test_q9_the_earliest_end_date_goes_first_and_none_at_all_last() -> None:
    a, b = campaign("A", *[BUSY] * 2), campaign("B", *[BUSY] * 2, endDateTime=at(3000))
    c = campaign("C", *[BUSY] * 2, endDateTime=at(2999))
    trace = run(scenario(a, b, c, sharing="deadline"))
    assert order(*dials(trace)) == "C0 C1 B0 B1 A0 A1"


def test_q9_equal_end_dates_go_in_scenario_order() -> None:
    a, b = campaign("A", *[BUSY] * 2), campaign("B", *[BUSY] * 2)
    trace = run(scenario(a, b, sharing="deadline"))
    assert order(*dials(trace)) == "A0 A1 B0 B1"
    ends = {"endDateTime": at(100)}
    a, b = campaign("A", *[BUSY] * 2, **ends), campaign("B", *[BUSY] * 2, **ends)
    trace = run(scenario(a, b, sharing="deadline"))
    assert order(*dials(trace)) == "A0 A1 B0 B1"


# -- Q10 ------------------------------------------------------------------------------------------


def test_q10_a_campaign_never_has_more_lines_than_at_most() -> None:
    # Of three lines A has one, B the others; B is done at 60, and A still has one.
    a, b = campaign("A", *[TALK] * 3, at_most=1), campaign("B", *[TALK] * 2)
    trace = run(scenario(a, b, limit=3))
    assert dials(trace) == ["0 A 0.1", "0 B 0.1", "0 B 1.1", "60 A 1.1", "120 A 2.1"]


def test_q10_whoever_has_no_line_waits_in_scheduled_and_does_not_time_out() -> None:
    # Two people and a line, a queue timeout of 10 s: without atMost the second one times out at 10.
    people = [TALK, TALK]
    free = run(scenario(campaign("A", *people, retryInterval=300_000), queueTimeout="10s"))
    assert dials(free) == ["0 A 0.1", "310 A 1.2"]
    capped = run(scenario(campaign("A", *people, at_most=1), queueTimeout="10s"))
    assert dials(capped) == ["0 A 0.1", "60 A 1.1"]


def test_q10_the_queue_of_the_others_does_not_dilute_a_share() -> None:
    # If B could fill the queue, A would have to wait behind it at 60.
    a, b = campaign("A", *[TALK] * 4, at_most=2), campaign("B", *[TALK] * 9)
    told = dials(run(scenario(a, b, limit=4, sharing="fifo", queueLimit="unlimited")))
    assert order(*told[:8]) == "A0 A1 B0 B1 A2 A3 B2 B3"


def test_q10_the_pace_is_kept_and_the_queue_waits_for_it() -> None:
    a, b = campaign("A", *[TALK] * 2, at_most=1), campaign("B", *[TALK] * 2)
    trace = run(scenario(a, b, limit=3, callsPerSecond=0.5))
    assert dials(trace) == ["0 A 0.1", "2 B 0.1", "4 B 1.1", "60 A 1.1"]


def test_q10_a_limit_that_is_raised_is_used_at_once_and_a_lowered_one_hangs_up_nobody() -> None:
    acts: list[Act] = [(10, "setConcurrency", 3), (20, "setConcurrency", 1)]
    trace = run(scenario(campaign("A", *[TALK] * 4, at_most=3), limit=1, timeline=acts))
    assert dials(trace) == ["0 A 0.1", "10 A 1.1", "10 A 2.1", "70 A 3.1"]


def test_q10_other_organizations_keep_their_queue() -> None:
    capped = organization("Acme", campaign("A", TALK, TALK, at_most=1))
    other = organization("Bravo", campaign("B", TALK, TALK, retryInterval=300_000))
    trace = run(service(capped, other, queueTimeout="10s"))
    assert sorted(dials(trace)) == [
        "0 Acme/A 0.1",
        "0 Bravo/B 0.1",
        "310 Bravo/B 1.2",
        "60 Acme/A 1.1",
    ]


# -- Q11 ------------------------------------------------------------------------------------------


def test_q11_held_lines_stay_free_for_retries_and_no_more_than_people_are_left() -> None:
    # The example of the rule book: b1 is busy at 60 and due again at 360. A has the line that
    # nobody holds, and the one that b0 gave back; the third stays free until b1 takes it.
    a = campaign("A", *[TALK] * 30)
    b = campaign("B", TALK, "busy 58s", reserved=2, **RETRY)
    told = dials(run(scenario(a, b, limit=3)))
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
    a, b = campaign("A", *[TALK] * 9), campaign("B", *[TALK] * 9, reserved=1)
    trace = run(scenario(a, b, limit=4, callsPerSecond=1))
    assert order(*dials(trace)[:4]) == "A0 B0 A1 B1"


def test_q11_no_line_is_held_outside_the_windows() -> None:
    # B's window opens at 300 and closes at 600, with somebody left who is busy every time.
    a = campaign("A", *[TALK] * 40)
    hours = windows("10:05-10:10")
    b = campaign("B", "busy 0s", reserved=1, timeWindows=hours, maxAttempts=9,
                 retryInterval=1_000_000)  # fmt: skip
    told = dials(run(scenario(a, b, limit=2)))
    per_minute = [
        sum(e.split()[1] == "A" for e in told if int(e.split()[0]) // 60 == minute)
        for minute in range(12)
    ]
    assert per_minute == [2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 2, 2]


@pytest.mark.parametrize("action", ["pause", "cancel", "delete"])
def test_q11_a_campaign_that_does_not_run_lends_its_lines_at_once(action: str) -> None:
    a = campaign("A", *[TALK] * 6)
    b = campaign("B", "busy 0s", reserved=1, maxAttempts=2, retryInterval=3_000_000)
    trace = run(scenario(a, b, limit=2, timeline=[(90, action, "B")]))
    assert dials(trace)[:5] == ["0 A 0.1", "0 B 0.1", "60 A 1.1", "90 A 2.1", "120 A 3.1"]


def test_q11_an_end_date_gives_the_lines_back() -> None:
    a = campaign("A", *[TALK] * 6)
    b = campaign("B", "busy 0s", reserved=1, maxAttempts=2, retryInterval=3_000_000,
                 endDateTime=at(90))  # fmt: skip
    trace = run(scenario(a, b, limit=2))
    assert dials(trace)[:5] == ["0 A 0.1", "0 B 0.1", "60 A 1.1", "90 A 2.1", "120 A 3.1"]


def test_q11_lines_that_others_use_are_held_as_they_fall_free() -> None:
    # B comes at 30 and reserves both lines; A's calls finish at 60, and a2 waits until B is done.
    a, b = campaign("A", *[TALK] * 3), campaign("B", TALK, TALK, reserved=2, startDateTime=at(30))
    trace = run(scenario(a, b, limit=2))
    assert dials(trace) == ["0 A 0.1", "0 A 1.1", "60 B 0.1", "60 B 1.1", "120 A 2.1"]


def test_q11_where_more_is_reserved_than_there_is_the_reserving_share_what_there_is() -> None:
    # From 30 on there is one line: B and C take turns with it, and A has none until both are done.
    a = campaign("A", TALK, TALK)
    b, c = campaign("B", TALK, TALK, reserved=1), campaign("C", TALK, TALK, reserved=1)
    trace = run(scenario(a, b, c, limit=2, timeline=[(30, "setConcurrency", 1)]))
    told = dials(trace)
    assert order(*told[:2]) == "B0 C0"
    assert order(*told[2:]) == "B1 C1 A0 A1"
    assert [entry.split()[0] for entry in told] == ["0", "0", "60", "120", "180", "240"]
