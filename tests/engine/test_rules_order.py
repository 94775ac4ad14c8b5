"""Rules Q3 and Q4, each on a scenario worked out on paper (see `readings` and `rows`)."""

from __future__ import annotations

import pytest

from dialsim.testing import Sketch
from engine.readings import run
from engine.rows import START, calls, dials, lines

RETRY = {"max_attempts": 2, "retry_interval": "5m"}
BUSY = "busy 0s"  # holds the slot for the 2 s of the setup


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("due", ["500 A 3.1", "502 A 0.2", "504 A 2.2"]),
        ("freshFirst", ["500 A 3.1", "502 A 2.2", "504 A 0.2"]),
        ("retriesFirst", ["500 A 0.2", "502 A 3.1", "504 A 2.2"]),
    ],
)
def test_q3_order_inside_a_campaign(order: str, expected: list[str]) -> None:
    # 0 is BUSY at 2 (due 302, one attempt). 1 holds the slot from 2 to 404. 2, queued at 2, times
    # out at 7 (due 307, no attempt counted: still fresh). 3 is released at 7 and sent back by the
    # pause at 8 (due 0). When the pause is over, at 500, all three wait.
    trace = run(
        Sketch(1, start=START, order=order, queue_timeout="5s")
        .campaign("A", BUSY, "answered 0s 400s", BUSY, BUSY, **RETRY)
        .at(8, "pause", "A")
        .at(500, "resume", "A")
    )
    assert dials(trace)[2:5] == expected


def test_q3_equal_due_instants_go_in_upload_order() -> None:
    # Four end at 2 and are due again at 302; released then in upload order, one slot by now.
    trace = run(
        Sketch(4, start=START).campaign("A", *[BUSY] * 4, **RETRY).at(100, "setConcurrency", 1)
    )
    assert dials(trace)[4:] == ["302 A 0.2", "304 A 1.2", "306 A 2.2", "308 A 3.2"]


@pytest.mark.parametrize(
    ("sharing", "expected"),
    [("roundRobin", "A0 B0 A1 B1 A2"), ("fifo", "A0 A1 A2 B0 B1")],
)
def test_q3_between_campaigns(sharing: str, expected: str) -> None:
    for queue_limit in (1, 3, "unlimited"):
        trace = run(
            Sketch(1, start=START, sharing=sharing, queue_limit=queue_limit)
            .campaign("A", *[BUSY] * 3)
            .campaign("B", *[BUSY] * 2)
        )
        assert dials(trace) == [
            f"{2 * i} {who[0]} {who[1]}.1" for i, who in enumerate(expected.split())
        ]


def test_q3_round_robin_goes_on_after_the_campaign_released_from_last() -> None:
    # One slot, a queue of one. At 0: a0 is dialled, b0 queued, and B was released from last. At 2
    # b0 is dialled and C is next: c0. At 4, with D there since 3, d0 goes before a1.
    order = ["A 0.1", "B 0.1", "C 0.1", "D 0.1", "A 1.1", "B 1.1"]
    trace = run(
        Sketch(1, start=START)
        .campaign("A", *[BUSY] * 2)
        .campaign("B", *[BUSY] * 2)
        .campaign("C", BUSY)
        .campaign("D", BUSY, requested=3)
    )
    assert dials(trace) == [f"{2 * i} {who}" for i, who in enumerate(order)]


def test_q3_round_robin_skips_who_has_none_to_release_and_keeps_its_place() -> None:
    # b0 goes at 2 (released at 0, after a0); B is empty then. C comes at 100, when A was last.
    trace = run(
        Sketch(1, start=START)
        .campaign("A", *[BUSY] * 3)
        .campaign("B", BUSY)
        .campaign("C", BUSY, requested=100)
        .at(3, "pause", "A")
        .at(100, "resume", "A")
    )
    # At 2 a1 was released (after B comes A again), at 3 it goes back; at 100 C is next, then A.
    assert dials(trace)[2:] == ["100 C 0.1", "102 A 1.1", "104 A 2.1"]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("due", ["320 B 0.1", "322 A 0.2", "324 B 1.1"]),
        ("freshFirst", ["320 B 0.1", "322 B 1.1", "324 A 0.2"]),
        ("retriesFirst", ["320 A 0.2", "322 B 0.1", "324 B 1.1"]),
    ],
)
def test_q3_fifo_takes_the_class_then_the_due_instant(order: str, expected: list[str]) -> None:
    # A's retry is due at 302; B's first calls are due at 301 (one campaign) and 310 (another). No
    # slot from 100 to 320.
    trace = run(
        Sketch(1, start=START, sharing="fifo", order=order)
        .campaign("A", BUSY, **RETRY)
        .campaign("B", BUSY, start=301)
        .campaign("C", BUSY, start=310)
        .at(100, "setConcurrency", 0)
        .at(320, "setConcurrency", 1)
    )
    assert dials(trace)[1:4] == [row.replace("B 1.1", "C 0.1") for row in expected]


