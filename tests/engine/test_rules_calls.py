"""Rules P, R and what a trace shows of F, each on a scenario worked out on paper."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from dialsim.testing import Sketch
from dialsim.testing.sketch import NUMBERS
from engine.readings import run
from engine.rows import START, WEEK_S, ZERO, calls, dials, life, lines, numbers, rows

RETRY = {"max_attempts": 2, "retry_interval": "5m"}
ACCOUNT, ITS_NUMBER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


def ends(trace: Any) -> list[str]:
    return [row for row in calls(trace) if row.endswith("ended")]


def test_p1_a_call_is_set_up_rings_and_is_answered() -> None:
    trace = run(Sketch(1, start=START).campaign("A", "answered 5s 90s"))
    assert calls(trace) == lines("""
        0 0.1 new>SCHEDULED scheduled
        0 0.1 SCHEDULED>QUEUED released
        0 0.1 QUEUED>dialling dialled
        2 0.1 INITIATED>ringing ringing
        7 0.1 INITIATED>talking answered
        97 0.1 INITIATED>COMPLETED ended""")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("answered 0s 0s", ["2 INITIATED>talking answered", "2 INITIATED>COMPLETED ended"]),
        ("answered 0s 1ms", ["2 INITIATED>talking answered", "2.001 INITIATED>COMPLETED ended"]),
        (
            "answered 1s 0s",
            [
                "2 INITIATED>ringing ringing",
                "3 INITIATED>talking answered",
                "3 INITIATED>COMPLETED ended",
            ],
        ),
        ("noAnswer 0s", ["2 INITIATED>NO_ANSWER ended"]),
        ("busy 0s", ["2 INITIATED>BUSY ended"]),
        ("failed 0s", ["2 INITIATED>FAILED ended"]),
        ("failed 1ms", ["2 INITIATED>ringing ringing", "2.001 INITIATED>FAILED ended"]),
    ],
)
def test_p1_what_takes_no_time_happens_in_the_same_instant(
    script: str, expected: list[str]
) -> None:
    # A phone that does not ring has no row for ringing, but one for the answer.
    trace = run(Sketch(1, start=START).campaign("A", script))
    assert [row.replace(" 0.1 ", " ") for row in calls(trace)[3:]] == expected


def test_p1_a_chain_of_calls_without_ringing_or_talk_lasts_as_long_as_its_setups() -> None:
    written = Sketch(1, start=START, setup_time="1ms").campaign("A", *["answered 0s 0s"] * 4)
    assert dials(run(written)) == ["0 A 0.1", "0.001 A 1.1", "0.002 A 2.1", "0.003 A 3.1"]


def test_p2_each_kind_of_end_has_its_status() -> None:
    trace = run(
        Sketch(4, start=START).campaign(
            "A", "answered 1s 4s", "noAnswer 3s", "busy 1s", "failed 2s"
        )
    )
    assert sorted(ends(trace)) == lines("""
        3 2.1 INITIATED>BUSY ended
        4 3.1 INITIATED>FAILED ended
        5 1.1 INITIATED>NO_ANSWER ended
        7 0.1 INITIATED>COMPLETED ended""")


def test_p3_one_number_is_shown_by_every_call() -> None:
    trace = run(
        Sketch(5, start=START).campaign("A", *["busy 0s"] * 5, caller_ids=[NUMBERS[1]], **RETRY)
    )
    assert [number for _, number in numbers(trace)] == [NUMBERS[1]] * 10


def test_p3_a_retry_avoids_the_number_of_the_call_before() -> None:
    trace = run(
        Sketch(40, start=START).campaign(
            "A", *["busy 0s"] * 40, caller_ids=NUMBERS, max_attempts=4, retry_interval="5m"
        )
    )
    by_person: dict[str, list[str | None]] = {}
    for call, number in numbers(trace):
        by_person.setdefault(call.split(".")[0], []).append(number)
    assert all(len(chosen) == 4 for chosen in by_person.values())
    assert all(a != b for chosen in by_person.values() for a, b in pairwise(chosen))
    assert {chosen[0] for chosen in by_person.values()} == set(NUMBERS)
    # A number used two calls ago is free again.
    assert any(chosen[0] == chosen[2] for chosen in by_person.values())


def test_p3_with_two_numbers_a_person_hears_from_both_in_turn() -> None:
    shown = [NUMBERS[0], NUMBERS[1], NUMBERS[0]]
    trace = run(
        Sketch(1, start=START).campaign(
            "A", "busy 0s", caller_ids=shown, max_attempts=3, retry_interval="5m"
        )
    )
    first, second, third = (number for _, number in numbers(trace))
    assert first == third != second


def test_p3_the_number_is_the_requests_the_agents_or_the_shared_one() -> None:
    plain = Sketch(1, start=START)
    agents = plain.agent(caller_id=NUMBERS[2])
    sip = [{"id": ACCOUNT, "callerIds": [{"id": ITS_NUMBER, "number": "029999999"}]}]
    account = agents.having(sip_accounts=sip)
    legacy = {"sip_account_id": ACCOUNT, "sip_caller_id": ITS_NUMBER}
    cases: list[tuple[Sketch, dict[str, Any], str]] = [
        (account, {"caller_ids": [NUMBERS[0]], **legacy}, NUMBERS[0]),
        (account, legacy, "029999999"),
        (account, {"sip_account_id": ACCOUNT}, NUMBERS[2]),
        (agents, {}, NUMBERS[2]),
        (plain, {}, "020000000"),
    ]
    for sketch, body, expected in cases:
        assert numbers(run(sketch.campaign("A", "busy 0s", **body))) == [("0.1", expected)]


def voices(sketch: Sketch, **body: Any) -> list[str | None]:
    """The voices of a campaign's calls to 60 people."""
    trace = run(sketch.campaign("A", *["busy 0s"] * 60, **body))
    return [row.voice for row in rows(trace) if row.change.cause == "dialled"]


