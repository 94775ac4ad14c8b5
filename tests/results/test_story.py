from __future__ import annotations

import numpy as np
import pytest

from dialsim.errors import DialsimError
from dialsim.interface.instants import date_text, duration_text, minute_text, time_text
from dialsim.results.result import Result
from results.test_summary import JANUARY, LIFE
from results.traces import NINE, HandCampaign, hand_trace

STORY = """\
Recipient 1 of January (Acme)
คุณ 1 · 0800000001

Mon 5 Jan 2026, Thai time
  09:00:00      - the campaign is SCHEDULED (schedule)
  09:00:00      - the campaign is RUNNING (start)
  09:00:00      call 1 is scheduled
  09:00:00      call 1 joins the queue
  09:00:00      attempt 1: dialled from 021000001
  09:00:01      the phone rings  (after 1 s)
  09:00:31      the call ends: NO_ANSWER  (after 30 s)
  09:05:31      call 2 is scheduled: a retry is due  (after 5 min)
  09:05:31      call 2 joins the queue
  09:05:31      attempt 2: dialled from 021000001
  09:05:32      the phone rings  (after 1 s)
  09:05:33      answered: the conversation begins  (after 1 s)
  09:06:33      the call ends: COMPLETED  (after 1 min)
  09:06:33      - the campaign is COMPLETED (all final)

Reached on Mon 5 Jan 2026 09:05, by attempt 2; talked 1 min."""


def story(log: str, recipient: int = 0, **more: object) -> str:
    return Result(hand_trace([HandCampaign(log, **more)])).story(recipient)


def test_a_story_tells_everything_in_thai_time() -> None:
    assert Result(hand_trace([JANUARY])).story(1) == STORY


def test_a_story_shows_as_it_reads_at_a_prompt_and_in_a_notebook() -> None:
    told = Result(hand_trace([JANUARY])).story(1)
    assert repr(told) == STORY
    assert "<pre" in told._repr_html_()
    assert "คุณ 1" in told._repr_html_()


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("0 0 1 scheduled\n5 0 1 released\n605 0 1 queue_timeout", "call 1 waited too long in the"),
        ("0 0 1 scheduled\n5 0 1 released\n605 0 1 window_closed", "the window closes: call 1 lea"),
        ("0 0 1 scheduled\n5 0 1 released\n605 0 1 paused", "the pause takes call 1 back to SCHED"),
        ("0 0 1 scheduled\n5 0 1 released\n605 0 1 deleted", "call 1 is CANCELLED: the campaign i"),
        ("0 0 1 scheduled\n605 0 1 cancelled", "call 1 is CANCELLED with the campaign"),
        ("0 0 1 scheduled\n605 0 1 expired", "call 1 is EXPIRED: endDateTime has come"),
    ],
)
def test_a_story_has_words_for_every_cause(log: str, line: str) -> None:
    assert f"  09:00:00.605  {line}" in story(log)


@pytest.mark.parametrize(
    ("end", "log", "more"),
    [
        ("Not reached: 1 attempt, as many as were allowed.",
         "0 0 1 scheduled\n0 0 1 released\n0 0 1 dialled\n5 0 1 BUSY", {}),
        ("Not reached: endDateTime came after 0 attempts.", "0 0 1 scheduled\n9 0 1 expired", {}),
        ("Not reached: the campaign was cancelled after 0 attempts.",
         "0 0 1 scheduled\n9 0 1 cancelled", {}),
        ("Still to be called after 0 attempts, and nothing would ever happen again.",
         "0 0 1 scheduled", {"stalled": True}),
        ("Still to be called, or in a call, after 0 attempts when the run ended.",
         "0 0 1 scheduled", {}),
        ("Never called: the campaign was never scheduled.", "", {"body": None}),
    ],
)  # fmt: skip
def test_a_story_ends_with_what_became_of_the_person(
    end: str, log: str, more: dict[str, object]
) -> None:
    assert story(log, **more).splitlines()[-1] == end


def test_a_voice_and_a_segment_are_told_where_there_are_any() -> None:
    log = "0 1 1 scheduled\n0 1 1 released\n0 1 1 dialled 021000007 malee"
    told = story(log, 1, people=2, segments=True)
    assert "คุณ 1 · 0800000001 · segment vip" in told
    assert "attempt 1: dialled from 021000007, voice malee" in told


def test_the_campaign_may_be_named_and_must_be_where_there_are_several() -> None:
    february = HandCampaign("", 1, name="February", life=LIFE)
    result = Result(hand_trace([JANUARY, february], [JANUARY]))
    assert result.story(0, "February").startswith("Recipient 0 of February (Acme)")
    assert result.story(0, campaign="Bolt/January").startswith("Recipient 0 of January (Bolt)")
    with pytest.raises(DialsimError, match="campaign January is ambiguous: Acme/January, Bolt/J"):
        result.story(0, "January")
    with pytest.raises(DialsimError, match="say which campaign: Acme/January, Acme/February, Bo"):
        result.story(0)
    with pytest.raises(DialsimError, match="there is no campaign March; there are: Acme/January"):
        result.story(0, "March")


def test_a_recipient_must_exist() -> None:
    for recipient in (4, -1):
        with pytest.raises(DialsimError, match=f"has 4 recipients.*no recipient {recipient}"):
            Result(hand_trace([JANUARY])).story(recipient)


def test_a_recipient_is_a_position_and_not_a_text() -> None:
    result = Result(hand_trace([JANUARY]))
    assert result.story(np.int32(1)) == result.story(1)  # as a table has it
    for recipient in ("0", "0800000000", 1.0, True, None):
        with pytest.raises(
            DialsimError, match=r"recipient must be a position on the list, from 0, .* not"
        ):
            result.story(recipient)  # type: ignore[arg-type]


def test_sequences_count_what_people_went_through() -> None:
    sequences = Result(
        hand_trace([JANUARY, HandCampaign("", 1, name="Draft", body=None)])
    ).sequences
    assert sequences.index.names == ["organization", "campaign", "recipient"]
    assert sequences["Acme", "January", 1] == (
        "SCHEDULED QUEUED INITIATED NO_ANSWER | SCHEDULED QUEUED INITIATED COMPLETED"
    )
    assert sequences["Acme", "Draft", 0] == ""
    assert sequences.value_counts()["SCHEDULED QUEUED INITIATED COMPLETED"] == 2


def test_thai_times_are_seven_hours_ahead_and_durations_round_to_two_units() -> None:
    assert date_text(NINE - 9 * 3_600_000 - 1) == "Sun 4 Jan 2026"
    assert time_text(NINE + 5) == "09:00:00.005"
    assert minute_text(NINE + 59_999) == "Mon 5 Jan 2026 09:00"
    lengths = (0, 5, 1_250, 59_999, 60_000, 3_599_600, 5_400_000, 90_000_000, 86_400_000)
    assert [duration_text(ms) for ms in lengths] == [
        *("0 s", "0.005 s", "1.25 s", "59.999 s", "1 min", "1 h", "1 h 30 min", "1 d 1 h", "1 d")
    ]
