from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import dialsim
from dialsim.results.bottleneck import Bottleneck, percent
from dialsim.results.result import Result
from dialsim.results.summary import Summary
from dialsim.scenario.service import EngineSettings
from dialsim.testing import Sketch
from results.test_summary import JANUARY
from results.traces import HOUR, MINUTE, HandCampaign, hand_trace

NINE_TO_SEVEN = {
    "timeWindows": [{"dayOfWeek": d, "time": [{"start": "09:00", "end": "19:00"}]} for d in (1, 2)]
}


def held_back(*campaigns: HandCampaign, **more: Any) -> Bottleneck:
    """Of the first campaign."""
    found = Result(hand_trace([*campaigns], **more)).summary.campaigns[0].held_back
    assert found is not None
    return found


def life(finish: int, status: str = "COMPLETED", cause: str = "all_final", more: str = "") -> str:
    return f"0 SCHEDULED schedule\n0 RUNNING start\n{more}{finish} {status} {cause}"


def two_calls(second: int, end: int) -> str:
    """Person 0 is called at once, person 1 at `second`, until `end`; both are reached."""
    return f"""
    0 0 1 scheduled
    0 1 1 scheduled
    0 0 1 released
    0 0 1 dialled
    0 1 1 released
    1 0 1 answered
    {second} 0 1 COMPLETED
    {second} 1 1 dialled
    {second + 1} 1 1 answered
    {end} 1 1 COMPLETED
    """


def test_slots_are_named_where_all_were_busy_while_people_waited() -> None:
    found = held_back(HandCampaign(two_calls(900, 1000), 2, life=life(1000)), limits=[(0, 0, 1)])
    assert found.reason == "lines"
    assert found.share == 0.9
    assert found.sentence == (
        "Lines: the only line was busy for 90 % of the time, and people waited."
    )
    assert found.campaign == "Acme/January"


def test_slots_taken_by_another_campaign_are_said_to_be() -> None:
    other = "0 0 1 scheduled\n0 0 1 released\n0 0 1 dialled\n900 0 1 BUSY"
    mine = "0 0 1 scheduled\n0 0 1 released\n900 0 1 dialled\n1000 0 1 BUSY"
    found = held_back(
        HandCampaign(mine, life=life(1000)),
        HandCampaign(other, name="Other", life=life(900)),
        limits=[(0, 0, 1), (5, 0, 1), (900, 0, 4)],
    )
    assert found.sentence == (
        "Lines: all 1 to 4 lines were busy, mostly with calls of other campaigns, for 90 % of the "
        "time, and people waited; 100 % of the people were not reached in the 1 attempt they got."
    )


def test_windows_are_named_for_retries_that_fall_due_when_they_are_closed() -> None:
    # called at 18:50, due again at 19:50, called the next morning at nine
    start, due, morning = 590 * MINUTE, 650 * MINUTE, 24 * HOUR
    log = f"""
    0 0 1 scheduled
    {start} 0 1 released
    {start} 0 1 dialled
    {start} 0 1 BUSY
    {due} 0 2 retry
    {morning} 0 2 released
    {morning} 0 2 dialled
    {morning} 0 2 BUSY
    """
    body = NINE_TO_SEVEN | {"maxAttempts": 2, "retryInterval": HOUR}
    found = held_back(HandCampaign(log, life=life(morning), body=body, start=start))
    closed, waited = morning - due, HOUR
    assert (found.reason, found.share) == ("windows", closed / (closed + waited))
    assert found.sentence.startswith(
        "Calling windows: windows were closed for 93 % of the time, and"
    )


def test_a_night_through_which_a_backlog_waits_is_no_fault_of_the_windows() -> None:
    # one slot, busy from nine to seven, and on the next morning: the night counts for nothing
    seven, morning, end = 10 * HOUR, 24 * HOUR, 29 * HOUR
    log = two_calls(morning, end).replace(f"{morning} 0 1", f"{seven} 0 1")
    campaign = HandCampaign(log, 2, life=life(end), body=NINE_TO_SEVEN)
    result = Result(hand_trace([campaign], limits=[(0, 0, 1)]))
    use = result.reading.campaigns[0, 0].time_use
    assert (use.lines, use.nights, use.calls) == (10 * HOUR, 14 * HOUR, 5 * HOUR)
    found = held_back(campaign, limits=[(0, 0, 1)])
    assert (found.reason, found.share) == ("lines", 10 / 15)


