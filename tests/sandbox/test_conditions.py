"""An advance until a condition: it ends when the condition holds, or explains why it can't."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from tests.sandbox.asking import Client, control

import dialsim
from dialsim.errors import DialsimError
from dialsim.sandbox.core import SandboxCore
from dialsim.testing import Answer, Receiver, Sketch

SKETCH = Sketch(lines=1).campaign(
    "January", "busy 1s; answered 5s 90s", "noAnswer 20s", max_attempts=2, retry_interval="10m"
)


@pytest.fixture
def sandbox() -> Iterator[dialsim.Sandbox]:
    with dialsim.Sandbox(SKETCH.scenario()) as sandbox:
        yield sandbox


def advance(sandbox: dialsim.Sandbox, **move: object) -> dict[str, Any]:
    answer = httpx.post(
        f"{sandbox.url}/_dialsim/clock/advance", json=move, timeout=60, verify=False
    )
    state: dict[str, Any] = answer.json()
    return state


def calls(sandbox: dialsim.Sandbox) -> list[dict[str, Any]]:
    path = f"/_dialsim/campaigns/{sandbox.campaign('January').id}/calls"
    rows: list[dict[str, Any]] = httpx.get(sandbox.url + path).json()["calls"]
    return rows


def test_until_a_campaign_has_a_status(sandbox: dialsim.Sandbox) -> None:
    january = sandbox.campaign("January").id
    state = advance(sandbox, until="status", campaign=january, status="COMPLETED")
    assert state["ended"] == "there"
    [last] = [one.at for one in sandbox.result().trace.campaigns if one.to_status == "COMPLETED"]
    assert sandbox.clock.now.timestamp() * 1000 == last
    # and at once where it has it already
    again = advance(sandbox, until="status", campaign=january, status="COMPLETED")
    assert again["now"] == state["now"]


def test_until_a_call_has_a_status(sandbox: dialsim.Sandbox) -> None:
    first = calls(sandbox)[0]["callId"]
    sandbox.advance_until(call=first, status="BUSY")
    [row] = [row for row in calls(sandbox) if row["callId"] == first]
    assert row["status"] == "BUSY"
    assert row["callEndedAt"] == advance(sandbox, by="0s")["now"]


def test_a_status_that_lasts_no_time_is_one_too(sandbox: dialsim.Sandbox) -> None:
    schedule = {"startDateTime": "2026-01-05T02:30:00Z"}
    empty = {"name": "Empty", "agent": "Agent", "recipients": [], "schedule": schedule}
    sandbox.add_campaign(empty)
    sandbox.advance_until(campaign="Empty", status="RUNNING")
    assert sandbox.campaign("Empty").status == "COMPLETED"


def test_until_webhooks_have_left_or_were_kept(sandbox: dialsim.Sandbox) -> None:
    sandbox.advance_until(webhooks=1)
    assert [row.status for row in sandbox.webhooks] == ["kept"]
    assert sandbox.webhooks[0].at == sandbox.clock.now
    with pytest.raises(DialsimError, match="nothing is left to happen"):
        sandbox.advance_until(webhooks=5, campaign="January")
    with Receiver() as receiver, dialsim.Sandbox(SKETCH.scenario(), webhook_url=receiver.url) as to:
        receiver.answer(Answer(500))
        to.advance_until(webhooks=2)
        assert [row.response for row in to.webhooks] == [500, 200]
        assert to.webhooks[-1].at == to.clock.now


def test_a_predicate_in_python(sandbox: dialsim.Sandbox) -> None:
    now = sandbox.advance_until(lambda s: len(s.webhooks) == 1)
    assert now == sandbox.webhooks[0].at
    with pytest.raises(DialsimError, match="within the limit, at 2026"):
        sandbox.advance_until(lambda _: False, within=timedelta(milliseconds=1))
    with pytest.raises(DialsimError, match="nothing is left to happen"):
        sandbox.advance_until(lambda _: False)
    with pytest.raises(DialsimError, match="give a condition"):
        sandbox.advance_until(status="BUSY")


def test_a_condition_that_does_not_come_says_why(sandbox: dialsim.Sandbox) -> None:
    january = sandbox.campaign("January").id
    paused = {"until": "status", "campaign": january, "status": "PAUSED"}
    begun = sandbox.clock.now
    state = advance(sandbox, **paused, within="30s")
    assert state["ended"] == "limit"
    assert sandbox.clock.now == begun + timedelta(seconds=30)
    assert advance(sandbox, **paused)["ended"] == "never"
    with pytest.raises(DialsimError, match="over with another status"):
        sandbox.advance_until(campaign="January", status="PAUSED")
    assert advance(sandbox, until="webhooks", count=9)["ended"] == "idle"
    ending = Sketch(lines=1, end="2026-01-05T02:00:10Z").campaign("January", "noAnswer 20s")
    with dialsim.Sandbox(ending.scenario()) as other:
        assert advance(other, until="webhooks", count=1)["ended"] == "clockEnd"


@pytest.mark.parametrize(
    ("move", "says"),
    [
        ({"until": "status", "status": "BUSY"}, "one of campaign and call must be given"),
        ({"until": "status", "campaign": "x"}, "status is required"),
        ({"until": "webhooks"}, "count is required"),
        ({"until": "idle", "count": 3}, 'count can only be given where until is "webhooks"'),
        (
            {"by": "1s", "within": "2s"},
            'within can only be given where until is "status" or "webhooks"',
        ),
    ],
)
def test_conditions_that_make_no_sense_are_refused(move: dict[str, object], says: str) -> None:
    client = Client(SandboxCore(SKETCH.scenario()))
    refused = control(client, "POST", "/clock/advance", move).json()
    assert refused["statusCode"] == 400
    assert any(says in text for text in refused["errors"]), refused["errors"]


def test_a_status_must_be_one_of_what_is_waited_for(sandbox: dialsim.Sandbox) -> None:
    january = sandbox.campaign("January").id
    refused = advance(sandbox, until="status", campaign=january, status="BUSY")
    assert refused["message"].startswith("status must be one of DRAFT, SCHEDULED, RUNNING")


def test_an_advance_until_a_condition_can_be_stopped() -> None:
    with (
        Receiver(otherwise=Answer(delay=30)) as receiver,
        dialsim.Sandbox(SKETCH.scenario(), webhook_url=receiver.url) as sandbox,
    ):
        answers = list[dict[str, Any]]()
        waiting = threading.Thread(
            target=lambda: answers.append(advance(sandbox, until="webhooks", count=9))
        )
        waiting.start()
        receiver.wait_for(1)
        stopped = sandbox.clock.stop()
        waiting.join()
        assert answers[0]["ended"] == "stopped"
        assert answers[0]["now"].startswith(f"{stopped:%Y-%m-%dT%H:%M:%S}")
