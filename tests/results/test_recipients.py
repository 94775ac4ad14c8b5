from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from dialsim.results.result import Result
from results.traces import NINE, HandCampaign, hand_trace

RETRIES = {"maxAttempts": 2, "retryInterval": 300_000}
DIALLED = "0 0 1 scheduled\n1 0 1 released\n1 0 1 dialled\n"
DONE = "0 SCHEDULED schedule\n0 RUNNING start\n9 COMPLETED all_final"
CANCELLED = "0 SCHEDULED schedule\n0 RUNNING start\n5 CANCELLED cancel"
EXPIRED = "0 SCHEDULED schedule\n0 RUNNING start\n60000 EXPIRED end_date_time"
RUNNING = "0 SCHEDULED schedule\n0 RUNNING start"


def state(log: str, life: str, *, body: dict[str, Any] | None = RETRIES, **more: Any) -> str:
    cut = more.pop("cut", False)
    trace = hand_trace([HandCampaign(log, body=body, life=life, **more)], cut=cut)
    (found,) = Result(trace).recipients.state
    return str(found)


@pytest.mark.parametrize(
    ("expected", "log", "life"),
    [
        ("reached", f"{DIALLED}2 0 1 answered\n9 0 1 COMPLETED", DONE),
        ("reached", f"{DIALLED}2 0 1 answered", CANCELLED),
        (
            "exhausted",
            f"{DIALLED}2 0 1 BUSY\n3 0 2 retry\n4 0 2 released\n4 0 2 dialled\n9 0 2 BUSY",
            DONE,
        ),
        ("cancelled", f"{DIALLED}2 0 1 cancelled", CANCELLED),
        ("cancelled", f"{DIALLED}2 0 1 deleted", CANCELLED),
        ("cancelled", f"{DIALLED}2 0 1 ringing\n9 0 1 BUSY", CANCELLED),
        ("pending", f"{DIALLED}2 0 1 ringing", CANCELLED),
        ("expired", f"{DIALLED}2 0 1 expired", EXPIRED),
        ("pending", f"{DIALLED}2 0 1 BUSY", RUNNING),
        ("pending", DIALLED, RUNNING),
        ("pending", "0 0 1 scheduled", RUNNING),
        ("cancelled", "0 0 1 scheduled\n1 0 1 released\n600 0 1 queue_timeout", CANCELLED),
        ("pending", "0 0 1 scheduled\n1 0 1 released\n600 0 1 queue_timeout", RUNNING),
    ],
)
def test_a_recipient_is_in_the_state_that_its_calls_and_campaign_lead_to(
    expected: str, log: str, life: str
) -> None:
    assert state(log, life) == expected


def test_c7_who_was_not_retried_because_of_the_end_is_expired_also_if_the_campaign_completed() -> (
    None
):
    body = RETRIES | {"endDateTime": "2026-01-05T02:00:05Z"}
    log = f"{DIALLED}2 0 1 ringing\n9000 0 1 BUSY"
    life = "0 SCHEDULED schedule\n0 RUNNING start\n9000 COMPLETED all_final"
    assert state(log, life, body=body) == "expired"


def test_t5_who_waits_for_ever_is_stalled_but_who_is_done_is_not() -> None:
    log = f"{DIALLED}2 0 1 BUSY\n0 1 1 scheduled"
    body = {"maxAttempts": 1}
    trace = hand_trace([HandCampaign(log, 2, body=body, life=RUNNING, stalled=True)])
    assert Result(trace).recipients.state.tolist() == ["exhausted", "stalled"]


def test_a_campaign_never_scheduled_leaves_people_unscheduled_or_cancelled() -> None:
    assert state("", "", body=None) == "unscheduled"
    assert state("", "5 CANCELLED cancel", body=None) == "cancelled"


def test_a_recipient_shows_its_newest_call_and_when_it_last_changed() -> None:
    log = f"{DIALLED}2000 0 1 BUSY\n400000 0 2 retry"
    trace = hand_trace([HandCampaign(log, 5, body=RETRIES, segments=True)])
    table = Result(trace).recipients
    assert list(table) == [
        *("organization", "campaign", "recipient", "recipient_id", "customer_name", "tel"),
        *("segment", "call_attempt", "latest_call_status", "reached_at", "state"),
        *("created_at", "updated_at"),
    ]
    first, third, fourth = table.iloc[0], table.iloc[2], table.iloc[3]
    assert (first.tel, first.customer_name, first.call_attempt) == ("0800000000", "คุณ 0", 1)
    assert first.latest_call_status == "SCHEDULED"
    assert first.created_at.value == NINE * 1_000_000
    assert first.updated_at.value == (NINE + 400_000) * 1_000_000
    assert pd.isna(third.customer_name)
    assert pd.isna(third.latest_call_status)
    assert third.updated_at == third.created_at
    assert fourth.segment == "vip"
    assert fourth.recipient_id == "7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10"  # fixed by the scenario
    assert table.recipient_id.is_unique
