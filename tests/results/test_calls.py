from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd

from dialsim.engine.chance import call_ids, session_ids
from dialsim.results.result import Result
from dialsim.scenario.service import Costs
from results.traces import NINE, HandCampaign, hand_trace

COLUMNS = [
    *("organization", "campaign", "recipient", "call_id", "session_id", "call", "attempt"),
    *("status", "agent_status", "caller_id", "voice_key", "segment"),
    *("created_at", "queued_at", "initiated_at", "ringing_at", "call_started_at"),
    *("call_ended_at", "call_duration_ms", "analysis", "funnel", "cost"),
    "voice_engine",
]

WITHDRAWN_AND_REDIALLED = """
0       0 1 scheduled
1000    0 1 released
1000    0 1 dialled 021000001 malee
1500    0 1 paused
9000    0 1 released
9500    0 1 dialled 021000002 somchai
10000   0 1 ringing
15000   0 1 answered
75250   0 1 COMPLETED
"""


def calls(log: str, people: int = 1, **more: Any) -> pd.DataFrame:
    costs = more.pop("costs", None)
    return Result(hand_trace([HandCampaign(log, people, **more)], costs=costs)).calls


def after_nine(at: pd.Timestamp) -> int | None:
    return None if pd.isna(at) else at.value // 1_000_000 - NINE


def test_the_columns_are_the_published_ones_with_compact_dtypes() -> None:
    table = calls(WITHDRAWN_AND_REDIALLED)
    assert list(table) == COLUMNS
    dtypes = table.dtypes.astype(str)
    categorical = ["organization", "campaign", "status", "agent_status", "caller_id", "segment"]
    assert set(dtypes[categorical]) == {"category"}
    assert set(dtypes[[name for name in COLUMNS if name.endswith("_at")]]) == {
        "datetime64[ms, UTC]"
    }
    assert dtypes[["attempt", "call_duration_ms"]].tolist() == ["Int32", "Int64"]
    assert dtypes[["call_id", "session_id"]].tolist() == ["str", "str"]


def test_p5_a_withdrawn_dial_that_was_repeated_shows_the_repetition_alone() -> None:
    call = calls(WITHDRAWN_AND_REDIALLED).iloc[0]
    assert (call.attempt, call.caller_id, call.voice_key) == (1, "021000002", "somchai")
    assert after_nine(call.queued_at) == 9_000
    assert after_nine(call.initiated_at) == 9_500
    assert after_nine(call.ringing_at) == 10_000
    assert after_nine(call.call_started_at) == 15_000
    assert after_nine(call.call_ended_at) == 75_250
    assert call.call_duration_ms == 60_250
    assert call.agent_status == "COMPLETED"


def test_p5_a_withdrawn_dial_leaves_no_attempt_no_number_and_no_instant() -> None:
    log = "0 0 1 scheduled\n5 0 1 released\n6 0 1 dialled 021000001 malee\n"
    for ending, status in (
        ("paused", "SCHEDULED"),
        ("cancelled", "CANCELLED"),
        ("expired", "EXPIRED"),
    ):
        call = calls(f"{log}7 0 1 {ending}").iloc[0]
        assert call.status == status
        assert pd.isna(call[["attempt", "caller_id", "voice_key", "initiated_at"]]).all()
        assert after_nine(call.queued_at) == 5


def test_f1_the_end_is_set_by_a_queue_timeout_but_not_for_who_is_dropped_while_waiting() -> None:
    table = calls(
        """
        0   0 1 scheduled
        0   1 1 scheduled
        0   2 1 scheduled
        5   0 1 released
        5   1 1 released
        600 0 1 queue_timeout
        700 1 1 expired
        700 2 1 deleted
        """,
        people=3,
    )
    assert [after_nine(at) for at in table.call_ended_at] == [600, None, None]
    assert table.status.tolist() == ["CANCELLED", "EXPIRED", "CANCELLED"]
    assert table.attempt.isna().all()
    assert table.call_duration_ms.isna().all()


