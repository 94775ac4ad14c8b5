"""Results of a run that begins in the middle, and people who left the list (D3)."""

from __future__ import annotations

from functools import cache
from typing import Any

import dialsim
from dialsim.results.bottleneck import Reason
from dialsim.results.result import Result
from dialsim.results.summary_text import tables
from dialsim.testing import Sketch

MINUTE = 60_000


def before(script: str, attempts: int, status: str, ended: str) -> dict[str, Any]:
    """A person with a history: attempts, and how and when (UTC) the last call ended."""
    told = {"callAttempt": attempts, "latestCallStatus": status, "lastEndedAt": ended}
    return {"script": script, "history": told}


def january(*people: str | dict[str, Any]) -> Result:
    """It is Monday 09:00 in Thailand, 02:00 UTC; at 09:58 the campaign is cancelled."""
    sketch = Sketch(5).campaign("January", *people, max_attempts=3, retry_interval="1h")
    return dialsim.run(sketch.at("Mon 09:58", "cancel", "January").scenario())


@cache
def middle() -> Result:
    """Person 0 was reached by attempt 2, person 1 has had all three, and person 2 is due at 09:30
    and answers attempt 3. Person 3 is fresh, and person 4 due at 09:59: too late for both.
    """
    return january(
        before("busy 0s", 2, "COMPLETED", "2026-01-05T01:00:00Z"),
        before("busy 0s", 3, "NO_ANSWER", "2026-01-05T01:30:00Z"),
        before("busy 0s; busy 0s; answered 8s 60s", 2, "BUSY", "2026-01-05T01:30:00Z"),
        "noAnswer 8s; answered 8s 60s",
        before("busy 0s", 1, "FAILED", "2026-01-05T01:59:00Z"),
    )


def test_people_go_on_from_their_history() -> None:
    people = middle().recipients
    assert [*people.state] == ["reached", "exhausted", "reached", "cancelled", "cancelled"]
    assert [*people.call_attempt] == [2, 3, 3, 1, 1]
    assert [*people.latest_call_status] == [
        *("COMPLETED", "NO_ANSWER", "COMPLETED", "NO_ANSWER", "FAILED")
    ]


def test_r3_who_was_reached_before_has_the_end_of_that_call_for_the_instant() -> None:
    reached_at = middle().recipients.reached_at
    assert [*reached_at.isna()] == [False, True, False, True, True]
    assert [f"{at:%H:%M:%S}" for at in reached_at.dropna()] == ["01:00:00", "02:30:10"]


def test_p5_attempts_are_numbered_from_the_history_on_and_calls_from_one() -> None:
    calls = middle().calls
    assert [*zip(calls.recipient, calls.call, calls.attempt, strict=True)] == [(2, 1, 3), (3, 1, 1)]


def test_figures_of_people_count_the_history_and_figures_of_calls_do_not() -> None:
    summary = middle().summary
    assert (summary.people, summary.people_reached, summary.people_exhausted) == (5, 2, 1)
    assert summary.reach_by_attempt == (0, 0.2, 0.4)
    assert (summary.calls, summary.dials, summary.attempts) == (2, 2, 2)
    assert summary.attempts_per_person_mean == 0.4


def test_reach_goes_as_far_as_the_attempts_that_were_made_before() -> None:
    spent = before("busy 0s", 3, "BUSY", "2026-01-05T01:00:00Z")
    assert january(spent, "answered 0s 5s").summary.reach_by_attempt == (0.5, 0.5, 0.5)


def test_sequences_hold_the_calls_of_the_run_alone() -> None:
    assert [*middle().sequences] == [
        *("", "", "SCHEDULED QUEUED INITIATED COMPLETED"),
        *("SCHEDULED QUEUED INITIATED NO_ANSWER", ""),
    ]


def test_waiting_for_the_retry_after_a_history_is_retry_interval() -> None:
    result = january(before("busy 0s", 1, "FAILED", "2026-01-05T01:59:00Z"))
    use = result.reading.campaigns[0, 0].time_use
    assert (use.retry_interval, use.total) == (58 * MINUTE, 58 * MINUTE)
    assert result.summary.held_back is not None
    assert result.summary.held_back.reason is Reason.RETRY_INTERVAL