def test_p4_the_voice_is_the_requests_at_random_or_the_agents() -> None:
    plain = Sketch(60, start=START)
    kanya = plain.agent(voice_key="kanya")
    assert voices(plain) == [None] * 60
    assert voices(kanya) == ["kanya"] * 60
    assert voices(kanya, tts_voice_keys=["narin"]) == ["narin"] * 60
    chosen = voices(kanya, tts_voice_keys=["narin", "malee"])
    assert set(chosen) == {"narin", "malee"}
    assert abs(chosen.count("malee") - 30) < 4 * 15**0.5


def test_p5_the_step_of_the_script_is_the_attempts_number_queue_timeouts_apart() -> None:
    # Person 1 times out twice (10 and 20) and is dialled at 22 for its first attempt.
    trace = run(
        Sketch(1, start=START, queue_timeout="10s").campaign(
            "A", "busy 20s", "noAnswer 1s; busy 0s; failed 0s"
        )
    )
    assert ends(trace)[-1] == "25 1.3 INITIATED>NO_ANSWER ended"


def test_p5_a_withdrawn_dial_counts_as_no_attempt_and_for_no_number() -> None:
    # maxAttempts 2 with two numbers: a dial withdrawn at 1, then two counted ones, whose numbers
    # differ. Were the withdrawn one the call before, the redial would have to change its number.
    trace = run(
        Sketch(8, start=START)
        .campaign("A", *["busy 0s; failed 0s"] * 8, caller_ids=NUMBERS[:2], **RETRY)
        .at(1, "pause", "A")
        .at(10, "resume", "A")
    )
    chosen = [number for _, number in numbers(trace)]
    assert chosen[:8] == chosen[8:16]
    assert all(a != b for a, b in zip(chosen[8:16], chosen[16:], strict=True))
    assert [row.split(maxsplit=1)[1] for row in ends(trace)] == [
        *(f"{person}.1 INITIATED>BUSY ended" for person in range(8)),
        *(f"{person}.2 INITIATED>FAILED ended" for person in range(8)),
    ]


@pytest.mark.parametrize(("withdrawn", "answer"), [(True, 5), (False, 0)])
def test_p5_a_withdrawn_dial_tires_no_number(withdrawn: bool, answer: int) -> None:
    # Each dial of the number halves the odds of an answer, which are 1,000,000 to 1 at first. A's
    # hundred dials leave nothing of them, unless the pause at 1 takes them back. B's five follow.
    sketch = (
        Sketch(100, start=START)
        .behaviour(
            "default",
            outcomes={"answered": 0.999999, "busy": 0.000001},
            answered_odds={"byCallerIdUse": {"per1000": 2.0**-1000, "recovery": "1d"}},
        )
        .campaign("A", *["busy 0s"] * 100)
        .campaign("B", recipients={"count": 5}, requested=10)
    )
    found = calls(run(sketch.at(1, "pause", "A") if withdrawn else sketch), "B")
    assert sum("INITIATED>COMPLETED" in row for row in found) == answer
    assert sum("INITIATED>BUSY" in row for row in found) == 5 - answer


@pytest.mark.parametrize("end", ["noAnswer 1s", "busy 1s", "failed 1s"])
def test_r1_whoever_was_not_reached_is_called_again_up_to_max_attempts(end: str) -> None:
    trace = run(Sketch(1, start=START).campaign("A", end, max_attempts=3, retry_interval="5m"))
    # 2 s setup and 1 s of ringing: ends at 3, 306, 609.
    assert dials(trace) == ["0 A 0.1", "303 A 0.2", "606 A 0.3"]
    assert life(trace)[-1] == "609 A RUNNING>COMPLETED all_final"


