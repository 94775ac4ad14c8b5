"""A forecast from the middle (C1): people continue from their histories.

Each case is worked out on paper (see `readings` and `rows`): the setup time is 2 s, times are
seconds after the clock's start, and earlier ones are negative.
"""

from __future__ import annotations

from typing import Any

import pytest

from dialsim.testing import Sketch
from dialsim.testing.sketch import NUMBERS
from engine.readings import Agree, run
from engine.rows import START, after, calls, dials, life, lines, numbers, rows
from oracle.paper import dials as dials_read

RETRY = {"max_attempts": 2, "retry_interval": "5m"}


def before(
    script: str | None, attempts: int, status: str, ended: float, **more: Any
) -> dict[str, Any]:
    """A person who was called before: attempts, how the last call ended, and when."""
    history = {"callAttempt": attempts, "latestCallStatus": status, "lastEndedAt": after(ended)}
    return ({} if script is None else {"script": script}) | {"history": history | more}


@pytest.mark.parametrize("status", ["COMPLETED", "ANALYSIS_FAILED"])
def test_r3_who_was_reached_before_is_not_called_again(status: str) -> None:
    trace = run(
        Sketch(1, start=START).campaign("A", before("busy 0s", 1, status, -9), "busy 0s", **RETRY)
    )
    assert dials(trace) == ["0 A 1.1", "302 A 1.2"]


def test_r1_who_has_had_all_attempts_before_is_not_called_again() -> None:
    spent = before("busy 0s", 2, "NO_ANSWER", -9), before("busy 0s", 5, "BUSY", -9)
    assert dials(run(Sketch(1, start=START).campaign("A", *spent, "busy 0s", **RETRY))) == lines("""
        0 A 2.1
        302 A 2.2""")


@pytest.mark.parametrize("start", [0, 60])
def test_c3_a_campaign_whose_people_are_all_final_completes_as_it_starts(start: float) -> None:
    people = before("busy 0s", 1, "COMPLETED", -9), before("busy 0s", 2, "BUSY", -9)
    trace = run(Sketch(1, start=START).campaign("A", *people, start=start, **RETRY))
    assert calls(trace) == []
    assert life(trace) == lines(f"""
        0 A DRAFT>SCHEDULED schedule
        {start} A SCHEDULED>RUNNING start
        {start} A RUNNING>COMPLETED all_final""")


@pytest.mark.parametrize(
    ("ended", "requested", "created"),
    [
        (-100, 0, 200),  # the interval is not over yet
        (-299.999, 0, 0.001),
        (-300, 0, 0),
        (-4000, 0, 0),  # long over: the request
        (-100, 150, 200),
        (-100, 200, 200),
        (-100, 250, 250),
        (0, 0, 300),
    ],
)
def test_r2_the_next_call_is_made_at_the_later_of_request_and_interval(
    ended: float, requested: float, created: float
) -> None:
    person = before("busy 0s", 1, "NO_ANSWER", ended)
    trace = run(Sketch(1, start=START).campaign("A", person, requested=requested, **RETRY))
    assert calls(trace)[0] == f"{created} 0.1 new>SCHEDULED retry"
    assert dials(trace) == [f"{created} A 0.1"]


def test_c1_who_has_a_history_has_no_first_call_beside_the_next_one() -> None:
    # Person 1 was never called. Person 0 is due at -298 + 300 = 2, when the line is free again.
    people = before("answered 1s 4s", 1, "BUSY", -298), "failed 0s"
    trace = run(Sketch(1, start=START).campaign("A", *people, **RETRY))
    assert calls(trace) == lines("""
        0 1.1 new>SCHEDULED scheduled
        0 1.1 SCHEDULED>QUEUED released
        0 1.1 QUEUED>dialling dialled
        2 0.1 new>SCHEDULED retry
        2 0.1 SCHEDULED>QUEUED released
        2 0.1 QUEUED>dialling dialled
        2 1.1 INITIATED>FAILED ended
        4 0.1 INITIATED>ringing ringing
        5 0.1 INITIATED>talking answered
        9 0.1 INITIATED>COMPLETED ended
        302 1.2 new>SCHEDULED retry
        302 1.2 SCHEDULED>QUEUED released
        302 1.2 QUEUED>dialling dialled
        304 1.2 INITIATED>FAILED ended""")