def test_windows_that_close_during_the_day_count_even_with_a_backlog() -> None:
    body = {
        "timeWindows": [
            {
                "dayOfWeek": 1,
                "time": [{"start": "09:00", "end": "09:10"}, {"start": "12:00", "end": "13:00"}],
            }
        ]
    }
    noon = 3 * HOUR
    log = two_calls(noon, noon + MINUTE).replace(f"{noon} 0 1", "60000 0 1")
    found = held_back(HandCampaign(log, 2, life=life(noon + MINUTE), body=body), limits=[(0, 0, 1)])
    assert found.reason == "windows"
    assert found.share == pytest.approx(170 / 181)


def test_the_retry_interval_is_named_while_nobody_else_could_be_called() -> None:
    found = held_back(JANUARY)
    assert found.reason == "retry_interval"
    assert found.share == 300_000 / 393_000
    assert found.sentence == (
        "Retry interval: 76 % of the time went by until the 5 min before a retry was over."
    )


def test_q5_a_queue_that_calls_time_out_in_is_named_and_not_the_retry_interval() -> None:
    log = """
    0      0 1 scheduled
    0      0 1 released
    600    0 1 queue_timeout
    300600 0 2 retry
    300600 0 2 released
    300600 0 2 dialled
    300601 0 2 answered
    300700 0 2 COMPLETED
    """
    body = {"maxAttempts": 1, "retryInterval": 300_000}
    found = held_back(HandCampaign(log, life=life(300_700), body=body))
    assert found.reason == "queue"
    assert found.sentence == (
        "Queue: calls timed out in the queue, and >99 % of the time went by until they were due "
        "again, 5 min later."
    )


def test_q5_an_unlimited_queue_that_churns_is_named() -> None:
    # one slot: of three people two time out, come back together, and one of them does so again
    log = """
    0      0 1 scheduled
    0      1 1 scheduled
    0      2 1 scheduled
    0      0 1 released
    0      1 1 released
    0      2 1 released
    0      0 1 dialled
    1      0 1 answered
    100000 1 1 queue_timeout
    100000 2 1 queue_timeout
    150000 0 1 COMPLETED
    400000 1 2 retry
    400000 2 2 retry
    400000 1 2 released
    400000 2 2 released
    400000 1 2 dialled
    400001 1 2 answered
    500000 2 2 queue_timeout
    550000 1 2 COMPLETED
    800000 2 3 retry
    800000 2 3 released
    800000 2 3 dialled
    800001 2 3 answered
    950000 2 3 COMPLETED
    """
    body = {"maxAttempts": 1, "retryInterval": 300_000}
    found = held_back(
        HandCampaign(log, 3, life=life(950_000), body=body),
        limits=[(0, 0, 1)],
        engine=EngineSettings.model_validate({"queueLimit": "unlimited"}),
    )
    assert (found.reason, found.also, found.share) == ("queue", (), 600 / 950)
    assert found.sentence == (
        "Queue: calls timed out in the queue, which has no limit, and 63 % of the time went by "
        "until they were due again, 5 min later."
    )


@cache
def paced(lines: int, rate: float) -> Summary:
    """Calls of a minute, which so many lines and dials a second bound."""
    sketch = (
        Sketch(lines, setup_time="1s", calls_per_second=rate)
        .behaviour(
            "default", outcomes={"answered": 1}, ring_time={"answered": "4s"}, talk_time="55s"
        )
        .campaign("January", recipients={"count": 300}, max_attempts=1)
    )
    return dialsim.run(sketch.scenario()).summary


def test_slots_and_pacing_that_bind_together_are_named_together() -> None:
    finishes = [paced(*setting).finish for setting in ((10, 0.16), (20, 0.16), (10, 0.32))]
    assert all(finishes)
    as_it_is, more_lines, faster = (at.timestamp() for at in finishes if at)
    both = paced(20, 0.32).finish
    assert both is not None
    assert max(as_it_is - more_lines, as_it_is - faster) < 2 * MINUTE / 1000
    assert as_it_is - both.timestamp() > 14 * MINUTE / 1000
    found = paced(10, 0.16).held_back
    assert found is not None
    assert {found.reason, *found.also} == {"lines", "pacing"}
    assert found.sentence == (
        "Lines and pacing: while people waited, 95 % of the lines were busy and 100 % of the 0.16 "
        "dials a second that callsPerSecond allows were made, so more of one alone saves little."
    )