def test_a_story_begins_with_the_history() -> None:
    assert middle().story(2) == (
        "Recipient 2 of January (Acme)\n"
        "0800000002\n"
        "Before: 2 attempts, BUSY; the last call ended on Mon 5 Jan 2026 08:30\n"
        "\n"
        "Mon 5 Jan 2026, Thai time\n"
        "  09:00:00      - the campaign is SCHEDULED (schedule)\n"
        "  09:00:00      - the campaign is RUNNING (start)\n"
        "  09:30:00      call 1 is scheduled: a retry is due\n"
        "  09:30:00      call 1 joins the queue\n"
        "  09:30:00      attempt 3: dialled from 020000000\n"
        "  09:30:02      the phone rings  (after 2 s)\n"
        "  09:30:10      answered: the conversation begins  (after 8 s)\n"
        "  09:31:10      the call ends: COMPLETED  (after 1 min)\n"
        "  09:58:00      - the campaign is CANCELLED (cancel)\n"
        "\n"
        "Reached on Mon 5 Jan 2026 09:30, by attempt 3; talked 1 min."
    )


def test_a_story_ends_with_what_the_history_had_settled() -> None:
    last = [middle().story(person).splitlines()[-1] for person in (0, 1, 4)]
    assert last == [
        "Reached before the scenario began, by attempt 2: not called again.",
        "Not reached: 3 attempts, as many as were allowed.",
        "Not reached: the campaign was cancelled after 1 attempt.",
    ]


def test_who_was_reached_before_is_so_in_a_campaign_that_nobody_scheduled() -> None:
    reached = before("busy 0s", 2, "COMPLETED", "2026-01-05T01:00:00Z")
    sketch = Sketch(1).campaign("January", reached, "busy 0s", requested=None)
    people = dialsim.run(sketch.scenario()).recipients
    assert [*people.state] == ["reached", "unscheduled"]
    assert people.latest_call_status.to_list()[:1] == ["COMPLETED"]
    assert [*people.latest_call_status.isna()] == [False, True]


@cache
def with_duplicates() -> Result:
    """Person 0 of January is reached; February drops its persons 0 and 2, of the same number."""
    again = {"tel": "0800000000", "script": "busy 0s"}
    sketch = (
        Sketch(5)
        .having(duplicate_call_alert={"window": "1d"})
        .campaign("January", "answered 0s 7s", "busy 0s")
        .campaign("February", again, "busy 0s", again, requested=60, remove_duplicates=True)
    )
    return dialsim.run(sketch.scenario())


def test_d3_the_removed_leave_the_tables_and_the_others_keep_their_position() -> None:
    people = with_duplicates().recipients
    assert [*zip(people.campaign, people.recipient, people.state, strict=True)] == [
        ("January", 0, "reached"),
        ("January", 1, "exhausted"),
        ("February", 1, "exhausted"),
    ]
    assert [*people.index] == [0, 1, 2]
    assert [place[1:] for place in with_duplicates().sequences.index] == [
        ("January", 0),
        ("January", 1),
        ("February", 1),
    ]


def test_d3_the_removed_are_counted_and_are_not_among_the_people() -> None:
    summary = with_duplicates().summary
    _, february = summary.campaigns
    assert (february.people, february.people_removed, february.people_exhausted) == (1, 2, 1)
    assert (summary.people, summary.people_removed) == (3, 2)
    assert (february.reach_share, summary.reach_share) == (0, 1 / 3)
    assert february.attempts_per_person_mean == 1


def test_d3_the_printed_summary_shows_how_many_were_removed() -> None:
    found = {table.title: table for table in tables(with_duplicates().summary)}
    assert found["People"].columns == ("all", "reached", "exhausted")  # who was removed is none
    assert ("February", "1", "", "1") in found["People"].rows
    assert found["Duplicates"].columns == ("removed",)
    assert ("February", "2") in found["Duplicates"].rows


def test_d3_the_story_of_who_was_removed_says_so() -> None:
    story = with_duplicates().story(2, "February").splitlines()
    assert story[-1] == "Off the list: removed as a duplicate by the schedule request."
    assert not any("call 1" in line for line in story)