def test_p5_a_script_goes_on_with_the_step_of_the_next_attempt() -> None:
    person = before("busy 1s; failed 1s; answered 1s 5s", 2, "FAILED", -1000)
    trace = run(Sketch(1, start=START).campaign("A", person, max_attempts=4, retry_interval="5m"))
    assert [row.change.to_status for row in rows(trace)][-1] == "COMPLETED"
    assert dials(trace) == ["0 A 0.1"]


def test_q5_a_queue_timeout_in_the_history_is_no_attempt() -> None:
    person = before("failed 0s", 0, "CANCELLED", -10)
    trace = run(Sketch(1, start=START).campaign("A", person, retry_interval="5m"))
    assert dials(trace) == ["290 A 0.1"]


def test_r1_attempts_before_and_now_are_counted_together() -> None:
    person = before("busy 0s", 1, "BUSY", -1000)
    trace = run(Sketch(1, start=START).campaign("A", person, max_attempts=3, retry_interval="5m"))
    assert dials(trace) == ["0 A 0.1", "302 A 0.2"]


@pytest.mark.parametrize("seed", range(8))
def test_p3_the_next_call_avoids_the_number_of_the_last(seed: int) -> None:
    person = before("busy 0s", 1, "BUSY", -1000, lastCallerId=NUMBERS[0])
    two = Sketch(1, start=START).campaign("A", person, caller_ids=NUMBERS[:2], **RETRY)
    assert numbers(run(two, seed)) == [("0.1", NUMBERS[1])]
    one = Sketch(1, start=START).campaign("A", person, caller_ids=[NUMBERS[0]], **RETRY)
    assert numbers(run(one, seed)) == [("0.1", NUMBERS[0])]


def test_p3_a_number_that_the_campaign_does_not_have_leaves_the_choice_free() -> None:
    person = before("busy 0s", 1, "BUSY", -1000, lastCallerId="0999")
    written = Sketch(1, start=START).campaign("A", person, caller_ids=NUMBERS[:2], **RETRY)
    assert {numbers(run(written, seed))[0][1] for seed in range(20)} == {*NUMBERS[:2]}


@pytest.mark.parametrize(("end", "expires"), [(199.999, True), (200, True), (200.001, False)])
def test_c7_the_end_date_drops_the_next_calls_of_a_history(end: float, expires: bool) -> None:
    # The next call is due at 200. At 200 the end (step 2) comes before the retry (step 6); 1 ms
    # later the line is being set up, and expires as well.
    people = before("busy 0s", 1, "BUSY", -100), before("busy 0s", 1, "COMPLETED", -9)
    trace = run(Sketch(1, start=START).campaign("A", *people, end=end, **RETRY))
    assert life(trace)[-1] == f"{end} A RUNNING>EXPIRED end_date_time"
    assert (calls(trace) == []) == expires


def test_c7_an_end_date_already_past_leaves_nobody_to_call() -> None:
    people = before("busy 0s", 1, "BUSY", -1000), before("busy 0s", 1, "COMPLETED", -9)
    trace = run(Sketch(1, start=START).campaign("A", *people, start=-100, end=-50, **RETRY))
    assert calls(trace) == []
    assert life(trace)[-1] == "0 A SCHEDULED>EXPIRED end_date_time"


def test_c6_a_cancellation_drops_the_next_calls_of_a_history() -> None:
    person = before("busy 0s", 1, "BUSY", -100)
    trace = run(Sketch(1, start=START).campaign("A", person, **RETRY).at(50, "cancel", "A"))
    assert calls(trace) == []
    assert life(trace)[-1] == "50 A RUNNING>CANCELLED cancel"


