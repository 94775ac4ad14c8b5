"""Rule D3, each case worked out on paper (see `readings` and `rows`): who leaves the list, when.

In most cases person 0 of campaign A is reached: dialled at 0, answered at 2, over at 9.
"""

from __future__ import annotations

from typing import Any

import pytest

from dialsim.engine.simulation import Simulation
from dialsim.engine.trace import Trace
from dialsim.errors import Refused
from dialsim.testing import Sketch
from engine.readings import run
from engine.rows import START, after, calls, dials, life, lines, refusals

REACHED = "answered 0s 7s"
WITHOUT_DUPLICATES = {"startDateTime": "2026-01-05T03:00:00Z", "removeDuplicates": True}
NOBODY = "VALIDATION_FAILED: All recipients are duplicates within the configured window"


def told(status: str, ended: float, **more: Any) -> dict[str, Any]:
    """A person who was called before, once."""
    history = {"callAttempt": 1, "latestCallStatus": status, "lastEndedAt": after(ended)}
    return {"script": "busy 0s", "history": history, **more}


def alerted(window: str = "1d") -> Sketch:
    """An organization with the duplicate-call alert on."""
    return Sketch(9, start=START).having(duplicate_call_alert={"window": window})


def without_duplicates(sketch: Sketch, *people: str | dict[str, Any], requested: float) -> Sketch:
    """A sketch with a campaign B that leaves duplicates out."""
    return sketch.campaign("B", *people, requested=requested, remove_duplicates=True)


def removed(trace: Trace, position: int = 1) -> tuple[int, ...]:
    return trace.requests[0, position].removed


@pytest.mark.parametrize(
    ("window", "dropped"), [("1d", (0,)), ("10001ms", (0,)), ("10s", (0,)), ("9999ms", ())]
)
def test_d3_the_window_reaches_back_from_the_request_its_edge_included(
    window: str, dropped: tuple[int, ...]
) -> None:
    # Over at 9, requested at 19.
    sketch = alerted(window).campaign("A", REACHED, "busy 0s")
    trace = run(without_duplicates(sketch, "busy 0s", "busy 0s", requested=19))
    assert removed(trace) == dropped
    assert [dial for dial in dials(trace) if " B " in dial] == [
        f"19 B {person}.1" for person in (0, 1) if person not in dropped
    ]


@pytest.mark.parametrize(("requested", "dropped"), [(8, ()), (9, ()), (9.001, (0,))])
def test_d3_a_conversation_counts_once_it_has_ended(
    requested: float, dropped: tuple[int, ...]
) -> None:
    # T4: at 9 the request (step 1) comes before the end of the conversation (step 4).
    sketch = alerted().campaign("A", REACHED, "busy 0s")
    trace = run(without_duplicates(sketch, "busy 0s", "busy 0s", requested=requested))
    assert removed(trace) == dropped


@pytest.mark.parametrize("status", ["noAnswer 1s", "busy 1s", "failed 1s"])
def test_d3_only_who_was_reached_is_dropped(status: str) -> None:
    sketch = alerted().campaign("A", status)
    assert removed(run(without_duplicates(sketch, "busy 0s", requested=19))) == ()


def test_d3_the_removed_get_no_call_and_the_others_keep_their_place() -> None:
    sketch = alerted().campaign("A", REACHED)
    trace = run(without_duplicates(sketch, "busy 0s", "busy 0s", requested=19))
    assert calls(trace, "B") == lines("""
        19 1.1 new>SCHEDULED scheduled
        19 1.1 SCHEDULED>QUEUED released
        19 1.1 QUEUED>dialling dialled
        21 1.1 INITIATED>BUSY ended""")
    assert life(trace)[-1] == "21 B RUNNING>COMPLETED all_final"


def test_d3_without_the_wish_nobody_is_dropped() -> None:
    trace = run(alerted().campaign("A", REACHED).campaign("B", "busy 0s", requested=19))
    assert removed(trace) == ()
    assert dials(trace)[-1] == "19 B 0.1"


def test_d3_all_campaigns_of_the_agent_count_and_no_other_agents() -> None:
    people, asked = ("busy 0s", "busy 0s"), {"requested": 20, "remove_duplicates": True}
    trace = run(
        alerted()
        .campaign("A", "busy 0s", REACHED)
        .campaign("B", REACHED, agent="Other")
        .campaign("C", *people, agent="Other", **asked)
        .campaign("D", *people, **asked)
    )
    assert (removed(trace, 2), removed(trace, 3)) == ((0,), (1,))


@pytest.mark.parametrize("act", ["cancel", "delete"])
def test_d3_a_campaign_that_is_gone_counts_still(act: str) -> None:
    sketch = alerted().campaign("A", REACHED).at(5, act, "A")
    assert removed(run(without_duplicates(sketch, "busy 0s", "busy 0s", requested=20))) == (0,)


def test_d3_another_organization_does_not_count() -> None:
    acme = alerted().campaign("A", REACHED)
    both = acme.organization("Bravo", 1, duplicate_call_alert={"window": "1d"})
    trace = run(without_duplicates(both, "busy 0s", requested=20))
    assert trace.requests[1, 0].removed == ()


