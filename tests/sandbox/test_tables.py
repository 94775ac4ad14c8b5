"""Calls and transitions under /_dialsim: page by page they are the tables of the run so far."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.sandbox.asking import Client, control, exchange_of_the_corpus
from tests.sandbox.test_read_model import INSTANTS, SEEDS, eventful, wire

from dialsim.results.result import Result
from dialsim.sandbox import tables
from dialsim.sandbox.core import SandboxCore
from dialsim.testing import Sketch

CALL_NAMES = {
    "recipient": "recipient",
    "callId": "call_id",
    "sessionId": "session_id",
    "call": "call",
    "attempt": "attempt",
    "status": "status",
    "agentStatus": "agent_status",
    "callerId": "caller_id",
    "voiceKey": "voice_key",
    "segment": "segment",
    "createdAt": "created_at",
    "queuedAt": "queued_at",
    "initiatedAt": "initiated_at",
    "ringingAt": "ringing_at",
    "callStartedAt": "call_started_at",
    "callEndedAt": "call_ended_at",
    "callDurationMs": "call_duration_ms",
    "analysis": "analysis",
    "funnel": "funnel",
    "cost": "cost",
    "voiceEngine": "voice_engine",
}
TRANSITION_NAMES = {
    "at": "at",
    "recipient": "recipient",
    "call": "call",
    "fromStatus": "from_status",
    "toStatus": "to_status",
    "phase": "phase",
    "cause": "cause",
}
PAGE_SIZE = 37  # many boundaries to go wrong at
RUNNING = "cccccccc-0000-4000-8000-000000000003"


def pages(client: Client, campaign: str, table: str) -> list[dict[str, Any]]:
    """All rows of a table, page by page."""
    rows: list[dict[str, Any]] = []
    for page in range(1, 1_000):
        answer = control(client, "GET", f"/campaigns/{campaign}/{table}?page={page}").json()
        assert answer["page"] == page
        if not answer[table]:
            assert answer["total"] == len(rows)
            assert answer["totalPages"] == page - 1 == -(-len(rows) // tables.PAGE_SIZE)
            return rows
        rows += answer[table]
    raise AssertionError("the table has no end")


def plain(value: Any) -> Any:
    """A cell of a table as it looks in JSON."""
    if isinstance(value, pd.Timestamp):
        return wire(value)
    if pd.isna(value):
        return None
    return value.item() if isinstance(value, np.generic) else value


def table_rows(frame: pd.DataFrame, names: dict[str, str]) -> list[dict[str, Any]]:
    return [
        {name: plain(row[column]) for name, column in names.items()}
        for row in frame.to_dict("records")
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_pages_put_together_are_the_tables_at_every_instant(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "PAGE_SIZE", PAGE_SIZE)
    costs = ["costs.perDial=0.1", "costs.perMinute=1.2", "costs.billingIncrement=6s"]
    segments = ["organizations.0.campaigns.0.recipients.segments={a: 0.5, b: 0.5}"]
    core = SandboxCore(eventful(seed).scenario([*costs, *segments]))
    client, simulation = Client(core), core.simulation
    for instant in INSTANTS:
        simulation.advance(to=instant)
        result = Result(simulation.trace)
        for view in core.accounts[0].views:
            own = {
                name: frame[frame["campaign"] == view.campaign.block.name]
                for name, frame in (("calls", result.calls), ("transitions", result.transitions))
            }
            calls = pages(client, view.identifier, "calls")
            created = [row["createdAt"] for row in calls]
            assert created == sorted(created)
            ids = dict(result.recipients[["recipient_id", "tel"]].itertuples(index=False))
            assert all(ids[row.pop("recipientId")] == row.pop("tel") for row in calls)
            calls.sort(key=lambda row: (row["recipient"], row["call"]))
            assert calls == table_rows(own["calls"], CALL_NAMES)
            changes = pages(client, view.identifier, "transitions")
            assert [row["at"] for row in changes] == sorted(row["at"] for row in changes)
            # rows of one instant are in order of events here, and by recipient in the table
            changes.sort(key=lambda row: (row["at"], row["recipient"], row["call"]))
            assert changes == table_rows(own["transitions"], TRANSITION_NAMES)


def test_p5_of_a_dial_that_was_withdrawn_nothing_is_shown() -> None:
    scenario = Sketch(lines=1).campaign("A", "answered 5s 90s").scenario()
    core = SandboxCore(scenario)
    client, simulation = Client(core), core.simulation
    identifier = core.accounts[0].views[0].identifier
    dial = ("attempt", "callerId", "initiatedAt")
    for _ in range(2):  # it is the same call when it is dialled again
        [row] = pages(client, identifier, "calls")
        assert [row[name] is None for name in dial] == [False] * 3
        simulation.pause("A")
        [row] = pages(client, identifier, "calls")
        assert [row[name] is None for name in dial] == [True] * 3
        [expected] = table_rows(Result(simulation.trace).calls, CALL_NAMES)
        assert {name: row[name] for name in CALL_NAMES} == expected
        simulation.resume("A")


def test_what_was_listed_stays_where_it_was() -> None:
    core = SandboxCore(eventful(3).scenario())
    client, known = Client(core), {"calls": [], "transitions": []}
    identifier = core.accounts[0].views[0].identifier
    for instant in INSTANTS:
        core.simulation.advance(to=instant)
        changes = pages(client, identifier, "transitions")
        assert changes[: len(known["transitions"])] == known["transitions"]
        calls = [row["callId"] for row in pages(client, identifier, "calls")]
        assert calls[: len(known["calls"])] == known["calls"]
        known = {"calls": calls, "transitions": changes}
    assert any(row["cause"] == "late_result" for row in known["transitions"])


def test_c8_the_tables_of_a_deleted_campaign_are_still_read() -> None:
    client = Client(exchange_of_the_corpus())
    path = f"/campaigns/{RUNNING}/calls"
    first = control(client, "GET", path).json()["calls"][0]
    assert (first["recipientId"][-3:], first["tel"]) == ("301", "0810000004")
    control(client, "DELETE", f"/campaigns/{RUNNING}")
    assert control(client, "GET", path).json()["calls"][0]["callId"] == first["callId"]


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        (f"{RUNNING}/calls?page=0", 400, "page must be an integer of 1 or more"),
        (f"{RUNNING}/calls?page=1&page=2", 400, "page must be an integer of 1 or more"),
        (f"{RUNNING}/calls?state=BUSY", 400, "property state should not exist"),
        (f"{RUNNING}/transitions?status=BUSY", 400, "property status should not exist"),
        ("x/calls", 400, "id must be a valid UUID"),
        ("cccccccc-0000-4000-8000-999999999999/calls", 404, "Campaign not found"),
        ("cccccccc-0000-4000-8000-999999999999/transitions", 404, "Campaign not found"),
    ],
)  # fmt: skip
def test_a_question_that_makes_no_sense_is_refused(path: str, status: int, text: str) -> None:
    response = control(Client(exchange_of_the_corpus()), "GET", f"/campaigns/{path}")
    assert (response.status_code, response.json()["message"]) == (status, text)


def test_a_page_beyond_the_last_is_empty() -> None:
    client = Client(exchange_of_the_corpus())
    for page in ("2", "9" * 12, "9" * 5_000):
        answer = control(client, "GET", f"/campaigns/{RUNNING}/transitions?page={page}")
        assert (answer.status_code, answer.json()["transitions"]) == (200, [])