def test_c5_the_next_calls_of_a_history_are_made_during_a_pause_and_wait() -> None:
    person = before("busy 0s", 1, "BUSY", -100)
    trace = run(
        Sketch(1, start=START)
        .campaign("A", person, **RETRY)
        .at(10, "pause", "A")
        .at(400, "resume", "A")
    )
    assert calls(trace) == lines("""
        200 0.1 new>SCHEDULED retry
        400 0.1 SCHEDULED>QUEUED released
        400 0.1 QUEUED>dialling dialled
        402 0.1 INITIATED>BUSY ended""")


@pytest.mark.parametrize(
    ("order", "first"), [("due", "1.1"), ("freshFirst", "0.1"), ("retriesFirst", "1.1")]
)
def test_q3_a_next_call_is_due_before_the_start_and_no_fresh_one(order: str, first: str) -> None:
    # Requested at 0 for 100: person 1 is due at 0, person 0 at 100. Both are released at 100.
    people = "busy 0s", before("busy 0s", 1, "BUSY", -1000)
    written = Sketch(1, start=START, order=order).campaign("A", *people, start=100, **RETRY)
    assert dials(run(written))[0] == f"100 A {first}"


@pytest.mark.parametrize(
    ("order", "wanted"),
    [("due", "1 2 0"), ("freshFirst", "2 1 0"), ("retriesFirst", "1 0 2")],
)
def test_c1_calls_keep_the_due_instants_that_they_had_before_the_request(
    order: str, wanted: str, agreed: Agree
) -> None:
    # Due at -700, at -1700, and, never called, since the requested startDateTime at -1500.
    people = before("busy 0s", 1, "BUSY", -1000), before("busy 0s", 1, "BUSY", -2000), "busy 0s"
    written = Sketch(1, start=START, order=order).campaign("A", *people, start=-1500, **RETRY)
    assert [dial.split()[-1][0] for dial in dials_read(agreed(written))[:3]] == wanted.split()


def test_c1_first_calls_of_campaigns_beside_a_history_keep_their_due_instants_too(
    agreed: Agree,
) -> None:
    # A: a retry due at -600, a first call at -900. B has no history: due since -700.
    written = (
        Sketch(1, start=START, sharing="fifo")
        .campaign("A", before("busy 0s", 1, "BUSY", -900), "busy 0s", start=-900, **RETRY)
        .campaign("B", "busy 0s", start=-700, **RETRY)
    )
    assert dials_read(agreed(written))[:3] == ["0 A 1.1", "2 B 0.1", "4 A 0.1"]


@pytest.mark.parametrize(("history", "first"), [(True, "30"), (False, "0")])
def test_q2_release_instants_go_on_as_before_where_there_is_a_history(
    history: bool, first: str, agreed: Agree
) -> None:
    # Every 60 s from -90: -30, 30, 90. Without a history the campaign begins at 0.
    people = [before("busy 0s", 1, "COMPLETED", -9)] if history else []
    written = Sketch(1, start=START, release_interval="60s").campaign(
        "A", *people, "busy 0s", start=-90
    )
    assert dials_read(agreed(written))[0].split()[0] == first


def test_q3_a_history_without_attempts_leaves_somebody_fresh() -> None:
    people = before("busy 0s", 1, "BUSY", -4000), before("busy 0s", 0, "CANCELLED", -4000)
    written = Sketch(1, start=START, order="freshFirst").campaign("A", *people, **RETRY)
    assert dials(run(written))[:2] == ["0 A 1.1", "2 A 0.1"]


def test_an_attempt_has_its_own_draws_whether_the_one_before_was_simulated_or_told() -> None:
    plain = Sketch(60, start=START, seed=3).behaviour(
        "default", outcomes={"answered": 0.5, "noAnswer": 0.3, "busy": 0.2}
    )
    everybody = [{"tel": f"08{person:08d}"} for person in range(60)]
    told = [person | before(None, 1, "BUSY", -1000) for person in everybody]
    simulated = run(plain.campaign("A", recipients=everybody, **RETRY))
    went_on = run(plain.campaign("A", recipients=told, **RETRY))
    second = {row.recipient: row.change for row in rows(simulated) if row.call == 2}
    ends = {row.recipient: row.change for row in rows(went_on) if row.change.cause == "ended"}
    assert len(second) > 10
    assert {recipient: ends[recipient] for recipient in second} == second
