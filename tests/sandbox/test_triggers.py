"""Results that are triggered: what is sent, what can be read back, and what is left as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.sandbox.asking import Client, control, exchange_of_the_corpus
from tests.sandbox.described import DOCUMENT, body_of

import dialsim
from dialsim.sandbox.commands import TriggerResult
from dialsim.sandbox.orders import TriggerOrder
from dialsim.sandbox.restart import begin, resume
from dialsim.testing import Receiver, Sketch

WORLD = Sketch(lines=3).campaign("January", "busy 1s; answered 5s 90s", max_attempts=2)
STATUSES = ["COMPLETED", "NO_ANSWER", "BUSY", "FAILED", "CANCELLED"]


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def sandbox(receiver: Receiver) -> Iterator[dialsim.Sandbox]:
    with dialsim.Sandbox(WORLD.scenario(), webhook_url=receiver.url) as sandbox:
        sandbox.clock.advance(minutes=1)
        yield sandbox


def read(sandbox: dialsim.Sandbox, path: str) -> Any:
    headers = {"X-API-Key": sandbox.api_key}
    answer = httpx.get(f"{sandbox.url}/api/{path}", headers=headers, verify=False)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


@pytest.mark.parametrize("status", STATUSES)
def test_a_result_of_each_kind_is_sent_now_and_can_be_read_back(
    sandbox: dialsim.Sandbox, receiver: Receiver, status: str
) -> None:
    before = sandbox.result().calls.to_csv(), len(sandbox.webhooks), sandbox.clock.now
    receiver.requests.clear()
    made = sandbox.trigger(status)
    [post] = receiver.requests
    payload = post.json["payload"]
    body_of(DOCUMENT["webhooks"]["CALL_RESULT"]["post"]["requestBody"]).validate(post.json)
    assert (made.response, made.received, made.at) == (200, True, sandbox.clock.now)
    assert (made.body, made.call_id) == (post.json, payload["call"]["id"])
    assert payload["call"]["callStatus"] == status
    assert payload["isReAnalysis"] is False
    assert post.headers["X-Dialsim-Event"] == "CALL_RESULT"
    [agent] = read(sandbox, "agent/list")
    assert payload["agent"] == agent
    assert payload["campaign"]["maxConcurrentCalls"] == 3
    call = read(sandbox, f"call/{made.call_id}")
    assert (call["callStatus"], call["result"]) == (status, payload["callResult"] or {})
    recipient = read(sandbox, f"recipient/{call['recipient']['id']}")
    assert recipient["tel"] == payload["recipient"]["tel"]
    # nothing of the simulation is another
    assert before == (sandbox.result().calls.to_csv(), len(sandbox.webhooks), sandbox.clock.now)
    assert [campaign.name for campaign in sandbox.campaigns] == ["January"]


def test_links_of_a_triggered_result_lead_to_files(sandbox: dialsim.Sandbox) -> None:
    payload = sandbox.trigger("COMPLETED").body["payload"]
    assert httpx.get(payload["recordUrl"]).headers["content-type"] == "audio/wav"
    transcript = httpx.get(payload["transcriptFileUrl"]).json()
    assert transcript["callId"] == payload["call"]["id"]


def test_who_where_and_how_may_be_said(sandbox: dialsim.Sandbox, receiver: Receiver) -> None:
    person = {"tel": "0899999991", "customerName": "สมหญิง"}
    url = receiver.url + "/elsewhere"
    made = sandbox.trigger(
        script="answered 5s 40s silent; busy 1s", recipient=person, url=url, agent="Agent"
    )
    assert receiver.requests[-1].path == "/webhook/elsewhere"
    payload = made.body["payload"]
    assert (made.url, payload["recipient"]["customerName"]) == (url, "สมหญิง")
    assert payload["call"]["callDuration"] == "40.000"
    assert payload["callResult"]["fixedAttr"]["callSummary"] == "No conversation"


def test_a_re_analysis_may_be_triggered(sandbox: dialsim.Sandbox) -> None:
    made = sandbox.trigger("COMPLETED", re_analysis=True)
    assert made.body["payload"]["isReAnalysis"] is True
    assert read(sandbox, f"call/{made.call_id}")["result"] == made.body["payload"]["callResult"]


def test_what_comes_of_it_is_answered(sandbox: dialsim.Sandbox) -> None:
    made = sandbox.trigger("BUSY", url="http://127.0.0.1:9/")
    assert (made.response, made.received) == ("refused", False)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ({}, "one of status and script must be given"),
        ({"status": "BUSY", "script": "busy 1s"}, "one of status and script must be given"),
        (
            {"status": "EXPIRED"},
            "status must be COMPLETED, NO_ANSWER, BUSY, FAILED or CANCELLED",
        ),
        ({"status": "BUSY", "organization": None}, "organization is required where there are"),
        ({"status": "BUSY", "agent": "Nobody"}, 'agent "Nobody" is not known; known here: '),
        ({"script": "answered 5s 60s agentError"}, "no result is sent for such a call"),
        ({"status": "BUSY", "isReAnalysis": True}, "no result is sent for such a call"),
        (
            {"status": "BUSY", "recipient": {"tel": "1", "agentParams": {"nope": []}}},
            "recipient.agentParams.nope must be text",
        ),
    ],
)
def test_an_order_that_makes_no_sense_is_refused(order: dict[str, Any], message: str) -> None:
    client = Client(exchange_of_the_corpus())
    url = {"url": "http://127.0.0.1:9/", "organization": "Acme"}
    response = control(client, "POST", "/trigger", url | order)
    assert (response.status_code, response.json()["code"]) == (400, "VALIDATION_FAILED")
    assert response.json()["message"].startswith(message)
    assert client.core.triggers.count == 0


def test_without_a_url_there_is_nowhere_to_send_to() -> None:
    client = Client(exchange_of_the_corpus())
    response = control(client, "POST", "/trigger", {"status": "BUSY", "organization": "Acme"})
    assert (response.status_code, response.json()["code"]) == (409, "NO_WEBHOOK_URL")


def test_triggered_calls_are_read_back_after_a_restart_and_no_other_organization_sees_them(
    tmp_path: Path,
) -> None:
    file = tmp_path / "journal"
    core = begin(file, WORLD.organization("Beta", 1).scenario())
    core.carry_out(TriggerResult(organization=0, order=TriggerOrder(status="BUSY")))
    call = f"/api/call/{core.triggers.newest().call_id}"
    headers = [{"X-API-Key": core.api_key(position)} for position in (0, 1)]
    told = [Client(core).ask("GET", call, header) for header in headers]
    assert [answer.status_code for answer in told] == [200, 404]
    assert core.journal is not None
    core.journal.close()
    again = resume(file)
    assert Client(again).ask("GET", call, headers[0]).content == told[0].content
    assert again.journal is not None
    again.journal.close()