@pytest.mark.parametrize(("lines", "rate", "reason"), [(10, 0.32, "lines"), (20, 0.16, "pacing")])
def test_the_one_that_alone_would_save_the_time_is_named_alone(
    lines: int, rate: float, reason: str
) -> None:
    found = paced(lines, rate).held_back
    assert found is not None
    assert (found.reason, found.also) == (reason, ())


def test_short_windows_and_full_slots_are_both_named() -> None:
    # one slot, full all the ten minutes of the morning: either more of would have saved the wait
    body = {
        "timeWindows": [
            {
                "dayOfWeek": 1,
                "time": [{"start": "09:00", "end": "09:10"}, {"start": "12:00", "end": "13:00"}],
            }
        ]
    }
    ten, noon, end = 10 * MINUTE, 3 * HOUR, 3 * HOUR + MINUTE
    log = two_calls(noon, end).replace(f"{noon} 0 1", f"{ten} 0 1")
    found = held_back(HandCampaign(log, 2, life=life(end), body=body), limits=[(0, 0, 1)])
    assert (found.reason, found.also) == ("windows", ("lines",))
    assert found.sentence == (
        "Calling windows and lines: windows were closed for 94 % of the time, and people waited; "
        "the only line was busy for 6 % of the time, and people waited."
    )


def test_two_causes_that_took_much_of_the_time_are_both_named() -> None:
    log = """
    0      0 1 scheduled
    0      1 1 scheduled
    0      0 1 released
    0      1 1 released
    0      0 1 dialled
    1      0 1 answered
    400000 0 1 COMPLETED
    400000 1 1 dialled
    400001 1 1 NO_ANSWER
    700001 1 2 retry
    700001 1 2 released
    700001 1 2 dialled
    700002 1 2 answered
    700003 1 2 COMPLETED
    """
    body = {"maxAttempts": 2, "retryInterval": 300_000}
    found = held_back(HandCampaign(log, 2, life=life(700_003), body=body), limits=[(0, 0, 1)])
    assert (found.reason, found.also) == ("lines", ("retry_interval",))
    assert found.sentence == (
        "Lines and retry interval: the only line was busy for 57 % of the time, and people waited; "
        "43 % of the time went by until the 5 min before a retry was over."
    )


@pytest.mark.parametrize(
    ("engine", "released", "words"),
    [
        ({"callsPerSecond": 0.5}, 0, "callsPerSecond allows 0.5 dials a second"),
        ({"releaseInterval": "10m"}, 900, "calls are released only every 10 min"),
        (
            {"callsPerSecond": 0.5, "releaseInterval": "10m"},
            900,
            "calls are released only every 10 min",
        ),
    ],
)
def test_pacing_is_named_while_a_slot_is_free_and_people_wait(
    engine: dict[str, Any], released: int, words: str
) -> None:
    log = f"0 0 1 scheduled\n{released} 0 1 released\n900 0 1 dialled\n901 0 1 answered"
    found = held_back(
        HandCampaign(f"{log}\n1000 0 1 COMPLETED", life=life(1000)),
        engine=EngineSettings.model_validate(engine),
    )
    assert (found.reason, found.share) == ("pacing", 0.9)
    assert found.sentence == (
        f"Pacing: for 90 % of the time people waited and a line was free, but {words}."
    )


def test_pauses_are_named_with_their_length() -> None:
    log = "0 0 1 scheduled\n3600000 0 1 released\n3600000 0 1 dialled\n3600001 0 1 answered"
    stopped = "0 PAUSED pause\n3600000 RUNNING resume\n"
    found = held_back(
        HandCampaign(f"{log}\n3700000 0 1 COMPLETED", life=life(3_700_000, more=stopped))
    )
    assert found.reason == "pauses"
    assert found.sentence == (
        "Pauses: people waited for 1 h while it was paused, 97 % of the time."
    )