def test_p5_attempts_count_calls_dialled_and_ended_before() -> None:
    table = calls(
        """
        0   0 1 scheduled
        5   0 1 released
        600 0 1 queue_timeout
        700 0 2 retry
        700 0 2 released
        700 0 2 dialled
        710 0 2 BUSY
        800 0 3 retry
        800 0 3 released
        800 0 3 dialled
        """
    )
    assert table.attempt.tolist() == [pd.NA, 1, 2]
    assert table.call.tolist() == [1, 2, 3]


def test_a_call_under_way_when_the_run_is_cut_keeps_its_attempt_and_number() -> None:
    call = calls("0 0 1 scheduled\n1 0 1 released\n1 0 1 dialled 021000009\n2 0 1 ringing").iloc[0]
    assert (call.status, call.attempt, call.caller_id) == ("INITIATED", 1, "021000009")
    assert pd.isna(call.voice_key)


def test_f2_agent_status_needs_a_conversation_that_is_over() -> None:
    talking = "0 0 1 scheduled\n1 0 1 released\n1 0 1 dialled\n3 0 1 answered"
    assert calls(f"{talking}\n9 0 1 COMPLETED").agent_status.tolist() == ["COMPLETED"]
    assert calls(talking).agent_status.isna().all()
    assert calls("0 0 1 scheduled").agent_status.tolist() == ["NOT_STARTED"]


def test_f3_a_campaign_scheduled_with_voices_uses_the_second_voice_engine() -> None:
    log = "0 0 1 scheduled"
    assert calls(log).voice_engine.tolist() == [1]
    assert calls(log, body={"ttsVoiceKeys": ["malee"]}).voice_engine.tolist() == [2]


def test_costs_are_a_dial_and_every_started_increment() -> None:
    costs = Costs.model_validate({"perDial": 0.1, "perMinute": 1.2, "billingIncrement": "60s"})
    log = f"{WITHDRAWN_AND_REDIALLED}\n0 1 1 scheduled\n0 2 1 scheduled\n0 2 1 released"
    log += "\n0 2 1 dialled\n900 2 1 BUSY"
    table = calls(log, people=3, costs=costs)
    assert np.allclose(table.cost, [0.1 + 2 * 1.2, 0.0, 0.1])
    assert calls(log, people=3).cost.isna().all()


def test_ids_are_those_that_the_position_gives() -> None:
    table = calls("0 0 1 scheduled\n0 1 1 scheduled", people=2)
    recipients, numbers = np.array([0, 1]), np.array([1, 1])
    assert table.call_id.tolist() == [i.decode() for i in call_ids(1, 0, 0, recipients, numbers)]
    sessions = [i.decode() for i in session_ids(1, 0, 0, recipients, numbers)]
    assert table.session_id.tolist() == sessions
    assert {UUID(text).version for text in (*table.call_id, *table.session_id)} == {4}


def test_segments_and_names_of_several_campaigns_share_their_categories() -> None:
    log = "0 0 1 scheduled\n0 1 1 scheduled"
    table = Result(
        hand_trace(
            [HandCampaign(log, 2, segments=True), HandCampaign("", 0, name="February")],
            [HandCampaign(log, 2, name="January")],
        )
    ).calls
    assert table.organization.tolist() == ["Acme", "Acme", "Bolt", "Bolt"]
    assert table.campaign.tolist() == ["January"] * 4
    assert list(table.campaign.cat.categories) == ["January", "February"]
    assert table.segment.astype("str").fillna("none").tolist() == ["none", "vip", "none", "none"]


def test_a_run_without_campaigns_has_empty_tables_of_the_same_dtypes() -> None:
    empty, full = Result(hand_trace([])), Result(hand_trace([HandCampaign("0 0 1 scheduled")]))
    for name in ("calls", "transitions", "recipients", "campaigns"):
        assert len(getattr(empty, name)) == 0
        assert (
            getattr(empty, name).dtypes.astype(str).equals(getattr(full, name).dtypes.astype(str))
        )
    assert len(empty.sequences) == 0