def test_d3_a_number_that_is_there_twice_is_dropped_twice() -> None:
    twice = [{"tel": "0800000000", "script": "busy 0s"}] * 2
    sketch = alerted().campaign("A", REACHED)
    trace = run(without_duplicates(sketch, "busy 0s", "busy 0s", *twice, requested=20))
    assert removed(trace) == (0, 2, 3)


def test_d3_numbers_are_compared_as_they_are_written() -> None:
    other_form = {"tel": "+66800000000", "script": "busy 0s"}
    sketch = alerted().campaign("A", REACHED)
    assert removed(run(without_duplicates(sketch, other_form, requested=20))) == ()


@pytest.mark.parametrize(
    ("status", "ended", "dropped"),
    [
        ("COMPLETED", -81, (0,)),
        ("COMPLETED", -81.001, ()),
        ("ANALYSIS_FAILED", -1, (0,)),
        ("NO_ANSWER", -1, ()),
    ],
)
def test_d3_histories_count_those_of_the_campaign_itself_too(
    status: str, ended: float, dropped: tuple[int, ...]
) -> None:
    # Requested at 19: 100 s before is -81.
    people = told(status, ended), "busy 0s"
    trace = run(without_duplicates(alerted("100s"), *people, requested=19))
    assert removed(trace, 0) == dropped


def test_d3_the_history_of_a_campaign_that_nobody_started_counts() -> None:
    sketch = alerted().campaign("A", told("COMPLETED", -5), requested=None)
    assert removed(run(without_duplicates(sketch, "busy 0s", "busy 0s", requested=19))) == (0,)


def test_d3_a_history_and_a_call_of_one_number_the_later_decides() -> None:
    # Reached at -50, and again until 9: a window of 10 s at 19 finds the second.
    again = told("BUSY", -4000, script=REACHED)
    sketch = alerted("10s").campaign("A", again, max_attempts=2)
    sketch = without_duplicates(sketch, "busy 0s", "busy 0s", requested=19)
    trace = run(sketch.campaign("D", told("COMPLETED", -50), requested=None))
    assert removed(trace) == (0,)


def test_d3_with_nobody_left_the_request_is_refused_and_the_campaign_stays_draft() -> None:
    sketch = alerted().campaign("A", REACHED)
    trace = run(without_duplicates(sketch, "busy 0s", requested=19))
    assert refusals(trace) == [f"19 B schedule {NOBODY}"]
    assert (calls(trace, "B"), [row for row in life(trace) if " B " in row]) == ([], [])


def test_d3_a_refused_campaign_can_be_asked_for_once_more() -> None:
    sketch = without_duplicates(alerted().campaign("A", REACHED), "busy 0s", requested=19)
    assert dials(run(sketch.at(20, "schedule", "B")))[-1] == "20 B 0.1"


def test_d3_a_campaign_without_recipients_has_nobody_left() -> None:
    trace = run(alerted().campaign("A", remove_duplicates=True))
    assert refusals(trace) == [f"0 A schedule {NOBODY}"]
    assert refusals(run(alerted().campaign("A"))) == []


def test_c9_calling_must_be_allowed_before_duplicates_are_looked_at() -> None:
    sketch = without_duplicates(alerted().campaign("A", REACHED), "busy 0s", requested=19)
    assert refusals(run(sketch.at(10, "setCallingAllowed", False))) == [
        "19 B schedule CALLING_NOT_ALLOWED: Your organization is not allowed to make calls."
    ]


def test_c9_a_campaign_must_be_draft_before_duplicates_are_looked_at() -> None:
    sketch = alerted().campaign("A", REACHED)
    trace = run(sketch.at(19, "schedule", "A", remove_duplicates=True))
    assert refusals(trace)[0].startswith("19 A schedule CAMPAIGN_ALREADY_STARTED")


def test_c9_calling_must_be_allowed_before_the_alert_must_be_on() -> None:
    live = Simulation(
        Sketch(1, start=START)
        .having(calling_allowed=False)
        .campaign("A", "busy 0s", requested=None)
        .scenario()
    )
    with pytest.raises(Refused) as refused:
        live.schedule("A", WITHOUT_DUPLICATES)
    assert (refused.value.status, refused.value.code) == (403, "CALLING_NOT_ALLOWED")
    live.set_calling_allowed(True)
    with pytest.raises(Refused) as refused:
        live.schedule("A", WITHOUT_DUPLICATES)
    assert (refused.value.status, refused.value.message) == (
        400,
        "Duplicate call alert is not enabled for this organization",
    )


def test_d3_a_request_from_outside_sees_what_the_instant_has_brought() -> None:
    # T4: a command comes after all of the instant's work, the end of the conversation included.
    sketch = alerted().campaign("A", REACHED).campaign("B", "busy 0s", requested=None)
    live = Simulation(sketch.scenario())
    live.advance(seconds=9)
    with pytest.raises(Refused) as refused:
        live.schedule("B", WITHOUT_DUPLICATES)
    assert (refused.value.status, f"{refused.value.code}: {refused.value.message}") == (400, NOBODY)
    assert live.status("B") == "DRAFT"