def test_attempts_are_named_where_time_was_not_short_but_people_ran_out_of_them() -> None:
    log = "0 0 1 scheduled\n0 0 1 released\n0 0 1 dialled\n900 0 1 NO_ANSWER"
    found = held_back(HandCampaign(log, life=life(900)))
    assert (found.reason, found.share) == ("attempts", 1)
    assert found.sentence == (
        "Attempts: 100 % of the people were not reached in the 1 attempt they got."
    )


def test_nothing_held_back_who_was_called_and_reached_at_once() -> None:
    log = "0 0 1 scheduled\n0 0 1 released\n0 0 1 dialled\n5 0 1 answered\n900 0 1 COMPLETED"
    found = held_back(HandCampaign(log, life=life(900)))
    assert (found.reason, found.share) == ("nothing", None)
    assert found.sentence == "Nothing: whoever was due was called at once."


def test_an_end_date_time_that_came_first_is_said() -> None:
    log = f"{two_calls(900, 1000)}\n0 2 1 scheduled\n1000 2 1 expired".replace(
        "1000 1 1 C", "999 1 1 C"
    )
    log = "\n".join(
        sorted(filter(str.strip, log.splitlines()), key=lambda line: int(line.split()[0]))
    )
    found = held_back(
        HandCampaign(
            log,
            3,
            life=life(1000, "EXPIRED", "end_date_time"),
            body={"endDateTime": "2026-01-05T02:00:01Z"},
        ),
        limits=[(0, 0, 1)],
    )
    assert found.sentence == (
        "Lines: the only line was busy for >99 % of the time, and people waited; "
        "endDateTime came before 1 person could be reached."
    )


@pytest.mark.parametrize(
    ("status", "cause"),
    [("CANCELLED", "cancel"), ("CANCELLED", "delete"), ("EXPIRED", "end_date_time")],
)
def test_a_campaign_over_before_it_could_call_anybody_says_so(status: str, cause: str) -> None:
    log = f"0 0 1 scheduled\n0 0 1 {status.lower()}"
    found = held_back(HandCampaign(log, life=life(0, status, cause)))
    assert (found.reason, found.share) == ("nothing", None)
    words = "the campaign or the run ended before calling began"
    assert found.sentence == f"Nothing was dialled: {words}."


def test_a_cancellation_that_came_first_is_said() -> None:
    log = f"{two_calls(900, 999)}\n0 2 1 scheduled\n1000 2 1 cancelled"
    log = "\n".join(
        sorted(filter(str.strip, log.splitlines()), key=lambda line: int(line.split()[0]))
    )
    found = held_back(
        HandCampaign(log, 3, life=life(1000, "CANCELLED", "cancel")), limits=[(0, 0, 1)]
    )
    assert found.sentence == (
        "Lines: the only line was busy for >99 % of the time, and people waited; "
        "it was cancelled before 1 person could be reached."
    )


@pytest.mark.parametrize(
    ("stopped", "limit", "reason", "words"),
    [
        ("9 PAUSED pause", 2, "pauses", "Pauses: it was paused and never resumed"),
        ("", 0, "lines", "Lines: maxConcurrentCalls is 0 to the end"),
        ("", 2, "pacing", "Pacing: no instant of release ever falls into a calling window"),
    ],
)
def test_t5_a_stalled_campaign_is_held_back_by_what_stalls_it(
    stopped: str, limit: int, reason: str, words: str
) -> None:
    found = held_back(
        HandCampaign(
            "0 0 1 scheduled\n0 1 1 scheduled",
            2,
            life=f"0 SCHEDULED schedule\n0 RUNNING start\n{stopped}",
            stalled=True,
        ),
        limits=[(0, 0, limit)],
    )
    assert found.reason == reason
    assert found.sentence == f"{words}; 2 people still to be called."


def test_a_campaign_never_scheduled_says_so() -> None:
    found = held_back(HandCampaign("", 2, body=None))
    assert found.reason == "not_scheduled"


def test_percentages_are_not_rounded_into_a_lie() -> None:
    shares = (0, 0.001, 0.01, 0.5, 0.99, 0.999, 1)
    assert [percent(share) for share in shares] == [
        *("0 %", "<1 %", "1 %", "50 %", "99 %", ">99 %", "100 %")
    ]