def test_r1_the_interfaces_default_is_one_attempt() -> None:
    assert dials(run(Sketch(1, start=START).campaign("A", "busy 0s"))) == ["0 A 0.1"]


def test_r1_a_person_may_have_more_calls_than_attempts() -> None:
    trace = run(
        Sketch(1, start=START, queue_timeout="10s").campaign("A", "busy 20s", "busy 1s", **RETRY)
    )
    # Person 1: lost at 10, back at 310 for its first attempt, over at 313, the second at 613.
    assert [row for row in dials(trace) if " 1." in row] == ["310 A 1.2", "613 A 1.3"]


def test_r2_a_retry_is_created_at_its_due_instant_even_while_the_window_is_closed() -> None:
    trace = run(
        Sketch(1, start=START).campaign("A", "busy 10s", **RETRY, windows="Mon 10:00-10:05")
    )
    assert calls(trace)[4:7] == [
        "12 0.1 INITIATED>BUSY ended",
        "312 0.2 new>SCHEDULED retry",
        f"{WEEK_S} 0.2 SCHEDULED>QUEUED released",
    ]


def test_r2_the_default_wait_is_an_hour() -> None:
    trace = run(
        Sketch(1, start=START).campaign("A", "busy 0s", max_attempts=2, windows="Mon 10:00-12:00")
    )
    assert dials(trace) == ["0 A 0.1", "3602 A 0.2"]


def test_r2_without_a_wait_the_new_call_comes_in_the_same_instant() -> None:
    trace = run(Sketch(1, start=START, queue_timeout="1s").campaign("A", "busy 3s", "busy 0s"))
    assert [row for row in calls(trace) if row.startswith("1 ")] == lines("""
        1 1.1 QUEUED>CANCELLED queue_timeout
        1 1.2 new>SCHEDULED retry
        1 1.2 SCHEDULED>QUEUED released""")


def test_r3_whoever_was_reached_is_not_called_again() -> None:
    trace = run(
        Sketch(2, start=START).campaign(
            "A",
            "answered 0s 0s",
            "busy 0s; answered 1s 1s; busy 0s",
            max_attempts=5,
            retry_interval="5m",
        )
    )
    assert dials(trace) == ["0 A 0.1", "0 A 1.1", "302 A 1.2"]
    assert life(trace)[-1] == "306 A RUNNING>COMPLETED all_final"


def test_r3_reached_in_one_campaign_is_not_reached_in_another() -> None:
    same = "answered 0s 0s"
    trace = run(Sketch(1, start=START).campaign("A", same).campaign("B", same))
    assert dials(trace) == ["0 A 0.1", "2 B 0.1"]


def test_f3_the_effective_schedule_has_its_start_and_the_defaults_filled_in() -> None:
    trace = run(
        Sketch(0, start=START, end=9).campaign(
            "A", "busy 0s", requested=5, start=-60, time_windows=None, max_attempts=2
        )
    )
    made = trace.requests[0, 0]
    assert made.start_at == made.at == ZERO + 5_000
    assert (made.request.max_attempts, made.request.retry_interval) == (2, 3_600_000)
    hours = [(w.day_of_week, w.time[0].start, w.time[0].end) for w in made.request.time_windows]
    assert hours == [(day, "09:00" if day < 6 else "10:00", "19:00") for day in range(1, 8)]


def test_f3_a_request_by_the_timeline_is_remembered_as_it_was_made() -> None:
    trace = run(
        Sketch(1, start=START)
        .campaign("A", "busy 0s", requested=None)
        .at(20, "schedule", "A", start=30, max_attempts=1)
    )
    made = trace.requests[0, 0]
    assert (made.start_at - made.at, made.request.retry_interval) == (10_000, 0)


def test_set_behaviour_holds_for_dials_from_then_on() -> None:
    # Setup 2 s, from 1 on 5 s; the line being set up at 1 goes on as it was.
    trace = run(
        Sketch(1, start=START)
        .behaviour("slow", setup_time="5s")
        .campaign("A", "busy 0s", "busy 0s")
        .at(1, "setBehaviour", "slow")
    )
    assert ends(trace) == ["2 0.1 INITIATED>BUSY ended", "7 1.1 INITIATED>BUSY ended"]
    assert [row.behaviour for row in rows(trace) if row.change.cause == "dialled"] == [
        "default",
        "slow",
    ]


def test_set_behaviour_concerns_the_agents_campaigns_only() -> None:
    trace = run(
        Sketch(2, start=START)
        .behaviour("slow", setup_time="5s")
        .campaign("A", "busy 0s")
        .campaign("B", "busy 0s", agent="Other")
        .at(0, "setBehaviour", "slow")
    )
    assert ends(trace) == ["5 0.1 INITIATED>BUSY ended"]
    assert calls(trace, "B")[-1] == "2 0.1 INITIATED>BUSY ended"