def test_q3_fifo_settles_ties_by_scenario_order_then_upload_order() -> None:
    # All are due at 0: A before B, although B's request was made first.
    none_until_9 = Sketch(0, start=START, sharing="fifo").at(9, "setConcurrency", 1)
    trace = run(none_until_9.campaign("A", BUSY, BUSY, requested=5).campaign("B", BUSY, BUSY))
    # …but A's people are due at 5, when it was requested.
    assert dials(trace) == ["9 B 0.1", "11 B 1.1", "13 A 0.1", "15 A 1.1"]
    trace = run(
        none_until_9.campaign("A", BUSY, BUSY, requested=5, start=8).campaign(
            "B", BUSY, BUSY, start=8
        )
    )
    assert dials(trace) == ["9 A 0.1", "11 A 1.1", "13 B 0.1", "15 B 1.1"]


@pytest.mark.parametrize(
    ("rate", "gap"),
    [(1, 1), (2, 0.5), (3, 0.334), (0.3, 3.334), (0.7, 1.429), (0.05, 20), (1000, 0.001)],
)
def test_q4_dials_are_at_least_a_rounded_up_gap_apart(rate: float, gap: float) -> None:
    trace = run(Sketch(3, start=START, calls_per_second=rate).campaign("A", *[BUSY] * 3))
    assert [float(row.split()[0]) for row in dials(trace)] == [0, gap, round(2 * gap, 3)]


def test_q4_the_pace_is_an_organizations_over_all_its_campaigns() -> None:
    trace = run(
        Sketch(9, start=START, calls_per_second=1)
        .campaign("A", BUSY)
        .campaign("B", BUSY)
        .organization("Bravo", 9)
        .campaign("A", BUSY)
        .campaign("B", BUSY)
    )
    assert dials(trace) == lines("""
        0 Acme/A 0.1
        0 Bravo/A 0.1
        1 Acme/B 0.1
        1 Bravo/B 0.1""")


def test_q4_calls_are_dialled_in_the_order_of_their_release() -> None:
    # B's person is released at 0, before A's second: the pause sends a1 to the end of the queue.
    trace = run(
        Sketch(1, start=START, queue_limit=5)
        .campaign("A", "busy 9s", BUSY)
        .campaign("B", BUSY)
        .at(1, "setConcurrency", 1)
        .at(5, "pause", "A")
        .at(6, "resume", "A")
    )
    assert dials(trace) == ["0 A 0.1", "11 B 0.1", "13 A 1.1"]


def test_q4_a_withdrawn_dial_counts_for_the_pace() -> None:
    # Dialled at 0, withdrawn and back in the queue at 1: two dials are 2 s apart.
    trace = run(
        Sketch(1, start=START, calls_per_second=0.5)
        .campaign("A", BUSY)
        .at(1, "pause", "A")
        .at(1, "resume", "A")
    )
    assert calls(trace)[3:] == lines("""
        1 0.1 INITIATED>SCHEDULED paused
        1 0.1 SCHEDULED>QUEUED released
        2 0.1 QUEUED>dialling dialled
        4 0.1 INITIATED>BUSY ended""")


def test_q4_the_pace_holds_back_even_where_slots_are_free_at_other_times() -> None:
    # One slot, calls of 2 s, a dial every 4 s: at 2 the slot is free but the pace isn't.
    trace = run(Sketch(1, start=START, calls_per_second=0.25).campaign("A", *[BUSY] * 3))
    assert [float(row.split()[0]) for row in dials(trace)] == [0, 4, 8]
