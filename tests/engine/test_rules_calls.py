"""Rules P, R and what a trace shows of F, each on a scenario worked out on paper."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from engine.paper import (
    NUMBERS,
    WEEK_S,
    Act,
    at,
    campaign,
    organization,
    request,
    run,
    scenario,
    service,
)
from engine.paper import windows as week
from engine.rows import calls, dials, life, lines, numbers, rows

RETRY = {"maxAttempts": 2, "retryInterval": 300_000}
ACCOUNT, ITS_NUMBER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


def ends(trace: Any) -> list[str]:
    return [row for row in calls(trace) if row.endswith("ended")]


def test_p1_a_call_is_set_up_rings_and_is_answered() -> None:
    trace = run(scenario(campaign("A", "answered 5s 90s")))
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
    # Where the phone does not ring there is no row for it, but there is one for the answer.
    trace = run(scenario(campaign("A", script)))
    assert [row.replace(" 0.1 ", " ") for row in calls(trace)[3:]] == expected


def test_p1_a_chain_of_calls_without_ringing_or_talk_lasts_as_long_as_its_setups() -> None:
    written = scenario(campaign("A", *["answered 0s 0s"] * 4), setup_time="1ms")
    assert dials(run(written)) == ["0 A 0.1", "0.001 A 1.1", "0.002 A 2.1", "0.003 A 3.1"]


def test_p2_each_kind_of_end_has_its_status() -> None:
    trace = run(
        scenario(campaign("A", "answered 1s 4s", "noAnswer 3s", "busy 1s", "failed 2s"), limit=4)
    )
    assert sorted(ends(trace)) == lines("""
        3 2.1 INITIATED>BUSY ended
        4 3.1 INITIATED>FAILED ended
        5 1.1 INITIATED>NO_ANSWER ended
        7 0.1 INITIATED>COMPLETED ended""")


def shown(body: dict[str, Any], *scripts: str, **account: Any) -> list[tuple[str, str | None]]:
    """The numbers that the calls of one campaign show."""
    acme = organization("Acme", campaign("A", *scripts, **body), limit=len(scripts), **account)
    return numbers(run(service(acme)))


def test_p3_one_number_is_shown_by_every_call() -> None:
    found = shown({"callerIds": [NUMBERS[1]], **RETRY}, *["busy 0s"] * 5)
    assert [number for _, number in found] == [NUMBERS[1]] * 10


def test_p3_a_retry_avoids_the_number_of_the_call_before() -> None:
    body = {"callerIds": list(NUMBERS), "maxAttempts": 4, "retryInterval": 300_000}
    found = shown(body, *["busy 0s"] * 40)
    by_person: dict[str, list[str | None]] = {}
    for call, number in found:
        by_person.setdefault(call.split(".")[0], []).append(number)
    assert all(len(chosen) == 4 for chosen in by_person.values())
    assert all(a != b for chosen in by_person.values() for a, b in pairwise(chosen))
    assert {chosen[0] for chosen in by_person.values()} == set(NUMBERS)
    # A number used two calls ago is free again.
    assert any(chosen[0] == chosen[2] for chosen in by_person.values())


def test_p3_with_two_numbers_a_person_hears_from_both_in_turn() -> None:
    body = {
        "callerIds": [NUMBERS[0], NUMBERS[1], NUMBERS[0]],
        "maxAttempts": 3,
        "retryInterval": 300_000,
    }
    first, second, third = (number for _, number in shown(body, "busy 0s"))
    assert first == third != second


def test_p3_the_number_is_the_requests_the_agents_or_the_shared_one() -> None:
    sip = [{"id": ACCOUNT, "callerIds": [{"id": ITS_NUMBER, "number": "029999999"}]}]
    legacy = {"sipAccountId": ACCOUNT, "sipCallerId": ITS_NUMBER}
    agents = [{"name": "Agent", "callerId": NUMBERS[2]}]
    cases: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({"callerIds": [NUMBERS[0]], **legacy}, {"sipAccounts": sip, "agents": agents}, NUMBERS[0]),
        (legacy, {"sipAccounts": sip, "agents": agents}, "029999999"),
        ({"sipAccountId": ACCOUNT}, {"sipAccounts": sip, "agents": agents}, NUMBERS[2]),
        ({}, {"agents": agents}, NUMBERS[2]),
        ({}, {}, "020000000"),
    ]
    for body, account, expected in cases:
        assert shown(body, "busy 0s", **account) == [("0.1", expected)]


def voices(body: dict[str, Any], agent: dict[str, Any]) -> list[str | None]:
    agents = [{"name": "Agent", **agent}]
    acme = organization("Acme", campaign("A", *["busy 0s"] * 60, **body), limit=60, agents=agents)
    return [row.voice for row in rows(run(service(acme))) if row.change.cause == "dialled"]


def test_p4_the_voice_is_the_requests_at_random_or_the_agents() -> None:
    assert voices({}, {}) == [None] * 60
    assert voices({}, {"voiceKey": "kanya"}) == ["kanya"] * 60
    assert voices({"ttsVoiceKeys": ["narin"]}, {"voiceKey": "kanya"}) == ["narin"] * 60
    chosen = voices({"ttsVoiceKeys": ["narin", "malee"]}, {"voiceKey": "kanya"})
    assert set(chosen) == {"narin", "malee"}
    assert abs(chosen.count("malee") - 30) < 4 * 15**0.5


def test_p5_the_step_of_the_script_is_the_attempts_number_queue_timeouts_apart() -> None:
    # Person 1 times out twice (10 and 20) and is dialled at 22 for its first attempt.
    a = campaign("A", "busy 20s", "noAnswer 1s; busy 0s; failed 0s")
    trace = run(scenario(a, queueTimeout="10s"))
    assert ends(trace)[-1] == "25 1.3 INITIATED>NO_ANSWER ended"


def test_p5_a_withdrawn_dial_counts_as_no_attempt_and_for_no_number() -> None:
    # maxAttempts 2 with two numbers: a dial withdrawn at 1, then two counted ones, whose numbers
    # differ. Were the withdrawn one the call before, the redial would have to change its number.
    acts: list[Act] = [(1, "pause", "A"), (10, "resume", "A")]
    a = campaign("A", *["busy 0s; failed 0s"] * 8, callerIds=list(NUMBERS[:2]), **RETRY)
    trace = run(scenario(a, limit=8, timeline=acts))
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
    a = campaign("A", *["busy 0s"] * 100)
    b = campaign("B", recipients={"count": 5}, requested=10)
    acts: list[Act] = [(1, "pause", "A")] if withdrawn else []
    written = scenario(a, b, limit=100, timeline=acts).behaviour(
        "default",
        outcomes={"answered": 0.999999, "busy": 0.000001},
        answered_odds={"byCallerIdUse": {"per1000": 2.0**-1000, "recovery": "1d"}},
    )
    found = calls(run(written), "B")
    assert sum("INITIATED>COMPLETED" in row for row in found) == answer
    assert sum("INITIATED>BUSY" in row for row in found) == 5 - answer


@pytest.mark.parametrize("end", ["noAnswer 1s", "busy 1s", "failed 1s"])
def test_r1_whoever_was_not_reached_is_called_again_up_to_max_attempts(end: str) -> None:
    trace = run(scenario(campaign("A", end, maxAttempts=3, retryInterval=300_000)))
    # 2 s setup and 1 s of ringing: ends at 3, 306, 609.
    assert dials(trace) == ["0 A 0.1", "303 A 0.2", "606 A 0.3"]
    assert life(trace)[-1] == "609 A RUNNING>COMPLETED all_final"


def test_r1_the_interfaces_default_is_one_attempt() -> None:
    assert dials(run(scenario(campaign("A", "busy 0s")))) == ["0 A 0.1"]


def test_r1_a_person_may_have_more_calls_than_attempts() -> None:
    a = campaign("A", "busy 20s", "busy 1s", **RETRY)
    trace = run(scenario(a, queueTimeout="10s"))
    # Person 1: lost at 10, back at 310 for its first attempt, over at 313, the second at 613.
    assert [row for row in dials(trace) if " 1." in row] == ["310 A 1.2", "613 A 1.3"]


def test_r2_a_retry_is_created_at_its_due_instant_even_while_the_window_is_closed() -> None:
    body = {**RETRY, "timeWindows": week("10:00-10:05")}
    trace = run(scenario(campaign("A", "busy 10s", **body)))
    assert calls(trace)[4:7] == [
        "12 0.1 INITIATED>BUSY ended",
        "312 0.2 new>SCHEDULED retry",
        f"{WEEK_S} 0.2 SCHEDULED>QUEUED released",
    ]


def test_r2_the_default_wait_is_an_hour() -> None:
    body = {"maxAttempts": 2, "timeWindows": week("10:00-12:00")}
    trace = run(scenario(campaign("A", "busy 0s", **body)))
    assert dials(trace) == ["0 A 0.1", "3602 A 0.2"]


def test_r2_without_a_wait_the_new_call_comes_in_the_same_instant() -> None:
    trace = run(scenario(campaign("A", "busy 3s", "busy 0s"), queueTimeout="1s"))
    assert [row for row in calls(trace) if row.startswith("1 ")] == lines("""
        1 1.1 QUEUED>CANCELLED queue_timeout
        1 1.2 new>SCHEDULED retry
        1 1.2 SCHEDULED>QUEUED released""")


def test_r3_whoever_was_reached_is_not_called_again() -> None:
    a = campaign("A", "answered 0s 0s", "busy 0s; answered 1s 1s; busy 0s", maxAttempts=5,
                 retryInterval=300_000)  # fmt: skip
    trace = run(scenario(a, limit=2))
    assert dials(trace) == ["0 A 0.1", "0 A 1.1", "302 A 1.2"]
    assert life(trace)[-1] == "306 A RUNNING>COMPLETED all_final"


def test_r3_reached_in_one_campaign_is_not_reached_in_another() -> None:
    same = ("answered 0s 0s",)
    assert dials(run(scenario(campaign("A", *same), campaign("B", *same)))) == [
        "0 A 0.1",
        "2 B 0.1",
    ]


def test_f3_the_effective_schedule_has_its_start_and_the_defaults_filled_in() -> None:
    body = {"startDateTime": at(-60), "timeWindows": None, "maxAttempts": 2}
    trace = run(scenario(campaign("A", "busy 0s", requested=5, **body), limit=0, end=9))
    made = trace.requests[0, 0]
    assert made.start_at == made.at == run(scenario(campaign("A", requested=5))).requests[0, 0].at
    assert (made.request.max_attempts, made.request.retry_interval) == (2, 3_600_000)
    hours = [(w.day_of_week, w.time[0].start, w.time[0].end) for w in made.request.time_windows]
    assert hours == [(day, "09:00" if day < 6 else "10:00", "19:00") for day in range(1, 8)]


def test_f3_a_request_by_the_timeline_is_remembered_as_it_was_made() -> None:
    acts: list[Act] = [(20, "schedule", "A", request(startDateTime=at(30), maxAttempts=1))]
    trace = run(scenario(campaign("A", "busy 0s", requested=None), timeline=acts))
    made = trace.requests[0, 0]
    assert (made.start_at - made.at, made.request.retry_interval) == (10_000, 0)


def test_set_behaviour_holds_for_dials_from_then_on() -> None:
    # Setup 2 s, from 1 on 5 s; the line being set up at 1 goes on as it was.
    trace = run(scenario(campaign("A", "busy 0s", "busy 0s", agent="Agent"),
                         timeline=[(1, "setBehaviour", "slow")]))  # fmt: skip
    assert ends(trace) == ["2 0.1 INITIATED>BUSY ended", "7 1.1 INITIATED>BUSY ended"]
    assert [row.behaviour for row in rows(trace) if row.change.cause == "dialled"] == [
        "default",
        "slow",
    ]


def test_set_behaviour_concerns_the_agents_campaigns_only() -> None:
    trace = run(scenario(campaign("A", "busy 0s"), campaign("B", "busy 0s", agent="Other"),
                         limit=2, timeline=[(0, "setBehaviour", "slow")]))  # fmt: skip
    assert ends(trace) == ["5 0.1 INITIATED>BUSY ended"]
    assert calls(trace, "B")[-1] == "2 0.1 INITIATED>BUSY ended"
